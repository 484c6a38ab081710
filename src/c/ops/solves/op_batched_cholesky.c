/* op_batched_cholesky.c: Cholesky factors of many small matrices in one step: solves and
 * determinants of matrices assumed positive definite (factor.h; kernels/dense/k_batched_cholesky.c
 * does the work). One alone goes the same way, so that it has the bits it has in a batch.
 *
 * Derived value of the last batch dimension's P matrices: one stretch for every LOPK_STACK of them,
 * the factors, then a byte whose bits say which have none. Where one has none, LU of that matrix.
 * A matrix alone that has none is kept behind its mark, so that what made it, a Gram matrix of many
 * rows maybe, need not run again where the factor is at hand.
 * Arrays: cholesky_batch puts p matrices of one shape behind each other, as a batch. */
#include "ops/shared/factor.h"
#include "kernels/dense/k_blas.h"
#include "kernels/dense/k_by_divisions.h"
#include "kernels/dense/k_batched_cholesky.h"
#include "kernels/common/kernels.h"

#include <math.h>

bool lop_stack_fits(int64_t n, lop_dtype dt) { return lopk_stack_takes(n, dt); }

static int64_t group_bytes(int64_t n, lop_dtype dt) { return lopk_stack_bytes(n, dt) + 64; }
static int used_of(const lop_call *c, int64_t from) {
    const int64_t left = c->more + 1 - from;
    return left < LOPK_STACK ? (int)left : LOPK_STACK;
}
/* The elements from `from` on that are to be run, as bits. */
static unsigned wanted_of(const lop_call *c, int64_t from, int used) {
    unsigned all = 0;
    for (int l = 0; l < used; l++) all |= (unsigned)!lop_call_leaves(c, from + l) << l;
    return all;
}
/* Element `e` of an argument with that stride. */
static lop_mat moved(const lop_mat *a, int64_t e, int64_t step) {
    lop_mat m = *a;
    m.p = (char *)a->p + e * step * (int64_t)lop_dtype_size(a->dt);
    return m;
}
/* The factors of the group that begins at `from`, and their marks; of a lone matrix (its step is 0)
 * always the same: all lanes are copies of the last one used. */
static char *group_at(const lop_mat *f, int64_t step, int64_t from, int64_t n, lop_dtype dt) {
    char *p = (char *)(((uintptr_t)f->p + 63) & ~(uintptr_t)63);
    return step ? p + from / LOPK_STACK * group_bytes(n, dt) : p;
}
static unsigned char *marks_of(char *group, int64_t n, lop_dtype dt) {
    return (unsigned char *)group + lopk_stack_bytes(n, dt);
}

static size_t kept_at(int64_t n, lop_dtype dt) {
    return ((size_t)group_bytes(n, dt) + 63) & ~(size_t)63;
}
static lop_mat kept_in(char *group, int64_t n, lop_dtype dt) {
    return (lop_mat){group + kept_at(n, dt), n, n, n, 1, dt};
}

static lop_status run_factor(const lop_call *c) {
    const lop_mat *a = c->a[1];
    const bool keeps = !c->more; /* there is room for it: emit_factor */
    LOP_ASSERT(!keeps ||
               c->a[0]->m >= (int64_t)(kept_at(a->m, a->dt) + lop_factor_bytes(a->m, a->dt)) + 64);
    for (int64_t from = 0; from <= c->more; from += LOPK_STACK) {
        const lop_mat first = moved(a, from, c->x_step);
        char *group = group_at(c->a[0], c->y_step, from, a->m, a->dt);
        *marks_of(group, a->m, a->dt) =
            (unsigned char)lopk_stack_factor(used_of(c, from), group, &first, c->x_step);
        if (keeps && *marks_of(group, a->m, a->dt)) {
            const lop_mat own = kept_in(group, a->m, a->dt);
            lopk_copy(&own, a);
        }
    }
    return LOP_OK;
}
/* The slot of the factors: memory for whole groups, and to align them, shared out among the
 * elements. */
