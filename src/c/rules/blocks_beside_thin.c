/* blocks_beside_thin.c: the blocks on the diagonal of the inverse of what is block diagonal and a
 * low rank, A = B + U C V^H: the cotangents of B's blocks.
 *
 *   blocks of one size   numbers i b^2, ... of their entry sums, all that there are as one array,
 *                        which the rules on inverses of updates take apart and check once
 *   others               (A^-1)[w, w] = (B_w)^-1 - W[w, :] Y[:, w], each checked by itself
 *
 * with W = B^-1 U and Y = S^-1 C V^H B^-1 as in low_rank_inverse_projections.c. */
#include "expr/properties.h"
#include "low_rank_woodbury.h"
#include "ops/projections/projections.h"
#include "slices_of_blocks.h"

enum { ROWS, COLUMNS, BATCH };

/* The block that has rows w: its number. -1: none, or not square ones alone. */
static int block_at(const lop_node *kind, lop_span w) {
    int found = -1;
    for (int64_t i = 0, at = 0; i < kind->n; i++) {
        if (!lop_is_square(kind->child[i])) return -1;
        if (at == w.start && lop_rows(kind->child[i]) == w.count) found = (int)i;
        at += lop_rows(kind->child[i]);
    }
    return found;
}
static bool of_one_size(const lop_node *kind) {
    for (int i = 1; i < kind->n; i++)
        if (lop_rows(kind->child[i]) != lop_rows(kind->child[0])) return false;
    return kind->n > 1;
}

/* A vector as a matrix of one column. Owned. */
static lop_status column_of(const lop_maker *mk, const lop_node *v, const lop_node **out) {
    const lop_node like = {
        .shape = {.ndim = 2, .dim = {lop_cols(v), 1}}, .dtype = v->dtype, .core = 2};
    const lop_node *d = NULL, *ones = NULL;
    lop_status st = lop_make1(mk, &lop_op_diag, NULL, v, &d);
    if (st == LOP_OK) st = lop_make(mk, "ones", NULL, 0, NULL, &like, &ones);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, d, ones, out);
    lop_node_unref(d);
    lop_node_unref(ones);
    return st;
}

/* The blocks of b rows of `a` as one array (n / b, b, b). Owned. */
static lop_status all_blocks(const lop_maker *mk, const lop_node *a, int64_t b,
                             const lop_node **out) {
    const lop_node like = {.shape = {.ndim = 1, .dim = {b}}, .dtype = LOP_f64, .weak = LOP_WEAK};
    const lop_attr how = {.i = {LOP_AT_BLOCKS, 0, 0, (int64_t)a->dtype + 1}},
                   fold = {.i = {lop_rows(a) / b, b, b, 1}};
    const lop_node *size = NULL, *sums = NULL, *column = NULL;
    lop_status st = lop_make(mk, "sizes", NULL, 0, NULL, &like, &size);
    const lop_node *child[3] = {a, size, size};
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_entry_sums, &how, 3, child, NULL, &sums);
    if (st == LOP_OK) st = column_of(mk, sums, &column);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_kron_unfold, &fold, column, out);
    lop_node_unref(size);
    lop_node_unref(sums);
    lop_node_unref(column);
    return st;
}

/* Rows and columns w of an array. Owned. */
static lop_status corner(const lop_maker *mk, const lop_node *array, lop_span w,
                         const lop_node **out) {
    const lop_attr rows = {.i = {ROWS, w.start, 1, w.count}},
                   columns = {.i = {COLUMNS, w.start, 1, w.count}};
    const lop_node *part = NULL;
    lop_status st = lop_make1(mk, &lop_op_array_slice, &rows, array, &part);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_array_slice, &columns, part, out);
    lop_node_unref(part);
    return st;
}

/* W[w, :] Y[:, w]. Owned. */
static lop_status thin_corner(const woodbury *s, lop_span w, const lop_node **out) {
    const lop_attr rows = {.i = {ROWS, w.start, 1, w.count}},
                   columns = {.i = {COLUMNS, w.start, 1, w.count}};
    const lop_node *y = NULL, *left = NULL, *right = NULL, *held = NULL;
    lop_status st = lop_woodbury_left(s, &y);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_array_slice, &rows, s->w->child[0], &left);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_array_slice, &columns, y, &right);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_dense, NULL, left, &held);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_apply, NULL, held, right, out);
    const lop_node *gone[] = {y, left, right, held};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* Block i of A^-1, by itself. Owned. */
