/* op_det.c: determinants as scaled products, which neither over- nor underflow on their way.
 *
 * A value here is a pair, a vector of two: mantissa and exponent of 2, det = mantissa 2^exponent.
 * The larger of the mantissa's parts lies in [0.5, 1), or is 0, inf or NaN with exponent 0. Pairs
 * are float64 (complex128 for complex) whatever the operator's dtype: exponents stay integers, and
 * the product of the pivots costs no more rounding than they carry.
 *
 * scaledet is the action; the rules take it apart into products, powers and conjugates of pairs,
 * and what they cannot goes by LU of the dense form (2/3 n^3, the factor kept and shared with
 * solves) or Cholesky where assumed (1/3 n^3). Relative error of a product of n factors: n u. */
#include "ops/shared/scaled_pair.h"
#include "ops/shared/factor.h"
#include "kernels/dense/k_blas.h"
#include "kernels/band/k_band.h"
#include "kernels/dense/k_by_divisions.h"
#include "kernels/common/kernels.h"

#include <math.h>

/* -- the action */

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
    return lop_pair_infer(n, &a->shape, 2, dt);
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
        if (!lop_node_is_pair(n->child[i]))
            return lop_fail(err, LOP_DIM, "%s takes pairs of mantissa and exponent", n->op->name);
    return LOP_OK;
}

/* mul_det: of two pairs. */
static lop_status infer_detmul(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0], *b = n->child[1];
    lop_shape batch;
    lop_status st = two_pairs(n, err);
    if (st == LOP_OK) st = lop_shape_batch(&a->shape, 1, &b->shape, 1, &batch, err);
    return st == LOP_OK ? lop_pair_infer(n, &batch, 0, lop_promote(a->dtype, b->dtype)) : st;
}
static lop_status run_detmul(const lop_call *c) {
    lop_pair_store(c->a[0], lop_pair_times(lop_pair_load(c->a[1]), lop_pair_load(c->a[2]),
                                           c->a[0]->dt == LOP_c128));
    return LOP_OK;
}
static lop_status lower_detmul(lop_emit *e, const lop_node *self, int out) {
    return emit_pair(e, self, out, run_detmul);
}
const lop_op lop_op_mul_det = {LOP_NAMED(mul_det), .cls = LOP_ARRAY,      .min = 2,
                               .max = 2,           .infer = infer_detmul, .lower = lower_detmul};

/* pow_det: to the power attr.i[0]; a negative one of zero is a singular inverse. */
static lop_status infer_detpow(lop_node *n, lop_err *err) {
    lop_status st = two_pairs(n, err);
    if (n->attr.i[0] < -INT64_MAX) return lop_fail(err, LOP_OVERFLOW, NULL);
    return st == LOP_OK ? lop_pair_infer(n, &n->child[0]->shape, 1, n->child[0]->dtype) : st;
}
static lop_status run_detpow(const lop_call *c) {
    bool whole = c->a[0]->dt == LOP_c128;
    int64_t p = c->step->attr.i[0];
    lop_pair a = lop_pair_load(c->a[1]);
    if (p < 0 && lop_pair_is_zero(a))
        return lop_fail(c->err, LOP_SINGULAR, "Singular matrix: its determinant is exactly zero");
    if (p < 0) a = lop_pair_reciprocal(a, whole);
    lop_pair_store(c->a[0], lop_pair_power(a, p < 0 ? -p : p, whole));
    return LOP_OK;
}
static lop_status lower_detpow(lop_emit *e, const lop_node *self, int out) {
    return emit_pair(e, self, out, run_detpow);
}
const lop_op lop_op_pow_det = {
    LOP_NAMED(pow_det),    .cls = LOP_ARRAY,     .min = 1, .max = 1, .ints = 1,
    .infer = infer_detpow, .lower = lower_detpow};

