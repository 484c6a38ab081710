/* k_sparse_per_index.h: the sparse loops for one dtype (k_elem.h) and one index type.
 * Macros: IX the index type, S_(name) the function's name. Return false at the first bad index. */

static bool S_(take)(const lop_mat *y, const lop_mat *index, const lop_mat *x) {
    const IX *ix = index->p;
    const EL *px = x->p;
    EL *py = y->p;
    const uint64_t limit = (uint64_t)x->m;
    if (y->n == 1) {
        for (int64_t i = 0; i < y->m; i++) {
            const int64_t s = (int64_t)ix[i * index->rs];
            if ((uint64_t)s >= limit) return false;
            py[i * y->rs] = px[s * x->rs];
        }
        return true;
    }
    for (int64_t i = 0; i < y->m; i++) {
        const int64_t s = (int64_t)ix[i * index->rs];
        if ((uint64_t)s >= limit) return false;
        if (y->cs == 1 && x->cs == 1)
            for (int64_t j = 0; j < y->n; j++) py[i * y->rs + j] = px[s * x->rs + j];
        else
            for (int64_t j = 0; j < y->n; j++)
                py[i * y->rs + j * y->cs] = px[s * x->rs + j * x->cs];
    }
    return true;
}

static bool S_(scatter)(const lop_mat *y, const lop_mat *index, const lop_mat *x) {
    const IX *ix = index->p;
    const EL *px = x->p;
    EL *py = y->p;
    const uint64_t limit = (uint64_t)y->m;
    for (int64_t i = 0; i < x->m; i++) {
        const int64_t s = (int64_t)ix[i * index->rs];
        if ((uint64_t)s >= limit) return false;
        for (int64_t j = 0; j < y->n; j++) {
            EL *t = py + s * y->rs + j * y->cs;
            *t = N_(add)(*t, px[i * x->rs + j * x->cs]);
        }
    }
    return true;
}

/* One right-hand side, row by row; y at stride ys, x at stride xs. */
static inline __attribute__((always_inline)) bool S_(csr_vec)(const sparse_args *g,
                                                              const EL *restrict x, int64_t xs,
                                                              EL *restrict y, int64_t ys,
                                                              bool conj) {
    const IX *ptr = g->ptr, *ix = g->index;
    const EL *data = g->data;
    const uint64_t limit = (uint64_t)g->n;
    const int64_t m = g->m, nnz = g->nnz;
    int64_t p = (int64_t)ptr[0];
    if (p < 0) return false;
    for (int64_t i = 0; i < m; i++) {
        const int64_t end = (int64_t)ptr[i + 1];
        if (end < p || end > nnz) return false;
        EL s = N_(zero)();
        for (; p < end; p++) {
            const int64_t j = (int64_t)ix[p];
            if ((uint64_t)j >= limit) return false;
            const EL v = x[j * xs];
            s = N_(add)(s, conj ? N_(mulc)(data[p], v) : N_(mul)(data[p], v));
        }
        y[i * ys] = s;
    }
    return true;
}

/* y += v x over k adjacent elements. */
static inline void S_(line)(int64_t k, EL *restrict y, EL v, const EL *restrict x) {
    for (int64_t j = 0; j < k; j++) y[j] = N_(add)(y[j], N_(mul)(v, x[j]));
}

/* k right-hand sides, both with unit stride along the rows. */
/* Fetches the row of x that comes 16 entries later; an address, never read, so unchecked. */
static inline __attribute__((always_inline)) void
S_(ahead)(const sparse_args *g, const EL *px, int64_t rs, int64_t n, const IX *ix, int64_t p) {
    if (p + 16 >= g->nnz) return;
    uintptr_t row = (uintptr_t)px + (uintptr_t)ix[p + 16] * (uintptr_t)rs * sizeof(EL);
    uintptr_t bytes = (uintptr_t)(n < 32 ? n : 32) * sizeof(EL);
    for (uintptr_t at = 0; at < bytes; at += 64) __builtin_prefetch((const void *)(row + at));
}

static bool S_(csr_rows)(const sparse_args *g, const lop_mat *x, const lop_mat *y, bool conj) {
    const IX *ptr = g->ptr, *ix = g->index;
    const EL *data = g->data, *px = x->p;
    EL *py = y->p;
    const uint64_t limit = (uint64_t)g->n;
    int64_t p = (int64_t)ptr[0];
    if (p < 0) return false;
    for (int64_t i = 0; i < g->m; i++) {
        const int64_t end = (int64_t)ptr[i + 1];
        if (end < p || end > g->nnz) return false;
        EL *row = py + i * y->rs;
        for (int64_t j = 0; j < y->n; j++) row[j] = N_(zero)();
        for (; p < end; p++) {
            const int64_t j = (int64_t)ix[p];
            if ((uint64_t)j >= limit) return false;
            S_(ahead)(g, px, x->rs, y->n, ix, p);
            S_(line)(y->n, row, conj ? N_(conj)(data[p]) : data[p], px + j * x->rs);
        }
    }
    return true;
}

