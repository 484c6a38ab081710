/* k_small_lu.h: LU of one small real matrix. */
#ifndef LOPK_SMALL_LU_H
#define LOPK_SMALL_LU_H

#include "base/buf.h"

/* As lopk_getrf, of a small real matrix. False: it is none, or has a pivot that is NaN or below the
 * normal numbers; nothing is done then. */
bool lopk_small_getrf(const lop_mat *a, int64_t *ipiv);
/* As lopk_getrs with 'N', of a factor whose pivots have reciprocals (lopk_diag_is_tiny), one right
 * side. False: it is none of a small real matrix. */
bool lopk_small_getrs(const lop_mat *a, const int64_t *ipiv, const lop_mat *b);

#endif
