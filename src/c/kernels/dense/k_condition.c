/* k_condition.c: how near a factored matrix is to a singular one.
 *
 * First a look at the triangle T of the factor: T^T w = s is solved, each s of +-1 chosen so that w
 * grows (Cline, Moler, Stewart and Wilkinson 1979), so that max |w| bounds |T^-1| from below and
 * holds the reciprocal of every pivot. Where |T| max |w| is far from 1 / eps the matrix is not near
 * a singular one, and nothing more is done: n^2 flops, one pass over the triangle. Else LAPACK's
 * estimate (gecon, pocon), five solves or so.
 *
 * NaN and inf in the matrix are no matter of conditioning: 1. */
#include "k_blas.h"
#include "kernels/common/k_clones.h"
#include "kernels/common/kernels.h"

#include <complex.h>
#include <float.h>
#include <math.h>

enum { LANES = 8 };
static const double far_off = 1e150; /* grown beyond any doubt; its square is a number still */

static inline float size_f(float x) { return fabsf(x); }
static inline double size_d(double x) { return fabs(x); }
static inline float size_c(float _Complex x) { return fabsf(crealf(x)) + fabsf(cimagf(x)); }
static inline double size_z(double _Complex x) { return fabs(creal(x)) + fabs(cimag(x)); }

/* |T|_1 max |w|, far_off where w passes it. f: column-major; w: room for n. */
#define GROWN(T, R, name, size)                                                                    \
    LOPK_CLONES static double name(const T *f, int64_t n, int64_t ld, bool lower, T *w) {          \
        double most = 0, norm = 0;                                                                 \
        for (int64_t t = 0; t < n; t++) {                                                          \
            const int64_t k = lower ? n - 1 - t : t, from = lower ? k + 1 : 0, to = lower ? n : k; \
            const T *col = f + k * ld;                                                             \
            T dot[LANES] = {0};                                                                    \
            R sum[LANES] = {0};                                                                    \
            int64_t i = from;                                                                      \
            for (; i + LANES <= to; i += LANES)                                                    \
                for (int l = 0; l < LANES; l++) {                                                  \
                    dot[l] += col[i + l] * w[i + l];                                               \
                    sum[l] += size(col[i + l]);                                                    \
                }                                                                                  \
            for (; i < to; i++) {                                                                  \
                dot[0] += col[i] * w[i];                                                           \
                sum[0] += size(col[i]);                                                            \
            }                                                                                      \
            T all = 0;                                                                             \
            double column = (double)size(col[k]);                                                  \
            for (int l = 0; l < LANES; l++) {                                                      \
                all += dot[l];                                                                     \
                column += (double)sum[l];                                                          \
            }                                                                                      \
            w[k] = ((creal(all) > 0 ? -1 : 1) - all) / col[k];                                     \
            const double here = (double)size(w[k]);                                                \
            if (here > far_off) return far_off;                                                    \
            most = here > most || here != here ? here : most;                                      \
            norm = column > norm || column != column ? column : norm;                              \
            if (most != most || norm != norm) return NAN;                                          \
        }                                                                                          \
        return most * norm;                                                                        \
    }
GROWN(float, float, grown_f, size_f)
GROWN(double, double, grown_d, size_d)
GROWN(float _Complex, float, grown_c, size_c)
GROWN(double _Complex, double, grown_z, size_z)
#undef GROWN

double lopk_eps(lop_dtype dt) { return dt == LOP_f32 || dt == LOP_c64 ? FLT_EPSILON : DBL_EPSILON; }

/* min and max |v|; where there is NaN or inf the maximum is that. */
#define SPREAD(T, name, size)                                                                      \
    LOPK_CLONES static void name(const T *v, int64_t n, int64_t step, double *least,               \
                                 double *most) {                                                   \
        double low[LANES], high[LANES], odd[LANES] = {0};                                          \
        int64_t i = 0;                                                                             \
        for (int l = 0; l < LANES; l++) low[l] = INFINITY, high[l] = 0;                            \
        for (; i + LANES <= n; i += LANES)                                                         \
            for (int l = 0; l < LANES; l++) {                                                      \
                const double x = (double)size(v[(i + l) * step]);                                  \
                low[l] = x < low[l] ? x : low[l];                                                  \
                high[l] = x > high[l] ? x : high[l];                                               \
                odd[l] += x - x;                                                                   \
            }                                                                                      \
        for (; i < n; i++) {                                                                       \
            const double x = (double)size(v[i * step]);                                            \
            low[0] = x < low[0] ? x : low[0];                                                      \
            high[0] = x > high[0] ? x : high[0];                                                   \
            odd[0] += x - x;                                                                       \
        }                                                                                          \
        for (int l = 0; l < LANES; l++) {                                                          \
            *least = low[l] < *least ? low[l] : *least;                                            \
            *most = high[l] > *most || odd[l] != 0 ? high[l] + odd[l] : *most;                     \
        }                                                                                          \
    }
