/* op_levels.c: parameters of several levels.
 *
 * sizes  the sizes of a kind's levels: a shape and nothing else; no memory, no steps
 * ravel  the last attr.i[0] dimensions of an array as one, in C order; no copy where it lies so;
 *        of a matrix both
 *
 * With them a parameter of any number of dimensions is a vector to rules and kernels. */
#include "ops/shared/convolution.h"

static lop_status infer_sizes(lop_node *n, lop_err *err) {
    int64_t all;
    if (n->core != 0 || n->shape.ndim < 1 || n->shape.ndim > LOPK_LEVELS || n->weak != LOP_WEAK)
        return lop_fail(err, LOP_DIM, "expected 1 to %d sizes, got %d", LOPK_LEVELS, n->shape.ndim);
    return lop_shape_count(&n->shape, &all, err);
}
static lop_status lower_sizes(lop_emit *e, const lop_node *self, int out) {
    (void)e;
    (void)self;
    (void)out;
    return LOP_OK;
}
const lop_op lop_op_sizes = {LOP_NAMED(sizes), .cls = LOP_ARRAY, .infer = infer_sizes,
                             .lower = lower_sizes};

static lop_status infer_ravel(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0];
    int64_t levels = n->attr.i[0], all = 1;
    if ((a->core != 0 && a->core != levels) || levels < 1 || levels > a->shape.ndim)
        return lop_fail(err, LOP_DIM, "an array of %d dimensions has no %lld levels", a->shape.ndim,
                        (long long)levels);
    n->shape = a->shape;
    n->shape.ndim = a->shape.ndim - (int)levels + 1;
    for (int i = n->shape.ndim - 1; i < a->shape.ndim; i++)
        if (!lop_mul_ok(all, a->shape.dim[i], &all)) return lop_fail(err, LOP_OVERFLOW, NULL);
    n->shape.dim[n->shape.ndim - 1] = all;
    n->core = 1;
    n->dtype = a->dtype;
    n->weak = a->weak;
    return LOP_OK;
}
static lop_status run_ravel(const lop_call *c) {
    const lop_mat x = {c->a[1]->p, c->a[0]->m, 1, 1, 1, c->a[1]->dt};
    lopk_copy(c->a[0], &x);
    return LOP_OK;
}
static lop_status lower_ravel(lop_emit *e, const lop_node *self, int out) {
    int in = lop_emit_value(e, self->child[0]);
    if (lop_emit_alias(e, out, in)) return LOP_OK;
    /* into the result: another name first, then a copy */
    lop_status st;
    int seen = lop_emit_temp(e, self->dtype, 1, &self->shape, &st);
    if (seen < 0) return st;
    if (!lop_emit_alias(e, seen, in)) return lop_fail(lop_emit_err(e), LOP_INTERNAL, "ravel");
    return lop_emit_step(e, "copy", run_ravel, out, 1, &seen) ? LOP_OK : LOP_NOMEM;
}
const lop_op lop_op_ravel = {
    LOP_NAMED(ravel),     .cls = LOP_ARRAY,    .min = 1, .max = 1, .ints = 1,
    .infer = infer_ravel, .lower = lower_ravel};
