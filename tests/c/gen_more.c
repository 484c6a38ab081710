/* gen_more.c: composites of several operands over random operators; a part of gen.h. */
#include "gen.h"

#include <string.h>

static int64_t pick(gen *g, int64_t n) { return world_pick(g->w, 0, n); }

static const lop_node *made(gen *g, const lop_op *op, const lop_attr *attr, int n,
                            const lop_node **f) {
    const lop_node *out = t_node(g->w, op->name, attr, n, f);
    for (int i = 0; i < n; i++) lop_node_unref(f[i]);
    return out;
}

/* Dense blocks of one size. */
static const lop_node *alike(gen *g, const lop_op *op, int64_t m) {
    const lop_node *f[4] = {0};
    const int64_t p = m % 2 ? 1 : m / 2;
    for (int64_t i = 0; i < m / p; i++) {
        gen plain = *g;
        plain.exprs = pick(g, 4) ? 0 : g->exprs;
        f[i] = t_one_of(g->w, "dense", NULL, gen_array(&plain, 2, p, p));
    }
    return made(g, op, NULL, (int)(m / p), f);
}

/* Blocks along the diagonal; of a square matrix mostly square ones. */
static const lop_node *blockdiag(gen *g, const lop_op *op, int64_t m, int64_t n, int depth) {
    const lop_node *f[3] = {0};
    int count = 1 + (int)pick(g, 3);
    bool square = m == n && pick(g, 4);
    if (m == n && m > 1 && m < 5 && !pick(g, 3)) return alike(g, op, m);
    for (int i = 0; i < count; i++) {
        bool last = i + 1 == count;
        int64_t p = last ? m : pick(g, m + 1), q = last ? n : square ? p : pick(g, n + 1);
        f[i] = gen_operator(g, p, q, depth - 1);
        m -= p;
        n -= q;
    }
    return made(g, op, NULL, count, f);
}

/* Square blocks on the diagonal, zeros on one side of them. */
static const lop_node *triangle(gen *g, const lop_op *op, int64_t m, int depth) {
    const lop_node *f[4] = {0};
    lop_attr shape = t_ints(2, 2, 0, 0);
    const int64_t size[2] = {pick(g, m + 1), 0}, zero = 1 + pick(g, 2);
    for (int64_t i = 0; i < 4; i++) {
        const int64_t p = i / 2 ? m - size[0] : size[0], q = i % 2 ? m - size[0] : size[0];
        lop_node like = {.shape = {.ndim = 2, .dim = {p, q}}, .dtype = LOP_f64, .core = 2};
        like.weak = LOP_WEAK;
        if (i != zero)
            f[i] = gen_operator(g, p, q, depth - 1);
        else if (lop_node_make(g->w->rand.ctx, &lop_op_zeros, NULL, 0, NULL, &like, &f[i],
                               g->w->rand.err) != LOP_OK)
            f[i] = NULL;
    }
    return made(g, op, &shape, 4, f);
}

static const lop_node *block(gen *g, const lop_op *op, int64_t m, int64_t n, int depth) {
    const lop_node *f[4] = {0};
    lop_attr shape = t_ints(1 + pick(g, 2), 1 + pick(g, 2), 0, 0);
    if (m == n && !pick(g, 3)) return triangle(g, op, m, depth);
    int64_t rows[2] = {m, 0}, cols[2] = {n, 0};
    if (shape.i[0] == 2) rows[1] = m - (rows[0] = pick(g, m + 1));
    if (shape.i[1] == 2) cols[1] = n - (cols[0] = pick(g, n + 1));
    int count = (int)(shape.i[0] * shape.i[1]);
    for (int i = 0; i < count; i++)
        f[i] = gen_operator(g, rows[i / shape.i[1]], cols[i % shape.i[1]], depth - 1);
    return made(g, op, &shape, count, f);
}

static const lop_node *update(gen *g, const lop_op *op, int64_t m, int64_t n, int depth) {
    bool with_c = pick(g, 2) != 0;
    int64_t p = 1 + pick(g, 2), q = with_c ? 1 + pick(g, 2) : p;
    const lop_node *f[4] = {gen_operator(g, m, n, depth - 1), gen_operator(g, m, p, depth - 1),
                            gen_operator(g, n, q, depth - 1), NULL};
    if (with_c) f[3] = gen_operator(g, p, q, depth - 1);
    return made(g, op, NULL, with_c ? 4 : 3, f);
}

