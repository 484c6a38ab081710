/* op_kron.c: Kronecker product of any number of operators, A1 (x) A2 (x) ... .
 *
 * y = (A1 (x) ... (x) Ap) x by one product a factor on x seen as a p-way array (Van Loan 2000,
 * section 1), without a transposing copy; each factor is any operator. The order of the factors is
 * the one with the fewest flops: sorted by 1/n_i - 1/m_i (exchange argument on two neighbours).
 * Cost: sum over factors of (product with L_i R_i k columns). Plain dense factors are one step
 * here, in cache-sized blocks (kernels/kron/k_kron.c); otherwise rules (rules/kron.c) take the
 * factors one by one, each by its own way. */
#include "ops/projections/projections.h"
#include "expr/random_instance.h"
#include "kernels/kron/k_kron.h"

static lop_status infer(lop_node *n, lop_err *err) {
    int64_t rows = 1, cols = 1;
    for (int i = 0; i < n->n; i++) {
        const lop_node *f = n->child[i];
        if (f->op->cls != LOP_OPERATOR) return lop_fail(err, LOP_DIM, "kron takes operators");
        if (!lop_mul_ok(rows, lop_rows(f), &rows) || !lop_mul_ok(cols, lop_cols(f), &cols))
            return lop_fail(err, LOP_OVERFLOW,
                            "the sizes of this Kronecker product do not fit 64 bits");
    }
    return lop_node_over(n, rows, cols, err);
}

static lop_truth trait(const lop_node *n, lop_trait t) {
    if (t == LOP_ZERO) return LOP_UNKNOWN;
    for (int i = 0; i < n->n; i++)
        if (lop_node_trait(n->child[i], t) != LOP_TRUE) return LOP_UNKNOWN;
    return LOP_TRUE;
}

static double flops(const lop_node *self, int64_t k) {
    double total = 0, rows = 1, cols = (double)lop_cols(self);
    for (int i = 0; i < self->n; i++) {
        const lop_node *f = self->child[i];
        cols /= lop_cols(f) > 0 ? (double)lop_cols(f) : 1;
        total += 2 * rows * (double)lop_rows(f) * (double)lop_cols(f) * cols * (double)k;
        rows *= (double)lop_rows(f);
    }
    return total;
}

/* -- plain dense factors: one step. attr.i[0], i[1]: the order of the factors, 8 a word. */

/* A factor's array, and its mode; NULL where it is no plain matrix. */
static const lop_node *plain(const lop_node *f, lop_mode *mode) {
    int64_t m = LOP_N;
    for (; f->op == &lop_op_view; f = f->child[0]) m ^= f->attr.i[0];
    *mode = (lop_mode)m;
    return f->op == &lop_op_dense && lop_nbatch(f) == 0 ? f->child[0] : NULL;
}

bool lop_kron_is_plain(const lop_node *self, lop_dtype dt) {
    lop_mode mode;
    if (self->n > LOP_MAXARG - 2 || self->n > LOPK_KRON_MAX || !lop_is_blas(dt)) return false;
    for (int i = 0; i < self->n; i++) {
        const lop_node *a = plain(self->child[i], &mode);
        if (!a || (a->dtype != dt && a->n > 0) || a->weak) return false;
    }
    return true;
}

static void set_factor(lopk_kron *g, int i, const lop_mat *a, int64_t mode) {
    g->a[i] = mode & LOP_T ? (lop_mat){a->p, a->n, a->m, a->cs, a->rs, a->dt} : *a;
    g->conj[i] = (mode & LOP_C) != 0;
}

static lop_status run_kron(const lop_call *c) {
    const lop_attr *t = &c->step->attr;
    lopk_kron g;
    g.n = c->step->n - 2;
    g.dt = c->a[0]->dt;
    g.k = c->a[0]->n;
    for (int i = 0; i < g.n; i++) {
        set_factor(&g, i, c->a[i + 2], t->i[2] >> (2 * i) & 3);
        g.order[i] = (int8_t)(t->i[i / 8] >> (8 * (i % 8)) & 127);
    }
    lopk_kron_run(&g, c->a[0], c->a[1], c->step->scratch ? c->scratch : NULL);
    return LOP_OK;
}

static lop_status apply(lop_emit *e, const lop_node *self, lop_mode mode, int x, int out) {
    lop_status st;
    lop_dtype dt = lop_slot_dtype(e, out);
    if (mode != LOP_N || !lop_kron_is_plain(self, dt)) return LOP_UNABLE;
    int in[LOP_MAXARG] = {x};
    int64_t batch, least = INT64_MAX;
    lopk_kron g = {.n = self->n, .dt = dt};
    lop_attr t = {.re = 0};
    lop_slot_sizes(e, out, NULL, &g.k, &batch);
    for (int i = 0; i < g.n; i++) {
        lop_mode m;
        in[i + 1] = lop_emit_cast(e, lop_emit_value(e, plain(self->child[i], &m)), dt, &st);
        if (in[i + 1] < 0) return st;
        lop_mat a = {.dt = dt};
        lop_slot_sizes(e, in[i + 1], &a.m, &a.n, NULL);
        set_factor(&g, i, &a, m);
        least = a.m < least ? a.m : least;
        least = a.n < least ? a.n : least;
        t.i[2] |= (int64_t)m << (2 * i);
    }
    lopk_kron_order(&g);
    st = lopk_kron_plan(&g);
    if (st != LOP_OK)
        return lop_fail(lop_emit_err(e), st,
                        "an intermediate of this Kronecker product does not fit 64 bits");
    for (int i = 0; i < g.n; i++) t.i[i / 8] |= (int64_t)g.order[i] << (8 * (i % 8));
    in[0] = lop_emit_in_c_order(e, x, &st);
    if (in[0] < 0) return st;
    lop_emit_c_order(e, out);
    lop_step *s = lop_emit_step(e, "kron", run_kron, out, g.n + 1, in);
    if (!s) return LOP_NOMEM;
    s->attr = t;
    s->scratch = (size_t)g.room;
    s->flops = g.flops * (double)batch;
    if (least >= LOP_BLOCKED / 4) s->flags |= LOP_STEP_GEMM;
    if (g.moved * (double)batch > s->bytes) s->bytes = g.moved * (double)batch;
    return LOP_OK;
}

