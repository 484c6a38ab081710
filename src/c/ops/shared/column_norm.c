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

double lop_column_norm(const lop_mat *a, int64_t j) {
    double sum = 0;
    if (a->dt == LOP_f64) {
        const double *p = (const double *)a->p + j * a->cs;
        for (int64_t i = 0; i < a->m; i++) sum += p[i * a->rs] * p[i * a->rs];
    } else if (a->dt == LOP_f32) {
        const float *p = (const float *)a->p + j * a->cs;
        for (int64_t i = 0; i < a->m; i++) sum += (double)p[i * a->rs] * (double)p[i * a->rs];
    }
    return sum > 1e-280 && sum < 1e280 ? sqrt(sum) : scaled_norm(a, j);
}

double lop_rounding(lop_dtype dt) {
    return dt == LOP_f32 || dt == LOP_c64 ? FLT_EPSILON / 2 : DBL_EPSILON / 2;
}
