/* op_results.c: the results of a program: any number of values of any shape and dtype, from one
 * plan.
 *
 *   results        children: an operator of which attr.i[0] asks: 0 the dense form, 1 a diagonal, 2
 *                  the trace, 3 an element, 4 the determinant (attr.i[1], attr.i[2] are that
 *                  action's attributes), and the results before it, if there are any. A column of
 *                  bytes that holds the values one after the other, each in C order. It has a dense
 *                  form only.
 *   results_array  the same for arrays: children are computed in place, or copied there.
 *
 * Values lie without gaps: whoever builds the column puts those of wide elements first, so that
 * each lies at a multiple of its element's size (DOMAIN if not). */
#include "expr/op.h"
#include "kernels/common/kernels.h"

lop_status lop_results_asked(const lop_node *self, const lop_node **out, lop_err *err) {
    static const lop_op *const ops[] = {&lop_op_todense, &lop_op_diagonal, &lop_op_trace,
                                        &lop_op_element, &lop_op_scaledet};
    const int64_t *i = self->attr.i;
    const lop_node *of = self->child[0];
    if (i[0] < 0 || i[0] >= (int64_t)(sizeof ops / sizeof *ops))
        return lop_fail(err, LOP_DOMAIN, "results: there is no action %lld", (long long)i[0]);
    if (of->op->cls != LOP_OPERATOR) return lop_fail(err, LOP_DIM, "results takes operators");
    const lop_attr a = {.i = {i[1], i[2], 0, (int64_t)of->dtype + 1}};
    return lop_node_make(self->ctx, ops[i[0]], &a, 1, &of, NULL, out, err);
}

/* Adds the bytes of an array's value to *total, which is where it begins. */
static lop_status add_bytes(const lop_node *a, int64_t *total, lop_err *err) {
    int64_t bytes = (int64_t)lop_dtype_size(a->dtype);
    if (bytes <= 0 || a->weak)
        return lop_fail(err, LOP_DTYPE, "results takes values of a dtype of their own");
    if (*total % bytes)
        return lop_fail(err, LOP_DOMAIN, "a result of %s begins at byte %lld",
                        lop_dtype_name(a->dtype), (long long)*total);
    for (int i = 0; i < a->shape.ndim; i++)
        if (!lop_mul_ok(bytes, a->shape.dim[i], &bytes)) return lop_fail(err, LOP_OVERFLOW, NULL);
    return lop_add_ok(*total, bytes, total) ? LOP_OK : lop_fail(err, LOP_OVERFLOW, NULL);
}

static void column_of_bytes(lop_node *n, int64_t total) {
    n->shape = (lop_shape){.ndim = 2, .dim = {total, 1}};
    n->dtype = LOP_u8;
}

static lop_status infer_results(lop_node *n, lop_err *err) {
    const lop_node *before = lop_results_before(n), *asked = NULL;
    int64_t total = before ? lop_rows(before) : 0;
    if (n->n > 1 && !before) return lop_fail(err, LOP_DIM, "results follow results");
    lop_status st = lop_results_asked(n, &asked, err);
    if (st != LOP_OK) return st;
    st = add_bytes(asked, &total, err);
    lop_node_unref(asked);
    column_of_bytes(n, total);
    return st;
}

/* By the rule dense-results alone. */
static lop_status dense(lop_emit *e, const lop_node *self, int out) {
    (void)e;
    (void)self;
    (void)out;
    return LOP_UNABLE;
}

static lop_status infer_array(lop_node *n, lop_err *err) {
    int64_t total = 0;
    for (int i = 0; i < n->n; i++) {
        lop_status st = add_bytes(n->child[i], &total, err);
        if (st != LOP_OK) return st;
    }
    column_of_bytes(n, total);
    return LOP_OK;
}

static lop_status lower_array(lop_emit *e, const lop_node *self, int out) {
    int64_t at = 0;
    lop_status st = LOP_OK;
    lop_emit_c_order(e, out);
    for (int i = 0; i < self->n; i++) {
        const lop_node *a = self->child[i];
        int64_t m, n, batch, bytes = (int64_t)lop_dtype_size(a->dtype);
        int in = lop_emit_value(e, a);
        lop_slot_sizes(e, in, &m, &n, &batch);
        if (!lop_emit_window(e, in, out, at / bytes)) {
            int copy = lop_emit_temp(e, a->dtype, a->core, &a->shape, &st);
            if (copy < 0) return st;
            if (!lop_emit_window(e, copy, out, at / bytes))
                return lop_fail(lop_emit_err(e), LOP_INTERNAL, "a result has no place");
            if (!lop_emit_copy(e, copy, in)) return LOP_NOMEM;
        }
        at += m * n * batch * bytes;
    }
    return LOP_OK;
}

const lop_op lop_op_results = {LOP_NAMED(results), .cls = LOP_OPERATOR,    .min = 1,      .max = 2,
                               .ints = 3,          .infer = infer_results, .dense = dense};
const lop_op lop_op_results_array = {
    LOP_NAMED(results_array), .cls = LOP_ARRAY,    .min = 1, .max = -1,
    .infer = infer_array,     .lower = lower_array};
