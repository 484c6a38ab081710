/* low_rank_generators.c: D + U C U^H as a quasi-separable matrix: what Woodbury's formula gives way
 * to where D is too small beside the rest.
 *
 * Below the diagonal stands p_i^T q_j, p = U C, q = conj(U), no transitions between. Its L D L^H
 * takes O(n k^2) and is as stable as Cholesky of the dense form where the sum is positive definite:
 * the states S = sum D_j W_j W_j^H are no larger than C. It is checked like any of that kind. */
#include "expr/properties.h"
#include "low_rank_woodbury.h"

enum { ROWS_A_COLUMN = 10 }; /* fewer: LAPACK's factor of the dense form is as soon */

/* Is the base a real multiple of a real Diag or of the identity? */
static bool real_diagonal_base(const lop_node *a) {
    while (a->op == &lop_op_view || a->op == &lop_op_scaled) {
        if (a->op == &lop_op_scaled && lop_coef_of(&a->attr).im != 0) return false;
        a = a->child[0];
    }
    return a->op == &lop_op_identity || (a->op == &lop_op_diag && !lop_is_complex(a->dtype));
}

static bool has_generators(const lop_node *a, lop_dtype dt) {
    if (a->op != &lop_op_lowrankupdate || !lop_is_blas(a->dtype) ||
        lop_dtype_real(a->dtype) != lop_dtype_real(dt))
        return false;
    const parts p = parts_of(a);
    return lop_rows(a) / ROWS_A_COLUMN >= lop_cols(p.u) && real_diagonal_base(p.base) &&
           lop_node_alike(p.u, p.v, LOP_INFER_DEPTH) && (!p.c || lop_infer_hermitian(p.c));
}

lop_status lop_update_generators(const lop_maker *mk, const lop_node *a, lop_dtype dt,
                                 const lop_node **out) {
    *out = NULL;
    if (!has_generators(a, dt)) return LOP_OK;
    const parts p = parts_of(a);
    const lop_attr as = {.i = {0, 0, 0, (int64_t)a->dtype + 1}};
    const lop_node like = {.shape = {.ndim = 2, .dim = {lop_rows(a), lop_cols(p.u)}},
                           .dtype = lop_dtype_real(dt),
                           .core = 2};
    const lop_attr main_one = {.i = {0, 0, 0, 0}}, adjoint = {.i = {LOP_H, 0, 0, 0}};
    const lop_node *v[4] = {NULL}, *u = NULL, *uc = NULL, *own = NULL, *uh = NULL, *low = NULL;
    lop_status st = lop_make1(mk, &lop_op_todense, &as, p.u, &u);
    if (st == LOP_OK && p.c) st = lop_make2(mk, &lop_op_prod, NULL, p.u, p.c, &uc);
    if (st == LOP_OK) st = uc ? lop_make1(mk, &lop_op_todense, &as, uc, &v[1]) : LOP_OK;
    if (!v[1]) v[1] = lop_node_ref(u);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_diagonal, &as, p.base, &own);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_swap, &adjoint, u, &uh);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_product_diagonal, &main_one, v[1], uh, &low);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_add, NULL, own, low, &v[0]);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_conjugate, NULL, u, &v[2]);
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_ones, NULL, 0, NULL, &like, &v[3]);
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_quasiseparable, NULL, 4, v, NULL, out);
    const lop_node *gone[] = {v[0], v[1], v[2], v[3], u, uc, own, uh, low};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

lop_status lop_safer_det(const lop_maker *mk, const lop_node *a, const lop_attr *attr,
                         const lop_node *alt, const lop_node **out) {
    const lop_attr dt = {.i = {0, 0, 0, attr->i[3]}};
    const lop_node *g = NULL;
    lop_status st = lop_update_generators(mk, a, (lop_dtype)(attr->i[3] - 1), &g);
    if (st == LOP_OK && !g) return lop_border_det(mk, a, &dt, alt, out);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scaledet, attr, g, out);
    lop_node_unref(g);
    return st;
}

lop_status lop_safer_diagonal(const lop_maker *mk, const lop_node *a, const lop_attr *at,
                              lop_dtype dt, const lop_node *alt, const lop_node **out) {
    const lop_node *g = NULL, *inverse = NULL;
    lop_status st = at->i[0] == 0 ? lop_update_generators(mk, a, dt, &g) : LOP_OK;
    if (st == LOP_OK && !g) return lop_border_diagonal(mk, a, at, dt, alt, out);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_inverse, NULL, g, &inverse);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_diagonal, at, inverse, out);
    lop_node_unref(g);
    lop_node_unref(inverse);
    return st;
}
