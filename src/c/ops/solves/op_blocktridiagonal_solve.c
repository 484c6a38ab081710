/* op_blocktridiagonal_solve.c: solves, determinants and parts of inverses of block tridiagonal
 * matrices.
 *
 * block_tridiagonal_solve    children L, D, (U), x, alt: mode(A)^-1 x; attr.i: b, assumption, mode
 * block_det      children L, D, (U), alt: det A as a pair; attr.i: b, assumption
 * blockinvdiag  children L, D, (U), alt: the diagonal of A^-1; attr.i: b, assumption
 * blockinvtrace children L, D, (U), L', D', (U'), alt: tr(A^-1 B); attr.i: b, assumption, vectors
 * of A
 *
 * The factor (k_blocktri.c) is kept while the blocks keep their content, and is one for all modes:
 * by Cholesky of what is assumed Hermitian too, if that is definite.
 * A sound one is believed. Of one that has grown each column's backward error is checked, in the
 * infinity norm: above 4 sqrt(n) eps it is refined, twice at most, above 10 n u alt runs, LU within
 * the band. Determinants and parts of inverses take sound factors alone. */
#include "ops/shared/blocktridiagonal.h"

#include "ops/shared/scaled_pair.h"
#include "ops/shared/factor.h"
#include "kernels/dense/k_blas.h"
#include "kernels/common/kernels.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <string.h>

