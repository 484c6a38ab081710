/* k_eigen.h: eigenvalues and Schur forms by LAPACK, on lop_mat (k_eigen.c).
 *
 * Matrices are n x n, column-major, of one of the four BLAS dtypes, and *borrowed*, as is `work`
 * (aligned to 64). LOP_OVERFLOW where the library's integers do not hold a size; *info > 0
 * (LOP_SINGULAR): it did not converge, or as said. */
#ifndef LOPK_EIGEN_H
#define LOPK_EIGEN_H

#include "base/buf.h"

/* The bytes of `work` for heevd, hegvd and gees of size n; false where they do not fit. */
bool lopk_eigen_bytes(int64_t n, lop_dtype dt, size_t *bytes);
/* a Hermitian, lower triangle read: a <- V with A = V diag(w) V^H, w (n reals of a's precision)
 * ascending. Some 9 n^3 flops. */
lop_status lopk_heevd(const lop_mat *a, void *w, void *work, int64_t *info) LOP_MUST_CHECK;
/* a and b Hermitian, b positive definite, lower triangles read: a <- V with V^H A V = diag(w),
 * V^H B V = I; b <- its Cholesky factor. *info > n: b is not positive definite
 * (k_cholesky_large.c). */
lop_status lopk_hegvd(const lop_mat *a, const lop_mat *b, void *w, void *work,
                      int64_t *info) LOP_MUST_CHECK;
/* a <- T, vs <- Q with A = Q T Q^H: T upper triangular, of a real matrix with 2 x 2 blocks on the
 * diagonal. w: n eigenvalues, real ones as n real and then n imaginary parts. Some 25 n^3. */
lop_status lopk_gees(const lop_mat *a, const lop_mat *vs, void *w, void *work,
                     int64_t *info) LOP_MUST_CHECK;
/* c (m x n) <- X where op(A) X + X op(B) = *scale C, A and B from gees, of sizes m and n; 'N' or
 * 'C' each. LOP_SINGULAR: A and -B share an eigenvalue, or nearly. m n (m + n) flops. */
lop_status lopk_trsyl(const lop_mat *a, char op_a, const lop_mat *b, char op_b, const lop_mat *c,
                      double *scale) LOP_MUST_CHECK;
/* Entry by entry, all of them finite; any strides. */
bool lopk_is_hermitian(const lop_mat *a);

#endif
