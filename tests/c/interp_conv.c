/* interp_conv.c: the kinds of convolution type by their definitions, for the interpreter. */
#include "interp.h"

#include <math.h>
#include <string.h>

static const char *const heads[] = {"sizes",
                                    "ravel",
                                    "circulant",
                                    "circulant_flip",
                                    "circular_convolution",
                                    "circulant_solve",
                                    "circulant_spectrum",
                                    "circulant_quotient",
                                    "concat",
                                    "hankel",
                                    "multitoeplitz",
                                    "convolution",
                                    "dft",
                                    "dct",
                                    "hadamard"};

bool ip_is_conv(const lop_node *node) {
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        if (!strcmp(node->op->name, heads[i])) return true;
    return false;
}

/* Index of level l of the raveled index i of a box. */
static int64_t level(const lop_shape *s, int64_t i, int l) {
    for (int k = s->ndim - 1; k > l; k--) i /= s->dim[k];
    return i % s->dim[l];
}

/* Products by FFT are accurate normwise: every entry counts as the whole. */
static void normwise(const ip *p, mv y, mv g) {
    long double all = 0;
    for (int64_t i = 0; i < g.m; i++) all += g.v[i].mag * g.v[i].mag;
    for (int64_t i = 0; p->fft && i < y.m * y.n; i++) y.v[i].mag = sqrtl(all);
}

/* The raveled index of i - j modulo the sizes. */
static int64_t around(const lop_shape *s, int64_t i, int64_t j) {
    int64_t at = 0;
    for (int l = 0; l < s->ndim; l++) {
        const int64_t d = level(s, i, l) - level(s, j, l);
        at = at * s->dim[l] + (d < 0 ? d + s->dim[l] : d);
    }
    return at;
}

static void do_circulant(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)b;
    const lop_shape *s = &node->child[1]->shape;
    for (int64_t i = 0; i < y.m; i++)
        for (int64_t j = 0; j < y.n; j++) y.v[i * y.n + j] = a.v[around(s, i, j)];
    normwise(p, y, a);
}
static void do_flip(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)p;
    (void)b;
    for (int64_t i = 0; i < y.m; i++) y.v[i] = a.v[around(&node->child[1]->shape, 0, i)];
}
static void do_conv(ip *p, const lop_node *node, mv y, mv a, mv b) {
    const lop_shape *s = &node->child[2]->shape;
    long double na = 0, nb = 0;
    for (int64_t i = 0; i < y.m; i++)
        for (int64_t j = 0; j < y.m; j++)
            y.v[i] = ip_add(p, y.v[i], ip_mul(p, a.v[around(s, i, j)], b.v[j]));
    for (int64_t i = 0; i < y.m; i++) {
        na += a.v[i].mag * a.v[i].mag;
        nb += b.v[i].mag * b.v[i].mag;
    }
    for (int64_t i = 0; p->fft && i < y.m; i++) y.v[i].mag = sqrtl(na * nb);
}

static void do_splice(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)p;
    (void)node;
    for (int64_t i = 0; i < y.m; i++) y.v[i] = i < a.m ? a.v[i] : b.v[i - a.m + 1];
}
static void do_hankel(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)b;
    (void)node;
    for (int64_t i = 0; i < y.m; i++)
        for (int64_t j = 0; j < y.n && i + j < a.m; j++) y.v[i * y.n + j] = a.v[i + j];
    normwise(p, y, a);
}
/* Entry (i, j) of one level is g[i - j + shift]. */
static void do_toeplitz(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)b;
    const lop_shape *g = &node->child[1]->shape, *n = &node->child[2]->shape;
    lop_shape m = *n, shift = *n;
    const int64_t mode = !strcmp(node->op->name, "multitoeplitz") ? -1 : node->attr.i[0];
    for (int l = 0; l < n->ndim; l++) {
        const int64_t k = g->dim[l], c = n->dim[l], less = k < c ? k : c;
        shift.dim[l] = mode == -1 ? c - 1 : mode == 1 ? (k - 1) / 2 : mode == 2 ? less - 1 : 0;
        m.dim[l] = mode == -1  ? k - c + 1
                   : mode == 0 ? k + c - 1
                   : mode == 2 ? k + c + 1 - 2 * less
                               : c;
    }
    for (int64_t i = 0; i < y.m; i++)
        for (int64_t j = 0; j < y.n; j++)
            for (int64_t t = 0; t < a.m; t++) {
                bool here = true;
                for (int l = 0; l < n->ndim; l++) {
                    const int64_t d =
                        level(&m, i, l) - level(n, j, l) + shift.dim[l] - level(g, t, l);
                    here = here && (mode == 3 ? d % n->dim[l] == 0 : d == 0);
                }
                if (here) y.v[i * y.n + j] = ip_add(p, y.v[i * y.n + j], a.v[t]);
            }
    normwise(p, y, a);
}

/* -- transforms */

static const long double PI = 3.14159265358979323846264338327950288L;

