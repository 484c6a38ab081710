/* op_stein_schur.c: solves and determinants of c I + k A (x) B by the Schur forms A = P T P^H,
 * B = Q R Q^H: with x as a matrix X, row by row,
 *
 *   c X + k A X B^T = C,   c Y + k T Y R^T = P^H C conj(Q),   X = P Y Q^T
 *
 * (Kitagawa 1977; Golub, Nash and Van Loan 1979): the Stein equation, and the discrete Lyapunov
 * equation where A = conj(B) and k = -1.
 *
 *   stein_solve  children A, B, k and c as vectors of one element (float64 or complex128: numbers
 *                of each run), C. attr.i: the views under which A and B stand
 *   stein_det    children A, B, k, c: the product of c + k a_i b_j, a pair (scaled_pair.h).
 *                attr.i: 1 where A's, where B's eigenvalues are conjugated
 *
 * Views turn the forms, not the matrices: A^T = conj(P) T^T P^T, and a lower triangle is an upper
 * one from its other end. So A, A^T, A^H and both actions share one form (schur_form.h), whatever
 * the coefficients are. Where c + k a b vanishes, or nearly, or LAPACK finds no form, the steps
 * return SINGULAR: they belong into a checked solution (op_checked_or_fallback.c). float32 is
 * substituted in double. A solve costs 6 m n (m + n) a column. */
#include "ops/shared/column_norm.h"
#include "ops/shared/scaled_pair.h"
#include "ops/shared/schur_form.h"
#include "kernels/common/kernels.h"
#include "kernels/dense/k_blas.h"
#include "kernels/dense/k_stein.h"

#include <complex.h>
#include <math.h>

static lop_dtype wide(lop_dtype dt) { return lop_is_complex(dt) ? LOP_c128 : LOP_f64; }

static bool fits(const lop_node *n, int64_t most) {
    const lop_node *const *c = n->child;
    for (int i = 0; i < 2; i++)
        if (n->attr.i[i] < 0 || n->attr.i[i] > most || c[2 + i]->core != 1 ||
            c[2 + i]->shape.ndim != 1 || lop_cols(c[2 + i]) != 1 ||
            c[2 + i]->dtype != wide(c[0]->dtype))
            return false;
    return true;
}
static lop_status infer_solve(lop_node *n, lop_err *err) {
    return lop_schur_infer_solve(n, fits(n, LOP_H), err);
}
static lop_status infer_det(lop_node *n, lop_err *err) {
    return lop_schur_infer_det(n, fits(n, 1), err);
}

/* -- solves; attr.i of the step: the two views, A's size */

/* t (upper triangular) and q of a view of the matrix that has the form f. */
static void turned_form(const lop_schur *f, int64_t view, const lop_mat *t, const lop_mat *q) {
    const bool swap = (view & LOP_T) != 0, below = (view & LOP_C) != 0;
    const int64_t n = t->n;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = swap ? (n - 1 - j) + (n - 1 - i) * f->t.cs : i + j * f->t.cs,
                          to = swap ? i + (n - 1 - j) * q->cs : i + j * q->cs;
            const double _Complex v = lop_get(f->t.dt, f->t.p, at),
                                  w = lop_get(f->q.dt, f->q.p, i + j * f->q.cs);
            lop_set(t->dt, t->p, i + j * t->cs, below ? conj(v) : v);
            lop_set(q->dt, q->p, to, swap != below ? conj(w) : w);
        }
}

/* Column j of y, m n rows, as the transpose of an m x n matrix. */
static lop_mat as_matrix(const lop_mat *y, int64_t j, int64_t m, int64_t n) {
    return (lop_mat){
        (char *)y->p + j * y->cs * (int64_t)lop_dtype_size(y->dt), n, m, y->rs, n * y->rs, y->dt};
}
static size_t half_of(int64_t rows, lop_dtype dt) {
    return ((size_t)rows * lop_dtype_size(wide(dt)) + 63) & ~(size_t)63;
}

