/* k_entry_sums.h: sums of entries of a matrix at named places: the gradients of sparse matrices,
 * matrices of blocks and convolutions by their numbers. Each number stands at some entries, and
 * their sum is what is asked for. f32, f64, c64, c128; all of one dtype. */
#ifndef LOPK_ENTRY_SUMS_H
#define LOPK_ENTRY_SUMS_H

#include "kernels/fft/k_convolution.h"

typedef enum lopk_places_kind {
    LOPK_BY_ROWS,    /* CSR: index, ptr */
    LOPK_BY_COLUMNS, /* CSC */
    LOPK_BY_ENTRIES, /* COO: rows, columns */
    LOPK_BLOCKS,     /* b x b blocks k, k + at, raveled one after another */
    LOPK_BOXES       /* g of y[i] = sum_j g[i - j + shift] x[j] */
} lopk_places_kind;
typedef struct lopk_places {
    lopk_places_kind kind;
    int64_t m, n;             /* of the matrix */
    const lop_mat *one, *two; /* int32 or int64, checked here */
    int64_t triangle;         /* 0: all; what else counts: 1 j <= i, 2 j < i, 3 j >= i, 4 j > i */
    int64_t b, at;
    lopk_conv boxes;
} lopk_places;

/* y <- the sums of a (m x n, any strides). LOP_INDEX: a place lies outside, or ptr is no such. */
lop_status lopk_entry_sums(const lop_mat *y, const lopk_places *p, const lop_mat *a) LOP_MUST_CHECK;
/* Of a b, m x k and k x n: 2 k flops an entry. */
size_t lopk_pair_entry_sums_bytes(int64_t m, int64_t n, int64_t k, lop_dtype dt); /* 0: too large */
lop_status lopk_pair_entry_sums(const lop_mat *y, const lopk_places *p, const lop_mat *a,
                                const lop_mat *b, void *scratch) LOP_MUST_CHECK;
/* Of a band: entry (i, j) at ab[j, u + i - j], ab of l + 1 + u columns. */
lop_status lopk_band_entry_sums(const lop_mat *y, const lopk_places *p, const lop_mat *ab,
                                int64_t u) LOP_MUST_CHECK;

#endif
