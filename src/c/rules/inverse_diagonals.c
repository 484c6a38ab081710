/* inverse_diagonals.c: diagonals of inverses that no file of their kind has, and the way that all
 * of them fall back to. */
#include "builds.h"
#include "expr/properties.h"
#include "rewrite/guards.h"

/* The inverse of the dense form: the safer arm of those by structure. */
lop_status lop_inverse_array(const lop_maker *mk, const lop_node *a, lop_dtype dt,
                             const lop_node **out) {
    const lop_attr d = {.i = {0, 0, 0, (int64_t)dt + 1}},
                   tried = {.i = {1 + lop_infer_assumed_definite(a), 0, 0, 0}};
    const lop_node like = {.shape = a->shape, .dtype = dt, .core = 2};
    const lop_node *dense = NULL, *unit = NULL;
    const bool cholesky = lop_infer_hermitian(a);
    lop_status st = lop_make1(mk, &lop_op_todense, &d, a, &dense);
    /* not `invert`, whose scratch would be had in any case */
    if (st == LOP_OK) st = lop_make(mk, "eye", NULL, 0, NULL, &like, &unit);
    if (st == LOP_OK)
        st = lop_make2(mk, cholesky ? &lop_op_cholesky_solve : &lop_op_lu_solve,
                       cholesky ? &tried : NULL, dense, unit, out);
    lop_node_unref(dense);
    lop_node_unref(unit);
    return st;
}
lop_status lop_inverse_diagonal(const lop_maker *mk, const lop_node *a, const lop_attr *at,
                                lop_dtype dt, const lop_node **out) {
    const lop_attr k = {.i = {at->i[0], 0, 0, 0}};
    const lop_node *inverse;
    lop_status st = lop_inverse_array(mk, a, dt, &inverse);
    if (st != LOP_OK) return st;
    st = lop_make1(mk, &lop_op_array_diagonal, &k, inverse, out);
    lop_node_unref(inverse);
    return st;
}

/* -- what is opened first: the inverse of ... */

lop_status lop_inverse_closed(const lop_maker *mk, const lop_node *a, const lop_node **out) {
    const lop_node *closed;
    lop_status st = lop_make1(mk, &lop_op_inverse, NULL, a, out);
    if (st != LOP_OK) return st;
    st = lop_close_once(mk, *out, &closed);
    if (st == LOP_NOMATCH) return LOP_OK;
    lop_node_unref(*out);
    *out = st == LOP_OK ? closed : NULL;
    return st;
}

/* Of a Diag a Diag, of an inverse what it is the inverse of. Owned. */
static lop_status inverse_of(const lop_maker *mk, const lop_node *a, const lop_node **out) {
    const lop_node *r;
    if (a->op == &lop_op_inverse || a->op == &lop_op_identity) {
        *out = lop_node_ref(a->op == &lop_op_inverse ? a->child[0] : a);
        return LOP_OK;
    }
    if (a->op != &lop_op_diag) return lop_inverse_closed(mk, a, out);
    lop_status st = lop_make1(mk, &lop_op_recip, NULL, a->child[0], &r);
    if (st != LOP_OK) return st;
    st = lop_make1(mk, &lop_op_diag, NULL, r, out);
    lop_node_unref(r);
    return st;
}

static lop_status kron_of_inverses(const lop_maker *mk, const lop_node *k, const lop_node **out) {
    const lop_node **f = lop_calloc(mk->ctx, (size_t)k->n, sizeof *f);
    if (!f) return lop_fail(mk->err, LOP_NOMEM, NULL);
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < k->n; i++) st = inverse_of(mk, k->child[i], &f[i]);
    if (st == LOP_OK) st = lop_make(mk, "kron", NULL, k->n, f, NULL, out);
    for (int i = 0; i < k->n; i++) lop_node_unref(f[i]);
    lop_free(mk->ctx, (void *)f);
    return st;
}

