/* k_weighted_gram.c: U^H diag(d)^-1 U for a tall U and a real d of any signs, and the squares of
 * U's columns, in one pass over U; and U^H diag(d) U.
 *
 * Rows are taken in panels that stay in the cache. Each row is divided by (or times) sqrt |d_i| on
 * its way into the panel, those of negative d_i to its other end: then the panel adds to one
 * triangle by syrk (herk) what the former have and takes away what the latter have. So 1 / d_i need
 * not be in range, each term is as accurate as one of a product, and what comes out is exactly
 * Hermitian. Where d is one number and 1 / d is in range, syrk reads U as it lies. Cost: n k^2
 * flops and one reading of U; nothing of U's size is written. */
#include "blas_layout.h"
#include "blas_table.h"
#include "k_blas.h"
#include "kernels/common/k_clones.h"
#include "kernels/common/kernels.h"

#include <complex.h>
#include <float.h>
#include <math.h>

/* Bytes. A core's second cache (2026-11, EPYC): with a quarter of it syrk wakes the other threads
 * four times as often, and two of them took 1.16 of one's time at 2000 x 200, now 0.88. */
enum { PANEL = 1 << 20 };

static int64_t panel_rows(int64_t m, int64_t k, lop_dtype dt) {
    const int64_t rows = PANEL / (at_least_1(k) * size_of(dt));
    return min_of(at_least_1(m), rows < 32 ? 32 : rows > 4096 ? 4096 : rows);
}
static size_t rounded(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

/* The panel; the squares of columns; of each row its factor and where it goes. */
size_t lopk_weighted_gram_scratch(int64_t m, int64_t k, lop_dtype dt) {
    const size_t rows = (size_t)panel_rows(m, k, dt), width = (size_t)at_least_1(k);
    return rounded(rows * width * (size_t)size_of(dt)) + rounded(2 * width * sizeof(double)) +
           rows * (sizeof(double) + sizeof(int64_t));
}

/* A row of n numbers, scaled; and m elements of `parts` numbers of a column, each scaled and put in
 * its place, `from_step` and `to_step` elements apart. Their squares are added up. */
#define SCALED(T)                                                                                  \
    LOPK_CLONES static void row_##T(T *restrict to, const T *restrict from, double by,             \
                                    double *restrict squares, int64_t n) {                         \
        for (int64_t j = 0; j < n; j++) {                                                          \
            const double v = (double)from[j];                                                      \
            to[j] = (T)(v * by);                                                                   \
            squares[j] += v * v;                                                                   \
        }                                                                                          \
    }                                                                                              \
    static void column_##T(T *restrict to, const T *restrict from, const int64_t *place,           \
                           const double *by, double *squares, int64_t parts, int64_t m,            \
                           int64_t from_step, int64_t to_step) {                                   \
        for (int64_t q = 0; q < parts; q++)                                                        \
            for (int64_t i = 0; i < m; i++) {                                                      \
                const double v = (double)from[i * from_step * parts + q];                          \
                to[place[i] * to_step * parts + q] = (T)(v * by[i]);                               \
                squares[q] += v * v;                                                               \
            }                                                                                      \
    }
SCALED(float)
SCALED(double)
#undef SCALED

/* 1 / d where all of d is one number whose reciprocal is in range (NaN is none), else 0. */
static double one_over(const lop_mat *d) {
    const bool single = d->dt == LOP_f32;
    const float *f = d->p;
    const double *g = d->p;
    if (d->m == 0) return 0;
    for (int64_t i = 1; i < d->m; i++)
        if (single ? f[i * d->rs] != f[0] : g[i * d->rs] != g[0]) return 0;
    const double v = 1 / (single ? (double)f[0] : g[0]), size = fabs(v);
    return size >= (single ? (double)FLT_MIN : DBL_MIN) &&
                   size <= (single ? (double)FLT_MAX : DBL_MAX)
               ? v
               : 0;
}

typedef struct panel {
    char *p;                  /* rows x k, in U's order */
    double *squares, *factor; /* 2 k; rows */
    int64_t *to, rows;
    bool col, upper; /* its order; which triangle of the result is made */
} panel;

