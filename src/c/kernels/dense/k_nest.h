/* k_nest.h: the two innermost loops of a nest over arrays of any strides: copies, sums, products of
 * elements, sums of these. Planes of what no product of matrices covers, and what packs operands.
 *
 * Strides in elements, of any sign, 0 too; the four BLAS dtypes. No allocation, no threads. */
#ifndef LOPK_NEST_H
#define LOPK_NEST_H

#include "base/buf.h"

/* One loop: how many, and how far c, a and b move at each. `sum`: c stays, and is added to. */
typedef struct lopk_loop {
    int64_t size, c, a, b;
    bool sum;
} lopk_loop;

/* c (+)= a b, or a where b is NULL, over the loops `outer` and `inner`; accumulate false: what lies
 * in c is not read. c overlaps neither. `tiles`: the two loops go in square tiles, since memory
 * runs along one here and along the other there. */
void lopk_nest(void *c, const void *a, const void *b, const lopk_loop *outer,
               const lopk_loop *inner, lop_dtype dt, bool accumulate, bool tiles);

#endif
