/* op_assumption_band.c: tests assumptions about bands (pl.config(check="full")), as
 * op_assumption_dense.c does for full matrices.
 *
 *   assume_band         child ab, the diagonals of a Banded with l = u; attr.i: the assumption
 *                       (LOP_ASSUME_*), l. The same array if it holds; else a ValueError that shows
 *                       an element.
 *   assume_tridiagonal  children d, dl, du of a Tridiagonal; attr.i[0]: the assumption. d,
 *                       likewise.
 *   assume_blocks       children L, D, (U) of a BlockTridiagonal; attr.i: b, the assumption. D,
 *                       likewise.
 *
 * The halves agree to n u of the largest element (Cholesky finds out whether it is definite). NaN
 * and inf pass. Cost: the stored numbers are read once. */
#include "ops/shared/blocktridiagonal.h"
#include "expr/op.h"
#include "kernels/common/kernels.h"

#include <complex.h>
#include <float.h>
#include <math.h>

static double unit_of(lop_dtype dt) {
    return dt == LOP_f32 || dt == LOP_c64 ? FLT_EPSILON / 2 : DBL_EPSILON / 2;
}
static double _Complex at(const lop_mat *a, int64_t i, int64_t j) {
    return lop_get(a->dt, a->p, i * a->rs + j * a->cs);
}
static double largest(const lop_mat *a) {
    double most = 0;
    for (int64_t i = 0; i < a->m; i++)
        for (int64_t j = 0; j < a->n; j++) most = fmax(most, cabs(at(a, i, j)));
    return most;
}

/* Element (row, col) below the diagonal against the one above. */
static lop_status compare(const lop_call *c, int64_t row, int64_t col, double _Complex x,
                          double _Complex y, double bound) {
    const bool symmetric = c->step->attr.i[0] == LOP_ASSUME_SYMMETRIC;
    if (!(cabs(x - (symmetric ? y : conj(y))) > bound)) return LOP_OK;
    return lop_fail(c->err, LOP_DOMAIN,
                    "assumed %s, but element (%lld, %lld) is %g%+gj and (%lld, %lld) is %g%+gj",
                    symmetric ? "symmetric" : "Hermitian or positive definite", (long long)row,
                    (long long)col, creal(x), cimag(x), (long long)col, (long long)row, creal(y),
                    cimag(y));
}
/* A diagonal of `count` elements k below the main one; both from [0, 0] on, along a row. */
static lop_status compare_all(const lop_call *c, const lop_mat *below, const lop_mat *above,
                              int64_t k, int64_t count, double bound) {
    lop_status st = LOP_OK;
    for (int64_t j = 0; st == LOP_OK && j < count; j++)
        st = compare(c, j + k, j, at(below, 0, j), at(above, 0, j), bound);
    return st;
}

/* Row i of `a` from column j on. */
static lop_mat row(const lop_mat *a, int64_t i, int64_t j) {
    char *p = (char *)a->p + (i * a->rs + j * a->cs) * (int64_t)lop_dtype_size(a->dt);
    return (lop_mat){p, 1, a->n - j, a->rs, a->cs, a->dt};
}

static lop_status run_band(const lop_call *c) {
    const lop_mat *ab = c->a[1];
    const int64_t l = c->step->attr.i[1], n = ab->n;
    double most = 0;
    lop_status st = LOP_OK;
    for (int64_t k = 0; k <= l && k < n; k++) { /* what lies outside the matrix is not read */
        const lop_mat lower = row(ab, l + k, 0), upper = row(ab, l - k, k);
        const lop_mat inside = {lower.p, 1, n - k, lower.rs, lower.cs, lower.dt};
        most = fmax(most, fmax(largest(&inside), largest(&upper)));
    }
    for (int64_t k = 0; st == LOP_OK && k <= l && k < n; k++) {
        const lop_mat lower = row(ab, l + k, 0), upper = row(ab, l - k, k);
        st = compare_all(c, &lower, &upper, k, n - k, (double)n * unit_of(ab->dt) * most);
    }
    if (st == LOP_OK) lopk_copy(c->a[0], ab);
    return st;
}

/* Vectors lie as columns. */
static lop_mat lying(const lop_mat *v) { return (lop_mat){v->p, v->n, v->m, v->cs, v->rs, v->dt}; }

static lop_status run_three(const lop_call *c) {
    const lop_mat d = lying(c->a[1]), below = lying(c->a[2]), above = lying(c->a[3]);
    const double most = fmax(largest(&d), fmax(largest(&below), largest(&above))),
                 bound = (double)d.n * unit_of(d.dt) * most;
    lop_status st = compare_all(c, &d, &d, 0, d.n, bound);
    if (st == LOP_OK) st = compare_all(c, &below, &above, 1, below.n, bound);
    if (st == LOP_OK) lopk_copy(c->a[0], c->a[1]);
    return st;
}

