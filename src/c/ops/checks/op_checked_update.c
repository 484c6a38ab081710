/* op_checked_update.c: what a diagonal with a positive update of low rank shows by itself, so that
 * no probe is sent through it: A = D + c U U^H, D > 0 real, c > 0, or both of them negative: then
 * what follows is said of -A.
 *
 *   checked_update      children x, b, y, e, g, t, d, alt. x = D^-1 (b - U y), e = y - C U^H x; g
 *                holds U^H D^-1 U and the squares of U's columns (weighted_gram), t = C U^H D^-1 U.
 *                As x is made, b - D x = U y but for rounding, so that
 *                  b - A x = U e + rounding:
 *                the residual is not formed, and the k numbers e tell its size. Accepted where
 *                  |U|_F (|e| + 4 sqrt(k) u |y|) + 4 u a |x| <= 30 sqrt(n) u (a |x| + |b|),
 *                a = max(max d, max_j c_j |u_j|^2), in every column. It never accepts what the
 * check by the residual itself would not, but for probability one in 10^3 or so:
 *                - A >= D and A >= c_j u_j u_j^H, so a <= |A|: eta is not underestimated on the
 * right;
 *                - |U e| <= |U|_F |e|, and |U|_F is the exact one, from the columns: nothing that
 *                  is graded is lost in a bound by max d or min d;
 *                - the rounding is that of U y, at most 4 sqrt(k) u |U|_F |y| with probability
 *                  1 - 2 exp(-8) (Higham and Mary 2019, theorem 2.4, lambda = 4), that of the
 *                  difference and that of the division, each u |D x| <= u a |x|.
 *                So it is no looser than `checked`; too large by sqrt(k) at most where the columns
 *                are orthogonal, and by k in a where they are parallel. Else alt.
 *
 *   checked_update_det  children det, g, t, d, alt: det = det D det S, C = c I, S = I + t, accepted
 *                where
 *                  D > 0,  100 k u tr H^-1 <= 1  and  more than k of the d_i are <= 10 min d,
 *                S = E H E with E^2 the diagonal of S. An element of S is wrong by some
 *                n u e_i e_j (Cauchy and Schwarz; of Cholesky's factor Higham 2002, theorem 10.3),
 *                which moves log det S by no more than some k n u tr H^-1, and det D is a product.
 *                tr H^-1 = sum s_ii (S^-1)_ii <= tr S, as S >= I: where 100 k u tr S <= 1 H is not
 *                formed. A differs from
 *                D by rank k: its least eigenvalue is at most the (k+1)th least d_i (Weyl 1912),
 *                so |A^-1| >= 1 / (10 min d), tr S <= k (1 + c |U|^2 / min d) <= k (1 + 10 cond A):
 *                the error is that of a determinant by a factor of A, some n u cond(A), times a few
 *                k. No step of it can cancel. Else alt. Of one column S is a number, the sum of
 *                positive ones, so that D > 0 and S finite are enough.
 *
 * Cost: a pass over d, x and b, k^2; g and t are looked at once and what they say is kept. */
#include "expr/op.h"
#include "ops/shared/column_norm.h"
#include "ops/shared/factor.h"
#include "ops/shared/scaled_pair.h"
#include "kernels/dense/k_blas.h"
#include "kernels/common/kernels.h"

#include <complex.h>
#include <float.h>
#include <math.h>

/* What is kept: |U|_F; max_j |c_j| |u_j|^2; tr S. NaN of a c_j that has not the sign of D.
 * Behind them the lower triangle of t, row by row, where tr S alone does not prove a determinant:
 * with it the step that makes g and t, of n rows, does not run again where the factor is kept. */
enum { FROBENIUS, LARGEST, TRACE, FACTS };

/* The largest trace by which a determinant is accepted. */
static double most_trace(int64_t k, lop_dtype dt) {
    return 1 / (100 * (double)k * lop_rounding(dt));
}
static int64_t below(int64_t i, int64_t j) { return i * (i + 1) / 2 + j; }

