/* k_sparse_triangular_per_index.h: products and substitution for one dtype (k_elem.h) and one index
 * type. Macros: IX the index type, S_(name) the function's name. Return false at the first bad
 * index. */

/* Does element (i, j) off the diagonal lie in the triangle? */
#define INSIDE(g, i, j) ((g)->lower ? (j) < (i) : (j) > (i))

/* The bounds of line i; false where they are not. */
static inline bool S_(tri_line)(const tri_args *g, int64_t i, int64_t *from, int64_t *to) {
    const IX *ptr = g->ptr;
    *from = (int64_t)ptr[i];
    *to = (int64_t)ptr[i + 1];
    return *from >= 0 && *from <= *to && *to <= g->nnz;
}
static inline EL S_(tri_value)(const tri_args *g, int64_t p) {
    const EL v = ((const EL *)g->data)[p];
    return g->conj ? N_(conj)(v) : v;
}

/* One right side: summed in a register. */
static bool S_(tri_rows_one)(const tri_args *g, const EL *x, int64_t xs, EL *y, int64_t ys) {
    const IX *index = g->index;
    for (int64_t i = 0, p, to; i < g->n; i++) {
        if (!S_(tri_line)(g, i, &p, &to)) return false;
        EL s = g->unit ? x[i * xs] : N_(zero)();
        for (; p < to; p++) {
            const int64_t j = (int64_t)index[p];
            if ((uint64_t)j >= (uint64_t)g->n) return false;
            if (INSIDE(g, i, j) || (j == i && !g->unit))
                s = N_(add)(s, N_(mul)(S_(tri_value)(g, p), x[j * xs]));
        }
        y[i * ys] = s;
    }
    return true;
}

/* y += T x by rows; y is zeroed by the caller. */
static bool S_(tri_rows)(const tri_args *g, const lop_mat *x, const lop_mat *y) {
    const IX *index = g->index;
    const EL *px = x->p;
    EL *py = y->p;
    if (y->n == 1) return S_(tri_rows_one)(g, px, x->rs, py, y->rs);
    for (int64_t i = 0, p, to; i < g->n; i++) {
        if (!S_(tri_line)(g, i, &p, &to)) return false;
        EL *row = py + i * y->rs;
        for (; p < to; p++) {
            const int64_t j = (int64_t)index[p];
            if ((uint64_t)j >= (uint64_t)g->n) return false;
            if (INSIDE(g, i, j) || (j == i && !g->unit))
                N_(tri_add)(y->n, row, y->cs, S_(tri_value)(g, p), px + j * x->rs, x->cs);
        }
        if (g->unit)
            for (int64_t q = 0; q < y->n; q++)
                row[q * y->cs] = N_(add)(row[q * y->cs], px[i * x->rs + q * x->cs]);
    }
    return true;
}

/* The same by columns. */
static bool S_(tri_columns)(const tri_args *g, const lop_mat *x, const lop_mat *y) {
    const IX *index = g->index;
    const EL *px = x->p;
    EL *py = y->p;
    for (int64_t j = 0, p, to; j < g->n; j++) {
        if (!S_(tri_line)(g, j, &p, &to)) return false;
        const EL *own = px + j * x->rs;
        for (; p < to; p++) {
            const int64_t i = (int64_t)index[p];
            if ((uint64_t)i >= (uint64_t)g->n) return false;
            if (INSIDE(g, i, j) || (j == i && !g->unit))
                N_(tri_add)(y->n, py + i * y->rs, y->cs, S_(tri_value)(g, p), own, x->cs);
        }
        if (g->unit)
            for (int64_t q = 0; q < y->n; q++)
                py[j * y->rs + q * y->cs] = N_(add)(py[j * y->rs + q * y->cs], own[q * x->cs]);
    }
    return true;
}

#if FAM == FAM_F || FAM == FAM_C
/* One right side at stride 1, by rows: what is known is summed in a register. */
static inline __attribute__((always_inline)) bool S_(tri_one)(tri_args *g, EL *y, bool lower,
                                                              bool conj) {
    const IX *index = g->index;
    const EL *data = g->data;
    for (int64_t t = 0, p, to; t < g->n; t++) {
        const int64_t i = lower ? t : g->n - 1 - t;
        if (!S_(tri_line)(g, i, &p, &to)) return false;
        EL d = N_(zero)(), s = y[i];
        for (; p < to; p++) {
            const int64_t j = (int64_t)index[p];
            if ((uint64_t)j >= (uint64_t)g->n) return false;
            const EL v = conj ? N_(conj)(data[p]) : data[p];
            if (lower ? j < i : j > i)
                s = N_(sub)(s, N_(mul)(v, y[j]));
            else if (j == i)
                d = N_(add)(d, v);
        }
        if (!g->unit && !N_(is_pivot)(g, i, d)) return false;
        y[i] = g->unit ? s : N_(over)(s, d);
    }
    return true;
}

static bool S_(tri_rows_solve)(tri_args *g, const lop_mat *y) {
    const IX *index = g->index;
    EL *py = y->p;
    if (y->n == 1 && y->rs == 1) {
        if (g->conj) return S_(tri_one)(g, py, g->lower, true);
        return g->lower ? S_(tri_one)(g, py, true, false) : S_(tri_one)(g, py, false, false);
    }
    for (int64_t t = 0, p, to; t < g->n; t++) {
        const int64_t i = g->lower ? t : g->n - 1 - t;
        if (!S_(tri_line)(g, i, &p, &to)) return false;
        EL d = N_(zero)(), *row = py + i * y->rs;
        for (; p < to; p++) {
            const int64_t j = (int64_t)index[p];
            if ((uint64_t)j >= (uint64_t)g->n) return false;
            const EL v = S_(tri_value)(g, p);
            if (INSIDE(g, i, j))
                N_(tri_sub)(y->n, row, y->cs, v, py + j * y->rs, y->cs);
            else if (j == i)
                d = N_(add)(d, v);
        }
        if (g->unit) continue;
        if (!N_(is_pivot)(g, i, d)) return false;
        N_(tri_over)(y->n, row, y->cs, d);
    }
    return true;
}

static bool S_(tri_columns_solve)(tri_args *g, const lop_mat *y) {
    const IX *index = g->index;
    EL *py = y->p;
    for (int64_t t = 0, from, to; t < g->n; t++) {
        const int64_t j = g->lower ? t : g->n - 1 - t;
        if (!S_(tri_line)(g, j, &from, &to)) return false;
        EL d = N_(zero)(), *own = py + j * y->rs;
        for (int64_t p = from; p < to; p++) { /* a bad index is one before a zero is */
            const int64_t i = (int64_t)index[p];
            if ((uint64_t)i >= (uint64_t)g->n) return false;
            if (i == j) d = N_(add)(d, S_(tri_value)(g, p));
        }
        if (!g->unit) {
            if (!N_(is_pivot)(g, j, d)) return false;
            N_(tri_over)(y->n, own, y->cs, d);
        }
        for (int64_t p = from; p < to; p++) {
            const int64_t i = (int64_t)index[p];
            if ((uint64_t)i >= (uint64_t)g->n) return false;
            if (INSIDE(g, i, j))
                N_(tri_sub)(y->n, py + i * y->rs, y->cs, S_(tri_value)(g, p), own, y->cs);
        }
    }
    return true;
}
#endif
#undef INSIDE
