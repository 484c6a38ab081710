/* k_small_lu.c: LU with row exchanges of one small real matrix, and solves with one right side.
 *
 * LAPACK's getrf is calls and searches one after the other: 20 rows take 4.2 us where this takes
 * 1.2, 64 rows 36 and 19, 3 rows 0.16 and 0.10 (AVX-512, 2026-11, a shared machine). Here columns
 * lie padded to whole vectors, rows stay where they are and know the place to which exchanges would
 * have brought them, and the search for the pivot is a maximum alone: the last bits of a number
 * hold its place, so of those that agree but for these the first is taken, and multipliers are 1 +
 * 64 eps at most. 2/3 n^3 flops; whole columns are run through, so up to n^3. */
#include "k_small_lu.h"

#include "k_small_gemm.h"
#include "kernels/common/k_clones.h"

#include <float.h>
#include <string.h>

enum { ROWS = 64 }; /* where vectors are of 64 bytes, else 32 */

#define LOPK_TEMPLATE "kernels/dense/k_small_lu_per_dtype.h"
#include "kernels/common/k_each.h"

#define INLINE static inline __attribute__((always_inline))
#define WIDE_ALONE
#define PER_ISA "kernels/dense/k_small_lu_per_isa.h"
#include "kernels/common/k_each_isa.h"

static bool fits(const lop_mat *a, int64_t most) {
    return a->m == a->n && a->n >= 1 && a->n <= most && a->rs == 1 &&
           (a->dt == LOP_f64 || a->dt == LOP_f32);
}

bool lopk_small_getrf(const lop_mat *a, int64_t *ipiv) {
#ifdef HAVE_WIDE
    const bool twice = a->dt == LOP_f64;
    const int64_t wide = lopk_thin_width(LOP_f64);
    if (wide == 8 && fits(a, 64))
        return (twice ? getrf_d_avx512 : getrf_s_avx512)((int)a->n, a->p, a->cs, ipiv);
    if (wide >= 4 && fits(a, 32))
        return (twice ? getrf_d_avx2 : getrf_s_avx2)((int)a->n, a->p, a->cs, ipiv);
#else
    (void)ipiv;
#endif
    return false;
}

bool lopk_small_getrs(const lop_mat *a, const int64_t *ipiv, const lop_mat *b) {
    if (!fits(a, ROWS) || b->n != 1 || (b->rs != 1 && b->m > 1)) return false;
    if (a->dt == LOP_f64)
        small_getrs_f64((int)a->n, a->p, a->cs, ipiv, b->p);
    else
        small_getrs_f32((int)a->n, a->p, a->cs, ipiv, b->p);
    return true;
}
