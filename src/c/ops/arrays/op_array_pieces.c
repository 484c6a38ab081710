/* op_array_pieces.c: arrays made from nothing or cut from others: unit matrices and vectors, one
 * element, a diagonal, the diagonal of a product, sums, the Kronecker product of arrays. Cost: one
 * pass over the result, or over the operands where it is smaller. */
#include "expr/op.h"
#include "kernels/common/kernels.h"

#include <stdlib.h>
#include <string.h>

static char *at(const lop_mat *a, int64_t i, int64_t j) {
    return (char *)a->p + (i * a->rs + j * a->cs) * (int64_t)lop_dtype_size(a->dt);
}

/* eye, unit: no children; shape and dtype as given. unit: attr.i[0] is the row of the one. */
static lop_status infer_eye(lop_node *n, lop_err *err) {
    return n->core == 2 && n->shape.ndim >= 2 && !n->weak
               ? LOP_OK
               : lop_fail(err, LOP_DIM, "%s is a matrix", n->op->name);
}
static lop_status run_eye(const lop_call *c) {
    const lop_mat *y = c->a[0];
    lopk_zero(y);
    bool unit = c->step->attr.i[1] != 0;
    if (unit) {
        lop_set(y->dt, at(y, c->step->attr.i[0], 0), 0, 1);
        return LOP_OK;
    }
    for (int64_t i = 0; i < y->m && i < y->n; i++) lop_set(y->dt, at(y, i, i), 0, 1);
    return LOP_OK;
}
static lop_status infer_unit(lop_node *n, lop_err *err) {
    if (n->shape.ndim != 2 || n->core != 2 || n->weak || n->attr.i[0] < 0 ||
        n->attr.i[0] >= n->shape.dim[0] || n->shape.dim[1] != 1)
        return lop_fail(err, LOP_DIM, "a unit vector is n x 1 with its one inside");
    return LOP_OK;
}
static lop_status lower_eye(lop_emit *e, const lop_node *self, int out) {
    lop_step *s = lop_emit_step(e, self->op->name, run_eye, out, 0, NULL);
    if (!s) return LOP_NOMEM;
    s->attr.i[0] = self->attr.i[0];
    s->attr.i[1] = self->op == &lop_op_unit;
    return LOP_OK;
}
const lop_op lop_op_eye = {LOP_NAMED(eye), .cls = LOP_ARRAY, .infer = infer_eye,
                           .lower = lower_eye};
const lop_op lop_op_unit = {LOP_NAMED(unit), .cls = LOP_ARRAY, .ints = 1, .infer = infer_unit,
                            .lower = lower_eye};

/* ones: a vector or a matrix, no children. */
static lop_status infer_ones(lop_node *n, lop_err *err) {
    return n->core == 1 || n->core == 2 ? LOP_OK
                                        : lop_fail(err, LOP_DIM, "ones is a vector or a matrix");
}
static lop_status run_ones(const lop_call *c) {
    double one = 1;
    lop_mat from = {&one, c->a[0]->m, c->a[0]->n, 0, 0, LOP_f64};
    lopk_copy(c->a[0], &from);
    return LOP_OK;
}
static lop_status lower_ones(lop_emit *e, const lop_node *self, int out) {
    (void)self;
    return lop_emit_step(e, "ones", run_ones, out, 0, NULL) ? LOP_OK : LOP_NOMEM;
}
const lop_op lop_op_ones = {LOP_NAMED(ones), .cls = LOP_ARRAY, .infer = infer_ones,
                            .lower = lower_ones};