static int emit_factor(lop_emit *e, int64_t n, lop_dtype dt, int a, lop_status *st) {
    const lop_shape s = lop_emit_shape(e, a, n, n);
    const int64_t p = s.ndim > 2 && s.dim[s.ndim - 3] > 1 ? s.dim[s.ndim - 3] : 1;
    const int64_t groups = (p + LOPK_STACK - 1) / LOPK_STACK;
    const int64_t bytes = p == 1 ? (int64_t)(kept_at(n, dt) + lop_factor_bytes(n, dt)) + 64
                                 : (groups * group_bytes(n, dt) + 64 + p - 1) / p;
    const double cube = (double)n * (double)n * (double)n;
    return lop_emit_derived_group(e, "potrf", run_factor, (size_t)bytes, a, cube / 3, st);
}

static lop_status run_matrix(const lop_call *c) {
    const lop_mat *y = c->a[0];
    const lop_mat own = kept_in(group_at(c->a[1], 0, 0, y->m, y->dt), y->m, y->dt);
    lopk_copy(y, &own);
    return LOP_OK;
}
/* The slot that LU reads where `mask` says that the factor f of slot `a` is none: of a matrix alone
 * what is kept beside the factor, else `a`. */
static int emit_matrix(lop_emit *e, int64_t n, lop_dtype dt, int a, int f, int mask,
                       lop_status *st) {
    const lop_shape shape = lop_emit_shape(e, a, n, n);
    int64_t batch;
    lop_slot_sizes(e, mask, NULL, NULL, &batch);
    if (shape.ndim > 2 || batch != 1) return a;
    const int out = lop_emit_temp(e, dt, 2, &shape, st);
    if (out < 0) return -1;
    lop_step *s = lop_emit_step(e, "matrix", run_matrix, out, 1, &f);
    if (!s) {
        *st = LOP_NOMEM;
        return -1;
    }
    s->when = mask;
    s->when_set = true;
    return out;
}

/* By the range of the pivots, squares of the factor's diagonal. */
static void note_near(const lop_call *c, const char *group, int64_t n, lop_dtype dt, int lane) {
    double low = INFINITY, high = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = i * (i + 3) / 2 * LOPK_STACK + lane;
        const double d = dt == LOP_f64 ? ((const double *)(const void *)group)[at]
                                       : (double)((const float *)(const void *)group)[at];
        low = d < low ? d : low;
        high = d > high ? d : high;
    }
    if (high > 0) lop_call_near(c, low / high * (low / high), lopk_eps(dt));
}

static lop_status run_solve(const lop_call *c) {
    const lop_mat *y = c->a[0], *b = c->a[2];
    for (int64_t from = 0; from <= c->more; from += LOPK_STACK) {
        const int used = used_of(c, from);
        char *group = group_at(c->a[1], c->x_step, from, b->m, y->dt);
        const unsigned bad = *marks_of(group, b->m, y->dt);
        const lop_mat to = moved(y, from, c->y_step), of = moved(b, from, c->z_step);
        const unsigned wanted = wanted_of(c, from, used);
        (c->step->attr.i[0] ? lopk_stack_squares : lopk_stack_solve)(used, wanted, group, &to,
                                                                     c->y_step, &of, c->z_step);
        for (int l = 0; l < used; l++) {
            c->failed[from + l] = (bad & wanted) >> l & 1;
            if ((wanted & ~bad) >> l & 1) note_near(c, group, b->m, y->dt, l);
        }
    }
    return LOP_OK;
}

/* One matrix by LU, where Cholesky has failed: its factor is not kept. */
static lop_status run_gesv(const lop_call *c) {
    const lop_mat *y = c->a[0], *a = c->a[1], *b = c->a[2];
    const bool squares = c->step->attr.i[0] != 0;
    const size_t at = lop_factor_bytes(a->m, a->dt);
    lop_mat f = {c->scratch, a->m, a->m, 1, a->m, a->dt};
    int64_t *ipiv = (int64_t *)(void *)((char *)c->scratch + at);
    void *room = (char *)c->scratch + at + lop_factor_bytes(a->m, LOP_i64);
    int64_t info = 0;
    lop_status st = lopk_lu_of(&f, a, ipiv, &info);
    if (st == LOP_SINGULAR)
        return lop_fail(c->err, st, "Singular matrix: pivot %lld of %lld is exactly zero",
                        (long long)info, (long long)a->m);
    lop_call_near(c, lopk_pivot_ratio(&f), lopk_eps(f.dt));
    const int64_t some = squares ? lop_at_once(b->n) : b->n;
    for (int64_t j = 0; st == LOP_OK && j < b->n; j += some) {
        lop_mat of = moved(b, j, b->cs), to = moved(y, j, squares ? y->rs : y->cs);
        of.n = b->n - j < some ? b->n - j : some;
        (squares ? &to.m : &to.n)[0] = of.n;
        const lop_mat x = {room, b->m, of.n, 1, b->m, y->dt},
                      rows = {of.p, of.n, of.m, of.cs, of.rs, of.dt};
        lopk_copy(&x, &of);
        st = lopk_getrs(&f, ipiv, 'N', &x);
        if (st != LOP_OK) break;
        if (squares)
            lopk_row_dots(&to, &rows, false, &x, false);
        else
            lopk_copy(&to, &x);
    }
    return st;
}