static const lop_node *kronsum(gen *g, const lop_op *op, int64_t m, int64_t n, int depth) {
    const lop_node *f[3] = {0};
    int64_t p = 1 + pick(g, m > 0 ? m : 1);
    while (m > 0 && m % p) p--;
    if (m != n) return NULL;
    int count = 1 + (int)pick(g, 3);
    bool diagonal = !pick(g, 4);
    for (int i = 0; i < count; i++) {
        int64_t size = i + 1 == count ? m : i ? 1 : p;
        f[i] = diagonal ? t_one_of(g->w, "diag", NULL, gen_array(g, 1, size, 1))
                        : gen_operator(g, size, size, depth - 1);
        m = size ? m / size : m;
    }
    return made(g, op, NULL, count, f);
}

const lop_node *gen_composite(gen *g, const lop_op *op, int64_t m, int64_t n, int depth) {
    if (g->w->rand.n > LOP_RAND_LEAVES - 24) return NULL;
    if (op == &lop_op_blockdiag) return blockdiag(g, op, m, n, depth);
    if (op == &lop_op_block) return block(g, op, m, n, depth);
    if (op == &lop_op_kronsum) return kronsum(g, op, m, n, depth);
    if (op == &lop_op_lowrankupdate) return update(g, op, m, n, depth);
    return NULL;
}

const lop_node *gen_some_composite(gen *g, int64_t m, int64_t n, int depth) {
    static const lop_op *const ops[] = {&lop_op_blockdiag, &lop_op_block, &lop_op_lowrankupdate,
                                        &lop_op_kronsum};
    return gen_composite(g, ops[pick(g, (int64_t)(sizeof ops / sizeof ops[0]))], m, n, depth);
}

/* -- sums with a thin part */

static const lop_node *keep(const lop_node *a) { return a ? lop_node_ref(a) : NULL; }

static const lop_node *positive(gen *g, int64_t n) {
    for (int i = 0; i < 40; i++) {
        const lop_node *a = gen_assumed(g, n);
        if (a && a->attr.i[0] == LOP_ASSUME_POSITIVE) return a;
        lop_node_unref(a);
    }
    return NULL;
}

static const lop_node *diagonal(gen *g, int64_t n) {
    return t_one_of(g->w, "diag", NULL, gen_array(g, 1, n, 1));
}

static const lop_node *base(gen *g, int64_t n) {
    lop_attr c = lop_attr_coef(2, 0);
    if (pick(g, 2)) return t_one_of(g->w, "inverse", NULL, positive(g, n));
    if (pick(g, 2)) return t_one_of(g->w, "scaled", &c, diagonal(g, n));
    lop_node like = {
        .shape = {.ndim = 2, .dim = {n, n}}, .dtype = LOP_f64, .weak = LOP_WEAK, .core = 2};
    const lop_node *eye = NULL;
    lop_status st =
        lop_node_make(&g->w->ctx, &lop_op_identity, NULL, 0, NULL, &like, &eye, &g->w->err);
    return st == LOP_OK ? t_one_of(g->w, "scaled", &c, eye) : NULL;
}

/* A sum that is large enough for the lemma to pay. */
/* What the rule asks of the matrix s, which it takes over: the determinant, or the diagonal of the
 * inverse. */
static const lop_node *of_matrix(gen *g, const char *rule, const lop_node *s) {
    world *w = g->w;
    if (!strncmp(rule, "scaledet", 8)) return t_one_of(w, "scaledet", NULL, s);
    const bool sums = !strncmp(rule, "sums", 4);
    const lop_attr how = sums ? gen_lines(g) : t_ints(0, 0, 0, 0);
    const char *action = sums                         ? "diagonal_sums"
                         : !strncmp(rule, "dense", 5) ? "todense"
                                                      : "diagonal";
    return t_one_of(w, action, &how, t_one_of(w, "inverse", NULL, s));
}

const lop_node *gen_thin_det(gen *g, const char *rule) {
    int64_t n = 90 + pick(g, 3), r = 1 + pick(g, 2);
    lop_attr adjoint = t_ints(LOP_H, 0, 0, 0);
    world *w = g->w;
    gen one = *g;
    one.batch = (lop_shape){0};
    one.exprs = 0;
    const lop_node *u = t_one_of(w, "dense", NULL, gen_array(&one, 2, n, r)),
                   *v = pick(g, 2) ? keep(u) : t_one_of(w, "dense", NULL, gen_array(&one, 2, n, r)),
                   *low = t_two_of(w, "prod", u, t_one_of(w, "view", &adjoint, v));
    return of_matrix(g, rule, t_two_of(w, "sum", diagonal(&one, n), low));
}

