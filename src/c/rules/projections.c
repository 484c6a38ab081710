/* projections.c: what gradients read off an operator: sums along its diagonals, entries. Rows take
 * the operator apart by its form, as they do for `diagonal`; the dense form comes last.
 *
 * A projection is linear: of an operator it takes child 0, and the other children are where it
 * looks. */
#include "builds.h"
#include "expr/properties.h"
#include "ops/projections/projections.h"
#include "rewrite/cheap_to_solve.h"
#include "rewrite/costs.h"
#include "rewrite/guards.h"

#define HOLE(m, c) ((m)->node[(c) - 'a'])
#define ATTR(m, c) ((m)->attr[(c) - 'a'])

/* The root's projection of `a` instead. Owned. */
static lop_status projected(const lop_match *m, const lop_maker *mk, const lop_attr *attr,
                            const lop_node *a, const lop_node **out) {
    const lop_node *child[4] = {a};
    if (m->root->n > 4) return LOP_NOMATCH;
    for (int i = 1; i < m->root->n; i++) child[i] = m->root->child[i];
    return lop_make_op(mk, m->root->op, attr, m->root->n, child, NULL, out);
}
/* Takes over `a`. */
static lop_status wrapped(const lop_maker *mk, const lop_op *op, const lop_attr *attr,
                          const lop_node *a, const lop_node **out) {
    lop_status st = lop_make1(mk, op, attr, a, out);
    lop_node_unref(a);
    return st;
}

/* B + U C V^H. */
LOP_BUILD(projection_update) {
    const lop_node *a = m->root->child[0], *low = NULL, *one = NULL, *two = NULL;
    lop_status st = lop_make_op(mk, &lop_op_lowrank, NULL, a->n - 1, a->child + 1, NULL, &low);
    if (st == LOP_OK) st = projected(m, mk, &m->root->attr, a->child[0], &one);
    if (st == LOP_OK) st = projected(m, mk, &m->root->attr, low, &two);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_add, NULL, one, two, out);
    lop_node_unref(low);
    lop_node_unref(one);
    lop_node_unref(two);
    return st;
}

/* -- sums along diagonals */

/* Takes the mode of a view off: of A^T the other direction, of conj(A) the conjugates. */
static lop_status seen_sums(const lop_match *m, const lop_maker *mk, int64_t mode,
                            const lop_node *a, const lop_node **out) {
    lop_attr how = m->root->attr;
    const lop_node *value;
    if ((mode & LOP_T) && !how.i[0]) how.i[2] = !how.i[2];
    lop_status st = lop_make1(mk, &lop_op_diagonal_sums, &how, a, &value);
    if (st != LOP_OK || !(mode & LOP_C)) {
        *out = value;
        return st;
    }
    return wrapped(mk, &lop_op_conjugate, NULL, value, out);
}
LOP_BUILD(sums_view) { return seen_sums(m, mk, ATTR(m, 'm').i[0], HOLE(m, 'a'), out); }
/* (A^T)^-1 = (A^-1)^T. */
LOP_BUILD(sums_inverse_view) {
    const lop_node *inverse;
    lop_status st = lop_make1(mk, &lop_op_inverse, NULL, HOLE(m, 'a'), &inverse);
    if (st != LOP_OK) return st;
    st = seen_sums(m, mk, ATTR(m, 'm').i[0], inverse, out);
    lop_node_unref(inverse);
    return st;
}

enum { LINES = 5 }; /* diagonals that are summed one by one */

