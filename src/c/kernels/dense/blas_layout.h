/* blas_layout.h: a matrix as BLAS and LAPACK see it: its order and its leading dimension. */
#ifndef LOPK_BLAS_LAYOUT_H
#define LOPK_BLAS_LAYOUT_H

#include "base/buf.h"
#include "blas_table.h"

static inline int64_t at_least_1(int64_t n) { return n > 1 ? n : 1; }
static inline int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
static inline bool is_col(const lop_mat *a) {
    return (a->rs == 1 || a->m <= 1) && (a->cs >= at_least_1(a->m) || a->n <= 1) &&
           lop_blas_fits(a->cs);
}
static inline bool is_row(const lop_mat *a) {
    return (a->cs == 1 || a->n <= 1) && (a->rs >= at_least_1(a->n) || a->m <= 1) &&
           lop_blas_fits(a->rs);
}
/* Leading dimension in the given order; BLAS wants at least the line's length even where unused. */
static inline int64_t ld_col(const lop_mat *a) { return a->n <= 1 ? at_least_1(a->m) : a->cs; }
static inline int64_t ld_row(const lop_mat *a) { return a->m <= 1 ? at_least_1(a->n) : a->rs; }
static inline bool fits(const lop_mat *a) {
    return lop_blas_fits(a->m) && lop_blas_fits(a->n) && lop_blas_fits(a->rs) &&
           lop_blas_fits(a->cs);
}
static inline int64_t size_of(lop_dtype dt) { return dt == LOP_f32 ? 4 : dt == LOP_c128 ? 16 : 8; }
static inline lop_mat flip(const lop_mat *a) {
    return (lop_mat){a->p, a->n, a->m, a->cs, a->rs, a->dt};
}

#endif
