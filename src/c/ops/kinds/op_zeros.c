/* op_zeros.c: the zero operator. Zeros are structural: they win over NaN and inf in x.
 * No storage; a product writes zeros. */
#include "expr/random_instance.h"
#include "kernels/common/kernels.h"

static lop_status infer(lop_node *n, lop_err *err) {
    return n->shape.ndim >= 2 ? LOP_OK
                              : lop_fail(err, LOP_DIM, "zeros has at least two dimensions");
}
static lop_truth trait(const lop_node *n, lop_trait t) {
    if (t == LOP_ZERO) return LOP_TRUE;
    if (lop_rows(n) == 0 || lop_cols(n) == 0) return LOP_UNKNOWN;
    if (t == LOP_SYMMETRIC || t == LOP_HERMITIAN || t == LOP_DIAGONAL)
        return lop_is_square(n) ? LOP_TRUE : LOP_FALSE;
    return LOP_FALSE;
}
static lop_status run_zero(const lop_call *c) {
    lopk_zero(c->a[0]);
    return LOP_OK;
}
static lop_status zero(lop_emit *e, int out) {
    return lop_emit_step(e, "zero", run_zero, out, 0, NULL) ? LOP_OK : LOP_NOMEM;
}
static lop_status apply(lop_emit *e, const lop_node *self, lop_mode mode, int x, int out) {
    (void)self;
    (void)mode;
    (void)x;
    return zero(e, out);
}
static lop_status dense(lop_emit *e, const lop_node *self, int out) {
    (void)self;
    return zero(e, out);
}
static lop_status diagonal(lop_emit *e, const lop_node *self, int64_t k, int out) {
    (void)self;
    (void)k;
    return zero(e, out);
}
static lop_status element(lop_emit *e, const lop_node *self, int64_t i, int64_t j, int out) {
    (void)self;
    (void)i;
    (void)j;
    return zero(e, out);
}
static double flops(const lop_node *self, int64_t k) {
    (void)self;
    (void)k;
    return 0;
}
static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    lop_node like = {.shape = {.ndim = 2, .dim = {m, n}}, .dtype = dt, .core = 2};
    return lop_node_make(r->ctx, &lop_op_zeros, NULL, 0, NULL, &like, out, r->err);
}

static lop_band bands(const lop_node *self, const lop_band *child) {
    (void)self;
    (void)child;
    return (lop_band){0, 0};
}

const lop_op lop_op_zeros = {
    LOP_NAMED(zeros),
    .flags = LOP_FLAG_at_hand | LOP_FLAG_closed_spectrum | LOP_FLAG_few_entries | LOP_FLAG_entries |
             LOP_FLAG_constant | LOP_FLAG_closes | LOP_FLAG_cast_whole | LOP_FLAG_sliced_at_once,
    .title = "Zeros",
    .cls = LOP_OPERATOR,
    .param = {{"shape", LOP_P_SHAPE, 0, NULL,
               "(m, n), with leading batch dimensions if wanted; an int means (n, n)."},
              {"dtype", LOP_P_DTYPE, 0, "None",
               "Data type; None adopts that of whatever it meets (float64 alone)."}},
    .doc = {.brief = "The zero operator of a shape.",
            .cost = "Build, storage: O(1); a product writes m k zeros.",
            .notes = "A structural zero: it wins over NaN and inf in what it multiplies.",
            .example = ">>> pl.Zeros((2, 3)) @ np.ones(3)\narray([0., 0.])"},
    .bands = bands,
    .infer = infer,
    .trait = trait,
    .apply = apply,
    .dense = dense,
    .diagonal = diagonal,
    .element = element,
    .flops = flops,
    .random = random_instance};
