/* op_invert.c: the inverse itself, where an expression asks for it: from the factor that solves
 share, in half the time of a solve with the identity.
 *
 * invert   child a. attr.i[0]: 0 by LU, 1 by Cholesky, 2 by Cholesky that is only tried.
 *
 * Cost: 2/3 n^3 flops after Cholesky, 4/3 n^3 after LU. LAPACK's potri and getri. */
#include "expr/op.h"
#include "ops/shared/factor.h"
#include "kernels/dense/k_blas.h"
#include "kernels/common/kernels.h"

#include <string.h>

enum { PANEL = 64 }; /* columns of getri's workspace */

static lop_status infer_invert(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0];
    if (a->core != 2 || !lop_is_square(a))
        return lop_fail(err, LOP_DIM, "invert takes a square matrix");
    n->shape = a->shape;
    lop_node_promote_inverse(n, a, a);
    return LOP_OK;
}

/* A copy of the factor, in scratch. */
static lop_mat copy_of(const lop_call *c) {
    const lop_mat *y = c->a[0];
    lop_mat f = lop_factor_at(c->a[1]->p, y->m, y->dt),
            copy = lop_factor_at(c->scratch, y->m, y->dt);
    lopk_copy(&copy, &f);
    return copy;
}

static lop_status run_potri(const lop_call *c) {
    const lop_mat *y = c->a[0];
    int64_t info;
    lop_mat f = lop_factor_at(c->a[1]->p, y->m, y->dt);
    if (lop_factor_pivots(&f)[y->m]) return LOP_SINGULAR;
    lop_call_near(c, *lop_factor_near(&f), lopk_eps(f.dt));
    f = copy_of(c);
    lop_status st = lopk_potri(&f, &info);
    if (st == LOP_OK) lopk_copy(y, &f);
    return st;
}

static lop_status run_getri(const lop_call *c) {
    const lop_mat *y = c->a[0];
    int64_t info;
    lop_mat f = lop_factor_at(c->a[1]->p, y->m, y->dt);
    const int64_t *pivots = lop_factor_pivots(&f);
    int64_t zero = lopk_diag_has_zero(&f);
    if (zero >= 0) return lop_factor_singular(c->err, zero + 1, y->m);
    lop_call_near(c, *lop_factor_near(&f), lopk_eps(f.dt));
    f = copy_of(c);
    char *work = (char *)c->scratch + lop_factor_bytes(y->m, y->dt);
    lop_status st = lopk_getri(&f, pivots, work, y->m * PANEL, &info);
    if (st == LOP_OK) lopk_copy(y, &f);
    return st;
}

static lop_step *emit_one(lop_emit *e, const lop_node *self, bool cholesky, int factor, int out) {
    int64_t n = lop_rows(self), batch;
    double cube = (double)n * (double)n * (double)n;
    lop_slot_sizes(e, out, NULL, NULL, &batch);
    lop_step *s = lop_emit_step(e, cholesky ? "potri" : "getri", cholesky ? run_potri : run_getri,
                                out, 1, &factor);
    if (!s) return NULL;
    s->scratch = lop_factor_bytes(n, self->dtype);
    if (!cholesky) s->scratch += (size_t)n * PANEL * lop_dtype_size(self->dtype);
    s->flops = (cholesky ? 2.0 : 4.0) / 3 * cube * (double)batch;
    s->flags = LOP_STEP_GEMM;
    return s;
}

static lop_status lower_invert(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    bool cholesky = self->attr.i[0] != 0;
    int a = lop_emit_cast(e, lop_emit_value(e, self->child[0]), self->dtype, &st);
    if (a < 0) return st;
    int factor =
        cholesky ? lop_emit_cholesky(e, lop_rows(self), self->dtype, a, self->attr.i[0] == 2, &st)
                 : lop_emit_lu(e, lop_rows(self), self->dtype, a, &st);
    if (factor < 0) return st;
    int mask = cholesky ? lop_emit_mask(e, out, &st) : 0;
    if (mask < 0) return st;
    if (cholesky) {
        lop_step *s = emit_one(e, self, true, factor, out);
        if (!s) return LOP_NOMEM;
        s->fail = mask;
        if (self->attr.i[0] == 2) s->flags |= LOP_STEP_QUIET;
    }
    lop_step *s = emit_one(e, self, false, factor, out);
    if (!s) return LOP_NOMEM;
    if (!cholesky) return LOP_OK;
    s->when = mask;
    s->when_set = true;
    return LOP_OK;
}

const lop_op lop_op_invert = {
    LOP_NAMED(invert),     .cls = LOP_ARRAY,     .min = 1, .max = 1, .ints = 1,
    .infer = infer_invert, .lower = lower_invert};
