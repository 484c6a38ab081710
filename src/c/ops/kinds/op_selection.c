/* op_selection.c: rows of the identity, S x = x[index].
 *
 * Storage: the index vector, checked on each call; negative indices count from the end as NumPy's.
 * S^T adds rows back where they came from. Cost: m k copies. attr.i[0] = n, i[1] weakness, i[2]
 * dtype. */
#include "expr/random_instance.h"
#include "kernels/common/kernels.h"

static lop_status infer(lop_node *n, lop_err *err) {
    const lop_node *index = n->child[0];
    if (index->op->cls == LOP_OPERATOR || index->core != 1 ||
        lop_dtype_family(index->dtype) == 'f' || lop_is_complex(index->dtype))
        return lop_fail(err, LOP_DTYPE, "selection takes a vector of integers");
    if (n->attr.i[0] < 0 || n->attr.i[1] < 0 || n->attr.i[1] > LOP_WEAK_COMPLEX ||
        n->attr.i[2] < 0 || n->attr.i[2] >= LOP_NDTYPE)
        return lop_fail(err, LOP_DIM, "a size cannot be negative");
    if (index->shape.ndim + 1 > LOP_MAXDIM)
        return lop_fail(err, LOP_DIM, "more than %d dimensions", LOP_MAXDIM);
    n->shape = index->shape;
    n->shape.dim[n->shape.ndim++] = n->attr.i[0];
    n->weak = (uint8_t)n->attr.i[1];
    n->dtype = n->weak ? LOP_f64 : (lop_dtype)n->attr.i[2];
    return LOP_OK;
}

/* The index in scratch, wrapped; out of bounds stays so and is found by the kernel. */
static lop_mat wrapped(const lop_call *c, int64_t n) {
    const lop_mat *in = c->a[2];
    int64_t *index = c->scratch;
    for (int64_t i = 0; i < in->m; i++) {
        int64_t v = ((const int64_t *)in->p)[i * in->rs];
        index[i] = v < 0 ? v + n : v;
    }
    return (lop_mat){index, in->m, 1, 1, 1, LOP_i64};
}

static lop_status run(const lop_call *c) {
    bool back = (c->step->attr.i[0] & LOP_T) != 0;
    int64_t n = back ? c->a[0]->m : c->a[1]->m;
    lop_mat index = wrapped(c, n);
    lop_status st = back ? lopk_scatter_rows_add(c->a[0], &index, c->a[1])
                         : lopk_take_rows(c->a[0], &index, c->a[1]);
    if (st != LOP_INDEX) return st;
    for (int64_t i = 0; i < index.m; i++) {
        int64_t v = ((const int64_t *)index.p)[i];
        if (v < 0 || v >= n)
            return lop_fail(c->err, st,
                            "index %lld at position %lld is out of bounds for size %lld",
                            (long long)((const int64_t *)c->a[2]->p)[i * c->a[2]->rs], (long long)i,
                            (long long)n);
    }
    return st;
}

static lop_status apply(lop_emit *e, const lop_node *self, lop_mode mode, int x, int out) {
    lop_status st;
    int in[2] = {x, lop_emit_cast(e, lop_emit_value(e, self->child[0]), LOP_i64, &st)};
    if (in[1] < 0) return st;
    lop_step *s = lop_emit_step(e, mode & LOP_T ? "scatter" : "take", run, out, 2, in);
    if (!s) return LOP_NOMEM;
    s->attr.i[0] = mode;
    s->scratch = (size_t)lop_rows(self) * sizeof(int64_t);
    s->flags = LOP_STEP_COLUMNS;
    return LOP_OK;
}

/* Entry (i, j) is 1 where index[i] is j. */
static lop_status run_diagonal(const lop_call *c) {
    const lop_mat *y = c->a[0], *index = c->a[1];
    int64_t k = c->step->attr.i[0], n = c->step->attr.i[1], size = (int64_t)lop_dtype_size(y->dt);
    for (int64_t t = 0; t < y->m; t++) {
        int64_t i = t + (k < 0 ? -k : 0), j = t + (k > 0 ? k : 0);
        int64_t v = ((const int64_t *)index->p)[i * index->rs];
        if (v < -n || v >= n)
            return lop_fail(c->err, LOP_INDEX,
                            "index %lld at position %lld is out of bounds for size %lld",
                            (long long)v, (long long)i, (long long)n);
        lop_set(y->dt, (char *)y->p + t * y->rs * size, 0, (v < 0 ? v + n : v) == j);
    }
    return LOP_OK;
}
static lop_status diagonal(lop_emit *e, const lop_node *self, int64_t k, int out) {
    lop_status st;
    int in = lop_emit_cast(e, lop_emit_value(e, self->child[0]), LOP_i64, &st);
    if (in < 0) return st;
    lop_step *s = lop_emit_step(e, "hits", run_diagonal, out, 1, &in);
    if (!s) return LOP_NOMEM;
    s->attr.i[0] = k;
    s->attr.i[1] = self->attr.i[0];
    return LOP_OK;
}

static double flops(const lop_node *self, int64_t k) {
    (void)self;
    (void)k;
    return 0;
}

static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    if (n == 0 && m > 0) return LOP_UNABLE;
    const lop_node *index;
    lop_status st = lop_rand_index(r, m, -n, n ? n : 1, &index);
    if (st != LOP_OK) return st;
    lop_attr a = {.i = {n, 0, (int64_t)dt, 0}};
    st = lop_node_make(r->ctx, &lop_op_selection, &a, 1, &index, NULL, out, r->err);
    lop_node_unref(index);
    return st;
}

const lop_op lop_op_selection = {
    LOP_NAMED(selection),
    .flags = LOP_FLAG_few_entries | LOP_FLAG_one_entry | LOP_FLAG_entries | LOP_FLAG_cast_whole |
             LOP_FLAG_indices | LOP_FLAG_sliced_at_once,
    .title = "Selection",
    .cls = LOP_OPERATOR,
    .min = 1,
    .max = 1,
    .ints = 3,
    .param = {{"index", LOP_P_INDEX, 1, NULL,
               "Which rows, shape (..., m), integers; negative ones count from the end. Borrowed."},
              {"n", LOP_P_INT, 0, NULL, "How many rows there are to choose from."},
              {"dtype", LOP_P_DTYPE, 0, "None",
               "Data type; None adopts that of whatever it meets (float64 alone)."}},
    .doc =
        {.brief = "Rows of the identity: ``S @ x`` is ``x[index]``.",
         .extended =
             "``S.T @ y`` puts rows back (repeated indices add); ``S @ A @ S.T`` is the submatrix.",
         .cost = "Build: O(1). Product with k columns: m k copies.",
         .notes = "Every index is checked on each call: IndexError.",
         .example = ">>> pl.Selection([0, -1], 4) @ np.arange(4.)\narray([0., 3.])"},
    .infer = infer,
    .apply = apply,
    .diagonal = diagonal,
    .flops = flops,
    .random = random_instance};
