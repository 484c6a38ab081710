/* test_kernels_small.h: part of test_kernels.c: small products and their batches. */
#include "../../src/c/kernels/kron/k_kron.h"

/* count matrices of m x n one after another: by rows (C layouts) or by columns. */
static lop_mat make_stack(lop_dtype dt, int64_t m, int64_t n, int64_t count, int layout,
                          int64_t *step) {
    const bool by_rows = layout % 2 == 0;
    lop_mat a = by_rows ? make(dt, m * count, n, layout) : make(dt, m, n * count, layout);
    a.m = m;
    a.n = n;
    *step = by_rows ? m * a.rs : n * a.cs;
    return a;
}
static lop_mat moved(const lop_mat *a, int64_t by) {
    lop_mat b = *a;
    b.p = (char *)a->p + by * size_of[a->dt];
    return b;
}

/* Against long double; what is not y's stays; the bits are those of each element by itself. */
static void test_small(lop_dtype dt, int64_t m, int64_t k, int64_t n, int64_t count, int q) {
    int64_t ys, bs, cs;
    const bool conj = q & 1, add_to = q & 2;
    const int ylay = q / 4 % 3, blay = q / 12 % 4, alay = q / 48 % 4;
    lop_mat a = make(dt, m, k, alay), y = make_stack(dt, m, n, count, ylay, &ys),
            b = make_stack(dt, k, n, count, blay, &bs), was = make_stack(dt, m, n, count, 0, &cs),
            one = make(dt, m, n, ylay);
    bool ok = true, alike = true;
    for (int64_t e = 0; e < count; e++) {
        const lop_mat ye = moved(&y, e * ys), we = moved(&was, e * cs);
        lopk_copy(&we, &ye);
        if (!add_to) poison(&ye);
    }
    lopk_small_gemm(&y, ys, &a, conj, &b, bs, count, add_to);
    for (int64_t e = 0; e < count; e++) {
        const lop_mat ye = moved(&y, e * ys), we = moved(&was, e * cs), be = moved(&b, e * bs);
        lopk_copy(&one, &we);
        lopk_small_gemm(&one, 0, &a, conj, &be, 0, 1, add_to);
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                val s = add_to ? at(&we, i, j) : (val){0, 0, 0, 0};
                for (int64_t l = 0; l < k; l++)
                    s = add(dt, s, mul(dt, cj(at(&a, i, l), conj), at(&be, l, j)));
                ok = ok && same(dt, at(&ye, i, j), s, (double)(2 * k + 8));
                alike = alike && !memcmp((char *)ye.p + (i * y.rs + j * y.cs) * size_of[dt],
                                         (char *)one.p + (i * one.rs + j * one.cs) * size_of[dt],
                                         (size_t)size_of[dt]);
            }
    }
    check(ok, "small product", dt, m * 1000 + k, n * 10 + count, q);
    check(alike, "small product by itself", dt, m * 1000 + k, n * 10 + count, q);
    if (!add_to && !conj) {
        for (int64_t e = 0; e < count; e++) {
            const lop_mat ye = moved(&y, e * ys);
            poison(&ye);
        }
        lopk_gemm_batch(&y, ys, &a, false, &b, bs, count);
        for (int64_t e = 0; e < count; e++) {
            const lop_mat ye = moved(&y, e * ys), we = moved(&was, e * cs), be = moved(&b, e * bs);
            lopk_matmul_loop(&we, &a, false, &be, false);
            for (int64_t i = 0; i < m; i++)
                for (int64_t j = 0; j < n; j++) {
                    val s = {0, 0, 0, (long double)(k + 1)};
                    s = add(dt, s, at(&we, i, j));
                    ok = ok && same(dt, at(&ye, i, j), s, (double)(4 * k + 8));
                }
        }
        check(ok, "batch of products", dt, m * 1000 + k, n * 10 + count, q);
    }
    free(a.p), free(b.p), free(y.p), free(was.p), free(one.p);
}

/* Batches of a few columns each: taken where they are said to be, against long double; a NaN stays
 * in its column of its element, and nothing beyond the last one is written. */
