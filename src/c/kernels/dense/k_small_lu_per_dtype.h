/* k_small_lu_per_dtype.h: LU of one small matrix, for one real dtype. See k_small_lu.c. */
#if FAM == FAM_F

enum { N_(lanes) = 64 / sizeof(E), N_(most) = ROWS * sizeof(E) / 64 }; /* vectors of a column */
enum { N_(three) = N_(most) < 3 ? N_(most) : 3 };
typedef E N_(vec) __attribute__((vector_size(64), may_alias));
typedef N_(bits_of) N_(ivec) __attribute__((vector_size(64), may_alias));
#define V N_(vec)
#define IV N_(ivec)
#define BITS N_(bits_of)
#define INLINE static inline __attribute__((always_inline))
#define SPLAT(i) ((IV){0} + (BITS)(i))

/* Of the rows whose place is k or later the place of one that is largest in this column. */
INLINE int N_(pivot)(const V *col, const IV *place, int n, int k, int vecs) {
    const IV low = SPLAT(ROWS - 1), all = SPLAT(N_(no_sign));
    V best = {0};
    E b[N_(lanes)];
    BITS bits;
    for (int h = 0; h < vecs; h++) {
        const IV key = (((IV)col[h] & all & ~low) | (low - place[h])) & (IV)(place[h] >= SPLAT(k)),
                 more = (IV)((V)key > best);
        best = (V)((key & more) | ((IV)best & ~more));
    }
    memcpy(b, &best, sizeof b);
    for (int half = N_(lanes) / 2; half > 0; half /= 2)
        for (int t = 0; t < half; t++) b[t] = b[t + half] > b[t] ? b[t + half] : b[t];
    memcpy(&bits, b, sizeof bits);
    const int at = ROWS - 1 - (int)(bits & (ROWS - 1));
    return at >= k && at < n ? at : k;
}

/* Columns of `vecs` vectors each. False: a pivot below the normal numbers, or NaN. */
INLINE bool N_(eliminate)(int n, int vecs, V *a, IV *place, int *row_at, int64_t *ipiv) {
    const E least = sizeof(E) == sizeof(float) ? (E)FLT_MIN : (E)DBL_MIN;
    for (int k = 0; k < n; k++) {
        V *col = a + k * vecs, l[N_(most)];
        const int top = N_(pivot)(col, place, n, k, vecs), row = row_at[top];
        const E pivot = ((const E *)col)[row];
        if (!(pivot >= least || pivot <= -least)) return false;
        const E recip = 1 / pivot;
        ipiv[k] = top + 1;
        row_at[top] = row_at[k];
        row_at[k] = row;
        for (int h = 0; h < vecs; h++) {
            const IV from = (IV)(place[h] == SPLAT(top)), to = (IV)(place[h] == SPLAT(k));
            place[h] = (from & SPLAT(k)) | (to & ~from & SPLAT(top)) | (place[h] & ~(from | to));
            const IV below = (IV)(place[h] > SPLAT(k)), by = (IV)(col[h] * recip) & below;
            l[h] = (V)by;
            col[h] = (V)(by | ((IV)col[h] & ~below));
        }
        for (int j = k + 1; j < n; j++) {
            V *c = a + j * vecs;
            const E u = ((const E *)c)[row];
            for (int h = 0; h < vecs; h++) c[h] -= l[h] * u;
        }
    }
    return true;
}

LOPK_CLONES static bool N_(small_getrf)(int n, E *p, int64_t ld, int64_t *ipiv) {
    V a[ROWS * N_(most)];
    IV place[N_(most)];
    int row_at[ROWS];
    BITS first[ROWS];
    const int vecs = (n + N_(lanes) - 1) / N_(lanes), padded = vecs * N_(lanes);
    const E *x = (const E *)a;
    bool done;
    for (int i = 0; i < ROWS; i++) {
        first[i] = i < n ? (BITS)i : -1;
        row_at[i] = i;
    }
    memcpy(place, first, sizeof place);
    for (int j = 0; j < n; j++) {
        a[j * vecs + vecs - 1] = (V){0};
        memcpy(a + j * vecs, p + j * ld, sizeof(E) * (size_t)n);
    }
    switch (vecs) { /* known numbers of vectors stay in registers */
    case 1: done = N_(eliminate)(n, 1, a, place, row_at, ipiv); break;
    case 2: done = N_(eliminate)(n, 2, a, place, row_at, ipiv); break;
    case 3: done = N_(eliminate)(n, N_(three), a, place, row_at, ipiv); break;
    default: done = N_(eliminate)(n, N_(most), a, place, row_at, ipiv);
    }
    for (int j = 0; done && j < n; j++)
        for (int i = 0; i < n; i++) p[j * ld + i] = x[j * padded + row_at[i]];
    return done;
}

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
#undef V
#undef IV
#undef BITS
#undef INLINE
#undef SPLAT
#endif
