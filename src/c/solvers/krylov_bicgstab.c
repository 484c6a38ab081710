/* krylov_bicgstab.c: BiCGStab (van der Vorst 1992): any square A, by short recurrences.
 *
 * Two products with A and two with M an iteration, for all columns; each has its own numbers.
 * Memory: x and 5 vectors (7 with a preconditioner). */
#include "krylov.h"

#include "kernels/common/k_vectors.h"

#include <math.h>
#include <string.h>

typedef struct column {
    double _Complex rho, before, alpha, omega;
    double tol, norm;
    bool live;
} column;

typedef struct stab {
    lop_krylov *s;
    void *r, *shadow, *p, *v, *t, *phat, *shat; /* the hats are p and r without M */
    column *col;                                /* k */
    double _Complex *c, *d;                     /* k */
    double *norms;                              /* k */
} stab;

/* c[j] <- `what` of the columns that go on, as `q`; 0 of the others. */
#define COEFS(b, what)                                                                             \
    for (int64_t j = 0; j < (b)->s->k; j++) {                                                      \
        const column *q = &(b)->col[j];                                                            \
        (b)->c[j] = q->live ? (what) : 0;                                                          \
    }

static void axpy(const stab *b, const void *x, void *y) {
    lopk_vec_axpy(b->s->dt, b->s->n, b->s->k, b->c, x, y);
}

static bool finite(double _Complex v) { return isfinite(creal(v)) && isfinite(cimag(v)); }

/* The column stays as it is from here on. */
static void leave(stab *b, int64_t j) {
    void *const all[] = {b->r, b->shadow, b->p, b->v, b->t, b->phat, b->shat};
    b->col[j].live = false;
    for (int i = 0; i < 7; i++) lop_krylov_clear(b->s, b->s->n, j, all[i]);
}

static void ended(stab *b, int64_t j, int info, const char *why, double at) {
    lop_krylov *s = b->s;
    leave(b, j);
    if (s->why) return;
    s->info = info;
    s->why = why;
    s->at = at;
}

static bool any(const stab *b) {
    for (int64_t j = 0; j < b->s->k; j++)
        if (b->col[j].live) return true;
    return false;
}

/* M x, or x itself. */
static lop_status shaped(lop_krylov *s, const void *x, void *mx) {
    return s->has_m ? s->apply(s->user, LOP_KRYLOV_M, x, mx) : LOP_OK;
}

/* The next direction p. */
static void direction(stab *b) {
    lop_krylov *s = b->s;
    const double small = lop_krylov_eps(s) * lop_krylov_eps(s);
    lopk_vec_dot(s->dt, s->n, s->k, b->shadow, b->r, b->d);
    for (int64_t j = 0; j < s->k; j++) {
        column *q = &b->col[j];
        q->rho = b->d[j];
        if (!q->live) continue;
        if (!(cabs(q->rho) >= small))
            ended(b, j, -10, "the residual is orthogonal to the first one", cabs(q->rho));
        else if (s->iterations && !(cabs(q->omega) >= small))
            ended(b, j, -11, "omega is 0", cabs(q->omega));
    }
    if (!s->iterations) {
        memcpy(b->p, b->r, (size_t)(s->n * s->k) * lop_dtype_size(s->dt));
        return;
    }
    COEFS(b, -q->omega);
    axpy(b, b->v, b->p);
    COEFS(b, (q->rho / q->before) * (q->alpha / q->omega));
    lopk_vec_xpby(s->dt, s->n, s->k, b->r, b->c, b->p);
}

/* x and r move along p; who has converged by that leaves (*some: somebody has). */
static lop_status first_half(stab *b, bool *some) {
    lop_krylov *s = b->s;
    lop_status st = LOP_OK;
    LOP_TRY(shaped(s, b->p, b->phat));
    LOP_TRY(s->apply(s->user, LOP_KRYLOV_A, b->phat, b->v));
    lopk_vec_dot(s->dt, s->n, s->k, b->shadow, b->v, b->d);
    for (int64_t j = 0; j < s->k; j++) {
        column *q = &b->col[j];
        if (!q->live) continue;
        const double _Complex rv = b->d[j];
        if (rv == 0 || !finite(rv))
            ended(b, j, -11,
                  rv == 0 ? "A p is orthogonal to the first residual" : "a product is not finite",
                  creal(rv));
        else
            q->alpha = q->rho / rv;
    }
    COEFS(b, -q->alpha);
    axpy(b, b->v, b->r);
    COEFS(b, q->alpha);
    axpy(b, b->phat, s->x);
    lop_krylov_norms(s, s->n, b->r, b->d, b->norms);
    for (int64_t j = 0; j < s->k; j++) {
        column *q = &b->col[j];
        if (!q->live || !(b->norms[j] < q->tol || b->norms[j] == 0)) continue;
        q->norm = b->norms[j];
        *some = true;
        leave(b, j);
    }
done:
    return st;
}

