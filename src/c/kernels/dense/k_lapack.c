/* k_lapack.c: factors, solves with them and estimates of condition by LAPACK (blas_table.h).
 *
 * potrf n^3 / 3 flops (4 n^3 / 3 when complex), getrf 2 n^3 / 3, a solve 2 n^2 a column. All
 * matrices are column-major, and LAPACKE_*_work is called, which then copies and allocates nothing.
 * Where the library's integers have 32 bits, calls of larger sizes are refused (LOP_OVERFLOW). */
#include "blas_layout.h"
#include "blas_table.h"
#include "k_blas.h"
#include "k_small_lu.h"

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

enum { PANELS = 8, LEAST_PANEL = 64, NARROW = 7 };

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

/* OpenBLAS 0.3.31 wakes the others for potrf from 48 (complex) and 112 rows on, for getrf from 64
 * and 144 on, ten times and more a call. In blocks only their products do: two threads over one at
 * 500 and 700 rows of float64 take 0.76 and 0.69 for Cholesky, LAPACK's 0.88 and 1.22; for LU 0.73
 * and 0.65, LAPACK's 0.97 and 1.13; from 1000 rows on they are alike (2026-11, 2 CPUs;
 * benchmarks/RESULTS_two_against_one.md). */
bool lopk_goes_by_blocks(const lop_mat *a) {
    const int64_t from = lop_is_complex(a->dt) ? 48 : 112;
    return a->m == a->n && a->n > from && a->n <= 768 && lopk_threads() > 1;
}
/* 160 to 400 rows take 1.13 to 1.15 of LAPACK's time on one thread for Cholesky, 0.97 to 1 for LU.
 * LAPACK's own on two threads takes 0.93 to 2.06 of it, changing from run to run, and five to ten
 * times it beside other work. Complex: up to where getrf of a block's columns is alone. */
bool lopk_goes_alone(const lop_mat *a) { return a->n <= (lop_is_complex(a->dt) ? 312 : 448); }

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

/* A triangle, and how it is seen: op(a), trans 'N', 'T' or 'C', is lower. */
typedef struct seen_lower {
    const lop_mat *a;
    bool unit, tiny; /* tiny: pivots of which BLAS's reciprocals overflow */
    char trans;
} seen_lower;

/* x <- op(a)^-1, zeros above, by blocks of columns, which begin where the diagonal does. */
static lop_status inverse_of_lower(const seen_lower *of, int64_t panel, const lop_mat *x) {
    const lop_mat *a = of->a;
    const size_t size = lop_dtype_size(x->dt), column = (size_t)x->cs * size;
    const int64_t n = a->n;
    const bool lower = of->trans == 'N';
    char *p = x->p;
    lop_status st = LOP_OK;
    for (int64_t j = 0; j < n; j++) {
        memset(p + (size_t)j * column, 0, (size_t)n * size);
        lop_set(x->dt, x->p, j * (x->rs + x->cs), 1);
    }
    for (int64_t j = 0; st == LOP_OK && j < n; j += panel) {
        const int64_t more = n - j < panel ? n - j : panel;
        const lop_mat l = {(char *)a->p + (size_t)(j * (a->rs + a->cs)) * size,
                           n - j,
                           n - j,
                           a->rs,
                           a->cs,
                           a->dt},
                      y = {p + (size_t)(j * (x->rs + x->cs)) * size,
                           n - j,
                           more,
                           x->rs,
                           x->cs,
                           x->dt};
        if (of->tiny)
            lopk_substitute(&l, lower, of->trans, &y);
        else
            st = lopk_trsm(&l, lower, of->unit, of->trans, &y);
    }
    return st;
}

/* L^-1 by its rows, X L = I, so that X^H X inverts from both sides: of columns, L X = I, the rest
 * X L - I may be as large as |L| |L^-1| squared, and so is that of the inverse (2026-11: 5e-2 for
 * 5e-6 at a condition of 1e10; Du Croz and Higham, IMA J. Numer. Anal. 12, 1992, section 2). X^T
 * lies in x, upper. */