/* repeat: a number attr.i[0] times, as a vector. */
static lop_status infer_repeat(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0];
    if (a->core != 0 || a->op->cls == LOP_OPERATOR || n->attr.i[0] < 0)
        return lop_fail(err, LOP_DIM, "repeat takes a number and how often");
    n->shape = a->shape;
    n->shape.dim[n->shape.ndim++] = n->attr.i[0];
    n->core = 1;
    n->dtype = a->dtype;
    n->weak = a->weak;
    return LOP_OK;
}
static lop_status run_repeat(const lop_call *c) {
    const lop_mat from = {c->a[1]->p, c->a[0]->m, c->a[0]->n, 0, 0, c->a[1]->dt};
    lopk_copy(c->a[0], &from);
    return LOP_OK;
}
static lop_status lower_repeat(lop_emit *e, const lop_node *self, int out) {
    const int in = lop_emit_value(e, self->child[0]);
    return lop_emit_step(e, "repeat", run_repeat, out, 1, &in) ? LOP_OK : LOP_NOMEM;
}
const lop_op lop_op_repeat = {
    LOP_NAMED(repeat),     .cls = LOP_ARRAY,     .min = 1, .max = 1, .ints = 1,
    .infer = infer_repeat, .lower = lower_repeat};

/* What is left of a matrix's shape when core dimensions go; batch stays. */
static lop_status cut(lop_node *n, const lop_node *a, int core, int64_t length, lop_err *err) {
    if (a->core != 2) return lop_fail(err, LOP_DIM, "%s takes a matrix", n->op->name);
    n->shape = a->shape;
    n->shape.ndim = lop_nbatch(a) + core;
    if (core) n->shape.dim[n->shape.ndim - 1] = length;
    n->core = (uint8_t)core;
    n->dtype = a->dtype;
    n->weak = a->weak;
    return LOP_OK;
}

static lop_status emit1(lop_emit *e, const lop_node *self, int out, lop_run run) {
    int in = lop_emit_value(e, self->child[0]);
    lop_step *s = lop_emit_step(e, self->op->name, run, out, 1, &in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    if (self->op == &lop_op_sumall)
        s->flops = lop_slot_elements(e, in);
    else /* reads what it writes */
        s->bytes = 2 * lop_slot_elements(e, out) * (double)lop_dtype_size(self->dtype);
    return LOP_OK;
}

/* An element or a diagonal: of half a matrix where it lies in that half, or where its mirror does.
 */
static lop_status emit_read(lop_emit *e, const lop_node *self, int out, lop_run run) {
    const lop_node *half = lop_half_read(self);
    const int in = lop_emit_value(e, half ? half : self->child[0]);
    lop_step *s = lop_emit_step(e, self->op->name, run, out, 1, &in);
    if (!s) return LOP_NOMEM;
    const int64_t i = self->attr.i[0], j = self->attr.i[1];
    s->attr = self->attr;
    s->bytes = 2 * lop_slot_elements(e, out) * (double)lop_dtype_size(self->dtype);
    if (half && self->op == &lop_op_array_diagonal) s->attr.i[0] = i < 0 ? -i : i;
    if (half && self->op == &lop_op_array_element && i > j) {
        s->attr.i[0] = j;
        s->attr.i[1] = i;
    }
    return LOP_OK;
}

/* array_element: one element, attr.i[0], attr.i[1]. */
static lop_status infer_pick(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0];
    lop_status st = cut(n, a, 0, 0, err);
    if (st != LOP_OK) return st;
    if (n->attr.i[0] < 0 || n->attr.i[0] >= lop_rows(a) || n->attr.i[1] < 0 ||
        n->attr.i[1] >= lop_cols(a))
        return lop_fail(err, LOP_INDEX,
                        "index (%lld, %lld) is out of bounds for a %lld x %lld matrix",
                        (long long)n->attr.i[0], (long long)n->attr.i[1], (long long)lop_rows(a),
                        (long long)lop_cols(a));
    return LOP_OK;
}
static lop_status run_pick(const lop_call *c) {
    memcpy(c->a[0]->p, at(c->a[1], c->step->attr.i[0], c->step->attr.i[1]),
           lop_dtype_size(c->a[0]->dt));
    return LOP_OK;
}
static lop_status lower_pick(lop_emit *e, const lop_node *self, int out) {
    return emit_read(e, self, out, run_pick);
}
const lop_op lop_op_array_element = {
    LOP_NAMED(array_element), .cls = LOP_ARRAY,   .min = 1, .max = 1, .ints = 2,
    .infer = infer_pick,      .lower = lower_pick};

