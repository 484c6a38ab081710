/* gen.c: see gen.h. Sizes are small, so that every shape meets every other, 0 included. */
#include "gen.h"

#include <string.h>

static int64_t pick(gen *g, int64_t n) { return world_pick(g->w, 0, n); }

lop_dtype gen_dtype(gen *g) {
    static const lop_dtype often[] = {LOP_f64, LOP_c128, LOP_c128, LOP_f32, LOP_c64,
                                      LOP_f64, LOP_i64,  LOP_i8,   LOP_u8,  LOP_i32};
    return g->dtype == LOP_NO_DTYPE ? often[pick(g, 10)] : g->dtype;
}

/* Weak int, float, complex or strong; 0, 1 and -1 often. */
lop_attr gen_coef(gen *g) {
    static const double often[] = {0, 1, -1, 2, 0.5, -3, 1.25};
    bool exact = g->dtype != LOP_NO_DTYPE && !lop_is_blas(g->dtype);
    lop_attr a = lop_attr_coef(often[pick(g, exact ? 4 : 7)], 0);
    int how = exact ? 0 : (int)pick(g, 5);
    if (a.re == (double)(int64_t)a.re && how < 2) a.i[1] = LOP_WEAK_INT;
    if (how == 3) a = lop_attr_coef(a.re, often[pick(g, 7)]);
    if (how == 4) {
        a.i[1] = LOP_STRONG;
        a.i[2] = pick(g, 2) ? LOP_f64 : LOP_f32;
    }
    if (exact && a.re < 0) a.re = 3, a.i[0] = 3;
    if (g->dtype == LOP_b8) a.i[1] = LOP_STRONG, a.i[2] = LOP_b8; /* else int64 */
    return a;
}

/* -- arrays */

/* A part of the batch: trailing dimensions, some of them 1. */
static lop_shape some_batch(gen *g) {
    lop_shape s = {0};
    int n = g->batch.ndim ? (int)pick(g, g->batch.ndim + 1) : 0;
    for (int i = g->batch.ndim - n; i < g->batch.ndim; i++)
        s.dim[s.ndim++] = pick(g, 3) ? g->batch.dim[i] : 1;
    return s;
}

static const lop_node *leaf(gen *g, int core, int64_t m, int64_t n) {
    lop_shape s = some_batch(g);
    if (core > 0) s.dim[s.ndim++] = m;
    if (core > 1) s.dim[s.ndim++] = n;
    return t_array(g->w, gen_dtype(g), core, s.ndim, s.dim);
}

/* Leaves of one dtype, as the closing rules make them: integers wrap in that one. */
const lop_node *gen_array(gen *g, int core, int64_t m, int64_t n) {
    if (!g->exprs || pick(g, g->exprs)) return leaf(g, core, m, n);
    gen one = *g;
    one.dtype = gen_dtype(g);
    lop_attr c = gen_coef(&one);
    switch (pick(g, 4)) {
    case 0: return t_two_of(g->w, "add", gen_array(&one, core, m, n), gen_array(&one, core, m, n));
    case 1: return t_two_of(g->w, "mul", gen_array(&one, core, m, n), gen_array(&one, core, m, n));
    case 2: return t_one_of(g->w, "scale", &c, gen_array(&one, core, m, n));
    default: return t_one_of(g->w, "conjugate", NULL, gen_array(&one, core, m, n));
    }
}

/* -- kinds */

