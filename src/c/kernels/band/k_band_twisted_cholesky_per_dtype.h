/* k_band_twisted_cholesky_per_dtype.h: definite band elimination from both ends, for one float
 * dtype. See k_band_twisted_cholesky.c. */
#if FAM == FAM_F || FAM == FAM_C

#if FAM == FAM_C
#define REAL_TYPE R
static inline R N_(real)(EL a) { return a.re; }
static inline EL N_(of_real)(R a) { return (EL){a, 0}; }
static inline EL N_(times)(EL a, R r) { return (EL){a.re * r, a.im * r}; }
static inline EL N_(signed)(EL a, R sign) { return (EL){a.re, a.im * sign}; }
#else
#define REAL_TYPE E
static inline EL N_(real)(EL a) { return a; }
static inline EL N_(of_real)(EL a) { return a; }
static inline EL N_(times)(EL a, EL r) { return a * r; }
static inline EL N_(signed)(EL a, EL sign) {
    (void)sign;
    return a;
}
#endif

/* One end's view: element (i + t, i) lies at at[t] + i step[t]; row i of the factor (the pivot's
 * reciprocal, then the multipliers below it) at f + i fs, element i of the right-hand side at b + i
 * bs. */
typedef struct {
    const EL *at[LOPK_TWIST_MAX + 1];
    int64_t step[LOPK_TWIST_MAX + 1], fs, bs;
    REAL_TYPE sign; /* of imaginary parts: a multiplication is cheaper than a branch */
    EL *f, *b;
} N_(side);
#define SIDE N_(side)

ALWAYS EL N_(element)(const SIDE *s, int t, int64_t i) {
    return N_(signed)(s->at[t][i * s->step[t]], s->sign);
}

/* The same matrix and vectors from the other end: element (i + t, i) there is the conjugate of
 * (n - 1 - i, n - 1 - i - t). */
static SIDE N_(turned)(const SIDE *s, int w, int64_t n) {
    SIDE r = *s;
    for (int t = 0; t <= w; t++) {
        r.at[t] += (n - 1 - t) * s->step[t];
        r.step[t] = -s->step[t];
    }
    r.sign = -s->sign;
    r.f += (n - 1) * s->fs;
    r.fs = -s->fs;
    r.b += (n - 1) * s->bs;
    r.bs = -s->bs;
    return r;
}

#define AT(a, b) ((a) * ((a) + 1) / 2 + (b))

/* What is left of the w rows from the first on: the lower half in win, their right-hand sides in z.
 */
typedef struct {
    EL win[LOPK_TWIST_MAX * (LOPK_TWIST_MAX + 1) / 2], z[LOPK_TWIST_MAX];
} N_(state);
#define STATE N_(state)

static void N_(begin_z)(int w, const SIDE *s, EL *z) {
    for (int a = 0; a < w; a++) z[a] = s->b[a * s->bs];
}
static void N_(begin)(int w, const SIDE *s, STATE *v) {
    N_(begin_z)(w, s, v->z);
    for (int a = 0; a < w; a++)
        for (int b = 0; b <= a; b++) v->win[AT(a, b)] = N_(element)(s, a - b, b);
}

/* Row i of the right-hand side with row i of the factor; takes in row i + w unless `last`. */
ALWAYS void N_(forward)(const int w, const SIDE *s, int64_t i, const EL *f, EL *z) {
    const EL top = z[0];
    s->b[i * s->bs] = N_(times)(top, N_(real)(f[0]));
    UNROLL
    for (int t = 1; t < w; t++) z[t - 1] = N_(sub)(z[t], N_(mul)(f[t], top));
    z[w - 1] = N_(sub)(s->b[(i + w) * s->bs], N_(mul)(f[w], top));
}

