/* test_kernels_kron.h: lopk_kron_run against one factor after the other by the definition, in
 * double, with the sum of moduli beside; any order of the factors, any layout, odd sizes, blocks
 * near and far; scratch of the very bytes that were planned. Included by test_kernels.c. */
#include "../../src/c/kernels/kron/k_kron.h"

#include <complex.h>

typedef struct kron_state {
    double _Complex *v;
    double *mag;
    int64_t n;
} kron_state;

static kron_state kron_new(int64_t n) {
    kron_state s = {calloc((size_t)n + 1, sizeof *s.v), calloc((size_t)n + 1, sizeof *s.mag), n};
    if (!s.v || !s.mag) exit(2);
    return s;
}

static kron_state kron_step(kron_state x, const lop_mat *a, bool conj, int64_t L, int64_t R) {
    kron_state y = kron_new(L * a->m * R);
    for (int64_t i = 0; i < a->m; i++)
        for (int64_t j = 0; j < a->n; j++) {
            const val c = cj(at(a, i, j), conj);
            const double _Complex z = CMPLX((double)c.re, (double)c.im);
            const double mag = (double)c.mag;
            for (int64_t l = 0; l < L; l++)
                for (int64_t r = 0; r < R; r++) {
                    const int64_t to = (l * a->m + i) * R + r, from = (l * a->n + j) * R + r;
                    y.v[to] += z * x.v[from];
                    y.mag[to] += mag * x.mag[from];
                }
        }
    free(x.v);
    free(x.mag);
    return y;
}

/* sizes: m, n of each factor. way 0: the kernel's order; else a random one. */
static void test_kron(lop_dtype dt, int p, const int64_t *sizes_mn, int64_t k, int way) {
    lopk_kron g = {.n = p, .dt = dt, .k = k};
    int64_t rows = 1, cols = 1, terms = 8;
    for (int i = 0; i < p; i++) {
        const int64_t m = sizes_mn[2 * i], n = sizes_mn[2 * i + 1];
        g.a[i] = make(dt, m, n, (int)(random_bits() >> 62));
        g.conj[i] = random_bits() >> 63;
        rows *= m;
        cols *= n;
        terms += 2 * n;
    }
    lopk_kron_order(&g);
    for (int i = p - 1; way && i > 0; i--) {
        const int j = (int)(random_bits() % (uint64_t)(i + 1));
        const int8_t keep = g.order[i];
        g.order[i] = g.order[j];
        g.order[j] = keep;
    }
    lop_mat x = make(dt, cols, k, 0), y = make(dt, rows, k, 0), old = make(dt, rows, k, 0);
    poison(&y);
    check(lopk_kron_plan(&g) == LOP_OK, "kron plan", dt, rows, cols, k);
    const size_t room = (size_t)g.room;
    unsigned char *scratch = room ? aligned_alloc(64, (room + 127) / 64 * 64) : NULL;
    if (room && !scratch) exit(2);
    if (room) memset(scratch, 0xff, (room + 127) / 64 * 64); /* NaN */
    lopk_kron_run(&g, &y, &x, scratch);
    lopk_copy(&old, &y);
    poison(&y);
    lopk_kron_run(&g, &y, &x, scratch);
    bool ok = !rows || !k || !memcmp(old.p, y.p, (size_t)(rows * k * size_of[dt]));
    for (size_t i = room; room && i < (room + 127) / 64 * 64; i++) ok = ok && scratch[i] == 0xff;
    check(ok, "kron: same bits twice, scratch kept", dt, rows, cols, k);
    kron_state s = kron_new(cols * k);
    for (int64_t i = 0; i < cols * k; i++) {
        const val v = get(dt, x.p, i);
        s.v[i] = CMPLX((double)v.re, (double)v.im);
        s.mag[i] = (double)v.mag;
    }
    for (int step = 0; step < p; step++) {
        int64_t L = 1, R = k;
        for (int i = 0; i < p; i++) {
            if (i == step) continue;
            if (i < step)
                L *= g.a[i].m;
            else
                R *= g.a[i].n;
        }
        s = kron_step(s, &g.a[step], g.conj[step], L, R);
    }
    ok = s.n == rows * k;
    for (int64_t i = 0; ok && i < s.n; i++) {
        const val v = get(dt, y.p, i);
        const double e = fabs((double)v.re - creal(s.v[i])) + fabs((double)v.im - cimag(s.v[i]));
        ok = e <= (double)(terms * unit(dt)) * s.mag[i];
    }
    check(ok, "kron", dt, rows, cols, k * 100 + p * 10 + way);
    free(s.v);
    free(s.mag);
    free(scratch);
    for (int i = 0; i < p; i++) free(g.a[i].p);
    free(x.p);
    free(y.p);
    free(old.p);
}

static void test_kron_all(void) {
    static const int64_t pool[] = {1, 2, 3, 4, 5, 8, 9, 16, 17, 33, 0};
    static const struct {
        int p;
        int64_t mn[16], k;
    } large[] = {
        {3, {64, 64, 40, 40, 30, 30}, 1},
        {3, {32, 32, 20, 20, 18, 18}, 16},
        {3, {20, 30, 40, 25, 30, 20}, 9},
        {3, {24, 24, 40, 40, 20, 20}, 7},
        {4, {5, 5, 20, 20, 40, 40, 18, 18}, 3},
        {3, {200, 200, 6, 5, 20, 20}, 4},
        {3, {150, 150, 140, 140, 1, 1}, 2},
        {3, {1, 1, 150, 150, 40, 41}, 3},
        {8, {4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4}, 1},
        {8, {4, 4, 3, 4, 4, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4}, 2},
        {2, {300, 40, 7, 300}, 5},
    };
    for (lop_dtype dt = LOP_f32; dt <= LOP_c128; dt++) {
        for (int t = 0; t < (thorough ? 600 : 240); t++) {
            const int p = 1 + t % 8;
            int64_t mn[16], all = 1;
            for (int i = 0; i < 2 * p; i++) {
                const uint64_t some = t % 20 == 19 ? 11 : p > 4 ? 4 : 10;
                mn[i] = pool[random_bits() % some];
                if (i % 2 && all * (mn[i] > mn[i - 1] ? mn[i] : mn[i - 1]) > 20000)
                    mn[i] = mn[i - 1] = 1;
                if (i % 2) all *= mn[i] > mn[i - 1] ? mn[i] : mn[i - 1];
            }
            test_kron(dt, p, mn, (int64_t)(random_bits() % 6), t % 3);
        }
        for (int t = thorough ? 0 : (int)dt % 2; t < 11; t += thorough ? 1 : 2)
            test_kron(dt, large[t].p, large[t].mn, large[t].k, (t + (int)dt) % 2);
    }
    static const int64_t far[] = {260, 260, 260, 260};
    test_kron(LOP_c128, 2, far, 4, 0);
    lopk_kron wide = {.n = 2, .dt = LOP_f64, .k = INT64_MAX / 100};
    wide.a[0] = wide.a[1] = (lop_mat){NULL, 5, 5, 5, 1, LOP_f64};
    lopk_kron_order(&wide);
    check(lopk_kron_plan(&wide) == LOP_OVERFLOW, "kron of too many columns", 0, 0, 0, 0);
    group("kron");
}
