/* coefficients.h: coefficients as arguments of a plan.
 *
 *   written c A --sign--> the class of c, not its value --look up--> a plan made for another c
 *               --bind--> the numbers in its steps, computed again from this c
 *
 * While such a plan is made, each coefficient of the expression that is not 0, 1 or -1 is a
 * *source*: its attribute carries the name (`num`) of an entry in a table, and what rules compute
 * of it is an entry with the operation that made it. What rules decide by a value is a *condition*.
 * The plan keeps both. For other values the entries are computed by the same operations, and where
 * a condition comes out otherwise the plan does not fit: what is run is always what would be
 * planned for these values. So rules compute and decide through the functions of this file; a rule
 * that needs the value as such fixes it (lop_coef_fix).
 *
 * With `num` 0 a coefficient is a constant, and all of this costs a comparison. */
#ifndef LOP_COEFFICIENTS_H
#define LOP_COEFFICIENTS_H

#include "node.h"

/* A coefficient taken out of its attribute. Whether it is real is the same for all values: of
 * sources by their class, of what is made of complex ones by a condition. */
typedef struct lop_coef {
    double re, im;
    int num;
} lop_coef;

typedef enum lop_coef_is {
    LOP_COEF_FINITE,
    LOP_COEF_ONE,
    LOP_COEF_MINUS_ONE,
    LOP_COEF_ZERO,
    LOP_COEF_POSITIVE,
    LOP_COEF_NEGATIVE,
    LOP_COEF_MODEST, /* magnitude strictly between 2^-20 and 2^20 */
    LOP_COEF_NEAR,   /* the power of two of its magnitude is between -100 and 100 */
    LOP_COEF_SAME,   /* as another one */
    LOP_COEF_FIXED,  /* as it was */
    LOP_COEF_REAL,
} lop_coef_is;

enum { LOP_SOURCES = 1 << 12, LOP_ENTRIES = 1 << 14, LOP_CONDITIONS = 1 << 14 }; /* at most */

typedef struct lop_number {
    double re, im;
} lop_number;
typedef struct lop_entry {
    char how; /* 's'ource, 'c'onstant, or what was done with entries a and b: * + /, ~ conjugates a
               */
    int16_t a, b;
    lop_number value;
} lop_entry;
typedef struct lop_condition {
    lop_coef_is what;
    bool holds;
    int16_t a, b;
} lop_condition;

typedef struct lop_coef_places { /* one plus the place of each, by open addressing */
    int *at;
    int room;
} lop_coef_places;

/* Entry 0 is not used. Sources come first, from 1 on, in the order of their first appearance. */
typedef struct lop_coefs {
    lop_ctx *ctx;
    int sources, entries, conditions, entry_room, condition_room;
    bool full;  /* no room was left: the plan holds for these values alone */
    bool again; /* of a plan that is made only to be compared: rules are not counted */
    lop_entry *entry;
    lop_condition *condition;
    lop_coef_places by_entry, by_condition;
} lop_coefs;
lop_coefs *lop_coefs_new(lop_ctx *ctx); /* owned; NULL: no memory */
void lop_coefs_free(lop_coefs *c);      /* takes NULL */

/* May this node's coefficient be a source? */
bool lop_coef_may_vary(const lop_node *node);
/* The expression with its coefficients of the `n` values in `source` named, in a new ctx->coefs;
 * where `other` is not NULL they get these values instead. Owned. */
lop_status lop_coefs_name(lop_ctx *ctx, const lop_number *source, const lop_number *other, int n,
                          const lop_node *root, const lop_node **out, lop_err *err) LOP_MUST_CHECK;
/* The entries' values for other sources, into value[entries], where `source` may lie as value + 1;
 * false: they do not fit the plan. */
bool lop_coefs_for(const lop_coefs *c, const lop_number *source, lop_number *value);
bool lop_number_equal(lop_number a, lop_number b); /* bit by bit */

static inline lop_coef lop_coef_const(double re, double im) { return (lop_coef){re, im, 0}; }
static inline lop_coef lop_coef_of(const lop_attr *a) { return (lop_coef){a->re, a->im, a->num}; }
/* A weak float or complex coefficient of that value. */
lop_attr lop_coef_attr(lop_coef c);
/* Puts another value into an attribute; its integers stay, which may be a step's mode. */
void lop_coef_put(lop_attr *a, lop_coef c);

bool lop_coef_test(lop_ctx *ctx, lop_coef c, lop_coef_is what);
/* Are both the same number? */
bool lop_coef_same(lop_ctx *ctx, lop_coef a, lop_coef b);
lop_coef lop_coef_times(lop_ctx *ctx, lop_coef a, lop_coef b);
lop_coef lop_coef_plus(lop_ctx *ctx, lop_coef a, lop_coef b);
lop_coef lop_coef_over(lop_ctx *ctx, lop_coef a, lop_coef b);
lop_coef lop_coef_conj(lop_ctx *ctx, lop_coef c);
/* From here on a constant: the plan is for this value alone. */
lop_coef lop_coef_fix(lop_ctx *ctx, lop_coef c);

#endif