/* scale_det: c^n times a pair, c the coefficient, n attr.i[3]. */
static lop_status infer_detscale(lop_node *n, lop_err *err) {
    lop_status st = two_pairs(n, err);
    if (st != LOP_OK) return st;
    if (n->attr.i[3] < 0) return lop_fail(err, LOP_DIM, "scale_det of a negative size");
    bool whole =
        n->attr.i[1] ? n->attr.i[1] == LOP_WEAK_COMPLEX : lop_is_complex((lop_dtype)n->attr.i[2]);
    return lop_pair_infer(n, &n->child[0]->shape, 1, whole ? LOP_c128 : n->child[0]->dtype);
}
static lop_status run_detscale(const lop_call *c) {
    const lop_attr *a = &c->step->attr;
    bool whole = c->a[0]->dt == LOP_c128;
    lop_pair s = lop_pair_power(lop_pair_scaled((lop_pair){a->re, a->im, 0}), a->i[3], whole);
    lop_pair_store(c->a[0], lop_pair_times(s, lop_pair_load(c->a[1]), whole));
    return LOP_OK;
}
static lop_status lower_detscale(lop_emit *e, const lop_node *self, int out) {
    return emit_pair(e, self, out, run_detscale);
}
const lop_op lop_op_scale_det = {
    LOP_NAMED(scale_det),    .cls = LOP_ARRAY,       .min = 1, .max = 1, .coef = true,
    .infer = infer_detscale, .lower = lower_detscale};

/* const_det: 0 or 1 (attr.i[0]), no children. */
static lop_status infer_detconst(lop_node *n, lop_err *err) {
    return lop_node_is_pair(n) && !n->weak ? LOP_OK
                                           : lop_fail(err, LOP_DIM, "%s is a pair", n->op->name);
}
static lop_status run_detconst(const lop_call *c) {
    lop_pair_store(c->a[0], c->step->attr.i[0] ? lop_pair_one() : (lop_pair){0, 0, 0});
    return LOP_OK;
}
static lop_status lower_detconst(lop_emit *e, const lop_node *self, int out) {
    return emit_pair(e, self, out, run_detconst);
}
const lop_op lop_op_const_det = {LOP_NAMED(const_det), .cls = LOP_ARRAY, .ints = 1,
                                 .infer = infer_detconst, .lower = lower_detconst};

/* closed_det: i^t b^(h/2) 2^(s/2) with t, b, h, s = attr.i, no children: transforms have such. */
static lop_status infer_detclosed(lop_node *n, lop_err *err) {
    const int64_t *i = n->attr.i, most = INT64_MAX / 2;
    if (i[1] < 1 || i[2] < -most || i[2] > most || i[3] < -most || i[3] > most ||
        (i[0] % 2 && !lop_is_complex(n->dtype)))
        return lop_fail(err, LOP_DIM, "no such closed form of a determinant");
    return infer_detconst(n, err);
}
/* b^(h/2). */
static lop_pair half_power(double b, int64_t h) {
    const int64_t size = h < 0 ? -h : h;
    const lop_pair base = lop_pair_scaled((lop_pair){b, 0, 0});
    lop_pair all = lop_pair_power(base, size / 2, false);
    if (size % 2) all = lop_pair_times(all, lop_pair_scaled((lop_pair){sqrt(b), 0, 0}), false);
    return h < 0 ? lop_pair_reciprocal(all, false) : all;
}
static lop_status run_detclosed(const lop_call *c) {
    static const double cosine[4] = {1, 0, -1, 0}, sine[4] = {0, 1, 0, -1};
    const int64_t *i = c->step->attr.i;
    const lop_pair a = lop_pair_times(half_power((double)i[1], i[2]), half_power(2, i[3]), false);
    lop_pair_store(c->a[0], (lop_pair){a.re * cosine[i[0] & 3], a.re * sine[i[0] & 3], a.e});
    return LOP_OK;
}
static lop_status lower_detclosed(lop_emit *e, const lop_node *self, int out) {
    return emit_pair(e, self, out, run_detclosed);
}
const lop_op lop_op_closed_det = {LOP_NAMED(closed_det), .cls = LOP_ARRAY, .ints = 4,
                                  .infer = infer_detclosed, .lower = lower_detclosed};

/* -- pairs made of vectors and matrices */

