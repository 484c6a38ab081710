/* blocks.c: computed right sides for BlockDiag and Block: block by block.
 *
 * Both are lists of blocks at places; a cursor walks them. A block that is Zeros is passed over. */
#include "builds.h"
#include "expr/coefficients.h"
#include "rewrite/guards.h"

#define HOLE(m, c) ((m)->node[(c) - 'a'])
#define ATTR(m, c) ((m)->attr[(c) - 'a'])

/* -- lists of owned nodes */

typedef struct list {
    lop_ctx *ctx;
    const lop_node **at;
    int n, room;
} list;

static lop_status list_open(list *l, const lop_maker *mk, int room) {
    *l = (list){.ctx = mk->ctx, .room = room};
    l->at = lop_calloc(mk->ctx, (size_t)room, sizeof *l->at);
    return l->at ? LOP_OK : lop_fail(mk->err, LOP_NOMEM, NULL);
}
static void list_close(list *l) {
    for (int i = 0; i < l->n; i++) lop_node_unref(l->at[i]);
    lop_free(l->ctx, (void *)l->at);
}
/* Keeps `node` (taken over) when st says so; there is room. */
static lop_status list_add(list *l, lop_status st, const lop_node *node) {
    LOP_ASSERT(l->n < l->room);
    if (st == LOP_OK) l->at[l->n++] = node;
    return st;
}
static lop_status list_make(const list *l, const lop_maker *mk, const lop_op *op,
                            const lop_attr *attr, const lop_node **out) {
    return lop_make(mk, op->name, attr, l->n, l->at, NULL, out);
}
/* grid of the list: r rows. */
static lop_status list_grid(const list *l, const lop_maker *mk, int64_t r, const lop_node **out) {
    lop_attr shape = {.i = {r, l->n / r, 0, 0}};
    return list_make(l, mk, &lop_op_grid, &shape, out);
}

/* -- where blocks lie */

typedef struct cursor {
    const lop_node *kind, *block; /* block NULL: at the end */
    int i;
    int64_t row, col;
} cursor;

static void seek(cursor *c) { c->block = c->i < c->kind->n ? c->kind->child[c->i] : NULL; }
static cursor first_block(const lop_node *kind) {
    cursor c = {.kind = kind};
    seek(&c);
    return c;
}
static void next_block(cursor *c) {
    bool grid = c->kind->op == &lop_op_block;
    bool last = grid && (c->i + 1) % c->kind->attr.i[1] == 0;
    if (!grid || last) c->row += lop_rows(c->block);
    c->col = last ? 0 : c->col + lop_cols(c->block);
    c->i++;
    seek(c);
}

static bool passed_over(const lop_node *block) {
    return block->op == &lop_op_zeros && lop_nbatch(block) == 0;
}

/* Zeros of the kind's batch and m x n, in the root's dtype. */
static lop_status nothing(const lop_match *m, const lop_maker *mk, bool batch, int64_t rows,
                          int64_t cols, const lop_node **out) {
    lop_node like = {.dtype = m->root->dtype, .core = 2};
    if (batch) {
        like.shape = m->root->child[0]->shape;
        like.shape.ndim -= 2;
    }
    like.shape.dim[like.shape.ndim++] = rows;
    like.shape.dim[like.shape.ndim++] = cols;
    return lop_make(mk, "zeros", NULL, 0, NULL, &like, out);
}
static lop_status value_of_nothing(const lop_match *m, const lop_maker *mk, const lop_op *what,
                                   bool batch, int64_t rows, int64_t cols, const lop_node **out) {
    const lop_node *zeros;
    lop_attr d = {.i = {0, 0, 0, (int64_t)m->root->dtype + 1}};
    lop_status st = nothing(m, mk, batch, rows, cols, &zeros);
    if (st != LOP_OK) return st;
    st = lop_make1(mk, what, &d, zeros, out);
    lop_node_unref(zeros);
    return st;
}

