/* op_sparsetriangular.c: one triangle of a sparse matrix; what lies in the other is skipped.
 *
 * Child: a Sparse in CSR or CSC. attr.i[0]: lower; i[1]: ones on the diagonal, which is not read
 * then. Solves substitute in the user's arrays as they lie: no copy of the triangle, no order of
 * the elements within a line asked for, duplicates add. Every index is checked on each call.
 * Cost: 2 nnz k flops, product or solve, of which the other triangle is read over. */
#include "expr/random_instance.h"
#include "kernels/dense/k_blas.h"
#include "kernels/sparse/k_sparse_triangular.h"
#include "kernels/common/kernels.h"
#include "expr/vjp.h"

enum { CSR, CSC };

static lop_status infer(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0];
    char t[128];
    if (a->op != &lop_op_sparse || a->attr.i[0] > CSC)
        return lop_fail(err, LOP_DIM,
                        "sparse triangular takes a Sparse in CSR or CSC, not a view, another kind "
                        "or COO (A.tocsr())");
    n->shape = a->shape;
    n->dtype = a->dtype;
    if (!lop_is_square(n))
        return lop_fail(err, LOP_DIM, "a triangular matrix is square, got shape %s",
                        lop_shape_text(&n->shape, t, sizeof t));
    return LOP_OK;
}

/* The three arrays as the kernels want them: contiguous, data in the result's dtype, indices of
 * one. */
static lop_status arrays(lop_emit *e, const lop_node *const *child, int out, int *in) {
    lop_status st;
    lop_dtype index = lop_promote(child[1]->dtype, child[2]->dtype);
    for (int i = 0; i < 3; i++) {
        in[i] =
            lop_emit_cast(e, lop_emit_value(e, child[i]), i ? index : lop_slot_dtype(e, out), &st);
        in[i] = lop_emit_in_c_order(e, in[i], &st);
        if (in[i] < 0) return st;
    }
    return LOP_OK;
}

/* attr of a step: i[0] the format, i[1] the mode, i[2] bit 0 lower, bit 1 unit. */
static lop_attr how_of(int64_t format, int64_t mode, int64_t lower, int64_t unit) {
    return (lop_attr){.i = {format, mode, (lower != 0) | (unit != 0) << 1, 0}};
}
static lopk_triangle triangle(const lop_call *c) {
    const int64_t *a = c->step->attr.i;
    const bool trans = (a[1] & LOP_T) != 0;
    return (lopk_triangle){.data = c->a[2],
                           .index = c->a[3],
                           .ptr = c->a[4],
                           .csr = (a[0] == CSR) != trans,
                           .lower = ((a[2] & 1) != 0) != trans,
                           .unit = (a[2] & 2) != 0,
                           .conj = (a[1] & LOP_C) != 0};
}
static lop_status bad_index(const lop_call *c, int64_t n) {
    return lop_fail(c->err, LOP_INDEX,
                    "a sparse index is out of bounds for the %lld x %lld matrix, or indptr is not "
                    "increasing",
                    (long long)n, (long long)n);
}

static lop_status run(const lop_call *c) {
    const lopk_triangle t = triangle(c);
    const lop_status st = lopk_triangle_mm(c->a[0], &t, c->a[1]);
    return st == LOP_INDEX ? bad_index(c, c->a[0]->m) : st;
}
static double nonzeros(const lop_node *self) { return (double)lop_cols(self->child[0]->child[0]); }

static lop_status apply(lop_emit *e, const lop_node *self, lop_mode mode, int x, int out) {
    int64_t k, batch;
    int in[4] = {x};
    lop_slot_sizes(e, out, NULL, &k, &batch);
    lop_status st = arrays(e, self->child[0]->child, out, in + 1);
    if (st != LOP_OK) return st;
    lop_step *s = lop_emit_step(e, "sptrmm", run, out, 4, in);
    if (!s) return LOP_NOMEM;
    s->attr = how_of(self->child[0]->attr.i[0], mode, self->attr.i[0], self->attr.i[1]);
    s->flags = LOP_STEP_COLUMNS;
    s->flops = 2 * nonzeros(self) * (double)k * (double)batch;
    return LOP_OK;
}

/* -- dense form, diagonal: element by element */

static int64_t index_at(const lop_mat *a, int64_t i) {
    return a->dt == LOP_i32 ? ((const int32_t *)a->p)[i * a->rs]
                            : ((const int64_t *)a->p)[i * a->rs];
}
static void add_at(const lop_mat *y, int64_t offset, const lop_mat *data, int64_t at) {
    const int64_t size = (int64_t)lop_dtype_size(y->dt);
    const lop_mat to = {(char *)y->p + offset * size, 1, 1, 1, 1, y->dt},
                  from = {(char *)data->p + at * data->rs * size, 1, 1, 1, 1, y->dt};
    lopk_add(&to, &to, &from);
}
static void add_ones(const lop_mat *y, int64_t stride, int64_t n) {
    static const double one = 1;
    const lop_mat to = {y->p, n, 1, stride, 1, y->dt},
                  from = {(void *)(uintptr_t)&one, n, 1, 0, 0, LOP_f64};
    lopk_copy(&to, &from);
}

