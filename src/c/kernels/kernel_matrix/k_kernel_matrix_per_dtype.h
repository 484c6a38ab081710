/* k_kernel_matrix_per_dtype.h: the tiles' loops for one element type and vector width. Defined
 * before: T, U (an unsigned integer of T's size), SINGLE, BYTES, LOW_(a, b) and HIGH_(a, b) (the
 * smaller and larger of two vectors, b where one is NaN), ROOT_(a), X(name).
 *
 * A tile has rows in fours and columns in whole vectors; rows lie one after another. Points are
 * packed: x row by row, y coordinate by coordinate. */
#define W ((int)(BYTES / sizeof(T)))
typedef T X(vec) __attribute__((vector_size(BYTES)));
typedef U X(bits) __attribute__((vector_size(BYTES)));
typedef T X(mem) __attribute__((vector_size(BYTES), may_alias));
#define V X(vec)
#define B X(bits)
#define M X(mem)

/* -- elementary functions */

#if SINGLE
#define MAGIC 0x1.8p23f
#define BIAS 127
#define MANTISSA 23
#define SMALLEST (-127.0f)
#define HALF_ROOT 0x3f3504f3u /* the bits of sqrt(1/2) */
#define LARGEST FLT_MAX
static const T X(exp_c)[] = {0.6931471824645996f,   0.24022650718688965f,   0.055503569543361664f,
                             0.009618083015084267f, 0.0013390863314270973f, 0.0001545316336f};
static const T X(log_c)[] = {0.33333343267440796f, 0.19994381070137024f, 0.14790375530719757f};
static const T X(sin_c)[] = {3.1415927410125732f, -5.167710304260254f, 2.550077438354492f,
                             -0.5982903838157654f, 0.07765591144561768f};
#else
#define MAGIC 0x1.8p52
#define BIAS 1023
#define MANTISSA 52
#define SMALLEST (-1023.0)
#define HALF_ROOT 0x3fe6a09e667f3bcdu
#define LARGEST DBL_MAX
static const T X(exp_c)[] = {0x1.62e42fefa39efp-1,  0x1.ebfbdff82c598p-3,  0x1.c6b08d704a0c2p-5,
                             0x1.3b2ab6fba1ddap-7,  0x1.5d87fe78a5276p-10, 0x1.430913096fd9fp-13,
                             0x1.ffcbfc670dcd4p-17, 0x1.62bfd47773353p-20, 0x1.b524fae627834p-24,
                             0x1.e6063f7217bc6p-28, 0x1.e9d3fe3952179p-32};
static const T X(log_c)[] = {0x1.5555555555558p-2, 0x1.999999999528dp-3, 0x1.2492492dfabd8p-3,
                             0x1.c71c62d972097p-4, 0x1.7462b81922cc6p-4, 0x1.39fdee717f051p-4,
                             0x1.2b5dcaa328dabp-4};
static const T X(sin_c)[] = {0x1.921fb54442d18p+1,  -0x1.4abbce625be52p+2,  0x1.466bc6775aa7dp+1,
                             -0x1.32d2cce627c86p-1, 0x1.5078348551854p-4,   -0x1.e3074dfaf87afp-8,
                             0x1.e8f3675ee37ddp-12, -0x1.6f7acdb8f6580p-16, 0x1.9d462020fcc78p-21};
#endif
#define COUNT(c) ((int)(sizeof(c) / sizeof(c)[0]))

static INLINE V X(poly)(const T *c, const int n, V x) {
    V p = c[n - 1] - (V){0};
    UNROLL for (int i = n - 2; i >= 0; i--) p = p * x + c[i];
    return p;
}

/* The square root where there is no instruction for a whole vector. */
static INLINE V X(root)(V a) {
    V root = {0};
    UNROLL for (int i = 0; i < W; i++) root[i] = (T)(SINGLE ? sqrtf((float)a[i]) : sqrt(a[i]));
    return root;
}

/* 2^x for x <= 0 (and up to BIAS): 2^n (1 + f q(f)), n the nearest integer, f in [-1/2, 1/2], q by
 * interpolation at Chebyshev's nodes: 2e-17, of floats 1e-8. At -BIAS and below 0. Of n vectors,
 * at most ABREAST: a polynomial is one chain, and several fill the time that each step takes. */
