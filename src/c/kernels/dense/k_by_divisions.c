/* k_by_divisions.c: LU, band LU and L D L^H with a division for each multiplier. */
#include "k_by_divisions.h"

#include "k_blas.h"
#include "kernels/common/kernels.h"

#include <complex.h>
#include <float.h>
#include <math.h>

typedef double _Complex num;

static double least_of(lop_dtype dt) { return dt == LOP_f32 || dt == LOP_c64 ? FLT_MIN : DBL_MIN; }
static double size_of(num v) { /* fmax passes over NaN */
    const double re = fabs(creal(v)), im = fabs(cimag(v));
    return isnan(re) || isnan(im) ? NAN : fmax(re, im);
}
static num at(const lop_mat *a, int64_t i, int64_t j) {
    return lop_get(a->dt, a->p, i * a->rs + j * a->cs);
}
static void put(const lop_mat *a, int64_t i, int64_t j, num v) {
    lop_set(a->dt, a->p, i * a->rs + j * a->cs, v);
}
static void swap(const lop_mat *a, int64_t i, int64_t j, int64_t r, int64_t c) {
    const num v = at(a, i, j);
    put(a, i, j, at(a, r, c));
    put(a, r, c, v);
}
/* No complex arithmetic on real numbers: inf times an imaginary zero is NaN. */
static num over(num s, num d, bool real) { return real ? creal(s) / creal(d) : s / d; }
static num times(num a, num b, bool real) { return real ? creal(a) * creal(b) : a * b; }
static lop_mat block(const lop_mat *a, int64_t i, int64_t j, int64_t m, int64_t n) {
    char *p = (char *)a->p + (i * a->rs + j * a->cs) * (int64_t)lop_dtype_size(a->dt);
    return (lop_mat){p, m, n, a->rs, a->cs, a->dt};
}

/* 0: a normal number; 1: below them, with something in the `under` elements behind it; -1: NaN, inf
 * or a true zero, after which nothing is to be saved. */
static int pivot_is(const lop_mat *a, int64_t i, int64_t j, int64_t under) {
    const double size = size_of(at(a, i, j));
    if (size >= least_of(a->dt) && size <= DBL_MAX) return 0;
    if (!(size <= DBL_MAX)) return -1;
    bool any = size > 0;
    for (int64_t k = 1; !any && k <= under; k++) any = size_of(at(a, i + k, j)) > 0;
    return any ? 1 : -1;
}
bool lopk_lu_is_spoilt(const lop_mat *f) {
    int is = 0;
    for (int64_t k = 0; is == 0 && k < f->m && k < f->n; k++) is = pivot_is(f, k, k, f->m - 1 - k);
    return is > 0;
}
bool lopk_band_lu_is_spoilt(const lop_mat *ab, int64_t l, int64_t u) {
    int is = 0;
    for (int64_t k = 0; is == 0 && k < ab->n; k++)
        is = pivot_is(ab, l + u, k, l < ab->n - 1 - k ? l : ab->n - 1 - k);
    return is > 0;
}
bool lopk_ldl_is_spoilt(const lop_mat *a, const void *e, const int64_t *ipiv) {
    for (int64_t k = 0; k < a->n; k++) { /* a zero on the diagonal of a block of two is none */
        const bool two = ipiv[k] < 0 && k + 1 < a->n;
        const double size = size_of(two ? lop_get(a->dt, e, k) : at(a, k, k));
        const bool wild = two && !(size_of(at(a, k, k)) + size_of(at(a, k + 1, k + 1)) <= DBL_MAX);
        if ((size > 0 && size < least_of(a->dt)) || !(size <= DBL_MAX) || wild) return true;
        k += two;
    }
    return false;
}
#define FAINT(T, least)                                                                            \
    for (int64_t j = 0; j < a->n; j++) {                                                           \
        const T *x = (const T *)a->p + j * a->cs * parts;                                          \
        int any = 0;                                                                               \
        for (int64_t i = 0; i < a->m * parts; i++)                                                 \
            any |= (x[i] != 0) & (x[i] < least) & (x[i] > -least);                                 \
        if (any) return true;                                                                      \
    }
bool lopk_has_faint(const lop_mat *a) {
    const int64_t parts = lop_is_complex(a->dt) ? 2 : 1;
    LOP_ASSERT(a->rs == 1 || a->m <= 1);
    if (a->dt == LOP_f32 || a->dt == LOP_c64) {
        FAINT(float, 0x1p-63f)
    } else {
        FAINT(double, 0x1p-511)
    }
    return false;
}
#undef FAINT
int lopk_below_one(const lop_mat *a) {
    int power = 0;
    (void)frexp(lopk_top(a), &power);
    return power < 0 ? -power : 0;
}

/* -- LU -- */

