/* k_quasi_solve_per_dtype.h: factors and solves of k_quasi.c in double precision, real or complex.
 */

/* num <- a_i v; S <- a_i S a_i^H, the half on and below the diagonal; t: J x J. */
static ALWAYS void N_(step)(const EL *a, const int64_t J, const bool full, EL *restrict S,
                            const EL *v, EL *restrict num, EL *restrict t) {
    if (!full) {
        for (int64_t j = 0; j < J; j++) {
            num[j] = a[j] * v[j];
            for (int64_t l = 0; l <= j; l++) S[j * J + l] *= a[j] * CJ(true, a[l]);
        }
        return;
    }
    const bool many = J > 3; /* transitions of sums are block diagonal: zeros are passed over */
    for (int64_t j = 0; j < J; j++) {
        EL sum = 0;
        for (int64_t l = 0; l < J; l++) sum += a[j * J + l] * v[l];
        num[j] = sum;
        for (int64_t l = 0; l < J; l++) t[j * J + l] = 0;
        for (int64_t l = 0; l < J; l++) {
            const EL f = a[j * J + l];
            if (many && f == 0) continue;
            for (int64_t m = 0; m < J; m++) t[j * J + m] += f * S[l * J + m];
        }
    }
    for (int64_t j = 0; j < J; j++)
        for (int64_t l = 0; l <= j; l++) S[j * J + l] = 0;
    for (int64_t l = 0; l < J; l++)
        for (int64_t m = 0; m < J; m++) {
            const EL f = CJ(true, a[l * J + m]);
            if (many && f == 0) continue;
            for (int64_t j = l; j < J; j++) S[j * J + l] += t[j * J + m] * f;
        }
}

static ALWAYS void N_(gather)(lopk_quasi_walk *w, EL z, double D, double d) {
    const double before = w->mantissa;
    w->quad += N_(square)(z) / D;
    w->least = D < w->least * d ? D / d : w->least;
    w->mantissa *= D;
    if (!(fabs(w->mantissa) > 0x1p-500 && fabs(w->mantissa) < 0x1p500) && D - D == 0 && D != 0) {
        int k, l; /* D itself may be as large or small as numbers are */
        w->mantissa = frexp(before, &k) * frexp(D, &l);
        w->exponent += k + l;
    }
}

/* D and W; the first row whose pivot is no number or 0 (positive: or negative), n: none. With b:
 * what a likelihood gathers instead, D is not written and W has room for one row. */
LOPK_CLONES_SHORT static int64_t N_(recursion)(const lopk_quasi *g, bool positive, double *D, EL *W,
                                               EL *S, const EL *b, lopk_quasi_walk *w) {
    const EL *p = g->p, *q = g->q, *a = g->a, *d = g->d;
    const int64_t n = g->n, J = g->J;
    const bool full = g->full;
    const int64_t step = full ? J * J : J;
    EL *t = S + J * J, *v = t + J * J, *num = v + J, *f = num + J;
    for (int64_t j = 0; j < J * J; j++) S[j] = 0;
    for (int64_t j = 0; b && j < J; j++) f[j] = 0;
    for (int64_t i = 0; i < n; i++) {
        double left = RE(d[i]);
        EL *Wi = b ? W : W + i * J, z = 0;
        if (i > 0) {
            double taken = 0;
            for (int64_t j = 0; j < J; j++) {
                v[j] = 0;
                for (int64_t l = 0; l < J; l++) v[j] += S[j * J + l] * CJ(true, p[i * J + l]);
                taken += RE(p[i * J + j] * v[j]);
            }
            left -= taken;
        }
        if (!b) D[i] = left;
        if (!(left > 0 || (left < 0 && !positive)) || left - left != 0) return i;
        if (b) {
            z = b[i];
            for (int64_t j = 0; i > 0 && j < J; j++) z -= p[i * J + j] * f[j];
            N_(gather)(w, z, left, RE(d[i]));
        }
        if (i == n - 1) break;
        if (i > 0) N_(step)(a + i * step, J, full, S, v, num, t);
        for (int64_t j = 0; j < J; j++) {
            num[j] = i > 0 ? q[i * J + j] - num[j] : q[j];
            Wi[j] = num[j] / left;
        }
        if (b) {
            if (i > 0) N_(move)(a + i * step, J, full, 1, false, false, f, t);
            for (int64_t j = 0; j < J; j++) f[j] += Wi[j] * z;
        }
        for (int64_t j = 0; j < J; j++)
            for (int64_t l = 0; l <= j; l++) {
                S[j * J + l] += num[j] * CJ(true, Wi[l]);
                S[l * J + j] = CJ(true, S[j * J + l]);
            }
    }
    for (int64_t j = 0; !b && n > 0 && j < J; j++) W[(n - 1) * J + j] = 0;
    return n;
}