/* attr.i[0] the diagonal, i[1] the format, i[2] as above, i[3]: the dense form. */
static lop_status run_entries(const lop_call *c) {
    const lop_mat *y = c->a[0], *data = c->a[1], *index = c->a[2], *ptr = c->a[3];
    const int64_t *a = c->step->attr.i, n = ptr->m - 1;
    const bool lower = (a[2] & 1) != 0, unit = (a[2] & 2) != 0;
    lopk_zero(y);
    for (int64_t line = 0, last = 0; line < n; line++) {
        const int64_t from = index_at(ptr, line), to = index_at(ptr, line + 1);
        if (from != last || to < from || to > data->m) return bad_index(c, n);
        last = to;
        for (int64_t p = from; p < to; p++) {
            const int64_t other = index_at(index, p), i = a[1] == CSR ? line : other,
                          j = a[1] == CSR ? other : line;
            if (other < 0 || other >= n) return bad_index(c, n);
            if ((i == j && unit) || (lower ? j > i : j < i)) continue;
            if (a[3])
                add_at(y, i * y->rs + j * y->cs, data, p);
            else if (j - i == a[0])
                add_at(y, (a[0] < 0 ? j : i) * y->rs, data, p);
        }
    }
    if (unit && n > 0 && (a[3] || a[0] == 0)) add_ones(y, a[3] ? y->rs + y->cs : y->rs, n);
    return LOP_OK;
}
static lop_status entries(lop_emit *e, const lop_node *self, bool whole, int64_t k, int out) {
    int in[3];
    lop_status st = arrays(e, self->child[0]->child, out, in);
    if (st != LOP_OK) return st;
    lop_step *s = lop_emit_step(e, "entries", run_entries, out, 3, in);
    if (!s) return LOP_NOMEM;
    s->attr = how_of(0, self->child[0]->attr.i[0], self->attr.i[0], self->attr.i[1]);
    s->attr.i[0] = k;
    s->attr.i[3] = whole;
    return LOP_OK;
}
static lop_status dense(lop_emit *e, const lop_node *self, int out) {
    return entries(e, self, true, 0, out);
}
static lop_status diagonal(lop_emit *e, const lop_node *self, int64_t k, int out) {
    return entries(e, self, false, k, out);
}

static double flops(const lop_node *self, int64_t k) { return 2 * nonzeros(self) * (double)k; }

/* CSR with every element once, so that solves have a diagonal. */
static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    const lop_node *c[3] = {0}, *a = NULL;
    if (m != n || n > 64) return LOP_UNABLE;
    lop_attr form = {.i = {lop_rng_range(&r->rng, 0, 2), n, n, 0}},
             how = {.i = {lop_rng_range(&r->rng, 0, 2), lop_rng_range(&r->rng, 0, 2), 0, 0}};
    lop_status st = lop_rand_vector(r, dt, n * n, &c[0]);
    if (st == LOP_OK) st = lop_rand_index(r, n * n, 0, n ? n : 1, &c[1]);
    if (st == LOP_OK) st = lop_rand_index(r, n + 1, 0, 1, &c[2]);
    for (int i = 1; st == LOP_OK && i < 3; i++) {
        const lop_buf *b = lop_rand_find(r, c[i]->serial);
        for (int64_t k = 0; b && k < (i == 1 ? n * n : n + 1); k++)
            lop_set(b->dt, b->p, k, (double)(i == 1 ? k % n : k * n));
    }
    if (st == LOP_OK) st = lop_node_make(r->ctx, &lop_op_sparse, &form, 3, c, NULL, &a, r->err);
    if (st == LOP_OK)
        st = lop_node_make(r->ctx, &lop_op_sparsetriangular, &how, 1, &a, NULL, out, r->err);
    for (int i = 0; i < 3; i++) lop_node_unref(c[i]);
    lop_node_unref(a);
    return st;
}

/* What counts of G is its triangle. */
static const lop_node *vjp(lop_vjp *v, const lop_node *self, int child, const lop_node *g) {
    const int64_t n = lop_rows(self);
    const lop_node like = {.shape = {.ndim = 2, .dim = {n, n}}, .dtype = g->dtype, .core = 2};
    const lop_attr lower = {.i = {self->attr.i[0], 0, 0, 0}};
    const lop_node *ones = lop_vjp_like(v, &lop_op_ones, &like);
    if (child || !ones) return lop_vjp_unable(v);
    const lop_node *half = lop_vjp_make(v, &lop_op_elementwise, NULL, g,
                                        lop_vjp_make(v, &lop_op_triangular, &lower, ones, NULL));
    if (!self->attr.i[1]) return half;
    const lop_node *d = lop_vjp_make(v, &lop_op_diag, NULL, lop_vjp_diagonal(v, g, 0), NULL);
    return d ? lop_vjp_sum(v, half, lop_vjp_times(v, -1, 0, d)) : NULL;
}

