/* sparse_updates.h: A = E + c U M^-1 V^H of a diagonal E and sparse others, as sparse_updates.c
 * reads it; its derivatives by M: covered_inverses.c. */
#ifndef LOP_SPARSE_UPDATES_H
#define LOP_SPARSE_UPDATES_H

#include "builds.h"

enum { LOP_SEEN_FACTORS = 12 };

typedef struct lop_seen {
    const lop_maker *mk;
    const lop_node *sum, *m;               /* borrowed */
    const lop_node *u, *vh, *e, *over, *h; /* owned; u and vh NULL: the identity */
    const lop_node *x;                     /* owned: H = M + with x */
    lop_coef c, with;
} lop_seen;

/* To be closed whatever comes back. NOMATCH: the sum is not so. */
lop_status lop_seen_read(const lop_maker *mk, const lop_node *sum, lop_dtype dt,
                         lop_seen *s) LOP_MUST_CHECK;
void lop_seen_close(lop_seen *s);

/* The factors of a product from the left, borrowed, *c multiplied by their multiples; 0: more than
 * LOP_SEEN_FACTORS. The product of factors from..to - 1, NULL of none, owned. */
int lop_seen_factors(const lop_node *a, const lop_node **f, lop_coef *c);
lop_status lop_seen_product(const lop_maker *mk, const lop_node *const *f, int from, int to,
                            const lop_node **out) LOP_MUST_CHECK;

#endif
