/* k_small_gemm_per_isa.h: the four dtypes' register blocks for one instruction set; included once
 * per set by k_small_gemm.c, which defines ISA (a name) and BYTES (of a vector, 16, 32 or 64). */
#define X_(name, tail) LOPK_CAT(LOPK_CAT(name, tail), ISA)

#define PER_DTYPE "kernels/dense/k_small_gemm_per_dtype.h"
#include "kernels/common/k_each_dtype.h"

static const small_loops X_(loops, _)[4] = {{X_(ready, _s_), X_(rows, _s_), BYTES / 4},
                                            {X_(ready, _d_), X_(rows, _d_), BYTES / 8},
                                            {X_(ready, _c_), X_(rows, _c_), BYTES / 8},
                                            {X_(ready, _z_), X_(rows, _z_), BYTES / 16}};
#undef X_
#undef ISA
#undef BYTES
