/* sparse_pairs.c: dense forms and diagonals of products of two sparse matrices, with or without a
 * diagonal between them, from their stored entries (op_sparse_pair.c); diagonals of products of
 * what is sparse by how it is written, sums and products, from the entries of the two as the sparse
 * solver puts them together: as of U I^-1 W^T (op_sparse_factor_solve.c). */
#include "builds.h"
#include "ops/shared/sparse_solver.h"
#include "rewrite/guards.h"
#include "thin_sum.h"

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

/* diag(A B) where an entry of A meets few of B. */
LOP_BUILD(diagonal_sparse_product) {
    enum { ROOM = 16 };
    const lop_node *p = m->root->child[0], *a = p->child[0], *b = p->child[1], *turned = NULL,
                   *both = NULL, *eye = NULL, *alt = NULL;
    const lop_attr row = {.i = {1, 2, 0, 0}}, turn = {.i = {LOP_T, 0, 0, 0}};
    const double n = (double)lop_rows(p);
    if (lop_nbatch(p) > 0 || !lop_is_blas(m->root->dtype) || p->dtype != m->root->dtype ||
        !lop_sparse_pays(a) || !lop_sparse_pays(b) || lop_sparse_entries(p) < 0 ||
        (!mk->ctx->sparse->fewest && ROOM * lop_sparse_entries(p) > n * n))
        return LOP_NOMATCH;
    lop_status st = lop_make1(mk, &lop_op_view, &turn, b, &turned);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_block, &row, a, turned, &both);
    if (st == LOP_OK) st = lop_thin_identity(mk, lop_rows(p), &eye);
    if (st == LOP_OK) st = lop_diagonal_of_dense(mk, m->root->dtype, p, &alt);
    const lop_node *child[3] = {eye, both, alt};
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_sparserows, NULL, 3, child, NULL, out);
    const lop_node *gone[] = {turned, both, eye, alt};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}
LOP_BUILD(trace_sparse_product) {
    const lop_node *p = m->root->child[0], *d = NULL;
    const lop_attr main = {.i = {0, 0, 0, (int64_t)m->root->dtype + 1}};
    if (lop_nbatch(p) > 0 || !lop_is_blas(m->root->dtype) || p->dtype != m->root->dtype ||
        !lop_sparse_pays(p->child[0]) || !lop_sparse_pays(p->child[1]))
        return LOP_NOMATCH;
    lop_status st = lop_make1(mk, &lop_op_diagonal, &main, p, &d);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_sumall, NULL, d, out);
    lop_node_unref(d);
    return st;
}
