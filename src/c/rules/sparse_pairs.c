/* sparse_pairs.c: dense forms and diagonals of products of two sparse matrices, with or without a
 * diagonal between them, from their stored entries (op_sparse_pair.c). */
#include "builds.h"
#include "rewrite/guards.h"

/* A D B of the root's operand; d may be NULL. False where it is not of that form. */
static bool factors(const lop_node *p, const lop_node **a, const lop_node **d, const lop_node **b) {
    const lop_node *left = p->child[0], *right = p->child[1];
    *a = left;
    *b = right;
    *d = NULL;
    if (left->op == &lop_op_prod && left->child[1]->op == &lop_op_diag) {
        *a = left->child[0];
        *d = left->child[1]->child[0];
    } else if (right->op == &lop_op_prod && right->child[0]->op == &lop_op_diag) {
        *d = right->child[0]->child[0];
        *b = right->child[1];
    }
    return !*d || lop_nbatch(*d) == 0;
}

static const lop_node *stored(const lop_node *a) {
    if (a->op == &lop_op_view) a = a->child[0];
    return a->op == &lop_op_sparse ? a : NULL;
}

lop_truth lop_when_sparse_pair(const lop_match *m) {
    const lop_node *a, *d, *b, *p = m->root->child[0];
    if (p->op != &lop_op_prod || !factors(p, &a, &d, &b)) return LOP_FALSE;
    return stored(a) && stored(b) ? LOP_TRUE : LOP_FALSE;
}

/* Where most of B is stored, its dense form in products of rows is the faster one. */
lop_truth lop_when_sparse_pair_thin(const lop_match *m) {
    const lop_node *a, *d, *b, *p = m->root->child[0];
    if (lop_when_sparse_pair(m) != LOP_TRUE || !factors(p, &a, &d, &b)) return LOP_FALSE;
    const double all = (double)lop_rows(b) * (double)lop_cols(b);
    return 4 * (double)lop_cols(stored(b)->child[0]) <= all ? LOP_TRUE : LOP_FALSE;
}

LOP_BUILD(sparse_pair) {
    const lop_node *child[3], *d, *root = m->root;
    const bool diagonal = root->op == &lop_op_diagonal;
    lop_attr attr = {.i = {diagonal, diagonal ? root->attr.i[0] : 0, 0, root->attr.i[3]}};
    if (!factors(root->child[0], &child[0], &d, &child[1])) return LOP_NOMATCH;
    child[2] = d;
    if (!d || !lop_is_blas(root->dtype))
        return lop_make(mk, "sparsepair", &attr, d ? 3 : 2, child, NULL, out);
    /* what d is computed of is so in the precision of the whole */
    const lop_dtype wide = lop_is_complex(d->dtype) ? root->dtype : lop_dtype_real(root->dtype);
    const lop_attr cast = {.i = {0, 0, 0, (int64_t)wide + 1}};
    lop_status st = lop_make1(mk, &lop_op_cast, &cast, d, &child[2]);
    if (st != LOP_OK) return st;
    st = lop_make(mk, "sparsepair", &attr, 3, child, NULL, out);
    lop_node_unref(child[2]);
    return st;
}
