/* test_krylov.c: the iterative solvers on small systems of each dtype: the true residual, each
 * allocation made to fail, a product that fails at each place, a step that asks to stop,
 * breakdowns and NaN. */
#include "solvers/krylov.h"
#include "kernels/common/k_vectors.h"
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 13, K = 3 };
typedef lop_status (*method)(lop_krylov *);

static const struct {
    const char *name;
    method run;
    bool least;
} methods[] = {{"cg", lop_krylov_cg, false},         {"bicgstab", lop_krylov_bicgstab, false},
               {"minres", lop_krylov_minres, false}, {"gmres", lop_krylov_gmres, false},
               {"lsqr", lop_krylov_lsqr, true},      {"lsmr", lop_krylov_lsmr, true}};

typedef struct problem {
    lop_dtype dt;
    int64_t m, n, k;
    double _Complex a[2 * N][N]; /* m x n */
    int64_t calls, fail_at, steps, stop_at;
} problem;

static lop_status apply(void *user, int what, const void *in, void *out) {
    problem *p = user;
    if (p->calls++ == p->fail_at) return LOP_DOMAIN;
    const bool adjoint = what == LOP_KRYLOV_AH, inverse = what == LOP_KRYLOV_M;
    const int64_t rows = adjoint ? p->n : p->m, cols = adjoint ? p->m : p->n;
    for (int64_t j = 0; j < p->k; j++)
        for (int64_t i = 0; i < rows; i++) {
            double _Complex sum = 0;
            for (int64_t l = 0; l < cols && !inverse; l++)
                sum += (adjoint ? conj(p->a[l][i]) : p->a[i][l]) * lop_get(p->dt, in, l * p->k + j);
            if (inverse) sum = lop_get(p->dt, in, i * p->k + j) / p->a[i][i];
            lop_set(p->dt, out, i * p->k + j, sum);
        }
    return LOP_OK;
}

static lop_status step(void *user, int64_t iteration, double residual, const void *x) {
    problem *p = user;
    t_check(iteration > 0 && residual >= 0, "step %lld with %g", (long long)iteration, residual);
    (void)x;
    return p->steps++ == p->stop_at ? LOP_CALLBACK : LOP_OK;
}

/* Hermitian positive definite, or m x n of full rank. */
static void fill(problem *p, world *w, lop_dtype dt, int64_t m, int64_t k) {
    *p = (problem){.dt = dt, .m = m, .n = N, .k = k, .fail_at = -1, .stop_at = -1};
    for (int i = 0; i < m; i++)
        for (int j = 0; j < N; j++) {
            double re = lop_rng_normal(world_rng(w)) / 4, im = lop_rng_normal(world_rng(w)) / 4;
            p->a[i][j] = lop_is_complex(dt) ? CMPLX(re, im) : re;
        }
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < i && m == N; j++) p->a[i][j] = conj(p->a[j][i]);
        p->a[i][i] = 4 + i;
    }
}

static lop_krylov solver(problem *p, world *w, const void *b, void *x) {
    return (lop_krylov){.ctx = &w->ctx,
                        .dt = p->dt,
                        .m = p->m,
                        .n = p->n,
                        .k = p->k,
                        .apply = apply,
                        .step = step,
                        .user = p,
                        .b = b,
                        .x = x,
                        .rtol = 1e-5,
                        .atol = 1e-8,
                        .maxiter = 100,
                        .restart = 5};
}

/* The largest of |b - A x| over |b|, of least squares |A^H (b - A x)|. */
static double residual(problem *p, const void *b, const void *x, bool least) {
    double worst = 0;
    for (int64_t j = 0; j < p->k; j++) {
        double _Complex r[2 * N];
        double sum = 0, of = 0;
        for (int64_t i = 0; i < p->m; i++) {
            r[i] = lop_get(p->dt, b, i * p->k + j);
            of += creal(r[i] * conj(r[i]));
            for (int64_t l = 0; l < p->n; l++) r[i] -= p->a[i][l] * lop_get(p->dt, x, l * p->k + j);
        }
        for (int64_t l = 0; l < (least ? p->n : p->m); l++) {
            double _Complex v = least ? 0 : r[l];
            for (int64_t i = 0; least && i < p->m; i++) v += conj(p->a[i][l]) * r[i];
            sum += creal(v * conj(v));
        }
        worst = fmax(worst, sqrt(sum / (of + 1e-300)));
    }
    return worst;
}

