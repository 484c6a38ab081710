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
    int value, mask; /* of the node just closed: see lop_emit_checked */
};

typedef struct lop_branch {
    const lop_node *node;
    int fresh, step; /* where the branch begins */
    int value, mask;
} lop_branch;

int lop_emit_slot(lop_emit *e, lop_slot_kind kind, lop_dtype dt, int core, const lop_shape *shape,
                  lop_status *st);
int lop_emit_leaf_slot(lop_emit *e, const lop_node *leaf, lop_status *st);
lop_status lop_run_copy(const lop_call *c);  /* argument 0 <- cast(argument 1) */
lop_status lop_run_start(const lop_call *c); /* the same, where they may be one */
lop_status lop_run_flip(const lop_call *c);  /* argument 0 <- argument 1 transposed */

#endif
