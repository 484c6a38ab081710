/* op_sparse.c: CSR, CSC and COO matrices on the user's own arrays.
 *
 * Children: CSR, CSC: data, indices, indptr; COO: data, row, col. attr.i[0] the format, i[1], i[2]
 * the shape. The transpose of a CSR matrix is the CSC matrix of the same arrays. Duplicates add.
 * Every index is checked on each call. Cost: 2 nnz k flops, bound by memory. */
#include "expr/random_instance.h"
#include "kernels/common/kernels.h"
#include "ops/projections/projections.h"
#include "ops/shared/sparse_solver.h"

enum { CSR, CSC, COO };

static lop_status infer(lop_node *n, lop_err *err) {
    const lop_node *const *c = n->child;
    int64_t format = n->attr.i[0], major = n->attr.i[format == CSC ? 2 : 1];
    for (int i = 0; i < 3; i++)
        if (c[i]->op->cls == LOP_OPERATOR || c[i]->core != 1 || lop_nbatch(c[i]))
            return lop_fail(err, LOP_DIM, "sparse takes three vectors");
    if (format < 0 || format > COO || n->attr.i[1] < 0 || n->attr.i[2] < 0)
        return lop_fail(err, LOP_DIM, "no such sparse format or shape");
    for (int i = 1; i < 3; i++)
        if (c[i]->dtype != LOP_i32 && c[i]->dtype != LOP_i64)
            return lop_fail(err, LOP_DTYPE, "sparse indices must be int32 or int64, got %s",
                            lop_dtype_name(c[i]->dtype));
    if (lop_cols(c[0]) != lop_cols(c[1]) ||
        (format == COO ? lop_cols(c[2]) != lop_cols(c[0]) : lop_cols(c[2]) - 1 != major))
        return lop_fail(
            err, LOP_DIM,
            "sparse arrays of lengths %lld, %lld, %lld do not make a %lld x %lld matrix",
            (long long)lop_cols(c[0]), (long long)lop_cols(c[1]), (long long)lop_cols(c[2]),
            (long long)n->attr.i[1], (long long)n->attr.i[2]);
    n->shape = (lop_shape){.ndim = 2, .dim = {n->attr.i[1], n->attr.i[2]}};
    n->dtype = c[0]->dtype;
    return LOP_OK;
}

static lop_status run(const lop_call *c) {
    const lop_mat *y = c->a[0], *x = c->a[1], *data = c->a[2], *i1 = c->a[3], *i2 = c->a[4];
    int64_t format = c->step->attr.i[0], mode = c->step->attr.i[1];
    bool conj = (mode & LOP_C) != 0, trans = (mode & LOP_T) != 0;
    lop_status st;
    if (format == COO)
        st = lopk_coo_mm(y, trans ? i2 : i1, trans ? i1 : i2, data, conj, x, c->team,
                         c->step->scratch, c->scratch);
    else if (!lopk_indptr_begins(i2))
        st = LOP_INDEX;
    else if ((format == CSR) != trans)
        st = lopk_csr_mm_parts(y, i2, i1, data, conj, x, c->team);
    else
        st = lopk_csc_mm(y, i2, i1, data, conj, x, c->team, c->step->scratch, c->scratch);
    if (st == LOP_INDEX)
        return lop_fail(c->err, st,
                        "a sparse index is out of bounds for the %lld x %lld matrix, or indptr is "
                        "not increasing",
                        (long long)(trans ? x->m : y->m), (long long)(trans ? y->m : x->m));
    return st;
}

bool lop_sparse_by_rows(const lop_call *c) {
    const int64_t format = c->step->attr.i[0], mode = c->step->attr.i[1];
    return c->step->run == run && format == ((mode & LOP_T) ? CSC : CSR) && !(mode & LOP_C);
}

/* The three arrays as the kernels want them: contiguous, data in the result's dtype, indices of
 * one. */
static lop_status arrays(lop_emit *e, const lop_node *self, int out, int *in) {
    lop_status st;
    lop_dtype index = lop_promote(self->child[1]->dtype, self->child[2]->dtype);
    for (int i = 0; i < 3; i++) {
        in[i] = lop_emit_cast(e, lop_emit_value(e, self->child[i]),
                              i ? index : lop_slot_dtype(e, out), &st);
        in[i] = lop_emit_in_c_order(e, in[i], &st);
        if (in[i] < 0) return st;
    }
    return LOP_OK;
}

