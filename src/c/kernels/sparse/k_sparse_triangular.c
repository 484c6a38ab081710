/* k_sparse_triangular.c: triangles of sparse matrices (products, substitution) and incomplete
 * Cholesky.
 *
 * A triangle is read out of the user's whole matrix, in whatever order its elements lie: so the
 * sweeps of SSOR need no copy of either triangle. By rows, substitution subtracts what is known
 * before it divides; by columns, it divides and then subtracts from those below.
 *
 * Incomplete Cholesky goes by columns, looking to the left, with a list for each row of the columns
 * that have their next element there (the sparse row of L comes for nothing). Either within A's
 * pattern, or with dual dropping: elements small beside their column of A go, and of the others the
 * largest stay, as many as A's column has and `fill` more (Lin and More 1999, Incomplete Cholesky
 * factorizations with limited memory; Saad 2003, Iterative methods for sparse linear systems,
 * 10.3). Sums run in storage order. */
#include "k_sparse_triangular.h"

#include "kernels/common/k_clones.h"
#include "kernels/common/kernels.h"

#include <math.h>

typedef struct tri_args {
    const void *ptr, *index, *data;
    int64_t n, nnz;
    bool lower, unit, conj;
    int64_t zero;       /* out: where the diagonal is zero; -1 */
    double least, most; /* out: the range of the diagonal */
} tri_args;

typedef bool (*product_fn)(const tri_args *g, const lop_mat *x, const lop_mat *y);
typedef bool (*solve_fn)(tri_args *g, const lop_mat *y);

/* -- which elements of a column stay: none of this knows dtypes -- */

static void swap_both(int64_t *index, double *size, int64_t i, int64_t j) {
    const int64_t t = index[i];
    const double s = size[i];
    index[i] = index[j];
    size[i] = size[j];
    index[j] = t;
    size[j] = s;
}

/* Brings the `keep` largest of n to the front: Hoare's selection, the middle as pivot. */
static void largest_first(int64_t *index, double *size, int64_t n, int64_t keep) {
    int64_t low = 0, high = n - 1;
    while (low < high) {
        const double pivot = size[low + (high - low) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (size[i] > pivot) i++;
            while (size[j] < pivot) j--;
            if (i > j) break;
            swap_both(index, size, i++, j--);
        }
        if (keep <= j + 1)
            high = j;
        else if (keep > i)
            low = i;
        else
            return;
    }
}

/* Heapsort: no memory, no worst case. */
static void sift(int64_t *a, int64_t root, int64_t n) {
    for (int64_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && a[child] < a[child + 1]) child++;
        if (a[root] >= a[child]) return;
        const int64_t t = a[root];
        a[root] = a[child];
        a[child] = t;
    }
}
static void sort(int64_t *a, int64_t n) {
    for (int64_t i = n / 2; i-- > 0;) sift(a, i, n);
    for (int64_t end = n; end-- > 1;) {
        const int64_t t = a[0];
        a[0] = a[end];
        a[end] = t;
        sift(a, 0, end);
    }
}

#define LOPK_TEMPLATE "kernels/sparse/k_sparse_triangular_per_dtype.h"
#include "kernels/common/k_each.h"

#define PAIR(f, dt) [LOP_##dt] = {f##_##dt##_i32, f##_##dt##_i64}
#define FLOATS(f) PAIR(f, f32), PAIR(f, f64), PAIR(f, c64), PAIR(f, c128)
#define ALL(f)                                                                                     \
    PAIR(f, b8), PAIR(f, i8), PAIR(f, u8), PAIR(f, i16), PAIR(f, u16), PAIR(f, i32), PAIR(f, u32), \
        PAIR(f, i64), PAIR(f, u64), FLOATS(f)
static const product_fn rows_table[LOP_NDTYPE][2] = {ALL(tri_rows)};
static const product_fn columns_table[LOP_NDTYPE][2] = {ALL(tri_columns)};
static const solve_fn forward_table[LOP_NDTYPE][2] = {FLOATS(tri_rows_solve)};
static const solve_fn outward_table[LOP_NDTYPE][2] = {FLOATS(tri_columns_solve)};

/* Fills *g; -1 where the index arrays are not of one legal dtype, else which. */
static int args_of(tri_args *g, const lop_mat *y, const lopk_triangle *t) {
    *g = (tri_args){.ptr = t->ptr->p,
                    .index = t->index->p,
                    .data = t->data->p,
                    .n = y->m,
                    .nnz = t->index->m < t->data->m ? t->index->m : t->data->m,
                    .lower = t->lower,
                    .unit = t->unit,
                    .conj = t->conj && lop_is_complex(y->dt),
                    .zero = -1,
                    .least = INFINITY};
    if (t->ptr->dt != t->index->dt) return -1;
    return t->ptr->dt == LOP_i32 ? 0 : t->ptr->dt == LOP_i64 ? 1 : -1;
}

lop_status lopk_triangle_mm(const lop_mat *y, const lopk_triangle *t, const lop_mat *x) {
    tri_args g;
    const int kind = args_of(&g, y, t);
    if (kind < 0) return LOP_DTYPE;
    if (t->ptr->m < y->m + 1 || !lopk_indptr_begins(t->ptr)) return LOP_INDEX;
    lopk_zero(y);
    return (t->csr ? rows_table : columns_table)[y->dt][kind](&g, x, y) ? LOP_OK : LOP_INDEX;
}

lop_status lopk_triangle_solve(const lop_mat *y, const lopk_triangle *t, int64_t *where,
                               double range[2]) {
    tri_args g;
    const int kind = args_of(&g, y, t);
    LOP_ASSERT(lop_is_blas(y->dt));
    if (kind < 0) return LOP_DTYPE;
    if (t->ptr->m < y->m + 1 || !lopk_indptr_begins(t->ptr)) return LOP_INDEX;
    if ((t->csr ? forward_table : outward_table)[y->dt][kind](&g, y)) {
        range[0] = g.unit ? 1 : g.least;
        range[1] = g.unit ? 1 : g.most;
        return LOP_OK;
    }
    *where = g.zero;
    return g.zero < 0 ? LOP_INDEX : LOP_SINGULAR;
}

lop_status lopk_ichol(lop_dtype dt, const lopk_ichol_args *a, int64_t *where) {
    switch (dt) {
    case LOP_f32: return ichol_f32(a, where);
    case LOP_f64: return ichol_f64(a, where);
    case LOP_c64: return ichol_c64(a, where);
    case LOP_c128: return ichol_c128(a, where);
    default: return LOP_DTYPE;
    }
}
