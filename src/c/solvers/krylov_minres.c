/* krylov_minres.c: MINRES (Paige and Saunders 1975): A Hermitian, definite or not, also singular.
 *
 * Lanczos's tridiagonal matrix is made upper triangular by rotations; x follows by a recurrence of
 * three vectors. One product with A and one with M an iteration, for all columns; each has its own
 * numbers. Memory: x and 7 vectors (8 with a preconditioner). Complex: the dots are Hermitian, the
 * recurrences' numbers real. */
#include "krylov.h"

#include "kernels/common/k_vectors.h"

#include <float.h>
#include <math.h>
#include <string.h>

typedef struct column {
    double beta1, beta, oldb, alfa, dbar, epsln, oldeps, delta, gamma, phi, root, phibar;
    double rhs1, rhs2, tnorm2, gmax, gmin, cs, sn, tol; /* tol: strict */
    int istop;
    bool live;
} column;

typedef struct minres {
    lop_krylov *s;
    void *v, *t, *r1, *r2, *w, *w1, *w2, *my;
    void *y;            /* M r2: my, or r2 itself */
    double _Complex *c; /* k */
    double _Complex *f; /* 4 k */
    double *norms;      /* k */
    column *col;        /* k */
    int64_t live;
} minres;

/* c[j] <- `what` of the columns that go on, as `q`; 0 of the others. */
#define COEFS(m, what)                                                                             \
    for (int64_t j = 0; j < (m)->s->k; j++) {                                                      \
        const column *q = &(m)->col[j];                                                            \
        (m)->c[j] = q->live ? (what) : 0;                                                          \
    }

static void axpy(const minres *m, const void *x, void *y) {
    lopk_vec_axpy(m->s->dt, m->s->n, m->s->k, m->c, x, y);
}
static void scale(const minres *m, const void *x, void *y) {
    lopk_vec_scale(m->s->dt, m->s->n, m->s->k, m->c, x, y);
}
static void dots(const minres *m, const void *x, const void *y) {
    lopk_vec_dot(m->s->dt, m->s->n, m->s->k, x, y, m->c);
}

static lop_status shaped(minres *m) {
    lop_krylov *s = m->s;
    m->y = s->has_m ? m->my : m->r2;
    return s->has_m ? s->apply(s->user, LOP_KRYLOV_M, m->r2, m->my) : LOP_OK;
}

/* The column stays as it is from here on. */
static void leave(minres *m, int64_t j, int istop) {
    void *const all[] = {m->v, m->t, m->r1, m->r2, m->w, m->w1, m->w2, m->my};
    m->col[j].istop = istop;
    m->col[j].live = false;
    m->live--;
    for (int i = 0; i < (m->s->has_m ? 8 : 7); i++) lop_krylov_clear(m->s, m->s->n, j, all[i]);
}

static void broken(minres *m, int64_t j, int istop, const char *why, double at) {
    leave(m, j, istop);
    if (m->s->why) return;
    m->s->why = why;
    m->s->at = at;
}

/* The next Lanczos vector. */
static lop_status lanczos(minres *m) {
    lop_krylov *s = m->s;
    lop_status st = LOP_OK;
    COEFS(m, 1 / q->beta);
    scale(m, m->y, m->v);
    LOP_TRY(s->apply(s->user, LOP_KRYLOV_A, m->v, m->t));
    if (s->shift != 0) {
        COEFS(m, -s->shift);
        axpy(m, m->v, m->t);
    }
    if (s->iterations > 1) {
        COEFS(m, -q->beta / q->oldb);
        axpy(m, m->r1, m->t);
    }
    dots(m, m->v, m->t);
    for (int64_t j = 0; j < s->k; j++) m->col[j].alfa = creal(m->c[j]);
    COEFS(m, -q->alfa / q->beta);
    axpy(m, m->r2, m->t);
    void *free = m->r1;
    m->r1 = m->r2;
    m->r2 = m->t;
    m->t = free;
    LOP_TRY(shaped(m));
    dots(m, m->r2, m->y);
    for (int64_t j = 0; j < s->k; j++) {
        column *q = &m->col[j];
        const double beta2 = creal(m->c[j]);
        if (!q->live) continue;
        q->oldb = q->beta;
        if (!(beta2 >= 0)) {
            broken(m, j, isnan(beta2) ? 6 : 9,
                   isnan(beta2) ? "a product is not finite"
                                : "r^H M r is negative: A or M is not Hermitian, or M not definite",
                   beta2);
            continue;
        }
        q->beta = sqrt(beta2);
        q->tnorm2 += q->alfa * q->alfa + q->oldb * q->oldb + q->beta * q->beta;
        if (s->iterations == 1 && q->beta / q->beta1 <= 10 * lop_krylov_eps(s)) q->istop = -1;
    }
done:
    return st;
}

