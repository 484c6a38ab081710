/* k_markov.c: b^T A^-1 b and log det A of a Markov process at sorted times with noise, and their
 * first and second derivatives by variance, rate and noise, in one pass that keeps nothing.
 *
 * The recursion of k_quasi.c, of Matern processes with the states of one Jordan block, a = exp(-x)
 * [1 x x^2/2; 0 1 x; 0 0 1], x = rate times the step, p the first row of a, q = variance (1, 1,
 * 2/3): P = a S a^T,  D = d - P_00,  W = (q - P e_0) / D,  S <- P + D W W^T, z = b - (a f)_0,  f <-
 * a f + W z, the Kalman filter of Hartikainen and Sarkka 2010 (MLSP). All numbers are jets: a value
 * with its derivatives, which arithmetic carries along (forward derivatives; Griewank and Walther
 * 2008, chapters 3 and 13). The recursion forgets, and so do they. What is summed up says nothing
 * where the pivots D are small beside A's diagonal: then it is left to solves that are checked. */
#include "kernels/kernel_matrix/k_kernel_matrix.h"
#include "k_markov.h"
#include "k_quasi_arithmetic.h"

enum { BLOCK = 128, LAST = 3, MOST = LOPK_MARKOV_STATES };
static const double FAR = 2000, /* exp(-FAR) is 0 */
    LOG2E = 0x1.71547652b82fep0;
static const double SMALL = 0x1p-300, LARGE = 0x1p300; /* the cube of one over these is a number */

#define UNROLLED _Pragma("GCC unroll 4")

typedef double lanes __attribute__((vector_size(32)));
/* A value, its derivatives by the three numbers and (LAST) along a direction; those of the latter
 * by the three, where `twice` is true. */
typedef struct jet {
    double v;
    lanes t, s;
} jet;

/* y <- u w. */
static ALWAYS void times(const bool twice, jet *y, const jet *u, const jet *w) {
    const double v = u->v * w->v;
    if (twice) y->s = u->v * w->s + w->v * u->s + u->t[LAST] * w->t + w->t[LAST] * u->t;
    y->t = u->v * w->t + w->v * u->t;
    y->v = v;
}
/* y <- c u. */
static ALWAYS void put(const bool twice, jet *y, double c, const jet *u) {
    y->v = c * u->v;
    y->t = c * u->t;
    if (twice) y->s = c * u->s;
}
/* y <- y + c u. */
static ALWAYS void plus(const bool twice, jet *y, double c, const jet *u) {
    y->v += c * u->v;
    y->t += c * u->t;
    if (twice) y->s += c * u->s;
}
/* y <- y + u w. */
static ALWAYS void plus_times(const bool twice, jet *y, const jet *u, const jet *w) {
    jet both;
    times(twice, &both, u, w);
    plus(twice, y, 1, &both);
}
static ALWAYS void reciprocal(const bool twice, jet *y, const jet *u) {
    const double v = 1 / u->v, slope = -(v * v);
    y->v = v;
    y->t = slope * u->t;
    if (twice) y->s = slope * u->s + (-2 * v * slope * u->t[LAST]) * u->t;
}

/* What moves the states by a step: exp(-x), exp(-2x), x, x^2 / 2. */
typedef struct mover {
    jet e, square, x[2];
} mover;
static ALWAYS void move_by(const int J, mover *m, double x, double e, double h, const lanes *rate) {
    const lanes by_rate = {0, 1, 0, 0};
    const double along = (*rate)[LAST], near = x < FAR ? h : 0; /* beyond, all is 0 */
    const double f = e * near, g = e * e * near;
    m->e = (jet){e, -f * *rate, (along * f * h) * by_rate};
    m->square = (jet){e * e, -2 * g * *rate, (4 * along * g * h) * by_rate};
    if (J > 1) m->x[0] = (jet){x, h * *rate, (lanes){0}};
    if (J > 2) m->x[1] = (jet){x * x / 2, (x * h) * *rate, (along * h * h) * by_rate};
}

typedef struct chain {
    jet S[MOST * MOST], f[MOST]; /* S: the half on and below the diagonal */
    jet quad, log;
    double mantissa, exponent;
} chain;