/* Is one of its factors solved with at once, or the inverse of something? */
static bool has_cheap_factor(const lop_node *a, int depth) {
    if (a->op == &lop_op_inverse) return true;
    if (a->op == &lop_op_prod && depth > 0)
        return lop_is_square(a->child[0]) && lop_is_square(a->child[1]) &&
               (has_cheap_factor(a->child[0], depth - 1) ||
                has_cheap_factor(a->child[1], depth - 1));
    return lop_cheap_to_solve(a);
}

/* (A B)^-1 = B^-1 A^-1 where one of them is solved with at once; else the product is formed, as is
 * one that is a narrow band. */
static lop_status prod_of_inverses(const lop_maker *mk, const lop_node *p, const lop_node **out) {
    const lop_node *a = NULL, *b = NULL;
    if (!lop_is_square(p->child[0]) || !lop_is_square(p->child[1]) ||
        !has_cheap_factor(p, LOP_INFER_FACTORS) || lop_band_is_narrow(p, lop_infer_bands(p)))
        return LOP_NOMATCH;
    lop_status st = inverse_of(mk, p->child[0], &a);
    if (st == LOP_OK) st = inverse_of(mk, p->child[1], &b);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_prod, NULL, b, a, out);
    lop_node_unref(a);
    lop_node_unref(b);
    return st;
}

/* The dense form of the inverse of a product by those of its factors. */
LOP_BUILD(inverse_prod) {
    const lop_node *product = NULL;
    lop_status st = prod_of_inverses(mk, m->root->child[0]->child[0], &product);
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, product, out);
    lop_node_unref(product);
    return st;
}

static bool all_square(const lop_node *a) {
    for (int i = 0; i < a->n; i++)
        if (!lop_is_square(a->child[i])) return false;
    return lop_rows(a) > 0; /* beside one of no rows a singular factor is none */
}

/* diag_k(A^-T) = diag_-k(A^-1). */
static lop_status view_of_inverse(const lop_match *m, const lop_maker *mk, const lop_node *view,
                                  const lop_node **out) {
    const int64_t mode = view->attr.i[0];
    lop_attr k = m->root->attr;
    const lop_node *inverse = NULL, *d = NULL;
    if (mode & LOP_T) k.i[0] = -k.i[0];
    lop_status st = inverse_of(mk, view->child[0], &inverse);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_diagonal, &k, inverse, &d);
    if (st == LOP_OK && !(mode & LOP_C)) *out = lop_node_ref(d);
    if (st == LOP_OK && (mode & LOP_C)) st = lop_make1(mk, &lop_op_conjugate, NULL, d, out);
    lop_node_unref(inverse);
    lop_node_unref(d);
    return st;
}

LOP_BUILD(diagonal_inverse_opened) {
    const lop_node *a = m->root->child[0]->child[0], *inverse = NULL;
    lop_status st = LOP_NOMATCH;
    if (!lop_is_blas(m->root->dtype)) return st;
    if (a->op == &lop_op_view) return view_of_inverse(m, mk, a, out);
    if (lop_has(a, LOP_FLAG_diagonal) || a->op == &lop_op_inverse) st = inverse_of(mk, a, &inverse);
    if (a->op == &lop_op_kron && all_square(a)) st = kron_of_inverses(mk, a, &inverse);
    if (a->op == &lop_op_prod) st = prod_of_inverses(mk, a, &inverse);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_diagonal, &m->root->attr, inverse, out);
    lop_node_unref(inverse);
    return st;
}

/* -- Circulant: the inverse is one, every element of its diagonal k the first column's -k mod n */

