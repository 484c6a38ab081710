/* test_large.c [list | case dtype n]: every routine of BLAS and LAPACK that the kernels call, on
 * matrices whose results are known. Without arguments at n = 90, which says that the cases are
 * right; `make large` (tools/large.py) runs each at its own size, where products of sizes pass 32
 * bits and buffers change, in a process of its own, so that a crash is told by name. The matrix is
 * 2 I + J / 4 with J the exchange of rows: its eigenvalues are 1.75 and 2.25, A 1 = 2.25. */
#include "../../src/c/kernels/band/k_band.h"
#include "../../src/c/kernels/dense/k_blas.h"
#include "../../src/c/kernels/dense/k_cholesky_update.h"
#include "../../src/c/kernels/dense/k_eigen.h"
#include "../../src/c/kernels/dense/k_ldl.h"
#include "../../src/c/kernels/dense/k_qr.h"
#include "../../src/c/kernels/common/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 512 }; /* right sides */

static lop_dtype dt;
static int64_t n;
static bool failed;

static void check(bool ok, const char *what) {
    if (!ok) printf("FAILED: %s\n", what);
    failed = failed || !ok;
}
/* Memory until the case is over. */
static void *held[64];
static int nheld;
static void release(void) {
    while (nheld > 0) free(held[--nheld]);
}
static void *room(size_t bytes) {
    void *p = nheld < 64 ? held[nheld++] = calloc(bytes + 64, 1) : NULL;
    if (!p) {
        printf("no memory for %zu bytes\n", bytes);
        exit(2);
    }
    return p;
}
static double unit(void) { return dt == LOP_f32 || dt == LOP_c64 ? 0x1p-24 : 0x1p-53; }
static void put(const lop_mat *a, int64_t i, int64_t j, double v) {
    const int64_t at = i * a->rs + j * a->cs;
    switch (dt) {
    case LOP_f32: ((float *)a->p)[at] = (float)v; break;
    case LOP_f64: ((double *)a->p)[at] = v; break;
    case LOP_c64: ((float _Complex *)a->p)[at] = (float)v; break;
    default: ((double _Complex *)a->p)[at] = v;
    }
}
static double get(const lop_mat *a, int64_t i, int64_t j) {
    return creal(lop_get(dt, a->p, i * a->rs + j * a->cs));
}
static lop_mat zeros(int64_t rows, int64_t columns) {
    return (lop_mat){
        room((size_t)rows * (size_t)columns * lop_dtype_size(dt)), rows, columns, 1, rows, dt};
}
static lop_mat filled(int64_t rows, int64_t columns, double v) {
    const lop_mat a = zeros(rows, columns);
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < rows; i++) put(&a, i, j, v);
    return a;
}
static lop_mat matrix(void) {
    const lop_mat a = zeros(n, n);
    for (int64_t i = 0; i < n; i++) put(&a, i, n - 1 - i, 0.25);
    for (int64_t i = 0; i < n; i++) put(&a, i, i, 2);
    if (n % 2) put(&a, n / 2, n / 2, 2.25);
    return a;
}
/* All of a is v, for 100 n u. */
static void all(const lop_mat *a, double v, const char *what) {
    for (int64_t j = 0; j < a->n; j++)
        for (int64_t i = 0; i < a->m; i++) {
            const double off = get(a, i, j) - v;
            if (!(off * off <= 1e4 * (double)(n * n) * unit() * unit() * (1 + v * v))) {
                check(false, what);
                return;
            }
        }
}
static void done(lop_status st, const char *what) { check(st == LOP_OK, what); }
static lop_mat flip(const lop_mat *a) { return (lop_mat){a->p, a->n, a->m, a->cs, a->rs, a->dt}; }

