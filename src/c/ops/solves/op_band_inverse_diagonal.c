/* op_band_inverse_diagonal.c: diagonals of inverses of bands.
 *
 * bandinvdiag    children ab, alt: of a Banded; attr.i: l, u, assumption, k
 * triinvdiag     children dl, d, du, alt: of a Tridiagonal; attr.i: assumption, does it name dl?,
 * -,
 *                k
 * bandinvband    children ab, alt: of a Banded; attr.i: l, u, assumption. All diagonals, side by
 *                side as band_join has them: u, ..., -l of it are l, ..., -u of the band
 *
 * The value is diagonal k, -u <= k <= l, by the recurrences of k_band_inverse.c: O(l u n) and no
 * more memory than three bands. Where these are not known to be accurate, and where what was
 * assumed positive definite is not, alt runs. */
#include "expr/op.h"
#include "ops/shared/band_lines.h"
#include "ops/shared/factor.h"
#include "kernels/dense/k_blas.h"
#include "kernels/common/kernels.h"

static bool is_three(const lop_node *n) { return n->op == &lop_op_triinvdiag; }
static int64_t assumption_of(const lop_node *n) { return n->attr.i[is_three(n) ? 0 : 2]; }
static lop_band band_of(const lop_node *n) {
    return is_three(n) ? (lop_band){1, 1} : (lop_band){n->attr.i[0], n->attr.i[1]};
}

static lop_status infer_all(lop_node *n, lop_err *err) {
    const lop_node *ab = n->child[0], *alt = n->child[1];
    const int64_t l = n->attr.i[0], u = n->attr.i[1];
    if (ab->core != 2 || l < 0 || u < 0 || l > INT64_MAX / 4 || u > INT64_MAX / 4 || l + u < 1 ||
        lop_rows(ab) != l + u + 1)
        return lop_fail(err, LOP_DIM, "%s takes a band", n->op->name);
    n->shape = ab->shape;
    n->shape.dim[n->shape.ndim - 2] = lop_cols(ab);
    n->shape.dim[n->shape.ndim - 1] = lop_rows(ab);
    n->core = 2;
    n->dtype = ab->dtype;
    n->weak = LOP_STRONG;
    if (!lop_is_blas(n->dtype) || alt->dtype != n->dtype || alt->core != 2 ||
        !lop_shape_equal(&alt->shape, &n->shape))
        return lop_fail(err, LOP_DIM, "the branches of %s differ", n->op->name);
    return LOP_OK;
}
static lop_status infer(lop_node *n, lop_err *err) {
    const lop_node *alt = n->child[n->n - 1];
    const int64_t size = lop_cols(n->child[is_three(n)]), k = n->attr.i[3];
    const lop_band b = band_of(n);
    if (b.l < 0 || b.u < 0 || k > b.l || -k > b.u || b.l > INT64_MAX / 4 || b.u > INT64_MAX / 4 ||
        (is_three(n) ? n->child[0]->core != 1 : lop_rows(n->child[0]) != b.l + b.u + 1))
        return lop_fail(err, LOP_DIM, "%s takes a band, and a diagonal on it", n->op->name);
    lop_status st = lop_node_batches(n, 1, err);
    if (st != LOP_OK) return st;
    n->shape.dim[n->shape.ndim++] = lop_diag_length(size, size, k);
    n->core = 1;
    n->weak = LOP_STRONG;
    for (int i = 0; i < n->n; i++)
        if (n->child[i]->op->cls == LOP_OPERATOR || n->child[i]->dtype != n->dtype)
            return lop_fail(err, LOP_DTYPE, "%s takes arrays of one dtype", n->op->name);
    if (!lop_is_blas(n->dtype) || alt->core != 1 || !lop_shape_equal(&alt->shape, &n->shape))
        return lop_fail(err, LOP_DIM, "the branches of %s differ", n->op->name);
    return LOP_OK;
}

