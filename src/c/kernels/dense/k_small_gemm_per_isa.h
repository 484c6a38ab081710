/* k_small_gemm_per_isa.h: the four dtypes' register blocks for one instruction set; included once
 * per set by k_small_gemm.c, which defines ISA (a name) and BYTES (of a vector, 16, 32 or 64). */
#define X_(name, tail) LOPK_CAT(LOPK_CAT(name, tail), ISA)

#define T double
#define CPLX 0
#define X(name) X_(name, _d_)
#include "k_small_gemm_per_dtype.h"
#undef CPLX
#undef X
#define CPLX 1
#define X(name) X_(name, _z_)
#if BYTES == 64
#define SWAP_ 1, 0, 3, 2, 5, 4, 7, 6
#define SIGN_ -1, 1, -1, 1, -1, 1, -1, 1
#elif BYTES == 32
#define SWAP_ 1, 0, 3, 2
#define SIGN_ -1, 1, -1, 1
#else
#define SWAP_ 1, 0
#define SIGN_ -1, 1
#endif
#include "k_small_gemm_per_dtype.h"
#undef SWAP_
#undef SIGN_
#undef CPLX
#undef X
#undef T

#define T float
#define CPLX 0
#define X(name) X_(name, _s_)
#include "k_small_gemm_per_dtype.h"
#undef CPLX
#undef X
#define CPLX 1
#define X(name) X_(name, _c_)
#if BYTES == 64
#define SWAP_ 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14
#define SIGN_ -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1
#elif BYTES == 32
#define SWAP_ 1, 0, 3, 2, 5, 4, 7, 6
#define SIGN_ -1, 1, -1, 1, -1, 1, -1, 1
#else
#define SWAP_ 1, 0, 3, 2
#define SIGN_ -1, 1, -1, 1
#endif
#include "k_small_gemm_per_dtype.h"
#undef SWAP_
#undef SIGN_
#undef CPLX
#undef X
#undef T

static const small_loops X_(loops, _)[4] = {{X_(ready, _s_), X_(rows, _s_), BYTES / 4},
                                            {X_(ready, _d_), X_(rows, _d_), BYTES / 8},
                                            {X_(ready, _c_), X_(rows, _c_), BYTES / 8},
                                            {X_(ready, _z_), X_(rows, _z_), BYTES / 16}};
#undef X_
#undef ISA
#undef BYTES
