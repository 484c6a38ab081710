/* k_quasi_sums_per_dtype.h: what a cotangent G means for generators (k_quasi.c), in double
 * precision, real or complex.
 *
 * Only what lies below the diagonal of G counts: p, q and a gather the derivatives of the sum of
 * conj(G[i, j]) p_i^T a_{i-1} ... a_{j+1} q_j. Two sweeps: states that come down to row i are kept,
 * those that come up meet them. */

/* Where the three lie in what is found. */
typedef struct N_(sums) {
    EL *p, *q, *a;
} N_(sums);
static N_(sums) N_(sums_in)(void *out, const lopk_quasi *g) {
    EL *p = out, *q = p + g->n * g->J;
    return (N_(sums)){p, q, q + g->n * g->J};
}
static int64_t N_(transitions)(const lopk_quasi *g) { return g->full ? g->J * g->J : g->J; }

/* a += M F^H of J x k, all of it or its diagonal. */
static ALWAYS void N_(meet)(EL *a, int64_t J, bool full, int64_t k, const EL *M, const EL *F) {
    for (int64_t j = 0; j < J; j++)
        for (int64_t l = full ? 0 : j; l < (full ? J : j + 1); l++) {
            EL sum = 0;
            for (int64_t c = 0; c < k; c++) sum += M[j * k + c] * CJ(true, F[l * k + c]);
            a[full ? j * J + l : j] += sum;
        }
}

/* G = by L R, kb columns of L and rows of R from `from` on, J states; F: n J kb, then s and t: J kb
 * each. */
static ALWAYS void N_(pair_block)(N_(sums) to, const lopk_quasi *g, const int64_t J,
                                  const bool full, const int kb, double by, int64_t from,
                                  const lop_mat *left, const lop_mat *right, EL *F) {
    const EL *p = g->p, *q = g->q, *a = g->a, *L = (const EL *)left->p + from * left->cs,
             *R = (const EL *)right->p + from * right->rs;
    const int64_t n = g->n, step = full ? J * J : J, size = J * kb;
    EL own[2 * FEW], *s = size <= FEW ? own : F + n * size, *t = s + size;
    for (int64_t j = 0; j < size; j++) s[j] = 0;
    for (int64_t i = 0; i + 1 < n; i++) {
        if (i > 0) N_(move)(a + i * step, J, full, kb, false, false, s, t);
        for (int64_t j = 0; j < J; j++)
            for (int c = 0; c < kb; c++)
                s[j * kb + c] += q[i * J + j] * CJ(true, R[i * right->cs + c * right->rs]);
        for (int64_t j = 0; j < size; j++) F[(i + 1) * size + j] = s[j];
    }
    for (int64_t j = 0; j < size; j++) s[j] = 0;
    for (int64_t i = n - 1; i >= 0; i--) {
        const EL *f = F + i * size;
        EL l[8], r[8];
        for (int c = 0; c < kb; c++) {
            l[c] = by * L[i * left->rs + c * left->cs];
            r[c] = R[i * right->cs + c * right->rs];
        }
        for (int64_t j = 0; i > 0 && j < J; j++) {
            EL sum = 0; /* first, so that what it is added to rounds once */
            for (int c = 0; c < kb; c++) sum += CJ(true, f[j * kb + c]) * l[c];
            to.p[i * J + j] += sum;
        }
        for (int64_t j = 0; i < n - 1 && j < J; j++) {
            EL sum = 0;
            for (int c = 0; c < kb; c++) sum += s[j * kb + c] * r[c];
            to.q[i * J + j] += sum;
        }
        if (i == 0) break;
        if (i < n - 1) {
            N_(meet)(to.a + i * step, J, full, kb, s, f);
            N_(move)(a + i * step, J, full, kb, true, true, s, t);
        }
        for (int64_t j = 0; j < J; j++)
            for (int c = 0; c < kb; c++) s[j * kb + c] += CJ(true, p[i * J + j]) * l[c];
    }
}
static ALWAYS void N_(pair_blocks)(N_(sums) to, const lopk_quasi *g, const int64_t J,
                                   const bool full, double by, const lop_mat *left,
                                   const lop_mat *right, EL *F) {
    int64_t from = 0;
    for (; from + 8 <= left->n; from += 8)
        N_(pair_block)(to, g, J, full, 8, by, from, left, right, F);
    for (; from + 2 <= left->n; from += 2)
        N_(pair_block)(to, g, J, full, 2, by, from, left, right, F);
    for (; from < left->n; from++) N_(pair_block)(to, g, J, full, 1, by, from, left, right, F);
}
LOPK_CLONES_SHORT static void N_(pair_sums)(N_(sums) to, const lopk_quasi *g, double by,
                                            const lop_mat *left, const lop_mat *right, EL *F) {
    switch (REAL ? key(g) : 0) {
    case 2: N_(pair_blocks)(to, g, 1, false, by, left, right, F); break;
    case 4: N_(pair_blocks)(to, g, 2, false, by, left, right, F); break;
    case 5: N_(pair_blocks)(to, g, 2, true, by, left, right, F); break;
    case 7: N_(pair_blocks)(to, g, 3, true, by, left, right, F); break;
    case 9: N_(pair_blocks)(to, g, 4, true, by, left, right, F); break;
    default: N_(pair_blocks)(to, g, g->J, g->full, by, left, right, F);
    }
}

