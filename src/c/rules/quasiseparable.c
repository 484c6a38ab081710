/* quasiseparable.c: computed right sides for QuasiSeparable: sums, element-wise products, multiples
 * and views of its generators; solves, determinants and diagonals of inverses
 * (op_quasiseparable_solve.c). */
#include "builds.h"
#include "kernels/quasiseparable/k_quasi.h"
#include "ops/projections/projections.h"

#define HOLE(m, c) ((m)->node[(c) - 'a'])

enum { GENERATORS = 4 };

static int64_t states_of(const lop_node *k) { return lop_cols(k->child[1]); }
static bool is_full(const lop_node *k) { return lop_cols(k->child[3]) != states_of(k); }
static bool is_triangular(const lop_node *k) { return k->attr.i[0] != 0; }
/* Integers would wrap where a closed kind adds them. */
static bool of_floats(const lop_node *k) {
    for (int i = 0; i < GENERATORS; i++)
        if (!lop_is_blas(k->child[i]->dtype)) return false;
    return true;
}

/* Four owned generators become the kind, or go. */
static lop_status quasi(const lop_maker *mk, const lop_attr *attr, const lop_node **v,
                        lop_status st, const lop_node **out) {
    if (st == LOP_OK) st = lop_make(mk, "quasiseparable", attr, GENERATORS, v, NULL, out);
    for (int i = 0; i < GENERATORS; i++) lop_node_unref(v[i]);
    return st;
}

static lop_status joined(const lop_maker *mk, int64_t how, const lop_node *a, const lop_node *b,
                         int i, const lop_node **out) {
    const lop_attr attr = {.i = {how, states_of(a), states_of(b), 0}};
    return lop_join(mk, &lop_op_quasijoin, &attr, a->child[i], b->child[i], out);
}

/* States beside each other, or all pairs of them. */
static lop_status both(const lop_match *m, const lop_maker *mk, bool pairs, const lop_node **out) {
    const lop_node *a = m->root->child[0], *b = m->root->child[1], *v[GENERATORS] = {NULL};
    const bool full = is_full(a) || is_full(b);
    const int64_t how = pairs ? LOPK_QUASI_PAIRS : LOPK_QUASI_BESIDE,
                  moved = pairs ? LOPK_QUASI_KRONS : LOPK_QUASI_BLOCKS;
    int64_t J, square;
    if (is_triangular(a) != is_triangular(b) || !of_floats(a) || !of_floats(b)) return LOP_NOMATCH;
    if (pairs && !is_triangular(a) && /* only real parts of d count, in either */
        (lop_is_complex(a->child[0]->dtype) || lop_is_complex(b->child[0]->dtype)))
        return LOP_NOMATCH;
    if (lop_rows(a) != lop_rows(b) ||
        !(pairs ? lop_mul_ok(states_of(a), states_of(b), &J)
                : lop_add_ok(states_of(a), states_of(b), &J)) ||
        !lop_mul_ok(J, J, &square))
        return LOP_NOMATCH;
    lop_status st =
        lop_join(mk, pairs ? &lop_op_mul : &lop_op_add, NULL, a->child[0], b->child[0], &v[0]);
    for (int i = 1; st == LOP_OK && i < 3; i++) st = joined(mk, how, a, b, i, &v[i]);
    if (st == LOP_OK) st = joined(mk, full ? moved : how, a, b, 3, &v[3]);
    return quasi(mk, &a->attr, v, st, out);
}
LOP_BUILD(quasi_sum) { return both(m, mk, false, out); }
LOP_BUILD(quasi_elementwise) { return both(m, mk, true, out); }

LOP_BUILD(quasi_scaled) {
    const lop_node *a = m->root->child[0], *v[GENERATORS] = {NULL};
    const lop_attr *c = &m->root->attr;
    if ((c->im != 0 && !is_triangular(a)) || !of_floats(a)) return LOP_NOMATCH;
    v[1] = lop_node_ref(a->child[1]);
    v[3] = lop_node_ref(a->child[3]);
    lop_status st = lop_join(mk, &lop_op_scale, c, a->child[0], NULL, &v[0]);
    if (st == LOP_OK) st = lop_join(mk, &lop_op_scale, c, a->child[2], NULL, &v[2]);
    return quasi(mk, &a->attr, v, st, out);
}

