/* kernel_lines.c: solves, determinants and diagonals of inverses of Matern kernels of points on a
 * line, and of sums of them, of diagonals and of one thin term: P^T Q P with a quasi-separable Q of
 * the sorted points (op_line_kernel.c), O(n) numbers where the dense form has n^2.
 *
 * Q is the matrix itself, entry by entry within the rounding of its recursion. What is not well
 * conditioned enough for L D L^H is found by the checks of its solves (op_quasiseparable_solve.c).
 * All is computed in double precision: in single the recursion would lose digits with the points
 * that lie between. */
#include "builds.h"
#include "rewrite/line_sums.h"

enum { GENERATORS = 4 };

typedef struct line {
    const lop_maker *mk;
    lop_line_sum sum;
    const lop_node *order, *q; /* owned */
} line;

static void line_close(line *l) {
    lop_node_unref(l->order);
    lop_node_unref(l->q);
}

/* One kernel as the kind, or its multiple. Owned. */
static lop_status quasi_of(const line *l, const lop_node *term, const lop_node **out) {
    const lop_node *k = term->op == &lop_op_scaled ? term->child[0] : term, *g[GENERATORS] = {NULL},
                   *child[4], *q = NULL, *many = NULL;
    lop_line_kernel of;
    lop_status st = LOP_OK;
    int n = 0;
    if (!lop_kernel_line(k, &of)) return LOP_NOMATCH;
    child[n++] = of.points;
    child[n++] = l->order;
    if (of.variance) child[n++] = of.variance;
    if (of.length) child[n++] = of.length;
    lop_attr attr = {.i = {of.order, 0, (of.variance ? 1 : 0) | (of.length ? 2 : 0), 0}};
    for (int i = 0; st == LOP_OK && i < GENERATORS; i++) {
        attr.i[1] = i;
        st = lop_make_op(l->mk, &lop_op_line_generators, &attr, n, child, NULL, &g[i]);
    }
    if (st == LOP_OK) st = lop_make(l->mk, "quasiseparable", NULL, GENERATORS, g, NULL, &q);
    for (int i = 0; i < GENERATORS; i++) lop_node_unref(g[i]);
    if (st == LOP_OK && k != term) {
        st = lop_make1(l->mk, &lop_op_scaled, &term->attr, q, &many);
        const lop_match m = {.root = many};
        if (st == LOP_OK) st = lop_build_quasi_scaled(&m, l->mk, out);
        lop_node_unref(many);
        lop_node_unref(q);
        return st;
    }
    *out = q;
    return st;
}

/* l->q <- the sum with `b`, owned there in any case. */
static lop_status add_to(line *l, const lop_node *b,
                         lop_status (*how)(const lop_match *, const lop_maker *,
                                           const lop_node **)) {
    const lop_node *both = NULL, *sum = NULL;
    lop_status st = lop_make2(l->mk, &lop_op_sum, NULL, l->q, b, &both);
    const lop_match m = {.root = both};
    if (st == LOP_OK) st = how(&m, l->mk, &sum);
    if (st == LOP_OK) {
        lop_node_unref(l->q);
        l->q = sum;
    }
    lop_node_unref(both);
    lop_node_unref(b);
    return st;
}

