/* k_band_per_dtype.h: the loops of k_band.c for one dtype. */
#if FAM == FAM_F || FAM == FAM_C
#define CLONED LOPK_CLONES
#else
#define CLONED
#endif

/* y[t] += a[t] x[t], t < n, at strides. */
CLONED static void N_(muladd)(int64_t n, EL *restrict y, int64_t ys, const EL *restrict a,
                              int64_t as, bool conj, const EL *restrict x, int64_t xs) {
    if (ys == 1 && as == 1 && xs == 1 && !conj) {
        for (int64_t t = 0; t < n; t++) y[t] = N_(add)(y[t], N_(mul)(a[t], x[t]));
        return;
    }
    if (conj)
        for (int64_t t = 0; t < n; t++)
            y[t * ys] = N_(add)(y[t * ys], N_(mulc)(a[t * as], x[t * xs]));
    else
        for (int64_t t = 0; t < n; t++)
            y[t * ys] = N_(add)(y[t * ys], N_(mul)(a[t * as], x[t * xs]));
}
/* y[t] += a x[t]. */
CLONED static void N_(axpy)(int64_t n, EL *restrict y, int64_t ys, EL a, const EL *restrict x,
                            int64_t xs) {
    if (ys == 1 && xs == 1) {
        for (int64_t t = 0; t < n; t++) y[t] = N_(add)(y[t], N_(mul)(a, x[t]));
        return;
    }
    for (int64_t t = 0; t < n; t++) y[t * ys] = N_(add)(y[t * ys], N_(mul)(a, x[t * xs]));
}

/* -- bands */

/* Diagonal d of op(A) meets y[o] and x[o + d]; its entry there is ab[u - d, o + d], or in the
 * transpose ab[u + d, o]. */
static const EL *N_(entry)(const band_args *g, int64_t d, int64_t o) {
    const lop_mat *ab = g->ab;
    const int64_t r = g->trans ? g->u + d : g->u - d;
    return (const EL *)ab->p + r * ab->rs + (g->trans ? o : o + d) * ab->cs;
}

static void N_(band_mm)(const lop_mat *y, const band_args *g, const lop_mat *x) {
    const int64_t n = y->m, lo = -min_of(g->trans ? g->u : g->l, n - 1),
                  hi = min_of(g->trans ? g->l : g->u, n - 1);
    if (y->n > 1 && y->cs == 1 && x->cs == 1) {
        for (int64_t o = 0; o < n; o++)
            for (int64_t d = max_of(lo, -o); d <= min_of(hi, n - 1 - o); d++) {
                const EL a = *N_(entry)(g, d, o);
                N_(axpy)(y->n, (EL *)y->p + o * y->rs, 1, g->conj ? N_(conj)(a) : a,
                         (const EL *)x->p + (o + d) * x->rs, 1);
            }
        return;
    }
    for (int64_t c = 0; c < y->n; c++)
        for (int64_t from = 0; from < n; from += BLOCK)
            for (int64_t d = lo; d <= hi; d++) {
                const int64_t o = max_of(from, -d), end = min_of(min_of(from + BLOCK, n), n - d);
                if (o >= end) continue;
                N_(muladd)(end - o, (EL *)y->p + o * y->rs + c * y->cs, y->rs, N_(entry)(g, d, o),
                           g->ab->cs, g->conj && FAM == FAM_C,
                           (const EL *)x->p + (o + d) * x->rs + c * x->cs, x->rs);
            }
}

/* -- tridiagonal */

/* y[o] = l[o - 1] x[o - 1] + d[o] x[o] + u[o] x[o + 1], all strides 1. */
CLONED static void N_(tri_unit)(int64_t n, EL *restrict y, const EL *restrict l,
                                const EL *restrict d, const EL *restrict u, const EL *restrict x) {
    y[0] = N_(mul)(d[0], x[0]);
    if (n == 1) return;
    y[0] = N_(add)(y[0], N_(mul)(u[0], x[1]));
    for (int64_t o = 1; o < n - 1; o++)
        y[o] = N_(add)(N_(add)(N_(mul)(l[o - 1], x[o - 1]), N_(mul)(d[o], x[o])),
                       N_(mul)(u[o], x[o + 1]));
    y[n - 1] = N_(add)(N_(mul)(l[n - 2], x[n - 2]), N_(mul)(d[n - 1], x[n - 1]));
}

static EL N_(take)(const lop_mat *v, int64_t i, bool conj) {
    const EL e = ((const EL *)v->p)[i * v->rs];
    return conj ? N_(conj)(e) : e;
}

static void N_(tri_mm)(const lop_mat *y, const tri_args *g, const lop_mat *x) {
    const int64_t n = y->m;
    const bool conj = g->conj && FAM == FAM_C, flat = g->d->rs == 1 || n == 1,
               units = flat && (n < 3 || (g->dl->rs == 1 && g->du->rs == 1));
    if (units && !conj && y->rs == 1 && x->rs == 1) {
        for (int64_t c = 0; c < y->n; c++)
            N_(tri_unit)(n, (EL *)y->p + c * y->cs, g->dl->p, g->d->p, g->du->p,
                         (const EL *)x->p + c * x->cs);
        return;
    }
    lopk_zero(y);
    for (int64_t o = 0; o < n; o++) {
        EL *to = (EL *)y->p + o * y->rs;
        const EL *from = (const EL *)x->p + o * x->rs;
        if (o > 0) N_(axpy)(y->n, to, y->cs, N_(take)(g->dl, o - 1, conj), from - x->rs, x->cs);
        N_(axpy)(y->n, to, y->cs, N_(take)(g->d, o, conj), from, x->cs);
        if (o < n - 1) N_(axpy)(y->n, to, y->cs, N_(take)(g->du, o, conj), from + x->rs, x->cs);
    }
}