/* Eliminates row i. False: the pivot is not positive, or its reciprocal not finite. */
ALWAYS bool N_(eliminate)(const int w, const SIDE *s, int64_t i, EL *win, EL *z) {
    EL col[LOPK_TWIST_MAX + 1], l[LOPK_TWIST_MAX + 1], *f = s->f + i * s->fs;
    const REAL_TYPE d = N_(real)(win[0]), r = 1 / d;
    if (!(d > 0) || !(r - r == 0)) return false;
    UNROLL
    for (int t = 1; t < w; t++) col[t] = win[AT(t, 0)];
    col[w] = N_(element)(s, w, i);
    f[0] = l[0] = N_(of_real)(r);
    UNROLL
    for (int t = 1; t <= w; t++) f[t] = l[t] = N_(times)(col[t], r);
    UNROLL
    for (int a = 0; a + 1 < w; a++) {
        UNROLL
        for (int b = 0; b <= a; b++)
            win[AT(a, b)] = N_(sub)(win[AT(a + 1, b + 1)], N_(mulc)(l[b + 1], col[a + 1]));
    }
    UNROLL
    for (int b = 0; b < w; b++) {
        const EL e = N_(element)(s, w - 1 - b, i + 1 + b);
        win[AT(w - 1, b)] = N_(sub)(e, N_(mulc)(l[b + 1], col[w]));
    }
    N_(forward)(w, s, i, l, z);
    return true;
}

/* Row i by the w rows after it, x. */
ALWAYS void N_(back)(const int w, const SIDE *s, int64_t i, EL *x) {
    const EL *f = s->f + i * s->fs;
    EL v = s->b[i * s->bs];
    UNROLL
    for (int t = w; t >= 1; t--) v = N_(sub)(v, N_(mulc)(f[t], x[t - 1]));
    UNROLL
    for (int t = w - 1; t >= 1; t--) x[t] = x[t - 1];
    x[0] = s->b[i * s->bs] = v;
}

/* -- the loops that count, for a constant w: all that is carried from row to row in locals */

ALWAYS int64_t N_(both_down)(const int w, int64_t rows, const SIDE *one, const SIDE *two, STATE *v,
                             STATE *u) {
    const SIDE s = *one, t = *two;
    STATE a = *v, b = *u;
    for (int64_t i = 0; i < rows; i++)
        if (!N_(eliminate)(w, &s, i, a.win, a.z) || !N_(eliminate)(w, &t, i, b.win, b.z)) return i;
    *v = a;
    *u = b;
    return -1;
}
ALWAYS void N_(both_next)(const int w, int64_t rows, const SIDE *one, const SIDE *two, EL *v,
                          EL *u) {
    const SIDE s = *one, t = *two;
    EL a[LOPK_TWIST_MAX], b[LOPK_TWIST_MAX];
    UNROLL
    for (int k = 0; k < w; k++) {
        a[k] = v[k];
        b[k] = u[k];
    }
    for (int64_t i = 0; i < rows; i++) {
        N_(forward)(w, &s, i, s.f + i * s.fs, a);
        N_(forward)(w, &t, i, t.f + i * t.fs, b);
    }
    UNROLL
    for (int k = 0; k < w; k++) {
        v[k] = a[k];
        u[k] = b[k];
    }
}
ALWAYS void N_(both_up)(const int w, int64_t rows, const SIDE *one, const SIDE *two, const EL *x,
                        const EL *y) {
    const SIDE s = *one, t = *two;
    EL a[LOPK_TWIST_MAX], b[LOPK_TWIST_MAX];
    UNROLL
    for (int k = 0; k < w; k++) {
        a[k] = x[k];
        b[k] = y[k];
    }
    for (int64_t i = rows - 1; i >= 0; i--) {
        N_(back)(w, &s, i, a);
        N_(back)(w, &t, i, b);
    }
}

/* One set of loops a width. */
typedef struct {
    int64_t (*down)(int64_t, const SIDE *, const SIDE *, STATE *, STATE *);
    void (*next)(int64_t, const SIDE *, const SIDE *, EL *, EL *);
    void (*up)(int64_t, const SIDE *, const SIDE *, const EL *, const EL *);
} N_(loops);
#define WIDTH(w)                                                                                   \
    static int64_t N_(down##w)(int64_t rows, const SIDE *s, const SIDE *t, STATE *v, STATE *u) {   \
        return N_(both_down)(w, rows, s, t, v, u);                                                 \
    }                                                                                              \
    static void N_(next##w)(int64_t rows, const SIDE *s, const SIDE *t, EL *v, EL *u) {            \
        N_(both_next)(w, rows, s, t, v, u);                                                        \
    }                                                                                              \
    static void N_(up##w)(int64_t rows, const SIDE *s, const SIDE *t, const EL *x, const EL *y) {  \
        N_(both_up)(w, rows, s, t, x, y);                                                          \
    }
