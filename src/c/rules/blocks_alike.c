/* blocks_alike.c: computed right sides for a BlockDiag of many small blocks of one make: the blocks
 * become one operator with a batch, the arrays of their Denses one pile; and for a BlockDiag that
 * meets multiples of the identity or I (x) G, block by block. */
#include "builds.h"
#include "rewrite/guards.h"

#define HOLE(m, c) ((m)->node[(c) - 'a'])
#define ATTR(m, c) ((m)->attr[(c) - 'a'])

static void give_up(lop_ctx *ctx, const lop_node **at, int n) {
    for (int i = 0; at && i < n; i++) lop_node_unref(at[i]);
    lop_free(ctx, (void *)at);
}

/* One node for n of one make (the guard has looked): what all have in common stays without a batch
 * and is broadcast. Depth as the guard's. */
static lop_status zipped(const lop_maker *mk, const lop_node *const *at, int n,
                         const lop_node **out) {
    enum { MOST = 2 };
    const lop_node *first = at[0], *child[MOST] = {NULL, NULL}, *pile = NULL;
    const bool dense = first->op == &lop_op_dense,
               half = dense && first->child[0]->op == &lop_op_named;
    bool one = true;
    for (int i = 1; one && i < n; i++) one = at[i] == first;
    if (one || first->n == 0) {
        *out = lop_node_ref(first);
        return LOP_OK;
    }
    if (first->op == &lop_op_sliced) { /* n in a row, the guard has looked, of a stack */
        const lop_node *stack = first->child[0];
        const lop_attr part = {.i = {2, first->attr.i[1], 1, n}};
        if (stack->shape.dim[0] != n) return lop_make1(mk, &lop_op_sliced, &part, stack, out);
        *out = lop_node_ref(stack);
        return LOP_OK;
    }
    if (first->n > MOST) return LOP_NOMATCH;
    const lop_node **sub = lop_calloc(mk->ctx, (size_t)n, sizeof *sub);
    lop_status st = sub ? LOP_OK : lop_fail(mk->err, LOP_NOMEM, NULL);
    for (int c = 0; st == LOP_OK && c < first->n; c++) {
        for (int i = 0; i < n; i++) sub[i] = half ? at[i]->child[c]->child[0] : at[i]->child[c];
        st = dense ? lop_make(mk, "cholesky_batch", NULL, n, sub, NULL, &pile)
                   : zipped(mk, sub, n, &child[c]);
    }
    lop_free(mk->ctx, (void *)sub);
    if (st == LOP_OK && half) {
        const lop_node *whole = NULL;
        st = lop_make1(mk, &lop_op_named, &first->child[0]->attr, pile, &whole);
        lop_node_unref(pile);
        pile = whole;
    }
    if (st == LOP_OK)
        st =
            lop_make(mk, first->op->name, &first->attr, first->n, dense ? &pile : child, NULL, out);
    lop_node_unref(pile);
    for (int c = 0; c < MOST; c++) lop_node_unref(child[c]);
    return st;
}

/* The blocks as one operator with a batch; where they are all one node, a pile of copies. */
static lop_status batch_of(const lop_maker *mk, const lop_node *kind, const lop_node **out) {
    lop_status st = zipped(mk, kind->child, kind->n, out);
    if (st == LOP_OK && lop_nbatch(*out) == 0) {
        lop_node_unref(*out);
        *out = NULL;
        return LOP_NOMATCH;
    }
    return st;
}

/* An apply or a solve, on the rows of x as a batch. */
LOP_BUILD(action_alike) {
    const lop_node *kind = m->root->child[0], *block = kind->child[0], *batch = NULL, *x = NULL,
                   *folded = NULL, *y = NULL;
    const bool solve = m->root->op == &lop_op_solve;
    const lop_attr cast = {.i = {1, 0, 0, (int64_t)m->root->dtype + 1}};
    const int64_t k = lop_cols(HOLE(m, 'x'));
    const lop_attr in = {.i = {kind->n, solve ? lop_rows(block) : lop_cols(block), 1, k}},
                   back = {.i = {kind->n, solve ? lop_cols(block) : lop_rows(block), 1, k}};
    lop_status st = batch_of(mk, kind, &batch);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_cast, &cast, HOLE(m, 'x'), &x);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_kron_unfold, &in, x, &folded);
    if (st == LOP_OK) st = lop_make2(mk, m->root->op, NULL, batch, folded, &y);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_kron_fold, &back, y, out);
    const lop_node *gone[] = {batch, x, folded, y};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}
