/* cheap_to_solve.h: matrices, and sums of them, that are solved with by how they are built. */
#ifndef LOP_CHEAP_TO_SOLVE_H
#define LOP_CHEAP_TO_SOLVE_H

#include "expr/op.h"

/* The terms of a tree of sums, borrowed, from the left; 0: there are more than `most`, or than 8.
 */
int lop_terms_of(const lop_node *sum, const lop_node **term, int most);
/* Circulants of one shape and multiples of the identity, of floats without batch? */
bool lop_is_circulant_sum(const lop_node *a);

/* Is the factor of that band at most half as large as that of the dense form, and is there none
 * that keeps to what is stored? */
bool lop_band_is_narrow(const lop_node *a, lop_band b);

#endif
