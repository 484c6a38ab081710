/* factor.h: the factors that solves and determinants share (made in op_action.c).
 *
 * A derived value: the column-major factor, then the row exchanges. A zero pivot is no failure
 * here: whoever divides by it looks. By Cholesky: one number more, not 0 where it failed and an LU
 * factor stands in its place. */
#ifndef LOP_FACTOR_H
#define LOP_FACTOR_H

#include "core/op.h"

/* Where the row exchanges begin. */
static inline size_t lop_factor_bytes(int64_t n, lop_dtype dt) {
    return ((size_t)n * (size_t)n * lop_dtype_size(dt) + 63) & ~(size_t)63;
}
/* The slot of the factor of slot `a`, n x n of dtype dt; -1 with the status in *st. */
int lop_emit_lu(lop_emit *e, int64_t n, lop_dtype dt, int a, lop_status *st);
int lop_emit_cholesky(lop_emit *e, int64_t n, lop_dtype dt, int a, lop_status *st);

#endif