LOP_BUILD(circulant_inverse_diagonal) {
    const lop_node *c = m->root->child[0]->child[0], *levels = c->child[1], *unit = NULL, *x = NULL,
                   *one = NULL;
    const int64_t n = lop_rows(c), k = m->root->attr.i[0];
    const lop_attr first = {.i = {0, 0, 0, 0}}, at = {.i = {n ? ((-k) % n + n) % n : 0, 0, 0, 0}},
                   many = {.i = {lop_diag_length(n, n, k), 0, 0, 0}};
    const lop_node like = {.shape = {.ndim = 2, .dim = {n, 1}}, .dtype = m->root->dtype, .core = 2};
    if (!lop_is_blas(m->root->dtype) || n == 0 || (k != 0 && levels->shape.ndim > 1))
        return LOP_NOMATCH;
    lop_status st = lop_make(mk, "unit", &first, 0, NULL, &like, &unit);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_solve, NULL, c, unit, &x);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_array_element, &at, x, &one);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_repeat, &many, one, out);
    const lop_node *gone[] = {unit, x, one};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* -- by eigenvectors */

/* |V|^2 element by element, as an operator. Owned. */
lop_status lop_squares_of(const lop_maker *mk, lop_dtype dt, const lop_node *v,
                          const lop_node **out) {
    const lop_attr d = {.i = {0, 0, 0, (int64_t)dt + 1}};
    const lop_node *a = NULL, *conj = NULL, *square = NULL;
    if (v->op == &lop_op_identity) {
        *out = lop_node_ref(v);
        return LOP_OK;
    }
    lop_status st = lop_make1(mk, &lop_op_todense, &d, v, &a);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_conjugate, NULL, a, &conj);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_mul, NULL, a, conj, &square);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_dense, NULL, square, out);
    const lop_node *gone[] = {a, conj, square};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* A column of n ones. Owned. */
lop_status lop_ones_column(const lop_maker *mk, lop_dtype dt, int64_t n, const lop_node **out) {
    const lop_attr to = {.i = {0, 0, 0, (int64_t)dt + 1}}, number = lop_attr_coef(1, 0);
    const lop_node column = {.shape = {.ndim = 2, .dim = {n, 1}}, .dtype = dt, .core = 2};
    const lop_node *full = NULL;
    lop_status st = lop_make(mk, "full", &number, 0, NULL, &column, &full);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &to, full, out);
    lop_node_unref(full);
    return st;
}
/* A column of ones, over d. Owned. */
lop_status lop_reciprocals(const lop_maker *mk, lop_dtype dt, const lop_node *d,
                           const lop_node **out) {
    const lop_attr to = {.i = {0, 0, 0, (int64_t)dt + 1}};
    const lop_node *cast = NULL, *one = NULL;
    lop_status st = lop_make1(mk, &lop_op_cast, &to, d, &cast);
    if (st == LOP_OK) st = lop_ones_column(mk, dt, lop_cols(d), &one);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_div, NULL, one, cast, out);
    lop_node_unref(cast);
    lop_node_unref(one);
    return st;
}

/* The sums over j of |V_ij|^2 / d_j: a Kron times a vector. */
lop_status lop_diagonal_of_spectrum(const lop_maker *mk, lop_dtype dt, int n,
                                    const lop_node *const *v, const lop_node *d,
                                    const lop_node **out) {
    const lop_attr matrix = {.i = {2, 0, 0, 0}};
    const lop_node **f = lop_calloc(mk->ctx, (size_t)n, sizeof *f), *squares = NULL, *w = NULL,
                   *x = NULL;
    if (!f) return lop_fail(mk->err, LOP_NOMEM, NULL);
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < n; i++) st = lop_squares_of(mk, dt, v[i], &f[i]);
    if (st == LOP_OK) st = lop_make(mk, "kron", NULL, n, f, NULL, &squares);
    if (st == LOP_OK) st = lop_reciprocals(mk, dt, d, &w);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, squares, w, &x);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_ravel, &matrix, x, out);
    for (int i = 0; i < n; i++) lop_node_unref(f[i]);
    lop_free(mk->ctx, (void *)f);
    const lop_node *gone[] = {squares, w, x};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* Kron(v[0], ..., v[n-1]), or the one. Owned. */
lop_status lop_kron_of(const lop_maker *mk, int n, const lop_node *const *v, const lop_node **out) {
    if (n > 1) return lop_make(mk, "kron", NULL, n, v, NULL, out);
    *out = lop_node_ref(v[0]);
    return LOP_OK;
}

