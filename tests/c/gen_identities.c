/* gen_identities.c: formulas that spell out an inverse, and covariances by their precision; a part
 * of gen.h. */
#include "gen.h"

#include <string.h>

static int64_t pick(gen *g, int64_t n) { return world_pick(g->w, 0, n); }
static const lop_node *keep(const lop_node *a) { return a ? lop_node_ref(a) : NULL; }
static const lop_node *dense(gen *g, int64_t m, int64_t n) {
    return t_one_of(g->w, "dense", NULL, gen_array(g, 2, m, n));
}
static const lop_node *adjoint(gen *g, const lop_node *a) {
    const lop_attr turn = t_ints(LOP_H, 0, 0, 0);
    return t_one_of(g->w, "view", &turn, a);
}
static const lop_node *positive(gen *g, int64_t n) {
    for (int i = 0; i < 60; i++) {
        const lop_node *a = gen_assumed(g, n);
        if (a && a->attr.i[0] == LOP_ASSUME_POSITIVE) return a;
        lop_node_unref(a);
    }
    return NULL;
}
static const lop_node *inverse(gen *g, const lop_node *a) {
    return t_one_of(g->w, "inverse", NULL, a);
}
static const lop_node *identity(gen *g, int64_t n) {
    const lop_node like = {
        .shape = {.ndim = 2, .dim = {n, n}}, .dtype = LOP_f64, .weak = LOP_WEAK, .core = 2};
    const lop_node *out = NULL;
    if (lop_node_make(&g->w->ctx, &lop_op_identity, NULL, 0, NULL, &like, &out, &g->w->err) !=
        LOP_OK)
        return NULL;
    return out;
}
static const lop_node *times(gen *g, double c, const lop_node *a) {
    const lop_attr by = lop_attr_coef(c, 0);
    return t_one_of(g->w, "scaled", &by, a);
}
static const lop_node *sum(gen *g, const lop_node *a, const lop_node *b) {
    return pick(g, 2) ? t_two_of(g->w, "sum", a, b) : t_two_of(g->w, "sum", b, a);
}
static const lop_node *prod(gen *g, const lop_node *a, const lop_node *b) {
    return t_two_of(g->w, "prod", a, b);
}

/* What the rule is on: a solve with a, its determinant, the diagonal or dense form of its inverse.
 */
static const lop_node *asked(gen *g, const char *rule, const lop_node *a) {
    const lop_attr main_one = t_ints(0, 0, 0, 0),
                   d = t_ints(0, 0, 0, a ? (int64_t)a->dtype + 1 : 0);
    if (!a) return NULL;
    if (!strncmp(rule, "solve", 5) || !strncmp(rule, "apply", 5)) {
        const int64_t n = lop_rows(a);
        return t_two_of(g->w, rule[0] == 's' ? "solve" : "apply", a,
                        gen_array(g, 2, n, 1 + pick(g, 2)));
    }
    if (!strcmp(rule, "dense-spelled-product") || !strcmp(rule, "dense-corner") ||
        !strcmp(rule, "dense-smoother") || !strcmp(rule, "dense-circulants") ||
        !strcmp(rule, "dense-sum-circulants") || !strcmp(rule, "dense-scaled-circulants"))
        return t_one_of(g->w, "todense", &d, a);
    if (!strcmp(rule, "diagonal-smoother") || !strcmp(rule, "diagonal-circulants") ||
        !strcmp(rule, "diagonal-sum-circulants") || strstr(rule, "plus-identity") ||
        !strcmp(rule, "diagonal-spelled-product") || !strcmp(rule, "diagonal-corner") ||
        !strncmp(rule, "diagonal-inverses", 17))
        return t_one_of(g->w, rule[0] == 't' ? "trace" : "diagonal",
                        rule[0] == 't' ? &d : &main_one, a);
    if (!strncmp(rule, "trace", 5)) return t_one_of(g->w, "trace", &d, a);
    if (!strncmp(rule, "sums", 4)) {
        const lop_attr lines = t_ints(0, 1, pick(g, 2), 0);
        return t_one_of(g->w, "diagonal_sums", &lines, a);
    }
    if (!strncmp(rule, "scaledet", 8)) return t_one_of(g->w, "scaledet", NULL, a);
    if (!strncmp(rule, "dense", 5)) return t_one_of(g->w, "todense", &d, inverse(g, a));
    return t_one_of(g->w, "diagonal", &main_one, inverse(g, a));
}

