/* k_blocktri.h: block tridiagonal matrices: products, parts, factors by block, entries of the
 * inverse. All memory is *borrowed*; work memory is aligned to 64. */
#ifndef LOPK_BLOCKTRI_H
#define LOPK_BLOCKTRI_H

#include "base/buf.h"

/* N blocks of b x b on the diagonal, N - 1 below and above it, in C order. `up` NULL: the adjoints
 * of those below. */
typedef struct lopk_blocktri {
    int64_t N, b;
    lop_dtype dt;
    const void *low, *d, *up;
} lopk_blocktri;

/* y <- op(A) x, any dtype; y overlaps nothing. mode: bit 0 transposes, bit 1 conjugates. */
void lopk_blocktri_mm(const lop_mat *y, const lopk_blocktri *A, int mode, const lop_mat *x);
/* y (N b x N b) <- A. */
void lopk_blocktri_dense(const lop_mat *y, const lopk_blocktri *A);
/* ab (4 b - 1 x N b; of b = 0 one row) <- A as a band of 2 b - 1 diagonals on either side. */
void lopk_blocktri_band(const lop_mat *ab, const lopk_blocktri *A);
/* y (a vector) <- the elements (i, j), (i + 1, j + 1), ... */
void lopk_blocktri_part(const lop_mat *y, const lopk_blocktri *A, int64_t i, int64_t j);
/* d (N b b, in a row) += v (N b) on the diagonals of its blocks. */
void lopk_blocktri_plus(const lop_mat *d, int64_t b, const lop_mat *v);

/* ---- factors, floats only ---- */

/* How far a factor is to be trusted. */
enum { LOPK_BLOCKTRI_SOUND, LOPK_BLOCKTRI_GROWN, LOPK_BLOCKTRI_FAILED };

/* Bytes; the caller has seen that 4 N b b 16 and N b 16 are numbers. */
size_t lopk_blocktri_factor_bytes(int64_t N, int64_t b, lop_dtype dt);
/* A = L U, U with unit blocks on its diagonal, rows exchanged within those of L alone; `positive`:
 * A = R^H R from the lower half. SOUND: the growth of the factors bounds the backward error of
 * what is solved with them by that of an LU with exchanges; positive factors are sound. FAILED: a
 * diagonal block is singular, not positive, or has NaN. 14/3 N b^3 flops; positive 7/3. */
void lopk_blocktri_factor(void *factor, const lopk_blocktri *A, bool positive);
int lopk_blocktri_state(const void *factor);
bool lopk_blocktri_is_positive(const void *factor); /* is it R^H R? */
/* A bound from below of |op(A)| (rows' sums), of a factor that is no Cholesky factor; of one, of
 * the largest element. */
double lopk_blocktri_norm(const void *factor, bool trans);
/* The range of the pivots, of R^H R of their squares: there it is no less than the reciprocal
 * condition number. 1 of a factor that is not sound: its growth makes pivots small and large. */
double lopk_blocktri_near(const void *factor);
/* x <- op(A)^-1 x, x column-major; mode 0, 1 (transposed) or 3 (the adjoint), 0 when positive. t:
 * b x x->n elements. Only where the state is not FAILED. */
lop_status lopk_blocktri_solve(const void *factor, const lopk_blocktri *A, bool positive, int mode,
                               const lop_mat *x, void *t) LOP_MUST_CHECK;
/* Block k of the factor's diagonal: pivots on the diagonal of *pivots (of R^H when positive);
 * *odd: rows were exchanged an odd number of times. */
void lopk_blocktri_pivots(const void *factor, const lopk_blocktri *A, int64_t k, lop_mat *pivots,
                          bool *odd);
/* The blocks of A^-1 where A has blocks, one after another into `to`: all on the diagonal, all
 * below, all above, in C order. LOP_SINGULAR where they do not multiply with A to ones on the
 * diagonal. work: lopk_blocktri_inverse_bytes. 12 N b^3 flops or so. */
size_t lopk_blocktri_inverse_bytes(int64_t b, lop_dtype dt);
lop_status lopk_blocktri_inverse(void *to, const void *factor, const lopk_blocktri *A,
                                 bool positive, void *work) LOP_MUST_CHECK;
/* out (1 x 1) <- the trace of A B, both of as many blocks. work: b b elements. */
void lopk_blocktri_trace(const lop_mat *out, const lopk_blocktri *A, const lopk_blocktri *B,
                         void *work);

#endif