/* lop_krylov's both, of one column. */
static lop_status both(void *user, double alpha, const void *v, void *u, void *w, double *norm) {
    problem *p = user;
    double _Complex au[2 * N];
    double sum = 0;
    if (p->calls++ == p->fail_at) return LOP_DOMAIN;
    for (int64_t i = 0; i < p->m; i++) {
        au[i] = alpha != 0 ? -alpha * lop_get(p->dt, u, i) : 0;
        for (int64_t l = 0; l < p->n; l++) au[i] += p->a[i][l] * lop_get(p->dt, v, l);
        lop_set(p->dt, u, i, au[i]);
        sum += creal(au[i] * conj(au[i]));
    }
    for (int64_t l = 0; l < p->n; l++) {
        double _Complex t = 0;
        for (int64_t i = 0; i < p->m; i++) t += conj(p->a[i][l]) * au[i];
        lop_set(p->dt, w, l, t);
    }
    *norm = sqrt(sum);
    return LOP_OK;
}

/* One sweep for both products: what two products give, also where A^H u would not be a number. */
static void in_one_sweep(world *w, int which, lop_dtype dt, double size) {
    static problem p;
    _Alignas(16) unsigned char b[2 * N * 16], x[N * 16], y[N * 16];
    fill(&p, w, dt, 2 * N, 1);
    for (int64_t i = 0; i < 2 * N; i++) {
        lop_set(dt, b, i, size * lop_rng_normal(world_rng(w)));
        for (int64_t l = 0; l < N; l++) p.a[i][l] *= size;
    }
    int64_t iterations[2];
    for (int k = 0; k < 2; k++) {
        lop_krylov s = solver(&p, w, b, k ? y : x);
        s.rtol = s.atol = 1e-9;
        if (k) s.both = both;
        t_check(methods[which].run(&s) == LOP_OK && !s.why, "%s of size %g", methods[which].name,
                size);
        iterations[k] = s.iterations;
        lop_krylov_close(&s);
    }
    t_check(llabs(iterations[0] - iterations[1]) < 2, "%s of size %g: iterations",
            methods[which].name, size);
    double off = 0, of = 0;
    for (int64_t l = 0; l < N; l++) {
        off = fmax(off, cabs(lop_get(dt, x, l) - lop_get(dt, y, l)));
        of = fmax(of, cabs(lop_get(dt, x, l)));
    }
    t_check(off <= 1e-7 * of, "%s of size %g: %g of %g", methods[which].name, size, off, of);
    lop_krylov s = solver(&p, w, b, x);
    s.both = both;
    p.calls = 0;
    p.fail_at = 1;
    t_check(methods[which].run(&s) == LOP_DOMAIN, "%s: a sweep that fails", methods[which].name);
    lop_krylov_close(&s);
}

static void one(world *w, int which, lop_dtype dt, int64_t m, int64_t k, bool has_m,
                bool flexible) {
    static problem p;
    _Alignas(16) unsigned char b[2 * N * K * 16], x[N * K * 16];
    fill(&p, w, dt, m, k);
    for (int64_t i = 0; i < m * k; i++) lop_set(dt, b, i, lop_rng_normal(world_rng(w)));
    const char *name = methods[which].name;
    for (int64_t at = 0;; at++) { /* each allocation fails in turn, then none */
        lop_krylov s = solver(&p, w, b, x);
        s.has_m = has_m;
        s.flexible = flexible;
        w->memory.count = 0;
        w->memory.fail_at = at;
        lop_status st = methods[which].run(&s);
        const bool all = w->memory.count <= at;
        w->memory.fail_at = -1;
        t_check(st == (all ? LOP_OK : LOP_NOMEM), "%s: status %d", name, st);
        if (all) {
            const double r = residual(&p, b, x, m != N);
            t_check(r < 2e-4, "%s %s: residual %g", name, lop_dtype_name(dt), r);
            t_check(s.iterations > 0 && s.nhistory >= 2 && !s.why, "%s: no record", name);
            t_check(methods[which].least ? s.info > 0 && s.info < 7 : s.info <= 2 && s.info >= 0,
                    "%s: info %d", name, s.info);
        }
        lop_krylov_close(&s);
        if (all) break;
    }
    const int64_t calls = p.calls;
    t_check(calls > 0, "%s: no products", name);
    for (int64_t at = 0; at < 12; at++) {
        lop_krylov s = solver(&p, w, b, x);
        s.has_m = has_m;
        s.flexible = flexible;
        p.calls = p.steps = 0;
        p.fail_at = at % 2 ? at / 2 : -1;
        p.stop_at = at % 2 ? -1 : at / 2;
        lop_status st = methods[which].run(&s);
        const bool ended = at % 2 ? p.calls <= p.fail_at : p.steps <= p.stop_at;
        t_check(st == (ended    ? LOP_OK
                       : at % 2 ? LOP_DOMAIN
                                : LOP_CALLBACK),
                "%s: status %d", name, st);
        lop_krylov_close(&s);
    }
}