/* Blocks row by row, attr.i[1] rows each; without those above the adjoints stand there. */
static lop_status run_blocks(const lop_call *c) {
    const int64_t b = c->step->attr.i[1], N = b > 0 ? c->a[1]->m / (b * b) : 0;
    const lop_mat d = lying(c->a[1]), below = lying(c->a[2]),
                  above = c->step->n > 3 ? lying(c->a[3]) : below;
    const double most = fmax(largest(&d), fmax(largest(&below), largest(&above))),
                 bound = (double)(N * b) * unit_of(d.dt) * most;
    lop_status st = LOP_OK;
    for (int64_t e = 0; st == LOP_OK && e < N * b * b; e++) {
        const int64_t k = e / (b * b), i = e / b % b, j = e % b, t = e + (j - i) * (b - 1);
        st = compare(c, k * b + i, k * b + j, at(&d, 0, e), at(&d, 0, t), bound);
        if (st != LOP_OK || k + 1 == N) continue;
        const double _Complex x = at(&below, 0, e), y = c->step->n > 3 ? at(&above, 0, t) : conj(x);
        st = compare(c, (k + 1) * b + i, k * b + j, x, y, bound);
    }
    if (st == LOP_OK) lopk_copy(c->a[0], c->a[1]);
    return st;
}

static lop_status infer_band(lop_node *n, lop_err *err) {
    const lop_node *ab = n->child[0];
    if (ab->op->cls == LOP_OPERATOR || ab->core != 2 || n->attr.i[1] < 0 ||
        n->attr.i[1] > INT64_MAX / 4 || lop_rows(ab) != 2 * n->attr.i[1] + 1)
        return lop_fail(err, LOP_DIM, "assume_band takes as many diagonals below as above");
    n->shape = ab->shape;
    n->core = 2;
    n->dtype = ab->dtype;
    return LOP_OK;
}
static lop_status infer_three(lop_node *n, lop_err *err) {
    const lop_node *const *v = n->child;
    for (int i = 0; i < 3; i++)
        if (v[i]->op->cls == LOP_OPERATOR || v[i]->core != 1)
            return lop_fail(err, LOP_DIM, "assume_tridiagonal takes three vectors");
    if (lop_cols(v[1]) != lop_cols(v[2]) ||
        lop_cols(v[1]) != (lop_cols(v[0]) > 0 ? lop_cols(v[0]) - 1 : 0))
        return lop_fail(err, LOP_DIM, "assume_tridiagonal takes diagonals that fit");
    lop_status st = lop_node_batches(n, 1, err);
    if (st != LOP_OK) return st;
    n->shape.dim[n->shape.ndim++] = lop_cols(v[0]);
    n->core = 1;
    n->dtype = v[0]->dtype;
    n->weak = v[0]->weak;
    return LOP_OK;
}

static lop_status infer_blocks(lop_node *n, lop_err *err) {
    lop_status st = lop_blocktri_shape(n, n->n, err);
    if (st != LOP_OK) return st;
    n->shape.dim[--n->shape.ndim - 1] = lop_cols(n->child[1]);
    n->core = 1;
    n->dtype = n->child[1]->dtype;
    n->weak = n->child[1]->weak;
    return LOP_OK;
}

static lop_status lower(lop_emit *e, const lop_node *self, int out) {
    const lop_run run = self->op == &lop_op_assume_band          ? run_band
                        : self->op == &lop_op_assume_tridiagonal ? run_three
                                                                 : run_blocks;
    int in[3];
    for (int i = 0; i < self->n; i++) in[i] = lop_emit_value(e, self->child[i]);
    if (run == run_blocks) { /* what is tested first, as in the others */
        const int on = in[1];
        in[1] = in[0];
        in[0] = on;
    }
    lop_step *s = lop_emit_step(e, "test-assumption", run, out, self->n, in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    if (run == run_blocks) s->attr = (lop_attr){.i = {self->attr.i[1], self->attr.i[0], 0, 0}};
    return LOP_OK;
}

const lop_op lop_op_assume_band = {
    LOP_NAMED(assume_band), .cls = LOP_ARRAY, .min = 1, .max = 1, .ints = 2,
    .infer = infer_band,    .lower = lower};
const lop_op lop_op_assume_tridiagonal = {
    LOP_NAMED(assume_tridiagonal), .cls = LOP_ARRAY, .min = 3, .max = 3, .ints = 1,
    .infer = infer_three,          .lower = lower};
const lop_op lop_op_assume_blocks = {
    LOP_NAMED(assume_blocks), .cls = LOP_ARRAY, .min = 2, .max = 3, .ints = 2,
    .infer = infer_blocks,    .lower = lower};
