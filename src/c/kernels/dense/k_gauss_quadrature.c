/* k_gauss_quadrature.c: nodes and weights of the Gauss rule that belongs to a symmetric tridiagonal
 * matrix.
 *
 * Implicit QL with the rotations applied to the first row of the vectors alone (Golub and Welsch,
 * "Calculation of Gauss quadrature rules", 1969): about 15 n^2 flops where all vectors take 6 n^3,
 * and no BLAS, whose threads cost more than matrices of some tens of rows. Errors are of some eps
 * times the largest eigenvalue, as those of LAPACK's steqr. */
#include "k_gauss_quadrature.h"

#include <float.h>
#include <math.h>

enum { SWEEPS = 60 }; /* of one eigenvalue; 2 or 3 are usual */

/* The end of the block that begins at l: where the off-diagonal is rounding. */
static int64_t block_end(int64_t l, int64_t n, const double *d, const double *e) {
    int64_t m = l;
    for (; m + 1 < n; m++) {
        double off = fabs(e[m]);
        if (off <= DBL_EPSILON * (fabs(d[m]) + fabs(d[m + 1])) || off <= DBL_MIN) break;
    }
    return m;
}

/* One sweep from m up to l, shifted by the eigenvalue of the leading 2 x 2 near d[l]. */
static void sweep(int64_t l, int64_t m, double *d, double *e, double *z) {
    double g = (d[l + 1] - d[l]) / (2 * e[l]);
    g = d[m] - d[l] + e[l] / (g + copysign(hypot(g, 1), g));
    double s = 1, c = 1, p = 0;
    for (int64_t i = m - 1; i >= l; i--) {
        double f = s * e[i], b = c * e[i], r = hypot(f, g);
        e[i + 1] = r;
        if (r == 0) { /* it splits here */
            d[i + 1] -= p;
            e[m] = 0;
            return;
        }
        s = f / r;
        c = g / r;
        g = d[i + 1] - p;
        r = (d[i] - g) * s + 2 * c * b;
        p = s * r;
        d[i + 1] = g + p;
        g = c * r - b;
        f = z[i + 1];
        z[i + 1] = s * z[i] + c * f;
        z[i] = c * z[i] - s * f;
    }
    d[l] -= p;
    e[l] = g;
    e[m] = 0;
}

lop_status lopk_gauss(int64_t n, double *d, double *e, double *z) {
    for (int64_t i = 0; i < n; i++) z[i] = i == 0;
    for (int64_t l = 0; l < n; l++) {
        for (int tries = 0;; tries++) {
            int64_t m = block_end(l, n, d, e);
            if (m == l) break;
            if (tries == SWEEPS) return LOP_SINGULAR;
            sweep(l, m, d, e, z);
        }
        if (!isfinite(d[l])) return LOP_SINGULAR;
    }
    for (int64_t i = 0; i < n; i++) z[i] *= z[i];
    return LOP_OK;
}