const lop_node *gen_shift(gen *g) {
    int64_t n = pick(g, 4);
    lop_attr c = gen_coef(g);
    const lop_node *a = gen_array(g, 2, n, n), *eye = NULL;
    lop_node like = {
        .shape = {.ndim = 2, .dim = {n, n}}, .dtype = a ? a->dtype : LOP_f64, .core = 2};
    if (lop_node_make(&g->w->ctx, &lop_op_eye, NULL, 0, NULL, &like, &eye, &g->w->err) != LOP_OK)
        eye = NULL;
    if (pick(g, 2)) eye = t_one_of(g->w, "scale", &c, eye);
    const bool last = pick(g, 2);
    return t_two_of(g->w, "add", last ? a : eye, last ? eye : a);
}

const lop_node *gen_digits(gen *g, const char *rule) {
    gen wide = *g, narrow = *g;
    const bool solve = !strncmp(rule, "solve", 5), exact = !solve && !lop_is_blas(g->dtype);
    const int64_t n = 1 + pick(g, 4), k = 1 + pick(g, 3);
    wide.dtype = exact ? LOP_i64 : pick(g, 2) ? LOP_c128 : LOP_f64;
    narrow.dtype = exact ? LOP_i8 : wide.dtype == LOP_c128 && pick(g, 2) ? LOP_c64 : LOP_f32;
    narrow.exprs = 0;
    const lop_node *a = gen_operator(&wide, n, n, 2);
    return t_two_of(g->w, solve ? "solve" : "apply", a, gen_array(&narrow, 2, n, k));
}

const lop_node *gen_thin_solve(gen *g) {
    int64_t n = 3 + pick(g, 3), r = 1 + pick(g, 2), k = 1 + pick(g, 2), how = pick(g, 4);
    lop_attr adjoint = t_ints(LOP_H, 0, 0, 0), half = lop_attr_coef(0.5, 0);
    world *w = g->w;
    const lop_node *u = t_one_of(w, "dense", NULL, gen_array(g, 2, n, r)),
                   *v = pick(g, 3) ? keep(u) : t_one_of(w, "dense", NULL, gen_array(g, 2, n, r)),
                   *m = how == 0   ? NULL
                        : how == 1 ? diagonal(g, r)
                                   : t_one_of(w, "inverse", NULL, positive(g, r));
    const lop_node *vh = t_one_of(w, "view", &adjoint, v),
                   *low = m ? t_two_of(w, "prod", t_two_of(w, "prod", keep(u), keep(m)), vh)
                            : t_two_of(w, "prod", keep(u), vh);
    if (pick(g, 2)) low = t_one_of(w, "scaled", &half, low);
    const lop_node *s =
        pick(g, 2) ? t_two_of(w, "sum", base(g, n), low) : t_two_of(w, "sum", low, base(g, n));
    const lop_node *x = gen_array(g, 2, r, k);
    if (m && pick(g, 2))
        x = m->op == &lop_op_inverse ? t_two_of(w, "solve", keep(m->child[0]), x)
                                     : t_two_of(w, "apply", keep(m), x);
    x = t_two_of(w, "apply", keep(u), x);
    lop_node_unref(u);
    lop_node_unref(m);
    return t_two_of(w, "solve", s, x);
}

const lop_node *gen_normal(gen *g) {
    int64_t n = 1 + pick(g, 3), m = n + 1 + pick(g, 3), k = 1 + pick(g, 2);
    lop_attr adjoint = t_ints(LOP_H, 0, 0, 0);
    world *w = g->w;
    const lop_node *r = t_one_of(w, "dense", NULL, gen_array(g, 2, m, n)),
                   *rh = t_one_of(w, "view", &adjoint, keep(r)),
                   *b = pick(g, 2) ? t_two_of(w, "apply", keep(rh), gen_array(g, 2, m, k))
                                   : gen_array(g, 2, n, k);
    return t_two_of(w, "solve", t_two_of(w, "prod", rh, r), b);
}

