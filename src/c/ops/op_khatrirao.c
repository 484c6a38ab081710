/* op_khatrirao.c: the column-wise Kronecker product: column j is A[:, j] (x) B[:, j].
 *
 * khatri     of two arrays; the operator khatrirao goes by it (rules)
 * Cost: 2 m p n k flops, m p n elements of memory. */
#include "core/rand.h"
#include "kernels/kernels.h"

static lop_status infer(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0], *b = n->child[1];
    char ta[128], tb[128];
    int64_t rows;
    if (a->core != 2 || b->core != 2 || lop_cols(a) != lop_cols(b))
        return lop_fail(err, LOP_DIM,
                        "a Khatri-Rao product takes as many columns of both, got shapes %s and %s",
                        lop_shape_text(&a->shape, ta, sizeof ta),
                        lop_shape_text(&b->shape, tb, sizeof tb));
    if (!lop_mul_ok(lop_rows(a), lop_rows(b), &rows))
        return lop_fail(err, LOP_OVERFLOW, "the rows of this product do not fit 64 bits");
    return lop_node_over(n, rows, lop_cols(n->child[0]), err);
}

static lop_status infer_kind(lop_node *n, lop_err *err) {
    for (int i = 0; i < n->n; i++)
        if (n->child[i]->op->cls != LOP_OPERATOR)
            return lop_fail(err, LOP_DIM, "khatrirao takes operators");
    return infer(n, err);
}

static lop_status run_khatri(const lop_call *c) {
    const lop_mat *y = c->a[0], *a = c->a[1], *b = c->a[2];
    int64_t size = (int64_t)lop_dtype_size(y->dt);
    if (y->m == 0 || y->n == 0) return LOP_OK;
    for (int64_t i = 0; i < a->m; i++) { /* a row of a times all of b */
        lop_mat row = {(char *)a->p + i * a->rs * size, 1, a->n, a->rs, a->cs, a->dt};
        lop_mat out = {(char *)y->p + i * b->m * y->rs * size, b->m, y->n, y->rs, y->cs, y->dt};
        lopk_mul(&out, b, &row);
    }
    return LOP_OK;
}
static lop_status lower_khatri(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    int in[2];
    for (int i = 0; i < 2; i++) {
        in[i] = lop_emit_cast(e, lop_emit_value(e, self->child[i]), self->dtype, &st);
        if (in[i] < 0) return st;
    }
    lop_step *s = lop_emit_step(e, "khatri", run_khatri, out, 2, in);
    if (!s) return LOP_NOMEM;
    s->flops = (double)lop_rows(self) * (double)lop_cols(self);
    return LOP_OK;
}
const lop_op lop_op_khatri = {LOP_NAMED(khatri), .cls = LOP_ARRAY, .min = 2,
                              .max = 2,          .infer = infer,   .lower = lower_khatri};

static double flops(const lop_node *self, int64_t k) {
    return (double)lop_rows(self) * (double)lop_cols(self) * (1 + 2 * (double)k);
}

static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    const lop_node *f[2] = {0};
    int64_t p = m % 2 == 0 && m ? 2 : 1;
    lop_status st = lop_rand_dense(r, p, n, dt, &f[0]);
    if (st == LOP_OK) st = lop_rand_dense(r, m / p, n, dt, &f[1]);
    if (st == LOP_OK) st = lop_node_make(r->ctx, &lop_op_khatrirao, NULL, 2, f, NULL, out, r->err);
    for (int i = 0; i < 2; i++) lop_node_unref(f[i]);
    return st;
}

const lop_op lop_op_khatrirao = {
    LOP_NAMED(khatrirao),
    .title = "KhatriRao",
    .cls = LOP_OPERATOR,
    .min = 2,
    .max = 2,
    .param = {{"A", LOP_P_OPERATOR, 2, NULL, "Shape (..., m, n); an array or an operator."},
              {"B", LOP_P_OPERATOR, 2, NULL, "Shape (..., p, n); an array or an operator."}},
    .doc = {.brief = "Column-wise Kronecker product, as scipy.linalg.khatri_rao.",
            .extended = "Shape (..., m p, n): column j is A[:, j] (x) B[:, j]. The row-wise one is "
                        "``pl.KhatriRao(A.T, B.T).T``.",
            .cost = "Build: O(1). Product with k columns: the dense form, computed when needed, "
                    "and 2 m p n k flops.",
            .example = ">>> pl.KhatriRao(np.array([[1., 2.]]), np.array([[3., 4.], [5., 6.]]))"
                       ".toarray()\narray([[ 3.,  8.],\n       [ 5., 12.]])"},
    .infer = infer_kind,
    .flops = flops,
    .random = random_instance};
