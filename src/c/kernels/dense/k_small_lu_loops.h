/* k_small_lu_loops.h: LU of one small matrix by vectors of BYTES, of numbers E, whose bits are a
 * BITS that is at most BITS_MAX, normal from LEAST on; X makes a name. See k_small_lu.c. */

enum { X(lanes) = BYTES / sizeof(E), X(rows) = BYTES, X(most) = X(rows) / X(lanes) };
typedef E X(vec) __attribute__((vector_size(BYTES), may_alias));
typedef BITS X(ivec) __attribute__((vector_size(BYTES), may_alias));
#define V X(vec)
#define IV X(ivec)
#define SPLAT(i) ((IV){0} + (BITS)(i))

/* Of the rows whose place is k or later the place of one that is largest in this column. */
INLINE int X(pivot)(const V *col, const IV *place, int n, int k, int vecs) {
    const IV low = SPLAT(X(rows) - 1), all = SPLAT(BITS_MAX);
    V best = {0};
    E b[X(lanes)];
    BITS bits;
    for (int h = 0; h < vecs; h++) {
        const IV key = (((IV)col[h] & all & ~low) | (low - place[h])) & (IV)(place[h] >= SPLAT(k)),
                 more = (IV)((V)key > best);
        best = (V)((key & more) | ((IV)best & ~more));
    }
    memcpy(b, &best, sizeof b);
    for (int half = X(lanes) / 2; half > 0; half /= 2)
        for (int t = 0; t < half; t++) b[t] = b[t + half] > b[t] ? b[t + half] : b[t];
    memcpy(&bits, b, sizeof bits);
    const int at = X(rows) - 1 - (int)(bits & (X(rows) - 1));
    return at >= k && at < n ? at : k;
}

/* Is a bit of it set? */
INLINE bool X(any)(IV bits) {
    BITS b[X(lanes)], all = 0;
    memcpy(b, &bits, sizeof b);
    for (int t = 0; t < X(lanes); t++) all |= b[t];
    return all != 0;
}

/* Columns of `vecs` vectors each. False: a pivot below the normal numbers, or NaN; or a multiplier
 * above 1 by more than the pivots' places may hide, as beside what is infinite. */
INLINE bool X(eliminate)(int n, int vecs, V *a, IV *place, int *row_at, int64_t *ipiv) {
    const V most = (V){0} + (E)1.01;
    IV wild = {0};
    for (int k = 0; k < n; k++) {
        V *col = a + k * vecs, l[X(most)];
        const int top = X(pivot)(col, place, n, k, vecs), row = row_at[top];
        const E pivot = ((const E *)col)[row];
        if (!(pivot >= LEAST || pivot <= -LEAST)) return false;
        const E recip = 1 / pivot;
        ipiv[k] = top + 1;
        row_at[top] = row_at[k];
        row_at[k] = row;
        for (int h = 0; h < vecs; h++) {
            const IV from = (IV)(place[h] == SPLAT(top)), to = (IV)(place[h] == SPLAT(k));
            place[h] = (from & SPLAT(k)) | (to & ~from & SPLAT(top)) | (place[h] & ~(from | to));
            const IV below = (IV)(place[h] > SPLAT(k)), by = (IV)(col[h] * recip) & below;
            l[h] = (V)by;
            wild |= ~((IV)((V)by <= most) & (IV)((V)by >= -most));
            col[h] = (V)(by | ((IV)col[h] & ~below));
        }
        for (int j = k + 1; j < n; j++) {
            V *c = a + j * vecs;
            const E u = ((const E *)c)[row];
            for (int h = 0; h < vecs; h++) c[h] -= l[h] * u;
        }
    }
    return !X(any)(wild);
}

#define WITH(some)                                                                                 \
    case some:                                                                                     \
        done = X(eliminate)(n, some < X(most) ? some : X(most), a, place, row_at, ipiv);           \
        break
static bool X(getrf)(int n, void *matrix, int64_t ld, int64_t *ipiv) {
    V a[X(rows) * X(most)];
    IV place[X(most)];
    int row_at[X(rows)];
    BITS first[X(rows)];
    E *p = matrix;
    const int vecs = (n + X(lanes) - 1) / X(lanes), padded = vecs * X(lanes);
    const E *x = (const E *)a;
    bool done = false;
    for (int i = 0; i < X(rows); i++) {
        first[i] = i < n ? (BITS)i : -1;
        row_at[i] = i;
    }
    memcpy(place, first, sizeof place);
    for (int j = 0; j < n; j++) {
        a[j * vecs + vecs - 1] = (V){0};
        memcpy(a + j * vecs, p + j * ld, sizeof(E) * (size_t)n);
    }
    switch (vecs) { /* known numbers of vectors stay in registers */
        WITH(1);
        WITH(2);
        WITH(3);
        WITH(4);
        WITH(5);
        WITH(6);
        WITH(7);
        WITH(8);
    }
    for (int j = 0; done && j < n; j++)
        for (int i = 0; i < n; i++) p[j * ld + i] = x[j * padded + row_at[i]];
    return done;
}
#undef WITH
#undef V
#undef IV
#undef SPLAT
