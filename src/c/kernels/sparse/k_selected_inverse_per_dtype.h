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

static void N_(select)(int64_t n, const int64_t *at, const int64_t *row, EL *lo, EL *up, EL *d,
                       int64_t *place, EL *front, EL *work) {
    for (int64_t e = n - 1; e >= 0;) {
        const int64_t s = begins(at, row, e), w = e - s + 1, order = w + at[e + 1] - at[e];
        EL *down = work, *across = work + order;
        N_(gather)(at, row, e, w, order, lo, up, d, place, front);
        for (int64_t j = e; j >= s; j--) {
            const int64_t own = j - s, length = order - own - 1;
            EL *l = lo + at[j], *u = up + at[j], sum = d[j];
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
        e = s - 1;
    }
}

#endif
