/* k_fft_per_isa.h: all loops of the transform for one instruction set; included once per set by
 * k_fft_loops.c, which defines ISA (a name) and WIDE (1: 32-byte vectors, 0: 16-byte ones), and the
 * table of entry points. */
#define X_(name, tail) LOPK_CAT(LOPK_CAT(name, tail), ISA)

#define T double
#define B 1
#define X(name) X_(name, _d_)
#include "k_fft_per_dtype.h"
#include "k_fft_pairs_per_dtype.h"
#undef B
#undef X

#define X(name) X_(name, _dv_)
#if WIDE
#define B 4
#define EVEN_ 0, 4, 2, 6
#define ODD_ 1, 5, 3, 7
#define LOW_ 0, 4, 2, 6
#define HIGH_ 1, 5, 3, 7
#define REVERSE_ 3, 2, 1, 0
#else
#define B 2
#define EVEN_ 0, 2
#define ODD_ 1, 3
#define LOW_ 0, 2
#define HIGH_ 1, 3
#define REVERSE_ 1, 0
#endif
#include "k_fft_per_dtype.h"
#include "k_fft_pairs_per_dtype.h"
#undef B
#undef X
#undef T
#undef EVEN_
#undef ODD_
#undef LOW_
#undef HIGH_
#undef REVERSE_

#define T float
#define B 1
#define X(name) X_(name, _f_)
#include "k_fft_per_dtype.h"
#include "k_fft_pairs_per_dtype.h"
#undef B
#undef X

#define X(name) X_(name, _fv_)
#if WIDE
#define B 8
#define EVEN_ 0, 2, 8, 10, 4, 6, 12, 14
#define ODD_ 1, 3, 9, 11, 5, 7, 13, 15
#define LOW_ 0, 8, 1, 9, 4, 12, 5, 13
#define HIGH_ 2, 10, 3, 11, 6, 14, 7, 15
#define REVERSE_ 7, 6, 5, 4, 3, 2, 1, 0
#else
#define B 4
#define EVEN_ 0, 2, 4, 6
#define ODD_ 1, 3, 5, 7
#define LOW_ 0, 4, 1, 5
#define HIGH_ 2, 6, 3, 7
#define REVERSE_ 3, 2, 1, 0
#endif
#include "k_fft_per_dtype.h"
#include "k_fft_pairs_per_dtype.h"
#undef B
#undef X
#undef T
#undef EVEN_
#undef ODD_
#undef LOW_
#undef HIGH_
#undef REVERSE_

/* A transform of the complex length p->len; scalars: n_in exist, n_out are wanted. */
static void X_(whole, _f64_)(const fft_plan *p, const void *in, int64_t n_in, void *out,
                             int64_t n_out, bool swap, double scale, void *middle, void *z) {
    if (p->two.n == 0) {
        X_(flat, _d_)(p, in, n_in, out, n_out, swap, scale, z);
    } else {
        X_(columns, _dv_)(p, in, n_in, swap, middle, z);
        X_(rows, _dv_)(p, middle, out, n_out, swap, scale, z);
    }
}
static void X_(whole, _f32_)(const fft_plan *p, const void *in, int64_t n_in, void *out,
                             int64_t n_out, bool swap, double scale, void *middle, void *z) {
    if (p->two.n == 0) {
        X_(flat, _f_)(p, in, n_in, out, n_out, swap, (float)scale, z);
    } else {
        X_(columns, _fv_)(p, in, n_in, swap, middle, z);
        X_(rows, _fv_)(p, middle, out, n_out, swap, (float)scale, z);
    }
}

/* All pairs 1 <= k <= M / 2: scalars up to the first full vector, vectors, scalars. */
#define ALL_PAIRS(name, T, one, vec, lanes)                                                        \
    static void name(const fft_plan *p, int mode, const void *in, void *out, const void *spec,     \
                     bool conj) {                                                                  \
        const T sign = conj ? (T) - 1 : (T)1;                                                      \
        const int64_t M = p->len, last = M / 2 + 1;                                                \
        int64_t full = (M + 1) / 2 / (lanes) * (lanes); /* 2 (k + lanes - 1) < M */                \
        if (full < (lanes)) full = (lanes);                                                        \
        const int64_t head = (lanes) < last ? (lanes) : last;                                      \
        X_(pairs, one)(p, mode, in, out, spec, sign, 1, head);                                     \
        switch (mode) { /* constants, so that each loop is compiled for its mode */                \
        case PAIR_SPLIT: X_(pairs, vec)(p, PAIR_SPLIT, in, out, spec, sign, lanes, full); break;   \
        case PAIR_JOIN: X_(pairs, vec)(p, PAIR_JOIN, in, out, spec, sign, lanes, full); break;     \
        default: X_(pairs, vec)(p, PAIR_FUSED, in, out, spec, sign, lanes, full); break;           \
        }                                                                                          \
        X_(pairs, one)(p, mode, in, out, spec, sign, full, last);                                  \
    }
#if WIDE
ALL_PAIRS(X_(all_pairs, _f64_), double, _d_, _dv_, 4)
ALL_PAIRS(X_(all_pairs, _f32_), float, _f_, _fv_, 8)
#else
ALL_PAIRS(X_(all_pairs, _f64_), double, _d_, _dv_, 2)
ALL_PAIRS(X_(all_pairs, _f32_), float, _f_, _fv_, 4)
#endif
#undef ALL_PAIRS

static const fft_loops X_(loops, _) = {{X_(whole, _f32_), X_(whole, _f64_)},
                                       {X_(all_pairs, _f32_), X_(all_pairs, _f64_)}};
#undef X_
#undef ISA
#undef WIDE
