/* op_block.c: a matrix of operators, r rows of c blocks each (children row by row; attr.i = r, c).
 *
 * y_i = sum_j A_ij x_j by slices of x, each row of blocks into its rows of y; Zeros are passed over
 * (rules: rules/blocks.c). Cost: that of the blocks and one addition for each beyond a row's
 * first. */
#include "expr/random_instance.h"
#include "expr/vjp.h"

static lop_status wrong_size(const lop_node *n, int64_t at, int64_t with, const char *what,
                             lop_err *err) {
    char ta[128], tb[128];
    int64_t c = n->attr.i[1];
    return lop_fail(err, LOP_DIM,
                    "block (%lld, %lld) of shape %s has not as many %s as block (%lld, %lld) of "
                    "shape %s",
                    (long long)(at / c), (long long)(at % c),
                    lop_shape_text(&n->child[at]->shape, ta, sizeof ta), what,
                    (long long)(with / c), (long long)(with % c),
                    lop_shape_text(&n->child[with]->shape, tb, sizeof tb));
}

static lop_status infer(lop_node *n, lop_err *err) {
    int64_t r = n->attr.i[0], c = n->attr.i[1], rows = 0, cols = 0, all;
    if (r < 1 || c < 1 || !lop_mul_ok(r, c, &all) || all != n->n)
        return lop_fail(err, LOP_DIM, "a block matrix has r c blocks, got %d", n->n);
    for (int i = 0; i < n->n; i++) {
        const lop_node *a = n->child[i];
        if (a->op->cls != LOP_OPERATOR) return lop_fail(err, LOP_DIM, "block takes operators");
        if (lop_rows(a) != lop_rows(n->child[i / c * c]))
            return wrong_size(n, i, i / c * c, "rows", err);
        if (lop_cols(a) != lop_cols(n->child[i % c]))
            return wrong_size(n, i, i % c, "columns", err);
    }
    bool ok = true;
    for (int64_t i = 0; i < r; i++) ok = ok && lop_add_ok(rows, lop_rows(n->child[i * c]), &rows);
    for (int64_t j = 0; j < c; j++) ok = ok && lop_add_ok(cols, lop_cols(n->child[j]), &cols);
    if (!ok) return lop_fail(err, LOP_OVERFLOW, "the sizes of the blocks do not fit 64 bits");
    return lop_node_over(n, rows, cols, err);
}

/* Is b the view of a that the property asks for, by their nodes? */
static bool mirrored(const lop_node *a, const lop_node *b, lop_trait t) {
    bool real = !lop_is_complex(a->dtype) && !lop_is_complex(b->dtype);
    for (int turn = 0; turn < 2; turn++) {
        const lop_node *v = turn ? b : a, *o = turn ? a : b;
        if (v->op == &lop_op_view && v->child[0] == o && (v->attr.i[0] & LOP_T) &&
            (real || (v->attr.i[0] == LOP_H) == (t == LOP_HERMITIAN)))
            return true;
        if (v->op == &lop_op_zeros && o->op == &lop_op_zeros) return true;
    }
    return false;
}

static lop_truth trait(const lop_node *n, lop_trait t) {
    int64_t r = n->attr.i[0], c = n->attr.i[1];
    if (n->n == 1) return lop_node_trait(n->child[0], t);
    if ((t != LOP_SYMMETRIC && t != LOP_HERMITIAN) || r != c) return LOP_UNKNOWN;
    for (int64_t i = 0; i < r; i++) {
        if (lop_node_trait(n->child[i * c + i], t) != LOP_TRUE) return LOP_UNKNOWN;
        for (int64_t j = 0; j < i; j++)
            if (!mirrored(n->child[i * c + j], n->child[j * c + i], t)) return LOP_UNKNOWN;
    }
    return LOP_TRUE;
}

