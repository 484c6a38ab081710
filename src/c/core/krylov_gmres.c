/* krylov_gmres.c: GMRES with restarts (Saad and Schultz 1986), preconditioned from the left; or
 * flexible (Saad 1993): from the right, by an M that may change from one iteration to the next.
 *
 * Each new vector is made orthogonal to the basis twice by classical Gram-Schmidt ("twice is
 * enough", Giraud, Langou, Rozloznik and van den Eshof 2005): two products of the basis with a
 * vector each, at the bandwidth of memory, and orthogonal to working accuracy. The tolerance of a
 * cycle follows the true residual of the one before, as in SciPy. Memory: x, restart + 4 vectors,
 * restart more where it is flexible; 8 n j flops for step j of a cycle beside the product. */
#include "krylov.h"

#include "kernels/k_blas.h"
#include "kernels/k_vec.h"

#include <math.h>
#include <string.h>

typedef struct gmres {
    lop_krylov *s;
    char *basis; /* restart + 1 rows of n */
    char *moves; /* what x moves along: restart rows of n, M times the basis; or the basis */
    void *r, *w, *h1, *h2;
    int64_t restart, row; /* bytes of a row */
    /* r of the QR decomposition by columns (restart + 1 each), rotations, right side. */
    double _Complex *h, *sn, *g;
    double *cs;
    double tol, bnorm, ptol, factor, presid;
    bool breakdown, left; /* left: M stands on the left */
} gmres;

static void *row_of(const gmres *m, int64_t i) { return m->basis + i * m->row; }

static double norm(const gmres *m, const void *x) { return lopk_vec_norm(m->s->dt, m->s->n, x); }

static void scale(const gmres *m, double a, const void *x, void *y) {
    double _Complex c = a;
    lopk_vec_scale(m->s->dt, m->s->n, 1, &c, x, y);
}

/* M v, or v where M does not stand on the left. */
static lop_status shaped(gmres *m, const void *v, void *out) {
    lop_krylov *s = m->s;
    if (m->left) return s->apply(s->user, LOP_KRYLOV_M, v, out);
    memcpy(out, v, (size_t)m->row);
    return LOP_OK;
}

/* w <- w - V (V^H w) with the first `count` vectors; h += V^H w. */
static void orthogonalise(gmres *m, int64_t count, void *w, void *h, double _Complex *into) {
    const lop_krylov *s = m->s;
    const lop_mat v = {m->basis, count, s->n, s->n, 1, s->dt},
                  vt = {m->basis, s->n, count, 1, s->n, s->dt};
    const lop_mat x = {w, s->n, 1, 1, 1, s->dt}, y = {h, count, 1, 1, 1, s->dt};
    lopk_gemm(&y, &v, true, &x, false);
    const bool added = lopk_gemm_add(&x, -1, &vt, false, &y);
    for (int64_t i = 0; i < count; i++) {
        const double _Complex c = lop_get(s->dt, h, i), minus = -c;
        into[i] += c;
        if (!added) lopk_vec_axpy(s->dt, s->n, 1, &minus, row_of(m, i), w);
    }
}

/* The rotation that makes (f, g), g >= 0, to (r, 0). */
static double _Complex rotation(double _Complex f, double g, double *c, double _Complex *s) {
    const double size = cabs(f), all = hypot(size, g);
    *c = 1;
    *s = 0;
    if (g == 0) return f;
    if (size == 0) {
        *c = 0;
        *s = 1;
        return g;
    }
    const double _Complex sign = f / size;
    *c = size / all;
    *s = sign * (g / all);
    return sign * all;
}

/* One column: the next basis vector, its column of R, the residual norm that follows. */
static lop_status column(gmres *m, int64_t j) {
    lop_krylov *s = m->s;
    lop_status st = LOP_OK;
    double _Complex *h = m->h + j * (m->restart + 1);
    void *next = row_of(m, j + 1);
    void *along = m->moves + j * m->row;
    if (m->left) {
        LOP_TRY(s->apply(s->user, LOP_KRYLOV_A, row_of(m, j), m->w));
        LOP_TRY(s->apply(s->user, LOP_KRYLOV_M, m->w, next));
    } else {
        if (s->has_m) LOP_TRY(s->apply(s->user, LOP_KRYLOV_M, row_of(m, j), along));
        LOP_TRY(s->apply(s->user, LOP_KRYLOV_A, along, next));
    }
    const double before = norm(m, next);
    for (int64_t i = 0; i <= j; i++) h[i] = 0;
    orthogonalise(m, j + 1, next, m->h1, h);
    orthogonalise(m, j + 1, next, m->h2, h);
    double below = norm(m, next);
    if (!isfinite(below)) {
        s->why = "a product is not finite";
        s->at = below;
        m->breakdown = true;
        return LOP_OK;
    }
    if (below <= lop_krylov_eps(s) * before) {
        below = 0;
        m->breakdown = true;
    } else {
        scale(m, 1 / below, next, next);
    }
    for (int64_t i = 0; i < j; i++) {
        const double _Complex a = h[i], b = h[i + 1];
        h[i] = m->cs[i] * a + m->sn[i] * b;
        h[i + 1] = -conj(m->sn[i]) * a + m->cs[i] * b;
    }
    h[j] = rotation(h[j], below, &m->cs[j], &m->sn[j]);
    m->g[j + 1] = -conj(m->sn[j]) * m->g[j];
    m->g[j] = m->cs[j] * m->g[j];
    m->presid = cabs(m->g[j + 1]);
done:
    return st;
}