static lop_status apply(lop_emit *e, const lop_node *self, lop_mode mode, int x, int out) {
    const int64_t format = self->attr.i[0], nnz = lop_cols(self->child[0]);
    const bool trans = (mode & LOP_T) != 0, by_rows = (format == CSR) != trans;
    int64_t k, batch, m, all, room = 0;
    int in[4] = {x};
    lop_slot_sizes(e, out, &m, &k, &batch);
    if (!lop_mul_ok(k, batch > 0 ? batch : 1, &all)) all = k;
    if ((format == COO || !by_rows) &&
        !lopk_scatter_room(nnz, m, all, lop_slot_dtype(e, out), &room))
        return lop_fail(lop_emit_err(e), LOP_OVERFLOW, "too many columns");
    lop_status st = arrays(e, self, out, in + 1);
    if (st != LOP_OK) return st;
    lop_step *s = lop_emit_step(e, "spmm", run, out, 4, in);
    if (!s) return LOP_NOMEM;
    s->attr.i[0] = self->attr.i[0];
    s->attr.i[1] = mode;
    s->flags = LOP_STEP_COLUMNS;
    s->scratch = (size_t)room;
    s->flops = 2.0 * (double)nnz * (double)k * (double)batch;
    return LOP_OK;
}

static int64_t index_at(const lop_mat *a, int64_t i) {
    return a->dt == LOP_i32 ? ((const int32_t *)a->p)[i * a->rs]
                            : ((const int64_t *)a->p)[i * a->rs];
}

/* Calls add(i, j, position) for every stored element, after checking it. */
typedef struct target {
    const lop_mat *y, *data;
    int64_t k, i, j; /* diagonal offset, or one element */
    int what;        /* 0 dense, 1 diagonal, 2 element */
} target;

static void put(const target *t, int64_t i, int64_t j, int64_t at) {
    const lop_mat *y = t->y;
    int64_t size = (int64_t)lop_dtype_size(y->dt), offset = 0;
    if (t->what == 0) offset = i * y->rs + j * y->cs;
    if (t->what == 1) {
        if (j - i != t->k) return;
        offset = (t->k < 0 ? j : i) * y->rs;
    }
    if (t->what == 2 && (i != t->i || j != t->j)) return;
    lop_mat to = {(char *)y->p + offset * size, 1, 1, 1, 1, y->dt},
            from = {(char *)t->data->p + at * t->data->rs * size, 1, 1, 1, 1, y->dt};
    lopk_add(&to, &to, &from);
}

static lop_status run_entries(const lop_call *c) {
    const lop_mat *data = c->a[1], *i1 = c->a[2], *i2 = c->a[3];
    const int64_t *a = c->step->attr.i;
    int64_t format = a[3] & 3, m = a[1], n = a[2];
    target t = {c->a[0],         data, a[0], (int64_t)c->step->attr.re, (int64_t)c->step->attr.im,
                (int)(a[3] >> 2)};
    lopk_zero(c->a[0]);
    if (format == COO) {
        for (int64_t p = 0; p < data->m; p++) {
            int64_t i = index_at(i1, p), j = index_at(i2, p);
            if (i < 0 || i >= m || j < 0 || j >= n)
                return lop_fail(c->err, LOP_INDEX, "sparse element %lld lies outside the matrix",
                                (long long)p);
            put(&t, i, j, p);
        }
        return LOP_OK;
    }
    int64_t majors = format == CSR ? m : n, minors = format == CSR ? n : m, last = 0;
    for (int64_t q = 0; q < majors; q++) {
        int64_t from = index_at(i2, q), to = index_at(i2, q + 1);
        if (from != last || to < from || to > data->m)
            return lop_fail(c->err, LOP_INDEX, "indptr is not increasing at %lld", (long long)q);
        last = to;
        for (int64_t p = from; p < to; p++) {
            int64_t r = index_at(i1, p);
            if (r < 0 || r >= minors)
                return lop_fail(c->err, LOP_INDEX, "sparse index %lld lies outside the matrix",
                                (long long)r);
            put(&t, format == CSR ? q : r, format == CSR ? r : q, p);
        }
    }
    return LOP_OK;
}

