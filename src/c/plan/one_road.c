/* one_road.c: one factor for all uses of a matrix within a program.
 *
 * Whether structure or the dense form serves is decided use by use: a solve with a Toeplitz matrix
 * goes by a recursion, many columns of its inverse by a Cholesky factor of the dense form. Where a
 * program takes such a factor for one use in any case, what other uses would do by structure, with
 * that factor for a fallback, is left out: they go by the fallback at once. Not where one of them
 * is a diagonal of the inverse, which the fallback would have to make for it alone: that is dearer
 * than both factors. Four walks over the DAG. */
#include "passes.h"

#include "ops/shared/factor.h"
#include "ops/shared/scaled_pair.h"

typedef struct todo {
    lop_ctx *ctx;
    const lop_node **at;
    int64_t n, room;
} todo;

static lop_status push(todo *t, const lop_node *node) {
    if (t->n == t->room) {
        const int64_t room = t->room ? 2 * t->room : 64;
        const lop_node **more = lop_realloc(t->ctx, (void *)t->at, (size_t)room * sizeof *more);
        if (!more) return LOP_NOMEM;
        t->at = more;
        t->room = room;
    }
    t->at[t->n++] = node;
    return LOP_OK;
}

enum { NONE, LU = 1, CHOLESKY = 2 };

/* What a node with branches falls back to in the end, be it a diagonal of what does. */
static const lop_node *safest(const lop_node *a) {
    while (a->op->check || a->op == &lop_op_array_diagonal)
        a = a->op->check ? a->child[a->n - 1] : a->child[0];
    return a;
}

/* By which factor `a` is made, and of which array; NONE: it is no solve, determinant or inverse by
 * a factor of a dense form in its own dtype. */
static int factor_of(const lop_node *a, const lop_node **dense) {
    int how = NONE;
    if (a->op == &lop_op_lu_solve || a->op == &lop_op_lu_det) how = LU;
    if (a->op == &lop_op_cholesky_solve || a->op == &lop_op_cholesky_det) how = CHOLESKY;
    if (a->op == &lop_op_invert) how = a->attr.i[0] ? CHOLESKY : LU;
    if (how == NONE) return NONE;
    *dense = a->op == &lop_op_invert && how == LU ? lop_unswapped(a->child[0]) : a->child[0];
    return lop_node_is_pair(a) || a->dtype == (*dense)->dtype ? how : NONE;
}

typedef struct found {
    lop_map sure;  /* arrays that are factored whatever fails, and how */
    lop_map whole; /* values by such a factor that are made outside of branches */
    lop_map kept;  /* arrays whose inverse the fallback alone would make, for a diagonal */
} found;

/* Is `node`, with branches, a diagonal of an inverse that its fallback would have to make? */
static bool needs_inverse(const found *f, const lop_node *node) {
    int known;
    const lop_node *safe = node, *inverse;
    while (safe->op->check) safe = safe->child[safe->n - 1];
    if (safe->op != &lop_op_array_diagonal) return false;
    inverse = safest(safe);
    return !lop_map_get(&f->whole, inverse, &known);
}

static lop_status note(found *f, const lop_node *node, bool branches, int pass, lop_map *instead,
                       bool *turned) {
    const lop_node *dense = NULL;
    const int how = factor_of(branches ? safest(node) : node, &dense);
    int known = 0, kept;
    if (how == NONE) return LOP_OK;
    if (pass == 0)
        return branches || lop_node_is_pair(node) ? LOP_OK : lop_map_set(&f->whole, node, 1);
    if (pass == 1 && !branches) {
        (void)lop_map_get(&f->sure, dense, &known);
        return lop_map_set(&f->sure, dense, known | how);
    }
    if (pass == 2 && branches && needs_inverse(f, node)) return lop_map_set(&f->kept, dense, 1);
    /* the whole inverse by structure is n^2 steps from two columns, whichever way these go */
    if (node->op == &lop_op_toeplitz_inverse) return LOP_OK;
    *turned = pass == 3 && branches && lop_map_get(&f->sure, dense, &known) && (known & how) &&
              !lop_map_get(&f->kept, dense, &kept);
    return *turned ? lop_map_set(instead, node, 1) : LOP_OK;
}

/* Walks over what runs unless something fails: sees what is made in no branch, what is factored,
 * then which diagonals of inverses stay by structure, then marks in `instead` what goes by its
 * fallback. */
static lop_status look(lop_ctx *ctx, const lop_node *root, found *f, int pass, lop_map *instead) {
    todo t = {.ctx = ctx};
    lop_map seen = {0};
    lop_status st = lop_map_init(&seen, ctx);
    if (st == LOP_OK) st = push(&t, root);
    while (st == LOP_OK && t.n > 0) {
        const lop_node *node = t.at[--t.n];
        const bool branches = node->op->check != NULL;
        bool turned = false;
        int known;
        if (lop_map_get(&seen, node, &known)) continue;
        st = lop_map_set(&seen, node, 1);
        if (st == LOP_OK) st = note(f, node, branches, pass, instead, &turned);
        if (st == LOP_OK && turned) st = push(&t, node->child[node->n - 1]);
        const int last = !branches ? node->n : pass == 0 ? 0 : node->n - 1;
        for (int i = 0; st == LOP_OK && !turned && i < last; i++) st = push(&t, node->child[i]);
    }
    lop_map_clear(&seen, ctx);
    lop_free(ctx, (void *)t.at);
    return st;
}

lop_status lop_one_road(lop_ctx *ctx, const lop_node *root, lop_map *instead) {
    found f = {.sure = {0}, .whole = {0}, .kept = {0}};
    if (root->op != &lop_op_results_array && root->op != &lop_op_joint_array) return LOP_OK;
    lop_status st = lop_map_init(&f.sure, ctx);
    if (st == LOP_OK) st = lop_map_init(&f.whole, ctx);
    if (st == LOP_OK) st = lop_map_init(&f.kept, ctx);
    for (int pass = 0; st == LOP_OK && pass < 4 && (pass < 2 || f.sure.count > 0); pass++)
        st = look(ctx, root, &f, pass, instead);
    lop_map_clear(&f.sure, ctx);
    lop_map_clear(&f.whole, ctx);
    lop_map_clear(&f.kept, ctx);
    return st;
}
