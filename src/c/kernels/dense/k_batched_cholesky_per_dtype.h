/* k_batched_cholesky_per_dtype.h: LOPK_STACK small Cholesky factorisations side by side, for one
 * real dtype. See k_batched_cholesky.c. */
#if FAM == FAM_F

/* What is worked on: the lower triangle by rows; of each element PER vectors, which hold all lanes.
 */
#define ROW(i) ((i) * ((i) + 1) / 2)
#define PER (LOPK_STACK * (int)sizeof(E) / LOPK_VECTOR)
typedef E N_(vec) __attribute__((vector_size(LOPK_VECTOR), may_alias));
#define V N_(vec)
#define INLINE static inline __attribute__((always_inline))

LOPK_CLONES static void N_(load)(int n, int used, E *restrict to, const E *restrict p, int64_t is,
                                 int64_t js, int64_t step) {
    const E *of[LOPK_STACK];
    for (int l = 0; l < LOPK_STACK; l++) of[l] = p + (l < used ? l : used - 1) * step;
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++)
            for (int l = 0; l < LOPK_STACK; l++) *to++ = of[l][i * is + j * js];
}

/* Row by row: row i of L is found from those above; the diagonal keeps the roots. A lane whose
 * pivot is not positive is marked and goes on with a one: the others do not wait. */
LOPK_CLONES static unsigned N_(factor)(int n, V *restrict a, V *restrict recip) {
    unsigned bad = 0;
    for (int i = 0; i < n; i++) {
        V *row = a + ROW(i) * PER;
        for (int j = 0; j <= i; j++) { /* columns after j are left to do */
            const V *of = a + ROW(j) * PER;
            for (int h = 0; h < PER; h++) {
                V s = row[j * PER + h], t = s - s;
                int k = 0;
                for (; k + 2 <= j; k += 2) {
                    s -= row[k * PER + h] * of[k * PER + h];
                    t += row[(k + 1) * PER + h] * of[(k + 1) * PER + h];
                }
                if (k < j) s -= row[k * PER + h] * of[k * PER + h];
                row[j * PER + h] = j < i ? (s - t) * recip[j * PER + h] : s - t;
            }
        }
        E *d = (E *)(row + i * PER);
        for (int l = 0; l < LOPK_STACK; l++) {
            if (!(d[l] > 0)) {
                bad |= 1u << l;
                d[l] = 1;
            }
            d[l] = (E)sqrt((double)d[l]);
        }
        for (int h = 0; h < PER; h++) recip[i * PER + h] = 1 / row[i * PER + h];
    }
    return bad;
}

/* x <- (L L^T)^-1 x; or with `half` x <- L^-1 x, and then its first row <- the sums of its squares.
 * `wide` vectors a row: PER, or a multiple where all lanes have one factor. Each lane does the same
 * in the same order in both. */
INLINE void N_(substitute)(int n, int wide, bool half, const V *restrict a, const V *restrict recip,
                           V *restrict x) {
    V s[LOPK_WIDE];
    for (int i = 0; i < n; i++) {
        const V *row = a + ROW(i) * PER;
        for (int h = 0; h < wide; h++) s[h] = x[i * wide + h];
        for (int j = 0; j < i; j++)
            for (int h = 0; h < wide; h++) s[h] -= row[j * PER + h % PER] * x[j * wide + h];
        for (int h = 0; h < wide; h++) x[i * wide + h] = s[h] * recip[i * PER + h % PER];
    }
    if (half) {
        for (int h = 0; h < wide; h++) s[h] = x[h] * x[h];
        for (int i = 1; i < n; i++)
            for (int h = 0; h < wide; h++) s[h] += x[i * wide + h] * x[i * wide + h];
        for (int h = 0; h < wide; h++) x[h] = s[h];
        return;
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int h = 0; h < wide; h++) s[h] = x[i * wide + h];
        for (int j = n - 1; j > i; j--)
            for (int h = 0; h < wide; h++)
                s[h] -= a[(ROW(j) + i) * PER + h % PER] * x[j * wide + h];
        for (int h = 0; h < wide; h++) x[i * wide + h] = s[h] * recip[i * PER + h % PER];
    }
}

/* One turn: `used` right sides, of which those are written whose bit in `wanted` is set. Their
 * elements lie `is` apart, they `step`; of the result's `ys` and `y_step`. */