/* c (B^-1 - B^-1 U (W + V^H B^-1 U)^-1 V^H B^-1), with B or W perhaps the identity. */
static const lop_node *spelled(gen *g) {
    const int64_t n = 3 + pick(g, 3), r = 1 + pick(g, 2);
    const bool eye = pick(g, 3) == 0;
    const lop_node *b = eye ? identity(g, n) : inverse(g, positive(g, n)), *u = dense(g, n, r),
                   *v = adjoint(g, pick(g, 2) ? keep(u) : dense(g, n, r)),
                   *w = pick(g, 2) ? identity(g, r) : inverse(g, positive(g, r)),
                   *bu = eye ? keep(u) : prod(g, keep(b), keep(u)),
                   *vb = eye ? keep(v) : prod(g, keep(v), keep(b)),
                   *s = sum(g, w, prod(g, keep(v), keep(bu))),
                   *less = prod(g, prod(g, bu, inverse(g, s)), vb), *all;
    lop_node_unref(u);
    lop_node_unref(v);
    const double c = pick(g, 2) ? 1 : 2;
    all = sum(g, c == 1 ? b : times(g, c, b), times(g, -c, less));
    return all;
}

/* B^-1 (I + U V^H B^-1)^-1, or the other way round, and B^-1 (I - U S^-1 V^H B^-1). */
static const lop_node *spelled_product(gen *g) {
    const int64_t n = 3 + pick(g, 3), r = 1 + pick(g, 2);
    const lop_node *b = pick(g, 2) ? positive(g, n) /* or one that is looked at */
                                   : sum(g, dense(g, n, n), times(g, 8, identity(g, n))),
                   *q = inverse(g, b), *u = dense(g, n, r), *v = adjoint(g, keep(u)),
                   *eye = identity(g, n), *inner;
    const bool left = pick(g, 2);
    if (pick(g, 2)) {
        const lop_node *low = prod(g, u, v);
        inner = inverse(g, sum(g, eye, left ? prod(g, keep(q), low) : prod(g, low, keep(q))));
        return left ? prod(g, inner, q) : prod(g, q, inner);
    }
    inner = inverse(g, sum(g, identity(g, r), prod(g, prod(g, keep(v), keep(q)), keep(u))));
    inner = prod(g, prod(g, u, inner), v);
    inner = left ? prod(g, keep(q), inner) : prod(g, inner, keep(q));
    inner = sum(g, eye, times(g, -1, inner));
    return left ? prod(g, inner, q) : prod(g, q, inner);
}

/* A (x) B + a real diagonal. */
static const lop_node *kron_runs(gen *g) {
    const int64_t n = 2, m = 2 + pick(g, 2);
    gen real = *g;
    real.dtype = LOP_f64;
    real.exprs = 0;
    const lop_node *d = t_one_of(g->w, "diag", NULL, gen_array(&real, 1, n * m, 1));
    return sum(g, t_two_of(g->w, "kron", positive(g, n), positive(g, m)), d);
}

