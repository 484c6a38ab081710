/* op_triangular.c: one triangle of an array; what lies in the other is never read.
 *
 * Products by blocks of rows: the rectangle beside the diagonal block by gemm, the block itself by
 * trmm; own loops for integers. Solves by trsm (op_action.c: triangular_solve). Storage: the user's
 * array. Cost: n^2 k flops each. attr.i[0]: lower; i[1]: ones on the diagonal, which is not read
 * then. */
#include "expr/random_instance.h"
#include "expr/vjp.h"
#include "kernels/dense/k_blas.h"
#include "kernels/common/kernels.h"

static lop_status infer(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0];
    if (a->op->cls == LOP_OPERATOR || a->core != 2)
        return lop_fail(err, LOP_DIM, "triangular takes a matrix");
    n->shape = a->shape;
    n->dtype = a->dtype;
    n->weak = a->weak;
    if (!lop_is_square(n)) {
        char t[128];
        return lop_fail(err, LOP_DIM, "a triangular matrix is square, got shape %s",
                        lop_shape_text(&n->shape, t, sizeof t));
    }
    return LOP_OK;
}

static lop_mat block(const lop_mat *a, int64_t i, int64_t m, int64_t j, int64_t n) {
    lop_mat b = *a;
    if (m > 0 && n > 0)
        b.p = (char *)a->p + (i * a->rs + j * a->cs) * (int64_t)lop_dtype_size(a->dt);
    b.m = m;
    b.n = n;
    return b;
}
static lop_mat flipped(const lop_mat *a) {
    return (lop_mat){a->p, a->n, a->m, a->cs, a->rs, a->dt};
}

/* Row by row: any dtype, any strides. */
static void by_rows(const lop_mat *y, const lop_mat *a, bool lower, bool unit, bool conj,
                    const lop_mat *x) {
    for (int64_t i = 0; i < a->m; i++) {
        const int64_t from = lower ? 0 : i + unit, count = lower ? i + !unit : a->m - from;
        const lop_mat row = block(a, i, 1, from, count), to = block(y, i, 1, 0, y->n),
                      of = block(x, from, count, 0, x->n), own = block(x, i, 1, 0, x->n);
        if (count > 0)
            lopk_matmul_loop(&to, &row, conj, &of, false);
        else
            lopk_zero(&to);
        if (unit) lopk_add(&to, &to, &own);
    }
}

/* y = a x for a block on the diagonal: trmm for several columns of simple layouts. */
static void corner_times(const lop_mat *y, const lop_mat *a, bool lower, bool unit, bool conj,
                         const lop_mat *x) {
    const lop_mat turned = flipped(a);
    if (y->n >= 4) {
        lopk_copy(y, x);
        if (lopk_trmm(conj ? &turned : a, lower != conj, unit, conj ? 'C' : 'N', y) == LOP_OK)
            return;
    }
    by_rows(y, a, lower, unit, conj, x);
}

static lop_status run(const lop_call *c) {
    enum { BLOCK = 64 };
    const lop_attr *how = &c->step->attr;
    const bool t = (how->i[2] & LOP_T) != 0, conj = (how->i[2] & LOP_C) != 0, unit = how->i[1] != 0,
               lower = (how->i[0] != 0) != t;
    const lop_mat *y = c->a[0], *x = c->a[1], a = t ? flipped(c->a[2]) : *c->a[2];
    if (!lop_is_blas(a.dt)) {
        by_rows(y, &a, lower, unit, conj, x);
        return LOP_OK;
    }
    for (int64_t i = 0; i < a.m; i += BLOCK) {
        const int64_t m = a.m - i < BLOCK ? a.m - i : BLOCK, from = lower ? 0 : i + m,
                      count = lower ? i : a.m - from;
        const lop_mat corner = block(&a, i, m, i, m), side = block(&a, i, m, from, count),
                      to = block(y, i, m, 0, y->n), own = block(x, i, m, 0, x->n),
                      rest = block(x, from, count, 0, x->n);
        corner_times(&to, &corner, lower, unit, conj && lop_is_complex(a.dt), &own);
        if (count > 0) lopk_gemm(&to, &side, conj, &rest, true);
    }
    return LOP_OK;
}
static lop_status apply(lop_emit *e, const lop_node *self, lop_mode mode, int x, int out) {
    lop_status st;
    int64_t m, k, batch;
    lop_slot_sizes(e, out, &m, &k, &batch);
    int in[2] = {x,
                 lop_emit_cast(e, lop_emit_value(e, self->child[0]), lop_slot_dtype(e, out), &st)};
    if (in[1] < 0) return st;
    lop_step *s = lop_emit_step(e, "trmm", run, out, 2, in);
    if (!s) return LOP_NOMEM;
    s->attr = (lop_attr){.i = {self->attr.i[0], self->attr.i[1], mode, 0}};
    s->flags = LOP_STEP_COLUMNS;
    s->flops = (double)m * (double)m * (double)k * (double)batch;
    return LOP_OK;
}

static void fill(const lop_mat *y, double value) {
    const lop_mat from = {&value, y->m, y->n, 0, 0, LOP_f64};
    lopk_copy(y, &from);
}

