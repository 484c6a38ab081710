/* op_checked_parts.c: solutions with a sum of two semidefinite matrices, made by an inverse of one
 * that is known and a vector y that stands for the other's product, so that nothing is factored.
 *
 *   checked_beside    children x, z, r, v, q, u, f, g, y, d, alt, d only where attr.i[0] is 1: A =
 * b Q^-1 + B, x = p + z, z = (Q U) y, v = b U y stands for b Q^-1 z in the residual r of x; q = B^H
 * u, u = B s near one, of a probe s; f and g are Q and U applied to signs, as long as their
 *                Frobenius norms. |A| is at least |v| / |z| and |B|, and the rounding of z - Q U y
 *                counts too:
 *                  |r| / (|A| |x|) + 3 u |f| |g| |y| / |x| <= 10 n u   in every column, else alt.
 *                d: B is semidefinite if no element of this vector is negative; else alt.
 *
 *   checked_parallel  children x, e, y, f, g, alt: A = b Q^-1 + c P^-1, x = p + z, z = Q y; the
 *                residual of x is c P^-1 e but for the roundings of z and of (b / c) P y in e; f
 * and g are Q and (b / c) P applied to signs. As |c P^-1| <= |A| and |b Q^-1| <= |A|: |e| / |x| + 3
 * u (|f| + |g|) |y| / |x| <= 10 n u   in every column, else alt. With a t before alt the rounding
 * is that of P t: g is P applied to signs, and |f| |y| + |g| |t| is taken.
 *
 * |b| is not had and left out: the bounds are on the safe side. Cost: a pass over what is taken. */
#include "expr/op.h"
#include "ops/shared/column_norm.h"
#include "ops/shared/factor.h"
#include "kernels/common/kernels.h"

#include <complex.h>
#include <math.h>

/* `n` matrices of one dtype and alt, x and alt alike, of what `whole` says as many rows, of what
 * `wide` says as many columns as x (bits by child). */
static lop_status parts_fit(lop_node *n, int count, unsigned whole, unsigned wide, lop_err *err) {
    const lop_node *x = n->child[0], *alt = n->child[n->n - 1];
    for (int i = 0; i <= count; i++) {
        const lop_node *a = i < count ? n->child[i] : alt;
        if (a->core != 2 || a->dtype != x->dtype || a->weak ||
            ((whole >> i & 1) && lop_rows(a) != lop_rows(x)) ||
            ((wide >> i & 1) && lop_cols(a) != lop_cols(x)))
            return lop_fail(err, LOP_DIM, "%s takes matrices of one dtype that fit", n->op->name);
    }
    if (!lop_is_blas(x->dtype) || !lop_shape_equal(&x->shape, &alt->shape))
        return lop_fail(err, LOP_DIM, "the branches of %s differ", n->op->name);
    n->shape = x->shape;
    n->dtype = x->dtype;
    n->core = 2;
    return LOP_OK;
}

/* -- beside */

/* |B| from below, kept: one number. */
static lop_status run_bound(const lop_call *c) {
    const double length = lop_column_norm(c->a[2], 0);
    *(double *)c->a[0]->p = length > 0 ? lop_column_norm(c->a[1], 0) / length : 0;
    return LOP_OK;
}

/* Only positive numbers? */
static bool all_positive(const lop_mat *d) {
    for (int64_t i = 0; i < d->m; i++) {
        const double _Complex v = lop_get(d->dt, d->p, i * d->rs);
        if (!(creal(v) > 0 && isfinite(creal(v)) && cimag(v) == 0)) return false;
    }
    return true;
}

