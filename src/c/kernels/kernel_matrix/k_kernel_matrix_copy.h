/* k_kernel_matrix_copy.h: rows and columns of k_kernel_matrix.c's points and vectors, of doubles or
 * of floats. */
#ifndef LOPK_KERNEL_COPY_H
#define LOPK_KERNEL_COPY_H

#include "base/buf.h"

static inline void put(bool is_double, void *p, int64_t i, double v) {
    if (is_double)
        ((double *)p)[i] = v;
    else
        ((float *)p)[i] = (float)v;
}
static inline double get(bool is_double, const void *p, int64_t i) {
    return is_double ? ((const double *)p)[i] : (double)((const float *)p)[i];
}

/* to[i ts] = from[i fs] a b, in double. */
static inline void scaled(bool is_double, void *to, int64_t ts, const void *from, int64_t fs,
                          int64_t n, double a, double b) {
    if (is_double)
        for (int64_t i = 0; i < n; i++)
            ((double *)to)[i * ts] = ((const double *)from)[i * fs] * a * b;
    else
        for (int64_t i = 0; i < n; i++)
            ((float *)to)[i * ts] = (float)((double)((const float *)from)[i * fs] * a * b);
}
/* to[i ts] += a from[i fs], in double. */
static inline void add_scaled(bool is_double, void *to, int64_t ts, const void *from, int64_t fs,
                              int64_t n, double a) {
    if (is_double)
        for (int64_t i = 0; i < n; i++)
            ((double *)to)[i * ts] += a * ((const double *)from)[i * fs];
    else
        for (int64_t i = 0; i < n; i++) {
            float *one = (float *)to + i * ts;
            *one = (float)((double)*one + a * (double)((const float *)from)[i * fs]);
        }
}

#endif
