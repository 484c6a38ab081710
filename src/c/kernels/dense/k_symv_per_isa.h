/* k_symv_per_isa.h: the four dtypes' loops of k_symv.c for one instruction set; included once per
 * set, which defines ISA (a name) and BYTES (of a vector, 16, 32 or 64). */
#define X_(name, tail) LOPK_CAT(LOPK_CAT(name, tail), ISA)

#define T double
#define CPLX 0
#define X(name) X_(name, _d_)
#include "k_symv_per_dtype.h"
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
#include "k_symv_per_dtype.h"
#undef SWAP_
#undef SIGN_
#undef CPLX
#undef X
#undef T

#define T float
#define CPLX 0
#define X(name) X_(name, _s_)
#include "k_symv_per_dtype.h"
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
#include "k_symv_per_dtype.h"
#undef SWAP_
#undef SIGN_
#undef CPLX
#undef X
#undef T

static const symv_loop X_(loops, _)[4][3] = {
    {X_(symv1, _s_), X_(symv2, _s_), X_(symv4, _s_)},
    {X_(symv1, _d_), X_(symv2, _d_), X_(symv4, _d_)},
    {X_(symv1, _c_)},
    {X_(symv1, _z_)},
};
#undef X_
#undef ISA
#undef BYTES
