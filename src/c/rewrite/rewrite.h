/* rewrite.h: rules compiled, matched and driven to a fixed point; nodes interned in a plan's table.
 *
 * Three phases of the rule table (rules.c): `close` at construction (one look-up on operation, left
 * kind, right kind; no computing); at first need `first` (on the operator of an action, before the
 * action is taken apart: structural zeros) and `push` (actions move down to the kinds). Rows of
 * `both` are asked at construction and in `push`. A fourth, `explore`, is for users' rules: tried
 * on the written expression, taken by price (user_rule_search.h). */
#ifndef LOP_REWRITE_H
#define LOP_REWRITE_H

#include "expr/coefficients.h"
#include "expr/op.h"

typedef enum lop_phase {
    LOP_CLOSE,
    LOP_FIRST,
    LOP_PUSH,
    LOP_EXPLORE,
    LOP_NPHASE,
    LOP_BOTH = LOP_NPHASE, /* of rows alone: LOP_CLOSE and LOP_PUSH */
} lop_phase;

enum { LOP_HOLES = 26 };

/* What a pattern bound: ?a.. to nodes (borrowed), @a.. to attributes; `root` the node matched. */
typedef struct lop_match {
    const lop_node *root;
    const lop_node *node[LOP_HOLES];
    lop_attr attr[LOP_HOLES];
    const lop_node *all[2]; /* those of any number of operands that were named alone: ?*, ?+ */
    int nall;
} lop_match;

typedef struct lop_tab lop_tab;
typedef struct lop_trace lop_trace;
typedef struct lop_rules lop_rules;

/* Where new nodes are made: interned when `tab` is there, plain otherwise. */
typedef struct lop_maker {
    lop_ctx *ctx;
    lop_tab *tab;
    lop_err *err;
    lop_trace *trace;       /* NULL, or where what the planner chose is written down */
    const lop_rules *rules; /* NULL, or those at work: what lop_push_once asks */
} lop_maker;
/* One step on `node` by the first row of the phase `push` that fits it at its root; `named`: by one
 * that names the head of its first child. Owned in *out; NOMATCH also where mk->rules is NULL. */
lop_status lop_push_once(const lop_maker *mk, const lop_node *node, bool named,
                         const lop_node **out) LOP_MUST_CHECK;
/* Closes `node` as lop_close does when it is written: for what becomes one kind within a plan.
 * Owned in *out; NOMATCH also where mk->rules is NULL. */
lop_status lop_close_once(const lop_maker *mk, const lop_node *node,
                          const lop_node **out) LOP_MUST_CHECK;
/* Owned. As lop_node_make. */
lop_status lop_make_op(const lop_maker *mk, const lop_op *op, const lop_attr *attr, int n,
                       const lop_node *const *child, const lop_node *like,
                       const lop_node **out) LOP_MUST_CHECK;
lop_status lop_make(const lop_maker *mk, const char *op, const lop_attr *attr, int n,
                    const lop_node *const *child, const lop_node *like,
                    const lop_node **out) LOP_MUST_CHECK;
/* `op` of a and b (b may be NULL). An expression that is narrower than the result is cast, so that
 * the expression as a whole can be computed in any wider dtype: int8 sums must not wrap inside a
 * float one. */
lop_status lop_join(const lop_maker *mk, const lop_op *op, const lop_attr *attr, const lop_node *a,
                    const lop_node *b, const lop_node **out) LOP_MUST_CHECK;
lop_status lop_make1(const lop_maker *mk, const lop_op *op, const lop_attr *attr, const lop_node *a,
                     const lop_node **out) LOP_MUST_CHECK;
lop_status lop_make2(const lop_maker *mk, const lop_op *op, const lop_attr *attr, const lop_node *a,
                     const lop_node *b, const lop_node **out) LOP_MUST_CHECK;

/* Which rows of a root are asked first. In a tier those are whose left side names more heads. */
typedef enum lop_tier {
    LOP_VETO = -2, /* dtypes, rank, no rows: whatever the operand is */
    LOP_WHOLE,     /* an expression as a whole, before it is taken apart by the kinds in it */
    LOP_OF_KIND,   /* 0: of the kinds that the left side names */
    LOP_INFERRED,  /* what follows from how it is written */
    LOP_GENERIC,   /* of any kind, by what is assumed or known */
    LOP_BY_DENSE,  /* the dense form */
} lop_tier;

/* One row of the table. Text on both sides, the notation of plan_print.h with holes; `build` in
 * place of `right` where the right side is computed. `when` is a named guard. */
