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

/* A of A^-1, a multiple of it or not, seen through a view or not, where entries of A^-1 are
 * selected; else NULL. */
static const lop_node *selected_inverse(const lop_node *a) {
    if (a->op == &lop_op_scaled) a = a->child[0];
    if (a->op == &lop_op_view) a = a->child[0];
    return a->op == &lop_op_inverse && lop_sparse_selects(a->child[0]) ? a->child[0] : NULL;
}

bool lop_turns_to_inverse(const lop_node *const *f, int n) {
    int inverses = 0;
    for (int i = 0; i < n; i++) {
        if (inverses == 0 && selected_inverse(f[i]))
            inverses++;
        else if (lop_sparse_entries(f[i]) < 0)
            return false;
    }
    return inverses == 1;
}

/* The factors of a product with one such inverse within it, which can be turned round; 0: it stands
 * at an end, or the others are not sparse by how they are written. */
enum { FACTORS = 8 };
static int turned_factors(const lop_node *root, const lop_node **f) {
    const lop_node *p = root->child[0];
    const bool beside =
        p->child[0]->op == &lop_op_inverse || p->child[1]->op == &lop_op_inverse; /* as it is */
    const int n = lop_nbatch(p) == 0 && !beside ? lop_product_factors(p, f, FACTORS) : 0;
    return n > 0 && lop_is_blas(root->dtype) && lop_turns_to_inverse(f, n) ? n : 0;
}

/* tr(D A) = d . diag(A), if it is not to be turned. */
LOP_BUILD(trace_of_diag_prod) {
    const lop_node *f[FACTORS];
    const bool turns = turned_factors(m->root, f) > 2; /* D and a view of A^-1 are as good */
    return turns ? LOP_NOMATCH : lop_build_trace_diagonal(m, mk, out);
}

/* tr(X A^-1 Y) = tr(A^-1 (Y X)), where Y X is sparse by how it is written; of a view of A^-1 that
 * is the inverse of A seen so. */
LOP_BUILD(trace_turned_to_inverse) {
    const lop_node *f[FACTORS], *turned[FACTORS], *rest = NULL, *seen = NULL, *first = NULL,
                                                  *all = NULL, *times = NULL;
    const int n = turned_factors(m->root, f);
    int at = 0;
    if (n == 0) return LOP_NOMATCH;
    while (!selected_inverse(f[at])) at++;
    for (int i = 1; i < n; i++) turned[i - 1] = f[(at + i) % n];
    lop_status st = lop_product_of(mk, turned, n - 1, &rest);
    const lop_node *in = f[at]->op == &lop_op_scaled ? f[at]->child[0] : f[at];
    if (st == LOP_OK && in->op == &lop_op_view)
        st = lop_make1(mk, &lop_op_view, &in->attr, selected_inverse(f[at]), &seen);
    if (st == LOP_OK)
        st = lop_make1(mk, &lop_op_inverse, NULL, seen ? seen : selected_inverse(f[at]), &first);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_prod, NULL, first, rest, &all);
    if (st == LOP_OK && in != f[at]) st = lop_make1(mk, &lop_op_scaled, &f[at]->attr, all, &times);
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, times ? times : all, out);
    const lop_node *gone[] = {rest, seen, first, all, times};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

lop_status lop_transposed_product(const lop_maker *mk, const lop_node *const *f, int from, int to,
                                  const lop_node **out) {
    const lop_node *turned[FACTORS] = {NULL};
    const int n = to - from;
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < n; i++)
        st = lop_view_once(mk, LOP_T, f[to - 1 - i], &turned[i]);
    if (st == LOP_OK) st = lop_product_of(mk, turned, n, out);
    for (int i = 0; i < n; i++) lop_node_unref(turned[i]);
    return st;
}

bool lop_rows_are_full(const lop_node *u, const lop_node *w, const lop_node *a) {
    enum { FULLEST = 16 };
    return lop_sparse_entries(u) * lop_sparse_entries(w) >
           FULLEST * (double)lop_rows(u) * (lop_sparse_entries(a) + (double)lop_rows(u));
}

/* The diagonal of U A^-1 W^T. Of few rows as many solves are as cheap; of full ones each pair of
 * their entries would be a place. */
LOP_BUILD(sparse_rows) {
    const lop_attr row = {.i = {1, 2, 0, 0}};
    const lop_node *f[FACTORS], *p = m->root->child[0], *u = NULL, *w = NULL, *both = NULL,
                                *seen = NULL, *alt = NULL;
    const lop_dtype dt = m->root->dtype;
    const int n = lop_nbatch(p) == 0 ? lop_product_factors(p, f, FACTORS) : 0;
    const lop_sparse *outside = mk->ctx->sparse;
    int at = 0;
    if (n < 3 || !outside || !lop_is_blas(dt) || p->dtype != dt || !lop_is_square(p) ||
        (!outside->fewest && lop_rows(p) < LOP_ROWS_FEWEST) || !lop_turns_to_inverse(f, n))
        return LOP_NOMATCH;
    while (!selected_inverse(f[at])) at++;
    if (at == 0 || at == n - 1 || f[at]->dtype != dt) return LOP_NOMATCH;
    lop_status st = lop_product_of(mk, f, at, &u);
    if (st == LOP_OK) st = lop_transposed_product(mk, f, at + 1, n, &w);
    if (st == LOP_OK && lop_rows_are_full(u, w, selected_inverse(f[at]))) st = LOP_NOMATCH;
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_block, &row, u, w, &both);
    if (st == LOP_OK && f[at]->op == &lop_op_view)
        st = lop_make1(mk, &lop_op_view, &f[at]->attr, selected_inverse(f[at]), &seen);
    if (st == LOP_OK) st = lop_build_chain_diagonal(m, mk, &alt);
    if (st == LOP_NOMATCH && both) st = lop_diagonal_of_dense(mk, dt, p, &alt);
    const lop_node *child[3] = {seen ? seen : selected_inverse(f[at]), both, alt};
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_sparserows, NULL, 3, child, NULL, out);
    const lop_node *gone[] = {u, w, both, seen, alt};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}