/* x in the root's dtype, and its rows from `row` on. */
/* None where it changes nothing: of blocks within blocks the innermost would have one a level. */
static lop_status cast_x(const lop_match *m, const lop_maker *mk, const lop_node **out) {
    const lop_node *x = HOLE(m, 'x');
    lop_attr d = {.i = {1, 0, 0, (int64_t)m->root->dtype + 1}};
    if (x->dtype != m->root->dtype || x->weak) return lop_make1(mk, &lop_op_cast, &d, x, out);
    *out = lop_node_ref(x);
    return LOP_OK;
}
static lop_status rows_of(const lop_maker *mk, const lop_node *x, int64_t row, int64_t count,
                          const lop_node **out) {
    lop_attr at = {.i = {row, count, 0, lop_cols(x)}};
    if (count == lop_rows(x)) {
        *out = lop_node_ref(x);
        return LOP_OK;
    }
    return lop_make1(mk, &lop_op_slice, &at, x, out);
}

/* what(block, rows of x): a product or a solve. */
static lop_status on_rows(const lop_maker *mk, const lop_op *what, const lop_node *block,
                          const lop_node *x, int64_t row, const lop_node **out) {
    const lop_node *part;
    int64_t count = what == &lop_op_solve ? lop_rows(block) : lop_cols(block);
    lop_status st = rows_of(mk, x, row, count, &part);
    if (st != LOP_OK) return st;
    st = lop_make2(mk, what, NULL, block, part, out);
    lop_node_unref(part);
    return st;
}

/* -- BlockDiag */

/* A Dense or a view of one, of the floats of the product, no triangle alone: its mode, else -1. */
static int64_t plain_mode(const lop_node *block, lop_dtype dt) {
    const bool seen = block->op == &lop_op_view;
    const lop_node *a = seen ? block->child[0] : block;
    if (a->op != &lop_op_dense || a->shape.ndim != 2 || a->dtype != dt || a->weak ||
        !lop_is_blas(dt) || a->attr.i[0] == LOP_ASSUME_LOWER || a->attr.i[0] == LOP_ASSUME_UPPER)
        return -1;
    return seen ? block->attr.i[0] : LOP_N;
}

/* How many blocks from *c on are plain, of one mode, as many as one step takes; *c moves on. */
static int run_of(cursor *c, lop_dtype dt) {
    const int64_t mode = c->block ? plain_mode(c->block, dt) : -1;
    int many = 0;
    while (c->block && mode >= 0 && many < LOP_MAXARG - 2 && plain_mode(c->block, dt) == mode) {
        many++;
        next_block(c);
    }
    return many;
}

/* The product of `many` plain blocks from `from` on, `to` the one behind them. */
static lop_status products_of(const lop_maker *mk, const cursor *from, const cursor *to, int many,
                              const lop_node *x, const lop_node **out) {
    const lop_node *child[LOP_MAXARG - 1], *rows = NULL;
    const lop_attr mode = {.i = {plain_mode(from->block, x->dtype), 0, 0, 0}};
    lop_status st = rows_of(mk, x, from->col, to->col - from->col, &rows);
    if (st != LOP_OK) return st;
    child[0] = rows;
    for (int i = 0; i < many; i++) {
        const lop_node *block = from->kind->child[from->i + i];
        child[i + 1] = (block->op == &lop_op_view ? block->child[0] : block)->child[0];
    }
    st = lop_make_op(mk, &lop_op_block_products, &mode, many + 1, child, NULL, out);
    lop_node_unref(rows);
    return st;
}

/* Are all blocks one multiple, c A_i with the same c? */
static bool is_one_multiple(const lop_maker *mk, const lop_node *kind) {
    const lop_node *first = kind->child[0];
    for (int i = 0; i < kind->n; i++) {
        const lop_node *a = kind->child[i];
        if (a->op != &lop_op_scaled || a->dtype != first->dtype) return false;
        if (a->attr.num != first->attr.num) return false; /* no condition for each block */
        if (!lop_coef_same(mk->ctx, lop_coef_of(&a->attr), lop_coef_of(&first->attr))) return false;
    }
    return true;
}

