/* op_quasiseparable_solve.c: solves, determinants and diagonals of inverses of quasi-separable
 * matrices.
 *
 *   quasiseparable_solve  children d, p, q, a, b, alt: A^-1 b of the Hermitian A; attr.i[0]: 1 for
 *                         conj(A); attr.i[1]: 1: by the band, below.
 *   quasitri              children d, p, q, a, b: mode(A)^-1 b of the triangular A; attr.i[0]: the
 *                         mode.
 *   quasiseparable_det    children d, p, q, a, alt: det A as a pair, of the Hermitian A; attr.i[0]:
 *                         by the band.
 *   quasiinvdiag          children d, p, q, a, alt: the diagonal of A^-1, of the Hermitian A;
 *                         attr.i[0]: by the band.
 *
 * The factor, a derived value of O(n J) memory in double precision, is L D L^H (k_quasi.c): stable
 * where A is positive definite, tried where it is not. A solve is checked column by column; a
 * determinant is accepted where all pivots are positive or a trial solve passes; the diagonal where
 * all pivots are positive. Else alt runs: for large ones (quasiseparable.c) LU with exchanges of a
 * band (k_quasi_lu.c), checked in the same way, and then the dense form; for small ones the dense
 * form at once. */
#include "ops/shared/scaled_pair.h"
#include "ops/shared/factor.h"
#include "kernels/dense/k_blas.h"
#include "kernels/common/kernels.h"
#include "ops/shared/quasiseparable.h"

#include <math.h>

static lop_status too_large(lop_err *err, int64_t n) {
    return lop_fail(err, LOP_OVERFLOW,
                    "the factor of a quasi-separable matrix of %lld rows is too "
                    "large",
                    (long long)n);
}
/* Are all sizes of factor and scratch numbers? */
static bool sizes_fit(int64_t n, int64_t J) {
    int64_t cells;
    return lop_mul_ok(n, 40 * 16, &cells) && lop_mul_ok(J, 6 * 16, &cells) &&
           lop_mul_ok(cells, J + 18, &cells) && lop_mul_ok(n, 16, &cells) &&
           lop_mul_ok(cells, J, &cells);
}

static lop_status run_factor(const lop_call *c) {
    const lopk_quasi g = lop_quasi_of(c->a + 1, false);
    lopk_quasi_factor(c->a[0]->p, &g, c->scratch);
    return LOP_OK;
}
static lop_status run_band(const lop_call *c) {
    const lopk_quasi g = lop_quasi_of(c->a + 1, false);
    return lopk_quasi_lu_factor(c->a[0]->p, &g, c->scratch);
}
static double factor_flops(int64_t n, int64_t J, bool full) {
    const double moves = (double)J * (full ? (double)J : 1);
    return 4 * (double)n * moves * (double)(J + 1);
}
int lop_quasi_factor_slot(lop_emit *e, int64_t n, int64_t J, bool full, lop_dtype dt, const int *in,
                          lop_status *st) {
    const lop_attr attr = {.i = {dt, 0, 0, 0}};
    if (!sizes_fit(n, J)) {
        *st = too_large(lop_emit_err(e), n);
        return -1;
    }
    return lop_emit_derived(e, "quasi-factor", run_factor, lopk_quasi_factor_bytes(n, J, dt), 4, in,
                            &attr, lopk_quasi_factor_scratch(n, J), factor_flops(n, J, full), st);
}
/* The slot of the factor of the four in `in`, or of the band's; -1 with the status in *st. */
static int emit_factor(lop_emit *e, const lop_node *self, lop_dtype dt, const int *in, bool by_band,
                       lop_status *st) {
    const int64_t n = lop_rows(self->child[1]), J = lop_cols(self->child[1]);
    const bool full = lop_cols(self->child[3]) != J;
    const lop_attr attr = {.i = {dt, 0, 0, 0}};
    if (!by_band) return lop_quasi_factor_slot(e, n, J, full, dt, in, st);
    if (!sizes_fit(n, J) || !lopk_quasi_lu_fits(n, J)) {
        *st = too_large(lop_emit_err(e), n);
        return -1;
    }
    return lop_emit_derived(e, "quasi-band-factor", run_band, lopk_quasi_lu_bytes(n, J, full, dt),
                            4, in, &attr, lopk_quasi_lu_scratch(n, J),
                            40 * factor_flops(n, J, full), st);
}
/* L D L^H before the branches open, where the four are known by then: solves, determinants and
 * diagonals that are asked for together share it, also where the generators are expressions. */
