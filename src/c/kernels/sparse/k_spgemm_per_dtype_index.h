/* k_spgemm_per_dtype_index.h: products of sparse matrices for one dtype (k_elem.h) and one index
 * type. */

/* Row i into the dense accumulator; marks say where. */
static inline __attribute__((always_inline)) bool S_(add_dense)(const lopk_spgemm *g,
                                                                const work_parts *w, int64_t i) {
    const IX *ai = g->a.index, *restrict bi = g->b.index;
    const EL *ad = g->a.data, *restrict bd = g->b.data;
    EL *restrict sum = w->sum;
    unsigned char *restrict mark = w->mark;
    const uint64_t limit = (uint64_t)g->b.n;
    int64_t p, end, q, to;
    if (!I_(row)(&g->a, i, &p, &end)) return false;
    for (; p < end; p++) {
        const int64_t k = (int64_t)ai[p];
        if ((uint64_t)k >= (uint64_t)g->b.m || !I_(tail)(g, w, i, k, &q, &to)) return false;
        I_(ahead)(g, p, sizeof(EL));
        const EL v = ad[p];
        for (; q < to; q++) {
            const int64_t j = (int64_t)bi[q];
            if ((uint64_t)j >= limit) return false;
            sum[j] = N_(add)(sum[j], N_(mul)(v, bd[q]));
            mark[j] = MARK;
        }
    }
    return true;
}

/* The marked sums in order; both are zero again after. */
static int64_t S_(take_dense)(const lopk_spgemm *g, const work_parts *w, int64_t from, int64_t room,
                              IX *restrict index, EL *restrict data) {
    EL *restrict sum = w->sum;
    const int64_t n = I_(columns)(w->mark, from, g->b.n, room, index);
    for (int64_t t = 0; t < n; t++) {
        data[t] = sum[index[t]];
        sum[index[t]] = N_(zero)();
    }
    return n;
}

static int64_t S_(hashed)(const lopk_spgemm *g, const work_parts *w, int64_t i, int64_t bound,
                          int64_t room, IX *index, EL *data) {
    const IX *ai = g->a.index, *bi = g->b.index;
    const EL *ad = g->a.data, *bd = g->b.data;
    const int bits = table_bits(at_most(bound, g->b.n));
    IX *key = w->key, *list = w->list, *other = w->other, rank[FEW];
    EL *value = w->value;
    int64_t p, end, q, to, n = 0;
    memset(key, 0xff, sizeof(IX) << bits);
    if (!I_(row)(&g->a, i, &p, &end)) return -1;
    for (; p < end; p++) {
        const int64_t k = (int64_t)ai[p];
        if ((uint64_t)k >= (uint64_t)g->b.m || !I_(tail)(g, w, i, k, &q, &to)) return -1;
        I_(ahead)(g, p, sizeof(EL));
        const EL v = ad[p];
        for (; q < to; q++) {
            const int64_t j = (int64_t)bi[q];
            if ((uint64_t)j >= (uint64_t)g->b.n) return -1;
            const int64_t s = I_(slot)(key, bits, j);
            if (key[s] == (IX)-1) {
                if (n == room) return -1;
                other[n] = (IX)s;
                list[n++] = key[s] = (IX)j;
                value[s] = N_(zero)();
            }
            value[s] = N_(add)(value[s], N_(mul)(v, bd[q]));
        }
    }
    if (n <= FEW) {
        I_(ranks)(list, n, rank);
        for (int64_t t = 0; t < n; t++) {
            index[rank[t]] = list[t];
            data[rank[t]] = value[other[t]];
        }
        return n;
    }
    const IX *sorted = I_(sort)(list, other, n, g->b.n);
    for (int64_t t = 0; t < n; t++) {
        index[t] = sorted[t];
        data[t] = value[I_(slot)(key, bits, (int64_t)sorted[t])];
    }
    return n;
}

