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
 * Of a definite T the left side is at most |T^-1|. Cost: O(n).
 *
 * attr.i[1]: of a Hankel matrix H = T J, with columns of H^-1 = J T^-1. There
 *
 *   B[i, j] = B[i + 1, j - 1] + (x_i y_j - y_(i+1) x_(j-1)) / x_(n-1),   x_-1 = y_n = 0,
 *
 * goes from one antidiagonal's end along it, so that each element of a diagonal is a sum of its
 * own. Cost: n^2 flops, where the solves for x and y take as many. */
#include "expr/op.h"
#include "kernels/common/kernels.h"
#include "ops/shared/column_norm.h"
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

/* -- Hankel: x and y with a zero behind, and both from the end with one behind */

static double dot(int64_t n, const double *a, const double *b) {
    double s[4] = {0, 0, 0, 0};
    int64_t l = 0;
    for (; l + 4 <= n; l += 4)
        for (int t = 0; t < 4; t++) s[t] += a[l + t] * b[l + t];
    for (; l < n; l++) s[0] += a[l] * b[l];
    return (s[0] + s[1]) + (s[2] + s[3]);
}
static double _Complex dot_complex(int64_t n, const double _Complex *a, const double _Complex *b) {
    double re = 0, im = 0;
    for (int64_t l = 0; l < n; l++) {
        const double ar = creal(a[l]), ai = cimag(a[l]), br = creal(b[l]), bi = cimag(b[l]);
        re += ar * br - ai * bi;
        im += ar * bi + ai * br;
    }
    return CMPLX(re, im);
}

static void hankel_diagonal(const lop_call *c, double _Complex first) {
    const lop_mat *d = c->a[0], *x = c->a[1], *y = c->a[2];
    const int64_t n = x->m, k = c->step->attr.i[0], i0 = k < 0 ? -k : 0, j0 = k > 0 ? k : 0;
    const bool whole = lop_is_complex(x->dt);
    double *v[4]; /* x, y, and both from the end: n + 1 each, a zero in the last place */
    double _Complex *z[4];
    for (int w = 0; w < 4; w++) {
        v[w] = (double *)c->scratch + w * (n + 1);
        z[w] = (double _Complex *)c->scratch + w * (n + 1);
        for (int64_t i = 0; i <= n; i++) {
            const lop_mat *from = w % 2 ? y : x;
            double _Complex e = i == n ? 0 : at(from, w < 2 ? i : n - 1 - i);
            if (w < 2) e /= first; /* products of both may be below the range */
            if (whole)
                z[w][i] = e;
            else
                v[w][i] = creal(e);
        }
    }
    for (int64_t p = 0; p < d->m; p++) {
        const int64_t i = i0 + p, j = j0 + p, terms = (n - 1 - i < j ? n - 1 - i : j) + 1;
        double _Complex sum;
        if (whole)
            sum = dot_complex(terms, z[0] + i, z[3] + n - 1 - j) -
                  dot_complex(terms, z[1] + i + 1, z[2] + n - j);
        else
            sum = dot(terms, v[0] + i, v[3] + n - 1 - j) - dot(terms, v[1] + i + 1, v[2] + n - j);
        lop_set(d->dt, d->p, p * d->rs, sum);
    }
}

static lop_status run_invdiag(const lop_call *c) {
    const lop_mat *d = c->a[0], *x = c->a[1], *y = c->a[2];
    const int64_t n = x->m, k = c->step->attr.i[0], i0 = k < 0 ? -k : 0, j0 = k > 0 ? k : 0;
    const bool hankel = c->step->attr.i[1] != 0;
    const double _Complex first = at(x, hankel ? n - 1 : 0);
    const double nx = lop_column_norm(x, 0), ny = lop_column_norm(y, 0),
                 sums = nx / cabs(first) * ny;
    const double nv = lop_column_norm(c->a[4], 0),
                 grown = nv > 0 ? lop_column_norm(c->a[3], 0) / nv : 0;
    const double most = fmax(grown, fmax(nx, ny));
    if (hankel) hankel_diagonal(c, first);
    double _Complex b = k < 0 ? at(x, -k) : at(y, n - 1 - k);
    for (int64_t p = 0; !hankel && 2 * p < d->m; p++) {
        const int64_t i = i0 + p, j = j0 + p;
        if (p > 0) b += at(x, i) / first * at(y, n - 1 - j) - at(y, i - 1) / first * at(x, n - j);
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
    if (self->attr.i[1]) {
        const lop_node *x = self->child[0];
        const int64_t n = lop_rows(x);
        const bool whole = lop_is_complex(x->dtype);
        int64_t bytes;
        if (!lop_mul_ok(n + 1, 4 * (whole ? 16 : 8), &bytes))
            return lop_fail(lop_emit_err(e), LOP_OVERFLOW, NULL);
        s->scratch = (size_t)bytes;
        s->flops *= (whole ? 4 : 1) * (double)n / 6;
    }
    return LOP_OK;
}
const lop_op lop_op_toeplitz_inverse_diagonal = {LOP_NAMED(toeplitz_inverse_diagonal),
                                                 .cls = LOP_ARRAY,
                                                 .min = 5,
                                                 .max = 5,
                                                 .ints = 2,
                                                 .infer = infer_invdiag,
                                                 .lower = lop_lower_arms,
                                                 .check = check_invdiag};
