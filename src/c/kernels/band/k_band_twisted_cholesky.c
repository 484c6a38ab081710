/* k_band_twisted_cholesky.c: solves with Hermitian positive definite bands, for the four float
 * dtypes.
 *
 * L D L^H from both ends at once ("twisted"; Golub and Van Loan, Matrix Computations, 4.3; Meurant
 * 1992, A review on the inverse of symmetric tridiagonal and block tridiagonal matrices): each end
 * eliminates its rows until w rows are left in the middle, which have both ends' updates. That is
 * Cholesky of a permuted matrix, as stable as from one end, and its two chains of dependent
 * divisions run side by side; the first right-hand side is eliminated with the matrix, in the
 * divisions' shadow. Up to LOPK_TWIST_MAX diagonals above the main one the rows at work are kept in
 * registers. Cost: n (w^2 + 4 w + 4) flops for the first column, 4 n w for each further one. */
#include "k_band.h"

#include "kernels/common/k_clones.h"
#include "kernels/common/kernels.h"

enum { LOPK_TWIST_MAX = 6 };

#if defined(__GNUC__)
#define ALWAYS static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")
#else
#define ALWAYS static inline
#define UNROLL
#endif

#define LOPK_TEMPLATE "kernels/band/k_band_twisted_cholesky_per_dtype.h"
#include "kernels/common/k_each.h"

#define BY_FLOAT(dt, f, ...)                                                                       \
    ((dt) == LOP_f32   ? f##_f32(__VA_ARGS__)                                                      \
     : (dt) == LOP_f64 ? f##_f64(__VA_ARGS__)                                                      \
     : (dt) == LOP_c64 ? f##_c64(__VA_ARGS__)                                                      \
                       : f##_c128(__VA_ARGS__))

/* No step may be taken where there is no right-hand side: the first is eliminated on the way. */
lop_status lopk_ptsv(const lop_mat *d, const lop_mat *e, bool conj_e, void *work, const lop_mat *b,
                     int64_t *where) {
    LOP_ASSERT(lop_is_blas(b->dt) && b->dt == d->dt && b->m == d->m);
    *where = b->m > 0 && b->n > 0 ? BY_FLOAT(b->dt, ptsv, d, e, conj_e, work, b) : -1;
    return *where < 0 ? LOP_OK : LOP_SINGULAR;
}

lop_status lopk_pbsv(const lop_mat *ab, bool conj_a, void *work, const lop_mat *b, int64_t *where) {
    LOP_ASSERT(lop_is_blas(b->dt) && b->dt == ab->dt && b->m == ab->n);
    *where = b->m > 0 && b->n > 0 ? BY_FLOAT(b->dt, pbsv, ab, conj_a, work, b) : -1;
    return *where < 0 ? LOP_OK : LOP_SINGULAR;
}

void lopk_twist_range(const void *work, int64_t n, int64_t u, lop_dtype dt, double *least,
                      double *most) {
    double low = 1, high = 1; /* of the reciprocals */
    if (n > 0) BY_FLOAT(dt, twist_range, n, u + 1, work, &low, &high);
    *least = 1 / high;
    *most = 1 / low;
}
