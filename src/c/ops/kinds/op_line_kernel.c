/* op_line_kernel.c: what makes a Matern kernel of points on a line quasi-separable: P^T Q P, with P
 * the order of the points and Q of generators (Hartikainen and Sarkka 2010, MLSP).
 *
 *   line_order       of points x (n x 1): the indices that sort them, stable; NaN last.
 *                    O(n) where they are sorted, else O(n log n). Of several sets of points those
 *                    of the first; where another set differs the fast branch is left.
 *   line_alike       children value, alt: what is made of such an order, and the safer way.
 *   line_generators  children x, order and, as attr.i[2] says (1, 2), variance and length scale:
 *                    d (n), p, q (n x J) or a (n x J^2) of Q, attr.i[1] of 0 to 3, in double
 *                    precision; J = attr.i[0] + 1, of smoothness attr.i[0] + 1/2.
 *
 * All generators are products of numbers that are not negative, so that nothing cancels: an entry
 * of Q is within some |i - j| units of what the kernel's formula gives. A point that is not finite
 * makes its element of d NaN. */
#include "expr/op.h"
#include "ops/shared/factor.h"
#include "kernels/common/kernels.h"
#include "kernels/quasiseparable/k_quasi.h"

#include <math.h>
#include <string.h>

static bool are_points(const lop_node *x) {
    return x->op->cls != LOP_OPERATOR && x->core == 2 && x->shape.ndim == 2 && lop_cols(x) == 1;
}

/* -- line_order */

static lop_status infer_order(lop_node *n, lop_err *err) {
    const lop_node *x = n->child[0];
    for (int i = 0; i < n->n; i++)
        if (!are_points(n->child[i]) || lop_rows(n->child[i]) != lop_rows(x))
            return lop_fail(err, LOP_DIM, "line_order takes points on a line");
    n->shape = (lop_shape){.ndim = 1, .dim = {lop_rows(x)}};
    n->core = 1;
    n->dtype = LOP_i64;
    return LOP_OK;
}

/* Does a stand before b? NaN are last. */
static bool is_before(double a, double b) { return a < b || (b != b && a == a); }

/* Merges runs of `width` of `from` into `to`. */
static void merge(int64_t *to, const int64_t *from, const double *t, int64_t n, int64_t width) {
    for (int64_t at = 0; at < n; at += 2 * width) {
        const int64_t middle = at + width < n ? at + width : n,
                      end = middle + width < n ? middle + width : n;
        int64_t i = at, j = middle;
        for (int64_t k = at; k < end; k++)
            to[k] = j == end || (i < middle && !is_before(t[from[j]], t[from[i]])) ? from[i++]
                                                                                   : from[j++];
    }
}
static bool same_points(const lop_mat *x, const lop_mat *y) {
    for (int64_t i = 0; i < x->m; i++)
        if (((const double *)x->p)[i * x->rs] != ((const double *)y->p)[i * y->rs]) return false;
    return true;
}
/* a: order, points (f64), more of them. Scratch: n numbers and 2 n indices. */
static lop_status run_order(const lop_call *c) {
    const lop_mat *y = c->a[0], *x = c->a[1];
    const int64_t n = x->m;
    double *t = c->scratch;
    int64_t *a = (int64_t *)(t + n), *b = a + n;
    bool sorted = true;
    for (int i = 2; i < c->step->n; i++)
        if (!same_points(x, c->a[i])) return LOP_SINGULAR;
    for (int64_t i = 0; i < n; i++) {
        t[i] = ((const double *)x->p)[i * x->rs];
        a[i] = i;
        sorted = sorted && (i == 0 || !is_before(t[i], t[i - 1]));
    }
    for (int64_t width = 1; !sorted && width < n; width *= 2) {
        merge(b, a, t, n, width);
        int64_t *other = a;
        a = b;
        b = other;
    }
    for (int64_t i = 0; i < n; i++) ((int64_t *)y->p)[i * y->rs] = a[i];
    return LOP_OK;
}
static lop_status lower_order(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    const double n = (double)lop_cols(self);
    int64_t bytes;
    int in[LOP_MOST_POINTS];
    for (int i = 0; i < self->n; i++) {
        in[i] = lop_emit_cast(e, lop_emit_value(e, self->child[i]), LOP_f64, &st);
        if (in[i] < 0) return st;
    }
    if (!lop_mul_ok(lop_cols(self), 24, &bytes))
        return lop_fail(lop_emit_err(e), LOP_OVERFLOW, "too many points");
    lop_step *s = lop_emit_step(e, "line-order", run_order, out, self->n, in);
    if (!s) return LOP_NOMEM;
    s->scratch = (size_t)bytes;
    s->flops = 2 * n;
    return LOP_OK;
}
const lop_op lop_op_line_order = {
    LOP_NAMED(line_order),  .cls = LOP_ARRAY,     .min = 1,
    .max = LOP_MOST_POINTS, .infer = infer_order, .lower = lower_order};

/* -- line_alike */

static lop_status infer_alike(lop_node *n, lop_err *err) {
    const lop_node *value = n->child[0], *alt = n->child[1];
    if (value->core != alt->core || value->dtype != alt->dtype ||
        !lop_shape_equal(&value->shape, &alt->shape))
        return lop_fail(err, LOP_DIM, "the branches of line_alike differ");
    n->shape = value->shape;
    n->core = value->core;
    n->dtype = value->dtype;
    return LOP_OK;
}
static lop_status run_accept(const lop_call *c) {
    lopk_copy(c->a[0], c->a[1]);
    return LOP_OK;
}
static lop_status check_alike(lop_emit *e, const lop_node *self, int value, int mask) {
    const int in = lop_emit_value(e, self->child[0]);
    lop_step *s = lop_emit_step(e, "accept", run_accept, value, 1, &in);
    if (!s) return LOP_NOMEM;
    s->fail = mask;
    s->flags = LOP_STEP_QUIET;
    return LOP_OK;
}
const lop_op lop_op_line_alike = {
    LOP_NAMED(line_alike),   .cls = LOP_ARRAY,    .min = 2, .max = 2, .infer = infer_alike,
    .lower = lop_lower_arms, .check = check_alike};

