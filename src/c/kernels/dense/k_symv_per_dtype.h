/* k_symv_per_dtype.h: the loops of k_symv.c for one element type. Defined before: T (the scalar),
 * CPLX, BYTES (of a vector), SWAP_ and SIGN_ (complex: neighbours exchanged; -1, 1, ..), X(name).
 * Lengths and strides count scalars here. */
#define E_ (CPLX ? 2 : 1) /* scalars of an element */
#define W ((int64_t)(BYTES / sizeof(T)))
typedef T X(vec) __attribute__((vector_size(BYTES)));
typedef T X(mem) __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));
typedef T X(few) __attribute__((vector_size(16), aligned(sizeof(T)), may_alias));
#define V X(vec)
#define M X(mem)
static INLINE T X(total)(const V *v) { /* in halves */
    T lane[W];
    memcpy(lane, v, sizeof lane);
    for (int64_t w = W / 2; w > 0; w /= 2)
        for (int64_t l = 0; l < w; l++) lane[l] += lane[l + w];
    return lane[0];
}

#if CPLX
/* The lines a[r] of t scalars beside the diagonal: rest += op2(a[r]) v[r]; sum[r] += op1(a[r]) . x.
 * `conj_sum`, `conj_rest`: the operators conjugate. */
static INLINE void X(lines)(const int nr, const int nc, T *restrict rest, const T *restrict a,
                            int64_t ld, const T *restrict x, const T *restrict v, T *sum, int64_t t,
                            int64_t apart, bool conj_sum, bool conj_rest) {
    const V sign = {SIGN_}, none = sign * sign, at_re = conj_rest ? -sign : none,
            at_im = conj_rest ? none : sign;
    int64_t j = 0;
    V s[4] = {{0}}, u[4] = {{0}};
    (void)nc, (void)apart;
    for (; j + W <= t; j += W) {
        const V xj = *(const M *)(x + j), turned = __builtin_shufflevector(xj, xj, SWAP_);
        V re = {0}, im = {0};
        UNROLL for (int r = 0; r < nr; r++) {
            const V w = *(const M *)(a + r * ld + j);
            s[r] += w * xj;
            u[r] += w * turned;
            re += w * v[2 * r];
            im += w * v[2 * r + 1];
        }
        *(M *)(rest + j) =
            *(const M *)(rest + j) + at_re * re + at_im * __builtin_shufflevector(im, im, SWAP_);
    }
    for (int r = 0; r < nr; r++) {
        T p = 0, q = 0, f = 0, g = 0; /* re re, im im, re im, im re */
        for (int l = 0; l < W; l += 2)
            p += s[r][l], q += s[r][l + 1], f += u[r][l], g += u[r][l + 1];
        for (int64_t l = j; l < t; l += 2) {
            const T b = a[r * ld + l], c = a[r * ld + l + 1], d = conj_rest ? -c : c;
            p += b * x[l], q += c * x[l + 1], f += b * x[l + 1], g += c * x[l];
            rest[l] += b * v[2 * r] - d * v[2 * r + 1];
            rest[l + 1] += b * v[2 * r + 1] + d * v[2 * r];
        }
        sum[2 * r] += conj_sum ? p + q : p - q;
        sum[2 * r + 1] += conj_sum ? f - g : f + g;
    }
}
#else
/* The lines a[r] of t elements beside the diagonal, for nc columns of x and y, that lie `apart`:
 * rest += a[r] v[r]; sum[r] += a[r] . x. */
