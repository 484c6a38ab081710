/* op_diagonal_sums.c: sums along the diagonals of an operator: the gradients of Toeplitz, circulant
 * and Hankel matrices.
 *
 *   diagonal_sums            of an operator, m x n: s[l + n - 1] = sum of its entries over
 *                            i - j = l, m + n - 1 numbers. attr.i[0]: over i + j = l, s[l].
 *                            attr.i[1]: of n x n, the n sums over (i - j) mod n (with attr.i[0],
 *                            (i + j) mod n). attr.i[2]: over j - i = l, s[l + m - 1]. attr.i[3]:
 *                            dtype
 *   array_diagonal_sums      the same of a matrix: one pass
 *   pair_diagonal_sums       of the product of two, m x k and k x n: 2 k + 1 transforms, or
 * directly line_diagonal_sums       of a matrix with one diagonal, the child: attr.i = flags, m, n,
 * offset toeplitz_diagonal_sums   of the Toeplitz matrix of two vectors toeplitz_inverse_sums
 * children x, w, z, v, alt: of T^-1 by its first and last columns (attr.i[3]: of a Hankel's),
 * checked as toeplitz_inverse_diagonal is, by z = T^-1 v for a probe v; else alt, the sums of the
 * dense inverse toeplitz_between_sums    children x, w, dx, dw, z, v, alt: of T^-1 X T^-1, X a
 * Toeplitz (Hankel) matrix too, by dx = T^-1 X x and dw; z = T^-1 X T^-1 v */
#include "projections.h"

#include "kernels/common/kernels.h"
#include "kernels/fft/k_fft.h"
#include "ops/shared/factor.h"

#include <complex.h>
#include <math.h>

lop_status lop_projection_dtype(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0];
    if (a->op->cls != LOP_OPERATOR)
        return lop_fail(err, LOP_DIM, "%s takes an operator", n->op->name);
    if (n->attr.i[3] < 0 || n->attr.i[3] > LOP_NDTYPE) return lop_fail(err, LOP_DTYPE, NULL);
    if (n->attr.i[3] == 0 && a->dtype < LOP_NDTYPE) n->attr.i[3] = (int64_t)a->dtype + 1;
    n->dtype = n->attr.i[3] ? (lop_dtype)(n->attr.i[3] - 1) : a->dtype;
    n->weak = LOP_STRONG;
    if (!lop_is_blas(n->dtype) ||
        (!a->weak && lop_is_complex(a->dtype) && !lop_is_complex(n->dtype)))
        return lop_fail(err, LOP_DTYPE, "%s of a %s operator cannot be computed in %s", n->op->name,
                        lop_dtype_name(a->dtype), lop_dtype_name(n->dtype));
    return LOP_OK;
}

/* The batch is in n->shape: adds the vector of sums of m x n. */
static lop_status count_lines(lop_node *n, const lop_attr *how, int64_t rows, int64_t cols,
                              lop_err *err) {
    const lopk_lines lines = lop_lines_of(how);
    int64_t all;
    if (!lop_add_ok(rows, cols, &all)) return lop_fail(err, LOP_OVERFLOW, NULL);
    if ((lines.circular && rows != cols) || (lines.anti && lines.flip))
        return lop_fail(err, LOP_DIM,
                        "%s: sums modulo n are those of a square matrix, and those "
                        "over i + j have one direction",
                        n->op->name);
    n->shape.dim[n->shape.ndim++] = lopk_lines_count(lines, rows, cols);
    n->core = 1;
    return LOP_OK;
}

static lop_status infer_sums(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0];
    lop_status st = lop_projection_dtype(n, err);
    if (st != LOP_OK) return st;
    n->shape = a->shape;
    n->shape.ndim -= 2;
    return count_lines(n, &n->attr, lop_rows(a), lop_cols(a), err);
}
const lop_op lop_op_diagonal_sums = {
    LOP_NAMED(diagonal_sums), .cls = LOP_ACTION, .min = 1, .max = 1, .ints = 4,
    .infer = infer_sums};

/* -- of one matrix */