/* A narrow band: diagonal by diagonal. */
LOP_BUILD(sums_band) {
    const lop_node *a = m->root->child[0], *sum = NULL;
    const lop_band b = lop_infer_bands(a);
    const int64_t *how = m->root->attr.i, rows = lop_rows(a), cols = lop_cols(a);
    lop_attr at = {.i = {(how[0] != 0) | (how[1] != 0) << 1 | (how[2] != 0) << 2, rows, cols, 0}};
    if (b.l >= LINES || b.u >= LINES || b.l + b.u + 1 > LINES || b.l + b.u + 1 >= rows + cols - 1 ||
        b.l + b.u < 0)
        return LOP_NOMATCH;
    lop_status st = LOP_OK;
    for (at.i[3] = -b.l; st == LOP_OK && at.i[3] <= b.u; at.i[3]++) {
        const lop_attr k = {.i = {at.i[3], 0, 0, how[3]}};
        const lop_node *d = NULL, *one = NULL, *all = NULL;
        st = lop_make1(mk, &lop_op_diagonal, &k, a, &d);
        if (st == LOP_OK) st = wrapped(mk, &lop_op_line_diagonal_sums, &at, d, &one);
        if (st == LOP_OK && !sum) {
            sum = one;
            continue;
        }
        if (st == LOP_OK) st = lop_make2(mk, &lop_op_add, NULL, sum, one, &all);
        lop_node_unref(one);
        lop_node_unref(sum);
        sum = all;
    }
    *out = sum;
    return st;
}

LOP_BUILD(sums_toeplitz) {
    const lop_attr d = {.i = {0, 0, 0, m->root->attr.i[3]}};
    const lop_node *c = NULL, *r = NULL;
    if (m->root->attr.i[0]) return LOP_NOMATCH;
    lop_status st = lop_make1(mk, &lop_op_cast, &d, HOLE(m, 'a'), &c);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_cast, &d, HOLE(m, 'b'), &r);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_toeplitz_diagonal_sums, &m->root->attr, c, r, out);
    lop_node_unref(c);
    lop_node_unref(r);
    return st;
}

/* The sums modulo n of C are n times its first column. */
LOP_BUILD(sums_circulant) {
    const lop_attr d = {.i = {0, 0, 0, m->root->attr.i[3]}};
    const int64_t *how = m->root->attr.i, n = lop_rows(m->root->child[0]);
    const lop_attr many = lop_attr_coef((double)n, 0);
    const lop_node *c = NULL;
    if (!how[1]) return lop_sums_as_toeplitz(m, mk, out);
    if (n == 0 || how[0] || how[2] || HOLE(m, 's')->shape.ndim > 1) return LOP_NOMATCH;
    lop_status st = lop_make1(mk, &lop_op_cast, &d, HOLE(m, 'a'), &c);
    return st == LOP_OK ? wrapped(mk, &lop_op_scale, &many, c, out) : st;
}

/* The sums modulo n of C^-1 are n times its first column (flip: its first row, read backwards the
 * same way). */
LOP_BUILD(sums_inverse_circulant) {
    const lop_node *c = m->root->child[0]->child[0], *unit = NULL, *x = NULL, *column = NULL,
                   *seen = NULL;
    const int64_t n = lop_rows(c), *how = m->root->attr.i;
    const lop_attr turn = {.i = {LOP_T, 0, 0, 0}}; /* over j - i: the transpose's first column */
    const lop_attr first = {.i = {0, 0, 0, 0}}, matrix = {.i = {2, 0, 0, 0}},
                   many = lop_attr_coef((double)n, 0);
    const lop_node like = {.shape = {.ndim = 2, .dim = {n, 1}}, .dtype = m->root->dtype, .core = 2};
    if (!how[1]) return lop_sums_as_toeplitz(m, mk, out);
    if (n == 0 || how[0] || c->child[1]->shape.ndim > 1) return LOP_NOMATCH;
    lop_status st = lop_make(mk, "unit", &first, 0, NULL, &like, &unit);
    if (st == LOP_OK && how[2]) st = lop_make1(mk, &lop_op_view, &turn, c, &seen);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_solve, NULL, how[2] ? seen : c, unit, &x);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_ravel, &matrix, x, &column);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &many, column, out);
    const lop_node *gone[] = {unit, seen, x, column};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* The same of any product of circulant matrices and their inverses, which is one. */
