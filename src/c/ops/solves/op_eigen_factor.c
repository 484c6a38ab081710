/* op_eigen_factor.c: eigenvalues and eigenvectors of a Hermitian matrix A, or of a pencil A, B of
 * Hermitian matrices one of which is positive definite, for solves with sums of Krons.
 *
 *   V^H A V = diag(alpha), V^H B V = diag(beta)     without B: V unitary, beta = 1
 *   with B: one of the two is I, where Cholesky takes it (B is tried first); V^-H V^-1 is that one
 *
 * eigval    a vector of reals; attr.i[1]: alpha (0) or beta (1)
 * eigvec    V, seen through the mode attr.i[1]
 * eigmetric the determinant of the positive definite one, a pair (scaled_pair.h)
 * attr.i[0] of all: what is known to be Hermitian, bit 0 for A and bit 1 for B; there one triangle
 * is read, else the entries are compared. Where that fails, or nothing is positive definite, or
 * LAPACK does not converge, the steps return SINGULAR: they belong into a checked solution
 * (op_checked_or_fallback.c). Derived value, kept: V, alpha, beta, four numbers. 9 n^3 flops;
 * Golub and Van Loan, 8.3 and 8.7.
 */
#include "ops/shared/scaled_pair.h"
#include "kernels/dense/k_blas.h"
#include "kernels/dense/k_eigen.h"
#include "kernels/common/kernels.h"

static lop_dtype real_of(lop_dtype dt) {
    return dt == LOP_c64 ? LOP_f32 : dt == LOP_c128 ? LOP_f64 : dt;
}

static lop_status infer(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0], *b = n->n > 1 ? n->child[1] : a;
    if (a->core != 2 || b->core != 2 || !lop_is_square(a) || !lop_is_square(b) ||
        lop_rows(a) != lop_rows(b) || a->dtype != b->dtype || !lop_is_blas(a->dtype))
        return lop_fail(err, LOP_DIM, "%s takes square matrices of floats", n->op->name);
    if (n->attr.i[0] < 0 || n->attr.i[0] > 3 || n->attr.i[1] < 0 || n->attr.i[1] > 3)
        return lop_fail(err, LOP_DIM, "%s has no such mode", n->op->name);
    lop_status st = lop_shape_batch(&a->shape, 2, &b->shape, 2, &n->shape, err);
    if (st != LOP_OK) return st;
    if (n->op == &lop_op_eigmetric) {
        lop_shape batch = n->shape;
        return lop_pair_infer(n, &batch, 0, real_of(a->dtype));
    }
    n->shape.dim[n->shape.ndim++] = lop_rows(a);
    if (n->op == &lop_op_eigvec) n->shape.dim[n->shape.ndim++] = lop_rows(a);
    n->core = n->op == &lop_op_eigvec ? 2 : 1;
    n->dtype = n->op == &lop_op_eigvec ? a->dtype : real_of(a->dtype);
    n->weak = LOP_STRONG;
    return LOP_OK;
}

/* -- the derived value */

/* Where alpha begins; beta and the four numbers follow: failed or not, the metric's determinant. */
static size_t vectors(int64_t n, lop_dtype dt) {
    return ((size_t)n * (size_t)n * lop_dtype_size(dt) + 63) & ~(size_t)63;
}
static double *numbers(const lop_mat *blob, int64_t n, lop_dtype dt) {
    return (double *)(void *)((char *)blob->p + vectors(n, dt));
}
static lop_mat column_major(void *p, int64_t n, lop_dtype dt) {
    return (lop_mat){p, n, n, 1, n > 0 ? n : 1, dt};
}

static bool upper_is_finite(const lop_mat *a) {
    for (int64_t i = 0; i < a->n; i++)
        for (int64_t j = i; j < a->n; j++) {
            const double _Complex x = lop_get(a->dt, a->p, i * a->rs + j * a->cs);
            if (!(x - x == 0)) return false;
        }
    return true;
}

/* f <- A^H: its lower triangle is A's upper one, which is what SciPy reads. */
static void copy_in(const lop_mat *f, const lop_mat *a) {
    const lop_mat t = {a->p, a->n, a->m, a->cs, a->rs, a->dt};
    lopk_conj(f, &t);
}

static lop_status run_spectrum(const lop_call *c) {
    const lop_mat *a[2] = {c->a[1], c->step->n > 2 ? c->a[2] : NULL};
    const int64_t n = a[0]->n;
    const lop_dtype dt = a[0]->dt;
    const lop_mat v = column_major(c->a[0]->p, n, dt), metric = column_major(c->scratch, n, dt),
                  w = {(char *)c->scratch + (a[1] ? vectors(n, dt) : 0), n, 1, 1, 1, real_of(dt)};
    void *work = (char *)w.p + (((size_t)n * 8 + 63) & ~(size_t)63);
    double *values = numbers(c->a[0], n, dt), *tail = values + 2 * n;
    int64_t info = 0, swapped = 0;
    lop_status st = LOP_OK;
    tail[0] = 1;
    for (int i = 0; i < 2 && a[i]; i++)
        if (!(c->step->attr.i[0] >> i & 1 ? upper_is_finite(a[i]) : lopk_is_hermitian(a[i])))
            return LOP_OK;
    copy_in(&v, a[0]);
    if (a[1]) {
        copy_in(&metric, a[1]);
        st = lopk_hegvd(&v, &metric, w.p, work, &info);
        if (st == LOP_SINGULAR && info > n) {
            swapped = 1;
            copy_in(&v, a[1]);
            copy_in(&metric, a[0]);
            st = lopk_hegvd(&v, &metric, w.p, work, &info);
        }
    } else {
        st = lopk_heevd(&v, w.p, work, &info);
    }
    if (st == LOP_OVERFLOW)
        return lop_fail(c->err, st, "LAPACK takes no matrix of %lld columns", (long long)n);
    if (st != LOP_OK) return st == LOP_SINGULAR ? LOP_OK : st;
    for (int64_t i = 0; i < n; i++) {
        values[i + swapped * n] = creal(lop_get(w.dt, w.p, i));
        values[i + (1 - swapped) * n] = 1;
    }
    lop_pair l = lop_pair_one();
    if (a[1]) {
        const lop_mat diagonal = {metric.p, n, 1, n + 1, 1, dt};
        l = lop_pair_product(&diagonal);
        l = lop_pair_times(l, l, false); /* of positive reals */
    }
    tail[0] = 0;
    tail[1] = l.re;
    tail[2] = l.e;
    return LOP_OK;
}

