/* k_hadamard_per_dtype.h: the butterflies of k_hadamard.c for one dtype. */
#if FAM == FAM_F || FAM == FAM_C
#define CLONED LOPK_CLONES
#else
#define CLONED
#endif

/* a, b <- a + b, a - b, n elements each, contiguous. */
CLONED static void N_(wing)(EL *restrict a, EL *restrict b, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const EL u = a[i], v = b[i];
        a[i] = N_(add)(u, v);
        b[i] = N_(sub)(u, v);
    }
}

static void N_(hadamard)(const lop_mat *y) {
    EL *p = y->p;
    const bool rows = y->cs == 1 && y->n > 1; /* whole rows at once */
    for (int64_t t = 0; t < (rows ? 1 : y->n); t++, p += y->cs)
        for (int64_t h = 1; h < y->m; h *= 2)
            for (int64_t i = 0; i < y->m; i += 2 * h) {
                if (!rows && y->rs == 1) {
                    N_(wing)(p + i, p + i + h, h);
                    continue;
                }
                for (int64_t k = i; k < i + h; k++)
                    N_(wing)(p + k * y->rs, p + (k + h) * y->rs, rows ? y->n : 1);
            }
}
#undef CLONED
