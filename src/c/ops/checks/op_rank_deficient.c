/* op_rank_deficient.c: a solve with a matrix that is singular by how it is written, or a diagonal
 * or trace of its inverse. LU of it would divide by rounding errors.
 *
 *   rank_deficient  attr.i: the largest possible rank, the rows; no children, shape and dtype as
 *                   given. Computing it is a LinAlgError. */
#include "expr/op.h"

static lop_status infer_deficient(lop_node *n, lop_err *err) {
    return n->core <= 2 && n->shape.ndim >= n->core && !n->weak && n->attr.i[0] >= 0 &&
                   n->attr.i[0] < n->attr.i[1]
               ? LOP_OK
               : lop_fail(err, LOP_DIM, "rank_deficient is an array, its rank below the rows");
}
static lop_status run_deficient(const lop_call *c) {
    const int64_t *at = c->step->attr.i;
    return lop_fail(c->err, LOP_SINGULAR,
                    "Singular matrix: of rank at most %lld, of %lld rows, by how it is written",
                    (long long)at[0], (long long)at[1]);
}
static lop_status lower_deficient(lop_emit *e, const lop_node *self, int out) {
    lop_step *s = lop_emit_step(e, "rank_deficient", run_deficient, out, 0, NULL);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    return LOP_OK;
}
const lop_op lop_op_rank_deficient = {LOP_NAMED(rank_deficient), .cls = LOP_ARRAY, .ints = 2,
                                      .infer = infer_deficient, .lower = lower_deficient};
