/* contract_parts.h: what the passes of a contraction's planner share while a plan is made. */
#ifndef LOP_CONTRACT_PARTS_H
#define LOP_CONTRACT_PARTS_H

#include "contract.h"

/* An array without repeated labels: what lies in a slot, or an operand as it came. */
typedef struct lop_tensor {
    int slot, same, n; /* same: of operands, the first one on that memory; else the slot */
    int label[LOP_MAXAXES];
    int64_t stride[LOP_MAXAXES];
} lop_tensor;

enum { LOP_LABEL_WORDS = LOP_MAXLABELS / 64 };
typedef struct lop_labels {
    uint64_t word[LOP_LABEL_WORDS];
} lop_labels;
static inline void lop_labels_add(lop_labels *s, int label) {
    s->word[label / 64] |= (uint64_t)1 << (label % 64);
}
static inline bool lop_labels_has(const lop_labels *s, int label) {
    return (s->word[label / 64] >> (label % 64)) & 1;
}

typedef struct lop_pair_of {
    int a, b; /* tensors by number: operands first, then what pairs made */
} lop_pair_of;

typedef struct lop_contract_work {
    lop_ctx *ctx;
    const lop_spec *spec;
    lop_err *err;
    int64_t size[LOP_MAXLABELS];
    lop_tensor *tensor; /* noperand operands, then noperand - 1 made ones */
    lop_pair_of *pair;  /* noperand - 1 */
    lop_tensor result;
    lop_contraction *plan;
    int room_steps, room_loops, room_slots;
    int *until; /* of each slot: the step after which it is free; while made INT_MAX */
} lop_contract_work;

lop_labels lop_labels_of(const lop_tensor *t);
/* As lop_contract, all of it at once. */
lop_status lop_contract_whole(lop_ctx *ctx, const lop_spec *spec, lop_contraction **out,
                              lop_err *err) LOP_MUST_CHECK;
/* Sizes, operands and result without repeated, broadcast and unit axes. */
lop_status lop_contract_read(lop_contract_work *w) LOP_MUST_CHECK;
/* Fills w->pair. */
lop_status lop_contract_order(lop_contract_work *w) LOP_MUST_CHECK;
/* contract_windows.c: makes the pairs in w->pair cheaper, whose arrays have `labels` (2 noperand).
 */
lop_status lop_contract_windows(lop_contract_work *w, lop_labels *labels) LOP_MUST_CHECK;

/* Of a subset of some arrays: the labels of what is made of it, what that costs, and which part of
 * it is made first. */
typedef struct lop_subset {
    lop_labels labels;
    double cost;
    uint32_t left;
} lop_subset;
/* Elements of an array of these labels. */
double lop_contract_volume(const lop_contract_work *w, const lop_labels *s);
/* Seconds for two arrays of these labels, of which `kept` stay. */
double lop_contract_price(const lop_contract_work *w, const lop_labels *a, const lop_labels *b,
                          const lop_labels *kept);
/* The cheapest tree of n arrays, of which `out` is to be left, into of[2^n]. */
void lop_contract_search(const lop_contract_work *w, const lop_labels *leaf, int n,
                         const lop_labels *out, lop_subset *of);
/* Steps for c = a b over all labels that c has not (b NULL: sums of a). c->n < 0: an array of this
 * function's layout, its labels `kept`, is made. */
lop_status lop_contract_pair(lop_contract_work *w, const lop_tensor *a, const lop_tensor *b,
                             lop_tensor *c, const lop_labels *kept) LOP_MUST_CHECK;
/* A temporary of so many elements. */
lop_status lop_contract_slot(lop_contract_work *w, int64_t count, int *slot) LOP_MUST_CHECK;
/* One step more, with its loops. */
lop_status lop_contract_step_add(lop_contract_work *w, const lop_contract_step *step,
                                 const lop_loop *loop) LOP_MUST_CHECK;

/* contract_price.c: seconds of one product of matrices; adds: to what is there; `all`: bytes of the
 * result of all products. Of each of a batch of tiny ones. */
double lop_contract_gemm_seconds(lop_dtype dt, const lop_contract_step *g, bool adds, double all);
double lop_contract_tiny_seconds(lop_dtype dt, const lop_contract_step *g);
/* Are rows or columns of such a matrix next to each other in memory, as BLAS takes it? */
bool lop_contract_simple(int64_t m, int64_t n, int64_t rs, int64_t cs);
/* Would lopk_gemm take loops of our own? */
bool lop_contract_own_loops(lop_dtype dt, const lop_contract_step *g);

/* contract_nest.c: fills step and loop (up to 2 LOP_MAXAXES + 2) for a nest over `n` loops. */
void lop_contract_nest(lop_contract_step *step, lop_loop *loop, const lop_loop *all, int n,
                       lop_dtype dt);

#endif
