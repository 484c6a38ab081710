/* k_ldl.h: A = P L D L^H P^T (or ^T) of Hermitian and symmetric matrices, whatever their signs.
 * Only the four BLAS dtypes. All memory is *borrowed*; sizes that the library's integers do not
 * hold give LOP_OVERFLOW. */
#ifndef LOPK_LDL_H
#define LOPK_LDL_H

#include "base/buf.h"

/* The lower triangle of `a` (n x n, column-major) becomes L and the diagonal of D; `e` (n elements)
 * is what stands beside it, ipiv the exchanges. *info: 1 + the place of a pivot that is exactly
 * zero, 0 none; NaN in place of a pivot fills the factor with NaN. work: lopk_ldl_work elements. */
lop_status lopk_ldl(const lop_mat *a, bool hermitian, void *e, int64_t *ipiv, void *work,
                    int64_t *info) LOP_MUST_CHECK;
int64_t lopk_ldl_work(int64_t n);
/* Is there a pivot below the normal numbers, whose reciprocal may be inf? */
bool lopk_ldl_is_tiny(const lop_mat *a, const void *e, const int64_t *ipiv);
/* b <- A^-1 b by that factor; b n x k, column-major. */
lop_status lopk_ldl_solve(const lop_mat *a, bool hermitian, const void *e, const int64_t *ipiv,
                          const lop_mat *b) LOP_MUST_CHECK;

#endif