static lop_status entries(lop_emit *e, const lop_node *self, int what, int64_t k, double i,
                          double j, int out) {
    int in[3];
    lop_status st = arrays(e, self, out, in);
    if (st != LOP_OK) return st;
    lop_step *s = lop_emit_step(e, "entries", run_entries, out, 3, in);
    if (!s) return LOP_NOMEM;
    s->attr =
        (lop_attr){.i = {k, self->attr.i[1], self->attr.i[2], self->attr.i[0] | (int64_t)what << 2},
                   .re = i,
                   .im = j};
    return LOP_OK;
}
static lop_status dense(lop_emit *e, const lop_node *self, int out) {
    return entries(e, self, 0, 0, 0, 0, out);
}
static lop_status diagonal(lop_emit *e, const lop_node *self, int64_t k, int out) {
    return entries(e, self, 1, k, 0, 0, out);
}
static lop_status element(lop_emit *e, const lop_node *self, int64_t i, int64_t j, int out) {
    return entries(e, self, 2, 0, (double)i, (double)j, out); /* sizes below 2^53 */
}

static double flops(const lop_node *self, int64_t k) {
    return 2.0 * (double)lop_cols(self->child[0]) * (double)k;
}

/* COO with up to m + n entries. */
static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    int64_t nnz = m && n ? lop_rng_range(&r->rng, 0, m + n) : 0;
    const lop_node *c[3] = {0};
    lop_attr a = {.i = {COO, m, n, 0}};
    lop_status st = lop_rand_vector(r, dt, nnz, &c[0]);
    if (st == LOP_OK) st = lop_rand_index(r, nnz, 0, m ? m : 1, &c[1]);
    if (st == LOP_OK) st = lop_rand_index(r, nnz, 0, n ? n : 1, &c[2]);
    if (st == LOP_OK) st = lop_node_make(r->ctx, &lop_op_sparse, &a, 3, c, NULL, out, r->err);
    for (int i = 0; i < 3; i++) lop_node_unref(c[i]);
    return st;
}

static const lop_node *vjp(lop_vjp *v, const lop_node *self, int child, const lop_node *g) {
    return child ? lop_vjp_unable(v) : lop_vjp_entries(v, g, self, 0);
}

const lop_op lop_op_sparse = {
    LOP_NAMED(sparse),
    .flags = LOP_FLAG_few_entries | LOP_FLAG_scattered | LOP_FLAG_entries | LOP_FLAG_tells |
             LOP_FLAG_cast_whole | LOP_FLAG_indices,
    .title = "Sparse",
    .cls = LOP_OPERATOR,
    .min = 3,
    .max = 3,
    .ints = 3,
    .param = {{"A", LOP_P_FOREIGN, 2, NULL,
               "Any scipy.sparse matrix or array; CSR, CSC and COO are taken without copying."},
              {"data", LOP_P_ARRAY, 1, "None",
               "The numbers, in place of ``A.data`` and in its order, of an A in CSR, CSC or COO; "
               "a LazyArray makes the matrix one. Borrowed."}},
    .doc = {.brief = "A sparse matrix from scipy.sparse, without copying.",
            .extended = "Its data, indices and pointers are borrowed and checked on each call.",
            .cost = "Build: O(1) for CSR, CSC, COO; others are converted once. Product with k "
                    "columns: 2 nnz k flops. Solve: CHOLMOD (scikit-sparse) where definite, or "
                    "SciPy's SuperLU, kept; their flops depend on the fill, then 4 nnz(L) k.",
            .notes = "Sparse @ scipy.sparse is a scipy.sparse array, computed now.",
            .limits = "It is the arrays that its matrix had when it was made, and their "
                      "content now. What SciPy does by putting other arrays in their place "
                      "(resize, new entries, eliminate_zeros) needs a new operator. There are "
                      "no batches. Fewer than 400 rows, or more than a sixteenth of the "
                      "entries not zero, are solved with by LU of the dense form. QR and LU "
                      "factors, and singular values, take the dense form; a Cholesky factor "
                      "takes the rows in the order they have.",
            .example = ">>> import scipy.sparse as sp\n>>> pl.Sparse(sp.csr_array(np.eye(2))) @ "
                       "np.ones(2)\narray([1., 1.])"},
    .infer = infer,
    .vjp = vjp,
    .apply = apply,
    .dense = dense,
    .diagonal = diagonal,
    .element = element,
    .flops = flops,
    .random = random_instance};
