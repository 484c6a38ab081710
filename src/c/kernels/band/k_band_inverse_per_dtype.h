/* k_band_inverse_per_dtype.h: the loops of k_band_inverse.c for one float dtype. A's factor lies
 * row by row, element (i, j) at a[i w + l + j - i], w = l + u + 1; Z at z[i w + u + j - i]. */
#if FAM == FAM_F || FAM == FAM_C

#if FAM == FAM_C
static inline double N_(size)(EL a) { return fabs((double)a.re) + fabs((double)a.im); }
static inline bool N_(positive)(EL a) { return a.re > 0; }
/* 1 / a, by way of double, whose range float's squares do not leave. */
static inline EL N_(over)(EL a) {
    const double _Complex r = 1 / ((double)a.re + (double)a.im * I);
    return (EL){(R)creal(r), (R)cimag(r)};
}
static inline EL N_(only_real)(EL a) { return (EL){a.re, 0}; }
#else
static inline double N_(size)(EL a) { return fabs((double)a); }
static inline bool N_(positive)(EL a) { return a > 0; }
static inline EL N_(over)(EL a) { return 1 / a; }
static inline EL N_(only_real)(EL a) { return a; }
#endif

/* Element (i, j), whichever half is read. */
static inline EL N_(entry)(const lopk_lines *A, int64_t i, int64_t j) {
    int64_t k = j - i;
    const bool other = A->half == LOPK_UPPER ? k < 0 : A->half == LOPK_LOWER ? k > 0 : false;
    if (other) k = -k;
    const lop_mat *d = &A->at[A->l + k];
    const EL v = ((const EL *)d->p)[least(i, j) * d->rs];
    if (other) return N_(conj)(v);
    return A->half && k == 0 ? N_(only_real)(v) : v;
}

/* A into `a` and `held`; its norm in the infinity norm. */
static double N_(load)(const lopk_lines *A, EL *a, EL *held) {
    const int64_t l = A->l, w = l + A->u + 1;
    double norm = 0;
    for (int64_t i = 0; i < A->n; i++) {
        double sum = 0;
        for (int64_t j = i < l ? 0 : i - l; j < A->n && j <= i + A->u; j++) {
            a[i * w + l + j - i] = held[i * w + l + j - i] = N_(entry)(A, i, j);
            sum += N_(size)(a[i * w + l + j - i]);
        }
        if (!(sum <= norm)) norm = sum;
    }
    return norm;
}

/* L and D U where A lay, 1 / D in place of D. False: it is not known to be backward stable. */
static bool N_(factor)(const lopk_lines *A, EL *a, double norm) {
    const int64_t n = A->n, l = A->l, u = A->u, w = l + u + 1;
    bool definite = A->half || A->adjoint;
    double below = 0, above = 0;
    for (int64_t j = 0; j < n; j++) {
        EL *own = a + j * w + l;
        const int64_t wide = least(u, n - 1 - j);
        const EL r = N_(over)(own[0]);
        double sum = N_(size)(own[0]), left = 1;
        definite = definite && N_(positive)(own[0]);
        if (A->half && !definite) return false;
        for (int64_t t = 1; t <= wide; t++) sum += N_(size)(own[t]);
        for (int64_t t = 1; t <= least(l, j); t++) left += N_(size)(own[-t]);
        if (!(sum <= above)) above = sum;
        if (!(left <= below)) below = left;
        own[0] = r;
        for (int64_t s = 1; s <= l && j + s < n; s++) {
            EL *row = own + s * (w - 1);
            const EL m = row[0] = N_(mul)(row[0], r);
            for (int64_t t = 1; t <= wide; t++) row[t] = N_(sub)(row[t], N_(mul)(m, own[t]));
        }
    }
    return isfinite(below * above) && (definite || below * above <= SOUND * norm);
}

