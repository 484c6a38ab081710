/* op_algebra.c: the closed set: sums, products, scalar multiples, powers, views, inverses of
 * operators, and the opaque leaf (callables, foreign dtypes). None computes here: rules take them
 * apart. */
#include "expr/vjp.h"

static lop_status two_operators(const lop_node *n, lop_err *err) {
    for (int i = 0; i < n->n; i++)
        if (n->child[i]->op->cls != LOP_OPERATOR)
            return lop_fail(err, LOP_DIM, "%s takes operators", n->op->name);
    return LOP_OK;
}

static lop_status infer_sum(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0], *b = n->child[1];
    lop_status st = two_operators(n, err);
    if (st != LOP_OK) return st;
    if (lop_rows(a) != lop_rows(b) || lop_cols(a) != lop_cols(b)) {
        char ta[128], tb[128];
        return lop_fail(err, LOP_DIM,
                        "cannot add operators of shapes %s and %s: shape mismatch, rows and "
                        "columns must agree",
                        lop_shape_text(&a->shape, ta, sizeof ta),
                        lop_shape_text(&b->shape, tb, sizeof tb));
    }
    st = lop_shape_batch(&a->shape, 2, &b->shape, 2, &n->shape, err);
    if (st != LOP_OK) return st;
    n->shape.dim[n->shape.ndim++] = lop_rows(a);
    n->shape.dim[n->shape.ndim++] = lop_cols(a);
    lop_node_promote(n, a, b);
    return st;
}

static lop_status infer_prod(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0], *b = n->child[1];
    lop_status st = two_operators(n, err);
    if (st != LOP_OK) return st;
    if (lop_cols(a) != lop_rows(b)) {
        char ta[128], tb[128];
        return lop_fail(err, LOP_DIM,
                        "cannot multiply operators of shapes %s and %s: shape mismatch, %lld "
                        "columns meet %lld rows",
                        lop_shape_text(&a->shape, ta, sizeof ta),
                        lop_shape_text(&b->shape, tb, sizeof tb), (long long)lop_cols(a),
                        (long long)lop_rows(b));
    }
    st = lop_shape_batch(&a->shape, 2, &b->shape, 2, &n->shape, err);
    if (st != LOP_OK) return st;
    n->shape.dim[n->shape.ndim++] = lop_rows(a);
    n->shape.dim[n->shape.ndim++] = lop_cols(b);
    lop_node_promote(n, a, b);
    return st;
}

static lop_status infer_like_child(lop_node *n, lop_err *err) {
    lop_status st = two_operators(n, err);
    n->shape = n->child[0]->shape;
    n->dtype = n->child[0]->dtype;
    n->weak = n->child[0]->weak;
    return st;
}

static lop_status infer_scaled(lop_node *n, lop_err *err) {
    lop_status st = infer_like_child(n, err);
    lop_node_scale(n);
    return st;
}

/* power: attr.i[0] >= 0 */
static lop_status infer_power(lop_node *n, lop_err *err) {
    lop_status st = infer_like_child(n, err);
    if (st == LOP_OK && !lop_is_square(n)) {
        char t[128];
        return lop_fail(err, LOP_DIM, "only square operators have powers, got shape %s",
                        lop_shape_text(&n->shape, t, sizeof t));
    }
    if (n->attr.i[0] < 0)
        return lop_fail(err, LOP_DIM, "a power must be a non-negative integer, got %lld",
                        (long long)n->attr.i[0]);
    return st;
}

/* view: attr.i[0] is the mode, 1 to 3 */
static lop_status infer_view(lop_node *n, lop_err *err) {
    lop_status st = infer_like_child(n, err);
    if (n->attr.i[0] < 1 || n->attr.i[0] > 3) return lop_fail(err, LOP_DIM, "no such view");
    if (st == LOP_OK && (n->attr.i[0] & LOP_T)) {
        int nb = lop_nbatch(n);
        n->shape.dim[nb] = lop_cols(n->child[0]);
        n->shape.dim[nb + 1] = lop_rows(n->child[0]);
    }
    return st;
}

