/* krylov_gmres.c: GMRES with restarts (Saad and Schultz 1986), preconditioned from the left; or
 * flexible (Saad 1993): from the right, by an M that may change from one iteration to the next.
 *
 * Each new vector is made orthogonal to the basis twice by classical Gram-Schmidt ("twice is
 * enough", Giraud, Langou, Rozloznik and van den Eshof 2005): two products of the basis with a
 * vector each, at the bandwidth of memory, and orthogonal to working accuracy. The tolerance of a
 * cycle follows the true residual of the one before, as in SciPy.
 *
 * Each of k columns has a basis, cycles and an end of its own; a round takes one product with A,
 * and one with M, for all: of a column's newest basis vector, or of its x where its cycle is over.
 * Memory of a column: x, restart + 2 vectors (restart + 4 of several columns), restart more where
 * it is flexible; 8 n j flops for step j of a cycle beside the product. */
#include "krylov.h"

#include "kernels/dense/k_blas.h"
#include "kernels/common/k_vectors.h"

#include <math.h>
#include <string.h>

enum { STEPS, LOOKS, ENDED }; /* by a basis vector; at the residual of x; not any more */

typedef struct column {
    char *basis; /* restart + 1 rows of n; row 1 is the residual between cycles */
    char *moves; /* what x moves along: restart rows of n, M times the basis; or the basis */
    /* r of the QR decomposition by columns (restart + 1 each), rotations, right side. */
    double _Complex *h, *sn, *g;
    double *cs;
    double tol, ptol, factor, presid, rnorm;
    int64_t j, cycles; /* steps of this cycle; cycles */
    int state;
    bool breakdown, broken; /* the space is exhausted; there is no going on */
} column;

typedef struct gmres {
    lop_krylov *s;
    column *col;
    void *in, *w, *z;  /* (n, k) each; of one column w alone, where M is on the left */
    void *h;           /* restart + 1 numbers of the dtype */
    const char **from; /* k: where columns of a block come from, or go to; NULL: 0, or nowhere */
    int64_t *by;       /* k: the distance of their elements */
    int64_t restart, row, size; /* row: its bytes; size: an element's */
    bool left, right;           /* where M stands */
} gmres;

static void *row_of(const gmres *m, const column *q, int64_t i) { return q->basis + i * m->row; }

static double norm(const gmres *m, const void *x) { return lopk_vec_norm(m->s->dt, m->s->n, x); }

static void scale(const gmres *m, double a, const void *x, void *y) {
    double _Complex c = a;
    lopk_vec_scale(m->s->dt, m->s->n, 1, &c, x, y);
}

/* -- columns of a block (n, k), and rows of their own */

static void copied(int64_t n, int64_t size, const char *src, int64_t by, char *dst, int64_t step) {
    by *= size;
    step *= size;
    if (size == 4)
        for (int64_t i = 0; i < n; i++) memcpy(dst + i * step, src + i * by, 4);
    else if (size == 8)
        for (int64_t i = 0; i < n; i++) memcpy(dst + i * step, src + i * by, 8);
    else
        for (int64_t i = 0; i < n; i++) memcpy(dst + i * step, src + i * by, 16);
}

enum { TILE = 256 }; /* rows whose lines stay in the cache for all columns */

/* The block of what `from` names, in `block`; of one column itself. */
static const void *gathered(const gmres *m, char *block) {
    const int64_t n = m->s->n, k = m->s->k, size = m->size;
    if (k == 1) return m->from[0];
    for (int64_t i = 0; i < n; i += TILE)
        for (int64_t c = 0; c < k; c++) {
            const int64_t rows = n - i < TILE ? n - i : TILE;
            char *at = block + (i * k + c) * size;
            if (m->from[c])
                copied(rows, size, m->from[c] + i * m->by[c] * size, m->by[c], at, k);
            else
                for (int64_t l = 0; l < rows; l++) memset(at + l * k * size, 0, (size_t)size);
        }
    return block;
}