/* Work: three n x m matrices, T, R, conj(P) and Q. */
static lop_status run_stein(const lop_call *c) {
    const int64_t *how = c->step->attr.i, m = how[2];
    const lop_mat *y = c->a[0], *b = c->a[5];
    const int64_t n = m > 0 ? y->m / m : 0;
    const lop_dtype dt = wide(y->dt);
    const lop_schur one = lop_schur_at(c->a[1], m, y->dt), two = lop_schur_at(c->a[2], n, y->dt);
    const size_t half = half_of(y->m, dt), big = lop_schur_square(m, dt);
    const double _Complex k = lop_get(dt, c->a[3]->p, 0), shift = lop_get(dt, c->a[4]->p, 0);
    char *at = c->scratch;
    const lop_mat f = lop_column_major(at, n, m, dt), g = lop_column_major(at + half, n, m, dt),
                  z = lop_column_major(at + 2 * half, n, m, dt),
                  t = lop_column_major(at + 3 * half, m, m, dt),
                  p = lop_column_major(at + 3 * half + big, m, m, dt),
                  r = lop_column_major(at + 3 * half + 2 * big, n, n, dt),
                  q = lop_column_major(at + 3 * half + 2 * big + lop_schur_square(n, dt), n, n, dt),
                  q_t = lop_transposed(&q), f_t = lop_transposed(&f);
    if (*one.failed != 0 || *two.failed != 0) return LOP_SINGULAR;
    turned_form(&one, how[0], &t, &p);
    turned_form(&two, how[1], &r, &q);
    lopk_scale(&t, -k, 0, &t);
    lopk_conj(&p, &p);
    for (int64_t j = 0; j < y->n; j++) {
        const lop_mat to = as_matrix(y, j, m, n), from = as_matrix(b, j, m, n),
                      g_t = lop_transposed(&g);
        lopk_copy(&f, &from);
        lopk_gemm(&z, &q_t, true, &f, false);
        lopk_gemm(&g, &z, false, &p, false);
        lop_status st = lopk_stein(&t, &r, shift, lop_rounding(y->dt), &g, &z);
        if (st != LOP_OK) return st;
        lopk_gemm(&f, &q, false, &g, false);
        lopk_gemm(&g_t, &p, true, &f_t, false);
        lopk_copy(&to, &g);
    }
    return LOP_OK;
}
static lop_status emit_forms(lop_emit *e, const lop_node *self, int *in) {
    lop_status st = LOP_OK;
    for (int i = 0; i < 2; i++) {
        in[i] = lop_emit_schur(e, self->child[i], &st);
        if (in[i] < 0) return st;
        in[2 + i] = lop_emit_value(e, self->child[2 + i]);
    }
    return LOP_OK;
}
static lop_status lower_solve(lop_emit *e, const lop_node *self, int out) {
    int in[5] = {-1, -1, -1, -1, lop_emit_value(e, self->child[4])};
    lop_status st = emit_forms(e, self, in);
    if (st != LOP_OK) return st;
    lop_step *s = lop_emit_step(e, "stein", run_stein, out, 5, in);
    if (!s) return LOP_NOMEM;
    const int64_t m = lop_rows(self->child[0]), n = lop_rows(self->child[1]);
    const lop_dtype dt = wide(self->dtype);
    s->attr = (lop_attr){.i = {self->attr.i[0], self->attr.i[1], m, 0}};
    s->scratch =
        3 * half_of(lop_rows(self), dt) + 2 * lop_schur_square(m, dt) + 2 * lop_schur_square(n, dt);
    s->flops = 6 * (double)(m + n) * lop_slot_elements(e, out);
    return LOP_OK;
}

/* -- determinants; attr.i of the step: the two flags, the sizes; the dtype in re */

static lop_status run_steindet(const lop_call *c) {
    const lop_attr *t = &c->step->attr;
    const lop_dtype dt = (lop_dtype)t->re;
    const lop_schur a = lop_schur_at(c->a[1], t->i[2], dt), b = lop_schur_at(c->a[2], t->i[3], dt);
    const double u = lop_rounding(dt), turn_a = t->i[0] ? -1 : 1, turn_b = t->i[1] ? -1 : 1;
    const double _Complex k = lop_get(wide(dt), c->a[3]->p, 0),
                          shift = lop_get(wide(dt), c->a[4]->p, 0);
    lop_pair all = {1, 0, 0};
    double least = INFINITY, most = 0;
    if (*a.failed != 0 || *b.failed != 0) return LOP_SINGULAR;
    for (int64_t i = 0; i < t->i[2]; i++)
        for (int64_t j = 0; j < t->i[3]; j++) {
            const double _Complex ab =
                k * CMPLX(a.re[i], turn_a * a.im[i]) * CMPLX(b.re[j], turn_b * b.im[j]),
                                  d = shift + ab;
            const double size = cabs(d), parts = cabs(shift) + cabs(ab);
            least = size < least ? size : least;
            most = parts > most ? parts : most;
            all = lop_pair_onto(all, (lop_pair){creal(d), cimag(d), 0}, true);
        }
    if (!(least > 8 * u * most)) return LOP_SINGULAR;
    if (!lop_is_complex(dt)) all.im = 0; /* of pairs that are each other's conjugate */
    lop_pair_store(c->a[0], lop_pair_scaled(all));
    return LOP_OK;
}
static lop_status lower_det(lop_emit *e, const lop_node *self, int out) {
    int in[4] = {-1, -1, -1, -1};
    lop_status st = emit_forms(e, self, in);
    if (st != LOP_OK) return st;
    lop_step *s = lop_emit_step(e, "stein_det", run_steindet, out, 4, in);
    if (!s) return LOP_NOMEM;
    s->attr = (lop_attr){
        .i = {self->attr.i[0], self->attr.i[1], lop_rows(self->child[0]), lop_rows(self->child[1])},
        .re = (double)self->child[0]->dtype};
    return LOP_OK;
}

const lop_op lop_op_stein_solve = {
    LOP_NAMED(stein_solve), .cls = LOP_ARRAY,    .min = 5, .max = 5, .ints = 2,
    .infer = infer_solve,   .lower = lower_solve};
const lop_op lop_op_stein_det = {
    LOP_NAMED(stein_det), .cls = LOP_ARRAY,  .min = 4, .max = 4, .ints = 2,
    .infer = infer_det,   .lower = lower_det};
