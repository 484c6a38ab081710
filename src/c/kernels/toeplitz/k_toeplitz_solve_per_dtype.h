/* k_toeplitz_solve_per_dtype.h: Toeplitz solves in one of the two precisions: DT is f64 or c128. */
#if FAM == FAM_C
#define REAL(a) ((a).re)
#define SQUARE(a) ((a).re * (a).re + (a).im * (a).im)
enum { LANES_c128 = 8 };
static inline EL N_(real)(double a) { return (EL){a, 0}; }
static inline EL N_(over)(EL a, double b) { return (EL){a.re / b, a.im / b}; }
static inline double N_(largest)(EL a) { return fabs(a.re) + fabs(a.im); }
static inline double N_(modulus)(EL a) { return sqrt(a.re * a.re + a.im * a.im); }
static inline EL N_(scaled)(EL a, power k) {
    return (EL){a.re * k.half * k.rest, a.im * k.half * k.rest};
}
static inline EL N_(quotient)(EL a, EL b) { /* Smith */
    if (fabs(b.re) >= fabs(b.im)) {
        const double q = b.im / b.re, d = b.re + b.im * q;
        return (EL){(a.re + a.im * q) / d, (a.im - a.re * q) / d};
    }
    const double q = b.re / b.im, d = b.re * q + b.im;
    return (EL){(a.re * q + a.im) / d, (a.im * q - a.re) / d};
}
#else
#define REAL(a) (a)
#define SQUARE(a) ((a) * (a))
enum { LANES_f64 = 32 };
static inline EL N_(real)(double a) { return a; }
static inline EL N_(over)(EL a, double b) { return a / b; }
static inline double N_(largest)(EL a) { return fabs(a); }
static inline double N_(modulus)(EL a) { return fabs(a); }
static inline EL N_(scaled)(EL a, power k) { return a * k.half * k.rest; }
static inline EL N_(quotient)(EL a, EL b) { return a / b; }
#endif

/* sum of a[j] b[j]; so many sums side by side that none waits for another. */
LOPK_CLONES static EL N_(dot)(int64_t n, const EL *restrict a, const EL *restrict b) {
    EL sum[N_(LANES)];
    for (int l = 0; l < N_(LANES); l++) sum[l] = N_(zero)();
    int64_t j = 0;
    for (; j + N_(LANES) <= n; j += N_(LANES))
        for (int l = 0; l < N_(LANES); l++) sum[l] = N_(add)(sum[l], N_(mul)(a[j + l], b[j + l]));
    for (; j < n; j++) sum[0] = N_(add)(sum[0], N_(mul)(a[j], b[j]));
    for (int half = N_(LANES) / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++) sum[l] = N_(add)(sum[l], sum[l + half]);
    return sum[0];
}
LOPK_CLONES static double N_(norm)(int64_t n, const EL *a) {
    double sum[16] = {0};
    int64_t j = 0;
    for (; j + 16 <= n; j += 16)
        for (int l = 0; l < 16; l++) sum[l] += SQUARE(a[j + l]);
    for (; j < n; j++) sum[0] += SQUARE(a[j]);
    for (int half = 8; half > 0; half /= 2)
        for (int l = 0; l < half; l++) sum[l] += sum[l + half];
    return sqrt(sum[0]);
}
/* The real part of sum of conj(a[j]) b[j]. */
static double N_(inner)(int64_t n, const EL *a, const EL *b) {
#if FAM == FAM_C
    return dot_f64(2 * n, (const double *)a, (const double *)b);
#else
    return N_(dot)(n, a, b);
#endif
}
LOPK_CLONES static void N_(axpy)(int64_t n, EL *restrict y, EL a, const EL *restrict x) {
    for (int64_t j = 0; j < n; j++) y[j] = N_(add)(y[j], N_(mul)(a, x[j]));
}

