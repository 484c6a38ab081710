/* toeplitz_hankel.c: solves and determinants of Toeplitz and Hankel matrices (op_toeplitz_solve.c),
 * and Toeplitz + c I.
 *
 * The dense form stays where it is thought to be cheaper: for small sizes, and for so many right
 * sides that its rate makes up for its factor. */
#include "builds.h"
#include "expr/properties.h"
#include "low_rank_woodbury.h"
#include "ops/projections/projections.h"
#include "rewrite/costs.h"

#include <math.h>

#define HOLE(m, c) ((m)->node[(c) - 'a'])

static lop_status widened(const lop_maker *mk, const lop_node *a, lop_dtype dt,
                          const lop_node **out) {
    if (!lop_is_complex(a->dtype)) dt = lop_dtype_real(dt);
    lop_attr d = {.i = {0, 0, 0, (int64_t)dt + 1}};
    if (a->n > 0 && a->dtype != dt) return lop_make1(mk, &lop_op_cast, &d, a, out);
    *out = lop_node_ref(a);
    return LOP_OK;
}

static bool is_tip(const lop_node *a) {
    while (a->op == &lop_op_scale || a->op == &lop_op_cast) a = a->child[0];
    return a->op == &lop_op_first_unit;
}
/* One expression, written twice; false where it is deep. */
static bool alike(const lop_node *a, const lop_node *b, int depth) {
    if (a == b) return true;
    if (depth == 0 || a->op != b->op || a->serial != b->serial || a->n != b->n || a->n == 0 ||
        a->dtype != b->dtype || !lop_attr_equal(&a->attr, &b->attr))
        return false;
    for (int i = 0; i < a->n; i++)
        if (!alike(a->child[i], b->child[i], depth - 1)) return false;
    return true;
}
/* Are these the first column and row of rows and columns alike of one Toeplitz matrix? */
static bool is_principal(const lop_node *c, const lop_node *r) {
    const int64_t *down = c->attr.i, *right = r->attr.i;
    return c->op == &lop_op_diagrun && r->op == &lop_op_diagrun && c->child[0] == r->child[0] &&
           c->child[1] == r->child[1] && down[0] == 0 && right[0] == 0 && right[1] == -down[1];
}
/* Is r the adjoint of c by how it is written, and its solve found by half the work? c[0] counts
 * for little: the kernel looks itself. */
static bool hermitian(const lop_node *c, const lop_node *r) {
    while (c->op == &lop_op_add && (is_tip(c->child[0]) || is_tip(c->child[1]))) /* T + c I */
        c = c->child[is_tip(c->child[0]) ? 1 : 0];
    while (c->op == &lop_op_scale && r->op == &lop_op_scale && c->attr.im == 0 &&
           lop_attr_equal(&c->attr, &r->attr)) {
        c = c->child[0];
        r = r->child[0];
    }
    if (is_principal(c, r)) return hermitian(c->child[0], c->child[1]);
    return lop_is_complex(c->dtype) ? r->op == &lop_op_conjugate && alike(r->child[0], c, 4)
                                    : alike(c, r, 4);
}

/* Below these sizes LAPACK is as fast on arrays it has not seen, and faster on those it has. */
enum { FEWEST = 40, FEWEST_GENERAL = 96 };

/* Seconds, in the units of the cost table: a factor by recursion takes n^2 / 4 ns, each of k
 * columns 6 n log2(2 n) ns; the dense way has its usual price, and n^2 ns for the dense form. Both
 * leave out some 15 us that plans take here and LAPACK takes there. Measured 2026-11-21 on an AMD
 * EPYC (Zen 3), one thread, by benchmarks/kind_solves.py. */
static double fast_seconds(const lop_node *op, bool own, bool is_complex, int64_t k) {
    const double n = (double)lop_rows(op), by = is_complex ? 4 : 1;
    return 1e-9 * (n * n / (own ? 4 : 2) * by + 6 * n * log2(2 * n) * sqrt(by) * (double)k);
}
static bool pays(const lop_maker *mk, const lop_node *op, lop_dtype dt, bool own, int64_t k) {
    const lop_costs *c = lop_costs_of(mk->ctx);
    if (mk->ctx->toeplitz) return lop_rows(op) >= mk->ctx->toeplitz;
    const lop_price factor = lop_price_factor(c, dt, op, 1),
                    back = lop_price_solve(c, dt, op, k, 1);
    return lop_rows(op) >= (own ? FEWEST : FEWEST_GENERAL) &&
           fast_seconds(op, own, lop_is_complex(op->dtype), k) <
               factor.seconds + back.seconds + 1e-9 * (double)lop_rows(op) * (double)lop_rows(op);
}
/* A determinant of what is not known to be Hermitian is an elimination's: 8 n^2 ns. `beside`: a
 * diagonal of the inverse is found by the recursion in any case. */
