/* op_toeplitz_solve.c: solves and determinants of square Toeplitz and Hankel matrices in O(n^2) or
 * less.
 *
 *   toeplitz_solve  children c, r, b, alt: T^-1 b for T of first column c and row r. attr.i[0]: the
 *                   mode of the view on T; attr.i[1]: a Hankel matrix's h stands for c and r,
 *                   H = T J.
 *   toeplitz_det    children c, r, alt: det T as a pair; attr.i[0] as toeplitz_solve's attr.i[1],
 *                   attr.i[1] the size.
 *   first_unit      a vector with 1 before zeros: what an identity adds to c.
 *
 * The factor, a derived value of O(n) memory, is the generator of the inverse: k_toeplitz_solve.c
 * says how it is found. Where a determinant of the same matrix is asked for in one plan, one
 * recursion gives both, its pivots beside the generator. Each column's backward error is checked;
 * where it is above 1e-14 after two refinements, alt runs: the dense form. A determinant is the
 * product of Durbin's pivots where these prove T or -T positive definite, else of those of an
 * elimination whose own solution passes a check, else alt. */
#include "expr/op.h"
#include "ops/shared/scaled_pair.h"
#include "ops/shared/factor.h"
#include "kernels/dense/k_blas.h"
#include "kernels/toeplitz/k_toeplitz_solve.h"
#include "kernels/common/kernels.h"

#include <string.h>

static lop_dtype inner_dtype(const lop_node *c, const lop_node *r) {
    return lop_is_complex(c->dtype) || lop_is_complex(r->dtype) ? LOP_c128 : LOP_f64;
}
static bool vectors_fit(const lop_node *c, const lop_node *r, int64_t n, bool hankel) {
    return c->core == 1 && r->core == 1 && c->op->cls == LOP_ARRAY && r->op->cls == LOP_ARRAY &&
           c->dtype < LOP_NDTYPE && r->dtype < LOP_NDTYPE && n >= 1 && n <= INT64_MAX / 2 &&
           (hankel ? lop_cols(c) == lop_cols(r) : lop_cols(c) == n && lop_cols(r) == n);
}

static lop_status infer_solve(lop_node *n, lop_err *err) {
    const lop_node *c = n->child[0], *r = n->child[1], *b = n->child[2], *alt = n->child[3];
    if (b->core != 2 || n->attr.i[0] < 0 || n->attr.i[0] > 3 ||
        !vectors_fit(c, r, lop_rows(b), n->attr.i[1] != 0))
        return lop_fail(err, LOP_DIM,
                        "toeplitz_solve takes two vectors and right-hand sides that fit");
    lop_shape both;
    lop_status st = lop_shape_batch(&c->shape, 1, &r->shape, 1, &both, err);
    if (st != LOP_OK) return st;
    both.dim[both.ndim++] = 1;
    st = lop_shape_batch(&both, 1, &b->shape, 2, &n->shape, err);
    if (st != LOP_OK) return st;
    n->shape.dim[n->shape.ndim++] = lop_rows(b);
    n->shape.dim[n->shape.ndim++] = lop_cols(b);
    n->core = 2;
    lop_node wide = {.dtype = LOP_f32};
    lop_node_promote(&wide, c, r);
    wide.weak = LOP_STRONG;
    lop_node_promote_inverse(n, &wide, b);
    if (!lop_is_blas(n->dtype) || alt->dtype != n->dtype || alt->core != 2 ||
        !lop_shape_equal(&alt->shape, &n->shape))
        return lop_fail(err, LOP_DIM, "the branches of toeplitz_solve differ");
    return LOP_OK;
}

/* h as first column and row of T = H J, zeros beyond its end, at `at`. */
static void unfold(const lop_mat *h, int64_t n, char *at, lop_mat *c, lop_mat *r) {
    const size_t size = lop_dtype_size(h->dt), bytes = ((size_t)n * size + 63) & ~(size_t)63;
    *c = (lop_mat){at, n, 1, 1, 1, h->dt};
    *r = (lop_mat){at + bytes, n, 1, 1, 1, h->dt};
    memset(at, 0, 2 * bytes);
    for (int64_t i = 0; i < n; i++) {
        const char *low = (const char *)h->p + (n - 1 + i) * h->rs * (int64_t)size,
                   *high = (const char *)h->p + (n - 1 - i) * h->rs * (int64_t)size;
        if (n - 1 + i < h->m) memcpy((char *)c->p + (size_t)i * size, low, size);
        if (n - 1 - i < h->m) memcpy((char *)r->p + (size_t)i * size, high, size);
    }
}
static size_t unfolded(int64_t n) { return 2 * (((size_t)n * 16 + 63) & ~(size_t)63); }

/* The prepare step's attr.i: the inner dtype, the form, the size, and what is asked for. Its
 * blob: the determinant (re, im, exponent, whether it is believed), then the factor. */
enum { SOLVES = 1, DETERMINANT = 2, BEFORE = 64 };
enum { GENERAL, HANKEL, HERMITIAN };