static int64_t N_(ldl)(const lopk_quasi *g, bool positive, double *D, EL *W, EL *work) {
    if (lopk_quasi_is_few(g)) return lopk_quasi_few_ldl(g, positive, D, W);
    if (lopk_quasi_is_wide(g)) return lopk_quasi_wide(g, positive, D, (void *)W, NULL, NULL);
    return N_(recursion)(g, positive, D, W, work, NULL, NULL);
}
static int64_t N_(quad)(const lopk_quasi *g, const void *b, double *out, EL *work) {
    lopk_quasi_walk w = {0, 1, 0, INFINITY};
    int64_t where = g->n;
    if (!lopk_quasi_is_few(g) || !lopk_quasi_few_walk(g, b, &w))
        where = lopk_quasi_is_wide(g) ? lopk_quasi_wide(g, true, NULL, NULL, b, &w)
                                      : N_(recursion)(g, true, NULL, work, work + g->J, b, &w);
    out[0] = w.quad;
    out[1] = log(w.mantissa) + w.exponent * log(2);
    out[2] = w.least;
    return where;
}

/* x <- A^-1 x, kb columns side by side, 1 or WIDE. */
static ALWAYS void N_(back_kb)(const lopk_quasi *g, const int kb, const double *D, const EL *W,
                               EL *x, EL *s) {
    const EL *p = g->p, *a = g->a;
    const int64_t n = g->n, J = g->J;
    const bool full = g->full;
    const int64_t step = full ? J * J : J;
    EL *t = s + J * kb;
    for (int64_t j = 0; j < J * kb; j++) s[j] = 0;
    for (int64_t i = 0; i < n; i++) {
        EL z[8];
        for (int c = 0; c < kb; c++) z[c] = x[i * kb + c];
        for (int64_t j = 0; i > 0 && j < J; j++)
            for (int c = 0; c < kb; c++) z[c] -= p[i * J + j] * s[j * kb + c];
        for (int c = 0; c < kb; c++) x[i * kb + c] = z[c] / D[i];
        if (i == n - 1) break;
        if (i > 0) N_(move)(a + i * step, J, full, kb, false, false, s, t);
        for (int64_t j = 0; j < J; j++)
            for (int c = 0; c < kb; c++) s[j * kb + c] += W[i * J + j] * z[c];
    }
    for (int64_t j = 0; j < J * kb; j++) s[j] = 0;
    for (int64_t i = n - 1; i >= 0; i--) {
        EL z[8];
        for (int c = 0; c < kb; c++) z[c] = x[i * kb + c];
        for (int64_t j = 0; i < n - 1 && j < J; j++)
            for (int c = 0; c < kb; c++) z[c] -= CJ(true, W[i * J + j]) * s[j * kb + c];
        for (int c = 0; c < kb; c++) x[i * kb + c] = z[c];
        if (i == 0) break;
        if (i < n - 1) N_(move)(a + i * step, J, full, kb, true, true, s, t);
        for (int64_t j = 0; j < J; j++)
            for (int c = 0; c < kb; c++) s[j * kb + c] += CJ(true, p[i * J + j]) * z[c];
    }
}
LOPK_CLONES_SHORT static void N_(back)(const lopk_quasi *g, int kb, const double *D, const EL *W,
                                       EL *x, EL *s) {
    if (kb == WIDE)
        N_(back_kb)(g, WIDE, D, W, x, s);
    else
        N_(back_kb)(g, 1, D, W, x, s);
}
static void N_(substituted)(const lopk_quasi *g, int kb, const double *D, const EL *W, EL *x,
                            EL *s) {
    if (lopk_quasi_is_few(g))
        lopk_quasi_few_back(g, kb, D, W, x);
    else
        N_(back)(g, kb, D, W, x, s);
}

/* Sums of squares of the columns of an n x kb. */
static void N_(squares)(int64_t n, int kb, const EL *x, double *sum) {
    for (int c = 0; c < kb; c++) sum[c] = 0;
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < kb; c++) sum[c] += N_(square)(x[i * kb + c]);
}
static double N_(norm)(int64_t n, const EL *x) {
    double sum[4] = {0};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int c = 0; c < 4; c++) sum[c] += N_(square)(x[i + c]);
    for (; i < n; i++) sum[0] += N_(square)(x[i]);
    return sqrt(sum[0] + sum[1] + (sum[2] + sum[3]));
}
static void N_(norms)(int64_t n, int kb, const EL *x, double *norm) {
    if (kb == 1) {
        *norm = N_(norm)(n, x);
        return;
    }
    N_(squares)(n, kb, x, norm);
    for (int c = 0; c < kb; c++) norm[c] = sqrt(norm[c]);
}

