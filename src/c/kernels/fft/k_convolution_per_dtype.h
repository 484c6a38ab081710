/* k_convolution_per_dtype.h: the loops of k_convolution.c for one dtype. */
#if FAM == FAM_F || FAM == FAM_C
#define CLONED LOPK_CLONES
#else
#define CLONED
#endif

/* y[i] += sum_k g[k] x[i + shift - k], all lines contiguous. */
CLONED static void N_(line)(EL *restrict y, int64_t out, const EL *restrict g, int64_t taps,
                            const EL *restrict x, int64_t in, int64_t shift) {
    for (int64_t b0 = 0; b0 < out; b0 += BLOCK) {
        const int64_t b1 = out - b0 < BLOCK ? out : b0 + BLOCK;
        int64_t k = b0 + shift - in + 1 > 0 ? b0 + shift - in + 1 : 0;
        const int64_t end = b1 + shift < taps ? b1 + shift : taps;
        for (; k < end; k++) {
            const EL *from = x + (shift - k);
            if (k + 3 < end && b0 >= k + 3 - shift && b1 <= in + k - shift) {
                const EL g0 = g[k], g1 = g[k + 1], g2 = g[k + 2], g3 = g[k + 3];
                for (int64_t i = b0; i < b1; i++)
                    y[i] = N_(add)(
                        y[i], N_(add)(N_(add)(N_(mul)(g0, from[i]), N_(mul)(g1, from[i - 1])),
                                      N_(add)(N_(mul)(g2, from[i - 2]), N_(mul)(g3, from[i - 3]))));
                k += 3;
                continue;
            }
            const int64_t lo = k - shift > b0 ? k - shift : b0;
            const int64_t hi = in + k - shift < b1 ? in + k - shift : b1;
            const EL g0 = g[k];
            for (int64_t i = lo; i < hi; i++) y[i] = N_(add)(y[i], N_(mul)(g0, from[i]));
        }
    }
}

/* Pairs of lines, level by level; at most LOPK_LEVELS deep. */
static void N_(level)(const conv_walk *w, int64_t l, EL *y, const EL *g, const EL *x) {
    const lopk_conv *c = w->c;
    int64_t first, last;
    wraps(c, l, &first, &last);
    for (int64_t q = first; q <= last; q++) {
        const int64_t shift = c->shift[l] + q * c->in[l];
        if (l >= c->levels - 1 || l >= LOPK_LEVELS - 1) {
            N_(line)(y, c->out[l], g, c->g[l], x, c->in[l], shift);
            continue;
        }
        for (int64_t i = 0; i < c->out[l]; i++) {
            const int64_t top = i + shift + 1 < c->g[l] ? i + shift + 1 : c->g[l];
            for (int64_t k = i + shift - c->in[l] + 1 > 0 ? i + shift - c->in[l] + 1 : 0; k < top;
                 k++)
                N_(level)(w, l + 1, y + i * w->ys[l], g + k * w->gs[l],
                          x + (i + shift - k) * w->xs[l]);
        }
    }
}

static void N_(product)(const lop_mat *y, const conv_args *a, const lop_mat *g, const lop_mat *x) {
    const lopk_conv *c = a->c;
    conv_walk w = {.c = c};
    strides(c->out, c->levels, w.ys);
    strides(c->g, c->levels, w.gs);
    strides(c->in, c->levels, w.xs);
    EL *gs = (EL *)(void *)a->scratch, *xs = gs + g->m + 8, *ys = xs + x->m + 8;
    const EL *from = g->p;
    for (int64_t k = 0; k < g->m; k++) {
        const EL v = from[(a->reversed ? g->m - 1 - k : k) * g->rs];
        gs[k] = a->conj ? N_(conj)(v) : v;
    }
    for (int64_t t = 0; t < y->n; t++) {
        EL *to = (EL *)y->p + t * y->cs, *work = y->rs == 1 ? to : ys;
        const EL *in = (const EL *)x->p + t * x->cs;
        for (int64_t i = 0; i < y->m; i++) work[i] = N_(zero)();
        if (c->flip || x->rs != 1) {
            for (int64_t j = 0; j < x->m; j++) xs[j] = in[(c->flip ? x->m - 1 - j : j) * x->rs];
            in = xs;
        }
        if (x->m > 0 && y->m > 0 && g->m > 0) N_(level)(&w, 0, work, gs, in);
        for (int64_t i = 0; work == ys && i < y->m; i++) to[i * y->rs] = ys[i];
    }
}

