/* k_entry_sums_per_dtype.h: runs of entries for one dtype; see k_entry_sums.c. */

static void N_(whole)(const source *from, const run_of *r) {
    EL *y = from->y->p;
    const EL *a = from->a->p;
    const int64_t by = r->di * from->a->rs + r->dj * from->a->cs, ys = r->ds * from->y->rs;
    a += r->i * from->a->rs + r->j * from->a->cs;
    y += r->s * from->y->rs;
    if (r->ds) {
        for (int64_t t = 0; t < r->count; t++) y[t * ys] = N_(add)(y[t * ys], a[t * by]);
        return;
    }
    EL sum = N_(zero)();
    for (int64_t t = 0; t < r->count; t++) sum = N_(add)(sum, a[t * by]);
    *y = N_(add)(*y, sum);
}

LOPK_CLONES static EL N_(inner)(const EL *a, const EL *b, int64_t n) {
    EL sum[4] = {N_(zero)(), N_(zero)(), N_(zero)(), N_(zero)()};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int64_t l = 0; l < 4; l++) sum[l] = N_(add)(sum[l], N_(mul)(a[i + l], b[i + l]));
    for (; i < n; i++) sum[0] = N_(add)(sum[0], N_(mul)(a[i], b[i]));
    return N_(add)(N_(add)(sum[0], sum[1]), N_(add)(sum[2], sum[3]));
}
/* Rows of the packed factors follow each other: a run along a diagonal is one inner product. */
static void N_(pair)(const source *from, const run_of *r) {
    EL *y = (EL *)from->y->p + r->s * from->y->rs;
    const int64_t k = from->k, ys = r->ds * from->y->rs;
    const EL *u = (const EL *)from->u + r->i * k, *w = (const EL *)from->w + r->j * k;
    if (r->ds == 0 && (r->count == 1 || (r->di == 1 && r->dj == 1))) {
        *y = N_(add)(*y, N_(inner)(u, w, r->count * k));
        return;
    }
    for (int64_t t = 0; t < r->count; t++)
        y[t * ys] = N_(add)(y[t * ys], N_(inner)(u + t * r->di * k, w + t * r->dj * k, k));
}

static void N_(band)(const source *from, const run_of *r) {
    EL *y = (EL *)from->y->p + r->s * from->y->rs;
    const lop_mat *ab = from->a;
    for (int64_t t = 0; t < r->count; t++) {
        const int64_t j = r->j + t * r->dj, at = from->above + r->i + t * r->di - j;
        EL *to = y + t * r->ds * from->y->rs;
        if (at >= 0 && at < ab->n)
            *to = N_(add)(*to, ((const EL *)ab->p)[j * ab->rs + at * ab->cs]);
    }
}
