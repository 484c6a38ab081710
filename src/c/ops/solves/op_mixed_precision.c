/* op_mixed_precision.c: solves by a factor in single precision, refined to double
 * (pl.config(precision="mixed")).
 *
 * mixed_precision_solve   children a, b, alt: a^-1 b. attr.i[0]: the mode in which a is seen;
 * attr.i[1]: by Cholesky of the upper triangle, the other one is not read.
 *
 * x grows by what the single factor makes of the residual, until in every column
 *     |b - A x| <= 2 u sqrt(n) |A| |x|   (maximum norms)
 * as in LAPACK's dsgesv: a backward error as small as that of LU in double. Where that does
 * not come within 30 steps, a step does not halve the residual, or the single factor breaks down,
 * alt runs: the factor in double. Condition numbers of some 1e6 and less converge.
 *
 * Derived value: the factor as factor.h has it, in single precision, half the memory; then the two
 * norms of A. Cost: n^3 / 3 or 2 n^3 / 3 in single precision once; 4 n^2 k a step, 2 to 4 of them.
 * Source: Langou et al. 2006; Buttari et al. 2007. */
#include "expr/op.h"
#include "ops/shared/factor.h"
#include "kernels/dense/k_blas.h"
#include "kernels/dense/k_by_divisions.h"
#include "kernels/common/kernels.h"

#include <float.h>
#include <math.h>

enum { STEPS = 30 };

static lop_status infer(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0], *b = n->child[1], *alt = n->child[2];
    if (a->core != 2 || b->core != 2 || lop_rows(a) != lop_cols(a) || lop_rows(a) != lop_rows(b) ||
        n->attr.i[0] < 0 || n->attr.i[0] > 3)
        return lop_fail(err, LOP_DIM, "a square matrix and right-hand sides that fit are needed");
    lop_status st = lop_shape_batch(&a->shape, 2, &b->shape, 2, &n->shape, err);
    if (st != LOP_OK) return st;
    n->shape.dim[n->shape.ndim++] = lop_rows(b);
    n->shape.dim[n->shape.ndim++] = lop_cols(b);
    lop_node_promote_inverse(n, a, b);
    if ((n->dtype != LOP_f64 && n->dtype != LOP_c128) || alt->dtype != n->dtype || alt->core != 2 ||
        !lop_shape_equal(&alt->shape, &n->shape))
        return lop_fail(err, LOP_DIM,
                        "mixed_precision_solve takes double precision, and branches that agree");
    return LOP_OK;
}

/* -- the factor */

static size_t norms_at(int64_t n, lop_dtype low) {
    return (lop_factor_bytes(n, low) + ((size_t)n + 1) * sizeof(int64_t) + 7) & ~(size_t)7;
}
static lop_dtype single_of(lop_dtype dt) { return dt == LOP_c128 ? LOP_c64 : LOP_f32; }
/* The largest sum of a line of the storage, then across; |re| + |im| for the modulus. `upper`: of
 * what the upper triangle stands for. */
static void norms(const lop_mat *a, bool upper, double *sums, double *out) {
    const bool turned = a->rs < a->cs;
    const int parts = lop_is_complex(a->dt) ? 2 : 1;
    const int64_t along = turned ? a->rs : a->cs, across = turned ? a->cs : a->rs, n = a->m;
    double most[2] = {0, 0};
    for (int64_t i = 0; i < 2 * n; i++) sums[i] = 0;
    for (int64_t i = 0; i < n; i++) {
        const double *p = (const double *)a->p + i * across * parts;
        const int64_t from = upper && !turned ? i : 0, to = upper && turned ? i + 1 : n;
        double sum = 0;
        for (int64_t j = from; j < to; j++) {
            const double *at = p + j * along * parts;
            const double x = fabs(at[0]) + (parts == 2 ? fabs(at[1]) : 0);
            sum += x;
            sums[j] += upper && j == i ? 0 : x;
        }
        sums[n + i] = sum;
    }
    for (int64_t i = 0; i < n; i++) {
        most[0] = fmax(most[0], sums[n + i] + (upper ? sums[i] : 0));
        most[1] = fmax(most[1], sums[i] + (upper ? sums[n + i] : 0));
    }
    out[0] = turned ? most[1] : most[0];
    out[1] = turned ? most[0] : most[1];
}

