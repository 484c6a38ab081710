/* op_det.c: determinants as scaled products, which neither over- nor underflow on their way.
 *
 * A value here is a pair, a vector of two: mantissa and exponent of 2, det = mantissa 2^exponent.
 * The larger of the mantissa's parts lies in [0.5, 1), or is 0, inf or NaN with exponent 0. Pairs
 * are float64 (complex128 for complex) whatever the operator's dtype: exponents stay integers, and
 * the product of the pivots costs no more rounding than they carry.
 *
 * scaledet is the action; the rules take it apart into products, powers and conjugates of pairs,
 * and what they cannot goes by LU of the dense form (2/3 n^3, the factor kept and shared with
 * solves) or Cholesky where declared (1/3 n^3). Relative error of a product of n factors: n u. */
#include "factor.h"
#include "kernels/k_blas.h"
#include "kernels/kernels.h"

#include <math.h>

/* -- pairs */

typedef struct pair {
    double re, im, e;
} pair;

static const double LOW = 0x1p-500, HIGH = 0x1p500; /* products of two inside are normal numbers */

static double larger(double re, double im) { /* NaN wins */
    double a = fabs(re), b = fabs(im);
    return a >= b || a != a ? a : b;
}

/* The larger part into [0.5, 1), exactly; 0, inf and NaN get exponent 0. */
static pair scaled(pair a) {
    int k;
    double top = larger(a.re, a.im);
    if (!(top > 0 && top <= 0x1.fffffffffffffp1023)) return (pair){a.re, a.im, 0};
    (void)frexp(top, &k);
    return (pair){ldexp(a.re, -k), ldexp(a.im, -k), a.e + k};
}

/* Of scaled pairs; `whole` is false for real numbers (inf times an imaginary 0 would be NaN). */
static pair times(pair a, pair b, bool whole) {
    if (!whole) return scaled((pair){a.re * b.re, 0, a.e + b.e});
    return scaled((pair){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re, a.e + b.e});
}

static pair one(void) { return (pair){0.5, 0, 1}; }
static bool is_zero(pair a) { return a.re == 0 && a.im == 0; }

/* a^p, p >= 0, by squaring. */
static pair power(pair a, int64_t p, bool whole) {
    pair all = one();
    for (; p > 0; p >>= 1) {
        if (p & 1) all = times(all, a, whole);
        if (p > 1) a = times(a, a, whole);
    }
    return all;
}

static pair reciprocal(pair a, bool whole) {
    if (!whole) return scaled((pair){1 / a.re, 0, -a.e});
    double size = a.re * a.re + a.im * a.im; /* of a scaled pair: at least 1/4 */
    return scaled((pair){a.re / size, -a.im / size, -a.e});
}

static pair load(const lop_mat *a) {
    if (a->dt == LOP_f64) return (pair){((double *)a->p)[0], 0, ((double *)a->p)[a->rs]};
    const double _Complex *v = a->p;
    return (pair){creal(v[0]), cimag(v[0]), creal(v[a->rs])};
}
static void store(const lop_mat *y, pair a) {
    lop_set(y->dt, y->p, 0, CMPLX(a.re, a.im));
    lop_set(y->dt, y->p, y->rs, a.e);
}

/* all *= u, both moderate or rescaled first. */
static pair onto(pair all, pair u, bool whole) {
    double top = larger(u.re, u.im);
    if (!(top >= LOW && top <= HIGH)) u = scaled(u);
    pair y = {all.re * u.re, 0, all.e + u.e};
    if (whole) {
        y.re -= all.im * u.im;
        y.im = all.re * u.im + all.im * u.re;
    }
    top = larger(y.re, y.im);
    return top >= LOW && top <= HIGH ? y : scaled(y);
}

static double real_at(const lop_mat *v, int64_t i) {
    return v->dt == LOP_f64 ? ((const double *)v->p)[i * v->rs]
                            : (double)((const float *)v->p)[i * v->rs];
}

/* The product of the elements of a vector, any stride. Rescaled only where it must be; tame real
 * numbers go by fours, which do not wait for one another. */
