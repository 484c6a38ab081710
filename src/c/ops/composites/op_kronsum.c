/* op_kronsum.c: Kronecker sum of square operators, A (x) I + I (x) B, and so on for more.
 *
 * y = sum over the operands of (I (x) ... A_i ... (x) I) x, each on x seen along its own axis, as
 * for Kron (rules/kron.c). Cost: one product an operand with N / n_i columns. */
#include "ops/projections/projections.h"
#include "expr/random_instance.h"

static lop_status infer(lop_node *n, lop_err *err) {
    int64_t size = 1;
    for (int i = 0; i < n->n; i++) {
        const lop_node *a = n->child[i];
        char t[128];
        if (a->op->cls != LOP_OPERATOR) return lop_fail(err, LOP_DIM, "kronsum takes operators");
        if (!lop_is_square(a))
            return lop_fail(err, LOP_DIM,
                            "a Kronecker sum takes square operators, operand %d has shape %s", i,
                            lop_shape_text(&a->shape, t, sizeof t));
        if (!lop_mul_ok(size, lop_rows(a), &size))
            return lop_fail(err, LOP_OVERFLOW,
                            "the size of this Kronecker sum does not fit 64 bits");
    }
    return lop_node_over(n, size, size, err);
}

static lop_truth trait(const lop_node *n, lop_trait t) {
    bool kept = t == LOP_SYMMETRIC || t == LOP_HERMITIAN || t == LOP_POSITIVE || t == LOP_DIAGONAL;
    for (int i = 0; i < n->n && kept; i++) kept = lop_node_trait(n->child[i], t) == LOP_TRUE;
    return kept ? LOP_TRUE : LOP_UNKNOWN;
}

static double flops(const lop_node *self, int64_t k) {
    double all = (double)lop_rows(self) * (double)k, total = 0;
    for (int i = 0; i < self->n; i++) total += all * (2 * (double)lop_rows(self->child[i]) + 1);
    return total;
}

static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    const lop_node *f[3] = {0};
    if (m != n) return LOP_UNABLE;
    int64_t p = m % 3 == 0 && m ? 3 : m % 2 == 0 && m ? 2 : 1, sizes[3] = {1, p, m / p};
    int first = (int)(lop_rng_next(&r->rng) % 2);
    lop_status st = LOP_OK;
    for (int i = first; st == LOP_OK && i < 3; i++)
        st = lop_rand_dense(r, sizes[i], sizes[i], dt, &f[i]);
    if (st == LOP_OK)
        st = lop_node_make(r->ctx, &lop_op_kronsum, NULL, 3 - first, f + first, NULL, out, r->err);
    for (int i = 0; i < 3; i++) lop_node_unref(f[i]);
    return st;
}

/* That of the first operand with the most behind it; those behind lie within. */
static lop_band bands(const lop_node *self, const lop_band *child) {
    lop_band all = {0, 0};
    int64_t right = 1, below, above;
    for (int i = self->n - 1; i >= 0; i--) {
        if (!lop_mul_ok(child[i].l, right, &below) || !lop_mul_ok(child[i].u, right, &above))
            return (lop_band){INT64_MAX, INT64_MAX};
        all.l = below > all.l ? below : all.l;
        all.u = above > all.u ? above : all.u;
        right *= lop_rows(self->child[i]); /* fits: the size is their product */
    }
    return all;
}

/* Partial traces of G. */
static const lop_node *vjp(lop_vjp *v, const lop_node *self, int child, const lop_node *g) {
    for (int i = self->n - 1; g && i > child; i--)
        g = lop_vjp_contracted(v, g, lop_vjp_eye(v, lop_rows(self->child[i]), g->dtype), true);
    for (int i = 0; g && i < child; i++)
        g = lop_vjp_contracted(v, g, lop_vjp_eye(v, lop_rows(self->child[i]), g->dtype), false);
    return g;
}

const lop_op lop_op_kronsum = {
    LOP_NAMED(kronsum),
    .flags = LOP_FLAG_joins | LOP_FLAG_adds | LOP_FLAG_composed | LOP_FLAG_linear,
    .title = "KronSum",
    .cls = LOP_OPERATOR,
    .min = 1,
    .max = -1,
    .param = {{"ops", LOP_P_OPERATORS, 0, NULL,
               "The operands, square operators or arrays; or one list of them."}},
    .doc = {.brief = "Kronecker sum of square operators, A (x) I + I (x) B.",
            .extended = "Of more than two: the sum over i of I (x) ... A_i ... (x) I. A Laplacian "
                        "on a grid is the KronSum of those along its axes.",
            .cost = "Build: O(number of operands). Product: one product an operand, n of size n: "
                    "2 p n^(p+1) flops.",
            .notes = "Operands in the order of Kron; scipy.sparse.kronsum(A, B) is KronSum(B, A). "
                     "The transpose, the diagonal, the trace and elements go operand by operand; "
                     "of Diags it is one. Solves and determinants, also of a multiple of the "
                     "identity more, go by the operands' eigenvectors where those are Hermitian, "
                     "else of two by their Schur forms, which are kept; checked, else by the dense "
                     "form.",
            .limits = "With three operands or more, solves need all of them Hermitian: else LU of "
                      "the dense form.",
            .example = ">>> K = pl.KronSum(np.array([[1., 2.], [3., 4.]]), pl.Diag([10., 20.]))\n"
                       ">>> K @ np.ones(4)\narray([13., 23., 17., 27.])"},
    .bands = bands,
    .infer = infer,
    .vjp = vjp,
    .trait = trait,
    .flops = flops,
    .random = random_instance};