static INLINE void X(exp2s)(V *x, const int n) {
    V f[ABREAST], p[ABREAST];
    B power[ABREAST];
    UNROLL for (int i = 0; i < n; i++) {
        const V least = SMALLEST - (V){0}, within = HIGH_(least, x[i]), shifted = within + MAGIC;
        f[i] = within - (shifted - MAGIC);
        power[i] = ((B)shifted + BIAS) << MANTISSA;
        p[i] = X(exp_c)[COUNT(X(exp_c)) - 1] - (V){0};
    }
    UNROLL for (int k = COUNT(X(exp_c)) - 2; k >= 0; k--) UNROLL for (int i = 0; i < n; i++) p[i] =
        p[i] * f[i] + X(exp_c)[k];
    UNROLL for (int i = 0; i < n; i++) x[i] = (f[i] * p[i] + (T)1) * (V)power[i];
}
static INLINE V X(exp2)(V x) {
    X(exp2s)(&x, 1);
    return x;
}

/* log2(1 + t) for t >= 0: 1 + t = 2^e m, m in [sqrt(1/2), sqrt(2)), log m = 2 artanh z; what 1 + t
 * rounds away is added. */
static INLINE V X(log2p)(V t) {
    const V most = LARGEST - (V){0};
    t = LOW_(most, t);
    const V w = t + (T)1, lost = (t - (w - (T)1)) / w;
    const B e = ((B)w - HALF_ROOT) >> MANTISSA;
    const V m = (V)((B)w - (e << MANTISSA)), z = (m - (T)1) / (m + (T)1), s = z * z;
    const V power = (V)(e | (U)(BIAS + MANTISSA) << MANTISSA) - (T)((U)1 << MANTISSA);
    const V log = z * s * X(poly)(X(log_c), COUNT(X(log_c)), s) + z;
    const V sum = power + ((T)2 * log + lost) * (T)1.44269504088896340736;
    return sum + w * (T)0; /* NaN, whose bits the above takes for a number's */
}

/* sin(pi t)^2. */
static INLINE V X(sine2)(V t) {
    t -= (t + MAGIC) - MAGIC;
    const V s = t * t, r = t * X(poly)(X(sin_c), COUNT(X(sin_c)), s);
    return r * r;
}

/* -- what depends on both points: sums over the coordinates */

enum { X(PLAIN), X(WEIGHTED), X(DOT), X(SINE) };

/* `fixed`: the number of coordinates where the compiler may know it, else 0. */
static INLINE void X(pass)(const int what, const int fixed, const tile_job *g) {
    const int64_t d = fixed ? fixed : g->d, ld = g->cols;
    const T *w = g->w, turn = (T)g->turn;
    for (int64_t i = 0; i < g->rows; i += 4) {
        const T *x = (const T *)g->x + i * d;
        T *to = (T *)g->tile + i * ld;
        for (int64_t j = 0; j < ld; j += W) {
            const T *y = (const T *)g->y + j;
            V sum[4] = {{0}, {0}, {0}, {0}};
            for (int64_t k = 0; k < d; k++) {
                const V b = *(const M *)(y + k * ld);
                UNROLL for (int r = 0; r < 4; r++) {
                    const V t = b - x[r * d + k];
                    if (what == X(PLAIN)) sum[r] += t * t;
                    if (what == X(WEIGHTED)) sum[r] += t * w[k] * t;
                    if (what == X(DOT)) sum[r] += b * x[r * d + k];
                    if (what == X(SINE)) sum[r] += X(sine2)(t * turn) * w[k];
                }
            }
            UNROLL for (int r = 0; r < 4; r++) * (M *)(to + r * ld + j) = sum[r];
        }
    }
}
#define PASSES(name, what)                                                                         \
    static void X(name)(const tile_job *g) {                                                       \
        switch (g->d) {                                                                            \
        case 1: X(pass)(what, 1, g); break;                                                        \
        case 2: X(pass)(what, 2, g); break;                                                        \
        case 3: X(pass)(what, 3, g); break;                                                        \
        default: X(pass)(what, 0, g); break;                                                       \
        }                                                                                          \
    }
PASSES(plain, X(PLAIN))
PASSES(weighted, X(WEIGHTED))
PASSES(dots, X(DOT))
static void X(sines)(const tile_job *g) { X(pass)(X(SINE), 0, g); }
#undef PASSES

/* -- the function of it, in place */

static INLINE void X(each)(const int word, const map_job *g) {
    const T a = (T)g->a, b = (T)g->b;
    T *p = g->tile;
    for (int64_t i = 0; i < g->count; i += W) {
        V v = *(const M *)(p + i);
        if (word == LOPK_MATERN12 || word == LOPK_MATERN32 || word == LOPK_MATERN52) {
            const V most = (T)4096 - (V){0};
            V r = ROOT_(v) * a;
            r = LOW_(most, r);
            const V e = X(exp2)(r * b);
            if (word == LOPK_MATERN12) v = e;
            if (word == LOPK_MATERN32) v = r * e + e;
            if (word == LOPK_MATERN52) v = (r * r * (T)0.33333333333333333333 + r) * e + e;
        }
        if (word == LOPK_RATIONAL) {
            const V t = v * a, far = (V)((B)(t > LARGEST) & (B)((T)-4096 - (V){0}));
            v = X(exp2)(X(log2p)(t) * b + far);
        }
        *(M *)(p + i) = v;
    }
}
/* exp alone: rows come in fours, so there are whole groups of vectors. Four at a time take 10 % off
 * a product of three coordinates (AVX2, 2026-11). */
