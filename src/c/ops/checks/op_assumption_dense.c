/* op_assumption_dense.c: tests assumptions about a matrix (pl.config(check=...)).
 *
 *   assume          child A, an array; attr.i[0]: the assumption (LOP_ASSUME_*). The same array if
 *                   it holds; else a ValueError that shows an element. Symmetric, Hermitian,
 *                   positive: the triangles agree to n u of the largest element (Cholesky finds out
 *                   whether it is definite). Triangular, diagonal, tridiagonal: exact zeros
 * elsewhere. Orthogonal: A^H A is I to 100 n u. check_isometry  children y = Q^H x and x: y, if its
 * columns are as long as those of x to 100 n u, else a ValueError: Q is not orthogonal. attr.i[0]
 * 1: Q was given in single precision, whose u is then used, whatever x and y are in. Finds most
 * false assumptions in O(n) a column.
 *
 * NaN and inf pass. Cost: n^2 reads; orthogonal 2 n^3 flops. */
#include "expr/op.h"
#include "kernels/dense/k_blas.h"
#include "kernels/common/kernels.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <string.h>

static double unit_of(lop_dtype dt) {
    return dt == LOP_f32 || dt == LOP_c64 ? FLT_EPSILON / 2 : DBL_EPSILON / 2;
}
static double _Complex at(const lop_mat *a, int64_t i, int64_t j) {
    return lop_get(a->dt, a->p, i * a->rs + j * a->cs);
}

static lop_status infer_assume(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0];
    if (a->core != 2 || !lop_is_square(a))
        return lop_fail(err, LOP_DIM, "assume takes a square matrix");
    n->shape = a->shape;
    n->core = 2;
    n->dtype = a->dtype;
    return LOP_OK;
}

