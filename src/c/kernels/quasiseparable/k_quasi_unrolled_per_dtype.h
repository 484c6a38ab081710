/* k_quasi_unrolled_per_dtype.h: the recursion of k_quasi.c for one small number of states,
 * unrolled. Defined before: J, FULL (full transitions), EL, CJ, RE, IM, WIDE (columns at once),
 * K_(name), N_(name), N_(square) and N_(quotient).
 *
 * A likelihood keeps nothing, and is two recursions at once, of the first half of the rows
 * downwards and of the second upwards, each of which waits for a division a row: with A21 = P R
 * between the halves, S = R A11^-1 R^H and f = R A11^-1 b1 at the end of the first, Z = P^H A22^-1
 * P and g = P^H A22^-1 b2 of the second, h = g - Z f, det A = det A11 det A22 det(I - S Z), b^H
 * A^-1 b = b1^H A11^-1 b1 + b2^H A22^-1 b2 - 2 Re f^H g + f^H Z f + h^H (I - S Z)^-1 S h. Upwards,
 * p, q and a are conj(q), conj(p) and a^H. */
#define STEP (FULL ? J * J : J)
#define PACKED (J * (J + 1) / 2)
#define AT(S, i, j)                                                                                \
    ((i) >= (j) ? (S)[(i) * ((i) + 1) / 2 + (j)] : CJ(true, (S)[(j) * ((j) + 1) / 2 + (i)]))
#define EACH(j) UNROLLED for (int j = 0; j < J; j++)

typedef struct K_(chain) {
    EL S[PACKED], f[J]; /* S: the half on and below the diagonal, row by row */
    double quad, mantissa, exponent, least;
} K_(chain);

/* One row more; `up`: of the recursion upwards. False: a pivot that is 0, no number, or (positive)
 * negative. b, D and W: NULL where not asked for. */
static ALWAYS bool K_(step)(K_(chain) * c, const EL di, const EL *p, const EL *q, const EL *a,
                            const bool up, const bool positive, const EL *b, double *D, EL *W) {
    EL v[J], num[J], w[J], moved[J], T[J * J], z = b ? *b : 0;
    double left = RE(di);
    EACH(j) {
        v[j] = 0;
        EACH(l) v[j] += AT(c->S, j, l) * CJ(!up, p[l]);
    }
    EACH(j) {
        left -= RE(CJ(up, p[j]) * v[j]);
        z -= CJ(up, p[j]) * c->f[j];
    }
    if (D) *D = left;
    if (!(left > 0 || (left < 0 && !positive)) || (D && left - left != 0)) return false;
    const double one = 1 / left;
    if (b) {
        c->quad += N_(square)(z) * one;
        c->least = left < c->least * RE(di) ? left / RE(di) : c->least;
        c->mantissa *= left;
        if (!(c->mantissa > 0x1p-500 && c->mantissa < 0x1p500)) {
            int k, l; /* the pivot itself may be as large or small as numbers are */
            c->mantissa = frexp(c->mantissa * one, &k) * frexp(left, &l);
            c->exponent += k + l;
        }
    }
    EACH(j) {
        num[j] = CJ(up, q[j]);
        moved[j] = 0;
        if (FULL) {
            EACH(l) {
                const EL f = up ? CJ(true, a[l * J + j]) : a[j * J + l];
                num[j] -= f * v[l];
                moved[j] += f * c->f[l];
            }
            EACH(l) {
                T[j * J + l] = 0;
                EACH(m) {
                    const EL f = up ? CJ(true, a[m * J + j]) : a[j * J + m];
                    T[j * J + l] += f * AT(c->S, m, l);
                }
            }
        } else {
            num[j] -= CJ(up, a[j]) * v[j];
            moved[j] = CJ(up, a[j]) * c->f[j];
        }
        w[j] = num[j] * one;
        if (W) W[j] = D ? num[j] / left : w[j];
    }
    EACH(j) {
        UNROLLED for (int l = 0; l <= j; l++) {
            EL s = num[j] * CJ(true, w[l]);
            if (FULL) {
                EACH(m) s += T[j * J + m] * (up ? a[m * J + l] : CJ(true, a[l * J + m]));
            } else {
                s += c->S[j * (j + 1) / 2 + l] * (CJ(up, a[j]) * CJ(!up, a[l]));
            }
            c->S[j * (j + 1) / 2 + l] = s;
        }
        c->f[j] = moved[j] + w[j] * z;
    }
    return true;
}

LOPK_CLONES_SHORT static int64_t K_(ldl)(const lopk_quasi *g, bool positive, double *D, EL *W) {
    static const EL zero[J * J]; /* what is not read of the first row */
    const EL *p = g->p, *q = g->q, *a = g->a, *d = g->d;
    const int64_t n = g->n;
    K_(chain) c = {0};
    for (int64_t i = 0; i < n; i++) {
        const bool last = i == n - 1;
        if (!K_(step)(&c, d[i], i ? p + i * J : zero, last ? zero : q + i * J,
                      i && !last ? a + i * STEP : zero, false, positive, NULL, D + i, W + i * J))
            return i;
    }
    return n;
}