const lop_op lop_op_sparsetriangular = {
    LOP_NAMED(sparsetriangular),
    .flags = LOP_FLAG_few_entries | LOP_FLAG_entries | LOP_FLAG_at_once,
    .title = "SparseTriangular",
    .cls = LOP_OPERATOR,
    .min = 1,
    .max = 1,
    .ints = 2,
    .param = {{"A", LOP_P_OPERATOR, 0, NULL,
               "A Sparse, or a scipy.sparse matrix, in CSR or CSC, of which one triangle is read."},
              {"lower", LOP_P_FLAG, 0, "True", "The lower triangle or the upper one."},
              {"unit_diagonal", LOP_P_FLAG, 1, "False",
               "Whether the diagonal is ones; then it is not read either."}},
    .doc = {.brief = "One triangle of a sparse matrix; what lies in the other is skipped.",
            .extended = "Its arrays are borrowed and checked on each call; indices need not be "
                        "sorted, duplicates add.",
            .cost = "Build: O(1), no copy. Product and solve with k columns: 2 nnz k flops.",
            .notes = "Solves substitute; an exact zero on the diagonal, stored or not, raises "
                     "LinAlgError then.",
            .limits = "Solves run on one thread, row by row. There are no batches.",
            .example = ">>> import scipy.sparse as sp\n>>> L = pl.SparseTriangular(sp.csr_array("
                       "[[2., 7.], [1., 4.]]))\n>>> L @ np.array([1., 1.]), pl.inv(L) @ "
                       "np.array([2., 5.])\n(array([2., 5.]), array([1., 1.]))"},
    .infer = infer,
    .vjp = vjp,
    .apply = apply,
    .dense = dense,
    .diagonal = diagonal,
    .flops = flops,
    .random = random_instance};

/* -- sparse_triangular_solve: children data, indices, indptr, b; attr.i: format, mode, bits */

static lop_status infer_solve(lop_node *n, lop_err *err) {
    const lop_node *const *c = n->child, *b = c[3];
    for (int i = 0; i < 3; i++)
        if (c[i]->op->cls == LOP_OPERATOR || c[i]->core != 1 || lop_nbatch(c[i]))
            return lop_fail(err, LOP_DIM, "a sparse triangle takes three vectors");
    if (b->core != 2 || lop_cols(c[2]) - 1 != lop_rows(b) || lop_cols(c[0]) != lop_cols(c[1]) ||
        n->attr.i[0] < 0 || n->attr.i[0] > CSC)
        return lop_fail(err, LOP_DIM, "right-hand sides that fit are needed");
    for (int i = 1; i < 3; i++)
        if (c[i]->dtype != LOP_i32 && c[i]->dtype != LOP_i64)
            return lop_fail(err, LOP_DTYPE, "sparse indices must be int32 or int64, got %s",
                            lop_dtype_name(c[i]->dtype));
    n->shape = b->shape;
    const lop_node a = {.dtype = c[0]->dtype, .weak = c[0]->weak};
    lop_node_promote_inverse(n, &a, b);
    return LOP_OK;
}
static lop_status run_solve(const lop_call *c) {
    const lopk_triangle t = triangle(c);
    const int64_t n = c->a[0]->m;
    int64_t where = 0;
    lopk_copy(c->a[0], c->a[1]);
    double range[2], from[LOPK_GROWTHS];
    lopk_lengths(c->a[0], from);
    const lop_status st = lopk_triangle_solve(c->a[0], &t, &where, range);
    if (st == LOP_OK) {
        const double eps = lopk_eps(c->a[0]->dt);
        lop_call_near(c, lopk_range_ratio(range[0], range[1]), eps);
        lop_call_near(c, lopk_outgrown_from(c->a[0], from, range[1]), eps);
    }
    if (st == LOP_INDEX) return bad_index(c, n);
    if (st != LOP_SINGULAR) return st;
    return lop_fail(c->err, st, "Singular matrix: element %lld of the diagonal is exactly zero",
                    (long long)where);
}
static lop_status lower_solve(lop_emit *e, const lop_node *self, int out) {
    int in[4];
    int64_t k, batch;
    lop_status st = arrays(e, self->child, out, in + 1);
    if (st != LOP_OK) return st;
    in[0] = lop_emit_cast(e, lop_emit_value(e, self->child[3]), self->dtype, &st);
    if (in[0] < 0) return st;
    lop_slot_sizes(e, out, NULL, &k, &batch);
    lop_step *s = lop_emit_step(e, "sptrsv", run_solve, out, 4, in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->flags = LOP_STEP_COLUMNS;
    s->flops = 2.0 * (double)lop_cols(self->child[0]) * (double)k * (double)batch;
    return LOP_OK;
}
const lop_op lop_op_sparse_triangular_solve = {LOP_NAMED(sparse_triangular_solve),
                                               .cls = LOP_ARRAY,
                                               .min = 4,
                                               .max = 4,
                                               .ints = 3,
                                               .infer = infer_solve,
                                               .lower = lower_solve};
