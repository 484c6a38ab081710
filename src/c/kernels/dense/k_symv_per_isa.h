/* k_symv_per_isa.h: the four dtypes' loops of k_symv.c for one instruction set; included once per
 * set, which defines ISA (a name) and BYTES (of a vector, 16, 32 or 64). */
#define X_(name, tail) LOPK_CAT(LOPK_CAT(name, tail), ISA)

#define PER_DTYPE "kernels/dense/k_symv_per_dtype.h"
#include "kernels/common/k_each_dtype.h"

static const symv_loop X_(loops, _)[4][3] = {
    {X_(symv1, _s_), X_(symv2, _s_), X_(symv4, _s_)},
    {X_(symv1, _d_), X_(symv2, _d_), X_(symv4, _d_)},
    {X_(symv1, _c_)},
    {X_(symv1, _z_)},
};
#undef X_
#undef ISA
#undef BYTES
