/* dump.h: plans as text: rules that fired, steps with kernel, shapes, flops and bytes, memory. */
#ifndef LOP_DUMP_H
#define LOP_DUMP_H

#include "plan.h"

/* Owned text (lop_free with the plan's context); NULL: out of memory. At most `limit` steps are
 * listed. */
char *lop_plan_dump(const lop_plan *plan, const lop_rules *rules, int limit);

#endif
