/* test_kernels.c [all]: src/c/kernels against naive references, 13 dtypes, odd strides, sizes 0 to
 * 100; the FFT at lengths 1 to 200 and some large ones, in both instruction sets. `all` (in `make
 * sweep`): all sizes of what takes longest. One line a group, then "N passed, M failed"; exit
 * status 1 when any failed. Integers must agree exactly (they wrap), floats within a multiple of u
 * times the sum of moduli.
 *
 * By itself, to be run with PYLINOP_BLAS=/path/to/libopenblas.so (that of the package
 * scipy_openblas64, say):
 *
 * gcc -std=c11 -O2 -Wall -Wextra -Wshadow -Wconversion -Werror '-DPYLINOP_TEST_BLAS=""'
 *     tests/c/test_kernels.c tests/c/blas.c tests/c/wide_kernel.c src/c/kernels/[bk]*.c
 *     src/c/base/base.c -o test_kernels -lm -lpthread -ldl
 *
 * Sanitizers: add -g -fsanitize=address,undefined -fno-sanitize-recover=undefined. */
#include "../../src/c/kernels/dense/k_blas.h"
#include "../../src/c/kernels/dense/k_cholesky_update.h"
#include "../../src/c/kernels/dense/k_eigen.h"
#include "../../src/c/kernels/fft/k_fft.h"
#include "../../src/c/kernels/kernel_matrix/k_kernel_matrix.h"
#include "../../src/c/kernels/dense/k_small_gemm.h"
#include "../../src/c/kernels/dense/k_small_lu.h"
#include "../../src/c/kernels/common/k_fingerprint.h"
#include "../../src/c/kernels/common/kernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern int lopk_fft_force_plain;

static int passed, failed, group_failed;

static void check(bool ok, const char *what, int dt, int64_t a, int64_t b, int64_t c) {
    if (ok) {
        passed++;
        return;
    }
    failed++;
    if (group_failed++ < 5)
        printf("  FAILED %s dtype %d sizes %lld %lld %lld\n", what, dt, (long long)a, (long long)b,
               (long long)c);
}
static void group(const char *name) {
    static clock_t start;
    printf("%-24s %6.1f s  %s\n", name, (double)(clock() - start) / CLOCKS_PER_SEC,
           group_failed ? "FAILED" : "ok");
    fflush(stdout);
    start = clock();
    group_failed = 0;
}

static bool thorough; /* not a part of what takes longest */

static uint64_t seed = 88172645463325252u;
static uint64_t random_bits(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed * 0x9e3779b97f4a7c15u;
}
static double uniform(void) { return (double)(random_bits() >> 11) * 0x1p-52 - 1; }

/* ---- values: integers in `i`, modulo 2^64; floats in re, im with the sum of moduli in mag ---- */
typedef struct val {
    uint64_t i;
    long double re, im, mag;
} val;

static const char family[] = "biuiuiuiuffcc";
static const int64_t size_of[] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16};
static bool is_int(lop_dtype dt) { return dt < LOP_f32; }
static long double unit(lop_dtype dt) {
    return dt == LOP_f32 || dt == LOP_c64 ? 0x1p-24L : 0x1p-53L;
}