/* a: out, x, z, r, v, the bound, f, g, y, perhaps d. */
static lop_status run_accept_beside(const lop_call *c) {
    const lop_mat *x = c->a[1];
    const double u = lop_rounding(x->dt), b = *(const double *)c->a[5]->p,
                 both = lop_column_norm(c->a[6], 0) * lop_column_norm(c->a[7], 0);
    lopk_copy(c->a[0], x);
    if (c->step->attr.i[0] && !all_positive(c->a[9])) return LOP_SINGULAR;
    for (int64_t j = 0; j < x->n; j++) {
        const double size = lop_column_norm(x, j), z = lop_column_norm(c->a[2], j),
                     left = lop_column_norm(c->a[3], j), v = lop_column_norm(c->a[4], j),
                     lost = 3 * u * both * lop_column_norm(c->a[8], j),
                     a = z > 0 && v > b * z ? v / z : b;
        if (!(left + lost * a <= 10 * (double)x->m * u * a * size)) return LOP_SINGULAR;
    }
    return LOP_OK;
}
static lop_status check_beside(lop_emit *e, const lop_node *self, int value, int mask) {
    lop_status st;
    int in[9];
    const int n = self->n - 2; /* two of the children make the bound */
    for (int i = 0; i < n; i++) in[i] = lop_emit_value(e, self->child[i < 4 ? i : i + 1]);
    const int of[2] = {lop_emit_value(e, self->child[4]), lop_emit_value(e, self->child[5])};
    in[4] = lop_emit_derived(e, "bound", run_bound, sizeof(double), 2, of, NULL, 0,
                             2 * (double)lop_rows(self), &st);
    if (in[4] < 0) return st;
    lop_step *s = lop_emit_step(e, "accept", run_accept_beside, value, n, in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->fail = mask;
    s->flags = LOP_STEP_QUIET;
    return LOP_OK;
}
static lop_status infer_beside(lop_node *n, lop_err *err) {
    const lop_node *d = n->child[9];
    if (n->n != (n->attr.i[0] ? 11 : 10) ||
        (n->n == 11 && (d->core != 1 || !lop_is_blas(d->dtype))))
        return lop_fail(err, LOP_DIM, "%s takes a vector where it is told", n->op->name);
    return parts_fit(n, 9, 0x7f, 0x10f, err);
}
const lop_op lop_op_checked_beside = {LOP_NAMED(checked_beside),
                                      .cls = LOP_ARRAY,
                                      .min = 10,
                                      .max = 11,
                                      .ints = 1,
                                      .infer = infer_beside,
                                      .lower = lop_lower_arms,
                                      .check = check_beside};

/* -- parallel */

/* a: out, x, e, y, f, g, perhaps t. */
static lop_status run_accept_parallel(const lop_call *c) {
    const lop_mat *x = c->a[1], *t = c->a[c->step->attr.i[0] ? 6 : 3];
    const double u = lop_rounding(x->dt), f = lop_column_norm(c->a[4], 0),
                 g = lop_column_norm(c->a[5], 0);
    lopk_copy(c->a[0], x);
    for (int64_t j = 0; j < x->n; j++) {
        const double lost = f * lop_column_norm(c->a[3], j) + g * lop_column_norm(t, j),
                     left = lop_column_norm(c->a[2], j) + 3 * u * lost;
        if (!(left <= 10 * (double)x->m * u * lop_column_norm(x, j))) return LOP_SINGULAR;
    }
    return LOP_OK;
}
static lop_status check_parallel(lop_emit *e, const lop_node *self, int value, int mask) {
    int in[6];
    const int n = self->n - 1;
    for (int i = 0; i < n; i++) in[i] = lop_emit_value(e, self->child[i]);
    lop_step *s = lop_emit_step(e, "accept", run_accept_parallel, value, n, in);
    if (!s) return LOP_NOMEM;
    s->attr = (lop_attr){.i = {n == 6, 0, 0, 0}};
    s->fail = mask;
    s->flags = LOP_STEP_QUIET;
    return LOP_OK;
}
static lop_status infer_parallel(lop_node *n, lop_err *err) {
    return parts_fit(n, n->n - 1, 0x3f, 0x27, err);
}
const lop_op lop_op_checked_parallel = {LOP_NAMED(checked_parallel),
                                        .cls = LOP_ARRAY,
                                        .min = 6,
                                        .max = 7,
                                        .infer = infer_parallel,
                                        .lower = lop_lower_arms,
                                        .check = check_parallel};