/* -- Levinson's and Durbin's recursions (Golub and Van Loan, 4.7): T a = s e_0 with a[0] = 1 and
 * T b = s e_(n-1) with b[n-1] = 1, order by order; the product of all s is det T -- */

/* a <- (a, 0) - k conj(0, a turned round): both ends at once, m + 1 numbers of which a[m] is 0. */
LOPK_CLONES static void N_(mirror_step)(int64_t m, EL *restrict low, EL *restrict high, EL k) {
    const int64_t half = (m + 1) / 2;
    for (int64_t j = 0; j < half; j++) {
        const EL u = low[j], v = high[half - 1 - j];
        low[j] = N_(sub)(u, N_(mul)(k, N_(conj)(v)));
        high[half - 1 - j] = N_(sub)(v, N_(mul)(k, N_(conj)(u)));
    }
}
/* Hermitian T: b is conj(a) turned round. turned: c from its end to its beginning. s: the last; all
 * of them to `all`, unless that is NULL. definite: T is, positive or negative: of -T only the signs
 * differ. False where one is 0 or no number. Below NOTHING a sum is left out: a is then that of a
 * matrix whose c[m] differs by this sum, and past its last number that is not 0 nothing is read or
 * written, which of an inverse that decays makes O(n) of O(n^2), and no subnormal numbers. */
static bool N_(durbin)(int64_t n, const EL *turned, EL *a, double *s, bool *definite, EL *all) {
    double now = REAL(turned[n - 1]);
    for (int64_t j = 0; j < n; j++) a[j] = N_(zero)();
    a[0] = N_(real)(1);
    int64_t count = 1; /* the numbers of a; all after them are 0 */
    *definite = true;
    for (int64_t m = 1;; m++) {
        if (!(fabs(now) > 0x1p-1000 && fabs(now) < 0x1p1000)) return false;
        *definite = *definite && (now > 0) == (REAL(turned[n - 1]) > 0);
        if (all) all[m - 1] = N_(real)(now);
        if (m == n) break;
        const EL sum = N_(dot)(count, turned + (n - 1 - m), a), k = N_(over)(sum, now);
        if (N_(largest)(sum) >= NOTHING) {
            N_(mirror_step)(m, a, a + (m + 1 - (m + 1) / 2), k);
            if (m % 2 == 0) a[m / 2] = N_(sub)(a[m / 2], N_(mul)(k, N_(conj)(a[m / 2])));
            count = m + 1;
        }
        now -= SQUARE(sum) / now;
    }
    *s = now;
    return true;
}

LOPK_CLONES static void N_(pair_step)(int64_t n, EL *restrict a, EL *restrict b, EL k, EL l) {
    for (int64_t j = 0; j < n; j++) {
        const EL u = a[j], v = b[j];
        a[j] = N_(sub)(u, N_(mul)(k, v));
        b[j] = N_(sub)(v, N_(mul)(l, u));
    }
}
/* b of order m lies at the end of its room, so that (a, 0) and (0, b) lie side by side. */
static bool N_(levinson)(int64_t n, const EL *turned, const EL *r, EL *a, EL *b, EL *s, EL *all) {
    EL now = turned[n - 1];
    for (int64_t j = 0; j < n; j++) a[j] = b[j] = N_(zero)();
    a[0] = b[n - 1] = N_(real)(1);
    int64_t count = 1; /* as in durbin; of b the last ones */
    for (int64_t m = 1;; m++) {
        const double size = SQUARE(now);
        if (!(size > 0x1p-1000 && size < 0x1p1000)) return false;
        if (all) all[m - 1] = now;
        if (m == n) break;
        const EL below = N_(dot)(count, turned + (n - 1 - m), a),
                 over = N_(dot)(count, r + 1 + m - count, b + n - count),
                 k = N_(quotient)(below, now), l = N_(quotient)(over, now);
        if (N_(largest)(below) >= NOTHING || N_(largest)(over) >= NOTHING) {
            N_(pair_step)(m + 1, a, b + (n - m - 1), k, l);
            count = m + 1;
        }
        now = N_(sub)(now, N_(mul)(below, l));
    }
    *s = now;
    return true;
}

