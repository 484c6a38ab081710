/* identity_plus_weighted.c: M = c I + a K D and c I + a D K of a K without negative eigenvalues, a
 * positive diagonal D and positive c and a, by Cholesky where M, which is not symmetric, takes LU.
 *
 *   M = T D  or  D T,   T = a K + c D^-1,   det M = det T det D
 *   M^-1 b = D^-1 (T^-1 b)  or  T^-1 (D^-1 b)
 *
 * The errors of Cholesky's factor of T are those for D^1/2 T D^1/2 = c I + a D^1/2 K D^1/2 = S
 * whatever D is: each entry is off by some n u (T_ii T_jj)^1/2 (Higham 2002, theorem 10.5), which
 * scales as T does. S is Hermitian and has M's eigenvalues, so that cond(S) <= cond(M) and the
 * determinant is as right as LU of M makes it. 1 / d and the product with det D, a pair of mantissa
 * and exponent, add n u. A d that is not positive, or whose reciprocal is out of range, leads to LU
 * of M; a solution is checked by its residual, else by LU of M.
 *
 *   diag M^-1 = diag(T^-1) / d,   M^-1 = D^-1 T^-1  or  T^-1 D^-1
 *
 * An entry of M^-1 is S^-1_ij (d_j / d_i)^1/2, or its reciprocal, and so is its error some
 * n u cond(S) |S^-1| times that root: on the diagonal, and in the trace, no more than LU's
 * n u cond(M) |M^-1|, as |S^-1| <= |M^-1|. The whole inverse is taken so where no d is more than
 * 100 times another one: the root is at most 10. */
#include "builds.h"
#include "expr/properties.h"
#include "ops/shared/sparse_solver.h"

typedef struct weighted {
    const lop_node *k, *d; /* borrowed */
    lop_coef a, c;
    bool left; /* D stands before K */
} weighted;

static const lop_node *without_scale(const lop_node *n, lop_coef *by) {
    *by = n->op == &lop_op_scaled ? lop_coef_of(&n->attr) : lop_coef_const(1, 0);
    return n->op == &lop_op_scaled ? n->child[0] : n;
}
static bool is_plain(lop_ctx *ctx, lop_coef c) {
    return lop_coef_test(ctx, c, LOP_COEF_POSITIVE) && lop_coef_test(ctx, c, LOP_COEF_MODEST);
}

/* A matrix that is factored as a dense one. Kernels are semidefinite but for rounding. */
static bool is_full(const lop_node *k) {
    const lop_node *in = k;
    lop_coef by;
    while (in->op == &lop_op_scaled || in->op == &lop_op_view) in = in->child[0];
    if (in->op == &lop_op_kernel && without_scale(k, &by) == in && is_plain(k->ctx, by))
        return lop_kernel_is_covariance(in) || lop_infer_semidefinite(k);
    return (in->op == &lop_op_dense || in->op == &lop_op_kernel || in->op == &lop_op_sum ||
            in->op == &lop_op_prod) &&
           lop_infer_semidefinite(k);
}

static bool read(const lop_node *m, weighted *w) {
    if (m->op != &lop_op_sum || lop_nbatch(m) > 0 || !lop_is_blas(m->dtype)) return false;
    for (int i = 0; i < 2; i++) {
        const lop_node *eye = without_scale(m->child[i], &w->c),
                       *p = without_scale(m->child[1 - i], &w->a);
        if (eye->op != &lop_op_identity || p->op != &lop_op_prod || p->dtype != m->dtype) continue;
        w->left = p->child[0]->op == &lop_op_diag;
        w->d = p->child[!w->left];
        w->k = p->child[w->left];
        return w->d->op == &lop_op_diag && w->d->dtype == lop_dtype_real(m->dtype) &&
               w->k->dtype == m->dtype && is_plain(m->ctx, w->c) && is_plain(m->ctx, w->a) &&
               is_full(w->k) && !lop_band_is_narrow(m, lop_infer_bands(m)) &&
               lop_sparse_entries(m) < 0;
    }
    return false;
}

/* c a; a itself where c is 1. Owned. */
static lop_status multiple(const lop_maker *mk, lop_coef c, const lop_node *a,
                           const lop_node **out) {
    const lop_attr by = lop_coef_attr(c);
    *out = lop_node_ref(a);
    if (lop_coef_test(mk->ctx, c, LOP_COEF_ONE)) return LOP_OK;
    lop_node_unref(*out);
    return lop_make1(mk, &lop_op_scaled, &by, a, out);
}

