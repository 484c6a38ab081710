/* k_sparse_triangular.h: triangles of sparse matrices, and incomplete Cholesky. All memory is
 * *borrowed*; every index is checked where it is read. */
#ifndef LOPK_PRECOND_H
#define LOPK_PRECOND_H

#include "base/buf.h"

/* A triangle of a sparse n x n matrix; what lies in the other is skipped. Duplicates add. The three
 * arrays are contiguous, index and ptr both i32 or both i64. */
typedef struct lopk_triangle {
    const lop_mat *data, *index, *ptr;
    bool csr, lower, unit, conj; /* CSR or CSC; ones on the diagonal, which is not read then */
} lopk_triangle;

/* y <- T x; any strides, all of one dtype of the 13. LOP_INDEX: an index lies outside or ptr is not
 * increasing, LOP_DTYPE: of other index types; y then holds anything. 2 nnz k operations. */
lop_status lopk_triangle_mm(const lop_mat *y, const lopk_triangle *t,
                            const lop_mat *x) LOP_MUST_CHECK;

/* y <- T^-1 y, floats only, by substitution. LOP_SINGULAR: the diagonal's element *where is zero
 * (or is not stored). range: the least and the largest modulus on the diagonal. 2 nnz k
 * operations. */
lop_status lopk_triangle_solve(const lop_mat *y, const lopk_triangle *t, int64_t *where,
                               double range[2]) LOP_MUST_CHECK;

/* Incomplete Cholesky of the Hermitian A whose lower triangle is given by columns (CSC; rows of a
 * column increasing, the diagonal first). */
typedef struct lopk_ichol_args {
    int64_t n;
    const int64_t *ptr, *index; /* n + 1; ptr[n] */
    const void *data;
    int64_t *lptr, *lindex; /* out: n + 1; room */
    void *ldata;            /* out: room */
    int64_t room;
    int64_t *work; /* 6 n */
    void *line;    /* n elements */
    double shift;  /* the diagonal is taken (1 + shift) times */
    double drop;   /* elements below drop times the column's norm are dropped */
    int64_t fill;  /* elements kept in a column beyond A's; -1: those of A's pattern, all of them */
} lopk_ichol_args;

/* dt is a float dtype. LOP_SINGULAR: the pivot of column *where is not positive, LOP_INDEX: an
 * index is not where it should be, LOP_OVERFLOW: room is too small. Room that suffices is ptr[n],
 * and fill n more where fill is positive. */
lop_status lopk_ichol(lop_dtype dt, const lopk_ichol_args *a, int64_t *where) LOP_MUST_CHECK;

#endif
