/* test_kernels_kernel.h: part of test_kernels.c: kernel matrices, in every instruction set. */

/* wide_kernel.c's: what is tested with `force` 3. */
extern int wide_kernel_force;
void wide_kernel_exp2(lop_dtype dt, void *y, const void *x, int64_t count);
bool wide_kernel_apply(const lop_mat *out, const lopk_kernel *k, int n, bool same, const lop_mat *v,
                       const lopk_team *team, void *scratch);
bool wide_kernel_dense(const lop_mat *out, const lopk_kernel *k, int n, const lopk_team *team,
                       void *scratch);
void wide_kernel_diagonal(const lop_mat *out, const lopk_kernel *k, int n, int64_t row,
                          int64_t column, void *scratch);

/* 2^x against long double, in units in the last place. */
static void test_exp2(lop_dtype dt, int force) {
    enum { N = 1 << 14 };
    _Alignas(64) static double x[N], y[N]; /* of floats the first half */
    const bool wide = dt == LOP_f64;
    const int digits = wide ? 53 : 24, least = wide ? -1022 : -126;
    long double worst = 0;
    for (int i = 0; i < N; i++) {
        const double u = (uniform() - 1) / 2, v = i % 2 ? u * -(double)least : u; /* (-1, 0] */
        lop_set(dt, x, i, i < 8 ? (double)(-i) / 2 : v);
    }
    const bool any = force == 3;
    lopk_kernel_force = wide_kernel_force = force;
    (any ? wide_kernel_exp2 : lopk_kernel_exp2)(dt, y, x, N);
    for (int i = 0; i < N; i++) {
        const long double a = creal(lop_get(dt, x, i)), want = exp2l(a),
                          got = creal(lop_get(dt, y, i));
        int e;
        (void)frexpl(want, &e);
        const long double ulps = fabsl(got - want) / ldexpl(1, e - digits);
        if (ulps > worst) worst = ulps;
    }
    check(worst <= 2, "exp2 within 2 units", dt, (int64_t)(worst * 100), force, 0);
    const double ends[] = {0, -INFINITY, NAN, least - 1, least - 0.6, least - 30, -1e30, least};
    for (int i = 0; i < 16; i++) lop_set(dt, x, i, ends[i % 8]);
    (any ? wide_kernel_exp2 : lopk_kernel_exp2)(dt, y, x, 16);
    lopk_kernel_force = wide_kernel_force = 0;
    for (int i = 0; i < 16; i++) {
        const double got = creal(lop_get(dt, y, i));
        const bool zero = i % 8 == 1 || (i % 8 > 2 && i % 8 < 7);
        const bool ok = i % 8 == 0   ? got == 1
                        : i % 8 == 2 ? isnan(got)
                        : zero       ? got == 0
                                     : got == ldexp(1, least);
        check(ok, "exp2 at the ends", dt, i, force, 0);
    }
}

/* By definition; `mag`: how far an error of the last place in the arguments goes. */
static val kernel_entry(const lopk_kernel *k, double s, const double *l, int64_t i, int64_t j) {
    long double r2 = 0, dot = 0, sines = 0, turns = 0, size = 0, e = 0, more = 1;
    for (int64_t q = 0; q < k->x.n; q++) {
        const long double x = creal(lop_get(k->x.dt, k->x.p, i * k->x.rs + q * k->x.cs)),
                          y = creal(lop_get(k->y.dt, k->y.p, j * k->y.rs + q * k->y.cs)),
                          c = l[k->ard ? q : 0];
        r2 += (x - y) / c * ((x - y) / c);
        dot += x * y / (c * c);
        size += fabsl(x * y) / (c * c);
        sines += powl(sinl(acosl(-1) * (x - y) / s) / c, 2);
        turns += fabsl(x - y) / s / (c * c);
    }
    const long double a = sqrtl((k->word == LOPK_MATERN32 ? 3 : 5) * r2);
    switch (k->word) {
    case LOPK_RBF: e = expl(-r2 / 2), more = 1 + r2; break;
    case LOPK_MATERN12: e = expl(-sqrtl(r2)), more = 1 + sqrtl(r2); break;
    case LOPK_MATERN32: e = (1 + a) * expl(-a), more = 1 + a; break;
    case LOPK_MATERN52: e = (1 + a + a * a / 3) * expl(-a), more = 1 + a; break;
    case LOPK_RATIONAL: e = powl(1 + r2 / (2 * s), -s), more = 1 + s + s * log1pl(r2); break;
    case LOPK_PERIODIC: e = expl(-2 * sines), more = 1 + 2 * sines + 15 * turns; break;
    case LOPK_POLYNOMIAL:
        e = powl(dot + s, k->degree);
        return (val){0, e, 0, powl(size + s, k->degree) * (1 + k->degree)};
    default: return (val){0, dot, 0, size};
    }
    return (val){0, e, 0, e * more};
}

