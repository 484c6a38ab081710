/* op_hankel.c: constant antidiagonals, H[i, j] = h[i + j].
 *
 * Storage: h, all antidiagonals from the corner on, and the sizes (m, n); what lies beyond h is 0.
 * H is a Toeplitz matrix after the columns are turned round, so products are convolutions of h with
 * the reversed x: convolution.c. */
#include "ops/projections/projections.h"
#include "ops/shared/convolution.h"

#include <string.h>

static void geometry(const lop_node *self, lopk_conv *c) {
    memset(c, 0, sizeof *c);
    c->levels = 1;
    c->flip = 1;
    c->g[0] = lop_cols(self->child[0]);
    c->out[0] = lop_rows(self);
    c->in[0] = lop_cols(self);
    c->shift[0] = c->in[0] - 1;
}

static lop_status infer(lop_node *n, lop_err *err) {
    const lop_node *h = n->child[0], *sizes = n->child[1];
    if (h->op->cls == LOP_OPERATOR || h->core != 1 || sizes->op != &lop_op_sizes ||
        sizes->shape.ndim != 2)
        return lop_fail(err, LOP_DIM, "hankel takes a vector and two sizes");
    if (h->shape.ndim + 1 > LOP_MAXDIM)
        return lop_fail(err, LOP_DIM, "more than %d dimensions", LOP_MAXDIM);
    n->shape = h->shape;
    n->shape.dim[n->shape.ndim - 1] = sizes->shape.dim[0];
    n->shape.dim[n->shape.ndim++] = sizes->shape.dim[1];
    n->dtype = h->dtype;
    n->weak = h->weak;
    return LOP_OK;
}

static lop_truth trait(const lop_node *self, lop_trait t) {
    if (t == LOP_SYMMETRIC && lop_is_square(self)) return LOP_TRUE;
    if (t == LOP_HERMITIAN && lop_is_square(self) && !lop_is_complex(self->dtype)) return LOP_TRUE;
    return LOP_UNKNOWN;
}

static lop_status apply(lop_emit *e, const lop_node *self, lop_mode mode, int x, int out) {
    lopk_conv c;
    geometry(self, &c);
    return lop_conv_apply(e, &c, self->child[0], mode, x, out);
}
static lop_status dense(lop_emit *e, const lop_node *self, int out) {
    lopk_conv c;
    geometry(self, &c);
    return lop_conv_dense(e, &c, self->child[0], out);
}
static lop_status diagonal(lop_emit *e, const lop_node *self, int64_t k, int out) {
    lopk_conv c;
    geometry(self, &c);
    return lop_conv_diagonal(e, &c, self->child[0], k, out);
}
static lop_status element(lop_emit *e, const lop_node *self, int64_t i, int64_t j, int out) {
    lopk_conv c;
    geometry(self, &c);
    return lop_conv_element(e, &c, self->child[0], i, j, out);
}
static double flops(const lop_node *self, int64_t k) {
    lopk_conv c;
    geometry(self, &c);
    return lop_conv_flops(&c, k);
}

static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    const lop_node *v[2] = {0};
    const int64_t sizes[2] = {m, n};
    int64_t all = m + n > 0 ? m + n - 1 : 0;
    if (lop_rng_range(&r->rng, 0, 4) == 0) all = m;
    lop_status st = lop_rand_vector(r, dt, all, &v[0]);
    if (st == LOP_OK) st = lop_sizes_make(r->ctx, 2, sizes, &v[1], r->err);
    if (st == LOP_OK) st = lop_node_make(r->ctx, &lop_op_hankel, NULL, 2, v, NULL, out, r->err);
    lop_node_unref(v[0]);
    lop_node_unref(v[1]);
    return st;
}

/* Of all m + n - 1 antidiagonals, however many numbers there are. */
static const lop_node *vjp(lop_vjp *v, const lop_node *self, int child, const lop_node *g) {
    (void)self;
    return child ? lop_vjp_unable(v) : lop_vjp_sums(v, g, (lopk_lines){.anti = true});
}

