/* k_quasi_between_per_dtype.h: M = X Y X of two Hermitian quasi-separable matrices, X = A^-1 by
 * what is kept of it, for one dtype in double precision.
 *
 * With C_X and C_Y the states that come down to a row and O_X, O_Y what is read of them below it
 * (X[below, above] = O_X C_X, likewise Y), what lies below the diagonal of M at that row is
 *   O_X (C_X Y X) + (X O_Y) (C_Y X) + (X Y O_X + O_X (C_X C_Y^H) (O_Y^H O_X)) C_X,
 * the products within what is above, or below: R = 2 K + J states of M, C_X, C_Y X and C_X Y X. One
 * sweep down carries N = C_Y C_X^H and T = C_X Y C_X^H, one up V = O_X^H O_Y and S = O_X^H Y O_X.
 */

typedef struct N_(inverse_parts) {
    const EL *x, *w, *b, *e; /* generators below the diagonal, full transitions; the diagonal */
    int64_t K;
} N_(inverse_parts);
typedef struct N_(product_parts) {
    EL *d, *p, *q, *a; /* n, n R, n R, n R^2 */
} N_(product_parts);

static ALWAYS EL N_(inner_product)(int64_t n, const EL *a, const EL *b) { /* a^T conj(b) */
    EL sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * CJ(true, b[i]);
    return sum;
}
/* y (m) <- (more: +=) a x, a m x k. */
static ALWAYS void N_(mv)(EL *restrict y, int64_t m, int64_t k, const EL *a, const EL *x,
                          bool more) {
    for (int64_t i = 0; i < m; i++) {
        EL sum = more ? y[i] : 0;
        for (int64_t j = 0; j < k; j++) sum += a[i * k + j] * x[j];
        y[i] = sum;
    }
}
/* y (k) <- (more: +=) x^T a, a m x k; flip: of conj(x). */
static ALWAYS void N_(vm)(EL *restrict y, int64_t m, int64_t k, const EL *x, const EL *a, bool flip,
                          bool more) {
    for (int64_t j = 0; j < k && !more; j++) y[j] = 0;
    for (int64_t i = 0; i < m; i++) {
        const EL v = CJ(flip, x[i]);
        for (int64_t j = 0; j < k; j++) y[j] += v * a[i * k + j];
    }
}
/* y (m x n) += x z, of conj(x) and conj(z) where these flip. */
static ALWAYS void N_(outer)(EL *restrict y, int64_t m, int64_t n, const EL *x, bool flip_x,
                             const EL *z, bool flip_z) {
    for (int64_t i = 0; i < m; i++) {
        const EL v = CJ(flip_x, x[i]);
        for (int64_t j = 0; j < n; j++) y[i * n + j] += v * CJ(flip_z, z[j]);
    }
}
/* y (m x n) <- b^H z, b k x m, z k x n. */
static ALWAYS void N_(turned_times)(EL *restrict y, int64_t k, int64_t m, int64_t n, const EL *b,
                                    const EL *z) {
    for (int64_t i = 0; i < m * n; i++) y[i] = 0;
    for (int64_t l = 0; l < k; l++)
        for (int64_t i = 0; i < m; i++) {
            const EL v = CJ(true, b[l * m + i]);
            for (int64_t j = 0; j < n; j++) y[i * n + j] += v * z[l * n + j];
        }
}
/* Transitions of row i as a full matrix at `to`, or where they lie. */
static ALWAYS const EL *N_(full_moves)(const lopk_quasi *g, const int64_t J, const bool full,
                                       int64_t i, EL *to) {
    if (full) return (const EL *)g->a + i * J * J;
    for (int64_t j = 0; j < J; j++)
        for (int64_t l = 0; l < J; l++) to[j * J + l] = j == l ? ((const EL *)g->a)[i * J + j] : 0;
    return to;
}

