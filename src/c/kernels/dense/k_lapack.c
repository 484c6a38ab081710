/* k_lapack.c: factors, solves with them and estimates of condition by LAPACK (blas_table.h).
 *
 * potrf n^3 / 3 flops (4 n^3 / 3 when complex), getrf 2 n^3 / 3, a solve 2 n^2 a column. All
 * matrices are column-major, and LAPACKE_*_work is called, which then copies and allocates nothing.
 * Where the library's integers have 32 bits, calls of larger sizes are refused (LOP_OVERFLOW). */
#include "blas_layout.h"
#include "blas_table.h"
#include "k_blas.h"

#include <complex.h>
#include <math.h>
#include <string.h>

/* LAPACK's info: positive is for the caller to read. */
static lop_status status_of(int64_t info, int64_t *out) {
    if (out) *out = info;
    return info == 0 ? LOP_OK : info > 0 ? LOP_SINGULAR : lop_blas_status(info);
}

/* One LAPACKE call for four dtypes; each expands to the call with its letter. */
#define BY_DTYPE(dt, S, D, C, Z)                                                                   \
    ((dt) == LOP_f32 ? (S) : (dt) == LOP_f64 ? (D) : (dt) == LOP_c64 ? (C) : (Z))

enum { PANELS = 8, LEAST_PANEL = 64 };

static void exchange(char *a, char *b, size_t size) {
    char t[256];
    for (size_t done = 0; done < size; done += sizeof t) {
        const size_t some = size - done < sizeof t ? size - done : sizeof t;
        memcpy(t, a + done, some);
        memcpy(a + done, b + done, some);
        memcpy(b + done, t, some);
    }
}

lop_status lopk_potrf_whole(const lop_mat *a, int64_t *info) {
    LOP_ASSERT(a->m == a->n && lop_is_blas(a->dt));
    *info = 0;
    if (a->n == 0) return LOP_OK;
    if (!fits(a) || !is_col(a)) return fits(a) ? LOP_INTERNAL : LOP_OVERFLOW;
    const int64_t n = a->n, ld = ld_col(a);
    return status_of(BY_DTYPE(a->dt, BLAS(LAPACKE_spotrf_work)(LAPACK_COL_MAJOR, 'L', n, a->p, ld),
                              BLAS(LAPACKE_dpotrf_work)(LAPACK_COL_MAJOR, 'L', n, a->p, ld),
                              BLAS(LAPACKE_cpotrf_work)(LAPACK_COL_MAJOR, 'L', n, a->p, ld),
                              BLAS(LAPACKE_zpotrf_work)(LAPACK_COL_MAJOR, 'L', n, a->p, ld)),
                     info);
}

lop_status lopk_potrs(const lop_mat *a, const lop_mat *b) {
    const lop_status st = lopk_trsm(a, true, false, 'N', b);
    return st == LOP_OK ? lopk_trsm(a, true, false, 'C', b) : st;
}

lop_status lopk_potri(const lop_mat *a, int64_t *info) {
    LOP_ASSERT(a->m == a->n);
    *info = 0;
    if (a->n == 0) return LOP_OK;
    if (!fits(a) || !is_col(a)) return fits(a) ? LOP_INTERNAL : LOP_OVERFLOW;
    const int64_t n = a->n, ld = ld_col(a);
    lop_status st =
        status_of(BY_DTYPE(a->dt, BLAS(LAPACKE_spotri_work)(LAPACK_COL_MAJOR, 'L', n, a->p, ld),
                           BLAS(LAPACKE_dpotri_work)(LAPACK_COL_MAJOR, 'L', n, a->p, ld),
                           BLAS(LAPACKE_cpotri_work)(LAPACK_COL_MAJOR, 'L', n, a->p, ld),
                           BLAS(LAPACKE_zpotri_work)(LAPACK_COL_MAJOR, 'L', n, a->p, ld)),
                  info);
    if (st == LOP_OK) lopk_mirror_triangle(a->p, n, 1, ld, a->dt, lop_is_complex(a->dt), false);
    return st;
}

/* By blocks of columns, of which those of L^-1 begin where the diagonal does: 4/3 n^3 flops and
 * some more, as by getri. That has X A near to I, row by row; here each column of X is a solution.
 */