lop_status lopk_inverse_of_cholesky(const lop_mat *low, const lop_mat *x, const lop_mat *y) {
    LOP_ASSERT(low->m == low->n && x->m == low->n && x->n == low->n && x->dt == low->dt);
    if (!is_col(low) || !is_col(x)) return LOP_INTERNAL;
    const int64_t n = low->n;
    const size_t size = lop_dtype_size(x->dt), column = (size_t)x->cs * size;
    const lop_mat rows = {x->p, n, n, x->cs, x->rs, x->dt};
    lop_status st = LOP_OK;
    for (int64_t j = 0; j < n; j++) {
        memset((char *)x->p + (size_t)j * column, 0, (size_t)n * size);
        lop_set(x->dt, x->p, j * (x->rs + x->cs), 1);
    }
    for (int64_t j = 0; st == LOP_OK && j < n; j += NARROW) {
        const int64_t more = n - j < NARROW ? n - j : NARROW, to = j + more;
        const lop_mat l = {low->p, to, to, low->rs, low->cs, low->dt},
                      z = {(char *)x->p + (size_t)j * column, to, more, x->rs, x->cs, x->dt};
        st = lopk_trsm(&l, true, false, 'T', &z);
    }
    if (st == LOP_OK) lopk_gram_triangle(y, &rows, true, true);
    return st;
}

