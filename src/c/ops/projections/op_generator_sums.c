/* op_generator_sums.c: what a cotangent means for the generators of a quasi-separable matrix.
 *
 * Of an n x n matrix G and arrays p, q (n x J) and a (n x J or n x J^2) they are as many numbers as
 * the three have, one after the other: what the sum of conj(G[i, j]) p_i^T a_{i-1} ... a_{j+1} q_j
 * over i > j grows by, to first order, is Re sum(conj(found) d(p, q, a)).
 *
 * - generator_sums: children G, p, q, a, G an operator.
 * - pair_generator_sums: children L, R, p, q, a; G is the product L R.
 * - quasi_inverse_sums: children d, p, q, a of a Hermitian A, those three, alt; G is A^-1, whose
 * part below the diagonal is quasi-separable too, from A's factor (op_quasiseparable_solve.c); alt
 * runs where A is not positive definite.
 * - quasi_between_sums: children d, p, q, a of A, those of a Hermitian Y, the three, alt; G is
 * A^-1 Y A^-1. quasi_between_diagonal: its diagonal, without the three.
 *
 * attr.i[0]: of G + G^T instead, all real; attr.i[3] of the first: dtype.
 * Two sweeps, computed in double precision (k_quasi_sums_per_dtype.h). */
#include "projections.h"

#include "kernels/common/kernels.h"
#include "kernels/dense/k_blas.h"
#include "ops/shared/factor.h"
#include "ops/shared/quasiseparable.h"

#include <string.h>

/* The last three children from `first` on, of n rows: shape and dtype of the whole. */
static lop_status shape_of(lop_node *n, int first, int64_t rows, lop_err *err) {
    const lop_node *const *v = n->child + first;
    int64_t square, numbers, all;
    bool fits = true;
    for (int i = 0; i < 3; i++)
        fits = fits && v[i]->op->cls != LOP_OPERATOR && v[i]->core == 2 && lop_rows(v[i]) == rows &&
               lop_is_blas(v[i]->dtype);
    const int64_t J = fits ? lop_cols(v[0]) : 0;
    fits = fits && lop_cols(v[1]) == J && lop_mul_ok(J, J, &square) &&
           (lop_cols(v[2]) == J || lop_cols(v[2]) == square);
    if (!fits)
        return lop_fail(err, LOP_DIM, "%s takes generators of %lld rows", n->op->name,
                        (long long)rows);
    if (!lop_add_ok(2 * J, lop_cols(v[2]), &numbers) || !lop_mul_ok(numbers, rows, &all))
        return lop_fail(err, LOP_OVERFLOW, NULL);
    for (int i = 0; i < 3; i++)
        if (lop_promote(n->dtype, v[i]->dtype) != n->dtype)
            return lop_fail(err, LOP_DTYPE, "%s with generators of a wider dtype", n->op->name);
    const lop_dtype dt = n->dtype;
    const lop_status st = lop_node_batches(n, 1, err);
    if (st != LOP_OK) return st;
    n->dtype = dt;
    n->shape.dim[n->shape.ndim++] = all;
    n->core = 1;
    n->weak = LOP_STRONG;
    if (n->attr.i[0] && lop_is_complex(n->dtype))
        return lop_fail(err, LOP_DTYPE, "%s of G + G^T takes real G", n->op->name);
    return LOP_OK;
}

static lop_status infer_sums(lop_node *n, lop_err *err) {
    const lop_node *g = n->child[0];
    lop_status st = lop_projection_dtype(n, err);
    if (st == LOP_OK && !lop_is_square(g))
        st = lop_fail(err, LOP_DIM, "%s takes a square operator", n->op->name);
    return st == LOP_OK ? shape_of(n, 1, lop_rows(g), err) : st;
}
const lop_op lop_op_generator_sums = {
    LOP_NAMED(generator_sums), .cls = LOP_ACTION, .min = 4, .max = 4, .ints = 4,
    .infer = infer_sums};

