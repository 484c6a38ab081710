/* column_norm.h: what the checks of solutions measure with. */
#ifndef LOP_COLUMN_NORM_H
#define LOP_COLUMN_NORM_H

#include "base/buf.h"

/* The 2-norm of column j of floats: by plain squares where those are in range, else scaled, so that
 * it neither over- nor underflows. NaN stays. */
double lop_column_norm(const lop_mat *a, int64_t j);
/* Of columns `from` on, at most LOP_NORMS of them and those that a has; the bits are the same. One
 * pass where they lie side by side in the rows. */
enum { LOP_NORMS = 64 };
void lop_column_norms(const lop_mat *a, int64_t from, double *out);
/* The rounding unit of a dtype: half of its epsilon. */
double lop_rounding(lop_dtype dt);

#endif