static pair product(const lop_mat *v) {
    pair all = {1, 0, 0};
    int64_t i = 0;
    for (; !lop_is_complex(v->dt) && i + 4 <= v->m; i += 4) {
        double u[4];
        bool tame = true;
        for (int j = 0; j < 4; j++) {
            u[j] = real_at(v, i + j);
            tame = tame && fabs(u[j]) >= 0x1p-120 && fabs(u[j]) <= 0x1p120;
        }
        if (tame) {
            all = onto(all, (pair){(u[0] * u[1]) * (u[2] * u[3]), 0, 0}, false);
            continue;
        }
        for (int j = 0; j < 4; j++) all = onto(all, (pair){u[j], 0, 0}, false);
    }
    for (; i < v->m; i++) {
        double _Complex z = lop_get(v->dt, v->p, i * v->rs);
        all = onto(all, (pair){creal(z), cimag(z), 0}, lop_is_complex(v->dt));
    }
    return scaled(all);
}

/* -- shapes */

static lop_dtype pair_dtype(lop_dtype dt) { return lop_is_complex(dt) ? LOP_c128 : LOP_f64; }

/* A pair for each batch element of `shape`, whose last `core` dimensions are not batch. */
static lop_status as_pair(lop_node *n, const lop_shape *shape, int core, lop_dtype dt) {
    n->shape = *shape;
    n->shape.ndim += 1 - core;
    n->shape.dim[n->shape.ndim - 1] = 2;
    n->core = 1;
    n->dtype = pair_dtype(dt);
    n->weak = LOP_STRONG;
    return LOP_OK;
}
static bool is_pair(const lop_node *a) {
    return a->core == 1 && lop_cols(a) == 2 && (a->dtype == LOP_f64 || a->dtype == LOP_c128);
}

/* attr.i[3]: the dtype + 1 in which to factor (0: the operator's own; integers are float64). */
static lop_status infer_scaledet(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0];
    char t[128];
    if (a->op->cls != LOP_OPERATOR) return lop_fail(err, LOP_DIM, "scaledet takes an operator");
    if (!lop_is_square(a))
        return lop_fail(err, LOP_SINGULAR, "Last 2 dimensions of the array must be square: %s",
                        lop_shape_text(&a->shape, t, sizeof t));
    if (n->attr.i[3] < 0 || n->attr.i[3] > LOP_NDTYPE) return lop_fail(err, LOP_DTYPE, NULL);
    lop_dtype dt = n->attr.i[3] ? (lop_dtype)(n->attr.i[3] - 1) : a->dtype;
    if (!lop_is_blas(dt)) dt = LOP_f64;
    if (lop_is_complex(a->dtype) && !lop_is_complex(dt))
        return lop_fail(err, LOP_DTYPE, "scaledet of a %s operator cannot be computed in %s",
                        lop_dtype_name(a->dtype), lop_dtype_name(dt));
    n->attr.i[3] = (int64_t)dt + 1;
    return as_pair(n, &a->shape, 2, dt);
}
const lop_op lop_op_scaledet = {LOP_NAMED(scaledet), .cls = LOP_ACTION,      .min = 1, .max = 1,
                                .ints = 4,           .infer = infer_scaledet};

/* -- pairs made of pairs */

/* Casts the children to the node's dtype and emits run on them. */
static lop_status emit_pair(lop_emit *e, const lop_node *self, int out, lop_run run) {
    int in[2] = {-1, -1};
    lop_status st = LOP_OK;
    for (int i = 0; i < self->n; i++) {
        in[i] = lop_emit_cast(e, lop_emit_value(e, self->child[i]), self->dtype, &st);
        if (in[i] < 0) return st;
    }
    lop_step *s = lop_emit_step(e, self->op->name, run, out, self->n, in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    return LOP_OK;
}
static lop_status two_pairs(const lop_node *n, lop_err *err) {
    for (int i = 0; i < n->n; i++)
        if (!is_pair(n->child[i]))
            return lop_fail(err, LOP_DIM, "%s takes pairs of mantissa and exponent", n->op->name);
    return LOP_OK;
}

/* detmul: of two pairs. */
static lop_status infer_detmul(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0], *b = n->child[1];
    lop_shape batch;
    lop_status st = two_pairs(n, err);
    if (st == LOP_OK) st = lop_shape_batch(&a->shape, 1, &b->shape, 1, &batch, err);
    return st == LOP_OK ? as_pair(n, &batch, 0, lop_promote(a->dtype, b->dtype)) : st;
}
static lop_status run_detmul(const lop_call *c) {
    store(c->a[0], times(load(c->a[1]), load(c->a[2]), c->a[0]->dt == LOP_c128));
    return LOP_OK;
}
static lop_status lower_detmul(lop_emit *e, const lop_node *self, int out) {
    return emit_pair(e, self, out, run_detmul);
}
const lop_op lop_op_detmul = {LOP_NAMED(detmul), .cls = LOP_ARRAY,      .min = 2,
                              .max = 2,          .infer = infer_detmul, .lower = lower_detmul};