/* Entry (j, k) of one level of a cosine transform. */
static long double cosine(const int64_t *attr, int64_t n, int64_t j, int64_t k) {
    const int64_t type = attr[0], N = type == 1 ? 2 * (n - 1) : 2 * n;
    const bool ortho = attr[3] % 3 == 1, je = j == 0 || (type == 1 && j == n - 1),
               ke = k == 0 || (type == 1 && k == n - 1);
    long double v = attr[3] % 3 == 0 ? 1 : ortho ? 1 / sqrtl((long double)N) : 1 / (long double)N;
    if (type == 1) v *= cosl(PI * (long double)(j * k % N) / (long double)(n - 1));
    if (type == 2) v *= cosl(PI * (long double)(j * (2 * k + 1) % (4 * n)) / (long double)(2 * n));
    if (type == 3) v *= cosl(PI * (long double)((2 * j + 1) * k % (4 * n)) / (long double)(2 * n));
    if (type == 4)
        v *= cosl(PI * (long double)((2 * j + 1) * (2 * k + 1) % (8 * n)) / (long double)(4 * n));
    v *= (type == 1 || type == 3) && ke ? 1 : 2;
    if (ortho && ke && (type == 1 || type == 3)) v *= sqrtl(2);
    if (ortho && je && (type == 1 || type == 2)) v /= sqrtl(2);
    return v;
}

/* Entries of transforms have all the same weight in an error. */
static const tv *transform(ip *p, const lop_node *node) {
    lop_shape none = {0};
    const int64_t n = lop_rows(node);
    tv *t = ip_blank(p, &none, 2, n, n);
    const bool bits = !strcmp(node->op->name, "hadamard"), dft = !strcmp(node->op->name, "dft");
    for (int64_t i = 0; i < n * n; i++) {
        val v = {1, 1, 0, 1};
        const int64_t row = i / n, col = i % n, norm = node->attr.i[0];
        if (bits && __builtin_popcountll((uint64_t)(row & col)) % 2) {
            v.i = p->bools ? 1 : (uint64_t)-1;
            v.re = -1;
        }
        for (int l = 0; !bits && l < node->child[0]->shape.ndim; l++) {
            const lop_shape *s = &node->child[0]->shape;
            const int64_t j = level(s, row, l), k = level(s, col, l), m = s->dim[l];
            if (!dft) {
                const bool turned = node->attr.i[3] >= 3;
                v.re *= cosine(node->attr.i, m, turned ? k : j, turned ? j : k);
                v.mag *= 3;
                continue;
            }
            const long double a = -2 * PI * (long double)(j * k % m) / (long double)m, re = v.re,
                              f = norm == 0   ? 1
                                  : norm == 1 ? 1 / sqrtl((long double)m)
                                              : 1 / (long double)m;
            v.re = f * (re * cosl(a) - v.im * sinl(a));
            v.im = f * (re * sinl(a) + v.im * cosl(a));
        }
        t->v[i] = v;
    }
    return t;
}

