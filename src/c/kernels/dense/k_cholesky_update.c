/* k_cholesky_update.c: see k_cholesky_update.h.
 *
 * Up: unitary rotations of the columns of (L, v) take v to zero, one column after the other (Gill,
 * Golub, Murray and Saunders 1974, Methods for modifying matrix factorizations). Down: with
 * p = L^-1 v and r^2 = 1 - |p|^2, the rotations that take (p, r) to a unit vector, from the last
 * column to the first, take (L, 0) to (the new L, v): LINPACK's chdd, which only needs r^2 > 0 and
 * is as stable as the problem lets it be (Stewart 1979, The effects of rounding error on an
 * algorithm for downdating a Cholesky factorization). Both run along columns, so that they
 * vectorise. */
#include "k_cholesky_update.h"

#include "kernels/band/k_band.h"
#include "kernels/common/k_clones.h"
#include "kernels/common/kernels.h"

#include <math.h>

/* Diagonals below the main one up to which the own loops are ahead of LAPACK's blocks (2026-11, an
 * AMD EPYC, n = 20,000 in float64: 0.5 of dpbtrf's time for 5, 0.3 for 24). */
enum { NARROW = 24 };

#define LOPK_TEMPLATE "kernels/dense/k_cholesky_update_per_dtype.h"
#include "kernels/common/k_each.h"

#define BY_FLOAT(dt, f, ...)                                                                       \
    ((dt) == LOP_f32   ? f##_f32(__VA_ARGS__)                                                      \
     : (dt) == LOP_f64 ? f##_f64(__VA_ARGS__)                                                      \
     : (dt) == LOP_c64 ? f##_c64(__VA_ARGS__)                                                      \
                       : f##_c128(__VA_ARGS__))

lop_status lopk_cholup(const lop_mat *a, void *v, bool down, void *work, int64_t *info) {
    LOP_ASSERT(a->m == a->n && a->rs == 1 && lop_is_blas(a->dt));
    *info = down ? BY_FLOAT(a->dt, chol_down, a->n, a->p, a->cs, v, work)
                 : BY_FLOAT(a->dt, chol_up, a->n, a->p, a->cs, v);
    return *info == 0 ? LOP_OK : LOP_SINGULAR;
}

lop_status lopk_band_cholesky(const lop_mat *ab, int64_t *info) {
    LOP_ASSERT(ab->m > 0 && ab->rs == 1 && lop_is_blas(ab->dt));
    if (ab->m - 1 > NARROW) return lopk_pbtrf(ab, 'L', info);
    *info = BY_FLOAT(ab->dt, band_chol, ab->n, ab->m - 1, ab->p, ab->cs);
    return *info == 0 ? LOP_OK : LOP_SINGULAR;
}
