/* k_sparse_pair.c: A D B with sparse A and B as a dense matrix, or its diagonals; 13 dtypes x 2
 * index types.
 *
 * dense      y[i, :] += A[i, k] D[k] B[k, :] for each entry of A; B by rows
 * diagonal   A by rows, B by columns: row i of A is spread over a vector, column j of B read
 * against it. A by columns, B by rows (as in S^T S): column by column of A likewise, the products
 *            added where they belong
 * A factor that lies otherwise is sorted by counting into the work. */
#include "k_sparse_pair.h"
#include "kernels/common/k_clones.h"
#include "kernels/common/kernels.h"

#include <string.h>

#define LOPK_TEMPLATE "kernels/sparse/k_sparse_pair_per_dtype.h"
#include "kernels/common/k_each.h"

typedef bool (*dense_fn)(const lop_mat *y, const lopk_factor *a, const lopk_factor *b,
                         const void *d);
typedef bool (*diagonal_fn)(const lop_mat *y, const lopk_factor *a, const lopk_factor *b,
                            const void *d, int64_t k, void *work, unsigned char *mark);
typedef bool (*by_rows_fn)(const lopk_factor *f, lopk_factor *to, void *ptr, void *index,
                           void *data);

#define PAIR(f, dt) [LOP_##dt] = {f##_##dt##_i32, f##_##dt##_i64}
#define TABLE(type, table, f)                                                                      \
    static const type table[LOP_NDTYPE][2] = {                                                     \
        PAIR(f, b8),  PAIR(f, i8),  PAIR(f, u8),  PAIR(f, i16), PAIR(f, u16),                      \
        PAIR(f, i32), PAIR(f, u32), PAIR(f, i64), PAIR(f, u64), PAIR(f, f32),                      \
        PAIR(f, f64), PAIR(f, c64), PAIR(f, c128)};
TABLE(by_rows_fn, by_rows_table, by_rows)
TABLE(dense_fn, dense_table, dense)
TABLE(diagonal_fn, inner_table, inner)
TABLE(diagonal_fn, outer_table, outer)

static lopk_factor turned(const lopk_factor *f) {
    lopk_factor t = *f;
    t.m = f->n;
    t.n = f->m;
    if (f->format == LOPK_TRIPLETS) {
        t.index = f->ptr;
        t.ptr = f->index;
    } else {
        t.format = f->format == LOPK_BY_ROWS ? LOPK_BY_COLUMNS : LOPK_BY_ROWS;
    }
    return t;
}

/* Adds `bytes`, rounded up to 64, to *at. */
static bool more(int64_t *at, int64_t count, int64_t size) {
    int64_t part;
    return lop_mul_ok(count, size, &part) && lop_add_ok(part, 63, &part) &&
           lop_add_ok(*at, part & ~(int64_t)63, at);
}

/* Of a factor sorted either way. */
static bool room(const lopk_factor *f, int64_t ix, int64_t el, int64_t *at) {
    const int64_t longer = f->m > f->n ? f->m : f->n;
    return longer < INT64_MAX && more(at, longer + 1, ix) && more(at, f->nnz, ix) &&
           more(at, f->nnz, el);
}

bool lopk_pair_work(const lopk_pair *p, int64_t *bytes) {
    const int64_t ix = (int64_t)lop_dtype_size(p->ix), el = (int64_t)lop_dtype_size(p->dt),
                  longer = p->a.m > p->a.n ? p->a.m : p->a.n;
    *bytes = 0;
    return room(&p->a, ix, el, bytes) && room(&p->b, ix, el, bytes) && more(bytes, longer, el) &&
           more(bytes, longer, 1);
}

/* f by rows: itself, or sorted into the work, which is used up. */
static bool sorted(const lopk_pair *p, const lopk_factor *f, lopk_factor *to, char **work) {
    const int64_t ix = (int64_t)lop_dtype_size(p->ix), el = (int64_t)lop_dtype_size(p->dt);
    int64_t index = 0, data, end;
    *to = *f;
    if (f->format == LOPK_BY_ROWS) return true;
    if (!more(&index, f->m + 1, ix)) return false;
    data = index;
    if (!more(&data, f->nnz, ix)) return false;
    end = data;
    if (!more(&end, f->nnz, el)) return false;
    char *at = *work;
    *work += end;
    return by_rows_table[p->dt][p->ix == LOP_i64](f, to, at, at + index, at + data);
}

lop_status lopk_pair_dense(const lop_mat *y, const lopk_pair *p, void *work) {
    lopk_factor a = p->a, b;
    char *at = work;
    if (p->ix != LOP_i32 && p->ix != LOP_i64) return LOP_DTYPE;
    lopk_zero(y);
    if (a.format == LOPK_TRIPLETS && !sorted(p, &p->a, &a, &at)) return LOP_INDEX;
    if (!sorted(p, &p->b, &b, &at)) return LOP_INDEX;
    return dense_table[p->dt][p->ix == LOP_i64](y, &a, &b, p->d) ? LOP_OK : LOP_INDEX;
}

lop_status lopk_pair_diagonal(const lop_mat *y, const lopk_pair *p, int64_t k, void *work) {
    const bool outer = p->a.format == LOPK_BY_COLUMNS && p->b.format == LOPK_BY_ROWS;
    const lopk_factor from = turned(outer ? &p->a : &p->b);
    const int64_t n = outer ? p->a.m : p->a.n, el = (int64_t)lop_dtype_size(p->dt);
    lopk_factor a, b;
    char *at = work;
    int64_t sums = 0;
    if (p->ix != LOP_i32 && p->ix != LOP_i64) return LOP_DTYPE;
    lopk_zero(y);
    if (!sorted(p, outer ? &from : &p->a, &a, &at) || !sorted(p, outer ? &p->b : &from, &b, &at) ||
        !more(&sums, n, el))
        return LOP_INDEX;
    memset(at, 0, (size_t)(sums + n));
    const diagonal_fn *f = outer ? outer_table[p->dt] : inner_table[p->dt];
    return f[p->ix == LOP_i64](y, &a, &b, p->d, k, at, (unsigned char *)at + sums) ? LOP_OK
                                                                                   : LOP_INDEX;
}