static lop_status run_factor(const lop_call *c) {
    const lop_mat *a = c->a[1];
    const bool upper = c->step->attr.i[1] != 0;
    const lop_dtype low = single_of(a->dt);
    lop_mat f = lop_factor_at(c->a[0]->p, a->m, low), t = {a->p, a->n, a->m, a->cs, a->rs, a->dt};
    int64_t *pivots = lop_factor_pivots(&f);
    int64_t info = 0;
    norms(a, upper, c->scratch, (double *)(void *)((char *)f.p + norms_at(a->m, low)));
    lopk_copy(&f, upper ? &t : a);
    if (upper) lopk_conj(&f, &f);
    lop_status st = upper ? lopk_potrf(&f, &info) : lopk_getrf(&f, pivots, &info);
    pivots[a->m] = st == LOP_SINGULAR || (!upper && lopk_lu_is_spoilt(&f));
    return st == LOP_SINGULAR ? LOP_OK : st; /* found when something is divided by it */
}

/* -- the steps */

typedef struct refined {
    lop_mat f, a, x, r, s; /* factor; A as it is seen; -x, the residual; its single copy */
    bool cholesky, conj;   /* conj: of `a` */
    int64_t mode;
    double norm;
} refined;

static double largest(const lop_mat *v, int64_t j) {
    const int parts = lop_is_complex(v->dt) ? 2 : 1;
    const double *p = (const double *)v->p + j * v->cs * parts;
    double most = 0;
    for (int64_t i = 0; i < v->m * parts; i++)
        if (!(fabs(p[i]) <= most)) most = fabs(p[i]); /* NaN stays */
    return parts == 2 ? most * sqrt(2) : most;
}

/* -x <- -x - F^-1 r, column by column of size one. */
static lop_status correct(refined *w) {
    static const char trans[4] = {'N', 'T', 'N', 'C'};
    const int parts = lop_is_complex(w->x.dt) ? 2 : 1;
    for (int64_t j = 0; j < w->x.n; j++) {
        const double scale = largest(&w->r, j), by = scale > 0 ? 1 / scale : 0;
        const double *r = (const double *)w->r.p + j * w->r.cs * parts;
        float *s = (float *)w->s.p + j * w->s.cs * parts;
        if (!(scale <= DBL_MAX) || !(by <= DBL_MAX)) return LOP_SINGULAR;
        for (int64_t i = 0; i < w->r.m * parts; i++) s[i] = (float)(r[i] * by);
    }
    if (w->mode == LOP_C) lopk_conj(&w->s, &w->s);
    lop_status st = w->cholesky
                        ? lopk_potrs(&w->f, &w->s)
                        : lopk_getrs(&w->f, lop_factor_pivots(&w->f), trans[w->mode], &w->s);
    if (st != LOP_OK) return st;
    if (w->mode == LOP_C) lopk_conj(&w->s, &w->s);
    for (int64_t j = 0; j < w->x.n; j++) {
        const double scale = largest(&w->r, j);
        const float *s = (const float *)w->s.p + j * w->s.cs * parts;
        double *x = (double *)w->x.p + j * w->x.cs * parts;
        for (int64_t i = 0; i < w->x.m * parts; i++) x[i] -= scale * (double)s[i];
    }
    return LOP_OK;
}

/* Step by step; the worst column's residual must halve. */
static lop_status refine(refined *w, const lop_mat *b) {
    const double bound = DBL_EPSILON * sqrt((double)w->x.m) * w->norm;
    double before = INFINITY;
    lopk_zero(&w->x);
    lopk_copy(&w->r, b);
    for (int i = 0; i < STEPS; i++) {
        double worst = 0;
        lop_status st = correct(w);
        if (st != LOP_OK) return st;
        lopk_copy(&w->r, b);
        lopk_gemm(&w->r, &w->a, w->conj, &w->x, true);
        for (int64_t j = 0; j < w->x.n; j++) {
            const double r = largest(&w->r, j), allowed = bound * largest(&w->x, j);
            const double over = r <= allowed ? 0 : allowed > 0 ? r / allowed : INFINITY;
            if (!(over <= worst)) worst = over;
        }
        if (worst == 0) return LOP_OK;
        if (!(worst <= before / 2)) return LOP_SINGULAR;
        before = worst;
    }
    return LOP_SINGULAR;
}

