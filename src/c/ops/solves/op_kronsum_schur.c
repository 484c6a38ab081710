/* op_kronsum_schur.c: solves and determinants of the Kronecker sum A (x) I + I (x) B by the Schur
 * forms A = P T P^H, B = Q R Q^H: with x as a matrix X, row by row,
 *
 *   A X + X B^T = C,   T Y + Y conj(R)^H = P^H C conj(Q),   X = P Y Q^T
 *
 * (Bartels and Stewart 1972; Golub and Van Loan, 7.6.3).
 *
 *   schur_solve  children A, B, c. attr.i: 1 where A, where B stands for its adjoint; 1 where all
 *                is conjugated
 *   schur_det    children A, B: the product of the sums of eigenvalues, a pair (scaled_pair.h).
 *                attr.i: 1 where A's, where B's eigenvalues are conjugated
 *
 * The forms are kept (schur_form.h); if both are diagonal, Y is a division. Where A and -B share an
 * eigenvalue, or nearly, or LAPACK finds no form, the steps return SINGULAR: they belong into a
 * checked solution (op_checked_or_fallback.c). A solve costs 5 m n (m + n) a column. */
#include "ops/shared/scaled_pair.h"
#include "ops/shared/schur_form.h"
#include "kernels/dense/k_blas.h"
#include "kernels/dense/k_eigen.h"
#include "kernels/common/kernels.h"

#include <float.h>
#include <math.h>

static bool flags(const lop_attr *a) {
    for (int i = 0; i < 3; i++)
        if (a->i[i] < 0 || a->i[i] > 1) return false;
    return true;
}

static lop_status infer_solve(lop_node *n, lop_err *err) {
    return lop_schur_infer_solve(n, flags(&n->attr), err);
}
static lop_status infer_det(lop_node *n, lop_err *err) {
    return lop_schur_infer_det(n, flags(&n->attr), err);
}

/* -- solves; attr.i of the step: the three flags, A's size */

/* Column j of y, m n rows, as an m x n matrix. */
static lop_mat as_matrix(const lop_mat *y, int64_t j, int64_t m, int64_t n) {
    return (lop_mat){
        (char *)y->p + j * y->cs * (int64_t)lop_dtype_size(y->dt), m, n, n * y->rs, y->rs, y->dt};
}

#define DIVIDE(T, R)                                                                               \
    for (int64_t j = 0; j < y->n; j++)                                                             \
        for (int64_t i = 0; i < y->m; i++) {                                                       \
            const double d = a->re[i] + b->re[j];                                                  \
            near |= !(fabs(d) > least);                                                            \
            ((T *)y->p)[i + j * y->cs] /= (R)d;                                                    \
        }
static double largest(const double *v, int64_t n) {
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fabs(v[i]) > most ? fabs(v[i]) : most;
    return most;
}
/* y[i, j] / (alpha_i + beta_j), y column-major. A sum that is no more than the eigenvalues' errors
 * is none: trsyl looks for that itself. */
static lop_status divide(const lop_mat *y, const lop_schur *a, const lop_schur *b) {
    const double u = y->dt == LOP_f32 || y->dt == LOP_c64 ? FLT_EPSILON / 2 : DBL_EPSILON / 2,
                 least = 8 * u * (largest(a->re, y->m) + largest(b->re, y->n));
    bool near = false;
    switch (y->dt) {
    case LOP_f32: DIVIDE(float, float) break;
    case LOP_f64: DIVIDE(double, double) break;
    case LOP_c64: DIVIDE(float _Complex, float) break;
    default: DIVIDE(double _Complex, double)
    }
    return near ? LOP_SINGULAR : LOP_OK;
}
#undef DIVIDE