/* A^H = A, A^T = conj(A); a triangular one keeps its view. */
LOP_BUILD(quasi_view) {
    const lop_node *a = m->root->child[0], *v[GENERATORS] = {NULL};
    const int64_t mode = m->root->attr.i[0];
    lop_status st = LOP_OK;
    if (is_triangular(a)) return LOP_NOMATCH;
    if (!lop_is_complex(a->dtype) || mode == LOP_H) {
        *out = lop_node_ref(a);
        return LOP_OK;
    }
    for (int i = 0; st == LOP_OK && i < GENERATORS; i++)
        if (lop_is_complex(a->child[i]->dtype))
            st = lop_make1(mk, &lop_op_conjugate, NULL, a->child[i], &v[i]);
        else
            v[i] = lop_node_ref(a->child[i]);
    return quasi(mk, &a->attr, v, st, out);
}

/* A and a diagonal of whatever sort, in either order. */
LOP_BUILD(quasi_plus) {
    const bool first = m->root->child[0]->op == &lop_op_quasiseparable;
    const lop_node *a = m->root->child[first ? 0 : 1], *o = m->root->child[first ? 1 : 0], *d,
                   *v[GENERATORS] = {NULL};
    const bool real = o->op == &lop_op_diag     ? !lop_is_complex(o->child[0]->dtype)
                      : o->op == &lop_op_scaled ? o->attr.im == 0
                                                : true;
    if (!of_floats(a) || (!real && !is_triangular(a))) return LOP_NOMATCH;
    lop_status st = lop_make_diagonal(mk, o, &d);
    if (st != LOP_OK) return st;
    st = lop_join(mk, &lop_op_add, NULL, first ? a->child[0] : d, first ? d : a->child[0], &v[0]);
    lop_node_unref(d);
    for (int i = 1; i < GENERATORS; i++) v[i] = lop_node_ref(a->child[i]);
    return quasi(mk, &a->attr, v, st, out);
}

/* The generators, expressions in the real or complex form of `dt` from their leaves on. */
static lop_status widened(const lop_maker *mk, const lop_node *a, lop_dtype dt,
                          const lop_node **v) {
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < GENERATORS; i++) {
        const lop_node *g = a->child[i];
        const lop_dtype to = lop_is_complex(g->dtype) ? dt : lop_dtype_real(dt);
        const lop_attr d = {.i = {0, 0, 0, (int64_t)to + 1}};
        if (g->n > 0 && g->dtype != to)
            st = lop_make1(mk, &lop_op_cast, &d, g, &v[i]);
        else
            v[i] = lop_node_ref(g);
    }
    return st;
}

/* Is the band of A and its states cheaper than the dense form? */
static bool by_band(const lop_node *a) {
    const int64_t n = lop_rows(a), J = states_of(a);
    return n / 32 > J && lopk_quasi_lu_fits(n, J);
}
/* Puts `name` of v[0] to v[last] in the place of v[last], which becomes its fallback branch. */
static lop_status between(const lop_maker *mk, const char *name, const lop_attr *how, int last,
                          const lop_node **v) {
    const lop_node *band;
    lop_status st = lop_make(mk, name, how, last + 1, v, NULL, &band);
    if (st != LOP_OK) return st;
    lop_node_unref(v[last]);
    v[last] = band;
    return LOP_OK;
}

LOP_BUILD(quasi_solve) {
    const lop_node *top = m->root->child[0], *a = top->op == &lop_op_view ? top->child[0] : top,
                   *x = m->root->child[1], *dense = NULL, *v[GENERATORS + 2] = {NULL};
    const lop_dtype dt = m->root->dtype;
    const int64_t mode = top == a ? LOP_N : top->attr.i[0];
    const bool tri = is_triangular(a);
    const lop_attr d = {.i = {0, 0, 0, (int64_t)dt + 1}},
                   how = {.i = {tri ? mode : mode == LOP_T || mode == LOP_C, 0, 0, 0}};
    if (!lop_is_blas(dt)) return LOP_NOMATCH;
    lop_status st = widened(mk, a, dt, v);
    v[4] = lop_node_ref(x);
    if (st == LOP_OK && !tri) st = lop_make1(mk, &lop_op_todense, &d, top, &dense);
    if (st == LOP_OK && !tri) st = lop_make2(mk, &lop_op_lu_solve, NULL, dense, x, &v[5]);
    const lop_attr band = {.i = {how.i[0], 1, 0, 0}};
    if (st == LOP_OK && !tri && by_band(a)) st = between(mk, "quasiseparable_solve", &band, 5, v);
    if (st == LOP_OK)
        st = lop_make(mk, tri ? "quasitri" : "quasiseparable_solve", &how, tri ? 5 : 6, v, NULL,
                      out);
    for (int i = 0; i < GENERATORS + 2; i++) lop_node_unref(v[i]);
    lop_node_unref(dense);
    return st;
}