WIDTH(1)
WIDTH(2)
WIDTH(3)
WIDTH(4)
WIDTH(5)
WIDTH(6)
#undef WIDTH
#define LOOPS(w) {N_(down##w), N_(next##w), N_(up##w)}
static const N_(loops)
    N_(loops_of)[LOPK_TWIST_MAX] = {LOOPS(1), LOOPS(2), LOOPS(3), LOOPS(4), LOOPS(5), LOOPS(6)};
#undef LOOPS

/* -- the middle, and wider bands: L D L^H from one end; column j of L, from its diagonal on (1 / D
 * there) */

static int64_t N_(band_factor)(int64_t n, int64_t w, EL *f) {
    for (int64_t j = 0; j < n; j++) {
        EL *c = f + j * (w + 1);
        const int64_t below = w < n - 1 - j ? w : n - 1 - j;
        const REAL_TYPE d = N_(real)(c[0]), r = 1 / d;
        if (!(d > 0) || !(r - r == 0)) return j;
        for (int64_t s = 1; s <= below; s++) {
            const EL l = N_(times)(N_(conj)(c[s]), r);
            EL *to = c + s * (w + 1) - s;
            for (int64_t t = s; t <= below; t++) to[t] = N_(sub)(to[t], N_(mul)(l, c[t]));
        }
        for (int64_t t = 1; t <= below; t++) c[t] = N_(times)(c[t], r);
        c[0] = N_(of_real)(r);
    }
    return -1;
}
static void N_(band_column)(int64_t n, int64_t w, const EL *f, EL *b, int64_t bs) {
    for (int64_t j = 0; j < n; j++) {
        const EL *c = f + j * (w + 1), z = b[j * bs];
        const int64_t below = w < n - 1 - j ? w : n - 1 - j;
        for (int64_t t = 1; t <= below; t++)
            b[(j + t) * bs] = N_(sub)(b[(j + t) * bs], N_(mul)(c[t], z));
    }
    for (int64_t j = n - 1; j >= 0; j--) {
        const EL *c = f + j * (w + 1);
        const int64_t below = w < n - 1 - j ? w : n - 1 - j;
        EL x = N_(times)(b[j * bs], N_(real)(c[0]));
        for (int64_t t = 1; t <= below; t++) x = N_(sub)(x, N_(mulc)(c[t], b[(j + t) * bs]));
        b[j * bs] = x;
    }
}
/* -- where the ends meet: the low + w rows from either end on, n - 2 low of them, w or w + 1 */

typedef struct {
    int w;
    int64_t low, mid;
    SIDE s, t;
} N_(twisted);
#define TWISTED N_(twisted)

/* What both have left of the rows between: (A - top's) + (A - bottom's) - A. */
static int64_t N_(middle)(const TWISTED *g, const EL *top, const EL *bottom) {
    const int w = g->w;
    EL *f = g->s.f + g->low * (w + 1);
    for (int j = 0; j < (int)g->mid; j++)
        for (int t = 0; t <= w; t++) {
            const int i = j + t, k = (int)g->mid - 1 - j;
            EL *to = f + j * (w + 1) + t;
            *to = N_(zero)();
            if (i >= g->mid) continue;
            const EL e = N_(element)(&g->s, t, g->low + j);
            *to = e;
            if (i < w) *to = top[AT(i, j)];
            if (k < w) *to = N_(add)(*to, N_(sub)(N_(conj)(bottom[AT(k, k - t)]), e));
        }
    return N_(band_factor)(g->mid, w, f);
}
/* Likewise of the right-hand side; solves there, then outwards on both sides. */
static void N_(outwards)(const TWISTED *g, const EL *top, const EL *bottom) {
    const int w = g->w;
    const SIDE *s = &g->s, *t = &g->t;
    EL *b = s->b + g->low * s->bs, x[LOPK_TWIST_MAX], y[LOPK_TWIST_MAX];
    for (int j = 0; j < (int)g->mid; j++) {
        const EL e = b[j * s->bs];
        const int k = (int)g->mid - 1 - j;
        if (j < w) b[j * s->bs] = top[j];
        if (k < w) b[j * s->bs] = N_(add)(b[j * s->bs], N_(sub)(bottom[k], e));
    }
    N_(band_column)(g->mid, w, s->f + g->low * (w + 1), b, s->bs);
    for (int a = 0; a < w; a++) {
        x[a] = s->b[(g->low + a) * s->bs];
        y[a] = t->b[(g->low + a) * t->bs];
    }
    N_(loops_of)[w - 1].up(g->low, s, t, x, y);
}

