/* krylov_lsqr_lsmr.c: LSQR (Paige and Saunders 1982) and LSMR (Fong and Saunders 2011): least
 * squares, also damped, of any shape and rank, by products with A and A^H.
 *
 * Golub and Kahan's bidiagonalisation, a vector u of m and v of n elements; LSQR's residual falls
 * with each step, LSMR's |A^H r| too, so that LSMR may stop early. One product each way an
 * iteration, for all columns; each has its own numbers. Memory: x, u (2 of m), v and 2 to 4 of n.
 * Names of the scalars are SciPy's. */
#include "krylov.h"

#include "kernels/common/k_vectors.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* The numbers of a column, of both methods. */
typedef struct column {
    double alfa, beta, bnorm, before, normr, normar; /* before: the last alfa */
    int istop;
    bool live;
    /* both, each its own */
    double rhobar, rho;
    /* LSQR */
    double phibar, phi, theta, anorm, acond, ddnorm, res2, xnorm, xxnorm, z, cs2, sn2, r1norm;
    /* LSMR */
    double zetabar, alphabar, cbar, sbar, zeta, abc[3];
    double betadd, betad, rhodold, tautildeold, thetatilde, d;
    double norma2, maxrbar, minrbar, norma, conda, normx;
} column;

typedef struct least {
    lop_krylov *s;
    void *u, *au, *v, *av; /* au, av take the products */
    void *w[2];            /* LSQR: w; LSMR: h and h_bar */
    column *col;           /* k */
    double _Complex *c;    /* k */
    double *norms;         /* k */
    int many;              /* of w */
    double unit;           /* u is that times what lies in it: 1 / beta, behind a sweep */
    int64_t live;
} least;

/* c[j] <- `what` of the columns that go on, as `q`; 0 of the others. */
#define COEFS(l, what)                                                                             \
    for (int64_t j = 0; j < (l)->s->k; j++) {                                                      \
        const column *q = &(l)->col[j];                                                            \
        (l)->c[j] = q->live ? (what) : 0;                                                          \
    }

static void scale(const least *l, int64_t n, void *x) {
    lopk_vec_scale(l->s->dt, n, l->s->k, l->c, x, x);
}
/* y <- x + c y */
static void xpby(const least *l, int64_t n, const void *x, void *y) {
    lopk_vec_xpby(l->s->dt, n, l->s->k, x, l->c, y);
}
static void norms(const least *l, int64_t n, const void *x) {
    lop_krylov_norms(l->s, n, x, l->c, l->norms);
}

/* The column stays as it is from here on. */
static void leave(least *l, int64_t j, int istop) {
    const lop_krylov *s = l->s;
    l->col[j].istop = istop;
    l->col[j].live = false;
    l->live--;
    lop_krylov_clear(s, s->m, j, l->u);
    lop_krylov_clear(s, s->m, j, l->au);
    lop_krylov_clear(s, s->n, j, l->v);
    lop_krylov_clear(s, s->n, j, l->av);
    for (int i = 0; i < l->many; i++) lop_krylov_clear(s, s->n, j, l->w[i]);
}

/* v is alfa v. */
static void to_unit(const least *l) {
    const lop_krylov *s = l->s;
    norms(l, s->n, l->v);
    for (int64_t j = 0; j < s->k; j++)
        if (l->col[j].beta > 0) l->col[j].alfa = l->norms[j];
    COEFS(l, q->beta > 0 && q->alfa > 0 ? 1 / q->alfa : 0);
    scale(l, s->n, l->v);
}

/* alfa v = A^H u, or v - beta v; where u is 0 alfa stays as it was. */
static lop_status turn(least *l, bool first) {
    lop_krylov *s = l->s;
    lop_status st = LOP_OK;
    bool any = false;
    COEFS(l, q->beta > 0 ? 1 / q->beta : 0);
    for (int64_t j = 0; j < s->k; j++) any = any || (l->col[j].live && l->col[j].beta > 0);
    if (!any) return st;
    scale(l, s->m, l->u);
    LOP_TRY(s->apply(s->user, LOP_KRYLOV_AH, l->u, first ? l->v : l->av));
    if (!first) {
        COEFS(l, -q->beta);
        xpby(l, s->n, l->av, l->v);
    }
    to_unit(l);
done:
    return st;
}

/* beta u = b - A x, alfa v = A^H u. */
static lop_status begin(least *l) {
    lop_krylov *s = l->s;
    lop_status st = LOP_OK;
    norms(l, s->m, s->b);
    for (int64_t j = 0; j < s->k; j++) l->col[j].bnorm = l->norms[j];
    LOP_TRY(lop_krylov_residual(s, l->u));
    norms(l, s->m, l->u);
    l->live = s->k;
    for (int64_t j = 0; j < s->k; j++) {
        l->col[j].beta = l->norms[j];
        l->col[j].live = true;
    }
    memset(l->v, 0, (size_t)(s->n * s->k) * lop_dtype_size(s->dt));
    LOP_TRY(turn(l, true));
done:
    return st;
}

