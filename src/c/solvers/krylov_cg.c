/* krylov_cg.c: what the iterative solvers share, and conjugate gradients (Hestenes and Stiefel
 * 1952).
 *
 * A block of k columns takes one product with A an iteration, for all; each column has its own
 * coefficients and stops changing when it has converged, or broken down. Memory: x and 3 vectors (4
 * with a preconditioner). */
#include "krylov.h"

#include "kernels/common/k_vectors.h"

#include <float.h>
#include <math.h>
#include <string.h>

lop_status lop_krylov_room(const lop_krylov *s, int count, int64_t length, int64_t extra,
                           void **vec, void **behind, void **block) {
    int64_t bytes, all;
    *block = NULL;
    if (!lop_mul_ok(length, (int64_t)lop_dtype_size(s->dt), &bytes) ||
        !lop_add_ok(bytes, 63, &bytes))
        return LOP_OVERFLOW;
    bytes &= ~(int64_t)63;
    if (!lop_mul_ok(bytes, count, &all) || !lop_add_ok(all, extra, &all) ||
        !lop_add_ok(all, 64, &all))
        return LOP_OVERFLOW;
    *block = lop_alloc(s->ctx, (size_t)all);
    if (!*block) return LOP_NOMEM;
    char *p = (char *)(((uintptr_t)*block + 63) & ~(uintptr_t)63);
    for (int i = 0; i < count; i++) vec[i] = p + i * bytes;
    if (behind) *behind = p + count * bytes;
    return LOP_OK;
}

lop_status lop_krylov_note(lop_krylov *s, double residual) {
    if (s->nhistory == s->room) {
        int64_t room = s->room ? 2 * s->room : 128, bytes;
        if (!lop_mul_ok(room, (int64_t)sizeof(double), &bytes)) return LOP_OVERFLOW;
        double *more = lop_realloc(s->ctx, s->history, (size_t)bytes);
        if (!more) return LOP_NOMEM;
        s->history = more;
        s->room = room;
    }
    s->history[s->nhistory++] = residual;
    return LOP_OK;
}

void lop_krylov_close(lop_krylov *s) {
    lop_free(s->ctx, s->history);
    s->history = NULL;
    s->nhistory = s->room = 0;
}

void lop_krylov_zero_x(lop_krylov *s) {
    memset(s->x, 0, (size_t)(s->n * s->k) * lop_dtype_size(s->dt));
}

void lop_krylov_norms(const lop_krylov *s, int64_t n, const void *x, double _Complex *work,
                      double *out) {
    if (s->k == 1) {
        *out = lopk_vec_norm(s->dt, n, x);
        return;
    }
    lopk_vec_dot(s->dt, n, s->k, x, x, work);
    for (int64_t j = 0; j < s->k; j++) out[j] = sqrt(creal(work[j]));
}

void lop_krylov_clear(const lop_krylov *s, int64_t n, int64_t j, void *x) {
    const size_t size = lop_dtype_size(s->dt);
    for (int64_t i = 0; i < n; i++) memset((char *)x + (size_t)(i * s->k + j) * size, 0, size);
}

double lop_krylov_eps(const lop_krylov *s) {
    return s->dt == LOP_f32 || s->dt == LOP_c64 ? (double)FLT_EPSILON : DBL_EPSILON;
}

static void minus_ones(double _Complex *c, int64_t k) {
    for (int64_t j = 0; j < k; j++) c[j] = -1;
}

lop_status lop_krylov_residual(lop_krylov *s, void *r) {
    lop_status st = LOP_OK;
    if (!s->has_x0) {
        lop_krylov_zero_x(s);
        memcpy(r, s->b, (size_t)(s->m * s->k) * lop_dtype_size(s->dt));
        return st;
    }
    st = s->apply(s->user, LOP_KRYLOV_A, s->x, r);
    if (st != LOP_OK) return st;
    enum { SOME = 16 };
    double _Complex few[SOME], *c = few;
    if (s->k > SOME) c = lop_calloc(s->ctx, (size_t)s->k, sizeof *c);
    if (!c) return LOP_NOMEM;
    minus_ones(c, s->k);
    lopk_vec_xpby(s->dt, s->m, s->k, s->b, c, r);
    if (c != few) lop_free(s->ctx, c);
    return st;
}

