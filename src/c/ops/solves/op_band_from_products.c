/* op_band_from_products.c: the band of an operator whose band is known beforehand, from few
 * products.
 *
 * Columns w = l + u + 1 apart share no row of the band: with E[j, j mod w] = 1 the product A E
 * holds each element of the band once, with nothing added but structural zeros (Curtis, Powell and
 * Reid 1974). Cost: one product with w columns, and one pass.
 *
 * bandprobe  E, n x w; no children, shape and dtype as given
 * band_from_products   child A E, n x w; attr.i: l, u. w x n as scipy.linalg.solve_banded's ab */
#include "expr/op.h"
#include "kernels/common/kernels.h"

#include <string.h>

static lop_status infer_probe(lop_node *n, lop_err *err) {
    return n->core == 2 && n->shape.ndim == 2 && !n->weak && lop_cols(n) > 0
               ? LOP_OK
               : lop_fail(err, LOP_DIM, "bandprobe is a matrix");
}
static lop_status run_probe(const lop_call *c) {
    const lop_mat *y = c->a[0];
    const int64_t size = (int64_t)lop_dtype_size(y->dt);
    lopk_zero(y);
    for (int64_t j = 0, t = 0; j < y->m; j++, t = t + 1 < y->n ? t + 1 : 0)
        lop_set(y->dt, (char *)y->p + (j * y->rs + t * y->cs) * size, 0, 1);
    return LOP_OK;
}
static lop_status lower_probe(lop_emit *e, const lop_node *self, int out) {
    (void)self;
    return lop_emit_step(e, "bandprobe", run_probe, out, 0, NULL) ? LOP_OK : LOP_NOMEM;
}
const lop_op lop_op_bandprobe = {LOP_NAMED(bandprobe), .cls = LOP_ARRAY, .infer = infer_probe,
                                 .lower = lower_probe};

static lop_status infer_form(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0];
    const int64_t l = n->attr.i[0], u = n->attr.i[1];
    if (a->core != 2 || l < 0 || u < 0 || l > INT64_MAX / 4 || u > INT64_MAX / 4 ||
        lop_cols(a) != l + u + 1)
        return lop_fail(err, LOP_DIM, "band_from_products takes l + u + 1 columns");
    n->shape = a->shape;
    n->shape.dim[n->shape.ndim - 2] = lop_cols(a);
    n->shape.dim[n->shape.ndim - 1] = lop_rows(a);
    n->core = 2;
    n->dtype = a->dtype;
    return LOP_OK;
}
/* ab[u + i - j, j] = A[i, j], which stands in row i and column j mod w. */
#define FORM(T)                                                                                    \
    for (int64_t r = 0; r < w; r++) {                                                              \
        T *to = (T *)y->p + r * y->rs;                                                             \
        for (int64_t j = 0, t = 0; j < n; j++, t = t + 1 < w ? t + 1 : 0) {                        \
            const int64_t i = j + r - u;                                                           \
            to[j * y->cs] = i < 0 || i >= n ? 0 : ((const T *)a->p)[i * a->rs + t * a->cs];        \
        }                                                                                          \
    }
static lop_status run_form(const lop_call *c) {
    const lop_mat *y = c->a[0], *a = c->a[1];
    const int64_t u = c->step->attr.i[1], w = y->m, n = y->n;
    switch (y->dt) {
    case LOP_f32: FORM(float) break;
    case LOP_f64: FORM(double) break;
    case LOP_c64: FORM(float _Complex) break;
    case LOP_c128: FORM(double _Complex) break;
    default: return lop_fail(c->err, LOP_DTYPE, "band_from_products takes float32 to complex128");
    }
    return LOP_OK;
}
static lop_status lower_form(lop_emit *e, const lop_node *self, int out) {
    int in = lop_emit_value(e, self->child[0]);
    lop_step *s = lop_emit_step(e, "band_from_products", run_form, out, 1, &in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    return LOP_OK;
}
const lop_op lop_op_band_from_products = {
    LOP_NAMED(band_from_products), .cls = LOP_ARRAY,   .min = 1, .max = 1, .ints = 2,
    .infer = infer_form,           .lower = lower_form};