LOP_BUILD(sums_circulants) {
    const lop_node *a = m->root->child[0], *sizes = NULL, *unit = NULL, *seen = NULL, *x = NULL,
                   *column = NULL;
    const int64_t n = lop_rows(a), *how = m->root->attr.i;
    const lop_attr turn = {.i = {LOP_T, 0, 0, 0}}, first = {.i = {0, 0, 0, 0}},
                   matrix = {.i = {2, 0, 0, 0}}, many = lop_attr_coef((double)n, 0);
    const lop_node like = {.shape = {.ndim = 2, .dim = {n, 1}}, .dtype = m->root->dtype, .core = 2};
    if (n == 0 || how[0] || !how[1] || lop_nbatch(a) || !lop_is_blas(a->dtype) ||
        !lop_is_circulant(a, LOP_CIRCULANT_DEPTH, &sizes) || !sizes || sizes->shape.ndim > 1)
        return LOP_NOMATCH;
    lop_status st = lop_make(mk, "unit", &first, 0, NULL, &like, &unit);
    if (st == LOP_OK && how[2]) st = lop_make1(mk, &lop_op_view, &turn, a, &seen);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, how[2] ? seen : a, unit, &x);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_ravel, &matrix, x, &column);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &many, column, out);
    const lop_node *gone[] = {unit, seen, x, column};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* Gohberg and Semencul; see ops/projections/op_diagonal_sums.c. */
LOP_BUILD(sums_inverse_toeplitz) {
    const lop_node *a = m->root->child[0]->child[0], *inverse = NULL, *child[5] = {NULL};
    const bool hankel = a->op == &lop_op_hankel;
    const lop_dtype dt = m->root->dtype;
    lop_attr how = m->root->attr;
    how.i[3] = hankel;
    if (hankel ? !how.i[0] || how.i[1] : how.i[0] != 0) return LOP_NOMATCH;
    lop_status st = lop_toeplitz_inverse_columns(mk, a, dt, child);
    if (st == LOP_OK) st = lop_inverse_array(mk, a, dt, &inverse);
    how.i[3] = 0;
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_array_diagonal_sums, &how, inverse, &child[4]);
    how.i[3] = hankel;
    if (st == LOP_OK)
        st = lop_make_op(mk, &lop_op_toeplitz_inverse_sums, &how, 5, child, NULL, out);
    for (int i = 0; i < 5; i++) lop_node_unref(child[i]);
    lop_node_unref(inverse);
    return st;
}

/* Is x of the kind of a, Toeplitz or Hankel, or a sum of such? The identity is a Toeplitz matrix.
 */
static bool is_alike(const lop_node *a, const lop_node *x, int depth) {
    if (depth == 0 || lop_nbatch(x)) return false;
    if (x->op == &lop_op_sum)
        return is_alike(a, x->child[0], depth - 1) && is_alike(a, x->child[1], depth - 1);
    if (x->op == &lop_op_view || x->op == &lop_op_scaled)
        return is_alike(a, x->child[0], depth - 1);
    return x->op == a->op || (x->op == &lop_op_identity && a->op == &lop_op_toeplitz);
}

/* S^-1 X of a column. Owned. */
static lop_status through(const lop_maker *mk, const lop_node *s, const lop_node *x,
                          const lop_node *column, const lop_node **out) {
    const lop_node *moved = NULL;
    lop_status st = lop_make2(mk, &lop_op_apply, NULL, x, column, &moved);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_solve, NULL, s, moved, out);
    lop_node_unref(moved);
    return st;
}
LOP_BUILD(sums_between_toeplitz) {
    const lop_node *x = NULL, *a = NULL, *seen[4] = {NULL}, *child[7] = {NULL}, *dense = NULL;
    const lop_dtype dt = m->root->dtype;
    const lop_attr d = {.i = {0, 0, 0, (int64_t)dt + 1}};
    lop_attr how = m->root->attr;
    lop_status st = lop_read_between_or_twice(mk, m->root->child[0], &a, &x);
    const bool hankel = a && a->op == &lop_op_hankel;
    if (st == LOP_OK &&
        ((!hankel && a->op != &lop_op_toeplitz) || lop_nbatch(a) ||
         !is_alike(a, x, LOP_INFER_DEPTH) || (hankel ? !how.i[0] || how.i[1] : how.i[0] != 0)))
        st = LOP_NOMATCH;
    if (st == LOP_OK) st = lop_toeplitz_inverse_columns(mk, a, dt, seen);
    for (int i = 0; st == LOP_OK && i < 3; i++) st = through(mk, a, x, seen[i], &child[2 + i]);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &d, m->root->child[0], &dense);
    how.i[3] = 0;
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_array_diagonal_sums, &how, dense, &child[6]);
    how.i[3] = hankel;
    child[0] = seen[0];
    child[1] = seen[1];
    child[5] = seen[3];
    if (st == LOP_OK)
        st = lop_make_op(mk, &lop_op_toeplitz_between_sums, &how, 7, child, NULL, out);
    lop_node_unref(seen[2]);
    for (int i = 0; i < 7; i++) lop_node_unref(child[i]);
    lop_node_unref(dense);
    lop_node_unref(x);
    return st;
}

