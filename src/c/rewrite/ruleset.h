/* ruleset.h: the rule table compiled; for ruleset.c, rewrite.c, user_rule_search.c and rule_trial.c
 * alone. */
#ifndef LOP_RULESET_H
#define LOP_RULESET_H

#include "rewrite.h"
#include "expr/sexpr.h"

typedef struct lop_compiled {
    const lop_op *head;   /* the first child's op on the left, NULL when a hole */
    bool has_right, gone; /* gone: unregistered; the place stays its name's */
    bool cheaper;         /* taken only where the plan is cheaper by it */
    const lop_rule *rule; /* a user's: in `own` */
    lop_text left, right;
    int64_t fired;
    struct lop_own *own;
} lop_compiled;

/* What is asked of a row first, side by side with the others: most rows say no here. */
typedef struct lop_quick {
    const lop_op *head;
    int next[2]; /* the next row with this root op in the list of its phase, [1] in that of
                  * LOP_CLOSE; -1: none */
} lop_quick;

/* A user's rule and its texts. */
typedef struct lop_own {
    lop_rule rule;
    char text[];
} lop_own;

struct lop_rules {
    lop_ctx *ctx;
    lop_compiled *row;
    lop_quick *quick;
    int n, room, nops, explore; /* explore: how many rows of that phase there are */
    int *first[LOP_NPHASE];     /* by phase and op id */
    unsigned char *close;       /* by op, left kind, right kind: is there a close row? */
    const unsigned char *off;   /* borrowed: a bit a row; those set are switched off */
    int noff;                   /* bytes of it */
};

/* What a multiple of an identity is written by; NULL: the kind is none. */
static inline const lop_op *lop_multiples_of(const lop_op *op) {
    return op == &lop_op_identity ? &lop_op_scaled : op == &lop_op_eye ? &lop_op_scale : NULL;
}

/* Is it a head with any number of operands, alone, as (kron)? */
static inline bool lop_names_alone(const lop_term *t) {
    return t->op && t->n == 0 && t->op->max != t->op->min;
}
/* May its one operand stand for many, as that of (kron (view@m ?*))? */
static inline bool lop_takes_each(const lop_term *t) {
    return t->op && t->n == 1 && t->op->max != t->op->min;
}

/* The row behind row i in the list of that phase and of its root. */
static inline int lop_row_after(const lop_rules *r, lop_phase phase, int i) {
    return r->quick[i].next[phase == LOP_CLOSE];
}

static inline bool lop_is_off(const lop_rules *r, int i) {
    return i / 8 < r->noff && (r->off[i / 8] >> i % 8 & 1);
}

static inline bool lop_may_match(const lop_op *head, const lop_node *node) {
    return !head || (node->n > 0 && node->child[0]->op == head);
}

/* rewrite.c: does the left side fit? Its guard is not asked. */
bool lop_rule_match(const lop_compiled *row, const lop_node *node, lop_match *m);
/* Row i alone, at the root of `node`. Owned in *out; NOMATCH with a note why. */
lop_status lop_rule_at(const lop_rules *r, int i, const lop_node *node, const lop_maker *mk,
                       const lop_node **out) LOP_MUST_CHECK;
/* The right side's text with what the left side bound. Owned. */
lop_status lop_instantiate(const lop_text *t, int id, const lop_match *m, const lop_maker *mk,
                           const lop_node **out) LOP_MUST_CHECK;

#endif
