/* op_krondiag.c: a diagonal of A (x) B from the parts of A and B, for the rule diagonal-kron-off.
 *
 *   kron_diag_scatter  B is n x n; with k = d n + r, 0 <= r < n, element (i, i + k) in row
 *                      i = a n + b is A[a, a + d] B[b, b + r] where b < n - r, and
 *                      A[a, a + d + 1] B[b, b + r - n] elsewhere: four diagonals (children, in this
 *                      order). attr.i = k, n, length. Cost: length products.
 *   kron_diag_gather   no factor is square: element (x / s mod m, y / t mod n) of one dense factor,
 *                      where x and y run down diagonal k. attr.i = k, s, t, length. */
#include "expr/op.h"
#include "kernels/common/kernels.h"

#include <string.h>

static int64_t low(int64_t k) { return k < 0 ? -k : 0; } /* the first row of diagonal k */

static bool fits(const lop_attr *a, int64_t length) {
    int64_t end;
    return a->i[0] > -INT64_MAX && length >= 0 && lop_add_ok(low(a->i[0]), length, &end);
}

static int64_t length_of(const lop_node *v) { return v->shape.dim[v->shape.ndim - 1]; }

/* Are rows `first` to `last` of A on its diagonal d of that many elements? */
static bool has(int64_t first, int64_t last, int64_t d, int64_t length) {
    return first > last || (first >= low(d) && last - low(d) < length);
}

static lop_status infer_weave(lop_node *self, lop_err *err) {
    const lop_attr *at = &self->attr;
    int64_t k = at->i[0], n = at->i[1], length = at->i[2];
    lop_status st = LOP_OK;
    self->shape.ndim = 0;
    for (int i = 0; i < 4; i++)
        if (self->child[i]->core != 1)
            return lop_fail(err, LOP_DIM, "kron_diag_scatter takes vectors");
    if (n < 1 || !fits(at, length))
        return lop_fail(err, LOP_DIM, "kron_diag_scatter: no such diagonal");
    int64_t r = (k % n + n) % n, d = (k - r) / n;
    int64_t a0 = low(k) / n, a1 = (low(k) + length - 1) / n, b0 = low(k) % n,
            b1 = (low(k) + length - 1) % n;
    bool ok = length_of(self->child[1]) == n - r && length_of(self->child[3]) == r;
    if (length > 0)
        ok = ok && has(b0 < n - r ? a0 : a0 + 1, a1, d, length_of(self->child[0])) &&
             has(a0, b1 >= n - r ? a1 : a1 - 1, d + 1, length_of(self->child[2]));
    if (!ok) return lop_fail(err, LOP_DIM, "kron_diag_scatter does not fit its operands");
    for (int i = 0; st == LOP_OK && i < 4; i++) {
        lop_shape both;
        st = lop_shape_batch(&self->shape, 0, &self->child[i]->shape, 1, &both, err);
        if (st == LOP_OK) self->shape = both;
    }
    if (st != LOP_OK) return st;
    self->shape.dim[self->shape.ndim++] = length;
    self->core = 1;
    lop_node_promote(self, self->child[0], self->child[1]);
    return LOP_OK;
}

static lop_mat piece(const lop_mat *v, int64_t from, int64_t length) {
    return (lop_mat){
        (char *)v->p + from * v->rs * (int64_t)lop_dtype_size(v->dt), length, 1, v->rs, 1, v->dt};
}

static lop_status run_weave(const lop_call *c) {
    const lop_mat *y = c->a[0], *u = c->a[1], *p = c->a[2], *v = c->a[3], *q = c->a[4];
    int64_t k = c->step->attr.i[0], n = c->step->attr.i[1], r = (k % n + n) % n, d = (k - r) / n;
    for (int64_t at = 0; at < y->m;) {
        int64_t i = low(k) + at, a = i / n, b = i % n;
        bool first = b < n - r;
        int64_t end = first ? n - r : n, left = y->m - at, run = end - b < left ? end - b : left;
        lop_mat out = piece(y, at, run),
                one = first ? piece(u, a - low(d), 1) : piece(v, a - low(d + 1), 1),
                row = first ? piece(p, b, run) : piece(q, b - (n - r), run);
        lopk_mul(&out, &one, &row);
        at += run;
    }
    return LOP_OK;
}

static lop_status lower_weave(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    int in[4];
    for (int i = 0; i < 4; i++) {
        in[i] = lop_emit_cast(e, lop_emit_value(e, self->child[i]), self->dtype, &st);
        if (in[i] < 0) return st;
    }
    lop_step *s = lop_emit_step(e, "kron_diag_scatter", run_weave, out, 4, in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->flops = lop_slot_elements(e, out);
    return LOP_OK;
}

const lop_op lop_op_kron_diag_scatter = {
    LOP_NAMED(kron_diag_scatter), .cls = LOP_ARRAY,    .min = 4, .max = 4, .ints = 3,
    .infer = infer_weave,         .lower = lower_weave};

static lop_status infer_comb(lop_node *self, lop_err *err) {
    const lop_node *f = self->child[0];
    const int64_t *at = self->attr.i;
    if (f->core != 2) return lop_fail(err, LOP_DIM, "kron_diag_gather takes a matrix");
    if (at[1] < 1 || at[2] < 1 || !fits(&self->attr, at[3]) || at[0] > INT64_MAX - at[3] ||
        (at[3] > 0 && (lop_rows(f) < 1 || lop_cols(f) < 1)))
        return lop_fail(err, LOP_DIM, "kron_diag_gather: no such diagonal");
    self->shape = f->shape;
    self->shape.ndim = lop_nbatch(f);
    self->shape.dim[self->shape.ndim++] = at[3];
    self->core = 1;
    self->dtype = f->dtype;
    self->weak = f->weak;
    return LOP_OK;
}

static lop_status run_comb(const lop_call *c) {
    const lop_mat *y = c->a[0], *f = c->a[1];
    const int64_t *at = c->step->attr.i;
    size_t size = lop_dtype_size(y->dt);
    int64_t i0 = low(at[0]), j0 = i0 + at[0];
    for (int64_t x = 0; x < y->m; x++) {
        int64_t i = (i0 + x) / at[1] % f->m, j = (j0 + x) / at[2] % f->n;
        memcpy((char *)y->p + (size_t)(x * y->rs) * size,
               (const char *)f->p + (i * f->rs + j * f->cs) * (int64_t)size, size);
    }
    return LOP_OK;
}

static lop_status lower_comb(lop_emit *e, const lop_node *self, int out) {
    int in = lop_emit_value(e, self->child[0]);
    lop_step *s = lop_emit_step(e, "kron_diag_gather", run_comb, out, 1, &in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->bytes = 2 * lop_slot_elements(e, out) * (double)lop_dtype_size(self->dtype);
    return LOP_OK;
}

const lop_op lop_op_kron_diag_gather = {
    LOP_NAMED(kron_diag_gather), .cls = LOP_ARRAY,   .min = 1, .max = 1, .ints = 4,
    .infer = infer_comb,         .lower = lower_comb};