/* The trace of S^-1 X S^-1, X Toeplitz or a diagonal: the sum along its main diagonal. */
LOP_BUILD(between_toeplitz_trace) {
    const int64_t n = lop_rows(m->root->child[0]);
    const lop_attr lines = {.i = {0, 0, 0, (int64_t)m->root->dtype + 1}},
                   middle = {.i = {0, n - 1, 1, 1}};
    const lop_node *sums = NULL, *value = NULL, *one = NULL;
    lop_match as = *m;
    if (n == 0 || !lop_is_blas(m->root->dtype)) return LOP_NOMATCH;
    lop_status st = lop_make1(mk, &lop_op_diagonal_sums, &lines, m->root->child[0], &sums);
    as.root = sums;
    if (st == LOP_OK) st = lop_build_sums_between_toeplitz(&as, mk, &value);
    if (st == LOP_NOMATCH) st = lop_build_sums_weighted_toeplitz(&as, mk, &value);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_array_slice, &middle, value, &one);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_sumall, NULL, one, out);
    lop_node_unref(sums);
    lop_node_unref(value);
    lop_node_unref(one);
    return st;
}

static double pair_seconds(const lop_match *m, const lop_costs *c, int64_t k) {
    const lop_node *a = m->root->child[0];
    return c->overhead +
           lop_pair_sums_flops(m->root->dtype, lop_rows(a), lop_cols(a), k) / c->flop_rate;
}
static lop_status make_pair(const lop_match *m, const lop_maker *mk, const lop_node *left,
                            const lop_node *right, const lop_node **out) {
    lop_attr how = m->root->attr;
    how.i[3] = 0;
    return lop_make2(mk, &lop_op_pair_diagonal_sums, &how, left, right, out);
}
LOP_BUILD(sums_product) {
    const lop_node *a = m->root->child[0];
    const double all = (double)lop_rows(a) * (double)lop_cols(a);
    const lop_pair_reader r = {
        pair_seconds, lop_price_pass(lop_costs_of(mk->ctx), m->root->dtype, all, 1).seconds,
        make_pair};
    return lop_chain_pair(m, mk, &r, out);
}

lop_status lop_sums_of_dense(const lop_maker *mk, const lop_node *root, const lop_node **out) {
    const lop_attr d = {.i = {0, 0, 0, root->attr.i[3]}};
    lop_attr how = root->attr;
    const lop_node *dense;
    how.i[3] = 0;
    lop_status st = lop_make1(mk, &lop_op_todense, &d, root->child[0], &dense);
    return st == LOP_OK ? wrapped(mk, &lop_op_array_diagonal_sums, &how, dense, out) : st;
}
LOP_BUILD(sums_dense) { return lop_sums_of_dense(mk, m->root, out); }

/* -- what is meant for a factor of a Kron */

/* The arrays' own views: of a matrix, transposed and conjugated. Takes over `a`. */
static lop_status seen_array(const lop_maker *mk, int64_t mode, const lop_node *a,
                             const lop_node **out) {
    const lop_attr turn = {.i = {LOP_T, 0, 0, 0}};
    lop_status st = LOP_OK;
    *out = a;
    if (mode & LOP_T) st = wrapped(mk, &lop_op_swap, &turn, a, out);
    if (st == LOP_OK && (mode & LOP_C)) st = wrapped(mk, &lop_op_conjugate, NULL, *out, out);
    return st;
}
LOP_BUILD(partial_view) {
    const int64_t mode = ATTR(m, 'm').i[0];
    const lop_node *x = NULL, *value = NULL;
    lop_status st = seen_array(mk, mode, lop_node_ref(m->root->child[1]), &x);
    if (st != LOP_OK) return st;
    st = lop_make2(mk, &lop_op_kron_partial, &m->root->attr, HOLE(m, 'a'), x, &value);
    lop_node_unref(x);
    return st == LOP_OK ? seen_array(mk, mode, value, out) : st;
}
/* S need not be known to be its own transpose. */
LOP_BUILD(partial_turned) {
    const lop_node *seen = NULL, *x = NULL, *value = NULL;
    int64_t mode;
    lop_status st = lop_unturned(mk, m->root->child[0], &mode, &seen);
    if (st != LOP_OK) return st;
    st = seen_array(mk, mode, lop_node_ref(m->root->child[1]), &x);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_kron_partial, &m->root->attr, seen, x, &value);
    lop_node_unref(seen);
    lop_node_unref(x);
    return st == LOP_OK ? seen_array(mk, mode, value, out) : st;
}

