/* op_run_values.c: vectors that are constant in runs, or repeat themselves.
 *
 *   run_values   of a real vector d attr.i[3] numbers, attr.i[2] apart from the first on, where d
 *                shows no others: it is constant in runs of attr.i[2] or, with attr.i[2] of 1,
 *                repeats its first attr.i[3]. Else, NaN among them, the branch is left. Exact.
 *                attr as array_slice's.
 *   where_runs   children v, value, alt: what is made of such v, and the safer way; v is made
 *                first, so that nothing is in vain where there is none.
 *
 * Cost: one pass over d. */
#include "expr/op.h"
#include "ops/shared/factor.h"
#include "kernels/common/kernels.h"

static lop_status infer_values(lop_node *n, lop_err *err) {
    const lop_node *d = n->child[0];
    const int64_t step = n->attr.i[2], count = n->attr.i[3];
    const bool fits = d->core == 1 && d->shape.ndim == 1 && !d->weak && n->attr.i[0] == 0 &&
                      n->attr.i[1] == 0 && (d->dtype == LOP_f32 || d->dtype == LOP_f64) &&
                      step >= 1 && count >= 1;
    if (!fits || lop_cols(d) % count != 0 || (step != 1 && lop_cols(d) / count != step))
        return lop_fail(err, LOP_DIM, "run_values: the vector has other sizes");
    n->shape = (lop_shape){.ndim = 1, .dim = {count}};
    n->core = 1;
    n->dtype = d->dtype;
    return LOP_OK;
}
static double number_at(const lop_mat *v, int64_t i) {
    return v->dt == LOP_f32 ? (double)((const float *)v->p)[i * v->rs]
                            : ((const double *)v->p)[i * v->rs];
}
static lop_status run_values(const lop_call *c) {
    const lop_mat *d = c->a[1];
    const int64_t step = c->step->attr.i[2], count = c->step->attr.i[3];
    for (int64_t i = 0; i < d->m; i++) {
        const int64_t own = step == 1 ? i % count : i - i % step;
        if (!(number_at(d, i) == number_at(d, own))) return LOP_SINGULAR;
    }
    const lop_mat few = {d->p, count, 1, d->rs * step, d->cs, d->dt};
    lopk_copy(c->a[0], &few);
    return LOP_OK;
}
static lop_status lower_values(lop_emit *e, const lop_node *self, int out) {
    const int in = lop_emit_value(e, self->child[0]);
    lop_step *s = lop_emit_step(e, "run-values", run_values, out, 1, &in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    return LOP_OK;
}
const lop_op lop_op_run_values = {
    LOP_NAMED(run_values), .cls = LOP_ARRAY,     .min = 1, .max = 1, .ints = 4,
    .infer = infer_values, .lower = lower_values};

static lop_status infer_where(lop_node *n, lop_err *err) {
    const lop_node *value = n->child[1], *alt = n->child[2];
    if (value->core != alt->core || value->dtype != alt->dtype || value->weak != alt->weak ||
        !lop_shape_equal(&value->shape, &alt->shape))
        return lop_fail(err, LOP_DIM, "the branches of where_runs differ");
    n->shape = alt->shape;
    n->core = alt->core;
    n->dtype = alt->dtype;
    n->weak = alt->weak;
    return LOP_OK;
}
static lop_status run_accept(const lop_call *c) {
    lopk_copy(c->a[0], c->a[1]);
    return LOP_OK;
}
static lop_status check_where(lop_emit *e, const lop_node *self, int value, int mask) {
    const int in = lop_emit_value(e, self->child[1]);
    lop_step *s = lop_emit_step(e, "accept", run_accept, value, 1, &in);
    if (!s) return LOP_NOMEM;
    s->fail = mask;
    s->flags = LOP_STEP_QUIET;
    return LOP_OK;
}
const lop_op lop_op_where_runs = {
    LOP_NAMED(where_runs),   .cls = LOP_ARRAY,    .min = 3, .max = 3, .infer = infer_where,
    .lower = lop_lower_arms, .check = check_where};
