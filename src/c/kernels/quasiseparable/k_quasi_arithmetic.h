/* k_quasi_arithmetic.h: arithmetic that k_quasi.c and k_quasi_unrolled.c share; included once by
 * each. */
#ifndef LOPK_QUASI_NUMBER_H
#define LOPK_QUASI_NUMBER_H

#include "kernels/common/k_clones.h"

#include <complex.h>
#include <math.h>

/* As LOPK_CLONES, at two levels: the loops here are too short for vectors of 512 bits. */
#if LOPK_ONLY == 1
#define LOPK_CLONES_SHORT
#elif LOPK_ONLY
#define LOPK_CLONES_SHORT __attribute__((target("arch=x86-64-v3")))
#elif defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) &&     \
    !defined(LOPK_NO_CLONES)
#if __GNUC__ >= 12
#define LOPK_CLONES_SHORT __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define LOPK_CLONES_SHORT __attribute__((target_clones("avx2", "default")))
#endif
#else
#define LOPK_CLONES_SHORT
#endif

/* Products of complex numbers are the plain four multiplications. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("cx-limited-range", "no-math-errno", "fp-contract=fast")
#elif defined(__clang__)
#pragma STDC CX_LIMITED_RANGE ON
#endif

#define ALWAYS inline __attribute__((always_inline))
static const double LEAST = 1e-6; /* D_i / d_i of a factor whose solves are not checked */
#define N_(name) LOPK_CAT(LOPK_CAT(name, _), DT)

static inline double square_f64(double v) { return v * v; }
static inline double square_c128(double _Complex v) {
    return creal(v) * creal(v) + cimag(v) * cimag(v);
}
static inline double quotient_f64(double a, double b) { return a / b; }
/* Smith's, that nothing over- or underflows early. */
static inline double _Complex quotient_c128(double _Complex a, double _Complex b) {
    const double ar = creal(a), ai = cimag(a), br = creal(b), bi = cimag(b);
    if (fabs(br) >= fabs(bi)) {
        const double q = bi / br, d = br + bi * q;
        return CMPLX((ar + ai * q) / d, (ai - ar * q) / d);
    }
    const double q = br / bi, d = br * q + bi;
    return CMPLX((ar * q + ai) / d, (ai * q - ar) / d);
}

#endif