/* S <- a S a^T. */
static ALWAYS void moved(const bool twice, const int J, chain *c, const mover *m) {
    jet T[MOST * MOST];
    UNROLLED for (int j = 0; j < J; j++) UNROLLED for (int l = 0; l < J; l++) {
        put(twice, &T[j * J + l], 1, &c->S[j >= l ? j * J + l : l * J + j]);
        UNROLLED for (int k = 1; j + k < J; k++)
            plus_times(twice, &T[j * J + l], &m->x[k - 1],
                       &c->S[j + k >= l ? (j + k) * J + l : l * J + j + k]);
    }
    UNROLLED for (int j = 0; j < J; j++) UNROLLED for (int l = 0; l <= j; l++) {
        jet sum = T[j * J + l];
        UNROLLED for (int k = 1; l + k < J; k++)
            plus_times(twice, &sum, &m->x[k - 1], &T[j * J + l + k]);
        times(twice, &c->S[j * J + l], &m->square, &sum);
    }
    UNROLLED for (int j = 0; j < J; j++) {
        jet sum;
        put(twice, &sum, 1, &c->f[j]);
        UNROLLED for (int k = 1; j + k < J; k++)
            plus_times(twice, &sum, &m->x[k - 1], &c->f[j + k]);
        times(twice, &c->f[j], &m->e, &sum);
    }
}
/* What a row says: D is its pivot, z what is left of b; *one <- 1 / D. False: D is too small. */
static ALWAYS bool gather(const bool twice, chain *c, const jet *D, double diagonal, const jet *z,
                          jet *one) {
    jet zD;
    if (!(D->v > LEAST * diagonal) || !(diagonal > SMALL && diagonal < LARGE)) return false;
    reciprocal(twice, one, D);
    times(twice, &zD, z, one);
    plus_times(twice, &c->quad, &zD, z);
    c->mantissa *= D->v;
    if (!(c->mantissa > 0x1p-500 && c->mantissa < 0x1p500)) {
        int k, l; /* the pivot itself may be as large or small as numbers are */
        c->mantissa = frexp(c->mantissa * one->v, &k) * frexp(D->v, &l);
        c->exponent += k + l;
    }
    c->log.t += one->v * D->t;
    if (twice) c->log.s += one->v * D->s - (one->v * one->v * D->t[LAST]) * D->t;
    return true;
}
/* S += num W^T, f += W z with W = num / D. */
static ALWAYS void gain(const bool twice, const int J, chain *c, const jet *num, const jet *one,
                        const jet *z) {
    jet W[MOST];
    UNROLLED for (int j = 0; j < J; j++) times(twice, &W[j], &num[j], one);
    UNROLLED for (int j = 0; j < J; j++) {
        UNROLLED for (int l = 0; l <= j; l++) plus_times(twice, &c->S[j * J + l], &num[j], &W[l]);
        plus_times(twice, &c->f[j], &W[j], z);
    }
}
/* One row, whose states have been moved. */
static ALWAYS bool row(const bool twice, const int J, chain *c, const jet *variance, const jet *d,
                       double b) {
    static const double share[MOST] = {1, 1, 2.0 / 3};
    const jet z = {b - c->f[0].v, -c->f[0].t, -c->f[0].s};
    jet num[MOST], D = *d, one;
    plus(twice, &D, -1, &c->S[0]);
    if (!gather(twice, c, &D, d->v, &z, &one)) return false;
    UNROLLED for (int j = 0; j < J; j++) {
        put(twice, &num[j], share[j], variance);
        plus(twice, &num[j], -1, &c->S[j * J]);
    }
    gain(twice, J, c, num, &one, &z);
    return true;
}

/* d <- variance * own + noise * scale_i + more_i. */
static ALWAYS void diagonal(const lopk_markov *m, int64_t i, double own, const jet *variance,
                            const lanes *noise, jet *d) {
    const double w = m->scale ? m->scale[i] : 1;
    d->v = own * variance->v + m->noise * w + (m->more ? m->more[i] : 0);
    d->t = own * variance->t + w * *noise;
    d->s = (lanes){0};
}

static ALWAYS bool pass(const bool twice, const int J, const lopk_markov *m, const double *along,
                        chain *c) {
    _Alignas(64) double x[BLOCK], y[BLOCK], e[BLOCK];
    const jet variance = {m->variance, {1, 0, 0, twice ? along[0] : 0}, {0}};
    const lanes rate = {0, 1, 0, twice ? along[1] : 0}, noise = {0, 0, 1, twice ? along[2] : 0};
    for (int64_t from = 0; from < m->n; from += BLOCK) {
        const int rows = m->n - from < BLOCK ? (int)(m->n - from) : BLOCK;
        for (int i = 0; i < rows; i++) {
            const double v = m->rate * m->step[from + i];
            x[i] = from + i == 0 ? 0 : v < FAR ? v : FAR;
            y[i] = -LOG2E * x[i];
        }
        for (int i = rows; i < BLOCK && i % 16 != 0; i++) y[i] = 0;
        lopk_kernel_exp2(LOP_f64, e, y, (rows + 15) / 16 * 16);
        for (int i = 0; i < rows; i++) {
            const int64_t at = from + i;
            mover by;
            jet d;
            if (!(x[i] >= 0)) return false;
            diagonal(m, at, 1, &variance, &noise, &d);
            move_by(J, &by, x[i], e[i], at == 0 ? 0 : m->step[at], &rate);
            moved(twice, J, c, &by);
            if (!row(twice, J, c, &variance, &d, m->b[at])) return false;
        }
    }
    return true;
}

