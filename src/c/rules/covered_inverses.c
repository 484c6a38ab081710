/* covered_inverses.c: what a determinant of A = E + c U M^-1 V^H (sparse_updates.c) has as its
 * derivative by M, and what solves with it leave of M^-1:
 *
 *   N = M^-1 V^H A^-1 U M^-1 = (M^-1 - H^-1) / c = M^-1 X H^-1 / e      (Woodbury)
 *   H = M + (c / e) X,  X = V^H (e E^-1) U,  e of E = e I, else 1
 *
 * Its entries at places, its diagonal and traces tr(N Y) of sparse Y are the differences of those
 * of the two inverses where on the diagonal no element is less than 1e-4 of that of M^-1, so that
 * none has lost more than four digits; else those of the block on the right of [M X; 0 H]^-1
 * (between_sparse.c), whose factor is some ten times as dear, with the sign turned: where E is
 * large or U sees nothing near, nothing of M^-1 stands in it. Else by the product as it is written.
 */
#include "expr/properties.h"
#include "ops/projections/projections.h"
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

bool lop_is_view_of(const lop_node *f, const lop_node *a, int mode) {
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
    const lop_node *g[LOP_FACTORS];
    lop_coef c = lop_coef_const(1, 0);
    const int n = p ? lop_factors_times(p, g, &c) : 0;
    if (to - from != n) return false;
    for (int i = 0; i < n; i++) {
        const lop_node *own = g[mode & LOP_T ? n - 1 - i : i];
        if (!lop_is_view_of(f[from + i], own, mode)) return false;
    }
    return true;
}

/* NOMATCH: no part of the product is N. */
static lop_status read(const lop_match *m, const lop_maker *mk, covered *k) {
    const lop_node *f[LOP_FACTORS], *p = m->root->child[0], *in[3];
    int64_t mode[3];
    int at[3], found = 0;
    *k = (covered){.c = lop_coef_const(1, 0)};
    const int n = lop_nbatch(p) == 0 && p->dtype == m->root->dtype && lop_is_blas(p->dtype)
                      ? lop_factors_times(p, f, &k->c)
                      : 0;
    for (int i = 0; i < n; i++) {
        int64_t seen;
        const lop_node *a = lop_inverse_seen(f[i], &seen);
        if (a && found == 3) return LOP_NOMATCH;
        if (!a) continue;
        at[found] = i;
        in[found] = a;
        mode[found++] = seen;
    }
    if (found != 3 || mode[0] != mode[1] || mode[1] != mode[2] || (at[0] > 0 && at[2] < n - 1))
        return LOP_NOMATCH;
    k->mode = (int)mode[0];
    lop_status st = lop_seen_read(mk, in[1], p->dtype, &k->s);
    if (st != LOP_OK) return st;
    const bool turned = k->mode & LOP_T;
    if (!lop_node_alike(in[0], k->s.m, ALIKE) || !lop_node_alike(in[2], k->s.m, ALIKE) ||
        !is_product(f, at[0] + 1, at[1], turned ? k->s.u : k->s.vh, k->mode) ||
        !is_product(f, at[1] + 1, at[2], turned ? k->s.vh : k->s.u, k->mode) ||
        !lop_sparse_selects(k->s.m) || !lop_sparse_selects(k->s.h))
        return LOP_NOMATCH;
    if (at[0] > 0) return lop_product_of(mk, f, at[0], &k->rest);
    const int more = n - at[2] - 1;
    return more ? lop_product_of(mk, f + at[2] + 1, more, &k->rest) : LOP_OK;
}

/* What a is a multiple of, borrowed, and 1 / c seen through the mode: determinants go by its
 * factor, so entries do too. NULL: a is none. */
static const lop_node *taken_off(const lop_maker *mk, const lop_node *a, int mode, lop_attr *by) {
    if (a->op != &lop_op_scaled || a->child[0]->dtype != a->dtype) return NULL;
    const lop_coef c = lop_coef_of(&a->attr);
    if (lop_coef_test(mk->ctx, c, LOP_COEF_ZERO)) return NULL;
    const lop_coef over =
        lop_coef_over(mk->ctx, lop_coef_const(1, 0), mode & LOP_C ? lop_coef_conj(mk->ctx, c) : c);
    *by = lop_coef_attr(over);
    return a->child[0];
}