static lop_status want_blas(const lop_node *n, lop_err *err) {
    return lop_is_blas(n->dtype) && !n->weak ? LOP_OK
                                             : lop_fail(err, LOP_DTYPE,
                                                        "%s takes floats of a "
                                                        "dtype of their own",
                                                        n->op->name);
}
static lop_status infer_array(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0];
    if (a->core != 2) return lop_fail(err, LOP_DIM, "%s takes a matrix", n->op->name);
    n->shape = a->shape;
    n->shape.ndim -= 2;
    n->dtype = a->dtype;
    n->weak = a->weak;
    lop_status st = want_blas(n, err);
    return st == LOP_OK ? count_lines(n, &n->attr, lop_rows(a), lop_cols(a), err) : st;
}
static lop_status run_array(const lop_call *c) {
    lopk_diagonal_sums(c->a[0], lop_lines_of(&c->step->attr), c->a[1], c->scratch);
    return LOP_OK;
}
static lop_status too_large(lop_emit *e, int64_t m, int64_t n) {
    return lop_fail(lop_emit_err(e), LOP_OVERFLOW, "%lld x %lld has too many diagonals",
                    (long long)m, (long long)n);
}
static lop_status lower_array(lop_emit *e, const lop_node *self, int out) {
    const lop_node *a = self->child[0];
    const int in = lop_emit_value(e, a);
    const size_t scratch = lopk_lines_bytes(lop_rows(a), lop_cols(a), self->dtype);
    if (!scratch) return too_large(e, lop_rows(a), lop_cols(a));
    lop_step *s = lop_emit_step(e, "diagonal-sums", run_array, out, 1, &in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->scratch = scratch;
    s->flops = lop_slot_elements(e, in);
    return LOP_OK;
}
const lop_op lop_op_array_diagonal_sums = {
    LOP_NAMED(array_diagonal_sums), .cls = LOP_ARRAY,    .min = 1, .max = 1, .ints = 3,
    .infer = infer_array,           .lower = lower_array};

/* -- of a product */

static const int64_t LONGEST = (int64_t)1 << 40; /* the FFT's own limit */

/* The length of the transforms; 0: there is none. */
static int64_t length_of(int64_t m, int64_t n, lop_dtype dt) {
    int64_t N;
    return lop_add_ok(m, n, &N) && N <= LONGEST ? lopk_fft_good(N, dt) : 0;
}
static double fft_flops(int64_t N, lop_dtype dt) {
    return (lop_is_complex(dt) ? 5.0 : 2.5) * (double)N * log2((double)N + 1);
}
static bool is_direct(lop_dtype dt, int64_t m, int64_t n) {
    return (m > n ? m : n) <= lopk_toeplitz_crossover(dt, m, n);
}
double lop_pair_sums_flops(lop_dtype dt, int64_t m, int64_t n, int64_t k) {
    const double by = lop_is_complex(dt) ? 4 : 1;
    if (is_direct(dt, m, n)) return 2 * by * (double)m * (double)n * (double)k;
    return (2 * (double)k + 1) * fft_flops(length_of(m, n, dt), dt);
}

static lop_status infer_pair(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0], *b = n->child[1];
    if (a->core != 2 || b->core != 2 || lop_cols(a) != lop_rows(b))
        return lop_fail(err, LOP_DIM, "%s takes A and B that multiply", n->op->name);
    lop_status st = lop_shape_batch(&a->shape, 2, &b->shape, 2, &n->shape, err);
    if (st != LOP_OK) return st;
    lop_node_promote(n, a, b);
    st = want_blas(n, err);
    return st == LOP_OK ? count_lines(n, &n->attr, lop_rows(a), lop_cols(b), err) : st;
}
static lop_status run_pair(const lop_call *c) {
    lopk_pair_diagonal_sums(c->a[0], lop_lines_of(&c->step->attr), c->a[1], c->a[2], c->scratch);
    return LOP_OK;
}
static lop_status run_pair_fft(const lop_call *c) {
    lopk_pair_diagonal_sums_fft(c->a[0], lop_lines_of(&c->step->attr), c->a[1], c->a[2], c->a[3]->p,
                                c->scratch);
    return LOP_OK;
}
static lop_status run_plan(const lop_call *c) {
    const int64_t *i = c->step->attr.i;
    return lopk_fft_plan_init(c->a[0]->p, i[0], (lop_dtype)i[1]) == LOP_OK
               ? LOP_OK
               : lop_fail(c->err, LOP_INTERNAL, "no FFT of length %lld", (long long)i[0]);
}
/* The slot of a plan of length N; -1 with the status in *st. */
static int emit_plan(lop_emit *e, int64_t N, lop_dtype dt, lop_status *st) {
    const lop_attr attr = {.i = {N, dt, 0, 0}};
    return lop_emit_derived(e, "fft-plan", run_plan, lopk_fft_plan_bytes(N, dt), 0, NULL, &attr, 0,
                            0, st);
}
static bool by_fft(lop_emit *e, lop_dtype dt, int64_t m, int64_t n) {
    const int64_t asked = lop_emit_fft_min(e);
    if (!lop_emit_fft(e) || m == 0 || n == 0) return false;
    return asked > 0 ? (m > n ? m : n) >= asked : !is_direct(dt, m, n);
}