/* Factors and places of the rows from i on: `over` ones of d > 0 first, the others at the end. */
static lop_status place_rows(const panel *w, const lop_mat *d, bool inverse, int64_t i, int64_t m,
                             int64_t *over, int64_t *under) {
    *over = *under = 0;
    for (int64_t r = 0; r < m; r++) {
        const int64_t at = (i + r) * d->rs;
        const double v =
            d->dt == LOP_f32 ? (double)((const float *)d->p)[at] : ((const double *)d->p)[at];
        if (inverse && v == 0) return LOP_SINGULAR;
        w->factor[r] = inverse ? 1 / sqrt(fabs(v)) : sqrt(fabs(v));
        w->to[r] = v < 0 ? w->rows - ++*under : (*over)++;
    }
    return LOP_OK;
}

static void fill_rows(const panel *w, const lop_mat *u, int64_t i, int64_t m) {
    const int64_t n = u->n * (lop_is_complex(u->dt) ? 2 : 1), size = size_of(u->dt);
    const bool single = u->dt == LOP_f32 || u->dt == LOP_c64;
    for (int64_t r = 0; r < m; r++) {
        void *to = w->p + w->to[r] * u->n * size;
        const void *from = (const char *)u->p + (i + r) * u->rs * size;
        if (single)
            row_float(to, from, w->factor[r], w->squares, n);
        else
            row_double(to, from, w->factor[r], w->squares, n);
    }
}
static void fill_columns(const panel *w, const lop_mat *u, int64_t i, int64_t m) {
    const int64_t parts = lop_is_complex(u->dt) ? 2 : 1, size = size_of(u->dt),
                  step = w->col ? 1 : u->n;
    const bool single = u->dt == LOP_f32 || u->dt == LOP_c64;
    for (int64_t j = 0; j < u->n; j++) {
        void *to = w->p + j * (w->col ? w->rows : 1) * size;
        const void *from = (const char *)u->p + (i * u->rs + j * u->cs) * size;
        if (single)
            column_float(to, from, w->to, w->factor, w->squares + j * parts, parts, m, u->rs, step);
        else
            column_double(to, from, w->to, w->factor, w->squares + j * parts, parts, m, u->rs,
                          step);
    }
}

/* The lower triangle of y (+)= sign a^H a, a in the panel's order. */
static void add_triangle(const panel *w, const lop_mat *y, const lop_mat *a, int64_t lda,
                         double sign, bool add) {
    const enum CBLAS_ORDER order = w->col ? CblasColMajor : CblasRowMajor;
    const int64_t n = y->n, k = a->m, ldy = is_row(y) ? ld_row(y) : ld_col(y);
    const enum CBLAS_UPLO lo = w->upper ? CblasUpper : CblasLower;
    const double keep = add ? 1 : 0;
    switch (y->dt) {
    case LOP_f32:
        BLAS(cblas_ssyrk)(order, lo, CblasTrans, n, k, (float)sign, a->p, lda, (float)keep, y->p,
                          ldy);
        break;
    case LOP_f64:
        BLAS(cblas_dsyrk)(order, lo, CblasTrans, n, k, sign, a->p, lda, keep, y->p, ldy);
        break;
    case LOP_c64:
        BLAS(cblas_cherk)(order, lo, CblasConjTrans, n, k, (float)sign, a->p, lda, (float)keep,
                          y->p, ldy);
        break;
    default: BLAS(cblas_zherk)(order, lo, CblasConjTrans, n, k, sign, a->p, lda, keep, y->p, ldy);
    }
}

static void store_squares(const panel *w, const lop_mat *y, int64_t k) {
    const int64_t parts = lop_is_complex(y->dt) ? 2 : 1;
    for (int64_t j = 0; j < k; j++) {
        const double sum = w->squares[j * parts] + (parts > 1 ? w->squares[j * parts + 1] : 0);
        lop_set(y->dt, y->p, k * y->rs + j * y->cs, sum);
    }
}

static bool all_zero(const lop_mat *column) {
    for (int64_t i = 0; i < column->m; i++)
        if (lop_get(column->dt, column->p, i * column->rs) != 0) return false;
    return true;
}

/* The triangle of all rows at once, as they lie, and the squares from its diagonal: where d is one
 * number v, as of c * Identity. False where a sum of squares may have lost digits by underflow, or
 * is not finite, which scaled rows need not be; a column of zeros has nothing to lose. */