static void test_few(lop_dtype dt, int64_t m, int64_t k, int64_t n, int64_t count, int q) {
    int64_t ys, bs;
    const bool conj = q & 1, due = m <= 4 && k <= 4 && count >= 4 && (n == 1 || n == 2 || n == 4);
    lop_mat a = make(dt, m, k, q / 2 % 4), y = make_stack(dt, m, n, count + 1, 0, &ys),
            b = make_stack(dt, k, n, count + 1, 0, &bs), one = make(dt, m, n, 0);
    const int64_t spoilt = (int64_t)(random_bits() % (uint64_t)count),
                  bad = (int64_t)(random_bits() % (uint64_t)n);
    memset((char *)b.p + (spoilt * bs + bad) * size_of[dt], 0xff, (size_t)size_of[dt]); /* NaN */
    const lop_mat beyond = moved(&y, count * ys);
    lopk_copy(&one, &beyond);
    for (int64_t e = 0; e < count; e++) {
        const lop_mat ye = moved(&y, e * ys);
        poison(&ye);
    }
    bool ok = lopk_kron_few(&y, ys, &a, conj, &b, bs, count) == due;
    check(ok, "few columns: taken", dt, m * 1000 + k, n * 100 + count, q);
    for (int64_t e = 0; due && e <= count; e++) {
        const lop_mat ye = moved(&y, e * ys), be = moved(&b, e * bs);
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                const val v = at(&ye, i, j);
                val s = {0, 0, 0, 0};
                for (int64_t l = 0; l < k; l++)
                    s = add(dt, s, mul(dt, cj(at(&a, i, l), conj), at(&be, l, j)));
                if (e == count)
                    ok = ok && v.re == at(&one, i, j).re;
                else if (e == spoilt && j == bad)
                    ok = ok && v.re != v.re;
                else
                    ok = ok && same(dt, v, s, (double)(2 * k + 8));
            }
    }
    check(ok, "few columns", dt, m * 1000 + k, n * 100 + count, q);
    free(a.p), free(b.p), free(y.p), free(one.p);
}

/* Padding and gaps of y are not written; NaN and inf stay in their rows and columns. */
static void test_small_care(lop_dtype dt) {
    for (int64_t n = 1; n < 20; n++)
        for (int64_t m = 1; m < 14; m++) {
            lop_mat a = make(dt, m, 3, 0), b = make(dt, 3, n, 2), y = make(dt, m, n, 2);
            const size_t bytes = (size_t)(((m - 1) * y.rs + n) * size_of[dt]);
            unsigned char *before = malloc(bytes);
            if (!before) exit(2);
            memcpy(before, y.p, bytes);
            const int64_t bad = n / 2;
            memset((char *)b.p + bad * size_of[dt], 0xff, (size_t)size_of[dt]); /* b[0, bad] */
            lopk_small_gemm(&y, 0, &a, false, &b, 0, 1, false);
            bool ok = true;
            for (int64_t i = 0; i < m; i++) {
                for (int64_t j = 0; j < n; j++) {
                    const val v = at(&y, i, j);
                    ok = ok && (v.re != v.re) == (j == bad);
                }
                const size_t gap = (size_t)((i * y.rs + n) * size_of[dt]),
                             len = i + 1 < m ? (size_t)(3 * size_of[dt]) : 0;
                ok = ok &&
                     !memcmp(before + (len ? gap : 0), (unsigned char *)y.p + (len ? gap : 0), len);
            }
            check(ok, "small product, NaN and gaps", dt, m, n, 0);
            free(before), free(a.p), free(b.p), free(y.p);
        }
}

/* Thin products: of any layouts, added to and not, on one thread and several: the bits of the small
 * product, padding and NaN in their places. */
static void test_thin(lop_dtype dt, int64_t m, int64_t k, int64_t n, int q) {
    const bool conj = q & 1, add_to = q & 2;
    lop_mat a = make(dt, m, k, q / 48 % 4), b = make(dt, k, n, q / 12 % 4),
            y = make(dt, m, n, q / 4 % 3), z = make(dt, m, n, n < m ? 0 : 1),
            w = make(dt, m, n, q / 192 % 3);
    const int64_t bad = k > 0 && q % 5 == 0 ? (int64_t)(random_bits() % (uint64_t)n) : -1;
    if (bad >= 0) /* a NaN in one column of b stays in that column of y */
        memset((char *)b.p + bad * b.cs * size_of[dt], 0xff, (size_t)size_of[dt]);
    lopk_copy(&z, &y);
    lopk_copy(&w, &y);
    if (!add_to) {
        poison(&y);
        poison(&w);
    }
    const lopk_team team = {.threads = 3};
    bool ok = lopk_thin_gemm(&y, &a, conj, &b, add_to, NULL), alike = true,
         exact = lopk_thin_gemm(&w, &a, conj, &b, add_to, &team);
    if (k > 0) lopk_small_gemm(&z, 0, &a, conj, &b, 0, 1, add_to);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            const void *p = (char *)y.p + (i * y.rs + j * y.cs) * size_of[dt];
            const val v = at(&y, i, j);
            exact = exact && !memcmp(p, (char *)w.p + (i * w.rs + j * w.cs) * size_of[dt],
                                     (size_t)size_of[dt]);
            ok = ok && (v.re != v.re) == (j == bad);
            if (k == 0 || j == bad) continue;
            if (dt <= LOP_f64)
                alike = alike && !memcmp(p, (char *)z.p + (i * z.rs + j * z.cs) * size_of[dt],
                                         (size_t)size_of[dt]);
            val s = at(&z, i, j);
            s.mag = (long double)(2 * k + 2);
            ok = ok && same(dt, v, s, (double)(2 * k + 8));
        }
    check(ok, "thin product", dt, m, k, n);
    check(alike, "thin product, bits of the small one", dt, m, k, n);
    check(exact, "thin product, threads", dt, m, k, n);
    free(a.p), free(b.p), free(y.p), free(z.p), free(w.p);
}