static lop_status one_block(const lop_maker *mk, const lop_node *a, lop_dtype dt, int i, lop_span w,
                            const lop_node **out) {
    const lop_node *inverse = NULL, *own = NULL, *low = NULL, *value = NULL, *whole = NULL,
                   *alt = NULL;
    woodbury s = {.mk = mk, .a = a, .p = parts_of(a)};
    s.dt = (lop_attr){.i = {0, 0, 0, (int64_t)dt + 1}};
    lop_status st = lop_woodbury_open(&s);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_inverse, NULL, s.p.base->child[i], &inverse);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &s.dt, inverse, &own);
    if (st == LOP_OK) st = thin_corner(&s, w, &low);
    if (st == LOP_OK) st = lop_build_minus(mk, own, low, &value);
    if (st == LOP_OK) st = lop_inverse_array(mk, a, dt, &whole);
    if (st == LOP_OK) st = corner(mk, whole, w, &alt);
    if (st == LOP_OK) st = lop_woodbury_checked(&s, &lop_op_checked_value, value, alt, out);
    const lop_node *gone[] = {inverse, own, low, value, whole, alt};
    for (size_t k = 0; k < sizeof gone / sizeof gone[0]; k++) lop_node_unref(gone[k]);
    lop_woodbury_close(&s);
    return st;
}

lop_status lop_block_beside_thin(const lop_maker *mk, const lop_node *inverse, lop_span w,
                                 const lop_node **out) {
    const lop_node *a = NULL, *all = NULL, *block = NULL;
    const lop_dtype dt = inverse->dtype;
    if (!lop_is_blas(dt) || lop_nbatch(inverse) > 0 || inverse->weak) return LOP_NOMATCH;
    lop_status st = lop_woodbury_of_sum(mk, dt, inverse->child[0], &a);
    if (st != LOP_OK) return st;
    const lop_node *kind = a->child[0];
    const int i = kind->op == &lop_op_blockdiag ? block_at(kind, w) : -1;
    const lop_attr at = {.i = {BATCH, i, 1, -1}};
    if (i < 0) {
        st = LOP_NOMATCH;
    } else if (of_one_size(kind)) {
        st = all_blocks(mk, inverse, w.count, &all);
        if (st == LOP_OK) st = lop_make1(mk, &lop_op_array_slice, &at, all, &block);
    } else {
        st = one_block(mk, a, dt, i, w, &block);
    }
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_dense, NULL, block, out);
    lop_node_unref(a);
    lop_node_unref(all);
    lop_node_unref(block);
    return st;
}

/* An array (n / b, b, b) as a vector. Owned. */
static lop_status raveled(const lop_maker *mk, const lop_node *pile, const lop_node **out) {
    const int64_t b = lop_cols(pile);
    const lop_attr fold = {.i = {pile->shape.dim[0], b, 1, b}}, both = {.i = {2, 0, 0, 0}};
    const lop_node *rows = NULL;
    lop_status st = lop_make1(mk, &lop_op_kron_fold, &fold, pile, &rows);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_ravel, &both, rows, out);
    lop_node_unref(rows);
    return st;
}

/* The blocks of a BlockDiag of square blocks of that size, one after the other, in `dt`. Owned. */
static lop_status pile_of(const lop_maker *mk, const lop_node *kind, bool inverse, lop_dtype dt,
                          const lop_node **out) {
    const lop_attr dense = {.i = {0, 0, 0, (int64_t)dt + 1}};
    const lop_node **part = lop_calloc(mk->ctx, (size_t)kind->n, sizeof *part), *pile = NULL;
    lop_status st = part ? LOP_OK : lop_fail(mk->err, LOP_NOMEM, NULL);
    for (int i = 0; st == LOP_OK && i < kind->n; i++) {
        const lop_node *own = NULL;
        if (inverse) st = lop_make1(mk, &lop_op_inverse, NULL, kind->child[i], &own);
        if (st == LOP_OK)
            st = lop_make1(mk, &lop_op_todense, &dense, own ? own : kind->child[i], &part[i]);
        lop_node_unref(own);
    }
    if (st == LOP_OK) st = lop_make(mk, "cholesky_batch", NULL, kind->n, part, NULL, &pile);
    if (st == LOP_OK) st = raveled(mk, pile, out);
    for (int i = 0; part && i < kind->n; i++) lop_node_unref(part[i]);
    lop_free(mk->ctx, (void *)part);
    lop_node_unref(pile);
    return st;
}

bool lop_are_blocks_of(const lop_node *sums, const lop_node *kind) {
    return sums->attr.i[0] == LOP_AT_BLOCKS && !sums->attr.i[1] && of_one_size(kind) &&
           lop_is_square(kind->child[0]) && lop_rows(kind->child[0]) == lop_cols(sums->child[1]);
}

/* The blocks on the diagonal of a BlockDiag, or of its inverse. */
LOP_BUILD(entries_blocks) {
    const lop_node *top = m->root->child[0];
    const bool inverse = top->op == &lop_op_inverse;
    const lop_node *kind = inverse ? top->child[0] : top, *batch = NULL;
    if (!lop_is_blas(m->root->dtype) || lop_nbatch(kind) > 0 || !lop_are_blocks_of(m->root, kind))
        return LOP_NOMATCH;
    if (block_at(kind, (lop_span){0, lop_rows(kind->child[0])}) != 0) return LOP_NOMATCH;
    lop_status st = lop_blocks_alike_array(m, mk, &batch);
    if (st == LOP_OK) st = raveled(mk, batch, out);
    lop_node_unref(batch);
    return st == LOP_NOMATCH ? pile_of(mk, kind, inverse, m->root->dtype, out) : st;
}
