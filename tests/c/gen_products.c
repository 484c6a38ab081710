/* gen_products.c: diagonals and traces of products of factors of few entries, few columns, or
 * picked by a Selection; a part of gen.h. */
#include "gen.h"
#include "ops/shared/convolution.h"

#include <string.h>

static int64_t pick(gen *g, int64_t n) { return world_pick(g->w, 0, n); }

static const lop_node *random_of(gen *g, const lop_op *op, int64_t m, int64_t n) {
    const lop_node *out = NULL;
    const lop_dtype dt = g->dtype == LOP_NO_DTYPE ? LOP_c128 : g->dtype;
    return op->random(&g->w->rand, m, n, dt, &out) == LOP_OK ? out : NULL;
}

/* n x n of few entries, n a multiple of 8. */
static const lop_node *few(gen *g, int64_t n) {
    static const lop_op *const ops[] = {&lop_op_diag,   &lop_op_tridiagonal, &lop_op_sparse,
                                        &lop_op_banded, &lop_op_permutation, &lop_op_diag};
    const lop_node *a = random_of(g, ops[pick(g, 6)], n, n);
    const lop_attr turn = t_ints(1 + pick(g, 3), 0, 0, 0), c = gen_coef(g);
    if (g->views && !pick(g, 4)) a = t_one_of(g->w, "view", &turn, a);
    return pick(g, 4) ? a : t_one_of(g->w, "scaled", &c, a);
}

static const lop_node *dense(gen *g, int64_t m, int64_t n) {
    return t_one_of(g->w, "dense", NULL, gen_array(g, 2, m, n));
}

/* With a part of one or two columns: as an update, as a sum, as what stands alone. */
static const lop_node *with_low(gen *g, int64_t n) {
    const int64_t k = 1 + pick(g, n / 8), how = pick(g, 4);
    const lop_attr h = t_ints(LOP_H, 0, 0, 0), c = gen_coef(g);
    const lop_node *u = dense(g, n, k), *v = dense(g, n, k), *f[4] = {NULL};
    if (how == 0) {
        f[0] = few(g, n);
        f[1] = u;
        f[2] = v;
        f[3] = pick(g, 2) ? dense(g, k, k) : NULL;
        if (!f[0] || !u || !v) {
            for (int i = 0; i < 4; i++) lop_node_unref(f[i]);
            return NULL;
        }
        const lop_node *out = t_node(g->w, "lowrankupdate", NULL, f[3] ? 4 : 3, f);
        for (int i = 0; i < 4; i++) lop_node_unref(f[i]);
        return out;
    }
    const lop_node *low = how == 1 ? t_two_of(g->w, "lowrank", u, v)
                                   : t_two_of(g->w, "prod", u, t_one_of(g->w, "view", &h, v));
    if (!pick(g, 3)) low = t_one_of(g->w, "scaled", &c, low);
    if (how == 3 && !pick(g, 3)) return low;
    return pick(g, 2) ? t_two_of(g->w, "sum", few(g, n), low)
                      : t_two_of(g->w, "sum", low, few(g, n));
}

static const lop_node *of_terms(gen *g) {
    const int64_t n = 8 * (1 + pick(g, 3)), count = 2 + pick(g, 2), at = pick(g, count);
    const lop_node *all = NULL;
    for (int64_t i = 0; i < count; i++) {
        const lop_node *f = i == at || !pick(g, 3) ? with_low(g, n) : few(g, n);
        if (!pick(g, 6) && g->solves)
            f = t_two_of(g->w, "prod", f,
                         t_one_of(g->w, "inverse", NULL, random_of(g, &lop_op_diag, n, n)));
        all = i ? pick(g, 2) || count == 2 ? t_two_of(g->w, "prod", all, f)
                                           : t_two_of(g->w, "prod", f, all)
                : f;
    }
    return all;
}

static const lop_node *picked(gen *g) {
    const int64_t n = 2 + pick(g, 5), m = 2 + pick(g, 5);
    const lop_attr t = t_ints(pick(g, 3) ? LOP_T : LOP_H, 0, 0, 0);
    const bool all = !pick(g, 2);
    const lop_node *s = random_of(g, all ? &lop_op_permutation : &lop_op_selection, all ? n : m, n),
                   *turned = s ? t_one_of(g->w, "view", &t, lop_node_ref(s)) : NULL;
    if (all && s && !pick(g, 2)) { /* as a permutation is turned where it is written */
        const lop_node *p = s->child[0],
                       *back = t_one_of(g->w, "inverse_permutation", NULL, lop_node_ref(p));
        lop_node_unref(turned);
        turned = t_node(g->w, "permutation", &s->attr, 1, &back);
        lop_node_unref(back);
    }
    const lop_node *a = pick(g, 2) ? few(g, n) : gen_operator(g, n, n, 1);
    return t_two_of(g->w, "prod", t_two_of(g->w, "prod", s, a), turned);
}