lop_status lop_partial_of_dense(const lop_maker *mk, const lop_node *root, const lop_node **out) {
    const lop_attr d = {.i = {0, 0, 0, root->attr.i[3]}}, side = {.i = {root->attr.i[0], 0, 0, 0}};
    const lop_node *dense;
    lop_status st = lop_make1(mk, &lop_op_todense, &d, root->child[0], &dense);
    if (st != LOP_OK) return st;
    st = lop_make2(mk, &lop_op_array_kron_partial, &side, dense, root->child[1], out);
    lop_node_unref(dense);
    return st;
}
LOP_BUILD(partial_dense) { return lop_partial_of_dense(mk, m->root, out); }

/* -- what is meant for the generators of a quasi-separable matrix */

LOP_BUILD(generators_above) {
    const lop_node *a = m->root->child[0], *none = NULL;
    lop_node like = {.shape = m->root->shape, .dtype = m->root->dtype, .core = 2};
    const lop_attr k = {.i = {0, 0, 0, (int64_t)m->root->dtype + 1}};
    const lop_band b = lop_infer_bands(a);
    if (b.l > 0 || (m->root->attr.i[0] && b.u > 0) || like.shape.ndim == LOP_MAXDIM)
        return LOP_NOMATCH;
    like.shape.dim[like.shape.ndim++] = lop_cols(m->root);
    lop_status st = lop_make(mk, "zeros", NULL, 0, NULL, &like, &none);
    return st == LOP_OK ? wrapped(mk, &lop_op_diagonal, &k, none, out) : st;
}

static double generators_seconds(const lop_match *m, const lop_costs *c, int64_t k) {
    const lop_node *const *v = m->root->child;
    return c->overhead + lop_generator_sums_flops(v[1], v[3], m->root->dtype, k) / c->flop_rate;
}
static lop_status make_generators(const lop_match *m, const lop_maker *mk, const lop_node *left,
                                  const lop_node *right, const lop_node **out) {
    const lop_node *const *v = m->root->child, *child[5] = {left, right, v[1], v[2], v[3]};
    const lop_attr how = {.i = {m->root->attr.i[0], 0, 0, 0}};
    return lop_make_op(mk, &lop_op_pair_generator_sums, &how, 5, child, NULL, out);
}
LOP_BUILD(generators_product) {
    const lop_pair_reader r = {
        generators_seconds,
        generators_seconds(m, lop_costs_of(mk->ctx), lop_cols(m->root->child[0])), make_generators};
    return lop_chain_pair(m, mk, &r, out);
}
/* The product of the dense form and I. */
lop_status lop_generators_of_dense(const lop_maker *mk, const lop_node *root,
                                   const lop_node **out) {
    const lop_node *const *v = root->child, *child[5] = {NULL, NULL, v[1], v[2], v[3]};
    const int64_t n = lop_rows(v[0]);
    const lop_node like = {.shape = {.ndim = 2, .dim = {n, n}}, .dtype = root->dtype, .core = 2};
    const lop_attr d = {.i = {0, 0, 0, root->attr.i[3]}}, how = {.i = {root->attr.i[0], 0, 0, 0}};
    lop_status st = lop_make1(mk, &lop_op_todense, &d, v[0], &child[0]);
    if (st == LOP_OK) st = lop_make(mk, "eye", NULL, 0, NULL, &like, &child[1]);
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_pair_generator_sums, &how, 5, child, NULL, out);
    lop_node_unref(child[0]);
    lop_node_unref(child[1]);
    return st;
}
LOP_BUILD(generators_dense) { return lop_generators_of_dense(mk, m->root, out); }

