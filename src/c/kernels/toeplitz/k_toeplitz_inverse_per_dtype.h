/* k_toeplitz_inverse_per_dtype.h: inverses of Toeplitz matrices in one dtype; what computes, in
 * DOUBLES alone. See k_toeplitz_inverse.c. */

enum { N_(SIDE) = 32 };

/* anti: b[p, q] <- b[n-1-q, n-1-p] beyond the antidiagonal (`lower`: up to the diagonal alone);
 * else above the diagonal conj(b[q, p]), of a Hankel matrix's, which is symmetric, b[q, p]. In
 * squares, which stay in the cache from whichever side they are read. */
static void N_(mirror)(const lop_mat *b, bool anti, bool lower, bool conj) {
    const int64_t n = b->m, side = N_(SIDE);
    EL *at = b->p;
    for (int64_t i = 0; i < n; i += side)
        for (int64_t j = 0; j < n; j += side) {
            const int64_t rows = i + side < n ? i + side : n, columns = j + side < n ? j + side : n;
            if (anti ? rows + columns - 2 < n || (lower && j >= rows) : columns - 1 <= i) continue;
            for (int64_t p = i; p < rows; p++) {
                const int64_t from = anti ? n - p : p + 1, to = anti && lower ? p + 1 : n;
                for (int64_t q = j > from ? j : from; q < columns && q < to; q++) {
                    const EL v = anti ? at[(n - 1 - q) * b->rs + (n - 1 - p) * b->cs]
                                      : at[q * b->rs + p * b->cs];
                    at[p * b->rs + q * b->cs] = conj ? N_(conj)(v) : v;
                }
            }
        }
}

#ifdef DOUBLES
#if FAM == FAM_C
#define SQUARE(a) ((a).re * (a).re + (a).im * (a).im)
static inline EL N_(of)(double _Complex a) { return (EL){creal(a), cimag(a)}; }
static inline double _Complex N_(number)(EL a) { return CMPLX(a.re, a.im); }
#else
#define SQUARE(a) ((a) * (a))
static inline EL N_(of)(double _Complex a) { return creal(a); }
static inline double N_(number)(EL a) { return a; }
#endif

/* d += p a - q b */
LOPK_CLONES static void N_(grow)(int64_t n, EL *restrict d, EL p, const EL *restrict a, EL q,
                                 const EL *restrict b) {
    for (int64_t j = 0; j < n; j++)
        d[j] = N_(add)(d[j], N_(sub)(N_(mul)(p, a[j]), N_(mul)(q, b[j])));
}
LOPK_CLONES static EL N_(dot)(int64_t n, const EL *a, const EL *b) {
    EL sum[8];
    for (int l = 0; l < 8; l++) sum[l] = N_(zero)();
    int64_t j = 0;
    for (; j + 8 <= n; j += 8)
        for (int l = 0; l < 8; l++) sum[l] = N_(add)(sum[l], N_(mul)(a[j + l], b[j + l]));
    for (; j < n; j++) sum[0] = N_(add)(sum[0], N_(mul)(a[j], b[j]));
    for (int half = 4; half > 0; half /= 2)
        for (int l = 0; l < half; l++) sum[l] = N_(add)(sum[l], sum[l + half]);
    return sum[0];
}
LOPK_CLONES static double N_(squares)(int64_t n, const EL *a) {
    double sum[8] = {0};
    int64_t j = 0;
    for (; j + 8 <= n; j += 8)
        for (int l = 0; l < 8; l++) sum[l] += SQUARE(a[j + l]);
    for (; j < n; j++) sum[0] += SQUARE(a[j]);
    return sum[0] + sum[1] + sum[2] + sum[3] + (sum[4] + sum[5] + sum[6] + sum[7]);
}

/* The rows of B as far as the antidiagonal; own: and the diagonal; of a Hankel matrix from the
 * last row up. */