/* The angle of the raveled indices j and k of a box. */
static long double turned(const lop_shape *s, int64_t j, int64_t k) {
    long double a = 0;
    for (int l = 0; l < s->ndim; l++)
        a += (long double)(level(s, j, l) * level(s, k, l) % s->dim[l]) / (long double)s->dim[l];
    return 2 * PI * a;
}
/* Where, of a whole spectrum, the half of the last level has number k. */
static int64_t in_half(const lop_shape *s, int64_t k) {
    const int64_t n = s->dim[s->ndim - 1], row = n / 2 + 1;
    return k / n * row + k % n;
}
static void do_spectrum(ip *p, const lop_node *node, mv y, mv a, mv b) {
    const lop_shape *s = &node->child[1]->shape;
    const bool half = !lop_is_complex(node->child[0]->dtype);
    (void)p;
    (void)b;
    for (int64_t k = 0; k < a.m; k++) {
        const int64_t at = half ? in_half(s, k) : k;
        if (half && 2 * level(s, k, s->ndim - 1) > s->dim[s->ndim - 1]) continue;
        for (int64_t j = 0; j < a.m; j++) {
            const long double t = turned(s, j, k);
            y.v[at].re += a.v[j].re * cosl(t) + a.v[j].im * sinl(t);
            y.v[at].im += a.v[j].im * cosl(t) - a.v[j].re * sinl(t);
            y.v[at].mag += a.v[j].mag;
        }
    }
}
/* F^-1 diag(q) F x, by the column of the circulant. */
static void do_quotient(ip *p, const lop_node *node, mv y, mv x, mv q) {
    const lop_shape *s = &node->child[0]->shape;
    const bool half = !lop_is_complex((lop_dtype)(node->attr.i[0] - 1));
    const long double n = (long double)x.m;
    (void)p;
    for (int64_t j = 0; j < x.n; j++) {
        long double nx = 0, nq = 0;
        for (int64_t i = 0; i < x.m; i++) nx += x.v[i * x.n + j].mag * x.v[i * x.n + j].mag;
        for (int64_t k = 0; k < q.m; k++) nq = q.v[k].mag > nq ? q.v[k].mag : nq;
        for (int64_t d = 0; d < x.m; d++) {
            long double re = 0, im = 0;
            for (int64_t k = 0; k < x.m; k++) {
                const bool other = half && 2 * level(s, k, s->ndim - 1) > s->dim[s->ndim - 1];
                const val v = q.v[!half ? k : in_half(s, other ? around(s, 0, k) : k)];
                const long double t = turned(s, d, k), qi = other ? -v.im : v.im;
                re += (v.re * cosl(t) - qi * sinl(t)) / n;
                im += (v.re * sinl(t) + qi * cosl(t)) / n;
            }
            for (int64_t i = 0; i < x.m; i++) { /* row around(i, -d): row - i = d */
                int64_t row = 0;
                for (int l = 0; l < s->ndim; l++)
                    row = row * s->dim[l] + (level(s, i, l) + level(s, d, l)) % s->dim[l];
                const val v = x.v[i * x.n + j];
                y.v[row * y.n + j].re += re * v.re - im * v.im;
                y.v[row * y.n + j].im += re * v.im + im * v.re;
                y.v[row * y.n + j].mag = sqrtl(nx) * nq;
            }
        }
    }
}
static const tv *quotient(ip *p, const lop_node *node) {
    const tv *x = ip_eval(p, node->child[1]), *top = ip_eval(p, node->child[2]);
    if (!x || !top) return NULL;
    tv *q = ip_blank(p, &top->batch, 1, top->m, 1);
    memcpy(q->v, top->v, (size_t)top->m * sizeof *q->v);
    for (int i = 3; i < node->n; i++) {
        const tv *by = ip_eval(p, node->child[i]);
        if (!by) return NULL;
        for (int64_t k = 0; k < q->m; k++) {
            if (by->v[k].re == 0 && by->v[k].im == 0) p->singular = true;
            q->v[k] = ip_quotient(q->v[k], by->v[k]);
        }
    }
    return ip_zip(p, node, x, q, 2, x->m, x->n, do_quotient);
}

static const tv *raveled(ip *p, const lop_node *node, const tv *a) {
    lop_shape batch = a->batch;
    batch.ndim = node->shape.ndim - 1;
    tv *y = ip_blank(p, &batch, 1, node->shape.dim[batch.ndim], 1);
    memcpy(y->v, a->v, (size_t)(y->nb * y->m) * sizeof *y->v);
    return y;
}

const tv *ip_conv(ip *p, const lop_node *node) {
    const char *s = node->op->name;
    if (!strcmp(s, "dft") || !strcmp(s, "dct") || !strcmp(s, "hadamard")) return transform(p, node);
    if (!strcmp(s, "sizes")) return ip_blank(p, &node->shape, 0, 1, 1);
    if (!strcmp(s, "circulant_quotient")) return quotient(p, node);
    const tv *a = ip_eval(p, node->child[0]);
    if (!a) return NULL;
    if (!strcmp(s, "ravel")) return raveled(p, node, a);
    if (!strcmp(s, "circulant")) return ip_zip(p, node, a, NULL, 2, a->m, a->m, do_circulant);
    if (!strcmp(s, "circulant_spectrum"))
        return ip_zip(p, node, a, NULL, 1, lop_cols(node), 1, do_spectrum);
    if (!strcmp(s, "circulant_flip")) return ip_zip(p, node, a, NULL, 1, a->m, 1, do_flip);
    if (!strcmp(s, "hankel"))
        return ip_zip(p, node, a, NULL, 2, lop_rows(node), lop_cols(node), do_hankel);
    if (!strcmp(s, "multitoeplitz") || !strcmp(s, "convolution"))
        return ip_zip(p, node, a, NULL, 2, lop_rows(node), lop_cols(node), do_toeplitz);
    if (!strcmp(s, "concat")) {
        const tv *b = ip_eval(p, node->child[1]);
        return b ? ip_zip(p, node, a, b, 1, node->shape.dim[node->shape.ndim - 1], 1, do_splice)
                 : NULL;
    }
    if (!strcmp(s, "circular_convolution")) {
        const tv *b = ip_eval(p, node->child[1]);
        return b ? ip_zip(p, node, a, b, 1, a->m, 1, do_conv) : NULL;
    }
    const tv *b = ip_eval(p, node->child[2]); /* circulant_solve */
    if (!b) return NULL;
    const lop_node *own = NULL;
    if (lop_node_make(node->ctx, lop_op_find("circulant", 9), NULL, 2, node->child, NULL, &own,
                      NULL) != LOP_OK)
        return NULL;
    const tv *c = ip_zip(p, own, a, NULL, 2, a->m, a->m, do_circulant);
    lop_node_unref(own);
    return c ? ip_solve(p, c, (lop_mode)node->attr.i[0], b) : NULL;
}
