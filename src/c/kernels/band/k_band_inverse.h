/* k_band_inverse.h: diagonals of the inverse of a band. All memory is *borrowed*. */
#ifndef LOPK_BAND_INVERSE_H
#define LOPK_BAND_INVERSE_H

#include "base/buf.h"

/* A of n x n, l diagonals below the main one and u above; at[l + k] is diagonal k as a column, of
 * any stride. `half`: A is Hermitian, and the diagonals above (UPPER) or below (LOWER) are read
 * alone. `adjoint`: it is Hermitian as it lies. */
enum { LOPK_WHOLE, LOPK_UPPER, LOPK_LOWER };
typedef struct lopk_lines {
    int64_t n, l, u;
    lop_dtype dt;
    const lop_mat *at;
    int half;
    bool adjoint;
} lopk_lines;

size_t lopk_band_inverse_bytes(int64_t n, int64_t l, int64_t u, lop_dtype dt); /* of work */
/* y <- diagonal k of A^-1, -u <= k <= l. LOP_SINGULAR: it is not known to be accurate, or, where
 * one half is read, A is not positive definite; y holds anything then. *rcond: no less than the
 * reciprocal condition number. Of y with l + u + 1 columns, more than one: all of them, the
 * diagonals l, ..., -u, element (j - k, j) of diagonal k in row j; zeros where they do not reach.
 */
lop_status lopk_band_inverse_diagonal(const lop_mat *y, int64_t k, const lopk_lines *A, void *work,
                                      double *rcond) LOP_MUST_CHECK;

size_t lopk_band_between_bytes(int64_t n, int64_t l, int64_t u, lop_dtype dt); /* of work */
/* y <- diagonal k of A^-1 X A^-1, -u <= k <= l; X has A's n, l and u. As the one above. */
lop_status lopk_band_between_diagonal(const lop_mat *y, int64_t k, const lopk_lines *A,
                                      const lopk_lines *X, void *work,
                                      double *rcond) LOP_MUST_CHECK;

#endif
