/* k_band_qr.h: QR of bands, and products of reflections of few neighbouring rows. Own loops, floats
 * only. All memory is *borrowed*. */
#ifndef LOPK_BANDQR_H
#define LOPK_BANDQR_H

#include "base/buf.h"

/* x <- H_0 H_1 ... H_(k-1) x, in place: H_j = I - 2 v_j v_j^H / |v_j|^2 on the rows from j on, row
 * j of v being v_j; of rows that x lacks nothing is read. A v_j of zeros is no reflection. adjoint:
 * H_(k-1) ... H_0; conj_v: of the conjugates of v. work: lopk_reflect_bytes, aligned to 64. */
size_t lopk_reflect_bytes(int64_t w, int64_t columns, lop_dtype dt);
void lopk_reflect(const lop_mat *x, const lop_mat *v, bool adjoint, bool conj_v, void *work);
/* Is v_j no reflection: 1; not finite: -1; else 0. */
int lopk_reflect_none(const lop_mat *v, int64_t j, int64_t rows);

/* ab (2 l + u + 1) x n, column-major: element (i, j) of the m x n matrix at [l + u + i - j, j],
 * rows 0 to l - 1 zero. R in its place, of l + u diagonals above the main one; the min(m, n)
 * reflections, rows of l + 1 elements, in v, C order. What is not finite makes NaN. */
void lopk_bandqr(const lop_mat *ab, int64_t m, int64_t l, int64_t u, const lop_mat *v);

#endif
