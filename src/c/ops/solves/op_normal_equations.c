/* op_normal_equations.c: normal equations, x = (R^H R)^-1 b: by Cholesky, or where R^H R is
 * numerically not definite by QR of R with column exchanges.
 *
 * normal_equations_solve   children R^H R, b, R, and w where b = R^H w: then x is the least-squares
 * solution of R x = w, whose error grows by cond(R), not by its square. Else x = P T^-1 T^-H P^T b
 * by the triangle T alone. R without full column rank is singular, as R^H R.
 *
 * Numerically not definite: Cholesky fails, or, with the columns of R scaled to length 1, so that
 * scales do not matter, |(R^H R)^-1 v| sqrt(n) >= |v| / (1000 u) for signs v: then R has a
 * condition of about 3e6 (130 in single precision), and Cholesky would leave 3 digits or less.
 *
 * Cost: n^3 / 3 and 5 n^2 once, 2 n^2 k for k columns; 2 m n^2 more where that fails. */
#include "expr/op.h"
#include "ops/shared/factor.h"
#include "kernels/dense/k_blas.h"
#include "kernels/dense/k_qr.h"
#include "kernels/common/kernels.h"

#include <complex.h>
#include <float.h>
#include <math.h>

static lop_status infer_normalsolve(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0], *b = n->child[1], *r = n->child[2],
                   *w = n->n == 4 ? n->child[3] : NULL;
    bool fits = a->core == 2 && b->core == 2 && r->core == 2 && lop_is_square(a) &&
                lop_rows(a) == lop_rows(b) && lop_rows(a) == lop_cols(r);
    if (fits && w) fits = w->core == 2 && lop_rows(w) == lop_rows(r) && lop_cols(w) == lop_cols(b);
    if (!fits)
        return lop_fail(err, LOP_DIM, "normal_equations_solve takes R^H R, b, R and w that fit");
    lop_status st = lop_shape_batch(&a->shape, 2, &b->shape, 2, &n->shape, err);
    if (st != LOP_OK) return st;
    n->shape.dim[n->shape.ndim++] = lop_rows(b);
    n->shape.dim[n->shape.ndim++] = lop_cols(b);
    lop_node_promote_inverse(n, a, b);
    if (!lop_is_blas(n->dtype))
        return lop_fail(err, LOP_DTYPE, "normal_equations_solve takes floats");
    for (int i = 2; i < n->n; i++) { /* R and w bring no batch and no dtype of their own */
        lop_shape own = n->child[i]->shape, all = n->shape, both;
        own.ndim -= 2;
        all.ndim -= 2;
        st = lop_shape_batch(&own, 0, &all, 0, &both, err);
        if (st != LOP_OK) return st;
        if (!lop_shape_equal(&both, &all) || n->child[i]->weak ||
            lop_promote(n->dtype, n->child[i]->dtype) != n->dtype)
            return lop_fail(err, LOP_DIM,
                            "normal_equations_solve: R and w have another batch or dtype");
    }
    return LOP_OK;
}

/* Two derived values: the factor that determinants share, and a number: not 0 where it is of no use
 * for solves. */
static int64_t *useless(const lop_mat *verdict) { return (int64_t *)(void *)verdict->p; }

static void scale_by(const lop_mat *x, const double *d, double c) {
    for (int64_t i = 0; i < x->m; i++) lop_set(x->dt, x->p, i, c * d[i] * lop_get(x->dt, x->p, i));
}

/* The square roots of the diagonal of L L^H. */
#define ROOTS(T, SQUARE)                                                                           \
    for (int64_t k = 0; k < n; k++) {                                                              \
        const T *column = (const T *)f->p + k * f->cs;                                             \
        for (int64_t i = k; i < n; i++) d[i] += SQUARE(column[i]);                                 \
    }
#define REAL(a) ((double)(a) * (double)(a))
#define WHOLE(a) (creal(a) * creal(a) + cimag(a) * cimag(a))
static void roots_of(const lop_mat *f, double *d) {
    const int64_t n = f->n;
    for (int64_t i = 0; i < n; i++) d[i] = 0;
    switch (f->dt) {
    case LOP_f32: ROOTS(float, REAL) break;
    case LOP_c64: ROOTS(float _Complex, WHOLE) break;
    case LOP_c128: ROOTS(double _Complex, WHOLE) break;
    default: ROOTS(double, REAL) break;
    }
    for (int64_t i = 0; i < n; i++) d[i] = sqrt(d[i]);
}

/* The norm of D (L L^H)^-1 D by two steps of its power from signs, never too large; D^2 is the
 * diagonal of L L^H. `work`: n elements, then n doubles. */