static void N_(pairs)(void *out, const lopk_quasi *g, bool mirrored, double by, bool add,
                      const lop_mat *left, const lop_mat *right, EL *F) {
    const N_(sums) to = N_(sums_in)(out, g);
    const lop_mat r = {left->p, left->n, left->m, left->cs, left->rs, left->dt},
                  l = {right->p, right->n, right->m, right->cs, right->rs, right->dt};
    const bool alike = turned_alike(left, right);
    if (!add) memset(out, 0, (size_t)(g->n * (2 * g->J + N_(transitions)(g))) * sizeof(EL));
    N_(pair_sums)(to, g, mirrored && alike ? 2 * by : by, left, right, F);
    if (mirrored && !alike) N_(pair_sums)(to, g, by, &l, &r, F);
}

/* b <- a_i - w_i p_i^T: L^-1 of A = L D L^H has the generators -p, w and these transitions. */
static ALWAYS void N_(inner)(EL *b, const lopk_quasi *A, const int64_t K, const bool full,
                             int64_t i, const EL *W) {
    const EL *p = A->p, *a = A->a;
    const int64_t step = full ? K * K : K;
    for (int64_t j = 0; j < K; j++)
        for (int64_t l = 0; l < K; l++) {
            const EL v = full ? a[i * step + j * K + l] : j == l ? a[i * step + j] : 0;
            b[j * K + l] = v - W[i * K + j] * p[i * K + l];
        }
}

/* The generators of A^-1 below its diagonal, x_i b_{i-1} ... b_{j+1} w_j with
 *   x_i = w_i^H S_i b_i - p_i / D_i,  S_{i-1} = b_i^H S_i b_i + conj(p_i) p_i^T / D_i,
 * and its diagonal e_i = 1 / D_i + w_i^H S_i w_i.
 * x: n K, b: n K^2, of which x_0, b_0 and b_{n-1} are not written; S and t: K^2 each. */
static ALWAYS EL N_(on_diagonal)(int64_t K, const EL *S, const EL *w, double D) {
    double sum = 0;
    for (int64_t j = 0; j < K; j++)
        for (int64_t l = 0; l < K; l++) sum += RE(CJ(true, w[j]) * S[j * K + l] * w[l]);
    return 1 / D + sum;
}
static ALWAYS void N_(inverse_of)(const int64_t K, const bool full, EL *restrict x, EL *restrict b,
                                  EL *restrict e, const lopk_quasi *A, const double *D, const EL *W,
                                  EL *room) {
    const EL *p = A->p;
    const int64_t n = A->n;
    EL own[2 * FEW], *S = K * K <= FEW ? own : room, *t = S + K * K;
    for (int64_t j = 0; j < K * K; j++) S[j] = 0;
    for (int64_t i = n - 1; i >= 0; i--) {
        const EL *w = W + i * K, *pi = p + i * K;
        e[i] = i < n - 1 ? N_(on_diagonal)(K, S, w, D[i]) : 1 / D[i];
        if (i == 0) break;
        EL *xi = x + i * K, *bi = b + i * K * K;
        for (int64_t c = 0; c < K; c++) xi[c] = -pi[c] / D[i];
        if (i < n - 1) {
            N_(inner)(bi, A, K, full, i, W);
            for (int64_t j = 0; j < K * K; j++) t[j] = 0;
            for (int64_t j = 0; j < K; j++) /* S b */
                for (int64_t l = 0; l < K; l++)
                    for (int64_t c = 0; c < K; c++) t[j * K + c] += S[j * K + l] * bi[l * K + c];
            for (int64_t j = 0; j < K * K; j++) S[j] = 0;
            for (int64_t l = 0; l < K; l++) {
                const EL by = CJ(true, w[l]);
                for (int64_t c = 0; c < K; c++) xi[c] += by * t[l * K + c];
                for (int64_t j = 0; j < K; j++) {
                    const EL turned = CJ(true, bi[l * K + j]);
                    for (int64_t c = 0; c < K; c++) S[j * K + c] += turned * t[l * K + c];
                }
            }
        }
        for (int64_t j = 0; j < K; j++) {
            const EL by = CJ(true, pi[j]) / D[i];
            for (int64_t c = 0; c < K; c++) S[j * K + c] += by * pi[c];
        }
    }
}
LOPK_CLONES_SHORT static void N_(inverse)(EL *x, EL *b, EL *e, const lopk_quasi *A, const double *D,
                                          const EL *W, EL *room) {
    switch (REAL ? key(A) : 0) {
    case 2: N_(inverse_of)(1, false, x, b, e, A, D, W, room); break;
    case 4: N_(inverse_of)(2, false, x, b, e, A, D, W, room); break;
    case 5: N_(inverse_of)(2, true, x, b, e, A, D, W, room); break;
    case 7: N_(inverse_of)(3, true, x, b, e, A, D, W, room); break;
    default: N_(inverse_of)(A->J, A->full, x, b, e, A, D, W, room);
    }
}

