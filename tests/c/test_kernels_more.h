/* test_kernels_more.h: second half of test_kernels.c: sparse, FFT, LAPACK, division, fingerprint.
 */

/* Element (i, j) of case q by the definition. */
static val sparse_want(int q, int64_t i, int64_t j, const lop_mat *col, const lop_mat *data,
                       const lop_mat *x) {
    const lop_dtype dt = x->dt;
    const bool trans = q % 4 == 1 || q % 4 == 3, conj = q / 4 == 1;
    val s = {0, 0, 0, 0};
    for (int64_t p = 0; p < col->m; p++) {
        const int64_t c = (int64_t)get(col->dt, col->p, p).i, r = p / 3;
        if (q == 8 && p == i)
            s = at(x, c, j);
        else if (q == 9 && c == i)
            s = add(dt, s, get(dt, x->p, p * x->rs + j * x->cs));
        else if (q < 8 && (trans ? c : r) == i)
            s = add(dt, s, mul(dt, cj(get(dt, data->p, p), conj), at(x, trans ? r : c, j)));
    }
    return s;
}

#define PUT(mat, i, v)                                                                             \
    ((mat).dt == LOP_i32 ? (void)(((int32_t *)(mat).p)[i] = (int32_t)(v))                          \
                         : (void)(((int64_t *)(mat).p)[i] = (v)))

/* Pointers that end beyond the data, fall, or start below zero are found. */
static void test_bad_pointers(const lop_mat *y, const lop_mat *ptr, const lop_mat *col,
                              const lop_mat *data, const lop_mat *x) {
    const int64_t m = ptr->m - 1, nnz = data->m;
    const struct {
        int64_t at, bad, good;
    } plant[3] = {{m, nnz + 1, nnz}, {m, -1, nnz}, {0, -1, 0}};
    for (int i = 0; i < 3; i++) {
        PUT(*ptr, plant[i].at, plant[i].bad);
        check(lopk_csr_mm(y, ptr, col, data, false, x) == LOP_INDEX, "bad pointer", y->dt, m, i, 0);
        PUT(*ptr, plant[i].at, plant[i].good);
    }
}

