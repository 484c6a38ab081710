/* user_rule_search.h: users' rules of the phase `explore`, tried on the written expression.
 *
 *   written --each row at each node--> variants --planned and priced--> the cheapest
 *
 * Bounded by counts: so many variants are planned, of expressions of so many nodes; what is larger
 * is planned as written. The same input gives the same plan. */
#ifndef LOP_EXPLORE_H
#define LOP_EXPLORE_H

#include "plan.h"

enum { LOP_EXPLORE_NODES = 256, LOP_EXPLORE_PLANS = 32 };

/* How a variant is planned: as lop_plan_one does. */
typedef lop_status (*lop_compile)(lop_ctx *ctx, const lop_rules *rules, const lop_options *options,
                                  const lop_node *root, lop_plan **out, lop_err *err);

/* *best (the plan of `root` as written) is replaced, and released, where another is better. */
lop_status lop_explore(const lop_rules *rules, const lop_options *options, const lop_node *root,
                       lop_compile compile, lop_plan **best, lop_err *err) LOP_MUST_CHECK;

#endif
