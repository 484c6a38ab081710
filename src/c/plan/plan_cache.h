/* plan_cache.h: plans by structure: an expression built anew finds the plan of one built the same
 * way.
 *
 *   written node --sign--> words (kinds, sizes, dtypes; leaves and coefficients by first
 *                          appearance, coefficients by their class: expr/coefficients.h; a node
 *                          that comes again as the place of its words)
 *   words --get--> plan, and which leaf of the expression each leaf of the plan is
 *
 * Whole signatures are compared, not their hashes. An expression larger than a signature is planned
 * anew each time. Under the caller's lock. */
#ifndef LOP_PLANS_H
#define LOP_PLANS_H

#include "plan.h"

enum {
    LOP_SIGN_WORDS = 2048,
    LOP_SIGN_LEAVES = 56,
    LOP_SIGN_SHARED = 128,
    LOP_PLANS = 256,
    LOP_PLANS_ALIKE = 4 /* of neighbouring places, for plans whose hashes lead there */
};

typedef struct lop_sign {
    uint64_t hash;
    int n, leaves;
    uint64_t serial[LOP_SIGN_LEAVES]; /* of the array leaves, by first appearance */
    bool by_class; /* set by the caller: coefficients are not part of it but for their class */
    int numbers;
    lop_number number[LOP_SOURCES]; /* those coefficients, by first appearance, each value once */
    int shared;
    struct { /* nodes that may come again, and where their words stand */
        const lop_node *node;
        int at;
    } seen[LOP_SIGN_SHARED];
    uint64_t word[LOP_SIGN_WORDS];
} lop_sign;

static inline void lop_sign_open(lop_sign *s) {
    s->hash = 0x9e3779b97f4a7c15u;
    s->n = s->leaves = s->numbers = s->shared = 0;
    s->by_class = false;
}
/* False: no room. Words that the caller adds (what is asked for, the config) come first. */
bool lop_sign_word(lop_sign *s, uint64_t word);
bool lop_sign_node(lop_sign *s, const lop_node *root);

/* A plan and its leaves: number[i] says which leaf of the expression leaf i of the plan is; -1: it
 * is not in the expression (the right-hand side). */
typedef struct lop_shared {
    uint64_t hash, used; /* when it was found last */
    int n;
    lop_plan *plan;
    uint64_t *word;
    signed char number[LOP_SIGN_LEAVES + 1];
} lop_shared;

typedef struct lop_plans {
    lop_ctx *ctx;
    lop_shared *slot; /* LOP_PLANS of them, by hash; a newer plan takes the place of the one of
                         its neighbours that was used longest ago */
    uint64_t hits, misses;
} lop_plans;
void lop_plans_init(lop_plans *plans, lop_ctx *ctx);
void lop_plans_clear(lop_plans *plans);
/* Borrowed; NULL: none. The plan's numbers for these coefficients into value[LOP_ENTRIES]. */
const lop_shared *lop_plans_get(lop_plans *plans, const lop_sign *sign, lop_number *value);
/* Owned: a plan of `root` for all coefficients of the signature's class. */
lop_status lop_plans_make(const lop_plans *plans, const lop_sign *sign, const lop_rules *rules,
                          const lop_options *options, const lop_node *root, lop_plan **out,
                          lop_err *err) LOP_MUST_CHECK;
/* Retains the plan. What does not fit, or memory that could not be had, leaves the table as it is.
 */
void lop_plans_put(lop_plans *plans, const lop_sign *sign, lop_plan *plan);

#endif
