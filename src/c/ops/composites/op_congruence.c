/* op_congruence.c: A B A^H. Children: the operators A (m x n) and B (n x n).
 *
 * Everything goes as for the product of the three (rules); what is added is that it is Hermitian
 * where B is. Cost: that of A, B and A^H. */
#include "expr/random_instance.h"
#include "expr/vjp.h"

static lop_status infer(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0], *b = n->child[1];
    char ta[128], tb[128];
    if (a->op->cls != LOP_OPERATOR || b->op->cls != LOP_OPERATOR)
        return lop_fail(err, LOP_DIM, "congruence takes operators");
    if (lop_cols(a) != lop_rows(b) || !lop_is_square(b))
        return lop_fail(err, LOP_DIM, "A B A^H does not fit: A %s, B %s",
                        lop_shape_text(&a->shape, ta, sizeof ta),
                        lop_shape_text(&b->shape, tb, sizeof tb));
    return lop_node_over(n, lop_rows(n->child[0]), lop_rows(n->child[0]), err);
}

static lop_truth trait(const lop_node *n, lop_trait t) {
    if (t != LOP_HERMITIAN) return LOP_UNKNOWN;
    return lop_node_trait(n->child[1], t) == LOP_TRUE ? LOP_TRUE : LOP_UNKNOWN;
}

static double flops(const lop_node *self, int64_t k) {
    double m = (double)lop_rows(self->child[0]), n = (double)lop_cols(self->child[0]);
    return (4 * m * n + 2 * n * n) * (double)k;
}

static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    const lop_node *f[2] = {0};
    int64_t p = 1 + (int64_t)(lop_rng_next(&r->rng) % 3);
    if (m != n) return LOP_UNABLE;
    lop_status st = lop_rand_dense(r, m, p, dt, &f[0]);
    if (st == LOP_OK) st = lop_rand_dense(r, p, p, dt, &f[1]);
    if (st == LOP_OK) st = lop_node_make(r->ctx, &lop_op_congruence, NULL, 2, f, NULL, out, r->err);
    for (int i = 0; i < 2; i++) lop_node_unref(f[i]);
    return st;
}

/* Of A B A^H: G A B^H + G^H A B, and A^H G A for B. */
static const lop_node *vjp(lop_vjp *v, const lop_node *self, int child, const lop_node *g) {
    const lop_node *a = self->child[0], *b = self->child[1];
    if (child == 1) return lop_vjp_prod(v, lop_vjp_view(v, a, LOP_H), lop_vjp_prod(v, g, a));
    const lop_node *left = lop_vjp_prod(v, lop_vjp_prod(v, g, a), lop_vjp_view(v, b, LOP_H)),
                   *right = lop_vjp_prod(v, lop_vjp_prod(v, lop_vjp_view(v, g, LOP_H), a), b);
    return lop_vjp_sum(v, left, right);
}

const lop_op lop_op_congruence = {
    LOP_NAMED(congruence),
    .title = "Congruence",
    .cls = LOP_OPERATOR,
    .min = 2,
    .max = 2,
    .param = {{"A", LOP_P_OPERATOR, 2, NULL, "Shape (..., m, n); an array or an operator."},
              {"B", LOP_P_OPERATOR, 2, NULL, "Shape (..., n, n); an array or an operator."}},
    .doc = {.brief = "A congruence, A B A^H.",
            .extended = "It is Hermitian where B is. With a square A, solves go factor by factor.",
            .cost = "Build: O(1). Product: those of A^H, B and A.",
            .example = ">>> pl.Congruence(np.ones((2, 1)), pl.Diag([3.])) @ np.ones(2)\n"
                       "array([6., 6.])"},
    .infer = infer,
    .vjp = vjp,
    .trait = trait,
    .flops = flops,
    .random = random_instance};
