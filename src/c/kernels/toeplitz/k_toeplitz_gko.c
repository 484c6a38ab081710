/* k_toeplitz_gko.c: two columns of a Toeplitz matrix' inverse and its determinant by elimination
 * with exchanges of rows, whatever its leading minors are.
 *
 * With Z_1 and Z_-1 the cyclic shifts whose corner is 1 and -1, Z_1 T - T Z_-1 has rank two. The
 * Fourier transforms that make both shifts diagonal turn T into C = F T D F^-1 with
 *   C[i, j] = (g_i . b_j) / (s_i - t_j),   s_i^n = 1, t_j^n = -1,
 * and such are C's Schur complements, whose g and b are updated in O(n): Gohberg, Kailath and
 * Olshevsky (1995), Math. Comp. 64. The unknowns are had in the same sweep as the Schur complement
 * of (C F; I 0), whose lower left block is of the same form but for its diagonal, which is 1 until
 * it is reached (Poloni 2010): memory O(n), about 10 n^2 complex multiply-adds. The growth of the
 * generators is not bounded: whoever calls checks the result. */
#include "kernels/common/k_clones.h"
#include "kernels/fft/k_fft.h"
#include "k_toeplitz_solve.h"

#include <math.h>
#include <string.h>

enum { RIGHT = 2 }; /* right-hand sides */
static const double PI = 3.14159265358979323846;

/* n complex numbers as two runs. */
typedef struct run {
    double *restrict re, *restrict im;
} run;
typedef struct number {
    double re, im;
} number;
typedef struct gko {
    int64_t n;
    run s, t, g[2], b[2], f[RIGHT], h[2], x[RIGHT], col, low;
} gko;
enum { RUNS = 7 + 2 * RIGHT + 3 };

static size_t run_bytes(int64_t n) { return ((size_t)n * 8 + 63) & ~(size_t)63; }
size_t lopk_gko_scratch(int64_t n) { return 2 * (RUNS + 2) * run_bytes(n) + 128; }

