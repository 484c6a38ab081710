/* op_diagonal_sums.c: what a cotangent means for matrices with few numbers: sums along diagonals.
 *
 *   diagonal_sums  of a matrix, attr.i[0]: along the diagonals from the main one down (i - j = 0,
 *                  1, ...), up (j - i), along the antidiagonals (i + j), or down and round
 *                  ((i - j) mod n)
 *   band_join      the diagonals u, ..., -l of a matrix of n columns as columns of an array, the
 *                  transpose of LAPACK's of bands; zeros where they do not reach
 *
 * Of a product of a column and a row the sums are a correlation, which goes as a product with a
 * Hankel or circulant matrix, by FFT where that pays. */
#include "projections.h"
#include "kernels/common/kernels.h"

/* -- sums of a matrix that is there */

static lop_status infer_sums(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0];
    int64_t m, count;
    if (a->op->cls == LOP_OPERATOR || a->core != 2 || n->attr.i[0] < 0 || n->attr.i[0] > LOP_ROUND)
        return lop_fail(err, LOP_DIM, "diagonal_sums takes a matrix");
    m = lop_rows(a);
    count = n->attr.i[0] == LOP_UP ? lop_cols(a) : m;
    if (n->attr.i[0] == LOP_ANTI &&
        (!lop_add_ok(m, lop_cols(a), &count) || (count -= count > 0) < 0))
        return lop_fail(err, LOP_OVERFLOW, NULL);
    n->shape = a->shape;
    n->shape.ndim--;
    n->shape.dim[n->shape.ndim - 1] = count;
    n->core = 1;
    n->dtype = a->dtype;
    n->weak = a->weak;
    return LOP_OK;
}

/* Row by row: each is added where its elements belong, from place `at` on in steps of one or minus
 * one. */