SPREAD(float, spread_f, size_f)
SPREAD(double, spread_d, size_d)
SPREAD(float _Complex, spread_c, size_c)
SPREAD(double _Complex, spread_z, size_z)
static inline double whole_c(float _Complex x) {
    const double re = (double)crealf(x), im = (double)cimagf(x);
    return re * re + im * im;
}
static inline double whole_z(double _Complex x) {
    return creal(x) * creal(x) + cimag(x) * cimag(x);
}
SPREAD(float _Complex, spread_whole_c, whole_c)
SPREAD(double _Complex, spread_whole_z, whole_z)
#undef SPREAD

double lopk_vector_ratio(const lop_mat *a) {
    double least = INFINITY, most = 0;
    switch (a->dt) {
    case LOP_f32: spread_f(a->p, a->m, a->rs, &least, &most); break;
    case LOP_f64: spread_d(a->p, a->m, a->rs, &least, &most); break;
    case LOP_c64: spread_c(a->p, a->m, a->rs, &least, &most); break;
    default: spread_z(a->p, a->m, a->rs, &least, &most);
    }
    if (least == 0) return 0;
    const double ratio = lopk_range_ratio(least, most);
    return ratio > 0 ? ratio : DBL_TRUE_MIN;
}

void lopk_pivot_range(const lop_mat *a, double *least, double *most) {
    const int64_t n = a->m < a->n ? a->m : a->n, step = a->rs + a->cs;
    *least = INFINITY;
    *most = 0;
    if (a->dt == LOP_f32) spread_f(a->p, n, step, least, most);
    if (a->dt == LOP_f64) spread_d(a->p, n, step, least, most);
    if (!lop_is_complex(a->dt)) return;
    if (a->dt == LOP_c64) spread_whole_c(a->p, n, step, least, most);
    if (a->dt == LOP_c128) spread_whole_z(a->p, n, step, least, most);
    if (*least > 1e-280 && *most < 1e280) {
        *least = sqrt(*least);
        *most = sqrt(*most);
        return;
    }
    *least = INFINITY;
    *most = 0;
    for (int64_t i = 0; i < n; i++) {
        const double size = cabs(lop_get(a->dt, a->p, i * step));
        *least = size < *least ? size : *least;
        *most = !(size <= *most) ? size : *most;
        if (!(size <= DBL_MAX)) break;
    }
}
double lopk_pivot_ratio(const lop_mat *a) {
    double least, most;
    lopk_pivot_range(a, &least, &most);
    return lopk_range_ratio(least, most);
}

double lopk_range_ratio(double least, double most) {
    const double ratio = least / most;
    return most > 0 && most <= DBL_MAX && ratio < 1 ? ratio : 1;
}

/* |v| over `top`, which has the order of v. */
#define LENGTH(T, name, part)                                                                      \
    LOPK_CLONES static double name(const T *v, int64_t n, int64_t step, double over) {             \
        double sum[LANES] = {0};                                                                   \
        int64_t i = 0;                                                                             \
        for (; i + LANES <= n; i += LANES)                                                         \
            for (int l = 0; l < LANES; l++) sum[l] += part(v[(i + l) * step], over);               \
        for (; i < n; i++) sum[0] += part(v[i * step], over);                                      \
        for (int l = 1; l < LANES; l++) sum[0] += sum[l];                                          \
        return sqrt(sum[0]);                                                                       \
    }
static inline double square(double x, double over) { return x * over * (x * over); }
static inline double squares(double _Complex x, double over) {
    return square(creal(x), over) + square(cimag(x), over);
}
LENGTH(float, length_f, square)
LENGTH(double, length_d, square)
LENGTH(float _Complex, length_c, squares)
LENGTH(double _Complex, length_z, squares)
#undef LENGTH
/* |a_j|, of which `top` has the order. */
static double length(const lop_mat *a, int64_t j, double top) {
    const char *p = (const char *)a->p + j * a->cs * (int64_t)lop_dtype_size(a->dt);
    const double over = 1 / top;
    switch (a->dt) {
    case LOP_f32: return top * length_f((const float *)(const void *)p, a->m, a->rs, over);
    case LOP_f64: return top * length_d((const double *)(const void *)p, a->m, a->rs, over);
    case LOP_c64: return top * length_c((const void *)p, a->m, a->rs, over);
    default: return top * length_z((const void *)p, a->m, a->rs, over);
    }
}
static double safe_length(const lop_mat *a, int64_t j) {
    double top = 0, once = length(a, j, 1);
    if (once > 1e-140 && once <= 1e140) return once;
    for (int64_t i = 0; i < a->m; i++)
        top = fmax(top, cabs(lop_get(a->dt, a->p, i * a->rs + j * a->cs)));
    return top > 0 ? length(a, j, top) : 0;
}

