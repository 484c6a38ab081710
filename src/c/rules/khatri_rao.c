/* khatri_rao.c: computed right sides for products with KhatriRao and HadamardProduct that form no
 * dense matrix of their size: columns times rows, one product with many columns, rows summed up. */
#include "builds.h"

#define HOLE(m, c) ((m)->node[(c) - 'a'])
#define ATTR(m, c) ((m)->attr[(c) - 'a'])

static lop_status one(const lop_maker *mk, const lop_op *op, int64_t mode, const lop_node *a,
                      const lop_node **out) {
    lop_attr m = {.i = {mode, 0, 0, 0}};
    return lop_make1(mk, op, mode ? &m : NULL, a, out);
}
/* The dense form of mode(a) in the root's dtype, and x in it. */
static lop_status dense_of(const lop_match *m, const lop_maker *mk, const lop_node *a, int64_t mode,
                           const lop_node **out) {
    lop_attr d = {.i = {0, 0, 0, (int64_t)m->root->dtype + 1}};
    const lop_node *v = NULL;
    lop_status st = LOP_OK;
    if (mode) st = one(mk, &lop_op_view, mode, a, &v);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &d, mode ? v : a, out);
    lop_node_unref(v);
    return st;
}
static lop_status cast_x(const lop_match *m, const lop_maker *mk, const lop_node **out) {
    lop_attr d = {.i = {1, 0, 0, (int64_t)m->root->dtype + 1}};
    return lop_make1(mk, &lop_op_cast, &d, HOLE(m, 'x'), out);
}

/* Row l: w[:, l] (x) x[l, :], of w r x n and x n x k: n x (r k). */
static lop_status spread_rows(const lop_maker *mk, const lop_node *w, const lop_node *x,
                              const lop_node **out) {
    const lop_node *turned = NULL, *both = NULL;
    lop_status st = one(mk, &lop_op_swap, LOP_T, x, &turned);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_khatri_rao_array, NULL, w, turned, &both);
    if (st == LOP_OK) st = one(mk, &lop_op_swap, LOP_T, both, out);
    lop_node_unref(turned);
    lop_node_unref(both);
    return st;
}

/* (A kr B) x: A times (row l: b_l (x) x_l), read as m p rows. */
LOP_BUILD(apply_khatrirao) {
    const lop_node *k = m->root->child[0], *x = NULL, *b = NULL, *wide = NULL, *y = NULL;
    lop_attr back = {
        .i = {1, lop_rows(k->child[0]), lop_rows(k->child[1]), lop_cols(HOLE(m, 'x'))}};
    lop_status st = cast_x(m, mk, &x);
    if (st == LOP_OK) st = dense_of(m, mk, k->child[1], LOP_N, &b);
    if (st == LOP_OK) st = spread_rows(mk, b, x, &wide);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, k->child[0], wide, &y);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_kron_fold, &back, y, out);
    const lop_node *gone[] = {x, b, wide, y};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* mode(A kr B) x. Transposed: A^T times x read as m x (p k), rows summed up with those of B^T. */
LOP_BUILD(apply_khatrirao_view) {
    const lop_node *k = m->root->child[0]->child[0], *a = k->child[0], *b = k->child[1];
    const int64_t mode = m->root->child[0]->attr.i[0];
    lop_attr k_of = {.i = {lop_cols(HOLE(m, 'x')), 0, 0, 0}};
    const lop_node *va = NULL, *vb = NULL, *both = NULL, *x = NULL, *w = NULL, *y = NULL;
    lop_attr to = {.i = {1, lop_rows(a), lop_rows(b), lop_cols(HOLE(m, 'x'))}};
    lop_status st = one(mk, &lop_op_view, mode, a, &va);
    if (mode == LOP_C) {
        if (st == LOP_OK) st = one(mk, &lop_op_view, mode, b, &vb);
        if (st == LOP_OK) st = lop_make2(mk, &lop_op_khatrirao, NULL, va, vb, &both);
        if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, both, HOLE(m, 'x'), out);
    } else {
        const lop_node *folded = NULL;
        if (st == LOP_OK) st = cast_x(m, mk, &x);
        if (st == LOP_OK) st = lop_make1(mk, &lop_op_kron_unfold, &to, x, &folded);
        if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, va, folded, &y);
        if (st == LOP_OK) st = dense_of(m, mk, b, mode, &w);
        if (st == LOP_OK) st = lop_make2(mk, &lop_op_rowmix, &k_of, w, y, out);
        lop_node_unref(folded);
    }
    const lop_node *gone[] = {va, vb, both, x, w, y};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* (A kr B)[i, j] = A[i / p, j] B[i % p, j]. */
