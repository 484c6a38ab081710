/* op_invert.c: the inverse itself, where an expression asks for it: from the factor that solves
 * share, in two thirds of the time of a solve with the identity.
 *
 * invert   child a. attr.i[0]: 0 by LU, 1 by Cholesky, 2 by Cholesky that is only tried, 3 of
 *          what is Hermitian as it is written.
 *
 * Of what is seen through a mode the LU factors are those of what is seen, which its solves have.
 *
 * Cost: 2/3 n^3 flops after Cholesky, X^H X with X = L^-1, of large ones by LAPACK's potri; 4/3 n^3
 * after LU, by substitutions: as accurate column by column as a solve, |A x - e| <= c n u |A| |x|,
 * which LAPACK's getri is only row by row, for X A (Du Croz and Higham, IMA J. Numer. Anal. 12,
 * 1992, section 3). */
#include "expr/op.h"
#include "ops/shared/factor.h"
#include "kernels/dense/k_blas.h"
#include "kernels/common/kernels.h"

#include <string.h>

/* Up to so many rows BLAS's threads are left asleep. */
enum { SMALL = 256 };

static lop_status infer_invert(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0];
    if (a->core != 2 || !lop_is_square(a))
        return lop_fail(err, LOP_DIM, "invert takes a square matrix");
    n->shape = a->shape;
    lop_node_promote_inverse(n, a, a);
    return LOP_OK;
}

static lop_status run_potri(const lop_call *c) {
    const lop_mat *y = c->a[0];
    int64_t info;
    lop_mat f = lop_factor_at(c->a[1]->p, y->m, y->dt);
    if (lop_factor_pivots(&f)[y->m]) return LOP_SINGULAR;
    lop_call_near(c, *lop_factor_near(&f), lopk_eps(f.dt));
    const lop_mat x = lop_factor_at(c->scratch, y->m, y->dt);
    if (y->m <= SMALL) return lopk_inverse_of_cholesky(&f, &x, y);
    lopk_copy(&x, &f);
    lop_status st = lopk_potri(&x, &info);
    if (st == LOP_OK) lopk_copy(y, &x);
    return st;
}

static lop_status run_lu_inverse(const lop_call *c) {
    const lop_mat *y = c->a[0];
    const lop_mat f = lop_factor_at(c->a[1]->p, y->m, y->dt),
                  x = lop_factor_at(c->scratch, y->m, y->dt);
    int64_t zero = lopk_diag_has_zero(&f);
    if (zero >= 0) return lop_factor_singular(c->err, zero + 1, y->m);
    lop_call_near(c, *lop_factor_near(&f), lopk_eps(f.dt));
    const int64_t mode = c->step->attr.i[0];
    lop_status st = lopk_inverse_of_lu(&f, lop_factor_pivots(&f), "NTNC"[mode], &x);
    if (st == LOP_OK) lopk_copy(y, &x);
    if (st == LOP_OK && mode == LOP_C) lopk_conj(y, y);
    return st;
}

const lop_node *lop_unswapped(const lop_node *a) { return a->op == &lop_op_swap ? a->child[0] : a; }

static lop_step *emit_one(lop_emit *e, const lop_node *self, bool cholesky, int factor, int out) {
    int64_t n = lop_rows(self), batch;
    double cube = (double)n * (double)n * (double)n;
    lop_slot_sizes(e, out, NULL, NULL, &batch);
    lop_step *s = lop_emit_step(e, cholesky ? "potri" : "lu-inverse",
                                cholesky ? run_potri : run_lu_inverse, out, 1, &factor);
    if (!s) return NULL;
    s->scratch = lop_factor_bytes(n, self->dtype);
    s->flops = (cholesky ? 2.0 : 4.0) / 3 * cube * (double)batch;
    s->flags = LOP_STEP_GEMM;
    return s;
}

static lop_status lower_invert(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    bool cholesky = self->attr.i[0] != 0;
    const lop_node *of = cholesky ? self->child[0] : lop_unswapped(self->child[0]);
    int a = lop_emit_cast(e, lop_emit_value(e, of), self->dtype, &st);
    if (a < 0) return st;
    int factor =
        cholesky ? lop_emit_cholesky(e, lop_rows(self), self->dtype, a, self->attr.i[0] >= 2, &st)
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
    if (of != self->child[0]) s->attr = self->child[0]->attr; /* the mode */
    if (!cholesky) return LOP_OK;
    s->when = mask;
    s->when_set = true;
    return LOP_OK;
}

const lop_op lop_op_invert = {
    LOP_NAMED(invert),     .cls = LOP_ARRAY,     .min = 1, .max = 1, .ints = 1,
    .infer = infer_invert, .lower = lower_invert};
