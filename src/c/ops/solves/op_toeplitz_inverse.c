/* op_toeplitz_inverse.c: the whole inverse of a Toeplitz or Hankel matrix in n^2 steps.
 *
 *   toeplitz_inverse  children x, y, c, r, alt: T^-1 by its first and last columns x and y, where a
 *                     product with it shows a residual that is small (k_toeplitz_inverse.c); else
 *                     alt, the dense way. attr.i[0]: a Hankel matrix's h stands for c and r;
 *                     attr.i[1]: r is the adjoint of c by how they are written, but for c[0]. */
#include "expr/op.h"
#include "kernels/toeplitz/k_toeplitz_inverse.h"
#include "ops/shared/factor.h"

static lop_status infer_inverse(lop_node *n, lop_err *err) {
    const lop_node *x = n->child[0], *y = n->child[1], *alt = n->child[4];
    if (x->core != 2 || lop_cols(x) != 1 || lop_rows(x) < 1 || !lop_is_blas(x->dtype) || x->weak ||
        y->core != 2 || y->dtype != x->dtype || y->weak || !lop_shape_equal(&x->shape, &y->shape))
        return lop_fail(err, LOP_DIM, "%s takes columns alike", n->op->name);
    const int64_t size = lop_rows(x), numbers = n->attr.i[0] ? lop_cols(n->child[2]) : size;
    for (int i = 2; i < 4; i++) {
        const lop_node *c = n->child[i];
        if (c->core != 1 || c->op->cls != LOP_ARRAY || c->dtype >= LOP_NDTYPE ||
            lop_cols(c) != numbers || (lop_is_complex(c->dtype) && !lop_is_complex(x->dtype)))
            return lop_fail(err, LOP_DIM, "%s takes the numbers of a matrix", n->op->name);
    }
    n->shape = x->shape;
    n->shape.dim[n->shape.ndim - 1] = size;
    n->core = 2;
    n->dtype = x->dtype;
    if (alt->core != 2 || alt->dtype != n->dtype || !lop_shape_equal(&alt->shape, &n->shape))
        return lop_fail(err, LOP_DIM, "the arms of %s differ", n->op->name);
    return LOP_OK;
}

static lop_status run_inverse(const lop_call *c) {
    const lopk_toep_inverse t = {.x = c->a[1],
                                 .y = c->a[2],
                                 .c = c->a[3],
                                 .r = c->a[4],
                                 .hankel = c->step->attr.i[0] != 0,
                                 .own = c->step->attr.i[1] != 0};
    return lopk_toep_inverse_fill(c->a[0], &t, c->scratch) ? LOP_OK : LOP_SINGULAR;
}
static lop_status check_inverse(lop_emit *e, const lop_node *self, int value, int mask) {
    int in[4];
    const size_t scratch = lopk_toep_inverse_scratch(lop_rows(self), self->dtype);
    if (!scratch) return lop_fail(lop_emit_err(e), LOP_OVERFLOW, NULL);
    for (int i = 0; i < 4; i++) in[i] = lop_emit_value(e, self->child[i]);
    lop_step *s = lop_emit_step(e, self->op->name, run_inverse, value, 4, in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->fail = mask;
    s->flags = LOP_STEP_QUIET;
    s->scratch = scratch;
    s->flops = (lop_is_complex(self->dtype) ? 32 : 8) * lop_slot_elements(e, value);
    return LOP_OK;
}
const lop_op lop_op_toeplitz_inverse = {LOP_NAMED(toeplitz_inverse),
                                        .cls = LOP_ARRAY,
                                        .min = 5,
                                        .max = 5,
                                        .ints = 2,
                                        .infer = infer_inverse,
                                        .lower = lop_lower_arms,
                                        .check = check_inverse};
