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

/* Elements (i, j) of a triangle within a band, whose column j begins `above` rows over its
 * diagonal; of a vector's; both as op() of the solve sees them. */
typedef struct band {
    const lop_mat *ab, *x;
    int64_t above;
    char trans;
    bool real;
} band;
static double _Complex element(const band *b, int64_t i, int64_t j) {
    const lop_mat *ab = b->ab;
    const double _Complex v = lop_get(ab->dt, ab->p, (b->above + i - j) * ab->rs + j * ab->cs);
    return b->trans == 'C' ? conj(v) : v;
}
static double _Complex value(const band *b, int64_t i) {
    return lop_get(b->x->dt, b->x->p, i * b->x->rs);
}
static void put(const band *b, int64_t i, double _Complex v) {
    lop_set(b->x->dt, b->x->p, i * b->x->rs, v);
}
static void exchange(const band *b, int64_t i, int64_t j) {
    const double _Complex v = value(b, i);
    put(b, i, value(b, j));
    put(b, j, v);
}
static void by_upper(const band *b) {
    for (int64_t t = 0, n = b->x->m; t < n; t++) {
        const int64_t j = b->trans == 'N' ? n - 1 - t : t, first = j > b->above ? j - b->above : 0;
        double _Complex s = value(b, j);
        for (int64_t i = first; b->trans != 'N' && i < j; i++)
            s = less(s, element(b, i, j), value(b, i), b->real);
        s = over(s, element(b, j, j), b->real);
        put(b, j, s);
        for (int64_t i = first; b->trans == 'N' && i < j; i++)
            put(b, i, less(value(b, i), element(b, i, j), s, b->real));
    }
}
static void by_lower(const band *b, int64_t l, const int64_t *ipiv) {
    for (int64_t t = 0, n = b->x->m; t < n; t++) {
        const int64_t j = b->trans == 'N' ? t : n - 1 - t, past = l < n - j ? j + l + 1 : n;
        if (b->trans == 'N') exchange(b, j, ipiv[j] - 1);
        double _Complex s = value(b, j);
        for (int64_t i = j + 1; i < past; i++)
            if (b->trans == 'N')
                put(b, i, less(value(b, i), element(b, i, j), s, b->real));
            else
                s = less(s, element(b, i, j), value(b, i), b->real);
        put(b, j, s);
        if (b->trans != 'N') exchange(b, j, ipiv[j] - 1);
    }
}

void lopk_substitute_band(const lop_mat *ab, int64_t l, int64_t u, const int64_t *ipiv, char trans,
                          const lop_mat *x) {
    for (int64_t j = 0; j < x->n; j++) {
        const lop_mat column = {(char *)x->p + j * x->cs * (int64_t)lop_dtype_size(x->dt),
                                x->m,
                                1,
                                x->rs,
                                x->cs,
                                x->dt};
        const band b = {ab, &column, l + u, trans, !lop_is_complex(x->dt)};
        if (trans == 'N') by_lower(&b, l, ipiv);
        by_upper(&b);
        if (trans != 'N') by_lower(&b, l, ipiv);
    }
}

/* D of L D L^H, blocks of order one and two: (d, e', e, d') as LAPACK's sytrs_3 does. */
void lopk_substitute_blocks(const lop_mat *d, bool hermitian, const void *beside,
                            const int64_t *ipiv, const lop_mat *x) {
    const bool real = !lop_is_complex(x->dt);
    for (int64_t j = 0; j < x->n; j++) {
        const lop_mat column = {(char *)x->p + j * x->cs * (int64_t)lop_dtype_size(x->dt),
                                x->m,
                                1,
                                x->rs,
                                x->cs,
                                x->dt};
        const band b = {.x = &column};
        for (int64_t k = 0; k < x->m; k++) {
            const double _Complex one = lop_get(d->dt, d->p, k * (d->rs + d->cs));
            if (ipiv[k] > 0 || k + 1 == x->m) {
                put(&b, k, over(value(&b, k), one, real));
                continue;
            }
            const double _Complex e = lop_get(d->dt, beside, k), ee = hermitian ? conj(e) : e,
                                  two = lop_get(d->dt, d->p, (k + 1) * (d->rs + d->cs)),
                                  p = over(one, ee, real), q = over(two, e, real),
                                  y = over(value(&b, k), ee, real),
                                  z = over(value(&b, k + 1), e, real), det = p * q - 1;
            put(&b, k, over(q * y - z, det, real));
            put(&b, k + 1, over(p * z - y, det, real));
            k++;
        }
    }
}
