/* op_displaced.c: what is read off products of Toeplitz matrices and inverses of such (and one
 * diagonal matrix) without an n x n array. With Z the shift down by a row, the displacement
 * Z A - A Z of each of them is of rank 2, of a product of f of them of rank 2 f, G H^T, and
 *
 *   A_ii = A_00 - sum_(0 < l <= i) (G H^T)_(l, l-1)
 *
 * (Kailath, Kung and Morf 1979): so its diagonal is one pass, and what is linear in it has weights
 * W_i = sum_(l >= i) w_l (rules/toeplitz_words.c).
 *
 *   displaced           children a, n x k, and, for the first three, w; attr.i[0]: LOP_DISPLACED_*
 *   displaced_diagonal  children A's first column, G, H: A's diagonal
 *   displaced_checked   children value, L, R, z, v, alt: value where no part of L R^T, of which it
 *                       is made, is much larger than z = A v of a probe v tells A to be; else alt
 */
#include "projections.h"

#include "ops/shared/column_norm.h"
#include "ops/shared/factor.h"
#include "kernels/common/kernels.h"

#include <complex.h>
#include <math.h>

static bool is_plain(const lop_node *a, int core, const lop_node *like) {
    return a->core == core && !a->weak && lop_nbatch(a) == 0 && a->dtype == like->dtype;
}
static double _Complex at(const lop_mat *a, int64_t i, int64_t j) {
    return lop_get(a->dt, a->p, i * a->rs + j * a->cs);
}
static void put(const lop_mat *a, int64_t i, int64_t j, double _Complex v) {
    lop_set(a->dt, a->p, i * a->rs + j * a->cs, v);
}
static lop_status read_all(lop_emit *e, const lop_node *self, lop_status (*run)(const lop_call *),
                           double flops, int out) {
    int in[4];
    for (int i = 0; i < self->n; i++) in[i] = lop_emit_value(e, self->child[i]);
    lop_step *s = lop_emit_step(e, self->op->name, run, out, self->n, in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->flops = flops;
    return LOP_OK;
}

static lop_status infer_displaced(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0], *w = n->n > 1 ? n->child[1] : NULL;
    const int64_t how = n->attr.i[0];
    if (!is_plain(a, 2, a) || !lop_is_blas(a->dtype) || how < 0 || how > LOP_DISPLACED_BACK ||
        (how <= LOP_DISPLACED_BY_ALL) != (w != NULL) ||
        (w && (!is_plain(w, 1, a) || lop_cols(w) != lop_rows(a))))
        return lop_fail(err, LOP_DIM, "displaced takes columns, and weights for each row");
    n->shape = a->shape;
    n->core = 2;
    n->dtype = a->dtype;
    return LOP_OK;
}
static lop_status run_displaced(const lop_call *c) {
    const lop_mat *y = c->a[0], *a = c->a[1];
    const int64_t how = c->step->attr.i[0], n = a->m;
    const bool weighed = how <= LOP_DISPLACED_BY_ALL;
    const bool down = how == LOP_DISPLACED_BY_ROW_ABOVE || how == LOP_DISPLACED_ON;
    double _Complex sum = weighed ? 0 : 1;
    if (how == LOP_DISPLACED_BY_ALL) {
        for (int64_t i = 0; i < n; i++) sum += at(c->a[2], i, 0);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < a->n; j++) put(y, i, j, sum * at(a, i, j));
        return LOP_OK;
    }
    for (int64_t i = n - 1; i > 0; i--) { /* between rows i - 1 and i */
        if (weighed) sum += at(c->a[2], i, 0);
        for (int64_t j = 0; j < a->n; j++)
            put(y, down ? i : i - 1, j, sum * at(a, down ? i - 1 : i, j));
    }
    for (int64_t j = 0; n > 0 && j < a->n; j++) put(y, down ? 0 : n - 1, j, 0);
    return LOP_OK;
}
static lop_status lower_displaced(lop_emit *e, const lop_node *self, int out) {
    return read_all(e, self, run_displaced, 2 * lop_slot_elements(e, out), out);
}
const lop_op lop_op_displaced = {
    LOP_NAMED(displaced),     .cls = LOP_ARRAY,        .min = 1, .max = 2, .ints = 1,
    .infer = infer_displaced, .lower = lower_displaced};