static double flops(const lop_node *self, int64_t k) {
    double total = 0;
    for (int i = 0; i < self->n; i++) {
        const lop_node *a = self->child[i];
        total += a->op->flops ? a->op->flops(a, k)
                              : 2 * (double)lop_rows(a) * (double)lop_cols(a) * (double)k;
        total += (double)lop_rows(a) * (double)k;
    }
    return total;
}

/* One or two rows and columns of blocks, some of them Zeros. */
static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    const lop_node *f[4] = {0};
    int64_t rows[2] = {m, 0}, cols[2] = {n, 0};
    lop_attr shape = {.i = {1 + (int64_t)(lop_rng_next(&r->rng) % 2),
                            1 + (int64_t)(lop_rng_next(&r->rng) % 2), 0, 0}};
    if (shape.i[0] == 2) rows[1] = m - (rows[0] = lop_rng_range(&r->rng, 0, m + 1));
    if (shape.i[1] == 2) cols[1] = n - (cols[0] = lop_rng_range(&r->rng, 0, n + 1));
    int count = (int)(shape.i[0] * shape.i[1]);
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < count; i++) {
        int64_t p = rows[i / shape.i[1]], q = cols[i % shape.i[1]];
        lop_node like = {.shape = {.ndim = 2, .dim = {p, q}}, .dtype = dt, .core = 2};
        if (lop_rng_next(&r->rng) % 4)
            st = lop_rand_dense(r, p, q, dt, &f[i]);
        else
            st = lop_node_make(r->ctx, &lop_op_zeros, NULL, 0, NULL, &like, &f[i], r->err);
    }
    if (st == LOP_OK)
        st = lop_node_make(r->ctx, &lop_op_block, &shape, count, f, NULL, out, r->err);
    for (int i = 0; i < 4; i++) lop_node_unref(f[i]);
    return st;
}

/* The block of G in its place. */
static const lop_node *vjp(lop_vjp *v, const lop_node *self, int child, const lop_node *g) {
    const lop_node *a = self->child[child];
    const int64_t c = self->attr.i[1];
    int64_t row = 0, col = 0;
    for (int64_t i = 0; i < child / c; i++) row += lop_rows(self->child[i * c]);
    for (int64_t j = 0; j < child % c; j++) col += lop_cols(self->child[j]);
    return lop_vjp_cut(v, lop_vjp_cut(v, g, 0, row, lop_rows(a)), 1, col, lop_cols(a));
}

const lop_op lop_op_block = {
    LOP_NAMED(block),
    .flags = LOP_FLAG_entries | LOP_FLAG_linear,
    .title = "Block",
    .cls = LOP_OPERATOR,
    .min = 1,
    .max = -1,
    .ints = 2,
    .param = {{"blocks", LOP_P_BLOCKS, 0, NULL,
               "Nested lists, rows of blocks: operators, arrays, or None for zeros."}},
    .doc = {.brief = "A matrix of operators.",
            .extended = "Each block keeps its structure; the sizes of None follow from its row and "
                        "column.",
            .cost = "Build: O(number of blocks). Product: those of the blocks, on slices of x, and "
                    "an addition for each block beyond a row's first.",
            .notes = "Zeros and None are passed over: what NaN they meet does not count. Solves "
                     "and determinants go block by block where the diagonal blocks are square and "
                     "Zeros stand above or below all of them, else by the dense form.",
            .limits =
                "Solves and determinants know block triangles, 2 x 2 blocks where one on the "
                "diagonal is cheap to solve with (Schur complement, of circulants a circulant "
                "one), and what is sparse by its blocks; larger grids take the dense form, as "
                "do Cholesky factors and spectra.",
            .example = ">>> A = pl.Diag([1., 2.])\n>>> B = pl.Block([[A, None], [np.ones((1, 2)), "
                       "[[4.]]]])\n>>> B @ np.ones(3)\narray([1., 2., 6.])"},
    .infer = infer,
    .vjp = vjp,
    .trait = trait,
    .flops = flops,
    .random = random_instance};
