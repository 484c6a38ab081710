/* column_norm.c: lengths of columns, without over- or underflow. Cost: one pass, three where plain
 * squares leave the range. */
#include "column_norm.h"
#include "kernels/common/k_clones.h"

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
/* Sums of squares: of rows i, i + TURNS, i + 2 TURNS, ... each by itself, so that none waits for
 * the one before; then together. */
enum { TURNS = 8 };
static double together(const double *sum, int64_t step) {
    return ((sum[0] + sum[step]) + (sum[2 * step] + sum[3 * step])) +
           ((sum[4 * step] + sum[5 * step]) + (sum[6 * step] + sum[7 * step]));
}
#define SQUARES(T)                                                                                 \
    static double down_##T(const T *p, int64_t m, int64_t step) {                                  \
        double sum[TURNS] = {0};                                                                   \
        int64_t i = 0;                                                                             \
        for (; i + TURNS <= m; i += TURNS)                                                         \
            for (int64_t r = 0; r < TURNS; r++) {                                                  \
                const double v = (double)p[(i + r) * step];                                        \
                sum[r] += v * v;                                                                   \
            }                                                                                      \
        for (int64_t r = 0; i + r < m; r++) {                                                      \
            const double v = (double)p[(i + r) * step];                                            \
            sum[r] += v * v;                                                                       \
        }                                                                                          \
        return together(sum, 1);                                                                   \
    }                                                                                              \
    LOPK_CLONES static void across_##T(const T *restrict p, double *restrict sum, int64_t n) {     \
        for (int64_t e = 0; e < n; e++) {                                                          \
            const double v = (double)p[e];                                                         \
            sum[e] += v * v;                                                                       \
        }                                                                                          \
    }
SQUARES(float)
SQUARES(double)
#undef SQUARES

double lop_column_norm(const lop_mat *a, int64_t j) {
    double sum = 0;
    if (a->dt == LOP_f64) {
        sum = down_double((const double *)a->p + j * a->cs, a->m, a->rs);
    } else if (a->dt == LOP_f32) {
        sum = down_float((const float *)a->p + j * a->cs, a->m, a->rs);
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
    if (count < 4 || a->cs != 1 || (a->dt != LOP_f64 && a->dt != LOP_f32)) {
        for (int64_t j = 0; j < count; j++) out[j] = lop_column_norm(a, from + j);
        return;
    }
    double sum[TURNS * LOP_NORMS] = {0};
    const int64_t size = (int64_t)lop_dtype_size(a->dt), whole = a->m - a->m % TURNS;
    const bool run = a->rs == count; /* rows of nothing else */
    for (int64_t i = 0; i < a->m;) {
        const char *p = (const char *)a->p + (i * a->rs + from) * size;
        const int64_t rows = run && i < whole ? TURNS : 1;
        double *into = sum + i % TURNS * count;
        if (a->dt == LOP_f64)
            across_double((const double *)(const void *)p, into, rows * count);
        else
            across_float((const float *)(const void *)p, into, rows * count);
        i += rows;
    }
    for (int64_t j = 0; j < count; j++) out[j] = norm_by(together(sum + j, count), a, from + j);
}

double lop_rounding(lop_dtype dt) {
    return dt == LOP_f32 || dt == LOP_c64 ? FLT_EPSILON / 2 : DBL_EPSILON / 2;
}

double lop_backward_room(int64_t n, lop_room room) {
    const double rows = (double)n, least = room == LOP_ROOM_REFINED ? 3 : 30;
    return room == LOP_ROOM_PROMISED ? 10 * rows : fmin(10 * rows, least * sqrt(rows));
}
