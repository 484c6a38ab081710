/* op_half_solve.c: R^H A^-1 R for positive definite A: with A = L L^H and Z = L^-1 R it is Z^H Z,
 * one substitution instead of two and half a product. Where Cholesky fails, by LU.
 *
 * half_solve   children a, r. attr.i[0]: Hermitian; 1: only tried, a failure contradicts no
 * assumption; attr.i[1]: of the result its diagonal alone, the columns of Z in squares.
 *
 * Cost: n^3 / 3 once, then n^2 k + n k^2 flops for R of n x k. */
#include "expr/op.h"
#include "ops/shared/factor.h"
#include "kernels/dense/k_blas.h"
#include "kernels/common/kernels.h"

#include <complex.h>
#include <math.h>
#include <string.h>

static lop_status infer_halfsolve(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0], *r = n->child[1];
    if (a->core != 2 || r->core != 2 || lop_rows(a) != lop_cols(a) || lop_rows(a) != lop_rows(r))
        return lop_fail(err, LOP_DIM, "half_solve takes a square matrix and one of as many rows");
    lop_status st = lop_shape_batch(&a->shape, 2, &r->shape, 2, &n->shape, err);
    if (st != LOP_OK) return st;
    n->shape.dim[n->shape.ndim++] = lop_cols(r);
    if (n->attr.i[1])
        n->core = 1;
    else
        n->shape.dim[n->shape.ndim++] = lop_cols(r);
    lop_node_promote_inverse(n, a, r);
    return LOP_OK;
}

/* y_j = a_j^H b_j, column by column. */
static void columns(const lop_mat *y, const lop_mat *a, const lop_mat *b) {
    const lop_mat rows = {a->p, a->n, a->m, a->cs, a->rs, a->dt};
    lopk_row_dots(y, &rows, true, b, false);
}

/* Where the triangle is well conditioned many columns are multiplied by its inverse, which a
 * product does at several times the rate: what that can lose over a substitution is a factor of
 * cond L (Higham 2002, section 14.2), here at most KIND k in Frobenius's norm, which is k of the
 * best. */
static const double KIND = 10;
static double square_sum(const lop_mat *f) {
    double sum = 0;
    for (int64_t j = 0; j < f->m; j++)
        for (int64_t i = j; i < f->m; i++) {
            const double v = cabs(lop_get(f->dt, f->p, i + j * f->cs));
            sum += v * v;
        }
    return sum;
}
static bool inverted(const lop_mat *f, int64_t columns, const lop_mat *inverse) {
    const int64_t k = f->m;
    if (columns < LOP_AT_ONCE) return false;
    memset(inverse->p, 0, (size_t)(k * k) * lop_dtype_size(f->dt));
    for (int64_t i = 0; i < k; i++) lop_set(f->dt, inverse->p, i * (k + 1), 1);
    return lopk_trsm(f, true, false, 'N', inverse) == LOP_OK &&
           sqrt(square_sum(f)) * sqrt(square_sum(inverse)) <= KIND * (double)k;
}

/* The sums of squares of the columns of Z. `inverse`: room of L's size behind Z. */
static lop_status squares(const lop_mat *y, const lop_mat *f, const lop_mat *r, const lop_mat *z,
                          const lop_mat *inverse) {
    const bool product = inverted(f, r->n, inverse);
    const int64_t size = (int64_t)lop_dtype_size(r->dt);
    lop_status st = LOP_OK;
    for (int64_t j = 0; st == LOP_OK && j < r->n; j += z->n) {
        const int64_t count = r->n - j < z->n ? r->n - j : z->n;
        const lop_mat from = {(char *)r->p + j * r->cs * size, r->m, count, r->rs, r->cs, r->dt},
                      to = {z->p, z->m, count, z->rs, z->cs, z->dt},
                      out = {(char *)y->p + j * y->rs * (int64_t)lop_dtype_size(y->dt),
                             count,
                             1,
                             y->rs,
                             y->cs,
                             y->dt};
        if (product) {
            lopk_gemm(&to, inverse, false, &from, false);
        } else {
            lopk_copy(&to, &from);
            st = lopk_trsm(f, true, false, 'N', &to);
        }
        if (st == LOP_OK) columns(&out, &to, &to);
    }
    return st;
}

/* Arguments: the result, the factor, R. */
static lop_status run_by_cholesky(const lop_call *c) {
    const lop_mat *r = c->a[2];
    int64_t n = r->m, ld = n > 0 ? n : 1;
    lop_mat f = lop_factor_at(c->a[1]->p, n, r->dt), z = {c->scratch, n, r->n, 1, ld, r->dt};
    if (lop_factor_pivots(&f)[n]) return LOP_SINGULAR;
    lop_call_near(c, *lop_factor_near(&f), lopk_eps(f.dt));
    if (c->step->attr.i[1]) {
        z.n = lop_at_once(r->n);
        const lop_mat inverse =
            lop_factor_at((char *)z.p + n * z.n * (int64_t)lop_dtype_size(r->dt), n, r->dt);
        return squares(c->a[0], &f, r, &z, &inverse);
    }
    lopk_copy(&z, r);
    lop_status st = lopk_trsm(&f, true, false, 'N', &z);
    if (st == LOP_OK) lopk_gram(c->a[0], &z, lop_is_complex(r->dt));
    return st;
}

