/* k_tiny_gemm_per_dtype.h: the loops of k_tiny_gemm.c for one element type. Defined before: T (the
 * scalar), CPLX, X(name). */
#define E_ (CPLX ? 2 : 1) /* scalars of an element */

static INLINE void X(one)(const int64_t m, const int64_t n, const int64_t k, const tiny_job *g,
                          const int64_t ycs, const int64_t bcs, T *y, const T *a, const T *b) {
    for (int64_t i = 0; i < m; i++) {
        T s[LOPK_TINY * E_] = {0};
        for (int64_t l = 0; l < k; l++) {
            const T *al = a + i * g->ars + l * g->acs, *bl = b + l * g->brs;
            const T re = al[0];
#if CPLX
            const T im = g->conj ? -al[1] : al[1];
            for (int64_t j = 0; j < n; j++) {
                s[2 * j] += re * bl[j * bcs] - im * bl[j * bcs + 1];
                s[2 * j + 1] += re * bl[j * bcs + 1] + im * bl[j * bcs];
            }
#else
            for (int64_t j = 0; j < n; j++) s[j] += re * bl[j * bcs];
#endif
        }
        for (int64_t j = 0; j < n; j++)
            for (int e = 0; e < E_; e++) y[i * g->yrs + j * ycs + e] = s[j * E_ + e];
    }
}

static INLINE void X(all)(const int64_t m, const int64_t n, const int64_t k, const tiny_job *g,
                          const int64_t ycs, const int64_t bcs, T *y, const T *a, const T *b) {
    for (int64_t e = 0; e < g->count; e++, y += g->y_step, a += g->a_step, b += g->b_step)
        X(one)(m, n, k, g, ycs, bcs, y, a, b);
}

LOPK_CLONES static void X(run)(const tiny_job *g, T *y, const T *a, const T *b) {
    if (g->ycs != E_ || g->bcs != E_) {
        X(all)(g->m, g->n, g->k, g, g->ycs, g->bcs, y, a, b);
        return;
    }
#define COLUMNS(n)                                                                                 \
    case n:                                                                                        \
        if (n <= 4 && g->m == n && g->k == n)                                                      \
            X(all)(n, n, n, g, E_, E_, y, a, b);                                                   \
        else                                                                                       \
            X(all)(g->m, n, g->k, g, E_, E_, y, a, b);                                             \
        break;
    switch (g->n) {
        COLUMNS(1)
        COLUMNS(2)
        COLUMNS(3)
        COLUMNS(4)
        COLUMNS(5)
        COLUMNS(6)
        COLUMNS(7)
        COLUMNS(8)
    default: break;
    }
#undef COLUMNS
}
#undef E_