static void test_sparse(lop_dtype dt, lop_dtype idt, int64_t m, int64_t n, int64_t k, int layout) {
    const int64_t nnz = m > 0 && n > 0 ? 3 * m : 0, isize = size_of[idt];
    lop_mat ptr = make(idt, m + 1, 1, 0), row = make(idt, nnz, 1, 0), col = make(idt, nnz, 1, 0),
            data = make(dt, nnz, 1, 0);
    for (int64_t i = 0; i <= m; i++) PUT(ptr, i, nnz ? 3 * i : 0);
    for (int64_t p = 0; p < nnz; p++) {
        PUT(row, p, p / 3);
        PUT(col, p, (int64_t)(random_bits() >> 33) % n);
    }
    for (int q = 0; q < 10; q++) { /* csr, csr^T as csc, coo, coo^T, each conj; take, scatter */
        const bool trans = q % 4 == 1 || q % 4 == 3, conj = q / 4 == 1;
        const int64_t rows = q >= 8  ? (q == 8 ? nnz : n)
                             : trans ? n
                                     : m,
                      cols = q >= 8  ? (q == 8 ? n : nnz)
                             : trans ? m
                                     : n;
        lop_mat x = make(dt, cols, k, layout), y = make(dt, rows, k, (layout + q) % 4);
        poison(&y);
        lop_status st;
        if (q == 8)
            st = lopk_take_rows(&y, &col, &x);
        else if (q == 9)
            st = lopk_scatter_rows_add(&y, &col, &x);
        else if (q % 4 == 0)
            st = lopk_csr_mm(&y, &ptr, &col, &data, conj, &x);
        else if (q % 4 == 1)
            st = lopk_csc_mm(&y, &ptr, &col, &data, conj, &x, NULL, 0, NULL);
        else if (q % 4 == 2)
            st = lopk_coo_mm(&y, &row, &col, &data, conj, &x, NULL, 0, NULL);
        else
            st = lopk_coo_mm(&y, &col, &row, &data, conj, &x, NULL, 0, NULL);
        bool ok = st == LOP_OK;
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < k; j++) {
                const val s = sparse_want(q, i, j, &col, &data, &x);
                ok = ok && same(dt, at(&y, i, j), s, (double)(nnz + 8));
            }
        check(ok, "sparse", dt, m * 1000 + n, k, q);
        for (int64_t p = 0; p < nnz && k > 0 && layout == 0;
             p += 1 + nnz / 3) /* each bad index is found */
            for (int bad = 0; bad < 2; bad++) {
                char saved[8];
                memcpy(saved, (char *)col.p + p * isize, (size_t)isize);
                PUT(col, p, bad ? -1 : n);
                if (q == 0)
                    check(lopk_csr_mm(&y, &ptr, &col, &data, conj, &x) == LOP_INDEX, "bad csr", dt,
                          p, bad, 0);
                if (q == 1)
                    check(lopk_csc_mm(&y, &ptr, &col, &data, conj, &x, NULL, 0, NULL) == LOP_INDEX,
                          "bad csc", dt, p, bad, 0);
                if (q == 2)
                    check(lopk_coo_mm(&y, &row, &col, &data, conj, &x, NULL, 0, NULL) == LOP_INDEX,
                          "bad coo", dt, p, bad, 0);
                if (q == 8)
                    check(lopk_take_rows(&y, &col, &x) == LOP_INDEX, "bad take", dt, p, bad, 0);
                if (q == 9)
                    check(lopk_scatter_rows_add(&y, &col, &x) == LOP_INDEX, "bad scatter", dt, p,
                          bad, 0);
                memcpy((char *)col.p + p * isize, saved, (size_t)isize);
            }
        if (q == 0 && nnz && k) test_bad_pointers(&y, &ptr, &col, &data, &x);
        free(x.p);
        free(y.p);
    }
    free(ptr.p);
    free(row.p);
    free(col.p);
    free(data.p);
}

static void test_sparse_all(void) {
    static const int64_t m[] = {0, 1, 3, 16, 40}, n[] = {3, 1, 7, 16, 5}, k[] = {0, 1, 2, 5};
    for (lop_dtype dt = 0; dt < LOP_NDTYPE; dt++)
        for (int i = 0; i < 5; i++)
            for (int j = 0; j < 4; j++)
                for (int layout = 0; layout < 4; layout++) {
                    test_sparse(dt, LOP_i32, m[i], n[i], k[j], layout);
                    test_sparse(dt, LOP_i64, m[i], n[i], k[j], layout);
                }
    group("sparse, gather");
}

/* The transform at one frequency in long double. */
static val naive(const lop_mat *x, int64_t n, int64_t k, int sign) {
    static long double table[1 << 19][2]; /* of the n last asked for */
    static int64_t known;
    const long double two_pi = 6.283185307179586476925286766559L;
    val s = {0, 0, 0, 0};
    if (n > (int64_t)(sizeof table / sizeof *table)) exit(2);
    for (int64_t j = 0; known != n && j < n; j++) {
        const long double t = two_pi * (long double)j / (long double)n;
        table[j][0] = cosl(t), table[j][1] = sinl(t);
    }
    known = n;
    for (int64_t j = 0, p = 0; j < x->m; j++, p = (p + k) % n) {
        const val w = {0, table[p][0], (long double)sign * table[p][1], 1};
        s = add(LOP_c128, s, mul(LOP_c128, at(x, j, 0), w));
    }
    return s;
}

