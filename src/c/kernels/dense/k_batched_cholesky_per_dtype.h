/* k_batched_cholesky_per_dtype.h: LOPK_STACK small Cholesky factorisations side by side, for one
 * real dtype. See k_batched_cholesky.c. */
#if FAM == FAM_F

/* What is worked on: the lower triangle by rows; of each element PER vectors, which hold all lanes.
 */
#define ROW(i) ((i) * ((i) + 1) / 2)
#define PER (LOPK_STACK * (int)sizeof(E) / LOPK_VECTOR)
typedef E N_(vec) __attribute__((vector_size(LOPK_VECTOR), may_alias));
#define V N_(vec)

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

/* x <- (L L^T)^-1 x of all lanes. */
LOPK_CLONES static void N_(substitute)(int n, const V *restrict a, V *restrict x) {
    for (int i = 0; i < n; i++)
        for (int h = 0; h < PER; h++) {
            const V *row = a + ROW(i) * PER + h;
            V s = x[i * PER + h];
            for (int j = 0; j < i; j++) s -= row[j * PER] * x[j * PER + h];
            x[i * PER + h] = s / row[i * PER];
        }
    for (int i = n - 1; i >= 0; i--)
        for (int h = 0; h < PER; h++) {
            const V *row = a + ROW(i) * PER + h, s = x[i * PER + h] / row[i * PER];
            x[i * PER + h] = s;
            for (int j = 0; j < i; j++) x[j * PER + h] -= row[j * PER] * s;
        }
}

static unsigned N_(stack_factor)(int used, void *f, const lop_mat *a, int64_t a_step) {
    V r[LOPK_STACK_MAX * PER];
    const int n = (int)a->m;
    N_(load)(n, used, f, a->p, a->cs, a->rs, a_step); /* the upper triangle, transposed */
    return N_(factor)(n, f, r);
}
/* Of one matrix, whose factor all lanes hold: the lanes are columns. */
static void N_(lone_solve)(const void *f, const lop_mat *y, const lop_mat *b) {
    V x[LOPK_STACK_MAX * PER];
    const int n = (int)y->m;
    for (int64_t c = 0; c < y->n; c += LOPK_STACK) {
        const int64_t left = y->n - c;
        const int many = left < LOPK_STACK ? (int)left : LOPK_STACK;
        const E *from = (const E *)b->p + c * b->cs;
        E *to = (E *)y->p + c * y->cs, *at = (E *)x;
        for (int i = 0; i < n; i++)
            for (int l = 0; l < LOPK_STACK; l++)
                at[i * LOPK_STACK + l] = from[i * b->rs + (l < many ? l : many - 1) * b->cs];
        N_(substitute)(n, f, x);
        for (int i = 0; i < n; i++)
            for (int l = 0; l < many; l++) to[i * y->rs + l * y->cs] = at[i * LOPK_STACK + l];
    }
}
static void N_(stack_solve)(int used, unsigned wanted, const void *f, const lop_mat *y,
                            int64_t y_step, const lop_mat *b, int64_t b_step) {
    V x[LOPK_STACK_MAX * PER];
    const int n = (int)y->m;
    if (used == 1) {
        if (wanted & 1) N_(lone_solve)(f, y, b);
        return;
    }
    for (int64_t c = 0; c < y->n; c++) {
        const E *from = (const E *)b->p + c * b->cs;
        E *to = (E *)y->p + c * y->cs, *at = (E *)x;
        for (int i = 0; i < n; i++)
            for (int l = 0; l < LOPK_STACK; l++)
                at[i * LOPK_STACK + l] = from[i * b->rs + (l < used ? l : used - 1) * b_step];
        N_(substitute)(n, f, x);
        for (int i = 0; i < n; i++)
            for (int l = 0; l < used; l++)
                if (wanted >> l & 1) to[i * y->rs + l * y_step] = at[i * LOPK_STACK + l];
    }
}
#undef ROW
#undef PER
#undef V
#endif
