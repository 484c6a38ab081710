/* op_eigen.c: Q diag(d) Q^H. Children: the operator Q (m x n) and the array d (n).
 *
 * Everything goes as for the product of the three (rules); solves with a Q that is known to be
 * unitary by Q^H. Cost: that of Q and Q^H, n k. */
#include "expr/random_instance.h"
#include "expr/vjp.h"

static lop_status infer(lop_node *n, lop_err *err) {
    const lop_node *q = n->child[0], *d = n->child[1];
    char tq[128], td[128];
    if (q->op->cls != LOP_OPERATOR || d->op->cls == LOP_OPERATOR)
        return lop_fail(err, LOP_DIM, "eigen takes an operator and an array");
    if (d->core != 1 || lop_cols(q) != lop_cols(d))
        return lop_fail(err, LOP_DIM, "Q diag(d) Q^H does not fit: Q %s, d %s",
                        lop_shape_text(&q->shape, tq, sizeof tq),
                        lop_shape_text(&d->shape, td, sizeof td));
    return lop_node_over(n, lop_rows(n->child[0]), lop_rows(n->child[0]), err);
}

static lop_truth trait(const lop_node *n, lop_trait t) {
    bool real = !lop_is_complex(n->child[1]->dtype);
    return t == LOP_HERMITIAN && real ? LOP_TRUE : LOP_UNKNOWN;
}

static double flops(const lop_node *self, int64_t k) {
    double n = (double)lop_cols(self->child[0]);
    return (4 * (double)lop_rows(self) + 1) * n * (double)k;
}

static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    const lop_node *f[2] = {0};
    if (m != n) return LOP_UNABLE;
    int64_t p = lop_rng_next(&r->rng) % 2 ? m : 1 + (int64_t)(lop_rng_next(&r->rng) % 3);
    lop_status st = lop_rand_dense(r, m, p, dt, &f[0]);
    if (st == LOP_OK) st = lop_rand_vector(r, dt, p, &f[1]);
    if (st == LOP_OK) st = lop_node_make(r->ctx, &lop_op_eigen, NULL, 2, f, NULL, out, r->err);
    for (int i = 0; i < 2; i++) lop_node_unref(f[i]);
    return st;
}

/* Of Q D Q^H: G Q D^H + G^H Q D, and the diagonal of Q^H G Q for d. */
static const lop_node *vjp(lop_vjp *v, const lop_node *self, int child, const lop_node *g) {
    const lop_node *q = self->child[0], *gq = lop_vjp_prod(v, g, q);
    if (child == 1) return lop_vjp_diagonal(v, lop_vjp_prod(v, lop_vjp_view(v, q, LOP_H), gq), 0);
    const lop_node *d = lop_vjp_make(v, &lop_op_diag, NULL, self->child[1], NULL),
                   *back = lop_vjp_prod(v, lop_vjp_prod(v, lop_vjp_view(v, g, LOP_H), q), d);
    return lop_vjp_sum(v, lop_vjp_prod(v, gq, lop_vjp_view(v, d, LOP_H)), back);
}

const lop_op lop_op_eigen = {
    LOP_NAMED(eigen),
    .flags = LOP_FLAG_closed_spectrum | LOP_FLAG_at_once,
    .title = "Eigen",
    .cls = LOP_OPERATOR,
    .min = 2,
    .max = 2,
    .param = {{"Q", LOP_P_OPERATOR, 2, NULL, "Shape (..., m, n); an array or an operator."},
              {"d", LOP_P_ARRAY, 1, NULL, "The eigenvalues, shape (..., n)."}},
    .doc = {.brief = "An operator by its eigenvectors and eigenvalues, Q diag(d) Q^H.",
            .extended = "Give Q as ``pl.Dense(q, assume_a='orthogonal')`` where it is orthogonal "
                        "(unitary): then solves are products.",
            .cost = "Build: O(1). Product: those of Q^H and Q, n k flops.",
            .notes = "Nothing is assumed of Q by itself: it may also be rectangular.",
            .limits = "What eigh gave is solved with as a product only where its vectors are "
                      "dense, Kronecker or block diagonal ones.",
            .example = ">>> pl.Eigen(np.eye(2), np.array([2., 3.])) @ np.ones(2)\n"
                       "array([2., 3.])"},
    .infer = infer,
    .vjp = vjp,
    .trait = trait,
    .flops = flops,
    .random = random_instance};