/* detpow: to the power attr.i[0]; a negative one of zero is a singular inverse. */
static lop_status infer_detpow(lop_node *n, lop_err *err) {
    lop_status st = two_pairs(n, err);
    if (n->attr.i[0] < -INT64_MAX) return lop_fail(err, LOP_OVERFLOW, NULL);
    return st == LOP_OK ? as_pair(n, &n->child[0]->shape, 1, n->child[0]->dtype) : st;
}
static lop_status run_detpow(const lop_call *c) {
    bool whole = c->a[0]->dt == LOP_c128;
    int64_t p = c->step->attr.i[0];
    pair a = load(c->a[1]);
    if (p < 0 && is_zero(a))
        return lop_fail(c->err, LOP_SINGULAR, "Singular matrix: its determinant is exactly zero");
    if (p < 0) a = reciprocal(a, whole);
    store(c->a[0], power(a, p < 0 ? -p : p, whole));
    return LOP_OK;
}
static lop_status lower_detpow(lop_emit *e, const lop_node *self, int out) {
    return emit_pair(e, self, out, run_detpow);
}
const lop_op lop_op_detpow = {
    LOP_NAMED(detpow),     .cls = LOP_ARRAY,     .min = 1, .max = 1, .ints = 1,
    .infer = infer_detpow, .lower = lower_detpow};

/* detscale: c^n times a pair, c the coefficient, n attr.i[3]. */
static lop_status infer_detscale(lop_node *n, lop_err *err) {
    lop_status st = two_pairs(n, err);
    if (st != LOP_OK) return st;
    if (n->attr.i[3] < 0) return lop_fail(err, LOP_DIM, "detscale of a negative size");
    bool whole =
        n->attr.i[1] ? n->attr.i[1] == LOP_WEAK_COMPLEX : lop_is_complex((lop_dtype)n->attr.i[2]);
    return as_pair(n, &n->child[0]->shape, 1, whole ? LOP_c128 : n->child[0]->dtype);
}
static lop_status run_detscale(const lop_call *c) {
    const lop_attr *a = &c->step->attr;
    bool whole = c->a[0]->dt == LOP_c128;
    pair s = power(scaled((pair){a->re, a->im, 0}), a->i[3], whole);
    store(c->a[0], times(s, load(c->a[1]), whole));
    return LOP_OK;
}
static lop_status lower_detscale(lop_emit *e, const lop_node *self, int out) {
    return emit_pair(e, self, out, run_detscale);
}
const lop_op lop_op_detscale = {
    LOP_NAMED(detscale),     .cls = LOP_ARRAY,       .min = 1, .max = 1, .coef = true,
    .infer = infer_detscale, .lower = lower_detscale};

/* detconst: 0 or 1 (attr.i[0]), no children. */
static lop_status infer_detconst(lop_node *n, lop_err *err) {
    return is_pair(n) && !n->weak ? LOP_OK : lop_fail(err, LOP_DIM, "detconst is a pair");
}
static lop_status run_detconst(const lop_call *c) {
    store(c->a[0], c->step->attr.i[0] ? one() : (pair){0, 0, 0});
    return LOP_OK;
}
static lop_status lower_detconst(lop_emit *e, const lop_node *self, int out) {
    return emit_pair(e, self, out, run_detconst);
}
const lop_op lop_op_detconst = {LOP_NAMED(detconst), .cls = LOP_ARRAY, .ints = 1,
                                .infer = infer_detconst, .lower = lower_detconst};

/* -- pairs made of vectors and matrices */