/* CSR (0) or CSC (1); a random instance of the kind itself is COO. */
static const lop_node *compressed(gen *g, int64_t m, int64_t n, int format) {
    int64_t majors = format ? n : m, minors = format ? m : n,
            nnz = majors && minors ? pick(g, m + n + 1) : 0;
    lop_dtype it = pick(g, 2) ? LOP_i32 : LOP_i64;
    lop_attr a = t_ints(format, m, n, 0);
    const lop_node *c[3] = {t_array(g->w, gen_dtype(g), 1, 1, &nnz), t_array(g->w, it, 1, 1, &nnz),
                            NULL};
    int64_t pointers = majors + 1;
    c[2] = t_array(g->w, it, 1, 1, &pointers);
    if (!c[0] || !c[1] || !c[2]) goto done;
    void *index = lop_rand_find(&g->w->rand, c[1]->serial)->p,
         *ptr = lop_rand_find(&g->w->rand, c[2]->serial)->p;
    for (int64_t i = 0; i < nnz; i++) lop_set(it, index, i, (double)pick(g, minors));
    for (int64_t i = 0, at = 0; i <= majors; i++) {
        lop_set(it, ptr, i, (double)at);
        at += i + 1 == majors ? nnz - at : pick(g, nnz - at + 1);
    }
done:;
    const lop_node *out = t_node(g->w, "sparse", &a, 3, c);
    for (int i = 0; i < 3; i++) lop_node_unref(c[i]);
    return out;
}

/* Identity or zeros, now and then without a dtype or with a batch. */
static const lop_node *plain(gen *g, const char *op, int64_t m, int64_t n) {
    lop_node like = {.shape = some_batch(g), .dtype = gen_dtype(g), .core = 2};
    const lop_node *out = NULL;
    if (!pick(g, 3)) {
        like.weak = LOP_WEAK;
        like.dtype = LOP_f64;
    }
    like.shape.dim[like.shape.ndim++] = m;
    like.shape.dim[like.shape.ndim++] = n;
    return lop_node_make(&g->w->ctx, t_op(op), NULL, 0, NULL, &like, &out, &g->w->err) == LOP_OK
               ? out
               : NULL;
}

/* n in one level or, now and then, two. */
const lop_node *gen_sizes(gen *g, int64_t n) {
    lop_node like = {
        .shape = {.ndim = 1, .dim = {n}}, .dtype = LOP_f64, .weak = LOP_WEAK, .core = 0};
    const lop_node *out = NULL;
    for (int64_t p = 2; p < 4; p++)
        if (n % p == 0 && !pick(g, 3)) like.shape = (lop_shape){.ndim = 2, .dim = {n / p, p}};
    return lop_node_make(&g->w->ctx, t_op("sizes"), NULL, 0, NULL, &like, &out, &g->w->err) ==
                   LOP_OK
               ? out
               : NULL;
}

/* Two sizes. */
const lop_node *gen_pair(gen *g, int64_t m, int64_t n) {
    lop_node like = {
        .shape = {.ndim = 2, .dim = {m, n}}, .dtype = LOP_f64, .weak = LOP_WEAK, .core = 0};
    const lop_node *out = NULL;
    return lop_node_make(&g->w->ctx, t_op("sizes"), NULL, 0, NULL, &like, &out, &g->w->err) ==
                   LOP_OK
               ? out
               : NULL;
}

