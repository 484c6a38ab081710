/* op_weighted_sums.c: sums along the diagonals of T^-1 D T^-1, T Toeplitz and D a diagonal matrix:
 * what gradients of diagonals of T^-1, with weights, mean for T. With T^-1's first and last column
 * x and w, and weights g (Gohberg and Semencul 1972),
 *
 *   f = sum_i g_i (T^-1)_ii = sum_k G_k (x_k w_(n-1-k) - w_(k-1) x_(n-k)) / x_0,   G_k = sum_(i >=
 * k) g_i
 *
 * whose derivative is sum(p dx) + sum(q dw), and dx = -T^-1 dT x: so the sums are those of
 * x (T^-T p)^T + w (T^-T q)^T, by FFT, with no n x n array.
 *
 *   toeplitz_weights        children x, w, g; attr.i[0]: 0 for p, 1 for q. A column
 *   toeplitz_weighted_sums  children value, x, w, T^-T p, T^-T q, z, v, alt: value where no term
 *                           is much larger than what they sum up to, as far as the columns of the
 *                           inverse and z = T^-1 D T^-1 v of a probe v tell; else alt */
#include "projections.h"

#include "kernels/common/kernels.h"
#include "ops/shared/column_norm.h"
#include "ops/shared/factor.h"

#include <complex.h>
#include <math.h>

static bool is_column(const lop_node *a, const lop_node *like) {
    return a->core == 2 && lop_cols(a) == 1 && lop_rows(a) == lop_rows(like) &&
           a->dtype == like->dtype && !a->weak && lop_nbatch(a) == 0;
}

static lop_status infer_weights(lop_node *n, lop_err *err) {
    const lop_node *x = n->child[0], *g = n->child[2];
    if (!is_column(x, x) || lop_rows(x) < 1 || !lop_is_blas(x->dtype) ||
        !is_column(n->child[1], x) || g->core != 1 || g->weak || g->dtype != x->dtype ||
        lop_nbatch(g) || lop_cols(g) != lop_rows(x) || n->attr.i[0] < 0 || n->attr.i[0] > 1)
        return lop_fail(err, LOP_DIM, "%s takes two columns and a vector alike", n->op->name);
    n->shape = x->shape;
    n->core = 2;
    n->dtype = x->dtype;
    return LOP_OK;
}
static double _Complex at(const lop_mat *a, int64_t i) { return lop_get(a->dt, a->p, i * a->rs); }
static void put(const lop_mat *a, int64_t i, double _Complex v) {
    lop_set(a->dt, a->p, i * a->rs, v);
}

/* p_k = (G_k - G_(n-k)) w_(n-1-k) / x_0, less f / x_0 at 0; q_(n-1-k) = (G_k - G_(n-k)) x_k / x_0.
 * The difference is the sum of g over n-k > i >= k, or less that over k > i >= n-k. */
static lop_status run_weights(const lop_call *c) {
    const lop_mat *y = c->a[0], *x = c->a[1], *w = c->a[2], *g = c->a[3];
    const bool last = c->step->attr.i[0] != 0;
    const int64_t n = x->m;
    const double _Complex first = at(x, 0);
    double _Complex sum = 0, f = 0;
    for (int64_t k = n / 2; k >= 0; k--) { /* windows grow from the middle */
        const int64_t far = n - k;
        if (far - 1 > k) sum += at(g, far - 1);
        if (far > k) sum += at(g, k);
        for (int side = 0; side < 2; side++) {
            const int64_t i = side ? far : k;
            if (i >= n || (side && i == k)) continue;
            const double _Complex by = (side ? -sum : sum) / first;
            if (last)
                put(y, n - 1 - i, by * at(x, i));
            else
                put(y, i, by * at(w, n - 1 - i));
            f += by * at(w, n - 1 - i) * at(x, i);
        }
    }
    if (!last) put(y, 0, at(y, 0) - f / first);
    return LOP_OK;
}
static lop_status lower_weights(lop_emit *e, const lop_node *self, int out) {
    int in[3];
    for (int i = 0; i < 3; i++) in[i] = lop_emit_value(e, self->child[i]);
    lop_step *s = lop_emit_step(e, self->op->name, run_weights, out, 3, in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->flops = 5 * lop_slot_elements(e, out);
    return LOP_OK;
}
const lop_op lop_op_toeplitz_weights = {
    LOP_NAMED(toeplitz_weights), .cls = LOP_ARRAY,      .min = 3, .max = 3, .ints = 1,
    .infer = infer_weights,      .lower = lower_weights};

static lop_status infer_weighted(lop_node *n, lop_err *err) {
    const lop_node *value = n->child[0], *x = n->child[1], *alt = n->child[7];
    bool same = is_column(x, x) && lop_rows(x) > 0 && lop_is_blas(x->dtype) && value->core == 1 &&
                alt->core == 1 && value->dtype == x->dtype && alt->dtype == x->dtype &&
                !value->weak && !alt->weak && lop_shape_equal(&value->shape, &alt->shape);
    for (int i = 2; same && i < 7; i++) same = is_column(n->child[i], x);
    if (!same) return lop_fail(err, LOP_DIM, "the arms of %s differ", n->op->name);
    n->shape = value->shape;
    n->core = 1;
    n->dtype = value->dtype;
    return LOP_OK;
}
static lop_status run_accept(const lop_call *c) {
    const lop_mat *x = c->a[2];
    const double room = 10 * (double)x->m, first = cabs(at(x, 0)), nx = lop_column_norm(x, 0),
                 nw = lop_column_norm(c->a[3], 0), nv = lop_column_norm(c->a[7], 0),
                 grown = nv > 0 ? lop_column_norm(c->a[6], 0) / nv : 0, columns = nx / first * nw,
                 sums = nx * lop_column_norm(c->a[4], 0) + nw * lop_column_norm(c->a[5], 0);
    lopk_copy(c->a[0], c->a[1]);
    return columns <= room * fmax(nx, nw) && sums <= room * grown && isfinite(sums) ? LOP_OK
                                                                                    : LOP_SINGULAR;
}
static lop_status check_weighted(lop_emit *e, const lop_node *self, int value, int mask) {
    int in[7];
    for (int i = 0; i < 7; i++) in[i] = lop_emit_value(e, self->child[i]);
    lop_step *s = lop_emit_step(e, "accept", run_accept, value, 7, in);
    if (!s) return LOP_NOMEM;
    s->fail = mask;
    s->flags = LOP_STEP_QUIET | LOP_STEP_INPLACE;
    return LOP_OK;
}
const lop_op lop_op_toeplitz_weighted_sums = {LOP_NAMED(toeplitz_weighted_sums),
                                              .cls = LOP_ARRAY,
                                              .min = 8,
                                              .max = 8,
                                              .infer = infer_weighted,
                                              .lower = lop_lower_arms,
                                              .check = check_weighted};
