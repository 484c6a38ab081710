/* k_kron_per_dtype.h: one step with a factor of 16 x 16 at most, where setting up register blocks
 * takes longer than the product. Defined before: T (the scalar), CPLX, X(name). Vectors are four
 * scalars whatever the CPU has; strides of the factor count scalars. */
#define E_ (CPLX ? 2 : 1)
#define VE (4 / E_) /* elements of a vector */
typedef T X(vec) __attribute__((vector_size(4 * sizeof(T))));
typedef T X(mem) __attribute__((vector_size(4 * sizeof(T)), aligned(sizeof(T)), may_alias));

/* Sums with the real and the imaginary part of one operand (t), joined in s. */
#if CPLX
#define JOIN(s, t, conj)                                                                           \
    s += ((conj) ? (X(vec)){1, -1, 1, -1} : (X(vec)){-1, 1, -1, 1}) *                              \
         __builtin_shufflevector(t, t, 1, 0, 3, 2)
#else
#define JOIN(s, t, conj) (void)(t), (void)(conj)
#endif

/* y[l] (m, R) = A x[l] (n, R), R in scalars: vectors along R. */
static INLINE void X(wide)(const int64_t m, const int64_t n, int64_t L, int64_t R, const T *a,
                           int64_t ars, int64_t acs, bool conj, const T *x, T *y) {
    for (; L > 0; L--, x += n * R, y += m * R)
        for (int64_t c = 0; c < R; c += 4) {
            T own[4 * FEW];
            const bool whole = c + 4 <= R;
            const T *from = whole ? x + c : own;
            const int64_t step = whole ? R : 4;
            if (!whole)
                for (int64_t j = 0; j < n; j++)
                    for (int64_t q = 0; q < 4; q++)
                        own[4 * j + q] = c + q < R ? x[j * R + c + q] : 0;
            for (int64_t i = 0; i < m; i++) {
                X(vec) s = {0}, t = {0};
                for (int64_t j = 0; j < n; j++) {
                    const X(vec) v = *(const X(mem) *)(from + j * step);
                    const T *at = a + i * ars + j * acs;
                    s += at[0] * v;
                    if (CPLX) t += at[E_ - 1] * v;
                }
                JOIN(s, t, conj);
                if (whole)
                    *(X(mem) *)(y + i * R + c) = s;
                else
                    for (int64_t q = 0; c + q < R; q++) y[i * R + c + q] = s[q];
            }
        }
}

/* The same for R of one element: vectors along m. */
static INLINE void X(last)(const int64_t m, const int64_t n, int64_t L, const T *a, int64_t ars,
                           int64_t acs, bool conj, const T *x, T *y) {
    X(vec) cols[FEW / VE][FEW];
    for (int64_t p = 0; p * VE < m; p++)
        for (int64_t j = 0; j < n; j++) {
            X(vec) v = {0};
            for (int64_t q = 0; q < VE && p * VE + q < m; q++) {
                const T *at = a + (p * VE + q) * ars + j * acs;
                v[q * E_] = at[0];
                if (CPLX) v[q * E_ + E_ - 1] = conj ? -at[E_ - 1] : at[E_ - 1];
            }
            cols[p][j] = v;
        }
    for (; L > 0; L--, x += n * E_, y += m * E_)
        for (int64_t p = 0; p * VE < m; p++) {
            X(vec) s = {0}, t = {0};
            for (int64_t j = 0; j < n; j++) {
                s += x[j * E_] * cols[p][j];
                if (CPLX) t += x[j * E_ + E_ - 1] * cols[p][j];
            }
            JOIN(s, t, false);
            T *to = y + p * 4;
            if ((p + 1) * VE <= m)
                *(X(mem) *)to = s;
            else
                for (int64_t q = 0; q < (m - p * VE) * E_; q++) to[q] = s[q];
        }
}

#if !CPLX
/* For R = 2: vectors of two rows of y. */
static INLINE void X(pair)(const int64_t m, const int64_t n, int64_t L, const T *a, int64_t ars,
                           int64_t acs, const T *x, T *y) {
    X(vec) cols[FEW / 2][FEW];
    for (int64_t p = 0; 2 * p < m; p++)
        for (int64_t j = 0; j < n; j++) {
            const T one = a[2 * p * ars + j * acs],
                    two = 2 * p + 1 < m ? a[(2 * p + 1) * ars + j * acs] : 0;
            cols[p][j] = (X(vec)){one, one, two, two};
        }
    for (; L > 0; L--, x += 2 * n, y += 2 * m)
        for (int64_t p = 0; 2 * p < m; p++) {
            X(vec) s = {0};
            for (int64_t j = 0; j < n; j++)
                s += cols[p][j] * (X(vec)){x[2 * j], x[2 * j + 1], x[2 * j], x[2 * j + 1]};
            T *to = y + 4 * p;
            if (2 * p + 1 < m)
                *(X(mem) *)to = s;
            else
                to[0] = s[0], to[1] = s[1];
        }
}
#endif

LOPK_CLONES static void X(few)(const lop_mat *a, bool conj, int64_t L, int64_t R, const void *x,
                               void *y) {
    const int64_t ars = a->rs * E_, acs = a->cs * E_;
    if (R == 1) {
        if (a->m == 4 && a->n == 4)
            X(last)(4, 4, L, a->p, ars, acs, conj, x, y);
        else
            X(last)(a->m, a->n, L, a->p, ars, acs, conj, x, y);
#if !CPLX
    } else if (R == 2 && a->m == 4 && a->n == 4) {
        X(pair)(4, 4, L, a->p, ars, acs, x, y);
    } else if (R == 2) {
        X(pair)(a->m, a->n, L, a->p, ars, acs, x, y);
#endif
    } else if (a->m == 4 && a->n == 4) {
        X(wide)(4, 4, L, R * E_, a->p, ars, acs, conj, x, y);
    } else if (a->m == 2 && a->n == 2) {
        X(wide)(2, 2, L, R * E_, a->p, ars, acs, conj, x, y);
    } else {
        X(wide)(a->m, a->n, L, R * E_, a->p, ars, acs, conj, x, y);
    }
}
#undef JOIN
#undef E_
#undef VE
#undef T
#undef CPLX
#undef X
