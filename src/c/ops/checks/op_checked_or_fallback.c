/* op_checked_or_fallback.c: a solution by a fast way, or by a safe one where the fast one is not
 * accurate.
 *
 *   checked      children x, r, b, q, u, alt: x with residual r = b - A x, where
 *                  eta = |r| / (|A| |x| + |b|) <= 10 n u   in every column (2-norms), else alt;
 *                attr.i[1], a lop_room, says less than 10 n where alt is the solution refined.
 *                q = A^H u bounds |A| >= |q| / |u| from below, so that eta is never underestimated,
 *                with u = A v near one, of a probe v; the bound is kept while A stays.
 *                alt is lowered as a fallback branch: its steps run, and its memory is taken, only
 *                where needed; a singular matrix met on the way to x leads there too.
 *                With attr.i[0] q and u are A v and v: a bound for half the cost, |A|_F / sqrt(n),
 *                by which most solutions are accepted. It may be sqrt(n) too small: what is not
 *                accepted by it, or may have grown enough for a warning by sqrt(n) times of it, is
 *                left to alt, which is the check by A^H A v.
 *
 *   probe        v: n signs in an order of their own
 *   nearone      child x: 2^k x, its largest element near one, so that A^H A v stays in range
 *
 *   checked_det  children det, x, r, b, q, u', w, u, alt: det = det B det(I + C V^H W), W = B^-1 U,
 *                of A = B + U C V^H, where x = A^-1 v by the same W passes the same test,
 *                with 30 sqrt(n) in place of 10 n, and
 *                  |w_j| / |u_j| <= 10 n |x| / |v|   for every column:
 *                in single precision, of up to 4096 rows, 10 sqrt(n):
 *                B is not much nearer to a singular matrix than A, as far as U sees, so that the
 *                errors of det B and W (some u cond(B)) are those that LU of A has. Else, or where
 *                det is 0, alt.
 *
 *   checked_value  likewise where `det` is a matrix, a vector or a number made of B^-1, W and the
 * small matrix, such as A^-1 or its diagonal, with 10 sqrt(n) |x| / |v| in place of 10 n |x| / |v|:
 * of signs v |x| / |v| is some |A^-1|_F / sqrt(n), so that no column of W is more than ten times
 * A^-1's, and what cancels in B^-1 - W S^-1 V^H B^-1 is no larger than some hundred errors of an LU
 * of A, u |A^-1| cond(A). What U does not see B^-1 may still have: where z = B^-1 v and y = B^-1 1
 * stand before alt,
 *                  |z| <= 10 |x|,  of a determinant 10 n |x| or as above,
 *                and y / sqrt(n) counts as a column of W does. (1 by itself: it is the null vector
 *                of differences, to which signs are orthogonal now and then.)
 *
 *   checked_difference  children x, d, s, alt: x = d - c diag(W S^-1 W^H), the diagonals of
 *                (B + c U U^H)^-1 and B^-1, S = I + c U^H W, W = B^-1 U, B diagonal, where
 *                  d > 0,  x >= 0,  max d <= 10 max x,  k u tr S <= 1 / 100  and  tr S >= k - 1/2,
 *                or d < 0, x <= 0 and the same of -d and -x: then B is definite, and c U^H W is of
 * one sign. Where that is B's, S >= I has a condition of at most tr S, and each sum is at most
 * |d_i| and off by some k u |S| |d_i|, so that max |x| is right to a few hundredths. As |A^-1| >=
 * max |x| and |c| |U|^2 <= |A|, |S| <= 1 + max |d| |c| |U|^2 is at most some 1 + 10 cond(A): the
 * errors are those of an inverse of A, some u |A^-1| cond(A). Where it is not, 1/2 <= S <= 1, and
 * |x| >= |d| has errors of some k u |x|. Else alt.
 *
 *   spectral     children x, t..., d, alt: x made by a spectrum d = sum of the vectors t (and of a
 *                constant), where
 *                  sum over t of max |t| <= g max |d|   and   min |d| > 8 u max |t|, |d|
 *                with g = attr.i[0]: the eigenvalues carry errors of some u |t|, so that none is
 *                lost beside the whole and none is a mere error; else alt, also where a spectrum
 *                was not found. x is a matrix or a determinant; without d and t only the latter
 *                counts. With attr.i[1] d stands alone: 1, and is to be positive; 2, a determinant
 *                of n rows, |log2 |d|| to be more than n / 8, with g = n; 3, a determinant, is
 *                not to be 0; 4, is to be positive and finite, and, if g is not 0, its largest at
 *                most g times its least.
 *
 * Cost: one pass over x, r and b; over d and t. */