static int half_of(int64_t word, bool below) {
    if (word != LOP_ASSUME_POSITIVE) return LOPK_WHOLE;
    return below ? LOPK_LOWER : LOPK_UPPER;
}
static bool is_adjoint(int64_t word, lop_dtype dt) {
    return word == LOP_ASSUME_HERMITIAN || word == LOP_ASSUME_TRIED ||
           (word == LOP_ASSUME_SYMMETRIC && !lop_is_complex(dt));
}
lopk_lines lop_band_lines(const lop_mat *ab, int64_t l, int64_t u, lop_mat *at) {
    const int64_t size = (int64_t)lop_dtype_size(ab->dt);
    for (int64_t k = -l; k <= u; k++) {
        const int64_t first = (u - k) * ab->rs + (k > 0 ? k : 0) * ab->cs,
                      count = lop_diag_length(ab->n, ab->n, k);
        at[l + k] =
            (lop_mat){count ? (char *)ab->p + first * size : NULL, count, 1, ab->cs, 1, ab->dt};
    }
    return (lopk_lines){.n = ab->n, .l = l, .u = u, .dt = ab->dt, .at = at};
}
/* The lines come first in the scratch. attr.i as the node's. */
static lop_status finish(const lop_call *c, lopk_lines *A) {
    double rcond;
    A->at = c->scratch;
    lop_status st = lopk_band_inverse_diagonal(
        c->a[0], c->a[0]->n > 1 ? 0 : c->step->attr.i[3], A,
        (char *)c->scratch + lop_band_lines_bytes(1, A->l, A->u), &rcond);
    if (st == LOP_OK) lop_call_near(c, rcond, lopk_eps(A->dt));
    return st;
}
static lop_status run_band(const lop_call *c) {
    const int64_t *i = c->step->attr.i;
    lopk_lines A = lop_band_lines(c->a[1], i[0], i[1], c->scratch);
    A.half = half_of(i[2], false);
    A.adjoint = is_adjoint(i[2], A.dt);
    return finish(c, &A);
}
static lop_status run_three(const lop_call *c) {
    const int64_t *i = c->step->attr.i;
    lop_mat *at = c->scratch;
    lopk_lines A = {.n = c->a[2]->m,
                    .l = 1,
                    .u = 1,
                    .dt = c->a[2]->dt,
                    .half = half_of(i[0], i[1] != 0),
                    .adjoint = is_adjoint(i[0], c->a[2]->dt)};
    for (int t = 0; t < 3; t++) at[t] = *c->a[t + 1];
    return finish(c, &A);
}

static lop_status check(lop_emit *e, const lop_node *self, int value, int mask) {
    const lop_band b = band_of(self);
    const int64_t n = lop_cols(self->child[is_three(self)]);
    int64_t all;
    int in[3];
    for (int i = 0; i < self->n - 1; i++) in[i] = lop_emit_value(e, self->child[i]);
    if (!lop_mul_ok(n, b.l + b.u + 1, &all) || !lop_mul_ok(all, 4 * 16, &all))
        return lop_fail(lop_emit_err(e), LOP_OVERFLOW, NULL);
    lop_step *s = lop_emit_step(e, "band-inverse-diagonal", is_three(self) ? run_three : run_band,
                                value, self->n - 1, in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->fail = mask;
    s->flags = assumption_of(self) == LOP_ASSUME_POSITIVE ? 0 : LOP_STEP_QUIET;
    s->scratch =
        lop_band_lines_bytes(1, b.l, b.u) + lopk_band_inverse_bytes(n, b.l, b.u, self->dtype);
    s->flops = (double)n * (6 * (double)b.l * (double)b.u + 4 * (double)(b.l + b.u + 1));
    return LOP_OK;
}

const lop_op lop_op_bandinvdiag = {
    LOP_NAMED(bandinvdiag), .cls = LOP_ARRAY,        .min = 2,      .max = 2, .ints = 4,
    .infer = infer,         .lower = lop_lower_arms, .check = check};
const lop_op lop_op_triinvdiag = {
    LOP_NAMED(triinvdiag), .cls = LOP_ARRAY,        .min = 4,      .max = 4, .ints = 4,
    .infer = infer,        .lower = lop_lower_arms, .check = check};
const lop_op lop_op_bandinvband = {
    LOP_NAMED(bandinvband), .cls = LOP_ARRAY,        .min = 2,      .max = 2, .ints = 3,
    .infer = infer_all,     .lower = lop_lower_arms, .check = check};
