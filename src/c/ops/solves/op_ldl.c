/* op_ldl.c: solves with matrices assumed symmetric or Hermitian, and their determinants, by
 * A = P L D L^H P^T, half the work of LU. The upper triangle alone is read, as SciPy does.
 *
 * ldl_solve  children A, b; attr.i[0]: Hermitian, else symmetric
 * ldl_det    child A; likewise
 *
 * The derived value: the column-major factor, what stands beside the diagonal of D, the exchanges,
 * and where a pivot is exactly zero. Cost: n^3 / 3 flops once, 2 n^2 a column, n for determinants.
 * Source: Bunch and Kaufman 1977. */
#include "expr/op.h"
#include "ops/shared/scaled_pair.h"
#include "ops/shared/factor.h"
#include "kernels/dense/k_blas.h"
#include "kernels/dense/k_ldl.h"
#include "kernels/common/kernels.h"

#include <complex.h>
#include <float.h>
#include <math.h>

static size_t up(size_t bytes) { return (bytes + 63) & ~(size_t)63; }
static size_t bytes_of(int64_t n, lop_dtype dt) {
    return lop_factor_bytes(n, dt) + up((size_t)n * lop_dtype_size(dt)) +
           ((size_t)n + 1) * sizeof(int64_t);
}
lop_ldl lop_ldl_parts(void *p, int64_t n, lop_dtype dt) {
    char *beside = (char *)p + lop_factor_bytes(n, dt);
    int64_t *ipiv = (int64_t *)(void *)(beside + up((size_t)n * lop_dtype_size(dt)));
    return (lop_ldl){lop_factor_at(p, n, dt), beside, ipiv};
}

/* SciPy reads the upper triangle of what is assumed so: its transpose is our lower one. */
static lop_status factor_shifted(const lop_call *c, const lop_ldl *p, int up) {
    const lop_mat *a = c->a[1], t = {a->p, a->n, a->m, a->cs, a->rs, a->dt};
    const bool hermitian = c->step->attr.i[0] != 0;
    if (hermitian)
        lopk_conj(&p->f, &t);
    else
        lopk_copy(&p->f, &t);
    if (up) lopk_shift_range(&p->f, up);
    return lopk_ldl(&p->f, hermitian, p->beside, p->ipiv, c->scratch, &p->ipiv[a->m]);
}
static lop_mat diagonal_of(const lop_mat *f) {
    return (lop_mat){f->p, f->n, 1, f->rs + f->cs, 0, f->dt};
}
/* Does LAPACK's factor have pivots below the normal numbers, or NaN for their reciprocals? */
static bool is_tiny(const lop_ldl *p) {
    bool tiny = lopk_ldl_is_tiny(&p->f, p->beside, p->ipiv);
    for (int64_t k = 0; !tiny && k < p->f.n; k++)
        tiny = isnan(creal(lop_get(p->f.dt, p->f.p, k * (p->f.cs + 1))));
    return tiny && p->ipiv[p->f.n] == 0;
}
/* The power of two that brings the largest element of the triangle near one; 0: it is no less. */
static int below_one(const lop_mat *a) {
    const size_t size = lop_dtype_size(a->dt);
    double top = 0;
    int power = 0;
    for (int64_t j = 0; j < a->n; j++) {
        const lop_mat part = {
            (char *)a->p + j * a->cs * (int64_t)size, j + 1, 1, a->rs, a->cs, a->dt};
        top = fmax(top, lopk_top(&part));
    }
    (void)frexp(top, &power);
    return power < 0 ? -power : 0;
}
/* As in LU: where pivots have no reciprocals the matrix is factored near one, and D brought back.
 */