/* -- the circulant of length N in which products are taken -- */

static void N_(forward)(const toep *t, const EL *x, int64_t n, cell *out) {
#if FAM == FAM_C
    lopk_cfft(t->plan, x, n, 1, out, t->N, 1, -1, 1, t->work);
#else
    lopk_rfft(t->plan, x, n, 1, out, t->work);
#endif
}
static void N_(back)(const toep *t, const cell *in, EL *x) {
    const double scale = 1 / (double)t->N;
#if FAM == FAM_C
    lopk_cfft(t->plan, in, t->N, 1, x, t->n, 1, 1, scale, t->work);
#else
    lopk_irfft(t->plan, in, x, t->n, 1, scale, t->work);
#endif
}
/* To and from the eigenvalues' side of a circulant of length n. */
static void N_(chan)(const toep *t, EL *x, cell *f, bool back) {
#if FAM == FAM_C
    if (back)
        lopk_cfft(t->chan, f, t->n, 1, x, t->n, 1, 1, 1, t->work);
    else
        lopk_cfft(t->chan, x, t->n, 1, f, t->n, 1, -1, 1, t->work);
#else
    if (back)
        lopk_irfft(t->chan, f, x, t->n, 1, 1, t->work);
    else
        lopk_rfft(t->chan, x, t->n, 1, f, t->work);
#endif
}

/* y <- T x. */
static void N_(product)(const toep *t, EL *y, const EL *x) {
    N_(forward)(t, x, t->n, t->f);
    spectrum_times(t->count, t->f, t->spectrum[WHOLE], t->f);
    N_(back)(t, t->f, y);
}
/* y <- T^-1 x by the formula of Gohberg and Semencul (1972):
 *   T^-1 = (L(a) U(b) - L(b') U(a')) / s,  L lower with first column, U upper with first row,
 *   a; b turned round; b' = (0, b_0, ..); a' = (0, a_(n-1), ..). The 1 / s is in both L. */
static void N_(inverse)(const toep *t, EL *y, const EL *x) {
    EL *u = t->vector[2];
    N_(forward)(t, x, t->n, t->f);
    spectrum_times(t->count, t->g, t->spectrum[UPPER_A], t->f);
    spectrum_times(t->count, t->f, t->spectrum[UPPER_B], t->f);
    N_(back)(t, t->f, u);
    N_(forward)(t, u, t->n, t->f);
    N_(back)(t, t->g, u);
    N_(forward)(t, u, t->n, t->g);
    spectrum_less(t->count, t->f, t->spectrum[LOWER_A], t->spectrum[LOWER_B], t->g);
    N_(back)(t, t->f, y);
}

/* r <- b - T x; the backward error of x, infinite where that is no number. */
static double N_(error_of)(const toep *t, EL *r, const EL *x, const EL *b, double right) {
    N_(product)(t, r, x);
    for (int64_t j = 0; j < t->n; j++) r[j] = N_(sub)(b[j], r[j]);
    const double size = t->norm * N_(norm)(t->n, x) + right, eta = N_(norm)(t->n, r) / size;
    return eta < 1 && size < LARGE ? eta : INFINITY;
}
/* x <- T^-1 b, refined at most ROUNDS times; is its backward error small? */
static bool N_(column)(const toep *t, EL *x, const EL *b) {
    EL *r = t->vector[0], *d = t->vector[1], *better = t->vector[SOLVING];
    const double right = N_(norm)(t->n, b);
    N_(inverse)(t, x, b);
    double eta = N_(error_of)(t, r, x, b, right);
    for (int round = 0; round < ROUNDS && eta > GOOD && eta < 1; round++) {
        N_(inverse)(t, d, r);
        for (int64_t j = 0; j < t->n; j++) better[j] = N_(add)(x[j], d[j]);
        const double now = N_(error_of)(t, r, better, b, right);
        if (!(now < eta)) break;
        eta = now;
        memcpy(x, better, (size_t)t->n * sizeof(EL));
    }
    return eta <= ENOUGH;
}