/* c (blockdiag(A, B, ...) x). */
static lop_status multiple_of_blocks(const lop_match *m, const lop_maker *mk,
                                     const lop_node **out) {
    const lop_node *kind = m->root->child[0], *inner = NULL, *y = NULL;
    const lop_node **at = lop_calloc(mk->ctx, (size_t)kind->n, sizeof *at);
    if (!at) return lop_fail(mk->err, LOP_NOMEM, NULL);
    for (int i = 0; i < kind->n; i++) at[i] = kind->child[i]->child[0];
    lop_status st = lop_make(mk, "blockdiag", NULL, kind->n, at, NULL, &inner);
    lop_free(mk->ctx, (void *)at);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, inner, HOLE(m, 'x'), &y);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &kind->child[0]->attr, y, out);
    lop_node_unref(inner);
    lop_node_unref(y);
    return st;
}

/* The product of a blockdiag with a matrix, in as few steps as there can be. */
LOP_BUILD(blockdiag_times) {
    enum { FEWEST = 4 };
    const lop_node *kind = m->root->child[0], *x = NULL;
    list l;
    if (kind->n >= FEWEST && is_one_multiple(mk, kind)) return multiple_of_blocks(m, mk, out);
    if (m->root->shape.ndim != 2 || kind->n < FEWEST ||
        plain_mode(kind->child[0], m->root->dtype) < 0)
        return LOP_NOMATCH;
    lop_status st = list_open(&l, mk, kind->n);
    if (st == LOP_OK) st = cast_x(m, mk, &x);
    for (cursor c = first_block(kind); st == LOP_OK && c.block;) {
        const cursor from = c;
        const lop_node *y = NULL;
        const int many = run_of(&c, m->root->dtype);
        if (many > 1) {
            st = products_of(mk, &from, &c, many, x, &y);
        } else {
            st = on_rows(mk, &lop_op_apply, from.block, x, from.col, &y);
            if (many == 0) next_block(&c);
        }
        st = list_add(&l, st, y);
    }
    if (st == LOP_OK) st = list_grid(&l, mk, l.n, out);
    lop_node_unref(x);
    list_close(&l);
    return st;
}

/* apply and solve of a blockdiag. */
LOP_BUILD(blockdiag_rows) {
    const lop_node *kind = m->root->child[0], *x = NULL;
    bool solve = m->root->op == &lop_op_solve;
    list l;
    lop_status st = list_open(&l, mk, kind->n);
    if (st == LOP_OK) st = cast_x(m, mk, &x);
    for (cursor c = first_block(kind); st == LOP_OK && c.block; next_block(&c)) {
        const lop_node *y = NULL;
        st = on_rows(mk, m->root->op, c.block, x, solve ? c.row : c.col, &y);
        st = list_add(&l, st, y);
    }
    if (st == LOP_OK) st = list_grid(&l, mk, l.n, out);
    lop_node_unref(x);
    list_close(&l);
    return st;
}

/* An action on the inverse of a blockdiag: on the inverses of its blocks. */
LOP_BUILD(inverse_blocks) {
    const lop_node *kind = m->root->child[0]->child[0], *blocks = NULL;
    list l;
    lop_status st = lop_inverse_alike(m, mk, out);
    if (st != LOP_NOMATCH) return st;
    st = list_open(&l, mk, kind->n);
    for (int i = 0; st == LOP_OK && i < kind->n; i++) {
        const lop_node *one = NULL;
        st = lop_make1(mk, &lop_op_inverse, NULL, kind->child[i], &one);
        st = list_add(&l, st, one);
    }
    if (st == LOP_OK) st = list_make(&l, mk, &lop_op_blockdiag, NULL, &blocks);
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, blocks, out);
    lop_node_unref(blocks);
    list_close(&l);
    return st;
}