/* The numbers sum_j (W^H X W)_jj / d_ij as an array: `rows` of M, 1 / d as a matrix, are those of
 * the factor that comes first; `first`: it is X. Owned. */
static lop_status weights_of(const lop_maker *mk, lop_dtype dt, const lop_node *w,
                             const lop_node *wh, const lop_node *x, const lop_node *d, bool first,
                             const lop_node **out) {
    const int64_t px = lop_rows(x), all = lop_cols(d), rows = first ? px : all / px;
    const lop_attr value = {.i = {0, 0, 0, (int64_t)dt + 1}}, matrix = {.i = {2, 0, 0, 0}},
                   fold = {.i = {1, rows, all / rows, 1}}, turn = {.i = {LOP_T, 0, 0, 0}};
    const lop_node *in = NULL, *xw = NULL, *all_of = NULL, *mu = NULL, *one = NULL, *folded = NULL,
                   *op = NULL, *view = NULL, *conj = NULL, *by = NULL, *ones = NULL, *column = NULL,
                   *y = NULL;
    lop_status st = lop_make1(mk, &lop_op_dense, NULL, x, &in);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_prod, NULL, in, w, &xw);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_prod, NULL, wh, xw, &all_of);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_diagonal, &value, all_of, &mu);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_conjugate, NULL, mu, &conj);
    if (st == LOP_OK) st = lop_reciprocals(mk, dt, d, &one);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_kron_unfold, &fold, one, &folded);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_dense, NULL, folded, &op);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_view, &turn, op, &view);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_diag, NULL, conj, &by);
    if (st == LOP_OK) st = lop_ones_column(mk, dt, px, &ones);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, by, ones, &column);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, first ? view : op, column, &y);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_ravel, &matrix, y, out);
    const lop_node *gone[] = {in, xw, all_of, mu, one, folded, op, view, conj, by, ones, column, y};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

lop_status lop_partial_of_spectrum(const lop_maker *mk, lop_dtype dt, int n,
                                   const lop_node *const *v, const lop_node *const *vh,
                                   const lop_node *d, const lop_node *root, const lop_node **out) {
    const bool first = root->attr.i[0] != 0;
    const lop_node *x = root->child[1], *at[4] = {NULL}, *u = NULL, *diag = NULL, *half = NULL,
                   *all = NULL;
    const lop_attr value = {.i = {0, 0, 0, (int64_t)dt + 1}};
    int64_t size = 1;
    int few = 0; /* places of X */
    while (few < n && size < lop_rows(x)) size *= lop_rows(v[first ? few : n - 1 - few]), few++;
    if (size != lop_rows(x) || !lop_is_square(x) || few == 0 || few == n) return LOP_NOMATCH;
    const int theirs = first ? 0 : n - few, mine = first ? few : 0;
    lop_status st = lop_kron_of(mk, few, v + theirs, &at[0]);
    if (st == LOP_OK) st = lop_kron_of(mk, few, vh + theirs, &at[1]);
    if (st == LOP_OK) st = lop_kron_of(mk, n - few, v + mine, &at[2]);
    if (st == LOP_OK) st = lop_kron_of(mk, n - few, vh + mine, &at[3]);
    if (st == LOP_OK) st = weights_of(mk, dt, at[0], at[1], x, d, first, &u);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_diag, NULL, u, &diag);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_prod, NULL, diag, at[3], &half);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_prod, NULL, at[2], half, &all);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &value, all, out);
    const lop_node *gone[] = {at[0], at[1], at[2], at[3], u, diag, half, all};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* -- tr(A^-1 B) of bands: what stands in B's diagonals meets those of A^-1 within A's band */

enum { MOST_DIAGONALS = 9 };