static lop_parts size_of(const lop_attr *attr) {
    const int64_t n = attr->i[2], what = attr->i[3];
    const lop_dtype dt = (lop_dtype)attr->i[0];
    const bool gradients = attr->i[1] == HERMITIAN && !(what & DETERMINANT);
    lop_parts p = {BEFORE, attr->i[1] == HANKEL ? unfolded(n) : 0,
                   lopk_toep_factor_flops(n, dt, gradients)};
    if (what & SOLVES) p.bytes += lopk_toep_bytes(n, dt);
    p.scratch += what & SOLVES ? lopk_toep_factor_scratch(n, dt) : lopk_toep_det_scratch(n, dt);
    if (what & DETERMINANT) p.scratch += ((size_t)n + 8) * 16;
    return p;
}
static void put_det(const lopk_toep_pivots *det, lop_dtype dt, int64_t n, bool odd, double *out) {
    memset(out, 0, 4 * sizeof *out);
    if (!det->known) return;
    const lop_mat all = {det->pivot, n + 1, 1, 1, 1, dt};
    const lop_pair pair = lop_pair_product(&all);
    if (lop_pair_is_zero(pair)) return;
    out[0] = odd ? -pair.re : pair.re;
    out[1] = odd ? -pair.im : pair.im;
    out[2] = pair.e + (double)det->exponent * (double)n;
    out[3] = 1;
}
static lop_status run_factor(const lop_call *call) {
    const int64_t *i = call->step->attr.i, n = i[2];
    const lop_dtype dt = (lop_dtype)i[0];
    char *out = call->a[0]->p, *rest = call->scratch;
    lop_mat c = *call->a[1], r = *call->a[2];
    lopk_toep_pivots det = {.pivot = rest};
    if (i[3] & DETERMINANT) rest += (((size_t)n + 1) * lop_dtype_size(dt) + 63) & ~(size_t)63;
    if (i[1] == HANKEL) {
        unfold(call->a[1], n, rest, &c, &r);
        rest += unfolded(n);
    }
    if (i[3] & SOLVES)
        lopk_toep_factor(out + BEFORE, dt, &c, &r, i[3] & DETERMINANT ? &det : NULL, rest);
    else
        lopk_toep_det(&det, dt, &c, &r, rest);
    put_det(&det, dt, n, i[1] == HANKEL && n / 2 % 2,
            (double *)(void *)out); /* odd: the rows turned round */
    return LOP_OK;
}
/* Is r the adjoint of c but for c[0], by how they are written? For the price alone: the kernel
 * looks at the numbers. */
static bool is_hermitian(const lop_node *c, const lop_node *r) {
    while (c->op == &lop_op_cast) c = c->child[0];
    while (r->op == &lop_op_cast || r->op == &lop_op_conjugate) r = r->child[0];
    if (c->op != &lop_op_add) return c == r;
    for (int i = 0; i < 2; i++) { /* T + s I */
        const lop_node *tip = c->child[i];
        while (tip->op == &lop_op_scale || tip->op == &lop_op_cast) tip = tip->child[0];
        if (tip->op == &lop_op_first_unit) return is_hermitian(c->child[1 - i], r);
    }
    return c == r;
}
/* The slot of the prepared value for `what` of T of these vectors; -1. */
static int prepared(lop_emit *e, const lop_node *const *cr, int64_t n, int64_t hankel, int64_t what,
                    lop_status *st) {
    const lop_dtype dt = inner_dtype(cr[0], cr[1]);
    const int in[2] = {lop_emit_value(e, cr[0]), lop_emit_value(e, cr[1])};
    const int64_t form = hankel ? HANKEL : is_hermitian(cr[0], cr[1]) ? HERMITIAN : GENERAL;
    const lop_attr attr = {.i = {dt, form, n, what}};
    if (lopk_toep_bytes(n, dt))
        return lop_emit_derived_parts(e, "toeplitz-factor", run_factor, 2, in, &attr, size_of, st);
    *st = lop_fail(lop_emit_err(e), LOP_OVERFLOW,
                   "no FFT is as long as a Toeplitz solve of size %lld needs", (long long)n);
    return -1;
}
/* Both before the branches open, where the vectors are known by then. */
static lop_status ready(lop_emit *e, const lop_node *self) {
    const bool solve = self->op == &lop_op_toeplitz_solve;
    lop_status st = LOP_OK;
    if (lop_emit_fft(e) && lop_emit_knows(e, self->child[0]) && lop_emit_knows(e, self->child[1]))
        (void)prepared(e, self->child, solve ? lop_rows(self) : self->attr.i[1],
                       self->attr.i[solve ? 1 : 0], solve ? SOLVES : DETERMINANT, &st);
    return st;
}