static inline number at(run a, int64_t i) { return (number){a.re[i], a.im[i]}; }
static inline void put(run a, int64_t i, number v) {
    a.re[i] = v.re;
    a.im[i] = v.im;
}
static inline number times(number a, number b) {
    return (number){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
static inline number over(number a, number b) {
    const double size = b.re * b.re + b.im * b.im;
    return (number){(a.re * b.re + a.im * b.im) / size, (a.im * b.re - a.re * b.im) / size};
}

/* y[i] <- sign (p[i] u + q[i] v) / (node[i] - at). */
LOPK_CLONES static void entries(int64_t n, double *restrict yr, double *restrict yi, run p, run q,
                                number u, number v, run node, number from, double sign) {
    for (int64_t i = 0; i < n; i++) {
        const double re = p.re[i] * u.re - p.im[i] * u.im + (q.re[i] * v.re - q.im[i] * v.im),
                     im = p.re[i] * u.im + p.im[i] * u.re + (q.re[i] * v.im + q.im[i] * v.re),
                     dr = node.re[i] - from.re, di = node.im[i] - from.im,
                     w = sign / (dr * dr + di * di);
        yr[i] = (re * dr + im * di) * w;
        yi[i] = (im * dr - re * di) * w;
    }
}
/* y[i] -= l[i] k. */
LOPK_CLONES static void less(int64_t n, double *restrict yr, double *restrict yi,
                             const double *restrict lr, const double *restrict li, number k) {
    for (int64_t i = 0; i < n; i++) {
        yr[i] -= lr[i] * k.re - li[i] * k.im;
        yi[i] -= lr[i] * k.im + li[i] * k.re;
    }
}
LOPK_CLONES static void scale(int64_t n, double *restrict yr, double *restrict yi, number k) {
    for (int64_t i = 0; i < n; i++) {
        const double re = yr[i] * k.re - yi[i] * k.im;
        yi[i] = yr[i] * k.im + yi[i] * k.re;
        yr[i] = re;
    }
}
static run from(run a, int64_t i) { return (run){a.re + i, a.im + i}; }
static void exchange(run a, int64_t i, int64_t j) {
    const number v = at(a, i);
    put(a, i, at(a, j));
    put(a, j, v);
}

/* Where the largest of n numbers lies; by squares, which is as good. */
static int64_t largest(run a, int64_t n) {
    int64_t best = 0;
    double top = -1;
    for (int64_t i = 0; i < n; i++) {
        const double size = a.re[i] * a.re[i] + a.im[i] * a.im[i];
        if (size > top) {
            top = size;
            best = i;
        }
    }
    return best;
}

/* One step of the elimination: column k. False where its pivot is no pivot. */
static bool step(const gko *w, int64_t k, number *pivot, bool *odd) {
    const int64_t left = w->n - k;
    const run col = from(w->col, k);
    entries(left, col.re, col.im, from(w->g[0], k), from(w->g[1], k), at(w->b[0], k),
            at(w->b[1], k), from(w->s, k), at(w->t, k), 1);
    entries(k, w->low.re, w->low.im, w->h[0], w->h[1], at(w->b[0], k), at(w->b[1], k), w->t,
            at(w->t, k), 1);
    put(w->low, k, (number){1, 0});
    const int64_t p = k + largest(col, left);
    if (p != k) {
        *odd = !*odd;
        exchange(w->col, k, p);
        exchange(w->s, k, p);
        for (int i = 0; i < 2; i++) exchange(w->g[i], k, p);
        for (int i = 0; i < RIGHT; i++) exchange(w->f[i], k, p);
    }
    const number d = at(w->col, k), inverse = over((number){1, 0}, d);
    *pivot = d;
    if (!(d.re * d.re + d.im * d.im > 0) || !isfinite(inverse.re) || !isfinite(inverse.im))
        return false;
    scale(left - 1, col.re + 1, col.im + 1, inverse);
    scale(k + 1, w->low.re, w->low.im, inverse);
    for (int i = 0; i < 2; i++) {
        const number g = at(w->g[i], k);
        less(left - 1, w->g[i].re + k + 1, w->g[i].im + k + 1, col.re + 1, col.im + 1, g);
        less(k + 1, w->h[i].re, w->h[i].im, w->low.re, w->low.im, g);
    }
    for (int i = 0; i < RIGHT; i++) {
        const number f = at(w->f[i], k);
        less(left - 1, w->f[i].re + k + 1, w->f[i].im + k + 1, col.re + 1, col.im + 1, f);
        less(k + 1, w->x[i].re, w->x[i].im, w->low.re, w->low.im, f);
    }
    entries(left - 1, col.re + 1, col.im + 1, from(w->b[0], k + 1), from(w->b[1], k + 1),
            at(w->g[0], k), at(w->g[1], k), from(w->t, k + 1), at(w->s, k), -1);
    scale(left - 1, col.re + 1, col.im + 1, inverse);
    for (int i = 0; i < 2; i++)
        less(left - 1, w->b[i].re + k + 1, w->b[i].im + k + 1, col.re + 1, col.im + 1,
             at(w->b[i], k));
    return true;
}

static number turn(double part) { /* e^(-i pi part) */
    return (number){cos(PI * part), -sin(PI * part)};
}
static void take(run y, int64_t n, const double _Complex *x) {
    for (int64_t j = 0; j < n; j++) put(y, j, (number){creal(x[j]), cimag(x[j])});
}
static void fourier(const void *plan, int64_t n, double _Complex *x, int sign, double by,
                    void *work) {
    lopk_cfft(plan, x, n, 1, x, n, 1, sign, by, work);
}

/* Nodes, generators, transformed unit vectors. line: n numbers. */
static void prepare(const gko *w, const double _Complex *c, const double _Complex *r,
                    double _Complex *line, const void *plan, void *work) {
    const int64_t n = w->n;
    for (int64_t k = 0; k < n; k++) {
        const number s = turn(2 * (double)k / (double)n);
        put(w->s, k, s);
        put(w->t, k, turn((2 * (double)k + 1) / (double)n));
        put(w->g[0], k, (number){1, 0});
        put(w->f[0], k, (number){1, 0});
        put(w->f[1], k, (number){s.re, -s.im});
        for (int i = 0; i < 2; i++) put(w->h[i], k, (number){0, 0});
        for (int i = 0; i < RIGHT; i++) put(w->x[i], k, (number){0, 0});
    }
    for (int64_t i = 0; i < n; i++) line[i] = i ? r[n - i] + c[i] : c[0];
    fourier(plan, n, line, -1, 1, work);
    take(w->g[1], n, line);
    for (int64_t j = 0; j < n; j++) {
        const number d = turn(-(double)j / (double)n);
        line[j] = (j < n - 1 ? c[n - 1 - j] - r[j + 1] : c[0]) * CMPLX(d.re, d.im);
    }
    fourier(plan, n, line, 1, 1 / (double)n, work);
    take(w->b[0], n, line);
    const number d = turn(-(double)(n - 1) / (double)n);
    for (int64_t j = 0; j < n; j++) line[j] = j < n - 1 ? 0 : CMPLX(d.re, d.im);
    fourier(plan, n, line, 1, 1 / (double)n, work);
    take(w->b[1], n, line);
}

lop_status lopk_gko(int64_t n, const double _Complex *c, const double _Complex *r,
                    double _Complex *x, double _Complex *y, double _Complex *pivot,
                    const void *plan, void *work, void *scratch) {
    static const double unit[4][2] = {{1, 0}, {0, -1}, {-1, 0}, {0, 1}};
    char *room = (char *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
    double _Complex *const out[RIGHT] = {x, y};
    gko w = {.n = n};
    run *const all[] = {&w.s,    &w.t,    &w.g[0], &w.g[1], &w.b[0], &w.b[1], &w.f[0],
                        &w.f[1], &w.h[0], &w.h[1], &w.x[0], &w.x[1], &w.col,  &w.low};
    bool odd = false;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        all[i]->re = (double *)(void *)room;
        all[i]->im = (double *)(void *)(room + run_bytes(n));
        room += 2 * run_bytes(n);
    }
    prepare(&w, c, r, x, plan, work);
    for (int64_t k = 0; k < n; k++) {
        number d;
        if (!step(&w, k, &d, &odd)) return LOP_SINGULAR;
        pivot[k] = CMPLX(d.re, d.im);
    }
    const double *phase = unit[(n - 1) & 3]; /* 1 / det D = (-i)^(n-1) */
    pivot[n] = CMPLX(odd ? -phase[0] : phase[0], odd ? -phase[1] : phase[1]);
    for (int i = 0; i < RIGHT; i++) {
        for (int64_t j = 0; j < n; j++) out[i][j] = CMPLX(-w.x[i].re[j], -w.x[i].im[j]);
        fourier(plan, n, out[i], 1, 1 / (double)n, work);
        for (int64_t j = 0; j < n; j++) {
            const number d = turn(-(double)j / (double)n);
            out[i][j] *= CMPLX(d.re, d.im);
        }
    }
    return LOP_OK;
}
