/* factor.h: the factors that solves and determinants share (made in op_action.c).
 *
 * A derived value: the column-major factor, then the row exchanges. A zero pivot is no failure
 * here: whoever divides by it looks. By Cholesky: one number more, not 0 where it failed and an LU
 * factor stands in its place. */
#ifndef LOP_FACTOR_H
#define LOP_FACTOR_H

#include "expr/op.h"
#include "kernels/common/kernels.h"

/* Where the row exchanges begin. */
static inline size_t lop_factor_bytes(int64_t n, lop_dtype dt) {
    return ((size_t)n * (size_t)n * lop_dtype_size(dt) + 63) & ~(size_t)63;
}
/* The factor of an n x n matrix at `p`, and its row exchanges: n, and the flag of Cholesky's. */
static inline lop_mat lop_factor_at(void *p, int64_t n, lop_dtype dt) {
    return (lop_mat){p, n, n, 1, n > 0 ? n : 1, dt};
}
static inline int64_t *lop_factor_pivots(const lop_mat *f) {
    return (int64_t *)(void *)((char *)f->p + lop_factor_bytes(f->m, f->dt));
}
/* Behind them: the reciprocal condition number, as far as it matters (lopk_near). */
static inline size_t lop_factor_near_at(int64_t n, lop_dtype dt) {
    return lop_factor_bytes(n, dt) + ((size_t)n + 1) * sizeof(int64_t);
}
static inline double *lop_factor_near(const lop_mat *f) {
    return (double *)(void *)((char *)f->p + lop_factor_near_at(f->m, f->dt));
}
static inline lop_status lop_factor_singular(lop_err *err, int64_t pivot, int64_t n) {
    return lop_fail(err, LOP_SINGULAR, "Singular matrix: pivot %lld of %lld is exactly zero",
                    (long long)pivot, (long long)n);
}
/* Of a solve y = A^-1 b where |A| is no less than the largest of A's pivots, the diagonal of `d`
 * (`unit`: ones): by their range, and by what b has grown to. */
void lop_note_pivots(const lop_call *c, const lop_mat *d, bool unit, const lop_mat *y,
                     const lop_mat *b);
/* The slot of the factor of slot `a`, n x n of dtype dt; -1 with the status in *st. */
int lop_emit_lu(lop_emit *e, int64_t n, lop_dtype dt, int a, lop_status *st);
/* hermitian: known to be, not only assumed: then a temporary may be factored where it lies. */
int lop_emit_cholesky(lop_emit *e, int64_t n, lop_dtype dt, int a, bool hermitian, lop_status *st);

/* The array of which an inverse by LU takes the factor: a, or what it sees through a mode
 * (op_invert.c). */
const lop_node *lop_unswapped(const lop_node *a);

/* The same of A = P L D L^H P^T, or of ^T; sizes as in op_ldl.c. */
int lop_emit_ldl(lop_emit *e, int64_t n, lop_dtype dt, bool hermitian, int a, lop_status *st);
/* L and the diagonal of D, what stands beside it, the exchanges, and ipiv[n]: 1 + the place of a
 * pivot that is exactly zero, with which the rest has no meaning. */
typedef struct lop_ldl {
    lop_mat f;
    void *beside;
    int64_t *ipiv;
} lop_ldl;
lop_ldl lop_ldl_parts(void *p, int64_t n, lop_dtype dt);

/* What op_factor_of.c is asked for. */
enum { LOP_FACTOR_LU, LOP_FACTOR_CHOLESKY, LOP_FACTOR_LDLT, LOP_FACTOR_LDLH };

/* `lower` of an op with `check`: the slot that check filled or, where it failed, the last child
 * (op_checked_or_fallback.c). */
lop_status lop_lower_arms(lop_emit *e, const lop_node *self, int out) LOP_MUST_CHECK;

/* -- small Cholesky factors, many at once (op_batched_cholesky.c) */

/* Of many columns of which only sums of squares are wanted so many at once: they stay in the cache.
 */
enum { LOP_AT_ONCE = 2048 };
static inline int64_t lop_at_once(int64_t k) { return k < LOP_AT_ONCE ? k : LOP_AT_ONCE; }

bool lop_stack_fits(int64_t n, lop_dtype dt); /* are matrices of n x n so small? */
/* out <- a^-1 b, an assumed positive definite: by Cholesky, by LU where that fails. n and dt
 * fit, here and below; `quiet`: a failure contradicts no assumption. */
lop_status lop_emit_stack_solve(lop_emit *e, int64_t n, lop_dtype dt, int a, int b, int out,
                                bool quiet) LOP_MUST_CHECK;
/* out, a vector, <- the diagonal of b^T a^-1 b: the squares of the columns of L^-1 b. */
lop_status lop_emit_stack_squares(lop_emit *e, int64_t n, lop_dtype dt, int a, int b, int out,
                                  bool quiet) LOP_MUST_CHECK;
/* The slot of vectors that hold the diagonals of a's Cholesky factors, where `mask` is not set; -1
 * with the status in *st. *a then is the slot to read where it is set. */
int lop_emit_stack_roots(lop_emit *e, int64_t n, lop_dtype dt, int *a, int mask, bool quiet,
                         lop_status *st);
/* out <- the factors, lower triangles, NaN in the first place where there is none. */
lop_status lop_emit_stack_triangles(lop_emit *e, int64_t n, lop_dtype dt, int a,
                                    int out) LOP_MUST_CHECK;
static inline bool lop_factor_interleaved(int64_t what, int64_t n, lop_dtype dt) {
    return what == LOP_FACTOR_CHOLESKY && lop_stack_fits(n, dt);
}

#endif
