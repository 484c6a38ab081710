/* k_dct_per_dtype.h: the passes of k_dct.c for one precision T. Macros: T, P(name). */

/* z *= the table's first n entries (conj: their conjugates), complex. */
static inline void P(turned)(T *z, const T *w, int64_t n, bool conj) {
    for (int64_t k = 0; k < n; k++) {
        const T re = z[2 * k], im = z[2 * k + 1], wr = w[2 * k],
                wi = conj ? -w[2 * k + 1] : w[2 * k + 1];
        z[2 * k] = re * wr - im * wi;
        z[2 * k + 1] = re * wi + im * wr;
    }
}

/* Fills w with exp(-2 pi i (a k + b) / den), k < n. */
static void P(table)(T *w, int64_t n, int64_t a, int64_t b, int64_t den) {
    for (int64_t k = 0; k < n; k++) {
        double c, s;
        lopk_turn((a * k + b) % den, den, &c, &s);
        w[2 * k] = (T)c;
        w[2 * k + 1] = (T)-s;
    }
}

static void P(dct1)(const dct_plan *p, T *x, T *z, char *work) {
    const int64_t n = p->n, N = 2 * (n - 1);
    T *even = z + N + 4;
    for (int64_t j = 0; j < n; j++) even[j] = x[j];
    for (int64_t j = 1; j < n - 1; j++) even[N - j] = x[j];
    lopk_rfft((const char *)p + p->fft, even, N, 1, z, work);
    for (int64_t k = 0; k < n; k++) x[k] = z[2 * k];
}

static void P(dct2)(const dct_plan *p, T *x, T *z, char *work) {
    const int64_t n = p->n, half = n / 2 + 1;
    const T *w = (const T *)(const void *)((const char *)p + p->first);
    T *v = z + 2 * half;
    for (int64_t j = 0; j < n; j++) v[j & 1 ? n - 1 - j / 2 : j / 2] = x[j];
    lopk_rfft((const char *)p + p->fft, v, n, 1, z, work);
    P(turned)(z, w, half, false);
    for (int64_t k = 0; k < half; k++) {
        if (k) x[n - k] = -2 * z[2 * k + 1];
        x[k] = 2 * z[2 * k];
    }
}

static void P(dct3)(const dct_plan *p, T *x, T *z, char *work) {
    const int64_t n = p->n, half = n / 2 + 1;
    const T *w = (const T *)(const void *)((const char *)p + p->first);
    T *v = z + 2 * half;
    for (int64_t k = 0; k < half; k++) {
        z[2 * k] = k < n ? x[k] : 0;
        z[2 * k + 1] = k ? -x[n - k] : 0;
    }
    P(turned)(z, w, half, true);
    lopk_irfft((const char *)p + p->fft, z, v, n, 1, 1.0, work);
    for (int64_t j = 0; j < n; j++) x[j] = v[j & 1 ? n - 1 - j / 2 : j / 2];
}

/* Even n: one complex transform of n / 2. Odd n: one of 2 n, padded. */
static void P(dct4)(const dct_plan *p, T *x, T *z, char *work) {
    const int64_t n = p->n, m = n % 2 ? n : n / 2;
    const T *first = (const T *)(const void *)((const char *)p + p->first),
            *last = (const T *)(const void *)((const char *)p + p->last);
    for (int64_t j = 0; j < m; j++) {
        z[2 * j] = n % 2 ? x[j] : x[2 * j];
        z[2 * j + 1] = n % 2 ? 0 : x[n - 1 - 2 * j];
    }
    P(turned)(z, first, m, false);
    lopk_cfft((const char *)p + p->fft, z, m, 1, z, m, 1, -1, 1.0, work);
    P(turned)(z, last, m, false);
    for (int64_t k = 0; k < m; k++) {
        x[n % 2 ? k : 2 * k] = 2 * z[2 * k];
        if (n % 2 == 0) x[n - 1 - 2 * k] = -2 * z[2 * k + 1];
    }
}

static void P(tables)(const dct_plan *p, char *base) {
    const int64_t n = p->n;
    T *first = (T *)(void *)(base + p->first), *last = (T *)(void *)(base + p->last);
    if (p->type == 2 || p->type == 3) P(table)(first, n / 2 + 1, 1, 0, 4 * n);
    if (p->type == 4 && n % 2 == 0) {
        P(table)(first, n / 2, 1, 0, 2 * n);
        P(table)(last, n / 2, 4, 1, 8 * n);
    } else if (p->type == 4) {
        P(table)(first, n, 1, 0, 4 * n);
        P(table)(last, n, 2, 1, 8 * n);
    }
}

static void P(dct)(const dct_plan *p, void *x, void *z, char *work) {
    switch (p->type) {
    case 1: P(dct1)(p, x, z, work); break;
    case 2: P(dct2)(p, x, z, work); break;
    case 3: P(dct3)(p, x, z, work); break;
    default: P(dct4)(p, x, z, work); break;
    }
}
#undef T
#undef P