/* Work: two m x n matrices, conj(R) and conj(Q). */
static lop_status run_schursolve(const lop_call *c) {
    const int64_t *how = c->step->attr.i, m = how[3];
    const lop_mat *y = c->a[0], *b = c->a[3];
    const int64_t n = m > 0 ? y->m / m : 0;
    const lop_dtype dt = y->dt;
    const lop_schur one = lop_schur_at(c->a[1], m, dt), two = lop_schur_at(c->a[2], n, dt);
    const bool diagonal = *one.diagonal != 0 && *two.diagonal != 0;
    const size_t half = ((size_t)y->m * lop_dtype_size(dt) + 63) & ~(size_t)63;
    char *at = c->scratch;
    const lop_mat f = lop_column_major(at, m, n, dt), g = lop_column_major(at + half, m, n, dt),
                  r = lop_column_major(at + 2 * half, n, n, dt),
                  q = lop_column_major(at + 2 * half + lop_schur_square(n, dt), n, n, dt),
                  p_t = lop_transposed(&one.q), q_t = lop_transposed(&two.q);
    if (*one.failed != 0 || *two.failed != 0) return LOP_SINGULAR;
    if (!diagonal) lopk_conj(&r, &two.t);
    lopk_conj(&q, &two.q);
    for (int64_t j = 0; j < y->n; j++) {
        const lop_mat to = as_matrix(y, j, m, n), from = as_matrix(b, j, m, n);
        double scale = 1;
        (how[2] ? lopk_conj : lopk_copy)(&f, &from);
        lopk_gemm(&g, &p_t, true, &f, false);
        lopk_gemm(&f, &g, false, &q, false);
        lop_status st =
            diagonal ? divide(&f, &one, &two)
                     : lopk_trsyl(&one.t, how[0] ? 'C' : 'N', &r, how[1] ? 'N' : 'C', &f, &scale);
        if (st == LOP_OVERFLOW) return lop_fail(c->err, st, NULL);
        if (st != LOP_OK) return st;
        if (!(scale > 0)) return LOP_SINGULAR;
        lopk_gemm(&g, &one.q, false, &f, false);
        lopk_gemm(&f, &g, false, &q_t, false);
        if (scale != 1) lopk_scale(&f, 1 / scale, 0, &f);
        (how[2] ? lopk_conj : lopk_copy)(&to, &f);
    }
    return LOP_OK;
}
static lop_status lower_solve(lop_emit *e, const lop_node *self, int out) {
    lop_status st = LOP_OK;
    int in[3] = {-1, -1, lop_emit_value(e, self->child[2])};
    for (int i = 0; i < 2; i++) {
        in[i] = lop_emit_schur(e, self->child[i], &st);
        if (in[i] < 0) return st;
    }
    lop_step *s = lop_emit_step(e, "trsyl", run_schursolve, out, 3, in);
    if (!s) return LOP_NOMEM;
    const int64_t m = lop_rows(self->child[0]), n = lop_rows(self->child[1]);
    s->attr = self->attr;
    s->attr.i[3] = m;
    s->scratch = 2 * ((size_t)lop_rows(self) * lop_dtype_size(self->dtype) + 64) +
                 2 * lop_schur_square(n, self->dtype);
    s->flops = 5 * (double)(m + n) * lop_slot_elements(e, out);
    return LOP_OK;
}

/* -- determinants; attr.i of the step: the two flags, the sizes; the dtype in re */

static lop_status run_schurdet(const lop_call *c) {
    const lop_attr *t = &c->step->attr;
    const lop_dtype dt = (lop_dtype)t->re;
    const lop_schur a = lop_schur_at(c->a[1], t->i[2], dt), b = lop_schur_at(c->a[2], t->i[3], dt);
    const double u = dt == LOP_f32 || dt == LOP_c64 ? FLT_EPSILON / 2 : DBL_EPSILON / 2,
                 turn_a = t->i[0] ? -1 : 1, turn_b = t->i[1] ? -1 : 1;
    lop_pair all = {1, 0, 0};
    double least = INFINITY, most = 0;
    if (*a.failed != 0 || *b.failed != 0) return LOP_SINGULAR;
    for (int64_t i = 0; i < t->i[2]; i++)
        for (int64_t j = 0; j < t->i[3]; j++) {
            const double re = a.re[i] + b.re[j], im = turn_a * a.im[i] + turn_b * b.im[j];
            const double size = hypot(re, im),
                         parts = hypot(a.re[i], a.im[i]) + hypot(b.re[j], b.im[j]);
            least = size < least ? size : least;
            most = parts > most ? parts : most;
            all = lop_pair_onto(all, (lop_pair){re, im, 0}, true);
        }
    if (!(least > 8 * u * most)) return LOP_SINGULAR;
    if (!lop_is_complex(dt)) all.im = 0; /* of pairs that are each other's conjugate */
    lop_pair_store(c->a[0], lop_pair_scaled(all));
    return LOP_OK;
}
static lop_status lower_det(lop_emit *e, const lop_node *self, int out) {
    lop_status st = LOP_OK;
    int in[2];
    for (int i = 0; i < 2; i++) {
        in[i] = lop_emit_schur(e, self->child[i], &st);
        if (in[i] < 0) return st;
    }
    lop_step *s = lop_emit_step(e, "schur_det", run_schurdet, out, 2, in);
    if (!s) return LOP_NOMEM;
    s->attr = (lop_attr){
        .i = {self->attr.i[0], self->attr.i[1], lop_rows(self->child[0]), lop_rows(self->child[1])},
        .re = (double)self->child[0]->dtype};
    return LOP_OK;
}

const lop_op lop_op_schur_solve = {
    LOP_NAMED(schur_solve), .cls = LOP_ARRAY,    .min = 3, .max = 3, .ints = 3,
    .infer = infer_solve,   .lower = lower_solve};
const lop_op lop_op_schur_det = {
    LOP_NAMED(schur_det), .cls = LOP_ARRAY,  .min = 2, .max = 2, .ints = 2,
    .infer = infer_det,   .lower = lower_det};
