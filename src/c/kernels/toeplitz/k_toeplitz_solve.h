/* k_toeplitz_solve.h: solves and determinants of square Toeplitz matrices, T[i, j] = c[i - j] below
 * the diagonal, r[j - i] above it. Computed in f64 or c128 whatever the arrays' dtype. */
#ifndef LOPK_TOEPSOLVE_H
#define LOPK_TOEPSOLVE_H

#include "base/buf.h"

/* A factor: the spectra by which the inverse is applied, as one blob without pointers that may be
 * moved. dt is LOP_f64 or LOP_c128, n >= 1. Bytes of the factor, and of the scratch of each
 * function; 0 where there is no such FFT. */
size_t lopk_toep_bytes(int64_t n, lop_dtype dt);
size_t lopk_toep_factor_scratch(int64_t n, lop_dtype dt);
size_t lopk_toep_solve_scratch(int64_t n, lop_dtype dt);
size_t lopk_toep_det_scratch(int64_t n, lop_dtype dt);
/* What det T is made of: 2^(n exponent) times the product of n + 1 numbers of type dt, at `pivot`.
 */
typedef struct lopk_toep_pivots {
    void *pivot;
    int64_t exponent;
    bool known; /* well enough */
} lopk_toep_pivots;
/* c, r: vectors of n numbers of any float dtype, complex only where dt is. Where no way was found
 * the factor says so, and solves with it are LOP_SINGULAR. `det` NULL, or filled by the same
 * recursion, which then is not spared by a few steps of conjugate gradients. */
void lopk_toep_factor(void *factor, lop_dtype dt, const lop_mat *c, const lop_mat *r,
                      lopk_toep_pivots *det, void *scratch);
/* No less than the reciprocal condition number of T, by the two columns of T^-1 that are known. */
double lopk_toep_near(const void *factor);
double lopk_toep_norm(const void *factor); /* |T|_2 from below */
/* y <- op(T)^-1 b, or with `flip` J op(T)^-1 b (J turns the rows round), column by column; y and b
 * of any float dtype (complex ones with a real factor too: their parts apart), not overlapping.
 * LOP_SINGULAR where a column's backward error is not small: y then holds anything. */
lop_status lopk_toep_solve(const lop_mat *y, const void *factor, bool trans, bool conj, bool flip,
                           const lop_mat *b, void *scratch) LOP_MUST_CHECK;
void lopk_toep_det(lopk_toep_pivots *det, lop_dtype dt, const lop_mat *c, const lop_mat *r,
                   void *scratch);

/* Flops, about: of the factor by recursion, or with `gradients` by as many of these as a kind
 * spectrum takes where they are tried at all; of a solve for one column. */
double lopk_toep_factor_flops(int64_t n, lop_dtype dt, bool gradients);
double lopk_toep_solve_flops(int64_t n, lop_dtype dt);

/* k_toeplitz_gko.c: x, y <- T^-1 e_0, T^-1 e_(n-1), n complex numbers each; `pivot` <- n + 1
 * numbers whose product is det T. plan: an FFT's of length n, c128, with its work. LOP_SINGULAR
 * where a pivot is exactly 0 or no number. */
size_t lopk_gko_scratch(int64_t n);
lop_status lopk_gko(int64_t n, const double _Complex *c, const double _Complex *r,
                    double _Complex *x, double _Complex *y, double _Complex *pivot,
                    const void *plan, void *work, void *scratch) LOP_MUST_CHECK;

#endif