/* K beside K + s I: a (K^-1 - (K + s I)^-1), their product, its inverse, or K K + s K. */
static const lop_node *shifted_pair(gen *g, const char *rule) {
    const int64_t n = 2 + pick(g, 3);
    const double s = pick(g, 2) ? 1 : 0.5;
    const bool quadratic = strstr(rule, "quadratic") != NULL;
    const lop_node *k = strncmp(rule, "solve-quadratic", 15)
                            ? positive(g, n)
                            : t_two_of(g->w, "toeplitz", gen_array(g, 1, n, 1),
                                       gen_array(g, 1, n, 1)),
                   *y;
    if (quadratic) {
        const lop_node *square = prod(g, keep(k), keep(k));
        return sum(g, square, s == 1 ? k : times(g, s, k));
    }
    if (strstr(rule, "kron")) {
        const lop_node *p = positive(g, 2), *q = positive(g, 2);
        lop_node_unref(k);
        k = t_two_of(g->w, "kron", inverse(g, keep(p)), inverse(g, keep(q)));
        y = sum(g, t_two_of(g->w, "kron", p, q), times(g, s, identity(g, 4)));
        return pick(g, 2) ? prod(g, k, inverse(g, y)) : prod(g, inverse(g, y), k);
    }
    y = sum(g, keep(k), s == 1 ? identity(g, n) : times(g, s, identity(g, n)));
    if (strstr(rule, "shifted-product")) return pick(g, 2) ? prod(g, k, y) : prod(g, y, k);
    if (strstr(rule, "shifted"))
        return pick(g, 2) ? prod(g, inverse(g, k), inverse(g, y))
                          : prod(g, inverse(g, y), inverse(g, k));
    return sum(g, inverse(g, k), times(g, -1, inverse(g, y)));
}

/* A diagonal block of the inverse of [A B; C D], A or D a diagonal, or of what has no blocks. */
static const lop_node *corner(gen *g, bool any) {
    const int64_t p = 2 + pick(g, 2), q = 1 + pick(g, 2), at = pick(g, 2), last = pick(g, 2);
    const lop_attr shape = t_ints(2, 2, 0, 0), rows = t_ints(0, at ? p : 0, 1, at ? q : p),
                   columns = t_ints(1, at ? p : 0, 1, at ? q : p);
    const lop_node *f[4] = {
        last ? dense(g, p, p) : t_one_of(g->w, "diag", NULL, gen_array(g, 1, p, 1)), dense(g, p, q),
        dense(g, q, p),
        last ? t_one_of(g->w, "diag", NULL, gen_array(g, 1, q, 1)) : dense(g, q, q)};
    const lop_node *block = any                            ? dense(g, p + q, p + q)
                            : f[0] && f[1] && f[2] && f[3] ? t_node(g->w, "block", &shape, 4, f)
                                                           : NULL;
    for (int i = 0; i < 4; i++) lop_node_unref(f[i]);
    const lop_node *cut =
        t_one_of(g->w, "sliced", pick(g, 2) ? &rows : &columns, inverse(g, block));
    return cut ? t_one_of(g->w, "sliced", cut->attr.i[0] ? &rows : &columns, cut) : NULL;
}

/* a P^-1 + b Q^-1 of definite ones, Q perhaps the identity, or a diagonal D. */
static const lop_node *parallel(gen *g, bool diagonal) {
    const int64_t n = diagonal ? 4 + pick(g, 6) : 2 + pick(g, 3);
    const lop_node *p = inverse(g, positive(g, n)),
                   *q = pick(g, 3) == 0 ? identity(g, n)
                        : diagonal      ? t_one_of(g->w, "diag", NULL, gen_array(g, 1, n, 1))
                                        : inverse(g, positive(g, n));
    if (pick(g, 2)) p = times(g, 0.5, p);
    return sum(g, p, pick(g, 2) ? times(g, 2, q) : q);
}

/* B + U U^H, or P^-1 + U U^H, with U a quarter as wide. */
static const lop_node *update(gen *g, bool sums) {
    const int64_t n = sums ? 32 : 8 + pick(g, 3), r = 1 + pick(g, 2);
    const lop_node *b = pick(g, 2) && !sums ? inverse(g, positive(g, n))
                                            : t_one_of(g->w, "diag", NULL, gen_array(g, 1, n, 1)),
                   *u = dense(g, n, r);
    if (sums) return sum(g, b, prod(g, keep(u), adjoint(g, u)));
    const lop_node *child[3] = {b, u, u},
                   *out = b && u ? t_node(g->w, "lowrankupdate", NULL, 3, child) : NULL;
    lop_node_unref(b);
    lop_node_unref(u);
    return out;
}

