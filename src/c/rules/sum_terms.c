/* sum_terms.c: terms of a sum as the kinds that they are, before it is solved with: a view of a
 * Toeplitz is one, and what is diagonal by how it is written, as S^T D S, is a Diag. So T + T^T is
 * one Toeplitz, and S D S^T + U U^H an update of a Diag. Products with the sum stay as written.
 *
 * Cost: vectors, and the diagonals of what is diagonal. */
#include "builds.h"
#include "expr/properties.h"
#include "rewrite/cheap_to_solve.h"
#include "rewrite/guards.h"
#include "thin_sum.h"

enum { TERMS = 8 };

/* x in a view, as its numbers are there. Takes over *x. */
static lop_status conjugated(const lop_maker *mk, int64_t mode, const lop_node **x) {
    const lop_node *inner = *x;
    if (!(mode & LOP_C) || !lop_is_complex(inner->dtype)) return LOP_OK;
    lop_status st = lop_make1(mk, &lop_op_conjugate, NULL, inner, x);
    if (st != LOP_OK) *x = NULL;
    lop_node_unref(inner);
    return st;
}

/* T^T is read from the main diagonal on: up, then down. */
static lop_status toeplitz_view(const lop_maker *mk, const lop_node *view, const lop_node **out) {
    const lop_node *t = view->child[0], *v[2] = {NULL, NULL};
    const int64_t mode = view->attr.i[0], rows = lop_rows(t), cols = lop_cols(t);
    const lop_attr up = {.i = {0, -1, cols}}, down = {.i = {0, 1, rows}};
    lop_status st = LOP_OK;
    if (rows == 0 || cols == 0) return LOP_NOMATCH;
    for (int i = 0; st == LOP_OK && i < 2; i++) {
        if (mode & LOP_T)
            st = lop_make2(mk, &lop_op_diagrun, i ? &down : &up, t->child[0], t->child[1], &v[i]);
        else
            v[i] = lop_node_ref(t->child[i]);
        if (st == LOP_OK) st = conjugated(mk, mode, &v[i]);
    }
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_toeplitz, NULL, v[0], v[1], out);
    lop_node_unref(v[0]);
    lop_node_unref(v[1]);
    return st;
}

static bool is_diagonal(const lop_node *a) {
    if (a->shape.ndim != 2 || !lop_is_square(a) || !lop_is_composed(a) || a->op == &lop_op_sum)
        return false;
    const lop_band b = lop_infer_bands(a);
    return b.l == 0 && b.u == 0;
}

/* A term as the kind that it is. NOMATCH: it is as it stands. */
static lop_status as_kind(const lop_maker *mk, const lop_node *a, const lop_node **out) {
    const bool times = a->op == &lop_op_scaled;
    const lop_node *of = times ? a->child[0] : a, *kind = NULL, *many = NULL;
    const lop_attr main_one = {.i = {0, 0, 0, (int64_t)of->dtype + 1}};
    lop_status st = LOP_NOMATCH;
    if (of->op == &lop_op_view && of->child[0]->op == &lop_op_toeplitz)
        st = toeplitz_view(mk, of, &kind);
    else if (of->op != &lop_op_scaled && of->op != &lop_op_identity && is_diagonal(of)) {
        st = lop_make1(mk, &lop_op_diagonal, &main_one, of, &many);
        if (st == LOP_OK) st = lop_make1(mk, &lop_op_diag, NULL, many, &kind);
        lop_node_unref(many);
    }
    if (st != LOP_OK || !times) {
        *out = kind;
        return st;
    }
    many = NULL;
    st = lop_make1(mk, &lop_op_scaled, &a->attr, kind, &many);
    if (st == LOP_OK) st = lop_close_once(mk, many, out);
    if (st == LOP_NOMATCH) {
        *out = lop_node_ref(many);
        st = LOP_OK;
    }
    lop_node_unref(many);
    lop_node_unref(kind);
    return st;
}

/* term on *sum, of one kind with it where that closes. */
static lop_status onto(const lop_maker *mk, const lop_node *term, const lop_node **sum) {
    const lop_node *both = NULL;
    lop_status st = *sum ? lop_sum_closed(mk, *sum, term, &both) : LOP_OK;
    if (st != LOP_OK) return st;
    lop_node_unref(*sum);
    *sum = both ? both : lop_node_ref(term);
    return LOP_OK;
}

/* The sum is what the root acts on, or on its inverse or a view of it. Only where it is one kind:
 * of other sums a view has the factor of the sum itself, and would not have that of its terms. */
LOP_BUILD(sum_of_kinds) {
    const lop_node *root = m->root, *inner = root->child[0], *term[TERMS], *child[2] = {NULL},
                   *made = NULL, *inverse = NULL;
    const bool below = inner->op == &lop_op_inverse || inner->op == &lop_op_view;
    const lop_node *sum = below ? inner->child[0] : inner;
    const int n = lop_terms_of(sum, term, TERMS);
    bool any = false;
    lop_status st = LOP_OK;
    if (n < 2 || root->n > 2 || sum->shape.ndim != 2 || !lop_is_blas(sum->dtype))
        return LOP_NOMATCH;
    for (int i = 0; st == LOP_OK && i < n; i++) {
        const lop_node *kind = NULL;
        st = as_kind(mk, term[i], &kind);
        any = any || (st == LOP_OK && kind);
        if (st == LOP_NOMATCH) st = LOP_OK;
        if (st == LOP_OK) st = onto(mk, kind ? kind : term[i], &made);
        lop_node_unref(kind);
    }
    if (st == LOP_OK &&
        (!any || made->op == &lop_op_sum || made->dtype != sum->dtype || made->weak != sum->weak))
        st = LOP_NOMATCH;
    if (st == LOP_OK && below) st = lop_make1(mk, inner->op, &inner->attr, made, &inverse);
    child[0] = inverse ? inverse : made;
    if (root->n > 1) child[1] = root->child[1];
    if (st == LOP_OK) st = lop_make(mk, root->op->name, &root->attr, root->n, child, NULL, out);
    lop_node_unref(inverse);
    lop_node_unref(made);
    return st;
}
