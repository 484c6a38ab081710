/* test_kernels_cholesky.h: narrow bands' factors, and changes of rank one, multiplied out. */

typedef struct cx {
    long double re, im;
} cx;
static cx element(const lop_mat *a, int64_t i, int64_t j) {
    const val v = at(a, i, j);
    return (cx){v.re, v.im};
}
static void put(const lop_mat *a, int64_t i, int64_t j, long double re, long double im) {
    const int64_t k = i * a->rs + j * a->cs;
    switch (a->dt) {
    case LOP_f32: ((float *)a->p)[k] = (float)re; break;
    case LOP_f64: ((double *)a->p)[k] = (double)re; break;
    case LOP_c64:
        ((float *)a->p)[2 * k] = (float)re;
        ((float *)a->p)[2 * k + 1] = (float)im;
        break;
    default: ((double *)a->p)[2 * k] = (double)re; ((double *)a->p)[2 * k + 1] = (double)im;
    }
}

/* (L L^H)[i, j] for j <= i, of the lower triangle */
static cx product_at(const lop_mat *l, int64_t i, int64_t j) {
    cx s = {0, 0};
    for (int64_t k = 0; k <= j; k++) {
        const cx a = element(l, i, k), b = element(l, j, k);
        s.re += a.re * b.re + a.im * b.im;
        s.im += a.im * b.re - a.re * b.im;
    }
    return s;
}

static void test_cholup(lop_dtype dt, int64_t n, bool down) {
    lop_mat l = make(dt, n, n, 1), v = make(dt, n, 1, 1);
    void *work = calloc((size_t)n + 1, 2 * lop_dtype_size(dt));
    l.rs = 1;
    l.cs = n;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) put(&l, i, j, j > i ? NAN : uniform(), uniform());
        put(&l, i, i, 3 + (long double)n, 0);
        put(&v, i, 0, uniform(), uniform());
    }
    cx *want = calloc((size_t)(n * n) + 1, sizeof *want);
    const long double sign = down ? -1 : 1;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            const cx a = element(&v, i, 0), b = element(&v, j, 0), s = product_at(&l, i, j);
            want[i * n + j].re = s.re + sign * (a.re * b.re + a.im * b.im);
            want[i * n + j].im = s.im + sign * (a.im * b.re - a.re * b.im);
        }
    int64_t info = 7;
    check(lopk_cholup(&l, v.p, down, work, &info) == LOP_OK && info == 0, "cholup", dt, n, down, 0);
    const long double tol = 40 * unit(dt) * (long double)((n + 3) * (n + 3));
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            const cx s = product_at(&l, i, j), w = want[i * n + j];
            check(fabsl(s.re - w.re) + fabsl(s.im - w.im) <= tol, "cholup", dt, n, i, j);
        }
    if (n > 0) { /* all of it taken away, and a diagonal that is not positive */
        const long double whole = element(&l, 0, 0).re;
        for (int64_t i = 0; i < n; i++) put(&v, i, 0, i ? 0 : 2 * whole, 0);
        check(lopk_cholup(&l, v.p, true, work, &info) == LOP_SINGULAR && info == -1,
              "cholup of too much", dt, n, 0, 0);
        put(&l, n - 1, n - 1, -1, 0);
        for (int64_t i = 0; i < n; i++) put(&v, i, 0, 0, 0);
        check(lopk_cholup(&l, v.p, down, work, &info) == LOP_SINGULAR && info == n,
              "cholup of a bad factor", dt, n, down, 0);
    }
    free(want);
    free(work);
    free(l.p);
    free(v.p);
}

static void test_band_cholesky(lop_dtype dt, int64_t n, int64_t w) {
    lop_mat ab = make(dt, w + 1, n, 1), l = make(dt, n, n, 1);
    ab.rs = 1;
    ab.cs = w + 1;
    for (int64_t j = 0; j < n; j++)
        for (int64_t t = 0; t <= w; t++) /* what lies beyond the matrix is not used */
            put(&ab, t, j,
                j + t >= n ? NAN
                : t        ? uniform()
                           : 2 * (long double)w + 2,
                t && j + t < n ? uniform() : 0);
    cx *want = calloc((size_t)((w + 1) * n) + 1, sizeof *want);
    for (int64_t k = 0; k < (w + 1) * n; k++) want[k] = element(&ab, k % (w + 1), k / (w + 1));
    int64_t info = 7;
    check(lopk_band_cholesky(&ab, &info) == LOP_OK && info == 0, "band", dt, n, w, 0);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            const bool in = i >= j && i - j <= w;
            const cx e = in ? element(&ab, i - j, j) : (cx){0, 0};
            put(&l, i, j, e.re, e.im);
        }
    const long double tol = 40 * unit(dt) * (long double)((w + 2) * (w + 2));
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = j; i < n && i <= j + w; i++) {
            const cx s = product_at(&l, i, j), e = want[j * (w + 1) + i - j];
            check(fabsl(s.re - e.re) + fabsl(s.im - e.im) <= tol, "band", dt, n, i, j);
        }
    for (int64_t bad = 0; bad < n; bad += n - 1 > 0 ? n - 1 : 1) {
        for (int64_t j = 0; j < n; j++)
            for (int64_t t = 0; t <= w; t++) put(&ab, t, j, t ? 0 : j == bad ? -1 : 1, 0);
        check(lopk_band_cholesky(&ab, &info) == LOP_SINGULAR && info == bad + 1, "band, singular",
              dt, n, w, bad);
    }
    free(want);
    free(ab.p);
    free(l.p);
}

