/* op_band_join.c: diagonals side by side: the gradient of a band by its array.
 *
 *   band_join  the diagonals u, ..., -l of a matrix of n columns as columns of an array, the
 *              transpose of LAPACK's of bands; zeros where they do not reach */
#include "projections.h"
#include "kernels/common/kernels.h"

/* attr.i = l, u, rows of the matrix, its columns */

static lop_status infer_join(lop_node *n, lop_err *err) {
    const int64_t l = n->attr.i[0], u = n->attr.i[1];
    if (l < 0 || u < 0 || n->n != l + u + 1)
        return lop_fail(err, LOP_DIM, "band_join takes one vector a diagonal");
    for (int i = 0; i < n->n; i++)
        if (n->child[i]->op->cls == LOP_OPERATOR || n->child[i]->core != 1 ||
            n->child[i]->dtype != n->child[0]->dtype ||
            lop_cols(n->child[i]) != lop_diag_length(n->attr.i[2], n->attr.i[3], u - i))
            return lop_fail(err, LOP_DIM, "band_join: diagonals of other lengths");
    const lop_status st = lop_node_batches(n, 2, err);
    if (st != LOP_OK) return st;
    n->shape.dim[n->shape.ndim++] = n->attr.i[3];
    n->shape.dim[n->shape.ndim++] = n->n;
    n->core = 2;
    n->dtype = n->child[0]->dtype;
    n->weak = n->child[0]->weak;
    return LOP_OK;
}
static lop_status run_place(const lop_call *c) {
    const int64_t *at = c->step->attr.i;
    const lop_mat *out = c->a[0], *d = c->a[1];
    const int64_t from = at[0] * out->rs + at[1] * out->cs;
    const lop_mat to = {
        (char *)out->p + from * (int64_t)lop_dtype_size(out->dt), d->m, 1, out->rs, 0, out->dt};
    lopk_copy(&to, d);
    return LOP_OK;
}
static lop_status run_clear(const lop_call *c) {
    lopk_zero(c->a[0]);
    return LOP_OK;
}
static lop_status lower_join(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    if (!lop_emit_step(e, "zero", run_clear, out, 0, NULL)) return LOP_NOMEM;
    for (int i = 0; i < self->n; i++) {
        int in = lop_emit_cast(e, lop_emit_value(e, self->child[i]), self->dtype, &st);
        if (in < 0) return st;
        lop_step *s = lop_emit_step(e, "place", run_place, out, 1, &in);
        if (!s) return LOP_NOMEM;
        const int64_t k = self->attr.i[1] - i;
        s->attr.i[0] = k > 0 ? k : 0;
        s->attr.i[1] = i;
        s->flags = LOP_STEP_PLACES;
    }
    return LOP_OK;
}
const lop_op lop_op_band_join = {
    LOP_NAMED(band_join), .cls = LOP_ARRAY,   .min = 1, .max = -1, .ints = 4,
    .infer = infer_join,  .lower = lower_join};

const lop_node *lop_vjp_band(lop_vjp *v, const lop_node *g, int64_t l, int64_t u) {
    enum { MOST = 64 };
    const lop_node *d[MOST];
    const lop_attr attr = {.i = {l, u, lop_rows(g), lop_cols(g)}};
    if (l + u >= MOST) return lop_vjp_unable(v);
    for (int64_t i = 0; i <= l + u; i++) d[i] = lop_vjp_diagonal(v, g, u - i);
    const lop_attr turned = {.i = {LOP_T, 0, 0, 0}};
    const lop_node *all = lop_vjp_over(v, &lop_op_band_join, &attr, (int)(l + u + 1), d);
    return all ? lop_vjp_make(v, &lop_op_swap, &turned, all, NULL) : NULL;
}