/* The dense form, in one step. */
LOP_BUILD(dense_alike) {
    const lop_node *kind = m->root->child[0], *batch = NULL, *value = NULL, *rows = NULL;
    const lop_attr fold = {.i = {kind->n, lop_rows(kind->child[0]), 1, lop_cols(kind->child[0])}},
                   many = {.i = {kind->n, 0, 0, 0}};
    lop_status st = batch_of(mk, kind, &batch);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &m->root->attr, batch, &value);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_kron_fold, &fold, value, &rows);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_blocks_of_rows, &many, rows, out);
    lop_node_unref(batch);
    lop_node_unref(value);
    lop_node_unref(rows);
    return st;
}
LOP_BUILD(det_alike) {
    const lop_node *batch = NULL, *pairs = NULL;
    lop_status st = batch_of(mk, m->root->child[0], &batch);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scaledet, &m->root->attr, batch, &pairs);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_joint_det, NULL, pairs, out);
    lop_node_unref(batch);
    lop_node_unref(pairs);
    return st;
}

/* The dense form or the main diagonal of the inverse, by the factors that solves have. */
lop_status lop_inverse_alike(const lop_match *m, const lop_maker *mk, const lop_node **out) {
    const lop_node *kind = m->root->child[0]->child[0], *batch = NULL, *inverse = NULL,
                   *value = NULL, *rows = NULL, *probe = NULL, *turned = NULL;
    const bool diagonal = m->root->op == &lop_op_diagonal;
    const int64_t k = lop_rows(kind->child[0]);
    const lop_dtype dt = m->root->dtype;
    const lop_attr dense = {.i = {0, 0, 0, (int64_t)dt + 1}}, fold = {.i = {kind->n, k, 1, k}},
                   many = {.i = {kind->n, 0, 0, 0}}, turn = {.i = {LOP_T, 0, 0, 0}},
                   first = {.i = {0, 0, 0, 0}};
    const lop_node like = {
        .shape = {.ndim = 2, .dim = {lop_rows(kind), k}}, .dtype = dt, .core = 2};
    lop_match as = *m;
    as.root = m->root->child[0];
    if (!lop_is_blas(dt) || (diagonal ? m->root->attr.i[0] != 0 : m->root->op != &lop_op_todense) ||
        lop_when_blocks_alike(&as) != LOP_TRUE)
        return LOP_NOMATCH;
    lop_status st = batch_of(mk, kind, &batch);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_inverse, NULL, batch, &inverse);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &dense, inverse, &value);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_kron_fold, &fold, value, &rows);
    if (st == LOP_OK && !diagonal) st = lop_make1(mk, &lop_op_blocks_of_rows, &many, rows, out);
    if (st == LOP_OK && diagonal) st = lop_make(mk, "bandprobe", NULL, 0, NULL, &like, &probe);
    if (st == LOP_OK && diagonal) st = lop_make1(mk, &lop_op_swap, &turn, probe, &turned);
    if (st == LOP_OK && diagonal)
        st = lop_make2(mk, &lop_op_product_diagonal, &first, rows, turned, out);
    const lop_node *gone[] = {batch, inverse, value, rows, probe, turned};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

lop_status lop_blocks_alike_array(const lop_match *m, const lop_maker *mk, const lop_node **out) {
    const lop_node *top = m->root->child[0], *batch = NULL, *inverse = NULL;
    const bool of_inverse = top->op == &lop_op_inverse;
    const lop_attr dense = {.i = {0, 0, 0, (int64_t)m->root->dtype + 1}};
    lop_match as = *m;
    if (of_inverse) as.root = top;
    if ((of_inverse ? lop_when_blocks_alike(&as) : lop_when_dense_alike(m)) != LOP_TRUE)
        return LOP_NOMATCH;
    lop_status st = batch_of(mk, as.root->child[0], &batch);
    if (st == LOP_OK && of_inverse) st = lop_make1(mk, &lop_op_inverse, NULL, batch, &inverse);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &dense, inverse ? inverse : batch, out);
    lop_node_unref(batch);
    lop_node_unref(inverse);
    return st;
}

/* -- closing, block by block */