/* Two or three factors whose sizes multiply to m and n. */
static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    const lop_node *f[3] = {0};
    int64_t p = m % 2 == 0 && m ? 2 : 1, q = n % 2 == 0 && n ? 2 : 1;
    int count = 3;
    lop_status st = lop_rand_dense(r, p, q, dt, &f[0]);
    if (st == LOP_OK) st = lop_rand_dense(r, m / p, 1, dt, &f[1]);
    if (st == LOP_OK) st = lop_rand_dense(r, 1, n / q, dt, &f[2]);
    if (st == LOP_OK) st = lop_node_make(r->ctx, &lop_op_kron, NULL, count, f, NULL, out, r->err);
    for (int i = 0; i < 3; i++) lop_node_unref(f[i]);
    return st;
}

/* A band of square blocks, the last of which reach as far as their own. */
static lop_band bands(const lop_node *self, const lop_band *child) {
    lop_band all = child[0];
    int64_t below, above;
    for (int i = 1; i < self->n; i++) {
        const int64_t q = lop_rows(self->child[i]);
        if (!lop_is_square(self->child[i]) || !lop_mul_ok(all.l, q, &below) ||
            !lop_mul_ok(all.u, q, &above))
            return (lop_band){INT64_MAX, INT64_MAX};
        all = (lop_band){below + child[i].l, above + child[i].u};
    }
    return all;
}

/* G without the other factors' places, each contracted with its own. Of the inverse's adjoint, the
 * cotangent of log|det|, that is the factor's own inverse. */
static const lop_node *vjp(lop_vjp *v, const lop_node *self, int child, const lop_node *g) {
    const lop_node *own = g->op == &lop_op_view && g->attr.i[0] == LOP_H ? g->child[0] : NULL;
    if (own && own->op == &lop_op_inverse && own->child[0] == self) {
        double others = 1;
        for (int i = 0; i < self->n; i++)
            if (!lop_is_square(self->child[i])) own = NULL;
        for (int i = 0; i < self->n; i++)
            if (i != child) others *= (double)lop_rows(self->child[i]);
        if (own)
            return lop_vjp_times(v, others, 0,
                                 lop_vjp_view(v, lop_vjp_inverse(v, self->child[child]), LOP_H));
    }
    for (int i = self->n - 1; g && i > child; i--)
        g = lop_vjp_contracted(v, g, self->child[i], true);
    for (int i = 0; g && i < child; i++) g = lop_vjp_contracted(v, g, self->child[i], false);
    return g;
}

const lop_op lop_op_kron = {
    LOP_NAMED(kron),
    .flags = LOP_FLAG_of_parts | LOP_FLAG_joins | LOP_FLAG_closes | LOP_FLAG_meets |
             LOP_FLAG_sliced_at_once | LOP_FLAG_multilinear,
    .title = "Kron",
    .cls = LOP_OPERATOR,
    .min = 1,
    .max = -1,
    .param = {{"ops", LOP_P_OPERATORS, 0, NULL,
               "The factors, operators or arrays, of any shapes; or one list of them."}},
    .doc = {.brief = "Kronecker product of any number of operators.",
            .extended = "Never forms the product: memory is that of the factors.",
            .cost = "Build: O(number of factors). Product: one product a factor, in the cheapest "
                    "order; square p factors of "
                    "size n: 2 p n^(p+1) flops.",
            .notes = "Kron @ Kron of factors that fit, the transpose, the inverse of square "
                     "factors, trace and diagonal are "
                     "taken factor by factor. Kron + c I, and the sum of two Krons where one has "
                     "positive definite factors, are solved by the factors' eigenvectors.",
            .limits =
                "Beside a Diag that is no Kron, and in sums of Krons that no common basis "
                "makes diagonal, solves take LU of the dense form; pl.preconditioner knows a "
                "Kron and a Diag for the iterative methods. An ill-conditioned factor is told "
                "of, an ill-conditioned product of good factors is not.",
            .example = ">>> K = pl.Kron(np.eye(2), np.array([[1., 2.], [3., 4.]]))\n>>> K @ "
                       "np.ones(4)\narray([3., 7., 3., 7.])"},
    .bands = bands,
    .infer = infer,
    .vjp = vjp,
    .trait = trait,
    .apply = apply,
    .flops = flops,
    .random = random_instance};