/* The next rotation of a column. */
static void rotate(column *q, double eps) {
    const double gbar = q->sn * q->dbar - q->cs * q->alfa;
    q->oldeps = q->epsln;
    q->delta = q->cs * q->dbar + q->sn * q->alfa;
    q->epsln = q->sn * q->beta;
    q->dbar = -q->cs * q->beta;
    q->root = hypot(gbar, q->dbar);
    q->gamma = hypot(gbar, q->beta);
    if (q->gamma < eps) q->gamma = eps;
    q->cs = gbar / q->gamma;
    q->sn = q->beta / q->gamma;
    q->phi = q->cs * q->phibar;
    q->phibar = q->sn * q->phibar;
    q->gmax = fmax(q->gmax, q->gamma);
    q->gmin = fmin(q->gmin, q->gamma);
    const double z = q->rhs1 / q->gamma;
    q->rhs1 = q->rhs2 - q->delta * z;
    q->rhs2 = -q->epsln * z;
}

/* Is it time for a column to stop, with x of that norm? */
static void judge(const lop_krylov *s, column *q, double ynorm) {
    const double eps = lop_krylov_eps(s), anorm = sqrt(q->tnorm2), acond = q->gmax / q->gmin;
    const double rnorm = q->phibar;
    const double test1 = ynorm == 0 || anorm == 0 ? INFINITY : rnorm / (anorm * ynorm);
    const double test2 = anorm == 0 ? INFINITY : q->root / anorm;
    if (q->istop != 0) return;
    if (1 + test2 <= 1) q->istop = 2;
    if (1 + test1 <= 1) q->istop = 1;
    if (s->iterations >= s->maxiter) q->istop = 6;
    if (acond >= 0.1 / eps) q->istop = 4;
    if (anorm * ynorm * eps >= q->beta1) q->istop = 3;
    if (s->strict) {
        if (test2 <= eps) q->istop = 2;
        if (rnorm <= q->tol) q->istop = 1;
        return;
    }
    if (test2 <= s->rtol) q->istop = 2;
    if (test1 <= s->rtol) q->istop = 1;
}

/* Rotates, moves x, and looks whether it is time to stop. */
static void advance(minres *m) {
    lop_krylov *s = m->s;
    const double eps = lop_krylov_eps(s);
    for (int64_t j = 0; j < s->k; j++)
        if (m->col[j].live) rotate(&m->col[j], eps);
    void *w = m->w1; /* its memory takes the new one */
    m->w1 = m->w2;
    m->w2 = m->w;
    m->w = w;
    bool plain = true; /* no sum of squares that is near its ends */
    for (int64_t j = 0; j < s->k; j++) {
        const column *q = &m->col[j];
        m->f[j] = q->live ? 1 / q->gamma : 0;
        m->f[s->k + j] = q->live ? -q->oldeps / q->gamma : 0;
        m->f[2 * s->k + j] = q->live ? -q->delta / q->gamma : 0;
        m->f[3 * s->k + j] = q->live ? q->phi : 0;
    }
    lopk_vec_minres(s->dt, s->n, s->k, m->f, m->v, m->w1, m->w2, m->w, s->x, m->norms);
    for (int64_t j = 0; j < s->k; j++) {
        plain = plain && m->norms[j] > 1e-280 && m->norms[j] < 1e300;
        m->norms[j] = sqrt(m->norms[j]);
    }
    if (!plain) lop_krylov_norms(s, s->n, s->x, m->c, m->norms);
    for (int64_t j = 0; j < s->k; j++) {
        column *q = &m->col[j];
        if (!q->live) continue;
        judge(s, q, m->norms[j]);
        if (q->istop) leave(m, j, q->istop);
    }
}