/* Rows at their places; or, where `count` is given, one after the other from at[0] on. */
static bool S_(fill)(const lopk_spgemm *g, int64_t lo, int64_t hi, const int64_t *bound,
                     const work_parts *w, const int64_t *at, void *index, void *data,
                     int64_t *count) {
    int64_t begin = at[0];
    for (int64_t i = lo; i < hi; i++) {
        const int64_t most = bound[i - lo] > 0 ? at_most(bound[i - lo], g->b.n) : 0;
        const int64_t room = count ? most : at[i - lo + 1] - at[i - lo];
        int64_t n = 0;
        if (!count) begin = at[i - lo];
        IX *ix = (IX *)index + begin;
        EL *el = (EL *)data + begin;
        if (room < 0 || room > most) return false;
        if (!most) {
        } else if (!is_dense(g, most)) {
            n = S_(hashed)(g, w, i, most, room, ix, el);
        } else {
            if (!S_(add_dense)(g, w, i)) return false;
            n = S_(take_dense)(g, w, g->upper ? i : 0, room, ix, el);
        }
        if (n < 0 || (!count && n != room)) return false;
        if (count) count[i - lo] = n;
        begin += n;
    }
    return true;
}

static bool S_(sampled)(const lopk_spgemm *g, const lopk_csr *mask, int64_t lo, int64_t hi,
                        void *sums, unsigned char *mark, const int64_t *at, void *index, void *data,
                        int64_t *count) {
    EL *sum = sums;
    const IX *ai = g->a.index, *bi = g->b.index, *mi = mask->index;
    const EL *ad = g->a.data, *bd = g->b.data;
    const uint64_t inner = (uint64_t)g->a.n;
    for (int64_t i = lo; i < hi; i++) {
        int64_t from, end, q, to, n = 0, p, last;
        if (!I_(row)(&g->a, i, &from, &end) || !I_(row)(mask, i, &p, &last)) return false;
        if (last - p > at[i - lo + 1] - at[i - lo]) return false;
        IX *ix = (IX *)index + at[i - lo];
        EL *el = (EL *)data + at[i - lo];
        for (int64_t t = from; t < end; t++) {
            const int64_t k = (int64_t)ai[t];
            if ((uint64_t)k >= inner) return false;
            sum[k] = N_(add)(sum[k], ad[t]);
            mark[k] = 1;
        }
        for (; p < last; p++) {
            const int64_t j = (int64_t)mi[p];
            unsigned char hit = 0;
            EL s = N_(zero)();
            if ((uint64_t)j >= (uint64_t)g->b.m || !I_(row)(&g->b, j, &q, &to)) return false;
            for (; q < to; q++) {
                const int64_t k = (int64_t)bi[q];
                if ((uint64_t)k >= inner) return false;
                if (!mark[k]) continue;
                hit = 1;
                s = N_(add)(s, N_(mul)(sum[k], bd[q]));
            }
            if (!hit) continue;
            ix[n] = (IX)j;
            el[n++] = s;
        }
        count[i - lo] = n;
        for (int64_t t = from; t < end; t++) {
            const int64_t k = (int64_t)ai[t];
            if ((uint64_t)k >= inner) return false;
            sum[k] = N_(zero)();
            mark[k] = 0;
        }
    }
    return true;
}