static size_t room(size_t bytes) { return (bytes + 63) & ~(size_t)63; }
/* p, q, a, in the dtype of the sweeps, dense. */
static lop_status generators(lop_emit *e, const lop_node *const *v, lop_dtype dt, int *in) {
    lop_status st = LOP_OK;
    for (int i = 0; i < 3; i++) {
        in[i] = lop_emit_cast(e, lop_emit_value(e, v[i]), dt, &st);
        in[i] = lop_emit_in_c_order(e, in[i], &st);
        if (in[i] < 0) return st;
    }
    return st;
}
/* Kernels' view of three arrays, whose diagonal is not read. */
static lopk_quasi target_of(const lop_mat *const *a) {
    return (lopk_quasi){a[0]->m, a[0]->n, a[2]->n != a[0]->n, true, a[0]->dt, NULL, a[0]->p,
                        a[1]->p, a[2]->p};
}
/* Room for what is found, in the sweeps' dtype, behind their own; 0: too much. */
static size_t scratch_of(int64_t count, int64_t n, int64_t J, int64_t K, lop_dtype dt,
                         size_t sweeps) {
    int64_t bytes, most = J > K ? J : K;
    if (!lop_mul_ok(count, 16, &bytes) || !lop_mul_ok(n + 8, 16 * 16, &bytes) ||
        !lop_mul_ok(bytes, most, &bytes) || !lop_mul_ok(bytes, most, &bytes))
        return 0;
    return room(sweeps) + (size_t)count * lop_dtype_size(dt) + 64;
}
/* Where the sweeps write: the result itself, where it is in their dtype and dense. */
static lop_mat apart(const lop_call *c, lop_dtype dt, size_t sweeps) {
    return (lop_mat){(char *)c->scratch + room(sweeps), c->a[0]->m, 1, 1, 1, dt};
}
static lop_mat found_in(const lop_call *c, lop_dtype dt, size_t sweeps) {
    const lop_mat *y = c->a[0];
    return y->dt == dt && (y->rs == 1 || y->m <= 1) ? *y : apart(c, dt, sweeps);
}
static void give(const lop_call *c, const lop_mat *found) {
    if (found->p != c->a[0]->p) lopk_copy(c->a[0], found);
}

/* -- of a product */

