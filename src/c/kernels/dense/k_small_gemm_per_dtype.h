/* k_small_gemm_per_dtype.h: register blocks for one element type and vector width. Defined before:
 * T (the scalar), CPLX, BYTES (of a vector), SWAP_ and SIGN_ (complex: neighbours exchanged; -1, 1,
 * ..), X(name). A strip is `mr` rows of y over all columns of a panel block; a tile is mr x 2 W (or
 * W) elements, its sums in registers. Strides count scalars here. */
#define W ((int)(BYTES / sizeof(T)) / (CPLX ? 2 : 1)) /* elements of a vector */
#define E_ (CPLX ? 2 : 1)                             /* scalars of an element */
typedef T X(vec) __attribute__((vector_size(BYTES)));
typedef T X(mem) __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));
#define V X(vec)
#define M X(mem)
typedef unsigned char X(bytes) __attribute__((vector_size(BYTES)));

static INLINE void X(tile)(const int mr, const int nv, const bool far, const small_job *g,
                           const T *a, const T *b, int64_t brs, T *y, int64_t yrs) {
    V s[6][2] = {{{0}}};
#if CPLX
    V t[6][2] = {{{0}}};
#endif
    const int64_t ars = g->ars, acs = g->acs;
    for (int64_t left = g->k - g->group, l = g->group; l > 0; l--) {
        V c[2];
        if (far) /* by number: it may lie behind the matrix */
            __builtin_prefetch(
                (const void *)((uintptr_t)a +
                               sizeof(T) * (size_t)(ars * (acs == E_ ? mr + (l & 7) : 2 * mr))));
        UNROLL for (int v = 0; v < nv; v++) c[v] = *(const M *)(b + v * W * E_);
        UNROLL for (int r = 0; r < mr; r++) {
            UNROLL for (int v = 0; v < nv; v++) s[r][v] += a[r * ars] * c[v];
#if CPLX
            UNROLL for (int v = 0; v < nv; v++) t[r][v] += a[r * ars + 1] * c[v];
#endif
        }
        a += acs;
        b += brs;
        if (l == 1 && left > 0) { /* the next group of terms */
            a += g->jump;
            l = g->group + 1;
            left -= g->group;
        }
    }
#if CPLX
    const V sign = g->conj_a ? -(V){SIGN_} : (V){SIGN_};
    UNROLL for (int r = 0; r < mr; r++) UNROLL for (int v = 0; v < nv; v++) {
        s[r][v] += sign * __builtin_shufflevector(t[r][v], t[r][v], SWAP_);
    }
#endif
    if (g->add) {
        UNROLL for (int r = 0; r < mr; r++) UNROLL for (int v = 0; v < nv; v++) {
            s[r][v] += *(const M *)(y + r * yrs + v * W * E_);
        }
    }
    UNROLL for (int r = 0; r < mr; r++) UNROLL for (int v = 0; v < nv; v++) {
        *(M *)(y + r * yrs + v * W * E_) = s[r][v];
    }
}

/* Fewer than W columns: a whole vector in a place of its own, of which the first n are moved. */
static INLINE void X(edge)(const int mr, const small_job *g, const T *a, const T *b, T *y,
                           int64_t n) {
    T own[6 * BYTES / sizeof(T)] __attribute__((aligned(BYTES)));
    if (g->add)
        for (int r = 0; r < mr; r++)
            for (int64_t c = 0; c < W * E_; c++)
                own[r * W * E_ + c] = c < n ? y[r * g->yrs + c] : 0;
    X(tile)(mr, 1, false, g, a, b, g->ers, own, W * E_);
    for (int r = 0; r < mr; r++)
        for (int64_t c = 0; c < n; c++) y[r * g->yrs + c] = own[r * W * E_ + c];
}

/* ahead: NULL, or as many rows of the next piece of b, to be fetched meanwhile. */
static INLINE void X(strip)(const int mr, const small_job *g, const T *a, const T *b, T *y,
                            const char *ahead) {
    const int64_t brs = g->brs, step = g->panel;
    int64_t n = g->n;
    bool far = g->far;
    for (; n >= 2 * W * E_; n -= 2 * W * E_) {
        if (ahead) {
            UNROLL for (int r = 0; r < mr; r++) __builtin_prefetch(ahead + r * g->ahead_rs);
            ahead += 2 * BYTES;
        }
        if (far)
            X(tile)(mr, 2, true, g, a, b, brs, y, g->yrs);
        else
            X(tile)(mr, 2, false, g, a, b, brs, y, g->yrs);
        far = false;
        b += step;
        y += 2 * W * E_;
    }
    if (n >= W * E_) {
        if (far)
            X(tile)(mr, 1, true, g, a, b, brs, y, g->yrs);
        else
            X(tile)(mr, 1, false, g, a, b, brs, y, g->yrs);
        y += W * E_;
        n -= W * E_;
    }
    if (n > 0) X(edge)(mr, g, a, g->edge, y, n);
}