static lop_status infer_inverse(lop_node *n, lop_err *err) {
    lop_status st = infer_like_child(n, err);
    if (st == LOP_OK && !lop_is_square(n)) {
        char t[128];
        const bool row = lop_nbatch(n) == 0 && lop_rows(n) == 1;
        return lop_fail(err, LOP_SINGULAR, "Last 2 dimensions of the array must be square: %s%s",
                        lop_shape_text(&n->shape, t, sizeof t),
                        row ? "; a vector counts as one row, and a matrix goes here" : "");
    }
    /* the inverse of a permutation is one; of other matrices of 0 and 1 it has fractions */
    const lop_node *a = n->child[0];
    if (a->op == &lop_op_view) a = a->child[0];
    const bool again = a->op == &lop_op_inverse /* which says it itself */
                           ? a->weak == LOP_WEAK
                           : lop_node_trait(a, LOP_ORTHOGONAL) == LOP_TRUE;
    if (n->weak == LOP_WEAK_INT || (n->weak == LOP_WEAK && !again)) n->weak = LOP_WEAK_FLOAT;
    if (!n->weak || n->weak < LOP_WEAK_FLOAT) n->dtype = lop_promote_weak(LOP_WEAK_FLOAT, n->dtype);
    return st;
}

/* part: attr.i[0] 0 real, 1 imaginary */
static lop_status infer_part(lop_node *n, lop_err *err) {
    lop_status st = infer_like_child(n, err);
    if (n->attr.i[0] < 0 || n->attr.i[0] > 1)
        return lop_fail(err, LOP_DIM, "a part is real or imaginary");
    n->dtype = lop_dtype_real(n->dtype);
    if (n->weak == LOP_WEAK_COMPLEX) n->weak = LOP_WEAK_FLOAT;
    return st;
}

static lop_status infer_opaque(lop_node *n, lop_err *err) {
    n->opaque = true;
    return n->shape.ndim >= 2 ? LOP_OK
                              : lop_fail(err, LOP_DIM, "an operator has at least two dimensions");
}

/* -- bands: a child's are at most its rows and columns */

static lop_band bands_sum(const lop_node *n, const lop_band *c) {
    (void)n;
    return (lop_band){c[0].l > c[1].l ? c[0].l : c[1].l, c[0].u > c[1].u ? c[0].u : c[1].u};
}
static lop_band bands_prod(const lop_node *n, const lop_band *c) {
    (void)n;
    return (lop_band){c[0].l + c[1].l, c[0].u + c[1].u};
}
static lop_band bands_same(const lop_node *n, const lop_band *c) {
    (void)n;
    return c[0];
}
static lop_band bands_power(const lop_node *n, const lop_band *c) {
    lop_band all;
    if (!lop_mul_ok(c->l, n->attr.i[0], &all.l)) all.l = INT64_MAX;
    if (!lop_mul_ok(c->u, n->attr.i[0], &all.u)) all.u = INT64_MAX;
    return all;
}
static lop_band bands_view(const lop_node *n, const lop_band *c) {
    return n->attr.i[0] & LOP_T ? (lop_band){c->u, c->l} : *c;
}
/* Of triangles triangular. */
static lop_band bands_inverse(const lop_node *n, const lop_band *c) {
    (void)n;
    return (lop_band){c->l ? INT64_MAX : 0, c->u ? INT64_MAX : 0};
}

/* -- cotangents */

