/* k_diagonal_sums_per_dtype.h: sums along diagonals for one dtype; see k_diagonal_sums.c. */

static inline EL N_(read)(const lop_mat *a, int64_t i, int64_t j) {
    return ((const EL *)a->p)[i * a->rs + j * a->cs];
}

LOPK_CLONES static void N_(along)(EL *t, const EL *a, int64_t n) {
    for (int64_t j = 0; j < n; j++) t[j] = N_(add)(t[j], a[j]);
}
LOPK_CLONES static void N_(along_times)(EL *t, const EL *b, EL a, int64_t n) {
    for (int64_t j = 0; j < n; j++) t[j] = N_(add)(t[j], N_(mul)(a, b[j]));
}

/* t[j - i + m - 1] (anti: t[i + j]) += a[i, j], by its lines that lie in one run. */
static void N_(whole)(void *at, bool anti, const lop_mat *a) {
    EL *t = at;
    if (a->cs == 1 || (a->rs != 1 && a->cs <= a->rs)) {
        for (int64_t i = 0; i < a->m; i++) {
            EL *to = t + (anti ? i : a->m - 1 - i);
            if (a->cs == 1)
                N_(along)(to, (const EL *)a->p + i * a->rs, a->n);
            else
                for (int64_t j = 0; j < a->n; j++) to[j] = N_(add)(to[j], N_(read)(a, i, j));
        }
        return;
    }
    for (int64_t j = 0; j < a->n; j++) {
        EL *to = t + (anti ? j : j + a->m - 1);
        if (anti && a->rs == 1)
            N_(along)(to, (const EL *)a->p + j * a->cs, a->m);
        else
            for (int64_t i = 0; i < a->m; i++) {
                EL *one = anti ? to + i : to - i;
                *one = N_(add)(*one, N_(read)(a, i, j));
            }
    }
}

/* The same of the product of a column and a row, which lie in one run each. */
static void N_(outer)(void *at, bool anti, int64_t m, int64_t n, const void *column,
                      const void *row) {
    EL *t = at;
    const EL *a = column, *b = row;
    if (n >= m)
        for (int64_t i = 0; i < m; i++) N_(along_times)(t + (anti ? i : m - 1 - i), b, a[i], n);
    else if (anti)
        for (int64_t j = 0; j < n; j++) N_(along_times)(t + j, a, b[j], m);
    else
        for (int64_t i = 0; i < m; i++) {
            EL *to = t + m - 1 - i;
            for (int64_t j = 0; j < n; j++) to[j] = N_(add)(to[j], N_(mul)(a[i], b[j]));
        }
}

/* y <- what was asked for. */
static void N_(deliver)(const lop_mat *y, lopk_lines how, int64_t m, int64_t n, const void *at) {
    const EL *t = at;
    EL *to = y->p;
    const int64_t all = m > 0 && n > 0 ? m + n - 1 : 0;
    for (int64_t p = 0; p < y->m; p++) {
        int64_t one = how.anti || how.flip ? p : y->m - 1 - p, two = -1;
        if (how.circular) {
            one = how.anti ? p : how.flip ? n - 1 + p : n - 1 - p;
            two = how.anti ? p + n : p == 0 ? -1 : how.flip ? p - 1 : 2 * n - 1 - p;
        }
        EL sum = one < all ? t[one] : N_(zero)();
        if (two >= 0 && two < all) sum = N_(add)(sum, t[two]);
        to[p * y->rs] = sum;
    }
}

/* s (+)= a b element by element: spectra. */
static void N_(times)(void *s, const void *a, const void *b, int64_t count, bool first) {
    EL *to = s;
    const EL *x = a, *y = b;
    for (int64_t i = 0; i < count; i++) {
        const EL one = N_(mul)(x[i], y[i]);
        to[i] = first ? one : N_(add)(to[i], one);
    }
}

static inline EL N_(many)(int64_t n, EL a) {
#if FAM == FAM_C
    return (EL){(R)n * a.re, (R)n * a.im};
#else
    return (E)n * a;
#endif
}

/* Each number as often as it stands on its diagonal. */
static void N_(constant)(void *at, int64_t m, int64_t n, const lop_mat *c, const lop_mat *r) {
    EL *t = at;
    for (int64_t l = 0; l < m; l++)
        t[m - 1 - l] = N_(many)(m - l < n ? m - l : n, N_(read)(c, l, 0));
    for (int64_t l = 1; l < n; l++)
        t[m - 1 + l] = N_(many)(n - l < m ? n - l : m, N_(read)(r, l, 0));
}

static inline EL N_(over)(EL a, EL b) {
    const double _Complex q =
#if FAM == FAM_C
        CMPLX((double)a.re, (double)a.im) / CMPLX((double)b.re, (double)b.im);
    return (EL){(R)creal(q), (R)cimag(q)};
#else
        (double)a / (double)b;
    return (E)creal(q);
#endif
}

/* a (two columns) <- x / first, -S w / first. With `turned` x and w come in reversed order. */
static void N_(columns)(EL *a, int64_t n, const lop_mat *x, const lop_mat *w, EL first,
                        bool turned) {
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = turned ? n - 1 - i : i, before = turned ? at + 1 : at - 1;
        a[i] = N_(over)(N_(read)(x, at, 0), first);
        a[n + i] = i ? N_(sub)(N_(zero)(), N_(over)(N_(read)(w, before, 0), first)) : N_(zero)();
    }
}
/* b (two rows) <- J w, S J x. */
static void N_(rows)(EL *b, int64_t n, const lop_mat *x, const lop_mat *w, bool turned) {
    for (int64_t i = 0; i < n; i++) {
        b[i] = N_(read)(w, turned ? i : n - 1 - i, 0);
        b[n + i] = i ? N_(read)(x, turned ? i - 1 : n - i, 0) : N_(zero)();
    }
}
/* Columns of a and rows of b: T^-1 is the sum of the products of the triangles of column k and row
 * k. With dx and dw, two more of each: of what it grows by where x and w grow by these. */
static void N_(gohberg)(void *left, void *right, int64_t n, const lop_mat *const *x, bool turned) {
    EL *a = left, *b = right;
    const int64_t at = turned ? n - 1 : 0;
    const EL first = N_(read)(x[0], at, 0);
    if (!x[2]) {
        N_(columns)(a, n, x[0], x[1], first, turned);
        N_(rows)(b, n, x[0], x[1], turned);
        return;
    }
    const EL by = N_(over)(N_(read)(x[2], at, 0), first);
    N_(columns)(a, n, x[2], x[3], first, turned);
    N_(columns)(a + 2 * n, n, x[0], x[1], first, turned);
    for (int64_t i = 0; i < 2 * n; i++) a[i] = N_(sub)(a[i], N_(mul)(by, a[2 * n + i]));
    N_(rows)(b, n, x[0], x[1], turned);
    N_(rows)(b + 2 * n, n, x[2], x[3], turned);
}
/* All lines of a times n - i. */
static void N_(weigh)(void *at, int64_t n, int64_t lines) {
    EL *a = at;
    for (int64_t k = 0; k < lines; k++)
        for (int64_t i = 0; i < n; i++) a[k * n + i] = N_(many)(n - i, a[k * n + i]);
}
