/* k_fft_pairs_per_dtype.h: between a real transform of even length n = 2 M and the complex one of
 * length M that computes it, for one precision and vector length (macros of k_fft_per_dtype.h).
 * With a = Z[k], b = conj Z[M-k], w = exp(-2 pi i k / n):
 *
 *   split:  X[k] = (a + b) / 2 - i w (a - b) / 2,  X[M-k] likewise
 *   join:   Z[k] = (X[k] + b') + i conj(w) (X[k] - b'),  b' = conj X[M-k]; twice split's inverse
 *   fused:  split, times the spectrum, join, in place and in one pass
 *
 * k and M - k are done together, so in place is safe. Twiddles come from two small tables. */
#define V X(V)
#define U X(U)
#define CV X(cv)

static INLINE void X(reverse)(CV *z) {
#if B > 1
    z->re = __builtin_shufflevector(z->re, z->re, REVERSE_);
    z->im = __builtin_shufflevector(z->im, z->im, REVERSE_);
#else
    (void)z;
#endif
}
/* Loads indices k .. k + B and M - k, M - k - 1, .. of z. */
static INLINE void X(load_pair)(CV *a, CV *b, const T *z, int64_t M, int64_t k) {
    X(load)(a, z + 2 * k);
    X(load)(b, z + 2 * (M - k - B + 1));
    X(reverse)(b);
}
static INLINE void X(store_pair)(CV *a, CV *b, T *z, int64_t M, int64_t k) {
    X(reverse)(b);
    X(store)(a, z + 2 * k);
    X(store)(b, z + 2 * (M - k - B + 1));
}
static INLINE void X(split)(CV *a, CV *b, const CV *w) {
    const T h = (T)0.5;
    const V er = (a->re + b->re) * h, ei = (a->im - b->im) * h;
    const V dr = (a->re - b->re) * h, di = (a->im + b->im) * h;
    const V pr = dr * w->re - di * w->im, pi = dr * w->im + di * w->re;
    a->re = er + pi;
    a->im = ei - pr;
    b->re = er - pi;
    b->im = -(ei + pr);
}
static INLINE void X(join)(CV *a, CV *b, const CV *w) {
    const V er = a->re + b->re, ei = a->im - b->im;
    const V dr = a->re - b->re, di = a->im + b->im;
    const V pr = dr * w->re + di * w->im, pi = di * w->re - dr * w->im;
    a->re = er - pi;
    a->im = ei + pr;
    b->re = er + pi;
    b->im = pr - ei;
}
static INLINE void X(times)(CV *a, const CV *s, T sign) {
    const V si = s->im * sign, re = a->re * s->re - a->im * si;
    a->im = a->re * si + a->im * s->re;
    a->re = re;
}

/* Pairs k0, k0 + B, .. below k1. */
static void X(pairs)(const fft_plan *p, int mode, const T *in, T *out, const T *spec, T sign,
                     int64_t k0, int64_t k1) {
    const T *fine = (const T *)((const char *)p + p->fine),
            *coarse = (const T *)((const char *)p + p->coarse);
    const int64_t M = p->len;
    for (int64_t k = k0; k < k1; k += B) {
        CV a, b, w;
        X(load)(&w, fine + 2 * (k % FINE));
        X(turn)(&w, coarse + 2 * (k / FINE));
        X(load_pair)(&a, &b, in, M, k);
        if (mode != PAIR_JOIN) X(split)(&a, &b, &w);
        if (mode == PAIR_FUSED) {
            CV s, t;
            X(load_pair)(&s, &t, spec, M, k);
            X(times)(&a, &s, sign);
            X(times)(&b, &t, sign);
        }
        if (mode != PAIR_SPLIT) X(join)(&a, &b, &w);
        X(store_pair)(&a, &b, out, M, k);
    }
}
#undef V
#undef U
#undef CV