static lop_status ready(lop_emit *e, const lop_node *self) {
    const bool by_band = self->attr.i[self->op == &lop_op_quasiseparable_solve ? 1 : 0] != 0;
    lop_status st = LOP_OK;
    int in[4];
    for (int i = 0; i < 4; i++)
        if (by_band || !lop_emit_knows(e, self->child[i])) return LOP_OK;
    st = lop_quasi_inputs(e, self->child, lop_quasi_dtype(self->dtype), in);
    if (st == LOP_OK) (void)emit_factor(e, self, lop_quasi_dtype(self->dtype), in, false, &st);
    return st;
}

/* -- quasiseparable_solve, quasitri */

static lop_status infer_solve(lop_node *n, lop_err *err) {
    lop_status st = lop_quasi_shape(n, err);
    const lop_node *b = n->child[4];
    if (st != LOP_OK) return st;
    if (b->core != 2 || lop_rows(b) != lop_rows(n) || n->attr.i[0] < 0 || n->attr.i[0] > 3)
        return lop_fail(err, LOP_DIM, "right-hand sides that fit are needed");
    const lop_node a = {.dtype = n->dtype, .weak = n->weak};
    lop_shape both;
    st = lop_shape_batch(&n->shape, 2, &b->shape, 2, &both, err);
    if (st != LOP_OK) return st;
    n->shape = both;
    n->shape.dim[n->shape.ndim++] = lop_rows(b);
    n->shape.dim[n->shape.ndim++] = lop_cols(b);
    lop_node_promote_inverse(n, &a, b);
    if (!lop_is_blas(n->dtype)) return lop_fail(err, LOP_DTYPE, "solves are in floats");
    if (n->n == 6 && (n->child[5]->dtype != n->dtype || n->child[5]->core != 2 ||
                      !lop_shape_equal(&n->child[5]->shape, &n->shape)))
        return lop_fail(err, LOP_DIM, "the branches of quasiseparable_solve differ");
    return LOP_OK;
}