/* The sum over diagonal k of A^-1 times diagonal -k of B, added to *sum (NULL: none yet). */
static lop_status add_diagonal(const lop_maker *mk, const lop_node *inverse, const lop_node *b,
                               int64_t k, int64_t type, const lop_node **sum) {
    const lop_attr at[2] = {{.i = {k, 0, 0, type}}, {.i = {-k, 0, 0, type}}};
    const lop_node *d[2] = {NULL, NULL}, *both = NULL, *one = NULL, *more = NULL;
    lop_status st = lop_make1(mk, &lop_op_diagonal, &at[0], inverse, &d[0]);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_diagonal, &at[1], b, &d[1]);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_mul, NULL, d[0], d[1], &both);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_sumall, NULL, both, &one);
    if (st == LOP_OK && *sum) st = lop_make2(mk, &lop_op_add, NULL, *sum, one, &more);
    const lop_node *gone[] = {d[0], d[1], both, more ? one : NULL, more ? *sum : NULL};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    if (st == LOP_OK) *sum = more ? more : one;
    if (st != LOP_OK) lop_node_unref(one);
    return st;
}

/* A^-1 and B of their product, either way round; *in: the diagonals of B, all within A's band. */
static bool read_bands(const lop_node *p, const lop_node **inverse, const lop_node **b,
                       lop_band *in) {
    const bool first = p->child[0]->op == &lop_op_inverse;
    *inverse = p->child[!first];
    *b = p->child[first];
    const lop_node *a = (*inverse)->child[0];
    const int64_t n = lop_rows(a);
    if (!lop_is_blas(a->dtype) || !lop_is_blas((*b)->dtype) || !lop_is_square(a) ||
        !lop_is_square(*b) || n < 2 || (*b)->op == &lop_op_inverse)
        return false;
    const lop_band of = lop_infer_bands(a);
    *in = lop_infer_bands(*b);
    return in->l <= of.l && in->u <= of.u && of.l < n && of.u < n &&
           in->l + in->u < MOST_DIAGONALS &&
           (a->op == &lop_op_tridiagonal || lop_band_is_narrow(a, of));
}

LOP_BUILD(trace_inverse_bands) {
    const lop_node *inverse, *b;
    lop_band in;
    lop_status st = LOP_OK;
    if (!read_bands(m->root->child[0], &inverse, &b, &in)) return LOP_NOMATCH;
    *out = NULL;
    for (int64_t k = -in.u; st == LOP_OK && k <= in.l; k++)
        st = add_diagonal(mk, inverse, b, k, (int64_t)m->root->dtype + 1, out);
    if (st == LOP_OK) return st;
    lop_node_unref(*out);
    *out = NULL;
    return st;
}

/* Those diagonals of A^-1 that meet some of B's, as the band that they are, in place of A^-1. */
LOP_BUILD(diagonal_inverse_bands) {
    const lop_node *p = m->root->child[0], *inverse, *b, *near = NULL, *both = NULL;
    lop_band in;
    if (!read_bands(p, &inverse, &b, &in) || lop_nbatch(p) > 0 || m->root->dtype != p->dtype ||
        p->dtype != inverse->dtype)
        return LOP_NOMATCH;
    const int64_t n = lop_rows(p);
    lop_status st = LOP_OK;
    for (int64_t k = -in.u; st == LOP_OK && k <= in.l; k++) {
        const lop_attr at = {.i = {k, 0, 0, (int64_t)p->dtype + 1}}, where = {.i = {k, n, n, 0}};
        const lop_node *d = NULL, *one = NULL;
        st = lop_make1(mk, &lop_op_diagonal, &at, inverse, &d);
        if (st == LOP_OK) st = lop_make1(mk, &lop_op_offdiag, &where, d, &one);
        if (st == LOP_OK) st = lop_plus(mk, one, &near);
        lop_node_unref(d);
        lop_node_unref(one);
    }
    const bool first = inverse == p->child[0];
    if (st == LOP_OK)
        st = lop_make2(mk, &lop_op_prod, NULL, first ? near : b, first ? b : near, &both);
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, both, out);
    lop_node_unref(near);
    lop_node_unref(both);
    return st;
}
