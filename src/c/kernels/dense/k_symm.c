/* k_symm.c: products by the upper triangle of a symmetric or Hermitian A.
 *
 * One column: k_symv.c. Up to 32: each tile A_ij above the diagonal serves twice while it is in the
 * cache, y_i += A_ij x_j and y_j += A_ij^H x_i, by the loops of thin products (k_small_gemm.c); x
 * and y lie in the scratch as rows of whole vectors. A tile on the diagonal is made whole first.
 * More columns: so many at a time, for which a tile is read again from the cache; of real numbers
 * from 500 rows and 96 columns on by BLAS's symm, on columns in the scratch. Cost: 2 n^2 k flops,
 * n^2 / 2 elements read from memory. */
#include "blas_layout.h"
#include "blas_table.h"
#include "k_blas.h"
#include "k_small_gemm.h"
#include "kernels/common/kernels.h"

#include <string.h>

enum { SIDE = 48, LONG = 240, THIN = 32 }; /* a tile's rows and columns; columns of x at a time */
enum { FEW = 4 };                          /* columns that k_symv.c takes */
/* Rows and columns from which symm is quicker than tiles, with the turning of x and y: 1000 rows
 * take 0.9 of their time with 100 and 200 columns, 2000 rows 0.6 with 200; 300 rows, 100 columns
 * 1.15 (OpenBLAS 0.3.31, AVX-512, 2026-11-28). On one thread: two of BLAS's wait for each other. */
enum { LARGE = 500, MANY = 96 };

static bool by_blas(int64_t n, int64_t columns, lop_dtype dt) {
    return n >= LARGE && columns >= MANY && !lop_is_complex(dt);
}

static lop_mat part(const lop_mat *a, int64_t i, int64_t j, int64_t m, int64_t n) {
    return (lop_mat){
        (char *)a->p + (i * a->rs + j * a->cs) * size_of(a->dt), m, n, a->rs, a->cs, a->dt};
}

/* The tile i, j turned: of rows j and columns i. */
static lop_mat turned(const lop_mat *tile) { return flip(tile); }

static int64_t whole(int64_t n, lop_dtype dt) {
    const int64_t w = lopk_thin_width(dt);
    return (n + w - 1) / w * w;
}

size_t lopk_symm_scratch(int64_t n, int64_t columns, lop_dtype dt) {
    const int64_t w = 64 / size_of(dt), /* of the widest vectors */
        k = (min_of(columns, THIN) + w - 1) / w * w;
    if (by_blas(n, columns, dt)) return (size_t)(2 * n * columns * size_of(dt));
    return columns == 1 ? 0 : (size_t)(2 * n * k * size_of(dt));
}

/* y and x of rows of whole vectors. */
static void by_tiles(const lop_mat *y, const lop_mat *a, bool adjoint, bool conj,
                     const lop_mat *x) {
    char room[SIDE * SIDE * 16] __attribute__((aligned(64)));
    for (int64_t i = 0; i < a->m; i += SIDE) {
        const int64_t m = min_of(SIDE, a->m - i);
        const lop_mat main = {room, m, m, m, 1, a->dt}, yi = part(y, i, 0, m, y->n),
                      xi = part(x, i, 0, m, x->n), corner = part(a, i, i, m, m);
        lopk_whole_of_half(&main, &corner, adjoint);
        lopk_thin_tile(&yi, &main, conj, &xi, i > 0);
        for (int64_t j = i + m; j < a->n; j += LONG) {
            const int64_t n = min_of(LONG, a->n - j);
            const lop_mat tile = part(a, i, j, m, n), back = turned(&tile),
                          yj = part(y, j, 0, n, y->n), xj = part(x, j, 0, n, x->n);
            lopk_thin_tile(&yi, &tile, conj, &xj, true);
            lopk_thin_tile(&yj, &back, conj != adjoint, &xi, i > 0);
        }
    }
}

