/* test_kernels_lu.h: part of test_kernels.c: LU of small matrices, multiplied out. */

/* Of kind q: 0 random, 1 whole numbers with many ties, 2 graded, 3 a zero column, 4 a NaN, 5 a
 * pivot below the normal numbers, 6 an infinity. */
static void fill_small(const lop_mat *a, int q) {
    const int64_t n = a->n;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            long double v = uniform();
            if (q == 1) v = (long double)(random_bits() % 3) - 1 + (i == n - 1 - j ? 4 : 0);
            if (q == 2) v = ldexpl(v, (int)(i - j));
            if (q == 3 && j == n / 2) v = 0;
            if (q == 5) v = i == j && i == n / 2 ? (a->dt == LOP_f64 ? 1e-310L : 1e-40L) : i == j;
            put(a, i, j, v, 0);
        }
    if (q == 4) put(a, n / 2, n / 3, NAN, 0);
    if (q == 6) put(a, n / 2, n / 3, INFINITY, 0);
}
/* The largest of |P A - L U| over 1-norms, and the largest multiplier. */
static long double small_residual(const lop_mat *f, const int64_t *ipiv, const lop_mat *keep,
                                  long double *most) {
    const int64_t n = f->n;
    int64_t row[66];
    long double worst = 0, scale = 0;
    for (int64_t i = 0; i < n; i++) row[i] = i;
    for (int64_t k = 0; k < n; k++) {
        const int64_t top = ipiv[k] - 1, was = row[k];
        check(top >= k && top < n, "place of a pivot", f->dt, n, k, top);
        row[k] = row[top];
        row[top] = was;
    }
    *most = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            long double s = 0, size = 0;
            for (int64_t k = 0; k <= i && k <= j; k++) {
                const long double l = k < i ? element(f, i, k).re : 1, u = element(f, k, j).re;
                s += l * u;
                size += fabsl(l * u);
                if (k < i && fabsl(l) > *most) *most = fabsl(l);
            }
            const long double off = fabsl(element(keep, row[i], j).re - s);
            if (size > scale) scale = size;
            if (off > worst) worst = off;
        }
    return scale > 0 ? worst / scale : worst;
}
static void test_small_lu(lop_dtype dt, int64_t n, int64_t more, int q) {
    lop_mat a = make(dt, n + more, n, 1), keep = make(dt, n, n, 1), b = make(dt, n, 1, 1);
    int64_t ipiv[66] = {0};
    a = (lop_mat){a.p, n, n, 1, n + more, dt};
    fill_small(&a, q);
    lopk_copy(&keep, &a);
    const bool done = lopk_small_getrf(&a, ipiv);
    const int64_t wide = lopk_thin_width(LOP_f64), rows = wide == 8 ? 64 : wide == 4 ? 32 : 0;
    const bool must = n <= rows && n != 0 && (q == 0 || q == 2),
               never = n > rows || (q >= 3 && q <= 5);
    check((done || !must) && !(done && never), "a small matrix", dt, n, more, q);
    bool same = true;
    for (int64_t i = 0; !done && i < n; i++) /* nothing is done */
        for (int64_t j = 0; j < n; j++) {
            const long double v = element(&a, i, j).re, w = element(&keep, i, j).re;
            same = same && (v == w || (v != v && w != w));
        }
    check(same, "left as it was", dt, n, more, q);
    if (done && q < 3) {
        long double most;
        const long double off = small_residual(&a, ipiv, &keep, &most);
        check(off <= (long double)(4 * (n + 2)) * unit(dt), "small LU", dt, n, more, q);
        check(most <= 1 + 140 * unit(dt), "multipliers", dt, n, more, q);
        lop_mat x = make(dt, n, 1, 1);
        x.rs = 1;
        x.cs = n;
        lopk_copy(&x, &b);
        check(lopk_small_getrs(&a, ipiv, &x), "small solve", dt, n, more, q);
        long double worst = 0, size = 0;
        for (int64_t i = 0; i < n; i++) {
            long double s = -element(&b, i, 0).re, sum = fabsl(s);
            for (int64_t j = 0; j < n; j++) {
                s += element(&keep, i, j).re * element(&x, j, 0).re;
                sum += fabsl(element(&keep, i, j).re * element(&x, j, 0).re);
            }
            worst = fabsl(s) > worst ? fabsl(s) : worst;
            size = sum > size ? sum : size;
        }
        check(worst <= (long double)(20 * (n + 2)) * unit(dt) * size, "small solve", dt, n, more,
              q);
        free(x.p);
    }
    free(a.p), free(keep.p), free(b.p);
}
/* Where candidates tie the first is taken, as LAPACK takes it. */
static void test_small_ties(void) {
    double p[16] = {1, -1, 1, 1, 2, 3, 5, 7, 1, 4, 9, 2, 6, 6, 1, 3};
    int64_t ipiv[4] = {0};
    const lop_mat a = {p, 4, 4, 1, 4, LOP_f64};
    const bool done = lopk_small_getrf(&a, ipiv);
    check((done || lopk_thin_width(LOP_f64) < 4) && ipiv[0] <= 1, "ties", LOP_f64, ipiv[0], 0, 0);
}
static void test_small_lu_all(void) {
    const lop_mat other = make(LOP_c128, 3, 3, 1);
    int64_t ipiv[3] = {0};
    for (int isa = 0; isa < 3; isa++) {
        lopk_small_force = isa;
        for (lop_dtype dt = LOP_f32; dt <= LOP_f64; dt++)
            for (int64_t n = 1; n < 66; n++)
                for (int q = 0; q < 7; q++)
                    for (int64_t more = 0; more < 4; more += 3) test_small_lu(dt, n, more, q);
    }
    lopk_small_force = 0;
    test_small_ties();
    check(!lopk_small_getrf(&other, ipiv), "complex", LOP_c128, 3, 0, 0);
    free(other.p);
    group("small LU");
}