/* |A|_2 from below, by a few steps of the power method; v and w: n each. */
static double N_(size_of)(const lopk_quasi *g, int rounds, EL *v, EL *w, void *s) {
    double size = 0;
    uint64_t state = 17;
    for (int64_t i = 0; i < g->n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        v[i] = 1 + ((state >> 63) ? 0.5 : -0.5);
    }
    for (int round = 0; round < rounds; round++) {
        const lop_mat mv = {v, g->n, 1, 1, 1, g->dt}, mw = {w, g->n, 1, 1, 1, g->dt};
        const double before = N_(norm)(g->n, v);
        if (!(before > 0)) break;
        for (int64_t i = 0; i < g->n; i++) v[i] /= before;
        lopk_quasi_mm(&mw, g, 0, &mv, s);
        const double now = N_(norm)(g->n, w);
        if (now > size) size = now;
        EL *other = v;
        v = w;
        w = other;
    }
    return size;
}

/* Where the whole of the backward error is at most `most` in all columns. */
static bool N_(is_small)(const double *r, const double *b, const double *x, double A, int kb,
                         double most) {
    for (int c = 0; c < kb; c++) {
        const double bound = A * x[c] + b[c];
        if (!(r[c] <= most * bound) || bound - bound != 0) return false;
    }
    return true;
}

/* r <- b - A x and its norms. */
static void N_(residual)(const lopk_quasi *g, int kb, const EL *b, EL *x, EL *r, double *norm,
                         void *s) {
    const lop_mat mx = {x, g->n, kb, kb, 1, g->dt}, mr = {r, g->n, kb, kb, 1, g->dt};
    lopk_quasi_mm(&mr, g, 0, &mx, s);
    for (int64_t i = 0; i < g->n * kb; i++) r[i] = b[i] - r[i];
    N_(norms)(g->n, kb, r, norm);
}

/* x <- A^-1 b, kb columns side by side; r and the two after it as long as b. False: not small. */
static bool N_(solved)(const lopk_quasi *g, const head *h, const double *D, const EL *W, int kb,
                       const EL *b, EL *x, EL *r, void *s) {
    const int64_t n = g->n, all = n * kb;
    double nb[8], nx[8], nr[8], A = h->largest;
    int sized = 0;
    N_(norms)(n, kb, b, nb);
    for (int64_t i = 0; i < all; i++) x[i] = b[i];
    N_(substituted)(g, kb, D, W, x, s);
    for (int round = 0;; round++) {
        N_(residual)(g, kb, b, x, r, nr, s);
        N_(norms)(n, kb, x, nx);
        if (N_(is_small)(nr, nb, nx, A, kb, GOOD)) return true;
        for (; sized < 2; sized++) { /* the diagonal alone said too little of A's size */
            A = fmax(A, N_(size_of)(g, sized ? 3 : 1, r + all, r + all + n, s));
            if (N_(is_small)(nr, nb, nx, A, kb, GOOD)) return true;
        }
        if (round == ROUNDS) break;
        N_(substituted)(g, kb, D, W, r, s);
        for (int64_t i = 0; i < all; i++) x[i] += r[i];
    }
    return N_(is_small)(nr, nb, nx, A, kb, fmax(ENOUGH, 10 * (double)n * UNIT));
}

static bool N_(solve)(const lop_mat *y, const lopk_quasi *g, const head *h, const double *D,
                      const EL *W, bool flip, const lop_mat *b, char *work) {
    const int64_t n = g->n;
    for (int64_t j = 0; j < y->n;) {
        const int kb = at_once(g, WIDE, y->n - j);
        EL *to = (EL *)(void *)work, *x = to + n * kb, *r = x + n * kb;
        void *s = work + room((size_t)n * (size_t)(4 * kb + 2) * sizeof(EL));
        lop_mat part = *b, out = *y;
        const lop_mat mb = {to, n, kb, kb, 1, g->dt}, mx = {x, n, kb, kb, 1, g->dt};
        part.p = (char *)b->p + j * b->cs * (int64_t)lop_dtype_size(b->dt);
        out.p = (char *)y->p + j * y->cs * (int64_t)lop_dtype_size(y->dt);
        part.n = out.n = kb;
        lopk_copy(&mb, &part);
        if (flip) lopk_conj(&mb, &mb);
        if (!N_(solved)(g, h, D, W, kb, to, x, r, s)) return false;
        if (flip) lopk_conj(&mx, &mx);
        lopk_copy(&out, &mx);
        j += kb;
    }
    return true;
}

