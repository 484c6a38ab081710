/* gen_partials.c: what operators mean for a factor of a Kron, for the rows named partial-kron,
 * -krons, -inverse-kron, -inverse-update, -inverse-thin-sum, -turned, -expanded and -product; and
 * diagonals and traces for those named between-expanded; sums, diagonals and traces for those
 * named toeplitz-words. */
#include "gen.h"

#include <string.h>

static int64_t pick(gen *g, int64_t n) { return world_pick(g->w, 0, n); }

static const lop_node *dense(gen *g, int64_t m, int64_t n) {
    return t_one_of(g->w, "dense", NULL, gen_array(g, 2, m, n));
}

static const lop_node *definite(gen *g, int64_t n) {
    const lop_node *a = NULL;
    for (int i = 0; i < 60 && !(a && a->attr.i[0] == LOP_ASSUME_POSITIVE); i++) {
        lop_node_unref(a);
        a = gen_assumed(g, n);
    }
    return a;
}

static const lop_node *definite_kron(gen *g, const int64_t *n) {
    return t_two_of(g->w, "kron", definite(g, n[0]), definite(g, n[1]));
}
static const lop_node *any_kron(gen *g, const int64_t *n) {
    return t_two_of(g->w, "kron", dense(g, n[0], n[0]), dense(g, n[1], n[1]));
}

/* a, or a view of it. */
static const lop_node *seen(gen *g, const lop_node *a) {
    const lop_attr turn = t_ints(1 + pick(g, 3), 0, 0, 0);
    return g->views && !pick(g, 4) ? t_one_of(g->w, "view", &turn, a) : a;
}

static const lop_node *keep(const lop_node *a) { return a ? lop_node_ref(a) : NULL; }

/* a x a or a a; takes over both. */
static const lop_node *around(gen *g, const lop_node *a, const lop_node *x) {
    const lop_node *half = x ? t_two_of(g->w, "prod", keep(a), x) : keep(a);
    return t_two_of(g->w, "prod", half, a);
}

/* B + U C U^H of one column; as it is written, or a LowRankUpdate. */
static const lop_node *update(gen *g, const int64_t *n, bool written) {
    const int64_t rows = n[0] * n[1];
    const lop_node *b = definite_kron(g, n), *u = dense(g, rows, 1);
    const lop_attr back = t_ints(LOP_H, 0, 0, 0);
    if (written) {
        const lop_node *uh = t_one_of(g->w, "view", &back, keep(u));
        return t_two_of(g->w, "sum", b, t_two_of(g->w, "prod", u, uh));
    }
    const lop_node *child[3] = {b, u, u}, *out = NULL;
    if (b && u) out = t_node(g->w, "lowrankupdate", NULL, 3, child);
    lop_node_unref(b);
    lop_node_unref(u);
    return out;
}

static const lop_node *krons(gen *g, const int64_t *n) {
    const lop_node *a = t_one_of(g->w, "inverse", NULL, definite_kron(g, n)), *x = any_kron(g, n);
    if (pick(g, 2)) x = t_two_of(g->w, "sum", x, any_kron(g, n));
    return around(g, seen(g, a), seen(g, x));
}

static const lop_node *turned(gen *g, const int64_t *n) {
    const lop_attr turn = t_ints(pick(g, 2) ? LOP_T : LOP_H, 0, 0, 0);
    const int64_t rows = n[0] * n[1];
    const lop_node like = {
        .shape = {.ndim = 2, .dim = {rows, rows}}, .dtype = LOP_f64, .weak = LOP_WEAK, .core = 2};
    const lop_node *eye = NULL;
    if (lop_node_make(&g->w->ctx, &lop_op_identity, NULL, 0, NULL, &like, &eye, &g->w->err) !=
        LOP_OK)
        return NULL;
    const lop_node *s = t_two_of(g->w, "sum", any_kron(g, n), eye),
                   *in = t_one_of(g->w, "view", &turn, t_one_of(g->w, "inverse", NULL, s));
    return around(g, in, pick(g, 3) ? any_kron(g, n) : NULL);
}