lop_status lopk_inverse_of_lu(const lop_mat *lu, const int64_t *ipiv, const lop_mat *x) {
    LOP_ASSERT(lu->m == lu->n && x->m == lu->n && x->n == lu->n && x->dt == lu->dt);
    const int64_t n = lu->n, panel = n / PANELS > LEAST_PANEL ? n / PANELS : LEAST_PANEL;
    const size_t size = lop_dtype_size(x->dt), column = (size_t)x->cs * size;
    char *p = x->p;
    lop_status st = LOP_OK;
    if (!is_col(lu) || !is_col(x)) return LOP_INTERNAL;
    if (lopk_diag_has_zero(lu) >= 0) return LOP_SINGULAR;
    for (int64_t j = 0; j < n; j++) {
        memset(p + (size_t)j * column, 0, (size_t)n * size);
        lop_set(x->dt, x->p, j * (x->rs + x->cs), 1);
    }
    for (int64_t j = 0; st == LOP_OK && j < n; j += panel) {
        const int64_t more = n - j < panel ? n - j : panel;
        const lop_mat l = {(char *)lu->p + (size_t)(j * (lu->rs + lu->cs)) * size,
                           n - j,
                           n - j,
                           lu->rs,
                           lu->cs,
                           lu->dt},
                      y = {(char *)x->p + (size_t)(j * (x->rs + x->cs)) * size,
                           n - j,
                           more,
                           x->rs,
                           x->cs,
                           x->dt};
        st = lopk_trsm(&l, true, true, 'N', &y);
    }
    if (st == LOP_OK && lopk_diag_is_tiny(lu))
        lopk_substitute(lu, false, 'N', x);
    else if (st == LOP_OK)
        st = lopk_trsm(lu, false, false, 'N', x);
    for (int64_t j = n - 1; st == LOP_OK && j >= 0; j--)
        if (ipiv[j] - 1 != j)
            exchange(p + (size_t)j * column, p + (size_t)(ipiv[j] - 1) * column, (size_t)n * size);
    return st;
}

lop_status lopk_getrf(const lop_mat *a, int64_t *ipiv, int64_t *info) {
    *info = 0;
    if (!fits(a) || !is_col(a)) return fits(a) ? LOP_INTERNAL : LOP_OVERFLOW;
    if (a->m == 0 || a->n == 0) return LOP_OK;
    const int64_t m = a->m, n = a->n, ld = ld_col(a);
    return status_of(BY_DTYPE(a->dt,
                              BLAS(LAPACKE_sgetrf_work)(LAPACK_COL_MAJOR, m, n, a->p, ld, ipiv),
                              BLAS(LAPACKE_dgetrf_work)(LAPACK_COL_MAJOR, m, n, a->p, ld, ipiv),
                              BLAS(LAPACKE_cgetrf_work)(LAPACK_COL_MAJOR, m, n, a->p, ld, ipiv),
                              BLAS(LAPACKE_zgetrf_work)(LAPACK_COL_MAJOR, m, n, a->p, ld, ipiv)),
                     info);
}

/* Rows i and ipiv[i] of column-major b exchanged, one after the other or, `back`, the last first.
 */
#define EXCHANGE(T)                                                                                \
    for (int64_t j = 0; j < b->n; j++) {                                                           \
        T *x = (T *)b->p + j * b->cs;                                                              \
        for (int64_t t = 0; t < b->m; t++) {                                                       \
            const int64_t i = back ? b->m - 1 - t : t, to = ipiv[i] - 1;                           \
            const T v = x[i];                                                                      \
            x[i] = x[to];                                                                          \
            x[to] = v;                                                                             \
        }                                                                                          \
    }
static void exchange_rows(const lop_mat *b, const int64_t *ipiv, bool back) {
    switch (b->dt) {
    case LOP_f32: EXCHANGE(float) break;
    case LOP_f64: EXCHANGE(double) break;
    case LOP_c64: EXCHANGE(float _Complex) break;
    default: EXCHANGE(double _Complex)
    }
}
#undef EXCHANGE

/* Of several columns by trsm: OpenBLAS's getrs wakes all threads for 16 rows and 4 columns too
 * (0.3.31), which costs more than a thousand such solves where the CPUs are busy. */
static lop_status getrs_columns(const lop_mat *a, const int64_t *ipiv, char trans,
                                const lop_mat *b) {
    const bool plain = trans == 'N', tiny = lopk_diag_is_tiny(a); /* U's pivots */
    lop_status st = LOP_OK;
    if (plain) exchange_rows(b, ipiv, false);
    for (int i = 0; st == LOP_OK && i < 2; i++) {
        const bool lower = plain == (i == 0);
        if (tiny && !lower)
            lopk_substitute(a, lower, trans, b);
        else
            st = lopk_trsm(a, lower, lower, trans, b);
    }
    if (st == LOP_OK && !plain) exchange_rows(b, ipiv, true);
    return st;
}