static bool is_positive(const lop_node *n) { return n->attr.i[1] == LOP_ASSUME_POSITIVE; }
/* How it is factored: by LU, by Cholesky, or by Cholesky where that succeeds. */
enum { BY_LU, BY_CHOLESKY, TRIED };
static int64_t way_of(const lop_node *n) {
    const bool real = !lop_is_complex(n->child[0]->dtype) && !lop_is_complex(n->child[1]->dtype),
               own = n->attr.i[1] == LOP_ASSUME_HERMITIAN ||
                     (n->attr.i[1] == LOP_ASSUME_SYMMETRIC && real);
    return is_positive(n) ? BY_CHOLESKY : own ? TRIED : BY_LU;
}
static size_t round_up(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

/* The slot of the factor of the vectors in `in`; -1 with the status in *st. */
static lop_status run_factor(const lop_call *c) {
    const int64_t *i = c->step->attr.i;
    const lopk_blocktri A = lop_blocktri_of(c->a + 1, i[1], i[0]);
    lopk_blocktri_factor(c->a[0]->p, &A, i[2] != BY_LU);
    if (i[2] == TRIED && lopk_blocktri_state(c->a[0]->p) == LOPK_BLOCKTRI_FAILED)
        lopk_blocktri_factor(c->a[0]->p, &A, false);
    return LOP_OK;
}
static int emit_factor(lop_emit *e, const lop_node *self, int count, lop_dtype dt, const int *in,
                       lop_status *st) {
    const int64_t b = self->attr.i[0], N = b > 0 ? lop_cols(self->child[1]) / (b * b) : 0;
    const int64_t way = way_of(self);
    const bool positive = way != BY_LU;
    const lop_attr attr = {.i = {b, count, way, dt}};
    int64_t bytes;
    if (!lop_mul_ok(lop_cols(self->child[1]), 8 * 16, &bytes) || !lop_mul_ok(N, 64, &bytes) ||
        !lop_mul_ok(bytes, b, &bytes)) {
        *st = lop_fail(lop_emit_err(e), LOP_OVERFLOW,
                       "the factor of %lld blocks of %lld x %lld is too large", (long long)N,
                       (long long)b, (long long)b);
        return -1;
    }
    const double work = (positive ? 7.0 : 14.0) / 3 * (double)N * (double)b * (double)b * (double)b;
    return lop_emit_derived(e, positive ? "block-cholesky" : "block-lu", run_factor,
                            lopk_blocktri_factor_bytes(N, b, dt), count, in, &attr, 0, work, st);
}
/* A step on the factor, the blocks and further inputs in[count...] that is believed or not. */
static lop_step *checked_step(lop_emit *e, const lop_node *self, const char *name, lop_run how,
                              int value, int mask, int count, int further, const int *in,
                              lop_status *st) {
    int all[8];
    all[0] = emit_factor(e, self, count, lop_slot_dtype(e, in[0]), in, st);
    if (all[0] < 0) return NULL;
    for (int i = 0; i < count + further; i++) all[i + 1] = in[i];
    lop_step *s = lop_emit_step(e, name, how, value, 1 + count + further, all);
    if (!s) {
        *st = LOP_NOMEM;
        return NULL;
    }
    s->attr = (lop_attr){.i = {self->attr.i[0], count, 0, 0}};
    s->fail = mask;
    s->flags = is_positive(self) ? 0 : LOP_STEP_QUIET;
    return s;
}

/* The blocks of the inverse, kept beside the factor: what a gradient reads of them, and the
 * diagonal, come of one sweep. */
typedef struct kept {
    int64_t failed;
    double near;
} kept;
enum { KEPT = 64 };
static size_t kept_bytes(int64_t cols, lop_dtype dt) {
    return KEPT + 3 * round_up((size_t)cols * lop_dtype_size(dt));
}
static lop_status run_inverse(const lop_call *c) {
    const int64_t *i = c->step->attr.i;
    const lopk_blocktri A = lop_blocktri_of(c->a + 2, i[1], i[0]);
    char *to = c->a[0]->p;
    const lop_status st = lopk_blocktri_inverse(to + KEPT, c->a[1]->p, &A,
                                                lopk_blocktri_is_positive(c->a[1]->p), c->scratch);
    const kept head = {st != LOP_OK, lopk_blocktri_near(c->a[1]->p)};
    memcpy(to, &head, sizeof head);
    return st == LOP_OVERFLOW || st == LOP_SINGULAR ? LOP_OK : st;
}
/* The slot of the blocks of the inverse of the `count` vectors in `in`; -1 with the status. */
static int emit_inverse(lop_emit *e, const lop_node *self, int count, const int *in,
                        lop_status *st) {
    const lop_dtype dt = lop_slot_dtype(e, in[0]);
    const int64_t b = self->attr.i[0], cols = lop_cols(self->child[1]);
    const lop_attr attr = {.i = {b, count, way_of(self), dt}};
    int all[4] = {emit_factor(e, self, count, dt, in, st)};
    if (all[0] < 0) return -1;
    for (int k = 0; k < count; k++) all[k + 1] = in[k];
    return lop_emit_derived(e, "block-inverse", run_inverse, kept_bytes(cols, dt), 1 + count, all,
                            &attr, lopk_blocktri_inverse_bytes(b, dt),
                            12 * (double)cols * (double)b, st);
}
/* The factor, or the blocks of the inverse, before the branches open, where the vectors are known
 * by then: what is asked for together shares them. */
static lop_status ready_for(lop_emit *e, const lop_node *self, int count, lop_dtype dt,
                            bool inverse) {
    lop_status st = LOP_OK;
    int in[3];
    for (int i = 0; i < count; i++)
        if (!lop_emit_knows(e, self->child[i])) return LOP_OK;
    st = lop_blocktri_inputs(e, self, count, dt, in);
    if (st == LOP_OK)
        (void)(inverse ? emit_inverse(e, self, count, in, &st)
                       : emit_factor(e, self, count, dt, in, &st));
    return st;
}

/* -- block_tridiagonal_solve */

static lop_status infer_solve(lop_node *n, lop_err *err) {
    const lop_node *x = n->child[n->n - 2], *alt = n->child[n->n - 1];
    lop_status st = lop_blocktri_shape(n, n->n - 2, err);
    if (st != LOP_OK) return st;
    if (x->core != 2 || lop_rows(x) != lop_rows(n) || n->attr.i[2] < 0 || n->attr.i[2] > 3)
        return lop_fail(err, LOP_DIM, "right-hand sides that fit are needed");
    const lop_node a = {.dtype = n->dtype, .weak = n->weak};
    lop_shape both;
    st = lop_shape_batch(&n->shape, 2, &x->shape, 2, &both, err);
    if (st != LOP_OK) return st;
    n->shape = both;
    n->shape.dim[n->shape.ndim++] = lop_rows(x);
    n->shape.dim[n->shape.ndim++] = lop_cols(x);
    lop_node_promote_inverse(n, &a, x);
    if (!lop_is_blas(n->dtype)) return lop_fail(err, LOP_DTYPE, "solves are in floats");
    if (alt->dtype != n->dtype || alt->core != 2 || !lop_shape_equal(&alt->shape, &n->shape))
        return lop_fail(err, LOP_DIM, "the branches of block_tridiagonal_solve differ");
    return LOP_OK;
}

static double largest(const lop_mat *a, int64_t j) {
    double most = 0;
    for (int64_t i = 0; i < a->m; i++) {
        const double v = cabs(lop_get(a->dt, a->p, i * a->rs + j * a->cs));
        if (!(v <= most)) most = v;
    }
    return most;
}
/* The largest backward error of a column. */
static double backward_error(const lop_mat *r, const lop_mat *x, const lop_mat *b, double norm) {
    double most = 0;
    for (int64_t j = 0; j < x->n; j++) {
        const double left = largest(r, j), size = norm * largest(x, j) + largest(b, j),
                     eta = left == 0 ? 0 : left / size;
        if (!(eta <= most)) most = eta;
    }
    return most;
}

/* The matrices that a solution takes beside its own, one after another in the scratch. */
typedef struct room {
    lop_mat x, r, t;
    void *block;
} room;
static room room_of(const lop_call *c, int64_t b) {
    const lop_mat *y = c->a[0];
    const int64_t m = y->m, k = y->n;
    const size_t size = lop_dtype_size(y->dt), one = round_up((size_t)m * (size_t)k * size),
                 part = round_up((size_t)b * (size_t)k * size);
    char *p = c->scratch;
    const lop_mat a = {p + part, m, k, 1, m > 0 ? m : 1, y->dt};
    room all = {a, a, a, p};
    all.r.p = p + part + one;
    all.t.p = p + part + 2 * one;
    return all;
}

/* attr.i: b, vectors, 0, mode. a: y, factor, the vectors, b. */
static lop_status run_solve(const lop_call *c) {
    const int64_t *i = c->step->attr.i;
    const void *factor = c->a[1]->p;
    const bool positive = lopk_blocktri_is_positive(factor),
               flip = i[3] == LOP_C || (positive && i[3] == LOP_T);
    const int mode = positive || i[3] == LOP_C ? LOP_N : (int)i[3];
    const lopk_blocktri A = lop_blocktri_of(c->a + 2, i[1], i[0]);
    const lop_mat *y = c->a[0], *b = c->a[2 + i[1]];
    const room all = room_of(c, A.b);
    const double eps = y->dt == LOP_f32 || y->dt == LOP_c64 ? FLT_EPSILON : DBL_EPSILON,
                 n = (double)y->m;
    if (lopk_blocktri_state(factor) == LOPK_BLOCKTRI_FAILED) return LOP_SINGULAR;
    (flip ? lopk_conj : lopk_copy)(&all.x, b);
    lop_status st = lopk_blocktri_solve(factor, &A, positive, mode, &all.x, all.block);
    const bool check = lopk_blocktri_state(factor) == LOPK_BLOCKTRI_GROWN;
    for (int again = 0; st == LOP_OK && check; again++) {
        lopk_blocktri_mm(&all.t, &A, mode, &all.x);
        (flip ? lopk_conj : lopk_copy)(&all.r, b);
        lopk_sub(&all.r, &all.r, &all.t);
        const double eta =
            backward_error(&all.r, &all.x, b, lopk_blocktri_norm(factor, (mode & LOP_T) != 0));
        if (eta <= 4 * sqrt(n) * eps || (again == 2 && eta <= 5 * n * eps)) break;
        if (again == 2 || !isfinite(eta)) return LOP_SINGULAR;
        st = lopk_blocktri_solve(factor, &A, positive, mode, &all.r, all.block);
        lopk_add(&all.x, &all.x, &all.r);
    }
    if (st == LOP_OK) {
        (flip ? lopk_conj : lopk_copy)(y, &all.x);
        lop_call_near(c, lopk_blocktri_near(factor), lopk_eps(y->dt));
        const double norm = lopk_blocktri_norm(factor, false) / sqrt(3 * (double)A.b); /* |A|_2 */
        lop_call_near(c, lopk_outgrown(y, b, norm), lopk_eps(y->dt));
    }
    return st == LOP_OVERFLOW ? LOP_SINGULAR : st;
}
static lop_status check_solve(lop_emit *e, const lop_node *self, int value, int mask) {
    const int count = self->n - 2;
    const int64_t b = self->attr.i[0];
    int in[4];
    int64_t m, k, batch, elements, some;
    lop_status st = lop_blocktri_inputs(e, self, count, self->dtype, in);
    if (st != LOP_OK) return st;
    in[count] = lop_emit_cast(e, lop_emit_value(e, self->child[count]), self->dtype, &st);
    if (in[count] < 0) return st;
    lop_slot_sizes(e, value, &m, &k, &batch);
    if (!lop_mul_ok(m, k, &elements) || !lop_mul_ok(elements, 4 * 16, &some) ||
        !lop_mul_ok(b, k, &elements) || !lop_mul_ok(elements, 4 * 16, &some))
        return lop_fail(lop_emit_err(e), LOP_OVERFLOW, NULL);
    lop_step *s = checked_step(e, self, "block-solve", run_solve, value, mask, count, 1, in, &st);
    if (!s) return st;
    const size_t size = lop_dtype_size(self->dtype), one = round_up((size_t)m * (size_t)k * size);
    s->attr.i[3] = self->attr.i[2];
    s->scratch = round_up((size_t)b * (size_t)k * size) + (is_positive(self) ? one : 3 * one);
    s->flops = 6 * (double)m * (double)b * (double)k * (double)batch;
    return LOP_OK;
}
const lop_op lop_op_block_tridiagonal_solve = {LOP_NAMED(block_tridiagonal_solve),
                                               .cls = LOP_ARRAY,
                                               .min = 4,
                                               .max = 5,
                                               .ints = 3,
                                               .infer = infer_solve,
                                               .lower = lop_lower_arms,
                                               .check = check_solve};

/* -- block_det */

static lop_status infer_det(lop_node *n, lop_err *err) {
    const lop_node *alt = n->child[n->n - 1];
    lop_status st = lop_blocktri_shape(n, n->n - 1, err);
    if (st != LOP_OK) return st;
    if (!lop_is_blas(n->dtype)) return lop_fail(err, LOP_DTYPE, "block_det takes floats");
    const lop_shape all = n->shape;
    st = lop_pair_infer(n, &all, 2, n->dtype);
    if (st == LOP_OK && (!lop_node_is_pair(alt) || alt->dtype != n->dtype ||
                         !lop_shape_equal(&alt->shape, &n->shape)))
        st = lop_fail(err, LOP_DIM, "the branches of block_det differ");
    return st;
}
/* The pivots of all blocks, one behind the other. */
static lop_status run_det(const lop_call *c) {
    const int64_t *i = c->step->attr.i;
    const lopk_blocktri A = lop_blocktri_of(c->a + 2, i[1], i[0]);
    const int64_t size = (int64_t)lop_dtype_size(A.dt);
    const bool positive = lopk_blocktri_is_positive(c->a[1]->p);
    bool odd = false;
    lop_pair_store(c->a[0], (lop_pair){0, 0, 0});
    if (lopk_blocktri_state(c->a[1]->p) != LOPK_BLOCKTRI_SOUND) return LOP_SINGULAR;
    for (int64_t k = 0; k < A.N; k++) {
        const lop_mat to = {(char *)c->scratch + k * A.b * size, A.b, 1, 1, 1, A.dt};
        lop_mat pivots;
        bool turned;
        lopk_blocktri_pivots(c->a[1]->p, &A, k, &pivots, &turned);
        lopk_copy(&to, &pivots);
        odd ^= turned && !positive;
    }
    const lop_mat v = {c->scratch, A.N * A.b, 1, 1, 1, A.dt};
    const lop_pair p = lop_pair_product(&v);
    if (positive)
        lop_pair_store(c->a[0], lop_pair_times(p, p, lop_is_complex(A.dt)));
    else
        lop_pair_store(c->a[0], odd ? (lop_pair){-p.re, -p.im, p.e} : p);
    return LOP_OK;
}
/* The dtype of the blocks together: that of a pair is wider. */
static lop_dtype blocks_dtype(const lop_node *self, int count) {
    lop_dtype dt = self->child[0]->dtype;
    for (int i = 1; i < count; i++) dt = lop_promote(dt, self->child[i]->dtype);
    return dt;
}
static int64_t blocks_rows(const lop_node *self) {
    return self->attr.i[0] > 0 ? lop_cols(self->child[1]) / self->attr.i[0] : 0;
}
static lop_status check_det(lop_emit *e, const lop_node *self, int value, int mask) {
    const int count = self->n - 1;
    const lop_dtype dt = blocks_dtype(self, count);
    int in[3];
    lop_status st = lop_blocktri_inputs(e, self, count, dt, in);
    if (st != LOP_OK) return st;
    lop_step *s = checked_step(e, self, "block-det", run_det, value, mask, count, 0, in, &st);
    if (!s) return st;
    s->scratch = round_up((size_t)blocks_rows(self) * lop_dtype_size(dt));
    return LOP_OK;
}
static lop_status ready_det(lop_emit *e, const lop_node *self) {
    return ready_for(e, self, self->n - 1, blocks_dtype(self, self->n - 1), false);
}
const lop_op lop_op_block_det = {
    LOP_NAMED(block_det), .cls = LOP_ARRAY,        .min = 3,           .max = 4,          .ints = 2,
    .infer = infer_det,   .lower = lop_lower_arms, .check = check_det, .ready = ready_det};

/* -- blockinvdiag, blockinvtrace */

static lop_status infer_invdiag(lop_node *n, lop_err *err) {
    const lop_node *alt = n->child[n->n - 1];
    lop_status st = lop_blocktri_shape(n, n->n - 1, err);
    if (st != LOP_OK) return st;
    n->shape.ndim--;
    n->core = 1;
    n->weak = LOP_STRONG;
    if (!lop_is_blas(n->dtype) || alt->core != 1 || alt->dtype != n->dtype ||
        !lop_shape_equal(&alt->shape, &n->shape))
        return lop_fail(err, LOP_DIM, "the branches of blockinvdiag differ");
    return LOP_OK;
}
/* attr.i: b, N, dtype, mark. a: y, what is kept, further. */
static lop_status inverse_of(const lop_call *c, lopk_blocktri *Z) {
    const int64_t *i = c->step->attr.i,
                  one = i[0] * i[0] * (int64_t)lop_dtype_size((lop_dtype)i[2]);
    const kept *head = c->a[1]->p;
    const char *to = (const char *)c->a[1]->p + KEPT;
    if (head->failed) return LOP_SINGULAR;
    lop_call_near(c, head->near, lopk_eps((lop_dtype)i[2]));
    *Z = (lopk_blocktri){
        i[1], i[0], (lop_dtype)i[2], to + i[1] * one, to, to + (2 * i[1] - 1) * one};
    return LOP_OK;
}
static lop_status run_invdiag(const lop_call *c) {
    lopk_blocktri Z;
    const lop_status st = inverse_of(c, &Z);
    if (st == LOP_OK && Z.N > 0) lopk_blocktri_part(c->a[0], &Z, 0, 0);
    return st;
}
/* A step on the blocks of the inverse of the first `count` children and on further ones; mark:
 * attr.i[3] of the step. */
static lop_status check_inverse(lop_emit *e, const lop_node *self, int value, int mask, int count,
                                int further, int64_t mark, const char *name, lop_run how,
                                size_t scratch) {
    int in[6], with[4];
    lop_status st = lop_blocktri_inputs(e, self, count + further, self->dtype, in);
    if (st != LOP_OK) return st;
    with[0] = emit_inverse(e, self, count, in, &st);
    if (with[0] < 0) return st;
    for (int k = 0; k < further; k++) with[k + 1] = in[count + k];
    lop_step *s = lop_emit_step(e, name, how, value, 1 + further, with);
    if (!s) return LOP_NOMEM;
    const int64_t b = self->attr.i[0], N = b > 0 ? blocks_rows(self) / b : 0;
    s->attr = (lop_attr){.i = {b, N, self->dtype, mark}};
    s->fail = mask;
    s->flags = is_positive(self) ? 0 : LOP_STEP_QUIET;
    s->scratch = scratch;
    return LOP_OK;
}
static lop_status check_invdiag(lop_emit *e, const lop_node *self, int value, int mask) {
    return check_inverse(e, self, value, mask, self->n - 1, 0, 0, "block-inverse-diagonal",
                         run_invdiag, 0);
}
static lop_status ready_inverse(lop_emit *e, const lop_node *self) {
    const bool trace = self->op == &lop_op_blockinvtrace;
    return ready_for(e, self, trace ? (int)self->attr.i[2] : self->n - 1, self->dtype, true);
}
const lop_op lop_op_blockinvdiag = {LOP_NAMED(blockinvdiag),
                                    .cls = LOP_ARRAY,
                                    .min = 3,
                                    .max = 4,
                                    .ints = 2,
                                    .infer = infer_invdiag,
                                    .lower = lop_lower_arms,
                                    .check = check_invdiag,
                                    .ready = ready_inverse};

/* The blocks below (attr.i[2] -1), on (0) or above (1) the diagonal of the inverse, or of its view
 * attr.i[3]. */
static lop_status infer_invblocks(lop_node *n, lop_err *err) {
    const lop_node *alt = n->child[n->n - 1];
    lop_status st = lop_blocktri_shape(n, n->n - 1, err);
    if (st != LOP_OK) return st;
    n->shape.ndim--;
    n->shape.dim[n->shape.ndim - 1] = lop_cols(n->child[n->attr.i[2] == 0 ? 1 : 0]);
    n->core = 1;
    n->weak = LOP_STRONG;
    if (!lop_is_blas(n->dtype) || alt->core != 1 || alt->dtype != n->dtype ||
        !lop_shape_equal(&alt->shape, &n->shape))
        return lop_fail(err, LOP_DIM, "the branches of blockinvblocks differ");
    return LOP_OK;
}
/* attr.i[3]: which ones, and 3 times the view. */
static lop_status run_invblocks(const lop_call *c) {
    lopk_blocktri Z;
    const lop_status st = inverse_of(c, &Z);
    if (st != LOP_OK) return st;
    const int64_t mode = c->step->attr.i[3] / 3, where = c->step->attr.i[3] % 3 - 1, b = Z.b,
                  one = b * b * (int64_t)lop_dtype_size(Z.dt), N = where == 0 ? Z.N : Z.N - 1;
    const bool turned = (mode & LOP_T) != 0, below = turned ? where > 0 : where < 0;
    const char *from = where == 0 ? Z.d : below ? Z.low : Z.up;
    for (int64_t k = 0; b > 0 && k < N; k++) {
        const int64_t rs = c->a[0]->rs;
        const lop_mat to = {(char *)c->a[0]->p + k * one * rs, b, b, b * rs, rs, Z.dt},
                      block = {(char *)(uintptr_t)from + k * one,
                               b,
                               b,
                               turned ? 1 : b,
                               turned ? b : 1,
                               Z.dt};
        (mode & LOP_C ? lopk_conj : lopk_copy)(&to, &block);
    }
    return LOP_OK;
}
static lop_status check_invblocks(lop_emit *e, const lop_node *self, int value, int mask) {
    const int64_t mark = self->attr.i[2] + 1 + 3 * self->attr.i[3];
    return check_inverse(e, self, value, mask, self->n - 1, 0, mark, "block-inverse-blocks",
                         run_invblocks, 0);
}
const lop_op lop_op_blockinvblocks = {LOP_NAMED(blockinvblocks),
                                      .cls = LOP_ARRAY,
                                      .min = 3,
                                      .max = 4,
                                      .ints = 4,
                                      .infer = infer_invblocks,
                                      .lower = lop_lower_arms,
                                      .check = check_invblocks,
                                      .ready = ready_inverse};

static lop_status infer_invtrace(lop_node *n, lop_err *err) {
    const lop_node *alt = n->child[n->n - 1];
    const int64_t count = n->attr.i[2], rest = n->n - 1 - count;
    lop_node A = *n;
    lop_shape both;
    if (count < 2 || count > 3 || rest < 2 || rest > 3)
        return lop_fail(err, LOP_DIM, "blockinvtrace takes the blocks of two");
    lop_status st = lop_blocktri_shape(n, (int)count, err);
    if (st != LOP_OK) return st;
    A = (lop_node){.shape = n->shape, .dtype = n->dtype, .weak = n->weak};
    A.shape.ndim -= 2;
    for (int i = (int)count; i < n->n - 1; i++) {
        const lop_node *v = n->child[i], before = A;
        if (v->core != 1 || lop_cols(v) != lop_cols(n->child[i - count == 1 ? 1 : 0]))
            return lop_fail(err, LOP_DIM, "blockinvtrace takes blocks of one size");
        st = lop_shape_batch(&A.shape, 0, &v->shape, 1, &both, err);
        if (st != LOP_OK) return st;
        A.shape = both;
        lop_node_promote(&A, &before, v);
    }
    n->shape = A.shape;
    n->dtype = A.dtype;
    n->core = 0;
    n->weak = LOP_STRONG;
    if (!lop_is_blas(n->dtype) || alt->core != 0 || alt->dtype != n->dtype ||
        !lop_shape_equal(&alt->shape, &n->shape))
        return lop_fail(err, LOP_DIM, "the branches of blockinvtrace differ");
    return LOP_OK;
}
/* attr.i[3]: how many vectors of B there are. */
static lop_status run_invtrace(const lop_call *c) {
    lopk_blocktri Z;
    const lop_status st = inverse_of(c, &Z);
    if (st != LOP_OK) return st;
    const lopk_blocktri B = lop_blocktri_of(c->a + 2, c->step->attr.i[3], Z.b);
    lopk_blocktri_trace(c->a[0], &Z, &B, c->scratch);
    return LOP_OK;
}
static lop_status check_invtrace(lop_emit *e, const lop_node *self, int value, int mask) {
    const int count = (int)self->attr.i[2], further = self->n - 1 - count;
    const size_t one = (size_t)self->attr.i[0] * (size_t)self->attr.i[0];
    return check_inverse(e, self, value, mask, count, further, further, "block-inverse-trace",
                         run_invtrace, round_up(one * lop_dtype_size(self->dtype)));
}
const lop_op lop_op_blockinvtrace = {LOP_NAMED(blockinvtrace),
                                     .cls = LOP_ARRAY,
                                     .min = 5,
                                     .max = 7,
                                     .ints = 3,
                                     .infer = infer_invtrace,
                                     .lower = lop_lower_arms,
                                     .check = check_invtrace,
                                     .ready = ready_inverse};
