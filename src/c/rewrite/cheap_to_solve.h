/* cheap_to_solve.h: matrices, and sums of them, that are solved with by how they are built. */
#ifndef LOP_CHEAP_TO_SOLVE_H
#define LOP_CHEAP_TO_SOLVE_H

#include "expr/op.h"

/* The terms of a tree of sums, borrowed, from the left; 0: there are more than `most`, or than 8.
 */
int lop_terms_of(const lop_node *sum, const lop_node **term, int most);
/* Does an inverse stand in it, within sums, products, multiples and views? True below `depth`. */
bool lop_holds_inverse(const lop_node *a, int depth);
/* A convolution of floats that wraps round: a Circulant of few numbers. */
bool lop_is_circular(const lop_node *a);
/* A Circulant by what it is made of: circulants, convolutions that wrap round of one shape and
 * identities, their multiples, views, sums, products and inverses of what holds none, without
 * batch? *sizes, NULL at first: those of its levels. */
enum { LOP_CIRCULANT_DEPTH = 20, LOP_CIRCULANT_NODES = 200 };
bool lop_is_circulant(const lop_node *a, int depth, const lop_node **sizes);
/* A sum of floats that is one? */
bool lop_is_circulant_sum(const lop_node *a);

/* Is the factor of that band at most half as large as that of the dense form, and is there none
 * that keeps to what is stored? */
bool lop_band_is_narrow(const lop_node *a, lop_band b);

/* One that is cheap to solve with, beside what is of low rank: Woodbury's formula is for it. */
bool lop_solved_as_update(const lop_node *a);

#endif
