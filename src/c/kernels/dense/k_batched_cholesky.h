/* k_batched_cholesky.h: Cholesky of many small matrices at once, float32 and float64. */
#ifndef LOPK_STACK_H
#define LOPK_STACK_H

#include "base/buf.h"

enum {
    LOPK_STACK = 8,      /* matrices side by side */
    LOPK_STACK_MAX = 32, /* rows of each at most */
};

/* Do batches of n x n matrices of this dtype go side by side? */
static inline bool lopk_stack_takes(int64_t n, lop_dtype dt) {
    return n > 0 && n <= LOPK_STACK_MAX && (dt == LOP_f64 || dt == LOP_f32);
}
/* Bytes of the factors of LOPK_STACK of them: the triangle by rows, of each element all lanes; a
 * multiple of 64. */
static inline int64_t lopk_stack_bytes(int64_t n, lop_dtype dt) {
    return n * (n + 1) / 2 * LOPK_STACK * (int64_t)lop_dtype_size(dt) / 64 * 64 + 64;
}
/* f, aligned to 64, <- the Cholesky factors of `used` (1 to LOPK_STACK) matrices of any strides,
 * a_step elements apart, from their upper triangles. Bit l of the result: matrix l (for l >= used
 * the last one) is not positive definite, and its factor holds anything. */
unsigned lopk_stack_factor(int used, void *f, const lop_mat *a, int64_t a_step);
/* y <- (L L^T)^-1 b of each whose bit in `wanted` is set (the others' y stays as it is), any
 * strides; y may be b, and b_step 0. Of one the lanes are copies, as lopk_stack_factor leaves them:
 * its columns go side by side. By the reciprocals of the pivots, which are roots: they have them.
 */
void lopk_stack_solve(int used, unsigned wanted, const void *f, const lop_mat *y, int64_t y_step,
                      const lop_mat *b, int64_t b_step);
/* y, a column, <- the sums of squares of the columns of L^-1 b: b^T (L L^T)^-1 b's diagonal. */
void lopk_stack_squares(int used, unsigned wanted, const void *f, const lop_mat *y, int64_t y_step,
                        const lop_mat *b, int64_t b_step);

#endif