/* A lower bound of the 2-norm, from a column and two products. */
static double N_(norm_of)(const toep *t, const EL *c) {
    EL *v = t->vector[0], *w = t->vector[1];
    uint64_t state = 17;
    for (int64_t j = 0; j < t->n; j++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        v[j] = N_(real)(state >> 63 ? 1.5 : 0.5);
    }
    N_(product)(t, w, v);
    const double first = N_(norm)(t->n, v), second = N_(norm)(t->n, w);
    N_(product)(t, v, w);
    const double best = fmax(N_(norm)(t->n, c), second / first);
    return second > 0 ? fmax(best, N_(norm)(t->n, v) / second) : best;
}

/* The spectra of the inverse's four triangles. Of a Hermitian T the upper ones are the adjoints of
 * the lower ones, but for s. */
static void N_(triangles)(const toep *t, const EL *a, const EL *b, EL s, bool own) {
    const int64_t n = t->n, N = t->N;
    EL *line = t->line;
    for (int64_t j = 0; j < n; j++) line[j] = N_(quotient)(a[j], s);
    N_(forward)(t, line, n, t->spectrum[LOWER_A]);
    line[0] = N_(zero)();
    for (int64_t j = 1; j < n; j++) line[j] = N_(quotient)(b[j - 1], s);
    N_(forward)(t, line, n, t->spectrum[LOWER_B]);
    if (own) {
        spectrum_adjoint(t->count, t->spectrum[UPPER_B], t->spectrum[LOWER_A], REAL(s));
        spectrum_adjoint(t->count, t->spectrum[UPPER_A], t->spectrum[LOWER_B], REAL(s));
        return;
    }
    memset(line, 0, (size_t)N * sizeof(EL));
    for (int64_t j = 0; j < n; j++) line[j ? N - j : 0] = b[n - 1 - j];
    N_(forward)(t, line, N, t->spectrum[UPPER_B]);
    line[0] = N_(zero)();
    for (int64_t j = 1; j < n; j++) line[N - j] = a[n - j];
    N_(forward)(t, line, N, t->spectrum[UPPER_A]);
}

/* Is T its own adjoint? */
static bool N_(hermitian)(int64_t n, const EL *c, const EL *r) {
#if FAM == FAM_C
    if (c[0].im != 0) return false;
    for (int64_t j = 1; j < n; j++)
        if (!(c[j].re == r[j].re && c[j].im == -r[j].im)) return false;
#else
    for (int64_t j = 1; j < n; j++)
        if (!(c[j] == r[j])) return false;
#endif
    return true;
}
/* Does a solve go well that a and b know nothing of? */
static bool N_(goes_well)(const toep *t) {
    EL *b = t->vector[3], *x = t->vector[4];
    for (int64_t j = 0; j < t->n; j++) b[j] = N_(real)(j % 3 == 1 ? -1 : 1);
    return N_(column)(t, x, b);
}
static void N_(turn)(int64_t n, EL *y, const EL *x, bool conj) {
    for (int64_t j = 0; j < n; j++) y[j] = conj ? N_(conj)(x[n - 1 - j]) : x[n - 1 - j];
}

/* a and s by conjugate gradients on T x = e_0, preconditioned by T. Chan's circulant (1988): the
 * nearest to T. False where that is not positive, or the count of steps is not enough. */