/* y <- s b^H, of J x K. */
static ALWAYS void N_(times_turned)(EL *restrict y, int64_t J, int64_t K, const EL *s,
                                    const EL *b) {
    for (int64_t i = 0; i < J; i++)
        for (int64_t j = 0; j < K; j++) {
            EL sum = 0;
            for (int64_t l = 0; l < K; l++) sum += s[i * K + l] * CJ(true, b[j * K + l]);
            y[i * K + j] = sum;
        }
}
static ALWAYS void N_(times)(EL *restrict y, int64_t J, int64_t K, const EL *s, const EL *b) {
    for (int64_t j = 0; j < J * K; j++) y[j] = 0;
    for (int64_t i = 0; i < J; i++)
        for (int64_t l = 0; l < K; l++)
            for (int64_t c = 0; c < K; c++) y[i * K + c] += s[i * K + l] * b[l * K + c];
}

/* G with the generators x, W, b of K states below its diagonal. F: n J K,
 * then s and t: J K each. */
static ALWAYS void N_(quasi_sums_of)(N_(sums) to, const int64_t J, const int64_t K, const bool full,
                                     const EL *x, const EL *W, const EL *b, const lopk_quasi *g,
                                     double by, EL *restrict F) {
    const EL *p = g->p, *q = g->q, *a = g->a;
    const int64_t n = g->n, step = full ? J * J : J, size = J * K;
    EL own[2 * MORE], *s = size <= MORE ? own : F + n * size, *t = s + size;
    for (int64_t j = 0; j < size; j++) s[j] = 0;
    for (int64_t i = 0; i + 1 < n; i++) {
        if (i > 0) {
            N_(times_turned)(t, J, K, s, b + i * K * K);
            for (int64_t j = 0; j < size; j++) s[j] = t[j];
            N_(move)(a + i * step, J, full, (int)K, false, false, s, t);
        }
        for (int64_t j = 0; j < J; j++)
            for (int64_t c = 0; c < K; c++) s[j * K + c] += q[i * J + j] * CJ(true, W[i * K + c]);
        for (int64_t j = 0; j < size; j++) F[(i + 1) * size + j] = s[j];
    }
    for (int64_t j = 0; j < size; j++) s[j] = 0;
    for (int64_t i = n - 1; i >= 0; i--) {
        const EL *f = F + i * size, *w = W + i * K, *xi = x + i * K;
        for (int64_t j = 0; i < n - 1 && j < J; j++) {
            EL sum = 0;
            for (int64_t c = 0; c < K; c++) sum += s[j * K + c] * w[c];
            to.q[i * J + j] = sum;
        }
        if (i == 0) break;
        if (i < n - 1) {
            N_(times)(t, J, K, s, b + i * K * K);
            for (int64_t j = 0; j < size; j++) s[j] = t[j];
            N_(meet)(to.a + i * step, J, full, K, s, f);
            N_(move)(a + i * step, J, full, (int)K, true, true, s, t);
        }
        for (int64_t j = 0; j < J; j++) {
            EL sum = 0;
            for (int64_t c = 0; c < K; c++) {
                const EL xc = by * xi[c];
                sum += CJ(true, f[j * K + c]) * xc;
                s[j * K + c] += CJ(true, p[i * J + j]) * xc;
            }
            to.p[i * J + j] = sum;
        }
    }
}
LOPK_CLONES_SHORT static void N_(quasi_sums)(void *out, int64_t K, const EL *x, const EL *W,
                                             const EL *b, const lopk_quasi *g, bool mirrored,
                                             EL *F) {
    const N_(sums) to = N_(sums_in)(out, g);
    const double by = mirrored ? 2 : 1;
    memset(out, 0, (size_t)(g->n * (2 * g->J + N_(transitions)(g))) * sizeof(EL));
    switch (REAL && K <= 8 ? 10 * key(g) + (int)K : 0) {
    case 21: N_(quasi_sums_of)(to, 1, 1, false, x, W, b, g, by, F); break;
    case 42: N_(quasi_sums_of)(to, 2, 2, false, x, W, b, g, by, F); break;
    case 52: N_(quasi_sums_of)(to, 2, 2, true, x, W, b, g, by, F); break;
    case 58: N_(quasi_sums_of)(to, 2, 8, true, x, W, b, g, by, F); break; /* second derivatives */
    case 92: N_(quasi_sums_of)(to, 4, 2, true, x, W, b, g, by, F); break;
    case 73: N_(quasi_sums_of)(to, 3, 3, true, x, W, b, g, by, F); break;
    default: N_(quasi_sums_of)(to, g->J, K, g->full, x, W, b, g, by, F);
    }
}
