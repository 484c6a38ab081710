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

/* -- small Cholesky factors, many at once (op_stack.c) */

bool lop_stack_fits(int64_t n, lop_dtype dt); /* are matrices of n x n so small? */
/* out <- a^-1 b, a declared positive definite: by Cholesky, by LU where that fails. n and dt
 * fit, here and below; `quiet`: a failure breaks no promise. */
lop_status lop_emit_stack_solve(lop_emit *e, int64_t n, lop_dtype dt, int a, int b, int out,
                                bool quiet) LOP_MUST_CHECK;
/* The slot of vectors that hold the diagonals of a's Cholesky factors, where `mask` is not set; -1
 * with the status in *st. */
int lop_emit_stack_roots(lop_emit *e, int64_t n, lop_dtype dt, int a, int mask, bool quiet,
                         lop_status *st);

#endif