static bool lost(least *l, int64_t j, double number) {
    if (isfinite(number)) return false;
    leave(l, j, 7);
    if (!l->s->why) {
        l->s->why = "a product is not finite";
        l->s->at = number;
    }
    return true;
}

/* The same of one column in one sweep: u stays as long as it came out, A^H of it is divided. */
static lop_status sweep(least *l) {
    lop_krylov *s = l->s;
    lop_status st = LOP_OK;
    column *one = l->col;
    double beta;
    LOP_TRY(s->both(s->user, one->alfa * l->unit, l->v, l->u, l->av, &beta));
    one->before = one->alfa;
    one->beta = beta;
    l->unit = 1;
    if (lost(l, 0, beta)) return st;
    if (!(beta > 1e-100 && beta < 1e100)) return turn(l, false); /* A^H u might not be a number */
    l->unit = 1 / beta;
    COEFS(l, l->unit);
    scale(l, s->n, l->av);
    COEFS(l, -q->beta);
    xpby(l, s->n, l->av, l->v);
    to_unit(l);
done:
    return st;
}

/* beta u = A v - alfa u, alfa v = A^H u - beta v. */
static lop_status bidiagonalise(least *l) {
    lop_krylov *s = l->s;
    lop_status st = LOP_OK;
    if (s->both) return sweep(l);
    LOP_TRY(s->apply(s->user, LOP_KRYLOV_A, l->v, l->au));
    COEFS(l, -q->alfa);
    xpby(l, s->m, l->au, l->u);
    norms(l, s->m, l->u);
    for (int64_t j = 0; j < s->k; j++) {
        column *q = &l->col[j];
        q->before = q->alfa;
        q->beta = l->norms[j];
        if (q->live) lost(l, j, q->beta);
    }
    LOP_TRY(turn(l, false));
done:
    return st;
}

/* istop from the three tests; 0: go on. ratio: |A| |x| / |b|. */
static int judge(const least *l, int64_t j, double test2, double test3, double ratio) {
    const lop_krylov *s = l->s;
    const double ctol = s->conlim > 0 ? 1 / s->conlim : 0;
    const double normr = l->col[j].normr, test1 = normr / l->col[j].bnorm;
    int istop = 0;
    if (s->iterations >= s->maxiter) istop = 7;
    if (1 + test3 <= 1) istop = 6;
    if (1 + test2 <= 1) istop = 5;
    if (1 + test1 / (1 + ratio) <= 1) istop = 4;
    if (test3 <= ctol) istop = 3;
    if (test2 <= s->atol) istop = 2;
    if (test1 <= s->rtol + s->atol * ratio || (s->goals && normr <= s->goals[j])) istop = 1;
    return istop;
}

/* Notes and tells the largest residual norm. */
static lop_status told(least *l, bool tell) {
    lop_krylov *s = l->s;
    lop_status st = LOP_OK;
    double most = 0;
    for (int64_t j = 0; j < s->k; j++)
        if (!(l->col[j].normr <= most)) most = l->col[j].normr;
    LOP_TRY(lop_krylov_note(s, most));
    if (tell) LOP_TRY(lop_krylov_step(s, most, s->x));
done:
    return st;
}

/* -- LSQR */

/* The rotations of a column's iteration; x and w move after it. */
static void lsqr_rotate(const lop_krylov *s, column *q) {
    double rhobar1 = q->rhobar, psi = 0, cs, sn;
    if (q->beta > 0)
        q->anorm = sqrt(q->anorm * q->anorm + q->before * q->before + q->beta * q->beta +
                        s->damp * s->damp);
    if (s->damp > 0) {
        rhobar1 = hypot(q->rhobar, s->damp);
        psi = s->damp / rhobar1 * q->phibar;
        q->phibar = q->rhobar / rhobar1 * q->phibar;
    }
    lop_krylov_rotation(rhobar1, q->beta, &cs, &sn, &q->rho);
    q->theta = sn * q->alfa;
    q->phi = cs * q->phibar;
    q->rhobar = -cs * q->alfa;
    q->phibar = sn * q->phibar;
    const double tau = sn * q->phi;

    const double delta = q->sn2 * q->rho, gambar = -q->cs2 * q->rho, rhs = q->phi - delta * q->z;
    const double zbar = rhs / gambar, gamma = hypot(gambar, q->theta);
    q->xnorm = sqrt(q->xxnorm + zbar * zbar);
    q->cs2 = gambar / gamma;
    q->sn2 = q->theta / gamma;
    q->z = rhs / gamma;
    q->xxnorm += q->z * q->z;

    q->res2 += psi * psi;
    q->normr = sqrt(q->phibar * q->phibar + q->res2);
    q->normar = q->alfa * fabs(tau);
    q->r1norm = q->normr;
    if (s->damp > 0) {
        const double sq = q->normr * q->normr - s->damp * s->damp * q->xxnorm;
        q->r1norm = sq < 0 ? -sqrt(-sq) : sqrt(sq);
    }
}

