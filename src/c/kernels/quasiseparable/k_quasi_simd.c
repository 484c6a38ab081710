/* k_quasi_simd.c: the recursion of k_quasi.c for 5 to 16 states in double precision, as sums of
 * covariances have: rows of S padded to whole vectors, a S a^T as a (a S)^T, so that all inner
 * loops run along rows, and zeros of full transitions (blocks beside each other) passed over. */
#include "kernels/common/k_clones.h"
#include "k_quasi.h"
#include "kernels/common/kernels.h"

#include <math.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-math-errno", "fp-contract=fast")
#endif
#define ALWAYS inline __attribute__((always_inline))

enum { MOST = 16 };

/* to[j, :] <- sum over l of a[j, l] from[l, :], rows of P; diagonal a: a[j] from[j, :]. */
static ALWAYS void times(const double *a, const int64_t J, const int P, const bool full,
                         const double *restrict from, double *restrict to) {
    for (int64_t j = 0; j < J; j++) {
        double sum[MOST] = {0};
        if (!full)
            for (int c = 0; c < P; c++) sum[c] = a[j] * from[j * P + c];
        for (int64_t l = 0; full && l < J; l++) {
            const double f = a[j * J + l];
            if (f == 0) continue;
            for (int c = 0; c < P; c++) sum[c] += f * from[l * P + c];
        }
        for (int c = 0; c < P; c++) to[j * P + c] = sum[c];
    }
}
static ALWAYS void gather(lopk_quasi_walk *w, double z, double left, double d) {
    const double before = w->mantissa;
    w->quad += z * z / left;
    w->least = left < w->least * d ? left / d : w->least;
    w->mantissa *= left;
    if (!(fabs(w->mantissa) > 0x1p-500 && fabs(w->mantissa) < 0x1p500)) {
        int k, l;
        w->mantissa = frexp(before, &k) * frexp(left, &l);
        w->exponent += k + l;
    }
}

static ALWAYS int64_t recursion(const lopk_quasi *g, const int P, const bool full, bool positive,
                                double *D, double *W, const double *b, lopk_quasi_walk *w) {
    const double *p = g->p, *q = g->q, *a = g->a, *d = g->d;
    const int64_t n = g->n, J = g->J, step = full ? J * J : J;
    _Alignas(64) double S[MOST * MOST] = {0}, T[MOST * MOST], U[MOST * MOST] = {0};
    double f[MOST] = {0}, num[MOST] = {0}, row[MOST] = {0};
    for (int64_t i = 0; i < n; i++) {
        double v[MOST] = {0}, left = d[i], z = b ? b[i] : 0;
        for (int64_t j = 0; i > 0 && j < J; j++)
            for (int c = 0; c < P; c++) v[c] += p[i * J + j] * S[j * P + c];
        for (int64_t j = 0; i > 0 && j < J; j++) {
            left -= p[i * J + j] * v[j];
            z -= p[i * J + j] * f[j];
        }
        if (D) D[i] = left;
        if (!(left > 0 || (left < 0 && !positive)) || left - left != 0) return i;
        if (b) gather(w, z, left, d[i]);
        if (i == n - 1) break;
        if (i > 0) {
            const double *ai = a + i * step;
            double moved[MOST];
            for (int64_t j = 0; j < J; j++) {
                double s = full ? 0 : ai[j] * v[j], h = full ? 0 : ai[j] * f[j];
                for (int64_t l = 0; full && l < J; l++) {
                    s += ai[j * J + l] * v[l];
                    h += ai[j * J + l] * f[l];
                }
                num[j] = q[i * J + j] - s;
                moved[j] = h;
            }
            for (int64_t j = 0; j < J; j++) f[j] = moved[j];
            times(ai, J, P, full, S, T);
            for (int64_t j = 0; j < J; j++)
                for (int64_t l = 0; l < J; l++) U[l * P + j] = T[j * P + l];
            times(ai, J, P, full, U, S);
        } else {
            for (int64_t j = 0; j < J; j++) num[j] = q[j];
        }
        for (int64_t j = 0; j < J; j++) row[j] = num[j] / left;
        for (int64_t j = 0; W && j < J; j++) W[i * J + j] = row[j];
        for (int64_t j = 0; j < J; j++) {
            f[j] += row[j] * z;
            for (int c = 0; c < P; c++) S[j * P + c] += num[j] * row[c];
        }
        for (int64_t j = 0; j < J; j++)
            for (int64_t l = 0; l < j; l++) S[l * P + j] = S[j * P + l];
    }
    for (int64_t j = 0; W && n > 0 && j < J; j++) W[(n - 1) * J + j] = 0;
    return n;
}
#define BY_KIND(P)                                                                                 \
    (g->full ? recursion(g, P, true, positive, D, W, b, w)                                         \
             : recursion(g, P, false, positive, D, W, b, w))
LOPK_CLONES static int64_t by_width(const lopk_quasi *g, bool positive, double *D, double *W,
                                    const double *b, lopk_quasi_walk *w) {
    if (g->J <= 8) return BY_KIND(8);
    if (g->J <= 12) return BY_KIND(12);
    return BY_KIND(16);
}
#undef BY_KIND

bool lopk_quasi_is_wide(const lopk_quasi *g) {
    return g->dt == LOP_f64 && g->J >= 4 && g->J <= MOST;
}
int64_t lopk_quasi_wide(const lopk_quasi *g, bool positive, double *D, double *W, const double *b,
                        lopk_quasi_walk *w) {
    return by_width(g, positive, D, W, b, w);
}
