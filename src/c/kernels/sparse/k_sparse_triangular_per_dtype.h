/* k_sparse_triangular_per_dtype.h: one dtype: division, k_sparse_triangular_per_index.h for both
 * index types, incomplete Cholesky. */
#if FAM == FAM_F
static inline EL N_(over)(EL a, EL b) { return a / b; }
static inline bool N_(is_zero)(EL a) { return a == 0; }
static inline double N_(part)(EL a) { return (double)a; }
static inline double N_(size)(EL a) { return fabs((double)a); }
static inline EL N_(times)(EL a, double s) { return (EL)((double)a * s); }
static inline EL N_(of_real)(double a) { return (EL)a; }
#elif FAM == FAM_C
static inline EL N_(over)(EL a, EL b) { /* Smith 1962 */
    if (fabs((double)b.re) >= fabs((double)b.im)) {
        const R r = b.im / b.re, d = b.re + b.im * r;
        return (EL){(a.re + a.im * r) / d, (a.im - a.re * r) / d};
    }
    const R r = b.re / b.im, d = b.re * r + b.im;
    return (EL){(a.re * r + a.im) / d, (a.im * r - a.re) / d};
}
static inline bool N_(is_zero)(EL a) { return a.re == 0 && a.im == 0; }
static inline double N_(part)(EL a) { return (double)a.re; }
static inline double N_(size)(EL a) { return hypot((double)a.re, (double)a.im); }
static inline EL N_(times)(EL a, double s) {
    return (EL){(R)((double)a.re * s), (R)((double)a.im * s)};
}
static inline EL N_(of_real)(double a) { return (EL){(R)a, 0}; }
#endif

#if FAM == FAM_F || FAM == FAM_C
/* Element i of the diagonal; false: it is zero. */
static inline bool N_(is_pivot)(tri_args *g, int64_t i, EL d) {
    const double size = N_(size)(d);
    g->least = size < g->least ? size : g->least;
    g->most = size > g->most ? size : g->most;
    if (!N_(is_zero)(d)) return true;
    g->zero = i;
    return false;
}
#endif

/* y += v x, or y -= v x, over k elements at any strides. */
static inline __attribute__((always_inline)) void N_(tri_add)(int64_t k, EL *y, int64_t ys, EL v,
                                                              const EL *x, int64_t xs) {
    for (int64_t q = 0; q < k; q++) y[q * ys] = N_(add)(y[q * ys], N_(mul)(v, x[q * xs]));
}
#if FAM == FAM_F || FAM == FAM_C
static inline __attribute__((always_inline)) void N_(tri_sub)(int64_t k, EL *y, int64_t ys, EL v,
                                                              const EL *x, int64_t xs) {
    for (int64_t q = 0; q < k; q++) y[q * ys] = N_(sub)(y[q * ys], N_(mul)(v, x[q * xs]));
}
static inline void N_(tri_over)(int64_t k, EL *y, int64_t ys, EL d) {
    for (int64_t q = 0; q < k; q++) y[q * ys] = N_(over)(y[q * ys], d);
}
#endif

#define IX int32_t
#define S_(name) LOPK_CAT(N_(name), _i32)
#include "k_sparse_triangular_per_index.h"
#undef IX
#undef S_
#define IX int64_t
#define S_(name) LOPK_CAT(N_(name), _i64)
#include "k_sparse_triangular_per_index.h"
#undef IX
#undef S_

#if FAM == FAM_F || FAM == FAM_C
/* The column being made: `line` holds its values by row, `list` which rows, `mark` that they are
 * there. `first`: where each column of L goes on, `head`, `next`: the lists of columns by row. */
typedef struct N_(column) {
    EL *line;
    int64_t *list, *mark, *first, *head, *next, count;
} N_(column);

