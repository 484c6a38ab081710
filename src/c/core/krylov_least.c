/* krylov_least.c: LSQR (Paige and Saunders 1982) and LSMR (Fong and Saunders 2011): least squares,
 * also damped, of any shape and rank, by products with A and A^H.
 *
 * Golub and Kahan's bidiagonalisation, a vector u of m and v of n elements; LSQR's residual falls
 * with each step, LSMR's |A^H r| too, so that LSMR may stop early. One product each way an
 * iteration. Memory: x, u (2 of m), v and 2 to 4 of n. Names of the scalars are SciPy's. */
#include "krylov.h"

#include "kernels/k_vec.h"

#include <float.h>
#include <math.h>
#include <string.h>

typedef struct least {
    lop_krylov *s;
    void *u, *au, *v, *av; /* au, av take the products */
    void *w, *h, *hbar;
    double alfa, beta, bnorm;
} least;

static void scale(const lop_krylov *s, int64_t n, double a, const void *x, void *y) {
    double _Complex c = a;
    lopk_vec_scale(s->dt, n, 1, &c, x, y);
}
static void axpy(const lop_krylov *s, int64_t n, double a, const void *x, void *y) {
    double _Complex c = a;
    lopk_vec_axpy(s->dt, n, 1, &c, x, y);
}
/* y <- x + b y */
static void xpby(const lop_krylov *s, int64_t n, const void *x, double b, void *y) {
    double _Complex c = b;
    lopk_vec_xpby(s->dt, n, 1, x, &c, y);
}

/* beta u = b - A x, alfa v = A^H u. */
static lop_status begin(least *l) {
    lop_krylov *s = l->s;
    lop_status st = LOP_OK;
    l->bnorm = lopk_vec_norm(s->dt, s->m, s->b);
    LOP_TRY(lop_krylov_residual(s, l->u));
    l->beta = lopk_vec_norm(s->dt, s->m, l->u);
    l->alfa = 0;
    memset(l->v, 0, (size_t)s->n * lop_dtype_size(s->dt));
    if (!(l->beta > 0)) return st;
    scale(s, s->m, 1 / l->beta, l->u, l->u);
    LOP_TRY(s->apply(s->user, LOP_KRYLOV_AH, l->u, l->v));
    l->alfa = lopk_vec_norm(s->dt, s->n, l->v);
    if (l->alfa > 0) scale(s, s->n, 1 / l->alfa, l->v, l->v);
done:
    return st;
}

/* beta u = A v - alfa u, alfa v = A^H u - beta v. */
static lop_status bidiagonalise(least *l) {
    lop_krylov *s = l->s;
    lop_status st = LOP_OK;
    LOP_TRY(s->apply(s->user, LOP_KRYLOV_A, l->v, l->au));
    xpby(s, s->m, l->au, -l->alfa, l->u);
    l->beta = lopk_vec_norm(s->dt, s->m, l->u);
    if (!(l->beta > 0)) return st;
    scale(s, s->m, 1 / l->beta, l->u, l->u);
    LOP_TRY(s->apply(s->user, LOP_KRYLOV_AH, l->u, l->av));
    xpby(s, s->n, l->av, -l->beta, l->v);
    l->alfa = lopk_vec_norm(s->dt, s->n, l->v);
    if (l->alfa > 0) scale(s, s->n, 1 / l->alfa, l->v, l->v);
done:
    return st;
}

/* istop from the three tests; 0: go on. */
static int judge(const lop_krylov *s, double test1, double test2, double test3, double t1,
                 double rtol) {
    const double ctol = s->conlim > 0 ? 1 / s->conlim : 0;
    int istop = 0;
    if (s->iterations >= s->maxiter) istop = 7;
    if (1 + test3 <= 1) istop = 6;
    if (1 + test2 <= 1) istop = 5;
    if (1 + t1 <= 1) istop = 4;
    if (test3 <= ctol) istop = 3;
    if (test2 <= s->atol) istop = 2;
    if (test1 <= rtol) istop = 1;
    return istop;
}

static bool lost(lop_krylov *s, double number) {
    if (isfinite(number)) return false;
    s->why = "a product is not finite";
    s->at = number;
    s->info = 7;
    return true;
}

/* -- LSQR */

typedef struct lsqr {
    least l;
    double rhobar, phibar, anorm, acond, ddnorm, res2, xnorm, xxnorm, z, cs2, sn2;
    double rnorm, r1norm, arnorm;
} lsqr;

