/* k_fft_per_dtype.h: the transform's loops for one precision and one vector length; included by
 * k_fft_per_isa.h. T  the real type    B  lanes (1: plain scalars)    X(name)  the function's name
 *   EVEN_, ODD_, LOW_, HIGH_  lane numbers that split (re, im) pairs and join them again
 * B neighbouring columns are transformed at once; a `cv` holds B complex numbers, parts apart. The
 * lanes of a loaded cv are columns in the order LANES_, the cheapest the instructions give. */
#if B == 1
typedef T X(V);
typedef T X(U);
#else
typedef T X(V) __attribute__((vector_size(B * sizeof(T))));
typedef T X(U) __attribute__((vector_size(B * sizeof(T)), aligned(sizeof(T)), may_alias));
#endif
typedef struct {
    X(U) re, im;
} X(cv);
#define V X(V)
#define U X(U)
#define CV X(cv)

static INLINE void X(load)(CV *z, const T *p) {
#if B == 1
    z->re = p[0];
    z->im = p[1];
#else
    const V lo = *(const U *)p, hi = *(const U *)(p + B);
    z->re = __builtin_shufflevector(lo, hi, EVEN_);
    z->im = __builtin_shufflevector(lo, hi, ODD_);
#endif
}
static INLINE void X(store)(const CV *z, T *p) {
#if B == 1
    p[0] = z->re;
    p[1] = z->im;
#else
    const V re = z->re, im = z->im;
    *(U *)p = __builtin_shufflevector(re, im, LOW_);
    *(U *)(p + B) = __builtin_shufflevector(re, im, HIGH_);
#endif
}
/* Load the first `valid` scalars at p (0 .. 2 B), zeros after them; p is not touched when none. */
static INLINE void X(load_some)(CV *z, const T *p, int64_t valid) {
    if (valid >= 2 * B) {
        X(load)(z, p);
        return;
    }
    T t[2 * B] = {0};
    for (int64_t i = 0; i < valid; i++) t[i] = p[i];
    X(load)(z, t);
}
static INLINE void X(swap)(CV *z) {
    const V t = z->re;
    z->re = z->im;
    z->im = t;
}
/* z <- w z for one complex number w */
static INLINE void X(turn)(CV *z, const T *w) {
    const T wr = w[0], wi = w[1];
    const V re = z->re * wr - z->im * wi;
    z->im = z->re * wi + z->im * wr;
    z->re = re;
}

