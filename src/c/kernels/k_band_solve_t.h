/* k_band_solve_t.h: tridiagonal elimination for one float dtype. */
#if FAM == FAM_C
static inline EL N_(quot)(EL a, EL b) { /* Smith */
    if ((b.re < 0 ? -b.re : b.re) >= (b.im < 0 ? -b.im : b.im)) {
        const R r = b.im / b.re, d = b.re + b.im * r;
        return (EL){(a.re + a.im * r) / d, (a.im - a.re * r) / d};
    }
    const R r = b.re / b.im, d = b.re * r + b.im;
    return (EL){(a.re * r + a.im) / d, (a.im * r - a.re) / d};
}
static inline R N_(size)(EL a) { return (a.re < 0 ? -a.re : a.re) + (a.im < 0 ? -a.im : a.im); }
static inline bool N_(is_zero)(EL a) { return a.re == 0 && a.im == 0; }
static inline EL N_(over)(EL a, R r) { return (EL){a.re / r, a.im / r}; }
#define REAL_OF(a) ((a).re)
#define REAL_TYPE R
#else
static inline EL N_(quot)(EL a, EL b) { return a / b; }
static inline EL N_(size)(EL a) { return a < 0 ? -a : a; }
static inline bool N_(is_zero)(EL a) { return a == 0; }
static inline EL N_(over)(EL a, EL r) { return a / r; }
#define REAL_OF(a) (a)
#define REAL_TYPE E
#endif

/* The four vectors of the work: l (multipliers), d, u, u2 (filled in by exchanges); the marks. */
static inline EL *N_(room)(void *work, int64_t n, int which) {
    return (EL *)((char *)work + (size_t)which * (((size_t)n * sizeof(EL) + 63) & ~(size_t)63));
}

/* U^-1 (P L)^-1 b for one column. */
static void N_(gtsv_column)(int64_t n, void *work, EL *b, int64_t bs) {
    const EL *l = N_(room)(work, n, 0), *d = N_(room)(work, n, 1), *u = N_(room)(work, n, 2),
             *u2 = N_(room)(work, n, 3);
    const unsigned char *swap = (const unsigned char *)N_(room)(work, n, 4);
    EL now = b[0];
    for (int64_t i = 0; i + 1 < n; i++) {
        const EL next = b[(i + 1) * bs], top = swap[i] ? next : now, low = swap[i] ? now : next;
        b[i * bs] = top;
        now = N_(sub)(low, N_(mul)(l[i], top));
    }
    EL x1 = N_(quot)(now, d[n - 1]), x2 = N_(zero)();
    b[(n - 1) * bs] = x1;
    for (int64_t i = n - 2; i >= 0; i--) {
        EL v = N_(sub)(b[i * bs], N_(mul)(u[i], x1));
        if (swap[i]) v = N_(sub)(v, N_(mul)(u2[i], x2));
        x2 = x1;
        b[i * bs] = x1 = N_(quot)(v, d[i]);
    }
}

/* The row of the first zero pivot, or -1. */
static int64_t N_(gtsv)(const lop_mat *dl, const lop_mat *dm, const lop_mat *du, void *work,
                        const lop_mat *b) {
    const int64_t n = b->m;
    EL *l = N_(room)(work, n, 0), *d = N_(room)(work, n, 1), *u = N_(room)(work, n, 2),
       *u2 = N_(room)(work, n, 3);
    unsigned char *swap = (unsigned char *)N_(room)(work, n, 4);
    for (int64_t i = 0; i < n; i++) {
        d[i] = N_(take)(dm, i, false);
        l[i] = i + 1 < n ? N_(take)(dl, i, false) : N_(zero)();
        u[i] = i + 1 < n ? N_(take)(du, i, false) : N_(zero)();
        u2[i] = N_(zero)();
        swap[i] = 0;
    }
    for (int64_t i = 0; i + 1 < n; i++) {
        if (!(N_(size)(l[i]) > N_(size)(d[i]))) {
            if (N_(is_zero)(d[i])) return i;
            l[i] = N_(quot)(l[i], d[i]);
            d[i + 1] = N_(sub)(d[i + 1], N_(mul)(l[i], u[i]));
            continue;
        }
        const EL f = N_(quot)(d[i], l[i]), below = d[i + 1]; /* rows i and i + 1 change places */
        swap[i] = 1;
        d[i] = l[i];
        l[i] = f;
        d[i + 1] = N_(sub)(u[i], N_(mul)(f, below));
        u[i] = below;
        if (i + 2 < n) {
            u2[i] = u[i + 1];
            u[i + 1] = N_(sub)(N_(zero)(), N_(mul)(f, u[i + 1]));
        }
    }
    if (N_(is_zero)(d[n - 1])) return n - 1;
    for (int64_t c = 0; c < b->n; c++) N_(gtsv_column)(n, work, (EL *)b->p + c * b->cs, b->rs);
    return -1;
}