static void test_fft(int64_t n, lop_dtype dt, int64_t stride, int64_t have) {
    const bool real = !lop_is_complex(dt);
    const lop_dtype cdt = dt == LOP_f32 || dt == LOP_c64 ? LOP_c64 : LOP_c128;
    const int64_t count = real ? n / 2 + 1 : n, step = count > 20000 ? count / 3
                                                       : count > 300 ? count / 17
                                                       : count > 60  ? 7
                                                                     : 1;
    char *plan = malloc(lopk_fft_plan_bytes(n, dt) + 16),
         *work = malloc(lopk_fft_work_bytes(n, dt));
    lop_mat x = make(dt, n * stride, 1, 0), out = make(cdt, count, 1, 0),
            back = make(dt, n * stride, 1, 0);
    x.m = have;
    x.rs = stride;
    check(lopk_fft_plan_init(plan, n, dt) == LOP_OK && lopk_fft_length(plan) == n &&
              lopk_spectrum_count(plan) == count,
          "plan", dt, n, 0, 0);
    memmove(plan + 16, plan, lopk_fft_plan_bytes(n, dt)); /* plans may be moved */
    const void *moved = plan + 16;
    long double norm = 0, e = 0, scale;
    for (int64_t j = 0; j < have; j++) norm += at(&x, j, 0).mag * at(&x, j, 0).mag;
    scale = sqrtl(norm) * unit(dt) * (logl((long double)n) / logl(2.0L) + 2) * 3;
    for (int sign = -1; sign < 2; sign += real ? 4 : 2) {
        if (real)
            lopk_rfft(moved, x.p, have, stride, out.p, work);
        else
            lopk_cfft(moved, x.p, have, stride, out.p, n, 1, sign, 1.0, work);
        for (int64_t k = 0; k < count; k += step) {
            const val u = at(&out, k, 0), v = naive(&x, n, k, sign);
            const long double d = hypotl(u.re - v.re, u.im - v.im);
            e = d <= scale ? fmaxl(e, d) : INFINITY;
        }
        check(e <= scale, "fft", dt, n, stride, sign);
        poison(&back);
        const int64_t want = n - n / 3;
        if (real)
            lopk_irfft(moved, out.p, back.p, want, stride, 1.0 / (double)n, work);
        else
            lopk_cfft(moved, out.p, n, 1, back.p, want, stride, -sign, 1.0 / (double)n, work);
        const lop_mat b = {back.p, want, 1, stride, 1, dt};
        e = 0;
        for (int64_t j = 0; j < want; j++) {
            const val u = at(&b, j, 0), v = j < have ? get(dt, x.p, j * stride) : (val){0, 0, 0, 0};
            const long double d = hypotl(u.re - v.re, u.im - v.im);
            e = d <= scale ? fmaxl(e, d) : INFINITY;
        }
        check(e <= scale, "inverse", dt, n, stride, sign);
    }
    free(plan);
    free(work);
    free(x.p);
    free(out.p);
    free(back.p);
}

static void test_fft_all(void) {
    static const int64_t large[] = {240,   256,   500,    512,    960,    1009,  1024,
                                    2018,  2048,  3000,   4096,   8192,   10007, 16384,
                                    30000, 65536, 100000, 131072, 262144, 497664};
    for (int plain = 0; plain < 2; plain++) {
        lopk_fft_force_plain = plain;
        for (int64_t n = 1; n <= 200; n++)
            for (lop_dtype dt = LOP_f32; dt <= LOP_c128; dt++)
                test_fft(n, dt, 1 + n % 3 / 2, n % 4 ? n : n / 2);
        for (int i = 0; i < 20; i++)
            for (lop_dtype dt = LOP_f32; dt <= LOP_c128; dt++)
                test_fft(large[i], dt, 1 + i % 2, i % 3 ? large[i] / 2 + 1 : large[i]);
    }
    lopk_fft_force_plain = 0;
    for (lop_dtype dt = LOP_f32; dt <= LOP_c128; dt++)
        for (int64_t n = 1; n < 3000; n += 1 + n / 50) {
            const int64_t g = lopk_fft_good(n, dt);
            check(g >= n && (g < 2 * n || n <= 2), "good", dt, n, g, 0);
        }
    check(lopk_fft_plan_bytes(0, LOP_f64) == 0 && lopk_fft_plan_bytes(8, LOP_i32) == 0, "no plan",
          0, 0, 0, 0);
    group("fft");
}

