/* k_vectors_per_dtype.h: the loops of k_vectors.c for one dtype. k == 1 is a line; else `w` columns
 * of k, from the first of the tile on. */
#if FAM == FAM_F
#define RE(v) ((double)(v))
#define COEF(a) ((EL)creal(a))
#define TIMES(c, v) N_(mul)((c), (v))
#else
#define RE(v) ((double)(v).re)
#define IM(v) ((double)(v).im)
#define COEF(a) ((EL){(R)creal(a), (R)cimag(a)})
#define TIMES(c, v) N_(mul)((c), (v))
#endif

LOPK_CLONES static void N_(dot_line)(int64_t n, const EL *x, const EL *y, double *re, double *im) {
    *re = *im = 0;
    for (int64_t begin = 0; begin < n; begin += BLOCK) {
        const int64_t end = n - begin < BLOCK ? n : begin + BLOCK;
        double s[ACC] = {0}, tail = 0;
        int64_t i = begin;
#if FAM == FAM_F
        for (; i + ACC <= end; i += ACC)
            for (int l = 0; l < ACC; l++) s[l] += RE(x[i + l]) * RE(y[i + l]);
        for (; i < end; i++) tail += RE(x[i]) * RE(y[i]);
#else
        double t[ACC] = {0};
        for (; i + ACC <= end; i += ACC)
            for (int l = 0; l < ACC; l++) {
                s[l] += RE(x[i + l]) * RE(y[i + l]) + IM(x[i + l]) * IM(y[i + l]);
                t[l] += RE(x[i + l]) * IM(y[i + l]) - IM(x[i + l]) * RE(y[i + l]);
            }
        for (; i < end; i++) {
            tail += RE(x[i]) * RE(y[i]) + IM(x[i]) * IM(y[i]);
            *im += RE(x[i]) * IM(y[i]) - IM(x[i]) * RE(y[i]);
        }
        *im += fold(t);
#endif
        *re += fold(s) + tail;
    }
}

LOPK_CLONES static void N_(dot_tile)(int64_t n, int64_t k, int w, const EL *x, const EL *y,
                                     double *re, double *im) {
    for (int c = 0; c < ACC; c++) re[c] = im[c] = 0;
    for (int64_t begin = 0; begin < n; begin += BLOCK) {
        const int64_t end = n - begin < BLOCK ? n : begin + BLOCK;
        double s[ACC] = {0}, t[ACC] = {0};
        for (int64_t i = begin; i < end; i++)
            for (int c = 0; c < w; c++) {
#if FAM == FAM_F
                s[c] += RE(x[i * k + c]) * RE(y[i * k + c]);
#else
                const EL a = x[i * k + c], b = y[i * k + c];
                s[c] += RE(a) * RE(b) + IM(a) * IM(b);
                t[c] += RE(a) * IM(b) - IM(a) * RE(b);
#endif
            }
        for (int c = 0; c < w; c++) {
            re[c] += s[c];
            im[c] += t[c];
        }
    }
}

static void N_(dot)(int64_t n, int64_t k, int w, const void *x, const void *y, double *re,
                    double *im) {
    if (k == 1)
        N_(dot_line)(n, x, y, re, im);
    else
        N_(dot_tile)(n, k, w, x, y, re, im);
}

/* For each element of the tile: `body` with the row i, the column c, its place e. */
#define EACH(body)                                                                                 \
    if (k == 1) {                                                                                  \
        const int c = 0;                                                                           \
        for (int64_t e = 0; e < n; e++) {                                                          \
            body;                                                                                  \
        }                                                                                          \
    } else {                                                                                       \
        for (int64_t i = 0; i < n; i++)                                                            \
            for (int c = 0; c < w; c++) {                                                          \
                const int64_t e = i * k + c;                                                       \
                body;                                                                              \
            }                                                                                      \
    }
#define COEFS(a)                                                                                   \
    EL f[ACC];                                                                                     \
    for (int l = 0; l < w; l++) f[l] = COEF((a)[l])

