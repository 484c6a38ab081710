/* test_kernels_dots.h: part of test_kernels.c: the diagonal of a product, all layouts and dtypes.
 */

static void test_row_dots(lop_dtype dt, int64_t m, int64_t k, int q) {
    const bool conj_a = q & 1, conj_b = q & 2;
    const int64_t fewer = m > 2 && q & 4 ? m - 2 : m; /* an offset's shorter diagonal */
    lop_mat a = make(dt, m, k, q / 8 % 4), b = make(dt, k, m, q / 32 % 4),
            y = make(dt, fewer, 1, q / 128 % 2 ? 2 : 0);
    poison(&y);
    lopk_row_dots(&y, &a, conj_a, &b, conj_b);
    bool ok = true;
    for (int64_t i = 0; i < fewer; i++) {
        val s = {0, 0, 0, 0};
        for (int64_t t = 0; t < k; t++)
            s = add(dt, s, mul(dt, cj(at(&a, i, t), conj_a), cj(at(&b, t, i), conj_b)));
        ok = ok && same(dt, at(&y, i, 0), s, (double)(2 * k + 8));
    }
    check(ok, "diagonal of a product", dt, m, k, q);
    free(a.p), free(b.p), free(y.p);
}

static void test_row_dots_all(void) { /* sizes beside lines of memory, rows together and blocks */
    static const int64_t rows[] = {0, 1, 3, 4, 5, 8, 9, 15, 16, 17, 31, 32, 33, 40, 70},
                         terms[] = {0,  1,  2,   3,   4,   5,   7,   16, 31,
                                    32, 33, 255, 256, 257, 258, 260, 515};
    for (lop_dtype dt = 0; dt < LOP_NDTYPE; dt++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            for (size_t j = 0; j < sizeof terms / sizeof *terms; j++)
                for (int t = 0; t < (thorough ? 16 : 2); t++)
                    test_row_dots(dt, rows[i], terms[j], (int)(random_bits() % 256));
    group("diagonals of products");
}