LOP_BUILD(quasi_det) {
    const lop_node *a = m->root->child[0], *dense = NULL, *v[GENERATORS + 1] = {NULL};
    const lop_dtype dt = (lop_dtype)(m->root->attr.i[3] ? m->root->attr.i[3] - 1 : a->dtype);
    const lop_attr k = {.i = {0, 0, 0, (int64_t)dt + 1}};
    if (!lop_is_blas(dt) || lop_is_complex(dt) != lop_is_complex(a->dtype)) return LOP_NOMATCH;
    if (is_triangular(a)) {
        lop_status st = lop_make1(mk, &lop_op_diagonal, &k, a, &dense);
        if (st == LOP_OK) st = lop_make1(mk, &lop_op_vector_det, NULL, dense, out);
        lop_node_unref(dense);
        return st;
    }
    lop_status st = widened(mk, a, dt, v);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &m->root->attr, a, &dense);
    if (st == LOP_OK) st = lop_make(mk, "lu_det", NULL, 1, &dense, NULL, &v[4]);
    const lop_attr band = {.i = {1, 0, 0, 0}}, plain = {.i = {0, 0, 0, 0}};
    if (st == LOP_OK && by_band(a)) st = between(mk, "quasiseparable_det", &band, GENERATORS, v);
    if (st == LOP_OK) st = lop_make(mk, "quasiseparable_det", &plain, GENERATORS + 1, v, NULL, out);
    for (int i = 0; i < GENERATORS + 1; i++) lop_node_unref(v[i]);
    lop_node_unref(dense);
    return st;
}

/* The main diagonal of the inverse of a Hermitian one. */
LOP_BUILD(quasi_inverse_diagonal) {
    const lop_node *a = m->root->child[0]->child[0], *dense = NULL, *inverse = NULL, *eye = NULL,
                   *v[GENERATORS + 1] = {NULL};
    const lop_dtype dt = m->root->dtype;
    const lop_node like = {
        .shape = {.ndim = 2, .dim = {lop_rows(a), lop_rows(a)}}, .dtype = dt, .core = 2};
    const lop_attr k = {.i = {0, 0, 0, (int64_t)dt + 1}};
    if (is_triangular(a) || dt != a->dtype) return LOP_NOMATCH;
    lop_status st = widened(mk, a, dt, v);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &k, a, &dense);
    if (st == LOP_OK) st = lop_make(mk, "eye", NULL, 0, NULL, &like, &eye);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_lu_solve, NULL, dense, eye, &inverse);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_array_diagonal, NULL, inverse, &v[4]);
    const lop_attr band = {.i = {1, 0, 0, 0}}, plain = {.i = {0, 0, 0, 0}};
    if (st == LOP_OK && by_band(a)) st = between(mk, "quasiinvdiag", &band, GENERATORS, v);
    if (st == LOP_OK) st = lop_make(mk, "quasiinvdiag", &plain, GENERATORS + 1, v, NULL, out);
    for (int i = 0; i < GENERATORS + 1; i++) lop_node_unref(v[i]);
    lop_node_unref(dense);
    lop_node_unref(inverse);
    lop_node_unref(eye);
    return st;
}

/* Of A^-1 of a Hermitian A, by A's factor. */
LOP_BUILD(generators_inverse) {
    const lop_node *root = m->root, *a = root->child[0]->child[0], *v[2 * GENERATORS] = {NULL};
    if (is_triangular(a) || lop_is_complex(root->dtype) != lop_is_complex(a->dtype))
        return LOP_NOMATCH;
    const lop_attr how = {.i = {root->attr.i[0], 0, 0, 0}};
    lop_status st = widened(mk, a, root->dtype, v);
    for (int i = 0; i < 3; i++) v[GENERATORS + i] = lop_node_ref(root->child[1 + i]);
    if (st == LOP_OK) st = lop_generators_of_dense(mk, root, &v[2 * GENERATORS - 1]);
    if (st == LOP_OK)
        st = lop_make_op(mk, &lop_op_quasi_inverse_sums, &how, 2 * GENERATORS, v, NULL, out);
    for (int i = 0; i < 2 * GENERATORS; i++) lop_node_unref(v[i]);
    return st;
}

