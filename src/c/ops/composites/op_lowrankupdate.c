/* op_lowrankupdate.c: base + U C V^H.
 *
 * Children: the operators base (m x n), U (m x r), V (n x s) and, when given, C (r x s). Products
 * and forms are those of base plus those of the low rank part. Solves with a base that is cheap to
 * solve for go by r x r systems:
 *   (B + U C V^H)^-1 b = z - W (I + C V^H W)^-1 C V^H z,   z = B^-1 b, W = B^-1 U
 * (Woodbury 1950; Higham 2002, Accuracy and Stability, problem 26.2, on why this may be
 * inaccurate), checked by the residual, refined once, and else by LU of the dense form: see
 * op_checked_or_fallback.c and rules/low_rank_inverse.c. */
#include "expr/random_instance.h"
#include "expr/vjp.h"

static lop_status infer(lop_node *n, lop_err *err) {
    const lop_node *b = n->child[0], *u = n->child[1], *v = n->child[2],
                   *c = n->n > 3 ? n->child[3] : NULL;
    char tb[128], tu[128], tv[128], tc[128];
    for (int i = 0; i < n->n; i++)
        if (n->child[i]->op->cls != LOP_OPERATOR)
            return lop_fail(err, LOP_DIM, "lowrankupdate takes operators");
    if (lop_cols(c ? c : v) != lop_cols(v) || lop_cols(u) != (c ? lop_rows(c) : lop_cols(v)) ||
        lop_rows(u) != lop_rows(b) || lop_rows(v) != lop_cols(b))
        return lop_fail(err, LOP_DIM, "base + U C V^H does not fit: base %s, U %s, C %s, V %s",
                        lop_shape_text(&b->shape, tb, sizeof tb),
                        lop_shape_text(&u->shape, tu, sizeof tu),
                        c ? lop_shape_text(&c->shape, tc, sizeof tc) : "none",
                        lop_shape_text(&v->shape, tv, sizeof tv));
    return lop_node_over(n, lop_rows(b), lop_cols(b), err);
}

static lop_truth trait(const lop_node *n, lop_trait t) {
    if (t != LOP_HERMITIAN && t != LOP_POSITIVE) return LOP_UNKNOWN;
    bool one = n->child[1] == n->child[2] && lop_node_trait(n->child[0], t) == LOP_TRUE &&
               (n->n < 4 || lop_node_trait(n->child[3], t) == LOP_TRUE);
    return one ? LOP_TRUE : LOP_UNKNOWN;
}

static double flops(const lop_node *self, int64_t k) {
    const lop_node *b = self->child[0];
    double m = (double)lop_rows(b), n = (double)lop_cols(b), r = (double)lop_cols(self->child[1]);
    double base = b->op->flops ? b->op->flops(b, k) : 2 * m * n * (double)k;
    return base + (2 * (m + n + r) * r + m) * (double)k;
}

static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    const lop_node *f[4] = {0};
    int64_t p = 1 + (int64_t)(lop_rng_next(&r->rng) % 2),
            q = 1 + (int64_t)(lop_rng_next(&r->rng) % 2);
    bool with_c = p != q || lop_rng_next(&r->rng) % 2;
    lop_status st = lop_op_diag.random(r, m, n, dt, &f[0]);
    if (st == LOP_UNABLE) st = lop_rand_dense(r, m, n, dt, &f[0]);
    if (st == LOP_OK) st = lop_rand_dense(r, m, p, dt, &f[1]);
    if (st == LOP_OK) st = lop_rand_dense(r, n, q, dt, &f[2]);
    if (st == LOP_OK && with_c) st = lop_rand_dense(r, p, q, dt, &f[3]);
    if (st == LOP_OK)
        st = lop_node_make(r->ctx, &lop_op_lowrankupdate, NULL, with_c ? 4 : 3, f, NULL, out,
                           r->err);
    for (int i = 0; i < 4; i++) lop_node_unref(f[i]);
    return st;
}

/* Of B + U C V^H: G, and as for a LowRank. */
static const lop_node *vjp(lop_vjp *v, const lop_node *self, int child, const lop_node *g) {
    const lop_node *u = self->child[1], *w = self->child[2],
                   *c = self->n > 3 ? self->child[3] : NULL;
    if (child == 0) return g;
    if (child == 1) {
        const lop_node *gv = lop_vjp_prod(v, g, w);
        return c ? lop_vjp_prod(v, gv, lop_vjp_view(v, c, LOP_H)) : gv;
    }
    if (child == 2) {
        const lop_node *gu = lop_vjp_prod(v, lop_vjp_view(v, g, LOP_H), u);
        return c ? lop_vjp_prod(v, gu, c) : gu;
    }
    return lop_vjp_prod(v, lop_vjp_view(v, u, LOP_H), lop_vjp_prod(v, g, w));
}

const lop_op lop_op_lowrankupdate = {
    LOP_NAMED(lowrankupdate),
    .flags = LOP_FLAG_adds | LOP_FLAG_composed,
    .title = "LowRankUpdate",
    .cls = LOP_OPERATOR,
    .min = 3,
    .max = 4,
    .param = {{"base", LOP_P_OPERATOR, 2, NULL, "Shape (..., m, n); an array or an operator."},
              {"U", LOP_P_OPERATOR, 2, NULL,
               "Shape (..., m, r); an array or an operator. A vector is a column."},
              {"V", LOP_P_OPERATOR, 2, "None", "Shape (..., n, s); None means U."},
              {"C", LOP_P_OPERATOR, 2, "None",
               "The middle, shape (..., r, s); None means the identity."}},
    .doc = {.brief = "An operator and a matrix of low rank, base + U C V^H.",
            .extended = "V is conjugated and transposed, also when it is real: give V with n rows. "
                        "Diag + LowRank closes to this.",
            .cost = "Build: O(1). Product with k columns: that of base and 2 (m + n + r) r k "
                    "flops. Solve: r + k solves with base, the LU of an r x r matrix.",
            .notes = "Solves by Woodbury's formula are checked: where the backward error is above "
                     "10 n u, also after one refinement, or base is singular, the dense form is "
                     "solved instead. A real diagonal base with V = U and few columns is held to "
                     "30 sqrt(n) u, and gives way to the L D L^H of a QuasiSeparable matrix in "
                     "O(n r^2), determinants and diagonals of inverses too.",
            .limits = "A Cholesky factor takes the dense form, but for a diagonal base. Woodbury's "
                      "formula takes one thin term beside one base, without batches.",
            .example = ">>> A = pl.LowRankUpdate(pl.Identity(3), np.ones((3, 1)))\n>>> A @ "
                       "np.ones(3)\narray([4., 4., 4.])\n>>> pl.inv(A) @ np.ones(3)\narray([0.25, "
                       "0.25, 0.25])"},
    .infer = infer,
    .vjp = vjp,
    .trait = trait,
    .flops = flops,
    .random = random_instance};
