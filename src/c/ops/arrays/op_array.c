/* op_array.c: array leaves and element-wise expressions on arrays, of any core rank.
 *
 * Parameters of kinds are such expressions: Diag(d1) @ Diag(d2) is Diag(d1 * d2), not yet
 * multiplied. Cost: one pass over the operands each. */
#include "expr/op.h"
#include "kernels/dense/k_blas.h"
#include "kernels/common/kernels.h"

static lop_status infer_array(lop_node *n, lop_err *err) {
    return n->weak ? lop_fail(err, LOP_DTYPE, "an array has a dtype of its own") : LOP_OK;
}
const lop_op lop_op_array = {LOP_NAMED(array), .cls = LOP_ARRAY, .infer = infer_array};

/* Two arrays of one core, batches broadcast. */
static lop_status infer_pair(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0], *b = n->child[1];
    if (a->core != b->core)
        return lop_fail(err, LOP_DIM, "%s of a rank %d and a rank %d array", n->op->name, a->core,
                        b->core);
    lop_status st = lop_shape_batch(&a->shape, a->core, &b->shape, b->core, &n->shape, err);
    if (st != LOP_OK) return st;
    for (int i = 0; i < a->core; i++) {
        int64_t da = a->shape.dim[lop_nbatch(a) + i], db = b->shape.dim[lop_nbatch(b) + i];
        if (da != db) {
            char ta[128], tb[128];
            return lop_fail(err, LOP_DIM, "shapes %s and %s do not fit",
                            lop_shape_text(&a->shape, ta, sizeof ta),
                            lop_shape_text(&b->shape, tb, sizeof tb));
        }
        n->shape.dim[n->shape.ndim++] = da;
    }
    n->core = a->core;
    lop_node_promote(n, a, b);
    return LOP_OK;
}

static lop_status run_add(const lop_call *c) {
    lopk_add(c->a[0], c->a[1], c->a[2]);
    return LOP_OK;
}
static lop_status run_sub(const lop_call *c) {
    lopk_sub(c->a[0], c->a[1], c->a[2]);
    return LOP_OK;
}
static lop_status run_mul(const lop_call *c) {
    lopk_mul(c->a[0], c->a[1], c->a[2]);
    return LOP_OK;
}
/* By the elements of a diagonal; a zero among them is an error. */
static lop_status run_div(const lop_call *c) {
    const lop_mat *d = c->a[2], lies = {d->p, d->m, d->m, d->rs, 0, d->dt};
    const double ratio = lopk_vector_ratio(d);
    if (ratio == 0)
        return lop_fail(c->err, LOP_SINGULAR,
                        "Singular matrix: element %lld of the diagonal is exactly zero",
                        (long long)lopk_diag_has_zero(&lies));
    lop_call_near(c, ratio, lopk_eps(d->dt));
    lopk_div(c->a[0], c->a[1], c->a[2]);
    return LOP_OK;
}
static lop_status run_scale(const lop_call *c) {
    const lop_attr *a = &c->step->attr;
    lopk_scale(c->a[0], a->re + a->im * I, a->i[0], c->a[1]);
    return LOP_OK;
}
static lop_status run_conj(const lop_call *c) {
    lopk_conj(c->a[0], c->a[1]);
    return LOP_OK;
}

/* Emits run(out, cast(child 0), cast(child 1)). */
static lop_status lower_pair(lop_emit *e, const lop_node *self, int out, const char *name,
                             lop_run run, lop_step **step) {
    lop_status st;
    int in[2];
    for (int i = 0; i < 2; i++) {
        in[i] = lop_emit_cast(e, lop_emit_value(e, self->child[i]), self->dtype, &st);
        if (in[i] < 0) return st;
    }
    lop_step *s = *step = lop_emit_step(e, name, run, out, 2, in);
    if (!s) return LOP_NOMEM;
    s->flags = LOP_STEP_INPLACE;
    s->flops = lop_slot_elements(e, out);
    return LOP_OK;
}
static lop_status lower_add(lop_emit *e, const lop_node *self, int out) {
    lop_step *s;
    lop_status st = lower_pair(e, self, out, "add", run_add, &s);
    if (st != LOP_OK || !lop_is_blas(self->dtype)) return st;
    s->flags |= LOP_STEP_SUM;
    s->subs = run_sub;
    s->subs_name = "sub";
    return LOP_OK;
}
static lop_status lower_mul(lop_emit *e, const lop_node *self, int out) {
    lop_step *s;
    return lower_pair(e, self, out, "mul", run_mul, &s);
}

