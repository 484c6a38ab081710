/* op_action.c: what is asked of an operator, as nodes, so that rules can speak of it.
 *
 * The rules push actions down to the kinds; here the kinds' own methods are called. attr.i[3] of
 * todense, diagonal, trace, element is the dtype + 1 in which to compute (0: the operator's own).
 */
#include "ops/shared/factor.h"
#include "kernels/dense/k_blas.h"
#include "kernels/dense/k_by_divisions.h"
#include "kernels/common/kernels.h"

#include <math.h>
#include <string.h>

static lop_status want_operator(const lop_node *self, lop_err *err) {
    return self->child[0]->op->cls == LOP_OPERATOR
               ? LOP_OK
               : lop_fail(err, LOP_DIM, "%s takes an operator", self->op->name);
}

/* -- apply, solve: operator and right-hand sides */

static lop_status infer_apply(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0], *x = n->child[1];
    char ta[128], tx[128];
    bool solve = n->op == &lop_op_solve;
    lop_status st = want_operator(n, err);
    if (st != LOP_OK) return st;
    if (x->core != 2 || (solve ? lop_rows(a) : lop_cols(a)) != lop_rows(x))
        return lop_fail(err, LOP_DIM, "an operator of shape %s does not %s an array of shape %s",
                        lop_shape_text(&a->shape, ta, sizeof ta), solve ? "solve for" : "apply to",
                        lop_shape_text(&x->shape, tx, sizeof tx));
    if (solve && !lop_is_square(a))
        return lop_fail(err, LOP_SINGULAR, "Last 2 dimensions of the array must be square: %s",
                        lop_shape_text(&a->shape, ta, sizeof ta));
    st = lop_shape_batch(&a->shape, 2, &x->shape, 2, &n->shape, err);
    if (st != LOP_OK) return st;
    n->shape.dim[n->shape.ndim++] = lop_rows(a);
    n->shape.dim[n->shape.ndim++] = lop_cols(x);
    if (solve)
        lop_node_promote_inverse(n, a, x);
    else
        lop_node_promote(n, a, x);
    return LOP_OK;
}

/* The kind under a view, and the view's mode. */
static const lop_node *peel(const lop_node *a, lop_mode *mode) {
    *mode = LOP_N;
    if (a->op != &lop_op_view) return a;
    *mode = (lop_mode)a->attr.i[0];
    return a->child[0];
}

static lop_status lower_apply(lop_emit *e, const lop_node *self, int out) {
    lop_mode mode;
    lop_status st;
    const lop_node *a = peel(self->child[0], &mode);
    int x = lop_emit_cast(e, lop_emit_value(e, self->child[1]), self->dtype, &st);
    if (x < 0) return st;
    return a->op->apply ? a->op->apply(e, a, mode, x, out) : LOP_UNABLE;
}
const lop_op lop_op_apply = {LOP_NAMED(apply), .cls = LOP_ACTION,    .min = 2,
                             .max = 2,         .infer = infer_apply, .lower = lower_apply};
const lop_op lop_op_solve = {LOP_NAMED(solve), .cls = LOP_ACTION, .min = 2, .max = 2,
                             .infer = infer_apply};

/* -- dense form, diagonal, trace, element */

