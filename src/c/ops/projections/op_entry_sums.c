/* op_entry_sums.c: sums of entries of an operator at named places: the gradients of sparse
 * matrices, of matrices of blocks and of convolutions by their numbers.
 *
 *   entry_sums        of an operator: for each number of a kind the sum of the entries where it
 *                     stands. attr.i[0]: the kind of places (lop_places), i[3]: dtype
 *                       CSR, CSC, COO  children: index and ptr, or rows and columns; i[1]: which
 *                                      triangle counts (kernels/sparse/k_entry_sums.h)
 *                       blocks         children: twice their size; i[1]: -1 below, 0 on, 1 above
 *                                      the diagonal
 *                       boxes          children: the sizes of the numbers' box and of the
 *                                      columns'; i[1]: LOP_CONV_*
 *   array_entry_sums  of a matrix
 *   pair_entry_sums   of the product of two, child 0 and the last one: not formed
 *   band_entry_sums   of an array of diagonals (band_join); attr.i[2]: the rows, i[3]: which */
#include "projections.h"

#include "kernels/common/kernels.h"
#include "ops/shared/convolution.h"

/* -- how many numbers an m x n matrix has at the places that `child` says */

static lop_status of_sparse(const lop_node *n, const lop_node *const *child, int64_t lines,
                            int64_t *all, lop_err *err) {
    const int64_t *i = n->attr.i;
    for (int k = 0; k < 2; k++)
        if (child[k]->core != 1 || lop_nbatch(child[k]) ||
            (child[k]->dtype != LOP_i32 && child[k]->dtype != LOP_i64))
            return lop_fail(err, LOP_DTYPE, "%s takes vectors of indices", n->op->name);
    *all = lop_cols(child[0]);
    if (i[1] < 0 || i[1] > 4 || lop_cols(child[1]) != (i[0] == LOP_AT_COO ? *all : lines + 1))
        return lop_fail(err, LOP_DIM, "%s: indices of other lengths", n->op->name);
    return LOP_OK;
}
static lop_status of_blocks(const lop_node *n, const lop_node *size, int64_t rows, int64_t cols,
                            int64_t *all, lop_err *err) {
    const int64_t b = size->shape.ndim == 1 ? size->shape.dim[0] : -1, at = n->attr.i[1];
    if (b < 0 || rows != cols || at < -1 || at > 1 || (b > 0 ? rows % b : rows) != 0)
        return lop_fail(err, LOP_DIM, "%s: no such blocks", n->op->name);
    return lop_mul_ok(rows > 0 && at != 0 ? rows - b : rows, b, all)
               ? LOP_OK
               : lop_fail(err, LOP_OVERFLOW, NULL);
}
static lop_status of_boxes(const lop_node *n, const lop_node *const *child, int64_t rows,
                           int64_t cols, int64_t *all, lop_err *err) {
    const int64_t how = n->attr.i[1];
    lopk_conv c;
    int64_t m = 1, k = 1;
    if (n->attr.i[0] != LOP_AT_BOXES || how < 0 || how > LOP_CONV_DIAGONALS ||
        !lop_conv_geometry(how, &child[0]->shape, &child[1]->shape, &c) || c.levels < 1)
        return lop_fail(err, LOP_DIM, "%s: no such places", n->op->name);
    *all = 1;
    for (int64_t l = 0; l < c.levels; l++)
        if (!lop_mul_ok(*all, c.g[l], all) || !lop_mul_ok(m, c.out[l], &m) ||
            !lop_mul_ok(k, c.in[l], &k))
            return lop_fail(err, LOP_OVERFLOW, NULL);
    if (m != rows || k != cols)
        return lop_fail(err, LOP_DIM, "%s: boxes of another shape", n->op->name);
    return LOP_OK;
}
/* The batch is in n->shape: adds the vector of the numbers. */
static lop_status count(lop_node *n, const lop_node *const *child, int64_t rows, int64_t cols,
                        lop_err *err) {
    const int64_t where = n->attr.i[0];
    int64_t all = 0;
    lop_status st;
    if (where >= 0 && where <= LOP_AT_COO)
        st = of_sparse(n, child, where == LOP_AT_CSR ? rows : cols, &all, err);
    else if (child[0]->op != &lop_op_sizes || child[1]->op != &lop_op_sizes)
        st = lop_fail(err, LOP_DIM, "%s takes sizes", n->op->name);
    else if (where == LOP_AT_BLOCKS)
        st = of_blocks(n, child[0], rows, cols, &all, err);
    else
        st = of_boxes(n, child, rows, cols, &all, err);
    if (st != LOP_OK) return st;
    n->shape.dim[n->shape.ndim++] = all;
    n->core = 1;
    return LOP_OK;
}