const lop_node *gen_partial(gen *g, const char *rule) {
    world *w = g->w;
    gen one = *g;
    one.batch = (lop_shape){0};
    one.exprs = 0;
    if (strstr(rule, "update") || strstr(rule, "thin-sum") || strstr(rule, "expanded"))
        one.dtype = pick(g, 2) ? LOP_f64 : LOP_c128; /* of one precision */
    const bool expanded = strstr(rule, "expanded") != NULL;
    int64_t n[2] = {2 + pick(g, 2), 2 + pick(g, 2)};
    if (expanded || strstr(rule, "thin-sum")) n[0] = n[1] = 6;
    const lop_attr side = t_ints(pick(g, 2), 0, 0, 0);
    const int64_t size = n[side.i[0] ? 0 : 1], rows = n[0] * n[1];
    const lop_node *a = NULL;
    if (expanded)
        a = around(&one, t_one_of(w, "inverse", NULL, update(&one, n, pick(g, 2))),
                   any_kron(&one, n));
    else if (strstr(rule, "update"))
        a = t_one_of(w, "inverse", NULL, update(&one, n, false));
    else if (strstr(rule, "thin-sum"))
        a = t_one_of(w, "inverse", NULL, update(&one, n, true));
    else if (strstr(rule, "turned"))
        a = turned(&one, n);
    else if (strstr(rule, "product"))
        a = t_two_of(w, "prod", dense(&one, rows, 1), dense(&one, 1, rows));
    else if (strstr(rule, "inverse-kron"))
        a = t_one_of(w, "inverse", NULL, definite_kron(&one, n));
    else
        a = strstr(rule, "krons") ? krons(&one, n) : any_kron(&one, n);
    const lop_node *child[2] = {a, gen_array(&one, 2, size, size)}, *out = NULL;
    if (child[0] && child[1]) out = t_node(w, "kron_partial", &side, 2, child);
    lop_node_unref(child[0]);
    lop_node_unref(child[1]);
    return out;
}

/* D + u v^H of 36 rows and more. */
static const lop_node *diagonal_and_thin(gen *g, int64_t n, bool own) {
    const lop_attr back = t_ints(LOP_H, 0, 0, 0);
    const lop_node *u = dense(g, n, 1), *v = own ? keep(u) : dense(g, n, 1),
                   *low = t_two_of(g->w, "prod", u, t_one_of(g->w, "view", &back, v));
    return t_two_of(g->w, "sum", t_one_of(g->w, "diag", NULL, gen_array(g, 1, n, 1)), low);
}
const lop_node *gen_between_expanded(gen *g, const char *rule) {
    const lop_attr all = t_ints(0, 0, 0, 0);
    gen one = *g;
    one.batch = (lop_shape){0};
    one.exprs = 0;
    one.dtype = pick(g, 2) ? LOP_f64 : LOP_c128;
    const int64_t n = 36 + pick(g, 4);
    const lop_node *in =
        t_one_of(g->w, "inverse", NULL, diagonal_and_thin(&one, n, pick(g, 2) != 0));
    const lop_node *p =
        around(&one, in, pick(g, 3) ? diagonal_and_thin(&one, n, false) : dense(&one, n, n));
    return t_one_of(g->w, strncmp(rule, "trace", 5) ? "diagonal" : "trace", &all, p);
}

/* What is read off S^-1 D S^-1, S a Kron and the identity, D a diagonal: beside one of its factors,
 * or the trace. */
const lop_node *gen_between_weights(gen *g, const char *rule) {
    world *w = g->w;
    gen one = *g;
    one.batch = (lop_shape){0};
    one.exprs = 0;
    one.dtype = LOP_f64;
    const int64_t n[2] = {2 + pick(g, 2), 2 + pick(g, 2)}, all = n[0] * n[1];
    const lop_attr side = t_ints(pick(g, 2), 0, 0, 0), none = t_ints(0, 0, 0, 0);
    const lop_node like = {
        .shape = {.ndim = 2, .dim = {all, all}}, .dtype = LOP_f64, .weak = LOP_WEAK, .core = 2};
    const lop_node *eye = NULL, *f[2] = {definite(&one, n[0]), definite(&one, n[1])}, *out = NULL;
    const lop_node *m = t_one_of(w, "todense", &none, keep(f[side.i[0] ? 0 : 1]));
    if (lop_node_make(&w->ctx, &lop_op_identity, NULL, 0, NULL, &like, &eye, &w->err) != LOP_OK)
        eye = NULL;
    const lop_node *s = t_two_of(w, "sum", t_two_of(w, "kron", f[0], f[1]), eye),
                   *inverse = t_one_of(w, "inverse", NULL, s),
                   *d = t_one_of(w, "diag", NULL, gen_array(&one, 1, all, 1)),
                   *both = t_two_of(w, "prod", t_two_of(w, "prod", keep(inverse), d), inverse);
    const lop_node *child[2] = {both, m};
    if (both && m)
        out = strncmp(rule, "trace", 5) ? t_node(w, "kron_partial", &side, 2, child)
                                        : t_one_of(w, "trace", &none, keep(both));
    lop_node_unref(both);
    lop_node_unref(m);
    return out;
}

