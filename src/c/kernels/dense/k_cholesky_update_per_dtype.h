/* k_cholesky_update_per_dtype.h: the loops of k_cholesky_update.c for one float dtype. */
#if FAM == FAM_F || FAM == FAM_C

#if FAM == FAM_C
#define REAL_TYPE R
static inline R N_(real)(EL a) { return a.re; }
static inline EL N_(of_real)(R a) { return (EL){a, 0}; }
static inline EL N_(times)(EL a, R r) { return (EL){a.re * r, a.im * r}; }
static inline double N_(length)(EL a) { return hypot((double)a.re, (double)a.im); }
static inline R N_(square)(EL a) { return a.re * a.re + a.im * a.im; }
#else
#define REAL_TYPE E
static inline EL N_(real)(EL a) { return a; }
static inline EL N_(of_real)(EL a) { return a; }
static inline EL N_(times)(EL a, EL r) { return a * r; }
static inline double N_(length)(EL a) { return fabs((double)a); }
static inline EL N_(square)(EL a) { return a * a; }
#endif

/* (l, v) <- (c l + conj(s) v, c v - s l) */
LOPK_CLONES static void N_(turn)(int64_t n, REAL_TYPE c, EL s, EL *restrict l, EL *restrict v) {
    for (int64_t i = 0; i < n; i++) {
        const EL a = l[i], b = v[i];
        l[i] = N_(add)(N_(times)(a, c), N_(mulc)(s, b));
        v[i] = N_(sub)(N_(times)(b, c), N_(mul)(s, a));
    }
}
/* v <- v - p l */
LOPK_CLONES static void N_(less)(int64_t n, EL p, const EL *restrict l, EL *restrict v) {
    for (int64_t i = 0; i < n; i++) v[i] = N_(sub)(v[i], N_(mul)(p, l[i]));
}

static int64_t N_(chol_up)(int64_t n, EL *a, int64_t ld, EL *v) {
    for (int64_t j = 0; j < n; j++) {
        EL *l = a + j * ld;
        const double d = (double)N_(real)(l[j]), r = hypot(d, N_(length)(v[j]));
        const REAL_TYPE root = (REAL_TYPE)r;
        if (!(d > 0) || !(root - root == 0)) return j + 1;
        const REAL_TYPE c = (REAL_TYPE)(d / r);
        const EL s = N_(times)(v[j], 1 / root);
        l[j] = N_(of_real)(root);
        N_(turn)(n - j - 1, c, s, l + j + 1, v + j + 1);
    }
    return 0;
}

static int64_t N_(chol_down)(int64_t n, EL *a, int64_t ld, EL *p, void *work) {
    EL *x = work, *cosines = x + n;
    double norm = 0; /* of p, kept from overflow by hypot */
    for (int64_t j = 0; j < n; j++) {
        const EL *l = a + j * ld;
        const REAL_TYPE d = N_(real)(l[j]);
        if (!(d > 0) || !(1 / d - 1 / d == 0)) return j + 1;
        p[j] = N_(times)(p[j], 1 / d);
        norm = hypot(norm, N_(length)(p[j]));
        N_(less)(n - j - 1, p[j], l + j + 1, p + j + 1);
    }
    double alpha = (1 - norm) * (1 + norm);
    if (!(alpha > 0)) return -1;
    alpha = sqrt(alpha);
    for (int64_t j = n - 1; j >= 0; j--) {
        const double r = hypot(alpha, N_(length)(p[j]));
        cosines[j] = N_(of_real)((REAL_TYPE)(alpha / r));
        p[j] = N_(times)(p[j], (REAL_TYPE)(1 / r));
        alpha = r;
        x[j] = N_(zero)();
    }
    for (int64_t j = n - 1; j >= 0; j--) { /* (x, l) <- (c x + s l, c l - conj(s) x) */
        N_(turn)(n - j, N_(real)(cosines[j]), N_(conj)(p[j]), x + j, a + j * ld + j);
    }
    return 0;
}

static int64_t N_(band_chol)(int64_t n, int64_t w, EL *ab, int64_t ld) {
    for (int64_t j = 0; j < n; j++) {
        EL *l = ab + j * ld;
        const REAL_TYPE d = N_(real)(l[0]);
        const REAL_TYPE root = (REAL_TYPE)sqrt((double)d), r = 1 / root;
        const int64_t below = w < n - 1 - j ? w : n - 1 - j;
        if (!(d > 0) || !(d - d == 0)) return j + 1;
        l[0] = N_(of_real)(root);
        for (int64_t t = 1; t <= below; t++) l[t] = N_(times)(l[t], r);
        for (int64_t t = 1; t <= below; t++) {
            EL *next = l + t * ld;
            const EL f = N_(conj)(l[t]);
            next[0] = N_(sub)(next[0], N_(of_real)(N_(square)(l[t])));
            for (int64_t s = t + 1; s <= below; s++)
                next[s - t] = N_(sub)(next[s - t], N_(mul)(f, l[s]));
        }
    }
    return 0;
}
#undef REAL_TYPE
#endif
