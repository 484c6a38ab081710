/* op_offdiag.c: Diag off the main diagonal, or not square: A[i0 + t, j0 + t] = d[t].
 *
 * The class Diag makes it where the offset is not 0 or the shape not square; a kind of its own, so
 * that the rules of `diag` never meet it. Storage: the vector d, whose length is that of the
 * diagonal. Cost: n k flops. attr.i: offset k, m, n. */
#include "expr/random_instance.h"
#include "expr/vjp.h"
#include "kernels/common/kernels.h"

static lop_status infer(lop_node *n, lop_err *err) {
    const lop_node *d = n->child[0];
    const int64_t k = n->attr.i[0], rows = n->attr.i[1], cols = n->attr.i[2];
    if (d->op->cls == LOP_OPERATOR || d->core != 1)
        return lop_fail(err, LOP_DIM, "offdiag takes a vector");
    if (rows < 0 || cols < 0 || k == INT64_MIN)
        return lop_fail(err, LOP_DIM, "offdiag has no such shape or offset");
    if (d->shape.ndim + 1 > LOP_MAXDIM)
        return lop_fail(err, LOP_DIM, "more than %d dimensions", LOP_MAXDIM);
    const int64_t length = lop_diag_length(rows, cols, k);
    if (length != lop_cols(d))
        return lop_fail(err, LOP_DIM,
                        "diagonal %lld of a %lld x %lld matrix has %lld elements, got %lld",
                        (long long)k, (long long)rows, (long long)cols, (long long)length,
                        (long long)lop_cols(d));
    n->shape = d->shape;
    n->shape.dim[n->shape.ndim - 1] = rows;
    n->shape.dim[n->shape.ndim++] = cols;
    n->dtype = d->dtype;
    n->weak = d->weak;
    return LOP_OK;
}

static lop_truth trait(const lop_node *n, lop_trait t) {
    return t == LOP_DIAGONAL && n->attr.i[0] == 0 && lop_is_square(n) ? LOP_TRUE : LOP_UNKNOWN;
}

static lop_mat rows_of(const lop_mat *a, int64_t from, int64_t count) {
    lop_mat b = *a;
    if (count > 0) b.p = (char *)a->p + from * a->rs * (int64_t)lop_dtype_size(a->dt);
    b.m = count;
    return b;
}

/* y[to + t] = d[t] x[from + t], zero elsewhere. */
static lop_status run(const lop_call *c) {
    const lop_mat *y = c->a[0], *x = c->a[1], *d = c->a[2];
    const int64_t mode = c->step->attr.i[0], k = c->step->attr.i[1];
    const int64_t i = k < 0 ? -k : 0, j = k > 0 ? k : 0;
    const int64_t to = d->m ? (mode & LOP_T ? j : i) : 0, from = mode & LOP_T ? i : j;
    const lop_mat above = rows_of(y, 0, to), own = rows_of(y, to, d->m),
                  below = rows_of(y, to + d->m, y->m - to - d->m), of = rows_of(x, from, d->m);
    lopk_zero(&above);
    lopk_rowscale(&own, d, (mode & LOP_C) != 0, &of);
    lopk_zero(&below);
    return LOP_OK;
}

static lop_status apply(lop_emit *e, const lop_node *self, lop_mode mode, int x, int out) {
    lop_status st;
    int64_t k, batch;
    lop_slot_sizes(e, out, NULL, &k, &batch);
    int in[2] = {x,
                 lop_emit_cast(e, lop_emit_value(e, self->child[0]), lop_slot_dtype(e, out), &st)};
    if (in[1] < 0) return st;
    lop_step *s = lop_emit_step(e, "shift-rowscale", run, out, 2, in);
    if (!s) return LOP_NOMEM;
    s->attr.i[0] = mode;
    s->attr.i[1] = self->attr.i[0];
    s->flags = LOP_STEP_COLUMNS;
    s->flops = (double)lop_cols(self->child[0]) * (double)k * (double)batch;
    return LOP_OK;
}

static lop_status run_dense(const lop_call *c) {
    lopk_zero(c->a[0]);
    if (c->a[1]->m) lopk_set_diag(c->a[0], c->step->attr.i[0], c->a[1]);
    return LOP_OK;
}
static lop_status dense(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    int d = lop_emit_cast(e, lop_emit_value(e, self->child[0]), lop_slot_dtype(e, out), &st);
    if (d < 0) return st;
    lop_step *s = lop_emit_step(e, "set-diag", run_dense, out, 1, &d);
    if (!s) return LOP_NOMEM;
    s->attr.i[0] = self->attr.i[0];
    return LOP_OK;
}

/* Element attr.i[0] of d, or (-1) zero, or (-2) all of it. */
static lop_status run_part(const lop_call *c) {
    const int64_t i = c->step->attr.i[0];
    if (i == -1) {
        lopk_zero(c->a[0]);
        return LOP_OK;
    }
    const lop_mat d = rows_of(c->a[1], i < 0 ? 0 : i, i < 0 ? c->a[1]->m : 1);
    lopk_copy(c->a[0], &d);
    return LOP_OK;
}
static lop_status part(lop_emit *e, const lop_node *self, int64_t i, int out) {
    int d = lop_emit_value(e, self->child[0]);
    lop_step *s =
        lop_emit_step(e, i == -1 ? "zero" : "array_element", run_part, out, i == -1 ? 0 : 1, &d);
    if (!s) return LOP_NOMEM;
    s->attr.i[0] = i;
    return LOP_OK;
}
static lop_status diagonal(lop_emit *e, const lop_node *self, int64_t k, int out) {
    return part(e, self, k == self->attr.i[0] ? -2 : -1, out);
}
static lop_status element(lop_emit *e, const lop_node *self, int64_t i, int64_t j, int out) {
    return part(e, self, j - i == self->attr.i[0] ? (i < j ? i : j) : -1, out);
}

static double flops(const lop_node *self, int64_t k) {
    return (double)lop_cols(self->child[0]) * (double)k;
}

static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    lop_attr a = {.i = {lop_rng_range(&r->rng, -m - 1, n + 2), m, n, 0}};
    const lop_node *d;
    lop_status st = lop_rand_vector(r, dt, lop_diag_length(m, n, a.i[0]), &d);
    if (st != LOP_OK) return st;
    st = lop_node_make(r->ctx, &lop_op_offdiag, &a, 1, &d, NULL, out, r->err);
    lop_node_unref(d);
    return st;
}

static lop_band bands(const lop_node *self, const lop_band *child) {
    (void)child;
    const int64_t k = self->attr.i[0];
    return (lop_band){k < 0 ? -k : 0, k > 0 ? k : 0};
}

static const lop_node *vjp(lop_vjp *v, const lop_node *self, int child, const lop_node *g) {
    (void)child;
    return lop_vjp_diagonal(v, g, self->attr.i[0]);
}

const lop_op lop_op_offdiag = {LOP_NAMED(offdiag),
                               .flags = LOP_FLAG_few_entries | LOP_FLAG_one_entry |
                                        LOP_FLAG_entries | LOP_FLAG_linear,
                               .cls = LOP_OPERATOR,
                               .min = 1,
                               .max = 1,
                               .ints = 3,
                               .param = {{"d", LOP_P_ARRAY, 1, NULL, "The diagonal."}},
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
