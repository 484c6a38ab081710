/* k_alone_per_dtype.h: the loops of k_alone.c for one real dtype. */
#if FAM == FAM_F

/* ROWS rows of b <- b L^-T, side by side: x keeps a column of them in a row, low is L by rows with
 * the reciprocals of the diagonal. A column's sum stays in registers while all before it are
 * passed. */
LOPK_CLONES static void N_(rows_right)(int64_t n, const EL *restrict low, EL *restrict x) {
    for (int64_t j = 0; j < n; j++) {
        EL sum[ROWS];
        for (int64_t r = 0; r < ROWS; r++) sum[r] = x[j * ROWS + r];
        for (int64_t k = 0; k < j; k++) {
            const EL l = low[j * lopk_lone_block + k];
            for (int64_t r = 0; r < ROWS; r++) sum[r] -= x[k * ROWS + r] * l;
        }
        const EL by = low[j * lopk_lone_block + j];
        for (int64_t r = 0; r < ROWS; r++) x[j * ROWS + r] = sum[r] * by;
    }
}

/* b (m x n, its rows one element apart, columns ldb) <- b L^-T. */
static void N_(solve_right)(int64_t m, int64_t n, const EL *l, int64_t ldl, EL *b, int64_t ldb) {
    EL low[lopk_lone_block * lopk_lone_block] __attribute__((aligned(64)));
    EL x[lopk_lone_block * ROWS] __attribute__((aligned(64)));
    for (int64_t j = 0; j < n; j++) {
        for (int64_t k = 0; k < j; k++) low[j * lopk_lone_block + k] = l[j + k * ldl];
        low[j * lopk_lone_block + j] = 1 / l[j + j * ldl];
    }
    memset(x, 0, sizeof x); /* the rows beyond the last */
    for (int64_t i = 0; i < m; i += ROWS) {
        const size_t bytes = (size_t)min_of(ROWS, m - i) * sizeof(EL);
        for (int64_t j = 0; j < n; j++) memcpy(x + j * ROWS, b + i + j * ldb, bytes);
        N_(rows_right)(n, low, x);
        for (int64_t j = 0; j < n; j++) memcpy(b + i + j * ldb, x + j * ROWS, bytes);
    }
}
#endif