/* The root's action on M^-1 or H^-1 seen through the mode, times Y. */
static lop_status of_one(const lop_match *m, const covered *k, const lop_node *a,
                         const lop_node **out) {
    const lop_maker *mk = k->s.mk;
    const lop_node *in = NULL, *seen = NULL, *all = NULL;
    lop_attr by;
    const lop_node *inner = taken_off(mk, a, k->mode, &by);
    if (inner) {
        lop_status st = of_one(m, k, inner, &in);
        if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &by, in, out);
        lop_node_unref(in);
        return st;
    }
    lop_status st = lop_inverse_closed(mk, a, &in);
    if (st == LOP_OK) st = lop_view_once(mk, k->mode, in, &seen);
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

/* The diagonal of the inverse; of a product by the product's factor, as its entries. Owned. */
static lop_status main_diagonal(const lop_maker *mk, const lop_node *a, lop_dtype dt,
                                const lop_node **out) {
    const lop_attr main = {.i = {0, 0, 0, (int64_t)dt + 1}}, at = {.i = {0, 0, 0, 0}};
    const lop_node *in = NULL, *alt = NULL;
    lop_attr by;
    lop_status st;
    const lop_node *inner = taken_off(mk, a, LOP_N, &by);
    if (inner) {
        st = main_diagonal(mk, inner, dt, &in);
        if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &by, in, out);
    } else if ((a->op == &lop_op_prod || a->op == &lop_op_power) && lop_is_blas(dt)) {
        st = lop_inverse_diagonal(mk, a, &at, dt, &alt);
        const lop_node *child[2] = {a, alt};
        if (st == LOP_OK) st = lop_make_op(mk, &lop_op_sparsediag, &at, 2, child, NULL, out);
    } else {
        st = lop_inverse_closed(mk, a, &in);
        if (st == LOP_OK) st = lop_make1(mk, &lop_op_diagonal, &main, in, out);
    }
    lop_node_unref(in);
    lop_node_unref(alt);
    return st;
}

/* 1 - diag(H^-1) / diag(M^-1). */
static lop_status share_of(const covered *k, const lop_node **out) {
    const lop_maker *mk = k->s.mk;
    const lop_node *d[2] = {NULL, NULL}, *over = NULL, *part = NULL, *ones = NULL;
    const lop_node like = {
        .shape = {.ndim = 1, .dim = {lop_rows(k->s.m)}}, .dtype = k->s.m->dtype, .core = 1};
    lop_status st = main_diagonal(mk, k->s.m, k->s.m->dtype, &d[0]);
    if (st == LOP_OK) st = main_diagonal(mk, k->s.h, k->s.m->dtype, &d[1]);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_recip, NULL, d[0], &over);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_mul, NULL, d[1], over, &part);
    if (st == LOP_OK) st = lop_make(mk, "ones", NULL, 0, NULL, &like, &ones);
    if (st == LOP_OK) st = lop_build_minus(mk, ones, part, out);
    const lop_node *gone[] = {d[0], d[1], over, part, ones};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* The difference, where it is one of no less than 1e-4; else alt. */
static lop_status difference(const lop_match *m, const covered *k, const lop_node *alt,
                             const lop_node **out) {
    const lop_maker *mk = k->s.mk;
    const lop_node *own = NULL, *less = NULL, *both = NULL, *value = NULL, *share = NULL;
    lop_coef c = k->s.c;
    if (k->mode & LOP_C) c.im = -c.im;
    const lop_attr by = lop_coef_attr(lop_coef_over(mk->ctx, k->c, c));
    lop_status st = of_one(m, k, k->s.m, &own);
    if (st == LOP_OK) st = of_one(m, k, k->s.h, &less);
    if (st == LOP_OK) st = lop_build_minus(mk, own, less, &both);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &by, both, &value);
    if (st == LOP_OK) st = share_of(k, &share);
    const lop_node *child[3] = {value, share, alt};
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_checked_share, NULL, 3, child, NULL, out);
    const lop_node *gone[] = {own, less, both, value, share};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* [M X; 0 H], or what seen through the mode has such a block of its inverse. */