/* The rotations of one iteration: x and w move. */
static void lsqr_advance(lsqr *q) {
    least *l = &q->l;
    lop_krylov *s = l->s;
    double rhobar1 = q->rhobar, psi = 0, cs, sn, rho;
    if (s->damp > 0) {
        rhobar1 = hypot(q->rhobar, s->damp);
        psi = s->damp / rhobar1 * q->phibar;
        q->phibar = q->rhobar / rhobar1 * q->phibar;
    }
    lop_krylov_rotation(rhobar1, l->beta, &cs, &sn, &rho);
    const double theta = sn * l->alfa, phi = cs * q->phibar;
    q->rhobar = -cs * l->alfa;
    q->phibar = sn * q->phibar;
    const double tau = sn * phi, wnorm = lopk_vec_norm(s->dt, s->n, l->w);
    for (int64_t i = 0; s->var && i < s->n; i++) {
        const double d = cabs(lop_get(s->dt, l->w, i)) / rho;
        s->var[i] += d * d;
    }
    axpy(s, s->n, phi / rho, l->w, s->x);
    xpby(s, s->n, l->v, -theta / rho, l->w);
    q->ddnorm += (wnorm / rho) * (wnorm / rho);

    const double delta = q->sn2 * rho, gambar = -q->cs2 * rho, rhs = phi - delta * q->z;
    const double zbar = rhs / gambar, gamma = hypot(gambar, theta);
    q->xnorm = sqrt(q->xxnorm + zbar * zbar);
    q->cs2 = gambar / gamma;
    q->sn2 = theta / gamma;
    q->z = rhs / gamma;
    q->xxnorm += q->z * q->z;

    q->acond = q->anorm * sqrt(q->ddnorm);
    q->res2 += psi * psi;
    q->rnorm = sqrt(q->phibar * q->phibar + q->res2);
    q->arnorm = l->alfa * fabs(tau);
    q->r1norm = q->rnorm;
    if (s->damp > 0) {
        const double sq = q->rnorm * q->rnorm - s->damp * s->damp * q->xxnorm;
        q->r1norm = sq < 0 ? -sqrt(-sq) : sqrt(sq);
    }
}

static lop_status lsqr_run(lsqr *q) {
    least *l = &q->l;
    lop_krylov *s = l->s;
    lop_status st = LOP_OK;
    LOP_TRY(begin(l));
    memcpy(l->w, l->v, (size_t)s->n * lop_dtype_size(s->dt));
    q->rhobar = l->alfa;
    q->phibar = q->rnorm = q->r1norm = l->beta;
    q->arnorm = l->alfa * l->beta;
    q->cs2 = -1;
    LOP_TRY(lop_krylov_note(s, q->rnorm));
    if (q->arnorm == 0 || lost(s, q->arnorm)) goto done;
    while (s->iterations < s->maxiter) {
        s->iterations++;
        const double alfa = l->alfa;
        LOP_TRY(bidiagonalise(l));
        if (lost(s, l->beta)) break;
        if (l->beta > 0)
            q->anorm =
                sqrt(q->anorm * q->anorm + alfa * alfa + l->beta * l->beta + s->damp * s->damp);
        lsqr_advance(q);
        const double ratio = q->anorm * q->xnorm / l->bnorm, test1 = q->rnorm / l->bnorm;
        s->info =
            judge(s, test1, q->arnorm / (q->anorm * q->rnorm + DBL_EPSILON),
                  1 / (q->acond + DBL_EPSILON), test1 / (1 + ratio), s->rtol + s->atol * ratio);
        LOP_TRY(lop_krylov_note(s, q->rnorm));
        LOP_TRY(lop_krylov_step(s, q->rnorm, s->x));
        if (s->info) break;
    }
done:
    s->numbers[0] = q->r1norm;
    s->numbers[1] = q->rnorm;
    s->numbers[2] = q->anorm;
    s->numbers[3] = q->acond;
    s->numbers[4] = q->arnorm;
    s->numbers[5] = q->xnorm;
    return st;
}

/* Vectors of m and of n elements. */
static lop_status open_vectors(lop_krylov *s, least *l, int more, void **more_vec,
                               void **long_block, void **short_block) {
    void *vec[2], *small[5];
    *short_block = NULL;
    lop_status st = lop_krylov_room(s, 2, s->m, 0, vec, NULL, long_block);
    if (st == LOP_OK) st = lop_krylov_room(s, 2 + more, s->n, 0, small, NULL, short_block);
    if (st != LOP_OK) return st;
    l->s = s;
    l->u = vec[0];
    l->au = vec[1];
    l->v = small[0];
    l->av = small[1];
    for (int i = 0; i < more; i++) more_vec[i] = small[2 + i];
    s->iterations = 0;
    s->info = 0;
    return st;
}

lop_status lop_krylov_lsqr(lop_krylov *s) {
    lsqr q = {.rnorm = 0};
    void *mb = NULL, *nb = NULL;
    lop_status st = open_vectors(s, &q.l, 1, &q.l.w, &mb, &nb);
    if (st == LOP_OK) st = lsqr_run(&q);
    lop_free(s->ctx, mb);
    lop_free(s->ctx, nb);
    return st;
}

/* -- LSMR */

typedef struct lsmr {
    least l;
    double zetabar, alphabar, rho, rhobar, cbar, sbar, zeta;
    double betadd, betad, rhodold, tautildeold, thetatilde, d;
    double norma2, maxrbar, minrbar, normr, normar, norma, conda, normx, rhotemp, rhobarold;
} lsmr;

