/* op_toeplitz_inverse_diagonal.c: a diagonal of the inverse of a Toeplitz matrix.
 *
 *   toeplitz_inverse_diagonal  children x, y, z, v, alt: diagonal k = attr.i[0] of B = T^-1 by its
 *                              first column x and its last column y,
 *                                B[i, j] = B[i - 1, j - 1] + (x_i y_(n-1-j) - y_(i-1) x_(n-j)) /
 * x_0 (Trench 1964; Gohberg and Semencul 1972), begun at an end, where it is an element of x or y,
 * and taken to the middle: B is its own reflection in the antidiagonal. z = T^-1 v for a probe v.
 *
 * The sums are no larger than |x| |y| / |x_0|, and carry the errors of x and y, some u cond(T).
 * Where |x| |y| / |x_0| <= 10 n max(|x|, |y|, |z| / |v|)   (2-norms), whose right side is at most
 * 10 n |T^-1|, the diagonal has the errors of a backward stable inverse; else alt, the dense way.
 * Of a definite T the left side is at most |T^-1|. Cost: O(n). */
#include "expr/op.h"
#include "kernels/common/kernels.h"
#include "ops/shared/factor.h"

#include <complex.h>
#include <math.h>

static lop_status infer_invdiag(lop_node *n, lop_err *err) {
    const lop_node *x = n->child[0], *alt = n->child[4];
    if (x->core != 2 || lop_cols(x) != 1 || lop_rows(x) < 1 || !lop_is_blas(x->dtype) || x->weak)
        return lop_fail(err, LOP_DIM, "%s takes columns", n->op->name);
    for (int i = 1; i < 4; i++) {
        const lop_node *y = n->child[i];
        if (y->core != 2 || y->dtype != x->dtype || y->weak || lop_cols(y) != 1 ||
            lop_rows(y) != lop_rows(x) || (i < 3 && !lop_shape_equal(&x->shape, &y->shape)))
            return lop_fail(err, LOP_DIM, "%s takes columns alike", n->op->name);
    }
    n->shape = x->shape;
    n->shape.dim[--n->shape.ndim - 1] = lop_diag_length(lop_rows(x), lop_rows(x), n->attr.i[0]);
    n->core = 1;
    n->dtype = x->dtype;
    if (alt->core != 1 || alt->dtype != n->dtype || !lop_shape_equal(&alt->shape, &n->shape))
        return lop_fail(err, LOP_DIM, "the arms of %s differ", n->op->name);
    return LOP_OK;
}

static double _Complex at(const lop_mat *a, int64_t i) { return lop_get(a->dt, a->p, i * a->rs); }

static double norm(const lop_mat *a) {
    double sum = 0;
    for (int64_t i = 0; i < a->m; i++) {
        const double _Complex v = at(a, i);
        sum += creal(v) * creal(v) + cimag(v) * cimag(v);
    }
    return sqrt(sum);
}

static lop_status run_invdiag(const lop_call *c) {
    const lop_mat *d = c->a[0], *x = c->a[1], *y = c->a[2];
    const int64_t n = x->m, k = c->step->attr.i[0], i0 = k < 0 ? -k : 0, j0 = k > 0 ? k : 0;
    const double _Complex first = at(x, 0);
    const double nx = norm(x), ny = norm(y), sums = nx * ny / cabs(first);
    const double nv = norm(c->a[4]), grown = nv > 0 ? norm(c->a[3]) / nv : 0;
    const double most = fmax(grown, fmax(nx, ny));
    double _Complex b = k < 0 ? at(x, -k) : at(y, n - 1 - k);
    for (int64_t p = 0; 2 * p < d->m; p++) {
        const int64_t i = i0 + p, j = j0 + p;
        if (p > 0) b += (at(x, i) * at(y, n - 1 - j) - at(y, i - 1) * at(x, n - j)) / first;
        lop_set(d->dt, d->p, p * d->rs, b);
        lop_set(d->dt, d->p, (d->m - 1 - p) * d->rs, b);
    }
    return sums <= 10 * (double)n * most && isfinite(sums) ? LOP_OK : LOP_SINGULAR;
}
static lop_status check_invdiag(lop_emit *e, const lop_node *self, int value, int mask) {
    int in[4];
    for (int i = 0; i < 4; i++) in[i] = lop_emit_value(e, self->child[i]);
    lop_step *s = lop_emit_step(e, self->op->name, run_invdiag, value, 4, in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->fail = mask;
    s->flags = LOP_STEP_QUIET;
    s->flops = 6 * lop_slot_elements(e, value);
    return LOP_OK;
}
const lop_op lop_op_toeplitz_inverse_diagonal = {LOP_NAMED(toeplitz_inverse_diagonal),
                                                 .cls = LOP_ARRAY,
                                                 .min = 5,
                                                 .max = 5,
                                                 .ints = 1,
                                                 .infer = infer_invdiag,
                                                 .lower = lop_lower_arms,
                                                 .check = check_invdiag};
