/* k_sparse_pair.h: the dense form and diagonals of the product of two sparse matrices, without
 * either of them dense. Every index is checked on each call (LOP_INDEX). */
#ifndef LOPK_SPARSEPAIR_H
#define LOPK_SPARSEPAIR_H

#include "base/buf.h"

enum { LOPK_BY_ROWS, LOPK_BY_COLUMNS, LOPK_TRIPLETS };

/* m x n; contiguous arrays. By rows: index has columns, ptr m + 1 numbers. By columns: likewise of
 * the transpose. Triplets: index has rows, ptr columns. */
typedef struct lopk_factor {
    int format;
    bool conj;
    const void *index, *ptr, *data;
    int64_t m, n, nnz;
} lopk_factor;

/* op(A) D op(B), d on the diagonal of D (NULL: ones); index arrays of dtype ix, i32 or i64. */
typedef struct lopk_pair {
    lopk_factor a, b;
    const void *d;
    lop_dtype dt, ix;
} lopk_pair;

/* Bytes of work; false: more than 64 bits hold. */
bool lopk_pair_work(const lopk_pair *p, int64_t *bytes);
/* y <- the product; products of single entries alone: sum_t |A[:, t]| |B[t, :]| of them. */
lop_status lopk_pair_dense(const lop_mat *y, const lopk_pair *p, void *work) LOP_MUST_CHECK;
/* y (a vector) <- its diagonal from (max(-k, 0), max(k, 0)) on; nnz A + nnz B operations. */
lop_status lopk_pair_diagonal(const lop_mat *y, const lopk_pair *p, int64_t k,
                              void *work) LOP_MUST_CHECK;

#endif