/* The states of row i of M, from those above it; N (J x K) and T (K x K) go on by it. */
static ALWAYS void N_(between_down)(const int64_t K, const int64_t J, const bool full,
                                    N_(product_parts) to, const N_(inverse_parts) * X,
                                    const lopk_quasi *Y, int64_t i, const EL *N, EL *next, EL *T,
                                    EL *s) {
    const int64_t R = 2 * K + J;
    const EL *x = X->x + i * K, *w = X->w + i * K, *b = X->b + i * K * K, e = X->e[i],
             *p = (const EL *)Y->p + i * J, *q = (const EL *)Y->q + i * J,
             d = RE(((const EL *)Y->d)[i]), *a;
    EL *one = to.q + i * R, *two = one + K, *three = two + J, *A = to.a + i * R * R, *g = s,
       *v = g + K, *h = v + K, *bar = h + K + J, *t = bar + K, *held = t + K * K + J * K;
    for (int64_t k = 0; k < K; k++) one[k] = w[k], v[k] = w[k] * d;
    for (int64_t j = 0; j < J; j++) two[j] = q[j] * e;
    if (i == 0) {
        for (int64_t k = 0; k < K; k++) three[k] = v[k] * e;
        for (int64_t j = 0; j < J * K; j++) next[j] = 0;
        N_(outer)(next, J, K, q, false, w, true);
        N_(outer)(T, K, K, v, false, w, true);
        return;
    }
    a = N_(full_moves)(Y, J, full, i, held);
    N_(vm)(g, J, K, p, N, false, false); /* p^T N */
    for (int64_t k = 0; k < K; k++) bar[k] = CJ(true, g[k]);
    N_(mv)(v, K, K, b, bar, true);
    for (int64_t k = 0; k < K; k++) bar[k] = CJ(true, x[k]);
    N_(mv)(h, J, K, N, bar, false);
    N_(mv)(two, J, J, a, h, true);
    N_(mv)(h, K, K, T, bar, false);
    EL along = 0;
    for (int64_t k = 0; k < K; k++) along += g[k] * bar[k];
    for (int64_t k = 0; k < K; k++) three[k] = w[k] * along + v[k] * e;
    N_(mv)(three, K, K, b, h, true);
    for (int64_t j = 0; j < R * R; j++) A[j] = 0;
    for (int64_t k = 0; k < K; k++)
        for (int64_t l = 0; l < K; l++) {
            A[k * R + l] = A[(K + J + k) * R + K + J + l] = b[k * K + l];
            A[(K + J + k) * R + l] = v[k] * x[l];
        }
    for (int64_t j = 0; j < J; j++) {
        for (int64_t l = 0; l < K; l++) A[(K + j) * R + l] = q[j] * x[l];
        for (int64_t l = 0; l < J; l++) A[(K + j) * R + K + l] = a[j * J + l];
        for (int64_t k = 0; k < K; k++) A[(K + J + k) * R + K + j] = w[k] * p[j];
    }
    N_(times)(t, K, K, b, T); /* T <- (b T + w p^T N) b^H + v w^H */
    N_(outer)(t, K, K, w, false, g, false);
    N_(times_turned)(T, K, K, t, b);
    N_(outer)(T, K, K, v, false, w, true);
    for (int64_t j = 0; j < J * K; j++) t[j] = 0; /* N <- a N b^H + q w^H */
    for (int64_t j = 0; j < J; j++)
        for (int64_t l = 0; l < J; l++)
            for (int64_t k = 0; k < K; k++) t[j * K + k] += a[j * J + l] * N[l * K + k];
    N_(times_turned)(next, J, K, t, b);
    N_(outer)(next, J, K, q, false, w, true);
}

/* What row i of M reads, and its element on the diagonal beside what lies above; V (K x J) and S
 * (K x K) go on by it. */
