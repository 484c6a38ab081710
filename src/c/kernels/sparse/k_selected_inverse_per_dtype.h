/* k_selected_inverse_per_dtype.h: the loops of k_selected_inverse.c for one float dtype. */
#if FAM == FAM_F || FAM == FAM_C

/* One row w of the dense copy: gives w . l, and out -= u w. */
LOPK_CLONES static EL N_(both)(int64_t n, const EL *restrict w, const EL *restrict l, EL u,
                               EL *restrict out) {
    EL sum[8];
    for (int i = 0; i < 8; i++) sum[i] = N_(zero)();
    int64_t k = 0;
    for (; k + 8 <= n; k += 8)
        for (int i = 0; i < 8; i++) {
            sum[i] = N_(add)(sum[i], N_(mul)(w[k + i], l[k + i]));
            out[k + i] = N_(sub)(out[k + i], N_(mul)(u, w[k + i]));
        }
    for (; k < n; k++) {
        sum[0] = N_(add)(sum[0], N_(mul)(w[k], l[k]));
        out[k] = N_(sub)(out[k], N_(mul)(u, w[k]));
    }
    for (int i = 1; i < 8; i++) sum[0] = N_(add)(sum[0], sum[i]);
    return sum[0];
}

/* What is known of the inverse at the rows below the supernode, from place `w` of the copy on. */
static void N_(gather)(const int64_t *at, const int64_t *row, int64_t e, int64_t w, int64_t order,
                       const EL *lo, const EL *up, const EL *d, int64_t *place, EL *front) {
    const int64_t *below = row + at[e];
    for (int64_t k = 0; k < order - w; k++) place[below[k]] = w + k;
    for (int64_t k = w; k < order; k++) {
        const int64_t a = below[k - w];
        front[k * order + k] = d[a];
        for (int64_t q = at[a]; q < at[a + 1]; q++) {
            const int64_t i = place[row[q]];
            if (i < 0) continue;
            front[i * order + k] = lo[q];
            front[k * order + i] = up[q];
        }
    }
    for (int64_t k = 0; k < order - w; k++) place[below[k]] = -1;
}

/* The same out of the copy `last` of the supernode s.. e of before, among whose columns, or below
 * which, all these rows are: so it is where the first of them is one of the columns. */
static void N_(narrow)(const int64_t *below, int64_t count, int64_t w, int64_t order, int64_t s,
                       int64_t e, const int64_t *rows, int64_t all, const EL *last, int64_t *from,
                       EL *front) {
    const int64_t more = all - (e - s + 1);
    for (int64_t k = 0, p = 0; k < count; k++) {
        const bool own = below[k] <= e || more == 0;
        while (!own && p + 1 < more && rows[p] < below[k]) p++;
        from[k] = !own ? e - s + 1 + p : below[k] <= e ? below[k] - s : 0;
    }
    for (int64_t k = 0; k < count; k++) {
        const EL *line = last + from[k] * all;
        EL *out = front + (w + k) * order + w;
        for (int64_t i = 0; i < count; i++) out[i] = line[from[i]];
    }
}

/* Column j, at place `own` of the copy, of what stands behind it there. */
static void N_(column)(int64_t j, int64_t own, int64_t order, const int64_t *at, EL *lo, EL *up,
                       EL *d, EL *front, EL *work) {
    const int64_t length = order - own - 1;
    EL *down = work, *across = work + order, *l = lo + at[j], *u = up + at[j], sum = d[j];
    for (int64_t k = 0; k < length; k++) across[k] = N_(zero)();
    for (int64_t k = 0; k < length; k++) {
        const EL *line = front + (own + 1 + k) * order + own + 1;
        down[k] = N_(sub)(N_(zero)(), N_(both)(length, line, l, u[k], across));
        sum = N_(sub)(sum, N_(mul)(u[k], down[k]));
    }
    for (int64_t k = 0; k < length; k++) {
        front[(own + 1 + k) * order + own] = l[k] = down[k];
        front[own * order + own + 1 + k] = u[k] = across[k];
    }
    front[own * order + own] = d[j] = sum;
}

/* Columns j .. j + w - 1 of a supernode read into L (length x w), U (w x length) and the triangles
 * T and V on the diagonal; D^-1 put on that of X. */
