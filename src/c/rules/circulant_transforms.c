/* circulant_transforms.c: computed right sides for the kinds of convolution type. */
#include "builds.h"

#define HOLE(m, c) ((m)->node[(c) - 'a'])
#define ATTR(m, c) ((m)->attr[(c) - 'a'])

/* An expression that is narrower than the result is cast, as in views_scalars_elements.c: owned. */
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
    if (st == LOP_OK) st = lop_make(mk, "circular_convolution", NULL, 3, p, NULL, &c[0]);
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
        st = lop_make2(mk, &lop_op_circulant_flip, NULL, c, HOLE(m, 's'), &next);
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
    if (st == LOP_OK) st = lop_make(mk, "circulant_solve", &mode, 3, p, NULL, out);
    lop_node_unref(p[0]);
    return st;
}

/* -- transforms: the child of the root is one, perhaps seen through a view */

/* Norms backward and forward change places in an inverse. */
static int64_t opposite(int64_t norm) { return 2 - norm; }

LOP_BUILD(inverse_dft) {
    const lop_node *a = m->root->child[0], *f = a->op == &lop_op_view ? a->child[0] : a, *inner;
    lop_attr k = f->attr,
             mode = {.i = {LOP_C ^ (a->op == &lop_op_view ? a->attr.i[0] & LOP_C : 0), 0, 0, 0}};
    k.i[0] = opposite(k.i[0]);
    lop_status st = lop_make1(mk, &lop_op_dft, &k, HOLE(m, 's'), &inner);
    if (st != LOP_OK || !mode.i[0]) {
        *out = inner;
        return st;
    }
    st = lop_make1(mk, &lop_op_view, &mode, inner, out);
    lop_node_unref(inner);
    return st;
}

LOP_BUILD(inverse_dct) {
    lop_attr k = m->root->child[0]->attr;
    const int64_t turned = k.i[3] / 3;
    k.i[3] = opposite(k.i[3] % 3) + 3 * turned;
    k.i[0] = k.i[0] == 2 ? 3 : k.i[0] == 3 ? 2 : k.i[0];
    return lop_make1(mk, &lop_op_dct, &k, HOLE(m, 's'), out);
}
LOP_BUILD(view_dct) { /* real, whatever its dtype */
    lop_attr k = m->root->child[0]->attr;
    if (ATTR(m, 'm').i[0] & LOP_T) k.i[3] = (k.i[3] + 3) % 6;
    return lop_make1(mk, &lop_op_dct, &k, HOLE(m, 's'), out);
}

static lop_status solved_by(const lop_maker *mk, lop_status st, const lop_node *inverse,
                            const lop_node *x, const lop_node **out) {
    if (st != LOP_OK) return st;
    st = lop_make2(mk, &lop_op_apply, NULL, inverse, x, out);
    lop_node_unref(inverse);
    return st;
}

/* x in the dtype of the solution; strong integers of an operator count as float64. */
static lop_status cast_x(const lop_match *m, const lop_maker *mk, const lop_node **out) {
    lop_attr d = {.i = {1, 0, 0, (int64_t)m->root->dtype + 1}};
    return lop_make1(mk, &lop_op_cast, &d, HOLE(m, 'x'), out);
}

LOP_BUILD(solve_dft) {
    const lop_node *inverse = NULL;
    lop_status st = lop_build_inverse_dft(m, mk, &inverse);
    return solved_by(mk, st, inverse, HOLE(m, 'x'), out);
}
LOP_BUILD(solve_dct) {
    const lop_node *inverse = NULL, *x;
    lop_status st = cast_x(m, mk, &x);
    if (st != LOP_OK) return st;
    st = lop_build_inverse_dct(m, mk, &inverse);
    st = solved_by(mk, st, inverse, x, out);
    lop_node_unref(x);
    return st;
}

LOP_BUILD(hadamard) { return lop_make(mk, "hadamard", NULL, 0, NULL, m->root, out); }

LOP_BUILD(inverse_hadamard) { /* in the inverse's dtype: in that of integers the sums would wrap */
    const lop_node *h = NULL;
    lop_attr c = lop_attr_coef(1.0 / (double)lop_rows(m->root), 0);
    lop_status st = lop_make(mk, "hadamard", NULL, 0, NULL, m->root, &h);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scaled, &c, h, out);
    lop_node_unref(h);
    return st;
}
LOP_BUILD(solve_hadamard) {
    const lop_node *h = m->root->child[0], *x, *y = NULL;
    lop_attr c = lop_attr_coef(1.0 / (double)lop_rows(h), 0);
    lop_status st = cast_x(m, mk, &x);
    if (st != LOP_OK) return st;
    st = lop_make2(mk, &lop_op_apply, NULL, h, x, &y);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &c, y, out);
    lop_node_unref(x);
    lop_node_unref(y);
    return st;
}
