/* k_quasi_own_per_dtype.h: what A^-1 means for the generators of A itself (k_quasi.c), in double
 * precision, real or complex.
 *
 * With A = L D L^H and b_i = a_i - w_i p_i^T, the states of k_quasi_sums_per_dtype.h for G = A^-1
 * are those of A's factor and of its inverse's, both Hermitian:
 *   downwards S <- a_i S a_i^H + D_i w_i w_i^H, R A11^-1 R^H of what lies below row i in A21 = P R;
 *   upwards   M <- b_i^H M b_i + conj(p_i) p_i^T / D_i, P^H Sigma^-1 P of the Schur complement,
 * since A21's part of the inverse is -Sigma^-1 P R A11^-1. So nothing of A^-1 is kept. */

/* S <- a S a^H, J x J; t: J x J. */
static ALWAYS void N_(own_down)(const EL *a, const int64_t J, const bool full, EL *restrict S,
                                EL *restrict t) {
    if (!full) {
        for (int64_t j = 0; j < J; j++)
            for (int64_t l = 0; l < J; l++) S[j * J + l] *= a[j] * CJ(true, a[l]);
        return;
    }
    N_(times)(t, J, J, a, S);
    N_(times_turned)(S, J, J, t, a);
}

static ALWAYS void N_(own_sums_of)(N_(sums) to, const int64_t J, const bool full,
                                   const lopk_quasi *A, const double *D, const EL *W, double by,
                                   EL *restrict F) {
    const EL *p = A->p, *a = A->a;
    const int64_t n = A->n, step = full ? J * J : J, size = J * J;
    EL own[3 * FEW], *S = size <= FEW ? own : F + n * size, *t = S + size, *b = t + size;
    for (int64_t j = 0; j < size; j++) S[j] = 0;
    for (int64_t i = 0; i + 1 < n; i++) {
        const EL *w = W + i * J;
        if (i > 0) N_(own_down)(a + i * step, J, full, S, t);
        for (int64_t j = 0; j < J; j++)
            for (int64_t l = 0; l < J; l++) S[j * J + l] += D[i] * w[j] * CJ(true, w[l]);
        for (int64_t j = 0; j < size; j++) F[(i + 1) * size + j] = S[j];
    }
    EL *M = S;
    for (int64_t j = 0; j < size; j++) M[j] = 0;
    for (int64_t i = n - 1; i >= 0; i--) {
        const EL *f = F + i * size, *w = W + i * J, *pi = p + i * J;
        const bool inner = i > 0 && i < n - 1;
        const double one = 1 / D[i];
        for (int64_t j = 0; j < J; j++) {
            EL sum = 0;
            for (int64_t l = 0; l < J; l++) sum += M[j * J + l] * w[l];
            to.q[i * J + j] = i < n - 1 ? -by * sum : 0;
        }
        for (int64_t j = 0; !inner && j < step; j++) to.a[i * step + j] = 0;
        for (int64_t j = 0; i == 0 && j < J; j++) to.p[j] = 0;
        if (i == 0) break;
        if (inner) { /* t = M b */
            N_(inner)(b, A, J, full, i, W);
            N_(times)(t, J, J, M, b);
            for (int64_t j = 0; j < J; j++)
                for (int64_t l = full ? 0 : j; l < (full ? J : j + 1); l++) {
                    EL sum = 0;
                    for (int64_t c = 0; c < J; c++) sum += t[j * J + c] * f[c * J + l];
                    to.a[i * step + (full ? j * J + l : j)] = -by * sum;
                }
        } else {
            for (int64_t j = 0; j < size; j++) t[j] = 0;
        }
        EL x[FEW], *xi = J <= FEW ? x : b + size;
        for (int64_t c = 0; c < J; c++) {
            EL sum = -pi[c] * one;
            for (int64_t l = 0; l < J; l++) sum += CJ(true, w[l]) * t[l * J + c];
            xi[c] = by * sum;
        }
        for (int64_t j = 0; j < J; j++) {
            EL sum = 0;
            for (int64_t c = 0; c < J; c++) sum += CJ(true, f[j * J + c]) * xi[c];
            to.p[i * J + j] = sum;
        }
        for (int64_t j = 0; j < J; j++) /* Hermitian: what lies below its diagonal, twice */
            for (int64_t c = 0; c <= j; c++) {
                EL sum = CJ(true, pi[j]) * pi[c] * one;
                for (int64_t l = 0; inner && l < J; l++)
                    sum += CJ(true, b[l * J + j]) * t[l * J + c];
                M[j * J + c] = sum;
                M[c * J + j] = CJ(true, sum);
            }
    }
}
LOPK_CLONES_SHORT static void N_(own_sums)(void *out, const lopk_quasi *A, const double *D,
                                           const EL *W, bool mirrored, EL *F) {
    const N_(sums) to = N_(sums_in)(out, A);
    const double by = mirrored ? 2 : 1;
    switch (REAL ? key(A) : 0) {
    case 2: N_(own_sums_of)(to, 1, false, A, D, W, by, F); break;
    case 4: N_(own_sums_of)(to, 2, false, A, D, W, by, F); break;
    case 5: N_(own_sums_of)(to, 2, true, A, D, W, by, F); break;
    case 7: N_(own_sums_of)(to, 3, true, A, D, W, by, F); break;
    case 9: N_(own_sums_of)(to, 4, true, A, D, W, by, F); break;
    default: N_(own_sums_of)(to, A->J, A->full, A, D, W, by, F);
    }
}