static void X(gauss)(const map_job *g) {
    const T a = (T)g->a;
    T *p = g->tile;
    for (int64_t i = 0; i < g->count; i += ABREAST * W) {
        V v[ABREAST];
        UNROLL for (int u = 0; u < ABREAST; u++) v[u] = *(const M *)(p + i + u * W) * a;
        X(exp2s)(v, ABREAST);
        UNROLL for (int u = 0; u < ABREAST; u++) * (M *)(p + i + u * W) = v[u];
    }
}
static void X(powers)(const map_job *g) {
    const T b = (T)g->b, a = (T)g->a;
    T *p = g->tile;
    for (int64_t i = 0; i < g->count; i += W) {
        V base = *(const M *)(p + i) * a + b, v = (T)1 - (V){0};
        for (int n = g->degree; n > 0; n >>= 1) {
            if (n & 1) v *= base;
            if (n > 1) base *= base;
        }
        *(M *)(p + i) = v;
    }
}
static void X(map)(const map_job *g) {
    switch (g->word) {
    case LOPK_RBF:
    case LOPK_PERIODIC: X(gauss)(g); break;
    case LOPK_MATERN12: X(each)(LOPK_MATERN12, g); break;
    case LOPK_MATERN32: X(each)(LOPK_MATERN32, g); break;
    case LOPK_MATERN52: X(each)(LOPK_MATERN52, g); break;
    case LOPK_RATIONAL: X(each)(LOPK_RATIONAL, g); break;
    default: X(powers)(g); break;
    }
}

/* tile *= other. */
static void X(times)(void *tile, const void *other, int64_t count) {
    T *p = tile;
    const T *q = other;
    for (int64_t i = 0; i < count; i += W) *(M *)(p + i) *= *(const M *)(q + i);
}

/* -- a tile times a vector, and its transpose times another */

static INLINE T X(across)(V v) {
    T s[W] __attribute__((aligned(BYTES))), sum = 0;
    *(M *)s = v;
    for (int i = 0; i < W; i++) sum += s[i];
    return sum;
}
/* y[r] += tile v over the first `cols` columns; with `both`, yt += tile^T vt over `rows` rows. */
static INLINE void X(products)(const bool both, const dot_job *g) {
    const T *v = g->v, *vt = g->vt;
    T *y = g->y, *yt = g->yt;
    const int64_t ld = g->ld, whole = g->cols / W * W;
    for (int64_t i = 0; i < g->rows; i += 4) {
        const T *p = (const T *)g->tile + i * ld;
        V s[4] = {{0}, {0}, {0}, {0}};
        T c[4] = {0};
        const int few = g->rows - i < 4 ? (int)(g->rows - i) : 4;
        if (both)
            for (int r = 0; r < few; r++) c[r] = vt[i + r];
        for (int64_t j = 0; j < whole; j += W) {
            const V x = *(const M *)(v + j);
            V t = {0};
            if (both) t = *(const M *)(yt + j);
            UNROLL for (int r = 0; r < 4; r++) {
                const V k = *(const M *)(p + r * ld + j);
                s[r] += k * x;
                if (both && r < few) t += k * c[r];
            }
            if (both) *(M *)(yt + j) = t;
        }
        for (int r = 0; r < few; r++) {
            T sum = X(across)(s[r]);
            for (int64_t j = whole; j < g->cols; j++) {
                sum += p[r * ld + j] * v[j];
                if (both) yt[j] += p[r * ld + j] * c[r];
            }
            y[i + r] += sum;
        }
    }
}
static void X(dot)(const dot_job *g) { X(products)(false, g); }
static void X(both)(const dot_job *g) { X(products)(true, g); }

static void X(exps)(void *y, const void *x, int64_t count) {
    for (int64_t i = 0; i < count; i += W)
        *(M *)((T *)y + i) = X(exp2)(*(const M *)((const T *)x + i));
}

static const kernel_loops X(loops) = {X(plain), X(weighted), X(dots), X(sines), X(map),
                                      X(times), X(dot),      X(both), X(exps),  W};
#undef MAGIC
#undef BIAS
#undef MANTISSA
#undef SMALLEST
#undef HALF_ROOT
#undef LARGEST
#undef COUNT
#undef W
#undef V
#undef B
#undef M