/* What a BlockDiag of inverses is the inverse of. Owned. */
static lop_status inverted(const lop_maker *mk, const lop_node *kind, const lop_node **out) {
    list l;
    lop_status st = list_open(&l, mk, kind->n);
    for (int i = 0; st == LOP_OK && i < kind->n; i++) {
        const lop_node *b = kind->child[i], *one = NULL;
        if (b->op == &lop_op_view) /* (A^-1)^T = (A^T)^-1 */
            st = lop_make1(mk, &lop_op_view, &b->attr, b->child[0]->child[0], &one);
        else
            one = lop_node_ref(b->child[0]);
        st = list_add(&l, st, one);
    }
    if (st == LOP_OK) st = list_make(&l, mk, &lop_op_blockdiag, NULL, out);
    list_close(&l);
    return st;
}

LOP_BUILD(apply_inverses_alike) {
    const lop_node *blocks = NULL;
    lop_status st = inverted(mk, m->root->child[0], &blocks);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_solve, NULL, blocks, HOLE(m, 'x'), out);
    lop_node_unref(blocks);
    return st;
}
LOP_BUILD(value_inverses_alike) {
    const lop_node *blocks = NULL, *inverse = NULL, *asked = NULL;
    lop_match as = *m;
    lop_status st = inverted(mk, m->root->child[0], &blocks);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_inverse, NULL, blocks, &inverse);
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, inverse, &asked);
    as.root = asked;
    if (st == LOP_OK) st = lop_inverse_alike(&as, mk, out);
    lop_node_unref(blocks);
    lop_node_unref(inverse);
    lop_node_unref(asked);
    return st;
}
/* -- both */

LOP_BUILD(blocks_dense) {
    const lop_node *kind = m->root->child[0];
    list l;
    lop_status st = list_open(&l, mk, kind->n);
    for (int i = 0; st == LOP_OK && i < kind->n; i++) {
        const lop_node *one = NULL;
        st = lop_make1(mk, &lop_op_todense, &m->root->attr, kind->child[i], &one);
        st = list_add(&l, st, one);
    }
    if (st == LOP_OK && kind->op == &lop_op_block) st = list_grid(&l, mk, kind->attr.i[0], out);
    if (st == LOP_OK && kind->op != &lop_op_block)
        st = list_make(&l, mk, &lop_op_blocks, NULL, out);
    list_close(&l);
    return st;
}

/* The pieces of the diagonal that run through blocks, in order, zeros between them; and a piece of
 * no length that has the whole batch. */
LOP_BUILD(blocks_diagonal) {
    const lop_node *kind = m->root->child[0], *piece = NULL;
    int64_t k = ATTR(m, 'k').i[0], done = 0;
    int64_t length = m->root->shape.dim[m->root->shape.ndim - 1];
    list l;
    lop_status st = list_open(&l, mk, 2 * kind->n + 2);
    if (st == LOP_OK) st = value_of_nothing(m, mk, &lop_op_diagonal, true, 0, 0, &piece);
    if (st == LOP_OK) st = list_add(&l, st, piece);
    for (cursor c = first_block(kind); st == LOP_OK && c.block && done < length; next_block(&c)) {
        lop_attr own = {.i = {k + c.row - c.col, 0, 0, ATTR(m, 'k').i[3]}};
        int64_t count = lop_diag_length(lop_rows(c.block), lop_cols(c.block), own.i[0]);
        int64_t at = c.row + (own.i[0] < 0 ? -own.i[0] : 0) - (k < 0 ? -k : 0);
        if (count == 0) continue;
        if (at > done) {
            st = value_of_nothing(m, mk, &lop_op_diagonal, false, at - done, at - done, &piece);
            st = list_add(&l, st, piece);
        }
        if (st == LOP_OK) st = lop_make1(mk, &lop_op_diagonal, &own, c.block, &piece);
        st = list_add(&l, st, piece);
        done = at + count;
    }
    if (st == LOP_OK && done < length) {
        st = value_of_nothing(m, mk, &lop_op_diagonal, false, length - done, length - done, &piece);
        st = list_add(&l, st, piece);
    }
    if (st == LOP_OK) st = list_grid(&l, mk, l.n, out);
    list_close(&l);
    return st;
}

