/* op_khatrirao.c: the column-wise Kronecker product: column j is A[:, j] (x) B[:, j].
 *
 * khatri_rao_array     of two arrays: the dense form
 * rowmix     rows summed up, for the transpose (rules/khatri_rao.c)
 * A product reads x's rows times B's columns as p k columns and multiplies them by A: its cost is
 * that of A. */
#include "expr/random_instance.h"
#include "expr/vjp.h"
#include "kernels/common/kernels.h"

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
    lop_step *s = lop_emit_step(e, "khatri_rao_array", run_khatri, out, 2, in);
    if (!s) return LOP_NOMEM;
    s->flops = (double)lop_rows(self) * (double)lop_cols(self);
    return LOP_OK;
}
const lop_op lop_op_khatri_rao_array = {
    LOP_NAMED(khatri_rao_array), .cls = LOP_ARRAY, .min = 2, .max = 2, .infer = infer,
    .lower = lower_khatri};

/* -- rowmix: of w (n x r) and g (n x r k) the rows w_l^T g_l, g_l read as r x k: n x k */

static lop_status infer_rowmix(lop_node *n, lop_err *err) {
    const lop_node *w = n->child[0], *g = n->child[1];
    const int64_t r = w->core == 2 ? lop_cols(w) : 0;
    if (w->core != 2 || g->core != 2 || lop_rows(w) != lop_rows(g) ||
        (r ? lop_cols(g) % r : lop_cols(g)) != 0)
        return lop_fail(err, LOP_DIM, "rowmix takes r and r k columns of as many rows");
    lop_status st = lop_shape_batch(&w->shape, 2, &g->shape, 2, &n->shape, err);
    if (st != LOP_OK) return st;
    n->shape.dim[n->shape.ndim++] = lop_rows(w);
    n->shape.dim[n->shape.ndim++] = n->attr.i[0];
    if (r && lop_cols(g) / r != n->attr.i[0])
        return lop_fail(err, LOP_DIM, "rowmix gives %lld columns, not %lld",
                        (long long)(lop_cols(g) / r), (long long)n->attr.i[0]);
    lop_node_promote(n, w, g);
    return LOP_OK;
}
static lop_status run_rowmix(const lop_call *c) {
    const lop_mat *y = c->a[0], *w = c->a[1], *g = c->a[2];
    const int64_t size = (int64_t)lop_dtype_size(y->dt);
    if (w->n == 0) {
        lopk_zero(y);
        return LOP_OK;
    }
    for (int64_t l = 0; l < y->m; l++) {
        const lop_mat to = {(char *)y->p + l * y->rs * size, 1, y->n, y->rs, y->cs, y->dt},
                      of = {(char *)w->p + l * w->rs * size, 1, w->n, w->rs, w->cs, w->dt},
                      row = {
                          (char *)g->p + l * g->rs * size, w->n, y->n, y->n * g->cs, g->cs, g->dt};
        lopk_matmul_loop(&to, &of, false, &row, false);
    }
    return LOP_OK;
}
static lop_status lower_rowmix(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    int in[2];
    for (int i = 0; i < 2; i++) {
        in[i] = lop_emit_cast(e, lop_emit_value(e, self->child[i]), self->dtype, &st);
        if (in[i] < 0) return st;
    }
    lop_step *s = lop_emit_step(e, "rowmix", run_rowmix, out, 2, in);
    if (!s) return LOP_NOMEM;
    s->flops = 2 * lop_slot_elements(e, out) * (double)lop_cols(self->child[0]);
    return LOP_OK;
}
const lop_op lop_op_rowmix = {
    LOP_NAMED(rowmix),     .cls = LOP_ARRAY,     .min = 2, .max = 2, .ints = 1,
    .infer = infer_rowmix, .lower = lower_rowmix};

static double flops(const lop_node *self, int64_t k) {
    const lop_node *a = self->child[0];
    const double p = (double)lop_rows(self->child[1]), wide = p * (double)k;
    const double product = a->op->flops && wide < 0x1p62
                               ? a->op->flops(a, (int64_t)wide)
                               : 2 * (double)lop_rows(a) * (double)lop_cols(a) * wide;
    return product + (double)lop_cols(self) * wide;
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

/* A n x 1 matrix of ones. */
static const lop_node *ones(lop_vjp *v, int64_t n, lop_dtype dt) {
    const lop_node like = {.shape = {.ndim = 2, .dim = {n, 1}}, .dtype = dt, .core = 2};
    const lop_node *all = lop_vjp_like(v, &lop_op_ones, &like);
    return all ? lop_vjp_make(v, &lop_op_dense, NULL, all, NULL) : NULL;
}
/* The product is ((I (x) 1) A) o ((1 (x) I) B), element by element. */
static const lop_node *vjp(lop_vjp *v, const lop_node *self, int child, const lop_node *g) {
    const lop_node *spread[2];
    const int64_t m = lop_rows(self->child[0]), p = lop_rows(self->child[1]);
    for (int i = 0; i < 2; i++) {
        const lop_node *eye = lop_vjp_eye(v, i ? p : m, self->dtype),
                       *all = ones(v, i ? m : p, self->dtype);
        if (!eye || !all) return NULL;
        spread[i] = i ? lop_vjp_make(v, &lop_op_kron, NULL, all, eye)
                      : lop_vjp_make(v, &lop_op_kron, NULL, eye, all);
        if (!spread[i]) return NULL;
    }
    const lop_node *other = lop_vjp_prod(v, spread[1 - child], self->child[1 - child]);
    if (!other || !(other = lop_vjp_view(v, other, LOP_C))) return NULL;
    const lop_node *both = lop_vjp_make(v, &lop_op_elementwise, NULL, g, other);
    return both ? lop_vjp_prod(v, lop_vjp_view(v, spread[child], LOP_T), both) : NULL;
}

const lop_op lop_op_khatrirao = {
    LOP_NAMED(khatrirao),
    .flags = LOP_FLAG_multilinear,
    .title = "KhatriRao",
    .cls = LOP_OPERATOR,
    .min = 2,
    .max = 2,
    .param = {{"A", LOP_P_OPERATOR, 2, NULL, "Shape (..., m, n); an array or an operator."},
              {"B", LOP_P_OPERATOR, 2, NULL, "Shape (..., p, n); an array or an operator."}},
    .doc = {.brief = "Column-wise Kronecker product, as scipy.linalg.khatri_rao.",
            .extended = "Shape (..., m p, n): column j is A[:, j] (x) B[:, j]. The row-wise one is "
                        "``pl.KhatriRao(A.T, B.T).T``.",
            .cost =
                "Build: O(1). Product with k columns: one of A with p k columns, 2 m p n k flops "
                "where A is dense. Its dense form is not made on the way; B's is.",
            .limits = "The second factor is made dense.",
            .example = ">>> pl.KhatriRao(np.array([[1., 2.]]), np.array([[3., 4.], [5., 6.]]))"
                       ".toarray()\narray([[ 3.,  8.],\n       [ 5., 12.]])"},
    .vjp = vjp,
    .infer = infer_kind,
    .flops = flops,
    .random = random_instance};