/* I (x) G of `size` rows; G itself where that is its size. Owned. */
static lop_status part_of_kron(const lop_maker *mk, const lop_node *kron, int64_t size,
                               const lop_node **out) {
    const lop_node *g = kron->child[1], *eye = NULL;
    const int64_t many = size / lop_rows(g);
    if (many == 1) {
        *out = lop_node_ref(g);
        return LOP_OK;
    }
    lop_node like = *kron->child[0];
    like.shape.dim[0] = like.shape.dim[1] = many;
    lop_status st = lop_make(mk, "identity", NULL, 0, NULL, &like, &eye);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_kron, NULL, eye, g, out);
    lop_node_unref(eye);
    return st;
}

/* c I of `size` rows, as `shift` (an identity, or a multiple of one) has it. Owned. */
static lop_status part_of_shift(const lop_maker *mk, const lop_node *shift, int64_t size,
                                const lop_node **out) {
    const lop_node *whole = shift->op == &lop_op_scaled ? shift->child[0] : shift, *eye = NULL;
    const lop_node like = {.shape = {.ndim = 2, .dim = {size, size}},
                           .dtype = whole->dtype,
                           .weak = whole->weak,
                           .core = 2};
    lop_status st = lop_make(mk, "identity", NULL, 0, NULL, &like, &eye);
    if (st != LOP_OK || shift == whole) {
        *out = eye;
        return st;
    }
    st = lop_make(mk, "scaled", &shift->attr, 1, &eye, shift, out);
    lop_node_unref(eye);
    return st;
}

/* A BlockDiag and, on either side, what is cut into parts for its blocks. */
static lop_status cut(const lop_maker *mk, const lop_op *op, const lop_node *a, const lop_node *b,
                      const lop_node **out) {
    const bool first = a->op == &lop_op_blockdiag, sum = op == &lop_op_sum;
    const lop_node *kind = first ? a : b, *other = first ? b : a;
    if (lop_nbatch(kind) || lop_nbatch(other)) return LOP_NOMATCH;
    const lop_node **at = lop_calloc(mk->ctx, (size_t)kind->n, sizeof *at);
    lop_status st = at ? LOP_OK : lop_fail(mk->err, LOP_NOMEM, NULL);
    int done = 0;
    for (; st == LOP_OK && done < kind->n; done++) {
        const lop_node *block = kind->child[done], *part = NULL;
        const int64_t size = first ? lop_cols(block) : lop_rows(block);
        if (sum && !lop_is_square(block))
            st = LOP_NOMATCH;
        else
            st = sum ? part_of_shift(mk, other, size, &part) : part_of_kron(mk, other, size, &part);
        if (st == LOP_OK)
            st = lop_make2(mk, op, NULL, first ? block : part, first ? part : block, &at[done]);
        lop_node_unref(part);
    }
    if (st == LOP_OK) st = lop_make(mk, "blockdiag", NULL, kind->n, at, NULL, out);
    give_up(mk->ctx, at, kind->n);
    return st;
}

LOP_BUILD(blockdiag_with) {
    return cut(mk, m->root->op, m->root->child[0], m->root->child[1], out);
}

/* D + c I of a Diag. Owned. */
static lop_status shifted_diag(const lop_maker *mk, const lop_node *d, const lop_node *shift,
                               const lop_node **out) {
    const lop_node *sum;
    lop_status st = lop_make2(mk, &lop_op_sum, NULL, d, shift, &sum);
    if (st != LOP_OK) return st;
    lop_match m = {.root = sum, .node = {d->child[0]}};
    st = lop_build_diag_plus_identity(&m, mk, out);
    lop_node_unref(sum);
    return st;
}

/* BlockDiag + U C V^H + c I: the shift goes to the blocks; Diag + U C V^H + c I likewise. */
LOP_BUILD(blocks_update_plus) {
    const lop_node *a = m->root->child[0], *b = m->root->child[1], *base = NULL;
    const bool first = a->op == &lop_op_lowrankupdate;
    const lop_node *update = first ? a : b, *shift = first ? b : a, *child[4] = {NULL};
    const bool diag = update->child[0]->op == &lop_op_diag;
    if ((!diag && update->child[0]->op != &lop_op_blockdiag) || lop_nbatch(update))
        return LOP_NOMATCH;
    lop_status st = diag ? shifted_diag(mk, update->child[0], shift, &base)
                         : cut(mk, &lop_op_sum, update->child[0], shift, &base);
    if (st != LOP_OK) return st;
    child[0] = base;
    for (int i = 1; i < update->n; i++) child[i] = update->child[i];
    st = lop_make(mk, "lowrankupdate", &update->attr, update->n, child, NULL, out);
    lop_node_unref(base);
    return st;
}