static lop_status run_facts(const lop_call *c) {
    const lop_mat *g = c->a[1], *t = c->a[2];
    const int64_t k = t->m;
    const bool single = g->dt == LOP_f32 || g->dt == LOP_c64;
    double *fact = c->a[0]->p, sum = 0, most = 0, trace = (double)k;
    for (int64_t j = 0; j < k; j++) {
        const double v = creal(lop_get(g->dt, g->p, k * g->rs + j * g->cs)),
                     own = creal(lop_get(g->dt, g->p, j * (g->rs + g->cs))),
                     scaled = creal(lop_get(t->dt, t->p, j * (t->rs + t->cs))),
                     by = own != 0 ? fabs(scaled / own) : 0; /* |c_j|, to some u */
        if (!(scaled >= 0)) trace = NAN;                     /* c_j has not the sign of D */
        most = by * v > most ? by * v : most;
        trace += scaled;
        sum += v + (single ? FLT_MIN : DBL_MIN); /* what may have gone below the range */
    }
    fact[FROBENIUS] = trace >= 0 ? sqrt(sum) : NAN;
    fact[LARGEST] = 0.99 * most;
    fact[TRACE] = trace;
    if (k == 1 || !isfinite(trace) || trace <= most_trace(k, t->dt)) return LOP_OK;
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j <= i; j++)
            lop_set(t->dt, fact + FACTS, below(i, j), lop_get(t->dt, t->p, i * t->rs + j * t->cs));
    return LOP_OK;
}
static int emit_facts(lop_emit *e, const lop_node *g, const lop_node *t, lop_status *st) {
    const int in[2] = {lop_emit_value(e, g), lop_emit_value(e, t)};
    const int64_t k = lop_cols(t);
    const size_t rest = k == 1 ? 0 : (size_t)below(k, 0) * lop_dtype_size(t->dtype);
    return lop_emit_derived(e, "bound", run_facts, FACTS * sizeof(double) + rest, 2, in, NULL, 0,
                            4 * (double)k, st);
}

/* The least and the largest size; false of what is not finite or not of one sign. */
static bool range_of(const lop_mat *d, double *least, double *most) {
    double low = INFINITY, high = -INFINITY, rest = 0;
    for (int64_t i = 0; i < d->m; i++) {
        const double v = d->dt == LOP_f32 ? (double)((const float *)d->p)[i * d->rs]
                                          : ((const double *)d->p)[i * d->rs];
        low = v < low ? v : low;
        high = v > high ? v : high;
        rest += v - v;
    }
    *least = low > 0 ? low : -high;
    *most = low > 0 ? high : -low;
    return (low > 0 || high < 0) && rest == 0;
}

/* a: out, x, b, y, e, the facts, d. */
static lop_status run_accept(const lop_call *c) {
    const lop_mat *x = c->a[1], *b = c->a[2], *y = c->a[3], *e = c->a[4], *d = c->a[6];
    const double *fact = c->a[5]->p, u = lop_rounding(x->dt), all = fact[FROBENIUS];
    const double room = lop_backward_room(x->m, LOP_ROOM_MADE) * u;
    double least, most;
    lopk_copy(c->a[0], x);
    if (!range_of(d, &least, &most)) return LOP_SINGULAR;
    const double a = most > fact[LARGEST] ? most : fact[LARGEST], lost = 4 * sqrt((double)y->m) * u;
    double nx[LOP_NORMS], nb[LOP_NORMS], ne[LOP_NORMS], ny[LOP_NORMS], outgrown = 1;
    for (int64_t j = 0; j < x->n; j++) {
        const int at = (int)(j % LOP_NORMS);
        if (at == 0) {
            lop_column_norms(x, j, nx);
            lop_column_norms(b, j, nb);
            lop_column_norms(e, j, ne);
            lop_column_norms(y, j, ny);
        }
        const double size = a * nx[at] + nb[at],
                     left = all * (ne[at] + lost * ny[at]) + 4 * u * a * nx[at];
        if (!isfinite(size) || !(left <= room * size)) return LOP_SINGULAR;
        if (j < LOPK_GROWTHS) outgrown = fmin(outgrown, lopk_outgrown_by(nx[at], nb[at], x->m, a));
    }
    if (b->p != x->p && b->n == x->n) lop_call_near(c, outgrown, lopk_eps(x->dt));
    return LOP_OK;
}
static lop_status check_update(lop_emit *e, const lop_node *self, int value, int mask) {
    lop_status st;
    int in[6];
    for (int i = 0; i < 4; i++) in[i] = lop_emit_value(e, self->child[i]);
    in[4] = emit_facts(e, self->child[4], self->child[5], &st);
    if (in[4] < 0) return st;
    in[5] = lop_emit_value(e, self->child[6]);
    lop_step *s = lop_emit_step(e, "accept", run_accept, value, 6, in);
    if (!s) return LOP_NOMEM;
    s->fail = mask;
    s->flags = LOP_STEP_QUIET | LOP_STEP_INPLACE;
    return LOP_OK;
}

