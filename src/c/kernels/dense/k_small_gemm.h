/* k_small_gemm.h: small products by own register blocks, where BLAS spends its time on calls and
 * packing.
 *
 * No allocation, no threads: 32 KiB of stack. Each element of y is one chain of fused (or, on the
 * baseline, rounded) multiply-adds over k in order, in pieces of 256: its bits do not depend on
 * the other rows, columns or batch elements. */
#ifndef LOPK_SMALL_H
#define LOPK_SMALL_H

#include "kernels/common/k_threads.h"

/* y[l] (+)= op(a) b[l] for l < count, y and b moving by y_step and b_step elements; the four BLAS
 * dtypes. y has a unit stride (or one row, or one column); a and b any strides. y overlaps neither
 * a nor b, but for: y may be b where a is square, of 256 at most, count 1, n > 1 and y's rows are
 * contiguous. accumulate false never reads y. Sizes 0 are legal. */
void lopk_small_gemm(const lop_mat *y, int64_t y_step, const lop_mat *a, bool conj_a,
                     const lop_mat *b, int64_t b_step, int64_t count, bool accumulate);

/* y (+)= a b where the terms of one side come in groups of `group` (256 at most, a divisor of k),
 * from one to the next `apart` elements: windows of an array, whose rows lie within each other.
 * That side is a where y's rows are contiguous, else b; else as lopk_small_gemm. */
void lopk_windows_gemm(const lop_mat *y, const lop_mat *a, const lop_mat *b, int64_t group,
                       int64_t apart, bool accumulate);

/* y (+)= op(a) b with 1 to 32 columns or rows of y, of any layouts; y overlaps neither. The same
 * bits on any number of threads of the team (NULL: the caller's), in real dtypes those of
 * lopk_small_gemm. 128 KiB of stack. False: stopped. */
bool lopk_thin_gemm(const lop_mat *y, const lop_mat *a, bool conj_a, const lop_mat *b,
                    bool accumulate, const lopk_team *team) LOP_MUST_CHECK;
/* Elements of a vector of its loops; and y (+)= op(a) b for y and b of rows of whole such vectors,
 * contiguous, and up to 256 terms: a tile of a thin product. */
int64_t lopk_thin_width(lop_dtype dt);
void lopk_thin_tile(const lop_mat *y, const lop_mat *a, bool conj_a, const lop_mat *b,
                    bool accumulate);
/* Which loops BLAS has chosen, by the CPU they are for: 0 those for SSE, 1 AVX2, 2 AVX-512, also
 * where it is not known. */
int lopk_blas_loops(void);
/* Whether that is the faster way, by a table of measured rates: thin and real products whose larger
 * matrix does not stay in the nearest cache. */
bool lopk_thin_suits(const lop_mat *y, const lop_mat *a, const lop_mat *b, const lopk_team *team);

/* Whether lopk_small_gemm is the faster way; measured. */
bool lopk_small_suits(const lop_mat *y, const lop_mat *a, const lop_mat *b, int64_t count);

/* Tests: 1 baseline loops, 2 AVX2's whatever the CPU has besides; 0 the widest. */
extern int lopk_small_force;

#endif
