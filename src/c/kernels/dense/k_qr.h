/* k_qr.h: least squares by QR with column exchanges, in little memory. Only the four BLAS dtypes.
 * All memory is *borrowed*; sizes that the library's integers do not hold give LOP_OVERFLOW. */
#ifndef LOPK_QR_H
#define LOPK_QR_H

#include "base/buf.h"

/* For R of m x n, m >= n, with R^H R regular, and k columns:
 *   y = argmin |R y - b|, b m x k               (`normal` false)
 *   y = (R^H R)^-1 b, b n x k                    (`normal` true)
 * R is read in blocks of rows, so that the work memory does not grow with m; its columns are scaled
 * by powers of two. LOP_SINGULAR: the numerical rank, in *rank, is less than n (a pivot at most
 * max(n, 10) u times the largest). NaN and inf go through. work: lopk_qr_bytes, aligned to 16. */
lop_status lopk_qr_solve(const lop_mat *y, const lop_mat *r, const lop_mat *b, bool normal,
                         void *work, int64_t *rank) LOP_MUST_CHECK;
/* 0 where it would not fit into memory. */
size_t lopk_qr_bytes(int64_t m, int64_t n, int64_t k, lop_dtype dt);

#endif
