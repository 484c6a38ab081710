/* k_sparse_step.c: see k_sparse_step.h.
 *
 * Golub and Kahan's bidiagonalisation (1965) needs A v and then A^H of what comes of it. Some rows
 * at a time, both read the same entries: those are still in memory, where the rows are few in the
 * cache, when the adjoint is applied. So the matrix comes from its file once for both. The norm is
 * summed by pieces of 65536 rows, then over the pieces.
 *
 * Cost: 4 nnz operations; bytes: the matrix once, v and w at random. Entries may
 * change between the two passes (arrays are borrowed), so indices are checked in both. */
#include "k_sparse_step.h"

#include "k_clones.h"
#include "kernels.h"

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

typedef bool (*step_fn)(const step_args *g, double *sum);

/* Which dtypes of vectors go with entries of half their width. */
#define HALF_f32 0
#define HALF_f64 1
#define HALF_c64 0
#define HALF_c128 1

typedef struct __attribute__((may_alias)) step_pair {
    float re, im;
} step_pair;

#define LOPK_TEMPLATE "k_sparse_step_t.h"
#include "k_each.h"

/* By the vectors' dtype: entries of that dtype, with either index type; then of half its width. */
#define OWN(dt) step_##dt##_i32, step_##dt##_i64
static const step_fn step_table[LOP_NDTYPE][4] = {
    [LOP_f32] = {OWN(f32)},
    [LOP_f64] = {OWN(f64), step_f64_half_i32, step_f64_half_i64},
    [LOP_c64] = {OWN(c64)},
    [LOP_c128] = {OWN(c128), step_c128_half_i32, step_c128_half_i64},
};

lop_status lopk_csr_step(const lop_mat *indptr, const lop_mat *indices, const lop_mat *data,
                         double alpha, const lop_mat *v, const lop_mat *u, const lop_mat *w,
                         double *sum) {
    LOP_ASSERT((!v || v->dt == u->dt) && (!w || w->dt == u->dt));
    LOP_ASSERT(!v || !w || v->m == w->m);
    const bool narrow = indptr->dt == LOP_i32, half = data->dt != u->dt;
    const lop_dtype halved = u->dt == LOP_c128 ? LOP_c64 : LOP_f32;
    *sum = 0;
    if (indptr->dt != indices->dt || (!narrow && indptr->dt != LOP_i64)) return LOP_DTYPE;
    if (!lop_is_blas(u->dt) || (half && (data->dt != halved || u->dt == LOP_c64))) return LOP_DTYPE;
    if (indptr->m < u->m + 1) return LOP_INDEX;
    step_args g = {
        .ptr = indptr->p,
        .index = indices->p,
        .data = data->p,
        .m = u->m,
        .n = v   ? v->m
             : w ? w->m
                 : 0,
        .nnz = indices->m < data->m ? indices->m : data->m,
        .alpha = alpha,
        .v = v ? v->p : NULL,
        .u = u->p,
        .w = w ? w->p : NULL,
    };
    g.near = g.n > FAR / 16 ? FAR : g.n < NEAR / 16 ? NEAR : 16 * g.n;
    return step_table[u->dt][(narrow ? 0 : 1) + (half ? 2 : 0)](&g, sum) ? LOP_OK : LOP_INDEX;
}