/* Column j of A; its norm (sum of sizes), or -1 where an index is not where it should be. */
static double N_(ichol_load)(const lopk_ichol_args *a, N_(column) * c, int64_t j) {
    const EL *data = a->data;
    const int64_t from = a->ptr[j], to = a->ptr[j + 1];
    double norm = 0;
    if (from < 0 || to <= from || to > a->ptr[a->n] || a->index[from] != j) return -1;
    c->count = 0;
    for (int64_t p = from; p < to; p++) {
        const int64_t i = a->index[p];
        if (i >= a->n || (p > from && i <= a->index[p - 1])) return -1;
        c->line[i] = data[p];
        c->mark[i] = j;
        if (p > from) c->list[c->count++] = i;
        norm += N_(size)(data[p]);
    }
    return norm;
}

/* Subtracts what the columns before, those with an element in row j, have there and below. */
static void N_(ichol_update)(const lopk_ichol_args *a, N_(column) * c, int64_t j) {
    const EL *l = a->ldata;
    for (int64_t k = c->head[j], after; k >= 0; k = after) {
        const int64_t at = c->first[k], end = a->lptr[k + 1];
        const EL v = N_(conj)(l[at]);
        after = c->next[k];
        for (int64_t p = at; p < end; p++) {
            const int64_t i = a->lindex[p];
            if (c->mark[i] != j) {
                if (a->fill < 0) continue;
                c->mark[i] = j;
                c->list[c->count++] = i;
                c->line[i] = N_(zero)();
            }
            c->line[i] = N_(sub)(c->line[i], N_(mul)(v, l[p]));
        }
        if (at + 1 < end) {
            const int64_t row = a->lindex[at + 1];
            c->first[k] = at + 1;
            c->next[k] = c->head[row];
            c->head[row] = k;
        }
    }
}

/* Drops, and sorts what stays. */
static void N_(ichol_drop)(const lopk_ichol_args *a, N_(column) * c, int64_t own, double norm,
                           double *size) {
    int64_t kept = 0;
    for (int64_t q = 0; q < c->count; q++) {
        const double s = N_(size)(c->line[c->list[q]]);
        if (!(s > a->drop * norm)) continue;
        c->list[kept] = c->list[q];
        size[kept++] = s;
    }
    const int64_t most = own + a->fill;
    if (kept > most) {
        largest_first(c->list, size, kept, most);
        kept = most;
    }
    sort(c->list, kept);
    c->count = kept;
}

#define ROUNDED (sizeof(EL) == (FAM == FAM_C ? 8 : 4) ? 1e-6 : 1e-14)
static lop_status N_(ichol)(const lopk_ichol_args *a, int64_t *where) {
    const int64_t n = a->n;
    EL *l = a->ldata;
    N_(column)
    c = {a->line, a->work, a->work + n, a->work + 2 * n, a->work + 3 * n, a->work + 4 * n, 0};
    double *size = (double *)(void *)(a->work + 5 * n);
    int64_t at = 0;
    for (int64_t j = 0; j < n; j++) c.mark[j] = c.head[j] = -1;
    for (int64_t j = 0; j < n; j++) {
        *where = j;
        a->lptr[j] = at;
        const double norm = N_(ichol_load)(a, &c, j);
        if (norm < 0) return LOP_INDEX;
        const int64_t own = c.count;
        const double whole = N_(part)(c.line[j]) * (1 + a->shift);
        c.line[j] = N_(zero)();
        N_(ichol_update)(a, &c, j);
        const double pivot = whole + N_(part)(c.line[j]);
        /* below that, rounding alone may have left it positive; NaN ends here too */
        if (!(pivot > ROUNDED * whole) || !(pivot < INFINITY)) return LOP_SINGULAR;
        if (a->fill >= 0) N_(ichol_drop)(a, &c, own, norm, size);
        if (at + c.count + 1 > a->room) return LOP_OVERFLOW;
        const double root = sqrt(pivot);
        a->lindex[at] = j;
        l[at] = N_(of_real)(root);
        for (int64_t q = 0; q < c.count; q++) {
            a->lindex[at + 1 + q] = c.list[q];
            l[at + 1 + q] = N_(times)(c.line[c.list[q]], 1 / root);
        }
        if (c.count > 0) {
            c.first[j] = at + 1;
            c.next[j] = c.head[c.list[0]];
            c.head[c.list[0]] = j;
        }
        at += 1 + c.count;
    }
    a->lptr[n] = at;
    return LOP_OK;
}
#undef ROUNDED
#endif
