/* krons_beside_runs.c: A (x) B + diag(d) whose d is constant in runs, or repeats itself, as the
 * noise of a grid does that differs by row or by column:
 *
 *   d = v (x) 1   A (x) B + diag(v) (x) I        d = 1 (x) w   A (x) B + I (x) diag(w)
 *
 * sums of Krons, which have eigenvectors of the factors (solve_eigenbasis.c) where a diagonal has
 * none. That it is so is looked at when it runs, before anything is factored (op_run_values.c), and
 * is exact; else the dense form is factored, as of any other diagonal. A solve that has a way by
 * iteration (py/run/py_by_price.c) is left to it: a plan says the price of its first branch. */
#include "sum_of_krons.h"
#include "builds.h"
#include "expr/properties.h"

/* Rows: below, the dense form is as quick (2026-11, EPYC: 0.1 ms at 100, five times at 256); a
 * factor of them takes less than what iterating waits for. */
enum { LEAST_ROWS = 200, MOST_SOLVED = 640 };

typedef struct runs {
    const lop_maker *mk;
    lop_dtype dt;
    const lop_node *sum, *kron, *d; /* borrowed; d a vector */
    int64_t p, q;
} runs;

/* The Kron of two that a sum has beside a real Diag; false: it is no such sum. */
static bool read(runs *r, const lop_maker *mk, lop_dtype dt, const lop_node *sum) {
    *r = (runs){.mk = mk, .dt = dt, .sum = sum};
    for (int i = 0; i < 2; i++) {
        const lop_node *k = sum->child[i], *diag = sum->child[1 - i], *in = k;
        while (in->op == &lop_op_scaled) in = in->child[0];
        if (in->op != &lop_op_kron || in->n != 2 || diag->op != &lop_op_diag) continue;
        r->kron = k;
        r->d = diag->child[0];
        r->p = lop_rows(in->child[0]);
        r->q = lop_rows(in->child[1]);
    }
    return r->kron && (sum->ctx->alike != 0 || lop_rows(sum) >= LEAST_ROWS) && lop_is_blas(dt) &&
           lop_nbatch(sum) == 0 && r->d->shape.ndim == 1 && r->p > 1 && r->q > 1 &&
           lop_cols(r->d) == r->p * r->q && !r->d->weak &&
           (r->d->dtype == LOP_f32 || r->d->dtype == LOP_f64);
}

/* v of diag(v) (x) I, or (`tiled`) w of I (x) diag(w). Owned. */
static lop_status values(const runs *r, bool tiled, const lop_node **v) {
    const lop_attr every = {
        .i = {0, 0, tiled ? 1 : r->q, tiled ? r->q : r->p}}; /* start, step, how many */
    return lop_make1(r->mk, &lop_op_run_values, &every, r->d, v);
}

/* A (x) B + diag(v) (x) I. Owned. */
static lop_status as_krons(const runs *r, bool tiled, const lop_node *v, const lop_node **out) {
    const lop_node *diag = NULL, *eye = NULL, *noise = NULL;
    lop_node like = {.shape = {.ndim = 2}, .dtype = r->d->dtype, .core = 2};
    like.shape.dim[0] = like.shape.dim[1] = tiled ? r->p : r->q;
    lop_status st = lop_make1(r->mk, &lop_op_diag, NULL, v, &diag);
    if (st == LOP_OK) st = lop_make_op(r->mk, &lop_op_identity, NULL, 0, NULL, &like, &eye);
    if (st == LOP_OK)
        st = lop_make2(r->mk, &lop_op_kron, NULL, tiled ? eye : diag, tiled ? diag : eye, &noise);
    if (st == LOP_OK) st = lop_make2(r->mk, &lop_op_sum, NULL, r->kron, noise, out);
    const lop_node *gone[] = {diag, eye, noise};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* What the root asks, of `sum` in place of what stands in it. */
static lop_status asked_of(const lop_match *m, const lop_maker *mk, const lop_node *sum,
                           const lop_node **out) {
    const lop_node *root = m->root, *inverse = NULL;
    const bool below = root->child[0]->op == &lop_op_inverse;
    lop_status st = below ? lop_make1(mk, &lop_op_inverse, NULL, sum, &inverse) : LOP_OK;
    const lop_node *child[2] = {below ? inverse : sum, root->n > 1 ? root->child[1] : NULL};
    if (st == LOP_OK) st = lop_make_op(mk, root->op, &root->attr, root->n, child, NULL, out);
    lop_node_unref(inverse);
    return st;
}

/* The value of the sum of Krons where d is what it takes it for, else *alt, which it takes over and
 * replaces. LOP_OK also where eigenvectors do not pay. */
static lop_status instead(const lop_match *m, const runs *r, bool tiled, const lop_node **alt,
                          bool *found) {
    const lop_node *v = NULL, *krons = NULL, *value = NULL, *out = NULL;
    lop_kron_sum s;
    lop_status st = values(r, tiled, &v);
    if (st == LOP_OK) st = as_krons(r, tiled, v, &krons);
    if (st == LOP_OK && krons->dtype == r->sum->dtype &&
        lop_kron_sum_read(&s, r->mk, r->dt, krons)) {
        st = asked_of(m, r->mk, krons, &value);
        const lop_node *child[3] = {v, value, *alt};
        if (st == LOP_OK) st = lop_make_op(r->mk, &lop_op_where_runs, NULL, 3, child, NULL, &out);
    }
    if (out) {
        lop_node_unref(*alt);
        *alt = out;
        *found = true;
    }
    const lop_node *gone[] = {v, krons, value};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* By the dense form. Owned. */
static lop_status densely(const lop_match *m, const runs *r, const lop_node **out) {
    const lop_attr d = {.i = {0, 0, 0, (int64_t)r->dt + 1}}, tried = {.i = {1, 0, 0, 0}};
    const lop_node *dense = NULL, *root = m->root;
    if (root->op == &lop_op_diagonal)
        return lop_inverse_diagonal(r->mk, r->sum, &root->attr, r->dt, out);
    lop_status st = lop_make1(r->mk, &lop_op_todense, &d, r->sum, &dense);
    if (st == LOP_OK && root->op == &lop_op_solve)
        st = lop_make2(r->mk, &lop_op_cholesky_solve, &tried, dense, root->child[1], out);
    else if (st == LOP_OK)
        st = lop_make1(r->mk, &lop_op_cholesky_det, &tried, dense, out);
    lop_node_unref(dense);
    return st;
}

/* Of a solve, a determinant or the diagonal of the inverse. */
LOP_BUILD(kron_beside_runs) {
    const lop_node *root = m->root, *inner = root->child[0], *alt = NULL;
    const bool below = inner->op == &lop_op_inverse;
    const lop_dtype dt =
        root->op == &lop_op_scaledet ? (lop_dtype)(root->attr.i[3] - 1) : root->dtype;
    bool found = false;
    runs r;
    if (!read(&r, mk, dt, below ? inner->child[0] : inner) || !lop_infer_hermitian(r.sum) ||
        (below && root->attr.i[0] != 0) ||
        (root->op == &lop_op_solve && lop_rows(r.sum) > MOST_SOLVED))
        return LOP_NOMATCH;
    lop_status st = densely(m, &r, &alt);
    if (st == LOP_OK) st = instead(m, &r, true, &alt, &found);
    if (st == LOP_OK) st = instead(m, &r, false, &alt, &found);
    if (st == LOP_OK && found) *out = lop_node_ref(alt);
    lop_node_unref(alt);
    return st == LOP_OK && !found ? LOP_NOMATCH : st;
}
