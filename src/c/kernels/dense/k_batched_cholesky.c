/* k_batched_cholesky.c: Cholesky of many small matrices, LOPK_STACK of them side by side.
 *
 * One matrix of 20 rows is all latency: a root, a division, short loops, a call of LAPACK. Eight of
 * them in the lanes of vectors do the same work in the time of one. Each lane has its own numbers
 * from first to last, so its bits do not depend on its neighbours. n^3 / 3 flops a matrix. The
 * factors stay as they are worked on, so that solves read them without another turn. */
#include "k_batched_cholesky.h"

#include "kernels/common/k_clones.h"

#include <math.h>
#include <string.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-math-errno")
#endif

enum { LOPK_VECTOR = 32, LOPK_WIDE = 4 }; /* bytes; vectors of columns at once */

#define LOPK_TEMPLATE "kernels/dense/k_batched_cholesky_per_dtype.h"
#include "kernels/common/k_each.h"

unsigned lopk_stack_factor(int used, void *f, const lop_mat *a, int64_t a_step) {
    LOP_ASSERT(lopk_stack_takes(a->m, a->dt) && used >= 1 && used <= LOPK_STACK);
    return a->dt == LOP_f64 ? stack_factor_f64(used, f, a, a_step)
                            : stack_factor_f32(used, f, a, a_step);
}
void lopk_stack_solve(int used, unsigned wanted, const void *f, const lop_mat *y, int64_t y_step,
                      const lop_mat *b, int64_t b_step) {
    LOP_ASSERT(lopk_stack_takes(y->m, y->dt) && used >= 1 && used <= LOPK_STACK && b->n == y->n);
    if (y->dt == LOP_f64)
        stack_solve_f64(used, wanted, false, f, y, y_step, b, b_step);
    else
        stack_solve_f32(used, wanted, false, f, y, y_step, b, b_step);
}
void lopk_stack_squares(int used, unsigned wanted, const void *f, const lop_mat *y, int64_t y_step,
                        const lop_mat *b, int64_t b_step) {
    LOP_ASSERT(lopk_stack_takes(b->m, y->dt) && used >= 1 && used <= LOPK_STACK && b->n == y->m);
    if (y->dt == LOP_f64)
        stack_solve_f64(used, wanted, true, f, y, y_step, b, b_step);
    else
        stack_solve_f32(used, wanted, true, f, y, y_step, b, b_step);
}