static lop_status infer_value(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0];
    lop_status st = want_operator(n, err);
    if (st != LOP_OK) return st;
    n->shape = a->shape;
    if (n->attr.i[3] < 0 || n->attr.i[3] > LOP_NDTYPE) return lop_fail(err, LOP_DTYPE, NULL);
    if (n->attr.i[3] == 0 && a->dtype < LOP_NDTYPE) n->attr.i[3] = (int64_t)a->dtype + 1;
    n->dtype = n->attr.i[3] ? (lop_dtype)(n->attr.i[3] - 1) : a->dtype;
    n->weak = LOP_STRONG;
    if (!a->weak && ((lop_is_complex(a->dtype) && !lop_is_complex(n->dtype)) ||
                     (lop_is_blas(a->dtype) && !lop_is_blas(n->dtype))))
        return lop_fail(err, LOP_DTYPE, "%s of a %s operator cannot be computed in %s", n->op->name,
                        lop_dtype_name(a->dtype), lop_dtype_name(n->dtype));
    if (n->op == &lop_op_trace && !lop_is_blas(n->dtype) &&
        n->dtype < LOP_NDTYPE) /* as np.trace sums */
        n->dtype = lop_dtype_family(n->dtype) == 'u' ? LOP_u64 : LOP_i64;
    if (n->op == &lop_op_trace && n->attr.i[0])
        return lop_fail(err, LOP_DIM, "a trace has no offset");
    int nb = lop_nbatch(a);
    if (n->op == &lop_op_diagonal) {
        if (n->attr.i[0] < -lop_rows(a)) n->attr.i[0] = -lop_rows(a); /* empty all the same */
        if (n->attr.i[0] > lop_cols(a)) n->attr.i[0] = lop_cols(a);
        n->shape.ndim = nb + 1;
        n->shape.dim[nb] = lop_diag_length(lop_rows(a), lop_cols(a), n->attr.i[0]);
        n->core = 1;
    } else if (n->op != &lop_op_todense) {
        n->shape.ndim = nb;
        n->core = 0;
    }
    if (n->op == &lop_op_element && (n->attr.i[0] < 0 || n->attr.i[0] >= lop_rows(a) ||
                                     n->attr.i[1] < 0 || n->attr.i[1] >= lop_cols(a)))
        return lop_fail(err, LOP_INDEX,
                        "index (%lld, %lld) is out of bounds for a %lld x %lld operator",
                        (long long)n->attr.i[0], (long long)n->attr.i[1], (long long)lop_rows(a),
                        (long long)lop_cols(a));
    return LOP_OK;
}
static lop_status lower_todense(lop_emit *e, const lop_node *self, int out) {
    const lop_node *a = self->child[0];
    return a->op->dense ? a->op->dense(e, a, out) : LOP_UNABLE;
}
static lop_status lower_diagonal(lop_emit *e, const lop_node *self, int out) {
    const lop_node *a = self->child[0];
    return a->op->diagonal ? a->op->diagonal(e, a, self->attr.i[0], out) : LOP_UNABLE;
}
static lop_status lower_element(lop_emit *e, const lop_node *self, int out) {
    const lop_node *a = self->child[0];
    return a->op->element ? a->op->element(e, a, self->attr.i[0], self->attr.i[1], out)
                          : LOP_UNABLE;
}
#define VALUE(head, how)                                                                           \
    const lop_op lop_op_##head = {LOP_NAMED(head), .cls = LOP_ACTION,    .min = 1,    .max = 1,    \
                                  .ints = 4,       .infer = infer_value, .lower = how}
VALUE(todense, lower_todense);
VALUE(diagonal, lower_diagonal);
VALUE(trace, NULL);
VALUE(element, lower_element);

/* -- solves by a factor of the dense form --
 * Derived value, one a batch element: the column-major factor; then the row exchanges of LU and one
 * flag, whether a factor that should be Cholesky's is LU's. Cost n^3 / 3 or 2/3 n^3 once, 2 n^2 k
 * each. */

static lop_status infer_factored(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0], *b = n->child[1];
    if (a->core != 2 || b->core != 2 || lop_rows(a) != lop_cols(a) || lop_rows(a) != lop_rows(b))
        return lop_fail(err, LOP_DIM, "a square matrix and right-hand sides that fit are needed");
    lop_status st = lop_shape_batch(&a->shape, 2, &b->shape, 2, &n->shape, err);
    if (st != LOP_OK) return st;
    n->shape.dim[n->shape.ndim++] = lop_rows(b);
    n->shape.dim[n->shape.ndim++] = lop_cols(b);
    lop_node_promote_inverse(n, a, b);
    return LOP_OK;
}

/* Where pivots have no reciprocals: near one, and the rows of U are brought back. */
static lop_status factor_by_divisions(const lop_mat *f, void *work) {
    int64_t info = 0;
    const int up = lopk_below_one(f);
    if (up) lopk_shift_range(f, up);
    const double norm = lopk_norm1('G', f);
    lop_status st = lopk_lu_by_divisions(f, lop_factor_pivots(f), &info);
    if (st != LOP_OK && st != LOP_SINGULAR) return st;
    *lop_factor_near(f) = lopk_near(f, false, NULL, norm, work);
    lopk_shift_upper(f, -up);
    return LOP_OK;
}