/* p <- a reflection I - 2 v v^H / v^H v with v its first column: unitary, complex in general. */
static void reflect(lop_dtype dt, void *p, int64_t n) {
    double _Complex v[16];
    double size = 0;
    for (int64_t i = 0; i < n; i++) {
        v[i] = lop_get(dt, p, i * n);
        if (i == 0) v[i] += 3;
        size += creal(v[i]) * creal(v[i]) + cimag(v[i]) * cimag(v[i]);
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            lop_set(dt, p, i * n + j, (i == j ? 1 : 0) - 2 * v[i] * conj(v[j]) / size);
}

/* A matrix that is what it is assumed to be, well-conditioned: symmetric, Hermitian, positive
 * definite or triangular; the triangle that is assumed to be zero is zero. */
const lop_node *gen_assumed(gen *g, int64_t n) {
    int64_t how = 1 + pick(g, 9);
    if (how > LOP_ASSUME_ORTHOGONAL) how = LOP_ASSUME_ORTHOGONAL;
    lop_dtype dt = gen_dtype(g);
    const lop_node *a = t_array(g->w, dt, 2, 2, (int64_t[]){n, n});
    if (!a) return NULL;
    void *p = lop_rand_find(&g->w->rand, a->serial)->p;
    bool unitary = how == LOP_ASSUME_ORTHOGONAL && (dt == LOP_f64 || dt == LOP_c128) && n <= 16;
    if (unitary) reflect(dt, p, n);
    if (how == LOP_ASSUME_ORTHOGONAL && !unitary) how = LOP_ASSUME_POSITIVE;
    for (int64_t i = 0; i < n && !unitary; i++)
        for (int64_t j = 0; j <= i; j++) {
            double _Complex v = lop_get(dt, p, i * n + j) * 0.25;
            if (i == j) v = 2 + (double)n;
            lop_set(dt, p, i * n + j, v);
            v = lop_get(dt, p, i * n + j);
            lop_set(dt, p, j * n + i, how == LOP_ASSUME_SYMMETRIC ? v : conj(v));
            if (i != j && how == LOP_ASSUME_LOWER) lop_set(dt, p, j * n + i, 0);
            if (i != j && how == LOP_ASSUME_UPPER) lop_set(dt, p, i * n + j, 0);
        }
    lop_attr said = t_ints(how, 0, 0, 0);
    return t_one_of(g->w, "dense", &said, a);
}

/* A random instance of the kind, its array parameters drawn anew: expressions, batches. Index
 * vectors stay. NULL: none of that shape (*st UNABLE), or out of leaves. */
const lop_node *gen_instance(gen *g, const lop_op *op, int64_t m, int64_t n, lop_status *st) {
    const lop_node *a = NULL, *child[4] = {0}, *out = NULL;
    *st = op->random(&g->w->rand, m, n, gen_dtype(g), &a);
    if (*st != LOP_OK) return NULL;
    bool arrays = a->op == op && a->n > 0 && a->n <= 4, all = true;
    for (int i = 0, j = 0; arrays && i < LOP_MAXPARAM && op->param[i].name; i++)
        if (op->param[i].role != LOP_P_DTYPE && op->param[i].role != LOP_P_ASSUME &&
            op->param[i].role != LOP_P_FLAG && op->param[i].role != LOP_P_OFFSET)
            arrays = op->param[i].role == LOP_P_ARRAY && (j++ < a->n || op->param[i].fallback);
    for (int i = 0; arrays && i < a->n; i++) arrays = a->child[i]->op == &lop_op_array;
    if (!arrays) return a;
    for (int i = 0; all && i < a->n; i++) {
        int core = a->child[i]->core;
        child[i] = gen_array(g, core,
                             core > 1 ? lop_rows(a->child[i])
                             : core   ? lop_cols(a->child[i])
                                      : 1,
                             core > 1 ? lop_cols(a->child[i]) : 1);
        all = child[i] != NULL;
    }
    if (all) out = t_node(g->w, op->name, &a->attr, a->n, child);
    for (int i = 0; i < a->n; i++) lop_node_unref(child[i]);
    lop_node_unref(a);
    if (!out) *st = LOP_NOMEM;
    return out;
}

const lop_node *gen_kind(gen *g, int64_t m, int64_t n) {
    for (;;) {
        const lop_op *op = lop_op_at((int)pick(g, lop_nops()));
        const lop_node *out = NULL;
        if (!op->random) continue;
        if (op == &lop_op_dense && m == n && !pick(g, 3)) return gen_assumed(g, n);
        if (op == &lop_op_dense) return t_one_of(g->w, "dense", NULL, gen_array(g, 2, m, n));
        if (op == &lop_op_diag && m == n && g->solves && !pick(g, 4))
            return t_one_of(g->w, "diag", NULL,
                            t_one_of(g->w, "recip", NULL, gen_array(g, 1, n, 1)));
        if (op == &lop_op_diag && m == n)
            return t_one_of(g->w, "diag", NULL, gen_array(g, 1, n, 1));
        if (op == &lop_op_toeplitz)
            return t_two_of(g->w, "toeplitz", gen_array(g, 1, m, 1), gen_array(g, 1, n, 1));
        if (op == &lop_op_circulant && m == n)
            return t_two_of(g->w, "circulant", gen_array(g, 1, n, 1), gen_sizes(g, n));
        if (op == &lop_op_hankel && m + n > 0)
            return t_two_of(g->w, "hankel", gen_array(g, 1, m + n - 1, 1), gen_pair(g, m, n));
        if (op == &lop_op_sparse && pick(g, 3)) return compressed(g, m, n, (int)pick(g, 2));
        if (op == &lop_op_zeros || (op == &lop_op_identity && m == n))
            return plain(g, op->name, m, n);
        lop_status st;
        out = gen_instance(g, op, m, n, &st);
        if (st == LOP_OK) return out;
        if (st != LOP_UNABLE) return NULL;
    }
}

/* -- operators */

static int64_t inner(gen *g) { return pick(g, 12) ? 1 + pick(g, g->largest) : 0; }

static int64_t divisor(gen *g, int64_t n) {
    int64_t d = 1 + pick(g, n > 0 ? n : 1);
    while (n > 0 && n % d) d--;
    return n > 0 ? d : inner(g);
}

static const lop_node *kron(gen *g, int64_t m, int64_t n, int depth) {
    const lop_node *f[3] = {0};
    int64_t p = divisor(g, m), q = divisor(g, n);
    int count = 1 + (int)pick(g, 3);
    if (!m || !n) count = 1;
    if (m == n && pick(g, 2)) q = p; /* square factors */
    for (int i = 0; i < count; i++) {
        bool last = i + 1 == count;
        int64_t a = last ? m : i ? 1 : p, b = last ? n : i ? 1 : q;
        f[i] = gen_operator(g, a, b, depth - 1);
        m = a ? m / a : m;
        n = b ? n / b : n;
    }
    const lop_node *out = t_node(g->w, "kron", NULL, count, f);
    for (int i = 0; i < count; i++) lop_node_unref(f[i]);
    return out;
}

static const lop_node *lowrank(gen *g, int64_t m, int64_t n, int depth) {
    bool with_c = pick(g, 2) != 0;
    int64_t p = 1 + pick(g, 2), q = with_c ? 1 + pick(g, 2) : p;
    const lop_node *f[3] = {gen_operator(g, m, p, depth - 1), gen_operator(g, n, q, depth - 1),
                            NULL};
    if (with_c) f[2] = gen_operator(g, p, q, depth - 1);
    const lop_node *out = t_node(g->w, "lowrank", NULL, with_c ? 3 : 2, f);
    for (int i = 0; i < 3; i++) lop_node_unref(f[i]);
    return out;
}

/* Something of which an inverse can be taken, mostly: c I + A. */
static const lop_node *regular(gen *g, int64_t n, int depth) {
    lop_attr c = lop_attr_coef(7 + (double)n, 0);
    if (!pick(g, 3)) return gen_assumed(g, n);
    if (!pick(g, 3)) return gen_operator(g, n, n, depth);
    const lop_node *eye = t_one_of(g->w, "scaled", &c, plain(g, "identity", n, n));
    return t_two_of(g->w, "sum", gen_operator(g, n, n, depth), eye);
}

static const lop_node *fresh_operator(gen *g, int64_t m, int64_t n, int depth) {
    lop_attr c = gen_coef(g), a = t_ints(1 + pick(g, 3), 0, 0, 0);
    int64_t t = inner(g);
    if (depth <= 0 || g->w->rand.n > LOP_RAND_LEAVES - 24) return gen_kind(g, m, n);
    switch (pick(g, 12)) {
    case 10:
    case 11: {
        const lop_node *some = gen_some_composite(g, m, n, depth);
        return some ? some : gen_operator(g, m, n, depth - 1);
    }
    case 9:
        a.i[0] = pick(g, 2);
        return t_one_of(g->w, "part", &a, gen_operator(g, m, n, depth - 1));
    case 0:
        return t_two_of(g->w, "sum", gen_operator(g, m, n, depth - 1),
                        gen_operator(g, m, n, depth - 1));
    case 1:
    case 2:
        return t_two_of(g->w, "prod", gen_operator(g, m, t, depth - 1),
                        gen_operator(g, t, n, depth - 1));
    case 3: return t_one_of(g->w, "scaled", &c, gen_operator(g, m, n, depth - 1));
    case 4: return kron(g, m, n, depth);
    case 5: return lowrank(g, m, n, depth);
    case 6:
        if (m != n) return gen_operator(g, m, n, depth - 1);
        a.i[0] = pick(g, 4);
        return t_one_of(g->w, "power", &a, gen_operator(g, n, n, depth - 1));
    case 7:
        if (m != n || !g->solves) return gen_operator(g, m, n, depth - 1);
        return t_one_of(g->w, "inverse", NULL, regular(g, n, depth - 1));
    default:
        if (!g->views) return gen_operator(g, m, n, depth - 1);
        return t_one_of(g->w, "view", &a,
                        gen_operator(g, a.i[0] & 1 ? n : m, a.i[0] & 1 ? m : n, depth - 1));
    }
}

/* What the node closes to at construction, or the node. Takes it over. */
static const lop_node *closed(gen *g, const lop_node *a) {
    const lop_node *out = NULL;
    int rule;
    if (a->n == 0 || a->n > 2) return a;
    lop_status st = lop_close(g->w->rules, &g->w->ctx, a->op, &a->attr, a->n, a->child, &out, &rule,
                              &g->w->err);
    if (st == LOP_NOMATCH) return a;
    lop_node_unref(a);
    return st == LOP_OK ? out : NULL;
}

/* One of the pool that fits, now and then. */
static const lop_node *known_operator(gen *g, int64_t m, int64_t n) {
    if (!g->pool || pick(g, 5)) return NULL;
    for (int i = 0; i < g->pool->n; i++) {
        const lop_node *a = g->pool->node[i];
        if (lop_rows(a) == m && lop_cols(a) == n) return lop_node_ref(a);
    }
    return NULL;
}

const lop_node *gen_operator(gen *g, int64_t m, int64_t n, int depth) {
    const lop_node *a = known_operator(g, m, n);
    if (a) return a;
    a = fresh_operator(g, m, n, depth);
    if (a && g->pool && pick(g, 2)) a = closed(g, a);
    if (a && g->pool && g->pool->n < GEN_POOL) g->pool->node[g->pool->n++] = lop_node_ref(a);
    return a;
}

/* -- values */

/* The operand: a float where dtypes are mixed, so that no product on the way wraps. */
static const lop_node *operand(gen *g, int64_t n, int64_t k) {
    gen one = *g;
    if (one.dtype == LOP_NO_DTYPE) one.dtype = LOP_f32 + (lop_dtype)pick(g, 4);
    return gen_array(&one, 2, n, k);
}

/* Two products of one shape joined, mostly with one operand. */
static const lop_node *two_products(gen *g, int64_t m, int64_t n, int depth) {
    int64_t k = pick(g, 4);
    const lop_node *x = operand(g, n, k);
    const lop_node *y = x && pick(g, 3) ? lop_node_ref(x) : operand(g, n, k);
    const lop_node *a = t_two_of(g->w, "apply", gen_operator(g, m, n, depth), x);
    const lop_node *b = t_two_of(g->w, "apply", gen_operator(g, m, n, depth), y);
    return t_two_of(g->w, pick(g, 2) ? "add" : "mul", a, b);
}

static const lop_node *fresh_value(gen *g, int depth) {
    static const char *const heads[] = {"todense", "diagonal", "trace", "element", "apply",
                                        "apply",   "apply",    "two",   "solve",   "scaledet"};
    const char *head = heads[pick(g, g->solves ? 10 : 8)];
    int64_t m = inner(g), n = pick(g, 2) ? m : inner(g);
    lop_attr a = t_ints(0, 0, 0, 0);
    if (!strcmp(head, "solve")) {
        const lop_node *op = regular(g, m, depth);
        return t_two_of(g->w, "solve", op, operand(g, m, pick(g, 4)));
    }
    if (!strcmp(head, "scaledet")) n = m;
    if (!strcmp(head, "two")) return two_products(g, m, n, depth);
    if (!strcmp(head, "element") && (!m || !n)) m = n = 1;
    const lop_node *op = gen_operator(g, m, n, depth);
    if (!strcmp(head, "apply")) return t_two_of(g->w, "apply", op, operand(g, n, pick(g, 4)));
    if (!strcmp(head, "diagonal")) a.i[0] = pick(g, 3) ? pick(g, 7) - 3 : 0;
    if (!strcmp(head, "element")) a = t_ints(pick(g, m), pick(g, n), 0, 0);
    return t_one_of(g->w, head, &a, op);
}

const lop_node *gen_value(gen *g, int depth) {
    gen_pool pool = {.n = 0};
    gen own = *g;
    own.pool = &pool;
    const lop_node *out = fresh_value(&own, depth);
    for (int i = 0; i < pool.n; i++) lop_node_unref(pool.node[i]);
    return out;
}

static bool has_single(const lop_node *node) {
    if (node->dtype == LOP_f32 || node->dtype == LOP_c64) return true;
    for (int i = 0; i < node->n; i++)
        if (has_single(node->child[i])) return true;
    return false;
}
double gen_slack(const lop_node *root) {
    bool wide = root->dtype == LOP_f64 || root->dtype == LOP_c128;
    return wide && has_single(root) ? 0x1p29 : 1;
}

/* -- for the rows named between */

static const lop_node *held(const lop_node *a) { return a ? lop_node_ref(a) : NULL; }
/* A Hermitian quasi-separable matrix of n rows. */
static const lop_node *quasi(gen *g, int64_t n, int64_t states) {
    const lop_attr plain = t_ints(0, 0, 0, 0);
    const lop_node *v[4] = {gen_array(g, 1, n, 1), gen_array(g, 2, n, states),
                            gen_array(g, 2, n, states), gen_array(g, 2, n, states)},
                   *out = NULL;
    if (v[0] && v[1] && v[2] && v[3]) out = t_node(g->w, "quasiseparable", &plain, 4, v);
    for (int i = 0; i < 4; i++) lop_node_unref(v[i]);
    return out;
}
/* What is read off S^-1 X S^-1, S and X quasi-separable or Toeplitz, X a diagonal for
 * weights. */
const lop_node *gen_between_alike(gen *g, const char *rule) {
    world *w = g->w;
    lop_status st = LOP_OK;
    const int64_t n = 1 + pick(g, 5);
    const bool toeplitz = strstr(rule, "toeplitz") != NULL;
    const lop_attr all = t_ints(0, 0, 0, 0);
    const lop_node *s = toeplitz ? gen_instance(g, &lop_op_toeplitz, n, n, &st)
                                 : quasi(g, n, 1 + pick(g, 2)),
                   *x = strstr(rule, "weights") ? t_one_of(w, "diag", NULL, gen_array(g, 1, n, 1))
                        : toeplitz              ? gen_instance(g, &lop_op_toeplitz, n, n, &st)
                                                : quasi(g, n, 1 + pick(g, 2)),
                   *inverse = t_one_of(w, "inverse", NULL, held(s)),
                   *half = t_two_of(w, "prod", held(inverse), x),
                   *both = t_two_of(w, "prod", half, inverse), *out = NULL;
    if (!strncmp(rule, "trace", 5)) {
        out = t_one_of(w, "trace", &all, held(both));
    } else if (!strncmp(rule, "diagonal", 8)) {
        out = t_one_of(w, "diagonal", &all, held(both));
    } else if (toeplitz) {
        const lop_attr how = gen_lines(g);
        out = t_one_of(w, "diagonal_sums", &how, held(both));
    } else if (s && both) {
        const lop_node *child[4] = {both, s->child[1], s->child[2], s->child[3]};
        out = t_node(w, "generator_sums", &all, 4, child);
    }
    lop_node_unref(both);
    lop_node_unref(s);
    return out;
}