static const lop_node *sparse_factor(gen *g, int64_t m, int64_t n) {
    const int mode = (int)pick(g, 4);
    const bool turns = (mode & LOP_T) != 0;
    const lop_attr attr = t_ints(mode, 0, 0, 0);
    const lop_node *a = NULL;
    for (int i = 0; i < 400 && !(a && a->op == &lop_op_sparse); i++) {
        lop_node_unref(a);
        a = gen_kind(g, turns ? n : m, turns ? m : n);
    }
    return mode ? t_one_of(g->w, "view", &attr, a) : a;
}

const lop_node *gen_sparse_pair(gen *g, const char *rule) {
    const int64_t m = 1 + pick(g, 4), k = 1 + pick(g, 4), n = pick(g, 2) ? m : 1 + pick(g, 4);
    gen one = *g;
    one.batch = (lop_shape){0};
    const int form = (int)pick(g, 3);
    const lop_node *a = sparse_factor(&one, m, k), *b = sparse_factor(&one, k, n),
                   *d = form ? t_one_of(g->w, "diag", NULL, gen_array(&one, 1, k, 1)) : NULL;
    if (form == 1) a = t_two_of(g->w, "prod", a, d);
    if (form == 2) b = t_two_of(g->w, "prod", d, b);
    const bool dense = !strncmp(rule, "dense", 5), trace = !strncmp(rule, "trace", 5);
    const lop_attr at = t_ints(dense || trace ? 0 : pick(g, 7) - 3, 0, 0, 0);
    return t_one_of(g->w,
                    dense   ? "todense"
                    : trace ? "trace"
                            : "diagonal",
                    &at, t_two_of(g->w, "prod", a, b));
}

const lop_node *gen_inverse_blocks(gen *g, const char *rule) {
    const lop_node *f[3] = {0};
    int64_t n = 1 + pick(g, 3), k = 1 + pick(g, 2);
    int count = 2 + (int)pick(g, 2);
    gen one = *g;
    one.batch = (lop_shape){0};
    for (int i = 0; i < count; i++) {
        const lop_node *a = one.dtype == LOP_NO_DTYPE ? NULL : positive(&one, n);
        f[i] = t_one_of(g->w, "inverse", NULL, a);
    }
    const lop_node *all =
        f[0] && f[1] && (count < 3 || f[2]) ? made(&one, &lop_op_blockdiag, NULL, count, f) : NULL;
    for (int i = 0; !all && i < count; i++) lop_node_unref(f[i]);
    const lop_attr main = t_ints(0, 0, 0, 0),
                   dense = t_ints(0, 0, 0, all ? (int64_t)all->dtype + 1 : 0);
    if (!strncmp(rule, "dense", 5)) return t_one_of(g->w, "todense", &dense, all);
    if (!strncmp(rule, "diagonal", 8)) return t_one_of(g->w, "diagonal", &main, all);
    return t_two_of(g->w, "apply", all, gen_array(&one, 2, n * count, k));
}

const lop_node *gen_plain_blocks(gen *g) {
    const lop_node *f[6] = {0};
    const int count = 4 + (int)pick(g, 3);
    const lop_attr mode = t_ints(pick(g, 4), 0, 0, 0);
    int64_t cols = 0;
    bool ok = true;
    gen one = *g;
    one.batch = (lop_shape){0};
    one.dtype = LOP_c128;
    for (int i = 0; i < count; i++) {
        const int64_t m = 1 + pick(g, 3), n = 1 + pick(g, 3);
        f[i] = t_one_of(g->w, "dense", NULL, gen_array(&one, 2, m, n));
        if (mode.i[0]) f[i] = t_one_of(g->w, "view", &mode, f[i]);
        ok = ok && f[i];
        cols += mode.i[0] & LOP_T ? m : n;
    }
    const lop_node *all = ok ? made(&one, &lop_op_blockdiag, NULL, count, f) : NULL;
    for (int i = 0; !ok && i < count; i++) lop_node_unref(f[i]);
    return t_two_of(g->w, "apply", all, gen_array(&one, 2, cols, 1 + pick(g, 2)));
}

/* -- sums of Krons that one basis makes diagonal */