LOP_BUILD(blocks_element) {
    const lop_node *kind = m->root->child[0], *one = NULL, *zero = NULL;
    lop_attr k = ATTR(m, 'k');
    int64_t i = k.i[0], j = k.i[1];
    cursor c = first_block(kind);
    for (; c.block; next_block(&c))
        if (i >= c.row && i - c.row < lop_rows(c.block) && j >= c.col &&
            j - c.col < lop_cols(c.block))
            break;
    if (!c.block) return value_of_nothing(m, mk, &lop_op_element, true, 1, 1, out);
    k.i[0] = i - c.row;
    k.i[1] = j - c.col;
    lop_status st = lop_make1(mk, &lop_op_element, &k, c.block, &one);
    if (st != LOP_OK || lop_nbatch(kind) == 0) {
        *out = one;
        return st;
    }
    st = value_of_nothing(m, mk, &lop_op_element, true, 1, 1, &zero);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_add, NULL, one, zero, out);
    lop_node_unref(one);
    lop_node_unref(zero);
    return st;
}

/* -- Block */

/* One row of blocks times x: a sum of products; zeros where there is none. */
static lop_status row_times(const lop_match *m, const lop_maker *mk, cursor *c, const lop_node *x,
                            const lop_node **out) {
    int64_t columns = c->kind->attr.i[1], rows = lop_rows(c->block);
    const lop_node *sum = NULL, *zeros = NULL;
    lop_status st = LOP_OK;
    for (int64_t j = 0; st == LOP_OK && j < columns; j++, next_block(c)) {
        const lop_node *one = NULL, *both = NULL;
        if (passed_over(c->block)) continue;
        st = on_rows(mk, &lop_op_apply, c->block, x, c->col, &one);
        if (st == LOP_OK && sum) st = lop_make2(mk, &lop_op_add, NULL, sum, one, &both);
        if (st == LOP_OK && !sum) both = lop_node_ref(one);
        lop_node_unref(one);
        lop_node_unref(sum);
        sum = both;
    }
    if (st == LOP_OK && !sum) {
        st = nothing(m, mk, false, rows, lop_rows(x), &zeros);
        if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, zeros, x, &sum);
        lop_node_unref(zeros);
    }
    *out = sum;
    return st;
}
LOP_BUILD(apply_block) {
    const lop_node *kind = m->root->child[0], *x = NULL;
    list l;
    lop_status st = list_open(&l, mk, (int)kind->attr.i[0]);
    if (st == LOP_OK) st = cast_x(m, mk, &x);
    for (cursor c = first_block(kind); st == LOP_OK && c.block;) {
        const lop_node *y = NULL;
        st = row_times(m, mk, &c, x, &y);
        st = list_add(&l, st, y);
    }
    if (st == LOP_OK) st = list_grid(&l, mk, l.n, out);
    lop_node_unref(x);
    list_close(&l);
    return st;
}

