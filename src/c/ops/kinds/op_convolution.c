/* op_convolution.c: convolution with a fixed kernel, of any number of dimensions.
 *
 * (K x)[i] = sum_k kernel[k] x[i - k]; of the full result of n + k - 1 the mode takes a part, or
 * wraps it round. Storage: the kernel, raveled, its sizes and the input's. attr.i[0]: the mode.
 * Short kernels go by loops over their taps, long ones by FFT: convolution.c. */
#include "ops/shared/convolution.h"

#include "ops/projections/projections.h"

enum { FULL = LOP_CONV_FULL, SAME, VALID, CIRCULAR };

/* False where neither is at least as large as the other on all levels (valid). */
static bool geometry(const lop_node *self, lopk_conv *c) {
    return lop_conv_geometry(self->attr.i[0], &self->child[1]->shape, &self->child[2]->shape, c);
}

static lop_status infer(lop_node *n, lop_err *err) {
    lopk_conv c;
    int64_t rows = 1, cols = 1, sum;
    char a[128], b[128];
    const lop_node *k = n->child[1], *size = n->child[2];
    if (k->op != &lop_op_sizes || size->op != &lop_op_sizes || n->attr.i[0] < FULL ||
        n->attr.i[0] > CIRCULAR)
        return lop_fail(err, LOP_DIM, "convolution takes a vector, two sizes and a mode");
    lop_status st = lop_conv_infer(n, n->child[0], k, err);
    if (st != LOP_OK) return st;
    lop_shape_text(&k->shape, a, sizeof a);
    lop_shape_text(&size->shape, b, sizeof b);
    if (k->shape.ndim != size->shape.ndim)
        return lop_fail(err, LOP_DIM, "a kernel of shape %s for an input of shape %s", a, b);
    for (int l = 0; l < k->shape.ndim; l++) {
        if (k->shape.dim[l] < 1) return lop_fail(err, LOP_DIM, "an empty kernel, shape %s", a);
        if (!lop_add_ok(k->shape.dim[l], size->shape.dim[l], &sum))
            return lop_fail(err, LOP_OVERFLOW, NULL);
    }
    if (!geometry(n, &c))
        return lop_fail(err, LOP_DIM,
                        "for mode 'valid' the kernel, shape %s, or the input, shape %s, must be at "
                        "least as large as the other in every dimension",
                        a, b);
    for (int64_t l = 0; l < c.levels; l++)
        if (!lop_mul_ok(rows, c.out[l], &rows) || !lop_mul_ok(cols, c.in[l], &cols))
            return lop_fail(err, LOP_OVERFLOW, NULL);
    n->shape.dim[n->shape.ndim++] = rows;
    n->shape.dim[n->shape.ndim++] = cols;
    return LOP_OK;
}

static lop_status apply(lop_emit *e, const lop_node *self, lop_mode mode, int x, int out) {
    lopk_conv c;
    (void)geometry(self, &c);
    return lop_conv_apply(e, &c, self->child[0], mode, x, out);
}
static lop_status dense(lop_emit *e, const lop_node *self, int out) {
    lopk_conv c;
    (void)geometry(self, &c);
    return lop_conv_dense(e, &c, self->child[0], out);
}
static lop_status diagonal(lop_emit *e, const lop_node *self, int64_t k, int out) {
    lopk_conv c;
    (void)geometry(self, &c);
    return lop_conv_diagonal(e, &c, self->child[0], k, out);
}
static lop_status element(lop_emit *e, const lop_node *self, int64_t i, int64_t j, int out) {
    lopk_conv c;
    (void)geometry(self, &c);
    return lop_conv_element(e, &c, self->child[0], i, j, out);
}
static double flops(const lop_node *self, int64_t k) {
    lopk_conv c;
    (void)geometry(self, &c);
    return lop_conv_flops(&c, k);
}

/* y[i] = sum_k g[k] x[i + shift - k]: of one level, and of several where rows and columns are
 * counted alike. */
static lop_band bands(const lop_node *self, const lop_band *child) {
    lopk_conv c;
    lop_band b = {0, 0};
    int64_t stride = 1;
    (void)child;
    if (!geometry(self, &c) || c.circular || (c.levels > 1 && self->attr.i[0] != SAME))
        return (lop_band){INT64_MAX, INT64_MAX};
    for (int64_t l = c.levels - 1; l >= 0; l--) {
        if (c.in[l] == 0) return (lop_band){INT64_MAX, INT64_MAX};
        b.u += c.shift[l] * stride;
        b.l += (c.g[l] - 1 - c.shift[l]) * stride;
        stride *= c.in[l];
    }
    return b;
}

