/* op_band_between.c: diagonals of A^-1 X A^-1 of bands: what gradients of tr(A^-1), and second
 * derivatives of determinants, read.
 *
 * bandbetween    children a, x, alt: the arrays of two Banded of as many diagonals; attr.i: l, u,
 *                assumption of A, k
 *
 * The value is diagonal k, -u <= k <= l, by k_band_inverse.c, in O(l u n) and the memory of six
 * bands. Where that is not known to be accurate, and where what was assumed positive definite is
 * not, alt runs. */
#include "expr/op.h"
#include "ops/shared/band_lines.h"
#include "ops/shared/factor.h"
#include "kernels/dense/k_blas.h"
#include "kernels/common/kernels.h"

static lop_status infer(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0], *x = n->child[1], *alt = n->child[2];
    const int64_t l = n->attr.i[0], u = n->attr.i[1], k = n->attr.i[3];
    if (l < 0 || u < 0 || l > INT64_MAX / 4 || u > INT64_MAX / 4 || k > l || -k > u ||
        a->core != 2 || a->shape.ndim != 2 || lop_rows(a) != l + u + 1 ||
        !lop_shape_equal(&a->shape, &x->shape))
        return lop_fail(err, LOP_DIM, "%s takes two bands, and a diagonal on them", n->op->name);
    n->shape = (lop_shape){.ndim = 1, .dim = {lop_diag_length(lop_cols(a), lop_cols(a), k)}};
    n->core = 1;
    n->dtype = a->dtype;
    n->weak = LOP_STRONG;
    for (int i = 0; i < n->n; i++)
        if (n->child[i]->op->cls == LOP_OPERATOR || n->child[i]->dtype != n->dtype)
            return lop_fail(err, LOP_DTYPE, "%s takes arrays of one dtype", n->op->name);
    if (!lop_is_blas(n->dtype) || alt->core != 1 || !lop_shape_equal(&alt->shape, &n->shape))
        return lop_fail(err, LOP_DIM, "the branches of %s differ", n->op->name);
    return LOP_OK;
}

/* The diagonals lie first in the scratch, those of A and then of X. */
static lop_status run(const lop_call *c) {
    const int64_t *i = c->step->attr.i, w = i[0] + i[1] + 1;
    lop_mat *at = c->scratch;
    lopk_lines A = lop_band_lines(c->a[1], i[0], i[1], at),
               X = lop_band_lines(c->a[2], i[0], i[1], at + w);
    double rcond;
    A.half = i[2] == LOP_ASSUME_POSITIVE ? LOPK_UPPER : LOPK_WHOLE;
    A.adjoint = i[2] == LOP_ASSUME_TRIED;
    lop_status st = lopk_band_between_diagonal(
        c->a[0], i[3], &A, &X, (char *)c->scratch + lop_band_lines_bytes(2, i[0], i[1]), &rcond);
    if (st == LOP_OK) lop_call_near(c, rcond, lopk_eps(A.dt));
    return st;
}

static lop_status check(lop_emit *e, const lop_node *self, int value, int mask) {
    const int64_t l = self->attr.i[0], u = self->attr.i[1], n = lop_cols(self->child[0]);
    int64_t all;
    int in[2];
    for (int i = 0; i < 2; i++) in[i] = lop_emit_value(e, self->child[i]);
    if (!lop_mul_ok(n, l + u + 1, &all) || !lop_mul_ok(all, 7 * 16, &all))
        return lop_fail(lop_emit_err(e), LOP_OVERFLOW, NULL);
    lop_step *s = lop_emit_step(e, "band-between", run, value, 2, in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->fail = mask;
    s->flags = self->attr.i[2] == LOP_ASSUME_POSITIVE ? 0 : LOP_STEP_QUIET;
    s->scratch = lop_band_lines_bytes(2, l, u) + lopk_band_between_bytes(n, l, u, self->dtype);
    s->flops = (double)n * (24 * (double)l * (double)u + 16 * (double)(l + u + 1));
    return LOP_OK;
}

const lop_op lop_op_bandbetween = {
    LOP_NAMED(bandbetween), .cls = LOP_ARRAY,        .min = 3,      .max = 3, .ints = 4,
    .infer = infer,         .lower = lop_lower_arms, .check = check};