const lop_op lop_op_hankel = {
    LOP_NAMED(hankel),
    .flags = LOP_FLAG_entries | LOP_FLAG_linear | LOP_FLAG_by_parts,
    .title = "Hankel",
    .cls = LOP_OPERATOR,
    .min = 2,
    .max = 2,
    .param =
        {{"c", LOP_P_ARRAY, 1, NULL, "First column, shape (..., m). Borrowed.", NULL},
         {"r", LOP_P_ARRAY, 1, "None",
          "Last row, shape (..., n); r[0] is not read: c[-1] stands there. None means zeros of "
          "c's length, as in scipy.linalg.hankel.",
          NULL}},
    .doc = {.brief = "A matrix with constant antidiagonals, as scipy.linalg.hankel.",
            .extended = "Real or complex, square or not; square ones are symmetric. Sums and "
                        "multiples of Hankel are Hankel.",
            .cost = "Build: O(1). Product: two FFTs of length about m + n a column; the spectrum "
                    "is kept. Memory O(m + n). Solve: as of a Toeplitz matrix with its rows "
                    "turned round.",
            .notes = "Products by FFT are accurate normwise, C u log2(N) |spectrum| |x|; "
                     "pl.config(fft=False) gives direct loops with a componentwise bound; small "
                     "and integer ones always have it.",
            .limits = "There is only one level. Solves have the limits of a Toeplitz matrix.",
            .example = ">>> pl.Hankel([1, 2, 3], [3, 4]).toarray()\n"
                       "array([[1, 2],\n       [2, 3],\n       [3, 4]])"},
    .infer = infer,
    .vjp = vjp,
    .trait = trait,
    .apply = apply,
    .dense = dense,
    .diagonal = diagonal,
    .element = element,
    .flops = flops,
    .random = random_instance};

/* splice: a, then b without its first element. */
static lop_status infer_splice(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0], *b = n->child[1];
    if (a->core != 1 || b->core != 1) return lop_fail(err, LOP_DIM, "concat takes two vectors");
    lop_status st = lop_shape_batch(&a->shape, 1, &b->shape, 1, &n->shape, err);
    if (st != LOP_OK) return st;
    int64_t all;
    if (!lop_add_ok(lop_cols(a), lop_cols(b) > 0 ? lop_cols(b) - 1 : 0, &all))
        return lop_fail(err, LOP_OVERFLOW, NULL);
    n->shape.dim[n->shape.ndim++] = all;
    n->core = 1;
    lop_node_promote(n, a, b);
    return LOP_OK;
}
static lop_status run_splice(const lop_call *c) {
    const lop_mat *y = c->a[0], *a = c->a[1], *b = c->a[2];
    const int64_t size = (int64_t)lop_dtype_size(y->dt);
    const lop_mat head = {y->p, a->m, 1, y->rs, 1, y->dt};
    lopk_copy(&head, a);
    if (b->m < 2) return LOP_OK;
    const lop_mat tail = {(char *)y->p + a->m * y->rs * size, b->m - 1, 1, y->rs, 1, y->dt},
                  rest = {(char *)b->p + b->rs * size, b->m - 1, 1, b->rs, 1, b->dt};
    lopk_copy(&tail, &rest);
    return LOP_OK;
}
static lop_status lower_splice(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    int in[2];
    for (int i = 0; i < 2; i++) {
        in[i] = lop_emit_cast(e, lop_emit_value(e, self->child[i]), self->dtype, &st);
        if (in[i] < 0) return st;
    }
    return lop_emit_step(e, "concat", run_splice, out, 2, in) ? LOP_OK : LOP_NOMEM;
}
const lop_op lop_op_concat = {LOP_NAMED(concat), .cls = LOP_ARRAY,      .min = 2,
                              .max = 2,          .infer = infer_splice, .lower = lower_splice};