/* (D + U U^H)^-1 X, of an update or a sum, X on either side or on both. */
static const lop_node *beside_update(gen *g) {
    const bool sums = pick(g, 3) == 0;
    const int64_t n = sums ? 32 : 8 + pick(g, 3);
    const lop_node *d = t_one_of(g->w, "diag", NULL, gen_array(g, 1, n, 1)), *u = dense(g, n, 1),
                   *child[3] = {d, u, u}, *a = NULL;
    if (sums) {
        a = sum(g, d, prod(g, keep(u), adjoint(g, u)));
    } else {
        a = d && u ? t_node(g->w, "lowrankupdate", NULL, 3, child) : NULL;
        lop_node_unref(d);
        lop_node_unref(u);
    }
    a = inverse(g, a);
    const lop_attr how = t_ints(pick(g, 4), 0, 0, 0);
    if (how.i[0]) a = t_one_of(g->w, "view", &how, a);
    switch (pick(g, 3)) {
    case 0: return prod(g, a, dense(g, n, n));
    case 1: return prod(g, dense(g, n, n), a);
    default: return prod(g, prod(g, dense(g, n, n), a), dense(g, n, n));
    }
}

/* c I + a K D or c I + a D K. */
static const lop_node *weighted(gen *g) {
    const int64_t n = 5 + pick(g, 3);
    const lop_node *d = t_one_of(g->w, "diag", NULL, gen_array(g, 1, n, 1)), *k = positive(g, n),
                   *p = pick(g, 2) ? prod(g, k, d) : prod(g, d, k), *eye = identity(g, n);
    if (pick(g, 2)) p = times(g, 0.5, p);
    return sum(g, pick(g, 2) ? eye : times(g, 3, eye), p);
}

/* d I + a (K + c I)^-1 with a = - c d, so that K is left, or a > 0 over a Diag. */
static const lop_node *resolvent(gen *g) {
    const int64_t n = 2 + pick(g, 3);
    const bool less = pick(g, 2);
    const double d = pick(g, 2) ? 1 : 2, c = pick(g, 2) ? 1 : 0.5;
    const lop_node *eye = identity(g, n), *m, *one = keep(eye);
    if (d != 1) one = times(g, d, one);
    if (!less) {
        lop_node_unref(eye);
        m = t_one_of(g->w, "diag", NULL, gen_array(g, 1, n, 1));
        return sum(g, one, times(g, 2, inverse(g, m)));
    }
    m = sum(g, positive(g, n), c == 1 ? eye : times(g, c, eye));
    return sum(g, one, times(g, -c * d, inverse(g, m)));
}

/* p K (a K + c I)^-1, one way round or the other, of a small or a large c. */
static const lop_node *smoother(gen *g) {
    const int64_t n = 2 + pick(g, 3);
    const lop_node *k = positive(g, n), *own = keep(k),
                   *eye = times(g, pick(g, 2) ? 0.5 : 1e4, identity(g, n)), *inverted;
    if (pick(g, 2)) own = times(g, 3, own);
    if (pick(g, 2)) k = times(g, 2, k);
    inverted = inverse(g, sum(g, own, eye));
    return pick(g, 2) ? prod(g, k, inverted) : prod(g, inverted, k);
}