static const lop_node *vjp_sum(lop_vjp *v, const lop_node *self, int child, const lop_node *g) {
    (void)v;
    (void)self;
    (void)child;
    return g;
}
static const lop_node *vjp_prod(lop_vjp *v, const lop_node *self, int child, const lop_node *g) {
    const lop_node *other = lop_vjp_view(v, self->child[1 - child], LOP_H);
    return child ? lop_vjp_prod(v, other, g) : lop_vjp_prod(v, g, other);
}
static const lop_node *vjp_scaled(lop_vjp *v, const lop_node *self, int child, const lop_node *g) {
    (void)child;
    lop_attr by = self->attr;
    by.im = -by.im;
    return lop_vjp_make(v, &lop_op_scaled, &by, g, NULL);
}
/* The sum over k of (A^H)^k G (A^H)^(p-1-k). */
static const lop_node *vjp_power(lop_vjp *v, const lop_node *self, int child, const lop_node *g) {
    enum { MOST = 12 };
    const int64_t p = self->attr.i[0];
    const lop_node *a = lop_vjp_view(v, self->child[child], LOP_H), *sum = NULL, *last = g;
    if (p < 1 || p > MOST) return lop_vjp_unable(v);
    for (int64_t k = 0; k < p; k++) { /* Horner: ((G A + A G) A + A^2 G) A + ... */
        if (k) last = lop_vjp_prod(v, a, last);
        sum = k ? lop_vjp_sum(v, lop_vjp_prod(v, sum, a), last) : g;
    }
    return sum;
}
static const lop_node *vjp_view(lop_vjp *v, const lop_node *self, int child, const lop_node *g) {
    (void)child;
    return lop_vjp_view(v, g, (lop_mode)self->attr.i[0]);
}
/* -A^-H G A^-H. */
static const lop_node *vjp_inverse(lop_vjp *v, const lop_node *self, int child, const lop_node *g) {
    (void)child;
    const lop_node *b = lop_vjp_view(v, self, LOP_H);
    return lop_vjp_times(v, -1, 0, lop_vjp_prod(v, lop_vjp_prod(v, b, g), b));
}
static const lop_node *vjp_part(lop_vjp *v, const lop_node *self, int child, const lop_node *g) {
    (void)child;
    return self->attr.i[0] ? lop_vjp_times(v, 0, 1, g) : g;
}

const lop_op lop_op_sum = {
    LOP_NAMED(sum),
    .flags = LOP_FLAG_adds | LOP_FLAG_composed,
    .title = "Sum",
    .cls = LOP_OPERATOR,
    .min = 2,
    .max = 2,
    .bands = bands_sum,
    .infer = infer_sum,
    .vjp = vjp_sum,
    .doc = {.brief = "Sum of two operators, as written; ``args`` are the two."}};
const lop_op lop_op_prod = {
    LOP_NAMED(prod),
    .flags = LOP_FLAG_composed,
    .title = "Product",
    .cls = LOP_OPERATOR,
    .min = 2,
    .max = 2,
    .bands = bands_prod,
    .infer = infer_prod,
    .vjp = vjp_prod,
    .doc = {.brief = "Product of two operators, as written; ``args`` are the two."}};
const lop_op lop_op_scaled = {
    LOP_NAMED(scaled),
    .title = "Scaled",
    .cls = LOP_OPERATOR,
    .min = 1,
    .max = 1,
    .coef = true,
    .bands = bands_same,
    .infer = infer_scaled,
    .vjp = vjp_scaled,
    .doc = {.brief = "An operator times a number; ``args`` are the operator and the number."}};
const lop_op lop_op_power = {
    LOP_NAMED(power),
    .flags = LOP_FLAG_composed,
    .title = "Power",
    .cls = LOP_OPERATOR,
    .min = 1,
    .max = 1,
    .ints = 1,
    .bands = bands_power,
    .infer = infer_power,
    .vjp = vjp_power,
    .doc = {
        .brief =
            "Non-negative integer power of a square operator; ``args`` are the operator and p."}};
const lop_op lop_op_view = {
    LOP_NAMED(view),     .cls = LOP_OPERATOR, .min = 1,       .max = 1, .ints = 1,
    .bands = bands_view, .infer = infer_view, .vjp = vjp_view};
const lop_op lop_op_inverse = {
    LOP_NAMED(inverse),
    .title = "Inverse",
    .cls = LOP_OPERATOR,
    .min = 1,
    .max = 1,
    .bands = bands_inverse,
    .infer = infer_inverse,
    .vjp = vjp_inverse,
    .doc = {.brief = "Inverse of a square operator, computed when applied; singular raises then."}};
const lop_op lop_op_part = {
    LOP_NAMED(part),
    .flags = LOP_FLAG_composed,
    .title = "Part",
    .cls = LOP_OPERATOR,
    .min = 1,
    .max = 1,
    .ints = 1,
    .bands = bands_same,
    .infer = infer_part,
    .vjp = vjp_part,
    .doc = {.brief = "Real or imaginary part of an operator, lazy; from ``.real`` and ``.imag``."}};
const lop_op lop_op_opaque = {LOP_NAMED(opaque), .cls = LOP_OPERATOR, .infer = infer_opaque};