static lop_status infer_of_array(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0];
    bool vector = n->op == &lop_op_vector_det;
    if (a->core != (vector ? 1 : 2) || !lop_is_blas(a->dtype) || (!vector && !lop_is_square(a)))
        return lop_fail(err, LOP_DIM, "%s takes %s of floats", n->op->name,
                        vector ? "a vector" : "a square matrix");
    for (int i = 1; i < n->n; i++)
        if (n->child[i]->core != 2 || !lop_is_blas(n->child[i]->dtype) ||
            lop_rows(n->child[i]) > lop_cols(n->child[i]) ||
            (!lop_is_square(n->child[i]) && lop_rows(n->child[i]) % 2 == 0))
            return lop_fail(err, LOP_DIM, "%s takes square matrices and bands of floats",
                            n->op->name);
    return lop_pair_infer(n, &a->shape, a->core, a->dtype);
}

/* vector_det: the product of a vector's elements. */
static lop_status run_detvec(const lop_call *c) {
    lop_pair_store(c->a[0], lop_pair_product(c->a[1]));
    return LOP_OK;
}
static lop_status lower_detvec(lop_emit *e, const lop_node *self, int out) {
    int in = lop_emit_value(e, self->child[0]);
    lop_step *s = lop_emit_step(e, "vector_det", run_detvec, out, 1, &in);
    if (!s) return LOP_NOMEM;
    int64_t n, batch;
    lop_slot_sizes(e, in, &n, NULL, &batch);
    s->flops = (double)n * (double)batch;
    return LOP_OK;
}
const lop_op lop_op_vector_det = {LOP_NAMED(vector_det),   .cls = LOP_ARRAY,     .min = 1, .max = 1,
                                  .infer = infer_of_array, .lower = lower_detvec};

/* The diagonal of a column-major n x n matrix, as a vector. */
static lop_mat diagonal_of(void *p, int64_t n, lop_dtype dt) {
    return (lop_mat){p, n, 1, n + 1, 1, dt};
}
static lop_pair of_lu(void *p, const int64_t *ipiv, int64_t n, lop_dtype dt) {
    lop_mat d = diagonal_of(p, n, dt);
    lop_pair a = lop_pair_product(&d);
    bool odd = false;
    for (int64_t i = 0; i < n; i++) odd ^= ipiv[i] != i + 1;
    return odd ? (lop_pair){-a.re, -a.im, a.e} : a;
}

/* For explanations alone: a determinant of what is nearly singular is as good as of anything. */
static void note_known(const lop_call *c, void *factor, int64_t n, lop_dtype dt) {
    const lop_mat f = lop_factor_at(factor, n, dt);
    lop_call_near(c, *lop_factor_near(&f), 0);
}
/* lu_det: by LU with row exchanges. attr of the step: n, dtype. */
static lop_status run_detlu(const lop_call *c) {
    int64_t n = c->step->attr.i[0];
    lop_dtype dt = (lop_dtype)c->step->attr.i[1];
    char *f = c->a[1]->p;
    note_known(c, f, n, dt);
    lop_pair_store(c->a[0], of_lu(f, (int64_t *)(void *)(f + lop_factor_bytes(n, dt)), n, dt));
    return LOP_OK;
}

/* cholesky_det: assumed positive definite, or (attr.i[0]) worth a try, so Cholesky; where that
 * fails, element by element, LU. The factor is the one that solves keep. Children after the first
 * are terms of it that were assumed positive definite, dense or, with fewer rows than columns,
 * their bands as Banded takes them: they are put to the test where it fails. */
static lop_status run_detchol(const lop_call *c) {
    int64_t n = c->step->attr.i[0];
    lop_dtype dt = (lop_dtype)c->step->attr.i[1];
    char *f = c->a[1]->p;
    if (((int64_t *)(void *)(f + lop_factor_bytes(n, dt)))[n]) return LOP_SINGULAR;
    note_known(c, f, n, dt);
    lop_mat d = diagonal_of(f, n, dt);
    lop_pair l = lop_pair_product(&d);
    lop_pair_store(c->a[0], lop_pair_times(l, l, lop_is_complex(dt)));
    return LOP_OK;
}
static lop_step *emit_det(lop_emit *e, const lop_node *a, bool cholesky, int f, int out) {
    lop_step *s = lop_emit_step(e, cholesky ? "cholesky_det" : "lu_det",
                                cholesky ? run_detchol : run_detlu, out, 1, &f);
    if (!s) return NULL;
    s->attr.i[0] = lop_rows(a);
    s->attr.i[1] = (int64_t)a->dtype;
    return s;
}
static lop_status lower_detlu(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    const lop_node *a = self->child[0];
    int f = lop_emit_lu(e, lop_rows(a), a->dtype, lop_emit_value(e, a), &st);
    if (f < 0) return st;
    return emit_det(e, a, false, f, out) ? LOP_OK : LOP_NOMEM;
}
const lop_op lop_op_lu_det = {LOP_NAMED(lu_det), .cls = LOP_ARRAY,        .min = 1,
                              .max = 1,          .infer = infer_of_array, .lower = lower_detlu};