/* x += V y, or Z y, R y = g, with `count` columns; a zero on the diagonal gives a zero. */
static void update_x(gmres *m, int64_t count) {
    const lop_krylov *s = m->s;
    if (count > 0 && m->h[(count - 1) * (m->restart + 1) + count - 1] == 0) m->g[count - 1] = 0;
    for (int64_t k = count - 1; k >= 0; k--) {
        const double _Complex *h = m->h + k * (m->restart + 1);
        if (m->g[k] == 0) continue;
        m->g[k] /= h[k];
        for (int64_t i = 0; i < k; i++) m->g[i] -= m->g[k] * h[i];
    }
    for (int64_t k = 0; k < count; k++)
        lopk_vec_axpy(s->dt, s->n, 1, &m->g[k], m->moves + k * m->row, s->x);
}

/* A cycle from the residual in m->r, which is afterwards that of the new x; *rnorm its norm. */
static lop_status cycle(gmres *m, double *rnorm) {
    lop_krylov *s = m->s;
    lop_status st = LOP_OK;
    int64_t j = 0;
    LOP_TRY(shaped(m, m->r, row_of(m, 0)));
    const double first = norm(m, row_of(m, 0));
    if (first == 0 || !isfinite(first)) {
        s->why = first == 0 ? "M r is 0" : "the residual is not finite";
        s->at = first;
        m->breakdown = true;
        return LOP_OK;
    }
    scale(m, 1 / first, row_of(m, 0), row_of(m, 0));
    m->g[0] = first;
    m->breakdown = false;
    for (bool over = false; j < m->restart && !over;) {
        LOP_TRY(column(m, j));
        if (s->why) break;
        j++;
        s->iterations++;
        LOP_TRY(lop_krylov_note(s, m->presid));
        LOP_TRY(lop_krylov_step(s, m->presid, NULL));
        over = m->presid <= m->ptol || m->breakdown || (s->inner && s->iterations >= s->maxiter);
    }
    update_x(m, j);
    s->has_x0 = true;
    LOP_TRY(lop_krylov_residual(s, m->r));
    *rnorm = norm(m, m->r);
done:
    return st;
}

static lop_status run(gmres *m) {
    lop_krylov *s = m->s;
    const double eps = lop_krylov_eps(s);
    lop_status st = LOP_OK;
    m->bnorm = norm(m, s->b);
    m->tol = s->goals ? s->goals[0] : fmax(s->atol, s->rtol * m->bnorm);
    LOP_TRY(shaped(m, s->b, m->w));
    m->factor = 1;
    m->ptol = norm(m, m->w) * fmin(1, m->tol / m->bnorm);
    LOP_TRY(lop_krylov_residual(s, m->r));
    double rnorm = norm(m, m->r);
    LOP_TRY(lop_krylov_note(s, rnorm));
    if (rnorm < m->tol || rnorm == 0) return LOP_OK;
    for (int64_t i = 0; i < s->maxiter; i++) {
        LOP_TRY(cycle(m, &rnorm));
        if (s->why || (s->inner && s->iterations >= s->maxiter)) break;
        LOP_TRY(lop_krylov_step(s, rnorm, s->x));
        if (rnorm <= m->tol || m->breakdown) break;
        if (m->presid <= m->ptol)
            m->factor = fmax(eps, 0.25 * m->factor);
        else
            m->factor = fmin(1, 1.5 * m->factor);
        m->ptol = m->presid * fmin(m->factor, m->tol / rnorm);
    }
    s->info = rnorm <= m->tol ? 0 : 1;
    if (s->info && m->breakdown && !s->why)
        s->why = "the Krylov space is exhausted, the residual is not: A or M is singular there";
done:
    return st;
}

lop_status lop_krylov_gmres(lop_krylov *s) {
    gmres m = {.s = s, .restart = s->restart < s->n ? s->restart : s->n};
    if (m.restart < 1) m.restart = 1;
    int64_t length, along, column_bytes, extra;
    void *block = NULL, *right = NULL, *small = NULL, *numbers = NULL, *vec[2], *basis[1],
         *moves[1], *hs[2];
    lop_status st = LOP_OK;
    m.row = s->n * (int64_t)lop_dtype_size(s->dt);
    const int64_t one = (int64_t)sizeof(double _Complex);
    m.left = s->has_m && !s->flexible;
    if (!lop_mul_ok(m.restart + 1, s->n, &length) || !lop_mul_ok(m.restart, s->n, &along) ||
        !lop_mul_ok(m.restart + 1, m.restart + 4, &column_bytes) ||
        !lop_mul_ok(column_bytes, one, &extra))
        return LOP_OVERFLOW;
    s->iterations = 0;
    s->info = 0;
    LOP_TRY(lop_krylov_room(s, 1, length, 0, basis, NULL, &block));
    moves[0] = basis[0];
    if (s->has_m && s->flexible) LOP_TRY(lop_krylov_room(s, 1, along, 0, moves, NULL, &right));
    LOP_TRY(lop_krylov_room(s, 2, s->n, 0, vec, NULL, &small));
    LOP_TRY(lop_krylov_room(s, 2, m.restart + 1, extra, hs, (void **)&m.h, &numbers));
    m.basis = basis[0];
    m.moves = moves[0];
    m.r = vec[0];
    m.w = vec[1];
    m.h1 = hs[0];
    m.h2 = hs[1];
    m.sn = m.h + (m.restart + 1) * m.restart;
    m.g = m.sn + m.restart + 1;
    m.cs = (double *)(m.g + m.restart + 1);
    st = run(&m);
done:
    lop_free(s->ctx, block);
    lop_free(s->ctx, right);
    lop_free(s->ctx, small);
    lop_free(s->ctx, numbers);
    return st;
}
