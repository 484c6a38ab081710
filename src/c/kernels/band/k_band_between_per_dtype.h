/* k_band_between_per_dtype.h: A^-1 X A^-1 on the band, as the derivative of A^-1 along -X: that of
 * each line of k_band_inverse_per_dtype.h, which includes this. dA lies as A's factor does, dZ as
 * Z.
 */

/* dL, d(DU), dD where dA = X lay; `a` as `factor` left it. */
static void N_(factor_along)(const lopk_lines *A, const EL *a, EL *da) {
    const int64_t n = A->n, l = A->l, u = A->u, w = l + u + 1;
    for (int64_t j = 0; j < n; j++) {
        const EL *own = a + j * w + l;
        const EL *down = da + j * w + l;
        const int64_t wide = least(u, n - 1 - j);
        for (int64_t s = 1; s <= l && j + s < n; s++) {
            const EL m = own[s * (w - 1)];
            EL *row = da + j * w + l + s * (w - 1);
            const EL dm = row[0] = N_(mul)(N_(sub)(row[0], N_(mul)(m, down[0])), own[0]);
            for (int64_t t = 1; t <= wide; t++) {
                const EL less = N_(add)(N_(mul)(dm, own[t]), N_(mul)(m, down[t]));
                row[t] = N_(sub)(row[t], less);
            }
        }
    }
}

/* dZ on the band; `a` as `select_band` left it, d(DU) becomes dU. */
static void N_(select_along)(const lopk_lines *A, const EL *a, const EL *z, EL *da, EL *dz) {
    const int64_t n = A->n, l = A->l, u = A->u, w = l + u + 1;
    for (int64_t j = n - 1; j >= 0; j--) {
        const int64_t low = least(l, n - 1 - j), wide = least(u, n - 1 - j);
        const EL *across = a + j * w + l;
        EL *along = da + j * w + l, *own = dz + j * w + u;
        const EL r = across[0], dd = along[0];
        for (int64_t t = 1; t <= wide; t++)
            along[t] = N_(mul)(r, N_(sub)(along[t], N_(mul)(dd, across[t])));
        for (int64_t s = 1; s <= low; s++) own[s] = N_(zero)();
        for (int64_t t = 1; t <= wide; t++) {
            const EL *row = z + (j + t) * w + u - t, *drow = dz + (j + t) * w + u - t;
            EL sum = N_(zero)();
            for (int64_t s = 1; s <= low; s++) {
                const int64_t at = (j + s) * w + l - s;
                sum = N_(add)(sum, N_(add)(N_(mul)(drow[s], a[at]), N_(mul)(row[s], da[at])));
                const EL less = N_(add)(N_(mul)(along[t], row[s]), N_(mul)(across[t], drow[s]));
                own[s] = N_(sub)(own[s], less);
            }
            dz[(j + t) * w + u - t] = N_(sub)(N_(zero)(), sum);
        }
        own[0] = N_(sub)(N_(zero)(), N_(mul)(r, N_(mul)(dd, r)));
        for (int64_t t = 1; t <= wide; t++) {
            const int64_t at = (j + t) * w + u - t;
            const EL less = N_(add)(N_(mul)(along[t], z[at]), N_(mul)(across[t], dz[at]));
            own[0] = N_(sub)(own[0], less);
        }
    }
}

/* Are |(A dZ + X Z)_ii| and |(dZ A + Z X)_ii| for all i below 10 n u times what they are of two
 * solves: |A| |dZ_i| + |X| |Z_i| (1 + |A| |Z|), sizes as in `holds`? */
static bool N_(holds_along)(const lopk_lines *A, const EL *a, const EL *x, const EL *z,
                            const EL *dz, double norm, double along, double most) {
    const int64_t n = A->n, l = A->l, u = A->u, w = l + u + 1;
    const double eps = A->dt == LOP_f32 || A->dt == LOP_c64 ? FLT_EPSILON : DBL_EPSILON,
                 bound = 5 * (double)n * eps, twice = along * (1 + norm * most);
    for (int64_t i = 0; i < n; i++) {
        EL right = N_(zero)(), left = right;
        double size[2] = {0, 0}, step[2] = {0, 0};
        for (int64_t j = i < l ? 0 : i - l; j < n && j <= i + u; j++) { /* A[i, j], Z[j, i] */
            const int64_t p = i * w + l + j - i, q = j * w + u + i - j;
            right = N_(add)(right, N_(add)(N_(mul)(a[p], dz[q]), N_(mul)(x[p], z[q])));
            size[0] = fmax(size[0], N_(size)(z[q]));
            step[0] = fmax(step[0], N_(size)(dz[q]));
        }
        for (int64_t j = i < u ? 0 : i - u; j < n && j <= i + l; j++) { /* Z[i, j], A[j, i] */
            const int64_t p = j * w + l + i - j, q = i * w + u + j - i;
            left = N_(add)(left, N_(add)(N_(mul)(dz[q], a[p]), N_(mul)(z[q], x[p])));
            size[1] = fmax(size[1], N_(size)(z[q]));
            step[1] = fmax(step[1], N_(size)(dz[q]));
        }
        if (!(N_(size)(right) <= bound * (norm * step[0] + twice * size[0])) ||
            !(N_(size)(left) <= bound * (norm * step[1] + twice * size[1])))
            return false;
    }
    return true;
}

static lop_status N_(band_between)(const lop_mat *y, int64_t k, const lopk_lines *A,
                                   const lopk_lines *X, void *work, double *rcond) {
    const int64_t all = A->n * (A->l + A->u + 1);
    EL *a = work, *held = a + all, *z = held + all, *da = z + all, *x = da + all, *dz = x + all,
       *column = dz + all;
    double most;
    const double norm = N_(load)(A, a, held), along = N_(load)(X, da, x);
    *rcond = 1;
    if (!N_(factor)(A, a, norm)) return LOP_SINGULAR;
    N_(factor_along)(A, a, da);
    N_(select_band)(A, a, z, column);
    if (!N_(holds)(A, held, z, norm, &most)) return LOP_SINGULAR;
    N_(select_along)(A, a, z, da, dz);
    if (!N_(holds_along)(A, held, x, z, dz, norm, along, most)) return LOP_SINGULAR;
    for (int64_t i = 0; i < y->m; i++) {
        const int64_t row = k < 0 ? i - k : i;
        ((EL *)y->p)[i * y->rs] = N_(sub)(N_(zero)(), dz[row * (A->l + A->u + 1) + A->u + k]);
    }
    if (norm * most > 1) *rcond = 1 / (norm * most);
    return LOP_OK;
}