static bool N_(gradients)(const toep *t, const EL *c, int steps, EL *a, double *s, bool *tame) {
    const int64_t n = t->n, cells = FAM == FAM_C ? n : n / 2 + 1;
    EL *r = t->vector[0], *z = t->vector[1], *p = t->vector[2], *q = t->vector[3];
    cell *f = t->f;
    double *value = t->line; /* 1 / eigenvalues */
    if (lopk_fft_plan_init(t->chan, n, t->dt) != LOP_OK) return false;
    for (int64_t j = 0; j < n; j++) {
        const double w = (double)j / (double)n;
        const EL far = j ? N_(conj)(c[n - j]) : c[0];
        r[j] = N_(add)(N_(mul)(N_(real)(1 - w), c[j]), N_(mul)(N_(real)(w), far));
    }
    N_(chan)(t, r, f, false);
    for (int64_t j = 0; j < cells; j++) {
        if (!(f[j].re > 0)) return false;
        value[j] = 1 / (f[j].re * (double)n);
    }
    double rz = 0, track[MOST];
    for (int64_t j = 0; j < n; j++) a[j] = r[j] = p[j] = N_(zero)();
    r[0] = N_(real)(1);
    for (int step = 0; step < steps; step++) {
        N_(chan)(t, r, f, false);
        for (int64_t j = 0; j < cells; j++) f[j] = (cell){f[j].re * value[j], f[j].im * value[j]};
        N_(chan)(t, z, f, true);
        const double before = rz;
        rz = N_(inner)(n, r, z);
        const EL beta = N_(real)(before > 0 ? rz / before : 0);
        for (int64_t j = 0; j < n; j++) p[j] = N_(add)(z[j], N_(mul)(beta, p[j]));
        N_(product)(t, q, p);
        const double along = N_(inner)(n, p, q), alpha = rz / along;
        if (!(along > 0 && rz > 0)) return false;
        N_(axpy)(n, a, N_(real)(alpha), p);
        N_(axpy)(n, r, N_(real)(-alpha), q);
        const double size = t->norm * N_(norm)(n, a) + 1, left = N_(norm)(n, r) / size;
        track[step] = log2(left);
        if (left <= 2 * UNIT) {
            const EL first = a[0];
            *s = 1 / REAL(first);
            for (int64_t j = 0; j < n; j++) a[j] = N_(quotient)(a[j], first);
            *tame = size < TAME;
            return REAL(first) > 0;
        }
        if (step >= LOOK && (track[step] + 52) * BACK >
                                (track[step - BACK] - track[step]) * (double)(steps - 1 - step))
            return false;
    }
    return false;
}

/* a and b of a general or indefinite T by gko (k_toeplitz_gko.c). pivot: n + 1 numbers. */
static bool N_(by_gko)(const toep *t, const EL *c, const EL *r, EL *a, EL *b, EL *s) {
    const int64_t n = t->n;
    if (!gko_columns(t, c, r, FAM == FAM_C)) return false;
    const double _Complex *x = t->gko[2], *y = t->gko[3];
    for (int64_t j = 0; j < n; j++) {
#if FAM == FAM_C
        a[j] = (EL){creal(x[j]), cimag(x[j])};
        b[j] = (EL){creal(y[j]), cimag(y[j])};
#else
        a[j] = creal(x[j]);
        b[j] = creal(y[j]);
#endif
    }
    const EL first = a[0], last = b[n - 1];
    if (!(SQUARE(first) > 0 && SQUARE(last) > 0)) return false;
    *s = N_(quotient)(N_(real)(1), first);
    for (int64_t j = 0; j < n; j++) {
        a[j] = N_(quotient)(a[j], first);
        b[j] = N_(quotient)(b[j], last);
    }
    return true;
}

/* The 1-norm. */
static double N_(sum)(int64_t n, const EL *a) {
    double all[4] = {0};
    int64_t j = 0;
    for (; j + 4 <= n; j += 4)
        for (int l = 0; l < 4; l++) all[l] += N_(modulus)(a[j + l]);
    for (; j < n; j++) all[0] += N_(modulus)(a[j]);
    return all[0] + all[1] + (all[2] + all[3]);
}
/* |T|_1, the largest of its columns' sums: each has one of c's more and one of r's less than the
 * one after it. */
