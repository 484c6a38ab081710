/* slices_of_blocks.c: rows and columns that lie in one block of what is block diagonal.
 *
 *     blockdiag(A, B, ...)[r, c]  ->  A[r', c']
 *     (X Y)[r, c]                 ->  X[r, q] Y[q, c]      X[r, :] has numbers in columns q alone
 *     (X^-1)[r, c]                ->  (X[w, w]^-1)[r', c'] X has a block of its own at w
 *
 * and so through sums, multiples and views, beside identities and diagonals. Gradients by the
 * blocks of a BlockDiag read its cotangent so: of a trace of its inverse, -A^-H A^-H at each block.
 * Actions on sums, products and inverses that are block diagonal go block by block, too.
 * Nothing is looked at but how the expression is written; batches and dtypes must be those of the
 * whole. */
#include "slices_of_blocks.h"
#include "expr/properties.h"
#include "ops/projections/projections.h"

enum { ROWS, COLUMNS, DEPTH = 64 };

static int64_t size_of(const lop_node *a, int axis) {
    return axis == ROWS ? lop_rows(a) : lop_cols(a);
}
static int64_t end_of(lop_span s) { return s.start + s.count; }
static bool within(lop_span s, lop_span all) {
    return s.start >= all.start && end_of(s) <= end_of(all);
}
static lop_span both(lop_span a, lop_span b) {
    const int64_t start = a.start < b.start ? a.start : b.start;
    const int64_t end = end_of(a) > end_of(b) ? end_of(a) : end_of(b);
    return (lop_span){start, end - start};
}

/* The block of a BlockDiag that has the span on that axis: where it lies on both. NULL: none. */
static const lop_node *block_with(const lop_node *kind, int axis, lop_span s, lop_span *row,
                                  lop_span *col) {
    *row = *col = (lop_span){0, 0};
    for (int i = 0; i < kind->n; i++) {
        row->count = lop_rows(kind->child[i]);
        col->count = lop_cols(kind->child[i]);
        if (within(s, axis == ROWS ? *row : *col)) return kind->child[i];
        row->start += row->count;
        col->start += col->count;
    }
    return NULL;
}

static bool reach(const lop_node *a, int axis, lop_span s, int depth, lop_span *other);

/* The rows and columns round `s` of a square matrix that have a block of their own. */
static bool block_of_own(const lop_node *a, lop_span s, int depth, lop_span *own) {
    lop_span again;
    if (!lop_is_square(a) || !reach(a, ROWS, s, depth, own)) return false;
    *own = both(*own, s);
    return reach(a, ROWS, *own, depth, &again) && within(again, *own) &&
           reach(a, COLUMNS, *own, depth, &again) && within(again, *own);
}

/* The columns in which the rows `s` have numbers, if that can be told (axis COLUMNS: the rows). */
static bool reach(const lop_node *a, int axis, lop_span s, int depth, lop_span *other) {
    lop_span row, col, mid;
    if (depth == 0) return false;
    if (a->op == &lop_op_identity || a->op == &lop_op_diag) {
        *other = s;
        return lop_is_square(a);
    }
    if (a->op == &lop_op_scaled || a->op == &lop_op_part)
        return reach(a->child[0], axis, s, depth - 1, other);
    if (a->op == &lop_op_view)
        return reach(a->child[0], a->attr.i[0] & LOP_T ? 1 - axis : axis, s, depth - 1, other);
    if (a->op == &lop_op_inverse) return block_of_own(a->child[0], s, depth - 1, other);
    if (a->op == &lop_op_sum) {
        if (!reach(a->child[0], axis, s, depth - 1, &row) ||
            !reach(a->child[1], axis, s, depth - 1, &col))
            return false;
        *other = both(row, col);
        return true;
    }
    if (a->op == &lop_op_prod) {
        const int first = axis == ROWS ? 0 : 1;
        return reach(a->child[first], axis, s, depth - 1, &mid) &&
               reach(a->child[1 - first], axis, mid, depth - 1, other);
    }
    if (a->op != &lop_op_blockdiag || !block_with(a, axis, s, &row, &col)) return false;
    *other = axis == ROWS ? col : row;
    return true;
}

static bool is_all(const lop_node *a, lop_span r, lop_span c) {
    return r.count == lop_rows(a) && c.count == lop_cols(a);
}

/* a[r, c], as it is written. */
static lop_status cut(const lop_maker *mk, const lop_node *a, lop_span r, lop_span c,
                      const lop_node **out) {
    const lop_attr rows = {.i = {ROWS, r.start, 1, r.count}},
                   columns = {.i = {COLUMNS, c.start, 1, c.count}};
    const lop_node *part = NULL;
    lop_status st = LOP_OK;
    if (r.count == size_of(a, ROWS))
        part = lop_node_ref(a);
    else
        st = lop_make1(mk, &lop_op_sliced, &rows, a, &part);
    if (st != LOP_OK) return st;
    if (c.count == size_of(a, COLUMNS)) {
        *out = part;
        return LOP_OK;
    }
    st = lop_make1(mk, &lop_op_sliced, &columns, part, out);
    lop_node_unref(part);
    return st;
}

