/* k_quasi_per_dtype.h: products of k_quasi.c for one dtype: EL, N_, WIDE (columns at once)
 * and CJ(c, v), v or its conjugate. */

/* s holds J x kb states; t as many more. s <- mode(a_i) s. */
static ALWAYS void N_(move)(const EL *a, int64_t J, bool full, int kb, bool trans, bool flip,
                            EL *restrict s, EL *restrict t) {
    if (!full) {
        for (int64_t j = 0; j < J; j++) {
            const EL aj = CJ(flip, a[j]);
            for (int c = 0; c < kb; c++) s[j * kb + c] *= aj;
        }
        return;
    }
    for (int64_t j = 0; j < J; j++) {
        for (int c = 0; c < kb; c++) t[j * kb + c] = 0;
        for (int64_t l = 0; l < J; l++) {
            const EL v = CJ(flip, trans ? a[l * J + j] : a[j * J + l]);
            for (int c = 0; c < kb; c++) t[j * kb + c] += v * s[l * kb + c];
        }
    }
    for (int64_t j = 0; j < J * kb; j++) s[j] = t[j];
}

/* y += the strictly lower part of A times x (trans: its transpose), kb columns; d: += D x before.
 */
static ALWAYS void N_(pass)(const lopk_quasi *g, const int kb, bool trans, bool flip, bool first,
                            char *yp, const lop_mat *y, const char *xp, const lop_mat *x, EL *s) {
    const EL *from = trans ? g->q : g->p, *to = trans ? g->p : g->q, *a = g->a, *d = g->d;
    const int64_t n = g->n, J = g->J;
    const bool full = g->full;
    const int64_t step = full ? J * J : J;
    EL *t = s + J * kb;
    for (int64_t j = 0; j < J * kb; j++) s[j] = 0;
    for (int64_t o = 0; o < n; o++) {
        const int64_t i = trans ? n - 1 - o : o;
        EL *yi = (EL *)yp + i * y->rs, xi[8], sum[8];
        const EL *xr = (const EL *)xp + i * x->rs;
        for (int c = 0; c < kb; c++) xi[c] = xr[c * x->cs];
        if (first) {
            const EL di = g->tri ? CJ(flip, d[i]) : RE(d[i]);
            for (int c = 0; c < kb; c++) sum[c] = di * xi[c];
        } else {
            for (int c = 0; c < kb; c++) sum[c] = yi[c * y->cs];
        }
        for (int64_t j = 0; o > 0 && j < J; j++) {
            const EL f = CJ(flip, from[i * J + j]);
            for (int c = 0; c < kb; c++) sum[c] += f * s[j * kb + c];
        }
        for (int c = 0; c < kb; c++) yi[c * y->cs] = sum[c];
        if (o == n - 1) break;
        if (o > 0) N_(move)(a + i * step, J, full, kb, trans, flip, s, t);
        for (int64_t j = 0; j < J; j++) {
            const EL f = CJ(flip, to[i * J + j]);
            for (int c = 0; c < kb; c++) s[j * kb + c] += f * xi[c];
        }
    }
}

LOPK_CLONES_SHORT static void N_(pass_any)(const lopk_quasi *g, int kb, bool trans, bool flip,
                                           bool first, char *yp, const lop_mat *y, const char *xp,
                                           const lop_mat *x, EL *s) {
    if (kb == WIDE)
        N_(pass)(g, WIDE, trans, flip, first, yp, y, xp, x, s);
    else
        N_(pass)(g, 1, trans, flip, first, yp, y, xp, x, s);
}

static void N_(mm)(const lop_mat *y, const lopk_quasi *g, int mode, const lop_mat *x, void *s) {
    const lopk_quasi_sweeps by = lopk_quasi_sweeps_of(g, mode);
    const bool few = lopk_quasi_is_few(g), rows = y->cs == 1 && x->cs == 1;
    for (int64_t j = 0, kb; j < y->n; j += kb) {
        char *yp = (char *)y->p + j * y->cs * (int64_t)sizeof(EL);
        const char *xp = (const char *)x->p + j * x->cs * (int64_t)sizeof(EL);
        kb = at_once(g, WIDE, y->n - j);
        if (few && (rows || kb == 1)) {
            lopk_quasi_few_product(g, (int)kb, mode, yp, y->rs, xp, x->rs);
            continue;
        }
        if (by.lower) N_(pass_any)(g, (int)kb, false, by.flip_lower, true, yp, y, xp, x, s);
        if (by.upper) N_(pass_any)(g, (int)kb, true, by.flip_upper, !by.lower, yp, y, xp, x, s);
    }
}

