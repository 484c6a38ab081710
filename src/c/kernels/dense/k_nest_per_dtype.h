/* k_nest_per_dtype.h: k_nest.h's loops, instantiated over the four BLAS dtypes by k_nest.c. */

/* c[i] (+)= a[i] b[i]; each way of memory that matters is a loop of its own. */
#define ROW(C, VALUE)                                                                              \
    do {                                                                                           \
        if (add)                                                                                   \
            for (int64_t i = 0; i < n; i++) C = N_(add)(C, VALUE);                                 \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++) C = VALUE;                                             \
    } while (0)
INLINED static void N_(row)(EL *restrict c, const EL *restrict a, const EL *restrict b, int64_t n,
                            int64_t sc, int64_t sa, int64_t sb, bool add) {
    if (!b) {
        if (sc == 1 && sa == 1)
            ROW(c[i], a[i]);
        else
            ROW(c[i * sc], a[i * sa]);
    } else if (sc == 1 && sa == 1 && sb == 1)
        ROW(c[i], N_(mul)(a[i], b[i]));
    else if (sc == 1 && sa == 1 && sb == 0) {
        const EL s = *b;
        ROW(c[i], N_(mul)(a[i], s));
    } else if (sc == 1 && sa == 0 && sb == 1) {
        const EL s = *a;
        ROW(c[i], N_(mul)(s, b[i]));
    } else
        ROW(c[i * sc], N_(mul)(a[i * sa], b[i * sb]));
}
#undef ROW

/* The sum of a[i] b[i], or of a[i], in eight chains. */
#define CHAINS(VALUE)                                                                              \
    for (; i + 8 <= n; i += 8)                                                                     \
        for (int l = 0; l < 8; l++) part[l] = N_(add)(part[l], VALUE(i + l));                      \
    for (; i < n; i++) part[0] = N_(add)(part[0], VALUE(i));
#define ONE(j) a[j]
#define ONE_AT(j) a[(j) * sa]
#define TWO(j) N_(mul)(a[j], b[j])
#define TWO_AT(j) N_(mul)(a[(j) * sa], b[(j) * sb])
INLINED static EL N_(sum)(const EL *a, const EL *b, int64_t n, int64_t sa, int64_t sb) {
    EL part[8];
    int64_t i = 0;
    for (int l = 0; l < 8; l++) part[l] = N_(zero)();
    if (!b && sa == 1) {
        CHAINS(ONE)
    } else if (!b) {
        CHAINS(ONE_AT)
    } else if (sa == 1 && sb == 1) {
        CHAINS(TWO)
    } else {
        CHAINS(TWO_AT)
    }
    for (int step = 4; step; step /= 2)
        for (int l = 0; l < step; l++) part[l] = N_(add)(part[l], part[l + step]);
    return part[0];
}
#undef CHAINS
#undef ONE
#undef ONE_AT
#undef TWO
#undef TWO_AT

/* np rows of nq elements that lie together, each times a number of its own: by whole registers, the
 * last one over what the one before it wrote. False: not of such a length, or no real numbers. */
#if FAM == FAM_F && defined(__GNUC__)
#define SCALED(WIDE)                                                                               \
    do {                                                                                           \
        typedef EL reg                                                                             \
            __attribute__((vector_size((WIDE) * sizeof(EL)), aligned(sizeof(EL)), may_alias));     \
        for (int64_t i = 0; i < np; i++, c += p->c, a += p->a, s += step) {                        \
            const reg first = *(const reg *)a * *s, last = *(const reg *)(a + nq - (WIDE)) * *s;   \
            *(reg *)c = first;                                                                     \
            *(reg *)(c + nq - (WIDE)) = last;                                                      \
        }                                                                                          \
    } while (0)
INLINED static bool N_(scaled)(EL *restrict c, const EL *restrict a, const EL *restrict s,
                               const lopk_loop *p, int64_t step, int64_t np, int64_t nq) {
    enum { WHOLE = 64 / sizeof(EL), HALF = WHOLE / 2 };
    if (nq < HALF || nq > 2 * WHOLE) return false;
    if (nq > WHOLE)
        SCALED(WHOLE);
    else
        SCALED(HALF);
    return true;
}
#undef SCALED
#else
INLINED static bool N_(scaled)(EL *c, const EL *a, const EL *s, const lopk_loop *p, int64_t step,
                               int64_t np, int64_t nq) {
    (void)c, (void)a, (void)s, (void)p, (void)step, (void)np, (void)nq;
    return false;
}
#endif

/* np rows of the outer loop, each over nq of the inner one. */
INLINED static void N_(block)(EL *c, const EL *a, const EL *b, const lopk_loop *p,
                              const lopk_loop *q, int64_t np, int64_t nq, bool accumulate) {
    const int64_t size = (int64_t)sizeof(EL);
    if (!b && !accumulate && !p->sum && !q->sum && q->c == 1 && q->a == 1) {
        runs((char *)c, (const char *)a, np, nq * size, p->c * size, p->a * size);
        return;
    }
    if (b && !accumulate && !p->sum && !q->sum && q->c == 1) {
        lopk_loop left = *p;
        if (q->a == 1 && q->b == 0 && N_(scaled)(c, a, b, &left, p->b, np, nq)) return;
        left.a = p->b;
        if (q->a == 0 && q->b == 1 && N_(scaled)(c, b, a, &left, p->a, np, nq)) return;
    }
    for (int64_t i = 0; i < np; i++) {
        EL *to = c + i * p->c;
        const EL *x = a + i * p->a, *y = b ? b + i * p->b : NULL;
        const bool add = accumulate || (p->sum && i);
        if (q->sum) {
            const EL s = N_(sum)(x, y, nq, q->a, q->b);
            *to = add ? N_(add)(*to, s) : s;
        } else
            N_(row)(to, x, y, nq, q->c, q->a, q->b, add);
    }
}

