/* k_substitution.c: substitution with a triangle whose pivots have no reciprocal in range, as it is
 * written: a division each. BLAS multiplies by the reciprocals, which are inf there.
 *
 * Cost: n^2 k, an element at a time. Numbers as small as that are rare. */
#include "k_blas.h"
#include "kernels/common/kernels.h"

#include <complex.h>
#include <float.h>
#include <math.h>

bool lopk_diag_is_tiny(const lop_mat *a) {
    const double least = a->dt == LOP_f32 || a->dt == LOP_c64 ? FLT_MIN : DBL_MIN;
    for (int64_t i = 0; i < a->m && i < a->n; i++) {
        const double _Complex d = lop_get(a->dt, a->p, i * (a->rs + a->cs));
        if (fabs(creal(d)) < least && fabs(cimag(d)) < least) return true;
    }
    return false;
}

double lopk_top(const lop_mat *a) {
    double top = 0;
    for (int64_t j = 0; j < a->n; j++)
        for (int64_t i = 0; i < a->m; i++) {
            const double _Complex v = lop_get(a->dt, a->p, i * a->rs + j * a->cs);
            top = fmax(top, fmax(fabs(creal(v)), fabs(cimag(v))));
        }
    return top;
}

void lopk_shift_range(const lop_mat *a, int power) {
    for (int64_t j = 0; j < a->n; j++)
        for (int64_t i = 0; i < a->m; i++) {
            const int64_t at = i * a->rs + j * a->cs;
            const double _Complex v = lop_get(a->dt, a->p, at);
            lop_set(a->dt, a->p, at, CMPLX(ldexp(creal(v), power), ldexp(cimag(v), power)));
        }
}

/* No complex arithmetic on real numbers: inf times an imaginary zero is NaN. */
static double _Complex less(double _Complex s, double _Complex a, double _Complex x, bool real) {
    return real ? creal(s) - creal(a) * creal(x) : s - a * x;
}
static double _Complex over(double _Complex s, double _Complex d, bool real) {
    return real ? creal(s) / creal(d) : s / d;
}

void lopk_substitute(const lop_mat *a, bool lower, char trans, const lop_mat *x) {
    const bool turned = trans != 'N', forward = lower != turned, real = !lop_is_complex(x->dt);
    for (int64_t j = 0; j < x->n; j++)
        for (int64_t t = 0; t < x->m; t++) {
            const int64_t i = forward ? t : x->m - 1 - t;
            double _Complex s = lop_get(x->dt, x->p, i * x->rs + j * x->cs), d = 1;
            for (int64_t u = 0; u <= t; u++) {
                const int64_t k = forward ? u : x->m - 1 - u,
                              at = turned ? k * a->rs + i * a->cs : i * a->rs + k * a->cs;
                double _Complex v = lop_get(a->dt, a->p, at);
                if (trans == 'C') v = conj(v);
                if (k == i)
                    d = v;
                else
                    s = less(s, v, lop_get(x->dt, x->p, k * x->rs + j * x->cs), real);
            }
            lop_set(x->dt, x->p, i * x->rs + j * x->cs, over(s, d, real));
        }
}