/* The transform of a plan that is made now, as whoever finds no place for it makes it. */
static void transform_of(int64_t n, lop_dtype dt, const lop_mat *x, lop_mat *out) {
    char *plan = malloc(lopk_fft_plan_bytes(n, dt)), *work = malloc(lopk_fft_work_bytes(n, dt));
    memset(plan, 0xff, lopk_fft_plan_bytes(n, dt));
    check(lopk_fft_plan_init(plan, n, dt) == LOP_OK, "plan", dt, n, 0, 0);
    if (lop_is_complex(dt))
        lopk_cfft(plan, x->p, n, 1, out->p, n, 1, -1, 1.0, work);
    else
        lopk_rfft(plan, x->p, n, 1, out->p, work);
    free(plan);
    free(work);
}

/* Plans that were made before: of more lengths and dtypes than are kept, of lengths on both sides
 * of the longest that is, once more in turn and several times the same: the same bits. */
static void test_fft_again(void) {
    static const int64_t length[] = {48, 49, 1009, 2018, 4096, 4100, 12000, 13000, 65536, 100003};
    enum { LENGTHS = sizeof length / sizeof *length, MOST = 100003 };
    const lop_mat x = make(LOP_c128, MOST, 1, 0);
    lop_mat other = make(LOP_c128, MOST, 1, 0);
    for (lop_dtype dt = LOP_f32; dt <= LOP_c128; dt++)
        for (int i = 0; i < LENGTHS; i++) {
            const int64_t n = length[i];
            const size_t bytes = (size_t)(lop_is_complex(dt) ? n : n / 2 + 1) *
                                 (dt == LOP_f32 || dt == LOP_c64 ? 8 : 16);
            lop_mat first = make(LOP_c128, n, 1, 0), again = make(LOP_c128, n, 1, 0), in = x;
            double *small = malloc((size_t)n * 16);
            for (int64_t j = 0; j < 2 * n; j++)
                if (dt == LOP_f32 || dt == LOP_c64)
                    ((float *)(void *)small)[j] = (float)((double *)x.p)[j];
                else
                    small[j] = ((double *)x.p)[j];
            in.p = small;
            transform_of(n, dt, &in, &first);
            for (int turn = 0; turn < 3; turn++) {
                poison(&again);
                if (turn == 1) transform_of(length[(i + 3) % LENGTHS], dt, &x, &other);
                transform_of(n, dt, &in, &again);
                check(memcmp(first.p, again.p, bytes) == 0, "again", dt, n, turn, 0);
            }
            free(small);
            free(first.p);
            free(again.p);
        }
    free(x.p);
    free(other.p);
    group("fft again");
}

/* |op(A) x - b| within rounding, y for the product. */
static bool residual_ok(const lop_mat *a, bool conj, const lop_mat *x, const lop_mat *b,
                        const lop_mat *y) {
    bool ok = true;
    lopk_gemm(y, a, conj, x, false);
    for (int64_t i = 0; i < y->m; i++)
        for (int64_t j = 0; j < y->n; j++) {
            val u = at(y, i, j), v = at(b, i, j);
            ok = ok &&
                 hypotl(u.re - v.re, u.im - v.im) <= (long double)(200 * (y->m + 2)) * unit(y->dt);
        }
    return ok;
}
#define RESIDUAL(m_, conj_, what) check(residual_ok(&(m_), conj_, &x, &b, &y), what, dt, n, k, 0)