/* One iteration's rotations, moves of x and w, and tests. */
static void lsqr_advance(least *l) {
    lop_krylov *s = l->s;
    for (int64_t j = 0; j < s->k; j++)
        if (l->col[j].live) lsqr_rotate(s, &l->col[j]);
    norms(l, s->n, l->w[0]);
    for (int64_t i = 0; s->var && i < s->n; i++) {
        const double d = cabs(lop_get(s->dt, l->w[0], i)) / l->col[0].rho;
        s->var[i] += d * d;
    }
    COEFS(l, q->phi / q->rho);
    lopk_vec_axpy(s->dt, s->n, s->k, l->c, l->w[0], s->x);
    COEFS(l, -q->theta / q->rho);
    xpby(l, s->n, l->v, l->w[0]);
    for (int64_t j = 0; j < s->k; j++) {
        column *q = &l->col[j];
        if (!q->live) continue;
        const double step = l->norms[j] / q->rho;
        q->ddnorm += step * step;
        q->acond = q->anorm * sqrt(q->ddnorm);
        const int istop = judge(l, j, q->normar / (q->anorm * q->normr + DBL_EPSILON),
                                1 / (q->acond + DBL_EPSILON), q->anorm * q->xnorm / q->bnorm);
        if (istop) leave(l, j, istop);
    }
}

static lop_status lsqr_run(least *l) {
    lop_krylov *s = l->s;
    lop_status st = LOP_OK;
    LOP_TRY(begin(l));
    memcpy(l->w[0], l->v, (size_t)(s->n * s->k) * lop_dtype_size(s->dt));
    for (int64_t j = 0; j < s->k; j++) {
        column *q = &l->col[j];
        q->rhobar = q->alfa;
        q->phibar = q->normr = q->r1norm = q->beta;
        q->normar = q->alfa * q->beta;
        q->cs2 = -1;
        if (q->normar == 0)
            leave(l, j, 0);
        else
            lost(l, j, q->normar);
    }
    LOP_TRY(told(l, false));
    while (l->live && s->iterations < s->maxiter) {
        s->iterations++;
        LOP_TRY(bidiagonalise(l));
        if (!l->live) break;
        lsqr_advance(l);
        LOP_TRY(told(l, true));
    }
    const column *q = l->col;
    const double numbers[6] = {q->r1norm, q->normr, q->anorm, q->acond, q->normar, q->xnorm};
    for (int i = 0; s->k && i < 6; i++) s->numbers[i] = numbers[i];
done:
    return st;
}

/* The vectors, of m and of n elements, and one run. */
static lop_status with_vectors(lop_krylov *s, int many, lop_status (*run)(least *)) {
    least l = {.s = s, .many = many, .unit = 1};
    void *vec[2], *small[4], *behind, *longs = NULL, *shorts = NULL;
    const int64_t each = (int64_t)(sizeof(double _Complex) + sizeof(double) + sizeof(column));
    int64_t rows, columns, extra;
    if (!lop_mul_ok(s->m, s->k, &rows) || !lop_mul_ok(s->n, s->k, &columns) ||
        !lop_mul_ok(s->k, each, &extra))
        return LOP_OVERFLOW;
    lop_status st = LOP_OK;
    LOP_TRY(lop_krylov_room(s, 2, rows, extra, vec, &behind, &longs));
    LOP_TRY(lop_krylov_room(s, 2 + many, columns, 0, small, NULL, &shorts));
    memset(behind, 0, (size_t)extra);
    l.c = behind;
    l.col = (column *)(l.c + s->k);
    l.norms = (double *)(l.col + s->k);
    l.u = vec[0];
    l.au = vec[1];
    l.v = small[0];
    l.av = small[1];
    for (int i = 0; i < many; i++) l.w[i] = small[2 + i];
    s->iterations = 0;
    s->info = 0;
    LOP_TRY(run(&l));
    for (int64_t j = 0; j < s->k; j++)
        if (l.col[j].istop > s->info) s->info = l.col[j].istop;
done:
    lop_free(s->ctx, longs);
    lop_free(s->ctx, shorts);
    return st;
}

lop_status lop_krylov_lsqr(lop_krylov *s) { return with_vectors(s, 1, lsqr_run); }

