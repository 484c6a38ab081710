/* k_loops_per_dtype.h: the line loops of k_loops.c for one dtype (see k_elem.h for the macros). A
 * line is n elements at a stride; strides count elements here. The unit-stride branches are what
 * the compiler vectorises; float dtypes are built per x86-64 level (all levels give the same bits:
 * no contraction in -std=c11, fixed order of sums). */
#if FAM == FAM_F || FAM == FAM_C
#define CLONED LOPK_CLONES
#else
#define CLONED
#endif

/* Unit strides; complex products by parts, the form that vectorises. */
#define UNIT(op)                                                                                   \
    static inline __attribute__((always_inline)) void N_(unit_##op)(int64_t n, EL *y, const EL *a, \
                                                                    const EL *b) {                 \
        for (int64_t i = 0; i < n; i++) y[i] = N_(op)(a[i], b[i]);                                 \
    }
#define PARTS(op, sign)                                                                            \
    static inline __attribute__((always_inline)) void N_(unit_##op)(int64_t n, EL *y, const EL *a, \
                                                                    const EL *b) {                 \
        const R *p = &a->re, *q = &b->re;                                                          \
        R *o = &y->re;                                                                             \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const R ar = p[2 * i], ai = sign p[2 * i + 1], br = q[2 * i], bi = q[2 * i + 1];       \
            o[2 * i] = ar * br - ai * bi;                                                          \
            o[2 * i + 1] = ar * bi + ai * br;                                                      \
        }                                                                                          \
    }
UNIT(add)
UNIT(sub)
#if FAM == FAM_C
PARTS(mul, +)
PARTS(mulc, -)
#else
UNIT(mul)
#endif