/* Hermitian, or `sure` positive definite; half of them without saying so. */
static const lop_node *hermitian(gen *g, int64_t n, bool sure) {
    const lop_node *a = NULL;
    for (int i = 0; i < 60; i++) {
        lop_node_unref(a);
        a = gen_assumed(g, n);
        if (a && (a->attr.i[0] == LOP_ASSUME_POSITIVE ||
                  (!sure && a->attr.i[0] == LOP_ASSUME_HERMITIAN)))
            break;
    }
    if (!a || pick(g, 2)) return a;
    const lop_node *plain = t_one(g->w, "dense", NULL, a->child[0]);
    lop_node_unref(a);
    return plain;
}

/* Kron + c I, Kron + Kron, Kronecker sums + c I; a factor may be no Hermitian one. */
const lop_node *gen_spectral(gen *g, const char *rule) {
    const int64_t n[2] = {1 + pick(g, 3), 1 + pick(g, 3)}, how = pick(g, 4);
    const bool sum = strstr(rule, "kronsum") || how == 0, two = !sum && how > 1;
    lop_attr c = lop_attr_coef(0.5 + (double)pick(g, 3), 0), turn = t_ints(1 + pick(g, 3), 0, 0, 0);
    const lop_node *f[4] = {0}, *eye = NULL;
    world *w = g->w;
    lop_node like = {.shape = {.ndim = 2, .dim = {n[0] * n[1], n[0] * n[1]}},
                     .dtype = LOP_f64,
                     .weak = LOP_WEAK,
                     .core = 2};
    for (int i = 0; i < (two ? 4 : 2); i++) {
        if (i < 2 && !pick(g, 5))
            f[i] = t_one_of(w, "dense", NULL, gen_array(g, 2, n[i], n[i]));
        else
            f[i] = i > 1 && how == 3 ? diagonal(g, n[i % 2]) : hermitian(g, n[i % 2], i > 1);
        if (g->views && !pick(g, 5)) f[i] = t_one_of(w, "view", &turn, f[i]);
    }
    const lop_node *s = t_two_of(w, sum ? "kronsum" : "kron", f[0], f[1]);
    if (two) s = t_two_of(w, "sum", s, t_two_of(w, "kron", f[2], f[3]));
    if (!two && !strstr(rule, "kronsum")) {
        if (lop_node_make(&w->ctx, &lop_op_identity, NULL, 0, NULL, &like, &eye, &w->err) != LOP_OK)
            eye = NULL;
        s = t_two_of(w, "sum", s, t_one_of(w, "scaled", &c, eye));
    }
    if (!strncmp(rule, "partial", 7)) {
        const lop_attr side = t_ints(pick(g, 2), 0, 0, 0);
        const int64_t size = n[side.i[0] ? 0 : 1];
        const lop_node *child[2] = {t_one_of(w, "inverse", NULL, s), gen_array(g, 2, size, size)};
        const lop_node *all = t_node(w, "kron_partial", &side, 2, child);
        lop_node_unref(child[0]);
        lop_node_unref(child[1]);
        return all;
    }
    if (strncmp(rule, "solve", 5) != 0) return of_matrix(g, rule, s);
    return t_two_of(w, "solve", s, gen_array(g, 2, n[0] * n[1], 1 + pick(g, 2)));
}

/* -- sums that are solved together */

static const lop_node *some_identity(gen *g, int64_t n) {
    const lop_attr c = lop_attr_coef(0.5 + (double)pick(g, 3), 0);
    const lop_node like = {
        .shape = {.ndim = 2, .dim = {n, n}}, .dtype = LOP_f64, .weak = LOP_WEAK, .core = 2};
    const lop_node *eye = NULL;
    if (lop_node_make(&g->w->ctx, &lop_op_identity, NULL, 0, NULL, &like, &eye, &g->w->err) !=
        LOP_OK)
        return NULL;
    return pick(g, 2) ? t_one_of(g->w, "scaled", &c, eye) : eye;
}
static const lop_node *acted_on(gen *g, const char *rule, const lop_node *s) {
    if (!s || strncmp(rule, "solve", 5) != 0) return of_matrix(g, rule, s);
    const int64_t n = lop_rows(s);
    return t_two_of(g->w, "solve", s, gen_array(g, 2, n, 1 + pick(g, 2)));
}

