/* op_array_blocks.c: arrays cut from blocks and joined from blocks.
 *
 *   slice   attr.i = row, rows, column, columns: that block of a matrix; without a copy where the
 *           block can be read where it lies
 *   grid    attr.i = r, c: the r c children, row by row, side by side (vectors: c = 1); children
 *           that nobody else has placed are computed in place
 *   blocks  the children along the diagonal, zeros elsewhere */
#include "expr/op.h"
#include "kernels/common/kernels.h"

#include <string.h>

static lop_mat block_of(const lop_mat *a, int64_t row, int64_t col, int64_t m, int64_t n) {
    char *p = a->p;
    if (m > 0 && n > 0) p += (row * a->rs + col * a->cs) * (int64_t)lop_dtype_size(a->dt);
    return (lop_mat){p, m, n, a->rs, a->cs, a->dt};
}

/* -- slice */

static lop_status infer_slice(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0];
    const int64_t *at = n->attr.i;
    int64_t bottom, right;
    if (a->core != 2) return lop_fail(err, LOP_DIM, "slice takes a matrix");
    if (at[0] < 0 || at[1] < 0 || at[2] < 0 || at[3] < 0 || !lop_add_ok(at[0], at[1], &bottom) ||
        !lop_add_ok(at[2], at[3], &right) || bottom > lop_rows(a) || right > lop_cols(a))
        return lop_fail(err, LOP_INDEX, "a block of %lld x %lld at (%lld, %lld) lies outside",
                        (long long)at[1], (long long)at[3], (long long)at[0], (long long)at[2]);
    n->shape = a->shape;
    n->shape.dim[n->shape.ndim - 2] = at[1];
    n->shape.dim[n->shape.ndim - 1] = at[3];
    n->dtype = a->dtype;
    n->weak = a->weak;
    return LOP_OK;
}
static lop_status run_slice(const lop_call *c) {
    const int64_t *at = c->step->attr.i;
    lop_mat from = block_of(c->a[1], at[0], at[2], at[1], at[3]);
    lopk_copy(c->a[0], &from);
    return LOP_OK;
}
static lop_status lower_slice(lop_emit *e, const lop_node *self, int out) {
    int in = lop_emit_value(e, self->child[0]);
    const bool rows = self->attr.i[3] == lop_cols(self->child[0]); /* in C order with the whole */
    if (rows && lop_emit_part(e, out, in, self->attr.i[0], self->attr.i[2])) return LOP_OK;
    lop_step *s = lop_emit_step(e, "slice", run_slice, out, 1, &in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    lop_emit_seen(e, out, in, self->attr.i[0], self->attr.i[2]);
    return LOP_OK;
}
const lop_op lop_op_slice = {
    LOP_NAMED(slice),     .cls = LOP_ARRAY,    .min = 1, .max = 1, .ints = 4,
    .infer = infer_slice, .lower = lower_slice};

/* -- grid, blocks */

static int64_t width(const lop_node *a) { return a->core == 2 ? lop_cols(a) : 1; }
static int64_t height(const lop_node *a) { return a->shape.dim[lop_nbatch(a)]; }

/* Batch and dtype of all children, which have one core. */
static lop_status join(lop_node *n, lop_err *err) {
    n->core = n->child[0]->core;
    for (int i = 0; i < n->n; i++)
        if (n->child[i]->core != n->core || n->core < 1)
            return lop_fail(err, LOP_DIM, "%s takes vectors or matrices", n->op->name);
    return lop_node_batches(n, n->core, err);
}

static lop_status infer_grid(lop_node *n, lop_err *err) {
    int64_t r = n->attr.i[0], c = n->attr.i[1], rows = 0, cols = 0, all;
    if (r < 1 || c < 1 || !lop_mul_ok(r, c, &all) || all != n->n)
        return lop_fail(err, LOP_DIM, "a grid has r c children, got %d", n->n);
    lop_status st = join(n, err);
    if (st != LOP_OK) return st;
    bool fits = n->core == 2 || c == 1, ok = true;
    for (int64_t i = 0; i < r; i++) ok = ok && lop_add_ok(rows, height(n->child[i * c]), &rows);
    for (int64_t j = 0; j < c; j++) ok = ok && lop_add_ok(cols, width(n->child[j]), &cols);
    for (int64_t i = 0; i < all; i++)
        fits = fits && height(n->child[i]) == height(n->child[i / c * c]) &&
               width(n->child[i]) == width(n->child[i % c]);
    if (!fits) return lop_fail(err, LOP_DIM, "the blocks of a grid do not fit");
    if (!ok) return lop_fail(err, LOP_OVERFLOW, NULL);
    n->shape.dim[n->shape.ndim++] = rows;
    if (n->core == 2) n->shape.dim[n->shape.ndim++] = cols;
    return LOP_OK;
}

static lop_status infer_blocks(lop_node *n, lop_err *err) {
    int64_t rows = 0, cols = 0;
    lop_status st = join(n, err);
    if (st != LOP_OK) return st;
    if (n->core != 2) return lop_fail(err, LOP_DIM, "blocks takes matrices");
    for (int i = 0; i < n->n; i++)
        if (!lop_add_ok(rows, height(n->child[i]), &rows) ||
            !lop_add_ok(cols, width(n->child[i]), &cols))
            return lop_fail(err, LOP_OVERFLOW, NULL);
    n->shape.dim[n->shape.ndim++] = rows;
    n->shape.dim[n->shape.ndim++] = cols;
    return LOP_OK;
}

static lop_status run_zero(const lop_call *c) {
    lopk_zero(c->a[0]);
    return LOP_OK;
}
static lop_status run_place(const lop_call *c) {
    const int64_t *at = c->step->attr.i;
    lop_mat to = block_of(c->a[0], at[0], at[1], c->a[1]->m, c->a[1]->n);
    lopk_copy(&to, c->a[1]);
    return LOP_OK;
}

static lop_status lower_all(lop_emit *e, const lop_node *self, int out) {
    bool grid = self->op == &lop_op_grid;
    int64_t row = 0, col = 0;
    if (!grid && !lop_emit_step(e, "zero", run_zero, out, 0, NULL)) return LOP_NOMEM;
    for (int i = 0; i < self->n; i++) {
        const lop_node *a = self->child[i];
        lop_status st;
        int in = lop_emit_cast(e, lop_emit_value(e, a), self->dtype, &st);
        if (in < 0) return st;
        if (!grid || !lop_emit_part(e, in, out, row, col)) {
            lop_step *s = lop_emit_step(e, "place", run_place, out, 1, &in);
            if (!s) return LOP_NOMEM;
            s->attr.i[0] = row;
            s->attr.i[1] = col;
            s->flags = LOP_STEP_PLACES;
        }
        bool last = !grid || (i + 1) % self->attr.i[1] == 0;
        col = grid && last ? 0 : col + width(a);
        if (last) row += height(a);
    }
    return LOP_OK;
}
const lop_op lop_op_grid = {LOP_NAMED(grid), .cls = LOP_ARRAY,    .min = 1,          .max = -1,
                            .ints = 2,       .infer = infer_grid, .lower = lower_all};
const lop_op lop_op_blocks = {LOP_NAMED(blocks), .cls = LOP_ARRAY,      .min = 1,
                              .max = -1,         .infer = infer_blocks, .lower = lower_all};

/* blocks_of_rows: child a, (g m) x n: its m rows each, one matrix after the other, along the
 * diagonal of (g m) x (g n); attr.i[0] is g. */
static lop_status infer_of_rows(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0];
    const int64_t g = n->attr.i[0];
    int64_t columns;
    if (a->core != 2 || g < 1 || lop_rows(a) % g)
        return lop_fail(err, LOP_DIM, "blocks_of_rows takes matrices one after the other");
    if (!lop_mul_ok(lop_cols(a), g, &columns)) return lop_fail(err, LOP_OVERFLOW, NULL);
    n->shape = a->shape;
    n->shape.dim[n->shape.ndim - 1] = columns;
    n->core = 2;
    n->dtype = a->dtype;
    return LOP_OK;
}
static lop_status run_of_rows(const lop_call *c) {
    const lop_mat *y = c->a[0], *a = c->a[1];
    const int64_t g = c->step->attr.i[0], m = a->m / g, size = (int64_t)lop_dtype_size(y->dt);
    lopk_zero(y);
    for (int64_t i = 0; i < g && m > 0 && a->n > 0; i++) {
        const lop_mat from = {(char *)a->p + i * m * a->rs * size, m, a->n, a->rs, a->cs, a->dt},
                      to = {(char *)y->p + (i * m * y->rs + i * a->n * y->cs) * size,
                            m,
                            a->n,
                            y->rs,
                            y->cs,
                            y->dt};
        lopk_copy(&to, &from);
    }
    return LOP_OK;
}
static lop_status lower_of_rows(lop_emit *e, const lop_node *self, int out) {
    const int in = lop_emit_value(e, self->child[0]);
    lop_step *s = lop_emit_step(e, "blocks", run_of_rows, out, 1, &in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    return LOP_OK;
}
const lop_op lop_op_blocks_of_rows = {
    LOP_NAMED(blocks_of_rows), .cls = LOP_ARRAY,      .min = 1, .max = 1, .ints = 1,
    .infer = infer_of_rows,    .lower = lower_of_rows};
