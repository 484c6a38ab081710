/* k_band.h: bands, stencils and grids on lop_mat. k_band.c holds own loops (the contract of
 * kernels.h), k_band_lapack.c LAPACK's band factors. All memory is *borrowed*. */
#ifndef LOPK_BAND_H
#define LOPK_BAND_H

#include "base/buf.h"

/* ---- products, any dtype; y overlaps nothing ---- */

/* y <- op(A) x, A n x n tridiagonal: dl (n - 1) below, d (n), du (n - 1) above; op conjugates. The
 * transpose is dl and du exchanged. */
void lopk_tri_mm(const lop_mat *y, const lop_mat *dl, const lop_mat *d, const lop_mat *du,
                 bool conj, const lop_mat *x);
/* y <- op(A) x, A n x n: A[i, j] = ab[u + i - j, j], ab (l + u + 1) x n. Entries of ab outside A
 * are not used. */
void lopk_band_mm(const lop_mat *y, int64_t l, int64_t u, const lop_mat *ab, bool trans, bool conj,
                  const lop_mat *x);
/* y[i] <- sum_t w[t] x[i + first + t], t < count; beyond x's rows zero, or (wrap) round again. The
 * weights as double for floats, as integers for the others. */
void lopk_stencil(const lop_mat *y, int count, const double *w, const int64_t *iw, int64_t first,
                  bool wrap, const lop_mat *x);
/* y += the second difference of x along the middle one of the axes (left, n, right), the rows of x
 * and y being all three raveled. bc 0: zero beyond the ends, 1: no flux, 2: round again. */
void lopk_laplace_axis(const lop_mat *y, int64_t left, int64_t n, int64_t right, int bc,
                       const lop_mat *x);

/* ---- tridiagonal solves, floats only: b <- A^-1 b, b n x k of any strides ----
 * work: lopk_gtsv_bytes(n, dt), aligned to 64. LOP_SINGULAR: *where is the 0-based row whose pivot
 * is exactly zero; b is kept then. */
size_t lopk_gtsv_bytes(int64_t n, lop_dtype dt);
/* After gtsv: where the n pivots lie in its work. */
void *lopk_gtsv_pivots(void *work, int64_t n, lop_dtype dt);
/* After ptsv (u = 1) or pbsv, where there was a right-hand side: the range of the pivots. */
void lopk_twist_range(const void *work, int64_t n, int64_t u, lop_dtype dt, double *least,
                      double *most);
/* LU with row exchanges; normwise backward stable. 9 n + 5 n k flops or so. */
lop_status lopk_gtsv(const lop_mat *dl, const lop_mat *d, const lop_mat *du, void *work,
                     const lop_mat *b, int64_t *where) LOP_MUST_CHECK;
/* Hermitian positive definite: L D L^H from the diagonal's real parts and e, the elements below it
 * (conj_e: those above it). LOP_SINGULAR, here and in pbsv: the pivot of row *where, counted from
 * one of the ends, is not positive; b holds anything then. (k_band_twisted_cholesky.c) */
lop_status lopk_ptsv(const lop_mat *d, const lop_mat *e, bool conj_e, void *work, const lop_mat *b,
                     int64_t *where) LOP_MUST_CHECK;

/* The eliminations alone, for determinants: *pivots are the n pivots, in `work` (of ptsv's real
 * ones); *odd: rows were exchanged an odd number of times. LOP_SINGULAR as above. */
lop_status lopk_gttrf(const lop_mat *dl, const lop_mat *d, const lop_mat *du, void *work,
                      lop_mat *pivots, bool *odd) LOP_MUST_CHECK;
lop_status lopk_pttrf(const lop_mat *d, const lop_mat *e, bool conj_e, void *work,
                      lop_mat *pivots) LOP_MUST_CHECK;

/* Hermitian positive definite band: L D L^H from the upper half, ab (u + 1) x n with the diagonal
 * in its last row; conj_a: of the conjugate matrix. work: (u + 1) n elements. For few diagonals,
 * where LAPACK's blocks do not pay. (k_band_twisted_cholesky.c) */
lop_status lopk_pbsv(const lop_mat *ab, bool conj_a, void *work, const lop_mat *b,
                     int64_t *where) LOP_MUST_CHECK;

/* ---- LAPACK's band factors (k_band_lapack.c), floats only ----
 * ab column-major, its leading dimension ab->cs = ab->m. LOP_OVERFLOW where a size passes LAPACK's
 * ints. info as in k_blas.h. */

/* LU in place: ab (2 l + u + 1) x n, the matrix in rows l and below, rows 0 to l - 1 are filled in;
 * ipiv n. */
lop_status lopk_gbtrf(const lop_mat *ab, int64_t l, int64_t u, int64_t *ipiv,
                      int64_t *info) LOP_MUST_CHECK;
/* b <- op(A)^-1 b; trans 'N', 'T', 'C'; b column-major. */
lop_status lopk_gbtrs(const lop_mat *ab, int64_t l, int64_t u, const int64_t *ipiv, char trans,
                      const lop_mat *b) LOP_MUST_CHECK;
/* Cholesky in place of the band's upper ('U') or lower ('L') half: ab (w + 1) x n; and the solve
 * with the upper one. */
lop_status lopk_pbtrf(const lop_mat *ab, char uplo, int64_t *info) LOP_MUST_CHECK;
lop_status lopk_pbtrs(const lop_mat *ab, const lop_mat *b) LOP_MUST_CHECK;
/* d (n) <- the eigenvalues, ascending, of the symmetric tridiagonal matrix with d on the diagonal
 * and e (n - 1, destroyed) beside it; O(n^2). LOP_SINGULAR where they did not converge. */
lop_status lopk_sterf(int64_t n, double *d, double *e) LOP_MUST_CHECK;
/* d (n, of the real dtype) <- the singular values, descending, of the band ab (l + u + 1) x n, its
 * element (i, j) in row u + i - j; ab is destroyed. work: 5 n real numbers. O(n^2 (l + u)).
 * LOP_SINGULAR where they did not converge. */
lop_status lopk_gbsvd(const lop_mat *ab, int64_t l, int64_t u, void *d, void *work,
                      int64_t *info) LOP_MUST_CHECK;

#endif
