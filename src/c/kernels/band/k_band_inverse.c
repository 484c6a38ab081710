/* k_band_inverse.c: see k_band_inverse.h.
 *
 * A = L D U without row exchanges, then Z = A^-1 on the band from the last row up (Takahashi, Fagan
 * and Chin 1973, Formation of a sparse bus impedance matrix; of bands Rue and Held 2005, Gaussian
 * Markov Random Fields, 2.4.3):
 *
 *   Z[i, j] = -sum_k Z[i, k] L[k, j],  Z[j, i] = -sum_k U[j, k] Z[k, i],  i, k > j
 *   Z[j, j] = 1 / D_j - sum_k U[j, k] Z[k, j]
 *
 * What the sums read is on the band. Cost: 6 l u n flops.
 *
 * Accuracy. Of a positive definite A the factor is backward stable as it is: |L| D |L^H| has the
 * diagonal of A (Higham 2002, Accuracy and Stability, 10.1). Of others |L| |D U| is measured: above
 * SOUND |A| the result is refused. Of all the rows of A Z - I and Z A - I are looked at where they
 * meet the diagonal: above 10 n u beside |A| |Z| it is refused too.
 *
 * A^-1 X A^-1 on the band is the derivative of that, line by line (k_band_between_per_dtype.h): 24
 * l u n flops. The derivative of the factor has errors of u |A^-1| |A| |X|, as one of two solves
 * has where it meets the other, and its residual A dZ + X Z is looked at beside these. */
#include "k_band_inverse.h"

#include "kernels/common/k_clones.h"
#include "kernels/common/kernels.h"

#include <complex.h>
#include <float.h>
#include <math.h>

/* Growth of the factors beside |A| that is taken for sound. */
static const double SOUND = 32;

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

#define LOPK_TEMPLATE "kernels/band/k_band_inverse_per_dtype.h"
#include "kernels/common/k_each.h"

size_t lopk_band_inverse_bytes(int64_t n, int64_t l, int64_t u, lop_dtype dt) {
    return (3 * (size_t)n + 1) * (size_t)(l + u + 1) * lop_dtype_size(dt);
}

size_t lopk_band_between_bytes(int64_t n, int64_t l, int64_t u, lop_dtype dt) {
    return (6 * (size_t)n + 1) * (size_t)(l + u + 1) * lop_dtype_size(dt);
}

lop_status lopk_band_inverse_diagonal(const lop_mat *y, int64_t k, const lopk_lines *A, void *work,
                                      double *rcond) {
    switch (A->dt) {
    case LOP_f32: return band_inverse_f32(y, k, A, work, rcond);
    case LOP_f64: return band_inverse_f64(y, k, A, work, rcond);
    case LOP_c64: return band_inverse_c64(y, k, A, work, rcond);
    default: return band_inverse_c128(y, k, A, work, rcond);
    }
}

lop_status lopk_band_between_diagonal(const lop_mat *y, int64_t k, const lopk_lines *A,
                                      const lopk_lines *X, void *work, double *rcond) {
    switch (A->dt) {
    case LOP_f32: return band_between_f32(y, k, A, X, work, rcond);
    case LOP_f64: return band_between_f64(y, k, A, X, work, rcond);
    case LOP_c64: return band_between_c64(y, k, A, X, work, rcond);
    default: return band_between_c128(y, k, A, X, work, rcond);
    }
}