/* G + T^-1, I + c T^-1 D or G + c G T^-1 G of a symmetric Tridiagonal T and diagonals. */
static const lop_node *beside_band(gen *g) {
    const int64_t n = 8 + pick(g, 4), way = pick(g, 3);
    const double c = pick(g, 2) ? -1 : 0.5;
    const lop_node *e = gen_array(g, 1, n - 1, 1), *line[3] = {e, gen_array(g, 1, n, 1), e},
                   *t = e && line[1] ? t_node(g->w, "tridiagonal", NULL, 3, line) : NULL,
                   *in = inverse(g, t), *d = t_one_of(g->w, "diag", NULL, gen_array(g, 1, n, 1)),
                   *all;
    lop_node_unref(e);
    lop_node_unref(line[1]);
    if (way == 0) return sum(g, d, in);
    if (way == 1)
        return sum(g, identity(g, n), times(g, c, pick(g, 2) ? prod(g, in, d) : prod(g, d, in)));
    all = prod(g, prod(g, keep(d), in), keep(d));
    return sum(g, d, times(g, c, all));
}

/* A Circulant whose first column holds a product, as it closes where it is written, or its inverse.
 */
static const lop_node *of_several(gen *g, const char *rule) {
    const int64_t n = 2 + pick(g, 4);
    const lop_node *s = gen_sizes(g, n), *a = gen_array(g, 1, n, 1),
                   *in[3] = {keep(a), gen_array(g, 1, n, 1), keep(s)}, *c;
    if (strstr(rule, "power")) {
        const lop_attr p = t_ints(2 + pick(g, 2), 0, 0, 0);
        c = t_one_of(g->w, "power", &p, t_two_of(g->w, "circulant", keep(a), s));
        for (int i = 0; i < 3; i++) lop_node_unref(in[i]);
        lop_node_unref(a);
        return c;
    }
    c = t_node(g->w, "circular_convolution", NULL, 3, in);
    for (int i = 0; i < 3; i++) lop_node_unref(in[i]);
    if (strstr(rule, "sum")) c = t_two_of(g->w, "add", c, keep(a));
    if (strstr(rule, "flip")) c = t_two_of(g->w, "circulant_flip", c, keep(s));
    lop_node_unref(a);
    c = t_two_of(g->w, "circulant", c, s);
    return strstr(rule, "inverse") ? inverse(g, c) : c;
}

/* C D^-1 or D^-1 C of circulants, C + D^-1, or C. */
static const lop_node *circulants(gen *g, const char *rule) {
    const int64_t n = 2 + pick(g, 4);
    if (!strncmp(rule, "solve", 5) && strcmp(rule, "solve-prod-circulants"))
        return of_several(g, rule);
    const lop_node *c = t_two_of(g->w, "circulant", gen_array(g, 1, n, 1), gen_sizes(g, n)),
                   *d = t_two_of(g->w, "circulant", gen_array(g, 1, n, 1), gen_sizes(g, n));
    if (!strcmp(rule, "dense-inverse-circulants")) {
        lop_node_unref(d);
        return c;
    }
    if (strstr(rule, "sum-circulants")) return sum(g, c, inverse(g, d));
    if (strstr(rule, "apply-inverse")) return prod(g, inverse(g, c), inverse(g, d));
    if (strstr(rule, "apply-scaled")) return sum(g, c, times(g, 2, inverse(g, d)));
    if (strstr(rule, "view")) {
        const lop_attr turn = t_ints(LOP_T, 0, 0, 0);
        return sum(g, sum(g, c, identity(g, n)),
                   t_one_of(g->w, "view", &turn, sum(g, d, identity(g, n))));
    }
    if (strstr(rule, "scaled")) return times(g, 2, prod(g, c, inverse(g, d)));
    return pick(g, 2) ? prod(g, c, inverse(g, d)) : prod(g, inverse(g, d), c);
}

/* P (P + Q)^-1 Q, or P - P (P + Q)^-1 P. */
static const lop_node *parallel_sum(gen *g, bool difference) {
    const int64_t n = 2 + pick(g, 3);
    const lop_node *p = positive(g, n), *q = positive(g, n),
                   *in = inverse(g, sum(g, keep(p), keep(q)));
    if (difference) {
        const lop_node *first = keep(p);
        lop_node_unref(q);
        return sum(g, first, times(g, -1, prod(g, prod(g, keep(p), in), p)));
    }
    return pick(g, 2) ? prod(g, prod(g, p, in), q) : prod(g, p, prod(g, in, q));
}

