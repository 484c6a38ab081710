/* op_block_products.c: some blocks of a BlockDiag times the rows of x that they meet, one below the
 * other, in one step: a thousand small products as steps of their own take longer to begin than to
 * run, and copied into a batch longer to copy.
 *
 *   block_products  children x, A_1 to A_p, matrices without a batch: op(A_i) times the next rows
 * of x, op the mode attr.i[0]. Nothing is copied; the A_i may differ in shape. */
#include "kernels/dense/k_blas.h"
#include "expr/op.h"

static int64_t height(const lop_node *a, bool turned) { return turned ? lop_cols(a) : lop_rows(a); }

static lop_status infer_products(lop_node *n, lop_err *err) {
    const lop_node *x = n->child[0];
    const bool turned = (n->attr.i[0] & LOP_T) != 0;
    int64_t rows = 0, cols = 0;
    if (n->n > LOP_MAXARG - 1 || n->attr.i[0] < 0 || n->attr.i[0] > LOP_H)
        return lop_fail(err, LOP_DIM, "%s takes no more than %d matrices", n->op->name,
                        LOP_MAXARG - 2);
    for (int i = 0; i < n->n; i++) {
        const lop_node *a = n->child[i];
        if (a->core != 2 || a->shape.ndim != 2 || a->weak || a->dtype != x->dtype ||
            !lop_is_blas(a->dtype))
            return lop_fail(err, LOP_DIM, "%s takes matrices of floats of one dtype", n->op->name);
        if (i > 0 && (!lop_add_ok(rows, height(a, turned), &rows) ||
                      !lop_add_ok(cols, height(a, !turned), &cols)))
            return lop_fail(err, LOP_OVERFLOW, NULL);
    }
    if (cols != lop_rows(x)) return lop_fail(err, LOP_DIM, "%s do not fit", n->op->name);
    n->shape = (lop_shape){.ndim = 2, .dim = {rows, lop_cols(x)}};
    n->core = 2;
    n->dtype = x->dtype;
    return LOP_OK;
}

static lop_status run_products(const lop_call *c) {
    lop_mat y = *c->a[0], x = *c->a[1];
    const int64_t size = (int64_t)lop_dtype_size(y.dt), mode = c->step->attr.i[0];
    for (int j = 2; j < c->step->n; j++) {
        lop_mat a = *c->a[j];
        if (mode & LOP_T) a = (lop_mat){a.p, a.n, a.m, a.cs, a.rs, a.dt};
        y.m = a.m;
        x.m = a.n;
        if (y.m > 0) lopk_gemm(&y, &a, (mode & LOP_C) != 0, &x, false);
        if (j + 1 == c->step->n) break;
        y.p = (char *)y.p + a.m * y.rs * size;
        x.p = (char *)x.p + a.n * x.rs * size;
    }
    return LOP_OK;
}

static lop_status lower_products(lop_emit *e, const lop_node *self, int out) {
    int in[LOP_MAXARG - 1];
    double entries = 0;
    for (int i = 0; i < self->n; i++) {
        in[i] = lop_emit_value(e, self->child[i]);
        if (i > 0) entries += (double)lop_rows(self->child[i]) * (double)lop_cols(self->child[i]);
    }
    lop_step *s = lop_emit_step(e, "gemms", run_products, out, self->n, in);
    if (!s) return LOP_NOMEM;
    s->attr.i[0] = self->attr.i[0];
    s->flags = LOP_STEP_GEMM;
    s->flops = 2 * entries * (double)lop_cols(self);
    return LOP_OK;
}
const lop_op lop_op_block_products = {
    LOP_NAMED(block_products), .cls = LOP_ARRAY,       .min = 2, .max = -1, .ints = 1,
    .infer = infer_products,   .lower = lower_products};
