/* k_cholesky_update.h: Cholesky factors of narrow bands, and rank-one updates of a factor. All
 * memory is *borrowed*; floats only. */
#ifndef LOPK_CHOLESKY_H
#define LOPK_CHOLESKY_H

#include "base/buf.h"

/* a (n x n, column-major, the lower triangle alone is read and written) <- the factor of
 * L L^H + v v^H, or (down) of L L^H - v v^H; the diagonal must be real and positive. v (n, in a
 * row) is destroyed; work: 2 n elements of a's dtype. LOP_SINGULAR: *info is j > 0 where column j's
 * diagonal would not be positive and finite, -1 where the difference is not positive definite; a
 * then holds anything. 4 n^2 flops up, 6 n^2 down. */
lop_status lopk_cholup(const lop_mat *a, void *v, bool down, void *work,
                       int64_t *info) LOP_MUST_CHECK;

/* Cholesky in place of a band's lower half: ab (w + 1) x n, column-major, A[j + t, j] in row t;
 * what lies beyond the matrix is not written. By own loops for few diagonals, else by LAPACK's
 * pbtrf: LOP_OVERFLOW where a size passes its ints. *info j > 0: the leading minor of order j is
 * not positive (LOP_SINGULAR). n w^2 flops. */
lop_status lopk_band_cholesky(const lop_mat *ab, int64_t *info) LOP_MUST_CHECK;

#endif