/* Columns j to j + w of a, of which rows before j are done, and their exchanges. */
static void factor_panel(const lop_mat *a, int64_t from, int64_t w, int64_t *ipiv, int64_t *info) {
    const bool real = !lop_is_complex(a->dt);
    for (int64_t j = from; j < from + w; j++) {
        int64_t top = j;
        for (int64_t i = j + 1; i < a->m; i++)
            if (size_of(at(a, i, j)) > size_of(at(a, top, j))) top = i;
        ipiv[j] = top + 1;
        const num pivot = at(a, top, j);
        if (pivot == 0) {
            if (!*info) *info = j + 1;
            continue;
        }
        for (int64_t c = from; top != j && c < from + w; c++) swap(a, j, c, top, c);
        for (int64_t i = j + 1; i < a->m; i++) put(a, i, j, over(at(a, i, j), pivot, real));
        for (int64_t c = j + 1; c < from + w; c++) {
            const num u = at(a, j, c);
            for (int64_t i = j + 1; u != 0 && i < a->m; i++)
                put(a, i, c, at(a, i, c) - times(at(a, i, j), u, real));
        }
    }
}

lop_status lopk_lu_by_divisions(const lop_mat *a, int64_t *ipiv, int64_t *info) {
    enum { PANEL = 16 };
    const int64_t all = a->m < a->n ? a->m : a->n;
    *info = 0;
    for (int64_t j = 0; j < all; j += PANEL) {
        const int64_t w = all - j < PANEL ? all - j : PANEL, right = a->n - j - w,
                      below = a->m - j - w;
        factor_panel(a, j, w, ipiv, info);
        for (int64_t i = j; i < j + w; i++)
            for (int64_t c = 0; ipiv[i] - 1 != i && c < a->n; c++)
                if (c < j || c >= j + w) swap(a, i, c, ipiv[i] - 1, c);
        if (right == 0) continue;
        const lop_mat l = block(a, j, j, w, w), top = block(a, j, j + w, w, right);
        const lop_status st = lopk_trsm(&l, true, true, 'N', &top);
        if (st != LOP_OK) return st;
        const lop_mat low = block(a, j + w, j, below, w),
                      rest = block(a, j + w, j + w, below, right);
        if (below > 0 && !lopk_gemm_add(&rest, -1, &low, false, &top)) return LOP_OVERFLOW;
    }
    return *info ? LOP_SINGULAR : LOP_OK;
}

void lopk_shift_upper(const lop_mat *f, int power) {
    for (int64_t j = 0; power && j < f->n; j++) {
        const lop_mat column = block(f, 0, j, j < f->m ? j + 1 : f->m, 1);
        lopk_shift_range(&column, power);
    }
}

lop_status lopk_lu_of(const lop_mat *f, const lop_mat *a, int64_t *ipiv, int64_t *info) {
    lopk_copy(f, a);
    lop_status st = lopk_getrf(f, ipiv, info);
    if ((st != LOP_OK && st != LOP_SINGULAR) || !lopk_lu_is_spoilt(f)) return st;
    const int up = lopk_below_one(a);
    lopk_copy(f, a);
    if (up) lopk_shift_range(f, up);
    st = lopk_lu_by_divisions(f, ipiv, info);
    lopk_shift_upper(f, -up);
    return st;
}

/* Element (i, j) of the matrix is element (l + u + i - j, j) of its band. */
void lopk_band_lu_by_divisions(const lop_mat *ab, int64_t l, int64_t u, int64_t *ipiv,
                               int64_t *info) {
    const int64_t n = ab->n, d = l + u;
    const bool real = !lop_is_complex(ab->dt);
    *info = 0;
    for (int64_t j = 0; j < n; j++) {
        const int64_t under = l < n - 1 - j ? l : n - 1 - j, past = d < n - 1 - j ? j + d + 1 : n;
        int64_t top = 0;
        for (int64_t i = 1; i <= under; i++)
            if (size_of(at(ab, d + i, j)) > size_of(at(ab, d + top, j))) top = i;
        ipiv[j] = j + top + 1;
        const num pivot = at(ab, d + top, j);
        if (pivot == 0) {
            if (!*info) *info = j + 1;
            continue;
        }
        for (int64_t c = j; top && c < past; c++) swap(ab, d + j - c, c, d + top + j - c, c);
        for (int64_t i = 1; i <= under; i++) put(ab, d + i, j, over(at(ab, d + i, j), pivot, real));
        for (int64_t c = j + 1; c < past; c++) {
            const num v = at(ab, d + j - c, c);
            for (int64_t i = 1; v != 0 && i <= under; i++)
                put(ab, d + i + j - c, c,
                    at(ab, d + i + j - c, c) - times(at(ab, d + i, j), v, real));
        }
    }
}

/* -- L D L^H, by the lower triangle -- */

typedef struct symmetric {
    const lop_mat *a;
    bool hermitian, real;
    int64_t n;
} symmetric;

static num turned(const symmetric *s, num v) { return s->hermitian ? conj(v) : v; }

/* Rows and columns i < j exchanged, in the columns that are done too. */
static void exchange(const symmetric *s, int64_t i, int64_t j) {
    const lop_mat *a = s->a;
    for (int64_t c = 0; c < i; c++) swap(a, i, c, j, c);
    swap(a, i, i, j, j);
    for (int64_t c = i + 1; c < j; c++) {
        const num v = turned(s, at(a, c, i));
        put(a, c, i, turned(s, at(a, j, c)));
        put(a, j, c, v);
    }
    put(a, j, i, turned(s, at(a, j, i)));
    for (int64_t r = j + 1; r < s->n; r++) swap(a, r, i, r, j);
}