/* -- S^-1 X S^-1, which second derivatives read */

/* S and X, both Hermitian, X perhaps diagonal, or NULL for the identity; NULL: they are not that.
 */
static const lop_node *quasi_between(const lop_match *m, const lop_node **x) {
    const lop_node *a = lop_read_between(m->root->child[0], x);
    const bool twice = !a;
    if (twice) a = lop_read_inverse_twice(m->root->child[0]);
    if (!a || a->op != &lop_op_quasiseparable || is_triangular(a)) return NULL;
    if (twice) {
        const bool same = lop_is_complex(a->dtype) == lop_is_complex(m->root->dtype);
        *x = NULL;
        return same && lop_is_blas(m->root->dtype) ? a : NULL;
    }
    const lop_node *own = *x;
    while (own->op == &lop_op_view) own = own->child[0];
    if (own->op == &lop_op_diag && !lop_is_complex(own->dtype))
        *x = own;
    else if ((*x)->op != &lop_op_quasiseparable || is_triangular(*x))
        return NULL;
    const bool either = lop_is_complex(a->dtype) || lop_is_complex((*x)->dtype);
    return lop_is_blas(m->root->dtype) && lop_is_complex(m->root->dtype) == either ? a : NULL;
}
/* The four of X of so many rows, of a diagonal one, or the identity, without states. */
static lop_status middle(const lop_maker *mk, const lop_node *x, int64_t rows, lop_dtype dt,
                         const lop_node **v) {
    if (x && x->op != &lop_op_diag) return widened(mk, x, dt, v);
    const lop_dtype real = lop_dtype_real(dt);
    const lop_attr d = {.i = {0, 0, 0, (int64_t)real + 1}};
    const lop_node like = {.shape = {.ndim = 2, .dim = {rows, 0}}, .dtype = real, .core = 2},
                   one = {.shape = {.ndim = 1, .dim = {rows}}, .dtype = real, .core = 1};
    lop_status st = x ? lop_make1(mk, &lop_op_cast, &d, x->child[0], &v[0])
                      : lop_make(mk, "ones", NULL, 0, NULL, &one, &v[0]);
    for (int i = 1; st == LOP_OK && i < GENERATORS; i++)
        st = lop_make(mk, "ones", NULL, 0, NULL, &like, &v[i]);
    return st;
}
LOP_BUILD(generators_between) {
    enum { ALL = 3 * GENERATORS };
    const lop_node *root = m->root, *x, *a = quasi_between(m, &x), *v[ALL] = {NULL};
    const lop_attr how = {.i = {root->attr.i[0], 0, 0, 0}};
    if (!a) return LOP_NOMATCH;
    lop_status st = widened(mk, a, root->dtype, v);
    if (st == LOP_OK) st = middle(mk, x, lop_rows(a), root->dtype, v + GENERATORS);
    for (int i = 0; i < 3; i++) v[2 * GENERATORS + i] = lop_node_ref(root->child[1 + i]);
    if (st == LOP_OK) st = lop_generators_of_dense(mk, root, &v[ALL - 1]);
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_quasi_between_sums, &how, ALL, v, NULL, out);
    for (int i = 0; i < ALL; i++) lop_node_unref(v[i]);
    return st;
}
LOP_BUILD(between_quasi_diagonal) {
    enum { ALL = 2 * GENERATORS + 1 };
    const lop_node *x, *a = quasi_between(m, &x), *v[ALL] = {NULL};
    const lop_dtype dt = m->root->dtype;
    if (!a || m->root->attr.i[0] != 0) return LOP_NOMATCH;
    lop_status st = widened(mk, a, dt, v);
    if (st == LOP_OK) st = middle(mk, x, lop_rows(a), dt, v + GENERATORS);
    if (st == LOP_OK) st = lop_diagonal_of_dense(mk, dt, m->root->child[0], &v[ALL - 1]);
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_quasi_between_diagonal, NULL, ALL, v, NULL, out);
    for (int i = 0; i < ALL; i++) lop_node_unref(v[i]);
    return st;
}
LOP_BUILD(between_quasi_trace) {
    const lop_node *x;
    return quasi_between(m, &x) ? lop_build_trace_diagonal(m, mk, out) : LOP_NOMATCH;
}