static lop_status infer_of_array(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0];
    bool vector = n->op == &lop_op_detvec;
    if (a->core != (vector ? 1 : 2) || !lop_is_blas(a->dtype) || (!vector && !lop_is_square(a)))
        return lop_fail(err, LOP_DIM, "%s takes %s of floats", n->op->name,
                        vector ? "a vector" : "a square matrix");
    return as_pair(n, &a->shape, a->core, a->dtype);
}

/* detvec: the product of a vector's elements. */
static lop_status run_detvec(const lop_call *c) {
    store(c->a[0], product(c->a[1]));
    return LOP_OK;
}
static lop_status lower_detvec(lop_emit *e, const lop_node *self, int out) {
    int in = lop_emit_value(e, self->child[0]);
    lop_step *s = lop_emit_step(e, "detvec", run_detvec, out, 1, &in);
    if (!s) return LOP_NOMEM;
    int64_t n, batch;
    lop_slot_sizes(e, in, &n, NULL, &batch);
    s->flops = (double)n * (double)batch;
    return LOP_OK;
}
const lop_op lop_op_detvec = {LOP_NAMED(detvec), .cls = LOP_ARRAY,        .min = 1,
                              .max = 1,          .infer = infer_of_array, .lower = lower_detvec};

/* The diagonal of a column-major n x n matrix, as a vector. */
static lop_mat diagonal_of(void *p, int64_t n, lop_dtype dt) {
    return (lop_mat){p, n, 1, n + 1, 1, dt};
}
static pair of_lu(void *p, const int32_t *ipiv, int64_t n, lop_dtype dt) {
    lop_mat d = diagonal_of(p, n, dt);
    pair a = product(&d);
    bool odd = false;
    for (int64_t i = 0; i < n; i++) odd ^= ipiv[i] != (int32_t)(i + 1);
    return odd ? (pair){-a.re, -a.im, a.e} : a;
}

/* detlu: by LU with row exchanges. attr of the step: n, dtype. */
static lop_status run_detlu(const lop_call *c) {
    int64_t n = c->step->attr.i[0];
    lop_dtype dt = (lop_dtype)c->step->attr.i[1];
    char *f = c->a[1]->p;
    store(c->a[0], of_lu(f, (int32_t *)(void *)(f + lop_factor_bytes(n, dt)), n, dt));
    return LOP_OK;
}
static lop_status lower_detlu(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    const lop_node *a = self->child[0];
    int f = lop_emit_lu(e, lop_rows(a), a->dtype, lop_emit_value(e, a), &st);
    if (f < 0) return st;
    lop_step *s = lop_emit_step(e, "detlu", run_detlu, out, 1, &f);
    if (!s) return LOP_NOMEM;
    s->attr.i[0] = lop_rows(a);
    s->attr.i[1] = (int64_t)a->dtype;
    return LOP_OK;
}
const lop_op lop_op_detlu = {LOP_NAMED(detlu), .cls = LOP_ARRAY,        .min = 1,
                             .max = 1,         .infer = infer_of_array, .lower = lower_detlu};