/* Four by four at (i, j) of to[i * across + j] = from[i + j * down]. */
INLINED static void N_(square)(EL *to, const EL *from, int64_t i, int64_t j, int64_t across,
                               int64_t down) {
    const int64_t size = (int64_t)sizeof(EL);
    char *block = (char *)(to + i * across + j);
    const char *x = (const char *)(from + i + j * down);
    if (size == 4)
        turn_4(block, across * size, x, down * size);
    else
        turn_8(block, across * size, x, down * size);
}

/* A tile in which the inner loop runs along memory, of what runs along the outer one. Squares of
 * narrow elements would be read again before they have left for the cache. */
INLINED static void N_(turn)(EL *restrict tile, const EL *restrict from, int64_t np, int64_t nq,
                             int64_t sq) {
    const bool fours = TURNS && sizeof(EL) == 8;
    const int64_t wide = fours ? np & ~(int64_t)3 : 0, high = fours ? nq & ~(int64_t)3 : 0;
    for (int64_t j = 0; j < high; j += 4)
        for (int64_t i = 0; i < wide; i += 4) N_(square)(tile, from, i, j, TILE, sq);
    for (int64_t j = 0; j < nq; j++)
        for (int64_t i = j < high ? wide : 0; i < np; i++) tile[i * TILE + j] = from[i + j * sq];
}

/* to[i * across + j] = from[i + j * down], row by row. */
INLINED static void N_(turn_at_once)(EL *restrict to, const EL *restrict from, int64_t np,
                                     int64_t nq, int64_t across, int64_t down) {
    const int64_t wide = np & ~(int64_t)3, high = nq & ~(int64_t)3;
    for (int64_t i = 0; i < wide; i += 4)
        for (int64_t j = 0; j < high; j += 4) N_(square)(to, from, i, j, across, down);
    for (int64_t i = 0; i < np; i++)
        for (int64_t j = i < wide ? high : 0; j < nq; j++) to[i * across + j] = from[i + j * down];
}

/* In tiles; what jumps along the inner loop and not along the outer one is turned first. So a copy
 * reads and writes whole runs: rows a page apart would put each other out of the cache. Where they
 * are not, it goes from the one array to the other at once. */
LOPK_CLONES static void N_(tiled)(EL *c, const EL *a, const EL *b, const lopk_loop *p,
                                  const lopk_loop *q, bool accumulate) {
    EL tile[2][TILE * TILE];
    const bool turn_a = p->a == 1 && q->a != 1 && q->a && (b || q->c == 1),
               turn_b = b && p->b == 1 && q->b != 1 && q->b;
    const bool at_once = TURNS && !b && turn_a && !accumulate && !p->sum && !q->sum &&
                         sizeof(EL) <= 8 && !page_apart(q->a * (int64_t)sizeof(EL)) &&
                         !page_apart(p->c * (int64_t)sizeof(EL));
    for (int64_t i = 0; i < p->size; i += TILE)
        for (int64_t j = 0; j < q->size; j += TILE) {
            const int64_t np = p->size - i < TILE ? p->size - i : TILE,
                          nq = q->size - j < TILE ? q->size - j : TILE;
            const EL *x = a + i * p->a + j * q->a, *y = b ? b + i * p->b + j * q->b : NULL;
            lopk_loop rows = *p, cols = *q;
            if (at_once) {
                N_(turn_at_once)(c + i * p->c + j, x, np, nq, p->c, q->a);
                continue;
            }
            if (turn_a) {
                N_(turn)(tile[0], x, np, nq, q->a);
                x = tile[0];
                rows.a = TILE;
                cols.a = 1;
            }
            if (turn_b) {
                N_(turn)(tile[1], y, np, nq, q->b);
                y = tile[1];
                rows.b = TILE;
                cols.b = 1;
            }
            N_(block)(c + i * p->c + j * q->c, x, y, &rows, &cols, np, nq,
                      accumulate || (p->sum && i) || (q->sum && j));
        }
}

LOPK_CLONES static void N_(plain)(EL *c, const EL *a, const EL *b, const lopk_loop *p,
                                  const lopk_loop *q, bool accumulate) {
    N_(block)(c, a, b, p, q, p->size, q->size, accumulate);
}
static void N_(nest)(EL *c, const EL *a, const EL *b, const lopk_loop *p, const lopk_loop *q,
                     bool accumulate, bool tiles) {
    if (tiles)
        N_(tiled)(c, a, b, p, q, accumulate);
    else
        N_(plain)(c, a, b, p, q, accumulate);
}