const lop_op lop_op_add = {LOP_NAMED(add), .cls = LOP_ARRAY,    .min = 2,
                           .max = 2,       .infer = infer_pair, .lower = lower_add};
const lop_op lop_op_mul = {LOP_NAMED(mul), .cls = LOP_ARRAY,    .min = 2,
                           .max = 2,       .infer = infer_pair, .lower = lower_mul};

/* div: rows of a matrix by a vector, (..., m, k) / (..., m): the solve with a diagonal. */
static lop_status infer_div(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0], *d = n->child[1];
    if (a->core != 2 || d->core != 1 || lop_rows(a) != lop_cols(d))
        return lop_fail(err, LOP_DIM, "div takes a matrix and a vector of as many rows");
    lop_status st = lop_shape_batch(&a->shape, 2, &d->shape, 1, &n->shape, err);
    if (st != LOP_OK) return st;
    n->shape.dim[n->shape.ndim++] = lop_rows(a);
    n->shape.dim[n->shape.ndim++] = lop_cols(a);
    lop_node_promote_inverse(n, d, a);
    return LOP_OK;
}
static lop_status lower_div(lop_emit *e, const lop_node *self, int out) {
    lop_step *s;
    return lower_pair(e, self, out, "div", run_div, &s);
}
const lop_op lop_op_div = {LOP_NAMED(div), .cls = LOP_ARRAY,   .min = 2,
                           .max = 2,       .infer = infer_div, .lower = lower_div};

static lop_status run_recip(const lop_call *c) {
    double _Complex one = 1;
    lop_mat ones = {&one, c->a[0]->m, c->a[0]->n, 0, 0, LOP_c128};
    lopk_copy(c->a[0], &ones);
    lop_call divide = *c;
    divide.a[1] = c->a[0];
    divide.a[2] = c->a[1];
    return run_div(&divide);
}

static lop_status infer_same(lop_node *n, lop_err *err) {
    (void)err;
    const lop_node *a = n->child[0];
    n->shape = a->shape;
    n->core = a->core;
    n->dtype = a->dtype;
    n->weak = a->weak;
    return LOP_OK;
}

/* recip: 1 / d of a vector; a zero is a singular diagonal. */
static lop_status infer_recip(lop_node *n, lop_err *err) {
    lop_status st = infer_same(n, err);
    if (n->core != 1) return lop_fail(err, LOP_DIM, "recip takes a vector");
    if (n->weak < LOP_WEAK_FLOAT) n->dtype = lop_promote_weak(LOP_WEAK_FLOAT, n->dtype);
    return st;
}
static lop_status lower_recip(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    int in = lop_emit_cast(e, lop_emit_value(e, self->child[0]), self->dtype, &st);
    if (in < 0) return st;
    lop_step *s = lop_emit_step(e, "recip", run_recip, out, 1, &in);
    if (!s) return LOP_NOMEM;
    s->flops = lop_slot_elements(e, out);
    return LOP_OK;
}
const lop_op lop_op_recip = {LOP_NAMED(recip), .cls = LOP_ARRAY,     .min = 1,
                             .max = 1,         .infer = infer_recip, .lower = lower_recip};

static lop_status infer_scale(lop_node *n, lop_err *err) {
    lop_status st = infer_same(n, err);
    lop_node_scale(n);
    return st;
}