static void breakdowns(world *w, int which, double _Complex entry) {
    static problem p;
    double b[N], x[N];
    fill(&p, w, LOP_f64, N, 1);
    for (int i = 0; i < N; i++) {
        b[i] = 1;
        for (int j = 0; j < N; j++) p.a[i][j] = entry;
    }
    lop_krylov s = solver(&p, w, b, x);
    t_check(methods[which].run(&s) == LOP_OK, "%s: a breakdown is no error", methods[which].name);
    for (int i = 0; i < N; i++) t_check(isfinite(x[i]), "%s: x is not finite", methods[which].name);
    t_check(!isnan(creal(entry)) || s.why, "%s: NaN is not told", methods[which].name);
    lop_krylov_close(&s);
}

/* The vectors' loops, line and tiles, against sums in order. */
static void vectors(world *w, lop_dtype dt, int64_t n, int64_t k) {
    enum { ROOM = 40 * 37 };
    static _Alignas(16) unsigned char x[ROOM * 16], y[ROOM * 16];
    double _Complex got[37], a[37];
    for (int64_t i = 0; i < n * k; i++) {
        lop_set(dt, x, i, CMPLX(lop_rng_normal(world_rng(w)), lop_rng_normal(world_rng(w))));
        lop_set(dt, y, i, CMPLX(lop_rng_normal(world_rng(w)), lop_rng_normal(world_rng(w))));
    }
    for (int64_t j = 0; j < k; j++) a[j] = CMPLX(0.5 + (double)j, lop_is_complex(dt) ? 1 : 0);
    lopk_vec_dot(dt, n, k, x, y, got);
    for (int64_t j = 0; j < k; j++) {
        double _Complex want = 0;
        for (int64_t i = 0; i < n; i++)
            want += conj(lop_get(dt, x, i * k + j)) * lop_get(dt, y, i * k + j);
        t_check(cabs(got[j] - want) <= 1e-12 * (double)(n + 1), "dot of column %lld", (long long)j);
    }
    const double _Complex first = n ? lop_get(dt, y, 0) : 0, of = n ? lop_get(dt, x, 0) : 0;
    lopk_vec_axpy(dt, n, k, a, x, y);
    lopk_vec_scale(dt, n, k, a, y, y);
    lopk_vec_xpby(dt, n, k, x, a, y);
    const double _Complex want = of + a[0] * (a[0] * (first + a[0] * of));
    t_check(n == 0 || cabs(lop_get(dt, y, 0) - want) <= 1e-5 * (1 + cabs(want)), "updates");
}

int main(void) {
    static const lop_dtype dts[] = {LOP_f32, LOP_f64, LOP_c64, LOP_c128};
    world w;
    world_open(&w, 7);
    for (int t = 0; t < 4; t++)
        for (int i = 0; i < 6; i++) {
            one(&w, i, dts[t], N, 1, false, false);
            if (!methods[i].least) one(&w, i, dts[t], N, 1, true, false);
            if (methods[i].least) one(&w, i, dts[t], 2 * N, 1, false, false);
            if (methods[i].run == lop_krylov_gmres) {
                one(&w, i, dts[t], N, 1, true, true);
                one(&w, i, dts[t], N, 1, false, true);
                one(&w, i, dts[t], N, K, true, true);
            }
            one(&w, i, dts[t], methods[i].least ? 2 * N : N, K, false, false);
            if (!methods[i].least) one(&w, i, dts[t], N, K, true, false);
        }
    for (int i = 4; i < 6; i++)
        for (int t = 1; t < 4; t += 2)
            for (int e = -120; e <= 120; e += 120) in_one_sweep(&w, i, dts[t], pow(10, e));
    t_group("systems");
    for (int i = 0; i < 6; i++) {
        breakdowns(&w, i, 0);
        breakdowns(&w, i, 1);
        breakdowns(&w, i, NAN);
    }
    t_group("breakdowns");
    for (int t = 0; t < 4; t++)
        for (int64_t k = 1; k <= 37; k += k < 3 ? 1 : 17)
            for (int64_t n = 0; n < 40; n += 13) vectors(&w, dts[t], n, k);
    t_group("vectors");
    const double huge[2] = {3e200, 4e200}, tiny[2] = {3e-200, 4e-200};
    t_check(fabs(lopk_vec_norm(LOP_f64, 2, huge) / 5e200 - 1) < 1e-14, "norm overflows");
    t_check(fabs(lopk_vec_norm(LOP_f64, 2, tiny) / 5e-200 - 1) < 1e-14, "norm underflows");
    world_close(&w, "test_krylov");
    return t_end();
}
