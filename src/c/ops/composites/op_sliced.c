/* op_sliced.c: rows, columns or batch elements of an operator, and the arrays that go with them.
 *
 *   sliced         attr.i = axis, start, step, count: what A[start : : step] takes of an axis; with
 *                  a second child, a vector of int64, what A[index] takes (only attr.i[0] counts
 *                  then). Axis 0 has the rows, 1 the columns, 2 is the last batch dimension, 3 the
 *                  one before. On a batch axis, count -1 takes one element and drops the axis.
 *   array_slice    the same of an array
 *   scatter_slice  the transpose of array_slice along rows: attr.i = rows of the result, start,
 *                  step, count; rows that are not hit are zero, rows that are hit twice are added
 *   diagrun        from a Toeplitz matrix's c and r, the numbers of the diagonals start,
 *                  start + step, ...
 *
 * Cost: one pass over the result. Indices are checked on each call. */
#include "expr/random_instance.h"
#include "kernels/common/kernels.h"

#include <string.h>

/* The dimension an axis names; -1: there is none. */
static int dim_of(const lop_shape *s, int core, int64_t axis) {
    if (axis < 0 || axis > LOP_MAXDIM) return -1;
    int nb = s->ndim - core;
    if (axis < 2) return axis < core ? nb + (int)axis : -1;
    return nb - (int)axis + 1;
}

static bool within(int64_t size, int64_t start, int64_t step, int64_t count) {
    int64_t last;
    if (count == 0) return true;
    if (count < 0 || step == 0 || start < 0 || start >= size) return false;
    if (__builtin_mul_overflow(step, count - 1, &last) || !lop_add_ok(start, last, &last))
        return false;
    return last >= 0 && last < size;
}

static lop_status check_index(const lop_node *n, lop_err *err) {
    const lop_node *index = n->child[1];
    if (index->op->cls == LOP_OPERATOR || index->core != 1 || index->shape.ndim != 1 ||
        index->dtype != LOP_i64 || index->weak)
        return lop_fail(err, LOP_DTYPE, "%s takes a vector of int64 as index", n->op->name);
    return LOP_OK;
}

/* Shape, dtype, core of what is taken. */
static lop_status infer(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0];
    const int64_t *t = n->attr.i;
    int at = dim_of(&a->shape, a->core, t[0]);
    if (at < 0) return lop_fail(err, LOP_DIM, "%s names no axis", n->op->name);
    lop_status st = n->n > 1 ? check_index(n, err) : LOP_OK;
    if (st != LOP_OK) return st;
    int64_t count = n->n > 1 ? lop_cols(n->child[1]) : t[3];
    bool drop = n->n == 1 && count == -1 && t[0] >= 2;
    if (n->n == 1 && !within(a->shape.dim[at], t[1], t[2], drop ? 1 : count))
        return lop_fail(err, LOP_INDEX, "a slice leaves an axis of size %lld",
                        (long long)a->shape.dim[at]);
    n->shape = a->shape;
    n->shape.dim[at] = count;
    for (int i = at; drop && i + 1 < n->shape.ndim; i++) n->shape.dim[i] = n->shape.dim[i + 1];
    n->shape.ndim -= drop;
    n->dtype = a->dtype;
    n->weak = a->weak;
    n->core = a->core;
    return LOP_OK;
}
static lop_status infer_sliced(lop_node *n, lop_err *err) {
    return n->child[0]->op->cls == LOP_OPERATOR
               ? infer(n, err)
               : lop_fail(err, LOP_DIM, "sliced takes an operator");
}

static double flops(const lop_node *self, int64_t k) {
    const lop_node *a = self->child[0];
    return a->op->flops ? a->op->flops(a, k) : 0;
}

/* -- cut */

static char *row(const lop_mat *a, int64_t i) {
    return (char *)a->p + i * a->rs * (int64_t)lop_dtype_size(a->dt);
}

/* y[i] <- x[start + step i], or the way back; steps may be negative, which kernels' strides are
 * not.
 */
static void move(const lop_mat *y, const lop_mat *x, const int64_t *t, bool back) {
    const lop_mat *whole = back ? y : x;
    int64_t m = back ? x->m : y->m;
    if (m == 0 || whole->n == 0) return;
    if (t[2] > 0 || m == 1) {
        lop_mat part = {row(whole, t[1]), m,        whole->n, whole->rs * (m == 1 ? 1 : t[2]),
                        whole->cs,        whole->dt};
        lopk_copy(back ? &part : y, back ? x : &part);
        return;
    }
    size_t size = lop_dtype_size(whole->dt);
    for (int64_t i = 0; i < m; i++) {
        lop_mat to = {row(y, back ? t[1] + t[2] * i : i), 1, y->n, y->rs, y->cs, y->dt},
                from = {row(x, back ? i : t[1] + t[2] * i), 1, x->n, x->rs, x->cs, x->dt};
        if (whole->n == 1)
            memcpy(to.p, from.p, size);
        else
            lopk_copy(&to, &from);
    }
}