lop_status lopk_getrs(const lop_mat *a, const int64_t *ipiv, char trans, const lop_mat *b) {
    LOP_ASSERT(a->m == a->n && a->n == b->m && a->dt == b->dt);
    if (b->m == 0 || b->n == 0) return LOP_OK;
    if (!fits(a) || !fits(b)) return LOP_OVERFLOW;
    if (!is_col(a) || !is_col(b)) return LOP_INTERNAL;
    if (b->n > 1 || lopk_diag_is_tiny(a)) return getrs_columns(a, ipiv, trans, b);
    const int64_t n = a->n, k = b->n, ld = ld_col(a), ldb = ld_col(b);
    return status_of(
        BY_DTYPE(
            a->dt,
            BLAS(LAPACKE_sgetrs_work)(LAPACK_COL_MAJOR, trans, n, k, a->p, ld, ipiv, b->p, ldb),
            BLAS(LAPACKE_dgetrs_work)(LAPACK_COL_MAJOR, trans, n, k, a->p, ld, ipiv, b->p, ldb),
            BLAS(LAPACKE_cgetrs_work)(LAPACK_COL_MAJOR, trans, n, k, a->p, ld, ipiv, b->p, ldb),
            BLAS(LAPACKE_zgetrs_work)(LAPACK_COL_MAJOR, trans, n, k, a->p, ld, ipiv, b->p, ldb)),
        NULL);
}

static inline double _Complex element(const lop_mat *a, int64_t i, int64_t j) {
    const int64_t at = i * a->rs + j * a->cs;
    switch (a->dt) {
    case LOP_f32: return (double)((const float *)a->p)[at];
    case LOP_f64: return ((const double *)a->p)[at];
    case LOP_c64: return ((const float _Complex *)a->p)[at];
    default: return ((const double _Complex *)a->p)[at];
    }
}

int64_t lopk_diag_has_zero(const lop_mat *a) {
    for (int64_t i = 0; i < min_of(a->m, a->n); i++) {
        const double _Complex v = element(a, i, i);
        if (creal(v) == 0 && cimag(v) == 0) return i;
    }
    return -1;
}

double lopk_norm1(char uplo, const lop_mat *a) {
    double best = 0;
    for (int64_t j = 0; j < a->n; j++) {
        double s = 0;
        for (int64_t i = 0; i < a->m; i++) {
            const bool mirror = (uplo == 'L' && i < j) || (uplo == 'U' && i > j);
            const double _Complex v = mirror ? element(a, j, i) : element(a, i, j);
            s += lop_is_complex(a->dt) ? hypot(creal(v), cimag(v)) : fabs(creal(v));
        }
        if (!(s <= best)) best = s; /* NaN sticks: no comparison with it holds */
        if (best != best) return best;
    }
    return best;
}

/* gecon's work is 4 n reals and n integers (real), 2 n complex and 2 n reals (complex); pocon's
 * less.
 */
size_t lopk_gecon_bytes(int64_t n, lop_dtype dt) {
    return (size_t)at_least_1(n) * (dt == LOP_f32 || dt == LOP_f64 ? 4 * (size_t)size_of(dt) + 8
                                                                   : 3 * (size_t)size_of(dt)) +
           64;
}

static lop_status con(bool chol, const lop_mat *a, double anorm, double *rcond, void *work) {
    LOP_ASSERT(a->m == a->n);
    *rcond = 1;
    if (a->n == 0) return LOP_OK;
    if (!fits(a) || !is_col(a)) return fits(a) ? LOP_INTERNAL : LOP_OVERFLOW;
    const int64_t n = a->n, ld = ld_col(a);
    char *second = (char *)work + at_least_1(n) * size_of(a->dt) * (lop_is_complex(a->dt) ? 2 : 4);
    float rs = 0;
    double rd = 0;
    int64_t info = 0;
    const float fn = (float)anorm;
#define CON(letter, norm, r)                                                                       \
    (chol ? BLAS(LAPACKE_##letter##pocon_work)(LAPACK_COL_MAJOR, 'L', n, a->p, ld, norm, r, work,  \
                                               second)                                             \
          : BLAS(LAPACKE_##letter##gecon_work)(LAPACK_COL_MAJOR, '1', n, a->p, ld, norm, r, work,  \
                                               second))
    info =
        BY_DTYPE(a->dt, CON(s, fn, &rs), CON(d, anorm, &rd), CON(c, fn, &rs), CON(z, anorm, &rd));
#undef CON
    *rcond = a->dt == LOP_f32 || a->dt == LOP_c64 ? (double)rs : rd;
    return info < 0 && anorm == anorm ? LOP_INTERNAL : LOP_OK; /* NaN in: info < 0, rcond 0 */
}

lop_status lopk_gecon(const lop_mat *a, double anorm, double *rcond, void *work) {
    return con(false, a, anorm, rcond, work);
}
lop_status lopk_pocon(const lop_mat *a, double anorm, double *rcond, void *work) {
    return con(true, a, anorm, rcond, work);
}
