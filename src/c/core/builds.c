/* builds.c: computed right sides but for Kron's. Short chains of makes; every intermediate is released. */
#include "builds.h"

#define HOLE(m, c) ((m)->node[(c) - 'a'])
#define ATTR(m, c) ((m)->attr[(c) - 'a'])

/* Gives away `node`: the caller's reference becomes *out through one more make. */
static lop_status wrap(const lop_maker *mk, const lop_op *op, const lop_attr *attr, const lop_node *inner, const lop_node **out) {
    lop_status st = lop_make1(mk, op, attr, inner, out);
    lop_node_unref(inner);
    return st;
}

LOP_BUILD(view_view) {
    lop_attr mode = {.i = {ATTR(m, 'm').i[0] ^ ATTR(m, 'n').i[0], 0, 0, 0}};
    if (mode.i[0]) return lop_make1(mk, &lop_op_view, &mode, HOLE(m, 'a'), out);
    *out = lop_node_ref(HOLE(m, 'a'));
    return LOP_OK;
}

LOP_BUILD(view_real) {
    lop_attr mode = {.i = {ATTR(m, 'm').i[0] & LOP_T, 0, 0, 0}};
    if (mode.i[0]) return lop_make1(mk, &lop_op_view, &mode, HOLE(m, 'a'), out);
    *out = lop_node_ref(HOLE(m, 'a'));
    return LOP_OK;
}

LOP_BUILD(view_diag) {
    if (!(ATTR(m, 'm').i[0] & LOP_C) || !lop_is_complex(m->root->dtype)) {
        *out = lop_node_ref(m->root->child[0]);
        return LOP_OK;
    }
    const lop_node *d;
    lop_status st = lop_make1(mk, &lop_op_conjugate, NULL, HOLE(m, 'a'), &d);
    return st == LOP_OK ? wrap(mk, &lop_op_diag, NULL, d, out) : st;
}

LOP_BUILD(view_scaled) {
    lop_attr c = ATTR(m, 'c');
    if (ATTR(m, 'm').i[0] & LOP_C) c.im = c.im != 0 ? -c.im : c.im;
    const lop_node *a;
    lop_status st = lop_make1(mk, &lop_op_view, &ATTR(m, 'm'), HOLE(m, 'a'), &a);
    return st == LOP_OK ? wrap(mk, &lop_op_scaled, &c, a, out) : st;
}

/* A kind without children of the root's shape and dtype: the one that stood there. */
LOP_BUILD(one_kind) { return lop_make(mk, "identity", NULL, 0, NULL, m->root, out); }
LOP_BUILD(zeros) { return lop_make(mk, "zeros", NULL, 0, NULL, m->root, out); }

LOP_BUILD(cast_x) {
    lop_attr a = {.i = {0, 0, 0, (int64_t)m->root->dtype + 1}};
    return lop_make1(mk, &lop_op_cast, &a, HOLE(m, 'x'), out);
}

LOP_BUILD(apply_power) {
    lop_attr less = ATTR(m, 'p');
    if (less.i[0] == 0) return lop_build_cast_x(m, mk, out);
    if (less.i[0] == 1) return lop_make2(mk, &lop_op_apply, NULL, HOLE(m, 'a'), HOLE(m, 'x'), out);
    const lop_node *power = NULL, *inner = NULL;
    less.i[0]--;
    lop_status st = lop_make1(mk, &lop_op_power, &less, HOLE(m, 'a'), &power);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, power, HOLE(m, 'x'), &inner);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, HOLE(m, 'a'), inner, out);
    lop_node_unref(power);
    lop_node_unref(inner);
    return st;
}

/* x / c, then A^-1: a power of two or not, one rounding. The coefficient keeps its dtype class. */
LOP_BUILD(solve_scaled) {
    lop_attr c = ATTR(m, 'c'), r = c;
    double size = c.re * c.re + c.im * c.im;
    if (!(size > 1e-290 && size < 1e290)) return LOP_NOMATCH;
    r.re = c.im != 0 ? c.re / size : 1 / c.re;
    r.im = c.im != 0 ? -c.im / size : 0;
    if (r.i[1] > 0 && r.i[1] < LOP_WEAK_FLOAT) r.i[1] = LOP_WEAK_FLOAT;
    if (r.i[1] == 0) r.i[2] = (int64_t)lop_promote_weak(LOP_WEAK_FLOAT, (lop_dtype)r.i[2]);
    const lop_node *x;
    lop_status st = lop_make2(mk, &lop_op_solve, NULL, HOLE(m, 'a'), HOLE(m, 'x'), &x);
    return st == LOP_OK ? wrap(mk, &lop_op_scale, &r, x, out) : st;
}

static lop_status by_factor(const lop_match *m, const lop_maker *mk, const lop_op *op, const lop_node **out) {
    lop_attr d = {.i = {0, 0, 0, (int64_t)m->root->dtype + 1}};
    const lop_node *dense;
    lop_status st = lop_make1(mk, &lop_op_todense, &d, HOLE(m, 'a'), &dense);
    if (st != LOP_OK) return st;
    st = lop_make2(mk, op, NULL, dense, HOLE(m, 'x'), out);
    lop_node_unref(dense);
    return st;
}
LOP_BUILD(cholsolve) { return by_factor(m, mk, &lop_op_cholsolve, out); }
LOP_BUILD(lusolve) { return by_factor(m, mk, &lop_op_lusolve, out); }

