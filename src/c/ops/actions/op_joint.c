/* op_joint.c: several results of one plan.
 *
 *   joint        children a, b, operators of one dtype (a may itself be a joint): a column that
 *                holds their elements one after the other, row by row. It has a dense form only:
 *                the parts are planned together, and shared parts are computed once.
 *   joint_array  the same for arrays: children are computed in place, unless something else has
 *                placed them. */
#include "expr/op.h"
#include "kernels/common/kernels.h"

static lop_status infer_column(lop_node *n, lop_err *err) {
    int64_t total = 0, size;
    const lop_node *first = n->child[0];
    for (int i = 0; i < n->n; i++) {
        const lop_node *a = n->child[i];
        if (a->core != 2 || lop_nbatch(a) > 0 || a->dtype != first->dtype || a->weak)
            return lop_fail(err, LOP_DIM, "%s takes matrices of one dtype, without batches",
                            n->op->name);
        if (!lop_mul_ok(lop_rows(a), lop_cols(a), &size) || !lop_add_ok(total, size, &total))
            return lop_fail(err, LOP_OVERFLOW, NULL);
    }
    n->shape = (lop_shape){.ndim = 2, .dim = {total, 1}};
    n->dtype = first->dtype;
    return LOP_OK;
}

static lop_status run_place(const lop_call *c) {
    const lop_mat *x = c->a[1];
    char *to = (char *)c->a[0]->p + c->step->attr.i[0] * (int64_t)lop_dtype_size(x->dt);
    const lop_mat y = {to, x->m, x->n, x->n, 1, x->dt};
    lopk_copy(&y, x);
    return LOP_OK;
}
static lop_status lower_pack(lop_emit *e, const lop_node *self, int out) {
    int64_t at = 0;
    lop_emit_c_order(e, out);
    for (int i = 0; i < self->n; i++) {
        const lop_node *a = self->child[i];
        int in = lop_emit_value(e, a);
        if (!lop_emit_window(e, in, out, at)) {
            lop_step *s = lop_emit_step(e, "place", run_place, out, 1, &in);
            if (!s) return LOP_NOMEM;
            s->attr.i[0] = at;
            s->flags = LOP_STEP_PLACES;
        }
        at += lop_rows(a) * lop_cols(a);
    }
    return LOP_OK;
}

/* By the rule dense-several alone. */
static lop_status dense(lop_emit *e, const lop_node *self, int out) {
    (void)e;
    (void)self;
    (void)out;
    return LOP_UNABLE;
}
const lop_op lop_op_joint = {LOP_NAMED(joint), .cls = LOP_OPERATOR,   .min = 2,
                             .max = 2,         .infer = infer_column, .dense = dense};
const lop_op lop_op_joint_array = {LOP_NAMED(joint_array), .cls = LOP_ARRAY,   .min = 1, .max = -1,
                                   .infer = infer_column,  .lower = lower_pack};