/* What stands on a diagonal, in the order of the points; of an identity it is the same. Owned. */
static lop_status sorted_diagonal(const line *l, const lop_node *d, const lop_node **out) {
    const lop_attr rows = {.i = {0, 0, 0, 0}}, wide = {.i = {0, 0, 0, (int64_t)LOP_f64 + 1}};
    const bool times = d->op == &lop_op_scaled;
    const lop_node *a = times ? d->child[0] : d, *v = NULL, *cast = NULL, *diag = NULL;
    if (a->op != &lop_op_diag) {
        *out = lop_node_ref(d);
        return LOP_OK;
    }
    lop_status st = lop_make1(l->mk, &lop_op_cast, &wide, a->child[0], &cast);
    if (st == LOP_OK) st = lop_make2(l->mk, &lop_op_array_slice, &rows, cast, l->order, &v);
    if (st == LOP_OK) st = lop_make1(l->mk, &lop_op_diag, NULL, v, &diag);
    if (st == LOP_OK && times) st = lop_make1(l->mk, &lop_op_scaled, &d->attr, diag, out);
    if (st == LOP_OK && !times) *out = lop_node_ref(diag);
    const lop_node *gone[] = {v, cast, diag};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* The rows of a factor of the thin term in the order of the points. Owned. */
static lop_status sorted_rows(const line *l, const lop_node *u, const lop_node **out) {
    const lop_attr rows = {.i = {0, 0, 0, 0}};
    return lop_make2(l->mk, &lop_op_sliced, &rows, u, l->order, out);
}
/* l->q <- Q + U C V^H, all in that order. */
static lop_status add_low(line *l) {
    const lop_node *low = l->sum.low, *child[4] = {l->q}, *u = NULL, *v = NULL, *all = NULL;
    const int at = low->op == &lop_op_lowrankupdate;
    const bool same = low->child[at] == low->child[at + 1];
    lop_status st = sorted_rows(l, low->child[at], &u);
    if (st == LOP_OK && same) v = lop_node_ref(u);
    if (st == LOP_OK && !same) st = sorted_rows(l, low->child[at + 1], &v);
    child[1] = u;
    child[2] = v;
    if (low->n > at + 2) child[3] = low->child[at + 2];
    if (st == LOP_OK)
        st = lop_make(l->mk, "lowrankupdate", NULL, low->n > at + 2 ? 4 : 3, child, NULL, &all);
    if (st == LOP_OK) {
        lop_node_unref(l->q);
        l->q = all;
    }
    lop_node_unref(u);
    lop_node_unref(v);
    return st;
}

/* The order of `a` and its Q; line_close gives them up in any case. */
static lop_status line_open(line *l, const lop_maker *mk, const lop_node *a) {
    const lop_node *next = NULL;
    *l = (line){.mk = mk};
    if (!lop_line_update_read(&l->sum, a)) return LOP_NOMATCH;
    lop_status st =
        lop_make_op(mk, &lop_op_line_order, NULL, l->sum.sets, l->sum.points, NULL, &l->order);
    if (st == LOP_OK) st = quasi_of(l, l->sum.kernel[0], &l->q);
    for (int i = 1; st == LOP_OK && i < l->sum.kernels; i++) {
        st = quasi_of(l, l->sum.kernel[i], &next);
        if (st == LOP_OK) st = add_to(l, next, lop_build_quasi_sum);
    }
    for (int i = 0; st == LOP_OK && i < l->sum.diagonals; i++) {
        st = sorted_diagonal(l, l->sum.diagonal[i], &next);
        if (st == LOP_OK) st = add_to(l, next, lop_build_quasi_plus);
    }
    if (st == LOP_OK && l->sum.low) st = add_low(l);
    return st;
}

/* Rows of `x` in the order of the points, or (`back`) put back; cast to `dt`. Owned. */
static lop_status ordered(const line *l, const lop_node *x, bool back, lop_dtype dt,
                          const lop_node **out) {
    const lop_attr rows = {.i = {0, 0, 0, 0}}, to = {.i = {0, 0, 0, (int64_t)dt + 1}};
    const lop_node *cast = NULL, *index = NULL;
    lop_status st = lop_make1(l->mk, &lop_op_cast, &to, x, &cast);
    if (st == LOP_OK && back)
        st = lop_make1(l->mk, &lop_op_inverse_permutation, NULL, l->order, &index);
    if (st == LOP_OK && !back) index = lop_node_ref(l->order);
    if (st == LOP_OK) st = lop_make2(l->mk, &lop_op_array_slice, &rows, cast, index, out);
    lop_node_unref(cast);
    lop_node_unref(index);
    return st;
}

/* `value`, owned there, where all sets of points are one, else what `dense` makes of the dense form
 * of `a` in `dt`. Owned in *out. */
typedef lop_status (*dense_way)(const lop_match *m, const lop_maker *mk, const lop_node *dense,
                                const lop_node **out);
static lop_status where_alike(const line *l, const lop_match *m, const lop_node *a, lop_dtype dt,
                              dense_way dense, const lop_node *value, const lop_node **out) {
    const lop_attr of = {.i = {0, 0, 0, (int64_t)dt + 1}};
    const lop_node *all = NULL, *alt = NULL;
    if (l->sum.sets == 1) {
        *out = value;
        return LOP_OK;
    }
    lop_status st = lop_make1(l->mk, &lop_op_todense, &of, a, &all);
    if (st == LOP_OK) st = dense(m, l->mk, all, &alt);
    if (st == LOP_OK) st = lop_make2(l->mk, &lop_op_line_alike, NULL, value, alt, out);
    lop_node_unref(all);
    lop_node_unref(alt);
    lop_node_unref(value);
    return st;
}
static const lop_attr tried = {.i = {1, 0, 0, 0}}; /* Cholesky; LU where it fails */

static lop_status dense_solve(const lop_match *m, const lop_maker *mk, const lop_node *dense,
                              const lop_node **out) {
    return lop_make2(mk, &lop_op_cholesky_solve, &tried, dense, m->root->child[1], out);
}
LOP_BUILD(line_solve) {
    const lop_dtype dt = m->root->dtype, wide = lop_is_complex(dt) ? LOP_c128 : LOP_f64;
    const lop_node *x = NULL, *y = NULL, *z = NULL;
    line l;
    if (!lop_is_blas(dt)) return LOP_NOMATCH;
    lop_status st = line_open(&l, mk, m->root->child[0]);
    if (st == LOP_OK) st = ordered(&l, m->root->child[1], false, wide, &x);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_solve, NULL, l.q, x, &y);
    if (st == LOP_OK) st = ordered(&l, y, true, dt, &z);
    if (st == LOP_OK) st = where_alike(&l, m, m->root->child[0], dt, dense_solve, z, out);
    lop_node_unref(x);
    lop_node_unref(y);
    line_close(&l);
    return st;
}