LOP_BUILD(element_khatrirao) {
    const lop_node *k = m->root->child[0], *e[2] = {NULL, NULL};
    lop_attr at = ATTR(m, 'k');
    const int64_t i = at.i[0], p = lop_rows(k->child[1]);
    lop_status st = LOP_OK;
    at.i[3] = (int64_t)m->root->dtype + 1;
    for (int j = 0; st == LOP_OK && j < 2; j++) {
        at.i[0] = j ? i % p : i / p;
        st = lop_make1(mk, &lop_op_element, &at, k->child[j], &e[j]);
    }
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_mul, NULL, e[0], e[1], out);
    lop_node_unref(e[0]);
    lop_node_unref(e[1]);
    return st;
}

/* (U V^H o A) x: A times (row l: conj(v_l) (x) x_l), rows summed up with those of U. */
LOP_BUILD(apply_lowrank_elementwise) {
    const lop_node *h = m->root->child[0];
    const int low = h->child[0]->op == &lop_op_lowrank ? 0 : 1;
    const lop_node *uv = h->child[low], *a = h->child[1 - low];
    lop_attr k_of = {.i = {lop_cols(HOLE(m, 'x')), 0, 0, 0}};
    const lop_node *x = NULL, *v = NULL, *u = NULL, *wide = NULL, *y = NULL;
    lop_status st = cast_x(m, mk, &x);
    if (st == LOP_OK) st = dense_of(m, mk, uv->child[1], LOP_H, &v);
    if (st == LOP_OK) st = dense_of(m, mk, uv->child[0], LOP_N, &u);
    if (st == LOP_OK) st = spread_rows(mk, v, x, &wide);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, a, wide, &y);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_rowmix, &k_of, u, y, out);
    const lop_node *gone[] = {x, v, u, wide, y};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* c everywhere, times A: c A. */
LOP_BUILD(full_elementwise) {
    const lop_node *h = m->root;
    const int which = h->child[0]->op == &lop_op_full ? 0 : 1;
    return lop_make1(mk, &lop_op_scaled, &h->child[which]->attr, h->child[1 - which], out);
}

/* Row l: a_l (x) b_l. */
static lop_status by_rows(const lop_maker *mk, const lop_node *a, const lop_node *b,
                          const lop_node **out) {
    const lop_node *ta = NULL, *tb = NULL, *both = NULL;
    lop_status st = one(mk, &lop_op_view, LOP_T, a, &ta);
    if (st == LOP_OK) st = one(mk, &lop_op_view, LOP_T, b, &tb);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_khatrirao, NULL, ta, tb, &both);
    if (st == LOP_OK) st = one(mk, &lop_op_view, LOP_T, both, out);
    lop_node_unref(ta);
    lop_node_unref(tb);
    lop_node_unref(both);
    return st;
}
/* U V^H o W Z^H: of all pairs of columns. */
LOP_BUILD(lowrank_elementwise) {
    const lop_node *a = m->root->child[0], *b = m->root->child[1], *u = NULL, *v = NULL;
    lop_status st = by_rows(mk, a->child[0], b->child[0], &u);
    if (st == LOP_OK) st = by_rows(mk, a->child[1], b->child[1], &v);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_lowrank, NULL, u, v, out);
    lop_node_unref(u);
    lop_node_unref(v);
    return st;
}