static int emit_spectrum(lop_emit *e, const lop_node *self, lop_status *st) {
    const lop_node *a = self->child[0];
    const int64_t n = lop_rows(a);
    const lop_attr known = {.i = {self->attr.i[0], 0, 0, 0}};
    int in[2] = {lop_emit_value(e, a), self->n > 1 ? lop_emit_value(e, self->child[1]) : -1};
    size_t work;
    int64_t all;
    if (!lop_mul_ok(n, n, &all) || !lop_mul_ok(all, 64, &all) ||
        !lopk_eigen_bytes(n, a->dtype, &work)) {
        *st = lop_fail(lop_emit_err(e), LOP_OVERFLOW,
                       "the eigenvectors of a %lld x %lld matrix are too large", (long long)n,
                       (long long)n);
        return -1;
    }
    const size_t bytes = vectors(n, a->dtype) + (2 * (size_t)n + 4) * sizeof(double),
                 scratch = 2 * vectors(n, a->dtype) + (size_t)n * 8 + 64 + work;
    const double cube = (double)n * (double)n * (double)n;
    const int f = lop_emit_derived(e, self->n > 1 ? "hegvd" : "heevd", run_spectrum, bytes, self->n,
                                   in, &known, scratch, (self->n > 1 ? 14 : 9) * cube, st);
    lop_emit_blocked(e, f, n);
    return f;
}

/* -- what is read from it; attr.i of the steps: n, dtype, which or mode */

static lop_status run_values(const lop_call *c) {
    const lop_attr *t = &c->step->attr;
    const double *values = numbers(c->a[1], t->i[0], (lop_dtype)t->i[1]);
    if (values[2 * t->i[0]] != 0) return LOP_SINGULAR;
    for (int64_t i = 0; i < t->i[0]; i++)
        lop_set(c->a[0]->dt, c->a[0]->p, i * c->a[0]->rs, values[i + t->i[2] * t->i[0]]);
    return LOP_OK;
}
static lop_status run_vectors(const lop_call *c) {
    const lop_attr *t = &c->step->attr;
    lop_mat v = column_major(c->a[1]->p, t->i[0], (lop_dtype)t->i[1]);
    if (numbers(c->a[1], t->i[0], v.dt)[2 * t->i[0]] != 0) return LOP_SINGULAR;
    if (t->i[2] & LOP_T) v = (lop_mat){v.p, v.n, v.m, v.cs, v.rs, v.dt};
    if (t->i[2] & LOP_C)
        lopk_conj(c->a[0], &v);
    else
        lopk_copy(c->a[0], &v);
    return LOP_OK;
}
static lop_status run_metric(const lop_call *c) {
    const lop_attr *t = &c->step->attr;
    const double *tail = numbers(c->a[1], t->i[0], (lop_dtype)t->i[1]) + 2 * t->i[0];
    if (tail[0] != 0) return LOP_SINGULAR;
    lop_pair_store(c->a[0], (lop_pair){tail[1], 0, tail[2]});
    return LOP_OK;
}

static lop_status read_by(lop_emit *e, const lop_node *self, lop_run run, int out) {
    lop_status st;
    int in = emit_spectrum(e, self, &st);
    if (in < 0) return st;
    lop_step *s = lop_emit_step(e, self->op->name, run, out, 1, &in);
    if (!s) return LOP_NOMEM;
    s->attr = (lop_attr){
        .i = {lop_rows(self->child[0]), (int64_t)self->child[0]->dtype, self->attr.i[1], 0}};
    return LOP_OK;
}
static lop_status lower_eigval(lop_emit *e, const lop_node *self, int out) {
    return read_by(e, self, run_values, out);
}
static lop_status lower_eigvec(lop_emit *e, const lop_node *self, int out) {
    return read_by(e, self, run_vectors, out);
}
static lop_status lower_eigmetric(lop_emit *e, const lop_node *self, int out) {
    return read_by(e, self, run_metric, out);
}

#define READ(head)                                                                                 \
    const lop_op lop_op_##head = {                                                                 \
        LOP_NAMED(head), .cls = LOP_ARRAY,     .min = 1, .max = 2, .ints = 2,                      \
        .infer = infer,  .lower = lower_##head}
READ(eigval);
READ(eigvec);
READ(eigmetric);