static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    int64_t k[2] = {lop_rng_range(&r->rng, 1, n + 3), 1}, size[2] = {n, 1};
    lop_attr mode = {.i = {lop_rng_range(&r->rng, 0, 2) ? SAME : CIRCULAR, 0, 0, 0}};
    const lop_node *v[3] = {0};
    bool two = false;
    if (m != n) {
        if (m < 1 || n < 1) return LOP_UNABLE;
        mode.i[0] = m > n ? FULL : VALID;
        k[0] = m > n ? m - n + 1 : n - m + 1;
    } else if (n % 2 == 0 && n > 0 && lop_rng_range(&r->rng, 0, 2)) {
        two = true;
        size[0] = n / 2, size[1] = 2;
        k[0] = lop_rng_range(&r->rng, 1, n / 2 + 2), k[1] = lop_rng_range(&r->rng, 1, 4);
    }
    lop_status st = lop_rand_vector(r, dt, k[0] * k[1], &v[0]);
    if (st == LOP_OK) st = lop_sizes_make(r->ctx, two ? 2 : 1, k, &v[1], r->err);
    if (st == LOP_OK) st = lop_sizes_make(r->ctx, two ? 2 : 1, size, &v[2], r->err);
    if (st == LOP_OK)
        st = lop_node_make(r->ctx, &lop_op_convolution, &mode, 3, v, NULL, out, r->err);
    for (int i = 0; i < 3; i++) lop_node_unref(v[i]);
    return st;
}

/* One that wraps round is circulant, the kernel the beginning of its first column. */
static const lop_node *vjp(lop_vjp *v, const lop_node *self, int child, const lop_node *g) {
    const lop_shape *k = &self->child[1]->shape, *n = &self->child[2]->shape;
    if (child == 0 && self->attr.i[0] == CIRCULAR && n->ndim == 1 && k->dim[0] <= n->dim[0]) {
        const lop_node *all = lop_vjp_sums(v, g, (lopk_lines){.circular = true});
        return all ? lop_vjp_run(v, all, 0, 1, k->dim[0]) : NULL;
    }
    return child ? lop_vjp_unable(v)
                 : lop_vjp_boxes(v, g, self->attr.i[0], self->child[1], self->child[2]);
}

const lop_op lop_op_convolution = {
    LOP_NAMED(convolution),
    .flags = LOP_FLAG_entries | LOP_FLAG_linear | LOP_FLAG_raveled | LOP_FLAG_composed,
    .title = "Convolution",
    .cls = LOP_OPERATOR,
    .min = 3,
    .max = 3,
    .ints = 1,
    .param = {{"kernel", LOP_P_ARRAY, -1, NULL,
               "What is convolved with, shape (..., k) or, for n of several dimensions, "
               "(..., k1, k2, ...). Borrowed.",
               NULL},
              {"n", LOP_P_SIZES, 0, NULL, "Size of the input, or its shape where it is raveled.",
               NULL},
              {"mode", LOP_P_WORD, 0, "'full'",
               "'full', 'same' (of the input's size, centred) and 'valid' as in "
               "scipy.signal.convolve; 'circular' wraps round.",
               "full same valid circular"}},
    .doc = {.brief = "Convolution with a fixed kernel: ``K @ x`` is ``scipy.signal.convolve(x, "
                     "kernel, mode)``, of raveled arrays where n is a shape.",
            .extended = "The transpose correlates.",
            .cost = "Build: O(1). Product: n k multiply-adds for short kernels, two FFTs of about "
                    "n + k for long ones; the spectrum is kept.",
            .notes = "Products by FFT are accurate normwise, C u log2(N) |spectrum| |x|; "
                     "pl.config(fft=False) gives direct loops with a componentwise bound; short "
                     "and integer ones always have it. 'same' is of the input's size also where "
                     "the kernel is longer.",
            .limits = "It has 5 levels at most. A long convolution with a medium kernel is "
                      "one long FFT, not many short ones (overlap-add).",
            .example = ">>> pl.Convolution([1, 2, 1], 4, mode=\"same\") @ np.array([0, 1, 0, 0])\n"
                       "array([1, 2, 1, 0])"},
    .infer = infer,
    .vjp = vjp,
    .apply = apply,
    .dense = dense,
    .diagonal = diagonal,
    .element = element,
    .flops = flops,
    .bands = bands,
    .random = random_instance};