/* Line by line, along the shorter stride of the result. */
static lop_status run_dense(const lop_call *c) {
    const lop_attr *how = &c->step->attr;
    const bool t = c->a[0]->rs < c->a[0]->cs, lower = (how->i[0] != 0) != t;
    const lop_mat y = t ? flipped(c->a[0]) : *c->a[0], a = t ? flipped(c->a[1]) : *c->a[1];
    for (int64_t i = 0; i < y.m; i++) {
        const int64_t from = lower ? 0 : i, end = lower ? i + 1 : y.n;
        const lop_mat left = block(&y, i, 1, 0, from), own = block(&y, i, 1, from, end - from),
                      right = block(&y, i, 1, end, y.n - end), one = block(&y, i, 1, i, 1),
                      of = block(&a, i, 1, from, end - from);
        lopk_zero(&left);
        lopk_zero(&right);
        lopk_copy(&own, &of);
        if (how->i[1]) fill(&one, 1);
    }
    return LOP_OK;
}
static lop_status dense(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    int in = lop_emit_cast(e, lop_emit_value(e, self->child[0]), lop_slot_dtype(e, out), &st);
    if (in < 0) return st;
    lop_step *s = lop_emit_step(e, "triangle", run_dense, out, 1, &in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    return LOP_OK;
}

/* Diagonal i[0] from its element i[1] on; i[2]: 0 as it lies, 1 zeros, 2 ones. */
static lop_status run_part(const lop_call *c) {
    const lop_mat *y = c->a[0], *a = c->a[1];
    const int64_t k = c->step->attr.i[0], from = c->step->attr.i[1], what = c->step->attr.i[2];
    if (y->m == 0) return LOP_OK;
    if (what) {
        fill(y, what == 2);
        return LOP_OK;
    }
    lop_mat d = block(a, from + (k < 0 ? -k : 0), 1, from + (k > 0 ? k : 0), 1);
    d = (lop_mat){d.p, y->m, 1, a->rs + a->cs, 1, a->dt};
    lopk_copy(y, &d);
    return LOP_OK;
}
static lop_status part(lop_emit *e, const lop_node *self, int64_t k, int64_t from, int out) {
    const bool lower = self->attr.i[0] != 0;
    int in = lop_emit_value(e, self->child[0]);
    lop_step *s = lop_emit_step(e, "part", run_part, out, 1, &in);
    if (!s) return LOP_NOMEM;
    s->attr = (lop_attr){.i = {k, from, lower ? k > 0 : k < 0, 0}};
    if (k == 0 && self->attr.i[1]) s->attr.i[2] = 2;
    return LOP_OK;
}
static lop_status diagonal(lop_emit *e, const lop_node *self, int64_t k, int out) {
    return part(e, self, k, 0, out);
}
static lop_status element(lop_emit *e, const lop_node *self, int64_t i, int64_t j, int out) {
    return part(e, self, j - i, i < j ? i : j, out);
}

static double flops(const lop_node *self, int64_t k) {
    return (double)lop_rows(self) * (double)lop_rows(self) * (double)k;
}

static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    if (m != n) return LOP_UNABLE;
    lop_attr how = {.i = {lop_rng_range(&r->rng, 0, 2), lop_rng_range(&r->rng, 0, 2), 0, 0}};
    const lop_node *a;
    lop_status st = lop_rand_matrix(r, dt, n, n, &a);
    if (st != LOP_OK) return st;
    st = lop_node_make(r->ctx, &lop_op_triangular, &how, 1, &a, NULL, out, r->err);
    lop_node_unref(a);
    return st;
}

static lop_band bands(const lop_node *self, const lop_band *child) {
    (void)child;
    const bool lower = self->attr.i[0] != 0;
    return (lop_band){lower ? INT64_MAX : 0, lower ? 0 : INT64_MAX};
}

/* The triangle of G, without its diagonal where that is ones. */
static const lop_node *vjp(lop_vjp *v, const lop_node *self, int child, const lop_node *g) {
    (void)child;
    lop_attr attr = self->attr;
    const lop_node *dense = lop_vjp_dense(v, g);
    attr.i[1] = 0;
    const lop_node *half = lop_vjp_make(v, &lop_op_triangular, &attr, dense, NULL);
    if (!self->attr.i[1]) return half;
    const lop_node *diag = lop_vjp_make(v, &lop_op_diag, NULL, lop_vjp_diagonal(v, g, 0), NULL);
    return lop_vjp_sum(v, half, lop_vjp_times(v, -1, 0, diag));
}

const lop_op lop_op_triangular = {
    LOP_NAMED(triangular),
    .flags = LOP_FLAG_entries | LOP_FLAG_held | LOP_FLAG_at_once | LOP_FLAG_linear,
    .title = "Triangular",
    .cls = LOP_OPERATOR,
    .min = 1,
    .max = 1,
    .ints = 2,
    .param = {{"a", LOP_P_ARRAY, 2, NULL,
               "The array, shape (..., n, n), of which one triangle is read. Borrowed."},
              {"lower", LOP_P_FLAG, 0, "True", "The lower triangle or the upper one."},
              {"unit_diagonal", LOP_P_FLAG, 1, "False",
               "Whether the diagonal is ones; then it is not read either."}},
    .doc = {.brief = "One triangle of an array; what lies in the other is never read.",
            .cost = "Build: O(1), no copy. Product and solve with k columns: n^2 k flops.",
            .notes = "Solves substitute (BLAS trsm); an exact zero on the diagonal raises "
                     "LinAlgError then. The transpose is Triangular, of the same array.",
            .example = ">>> L = pl.Triangular(np.array([[2., np.nan], [1., 4.]]))\n>>> L @ "
                       "np.array([1., 1.]), pl.inv(L) @ np.array([2., 5.])\n(array([2., 5.]), "
                       "array([1., 1.]))"},
    .bands = bands,
    .infer = infer,
    .vjp = vjp,
    .apply = apply,
    .dense = dense,
    .diagonal = diagonal,
    .element = element,
    .flops = flops,
    .random = random_instance};
