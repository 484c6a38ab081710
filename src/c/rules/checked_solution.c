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
    const lop_node *ah = NULL;
    lop_status st = lop_make(k->mk, "probe", NULL, 0, NULL, &column, &k->v);
    if (st == LOP_OK) st = lop_make2(k->mk, &lop_op_apply, NULL, k->a, k->v, &k->av);
    if (st == LOP_OK) st = lop_make(k->mk, "nearone", NULL, 1, &k->av, NULL, &k->u);
    if (st == LOP_OK) st = lop_make1(k->mk, &lop_op_view, &adjoint, k->a, &ah);
    if (st == LOP_OK) st = lop_make2(k->mk, &lop_op_apply, NULL, ah, k->u, &k->q);
    lop_node_unref(ah);
    return st;
}

void lop_check_close(lop_check *k) {
    lop_node_unref(k->q);
    lop_node_unref(k->u);
    lop_node_unref(k->v);
    lop_node_unref(k->av);
    k->q = k->u = k->v = k->av = NULL;
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

enum { DEPTH = 6, NODES = 200 };

/* Is nothing within that has a check of its own? False where it is deep, or of many nodes. */
static bool is_plain(const lop_node *a, int depth, int *left) {
    if (a->op == &lop_op_inverse || a->op == &lop_op_solve || a->op->check || depth == 0 ||
        --*left < 0)
        return false;
    for (int i = 0; i < a->n; i++)
        if (!is_plain(a->child[i], depth - 1, left)) return false;
    return true;
}
/* May a check stand before the check? Of checks within checks the steps would be as many as two to
 * the number of them, and more. */
static bool is_given(const lop_node *a, const lop_node *b) {
    int left = NODES;
    return is_plain(a, DEPTH, &left) && is_plain(b, DEPTH, &left);
}

lop_status lop_check_by(const lop_check *k, const lop_node *x, const lop_node *r, const lop_node *b,
                        const lop_node *alt, const lop_node **out) {
    const lop_attr last = {.i = {0, k->room}}, first = {.i = {1, k->room}};
    const lop_node *exact = NULL, *child[6] = {x, r, b, k->q, k->u, alt};
    lop_status st = lop_make(k->mk, "checked", &last, 6, child, NULL, &exact);
    if (st != LOP_OK || k->exact || !is_given(k->a, b)) {
        *out = exact;
        return st;
    }
    const lop_node *rough[6] = {x, r, b, k->av, k->v, exact};
    st = lop_make(k->mk, "checked", &first, 6, rough, NULL, out);
    lop_node_unref(exact);
    return st;
}

/* As |A| |x| >= |A x| = |v| but for what r tells, |v| / |x| is a bound of |A| that takes no product
 * with A: what is accepted by it, as what is made of a well conditioned A is, the bound by A^H A v
 * accepts too. */
lop_status lop_check_made(const lop_check *k, const lop_op *op, int n, const lop_node *const *child,
                          const lop_node **out) {
    const lop_node *exact = NULL, *rough[11];
    lop_status st = lop_make_op(k->mk, op, NULL, n, child, NULL, &exact);
    if (st != LOP_OK || !is_given(k->a, k->v)) {
        *out = exact;
        return st;
    }
    for (int i = 0; i < n - 1; i++) rough[i] = child[i];
    rough[4] = child[3]; /* v */
    rough[5] = child[1]; /* x */
    rough[n - 1] = exact;
    st = lop_make_op(k->mk, op, NULL, n, rough, NULL, out);
    lop_node_unref(exact);
    return st;
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
