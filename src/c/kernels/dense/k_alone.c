/* k_alone.c: the updates of a factor in block columns, without a call for which BLAS would wake its
 * other threads: products by loops of our own (k_small_gemm.c), triangles in columns so few that
 * OpenBLAS takes one thread for them. */
#include "k_blas.h"
#include "k_small_gemm.h"
#include "kernels/common/k_clones.h"
#include "kernels/common/kernels.h"

#include <string.h>

enum {
    TILE = 40,  /* columns: syrk of 32 x 40 takes one thread (OpenBLAS 0.3.31) */
    WIDE = 120, /* columns of a tile below such ones */
    FEW = 31,   /* columns of a solve: 32 times as many are fewer than 1024 numbers */
    ROOM = lopk_lone_block * WIDE * 16, /* bytes */
    ROWS = 32                           /* of a solve from the right, side by side */
};

static int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
static lop_mat flip(const lop_mat *a) { return (lop_mat){a->p, a->n, a->m, a->cs, a->rs, a->dt}; }
static lop_mat part(const lop_mat *a, int64_t i, int64_t m, int64_t j, int64_t n) {
    const int64_t at = i * a->rs + j * a->cs;
    return (lop_mat){(char *)a->p + at * (int64_t)lop_dtype_size(a->dt), m, n, a->rs, a->cs, a->dt};
}

/* y -= a b of at most WIDE columns; conj(b) if so. */
static void less_tile(const lop_mat *y, const lop_mat *a, const lop_mat *b, bool conjugate) {
    char room[ROOM] __attribute__((aligned(64)));
    const lop_mat minus = {room, b->m, b->n, 1, b->m, b->dt};
    LOP_ASSERT(b->m * b->n * (int64_t)lop_dtype_size(b->dt) <= ROOM);
    lopk_scale(&minus, -1, -1, b);
    if (conjugate) lopk_conj(&minus, &minus);
    lopk_small_gemm(y, 0, a, false, &minus, 0, 1, true);
}

void lopk_gemm_less_alone(const lop_mat *y, const lop_mat *a, const lop_mat *b) {
    for (int64_t j = 0; j < y->n; j += WIDE) {
        const int64_t n = min_of(WIDE, y->n - j);
        const lop_mat to = part(y, 0, y->m, j, n), by = part(b, 0, b->m, j, n);
        less_tile(&to, a, &by, false);
    }
}

/* The rows of y's columns j .. j + n from i on. */
static void less_rows(const lop_mat *y, const lop_mat *a, int64_t i, int64_t j, int64_t n) {
    const lop_mat to = part(y, i, y->m - i, j, n), rows = part(a, i, y->m - i, 0, a->n),
                  here = part(a, j, n, 0, a->n), by = flip(&here);
    if (to.m > 0) less_tile(&to, &rows, &by, lop_is_complex(a->dt));
}

lop_status lopk_herk_less_alone(const lop_mat *y, const lop_mat *a) {
    lop_status st = LOP_OK;
    for (int64_t j = 0; st == LOP_OK && j < y->n; j += WIDE) {
        const int64_t end = min_of(y->n, j + WIDE);
        const lop_mat upper = part(y, 0, end, 0, end);
        for (int64_t i = j; st == LOP_OK && i < end; i += TILE) {
            const int64_t n = min_of(TILE, end - i);
            const lop_mat corner = part(y, i, n, i, n), here = part(a, i, n, 0, a->n);
            st = lopk_herk_less(&corner, &here);
            less_rows(&upper, a, i + n, i, n);
        }
        less_rows(y, a, end, j, end - j);
    }
    return st;
}

lop_status lopk_trsm_alone(const lop_mat *a, bool lower, bool unit, char trans, const lop_mat *b) {
    lop_status st = LOP_OK;
    for (int64_t j = 0; st == LOP_OK && j < b->n; j += FEW) {
        const lop_mat some = part(b, 0, b->m, j, min_of(FEW, b->n - j));
        st = lopk_trsm(a, lower, unit, trans, &some);
    }
    return st;
}

#define LOPK_TEMPLATE "kernels/dense/k_alone_per_dtype.h"
#include "kernels/common/k_each.h"

lop_status lopk_solve_right_alone(const lop_mat *l, const lop_mat *b) {
    LOP_ASSERT(l->m == b->n && l->m <= lopk_lone_block && l->rs == 1 && b->rs == 1);
    if (l->dt == LOP_f64)
        solve_right_f64(b->m, b->n, l->p, l->cs, b->p, b->cs);
    else if (l->dt == LOP_f32)
        solve_right_f32(b->m, b->n, l->p, l->cs, b->p, b->cs);
    else {
        const lop_mat lt = flip(l), bt = flip(b);
        return lopk_trsm_alone(&lt, false, false, 'C', &bt);
    }
    return LOP_OK;
}