static void N_(ptsv_column)(int64_t n, const EL *l, const REAL_TYPE *d, EL *b, int64_t bs) {
    EL z = b[0];
    for (int64_t i = 1; i < n; i++) b[i * bs] = z = N_(sub)(b[i * bs], N_(mul)(l[i - 1], z));
    EL x = N_(over)(z, d[n - 1]);
    b[(n - 1) * bs] = x;
    for (int64_t i = n - 2; i >= 0; i--)
        b[i * bs] = x = N_(sub)(N_(over)(b[i * bs], d[i]), N_(mulc)(l[i], x));
}

static int64_t N_(ptsv)(const lop_mat *dm, const lop_mat *em, bool conj_e, void *work,
                        const lop_mat *b) {
    const int64_t n = b->m;
    EL *l = N_(room)(work, n, 0);
    REAL_TYPE *d = (REAL_TYPE *)(void *)N_(room)(work, n, 1);
    REAL_TYPE now = REAL_OF(N_(take)(dm, 0, false));
    for (int64_t i = 0;; i++) {
        if (!(now > 0)) return i;
        d[i] = now;
        if (i + 1 == n) break;
        const EL e = N_(take)(em, i, conj_e && FAM == FAM_C);
        l[i] = N_(over)(e, now);
        now = REAL_OF(N_(take)(dm, i + 1, false)) - REAL_OF(N_(mulc)(e, l[i]));
    }
    for (int64_t c = 0; c < b->n; c++) N_(ptsv_column)(n, l, d, (EL *)b->p + c * b->cs, b->rs);
    return -1;
}
/* L D L^H within the band: column j of L, from its diagonal on (D there), in `width` elements. */
static int64_t N_(band_factor)(int64_t n, int64_t w, EL *f) {
    for (int64_t j = 0; j < n; j++) {
        EL *c = f + j * (w + 1);
        const int64_t below = min_of(w, n - 1 - j);
        const REAL_TYPE d = REAL_OF(c[0]);
        if (!(d > 0)) return j;
        for (int64_t s = 1; s <= below; s++) {
            const EL e = N_(conj)(c[s]), l = N_(over)(e, d);
            EL *to = c + s * (w + 1) - s;
            for (int64_t t = s; t <= below; t++) to[t] = N_(sub)(to[t], N_(mul)(l, c[t]));
        }
        for (int64_t t = 1; t <= below; t++) c[t] = N_(over)(c[t], d);
    }
    return -1;
}
static void N_(band_column)(int64_t n, int64_t w, const EL *f, EL *b, int64_t bs) {
    for (int64_t j = 0; j < n; j++) {
        const EL *c = f + j * (w + 1), z = b[j * bs];
        const int64_t below = min_of(w, n - 1 - j);
        for (int64_t t = 1; t <= below; t++)
            b[(j + t) * bs] = N_(sub)(b[(j + t) * bs], N_(mul)(c[t], z));
    }
    for (int64_t j = n - 1; j >= 0; j--) {
        const EL *c = f + j * (w + 1);
        const int64_t below = min_of(w, n - 1 - j);
        EL x = N_(over)(b[j * bs], REAL_OF(c[0]));
        for (int64_t t = 1; t <= below; t++) x = N_(sub)(x, N_(mulc)(c[t], b[(j + t) * bs]));
        b[j * bs] = x;
    }
}
static int64_t N_(pbsv)(const lop_mat *ab, bool conj_a, void *work, const lop_mat *b) {
    const int64_t n = b->m, w = ab->m - 1;
    EL *f = work;
    for (int64_t j = 0; j < n;
         j++) /* A[j + t, j] is conj(A[j, j + t]), which lies in column j + t */
        for (int64_t t = 0; t <= w; t++) {
            const EL *e = (const EL *)ab->p + (w - t) * ab->rs + (j + t) * ab->cs;
            f[j * (w + 1) + t] = j + t >= n ? N_(zero)() : conj_a ? *e : N_(conj)(*e);
        }
    const int64_t where = N_(band_factor)(n, w, f);
    for (int64_t c = 0; where < 0 && c < b->n; c++)
        N_(band_column)(n, w, f, (EL *)b->p + c * b->cs, b->rs);
    return where;
}
#undef REAL_OF
#undef REAL_TYPE
