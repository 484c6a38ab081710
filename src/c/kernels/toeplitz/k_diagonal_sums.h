/* k_diagonal_sums.h: sums along the diagonals of a matrix, or of a product that is not formed. They
 * are the gradients of a Toeplitz, a circulant and a Hankel matrix by their numbers.
 *
 * Of an m x n matrix: s[l + n - 1] = sum of a[i, j] over i - j = l, m + n - 1 numbers; `flip`: over
 * j - i = l, s[l + m - 1]; `anti`: s[l], over i + j = l. `circular`, of n x n: n numbers, the
 * differences (sums) modulo n. f32, f64, c64, c128; all of one dtype. */
#ifndef LOPK_DIAGONAL_SUMS_H
#define LOPK_DIAGONAL_SUMS_H

#include "base/buf.h"

typedef struct lopk_lines {
    bool anti, circular, flip;
} lopk_lines;

/* How many numbers. */
static inline int64_t lopk_lines_count(lopk_lines how, int64_t m, int64_t n) {
    return how.circular ? n : m + n > 0 ? m + n - 1 : 0;
}

/* y <- the sums of a, any strides. One pass. scratch: lopk_lines_bytes. */
void lopk_diagonal_sums(const lop_mat *y, lopk_lines how, const lop_mat *a, void *scratch);
/* y <- the sums of a b, a m x k, b k x n, by 2 m n k flops; componentwise accurate. */
void lopk_pair_diagonal_sums(const lop_mat *y, lopk_lines how, const lop_mat *a, const lop_mat *b,
                             void *scratch);
size_t lopk_lines_bytes(int64_t m, int64_t n, lop_dtype dt); /* 0: too large */
/* The same by 2 k + 1 transforms with a plan of length N >= m + n - 1 (k_fft.h) and the dtype;
 * normwise accurate. scratch: lopk_lines_fft_bytes. */
void lopk_pair_diagonal_sums_fft(const lop_mat *y, lopk_lines how, const lop_mat *a,
                                 const lop_mat *b, const void *plan, void *scratch);
size_t lopk_lines_fft_bytes(int64_t m, int64_t n, int64_t N, lop_dtype dt);

/* y <- the sums of one diagonal d (at offset `offset`, column minus row) of an m x n matrix. */
void lopk_line_sums(const lop_mat *y, lopk_lines how, int64_t m, int64_t n, int64_t offset,
                    const lop_mat *d, void *scratch);
/* y <- those of the Toeplitz matrix of first column c and first row r (r[0] is not read). */
void lopk_toeplitz_sums(const lop_mat *y, lopk_lines how, const lop_mat *c, const lop_mat *r,
                        void *scratch);
/* y <- those of T^-1 by its first column x[0] and last column x[1], n x 1, n > 0 (Gohberg and
 * Semencul 1972), by transforms with a plan, else (NULL) directly. With x[2] and x[3], else NULL:
 * of what it grows by where the columns grow by these, and T stays a Toeplitz matrix. `hankel`: of
 * H^-1, anti, the columns those of H^-1. scratch: lopk_toeplitz_inverse_bytes, N 0 without a plan;
 * 0: too large. */
size_t lopk_toeplitz_inverse_bytes(int64_t n, int64_t N, lop_dtype dt);
void lopk_toeplitz_inverse_sums(const lop_mat *y, lopk_lines how, bool hankel,
                                const lop_mat *const *x, const void *plan, void *scratch);

#endif