/* Of many small ones: the diagonal of L is known. */
static lop_status run_detroots(const lop_call *c) {
    for (int64_t e = 0; e <= c->more; e++) {
        if (lop_call_leaves(c, e)) continue;
        lop_mat y = *c->a[0], v = *c->a[1];
        y.p = (char *)y.p + e * c->y_step * (int64_t)lop_dtype_size(y.dt);
        v.p = (char *)v.p + e * c->x_step * (int64_t)lop_dtype_size(v.dt);
        lop_pair l = lop_pair_product(&v);
        lop_pair_store(&y, lop_pair_times(l, l, false));
    }
    return LOP_OK;
}
static lop_status run_detlu_direct(const lop_call *c) {
    const lop_mat *a = c->a[1];
    lop_mat f = {c->scratch, a->m, a->m, 1, a->m > 0 ? a->m : 1, a->dt};
    int64_t *ipiv = (int64_t *)(void *)((char *)c->scratch + lop_factor_bytes(a->m, a->dt));
    int64_t info = 0;
    lop_status st = lopk_lu_of(&f, a, ipiv, &info);
    if (st != LOP_OK && st != LOP_SINGULAR) return st;
    lop_pair_store(c->a[0], of_lu(f.p, ipiv, a->m, a->dt));
    return LOP_OK;
}
/* Is what was assumed positive definite so? SciPy reads the upper triangle, our lower one. */
static lop_status assumption_holds(const lop_mat *a, void *scratch) {
    lop_mat f = {scratch, a->m, a->m, 1, a->m > 0 ? a->m : 1, a->dt},
            t = {a->p, a->n, a->m, a->cs, a->rs, a->dt};
    int64_t info = 0;
    if (a->m < a->n) {
        const int64_t rows = a->m / 2 + 1;
        f = (lop_mat){scratch, rows, a->n, 1, rows, a->dt};
        t = (lop_mat){a->p, rows, a->n, a->rs, a->cs, a->dt};
        lopk_copy(&f, &t);
        return lopk_pbtrf(&f, 'U', &info);
    }
    lopk_conj(&f, &t);
    return lopk_potrf(&f, &info);
}
/* LU's, unless what was assumed does not hold. attr.i[2]: of the matrix itself. */
static lop_status run_detlu_tested(const lop_call *c) {
    lop_status st = LOP_OK;
    for (int i = 2; st == LOP_OK && i < c->step->n; i++) st = assumption_holds(c->a[i], c->scratch);
    if (st != LOP_OK) return st;
    return c->step->attr.i[2] ? run_detlu_direct(c) : run_detlu(c);
}
/* Where the mask is set: LU, of in[0], a factor or (direct) the matrix. */
static lop_status emit_otherwise(lop_emit *e, const lop_node *self, bool direct, int *in, int mask,
                                 int out) {
    const lop_node *a = self->child[0];
    const int64_t n = lop_rows(a);
    const int failed = mask;
    const size_t own = direct ? lop_factor_bytes(n, a->dtype) + (size_t)n * sizeof(int64_t) : 0;
    for (int last = self->n == 1; last < 2; last++) {
        lop_status st = LOP_OK;
        const int broken = last ? -1 : lop_emit_mask(e, out, &st);
        if (st != LOP_OK) return st;
        lop_step *s = lop_emit_step(e, "lu_det",
                                    !last    ? run_detlu_tested
                                    : direct ? run_detlu_direct
                                             : run_detlu,
                                    out, last ? 1 : self->n, in);
        if (!s) return LOP_NOMEM;
        s->attr = (lop_attr){.i = {n, (int64_t)a->dtype, direct, 0}};
        s->when = mask;
        s->when_set = true;
        s->scratch = own;
        if (self->n > 1) s->late = failed;
        if (last) break;
        for (int i = 1; i < self->n; i++) {
            const lop_node *p = self->child[i];
            const size_t need = lop_is_square(p)
                                    ? lop_factor_bytes(lop_rows(p), p->dtype)
                                    : (size_t)(lop_rows(p) / 2 + 1) * (size_t)lop_cols(p) *
                                          lop_dtype_size(p->dtype);
            if (need > s->scratch) s->scratch = need;
        }
        s->fail = mask = broken;
    }
    return LOP_OK;
}
static lop_status lower_stack_det(lop_emit *e, const lop_node *self, int *in, int out) {
    lop_status st;
    const lop_node *a = self->child[0];
    int mask = lop_emit_mask(e, out, &st);
    if (mask < 0) return st;
    int roots =
        lop_emit_stack_roots(e, lop_rows(a), a->dtype, &in[0], mask, self->attr.i[0] != 0, &st);
    if (roots < 0) return st;
    lop_step *s = lop_emit_step(e, "cholesky_det", run_detroots, out, 1, &roots);
    if (!s) return LOP_NOMEM;
    s->flags = LOP_STEP_GROUP;
    return emit_otherwise(e, self, true, in, mask, out);
}
static lop_status lower_detchol(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    const lop_node *a = self->child[0];
    int in[LOP_MAXARG] = {0};
    for (int i = 0; i < self->n; i++) in[i] = lop_emit_value(e, self->child[i]);
    if (lop_stack_fits(lop_rows(a), a->dtype)) return lower_stack_det(e, self, in, out);
    in[0] = lop_emit_cholesky(e, lop_rows(a), a->dtype, in[0], self->attr.i[0] != 0, &st);
    int mask = in[0] >= 0 ? lop_emit_mask(e, out, &st) : -1;
    if (mask < 0) return st;
    lop_step *s = emit_det(e, a, true, in[0], out);
    if (!s) return LOP_NOMEM;
    s->fail = mask;
    if (self->attr.i[0]) s->flags |= LOP_STEP_QUIET;
    return emit_otherwise(e, self, false, in, mask, out);
}
const lop_op lop_op_cholesky_det = {
    LOP_NAMED(cholesky_det),      .cls = LOP_ARRAY, .min = 1,
    .max = 1 + LOP_ASSUMED_TERMS, .ints = 1,        .infer = infer_of_array,
    .lower = lower_detchol};