/* `a`: what f is a copy of; NULL: it is the only one, of that 1-norm. */
static lop_status factor_in_place(const lop_mat *f, const lop_mat *a, double norm, void *work) {
    int64_t info = 0;
    if (!a && lopk_has_faint(f)) return factor_by_divisions(f, work);
    lop_status st = lopk_getrf(f, lop_factor_pivots(f), &info);
    if (st != LOP_OK && st != LOP_SINGULAR) return st;
    if (a && lopk_lu_is_spoilt(f)) {
        lopk_copy(f, a);
        return factor_by_divisions(f, work);
    }
    *lop_factor_near(f) = lopk_near(f, false, a, norm, work);
    return LOP_OK; /* singular: found when something is divided by it */
}
static lop_status run_getrf(const lop_call *c) {
    const lop_mat *a = c->a[1];
    lop_mat f = lop_factor_at(c->a[0]->p, a->m, a->dt);
    lopk_copy(&f, a);
    return factor_in_place(&f, a, 0, c->scratch);
}

/* The Hermitian matrix of which a failed Cholesky has left the upper triangle, and `diag`. */
static void give_back(const lop_mat *f, const lop_mat *diag) {
    for (int64_t j = 0; j < f->n; j++) {
        char *at = (char *)f->p + j * (f->n + 1) * (int64_t)lop_dtype_size(f->dt);
        const lop_mat below = {at, f->n - j, 1, 1, 1, f->dt},
                      right = {at, f->n - j, 1, f->n, 1, f->dt};
        lopk_conj(&below, &right);
    }
    const lop_mat on = {f->p, f->n, 1, f->n + 1, 1, f->dt};
    lopk_copy(&on, diag);
}

/* Assumed positive definite: Cholesky; where it fails LU, and the flag is set. SciPy reads the
 * upper triangle of what is assumed so: its adjoint is our lower one. A Hermitian temporary that
 * dies here lies in the factor's memory. attr.i[1]: see LOP_STEP_HALVES. */
static lop_status run_potrf(const lop_call *c) {
    const lop_mat *a = c->a[1];
    lop_mat f = lop_factor_at(c->a[0]->p, a->m, a->dt), t = {a->p, a->n, a->m, a->cs, a->rs, a->dt};
    const lop_mat diag = {c->scratch, a->m, 1, 1, 1, a->dt},
                  on = {f.p, a->m, 1, a->n + 1, 1, a->dt};
    const bool own = a->p == f.p;
    int64_t info = 0;
    if (own) lopk_copy(&diag, &on);
    if (!own)
        lopk_conj(&f, &t);
    else if (lop_is_complex(f.dt))
        lopk_conj(&f, &f);
    lop_status st = lopk_potrf(&f, &info);
    lop_factor_pivots(&f)[a->m] = st == LOP_SINGULAR;
    if (st == LOP_OK) *lop_factor_near(&f) = lopk_near(&f, true, own ? NULL : a, 0, c->scratch);
    if (st != LOP_SINGULAR) return st;
    const int64_t half = c->step->attr.i[1];
    if (!own && !half) return run_getrf(c);
    if (half)
        lopk_whole_of_half(&f, a, half == 2);
    else
        give_back(&f, &diag);
    const double norm = lopk_norm1('G', &f);
    return factor_in_place(&f, NULL, norm, c->scratch);
}

/* y <- factor^-1 b through a column-major copy in scratch, of a batch where y lies; attr.i[0]: of
 * LU's, the mode in which its matrix is seen: conj(A)^-1 b = conj(A^-1 conj b). */
static lop_status solve_by(const lop_call *c, bool cholesky) {
    static const char trans[4] = {'N', 'T', 'N', 'C'};
    const lop_mat *y = c->a[0], *b = c->a[2];
    const int64_t mode = cholesky ? LOP_N : c->step->attr.i[0];
    lop_mat f = lop_factor_at(c->a[1]->p, y->m, y->dt),
            x = {c->scratch, y->m, y->n, 1, y->m > 0 ? y->m : 1, y->dt};
    if (c->more) x = *y;
    if (cholesky && lop_factor_pivots(&f)[y->m]) return LOP_SINGULAR;
    int64_t zero = cholesky ? -1 : lopk_diag_has_zero(&f);
    if (zero >= 0) return lop_factor_singular(c->err, zero + 1, y->m);
    lop_call_near(c, *lop_factor_near(&f), lopk_eps(f.dt));
    if (mode == LOP_C)
        lopk_conj(&x, b);
    else
        lopk_copy(&x, b);
    lop_status st =
        cholesky ? lopk_potrs(&f, &x) : lopk_getrs(&f, lop_factor_pivots(&f), trans[mode], &x);
    if (st != LOP_OK) return st;
    if (mode == LOP_C)
        lopk_conj(y, &x);
    else if (!c->more)
        lopk_copy(y, &x);
    return st;
}
static lop_status run_potrs(const lop_call *c) { return solve_by(c, true); }
static lop_status run_getrs(const lop_call *c) { return solve_by(c, false); }