/* Is the factor of an indefinite A to be believed? A trial solve says so. */
static bool N_(trial)(const lopk_quasi *g, const head *h, const double *D, const EL *W,
                      char *work) {
    const int64_t n = g->n;
    EL *b = (EL *)(void *)work, *x = b + n, *r = x + n;
    for (int64_t i = 0; i < n; i++) b[i] = (i * 7) % 5 < 2 ? -1 : 1;
    double nb, nx, nr;
    void *s = work + room((size_t)n * 6 * sizeof(EL));
    memcpy(x, b, (size_t)n * sizeof(EL));
    N_(substituted)(g, 1, D, W, x, s);
    N_(residual)(g, 1, b, x, r, &nr, s);
    nb = N_(norm)(n, b);
    nx = N_(norm)(n, x);
    const double A = fmax(h->largest, N_(size_of)(g, 3, r + n, r + 2 * n, s));
    return N_(is_small)(&nr, &nb, &nx, A, 1, fmax(ENOUGH, (double)n * UNIT));
}

/* 1 / D_j + w_j^H Z_j w_j, Z_{j-1} = b^H Z_j b + conj(p_j) p_j^T / D_j with b = a_j - w_j p_j^T. */
static ALWAYS void N_(invdiag_of)(const int64_t J, const bool full, EL *restrict out, int64_t rs,
                                  const lopk_quasi *g, const double *D, const EL *W, EL *room) {
    const EL *p = g->p, *a = g->a;
    const int64_t n = g->n, step = full ? J * J : J;
    EL own[3 * FEW], *Z = J * J <= FEW ? own : room, *b = Z + J * J, *t = b + J * J;
    for (int64_t j = 0; j < J * J; j++) Z[j] = 0;
    for (int64_t i = n - 1; i >= 0; i--) {
        double sum = 1 / D[i];
        for (int64_t j = 0; i < n - 1 && j < J; j++) {
            EL row = 0;
            for (int64_t l = 0; l < J; l++) row += Z[j * J + l] * W[i * J + l];
            sum += RE(CJ(true, W[i * J + j]) * row);
        }
        out[i * rs] = sum;
        if (i == 0) break;
        if (i < n - 1) {
            for (int64_t j = 0; j < J; j++)
                for (int64_t l = 0; l < J; l++) {
                    const EL v = full ? a[i * step + j * J + l] : j == l ? a[i * step + j] : 0;
                    b[j * J + l] = v - W[i * J + j] * p[i * J + l];
                }
            for (int64_t j = 0; j < J; j++)
                for (int64_t l = 0; l < J; l++) {
                    EL v = 0;
                    for (int64_t m = 0; m < J; m++) v += Z[j * J + m] * b[m * J + l];
                    t[j * J + l] = v;
                }
            for (int64_t j = 0; j < J; j++)
                for (int64_t l = 0; l < J; l++) {
                    EL v = 0;
                    for (int64_t m = 0; m < J; m++) v += CJ(true, b[m * J + j]) * t[m * J + l];
                    Z[j * J + l] = v;
                }
        }
        for (int64_t j = 0; j < J; j++)
            for (int64_t l = 0; l < J; l++)
                Z[j * J + l] += CJ(true, p[i * J + j]) * p[i * J + l] / D[i];
    }
}
LOPK_CLONES_SHORT static void N_(invdiag)(EL *out, int64_t rs, const lopk_quasi *g, const double *D,
                                          const EL *W, EL *room) {
    switch (REAL ? key(g) : 0) {
    case 2: N_(invdiag_of)(1, false, out, rs, g, D, W, room); break;
    case 4: N_(invdiag_of)(2, false, out, rs, g, D, W, room); break;
    case 5: N_(invdiag_of)(2, true, out, rs, g, D, W, room); break;
    case 7: N_(invdiag_of)(3, true, out, rs, g, D, W, room); break;
    default: N_(invdiag_of)(g->J, g->full, out, rs, g, D, W, room);
    }
}

/* One column of a triangular solve in place, elements rs apart. The first zero of d, n: none. */
static int64_t N_(substitute)(EL *y, int64_t rs, const lopk_quasi *g, bool trans, bool flip,
                              EL *s) {
    const EL *from = trans ? g->q : g->p, *to = trans ? g->p : g->q, *a = g->a, *d = g->d;
    const int64_t n = g->n, J = g->J, step = g->full ? J * J : J;
    for (int64_t j = 0; j < J; j++) s[j] = 0;
    for (int64_t o = 0; o < n; o++) {
        const int64_t i = trans ? n - 1 - o : o;
        EL sum = y[i * rs];
        for (int64_t j = 0; o > 0 && j < J; j++) sum -= CJ(flip, from[i * J + j]) * s[j];
        if (d[i] == 0) return i;
        sum = N_(quotient)(sum, CJ(flip, d[i]));
        y[i * rs] = sum;
        if (o == n - 1) break;
        if (o > 0) N_(move)(a + i * step, J, g->full, 1, trans, flip, s, s + J);
        for (int64_t j = 0; j < J; j++) s[j] += CJ(flip, to[i * J + j]) * sum;
    }
    return n;
}