static bool det_pays(const lop_maker *mk, const lop_node *op, lop_dtype dt, bool own, bool beside) {
    const double n = (double)lop_rows(op);
    if (mk->ctx->toeplitz) return lop_rows(op) >= mk->ctx->toeplitz;
    if (beside) return pays(mk, op, dt, own, 1);
    const lop_price factor = lop_price_factor(lop_costs_of(mk->ctx), dt, op, 1);
    return lop_rows(op) >= FEWEST && 1e-9 * n * n * (own ? 0.25 : 8) < factor.seconds;
}

/* What other solves with `a`, seen in `mode`, and (x NULL) its determinant are by the dense form:
 * of the factor that all of them share. */
static lop_status by_dense(const lop_maker *mk, const lop_node *a, int64_t mode,
                           const lop_attr *value, const lop_node *x, const lop_node **out) {
    const bool own = lop_infer_hermitian(a) && mode == LOP_N;
    const lop_attr tried = {.i = {1, 0, 0, 0}}, seen = {.i = {mode, 0, 0, 0}};
    const lop_op *ops[2][2] = {{&lop_op_lu_det, &lop_op_lu_solve},
                               {&lop_op_cholesky_det, &lop_op_cholesky_solve}};
    const lop_node *child[2] = {NULL, x};
    lop_status st = lop_make1(mk, &lop_op_todense, value, a, &child[0]);
    if (st != LOP_OK) return st;
    st = lop_make_op(mk, ops[own][x != NULL],
                     own ? &tried
                     : x ? &seen
                         : NULL,
                     x ? 2 : 1, child, NULL, out);
    lop_node_unref(child[0]);
    return st;
}

static lop_status solve(const lop_match *m, const lop_maker *mk, bool hankel,
                        const lop_node **out) {
    const lop_node *top = m->root->child[0], *a = top->op == &lop_op_view ? top->child[0] : top,
                   *x = m->root->child[1], *child[4] = {NULL};
    const lop_dtype dt = m->root->dtype;
    const bool own = !hankel && hermitian(a->child[0], a->child[1]);
    lop_attr d = {.i = {0, 0, 0, (int64_t)dt + 1}},
             how = {.i = {top == a ? LOP_N : top->attr.i[0], hankel, 0, 0}};
    if (!lop_is_square(a) || !lop_is_blas(dt) || !pays(mk, a, dt, own, lop_cols(x)))
        return LOP_NOMATCH;
    lop_status st = widened(mk, a->child[0], dt, &child[0]);
    if (st == LOP_OK && hankel) child[1] = lop_node_ref(child[0]);
    if (st == LOP_OK && !hankel) st = widened(mk, a->child[1], dt, &child[1]);
    if (st == LOP_OK) st = by_dense(mk, a, how.i[0], &d, x, &child[3]);
    child[2] = lop_node_ref(x);
    if (st == LOP_OK) st = lop_make(mk, "toeplitz_solve", &how, 4, child, NULL, out);
    for (int i = 0; i < 4; i++) lop_node_unref(child[i]);
    return st;
}
LOP_BUILD(toeplitz_solve) { return solve(m, mk, false, out); }
LOP_BUILD(hankel_solve) { return solve(m, mk, true, out); }

static lop_status det(const lop_match *m, const lop_maker *mk, bool hankel, const lop_node **out) {
    const lop_node *a = m->root->child[0], *child[3] = {NULL};
    const lop_dtype dt = (lop_dtype)(m->root->attr.i[3] ? m->root->attr.i[3] - 1 : a->dtype);
    const lop_attr how = {.i = {hankel, lop_rows(a), 0, 0}},
                   value = {.i = {0, 0, 0, m->root->attr.i[3]}};
    const bool own = !hankel && hermitian(a->child[0], a->child[1]);
    if (!lop_is_square(a) || !lop_is_blas(dt) || lop_is_complex(dt) != lop_is_complex(a->dtype) ||
        !det_pays(mk, a, dt, own, m->root->attr.i[2] != 0))
        return LOP_NOMATCH;
    lop_status st = widened(mk, a->child[0], dt, &child[0]);
    if (st == LOP_OK && hankel) child[1] = lop_node_ref(child[0]);
    if (st == LOP_OK && !hankel) st = widened(mk, a->child[1], dt, &child[1]);
    if (st == LOP_OK) st = by_dense(mk, a, LOP_N, &value, NULL, &child[2]);
    if (st == LOP_OK) st = lop_make(mk, "toeplitz_det", &how, 3, child, NULL, out);
    for (int i = 0; i < 3; i++) lop_node_unref(child[i]);
    return st;
}
LOP_BUILD(toeplitz_det) { return det(m, mk, false, out); }
LOP_BUILD(hankel_det) { return det(m, mk, true, out); }