static lop_step *emit_back(lop_emit *e, const lop_node *self, bool cholesky, const int *in,
                           int out) {
    int64_t m, k, batch, factors;
    lop_slot_sizes(e, out, &m, &k, &batch);
    lop_slot_sizes(e, in[0], NULL, NULL, &factors);
    lop_step *s = cholesky ? lop_emit_step(e, "potrs", run_potrs, out, 2, in)
                           : lop_emit_step(e, "getrs", run_getrs, out, 2, in);
    if (!s) return NULL;
    s->flags = LOP_STEP_SOLVES;
    s->scratch = (size_t)m * (size_t)k * lop_dtype_size(self->dtype);
    s->flops = 2.0 * (double)m * (double)m * (double)k * (double)batch;
    if (k == 1 && factors == 1) k = batch; /* vectors, which run as one matrix */
    if (m >= LOP_BLOCKED && k >= LOP_BLOCKED / 4) s->flags |= LOP_STEP_GEMM;
    return s;
}

/* The slot of the factor of slot `a`; -1 with the status in *st. */
static int emit_factor(lop_emit *e, int64_t n, lop_dtype dt, bool cholesky, int a, lop_status *st) {
    int64_t all;
    if (!lop_mul_ok(n, n, &all) || !lop_mul_ok(all, 16, &all)) {
        *st =
            lop_fail(lop_emit_err(e), LOP_OVERFLOW,
                     "the factor of a %lld x %lld matrix is too large", (long long)n, (long long)n);
        return -1;
    }
    double cube = (double)n * (double)n * (double)n;
    const size_t bytes = lop_factor_near_at(n, dt) + sizeof(double), work = lopk_near_bytes(n, dt),
                 diag = (size_t)n * lop_dtype_size(dt);
    const int f = lop_emit_derived(
        e, cholesky ? "potrf" : "getrf", cholesky ? run_potrf : run_getrf, bytes, 1, &a, NULL,
        work > diag ? work : diag, cholesky ? cube / 3 : cube * 2 / 3, st);
    lop_emit_blocked(e, f, n);
    if (cholesky) lop_emit_halves(e, f);
    return f;
}
int lop_emit_lu(lop_emit *e, int64_t n, lop_dtype dt, int a, lop_status *st) {
    return emit_factor(e, n, dt, false, a, st);
}
int lop_emit_cholesky(lop_emit *e, int64_t n, lop_dtype dt, int a, bool hermitian, lop_status *st) {
    int f = emit_factor(e, n, dt, true, a, st);
    if (f >= 0 && hermitian) lop_emit_onto(e, f);
    return f;
}

/* The children in the node's dtype. */
static lop_status emit_casts(lop_emit *e, const lop_node *self, int *in) {
    lop_status st = LOP_OK;
    for (int i = 0; i < 2; i++) {
        in[i] = lop_emit_cast(e, lop_emit_value(e, self->child[i]), self->dtype, &st);
        if (in[i] < 0) return st;
    }
    return st;
}
/* attr.i[0]: the mode in which the matrix is seen. */
static lop_status lower_lu_solve(lop_emit *e, const lop_node *self, int out) {
    int in[2];
    lop_status st = emit_casts(e, self, in);
    if (st == LOP_OK) in[0] = lop_emit_lu(e, lop_rows(self), self->dtype, in[0], &st);
    if (st != LOP_OK) return st;
    lop_step *s = emit_back(e, self, false, in, out);
    if (!s) return LOP_NOMEM;
    s->attr.i[0] = self->attr.i[0];
    return LOP_OK;
}

/* Each batch element for itself: by Cholesky, or where that failed by LU. attr.i[0]: known to be
 * Hermitian; 1: only tried, so that a failure contradicts no assumption. */