static bool S_(transpose)(const lopk_csr *a, bool conj, void *tptr, void *tindex, void *tdata) {
    const IX *index = a->index;
    const EL *data = a->data;
    IX *ptr = tptr, *out = tindex;
    EL *to = tdata;
    int64_t p, end, first, total;
    memset(ptr, 0, ((size_t)a->n + 1) * sizeof(IX));
    for (int64_t i = 0; i < a->m; i++) {
        if (!I_(row)(a, i, &p, &end)) return false;
        for (; p < end; p++) {
            if ((uint64_t)index[p] >= (uint64_t)a->n) return false;
            ptr[(uint64_t)index[p] + 1]++;
        }
    }
    for (int64_t j = 0; j < a->n; j++) ptr[j + 1] = (IX)(ptr[j + 1] + ptr[j]);
    total = (int64_t)ptr[a->n];
    if (total > a->nnz) return false; /* rows that overlap */
    for (int64_t i = 0; i < a->m; i++) {
        if (!I_(row)(a, i, &p, &end)) return false;
        for (; p < end; p++) {
            const uint64_t j = (uint64_t)index[p];
            if (j >= (uint64_t)a->n) return false;
            const int64_t t = (int64_t)ptr[j]++;
            if ((uint64_t)t >= (uint64_t)total) return false;
            out[t] = (IX)i;
            to[t] = conj ? N_(conj)(data[p]) : data[p];
        }
    }
    first = 0; /* each pointer has become the next one */
    for (int64_t j = 0; j < a->n; j++) {
        const IX was = ptr[j];
        ptr[j] = (IX)first;
        first = (int64_t)was;
    }
    return true;
}

static bool S_(keep)(int64_t m, const int64_t *at, void *index, void *data, double least,
                     int64_t most, double *heap, int64_t *count) {
    IX *ix = index;
    EL *el = data;
    int64_t to = at[0];
    for (int64_t i = 0; i < m; i++) {
        const int64_t from = at[i], end = at[i + 1], begin = to;
        double floor = -1;
        int64_t ties = INT64_MAX;
        if (from < begin || end < from) return false;
        if (most >= 0 && end - from > most) {
            int64_t n = 0;
            for (int64_t p = from; p < end; p++) n = heap_push(heap, n, most, N_(modulus)(el[p]));
            floor = most ? heap[0] : INFINITY;
            ties = most;
            for (int64_t t = 0; t < n; t++) ties -= heap[t] > floor;
        }
        for (int64_t p = from; p < end; p++) {
            const double size = N_(modulus)(el[p]);
            if (size < least || size < floor || (size == floor && ties-- <= 0)) continue;
            ix[to] = ix[p];
            el[to++] = el[p];
        }
        count[i] = to - begin;
    }
    return true;
}

static bool S_(meet)(int64_t m, const int64_t *at, void *index, void *data, const lopk_csr *mask,
                     int64_t lo, int64_t *count) {
    IX *ix = index;
    EL *el = data;
    const IX *mi = mask->index;
    int64_t to = at[0], q, last;
    for (int64_t i = 0; i < m; i++) {
        const int64_t from = at[i], end = at[i + 1], begin = to;
        if (from < begin || end < from || !I_(row)(mask, lo + i, &q, &last)) return false;
        for (int64_t p = from; p < end; p++) {
            while (q < last && mi[q] < ix[p]) q++;
            if (q == last) break;
            if (mi[q] != ix[p]) continue;
            ix[to] = ix[p];
            el[to++] = el[p];
        }
        count[i] = to - begin;
    }
    return true;
}

static bool S_(mirror)(int64_t m, bool conj, const int64_t *at, const void *index, const void *data,
                       const int64_t *lower, const int64_t *to, int64_t *next, void *toindex,
                       void *todata) {
    const IX *ix = index;
    const EL *el = data;
    IX *out = toindex;
    EL *val = todata;
    for (int64_t i = 0; i < m; i++) next[i] = to[i];
    for (int64_t i = 0; i < m; i++) {
        const int64_t begin = to[i] + lower[i], n = at[i + 1] - at[i];
        if (n < 0 || begin + n != to[i + 1]) return false;
        memcpy(out + begin, ix + at[i], (size_t)n * sizeof(IX));
        memcpy(val + begin, el + at[i], (size_t)n * sizeof(EL));
        for (int64_t p = at[i]; p < at[i + 1]; p++) {
            const int64_t j = (int64_t)ix[p];
            if (j == i) continue;
            if (j < i || j >= m || next[j] >= to[j] + lower[j]) return false;
            out[next[j]] = (IX)i;
            val[next[j]++] = conj ? N_(conj)(el[p]) : el[p];
        }
    }
    return true;
}