/* -- stencils and grids: coefficients are numbers of the dtype */

static EL N_(number)(double w, int64_t iw) {
#if FAM == FAM_B
    (void)w;
    return (EL)(iw != 0);
#elif FAM == FAM_I
    (void)w;
    return (EL)iw;
#elif FAM == FAM_F
    (void)iw;
    return (EL)w;
#else
    (void)iw;
    return (EL){(R)w, 0};
#endif
}
/* Real times element, so that infinities keep their parts. */
static inline EL N_(real_mul)(EL w, EL v) {
#if FAM == FAM_C
    return (EL){w.re * v.re, w.re * v.im};
#else
    return N_(mul)(w, v);
#endif
}
/* y[t] += w x[t] for rows of `inner` elements, or at strides. */
CLONED static void N_(realadd)(int64_t n, EL *restrict y, int64_t ys, EL w, const EL *restrict x,
                               int64_t xs) {
    if (ys == 1 && xs == 1) {
        for (int64_t t = 0; t < n; t++) y[t] = N_(add)(y[t], N_(real_mul)(w, x[t]));
        return;
    }
    for (int64_t t = 0; t < n; t++) y[t * ys] = N_(add)(y[t * ys], N_(real_mul)(w, x[t * xs]));
}

/* y[i] += w x[i + by] for all rows with both inside, all columns. */
static void N_(shifted)(const lop_mat *y, EL w, int64_t by, const lop_mat *x) {
    const int64_t from = max_of(0, -by), end = min_of(y->m, x->m - by);
    if (from >= end) return;
    EL *to = (EL *)y->p + from * y->rs;
    const EL *of = (const EL *)x->p + (from + by) * x->rs;
    if (y->n > 1 && y->cs == 1 && x->cs == 1 && y->rs == y->n && x->rs == x->n)
        N_(realadd)((end - from) * y->n, to, 1, w, of, 1);
    else if (y->n > end - from)
        for (int64_t i = 0; i < end - from; i++)
            N_(realadd)(y->n, to + i * y->rs, y->cs, w, of + i * x->rs, x->cs);
    else
        for (int64_t c = 0; c < y->n; c++)
            N_(realadd)(end - from, to + c * y->cs, y->rs, w, of + c * x->cs, x->rs);
}
static void N_(stencil)(const lop_mat *y, const stencil_args *g, const lop_mat *x) {
    for (int t = 0; t < g->count; t++) {
        const EL w = N_(number)(g->w[t], g->iw[t]);
        const int64_t by = g->first + t, n = x->m;
        if (!g->wrap) {
            N_(shifted)(y, w, by, x);
            continue;
        }
        const int64_t r = ((by % n) + n) % n; /* y->m == x->m: one piece from r on, one from 0 */
        N_(shifted)(y, w, r, x);
        if (r) N_(shifted)(y, w, r - n, x);
    }
}

/* One run of `inner` elements a grid point, point stride ys, xs. */
static void N_(laplace_line)(const grid_args *g, int64_t inner, EL *y, int64_t ys, int64_t yi,
                             const EL *x, int64_t xs, int64_t xi) {
    const int64_t n = g->n;
    const EL one = N_(number)(1, 1);
    if (n == 1 && g->bc == 2) return; /* its own neighbour on both sides */
    for (int64_t i = 0; i < n; i++) {
        const int faces = g->bc == 1 ? (i == 0) + (i == n - 1) : 0;
        const EL mid = N_(number)(faces - 2, faces - 2);
        N_(realadd)(inner, y + i * ys, yi, mid, x + i * xs, xi);
        if (i > 0 || g->bc == 2)
            N_(realadd)(inner, y + i * ys, yi, one, x + (i ? i - 1 : n - 1) * xs, xi);
        if (i < n - 1 || g->bc == 2)
            N_(realadd)(inner, y + i * ys, yi, one, x + (i < n - 1 ? i + 1 : 0) * xs, xi);
    }
}
static void N_(laplace)(const lop_mat *y, const grid_args *g, const lop_mat *x) {
    const bool flat = y->n > 1 && y->cs == 1 && x->cs == 1 && y->rs == y->n && x->rs == x->n;
    const int64_t columns = flat ? 1 : y->n, inner = flat ? g->right * y->n : g->right;
    for (int64_t c = 0; c < columns; c++)
        for (int64_t l = 0; l < g->left; l++) {
            const int64_t row = l * g->n * g->right;
            N_(laplace_line)(g, inner, (EL *)y->p + row * y->rs + c * y->cs, g->right * y->rs,
                             flat ? 1 : y->rs, (const EL *)x->p + row * x->rs + c * x->cs,
                             g->right * x->rs, flat ? 1 : x->rs);
        }
}

#if FAM == FAM_F || FAM == FAM_C
#include "k_band_solve_per_dtype.h"
#endif
#undef CLONED