/* a: y, factor, d, p, q, a, b. */
static lop_status run_solve(const lop_call *c) {
    const lopk_quasi g = lop_quasi_of(c->a + 2, false);
    const void *factor = c->a[1]->p;
    const lop_mat *y = c->a[0], *b = c->a[6];
    lop_status st = lopk_quasi_solve(y, factor, &g, c->step->attr.i[0] != 0, b, c->scratch);
    if (st != LOP_OK) return st;
    lop_call_near(c, lopk_quasi_near(factor), lopk_eps(y->dt));
    lop_call_near(c, lopk_outgrown(y, b, lopk_quasi_norm(factor)), lopk_eps(y->dt));
    return LOP_OK;
}
static lop_status singular(lop_err *err, int64_t pivot) {
    return lop_fail(err, LOP_RANK,
                    "Singular matrix: pivot %lld of the band of a quasi-separable matrix and its "
                    "states is exactly zero",
                    (long long)pivot);
}
static lop_status run_band_solve(const lop_call *c) {
    const lopk_quasi g = lop_quasi_of(c->a + 2, false);
    int64_t pivot;
    lop_status st = lopk_quasi_lu_solve(c->a[0], c->a[1]->p, &g, c->step->attr.i[0] != 0, c->a[6],
                                        &pivot, c->scratch);
    if (st == LOP_OK)
        lop_call_near(c, lopk_outgrown(c->a[0], c->a[6], lopk_quasi_lu_norm(c->a[1]->p)),
                      lopk_eps(c->a[0]->dt));
    return st == LOP_RANK ? singular(c->err, pivot) : st;
}
static lop_status check_solve(lop_emit *e, const lop_node *self, int value, int mask) {
    const lop_dtype dt = lop_quasi_dtype(self->dtype);
    const int64_t n = lop_rows(self), J = lop_cols(self->child[1]);
    int in[6];
    int64_t k, batch;
    lop_status st = lop_quasi_inputs(e, self->child, dt, in + 1);
    if (st != LOP_OK) return st;
    const bool by_band = self->attr.i[1] != 0;
    in[0] = emit_factor(e, self, dt, in + 1, by_band, &st);
    if (in[0] < 0) return st;
    in[5] = lop_emit_cast(e, lop_emit_value(e, self->child[4]), self->dtype, &st);
    if (in[5] < 0) return st;
    lop_slot_sizes(e, value, NULL, &k, &batch);
    lop_step *s = lop_emit_step(e, by_band ? "quasi-band-solve" : "quasi-solve",
                                by_band ? run_band_solve : run_solve, value, 6, in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->fail = mask;
    s->flags = LOP_STEP_QUIET;
    s->scratch = by_band ? lopk_quasi_lu_scratch(n, J) : lopk_quasi_solve_scratch(n, J, k);
    s->flops =
        4 * (double)n * (double)(lop_cols(self->child[3]) + 2 * J) * (double)k * (double)batch;
    return LOP_OK;
}
const lop_op lop_op_quasiseparable_solve = {LOP_NAMED(quasiseparable_solve),
                                            .cls = LOP_ARRAY,
                                            .min = 6,
                                            .max = 6,
                                            .ints = 2,
                                            .infer = infer_solve,
                                            .lower = lop_lower_arms,
                                            .check = check_solve,
                                            .ready = ready};

/* a: y, d, p, q, a, b; in double precision: y is n x k scratch first where it is single. */
static lop_status run_tri(const lop_call *c) {
    const lopk_quasi g = lop_quasi_of(c->a + 1, true);
    const lop_mat *y = c->a[0];
    char *states = c->scratch;
    int64_t where;
    lop_mat wide = *y;
    if (y->dt != g.dt)
        wide = (lop_mat){states + lopk_quasi_mm_scratch(g.J), y->m, y->n, y->n, 1, g.dt};
    lop_status st =
        lopk_quasi_substitute(&wide, &g, (int)c->step->attr.i[0], c->a[5], states, &where);
    if (st != LOP_OK) return lop_factor_singular(c->err, where + 1, y->m);
    if (y->dt != g.dt) lopk_copy(y, &wide);
    const lop_mat d = {(void *)(uintptr_t)g.d, g.n, g.n, 1, 0, g.dt};
    lop_call_near(c, lopk_pivot_ratio(&d), lopk_eps(y->dt));
    return LOP_OK;
}
static lop_status lower_tri(lop_emit *e, const lop_node *self, int out) {
    const lop_dtype dt = lop_quasi_dtype(self->dtype);
    const int64_t n = lop_rows(self), k = lop_cols(self), J = lop_cols(self->child[1]);
    int in[5];
    int64_t bytes;
    lop_status st = lop_quasi_inputs(e, self->child, dt, in);
    if (st != LOP_OK) return st;
    in[4] = lop_emit_value(e, self->child[4]);
    if (!sizes_fit(n, J) || !lop_mul_ok(n, k, &bytes) || !lop_mul_ok(bytes, 16, &bytes))
        return too_large(lop_emit_err(e), n);
    lop_step *s = lop_emit_step(e, "quasi-substitute", run_tri, out, 5, in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->scratch = lopk_quasi_mm_scratch(J) + (dt == self->dtype ? 0 : (size_t)bytes);
    s->flops = 2 * (double)n * (double)(lop_cols(self->child[3]) + 2 * J) * (double)k;
    return LOP_OK;
}
const lop_op lop_op_quasitri = {
    LOP_NAMED(quasitri), .cls = LOP_ARRAY,     .min = 5,          .max = 5,
    .ints = 1,           .infer = infer_solve, .lower = lower_tri};

/* -- quasiseparable_det */

static lop_status infer_det(lop_node *n, lop_err *err) {
    lop_status st = lop_quasi_shape(n, err);
    const lop_node *alt = n->child[4];
    if (st != LOP_OK) return st;
    const lop_shape all = n->shape;
    st = lop_pair_infer(n, &all, 2, n->dtype);
    if (st == LOP_OK && (!lop_node_is_pair(alt) || alt->dtype != n->dtype ||
                         !lop_shape_equal(&alt->shape, &n->shape)))
        st = lop_fail(err, LOP_DIM, "the branches of quasiseparable_det differ");
    return st;
}
/* a: pair, factor; attr.i[0]: the size. */
static lop_status run_det(const lop_call *c) {
    const double *D = lopk_quasi_pivots(c->a[1]->p);
    if (!D) {
        lop_pair_store(c->a[0], (lop_pair){0, 0, 0});
        return LOP_SINGULAR;
    }
    const lop_mat pivots = {(void *)(uintptr_t)D, c->step->attr.i[0], 1, 1, 1, LOP_f64};
    lop_pair_store(c->a[0], lop_pair_product(&pivots));
    return LOP_OK;
}
/* a: pair, factor, d, p, q, a. */
static lop_status run_band_det(const lop_call *c) {
    const lopk_quasi g = lop_quasi_of(c->a + 2, false);
    lop_mat pivots;
    int64_t twos;
    bool odd;
    lop_pair det = {lopk_quasi_lu_is_zero(c->a[1]->p) ? 0 : NAN, 0, 0};
    lop_status st = lopk_quasi_lu_det(c->a[1]->p, &g, &pivots, &odd, &twos, c->scratch);
    if (st == LOP_OK) {
        det = lop_pair_product(&pivots);
        if (odd) det = (lop_pair){-det.re, -det.im, det.e};
        det.im = 0; /* of a Hermitian matrix */
        det.e += (double)twos;
    }
    lop_pair_store(c->a[0], lop_pair_scaled(det));
    return st == LOP_RANK ? LOP_OK : st;
}
static lop_status check_det(lop_emit *e, const lop_node *self, int value, int mask) {
    const lop_dtype dt = self->dtype;
    const bool by_band = self->attr.i[0] != 0;
    int in[5];
    lop_status st = lop_quasi_inputs(e, self->child, dt, in + 1);
    if (st != LOP_OK) return st;
    in[0] = emit_factor(e, self, dt, in + 1, by_band, &st);
    if (in[0] < 0) return st;
    lop_step *s = lop_emit_step(e, by_band ? "quasi-band-det" : "quasiseparable_det",
                                by_band ? run_band_det : run_det, value, by_band ? 5 : 1, in);
    if (!s) return LOP_NOMEM;
    if (by_band)
        s->scratch = lopk_quasi_lu_scratch(lop_rows(self->child[1]), lop_cols(self->child[1]));
    s->attr.i[0] = lop_rows(self->child[1]);
    s->fail = mask;
    s->flags = LOP_STEP_QUIET;
    return LOP_OK;
}
const lop_op lop_op_quasiseparable_det = {LOP_NAMED(quasiseparable_det),
                                          .cls = LOP_ARRAY,
                                          .min = 5,
                                          .max = 5,
                                          .ints = 1,
                                          .infer = infer_det,
                                          .lower = lop_lower_arms,
                                          .check = check_det,
                                          .ready = ready};

/* -- quasiinvdiag */

static lop_status infer_invdiag(lop_node *n, lop_err *err) {
    lop_status st = lop_quasi_shape(n, err);
    const lop_node *alt = n->child[4];
    if (st != LOP_OK) return st;
    n->shape.ndim--;
    n->core = 1;
    n->weak = LOP_STRONG;
    if (alt->core != 1 || alt->dtype != n->dtype || !lop_shape_equal(&alt->shape, &n->shape))
        return lop_fail(err, LOP_DIM, "the branches of quasiinvdiag differ");
    return LOP_OK;
}
/* a: y, factor, d, p, q, a. */
static lop_status run_invdiag(const lop_call *c) {
    const lopk_quasi g = lop_quasi_of(c->a + 2, false);
    const lop_mat wide = {c->scratch, g.n, 1, 1, 1, g.dt};
    char *states = (char *)c->scratch + (((size_t)g.n * 16 + 63) & ~(size_t)63);
    lop_status st = lopk_quasi_invdiag(&wide, c->a[1]->p, &g, states);
    if (st != LOP_OK) return st;
    lopk_copy(c->a[0], &wide);
    lop_call_near(c, lopk_quasi_near(c->a[1]->p), lopk_eps(c->a[0]->dt));
    return LOP_OK;
}
static lop_status run_band_invdiag(const lop_call *c) {
    const lopk_quasi g = lop_quasi_of(c->a + 2, false);
    int64_t pivot;
    lop_status st = lopk_quasi_lu_invdiag(c->a[0], c->a[1]->p, &g, &pivot, c->scratch);
    return st == LOP_RANK ? singular(c->err, pivot) : st;
}
static lop_status check_invdiag(lop_emit *e, const lop_node *self, int value, int mask) {
    const lop_dtype dt = lop_quasi_dtype(self->dtype);
    const int64_t n = lop_rows(self->child[1]), J = lop_cols(self->child[1]);
    int in[5];
    lop_status st = lop_quasi_inputs(e, self->child, dt, in + 1);
    if (st != LOP_OK) return st;
    const bool by_band = self->attr.i[0] != 0;
    in[0] = emit_factor(e, self, dt, in + 1, by_band, &st);
    if (in[0] < 0) return st;
    lop_step *s =
        lop_emit_step(e, by_band ? "quasi-band-inverse-diagonal" : "quasi-inverse-diagonal",
                      by_band ? run_band_invdiag : run_invdiag, value, 5, in);
    if (!s) return LOP_NOMEM;
    s->fail = mask;
    s->flags = LOP_STEP_QUIET;
    s->scratch = by_band ? lopk_quasi_lu_invdiag_scratch(n, J, lop_cols(self->child[3]) != J, dt)
                         : (((size_t)n * 16 + 63) & ~(size_t)63) + lopk_quasi_factor_scratch(0, J);
    s->flops = (by_band ? 400 : 4) * (double)n * (double)J * (double)J * (double)(J + 1);
    return LOP_OK;
}
const lop_op lop_op_quasiinvdiag = {LOP_NAMED(quasiinvdiag),
                                    .cls = LOP_ARRAY,
                                    .min = 5,
                                    .max = 5,
                                    .ints = 1,
                                    .infer = infer_invdiag,
                                    .lower = lop_lower_arms,
                                    .check = check_invdiag,
                                    .ready = ready};