/* joint_det: the product of the pairs along the last batch dimension. */
static lop_status infer_detall(lop_node *n, lop_err *err) {
    lop_status st = two_pairs(n, err);
    lop_shape shape = n->child[0]->shape;
    if (st != LOP_OK) return st;
    if (shape.ndim < 2) return lop_fail(err, LOP_DIM, "joint_det takes a batch of pairs");
    shape.dim[--shape.ndim - 1] = 2;
    return lop_pair_infer(n, &shape, 1, n->child[0]->dtype);
}
/* Here that dimension is one of the matrix: it is seen as p x 2. */
static lop_status run_detall(const lop_call *c) {
    const lop_mat *a = c->a[1];
    const bool whole = c->a[0]->dt == LOP_c128;
    lop_pair all = lop_pair_one();
    for (int64_t i = 0; i < a->m; i++) {
        lop_mat row = {
            (char *)a->p + i * a->rs * (int64_t)lop_dtype_size(a->dt), 2, 1, a->cs, 1, a->dt};
        all = lop_pair_times(all, lop_pair_load(&row), whole);
    }
    lop_pair_store(c->a[0], all);
    return LOP_OK;
}
static lop_status lower_detall(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    const lop_node *a = self->child[0];
    int in = lop_emit_value(e, a), seen = lop_emit_temp(e, a->dtype, 2, &a->shape, &st);
    if (seen < 0) return st;
    if (!lop_emit_alias(e, seen, in)) return LOP_INTERNAL;
    return lop_emit_step(e, "joint_det", run_detall, out, 1, &seen) ? LOP_OK : LOP_NOMEM;
}
const lop_op lop_op_joint_det = {LOP_NAMED(joint_det),  .cls = LOP_ARRAY,     .min = 1, .max = 1,
                                 .infer = infer_detall, .lower = lower_detall};
