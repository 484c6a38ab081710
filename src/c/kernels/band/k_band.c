/* k_band.c: products with bands, stencils and grid Laplacians for 13 dtypes; general tridiagonal
 * solves for the four float ones (definite ones: k_band_twisted_cholesky.c).
 *
 * Products of one column run diagonal by diagonal on blocks of the result that stay in L1, all
 * loops over unit strides where the arrays have them; those of several columns in C order row by
 * row. Cost: 2 (l + u + 1) n k operations, each array read once. Componentwise accurate. Solves:
 * elimination from both ends where no row need change places with its neighbour, else gtsv's; the
 * right-hand sides are worked on where they lie. Bound by the latency of one division for two rows,
 * of two for one. */
#include "k_band.h"

#include "kernels/common/k_clones.h"
#include "kernels/common/kernels.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 512 };

typedef struct band_args {
    int64_t l, u;
    const lop_mat *ab;
    bool trans, conj;
} band_args;
typedef struct tri_args {
    const lop_mat *dl, *d, *du;
    bool conj;
} tri_args;
typedef struct stencil_args {
    int count;
    const double *w;
    const int64_t *iw;
    int64_t first;
    bool wrap;
} stencil_args;
typedef struct grid_args {
    int64_t left, n, right;
    int bc;
} grid_args;

static inline int64_t max_of(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }

#define LOPK_TEMPLATE "kernels/band/k_band_per_dtype.h"
#include "kernels/common/k_each.h"

#define TABLE(type, f)                                                                             \
    static const type f##_table[LOP_NDTYPE] = {f##_b8,  f##_i8,  f##_u8,  f##_i16, f##_u16,        \
                                               f##_i32, f##_u32, f##_i64, f##_u64, f##_f32,        \
                                               f##_f64, f##_c64, f##_c128}
typedef void (*tri_fn)(const lop_mat *y, const tri_args *g, const lop_mat *x);
typedef void (*band_fn)(const lop_mat *y, const band_args *g, const lop_mat *x);
typedef void (*stencil_fn)(const lop_mat *y, const stencil_args *g, const lop_mat *x);
typedef void (*grid_fn)(const lop_mat *y, const grid_args *g, const lop_mat *x);
TABLE(tri_fn, tri_mm);
TABLE(band_fn, band_mm);
TABLE(stencil_fn, stencil);
TABLE(grid_fn, laplace);

void lopk_tri_mm(const lop_mat *y, const lop_mat *dl, const lop_mat *d, const lop_mat *du,
                 bool conj, const lop_mat *x) {
    LOP_ASSERT(y->dt == x->dt && y->dt == d->dt && y->m == x->m && y->n == x->n && d->m == y->m);
    const tri_args g = {dl, d, du, conj};
    if (y->m > 0 && y->n > 0) tri_mm_table[y->dt](y, &g, x);
}
void lopk_band_mm(const lop_mat *y, int64_t l, int64_t u, const lop_mat *ab, bool trans, bool conj,
                  const lop_mat *x) {
    LOP_ASSERT(y->dt == x->dt && y->dt == ab->dt && y->m == x->m && y->n == x->n);
    LOP_ASSERT(ab->m == l + u + 1 && ab->n == y->m);
    const band_args g = {l, u, ab, trans, conj};
    lopk_zero(y);
    if (y->m > 0 && y->n > 0) band_mm_table[y->dt](y, &g, x);
}
void lopk_stencil(const lop_mat *y, int count, const double *w, const int64_t *iw, int64_t first,
                  bool wrap, const lop_mat *x) {
    LOP_ASSERT(y->dt == x->dt && y->n == x->n);
    const stencil_args g = {count, w, iw, first, wrap};
    lopk_zero(y);
    if (y->m > 0 && y->n > 0 && x->m > 0) stencil_table[y->dt](y, &g, x);
}
void lopk_laplace_axis(const lop_mat *y, int64_t left, int64_t n, int64_t right, int bc,
                       const lop_mat *x) {
    LOP_ASSERT(y->dt == x->dt && y->m == x->m && y->n == x->n && y->m == left * n * right);
    const grid_args g = {left, n, right, bc};
    if (y->m > 0 && y->n > 0) laplace_table[y->dt](y, &g, x);
}

/* Four vectors of n elements and n marks. */
size_t lopk_gtsv_bytes(int64_t n, lop_dtype dt) {
    return 4 * (((size_t)n * lop_dtype_size(dt) + 63) & ~(size_t)63) + (size_t)n;
}
#define BY_FLOAT(dt, f, ...)                                                                       \
    ((dt) == LOP_f32   ? f##_f32(__VA_ARGS__)                                                      \
     : (dt) == LOP_f64 ? f##_f64(__VA_ARGS__)                                                      \
     : (dt) == LOP_c64 ? f##_c64(__VA_ARGS__)                                                      \
                       : f##_c128(__VA_ARGS__))
lop_status lopk_gtsv(const lop_mat *dl, const lop_mat *d, const lop_mat *du, void *work,
                     const lop_mat *b, int64_t *where) {
    LOP_ASSERT(lop_is_blas(b->dt) && b->dt == d->dt && b->m == d->m);
    *where = b->m > 0 ? BY_FLOAT(b->dt, gtsv, dl, d, du, work, b) : -1;
    return *where < 0 ? LOP_OK : LOP_SINGULAR;
}
/* Vector `which` of the work, as k_band_solve_per_dtype.h lays it out. */
static char *work_at(void *work, int64_t n, lop_dtype dt, int which) {
    return (char *)work + (size_t)which * (((size_t)n * lop_dtype_size(dt) + 63) & ~(size_t)63);
}
void *lopk_gtsv_pivots(void *work, int64_t n, lop_dtype dt) { return work_at(work, n, dt, 1); }
lop_status lopk_gttrf(const lop_mat *dl, const lop_mat *d, const lop_mat *du, void *work,
                      lop_mat *pivots, bool *odd) {
    const int64_t n = d->m;
    const lop_mat none = {NULL, n, 0, 1, 1, d->dt};
    int64_t where;
    *odd = false;
    *pivots = (lop_mat){work_at(work, n, d->dt, 1), n, 1, 1, 1, d->dt};
    lop_status st = lopk_gtsv(dl, d, du, work, &none, &where);
    const unsigned char *swap = (const unsigned char *)work_at(work, n, d->dt, 4);
    for (int64_t i = 0; st == LOP_OK && i < n; i++) *odd ^= swap[i] != 0;
    return st;
}
lop_status lopk_pttrf(const lop_mat *d, const lop_mat *e, bool conj_e, void *work,
                      lop_mat *pivots) {
    *pivots = (lop_mat){work, d->m, 1, 1, 1, lop_dtype_real(d->dt)};
    const int64_t bad = d->m > 0 ? BY_FLOAT(d->dt, pttrf, d, e, conj_e, work) : -1;
    return bad < 0 ? LOP_OK : LOP_SINGULAR;
}
