/* op_factor_of.c: the factor that solves and determinants keep, by itself, for cholesky, lu and
 * ldl.
 *
 * factorof  child a, a square matrix; attr.i[0]: which factor (LOP_FACTOR_*); attr.i[1]: for
 *           Cholesky: a is known to be Hermitian, not only assumed.
 *
 * One number a matrix: 0, or 1 where there is no such factor. The factor is what the step reads,
 * the derived value of lu_solve, cholesky_solve or ldl_solve: made by whoever asks first. Of small
 * real matrices, whose Cholesky factors lie interleaved (op_batched_cholesky.c), the lower
 * triangles instead, with NaN in the first place where there is none. */
#include "ops/shared/factor.h"
#include "kernels/common/kernels.h"

#include <complex.h>
#include <math.h>

static lop_status infer(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0];
    if (a->core != 2 || !lop_is_blas(a->dtype) || !lop_is_square(a) || n->attr.i[0] < 0 ||
        n->attr.i[0] > LOP_FACTOR_LDLH)
        return lop_fail(err, LOP_DIM, "factorof takes a square matrix of floats");
    const bool triangles = lop_factor_interleaved(n->attr.i[0], lop_rows(a), a->dtype);
    n->shape = a->shape;
    n->dtype = triangles ? a->dtype : LOP_f64;
    n->core = triangles ? 2 : 0;
    if (!triangles) n->shape.ndim -= 2;
    return LOP_OK;
}

/* attr.i: what it is, n, dtype. */
static lop_status run_factored(const lop_call *c) {
    const int64_t what = c->step->attr.i[0], n = c->step->attr.i[1];
    const lop_dtype dt = (lop_dtype)c->step->attr.i[2];
    const lop_mat f = lop_factor_at(c->a[1]->p, n, dt);
    bool none = false;
    if (what == LOP_FACTOR_CHOLESKY) none = lop_factor_pivots(&f)[n] != 0;
    if (what >= LOP_FACTOR_LDLT && n > 0) {
        const double _Complex first = lop_get(dt, f.p, 0); /* NaN: nothing else was written */
        none = lop_ldl_parts(f.p, n, dt).ipiv[n] != 0 || isnan(creal(first) + cimag(first));
    }
    *(double *)c->a[0]->p = none;
    return LOP_OK;
}

static lop_status lower(lop_emit *e, const lop_node *self, int out) {
    const lop_node *a = self->child[0];
    const int64_t what = self->attr.i[0], n = lop_rows(a);
    const bool known = self->attr.i[1] != 0;
    const int in = lop_emit_value(e, a);
    lop_status st;
    if (lop_factor_interleaved(what, n, a->dtype))
        return lop_emit_stack_triangles(e, n, a->dtype, in, out);
    const int f = what == LOP_FACTOR_LU ? lop_emit_lu(e, n, a->dtype, in, &st)
                  : what == LOP_FACTOR_CHOLESKY
                      ? lop_emit_cholesky(e, n, a->dtype, in, known, &st)
                      : lop_emit_ldl(e, n, a->dtype, what == LOP_FACTOR_LDLH, in, &st);
    if (f < 0) return st;
    lop_step *s = lop_emit_step(e, "factored", run_factored, out, 1, &f);
    if (!s) return LOP_NOMEM;
    s->attr = (lop_attr){.i = {what, n, (int64_t)a->dtype, 0}};
    return LOP_OK;
}

const lop_op lop_op_factorof = {LOP_NAMED(factorof), .cls = LOP_ARRAY, .min = 1,      .max = 1,
                                .ints = 2,           .infer = infer,   .lower = lower};