static lop_status run_by_lu(const lop_call *c) {
    const lop_mat *r = c->a[2];
    int64_t n = r->m, ld = n > 0 ? n : 1;
    lop_mat f = lop_factor_at(c->a[1]->p, n, r->dt), x = {c->scratch, n, r->n, 1, ld, r->dt},
            rt = {r->p, r->n, r->m, r->cs, r->rs, r->dt};
    int64_t zero = lopk_diag_has_zero(&f);
    if (zero >= 0) return lop_factor_singular(c->err, zero + 1, n);
    lop_call_near(c, *lop_factor_near(&f), lopk_eps(f.dt));
    lopk_copy(&x, r);
    lop_status st = lopk_getrs(&f, lop_factor_pivots(&f), 'N', &x);
    if (st == LOP_OK && c->step->attr.i[1])
        columns(c->a[0], r, &x);
    else if (st == LOP_OK)
        lopk_gemm(c->a[0], &rt, lop_is_complex(r->dt), &x, false);
    return st;
}

static lop_step *emit_half(lop_emit *e, const lop_node *self, bool cholesky, const int *in,
                           int out) {
    int64_t n = lop_rows(self->child[1]), k = lop_cols(self->child[1]), batch;
    lop_slot_sizes(e, out, NULL, NULL, &batch);
    lop_step *s =
        lop_emit_step(e, cholesky ? self->attr.i[1] ? "trsm-squares" : "trsm-syrk" : "getrs-gemm",
                      cholesky ? run_by_cholesky : run_by_lu, out, 2, in);
    if (!s) return NULL;
    double work = (double)n * (double)n * (double)k + (double)n * (double)k * (double)k;
    s->attr = self->attr;
    const bool some = cholesky && self->attr.i[1];
    s->scratch = (size_t)n * (size_t)(some ? lop_at_once(k) + n : k) * lop_dtype_size(self->dtype);
    if (self->attr.i[1]) work = (double)n * (double)n * (double)k + 2 * (double)n * (double)k;
    s->flops = (cholesky ? 1 : 2) * work * (double)batch;
    s->flags = LOP_STEP_GEMM;
    return s;
}

/* y <- R^H X with X = A^-1 R, which is its own adjoint. */
static lop_status run_product(const lop_call *c) {
    const lop_mat *y = c->a[0], *x = c->a[1], *r = c->a[2],
                  rt = {r->p, r->n, r->m, r->cs, r->rs, r->dt};
    lopk_gemm(y, &rt, false, x, false); /* small factors are of real numbers */
    for (int64_t i = 0; i < y->m; i++)
        for (int64_t j = 0; j <= i; j++) {
            const double a = creal(lop_get(y->dt, y->p, i * y->rs + j * y->cs)),
                         b = creal(lop_get(y->dt, y->p, j * y->rs + i * y->cs)),
                         v = 0.5 * a + 0.5 * b;
            lop_set(y->dt, y->p, i * y->rs + j * y->cs, v);
            lop_set(y->dt, y->p, j * y->rs + i * y->cs, v);
        }
    return LOP_OK;
}

/* Of small matrices, whose factor has the layout of stacks: by both substitutions with that one. */
static lop_status lower_small(lop_emit *e, const lop_node *self, const int *in, int out) {
    lop_status st;
    int64_t n, k, batch;
    lop_shape shape = self->shape;
    lop_slot_sizes(e, in[1], &n, &k, NULL);
    if (self->attr.i[1])
        return lop_emit_stack_squares(e, n, self->dtype, in[0], in[1], out, self->attr.i[0] == 1);
    shape.ndim -= self->core;
    lop_slot_sizes(e, out, NULL, NULL, &batch);
    shape.dim[shape.ndim++] = n;
    shape.dim[shape.ndim++] = k;
    const int x = lop_emit_temp(e, self->dtype, 2, &shape, &st), from[2] = {x, in[1]};
    if (x < 0) return st;
    st = lop_emit_stack_solve(e, n, self->dtype, in[0], in[1], x, self->attr.i[0] == 1);
    if (st != LOP_OK) return st;
    lop_step *s = lop_emit_step(e, "half-product", run_product, out, 2, from);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->flops = 2 * (double)n * (double)k * (double)k * (double)batch;
    return LOP_OK;
}

static lop_status lower_halfsolve(lop_emit *e, const lop_node *self, int out) {
    int in[2];
    lop_status st;
    for (int i = 0; i < 2; i++) {
        in[i] = lop_emit_cast(e, lop_emit_value(e, self->child[i]), self->dtype, &st);
        if (in[i] < 0) return st;
    }
    if (lop_stack_fits(lop_rows(self->child[0]), self->dtype)) return lower_small(e, self, in, out);
    in[0] = lop_emit_cholesky(e, lop_rows(self->child[0]), self->dtype, in[0], self->attr.i[0] != 0,
                              &st);
    int mask = in[0] >= 0 ? lop_emit_mask(e, out, &st) : -1;
    if (mask < 0) return st;
    lop_step *s = emit_half(e, self, true, in, out);
    if (!s) return LOP_NOMEM;
    s->fail = mask;
    if (self->attr.i[0] == 1) s->flags |= LOP_STEP_QUIET;
    s = emit_half(e, self, false, in, out);
    if (!s) return LOP_NOMEM;
    s->when = mask;
    s->when_set = true;
    return LOP_OK;
}

const lop_op lop_op_half_solve = {
    LOP_NAMED(half_solve),    .cls = LOP_ARRAY,        .min = 2, .max = 2, .ints = 2,
    .infer = infer_halfsolve, .lower = lower_halfsolve};