/* y <- row `at` of given transitions times what stands `apart` of each other at x. */
static ALWAYS void met(const bool twice, const int J, const bool full, const double *a, int at,
                       const jet *x, int apart, jet *y) {
    put(twice, y, a[full ? at * J : at], &x[full ? 0 : at * apart]);
    UNROLLED for (int k = 1; k < J; k++) if (full) plus(twice, y, a[at * J + k], &x[k * apart]);
}
/* S <- a S a^T, f <- a f. */
static ALWAYS void moved_by(const bool twice, const int J, const bool full, const double *a,
                            chain *c) {
    jet S[MOST * MOST], T[MOST * MOST], f[MOST];
    UNROLLED for (int j = 0; j < J; j++) UNROLLED for (int l = 0; l < J; l++) S[j * J + l] =
        c->S[j >= l ? j * J + l : l * J + j];
    UNROLLED for (int j = 0; j < J; j++) UNROLLED for (int l = 0; l < J; l++)
        met(twice, J, full, a, j, &S[l], J, &T[j * J + l]);
    UNROLLED for (int j = 0; j < J; j++) UNROLLED for (int l = 0; l <= j; l++)
        met(twice, J, full, a, l, &T[j * J], 1, &c->S[j * J + l]);
    UNROLLED for (int j = 0; j < J; j++) met(twice, J, full, a, j, c->f, 1, &f[j]);
    UNROLLED for (int j = 0; j < J; j++) put(twice, &c->f[j], 1, &f[j]);
}
/* Of a multiple of a given matrix. */
static ALWAYS bool given(const bool twice, const int J, const bool full, const lopk_markov *m,
                         const double *along, chain *c) {
    static const double zero[MOST * MOST]; /* what is not read of the first row */
    const double *d = m->given->d, *p = m->given->p, *q = m->given->q, *a = m->given->a;
    const jet multiple = {m->variance, {1, 0, 0, twice ? along[0] : 0}, {0}};
    const lanes noise = {0, 0, 1, twice ? along[2] : 0};
    const int step = full ? J * J : J;
    for (int64_t i = 0; i < m->n; i++) {
        const double *pi = i ? p + i * J : zero, *ai = i ? a + i * step : zero;
        jet v[MOST], num[MOST], z = {m->b[i], {0}, {0}}, D, taken, one;
        diagonal(m, i, d[i], &multiple, &noise, &D);
        const double before = D.v;
        UNROLLED for (int j = 0; j < J; j++) {
            put(twice, &v[j], pi[0], &c->S[j * J]);
            UNROLLED for (int l = 1; l < J; l++)
                plus(twice, &v[j], pi[l], &c->S[j >= l ? j * J + l : l * J + j]);
            plus(twice, &D, -pi[j], &v[j]);
            plus(twice, &z, -pi[j], &c->f[j]);
        }
        if (!gather(twice, c, &D, before, &z, &one)) return false;
        if (i == m->n - 1) break;
        UNROLLED for (int j = 0; j < J; j++) {
            put(twice, &num[j], q[i * J + j], &multiple);
            met(twice, J, full, ai, j, v, 1, &taken);
            plus(twice, &num[j], -1, &taken);
        }
        moved_by(twice, J, full, ai, c);
        gain(twice, J, c, num, &one, &z);
    }
    return true;
}

static ALWAYS bool by_kind(const bool twice, const lopk_markov *m, const double *along,
                           chain *found) {
    chain own = *found, *c = &own; /* in registers, as far as they go */
    bool fits;
    switch (m->given ? 2 * (int)m->given->J + m->given->full : m->order - 2) {
    case -2: fits = pass(twice, 1, m, along, c); break;
    case -1: fits = pass(twice, 2, m, along, c); break;
    case 0: fits = pass(twice, 3, m, along, c); break;
    case 2: fits = given(twice, 1, false, m, along, c); break;
    case 4: fits = given(twice, 2, false, m, along, c); break;
    case 5: fits = given(twice, 2, true, m, along, c); break;
    case 6: fits = given(twice, 3, false, m, along, c); break;
    case 7: fits = given(twice, 3, true, m, along, c); break;
    default: fits = false;
    }
    *found = own;
    return fits;
}
LOPK_CLONES_SHORT static bool once(const lopk_markov *m, chain *c) {
    return by_kind(false, m, NULL, c);
}
LOPK_CLONES_SHORT static bool again(const lopk_markov *m, const double *along, chain *c) {
    return by_kind(true, m, along, c);
}

static void give(double *out, double value, const jet *u) {
    out[0] = value;
    for (int k = 0; k < LAST; k++) {
        out[1 + k] = u->t[k];
        out[5 + k] = u->s[k];
    }
    out[4] = u->t[LAST];
}
lop_status lopk_markov_jets(const lopk_markov *m, const double *along, double *out) {
    chain c = {.mantissa = 1};
    if (!(m->variance > 0) || !(m->given || m->rate > 0)) return LOP_SINGULAR;
    if (!(along ? again(m, along, &c) : once(m, &c))) return LOP_SINGULAR;
    give(out, c.quad.v, &c.quad);
    give(out + LOPK_MARKOV_LANES, log(c.mantissa) + c.exponent * log(2), &c.log);
    for (int i = 0; i < 2 * LOPK_MARKOV_LANES; i++)
        if (out[i] - out[i] != 0) return LOP_SINGULAR;
    return LOP_OK;
}