static lop_status bad_index(const lop_call *c, lop_status st, int64_t n) {
    const lop_mat *index = c->a[2];
    for (int64_t i = 0; st == LOP_INDEX && i < index->m; i++) {
        int64_t v = ((const int64_t *)index->p)[i * index->rs];
        if (v < 0 || v >= n)
            return lop_fail(c->err, st, "index %lld is out of bounds for axis of size %lld",
                            (long long)v, (long long)n);
    }
    return st;
}

static lop_mat turned(lop_mat a, bool turn) {
    return turn ? (lop_mat){a.p, a.n, a.m, a.cs, a.rs, a.dt} : a;
}

static lop_status run_cut(const lop_call *c) {
    const lop_step *s = c->step;
    lop_mat y = turned(*c->a[0], s->attr.i[0] == 1), x = turned(*c->a[1], s->attr.i[0] == 1);
    if (s->n > 2) return bad_index(c, lopk_take_rows(&y, c->a[2], &x), x.m);
    move(&y, &x, s->attr.i, false);
    return LOP_OK;
}

static lop_status emit_cut(lop_emit *e, const lop_node *self, int in, int64_t axis, int out) {
    int from[2] = {in, self->n > 1 ? lop_emit_value(e, self->child[1]) : -1};
    lop_step *s = lop_emit_step(e, "array_slice", run_cut, out, self->n, from);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->attr.i[0] = axis;
    if (axis == 0) s->flags = LOP_STEP_COLUMNS;
    return LOP_OK;
}

/* A batch axis of length b: the array in C order is L matrices of b x R, of which rows are cut. */
static lop_status lower_cut(lop_emit *e, const lop_node *self, int out) {
    const lop_node *a = self->child[0];
    int in = lop_emit_value(e, a), at = dim_of(&a->shape, a->core, self->attr.i[0]);
    if (self->attr.i[0] < 2) return emit_cut(e, self, in, self->attr.i[0], out);
    int64_t L = 1, R = 1;
    for (int i = 0; i < a->shape.ndim; i++)
        if (i != at && !lop_mul_ok(i < at ? L : R, a->shape.dim[i], i < at ? &L : &R))
            return lop_fail(lop_emit_err(e), LOP_OVERFLOW, NULL);
    int64_t count = self->n > 1 ? lop_cols(self->child[1]) : self->attr.i[3];
    lop_shape tall = {.ndim = 3, .dim = {L, a->shape.dim[at], R}}, few = tall;
    few.dim[1] = count < 0 ? 1 : count;
    lop_status st;
    int x = lop_emit_temp(e, a->dtype, 2, &tall, &st), y = -1;
    if (x >= 0) y = lop_emit_temp(e, a->dtype, 2, &few, &st);
    if (y < 0) return st;
    if (!lop_emit_alias(e, x, in))
        return lop_fail(lop_emit_err(e), LOP_INTERNAL, "array_slice of batches");
    st = emit_cut(e, self, x, 0, y);
    if (st != LOP_OK) return st;
    return lop_emit_alias(e, out, y)
               ? LOP_OK
               : lop_fail(lop_emit_err(e), LOP_INTERNAL, "array_slice of batches");
}

/* -- scatter_slice */

