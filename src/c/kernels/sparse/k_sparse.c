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
 * of CSR go to several threads. Of CSC and COO with few right-hand sides and 1e5 entries a part, or
 * more, the columns (triplets) go in parts, whose sums are added up in order: how many says the
 * size, so the bits are the same on any number of threads. */
#include "kernels/common/k_clones.h"
#include "kernels/common/k_threads.h"
#include "kernels/common/kernels.h"

#include <stdatomic.h>

enum { FEW = 4, SUMS = 8 }; /* right-hand sides up to which sums go in parts; parts at most */

typedef struct sparse_args {
    const void *ptr, *index, *data;
    int64_t m, n, nnz;
    bool conj, wide; /* wide: 64-bit indices */
} sparse_args;

typedef bool (*gather_fn)(const lop_mat *y, const lop_mat *index, const lop_mat *x);
typedef bool (*sparse_fn)(const sparse_args *g, const lop_mat *x, const lop_mat *y);

#define LOPK_TEMPLATE "kernels/sparse/k_sparse_per_dtype.h"
#include "kernels/common/k_each.h"

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
    g->wide = ptr->dt == LOP_i64;
    return ptr->dt == index->dt && index_kind(ptr) >= 0;
}

bool lopk_indptr_begins(const lop_mat *indptr) {
    if (indptr->m < 1) return false;
    return indptr->dt == LOP_i32 ? *(const int32_t *)indptr->p == 0
                                 : *(const int64_t *)indptr->p == 0;
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

/* -- sums that rows of x are scattered to: CSC, COO */

/* With 8 entries for a row of y in each part, adding up takes some percent of the time. */
static int64_t sums_of(int64_t nnz, int64_t m, int64_t k) {
    int64_t parts = nnz / 100000;
    if (k > FEW || k < 1 || m < 1) return 1;
    if (parts > nnz / m / 8) parts = nnz / m / 8;
    return parts < 1 ? 1 : parts > SUMS ? SUMS : parts;
}

bool lopk_scatter_room(int64_t nnz, int64_t m, int64_t k, lop_dtype dt, int64_t *bytes) {
    *bytes = 0;
    if (k > FEW) k = FEW; /* a batch of vectors may be run as a matrix of more */
    if (sums_of(nnz, m, k) < 2) return true;
    return lop_mul_ok(m, k * (int64_t)lop_dtype_size(dt), bytes) && lop_add_ok(*bytes, 64, bytes);
}

typedef struct scatter_job {
    const lop_mat *y, *x;
    sparse_args g;
    sparse_fn run;
    bool coo;
    int64_t cut[SUMS + 1]; /* columns of CSC, or triplets */
    int64_t wide;          /* or columns of x and y */
    int turn;
    atomic_bool bad;
} scatter_job;

static const char *entry(const void *p, int64_t at, size_t size) {
    return (const char *)p + at * (int64_t)size;
}

static void part_of_sum(void *job, const lopk_part *part) {
    scatter_job *s = job;
    const size_t ix = s->g.wide ? 8 : 4, el = lop_dtype_size(s->y->dt);
    const int64_t from = s->cut[part->index], count = s->cut[part->index + 1] - from;
    sparse_args g = s->g;
    lop_mat x = *s->x, y = *s->y;
    g.ptr = entry(g.ptr, from, ix);
    if (s->coo) {
        g.index = entry(g.index, from, ix);
        g.data = entry(g.data, from, el);
        g.nnz = count;
    } else {
        g.n = x.m = count;
        x.p = (char *)x.p + from * x.rs * (int64_t)el;
    }
    if (part->index > 0) {
        y = (lop_mat){part->room, y.m, y.n, y.n, 1, y.dt};
        lopk_zero(&y);
    }
    if (!s->run(&g, &x, &y)) atomic_store(&s->bad, true);
    if (!lopk_turn_wait(part, &s->turn, (int)part->index)) return;
    if (part->index > 0) lopk_add(s->y, s->y, &y);
    lopk_turn_pass(part, &s->turn);
}

static void part_of_columns(void *job, const lopk_part *part) {
    scatter_job *s = job;
    const int64_t from = part->index * s->wide, left = s->y->n - from,
                  size = (int64_t)lop_dtype_size(s->y->dt);
    lop_mat x = *s->x, y = *s->y;
    x.n = y.n = left < s->wide ? left : s->wide;
    x.p = (char *)x.p + from * x.cs * size;
    y.p = (char *)y.p + from * y.cs * size;
    if (!s->run(&s->g, &x, &y)) atomic_store(&s->bad, true);
}

/* The columns that hold equal numbers of entries, as far as the pointers say. */
static void cut_columns(scatter_job *s, int64_t parts) {
    s->cut[0] = 0;
    for (int64_t i = 1; i < parts; i++) {
        const int64_t want = s->g.nnz / parts * i;
        int64_t low = s->cut[i - 1], high = s->g.n;
        while (low < high) {
            const int64_t mid = low + (high - low) / 2;
            const int64_t at =
                s->g.wide ? ((const int64_t *)s->g.ptr)[mid] : ((const int32_t *)s->g.ptr)[mid];
            if (at < want)
                low = mid + 1;
            else
                high = mid;
        }
        s->cut[i] = low;
    }
    s->cut[parts] = s->g.n;
}

static lop_status scatter(scatter_job *s, const lopk_team *team, size_t room, void *scratch) {
    const lop_mat *y = s->y;
    const double most = (double)s->g.nnz * (double)y->n / 3e5;
    const int64_t threads = most < LOPK_MAXTHREADS ? (int64_t)most : LOPK_MAXTHREADS,
                  side = team && team->threads > 1 ? team->threads : 1;
    int64_t parts = sums_of(s->g.nnz, y->m, y->n), bytes;
    lopk_zero(y);
    if (!lopk_scatter_room(s->g.nnz, y->m, y->n, y->dt, &bytes)) return LOP_OVERFLOW;
    if (parts > 1 && scratch && (size_t)bytes <= room) {
        void *own = (void *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
        if (s->coo)
            for (int64_t i = 0; i <= parts; i++)
                s->cut[i] = i < parts ? s->g.nnz / parts * i : s->g.nnz;
        else
            cut_columns(s, parts);
        if (!lopk_parts(team, threads, parts, (size_t)bytes, own, part_of_sum, s))
            return LOP_CALLBACK;
    } else if (y->n > FEW && threads > 1 && side > 1) {
        s->wide = y->n / side + (y->n % side != 0);
        if (!lopk_parts(team, threads, (y->n - 1) / s->wide + 1, 0, NULL, part_of_columns, s))
            return LOP_CALLBACK;
    } else if (!s->run(&s->g, s->x, y)) {
        return LOP_INDEX;
    }
    return atomic_load(&s->bad) ? LOP_INDEX : LOP_OK;
}

lop_status lopk_csc_mm(const lop_mat *y, const lop_mat *indptr, const lop_mat *indices,
                       const lop_mat *data, bool conj, const lop_mat *x, const lopk_team *team,
                       size_t room, void *scratch) {
    scatter_job s = {.y = y, .x = x};
    if (!args_of(&s.g, y, indptr, indices, data, conj, x)) return LOP_DTYPE;
    if (indptr->m < x->m + 1) return LOP_INDEX;
    s.run = csc_table[y->dt][s.g.wide];
    return scatter(&s, team, room, scratch);
}

lop_status lopk_coo_mm(const lop_mat *y, const lop_mat *row, const lop_mat *col,
                       const lop_mat *data, bool conj, const lop_mat *x, const lopk_team *team,
                       size_t room, void *scratch) {
    scatter_job s = {.y = y, .x = x, .coo = true};
    if (!args_of(&s.g, y, row, col, data, conj, x)) return LOP_DTYPE;
    if (row->m < s.g.nnz) s.g.nnz = row->m;
    s.run = coo_table[y->dt][s.g.wide];
    return scatter(&s, team, room, scratch);
}
