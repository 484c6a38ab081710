/* k_quasi_covariance.c: generators of covariances of stationary Markov processes at sorted times.
 *
 * Transitions are of neighbours, exp(-c (t[i] - t[i-1])) and factors of that, so that nothing
 * overflows. Hartikainen and Sarkka 2010, MLSP (Matern); Foreman-Mackey et al. 2017, Astron. J. 154
 * (celerite: rotations stand in p and q), and 2018, RNAAS 2 (the oscillator). O(n). */
#include "kernels/kernel_matrix/k_kernel_matrix.h"
#include "k_quasi.h"
#include "k_quasi_arithmetic.h"

#include <float.h>

enum { BLOCK = 128 };
static const double FAR = 2000, /* exp(-FAR) is 0 */
    LOG2E = 0x1.71547652b82fep0;

/* The generators of some rows by x and e = exp(-x): exp(-x) times a polynomial, one Jordan block.
 */
static ALWAYS void matern_rows(const int order, int rows, double variance, const double *x,
                               const double *e, double *restrict d, double *restrict p,
                               double *restrict q, double *restrict a) {
    for (int i = 0; i < rows; i++) d[i] = variance;
    if (order == 0) {
        for (int i = 0; i < rows; i++) {
            a[i] = p[i] = e[i];
            q[i] = variance;
        }
    } else if (order == 1) {
        for (int i = 0; i < 2 * rows; i++) q[i] = variance;
        for (int i = 0; i < rows; i++) {
            const double f = e[i] * x[i];
            a[4 * i] = p[2 * i] = e[i];
            a[4 * i + 1] = p[2 * i + 1] = f;
            a[4 * i + 2] = 0;
            a[4 * i + 3] = e[i];
        }
    } else {
        for (int i = 0; i < rows; i++) {
            const double f = e[i] * x[i], h = f * (x[i] / 2);
            double *r = a + 9 * i;
            q[3 * i] = q[3 * i + 1] = variance;
            q[3 * i + 2] = variance * (2.0 / 3);
            r[0] = r[4] = r[8] = p[3 * i] = e[i];
            r[1] = r[5] = p[3 * i + 1] = f;
            r[2] = p[3 * i + 2] = h;
            r[3] = r[6] = r[7] = 0;
        }
    }
}

/* A block of rows: x, e = exp(-x), and where its generators go. */
typedef struct part {
    const double *c, *t, *x, *e;
    double start;
    double *d, *p, *q, *a;
} part;

/* exp(-x) (a cos(angle) + b sin(angle)): c = a, b, decay, frequency. */
static void rotating_rows(int rows, const part *to) {
    const double a = to->c[0], b = to->c[1];
    for (int i = 0; i < rows; i++) {
        const double angle = to->c[3] * (to->t[i] - to->start), u = cos(angle), v = sin(angle),
                     e = to->e[i];
        to->d[i] = a;
        to->p[2 * i] = (a * u + b * v) * e;
        to->p[2 * i + 1] = (a * v - b * u) * e;
        to->q[2 * i] = u;
        to->q[2 * i + 1] = v;
        to->a[2 * i] = to->a[2 * i + 1] = e;
    }
}
/* An oscillator near or beyond critical damping: c = variance, f = twice the quality, root =
 * sqrt(|1 - f^2|), decay. */
static void damped_rows(int rows, const part *to) {
    const double variance = to->c[0], f = to->c[1], root = to->c[2];
    for (int i = 0; i < rows; i++) {
        const double x = to->x[i];
        double even, odd, *r = to->a + 4 * i;
        if (f > 1) {
            even = to->e[i] * cos(root * x);
            odd = to->e[i] * sin(root * x) / root;
        } else { /* the slower decay is 1 - root, without cancellation */
            const double e = exp(-x * (f * f / (1 + root)));
            odd = e * (root == 0 ? x : -expm1(-2 * root * x) / (2 * root));
            even = e - root * odd;
        }
        to->d[i] = to->q[2 * i] = variance;
        to->q[2 * i + 1] = 0;
        r[0] = to->p[2 * i] = even + odd;
        r[1] = to->p[2 * i + 1] = f * odd;
        r[2] = -f * odd;
        r[3] = even - odd;
    }
}