/* The whole matrix of which the upper triangle is given. */
static lop_mat mirrored(const lop_mat *a, void *room) {
    const lop_mat whole = {room, a->m, a->n, a->n, 1, a->dt};
    const int64_t size = (int64_t)lop_dtype_size(a->dt);
    for (int64_t i = 0; i < a->m; i++) {
        const int64_t rest = a->n - i;
        const lop_mat row = {(char *)a->p + i * (a->rs + a->cs) * size, rest, 1, a->cs, 1, a->dt},
                      across = {(char *)room + i * (a->n + 1) * size, rest, 1, 1, 1, a->dt},
                      down = {across.p, rest, 1, a->n, 1, a->dt};
        lopk_copy(&across, &row);
        lopk_conj(&down, &row);
        lopk_copy(&across, &row); /* the diagonal as it was */
    }
    return whole;
}

static lop_status run_refined(const lop_call *c) {
    const lop_mat *y = c->a[0], *a = c->a[2], *b = c->a[3];
    const int64_t mode = c->step->attr.i[0], n = y->m, ld = n > 0 ? n : 1;
    const lop_dtype low = single_of(y->dt);
    const size_t part = (size_t)n * (size_t)y->n * lop_dtype_size(y->dt);
    char *room = c->scratch;
    refined w = {.f = lop_factor_at(c->a[1]->p, n, low),
                 .x = {room, n, y->n, 1, ld, y->dt},
                 .r = {room + part, n, y->n, 1, ld, y->dt},
                 .s = {room + 2 * part, n, y->n, 1, ld, low},
                 .cholesky = c->step->attr.i[1] != 0,
                 .mode = mode,
                 .conj = (mode & LOP_C) != 0};
    const double *norm = (const double *)(const void *)((char *)w.f.p + norms_at(n, low));
    w.norm = norm[mode & LOP_T ? 1 : 0];
    if (lop_factor_pivots(&w.f)[n]) return LOP_SINGULAR;
    w.a = w.cholesky     ? mirrored(a, room + 3 * part)
          : mode & LOP_T ? (lop_mat){a->p, a->n, a->m, a->cs, a->rs, a->dt}
                         : *a;
    lop_status st = refine(&w, b);
    if (st != LOP_OK) return st;
    lopk_copy(y, &w.x);
    for (int64_t j = 0; j < y->n; j++)
        for (int64_t i = 0; i < n; i++) {
            double *p = (double *)y->p + (i * y->rs + j * y->cs) * (lop_is_complex(y->dt) ? 2 : 1);
            p[0] = -p[0];
            if (lop_is_complex(y->dt)) p[1] = -p[1];
        }
    return LOP_OK;
}

static lop_status check(lop_emit *e, const lop_node *self, int value, int mask) {
    lop_status st;
    const int64_t n = lop_rows(self);
    const lop_dtype low = single_of(self->dtype);
    const double cube = (double)n * (double)n * (double)n;
    const bool cholesky = self->attr.i[1] != 0;
    int64_t all, k, batch;
    int in[3];
    for (int i = 0; i < 2; i++) {
        in[i + 1] = lop_emit_cast(e, lop_emit_value(e, self->child[i]), self->dtype, &st);
        if (in[i + 1] < 0) return st;
    }
    lop_slot_sizes(e, value, NULL, &k, &batch);
    if (!lop_mul_ok(n, n, &all) || !lop_mul_ok(all, 16, &all) || !lop_mul_ok(n, k, &all) ||
        !lop_mul_ok(all, 64, &all))
        return lop_fail(lop_emit_err(e), LOP_OVERFLOW,
                        "the factor of a %lld x %lld matrix is too large", (long long)n,
                        (long long)n);
    in[0] = lop_emit_derived(e, cholesky ? "potrf-single" : "getrf-single", run_factor,
                             norms_at(n, low) + 2 * sizeof(double), 1, in + 1, &self->attr,
                             2 * (size_t)n * sizeof(double), cholesky ? cube / 6 : cube / 3, &st);
    if (in[0] < 0) return st;
    lop_emit_blocked(e, in[0], n);
    lop_step *s = lop_emit_step(e, "refine", run_refined, value, 3, in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->fail = mask;
    s->flags = LOP_STEP_QUIET;
    s->scratch = 3 * (size_t)n * (size_t)k * lop_dtype_size(self->dtype);
    if (cholesky) s->scratch += (size_t)n * (size_t)n * lop_dtype_size(self->dtype);
    s->flops = 3 * 4.0 * (double)n * (double)n * (double)k * (double)batch;
    return LOP_OK;
}

const lop_op lop_op_mixed_precision_solve = {LOP_NAMED(mixed_precision_solve),
                                             .cls = LOP_ARRAY,
                                             .min = 3,
                                             .max = 3,
                                             .ints = 2,
                                             .infer = infer,
                                             .lower = lop_lower_arms,
                                             .check = check};
