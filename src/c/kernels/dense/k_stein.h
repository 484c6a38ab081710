/* k_stein.h: back substitution for Stein equations in Schur form (k_stein.c). */
#ifndef LOPK_STEIN_H
#define LOPK_STEIN_H

#include "base/buf.h"

/* g (n x m) <- Y with c Y - R Y T^T = G. T m x m and R n x n upper triangular, real ones with
 * LAPACK's 2 x 2 blocks on the diagonal: [a b; d a] with b d < 0; c is real where they are. All
 * column-major, of f64 or c128, and borrowed; z: n x m of work. LOP_SINGULAR where a pivot c - t r
 * is no more than 8 u (|c| + |t r|). m n (m + n) multiplications and additions. */
lop_status lopk_stein(const lop_mat *t, const lop_mat *r, double _Complex c, double u,
                      const lop_mat *g, const lop_mat *z) LOP_MUST_CHECK;

#endif
