/* passes.h: the passes that make a plan, in the order in which compile.c runs them. */
#ifndef LOP_PASSES_H
#define LOP_PASSES_H

#include "emit_impl.h"
#include "plan.h"

/* Marks in `instead` the nodes with two branches of which a program takes the fallback at once,
 * since it makes that one's factor in any case. */
lop_status lop_one_road(lop_ctx *ctx, const lop_node *root, lop_map *instead) LOP_MUST_CHECK;
/* Steps and slots of a canonical root. */
lop_status lop_plan_lower(lop_emit *e, const lop_node *root) LOP_MUST_CHECK;
/* Products that accumulate into sums; before the slots have places. */
lop_status lop_fuse(lop_plan *p, lop_err *err) LOP_MUST_CHECK;
/* lop_keep_plan (plan.h): the keys of what is kept. */
/* Life spans, and the workspace. */
lop_status lop_plan_place(lop_plan *p, lop_err *err) LOP_MUST_CHECK;
/* Flops, bytes and seconds of the whole. */
void lop_plan_price(lop_plan *p);
/* The largest dense form that nobody asked for. */
void lop_plan_find_unasked(lop_plan *p);

#endif