static val get(lop_dtype dt, const void *p, int64_t at) {
    val v = {0, 0, 0, 0};
    switch (dt) {
#define INT(name, type)                                                                            \
    case LOP_##name: v.i = (uint64_t)(int64_t)((const type *)p)[at]; break;
        /* clang-format off */
        INT(b8, unsigned char) INT(i8, int8_t) INT(u8, uint8_t) INT(i16, int16_t)
        INT(u16, uint16_t) INT(i32, int32_t) INT(u32, uint32_t) INT(i64, int64_t)
        INT(u64, uint64_t)
        /* clang-format on */
#undef INT
            case LOP_f32:
        v.re = (long double)((const float *)p)[at];
        break;
    case LOP_f64: v.re = (long double)((const double *)p)[at]; break;
    case LOP_c64:
        v.re = (long double)((const float *)p)[2 * at],
        v.im = (long double)((const float *)p)[2 * at + 1];
        break;
    default:
        v.re = (long double)((const double *)p)[2 * at],
        v.im = (long double)((const double *)p)[2 * at + 1];
        break;
    }
    v.mag = fabsl(v.re) + fabsl(v.im);
    return v;
}
static val add(lop_dtype dt, val a, val b) {
    return (val){dt == LOP_b8 ? (a.i | b.i) : a.i + b.i, a.re + b.re, a.im + b.im, a.mag + b.mag};
}
static val mul(lop_dtype dt, val a, val b) {
    return (val){dt == LOP_b8 ? (a.i & b.i) : a.i * b.i, a.re * b.re - a.im * b.im,
                 a.re * b.im + a.im * b.re, a.mag * b.mag};
}
static val neg(val a) { return (val){0 - a.i, -a.re, -a.im, a.mag}; }
static val cj(val a, bool yes) { return yes ? (val){a.i, a.re, -a.im, a.mag} : a; }
static bool same(lop_dtype dt, val got, val want, double factor) {
    if (is_int(dt)) {
        const int shift = 64 - 8 * (int)size_of[dt];
        return got.i << shift == want.i << shift;
    }
    const long double e = fabsl(got.re - want.re) + fabsl(got.im - want.im);
    return e <= (long double)factor * unit(dt) * want.mag; /* NaN fails */
}

static void set_random(lop_dtype dt, void *p, int64_t at) {
    const uint64_t r = random_bits();
    if (dt == LOP_b8)
        ((unsigned char *)p)[at] = (unsigned char)(r >> 63);
    else if (is_int(dt))
        memcpy((char *)p + at * size_of[dt], &r, (size_t)size_of[dt]);
    else if (dt == LOP_f32)
        ((float *)p)[at] = (float)uniform();
    else if (dt == LOP_f64)
        ((double *)p)[at] = uniform();
    else if (dt == LOP_c64)
        ((float *)p)[2 * at] = (float)uniform(), ((float *)p)[2 * at + 1] = (float)uniform();
    else
        ((double *)p)[2 * at] = uniform(), ((double *)p)[2 * at + 1] = uniform();
}

/* A random m x n matrix in fresh memory: layout 0 C, 1 Fortran, 2 C padded, 3 both strides odd. */
static lop_mat make(lop_dtype dt, int64_t m, int64_t n, int layout) {
    lop_mat a = {NULL, m, n, n, 1, dt};
    if (layout == 1) a.rs = 1, a.cs = m;
    if (layout == 2) a.rs = n + 3;
    if (layout == 3) a.rs = 2, a.cs = 2 * m + 5;
    int64_t count = 1 + (m > 0 ? (m - 1) * a.rs : 0) + (n > 0 ? (n - 1) * a.cs : 0);
    if (m == 0 || n == 0) count = 1;
    a.p = malloc((size_t)(count * size_of[dt]));
    if (!a.p) exit(2);
    for (int64_t i = 0; i < count; i++) set_random(dt, a.p, i);
    return a;
}
static val at(const lop_mat *a, int64_t i, int64_t j) {
    return get(a->dt, a->p, (a->m == 1 ? 0 : i) * a->rs + (a->n == 1 ? 0 : j) * a->cs);
}
static void poison(const lop_mat *a) {
    for (int64_t i = 0; i < a->m; i++)
        for (int64_t j = 0; j < a->n; j++)
            memset((char *)a->p + (i * a->rs + j * a->cs) * size_of[a->dt], a->dt ? 0xff : 1,
                   (size_t)size_of[a->dt]);
}

static const int64_t sizes[] = {0, 1, 2, 3, 7, 16, 100};
enum { NSIZE = 7 };