INLINE void N_(turn)(int n, int wide, bool half, int used, unsigned wanted, const V *a,
                     const V *recip, E *to, int64_t ys, int64_t y_step, const E *from, int64_t is,
                     int64_t step) {
    V x[LOPK_STACK_MAX * LOPK_WIDE];
    const int lanes = wide * LOPK_VECTOR / (int)sizeof(E), rows = half ? 1 : n;
    E *at = (E *)x;
    if (used == lanes && step == 1)
        for (int i = 0; i < n; i++)
            memcpy(at + i * lanes, from + i * is, sizeof(E) * (size_t)lanes);
    else if (used == lanes)
        for (int i = 0; i < n; i++)
            for (int l = 0; l < lanes; l++) at[i * lanes + l] = from[i * is + l * step];
    else
        for (int i = 0; i < n; i++)
            for (int l = 0; l < lanes; l++)
                at[i * lanes + l] = from[i * is + (l < used ? l : used - 1) * step];
    N_(substitute)(n, wide, half, a, recip, x);
    if (used == lanes && !~wanted && y_step == 1)
        for (int i = 0; i < rows; i++)
            memcpy(to + i * ys, at + i * lanes, sizeof(E) * (size_t)lanes);
    else
        for (int i = 0; i < rows; i++)
            for (int l = 0; l < used; l++)
                if (wanted >> l & 1) to[i * ys + l * y_step] = at[i * lanes + l];
}

static unsigned N_(stack_factor)(int used, void *f, const lop_mat *a, int64_t a_step) {
    V r[LOPK_STACK_MAX * PER];
    const int n = (int)a->m;
    N_(load)(n, used, f, a->p, a->cs, a->rs, a_step); /* the upper triangle, transposed */
    return N_(factor)(n, f, r);
}

/* Column after column, the matrices side by side. */
LOPK_CLONES static void N_(by_matrices)(int used, unsigned wanted, bool half, const V *a,
                                        const V *recip, const lop_mat *y, int64_t y_step,
                                        const lop_mat *b, int64_t b_step) {
    const int64_t next = half ? y->rs : y->cs;
    for (int64_t c = 0; c < b->n; c++) {
        const E *from = (const E *)b->p + c * b->cs;
        E *to = (E *)y->p + c * next;
        if (half)
            N_(turn)((int)b->m, PER, true, used, wanted, a, recip, to, 0, y_step, from, b->rs,
                     b_step);
        else
            N_(turn)((int)b->m, PER, false, used, wanted, a, recip, to, y->rs, y_step, from, b->rs,
                     b_step);
    }
}
/* The columns of one matrix, whose factor all lanes have, side by side. */
LOPK_CLONES static void N_(by_columns)(bool half, const V *a, const V *recip, const lop_mat *y,
                                       const lop_mat *b) {
    enum { MANY = LOPK_WIDE * LOPK_VECTOR / (int)sizeof(E) };
    const int64_t next = half ? y->rs : y->cs;
    for (int64_t c = 0; c < b->n; c += MANY) {
        const int used = b->n - c < MANY ? (int)(b->n - c) : MANY;
        const E *from = (const E *)b->p + c * b->cs;
        E *to = (E *)y->p + c * next;
        if (half)
            N_(turn)((int)b->m, LOPK_WIDE, true, used, ~0u, a, recip, to, 0, next, from, b->rs,
                     b->cs);
        else
            N_(turn)((int)b->m, LOPK_WIDE, false, used, ~0u, a, recip, to, y->rs, next, from, b->rs,
                     b->cs);
    }
}
static void N_(stack_solve)(int used, unsigned wanted, bool half, const void *f, const lop_mat *y,
                            int64_t y_step, const lop_mat *b, int64_t b_step) {
    const V *a = f;
    V recip[LOPK_STACK_MAX * PER];
    for (int i = 0; i < (int)b->m; i++)
        for (int h = 0; h < PER; h++) recip[i * PER + h] = 1 / a[(ROW(i) + i) * PER + h];
    if (used == 1 && wanted & 1)
        N_(by_columns)(half, a, recip, y, b);
    else
        N_(by_matrices)(used, wanted, half, a, recip, y, y_step, b, b_step);
}
#undef ROW
#undef PER
#undef V
#undef INLINE
#endif