/* -- sums of entries at places */

/* The root's places, with `attr` for its own attributes. */
static lop_status of_array(const lop_match *m, const lop_maker *mk, const lop_op *op,
                           const lop_attr *attr, const lop_node *a, const lop_node *b,
                           const lop_node **out) {
    const lop_node *child[4] = {a, m->root->child[1], m->root->child[2], b};
    return lop_make_op(mk, op, attr, b ? 4 : 3, child, NULL, out);
}

LOP_BUILD(entries_band) {
    enum { MOST = 5 };
    const lop_node *a = m->root->child[0], *d[MOST] = {NULL}, *join = NULL;
    const lop_band b = lop_infer_bands(a);
    lop_attr how = m->root->attr;
    const lop_attr at = {.i = {b.l, b.u, lop_rows(a), lop_cols(a)}};
    if (b.l < 0 || b.u < 0 || b.l >= MOST || b.u >= MOST || b.l + b.u + 1 > MOST || lop_nbatch(a) ||
        lop_rows(a) <= MOST || lop_cols(a) <= MOST)
        return LOP_NOMATCH;
    lop_status st = LOP_OK;
    for (int64_t k = 0; st == LOP_OK && k <= b.l + b.u; k++) {
        const lop_attr one = {.i = {b.u - k, 0, 0, how.i[3]}};
        st = lop_make1(mk, &lop_op_diagonal, &one, a, &d[k]);
    }
    if (st == LOP_OK)
        st = lop_make_op(mk, &lop_op_band_join, &at, (int)(b.l + b.u + 1), d, NULL, &join);
    how.i[2] = lop_rows(a);
    how.i[3] = lop_band_pack(b.l, b.u);
    if (st == LOP_OK) st = of_array(m, mk, &lop_op_band_entry_sums, &how, join, NULL, out);
    for (int k = 0; k < MOST; k++) lop_node_unref(d[k]);
    lop_node_unref(join);
    return st;
}

static double entries_seconds(const lop_match *m, const lop_costs *c, int64_t k) {
    const double by = lop_is_complex(m->root->dtype) ? 8 : 2;
    return c->overhead + by * lop_entry_sums_count(m->root) * (double)k / c->flop_rate;
}
static lop_status make_entries(const lop_match *m, const lop_maker *mk, const lop_node *left,
                               const lop_node *right, const lop_node **out) {
    lop_attr how = m->root->attr;
    how.i[3] = 0;
    return of_array(m, mk, &lop_op_pair_entry_sums, &how, left, right, out);
}
LOP_BUILD(entries_product) {
    const lop_pair_reader r = {
        entries_seconds,
        lop_price_pass(lop_costs_of(mk->ctx), m->root->dtype, lop_entry_sums_count(m->root), 1)
            .seconds,
        make_entries};
    return lop_chain_pair(m, mk, &r, out);
}

LOP_BUILD(entries_triangle) {
    const lop_attr half = ATTR(m, 't');
    lop_attr how = m->root->attr;
    if (HOLE(m, 'o')->op != &lop_op_ones || how.i[0] > LOP_AT_COO || how.i[1] || half.i[1])
        return LOP_NOMATCH;
    how.i[1] = half.i[0] ? 1 : 3;
    return projected(m, mk, &how, HOLE(m, 'a'), out);
}

lop_status lop_entries_of_dense(const lop_maker *mk, const lop_node *root, const lop_node **out) {
    const lop_attr d = {.i = {0, 0, 0, root->attr.i[3]}};
    lop_attr how = root->attr;
    const lop_node *dense;
    how.i[3] = 0;
    lop_status st = lop_make1(mk, &lop_op_todense, &d, root->child[0], &dense);
    if (st != LOP_OK) return st;
    const lop_node *child[3] = {dense, root->child[1], root->child[2]};
    st = lop_make_op(mk, &lop_op_array_entry_sums, &how, 3, child, NULL, out);
    lop_node_unref(dense);
    return st;
}
LOP_BUILD(entries_dense) { return lop_entries_of_dense(mk, m->root, out); }
