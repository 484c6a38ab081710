/* builds_band.c: computed right sides for permutations, diagonals off the middle, bands, triangles
 * and the other small kinds. */
#include "builds.h"

#define HOLE(m, c) ((m)->node[(c) - 'a'])
#define ATTR(m, c) ((m)->attr[(c) - 'a'])

/* Gives away `inner`. */
static lop_status wrap(const lop_maker *mk, const lop_op *op, const lop_attr *attr,
                       const lop_node *inner, const lop_node **out) {
    lop_status st = lop_make1(mk, op, attr, inner, out);
    lop_node_unref(inner);
    return st;
}

/* A view of what is real whatever its dtype. */
LOP_BUILD(drop_conj) {
    const lop_node *a = m->root->child[0];
    lop_attr mode = {.i = {ATTR(m, 'm').i[0] & LOP_T, 0, 0, 0}};
    if (mode.i[0]) return lop_make1(mk, &lop_op_view, &mode, a, out);
    *out = lop_node_ref(a);
    return LOP_OK;
}

/* `a`, conjugated where the mode says so and it is complex. Owned. */
static lop_status conj_of(const lop_maker *mk, int64_t mode, const lop_node *a,
                          const lop_node **out) {
    if ((mode & LOP_C) && lop_is_complex(a->dtype))
        return lop_make1(mk, &lop_op_conjugate, NULL, a, out);
    *out = lop_node_ref(a);
    return LOP_OK;
}

LOP_BUILD(view_offdiag) {
    int64_t mode = ATTR(m, 'm').i[0];
    lop_attr a = ATTR(m, 'a'), t = {.i = {-a.i[0], a.i[2], a.i[1], 0}};
    const lop_node *d;
    lop_status st = conj_of(mk, mode, HOLE(m, 'a'), &d);
    return st == LOP_OK ? wrap(mk, &lop_op_offdiag, mode & LOP_T ? &t : &a, d, out) : st;
}

LOP_BUILD(compose) {
    lop_attr a = {.i = {0, m->root->weak, (int64_t)m->root->dtype, 0}};
    const lop_node *p;
    if (m->root->dtype >= LOP_NDTYPE) return LOP_NOMATCH;
    lop_status st = lop_make2(mk, &lop_op_compose, NULL, HOLE(m, 'q'), HOLE(m, 'p'), &p);
    return st == LOP_OK ? wrap(mk, &lop_op_permutation, &a, p, out) : st;
}

LOP_BUILD(view_permutation) {
    if (!(ATTR(m, 'm').i[0] & LOP_T)) {
        *out = lop_node_ref(m->root->child[0]);
        return LOP_OK;
    }
    const lop_node *p;
    lop_status st = lop_make1(mk, &lop_op_invperm, NULL, HOLE(m, 'p'), &p);
    return st == LOP_OK ? wrap(mk, &lop_op_permutation, &ATTR(m, 'a'), p, out) : st;
}