static lop_status run_factor(const lop_call *c) {
    const lop_mat *a = c->a[1];
    lop_ldl p = lop_ldl_parts(c->a[0]->p, a->m, a->dt);
    lop_status st = factor_shifted(c, &p, 0);
    const int up = st == LOP_OK && a->n > 0 && is_tiny(&p) ? below_one(a) : 0;
    if (up > 0) {
        const lop_mat d = diagonal_of(&p.f), beside = {p.beside, a->n, 1, 1, a->n, a->dt};
        st = factor_shifted(c, &p, up);
        lopk_shift_range(&d, -up);
        lopk_shift_range(&beside, -up);
    }
    return st == LOP_OVERFLOW
               ? lop_fail(c->err, st, "LAPACK takes no matrix of %lld rows", (long long)a->m)
               : st;
}
int lop_emit_ldl(lop_emit *e, int64_t n, lop_dtype dt, bool hermitian, int a, lop_status *st) {
    const lop_attr how = {.i = {hermitian && lop_is_complex(dt), 0, 0, 0}};
    int64_t all;
    if (!lop_mul_ok(n, n, &all) || !lop_mul_ok(all, 16, &all)) {
        *st =
            lop_fail(lop_emit_err(e), LOP_OVERFLOW,
                     "the factor of a %lld x %lld matrix is too large", (long long)n, (long long)n);
        return -1;
    }
    const int f = lop_emit_derived(e, "sytrf", run_factor, bytes_of(n, dt), 1, &a, &how,
                                   (size_t)lopk_ldl_work(n) * lop_dtype_size(dt),
                                   (double)n * (double)n * (double)n / 3, st);
    lop_emit_blocked(e, f, n);
    return f;
}

