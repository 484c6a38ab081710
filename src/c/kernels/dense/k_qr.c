/* k_qr.c: least squares by Householder QR, rows block by block: the triangle so far stands on the
 * next rows of R, and [T; R_i] is factored again (Golub and Van Loan 2013, 5.3 and 6.5; flat TSQR,
 * Demmel and others 2012); the last block with column exchanges (geqp3). Backward stable as one QR
 * of R. Cost: 2 n^2 m flops for blocks of 4 n rows and more, up to a quarter more. */
#include "k_qr.h"
#include "blas_table.h"
#include "k_blas.h"
#include "kernels/common/kernels.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <string.h>

enum { BLOCK = 64, MORE = 4224 }; /* LAPACK's blocks; the room unmqr takes beside them */

/* The places of one solve in the work memory; all matrices column-major, `high` rows at most. */
typedef struct qr {
    lop_mat a, c; /* the block with the triangle above it; what Q^H is applied to */
    int64_t high, lwork;
    char *tau, *work;
    double *rwork, *scale;
    int64_t *jpvt;
} qr;

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
/* Numbers of work: for blocks where there are any. */
static int64_t room(int64_t n, int64_t k) {
    return n <= BLOCK ? 3 * most(n, k) + 1 : BLOCK * most(n, k) + MORE;
}
static size_t even(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

size_t lopk_qr_bytes(int64_t m, int64_t n, int64_t k, lop_dtype dt) {
    int64_t high, all, wide = most(n, k), bytes;
    if (!lop_mul_ok(n, 5, &high) || !lop_add_ok(high, BLOCK, &high)) return 0;
    if (high > m) high = most(m, 1);
    if (!lop_add_ok(n, k, &all) || !lop_mul_ok(high, all, &all) || wide > INT64_MAX / 1024 ||
        !lop_add_ok(all, room(n, k) + n, &all) ||
        !lop_mul_ok(all, (int64_t)lop_dtype_size(dt), &bytes) ||
        !lop_add_ok(bytes, 64 * wide + 1024, &bytes))
        return 0;
    return (size_t)bytes;
}

static void lay_out(qr *q, int64_t m, int64_t n, int64_t k, lop_dtype dt, char *p) {
    const size_t size = lop_dtype_size(dt);
    q->high = 5 * n + BLOCK < m ? 5 * n + BLOCK : most(m, 1);
    q->lwork = room(n, k);
    q->a = (lop_mat){p, q->high, n, 1, q->high, dt};
    p += even((size_t)q->high * (size_t)n * size);
    q->c = (lop_mat){p, q->high, k, 1, q->high, dt};
    p += even((size_t)q->high * (size_t)k * size);
    q->tau = p;
    p += even((size_t)n * size);
    q->work = p;
    p += even((size_t)q->lwork * size);
    q->rwork = (double *)(void *)p;
    p += even(2 * (size_t)n * sizeof(double));
    q->scale = (double *)(void *)p;
    p += even((size_t)n * sizeof(double));
    q->jpvt = (int64_t *)(void *)p;
}

static lop_status factor(const qr *q, bool exchange) {
    const int64_t m = q->a.m, n = q->a.n, ld = q->high, lwork = q->lwork;
    void *a = q->a.p, *tau = q->tau, *work = q->work;
    int64_t info = 0;
    if (exchange) memset(q->jpvt, 0, (size_t)n * sizeof *q->jpvt);
#define CASE(dt, g, p3, ...)                                                                       \
    case dt:                                                                                       \
        info = exchange                                                                            \
                   ? LAPACK(LAPACKE_##p3##_work)(LAPACK_COL_MAJOR, m, n, a, ld, q->jpvt, tau,      \
                                                 work, lwork __VA_ARGS__)                          \
                   : LAPACK(LAPACKE_##g##_work)(LAPACK_COL_MAJOR, m, n, a, ld, tau, work, lwork);  \
        break;
#define RWORK , q->rwork
    switch ((int)q->a.dt) {
        CASE(LOP_f32, sgeqrf, sgeqp3)
        CASE(LOP_f64, dgeqrf, dgeqp3)
        CASE(LOP_c64, cgeqrf, cgeqp3, RWORK)
        CASE(LOP_c128, zgeqrf, zgeqp3, RWORK)
    }
#undef CASE
#undef RWORK
    return info == 0 ? LOP_OK : LOP_INTERNAL;
}

/* c <- Q^H c. */
static lop_status rotate(const qr *q) {
    const int64_t m = q->a.m, n = q->a.n, k = q->c.n, ld = q->high, lwork = q->lwork,
                  r = m < n ? m : n;
    void *a = q->a.p, *tau = q->tau, *work = q->work, *c = q->c.p;
    int64_t info = 0;
#define CASE(dt, f, trans)                                                                         \
    case dt:                                                                                       \
        info = LAPACK(LAPACKE_##f##_work)(LAPACK_COL_MAJOR, 'L', trans, m, k, r, a, ld, tau, c,    \
                                          ld, work, lwork);                                        \
        break;
    switch ((int)q->a.dt) {
        CASE(LOP_f32, sormqr, 'T')
        CASE(LOP_f64, dormqr, 'T')
        CASE(LOP_c64, cunmqr, 'C')
        CASE(LOP_c128, zunmqr, 'C')
    }
#undef CASE
    return info == 0 ? LOP_OK : LOP_INTERNAL;
}

static lop_mat rows(const lop_mat *a, int64_t i, int64_t m) {
    lop_mat b = *a;
    b.p = (char *)a->p + i * a->rs * (int64_t)lop_dtype_size(a->dt);
    b.m = m;
    return b;
}

/* Powers of two that bring the columns' largest elements to about 1. */
static void scales(const lop_mat *r, double *scale) {
    for (int64_t j = 0; j < r->n; j++) {
        double top = 0;
        int e = 0;
        for (int64_t i = 0; i < r->m; i++) {
            const double _Complex v = lop_get(r->dt, r->p, i * r->rs + j * r->cs);
            const double big = fmax(fabs(creal(v)), fabs(cimag(v)));
            if (big > top) top = big;
        }
        if (top > 0 && isfinite(top)) frexp(top, &e);
        scale[j] = e > 1000 ? 0x1p-1000 : ldexp(1, -e);
    }
}

static void times(const lop_mat *a, const double *scale) {
    for (int64_t j = 0; j < a->n; j++)
        for (int64_t i = 0; i < a->m; i++) {
            const int64_t at = i * a->rs + j * a->cs;
            lop_set(a->dt, a->p, at, scale[j] * lop_get(a->dt, a->p, at));
        }
}

/* Factors all of R; c becomes Q^H b where there is one. */
static lop_status sweep(qr *q, const lop_mat *r, const lop_mat *b) {
    const int64_t n = r->n;
    lop_status st = LOP_OK;
    for (int64_t from = 0, kept = 0; st == LOP_OK; kept = n) {
        int64_t take = q->high - kept;
        if (take > r->m - from) take = r->m - from;
        for (int64_t j = 0; kept && j < n; j++) /* what is below the triangle are reflectors */
            for (int64_t i = j + 1; i < n; i++) lop_set(q->a.dt, q->a.p, i + j * q->high, 0);
        q->a.m = q->c.m = kept + take;
        const lop_mat part = rows(r, from, take), to = rows(&q->a, kept, take);
        lopk_copy(&to, &part);
        times(&to, q->scale);
        if (b) {
            const lop_mat bpart = rows(b, from, take), bto = rows(&q->c, kept, take);
            lopk_copy(&bto, &bpart);
        }
        from += take;
        st = factor(q, from == r->m);
        if (st == LOP_OK && b) st = rotate(q);
        if (from == r->m) return st;
    }
    return st;
}

/* c's row j is y's row jpvt[j], times its scale: `in` from b, else out to y. */
static void exchange(const qr *q, const lop_mat *y, bool in) {
    for (int64_t j = 0; j < q->a.n; j++) {
        const int64_t to = q->jpvt[j] - 1;
        for (int64_t i = 0; i < y->n; i++) {
            const int64_t at = to * y->rs + i * y->cs, held = j + i * q->high;
            if (in)
                lop_set(y->dt, q->c.p, held, q->scale[to] * lop_get(y->dt, y->p, at));
            else
                lop_set(y->dt, y->p, at, q->scale[to] * lop_get(y->dt, q->c.p, held));
        }
    }
}

lop_status lopk_qr_solve(const lop_mat *y, const lop_mat *r, const lop_mat *b, bool normal,
                         void *work, int64_t *rank) {
    const int64_t m = r->m, n = r->n, k = b->n, wide = most(n, k);
    const bool single = r->dt == LOP_f32 || r->dt == LOP_c64;
    qr q;
    LOP_ASSERT(y->m == n && y->n == k && b->m == (normal ? n : m) && lop_is_blas(r->dt));
    *rank = n;
    if (n == 0 || k == 0) return LOP_OK;
    if (!lop_blas_fits(m) || wide > INT64_MAX / 256 || !lop_blas_fits(256 * wide))
        return LOP_OVERFLOW;
    if (m < n) {
        *rank = m;
        return LOP_SINGULAR;
    }
    lay_out(&q, m, n, k, r->dt, work);
    scales(r, q.scale);
    lop_status st = sweep(&q, r, normal ? NULL : b);
    if (st != LOP_OK) return st;
    const double u = (single ? FLT_EPSILON : DBL_EPSILON) / 2,
                 least = (double)most(n, 10) * u * cabs(lop_get(r->dt, q.a.p, 0));
    for (int64_t j = 0; j < n; j++)
        if (cabs(lop_get(r->dt, q.a.p, j + j * q.high)) <= least) {
            *rank = j;
            return LOP_SINGULAR;
        }
    q.a.m = q.c.m = n;
    if (normal) {
        exchange(&q, b, true);
        st = lopk_trsm(&q.a, false, false, 'C', &q.c);
    }
    if (st == LOP_OK) st = lopk_trsm(&q.a, false, false, 'N', &q.c);
    if (st == LOP_OK) exchange(&q, y, false);
    return st;
}