static bool gram_of_alike(const panel *w, const lop_mat *y, const lop_mat *u, double v) {
    const int64_t parts = lop_is_complex(y->dt) ? 2 : 1;
    const bool single = y->dt == LOP_f32 || y->dt == LOP_c64;
    const double least = single ? FLT_MIN / FLT_EPSILON : DBL_MIN / DBL_EPSILON;
    add_triangle(w, y, u, w->col ? ld_col(u) : ld_row(u), v, false);
    for (int64_t j = 0; j < u->n; j++) {
        const double _Complex own = lop_get(y->dt, y->p, j * (y->rs + y->cs));
        w->squares[j * parts] = creal(own) / v;
        if (!(fabs(creal(own)) <= DBL_MAX) || fabs(w->squares[j * parts]) < least) {
            const lop_mat column = {
                (char *)u->p + j * u->cs * size_of(u->dt), u->m, 1, u->rs, 1, u->dt};
            if (!all_zero(&column)) return false;
        }
    }
    return true;
}

/* y, and below it, where its rows are one more than its columns, the squares. */
static lop_status gram_of(const lop_mat *y, const lop_mat *u, const lop_mat *d, bool inverse,
                          void *scratch) {
    LOP_ASSERT(y->n == u->n && d->m == u->m && y->dt == u->dt);
    LOP_ASSERT((is_row(y) || is_col(y)) && lop_is_blas(y->dt));
    const int64_t k = u->n, size = size_of(u->dt);
    panel w = {.p = scratch, .rows = panel_rows(u->m, k, u->dt), .col = u->rs == 1 && u->cs != 1};
    w.upper = lopk_gram_is_upper(w.col, k);
    w.squares = (double *)(void *)(w.p + rounded((size_t)(w.rows * at_least_1(k) * size)));
    w.factor =
        (double *)(void *)((char *)w.squares + rounded(2 * (size_t)at_least_1(k) * sizeof(double)));
    w.to = (int64_t *)(void *)(w.factor + w.rows);
    const lop_mat top = {y->p, k, k, y->rs, y->cs, y->dt};
    const int64_t step = (w.col ? 1 : k) * size;
    const double alike =
        inverse && k > 0 && fits(u) && (w.col ? is_col(u) : is_row(u)) ? one_over(d) : 0;
    bool any = false;
    lopk_zero(y);
    for (int64_t j = 0; j < 2 * k; j++) w.squares[j] = 0;
    const bool done = alike != 0 && gram_of_alike(&w, &top, u, alike);
    if (!done && alike != 0) {
        lopk_zero(y);
        for (int64_t j = 0; j < 2 * k; j++) w.squares[j] = 0;
    }
    for (int64_t i = 0; !done && k > 0 && i < u->m; i += w.rows) {
        const int64_t m = min_of(w.rows, u->m - i);
        int64_t over, under;
        lop_status st = place_rows(&w, d, inverse, i, m, &over, &under);
        if (st != LOP_OK) return st;
        if (u->cs == 1 && !w.col)
            fill_rows(&w, u, i, m);
        else
            fill_columns(&w, u, i, m);
        const lop_mat first = {w.p, over, k, 0, 0, u->dt},
                      last = {w.p + (w.rows - under) * step, under, k, 0, 0, u->dt};
        const int64_t lda = w.col ? w.rows : k;
        if (over) add_triangle(&w, &top, &first, lda, 1, any);
        if (under) add_triangle(&w, &top, &last, lda, -1, any || over);
        any = true;
    }
    const bool adjoint = lop_is_complex(y->dt), other = w.col == is_row(y) && k > 1;
    const bool from_columns = w.col || w.upper;
    const int64_t ld = is_row(y) ? ld_row(y) : ld_col(y);
    lopk_mirror_triangle(y->p, k, from_columns ? 1 : ld, from_columns ? ld : 1, y->dt, adjoint,
                         adjoint && other);
    if (y->m > k) store_squares(&w, y, k);
    return LOP_OK;
}

lop_status lopk_weighted_gram(const lop_mat *y, const lop_mat *u, const lop_mat *d, void *scratch) {
    LOP_ASSERT(y->m == u->n + 1);
    return gram_of(y, u, d, true, scratch);
}

void lopk_scaled_gram(const lop_mat *y, const lop_mat *u, const lop_mat *d, void *scratch) {
    LOP_ASSERT(y->m == u->n);
    const lop_status st = gram_of(y, u, d, false, scratch);
    LOP_ASSERT(st == LOP_OK);
    (void)st;
}