/* array_diagonal: the diagonal of a matrix, offset attr.i[0]. */
static lop_status infer_subdiag(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0];
    if (a->core != 2) return lop_fail(err, LOP_DIM, "array_diagonal takes a matrix");
    return cut(n, a, 1, lop_diag_length(lop_rows(a), lop_cols(a), n->attr.i[0]), err);
}
static lop_status run_subdiag(const lop_call *c) {
    const lop_mat *a = c->a[1];
    int64_t k = c->step->attr.i[0];
    if (c->a[0]->m == 0) return LOP_OK;
    lop_mat d = {at(a, k < 0 ? -k : 0, k > 0 ? k : 0), c->a[0]->m, 1, a->rs + a->cs, 1, a->dt};
    lopk_copy(c->a[0], &d);
    return LOP_OK;
}
static lop_status lower_subdiag(lop_emit *e, const lop_node *self, int out) {
    return emit_read(e, self, out, run_subdiag);
}
const lop_op lop_op_array_diagonal = {
    LOP_NAMED(array_diagonal), .cls = LOP_ARRAY,      .min = 1, .max = 1, .ints = 1,
    .infer = infer_subdiag,    .lower = lower_subdiag};

/* product_diagonal: the diagonal of A B without the product, offset attr.i[0]: sum_t A[i, t] B[t,
 * j]. attr.i[1], attr.i[2]: views of A and B (LOP_T, LOP_C), which are read where they lie.
 * attr.i[3]: nothing but its sum is asked for: that of B A, as good, where its lines are those of
 * the memory. */
static lop_status infer_pairdiag(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0], *b = n->child[1];
    if (a->core != 2 || b->core != 2)
        return lop_fail(err, LOP_DIM, "product_diagonal takes two matrices");
    const bool ta = (n->attr.i[1] & LOP_T) != 0, tb = (n->attr.i[2] & LOP_T) != 0;
    if ((ta ? lop_rows(a) : lop_cols(a)) != (tb ? lop_cols(b) : lop_rows(b)))
        return lop_fail(err, LOP_DIM, "product_diagonal takes A and B that multiply");
    lop_status st = lop_shape_batch(&a->shape, 2, &b->shape, 2, &n->shape, err);
    if (st != LOP_OK) return st;
    n->shape.dim[n->shape.ndim++] = lop_diag_length(ta ? lop_cols(a) : lop_rows(a),
                                                    tb ? lop_rows(b) : lop_cols(b), n->attr.i[0]);
    n->core = 1;
    lop_node_promote(n, a, b);
    return LOP_OK;
}
static lop_mat seen(const lop_mat *a, int64_t mode) {
    return mode & LOP_T ? (lop_mat){a->p, a->n, a->m, a->cs, a->rs, a->dt} : *a;
}
static lop_status run_pairdiag(const lop_call *c) {
    const int64_t *how = c->step->attr.i;
    const lop_mat *y = c->a[0], a = seen(c->a[1], how[1]), b = seen(c->a[2], how[2]);
    int64_t k = y->m ? how[0] : 0, i0 = k < 0 ? -k : 0, j0 = k > 0 ? k : 0;
    if (y->m == 0) return LOP_OK;
    if (how[3] && a.n == y->m && b.n == y->m && llabs(a.cs) > llabs(a.rs) &&
        llabs(b.rs) > llabs(b.cs)) {
        lopk_row_dots(y, &b, (how[2] & LOP_C) != 0, &a, (how[1] & LOP_C) != 0);
        return LOP_OK;
    }
    const lop_mat rows = {at(&a, i0, 0), y->m, a.n, a.rs, a.cs, a.dt},
                  cols = {at(&b, 0, j0), b.m, y->m, b.rs, b.cs, b.dt};
    lopk_row_dots(y, &rows, (how[1] & LOP_C) != 0, &cols, (how[2] & LOP_C) != 0);
    return LOP_OK;
}
static lop_status lower_pairdiag(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    int in[2];
    for (int i = 0; i < 2; i++) {
        in[i] = lop_emit_cast(e, lop_emit_value(e, self->child[i]), self->dtype, &st);
        if (in[i] < 0) return st;
    }
    lop_step *s = lop_emit_step(e, "product_diagonal", run_pairdiag, out, 2, in);
    if (!s) return LOP_NOMEM;
    const lop_node *a = self->child[0];
    double inner =
        (double)(self->attr.i[1] & LOP_T ? lop_rows(a)
                                         : lop_cols(a)); /* a row and a column for each element */
    s->flops = 2 * inner * lop_slot_elements(e, out);
    s->bytes = (2 * inner + 1) * lop_slot_elements(e, out) * (double)lop_dtype_size(self->dtype);
    s->attr = self->attr;
    return LOP_OK;
}
const lop_op lop_op_product_diagonal = {
    LOP_NAMED(product_diagonal), .cls = LOP_ARRAY,       .min = 2, .max = 2, .ints = 4,
    .infer = infer_pairdiag,     .lower = lower_pairdiag};