#include "expr/op.h"
#include "ops/shared/column_norm.h"
#include "ops/shared/factor.h"
#include "ops/shared/scaled_pair.h"
#include "kernels/dense/k_blas.h"
#include "kernels/common/kernels.h"

#include <complex.h>
#include <math.h>

static lop_status infer_instead(lop_node *n, lop_err *err) {
    const lop_node *x = n->child[0], *alt = n->child[n->n - 1];
    for (int i = 0; i < n->n; i++)
        if (n->child[i]->core != 2 || n->child[i]->dtype != x->dtype || n->child[i]->weak ||
            lop_rows(n->child[i]) != lop_rows(x))
            return lop_fail(err, LOP_DIM, "checked takes matrices of as many rows and one dtype");
    if (!lop_is_blas(x->dtype) || !lop_shape_equal(&x->shape, &alt->shape) ||
        !lop_shape_equal(&x->shape, &n->child[1]->shape))
        return lop_fail(err, LOP_DIM, "the branches of checked differ");
    n->shape = x->shape;
    n->dtype = x->dtype;
    return LOP_OK;
}

/* The lower bound of |A|, kept: one number. */
static lop_status run_bound(const lop_call *c) {
    const double length = lop_column_norm(c->a[2], 0);
    *(double *)c->a[0]->p = length > 0 ? lop_column_norm(c->a[1], 0) / length : 0;
    return LOP_OK;
}
static int emit_bound(lop_emit *e, const lop_node *q, const lop_node *v, lop_status *st) {
    const int in[2] = {lop_emit_value(e, q), lop_emit_value(e, v)};
    return lop_emit_derived(e, "bound", run_bound, sizeof(double), 2, in, NULL, 0,
                            2 * (double)lop_rows(q), st);
}

/* in: x, r, b, the bound. */
static lop_status small_enough(const lop_mat *const *in, lop_room room) {
    const lop_mat *x = in[0], *r = in[1], *b = in[2];
    const double u = lop_rounding(x->dt), a = *(const double *)in[3]->p,
                 most = lop_backward_room(x->m, room) * u;
    double nr[LOP_NORMS], nx[LOP_NORMS], nb[LOP_NORMS];
    for (int64_t j = 0; j < x->n; j++) {
        const int at = (int)(j % LOP_NORMS);
        if (at == 0) {
            lop_column_norms(r, j, nr);
            lop_column_norms(x, j, nx);
            if (j < b->n) lop_column_norms(b, j, nb);
        }
        const double left = nr[at], size = a * nx[at] + (j < b->n ? nb[at] : lop_column_norm(b, 0));
        if (!(left <= most * size)) return LOP_SINGULAR;
    }
    return LOP_OK;
}
/* What is accepted says of A itself how near it is to a singular matrix, where b is had. */
static lop_status run_accept(const lop_call *c) {
    const lop_mat *x = c->a[1], *b = c->a[3];
    lopk_copy(c->a[0], x);
    const double a = *(const double *)c->a[4]->p;
    const bool first = c->step->attr.i[0] != 0;
    if (first && !isfinite(a)) return LOP_SINGULAR;
    lop_status st = small_enough(c->a + 1, (lop_room)c->step->attr.i[1]);
    if (st != LOP_OK || b->p == c->a[2]->p || b->n != x->n) return st;
    const double near = lopk_outgrown(x, b, first ? a * sqrt((double)x->m) : a);
    if (first) return near > 8 * lopk_eps(x->dt) ? LOP_OK : LOP_SINGULAR;
    lop_call_near(c, near, lopk_eps(x->dt));
    return LOP_OK;
}