static lop_status infer_sums(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0];
    lop_status st = lop_projection_dtype(n, err);
    if (st != LOP_OK) return st;
    n->shape = a->shape;
    n->shape.ndim -= 2;
    return count(n, n->child + 1, lop_rows(a), lop_cols(a), err);
}
const lop_op lop_op_entry_sums = {
    LOP_NAMED(entry_sums), .cls = LOP_ACTION, .min = 3, .max = 3, .ints = 4, .infer = infer_sums};

/* Entries: blocks and sparse ones each have their own number, of boxes the fewer of the rows and
 * the columns have one. */
double lop_entry_sums_count(const lop_node *n) {
    const lop_node *a = n->child[0];
    const double all = (double)n->shape.dim[n->shape.ndim - 1];
    if (n->attr.i[0] != LOP_AT_BOXES) return all;
    return all * (double)(lop_rows(a) < lop_cols(a) ? lop_rows(a) : lop_cols(a));
}

/* -- steps */

/* Only int64, so that a plan may keep it. */
typedef struct places_data {
    int64_t kind, m, n, triangle, b, at;
    lopk_conv boxes;
} places_data;
enum { PLACES_INTS = sizeof(places_data) / sizeof(int64_t) };

static lop_status bad_places(const lop_call *c, lop_status st) {
    return st == LOP_INDEX
               ? lop_fail(c->err, st,
                          "a sparse index is out of bounds, or indptr is not increasing")
               : st;
}
static lopk_places places_of(const lop_call *c, int first) {
    const places_data *d = (const places_data *)(const void *)c->step->data;
    lopk_places p = {.kind = (lopk_places_kind)d->kind,
                     .m = d->m,
                     .n = d->n,
                     .b = d->b,
                     .triangle = d->triangle,
                     .at = d->at,
                     .boxes = d->boxes};
    if (p.kind <= LOPK_BY_ENTRIES) {
        p.one = c->a[first];
        p.two = c->a[first + 1];
    }
    return p;
}
static lop_status run_array(const lop_call *c) {
    const lopk_places p = places_of(c, 2);
    return bad_places(c, lopk_entry_sums(c->a[0], &p, c->a[1]));
}
static lop_status run_pair(const lop_call *c) {
    const lopk_places p = places_of(c, 3);
    return bad_places(c, lopk_pair_entry_sums(c->a[0], &p, c->a[1], c->a[2], c->scratch));
}
static lop_status run_band(const lop_call *c) {
    const lopk_places p = places_of(c, 2);
    return bad_places(c, lopk_band_entry_sums(c->a[0], &p, c->a[1], c->step->attr.i[3] & 0xffff));
}

/* A step over the slots in[0 .. count) and those of the places. */
static lop_status emit(lop_emit *e, const lop_node *self, const lop_node *const *at, int64_t m,
                       int64_t n, const char *name, lop_status (*run)(const lop_call *),
                       const int *from, int count, int out, lop_step **made) {
    static const lopk_places_kind kinds[] = {LOPK_BY_ROWS, LOPK_BY_COLUMNS, LOPK_BY_ENTRIES,
                                             LOPK_BLOCKS, LOPK_BOXES};
    const int64_t *i = self->attr.i;
    places_data p = {.kind = kinds[i[0]], .m = m, .n = n};
    int in[4];
    for (int k = 0; k < count; k++) in[k] = from[k];
    if (i[0] <= LOP_AT_COO) {
        p.triangle = i[1];
        for (int k = 0; k < 2; k++) in[count++] = lop_emit_value(e, at[k]);
    } else if (i[0] == LOP_AT_BLOCKS) {
        p.b = at[0]->shape.dim[0];
        p.at = i[1];
    } else {
        (void)lop_conv_geometry(i[1], &at[0]->shape, &at[1]->shape, &p.boxes);
    }
    lop_step *s = lop_emit_step(e, name, run, out, count, in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->flops = lop_entry_sums_count(self);
    *made = s;
    return lop_emit_data(e, (const int64_t *)&p, PLACES_INTS);
}

static lop_status infer_array(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0];
    if (a->core != 2 || !lop_is_blas(a->dtype) || a->weak)
        return lop_fail(err, LOP_DIM, "%s takes a matrix of floats", n->op->name);
    n->shape = a->shape;
    n->shape.ndim -= 2;
    n->dtype = a->dtype;
    return count(n, n->child + 1, lop_rows(a), lop_cols(a), err);
}
static lop_status lower_array(lop_emit *e, const lop_node *self, int out) {
    const lop_node *a = self->child[0];
    const int in = lop_emit_value(e, a);
    lop_step *s;
    return emit(e, self, self->child + 1, lop_rows(a), lop_cols(a), "entry-sums", run_array, &in, 1,
                out, &s);
}
const lop_op lop_op_array_entry_sums = {
    LOP_NAMED(array_entry_sums), .cls = LOP_ARRAY,    .min = 3, .max = 3, .ints = 3,
    .infer = infer_array,        .lower = lower_array};