/* sumall: the sum over the core. */
static lop_status infer_sumall(lop_node *n, lop_err *err) {
    (void)err;
    const lop_node *a = n->child[0];
    n->shape = a->shape;
    n->shape.ndim = lop_nbatch(a);
    n->core = 0;
    n->dtype = a->dtype;
    n->weak = a->weak;
    return LOP_OK;
}
static lop_status run_sumall(const lop_call *c) {
    lopk_sum(c->a[0], c->a[1]);
    return LOP_OK;
}
static lop_status lower_sumall(lop_emit *e, const lop_node *self, int out) {
    return emit1(e, self, out, run_sumall);
}
const lop_op lop_op_sumall = {LOP_NAMED(sumall), .cls = LOP_ARRAY,      .min = 1,
                              .max = 1,          .infer = infer_sumall, .lower = lower_sumall};

/* kronarray: the Kronecker product of two arrays of one core rank (1 or 2). */
static lop_status infer_kron(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0], *b = n->child[1];
    if (a->core != b->core || a->core < 1)
        return lop_fail(err, LOP_DIM, "kronarray takes two vectors or two matrices");
    lop_status st = lop_shape_batch(&a->shape, a->core, &b->shape, b->core, &n->shape, err);
    for (int i = 0; st == LOP_OK && i < a->core; i++) {
        int64_t d;
        if (!lop_mul_ok(a->shape.dim[lop_nbatch(a) + i], b->shape.dim[lop_nbatch(b) + i], &d))
            return lop_fail(err, LOP_OVERFLOW, NULL);
        n->shape.dim[n->shape.ndim++] = d;
    }
    n->core = a->core;
    lop_node_promote(n, a, b);
    return st;
}
static lop_status run_kron(const lop_call *c) {
    const lop_mat *y = c->a[0], *a = c->a[1], *b = c->a[2];
    for (int64_t i = 0; i < a->m; i++)
        for (int64_t j = 0; j < a->n; j++) {
            lop_mat out = {at(y, i * b->m, j * b->n), b->m, b->n, y->rs, y->cs, y->dt};
            lop_mat one = {at(a, i, j), 1, 1, 1, 1, a->dt};
            lopk_mul(&out, &one, b);
        }
    return LOP_OK;
}
static lop_status lower_kron(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    int in[2];
    for (int i = 0; i < 2; i++) {
        in[i] = lop_emit_cast(e, lop_emit_value(e, self->child[i]), self->dtype, &st);
        if (in[i] < 0) return st;
    }
    lop_step *s = lop_emit_step(e, "kronarray", run_kron, out, 2, in);
    if (!s) return LOP_NOMEM;
    s->flops = lop_slot_elements(e, out);
    return LOP_OK;
}
const lop_op lop_op_kronarray = {LOP_NAMED(kronarray), .cls = LOP_ARRAY,   .min = 2, .max = 2,
                                 .infer = infer_kron,  .lower = lower_kron};
