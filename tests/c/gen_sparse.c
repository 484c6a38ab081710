/* gen_sparse.c: actions on E + c U M^-1 V^H of a diagonal E and sparse others, on its derivative by
 * M, and on U M^-1 V^H itself; on the inverse of E + U V^H beside U; a part of gen.h. */
#include "gen.h"

#include <string.h>

static int64_t pick(gen *g, int64_t n) { return world_pick(g->w, 0, n); }
static const lop_node *keep(const lop_node *a) { return a ? lop_node_ref(a) : NULL; }
static const lop_node *two(gen *g, const char *op, const lop_node *a, const lop_node *b) {
    return t_two_of(g->w, op, a, b);
}
static const lop_node *inverse(gen *g, const lop_node *a) {
    return t_one_of(g->w, "inverse", NULL, a);
}
static const lop_node *adjoint(gen *g, const lop_node *a) {
    const lop_attr turn = t_ints(LOP_H, 0, 0, 0);
    return t_one_of(g->w, "view", &turn, a);
}
static const lop_node *times(gen *g, double c, const lop_node *a) {
    const lop_attr by = lop_attr_coef(c, 0);
    return t_one_of(g->w, "scaled", &by, a);
}
static const lop_node *sparse(gen *g, int64_t m, int64_t n) {
    lop_status st = LOP_OK;
    return gen_instance(g, &lop_op_sparse, m, n, &st);
}
/* A diagonal, or a multiple of the identity. */
static const lop_node *noise(gen *g, int64_t n) {
    const lop_node like = {
        .shape = {.ndim = 2, .dim = {n, n}}, .dtype = LOP_f64, .weak = LOP_WEAK, .core = 2};
    const lop_node *eye = NULL;
    if (pick(g, 2)) return t_one_of(g->w, "diag", NULL, gen_array(g, 1, n, 1));
    if (lop_node_make(&g->w->ctx, &lop_op_identity, NULL, 0, NULL, &like, &eye, &g->w->err))
        return NULL;
    return pick(g, 2) ? eye : times(g, 0.5, eye);
}

/* An action by the rule's name on A, on A^-1 of a diagonal. */
static const lop_node *asked(gen *g, const char *rule, const lop_node *a, int64_t n) {
    world *w = g->w;
    const lop_attr none = t_ints(0, 0, 0, 0), at = t_ints(2, 0, 0, 0); /* LOP_AT_COO */
    if (!strncmp(rule, "solve", 5)) return two(g, "solve", a, gen_array(g, 2, n, 1 + pick(g, 2)));
    if (!strncmp(rule, "scaledet", 8)) return t_one_of(w, "scaledet", &none, a);
    if (!strncmp(rule, "trace", 5)) return t_one_of(w, "trace", &none, a);
    if (!strcmp(rule, "diagonal-inverse-sparse-update")) a = inverse(g, a);
    if (!strncmp(rule, "diagonal", 8)) return t_one_of(w, "diagonal", &none, a);
    const lop_node *child[3] = {a, NULL, NULL}, *out = NULL;
    for (int i = 1; i < 3; i++)
        if (lop_rand_index(&w->rand, 6, 0, n, &child[i]) != LOP_OK) child[i] = NULL;
    if (child[0] && child[1] && child[2]) out = t_node(w, "entry_sums", &at, 3, child);
    for (int i = 0; i < 3; i++) lop_node_unref(child[i]);
    return out;
}

/* X A^-1 Y, or its adjoint. */
static const lop_node *within(gen *g, const lop_node *in, int64_t n) {
    const lop_node *p = two(g, "prod", two(g, "prod", sparse(g, n, n), keep(in)), sparse(g, n, n));
    return pick(g, 2) ? p : adjoint(g, p);
}

/* Between sparse rows A^-1 X A^-1 and, beside it, what is less: sparse, or with one inverse. */
static const lop_node *sum_of_less(gen *g, const lop_node *in, int64_t n) {
    const lop_node *p = two(g, "prod", two(g, "prod", keep(in), sparse(g, n, n)), keep(in)),
                   *less = pick(g, 2) ? sparse(g, n, n) : within(g, in, n),
                   *x = two(g, "sum", p, times(g, 0.5, less));
    lop_node_unref(in);
    return x;
}

