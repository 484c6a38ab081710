/* k_sparse_pair_per_index.h: two sparse factors, one dtype and index type. False at the first bad
 * index. */

/* Entries of row i, checked. */
static inline bool S_(span)(const lopk_factor *f, int64_t i, int64_t *from, int64_t *to) {
    const IX *ptr = f->ptr;
    *from = (int64_t)ptr[i];
    *to = (int64_t)ptr[i + 1];
    return *from >= 0 && *to >= *from && *to <= f->nnz;
}

/* Writes f by rows into `to`, whose arrays are its own: sorted by counting. */
static bool S_(by_rows)(const lopk_factor *f, lopk_factor *to, void *ptrs, void *indices,
                        void *values) {
    IX *ptr = ptrs, *index = indices;
    EL *data = values;
    const IX *major = f->index, *other = f->ptr;
    const EL *el = f->data;
    const bool columns = f->format == LOPK_BY_COLUMNS;
    int64_t p, end, first = 0;
    memset(ptr, 0, ((size_t)f->m + 1) * sizeof(IX));
    for (int64_t j = 0; j < (columns ? f->n : 1); j++) {
        p = 0;
        end = f->nnz;
        if (columns && !S_(span)(f, j, &p, &end)) return false;
        for (; p < end; p++) {
            if ((uint64_t)major[p] >= (uint64_t)f->m) return false;
            ptr[(uint64_t)major[p] + 1]++;
        }
    }
    for (int64_t i = 0; i < f->m; i++) ptr[i + 1] = (IX)(ptr[i + 1] + ptr[i]);
    const int64_t total = (int64_t)ptr[f->m];
    if (total > f->nnz) return false; /* columns that overlap */
    for (int64_t j = 0; j < (columns ? f->n : 1); j++) {
        p = 0;
        end = f->nnz;
        if (columns && !S_(span)(f, j, &p, &end)) return false;
        for (; p < end; p++) {
            const uint64_t i = (uint64_t)major[p];
            if (i >= (uint64_t)f->m) return false;
            const int64_t t = (int64_t)ptr[i]++;
            if ((uint64_t)t >= (uint64_t)total) return false;
            index[t] = columns ? (IX)j : other[p];
            data[t] = el[p];
        }
    }
    for (int64_t i = 0; i < f->m; i++) { /* each pointer has become the next one */
        const IX was = ptr[i];
        ptr[i] = (IX)first;
        first = (int64_t)was;
    }
    *to = *f;
    to->format = LOPK_BY_ROWS;
    to->index = index;
    to->ptr = ptr;
    to->data = data;
    return true;
}

/* y[i, :] += v B[k, :]. */
static inline bool S_(add_row)(const lop_mat *y, int64_t i, EL v, const lopk_factor *b, int64_t k) {
    const IX *index = b->index;
    const EL *data = b->data;
    EL *row = (EL *)y->p + i * y->rs;
    int64_t q, end;
    if (!S_(span)(b, k, &q, &end)) return false;
    for (; q < end; q++) {
        const int64_t j = (int64_t)index[q];
        if ((uint64_t)j >= (uint64_t)b->n) return false;
        EL *t = row + j * y->cs;
        *t = N_(add)(*t, N_(mul)(v, b->conj ? N_(conj)(data[q]) : data[q]));
    }
    return true;
}

/* A by rows or by columns, B by rows. */
static bool S_(dense)(const lop_mat *y, const lopk_factor *a, const lopk_factor *b, const void *d) {
    const bool columns = a->format == LOPK_BY_COLUMNS;
    const IX *index = a->index;
    const EL *data = a->data, *mid = d;
    int64_t p, end;
    for (int64_t major = 0; major < (columns ? a->n : a->m); major++) {
        if (!S_(span)(a, major, &p, &end)) return false;
        for (; p < end; p++) {
            const int64_t minor = (int64_t)index[p], i = columns ? minor : major,
                          k = columns ? major : minor;
            if ((uint64_t)minor >= (uint64_t)(columns ? a->m : a->n)) return false;
            EL v = a->conj ? N_(conj)(data[p]) : data[p];
            if (mid) v = N_(mul)(v, mid[k]);
            if (!S_(add_row)(y, i, v, b, k)) return false;
        }
    }
    return true;
}

/* Row `at` of f, spread over w, or wiped from it. */
static bool S_(spread)(const lopk_factor *f, int64_t at, EL *w, unsigned char *mark, bool wipe) {
    const IX *index = f->index;
    const EL *data = f->data;
    int64_t p, end;
    if (!S_(span)(f, at, &p, &end)) return false;
    for (; p < end; p++) {
        const int64_t j = (int64_t)index[p];
        if ((uint64_t)j >= (uint64_t)f->n) return false;
        const EL v = f->conj ? N_(conj)(data[p]) : data[p];
        w[j] = wipe ? N_(zero)() : N_(add)(w[j], v);
        mark[j] = !wipe;
    }
    return true;
}

/* A by rows, `bt` the transpose of B by rows: y[t] = A[i, :] D B[:, j]. */
static bool S_(inner)(const lop_mat *y, const lopk_factor *a, const lopk_factor *bt, const void *d,
                      int64_t k, void *work, unsigned char *mark) {
    const IX *index = bt->index;
    const EL *data = bt->data, *mid = d;
    EL *w = work, *out = y->p;
    int64_t p, end;
    for (int64_t t = 0; t < y->m; t++) {
        const int64_t i = t + (k < 0 ? -k : 0), j = t + (k > 0 ? k : 0);
        EL s = N_(zero)();
        if (!S_(spread)(a, i, w, mark, false) || !S_(span)(bt, j, &p, &end)) return false;
        for (; p < end; p++) {
            const int64_t q = (int64_t)index[p];
            if ((uint64_t)q >= (uint64_t)bt->n) return false;
            if (!mark[q]) continue;
            const EL v = mid ? N_(mul)(w[q], mid[q]) : w[q];
            s = N_(add)(s, N_(mul)(v, bt->conj ? N_(conj)(data[p]) : data[p]));
        }
        out[t * y->rs] = s;
        if (!S_(spread)(a, i, w, mark, true)) return false;
    }
    return true;
}

/* `at` the transpose of A by rows, B by rows: y += (A[:, q] D[q] B[q, :])'s diagonal, q by q. */
static bool S_(outer)(const lop_mat *y, const lopk_factor *at, const lopk_factor *b, const void *d,
                      int64_t k, void *work, unsigned char *mark) {
    const IX *index = b->index;
    const EL *data = b->data, *mid = d;
    EL *w = work, *out = y->p;
    int64_t p, end;
    for (int64_t q = 0; q < b->m; q++) {
        if (!S_(span)(b, q, &p, &end)) return false;
        if (p == end) continue;
        if (!S_(spread)(at, q, w, mark, false)) return false;
        for (; p < end; p++) {
            const int64_t j = (int64_t)index[p], i = j - k, t = j - (k > 0 ? k : 0);
            if ((uint64_t)j >= (uint64_t)b->n) return false;
            if (i < 0 || i >= at->n || !mark[i] || t < 0 || t >= y->m) continue;
            const EL v = mid ? N_(mul)(w[i], mid[q]) : w[i];
            EL *to = out + t * y->rs;
            *to = N_(add)(*to, N_(mul)(v, b->conj ? N_(conj)(data[p]) : data[p]));
        }
        if (!S_(spread)(at, q, w, mark, true)) return false;
    }
    return true;
}
