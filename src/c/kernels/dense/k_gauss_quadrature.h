/* k_gauss_quadrature.h: Gauss rules of symmetric tridiagonal matrices. */
#ifndef LOPK_GAUSS_H
#define LOPK_GAUSS_H

#include "base/buf.h"

/* d (n) holds the diagonal, e (n) the off-diagonal, its last entry being scratch; z (n) is scratch.
 * In the end d holds the eigenvalues in no order, z the squared first entries of their vectors
 * (1 in all); e is destroyed. LOP_SINGULAR: they did not converge, or something is NaN. */
lop_status lopk_gauss(int64_t n, double *d, double *e, double *z) LOP_MUST_CHECK;

#endif