/* a + u v^H, of one column. Takes over a. */
static const lop_node *beside_thin(gen *g, const lop_node *a, int64_t n) {
    const lop_node *child[3] = {a}, *out = NULL;
    for (int i = 1; i < 3; i++) child[i] = t_one_of(g->w, "dense", NULL, gen_array(g, 2, n, 1));
    if (a && child[1] && child[2]) out = t_node(g->w, "lowrankupdate", NULL, 3, child);
    for (int i = 0; i < 3; i++) lop_node_unref(child[i]);
    return out;
}

/* A^-1 X A^-1 of sparse A and X, or A^-1 X A^-1 Y A^-1, or a sum of those between inverses; in a
 * trace perhaps beside another. */
const lop_node *gen_between_sparse(gen *g, const char *rule) {
    gen one = *g;
    one.batch = (lop_shape){0};
    one.exprs = 0;
    one.dtype = LOP_c128;
    g = &one;
    const bool sums = strstr(rule, "sums") != NULL,
               rows =
                   strstr(rule, "-rows-") || (sums && !strncmp(rule, "diagonal", 8) && pick(g, 3)),
               thin = sums && rows && pick(g, 3) == 0; /* beside A, by its border */
    const int64_t n = thin ? 9 : 2 + pick(g, 3);
    const lop_node *a = two(g, "sum", sparse(g, n, n), noise(g, n)), *x = NULL;
    const lop_node *in = inverse(g, thin ? beside_thin(g, a, n) : a);
    if (sums)
        x = two(g, "sum", within(g, in, n), times(g, -2, within(g, in, n)));
    else
        x = pick(g, 2) ? sparse(g, n, n) : within(g, in, n);
    if (sums && pick(g, 2)) x = adjoint(g, x);
    const lop_node *all = NULL;
    if (sums && rows && pick(g, 2)) {
        lop_node_unref(x);
        all = sum_of_less(g, in, n);
    } else {
        all = two(g, "prod", two(g, "prod", keep(in), x), in);
    }
    if (!strncmp(rule, "trace", 5)) all = two(g, "prod", all, sparse(g, n, n));
    if (rows) {
        const int64_t m = 1 + pick(g, 4);
        if (pick(g, 2)) all = adjoint(g, all);
        all = two(g, "prod", two(g, "prod", sparse(g, m, n), all), sparse(g, n, m));
        return asked(g, rule, all, m);
    }
    return asked(g, rule, all, n);
}

/* Sparse, or where it is seen as it is that and a product with one column, U V^H. */
static const lop_node *precision(gen *g, int64_t n, bool plain) {
    const lop_node *a = two(g, "sum", sparse(g, n, n), noise(g, n)), *low[2];
    if (!plain || pick(g, 2)) return a;
    for (int i = 0; i < 2; i++) low[i] = t_one_of(g->w, "dense", NULL, gen_array(g, 2, n, 1));
    return two(g, "sum", a, two(g, "prod", low[0], adjoint(g, low[1])));
}

const lop_node *gen_sparse_product(gen *g, const char *rule) {
    gen one = *g;
    one.batch = (lop_shape){0};
    one.exprs = 0;
    one.dtype = LOP_c128;
    g = &one;
    const int64_t n = 2 + pick(g, 3);
    const lop_node *a = two(g, "sum", sparse(g, n, n), noise(g, n)),
                   *b = two(g, "sum", noise(g, n), times(g, -0.5, sparse(g, n, n)));
    if (pick(g, 2)) b = two(g, "prod", b, sparse(g, n, n));
    return asked(g, rule, two(g, "prod", pick(g, 2) ? adjoint(g, a) : a, b), n);
}

const lop_node *gen_sparse_update(gen *g, const char *rule) {
    gen one = *g;
    one.batch = (lop_shape){0};
    one.exprs = 0;
    one.dtype = LOP_c128;
    g = &one;
    const bool plain = pick(g, 3) == 0 && !strstr(rule, "rows"), covered = strstr(rule, "covered");
    const int64_t n = 2 + pick(g, 3), m = plain ? n : 2 + pick(g, 3);
    const lop_node *in = inverse(g, precision(g, n, plain)), *u = plain ? NULL : sparse(g, m, n),
                   *vh = plain ? NULL : adjoint(g, pick(g, 2) ? keep(u) : sparse(g, m, n)),
                   *far = plain ? keep(in)
                                : two(g, "prod", two(g, "prod", keep(u), keep(in)), keep(vh)),
                   *all = NULL;
    if (strstr(rule, "rows")) {
        all = asked(g, rule, far, m);
    } else {
        const lop_node *a = two(g, "sum", noise(g, m), pick(g, 2) ? far : times(g, 0.5, far));
        if (covered) {
            const bool turned = pick(g, 2);
            const lop_node *left = keep(in), *right = keep(in);
            a = inverse(g, a);
            if (!plain) left = two(g, "prod", left, keep(vh));
            if (!plain) right = two(g, "prod", keep(u), right);
            a = two(g, "prod", two(g, "prod", left, a), right);
            if (turned && !strncmp(rule, "trace", 5)) a = two(g, "prod", sparse(g, n, n), a);
        }
        all = asked(g, rule, a, covered ? n : m);
    }
    lop_node_unref(in);
    lop_node_unref(u);
    lop_node_unref(vh);
    return all;
}