#define LINE2(op)                                                                                  \
    CLONED static void N_(line_##op)(int64_t n, void *yv, int64_t ys, const void *av, int64_t as,  \
                                     const void *bv, int64_t bs) {                                 \
        EL *y = yv;                                                                                \
        const EL *a = av, *b = bv;                                                                 \
        if (ys == 1 && as == 1 && bs == 1) {                                                       \
            N_(unit_##op)(n, y, a, b);                                                             \
        } else if (ys == 1 && as == 0 && bs == 1) {                                                \
            const EL c = a[0];                                                                     \
            for (int64_t i = 0; i < n; i++) y[i] = N_(op)(c, b[i]);                                \
        } else if (ys == 1 && as == 1 && bs == 0) {                                                \
            const EL c = b[0];                                                                     \
            for (int64_t i = 0; i < n; i++) y[i] = N_(op)(a[i], c);                                \
        } else {                                                                                   \
            for (int64_t i = 0; i < n; i++) y[i * ys] = N_(op)(a[i * as], b[i * bs]);              \
        }                                                                                          \
    }
LINE2(add)
LINE2(sub)
LINE2(mul)
#if FAM == FAM_C
LINE2(mulc)
#endif
#if FAM == FAM_F || FAM == FAM_C
/* a / b; complex by Smith's method, in NumPy's order of operations. */
static inline EL N_(div)(EL a, EL b) {
#if FAM == FAM_F
    return a / b;
#else
    const R re = b.re < 0 ? -b.re : b.re, im = b.im < 0 ? -b.im : b.im;
    if (re == 0 && im == 0) return (EL){a.re / re, a.im / re};
    if (re >= im) {
        const R q = b.im / b.re, s = 1 / (b.re + b.im * q);
        return (EL){(a.re + a.im * q) * s, (a.im - a.re * q) * s};
    }
    const R q = b.re / b.im, s = 1 / (b.im + b.re * q);
    return (EL){(a.re * q + a.im) * s, (a.im * q - a.re) * s};
#endif
}
UNIT(div)
LINE2(div)
#endif
#undef LINE2
#undef UNIT
#undef PARTS

/* Conversions to this dtype from every other. */
#if FAM == FAM_B
#define CONVERT(v) ((EL)((__real__(v) != 0) | (__imag__(v) != 0)))
#elif FAM == FAM_I
#define CONVERT(v)                                                                                 \
    _Generic(__real__(v),                                                                          \
        float: (EL)(N_(trunc)((double)__real__(v))),                                               \
        double: (EL)(N_(trunc)((double)__real__(v))),                                              \
        default: (EL)(__real__(v)))
static inline EL N_(trunc)(double v) {
    if (v != v) return 0;
    if (v <= -0x1p63) return (EL)INT64_MIN;
    if (v < 0x1p63) return (EL)(int64_t)v;
    if ((EL)-1 < (EL)1 || sizeof(EL) < 8) return (EL)INT64_MAX;
    return (EL)(v < 0x1p64 ? (uint64_t)v : UINT64_MAX);
}
#elif FAM == FAM_F
#define CONVERT(v) ((EL)(__real__(v)))
#else
#define CONVERT(v) ((EL){(R)(__real__(v)), (R)(__imag__(v))})
#endif
#define LOP_DTYPE(name, ctype, npname, family, bytes, real)                                        \
    static void LOPK_CAT(N_(cast), LOPK_CAT(_, name))(int64_t n, void *yv, int64_t ys,             \
                                                      const void *xv, int64_t xs) {                \
        EL *y = yv;                                                                                \
        const ctype *x = xv;                                                                       \
        if (ys == 1 && xs == 1) {                                                                  \
            for (int64_t i = 0; i < n; i++) y[i] = CONVERT(x[i]);                                  \
        } else {                                                                                   \
            for (int64_t i = 0; i < n; i++) y[i * ys] = CONVERT(x[i * xs]);                        \
        }                                                                                          \
    }
#include "base/dtype.def"
#undef LOP_DTYPE
#undef CONVERT

static const line1_fn N_(casts)[LOP_NDTYPE] = {
#define LOP_DTYPE(name, ctype, npname, family, bytes, real)                                        \
    [LOP_##name] = LOPK_CAT(N_(cast), LOPK_CAT(_, name)),
#include "base/dtype.def"
#undef LOP_DTYPE
};

#if FAM == FAM_C
static void N_(line_conj)(int64_t n, void *yv, int64_t ys, const void *xv, int64_t xs) {
    EL *y = yv;
    const EL *x = xv;
    for (int64_t i = 0; i < n; i++) y[i * ys] = N_(conj)(x[i * xs]);
}
#endif

CLONED static void N_(line_scale)(int64_t n, void *yv, int64_t ys, const void *xv, int64_t xs,
                                  double _Complex c, int64_t ci) {
    EL *y = yv;
    const EL *x = xv;
#if FAM == FAM_C
    (void)ci;
    const EL e = {(R) __real__ c, (R) __imag__ c};
    if (e.im == 0) {
        for (int64_t i = 0; i < n; i++) y[i * ys] = (EL){e.re * x[i * xs].re, e.re * x[i * xs].im};
        return;
    }
#elif FAM == FAM_F
    (void)ci;
    const EL e = (EL) __real__ c;
#else
    (void)c;
    const EL e = FAM == FAM_B ? (EL)(ci != 0) : (EL)ci;
#endif
    if (ys == 1 && xs == 1) {
        for (int64_t i = 0; i < n; i++) y[i] = N_(mul)(e, x[i]);
    } else {
        for (int64_t i = 0; i < n; i++) y[i * ys] = N_(mul)(e, x[i * xs]);
    }
}

/* Sum of at most BLOCK products or elements in LANES interleaved accumulators, then their tree. */
static inline EL N_(tree)(EL *s) {
    for (int w = LANES / 2; w > 0; w /= 2)
        for (int l = 0; l < w; l++) s[l] = N_(add)(s[l], s[l + w]);
    return s[0];
}

CLONED static void N_(block_sum)(int64_t n, void *out, const void *av, int64_t as) {
    const EL *a = av;
    EL s[LANES];
    for (int l = 0; l < LANES; l++) s[l] = N_(zero)();
    int64_t i = 0;
    if (as == 1) {
        for (; i + LANES <= n; i += LANES)
            for (int l = 0; l < LANES; l++) s[l] = N_(add)(s[l], a[i + l]);
    } else {
        for (; i + LANES <= n; i += LANES)
            for (int l = 0; l < LANES; l++) s[l] = N_(add)(s[l], a[(i + l) * as]);
    }
    for (int l = 0; i < n; i++, l++) s[l] = N_(add)(s[l], a[i * as]);
    *(EL *)out = N_(tree)(s);
}

CLONED static void N_(block_dot)(int64_t n, void *out, const void *av, int64_t as, const void *bv,
                                 int64_t bs) {
    const EL *a = av, *b = bv;
    EL s[LANES];
    for (int l = 0; l < LANES; l++) s[l] = N_(zero)();
    int64_t i = 0;
    if (as == 1 && bs == 1) {
        for (; i + LANES <= n; i += LANES)
            for (int l = 0; l < LANES; l++) s[l] = N_(add)(s[l], N_(mul)(a[i + l], b[i + l]));
    } else {
        for (; i + LANES <= n; i += LANES)
            for (int l = 0; l < LANES; l++)
                s[l] = N_(add)(s[l], N_(mul)(a[(i + l) * as], b[(i + l) * bs]));
    }
    for (int l = 0; i < n; i++, l++) s[l] = N_(add)(s[l], N_(mul)(a[i * as], b[i * bs]));
    *(EL *)out = N_(tree)(s);
}

static void N_(merge)(void *into, const void *with) {
    EL *s = into;
    *s = N_(add)(*(const EL *)with, *s);
}

/* y[j] (+)= sum over l < 4 of s[l] b[l][j]: the inner step of the row and column forms. */
CLONED static void N_(axpy4)(int64_t n, EL *restrict y, const EL *s, const EL *b0, const EL *b1,
                             const EL *b2, const EL *b3) {
    const EL s0 = s[0], s1 = s[1], s2 = s[2], s3 = s[3];
    for (int64_t j = 0; j < n; j++) {
        EL t = N_(add)(N_(mul)(s0, b0[j]), N_(mul)(s1, b1[j]));
        EL u = N_(add)(N_(mul)(s2, b2[j]), N_(mul)(s3, b3[j]));
        y[j] = N_(add)(y[j], N_(add)(t, u));
    }
}
CLONED static void N_(axpy1)(int64_t n, EL *restrict y, EL s, const EL *b) {
    for (int64_t j = 0; j < n; j++) y[j] = N_(add)(y[j], N_(mul)(s, b[j]));
}

/* One unit-stride line of y (length n) += sum_l s[l] * line l of b; s at stride ss, lines bl apart.
 * conj_s, conj_b: conjugate. (conj_b goes the slow way: only complex callers with C layout.) */
static void N_(combine)(int64_t n, int64_t k, EL *y, const EL *s, int64_t ss, bool conj_s,
                        const EL *b, int64_t bl, bool conj_b) {
    int64_t l = 0;
    if (conj_b) {
        for (; l < k; l++)
            for (int64_t j = 0; j < n; j++)
                y[j] = N_(add)(y[j], N_(mulc)(b[l * bl + j], s[l * ss]));
        return;
    }
    for (; l + 4 <= k; l += 4) {
        EL t[4];
        for (int q = 0; q < 4; q++) {
            t[q] = s[(l + q) * ss];
            if (conj_s) t[q] = N_(conj)(t[q]);
        }
        const EL *p = b + l * bl;
        N_(axpy4)(n, y, t, p, p + bl, p + 2 * bl, p + 3 * bl);
    }
    for (; l < k; l++) {
        EL t = s[l * ss];
        N_(axpy1)(n, y, conj_s ? N_(conj)(t) : t, b + l * bl);
    }
}

#if FAM == FAM_I
/* Summed in W: gcc 12 at -O3 vectorises the sum in the narrow type wrongly (int8, int16). */
static EL N_(short_dot)(int64_t k, const EL *a, int64_t as, bool conj_a, const EL *b, int64_t bs) {
    W s = 0;
    (void)conj_a;
    for (int64_t l = 0; l < k; l++) s += (W)a[l * as] * (W)b[l * bs];
    return (EL)s;
}
#else
static EL N_(short_dot)(int64_t k, const EL *a, int64_t as, bool conj_a, const EL *b, int64_t bs) {
    EL s = N_(zero)(), t = s;
    int64_t l = 0;
    if (conj_a) {
        for (; l < k; l++) s = N_(add)(s, N_(mulc)(a[l * as], b[l * bs]));
        return s;
    }
    for (; l + 2 <= k; l += 2) {
        s = N_(add)(s, N_(mul)(a[l * as], b[l * bs]));
        t = N_(add)(t, N_(mul)(a[(l + 1) * as], b[(l + 1) * bs]));
    }
    if (l < k) s = N_(add)(s, N_(mul)(a[l * as], b[l * bs]));
    return N_(add)(s, t);
}
#endif

/* y[i] = sum of a[i, t] b[i, t], of rows of a few elements that lie one after another; every row in
 * one order, however many there are. The rows do not wait for one another. conj_a: of a. */
CLONED static void N_(short_rows)(int64_t m, int64_t k, void *yv, int64_t ys, const void *av,
                                  int64_t as, bool conj_a, const void *bv, int64_t bs) {
    const EL *a = av, *b = bv;
    EL *y = yv;
    for (int64_t i = 0; i < m; i++)
        y[i * ys] = N_(short_dot)(k, a + i * as, 1, conj_a, b + i * bs, 1);
}

static void N_(matmul)(const lop_mat *y, const lop_mat *a, bool conj_a, const lop_mat *b,
                       bool accumulate) {
    const int64_t m = y->m, n = y->n, k = a->n;
    const EL *pa = a->p, *pb = b->p;
    EL *py = y->p;
    conj_a = conj_a && FAM == FAM_C;
    const bool rows = y->cs == 1 && b->cs == 1 && n >= 4;
    const bool cols = y->rs == 1 && a->rs == 1 && m >= 4;
    if ((rows || cols) && !accumulate) lopk_zero(y);
    if (rows) {
        for (int64_t i = 0; i < m; i++)
            N_(combine)(n, k, py + i * y->rs, pa + i * a->rs, a->cs, conj_a, pb, b->rs, false);
    } else if (cols) {
        for (int64_t j = 0; j < n; j++)
            N_(combine)(m, k, py + j * y->cs, pb + j * b->cs, b->rs, false, pa, a->cs, conj_a);
    } else {
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                EL *t = py + i * y->rs + j * y->cs;
                EL s = N_(short_dot)(k, pa + i * a->rs, a->cs, conj_a, pb + j * b->cs, b->rs);
                *t = accumulate ? N_(add)(*t, s) : s;
            }
    }
}
#undef CLONED