static lop_status run_sums(const lop_call *c) {
    const lop_mat *out = c->a[0], *a = c->a[1];
    const int64_t how = c->step->attr.i[0], n = a->n, size = (int64_t)lop_dtype_size(a->dt),
                  all = out->m;
    lopk_zero(out);
    for (int64_t i = 0; i < a->m; i++) {
        int64_t from = 0, count = n,
                at = i; /* element `from` goes to `at`, later ones to at + by */
        int64_t by = how == LOP_UP || how == LOP_ANTI ? 1 : -1;
        if (how == LOP_UP) {
            from = i;
            count = n - i;
            at = 0;
        }
        if (how == LOP_DOWN && count > i + 1) count = i + 1;
        while (from < n && count > 0) {
            const int64_t run = how == LOP_ROUND && count > at + 1 ? at + 1 : count;
            const lop_mat
                part = {(char *)a->p + (i * a->rs + from * a->cs) * size, run, 1, a->cs, 0, a->dt},
                to = {(char *)out->p + at * out->rs * size, run, 1, by * out->rs, 0, a->dt};
            lopk_add(&to, &to, &part);
            from += run;
            count -= run;
            at = all - 1;
        }
    }
    return LOP_OK;
}
static lop_status lower_sums(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    int in = lop_emit_cast(e, lop_emit_value(e, self->child[0]), self->dtype, &st);
    if (in < 0) return st;
    lop_step *s = lop_emit_step(e, "diagonal-sums", run_sums, out, 1, &in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->flops = lop_slot_elements(e, in);
    return LOP_OK;
}
const lop_op lop_op_diagonal_sums = {
    LOP_NAMED(diagonal_sums), .cls = LOP_ARRAY,   .min = 1, .max = 1, .ints = 1,
    .infer = infer_sums,      .lower = lower_sums};

/* -- bands: attr.i = l, u, rows of the matrix, its columns */

static lop_status infer_join(lop_node *n, lop_err *err) {
    const int64_t l = n->attr.i[0], u = n->attr.i[1];
    if (l < 0 || u < 0 || n->n != l + u + 1)
        return lop_fail(err, LOP_DIM, "band_join takes one vector a diagonal");
    for (int i = 0; i < n->n; i++)
        if (n->child[i]->op->cls == LOP_OPERATOR || n->child[i]->core != 1 ||
            lop_nbatch(n->child[i]) || n->child[i]->dtype != n->child[0]->dtype ||
            lop_cols(n->child[i]) != lop_diag_length(n->attr.i[2], n->attr.i[3], u - i))
            return lop_fail(err, LOP_DIM, "band_join: diagonals of other lengths");
    n->shape.ndim = 2;
    n->shape.dim[0] = n->attr.i[3];
    n->shape.dim[1] = n->n;
    n->core = 2;
    n->dtype = n->child[0]->dtype;
    n->weak = n->child[0]->weak;
    return LOP_OK;
}
static lop_status run_place(const lop_call *c) {
    const int64_t *at = c->step->attr.i;
    const lop_mat *out = c->a[0], *d = c->a[1];
    const int64_t from = at[0] * out->rs + at[1] * out->cs;
    const lop_mat to = {
        (char *)out->p + from * (int64_t)lop_dtype_size(out->dt), d->m, 1, out->rs, 0, out->dt};
    lopk_copy(&to, d);
    return LOP_OK;
}
static lop_status run_clear(const lop_call *c) {
    lopk_zero(c->a[0]);
    return LOP_OK;
}
static lop_status lower_join(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    if (!lop_emit_step(e, "zero", run_clear, out, 0, NULL)) return LOP_NOMEM;
    for (int i = 0; i < self->n; i++) {
        int in = lop_emit_cast(e, lop_emit_value(e, self->child[i]), self->dtype, &st);
        if (in < 0) return st;
        lop_step *s = lop_emit_step(e, "place", run_place, out, 1, &in);
        if (!s) return LOP_NOMEM;
        const int64_t k = self->attr.i[1] - i;
        s->attr.i[0] = k > 0 ? k : 0;
        s->attr.i[1] = i;
        s->flags = LOP_STEP_PLACES;
    }
    return LOP_OK;
}
const lop_op lop_op_band_join = {
    LOP_NAMED(band_join), .cls = LOP_ARRAY,   .min = 1, .max = -1, .ints = 4,
    .infer = infer_join,  .lower = lower_join};

/* -- by the form of the cotangent */

enum { THIN = 8, DEEPEST = 24 };

static const lop_node *sizes(lop_vjp *v, int64_t rows, int64_t cols) {
    const lop_node like = {
        .shape = {.ndim = 2, .dim = {rows, cols}}, .dtype = LOP_f64, .weak = LOP_WEAK};
    return lop_vjp_like(v, &lop_op_sizes, &like);
}

/* Of column @ row^T; down: the Hankel matrix of the column times the row. */
static const lop_node *correlated(lop_vjp *v, const lop_node *column, const lop_node *row,
                                  const lop_sums *how) {
    const lop_attr both = {.i = {2, 0, 0, 0}};
    if (v->st != LOP_OK) return NULL;
    if (how->way == LOP_UP) {
        const lop_node *c = column;
        column = row;
        row = c;
    }
    const lop_node *u = lop_vjp_dense(v, column), *w = lop_vjp_dense(v, row),
                   *flat = lop_vjp_make(v, &lop_op_ravel, &both, u, NULL);
    if (!flat || !w) return NULL;
    if (how->way == LOP_ROUND) {
        const lop_node *back = lop_vjp_make(v, &lop_op_ravel, &both, w, NULL);
        back = lop_vjp_make(v, &lop_op_circulant_flip, NULL, back, how->levels);
        const lop_node *child[3] = {flat, back, how->levels};
        return lop_vjp_over(v, &lop_op_circular_convolution, NULL, 3, child);
    }
    const lop_node *matrix =
        lop_vjp_make(v, &lop_op_hankel, NULL, flat, sizes(v, lop_rows(u), lop_rows(w)));
    const lop_node *y = lop_vjp_make(v, &lop_op_apply, NULL, matrix, w);
    return lop_vjp_make(v, &lop_op_ravel, &both, y, NULL);
}

static const lop_node *term(lop_vjp *v, const lop_node *g, const lop_sums *how) {
    const lop_node *a, *b, *sum = NULL;
    if (v->st != LOP_OK) return NULL;
    if (how->way == LOP_ANTI || !lop_vjp_thin(v, g, THIN, &a, &b)) {
        const lop_attr attr = {.i = {how->way, 0, 0, 0}};
        if (how->levels && how->levels->shape.ndim > 1) return lop_vjp_unable(v);
        return lop_vjp_make(v, &lop_op_diagonal_sums, &attr, lop_vjp_dense(v, g), NULL);
    }
    for (int64_t c = 0; c < lop_cols(a); c++) {
        const lop_node *column = lop_vjp_cut(v, a, 1, c, 1),
                       *row = lop_vjp_view(v, lop_vjp_cut(v, b, 0, c, 1), LOP_T),
                       *one = correlated(v, column, row, how);
        sum = sum ? lop_vjp_make(v, &lop_op_add, NULL, sum, one) : one;
    }
    return sum;
}

static const lop_node *by_form(lop_vjp *v, const lop_node *g, const lop_sums *how, int depth) {
    if (v->st != LOP_OK) return NULL;
    if (depth > 0 && g->op == &lop_op_sum) {
        const lop_node *a = by_form(v, g->child[0], how, depth - 1),
                       *b = by_form(v, g->child[1], how, depth - 1);
        return lop_vjp_make(v, &lop_op_add, NULL, a, b);
    }
    if (depth > 0 && g->op == &lop_op_scaled)
        return lop_vjp_make(v, &lop_op_scale, &g->attr, by_form(v, g->child[0], how, depth - 1),
                            NULL);
    return term(v, g, how);
}

/* The real part of a sum of terms is that of the whole. */
const lop_node *lop_vjp_sums(lop_vjp *v, const lop_node *g, const lop_sums *how) {
    return by_form(v, g, how, v->real && lop_is_complex(g->dtype) ? 0 : DEEPEST);
}

const lop_node *lop_vjp_band(lop_vjp *v, const lop_node *g, int64_t l, int64_t u) {
    enum { MOST = 64 };
    const lop_node *d[MOST];
    const lop_attr attr = {.i = {l, u, lop_rows(g), lop_cols(g)}};
    if (l + u >= MOST) return lop_vjp_unable(v);
    for (int64_t i = 0; i <= l + u; i++) d[i] = lop_vjp_diagonal(v, g, u - i);
    const lop_attr turned = {.i = {LOP_T, 0, 0, 0}};
    const lop_node *all = lop_vjp_over(v, &lop_op_band_join, &attr, (int)(l + u + 1), d);
    return all ? lop_vjp_make(v, &lop_op_swap, &turned, all, NULL) : NULL;
}