/* Of few rows or few columns, one factor neither held nor of few entries. */
static const lop_node *of_rows(gen *g) {
    const int64_t n = pick(g, 6), m = 2 * n + pick(g, 4), k = 1 + pick(g, 6);
    const bool wide = pick(g, 2);
    const lop_node *f[2] = {gen_operator(g, wide ? n : m, k, 2),
                            gen_operator(g, k, wide ? m : n, 2)};
    return t_two_of(g->w, "prod", f[0], f[1]);
}

/* X A^-1 Y of factors of few entries, A^-1 seen through a view or not. */
static const lop_node *around_inverse(gen *g) {
    const int64_t n = 8 * (1 + pick(g, 2)), count = 2 + pick(g, 2), at = pick(g, count);
    const lop_attr nine = lop_attr_coef(9 + (double)n, 0), turn = t_ints(1 + pick(g, 3), 0, 0, 0);
    const lop_node *all = NULL;
    for (int64_t i = 0; i < count; i++) {
        const lop_node *f = i == at ? NULL : few(g, n);
        if (i == at) {
            f = t_two_of(g->w, "sum", random_of(g, &lop_op_sparse, n, n),
                         t_one_of(g->w, "scaled", &nine, random_of(g, &lop_op_identity, n, n)));
            f = t_one_of(g->w, "inverse", NULL, f);
            if (count == 2 || pick(g, 2)) f = t_one_of(g->w, "view", &turn, f);
        }
        all = i ? t_two_of(g->w, "prod", all, f) : f;
    }
    return all;
}

const lop_node *gen_product_value(gen *g, const char *rule) {
    gen one = *g;
    one.batch = (lop_shape){0};
    one.dtype = pick(g, 3) ? LOP_c128 : LOP_f64;
    one.solves = true;
    const bool trace = !strncmp(rule, "trace", 5), rows = strstr(rule, "of-rows") != NULL;
    const lop_attr at = t_ints(trace || rows || pick(g, 3) ? 0 : pick(g, 5) - 2, 0, 0, 0);
    return t_one_of(g->w, trace ? "trace" : "diagonal", &at,
                    strstr(rule, "picked")   ? picked(&one)
                    : strstr(rule, "turned") ? around_inverse(&one)
                    : rows                   ? of_rows(&one)
                                             : of_terms(&one));
}

/* A cast to double precision of what a unit vector gives in single, or of a matrix laid out. */
const lop_node *gen_column(gen *g, const char *rule) {
    gen one = *g;
    const int64_t n = 1 + pick(g, 4);
    one.batch = (lop_shape){0};
    one.dtype = pick(g, 2) ? LOP_c64 : LOP_f32;
    const lop_attr at = t_ints(pick(g, n), 0, 0, 0), d = t_ints(0, 0, 0, LOP_c128 + 1),
                   all = t_ints(2, 0, 0, 0);
    if (strstr(rule, "ravel"))
        return t_one_of(g->w, "cast", &d, t_one_of(g->w, "ravel", &all, gen_array(&one, 2, n, 2)));
    const lop_node like = {.shape = {.ndim = 2, .dim = {n, 1}}, .dtype = one.dtype, .core = 2};
    const lop_node *x = NULL, *y = NULL, *in[3] = {NULL};
    if (lop_node_make(&g->w->ctx, &lop_op_unit, &at, 0, NULL, &like, &x, &g->w->err) != LOP_OK)
        return NULL;
    if (strstr(rule, "quotient") || strstr(rule, "spectrum")) {
        const lop_attr of = t_ints(one.dtype + 1, 0, 0, 0);
        in[0] = gen_array(&one, 1, n, 1);
        if (lop_sizes_make(&g->w->ctx, 1, &n, &in[1], &g->w->err) != LOP_OK || !in[0]) return NULL;
        y = t_node(g->w, "circulant_spectrum", NULL, 2, in);
        lop_node_unref(in[0]);
        const lop_node *of_y[4] = {in[1], x, y, y};
        if (strstr(rule, "quotient")) y = t_node(g->w, "circulant_quotient", &of, 4, of_y);
        if (strstr(rule, "quotient")) lop_node_unref(of_y[2]);
        lop_node_unref(in[1]);
        lop_node_unref(x);
    } else if (strstr(rule, "circulant")) {
        in[0] = gen_array(&one, 1, n, 1);
        in[2] = x;
        if (lop_sizes_make(&g->w->ctx, 1, &n, &in[1], &g->w->err) == LOP_OK && in[0])
            y = t_node(g->w, "circulant_solve", NULL, 3, in);
        for (int i = 0; i < 3; i++) lop_node_unref(in[i]);
    } else if (strstr(rule, "inverse"))
        y = t_two_of(g->w, "solve", random_of(&one, &lop_op_diag, n, n), x);
    else
        y = t_two_of(g->w, "apply", gen_operator(&one, n, n, 1), x);
    return t_one_of(g->w, "cast", &d, y);
}