/* out <- a^-1 b, or with `squares` the diagonal of b^T a^-1 b. */
static lop_status emit_solve(lop_emit *e, int64_t n, lop_dtype dt, int a, int b, int out,
                             bool quiet, bool squares) {
    lop_status st;
    int in[2] = {emit_factor(e, n, dt, a, &st), b}, plain[2] = {a, b};
    int64_t k, batch;
    if (in[0] < 0) return st;
    const int mask = lop_emit_mask(e, out, &st);
    if (mask < 0) return st;
    lop_slot_sizes(e, out, squares ? &k : NULL, squares ? NULL : &k, &batch);
    lop_step *s = lop_emit_step(e, squares ? "trsm-squares" : "potrs", run_solve, out, 2, in);
    if (!s) return LOP_NOMEM;
    s->flags = LOP_STEP_GROUP | (quiet ? LOP_STEP_QUIET : 0);
    s->attr.i[0] = squares;
    s->fail = mask;
    s->flops = (squares ? (double)n + 2 : 2 * (double)n) * (double)n * (double)k * (double)batch;
    plain[0] = emit_matrix(e, n, dt, a, in[0], mask, &st);
    if (plain[0] < 0) return st;
    s = lop_emit_step(e, squares ? "gesv-squares" : "gesv", run_gesv, out, 2, plain);
    if (!s) return LOP_NOMEM;
    s->attr.i[0] = squares;
    s->when = mask;
    s->when_set = true;
    s->flops = (2 * (double)n / 3 + 2 * (double)k) * (double)n * (double)n * (double)batch;
    s->scratch = lop_factor_bytes(n, dt) + lop_factor_bytes(n, LOP_i64) +
                 (size_t)n * (size_t)(squares ? lop_at_once(k) : k) * lop_dtype_size(dt);
    return LOP_OK;
}
lop_status lop_emit_stack_solve(lop_emit *e, int64_t n, lop_dtype dt, int a, int b, int out,
                                bool quiet) {
    return emit_solve(e, n, dt, a, b, out, quiet, false);
}
lop_status lop_emit_stack_squares(lop_emit *e, int64_t n, lop_dtype dt, int a, int b, int out,
                                  bool quiet) {
    return emit_solve(e, n, dt, a, b, out, quiet, true);
}

static lop_status run_roots(const lop_call *c) {
    const lop_mat *y = c->a[0];
    const int64_t size = (int64_t)lop_dtype_size(y->dt);
    for (int64_t from = 0; from <= c->more; from += LOPK_STACK) {
        const int used = used_of(c, from);
        char *group = group_at(c->a[1], c->x_step, from, y->m, y->dt);
        const unsigned bad = *marks_of(group, y->m, y->dt);
        for (int l = 0; l < used; l++) {
            const lop_mat to = moved(y, from + l, c->y_step);
            const bool left = lop_call_leaves(c, from + l);
            c->failed[from + l] = !left && (bad >> l & 1);
            if (left) continue;
            for (int64_t i = 0; i < y->m; i++) {
                const lop_mat one = {group + (i * (i + 3) / 2 * LOPK_STACK + l) * size,
                                     1,
                                     1,
                                     1,
                                     1,
                                     y->dt},
                              at = {(char *)to.p + i * to.rs * size, 1, 1, 1, 1, y->dt};
                lopk_copy(&at, &one);
            }
        }
    }
    return LOP_OK;
}
int lop_emit_stack_roots(lop_emit *e, int64_t n, lop_dtype dt, int *a, int mask, bool quiet,
                         lop_status *st) {
    const int f = emit_factor(e, n, dt, *a, st);
    if (f < 0) return -1;
    lop_shape shape = lop_emit_shape(e, *a, 0, n);
    shape.dim[shape.ndim - 2] = n;
    shape.ndim--;
    const int out = lop_emit_temp(e, dt, 1, &shape, st);
    if (out < 0) return -1;
    lop_step *s = lop_emit_step(e, "roots", run_roots, out, 1, &f);
    if (!s) {
        *st = LOP_NOMEM;
        return -1;
    }
    s->flags = LOP_STEP_GROUP | (quiet ? LOP_STEP_QUIET : 0);
    s->fail = mask;
    *a = emit_matrix(e, n, dt, *a, f, mask, st);
    return *a < 0 ? -1 : out;
}

