/* op_add_multiple_of_eye.c: a + c I in one pass, or in none where `a` is no longer needed.
 *
 * shift   child a, n x n; the coefficient. Cost: n additions beside the copy. */
#include "expr/op.h"
#include "kernels/common/kernels.h"

#include <complex.h>

static lop_status infer_shift(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0];
    if (a->core != 2 || lop_rows(a) != lop_cols(a) || !lop_is_blas(a->dtype))
        return lop_fail(err, LOP_DIM, "shift takes a square matrix of floats");
    if (n->attr.im != 0 && !lop_is_complex(a->dtype))
        return lop_fail(err, LOP_DTYPE, "a real matrix is not shifted by a complex number");
    n->shape = a->shape;
    n->dtype = a->dtype;
    n->weak = a->weak;
    return LOP_OK;
}

static lop_status run_shift(const lop_call *c) {
    const lop_mat *y = c->a[0];
    double _Complex by = CMPLX(c->step->attr.re, c->step->attr.im);
    if (c->a[1]->p != y->p) lopk_copy(y, c->a[1]);
    for (int64_t i = 0; i < y->m; i++) {
        int64_t at = i * (y->rs + y->cs);
        lop_set(y->dt, y->p, at, lop_get(y->dt, y->p, at) + by);
    }
    return LOP_OK;
}

static lop_status lower_shift(lop_emit *e, const lop_node *self, int out) {
    int in = lop_emit_value(e, self->child[0]);
    lop_step *s = lop_emit_step(e, "shift", run_shift, out, 1, &in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->flags = LOP_STEP_INPLACE;
    s->flops = (double)lop_rows(self);
    return LOP_OK;
}

const lop_op lop_op_shift = {
    LOP_NAMED(shift),     .cls = LOP_ARRAY,    .min = 1, .max = 1, .coef = true, .ints = 0,
    .infer = infer_shift, .lower = lower_shift};