const lop_node *gen_line(gen *g, const char *rule) {
    enum { ROWS = 64 }; /* from which one state pays, of Matern 1/2 */
    const lop_attr attr = t_ints(1, 0, 1, 0);
    gen one = *g;
    one.batch = (lop_shape){0};
    one.dtype = LOP_f64;
    one.exprs = 0;
    const lop_node *x = gen_array(&one, 2, ROWS, 1), *both[2] = {x, x}, *k, *u;
    if (!x) return NULL;
    k = t_node(g->w, "kernel", &attr, 2, both);
    lop_node_unref(x);
    if (strstr(rule, "line-sum") || strstr(rule, "update"))
        k = pick(g, 2) ? t_two_of(g->w, "sum", k, some_identity(&one, ROWS))
                       : t_two_of(g->w, "sum", some_identity(&one, ROWS), k);
    if (strstr(rule, "update") && (u = gen_array(&one, 2, ROWS, 1))) {
        u = t_one_of(g->w, "dense", NULL, u);
        const lop_node *child[3] = {k, u, u};
        const lop_node *all = k && u ? t_node(g->w, "lowrankupdate", NULL, 3, child) : NULL;
        lop_node_unref(k);
        lop_node_unref(u);
        k = all;
    }
    return acted_on(&one, rule, k);
}

/* D + [E u] [E u]^H, where E E^T is a diagonal. */
static const lop_node *beside_a_diagonal(gen *g, int64_t n) {
    const lop_attr row = t_ints(1, 2, 0, 0), turn = t_ints(LOP_T, 0, 0, 0);
    lop_status st = LOP_OK;
    const lop_node *d = diagonal(g, n), *f[2] = {NULL};
    f[0] = t_one_of(g->w, "view", &turn, gen_instance(g, &lop_op_selection, n / 2, n, &st));
    const lop_node *h[2] = {f[0] ? lop_node_ref(f[0]) : NULL,
                            t_one_of(g->w, "dense", NULL, gen_array(g, 2, n, 1))};
    f[1] = t_one_of(g->w, "view", &turn, t_one_of(g->w, "dense", NULL, gen_array(g, 2, 1, n)));
    const lop_node *u = made(g, &lop_op_block, &row, 2, f), *v = made(g, &lop_op_block, &row, 2, h);
    return made(g, &lop_op_lowrankupdate, NULL, 3, (const lop_node *[]){d, u, v});
}

const lop_node *gen_settled(gen *g, const char *rule) {
    const int64_t n = 1 + pick(g, 4);
    const lop_attr mode = t_ints(1 + pick(g, 3), 0, 0, 0);
    gen one = *g;
    one.batch = (lop_shape){0};
    lop_status st = LOP_UNABLE;
    if (strstr(rule, "update-settled")) {
        one.dtype = LOP_c128;
        return acted_on(&one, rule, beside_a_diagonal(&one, 2 + pick(g, 4)));
    }
    const lop_node *c = gen_instance(&one, &lop_op_circulant, n, n, &st), *s;
    s = pick(g, 2) ? t_two_of(g->w, "sum", c, some_identity(&one, n))
                   : t_two_of(g->w, "sum", some_identity(&one, n), c);
    if (strstr(rule, "view")) s = t_one_of(g->w, "view", &mode, s);
    return acted_on(&one, rule, s);
}

/* A view of a, which it takes over. */
static const lop_node *viewed(gen *g, const lop_node *a) {
    const lop_attr mode = t_ints(1 + pick(g, 3), 0, 0, 0);
    return t_one_of(g->w, "view", &mode, a);
}

const lop_node *gen_view_update(gen *g) {
    const int64_t n = 2 + pick(g, 4);
    gen one = *g;
    one.batch = (lop_shape){0};
    one.dtype = LOP_c128;
    const lop_node *u = t_one_of(g->w, "dense", NULL, gen_array(&one, 2, n, 1)),
                   *v = t_one_of(g->w, "dense", NULL, gen_array(&one, 2, n, 1)),
                   *low = t_two_of(g->w, "lowrank", u, v);
    return t_two_of(g->w, "solve", viewed(&one, t_two_of(g->w, "sum", diagonal(&one, n), low)),
                    gen_array(&one, 2, n, 1 + pick(g, 2)));
}