/* ---- butterflies on z[0 .. r), forward sign ---- */
static INLINE void X(fly2)(CV *z) {
    const V re = z[0].re - z[1].re, im = z[0].im - z[1].im;
    z[0].re += z[1].re;
    z[0].im += z[1].im;
    z[1].re = re;
    z[1].im = im;
}
static INLINE void X(fly4)(CV *z) {
    const V ar = z[0].re + z[2].re, ai = z[0].im + z[2].im;
    const V br = z[0].re - z[2].re, bi = z[0].im - z[2].im;
    const V cr = z[1].re + z[3].re, ci = z[1].im + z[3].im;
    const V dr = z[1].im - z[3].im, di = z[3].re - z[1].re; /* -i (z1 - z3) */
    z[0].re = ar + cr;
    z[0].im = ai + ci;
    z[1].re = br + dr;
    z[1].im = bi + di;
    z[2].re = ar - cr;
    z[2].im = ai - ci;
    z[3].re = br - dr;
    z[3].im = bi - di;
}
static INLINE void X(fly8)(CV *z) {
    const T h = (T)0.70710678118654752440084436210484904;
    CV e[4] = {z[0], z[2], z[4], z[6]}, o[4] = {z[1], z[3], z[5], z[7]};
    X(fly4)(e);
    X(fly4)(o);
    const V r1 = (o[1].re + o[1].im) * h, i1 = (o[1].im - o[1].re) * h;
    const V r2 = o[2].im, i2 = -o[2].re;
    const V r3 = (o[3].im - o[3].re) * h, i3 = -(o[3].re + o[3].im) * h;
    z[0].re = e[0].re + o[0].re, z[0].im = e[0].im + o[0].im;
    z[4].re = e[0].re - o[0].re, z[4].im = e[0].im - o[0].im;
    z[1].re = e[1].re + r1, z[1].im = e[1].im + i1;
    z[5].re = e[1].re - r1, z[5].im = e[1].im - i1;
    z[2].re = e[2].re + r2, z[2].im = e[2].im + i2;
    z[6].re = e[2].re - r2, z[6].im = e[2].im - i2;
    z[3].re = e[3].re + r3, z[3].im = e[3].im + i3;
    z[7].re = e[3].re - r3, z[7].im = e[3].im - i3;
}
static INLINE void X(fly3)(CV *z) {
    const T s = (T)0.86602540378443864676372317075293618;
    const V tr = z[1].re + z[2].re, ti = z[1].im + z[2].im;
    const V dr = (z[1].im - z[2].im) * s, di = (z[2].re - z[1].re) * s; /* -i s (z1 - z2) */
    const V mr = z[0].re - tr * (T)0.5, mi = z[0].im - ti * (T)0.5;
    z[0].re += tr;
    z[0].im += ti;
    z[1].re = mr + dr;
    z[1].im = mi + di;
    z[2].re = mr - dr;
    z[2].im = mi - di;
}
static INLINE void X(fly5)(CV *z) {
    const T c1 = (T)0.30901699437494742410229341718281906,
            c2 = (T)-0.80901699437494742410229341718281906;
    const T s1 = (T)0.95105651629515357211643933337938214,
            s2 = (T)0.58778525229247312916870595463907277;
    const V ar = z[1].re + z[4].re, ai = z[1].im + z[4].im;
    const V br = z[2].re + z[3].re, bi = z[2].im + z[3].im;
    const V cr = z[1].re - z[4].re, ci = z[1].im - z[4].im;
    const V dr = z[2].re - z[3].re, di = z[2].im - z[3].im;
    const V er = z[0].re + ar * c1 + br * c2, ei = z[0].im + ai * c1 + bi * c2;
    const V fr = z[0].re + ar * c2 + br * c1, fi = z[0].im + ai * c2 + bi * c1;
    const V gr = ci * s1 + di * s2, gi = -(cr * s1 + dr * s2); /* -i (s1 c + s2 d) */
    const V hr = ci * s2 - di * s1, hi = dr * s1 - cr * s2;
    z[0].re += ar + br;
    z[0].im += ai + bi;
    z[1].re = er + gr, z[1].im = ei + gi;
    z[4].re = er - gr, z[4].im = ei - gi;
    z[2].re = fr + hr, z[2].im = fi + hi;
    z[3].re = fr - hr, z[3].im = fi - hi;
}
/* Any odd radix by the definition; root: the r roots of unity. */
static void X(fly_any)(CV *z, int r, const T *root) {
    CV t[MAX_RADIX];
    for (int k = 0; k < r; k++) {
        CV s = z[0];
        for (int q = 1, e = k; q < r; q++, e = e + k < r ? e + k : e + k - r) {
            CV u = z[q];
            X(turn)(&u, root + 2 * e);
            s.re += u.re;
            s.im += u.im;
        }
        t[k] = s;
    }
    for (int k = 0; k < r; k++) z[k] = t[k];
}