/* With entries in each column: of one without, what is 0 is so only to rounding beside a pivot. */
static const lop_node *side(gen *g, int64_t n, int64_t k) {
    const lop_attr row = t_ints(1, k, 0, 0);
    const lop_node *column[2] = {NULL};
    for (int64_t j = 0; j < k; j++)
        for (int tries = 0; tries < 40; tries++) {
            lop_node_unref(column[j]);
            column[j] = sparse(g, n, 1);
            if (column[j] && lop_cols(column[j]->child[0]) > 0) break;
        }
    if (k == 1) return column[0];
    const lop_node *both = t_node(g->w, "block", &row, 2, column);
    for (int j = 0; j < 2; j++) lop_node_unref(column[j]);
    return both;
}
static const lop_node *full(gen *g, int64_t m, int64_t n) {
    return t_one_of(g->w, "dense", NULL, gen_array(g, 2, m, n));
}

/* The inverse of E + sum_i c_i U_i U_i^H, alone or between others and U_0. */
const lop_node *gen_pushed(gen *g, const char *rule) {
    gen one = *g;
    one.batch = (lop_shape){0};
    one.exprs = 0;
    one.dtype = pick(g, 2) ? LOP_f64 : LOP_c128;
    g = &one;
    const bool trace = !strncmp(rule, "trace", 5), alone = strstr(rule, "inverse-pushed") != NULL;
    const int64_t n = 4 + pick(g, 3), terms = 1 + pick(g, 2), k = terms > 1 ? 1 : 1 + pick(g, 2);
    const lop_node *u = NULL, *a = NULL;
    do { /* of complex numbers, a diagonal need not be Hermitian */
        lop_node_unref(a);
        a = noise(g, n);
    } while (a && a->op == &lop_op_diag && one.dtype == LOP_c128);
    for (int64_t i = 0; i < terms; i++) {
        const lop_node *own = side(g, n, k);
        const lop_node *across = adjoint(g, keep(own));
        if (i == 0) u = keep(own);
        const lop_node *low = two(g, "prod", pick(g, 2) ? own : times(g, 0.5, own), across);
        a = pick(g, 2) ? two(g, "sum", a, low) : two(g, "sum", low, a);
    }
    const lop_attr turn = t_ints(pick(g, 2) ? LOP_H : LOP_T, 0, 0, 0);
    a = inverse(g, a);
    if (strstr(rule, "view")) a = t_one_of(g->w, "view", &turn, a);
    if (!alone) {
        a = two(g, "prod", a, keep(u));
        if (trace || pick(g, 2)) a = two(g, "prod", a, full(g, k, n));
        const int64_t rows = trace ? n : 1 + pick(g, 4);
        if (!trace || pick(g, 2)) a = two(g, "prod", full(g, rows, n), a);
    }
    lop_node_unref(u);
    return asked(g, rule, a, n);
}

/* X (c Y Z)^H of sparse Y and Z, or the other way round. */
const lop_node *gen_views_opened(gen *g, const char *rule) {
    gen one = *g;
    one.batch = (lop_shape){0};
    one.exprs = 0;
    one.dtype = pick(g, 2) ? LOP_f64 : LOP_c128;
    g = &one;
    const int64_t n = 1 + pick(g, 4), k = 1 + pick(g, 4);
    const lop_attr turn = t_ints(one.dtype == LOP_f64 ? LOP_T : 1 + pick(g, 3), 0, 0, 0);
    const lop_node *y = two(g, "prod", times(g, 0.5, sparse(g, k, n)), sparse(g, n, k));
    y = t_one_of(g->w, "view", &turn, y);
    const lop_node *x = full(g, k, k);
    return asked(g, rule, pick(g, 2) ? two(g, "prod", x, y) : two(g, "prod", y, x), k);
}

