/* op_root.c: L L^H, Hermitian and positive semidefinite by its form. Child: the operator L (m x n).
 *
 * Everything goes as for the product of the two (rules). Cost: that of L and L^H. */
#include "expr/random_instance.h"
#include "expr/vjp.h"

static lop_status infer(lop_node *n, lop_err *err) {
    const lop_node *l = n->child[0];
    if (l->op->cls != LOP_OPERATOR) return lop_fail(err, LOP_DIM, "root takes an operator");
    n->shape = l->shape;
    n->shape.dim[n->shape.ndim - 1] = lop_rows(l);
    n->dtype = l->dtype;
    n->weak = l->weak;
    return LOP_OK;
}

static lop_truth trait(const lop_node *n, lop_trait t) {
    bool real = !lop_is_complex(n->dtype);
    return t == LOP_HERMITIAN || (t == LOP_SYMMETRIC && real) ? LOP_TRUE : LOP_UNKNOWN;
}

static double flops(const lop_node *self, int64_t k) {
    return 4 * (double)lop_rows(self) * (double)lop_cols(self->child[0]) * (double)k;
}

static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    const lop_node *l;
    if (m != n) return LOP_UNABLE;
    int64_t p = lop_rng_next(&r->rng) % 2 ? m : 1 + (int64_t)(lop_rng_next(&r->rng) % 3);
    lop_status st = lop_rand_dense(r, m, p, dt, &l);
    if (st != LOP_OK) return st;
    st = lop_node_make(r->ctx, &lop_op_root, NULL, 1, &l, NULL, out, r->err);
    lop_node_unref(l);
    return st;
}

/* Of L L^H: (G + G^H) L. */
static const lop_node *vjp(lop_vjp *v, const lop_node *self, int child, const lop_node *g) {
    const lop_node *both = lop_vjp_sum(v, g, lop_vjp_view(v, g, LOP_H));
    return lop_vjp_prod(v, both, self->child[child]);
}

const lop_op lop_op_root = {
    LOP_NAMED(root),
    .title = "Root",
    .cls = LOP_OPERATOR,
    .min = 1,
    .max = 1,
    .param = {{"L", LOP_P_OPERATOR, 2, NULL,
               "Shape (..., m, n); an array or an operator. A vector is a column."}},
    .doc = {.brief = "An operator by its root, L L^H.",
            .extended = "Hermitian and positive semidefinite. Solves with square L are two solves.",
            .cost = "Build: O(1). Product: those of L^H and L.",
            .example = ">>> pl.Root(np.array([[1., 0.], [2., 1.]])).toarray()\n"
                       "array([[1., 2.],\n       [2., 5.]])"},
    .infer = infer,
    .vjp = vjp,
    .trait = trait,
    .flops = flops,
    .random = random_instance};