/* y += the entries of the levels from l on, at row i and column j so far (raveled). */
static void N_(entry)(const conv_walk *w, int64_t l, const conv_args *a, const lop_mat *y,
                      const lop_mat *g, int64_t i, int64_t j, int64_t at) {
    const lopk_conv *c = w->c;
    if (l >= c->levels || l >= LOPK_LEVELS) {
        const bool one = a->i >= 0;
        const int64_t col = c->flip ? w->N[0] - 1 - j : j;
        EL *to = (EL *)y->p + (one ? 0 : i * y->rs + col * y->cs);
        *to = N_(add)(*to, ((const EL *)g->p)[at * g->rs]);
        return;
    }
    int64_t first, last, i0 = 0, i1 = c->out[l], j0 = 0, j1 = c->in[l];
    if (a->i >= 0) { /* one element */
        const int64_t col = c->flip ? w->N[0] - 1 - a->j : a->j;
        i0 = a->i / w->ys[l] % c->out[l], i1 = i0 + 1;
        j0 = col / w->xs[l] % c->in[l], j1 = j0 + 1;
    }
    wraps(c, l, &first, &last);
    for (int64_t p = i0; p < i1; p++)
        for (int64_t q = first; q <= last; q++) {
            const int64_t s = p + c->shift[l] + q * c->in[l];
            const int64_t from = s - c->g[l] + 1 > j0 ? s - c->g[l] + 1 : j0;
            for (int64_t t = from; t < j1 && t <= s; t++)
                N_(entry)(w, l + 1, a, y, g, i + p * w->ys[l], j + t * w->xs[l],
                          at + (s - t) * w->gs[l]);
        }
}

static void N_(entries)(const lop_mat *y, const conv_args *a, const lop_mat *g, const lop_mat *x) {
    const lopk_conv *c = a->c;
    conv_walk w = {.c = c, .N = {count(c->in, c->levels)}};
    (void)x;
    strides(c->out, c->levels, w.ys);
    strides(c->g, c->levels, w.gs);
    strides(c->in, c->levels, w.xs);
    if (g->m > 0) N_(entry)(&w, 0, a, y, g, 0, 0, 0);
}

/* e[d mod N] += g[d + shift + q n] for the differences d = i - j that occur, once each modulo N. */
static void N_(spread)(const conv_walk *w, int64_t l, EL *e, const lop_mat *g, int64_t at) {
    const lopk_conv *c = w->c;
    if (l >= c->levels || l >= LOPK_LEVELS) {
        *e = N_(add)(*e, ((const EL *)g->p)[at * g->rs]);
        return;
    }
    int64_t first, last, low = 1 - c->in[l];
    const int64_t N = w->N[l];
    if (c->circular && N == c->in[l]) low = 0;
    wraps(c, l, &first, &last);
    for (int64_t q = first; q <= last; q++) {
        const int64_t s = c->shift[l] + q * c->in[l];
        const int64_t from = -s > low ? -s : low;
        const int64_t to = c->g[l] - s < c->out[l] ? c->g[l] - s : c->out[l];
        for (int64_t d = from; d < to; d++)
            N_(spread)(w, l + 1, e + (d < 0 ? d + N : d) * w->ys[l], g, at + (d + s) * w->gs[l]);
    }
}

static void N_(embed)(const lop_mat *e, const conv_args *a, const lop_mat *g, const lop_mat *x) {
    const lopk_conv *c = a->c;
    conv_walk w = {.c = c};
    (void)x;
    for (int64_t l = 0; l < c->levels; l++) w.N[l] = a->N[l];
    strides(w.N, c->levels, w.ys);
    strides(c->g, c->levels, w.gs);
    if (g->m > 0) N_(spread)(&w, 0, e->p, g, 0);
}
#undef CLONED