LOPK_CLONES static void N_(axpy)(int64_t n, int64_t k, int w, const double _Complex *a,
                                 const void *x_, void *y_) {
    const EL *restrict x = x_;
    EL *restrict y = y_;
    COEFS(a);
    EACH(y[e] = N_(add)(y[e], TIMES(f[c], x[e])));
}

LOPK_CLONES static void N_(xpby)(int64_t n, int64_t k, int w, const void *x_,
                                 const double _Complex *b, void *y_) {
    const EL *restrict x = x_;
    EL *restrict y = y_;
    COEFS(b);
    EACH(y[e] = N_(add)(x[e], TIMES(f[c], y[e])));
}

LOPK_CLONES static void N_(scale)(int64_t n, int64_t k, int w, const double _Complex *a,
                                  const void *x_, void *y_) {
    const EL *x = x_;
    EL *y = y_;
    COEFS(a);
    EACH(y[e] = TIMES(f[c], x[e]));
}

#if FAM == FAM_F
#define SQUARE(v) (RE(v) * RE(v))
#else
#define SQUARE(v) (RE(v) * RE(v) + IM(v) * IM(v))
#endif

LOPK_CLONES static void N_(step_line)(int64_t n, EL f, const EL *restrict p, const EL *restrict q,
                                      EL *restrict x, EL *restrict r, double *rr) {
    *rr = 0;
    for (int64_t begin = 0; begin < n; begin += BLOCK) {
        const int64_t end = n - begin < BLOCK ? n : begin + BLOCK;
        double s[ACC] = {0}, tail = 0;
        int64_t i = begin;
        for (; i + ACC <= end; i += ACC)
            for (int l = 0; l < ACC; l++) {
                x[i + l] = N_(add)(x[i + l], TIMES(f, p[i + l]));
                const EL v = N_(sub)(r[i + l], TIMES(f, q[i + l]));
                r[i + l] = v;
                s[l] += SQUARE(v);
            }
        for (; i < end; i++) {
            x[i] = N_(add)(x[i], TIMES(f, p[i]));
            const EL v = N_(sub)(r[i], TIMES(f, q[i]));
            r[i] = v;
            tail += SQUARE(v);
        }
        *rr += fold(s) + tail;
    }
}

LOPK_CLONES static void N_(step_tile)(int64_t n, int64_t k, int w, const EL *f,
                                      const EL *restrict p, const EL *restrict q, EL *restrict x,
                                      EL *restrict r, double *rr) {
    for (int c = 0; c < w; c++) rr[c] = 0;
    for (int64_t begin = 0; begin < n; begin += BLOCK) {
        const int64_t end = n - begin < BLOCK ? n : begin + BLOCK;
        double s[ACC] = {0};
        for (int64_t i = begin; i < end; i++)
            for (int c = 0; c < w; c++) {
                const int64_t e = i * k + c;
                x[e] = N_(add)(x[e], TIMES(f[c], p[e]));
                const EL v = N_(sub)(r[e], TIMES(f[c], q[e]));
                r[e] = v;
                s[c] += SQUARE(v);
            }
        for (int c = 0; c < w; c++) rr[c] += s[c];
    }
}

static void N_(step)(int64_t n, int64_t k, int w, const double _Complex *a, const void *p,
                     const void *q, void *x, void *r, double *rr) {
    COEFS(a);
    if (k == 1)
        N_(step_line)(n, f[0], p, q, x, r, rr);
    else
        N_(step_tile)(n, k, w, f, p, q, x, r, rr);
}