typedef void (*binary)(const lop_mat *, const lop_mat *, const lop_mat *);
static void test_elementwise(lop_dtype dt, int64_t m, int64_t n, int layout) {
    static const binary op[3] = {lopk_add, lopk_sub, lopk_mul};
    for (int o = 0; o < 3; o++)
        for (int shape = 0; shape < 5; shape++) {
            lop_mat a = make(dt, shape == 1 || shape == 3 ? 1 : m, shape == 2 || shape == 3 ? 1 : n,
                             (layout + shape) % 4);
            lop_mat b = make(dt, m, n, layout),
                    y = shape == 4 ? b : make(dt, m, n, (layout + o) % 4);
            lop_mat keep = make(dt, m, n, 0);
            lopk_copy(&keep, &b);
            if (shape != 4) poison(&y);
            op[o](&y, &a, &b);
            bool ok = true;
            for (int64_t i = 0; i < m; i++)
                for (int64_t j = 0; j < n; j++) {
                    val u = at(&a, i, j), v = at(&keep, i, j);
                    val w = o == 0   ? add(dt, u, v)
                            : o == 1 ? (dt ? add(dt, u, neg(v)) : add(dt, u, v))
                                     : mul(dt, u, v);
                    ok = ok && same(dt, at(&y, i, j), w, 2);
                }
            check(ok, "elementwise", dt, m, n, o * 10 + shape);
            free(a.p);
            free(b.p);
            free(keep.p);
            if (shape != 4) free(y.p);
        }
}

static void test_scale_rowscale(lop_dtype dt, int64_t m, int64_t n, int layout) {
    lop_mat x = make(dt, m, n, layout), d = make(dt, m, 1, 0), y = make(dt, m, n, (layout + 1) % 4);
    for (int conj = 0; conj < 2; conj++) {
        poison(&y);
        lopk_rowscale(&y, &d, conj, &x);
        bool ok = true;
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++)
                ok = ok && same(dt, at(&y, i, j), mul(dt, cj(at(&d, i, 0), conj), at(&x, i, j)), 3);
        check(ok, "rowscale", dt, m, n, conj);
    }
    for (int q = 0; q < 2; q++) {
        const double _Complex c = 0.375 + (q && lop_is_complex(dt) ? 2.5 : 0) * _Complex_I;
        const val cv = {5, 0.375L, (long double)cimag(c), (long double)(cabs(c) * 1.5)};
        poison(&y);
        lopk_scale(&y, c, dt ? 5 : 1, &x);
        bool ok = true;
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++)
                ok = ok && same(dt, at(&y, i, j), mul(dt, cv, at(&x, i, j)), 3);
        check(ok, "scale", dt, m, n, q);
    }
    poison(&y);
    lopk_conj(&y, &x);
    bool ok = true;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            ok = ok && same(dt, at(&y, i, j), cj(at(&x, i, j), true), 0);
    lop_mat s = make(dt, 1, 1, 0), t = make(dt, 1, 1, 0);
    val sum = {0, 0, 0, 0}, dot = sum;
    lopk_sum(&s, &x);
    lopk_dot(&t, &x, &y);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            sum = add(dt, sum, at(&x, i, j));
            dot = add(dt, dot, mul(dt, at(&x, i, j), at(&y, i, j)));
        }
    check(ok && same(dt, at(&s, 0, 0), sum, 40) && same(dt, at(&t, 0, 0), dot, 40), "conj sum dot",
          dt, m, n, layout);
    lopk_zero(&y);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) ok = ok && at(&y, i, j).i == 0 && at(&y, i, j).mag == 0;
    check(ok, "zero", dt, m, n, layout);
    free(x.p);
    free(y.p);
    free(d.p);
    free(s.p);
    free(t.p);
}

