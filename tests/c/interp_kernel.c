/* interp_kernel.c: kernel matrices by their definition, for the interpreter. */
#include "interp.h"

#include <math.h>

enum { MOST = 5 };

/* One factor at points x and y of d coordinates; l: one or d length scales. `mag`: what an error of
 * the last place in each difference makes of the value. */
static val entry(int word, int degree, const val *x, const val *y, int64_t d, const val *l,
                 int64_t nl, long double variance, long double s) {
    const long double pi = acosl(-1.0L);
    long double r2 = 0, dot = 0, sines = 0, turns = 0, size = 0, k = 0, mag = 1;
    for (int64_t q = 0; q < d; q++) {
        const long double length = l ? l[nl == 1 ? 0 : q].re : 1, t = x[q].re - y[q].re;
        r2 += t * t / (length * length);
        dot += x[q].re * y[q].re / (length * length);
        size += fabsl(x[q].re * y[q].re) / (length * length);
        sines += powl(sinl(pi * t / s) / length, 2);
        turns += pi * fabsl(t / s) / (length * length);
    }
    const long double r = sqrtl(r2), a = word == 2 ? sqrtl(3) * r : sqrtl(5) * r;
    switch (word) {
    case 0: k = expl(-r2 / 2), mag = 1 + r2; break;
    case 1: k = expl(-r), mag = 1 + r; break;
    case 2: k = (1 + a) * expl(-a), mag = 1 + a; break;
    case 3: k = (1 + a + a * a / 3) * expl(-a), mag = 1 + a; break;
    case 4: k = powl(1 + r2 / (2 * s), -s), mag = (1 + s) * (1 + fabsl(logl(k))); break;
    case 5: k = expl(-2 * sines), mag = 1 + 2 * sines + 4 * turns; break;
    case 6:
        k = powl(dot + s, degree);
        size = powl(size + fabsl(s), degree) * (1 + degree);
        break;
    default: k = dot; break;
    }
    val v = {.re = k * variance};
    v.mag = word < 6 ? fabsl(v.re) * mag * 4 : 4 * fabsl(variance) * size;
    return v;
}

const tv *ip_kernel(ip *p, const lop_node *node) {
    const tv *child[5 * MOST];
    lop_shape batch = {0};
    for (int i = 0; i < node->n; i++) {
        lop_shape both;
        child[i] = ip_eval(p, node->child[i]);
        if (!child[i]) return NULL;
        if (!ip_broadcast(&batch, &child[i]->batch, &both)) return NULL;
        batch = both;
    }
    tv *y = ip_blank(p, &batch, 2, lop_rows(node), lop_cols(node));
    for (int64_t e = 0; e < y->nb; e++)
        for (int64_t i = 0; i < y->m; i++)
            for (int64_t j = 0; j < y->n; j++) {
                val all = {.i = 1, .re = 1, .mag = 1};
                for (int64_t f = 0, c = 0; f < node->attr.i[2]; f++) {
                    const int64_t bits = node->attr.i[0] >> (7 * f);
                    const mv x = ip_part(child[c], &batch, e), z = ip_part(child[c + 1], &batch, e);
                    mv l = {0};
                    long double variance = 1, shape = 1;
                    c += 2;
                    if (bits & 16) variance = ip_part(child[c++], &batch, e).v[0].re;
                    if (bits & 32) l = ip_part(child[c++], &batch, e);
                    if (bits & 64) shape = ip_part(child[c++], &batch, e).v[0].re;
                    const val v =
                        entry((int)(bits & 15), (int)(node->attr.i[1] >> (8 * f) & 255),
                              x.v + i * x.n, z.v + j * z.n, x.n, l.v, l.m, variance, shape);
                    all.re *= v.re;
                    all.mag *= v.mag;
                }
                y->v[(e * y->m + i) * y->n + j] = all;
            }
    return y;
}
