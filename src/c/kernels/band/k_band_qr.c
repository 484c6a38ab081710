/* k_band_qr.c: QR of a band, and products of reflections of few neighbouring rows.
 *
 * Column by column a Householder reflection of the l + 1 rows that the column reaches below the
 * diagonal, applied to the l + u columns beside it (Golub and Van Loan, Matrix Computations, 5.2.1,
 * within the band): R gains l diagonals, nothing else fills in. 4 (l + 1) (l + u) n flops.
 *
 * A reflection is its vector alone; 2 / |v|^2 is taken from the numbers that are kept, so what they
 * make is unitary to rounding whatever they are. Squares out of range are taken of v raised by a
 * power of two. A product of k of them with c columns: 4 k w c + 2 k w flops. */
#include "k_band_qr.h"

#include "kernels/common/k_clones.h"
#include "kernels/common/kernels.h"

#include <complex.h>
#include <math.h>

static inline double larger(double a, double b) { return isnan(a) || a > b ? a : b; }

/* Squares between these are exact enough: what underflows within them is below the rounding. */
#define LOW (sizeof(REAL_TYPE) == 4 ? 1e-25 : 1e-250)
#define HIGH (sizeof(REAL_TYPE) == 4 ? 1e25 : 1e250)

#define LOPK_TEMPLATE "kernels/band/k_band_qr_per_dtype.h"
#include "kernels/common/k_each.h"

#define BY_FLOAT(dt, f, ...)                                                                       \
    ((dt) == LOP_f32   ? f##_f32(__VA_ARGS__)                                                      \
     : (dt) == LOP_f64 ? f##_f64(__VA_ARGS__)                                                      \
     : (dt) == LOP_c64 ? f##_c64(__VA_ARGS__)                                                      \
                       : f##_c128(__VA_ARGS__))

size_t lopk_reflect_bytes(int64_t w, int64_t columns, lop_dtype dt) {
    return ((size_t)w + (size_t)columns) * lop_dtype_size(dt);
}

void lopk_reflect(const lop_mat *x, const lop_mat *v, bool adjoint, bool conj_v, void *work) {
    LOP_ASSERT(lop_is_blas(x->dt) && x->dt == v->dt && v->m <= x->m);
    if (x->n > 0) BY_FLOAT(x->dt, reflect, x, v, adjoint, conj_v, work);
}

int lopk_reflect_none(const lop_mat *v, int64_t j, int64_t rows) {
    const int64_t size = (int64_t)lop_dtype_size(v->dt), n = v->n < rows - j ? v->n : rows - j;
    int found = 1;
    for (int64_t i = 0; i < n; i++) {
        const char *at = (const char *)v->p + (j * v->rs + i * v->cs) * size;
        const double _Complex z = lop_get(v->dt, at, 0);
        const double re = creal(z), im = cimag(z);
        if (!isfinite(re) || !isfinite(im)) return -1;
        if (re != 0 || im != 0) found = 0;
    }
    return found;
}

void lopk_bandqr(const lop_mat *ab, int64_t m, int64_t l, int64_t u, const lop_mat *v) {
    LOP_ASSERT(ab->rs == 1 && ab->cs == 2 * l + u + 1 && v->cs == 1 && v->n == l + 1);
    BY_FLOAT(ab->dt, bandqr, ab, m, l, u, v);
}