static void test_casts(void) {
    for (lop_dtype from = 0; from < LOP_NDTYPE; from++)
        for (lop_dtype to = 0; to < LOP_NDTYPE; to++)
            for (int q = 0; q < 16; q++) {
                lop_mat x = make(from, 37, 41, q / 4), y = make(to, 37, 41, q % 4);
                lopk_copy(&y, &x);
                bool ok = true;
                for (int64_t i = 0; i < 37; i++)
                    for (int64_t j = 0; j < 41; j++) {
                        val v = at(&x, i, j), w = at(&y, i, j);
                        long double re = !is_int(from)         ? v.re
                                         : family[from] == 'i' ? (long double)(int64_t)v.i
                                                               : (long double)v.i;
                        if (to == LOP_b8)
                            ok = ok && w.i == (v.i != 0 || v.mag != 0);
                        else if (is_int(to) && is_int(from))
                            ok = ok && same(to, w, v, 0);
                        else if (is_int(to))
                            ok = ok && w.i == 0; /* |x| < 1 truncates */
                        else
                            ok = ok && same(to, w,
                                            (val){0, re, lop_is_complex(to) ? v.im : 0,
                                                  fabsl(re) + v.mag},
                                            1);
                    }
                check(ok, "cast", from, to, q, 0);
                free(x.p);
                free(y.p);
            }
    const double odd[6] = {(double)NAN, 1e300, -1e300, -1.0, 300.7, 0x1p63};
    int64_t i64[6];
    uint8_t u8[6];
    uint64_t u64[6];
    const lop_mat x = {(void *)(uintptr_t)odd, 6, 1, 1, 1, LOP_f64};
    lopk_copy(&(lop_mat){i64, 6, 1, 1, 1, LOP_i64}, &x);
    lopk_copy(&(lop_mat){u8, 6, 1, 1, 1, LOP_u8}, &x);
    lopk_copy(&(lop_mat){u64, 6, 1, 1, 1, LOP_u64}, &x);
    check(i64[0] == 0 && i64[1] == INT64_MAX && i64[2] == INT64_MIN && i64[3] == -1 &&
              i64[4] == 300,
          "odd i64", 0, 0, 0, 0);
    check(u8[0] == 0 && u8[3] == 255 && u8[4] == 44, "odd u8", 0, 0, 0, 0);
    check(u64[0] == 0 && u64[1] == UINT64_MAX && u64[5] == 1ull << 63, "odd u64", 0, 0, 0, 0);
    group("copy");
}

typedef void (*product)(const lop_mat *, const lop_mat *, bool, const lop_mat *, bool);
static void test_product(product f, lop_dtype dt, int64_t m, int64_t k, int64_t n, int layouts) {
    lop_mat a = make(dt, m, k, layouts % 4), b = make(dt, k, n, layouts / 4 % 4),
            y = make(dt, m, n, layouts / 16);
    lop_mat keep = make(dt, m, n, 0);
    for (int q = 0; q < 4; q++) {
        lopk_copy(&keep, &y);
        if (q < 2) poison(&y);
        f(&y, &a, q % 2, &b, q >= 2);
        bool ok = true;
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                val s = q >= 2 ? at(&keep, i, j) : (val){0, 0, 0, 0};
                for (int64_t l = 0; l < k; l++)
                    s = add(dt, s, mul(dt, cj(at(&a, i, l), q % 2), at(&b, l, j)));
                ok = ok && same(dt, at(&y, i, j), s, (double)(2 * k + 8));
            }
        check(ok, "product", dt, m * 1000 + k, n, layouts * 10 + q);
        if (q < 2) lopk_copy(&y, &keep);
    }
    free(a.p);
    free(b.p);
    free(y.p);
    free(keep.p);
}

