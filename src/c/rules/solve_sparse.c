/* solve_sparse.c: solves, determinants and parts of the inverse of expressions that are written
 * with sparse matrices, by a factor made outside the core (ops/solves/op_sparse_factor_solve.c),
 * with the dense form as fallback. */
#include "builds.h"
#include "ops/projections/projections.h"
#include "ops/shared/sparse_solver.h"

#define HOLE(m, c) ((m)->node[(c) - 'a'])

LOP_BUILD(solve_sparse) {
    const lop_node *top = m->root->child[0], *b = m->root->child[1], *dense = NULL, *x = NULL,
                   *alt = NULL;
    const lop_node *a = top->op == &lop_op_view ? top->child[0] : top;
    const lop_dtype dt = m->root->dtype;
    if (!lop_is_blas(dt) || !lop_sparse_pays(a)) return LOP_NOMATCH;
    const lop_attr d = {.i = {0, 0, 0, (int64_t)dt + 1}}, cast = {.i = {1, 0, 0, d.i[3]}},
                   how = {.i = {a == top ? LOP_N : top->attr.i[0], 0, 0, 0}};
    lop_status st = lop_make1(mk, &lop_op_todense, &d, top, &dense);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_cast, &cast, b, &x);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_lu_solve, NULL, dense, x, &alt);
    const lop_node *child[3] = {a, x, alt};
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_sparse_solve, &how, 3, child, NULL, out);
    lop_node_unref(dense);
    lop_node_unref(x);
    lop_node_unref(alt);
    return st;
}

LOP_BUILD(det_sparse) {
    const lop_node *a = m->root->child[0], *dense = NULL, *alt = NULL;
    if (!lop_sparse_pays(a)) return LOP_NOMATCH;
    lop_status st = lop_make1(mk, &lop_op_todense, &m->root->attr, a, &dense);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_lu_det, NULL, dense, &alt);
    const lop_node *child[2] = {a, alt};
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_sparse_det, NULL, 2, child, NULL, out);
    lop_node_unref(dense);
    lop_node_unref(alt);
    return st;
}

/* Diagonal k of A^-1. */
LOP_BUILD(diagonal_sparse_inverse) {
    const lop_node *a = m->root->child[0]->child[0], *alt = NULL;
    const lop_attr at = {.i = {m->root->attr.i[0], 0, 0, 0}};
    if (!lop_is_blas(m->root->dtype) || !lop_sparse_selects(a)) return LOP_NOMATCH;
    lop_status st = lop_inverse_diagonal(mk, a, &at, m->root->dtype, &alt);
    const lop_node *child[2] = {a, alt};
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_sparsediag, &at, 2, child, NULL, out);
    lop_node_unref(alt);
    return st;
}

/* The entries of A^-1 where a sparse matrix has numbers: its gradient, where A is made of it. */
LOP_BUILD(entries_sparse_inverse) {
    const lop_node *a = m->root->child[0]->child[0], *alt = NULL;
    const lop_attr at = {.i = {m->root->attr.i[0], 0, 0, 0}};
    if (!lop_is_blas(m->root->dtype) || m->root->n != 3 || at.i[0] > LOP_AT_COO ||
        m->root->attr.i[1] != 0 || !lop_sparse_selects(a))
        return LOP_NOMATCH;
    lop_status st = lop_entries_of_dense(mk, m->root, &alt);
    const lop_node *child[4] = {a, m->root->child[1], m->root->child[2], alt};
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_sparseentries, &at, 4, child, NULL, out);
    lop_node_unref(alt);
    return st;
}

/* tr(A^-1 B) = tr(B A^-1): the entries of A^-1 where B^T has some. */
LOP_BUILD(trace_sparse_inverse) {
    const lop_node *p = m->root->child[0], *dense = NULL, *right = NULL, *x = NULL, *d = NULL,
                   *alt = NULL;
    const bool first =
        p->child[0]->op == &lop_op_inverse && lop_sparse_selects(p->child[0]->child[0]);
    const lop_node *a = p->child[first ? 0 : 1], *b = p->child[first ? 1 : 0];
    const lop_dtype dt = m->root->dtype;
    const lop_attr to = {.i = {0, 0, 0, (int64_t)dt + 1}}, main = {.i = {0, 0, 0, 0}};
    if (a->op != &lop_op_inverse || !lop_is_blas(dt) || !lop_is_square(b)) return LOP_NOMATCH;
    a = a->child[0];
    const double some = lop_sparse_entries(b), n = (double)lop_rows(b);
    const bool full = n > 64 && some > n * n / 4;
    if (!lop_sparse_selects(a) || some < 0 || full) return LOP_NOMATCH;
    lop_status st = lop_make1(mk, &lop_op_todense, &to, a, &dense);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &to, b, &right);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_lu_solve, NULL, dense, right, &x);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_array_diagonal, &main, x, &d);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_sumall, NULL, d, &alt);
    const lop_node *child[3] = {a, b, alt};
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_sparsetrace, NULL, 3, child, NULL, out);
    const lop_node *gone[] = {dense, right, x, d, alt};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}