static lop_status lower_cholesky_solve(lop_emit *e, const lop_node *self, int out) {
    int in[2];
    lop_status st = emit_casts(e, self, in);
    if (st == LOP_OK && lop_stack_fits(lop_rows(self), self->dtype))
        return lop_emit_stack_solve(e, lop_rows(self), self->dtype, in[0], in[1], out,
                                    self->attr.i[0] == 1);
    if (st == LOP_OK)
        in[0] = lop_emit_cholesky(e, lop_rows(self), self->dtype, in[0], self->attr.i[0] != 0, &st);
    int mask = st == LOP_OK ? lop_emit_mask(e, out, &st) : -1;
    if (mask < 0) return st;
    lop_step *s = emit_back(e, self, true, in, out);
    if (!s) return LOP_NOMEM;
    s->fail = mask;
    if (self->attr.i[0] == 1) s->flags |= LOP_STEP_QUIET;
    s = emit_back(e, self, false, in, out);
    if (!s) return LOP_NOMEM;
    s->when = mask;
    s->when_set = true;
    return LOP_OK;
}
void lop_note_pivots(const lop_call *c, const lop_mat *d, bool unit, const lop_mat *y,
                     const lop_mat *b) {
    double least = 1, most = 1;
    if (!c->near) return;
    if (!unit) lopk_pivot_range(d, &least, &most);
    lop_call_near(c, lopk_range_ratio(least, most), lopk_eps(y->dt));
    lop_call_near(c, lopk_outgrown(y, b, most), lopk_eps(y->dt));
}
/* Substitution with one triangle of the array as it lies. attr.i[0]: lower, attr.i[1]: mode,
 * attr.i[2]: ones on the diagonal. */
static lop_status run_trisolve(const lop_call *c) {
    const lop_mat *y = c->a[0], *a = c->a[1];
    static const char trans[4] = {'N', 'T', 'N', 'C'};
    const bool unit = c->step->attr.i[2] != 0;
    int64_t mode = c->step->attr.i[1], zero = unit ? -1 : lopk_diag_has_zero(a);
    if (zero >= 0)
        return lop_fail(c->err, LOP_SINGULAR,
                        "Singular matrix: element %lld of the diagonal is exactly zero",
                        (long long)zero);
    lop_mat x = {c->scratch, y->m, y->n, 1, y->m > 0 ? y->m : 1, y->dt};
    if (mode == LOP_C)
        lopk_conj(&x, c->a[2]); /* conj(A)^-1 b = conj(A^-1 conj b) */
    else
        lopk_copy(&x, c->a[2]);
    lop_status st = LOP_OK;
    if (!unit && lopk_diag_is_tiny(a))
        lopk_substitute(a, c->step->attr.i[0] != 0, trans[mode], &x);
    else
        st = lopk_trsm(a, c->step->attr.i[0] != 0, unit, trans[mode], &x);
    if (st != LOP_OK) return st;
    if (mode == LOP_C)
        lopk_conj(y, &x);
    else
        lopk_copy(y, &x);
    lop_note_pivots(c, a, unit, y, c->a[2]);
    return LOP_OK;
}
static lop_status lower_trisolve(lop_emit *e, const lop_node *self, int out) {
    int in[2];
    lop_status st = emit_casts(e, self, in);
    if (st != LOP_OK) return st;
    lop_step *s = lop_emit_step(e, "trsm", run_trisolve, out, 2, in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->scratch = (size_t)lop_rows(self) * (size_t)lop_cols(self) * lop_dtype_size(self->dtype);
    s->flops = (double)lop_rows(self) * lop_slot_elements(e, out);
    if (lop_rows(self) >= LOP_BLOCKED && lop_cols(self) >= LOP_BLOCKED / 4)
        s->flags |= LOP_STEP_GEMM;
    return LOP_OK;
}
const lop_op lop_op_triangular_solve = {
    LOP_NAMED(triangular_solve), .cls = LOP_ARRAY,       .min = 2, .max = 2, .ints = 3,
    .infer = infer_factored,     .lower = lower_trisolve};
#define FACTORED(head, count)                                                                      \
    const lop_op lop_op_##head = {                                                                 \
        LOP_NAMED(head),         .cls = LOP_ARRAY,     .min = 2, .max = 2, .ints = count,          \
        .infer = infer_factored, .lower = lower_##head}
FACTORED(lu_solve, 1);
FACTORED(cholesky_solve, 1);