/* A^-1 U M^-1 Y, A = E + c U M^-1 V^H, as it is or turned. */
const lop_node *gen_field(gen *g, const char *rule) {
    gen one = *g;
    one.batch = (lop_shape){0};
    one.exprs = 0;
    one.dtype = pick(g, 2) ? LOP_f64 : LOP_c128;
    g = &one;
    const lop_attr turn = t_ints(LOP_T, 0, 0, 0);
    const bool plain = pick(g, 2);
    const int64_t n = 2 + pick(g, 3), m = plain ? n : 2 + pick(g, 3);
    const lop_node *p = two(g, "sum", sparse(g, n, n), noise(g, n)), *in = inverse(g, p),
                   *u = plain ? NULL : sparse(g, m, n), *vh = plain ? NULL : adjoint(g, keep(u)),
                   *far = keep(in);
    if (u) far = two(g, "prod", two(g, "prod", keep(u), far), keep(vh));
    const lop_node *a = inverse(g, two(g, "sum", noise(g, m), times(g, 0.5, far)));
    if (u) a = two(g, "prod", a, keep(u));
    a = two(g, "prod", two(g, "prod", a, keep(in)), full(g, n, m));
    if (pick(g, 2)) a = t_one_of(g->w, "view", &turn, a);
    lop_node_unref(in);
    lop_node_unref(u);
    lop_node_unref(vh);
    return asked(g, rule, a, m);
}

/* -- two inverses */

/* What stands between them, of noise E, of a term T, and of U in front of others: U T' of any T'.
 */
static const lop_node *part_of(gen *g, const lop_node *e, const lop_node *term, const lop_node *u,
                               int64_t n) {
    const lop_node *eye = t_one_of(g->w, "scaled", &(lop_attr){.re = 0.5}, keep(e));
    switch (pick(g, 5)) {
    case 0: return eye;
    case 1: lop_node_unref(eye); return keep(term);
    case 2: lop_node_unref(eye); return two(g, "prod", keep(u), full(g, lop_cols(u), n));
    case 3: return two(g, "sum", eye, keep(term));
    default: lop_node_unref(eye); return two(g, "sum", keep(term), times(g, 0.5, keep(term)));
    }
}

/* tr(A^-1 X A^-1 Y), A a sum with sides or a field, as it is, turned, or cut elsewhere; of the rule
 * on sums tr(L (A^-1 X A^-1 + T) R). */
const lop_node *gen_pushed_pair(gen *g, const char *rule) {
    gen one = *g;
    one.batch = (lop_shape){0};
    one.exprs = 0;
    one.dtype = pick(g, 2) ? LOP_f64 : LOP_c128;
    g = &one;
    const bool field = pick(g, 2), sums = strstr(rule, "distributed") != NULL;
    const int64_t k = 1 + pick(g, 2), n = field ? 2 + pick(g, 4) : 4 + pick(g, 3);
    const lop_attr turn = t_ints(LOP_T, 0, 0, 0);
    const lop_node *e = NULL, *u = NULL, *term = NULL, *front = NULL;
    do { /* of complex numbers, a diagonal need not be Hermitian */
        lop_node_unref(e);
        e = noise(g, n);
    } while (e && e->op == &lop_op_diag && one.dtype == LOP_c128);
    if (field) {
        term = inverse(g, two(g, "sum", sparse(g, n, n), noise(g, n)));
        front = keep(term);
    } else {
        u = side(g, n, k);
        front = keep(u);
        term = two(g, "prod", keep(u), adjoint(g, keep(u)));
    }
    const lop_node *in = inverse(g, two(g, "sum", keep(e), times(g, 0.5, keep(term)))),
                   *x = part_of(g, e, term, front, n), *y = part_of(g, e, term, front, n), *all;
    if (sums) {
        all = two(g, "prod", two(g, "prod", keep(in), x), keep(in));
        all = two(g, "sum", all,
                  two(g, "prod", two(g, "prod", full(g, n, 1), full(g, 1, n)), keep(in)));
        if (pick(g, 2)) all = t_one_of(g->w, "view", &turn, all);
        all = two(g, "prod", sparse(g, n, n), all);
        lop_node_unref(y);
    } else {
        all = two(g, "prod", two(g, "prod", keep(in), x), two(g, "prod", keep(in), y));
        if (pick(g, 2)) all = t_one_of(g->w, "view", &turn, all);
    }
    const lop_node *gone[] = {e, u, term, front, in};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return asked(g, rule, all, n);
}
