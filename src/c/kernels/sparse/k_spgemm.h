/* k_spgemm.h: products of two sparse matrices, row by row, and what is done with such rows.
 *
 * All matrices are CSR and *borrowed*; their index arrays share one dtype (i32 or i64), their data
 * another, any of the 13. Nothing is allocated here: `work` is the caller's, zeroed, of the size
 * asked for. Every index is checked on each call, in each pass, since arrays may change between
 * them: LOP_INDEX then, and the outputs hold anything. Entries are sums in the order in which the
 * row of A is stored: the same bits whatever the rows are cut into. */
#ifndef LOPK_SPGEMM_H
#define LOPK_SPGEMM_H

#include "base/buf.h"
#include "kernels/common/k_threads.h"

typedef struct lopk_csr {
    const void *ptr, *index, *data;
    int64_t m, n, nnz; /* nnz: how many entries the arrays have room for */
} lopk_csr;

typedef struct lopk_spgemm {
    lopk_csr a, b; /* a.n == b.m */
    lop_dtype dt, ix;
    bool upper; /* only entries with column >= row; rows of b must be sorted */
} lopk_spgemm;

/* bound[i - lo] <- products that row i takes, the most entries it can have (b.n bounds it too). */
lop_status lopk_spgemm_bound(const lopk_spgemm *g, int64_t lo, int64_t hi,
                             int64_t *bound) LOP_MUST_CHECK;

/* Rows lo .. lo + rows - 1 with their bounds, in parts for several threads. */
typedef struct lopk_spgemm_rows {
    int64_t lo, rows;
    const int64_t *bound;
    int64_t *edge;         /* rows + 1 places: part p has rows edge[p] .. edge[p + 1] - 1 from lo */
    int64_t parts, enough; /* enough: threads that have something to do */
    int64_t entries;       /* of the largest part at most */
    int64_t hash;          /* the longest hashed row */
    bool dense;            /* does any go to the array as long as a row? */
} lopk_spgemm_rows;
/* Fills in edge and what follows it. */
void lopk_spgemm_cut(const lopk_spgemm *g, lopk_spgemm_rows *r);
/* Bytes of `work` for these rows, with `held` also for the entries of one part; false: more than 64
 * bits hold. Each thread of a team has as much on its own. */
bool lopk_spgemm_work(const lopk_spgemm *g, const lopk_spgemm_rows *r, bool held, int64_t *bytes);
/* count[i - lo] <- entries of row i. */
lop_status lopk_spgemm_count(const lopk_spgemm *g, const lopk_spgemm_rows *r, const lopk_team *team,
                             void *work, int64_t *count) LOP_MUST_CHECK;
/* The rows, row i at at[i - lo] of index and data, which must be as long as counted; columns
 * increase. Entries that cancel to zero stay. With `count` nothing has been counted: the rows
 * follow each other from at[0] on, where there is room for all their bounds, and count[i - lo] is
 * how long each came out; with a team of more than one, `work` is for held entries then, and
 * parts are copied to their places in turn. CALLBACK, as of count: stopped. */
lop_status lopk_spgemm_fill(const lopk_spgemm *g, const lopk_spgemm_rows *r, const lopk_team *team,
                            void *work, const int64_t *at, void *index, void *data,
                            int64_t *count) LOP_MUST_CHECK;

/* The entries of A B at the places of a mask (ptr, index of mask->m == a.m rows): b is B^T here.
 * index, data and count have room for what the mask has; those of row i begin at at[i - lo].
 * `work`: lopk_sampled_work bytes. An entry without any product is left out. */
lop_status lopk_spgemm_sampled(const lopk_spgemm *g, const lopk_csr *mask, int64_t lo, int64_t hi,
                               void *work, const int64_t *at, void *index, void *data,
                               int64_t *count) LOP_MUST_CHECK;
bool lopk_sampled_work(const lopk_spgemm *g, int64_t *bytes);

/* T <- A^T, or A^H: ptr (a->n + 1), index, data (a->nnz used). Rows of T are sorted. */
lop_status lopk_csr_transpose(const lopk_csr *a, lop_dtype dt, lop_dtype ix, bool conj, void *ptr,
                              void *index, void *data) LOP_MUST_CHECK;

/* Rows at[0], .. at[m] of index and data, shortened in place, one after the other from at[0] on:
 * entries of modulus below `least` go, and all but the `most` largest in modulus (negative: all
 * stay; ties: the first columns; NaN counts as largest). count[i]: what stays. work: `most`
 * doubles. */
lop_status lopk_csr_keep(lop_dtype dt, lop_dtype ix, int64_t m, const int64_t *at, void *index,
                         void *data, double least, int64_t most, double *work,
                         int64_t *count) LOP_MUST_CHECK;
/* Likewise those that a mask (rows lo .. of it) has too; both sorted. */
lop_status lopk_csr_meet(lop_dtype dt, lop_dtype ix, int64_t m, const int64_t *at, void *index,
                         void *data, const lopk_csr *mask, int64_t lo,
                         int64_t *count) LOP_MUST_CHECK;

/* lower[j] <- how many entries (i, j), i < j, the rows of an upper triangle have. */
lop_status lopk_mirror_count(lop_dtype ix, int64_t m, const int64_t *at, const void *index,
                             int64_t *lower) LOP_MUST_CHECK;
/* The whole of a symmetric (conj: Hermitian) matrix of its upper triangle: row i begins at to[i]
 * with lower[i] entries mirrored. `next`: m numbers of work. */
lop_status lopk_mirror(lop_dtype dt, lop_dtype ix, int64_t m, bool conj, const int64_t *at,
                       const void *index, const void *data, const int64_t *lower, const int64_t *to,
                       int64_t *next, void *toindex, void *todata) LOP_MUST_CHECK;

#endif
