/* k_small_gemm.h: small products by own register blocks, where BLAS spends its time on calls and
 * packing.
 *
 * No allocation, no threads: 32 KiB of stack. Each element of y is one chain of fused (or, on the
 * baseline, rounded) multiply-adds over k in order, in pieces of 256: its bits do not depend on
 * the other rows, columns or batch elements. */
#ifndef LOPK_SMALL_H
#define LOPK_SMALL_H

#include "base/buf.h"

/* y[l] (+)= op(a) b[l] for l < count, y and b moving by y_step and b_step elements; the four BLAS
 * dtypes. y has a unit stride (or one row, or one column); a and b any strides. y overlaps neither
 * a nor b, but for: y may be b where a is square, of 256 at most, count 1, n > 1 and y's rows are
 * contiguous. accumulate false never reads y. Sizes 0 are legal. */
void lopk_small_gemm(const lop_mat *y, int64_t y_step, const lop_mat *a, bool conj_a,
                     const lop_mat *b, int64_t b_step, int64_t count, bool accumulate);

/* Whether that is the faster way; measured. */
bool lopk_small_suits(const lop_mat *y, const lop_mat *a, const lop_mat *b, int64_t count);

/* Tests: baseline loops whatever the CPU has. */
extern int lopk_small_force_plain;

#endif
