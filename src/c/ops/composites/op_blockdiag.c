/* op_blockdiag.c: operators along the diagonal, zeros elsewhere; any shapes.
 *
 * y = (A1 + ... + Ap) x by slices of x, each block into its rows of y: no copies (see
 * op_array_blocks.c). Everything goes block by block; rules (rules/blocks.c) do the work. Cost:
 * that of the blocks. */
#include "expr/random_instance.h"
#include "expr/vjp.h"

static lop_status infer(lop_node *n, lop_err *err) {
    int64_t rows = 0, cols = 0;
    for (int i = 0; i < n->n; i++) {
        const lop_node *a = n->child[i];
        if (a->op->cls != LOP_OPERATOR) return lop_fail(err, LOP_DIM, "blockdiag takes operators");
        if (!lop_add_ok(rows, lop_rows(a), &rows) || !lop_add_ok(cols, lop_cols(a), &cols))
            return lop_fail(err, LOP_OVERFLOW, "the sizes of the blocks do not fit 64 bits");
    }
    return lop_node_over(n, rows, cols, err);
}

static lop_truth trait(const lop_node *n, lop_trait t) {
    for (int i = 0; i < n->n; i++)
        if (lop_node_trait(n->child[i], t) != LOP_TRUE) return LOP_UNKNOWN;
    return LOP_TRUE;
}

static double flops(const lop_node *self, int64_t k) {
    double total = 0;
    for (int i = 0; i < self->n; i++) {
        const lop_node *a = self->child[i];
        total += a->op->flops ? a->op->flops(a, k)
                              : 2 * (double)lop_rows(a) * (double)lop_cols(a) * (double)k;
    }
    return total;
}

/* Up to three blocks, now and then an empty one. */
static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    const lop_node *f[3] = {0};
    int count = 1 + (int)(lop_rng_next(&r->rng) % 3);
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < count; i++) {
        bool last = i + 1 == count;
        int64_t p = last ? m : lop_rng_range(&r->rng, 0, m + 1);
        int64_t q = last ? n : m == n && i == 0 ? p : lop_rng_range(&r->rng, 0, n + 1);
        m -= p;
        n -= q;
        st = lop_rand_dense(r, p, q, dt, &f[i]);
    }
    if (st == LOP_OK)
        st = lop_node_make(r->ctx, &lop_op_blockdiag, NULL, count, f, NULL, out, r->err);
    for (int i = 0; i < 3; i++) lop_node_unref(f[i]);
    return st;
}

static lop_band bands(const lop_node *self, const lop_band *child) {
    lop_band all = {0, 0};
    for (int i = 0; i < self->n; i++) {
        if (!lop_is_square(self->child[i])) return (lop_band){INT64_MAX, INT64_MAX};
        all.l = child[i].l > all.l ? child[i].l : all.l;
        all.u = child[i].u > all.u ? child[i].u : all.u;
    }
    return all;
}

/* The block of G in its place. */
static const lop_node *vjp(lop_vjp *v, const lop_node *self, int child, const lop_node *g) {
    const lop_node *a = self->child[child];
    int64_t row = 0, col = 0;
    for (int i = 0; i < child; i++) {
        row += lop_rows(self->child[i]);
        col += lop_cols(self->child[i]);
    }
    return lop_vjp_cut(v, lop_vjp_cut(v, g, 0, row, lop_rows(a)), 1, col, lop_cols(a));
}

const lop_op lop_op_blockdiag = {
    LOP_NAMED(blockdiag),
    .flags = LOP_FLAG_of_parts | LOP_FLAG_joins | LOP_FLAG_entries | LOP_FLAG_own_inverse |
             LOP_FLAG_meets | LOP_FLAG_linear,
    .title = "BlockDiag",
    .cls = LOP_OPERATOR,
    .min = 1,
    .max = -1,
    .param = {{"ops", LOP_P_OPERATORS, 0, NULL,
               "The blocks, operators or arrays, of any shapes, also rectangular; or one list; or "
               "one array of shape (g, m, n), whose g matrices are the blocks."}},
    .doc = {.brief = "Operators along the diagonal, zeros elsewhere.",
            .extended = "Products, solves, the diagonal and the dense form go block by block; each "
                        "block keeps its structure.",
            .cost = "Build: O(number of blocks). Product: those of the blocks, on slices of x, "
                    "without copies.",
            .notes = "BlockDiag @ BlockDiag and BlockDiag + BlockDiag of blocks that fit, "
                     "multiples, the transpose and the inverse of square blocks are BlockDiag "
                     "again, without computing. Sums with c I and products with I (x) G "
                     "are BlockDiag, BlockDiag + LowRank is a LowRankUpdate. Solves, determinants "
                     "and dense forms of 16 and more blocks of one size, up to 64 x 64, Dense or "
                     "sums and products of such that are written alike, take the blocks as one "
                     "batch, and so do products with 8 and more columns; the inverse of those is "
                     "an Inverse.",
            .limits = "A product with few columns takes a step a block, of up to 2047 of them.",
            .example = ">>> B = pl.BlockDiag(np.array([[1., 2.], [3., 4.]]), pl.Diag([5.]))\n>>> B "
                       "@ np.ones(3)\narray([3., 7., 5.])"},
    .bands = bands,
    .infer = infer,
    .vjp = vjp,
    .trait = trait,
    .flops = flops,
    .random = random_instance};