static lop_status both_of(const covered *k, const lop_node **out) {
    const lop_maker *mk = k->s.mk;
    const bool turned = k->mode & LOP_T;
    const lop_node *a = NULL, *x = NULL, *b = NULL;
    int64_t all;
    lop_status st = lop_mul_ok(2, lop_rows(k->s.m), &all) ? LOP_OK : LOP_NOMATCH;
    if (st == LOP_OK) st = lop_view_once(mk, k->mode, turned ? k->s.h : k->s.m, &a);
    if (st == LOP_OK) st = lop_view_once(mk, k->mode, k->s.x, &x);
    if (st == LOP_OK) st = lop_view_once(mk, k->mode, turned ? k->s.m : k->s.h, &b);
    if (st == LOP_OK) st = lop_two_by_two(mk, a, x, NULL, b, out);
    if (st == LOP_OK && !lop_sparse_selects(*out)) st = LOP_NOMATCH;
    const lop_node *gone[] = {a, x, b};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* The root's action on the block on the right, by the times and the sign of N; else alt. */
static lop_status of_block(const lop_match *m, const covered *k, const lop_node *alt,
                           const lop_node **out) {
    const lop_maker *mk = k->s.mk;
    const lop_node *root = m->root, *all = NULL, *eye = NULL, *z = NULL, *less = NULL,
                   *value = NULL;
    const int64_t n = lop_rows(k->s.m);
    const lop_attr entries = {.i = {root->attr.i[0], 2, 0, 0}}, main = {.i = {n, 0, 0, 0}};
    lop_coef e = lop_coef_over(mk->ctx, k->s.with, k->s.c);
    if (k->mode & LOP_C) e.im = -e.im;
    const lop_coef by = lop_coef_times(mk->ctx, lop_coef_const(-1, 0),
                                       lop_coef_times(mk->ctx, k->c, e)),
                   over = lop_coef_over(mk->ctx, lop_coef_const(1, 0), by);
    const lop_attr times = lop_coef_attr(by), divided = lop_coef_attr(over);
    lop_status st = both_of(k, &all);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &divided, alt, &less);
    if (st == LOP_OK && root->op == &lop_op_trace) {
        if (!k->rest) st = lop_thin_identity(mk, n, &eye);
        if (st == LOP_OK) st = lop_two_by_two(mk, NULL, NULL, k->rest ? k->rest : eye, NULL, &z);
        if (st == LOP_OK && lop_sparse_entries(z) < 0) st = LOP_NOMATCH;
    }
    const lop_node *of_trace[3] = {all, z, less}, *of_diagonal[2] = {all, less},
                   *of_entries[4] = {all, root->child[1], root->child[2], less};
    if (st == LOP_OK && root->op == &lop_op_trace)
        st = lop_make_op(mk, &lop_op_sparsetrace, NULL, 3, of_trace, NULL, &value);
    else if (st == LOP_OK && root->op == &lop_op_diagonal)
        st = lop_make_op(mk, &lop_op_sparsediag, &main, 2, of_diagonal, NULL, &value);
    else if (st == LOP_OK)
        st = lop_make_op(mk, &lop_op_sparseentries, &entries, 4, of_entries, NULL, &value);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &times, value, out);
    const lop_node *gone[] = {all, eye, z, less, value};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* `as_written` is the row that the product goes by otherwise. */
static lop_status covered_value(const lop_match *m, const lop_maker *mk, bool whole,
                                lop_status (*as_written)(const lop_match *, const lop_maker *,
                                                         const lop_node **),
                                const lop_node **out) {
    const lop_node *alt = NULL, *block = NULL;
    covered k;
    lop_status st = read(m, mk, &k);
    const bool entries = st == LOP_OK && m->root->op == &lop_op_entry_sums;
    if (entries && (m->root->n != 3 || m->root->attr.i[0] > LOP_AT_COO || m->root->attr.i[1] != 0))
        st = LOP_NOMATCH;
    if (st == LOP_OK && m->root->op == &lop_op_diagonal && m->root->attr.i[0] != 0)
        st = LOP_NOMATCH;
    if (st == LOP_OK && k.rest && (whole || lop_sparse_entries(k.rest) < 0)) st = LOP_NOMATCH;
    if (st == LOP_OK) st = as_written(m, mk, &alt);
    const bool found = st == LOP_OK;
    if (found) st = of_block(m, &k, alt, &block);
    if (found && (st == LOP_OK || st == LOP_NOMATCH))
        st = difference(m, &k, block ? block : alt, out);
    lop_node_unref(alt);
    lop_node_unref(block);
    drop(&k);
    return st;
}
LOP_BUILD(covered_entries) { return covered_value(m, mk, true, lop_build_entries_product, out); }
LOP_BUILD(covered_diagonal) { return covered_value(m, mk, true, lop_build_chain_diagonal, out); }
LOP_BUILD(covered_trace) { return covered_value(m, mk, false, lop_build_chain_trace, out); }
