/* op_multitoeplitz.c: Toeplitz matrices of several levels, blocks of blocks with constant
 * diagonals.
 *
 * T[i, j] = t[i - j + n - 1] for multi-indices i in the box m, j in the box n, level by level: two
 * levels are block Toeplitz with Toeplitz blocks (BTTB). Storage: t, of sizes m + n - 1, raveled.
 * Products are convolutions of boxes: convolution.c. */
#include "ops/shared/convolution.h"

#include "ops/projections/projections.h"

static bool geometry(const lop_node *p, const lop_node *n, lopk_conv *c) {
    return lop_conv_geometry(LOP_CONV_DIAGONALS, &p->shape, &n->shape, c);
}

static lop_status infer(lop_node *n, lop_err *err) {
    lopk_conv c;
    int64_t rows = 1, cols = 1;
    if (n->child[1]->op != &lop_op_sizes || n->child[2]->op != &lop_op_sizes)
        return lop_fail(err, LOP_DIM, "multitoeplitz takes a vector and two sizes");
    lop_status st = lop_conv_infer(n, n->child[0], n->child[1], err);
    if (st != LOP_OK) return st;
    if (!geometry(n->child[1], n->child[2], &c)) {
        char a[128], b[128];
        return lop_fail(err, LOP_DIM, "diagonals of shape %s are too few for columns of shape %s",
                        lop_shape_text(&n->child[1]->shape, a, sizeof a),
                        lop_shape_text(&n->child[2]->shape, b, sizeof b));
    }
    for (int64_t l = 0; l < c.levels; l++)
        if (!lop_mul_ok(rows, c.out[l], &rows) || !lop_mul_ok(cols, c.in[l], &cols))
            return lop_fail(err, LOP_OVERFLOW, NULL);
    n->shape.dim[n->shape.ndim++] = rows;
    n->shape.dim[n->shape.ndim++] = cols;
    return LOP_OK;
}

static lop_status apply(lop_emit *e, const lop_node *self, lop_mode mode, int x, int out) {
    lopk_conv c;
    (void)geometry(self->child[1], self->child[2], &c);
    return lop_conv_apply(e, &c, self->child[0], mode, x, out);
}
static lop_status dense(lop_emit *e, const lop_node *self, int out) {
    lopk_conv c;
    (void)geometry(self->child[1], self->child[2], &c);
    return lop_conv_dense(e, &c, self->child[0], out);
}
static lop_status diagonal(lop_emit *e, const lop_node *self, int64_t k, int out) {
    lopk_conv c;
    (void)geometry(self->child[1], self->child[2], &c);
    return lop_conv_diagonal(e, &c, self->child[0], k, out);
}
static lop_status element(lop_emit *e, const lop_node *self, int64_t i, int64_t j, int out) {
    lopk_conv c;
    (void)geometry(self->child[1], self->child[2], &c);
    return lop_conv_element(e, &c, self->child[0], i, j, out);
}
static double flops(const lop_node *self, int64_t k) {
    lopk_conv c;
    (void)geometry(self->child[1], self->child[2], &c);
    return lop_conv_flops(&c, k);
}

static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    if (m + n < 1) return LOP_UNABLE;
    const bool two = m % 2 == 0 && n % 2 == 0 && m > 0 && n > 0;
    int64_t cols[2] = {n, 1}, diagonals[2] = {m + n - 1, 1};
    if (two) {
        cols[0] = n / 2, cols[1] = 2;
        diagonals[0] = m / 2 + n / 2 - 1, diagonals[1] = 3;
    }
    const lop_node *v[3] = {0};
    lop_status st = lop_rand_vector(r, dt, diagonals[0] * diagonals[1], &v[0]);
    if (st == LOP_OK) st = lop_sizes_make(r->ctx, two ? 2 : 1, diagonals, &v[1], r->err);
    if (st == LOP_OK) st = lop_sizes_make(r->ctx, two ? 2 : 1, cols, &v[2], r->err);
    if (st == LOP_OK)
        st = lop_node_make(r->ctx, &lop_op_multitoeplitz, NULL, 3, v, NULL, out, r->err);
    for (int i = 0; i < 3; i++) lop_node_unref(v[i]);
    return st;
}

static const lop_node *vjp(lop_vjp *v, const lop_node *self, int child, const lop_node *g) {
    return child ? lop_vjp_unable(v)
                 : lop_vjp_boxes(v, g, LOP_CONV_DIAGONALS, self->child[1], self->child[2]);
}

const lop_op lop_op_multitoeplitz = {
    LOP_NAMED(multitoeplitz),
    .flags = LOP_FLAG_entries | LOP_FLAG_linear | LOP_FLAG_raveled,
    .title = "MultilevelToeplitz",
    .cls = LOP_OPERATOR,
    .min = 3,
    .max = 3,
    .param =
        {{"t", LOP_P_ARRAY, -1, NULL,
          "Diagonals, shape (..., m1 + n1 - 1, m2 + n2 - 1, ...): entry (i, j) is "
          "t[i1 - j1 + n1 - 1, i2 - j2 + n2 - 1, ...]. Borrowed.",
          NULL},
         {"n", LOP_P_SIZES, 0, "None",
          "Sizes (n1, n2, ...) of the columns' levels; m1, ... follow. None: square, t has odd "
          "sizes and no batch dimensions.",
          NULL}},
    .doc = {.brief = "A Toeplitz matrix of several levels; of two: block Toeplitz with Toeplitz "
                     "blocks (BTTB).",
            .extended = "Acts on raveled arrays of shape n. A stationary covariance on a regular "
                        "grid is one. Sums and multiples are of this kind again.",
            .cost = "Build: O(1). Product: two FFTs of a box of about m + n on each level; the "
                    "spectrum is kept. Memory O(that box).",
            .notes = "Products by FFT are accurate normwise, C u log2(N) |spectrum| |x|; "
                     "pl.config(fft=False) gives direct loops with a componentwise bound; small "
                     "and integer ones always have it.",
            .limits = "It has 5 levels at most. Solves and determinants take the dense form; "
                      "pl.solve(A, b, method='cg') with pl.preconditioner(A) needs products "
                      "alone.",
            .example = ">>> pl.MultilevelToeplitz([[0, 1, 0], [1, -4, 1], [0, 1, 0]]).toarray()\n"
                       "array([[-4,  1,  1,  0],\n       [ 1, -4,  0,  1],\n"
                       "       [ 1,  0, -4,  1],\n       [ 0,  1,  1, -4]])"},
    .infer = infer,
    .vjp = vjp,
    .apply = apply,
    .dense = dense,
    .diagonal = diagonal,
    .element = element,
    .flops = flops,
    .random = random_instance};