void lop_krylov_rotation(double a, double b, double *c, double *s, double *r) {
    const double sa = (a > 0) - (a < 0), sb = (b > 0) - (b < 0);
    if (b == 0) {
        *c = sa;
        *s = 0;
        *r = fabs(a);
    } else if (a == 0) {
        *c = 0;
        *s = sb;
        *r = fabs(b);
    } else if (fabs(b) > fabs(a)) {
        const double tau = a / b;
        *s = sb / sqrt(1 + tau * tau);
        *c = *s * tau;
        *r = b / *s;
    } else {
        const double tau = b / a;
        *c = sa / sqrt(1 + tau * tau);
        *s = *c * tau;
        *r = a / *c;
    }
}

/* -- conjugate gradients */

typedef struct cg {
    lop_krylov *s;
    void *r, *p, *q, *z; /* z is r without a preconditioner */
    double _Complex *rr, *rho, *before, *pq, *alpha, *beta;
    double *tol;
    unsigned char *state; /* of each column */
} cg;
enum { LIVE, DONE, BROKEN };

/* a / b; of real numbers as such: the complex division takes ten times as long. */
static double _Complex ratio(double _Complex a, double _Complex b) {
    return cimag(a) == 0 && cimag(b) == 0 ? CMPLX(creal(a) / creal(b), 0) : a / b;
}

static bool finite(double _Complex v) { return isfinite(creal(v)) && isfinite(cimag(v)); }

/* Its tolerance is of no use any more and gives way to its residual norm. */
static void broken(cg *c, int64_t j, const char *why, double at) {
    const double norm = sqrt(creal(c->rr[j]));
    c->state[j] = BROKEN;
    c->tol[j] = isfinite(norm) ? norm : INFINITY;
    if (!c->s->why) {
        c->s->why = why;
        c->s->at = at;
    }
}

/* Who has converged? Gives how many go on, and the largest residual norm. */
static int64_t judge(cg *c, double *most) {
    int64_t live = 0;
    *most = 0;
    for (int64_t j = 0; j < c->s->k; j++) {
        const double norm = c->state[j] == BROKEN ? c->tol[j] : sqrt(creal(c->rr[j]));
        if (!(norm <= *most)) *most = norm;
        if (c->state[j] != LIVE) continue;
        if (norm < c->tol[j] || norm == 0)
            c->state[j] = DONE;
        else if (!isfinite(norm))
            broken(c, j, "the residual is not finite", norm);
        else
            live++;
    }
    return live;
}

/* alpha = rho / p^H A p; 0 for columns that stand still. Does any move? */
static bool lengths(cg *c) {
    bool any = false;
    for (int64_t j = 0; j < c->s->k; j++) {
        const double _Complex pq = c->pq[j];
        c->alpha[j] = 0;
        if (c->state[j] != LIVE) continue;
        if (!finite(pq) || !finite(c->rho[j]))
            broken(c, j, "a product is not finite", creal(pq));
        else if (pq == 0 || c->rho[j] == 0)
            broken(c, j, pq == 0 ? "p^H A p is 0" : "r^H M r is 0", 0);
        else if (c->s->strict && creal(c->rho[j]) <= 0)
            broken(c, j, "r^H M r is not positive: M is not positive definite", creal(c->rho[j]));
        else if (c->s->strict && !(creal(pq) > 0 && fabs(cimag(pq)) <= 1e-3 * creal(pq)))
            broken(c, j, "p^H A p is not positive: A is not Hermitian positive definite",
                   creal(pq));
        else
            c->alpha[j] = ratio(c->rho[j], pq);
        any = any || c->state[j] == LIVE;
    }
    return any;
}