static double N_(columns)(int64_t n, const EL *c, const EL *r) {
    double now = N_(sum)(n, c), most = now;
    for (int64_t j = 1; j < n; j++) {
        now += N_(modulus)(r[j]) - N_(modulus)(c[n - j]);
        most = now > most ? now : most;
    }
    return most;
}
/* What a and b, the first and last columns of T^-1 times s, say of T. */
static double N_(near)(int64_t n, double norm, const EL *a, const EL *b, EL s) {
    const double longest = fmax(N_(sum)(n, a), N_(sum)(n, b));
    return N_(modulus)(s) / (norm * longest);
}

/* The spectrum and the norm of T, by which solutions are judged. */
static void N_(whole)(toep *t, const EL *c, const EL *r) {
    EL *line = t->line;
    const int64_t n = t->n;
    memset(line, 0, (size_t)t->N * sizeof(EL));
    memcpy(line, c, (size_t)n * sizeof(EL));
    for (int64_t j = 1; j < n; j++) line[t->N - j] = r[j];
    N_(forward)(t, line, t->N, t->spectrum[WHOLE]);
    t->norm = N_(norm_of)(t, c);
}

/* The pivots of the elimination that has just found a and s, where these are a good solution of
 * T a = s e_0 as they are. */
static bool N_(eliminated)(const toep *t, const EL *a, EL s, EL *out) {
    const int64_t n = t->n;
    EL *b = t->vector[3];
    N_(product)(t, b, a);
    b[0] = N_(sub)(b[0], s);
    const double left = N_(norm)(n, b);
    if (!(left <= 10 * (double)n * UNIT * (t->norm * N_(norm)(n, a) + sqrt(SQUARE(s)))))
        return false;
    const double _Complex *d = t->gko[4];
#if FAM == FAM_C
    for (int64_t j = 0; j <= n; j++) out[j] = (EL){creal(d[j]), cimag(d[j])};
#else
    double _Complex two = 1; /* det is real; the phases are gathered, the sizes not */
    out[n] = 1;
    for (int64_t j = 0; j <= n; j++) {
        const double size = cabs(d[j]);
        two *= d[j] / size;
        two /= cabs(two);
        out[j] = size;
    }
    if (!(fabs(cimag(two)) < 1e-6)) return false;
    if (creal(two) < 0) out[n] = -out[n];
#endif
    return true;
}

/* The way of the elimination: a good one, or none. */
static int N_(factor_by_gko)(toep *t, const EL *c, const EL *r, double norm,
                             lopk_toep_pivots *det) {
    EL *a = t->vector[6], *b = t->vector[7], s;
    if (!N_(by_gko)(t, c, r, a, b, &s)) return BY_NOTHING;
    if (det && !det->known) det->known = N_(eliminated)(t, a, s, det->pivot);
    N_(triangles)(t, a, b, s, false);
    t->near = N_(near)(t->n, norm, a, b, s);
    return N_(goes_well)(t) ? BY_ELIMINATION : BY_NOTHING;
}

/* Fills the spectra; by which way. c, r in range, and their room for what else is made. Pivots of
 * what is not definite are those of the elimination, which then serves solves as well. */