static lop_status check(lop_emit *e, const lop_node *self, int value, int mask) {
    int in[4];
    lop_status st;
    for (int i = 0; i < 3; i++) in[i] = lop_emit_value(e, self->child[i]);
    in[3] = emit_bound(e, self->child[3], self->child[4], &st);
    if (in[3] < 0) return st;
    lop_step *s = lop_emit_step(e, "accept", run_accept, value, 4, in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->fail = mask;
    s->flags = LOP_STEP_QUIET | LOP_STEP_INPLACE;
    return LOP_OK;
}

static lop_status run_copy(const lop_call *c) {
    lopk_copy(c->a[0], c->a[1]);
    return LOP_OK;
}
lop_status lop_lower_arms(lop_emit *e, const lop_node *self, int out) {
    int branch[2] = {-1, lop_emit_value(e, self->child[self->n - 1])}, mask;
    lop_emit_checked(e, &branch[0], &mask);
    for (int i = 0; i < 2; i++) {
        lop_step *s = lop_emit_step(e, i ? "checked" : "accepted", run_copy, out, 1, &branch[i]);
        if (!s) return LOP_NOMEM;
        s->when = mask;
        s->when_set = i != 0;
        if (i == 0) s->flags |= LOP_STEP_INPLACE;
    }
    return LOP_OK;
}
const lop_op lop_op_checked = {
    LOP_NAMED(checked),     .cls = LOP_ARRAY,        .min = 6,       .max = 6,
    .infer = infer_instead, .lower = lop_lower_arms, .check = check, .ints = 2};

static lop_status infer_by_probe(lop_node *n, lop_err *err) {
    const lop_node *value = n->child[0], *x = n->child[1], *w = n->child[6],
                   *alt = n->child[n->n - 1];
    const bool det = n->op == &lop_op_checked_det;
    if (n->n == 10) return lop_fail(err, LOP_DIM, "%s takes two solutions, or none", n->op->name);
    for (int i = 1; i < n->n - 1; i++)
        if (n->child[i]->core != 2 || n->child[i]->dtype != x->dtype || n->child[i]->weak ||
            lop_rows(n->child[i]) != lop_rows(x))
            return lop_fail(err, LOP_DIM, "%s takes matrices of as many rows and one dtype",
                            n->op->name);
    bool same = lop_nbatch(x) == lop_nbatch(value) && lop_cols(w) == lop_cols(n->child[7]);
    for (int i = 0; same && i < lop_nbatch(x); i++) same = x->shape.dim[i] == value->shape.dim[i];
    same = same && (det ? lop_node_is_pair(value) && lop_node_is_pair(alt)
                        : value->core <= 2 && value->core == alt->core && !value->weak &&
                              !alt->weak && value->dtype == x->dtype);
    if (!same || !lop_is_blas(x->dtype) || value->dtype != alt->dtype ||
        !lop_shape_equal(&value->shape, &alt->shape))
        return lop_fail(err, LOP_DIM, "the branches of %s differ", n->op->name);
    if (det) return lop_pair_infer(n, &value->shape, 1, value->dtype);
    n->shape = value->shape;
    n->core = value->core;
    n->dtype = value->dtype;
    return LOP_OK;
}

/* Of so many rows the dense form still stands by for a determinant in single precision. */
enum { SINGLE_ROWS = 4096 };
/* attr.i[0]: 1 of a determinant, which is not 0; attr.i[1]: 1 with the base's own solutions. */
static lop_status run_accept_by_probe(const lop_call *c) {
    const lop_mat *x = c->a[2], *v = c->a[4], *w = c->a[7], *u = c->a[8]; /* a[5]: the bound */
    double grown[LOP_NORMS], from[LOP_NORMS];
    const bool loose = c->step->attr.i[0] && (lop_rounding(x->dt) < 1e-10 || x->m > SINGLE_ROWS);
    const double rows = (double)x->m, length = lop_column_norm(v, 0),
                 room = loose ? rows : sqrt(rows),
                 most = length > 0 ? 10 * room * lop_column_norm(x, 0) / length : 0;
    lopk_copy(c->a[0], c->a[1]);
    if (c->step->attr.i[0] && lop_pair_is_zero(lop_pair_load(c->a[1]))) return LOP_SINGULAR;
    for (int64_t j = 0; j < w->n; j++) {
        const int at = (int)(j % LOP_NORMS);
        if (at == 0) {
            lop_column_norms(w, j, grown);
            lop_column_norms(u, j, from);
        }
        if (!(grown[at] <= most * from[at]) || !isfinite(grown[at])) return LOP_SINGULAR;
    }
    if (c->step->attr.i[1]) { /* the base's own solutions of v and of ones */
        const double z = lop_column_norm(c->a[9], 0), y = lop_column_norm(c->a[10], 0);
        const double own = 10 * (c->step->attr.i[0] ? room : 1) * lop_column_norm(x, 0);
        if (!(z <= own && y <= most * sqrt(rows)) || !isfinite(y)) return LOP_SINGULAR;
    }
    return small_enough(c->a + 2, LOP_ROOM_MADE);
}
static lop_status check_by_probe(lop_emit *e, const lop_node *self, int value, int mask) {
    int in[10];
    lop_status st;
    for (int i = 0; i < self->n - 1; i++) in[i] = lop_emit_value(e, self->child[i]);
    in[4] = emit_bound(e, self->child[4], self->child[5], &st);
    if (in[4] < 0) return st;
    lop_step *s = lop_emit_step(e, "accept", run_accept_by_probe, value, self->n - 1, in);
    if (!s) return LOP_NOMEM;
    s->attr.i[0] = self->op == &lop_op_checked_det;
    s->attr.i[1] = self->n > 9;
    s->fail = mask;
    s->flags = LOP_STEP_QUIET | LOP_STEP_INPLACE;
    return LOP_OK;
}
const lop_op lop_op_checked_det = {
    LOP_NAMED(checked_det),  .cls = LOP_ARRAY,       .min = 9, .max = 11, .infer = infer_by_probe,
    .lower = lop_lower_arms, .check = check_by_probe};
const lop_op lop_op_checked_value = {
    LOP_NAMED(checked_value), .cls = LOP_ARRAY,       .min = 9, .max = 11, .infer = infer_by_probe,
    .lower = lop_lower_arms,  .check = check_by_probe};

static lop_status infer_difference(lop_node *n, lop_err *err) {
    const lop_node *x = n->child[0], *small = n->child[2];
    if (small->core != 2 || !lop_is_square(small) || small->dtype != x->dtype || small->weak)
        return lop_fail(err, LOP_DIM, "%s takes a small matrix", n->op->name);
    for (int i = 0; i < 4; i += 1 + (i == 1))
        if (n->child[i]->core != 1 || !lop_is_blas(x->dtype) || n->child[i]->weak ||
            n->child[i]->dtype != x->dtype ||
            (i == 1 ? lop_cols(n->child[i]) != lop_cols(x)
                    : !lop_shape_equal(&n->child[i]->shape, &x->shape)))
            return lop_fail(err, LOP_DIM, "%s takes vectors alike", n->op->name);
    n->shape = x->shape;
    n->core = 1;
    n->dtype = x->dtype;
    return LOP_OK;
}
static lop_status run_accept_difference(const lop_call *c) {
    const lop_mat *x = c->a[1], *d = c->a[2];
    const lop_mat *small = c->a[3];
    double most = 0, from = 0, trace = 0;
    lopk_copy(c->a[0], x);
    for (int64_t i = 0; i < small->m; i++)
        trace += creal(lop_get(small->dt, small->p, i * (small->rs + small->cs)));
    if (!(100 * lop_rounding(x->dt) * (double)small->m * trace <= 1) ||
        !(trace >= (double)small->m - 0.5))
        return LOP_SINGULAR;
    const double *xs = x->p, *ds = d->p;
    const double sign = x->m > 0 && creal(lop_get(d->dt, d->p, 0)) < 0 ? -1 : 1;
    for (int64_t i = 0; i < x->m && x->dt == LOP_f64; i++) {
        const double a = sign * xs[i * x->rs], b = sign * ds[i * d->rs];
        if (!(a >= 0 && b > 0)) return LOP_SINGULAR;
        most = a > most ? a : most;
        from = b > from ? b : from;
    }
    for (int64_t i = 0; i < x->m && x->dt != LOP_f64; i++) {
        const double _Complex a = lop_get(x->dt, x->p, i * x->rs),
                              b = lop_get(d->dt, d->p, i * d->rs);
        if (!(sign * creal(a) >= 0 && sign * creal(b) > 0 && cimag(b) == 0)) return LOP_SINGULAR;
        if (sign * creal(a) > most) most = sign * creal(a);
        if (sign * creal(b) > from) from = sign * creal(b);
    }
    return from <= 10 * most && isfinite(from) ? LOP_OK : LOP_SINGULAR;
}
static lop_status check_difference(lop_emit *e, const lop_node *self, int value, int mask) {
    int in[3];
    for (int i = 0; i < 3; i++) in[i] = lop_emit_value(e, self->child[i]);
    lop_step *s = lop_emit_step(e, "accept", run_accept_difference, value, 3, in);
    if (!s) return LOP_NOMEM;
    s->fail = mask;
    s->flags = LOP_STEP_QUIET | LOP_STEP_INPLACE;
    return LOP_OK;
}
const lop_op lop_op_checked_difference = {LOP_NAMED(checked_difference),
                                          .cls = LOP_ARRAY,
                                          .min = 4,
                                          .max = 4,
                                          .infer = infer_difference,
                                          .lower = lop_lower_arms,
                                          .check = check_difference};

/* -- spectral */

enum { POSITIVE = 1, FAR = 2, REGULAR = 3, EVEN = 4 };

static lop_status infer_spectral(lop_node *n, lop_err *err) {
    const lop_node *x = n->child[0], *alt = n->child[n->n - 1];
    for (int i = 1; i < n->n - 1; i++)
        if (n->child[i]->core != 1 || !lop_is_blas(n->child[i]->dtype) ||
            lop_cols(n->child[i]) != lop_cols(n->child[1]))
            return lop_fail(err, LOP_DIM, "spectral takes vectors of one length");
    if (x->core < 1 || x->core != alt->core || x->dtype != alt->dtype || x->weak || alt->weak ||
        !lop_is_blas(x->dtype) || !lop_shape_equal(&x->shape, &alt->shape) || n->n > LOP_MAXARG)
        return lop_fail(err, LOP_DIM, "the branches of spectral differ");
    if (n->attr.i[1] && (n->n != 3 || ((n->attr.i[1] == FAR || n->attr.i[1] == REGULAR) &&
                                       !lop_node_is_pair(n->child[1]))))
        return lop_fail(err, LOP_DIM, "one spectrum is looked at for its signs");
    n->shape = x->shape;
    n->core = x->core;
    n->dtype = x->dtype;
    return LOP_OK;
}

#define RANGE(T, modulus)                                                                          \
    for (int64_t i = 0; i < v->m; i++) {                                                           \
        const double size = (double)modulus(((const T *)v->p)[i * v->rs]);                         \
        low = size < low ? size : low;                                                             \
        high = size > high ? size : high;                                                          \
        rest += size - size;                                                                       \
    }
/* NaN and inf give NaN. */
static void range_of(const lop_mat *v, double *least, double *most) {
    double low = INFINITY, high = 0, rest = 0;
    switch (v->dt) {
    case LOP_f32: RANGE(float, fabsf) break;
    case LOP_f64: RANGE(double, fabs) break;
    case LOP_c64: RANGE(float _Complex, cabsf) break;
    default: RANGE(double _Complex, cabs)
    }
    *least = low + rest;
    *most = high + rest;
}
#undef RANGE
/* NaN is not. */
static bool is_not_positive(const lop_mat *d) {
    for (int64_t i = 0; i < d->m; i++)
        if (!((d->dt == LOP_f64 ? ((const double *)d->p)[i * d->rs]
                                : creal(lop_get(d->dt, d->p, i * d->rs))) > 0))
            return true;
    return false;
}
static bool is_uneven(const lop_mat *d, double most) {
    double low, high;
    if (is_not_positive(d)) return true;
    range_of(d, &low, &high);
    return !isfinite(high) || (most > 0 && high > most * low);
}
/* Its exponent says that much; 0 of det 0, inf and NaN. */
static bool is_far_from_one(const lop_mat *det, int64_t n) {
    return 8 * (fabs(lop_pair_load(det).e) - 1) >= (double)n;
}
static lop_status run_accept_spectrum(const lop_call *c) {
    const int n = c->step->n;
    const int64_t *at = c->step->attr.i;
    lopk_copy(c->a[0], c->a[1]);
    if (at[1] == FAR) return is_far_from_one(c->a[2], at[0]) ? LOP_OK : LOP_SINGULAR;
    if (at[1] == REGULAR) return lop_pair_is_zero(lop_pair_load(c->a[2])) ? LOP_SINGULAR : LOP_OK;
    if (at[1] == POSITIVE) return is_not_positive(c->a[2]) ? LOP_SINGULAR : LOP_OK;
    if (at[1] == EVEN) return is_uneven(c->a[2], (double)at[0]) ? LOP_SINGULAR : LOP_OK;
    if (n < 4 || c->a[n - 1]->m == 0) return LOP_OK;
    const lop_mat *d = c->a[n - 1];
    const double u = lop_rounding(d->dt);
    double least, most, low, high, all = 0;
    range_of(d, &least, &most);
    for (int i = 2; i < n - 1; i++) {
        range_of(c->a[i], &low, &high);
        all += high;
    }
    if (!isfinite(all) || !isfinite(most)) return LOP_SINGULAR;
    if (!(all <= (double)c->step->attr.i[0] * most)) return LOP_SINGULAR;
    return least > 8 * u * (all > most ? all : most) ? LOP_OK : LOP_SINGULAR;
}
static lop_status check_spectral(lop_emit *e, const lop_node *self, int value, int mask) {
    int in[LOP_MAXARG];
    for (int i = 0; i < self->n - 1; i++) in[i] = lop_emit_value(e, self->child[i]);
    lop_step *s = lop_emit_step(e, "accept", run_accept_spectrum, value, self->n - 1, in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->fail = mask;
    s->flags = LOP_STEP_QUIET | LOP_STEP_INPLACE;
    return LOP_OK;
}
const lop_op lop_op_spectral = {LOP_NAMED(spectral),
                                .cls = LOP_ARRAY,
                                .min = 2,
                                .max = -1,
                                .ints = 2,
                                .infer = infer_spectral,
                                .lower = lop_lower_arms,
                                .check = check_spectral};

static lop_status infer_probe(lop_node *n, lop_err *err) {
    return n->core == 2 && n->shape.ndim == 2 && n->shape.dim[1] == 1 && !n->weak
               ? LOP_OK
               : lop_fail(err, LOP_DIM, "a probe is a column");
}
static lop_status run_probe(const lop_call *c) {
    const lop_mat *y = c->a[0];
    lop_rng rng = {.state = 17};
    for (int64_t i = 0; i < y->m; i++)
        lop_set(y->dt, y->p, i * y->rs, lop_rng_next(&rng) & 1 ? 1 : -1);
    return LOP_OK;
}
static lop_status lower_probe(lop_emit *e, const lop_node *self, int out) {
    (void)self;
    return lop_emit_step(e, "probe", run_probe, out, 0, NULL) ? LOP_OK : LOP_NOMEM;
}
const lop_op lop_op_probe = {LOP_NAMED(probe), .cls = LOP_ARRAY, .infer = infer_probe,
                             .lower = lower_probe};

static lop_status infer_nearone(lop_node *n, lop_err *err) {
    const lop_node *x = n->child[0];
    if (x->core != 2 || !lop_is_blas(x->dtype))
        return lop_fail(err, LOP_DIM, "nearone takes matrices of floats");
    n->shape = x->shape;
    n->dtype = x->dtype;
    n->core = 2;
    return LOP_OK;
}
static lop_status run_nearone(const lop_call *c) {
    const lop_mat *y = c->a[0];
    const double size = lop_column_norm(c->a[1], 0);
    int k = 0;
    lopk_copy(y, c->a[1]);
    if (!(size > 0 && isfinite(size))) return LOP_OK;
    (void)frexp(size, &k);
    lopk_scale(y, ldexp(1, -k / 2), 0, y); /* 2^-k alone may be out of range */
    lopk_scale(y, ldexp(1, -k + k / 2), 0, y);
    return LOP_OK;
}
static lop_status lower_nearone(lop_emit *e, const lop_node *self, int out) {
    const int in = lop_emit_value(e, self->child[0]);
    return lop_emit_step(e, "nearone", run_nearone, out, 1, &in) ? LOP_OK : LOP_NOMEM;
}
const lop_op lop_op_nearone = {LOP_NAMED(nearone), .cls = LOP_ARRAY,       .min = 1,
                               .max = 1,           .infer = infer_nearone, .lower = lower_nearone};