static void gemm(void) {
    const lop_mat a = matrix(), at = flip(&a), b = filled(n, MANY, 1), y = zeros(n, MANY),
                  bt = flip(&b), yt = flip(&y);
    lopk_gemm(&y, &a, false, &b, false), all(&y, 2.25, "A B");
    lopk_gemm(&y, &at, true, &b, true), all(&y, 4.5, "A^H B");
    lopk_gemm(&yt, &bt, false, &a, false), all(&y, 2.25, "B^T A");
    check(lopk_gemm_add(&y, -1, &a, false, &b), "gemm_add"), all(&y, 0, "y - A B");
}
static void gemv(void) {
    const lop_mat a = matrix(), at = flip(&a), x = filled(n, 1, 1), y = zeros(n, 1), xt = flip(&x),
                  yt = flip(&y);
    lopk_gemm(&y, &a, false, &x, false), all(&y, 2.25, "A x");
    lopk_gemm(&y, &at, true, &x, false), all(&y, 2.25, "A^H x");
    lopk_gemm(&yt, &xt, false, &a, false), all(&y, 2.25, "x^T A");
}
static void syrk(void) {
    const lop_mat a = filled(MANY, n, 1), y = zeros(n, n);
    for (int adjoint = 0; adjoint < 2; adjoint++)
        lopk_gram(&y, &a, adjoint), all(&y, MANY, "a^H a");
    lopk_gemm_half(&y, &a, false, &a), all(&y, MANY, "half of a^T a");
    const lop_mat tall = filled(n, MANY, 1);
    done(lopk_herk_less(&y, &tall), "herk");
    check(get(&y, n - 1, 0) == 0 && get(&y, 0, n - 1) == MANY, "the lower triangle of y - a a^H");
}
static void symm(void) { /* on one thread, where it is BLAS's */
    enum { COLUMNS = 96 };
    const lop_mat a = matrix(), b = filled(n, COLUMNS, 1), y = zeros(n, COLUMNS);
    const int threads = lopk_threads();
    lopk_set_threads(1);
    const uintptr_t p = (uintptr_t)room(lopk_symm_scratch(n, COLUMNS, dt) + 64);
    lopk_symm(&y, &a, true, false, &b, (void *)((p + 63) & ~(uintptr_t)63));
    lopk_set_threads(threads);
    all(&y, 2.25, "A B by the upper triangle");
}
static void cholesky(void) {
    const lop_mat a = matrix(), x = filled(n, MANY, 2.25);
    int64_t info = 0;
    double rcond = 0;
    done(lopk_potrf(&a, &info), "potrf");
    done(lopk_potrs(&a, &x), "potrs"), all(&x, 1, "x by potrf");
    done(lopk_pocon(&a, 2.25, &rcond, room(lopk_gecon_bytes(n, dt))), "pocon");
    check(rcond > 0.77 && rcond < 0.79, "rcond by pocon");
    done(lopk_potri(&a, &info), "potri");
    check(get(&a, 0, 0) > 0.507 && get(&a, 0, 0) < 0.508 && get(&a, 0, n - 1) < -0.06, "inverse");
}
static void lu(void) {
    const lop_mat a = matrix(), x = filled(n, MANY, 2.25);
    void *pivots = room((size_t)n * 8);
    int64_t info = 0;
    double rcond = 0;
    done(lopk_getrf(&a, pivots, &info), "getrf");
    done(lopk_getrs(&a, pivots, 'N', &x), "getrs"), all(&x, 1, "x by getrf");
    done(lopk_getrs(&a, pivots, 'C', &x), "getrs C"), all(&x, 1 / 2.25, "x by getrf, adjoint");
    done(lopk_gecon(&a, 2.25, &rcond, room(lopk_gecon_bytes(n, dt))), "gecon");
    check(rcond > 0.77 && rcond < 0.79, "rcond by gecon");
    const lop_mat y = filled(n, n, 0);
    done(lopk_inverse_of_lu(&a, pivots, 'N', &y), "inverse of LU");
    check(get(&y, 0, 0) > 0.507 && get(&y, 0, 0) < 0.508 && get(&y, 0, n - 1) < -0.06, "inverse");
    done(lopk_inverse_of_lu(&a, pivots, 'C', &y), "inverse of LU, seen as its adjoint");
    check(get(&y, 0, 0) > 0.507 && get(&y, 0, 0) < 0.508 && get(&y, n - 1, 0) < -0.06, "inverse C");
}
static void triangles(void) {
    const lop_mat a = matrix(), at = flip(&a), x = filled(n, MANY, 1), one = filled(n, 1, 1);
    const lop_mat wide = filled(MANY, n, 1), wt = flip(&wide);
    const char ways[] = "NTC";
    for (int lower = 0; lower < 2; lower++)
        for (int way = 0; way < 3; way++) {
            done(lopk_trmm(&a, lower, false, ways[way], &x), "trmm");
            done(lopk_trsm(&a, lower, false, ways[way], &x), "trsm"), all(&x, 1, "trsm of trmm");
            done(lopk_trmm(&at, lower, false, ways[way], &one), "trmv");
            done(lopk_trsm(&at, lower, false, ways[way], &one), "trsv"), all(&one, 1, "one column");
            done(lopk_trmm(&a, lower, false, ways[way], &wt), "trmm, rows");
            done(lopk_trsm(&a, lower, false, ways[way], &wt), "trsm, rows");
            all(&wide, 1, "trsm of trmm, rows");
        }
}
static void ldl(void) {
    for (int hermitian = 0; hermitian < 2; hermitian++) {
        const lop_mat a = matrix(), x = filled(n, MANY, 2.25);
        void *pivots = room((size_t)n * 8), *e = room((size_t)n * lop_dtype_size(dt)),
             *work = room((size_t)lopk_ldl_work(n) * lop_dtype_size(dt));
        int64_t info = 0;
        done(lopk_ldl(&a, hermitian, e, pivots, work, &info), "sytrf");
        done(lopk_ldl_solve(&a, hermitian, e, pivots, &x), "sytrs_3"), all(&x, 1, "x by sytrf");
        release();
        if (!lop_is_complex(dt)) break;
    }
}
static void *eigen_room(void) {
    size_t bytes = 0;
    check(lopk_eigen_bytes(n, dt, &bytes), "the memory of heevd");
    return (void *)(((uintptr_t)room(bytes + 64) + 63) & ~(uintptr_t)63);
}
static void eigen(bool pencil) {
    const lop_mat a = matrix(), b = pencil ? matrix() : a;
    void *work = eigen_room();
    const lop_mat w = zeros(n, 1);
    int64_t info = 0;
    done(pencil ? lopk_hegvd(&a, &b, w.p, work, &info) : lopk_heevd(&a, w.p, work, &info), "heevd");
    const bool single = dt == LOP_f32 || dt == LOP_c64;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += single ? (double)((float *)w.p)[i] : ((double *)w.p)[i];
    const double off = sum / (double)n - (pencil ? 1 : 2);
    check(off * off < 1e-2 / (double)n, "the eigenvalues' sum");
}
static void heevd(void) { eigen(false); }
static void hegvd(void) { eigen(true); }
static void schur(void) {
    const lop_mat a = matrix(), q = zeros(n, n), c = filled(n, n, 1);
    void *w = room((size_t)n * 2 * lop_dtype_size(dt));
    int64_t info = 0;
    double scale = 1;
    done(lopk_gees(&a, &q, w, eigen_room(), &info), "gees");
    done(lopk_trsyl(&a, 'N', &a, 'N', &c, &scale), "trsyl");
    check(get(&c, 0, 0) / scale > 0.2 && get(&c, 0, 0) / scale < 0.3, "trsyl's X");
}
/* 2 on the diagonal and 1 / (2 w) at the w-th ones beside it. */
static void bands(void) {
    const int64_t w = n > 1000 ? 600 : 7;
    const lop_mat lu_ = zeros(3 * w + 1, n), half = zeros(w + 1, n), x = zeros(n, MANY),
                  low = zeros(w + 1, n);
    void *pivots = room((size_t)n * 8);
    int64_t info = 0;
    for (int64_t j = 0; j < n; j++) {
        put(&lu_, 2 * w, j, 2), put(&half, w, j, 2), put(&low, 0, j, 2);
        if (j >= w) put(&lu_, w, j, 0.25), put(&half, 0, j, 0.25);
        if (j + w < n) put(&lu_, 3 * w, j, 0.25), put(&low, w, j, 0.25);
        for (int64_t k = 0; k < MANY; k++)
            put(&x, j, k, 2 + (j >= w ? 0.25 : 0) + (j + w < n ? 0.25 : 0));
    }
    const lop_mat y = zeros(n, MANY);
    lopk_copy(&y, &x);
    done(lopk_gbtrf(&lu_, w, w, pivots, &info), "gbtrf");
    done(lopk_gbtrs(&lu_, w, w, pivots, 'N', &x), "gbtrs"), all(&x, 1, "x by gbtrf");
    done(lopk_pbtrf(&half, 'U', &info), "pbtrf");
    done(lopk_pbtrs(&half, &y), "pbtrs"), all(&y, 1, "x by pbtrf");
    done(lopk_band_cholesky(&low, &info), "pbtrf L");
}
static void band_values(void) {
    const int64_t w = 20;
    const lop_mat ab = zeros(2 * w + 1, n), d = zeros(n, 1);
    int64_t info = 0;
    for (int64_t j = 0; j < n; j++) put(&ab, w, j, 2);
    done(lopk_gbsvd(&ab, w, w, d.p, room((size_t)n * 10 * lop_dtype_size(dt)), &info), "gbsvd");
    const bool single = dt == LOP_f32 || dt == LOP_c64;
    check((single ? (double)((float *)d.p)[n - 1] : ((double *)d.p)[n - 1]) == 2, "values");
    double *t = room((size_t)n * 8), *e = room((size_t)n * 8);
    for (int64_t i = 0; i < n; i++) t[i] = 2, e[i] = 1e-3;
    done(lopk_sterf(n, t, e), "sterf");
    check(t[0] > 1.99 && t[n - 1] < 2.01, "sterf's values");
}
static void qr(void) {
    const int64_t m = 6 * n;
    const lop_mat r = zeros(m, n), b = filled(m, 3, 2), y = zeros(n, 3), c = filled(n, 3, 24);
    int64_t rank = 0;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = j; i < m; i += n) put(&r, i, j, 2);
    void *work = room(lopk_qr_bytes(m, n, 3, dt) + 64);
    work = (void *)(((uintptr_t)work + 63) & ~(uintptr_t)63);
    done(lopk_qr_solve(&y, &r, &b, false, work, &rank), "geqrf"), all(&y, 1, "least squares");
    done(lopk_qr_solve(&y, &r, &c, true, work, &rank), "geqrf"), all(&y, 1, "normal equations");
}