/* A diagonal of what the inverse of a band, or A^-1 X A^-1, means for a factor of a KronSum. */
const lop_node *gen_diagonal_of_partial(gen *g) {
    world *w = g->w;
    gen one = *g;
    lop_status st = LOP_OK;
    one.batch = (lop_shape){0};
    one.exprs = 0;
    one.dtype = pick(g, 2) ? LOP_f64 : LOP_c128;
    const int64_t n = 12, places = 2 + pick(g, 3);
    const bool first = pick(g, 2);
    const lop_attr side = t_ints(first, 0, 0, 0), turn = t_ints(1 + pick(g, 3), 0, 0, 0),
                   none = t_ints(0, 0, 0, 0), k = t_ints(first ? pick(g, 3) - 1 : 0, 0, 0, 0);
    const lop_node like = {
        .shape = {.ndim = 2, .dim = {places, places}}, .dtype = one.dtype, .core = 2};
    const lop_node *eye = NULL, *out = NULL;
    if (lop_node_make(&w->ctx, &lop_op_identity, NULL, 0, NULL, &like, &eye, &w->err) != LOP_OK)
        eye = NULL;
    const lop_node *p =
        t_one_of(w, "inverse", NULL, gen_instance(&one, &lop_op_tridiagonal, n, n, &st));
    if (p && pick(g, 2)) p = t_one_of(w, "view", &turn, p);
    if (p && pick(g, 3) == 0)
        p = t_two_of(
            w, "prod",
            t_two_of(w, "prod", keep(p), gen_instance(&one, &lop_op_tridiagonal, n, n, &st)), p);
    const lop_node *child[2] = {p, t_one_of(w, "todense", &none, eye)};
    if (child[0] && child[1])
        out = t_one_of(w, "diagonal", &k,
                       t_one_of(w, "dense", NULL, t_node(w, "kron_partial", &side, 2, child)));
    lop_node_unref(child[0]);
    lop_node_unref(child[1]);
    return out;
}

/* The sums along diagonals of (T + u v^H)^-1 X (T + u v^H)^-1, T Toeplitz, X that or a diagonal. */
const lop_node *gen_sums_expanded(gen *g) {
    gen one = *g;
    lop_status st = LOP_OK;
    one.batch = (lop_shape){0};
    one.exprs = 0;
    one.dtype = pick(g, 2) ? LOP_f64 : LOP_c128;
    const int64_t n = 36 + pick(g, 4);
    const lop_attr back = t_ints(LOP_H, 0, 0, 0), how = t_ints(0, pick(g, 2), pick(g, 2), 0);
    const lop_node *low = t_two_of(g->w, "prod", dense(&one, n, 1),
                                   t_one_of(g->w, "view", &back, dense(&one, n, 1))),
                   *in = t_one_of(
                       g->w, "inverse", NULL,
                       t_two_of(g->w, "sum", gen_instance(&one, &lop_op_toeplitz, n, n, &st), low)),
                   *x = pick(g, 2) ? t_one_of(g->w, "diag", NULL, gen_array(&one, 1, n, 1))
                                   : gen_instance(&one, &lop_op_toeplitz, n, n, &st);
    return t_one_of(g->w, "diagonal_sums", &how, around(&one, in, x));
}

/* Of D + U U^H of more than ten rows a column, whose safer way has generators: a solution, the
 * determinant, the inverse's diagonal. */