static lop_mat points(lop_dtype dt, int64_t m, int64_t d, int layout) {
    lop_mat a = make(dt, m, d, layout);
    for (int64_t i = 0; i < m; i++)
        for (int64_t q = 0; q < d; q++) lop_set(dt, a.p, i * a.rs + q * a.cs, uniform() * 2);
    return a;
}

/* Products, entries and a diagonal of one or two factors against the definition. */
static void test_kernel(lop_dtype dt, int word, int64_t m, int64_t n, int64_t d, int q, int force) {
    const bool twin = m == n && q & 1, two = q & 2, ard = q & 4, wide = q & 8;
    const int64_t columns = wide ? 3 : 1;
    const lop_dtype vdt = q & 16 ? (dt == LOP_f64 ? LOP_c128 : LOP_c64) : dt;
    double l[128], numbers[2][LOPK_WEIGHTS + 256];
    const double s = 0.75, variance = 1.5;
    for (int64_t c = 0; c < d; c++) l[c] = sqrt((double)d) * (0.75 + 0.5 * (double)c / (double)d);
    const lop_mat length = {l, ard ? d : 1, 1, 1, 1, LOP_f64};
    lop_mat x = points(dt, m, d, q % 3), y = twin ? x : points(dt, n, d, (q + 1) % 3),
            v = make(vdt, n, columns, q % 4), out = make(vdt, m, columns, (q + 2) % 4),
            whole = make(dt, m, n, q % 2), line = make(dt, m < n ? m : n, 1, 0);
    const lopk_kernel k[2] = {{word, 2, ard && d > 1, x, y, numbers[0]},
                              {LOPK_MATERN32, 0, ard && d > 1, x, y, numbers[1]}};
    lopk_kernel_numbers(word, variance, s, &length, d, numbers[0]);
    lopk_kernel_numbers(LOPK_MATERN32, 1, 1, &length, d, numbers[1]);
    const size_t bytes = lopk_kernel_scratch(2 * d, dt, m, n, 2 * columns);
    void *scratch = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!scratch) exit(2);
    memset(scratch, 0xff, bytes); /* NaN */
    poison(&out), poison(&whole), poison(&line);
    const bool any = force == 3;
    const int factors = two ? 2 : 1;
    lopk_kernel_force = wide_kernel_force = force;
    bool done =
        (any ? wide_kernel_apply : lopk_kernel_apply)(&out, k, factors, twin, &v, NULL, scratch);
    done = (any ? wide_kernel_dense : lopk_kernel_dense)(&whole, k, factors, NULL, scratch) && done;
    (any ? wide_kernel_diagonal : lopk_kernel_diagonal)(&line, k, factors, 0, 0, scratch);
    lopk_kernel_force = wide_kernel_force = 0;
    check(done, "kernel runs to its end", dt, word, m, n);
    bool entries = true, products = true, diagonal = true;
    for (int64_t i = 0; i < m; i++)
        for (int64_t c = 0; c < columns; c++) {
            val sum = {0, 0, 0, 0};
            for (int64_t j = 0; j < n; j++) {
                val e = kernel_entry(&k[0], s, l, i, j);
                if (two) {
                    const val f = kernel_entry(&k[1], 1, l, i, j);
                    e = (val){0, e.re * f.re, 0, e.mag * f.mag};
                }
                e.re *= variance, e.mag *= variance;
                sum = add(vdt, sum, mul(vdt, e, at(&v, j, c)));
                if (c) continue;
                entries = entries && same(dt, at(&whole, i, j), e, 16);
                if (i == j) diagonal = diagonal && same(dt, at(&line, i, 0), e, 16);
            }
            products = products && same(vdt, at(&out, i, c), sum, 24 + (double)n);
        }
    check(entries, "kernel's entries", dt, word * 10000 + m * 100 + n, d, q * 10 + force);
    check(diagonal, "kernel's diagonal", dt, word * 10000 + m * 100 + n, d, q * 10 + force);
    check(products, "kernel's products", dt, word * 10000 + m * 100 + n, d, q * 10 + force);
    if (!twin) free(y.p);
    free(x.p), free(v.p), free(out.p), free(whole.p), free(line.p), free(scratch);
}

static void test_kernel_all(void) {
    static const int64_t m[] = {1, 1, 3, 9, 70, 65, 300, 130, 33},
                         n[] = {1, 5, 2, 9, 70, 130, 17, 130, 300};
    for (lop_dtype dt = LOP_f32; dt <= LOP_f64; dt++)
        for (int force = 0; force < 4; force++) {
            test_exp2(dt, force);
            for (int word = 0; word < LOPK_NKERNEL; word++)
                for (int i = thorough ? 0 : (word + force) % 3; i < 9; i += thorough ? 1 : 3)
                    test_kernel(dt, word, m[i], n[i], 1 + (i + word + force) % 5,
                                (int)(random_bits() >> 59), force);
            for (int q = 0; q < 32; q++) test_kernel(dt, q % 8, 70, 70, 3, q, force);
            test_kernel(dt, LOPK_RBF, 70, 70, 100, 1, force);
            test_kernel(dt, LOPK_RBF, 9, 70, 0, 0, force);
        }
    group("kernel matrices");
}
