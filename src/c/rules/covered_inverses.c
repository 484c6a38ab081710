/* covered_inverses.c: what a determinant of A = E + c U M^-1 V^H (sparse_updates.c) has as its
 * derivative by M, and what solves with it leave of M^-1:
 *
 *   N = M^-1 V^H A^-1 U M^-1 = (M^-1 - H^-1) / c,   H = M + c V^H E^-1 U       (Woodbury)
 *
 * Its entries at places, its diagonal and traces tr(N X) of sparse X are those of the two inverses.
 * In the difference may cancel what N has no part of: accepted where |M^-1 v - H^-1 v| is an eighth
 * of |M^-1 v| or more, v a probe of signs, so that N is that of M^-1 in the Frobenius norm
 * (op_checked_quotient.c); else by the product as it is written. */
#include "expr/properties.h"
#include "ops/shared/sparse_solver.h"
#include "rewrite/guards.h"
#include "sparse_updates.h"
#include "thin_sum.h"

enum { ALIKE = 64 };

/* A product that ends in N seen through a mode, or begins with it. */
typedef struct covered {
    lop_seen s;
    int mode;
    lop_coef c;           /* times N */
    const lop_node *rest; /* owned: X of X N and N X; NULL: the identity */
} covered;

static void drop(covered *k) {
    lop_seen_close(&k->s);
    lop_node_unref(k->rest);
}

/* X of the inverse of X, seen through a mode; NULL: it is none. */
static const lop_node *inverted(const lop_node *a, int *mode) {
    *mode = LOP_N;
    if (a->op == &lop_op_view) {
        *mode = (int)a->attr.i[0];
        a = a->child[0];
    }
    return a->op == &lop_op_inverse ? a->child[0] : NULL;
}

/* Is f what a is, seen through a mode? */
static bool is_view_of(const lop_node *f, const lop_node *a, int mode) {
    int own = LOP_N, other = LOP_N;
    if (f->op == &lop_op_view) {
        own = (int)f->attr.i[0];
        f = f->child[0];
    }
    if (a->op == &lop_op_view) {
        other = (int)a->attr.i[0];
        a = a->child[0];
    }
    other ^= mode;
    if (!lop_is_complex(a->dtype)) {
        own &= LOP_T;
        other &= LOP_T;
    }
    return own == other && lop_node_alike(f, a, ALIKE);
}

/* Are factors from..to - 1 the product p seen through a mode? p NULL: the identity. */
static bool is_product(const lop_node *const *f, int from, int to, const lop_node *p, int mode) {
    const lop_node *g[LOP_SEEN_FACTORS];
    lop_coef c = lop_coef_const(1, 0);
    const int n = p ? lop_seen_factors(p, g, &c) : 0;
    if (to - from != n) return false;
    for (int i = 0; i < n; i++) {
        const lop_node *own = g[mode & LOP_T ? n - 1 - i : i];
        if (!is_view_of(f[from + i], own, mode)) return false;
    }
    return true;
}

/* NOMATCH: no part of the product is N. */
static lop_status read(const lop_match *m, const lop_maker *mk, covered *k) {
    const lop_node *f[LOP_SEEN_FACTORS], *p = m->root->child[0], *in[3];
    int at[3], mode[3], found = 0;
    *k = (covered){.c = lop_coef_const(1, 0)};
    const int n = lop_nbatch(p) == 0 && p->dtype == m->root->dtype && lop_is_blas(p->dtype)
                      ? lop_seen_factors(p, f, &k->c)
                      : 0;
    for (int i = 0; i < n; i++) {
        int seen;
        const lop_node *a = inverted(f[i], &seen);
        if (a && found == 3) return LOP_NOMATCH;
        if (!a) continue;
        at[found] = i;
        in[found] = a;
        mode[found++] = seen;
    }
    if (found != 3 || mode[0] != mode[1] || mode[1] != mode[2] || (at[0] > 0 && at[2] < n - 1))
        return LOP_NOMATCH;
    k->mode = mode[0];
    lop_status st = lop_seen_read(mk, in[1], p->dtype, &k->s);
    if (st != LOP_OK) return st;
    const bool turned = k->mode & LOP_T;
    if (!lop_node_alike(in[0], k->s.m, ALIKE) || !lop_node_alike(in[2], k->s.m, ALIKE) ||
        !is_product(f, at[0] + 1, at[1], turned ? k->s.u : k->s.vh, k->mode) ||
        !is_product(f, at[1] + 1, at[2], turned ? k->s.vh : k->s.u, k->mode) ||
        !lop_sparse_selects(k->s.m) || !lop_sparse_selects(k->s.h))
        return LOP_NOMATCH;
    return at[0] > 0 ? lop_seen_product(mk, f, 0, at[0], &k->rest)
                     : lop_seen_product(mk, f, at[2] + 1, n, &k->rest);
}

