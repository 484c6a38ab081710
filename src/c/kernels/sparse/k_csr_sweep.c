/* k_csr_sweep.c: see k_csr_sweep.h.
 *
 * Golub and Kahan's bidiagonalisation (1965) needs A v and then A^H of what comes of it. Some rows
 * at a time, both read the same entries: those are still in memory, where the rows are few in the
 * cache, when the adjoint is applied. So the matrix comes from its file once for both. Where v and
 * w lie in the cache beside each other that is row by row. The norm is summed by pieces of 65536
 * rows, then over the pieces.
 *
 * Cost: 4 nnz operations; bytes: the matrix once, v and w at random. Entries may
 * change between the two passes (arrays are borrowed), so indices are checked in both. */
#include "k_csr_sweep.h"

#include "kernels/common/k_clones.h"
#include "kernels/common/k_vectors.h"
#include "kernels/common/kernels.h"

#include <string.h>

typedef struct step_args {
    const void *ptr, *index, *data;
    int64_t m, n, nnz;
    double alpha;
    int64_t near;  /* entries of a turn */
    const void *v; /* or NULL */
    void *u, *w;   /* w or NULL */
} step_args;

/* Rows are taken until they have 16 entries a column, at least NEAR (3 MB in float64) and at most
 * FAR (50 MB, still in memory where they came from a file). Each turn from A v to A^H u brings the
 * other vector into the cache anew, which costs more than reading entries twice in order: of 2e5
 * columns, 8 ns an entry in turns of 262144 entries, 5.6 of 3e6 or more; of 2e4 columns 2.5 in all
 * from 65000 (2026-11, an AMD EPYC with 512 kB of L2 a core and a shared L3, other work beside). */
enum { NEAR = 262144, FAR = 4194304, ROWS = 65536 };
/* Bytes of v up to which both go row by row: of 1e5 columns 2.5 ns an entry where turns take 2.9
 * and two passes 3.4; of 2e5 3.2, 3.9 and 4.0; of 1e6 17, 14 and 8 (2026-11-22, on that CPU). */
enum { BESIDE = 2097152 };

typedef bool (*step_fn)(const step_args *g, double *sum);

/* Which dtypes of vectors go with entries of half their width. */
#define HALF_f32 0
#define HALF_f64 1
#define HALF_c64 0
#define HALF_c128 1

typedef struct __attribute__((may_alias)) step_pair {
    float re, im;
} step_pair;

#define LOPK_TEMPLATE "kernels/sparse/k_csr_sweep_per_dtype.h"
#include "kernels/common/k_each.h"

/* By the vectors' dtype: entries of that dtype, with either index type; then of half its width. */
#define OWN(dt) step_##dt##_i32, step_##dt##_i64
static const step_fn step_table[LOP_NDTYPE][4] = {
    [LOP_f32] = {OWN(f32)},
    [LOP_f64] = {OWN(f64), step_f64_half_i32, step_f64_half_i64},
    [LOP_c64] = {OWN(c64)},
    [LOP_c128] = {OWN(c128), step_c128_half_i32, step_c128_half_i64},
};

/* False: dtypes that do not go together. */
static bool suits(const lop_mat *indptr, const lop_mat *indices, const lop_mat *data,
                  const lop_mat *u) {
    const lop_dtype halved = u->dt == LOP_c128 ? LOP_c64 : LOP_f32;
    if (indptr->dt != indices->dt || (indptr->dt != LOP_i32 && indptr->dt != LOP_i64)) return false;
    if (!lop_is_blas(u->dt)) return false;
    return data->dt == u->dt || (data->dt == halved && u->dt != LOP_c64);
}

static step_fn loops_of(const lop_mat *indptr, const lop_mat *data, const lop_mat *u) {
    return step_table[u->dt][(indptr->dt == LOP_i32 ? 0 : 1) + (data->dt != u->dt ? 2 : 0)];
}

static step_args args_of(const lop_mat *indptr, const lop_mat *indices, const lop_mat *data,
                         double alpha, const lop_mat *u, int64_t n) {
    step_args g = {.ptr = indptr->p, .index = indices->p, .data = data->p, .m = u->m, .n = n};
    g.nnz = indices->m < data->m ? indices->m : data->m;
    g.alpha = alpha;
    g.u = u->p;
    g.near = n > FAR / 16 ? FAR : n < NEAR / 16 ? NEAR : 16 * n;
    return g;
}

