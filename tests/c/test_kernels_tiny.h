/* test_kernels_tiny.h: part of test_kernels.c: batches of tiny products, each operand moving. */

static void test_each(lop_dtype dt, int64_t m, int64_t k, int64_t n, int64_t count, int q) {
    int64_t ys, as, bs;
    const bool conj = q & 1;
    lop_mat y = make_stack(dt, m, n, count, q / 2 % 3, &ys),
            a = make_stack(dt, m, k, count, q / 6 % 4, &as),
            b = make_stack(dt, k, n, count, q / 24 % 4, &bs);
    if (q / 96 % 3 == 1) as = 0; /* one that stays */
    if (q / 96 % 3 == 2) bs = 0;
    for (int64_t e = 0; e < count; e++) {
        const lop_mat ye = moved(&y, e * ys);
        poison(&ye);
    }
    const int64_t bad = count / 2; /* a NaN stays in its product */
    const bool with_nan = count > 1 && as && k > 0 && m > 0;
    if (with_nan) memset((char *)a.p + bad * as * size_of[dt], 0xff, (size_t)size_of[dt]);
    lopk_gemm_each(&y, ys, &a, as, conj, &b, bs, count);
    bool ok = true;
    for (int64_t e = 0; e < count; e++) {
        const lop_mat ye = moved(&y, e * ys), ae = moved(&a, e * as), be = moved(&b, e * bs);
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                val s = {0, 0, 0, 0};
                for (int64_t l = 0; l < k; l++)
                    s = add(dt, s, mul(dt, cj(at(&ae, i, l), conj), at(&be, l, j)));
                const val v = at(&ye, i, j);
                if (with_nan && e == bad && i == 0)
                    ok = ok && v.re != v.re;
                else
                    ok = ok && same(dt, v, s, (double)(2 * k + 8));
            }
    }
    check(ok, "each of a batch", dt, m * 1000 + k, n * 10 + count, q);
    free(a.p), free(b.p), free(y.p);
}

static void test_each_all(void) { /* every size on both sides of the bound */
    for (lop_dtype dt = LOP_f32; dt <= LOP_c128; dt++)
        for (int64_t m = 0; m < 10; m++)
            for (int64_t k = 0; k < 10; k++)
                for (int64_t n = 0; n < 10; n++)
                    for (int t = 0; t < (thorough ? 20 : 3); t++)
                        test_each(dt, m, k, n,
                                  (int64_t)(random_bits() % 8 ? random_bits() % 6
                                                              : 14 + random_bits() % 30),
                                  (int)(random_bits() % 288));
    group("tiny products");
}
