/* k_spgemm_per_index.h: what products of sparse matrices do with indices alone, for one index type.
 * Macros: IX the index type, I_(name) the function's name. False at the first bad index. */

/* Entries of row i of A, checked. */
static inline bool I_(row)(const lopk_csr *a, int64_t i, int64_t *from, int64_t *to) {
    const IX *ptr = a->ptr;
    *from = (int64_t)ptr[i];
    *to = (int64_t)ptr[i + 1];
    return *from >= 0 && *to >= *from && *to <= a->nnz;
}

static bool I_(bound)(const lopk_spgemm *g, int64_t lo, int64_t hi, int64_t *bound) {
    const IX *index = g->a.index;
    for (int64_t i = lo; i < hi; i++) {
        int64_t p, end, from, to, sum = 0;
        if (!I_(row)(&g->a, i, &p, &end)) return false;
        for (; p < end; p++) {
            const int64_t k = (int64_t)index[p];
            if ((uint64_t)k >= (uint64_t)g->a.n || !I_(row)(&g->b, k, &from, &to)) return false;
            if (!lop_add_ok(sum, to - from, &sum)) return false;
        }
        bound[i - lo] = sum;
    }
    return true;
}

/* Row k of B from where row i of an upper triangle begins. */
static inline bool I_(tail)(const lopk_spgemm *g, const work_parts *w, int64_t i, int64_t k,
                            int64_t *from, int64_t *to) {
    if (!I_(row)(&g->b, k, from, to)) return false;
    if (!g->upper) return true;
    const IX *index = g->b.index;
    int64_t p = *from + w->past[k];
    while (p < *to && (int64_t)index[p] < i) p++;
    w->past[k] = p - *from;
    *from = p < *to ? p : *to;
    return true;
}

/* Fetches rows of B that come some entries later, those of the next rows of A too: addresses, never
 * read, so unchecked. */
static inline void I_(ahead)(const lopk_spgemm *g, int64_t p, uintptr_t size) {
    const IX *index = g->a.index, *ptr = g->b.ptr;
    if (p + 8 < g->a.nnz)
        __builtin_prefetch((const void *)((uintptr_t)ptr + (uintptr_t)index[p + 8] * sizeof(IX)));
    if (p + 3 >= g->a.nnz) return;
    const int64_t k = (int64_t)index[p + 3];
    if ((uint64_t)k >= (uint64_t)g->b.m) return;
    const uintptr_t from = (uintptr_t)ptr[k], n = (uintptr_t)ptr[k + 1] - from,
                    most = n < 128 ? n : 128;
    for (uintptr_t t = 0; t < most * sizeof(IX); t += 64)
        __builtin_prefetch((const void *)((uintptr_t)g->b.index + from * sizeof(IX) + t));
    for (uintptr_t t = 0; t < most * size; t += 64)
        __builtin_prefetch((const void *)((uintptr_t)g->b.data + from * size + t));
}

/* The place of a key in a table of 2^bits, where it stands or where it goes; -1 is empty. */
static inline int64_t I_(slot)(const IX *key, int bits, int64_t j) {
    const uint64_t last = ((uint64_t)1 << bits) - 1;
    uint64_t s = (uint64_t)j * UINT64_C(0x9E3779B97F4A7C15) >> (64 - bits);
    while (key[s] != (IX)-1 && (int64_t)key[s] != j) s = (s + 1) & last;
    return (int64_t)s;
}

