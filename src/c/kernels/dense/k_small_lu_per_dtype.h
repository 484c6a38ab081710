/* k_small_lu_per_dtype.h: substitution by a small LU, for one real dtype. See k_small_lu.c. */
#if FAM == FAM_F

/* Column by column; the pivots' reciprocals are numbers. */
LOPK_CLONES static void N_(small_getrs)(int n, const E *restrict f, int64_t ld, const int64_t *ipiv,
                                        E *restrict b) {
    E x[ROWS], recip[ROWS];
    memcpy(x, b, sizeof(E) * (size_t)n);
    for (int k = 0; k < n; k++) {
        const int64_t top = ipiv[k] - 1;
        const E v = x[k];
        x[k] = x[top];
        x[top] = v;
        recip[k] = 1 / f[k * ld + k];
    }
    for (int k = 0; k < n; k++)
        for (int i = k + 1; i < n; i++) x[i] -= f[k * ld + i] * x[k];
    for (int k = n - 1; k >= 0; k--) {
        x[k] *= recip[k];
        for (int i = 0; i < k; i++) x[i] -= f[k * ld + i] * x[k];
    }
    memcpy(b, x, sizeof(E) * (size_t)n);
}
#endif
