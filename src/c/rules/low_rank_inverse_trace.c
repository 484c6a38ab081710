/* low_rank_inverse_trace.c: traces of products with the inverse of a structure and a low rank.
 *
 *   tr(A^-1 X) = sum_i X_ii / d_i - tr(Y (X W)),   A = D + U C V^H of k columns,
 *   W = D^-1 U,  Y = S^-1 C V^H D^-1,  S = I + C V^H W
 *
 * for any X, of which its diagonal and its product with k columns are taken: no matrix of n rows
 * and columns is formed. Of another B in place of D, tr(B^-1 X) by what both are. The entries of
 * A^-1 = D^-1 - W Y, formed, are each off by some k u (|D^-1| + |W| |Y|), and their sum with those
 * of X by n u of the same. Taken the other way round the rounding errors of both terms are at most
 * n u sum_ij (|D^-1| + |W| |Y|)_ij |X_ji|, so that what accepts the inverse (checked_value: a probe
 * is solved for, and D is not much nearer to a singular matrix than A) accepts this as well; else
 * by LU, or Cholesky, of A. */
#include "expr/properties.h"
#include "low_rank_woodbury.h"
#include "thin_sum.h"

enum { PART = 4 }; /* as for the inverse, formed */

lop_status lop_woodbury_of_diagonal(const lop_maker *mk, lop_dtype dt, const lop_node *a,
                                    const lop_node **out) {
    lop_status st = LOP_OK;
    if (a->op == &lop_op_sum)
        st = lop_thin_update(mk, dt, a, PART, out);
    else if (a->op == &lop_op_lowrankupdate)
        *out = lop_node_ref(a);
    if (st != LOP_OK || !*out) return st == LOP_OK ? LOP_NOMATCH : st;
    if ((*out)->op == &lop_op_lowrankupdate && lop_nbatch(*out) == 0) {
        const parts p = parts_of(*out);
        if (lop_is_diagonal_matrix(p.base) && PART * lop_cols(p.u) <= lop_rows(*out)) return LOP_OK;
    }
    lop_node_unref(*out);
    *out = NULL;
    return LOP_NOMATCH;
}

/* The product of all but the one at `at`, from behind it round to before it. Owned. */
static lop_status turned_round(const lop_maker *mk, const lop_node *const *f, int n, int at,
                               const lop_node **out) {
    const lop_node *rest[LOP_FACTORS];
    for (int i = 1; i < n; i++) rest[i - 1] = f[(at + i) % n];
    return lop_product_of(mk, rest, n - 1, out);
}

/* tr(B^-1 X). */
static lop_status of_base(const woodbury *s, const lop_node *x, const lop_node **out) {
    const lop_node *inverse = NULL, *both = NULL;
    lop_status st = lop_make1(s->mk, &lop_op_inverse, NULL, s->p.base, &inverse);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_prod, NULL, inverse, x, &both);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_trace, &s->dt, both, out);
    lop_node_unref(inverse);
    lop_node_unref(both);
    return st;
}

/* sum_i X_ii / d_i. */
static lop_status of_diagonals(const woodbury *s, const lop_node *x, const lop_node **out) {
    const lop_attr cast = {.i = {1, 0, 0, s->dt.i[3]}};
    const lop_node *d = NULL, *wide = NULL, *r = NULL, *own = NULL, *both = NULL;
    lop_status st = lop_make_diagonal(s->mk, s->p.base, &d);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_cast, &cast, d, &wide);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_recip, NULL, wide, &r);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_diagonal, &s->dt, x, &own);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_mul, NULL, r, own, &both);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_sumall, NULL, both, out);
    const lop_node *gone[] = {d, wide, r, own, both};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* The sum of the diagonal of a b, of two arrays. */
static lop_status of_arrays(const lop_maker *mk, const lop_node *a, const lop_node *b,
                            const lop_node **out) {
    const lop_attr main_one = {.i = {0, 0, 0, 1}};
    const lop_node *d = NULL;
    lop_status st = lop_make2(mk, &lop_op_product_diagonal, &main_one, a, b, &d);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_sumall, NULL, d, out);
    lop_node_unref(d);
    return st;
}

/* tr(Y (X W)). */
static lop_status of_thin(const woodbury *s, const lop_node *x, const lop_node **out) {
    const lop_node *y = NULL, *xw = NULL;
    lop_status st = lop_woodbury_left(s, &y);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_apply, NULL, x, s->w->child[0], &xw);
    if (st == LOP_OK) st = of_arrays(s->mk, y, xw, out);
    lop_node_unref(y);
    lop_node_unref(xw);
    return st;
}

