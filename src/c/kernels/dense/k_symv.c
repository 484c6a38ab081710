/* k_symv.c: y = A x by the upper triangle of a symmetric or Hermitian A, in one pass over it: each
 * element serves two elements of y, those of its row and of its column. Four lines at a time, so
 * that what the pass reads and writes besides is a quarter. Cost: 2 n^2 flops, n^2 / 2 elements
 * read. A triangle that lies by columns is read by its columns: the same loops from the other end.
 * Complex: the products by real parts and by imaginary parts apart, joined at the end. */
#include "blas_layout.h"
#include "k_blas.h"
#include "k_small_gemm.h"
#include "kernels/common/k_clones.h"

#include <string.h>

#define INLINE inline __attribute__((always_inline))
#if defined(__GNUC__) && !defined(__clang__)
#define UNROLL _Pragma("GCC unroll 4")
#ifdef __OPTIMIZE__
#pragma GCC optimize("O3", "fp-contract=fast")
#endif
#else
#define UNROLL
#endif

/* y = op(A) x of 1, 2 or 4 columns; strides in scalars, columns `apart`. */
typedef void (*symv_loop)(void *y, const void *a, int64_t n, int64_t ld, bool rows, const void *x,
                          int64_t apart, bool adjoint, bool conj);

#define PER_ISA "kernels/dense/k_symv_per_isa.h"
#include "kernels/common/k_each_isa.h"

static const symv_loop *loops_of(lop_dtype dt) {
    const int i = dt == LOP_f32 ? 0 : dt == LOP_f64 ? 1 : dt == LOP_c64 ? 2 : 3;
#ifdef HAVE_WIDE
    const int64_t w = lopk_thin_width(LOP_f64);
    if (w == 8) return loops_avx512[i];
    if (w == 4) return loops_avx2[i];
#endif
    return loops_base[i];
}

bool lopk_symv(const lop_mat *y, const lop_mat *a, bool adjoint, bool conj, const lop_mat *x) {
    LOP_ASSERT(a->m == a->n && y->m == a->m && x->m == a->n && y->n == x->n);
    const bool rows = a->cs == 1, cols = a->rs == 1;
    if (!(rows || cols) || (y->m > 1 && (y->rs != 1 || x->rs != 1)) || (y->n > 1 && y->cs != x->cs))
        return false;
    const symv_loop *f = loops_of(y->dt);
    const int64_t part = lop_is_complex(y->dt) ? 2 : 1, size = size_of(y->dt), n = a->m,
                  ld = (rows ? a->rs : a->cs) * part, apart = y->cs * part;
    for (int64_t j = 0, k; j < y->n; j += k) {
        const int i = !f[1] || y->n - j < 2 ? 0 : y->n - j < 4 ? 1 : 2;
        k = (int64_t)1 << i;
        f[i]((char *)y->p + j * y->cs * size, a->p, n, ld, rows, (char *)x->p + j * x->cs * size,
             apart, adjoint, conj);
    }
    return true;
}