/* I - S Z = L U in place by rows with exchanges, y and its right side; false: a pivot that has lost
 * more than six digits. *det: the determinant. */
static bool K_(middle)(EL *M, const double *lost, EL *y, double *det) {
    EL product = 1;
    for (int j = 0; j < J; j++) {
        int best = j;
        for (int i = j + 1; i < J; i++)
            if (N_(square)(M[i * J + j]) > N_(square)(M[best * J + j])) best = i;
        if (best != j) {
            for (int l = 0; l < J; l++) {
                const EL t = M[j * J + l];
                M[j * J + l] = M[best * J + l];
                M[best * J + l] = t;
            }
            const EL t = y[j];
            y[j] = y[best];
            y[best] = t;
            product = -product;
        }
        if (!(N_(square)(M[j * J + j]) > LEAST * LEAST * *lost * *lost)) return false;
        product *= M[j * J + j];
        for (int i = j + 1; i < J; i++) {
            const EL f = N_(quotient)(M[i * J + j], M[j * J + j]);
            for (int l = j + 1; l < J; l++) M[i * J + l] -= f * M[j * J + l];
            y[i] -= f * y[j];
        }
    }
    for (int j = J - 1; j >= 0; j--) {
        for (int l = j + 1; l < J; l++) y[j] -= M[j * J + l] * y[l];
        y[j] = N_(quotient)(y[j], M[j * J + j]);
    }
    *det = RE(product);
    return *det > 0;
}

/* The two halves put together: see above. */
static bool K_(joined)(const K_(chain) * c, const K_(chain) * e, lopk_quasi_walk *w) {
    EL M[J * J], h[J], y[J];
    double lost = 1, quad = c->quad + e->quad, det;
    for (int j = 0; j < J; j++) {
        EL zf = 0;
        for (int l = 0; l < J; l++) {
            EL sum = 0;
            double size = 0;
            for (int m = 0; m < J; m++) {
                const EL s = AT(c->S, j, m), z = AT(e->S, m, l);
                sum += s * z;
                size += sqrt(N_(square)(s) * N_(square)(z));
            }
            M[j * J + l] = (j == l ? 1 : 0) - sum;
            lost = size > lost ? size : lost;
            zf += AT(e->S, j, l) * c->f[l];
        }
        h[j] = e->f[j] - zf;
        quad += RE(CJ(true, c->f[j]) * (zf - 2 * e->f[j]));
    }
    for (int j = 0; j < J; j++) {
        y[j] = 0;
        for (int l = 0; l < J; l++) y[j] += AT(c->S, j, l) * h[l];
    }
    if (!(lost < INFINITY) || !K_(middle)(M, &lost, y, &det)) return false;
    for (int j = 0; j < J; j++) quad += RE(CJ(true, h[j]) * y[j]);
    int k[3];
    w->quad = quad;
    w->mantissa = frexp(c->mantissa, &k[0]) * frexp(e->mantissa, &k[1]) * frexp(det, &k[2]);
    w->exponent = c->exponent + e->exponent + k[0] + k[1] + k[2];
    w->least = fmin(c->least, e->least);
    return quad - quad == 0 && w->mantissa - w->mantissa == 0;
}

