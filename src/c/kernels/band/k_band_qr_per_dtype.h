/* k_band_qr_per_dtype.h: reflections and QR of a band for one float dtype. See k_band_qr.c. */
#if FAM == FAM_F || FAM == FAM_C

#if FAM == FAM_C
#define REAL_TYPE R
static inline R N_(square)(EL a) { return a.re * a.re + a.im * a.im; }
static inline double N_(largest)(EL a) { return larger(fabs(a.re), fabs(a.im)); }
static inline EL N_(times)(EL a, R r) { return (EL){a.re * r, a.im * r}; }
static inline EL N_(raised)(EL a, int p) { return (EL){(R)ldexp(a.re, p), (R)ldexp(a.im, p)}; }
static inline EL N_(of)(double a) { return (EL){(R)a, 0}; }
#else
#define REAL_TYPE E
static inline E N_(square)(EL a) { return a * a; }
static inline double N_(largest)(EL a) { return fabs(a); }
static inline EL N_(times)(EL a, E r) { return a * r; }
static inline EL N_(raised)(EL a, int p) { return (E)ldexp(a, p); }
static inline EL N_(of)(double a) { return (E)a; }
#endif

static inline REAL_TYPE N_(squares)(int64_t n, const EL *a) {
    REAL_TYPE sum = 0;
    for (int64_t i = 0; i < n; i++) sum += N_(square)(a[i]);
    return sum;
}
static double N_(top)(int64_t n, const EL *a) { /* NaN wins */
    double top = 0;
    for (int64_t i = 0; i < n; i++) top = larger(top, N_(largest)(a[i]));
    return top;
}

/* 2 / |u|^2; u is raised by a power of two first where its square is out of range. 0: u is 0. */
static REAL_TYPE N_(tau)(int64_t n, EL *u) {
    REAL_TYPE sum = N_(squares)(n, u);
    if (!(sum > LOW && sum < HIGH)) {
        const double top = N_(top)(n, u);
        int power;
        if (top == 0) return 0;
        if (!isfinite(top)) return (REAL_TYPE)NAN;
        (void)frexp(top, &power);
        for (int64_t i = 0; i < n; i++) u[i] = N_(raised)(u[i], -power);
        sum = N_(squares)(n, u);
    }
    return 2 / sum;
}

/* sum conj(u[i]) x[i], in four chains. */
static inline EL N_(dot)(int64_t n, const EL *restrict u, const EL *restrict x) {
    EL s[4] = {N_(zero)(), N_(zero)(), N_(zero)(), N_(zero)()};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int k = 0; k < 4; k++) s[k] = N_(add)(s[k], N_(mulc)(u[i + k], x[i + k]));
    for (; i < n; i++) s[0] = N_(add)(s[0], N_(mulc)(u[i], x[i]));
    return N_(add)(N_(add)(s[0], s[1]), N_(add)(s[2], s[3]));
}
/* x -= u (tau u^H x), a contiguous column. */
static inline void N_(one)(int64_t n, const EL *restrict u, REAL_TYPE tau, EL *restrict x) {
    const EL d = N_(times)(N_(dot)(n, u, x), tau);
    for (int64_t i = 0; i < n; i++) x[i] = N_(sub)(x[i], N_(mul)(u[i], d));
}
/* Likewise columns that lie side by side; t holds one number a column. */
static inline void N_(many)(int64_t n, const EL *restrict u, REAL_TYPE tau, EL *restrict x,
                            int64_t rs, int64_t columns, EL *restrict t) {
    for (int64_t c = 0; c < columns; c++) t[c] = N_(zero)();
    for (int64_t i = 0; i < n; i++) {
        const EL *xi = x + i * rs;
        for (int64_t c = 0; c < columns; c++) t[c] = N_(add)(t[c], N_(mulc)(u[i], xi[c]));
    }
    for (int64_t c = 0; c < columns; c++) t[c] = N_(times)(t[c], tau);
    for (int64_t i = 0; i < n; i++) {
        EL *xi = x + i * rs;
        for (int64_t c = 0; c < columns; c++) xi[c] = N_(sub)(xi[c], N_(mul)(u[i], t[c]));
    }
}

LOPK_CLONES static void N_(reflect)(const lop_mat *x, const lop_mat *v, bool adjoint, bool conj_v,
                                    void *work) {
    EL *u = work, *t = (EL *)work + v->n, *p = x->p;
    for (int64_t o = 0; o < v->m; o++) {
        const int64_t j = adjoint ? o : v->m - 1 - o, n = v->n < x->m - j ? v->n : x->m - j;
        const EL *vj = (const EL *)v->p + j * v->rs;
        for (int64_t i = 0; i < n; i++) {
            const EL e = vj[i * v->cs];
            u[i] = conj_v ? N_(conj)(e) : e;
        }
        const REAL_TYPE tau = N_(tau)(n, u);
        EL *xj = p + j * x->rs;
        if (tau == 0) continue;
        if (x->rs == 1) {
            for (int64_t c = 0; c < x->n; c++) N_(one)(n, u, tau, xj + c * x->cs);
        } else if (x->cs == 1) {
            N_(many)(n, u, tau, xj, x->rs, x->n, t);
        } else {
            for (int64_t c = 0; c < x->n; c++) N_(many)(n, u, tau, xj + c * x->cs, x->rs, 1, t);
        }
    }
}

/* The v whose reflection takes x to a multiple of the first unit vector, which is left in x. */
static void N_(direct)(int64_t n, EL *x, EL *v) {
    const double top = N_(top)(n, x), rest = N_(top)(n - 1, x + 1);
    int power = 0;
    if (rest == 0 && isfinite(top)) {
        for (int64_t i = 0; i < n; i++) v[i] = N_(zero)();
        return;
    }
    for (int64_t i = 0; i < n; i++) v[i] = isfinite(top) ? x[i] : N_(of)(NAN);
    REAL_TYPE sum = N_(squares)(n, v);
    if (isfinite(top) && !(sum > LOW && sum < HIGH)) {
        (void)frexp(top, &power);
        for (int64_t i = 0; i < n; i++) v[i] = N_(raised)(v[i], -power);
        sum = N_(squares)(n, v);
    }
    const double norm = sqrt((double)sum), size = sqrt((double)N_(square)(v[0]));
    const EL phase = size > 0 ? N_(times)(v[0], (REAL_TYPE)(1 / size)) : N_(of)(1);
    for (int64_t i = 0; i < n; i++) v[i] = N_(times)(v[i], (REAL_TYPE)(1 / norm));
    v[0] = N_(add)(v[0], phase);
    x[0] = N_(raised)(N_(times)(phase, (REAL_TYPE)-norm), power);
    for (int64_t i = 1; i < n; i++) x[i] = N_(zero)();
}

LOPK_CLONES static void N_(bandqr)(const lop_mat *ab, int64_t m, int64_t l, int64_t u,
                                   const lop_mat *v) {
    for (int64_t j = 0; j < v->m; j++) {
        const int64_t n = l + 1 < m - j ? l + 1 : m - j,
                      end = ab->n - j > l + u + 1 ? j + l + u + 1 : ab->n;
        EL *vj = (EL *)v->p + j * v->rs, *x = (EL *)ab->p + j * ab->cs + l + u;
        N_(direct)(n, x, vj);
        for (int64_t i = n; i < v->n; i++) vj[i] = N_(zero)();
        const REAL_TYPE tau = N_(tau)(n, vj);
        if (tau == 0) continue;
        for (int64_t c = j + 1; c < end; c++) N_(one)(n, vj, tau, x + (c - j) * (ab->cs - 1));
    }
}

#undef REAL_TYPE
#endif