static bool S_(csr)(const sparse_args *g, const lop_mat *x, const lop_mat *y) {
    const bool conj = g->conj && FAM == FAM_C;
    if (y->n > 1 && y->cs == 1 && x->cs == 1) return S_(csr_rows)(g, x, y, conj);
    for (int64_t j = 0; j < y->n; j++) {
        const EL *px = (const EL *)x->p + j * x->cs;
        EL *py = (EL *)y->p + j * y->cs;
        bool ok;
        if (conj)
            ok = S_(csr_vec)(g, px, x->rs, py, y->rs, true);
        else if (x->rs == 1)
            ok = S_(csr_vec)(g, px, 1, py, y->rs, false);
        else
            ok = S_(csr_vec)(g, px, x->rs, py, y->rs, false);
        if (!ok) return false;
    }
    return true;
}

/* y += A x, one right-hand side, both with stride 1. */
static inline __attribute__((always_inline)) bool
S_(csc_vec)(const sparse_args *g, const EL *restrict x, EL *restrict y, bool conj) {
    const IX *ptr = g->ptr, *ix = g->index;
    const EL *data = g->data;
    const uint64_t limit = (uint64_t)g->m;
    const int64_t n = g->n, nnz = g->nnz;
    int64_t p = (int64_t)ptr[0];
    if (p < 0) return false;
    for (int64_t j = 0; j < n; j++) {
        const int64_t end = (int64_t)ptr[j + 1];
        if (end < p || end > nnz) return false;
        const EL v = x[j];
        for (; p < end; p++) {
            const int64_t i = (int64_t)ix[p];
            if ((uint64_t)i >= limit) return false;
            y[i] = N_(add)(y[i], conj ? N_(mulc)(data[p], v) : N_(mul)(data[p], v));
        }
    }
    return true;
}

/* y += A x, A by columns; y is zeroed by the caller. */
static bool S_(csc)(const sparse_args *g, const lop_mat *x, const lop_mat *y) {
    const IX *ptr = g->ptr, *ix = g->index;
    const EL *data = g->data, *px = x->p;
    EL *py = y->p;
    const uint64_t limit = (uint64_t)g->m;
    const bool conj = g->conj && FAM == FAM_C;
    if (y->n == 1 && y->rs == 1 && x->rs == 1)
        return conj ? S_(csc_vec)(g, px, py, true) : S_(csc_vec)(g, px, py, false);
    int64_t p = (int64_t)ptr[0];
    if (p < 0) return false;
    for (int64_t j = 0; j < g->n; j++) {
        const int64_t end = (int64_t)ptr[j + 1];
        if (end < p || end > g->nnz) return false;
        const EL first = y->n > 0 ? px[j * x->rs] : N_(zero)();
        for (; p < end; p++) {
            const int64_t i = (int64_t)ix[p];
            if ((uint64_t)i >= limit) return false;
            if (y->n > 1) S_(ahead)(g, py, y->rs, y->n, ix, p);
            const EL v = conj ? N_(conj)(data[p]) : data[p];
            EL *t = py + i * y->rs;
            if (y->n == 1)
                *t = N_(add)(*t, N_(mul)(v, first));
            else if (y->cs == 1 && x->cs == 1)
                S_(line)(y->n, t, v, px + j * x->rs);
            else
                for (int64_t q = 0; q < y->n; q++)
                    t[q * y->cs] = N_(add)(t[q * y->cs], N_(mul)(v, px[j * x->rs + q * x->cs]));
        }
    }
    return true;
}

/* y += A x by triplets: ptr holds the rows, index the columns. */
static bool S_(coo)(const sparse_args *g, const lop_mat *x, const lop_mat *y) {
    const IX *row = g->ptr, *col = g->index;
    const EL *data = g->data, *px = x->p;
    EL *py = y->p;
    const bool conj = g->conj && FAM == FAM_C;
    for (int64_t p = 0; p < g->nnz; p++) {
        const int64_t i = (int64_t)row[p], j = (int64_t)col[p];
        if ((uint64_t)i >= (uint64_t)g->m || (uint64_t)j >= (uint64_t)g->n) return false;
        const EL v = conj ? N_(conj)(data[p]) : data[p];
        for (int64_t q = 0; q < y->n; q++) {
            EL *t = py + i * y->rs + q * y->cs;
            *t = N_(add)(*t, N_(mul)(v, px[j * x->rs + q * x->cs]));
        }
    }
    return true;
}