static double largest(const minres *m) {
    double most = 0;
    for (int64_t j = 0; j < m->s->k; j++)
        if (!(m->col[j].phibar <= most)) most = m->col[j].phibar;
    return most;
}

/* A column begins, from the square of its residual norm, if there is something to do. */
static void begin(minres *m, int64_t j, double beta2, double bnorm) {
    lop_krylov *s = m->s;
    column *q = &m->col[j];
    q->tol = s->goals ? s->goals[j] : fmax(s->atol, s->rtol * bnorm);
    q->phibar = sqrt(fabs(beta2));
    if (beta2 < 0) {
        broken(m, j, 9, "r^H M r is negative: M is not positive definite", beta2);
    } else if (beta2 == 0) {
        leave(m, j, 0);
    } else if (bnorm == 0) { /* SciPy's answer is 0 whatever x0 is */
        lop_krylov_clear(s, s->n, j, s->x);
        leave(m, j, 0);
    } else {
        q->beta = q->beta1 = q->rhs1 = q->phibar;
        q->gmin = lop_krylov_eps(s) == DBL_EPSILON ? DBL_MAX : (double)FLT_MAX;
        q->cs = -1;
    }
}

static lop_status run(minres *m) {
    lop_krylov *s = m->s;
    const size_t bytes = (size_t)(s->n * s->k) * lop_dtype_size(s->dt);
    lop_status st = LOP_OK;
    memset(m->v, 0, bytes);
    memset(m->t, 0, bytes);
    memset(m->w, 0, bytes);
    memset(m->w1, 0, bytes);
    memset(m->w2, 0, bytes);
    LOP_TRY(lop_krylov_residual(s, m->r1));
    m->live = s->k;
    for (int64_t j = 0; j < s->k; j++) {
        m->col[j].live = true;
        m->c[j] = s->shift;
    }
    if (s->has_x0 && s->shift != 0) axpy(m, s->x, m->r1); /* SciPy's 1.17 leaves the shift out */
    memcpy(m->r2, m->r1, bytes);
    LOP_TRY(shaped(m));
    lop_krylov_norms(s, s->n, s->b, m->c, m->norms);
    dots(m, m->r1, m->y);
    for (int64_t j = 0; j < s->k; j++) begin(m, j, creal(m->c[j]), m->norms[j]);
    LOP_TRY(lop_krylov_note(s, largest(m)));
    while (m->live && s->iterations < s->maxiter) {
        s->iterations++;
        LOP_TRY(lanczos(m));
        if (!m->live) break;
        advance(m);
        const double most = largest(m);
        LOP_TRY(lop_krylov_note(s, most));
        LOP_TRY(lop_krylov_step(s, most, s->x));
    }
    for (int64_t j = 0; j < s->k; j++)
        if (j == 0 || m->col[j].istop > s->info) s->info = m->col[j].istop;
    if (s->maxiter <= 0 && s->info != 9) s->info = 0;
done:
    return st;
}

lop_status lop_krylov_minres(lop_krylov *s) {
    minres m = {.s = s};
    void *vec[8], *behind, *block;
    const int64_t each = (int64_t)(5 * sizeof(double _Complex) + sizeof(double) + sizeof(column));
    int64_t length, extra;
    if (!lop_mul_ok(s->n, s->k, &length) || !lop_mul_ok(s->k, each, &extra)) return LOP_OVERFLOW;
    lop_status st = lop_krylov_room(s, s->has_m ? 8 : 7, length, extra, vec, &behind, &block);
    if (st != LOP_OK) return st;
    memset(behind, 0, (size_t)extra);
    m.c = behind;
    m.f = m.c + s->k;
    m.col = (column *)(m.f + 4 * s->k);
    m.norms = (double *)(m.col + s->k);
    void **const to[] = {&m.v, &m.t, &m.r1, &m.r2, &m.w, &m.w1, &m.w2, &m.my};
    for (int i = 0; i < (s->has_m ? 8 : 7); i++) *to[i] = vec[i];
    s->iterations = 0;
    s->info = 0;
    st = run(&m);
    lop_free(s->ctx, block);
    return st;
}