lop_status lopk_csr_step(const lop_mat *indptr, const lop_mat *indices, const lop_mat *data,
                         double alpha, const lop_mat *v, const lop_mat *u, const lop_mat *w,
                         double *sum) {
    LOP_ASSERT((!v || v->dt == u->dt) && (!w || w->dt == u->dt));
    LOP_ASSERT(!v || !w || v->m == w->m);
    *sum = 0;
    if (!suits(indptr, indices, data, u)) return LOP_DTYPE;
    if (indptr->m < u->m + 1 || !lopk_indptr_begins(indptr)) return LOP_INDEX;
    step_args g = args_of(indptr, indices, data, alpha, u, v ? v->m : w ? w->m : 0);
    if (v) g.v = v->p;
    if (w) g.w = w->p;
    return loops_of(indptr, data, u)(&g, sum) ? LOP_OK : LOP_INDEX;
}

/* -- in parts, side by side */

typedef struct both_job {
    step_args g[LOPK_CSR_PARTS];
    double sum[LOPK_CSR_PARTS];
    bool good[LOPK_CSR_PARTS];
    step_fn run;
    size_t bytes; /* of w */
} both_job;

int lopk_csr_parts(int64_t nnz, int64_t n, size_t size) {
    if (n <= 0 || n > BESIDE / (int64_t)size) return 0;
    const int64_t parts = nnz / 16 / n;
    return parts < 4 ? 0 : parts < LOPK_CSR_PARTS ? (int)parts : LOPK_CSR_PARTS;
}

static void one_part(void *job, const lopk_part *part) {
    both_job *b = job;
    const int64_t i = part->index;
    memset(b->g[i].w, 0, b->bytes);
    b->good[i] = b->run(&b->g[i], &b->sum[i]);
}

/* The first row whose entries begin at `at` or behind. What does not ascend is found by the loops.
 */
static int64_t row_at(const lop_mat *indptr, int64_t m, int64_t at) {
    int64_t lo = 0, hi = m;
    while (lo < hi) {
        const int64_t mid = lo + (hi - lo) / 2;
        const int64_t start = indptr->dt == LOP_i32 ? ((const int32_t *)indptr->p)[mid]
                                                    : ((const int64_t *)indptr->p)[mid];
        if (start < at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

lop_status lopk_csr_both(const lop_mat *indptr, const lop_mat *indices, const lop_mat *data,
                         double alpha, const lop_mat *v, const lop_mat *u, const lop_mat *w,
                         void *more, const lopk_team *team, double *sum) {
    const int64_t size = (int64_t)lop_dtype_size(u->dt), n = v->m;
    const int64_t index = (int64_t)lop_dtype_size(indptr->dt);
    const int parts = lopk_csr_parts(data->m, n, (size_t)size);
    const int64_t worth = 1 + data->m / 150000; /* threads, as in k_sparse.c: two products each */
    int64_t first = 0;
    *sum = 0;
    if (!suits(indptr, indices, data, u) || parts == 0) return LOP_DTYPE;
    if (indptr->m < u->m + 1 || !lopk_indptr_begins(indptr)) return LOP_INDEX;
    both_job b = {.run = loops_of(indptr, data, u), .bytes = (size_t)(n * size)};
    for (int i = 0; i < parts; i++) { /* none begins before the last ended, whatever indptr holds */
        int64_t last = i < parts - 1 ? row_at(indptr, u->m, data->m / parts * (i + 1)) : u->m;
        if (last < first) last = first;
        step_args *g = &b.g[i];
        *g = args_of(indptr, indices, data, alpha, u, n);
        g->ptr = (const char *)indptr->p + first * index;
        g->u = (char *)u->p + first * size;
        g->m = last - first;
        g->v = v->p;
        g->w = i ? (char *)more + (i - 1) * n * size : w->p;
        first = last;
    }
    if (!lopk_parts(team, worth < parts ? worth : parts, parts, 0, NULL, one_part, &b))
        return LOP_CALLBACK;
    for (int i = 0; i < parts; i++) {
        const double _Complex one = 1;
        if (!b.good[i]) return LOP_INDEX;
        *sum += b.sum[i];
        if (i) lopk_vec_axpy(u->dt, n, 1, &one, b.g[i].w, w->p);
    }
    return LOP_OK;
}
