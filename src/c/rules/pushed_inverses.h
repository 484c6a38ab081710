/* pushed_inverses.h: A = E + sum_i U_i V_i^H of a diagonal E and sparse sides, as pushed_inverses.c
 * reads it; of products with two of its inverses: pushed_pairs.c. */
#ifndef LOP_PUSHED_INVERSES_H
#define LOP_PUSHED_INVERSES_H

#include "builds.h"

enum { LOP_PUSHED_TERMS = 8 };

typedef struct lop_pushed {
    const lop_maker *mk;
    const lop_node *sum;                      /* borrowed: A */
    const lop_node *side[LOP_PUSHED_TERMS];   /* owned: U_i */
    const lop_node *across[LOP_PUSHED_TERMS]; /* owned: V_i^H with its multiple */
    const lop_node *e, *over, *u, *vh, *s;    /* owned: E, E^-1, U, V^H, S */
    int terms;
} lop_pushed;

/* A Hermitian. To be closed whatever comes back. NOMATCH: the sum is not so. */
lop_status lop_pushed_read(const lop_maker *mk, const lop_node *sum, lop_dtype dt,
                           lop_pushed *p) LOP_MUST_CHECK;
void lop_pushed_close(lop_pushed *p);
/* E^-1 (v - U S^-1 V^H E^-1 v), of a lop_pushed. Owned in *out. */
lop_status lop_pushed_solution(const void *of, const lop_node *v,
                               const lop_node **out) LOP_MUST_CHECK;
/* The operators as a Block of so many rows and columns of them. Owned in *out. */
lop_status lop_pushed_joined(const lop_pushed *p, const lop_node *const *part, int rows, int cols,
                             const lop_node **out) LOP_MUST_CHECK;
/* y, of as many rows as U_own has columns (NULL: the identity), in these rows of all of U's; with
 * `through` times E^-1 U. Owned in *out. */
lop_status lop_pushed_rows(const lop_pushed *p, int own, bool through, const lop_node *y,
                           const lop_node **out) LOP_MUST_CHECK;

#endif