static lop_status infer_pair(lop_node *n, lop_err *err) {
    const lop_node *l = n->child[0], *r = n->child[1];
    if (l->op->cls == LOP_OPERATOR || r->op->cls == LOP_OPERATOR || l->core != 2 || r->core != 2 ||
        lop_cols(l) != lop_rows(r) || lop_rows(l) != lop_cols(r))
        return lop_fail(err, LOP_DIM, "%s takes factors of a square matrix", n->op->name);
    lop_node_promote(n, l, r);
    for (int i = 2; i < 5; i++) n->dtype = lop_promote(n->dtype, n->child[i]->dtype);
    if (!lop_is_blas(n->dtype)) return lop_fail(err, LOP_DTYPE, "%s takes floats", n->op->name);
    return shape_of(n, 2, lop_rows(l), err);
}
static lop_status run_pair(const lop_call *c) {
    const lopk_quasi g = target_of(c->a + 3);
    const lop_mat found =
        found_in(c, g.dt, lopk_quasi_pair_sums_scratch(g.n, g.J, c->a[1]->n, g.dt));
    lopk_quasi_pair_sums(found.p, &g, c->step->attr.i[0] != 0, 1, false, c->a[1], c->a[2],
                         c->scratch);
    give(c, &found);
    return LOP_OK;
}
/* As fuse_sums.c asks for it: found += attr.re times that, where all is real and double. */
static lop_status run_pair_add(const lop_call *c) {
    const lopk_quasi g = target_of(c->a + 3);
    const lop_mat *y = c->a[0];
    const bool mirrored = c->step->attr.i[0] != 0, dense = y->rs == 1 || y->m <= 1,
               there = dense && lopk_quasi_pair_at_once(mirrored, c->a[1], c->a[2]);
    const size_t sweeps = lopk_quasi_pair_sums_scratch(g.n, g.J, c->a[1]->n, g.dt);
    const lop_mat found = there ? *y : apart(c, g.dt, sweeps);
    lopk_quasi_pair_sums(found.p, &g, mirrored, c->step->attr.re, there, c->a[1], c->a[2],
                         c->scratch);
    if (!there) lopk_add(y, y, &found);
    return LOP_OK;
}
double lop_generator_sums_flops(const lop_node *p, const lop_node *a, lop_dtype dt, int64_t k) {
    return (lop_is_complex(dt) ? 4.0 : 1.0) * (double)k * (double)lop_rows(p) *
           (8 * (double)lop_cols(p) + 6 * (double)lop_cols(a));
}
static lop_status lower_pair(lop_emit *e, const lop_node *self, int out) {
    const lop_dtype dt = lop_quasi_dtype(self->dtype);
    const int64_t n = lop_rows(self->child[0]), J = lop_cols(self->child[2]);
    lop_status st = LOP_OK;
    int in[5];
    for (int i = 0; i < 2; i++) {
        in[i] = lop_emit_cast(e, lop_emit_value(e, self->child[i]), dt, &st);
        if (in[i] < 0) return st;
    }
    st = generators(e, self->child + 2, dt, in + 2);
    if (st != LOP_OK) return st;
    const size_t scratch =
        scratch_of(lop_cols(self), n, J, 8, dt,
                   lopk_quasi_pair_sums_scratch(n, J, lop_cols(self->child[0]), dt));
    if (!scratch) return lop_fail(lop_emit_err(e), LOP_OVERFLOW, NULL);
    lop_step *s = lop_emit_step(e, "generator-sums", run_pair, out, 5, in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->scratch = scratch;
    if (dt == LOP_f64 && lop_slot_dtype(e, out) == dt) {
        s->adds = run_pair_add;
        s->adds_name = "generator-sums-add";
    }
    s->flops =
        (self->attr.i[0] ? 2 : 1) * lop_generator_sums_flops(self->child[2], self->child[4],
                                                             self->dtype, lop_cols(self->child[0]));
    return LOP_OK;
}
const lop_op lop_op_pair_generator_sums = {LOP_NAMED(pair_generator_sums),
                                           .cls = LOP_ARRAY,
                                           .min = 5,
                                           .max = 5,
                                           .ints = 1,
                                           .infer = infer_pair,
                                           .lower = lower_pair};

/* -- of an inverse */

enum { TARGET = 4, ALT = 7 };

static lop_status infer_inverse(lop_node *n, lop_err *err) {
    const lop_node *alt = n->child[ALT];
    lop_status st = lop_quasi_shape(n, err);
    if (st != LOP_OK) return st;
    const int64_t rows = lop_rows(n);
    for (int i = TARGET; i <= ALT; i++) n->dtype = lop_promote(n->dtype, n->child[i]->dtype);
    st = shape_of(n, TARGET, rows, err);
    if (st == LOP_OK &&
        (alt->core != 1 || alt->dtype != n->dtype || !lop_shape_equal(&alt->shape, &n->shape)))
        st = lop_fail(err, LOP_DIM, "the branches of %s differ", n->op->name);
    return st;
}
static lop_status run_kept(const lop_call *c) {
    const lopk_quasi A = lop_quasi_of(c->a + 2, false);
    lopk_quasi_inverse(c->a[0]->p, c->a[1]->p, &A, c->scratch);
    return LOP_OK;
}
/* The slot of what is kept of the inverse of the four in `in`; -1 with the status in *st. */
static int emit_kept(lop_emit *e, int64_t n, int64_t K, bool full, lop_dtype dt, const int *in,
                     lop_status *st) {
    const lop_attr attr = {.i = {dt, 0, 0, 0}};
    int with[5];
    int64_t bytes;
    if (!lop_mul_ok(n, 64 * 16, &bytes) || !lop_mul_ok(K + 32, bytes, &bytes) ||
        !lop_mul_ok(K + 32, bytes, &bytes)) {
        *st = lop_fail(lop_emit_err(e), LOP_OVERFLOW, NULL);
        return -1;
    }
    with[0] = lop_quasi_factor_slot(e, n, K, full, dt, in, st);
    if (with[0] < 0) return -1;
    memcpy(with + 1, in, 4 * sizeof *in);
    return lop_emit_derived(e, "quasi-inverse", run_kept, lopk_quasi_inverse_bytes(n, K, dt), 5,
                            with, &attr, lopk_quasi_inverse_scratch(K),
                            4 * (double)n * (double)(K * K) * (double)(K + 4), st);
}
static lop_status ended(const lop_call *c, lop_status st, const lop_mat *found, double near) {
    if (st != LOP_OK) {
        lopk_zero(c->a[0]);
        return st;
    }
    give(c, found);
    lop_call_near(c, near, lopk_eps(c->a[0]->dt));
    return LOP_OK;
}
/* a: found, what is kept, p, q, a; attr.i: mirrored, states of what is kept. */
static lop_status run_sums(const lop_call *c, lopk_quasi_sums *sums) {
    const lopk_quasi g = target_of(c->a + 2);
    const int64_t K = c->step->attr.i[1];
    const lop_mat found = found_in(c, g.dt, lopk_quasi_inverse_sums_scratch(g.n, g.J, K, g.dt));
    double near;
    const lop_status st =
        sums(found.p, c->a[1]->p, K, &g, c->step->attr.i[0] != 0, &near, c->scratch);
    return ended(c, st, &found, near);
}
static lop_status run_inverse(const lop_call *c) { return run_sums(c, lopk_quasi_inverse_sums); }
/* a: found, A's factor, d, p, q, a of A, whose own generators are meant; attr.i as above. */
static lop_status run_own(const lop_call *c) {
    const lopk_quasi A = lop_quasi_of(c->a + 2, false);
    const lop_mat found = found_in(c, A.dt, lopk_quasi_inverse_sums_scratch(A.n, A.J, A.J, A.dt));
    double near;
    const lop_status st =
        lopk_quasi_own_sums(found.p, c->a[1]->p, &A, c->step->attr.i[0] != 0, &near, c->scratch);
    return ended(c, st, &found, near);
}
static bool is_own(const lop_node *self) {
    bool own = true;
    for (int i = 0; i < 3; i++) own = own && self->child[1 + i] == self->child[TARGET + i];
    return own;
}
static lop_status check_inverse(lop_emit *e, const lop_node *self, int value, int mask) {
    const lop_dtype dt = lop_quasi_dtype(self->dtype);
    const int64_t n = lop_rows(self->child[1]), J = lop_cols(self->child[TARGET]),
                  K = lop_cols(self->child[1]);
    const bool full = lop_cols(self->child[3]) != K, own = is_own(self);
    int in[4], with[5];
    lop_status st = lop_quasi_inputs(e, self->child, dt, in);
    if (st != LOP_OK) return st;
    with[0] = own ? lop_quasi_factor_slot(e, n, K, full, dt, in, &st)
                  : emit_kept(e, n, K, full, dt, in, &st);
    if (with[0] < 0) return st;
    memcpy(with + 1, in, sizeof in);
    if (!own) st = generators(e, self->child + TARGET, dt, with + 1);
    if (st != LOP_OK) return st;
    const size_t scratch =
        scratch_of(lop_cols(self), n, J, K, dt, lopk_quasi_inverse_sums_scratch(n, J, K, dt));
    if (!scratch) return lop_fail(lop_emit_err(e), LOP_OVERFLOW, NULL);
    lop_step *s = lop_emit_step(e, own ? "quasi-inverse-own-sums" : "quasi-inverse-generator-sums",
                                own ? run_own : run_inverse, value, own ? 5 : 4, with);
    if (!s) return LOP_NOMEM;
    s->attr.i[0] = self->attr.i[0];
    s->attr.i[1] = K;
    s->fail = mask;
    s->flags = LOP_STEP_QUIET;
    s->scratch = scratch;
    s->flops = (lop_is_complex(dt) ? 4.0 : 1.0) * (double)n * (double)K *
               (4 * (double)J * (double)K + 6 * (double)lop_cols(self->child[TARGET + 2]));
    return LOP_OK;
}
/* What is kept of the inverse before the branches open, where the four are known by then. */
static lop_status ready_inverse(lop_emit *e, const lop_node *self) {
    const lop_dtype dt = lop_quasi_dtype(self->dtype);
    int in[4];
    for (int i = 0; i < 4; i++)
        if (!lop_emit_knows(e, self->child[i])) return LOP_OK;
    lop_status st = lop_quasi_inputs(e, self->child, dt, in);
    if (st != LOP_OK) return st;
    const int64_t n = lop_rows(self->child[1]), K = lop_cols(self->child[1]);
    const bool full = lop_cols(self->child[3]) != K;
    if (is_own(self))
        (void)lop_quasi_factor_slot(e, n, K, full, dt, in, &st);
    else
        (void)emit_kept(e, n, K, full, dt, in, &st);
    return st;
}
const lop_op lop_op_quasi_inverse_sums = {LOP_NAMED(quasi_inverse_sums),
                                          .cls = LOP_ARRAY,
                                          .min = 8,
                                          .max = 8,
                                          .ints = 1,
                                          .infer = infer_inverse,
                                          .lower = lop_lower_arms,
                                          .check = check_inverse,
                                          .ready = ready_inverse};

/* -- of A^-1 Y A^-1 */

enum { MIDDLE = 4, BETWEEN_TARGET = 8 };

static lop_status infer_between(lop_node *n, lop_err *err) {
    const bool sums = n->op == &lop_op_quasi_between_sums;
    const lop_node *alt = n->child[n->n - 1];
    lop_status st = lop_quasi_shape_from(n, MIDDLE, err);
    if (st != LOP_OK) return st;
    const lop_dtype middle = n->dtype;
    const lop_shape shape = n->shape;
    const int64_t rows = lop_rows(n);
    lop_shape both;
    st = lop_quasi_shape(n, err);
    if (st != LOP_OK) return st;
    if (lop_rows(n) != rows)
        return lop_fail(err, LOP_DIM, "%s takes two matrices of one size", n->op->name);
    st = lop_shape_batch(&n->shape, 2, &shape, 2, &both, err);
    if (st != LOP_OK) return st;
    n->dtype = lop_promote(n->dtype, middle);
    for (int i = BETWEEN_TARGET; i < n->n; i++)
        n->dtype = lop_promote(n->dtype, n->child[i]->dtype);
    if (sums) {
        st = shape_of(n, BETWEEN_TARGET, rows, err);
    } else {
        n->shape = both;
        n->shape.dim[n->shape.ndim++] = rows;
        n->core = 1;
        n->weak = LOP_STRONG;
    }
    if (st == LOP_OK &&
        (alt->core != 1 || alt->dtype != n->dtype || !lop_shape_equal(&alt->shape, &n->shape)))
        st = lop_fail(err, LOP_DIM, "the branches of %s differ", n->op->name);
    return st;
}
/* a: what is kept, A^-1, d, p, q, a of Y; attr.i[1]: states of A. */
static lop_status run_between(const lop_call *c) {
    const lopk_quasi Y = lop_quasi_of(c->a + 2, false);
    lopk_quasi_between(c->a[0]->p, c->a[1]->p, c->step->attr.i[1], &Y, c->scratch);
    return LOP_OK;
}
/* The slot of what is kept of A^-1 Y A^-1, of *R states; -1 with the status in *st. */
static int emit_between(lop_emit *e, const lop_node *self, lop_dtype dt, int64_t *R,
                        lop_status *st) {
    const int64_t n = lop_rows(self->child[1]), K = lop_cols(self->child[1]),
                  J = lop_cols(self->child[MIDDLE + 1]);
    const lop_attr attr = {.i = {dt, K, 0, 0}};
    int in[5], own[4];
    int64_t bytes;
    *R = lopk_quasi_between_states(K, J);
    *st = lop_quasi_inputs(e, self->child, dt, own);
    if (*st == LOP_OK) *st = lop_quasi_inputs(e, self->child + MIDDLE, dt, in + 1);
    if (*st != LOP_OK) return -1;
    in[0] = emit_kept(e, n, K, lop_cols(self->child[3]) != K, dt, own, st);
    if (in[0] < 0) return -1;
    if (!lop_mul_ok(n + 8, 64 * 16, &bytes) || !lop_mul_ok(*R + 8, bytes, &bytes) ||
        !lop_mul_ok(*R + 8, bytes, &bytes)) {
        *st = lop_fail(lop_emit_err(e), LOP_OVERFLOW, NULL);
        return -1;
    }
    return lop_emit_derived(e, "quasi-between", run_between, lopk_quasi_between_bytes(n, *R, dt), 5,
                            in, &attr, lopk_quasi_between_scratch(n, K, J),
                            10 * (double)n * (double)*R * (double)*R, st);
}
static lop_status run_between_sums(const lop_call *c) {
    return run_sums(c, lopk_quasi_between_sums);
}
/* a: the diagonal, what is kept; attr.i[0]: its dtype. */
static lop_status run_between_diagonal(const lop_call *c) {
    double near;
    lop_status st =
        lopk_quasi_between_diagonal(c->a[0], c->a[1]->p, (lop_dtype)c->step->attr.i[0], &near);
    if (st == LOP_OK)
        lop_call_near(c, near, lopk_eps(c->a[0]->dt));
    else
        lopk_zero(c->a[0]);
    return st;
}
static lop_status check_between(lop_emit *e, const lop_node *self, int value, int mask) {
    const bool sums = self->op == &lop_op_quasi_between_sums;
    const lop_dtype dt = lop_quasi_dtype(self->dtype);
    const lop_node *const *target = self->child + BETWEEN_TARGET;
    int64_t R;
    int with[4];
    size_t scratch = 0;
    lop_status st;
    with[0] = emit_between(e, self, dt, &R, &st);
    if (with[0] < 0) return st;
    if (sums) {
        const int64_t n = lop_rows(target[0]), J = lop_cols(target[0]);
        st = generators(e, target, dt, with + 1);
        if (st != LOP_OK) return st;
        scratch =
            scratch_of(lop_cols(self), n, J, R, dt, lopk_quasi_inverse_sums_scratch(n, J, R, dt));
        if (!scratch) return lop_fail(lop_emit_err(e), LOP_OVERFLOW, NULL);
    }
    lop_step *s = lop_emit_step(e, self->op->name, sums ? run_between_sums : run_between_diagonal,
                                value, sums ? 4 : 1, with);
    if (!s) return LOP_NOMEM;
    s->attr.i[0] = sums ? self->attr.i[0] : dt;
    s->attr.i[1] = R;
    s->fail = mask;
    s->flags = LOP_STEP_QUIET;
    s->scratch = scratch;
    if (sums)
        s->flops = (lop_is_complex(dt) ? 4.0 : 1.0) * (double)lop_rows(target[0]) * (double)R *
                   (4 * (double)lop_cols(target[0]) * (double)R + 6 * (double)lop_cols(target[2]));
    return LOP_OK;
}
static lop_status ready_between(lop_emit *e, const lop_node *self) {
    lop_status st = LOP_OK;
    int64_t R;
    for (int i = 0; i < BETWEEN_TARGET; i++)
        if (!lop_emit_knows(e, self->child[i])) return LOP_OK;
    (void)emit_between(e, self, lop_quasi_dtype(self->dtype), &R, &st);
    return st;
}
const lop_op lop_op_quasi_between_sums = {LOP_NAMED(quasi_between_sums),
                                          .cls = LOP_ARRAY,
                                          .min = 12,
                                          .max = 12,
                                          .ints = 1,
                                          .infer = infer_between,
                                          .lower = lop_lower_arms,
                                          .check = check_between,
                                          .ready = ready_between};
const lop_op lop_op_quasi_between_diagonal = {LOP_NAMED(quasi_between_diagonal),
                                              .cls = LOP_ARRAY,
                                              .min = 9,
                                              .max = 9,
                                              .ints = 0,
                                              .infer = infer_between,
                                              .lower = lop_lower_arms,
                                              .check = check_between,
                                              .ready = ready_between};

/* -- what slots write */

/* Above the diagonal of a Hermitian one stands once more what lies below. */
const lop_node *lop_vjp_generators(lop_vjp *v, const lop_node *g, const lop_node *self, int child) {
    if (v->st != LOP_OK) return NULL;
    const bool tri = self->attr.i[0] != 0;
    const lop_node *const *p = self->child + 1;
    const int64_t n = lop_rows(self), size = n * lop_cols(p[0]);
    lop_dtype dt = g->dtype;
    for (int i = 0; i < 3; i++) dt = lop_promote(dt, p[i]->dtype);
    if (!tri && lop_is_complex(dt)) g = lop_vjp_sum(v, g, lop_vjp_view(v, g, LOP_H));
    const lop_attr attr = {.i = {!tri && !lop_is_complex(dt), 0, 0, (int64_t)dt + 1}};
    const lop_node *held[4] = {g, p[0], p[1], p[2]};
    const lop_node *all = lop_vjp_over(v, &lop_op_generator_sums, &attr, 4, held);
    if (!all || child == self->n) return all;
    const lop_node *own =
        lop_vjp_run(v, all, (child - 1) * size, 1, child < 3 ? size : n * lop_cols(p[2]));
    return own && v->real && lop_is_complex(dt) ? lop_vjp_make(v, &lop_op_diag, NULL, own, NULL)
                                                : own;
}
