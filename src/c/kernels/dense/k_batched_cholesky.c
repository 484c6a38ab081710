/* k_batched_cholesky.c: Cholesky of many small matrices, LOPK_STACK of them side by side.
 *
 * One matrix of 20 rows is all latency: a root, a division, short loops, a call of LAPACK. Eight of
 * them in the lanes of vectors do the same work in the time of one. Each lane has its own numbers
 * from first to last, so its bits do not depend on its neighbours. n^3 / 3 flops a matrix. The
 * factors stay as they are worked on, so that solves read them without another turn. */
#include "k_batched_cholesky.h"

#include "kernels/common/k_clones.h"

#include <math.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-math-errno")
#endif

enum { LOPK_VECTOR = 32 }; /* bytes */

#define LOPK_TEMPLATE "kernels/dense/k_batched_cholesky_per_dtype.h"
#include "kernels/common/k_each.h"

unsigned lopk_stack_factor(int used, void *f, const lop_mat *a, int64_t a_step) {
    LOP_ASSERT(lopk_stack_takes(a->m, a->dt) && used >= 1 && used <= LOPK_STACK);
    return a->dt == LOP_f64 ? stack_factor_f64(used, f, a, a_step)
                            : stack_factor_f32(used, f, a, a_step);
}
static void solve_some(int used, unsigned wanted, const void *f, const lop_mat *y, int64_t y_step,
                       const lop_mat *b, int64_t b_step) {
    if (y->dt == LOP_f64)
        stack_solve_f64(used, wanted, f, y, y_step, b, b_step);
    else
        stack_solve_f32(used, wanted, f, y, y_step, b, b_step);
}
/* The columns of one matrix, whose factor all lanes have, side by side. */
static void solve_columns(const void *f, const lop_mat *y, const lop_mat *b) {
    const int64_t size = (int64_t)lop_dtype_size(y->dt);
    for (int64_t j = 0; j < y->n; j += LOPK_STACK) {
        const int some = y->n - j < LOPK_STACK ? (int)(y->n - j) : LOPK_STACK;
        lop_mat to = *y, of = *b;
        to.p = (char *)y->p + j * y->cs * size;
        of.p = (char *)b->p + j * b->cs * size;
        to.n = of.n = 1;
        solve_some(some, ~0u, f, &to, y->cs, &of, b->cs);
    }
}
void lopk_stack_solve(int used, unsigned wanted, const void *f, const lop_mat *y, int64_t y_step,
                      const lop_mat *b, int64_t b_step) {
    LOP_ASSERT(lopk_stack_takes(y->m, y->dt) && used >= 1 && used <= LOPK_STACK && b->n == y->n);
    if (used == 1 && wanted & 1)
        solve_columns(f, y, b);
    else
        solve_some(used, wanted, f, y, y_step, b, b_step);
}
