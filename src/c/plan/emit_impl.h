/* emit_impl.h: the planner's own view of lop_emit; only for the passes of plan/. */
#ifndef LOP_EMIT_IMPL_H
#define LOP_EMIT_IMPL_H

#include "expr/node_map.h"
#include "plan.h"

struct lop_emit {
    lop_plan *plan;
    lop_err *err;
    const lop_options *options;
    lop_map map;
    lop_map instead; /* nodes of which the fallback is lowered at once: one_road.c */
    int room_slot, room_step, room_leaf, room_derive;
    /* Nodes with two branches that are being lowered: what is lowered in a branch is known there
     * only. */
    struct lop_branch *branch;
    int nbranch, room_branch, second; /* second: how many of them are in their fallback */
    const lop_node **fresh;           /* borrowed: lowered in open branches, in order */
    int nfresh, room_fresh;
    int value, mask;           /* of the node just closed: see lop_emit_checked */
    struct lop_shares *shares; /* owned; NULL: no node with branches has been met */
};

typedef struct lop_branch {
    const lop_node *node; /* NULL: a block of shared values */
    int fresh, step;      /* where the branch begins */
    int value, mask;
    bool turned; /* it is in its fallback */
} lop_branch;

/* lower.c, for shared_values.c */
typedef struct lop_walk {
    const lop_node *node;
    int next;
} lop_walk;
typedef struct lop_walks { /* a stack; `at` is to be freed */
    lop_ctx *ctx;
    lop_walk *at;
    int64_t n, room;
} lop_walks;
static inline bool lop_is_value(const lop_node *n) { return n->op->cls != LOP_OPERATOR; }
lop_status lop_walks_push(lop_walks *w, const lop_node *node);
bool lop_is_lowered(const lop_emit *e, const lop_node *node); /* and known here */
/* What child i stands for: where half of a matrix is read its array alone, or what it is made of;
 * and how many there are. */
const lop_node *lop_needed(const lop_node *node, int i);
static inline int lop_nneeded(const lop_node *node) {
    int n = 0;
    if (!node->op->reads) return node->n;
    while (node->op->reads(node, n)) n++;
    return n;
}
lop_status lop_push_branch(lop_emit *e, lop_branch branch);
/* Node `from` of the plan of `root`, and what it needs. */
lop_status lop_lower_from(lop_emit *e, const lop_node *root, const lop_node *from);
/* `node` is known within the innermost branch that is open; no longer, all since `first`. */
lop_status lop_note_fresh(lop_emit *e, const lop_node *node);
lop_status lop_forget(lop_emit *e, int first);

/* shared_values.c: once for a plan; in front of a fast branch that no other is around: what has to
 * be lowered outside of it first (NULL: nothing), then the blocks of shared values; within it. */
typedef struct lop_shares lop_shares;
lop_status lop_shares_find(lop_emit *e, const lop_node *root);
lop_status lop_shares_before(const lop_emit *e, const lop_node *node, const lop_node **found);
lop_status lop_shares_lower(lop_emit *e, const lop_node *root, const lop_node *node);
lop_status lop_shares_see(lop_emit *e, const lop_node *node);
void lop_shares_free(lop_emit *e);

int lop_emit_slot(lop_emit *e, lop_slot_kind kind, lop_dtype dt, int core, const lop_shape *shape,
                  lop_status *st);
int lop_emit_leaf_slot(lop_emit *e, const lop_node *leaf, lop_status *st);
lop_status lop_run_copy(const lop_call *c);  /* argument 0 <- cast(argument 1) */
lop_status lop_run_start(const lop_call *c); /* the same, where they may be one */
lop_status lop_run_flip(const lop_call *c);  /* argument 0 <- argument 1 transposed */

#endif
