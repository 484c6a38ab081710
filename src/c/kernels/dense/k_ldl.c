/* k_ldl.c: LAPACK's sytrf and hetrf, which choose pivots of order one and two (Bunch and Kaufman
 * 1977), and solves with their factor by blocks, in the form that sytrs_3 takes. Cost: n^3 / 3
 * flops, then 2 n^2 a column. */
#include "k_ldl.h"
#include "blas_table.h"
#include "k_blas.h"
#include "kernels/common/kernels.h"

#include <complex.h>

#define CALL(f, ...) LAPACK(LAPACKE_##f##_work)(LAPACK_COL_MAJOR, 'L', __VA_ARGS__)

enum { BLOCK = 64 };

int64_t lopk_ldl_work(int64_t n) { return n < INT64_MAX / BLOCK ? BLOCK * (n > 0 ? n : 1) : n; }

static bool fits(const lop_mat *a) {
    return lop_blas_fits(a->m) && lop_blas_fits(a->n) && lop_blas_fits(a->cs);
}

/* One call for each dtype, Hermitian or symmetric. */
#define BY_DTYPE(name, ...)                                                                        \
    (a->dt == LOP_f32   ? CALL(ssy##name, __VA_ARGS__)                                             \
     : a->dt == LOP_f64 ? CALL(dsy##name, __VA_ARGS__)                                             \
     : a->dt == LOP_c64                                                                            \
         ? (hermitian ? CALL(che##name, __VA_ARGS__) : CALL(csy##name, __VA_ARGS__))               \
     : hermitian ? CALL(zhe##name, __VA_ARGS__)                                                    \
                 : CALL(zsy##name, __VA_ARGS__))

/* The factor in the form that solves by blocks take: e beside the diagonal, the exchanges made in
 * the columns before them, one a row. */
static lop_status apart(const lop_mat *a, void *e, int64_t *ipiv) {
    const int64_t n = a->n, ld = a->cs;
    const int64_t info = a->dt == LOP_f32   ? CALL(ssyconv, 'C', n, a->p, ld, ipiv, e)
                         : a->dt == LOP_f64 ? CALL(dsyconv, 'C', n, a->p, ld, ipiv, e)
                         : a->dt == LOP_c64 ? CALL(csyconv, 'C', n, a->p, ld, ipiv, e)
                                            : CALL(zsyconv, 'C', n, a->p, ld, ipiv, e);
    for (int64_t k = 0; k < n; k++)
        if (ipiv[k] < 0) { /* a pivot of order two: its second row alone was exchanged */
            ipiv[k] = -(k + 1);
            k++;
        }
    return info == 0 ? LOP_OK : lop_blas_status(info);
}

bool lopk_ldl_is_tiny(const lop_mat *a, const void *e, const int64_t *ipiv) {
    if (!lopk_diag_is_tiny(a)) return false;
    for (int64_t k = 0; k < a->n; k++) { /* a zero on the diagonal of a block of two is none */
        const bool two = ipiv[k] < 0 && k + 1 < a->n;
        const size_t at = (size_t)(two ? k : k * (a->cs + 1)) * lop_dtype_size(a->dt);
        const char *p = two ? e : a->p;
        if (lopk_diag_is_tiny(&(lop_mat){(char *)(uintptr_t)p + at, 1, 1, 1, 1, a->dt}))
            return true;
        k += two;
    }
    return false;
}
static void exchange_rows(const lop_mat *b, int64_t i, int64_t j) {
    for (int64_t c = 0; i != j && c < b->n; c++) {
        const double _Complex v = lop_get(b->dt, b->p, i + c * b->cs);
        lop_set(b->dt, b->p, i + c * b->cs, lop_get(b->dt, b->p, j + c * b->cs));
        lop_set(b->dt, b->p, j + c * b->cs, v);
    }
}

lop_status lopk_ldl(const lop_mat *a, bool hermitian, void *e, int64_t *ipiv, void *work,
                    int64_t *info) {
    LOP_ASSERT(a->m == a->n && lop_is_blas(a->dt) && a->rs == 1);
    *info = 0;
    if (a->n == 0) return LOP_OK;
    if (!fits(a)) return LOP_OVERFLOW;
    const int64_t n = a->n, ld = a->cs, lwork = lopk_ldl_work(a->n);
    const int64_t found = BY_DTYPE(trf, n, a->p, ld, ipiv, work, lwork);
    if (found < 0) return LOP_INTERNAL;
    if (found == 0) return apart(a, e, ipiv);
    const double _Complex pivot = lop_get(a->dt, a->p, (found - 1) * (ld + 1));
    double bad = creal(pivot) + cimag(pivot);
    if (bad == bad) {
        *info = found;
        return LOP_OK;
    }
    /* a NaN stops the elimination: what follows would look like a result */
    lopk_copy(a, &(lop_mat){&bad, a->n, a->n, 0, 0, LOP_f64});
    return LOP_OK;
}

/* The steps of sytrs_3, which multiplies by the pivots' reciprocals, with divisions by them. */
static lop_status by_divisions(const lop_mat *a, bool hermitian, const void *e, const int64_t *ipiv,
                               const lop_mat *b) {
    for (int64_t k = 0; k < a->n; k++) exchange_rows(b, k, (ipiv[k] < 0 ? -ipiv[k] : ipiv[k]) - 1);
    lop_status st = lopk_trsm(a, true, true, 'N', b);
    if (st == LOP_OK) lopk_substitute_blocks(a, hermitian, e, ipiv, b);
    if (st == LOP_OK) st = lopk_trsm(a, true, true, hermitian ? 'C' : 'T', b);
    for (int64_t k = a->n - 1; k >= 0; k--)
        exchange_rows(b, k, (ipiv[k] < 0 ? -ipiv[k] : ipiv[k]) - 1);
    return st;
}

lop_status lopk_ldl_solve(const lop_mat *a, bool hermitian, const void *e, const int64_t *ipiv,
                          const lop_mat *b) {
    LOP_ASSERT(a->m == a->n && a->n == b->m && a->dt == b->dt && b->rs == 1);
    if (b->m == 0 || b->n == 0) return LOP_OK;
    if (!fits(a) || !fits(b)) return LOP_OVERFLOW;
    if (lopk_ldl_is_tiny(a, e, ipiv)) return by_divisions(a, hermitian, e, ipiv, b);
    const int64_t n = a->n, k = b->n, ld = a->cs, ldb = b->cs;
    const int64_t info = BY_DTYPE(trs_3, n, k, a->p, ld, e, ipiv, b->p, ldb);
    return info == 0 ? LOP_OK : lop_blas_status(info);
}
