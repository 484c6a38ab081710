/* builds_det.c: computed right sides of determinants: pairs of mantissa and exponent (op_det.c). */
#include "builds.h"

#define HOLE(m, c) ((m)->node[(c) - 'a'])
#define ATTR(m, c) ((m)->attr[(c) - 'a'])

/* 1 of an identity and of nothing, 0 of zeros. */
LOP_BUILD(det_const) {
    const lop_node *a = m->root->child[0], *root = m->root;
    lop_attr which = {.i = {a->op == &lop_op_identity || lop_rows(a) == 0, 0, 0, 0}};
    lop_node like = {.shape = root->shape, .dtype = root->dtype, .core = 1};
    return lop_make(mk, "detconst", &which, 0, NULL, &like, out);
}

LOP_BUILD(det_view) {
    const lop_node *d;
    lop_status st = lop_make1(mk, &lop_op_scaledet, &ATTR(m, 'k'), HOLE(m, 'a'), &d);
    if (st != LOP_OK) return st;
    if (!(ATTR(m, 'm').i[0] & LOP_C)) {
        *out = d;
        return LOP_OK;
    }
    st = lop_make1(mk, &lop_op_conjugate, NULL, d, out);
    lop_node_unref(d);
    return st;
}

LOP_BUILD(det_scaled) {
    lop_attr c = ATTR(m, 'c');
    c.i[3] = lop_rows(HOLE(m, 'a'));
    const lop_node *d;
    lop_status st = lop_make1(mk, &lop_op_scaledet, &ATTR(m, 'k'), HOLE(m, 'a'), &d);
    if (st != LOP_OK) return st;
    st = lop_make1(mk, &lop_op_detscale, &c, d, out);
    lop_node_unref(d);
    return st;
}

/* Each factor to the power of the other sizes' product. */
LOP_BUILD(det_kron) {
    const lop_node *k = m->root->child[0], *all = NULL;
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < k->n; i++) {
        const lop_node *one = NULL, *raised = NULL, *both = NULL;
        lop_attr p = {.i = {1, 0, 0, 0}};
        for (int j = 0; st == LOP_OK && j < k->n; j++)
            if (j != i && !lop_mul_ok(p.i[0], lop_rows(k->child[j]), &p.i[0]))
                st = lop_fail(mk->err, LOP_OVERFLOW, NULL);
        if (st == LOP_OK) st = lop_make1(mk, &lop_op_scaledet, &m->root->attr, k->child[i], &one);
        if (st == LOP_OK) st = lop_make1(mk, &lop_op_detpow, &p, one, &raised);
        if (st == LOP_OK && all) st = lop_make2(mk, &lop_op_detmul, NULL, all, raised, &both);
        if (st == LOP_OK && !all) both = lop_node_ref(raised);
        lop_node_unref(one);
        lop_node_unref(raised);
        lop_node_unref(all);
        all = both;
    }
    *out = all;
    return st;
}
