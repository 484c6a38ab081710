/* op_gram.c: what products of arrays need beside gemm: R^T R and R^H R by syrk and herk (half the
 * flops of the product), R^H diag(d)^-1 R and R^H diag(d) R for a real d by the same, R^H (M R) for
 * Hermitian M by panels of one triangle, and one row or column of a matrix. Cost: n^2 k flops for R
 * of k x n; one pass over the line. */
#include "expr/op.h"
#include "kernels/dense/k_blas.h"
#include "kernels/common/kernels.h"

#include <math.h>

/* gram: attr.i[0] is the view of the left factor, 1 or 3; i[1]: R is an upper (1) or lower (2)
 * triangle, with zeros elsewhere: n^3 / 3 flops. */
static lop_status infer_gram(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0];
    if (a->core != 2 || (n->attr.i[0] != LOP_T && n->attr.i[0] != LOP_H) || n->attr.i[1] < 0 ||
        n->attr.i[1] > 2 || (n->attr.i[1] && lop_rows(a) != lop_cols(a)))
        return lop_fail(err, LOP_DIM, "gram takes a matrix and a transposing view");
    n->shape = a->shape;
    n->shape.dim[n->shape.ndim - 2] = lop_cols(a);
    n->dtype = a->dtype;
    n->weak = a->weak;
    return LOP_OK;
}
static lop_status run_gram(const lop_call *c) {
    const lop_mat *y = c->a[0], *a = c->a[1];
    bool adjoint = c->step->attr.i[0] == LOP_H;
    if (lop_is_blas(a->dt)) {
        if (c->step->attr.i[1])
            lopk_gram_triangle(y, a, adjoint, c->step->attr.i[1] == 2);
        else
            lopk_gram(y, a, adjoint);
        return LOP_OK;
    }
    const lop_mat t = {a->p, a->n, a->m, a->cs, a->rs, a->dt};
    lopk_matmul_loop(y, &t, false, a, false);
    return LOP_OK;
}
static lop_status lower_gram(lop_emit *e, const lop_node *self, int out) {
    int in = lop_emit_value(e, self->child[0]);
    int64_t k, n, batch;
    lop_slot_sizes(e, in, &k, &n, NULL);
    lop_slot_sizes(e, out, NULL, NULL, &batch);
    lop_step *s = lop_emit_step(e,
                                self->attr.i[1]            ? "triangle-gram"
                                : self->attr.i[0] == LOP_H ? "herk"
                                                           : "syrk",
                                run_gram, out, 1, &in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->flags = LOP_STEP_GEMM;
    s->flops = (double)n * (double)(n + 1) * (double)k * (double)batch;
    if (self->attr.i[1]) s->flops *= 0.45; /* in panels: more than a third */
    return LOP_OK;
}
const lop_op lop_op_gram = {LOP_NAMED(gram), .cls = LOP_ARRAY,    .min = 1,           .max = 1,
                            .ints = 2,       .infer = infer_gram, .lower = lower_gram};

/* weighted_gram: R^H diag(d)^-1 R for a real d (NaN where d has a zero), and below it the squares
 * of R's columns, added up: what bounds |R| (k_weighted_gram.c). scaled_gram: R^H diag(d) R alone.
 * top_square: the first rows of such a matrix. */
static lop_status infer_of_rows(lop_node *n, int64_t more, lop_err *err) {
    const lop_node *a = n->child[0], *d = n->child[1];
    if (a->core != 2 || d->core != 1 || !lop_is_blas(a->dtype) || a->weak || d->weak ||
        d->dtype != lop_dtype_real(a->dtype) || lop_cols(d) != lop_rows(a))
        return lop_fail(err, LOP_DIM,
                        "weighted_gram takes a matrix and a real number for each row");
    lop_status st = lop_shape_batch(&a->shape, 2, &d->shape, 1, &n->shape, err);
    if (st != LOP_OK) return st;
    n->shape.dim[n->shape.ndim++] = lop_cols(a) + more;
    n->shape.dim[n->shape.ndim++] = lop_cols(a);
    n->core = 2;
    n->dtype = a->dtype;
    return LOP_OK;
}
static lop_status infer_weighted(lop_node *n, lop_err *err) { return infer_of_rows(n, 1, err); }
static lop_status infer_scaled(lop_node *n, lop_err *err) { return infer_of_rows(n, 0, err); }
static lop_status run_weighted(const lop_call *c) {
    const lop_mat *y = c->a[0];
    const lop_status st = lopk_weighted_gram(y, c->a[1], c->a[2], c->scratch);
    if (st != LOP_SINGULAR) return st;
    /* d has a zero: whatever divides by d says so, and NaN is accepted by no check; the matrix may
     * stand in front of the branch that is to be left */
    for (int64_t i = 0; i < y->m; i++)
        for (int64_t j = 0; j < y->n; j++) lop_set(y->dt, y->p, i * y->rs + j * y->cs, NAN);
    return LOP_OK;
}
static lop_status run_scaled(const lop_call *c) {
    lopk_scaled_gram(c->a[0], c->a[1], c->a[2], c->scratch);
    return LOP_OK;
}
static lop_status lower_rows(lop_emit *e, const lop_node *self, int out, const char *name,
                             lop_status (*run)(const lop_call *)) {
    const int in[2] = {lop_emit_value(e, self->child[0]), lop_emit_value(e, self->child[1])};
    int64_t k, n, batch;
    lop_slot_sizes(e, in[0], &k, &n, NULL);
    lop_slot_sizes(e, out, NULL, NULL, &batch);
    lop_step *s = lop_emit_step(e, name, run, out, 2, in);
    if (!s) return LOP_NOMEM;
    s->flags = LOP_STEP_GEMM;
    s->scratch = lopk_weighted_gram_scratch(k, n, self->dtype);
    s->flops = (double)n * (double)(n + 3) * (double)k * (double)batch;
    return LOP_OK;
}
static lop_status lower_weighted(lop_emit *e, const lop_node *self, int out) {
    return lower_rows(e, self, out, "weighted-gram", run_weighted);
}
static lop_status lower_scaled(lop_emit *e, const lop_node *self, int out) {
    return lower_rows(e, self, out, "scaled-gram", run_scaled);
}
const lop_op lop_op_weighted_gram = {
    LOP_NAMED(weighted_gram), .cls = LOP_ARRAY,       .min = 2, .max = 2,
    .infer = infer_weighted,  .lower = lower_weighted};
const lop_op lop_op_scaled_gram = {LOP_NAMED(scaled_gram), .cls = LOP_ARRAY,     .min = 2, .max = 2,
                                   .infer = infer_scaled,  .lower = lower_scaled};

static lop_status infer_top(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0];
    if (a->core != 2 || lop_rows(a) < lop_cols(a))
        return lop_fail(err, LOP_DIM, "top_square takes a matrix that is no wider than high");
    n->shape = a->shape;
    n->shape.dim[n->shape.ndim - 2] = lop_cols(a);
    n->core = 2;
    n->dtype = a->dtype;
    n->weak = a->weak;
    return LOP_OK;
}
static lop_status run_top(const lop_call *c) {
    const lop_mat *y = c->a[0], *a = c->a[1];
    const lop_mat x = {a->p, y->m, y->n, a->rs, a->cs, a->dt};
    lopk_copy(y, &x);
    return LOP_OK;
}
static lop_status lower_top(lop_emit *e, const lop_node *self, int out) {
    const int in = lop_emit_value(e, self->child[0]);
    if (lop_emit_part(e, out, in, 0, 0)) return LOP_OK;
    lop_step *s = lop_emit_step(e, "top-square", run_top, out, 1, &in);
    if (!s) return LOP_NOMEM;
    s->bytes = 2 * lop_slot_elements(e, out) * (double)lop_dtype_size(self->dtype);
    lop_emit_seen(e, out, in, 0, 0);
    return LOP_OK;
}
const lop_op lop_op_top_square = {LOP_NAMED(top_square), .cls = LOP_ARRAY,  .min = 1, .max = 1,
                                  .infer = infer_top,    .lower = lower_top};