/* -- LSMR */

/* The rotations of a column's iteration; |r| is estimated. */
static void lsmr_rotate(const lop_krylov *s, column *q) {
    double chat, shat, alphahat, c, sn, ctilde, stilde, rhotilde;
    lop_krylov_rotation(q->alphabar, s->damp, &chat, &shat, &alphahat);
    const double rhoold = q->rho, zetaold = q->zeta, rhobarold = q->rhobar;
    lop_krylov_rotation(alphahat, q->beta, &c, &sn, &q->rho);
    const double thetanew = sn * q->alfa;
    q->alphabar = c * q->alfa;
    const double thetabar = q->sbar * q->rho, rhotemp = q->cbar * q->rho;
    lop_krylov_rotation(q->cbar * q->rho, thetanew, &q->cbar, &q->sbar, &q->rhobar);
    q->zeta = q->cbar * q->zetabar;
    q->zetabar = -q->sbar * q->zetabar;
    q->abc[0] = -(thetabar * q->rho / (rhoold * rhobarold));
    q->abc[1] = q->zeta / (q->rho * q->rhobar);
    q->abc[2] = -(thetanew / q->rho);

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

    q->norma2 += q->beta * q->beta;
    q->norma = sqrt(q->norma2);
    q->norma2 += q->alfa * q->alfa;
    q->maxrbar = fmax(q->maxrbar, rhobarold);
    if (s->iterations > 1) q->minrbar = fmin(q->minrbar, rhobarold);
    q->conda = fmax(q->maxrbar, rhotemp) / fmin(q->minrbar, rhotemp);
    q->normar = fabs(q->zetabar);
}

/* x, h and h_bar move; norms: |x|. */
static void lsmr_move(least *l) {
    lop_krylov *s = l->s;
    void *h = l->w[0], *hbar = l->w[1];
    if (s->k == 1) {
        l->norms[0] = sqrt(lopk_vec_lsmr(s->dt, s->n, l->col[0].abc, l->v, h, hbar, s->x));
        return;
    }
    COEFS(l, q->abc[0]);
    xpby(l, s->n, h, hbar);
    COEFS(l, q->abc[1]);
    lopk_vec_axpy(s->dt, s->n, s->k, l->c, hbar, s->x);
    COEFS(l, q->abc[2]);
    xpby(l, s->n, l->v, h);
    norms(l, s->n, s->x);
}

static void lsmr_advance(least *l) {
    lop_krylov *s = l->s;
    for (int64_t j = 0; j < s->k; j++)
        if (l->col[j].live) lsmr_rotate(s, &l->col[j]);
    lsmr_move(l);
    for (int64_t j = 0; j < s->k; j++) {
        column *q = &l->col[j];
        if (!q->live) continue;
        q->normx = l->norms[j];
        const double below = q->norma * q->normr;
        const int istop = judge(l, j, below != 0 ? q->normar / below : INFINITY, 1 / q->conda,
                                q->norma * q->normx / q->bnorm);
        if (istop) leave(l, j, istop);
    }
}

static lop_status lsmr_run(least *l) {
    lop_krylov *s = l->s;
    const size_t bytes = (size_t)(s->n * s->k) * lop_dtype_size(s->dt);
    lop_status st = LOP_OK;
    LOP_TRY(begin(l));
    memcpy(l->w[0], l->v, bytes);
    memset(l->w[1], 0, bytes);
    for (int64_t j = 0; j < s->k; j++) {
        column *q = &l->col[j];
        q->zetabar = q->normar = q->alfa * q->beta;
        q->alphabar = q->norma = q->alfa;
        q->rho = q->rhobar = q->cbar = q->rhodold = q->conda = 1;
        q->betadd = q->normr = q->beta;
        q->norma2 = q->alfa * q->alfa;
        q->minrbar = 1e100;
        if (q->bnorm == 0 && isfinite(q->normar) && q->normar != 0)
            lop_krylov_clear(s, s->n, j, s->x);
        if (q->normar == 0 || q->bnorm == 0)
            leave(l, j, 0);
        else
            lost(l, j, q->normar);
    }
    LOP_TRY(told(l, false));
    while (l->live && s->iterations < s->maxiter) {
        s->iterations++;
        LOP_TRY(bidiagonalise(l));
        if (!l->live) break;
        lsmr_advance(l);
        LOP_TRY(told(l, true));
    }
    const column *q = l->col;
    const double numbers[5] = {q->normr, q->normar, q->norma, q->conda, q->normx};
    for (int i = 0; s->k && i < 5; i++) s->numbers[i] = numbers[i];
done:
    return st;
}

lop_status lop_krylov_lsmr(lop_krylov *s) { return with_vectors(s, 2, lsmr_run); }
