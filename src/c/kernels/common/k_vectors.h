/* k_vectors.h: vectors of iterative solvers: k columns side by side, x of shape (n, k) in C order,
 * each column with coefficients of its own. The four BLAS dtypes. No allocation; all memory is
 * *borrowed*; outputs are the last arguments. Coefficients are complex numbers whatever the dtype:
 * of real dtypes the real part counts. Sums are taken in double, in blocks. x and y of one call do
 * not overlap unless the comment says so. */
#ifndef LOPK_VEC_H
#define LOPK_VEC_H

#include "base/buf.h"

/* out[j] <- sum over i of conj(x[i, j]) y[i, j]; x may be y. */
void lopk_vec_dot(lop_dtype dt, int64_t n, int64_t k, const void *x, const void *y,
                  double _Complex *out);
/* y[:, j] += a[j] x[:, j] */
void lopk_vec_axpy(lop_dtype dt, int64_t n, int64_t k, const double _Complex *a, const void *x,
                   void *y);
/* y[:, j] <- x[:, j] + b[j] y[:, j] */
void lopk_vec_xpby(lop_dtype dt, int64_t n, int64_t k, const void *x, const double _Complex *b,
                   void *y);
/* y[:, j] <- a[j] x[:, j]; y may be x. */
void lopk_vec_scale(lop_dtype dt, int64_t n, int64_t k, const double _Complex *a, const void *x,
                    void *y);
/* x[:, j] += a[j] p[:, j]; r[:, j] -= a[j] q[:, j]; rr[j] <- |r[:, j]|^2: one pass. */
void lopk_vec_step(lop_dtype dt, int64_t n, int64_t k, const double _Complex *a, const void *p,
                   const void *q, void *x, void *r, double _Complex *rr);
/* x <- x + b h_bar with h_bar <- h + a h_bar before, h <- v + c h after: LSMR's three updates. One
 * column; gives |x|^2. */
double lopk_vec_lsmr(lop_dtype dt, int64_t n, const double *abc, const void *v, void *h,
                     void *h_bar, void *x);
/* w <- f0 v + f1 w1 + f2 w2; x += f3 w; xx[j] <- |x[:, j]|^2: MINRES's moves, one pass. f: four
 * rows of k numbers. */
void lopk_vec_minres(lop_dtype dt, int64_t n, int64_t k, const double _Complex *f, const void *v,
                     const void *w1, const void *w2, void *w, void *x, double *xx);
/* The 2-norm of one column, which never over- nor underflows early. NaN gives NaN. */
double lopk_vec_norm(lop_dtype dt, int64_t n, const void *x);

#endif