static lop_status dense_det(const lop_match *m, const lop_maker *mk, const lop_node *dense,
                            const lop_node **out) {
    (void)m;
    return lop_make1(mk, &lop_op_cholesky_det, NULL, dense, out);
}
LOP_BUILD(line_det) {
    const lop_attr wide = {.i = {0, 0, 0, (int64_t)LOP_f64 + 1}};
    const lop_node *det = NULL;
    line l;
    if (m->root->dtype != LOP_f64) return LOP_NOMATCH; /* of a complex factor */
    lop_status st = line_open(&l, mk, m->root->child[0]);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scaledet, &wide, l.q, &det);
    if (st == LOP_OK) st = where_alike(&l, m, m->root->child[0], LOP_f64, dense_det, det, out);
    line_close(&l);
    return st;
}

static lop_status dense_diagonal(const lop_match *m, const lop_maker *mk, const lop_node *dense,
                                 const lop_node **out) {
    const lop_attr main = {.i = {0, 0, 0, 0}};
    const lop_node *a = NULL;
    lop_status st = lop_make1(mk, &lop_op_dense, NULL, dense, &a);
    if (st == LOP_OK) st = lop_inverse_diagonal(mk, a, &main, m->root->dtype, out);
    lop_node_unref(a);
    return st;
}
LOP_BUILD(line_inverse_diagonal) {
    const lop_dtype dt = m->root->dtype;
    const lop_attr wide = {.i = {0, 0, 0, (int64_t)LOP_f64 + 1}};
    const lop_node *a = m->root->child[0]->child[0], *inverse = NULL, *d = NULL, *all = NULL;
    line l;
    if (dt != LOP_f64 && dt != LOP_f32) return LOP_NOMATCH;
    lop_status st = line_open(&l, mk, a);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_inverse, NULL, l.q, &inverse);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_diagonal, &wide, inverse, &d);
    if (st == LOP_OK) st = ordered(&l, d, true, dt, &all);
    if (st == LOP_OK) st = where_alike(&l, m, a, dt, dense_diagonal, all, out);
    lop_node_unref(inverse);
    lop_node_unref(d);
    line_close(&l);
    return st;
}