static void test_triangular(const lop_mat *keep_, const lop_mat *b_, const lop_mat *x_,
                            const lop_mat *y_) {
    const lop_mat keep = *keep_, b = *b_, x = *x_, y = *y_;
    const lop_dtype dt = b.dt;
    const int64_t n = b.m, k = b.n;
    for (int q = 0; q < 24; q++) { /* triangular: layout of a, of b, lower or upper, N T C */
        lop_mat ta = make(dt, n, n, q / 2 % 2), tb = make(dt, n, k, q % 2),
                full = make(dt, n, n, 1);
        const bool lower = q / 4 % 2;
        lopk_copy(&ta, &keep);
        lopk_zero(&full);
        for (int64_t j = 0; j < n; j++) {
            const int64_t i0 = lower ? j : 0, len = lower ? n - j : j + 1;
            const lop_mat src = {(char *)keep.p + (i0 + j * n) * size_of[dt], len, 1, 1, 1, dt};
            const lop_mat dst = {(char *)full.p + (i0 + j * n) * size_of[dt], len, 1, 1, 1, dt};
            lopk_copy(&dst, &src);
        }
        const char trans = "NTC"[q / 8];
        const lop_mat ft = {full.p, n, n, full.cs, full.rs, dt};
        lopk_copy(&tb, &b);
        check(lopk_trsm(&ta, lower, false, trans, &tb) == LOP_OK, "trsm", dt, n, k, q);
        lopk_copy(&x, &tb);
        RESIDUAL(*(trans == 'N' ? &full : &ft), trans == 'C', "trsm residual");
        check(lopk_trmm(&ta, lower, false, trans, &tb) == LOP_OK, "trmm", dt, n, k, q);
        bool ok = true;
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < k; j++) {
                val u = at(&tb, i, j), v = at(&b, i, j);
                ok = ok &&
                     hypotl(u.re - v.re, u.im - v.im) <= (long double)(200 * (n + 2)) * unit(dt);
            }
        check(ok, "trmm back", dt, n, k, q);
        free(ta.p);
        free(tb.p);
        free(full.p);
    }
}

static void test_lapack(lop_dtype dt, int64_t n, int64_t k) {
    lop_mat g = make(dt, n, n, 1), a = make(dt, n, n, 1), b = make(dt, n, k, 1),
            x = make(dt, n, k, 1);
    lop_mat keep = make(dt, n, n, 1), y = make(dt, n, k, 1);
    int64_t *ipiv = malloc((size_t)n * 8 + 8);
    void *work = malloc(lopk_gecon_bytes(n, dt));
    int64_t info;
    double rcond = -1;
    const lop_mat gt = {g.p, n, n, g.cs, g.rs, dt};
    lopk_gemm(&a, &gt, true, &g, false); /* G^H G + n I needs conj of the left: conj(G^T) */
    for (int64_t i = 0; i < n; i++) {
        const int64_t d = i * (n + 1);
        if (dt == LOP_f32)
            ((float *)a.p)[d] += (float)n;
        else if (dt == LOP_f64)
            ((double *)a.p)[d] += (double)n;
        else if (dt == LOP_c64)
            ((float *)a.p)[2 * d] += (float)n;
        else
            ((double *)a.p)[2 * d] += (double)n;
    }
    lopk_copy(&keep, &a);
    const lop_mat kt = {keep.p, n, n, keep.cs, keep.rs, dt};
    lopk_copy(&x, &b);
    check(lopk_potrf(&a, &info) == LOP_OK && info == 0 && lopk_potrs(&a, &x) == LOP_OK, "potrf", dt,
          n, k, 0);
    RESIDUAL(keep, false, "potrs");
    if (n)
        check(lopk_pocon(&a, lopk_norm1('L', &keep), &rcond, work) == LOP_OK && rcond > 0 &&
                  rcond < 1.0001,
              "pocon", dt, n, 0, 0);
    test_triangular(&keep, &b, &x, &y);
    for (int q = 0; q < 3; q++) {
        lopk_copy(&a, &keep);
        lopk_copy(&x, &b);
        check(lopk_getrf(&a, ipiv, &info) == LOP_OK && lopk_getrs(&a, ipiv, "NTC"[q], &x) == LOP_OK,
              "getrf", dt, n, k, q);
        RESIDUAL(*(q ? &kt : &keep), q == 2, "getrs");
    }
    if (n)
        check(lopk_gecon(&a, lopk_norm1('G', &keep), &rcond, work) == LOP_OK && rcond > 0 &&
                  rcond < 1.0001,
              "gecon", dt, n, 0, 0);
    lopk_zero(&a);
    if (n)
        check(lopk_getrf(&a, ipiv, &info) == LOP_SINGULAR && info == 1 &&
                  lopk_diag_has_zero(&a) == 0,
              "singular", dt, n, 0, 0);
    if (n) check(lopk_potrf(&a, &info) == LOP_SINGULAR && info == 1, "not positive", dt, n, 0, 0);
    free(g.p), free(a.p), free(b.p), free(x.p), free(keep.p), free(y.p), free(ipiv), free(work);
}