/* The choice: both sides of each bound. */
static void test_thin_choice(void) {
    static const struct {
        int64_t m, n, k;
        bool never;
    } at_bounds[] = {{1600, 1, 1600, true},  {1600, 33, 1600, true},  {1600, 32, 31, true},
                     {2000, 16, 16, true},   {2048, 16, 16, false},   {63, 32, 1600, true},
                     {64, 32, 1600, false},  {16, 1600, 1600, false}, {33, 1600, 1600, true},
                     {1600, 16, 1600, false}};
    for (size_t i = 0; i < sizeof at_bounds / sizeof *at_bounds; i++) {
        const int64_t m = at_bounds[i].m, n = at_bounds[i].n, k = at_bounds[i].k;
        for (lop_dtype dt = LOP_f64; dt <= LOP_c64; dt++) {
            char one;
            const lop_mat y = {NULL, m, n, n, 1, dt}, a = {NULL, m, k, k, 1, dt},
                          b = {&one, k, n, n, 1, dt};
            const lopk_team all = {.threads = lopk_threads()};
            const bool yes = lopk_thin_suits(&y, &a, &b, &all);
            check(!yes || !(at_bounds[i].never || dt == LOP_c64), "thin choice", dt, m, n, k);
            if (!at_bounds[i].never && dt == LOP_f64) /* ours are ahead on each instruction set */
                check(yes, "thin choice", dt, m, n, k);
        }
    }
}

/* Up to 32 terms our loops take products of any size, where they are as wide as BLAS's (as those of
 * 128 x 128 x 128, which have no other bound); not 33, nor complex numbers. */
static void test_few_terms_choice(void) {
    for (lop_dtype dt = LOP_f32; dt <= LOP_c128; dt++)
        for (int64_t k = 31; k <= 33; k++) {
            const int64_t n = 1536, q = 128;
            const lop_mat y = {NULL, n, n, n, 1, dt}, a = {NULL, n, k, k, 1, dt},
                          b = {NULL, k, n, n, 1, dt}, s = {NULL, q, q, q, 1, dt};
            const bool wide = lopk_small_suits(&s, &s, &s, 1);
            check(lopk_small_suits(&y, &a, &b, 1) == (wide && k < 33 && !lop_is_complex(dt)),
                  "few terms", dt, n, k, n);
        }
}

