/* k_csr_sweep.h: one sweep over CSR rows that applies a matrix and its adjoint. All memory is
 * *borrowed*; floats only. */
#ifndef LOPK_SPARSE_STEP_H
#define LOPK_SPARSE_STEP_H

#include "base/buf.h"
#include "kernels/common/k_threads.h"

/* A is m x n in CSR: indptr m + 1 entries, indices and data at least indptr[m]; the two index
 * arrays of one dtype, i32 or i64 (else LOP_DTYPE). All vectors contiguous and of one dtype, which
 * is data's, or twice as wide: f64 for f32, c128 for c64, with which entries are widened as they
 * are read (else LOP_DTYPE). u has m elements, v and w n.
 *
 *   v:  u <- A v - alpha u     (without v, u stays; with alpha = 0 it is not read)
 *   w:  w <- w + A^H u         (of the new u; without w, left out)
 *
 * *sum <- |u|^2, in double. Every index is checked each time it is used: LOP_INDEX, and u and w
 * then hold anything. u and w overlap nothing. */
lop_status lopk_csr_step(const lop_mat *indptr, const lop_mat *indices, const lop_mat *data,
                         double alpha, const lop_mat *v, const lop_mat *u, const lop_mat *w,
                         double *sum) LOP_MUST_CHECK;

/* u <- A v - alpha u, w <- A^H u, *sum <- |u|^2, all the rows in as many parts as the sizes say, by
 * as many threads as there are: the same bits. `more`: lopk_csr_parts - 1 times w's memory. Where
 * that is 0 it is not done. LOP_CALLBACK: stopped. */
enum { LOPK_CSR_PARTS = 8 };
int lopk_csr_parts(int64_t nnz, int64_t n, size_t size);
lop_status lopk_csr_both(const lop_mat *indptr, const lop_mat *indices, const lop_mat *data,
                         double alpha, const lop_mat *v, const lop_mat *u, const lop_mat *w,
                         void *more, const lopk_team *team, double *sum) LOP_MUST_CHECK;

#endif