/* Do g, t and d, from child `at` on, belong to a matrix of n rows and dtype dt? */
static bool parts_fit(const lop_node *n, int at, int64_t rows, lop_dtype dt) {
    const lop_node *g = n->child[at], *t = n->child[at + 1], *d = n->child[at + 2];
    return g->core == 2 && t->core == 2 && d->core == 1 && g->dtype == dt && t->dtype == dt &&
           d->dtype == lop_dtype_real(dt) && !g->weak && !t->weak && !d->weak && lop_is_square(t) &&
           lop_cols(g) == lop_cols(t) && lop_rows(g) == lop_cols(t) + 1 &&
           (rows < 0 || lop_cols(d) == rows) && lop_is_blas(dt);
}
static lop_status infer_update(lop_node *n, lop_err *err) {
    const lop_node *x = n->child[0], *b = n->child[1], *y = n->child[2], *e = n->child[3],
                   *alt = n->child[7];
    for (int i = 0; i < 4; i++)
        if (n->child[i]->core != 2 || n->child[i]->dtype != x->dtype || n->child[i]->weak ||
            lop_cols(n->child[i]) != lop_cols(x))
            return lop_fail(err, LOP_DIM, "%s takes columns of one dtype", n->op->name);
    if (!parts_fit(n, 4, lop_rows(x), x->dtype) || lop_rows(b) != lop_rows(x) ||
        lop_rows(y) != lop_rows(e) || lop_rows(y) != lop_cols(n->child[5]) ||
        alt->dtype != x->dtype || !lop_shape_equal(&x->shape, &alt->shape))
        return lop_fail(err, LOP_DIM, "the branches of %s differ", n->op->name);
    n->shape = x->shape;
    n->dtype = x->dtype;
    n->core = 2;
    return LOP_OK;
}
const lop_op lop_op_checked_update = {
    LOP_NAMED(checked_update), .cls = LOP_ARRAY,     .min = 8, .max = 8, .infer = infer_update,
    .lower = lop_lower_arms,   .check = check_update};

/* tr H^-1 of S = I + t, t by its lower triangle; infinite where S is not positive definite. */
static double scaled_trace(int64_t k, lop_dtype own, const void *t, void *scratch) {
    const lop_dtype dt = lop_is_complex(own) ? LOP_c128 : LOP_f64;
    const lop_mat h = lop_factor_at(scratch, k, dt);
    double sum = 0;
    for (int64_t j = 0; j < k; j++)
        for (int64_t i = j; i < k; i++) {
            const double by = (1 + creal(lop_get(own, t, below(i, i)))) *
                              (1 + creal(lop_get(own, t, below(j, j))));
            lop_set(dt, h.p, i + j * k, i == j ? 1 : lop_get(own, t, below(i, j)) / sqrt(by));
        }
    int64_t info = 0;
    if (lopk_potrf(&h, &info) != LOP_OK || lopk_potri(&h, &info) != LOP_OK) return INFINITY;
    for (int64_t j = 0; j < k; j++) sum += creal(lop_get(dt, h.p, j * (k + 1)));
    return sum;
}

/* a: out, det, the facts, d; attr.i: k, the dtype of t. */
static lop_status run_accept_det(const lop_call *c) {
    const lop_mat *d = c->a[3];
    const double *fact = c->a[2]->p;
    const int64_t k = c->step->attr.i[0];
    const lop_dtype own = (lop_dtype)c->step->attr.i[1];
    double least, most;
    int64_t near = 0;
    lop_pair_store(c->a[0], lop_pair_load(c->a[1]));
    if (!range_of(d, &least, &most) || !isfinite(fact[TRACE])) return LOP_SINGULAR;
    if (k == 1) return LOP_OK;
    if (fact[TRACE] > most_trace(k, own) &&
        !(scaled_trace(k, own, fact + FACTS, c->scratch) <= most_trace(k, own)))
        return LOP_SINGULAR;
    for (int64_t i = 0; i < d->m; i++)
        near += fabs(creal(lop_get(d->dt, d->p, i * d->rs))) <= 10 * least;
    return near > k ? LOP_OK : LOP_SINGULAR;
}
static lop_status check_det(lop_emit *e, const lop_node *self, int value, int mask) {
    lop_status st;
    int in[3] = {lop_emit_value(e, self->child[0]), -1, lop_emit_value(e, self->child[3])};
    in[1] = emit_facts(e, self->child[1], self->child[2], &st);
    if (in[1] < 0) return st;
    lop_step *s = lop_emit_step(e, "accept", run_accept_det, value, 3, in);
    if (!s) return LOP_NOMEM;
    s->attr.i[0] = lop_cols(self->child[2]);
    const bool whole = lop_is_complex(self->child[2]->dtype);
    s->scratch = lop_factor_bytes(s->attr.i[0], whole ? LOP_c128 : LOP_f64);
    s->attr.i[1] = self->child[2]->dtype;
    s->fail = mask;
    s->flags = LOP_STEP_QUIET | LOP_STEP_INPLACE;
    return LOP_OK;
}
static lop_status infer_det(lop_node *n, lop_err *err) {
    const lop_node *det = n->child[0], *alt = n->child[4];
    if (!lop_node_is_pair(det) || !lop_node_is_pair(alt) || det->dtype != alt->dtype ||
        !lop_shape_equal(&det->shape, &alt->shape) || !parts_fit(n, 1, -1, n->child[1]->dtype))
        return lop_fail(err, LOP_DIM, "the branches of %s differ", n->op->name);
    return lop_pair_infer(n, &det->shape, 1, det->dtype);
}
const lop_op lop_op_checked_update_det = {
    LOP_NAMED(checked_update_det), .cls = LOP_ARRAY,  .min = 5, .max = 5, .infer = infer_det,
    .lower = lop_lower_arms,       .check = check_det};