static lop_status own_adjoint(const lop_call *c, const lop_mat *a, bool conjugated) {
    double most = 0;
    for (int64_t i = 0; i < a->m; i++)
        for (int64_t j = 0; j < a->n; j++) most = fmax(most, cabs(at(a, i, j)));
    const double bound = (double)a->n * unit_of(a->dt) * most;
    for (int64_t i = 0; i < a->m; i++)
        for (int64_t j = i + !conjugated; j < a->n; j++) {
            const double _Complex x = at(a, i, j), y = at(a, j, i);
            if (cabs(x - (conjugated ? conj(y) : y)) > bound)
                return lop_fail(c->err, LOP_DOMAIN,
                                "assumed %s, but element (%lld, %lld) is %g%+gj and (%lld, %lld) "
                                "is %g%+gj",
                                conjugated ? "Hermitian or positive definite" : "symmetric",
                                (long long)i, (long long)j, creal(x), cimag(x), (long long)j,
                                (long long)i, creal(y), cimag(y));
        }
    return LOP_OK;
}
static lop_status one_sided(const lop_call *c, const lop_mat *a, bool lower) {
    for (int64_t i = 0; i < a->m; i++)
        for (int64_t j = lower ? i + 1 : 0; j < (lower ? a->n : i); j++) {
            const double _Complex x = at(a, i, j);
            if (x != 0)
                return lop_fail(
                    c->err, LOP_DOMAIN, "assumed %s triangular, but element (%lld, %lld) is %g%+gj",
                    lower ? "lower" : "upper", (long long)i, (long long)j, creal(x), cimag(x));
        }
    return LOP_OK;
}
/* Zeros outside of 2 k + 1 diagonals. */
static lop_status narrow(const lop_call *c, const lop_mat *a, int64_t k) {
    for (int64_t i = 0; i < a->m; i++)
        for (int64_t j = 0; j < a->n; j++)
            if ((j < i - k || j > i + k) && at(a, i, j) != 0)
                return lop_fail(c->err, LOP_DOMAIN,
                                "assumed %s, but element (%lld, %lld) is %g%+gj",
                                k ? "tridiagonal" : "diagonal", (long long)i, (long long)j,
                                creal(at(a, i, j)), cimag(at(a, i, j)));
    return LOP_OK;
}
/* A^H A in scratch. */
static lop_status unitary(const lop_call *c, const lop_mat *a) {
    const lop_mat g = {c->scratch, a->n, a->n, a->n, 1, a->dt},
                  t = {a->p, a->n, a->m, a->cs, a->rs, a->dt};
    const double bound = 100 * (double)(a->n + 1) * unit_of(a->dt);
    lopk_gemm(&g, &t, lop_is_complex(a->dt), a, false);
    for (int64_t i = 0; i < a->n; i++)
        for (int64_t j = 0; j < a->n; j++) {
            const double off = cabs(at(&g, i, j) - (i == j ? 1 : 0));
            if (off > bound)
                return lop_fail(c->err, LOP_DOMAIN,
                                "assumed orthogonal, but element (%lld, %lld) of A^H A - I is %g",
                                (long long)i, (long long)j, off);
        }
    return LOP_OK;
}
static lop_status run_assume(const lop_call *c) {
    const lop_mat *a = c->a[1];
    const int64_t word = c->step->attr.i[0];
    lop_status st = LOP_OK;
    if (word == LOP_ASSUME_SYMMETRIC) st = own_adjoint(c, a, false);
    if (word == LOP_ASSUME_HERMITIAN || word == LOP_ASSUME_POSITIVE) st = own_adjoint(c, a, true);
    if (word == LOP_ASSUME_LOWER || word == LOP_ASSUME_UPPER)
        st = one_sided(c, a, word == LOP_ASSUME_LOWER);
    if (word == LOP_ASSUME_DIAGONAL || word == LOP_ASSUME_TRIDIAGONAL)
        st = narrow(c, a, word == LOP_ASSUME_TRIDIAGONAL);
    if (word == LOP_ASSUME_ORTHOGONAL && lop_is_blas(a->dt)) st = unitary(c, a);
    if (st == LOP_OK) lopk_copy(c->a[0], a);
    return st;
}
static lop_status lower_assume(lop_emit *e, const lop_node *self, int out) {
    int in = lop_emit_value(e, self->child[0]);
    int64_t all;
    lop_step *s = lop_emit_step(e, "test-assumption", run_assume, out, 1, &in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    if (self->attr.i[0] != LOP_ASSUME_ORTHOGONAL) return LOP_OK;
    if (!lop_mul_ok(lop_rows(self), lop_rows(self), &all) || !lop_mul_ok(all, 16, &all))
        return lop_fail(lop_emit_err(e), LOP_OVERFLOW, NULL);
    s->scratch = (size_t)all;
    s->flops = 2 * pow((double)lop_rows(self), 3);
    return LOP_OK;
}
const lop_op lop_op_assume = {
    LOP_NAMED(assume),     .cls = LOP_ARRAY,     .min = 1, .max = 1, .ints = 1,
    .infer = infer_assume, .lower = lower_assume};

static lop_status infer_isometry(lop_node *n, lop_err *err) {
    const lop_node *y = n->child[0], *x = n->child[1];
    if (y->core != 2 || x->core != 2 || lop_rows(y) != lop_rows(x) || lop_cols(y) != lop_cols(x))
        return lop_fail(err, LOP_DIM, "check_isometry takes two matrices of one shape");
    lop_status st = lop_shape_batch(&y->shape, 2, &x->shape, 2, &n->shape, err);
    if (st != LOP_OK) return st;
    n->shape.dim[n->shape.ndim++] = lop_rows(y);
    n->shape.dim[n->shape.ndim++] = lop_cols(y);
    n->dtype = y->dtype;
    return LOP_OK;
}
enum { TOGETHER = 8 };
/* Squared lengths of the columns from j on, at most TOGETHER of them, in whatever order the matrix
 * lies. Where a square over- or underflows, the comparison below finds nothing. */
#define SQUARES(T)                                                                                 \
    for (int64_t i = 0; i < a->m; i++) {                                                           \
        const T *row = (const T *)a->p + (i * a->rs + j * a->cs) * parts;                          \
        for (int t = 0; t < count; t++)                                                            \
            for (int p = 0; p < parts; p++) {                                                      \
                const double x = (double)row[t * a->cs * parts + p];                               \
                sum[t] += x * x;                                                                   \
            }                                                                                      \
    }
static void squares(const lop_mat *a, int64_t j, int count, double *sum) {
    const int parts = lop_is_complex(a->dt) ? 2 : 1;
    memset(sum, 0, TOGETHER * sizeof *sum);
    if (a->dt == LOP_f32 || a->dt == LOP_c64) {
        SQUARES(float)
    } else {
        SQUARES(double)
    }
}
static lop_status run_isometry(const lop_call *c) {
    const lop_mat *y = c->a[1], *x = c->a[2];
    const double u = c->step->attr.i[0] ? unit_of(LOP_f32) : unit_of(y->dt),
                 bound = 100 * (double)(y->m + 1) * u;
    double after[TOGETHER], before[TOGETHER];
    for (int64_t j = 0; j < y->n; j += TOGETHER) {
        const int count = y->n - j < TOGETHER ? (int)(y->n - j) : TOGETHER;
        squares(y, j, count, after);
        squares(x, j, count, before);
        for (int t = 0; t < count; t++)
            if (fabs(sqrt(after[t]) - sqrt(before[t])) > bound * sqrt(before[t]))
                return lop_fail(c->err, LOP_DOMAIN,
                                "assumed orthogonal, but Q^H b has the length %g where b has %g",
                                sqrt(after[t]), sqrt(before[t]));
    }
    lopk_copy(c->a[0], y);
    return LOP_OK;
}
static lop_status lower_isometry(lop_emit *e, const lop_node *self, int out) {
    const int in[2] = {lop_emit_value(e, self->child[0]), lop_emit_value(e, self->child[1])};
    lop_step *s = lop_emit_step(e, "check_isometry", run_isometry, out, 2, in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    return LOP_OK;
}
const lop_op lop_op_check_isometry = {
    LOP_NAMED(check_isometry), .cls = LOP_ARRAY,       .min = 2, .max = 2, .ints = 1,
    .infer = infer_isometry,   .lower = lower_isometry};
