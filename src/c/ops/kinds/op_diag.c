/* op_diag.c: a square diagonal matrix, y[i, :] = d[i] x[i, :]. Offsets, other shapes: op_offdiag.c.
 *
 * Storage: the vector d (an array expression: products and sums of diagonals stay diagonals).
 * Cost: n k flops, bound by memory. Batches: d of shape (..., n). */
#include "expr/random_instance.h"
#include "expr/vjp.h"
#include "kernels/common/kernels.h"

static lop_status infer(lop_node *n, lop_err *err) {
    const lop_node *d = n->child[0];
    if (d->op->cls == LOP_OPERATOR || d->core != 1)
        return lop_fail(err, LOP_DIM, "diag takes a vector");
    if (d->shape.ndim + 1 > LOP_MAXDIM)
        return lop_fail(err, LOP_DIM, "more than %d dimensions", LOP_MAXDIM);
    n->shape = d->shape;
    n->shape.dim[n->shape.ndim] = n->shape.dim[n->shape.ndim - 1];
    n->shape.ndim++;
    n->dtype = d->dtype;
    n->weak = d->weak;
    return LOP_OK;
}

static lop_truth trait(const lop_node *n, lop_trait t) {
    if (t == LOP_DIAGONAL || t == LOP_SYMMETRIC) return LOP_TRUE;
    if (t == LOP_HERMITIAN && !lop_is_complex(n->dtype)) return LOP_TRUE;
    return LOP_UNKNOWN;
}

static lop_status run_rowscale(const lop_call *c) {
    lopk_rowscale(c->a[0], c->a[2], (c->step->attr.i[0] & LOP_C) != 0, c->a[1]);
    return LOP_OK;
}

static lop_status apply(lop_emit *e, const lop_node *self, lop_mode mode, int x, int out) {
    lop_status st;
    int64_t m, k, batch;
    lop_slot_sizes(e, out, &m, &k, &batch);
    int in[2] = {x,
                 lop_emit_cast(e, lop_emit_value(e, self->child[0]), lop_slot_dtype(e, out), &st)};
    if (in[1] < 0) return st;
    lop_step *s = lop_emit_step(e, "rowscale", run_rowscale, out, 2, in);
    if (!s) return LOP_NOMEM;
    s->attr.i[0] = mode;
    s->flags = LOP_STEP_COLUMNS | LOP_STEP_INPLACE;
    s->flops = (double)m * (double)k * (double)batch;
    return LOP_OK;
}

static lop_status run_dense(const lop_call *c) {
    lopk_zero(c->a[0]);
    lopk_set_diag(c->a[0], 0, c->a[1]);
    return LOP_OK;
}
static lop_status dense(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    int d = lop_emit_cast(e, lop_emit_value(e, self->child[0]), lop_slot_dtype(e, out), &st);
    if (d < 0) return st;
    return lop_emit_step(e, "set-diag", run_dense, out, 1, &d) ? LOP_OK : LOP_NOMEM;
}

static lop_status run_zero(const lop_call *c) {
    lopk_zero(c->a[0]);
    return LOP_OK;
}
static lop_status run_copy(const lop_call *c) {
    lopk_copy(c->a[0], c->a[1]);
    return LOP_OK;
}
static lop_status diagonal(lop_emit *e, const lop_node *self, int64_t k, int out) {
    int d = lop_emit_value(e, self->child[0]);
    if (k != 0) return lop_emit_step(e, "zero", run_zero, out, 0, NULL) ? LOP_OK : LOP_NOMEM;
    return lop_emit_step(e, "copy", run_copy, out, 1, &d) ? LOP_OK : LOP_NOMEM;
}

static lop_status run_element(const lop_call *c) {
    lop_mat d = *c->a[1];
    d.p = (char *)d.p + c->step->attr.i[0] * d.rs * (int64_t)lop_dtype_size(d.dt);
    d.m = 1;
    lopk_copy(c->a[0], &d);
    return LOP_OK;
}
static lop_status element(lop_emit *e, const lop_node *self, int64_t i, int64_t j, int out) {
    if (i != j) return lop_emit_step(e, "zero", run_zero, out, 0, NULL) ? LOP_OK : LOP_NOMEM;
    int d = lop_emit_value(e, self->child[0]);
    lop_step *s = lop_emit_step(e, "array_element", run_element, out, 1, &d);
    if (!s) return LOP_NOMEM;
    s->attr.i[0] = i;
    return LOP_OK;
}

static double flops(const lop_node *self, int64_t k) { return (double)lop_rows(self) * (double)k; }

static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    if (m != n) return LOP_UNABLE;
    const lop_node *d;
    lop_status st = lop_rand_vector(r, dt, n, &d);
    if (st != LOP_OK) return st;
    st = lop_node_make(r->ctx, &lop_op_diag, NULL, 1, &d, NULL, out, r->err);
    lop_node_unref(d);
    return st;
}

static lop_band bands(const lop_node *self, const lop_band *child) {
    (void)self;
    (void)child;
    return (lop_band){0, 0};
}

static const lop_node *vjp(lop_vjp *v, const lop_node *self, int child, const lop_node *g) {
    (void)self;
    (void)child;
    return lop_vjp_diagonal(v, g, 0);
}

const lop_op lop_op_diag = {
    LOP_NAMED(diag),
    .flags = LOP_FLAG_diagonal | LOP_FLAG_at_hand | LOP_FLAG_diagonals | LOP_FLAG_closed_spectrum |
             LOP_FLAG_few_entries | LOP_FLAG_one_entry | LOP_FLAG_entries | LOP_FLAG_at_once |
             LOP_FLAG_tells | LOP_FLAG_closes | LOP_FLAG_meets | LOP_FLAG_sliced_at_once |
             LOP_FLAG_anew | LOP_FLAG_linear,
    .title = "Diag",
    .cls = LOP_OPERATOR,
    .min = 1,
    .max = 1,
    .param = {{"d", LOP_P_ARRAY, 1, NULL,
               "The diagonal, shape (..., n). Borrowed: later writes to it are seen."},
              {"k", LOP_P_OFFSET, 0, "0",
               "Which diagonal, as numpy.diag's: above the main one where positive."},
              {"shape", LOP_P_SHAPE, 0, "None",
               "(m, n); None means the square matrix that just holds d. The diagonal must have d's "
               "length."}},
    .doc = {.brief = "A diagonal matrix.",
            .extended = "Products, sums and scalar multiples of Diag are Diag again, without "
                        "computing; of those off the main diagonal or not square, the transpose, "
                        "multiples and sums on one diagonal.",
            .cost = "Build: O(1), no copy. Product with k columns: n k flops. diagonal(), trace(), "
                    "element: O(n) or less.",
            .notes = "Applied to an array, a product of diagonals multiplies right to left.",
            .limits = "Products and sums of one off the main diagonal with other diagonals stay "
                      "lazy, as does any sum with a Banded.",
            .example = ">>> D = pl.Diag(np.array([1., 2., 3.]))\n>>> type(D @ D).__name__, (D @ "
                       "D).diagonal()\n('Diag', array([1., 4., 9.]))"},
    .bands = bands,
    .infer = infer,
    .vjp = vjp,
    .trait = trait,
    .apply = apply,
    .dense = dense,
    .diagonal = diagonal,
    .element = element,
    .flops = flops,
    .random = random_instance};