static INLINE void X(lines)(const int nr, const int nc, T *restrict rest, const T *restrict a,
                            int64_t ld, const T *restrict x, const T *restrict v, T *sum, int64_t t,
                            int64_t apart, bool conj_sum, bool conj_rest) {
    int64_t j = 0;
    V s[4][4] = {{{0}}};
    (void)conj_sum, (void)conj_rest;
    for (; j + W <= t; j += W) {
        V w[4];
        UNROLL for (int r = 0; r < nr; r++) w[r] = *(const M *)(a + r * ld + j);
        UNROLL for (int c = 0; c < nc; c++) {
            const V xj = *(const M *)(x + c * apart + j);
            V y = *(const M *)(rest + c * apart + j);
            UNROLL for (int r = 0; r < nr; r++) {
                s[r][c] += w[r] * xj;
                y += w[r] * v[c * apart + r];
            }
            *(M *)(rest + c * apart + j) = y;
        }
    }
    const int64_t some = 16 / (int64_t)sizeof(T), whole = j;
    for (int c = 0; c < nc; c++) {
        T *y = rest + c * apart, p[4];
        const T *xc = x + c * apart;
        X(few) f[4] = {{0}};
        for (j = whole; j + some <= t; j += some) {
            const X(few) xj = *(const X(few) *)(xc + j);
            X(few) yj = *(const X(few) *)(y + j);
            UNROLL for (int r = 0; r < nr; r++) {
                const X(few) w = *(const X(few) *)(a + r * ld + j);
                f[r] += w * xj;
                yj += w * v[c * apart + r];
            }
            *(X(few) *)(y + j) = yj;
        }
        UNROLL for (int r = 0; r < nr; r++) {
            p[r] = X(total)(&s[r][c]);
            for (int64_t l = 0; l < some; l++) p[r] += f[r][l];
        }
        for (; j < t; j++) UNROLL for (int r = 0; r < nr; r++) {
                p[r] += a[r * ld + j] * xc[j];
                y[j] += a[r * ld + j] * v[c * apart + r];
            }
        UNROLL for (int r = 0; r < nr; r++) sum[c * apart + r] += p[r];
    }
}
#endif

/* The upper triangle of the nr lines that begin at i, within these lines and columns alone. */
static INLINE void X(corner)(const int nr, T *y, const T *a, int64_t rs, int64_t cs, const T *x,
                             bool conj_up, bool conj_low, bool real) {
    T sum[4 * E_] = {0};
    (void)conj_up, (void)conj_low, (void)real;
    UNROLL for (int i = 0; i < nr; i++) UNROLL for (int j = i; j < nr; j++) {
        const T *at = a + i * rs + j * cs;
#if CPLX
        const T b = at[0], c = real && i == j ? 0 : at[1], up = conj_up ? -c : c,
                low = conj_low ? -c : c;
        sum[2 * i] += b * x[2 * j] - up * x[2 * j + 1];
        sum[2 * i + 1] += b * x[2 * j + 1] + up * x[2 * j];
        if (j > i) {
            sum[2 * j] += b * x[2 * i] - low * x[2 * i + 1];
            sum[2 * j + 1] += b * x[2 * i + 1] + low * x[2 * i];
        }
#else
        sum[i] += *at * x[j];
        if (j > i) sum[j] += *at * x[i];
#endif
    }
    for (int i = 0; i < nr * E_; i++) y[i] += sum[i];
}

#define LINES(nr, nc)                                                                              \
    do {                                                                                           \
        const T *line = rows ? a + i * (ld + E_) + nr * E_ : a + i * ld;                           \
        const int64_t at = rows ? i + nr : 0, t = rows ? n - i - nr : i;                           \
        X(lines)(nr, nc, y + at * E_, line, ld, x + at * E_, x + i * E_, y + i * E_, t * E_,       \
                 apart, rows ? conj : conj != adjoint, rows ? conj != adjoint : conj);             \
        for (int c = 0; c < nc; c++)                                                               \
            X(corner)(nr, y + i * E_ + c * apart, a + i * (ld + E_), rows ? ld : E_,               \
                      rows ? E_ : ld, x + i * E_ + c * apart, conj, conj != adjoint, adjoint);     \
    } while (0)
#define SYMV(nr, nc)                                                                               \
    static void X(symv##nc)(void *to, const void *of, int64_t n, int64_t ld, bool rows,            \
                            const void *by, int64_t apart, bool adjoint, bool conj) {              \
        T *y = to;                                                                                 \
        const T *a = of, *x = by;                                                                  \
        int64_t i = 0;                                                                             \
        for (int c = 0; c < nc; c++) memset(y + c * apart, 0, (size_t)(n * E_) * sizeof(T));       \
        for (; i + nr <= n; i += nr) LINES(nr, nc);                                                \
        for (; i < n; i++) LINES(1, nc);                                                           \
    }
SYMV(4, 1)
#if !CPLX /* as many sums as registers hold */
SYMV(4, 2)
#if BYTES == 64
SYMV(4, 4)
#else
SYMV(2, 4)
#endif
#endif
#undef SYMV
#undef LINES
#undef W
#undef E_
#undef V
#undef M
