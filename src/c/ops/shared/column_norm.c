/* column_norm.c: lengths of columns, without over- or underflow. Cost: one pass, three where plain
 * squares leave the range. */
#include "column_norm.h"

#include <complex.h>
#include <float.h>
#include <math.h>

/* The 2-norm of column j, scaled so that it neither over- nor underflows; NaN stays. */
static double scaled_norm(const lop_mat *a, int64_t j) {
    double top = 0, sum = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < a->m; i++) {
            double _Complex v = lop_get(a->dt, a->p, i * a->rs + j * a->cs);
            double re = fabs(creal(v)), im = fabs(cimag(v)), big = re > im ? re : im;
            if (isnan(re) || isnan(im)) return NAN;
            if (pass == 0 && big > top) top = big;
            if (pass == 1 && top > 0) sum += re / top * (re / top) + im / top * (im / top);
        }
    return top * sqrt(sum);
}

/* From the sum of squares, where that is in range. */
static double norm_by(double sum, const lop_mat *a, int64_t j) {
    return sum > 1e-280 && sum < 1e280 ? sqrt(sum) : scaled_norm(a, j);
}
double lop_column_norm(const lop_mat *a, int64_t j) {
    double sum = 0;
    if (a->dt == LOP_f64) {
        const double *p = (const double *)a->p + j * a->cs;
        for (int64_t i = 0; i < a->m; i++) sum += p[i * a->rs] * p[i * a->rs];
    } else if (a->dt == LOP_f32) {
        const float *p = (const float *)a->p + j * a->cs;
        for (int64_t i = 0; i < a->m; i++) sum += (double)p[i * a->rs] * (double)p[i * a->rs];
    } else if (lop_is_complex(a->dt)) {
        for (int64_t i = 0; i < a->m; i++) {
            const double _Complex v = lop_get(a->dt, a->p, i * a->rs + j * a->cs);
            sum += creal(v) * creal(v) + cimag(v) * cimag(v);
        }
    }
    return norm_by(sum, a, j);
}

void lop_column_norms(const lop_mat *a, int64_t from, double *out) {
    const int64_t left = a->n - from, count = left < LOP_NORMS ? left : LOP_NORMS;
    double sum[LOP_NORMS] = {0};
    if (count < 4 || a->cs != 1 || (a->dt != LOP_f64 && a->dt != LOP_f32)) {
        for (int64_t j = 0; j < count; j++) out[j] = lop_column_norm(a, from + j);
        return;
    }
    for (int64_t i = 0; i < a->m && a->dt == LOP_f64; i++) {
        const double *p = (const double *)a->p + i * a->rs + from;
        for (int64_t j = 0; j < count; j++) sum[j] += p[j] * p[j];
    }
    for (int64_t i = 0; i < a->m && a->dt == LOP_f32; i++) {
        const float *p = (const float *)a->p + i * a->rs + from;
        for (int64_t j = 0; j < count; j++) sum[j] += (double)p[j] * (double)p[j];
    }
    for (int64_t j = 0; j < count; j++) out[j] = norm_by(sum[j], a, from + j);
}

double lop_rounding(lop_dtype dt) {
    return dt == LOP_f32 || dt == LOP_c64 ? FLT_EPSILON / 2 : DBL_EPSILON / 2;
}
