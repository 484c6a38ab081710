/* low_rank_inverse_between.c: S^-1 X S^-1 and S^-2, which second derivatives and those of tr(S^-1)
 * read, of an update of low rank.
 *
 *   diag(S^-1 X S^-1) = x / b^2 - 2 (x / b) diag(W Y) + diag(W (Y X W) Y),   S = B + U C V^H,
 *   W = B^-1 U,  Y = (I + C V^H W)^-1 C V^H B^-1,   B = diag(b), X = diag(x)
 *
 * Cost: three products of n x k by k x k. Accepted as the diagonal of S^-1 is, else by the dense
 * form. */
#include "expr/properties.h"
#include "low_rank_woodbury.h"

/* S^-1 X S^-1 of S^-T X S^-T, which has the same diagonal where X is one. */
static lop_status untransposed(const lop_maker *mk, const lop_node *p, const lop_node **out) {
    const lop_node *left, *right, *x, *half = NULL;
    if (!lop_factors_between(p, &left, &x, &right)) return LOP_NOMATCH;
    if (left->op != &lop_op_view || right->op != &lop_op_view ||
        left->attr.i[0] != right->attr.i[0] || left->child[0]->op != &lop_op_inverse ||
        right->child[0]->op != &lop_op_inverse)
        return LOP_NOMATCH;
    const int64_t mode = left->attr.i[0];
    if (mode != LOP_T && (mode != LOP_H || lop_is_complex(p->dtype))) return LOP_NOMATCH;
    if (!x) return lop_make2(mk, &lop_op_prod, NULL, left->child[0], right->child[0], out);
    lop_status st = lop_make2(mk, &lop_op_prod, NULL, left->child[0], x, &half);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_prod, NULL, half, right->child[0], out);
    lop_node_unref(half);
    return st;
}

/* S and X. Owned; NOMATCH: they are not that. */
static lop_status read_between(const lop_maker *mk, const lop_node *p, lop_dtype dt,
                               const lop_node **s, const lop_node **x) {
    const lop_node *a = NULL, *plain = NULL;
    lop_status st = lop_read_between_or_twice(mk, p, &a, x);
    if (st == LOP_NOMATCH) {
        st = untransposed(mk, p, &plain);
        if (st == LOP_OK) st = read_between(mk, plain, dt, s, x);
        lop_node_unref(plain);
        return st;
    }
    if (st == LOP_OK && (lop_nbatch(*x) > 0 || !lop_is_diagonal_matrix(*x))) st = LOP_NOMATCH;
    return st == LOP_OK ? lop_woodbury_of_diagonal(mk, dt, a, s) : st;
}

lop_status lop_is_between_update(const lop_maker *mk, const lop_node *p, lop_dtype dt) {
    const lop_node *s = NULL, *x = NULL;
    const lop_status st = p->op == &lop_op_prod ? read_between(mk, p, dt, &s, &x) : LOP_NOMATCH;
    lop_node_unref(s);
    lop_node_unref(x);
    return st;
}

/* The vector of a diagonal in another dtype. */
static lop_status vector_of(const lop_maker *mk, const lop_attr *dt, const lop_node *a,
                            const lop_node **out) {
    const lop_node *d = NULL;
    lop_status st = lop_make_diagonal(mk, a, &d);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_cast, dt, d, out);
    lop_node_unref(d);
    return st;
}

/* With S^-1 = B^-1 - W Y, Y = cap^-1 C V^H B^-1: diag(W Y), and diag(W (Y X W) Y). */
static lop_status thin_between(const woodbury *s, const lop_node *x, const lop_node **once,
                               const lop_node **twice) {
    const lop_attr main_one = {.i = {0, 0, 0, 0}};
    const lop_node *w = s->w->child[0], *vb = NULL, *t = NULL, *y = NULL, *in = NULL, *xw = NULL,
                   *yo = NULL, *small = NULL, *ws = NULL;
    lop_status st = lop_woodbury_right(s, &vb);
    if (st == LOP_OK && s->p.c) st = lop_make2(s->mk, &lop_op_apply, NULL, s->p.c, vb, &t);
    if (st == LOP_OK) st = lop_woodbury_inner(s, t ? t : vb, &y);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_product_diagonal, &main_one, w, y, once);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_diag, NULL, x, &in);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_apply, NULL, in, w, &xw);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_dense, NULL, y, &yo);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_apply, NULL, yo, xw, &small);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_apply, NULL, s->w, small, &ws);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_product_diagonal, &main_one, ws, y, twice);
    const lop_node *gone[] = {vb, t, y, in, xw, yo, small, ws};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

LOP_BUILD(between_update_diagonal) {
    const lop_attr cast = {.i = {1, 0, 0, (int64_t)m->root->dtype + 1}},
                   minus_two = lop_attr_coef(-2, 0);
    const lop_node *x = NULL, *a = NULL, *xv = NULL, *b = NULL, *r = NULL, *xr = NULL, *xrr = NULL,
                   *once = NULL, *twice = NULL, *cross = NULL, *less = NULL, *sum = NULL,
                   *value = NULL, *alt = NULL;
    if (m->root->attr.i[0] != 0 || !lop_is_blas(m->root->dtype)) return LOP_NOMATCH;
    lop_status st = read_between(mk, m->root->child[0], m->root->dtype, &a, &x);
    if (st != LOP_OK) {
        lop_node_unref(a);
        lop_node_unref(x);
        return st;
    }
    woodbury s = {.mk = mk, .a = a, .p = parts_of(a)};
    s.dt = (lop_attr){.i = {0, 0, 0, (int64_t)m->root->dtype + 1}};
    st = lop_woodbury_open(&s);
    if (st == LOP_OK) st = vector_of(mk, &cast, x, &xv);
    if (st == LOP_OK) st = vector_of(mk, &cast, s.p.base, &b);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_recip, NULL, b, &r);
    if (st == LOP_OK) st = thin_between(&s, xv, &once, &twice);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_mul, NULL, xv, r, &xr);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_mul, NULL, xr, r, &xrr);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_mul, NULL, xr, once, &cross);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &minus_two, cross, &less);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_add, NULL, xrr, less, &sum);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_add, NULL, sum, twice, &value);
    if (st == LOP_OK) st = lop_diagonal_of_dense(mk, m->root->dtype, m->root->child[0], &alt);
    if (st == LOP_OK) st = lop_woodbury_checked(&s, &lop_op_checked_value, value, alt, out);
    const lop_node *gone[] = {xv, b, r, xr, xrr, once, twice, cross, less, sum, value, alt, a, x};
    lop_woodbury_close(&s);
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}
LOP_BUILD(between_update_trace) {
    const lop_status st = lop_is_between_update(mk, m->root->child[0], m->root->dtype);
    return st == LOP_OK ? lop_build_trace_diagonal(m, mk, out) : st;
}
