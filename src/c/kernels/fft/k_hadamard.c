/* k_hadamard.c: the fast Walsh-Hadamard transform, n log2 n additions a column, in place, for 13
 * dtypes. Integers wrap as the dense product does; error of floats at most log2(n) u |H| |x|. */
#include "kernels/common/k_clones.h"
#include "k_transforms.h"
#include "kernels/common/kernels.h"

#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3")
#endif

typedef void (*hadamard_fn)(const lop_mat *y);

#define LOPK_TEMPLATE "kernels/fft/k_hadamard_per_dtype.h"
#include "kernels/common/k_each.h"

static const hadamard_fn table[LOP_NDTYPE] = {
#define LOP_DTYPE(name, ctype, npname, family, bytes, real) [LOP_##name] = hadamard_##name,
#include "base/dtype.def"
#undef LOP_DTYPE
};

void lopk_hadamard(const lop_mat *y, const lop_mat *x) {
    LOP_ASSERT(y->dt == x->dt && y->m == x->m && y->n == x->n);
    if (y->p != x->p) lopk_copy(y, x);
    table[y->dt](y);
}