/* Blocks whose powers of two are vectorised. */
static ALWAYS int64_t rows_of(int which, const double *c, int64_t n, const double *t, double *d,
                              double *p, double *q, double *a) {
    _Alignas(64) double x[BLOCK], y[BLOCK], e[BLOCK];
    const int64_t J = which < LOPK_QUASI_ROTATING ? which + 1 : 2,
                  step = which == LOPK_QUASI_ROTATING ? J : J * J;
    const bool slow = which == LOPK_QUASI_DAMPED && c[1] < 1; /* of which x itself is asked */
    const double rate = which < LOPK_QUASI_ROTATING  ? c[1]
                        : which == LOPK_QUASI_DAMPED ? c[3]
                                                     : c[2],
                 far = slow ? DBL_MAX : FAR;
    double before = n > 0 ? t[0] : 0;
    for (int64_t from = 0; from < n; from += BLOCK) {
        const int rows = n - from < BLOCK ? (int)(n - from) : BLOCK;
        const part to = {
            c, t + from, x, e, t[0], d + from, p + from * J, q + from * J, a + from * step};
        bool sorted = true;
        for (int i = 0; i < rows; i++) {
            const double h = t[from + i] - (i > 0 ? t[from + i - 1] : before), v = rate * h;
            sorted = sorted && h >= 0;
            x[i] = v < far ? v : far;
            y[i] = -LOG2E * x[i];
        }
        for (int i = rows; i < BLOCK && i % 16 != 0; i++) y[i] = 0;
        if (!sorted) {
            for (int64_t i = from > 0 ? from : 1; i < n; i++)
                if (!(t[i] - t[i - 1] >= 0)) return i;
            return 0;
        }
        before = t[from + rows - 1];
        if (!slow) lopk_kernel_exp2(LOP_f64, e, y, (rows + 15) / 16 * 16);
        switch (which) {
        case 0: matern_rows(0, rows, c[0], x, e, to.d, to.p, to.q, to.a); break;
        case 1: matern_rows(1, rows, c[0], x, e, to.d, to.p, to.q, to.a); break;
        case 2: matern_rows(2, rows, c[0], x, e, to.d, to.p, to.q, to.a); break;
        case LOPK_QUASI_ROTATING: rotating_rows(rows, &to); break;
        default: damped_rows(rows, &to);
        }
    }
    return n;
}
LOPK_CLONES_SHORT static int64_t rows_any(int which, const double *c, int64_t n, const double *t,
                                          double *d, double *p, double *q, double *a) {
    return rows_of(which, c, n, t, d, p, q, a);
}
int64_t lopk_quasi_covariance(int which, const double *c, int64_t n, const double *t, double *d,
                              double *p, double *q, double *a) {
    return rows_any(which, c, n, t, d, p, q, a);
}

/* f_m = exp(-x) x^m / m! for m up to `order`, differentiated some times: D f_m = f_{m-1} - f_m. */
static ALWAYS void matern_terms(const int order, int derivative, int rows, const double *x,
                                double (*restrict f)[BLOCK]) {
    _Alignas(64) double y[BLOCK];
    bool usual = true;
    for (int i = 0; i < rows; i++) {
        const double v = x[i] > FAR ? FAR : x[i];
        usual = usual && v >= 0;
        y[i] = -LOG2E * v;
    }
    for (int i = rows; i < BLOCK && i % 16 != 0; i++) y[i] = 0;
    if (usual)
        lopk_kernel_exp2(LOP_f64, f[0], y, (rows + 15) / 16 * 16);
    else /* of negative ones, and of what is no number */
        for (int i = 0; i < rows; i++) f[0][i] = exp(x[i] > FAR ? -FAR : -x[i]);
    for (int m = 1; m <= order; m++)
        for (int i = 0; i < rows; i++) f[m][i] = f[m - 1][i] * ((x[i] > FAR ? FAR : x[i]) / m);
    for (int r = 0; r < derivative; r++) {
        for (int m = order; m > 0; m--)
            for (int i = 0; i < rows; i++) f[m][i] = f[m - 1][i] - f[m][i];
        for (int i = 0; i < rows; i++) f[0][i] = -f[0][i];
    }
}
/* f_m stands in column m of p, and on the m-th diagonal above the main one of transitions. */
static ALWAYS void matern_rows_of(const int order, const bool moves, int derivative, int64_t n,
                                  const double *x, double *restrict out) {
    _Alignas(64) double f[3][BLOCK];
    const int J = order + 1, step = moves ? J * J : J;
    for (int64_t from = 0; from < n; from += BLOCK) {
        const int rows = n - from < BLOCK ? (int)(n - from) : BLOCK;
        double *to = out + from * step;
        matern_terms(order, derivative, rows, x + from, f);
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < (moves ? J : 1); j++)
                for (int l = 0; l < J; l++) to[i * step + j * J + l] = l < j ? 0 : f[l - j][i];
    }
}
static ALWAYS void matern_sums_of(const int order, const bool moves, int derivative, int64_t n,
                                  const double *x, const double *g, double *restrict out) {
    _Alignas(64) double f[3][BLOCK];
    const int J = order + 1, step = moves ? J * J : J;
    for (int64_t from = 0; from < n; from += BLOCK) {
        const int rows = n - from < BLOCK ? (int)(n - from) : BLOCK;
        const double *by = g + from * step;
        matern_terms(order, derivative, rows, x + from, f);
        for (int i = 0; i < rows; i++) {
            double sum = 0;
            for (int j = 0; j < (moves ? J : 1); j++)
                for (int l = j; l < J; l++) sum += by[i * step + j * J + l] * f[l - j][i];
            out[from + i] = sum;
        }
    }
}
LOPK_CLONES_SHORT static void matern_any(int order, bool moves, int derivative, int64_t n,
                                         const double *x, const double *g, double *out) {
    if (order == 0 && g) {
        matern_sums_of(0, false, derivative, n, x, g, out);
    } else if (order == 0) {
        matern_rows_of(0, false, derivative, n, x, out);
    } else if (order == 1 && g) {
        matern_sums_of(1, moves, derivative, n, x, g, out);
    } else if (order == 1) {
        matern_rows_of(1, moves, derivative, n, x, out);
    } else if (g) {
        matern_sums_of(2, moves, derivative, n, x, g, out);
    } else {
        matern_rows_of(2, moves, derivative, n, x, out);
    }
}
void lopk_quasi_matern_rows(int order, bool moves, int derivative, int64_t n, const double *x,
                            double *out) {
    matern_any(order, moves, derivative, n, x, NULL, out);
}
void lopk_quasi_matern_sums(int order, bool moves, int derivative, int64_t n, const double *x,
                            const double *g, double *out) {
    matern_any(order, moves, derivative, n, x, g, out);
}