static lop_status infer_pair(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0], *b = n->child[3];
    if (a->core != 2 || b->core != 2 || lop_cols(a) != lop_rows(b))
        return lop_fail(err, LOP_DIM, "%s takes A and B that multiply", n->op->name);
    lop_status st = lop_shape_batch(&a->shape, 2, &b->shape, 2, &n->shape, err);
    if (st != LOP_OK) return st;
    lop_node_promote(n, a, b);
    if (!lop_is_blas(n->dtype) || n->weak)
        return lop_fail(err, LOP_DTYPE, "%s takes floats", n->op->name);
    return count(n, n->child + 1, lop_rows(a), lop_cols(b), err);
}
static lop_status lower_pair(lop_emit *e, const lop_node *self, int out) {
    const lop_node *a = self->child[0], *b = self->child[3];
    const int64_t m = lop_rows(a), n = lop_cols(b), k = lop_cols(a);
    const size_t scratch = lopk_pair_entry_sums_bytes(m, n, k, self->dtype);
    lop_status st;
    lop_step *s;
    int in[2];
    if (!scratch) return lop_fail(lop_emit_err(e), LOP_OVERFLOW, NULL);
    for (int i = 0; i < 2; i++) {
        in[i] = lop_emit_cast(e, lop_emit_value(e, i ? b : a), self->dtype, &st);
        if (in[i] < 0) return st;
    }
    st = emit(e, self, self->child + 1, m, n, "entry-sums-pair", run_pair, in, 2, out, &s);
    if (st != LOP_OK) return st;
    s->scratch = scratch;
    s->flops *= 2 * (double)k;
    return LOP_OK;
}
const lop_op lop_op_pair_entry_sums = {
    LOP_NAMED(pair_entry_sums), .cls = LOP_ARRAY,   .min = 4, .max = 4, .ints = 3,
    .infer = infer_pair,        .lower = lower_pair};

static lop_status infer_band(lop_node *n, lop_err *err) {
    const lop_node *ab = n->child[0];
    const int64_t l = n->attr.i[3] >> 16, u = n->attr.i[3] & 0xffff;
    if (ab->core != 2 || lop_nbatch(ab) || !lop_is_blas(ab->dtype) || ab->weak || l < 0 ||
        n->attr.i[2] < 0 || lop_cols(ab) != l + u + 1)
        return lop_fail(err, LOP_DIM, "%s takes diagonals", n->op->name);
    n->dtype = ab->dtype;
    return count(n, n->child + 1, n->attr.i[2], lop_rows(ab), err);
}
static lop_status lower_band(lop_emit *e, const lop_node *self, int out) {
    const int in = lop_emit_value(e, self->child[0]);
    lop_step *s;
    return emit(e, self, self->child + 1, self->attr.i[2], lop_rows(self->child[0]),
                "entry-sums-band", run_band, &in, 1, out, &s);
}
const lop_op lop_op_band_entry_sums = {
    LOP_NAMED(band_entry_sums), .cls = LOP_ARRAY,   .min = 3, .max = 3, .ints = 4,
    .infer = infer_band,        .lower = lower_band};

/* -- what slots write */

static const lop_node *sums_at(lop_vjp *v, const lop_node *g, lop_places where, int64_t how,
                               const lop_node *one, const lop_node *two) {
    if (!one || !two || !(g = lop_vjp_real(v, g))) return NULL;
    const lop_attr attr = {.i = {where, how, 0, (int64_t)g->dtype + 1}};
    const lop_node *child[3] = {g, one, two};
    return lop_vjp_over(v, &lop_op_entry_sums, &attr, 3, child);
}
const lop_node *lop_vjp_entries(lop_vjp *v, const lop_node *g, const lop_node *sparse,
                                int64_t triangle) {
    return sums_at(v, g, (lop_places)sparse->attr.i[0], triangle, sparse->child[1],
                   sparse->child[2]);
}
const lop_node *lop_vjp_blocks(lop_vjp *v, const lop_node *g, int64_t b, int64_t at) {
    const lop_node like = {.shape = {.ndim = 1, .dim = {b}}, .dtype = LOP_f64, .weak = LOP_WEAK};
    const lop_node *size = v->st == LOP_OK ? lop_vjp_like(v, &lop_op_sizes, &like) : NULL;
    return g ? sums_at(v, g, LOP_AT_BLOCKS, at, size, size) : NULL;
}
const lop_node *lop_vjp_boxes(lop_vjp *v, const lop_node *g, int64_t how, const lop_node *box,
                              const lop_node *n) {
    return sums_at(v, g, LOP_AT_BOXES, how, box, n);
}
