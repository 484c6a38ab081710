/* plan_print.h: plans as text: rules that fired, steps with kernel, shapes, flops and bytes,
 * memory. */
#ifndef LOP_DUMP_H
#define LOP_DUMP_H

#include "plan.h"

/* Owned text (lop_free with the plan's context); NULL: out of memory. At most `limit` steps are
 * listed. `trail` (what was refused, what else was priced) and `times` (seconds that each step
 * took) may be NULL. */
char *lop_plan_dump(const lop_plan *plan, const lop_rules *rules, const lop_trail *trail,
                    const double *times, int limit);
/* The steps from `from` up to `to` alone, a line each, of a plan that may be wrong (plan_check.c).
 * Owned; NULL: out of memory. */
char *lop_plan_steps(const lop_plan *plan, int from, int to);
/* A slot as dump names it: a0(3, 4), t2, out(3). Gives `name`. */
const char *lop_slot_text(const lop_plan *plan, int slot, char *name, size_t size);
/* Why a rule was refused, as words; NULL where it fired. */
const char *lop_why_text(const lop_rule *rule, lop_why why);

#endif