/* The triangle of each, zeros above it; zeros below a mark that there is none. */
static lop_status run_triangles(const lop_call *c) {
    const lop_mat *y = c->a[0];
    const int64_t size = (int64_t)lop_dtype_size(y->dt), n = y->m;
    for (int64_t from = 0; from <= c->more; from += LOPK_STACK) {
        const int used = used_of(c, from);
        char *group = group_at(c->a[1], c->x_step, from, n, y->dt);
        const unsigned bad = *marks_of(group, n, y->dt);
        for (int l = 0; l < used; l++) {
            const lop_mat to = moved(y, from + l, c->y_step);
            if (lop_call_leaves(c, from + l)) continue;
            lopk_zero(&to);
            if (bad >> l & 1) {
                lop_set(y->dt, to.p, 0, NAN);
                continue;
            }
            for (int64_t i = 0; i < n; i++) {
                const lop_mat row = {(char *)to.p + i * to.rs * size, i + 1, 1, to.cs, 1, y->dt},
                              lane = {group + (i * (i + 1) / 2 * LOPK_STACK + l) * size,
                                      i + 1,
                                      1,
                                      LOPK_STACK,
                                      1,
                                      y->dt};
                lopk_copy(&row, &lane);
            }
        }
    }
    return LOP_OK;
}
lop_status lop_emit_stack_triangles(lop_emit *e, int64_t n, lop_dtype dt, int a, int out) {
    lop_status st;
    const int f = emit_factor(e, n, dt, a, &st);
    if (f < 0) return st;
    lop_step *s = lop_emit_step(e, "triangles", run_triangles, out, 1, &f);
    if (!s) return LOP_NOMEM;
    s->flags = LOP_STEP_GROUP;
    return LOP_OK;
}

/* -- pile */

static lop_status infer_pile(lop_node *n, lop_err *err) {
    const lop_node *first = n->child[0];
    for (int i = 0; i < n->n; i++) {
        const lop_node *a = n->child[i];
        if (a->core != 2 || a->shape.ndim != 2 || a->dtype != first->dtype || a->weak ||
            !lop_shape_equal(&a->shape, &first->shape))
            return lop_fail(err, LOP_DIM, "cholesky_batch takes matrices of one shape and dtype");
    }
    n->shape = (lop_shape){.ndim = 3, .dim = {n->n, lop_rows(first), lop_cols(first)}};
    n->dtype = first->dtype;
    return LOP_OK;
}
/* Arguments 1 on to places attr.i[0] on. */
static lop_status run_pile(const lop_call *c) {
    for (int j = 1; j < c->step->n; j++) {
        const lop_mat to = moved(c->a[0], c->step->attr.i[0] + j - 1, c->y_step);
        lopk_copy(&to, c->a[j]);
    }
    return LOP_OK;
}
static lop_status lower_pile(lop_emit *e, const lop_node *self, int out) {
    int in[LOP_MAXARG - 1];
    for (int from = 0, some; from < self->n; from += some) {
        some = self->n - from < LOP_MAXARG - 1 ? self->n - from : LOP_MAXARG - 1;
        for (int j = 0; j < some; j++) in[j] = lop_emit_value(e, self->child[from + j]);
        lop_step *s = lop_emit_step(e, "cholesky_batch", run_pile, out, some, in);
        if (!s) return LOP_NOMEM;
        s->attr.i[0] = from;
        s->flags = LOP_STEP_BATCH | LOP_STEP_PLACES;
        s->bytes = 0;
        for (int j = 0; j < some; j++) s->bytes += 16 * lop_slot_elements(e, in[j]);
    }
    return LOP_OK;
}
const lop_op lop_op_cholesky_batch = {
    LOP_NAMED(cholesky_batch), .cls = LOP_ARRAY,   .min = 1, .max = -1,
    .infer = infer_pile,       .lower = lower_pile};
