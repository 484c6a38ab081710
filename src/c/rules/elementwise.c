/* elementwise.c: computed right sides for HadamardProduct, KhatriRao, Congruence and Root. */
#include "builds.h"

#define HOLE(m, c) ((m)->node[(c) - 'a'])

/* what(a), what(b) in that dtype, joined. */
static lop_status joined(const lop_maker *mk, const lop_node *kind, const lop_op *what,
                         const lop_op *join, lop_dtype dt, const lop_node **out) {
    lop_attr d = {.i = {0, 0, 0, (int64_t)dt + 1}};
    const lop_node *a = NULL, *b = NULL;
    lop_status st = lop_make1(mk, what, &d, kind->child[0], &a);
    if (st == LOP_OK) st = lop_make1(mk, what, &d, kind->child[1], &b);
    if (st == LOP_OK) st = lop_make2(mk, join, NULL, a, b, out);
    lop_node_unref(a);
    lop_node_unref(b);
    return st;
}

static lop_status wrapped(const lop_maker *mk, const lop_op *op, const lop_node *value,
                          const lop_node **out) {
    lop_status st = lop_make1(mk, op, NULL, value, out);
    lop_node_unref(value);
    return st;
}

/* diag(d) o B = diag(d o diag B), either order. */
LOP_BUILD(hadamard_diag) {
    const lop_node *d;
    lop_status st = joined(mk, m->root, &lop_op_diagonal, &lop_op_mul, m->root->dtype, &d);
    return st == LOP_OK ? wrapped(mk, &lop_op_diag, d, out) : st;
}

LOP_BUILD(apply_hadamard) {
    const lop_node *d, *dense;
    lop_status st = joined(mk, m->root->child[0], &lop_op_todense, &lop_op_mul, m->root->dtype, &d);
    if (st == LOP_OK) st = wrapped(mk, &lop_op_dense, d, &dense);
    if (st != LOP_OK) return st;
    st = lop_make2(mk, &lop_op_apply, NULL, dense, HOLE(m, 'x'), out);
    lop_node_unref(dense);
    return st;
}

/* The dense form: columns a_j (x) b_j. */
LOP_BUILD(khatrirao) {
    return joined(mk, m->root->child[0], &lop_op_todense, &lop_op_khatri_rao_array, m->root->dtype,
                  out);
}

/* The product with the dense form, or with a view of it. */
LOP_BUILD(apply_khatrirao_wide) {
    const lop_node *a = m->root->child[0], *array = NULL, *seen = NULL, *dense = NULL;
    const bool view = a->op == &lop_op_view;
    const lop_node *kind = view ? a->child[0] : a;
    lop_status st =
        joined(mk, kind, &lop_op_todense, &lop_op_khatri_rao_array, m->root->dtype, &array);
    if (st == LOP_OK && view) st = lop_make1(mk, &lop_op_swap, &a->attr, array, &seen);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_dense, NULL, seen ? seen : array, &dense);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, dense, HOLE(m, 'x'), out);
    lop_node_unref(array);
    lop_node_unref(seen);
    lop_node_unref(dense);
    return st;
}

/* Was the array given in single precision, whatever it was cast to since? */
static bool given_in_single(const lop_node *a) {
    while (a->n > 0 && a->dtype != LOP_f32 && a->dtype != LOP_c64) a = a->child[0];
    return a->dtype == LOP_f32 || a->dtype == LOP_c64;
}

/* A^-1 = A^H. */
LOP_BUILD(solve_orthogonal) {
    lop_attr h = {.i = {LOP_H, 0, 0, 0}};
    const lop_node *adjoint, *a = HOLE(m, 'a'), *y, *base = a->op == &lop_op_view ? a->child[0] : a;
    const bool assumed = base->op == &lop_op_dense;
    lop_status st = lop_make1(mk, &lop_op_view, &h, HOLE(m, 'a'), &adjoint);
    if (st != LOP_OK) return st;
    /* all of the inverse is Q^H itself, of which the columns are looked at likewise */
    const lop_node *x = HOLE(m, 'x');
    const lop_attr whole = {.i = {0, 0, 0, (int64_t)m->root->dtype + 1}};
    st = x->op == &lop_op_eye && x->dtype == m->root->dtype
             ? lop_make1(mk, &lop_op_todense, &whole, adjoint, out)
             : lop_make2(mk, &lop_op_apply, NULL, adjoint, x, out);
    lop_node_unref(adjoint);
    if (st != LOP_OK || !assumed || mk->ctx->check == LOP_CHECK_NONE || !lop_is_blas((*out)->dtype))
        return st;
    y = *out;
    const lop_attr single = {.i = {given_in_single(base->child[0])}};
    st = lop_make2(mk, &lop_op_check_isometry, &single, y, x, out);
    lop_node_unref(y);
    return st;
}

/* The right side is cast, and with it what it is applied to. */
LOP_BUILD(cast_column) {
    const lop_node *inner = m->root->child[0], *x = NULL;
    lop_status st = lop_make1(mk, &lop_op_cast, &m->root->attr, inner->child[1], &x);
    if (st == LOP_OK) st = lop_make2(mk, inner->op, &inner->attr, inner->child[0], x, out);
    lop_node_unref(x);
    return st;
}

/* The action itself in the wider dtype. */
LOP_BUILD(cast_value) {
    const lop_node *value = m->root->child[0];
    lop_attr own = value->attr;
    own.i[3] = (int64_t)m->root->dtype + 1;
    return lop_make1(mk, value->op, &own, value->child[0], out);
}