static lop_status getrf_whole(const lop_mat *a, int64_t *ipiv, int64_t *info) {
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

/* The first `n` rows i of column-major b exchanged with ipiv[i], one after the other or, `back`,
 * the last first. */
#define EXCHANGE(T)                                                                                \
    for (int64_t j = 0; j < b->n; j++) {                                                           \
        T *x = (T *)b->p + j * b->cs;                                                              \
        for (int64_t t = 0; t < n; t++) {                                                          \
            const int64_t i = back ? n - 1 - t : t, to = ipiv[i] - 1;                              \
            const T v = x[i];                                                                      \
            x[i] = x[to];                                                                          \
            x[to] = v;                                                                             \
        }                                                                                          \
    }
static void exchange_rows(const lop_mat *b, const int64_t *ipiv, int64_t n, bool back) {
    switch (b->dt) {
    case LOP_f32: EXCHANGE(float) break;
    case LOP_f64: EXCHANGE(double) break;
    case LOP_c64: EXCHANGE(float _Complex) break;
    default: EXCHANGE(double _Complex)
    }
}
#undef EXCHANGE

static lop_mat block(const lop_mat *a, int64_t i, int64_t j, int64_t m, int64_t n) {
    char *p = (char *)a->p + (i * a->rs + j * a->cs) * (int64_t)lop_dtype_size(a->dt);
    return (lop_mat){p, m, n, a->rs, a->cs, a->dt};
}

/* Block columns of a square matrix, one after the other. */
static lop_status getrf_by_blocks(const lop_mat *a, int64_t *ipiv, int64_t *info) {
    const int64_t n = a->n;
    const bool alone = lopk_goes_alone(a);
    for (int64_t j = 0; j < n; j += lopk_lone_block) {
        const int64_t w = n - j < lopk_lone_block ? n - j : lopk_lone_block, rest = n - j - w;
        const lop_mat panel = block(a, j, j, n - j, w), corner = block(a, j, j, w, w),
                      left = block(a, j, 0, n - j, j), right = block(a, j, j + w, n - j, rest),
                      top = block(a, j, j + w, w, rest), low = block(a, j + w, j, rest, w),
                      next = block(a, j + w, j + w, rest, rest);
        int64_t where = 0;
        lop_status st = getrf_whole(&panel, ipiv + j, &where);
        if (st != LOP_OK && st != LOP_SINGULAR) return st;
        if (where && !*info) *info = j + where;
        exchange_rows(&left, ipiv + j, w, false);
        exchange_rows(&right, ipiv + j, w, false);
        for (int64_t i = j; i < j + w; i++) ipiv[i] += j;
        if (rest == 0) break;
        st = alone ? lopk_trsm_alone(&corner, true, true, 'N', &top)
                   : lopk_trsm(&corner, true, true, 'N', &top);
        if (st != LOP_OK) return st;
        if (alone)
            lopk_gemm_less_alone(&next, &low, &top);
        else if (!lopk_gemm_add(&next, -1, &low, false, &top))
            return LOP_INTERNAL;
    }
    return *info ? LOP_SINGULAR : LOP_OK;
}

lop_status lopk_getrf(const lop_mat *a, int64_t *ipiv, int64_t *info) {
    *info = 0;
    if (lopk_small_getrf(a, ipiv)) return LOP_OK;
    if (lopk_goes_by_blocks(a) && is_col(a)) return getrf_by_blocks(a, ipiv, info);
    return getrf_whole(a, ipiv, info);
}

/* Of several columns by trsm: OpenBLAS's getrs wakes all threads for 16 rows and 4 columns too
 * (0.3.31), which costs more than a thousand such solves where the CPUs are busy. */
static lop_status getrs_columns(const lop_mat *a, const int64_t *ipiv, char trans,
                                const lop_mat *b) {
    const bool plain = trans == 'N', tiny = lopk_diag_is_tiny(a); /* U's pivots */
    lop_status st = LOP_OK;
    if (plain) exchange_rows(b, ipiv, b->m, false);
    for (int i = 0; st == LOP_OK && i < 2; i++) {
        const bool lower = plain == (i == 0);
        if (tiny && !lower)
            lopk_substitute(a, lower, trans, b);
        else
            st = lopk_trsm(a, lower, lower, trans, b);
    }
    if (st == LOP_OK && !plain) exchange_rows(b, ipiv, b->m, true);
    return st;
}

lop_status lopk_getrs(const lop_mat *a, const int64_t *ipiv, char trans, const lop_mat *b) {
    LOP_ASSERT(a->m == a->n && a->n == b->m && a->dt == b->dt);
    if (b->m == 0 || b->n == 0) return LOP_OK;
    if (!fits(a) || !fits(b)) return LOP_OVERFLOW;
    if (!is_col(a) || !is_col(b)) return LOP_INTERNAL;
    if (b->n > 1 || lopk_diag_is_tiny(a)) return getrs_columns(a, ipiv, trans, b);
    if (trans == 'N' && lopk_small_getrs(a, ipiv, b)) return LOP_OK;
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

/* 4/3 n^3 flops and some more, as by getri. That has X A near to I, row by row; here each column of
 * X is a solution. */
lop_status lopk_inverse_of_lu(const lop_mat *lu, const int64_t *ipiv, char trans,
                              const lop_mat *x) {
    LOP_ASSERT(lu->m == lu->n && x->m == lu->n && x->n == lu->n && x->dt == lu->dt);
    const int64_t n = lu->n, panel = n / PANELS > LEAST_PANEL ? n / PANELS : LEAST_PANEL;
    const size_t size = lop_dtype_size(x->dt), column = (size_t)x->cs * size;
    const bool plain = trans == 'N', tiny = lopk_diag_is_tiny(lu);
    char *p = x->p;
    if (!is_col(lu) || !is_col(x)) return LOP_INTERNAL;
    if (lopk_diag_has_zero(lu) >= 0) return LOP_SINGULAR;
    const seen_lower first = {lu, plain, tiny && !plain, trans};
    lop_status st = inverse_of_lower(&first, panel, x);
    if (st == LOP_OK && tiny && plain)
        lopk_substitute(lu, false, 'N', x);
    else if (st == LOP_OK)
        st = lopk_trsm(lu, !plain, !plain, trans, x);
    if (st == LOP_OK && !plain) exchange_rows(x, ipiv, n, true);
    for (int64_t j = n - 1; st == LOP_OK && plain && j >= 0; j--)
        if (ipiv[j] - 1 != j)
            exchange(p + (size_t)j * column, p + (size_t)(ipiv[j] - 1) * column, (size_t)n * size);
    return st;
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

#define FIRST_ZERO(T)                                                                              \
    for (int64_t i = 0; i < n; i++)                                                                \
        if (((const T *)a->p)[i * step] == 0) return i;
int64_t lopk_diag_has_zero(const lop_mat *a) {
    const int64_t n = min_of(a->m, a->n), step = a->rs + a->cs;
    if (a->dt == LOP_f64) {
        FIRST_ZERO(double)
        return -1;
    }
    if (a->dt == LOP_f32) {
        FIRST_ZERO(float)
        return -1;
    }
    for (int64_t i = 0; i < n; i++) {
        const double _Complex v = element(a, i, i);
        if (creal(v) == 0 && cimag(v) == 0) return i;
    }
    return -1;
}
#undef FIRST_ZERO

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
