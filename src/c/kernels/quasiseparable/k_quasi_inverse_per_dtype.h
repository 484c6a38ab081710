/* k_quasi_inverse_per_dtype.h: the diagonal of the inverse from LU with exchanges of a band
 * (k_quasi_lu.c), for one dtype: EL, RE, N_.
 *
 * With M = P_1 L_1 P_2 L_2 ... U, let Y be the inverse of what is left after k + 1 eliminations, u
 * the pivot of row k, v the row of U beyond it and l the column of L. What is left after k has,
 * before its rows are exchanged, the inverse
 *   (1 / u + v Y l / u, -v Y / u; -Y l, Y), columns k and ipiv_k exchanged.
 * v has 2 w numbers and l w, and so 2 w rows and w + 1 columns at the top left of Y are enough;
 * nothing exchanges column k + w after step k (Erisman and Tinney 1975, Commun. ACM 18; here with
 * exchanges). */

static void N_(selected)(double *out, const void *lu, const lopk_quasi *g, void *work) {
    const lop_mat ab = band(lu, g);
    const int64_t N = ab.n, w = width(g->J, g->full), B = 2 * g->J + 1, rows = 2 * w, ld = w + 2;
    const int64_t *swap = exchanges(lu);
    EL *Y = work, *down = Y + (rows + 1) * ld, *right = down + rows;
    for (int64_t i = 0; i < (rows + 1) * ld; i++) Y[i] = 0;
    for (int64_t k = N - 1; k >= 0; k--) {
        const EL *column = (const EL *)ab.p + k * ab.cs + 2 * w, u = *column;
        const int64_t below = N - 1 - k < w ? N - 1 - k : w,
                      beyond = N - 1 - k < rows ? N - 1 - k : rows, other = swap[k] - 1 - k;
        EL corner = 1;
        for (int64_t r = 0; r < rows; r++) {
            EL sum = 0;
            for (int64_t t = 0; t < below; t++) sum -= Y[r * ld + t] * column[t + 1];
            down[r] = sum;
        }
        for (int64_t c = 0; c < w; c++) right[c] = 0;
        for (int64_t t = 0; t < beyond; t++) {
            const EL v = *((const EL *)ab.p + (k + t + 1) * ab.cs + 2 * w - t - 1);
            corner -= v * down[t];
            for (int64_t c = 0; c < w; c++) right[c] -= v * Y[t * ld + c];
        }
        memmove(Y + ld + 1, Y, (size_t)((rows - 1) * ld) * sizeof(EL)); /* one row and column on */
        Y[0] = corner / u;
        for (int64_t c = 0; c < w; c++) Y[c + 1] = right[c] / u;
        for (int64_t r = 0; r + 1 < rows; r++) Y[(r + 1) * ld] = down[r];
        for (int64_t r = 0; other > 0 && r < rows; r++) {
            const EL kept = Y[r * ld];
            Y[r * ld] = Y[r * ld + other];
            Y[r * ld + other] = kept;
        }
        for (int64_t c = k == 0 ? 0 : w; c <= w; c++) /* at the end all that are left */
            if (k + c < N && (k + c) % B == g->J) out[(k + c) / B] = RE(Y[c * ld + c]);
    }
}
