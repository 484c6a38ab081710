/* k_tiny_gemm_per_dtype.h: the loops of k_tiny_gemm.c for one element type. Defined before: T (the
 * scalar), CPLX, X(name). */
#define E_ (CPLX ? 2 : 1) /* scalars of an element */

static INLINE void X(one)(const int64_t m, const int64_t n, const int64_t k, const tiny_job *g,
                          const int64_t ycs, const int64_t bcs, T *restrict y, const T *restrict a,
                          const T *restrict b) {
    for (int64_t i = 0; i < m; i++) {
        T s[LOPK_TINY * E_] = {0};
        for (int64_t l = 0; l < k; l++) {
            const T *bl = b + l * g->brs;
            T al[E_]; /* as one: else the compiler reads a whole vector, past the last element */
            memcpy(al, a + i * g->ars + l * g->acs, sizeof al);
            const T re = al[0];
#if CPLX
            const T im = g->conj ? -al[1] : al[1];
            for (int64_t j = 0; j < n; j++) {
                s[2 * j] += re * bl[j * bcs] - im * bl[j * bcs + 1];
                s[2 * j + 1] += re * bl[j * bcs + 1] + im * bl[j * bcs];
            }
#else
            for (int64_t j = 0; j < n; j++) s[j] += re * bl[j * bcs];
#endif
        }
        for (int64_t j = 0; j < n; j++)
            for (int e = 0; e < E_; e++) y[i * g->yrs + j * ycs + e] = s[j * E_ + e];
    }
}

static INLINE void X(all)(const int64_t m, const int64_t n, const int64_t k, const tiny_job *g,
                          const int64_t ycs, const int64_t bcs, T *restrict y, const T *restrict a,
                          const T *restrict b) {
    for (int64_t e = 0; e < g->count; e++, y += g->y_step, a += g->a_step, b += g->b_step)
        X(one)(m, n, k, g, ycs, bcs, y, a, b);
}

#if !CPLX
typedef T X(four) __attribute__((vector_size(4 * sizeof(T)), aligned(sizeof(T)), may_alias));

/* 4 to 8 columns: four of them, and the last four, of which the first ones may be the same. */
static INLINE void X(wide)(const int64_t m, const int64_t n, const int64_t k, const tiny_job *g,
                           T *restrict y, const T *restrict a, const T *restrict b) {
    for (int64_t e = 0; e < g->count; e++, y += g->y_step, a += g->a_step, b += g->b_step)
        for (int64_t i = 0; i < m; i++) {
            X(four) s = {0}, t = {0};
            for (int64_t l = 0; l < k; l++) {
                const T v = a[i * g->ars + l * g->acs];
                s += v * *(const X(four) *)(b + l * g->brs);
                if (n > 4) t += v * *(const X(four) *)(b + l * g->brs + n - 4);
            }
            *(X(four) *)(y + i * g->yrs) = s;
            if (n > 4) *(X(four) *)(y + i * g->yrs + n - 4) = t;
        }
}

/* 3 columns, of rows behind each other in y: four at a time, the fourth the next row's first, which
 * is written after it; the last row's from one element before it on. 2 rows and terms at least. */
static INLINE void X(narrow)(const int64_t m, const int64_t k, const tiny_job *g, T *restrict y,
                             const T *restrict a, const T *restrict b) {
    for (int64_t e = 0; e < g->count; e++, y += g->y_step, a += g->a_step, b += g->b_step) {
        const X(four) late = *(const X(four) *)(b + (k - 1) * g->brs - 1),
                      last = {late[1], late[2], late[3], 0};
        T before = 0;
        for (int64_t i = 0; i < m; i++) {
            X(four) s = {0};
            for (int64_t l = 0; l < k - 1; l++)
                s += a[i * g->ars + l * g->acs] * *(const X(four) *)(b + l * g->brs);
            s += a[i * g->ars + (k - 1) * g->acs] * last;
            if (i < m - 1)
                *(X(four) *)(y + 3 * i) = s;
            else
                *(X(four) *)(y + 3 * i - 1) = (X(four)){before, s[0], s[1], s[2]};
            before = s[2];
        }
    }
}
#endif

/* Where columns are beside each other in b and y. */
static INLINE void X(rows)(const tiny_job *g, T *restrict y, const T *restrict a,
                           const T *restrict b) {
#if !CPLX
    const bool square = g->m == g->n && g->k == g->n;
    if (g->n == 3 && g->yrs == 3 && g->brs >= 3 && g->m > 1 && g->k > 1) {
        if (square)
            X(narrow)(3, 3, g, y, a, b);
        else
            X(narrow)(g->m, g->k, g, y, a, b);
        return;
    }
#define WIDE(n)                                                                                    \
    case n:                                                                                        \
        if (square)                                                                                \
            X(wide)(n, n, n, g, y, a, b);                                                          \
        else                                                                                       \
            X(wide)(g->m, n, g->k, g, y, a, b);                                                    \
        return;
    switch (g->n) {
        WIDE(4)
        WIDE(5)
        WIDE(6)
        WIDE(7)
        WIDE(8)
    default: break;
    }
#undef WIDE
#endif
#define COLUMNS(n)                                                                                 \
    case n:                                                                                        \
        if (n <= 4 && g->m == n && g->k == n)                                                      \
            X(all)(n, n, n, g, E_, E_, y, a, b);                                                   \
        else                                                                                       \
            X(all)(g->m, n, g->k, g, E_, E_, y, a, b);                                             \
        break;
    switch (g->n) {
        COLUMNS(1)
        COLUMNS(2)
        COLUMNS(3)
        COLUMNS(4)
        COLUMNS(5)
        COLUMNS(6)
        COLUMNS(7)
        COLUMNS(8)
    default: break;
    }
#undef COLUMNS
}

/* Some of b's matrices, each row by row without gaps. */
static INLINE void X(gather)(const int64_t k, const int64_t n, const tiny_job *g, int64_t count,
                             T *restrict to, const T *restrict b) {
    for (int64_t e = 0; e < count; e++, b += g->b_step, to += k * n * E_)
        for (int64_t l = 0; l < k; l++)
            for (int64_t j = 0; j < n; j++)
                for (int64_t t = 0; t < E_; t++)
                    to[(l * n + j) * E_ + t] = b[l * g->brs + j * g->bcs + t];
}

LOPK_CLONES static void X(run)(const tiny_job *g, T *restrict y, const T *restrict a,
                               const T *restrict b) {
    T held[HELD * LOPK_TINY * LOPK_TINY * E_];
    tiny_job h = *g;
    if (g->ycs != E_) {
        X(all)(g->m, g->n, g->k, g, g->ycs, g->bcs, y, a, b);
        return;
    }
    const bool turned = g->bcs != E_; /* HELD matrices at a time, or the one of all */
    const int64_t part = turned && g->b_step ? HELD : g->count;
    if (turned) {
        h.brs = g->n * E_;
        h.bcs = E_;
        h.b_step = g->b_step ? g->k * h.brs : 0;
    }
    for (int64_t e = 0; e < g->count; e += part) {
        const T *from = b + e * g->b_step;
        h.count = g->count - e < part ? g->count - e : part;
        const int64_t many = g->b_step ? h.count : 1;
        if (turned && g->k == 3 && g->n == 3)
            X(gather)(3, 3, g, many, held, from);
        else if (turned)
            X(gather)(g->k, g->n, g, many, held, from);
        X(rows)(&h, y + e * g->y_step, a + e * g->a_step, turned ? held : from);
    }
}
#undef E_
