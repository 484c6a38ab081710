/* k_toeplitz_inverse.c: B = T^-1 by its first column x and its last column y (Trench 1964; Gohberg
 * and Semencul 1972):
 *
 *   B[i, j] = B[i - 1, j - 1] + (x_i y_(n-1-j) - y_(i-1) x_(n-j)) / x_0,
 *
 * row by row in double precision, as far as the antidiagonal, in which B is its own reflection: no
 * error of the sums comes near the last corner. Of a Hermitian T a quarter is computed. A Hankel
 * matrix is H = T J, its inverse J B: symmetric.
 *
 * x and y carry what their own solves leave, and nothing says that the sums do not make it larger.
 * So the matrix as it stands is tried: for a vector v of signs, T (B v) - v is in the mean square
 * |T B - I|_F, and where that is at most 10 n u |T| |b_j| for the shortest column b_j, then each
 * column (and row: B T - I is J (T B - I)^T J) has the backward error of a solve of its own. */
#include "k_toeplitz_inverse.h"

#include "kernels/common/k_clones.h"
#include "kernels/common/kernels.h"
#include "kernels/dense/k_blas.h"

#include <math.h>
#include <string.h>

#define FAM_F 2
#define FAM_C 3
#define FAM_B 0
#define FAM_I 1

#define DT f32
#define E float
#define FAM FAM_F
#define LOPK_TEMPLATE "kernels/toeplitz/k_toeplitz_inverse_per_dtype.h"
#include "kernels/common/k_each_one.h"
#define DT f64
#define E double
#define FAM FAM_F
#define DOUBLES
#include "kernels/common/k_each_one.h"
#undef DOUBLES
#define DT c64
#define R float
#define FAM FAM_C
#include "kernels/common/k_each_one.h"
#define DT c128
#define R double
#define FAM FAM_C
#define DOUBLES
#include "kernels/common/k_each_one.h"
#undef DOUBLES

/* In scratch, n doubles or pairs of them each: x and y, both turned round, and the diagonals' sums;
 * then the signs, a row, the product and T's numbers. */
enum { LINES = 6 };

size_t lopk_toep_inverse_scratch(int64_t n, lop_dtype dt) {
    int64_t bytes;
    return lop_mul_ok(n + 1, LINES * (lop_is_complex(dt) ? 16 : 8), &bytes) ? (size_t)bytes + 64
                                                                            : 0;
}

static void mirror(const lop_mat *b, bool anti, bool lower, bool conj) {
    if (b->dt == LOP_f32) mirror_f32(b, anti, lower, conj);
    if (b->dt == LOP_f64) mirror_f64(b, anti, lower, conj);
    if (b->dt == LOP_c64) mirror_c64(b, anti, lower, conj);
    if (b->dt == LOP_c128) mirror_c128(b, anti, lower, conj);
}

bool lopk_toep_inverse_fill(const lop_mat *b, const lopk_toep_inverse *t, void *scratch) {
    void *room = (void *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
    const bool whole = lop_is_complex(b->dt);
    bool own = t->own && !t->hankel && b->m > 0;
    if (own && lop_is_complex(t->c->dt)) own = cimag(lop_get(t->c->dt, t->c->p, 0)) == 0;
    if (whole)
        rows_c128(b, t, own, room);
    else
        rows_f64(b, t, own, room);
    if (t->hankel)
        mirror(b, false, false, false);
    else
        mirror(b, true, own, false);
    if (own) mirror(b, false, false, true);
    return whole ? believed_c128(b, t, room) : believed_f64(b, t, room);
}