static lop_status infer_diagonal(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0], *g = n->child[1], *h = n->child[2];
    if (!is_plain(a, 2, a) || !is_plain(g, 2, a) || !is_plain(h, 2, a) || !lop_is_blas(a->dtype) ||
        lop_cols(a) != 1 || lop_rows(a) < 1 || lop_rows(g) != lop_rows(a) ||
        !lop_shape_equal(&g->shape, &h->shape))
        return lop_fail(err, LOP_DIM, "%s takes a column and two factors", n->op->name);
    n->shape = (lop_shape){.ndim = 1, .dim = {lop_rows(a)}};
    n->core = 1;
    n->dtype = a->dtype;
    return LOP_OK;
}
static lop_status run_diagonal(const lop_call *c) {
    const lop_mat *y = c->a[0], *g = c->a[2], *h = c->a[3];
    double _Complex d = at(c->a[1], 0, 0);
    put(y, 0, 0, d);
    for (int64_t i = 1; i < g->m; i++) {
        for (int64_t j = 0; j < g->n; j++) d -= at(g, i, j) * at(h, i - 1, j);
        put(y, i, 0, d);
    }
    return LOP_OK;
}
static lop_status lower_diagonal(lop_emit *e, const lop_node *self, int out) {
    const double k = (double)lop_cols(self->child[1]);
    return read_all(e, self, run_diagonal, 2 * k * lop_slot_elements(e, out), out);
}
const lop_op lop_op_displaced_diagonal = {
    LOP_NAMED(displaced_diagonal), .cls = LOP_ARRAY,       .min = 3, .max = 3,
    .infer = infer_diagonal,       .lower = lower_diagonal};

static lop_status infer_checked(lop_node *n, lop_err *err) {
    const lop_node *value = n->child[0], *l = n->child[1], *r = n->child[2], *z = n->child[3],
                   *v = n->child[4], *alt = n->child[5];
    if (value->core != 1 || !is_plain(value, 1, l) || !is_plain(alt, 1, l) || !is_plain(l, 2, l) ||
        !is_plain(r, 2, l) || !is_plain(z, 2, l) || !is_plain(v, 2, l) || !lop_is_blas(l->dtype) ||
        lop_rows(l) < 1 || !lop_shape_equal(&l->shape, &r->shape) ||
        !lop_shape_equal(&value->shape, &alt->shape) || lop_cols(z) != 1 ||
        !lop_shape_equal(&z->shape, &v->shape))
        return lop_fail(err, LOP_DIM, "the arms of %s differ", n->op->name);
    n->shape = value->shape;
    n->core = 1;
    n->dtype = value->dtype;
    return LOP_OK;
}
static lop_status run_accept(const lop_call *c) {
    const lop_mat *l = c->a[2], *r = c->a[3];
    const double room = 10 * (double)l->m, nv = lop_column_norm(c->a[5], 0),
                 grown = nv > 0 ? lop_column_norm(c->a[4], 0) / nv : 0;
    double parts = 0;
    for (int64_t j = 0; j < l->n; j++) parts += lop_column_norm(l, j) * lop_column_norm(r, j);
    lopk_copy(c->a[0], c->a[1]);
    return parts <= room * grown && isfinite(parts) ? LOP_OK : LOP_SINGULAR;
}
static lop_status check(lop_emit *e, const lop_node *self, int value, int mask) {
    int in[5];
    for (int i = 0; i < 5; i++) in[i] = lop_emit_value(e, self->child[i]);
    lop_step *s = lop_emit_step(e, "accept", run_accept, value, 5, in);
    if (!s) return LOP_NOMEM;
    s->fail = mask;
    s->flags = LOP_STEP_QUIET | LOP_STEP_INPLACE;
    return LOP_OK;
}
const lop_op lop_op_displaced_checked = {
    LOP_NAMED(displaced_checked), .cls = LOP_ARRAY,        .min = 6,      .max = 6,
    .infer = infer_checked,       .lower = lop_lower_arms, .check = check};