void lopk_lengths(const lop_mat *b, double *out) {
    for (int64_t j = 0; j < b->n && j < LOPK_GROWTHS; j++) out[j] = safe_length(b, j);
}
double lopk_outgrown_by(double length, double from, int64_t m, double norm) {
    const double grown = length * norm * fmin(sqrt((double)m), 30);
    return grown > 0 && grown <= DBL_MAX ? from / grown : 1;
}
double lopk_outgrown_from(const lop_mat *x, const double *from, double norm) {
    double least = 1;
    for (int64_t j = 0; j < x->n && j < LOPK_GROWTHS; j++) {
        const double ratio = lopk_outgrown_by(safe_length(x, j), from[j], x->m, norm);
        least = ratio < least ? ratio : least;
    }
    return least;
}
double lopk_outgrown(const lop_mat *x, const lop_mat *b, double norm) {
    double from[LOPK_GROWTHS];
    lopk_lengths(b, from);
    return lopk_outgrown_from(x, from, norm);
}

size_t lopk_near_bytes(int64_t n, lop_dtype dt) {
    return lopk_gecon_bytes(n, dt) + (size_t)n * lop_dtype_size(dt);
}

/* May it be so near that the rest is worth it? */
static bool suspicious(const lop_mat *f, bool cholesky, void *w) {
    const int64_t n = f->n, ld = f->cs;
    double grown;
    switch (f->dt) {
    case LOP_f32: grown = grown_f(f->p, n, ld, cholesky, w); break;
    case LOP_f64: grown = grown_d(f->p, n, ld, cholesky, w); break;
    case LOP_c64: grown = grown_c(f->p, n, ld, cholesky, w); break;
    default: grown = grown_z(f->p, n, ld, cholesky, w);
    }
    const double doubt = lopk_eps(f->dt) == DBL_EPSILON ? 1e5 : 1e2;
    return (cholesky ? grown * grown : grown) * doubt > 1 / lopk_eps(f->dt); /* not of NaN */
}

/* The 1-norm of column j of L L^H. */
static double column_norm(const lop_mat *f, int64_t j, void *work) {
    const lop_mat v = {work, f->n, 1, 1, f->n, f->dt};
    double sum = 0;
    for (int64_t i = 0; i < f->n; i++)
        lop_set(f->dt, v.p, i, i <= j ? conj(lop_get(f->dt, f->p, j + i * f->cs)) : 0);
    if (lopk_trmm(f, true, false, 'N', &v) != LOP_OK) return NAN;
    for (int64_t i = 0; i < f->n; i++) sum += cabs(lop_get(f->dt, v.p, i));
    return sum;
}
/* Of L L^H: the largest diagonal's column; every other is at most n times as long. */
static double own_norm(const lop_mat *f, void *work) {
    int64_t j = 0;
    double most = -1;
    for (int64_t i = 0; i < f->n; i++) {
        double sum = 0;
        for (int64_t k = 0; k <= i; k++) {
            const double x = cabs(lop_get(f->dt, f->p, i + k * f->cs));
            sum += x * x;
        }
        if (sum > most) most = sum, j = i;
    }
    return column_norm(f, j, work);
}

double lopk_near(const lop_mat *f, bool cholesky, const lop_mat *a, double norm, void *work) {
    double rcond = 1;
    if (f->n == 0 || lopk_diag_has_zero(f) >= 0 || !suspicious(f, cholesky, work)) return 1;
    if (a) norm = lopk_norm1(cholesky ? 'U' : 'G', a);
    if (!a && norm == 0) norm = own_norm(f, work);
    if (!(norm > 0 && norm <= DBL_MAX)) return 1;
    lop_status st =
        cholesky ? lopk_pocon(f, norm, &rcond, work) : lopk_gecon(f, norm, &rcond, work);
    return st == LOP_OK && rcond == rcond ? rcond : 1;
}
