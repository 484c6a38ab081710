/* plan.h: from a canonical root to a flat list of steps.
 *
 *   written root --rewrite--> canonical DAG --lower, in post-order--> steps and slots
 *                --liveness--> one workspace of known size; cost from the table
 *
 * A plan is immutable once made and may be run by several threads at once. */
#ifndef LOP_PLAN_H
#define LOP_PLAN_H

#include "rewrite/costs.h"
#include "expr/emit.h"
#include "expr/op.h"
#include "rewrite/rewrite.h"

#include <string.h>

typedef enum lop_slot_kind { LOP_S_LEAF, LOP_S_TEMP, LOP_S_OUT, LOP_S_DERIVED } lop_slot_kind;

typedef struct lop_slot {
    lop_slot_kind kind;
    lop_dtype dt;
    int core;
    lop_shape shape;
    int64_t m, n, batch; /* core as a matrix; number of batch elements */
    int64_t matbytes;    /* one batch element */
    int leaf;            /* LEAF: index of the leaf; DERIVED: index of the derived value */
    int alias;           /* the slot whose memory this is; -1: own */
    int late;            /* TEMP: in the reserve of that level: 1, 2 or, 0, none */
    bool part, window;   /* it is a block of that slot, at (row, col), or some of its elements */
    bool shared;         /* other names lie on this one */
    int64_t row, col;
    int64_t shift; /* of a window: how many of its elements further on it begins */
    bool flip;     /* alias only: transposed */
    int copy_step; /* a transpose or a part: the step that copies, were it a copy; -1: none */
    lop_run copy;
    bool need_c;     /* a kernel counts on C order: LEAF, OUT are bound so */
    int64_t offset;  /* TEMP: in the workspace */
    int onto;        /* TEMP: it lies where this derived value will be; -1: it does not */
    int first, last; /* steps; -1: none */
} lop_slot;

typedef struct lop_leaf {
    uint64_t serial;
    lop_dtype dt;
    lop_shape shape;
    int slot;
} lop_leaf;

/* What a prepare step makes. Its key names step, parameters and leaves; the content is checked
 * apart.
 */
typedef struct lop_derive {
    int step;
    int64_t bytes;   /* one batch element */
    uint64_t leaves; /* the leaves whose content is checked, a bit each; 0: the arguments are */
    uint64_t rests;  /* all that it is made of; 0: not all have a bit */
    bool in_branch;  /* of a fast branch that is closed: a failure may have led past it */
    bool again;      /* made by a prepare step before it: it is found, not made again */
    bool served;     /* and found by the content of the same leaves: what it is made of is not made
                      * again either */
} lop_derive;
enum { LOP_KEEP = 64 }; /* derived values and leaves with a bit of their own */

typedef struct lop_plan {
    lop_ctx *ctx;
    int64_t refs; /* under the caller's lock */
    const lop_node *root, *written;
    lop_slot *slot;
    lop_step *step;
    lop_leaf *leaf;
    lop_derive *derive;
    uint64_t *key;    /* lop_plan_keys, for the leaves the plan was made with */
    lop_coefs *coefs; /* what the numbers in its steps come from; NULL: they are constants */
    int nslot, nstep, nleaf, nderive;
    int out; /* the slot of the result */
    bool batched;
    int64_t workspace;      /* bytes of temporaries and masks */
    int64_t kept;           /* of derived values, where nothing fails */
    int64_t reserve[2];     /* of those in fallback branches, and in fallback branches within
                               these: taken only when one is entered */
    size_t scratch;         /* largest scratch of a step */
    size_t late_scratch[2]; /* of a step in a fallback branch: behind its reserve */
    int64_t dense;          /* bytes of the largest dense form on the way that nobody asked for */
    double flops, bytes, seconds;
    lop_trace trace; /* rules that fired, in order */
} lop_plan;

typedef struct lop_options {
    bool fft;
    int64_t fft_min; /* override of the measured crossover; 0: as measured (tests set small ones) */
    lop_trail *trail; /* NULL, or where what happens is written down */
} lop_options;

/* The slot whose memory this slot uses: itself, unless it is an alias. */
static inline int lop_slot_base(const lop_plan *p, int slot) {
    while (p->slot[slot].alias >= 0) slot = p->slot[slot].alias;
    return slot;
}

/* Owned. `root` is an array or action node. */
lop_status lop_plan_make(lop_ctx *ctx, const lop_rules *rules, const lop_options *options,
                         const lop_node *root, lop_plan **out, lop_err *err) LOP_MUST_CHECK;
/* The same without rules of the phase `explore`. */
lop_status lop_plan_one(lop_ctx *ctx, const lop_rules *rules, const lop_options *options,
                        const lop_node *root, lop_plan **out, lop_err *err) LOP_MUST_CHECK;
void lop_plan_unref(lop_plan *plan); /* takes NULL */
/* derived_keys.c; lop_keep_plan once the slots have places. The keys of the derived values and of
 * the leaves, lop_plan_nkeys of them, for other leaves and numbers: one serial a leaf of the plan,
 * one value an entry of coefs (NULL: those that it was made with). */
static inline int lop_plan_nkeys(const lop_plan *p) {
    return p->nderive ? p->nderive + p->nleaf : 0;
}
lop_status lop_keep_plan(lop_plan *p, lop_err *err) LOP_MUST_CHECK;
lop_status lop_plan_keys(const lop_plan *plan, const uint64_t *serial, const lop_number *value,
                         uint64_t *key) LOP_MUST_CHECK;
/* Puts the coefficients among a step's data, of these values, into a copy of its words. */
static inline void lop_step_numbers(const lop_step *s, const lop_number *value, int64_t *words) {
    for (int i = 0; i < s->numbers; i++) {
        const lop_data_number n = lop_data_number_at(s, i);
        memcpy(&words[n.word], &value[n.num].re, sizeof *words);
        memcpy(&words[n.word + 1], &value[n.num].im, sizeof *words);
    }
}
uint64_t lop_leaf_key(uint64_t serial); /* of a leaf of that serial */
static inline uint64_t lop_leaf_bit(uint64_t key) { return (uint64_t)1 << (key >> 58); }
/* For explanations: the estimated seconds of a step; the bytes of the result, of the derived
 * values, and of both with the workspace but without the reserve of fallback branches. */
double lop_step_seconds(const lop_plan *plan, int step);
/* Is its value, or all that it serves, there by a step before it? Unless one fails it is not run.
 */
bool lop_step_again(const lop_plan *plan, int step);
/* The estimated seconds of a run that finds these of the first LOP_KEEP derived values, a bit each.
 */
double lop_plan_seconds_left(const lop_plan *plan, uint64_t there);
int64_t lop_plan_result(const lop_plan *plan);
int64_t lop_plan_kept(const lop_plan *plan);
int64_t lop_plan_memory(const lop_plan *plan);
/* plan_check.c: is the plan sound, as that pass has left it? INTERNAL, with the pass, the step and
 * the steps around it as text, where it is not. Each pass is followed by it in debug builds and
 * where ctx->check_plans says so. */
lop_status lop_plan_check_coefs(const lop_plan *plan, const lop_plan *other, lop_err *err);
typedef enum lop_pass { LOP_PASS_LOWER, LOP_PASS_FUSE, LOP_PASS_KEEP, LOP_PASS_PLACE } lop_pass;
lop_status lop_plan_check(const lop_plan *plan, lop_pass pass, lop_err *err);

#endif