static lop_status run_solve(const lop_call *c) {
    const int64_t mode = c->step->attr.i[0], hankel = c->step->attr.i[1];
    const char *factor = (const char *)c->a[1]->p + BEFORE;
    lop_status st = lopk_toep_solve(c->a[0], factor, (mode & LOP_T) && !hankel, (mode & LOP_C) != 0,
                                    hankel != 0, c->a[2], c->scratch);
    if (st != LOP_OK) return st;
    const lop_mat *y = c->a[0];
    lop_call_near(c, lopk_toep_near(factor), lopk_eps(y->dt));
    lop_call_near(c, lopk_outgrown(y, c->a[2], lopk_toep_norm(factor)), lopk_eps(y->dt));
    return LOP_OK;
}
/* Without the FFT there is no fast way. */
static lop_status run_refuse(const lop_call *c) {
    lopk_zero(c->a[0]);
    return LOP_SINGULAR;
}
static lop_status refuse(lop_emit *e, int value, int mask) {
    lop_step *s = lop_emit_step(e, "no-fft", run_refuse, value, 0, NULL);
    if (!s) return LOP_NOMEM;
    s->fail = mask;
    s->flags = LOP_STEP_QUIET;
    return LOP_OK;
}
static lop_status check_solve(lop_emit *e, const lop_node *self, int value, int mask) {
    lop_status st;
    const int64_t n = lop_rows(self);
    const lop_dtype dt = inner_dtype(self->child[0], self->child[1]);
    int64_t k, batch;
    if (!lop_emit_fft(e)) return refuse(e, value, mask);
    int in[2] = {-1, lop_emit_cast(e, lop_emit_value(e, self->child[2]), self->dtype, &st)};
    if (in[1] >= 0) in[0] = prepared(e, self->child, n, self->attr.i[1], SOLVES, &st);
    if (in[0] < 0) return st;
    lop_slot_sizes(e, value, NULL, &k, &batch);
    lop_step *s = lop_emit_step(e, "toeplitz-solve", run_solve, value, 2, in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->fail = mask;
    s->flags = LOP_STEP_QUIET;
    s->scratch = lopk_toep_solve_scratch(n, dt);
    s->flops = lopk_toep_solve_flops(n, dt) * (double)k * (double)batch;
    return LOP_OK;
}

const lop_op lop_op_toeplitz_solve = {LOP_NAMED(toeplitz_solve),
                                      .cls = LOP_ARRAY,
                                      .min = 4,
                                      .max = 4,
                                      .ints = 2,
                                      .infer = infer_solve,
                                      .lower = lop_lower_arms,
                                      .check = check_solve,
                                      .ready = ready};

/* -- toeplitz_det */

static lop_status infer_det(lop_node *n, lop_err *err) {
    const lop_node *c = n->child[0], *r = n->child[1], *alt = n->child[2];
    lop_shape both;
    if (!vectors_fit(c, r, n->attr.i[1], n->attr.i[0] != 0) || !lop_node_is_pair(alt))
        return lop_fail(err, LOP_DIM, "toeplitz_det takes two vectors and a pair");
    lop_status st = lop_shape_batch(&c->shape, 1, &r->shape, 1, &both, err);
    if (st != LOP_OK) return st;
    both.dim[both.ndim++] = 2;
    if (!lop_shape_equal(&both, &alt->shape) ||
        lop_is_complex(alt->dtype) != lop_is_complex(inner_dtype(c, r)))
        return lop_fail(err, LOP_DIM, "the branches of toeplitz_det differ");
    return lop_pair_infer(n, &both, 1, alt->dtype);
}

static lop_status run_det(const lop_call *c) {
    const double *d = c->a[1]->p;
    lop_pair_store(c->a[0], (lop_pair){d[0], d[1], d[2]});
    return d[3] != 0 ? LOP_OK : LOP_SINGULAR;
}
static lop_status check_det(lop_emit *e, const lop_node *self, int value, int mask) {
    lop_status st;
    if (!lop_emit_fft(e)) return refuse(e, value, mask);
    const int in = prepared(e, self->child, self->attr.i[1], self->attr.i[0], DETERMINANT, &st);
    if (in < 0) return st;
    lop_step *s = lop_emit_step(e, "toeplitz_det", run_det, value, 1, &in);
    if (!s) return LOP_NOMEM;
    s->fail = mask;
    s->flags = LOP_STEP_QUIET;
    return LOP_OK;
}
const lop_op lop_op_toeplitz_det = {
    LOP_NAMED(toeplitz_det), .cls = LOP_ARRAY,        .min = 3,           .max = 3,      .ints = 2,
    .infer = infer_det,      .lower = lop_lower_arms, .check = check_det, .ready = ready};

/* -- tip */

static lop_status infer_tip(lop_node *n, lop_err *err) {
    return n->core == 1 ? LOP_OK : lop_fail(err, LOP_DIM, "first_unit is a vector");
}
static lop_status run_tip(const lop_call *c) {
    lopk_zero(c->a[0]);
    if (c->a[0]->m > 0) lop_set(c->a[0]->dt, c->a[0]->p, 0, 1);
    return LOP_OK;
}
static lop_status lower_tip(lop_emit *e, const lop_node *self, int out) {
    (void)self;
    return lop_emit_step(e, "first_unit", run_tip, out, 0, NULL) ? LOP_OK : LOP_NOMEM;
}
const lop_op lop_op_first_unit = {LOP_NAMED(first_unit), .cls = LOP_ARRAY, .infer = infer_tip,
                                  .lower = lower_tip};
