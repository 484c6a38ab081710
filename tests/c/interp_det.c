/* interp_det.c: the oracle's determinants, by elimination in long double. */
#include "interp.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef long double _Complex number;

static number load(val v) { return CMPLXL(v.re, v.im); }
static val made(number z, long double mag) { return (val){0, creall(z), cimagl(z), mag}; }

/* mag: all terms of Leibniz' formula with the largest element for every one. */
val ip_determinant(const val *a, int64_t n) {
    number *w = malloc((size_t)(n * n + 1) * sizeof *w), all = 1;
    if (!w) abort();
    long double top = 0;
    for (int64_t i = 0; i < n * n; i++) {
        w[i] = load(a[i]);
        if (a[i].mag > top) top = a[i].mag;
    }
    for (int64_t c = 0; c < n && all != 0; c++) {
        int64_t best = c;
        for (int64_t i = c; i < n; i++)
            if (cabsl(w[i * n + c]) > cabsl(w[best * n + c])) best = i;
        for (int64_t t = 0; t < n && best != c; t++) {
            number s = w[c * n + t];
            w[c * n + t] = w[best * n + t];
            w[best * n + t] = s;
        }
        all *= best == c ? w[c * n + c] : -w[c * n + c];
        for (int64_t i = c + 1; i < n && all != 0; i++) {
            number f = w[i * n + c] / w[c * n + c];
            for (int64_t t = c; t < n; t++) w[i * n + t] -= f * w[c * n + t];
        }
    }
    free(w);
    return made(all, powl((long double)n * top, (long double)n));
}

static val times(val a, val b) { return made(load(a) * load(b), a.mag * b.mag); }

val ip_det_times(val a, val b) { return times(a, b); }

static val power(ip *p, val a, int64_t k) {
    val all = {0, 1, 0, 1};
    long double size = hypotl(a.re, a.im);
    if (k < 0 && size < 1e-9L) p->singular = true;
    if (k < 0) a = made(1 / load(a), a.mag / (size * size) + 1 / size);
    for (int64_t i = 0; i < (k < 0 ? -k : k); i++) all = times(all, a);
    return all;
}

void ip_det(ip *p, const lop_node *node, val *y, const val *a, int64_t n, const val *b) {
    const char *s = node->op->name;
    if (!strcmp(s, "mul_det")) {
        *y = times(a[0], b[0]);
    } else if (!strcmp(s, "pow_det")) {
        *y = power(p, a[0], node->attr.i[0]);
    } else if (!strcmp(s, "scale_det")) {
        number c = CMPLXL((long double)node->attr.re, (long double)node->attr.im);
        *y = times(power(p, made(c, cabsl(c)), node->attr.i[3]), a[0]);
    } else if (!strcmp(s, "vector_det")) {
        *y = (val){0, 1, 0, 1};
        for (int64_t i = 0; i < n; i++) *y = times(*y, a[i]);
    } else {
        *y = ip_determinant(a, n);
    }
}

val ip_detclosed(const lop_node *node) {
    const int64_t *i = node->attr.i, q = (i[0] % 4 + 4) % 4;
    const long double v =
        powl((long double)i[1], (long double)i[2] / 2) * powl(2, (long double)i[3] / 2);
    return (val){0, q % 2 ? 0 : v * (long double)(1 - q), q % 2 ? v * (long double)(2 - q) : 0, v};
}
