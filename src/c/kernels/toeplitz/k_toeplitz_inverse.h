/* k_toeplitz_inverse.h: the inverse of a square Toeplitz or Hankel matrix by its first and last
 * columns. */
#ifndef LOPK_TOEPLITZ_INVERSE_H
#define LOPK_TOEPLITZ_INVERSE_H

#include "base/buf.h"

/* What T is, and its inverse's columns: n x 1 each, x and y of the inverse's dtype. */
typedef struct lopk_toep_inverse {
    const lop_mat *x, *y; /* the inverse's first and last columns */
    const lop_mat *c, *r; /* T's first column and row; of a Hankel matrix both are its h */
    bool hankel;
    bool own; /* r is the adjoint of c but for c[0] */
} lopk_toep_inverse;

/* Bytes of scratch; 0 where there are no so many. */
size_t lopk_toep_inverse_scratch(int64_t n, lop_dtype dt);
/* b (f32, f64, c64, c128) <- the inverse, computed in double precision. False where a product with
 * it shows a residual that is not small: b then holds anything. Flops: 8 n^2, complex 32 n^2. */
bool lopk_toep_inverse_fill(const lop_mat *b, const lopk_toep_inverse *t,
                            void *scratch) LOP_MUST_CHECK;

#endif
