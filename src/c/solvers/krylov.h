/* krylov.h: iterative solvers of A x = b and of least squares, by products with A alone.
 *
 *   lop_krylov (A, M and callbacks as functions; b, x0, tolerances) --lop_krylov_<method>--> x,
 *   a number that says how it ended, residual norms by iteration
 *
 * Steps, tests and numbers are those of SciPy's functions of the same names (1.17), so that theirs
 * can be told by these; what is better is numerical: dots in blocks of doubles, gmres
 * orthogonalises twice, breakdowns end the run before NaNs are made. Not to converge is no error.
 * Residuals are the recursive ones: who calls recomputes the true one.
 *
 * Vectors are contiguous, of dtype f32, f64, c64 or c128. A block of k columns, (n, k) in C order,
 * takes one product an iteration for all: each column has its own coefficients, stops alone, and
 * its vectors are 0 from then on. */
#ifndef LOP_KRYLOV_H
#define LOP_KRYLOV_H

#include "base/buf.h"

enum { LOP_KRYLOV_A, LOP_KRYLOV_AH, LOP_KRYLOV_M };

typedef struct lop_krylov {
    lop_ctx *ctx; /* whose allocator is used */
    lop_dtype dt;
    int64_t m, n, k; /* A is m x n; columns of b and x */
    /* out <- A in, A^H in, M in (LOP_KRYLOV_*), k columns; they do not overlap. Any status but OK
     * ends the run with it. */
    lop_status (*apply)(void *user, int what, const void *in, void *out);
    /* NULL, or for k = 1: u <- A v - alpha u, w <- A^H of that, *norm <- its norm, in one sweep
     * over A; v, u and w do not overlap. */
    lop_status (*both)(void *user, double alpha, const void *v, void *u, void *w, double *norm);
    /* After each iteration; NULL: none. gmres: x is NULL but where a cycle is over. Likewise ends
     * the run. */
    lop_status (*step)(void *user, int64_t iteration, double residual, const void *x);
    void *user;
    bool has_m, has_x0;
    const void *b;
    double *var; /* lsqr: n numbers that |w / rho|^2 is added to; NULL: not wanted */
    void *x;     /* (n, k): x0 on entry where has_x0, the last iterate on exit */
    double rtol, atol, shift, damp, conlim; /* lsqr, lsmr: rtol is their btol */
    /* k numbers: a column ends where |r| is at most its own, whatever rtol and atol say (lsqr,
     * lsmr: or by their tests); NULL: not wanted. */
    const double *goals;
    int64_t maxiter, restart;
    /* strict: cg ends where p^H A p is not positive; minres where |r| <= max(atol, rtol |b|).
     * inner: gmres's maxiter counts inner iterations. flexible: gmres has M on the right, and M may
     * be another one each time. */
    bool strict, inner, flexible;

    int64_t iterations;
    int info;          /* SciPy's; lsqr, lsmr: istop; of several columns the worst */
    const char *why;   /* static: what broke down; NULL */
    double at;         /* the number that did */
    double numbers[8]; /* lsqr: r1norm r2norm anorm acond arnorm xnorm; lsmr: normr normar normA
                          condA normx; of the first column */
    double *history;   /* owned: residual norms, the largest of the columns; lop_krylov_close */
    int64_t nhistory, room;
} lop_krylov;

lop_status lop_krylov_cg(lop_krylov *s) LOP_MUST_CHECK;
lop_status lop_krylov_bicgstab(lop_krylov *s) LOP_MUST_CHECK;
lop_status lop_krylov_minres(lop_krylov *s) LOP_MUST_CHECK;
lop_status lop_krylov_gmres(lop_krylov *s) LOP_MUST_CHECK;
lop_status lop_krylov_lsqr(lop_krylov *s) LOP_MUST_CHECK;
lop_status lop_krylov_lsmr(lop_krylov *s) LOP_MUST_CHECK;
void lop_krylov_close(lop_krylov *s);

/* Between the files of the solvers. */

/* `count` vectors of `length` elements of the dtype, on cache lines, in one block (owned: free
 * vec[0]'s block by lop_free(ctx, *block)), and `extra` bytes behind them. */
lop_status lop_krylov_room(const lop_krylov *s, int count, int64_t length, int64_t extra,
                           void **vec, void **behind, void **block) LOP_MUST_CHECK;
lop_status lop_krylov_note(lop_krylov *s, double residual) LOP_MUST_CHECK; /* into the history */
static inline lop_status lop_krylov_step(lop_krylov *s, double residual, const void *x) {
    return s->step ? s->step(s->user, s->iterations, residual, x) : LOP_OK;
}
/* r <- b - A x; x counts as 0 where there is no x0. */
lop_status lop_krylov_residual(lop_krylov *s, void *r) LOP_MUST_CHECK;
void lop_krylov_zero_x(lop_krylov *s);
/* out[j] <- |x[:, j]|, of (n, k); `work`: k numbers. One column never over- nor underflows early.
 */
void lop_krylov_norms(const lop_krylov *s, int64_t n, const void *x, double _Complex *work,
                      double *out);
void lop_krylov_clear(const lop_krylov *s, int64_t n, int64_t j, void *x); /* x[:, j] <- 0 */
/* c, s, r of the rotation that makes (a, b) to (r, 0): as SciPy's _sym_ortho. */
void lop_krylov_rotation(double a, double b, double *c, double *s, double *r);
double lop_krylov_eps(const lop_krylov *s);

#endif
