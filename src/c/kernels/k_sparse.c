/* k_sparse.c: gather, scatter, and sparse matrix times dense, CSR, CSC and COO, 13 dtypes x 2 index
 * types.
 *
 * CSR:  y[i] = sum_p data[p] x[indices[p]], p in [indptr[i], indptr[i+1])
 * CSC:  y[indices[p]] += data[p] x[j], p in [indptr[j], indptr[j+1])
 *
 * Cost: 2 nnz k operations; bytes: the matrix once and x at random. Bound by memory, so the checks
 * (one unsigned comparison an index, two a row; never-taken branches) are within the noise. Arrays
 * may change between calls, and even during one from another thread: each value is read once and
 * used only after its check, so nothing outside the arrays is ever touched.
 * Sums run in storage order, one accumulator: the same bits as SciPy's loops, also where the rows
 * of CSR go to several threads. */
#include "k_clones.h"
#include "k_threads.h"
#include "kernels.h"

#include <stdatomic.h>

typedef struct sparse_args {
    const void *ptr, *index, *data;
    int64_t m, n, nnz;
    bool conj;
} sparse_args;

typedef bool (*gather_fn)(const lop_mat *y, const lop_mat *index, const lop_mat *x);
typedef bool (*sparse_fn)(const sparse_args *g, const lop_mat *x, const lop_mat *y);

#define LOPK_TEMPLATE "k_sparse_t.h"
#include "k_each.h"

#define PAIR(f, dt) [LOP_##dt] = {f##_##dt##_i32, f##_##dt##_i64}
#define TABLE(type, table, f)                                                                      \
    static const type table[LOP_NDTYPE][2] = {                                                     \
        PAIR(f, b8),  PAIR(f, i8),  PAIR(f, u8),  PAIR(f, i16), PAIR(f, u16),                      \
        PAIR(f, i32), PAIR(f, u32), PAIR(f, i64), PAIR(f, u64), PAIR(f, f32),                      \
        PAIR(f, f64), PAIR(f, c64), PAIR(f, c128)};
TABLE(gather_fn, take_table, take)
TABLE(gather_fn, scatter_table, scatter)
TABLE(sparse_fn, csr_table, csr)
TABLE(sparse_fn, csc_table, csc)
TABLE(sparse_fn, coo_table, coo)

/* 0 for i32, 1 for i64, -1 for anything else. */
static inline int index_kind(const lop_mat *index) {
    return index->dt == LOP_i32 ? 0 : index->dt == LOP_i64 ? 1 : -1;
}

lop_status lopk_take_rows(const lop_mat *y, const lop_mat *index, const lop_mat *x) {
    LOP_ASSERT(y->dt == x->dt && y->n == x->n && index->m == y->m);
    const int kind = index_kind(index);
    if (kind < 0) return LOP_DTYPE;
    return take_table[y->dt][kind](y, index, x) ? LOP_OK : LOP_INDEX;
}

lop_status lopk_scatter_rows_add(const lop_mat *y, const lop_mat *index, const lop_mat *x) {
    LOP_ASSERT(y->dt == x->dt && y->n == x->n && index->m == x->m);
    const int kind = index_kind(index);
    if (kind < 0) return LOP_DTYPE;
    lopk_zero(y);
    return scatter_table[y->dt][kind](y, index, x) ? LOP_OK : LOP_INDEX;
}

/* Fills *g; false when the two index arrays are not of one legal dtype. */
static bool args_of(sparse_args *g, const lop_mat *y, const lop_mat *ptr, const lop_mat *index,
                    const lop_mat *data, bool conj, const lop_mat *x) {
    LOP_ASSERT(data->dt == x->dt && x->dt == y->dt && x->n == y->n);
    g->ptr = ptr->p;
    g->index = index->p;
    g->data = data->p;
    g->m = y->m;
    g->n = x->m;
    g->nnz = index->m < data->m ? index->m : data->m;
    g->conj = conj;
    return ptr->dt == index->dt && index_kind(ptr) >= 0;
}

lop_status lopk_csr_mm(const lop_mat *y, const lop_mat *indptr, const lop_mat *indices,
                       const lop_mat *data, bool conj, const lop_mat *x) {
    sparse_args g;
    if (!args_of(&g, y, indptr, indices, data, conj, x)) return LOP_DTYPE;
    if (indptr->m < y->m + 1) return LOP_INDEX;
    return csr_table[y->dt][index_kind(indptr)](&g, x, y) ? LOP_OK : LOP_INDEX;
}

typedef struct csr_job {
    const lop_mat *y, *indptr, *indices, *data, *x;
    bool conj;
    int64_t rows; /* of a part */
    atomic_int status;
} csr_job;

static void csr_part(void *job, const lopk_part *part) {
    csr_job *g = job;
    const int64_t from = part->index * g->rows, left = g->y->m - from;
    lop_mat y = *g->y, indptr = *g->indptr;
    y.m = left < g->rows ? left : g->rows;
    y.p = (char *)y.p + from * y.rs * (int64_t)lop_dtype_size(y.dt);
    indptr.m = y.m + 1;
    indptr.p = (char *)indptr.p + from * (int64_t)lop_dtype_size(indptr.dt);
    const lop_status st = lopk_csr_mm(&y, &indptr, g->indices, g->data, g->conj, g->x);
    if (st != LOP_OK) atomic_store(&g->status, (int)st);
}

/* A thread is worth its start for 3e5 products (some 0.3 ms); eight parts for each even them out.
 */
lop_status lopk_csr_mm_parts(const lop_mat *y, const lop_mat *indptr, const lop_mat *indices,
                             const lop_mat *data, bool conj, const lop_mat *x,
                             const lopk_team *team) {
    const double most = (double)data->m * (double)x->n / 3e5;
    if (!team || team->threads < 2 || most < 2 || indptr->m < y->m + 1)
        return lopk_csr_mm(y, indptr, indices, data, conj, x);
    csr_job g = {y,     indptr, indices, data, x, conj, y->m / (8 * (int64_t)team->threads) + 1,
                 LOP_OK};
    if (!lopk_parts(team, most < LOPK_MAXTHREADS ? (int64_t)most : LOPK_MAXTHREADS,
                    (y->m + g.rows - 1) / g.rows, 0, NULL, csr_part, &g))
        return LOP_CALLBACK;
    return (lop_status)atomic_load(&g.status);
}

lop_status lopk_csc_mm(const lop_mat *y, const lop_mat *indptr, const lop_mat *indices,
                       const lop_mat *data, bool conj, const lop_mat *x) {
    sparse_args g;
    if (!args_of(&g, y, indptr, indices, data, conj, x)) return LOP_DTYPE;
    if (indptr->m < x->m + 1) return LOP_INDEX;
    lopk_zero(y);
    return csc_table[y->dt][index_kind(indptr)](&g, x, y) ? LOP_OK : LOP_INDEX;
}

lop_status lopk_coo_mm(const lop_mat *y, const lop_mat *row, const lop_mat *col,
                       const lop_mat *data, bool conj, const lop_mat *x) {
    sparse_args g;
    if (!args_of(&g, y, row, col, data, conj, x)) return LOP_DTYPE;
    if (row->m < g.nnz) g.nnz = row->m;
    lopk_zero(y);
    return coo_table[y->dt][index_kind(row)](&g, x, y) ? LOP_OK : LOP_INDEX;
}