static lop_status infer_solve(lop_node *n, lop_err *err) {
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
/* The least by the largest eigenvalue of D's blocks, in modulus: by about as much as by its
 * reciprocal condition number, for L is well-conditioned. NaN and inf: 1. */
static double pivot_ratio(const lop_ldl *p, int64_t n, lop_dtype dt, bool hermitian) {
    double low = INFINITY, high = 0;
    for (int64_t k = 0; k < n; k++) {
        const double _Complex d = lop_get(dt, p->f.p, k * (p->f.cs + 1));
        double some = cabs(d), more = some;
        if (p->ipiv[k] < 0 && k + 1 < n) {
            const double _Complex b = lop_get(dt, p->f.p, (k + 1) * (p->f.cs + 1)),
                                  e = lop_get(dt, p->beside, k), ee = e * (hermitian ? conj(e) : e),
                                  root = csqrt((d - b) / 2 * ((d - b) / 2) + ee);
            some = cabs((d + b) / 2 + root);
            more = cabs((d + b) / 2 - root);
            k++;
        }
        if (!(some <= DBL_MAX && more <= DBL_MAX)) return 1;
        low = fmin(low, fmin(some, more));
        high = fmax(high, fmax(some, more));
    }
    return high > 0 ? low / high : 1;
}
static lop_status run_solve(const lop_call *c) {
    const lop_mat *y = c->a[0];
    const lop_ldl p = lop_ldl_parts(c->a[1]->p, y->m, y->dt);
    const lop_mat x = {c->scratch, y->m, y->n, 1, y->m > 0 ? y->m : 1, y->dt};
    if (p.ipiv[y->m]) return lop_factor_singular(c->err, p.ipiv[y->m], y->m);
    lop_call_near(c, pivot_ratio(&p, y->m, y->dt, c->step->attr.i[0] != 0), lopk_eps(y->dt));
    lopk_copy(&x, c->a[2]);
    lop_status st = lopk_ldl_solve(&p.f, c->step->attr.i[0] != 0, p.beside, p.ipiv, &x);
    if (st == LOP_OK) lopk_copy(y, &x);
    return st;
}
static lop_status lower_solve(lop_emit *e, const lop_node *self, int out) {
    int64_t m, k, batch;
    int in[2];
    lop_status st = LOP_OK;
    for (int i = 0; i < 2; i++) {
        in[i] = lop_emit_cast(e, lop_emit_value(e, self->child[i]), self->dtype, &st);
        if (in[i] < 0) return st;
    }
    in[0] = lop_emit_ldl(e, lop_rows(self), self->dtype, self->attr.i[0] != 0, in[0], &st);
    if (in[0] < 0) return st;
    lop_slot_sizes(e, out, &m, &k, &batch);
    lop_step *s = lop_emit_step(e, "sytrs", run_solve, out, 2, in);
    if (!s) return LOP_NOMEM;
    s->attr.i[0] = self->attr.i[0] && lop_is_complex(self->dtype);
    s->scratch = (size_t)m * (size_t)k * lop_dtype_size(self->dtype);
    s->flops = 2.0 * (double)m * (double)m * (double)k * (double)batch;
    return LOP_OK;
}
const lop_op lop_op_ldl_solve = {
    LOP_NAMED(ldl_solve), .cls = LOP_ARRAY,    .min = 2, .max = 2, .ints = 1,
    .infer = infer_solve, .lower = lower_solve};

static lop_status infer_det(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0];
    if (a->core != 2 || !lop_is_blas(a->dtype) || !lop_is_square(a))
        return lop_fail(err, LOP_DIM, "ldl_det takes a square matrix of floats");
    return lop_pair_infer(n, &a->shape, 2, a->dtype);
}
/* |D_k| |e|^-2 as (d / |e|) (d' / |e|) - e e^* / |e|^2, so that nothing over- or underflows. */
static lop_pair block_of(double _Complex d, double _Complex after, double _Complex e,
                         bool hermitian, bool whole) {
    const double size = cabs(e);
    const double _Complex unit = e / size,
                          det = d / size * (after / size) - unit * (hermitian ? conj(unit) : unit);
    const lop_pair by = lop_pair_scaled((lop_pair){size, 0, 0});
    return lop_pair_times(
        lop_pair_times(lop_pair_scaled((lop_pair){creal(det), whole ? cimag(det) : 0, 0}), by,
                       whole),
        by, whole);
}
/* attr.i: Hermitian, n, dtype. */
static lop_status run_det(const lop_call *c) {
    const lop_attr *a = &c->step->attr;
    const lop_dtype dt = (lop_dtype)a->i[2];
    const lop_ldl p = lop_ldl_parts(c->a[1]->p, a->i[1], dt);
    const bool whole = lop_is_complex(dt);
    lop_pair all = lop_pair_one();
    for (int64_t k = 0; k < a->i[1]; k++) {
        const double _Complex d = lop_get(dt, p.f.p, k * (p.f.cs + 1));
        lop_pair one = lop_pair_scaled((lop_pair){creal(d), whole ? cimag(d) : 0, 0});
        if (p.ipiv[k] < 0) {
            one = block_of(d, lop_get(dt, p.f.p, (k + 1) * (p.f.cs + 1)), lop_get(dt, p.beside, k),
                           a->i[0] != 0, whole);
            k++;
        }
        all = lop_pair_times(all, one, whole);
    }
    if (a->i[0]) all.im = 0;
    lop_pair_store(c->a[0], all);
    return LOP_OK;
}
static lop_status lower_det(lop_emit *e, const lop_node *self, int out) {
    const lop_node *a = self->child[0];
    const bool hermitian = self->attr.i[0] && lop_is_complex(a->dtype);
    lop_status st;
    int f = lop_emit_ldl(e, lop_rows(a), a->dtype, hermitian, lop_emit_value(e, a), &st);
    if (f < 0) return st;
    lop_step *s = lop_emit_step(e, "ldl_det", run_det, out, 1, &f);
    if (!s) return LOP_NOMEM;
    s->attr = (lop_attr){.i = {hermitian, lop_rows(a), a->dtype, 0}};
    return LOP_OK;
}
const lop_op lop_op_ldl_det = {LOP_NAMED(ldl_det), .cls = LOP_ARRAY,   .min = 1,          .max = 1,
                               .ints = 1,          .infer = infer_det, .lower = lower_det};
