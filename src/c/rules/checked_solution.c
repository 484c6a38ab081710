/* checked_solution.c: a solution that is checked before it is accepted: with residual r = b - A x
 * the backward error must be small, else the fallback branch runs (op_checked_or_fallback.c). */
#include "builds.h"
#include "expr/properties.h"

/* a - b. */
lop_status lop_build_minus(const lop_maker *mk, const lop_node *a, const lop_node *b,
                           const lop_node **out) {
    lop_attr c = lop_attr_coef(-1, 0);
    const lop_node *neg;
    lop_status st = lop_make1(mk, &lop_op_scale, &c, b, &neg);
    if (st != LOP_OK) return st;
    st = lop_make2(mk, &lop_op_add, NULL, a, neg, out);
    lop_node_unref(neg);
    return st;
}

lop_status lop_check_open(lop_check *k, lop_dtype dt) {
    lop_node column = {.shape = {.ndim = 2, .dim = {lop_rows(k->a), 1}}, .dtype = dt, .core = 2};
    lop_attr adjoint = {.i = {LOP_H, 0, 0, 0}};
    const lop_node *av = NULL, *ah = NULL;
    lop_status st = lop_make(k->mk, "probe", NULL, 0, NULL, &column, &k->v);
    if (st == LOP_OK) st = lop_make2(k->mk, &lop_op_apply, NULL, k->a, k->v, &av);
    if (st == LOP_OK) st = lop_make(k->mk, "nearone", NULL, 1, &av, NULL, &k->u);
    if (st == LOP_OK) st = lop_make1(k->mk, &lop_op_view, &adjoint, k->a, &ah);
    if (st == LOP_OK) st = lop_make2(k->mk, &lop_op_apply, NULL, ah, k->u, &k->q);
    lop_node_unref(av);
    lop_node_unref(ah);
    return st;
}

void lop_check_close(lop_check *k) {
    lop_node_unref(k->q);
    lop_node_unref(k->u);
    lop_node_unref(k->v);
    k->q = k->u = k->v = NULL;
}

lop_status lop_check_residual(const lop_check *k, const lop_node *x, const lop_node *b,
                              const lop_node **out) {
    const lop_node *ax;
    lop_status st = lop_make2(k->mk, &lop_op_apply, NULL, k->a, x, &ax);
    if (st != LOP_OK) return st;
    st = lop_build_minus(k->mk, b, ax, out);
    lop_node_unref(ax);
    return st;
}

lop_status lop_check_by(const lop_check *k, const lop_node *x, const lop_node *r, const lop_node *b,
                        const lop_node *alt, const lop_node **out) {
    const lop_node *child[6] = {x, r, b, k->q, k->u, alt};
    const lop_attr room = {.i = {k->room}};
    return lop_make(k->mk, "checked", &room, 6, child, NULL, out);
}

lop_status lop_check_instead(const lop_check *k, const lop_node *x, const lop_node *b,
                             const lop_node *alt, const lop_node **out) {
    const lop_node *r;
    lop_status st = lop_check_residual(k, x, b, &r);
    if (st != LOP_OK) return st;
    st = lop_check_by(k, x, r, b, alt, out);
    lop_node_unref(r);
    return st;
}

lop_status lop_check_or_dense(const lop_maker *mk, const lop_node *a, const lop_node *x,
                              const lop_node *b, const lop_node **out) {
    const lop_attr dt = {.i = {0, 0, 0, (int64_t)b->dtype + 1}}, tried = {.i = {1, 0, 0, 0}};
    const lop_node *dense = NULL, *alt = NULL;
    lop_check k = {.mk = mk, .a = a};
    lop_status st = lop_make1(mk, &lop_op_todense, &dt, a, &dense);
    if (st == LOP_OK)
        st = lop_infer_hermitian(a) ? lop_make2(mk, &lop_op_cholesky_solve, &tried, dense, b, &alt)
                                    : lop_make2(mk, &lop_op_lu_solve, NULL, dense, b, &alt);
    if (st == LOP_OK) st = lop_check_open(&k, b->dtype);
    if (st == LOP_OK) st = lop_check_instead(&k, x, b, alt, out);
    lop_check_close(&k);
    lop_node_unref(dense);
    lop_node_unref(alt);
    return st;
}
