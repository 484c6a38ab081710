/* k_small_lu.c: LU with row exchanges of one small real matrix, and solves with one right side.
 *
 * LAPACK's getrf takes 5 to 8 us for 20 rows on the machine where this takes 1.4 (2026-11, shared;
 * 2 rows 130 and 90 ns, 32 rows 10 and 3 us): it is calls and searches one after the other. Here
 * the columns lie padded to whole vectors, rows stay where they are and know the place to which
 * exchanges would have brought them, and the search for the pivot is a maximum alone: a number's
 * last five bits hold its place, so of those that agree but for these the first is taken, and
 * multipliers are 1 + 32 eps at most. 2/3 n^3 flops; whole columns are run through, so up to n^3.
 */
#include "k_small_lu.h"

#include "kernels/common/k_clones.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { ROWS = 32 };

typedef int64_t bits_of_f64;
typedef int32_t bits_of_f32;
static const int64_t no_sign_f64 = INT64_MAX;
static const int32_t no_sign_f32 = INT32_MAX;

#define LOPK_TEMPLATE "kernels/dense/k_small_lu_per_dtype.h"
#include "kernels/common/k_each.h"

static bool fits(const lop_mat *a) {
    return a->m == a->n && a->n >= 1 && a->n <= ROWS && a->rs == 1 &&
           (a->dt == LOP_f64 || a->dt == LOP_f32);
}

bool lopk_small_getrf(const lop_mat *a, int64_t *ipiv) {
    if (!fits(a)) return false;
    return a->dt == LOP_f64 ? small_getrf_f64((int)a->n, a->p, a->cs, ipiv)
                            : small_getrf_f32((int)a->n, a->p, a->cs, ipiv);
}

bool lopk_small_getrs(const lop_mat *a, const int64_t *ipiv, const lop_mat *b) {
    if (!fits(a) || b->n != 1 || (b->rs != 1 && b->m > 1)) return false;
    if (a->dt == LOP_f64)
        small_getrs_f64((int)a->n, a->p, a->cs, ipiv, b->p);
    else
        small_getrs_f32((int)a->n, a->p, a->cs, ipiv, b->p);
    return true;
}