static lop_status find(const lop_maker *mk, const lop_node *a, lop_span r, lop_span c, int depth,
                       const lop_node **out);

/* a[r, c] by its structure where that says something, else as it is written. */
static lop_status found_or_cut(const lop_maker *mk, const lop_node *a, lop_span r, lop_span c,
                               int depth, const lop_node **out) {
    lop_status st = find(mk, a, r, c, depth, out);
    return st == LOP_NOMATCH ? cut(mk, a, r, c, out) : st;
}

/* a.op of the parts of both operands. */
static lop_status over(const lop_maker *mk, const lop_node *a, lop_span r, lop_span q, lop_span p,
                       lop_span c, int depth, const lop_node **out) {
    const lop_node *x = NULL, *y = NULL;
    lop_status st = found_or_cut(mk, a->child[0], r, q, depth, &x);
    if (st == LOP_OK) st = found_or_cut(mk, a->child[1], p, c, depth, &y);
    if (st == LOP_OK) st = lop_make2(mk, a->op, NULL, x, y, out);
    lop_node_unref(x);
    lop_node_unref(y);
    return st;
}

static lop_status of_sum(const lop_maker *mk, const lop_node *a, lop_span r, lop_span c, int depth,
                         const lop_node **out) {
    lop_span any;
    const bool told =
        reach(a->child[0], ROWS, r, depth, &any) || reach(a->child[1], ROWS, r, depth, &any);
    return told ? over(mk, a, r, c, r, c, depth, out) : LOP_NOMATCH;
}

static lop_status of_product(const lop_maker *mk, const lop_node *a, lop_span r, lop_span c,
                             int depth, const lop_node **out) {
    lop_span q, p;
    const bool left = reach(a->child[0], ROWS, r, depth, &q),
               right = reach(a->child[1], COLUMNS, c, depth, &p);
    if (!left && !right) return LOP_NOMATCH;
    if (!left || (right && p.count < q.count)) q = p;
    return q.count ? over(mk, a, r, q, q, c, depth, out) : LOP_NOMATCH;
}

static lop_status of_inverse(const lop_maker *mk, const lop_node *a, lop_span r, lop_span c,
                             int depth, const lop_node **out) {
    const lop_node *block = NULL, *inverse = NULL;
    lop_span w;
    const bool same = r.start == c.start && r.count == c.count;
    if (!block_of_own(a->child[0], r, depth, &w))
        return same ? lop_block_beside_thin(mk, a, r, out) : LOP_NOMATCH;
    if (!within(c, w) || is_all(a, w, w)) return LOP_NOMATCH;
    lop_status st = found_or_cut(mk, a->child[0], w, w, depth, &block);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_inverse, NULL, block, &inverse);
    if (st == LOP_OK)
        st = cut(mk, inverse, (lop_span){r.start - w.start, r.count},
                 (lop_span){c.start - w.start, c.count}, out);
    lop_node_unref(block);
    lop_node_unref(inverse);
    return st;
}

static lop_status of_blocks(const lop_maker *mk, const lop_node *a, lop_span r, lop_span c,
                            int depth, const lop_node **out) {
    lop_span row, col;
    const lop_node *block = block_with(a, ROWS, r, &row, &col);
    if (!block || !within(c, col) || block->dtype != a->dtype) return LOP_NOMATCH;
    const lop_span at = {r.start - row.start, r.count}, from = {c.start - col.start, c.count};
    return found_or_cut(mk, block, at, from, depth, out);
}

static lop_status seen(const lop_maker *mk, const lop_node *a, lop_span r, lop_span c, int depth,
                       const lop_node **out) {
    const lop_node *part = NULL;
    const bool turn = a->op == &lop_op_view && a->attr.i[0] & LOP_T;
    lop_status st = find(mk, a->child[0], turn ? c : r, turn ? r : c, depth, &part);
    if (st == LOP_OK) st = lop_make1(mk, a->op, &a->attr, part, out);
    lop_node_unref(part);
    return st;
}