/* A product by the upper triangle against one by its whole matrix, entry by entry from it. */
static void test_half(lop_dtype dt, int64_t n, int64_t k, int q) {
    const bool adjoint = q & 1, conj = q & 2, back = adjoint && lop_is_complex(dt);
    lop_mat a = make(dt, n, n, q / 4 % 4), x = make(dt, n, k, q / 16 % 4),
            y = make(dt, n, k, q / 64 % 3), whole = make(dt, n, n, q / 192 % 3);
    void *scratch = aligned_alloc(64, (lopk_symm_scratch(n, k, dt) + 127) / 64 * 64);
    bool ok = scratch != NULL, alike = true;
    poison(&y);
    poison(&whole);
    lopk_whole_of_half(&whole, &a, adjoint);
    if (scratch) lopk_symm(&y, &a, adjoint, conj, &x, scratch);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            val v = i <= j ? at(&a, i, j) : cj(at(&a, j, i), back);
            if (i == j && back) v.im = 0;
            const val w = at(&whole, i, j);
            alike = alike && v.re == w.re && v.im == w.im;
        }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < k; j++) {
            val s = {0, 0, 0, 0};
            for (int64_t l = 0; l < n; l++)
                s = add(dt, s, mul(dt, cj(at(&whole, i, l), conj), at(&x, l, j)));
            ok = ok && same(dt, at(&y, i, j), s, (double)(2 * n + 8));
        }
    free(scratch);
    check(ok, "product by half", dt, n, k, q);
    check(alike, "whole of half", dt, n, k, q);
}
static void test_half_all(void) {
    static const int64_t size[] = {1, 2, 3, 4, 5, 7, 8, 9, 31, 33, 47, 48, 49, 65, 97, 130, 295},
                         columns[] = {1, 2, 3, 4, 5, 8, 17, 32, 33, 65};
    for (int isa = 0; isa < 3; isa++) {
        lopk_small_force = isa;
        for (lop_dtype dt = LOP_f32; dt <= LOP_c128; dt++)
            for (size_t i = 0; i < sizeof size / sizeof *size; i++)
                for (int t = 0; t < (thorough ? 40 : 6); t++)
                    test_half(dt, size[i], columns[random_bits() % 10], (int)(random_bits() % 576));
    }
    lopk_small_force = 0;
    const int threads = lopk_threads();
    lopk_set_threads(1);
    for (lop_dtype dt = LOP_f32; dt <= LOP_f64; dt++) /* by BLAS, and short of it */
        for (int t = 0; t < 8; t++)
            test_half(dt, 499 + t % 2, 96 - t / 4, (int)(random_bits() % 576));
    lopk_set_threads(threads);
    group("products by half");
}

static void test_thin_all(void) {
    static const int64_t longs[] = {0, 1, 5, 6, 7, 8, 13, 47, 48, 49, 64, 130, 255, 256, 257, 520};
    enum { NLONGS = sizeof longs / sizeof *longs };
    for (int isa = 0; isa < 3; isa++) {
        lopk_small_force = isa;
        for (lop_dtype dt = LOP_f32; dt <= LOP_c128; dt++) {
            for (int64_t n = 1; n <= 32; n++)
                for (int t = 0; t < (thorough ? 12 : 2); t++) {
                    const int64_t m = longs[1 + random_bits() % (NLONGS - 1)],
                                  k = longs[random_bits() % NLONGS];
                    const int q = (int)(random_bits() % 576);
                    if (m >= n) test_thin(dt, m, k, n, q);
                    if (m >= n) test_thin(dt, n, k, m, q - q % 5 + 1);
                }
            test_thin(dt, 1100, 257, 9, 0); /* more rows than a tile has */
            test_thin(dt, 2600, 300, 16, 1 + (int)(random_bits() % 575)); /* parts */
        }
    }
    lopk_small_force = 0;
    test_thin_choice();
    test_few_terms_choice();
    group("thin products");
}

static void test_small_all(void) {
    static const int64_t size[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,  11,
                                   12, 15, 16, 17, 24, 31, 33, 64, 65, 97, 130, 300};
    enum { NSMALL = sizeof size / sizeof *size };
    for (int plain = 0; plain < 3; plain++) {
        lopk_small_force = plain;
        for (lop_dtype dt = LOP_f32; dt <= LOP_c128; dt++) {
            for (int t = 0; t < (thorough ? 1500 : 300); t++) {
                const int64_t m = size[random_bits() % NSMALL], k = size[random_bits() % NSMALL],
                              n = size[random_bits() % NSMALL];
                const int64_t count = m * k * n > 20000 ? 1 : (int64_t)(random_bits() % 4);
                if (m * k * n <= 300000) test_small(dt, m, k, n, count, (int)(random_bits() % 192));
            }
            test_small(dt, 4, 4, 1100, 2, (int)(random_bits() % 192)); /* pieces of columns */
            test_small(dt, 100, 259, 20, 2, (int)(random_bits() % 192));
            test_small(dt, 2, 5, 3, 40, (int)(random_bits() % 192)); /* groups */
            test_small(dt, 140, 257, 9, 18, 0);
            test_small_care(dt);
            for (int64_t m = 1; m < 6; m++)
                for (int64_t k = 1; k < 6; k++)
                    for (int64_t n = 1; n < 6; n++)
                        test_few(dt, m, k, n, 1 + (int64_t)(random_bits() % 9),
                                 (int)(random_bits() % 8));
        }
    }
    lopk_small_force = 0;
    group("small products");
}
