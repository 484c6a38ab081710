/* k_band_lapack.c: band factors and solves by LAPACK, column-major, through LAPACKE_*_work, which
 * never copies or allocates. Sizes that the library's integers do not hold are refused. */
#include "kernels/dense/blas_table.h"
#include "k_band.h"

#define BY_DTYPE(dt, S, D, C, Z)                                                                   \
    ((dt) == LOP_f32 ? (S) : (dt) == LOP_f64 ? (D) : (dt) == LOP_c64 ? (C) : (Z))
#define CALL(dt, f, ...)                                                                           \
    BY_DTYPE(dt, LAPACK(LAPACKE_s##f##_work)(LAPACK_COL_MAJOR, __VA_ARGS__),                       \
             LAPACK(LAPACKE_d##f##_work)(LAPACK_COL_MAJOR, __VA_ARGS__),                           \
             LAPACK(LAPACKE_c##f##_work)(LAPACK_COL_MAJOR, __VA_ARGS__),                           \
             LAPACK(LAPACKE_z##f##_work)(LAPACK_COL_MAJOR, __VA_ARGS__))

static bool fits(const lop_mat *a) {
    return lop_blas_fits(a->m) && lop_blas_fits(a->n) && lop_blas_fits(a->rs) &&
           lop_blas_fits(a->cs);
}
static int64_t ld(const lop_mat *b) { return b->n > 1 ? b->cs : b->m > 1 ? b->m : 1; }

static lop_status status_of(int64_t info, int64_t *out) {
    if (out) *out = info;
    return info == 0 ? LOP_OK : info > 0 ? LOP_SINGULAR : lop_blas_status(info);
}

lop_status lopk_gbtrf(const lop_mat *ab, int64_t l, int64_t u, int64_t *ipiv, int64_t *info) {
    *info = 0;
    if (ab->n == 0) return LOP_OK;
    if (!fits(ab)) return LOP_OVERFLOW;
    const int64_t n = ab->n;
    return status_of(CALL(ab->dt, gbtrf, n, n, l, u, ab->p, ab->m, ipiv), info);
}
lop_status lopk_gbtrs(const lop_mat *ab, int64_t l, int64_t u, const int64_t *ipiv, char trans,
                      const lop_mat *b) {
    if (b->m == 0 || b->n == 0) return LOP_OK;
    if (!fits(ab) || !fits(b)) return LOP_OVERFLOW;
    return status_of(CALL(ab->dt, gbtrs, trans, b->m, l, u, b->n, ab->p, ab->m, ipiv, b->p, ld(b)),
                     NULL);
}
lop_status lopk_pbtrf(const lop_mat *ab, char uplo, int64_t *info) {
    *info = 0;
    if (ab->n == 0) return LOP_OK;
    if (!fits(ab)) return LOP_OVERFLOW;
    return status_of(CALL(ab->dt, pbtrf, uplo, ab->n, ab->m - 1, ab->p, ab->m), info);
}
lop_status lopk_pbtrs(const lop_mat *ab, const lop_mat *b) {
    if (b->m == 0 || b->n == 0) return LOP_OK;
    if (!fits(ab) || !fits(b)) return LOP_OVERFLOW;
    return status_of(CALL(ab->dt, pbtrs, 'U', b->m, ab->m - 1, b->n, ab->p, ab->m, b->p, ld(b)),
                     NULL);
}

lop_status lopk_sterf(int64_t n, double *d, double *e) {
    if (n == 0) return LOP_OK;
    if (!lop_blas_fits(n)) return LOP_OVERFLOW;
    return status_of(LAPACK(LAPACKE_dsterf_work)(n, d, e), NULL);
}

/* By gbbrd to a bidiagonal matrix, whose values bdsqr finds without vectors (Fernando and Parlett
 * 1994, dqds). */
lop_status lopk_gbsvd(const lop_mat *ab, int64_t l, int64_t u, void *d, void *work, int64_t *info) {
    enum { COL = LAPACK_COL_MAJOR };
    const int64_t n = ab->n, ld = ab->m;
    const bool single = ab->dt == LOP_f32 || ab->dt == LOP_c64;
    *info = 0;
    if (ab->n == 0) return LOP_OK;
    if (!fits(ab) || !lop_blas_fits(n) || n > INT64_MAX / 64 || !lop_blas_fits(8 * n))
        return LOP_OVERFLOW;
    float *fd = d, *fe = work, *fw = fe + n;
    double *dd = d, *de = work, *dw = de + n;
    lop_status st =
        status_of(BY_DTYPE(ab->dt,
                           LAPACK(LAPACKE_sgbbrd_work)(COL, 'N', n, n, 0, l, u, ab->p, ld, fd, fe,
                                                       NULL, 1, NULL, 1, NULL, 1, fw),
                           LAPACK(LAPACKE_dgbbrd_work)(COL, 'N', n, n, 0, l, u, ab->p, ld, dd, de,
                                                       NULL, 1, NULL, 1, NULL, 1, dw),
                           LAPACK(LAPACKE_cgbbrd_work)(COL, 'N', n, n, 0, l, u, ab->p, ld, fd, fe,
                                                       NULL, 1, NULL, 1, NULL, 1, fw, fw + 2 * n),
                           LAPACK(LAPACKE_zgbbrd_work)(COL, 'N', n, n, 0, l, u, ab->p, ld, dd, de,
                                                       NULL, 1, NULL, 1, NULL, 1, dw, dw + 2 * n)),
                  info);
    if (st != LOP_OK) return st;
    return status_of(single ? LAPACK(LAPACKE_sbdsqr_work)(COL, 'U', n, 0, 0, 0, fd, fe, NULL, 1,
                                                          NULL, 1, NULL, 1, fw)
                            : LAPACK(LAPACKE_dbdsqr_work)(COL, 'U', n, 0, 0, 0, dd, de, NULL, 1,
                                                          NULL, 1, NULL, 1, dw),
                     info);
}
