/* k_toeplitz_per_dtype.h: the tile of k_toeplitz.c for one dtype. */
#if FAM == FAM_F || FAM == FAM_C
#define CLONED LOPK_CLONES
#else
#define CLONED
#endif

/* y[i] += sum_j t[i - j + q - 1] x[j], i < p, j < q: t points at p + q - 1 entries. p comes rounded
 * up to a multiple of PAD (the mask tells the compiler), so that there are no remainder loops. */
#if FAM == FAM_C
/* Parts apart, so that the loops are real ones. */
CLONED static void N_(tile)(int64_t p, int64_t q, R *restrict y, const R *restrict t,
                            const R *restrict x) {
    p &= ~(int64_t)(PAD - 1);
    R *restrict yr = y, *restrict yi = y + TILE;
    const R *restrict tr = t, *restrict ti = t + 2 * TILE;
    int64_t j = 0;
    for (; j + 2 <= q; j += 2) {
        const R a = x[j], b = x[TILE + j], c = x[j + 1], d = x[TILE + j + 1];
        const R *ur = tr + (q - 1 - j), *ui = ti + (q - 1 - j);
        for (int64_t i = 0; i < p; i++) {
            yr[i] += (ur[i] * a - ui[i] * b) + (ur[i - 1] * c - ui[i - 1] * d);
            yi[i] += (ur[i] * b + ui[i] * a) + (ur[i - 1] * d + ui[i - 1] * c);
        }
    }
    for (; j < q; j++) {
        const R a = x[j], b = x[TILE + j];
        const R *ur = tr + (q - 1 - j), *ui = ti + (q - 1 - j);
        for (int64_t i = 0; i < p; i++) {
            yr[i] += ur[i] * a - ui[i] * b;
            yi[i] += ur[i] * b + ui[i] * a;
        }
    }
}
#else
CLONED static void N_(tile)(int64_t p, int64_t q, EL *restrict y, const EL *restrict t,
                            const EL *restrict x) {
    p &= ~(int64_t)(PAD - 1);
    int64_t j = 0;
    for (; j + 8 <= q; j += 8) {
        const EL x0 = x[j], x1 = x[j + 1], x2 = x[j + 2], x3 = x[j + 3];
        const EL x4 = x[j + 4], x5 = x[j + 5], x6 = x[j + 6], x7 = x[j + 7];
        const EL *u = t + (q - 8 - j);
        for (int64_t i = 0; i < p; i++) {
            EL v = N_(add)(N_(mul)(u[i + 7], x0), N_(mul)(u[i + 6], x1));
            EL w = N_(add)(N_(mul)(u[i + 5], x2), N_(mul)(u[i + 4], x3));
            EL s = N_(add)(N_(mul)(u[i + 3], x4), N_(mul)(u[i + 2], x5));
            EL r = N_(add)(N_(mul)(u[i + 1], x6), N_(mul)(u[i], x7));
            y[i] = N_(add)(y[i], N_(add)(N_(add)(v, w), N_(add)(s, r)));
        }
    }
    for (; j < q; j++) {
        const EL x0 = x[j];
        const EL *u = t + (q - 1 - j);
        for (int64_t i = 0; i < p; i++) y[i] = N_(add)(y[i], N_(mul)(u[i], x0));
    }
}
#endif

/* t[e] <- entry of diagonal d0 + e, e < len, of op(T). */
static void N_(diagonals)(const toeplitz_args *g, int64_t d0, int64_t len, void *buffer) {
    const EL *c = g->c, *r = g->r;
    int64_t e = 0;
#if FAM == FAM_C
    R *t = buffer;
    const R sign = g->conj ? (R)-1 : (R)1;
#define PUT(v) (t[e] = (v).re, t[2 * TILE + e] = sign * (v).im)
#else
    EL *t = buffer;
#define PUT(v) (t[e] = (v))
#endif
    for (; e < len && d0 + e < g->split; e++) PUT(r[-(d0 + e) * g->rs]);
    for (; e < len; e++) PUT(c[(d0 + e) * g->cs]);
    const EL none = N_(zero)();
    for (; e < len + PAD && e < 2 * TILE; e++) PUT(none);
#undef PUT
}

static void N_(toeplitz)(const lop_mat *y, const toeplitz_args *g, const lop_mat *x) {
#if FAM == FAM_C
    R t[4 * TILE], xs[2 * TILE], ys[2 * TILE];
#else
    EL t[2 * TILE], xs[TILE], ys[TILE];
#endif
    for (int64_t i0 = 0; i0 < y->m; i0 += TILE) {
        const int64_t p = y->m - i0 < TILE ? y->m - i0 : TILE;
        for (int64_t k = 0; k < y->n; k++) {
            EL *out = (EL *)y->p + i0 * y->rs + k * y->cs;
            memset(ys, 0, sizeof ys);
            for (int64_t j0 = 0; j0 < x->m; j0 += TILE) {
                const int64_t q = x->m - j0 < TILE ? x->m - j0 : TILE;
                const EL *in = (const EL *)x->p + j0 * x->rs + k * x->cs;
                N_(diagonals)(g, i0 - j0 - (q - 1), p + q - 1, t);
#if FAM == FAM_C
                for (int64_t j = 0; j < q; j++) {
                    xs[j] = in[j * x->rs].re;
                    xs[TILE + j] = in[j * x->rs].im;
                }
#else
                for (int64_t j = 0; j < q; j++) xs[j] = in[j * x->rs];
#endif
                N_(tile)((p + PAD - 1) & ~(int64_t)(PAD - 1), q, ys, t, xs);
            }
#if FAM == FAM_C
            for (int64_t i = 0; i < p; i++) out[i * y->rs] = (EL){ys[i], ys[TILE + i]};
#else
            for (int64_t i = 0; i < p; i++) out[i * y->rs] = ys[i];
#endif
        }
    }
}
#undef CLONED