static lop_status cg_step(cg *c, bool *moved) {
    lop_krylov *s = c->s;
    const int64_t n = s->n, k = s->k;
    lop_status st = LOP_OK;
    if (s->has_m) {
        LOP_TRY(s->apply(s->user, LOP_KRYLOV_M, c->r, c->z));
        lopk_vec_dot(s->dt, n, k, c->r, c->z, c->rho);
    } else {
        memcpy(c->rho, c->rr, (size_t)k * sizeof *c->rho);
    }
    for (int64_t j = 0; j < k; j++) {
        const bool on = c->state[j] == LIVE && s->iterations && c->before[j] != 0;
        c->beta[j] = on ? ratio(c->rho[j], c->before[j]) : 0;
    }
    if (s->iterations)
        lopk_vec_xpby(s->dt, n, k, c->z, c->beta, c->p);
    else
        memcpy(c->p, c->z, (size_t)(n * k) * lop_dtype_size(s->dt));
    LOP_TRY(s->apply(s->user, LOP_KRYLOV_A, c->p, c->q));
    lopk_vec_dot(s->dt, n, k, c->p, c->q, c->pq);
    *moved = lengths(c);
    if (!*moved) return st;
    lopk_vec_step(s->dt, n, k, c->alpha, c->p, c->q, s->x, c->r, c->rr);
    double _Complex *rho = c->rho;
    c->rho = c->before;
    c->before = rho;
    s->iterations++;
done:
    return st;
}

static lop_status cg_run(cg *c) {
    lop_krylov *s = c->s;
    lop_status st = LOP_OK;
    double most = 0;
    lopk_vec_dot(s->dt, s->n, s->k, s->b, s->b, c->rr);
    for (int64_t j = 0; j < s->k; j++) {
        const double tol = s->rtol * sqrt(creal(c->rr[j]));
        c->tol[j] = s->goals ? s->goals[j] : tol > s->atol ? tol : s->atol;
    }
    LOP_TRY(lop_krylov_residual(s, c->r));
    lopk_vec_dot(s->dt, s->n, s->k, c->r, c->r, c->rr);
    s->info = 0;
    for (bool moved = true; moved;) {
        const int64_t live = judge(c, &most);
        LOP_TRY(lop_krylov_note(s, most));
        if (s->iterations) LOP_TRY(lop_krylov_step(s, most, s->x));
        if (s->iterations >= s->maxiter) { /* SciPy does not look again after the last */
            s->info = 1;
            break;
        }
        if (!live) break;
        LOP_TRY(cg_step(c, &moved));
    }
    for (int64_t j = 0; j < s->k; j++)
        if (c->state[j] == BROKEN) s->info = 1;
done:
    return st;
}

lop_status lop_krylov_cg(lop_krylov *s) {
    cg c = {.s = s};
    void *vec[4], *behind, *block;
    const int64_t each = 6 * (int64_t)sizeof(double _Complex) + (int64_t)sizeof(double) + 1;
    int64_t length, extra;
    if (!lop_mul_ok(s->n, s->k, &length) || !lop_mul_ok(s->k, each, &extra)) return LOP_OVERFLOW;
    lop_status st = lop_krylov_room(s, s->has_m ? 4 : 3, length, extra, vec, &behind, &block);
    if (st != LOP_OK) return st;
    memset(behind, 0, (size_t)extra);
    double _Complex **const number[] = {&c.rr, &c.rho, &c.before, &c.pq, &c.alpha, &c.beta};
    for (int i = 0; i < 6; i++) *number[i] = (double _Complex *)behind + i * s->k;
    c.tol = (double *)((double _Complex *)behind + 6 * s->k);
    c.state = (unsigned char *)(c.tol + s->k);
    c.r = vec[0];
    c.p = vec[1];
    c.q = vec[2];
    c.z = s->has_m ? vec[3] : vec[0];
    s->iterations = 0;
    st = cg_run(&c);
    lop_free(s->ctx, block);
    return st;
}
