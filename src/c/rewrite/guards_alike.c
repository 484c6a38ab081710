/* guards_alike.c: are the blocks of a BlockDiag of one make, so that they are better taken
 * together, as one operator with a batch (rules/blocks_alike.c)? */
#include "guards.h"

static lop_truth truth(bool b) { return b ? LOP_TRUE : LOP_FALSE; }

/* So few blocks, or so large ones, go one by one: there is nothing to gain. */
enum { ALIKE_BLOCKS = 16, ALIKE_ROWS = 64 };

/* Block i; of inverses, seen through a view or not, what they are inverses of, NULL where it is
 * none or seen otherwise than the first. */
static const lop_node *block_at(const lop_node *a, int i, bool inverse) {
    const lop_node *b = a->child[i], *first = a->child[0];
    if (!inverse) return b;
    if (b->op == &lop_op_view && first->op == &lop_op_view &&
        lop_attr_equal(&b->attr, &first->attr))
        b = b->child[0];
    else if (first->op == &lop_op_view)
        return NULL;
    return b->op == &lop_op_inverse ? b->child[0] : NULL;
}
/* Is it a Dense of a leaf, whole or by its upper triangle? */
static bool is_leaf(const lop_node *dense) {
    const lop_node *a = dense->child[0];
    return (a->op == &lop_op_named ? a->child[0] : a)->n == 0;
}
/* One matrix of a stack? */
static bool is_of_stack(const lop_node *a) {
    return a->op == &lop_op_sliced && a->n == 1 && a->attr.i[0] == 2 && a->attr.i[3] == -1 &&
           a->child[0]->shape.ndim == 3;
}
/* Do two blocks, with so many places between them, differ only in the arrays of their Denses, or in
 * which matrices of a stack they are? */
static bool same_make(const lop_node *a, const lop_node *b, int apart, int depth) {
    if (a == b) return depth > 0;
    if (depth == 0 || a->op != b->op || a->n != b->n || a->dtype != b->dtype ||
        a->weak != b->weak || !lop_shape_equal(&a->shape, &b->shape))
        return false;
    if (is_of_stack(a) && is_of_stack(b))
        return a->child[0] == b->child[0] && b->attr.i[1] - a->attr.i[1] == apart;
    if (!lop_attr_equal(&a->attr, &b->attr)) return false;
    if (a->op == &lop_op_dense)
        return is_leaf(a) && is_leaf(b) && a->child[0]->op == b->child[0]->op;
    for (int i = 0; i < a->n; i++)
        if (!same_make(a->child[i], b->child[i], apart, depth - 1)) return false;
    return true;
}
/* Of Denses without a batch, seen through views or in sums and products? */
static bool of_denses(const lop_node *a, int depth) {
    if (depth == 0 || a->shape.ndim != 2) return false;
    if (a->op == &lop_op_dense) return is_leaf(a);
    if (a->op == &lop_op_identity || is_of_stack(a)) return true;
    if (a->op != &lop_op_sum && a->op != &lop_op_prod && a->op != &lop_op_scaled &&
        a->op != &lop_op_view)
        return false;
    for (int i = 0; i < a->n; i++)
        if (!of_denses(a->child[i], depth - 1)) return false;
    return true;
}
enum { ALIKE_DEPTH = 12 };

static bool blocks_alike(const lop_node *a, bool inverse, int fewest) {
    const lop_node *first = block_at(a, 0, inverse);
    if (!first || a->n < (a->ctx->alike ? a->ctx->alike : fewest) || lop_rows(first) > ALIKE_ROWS ||
        lop_cols(first) > ALIKE_ROWS || lop_rows(first) == 0 || lop_cols(first) == 0 ||
        first->weak || !of_denses(first, ALIKE_DEPTH))
        return false;
    for (int i = 1; i < a->n; i++) {
        const lop_node *b = block_at(a, i, inverse);
        if (!b || !same_make(first, b, i, ALIKE_DEPTH)) return false;
    }
    return true;
}
lop_truth lop_when_blocks_alike(const lop_match *m) {
    const bool solve = m->root->op == &lop_op_solve; /* right-hand sides without a batch */
    const lop_node *a = m->root->child[0];
    return truth(blocks_alike(a, false, ALIKE_BLOCKS) && lop_is_square(a->child[0]) &&
                 (!solve || m->root->shape.ndim == 2));
}
lop_truth lop_when_dense_alike(const lop_match *m) {
    return truth(lop_is_blas(m->root->dtype) &&
                 blocks_alike(m->root->child[0], false, ALIKE_BLOCKS));
}
lop_truth lop_when_inverses_alike(const lop_match *m) {
    const lop_node *a = m->root->child[0];
    return truth(blocks_alike(a, true, ALIKE_BLOCKS) && m->root->shape.ndim <= 2 &&
                 lop_is_square(a->child[0]));
}
/* A product by a batch copies the blocks first, which pays for what has to be computed before it is
 * multiplied, and for blocks so tiny that a batch of them runs as one loop. */
lop_truth lop_when_products_alike(const lop_match *m) {
    enum { TINY = 7 };
    const lop_node *a = m->root->child[0], *first = a->child[0];
    const bool plain = first->op == &lop_op_dense,
               tiny = lop_rows(first) <= TINY && lop_cols(first) <= TINY && lop_cols(m->root) > 1;
    const int fewest = is_of_stack(first) ? ALIKE_BLOCKS : 4 * ALIKE_BLOCKS; /* not copied */
    return truth(m->root->shape.ndim == 2 && lop_is_blas(m->root->dtype) && (!plain || tiny) &&
                 blocks_alike(a, false, fewest));
}