static void N_(rows)(const lop_mat *b, const lopk_toep_inverse *t, bool own, void *room) {
    const int64_t n = b->m, size = (int64_t)lop_dtype_size(b->dt);
    EL *x = room, *y = x + n, *from_x = y + n, *from_y = from_x + n, *sums = from_y + n;
    double _Complex first = 1;
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = t->hankel ? n - 1 - i : i;
        const double _Complex xi = lop_get(t->x->dt, t->x->p, at * t->x->rs);
        if (i == 0) first = xi;
        x[i] = N_(of)(i == 0 && own ? creal(xi) : xi);
        from_x[n - 1 - i] = x[i];
        y[i] = N_(of)(lop_get(t->y->dt, t->y->p, at * t->y->rs));
    }
    for (int64_t i = 0; own && i < n; i++) y[i] = N_(conj)(from_x[i]); /* J T J = conj(T) */
    for (int64_t i = 0; i < n; i++) from_y[n - 1 - i] = y[i];
    for (int64_t i = 0; i < n; i++) {
        const int64_t all = n - i, count = own && i + 1 < all ? i + 1 : all;
        EL *now = sums + (n - 1 - i); /* of diagonal j - i at j */
        if (i == 0)
            memcpy(now, from_y, (size_t)n * sizeof(EL));
        else
            N_(grow)(count - 1, now + 1, N_(of)(N_(number)(x[i]) / first), from_y + 1,
                     N_(of)(N_(number)(y[i - 1]) / first), from_x);
        now[0] = x[i];
#if FAM == FAM_C
        if (own && i < count) now[i].im = 0;
#endif
        const int64_t row = t->hankel ? n - 1 - i : i;
        const lop_mat to = {(char *)b->p + row * b->rs * size, 1, count, b->cs, b->cs, b->dt},
                      from = {now, 1, count, 1, 1, LOPK_CAT(LOP_, DT)};
        lopk_copy(&to, &from);
    }
}

/* The numbers of T, of the diagonals from the lowest; of a Hankel matrix h itself. Its norm from
 * below: that of its first and last columns, and of what it makes of ones. */
static double N_(whole)(const lopk_toep_inverse *t, int64_t n, EL *s) {
    for (int64_t k = 0; k < 2 * n - 1; k++) {
        const lop_mat *from = t->hankel || k >= n - 1 ? t->c : t->r;
        const int64_t i = t->hankel ? k : k >= n - 1 ? k - (n - 1) : n - 1 - k;
        s[k] = i < from->m ? N_(of)(lop_get(from->dt, from->p, i * from->rs)) : N_(zero)();
    }
    EL sum = N_(zero)();
    double ones = 0;
    for (int64_t k = 0; k < 2 * n - 1; k++) {
        sum = N_(add)(sum, s[k]);
        if (k >= n) sum = N_(sub)(sum, s[k - n]);
        if (k >= n - 1) ones += SQUARE(sum);
    }
    return sqrt(fmax(ones / (double)n, fmax(N_(squares)(n, s), N_(squares)(n, s + n - 1))));
}

static bool N_(believed)(const lop_mat *b, const lopk_toep_inverse *t, void *room) {
    const int64_t n = b->m, size = (int64_t)lop_dtype_size(b->dt);
    EL *v = room, *row = v + n, *w = row + n, *s = w + n;
    const double norm = N_(whole)(t, n, s);
    uint64_t seed = 0x9e3779b97f4a7c15u;
    for (int64_t j = 0; j < n; j++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        v[j] = N_(of)(seed >> 63 ? 1 : -1);
    }
    double least = INFINITY, left = 0;
    for (int64_t i = 0; i < n; i++) {
        const lop_mat from = {(char *)b->p + i * b->rs * size, 1, n, b->cs, b->cs, b->dt},
                      to = {row, 1, n, 1, 1, LOPK_CAT(LOP_, DT)};
        lopk_copy(&to, &from);
        const double all = N_(squares)(n, row);
        if (!(all >= 0 && all < INFINITY)) return false;
        least = fmin(least, all);
        w[t->hankel ? i : n - 1 - i] = N_(dot)(n, row, v); /* turned round as T's rows lie */
    }
    for (int64_t i = 0; i < n; i++) left += SQUARE(N_(sub)(N_(dot)(n, s + i, w), v[i]));
    if (!isfinite(norm)) return false; /* it would believe anything */
    return sqrt(left) <= 5 * (double)n * lopk_eps(b->dt) * (norm * sqrt(least) + 1);
}
#undef SQUARE
#endif