/* The rotations of one iteration: x, h and h_bar move; |r| is estimated. */
static void lsmr_advance(lsmr *q) {
    least *l = &q->l;
    lop_krylov *s = l->s;
    double chat, shat, alphahat, c, sn, ctilde, stilde, rhotilde;
    lop_krylov_rotation(q->alphabar, s->damp, &chat, &shat, &alphahat);
    const double rhoold = q->rho, zetaold = q->zeta;
    lop_krylov_rotation(alphahat, l->beta, &c, &sn, &q->rho);
    const double thetanew = sn * l->alfa;
    q->alphabar = c * l->alfa;
    q->rhobarold = q->rhobar;
    const double thetabar = q->sbar * q->rho;
    q->rhotemp = q->cbar * q->rho;
    lop_krylov_rotation(q->cbar * q->rho, thetanew, &q->cbar, &q->sbar, &q->rhobar);
    q->zeta = q->cbar * q->zetabar;
    q->zetabar = -q->sbar * q->zetabar;
    const double abc[3] = {-(thetabar * q->rho / (rhoold * q->rhobarold)),
                           q->zeta / (q->rho * q->rhobar), -(thetanew / q->rho)};
    q->normx = sqrt(lopk_vec_lsmr(s->dt, s->n, abc, l->v, l->h, l->hbar, s->x));

    const double betaacute = chat * q->betadd, betacheck = -shat * q->betadd;
    const double betahat = c * betaacute, thetatildeold = q->thetatilde;
    q->betadd = -sn * betaacute;
    lop_krylov_rotation(q->rhodold, thetabar, &ctilde, &stilde, &rhotilde);
    q->thetatilde = stilde * q->rhobar;
    q->rhodold = ctilde * q->rhobar;
    q->betad = -stilde * q->betad + ctilde * betahat;
    q->tautildeold = (zetaold - thetatildeold * q->tautildeold) / rhotilde;
    const double taud = (q->zeta - q->thetatilde * q->tautildeold) / q->rhodold;
    q->d += betacheck * betacheck;
    q->normr = sqrt(q->d + (q->betad - taud) * (q->betad - taud) + q->betadd * q->betadd);

    q->norma2 += l->beta * l->beta;
    q->norma = sqrt(q->norma2);
    q->norma2 += l->alfa * l->alfa;
    q->maxrbar = fmax(q->maxrbar, q->rhobarold);
    if (s->iterations > 1) q->minrbar = fmin(q->minrbar, q->rhobarold);
    q->conda = fmax(q->maxrbar, q->rhotemp) / fmin(q->minrbar, q->rhotemp);
    q->normar = fabs(q->zetabar);
}

static lop_status lsmr_run(lsmr *q) {
    least *l = &q->l;
    lop_krylov *s = l->s;
    const size_t bytes = (size_t)s->n * lop_dtype_size(s->dt);
    lop_status st = LOP_OK;
    LOP_TRY(begin(l));
    q->zetabar = q->normar = l->alfa * l->beta;
    q->alphabar = l->alfa;
    q->rho = q->rhobar = q->cbar = q->rhodold = q->conda = 1;
    q->betadd = q->normr = l->beta;
    q->norma2 = l->alfa * l->alfa;
    q->norma = l->alfa;
    q->minrbar = 1e100;
    memcpy(l->h, l->v, bytes);
    memset(l->hbar, 0, bytes);
    LOP_TRY(lop_krylov_note(s, q->normr));
    if (q->normar == 0 || lost(s, q->normar)) goto done;
    if (l->bnorm == 0) {
        lop_krylov_zero_x(s);
        goto done;
    }
    while (s->iterations < s->maxiter) {
        s->iterations++;
        LOP_TRY(bidiagonalise(l));
        if (lost(s, l->beta)) break;
        lsmr_advance(q);
        const double ratio = q->norma * q->normx / l->bnorm, test1 = q->normr / l->bnorm;
        const double below = q->norma * q->normr;
        s->info = judge(s, test1, below != 0 ? q->normar / below : INFINITY, 1 / q->conda,
                        test1 / (1 + ratio), s->rtol + s->atol * ratio);
        LOP_TRY(lop_krylov_note(s, q->normr));
        LOP_TRY(lop_krylov_step(s, q->normr, s->x));
        if (s->info) break;
    }
done:
    s->numbers[0] = q->normr;
    s->numbers[1] = q->normar;
    s->numbers[2] = q->norma;
    s->numbers[3] = q->conda;
    s->numbers[4] = q->normx;
    return st;
}

lop_status lop_krylov_lsmr(lop_krylov *s) {
    lsmr q = {.rho = 0};
    void *more[2] = {NULL, NULL}, *mb = NULL, *nb = NULL;
    lop_status st = open_vectors(s, &q.l, 2, more, &mb, &nb);
    q.l.h = more[0];
    q.l.hbar = more[1];
    if (st == LOP_OK) st = lsmr_run(&q);
    lop_free(s->ctx, mb);
    lop_free(s->ctx, nb);
    return st;
}