/* a[r, c] in fewer rows and columns; NOMATCH. Owned. */
static lop_status find(const lop_maker *mk, const lop_node *a, lop_span r, lop_span c, int depth,
                       const lop_node **out) {
    if (depth == 0 || r.count == 0 || c.count == 0) return LOP_NOMATCH;
    if (is_all(a, r, c)) {
        *out = lop_node_ref(a);
        return LOP_OK;
    }
    if (a->op == &lop_op_scaled || a->op == &lop_op_part || a->op == &lop_op_view)
        return seen(mk, a, r, c, depth - 1, out);
    if (a->op == &lop_op_sum) return of_sum(mk, a, r, c, depth - 1, out);
    if (a->op == &lop_op_prod) return of_product(mk, a, r, c, depth - 1, out);
    if (a->op == &lop_op_inverse) return of_inverse(mk, a, r, c, depth - 1, out);
    if (a->op == &lop_op_blockdiag) return of_blocks(mk, a, r, c, depth - 1, out);
    return LOP_NOMATCH;
}

lop_status lop_slice_of_blocks(const lop_maker *mk, const lop_node *a, lop_span r, lop_span c,
                               const lop_node *whole, const lop_node **out) {
    const lop_node *part = NULL;
    if (!lop_is_blas(whole->dtype)) return LOP_NOMATCH;
    lop_status st = find(mk, a, r, c, DEPTH, &part);
    if (st == LOP_OK && (!lop_shape_equal(&part->shape, &whole->shape) ||
                         part->dtype != whole->dtype || part->weak != whole->weak)) {
        lop_node_unref(part);
        return LOP_NOMATCH;
    }
    *out = part;
    return st;
}

/* A BlockDiag of square blocks in what is written. NULL: none. */
static const lop_node *blocks_within(const lop_node *a, int depth) {
    if (depth == 0) return NULL;
    if (a->op == &lop_op_blockdiag) {
        for (int i = 0; i < a->n; i++)
            if (!lop_is_square(a->child[i])) return NULL;
        return a->n > 1 ? a : NULL;
    }
    if (a->op == &lop_op_scaled || a->op == &lop_op_part || a->op == &lop_op_view ||
        a->op == &lop_op_inverse)
        return blocks_within(a->child[0], depth - 1);
    if (a->op != &lop_op_sum && a->op != &lop_op_prod) return NULL;
    const lop_node *found = blocks_within(a->child[0], depth - 1);
    return found ? found : blocks_within(a->child[1], depth - 1);
}

/* The part of `a` in rows and columns w, where it has a block of its own. Owned. */
static lop_status own_part(const lop_maker *mk, const lop_node *a, lop_span w,
                           const lop_node **out) {
    const lop_node *whole = NULL;
    lop_span own;
    if (!block_of_own(a, w, DEPTH, &own) || !within(own, w)) return LOP_NOMATCH;
    lop_status st = cut(mk, a, w, w, &whole);
    if (st == LOP_OK) st = lop_slice_of_blocks(mk, a, w, w, whole, out);
    lop_node_unref(whole);
    return st;
}

/* Many small blocks beside diagonals are a band, which takes a step where they take some each. */
static bool goes_as_a_band(const lop_node *root, const lop_node *kind) {
    enum { ROWS_OF_FACTORS = 32, ROWS_OF_OTHERS = 8 }; /* of a block, on average; 2026-11-28 */
    const bool factor = root->op == &lop_op_solve || root->op == &lop_op_scaledet;
    return lop_rows(kind) < (factor ? ROWS_OF_FACTORS : ROWS_OF_OTHERS) * kind->n;
}

/* An action on what is block diagonal by how it is written, as on a BlockDiag. */
LOP_BUILD(value_of_blocks) {
    const lop_node *p = m->root->child[0], *all = NULL;
    const lop_node *kind = lop_is_blas(p->dtype) ? blocks_within(p, DEPTH) : NULL;
    const lop_node *root = m->root;
    const bool entries = root->op == &lop_op_entry_sums;
    if (!kind || lop_rows(kind) != lop_rows(p) || !lop_is_square(p)) return LOP_NOMATCH;
    if (entries ? !lop_are_blocks_of(root, kind) : goes_as_a_band(root, kind)) return LOP_NOMATCH;
    const lop_node **part = lop_calloc(mk->ctx, (size_t)kind->n, sizeof *part);
    if (!part) return lop_fail(mk->err, LOP_NOMEM, NULL);
    lop_span w = {0, 0};
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < kind->n; i++, w.start += w.count) {
        w.count = lop_rows(kind->child[i]);
        st = own_part(mk, p, w, &part[i]);
    }
    if (st == LOP_OK) st = lop_make(mk, "blockdiag", NULL, kind->n, part, NULL, &all);
    const lop_node *child[3] = {all, root->child[root->n > 1], root->child[root->n - 1]};
    if (st == LOP_OK) st = lop_make_op(mk, root->op, &root->attr, root->n, child, NULL, out);
    for (int i = 0; i < kind->n; i++) lop_node_unref(part[i]);
    lop_free(mk->ctx, (void *)part);
    lop_node_unref(all);
    return st;
}