bool lop_toeplitz_pays(const lop_maker *mk, const lop_node *a, lop_dtype dt) {
    return lop_is_square(a) && lop_is_blas(dt) &&
           pays(mk, a, dt, hermitian(a->child[0], a->child[1]), 1);
}
lop_status lop_toeplitz_inverse_columns(const lop_maker *mk, const lop_node *a, lop_dtype dt,
                                        const lop_node **column) {
    const bool own = a->op == &lop_op_toeplitz && hermitian(a->child[0], a->child[1]);
    const int64_t n = lop_rows(a);
    const lop_node like = {.shape = {.ndim = 2, .dim = {n, 1}}, .dtype = dt, .core = 2};
    if (!lop_is_square(a) || !lop_is_blas(dt) || !pays(mk, a, dt, own, 1)) return LOP_NOMATCH;
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < 3; i++) {
        const lop_attr at = {.i = {i ? n - 1 : 0, 0, 0, 0}}, back = {.i = {0, n - 1, -1, n}};
        const lop_node *x = NULL;
        if (i == 1 && own && !lop_is_complex(dt)) { /* J T J = T' = T */
            st = lop_make1(mk, &lop_op_array_slice, &back, column[0], &column[1]);
            continue;
        }
        st = lop_make(mk, i < 2 ? "unit" : "probe", i < 2 ? &at : NULL, 0, NULL, &like, &x);
        if (st == LOP_OK) st = lop_make2(mk, &lop_op_solve, NULL, a, x, &column[i]);
        if (st == LOP_OK && column[i]->dtype != dt) st = LOP_NOMATCH; /* integers, widened */
        if (i == 2)
            column[3] = x;
        else
            lop_node_unref(x);
    }
    return st;
}

/* Diagonal k of the inverse, of a Toeplitz or a Hankel matrix, by its first and last columns. */
LOP_BUILD(toeplitz_inverse_diagonal) {
    const lop_node *a = m->root->child[0]->child[0], *child[5] = {NULL};
    const lop_dtype dt = m->root->dtype;
    const lop_attr k = {.i = {m->root->attr.i[0], a->op == &lop_op_hankel, 0, 0}};
    lop_status st = lop_toeplitz_inverse_columns(mk, a, dt, child);
    if (st == LOP_OK) st = lop_inverse_diagonal(mk, a, &k, dt, &child[4]);
    if (st == LOP_OK)
        st = lop_make_op(mk, &lop_op_toeplitz_inverse_diagonal, &k, 5, child, NULL, out);
    for (int i = 0; i < 5; i++) lop_node_unref(child[i]);
    return st;
}

/* The inverse in all its numbers, likewise. */
LOP_BUILD(toeplitz_inverse_dense) {
    const lop_node *a = m->root->child[0]->child[0], *child[5] = {NULL}, *column[4] = {NULL};
    const lop_dtype dt = m->root->dtype;
    const bool hankel = a->op == &lop_op_hankel;
    const lop_attr how = {.i = {hankel, !hankel && hermitian(a->child[0], a->child[1]), 0, 0}};
    lop_status st = lop_toeplitz_inverse_columns(mk, a, dt, column);
    if (st == LOP_OK) st = widened(mk, a->child[0], dt, &child[2]);
    if (st == LOP_OK && hankel) child[3] = lop_node_ref(child[2]);
    if (st == LOP_OK && !hankel) st = widened(mk, a->child[1], dt, &child[3]);
    if (st == LOP_OK) st = lop_inverse_array(mk, a, dt, &child[4]);
    child[0] = column[0];
    child[1] = column[1];
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_toeplitz_inverse, &how, 5, child, NULL, out);
    for (int i = 0; i < 5; i++) lop_node_unref(child[i]);
    lop_node_unref(column[2]);
    lop_node_unref(column[3]);
    return st;
}

