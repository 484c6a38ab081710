/* builds_conv.c: computed right sides for the kinds of convolution type. */
#include "builds.h"

#define HOLE(m, c) ((m)->node[(c) - 'a'])
#define ATTR(m, c) ((m)->attr[(c) - 'a'])

/* An expression that is narrower than the result is cast, as in builds.c: owned. */
static lop_status widened(const lop_maker *mk, const lop_node *a, lop_dtype dt,
                          const lop_node **out) {
    lop_attr d = {.i = {0, 0, 0, (int64_t)dt + 1}};
    if (a->n > 0 && a->dtype != dt) return lop_make1(mk, &lop_op_cast, &d, a, out);
    *out = lop_node_ref(a);
    return LOP_OK;
}

LOP_BUILD(circulant_product) {
    const lop_node *p[3] = {NULL, NULL, HOLE(m, 's')}, *c[2] = {NULL, HOLE(m, 's')};
    lop_status st = widened(mk, HOLE(m, 'a'), m->root->dtype, &p[0]);
    if (st == LOP_OK) st = widened(mk, HOLE(m, 'b'), m->root->dtype, &p[1]);
    if (st == LOP_OK) st = lop_make(mk, "circconv", NULL, 3, p, NULL, &c[0]);
    if (st == LOP_OK) st = lop_make(mk, "circulant", NULL, 2, c, NULL, out);
    lop_node_unref(p[0]);
    lop_node_unref(p[1]);
    lop_node_unref(c[0]);
    return st;
}

LOP_BUILD(circulant_view) {
    const int64_t mode = ATTR(m, 'm').i[0];
    const lop_node *c = lop_node_ref(HOLE(m, 'a')), *next = NULL;
    lop_status st = LOP_OK;
    if ((mode & LOP_C) && lop_is_complex(c->dtype)) {
        st = lop_make1(mk, &lop_op_conjugate, NULL, c, &next);
        lop_node_unref(c);
        c = next;
    }
    if (st == LOP_OK && (mode & LOP_T)) {
        st = lop_make2(mk, &lop_op_circflip, NULL, c, HOLE(m, 's'), &next);
        lop_node_unref(c);
        c = next;
    }
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_circulant, NULL, c, HOLE(m, 's'), out);
    lop_node_unref(c);
    return st;
}

/* view@m of C(c) where C was written with the views `inner` in its first column. */
static lop_status seen(const lop_match *m, const lop_maker *mk, int64_t inner,
                       const lop_node **out) {
    lop_attr mode = {.i = {ATTR(m, 'm').i[0] ^ inner, 0, 0, 0}};
    const lop_node *c;
    lop_status st = lop_make2(mk, &lop_op_circulant, NULL, HOLE(m, 'c'), HOLE(m, 's'), &c);
    if (st != LOP_OK || !mode.i[0]) {
        *out = c;
        return st;
    }
    st = lop_make1(mk, &lop_op_view, &mode, c, out);
    lop_node_unref(c);
    return st;
}
LOP_BUILD(view_circulant_flip) { return seen(m, mk, LOP_T, out); }
LOP_BUILD(view_circulant_conj) { return seen(m, mk, LOP_C, out); }

LOP_BUILD(circulant_solve) {
    const lop_node *a = m->root->child[0];
    lop_attr mode = {.i = {a->op == &lop_op_view ? a->attr.i[0] : 0, 0, 0, 0}};
    const lop_node *p[3] = {NULL, HOLE(m, 's'), HOLE(m, 'x')};
    lop_status st = widened(mk, HOLE(m, 'a'), m->root->dtype, &p[0]);
    if (st == LOP_OK) st = lop_make(mk, "circsolve", &mode, 3, p, NULL, out);
    lop_node_unref(p[0]);
    return st;
}
