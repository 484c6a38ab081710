/* k_stein.c: c Y - R Y T^T = G, column by column of Y from the last:
 *
 *   (c I - t_jj R) y_j = g_j + R sum over k > j of t_jk y_k
 *
 * z_k = R y_k is made while y_k is: the substitution needs its partial sums anyway. So a column
 * costs n^2 and an addition of the z_k (Golub and Van Loan, 7.6.3; Kitagawa 1977). Blocks of
 * columns go to the ones before them by gemm.
 *
 * A block [a b; d a] of a real T is a + i s in the direction (1, i s / d), s^2 = -b d: of its two
 * columns y_j + i (s / d) y_{j+1} is one complex column, real and imaginary part apart, so that R
 * stays real. The blocks of R are solved in the directions (1, i s / d) and (1, -i s / d). */
#include "k_blas.h"
#include "k_stein.h"

#include <complex.h>
#include <math.h>

enum { BLOCK = 32 };

/* Of the columns at hand: c - t R, their right sides and solutions, R times these; real and
 * imaginary parts. Complex matrices have both in one array, at every second place. */
typedef struct column {
    double _Complex c, t;
    double *y[2], *z[2];
    double least; /* 8 u */
    bool singular;
} column;

static double _Complex pivot(column *w, double _Complex r) {
    const double _Complex tr = w->t * r, p = w->c - tr;
    if (!(cabs(p) > w->least * (cabs(w->c) + cabs(tr)))) w->singular = true;
    return p;
}
static double at(const lop_mat *a, int64_t i, int64_t j) {
    return ((const double *)a->p)[i + j * a->cs];
}

/* -- real matrices */

static double _Complex part_of(double *const v[2], int64_t i) {
    return CMPLX(v[0][i], v[1] ? v[1][i] : 0);
}
/* x is y's element i: z takes its column of R, down to row `last`. */
static void found(column *w, const lop_mat *r, int64_t i, int64_t last, double _Complex x) {
    const double *of = (const double *)r->p + i * r->cs;
    const double part[2] = {creal(x), cimag(x)};
    for (int k = 0; k < 2 && w->y[k]; k++) {
        double *restrict z = w->z[k];
        const double by = part[k];
        w->y[k][i] = by;
        for (int64_t j = 0; j <= last; j++) z[j] += by * of[j];
    }
}
static void solve_real(column *w, const lop_mat *r) {
    for (int64_t i = r->n - 1; i >= 0; i--) {
        double _Complex h = part_of(w->y, i) + w->t * part_of(w->z, i);
        if (i == 0 || at(r, i, i - 1) == 0) {
            found(w, r, i, i, h / pivot(w, at(r, i, i)));
            continue;
        }
        const double a = at(r, i, i), b = at(r, i - 1, i), d = at(r, i, i - 1),
                     s = sqrt(fabs(b)) * sqrt(fabs(d));
        const double _Complex turn = CMPLX(0, s / d), g = turn * h;
        h = part_of(w->y, i - 1) + w->t * part_of(w->z, i - 1);
        const double _Complex one = (h + g) / pivot(w, CMPLX(a, s)),
                              two = (h - g) / pivot(w, CMPLX(a, -s));
        found(w, r, i - 1, i, (one + two) / 2);
        found(w, r, i, i, (one - two) / (2 * turn));
        i--;
    }
}

/* -- complex ones */

static void solve_whole(column *w, const lop_mat *r) {
    double *y = w->y[0], *restrict z = w->z[0];
    for (int64_t i = r->n - 1; i >= 0; i--) {
        const double *of = (const double *)r->p + 2 * i * r->cs;
        const double _Complex h = CMPLX(y[2 * i], y[2 * i + 1]),
                              sum = CMPLX(z[2 * i], z[2 * i + 1]),
                              p = pivot(w, CMPLX(of[2 * i], of[2 * i + 1])),
                              x = (h + w->t * sum) / p;
        const double re = creal(x), im = cimag(x);
        y[2 * i] = re;
        y[2 * i + 1] = im;
        for (int64_t j = 0; j <= i; j++) {
            z[2 * j] += re * of[2 * j] - im * of[2 * j + 1];
            z[2 * j + 1] += re * of[2 * j + 1] + im * of[2 * j];
        }
    }
}

/* -- both */

static void multiply(double *v, double by, int64_t n) {
    for (int64_t i = 0; i < n; i++) v[i] *= by;
}
static double *column_of(const lop_mat *g, int64_t j) {
    return (double *)g->p + j * g->cs * (g->dt == LOP_c128 ? 2 : 1);
}
/* Columns j - 1 and j as one where `pair`, else column j. */
static void solve_at(column *w, const lop_mat *t, const lop_mat *r, const lop_mat *g,
                     const lop_mat *z, int64_t j, bool pair) {
    w->y[0] = column_of(g, j);
    w->z[0] = column_of(z, j);
    w->y[1] = w->z[1] = NULL;
    w->t = lop_get(t->dt, t->p, j * (t->cs + 1));
    if (t->dt == LOP_c128) {
        solve_whole(w, r);
        return;
    }
    if (!pair) {
        solve_real(w, r);
        return;
    }
    const double b = at(t, j - 1, j), d = at(t, j, j - 1), s = sqrt(fabs(b)) * sqrt(fabs(d));
    for (int k = 0; k < 2; k++) {
        w->y[k] = column_of(g, j - 1 + k);
        w->z[k] = column_of(z, j - 1 + k);
    }
    w->t = CMPLX(at(t, j, j), s);
    multiply(w->y[1], s / d, g->m);
    solve_real(w, r);
    multiply(w->y[1], d / s, g->m);
    multiply(w->z[1], d / s, g->m);
}

static lop_mat part(const lop_mat *a, int64_t i, int64_t j, int64_t m, int64_t n) {
    return (lop_mat){
        (char *)a->p + (i + j * a->cs) * (int64_t)lop_dtype_size(a->dt), m, n, 1, a->cs, a->dt};
}
/* The columns of g from `low` on, `count` of them, take z's columns `from` on, `many`. */
static void pass_on(const lop_mat *t, const lop_mat *g, const lop_mat *z, int64_t low,
                    int64_t count, int64_t from, int64_t many) {
    const lop_mat to = part(g, 0, low, g->m, count), by = part(z, 0, from, g->m, many),
                  block = part(t, low, from, count, many),
                  turned = {block.p, many, count, block.cs, 1, t->dt};
    if (count > 0) lopk_gemm(&to, &by, false, &turned, true);
}

lop_status lopk_stein(const lop_mat *t, const lop_mat *r, double _Complex c, double u,
                      const lop_mat *g, const lop_mat *z) {
    column w = {.c = c, .least = 8 * u};
    const bool real = t->dt != LOP_c128;
    int64_t width = g->m * (real ? 1 : 2);
    if (g->m == 0) return LOP_OK;
    for (int64_t i = 0; i < width * g->n; i++) ((double *)z->p)[i] = 0;
    for (int64_t high = t->n; high > 0;) {
        int64_t low = high > BLOCK ? high - BLOCK : 0;
        if (real && low > 0 && at(t, low, low - 1) != 0) low--; /* no pair is cut */
        for (int64_t j = high - 1; j >= low; j--) {
            const bool pair = real && j > 0 && at(t, j, j - 1) != 0;
            solve_at(&w, t, r, g, z, j, pair);
            if (w.singular) return LOP_SINGULAR;
            if (pair) j--;
            pass_on(t, g, z, low, j - low, j, pair ? 2 : 1);
        }
        pass_on(t, g, z, 0, low, low, high - low);
        high = low;
    }
    return LOP_OK;
}
