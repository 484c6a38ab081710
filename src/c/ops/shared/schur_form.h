/* schur_form.h: Schur forms A = Q T Q^H as derived values, for op_kronsum_schur.c and
 * op_stein_schur.c: kept, and one for all that is asked of A. 25 n^3 flops.
 *
 * T is upper triangular, of a real A with LAPACK's 2 x 2 blocks on the diagonal: [a b; c a] with
 * b c < 0. A matrix that is Hermitian in all its entries has its eigenvectors for Q and a diagonal
 * T. */
#ifndef LOP_SCHUR_FORM_H
#define LOP_SCHUR_FORM_H

#include "expr/op.h"

typedef struct lop_schur {
    lop_mat t, q;                        /* column-major */
    double *re, *im, *failed, *diagonal; /* the eigenvalues; not 0: it has none; T is diagonal */
} lop_schur;

/* Two square matrices of one dtype that LAPACK takes? */
bool lop_schur_takes(const lop_node *a, const lop_node *b);
/* The shape and dtype of X, of m n rows, for the last child C where the first two, A and B, are
 * what lop_schur_takes; `fits`: what the op looks at besides. */
lop_status lop_schur_infer_solve(lop_node *n, bool fits, lop_err *err);
/* Of a determinant, one pair (scaled_pair.h) for each pair of matrices, likewise. */
lop_status lop_schur_infer_det(lop_node *n, bool fits, lop_err *err);
/* The slot of A's form, or -1 with a status. */
int lop_emit_schur(lop_emit *e, const lop_node *a, lop_status *st);
/* The parts of the form of n rows in `blob`, borrowed. */
lop_schur lop_schur_at(const lop_mat *blob, int64_t n, lop_dtype dt);

/* Bytes of n x n, rounded up to 64. */
size_t lop_schur_square(int64_t n, lop_dtype dt);
lop_mat lop_column_major(void *p, int64_t m, int64_t n, lop_dtype dt);
lop_mat lop_transposed(const lop_mat *a);

#endif
