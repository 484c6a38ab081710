/* plan_check.h: what the three parts of lop_plan_check share; see plan_check.c. */
#ifndef LOP_PLAN_CHECK_H
#define LOP_PLAN_CHECK_H

#include "plan.h"

typedef struct lop_checker {
    const lop_plan *p;
    lop_pass pass;
    lop_err *err;
    int *base; /* of each slot: whose memory it is, found anew here */
} lop_checker;

/* Says that the plan is wrong at that step (-1: at none), with the pass and the plan as text. */
lop_status lop_check_fault(const lop_checker *k, int step, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What a step is told to touch beside its arguments, a mask each; -1: none. */
enum { LOP_CHECK_MASKS = 5 };
static inline void lop_check_masks(const lop_step *s, int mask[LOP_CHECK_MASKS]) {
    mask[0] = s->fail;
    mask[1] = s->escape;
    mask[2] = s->when;
    mask[3] = s->late;
    mask[4] = s->later;
}

/* plan_check_flow.c: what is written, when and for whom. plan_check_memory.c: where it lies. */
lop_status lop_check_flow(const lop_checker *k) LOP_MUST_CHECK;
lop_status lop_check_memory(const lop_checker *k) LOP_MUST_CHECK;

#endif