static lop_status lower_pair(lop_emit *e, const lop_node *self, int out) {
    const int64_t m = lop_rows(self->child[0]), n = lop_cols(self->child[1]),
                  k = lop_cols(self->child[0]);
    const lop_dtype dt = self->dtype;
    const bool fft = by_fft(e, dt, m, n) && k > 0;
    const int64_t N = fft ? length_of(m, n, dt) : 0;
    const size_t scratch = fft ? lopk_lines_fft_bytes(m, n, N, dt) : lopk_lines_bytes(m, n, dt);
    lop_status st = LOP_OK;
    int in[3];
    if (!scratch) return too_large(e, m, n);
    for (int i = 0; i < 2; i++) {
        in[i] = lop_emit_cast(e, lop_emit_value(e, self->child[i]), dt, &st);
        if (in[i] < 0) return st;
    }
    if (fft && (in[2] = emit_plan(e, N, dt, &st)) < 0) return st;
    lop_step *s = fft ? lop_emit_step(e, "diagonal-sums-fft", run_pair_fft, out, 3, in)
                      : lop_emit_step(e, "diagonal-sums-pair", run_pair, out, 2, in);
    if (!s) return LOP_NOMEM;
    const double batch =
        lop_slot_elements(e, out) /
        (double)(self->shape.dim[lop_nbatch(self)] > 0 ? self->shape.dim[lop_nbatch(self)] : 1);
    s->attr = self->attr;
    s->scratch = scratch;
    s->flops = batch * (fft ? (2 * (double)k + 1) * fft_flops(N, dt)
                            : 2 * (double)m * (double)n * (double)k);
    return LOP_OK;
}
const lop_op lop_op_pair_diagonal_sums = {
    LOP_NAMED(pair_diagonal_sums), .cls = LOP_ARRAY,   .min = 2, .max = 2, .ints = 3,
    .infer = infer_pair,           .lower = lower_pair};

/* -- of one diagonal */