/* The root's action on c A^-1 X, A^-1 seen through the mode. */
static lop_status of_one(const lop_match *m, const covered *k, const lop_node *a,
                         const lop_node **out) {
    const lop_maker *mk = k->s.mk;
    const lop_attr view = {.i = {k->mode, 0, 0, 0}};
    const lop_node *in = NULL, *seen = NULL, *all = NULL;
    lop_status st = lop_inverse_closed(mk, a, &in);
    if (st == LOP_OK)
        st = k->mode ? lop_make1(mk, &lop_op_view, &view, in, &seen)
                     : (seen = lop_node_ref(in), LOP_OK);
    if (st == LOP_OK)
        st = k->rest ? lop_make2(mk, &lop_op_prod, NULL, seen, k->rest, &all)
                     : (all = lop_node_ref(seen), LOP_OK);
    const lop_node *child[3] = {all, m->root->n > 1 ? m->root->child[1] : NULL,
                                m->root->n > 2 ? m->root->child[2] : NULL};
    if (st == LOP_OK)
        st = lop_make_op(mk, m->root->op, &m->root->attr, m->root->n, child, NULL, out);
    lop_node_unref(in);
    lop_node_unref(seen);
    lop_node_unref(all);
    return st;
}

/* The difference, where the probe shows N; else alt. */
static lop_status difference(const lop_match *m, const covered *k, const lop_node *alt,
                             const lop_node **out) {
    const lop_maker *mk = k->s.mk;
    const lop_node column = {
        .shape = {.ndim = 2, .dim = {lop_rows(k->s.m), 1}}, .dtype = k->s.m->dtype, .core = 2};
    const lop_node *v = NULL, *z = NULL, *w = NULL, *own = NULL, *less = NULL, *both = NULL,
                   *value = NULL;
    lop_coef c = k->s.c;
    if (k->mode & LOP_C) c.im = -c.im;
    const lop_attr by = lop_coef_attr(lop_coef_over(mk->ctx, k->c, c));
    lop_status st = lop_make(mk, "probe", NULL, 0, NULL, &column, &v);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_solve, NULL, k->s.m, v, &z);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_solve, NULL, k->s.h, v, &w);
    if (st == LOP_OK) st = of_one(m, k, k->s.m, &own);
    if (st == LOP_OK) st = of_one(m, k, k->s.h, &less);
    if (st == LOP_OK) st = lop_build_minus(mk, own, less, &both);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &by, both, &value);
    const lop_node *child[4] = {value, z, w, alt};
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_checked_gap, NULL, 4, child, NULL, out);
    const lop_node *gone[] = {v, z, w, own, less, both, value};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* `as_written` is the row that the product goes by otherwise. */
static lop_status covered_value(const lop_match *m, const lop_maker *mk, bool whole,
                                lop_status (*as_written)(const lop_match *, const lop_maker *,
                                                         const lop_node **),
                                const lop_node **out) {
    const lop_node *alt = NULL;
    covered k;
    lop_status st = read(m, mk, &k);
    if (st == LOP_OK && k.rest && (whole || lop_sparse_entries(k.rest) < 0)) st = LOP_NOMATCH;
    if (st == LOP_OK) st = as_written(m, mk, &alt);
    if (st == LOP_OK) st = difference(m, &k, alt, out);
    lop_node_unref(alt);
    drop(&k);
    return st;
}
LOP_BUILD(covered_entries) { return covered_value(m, mk, true, lop_build_entries_product, out); }
LOP_BUILD(covered_diagonal) { return covered_value(m, mk, true, lop_build_chain_diagonal, out); }
LOP_BUILD(covered_trace) { return covered_value(m, mk, false, lop_build_chain_trace, out); }
