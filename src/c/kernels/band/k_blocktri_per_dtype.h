/* k_blocktri_per_dtype.h: products with small blocks for one dtype, without a call a block. */

/* y (+)= op(a) x for `count` blocks of b x b, one behind the other. */
static inline void N_(blocks_mv)(int64_t b, const line_args *g, const lop_mat *y, const lop_mat *x,
                                 int64_t column) {
    const int64_t ys = y->rs, xs = x->rs, rs = g->rs, cs = g->cs;
    const bool conj = g->conj && FAM == FAM_C;
    EL *to = (EL *)y->p + g->row * b * ys + column * y->cs;
    const EL *from = (const EL *)x->p + g->col * b * xs + column * x->cs, *a = g->p;
    for (int64_t k = 0; k < g->count; k++, to += b * ys, from += b * xs, a += b * b)
        for (int64_t r = 0; r < b; r++) {
            EL s = g->more ? to[r * ys] : N_(zero)();
            if (conj)
                for (int64_t q = 0; q < b; q++)
                    s = N_(add)(s, N_(mulc)(a[r * rs + q * cs], from[q * xs]));
            else
                for (int64_t q = 0; q < b; q++)
                    s = N_(add)(s, N_(mul)(a[r * rs + q * cs], from[q * xs]));
            to[r * ys] = s;
        }
}

/* The commonest sizes with their loops unrolled. */
static void N_(line_mm)(int64_t b, const line_args *g, const lop_mat *y, const lop_mat *x) {
    for (int64_t c = 0; c < y->n; c++) {
        if (b == 1)
            N_(blocks_mv)(1, g, y, x, c);
        else if (b == 2)
            N_(blocks_mv)(2, g, y, x, c);
        else if (b == 3)
            N_(blocks_mv)(3, g, y, x, c);
        else if (b == 4)
            N_(blocks_mv)(4, g, y, x, c);
        else
            N_(blocks_mv)(b, g, y, x, c);
    }
}

#if FAM == FAM_F || FAM == FAM_C
#if FAM == FAM_F
#define SIZE(v) fabs((double)(v))
#else
#define SIZE(v) (fabs((double)(v).re) + fabs((double)(v).im))
#endif
/* The largest sums of moduli over the b lines of b x b numbers in a row, and over what stands at
 * one place of all of them. sum: b. */
LOPK_CLONES static void N_(sums)(int64_t b, const void *p, double *sum, double *line,
                                 double *across) {
    const EL *a = p;
    for (int64_t c = 0; c < b; c++) sum[c] = 0;
    for (int64_t r = 0; r < b; r++, a += b) {
        double even = 0, odd = 0;
        for (int64_t c = 0; c < b; c++) sum[c] += SIZE(a[c]);
        for (int64_t c = 0; c + 1 < b; c += 2) {
            even += SIZE(a[c]);
            odd += SIZE(a[c + 1]);
        }
        grow(line, even + odd + (b % 2 ? SIZE(a[b - 1]) : 0));
    }
    for (int64_t c = 0; c < b; c++) grow(across, sum[c]);
}
#undef SIZE
#endif
