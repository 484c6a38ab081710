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
static inline EL N_(unit)(void) { return (EL){1, 0}; }
static inline R N_(size)(EL a) { return (a.re < 0 ? -a.re : a.re) + (a.im < 0 ? -a.im : a.im); }
static inline bool N_(is_zero)(EL a) { return a.re == 0 && a.im == 0; }
#else
static inline EL N_(quot)(EL a, EL b) { return a / b; }
static inline EL N_(unit)(void) { return 1; }
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

/* -- from both ends, where that takes no exchange: rows before the middle one are eliminated
 * downwards, those behind it upwards, each by a multiplier of at most one. That is elimination
 * without exchanges of a permuted matrix of whose columns each has one element below its pivot:
 * numbers grow threefold at most. The work holds multipliers, pivots, the element beside each on
 * the side of the middle, and the pivots' reciprocals. */

/* Row i with its pivot: *less is what its neighbour loses. False: an exchange is wanted, or the
 * numbers lie so far out that reciprocals or products of two have few digits, or are none. */
static inline bool N_(straight)(void *work, int64_t n, int64_t i, EL pivot, EL below, EL beside,
                                EL *less) {
    const bool twice = sizeof(EL) == (FAM == FAM_C ? 16 : 8);
    const double least = twice ? 0x1p-500 : 0x1p-60, most = twice ? 0x1p1000 : 0x1p120;
    const double size = (double)N_(size)(pivot);
    if (!(size >= (double)N_(size)(below) && size >= least && size <= most)) return false;
    const EL recip = N_(quot)(N_(unit)(), pivot);
    N_(room)(work, n, 0)[i] = N_(mul)(below, recip);
    N_(room)(work, n, 1)[i] = pivot;
    N_(room)(work, n, 2)[i] = beside;
    N_(room)(work, n, 3)[i] = recip;
    *less = N_(mul)(N_(mul)(below, beside), recip);
    return true;
}
static bool N_(gtsv_straight)(const lop_mat *dl, const lop_mat *dm, const lop_mat *du, void *work,
                              int64_t n) {
    EL up = N_(zero)(), down = up, top = N_(take)(dm, 0, false), end = N_(take)(dm, n - 1, false);
    const int64_t mid = n / 2, behind = n - 1 - mid;
    for (int64_t i = 0; i < mid; i++) {
        const int64_t j = n - 1 - i;
        if (!N_(straight)(work, n, i, top, N_(take)(dl, i, false), N_(take)(du, i, false), &down))
            return false;
        top = N_(sub)(N_(take)(dm, i + 1, false), down);
        if (i == behind) break;
        if (!N_(straight)(work, n, j, end, N_(take)(du, j - 1, false), N_(take)(dl, j - 1, false),
                          &up))
            return false;
        end = N_(sub)(N_(take)(dm, j - 1, false), up);
    }
    top = N_(sub)(N_(sub)(N_(take)(dm, mid, false), down), up);
    return N_(straight)(work, n, mid, top, N_(zero)(), N_(zero)(), &up);
}
static void N_(straight_column)(int64_t n, void *work, EL *b, int64_t bs) {
    const EL *l = N_(room)(work, n, 0), *side = N_(room)(work, n, 2), *recip = N_(room)(work, n, 3);
    const int64_t mid = n / 2, behind = n - 1 - mid;
    EL now = b[0], last = b[(n - 1) * bs];
    for (int64_t i = 1; i < mid; i++) {
        const int64_t j = n - 1 - i;
        b[i * bs] = now = N_(sub)(b[i * bs], N_(mul)(l[i - 1], now));
        if (j > mid) b[j * bs] = last = N_(sub)(b[j * bs], N_(mul)(l[j + 1], last));
    }
    EL x = b[mid * bs];
    if (mid > 0) x = N_(sub)(x, N_(mul)(l[mid - 1], now));
    if (behind > 0) x = N_(sub)(x, N_(mul)(l[mid + 1], last));
    now = last = b[mid * bs] = N_(mul)(x, recip[mid]);
    for (int64_t t = 1; t <= mid; t++) {
        const int64_t i = mid - t, j = mid + t;
        now = N_(mul)(N_(sub)(b[i * bs], N_(mul)(side[i], now)), recip[i]);
        b[i * bs] = now;
        if (t > behind) break;
        last = N_(mul)(N_(sub)(b[j * bs], N_(mul)(side[j], last)), recip[j]);
        b[j * bs] = last;
    }
}

/* The row of the first zero pivot, or -1. */
static int64_t N_(gtsv)(const lop_mat *dl, const lop_mat *dm, const lop_mat *du, void *work,
                        const lop_mat *b) {
    const int64_t n = b->m;
    EL *l = N_(room)(work, n, 0), *d = N_(room)(work, n, 1), *u = N_(room)(work, n, 2),
       *u2 = N_(room)(work, n, 3);
    unsigned char *swap = (unsigned char *)N_(room)(work, n, 4);
    if (N_(gtsv_straight)(dl, dm, du, work, n)) {
        memset(swap, 0, (size_t)n);
        for (int64_t c = 0; c < b->n; c++)
            N_(straight_column)(n, work, (EL *)b->p + c * b->cs, b->rs);
        return -1;
    }
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
