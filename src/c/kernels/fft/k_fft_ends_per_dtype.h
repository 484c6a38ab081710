/* k_fft_ends_per_dtype.h: what a real transform does at k = 0 and k = M, and odd lengths' symmetric
 * halves, for one precision. Macros: T the real type, P(name) the function's name. */

/* X[0] and X[M] are real; both come from Z[0]. */
static void P(split_ends)(const fft_plan *p, void *out) {
    T *z = out;
    const T re = z[0], im = z[1];
    z[0] = re + im;
    z[1] = 0;
    z[2 * p->len] = re - im;
    z[2 * p->len + 1] = 0;
}
static void P(join_ends)(const fft_plan *p, const void *in, void *out) {
    const T *x = in;
    T *z = out;
    const T first = x[0], last = x[2 * p->len];
    z[0] = first + last;
    z[1] = first - last;
}
static void P(fused_ends)(const fft_plan *p, const void *spectrum, void *out) {
    const T *s = spectrum;
    T *z = out;
    const T first = (z[0] + z[1]) * s[0], last = (z[0] - z[1]) * s[2 * p->len];
    z[0] = first + last;
    z[1] = first - last;
}

/* Odd n: all of z from its first half, z[n - k] = conj z[k]. */
static void P(mirror)(const fft_plan *p, const void *in, void *out) {
    const T *x = in;
    T *z = out;
    z[0] = x[0];
    z[1] = 0;
    for (int64_t k = 1, n = p->n; k <= n / 2; k++) {
        z[2 * k] = z[2 * (n - k)] = x[2 * k];
        z[2 * k + 1] = x[2 * k + 1];
        z[2 * (n - k) + 1] = -x[2 * k + 1];
    }
}
static void P(mirror_times)(const fft_plan *p, const void *spectrum, bool conj, void *out) {
    const T *s = spectrum;
    T *z = out;
    const T sign = conj ? (T)-1 : (T)1;
    z[0] *= s[0];
    z[1] = 0;
    for (int64_t k = 1, n = p->n; k <= n / 2; k++) {
        const T si = sign * s[2 * k + 1], re = z[2 * k] * s[2 * k] - z[2 * k + 1] * si;
        const T im = z[2 * k] * si + z[2 * k + 1] * s[2 * k];
        z[2 * k] = z[2 * (n - k)] = re;
        z[2 * k + 1] = im;
        z[2 * (n - k) + 1] = -im;
    }
}

/* z[k] *= s[-k mod n], or its conjugate. */
static void P(times_backwards)(int64_t n, void *out, const void *spectrum, bool conj) {
    T *z = out;
    const T sign = conj ? (T)-1 : (T)1;
    for (int64_t k = 0; k < n; k++) {
        const T *s = (const T *)spectrum + 2 * (k ? n - k : 0);
        const T re = z[2 * k] * s[0] - z[2 * k + 1] * sign * s[1];
        z[2 * k + 1] = z[2 * k] * sign * s[1] + z[2 * k + 1] * s[0];
        z[2 * k] = re;
    }
}
#undef T
#undef P