/* c I + K, or a view of it, beside L: two Krons, or a thin K. */
static const lop_node *beside_shift(gen *g) {
    const lop_attr how = t_ints(1 + pick(g, 3), 0, 0, 0);
    const bool krons = pick(g, 2);
    const lop_node *k = krons ? t_two_of(g->w, "kron", dense(g, 2, 2), dense(g, 2, 2))
                              : prod(g, dense(g, 4, 1), dense(g, 1, 4)),
                   *l = krons ? t_two_of(g->w, "kron", dense(g, 2, 2), dense(g, 2, 2))
                              : dense(g, 4, 4),
                   *s = sum(g, pick(g, 2) ? identity(g, 4) : times(g, 0.5, identity(g, 4)), k);
    if (pick(g, 2)) s = t_one_of(g->w, "view", &how, s);
    return pick(g, 2) ? prod(g, s, l) : prod(g, l, s);
}

/* [A 0; C D] or [A B; 0 D]. */
static const lop_node *triangle_of_blocks(gen *g) {
    const int64_t p = 1 + pick(g, 3), q = 1 + pick(g, 3);
    const bool lower = pick(g, 2);
    const lop_attr shape = t_ints(2, 2, 0, 0);
    const lop_node like = {
        .shape = {.ndim = 2, .dim = {lower ? p : q, lower ? q : p}}, .dtype = g->dtype, .core = 2};
    const lop_node *zeros = NULL;
    if (lop_node_make(&g->w->ctx, &lop_op_zeros, NULL, 0, NULL, &like, &zeros, &g->w->err))
        return NULL;
    const lop_node *full = lower ? dense(g, q, p) : dense(g, p, q),
                   *f[4] = {positive(g, p), lower ? zeros : full, lower ? full : zeros,
                            pick(g, 2) ? positive(g, q) : inverse(g, positive(g, q))};
    const lop_node *block =
        f[0] && f[1] && f[2] && f[3] ? t_node(g->w, "block", &shape, 4, f) : NULL;
    for (int i = 0; i < 4; i++) lop_node_unref(f[i]);
    return block;
}

/* T + S^T of Toeplitz matrices, in a view where the rule has one. */
static const lop_node *one_toeplitz(gen *g, bool view) {
    const int64_t n = 2 + pick(g, 4);
    const lop_attr turn = t_ints(pick(g, 2) ? LOP_T : LOP_H, 0, 0, 0);
    const lop_node *t = t_two_of(g->w, "toeplitz", gen_array(g, 1, n, 1), gen_array(g, 1, n, 1)),
                   *s = t_two_of(g->w, "toeplitz", gen_array(g, 1, n, 1), gen_array(g, 1, n, 1));
    const lop_node *all = sum(g, t, t_one_of(g->w, "view", &turn, s));
    return view ? t_one_of(g->w, "view", &turn, all) : all;
}

/* Q X Q^H of a reflection, a permutation or the one times the other, perhaps beside c I. */
static const lop_node *similar(gen *g, bool picks, bool shifted) {
    const int64_t n = 2 + pick(g, 4), way = picks ? 0 : pick(g, 3);
    const lop_node *p = NULL, *h = NULL, *x = positive(g, n), *a, *left[2];
    if (way != 1 && lop_op_permutation.random(&g->w->rand, n, n, g->dtype, &p) != LOP_OK) p = NULL;
    if (way != 0) h = t_one_of(g->w, "householder", NULL, gen_array(g, 1, n, 1));
    left[0] = h ? keep(h) : NULL; /* before its adjoint takes it over */
    left[1] = p ? keep(p) : NULL;
    a = h ? prod(g, prod(g, left[0], x), adjoint(g, h)) : x;
    a = p ? prod(g, left[1], prod(g, a, adjoint(g, p))) : a;
    if (pick(g, 2)) a = times(g, 2, a);
    return shifted ? sum(g, a, times(g, 0.5, identity(g, n))) : a;
}