static void N_(unpack)(int64_t j, int64_t w, int64_t length, const int64_t *at, const EL *lo,
                       const EL *up, const EL *d, EL *L, EL *U, EL *T, EL *V, EL *X) {
    for (int64_t i = 0; i < w * w; i++) T[i] = V[i] = X[i] = N_(zero)();
    for (int64_t i = 0; i < w; i++) {
        const EL *l = lo + at[j + i], *u = up + at[j + i];
        const int64_t inner = w - i - 1;
        for (int64_t k = 0; k < inner; k++) {
            T[(i + 1 + k) * w + i] = l[k];
            V[i * w + i + 1 + k] = u[k];
        }
        for (int64_t k = 0; k < length; k++) {
            L[k * w + i] = l[inner + k];
            U[i * length + k] = u[inner + k];
        }
        X[i * w + i] = d[j + i];
    }
}

/* The same of w columns of a supernode at once, by products of matrices. */
static lop_status N_(panel)(int64_t j, int64_t w, int64_t own, int64_t order, const int64_t *at,
                            EL *lo, EL *up, EL *d, EL *front, EL *work) {
    const int64_t after = own + w, length = order - after;
    EL *L = work, *U = L + length * w, *T = U + length * w, *V = T + w * w, *X = V + w * w;
    N_(unpack)(j, w, length, at, lo, up, d, L, U, T, V, X);
    const lop_dtype dt = LOPK_CAT(LOP_, DT);
    const lop_mat t = {T, w, w, w, 1, dt}, v = {V, w, w, w, 1, dt}, x = {X, w, w, w, 1, dt},
                  xt = {X, w, w, 1, w, dt}, lt = {L, w, length, 1, w, dt},
                  l = {L, length, w, w, 1, dt}, u = {U, w, length, length, 1, dt},
                  inner = {front + after * order + after, length, length, order, 1, dt},
                  down = {front + after * order + own, length, w, order, 1, dt},
                  across = {front + own * order + after, w, length, order, 1, dt},
                  corner = {front + own * order + own, w, w, order, 1, dt};
    lop_status st = lopk_trsm(&v, false, true, 'N', &x); /* V^-1 D^-1 T^-1 */
    if (st == LOP_OK) st = lopk_trsm(&t, true, true, 'T', &xt);
    for (int64_t i = 0; i < w; i++)
        memcpy(front + (own + i) * order + own, X + i * w, (size_t)w * sizeof *X);
    if (st == LOP_OK && length > 0) {
        st = lopk_trsm(&t, true, true, 'T', &lt);
        if (st == LOP_OK) st = lopk_trsm(&v, false, true, 'N', &u);
        for (int64_t i = 0; i < 2 * length * w; i++) L[i] = N_(sub)(N_(zero)(), L[i]);
        lopk_gemm(&down, &inner, false, &l, false);
        lopk_gemm(&across, &u, false, &inner, false);
        lopk_gemm(&corner, &u, false, &down, true);
    }
    for (int64_t i = 0; i < w; i++) {
        const EL *row = front + (own + i) * order;
        d[j + i] = row[own + i];
        for (int64_t k = own + i + 1, p = at[j + i]; k < order; k++, p++) {
            lo[p] = front[k * order + own + i];
            up[p] = row[k];
        }
    }
    return st;
}

/* The columns s.. e of a supernode, from the last one. */
static lop_status N_(supernode)(int64_t s, int64_t e, int64_t order, const int64_t *at, EL *lo,
                                EL *up, EL *d, EL *front, EL *work) {
    lop_status st = LOP_OK;
    for (int64_t j = e + 1; st == LOP_OK && j > s;) {
        const int64_t wide = j - s < PANEL ? j - s : PANEL;
        const bool many = wide >= FEWEST && order >= ORDER;
        j -= many ? wide : 1;
        if (many)
            st = N_(panel)(j, wide, j - s, order, at, lo, up, d, front, work);
        else
            N_(column)(j, j - s, order, at, lo, up, d, front, work);
    }
    return st;
}

static lop_status N_(select)(int64_t n, const int64_t *at, const int64_t *row, EL *lo, EL *up,
                             EL *d, int64_t *place, int64_t *from, EL *front, EL *last, EL *work) {
    lop_status st = LOP_OK;
    int64_t first = n, end = -1, all = 0; /* columns of the supernode of before, and its order */
    for (int64_t e = n - 1; st == LOP_OK && e >= 0;) {
        const int64_t s = begins(at, row, e), w = e - s + 1, below = at[e + 1] - at[e],
                      order = w + below;
        if (below && row[at[e]] >= first && row[at[e]] <= end)
            N_(narrow)(row + at[e], below, w, order, first, end, row + at[end], all, last, from,
                       front);
        else
            N_(gather)(at, row, e, w, order, lo, up, d, place, front);
        st = N_(supernode)(s, e, order, at, lo, up, d, front, work);
        EL *other = last;
        last = front;
        front = other;
        first = s;
        end = e;
        all = order;
        e = s - 1;
    }
    return st;
}

#endif