/* [A B; C D] with A (or D) a diagonal or a Kron; of the rows of views, seen through one. */
const lop_node *gen_bordered(gen *g, const char *rule) {
    const bool views = strstr(rule, "block-views");
    const int64_t p = 2 + pick(g, 2), q = 1 + pick(g, 2);
    const bool last = pick(g, 2);
    const int64_t size[2] = {last ? q : p, last ? p : q};
    const lop_attr shape = t_ints(2, 2, 0, 0);
    const lop_node *f[4] = {0};
    world *w = g->w;
    for (int i = 0; i < 4; i++) {
        const int64_t rows = size[i / 2], cols = size[i % 2];
        if (i != (last ? 3 : 0))
            f[i] = pick(g, 3) ? t_one_of(w, "dense", NULL, gen_array(g, 2, rows, cols))
                              : gen_operator(g, rows, cols, 1);
        else
            f[i] = views || pick(g, 2)
                       ? diagonal(g, p)
                       : t_two_of(w, "kron", diagonal(g, 1),
                                  t_one_of(w, "dense", NULL, gen_array(g, 2, p, p)));
        if (views && i == (last ? 3 : 0)) f[i] = viewed(g, f[i]);
    }
    const lop_node *block =
        f[0] && f[1] && f[2] && f[3] ? made(g, &lop_op_block, &shape, 4, f) : NULL;
    for (int i = 0; !block && i < 4; i++) lop_node_unref(f[i]);
    if (!strncmp(rule, "scaledet", 8)) return t_one_of(w, "scaledet", NULL, block);
    if (!strncmp(rule, "diagonal", 8)) {
        const lop_attr at = t_ints(0, 0, 0, block ? (int64_t)block->dtype + 1 : 0);
        return t_one_of(w, "diagonal", &at, t_one_of(w, "inverse", NULL, block));
    }
    return t_two_of(w, "solve", block, gen_array(g, 2, p + q, 1 + pick(g, 2)));
}

/* The diagonal or trace of a product of two bands that is far narrower than it is long. */
const lop_node *gen_band_product(gen *g, const char *rule) {
    const int64_t n = 10 + pick(g, 3);
    const lop_node *f[2] = {0};
    lop_status st = LOP_OK;
    world *w = g->w;
    for (int i = 0; i < 2; i++) f[i] = gen_instance(g, &lop_op_tridiagonal, n, n, &st);
    const lop_node *both = t_two_of(w, "prod", f[0], f[1]);
    const lop_attr at = t_ints(strncmp(rule, "trace", 5) ? pick(g, 5) - 2 : 0, 0, 0,
                               both ? (int64_t)both->dtype + 1 : 0);
    return t_one_of(w, strncmp(rule, "trace", 5) ? "diagonal" : "trace", &at, both);
}

/* Up to four results of a program, of square operators of one size. */
const lop_node *gen_results(gen *g) {
    const int64_t n = 1 + pick(g, 3), count = 1 + pick(g, 4);
    const lop_node *program = NULL;
    world *w = g->w;
    for (int64_t k = 0; k < count; k++) {
        const lop_node *of[2] = {gen_operator(g, n, n, 1), program};
        /* integers' determinants are floats, whose bytes nobody compares */
        const int64_t what = pick(g, of[0] && lop_is_blas(of[0]->dtype) ? 5 : 4);
        const lop_attr how = what == 3 ? t_ints(what, pick(g, n), pick(g, n), 0)
                                       : t_ints(what, what == 1 ? pick(g, 3) - 1 : 0, 0, 0);
        const lop_node *more = of[0] ? t_node(w, "results", &how, program ? 2 : 1, of) : NULL;
        lop_node_unref(of[0]);
        if (!more) continue; /* it would not begin at a multiple of its element's size */
        lop_node_unref(program);
        program = more;
    }
    return program ? t_one_of(w, "todense", NULL, program) : NULL;
}

const lop_node *gen_entries(gen *g, const char *rule) {
    const int64_t n = 8 + pick(g, 3);
    const bool half = !strcmp(rule, "entries-triangle");
    lop_status st = LOP_OK;
    world *w = g->w;
    const lop_node *a = gen_instance(g, &lop_op_tridiagonal, n, n, &st);
    if (!strcmp(rule, "entries-view")) {
        const lop_attr mode = t_ints(pick(g, 2) ? LOP_T : LOP_H, 0, 0, 0);
        const lop_node *u = t_one_of(w, "dense", NULL, gen_array(g, 2, n, 2)),
                       *v = t_one_of(w, "dense", NULL, gen_array(g, 2, 2, n));
        lop_node_unref(a);
        a = t_one_of(w, "view", &mode, t_two_of(w, "prod", u, v));
    }
    if (half) {
        const lop_attr lower = t_ints(pick(g, 2), 0, 0, 0);
        const lop_node like = {.shape = {.ndim = 2, .dim = {n, n}}, .dtype = LOP_f64, .core = 2};
        const lop_node *ones = NULL;
        if (lop_node_make(&w->ctx, &lop_op_ones, NULL, 0, NULL, &like, &ones, &w->err) == LOP_OK)
            a = t_two_of(w, "elementwise", a, t_one_of(w, "triangular", &lower, ones));
    }
    return gen_at_places(g, half ? 0 : pick(g, 5), a);
}

