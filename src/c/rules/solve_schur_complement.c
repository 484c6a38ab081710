/* solve_schur_complement.c: solves and determinants of a Block of 2 x 2 with a diagonal block A
 * that is cheap to solve for, by the Schur complement of A.
 *
 *   [A B; C D] [x; y] = [f; g]:   W = A^-1 B,  S = D - C W,  S y = g - C A^-1 f,  x = A^-1 f - W y
 *   det = det A det S
 *
 * (Golub and Van Loan, 3.2.11; either diagonal block may be A.) An A that is much nearer to a
 * singular matrix than the whole costs digits: the backward error is checked, one refinement tried,
 * else the dense form is factored. Cost: q columns through A, 2 p q^2, 2/3 q^3 for q rows of D. */
#include "builds.h"
#include "rewrite/guards.h"

typedef struct bordered {
    const lop_maker *mk;
    const lop_node *whole, *a, *b, *c, *d; /* borrowed */
    lop_attr dt;                           /* the dtype, as an attribute */
    int first;                             /* 0: A stands first */
    const lop_node *w, *s;                 /* owned: W as an operator, S as an array */
} bordered;

static lop_status bordered_open(bordered *t) {
    const lop_node *b = NULL, *w = NULL, *d = NULL, *cw = NULL;
    lop_status st = lop_make1(t->mk, &lop_op_todense, &t->dt, t->b, &b);
    if (st == LOP_OK) st = lop_make2(t->mk, &lop_op_solve, NULL, t->a, b, &w);
    if (st == LOP_OK) st = lop_make1(t->mk, &lop_op_dense, NULL, w, &t->w);
    if (st == LOP_OK) st = lop_make1(t->mk, &lop_op_todense, &t->dt, t->d, &d);
    if (st == LOP_OK) st = lop_make2(t->mk, &lop_op_apply, NULL, t->c, w, &cw);
    if (st == LOP_OK) st = lop_build_minus(t->mk, d, cw, &t->s);
    const lop_node *gone[] = {b, w, d, cw};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}
static void bordered_close(bordered *t) {
    lop_node_unref(t->w);
    lop_node_unref(t->s);
}
static bordered bordered_of(const lop_maker *mk, const lop_node *whole, lop_dtype dt) {
    const int i = lop_bordered_pivot(whole);
    return (bordered){.mk = mk,
                      .whole = whole,
                      .a = whole->child[3 * i],
                      .b = whole->child[1 + i],
                      .c = whole->child[2 - i],
                      .d = whole->child[3 - 3 * i],
                      .dt = {.i = {0, 0, 0, (int64_t)dt + 1}},
                      .first = i};
}

/* The rows of A, or of D. */
static lop_status rows_of(const bordered *t, const lop_node *x, bool rest, const lop_node **out) {
    const int64_t p = lop_rows(t->whole->child[0]), n = lop_rows(t->whole);
    const bool second = rest != (t->first == 1);
    const lop_attr at = {.i = {second ? p : 0, second ? n - p : p, 0, lop_cols(x)}};
    return lop_make1(t->mk, &lop_op_slice, &at, x, out);
}
static lop_status both_of(const bordered *t, const lop_node *x, const lop_node *y,
                          const lop_node **out) {
    const lop_attr shape = {.i = {2, 1, 0, 0}};
    const lop_node *part[2] = {t->first ? y : x, t->first ? x : y};
    return lop_make_op(t->mk, &lop_op_grid, &shape, 2, part, NULL, out);
}