/* p or q of op_weighted_sums.c, and what solves with T^T leave of it. Owned. */
static lop_status weights_of(const lop_maker *mk, const lop_node *a, bool own, int which,
                             const lop_node *const *given, const lop_node **out) {
    const lop_attr at = {.i = {which, 0, 0, 0}}, turn = {.i = {LOP_T, 0, 0, 0}};
    const lop_node *p = NULL, *seen = NULL;
    lop_status st = lop_make_op(mk, &lop_op_toeplitz_weights, &at, 3, given, NULL, &p);
    if (st == LOP_OK && !own) st = lop_make1(mk, &lop_op_view, &turn, a, &seen);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_solve, NULL, own ? a : seen, p, out);
    lop_node_unref(p);
    lop_node_unref(seen);
    return st;
}
/* The sums along diagonals of x u^T. Owned. */
static lop_status sums_of_pair(const lop_maker *mk, const lop_attr *how, const lop_node *x,
                               const lop_node *u, const lop_node **out) {
    const lop_attr turn = {.i = {LOP_T, 0, 0, 0}};
    const lop_node *row = NULL;
    lop_status st = lop_make1(mk, &lop_op_swap, &turn, u, &row);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_pair_diagonal_sums, how, x, row, out);
    lop_node_unref(row);
    return st;
}
/* Of T^-1 X T^-1, X a diagonal. */
LOP_BUILD(sums_weighted_toeplitz) {
    const lop_dtype dt = m->root->dtype;
    const lop_attr d = {.i = {0, 0, 0, (int64_t)dt + 1}};
    const lop_node *a = NULL, *x = NULL, *vector = NULL, *given[3] = {NULL}, *column[4] = {NULL},
                   *pair[2] = {NULL}, *moved = NULL, *dense = NULL, *child[8] = {NULL};
    lop_attr how = m->root->attr;
    lop_status st = lop_read_between_or_twice(mk, m->root->child[0], &a, &x);
    if (st == LOP_OK && (a->op != &lop_op_toeplitz || lop_nbatch(a) || lop_nbatch(x) || how.i[0] ||
                         !lop_is_diagonal_matrix(x) || !lop_is_square(x)))
        st = LOP_NOMATCH;
    const bool own = st == LOP_OK && !lop_is_complex(dt) && hermitian(a->child[0], a->child[1]);
    if (st == LOP_OK) st = lop_toeplitz_inverse_columns(mk, a, dt, column);
    if (st == LOP_OK) st = lop_make_diagonal(mk, x, &vector);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_cast, &d, vector, &given[2]);
    given[0] = child[1] = column[0];
    given[1] = child[2] = column[1];
    how.i[3] = 0;
    for (int i = 0; st == LOP_OK && i < 2; i++) {
        st = weights_of(mk, a, own, i, given, &child[3 + i]);
        if (st == LOP_OK) st = sums_of_pair(mk, &how, child[1 + i], child[3 + i], &pair[i]);
    }
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_add, NULL, pair[0], pair[1], &child[0]);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, x, column[2], &moved);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_solve, NULL, a, moved, &child[5]);
    child[6] = column[3];
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &d, m->root->child[0], &dense);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_array_diagonal_sums, &how, dense, &child[7]);
    if (st == LOP_OK)
        st = lop_make_op(mk, &lop_op_toeplitz_weighted_sums, NULL, 8, child, NULL, out);
    const lop_node *gone[] = {x, vector, given[2], column[2], pair[0], pair[1], moved, dense};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    for (int i = 0; i < 8; i++) lop_node_unref(child[i]);
    return st;
}

/* T + c I, in either order: c is added to the first column's first. */
LOP_BUILD(toeplitz_plus) {
    const lop_node *root = m->root, *tip = NULL, *scaled = NULL, *column = NULL;
    const bool last = root->child[0]->op == &lop_op_toeplitz;
    const lop_node *t = root->child[last ? 0 : 1], *id = root->child[last ? 1 : 0];
    const lop_attr *c = id->op == &lop_op_scaled ? &id->attr : NULL;
    if (c) id = id->child[0];
    if (!lop_is_square(t)) return LOP_NOMATCH;
    lop_node like = {.shape = id->shape, .dtype = id->dtype, .weak = id->weak, .core = 1};
    like.shape.ndim--;
    lop_status st = lop_make(mk, "first_unit", NULL, 0, NULL, &like, &tip);
    if (st == LOP_OK && c) st = lop_make1(mk, &lop_op_scale, c, tip, &scaled);
    const lop_node *by = c ? scaled : tip;
    if (st == LOP_OK)
        st = lop_join(mk, &lop_op_add, NULL, last ? t->child[0] : by, last ? by : t->child[0],
                      &column);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_toeplitz, NULL, column, t->child[1], out);
    lop_node_unref(tip);
    lop_node_unref(scaled);
    lop_node_unref(column);
    return st;
}