/* False where one recursion alone is to say. */
LOPK_CLONES_SHORT static bool K_(twisted)(const lopk_quasi *g, const EL *b, lopk_quasi_walk *w) {
    static const EL zero[J * J];
    const EL *p = g->p, *q = g->q, *a = g->a, *d = g->d;
    const int64_t n = g->n;
    if (n < 2) return false;
    K_(chain) c = {.mantissa = 1, .least = INFINITY}, e = c;
    int64_t i = 1, j = n - 2;
    if (!K_(step)(&c, d[0], zero, q, zero, false, true, b, NULL, NULL) ||
        !K_(step)(&e, d[n - 1], zero, p + (n - 1) * J, zero, true, true, b + n - 1, NULL, NULL))
        return false;
    for (; i < j; i++, j--)
        if (!K_(step)(&c, d[i], p + i * J, q + i * J, a + i * STEP, false, true, b + i, NULL,
                      NULL) ||
            !K_(step)(&e, d[j], q + j * J, p + j * J, a + j * STEP, true, true, b + j, NULL, NULL))
            return false;
    if (i == j &&
        !K_(step)(&c, d[i], p + i * J, q + i * J, a + i * STEP, false, true, b + i, NULL, NULL))
        return false;
    return K_(joined)(&c, &e, w);
}
/* s <- mode(a_i) s of kb columns. */
static ALWAYS void K_(moved)(const EL *a, const int kb, const bool trans, const bool flip, EL *s) {
    EL t[J * 8];
    EACH(j) {
        if (!FULL) {
            const EL f = CJ(flip, a[j]);
            for (int c = 0; c < kb; c++) t[j * kb + c] = f * s[j * kb + c];
        } else {
            for (int c = 0; c < kb; c++) t[j * kb + c] = 0;
            EACH(l) {
                const EL f = CJ(flip, trans ? a[l * J + j] : a[j * J + l]);
                for (int c = 0; c < kb; c++) t[j * kb + c] += f * s[l * kb + c];
            }
        }
    }
    EACH(j) {
        for (int c = 0; c < kb; c++) s[j * kb + c] = t[j * kb + c];
    }
}
/* As N_(pass), rows of x and y rx and ry elements apart. */
static ALWAYS void K_(pass)(const lopk_quasi *g, const int kb, const bool trans, const bool flip,
                            const bool first, EL *restrict y, int64_t ry, const EL *restrict x,
                            int64_t rx) {
    const EL *from = trans ? g->q : g->p, *to = trans ? g->p : g->q, *a = g->a, *d = g->d;
    const int64_t n = g->n, last = trans ? 0 : n - 1;
    EL s[J * 8] = {0};
    for (int64_t o = 0; o < n; o++) {
        const int64_t i = trans ? n - 1 - o : o;
        const EL *xi = x + i * rx;
        EL *yi = y + i * ry, sum[8];
        if (first) {
            const EL di = g->tri ? CJ(flip, d[i]) : RE(d[i]);
            for (int c = 0; c < kb; c++) sum[c] = di * xi[c];
        } else {
            for (int c = 0; c < kb; c++) sum[c] = yi[c];
        }
        if (o > 0) {
            EACH(j) {
                const EL f = CJ(flip, from[i * J + j]);
                for (int c = 0; c < kb; c++) sum[c] += f * s[j * kb + c];
            }
        }
        for (int c = 0; c < kb; c++) yi[c] = sum[c];
        if (i == last) break;
        if (o > 0) K_(moved)(a + i * STEP, kb, trans, flip, s);
        EACH(j) {
            const EL f = CJ(flip, to[i * J + j]);
            for (int c = 0; c < kb; c++) s[j * kb + c] += f * xi[c];
        }
    }
}
static ALWAYS void K_(passes)(const lopk_quasi *g, const int kb, int mode, EL *y, int64_t ry,
                              const EL *x, int64_t rx) {
    const lopk_quasi_sweeps s = lopk_quasi_sweeps_of(g, mode);
    if (s.lower) K_(pass)(g, kb, false, s.flip_lower, true, y, ry, x, rx);
    if (s.upper) K_(pass)(g, kb, true, s.flip_upper, !s.lower, y, ry, x, rx);
}
LOPK_CLONES_SHORT static void K_(product)(const lopk_quasi *g, int kb, int mode, EL *y, int64_t ry,
                                          const EL *x, int64_t rx) {
    if (WIDE > 1 && kb == WIDE)
        K_(passes)(g, WIDE, mode, y, ry, x, rx);
    else
        K_(passes)(g, 1, mode, y, ry, x, rx);
}

static ALWAYS void K_(back_kb)(const lopk_quasi *g, const int kb, const double *D, const EL *W,
                               EL *restrict x) {
    const EL *p = g->p, *a = g->a;
    const int64_t n = g->n;
    EL s[J * 8] = {0}, z[8];
    for (int64_t i = 0; i < n; i++) {
        for (int c = 0; c < kb; c++) z[c] = x[i * kb + c];
        if (i > 0) {
            EACH(j) {
                for (int c = 0; c < kb; c++) z[c] -= p[i * J + j] * s[j * kb + c];
            }
        }
        for (int c = 0; c < kb; c++) x[i * kb + c] = z[c] / D[i];
        if (i == n - 1) break;
        if (i > 0) K_(moved)(a + i * STEP, kb, false, false, s);
        EACH(j) {
            for (int c = 0; c < kb; c++) s[j * kb + c] += W[i * J + j] * z[c];
        }
    }
    EACH(j) {
        for (int c = 0; c < kb; c++) s[j * kb + c] = 0;
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        for (int c = 0; c < kb; c++) z[c] = x[i * kb + c];
        if (i < n - 1) {
            EACH(j) {
                for (int c = 0; c < kb; c++) z[c] -= CJ(true, W[i * J + j]) * s[j * kb + c];
            }
        }
        for (int c = 0; c < kb; c++) x[i * kb + c] = z[c];
        if (i == 0) break;
        if (i < n - 1) K_(moved)(a + i * STEP, kb, true, true, s);
        EACH(j) {
            for (int c = 0; c < kb; c++) s[j * kb + c] += CJ(true, p[i * J + j]) * z[c];
        }
    }
}
LOPK_CLONES_SHORT static void K_(back)(const lopk_quasi *g, int kb, const double *D, const EL *W,
                                       EL *x) {
    if (WIDE > 1 && kb == WIDE)
        K_(back_kb)(g, WIDE, D, W, x);
    else
        K_(back_kb)(g, 1, D, W, x);
}
#undef STEP
#undef PACKED
#undef AT
#undef EACH