/* By the inverse of the dense form. */
static lop_status of_dense(const woodbury *s, const lop_node *x, const lop_node **out) {
    const lop_node *inverse = NULL, *dense = NULL;
    lop_status st = lop_inverse_array(s->mk, s->a, (lop_dtype)(s->dt.i[3] - 1), &inverse);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_todense, &s->dt, x, &dense);
    if (st == LOP_OK) st = of_arrays(s->mk, inverse, dense, out);
    lop_node_unref(inverse);
    lop_node_unref(dense);
    return st;
}

static lop_status checked_trace(woodbury *s, const lop_node *x, const lop_node **out) {
    const lop_node *own = NULL, *low = NULL, *value = NULL, *alt = NULL;
    lop_status st = lop_woodbury_open(s);
    const bool diagonal = lop_is_diagonal_matrix(s->p.base);
    if (st == LOP_OK) st = diagonal ? of_diagonals(s, x, &own) : of_base(s, x, &own);
    if (st == LOP_OK) st = of_thin(s, x, &low);
    if (st == LOP_OK) st = lop_build_minus(s->mk, own, low, &value);
    if (st == LOP_OK) st = of_dense(s, x, &alt);
    if (st == LOP_OK) st = lop_woodbury_checked(s, &lop_op_checked_value, value, alt, out);
    const lop_node *gone[] = {own, low, value, alt};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    lop_woodbury_close(s);
    return st;
}

/* Is it passed through few columns sooner? Then what solves with those does less. */
static bool is_thin(const lop_node *a, int64_t n) {
    while (a->op == &lop_op_scaled || a->op == &lop_op_view) a = a->child[0];
    if (a->op == &lop_op_lowrank) return 2 * lop_cols(a->child[0]) <= n;
    return 2 * lop_rows(a) <= n || 2 * lop_cols(a) <= n;
}

/* The factors, *c times which the product is, and which of them is such an inverse: `a`, owned,
 * seen in `mode`. */
static lop_status read(const lop_match *m, const lop_maker *mk, const lop_node **f, int *n, int *at,
                       int64_t *mode, const lop_node **a, lop_coef *c) {
    const lop_node *p = m->root->child[0];
    if (!lop_is_blas(m->root->dtype) || lop_nbatch(p) > 0) return LOP_NOMATCH;
    *n = lop_factors_times(p, f, c);
    for (int i = 0; i < *n; i++) /* those that wrap stay as they are written */
        if (lop_nbatch(f[i]) > 0 || !lop_is_blas(f[i]->dtype)) return LOP_NOMATCH;
    for (*at = 0; *at < *n; ++*at) {
        const lop_node *in = lop_inverse_seen(f[*at], mode);
        bool thin = false;
        for (int i = 0; in && i < *n; i++) thin = thin || is_thin(f[i], lop_rows(in));
        lop_status st =
            in && !thin ? lop_woodbury_of_diagonal(mk, m->root->dtype, in, a) : LOP_NOMATCH;
        if (st == LOP_NOMATCH && in && !thin) st = lop_woodbury_of_sum(mk, m->root->dtype, in, a);
        if (st != LOP_NOMATCH) return st;
    }
    return LOP_NOMATCH;
}

/* Of A^-1 in a view: tr(A^-T X) = tr(A^-1 X^T), and conjugates. */
LOP_BUILD(trace_inverse_update) {
    const lop_node *f[LOP_FACTORS], *a = NULL, *x = NULL, *turned = NULL, *value = NULL,
                                    *plain = NULL;
    int n, at;
    int64_t mode = 0;
    lop_coef c = lop_coef_const(1, 0);
    lop_status st = read(m, mk, f, &n, &at, &mode, &a, &c);
    if (st != LOP_OK) return st;
    const lop_attr by = lop_coef_attr(c);
    woodbury s = {.mk = mk, .a = a, .p = parts_of(a)};
    s.dt = (lop_attr){.i = {0, 0, 0, (int64_t)m->root->dtype + 1}};
    if (mode == LOP_H && lop_infer_hermitian(a)) mode = 0;
    st = turned_round(mk, f, n, at, &x);
    if (st == LOP_OK) st = seen(mk, mode, x, &turned);
    if (st == LOP_OK) st = checked_trace(&s, turned, &value);
    if (st == LOP_OK && (mode & LOP_C))
        st = lop_make1(mk, &lop_op_conjugate, NULL, value, &plain);
    else if (st == LOP_OK)
        plain = lop_node_ref(value);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &by, plain, out);
    const lop_node *gone[] = {a, x, turned, value, plain};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}