/* Rows in blocks whose sums fill the registers: 6, or 3 when each element has two. */
static INLINE void X(block)(const small_job *g, const T *a, const T *b, T *y) {
    int64_t m = g->m, fetch = g->ahead ? g->k : 0;
    const char *ahead = g->ahead;
#define ROWS(mr)                                                                                   \
    X(strip)(mr, g, a, b, y, fetch >= mr ? ahead : NULL);                                          \
    fetch -= mr;                                                                                   \
    ahead = fetch > 0 ? ahead + mr * g->ahead_rs : NULL;                                           \
    a += mr * g->ars;                                                                              \
    y += mr * g->yrs
#if !CPLX
    for (; m >= 6 && m != 8; m -= 6) {
        ROWS(6);
    }
    for (; m >= 4; m -= 4) {
        ROWS(4);
    }
#endif
    for (; m >= 3 && !(CPLX && m == 4); m -= 3) {
        ROWS(3);
    }
    for (; m >= 2; m -= 2) {
        ROWS(2);
    }
    if (m > 0) {
        ROWS(1);
    }
#undef ROWS
}

static void X(rows)(const small_job *g, int64_t count) {
    const T *a = g->a, *b = g->b;
    T *y = g->y;
    for (; count > 0; count--) {
        X(block)(g, a, b, y);
        a += g->a_step * E_;
        b += g->b_step * E_;
        y += g->y_step * E_;
    }
}

/* As pack, of rows whose elements lie behind each other: by vectors. One that ends beyond the last
 * column reads on in the rows that follow, where there are any, and keeps what is the column's: a
 * loop of a length unknown took as long as the product (12 x 12, 100 terms; 2026-11-27). */
static void X(pack_rows)(T *to, int64_t wide, const T *b, int64_t k, int64_t n, int64_t brs) {
    const int64_t tail = n % W * E_, past = W * E_ - tail;
    unsigned char bits[2 * BYTES];
    X(bytes) mask;
    memset(bits, 255, BYTES);
    memset(bits + BYTES, 0, BYTES);
    memcpy(&mask, bits + BYTES - (size_t)tail * sizeof(T), BYTES);
    for (int64_t l = 0; l < k; l++, b += brs) {
        const bool on = brs > 0 && (k - 1 - l) * brs >= past;
        T *t = to + l * wide * E_;
        for (int64_t j = 0; j < n; j += W, t += j % wide ? W * E_ : (k - 1) * wide * E_ + W * E_) {
            const T *from = b + j * E_;
            if (j + W <= n)
                *(M *)t = *(const M *)from;
            else if (on)
                *(M *)t = (V)((X(bytes))(V) * (const M *)from & mask);
            else
                for (int64_t c = 0; c < W * E_; c++) t[c] = c < tail ? from[c] : 0;
        }
        if (wide > W && (n + W - 1) / W % 2) *(M *)t = (V){0};
    }
}

/* Columns of b, all k rows, into panels `wide` elements wide, zeros beyond n. Strides in scalars.
 */
static void X(pack)(T *to, int64_t wide, const T *b, int64_t k, int64_t n, int64_t brs, int64_t bcs,
                    bool conj) {
    if (bcs == E_ && !conj) {
        X(pack_rows)(to, wide, b, k, n, brs);
        return;
    }
    for (int64_t l = 0; l < k; l++, to += wide * E_, b += brs) {
        int64_t j = 0;
        T *t = to;
        for (; j < n; j += wide, t += k * wide * E_) {
            const int64_t w = n - j < wide ? n - j : wide;
            for (int64_t c = 0; c < w; c++)
                for (int e = 0; e < E_; e++) t[c * E_ + e] = b[(j + c) * bcs + e];
            for (int64_t c = w * E_; c < wide * E_; c++) t[c] = 0;
        }
        for (j = 0, t = to; CPLX && conj && j < n; j += wide, t += k * wide * E_)
            for (int64_t c = 1; c < wide * E_; c += 2) t[c] = -t[c];
    }
}

/* Gets one piece of k and of columns ready: packed when asked, else only those beyond whole
 * vectors; the job's strides are turned into scalars. The result, in g->alone: whether the room
 * holds what belongs to this batch element's b. */
static void X(ready)(small_job *g, bool pack, int64_t bcs, bool conj_b, void *room) {
    T *to = room;
    const T *b = g->b;
    const int64_t whole = g->n / W * W, half = whole % (2 * W), wide = g->n <= W ? W : 2 * W;
    g->brs *= E_;
    g->panel = 2 * W * E_;
    g->edge = to;
    g->ers = W * E_;
    g->alone = pack || whole < g->n;
    if (pack) {
        X(pack)(to, wide, b, g->k, g->n, g->brs, bcs * E_, conj_b);
        g->brs = g->ers = wide * E_;
        g->panel = g->k * 2 * W * E_;
        g->b = to;
        g->edge = to + (whole - half) * g->k * E_ + half * E_;
    } else if (whole < g->n) {
        X(pack)(to, W, b + whole * E_, g->k, g->n - whole, g->brs, E_, false);
    }
    g->ars *= E_;
    g->acs *= E_;
    g->jump *= E_;
    g->yrs *= E_;
    g->n *= E_;
}
#undef W
#undef E_
#undef V
#undef M