/* Where in row `row` of what is left from k on the largest element beside the diagonal stands. */
static int64_t largest_beside(const symmetric *s, int64_t k, int64_t row, double *size) {
    int64_t found = row;
    *size = 0;
    for (int64_t c = k; c < s->n; c++) {
        const double here = c < row ? size_of(at(s->a, row, c)) : size_of(at(s->a, c, row));
        if (c == row || !(here > *size)) continue;
        *size = here;
        found = c;
    }
    return found;
}

/* The pivot of step k is brought to k, or, of order two, to k and k + 1. Its order; 0: there is
 * nothing left but zeros in column k. */
static int64_t bring_pivot(const symmetric *s, int64_t k, int64_t *ipiv) {
    const double alpha = (1 + sqrt(17)) / 8;
    double most, more;
    int64_t from = k, to = largest_beside(s, k, k, &most), order = 1;
    const double own = size_of(at(s->a, k, k));
    if (own == 0 && most == 0) order = 0;
    if (own >= alpha * most) to = k;
    while (own < alpha * most) {
        const int64_t next = largest_beside(s, k, to, &more);
        if (size_of(at(s->a, to, to)) >= alpha * more) break;
        if (from == next || more <= most) {
            order = 2;
            break;
        }
        from = to;
        most = more;
        to = next;
    }
    if (order < 2) from = k;
    if (from != k) exchange(s, k, from);
    ipiv[k] = from + 1;
    const int64_t second = order == 2 ? k + 1 : k;
    if (to == k) to = from; /* what stood there has been moved */
    if (order == 2 && to != second) exchange(s, second, to);
    if (order < 2 && to != k) exchange(s, k, to);
    ipiv[second] = to + 1;
    if (order == 2) {
        ipiv[k] = -ipiv[k];
        ipiv[second] = -ipiv[second];
    }
    return order;
}

/* What is left, less L D L^H of the `order` columns at k. w: op(D L^H), as columns. */
static bool subtract(const symmetric *s, int64_t k, int64_t order, const lop_mat *w) {
    enum { WIDE = 64 };
    for (int64_t j = k + order; j < s->n; j += WIDE) {
        const int64_t wide = s->n - j < WIDE ? s->n - j : WIDE;
        const lop_mat y = block(s->a, j, j, s->n - j, wide), l = block(s->a, j, k, s->n - j, order),
                      v = block(w, j, 0, wide, order), right = {v.p, order, wide, v.cs, v.rs, v.dt};
        if (!lopk_gemm_add(&y, -1, &l, false, &right)) return false;
    }
    return true;
}

static bool eliminate(const symmetric *s, int64_t k, int64_t order, void *e, const lop_mat *w) {
    const lop_mat *a = s->a;
    const num d = s->hermitian ? creal(at(a, k, k)) : at(a, k, k);
    put(a, k, k, d);
    if (order == 1) {
        for (int64_t i = k + 1; i < s->n; i++) {
            put(w, i, 0, turned(s, at(a, i, k)));
            put(a, i, k, over(at(a, i, k), d, s->real));
        }
        return subtract(s, k, 1, w);
    }
    const num beside = at(a, k + 1, k), other = turned(s, beside),
              after = s->hermitian ? creal(at(a, k + 1, k + 1)) : at(a, k + 1, k + 1),
              p = over(d, beside, s->real), q = over(after, other, s->real),
              det = times(p, q, s->real) - 1;
    put(a, k + 1, k + 1, after);
    put(a, k + 1, k, 0);
    lop_set(a->dt, e, k, beside);
    for (int64_t i = k + 2; i < s->n; i++) {
        const num one = at(a, i, k), two = at(a, i, k + 1), y = over(one, beside, s->real),
                  z = over(two, other, s->real);
        put(w, i, 0, turned(s, one));
        put(w, i, 1, turned(s, two));
        put(a, i, k, over(times(q, y, s->real) - z, det, s->real));
        put(a, i, k + 1, over(times(p, z, s->real) - y, det, s->real));
    }
    return subtract(s, k, 2, w);
}

lop_status lopk_ldl_by_divisions(const lop_mat *a, bool hermitian, void *e, int64_t *ipiv,
                                 void *work, int64_t *info) {
    const symmetric s = {a, hermitian, !lop_is_complex(a->dt), a->n};
    const lop_mat w = {work, a->n, 2, 1, a->n, a->dt};
    *info = 0;
    for (int64_t k = 0; k < a->n; k++) lop_set(a->dt, e, k, 0);
    for (int64_t k = 0, order; k < a->n; k += order) {
        order = bring_pivot(&s, k, ipiv);
        if (order == 0) {
            *info = *info ? *info : k + 1;
            order = 1;
        } else if (!eliminate(&s, k, order, e, &w)) {
            return LOP_OVERFLOW;
        }
    }
    return LOP_OK;
}