/* What is an update of low rank when it is multiplied out. */
static const lop_node *few(gen *g, int64_t n, bool based) {
    const lop_node *u = dense(g, n, 1), *low = prod(g, keep(u), adjoint(g, u));
    if (!based && !pick(g, 3)) return low;
    return sum(g, t_one_of(g->w, "diag", NULL, gen_array(g, 1, n, 1)), low);
}
static const lop_node *as_kind(gen *g, int64_t n) {
    const lop_node *u = dense(g, n, 1),
                   *child[3] = {t_one_of(g->w, "diag", NULL, gen_array(g, 1, n, 1)), u, u},
                   *all = child[0] && u ? t_node(g->w, "lowrankupdate", NULL, 3, child) : NULL;
    lop_node_unref(child[0]);
    lop_node_unref(u);
    return all;
}
/* Neither from the first row on nor to the last: a corner is another row's. */
static const lop_node *cut(gen *g, const lop_node *a) {
    const int64_t start = 1 + pick(g, 2), count = lop_rows(a) - 3;
    const lop_attr rows = t_ints(0, start, 1, count), columns = t_ints(1, start, 1, count);
    const bool first = pick(g, 2);
    return t_one_of(g->w, "sliced", first ? &columns : &rows,
                    t_one_of(g->w, "sliced", first ? &rows : &columns, a));
}
static const lop_node *expanded(gen *g, const char *rule) {
    const lop_attr two = t_ints(2 + pick(g, 2), 0, 0, 0), turn = t_ints(1 + pick(g, 3), 0, 0, 0);
    const bool sliced = strstr(rule, "slice") != NULL, small = sliced && pick(g, 2);
    const int64_t n = (small ? 8 : 36) + pick(g, 4), way = pick(g, 4);
    if (strstr(rule, "product")) return prod(g, as_kind(g, n), as_kind(g, n));
    const lop_node *p = few(g, n, true), *a;
    if (sliced) return cut(g, small ? p : inverse(g, p));
    a = way == 0   ? prod(g, p, few(g, n, false))
        : way == 1 ? t_one_of(g->w, "power", &two, p)
        : way == 2 ? inverse(g, p)
                   : prod(g, adjoint(g, keep(p)), p);
    a = sum(g, pick(g, 2) ? times(g, pick(g, 3) ? 0.5 : -2, a) : a,
            pick(g, 2) ? identity(g, n) : t_one_of(g->w, "diag", NULL, gen_array(g, 1, n, 1)));
    return strstr(rule, "view") ? t_one_of(g->w, "view", &turn, a) : a;
}

