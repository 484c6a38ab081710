/* op_identity.c: the identity, y = x. No storage, no flops. attr unused; shape and dtype as given;
 * without a dtype it adopts the others'. The rules remove it wherever it stands. */
#include "expr/random_instance.h"
#include "kernels/common/kernels.h"

static lop_status infer(lop_node *n, lop_err *err) {
    return n->shape.ndim >= 2 && lop_is_square(n) ? LOP_OK
                                                  : lop_fail(err, LOP_DIM, "an identity is square");
}
static lop_truth trait(const lop_node *n, lop_trait t) {
    (void)n;
    return t == LOP_ZERO ? LOP_UNKNOWN : LOP_TRUE;
}
static lop_status run_copy(const lop_call *c) {
    lopk_copy(c->a[0], c->a[1]);
    return LOP_OK;
}
/* Only with batches of its own: else the rules take it away. */
static lop_status apply(lop_emit *e, const lop_node *self, lop_mode mode, int x, int out) {
    (void)self;
    (void)mode;
    return lop_emit_step(e, "copy", run_copy, out, 1, &x) ? LOP_OK : LOP_NOMEM;
}
static lop_status run_fill(const lop_call *c) {
    double value = c->step->attr.i[0] == 0 ? 1 : 0;
    lop_mat from = {&value, c->a[0]->m, c->a[0]->n, 0, 0, LOP_f64};
    lopk_copy(c->a[0], &from);
    return LOP_OK;
}
static lop_status diagonal(lop_emit *e, const lop_node *self, int64_t k, int out) {
    (void)self;
    lop_step *s = lop_emit_step(e, "fill", run_fill, out, 0, NULL);
    if (!s) return LOP_NOMEM;
    s->attr.i[0] = k;
    return LOP_OK;
}
static double flops(const lop_node *self, int64_t k) {
    (void)self;
    (void)k;
    return 0;
}
static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    if (m != n) return LOP_UNABLE;
    lop_node like = {.shape = {.ndim = 2, .dim = {n, n}}, .dtype = dt, .core = 2};
    return lop_node_make(r->ctx, &lop_op_identity, NULL, 0, NULL, &like, out, r->err);
}

static lop_band bands(const lop_node *self, const lop_band *child) {
    (void)self;
    (void)child;
    return (lop_band){0, 0};
}

const lop_op lop_op_identity = {
    LOP_NAMED(identity),
    .flags = LOP_FLAG_diagonal | LOP_FLAG_at_hand | LOP_FLAG_closed_spectrum |
             LOP_FLAG_few_entries | LOP_FLAG_one_entry | LOP_FLAG_entries | LOP_FLAG_at_once |
             LOP_FLAG_closes | LOP_FLAG_cast_whole | LOP_FLAG_meets | LOP_FLAG_sliced_at_once,
    .title = "Identity",
    .cls = LOP_OPERATOR,
    .param = {{"n", LOP_P_INT, 0, NULL, "Size; or the shape (n, n)."},
              {"dtype", LOP_P_DTYPE, 0, "None",
               "Data type; None adopts that of whatever it meets (float64 alone)."}},
    .doc = {.brief = "The identity of size n.",
            .cost = "Build, product, storage: O(1); a product copies x.",
            .notes =
                "Disappears from products; in sums with structured operators it stays what it is.",
            .example = ">>> pl.Identity(3) @ np.arange(3.)\narray([0., 1., 2.])"},
    .bands = bands,
    .infer = infer,
    .trait = trait,
    .apply = apply,
    .diagonal = diagonal,
    .flops = flops,
    .random = random_instance};
