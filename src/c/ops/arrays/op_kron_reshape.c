/* op_kron_reshape.c: a matrix of N = L * n * R rows seen along its middle axis, for Kron.
 *
 *   kron_unfold  (..., L n R, k) -> (..., L, n, R k), without a copy; L is left out when L == 1
 *   kron_fold    the way back
 *   gather       (..., L n R, k) -> (..., n, L R k), a copy, for factors with batches of their own
 *   spread       the way back
 *
 * attr.i = L, n, R, k. */
#include "expr/op.h"
#include "kernels/common/kernels.h"

enum { FOLD, UNFOLD, GATHER, SPREAD };

static lop_status infer(lop_node *self, lop_err *err, int what) {
    const lop_node *x = self->child[0];
    const int64_t *a = self->attr.i;
    int64_t rows, cols, all;
    if (x->core != 2) return lop_fail(err, LOP_DIM, "%s takes a matrix", self->op->name);
    if (!lop_mul_ok(a[0], a[1], &rows) || !lop_mul_ok(rows, a[2], &rows) ||
        !lop_mul_ok(a[2], a[3], &cols) || !lop_mul_ok(a[0], cols, &all))
        return lop_fail(err, LOP_OVERFLOW, NULL);
    int nb = lop_nbatch(x);
    bool lead = a[0] != 1 && (what == FOLD || what == UNFOLD);
    lop_shape s = x->shape;
    s.ndim = what == UNFOLD && lead ? nb - 1 : nb;
    bool fits;
    if (what == FOLD || what == GATHER) {
        fits = lop_rows(x) == rows && lop_cols(x) == a[3];
        if (s.ndim + 2 + lead > LOP_MAXDIM)
            return lop_fail(err, LOP_DIM, "more than %d dimensions are needed on the way",
                            LOP_MAXDIM);
        if (lead) s.dim[s.ndim++] = a[0];
        s.dim[s.ndim++] = a[1];
        s.dim[s.ndim++] = what == FOLD ? cols : all;
    } else {
        fits = lop_rows(x) == a[1] && lop_cols(x) == (what == UNFOLD ? cols : all);
        if (lead) fits = fits && nb > 0 && x->shape.dim[nb - 1] == a[0];
        s.dim[s.ndim++] = rows;
        s.dim[s.ndim++] = a[3];
    }
    if (!fits) return lop_fail(err, LOP_DIM, "%s does not fit its operand", self->op->name);
    self->shape = s;
    self->dtype = x->dtype;
    self->weak = x->weak;
    return LOP_OK;
}

static lop_status infer_kron_unfold(lop_node *n, lop_err *err) { return infer(n, err, FOLD); }
static lop_status infer_kron_fold(lop_node *n, lop_err *err) { return infer(n, err, UNFOLD); }
static lop_status infer_gather(lop_node *n, lop_err *err) { return infer(n, err, GATHER); }
static lop_status infer_spread(lop_node *n, lop_err *err) { return infer(n, err, SPREAD); }

/* Row (l, i, r) of a, column j  <->  row i, column (l, r, j) of b. */
static void move(const lop_mat *a, const lop_mat *b, const int64_t *t, bool back) {
    int64_t L = t[0], n = t[1], R = t[2], k = t[3];
    size_t size = lop_dtype_size(a->dt);
    for (int64_t l = 0; l < L; l++)
        for (int64_t i = 0; i < n; i++) {
            lop_mat p = {
                (char *)a->p + (size_t)((l * n + i) * R * a->rs) * size, R, k, a->rs, a->cs, a->dt};
            lop_mat q = {(char *)b->p + (size_t)(i * b->rs + l * R * k * b->cs) * size,
                         R,
                         k,
                         k * b->cs,
                         b->cs,
                         b->dt};
            lopk_copy(back ? &p : &q, back ? &q : &p);
        }
}
static lop_status run_gather(const lop_call *c) {
    move(c->a[1], c->a[0], c->step->attr.i, false);
    return LOP_OK;
}
static lop_status run_spread(const lop_call *c) {
    move(c->a[0], c->a[1], c->step->attr.i, true);
    return LOP_OK;
}

static lop_status run_copy(const lop_call *c) {
    lopk_copy(c->a[0], c->a[1]);
    return LOP_OK;
}

static lop_status lower_alias(lop_emit *e, const lop_node *self, int out) {
    int in = lop_emit_value(e, self->child[0]);
    if (lop_emit_alias(e, out, in)) return LOP_OK;
    /* a leaf or a shared value straight into the result: copy it first, then alias the copy */
    lop_status st;
    const lop_node *x = self->child[0];
    int copy = lop_emit_temp(e, x->dtype, x->core, &x->shape, &st);
    if (copy < 0) return st;
    if (!lop_emit_step(e, "copy", run_copy, copy, 1, &in)) return LOP_NOMEM;
    return lop_emit_alias(e, out, copy)
               ? LOP_OK
               : lop_fail(lop_emit_err(e), LOP_INTERNAL, "kron_unfold of a fresh copy");
}
static lop_status lower_move(lop_emit *e, const lop_node *self, int out) {
    int in = lop_emit_value(e, self->child[0]);
    lop_step *s = lop_emit_step(e, self->op->name,
                                self->op == &lop_op_gather ? run_gather : run_spread, out, 1, &in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    return LOP_OK;
}

#define ROW(head, how)                                                                             \
    const lop_op lop_op_##head = {LOP_NAMED(head), .cls = LOP_ARRAY,      .min = 1,    .max = 1,   \
                                  .ints = 4,       .infer = infer_##head, .lower = how}
ROW(kron_unfold, lower_alias);
ROW(kron_fold, lower_alias);
ROW(gather, lower_move);
ROW(spread, lower_move);