lop_attr gen_lines(gen *g) {
    const int64_t anti = world_pick(g->w, 0, 3) == 0, circular = world_pick(g->w, 0, 3) == 0;
    return t_ints(anti, circular, !anti && world_pick(g->w, 0, 3) == 0, 0);
}

/* X beside some powers of S^-1 in a trace. Takes both over. */
static const lop_node *beside_powers(gen *g, const lop_node *inverse, const lop_node *x) {
    const lop_attr all = t_ints(0, 0, 0, 0), c = lop_attr_coef(pick(g, 2) ? 0.5 : -1, 0);
    world *w = g->w;
    const lop_node *twice = t_two_of(w, "prod", keep(inverse), keep(inverse)),
                   *sum = t_two_of(w, "sum", pick(g, 2) ? keep(inverse) : keep(twice),
                                   t_one_of(w, "scaled", &c, keep(inverse))),
                   *by = keep(pick(g, 2)   ? sum
                              : pick(g, 2) ? twice
                                           : inverse);
    const bool left = pick(g, 2) != 0;
    lop_node_unref(twice);
    lop_node_unref(sum);
    lop_node_unref(inverse);
    return t_one_of(w, "trace", &all, t_two_of(w, "prod", left ? by : x, left ? x : by));
}

/* S^-1 X S^-1 of a low-rank update with X diagonal, and of Kron + c I with X a Kron. */
const lop_node *gen_between(gen *g, const char *rule) {
    world *w = g->w;
    gen one = *g;
    one.batch = (lop_shape){0};
    one.exprs = 0;
    if (strstr(rule, "bands")) return gen_between_bands(&one, rule);
    if (strstr(rule, "quasi") || strstr(rule, "toeplitz") || strstr(rule, "generators"))
        return gen_between_alike(&one, rule);
    const lop_attr all = t_ints(0, 0, 0, 0), side = t_ints(pick(g, 2), 0, 0, 0);
    const lop_node *s = NULL, *x = NULL;
    int64_t n[2] = {2 + pick(g, 2), 2 + pick(g, 2)};
    if (strstr(rule, "update")) {
        const int64_t rows = 4 + pick(g, 5);
        const lop_node *u = t_one_of(w, "dense", NULL, gen_array(&one, 2, rows, 1)),
                       *child[3] = {diagonal(&one, rows), u, u};
        s = child[0] && u ? t_node(w, "lowrankupdate", NULL, 3, child) : NULL;
        lop_node_unref(child[0]);
        lop_node_unref(u);
        x = diagonal(&one, rows);
    } else {
        s = t_two_of(w, "kron", hermitian(&one, n[0], true), hermitian(&one, n[1], true));
        s = t_two_of(w, "sum", s, some_identity(&one, n[0] * n[1]));
        x = t_two_of(w, "kron", t_one_of(w, "dense", NULL, gen_array(&one, 2, n[0], n[0])),
                     t_one_of(w, "dense", NULL, gen_array(&one, 2, n[1], n[1])));
    }
    const lop_node *inverse = t_one_of(w, "inverse", NULL, s);
    if (!strcmp(rule, "trace-between-spectral") && pick(g, 3)) return beside_powers(g, inverse, x);
    const lop_node *half = t_two_of(w, "prod", keep(inverse), x),
                   *both = t_two_of(w, "prod", half, inverse);
    if (!strncmp(rule, "trace", 5)) return t_one_of(w, "trace", &all, both);
    if (!strncmp(rule, "diagonal", 8)) return t_one_of(w, "diagonal", &all, both);
    if (!strncmp(rule, "entries", 7)) return gen_at_places(&one, 0, both);
    const int64_t size = n[side.i[0] ? 0 : 1];
    const lop_node *child[2] = {both, gen_array(&one, 2, size, size)}, *out = NULL;
    if (child[0] && child[1]) out = t_node(w, "kron_partial", &side, 2, child);
    lop_node_unref(child[0]);
    lop_node_unref(child[1]);
    return out;
}
