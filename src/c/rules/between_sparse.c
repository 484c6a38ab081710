/* between_sparse.c: entries of A^-1 X A^-1 of sparse A and X, which gradients of traces and
 * diagonals of inverses read, and second derivatives of determinants.
 *
 *   [A X; 0 A]^-1 = [A^-1, -A^-1 X A^-1; 0, A^-1]
 *
 * whose factor is sparse, too, and whose inverse's entries are selected as any (solve_sparse.c);
 * the solver adds what the block on the right has to be to what it checks. The dense form else. */
#include "builds.h"
#include "expr/properties.h"
#include "ops/projections/projections.h"
#include "ops/shared/sparse_solver.h"

/* A of A^-1 seen in *mode; NULL: it is none whose entries are selected. */
static const lop_node *inverted(const lop_node *f, int64_t *mode) {
    const lop_node *a = lop_inverse_seen(f, mode);
    return a && lop_sparse_selects(a) ? a : NULL;
}

/* A as it is seen in both inverses, owned; NOMATCH: they are of two. */
static lop_status one_of_both(const lop_maker *mk, const lop_node *left, const lop_node *right,
                              const lop_node **a) {
    int64_t mode, other = 0;
    const lop_node *s = inverted(left, &mode), *t = s ? inverted(right, &other) : NULL;
    const lop_attr view = {.i = {mode, 0, 0, 0}};
    if (!t || mode != other || !lop_node_alike(s, t, LOP_INFER_DEPTH)) return LOP_NOMATCH;
    if (mode) return lop_make1(mk, &lop_op_view, &view, s, a);
    *a = lop_node_ref(s);
    return LOP_OK;
}

static lop_status square_like(const lop_maker *mk, const char *kind, int64_t n,
                              const lop_node **out) {
    const lop_node like = {
        .shape = {.ndim = 2, .dim = {n, n}}, .dtype = LOP_f64, .weak = LOP_WEAK, .core = 2};
    return lop_make(mk, kind, NULL, 0, NULL, &like, out);
}

lop_status lop_two_by_two(const lop_maker *mk, const lop_node *a, const lop_node *b,
                          const lop_node *c, const lop_node *d, const lop_node **out) {
    const lop_attr two = {.i = {2, 2, 0, 0}};
    const lop_node *zeros = NULL;
    lop_status st = square_like(mk, "zeros", lop_rows(b ? b : c), &zeros);
    const lop_node *child[4] = {a ? a : zeros, b ? b : zeros, c ? c : zeros, d ? d : zeros};
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_block, &two, 4, child, NULL, out);
    lop_node_unref(zeros);
    return st;
}

/* Of fuller rows than FULL the dense inverse, which serves all uses at once, is quicker up to PER
 * rows for an entry in a row: measured 2026-11-28 with Laplacians of grids and their squares, 900
 * to 2,500 rows. */
enum { FULL = 16, PER = 110 };
static bool is_dear(const lop_node *a) {
    const double n = (double)lop_rows(a), some = lop_sparse_entries(a);
    return some > FULL * n && PER * some > n * n;
}

static lop_status doubled(const lop_maker *mk, const lop_node *a, const lop_node *x,
                          const lop_node **out) {
    int64_t all;
    if (lop_sparse_entries(x) < 0 || lop_rows(x) != lop_rows(a) || !lop_is_square(x) ||
        is_dear(a) || !lop_mul_ok(2, lop_rows(a), &all))
        return LOP_NOMATCH;
    lop_status st = lop_two_by_two(mk, a, x, NULL, a, out);
    if (st != LOP_OK || lop_sparse_selects(*out)) return st;
    lop_node_unref(*out);
    *out = NULL;
    return LOP_NOMATCH;
}

/* [A X; 0 A] of the product A^-1 X A^-1. Owned; NOMATCH. */
static lop_status read_between(const lop_maker *mk, const lop_node *p, const lop_node **out) {
    const lop_node *left, *right, *x, *a = NULL, *eye = NULL;
    if (p->op != &lop_op_prod || lop_nbatch(p) > 0 || !lop_factors_between(p, &left, &x, &right))
        return LOP_NOMATCH;
    lop_status st = one_of_both(mk, left, right, &a);
    if (st == LOP_OK && !x) st = square_like(mk, "identity", lop_rows(a), &eye);
    if (st == LOP_OK) st = doubled(mk, a, x ? x : eye, out);
    lop_node_unref(a);
    lop_node_unref(eye);
    return st;
}

/* The parts of the inverse of the whole are those of -A^-1 X A^-1. */
static lop_status turned(const lop_maker *mk, const lop_node *value, const lop_node **out) {
    const lop_attr minus = lop_attr_coef(-1, 0);
    return lop_make1(mk, &lop_op_scale, &minus, value, out);
}