/* Z on the band; `column` has room for l elements. */
static void N_(select_band)(const lopk_lines *A, EL *a, EL *z, EL *column) {
    const int64_t n = A->n, l = A->l, u = A->u, w = l + u + 1;
    for (int64_t j = n - 1; j >= 0; j--) {
        const int64_t low = least(l, n - 1 - j), wide = least(u, n - 1 - j);
        EL *across = a + j * w + l, *own = z + j * w + u;
        const EL r = across[0];
        for (int64_t s = 1; s <= low; s++) column[s - 1] = a[(j + s) * w + l - s];
        for (int64_t t = 1; t <= wide; t++) across[t] = N_(mul)(r, across[t]);
        for (int64_t s = 1; s <= low; s++) own[s] = N_(zero)();
        for (int64_t t = 1; t <= wide; t++) { /* row j + t of Z, columns j + 1 to j + l */
            const EL *row = z + (j + t) * w + u - t;
            EL sum = N_(zero)();
            for (int64_t s = 1; s <= low; s++) {
                sum = N_(add)(sum, N_(mul)(row[s], column[s - 1]));
                own[s] = N_(sub)(own[s], N_(mul)(across[t], row[s]));
            }
            z[(j + t) * w + u - t] = N_(sub)(N_(zero)(), sum);
        }
        own[0] = r;
        for (int64_t t = 1; t <= wide; t++)
            own[0] = N_(sub)(own[0], N_(mul)(across[t], z[(j + t) * w + u - t]));
    }
}

/* Is |(A Z - I)_ii| and |(Z A - I)_ii| below 10 n u (|A| |Z_i| + 1) for all i, |Z_i| being the
 * largest element of that column or row on the band? The largest of all in *most. */
static bool N_(holds)(const lopk_lines *A, const EL *a, const EL *z, double norm, double *most) {
    const int64_t n = A->n, l = A->l, u = A->u, w = l + u + 1;
    const double eps = A->dt == LOP_f32 || A->dt == LOP_c64 ? FLT_EPSILON : DBL_EPSILON,
                 bound = 5 * (double)n * eps;
    *most = 0;
    for (int64_t i = 0; i < n; i++) {
        const EL one = N_(mul)(z[i * w + u], a[i * w + l]);
        EL right = one, left = one;
        double size = N_(size)(z[i * w + u]), other = size;
        for (int64_t j = i < l ? 0 : i - l; j < n && j <= i + u; j++) {
            if (j == i) continue; /* A[i, j] Z[j, i] */
            const EL v = z[j * w + u + i - j];
            right = N_(add)(right, N_(mul)(a[i * w + l + j - i], v));
            size = fmax(size, N_(size)(v));
        }
        for (int64_t j = i < u ? 0 : i - u; j < n && j <= i + l; j++) {
            if (j == i) continue; /* Z[i, j] A[j, i] */
            const EL v = z[i * w + u + j - i];
            left = N_(add)(left, N_(mul)(v, a[j * w + l + i - j]));
            other = fmax(other, N_(size)(v));
        }
#if FAM == FAM_C
        right.re -= 1;
        left.re -= 1;
#else
        right -= 1;
        left -= 1;
#endif
        if (!(N_(size)(right) <= bound * (norm * size + 1)) ||
            !(N_(size)(left) <= bound * (norm * other + 1)))
            return false;
        *most = fmax(*most, fmax(size, other));
    }
    return true;
}

/* Row j of y: the column j of Z on the band, from above. */
static void N_(put_band)(const lop_mat *y, const lopk_lines *A, const EL *z) {
    const int64_t n = A->n, w = A->l + A->u + 1;
    for (int64_t j = 0; j < n; j++)
        for (int64_t t = 0; t < w; t++) {
            const int64_t i = j - A->l + t;
            ((EL *)y->p)[j * y->rs + t * y->cs] =
                i < 0 || i >= n ? N_(zero)() : z[i * w + A->u + j - i];
        }
}

static lop_status N_(band_inverse)(const lop_mat *y, int64_t k, const lopk_lines *A, void *work,
                                   double *rcond) {
    const int64_t w = A->l + A->u + 1;
    EL *a = work, *held = a + A->n * w, *z = held + A->n * w, *column = z + A->n * w;
    double most;
    const double norm = N_(load)(A, a, held);
    *rcond = 1;
    if (!N_(factor)(A, a, norm)) return LOP_SINGULAR;
    N_(select_band)(A, a, z, column);
    if (!N_(holds)(A, held, z, norm, &most)) return LOP_SINGULAR;
    if (y->n > 1) N_(put_band)(y, A, z);
    for (int64_t i = 0; y->n == 1 && i < y->m; i++) {
        const int64_t row = k < 0 ? i - k : i;
        ((EL *)y->p)[i * y->rs] = z[row * w + A->u + k];
    }
    if (norm * most > 1) *rcond = 1 / (norm * most);
    return LOP_OK;
}

#include "kernels/band/k_band_between_per_dtype.h"

#endif