static lop_attr unpacked(const lop_attr *a) {
    return (lop_attr){.i = {a->i[0] & 1, a->i[0] >> 1 & 1, a->i[0] >> 2 & 1, 0}};
}
static lop_status infer_line(lop_node *n, lop_err *err) {
    const lop_node *d = n->child[0];
    const lop_attr how = unpacked(&n->attr);
    const int64_t *i = n->attr.i;
    if (d->core != 1 || i[0] < 0 || i[0] > 7 || i[1] < 0 || i[2] < 0 ||
        lop_cols(d) != lop_diag_length(i[1], i[2], i[3]))
        return lop_fail(err, LOP_DIM, "%s takes a diagonal", n->op->name);
    n->shape = d->shape;
    n->shape.ndim--;
    n->dtype = d->dtype;
    n->weak = d->weak;
    lop_status st = want_blas(n, err);
    return st == LOP_OK ? count_lines(n, &how, i[1], i[2], err) : st;
}
static lop_status run_line(const lop_call *c) {
    const lop_attr *a = &c->step->attr, how = unpacked(a);
    lopk_line_sums(c->a[0], lop_lines_of(&how), a->i[1], a->i[2], a->i[3], c->a[1], c->scratch);
    return LOP_OK;
}
static lop_status lower_line(lop_emit *e, const lop_node *self, int out) {
    const int in = lop_emit_value(e, self->child[0]);
    const size_t scratch = lopk_lines_bytes(self->attr.i[1], self->attr.i[2], self->dtype);
    if (!scratch) return too_large(e, self->attr.i[1], self->attr.i[2]);
    lop_step *s = lop_emit_step(e, "diagonal-sum", run_line, out, 1, &in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->scratch = scratch;
    s->flops = lop_slot_elements(e, in);
    return LOP_OK;
}
const lop_op lop_op_line_diagonal_sums = {
    LOP_NAMED(line_diagonal_sums), .cls = LOP_ARRAY,   .min = 1, .max = 1, .ints = 4,
    .infer = infer_line,           .lower = lower_line};

/* -- of a Toeplitz matrix */

static lop_status infer_toeplitz(lop_node *n, lop_err *err) {
    const lop_node *c = n->child[0], *r = n->child[1];
    if (c->core != 1 || r->core != 1)
        return lop_fail(err, LOP_DIM, "%s takes two vectors", n->op->name);
    lop_status st = lop_shape_batch(&c->shape, 1, &r->shape, 1, &n->shape, err);
    if (st != LOP_OK) return st;
    lop_node_promote(n, c, r);
    st = want_blas(n, err);
    if (st == LOP_OK && n->attr.i[0])
        return lop_fail(err, LOP_DIM, "%s has no sums over i + j", n->op->name);
    return st == LOP_OK ? count_lines(n, &n->attr, lop_cols(c), lop_cols(r), err) : st;
}
static lop_status run_toeplitz(const lop_call *c) {
    lopk_toeplitz_sums(c->a[0], lop_lines_of(&c->step->attr), c->a[1], c->a[2], c->scratch);
    return LOP_OK;
}
static lop_status lower_toeplitz(lop_emit *e, const lop_node *self, int out) {
    const int64_t m = lop_cols(self->child[0]), n = lop_cols(self->child[1]);
    const size_t scratch = lopk_lines_bytes(m, n, self->dtype);
    lop_status st;
    int in[2];
    if (!scratch) return too_large(e, m, n);
    for (int i = 0; i < 2; i++) {
        in[i] = lop_emit_cast(e, lop_emit_value(e, self->child[i]), self->dtype, &st);
        if (in[i] < 0) return st;
    }
    lop_step *s = lop_emit_step(e, "toeplitz-sums", run_toeplitz, out, 2, in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->scratch = scratch;
    s->flops = lop_slot_elements(e, out);
    return LOP_OK;
}
const lop_op lop_op_toeplitz_diagonal_sums = {
    LOP_NAMED(toeplitz_diagonal_sums), .cls = LOP_ARRAY,       .min = 2, .max = 2, .ints = 3,
    .infer = infer_toeplitz,           .lower = lower_toeplitz};

/* -- of the inverse of one, and of T^-1 X T^-1: columns, a probe, alt */

static lop_status infer_inverse(lop_node *n, lop_err *err) {
    const lop_node *x = n->child[0], *alt = n->child[n->n - 1];
    if (x->core != 2 || lop_cols(x) != 1 || lop_rows(x) < 1 || !lop_is_blas(x->dtype) || x->weak)
        return lop_fail(err, LOP_DIM, "%s takes columns", n->op->name);
    for (int i = 1; i < n->n - 1; i++) {
        const lop_node *y = n->child[i];
        if (y->core != 2 || y->dtype != x->dtype || y->weak || lop_cols(y) != 1 ||
            lop_rows(y) != lop_rows(x) || (i < n->n - 2 && !lop_shape_equal(&x->shape, &y->shape)))
            return lop_fail(err, LOP_DIM, "%s takes columns alike", n->op->name);
    }
    n->shape = x->shape;
    n->shape.ndim -= 2;
    n->dtype = x->dtype;
    lop_status st = count_lines(n, &n->attr, lop_rows(x), lop_rows(x), err);
    if (st == LOP_OK &&
        (alt->core != 1 || alt->dtype != n->dtype || !lop_shape_equal(&alt->shape, &n->shape)))
        return lop_fail(err, LOP_DIM, "the arms of %s differ", n->op->name);
    const bool anti = n->attr.i[0] != 0, hankel = n->attr.i[3] != 0;
    if (st == LOP_OK && (anti != hankel || (hankel && n->attr.i[1])))
        return lop_fail(err, LOP_DIM, "%s: of a Toeplitz matrix over i - j, of a Hankel over i + j",
                        n->op->name);
    return st;
}

static double norm(const lop_mat *a) {
    double sum = 0;
    for (int64_t i = 0; i < a->m; i++) {
        const double _Complex v = lop_get(a->dt, a->p, i * a->rs);
        sum += creal(v) * creal(v) + cimag(v) * cimag(v);
    }
    return sqrt(sum);
}
/* a: y, x, w, (dx, dw,) z, v, (the transforms' plan); attr.re: is there one. The terms that are
 * summed are no larger than what they sum up to, as far as its columns and its product with v
 * tell. */
static lop_status run_inverse(const lop_call *c) {
    const bool hankel = c->step->attr.i[3] != 0, fft = c->step->attr.re != 0;
    const int inputs = c->step->n - 1 - fft, columns = inputs - 2;
    const lop_mat *const x[4] = {c->a[1], c->a[2], columns > 2 ? c->a[3] : NULL,
                                 columns > 2 ? c->a[4] : NULL};
    const lopk_lines how = {false, c->step->attr.i[1] != 0, c->step->attr.i[2] != 0};
    const int64_t n = x[0]->m, at = hankel ? n - 1 : 0;
    const double first = cabs(lop_get(x[0]->dt, x[0]->p, at * x[0]->rs)), nx = norm(x[0]),
                 nw = norm(x[1]), nv = norm(c->a[inputs]);
    double sums = nx * nw / first, most = fmax(nx, nw);
    if (columns > 2) {
        const double by = cabs(lop_get(x[2]->dt, x[2]->p, at * x[2]->rs)) / first, dx = norm(x[2]),
                     dw = norm(x[3]);
        sums = sums * by + (nx * dw + dx * nw) / first;
        most = fmax(dx, dw);
    }
    most = fmax(nv > 0 ? norm(c->a[inputs - 1]) / nv : 0, most);
    lopk_toeplitz_inverse_sums(c->a[0], how, hankel, x, fft ? c->a[inputs + 1]->p : NULL,
                               c->scratch);
    return sums <= 10 * (double)n * most && isfinite(sums) ? LOP_OK : LOP_SINGULAR;
}
static lop_status check_inverse(lop_emit *e, const lop_node *self, int value, int mask) {
    const int64_t n = lop_rows(self->child[0]);
    const int inputs = self->n - 1;
    const lop_dtype dt = self->dtype;
    const bool fft = by_fft(e, dt, n, n);
    const int64_t N = fft ? length_of(n, n, dt) : 0;
    const size_t scratch = fft && N == 0 ? 0 : lopk_toeplitz_inverse_bytes(n, N, dt);
    lop_status st = LOP_OK;
    int in[7];
    if (!scratch) return too_large(e, n, n);
    for (int i = 0; i < inputs; i++) in[i] = lop_emit_value(e, self->child[i]);
    if (fft && (in[inputs] = emit_plan(e, N, dt, &st)) < 0) return st;
    lop_step *s = lop_emit_step(e, self->op->name, run_inverse, value, inputs + fft, in);
    if (!s) return LOP_NOMEM;
    const double pairs = inputs > 4 ? 2 : 1;
    s->attr = self->attr;
    s->attr.re = fft;
    s->fail = mask;
    s->flags = LOP_STEP_QUIET;
    s->scratch = scratch;
    s->flops = pairs * (fft ? 10 * fft_flops(N, dt) : 8 * (double)n * (double)n);
    return LOP_OK;
}
const lop_op lop_op_toeplitz_inverse_sums = {LOP_NAMED(toeplitz_inverse_sums),
                                             .cls = LOP_ARRAY,
                                             .min = 5,
                                             .max = 5,
                                             .ints = 4,
                                             .infer = infer_inverse,
                                             .lower = lop_lower_arms,
                                             .check = check_inverse};
const lop_op lop_op_toeplitz_between_sums = {LOP_NAMED(toeplitz_between_sums),
                                             .cls = LOP_ARRAY,
                                             .min = 7,
                                             .max = 7,
                                             .ints = 4,
                                             .infer = infer_inverse,
                                             .lower = lop_lower_arms,
                                             .check = check_inverse};

/* -- what slots write */

const lop_node *lop_vjp_sums(lop_vjp *v, const lop_node *g, lopk_lines how) {
    if (!(g = lop_vjp_real(v, g))) return NULL;
    const lop_attr attr = {.i = {how.anti, how.circular, how.flip, (int64_t)g->dtype + 1}};
    return lop_vjp_make(v, &lop_op_diagonal_sums, &attr, g, NULL);
}
const lop_node *lop_vjp_run(lop_vjp *v, const lop_node *a, int64_t start, int64_t step,
                            int64_t count) {
    const lop_attr attr = {.i = {0, start, step, count}};
    return v->st == LOP_OK ? lop_vjp_make(v, &lop_op_array_slice, &attr, a, NULL) : NULL;
}