/* Block i's right-hand side less what the blocks solved before (x[j], NULL: not yet) give. */
static lop_status less_solved(const lop_maker *mk, const lop_node *kind, int64_t i, int64_t row,
                              const lop_node *b, const lop_node *const *x, const lop_node **out) {
    const int64_t r = kind->attr.i[0];
    const lop_attr minus = lop_attr_coef(-1, 0);
    const lop_node *left = NULL;
    lop_status st = rows_of(mk, b, row, lop_rows(kind->child[i * r + i]), &left);
    for (int64_t j = 0; st == LOP_OK && j < r; j++) {
        const lop_node *a = kind->child[i * r + j], *ax = NULL, *neg = NULL, *both = NULL;
        if (j == i || !x[j] || passed_over(a)) continue;
        st = lop_make2(mk, &lop_op_apply, NULL, a, x[j], &ax);
        if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &minus, ax, &neg);
        if (st == LOP_OK) st = lop_make2(mk, &lop_op_add, NULL, left, neg, &both);
        lop_node_unref(ax);
        lop_node_unref(neg);
        lop_node_unref(left);
        left = both;
    }
    *out = left;
    return st;
}
/* Substitution, block by block: from the first on where Zeros stand above the diagonal. */
LOP_BUILD(solve_block) {
    const lop_node *kind = m->root->child[0], *b = NULL;
    const int64_t r = kind->attr.i[0];
    const bool lower = lop_block_triangle(kind, true);
    list l;
    lop_status st = list_open(&l, mk, (int)r);
    if (st != LOP_OK) return st;
    l.n = (int)r; /* its places are filled in their own order */
    int64_t row = lower ? 0 : lop_rows(kind);
    st = cast_x(m, mk, &b);
    for (int64_t t = 0; st == LOP_OK && t < r; t++) {
        const int64_t i = lower ? t : r - 1 - t, size = lop_rows(kind->child[i * r + i]);
        const lop_node *left = NULL;
        if (!lower) row -= size;
        st = less_solved(mk, kind, i, row, b, l.at, &left);
        if (st == LOP_OK)
            st = lop_make2(mk, &lop_op_solve, NULL, kind->child[i * r + i], left, &l.at[i]);
        lop_node_unref(left);
        if (lower) row += size;
    }
    if (st == LOP_OK) st = list_grid(&l, mk, r, out);
    lop_node_unref(b);
    list_close(&l);
    return st;
}
/* Those of the inverses of the diagonal blocks, one below the other. */
LOP_BUILD(block_inverse_diagonal) {
    const lop_node *kind = lop_node_ref(m->root->child[0]->child[0]);
    list l = {.ctx = mk->ctx};
    lop_status st = m->root->attr.i[0] != 0 || lop_nbatch(kind) > 0 || !lop_is_blas(m->root->dtype)
                        ? LOP_NOMATCH
                        : lop_settle(mk, &kind); /* a view of a Zeros is none yet */
    if (st == LOP_OK && (kind->op != &lop_op_block ||
                         (!lop_block_triangle(kind, true) && !lop_block_triangle(kind, false))))
        st = LOP_NOMATCH;
    const int64_t r = kind->attr.i[0];
    if (st == LOP_OK) st = list_open(&l, mk, (int)r);
    for (int64_t i = 0; st == LOP_OK && i < r; i++) {
        const lop_node *inverse = NULL, *one = NULL;
        st = lop_inverse_closed(mk, kind->child[i * r + i], &inverse);
        if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, inverse, &one);
        lop_node_unref(inverse);
        st = list_add(&l, st, one);
    }
    if (st == LOP_OK) st = list_grid(&l, mk, l.n, out);
    list_close(&l);
    lop_node_unref(kind);
    return st;
}
LOP_BUILD(det_block) {
    const lop_node *kind = m->root->child[0], *all = NULL;
    const int64_t r = kind->attr.i[0];
    lop_status st = LOP_OK;
    for (int64_t i = 0; st == LOP_OK && i < r; i++) {
        const lop_node *one = NULL, *both = NULL;
        st = lop_make1(mk, &lop_op_scaledet, &m->root->attr, kind->child[i * r + i], &one);
        if (st == LOP_OK && all) st = lop_make2(mk, &lop_op_mul_det, NULL, all, one, &both);
        if (st == LOP_OK && !all) both = lop_node_ref(one);
        lop_node_unref(one);
        lop_node_unref(all);
        all = both;
    }
    *out = all;
    return st;
}

LOP_BUILD(view_block) {
    const lop_node *kind = m->root->child[0];
    lop_attr mode = m->root->attr, shape = kind->attr;
    bool turn = (mode.i[0] & LOP_T) != 0;
    if (turn) {
        shape.i[0] = kind->attr.i[1];
        shape.i[1] = kind->attr.i[0];
    }
    list l;
    lop_status st = list_open(&l, mk, kind->n);
    for (int64_t i = 0; st == LOP_OK && i < kind->n; i++) {
        const lop_node *one = NULL;
        int64_t from = turn ? i % shape.i[1] * shape.i[0] + i / shape.i[1] : i;
        st = lop_make1(mk, &lop_op_view, &mode, kind->child[from], &one);
        st = list_add(&l, st, one);
    }
    if (st == LOP_OK) st = list_make(&l, mk, &lop_op_block, &shape, out);
    list_close(&l);
    return st;
}