/* gemm_triangle: R^H T for R and T of one shape, where that is known to be Hermitian: T = M R. */
static lop_status infer_halfgemm(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0], *b = n->child[1];
    if (a->core != 2 || b->core != 2 || lop_rows(a) != lop_rows(b) || lop_cols(a) != lop_cols(b))
        return lop_fail(err, LOP_DIM, "gemm_triangle takes two matrices of one shape");
    lop_status st = lop_shape_batch(&a->shape, 2, &b->shape, 2, &n->shape, err);
    if (st != LOP_OK) return st;
    n->shape.dim[n->shape.ndim++] = lop_cols(a);
    n->shape.dim[n->shape.ndim++] = lop_cols(a);
    lop_node_promote(n, a, b);
    return lop_is_blas(n->dtype) ? LOP_OK : lop_fail(err, LOP_DTYPE, "gemm_triangle takes floats");
}
static lop_status run_halfgemm(const lop_call *c) {
    lopk_gemm_half(c->a[0], c->a[1], true, c->a[2]);
    return LOP_OK;
}
static lop_status lower_halfgemm(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    int in[2];
    for (int i = 0; i < 2; i++) {
        in[i] = lop_emit_cast(e, lop_emit_value(e, self->child[i]), self->dtype, &st);
        if (in[i] < 0) return st;
    }
    int64_t k, n, batch;
    lop_slot_sizes(e, in[0], &k, &n, NULL);
    lop_slot_sizes(e, out, NULL, NULL, &batch);
    lop_step *s = lop_emit_step(e, "gemm-half", run_halfgemm, out, 2, in);
    if (!s) return LOP_NOMEM;
    s->flags = LOP_STEP_GEMM;
    s->flops = 1.2 * (double)n * (double)n * (double)k * (double)batch;
    return LOP_OK;
}
const lop_op lop_op_gemm_triangle = {
    LOP_NAMED(gemm_triangle), .cls = LOP_ARRAY,       .min = 2, .max = 2,
    .infer = infer_halfgemm,  .lower = lower_halfgemm};

