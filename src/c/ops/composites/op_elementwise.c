/* op_elementwise.c: the element-wise product of two operators of one shape.
 *
 * The dense form, the diagonal and elements are products of theirs. Where both are of one kind with
 * entries that multiply (Toeplitz, Kron, bands, ...) it is that kind (rules); low rank times what
 * multiplies fast goes column by column (rules/khatri_rao.c); all else by the dense form: 2 m n k
 * flops, m n elements of memory. */
#include "expr/random_instance.h"
#include "expr/vjp.h"

static lop_status infer(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0], *b = n->child[1];
    char ta[128], tb[128];
    if (a->op->cls != LOP_OPERATOR || b->op->cls != LOP_OPERATOR)
        return lop_fail(err, LOP_DIM, "elementwise takes operators");
    if (lop_rows(a) != lop_rows(b) || lop_cols(a) != lop_cols(b))
        return lop_fail(
            err, LOP_DIM, "cannot multiply operators of shapes %s and %s element by element",
            lop_shape_text(&a->shape, ta, sizeof ta), lop_shape_text(&b->shape, tb, sizeof tb));
    return lop_node_over(n, lop_rows(n->child[0]), lop_cols(n->child[0]), err);
}

/* Positive: Schur 1911. */
static lop_truth trait(const lop_node *n, lop_trait t) {
    lop_truth a = lop_node_trait(n->child[0], t), b = lop_node_trait(n->child[1], t);
    bool both = t == LOP_SYMMETRIC || t == LOP_HERMITIAN || t == LOP_POSITIVE || t == LOP_IDENTITY;
    if (both && a == LOP_TRUE && b == LOP_TRUE) return LOP_TRUE;
    return t == LOP_DIAGONAL && (a == LOP_TRUE || b == LOP_TRUE) ? LOP_TRUE : LOP_UNKNOWN;
}

static double flops(const lop_node *self, int64_t k) {
    return (double)lop_rows(self) * (double)lop_cols(self) * (1 + 2 * (double)k);
}

static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    const lop_node *f[2] = {0};
    lop_status st = lop_rand_dense(r, m, n, dt, &f[0]);
    if (st == LOP_OK) st = lop_rand_dense(r, m, n, dt, &f[1]);
    if (st == LOP_OK)
        st = lop_node_make(r->ctx, &lop_op_elementwise, NULL, 2, f, NULL, out, r->err);
    for (int i = 0; i < 2; i++) lop_node_unref(f[i]);
    return st;
}

static lop_band bands(const lop_node *self, const lop_band *child) {
    (void)self;
    return (lop_band){child[0].l < child[1].l ? child[0].l : child[1].l,
                      child[0].u < child[1].u ? child[0].u : child[1].u};
}

/* G times the conjugate of the other, element by element. */
static const lop_node *vjp(lop_vjp *v, const lop_node *self, int child, const lop_node *g) {
    const lop_node *other = lop_vjp_view(v, self->child[1 - child], LOP_C);
    return lop_vjp_make(v, &lop_op_elementwise, NULL, g, other);
}

const lop_op lop_op_elementwise = {
    LOP_NAMED(elementwise),
    .flags = LOP_FLAG_columns | LOP_FLAG_adds | LOP_FLAG_composed | LOP_FLAG_multilinear,
    .title = "HadamardProduct",
    .cls = LOP_OPERATOR,
    .min = 2,
    .max = 2,
    .param = {{"A", LOP_P_OPERATOR, 2, NULL, "Shape (..., m, n); an array or an operator."},
              {"B", LOP_P_OPERATOR, 2, NULL, "Shape (..., m, n); an array or an operator."}},
    .doc = {.brief = "The element-wise product of two operators; ``pl.multiply(A, B)``.",
            .extended = "With a Diag or an Identity it is diagonal. The diagonal and elements are "
                        "products of those of A and B. Two Toeplitz, Circulant, Hankel, Banded "
                        "(of the same diagonals), Tridiagonal, Kron or BlockDiag (of the same "
                        "partition), and two LowRank of small ranks, multiply as what they are.",
            .cost =
                "Build: O(1). Product with k columns: of two of one kind that kind's; of a LowRank "
                "of rank r and A one of A with r k columns, where that is less; else the dense "
                "form, computed when needed, and 2 m n k flops.",
            .limits = "All other factors are multiplied with, and indexed, by the dense form of "
                      "the product; of a Sparse S and K, pl.Sparse(pl.multiply(S, K).tosparse()) "
                      "takes the entries of K where S has some.",
            .example = ">>> H = pl.HadamardProduct(pl.Toeplitz([1., 2.]), np.full((2, 2), 3.))\n"
                       ">>> H.toarray()\narray([[3., 6.],\n       [6., 3.]])"},
    .bands = bands,
    .infer = infer,
    .vjp = vjp,
    .trait = trait,
    .flops = flops,
    .random = random_instance};
