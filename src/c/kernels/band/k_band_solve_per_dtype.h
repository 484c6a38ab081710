/* k_band_solve_per_dtype.h: tridiagonal elimination for one float dtype. */
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
#else
static inline EL N_(quot)(EL a, EL b) { return a / b; }
static inline EL N_(size)(EL a) { return a < 0 ? -a : a; }
static inline bool N_(is_zero)(EL a) { return a == 0; }
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

/* The pivots of a definite one, into `work`; the row of the first that is not positive, or -1. */
#if FAM == FAM_C
#define PIVOT R
#define REAL_OF(a) ((a).re)
#define SQUARE_OVER(a, d) ((a).re * ((a).re / (d)) + (a).im * ((a).im / (d)))
#else
#define PIVOT EL
#define REAL_OF(a) (a)
#define SQUARE_OVER(a, d) ((a) * ((a) / (d)))
#endif
static int64_t N_(pttrf)(const lop_mat *dm, const lop_mat *em, bool conj_e, void *work) {
    PIVOT *d = work, now = REAL_OF(N_(take)(dm, 0, false));
    for (int64_t i = 0;; i++) {
        if (!(now > 0)) return i;
        d[i] = now;
        if (i + 1 == dm->m) return -1;
        const EL e = N_(take)(em, i, conj_e && FAM == FAM_C);
        now = REAL_OF(N_(take)(dm, i + 1, false)) - SQUARE_OVER(e, now);
    }
}
#undef PIVOT
#undef REAL_OF
#undef SQUARE_OVER