static void test_lapack_all(void) {
    for (lop_dtype dt = LOP_f32; dt <= LOP_c128; dt++)
        for (int i = 0; i < NSIZE; i++)
            for (int64_t k = 0; k < 20; k += 1 + k) test_lapack(dt, sizes[i], k);
    check(lopk_threads() >= 1 && strlen(lopk_blas_config()) > 0, "config", 0, 0, 0, 0);
    group("lapack");
}

/* What sums and products of words could lose: words of one column exchanged, rows exchanged, what
 * one gains and another loses; with small whole numbers, whose doubles end in zeros, as words of 64
 * bits and as floats of 32. A row is one round; rows 16 apart stand at one place of their block. */
static void test_fingerprint_moves(void) {
    enum { M = 70, N = 8 };
    static double v[M * N];
    const lop_mat a = {v, M, N, N, 1, LOP_f64}, single = {v, M, 2 * N, 2 * N, 1, LOP_f32};
    const lop_fingerprint zero = {0, 0};
    for (int kind = 0; kind < 3; kind++) {
        const lop_mat *seen = kind == 1 ? &single : &a;
        for (int i = 0; i < M * N; i++)
            if (kind == 0)
                v[i] = (i * 7 + i / 5) % 11;
            else if (kind == 1)
                ((float *)v)[2 * i] = (float)(i % 3), ((float *)v)[2 * i + 1] = (float)(i % 7);
            else
                v[i] = 0;
        const lop_fingerprint p = lopk_fingerprint(zero, seen);
        bool ok = true;
        for (int i = 0; i < M; i++)
            for (int k = i + 1; k < M; k++)
                for (int j = 0; j <= N; j++) { /* j = N: whole rows */
                    const int first = j < N ? j : 0, past = j < N ? j + 1 : N;
                    double old[2 * N];
                    memcpy(old, v + i * N, N * sizeof(double));
                    memcpy(old + N, v + k * N, N * sizeof(double));
                    for (int q = first; q < past; q++) {
                        const double x = kind == 2 ? 1.0 : v[k * N + q];
                        v[k * N + q] = kind == 2 ? -1.0 : v[i * N + q];
                        v[i * N + q] = x;
                    }
                    const lop_fingerprint moved = lopk_fingerprint(zero, seen);
                    const bool same_bytes = !memcmp(old, v + i * N, N * sizeof(double)) &&
                                            !memcmp(old + N, v + k * N, N * sizeof(double));
                    ok = ok && (moved.lo == p.lo) == same_bytes && (moved.hi == p.hi) == same_bytes;
                    memcpy(v + i * N, old, N * sizeof(double));
                    memcpy(v + k * N, old + N, N * sizeof(double));
                }
        check(ok, "moved", seen->dt, kind, M, N);
    }
    const int force = lopk_fingerprint_force;
    for (int64_t rows = 1; rows <= M; rows++) { /* every loop gives the same */
        const lop_mat top = {v, rows, N, N, 1, LOP_f64};
        lop_fingerprint p[3];
        for (int i = 0; i < M * N; i++) v[i] = (double)i * (double)i / 7 + (double)rows;
        for (int k = 0; k < 3; k++) {
            lopk_fingerprint_force = k;
            p[k] = lopk_fingerprint(zero, &top);
        }
        check(p[0].lo == p[1].lo && p[0].hi == p[1].hi && p[0].lo == p[2].lo && p[0].hi == p[2].hi,
              "loops", LOP_f64, rows, 0, 0);
    }
    lopk_fingerprint_force = force;
    group("fingerprints of what is moved");
}

