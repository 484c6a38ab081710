/* op_reflections.c: a product of Householder reflections of few neighbouring rows, each one row
 * below the one before: Q = H_0 H_1 ... H_(k-1), H_j = I - 2 v_j v_j^H / |v_j|^2 on rows j to
 * j + w - 1. The Q of a band's QR.
 *
 * Storage: v (k x w); what lies beyond the last row is not read. A product with c columns: 4 k w c
 * flops, |v_j|^2 being taken anew. Unitary whatever v is; a v_j of zeros is no reflection.
 * Schreiber and Van Loan 1989 gather reflections in blocks, which does not pay for few rows.
 * attr.i[0]: n. */
#include "expr/random_instance.h"
#include "ops/shared/scaled_pair.h"
#include "kernels/band/k_band_qr.h"
#include "kernels/common/kernels.h"

#include <math.h>

static lop_status infer(lop_node *n, lop_err *err) {
    const lop_node *v = n->child[0];
    if (v->op->cls == LOP_OPERATOR || v->core != 2)
        return lop_fail(err, LOP_DIM, "reflections take a matrix whose rows are vectors");
    if (lop_rows(v) > n->attr.i[0])
        return lop_fail(err, LOP_DIM, "%lld rows are reflected at most as many times, got %lld",
                        (long long)n->attr.i[0], (long long)lop_rows(v));
    n->shape = v->shape;
    n->shape.dim[n->shape.ndim - 2] = n->shape.dim[n->shape.ndim - 1] = n->attr.i[0];
    n->weak = v->weak;
    n->dtype = n->weak ? v->dtype : lop_promote_weak(LOP_WEAK_FLOAT, v->dtype);
    return LOP_OK;
}

static lop_truth trait(const lop_node *n, lop_trait t) {
    (void)n;
    return t == LOP_ORTHOGONAL ? LOP_TRUE : LOP_UNKNOWN;
}

static lop_status run(const lop_call *c) {
    const lop_mat *y = c->a[0];
    const int64_t mode = c->step->attr.i[0];
    lopk_copy(y, c->a[1]);
    lopk_reflect(y, c->a[2], (mode & LOP_T) != 0, mode == LOP_T || mode == LOP_C, c->scratch);
    return LOP_OK;
}

static lop_status apply(lop_emit *e, const lop_node *self, lop_mode mode, int x, int out) {
    const lop_dtype dt = lop_slot_dtype(e, out);
    const lop_node *v = self->child[0];
    int64_t columns, batch;
    lop_status st;
    int in[2] = {x, lop_emit_cast(e, lop_emit_value(e, v), dt, &st)};
    if (in[1] < 0) return st;
    if (!lop_is_blas(dt)) return lop_fail(lop_emit_err(e), LOP_DTYPE, "reflections are of floats");
    lop_slot_sizes(e, out, NULL, &columns, &batch);
    lop_step *s = lop_emit_step(e, "reflect", run, out, 2, in);
    if (!s) return LOP_NOMEM;
    s->attr.i[0] = mode;
    s->scratch = lopk_reflect_bytes(lop_cols(v), columns, dt);
    s->flops = 4.0 * (double)lop_rows(v) * (double)lop_cols(v) * (double)columns * (double)batch;
    return LOP_OK;
}

static double flops(const lop_node *self, int64_t k) {
    return 4 * (double)lop_rows(self->child[0]) * (double)lop_cols(self->child[0]) * (double)k;
}

static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    if (m != n || !lop_is_blas(dt)) return LOP_UNABLE;
    const lop_attr a = {.i = {n, 0, 0, 0}};
    const lop_node *v;
    lop_status st =
        lop_rand_matrix(r, dt, lop_rng_range(&r->rng, 0, n + 1), lop_rng_range(&r->rng, 0, 5), &v);
    if (st != LOP_OK) return st;
    st = lop_node_make(r->ctx, &lop_op_reflections, &a, 1, &v, NULL, out, r->err);
    lop_node_unref(v);
    return st;
}

const lop_op lop_op_reflections = {
    LOP_NAMED(reflections),
    .title = "Reflections",
    .cls = LOP_OPERATOR,
    .min = 1,
    .max = 1,
    .ints = 1,
    .param = {{"v", LOP_P_ARRAY, 2, NULL,
               "The vectors, shape (..., k, w), k <= n: row j is that of a reflection of the rows "
               "from j on. What passes the last row is not read. Borrowed."},
              {"n", LOP_P_INT, 0, NULL, "Size."}},
    .doc = {.brief = "Householder reflections of few neighbouring rows, one after the other.",
            .extended = "Q = H_0 H_1 ... H_(k-1), H_j = I - 2 v_j v_j^H / |v_j|^2 on the rows j to "
                        "j + w - 1: the Q of a band (`qr`).",
            .cost = "Build: O(1), no copy. Product with c columns: 4 k w c flops.",
            .notes = "Unitary, whatever v is: its inverse is its adjoint. A vector of zeros is no "
                     "reflection. For one reflection of all rows see `Householder`.",
            .example = ">>> pl.Reflections([[1., 1.]], 3) @ np.array([3., 4., 5.])\narray([-4., "
                       "-3.,  5.])"},
    .infer = infer,
    .vjp_by_formula = true,
    .trait = trait,
    .apply = apply,
    .flops = flops,
    .random = random_instance};

/* -- reflections_det: -1 for each v_j that is not zero; attr.i[0]: n */

static lop_status infer_det(lop_node *n, lop_err *err) {
    const lop_node *v = n->child[0];
    if (v->core != 2 || !lop_is_blas(v->dtype) || lop_rows(v) > n->attr.i[0])
        return lop_fail(err, LOP_DIM, "reflections_det takes a matrix of floats");
    return lop_pair_infer(n, &v->shape, 2, v->dtype);
}
static lop_status run_det(const lop_call *c) {
    const lop_mat *v = c->a[1];
    lop_pair det = lop_pair_one();
    for (int64_t j = 0; j < v->m; j++) {
        const int none = lopk_reflect_none(v, j, c->step->attr.i[0]);
        det.re = none < 0 ? NAN : none ? det.re : -det.re;
    }
    lop_pair_store(c->a[0], det);
    return LOP_OK;
}
static lop_status lower_det(lop_emit *e, const lop_node *self, int out) {
    int in = lop_emit_value(e, self->child[0]);
    lop_step *s = lop_emit_step(e, "reflections_det", run_det, out, 1, &in);
    if (!s) return LOP_NOMEM;
    s->attr.i[0] = self->attr.i[0];
    s->flops = (double)lop_rows(self->child[0]) * (double)lop_cols(self->child[0]);
    return LOP_OK;
}
const lop_op lop_op_reflections_det = {
    LOP_NAMED(reflections_det), .cls = LOP_ARRAY,  .min = 1, .max = 1, .ints = 1,
    .infer = infer_det,         .lower = lower_det};
