/* op_kron.c: Kronecker product of any number of operators, A1 (x) A2 (x) ... .
 *
 * y = (A1 (x) ... (x) Ap) x by one product a factor on x seen as a p-way array (Van Loan 2000,
 * section 1), without a transposing copy; each factor is any operator. The order of the factors is
 * the one with the fewest flops: sorted by 1/n_i - 1/m_i (exchange argument on two neighbours).
 * Cost: sum over factors of (product with L_i R_i k columns). Rules (core/builds_kron.c) do the
 * work. */
#include "core/rand.h"

static lop_status infer(lop_node *n, lop_err *err) {
    lop_shape batch = {0};
    int64_t rows = 1, cols = 1;
    for (int i = 0; i < n->n; i++) {
        const lop_node *f = n->child[i];
        lop_shape both;
        if (f->op->cls != LOP_OPERATOR) return lop_fail(err, LOP_DIM, "kron takes operators");
        lop_status st = lop_shape_batch(&batch, 0, &f->shape, 2, &both, err);
        if (st != LOP_OK) return st;
        batch = both;
        if (!lop_mul_ok(rows, lop_rows(f), &rows) || !lop_mul_ok(cols, lop_cols(f), &cols))
            return lop_fail(err, LOP_OVERFLOW,
                            "the sizes of this Kronecker product do not fit 64 bits");
    }
    if (batch.ndim + 2 > LOP_MAXDIM)
        return lop_fail(err, LOP_DIM, "more than %d dimensions", LOP_MAXDIM);
    n->dtype = n->child[0]->dtype;
    n->weak = n->child[0]->weak;
    for (int i = 1; i < n->n; i++) {
        const lop_node so_far = {.dtype = n->dtype, .weak = n->weak};
        lop_node_promote(n, &so_far, n->child[i]);
    }
    n->shape = batch;
    n->shape.dim[n->shape.ndim++] = rows;
    n->shape.dim[n->shape.ndim++] = cols;
    return LOP_OK;
}

static lop_truth trait(const lop_node *n, lop_trait t) {
    if (t == LOP_ZERO) return LOP_UNKNOWN;
    for (int i = 0; i < n->n; i++)
        if (lop_node_trait(n->child[i], t) != LOP_TRUE) return LOP_UNKNOWN;
    return LOP_TRUE;
}

static double flops(const lop_node *self, int64_t k) {
    double total = 0, rows = 1, cols = (double)lop_cols(self);
    for (int i = 0; i < self->n; i++) {
        const lop_node *f = self->child[i];
        cols /= lop_cols(f) > 0 ? (double)lop_cols(f) : 1;
        total += 2 * rows * (double)lop_rows(f) * (double)lop_cols(f) * cols * (double)k;
        rows *= (double)lop_rows(f);
    }
    return total;
}

/* Two or three factors whose sizes multiply to m and n. */
static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    const lop_node *f[3] = {0};
    int64_t p = m % 2 == 0 && m ? 2 : 1, q = n % 2 == 0 && n ? 2 : 1;
    int count = 3;
    lop_status st = lop_rand_dense(r, p, q, dt, &f[0]);
    if (st == LOP_OK) st = lop_rand_dense(r, m / p, 1, dt, &f[1]);
    if (st == LOP_OK) st = lop_rand_dense(r, 1, n / q, dt, &f[2]);
    if (st == LOP_OK) st = lop_node_make(r->ctx, &lop_op_kron, NULL, count, f, NULL, out, r->err);
    for (int i = 0; i < 3; i++) lop_node_unref(f[i]);
    return st;
}

const lop_op lop_op_kron = {
    LOP_NAMED(kron),
    .title = "Kron",
    .cls = LOP_OPERATOR,
    .min = 1,
    .max = -1,
    .param = {{"ops", LOP_P_OPERATORS, 0, NULL,
               "The factors, operators or arrays, of any shapes."}},
    .doc = {.brief = "Kronecker product of any number of operators.",
            .extended = "Never forms the product: memory is that of the factors.",
            .cost = "Build: O(number of factors). Product: one product a factor, in the cheapest "
                    "order; square p factors of "
                    "size n: 2 p n^(p+1) flops.",
            .notes = "Kron @ Kron of factors that fit, the transpose, the inverse of square "
                     "factors, trace and diagonal are "
                     "taken factor by factor.",
            .example = ">>> K = pl.Kron(np.eye(2), np.array([[1., 2.], [3., 4.]]))\n>>> K @ "
                       "np.ones(4)\narray([3., 7., 3., 7.])"},
    .infer = infer,
    .trait = trait,
    .flops = flops,
    .random = random_instance};
