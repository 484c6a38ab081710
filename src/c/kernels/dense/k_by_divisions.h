/* k_by_divisions.h: factors of matrices that have pivots below the normal numbers. LAPACK
 * multiplies by the pivots' reciprocals, which are inf there, and OpenBLAS's getrf passes such
 * columns over: both look like factors. Only the four BLAS dtypes, column-major. All memory is
 * *borrowed*. Slower than LAPACK's; numbers as small as that are rare. */
#ifndef LOPK_BY_DIVISIONS_H
#define LOPK_BY_DIVISIONS_H

#include "base/buf.h"

/* Has LAPACK's LU of a matrix, in `f`, such a pivot before anything that is no number? A pivot that
 * is zero because there was nothing else in its column is none. */
bool lopk_lu_is_spoilt(const lop_mat *f);
/* The same of gbtrf's, by gbtrf's arguments. */
bool lopk_band_lu_is_spoilt(const lop_mat *ab, int64_t l, int64_t u);
/* Of lopk_ldl's D: NaN and inf count, as reciprocals may have made them. */
bool lopk_ldl_is_spoilt(const lop_mat *a, const void *e, const int64_t *ipiv);
/* Does a hold numbers below the square root of the normal ones? Zeros are none. */
bool lopk_has_faint(const lop_mat *a);
/* The power of two that brings the largest element of a near one; 0: it is no less. */
int lopk_below_one(const lop_mat *a);

/* As getrf, in panels, n^2 of their elements one at a time. */
lop_status lopk_lu_by_divisions(const lop_mat *a, int64_t *ipiv, int64_t *info) LOP_MUST_CHECK;
/* f <- the LU of a, whichever way it takes. */
lop_status lopk_lu_of(const lop_mat *f, const lop_mat *a, int64_t *ipiv,
                      int64_t *info) LOP_MUST_CHECK;
/* The upper triangle of f times 2^power. */
void lopk_shift_upper(const lop_mat *f, int power);
/* As gbtrf. */
void lopk_band_lu_by_divisions(const lop_mat *ab, int64_t l, int64_t u, int64_t *ipiv,
                               int64_t *info);
/* As lopk_ldl, by pivots that are searched until none stands out in its row and column (rook
 * pivoting), so that L is bounded: Ashcraft, Grimes, Lewis 1998; LAPACK's sytf2_rk. work: 4 n
 * elements. */
lop_status lopk_ldl_by_divisions(const lop_mat *a, bool hermitian, void *e, int64_t *ipiv,
                                 void *work, int64_t *info) LOP_MUST_CHECK;

#endif