/* detchol: declared positive definite, so Cholesky; where that fails, element by element, LU. */
static lop_status run_detchol(const lop_call *c) {
    const lop_mat *a = c->a[1];
    lop_mat f = {c->scratch, a->m, a->m, 1, a->m > 0 ? a->m : 1, a->dt},
            upper = {a->p, a->n, a->m, a->cs, a->rs, a->dt}, d = diagonal_of(f.p, a->m, a->dt);
    int64_t info = 0;
    lopk_conj(&f, &upper); /* as solves do: the upper triangle is read */
    lop_status st = lopk_potrf(&f, &info);
    if (st != LOP_OK) return st;
    pair l = product(&d);
    store(c->a[0], times(l, l, lop_is_complex(a->dt)));
    return LOP_OK;
}
/* Of many small ones: the diagonal of L is known. */
static lop_status run_detroots(const lop_call *c) {
    for (int64_t e = 0; e <= c->more; e++) {
        lop_mat y = *c->a[0], v = *c->a[1];
        y.p = (char *)y.p + e * c->y_step * (int64_t)lop_dtype_size(y.dt);
        v.p = (char *)v.p + e * c->x_step * (int64_t)lop_dtype_size(v.dt);
        pair l = product(&v);
        store(&y, times(l, l, false));
    }
    return LOP_OK;
}
static lop_status run_detlu_direct(const lop_call *c) {
    const lop_mat *a = c->a[1];
    lop_mat f = {c->scratch, a->m, a->m, 1, a->m > 0 ? a->m : 1, a->dt};
    int32_t *ipiv = (int32_t *)(void *)((char *)c->scratch + lop_factor_bytes(a->m, a->dt));
    int64_t info = 0;
    lopk_copy(&f, a);
    lop_status st = lopk_getrf(&f, ipiv, &info);
    if (st != LOP_OK && st != LOP_SINGULAR) return st;
    store(c->a[0], of_lu(f.p, ipiv, a->m, a->dt));
    return LOP_OK;
}
static lop_status lower_detchol(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    int64_t n = lop_rows(self->child[0]), all, batch;
    lop_dtype dt = self->child[0]->dtype;
    int in = lop_emit_value(e, self->child[0]);
    if (!lop_mul_ok(n, n, &all) || !lop_mul_ok(all, 16, &all))
        return lop_fail(lop_emit_err(e), LOP_OVERFLOW,
                        "the factor of a %lld x %lld matrix is too large", (long long)n,
                        (long long)n);
    int mask = lop_emit_mask(e, out, &st);
    if (mask < 0) return st;
    lop_slot_sizes(e, in, NULL, NULL, &batch);
    const bool many = lop_stack_fits(n, dt);
    int of = many ? lop_emit_stack_roots(e, n, dt, in, mask, &st) : in;
    if (of < 0) return st;
    lop_step *s = lop_emit_step(e, "detchol", many ? run_detroots : run_detchol, out, 1, &of);
    if (!s) return LOP_NOMEM;
    if (many) {
        s->flags = LOP_STEP_GROUP;
    } else {
        s->fail = mask;
        s->scratch = lop_factor_bytes(n, dt);
        s->flops = (double)n * (double)n * (double)n / 3 * (double)batch;
    }
    s = lop_emit_step(e, "detlu", run_detlu_direct, out, 1, &in);
    if (!s) return LOP_NOMEM;
    s->when = mask;
    s->when_set = true;
    s->scratch = lop_factor_bytes(n, dt) + (size_t)n * 4;
    return LOP_OK;
}
const lop_op lop_op_detchol = {LOP_NAMED(detchol), .cls = LOP_ARRAY,        .min = 1,
                               .max = 1,           .infer = infer_of_array, .lower = lower_detchol};

/* detall: the product of the pairs along the last batch dimension. */
static lop_status infer_detall(lop_node *n, lop_err *err) {
    lop_status st = two_pairs(n, err);
    lop_shape shape = n->child[0]->shape;
    if (st != LOP_OK) return st;
    if (shape.ndim < 2) return lop_fail(err, LOP_DIM, "detall takes a batch of pairs");
    shape.dim[--shape.ndim - 1] = 2;
    return as_pair(n, &shape, 1, n->child[0]->dtype);
}
/* Here that dimension is one of the matrix: it is seen as p x 2. */
static lop_status run_detall(const lop_call *c) {
    const lop_mat *a = c->a[1];
    const bool whole = c->a[0]->dt == LOP_c128;
    pair all = one();
    for (int64_t i = 0; i < a->m; i++) {
        lop_mat row = {
            (char *)a->p + i * a->rs * (int64_t)lop_dtype_size(a->dt), 2, 1, a->cs, 1, a->dt};
        all = times(all, load(&row), whole);
    }
    store(c->a[0], all);
    return LOP_OK;
}
static lop_status lower_detall(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    const lop_node *a = self->child[0];
    int in = lop_emit_value(e, a), seen = lop_emit_temp(e, a->dtype, 2, &a->shape, &st);
    if (seen < 0) return st;
    if (!lop_emit_alias(e, seen, in)) return LOP_INTERNAL;
    return lop_emit_step(e, "detall", run_detall, out, 1, &seen) ? LOP_OK : LOP_NOMEM;
}
const lop_op lop_op_detall = {LOP_NAMED(detall), .cls = LOP_ARRAY,      .min = 1,
                              .max = 1,          .infer = infer_detall, .lower = lower_detall};