static lop_status infer_putback(lop_node *n, lop_err *err) {
    const lop_node *x = n->child[0];
    const int64_t *t = n->attr.i;
    lop_status st = n->n > 1 ? check_index(n, err) : LOP_OK;
    if (st != LOP_OK) return st;
    int64_t count = n->n > 1 ? lop_cols(n->child[1]) : t[3];
    if (x->core != 2 || t[0] < 0 || lop_rows(x) != count ||
        (n->n == 1 && !within(t[0], t[1], t[2], count)))
        return lop_fail(err, LOP_DIM, "scatter_slice does not fit its operand");
    n->shape = x->shape;
    n->shape.dim[n->shape.ndim - 2] = t[0];
    n->dtype = x->dtype;
    n->weak = x->weak;
    return LOP_OK;
}
static lop_status run_putback(const lop_call *c) {
    if (c->step->n > 2)
        return bad_index(c, lopk_scatter_rows_add(c->a[0], c->a[2], c->a[1]), c->a[0]->m);
    lopk_zero(c->a[0]);
    move(c->a[0], c->a[1], c->step->attr.i, true);
    return LOP_OK;
}
static lop_status lower_putback(lop_emit *e, const lop_node *self, int out) {
    int in[2] = {lop_emit_value(e, self->child[0]),
                 self->n > 1 ? lop_emit_value(e, self->child[1]) : -1};
    lop_step *s = lop_emit_step(e, "scatter_slice", run_putback, out, self->n, in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->flags = LOP_STEP_COLUMNS;
    return LOP_OK;
}

/* -- diagrun */

static lop_status infer_diagrun(lop_node *n, lop_err *err) {
    const lop_node *c = n->child[0], *r = n->child[1];
    const int64_t *t = n->attr.i;
    if (c->core != 1 || r->core != 1) return lop_fail(err, LOP_DIM, "diagrun takes two vectors");
    lop_status st = lop_shape_batch(&c->shape, 1, &r->shape, 1, &n->shape, err);
    if (st != LOP_OK) return st;
    int64_t below = lop_cols(r) > 0 ? lop_cols(r) - 1 : 0, first;
    if (!lop_add_ok(t[0], below, &first) || !within(below + lop_cols(c), first, t[1], t[2]))
        return lop_fail(err, LOP_INDEX, "diagrun leaves the matrix");
    n->shape.dim[n->shape.ndim++] = t[2];
    n->core = 1;
    lop_node_promote(n, c, r);
    return LOP_OK;
}
static lop_status run_diagrun(const lop_call *c) {
    const lop_mat *y = c->a[0], *col = c->a[1], *line = c->a[2];
    const int64_t *t = c->step->attr.i;
    size_t size = lop_dtype_size(y->dt);
    for (int64_t i = 0; i < y->m; i++) {
        int64_t d = t[0] + t[1] * i;
        memcpy(row(y, i), d >= 0 ? row(col, d) : row(line, -d), size);
    }
    return LOP_OK;
}
static lop_status lower_diagrun(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    int in[2];
    for (int i = 0; i < 2; i++) {
        in[i] = lop_emit_cast(e, lop_emit_value(e, self->child[i]), self->dtype, &st);
        if (in[i] < 0) return st;
    }
    lop_step *s = lop_emit_step(e, "diagrun", run_diagrun, out, 2, in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    return LOP_OK;
}

/* -- the tables */

/* Half of the instances are of a matrix that holds its entries, half of one that is only applied.
 */
static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    int64_t axis = (int64_t)(lop_rng_next(&r->rng) % 2), take = axis ? n : m,
            step = lop_rng_next(&r->rng) % 2 ? 1 : -2, all = (take ? take * 2 : 0) + 1;
    const lop_node *a = NULL, *index = NULL;
    const lop_op *of = lop_rng_next(&r->rng) % 2 ? &lop_op_dense : &lop_op_sparse;
    lop_attr attr = {.i = {axis, step > 0 ? all - take : all - 1, step, take}};
    if (take == 0) attr.i[1] = 0;
    lop_status st = of->random(r, axis ? m : all, axis ? all : n, dt, &a);
    if (st == LOP_OK && lop_rng_next(&r->rng) % 2) st = lop_rand_index(r, take, 0, all, &index);
    const lop_node *child[2] = {a, index};
    if (st == LOP_OK)
        st = lop_node_make(r->ctx, &lop_op_sliced, &attr, index ? 2 : 1, child, NULL, out, r->err);
    lop_node_unref(a);
    lop_node_unref(index);
    return st;
}

const lop_op lop_op_sliced = {
    LOP_NAMED(sliced),
    .title = "Sliced",
    .cls = LOP_OPERATOR,
    .min = 1,
    .max = 2,
    .ints = 4,
    .infer = infer_sliced,
    .flops = flops,
    .random = random_instance,
    .doc = {.brief =
                "Rows, columns or batch elements of an operator, from ``op[...]``; ``args`` are "
                "the operator and what was taken."}};
const lop_op lop_op_array_slice = {
    LOP_NAMED(array_slice), .cls = LOP_ARRAY,  .min = 1, .max = 2, .ints = 4,
    .infer = infer,         .lower = lower_cut};
const lop_op lop_op_scatter_slice = {
    LOP_NAMED(scatter_slice), .cls = LOP_ARRAY,      .min = 1, .max = 2, .ints = 4,
    .infer = infer_putback,   .lower = lower_putback};
const lop_op lop_op_diagrun = {
    LOP_NAMED(diagrun),     .cls = LOP_ARRAY,      .min = 2, .max = 2, .ints = 3,
    .infer = infer_diagrun, .lower = lower_diagrun};