LOPK_CLONES static double N_(lsmr)(int64_t n, const double *abc, const void *v_, void *h_,
                                   void *hbar_, void *x_) {
    const EL *restrict v = v_;
    EL *restrict h = h_, *restrict hbar = hbar_, *restrict x = x_;
    const EL a = COEF(abc[0]), b = COEF(abc[1]), c = COEF(abc[2]);
    double sum = 0;
    for (int64_t begin = 0; begin < n; begin += BLOCK) {
        const int64_t end = n - begin < BLOCK ? n : begin + BLOCK;
        double s[ACC] = {0}, tail = 0;
        int64_t i = begin;
        for (; i + ACC <= end; i += ACC)
            for (int l = 0; l < ACC; l++) {
                const EL g = N_(add)(h[i + l], TIMES(a, hbar[i + l]));
                const EL y = N_(add)(x[i + l], TIMES(b, g));
                hbar[i + l] = g;
                x[i + l] = y;
                h[i + l] = N_(add)(v[i + l], TIMES(c, h[i + l]));
                s[l] += SQUARE(y);
            }
        for (; i < end; i++) {
            const EL g = N_(add)(h[i], TIMES(a, hbar[i]));
            hbar[i] = g;
            x[i] = N_(add)(x[i], TIMES(b, g));
            h[i] = N_(add)(v[i], TIMES(c, h[i]));
            tail += SQUARE(x[i]);
        }
        sum += fold(s) + tail;
    }
    return sum;
}

LOPK_CLONES static void N_(minres_line)(int64_t n, const EL *f, const EL *restrict v,
                                        const EL *restrict w1, const EL *restrict w2,
                                        EL *restrict w, EL *restrict x, double *xx) {
    *xx = 0;
    for (int64_t begin = 0; begin < n; begin += BLOCK) {
        const int64_t end = n - begin < BLOCK ? n : begin + BLOCK;
        double s[ACC] = {0};
        for (int64_t i = begin; i < end; i += ACC)
            for (int l = 0; l < ACC && i + l < end; l++) {
                const EL a = N_(add)(TIMES(f[0], v[i + l]), TIMES(f[1], w1[i + l]));
                const EL g = N_(add)(a, TIMES(f[2], w2[i + l]));
                const EL y = N_(add)(x[i + l], TIMES(f[3], g));
                w[i + l] = g;
                x[i + l] = y;
                s[l] += SQUARE(y);
            }
        *xx += fold(s);
    }
}

LOPK_CLONES static void N_(minres_tile)(int64_t n, int64_t k, int wide, const EL *f,
                                        const EL *restrict v, const EL *restrict w1,
                                        const EL *restrict w2, EL *restrict w, EL *restrict x,
                                        double *xx) {
    for (int c = 0; c < wide; c++) xx[c] = 0;
    for (int64_t begin = 0; begin < n; begin += BLOCK) {
        const int64_t end = n - begin < BLOCK ? n : begin + BLOCK;
        double s[ACC] = {0};
        for (int64_t i = begin; i < end; i++)
            for (int c = 0; c < wide; c++) {
                const int64_t e = i * k + c;
                const EL a = N_(add)(TIMES(f[c], v[e]), TIMES(f[ACC + c], w1[e]));
                const EL g = N_(add)(a, TIMES(f[2 * ACC + c], w2[e]));
                const EL y = N_(add)(x[e], TIMES(f[3 * ACC + c], g));
                w[e] = g;
                x[e] = y;
                s[c] += SQUARE(y);
            }
        for (int c = 0; c < wide; c++) xx[c] += s[c];
    }
}

static void N_(minres)(int64_t n, int64_t k, int wide, const double _Complex *f, const void *v,
                       const void *w1, const void *w2, void *w, void *x, double *xx) {
    EL g[4 * ACC];
    for (int l = 0; l < 4; l++)
        for (int c = 0; c < wide; c++) g[k == 1 ? l : l * ACC + c] = COEF(f[l * k + c]);
    if (k == 1)
        N_(minres_line)(n, g, v, w1, w2, w, x, xx);
    else
        N_(minres_tile)(n, k, wide, g, v, w1, w2, w, x, xx);
}

#undef RE
#undef IM
#undef COEF
#undef TIMES
#undef EACH
#undef COEFS
#undef SQUARE