/* The elements below the diagonal in column j, rows j + 1 to `last`, by `put`; s: 2 J. */
static void N_(dense)(const lop_mat *y, const lopk_quasi *g, void *work) {
    const EL *p = g->p, *q = g->q, *a = g->a, *d = g->d;
    const int64_t n = g->n, J = g->J, step = g->full ? J * J : J;
    EL *s = work, *out = y->p;
    for (int64_t j = 0; j < n; j++) {
        out[j * y->rs + j * y->cs] = g->tri ? d[j] : RE(d[j]);
        for (int64_t l = 0; l < J; l++) s[l] = j < n - 1 ? q[j * J + l] : 0;
        for (int64_t i = j + 1; i < n; i++) {
            EL sum = 0;
            if (i > j + 1) N_(move)(a + (i - 1) * step, J, g->full, 1, false, false, s, s + J);
            for (int64_t l = 0; l < J; l++) sum += p[i * J + l] * s[l];
            out[i * y->rs + j * y->cs] = sum;
            out[j * y->rs + i * y->cs] = g->tri ? 0 : CJ(true, sum);
        }
    }
}

static void N_(diagonal)(const lop_mat *y, const lopk_quasi *g, int64_t k, int64_t from,
                         void *work) {
    const EL *p = g->p, *q = g->q, *a = g->a, *d = g->d;
    const int64_t J = g->J, step = g->full ? J * J : J, off = k < 0 ? -k : k;
    EL *s = work, *out = y->p;
    for (int64_t t = 0; t < y->m; t++) {
        const int64_t j = from + t, i = j + off;
        EL sum = 0;
        if (off == 0) {
            sum = g->tri ? d[j] : RE(d[j]);
        } else if (k < 0 || !g->tri) {
            for (int64_t l = 0; l < J; l++) s[l] = q[j * J + l];
            for (int64_t r = j + 1; r < i; r++)
                N_(move)(a + r * step, J, g->full, 1, false, false, s, s + J);
            for (int64_t l = 0; l < J; l++) sum += p[i * J + l] * s[l];
        }
        out[t * y->rs] = k > 0 ? CJ(true, sum) : sum;
    }
}

/* Transitions into the block at `to` of a J x J, which is zero. */
static void N_(block)(EL *to, int64_t J, int64_t j, bool full, const EL *a) {
    for (int64_t r = 0; r < j; r++) {
        if (!full) to[r * (J + 1)] = a[r];
        for (int64_t c = 0; full && c < j; c++) to[r * J + c] = a[r * j + c];
    }
}
static void N_(kron)(EL *to, int64_t ja, bool fa, const EL *a, int64_t jb, bool fb, const EL *b) {
    for (int64_t r = 0; r < ja; r++)
        for (int64_t c = fa ? 0 : r; c < (fa ? ja : r + 1); c++) {
            const EL v = fa ? a[r * ja + c] : a[r];
            for (int64_t k = 0; k < jb; k++) {
                EL *row = to + (r * jb + k) * ja * jb + c * jb;
                if (!fb) row[k] = v * b[k];
                for (int64_t l = 0; fb && l < jb; l++) row[l] = v * b[k * jb + l];
            }
        }
}

static void N_(join)(const lop_mat *y, int how, int64_t ja, const lop_mat *ma, int64_t jb,
                     const lop_mat *mb) {
    const bool fa = ma->n != ja, fb = mb->n != jb;
    const bool pairs = how == LOPK_QUASI_PAIRS || how == LOPK_QUASI_KRONS;
    const int64_t J = pairs ? ja * jb : ja + jb;
    for (int64_t i = 0; i < y->m; i++) {
        const EL *a = (const EL *)ma->p + i * ma->n, *b = (const EL *)mb->p + i * mb->n;
        EL *to = (EL *)y->p + i * y->rs;
        if (how == LOPK_QUASI_BESIDE) {
            for (int64_t j = 0; j < ja; j++) to[j] = a[j];
            for (int64_t j = 0; j < jb; j++) to[ja + j] = b[j];
            continue;
        }
        if (how == LOPK_QUASI_PAIRS) {
            for (int64_t j = 0; j < ja * jb; j++) to[j] = a[j / jb] * b[j % jb];
            continue;
        }
        for (int64_t j = 0; j < J * J; j++) to[j] = 0;
        if (pairs) {
            N_(kron)(to, ja, fa, a, jb, fb, b);
        } else {
            N_(block)(to, J, ja, fa, a);
            N_(block)(to + ja * (J + 1), J, jb, fb, b);
        }
    }
}