LOP_BUILD(diagonal_between_sparse) {
    const lop_node *p = m->root->child[0], *all = NULL, *alt = NULL, *less = NULL, *value = NULL;
    const lop_attr at = {.i = {lop_rows(p), 0, 0, 0}};
    if (!lop_is_blas(m->root->dtype) || m->root->attr.i[0] != 0) return LOP_NOMATCH;
    lop_status st = read_between(mk, p, &all);
    if (st == LOP_OK) st = lop_diagonal_of_dense(mk, m->root->dtype, p, &alt);
    if (st == LOP_OK) st = turned(mk, alt, &less);
    const lop_node *child[2] = {all, less};
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_sparsediag, &at, 2, child, NULL, &value);
    if (st == LOP_OK) st = turned(mk, value, out);
    const lop_node *gone[] = {all, alt, less, value};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

LOP_BUILD(entries_between_sparse) {
    const lop_node *p = m->root->child[0], *all = NULL, *alt = NULL, *less = NULL, *value = NULL;
    const lop_attr at = {.i = {m->root->attr.i[0], 1, 0, 0}}; /* of the block on the right */
    if (!lop_is_blas(m->root->dtype) || m->root->n != 3 || at.i[0] > LOP_AT_COO ||
        m->root->attr.i[1] != 0)
        return LOP_NOMATCH;
    lop_status st = read_between(mk, p, &all);
    if (st == LOP_OK) st = lop_entries_of_dense(mk, m->root, &alt);
    if (st == LOP_OK) st = turned(mk, alt, &less);
    const lop_node *child[4] = {all, m->root->child[1], m->root->child[2], less};
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_sparseentries, &at, 4, child, NULL, &value);
    if (st == LOP_OK) st = turned(mk, value, out);
    const lop_node *gone[] = {all, alt, less, value};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* Which two factors are inverses; the others are sparse. */
static bool two_inverses(const lop_node *const *f, int n, int *first, int *second) {
    int64_t mode;
    int found = 0;
    for (int i = 0; i < n; i++) {
        const lop_node *s = found < 3 ? inverted(f[i], &mode) : NULL;
        if (s) *(found++ ? second : first) = i;
        if (!s && lop_sparse_entries(f[i]) < 0) return false;
    }
    return found == 2;
}

/* The factors from..to, those behind the last one the first ones again; I where there are none. */
static lop_status some_of(const lop_maker *mk, const lop_node *const *f, int n, int from, int to,
                          const lop_node **out) {
    const lop_node *part[LOP_FACTORS];
    int k = 0;
    for (int i = from; i < to; i++) part[k++] = f[i % n];
    return k ? lop_product_of(mk, part, k, out)
             : square_like(mk, "identity", lop_rows(f[from % n]), out);
}

/* tr(A^-1 X A^-1 Y), whatever stands first. */
LOP_BUILD(trace_between_sparse) {
    const lop_node *p = m->root->child[0], *a = NULL, *x = NULL, *y = NULL, *all = NULL, *z = NULL,
                   *d = NULL, *alt = NULL, *less = NULL, *value = NULL, *plain = NULL;
    const lop_node *f[LOP_FACTORS];
    lop_coef by = lop_coef_const(-1, 0); /* turned, too */
    int i = 0, j = 0;
    const int n =
        lop_nbatch(p) == 0 && lop_is_blas(m->root->dtype) ? lop_factors_times(p, f, &by) : 0;
    if (n < 2 || !two_inverses(f, n, &i, &j)) return LOP_NOMATCH;
    const lop_attr times = lop_coef_attr(by);
    lop_status st = one_of_both(mk, f[i], f[j], &a);
    if (st == LOP_OK) st = some_of(mk, f, n, i + 1, j, &x);
    if (st == LOP_OK) st = some_of(mk, f, n, j + 1, n + i, &y);
    if (st == LOP_OK) st = doubled(mk, a, x, &all);
    if (st == LOP_OK && (!lop_is_square(y) || lop_rows(y) != lop_rows(a))) st = LOP_NOMATCH;
    if (st == LOP_OK) st = lop_two_by_two(mk, NULL, NULL, y, NULL, &z);
    if (st == LOP_OK && lop_sparse_entries(z) < 0) st = LOP_NOMATCH;
    if (st == LOP_OK) st = lop_product_of(mk, f, n, &plain);
    if (st == LOP_OK) st = lop_diagonal_of_dense(mk, m->root->dtype, plain, &d);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_sumall, NULL, d, &alt);
    if (st == LOP_OK) st = turned(mk, alt, &less);
    const lop_node *child[3] = {all, z, less};
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_sparsetrace, NULL, 3, child, NULL, &value);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &times, value, out);
    const lop_node *gone[] = {a, x, y, all, z, d, alt, less, value, plain};
    for (size_t k = 0; k < sizeof gone / sizeof gone[0]; k++) lop_node_unref(gone[k]);
    return st;
}