/* T, and 1 / (c / d) as a vector. Owned. */
static lop_status symmetric(const lop_maker *mk, const weighted *w, const lop_node **t,
                            const lop_node **back) {
    const lop_attr by = lop_coef_attr(w->c);
    const lop_node *over = NULL, *more = NULL, *r = NULL, *cr = NULL, *ak = NULL;
    lop_status st = lop_make1(mk, &lop_op_recip, NULL, w->d->child[0], &r);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &by, r, &cr);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_recip, NULL, cr, back);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_diag, NULL, r, &over);
    if (st == LOP_OK) st = multiple(mk, w->c, over, &more);
    if (st == LOP_OK) st = multiple(mk, w->a, w->k, &ak);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_sum, NULL, ak, more, t);
    const lop_node *gone[] = {over, more, r, cr, ak};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

LOP_BUILD(det_weighted) {
    const lop_attr signs = {.i = {0, 1, 0, 0}}, *k = &m->root->attr;
    const lop_node *t = NULL, *back = NULL, *of_t = NULL, *of_d = NULL, *both = NULL, *dense = NULL,
                   *alt = NULL;
    weighted w;
    if (!read(m->root->child[0], &w)) return LOP_NOMATCH;
    lop_status st = symmetric(mk, &w, &t, &back);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scaledet, k, t, &of_t);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scaledet, k, w.d, &of_d);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_mul_det, NULL, of_t, of_d, &both);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, k, m->root->child[0], &dense);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_lu_det, NULL, dense, &alt);
    const lop_node *child[3] = {both, back, alt};
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_spectral, &signs, 3, child, NULL, out);
    const lop_node *gone[] = {t, back, of_t, of_d, both, dense, alt};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

LOP_BUILD(solve_weighted) {
    const lop_node *a = m->root->child[0], *t = NULL, *back = NULL, *b = NULL, *z = NULL, *x = NULL;
    const lop_attr cast = {.i = {1, 0, 0, (int64_t)m->root->dtype + 1}};
    weighted w;
    const lop_node *rhs = m->root->child[1];
    if (a->dtype != m->root->dtype || (rhs->core > 1 && 4 * lop_cols(rhs) > lop_rows(a)) ||
        !read(a, &w))
        return LOP_NOMATCH; /* of many columns the check takes more than half a factor */
    lop_status st = symmetric(mk, &w, &t, &back);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_cast, &cast, rhs, &b);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_solve, NULL, w.left ? w.d : t, b, &z);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_solve, NULL, w.left ? t : w.d, z, &x);
    if (st == LOP_OK) st = lop_check_or_dense(mk, a, x, b, out);
    const lop_node *gone[] = {t, back, b, z, x};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* The value where the numbers of `back` are positive and finite and, with `most`, none is more than
 * that many times another; else alt. */
static lop_status where_even(const lop_maker *mk, const lop_node *value, const lop_node *back,
                             int64_t most, const lop_node *alt, const lop_node **out) {
    const lop_attr how = {.i = {most, 4, 0, 0}};
    const lop_node *child[3] = {value, back, alt};
    return lop_make_op(mk, &lop_op_spectral, &how, 3, child, NULL, out);
}

LOP_BUILD(diagonal_inverse_weighted) {
    const lop_node *a = m->root->child[0]->child[0], *t = NULL, *back = NULL, *inverse = NULL,
                   *d = NULL, *r = NULL, *both = NULL, *alt = NULL;
    weighted w;
    if (a->dtype != m->root->dtype || !read(a, &w)) return LOP_NOMATCH;
    lop_status st = symmetric(mk, &w, &t, &back);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_inverse, NULL, t, &inverse);
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, inverse, &d);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_recip, NULL, w.d->child[0], &r);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_mul, NULL, d, r, &both);
    if (st == LOP_OK) st = lop_inverse_diagonal(mk, a, &m->root->attr, m->root->dtype, &alt);
    if (st == LOP_OK) st = where_even(mk, both, back, 0, alt, out);
    const lop_node *gone[] = {t, back, inverse, d, r, both, alt};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

LOP_BUILD(dense_inverse_weighted) {
    const lop_node *a = m->root->child[0]->child[0], *t = NULL, *back = NULL, *inverse = NULL,
                   *r = NULL, *over = NULL, *product = NULL, *both = NULL, *alt = NULL;
    weighted w;
    if (a->dtype != m->root->dtype || !read(a, &w)) return LOP_NOMATCH;
    lop_status st = symmetric(mk, &w, &t, &back);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_inverse, NULL, t, &inverse);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_recip, NULL, w.d->child[0], &r);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_diag, NULL, r, &over);
    if (st == LOP_OK)
        st = lop_make2(mk, &lop_op_prod, NULL, w.left ? inverse : over, w.left ? over : inverse,
                       &product);
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, product, &both);
    if (st == LOP_OK) st = lop_inverse_array(mk, a, m->root->dtype, &alt);
    if (st == LOP_OK) st = where_even(mk, both, back, 100, alt, out);
    const lop_node *gone[] = {t, back, inverse, r, over, product, both, alt};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}