/* And along the new r. */
static lop_status second_half(stab *b) {
    lop_krylov *s = b->s;
    lop_status st = LOP_OK;
    LOP_TRY(shaped(s, b->r, b->shat));
    LOP_TRY(s->apply(s->user, LOP_KRYLOV_A, b->shat, b->t));
    lopk_vec_dot(s->dt, s->n, s->k, b->t, b->t, b->d);
    lopk_vec_dot(s->dt, s->n, s->k, b->t, b->r, b->c);
    for (int64_t j = 0; j < s->k; j++) {
        column *q = &b->col[j];
        if (!q->live) continue;
        const double _Complex tt = b->d[j];
        if (tt == 0 || !finite(tt)) {
            q->norm = b->norms[j];
            ended(b, j, -11, tt == 0 ? "A s is 0" : "a product is not finite", creal(tt));
        } else {
            q->omega = b->c[j] / tt;
            q->before = q->rho;
        }
    }
    COEFS(b, q->omega);
    axpy(b, b->shat, s->x);
    COEFS(b, -q->omega);
    axpy(b, b->t, b->r);
done:
    return st;
}

/* Who has converged? Gives whether any goes on, and the largest residual norm. */
static bool judge(stab *b, double *most) {
    lop_krylov *s = b->s;
    *most = 0;
    lop_krylov_norms(s, s->n, b->r, b->d, b->norms);
    for (int64_t j = 0; j < s->k; j++) {
        column *q = &b->col[j];
        if (q->live) q->norm = b->norms[j];
        if (!(q->norm <= *most)) *most = q->norm;
        if (!q->live) continue;
        if (q->norm < q->tol || q->norm == 0)
            leave(b, j);
        else if (!isfinite(q->norm))
            ended(b, j, 1, "the residual is not finite", q->norm);
    }
    return any(b);
}

static lop_status run(stab *b) {
    lop_krylov *s = b->s;
    const size_t bytes = (size_t)(s->n * s->k) * lop_dtype_size(s->dt);
    lop_status st = LOP_OK;
    lop_krylov_norms(s, s->n, s->b, b->d, b->norms);
    for (int64_t j = 0; j < s->k; j++) {
        const double tol = s->rtol * b->norms[j];
        b->col[j].tol = s->goals ? s->goals[j] : tol > s->atol ? tol : s->atol;
        b->col[j].live = true;
    }
    LOP_TRY(lop_krylov_residual(s, b->r));
    memcpy(b->shadow, b->r, bytes);
    for (double most;;) {
        const bool on = judge(b, &most);
        LOP_TRY(lop_krylov_note(s, most));
        if (s->iterations) LOP_TRY(lop_krylov_step(s, most, s->x));
        if (s->iterations >= s->maxiter) { /* SciPy does not look again after the last */
            if (!s->info) s->info = 1;
            break;
        }
        if (!on) break;
        direction(b);
        if (!any(b)) break;
        bool some = false;
        LOP_TRY(first_half(b, &some));
        if (!any(b) && !some) break;
        if (!any(b)) {
            most = 0;
            for (int64_t j = 0; j < s->k; j++) most = fmax(most, b->col[j].norm);
            LOP_TRY(lop_krylov_note(s, most));
            s->iterations++;
            break;
        }
        LOP_TRY(second_half(b));
        if (!any(b)) break;
        s->iterations++;
    }
done:
    return st;
}

lop_status lop_krylov_bicgstab(lop_krylov *s) {
    stab b = {.s = s};
    void *vec[7], *behind, *block;
    const int64_t each = (int64_t)(2 * sizeof(double _Complex) + sizeof(column) + sizeof(double));
    int64_t length, extra;
    if (!lop_mul_ok(s->n, s->k, &length) || !lop_mul_ok(s->k, each, &extra)) return LOP_OVERFLOW;
    lop_status st = lop_krylov_room(s, s->has_m ? 7 : 5, length, extra, vec, &behind, &block);
    if (st != LOP_OK) return st;
    memset(behind, 0, (size_t)extra);
    b.c = behind;
    b.d = b.c + s->k;
    b.col = (column *)(b.d + s->k);
    b.norms = (double *)(b.col + s->k);
    b.r = vec[0];
    b.shadow = vec[1];
    b.p = vec[2];
    b.v = vec[3];
    b.t = vec[4];
    b.phat = s->has_m ? vec[5] : b.p;
    b.shat = s->has_m ? vec[6] : b.r;
    s->info = 0;
    s->iterations = 0;
    st = run(&b);
    lop_free(s->ctx, block);
    return st;
}