/* matvec_row: row (attr.i[0] 0) or column (1) number attr.i[1] of a matrix, still a matrix. */
static lop_status infer_line(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0];
    bool column = n->attr.i[0] != 0;
    if (a->core != 2 || n->attr.i[1] < 0 || n->attr.i[1] >= (column ? lop_cols(a) : lop_rows(a)))
        return lop_fail(err, LOP_INDEX, "matvec_row takes a matrix and a line inside");
    n->shape = a->shape;
    n->shape.dim[n->shape.ndim - (column ? 1 : 2)] = 1;
    n->dtype = a->dtype;
    n->weak = a->weak;
    return LOP_OK;
}
static lop_status run_line(const lop_call *c) {
    const lop_mat *y = c->a[0], *a = c->a[1];
    const int64_t *at = c->step->attr.i, off = at[1] * (at[0] ? a->cs : a->rs);
    const lop_mat x = {
        (char *)a->p + off * (int64_t)lop_dtype_size(a->dt), y->m, y->n, a->rs, a->cs, a->dt};
    lopk_copy(y, &x);
    return LOP_OK;
}
static lop_status lower_line(lop_emit *e, const lop_node *self, int out) {
    int in = lop_emit_value(e, self->child[0]);
    const int64_t *at = self->attr.i;
    if (!at[0] && lop_emit_part(e, out, in, at[1], 0)) return LOP_OK;
    lop_step *s = lop_emit_step(e, at[0] ? "column" : "row", run_line, out, 1, &in);
    if (!s) return LOP_NOMEM;
    int64_t m, n, batch;
    lop_slot_sizes(e, out, &m, &n, &batch);
    s->attr = self->attr;
    s->bytes = 2 * (double)m * (double)n * (double)batch * (double)lop_dtype_size(self->dtype);
    lop_emit_seen(e, out, in, at[0] ? 0 : at[1], at[0] ? at[1] : 0);
    return LOP_OK;
}
const lop_op lop_op_matvec_row = {
    LOP_NAMED(matvec_row), .cls = LOP_ARRAY,   .min = 1, .max = 1, .ints = 2,
    .infer = infer_line,   .lower = lower_line};