/* The columns of a block to the rows that `from` names. */
static void scatter(const gmres *m, const char *block) {
    const int64_t n = m->s->n, k = m->s->k, size = m->size;
    for (int64_t i = 0; i < n; i += TILE)
        for (int64_t c = 0; c < k; c++) {
            const int64_t rows = n - i < TILE ? n - i : TILE;
            if (m->from[c])
                copied(rows, size, block + (i * k + c) * size, k,
                       (char *)(uintptr_t)m->from[c] + i * size, 1);
        }
}

/* `from` of each column: `steps` of those that step, `looks` of those that look. */
#define AIM(m, steps, looks)                                                                       \
    for (int64_t c = 0; c < (m)->s->k; c++) {                                                      \
        const column *q = &(m)->col[c];                                                            \
        (m)->by[c] = 1;                                                                            \
        (m)->from[c] = q->state == STEPS   ? (const char *)(steps)                                 \
                       : q->state == LOOKS ? (const char *)(looks)                                 \
                                           : NULL;                                                 \
    }

static const char *column_of(const gmres *m, const void *block, int64_t c) {
    m->by[c] = m->s->k;
    return (const char *)block + c * m->size;
}

/* -- a step of a column's cycle */

/* w <- w - V (V^H w) with the first `count` vectors; h += V^H w. */
static void orthogonalise(gmres *m, const column *q, int64_t count, void *w,
                          double _Complex *into) {
    const lop_krylov *s = m->s;
    const lop_mat v = {q->basis, count, s->n, s->n, 1, s->dt},
                  vt = {q->basis, s->n, count, 1, s->n, s->dt};
    const lop_mat x = {w, s->n, 1, 1, 1, s->dt}, y = {m->h, count, 1, 1, 1, s->dt};
    lopk_gemm(&y, &v, true, &x, false);
    const bool added = lopk_gemm_add(&x, -1, &vt, false, &y);
    for (int64_t i = 0; i < count; i++) {
        const double _Complex c = lop_get(s->dt, m->h, i), minus = -c;
        into[i] += c;
        if (!added) lopk_vec_axpy(s->dt, s->n, 1, &minus, row_of(m, q, i), w);
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

static void broken(gmres *m, column *q, const char *why, double at) {
    q->broken = true;
    if (m->s->why) return;
    m->s->why = why;
    m->s->at = at;
}

/* The next basis vector, which is row j + 1 as yet: its column of R, the residual norm that
 * follows.
 */
static void extend(gmres *m, column *q) {
    const int64_t j = q->j;
    double _Complex *h = q->h + j * (m->restart + 1);
    void *next = row_of(m, q, j + 1);
    const double before = norm(m, next);
    for (int64_t i = 0; i <= j; i++) h[i] = 0;
    orthogonalise(m, q, j + 1, next, h);
    orthogonalise(m, q, j + 1, next, h);
    double below = norm(m, next);
    if (!isfinite(below)) {
        q->breakdown = true;
        broken(m, q, "a product is not finite", below);
        return;
    }
    if (below <= lop_krylov_eps(m->s) * before) {
        below = 0;
        q->breakdown = true;
    } else {
        scale(m, 1 / below, next, next);
    }
    for (int64_t i = 0; i < j; i++) {
        const double _Complex a = h[i], b = h[i + 1];
        h[i] = q->cs[i] * a + q->sn[i] * b;
        h[i + 1] = -conj(q->sn[i]) * a + q->cs[i] * b;
    }
    h[j] = rotation(h[j], below, &q->cs[j], &q->sn[j]);
    q->g[j + 1] = -conj(q->sn[j]) * q->g[j];
    q->g[j] = q->cs[j] * q->g[j];
    q->presid = cabs(q->g[j + 1]);
    q->j++;
}

/* The cycle is over: row j <- V y, or Z y, R y = g, which x moves by. */
static void left_cycle(gmres *m, column *q) {
    const lop_krylov *s = m->s;
    const int64_t count = q->j;
    q->state = LOOKS;
    if (count == 0) return;
    if (q->h[(count - 1) * (m->restart + 1) + count - 1] == 0) q->g[count - 1] = 0;
    for (int64_t k = count - 1; k >= 0; k--) {
        const double _Complex *h = q->h + k * (m->restart + 1);
        if (q->g[k] == 0) continue;
        q->g[k] /= h[k];
        for (int64_t i = 0; i < k; i++) q->g[i] -= q->g[k] * h[i];
    }
    for (int64_t k = 0; k < count; k++) lop_set(s->dt, m->h, k, q->g[k]);
    const lop_mat v = {q->moves, s->n, count, 1, s->n, s->dt}, y = {m->h, count, 1, 1, 1, s->dt};
    const lop_mat t = {row_of(m, q, count), s->n, 1, 1, 1, s->dt};
    lopk_gemm(&t, &v, false, &y, false);
}

/* A cycle begins, with M r in row 0, or r in row 1. */
static void begin(gmres *m, column *q) {
    void *const first = row_of(m, q, 0), *const r = m->left ? first : row_of(m, q, 1);
    const double size = norm(m, r);
    q->breakdown = size == 0 || !isfinite(size);
    if (q->breakdown) {
        broken(m, q, size == 0 ? "M r is 0" : "the residual is not finite", size);
        q->state = ENDED;
        return;
    }
    scale(m, 1 / size, r, first);
    q->g[0] = size;
    q->j = 0;
    q->state = STEPS;
}

/* The residual is in row 1: does it go on? Gives whether x is to be shown. */
static bool judged(gmres *m, column *q, bool initial) {
    const lop_krylov *s = m->s;
    q->rnorm = norm(m, row_of(m, q, 1));
    if (initial) {
        q->presid = q->rnorm;
        if (q->rnorm < q->tol || q->rnorm == 0 || s->maxiter <= 0) q->state = ENDED;
        return false;
    }
    q->cycles++;
    if (q->broken || (s->inner && s->iterations >= s->maxiter)) {
        q->state = ENDED;
        return false;
    }
    if (q->rnorm <= q->tol || q->breakdown || q->cycles >= s->maxiter) {
        q->state = ENDED;
        return true;
    }
    if (q->presid <= q->ptol)
        q->factor = fmax(lop_krylov_eps(s), 0.25 * q->factor);
    else
        q->factor = fmin(1, 1.5 * q->factor);
    q->ptol = q->presid * fmin(q->factor, q->tol / q->rnorm);
    return true;
}

/* -- a round of all columns */

static double largest(const gmres *m, bool look) {
    double most = 0;
    for (int64_t c = 0; c < m->s->k; c++) {
        const double size = look ? m->col[c].rnorm : m->col[c].presid;
        if (!(size <= most)) most = size;
    }
    return most;
}

/* A times the newest vectors to rows j + 1 (or w, where M is to come), A x to rows 1. */
static lop_status products(gmres *m, bool steps) {
    lop_krylov *s = m->s;
    const bool one = s->k == 1;
    lop_status st = LOP_OK;
    if (m->right && steps) {
        AIM(m, row_of(m, q, q->j), NULL);
        const void *v = gathered(m, m->in);
        AIM(m, q->moves + q->j * m->row, NULL);
        void *z = one ? (void *)(uintptr_t)m->from[0] : m->z;
        LOP_TRY(s->apply(s->user, LOP_KRYLOV_M, v, z));
        if (!one) scatter(m, z);
    }
    AIM(m, q->moves + q->j * m->row, column_of(m, s->x, c));
    const void *in = gathered(m, m->in);
    AIM(m, m->left ? NULL : row_of(m, q, q->j + 1), row_of(m, q, 1));
    void *out = one && m->from[0] ? (void *)(uintptr_t)m->from[0] : m->w;
    LOP_TRY(s->apply(s->user, LOP_KRYLOV_A, in, out));
    if (!one) scatter(m, out);
done:
    return st;
}

/* M from the left: w to rows j + 1, r to rows 0. */
static lop_status shaped(gmres *m) {
    lop_krylov *s = m->s;
    lop_status st = LOP_OK;
    bool any = false;
    AIM(m, column_of(m, m->w, c), row_of(m, q, 1));
    for (int64_t c = 0; c < s->k; c++) any = any || m->from[c];
    if (!any) return st;
    const void *in = gathered(m, m->in);
    AIM(m, row_of(m, q, q->j + 1), row_of(m, q, 0));
    void *out = s->k == 1 ? (void *)(uintptr_t)m->from[0] : m->z;
    LOP_TRY(s->apply(s->user, LOP_KRYLOV_M, in, out));
    if (s->k > 1) scatter(m, out);
done:
    return st;
}

/* r <- b - A x of those that look, from A x in rows 1 (or b alone); who goes on? */
static bool looked(gmres *m, bool initial) {
    const lop_krylov *s = m->s;
    const double _Complex minus = -1;
    bool tell = false;
    for (int64_t c = 0; c < s->k; c++) {
        column *q = &m->col[c];
        if (q->state != LOOKS) continue;
        void *b = row_of(m, q, 0), *r = row_of(m, q, 1);
        copied(s->n, m->size, (const char *)s->b + c * m->size, s->k, b, 1);
        if (initial && !s->has_x0)
            memcpy(r, b, (size_t)m->row);
        else
            lopk_vec_xpby(s->dt, s->n, 1, b, &minus, r);
        tell = judged(m, q, initial) || tell;
    }
    return tell;
}

/* x moves along with the columns whose cycles end here, or all. */
static void moved(gmres *m, bool over) {
    lop_krylov *s = m->s;
    bool any = false;
    for (int64_t c = 0; c < s->k; c++) {
        column *q = &m->col[c];
        m->from[c] = NULL;
        m->by[c] = 1;
        if (q->state != STEPS) continue;
        const bool going = q->j < m->restart && !(q->presid <= q->ptol) && !q->breakdown;
        if (!over && (q->j == 0 ? !q->breakdown : going)) continue; /* j is 0: it begins */
        left_cycle(m, q);
        any = any || q->j;
        if (q->j) m->from[c] = row_of(m, q, q->j);
    }
    if (!any) return;
    const double _Complex plus = 1;
    const void *d = gathered(m, m->in);
    lopk_vec_axpy(s->dt, s->k == 1 ? s->n : s->n * s->k, 1, &plus, d, s->x);
}

static lop_status turn(gmres *m, bool initial, bool *on) {
    lop_krylov *s = m->s;
    lop_status st = LOP_OK;
    bool steps = false, counted = false;
    for (int64_t c = 0; c < s->k; c++) steps = steps || m->col[c].state == STEPS;
    if (!initial || s->has_x0) LOP_TRY(products(m, steps));
    const bool tell = looked(m, initial);
    if (initial) LOP_TRY(lop_krylov_note(s, largest(m, true)));
    if (tell) LOP_TRY(lop_krylov_step(s, largest(m, true), s->x));
    if (m->left) LOP_TRY(shaped(m));
    for (int64_t c = 0; c < s->k; c++) {
        column *q = &m->col[c];
        const int64_t j = q->j;
        if (q->state == STEPS) {
            extend(m, q);
            counted = counted || q->j > j;
        } else if (q->state == LOOKS) {
            begin(m, q);
        }
    }
    if (counted) {
        s->iterations++;
        LOP_TRY(lop_krylov_note(s, largest(m, false)));
        LOP_TRY(lop_krylov_step(s, largest(m, false), NULL));
    }
    if (steps) moved(m, s->inner && s->iterations >= s->maxiter);
    *on = false;
    for (int64_t c = 0; c < s->k; c++) *on = *on || m->col[c].state != ENDED;
done:
    return st;
}

/* The tolerances of a column, from the norms of its b and M b; x is 0 where b is, as SciPy's. */
static void start(gmres *m, column *q, int64_t c, const void *mb) {
    lop_krylov *s = m->s;
    void *b = row_of(m, q, 0);
    copied(s->n, m->size, column_of(m, s->b, c), s->k, b, 1);
    const double bnorm = norm(m, b);
    copied(s->n, m->size, column_of(m, mb, c), s->k, b, 1);
    q->tol = s->goals ? s->goals[c] : fmax(s->atol, s->rtol * bnorm);
    q->ptol = norm(m, b) * fmin(1, q->tol / bnorm);
    q->factor = 1;
    q->state = bnorm == 0 ? ENDED : LOOKS;
    if (bnorm == 0) lop_krylov_clear(s, s->n, c, s->x);
}

static lop_status run(gmres *m) {
    lop_krylov *s = m->s;
    lop_status st = LOP_OK;
    bool on = true;
    const void *mb = s->b;
    if (!s->has_x0) lop_krylov_zero_x(s);
    if (m->left) {
        LOP_TRY(s->apply(s->user, LOP_KRYLOV_M, s->b, s->k == 1 ? m->w : m->z));
        mb = s->k == 1 ? m->w : m->z;
    }
    for (int64_t c = 0; c < s->k; c++) start(m, &m->col[c], c, mb);
    LOP_TRY(turn(m, true, &on));
    while (on) LOP_TRY(turn(m, false, &on));
    for (int64_t c = 0; c < s->k; c++) {
        const column *q = &m->col[c];
        if (q->rnorm <= q->tol) continue;
        s->info = 1;
        if (q->breakdown && !s->why)
            s->why = "the Krylov space is exhausted, the residual is not: A or M is singular there";
    }
done:
    return st;
}

/* The memory of the columns: their bases in one block, their numbers in another. */
static lop_status opened(gmres *m, void **bases, void **right, void **numbers) {
    lop_krylov *s = m->s;
    const int64_t rows = m->restart + 1, k = s->k, one = (int64_t)sizeof(double _Complex);
    int64_t length, along, each, extra, all;
    void *first[1], *moves[1] = {NULL};
    lop_status st = LOP_OK;
    /* h is restart columns of rows, then sn and g, and cs, which is half as long */
    if (!lop_mul_ok(rows, s->n, &length) || !lop_mul_ok(length, k, &length) ||
        !lop_mul_ok(m->restart, s->n, &along) || !lop_mul_ok(along, k, &along) ||
        !lop_mul_ok(rows, m->restart + 3, &each) || !lop_mul_ok(each, one, &each) ||
        !lop_add_ok(each, (int64_t)(sizeof(column) + 2 * sizeof(void *)), &extra) ||
        !lop_mul_ok(extra, k, &all))
        return LOP_OVERFLOW;
    LOP_TRY(lop_krylov_room(s, 1, length, 0, first, NULL, bases));
    moves[0] = first[0];
    if (m->right) LOP_TRY(lop_krylov_room(s, 1, along, 0, moves, NULL, right));
    char *at;
    LOP_TRY(lop_krylov_room(s, 1, rows, all, &m->h, (void **)&at, numbers));
    m->col = (column *)(at + k * each);
    memset(m->col, 0, (size_t)(all - k * each));
    m->from = (const char **)(m->col + k);
    m->by = (int64_t *)(m->from + k);
    for (int64_t c = 0; c < k; c++, at += each) {
        column *q = &m->col[c];
        q->basis = (char *)first[0] + c * rows * m->row;
        q->moves = (char *)moves[0] + c * (m->right ? m->restart : rows) * m->row;
        q->h = (double _Complex *)at;
        q->sn = q->h + rows * m->restart;
        q->g = q->sn + rows;
        q->cs = (double *)(q->g + rows);
    }
done:
    return st;
}

lop_status lop_krylov_gmres(lop_krylov *s) {
    gmres m = {.s = s, .restart = s->restart < s->n ? s->restart : s->n};
    if (m.restart < 1) m.restart = 1;
    void *bases = NULL, *right = NULL, *numbers = NULL, *blocks = NULL, *vec[3] = {NULL};
    lop_status st = LOP_OK;
    int64_t length;
    if (!lop_mul_ok(s->n, s->k, &length)) return LOP_OVERFLOW;
    m.size = (int64_t)lop_dtype_size(s->dt);
    m.row = s->n * m.size;
    m.left = s->has_m && !s->flexible;
    m.right = s->has_m && s->flexible;
    s->iterations = 0;
    s->info = 0;
    LOP_TRY(opened(&m, &bases, &right, &numbers));
    const int count = s->k > 1 ? 2 + s->has_m : m.left;
    if (count) LOP_TRY(lop_krylov_room(s, count, length, 0, vec, NULL, &blocks));
    m.w = vec[0];
    m.in = vec[1];
    m.z = vec[2];
    st = run(&m);
done:
    lop_free(s->ctx, bases);
    lop_free(s->ctx, right);
    lop_free(s->ctx, numbers);
    lop_free(s->ctx, blocks);
    return st;
}