/* todense, diagonal, trace, element of a multiple: the multiple, in the action's dtype. */
LOP_BUILD(scaled_value) {
    const lop_node *value;
    lop_attr c = ATTR(m, 'c');
    lop_status st = lop_make1(mk, m->root->op, &m->root->attr, HOLE(m, 'a'), &value);
    return st == LOP_OK ? wrap(mk, &lop_op_scale, &c, value, out) : st;
}

static lop_status eye_of(const lop_maker *mk, int64_t n, lop_dtype dt, const lop_node **out) {
    lop_node like = {.shape = {.ndim = 2, .dim = {n, n}}, .dtype = dt, .core = 2};
    return lop_make(mk, "eye", NULL, 0, NULL, &like, out);
}
LOP_BUILD(eye) {
    lop_node like = {.shape = m->root->shape, .dtype = m->root->dtype, .core = 2};
    return lop_make(mk, "eye", NULL, 0, NULL, &like, out);
}
LOP_BUILD(apply_eye) {
    const lop_node *eye;
    lop_status st = eye_of(mk, lop_cols(HOLE(m, 'a')), m->root->dtype, &eye);
    if (st != LOP_OK) return st;
    st = lop_make2(mk, &lop_op_apply, NULL, HOLE(m, 'a'), eye, out);
    lop_node_unref(eye);
    return st;
}

LOP_BUILD(diagonal_view) {
    lop_attr k = ATTR(m, 'k');
    int64_t mode = ATTR(m, 'm').i[0];
    if (mode & LOP_T) k.i[0] = -k.i[0];
    lop_status st = lop_make1(mk, &lop_op_diagonal, &k, HOLE(m, 'a'), out);
    if (st != LOP_OK || !(mode & LOP_C)) return st;
    return wrap(mk, &lop_op_conjugate, NULL, *out, out);
}

/* Both factors dense, the product never. Where that is more than the product itself, the dense form. */
LOP_BUILD(diagonal_prod) {
    lop_attr k = ATTR(m, 'k'), only = {.i = {k.i[0], 0, 0, 0}};
    const lop_node *a = NULL, *b = NULL;
    lop_status st = lop_make1(mk, &lop_op_todense, &(lop_attr){.i = {0, 0, 0, k.i[3]}}, HOLE(m, 'a'), &a);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &(lop_attr){.i = {0, 0, 0, k.i[3]}}, HOLE(m, 'b'), &b);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_pairdiag, &only, a, b, out);
    lop_node_unref(a);
    lop_node_unref(b);
    return st;
}
LOP_BUILD(diagonal_dense) {
    lop_attr d = {.i = {0, 0, 0, ATTR(m, 'k').i[3]}}, k = {.i = {ATTR(m, 'k').i[0], 0, 0, 0}};
    const lop_node *dense;
    lop_status st = lop_make1(mk, &lop_op_todense, &d, HOLE(m, 'a'), &dense);
    return st == LOP_OK ? wrap(mk, &lop_op_subdiag, &k, dense, out) : st;
}

LOP_BUILD(element_view) {
    lop_attr k = ATTR(m, 'k');
    int64_t mode = ATTR(m, 'm').i[0];
    if (mode & LOP_T) {
        int64_t i = k.i[0];
        k.i[0] = k.i[1];
        k.i[1] = i;
    }
    lop_status st = lop_make1(mk, &lop_op_element, &k, HOLE(m, 'a'), out);
    if (st != LOP_OK || !(mode & LOP_C)) return st;
    return wrap(mk, &lop_op_conjugate, NULL, *out, out);
}
LOP_BUILD(element_dense) {
    lop_attr at = {.i = {ATTR(m, 'k').i[0], ATTR(m, 'k').i[1], 0, 0}}, d = {.i = {0, 0, 0, (int64_t)m->root->dtype + 1}};
    const lop_node *e;
    lop_status st = lop_make1(mk, &lop_op_pick, &at, HOLE(m, 'a'), &e);
    return st == LOP_OK ? wrap(mk, &lop_op_cast, &d, e, out) : st;
}
LOP_BUILD(element_eye) {
    lop_attr at = {.i = {ATTR(m, 'k').i[0] == ATTR(m, 'k').i[1] ? 0 : 1, 0, 0, 0}};
    const lop_node *eye; /* one element of a 2 x 2 unit matrix */
    lop_status st = eye_of(mk, 2, m->root->dtype, &eye);
    return st == LOP_OK ? wrap(mk, &lop_op_pick, &at, eye, out) : st;
}
LOP_BUILD(element_column) {
    lop_attr k = ATTR(m, 'k'), row = {.i = {k.i[0], 0, 0, 0}}, one = {.i = {k.i[1], 0, 0, 0}};
    lop_node like = {.shape = {.ndim = 2, .dim = {lop_cols(HOLE(m, 'a')), 1}}, .dtype = m->root->dtype, .core = 2};
    const lop_node *unit, *column;
    lop_status st = lop_make(mk, "unit", &one, 0, NULL, &like, &unit);
    if (st != LOP_OK) return st;
    st = lop_make2(mk, &lop_op_apply, NULL, HOLE(m, 'a'), unit, &column);
    lop_node_unref(unit);
    return st == LOP_OK ? wrap(mk, &lop_op_pick, &row, column, out) : st;
}