typedef struct lop_rule {
    const char *name;
    lop_phase phase;
    const char *left, *right;
    lop_truth (*when)(const lop_match *m);
    lop_status (*build)(const lop_match *m, const lop_maker *mk, const lop_node **out);
    const char *source;
    lop_tier tier;
} lop_rule;

extern const lop_rule lop_rule_table[];
extern const int lop_rule_count;

/* Compiles `table` (borrowed); extra rows may be added by tests and users before use. Owned. */
lop_status lop_rules_new(lop_ctx *ctx, const lop_rule *table, int count, lop_rules **out,
                         lop_err *err);
void lop_rules_free(lop_rules *rules);
int lop_rules_count(const lop_rules *rules);
const lop_rule *lop_rules_at(const lop_rules *rules, int i);
int64_t lop_rules_fired(const lop_rules *rules, int i); /* counts since the start, under the lock */

/* Users' rules, beside the table's. Under the lock, with no plan being made. */
enum { LOP_RULES_MOST = 2048 };
/* Copies the texts (right side given). PARSE, DOMAIN (the name is taken): nothing is changed.
 * `cheaper`: taken only where the plan costs less by it. Its place in *index (may be NULL). */
lop_status lop_rules_add(lop_rules *rules, const lop_rule *rule, bool cheaper, int *index,
                         lop_err *err) LOP_MUST_CHECK;
void lop_rules_remove(lop_rules *rules, int i); /* a user's; its place stays its name's */
int lop_rules_find(const lop_rules *rules, const char *name); /* -1: none; removed ones too */
bool lop_rules_is_gone(const lop_rules *rules, int i);
bool lop_rules_is_own(const lop_rules *rules, int i); /* a user's */
bool lop_rules_explore(const lop_rules *rules);       /* are there rows of that phase? */
bool lop_rules_cheaper(const lop_rules *rules, int i);
/* Rows whose bits are set in `off` (borrowed until the next call; NULL: none) do not act. */
void lop_rules_switch(lop_rules *rules, const unsigned char *off, int bytes);

/* Could a close rule fit op(left, right)? One look-up; right NULL for one operand. */
bool lop_may_close(const lop_rules *rules, const lop_op *op, const lop_op *left,
                   const lop_op *right);

enum { LOP_TRACE = 64, LOP_ORDER = 160, LOP_NOTES = 256, LOP_OTHERS = 16 };

/* For explanations: which rules fired or were refused, why, how often; what else was priced. */
typedef enum lop_why {
    LOP_WHY_FIRED,
    LOP_WHY_GUARD, /* its guard did not say TRUE */
    LOP_WHY_BUILD, /* the right side could not be made, or the planner left it as written */
    LOP_WHY_COST,  /* the plan was no cheaper by it */
    LOP_WHY_OFF    /* switched off */
} lop_why;
typedef struct lop_note {
    int16_t rule, why;
    int32_t count;
} lop_note;
typedef struct lop_other {
    int rule; /* that led there; -1: the planner's own */
    double seconds;
    char text[LOP_ORDER];
} lop_other;
typedef struct lop_trail {
    int n, nother;
    lop_note note[LOP_NOTES];
    lop_other other[LOP_OTHERS];
} lop_trail;
/* What does not fit is left out. */
void lop_trail_note(lop_trail *trail, int rule, lop_why why);
void lop_trail_other(lop_trail *trail, int rule, const char *text, double seconds);

/* The rules that fired, by index into the table, in order; at most LOP_TRACE are kept, all counted.
 */
struct lop_trace {
    int64_t count;
    int16_t rule[LOP_TRACE];
    /* The outermost product or sum that was planned: its association, flops as written, states
     * that were priced. */
    char order[LOP_ORDER];
    double written;
    int states;
    lop_trail *trail; /* NULL, or borrowed */
};

/* Closes op(child...) at once where a `close` rule says so: owned in *out, or NOMATCH. */
lop_status lop_close(const lop_rules *rules, lop_ctx *ctx, const lop_op *op, const lop_attr *attr,
                     int n, const lop_node *const *child, const lop_node **out, int *rule,
                     lop_err *err) LOP_MUST_CHECK;

struct lop_tab {
    lop_ctx *ctx;
    const lop_node **slot; /* open addressing */
    int64_t room, count;
};
void lop_tab_init(lop_tab *tab, lop_ctx *ctx);
void lop_tab_clear(lop_tab *tab);

/* The canonical form of `root` under the `push` rules: owned in *out. */
lop_status lop_rewrite(const lop_rules *rules, lop_tab *tab, const lop_node *root,
                       const lop_node **out, lop_trace *trace, lop_err *err) LOP_MUST_CHECK;

#endif