static lop_status by_complement(const bordered *t, const lop_node *b, const lop_node **out) {
    const lop_node *f = NULL, *g = NULL, *z = NULL, *cz = NULL, *h = NULL, *y = NULL, *wy = NULL,
                   *x = NULL;
    lop_status st = rows_of(t, b, false, &f);
    if (st == LOP_OK) st = rows_of(t, b, true, &g);
    if (st == LOP_OK) st = lop_make2(t->mk, &lop_op_solve, NULL, t->a, f, &z);
    if (st == LOP_OK) st = lop_make2(t->mk, &lop_op_apply, NULL, t->c, z, &cz);
    if (st == LOP_OK) st = lop_build_minus(t->mk, g, cz, &h);
    if (st == LOP_OK) st = lop_make2(t->mk, &lop_op_lu_solve, NULL, t->s, h, &y);
    if (st == LOP_OK) st = lop_make2(t->mk, &lop_op_apply, NULL, t->w, y, &wy);
    if (st == LOP_OK) st = lop_build_minus(t->mk, z, wy, &x);
    if (st == LOP_OK) st = both_of(t, x, y, out);
    const lop_node *gone[] = {f, g, z, cz, h, y, wy, x};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

LOP_BUILD(solve_bordered) {
    bordered t = bordered_of(mk, m->root->child[0], m->root->dtype);
    lop_check k = {.mk = mk, .a = t.whole};
    const lop_attr cast = {.i = {1, 0, 0, t.dt.i[3]}};
    const lop_node *b = NULL, *x = NULL, *r = NULL, *dx = NULL, *x2 = NULL, *dense = NULL,
                   *alt = NULL, *second = NULL;
    lop_status st = bordered_open(&t);
    if (st == LOP_OK) st = lop_check_open(&k, m->root->dtype);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_cast, &cast, m->root->child[1], &b);
    if (st == LOP_OK) st = by_complement(&t, b, &x);
    if (st == LOP_OK) st = lop_check_residual(&k, x, b, &r);
    if (st == LOP_OK) st = by_complement(&t, r, &dx);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_add, NULL, x, dx, &x2);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &t.dt, t.whole, &dense);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_lu_solve, NULL, dense, b, &alt);
    if (st == LOP_OK) st = lop_check_instead(&k, x2, b, alt, &second);
    if (st == LOP_OK) st = lop_check_instead(&k, x, b, second, out);
    const lop_node *gone[] = {b, x, r, dx, x2, dense, alt, second};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    lop_check_close(&k);
    bordered_close(&t);
    return st;
}

/* A (q x q zeros below it), for the check that sees how W grows. */
static lop_status above_zeros(const bordered *t, const lop_node *a, const lop_node **out) {
    const int64_t q = lop_cols(t->b);
    const lop_node like = {
        .shape = {.ndim = 2, .dim = {q, q}}, .dtype = (lop_dtype)(t->dt.i[3] - 1), .core = 2};
    const lop_node *zeros = NULL, *none = NULL;
    lop_status st = lop_make(t->mk, "zeros", NULL, 0, NULL, &like, &zeros);
    if (st == LOP_OK) st = lop_make1(t->mk, &lop_op_todense, &t->dt, zeros, &none);
    if (st == LOP_OK) st = both_of(t, a, none, out);
    lop_node_unref(zeros);
    lop_node_unref(none);
    return st;
}

LOP_BUILD(det_bordered) {
    const lop_dtype dt = (lop_dtype)(m->root->attr.i[3] - 1);
    bordered t = bordered_of(mk, m->root->child[0], dt);
    lop_check k = {.mk = mk, .a = t.whole};
    const lop_node *base = NULL, *small = NULL, *det = NULL, *x = NULL, *r = NULL, *dense = NULL,
                   *alt = NULL, *b = NULL, *u = NULL, *w = NULL;
    lop_status st = bordered_open(&t);
    if (st == LOP_OK) st = lop_check_open(&k, dt);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scaledet, &m->root->attr, t.a, &base);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_lu_det, NULL, t.s, &small);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_mul_det, NULL, base, small, &det);
    if (st == LOP_OK) st = by_complement(&t, k.v, &x);
    if (st == LOP_OK) st = lop_check_residual(&k, x, k.v, &r);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &t.dt, t.whole, &dense);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_lu_det, NULL, dense, &alt);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &t.dt, t.b, &b);
    if (st == LOP_OK) st = above_zeros(&t, b, &u);
    if (st == LOP_OK) st = above_zeros(&t, t.w->child[0], &w);
    const lop_node *child[9] = {det, x, r, k.v, k.q, k.u, w, u, alt};
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_checked_det, NULL, 9, child, NULL, out);
    const lop_node *gone[] = {base, small, det, x, r, dense, alt, b, u, w};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    lop_check_close(&k);
    bordered_close(&t);
    return st;
}
