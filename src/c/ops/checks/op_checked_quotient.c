/* op_checked_quotient.c: a determinant that is a quotient, of A = E + c U M^-1 V^H with a diagonal
 * E and H = M + c V^H E^-1 U:
 *
 *   checked_quotient_det  children det, a, m, z, b, h, y, w, alt: det = det E det H / det M, where
 *                m and h are the diagonals of M and H and, v a probe of signs,
 *                  a = M v,  z = M^-1 (m v),  b = H v,  y = H^-1 (h v),  w = H^-1 (m v).
 *                With |.| the root of the mean square,
 *                  kappa(M) = |z| r(M),  r(M) = max(1, |a / m|)
 *                estimates |M^-1 m|_F |m^-1 M|_F / n: log det M, by a factor of M whose rows are
 *                wrong by some u of their size, is wrong by some n u kappa(M); H likewise.
 *                Accepted where both are at most the rows of A, the errors of a determinant of
 *                rows that each have a part in M; or
 *                  |z_i - w_i| >= |z_i| / 8  in each row with |z_i| r(M) > the rows of A,
 *                  kappa(H) <= 8 kappa(M) + rows,  kappa(M) <= 1 / (1000 u):
 *                in the formula as it is written an error X of M moves log det A by the trace of
 *                (M^-1 - H^-1) X, so that it has an eighth of the errors of det M or more. What M
 *                is near to being singular by is seen through U, and not covered by E. Else, or
 *                where det is 0, a diagonal has one or something is not finite, alt.
 *
 *   checked_share  children x, t, alt: x, made of a difference whose diagonal is the vector t times
 *                what the larger part has there, where
 *                  |t_i| >= 1e-4
 *                for each i: no element has lost more than four digits. Else alt.
 *
 * Cost: a pass over the columns. */
#include "expr/op.h"
#include "ops/shared/column_norm.h"
#include "ops/shared/factor.h"
#include "ops/shared/scaled_pair.h"
#include "kernels/common/kernels.h"

#include <complex.h>
#include <math.h>

static double squared(double _Complex v) { return creal(v) * creal(v) + cimag(v) * cimag(v); }

static double _Complex at(const lop_mat *a, int64_t i) { return lop_get(a->dt, a->p, i * a->rs); }

/* max(1, |a / m|); NaN where there is no such number. */
static double rows_of(const lop_mat *a, const lop_mat *m) {
    double all = 0;
    for (int64_t i = 0; i < a->m; i++) all += squared(at(a, i) / at(m, i));
    return isnan(all) ? NAN : fmax(1, sqrt(all / (double)a->m));
}
static double mean_size(const lop_mat *z) {
    double all = 0;
    for (int64_t i = 0; i < z->m; i++) all += squared(at(z, i));
    return sqrt(all / (double)z->m);
}
/* Is |z_i - w_i| >= |z_i| / 8 of each element above `most`? */
static bool all_seen(const lop_mat *z, const lop_mat *w, double most) {
    for (int64_t i = 0; i < z->m; i++) {
        const double own = squared(at(z, i));
        if (own > most * most && !(64 * squared(at(z, i) - at(w, i)) >= own)) return false;
    }
    return true;
}

/* a: out, det, a, m, z, b, h, y, w; attr.i: the rows of A. */
static lop_status run_accept_quotient(const lop_call *c) {
    const lop_mat *z = c->a[4];
    const double most = (double)c->step->attr.i[0], u = lop_rounding(z->dt),
                 rows = rows_of(c->a[2], c->a[3]), m = mean_size(z) * rows,
                 h = mean_size(c->a[7]) * rows_of(c->a[5], c->a[6]);
    lop_pair_store(c->a[0], lop_pair_load(c->a[1]));
    if (lop_pair_is_zero(lop_pair_load(c->a[1])) || !isfinite(m) || !isfinite(h))
        return LOP_SINGULAR;
    if (m <= most && h <= most) return LOP_OK;
    const bool shown = m <= 1e-3 / u && h <= 8 * m + most && all_seen(z, c->a[8], most / rows);
    return shown ? LOP_OK : LOP_SINGULAR;
}
static lop_status check_quotient(lop_emit *e, const lop_node *self, int value, int mask) {
    int in[8];
    for (int i = 0; i < 8; i++) in[i] = lop_emit_value(e, self->child[i]);
    lop_step *s = lop_emit_step(e, "accept", run_accept_quotient, value, 8, in);
    if (!s) return LOP_NOMEM;
    s->attr.i[0] = self->attr.i[0];
    s->fail = mask;
    s->flags = LOP_STEP_QUIET | LOP_STEP_INPLACE;
    return LOP_OK;
}
static lop_status infer_quotient(lop_node *n, lop_err *err) {
    const lop_node *det = n->child[0], *alt = n->child[8], *z = n->child[3];
    for (int i = 1; i < 8; i++) {
        const lop_node *a = n->child[i];
        const bool line = i == 2 || i == 5;
        if (a->dtype != z->dtype || a->weak || a->core != (line ? 1 : 2) ||
            (line ? lop_cols(a) : lop_rows(a)) != lop_rows(z) || (!line && lop_cols(a) != 1))
            return lop_fail(err, LOP_DIM, "%s takes columns and diagonals of one dtype",
                            n->op->name);
    }
    if (!lop_node_is_pair(det) || !lop_node_is_pair(alt) || det->dtype != alt->dtype ||
        !lop_is_blas(z->dtype) || !lop_shape_equal(&det->shape, &alt->shape))
        return lop_fail(err, LOP_DIM, "the branches of %s differ", n->op->name);
    return lop_pair_infer(n, &det->shape, 1, det->dtype);
}
const lop_op lop_op_checked_quotient_det = {LOP_NAMED(checked_quotient_det),
                                            .cls = LOP_ARRAY,
                                            .min = 9,
                                            .max = 9,
                                            .infer = infer_quotient,
                                            .lower = lop_lower_arms,
                                            .check = check_quotient};

static lop_status run_accept_share(const lop_call *c) {
    const lop_mat *t = c->a[2];
    lopk_copy(c->a[0], c->a[1]);
    for (int64_t i = 0; i < t->m; i++)
        if (!(squared(at(t, i)) >= 1e-8)) return LOP_SINGULAR;
    return LOP_OK;
}
static lop_status check_share(lop_emit *e, const lop_node *self, int value, int mask) {
    const int in[2] = {lop_emit_value(e, self->child[0]), lop_emit_value(e, self->child[1])};
    lop_step *s = lop_emit_step(e, "accept", run_accept_share, value, 2, in);
    if (!s) return LOP_NOMEM;
    s->fail = mask;
    s->flags = LOP_STEP_QUIET | LOP_STEP_INPLACE;
    return LOP_OK;
}
static lop_status infer_share(lop_node *n, lop_err *err) {
    const lop_node *x = n->child[0], *t = n->child[1], *alt = n->child[2];
    if (x->core > 2 || x->core != alt->core || t->core != 1 || t->weak || lop_nbatch(t) ||
        !lop_is_blas(t->dtype) || x->dtype != alt->dtype || x->weak || alt->weak ||
        !lop_shape_equal(&x->shape, &alt->shape))
        return lop_fail(err, LOP_DIM, "the branches of %s differ", n->op->name);
    n->shape = x->shape;
    n->core = x->core;
    n->dtype = x->dtype;
    return LOP_OK;
}
const lop_op lop_op_checked_share = {
    LOP_NAMED(checked_share), .cls = LOP_ARRAY,    .min = 3, .max = 3, .infer = infer_share,
    .lower = lop_lower_arms,  .check = check_share};