static int N_(factor)(toep *t, const EL *c, const EL *r, lopk_toep_pivots *det) {
    EL *turned = t->vector[5], *a = t->vector[6], *b = t->vector[7], s;
    const int64_t n = t->n;
    N_(whole)(t, c, r);
    const double norm = N_(columns)(n, c, r);
    const bool own = N_(hermitian)(n, c, r);
    const int steps = own && !det ? most_steps(n, t->dt) : 0;
    bool definite = false, tame = false;
    double real_s = 0;
    if (steps > 0 && N_(gradients)(t, c, steps, a, &real_s, &tame)) {
        N_(turn)(n, b, a, true);
        N_(triangles)(t, a, b, N_(real)(real_s), true);
        t->near = N_(near)(n, norm, a, b, N_(real)(real_s));
        if (tame || N_(goes_well)(t)) return BY_GRADIENTS;
    }
    N_(turn)(n, turned, c, false);
    EL *all = det ? det->pivot : NULL;
    bool found = own    ? N_(durbin)(n, turned, a, &real_s, &definite, all)
                 : !det ? N_(levinson)(n, turned, r, a, b, &s, NULL)
                        : false;
    if (found && own) {
        N_(turn)(n, b, a, true);
        s = N_(real)(real_s);
    }
    if (det && found && definite) {
        all[n] = N_(real)(1);
        det->known = true;
    }
    if (det && !det->known) {
        const int way = N_(factor_by_gko)(t, c, r, norm, det);
        if (way != BY_NOTHING) return way;
        if (!own) found = N_(levinson)(n, turned, r, a, b, &s, NULL);
        if (own && found) {
            found = N_(durbin)(n, turned, a, &real_s, &definite, NULL);
            N_(turn)(n, b, a, true);
            s = N_(real)(real_s);
        }
    }
    if (found) {
        N_(triangles)(t, a, b, s, own);
        t->near = N_(near)(n, norm, a, b, s);
        if (definite || N_(goes_well)(t)) return BY_RECURSION;
    }
    return det ? BY_NOTHING : N_(factor_by_gko)(t, c, r, norm, NULL);
}

/* det T as pivots: Durbin's where T is definite, gko's where its solution is a good one as it is.
 */
static bool N_(pivots)(toep *t, const EL *c, const EL *r, EL *out) {
    const int64_t n = t->n;
    EL *turned = t->vector[5], *a = t->vector[6], *b = t->vector[7], s;
    bool definite = false;
    double real_s;
    out[n] = N_(real)(1);
    N_(turn)(n, turned, c, false);
    if (N_(hermitian)(n, c, r) && N_(durbin)(n, turned, a, &real_s, &definite, out) && definite)
        return true;
    if (!N_(by_gko)(t, c, r, a, b, &s)) return false;
    N_(whole)(t, c, r);
    return N_(eliminated)(t, a, s, out);
}

/* y <- op(T)^-1 b for one column; T is the transpose of itself with rows and columns turned round:
 * `turn` for that, `flip` for a result turned round. */
static bool N_(solve_one)(const toep *t, const view *y, const view *b, bool turn, bool conj,
                          bool flip) {
    EL *in = t->vector[3], *x = t->vector[4], *line = t->vector[5];
    const int64_t n = t->n;
    const lop_mat from = {b->p, n, 1, b->step, 1, b->dt}, to = {y->p, n, 1, y->step, 1, y->dt},
                  own = {in, n, 1, 1, 1, t->dt};
    int k = 0;
    lopk_copy(&own, &from);
    double top = N_(norm)(n, in);
    if (!(top > 0x1p-400 && top < 0x1p400)) { /* very large, very small, 0, no numbers */
        top = 0;
        for (int64_t j = 0; j < n; j++) {
            const double v = N_(largest)(in[j]);
            if (!isnan(top) && !(v <= top)) top = v;
        }
        if (top > 0 && isfinite(top)) k = ilogb(top);
    }
    const power down = power_of(-k), up = power_of(k - t->exponent);
    for (int64_t j = 0; j < n; j++) {
        const EL v = N_(scaled)(in[turn ? n - 1 - j : j], down);
        line[j] = conj ? N_(conj)(v) : v;
    }
    if (!(top > 0 && isfinite(top)))
        for (int64_t j = 0; j < n; j++) x[j] = N_(real)(top == 0 ? 0 : (double)NAN);
    else if (!N_(column)(t, x, line))
        return false;
    for (int64_t j = 0; j < n; j++) {
        const EL v = N_(scaled)(x[turn != flip ? n - 1 - j : j], up);
        in[j] = conj ? N_(conj)(v) : v;
    }
    lopk_copy(&to, &own);
    return true;
}
#undef REAL
#undef SQUARE