/* -- line_generators */

enum { D, P, Q, A };
enum { VARIANCE = 1, LENGTH = 2, ROWS = 128 };

static lop_status infer_generators(lop_node *n, lop_err *err) {
    const lop_node *x = n->child[0], *order = n->child[1];
    const int64_t *i = n->attr.i, J = i[0] + 1;
    const int numbers = !!(i[2] & VARIANCE) + !!(i[2] & LENGTH);
    if (!are_points(x) || order->core != 1 || order->dtype != LOP_i64 ||
        lop_cols(order) != lop_rows(x) || i[0] < 0 || i[0] > 2 || i[1] < D || i[1] > A ||
        i[2] < 0 || i[2] > 3 || n->n != 2 + numbers)
        return lop_fail(err, LOP_DIM, "line_generators: attributes and children do not fit");
    for (int c = 2; c < n->n; c++)
        if (n->child[c]->op->cls == LOP_OPERATOR || n->child[c]->shape.ndim > 1 ||
            (n->child[c]->core == 1 && lop_cols(n->child[c]) != 1))
            return lop_fail(err, LOP_DIM, "line_generators takes numbers");
    n->shape = (lop_shape){.ndim = 1, .dim = {lop_rows(x)}};
    if (i[1] != D) n->shape.dim[n->shape.ndim++] = i[1] == A ? J * J : J;
    n->core = i[1] == D ? 1 : 2;
    n->dtype = LOP_f64;
    return LOP_OK;
}

/* The generators of ROWS points, the first of which is the last of those before: `which` of them
 * from the row after it on. */
static void rows_of(const lop_call *c, const double *number, const double *t, int64_t rows,
                    int64_t skip, double *to) {
    const int64_t order = c->step->attr.i[0], which = c->step->attr.i[1], J = order + 1;
    double all[ROWS * (1 + 3 + 3 + 9)], *g[4] = {all, all + ROWS, all + 4 * ROWS, all + 7 * ROWS};
    static const int64_t width[4][3] = {{1, 1, 1}, {1, 2, 3}, {1, 2, 3}, {1, 4, 9}};
    (void)lopk_quasi_covariance((int)order, number, rows, t, g[D], g[P], g[Q], g[A]);
    const int64_t w = width[which][J - 1];
    memcpy(to, g[which] + skip * w, (size_t)((rows - skip) * w) * sizeof(double));
}
/* a: the generator, points and order, numbers. */
static lop_status run_generators(const lop_call *c) {
    const lop_mat *y = c->a[0], *x = c->a[1], *order = c->a[2];
    const int64_t *at = c->step->attr.i, n = x->m, w = y->n;
    int next = 3;
    const double variance = at[2] & VARIANCE ? *(const double *)c->a[next++]->p : 1,
                 length = at[2] & LENGTH ? *(const double *)c->a[next++]->p : 1,
                 number[4] = {variance, isnan(length) ? 0 : sqrt(2 * (double)at[0] + 1) / length};
    double t[ROWS];
    if (length <= 0)
        return lop_fail(c->err, LOP_DOMAIN,
                        "Kernel(length_scale=...): expected positive numbers, got %g", length);
    for (int64_t from = 0; from < n;) {
        const int64_t skip = from > 0, rows = n - from + skip < ROWS ? n - from + skip : ROWS;
        for (int64_t i = 0; i < rows; i++) {
            const int64_t row = ((const int64_t *)order->p)[(from - skip + i) * order->rs];
            t[i] = ((const double *)x->p)[row * x->rs];
        }
        double *to = (double *)y->p + from * w;
        /* NaN would stop the recursion: of times, which may be infinite, and of the length it is
         * marked in d */
        for (int64_t i = 0; i < rows && at[1] != D; i++)
            if (!isfinite(t[i])) t[i] = i > 0 ? t[i - 1] : 0;
        if (at[1] != D) rows_of(c, number, t, rows, skip, to);
        for (int64_t i = skip; i < rows && at[1] == D; i++)
            to[i - skip] = isfinite(t[i]) && !isnan(length) ? variance : NAN;
        from += rows - skip;
    }
    return LOP_OK;
}
static lop_status lower_generators(lop_emit *e, const lop_node *self, int out) {
    int in[4];
    lop_status st;
    for (int i = 0; i < self->n; i++) {
        in[i] =
            lop_emit_cast(e, lop_emit_value(e, self->child[i]), i == 1 ? LOP_i64 : LOP_f64, &st);
        if (in[i] < 0) return st;
    }
    lop_emit_c_order(e, out);
    lop_step *s = lop_emit_step(e, "line-generators", run_generators, out, self->n, in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->flops =
        lop_slot_elements(e, out) +
        (self->attr.i[1] == P || self->attr.i[1] == A ? 20 * (double)lop_rows(self->child[0]) : 0);
    return LOP_OK;
}
const lop_op lop_op_line_generators = {
    LOP_NAMED(line_generators), .cls = LOP_ARRAY,         .min = 2, .max = 4, .ints = 3,
    .infer = infer_generators,  .lower = lower_generators};