static void test_rest(void) {
    for (lop_dtype dt = LOP_f32; dt <= LOP_c128; dt++) {
        lop_mat a = make(dt, 50, 3, 0), b = make(dt, 50, 3, 1), y = make(dt, 50, 3, 2),
                z = make(dt, 50, 3, 0);
        lopk_div(&y, &a, &b);
        lopk_mul(&z, &y, &b);
        bool ok = true;
        for (int64_t i = 0; i < 50; i++)
            for (int64_t j = 0; j < 3; j++) ok = ok && same(dt, at(&z, i, j), at(&a, i, j), 16);
        check(ok, "div", dt, 50, 3, 0);
        free(a.p), free(b.p), free(y.p), free(z.p);
    }
    const double _Complex num = 1e300 + 1e300 * _Complex_I;
    double _Complex q;
    const lop_mat big = {(void *)(uintptr_t)&num, 1, 1, 1, 1, LOP_c128},
                  out = {&q, 1, 1, 1, 1, LOP_c128};
    lopk_div(&out, &big, &big);
    check(fabs(creal(q) - 1) < 1e-15 && fabs(cimag(q)) < 1e-15, "div no overflow", 0, 0, 0, 0);
    for (lop_dtype dt = 0; dt < LOP_NDTYPE; dt++)
        for (int layout = 0; layout < 4; layout++)
            for (int64_t n = 1; n < 120; n += 7) {
                lop_mat a = make(dt, n, 3, layout), d = make(dt, 2, 1, 0),
                        copy = make(dt, n, 3, layout);
                const lop_fingerprint zero = {0, 0}, p = lopk_fingerprint(zero, &a);
                lopk_copy(&copy, &a);
                const lop_fingerprint same_p = lopk_fingerprint(zero, &copy);
                bool ok = p.lo == same_p.lo && p.hi == same_p.hi; /* gaps do not count */
                for (int64_t i = 0; i < n; i++)
                    for (int64_t j = 0; j < 3; j++) {
                        char *byte =
                            (char *)a.p + (i * a.rs + j * a.cs) * size_of[dt] + i % size_of[dt];
                        *byte = (char)(*byte ^ (1 << (j + 3)));
                        const lop_fingerprint other = lopk_fingerprint(zero, &a);
                        ok = ok && other.lo != p.lo && other.hi != p.hi;
                        *byte = (char)(*byte ^ (1 << (j + 3)));
                    }
                const lop_fingerprint seeded = lopk_fingerprint((lop_fingerprint){1, 0}, &a);
                lop_mat other = a;
                other.m--;
                const lop_fingerprint shorter = lopk_fingerprint(zero, &other);
                check(ok && seeded.lo != p.lo && shorter.lo != p.lo, "fingerprint", dt, n, layout,
                      0);
                if (n >= 3) { /* diagonals k = -1, 1 */
                    lop_mat t = make(dt, 3, 3, layout);
                    lopk_set_diag(&t, -1, &d);
                    ok = same(dt, at(&t, 1, 0), at(&d, 0, 0), 0) &&
                         same(dt, at(&t, 2, 1), at(&d, 1, 0), 0);
                    lopk_set_diag(&t, 1, &d);
                    ok = ok && same(dt, at(&t, 0, 1), at(&d, 0, 0), 0) &&
                         same(dt, at(&t, 1, 2), at(&d, 1, 0), 0);
                    check(ok, "set_diag", dt, layout, 0, 0);
                    free(t.p);
                }
                free(a.p), free(d.p), free(copy.p);
            }
    group("division, fingerprint");
}
