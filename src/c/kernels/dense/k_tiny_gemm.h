/* k_tiny_gemm.h: many products of at most 8 x 8 by 8 x 8, each with operands of its own. */
#ifndef LOPK_TINY_H
#define LOPK_TINY_H

#include "base/buf.h"

enum { LOPK_TINY = 8 }; /* rows, columns and terms */

/* y[e] = op(a[e]) b[e] for e < count, the three moving by their steps (0: it stays), in elements;
 * the four BLAS dtypes, any strides, sizes of at most LOPK_TINY, k of at least 1. y overlaps
 * neither. Each element of y is one chain of multiply-adds in the order of the terms. */
void lopk_tiny_gemm(const lop_mat *y, int64_t y_step, const lop_mat *a, int64_t a_step, bool conj_a,
                    const lop_mat *b, int64_t b_step, int64_t count);

#endif
