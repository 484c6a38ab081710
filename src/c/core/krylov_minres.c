/* krylov_minres.c: MINRES (Paige and Saunders 1975): A Hermitian, definite or not, also singular.
 *
 * Lanczos's tridiagonal matrix is made upper triangular by rotations; x follows by a recurrence of
 * three vectors. One product with A and one with M an iteration; memory: x and 7 vectors (8 with a
 * preconditioner). Complex: the dots are Hermitian, the recurrences' numbers real. */
#include "krylov.h"

#include "kernels/k_vec.h"

#include <float.h>
#include <math.h>
#include <string.h>

typedef struct minres {
    lop_krylov *s;
    void *v, *t, *r1, *r2, *w, *w1, *w2, *my;
    void *y; /* M r2: my, or r2 itself */
    double beta1, beta, oldb, alfa, dbar, epsln, phibar, rhs1, rhs2, tnorm2, gmax, gmin, cs, sn;
    double tol; /* strict */
    int istop;
} minres;

static void axpy(const lop_krylov *s, double a, const void *x, void *y) {
    double _Complex c = a;
    lopk_vec_axpy(s->dt, s->n, 1, &c, x, y);
}
static void scale(const lop_krylov *s, double a, const void *x, void *y) {
    double _Complex c = a;
    lopk_vec_scale(s->dt, s->n, 1, &c, x, y);
}
static double dot(const lop_krylov *s, const void *x, const void *y) {
    double _Complex v;
    lopk_vec_dot(s->dt, s->n, 1, x, y, &v);
    return creal(v);
}

static lop_status shaped(minres *m) {
    lop_krylov *s = m->s;
    m->y = s->has_m ? m->my : m->r2;
    return s->has_m ? s->apply(s->user, LOP_KRYLOV_M, m->r2, m->my) : LOP_OK;
}

/* The next Lanczos vector. */
static lop_status lanczos(minres *m) {
    lop_krylov *s = m->s;
    lop_status st = LOP_OK;
    scale(s, 1 / m->beta, m->y, m->v);
    LOP_TRY(s->apply(s->user, LOP_KRYLOV_A, m->v, m->t));
    if (s->shift != 0) axpy(s, -s->shift, m->v, m->t);
    if (s->iterations > 1) axpy(s, -m->beta / m->oldb, m->r1, m->t);
    m->alfa = dot(s, m->v, m->t);
    axpy(s, -m->alfa / m->beta, m->r2, m->t);
    void *free = m->r1;
    m->r1 = m->r2;
    m->r2 = m->t;
    m->t = free;
    LOP_TRY(shaped(m));
    m->oldb = m->beta;
    const double beta2 = dot(s, m->r2, m->y);
    if (!(beta2 >= 0)) {
        s->why = isnan(beta2) ? "a product is not finite"
                              : "r^H M r is negative: A or M is not Hermitian, or M not definite";
        s->at = beta2;
        m->istop = isnan(beta2) ? 6 : 9;
        return LOP_OK;
    }
    m->beta = sqrt(beta2);
    m->tnorm2 += m->alfa * m->alfa + m->oldb * m->oldb + m->beta * m->beta;
    if (s->iterations == 1 && m->beta / m->beta1 <= 10 * lop_krylov_eps(s)) m->istop = -1;
done:
    return st;
}

