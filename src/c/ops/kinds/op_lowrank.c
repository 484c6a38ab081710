/* op_lowrank.c: U C V^H with few columns.
 *
 * Children: the operators U (m x r), V (n x r) and, when given, C (r x r). Every action is a row of
 * the rule table: products go through r. Cost: 2 (m + n + r) r k flops. */
#include "expr/random_instance.h"
#include "expr/vjp.h"

static lop_status infer(lop_node *n, lop_err *err) {
    const lop_node *u = n->child[0], *v = n->child[1], *c = n->n > 2 ? n->child[2] : NULL;
    char tu[128], tv[128], tc[128];
    for (int i = 0; i < n->n; i++)
        if (n->child[i]->op->cls != LOP_OPERATOR)
            return lop_fail(err, LOP_DIM, "lowrank takes operators");
    if (lop_cols(c ? c : v) != lop_cols(v) || lop_cols(u) != (c ? lop_rows(c) : lop_cols(v)))
        return lop_fail(err, LOP_DIM, "U C V^H does not fit: U %s, C %s, V %s%s",
                        lop_shape_text(&u->shape, tu, sizeof tu),
                        c ? lop_shape_text(&c->shape, tc, sizeof tc) : "none",
                        lop_shape_text(&v->shape, tv, sizeof tv),
                        !c && lop_rows(v) == lop_cols(u) ? "; V has the rows of U V^H's columns: "
                                                           "give V.T"
                                                         : "");
    return lop_node_over(n, lop_rows(u), lop_rows(v), err);
}

static lop_truth trait(const lop_node *n, lop_trait t) {
    if (t == LOP_HERMITIAN && n->child[0] == n->child[1] && n->n == 2) return LOP_TRUE;
    return LOP_UNKNOWN;
}

static double flops(const lop_node *self, int64_t k) {
    double r = (double)lop_cols(self->child[0]);
    return 2 * ((double)lop_rows(self) + (double)lop_cols(self) + r) * r * (double)k;
}

static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    const lop_node *f[3] = {0};
    int64_t p = 1 + (int64_t)(lop_rng_next(&r->rng) % 2),
            q = 1 + (int64_t)(lop_rng_next(&r->rng) % 2);
    bool with_c = p != q || lop_rng_next(&r->rng) % 2;
    lop_status st = lop_rand_dense(r, m, p, dt, &f[0]);
    if (st == LOP_OK) st = lop_rand_dense(r, n, q, dt, &f[1]);
    if (st == LOP_OK && with_c) st = lop_rand_dense(r, p, q, dt, &f[2]);
    if (st == LOP_OK)
        st = lop_node_make(r->ctx, &lop_op_lowrank, NULL, with_c ? 3 : 2, f, NULL, out, r->err);
    for (int i = 0; i < 3; i++) lop_node_unref(f[i]);
    return st;
}

/* Of U C V^H: G V C^H, G^H U C, and U^H G V for C. */
static const lop_node *vjp(lop_vjp *v, const lop_node *self, int child, const lop_node *g) {
    const lop_node *u = self->child[0], *w = self->child[1],
                   *c = self->n > 2 ? self->child[2] : NULL;
    const lop_node *gh = lop_vjp_view(v, g, LOP_H);
    if (child == 0) {
        const lop_node *gv = lop_vjp_prod(v, g, w);
        return c ? lop_vjp_prod(v, gv, lop_vjp_view(v, c, LOP_H)) : gv;
    }
    if (child == 1) {
        const lop_node *gu = lop_vjp_prod(v, gh, u);
        return c ? lop_vjp_prod(v, gu, c) : gu;
    }
    return lop_vjp_prod(v, lop_vjp_view(v, u, LOP_H), lop_vjp_prod(v, g, w));
}

const lop_op lop_op_lowrank = {
    LOP_NAMED(lowrank),
    .flags = LOP_FLAG_anew | LOP_FLAG_sliced_at_once | LOP_FLAG_multilinear,
    .title = "LowRank",
    .cls = LOP_OPERATOR,
    .min = 2,
    .max = 3,
    .param = {{"U", LOP_P_OPERATOR, 2, NULL,
               "Shape (..., m, r); an array or an operator. A vector is a column."},
              {"V", LOP_P_OPERATOR, 2, "None", "Shape (..., n, s); None means U."},
              {"C", LOP_P_OPERATOR, 2, "None",
               "The middle, shape (..., r, s); None means the identity."}},
    .doc = {.brief = "A matrix of low rank, U C V^H.",
            .extended = "V is conjugated and transposed, also when it is real: give V with n rows.",
            .cost = "Build: O(1). Product with k columns: 2 (m + n + r) r k flops; the m x n "
                    "matrix is never formed.",
            .example =
                ">>> pl.LowRank(np.ones((3, 1))) @ np.array([1., 2., 3.])\narray([6., 6., 6.])"},
    .infer = infer,
    .vjp = vjp,
    .trait = trait,
    .flops = flops,
    .random = random_instance};
