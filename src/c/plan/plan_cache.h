/* plan_cache.h: plans by structure: an expression built anew finds the plan of one built the same
 * way.
 *
 *   written node --sign--> words (signature.h)
 *   words --get--> plan, and which leaf of the expression each leaf of the plan is
 *
 * Whole signatures are compared, not their hashes. An expression larger than a signature is planned
 * anew each time. Under the caller's lock. */
#ifndef LOP_PLANS_H
#define LOP_PLANS_H

#include "plan.h"
#include "signature.h"

enum {
    LOP_PLANS = 256,
    LOP_PLANS_BYTES = 1 << 26, /* of all of them, about; a larger one is kept alone */
    LOP_PLANS_ALIKE = 4        /* of neighbouring places, for plans whose hashes lead there */
};

/* A plan and its leaves: number[i] says which leaf of the expression leaf i of the plan is; -1: it
 * is not in the expression (the right-hand side). */
typedef struct lop_shared {
    uint64_t hash, used; /* when it was found last */
    int n;
    lop_plan *plan;
    int64_t bytes;
    uint64_t *word; /* with `number` behind them */
    int *number;
} lop_shared;

typedef struct lop_plans {
    lop_ctx *ctx;
    lop_shared *slot; /* LOP_PLANS of them, by hash; a newer plan takes the place of the one of
                         its neighbours that was used longest ago */
    uint64_t hits, misses;
    int64_t bytes;
} lop_plans;
void lop_plans_init(lop_plans *plans, lop_ctx *ctx);
void lop_plans_clear(lop_plans *plans);
/* Borrowed; NULL: none. The plan's numbers for these coefficients into sign->value. */
const lop_shared *lop_plans_get(lop_plans *plans, lop_sign *sign);
/* Owned: a plan of `root` for all coefficients of the signature's class. */
lop_status lop_plans_make(const lop_plans *plans, const lop_sign *sign, const lop_rules *rules,
                          const lop_options *options, const lop_node *root, lop_plan **out,
                          lop_err *err) LOP_MUST_CHECK;
/* Retains the plan. What does not fit, or memory that could not be had, leaves the table as it is.
 */
void lop_plans_put(lop_plans *plans, const lop_sign *sign, lop_plan *plan);

#endif