/* Rotates, moves x, and looks whether it is time to stop. */
static void advance(minres *m) {
    lop_krylov *s = m->s;
    const double eps = lop_krylov_eps(s);
    const double oldeps = m->epsln, delta = m->cs * m->dbar + m->sn * m->alfa;
    const double gbar = m->sn * m->dbar - m->cs * m->alfa;
    m->epsln = m->sn * m->beta;
    m->dbar = -m->cs * m->beta;
    const double root = hypot(gbar, m->dbar);
    double gamma = hypot(gbar, m->beta);
    if (gamma < eps) gamma = eps;
    m->cs = gbar / gamma;
    m->sn = m->beta / gamma;
    const double phi = m->cs * m->phibar;
    m->phibar = m->sn * m->phibar;

    void *w = m->w1; /* its memory takes the new one */
    m->w1 = m->w2;
    m->w2 = m->w;
    m->w = w;
    scale(s, 1 / gamma, m->v, m->w);
    axpy(s, -oldeps / gamma, m->w1, m->w);
    axpy(s, -delta / gamma, m->w2, m->w);
    axpy(s, phi, m->w, s->x);

    m->gmax = fmax(m->gmax, gamma);
    m->gmin = fmin(m->gmin, gamma);
    const double z = m->rhs1 / gamma;
    m->rhs1 = m->rhs2 - delta * z;
    m->rhs2 = -m->epsln * z;
    const double anorm = sqrt(m->tnorm2), ynorm = lopk_vec_norm(s->dt, s->n, s->x);
    const double rnorm = m->phibar, acond = m->gmax / m->gmin;
    const double test1 = ynorm == 0 || anorm == 0 ? INFINITY : rnorm / (anorm * ynorm);
    const double test2 = anorm == 0 ? INFINITY : root / anorm;
    if (m->istop != 0) return;
    if (1 + test2 <= 1) m->istop = 2;
    if (1 + test1 <= 1) m->istop = 1;
    if (s->iterations >= s->maxiter) m->istop = 6;
    if (acond >= 0.1 / eps) m->istop = 4;
    if (anorm * ynorm * eps >= m->beta1) m->istop = 3;
    if (s->strict) {
        if (test2 <= eps) m->istop = 2;
        if (rnorm <= m->tol) m->istop = 1;
        return;
    }
    if (test2 <= s->rtol) m->istop = 2;
    if (test1 <= s->rtol) m->istop = 1;
}

static lop_status run(minres *m) {
    lop_krylov *s = m->s;
    const size_t bytes = (size_t)s->n * lop_dtype_size(s->dt);
    lop_status st = LOP_OK;
    LOP_TRY(lop_krylov_residual(s, m->r1));
    memcpy(m->r2, m->r1, bytes);
    LOP_TRY(shaped(m));
    const double beta2 = dot(s, m->r1, m->y), bnorm = lopk_vec_norm(s->dt, s->n, s->b);
    m->tol = fmax(s->atol, s->rtol * bnorm);
    LOP_TRY(lop_krylov_note(s, sqrt(fabs(beta2))));
    if (beta2 < 0) {
        s->info = 9;
        s->why = "r^H M r is negative: M is not positive definite";
        s->at = beta2;
        return LOP_OK;
    }
    if (beta2 == 0) return LOP_OK;
    if (bnorm == 0) { /* SciPy's answer is 0 whatever x0 is */
        lop_krylov_zero_x(s);
        return LOP_OK;
    }
    m->beta = m->beta1 = m->phibar = m->rhs1 = sqrt(beta2);
    m->gmin = lop_krylov_eps(s) == DBL_EPSILON ? DBL_MAX : (double)FLT_MAX;
    m->cs = -1;
    memset(m->w, 0, bytes);
    memset(m->w2, 0, bytes);
    memset(m->w1, 0, bytes);
    while (s->iterations < s->maxiter) {
        s->iterations++;
        LOP_TRY(lanczos(m));
        if (s->why) break;
        advance(m);
        LOP_TRY(lop_krylov_note(s, m->phibar));
        LOP_TRY(lop_krylov_step(s, m->phibar, s->x));
        if (m->istop != 0) break;
    }
    s->info = m->istop;
    if (s->maxiter <= 0) s->info = 0;
done:
    return st;
}

lop_status lop_krylov_minres(lop_krylov *s) {
    minres m = {.s = s};
    void *vec[8], *block;
    lop_status st = lop_krylov_room(s, s->has_m ? 8 : 7, s->n, 0, vec, NULL, &block);
    if (st != LOP_OK) return st;
    void **const to[] = {&m.v, &m.t, &m.r1, &m.r2, &m.w, &m.w1, &m.w2, &m.my};
    for (int i = 0; i < (s->has_m ? 8 : 7); i++) *to[i] = vec[i];
    s->iterations = 0;
    s->info = 0;
    st = run(&m);
    lop_free(s->ctx, block);
    return st;
}