static const struct {
    const char *name;
    void (*run)(void);
    int64_t n; /* of `make large` */
} cases[] = {{"gemm", gemm, 12000},      {"gemv", gemv, 12000},   {"syrk", syrk, 12000},
             {"potrf", cholesky, 12000}, {"getrf", lu, 12000},    {"trsm", triangles, 12000},
             {"sytrf", ldl, 12000},      {"heevd", heevd, 4000},  {"hegvd", hegvd, 4000},
             {"gees", schur, 1500},      {"gbtrf", bands, 12000}, {"gbbrd", band_values, 6000},
             {"geqrf", qr, 2500},        {"symm", symm, 12000}};
enum { CASES = sizeof cases / sizeof *cases };

int main(int argc, char **argv) {
    const bool one = argc == 4;
    for (int i = 0; i < CASES; i++)
        for (dt = LOP_f32; dt <= LOP_c128; dt++) {
            n = one ? atoll(argv[3]) : 90;
            if (argc == 2)
                printf("%s %s %lld\n", cases[i].name, lop_dtype_name(dt), (long long)cases[i].n);
            else if (!one ||
                     (!strcmp(argv[1], cases[i].name) && !strcmp(argv[2], lop_dtype_name(dt)))) {
                printf("%s %s %lld\n", cases[i].name, lop_dtype_name(dt), (long long)n);
                fflush(stdout);
                cases[i].run();
                release();
                if (one) return failed;
            }
        }
    return failed || one;
}