/* In block columns of 3 and 7 the same factor as by one call; the upper triangle is not touched. */
static void test_cholesky_in_blocks(lop_dtype dt, int64_t n, int64_t block) {
    lop_mat a = make(dt, n, n, 1), b = make(dt, n, n, 1);
    a.rs = b.rs = 1;
    a.cs = b.cs = n;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) put(&a, i, j, j > i ? 7 : uniform(), j > i ? 7 : uniform());
        put(&a, i, i, 2 * (long double)n + 2, 0);
    }
    lopk_copy(&b, &a);
    const int64_t largest = lopk_potrf_largest, usual = lopk_potrf_block;
    int64_t info = 7;
    check(lopk_potrf(&a, &info) == LOP_OK && info == 0, "whole", dt, n, block, 0);
    lopk_potrf_largest = 4;
    lopk_potrf_block = block;
    check(lopk_potrf(&b, &info) == LOP_OK && info == 0, "in blocks", dt, n, block, 0);
    const long double tol = 40 * unit(dt) * (long double)(n + 2);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            const cx v = element(&a, i, j), w = element(&b, i, j);
            check(fabsl(v.re - w.re) + fabsl(v.im - w.im) <= (j > i ? 0 : tol), "in blocks", dt, n,
                  i, j);
        }
    for (int64_t bad = 0; bad < n; bad++) {
        lopk_zero(&b);
        for (int64_t i = 0; i < n; i++) put(&b, i, i, i == bad ? -1 : 1, 0);
        check(lopk_potrf(&b, &info) == LOP_SINGULAR && info == bad + 1, "in blocks, not positive",
              dt, n, block, bad);
    }
    lopk_potrf_largest = largest;
    lopk_potrf_block = usual;
    free(a.p), free(b.p);
}

/* A V = B V diag(w) and V^H B V = I. */
static void test_pencil(lop_dtype dt, int64_t n) {
    lop_mat a = make(dt, n, n, 1), b = make(dt, n, n, 1), v = make(dt, n, n, 1),
            l = make(dt, n, n, 1), av = make(dt, n, n, 1), bv = make(dt, n, n, 1);
    size_t bytes = 0;
    check(lopk_eigen_bytes(n, dt, &bytes), "pencil", dt, n, 0, 0);
    char *work = aligned_alloc(64, (bytes + 127) & ~(size_t)63), *w = calloc((size_t)n + 1, 16);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++)
            for (int k = 0; k < 2; k++) {
                const long double re = uniform() + (k && i == j ? 2 * (long double)n + 2 : 0),
                                  im = i == j ? 0 : uniform();
                put(k ? &b : &a, i, j, re, im);
                put(k ? &b : &a, j, i, re, -im);
                put(k ? &l : &v, i, j, re, i == j ? 1 : im);  /* an imaginary part is not read */
                if (i != j) put(k ? &l : &v, j, i, NAN, NAN); /* nor is the upper triangle */
            }
    int64_t info = 7;
    check(lopk_hegvd(&v, &l, w, work, &info) == LOP_OK && info == 0, "pencil", dt, n, 0, 0);
    lopk_gemm(&av, &a, false, &v, false);
    lopk_gemm(&bv, &b, false, &v, false);
    const bool single = dt == LOP_f32 || dt == LOP_c64;
    for (int64_t j = 0; j < n; j++) {
        const double e = single ? (double)((float *)(void *)w)[j] : ((double *)(void *)w)[j];
        for (int64_t i = 0; i < n; i++) {
            const cx p = element(&av, i, j), q = element(&bv, i, j);
            long double re = 0, im = 0;
            for (int64_t k = 0; k < n; k++) {
                const cx s = element(&v, k, i), t = element(&bv, k, j);
                re += s.re * t.re + s.im * t.im;
                im += s.re * t.im - s.im * t.re;
            }
            const long double tol = 100 * unit(dt) * (long double)(n + 2);
            check(fabsl(p.re - e * q.re) + fabsl(p.im - e * q.im) <= tol, "A v", dt, n, i, j);
            check(fabsl(re - (i == j)) + fabsl(im) <= tol, "V^H B V", dt, n, i, j);
        }
    }
    if (n) {
        put(&b, n - 1, n - 1, -1, 0);
        check(lopk_hegvd(&a, &b, w, work, &info) == LOP_SINGULAR && info == 2 * n, "indefinite", dt,
              n, 0, 0);
    }
    free(work), free(w);
    free(a.p), free(b.p), free(v.p), free(l.p), free(av.p), free(bv.p);
}

static void test_cholesky_all(void) {
    static const int64_t n[] = {0, 1, 2, 5, 17, 40}, w[] = {0, 1, 2, 7, 24, 30};
    for (lop_dtype dt = LOP_f32; dt < LOP_NDTYPE; dt++)
        for (int i = 0; i < 6; i++) {
            test_cholup(dt, n[i], false);
            test_cholup(dt, n[i], true);
            for (int j = 0; j < 6; j++) test_band_cholesky(dt, n[i], w[j]);
            test_cholesky_in_blocks(dt, n[i], 3);
            test_cholesky_in_blocks(dt, n[i], 7);
            test_pencil(dt, n[i]);
        }
    group("cholesky");
}