/* Of one column in any layout: tiles made where they are used. */
static void one_by_one(const lop_mat *y, const lop_mat *a, bool adjoint, bool conj,
                       const lop_mat *x) {
    char room[SIDE * SIDE * 16] __attribute__((aligned(64)));
    for (int64_t i = 0; i < a->m; i += SIDE)
        for (int64_t j = 0; j < a->n; j += SIDE) {
            const int64_t m = min_of(SIDE, a->m - i), n = min_of(SIDE, a->n - j);
            const lop_mat tile = {room, m, n, n, 1, a->dt}, yi = part(y, i, 0, m, 1),
                          xj = part(x, j, 0, n, 1), above = part(a, i, j, m, n),
                          below = part(a, j, i, n, m), back = turned(&below);
            if (i == j)
                lopk_whole_of_half(&tile, &above, adjoint);
            else if (i < j)
                lopk_copy(&tile, &above);
            else if (adjoint)
                lopk_conj(&tile, &back);
            else
                lopk_copy(&tile, &back);
            lopk_gemm(&yi, &tile, conj, &xj, j > 0);
        }
}

/* By k_symv.c's loops, on columns in the scratch. */
static bool few_columns(const lop_mat *y, const lop_mat *a, bool adjoint, bool conj,
                        const lop_mat *x, void *scratch) {
    const int64_t n = a->n, k = y->n;
    const lop_mat own_x = {scratch, n, k, 1, n, y->dt},
                  own_y = {(char *)scratch + n * k * size_of(y->dt), n, k, 1, n, y->dt};
    if (a->cs != 1 && a->rs != 1) return false;
    lopk_copy(&own_x, x);
    const bool done = lopk_symv(&own_y, a, adjoint, conj, &own_x);
    if (done) lopk_copy(y, &own_y);
    return done;
}

/* By columns, of which y's lie in the scratch; a's upper triangle by rows is the lower one by
 * columns. */
static bool columns_by_blas(const lop_mat *y, const lop_mat *a, const lop_mat *x, void *scratch) {
    const int64_t n = a->n, k = y->n;
    const lop_mat own_y = {scratch, n, k, 1, n, y->dt},
                  own_x = {(char *)scratch + n * k * size_of(y->dt), n, k, 1, n, y->dt},
                  *from = is_col(x) ? x : &own_x;
    const bool col = is_col(a);
    if (!fits(a) || !fits(&own_y) || !(col || is_row(a))) return false;
    const enum CBLAS_UPLO uplo = col ? CblasUpper : CblasLower;
    const int64_t lda = col ? ld_col(a) : ld_row(a);
    if (from == &own_x) lopk_copy(&own_x, x);
    if (y->dt == LOP_f64)
        BLAS(cblas_dsymm)(CblasColMajor, CblasLeft, uplo, n, k, 1, a->p, lda, from->p, ld_col(from),
                          0, own_y.p, n);
    else
        BLAS(cblas_ssymm)(CblasColMajor, CblasLeft, uplo, n, k, 1, a->p, lda, from->p, ld_col(from),
                          0, own_y.p, n);
    lopk_copy(y, &own_y);
    return true;
}

void lopk_symm(const lop_mat *y, const lop_mat *a, bool adjoint, bool conj, const lop_mat *x,
               void *scratch) {
    const int64_t n = a->n, size = size_of(y->dt);
    adjoint = adjoint && lop_is_complex(y->dt);
    conj = conj && lop_is_complex(y->dt);
    if (n == 0 || y->n == 0) return;
    if (y->n == 1) {
        if (!lopk_symv(y, a, adjoint, conj, x)) one_by_one(y, a, adjoint, conj, x);
        return;
    }
    if (y->n <= (lop_is_complex(y->dt) ? FEW / 2 : FEW) &&
        few_columns(y, a, adjoint, conj, x, scratch))
        return;
    if (by_blas(n, y->n, y->dt) && lopk_threads() == 1 && columns_by_blas(y, a, x, scratch)) return;
    for (int64_t c = 0; c < y->n; c += THIN) {
        const int64_t k = min_of(THIN, y->n - c), w = whole(k, y->dt);
        const lop_mat xc = part(x, 0, c, n, k), yc = part(y, 0, c, n, k),
                      own_x = {scratch, n, w, w, 1, y->dt},
                      own_y = {(char *)scratch + n * w * size, n, w, w, 1, y->dt},
                      from = part(&own_x, 0, 0, n, k), to = part(&own_y, 0, 0, n, k);
        const bool x_there = w == k && x->cs == 1, y_there = w == k && y->cs == 1;
        if (!x_there) {
            if (w > k) memset(scratch, 0, (size_t)(n * w * size));
            lopk_copy(&from, &xc);
        }
        by_tiles(y_there ? &yc : &own_y, a, adjoint, conj, x_there ? &xc : &own_x);
        if (!y_there) lopk_copy(&yc, &to);
    }
}