static bool I_(count_row)(const lopk_spgemm *g, const work_parts *w, int64_t i, int64_t bound,
                          int64_t *count) {
    const IX *ai = g->a.index, *bi = g->b.index;
    const bool dense = is_dense(g, bound);
    const int64_t room = at_most(bound, g->b.n);
    const int bits = dense ? 0 : table_bits(room);
    IX *key = w->key;
    int64_t p, end, q, to, n = 0;
    if (!dense) memset(key, 0xff, sizeof(IX) << bits);
    if (!I_(row)(&g->a, i, &p, &end)) return false;
    for (; p < end; p++) {
        const int64_t k = (int64_t)ai[p];
        if ((uint64_t)k >= (uint64_t)g->b.m || !I_(tail)(g, w, i, k, &q, &to)) return false;
        I_(ahead)(g, p, 0);
        for (; q < to; q++) {
            const int64_t j = (int64_t)bi[q];
            if ((uint64_t)j >= (uint64_t)g->b.n) return false;
            if (dense) {
                w->mark[j] = MARK;
            } else {
                const int64_t s = I_(slot)(key, bits, j);
                if (key[s] != (IX)-1) continue;
                if (n++ == room) return false;
                key[s] = (IX)j;
            }
        }
    }
    *count = dense ? count_marks(w->mark, g->upper ? i : 0, g->b.n) : n;
    return true;
}

static bool I_(count)(const lopk_spgemm *g, int64_t lo, int64_t hi, const int64_t *bound,
                      const work_parts *w, int64_t *count) {
    for (int64_t i = lo; i < hi; i++) {
        count[i - lo] = 0;
        if (bound[i - lo] > 0 && !I_(count_row)(g, w, i, bound[i - lo], &count[i - lo]))
            return false;
    }
    return true;
}

/* The marked columns from `from` on, in order, and the marks zero; how many, -1: more than room.
 * Four are written at a time where there is room, so that a word of few needs no branch for each.
 */
SCALAR LOPK_CLONES static int64_t I_(columns)(unsigned char *mark, int64_t from, int64_t n,
                                              int64_t room, IX *restrict index) {
    int64_t found = 0;
    for (int64_t at = from & ~(int64_t)63; at < n; at += 64) {
        uint64_t bits = mark_bits(mark + at);
        const int64_t some = __builtin_popcountll(bits);
        if (!some) continue;
        memset(mark + at, 0, 64);
        if (some > room - found) return -1;
        if (room - found >= 64) {
            IX *to = index + found;
            for (int64_t t = 0; t < some; t += 4)
                for (int u = 0; u < 4; u++, bits &= bits - 1)
                    *to++ = (IX)(at + __builtin_ctzll(bits | TOP_BIT));
        } else {
            for (int64_t t = 0; t < some; t++, bits &= bits - 1)
                index[found + t] = (IX)(at + __builtin_ctzll(bits));
        }
        found += some;
    }
    return found;
}

/* rank[i] <- how many of n different keys are smaller; without branches, for few. */
LOPK_CLONES static void I_(ranks)(const IX *restrict key, int64_t n, IX *restrict rank) {
    for (int64_t i = 0; i < n; i++) {
        const IX k = key[i];
        IX below = 0;
        for (int64_t j = 0; j < n; j++) below = (IX)(below + (key[j] < k));
        rank[i] = below;
    }
}

/* Sorts n keys below `limit` by their digits; `other` is as long. Gives where they lie then. */
static IX *I_(sort)(IX *key, IX *other, int64_t n, int64_t limit) {
    for (int shift = 0; shift < 63 && (limit - 1) >> shift > 0; shift += 8) {
        int64_t start[257] = {0};
        for (int64_t i = 0; i < n; i++) start[((uint64_t)key[i] >> shift & 255) + 1]++;
        for (int d = 0; d < 256; d++) start[d + 1] += start[d];
        for (int64_t i = 0; i < n; i++) other[start[(uint64_t)key[i] >> shift & 255]++] = key[i];
        IX *t = key;
        key = other;
        other = t;
    }
    return key;
}

static bool I_(lower)(int64_t m, const int64_t *at, const void *index, int64_t *lower) {
    const IX *ix = index;
    memset(lower, 0, (size_t)m * sizeof *lower);
    for (int64_t i = 0; i < m; i++)
        for (int64_t p = at[i]; p < at[i + 1]; p++) {
            const int64_t j = (int64_t)ix[p];
            if (j < i || j >= m) return false;
            lower[j] += j > i;
        }
    return true;
}
