/* signature.h: a written expression as words: all of it but its arrays and the values of its
 * coefficients.
 *
 *   written node --> words (kinds, sizes, dtypes; leaves and coefficients by first appearance,
 *                    coefficients by their class: expr/coefficients.h; a node that comes again as
 *                    the place of its words)
 *
 * What is small lies in the signature itself, on the caller's stack; of more it takes memory, and
 * finds what has come before by tables. Cost: some 10 ns a node. Under the caller's lock. */
#ifndef LOP_SIGNATURE_H
#define LOP_SIGNATURE_H

#include "expr/coefficients.h"

enum {
    LOP_SIGN_FEW = 24, /* leaves, numbers and nodes that may come again, without memory */
    LOP_SIGN_SHORT = 256,
    LOP_SIGN_WORDS = 1 << 17, /* and at most */
    LOP_SIGN_LEAVES = 1 << 14,
    LOP_SIGN_SHARED = 1 << 16
};

/* Numbers 1, 2, ... of what has come before, by open addressing; no room: a walk finds them. */
typedef struct lop_places {
    int *at;
    int room;
} lop_places;

typedef struct lop_sign_seen { /* a node that may come again, and where its words stand */
    const lop_node *node;
    int at;
} lop_sign_seen;

typedef struct lop_sign {
    lop_ctx *ctx;
    uint64_t hash;
    int n, leaves, numbers, shared;
    int word_room, leaf_room, number_room, seen_room, value_room;
    bool by_class; /* set by the caller: coefficients are not part of it but for their class */
    uint64_t *word;
    uint64_t *serial;    /* of the array leaves, by first appearance */
    lop_number *number;  /* those coefficients, by first appearance, each value once */
    lop_sign_seen *seen; /* nodes that something else refers to */
    lop_number *value;   /* of a plan's numbers, for these coefficients (lop_plans_get) */
    lop_places by_serial, by_number, by_node;
    lop_sign_seen few_seen[LOP_SIGN_FEW];
    lop_number few_number[LOP_SIGN_FEW], few_value[LOP_SIGN_FEW];
    uint64_t few_serial[LOP_SIGN_FEW], few_word[LOP_SIGN_SHORT];
} lop_sign;

/* Opened, it has to be closed. It must not be moved meanwhile. */
void lop_sign_open(lop_sign *s, lop_ctx *ctx);
void lop_sign_close(lop_sign *s);
/* False: no room, or no memory for more. Words that the caller adds (what is asked for, the config)
 * come first. */
bool lop_sign_word(lop_sign *s, uint64_t word);
bool lop_sign_node(lop_sign *s, const lop_node *root);
/* The number of a leaf by first appearance; -1: it is not in the expression. */
int lop_sign_leaf(const lop_sign *s, uint64_t serial);
/* Room for so many in `value`; false: no memory. */
bool lop_sign_values(lop_sign *s, int n);

#endif