static lop_status inverse_at_least(const lop_mat *f, void *work, double *out) {
    const int64_t n = f->n;
    lop_mat x = {work, n, 1, 1, n > 0 ? n : 1, f->dt};
    double *d = (double *)(void *)((char *)work + (size_t)n * 16);
    lop_rng rng = {.state = 17};
    roots_of(f, d);
    for (int64_t i = 0; i < n; i++) lop_set(x.dt, x.p, i, lop_rng_next(&rng) & 1 ? 1 : -1);
    *out = sqrt((double)n);
    for (int turn = 0; turn < 2; turn++) {
        const double was = *out;
        double sum = 0;
        scale_by(&x, d, 1 / was);
        lop_status st = lopk_potrs(f, &x);
        if (st != LOP_OK) return st;
        scale_by(&x, d, 1);
        for (int64_t i = 0; i < n; i++) sum += pow(cabs(lop_get(x.dt, x.p, i)), 2);
        *out = sqrt(sum);
    }
    return LOP_OK;
}

/* attr.i: n, dtype. */
static lop_status run_verdict(const lop_call *c) {
    const int64_t n = c->step->attr.i[0];
    const lop_dtype dt = (lop_dtype)c->step->attr.i[1];
    const double u = dt == LOP_f32 || dt == LOP_c64 ? FLT_EPSILON / 2 : DBL_EPSILON / 2;
    const lop_mat f = lop_factor_at(c->a[1]->p, n, dt);
    double grown = 0;
    *useless(c->a[0]) = 1;
    if (lop_factor_pivots(&f)[n]) return LOP_OK; /* LU's stands there */
    lop_status st = inverse_at_least(&f, c->scratch, &grown);
    *useless(c->a[0]) = !(grown < 1e-3 / u);
    return st;
}

/* Arguments: the result, the factor, the verdict, b. */
static lop_status run_potrs(const lop_call *c) {
    const lop_mat *y = c->a[0], f = lop_factor_at(c->a[1]->p, y->m, y->dt);
    lop_mat x = {c->scratch, y->m, y->n, 1, f.cs, y->dt};
    if (*useless(c->a[2])) return LOP_SINGULAR;
    lopk_copy(&x, c->a[3]);
    lop_status st = lopk_potrs(&f, &x);
    if (st == LOP_OK) lopk_copy(y, &x);
    return st;
}

/* Arguments: the result, R, w (attr.i[0] 0) or b. */
static lop_status run_qr(const lop_call *c) {
    const lop_mat *y = c->a[0], *r = c->a[1];
    int64_t rank = 0;
    lop_status st = lopk_qr_solve(y, r, c->a[2], c->step->attr.i[0] != 0, c->scratch, &rank);
    if (st != LOP_SINGULAR) return st;
    return lop_fail(c->err, st,
                    "Singular matrix: X^H X, where X of %lld rows has numerical rank %lld of %lld",
                    (long long)r->m, (long long)rank, (long long)r->n);
}

static lop_status lower_normalsolve(lop_emit *e, const lop_node *self, int out) {
    int in[4], with_w = self->n == 4;
    int64_t n, k, batch, m = lop_rows(self->child[2]);
    lop_status st = LOP_OK;
    for (int i = 0; i < self->n; i++) {
        in[i] = lop_emit_cast(e, lop_emit_value(e, self->child[i]), self->dtype, &st);
        if (in[i] < 0) return st;
    }
    lop_slot_sizes(e, out, &n, &k, &batch);
    size_t bytes = lopk_qr_bytes(m, n, k, self->dtype);
    if (!bytes)
        return lop_fail(lop_emit_err(e), LOP_OVERFLOW, "least squares of %lld x %lld are too large",
                        (long long)m, (long long)n);
    int parts[3] = {lop_emit_cholesky(e, n, self->dtype, in[0], true, &st), -1, in[1]};
    const lop_attr attr = {.i = {n, self->dtype, 0, 0}};
    if (parts[0] >= 0)
        parts[1] = lop_emit_derived(e, "verdict", run_verdict, sizeof(int64_t), 1, parts, &attr,
                                    (size_t)n * 24, 5 * (double)n * (double)n, &st);
    int mask = parts[1] >= 0 ? lop_emit_mask(e, out, &st) : -1;
    if (mask < 0) return st;
    lop_step *s = lop_emit_step(e, "potrs", run_potrs, out, 3, parts);
    if (!s) return LOP_NOMEM;
    s->fail = mask;
    s->flags = LOP_STEP_QUIET;
    s->scratch = (size_t)n * (size_t)k * lop_dtype_size(self->dtype);
    s->flops = 2.0 * (double)n * (double)n * (double)k * (double)batch;
    const int by[2] = {in[2], in[with_w ? 3 : 1]};
    s = lop_emit_step(e, "geqp3", run_qr, out, 2, by);
    if (!s) return LOP_NOMEM;
    s->when = mask;
    s->when_set = true;
    s->attr.i[0] = !with_w;
    s->scratch = bytes;
    s->flops = 2.0 * (double)m * (double)n * (double)(n + 2 * k) * (double)batch;
    return LOP_OK;
}

const lop_op lop_op_normal_equations_solve = {
    LOP_NAMED(normal_equations_solve), .cls = LOP_ARRAY,          .min = 3, .max = 4,
    .infer = infer_normalsolve,        .lower = lower_normalsolve};