/* The factor, and the first column on the way: its elimination waits for no one. Gives the row (of
 * either end) of a pivot that is not positive, or -1. */
static int64_t N_(first_column)(const TWISTED *g) {
    STATE v, u;
    N_(begin)(g->w, &g->s, &v);
    N_(begin)(g->w, &g->t, &u);
    int64_t where = N_(loops_of)[g->w - 1].down(g->low, &g->s, &g->t, &v, &u);
    if (where >= 0) return where;
    where = N_(middle)(g, v.win, u.win);
    if (where >= 0) return g->low + where;
    N_(outwards)(g, v.z, u.z);
    return -1;
}
static void N_(next_column)(const TWISTED *g) {
    EL z[LOPK_TWIST_MAX], y[LOPK_TWIST_MAX];
    N_(begin_z)(g->w, &g->s, z);
    N_(begin_z)(g->w, &g->t, y);
    N_(loops_of)[g->w - 1].next(g->low, &g->s, &g->t, z, y);
    N_(outwards)(g, z, y);
}

static int64_t N_(twist)(int w, const SIDE *s, const lop_mat *b) {
    TWISTED g = {.w = w, .low = (b->m - w) / 2, .s = *s, .t = N_(turned)(s, w, b->m)};
    g.mid = b->m - 2 * g.low;
    const int64_t where = N_(first_column)(&g);
    for (int64_t c = 1; where < 0 && c < b->n; c++) {
        g.s.b += b->cs;
        g.t.b += b->cs;
        N_(next_column)(&g);
    }
    return where;
}
#undef AT

/* The range of the reciprocals that lie w + 1 apart: positive numbers, two chains of each. */
static void N_(twist_range)(int64_t n, int64_t step, const EL *f, double *least, double *most) {
    REAL_TYPE low[2], high[2];
    low[0] = low[1] = high[0] = high[1] = N_(real)(f[0]);
    for (int64_t i = n % 2; i < n; i += 2)
        for (int l = 0; l < 2; l++) {
            const REAL_TYPE x = N_(real)(f[(i + l) * step]);
            low[l] = x < low[l] ? x : low[l];
            high[l] = x > high[l] ? x : high[l];
        }
    *least = (double)(low[0] < low[1] ? low[0] : low[1]);
    *most = (double)(high[0] > high[1] ? high[0] : high[1]);
}

static int64_t N_(ptsv)(const lop_mat *d, const lop_mat *e, bool conj_e, void *work,
                        const lop_mat *b) {
    const SIDE s = {.at = {d->p, e->p},
                    .step = {d->rs, e->rs},
                    .sign = conj_e ? -1 : 1,
                    .fs = 2,
                    .bs = b->rs,
                    .f = work,
                    .b = b->p};
    return N_(twist)(1, &s, b);
}

static int64_t N_(pbsv)(const lop_mat *ab, bool conj_a, void *work, const lop_mat *b) {
    const int64_t n = b->m, w = ab->m - 1;
    EL *f = work;
    if (w >= 1 && w <= LOPK_TWIST_MAX && n > w) { /* A[j + t, j] is conj(A[j, j + t]) */
        SIDE s = {.fs = w + 1, .bs = b->rs, .sign = conj_a ? 1 : -1, .f = f, .b = b->p};
        for (int64_t t = 0; t <= w; t++) {
            s.at[t] = (const EL *)ab->p + (w - t) * ab->rs + t * ab->cs;
            s.step[t] = ab->cs;
        }
        return N_(twist)((int)w, &s, b);
    }
    for (int64_t j = 0; j < n; j++) /* which lies in column j + t */
        for (int64_t t = 0; t <= w; t++) {
            const EL *e = (const EL *)ab->p + (w - t) * ab->rs + (j + t) * ab->cs;
            f[j * (w + 1) + t] = j + t >= n ? N_(zero)() : conj_a ? *e : N_(conj)(*e);
        }
    const int64_t where = N_(band_factor)(n, w, f);
    for (int64_t c = 0; where < 0 && c < b->n; c++)
        N_(band_column)(n, w, f, (EL *)b->p + c * b->cs, b->rs);
    return where;
}
#undef REAL_TYPE
#undef SIDE
#undef STATE
#undef TWISTED
#endif