const lop_node *gen_of_generators(world *w, int which) {
    static const char *const ask[] = {"solve", "scaledet", "diagonal"};
    const int64_t n = 12;
    gen g = {.w = w, .dtype = LOP_f64};
    const lop_node *u = t_one_of(w, "dense", NULL, t_array(w, LOP_f64, 2, 2, (int64_t[]){n, 1})),
                   *d = t_one_of(w, "diag", NULL, t_array(w, LOP_f64, 1, 1, &n));
    const lop_node *child[3] = {d, u, u},
                   *a = d && u ? t_node(w, "lowrankupdate", NULL, 3, child) : NULL;
    const lop_attr dt = t_ints(0, 0, 0, (int64_t)LOP_f64 + 1);
    lop_node_unref(u);
    lop_node_unref(d);
    if (which == 0) return t_two_of(w, "solve", a, gen_array(&g, 2, n, 1));
    if (which == 2) a = t_one_of(w, "inverse", NULL, a);
    return t_one_of(w, ask[which], &dt, a);
}

/* (C^-1 - (C + I)^-1)^-1 x of a Circulant: by its eigenvalues. */
const lop_node *gen_circulant_fraction(world *w) {
    const lop_node like = {.shape = {.ndim = 2, .dim = {4, 4}}, .dtype = LOP_f64, .core = 2};
    const lop_node *eye = NULL;
    const lop_attr less = lop_attr_coef(-1, 0);
    const int64_t n = 4;
    gen g = {.w = w, .dtype = LOP_f64};
    if (lop_node_make(&w->ctx, &lop_op_identity, NULL, 0, NULL, &like, &eye, &w->err) != LOP_OK)
        return NULL;
    const lop_node *c = t_two_of(w, "circulant", t_array(w, LOP_f64, 1, 1, &n), gen_sizes(&g, n)),
                   *shifted = t_two_of(w, "sum", lop_node_ref(c), eye),
                   *first = t_one_of(w, "inverse", NULL, c),
                   *second = t_one_of(w, "scaled", &less, t_one_of(w, "inverse", NULL, shifted));
    return t_two_of(w, "solve", t_two_of(w, "sum", first, second), gen_array(&g, 2, n, 1));
}

/* Products of Toeplitz matrices T, S and X, inverses of T and S, and a diagonal D (+ u v^H). */
const lop_node *gen_toeplitz_words(gen *g, const char *rule) {
    world *w = g->w;
    gen one = *g;
    lop_status st = LOP_OK;
    one.batch = (lop_shape){0};
    one.exprs = 0;
    one.dtype = pick(g, 2) ? LOP_f64 : LOP_c128;
    const bool diagonal = !strncmp(rule, "diagonal", 8), sums = !strncmp(rule, "sums", 4);
    const int64_t n = 9 + pick(g, 3);
    const lop_attr turn = t_ints(1 + pick(g, 3), 0, 0, 0), back = t_ints(LOP_H, 0, 0, 0),
                   how = t_ints(0, sums ? pick(g, 2) : 0, sums ? pick(g, 2) : 0, 0);
    const lop_node *t = t_one_of(w, "inverse", NULL,
                                 gen_instance(&one, &lop_op_toeplitz, n, n, &st)),
                   *s = pick(g, 2) ? keep(t)
                                   : t_one_of(w, "inverse", NULL,
                                              gen_instance(&one, &lop_op_toeplitz, n, n, &st)),
                   *x = gen_instance(&one, &lop_op_toeplitz, n, n, &st),
                   *d = diagonal ? gen_instance(&one, &lop_op_toeplitz, n, n, &st)
                                 : t_one_of(w, "diag", NULL, gen_array(&one, 1, n, 1));
    if (d && !diagonal && pick(g, 2) == 0) d = t_one_of(w, "view", &turn, d);
    if (s && pick(g, 3) == 0) s = t_one_of(w, "view", &turn, s);
    if (pick(g, 3) == 0)
        d = t_two_of(
            w, "sum", d,
            t_two_of(w, "prod", dense(&one, n, 1), t_one_of(w, "view", &back, dense(&one, n, 1))));
    const lop_node *all = t_two_of(w, "prod", t, d);
    if (pick(g, 2)) {
        all = t_two_of(w, "prod", all, s);
        all = t_two_of(w, "prod", all, x);
    } else {
        all = t_two_of(w, "prod", s, t_two_of(w, "prod", x, all));
    }
    return t_one_of(w, sums ? "diagonal_sums" : diagonal ? "diagonal" : "trace", &how, all);
}
