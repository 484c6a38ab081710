/* band_lines.h: the array of a Banded as the diagonals that k_band_inverse.h reads
 * (op_band_inverse_diagonal.c). */
#ifndef LOP_BAND_LINES_H
#define LOP_BAND_LINES_H

#include "kernels/band/k_band_inverse.h"

/* Room in a scratch for the diagonals of `count` bands, which come first in it. */
static inline size_t lop_band_lines_bytes(int64_t count, int64_t l, int64_t u) {
    return ((size_t)count * (size_t)(l + u + 1) * sizeof(lop_mat) + 63) & ~(size_t)63;
}
/* The diagonals of `ab`, of l + u + 1 rows; `at` has room for as many. */
lopk_lines lop_band_lines(const lop_mat *ab, int64_t l, int64_t u, lop_mat *at);

#endif
