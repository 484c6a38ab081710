/* k_kernel_line_sums.c: the sums of k_kernel_gradient.h of a Matern kernel of points on a line that
 * lie in order, and of a pair, without the m n entries: O((m + n) k). With r = sqrt(2 nu) / l the
 * kernel and its derivative by l are polynomials in s = r |x - y| times exp(-s), and
 *
 *   T_p(z) = sum over y <= z of v (r (z - y))^p exp(-r (z - y)),
 *   T_p(z + d) = exp(-r d) sum_q binomial(p, q) (r d)^(p - q) T_q(z),
 *
 * is carried from point to point, once from either end: what is added is never taken away, so that
 * each term has the error of a few roundings for each point between. (The states of a Matern
 * process: Hartikainen and Sarkka 2010.) */
#include "k_kernel_gradient.h"

#include <math.h>
#include <string.h>

enum { POWERS = 4, ABREAST = 8, WORTH = 16 };

typedef struct line {
    const lop_mat *x, *y;
    lop_mat u, v; /* m x k; n x k */
    double rate;
    int64_t from; /* of ABREAST columns */
    int columns, powers;
} line;

static double at(const lop_mat *a, int64_t i, int64_t j) {
    return ((const double *)a->p)[i * a->rs + j * a->cs];
}

/* Do they lie in order, all of them finite? */
static bool in_order(const lop_mat *x) {
    if (!isfinite(at(x, 0, 0)) || !isfinite(at(x, x->m - 1, 0))) return false;
    for (int64_t i = 1; i < x->m; i++)
        if (!(at(x, i - 1, 0) <= at(x, i, 0))) return false;
    return true;
}

static void advance(const line *l, double state[POWERS][ABREAST], double step) {
    const double s = l->rate * step, e = exp(-s);
    for (int c = 0; c < l->columns; c++) {
        double *t = &state[0][c];
        if (l->powers > 3)
            t[3 * ABREAST] =
                e * (t[3 * ABREAST] + s * (3 * t[2 * ABREAST] + s * (3 * t[ABREAST] + s * t[0])));
        if (l->powers > 2) t[2 * ABREAST] = e * (t[2 * ABREAST] + s * (2 * t[ABREAST] + s * t[0]));
        t[ABREAST] = e * (t[ABREAST] + s * t[0]);
        t[0] *= e;
    }
}

/* Adds the sums over all pairs with y before x (`back`: behind it), equal ones where `equal`. */
static void sweep(const line *l, bool back, bool equal, double *sums) {
    const int64_t m = l->x->m, n = l->y->m;
    double state[POWERS][ABREAST] = {{0}}, z = 0;
    bool any = false;
    int64_t j = 0;
    for (int64_t i = 0; i < m; i++) {
        const int64_t row = back ? m - 1 - i : i;
        const double x = at(l->x, row, 0);
        for (; j < n; j++) {
            const int64_t other = back ? n - 1 - j : j;
            const double y = at(l->y, other, 0), gap = back ? y - x : x - y;
            if (gap < 0 || (!equal && gap <= 0)) break;
            if (any && y != z) advance(l, state, fabs(y - z));
            for (int c = 0; c < l->columns; c++) state[0][c] += at(&l->v, other, l->from + c);
            z = y;
            any = true;
        }
        if (!any) continue;
        if (x != z) advance(l, state, fabs(x - z));
        z = x;
        for (int p = 0; p < l->powers; p++)
            for (int c = 0; c < l->columns; c++)
                sums[p] += at(&l->u, row, l->from + c) * state[p][c];
    }
}

bool lopk_kernel_line_sums(const lopk_kernel *k, const lopk_cotangent *g, int64_t lengths,
                           double *out) {
    const int order = k->word - LOPK_MATERN12;
    const int64_t m = k->x.m, n = k->y.m, columns = g->a.n;
    const double *w = k->at + LOPK_WEIGHTS, weight = k->at[LOPK_ONE] * w[0] * w[1] * w[1],
                 v = k->at[LOPK_VARIANCE];
    if (g->form != LOPK_BY_PAIR || order < 0 || order > 2 || k->x.n != 1 || lengths != 1 || m < 1 ||
        n < 1 || (double)m * (double)n < WORTH * ((double)m + (double)n) || !(weight > 0) ||
        !isfinite(weight) || !in_order(&k->x) || !in_order(&k->y))
        return false;
    const lop_mat b = g->b;
    line l = {.x = &k->x,
              .y = &k->y,
              .u = g->a,
              .v = {b.p, b.n, b.m, b.cs, b.rs, b.dt},
              .rate = sqrt((2 * order + 1) * weight),
              .powers = order + 2};
    double s[POWERS] = {0}, value, slope;
    for (l.from = 0; l.from < columns; l.from += ABREAST) {
        l.columns = columns - l.from < ABREAST ? (int)(columns - l.from) : ABREAST;
        sweep(&l, false, true, s);
        sweep(&l, true, false, s);
    }
    if (order == 0) {
        value = s[0];
        slope = s[1];
    } else if (order == 1) {
        value = s[0] + s[1];
        slope = s[2];
    } else {
        value = s[0] + s[1] + s[2] / 3;
        slope = (s[2] + s[3]) / 3;
    }
    if (!isfinite(value) || !isfinite(slope)) return false;
    out[0] = value;
    out[1] = v * sqrt(weight) * slope;
    out[2] = 0;
    return true;
}