static void test_toeplitz(lop_dtype dt, int64_t m, int64_t n, int layout) {
    lop_mat c = make(dt, m, 1, layout), r = make(dt, n, 1, layout);
    for (int q = 0; q < 4; q++) {
        const bool trans = q % 2, conj = q / 2;
        lop_mat x = make(dt, trans ? m : n, 3, layout),
                y = make(dt, trans ? n : m, 3, (layout + 1) % 4);
        poison(&y);
        lopk_toeplitz_direct(&y, &c, &r, trans, conj, &x);
        bool ok = true;
        for (int64_t i = 0; i < y.m; i++)
            for (int64_t k = 0; k < 3; k++) {
                val s = {0, 0, 0, 0};
                for (int64_t j = 0; j < x.m; j++) {
                    const int64_t d = trans ? j - i : i - j;
                    s = add(dt, s,
                            mul(dt, cj(d >= 0 ? at(&c, d, 0) : at(&r, -d, 0), conj), at(&x, j, k)));
                }
                ok = ok && same(dt, at(&y, i, k), s, (double)(x.m + 8));
            }
        check(ok, "toeplitz direct", dt, m, n, q);
        if (lop_is_blas(dt)) {
            for (int plain = 0; plain < 2; plain++) {
                const int64_t N = layout % 2 ? lopk_fft_good(m + n - 1, dt) : m + n - 1;
                lopk_fft_force_plain = plain;
                void *plan = malloc(lopk_fft_plan_bytes(N, dt)),
                     *work = malloc(lopk_toeplitz_work_bytes(N, dt));
                void *spec = malloc((size_t)N * 16 + 64);
                check(lopk_fft_plan_init(plan, N, dt) == LOP_OK, "plan", dt, N, 0, 0);
                lopk_toeplitz_spectrum(plan, &c, &r, spec, work);
                lop_mat z = make(dt, y.m, 3, (layout + 2) % 4);
                poison(&z);
                lopk_toeplitz_fft(&z, spec, plan, &x, 0, trans, conj, work);
                long double e = 0, scale = 0;
                for (int64_t i = 0; i < y.m; i++)
                    for (int64_t k = 0; k < 3; k++) {
                        const val u = at(&z, i, k), v = at(&y, i, k);
                        e = fmaxl(e, fabsl(u.re - v.re) + fabsl(u.im - v.im));
                        if (u.re != u.re || u.im != u.im) e = INFINITY;
                    }
                scale = sqrtl((long double)(m + n)) * sqrtl((long double)x.m + 1) * unit(dt) * 20;
                check(e <= scale, "toeplitz fft", dt, m, n, q * 10 + plain);
                free(plan);
                free(work);
                free(spec);
                free(z.p);
            }
            lopk_fft_force_plain = 0;
        }
        free(x.p);
        free(y.p);
    }
    free(c.p);
    free(r.p);
}

#include "test_kernels_more.h"
#include "test_kernels_kron.h"
#include "test_kernels_kernel.h"
#include "test_kernels_dots.h"
#include "test_kernels_small.h"
#include "test_kernels_tiny.h"
#include "test_kernels_cholesky.h"
#include "test_kernels_lu.h"

int main(int argc, char **argv) {
    thorough = argc > 1 && !strcmp(argv[1], "all");
    for (lop_dtype dt = 0; dt < LOP_NDTYPE; dt++)
        for (int i = 0; i < NSIZE; i++)
            for (int j = 0; j < NSIZE; j++)
                for (int layout = 0; layout < 4; layout++) {
                    test_elementwise(dt, sizes[i], sizes[j], layout);
                    test_scale_rowscale(dt, sizes[i], sizes[j], layout);
                }
    group("elementwise, sums");
    test_casts();
    for (lop_dtype dt = 0; dt < LOP_NDTYPE; dt++)
        for (int i = 0; i < NSIZE - 1; i++)
            for (int j = 0; j < NSIZE - 1; j++)
                for (int k = 0; k < NSIZE - 1; k++) {
                    test_product(lopk_matmul_loop, dt, sizes[i], sizes[j], sizes[k],
                                 (int)(random_bits() >> 58));
                    if (lop_is_blas(dt))
                        for (int q = 0; q < 64; q += 1 + (i + j + k) % 3)
                            test_product(lopk_gemm, dt, sizes[i], sizes[j], sizes[k], q);
                }
    group("products");
    test_small_all();
    test_half_all();
    test_thin_all();
    test_row_dots_all();
    test_each_all();
    test_kron_all();
    test_kernel_all();
    for (lop_dtype dt = 0; dt < LOP_NDTYPE; dt++) {
        static const int64_t m[] = {1, 2, 3, 16, 33, 100, 300, 1, 257, 64},
                             n[] = {1, 1, 4, 16, 60, 100, 270, 20, 5, 512};
        for (int i = 0; i < 10; i++)
            for (int layout = 0; layout < 4; layout++) test_toeplitz(dt, m[i], n[i], layout);
    }
    group("toeplitz");
    test_sparse_all();
    test_fft_all();
    test_fft_again();
    test_lapack_all();
    test_cholesky_all();
    test_small_lu_all();
    test_fingerprint_moves();
    test_rest();
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