/* ---- passes: blocks of r sub-transforms of length L become ones of length r L ---- */
#define PASS(r)                                                                                    \
    static void X(pass##r)(CV * z, int64_t n, int64_t L, const T *tw) {                            \
        for (CV *b = z; b < z + n; b += (r) * L)                                                   \
            for (int64_t j = 0; j < L; j++) {                                                      \
                const T *w = tw + j * (2 * (r) - 2);                                               \
                CV t[r];                                                                           \
                t[0] = b[j];                                                                       \
                _Pragma("GCC unroll 8") for (int q = 1; q < (r); q++) {                            \
                    t[q] = b[j + q * L];                                                           \
                    X(turn)(&t[q], w + 2 * q - 2);                                                 \
                }                                                                                  \
                X(fly##r)(t);                                                                      \
                _Pragma("GCC unroll 8") for (int q = 0; q < (r); q++) b[j + q * L] = t[q];         \
            }                                                                                      \
    }
PASS(2)
PASS(3)
PASS(4)
PASS(5)
PASS(8)
#undef PASS
static void X(pass_any)(CV *z, int64_t n, int64_t L, const T *tw, int r) {
    const T *root = tw, *w0 = tw + 2 * r;
    for (CV *b = z; b < z + n; b += r * L)
        for (int64_t j = 0; j < L; j++) {
            CV t[MAX_RADIX];
            for (int q = 0; q < r; q++) {
                t[q] = b[j + q * L];
                if (q > 0) X(turn)(&t[q], w0 + (j * (r - 1) + q - 1) * 2);
            }
            X(fly_any)(t, r, root);
            for (int q = 0; q < r; q++) b[j + q * L] = t[q];
        }
}

/* All passes but the first, which the loader does when it is of radix 4 or 8 (`done` = 1). */
static void X(passes)(const fft_sub *s, const char *base, CV *z, int done) {
    int64_t L = 1;
    for (int i = 0; i < s->count; i++) {
        const int r = s->radix[i];
        const T *tw = (const T *)(base + s->twiddle[i]);
        if (i >= done) switch (r) {
            case 2: X(pass2)(z, s->n, L, tw); break;
            case 3: X(pass3)(z, s->n, L, tw); break;
            case 4: X(pass4)(z, s->n, L, tw); break;
            case 5: X(pass5)(z, s->n, L, tw); break;
            case 8: X(pass8)(z, s->n, L, tw); break;
            default: X(pass_any)(z, s->n, L, tw, r); break;
            }
        L *= r;
    }
}

/* Rows perm[.] of B columns from `in` (ld complex a row; `valid` scalars exist) into z, with the
 * first pass. */
static INLINE int X(gather)(const fft_sub *s, const char *base, const T *in, int64_t ld,
                            int64_t valid, bool swap, CV *z) {
    const int32_t *perm = (const int32_t *)(base + s->perm);
    const int r = s->radix[0];
    if (s->count == 0 || (r != 4 && r != 8)) {
        for (int64_t i = 0; i < s->n; i++) {
            const int64_t at = 2 * ld * perm[i];
            __builtin_prefetch((const char *)(in + at) + 4 * B * sizeof(T), 0, 2);
            X(load_some)(&z[i], at < valid ? in + at : in, valid - at);
            if (swap) X(swap)(&z[i]);
        }
        return 0;
    }
    for (int64_t i = 0; i < s->n; i += r) {
        CV t[8];
        for (int q = 0; q < r; q++) {
            const int64_t at = 2 * ld * perm[i + q];
            __builtin_prefetch((const char *)(in + at) + 4 * B * sizeof(T), 0, 2);
            X(load_some)(&t[q], at < valid ? in + at : in, valid - at);
            if (swap) X(swap)(&t[q]);
        }
        if (r == 4)
            X(fly4)(t);
        else
            X(fly8)(t);
        for (int q = 0; q < r; q++) z[i + q] = t[q];
    }
    return 1;
}

#if B > 1
/* z (n1 entries of B columns) to B lines, `ld` scalars apart, of n1 complex each. */
static INLINE void X(put_columns)(const CV *z, int64_t n1, T *to, int64_t ld) {
#if B == 2
    for (int64_t k = 0; k < n1; k++) {
        const V re = z[k].re, im = z[k].im;
        *(U *)(to + 2 * k) = __builtin_shufflevector(re, im, LOW_);
        *(U *)(to + ld + 2 * k) = __builtin_shufflevector(re, im, HIGH_);
    }
#elif B == 4
    for (int64_t k = 0; k < n1; k += 2)
        for (int h = 0; h < 2; h++) {
            const V r0 = z[k].re, i0 = z[k].im, r1 = z[k + 1].re, i1 = z[k + 1].im;
            const V a =
                h ? __builtin_shufflevector(r0, i0, HIGH_) : __builtin_shufflevector(r0, i0, LOW_);
            const V b =
                h ? __builtin_shufflevector(r1, i1, HIGH_) : __builtin_shufflevector(r1, i1, LOW_);
            *(U *)(to + 2 * h * ld + 2 * k) = __builtin_shufflevector(a, b, 0, 1, 4, 5);
            *(U *)(to + (2 * h + 1) * ld + 2 * k) = __builtin_shufflevector(a, b, 2, 3, 6, 7);
        }
#elif B == 8
    for (int64_t k = 0; k < n1; k += 4)
        for (int h = 0; h < 2; h++) {
            V a[4];
            for (int q = 0; q < 4; q++) {
                const V re = z[k + q].re, im = z[k + q].im;
                a[q] = h ? __builtin_shufflevector(re, im, HIGH_)
                         : __builtin_shufflevector(re, im, LOW_);
            }
            const V e = __builtin_shufflevector(a[0], a[1], 0, 1, 8, 9, 4, 5, 12, 13);
            const V f = __builtin_shufflevector(a[2], a[3], 0, 1, 8, 9, 4, 5, 12, 13);
            const V g = __builtin_shufflevector(a[0], a[1], 2, 3, 10, 11, 6, 7, 14, 15);
            const V o = __builtin_shufflevector(a[2], a[3], 2, 3, 10, 11, 6, 7, 14, 15);
            T *t = to + 4 * h * ld + 2 * k;
            *(U *)t = __builtin_shufflevector(e, f, 0, 1, 2, 3, 8, 9, 10, 11);
            *(U *)(t + ld) = __builtin_shufflevector(g, o, 0, 1, 2, 3, 8, 9, 10, 11);
            *(U *)(t + 2 * ld) = __builtin_shufflevector(e, f, 4, 5, 6, 7, 12, 13, 14, 15);
            *(U *)(t + 3 * ld) = __builtin_shufflevector(g, o, 4, 5, 6, 7, 12, 13, 14, 15);
        }
#endif
}

/* First step: columns n0 .. n0 + B of the n1 x n2 matrix, transformed, turned by exp(-2 pi i k1 n2
 * / M) and stored transposed (row n2 of `to`, ldt complex apart). */
static void X(columns)(const fft_plan *p, const T *in, int64_t valid, bool swap, T *to, CV *z) {
    const char *base = (const char *)p;
    const T *ta = (const T *)(base + p->cross_a), *tc = (const T *)(base + p->cross_c);
    const int64_t n1 = p->one.n, n2 = p->two.n, c = p->cross;
    for (int64_t n0 = 0; n0 < n2; n0 += B) {
        const int done = swap ? X(gather)(&p->one, base, in + 2 * n0, n2, valid - 2 * n0, true, z)
                              : X(gather)(&p->one, base, in + 2 * n0, n2, valid - 2 * n0, false, z);
        X(passes)(&p->one, base, z, done);
        for (int64_t a = 0; a * c < n1; a++) {
            CV wa;
            X(load)(&wa, ta + 2 * (a * n2 + n0));
            for (int64_t b = 0; b < c; b++) {
                CV w, *v = &z[a * c + b];
                X(load)(&w, tc + 2 * (b * n2 + n0));
                const V wr = w.re * wa.re - w.im * wa.im, wi = w.re * wa.im + w.im * wa.re;
                const V re = v->re * wr - v->im * wi;
                v->im = v->re * wi + v->im * wr;
                v->re = re;
            }
        }
        X(put_columns)(z, n1, to + 2 * n0 * p->ldt, 2 * p->ldt);
    }
}

/* Second step: the transforms of length n2, and the result's rows, `valid` scalars of it. */
static void X(rows)(const fft_plan *p, const T *from, T *out, int64_t valid, bool swap, T scale,
                    CV *z) {
    const char *base = (const char *)p;
    const int64_t n1 = p->one.n, n2 = p->two.n;
    for (int64_t k0 = 0; k0 < n1; k0 += B) {
        const int done = X(gather)(&p->two, base, from + 2 * k0, p->ldt, INT64_MAX, false, z);
        X(passes)(&p->two, base, z, done);
        for (int64_t k2 = 0; k2 < n2; k2++) {
            const int64_t at = 2 * (k2 * n1 + k0), left = valid - at;
            if (left <= 0) break;
            CV v = z[k2];
            if (swap) X(swap)(&v);
            v.re *= scale;
            v.im *= scale;
            if (left >= 2 * B) {
                X(store)(&v, out + at);
            } else {
                T t[2 * B];
                X(store)(&v, t);
                for (int64_t i = 0; i < left; i++) out[at + i] = t[i];
            }
        }
    }
}
#else
/* The whole transform in one go, for lengths that do not split. */
static void X(flat)(const fft_plan *p, const T *in, int64_t n_in, T *out, int64_t n_out, bool swap,
                    T scale, CV *z) {
    const char *base = (const char *)p;
    X(passes)(&p->one, base, z, X(gather)(&p->one, base, in, 1, n_in, swap, z));
    for (int64_t k = 0; k < p->one.n && 2 * k < n_out; k++) {
        CV v = z[k];
        if (swap) X(swap)(&v);
        out[2 * k] = v.re * scale;
        if (2 * k + 1 < n_out) out[2 * k + 1] = v.im * scale;
    }
}
#endif
#undef V
#undef U
#undef CV
