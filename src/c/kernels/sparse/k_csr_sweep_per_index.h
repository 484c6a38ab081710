/* k_csr_sweep_per_index.h: the sweep of k_csr_sweep.c for one dtype of vectors (k_elem.h), one of
 * stored entries and one index type. Macros: ST an entry, WIDE(a) an entry as EL, IX the index
 * type, S_(name) the function's name. False at the first bad index. */

/* u <- A v - alpha u for rows first to last. */
static bool S_(forth)(const step_args *g, int64_t first, int64_t last) {
    const IX *ptr = g->ptr, *ix = g->index;
    const ST *data = g->data;
    const EL *v = g->v;
    EL *restrict u = g->u;
    const uint64_t limit = (uint64_t)g->n;
    int64_t p = (int64_t)ptr[first];
    if (p < 0) return false;
    for (int64_t i = first; i < last; i++) {
        const int64_t end = (int64_t)ptr[i + 1];
        if (end < p || end > g->nnz) return false;
        EL s = N_(zero)();
        for (; p < end; p++) {
            const int64_t j = (int64_t)ix[p];
            if ((uint64_t)j >= limit) return false;
            s = N_(add)(s, N_(mul)(WIDE(data[p]), v[j]));
        }
        u[i] = g->alpha != 0 ? N_(sub)(s, N_(step_times)(g->alpha, u[i])) : s;
    }
    return true;
}

/* w <- w + A^H u for rows first to last. */
static bool S_(back)(const step_args *g, int64_t first, int64_t last) {
    const IX *ptr = g->ptr, *ix = g->index;
    const ST *data = g->data;
    const EL *u = g->u;
    EL *restrict w = g->w;
    const uint64_t limit = (uint64_t)g->n;
    int64_t p = (int64_t)ptr[first];
    if (p < 0) return false;
    for (int64_t i = first; i < last; i++) {
        const int64_t end = (int64_t)ptr[i + 1];
        if (end < p || end > g->nnz) return false;
        const EL s = u[i];
        for (; p < end; p++) {
            const int64_t j = (int64_t)ix[p];
            if ((uint64_t)j >= limit) return false;
            w[j] = N_(add)(w[j], N_(mulc)(WIDE(data[p]), s));
        }
    }
    return true;
}

/* Both of one row before the next: its entries, and where v and w are, are at hand then. */
static bool S_(rows)(const step_args *g) {
    const IX *ptr = g->ptr, *ix = g->index;
    const ST *data = g->data;
    const EL *restrict v = g->v;
    EL *restrict u = g->u, *restrict w = g->w;
    const uint64_t limit = (uint64_t)g->n;
    int64_t start = g->m > 0 ? (int64_t)ptr[0] : 0;
    if (start < 0) return false;
    for (int64_t i = 0; i < g->m; i++) {
        const int64_t end = (int64_t)ptr[i + 1];
        if (end < start || end > g->nnz) return false;
        EL s = N_(zero)();
        for (int64_t p = start; p < end; p++) {
            const int64_t j = (int64_t)ix[p];
            if ((uint64_t)j >= limit) return false;
            s = N_(add)(s, N_(mul)(WIDE(data[p]), v[j]));
        }
        s = g->alpha != 0 ? N_(sub)(s, N_(step_times)(g->alpha, u[i])) : s;
        u[i] = s;
        for (int64_t p = start; p < end; p++) {
            const int64_t j = (int64_t)ix[p];
            if ((uint64_t)j >= limit) return false;
            w[j] = N_(add)(w[j], N_(mulc)(WIDE(data[p]), s));
        }
        start = end;
    }
    return true;
}

static bool S_(step)(const step_args *g, double *sum) {
    const IX *ptr = g->ptr;
    const EL *u = g->u;
    double total = 0;
    const bool rows = g->v && g->w && g->n <= BESIDE / (int64_t)sizeof(EL);
    if (rows && !S_(rows)(g)) return false;
    for (int64_t first = rows ? g->m : 0, last; first < g->m; first = last) {
        const uint64_t start = (uint64_t)ptr[first]; /* not checked yet */
        last = first + 1;
        while (last < g->m && (uint64_t)ptr[last] - start < (uint64_t)g->near) last++;
        if (g->v && !S_(forth)(g, first, last)) return false;
        if (g->w && !S_(back)(g, first, last)) return false;
    }
    for (int64_t first = 0; first < g->m; first += ROWS) {
        const int64_t last = g->m - first < ROWS ? g->m : first + ROWS;
        double part = 0;
        for (int64_t i = first; i < last; i++) part += N_(step_square)(u[i]);
        total += part;
    }
    *sum = total;
    return true;
}