static lop_status lower_one(lop_emit *e, const lop_node *self, int out, const char *name,
                            lop_run run) {
    lop_status st;
    int in = lop_emit_cast(e, lop_emit_value(e, self->child[0]), self->dtype, &st);
    if (in < 0) return st;
    lop_step *s = lop_emit_step(e, name, run, out, 1, &in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->flags = LOP_STEP_INPLACE;
    if (self->op == &lop_op_scale && lop_is_blas(self->dtype)) s->flags |= LOP_STEP_SCALES;
    s->flops = lop_slot_elements(e, out);
    return LOP_OK;
}
static lop_status lower_scale(lop_emit *e, const lop_node *self, int out) {
    return lower_one(e, self, out, "scale", run_scale);
}
static lop_status lower_conj(lop_emit *e, const lop_node *self, int out) {
    return lower_one(e, self, out, "conj", run_conj);
}

const lop_op lop_op_scale = {
    LOP_NAMED(scale),     .cls = LOP_ARRAY,    .min = 1, .max = 1, .coef = true,
    .infer = infer_scale, .lower = lower_scale};
const lop_op lop_op_conjugate = {LOP_NAMED(conjugate), .cls = LOP_ARRAY,   .min = 1, .max = 1,
                                 .infer = infer_same,  .lower = lower_conj};

/* cast: attr.i[3] is the dtype + 1. attr.i[0] 0: of a kind's parameter, the rules move it down to
 * the leaves, so that nothing on the way is rounded or wraps in a narrower dtype; 1: of a value as
 * it stands. */
static lop_status infer_cast(lop_node *n, lop_err *err) {
    lop_status st = infer_same(n, err);
    n->weak = LOP_STRONG;
    if (n->attr.i[3] < 1 || n->attr.i[3] > LOP_NDTYPE)
        return lop_fail(err, LOP_DTYPE, "cast to no dtype");
    n->dtype = (lop_dtype)(n->attr.i[3] - 1);
    return st;
}
static lop_status run_cast(const lop_call *c) {
    lopk_copy(c->a[0], c->a[1]);
    return LOP_OK;
}
static lop_status lower_cast(lop_emit *e, const lop_node *self, int out) {
    int in = lop_emit_value(e, self->child[0]);
    return lop_emit_step(e, "cast", run_cast, out, 1, &in) ? LOP_OK : LOP_NOMEM;
}
const lop_op lop_op_cast = {LOP_NAMED(cast), .cls = LOP_ARRAY,    .min = 1,           .max = 1,
                            .ints = 4,       .infer = infer_cast, .lower = lower_cast};

/* swap: a matrix seen through a mode (attr.i[0]: transposed, conjugated). */
static lop_status infer_swap(lop_node *n, lop_err *err) {
    lop_status st = infer_same(n, err);
    if (n->core != 2 || n->attr.i[0] < 0 || n->attr.i[0] > 3)
        return lop_fail(err, LOP_DIM, "swap takes a matrix and a mode");
    if (n->attr.i[0] & LOP_T) {
        int nb = lop_nbatch(n);
        n->shape.dim[nb] = lop_cols(n->child[0]);
        n->shape.dim[nb + 1] = lop_rows(n->child[0]);
    }
    return st;
}
static lop_status run_swap(const lop_call *c) {
    lop_mat x = *c->a[1];
    int64_t mode = c->step->attr.i[0];
    if (mode & LOP_T) x = (lop_mat){x.p, x.n, x.m, x.cs, x.rs, x.dt};
    if (mode & LOP_C)
        lopk_conj(c->a[0], &x);
    else
        lopk_copy(c->a[0], &x);
    return LOP_OK;
}
static lop_status lower_swap(lop_emit *e, const lop_node *self, int out) {
    int in = lop_emit_value(e, self->child[0]);
    lop_step *s = lop_emit_step(e, "swap", run_swap, out, 1, &in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    int64_t mode = self->attr.i[0];
    if ((mode & LOP_C) && lop_is_complex(self->dtype)) /* signs; else it only moves */
        s->flops = lop_slot_elements(e, out);
    if (mode == LOP_T || (mode == LOP_H && !lop_is_complex(self->dtype))) lop_emit_flip(e, out, in);
    return LOP_OK;
}
const lop_op lop_op_swap = {LOP_NAMED(swap), .cls = LOP_ARRAY,    .min = 1,           .max = 1,
                            .ints = 1,       .infer = infer_swap, .lower = lower_swap};