const lop_node *gen_identity_of_inverses(gen *g, const char *rule) {
    gen one = *g;
    one.batch = (lop_shape){0};
    one.exprs = 0;
    one.dtype = pick(g, 3) || strstr(rule, "thin") ? LOP_c128 : LOP_f64; /* where it pays */
    if (strstr(rule, "expanded")) return asked(&one, rule, expanded(&one, rule));
    if (!strcmp(rule, "scaledet-beside-band") || strstr(rule, "-weighted")) one.dtype = LOP_f64;
    return asked(
        &one, rule,
        !strcmp(rule, "trace-inverse-similar") ? inverse(&one, similar(&one, false, pick(g, 2)))
        : strstr(rule, "similar")
            ? similar(&one, !strncmp(rule, "diagonal", 8), !strncmp(rule, "solve", 5))
        : strstr(rule, "of-parallel")   ? parallel_sum(&one, strstr(rule, "-sum") != NULL)
        : strstr(rule, "plus-identity") ? beside_shift(&one)
        : strstr(rule, "inverse-block") ? triangle_of_blocks(&one)
        : strstr(rule, "solve-thin")    ? parallel(&one, false)
        : strstr(rule, "beside-band")   ? beside_band(&one)
        : strstr(rule, "circulants")    ? circulants(&one, rule)
        : strstr(rule, "-weighted")     ? weighted(&one)
        : strstr(rule, "inverse-update") && rule[0] == 't' ? beside_update(&one)
        : strstr(rule, "-kinds") ? one_toeplitz(&one, strstr(rule, "view"))
        : strstr(rule, "corner") ? corner(&one, pick(g, 2) && strcmp(rule, "diagonal-corner") &&
                                                    strcmp(rule, "dense-corner"))
        : strstr(rule, "spelled-product") ? spelled_product(&one)
        : strstr(rule, "kron-runs")       ? kron_runs(&one)
        : strstr(rule, "difference") || strstr(rule, "shifted") || strstr(rule, "quadratic")
            ? shifted_pair(&one, rule)
        : strstr(rule, "spelled")   ? spelled(&one)
        : strstr(rule, "parallel")  ? parallel(&one, false)
        : strstr(rule, "beside")    ? parallel(&one, true)
        : strstr(rule, "resolvent") ? resolvent(&one)
        : strstr(rule, "smoother")  ? smoother(&one)
                                    : update(&one, strstr(rule, "thin") != NULL));
}

/* A circulant matrix of one level, or its inverse, beside a Toeplitz matrix: the trace, or what is
 * summed along diagonals. */
const lop_node *gen_beside_circulant(gen *g, const char *rule) {
    world *w = g->w;
    gen one = *g;
    one.batch = (lop_shape){0};
    one.dtype = LOP_c128;
    one.exprs = 0;
    const int64_t n = 1 + pick(g, 5);
    const lop_attr mode = t_ints(1 + pick(g, 3), 0, 0, 0), none = t_ints(0, 0, 0, 0);
    const lop_node like = {.shape = {.ndim = 1, .dim = {n}}, .dtype = LOP_f64, .weak = LOP_WEAK};
    const lop_node *size = NULL;
    if (lop_node_make(&w->ctx, &lop_op_sizes, NULL, 0, NULL, &like, &size, &w->err) != LOP_OK)
        return NULL;
    const lop_node *c = t_two_of(w, "circulant", gen_array(&one, 1, n, 1), size),
                   *t = t_two_of(w, "toeplitz", gen_array(&one, 1, n, 1), gen_array(&one, 1, n, 1));
    if (g->solves && pick(g, 2)) c = t_one_of(w, "inverse", NULL, c);
    if (g->views && !pick(g, 3)) t = t_one_of(w, "view", &mode, t);
    const bool first = pick(g, 2);
    const lop_node *both = t_two_of(w, "prod", first ? c : t, first ? t : c);
    if (!strncmp(rule, "trace", 5)) return t_one_of(w, "trace", &none, both);
    const lop_attr how = t_ints(0, 1, pick(g, 2), 0);
    return t_one_of(w, "diagonal_sums", &how, both);
}

/* The inverse of u v, of rank one, beside something. */
const lop_node *gen_beside_deficient(gen *g, const char *rule) {
    world *w = g->w;
    gen one = *g;
    one.batch = (lop_shape){0};
    const int64_t n = 2 + pick(g, 3);
    const bool first = pick(g, 2) != 0;
    const lop_node *u = t_one_of(w, "dense", NULL, gen_array(&one, 2, n, 1)),
                   *v = t_one_of(w, "dense", NULL, gen_array(&one, 2, 1, n)),
                   *inverse = t_one_of(w, "inverse", NULL, t_two_of(w, "prod", u, v)),
                   *b = gen_operator(&one, n, n, 1),
                   *both = t_two_of(w, "prod", first ? inverse : b, first ? b : inverse);
    const lop_attr at = t_ints(0, 0, 0, both ? (int64_t)both->dtype + 1 : 0);
    return t_one_of(w, strncmp(rule, "trace", 5) ? "diagonal" : "trace", &at, both);
}