static ALWAYS void N_(between_up)(const int64_t K, const int64_t J, const bool full,
                                  N_(product_parts) to, const N_(inverse_parts) * X,
                                  const lopk_quasi *Y, int64_t i, const EL *N, EL *V, EL *S,
                                  EL *s) {
    const int64_t R = 2 * K + J;
    const bool last = i == Y->n - 1;
    const EL *x = X->x + i * K, *w = X->w + i * K, *b = X->b + i * K * K, e = X->e[i],
             *p = (const EL *)Y->p + i * J, *q = (const EL *)Y->q + i * J,
             d = RE(((const EL *)Y->d)[i]), *a;
    EL *P = to.p + i * R, *u = s, *z = u + K, *r = z + K, *h = r + J, *c = h + K, *in = c + K * J,
       *held = in + K * K;
    EL more = e * e * d;
    if (!last) {
        N_(mv)(u, K, J, V, q, false);
        N_(mv)(h, K, K, S, w, false);
        more += RE(N_(inner_product)(K, h, w)) + 2 * RE(e * N_(inner_product)(K, w, u));
    }
    if (i == 0) {
        to.d[0] += more;
        return;
    }
    for (int64_t k = 0; k < K; k++) z[k] = d * x[k];
    for (int64_t j = 0; j < J; j++) r[j] = N_(inner_product)(K, x, N + j * K);
    if (!last) {
        a = N_(full_moves)(Y, J, full, i, held);
        N_(vm)(z, K, K, u, b, true, true);
        for (int64_t j = 0; j < K * J; j++) c[j] = 0; /* V a */
        for (int64_t k = 0; k < K; k++)
            for (int64_t l = 0; l < J; l++)
                for (int64_t j = 0; j < J; j++) c[k * J + j] += V[k * J + l] * a[l * J + j];
        N_(times)(in, K, K, S, b);
        N_(outer)(in, K, K, u, false, x, false);
        for (int64_t k = 0; k < K; k++) { /* r^T (V a)^H w */
            EL sum = 0;
            for (int64_t j = 0; j < J; j++) sum += r[j] * CJ(true, c[k * J + j]);
            more += 2 * RE(sum * w[k]);
        }
        N_(turned_times)(V, K, K, J, b, c);
        N_(turned_times)(S, K, K, K, b, in);
    }
    to.d[i] += more;
    N_(outer)(V, K, J, x, true, p, false);
    N_(outer)(S, K, K, x, true, z, false);
    for (int64_t k = 0; k < K; k++) P[k] = e * z[k];
    for (int64_t j = 0; j < J; j++) P[K + j] = e * p[j];
    for (int64_t k = 0; k < K; k++) P[K + J + k] = x[k];
    if (!last) {
        N_(vm)(P, K, K, w, in, true, true);
        N_(vm)(P + K, K, J, w, c, true, true);
    }
    for (int64_t k = 0; k < K; k++) P[k] += N_(inner_product)(J, r, V + k * J);
}

/* N: n J K, then T and V: K^2 and K J, then scratch of the two above. */
static ALWAYS void N_(between_of)(const int64_t K, const int64_t J, const bool full,
                                  N_(product_parts) to, const N_(inverse_parts) * X,
                                  const lopk_quasi *Y, EL *N) {
    const int64_t n = Y->n, step = J * K;
    EL own[128] = {0}, *T = J <= 4 && K <= 2 ? own : N + n * step, *V = T + K * K, *s = V + K * J;
    for (int64_t j = 0; j < K * K; j++) T[j] = 0;
    for (int64_t i = 0; i < n; i++) { /* N[i] is of the rows before i */
        EL sum = 0;
        if (i > 0) {
            const EL *x = X->x + i * K, *p = (const EL *)Y->p + i * J, *before = N + i * step;
            N_(vm)(s, K, K, x, T, false, false);
            sum = RE(N_(inner_product)(K, s, x));
            N_(vm)(s, J, K, p, before, false, false); /* p^T N */
            sum += 2 * RE(X->e[i] * N_(inner_product)(K, x, s));
        }
        to.d[i] = sum;
        if (i + 1 < n)
            N_(between_down)(K, J, full, to, X, Y, i, N + i * step, N + (i + 1) * step, T, s);
    }
    for (int64_t j = 0; j < K * K; j++) T[j] = 0;
    for (int64_t j = 0; j < K * J; j++) V[j] = 0;
    for (int64_t i = n - 1; i >= 0; i--)
        N_(between_up)(K, J, full, to, X, Y, i, N + i * step, V, T, s);
}
LOPK_CLONES_SHORT static void N_(between)(void *const *d_p_q_a, void *const *x_w_b_e, int64_t K,
                                          const lopk_quasi *Y, EL *N) {
    const N_(product_parts) to = {d_p_q_a[0], d_p_q_a[1], d_p_q_a[2], d_p_q_a[3]};
    const N_(inverse_parts) X = {x_w_b_e[0], x_w_b_e[1], x_w_b_e[2], x_w_b_e[3], K};
    if (REAL && K == 2 && Y->J == 4 && Y->full) /* Y: how A grows, of twice its states */
        N_(between_of)(2, 4, true, to, &X, Y, N);
    else if (REAL && K == 1 && Y->J == 2 && Y->full)
        N_(between_of)(1, 2, true, to, &X, Y, N);
    else
        N_(between_of)(K, Y->J, Y->full, to, &X, Y, N);
}
