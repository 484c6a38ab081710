/* bands_permutations_triangles.c: computed right sides for permutations, diagonals off the middle,
 * bands, triangles and the other small kinds. */
#include "assumed_terms.h"
#include "expr/properties.h"
#include "rewrite/guards.h"
#include "ops/shared/grid.h"
#include "ops/shared/sparse_solver.h"

#include <float.h>
#include <math.h>

#define HOLE(m, c) ((m)->node[(c) - 'a'])
#define ATTR(m, c) ((m)->attr[(c) - 'a'])

/* Gives away `inner`. */
static lop_status wrap(const lop_maker *mk, const lop_op *op, const lop_attr *attr,
                       const lop_node *inner, const lop_node **out) {
    lop_status st = lop_make1(mk, op, attr, inner, out);
    lop_node_unref(inner);
    return st;
}

/* A view of what is real whatever its dtype. */
LOP_BUILD(drop_conj) {
    const lop_node *a = m->root->child[0];
    lop_attr mode = {.i = {ATTR(m, 'm').i[0] & LOP_T, 0, 0, 0}};
    if (mode.i[0]) return lop_make1(mk, &lop_op_view, &mode, a, out);
    *out = lop_node_ref(a);
    return LOP_OK;
}

/* `a`, conjugated where the mode says so and it is complex. Owned. */
static lop_status conj_of(const lop_maker *mk, int64_t mode, const lop_node *a,
                          const lop_node **out) {
    if ((mode & LOP_C) && lop_is_complex(a->dtype))
        return lop_make1(mk, &lop_op_conjugate, NULL, a, out);
    *out = lop_node_ref(a);
    return LOP_OK;
}

LOP_BUILD(view_offdiag) {
    int64_t mode = ATTR(m, 'm').i[0];
    lop_attr a = ATTR(m, 'a'), t = {.i = {-a.i[0], a.i[2], a.i[1], 0}};
    const lop_node *d;
    lop_status st = conj_of(mk, mode, HOLE(m, 'a'), &d);
    return st == LOP_OK ? wrap(mk, &lop_op_offdiag, mode & LOP_T ? &t : &a, d, out) : st;
}

LOP_BUILD(compose) {
    lop_attr a = {.i = {0, m->root->weak, (int64_t)m->root->dtype, 0}};
    const lop_node *p;
    if (m->root->dtype >= LOP_NDTYPE) return LOP_NOMATCH;
    lop_status st = lop_make2(mk, &lop_op_compose, NULL, HOLE(m, 'q'), HOLE(m, 'p'), &p);
    return st == LOP_OK ? wrap(mk, &lop_op_permutation, &a, p, out) : st;
}

LOP_BUILD(view_permutation) {
    if (!(ATTR(m, 'm').i[0] & LOP_T)) {
        *out = lop_node_ref(m->root->child[0]);
        return LOP_OK;
    }
    const lop_node *p;
    lop_status st = lop_make1(mk, &lop_op_inverse_permutation, NULL, HOLE(m, 'p'), &p);
    return st == LOP_OK ? wrap(mk, &lop_op_permutation, &ATTR(m, 'a'), p, out) : st;
}

/* -- tridiagonal */

/* Three owned vectors become the kind, or go. */
static lop_status tridiagonal(const lop_maker *mk, const lop_attr *attr, const lop_node **v,
                              lop_status st, const lop_node **out) {
    if (st == LOP_OK) st = lop_make(mk, "tridiagonal", attr, 3, v, NULL, out);
    for (int i = 0; i < 3; i++) lop_node_unref(v[i]);
    return st;
}

/* The three for what has such attributes; where those name no half by the one that a's names:
 * owned. */
static lop_status three_of(const lop_maker *mk, const lop_node *a, const lop_attr *of,
                           const lop_node **v) {
    int count = 0;
    if (!lop_names_lines(of, 0) && lop_has_named_lines(a))
        return lop_named_lines(a, a->child, &count, v, mk->err);
    for (int i = 0; i < 3; i++) v[i] = lop_node_ref(a->child[i]);
    return LOP_OK;
}
static void drop_three(const lop_node **v) {
    for (int i = 0; i < 3; i++) lop_node_unref(v[i]);
}

LOP_BUILD(view_tridiagonal) {
    const lop_node *a = m->root->child[0], *v[3] = {NULL, NULL, NULL};
    int64_t mode = m->root->attr.i[0];
    lop_attr attr = a->attr;
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < 3; i++)
        st = conj_of(mk, mode, a->child[mode & LOP_T ? 2 - i : i], &v[i]);
    if ((mode & LOP_T) && attr.i[0]) attr.i[1] ^= 1;
    if ((mode & LOP_C) && lop_is_complex(a->dtype))
        attr.i[2] = lop_path_on(attr.i[2], false, LOP_PATH_WITHIN);
    return tridiagonal(mk, &attr, v, st, out);
}

int64_t lop_assumption_left(int64_t assumed, bool real, bool positive) {
    if (assumed != LOP_ASSUME_SYMMETRIC && !real) return LOP_ASSUME_GENERAL;
    return assumed == LOP_ASSUME_POSITIVE && !positive ? LOP_ASSUME_HERMITIAN : assumed;
}

bool lop_is_positive_multiple(const lop_node *multiple) {
    return lop_coef_test(multiple->ctx, lop_coef_of(&multiple->attr), LOP_COEF_POSITIVE);
}

/* Of a multiple of the identity: then nothing is assumed of the difference. */
bool lop_is_negative_multiple(const lop_node *multiple) {
    return lop_coef_test(multiple->ctx, lop_coef_of(&multiple->attr), LOP_COEF_NEGATIVE);
}

static lop_attr tridiagonal_left(const lop_attr *a, bool real, bool positive) {
    lop_attr left = *a;
    left.i[0] = lop_assumption_left(a->i[0], real, positive);
    left.i[2] = 0;
    if (left.i[0] == LOP_ASSUME_GENERAL) left.i[1] = 0;
    return left;
}

LOP_BUILD(scaled_tridiagonal) {
    const lop_node *a = m->root->child[0], *v[3] = {NULL, NULL, NULL}, *x[3] = {NULL, NULL, NULL};
    const bool positive = lop_is_positive_multiple(m->root);
    const lop_attr *c = &m->root->attr;
    lop_attr attr = tridiagonal_left(&a->attr, c->im == 0, positive);
    if (positive) attr.i[2] = lop_path_on(a->attr.i[2], false, LOP_PATH_WITHIN);
    lop_status st = three_of(mk, a, &attr, x);
    for (int i = 0; st == LOP_OK && i < 3; i++)
        if (i == 2 && x[2] == x[0]) /* symmetric, and seen to be */
            v[2] = lop_node_ref(v[0]);
        else
            st = lop_join(mk, &lop_op_scale, c, x[i], NULL, &v[i]);
    drop_three(x);
    return tridiagonal(mk, &attr, v, st, out);
}

LOP_BUILD(sum_tridiagonal) {
    const lop_node *a = m->root->child[0], *b = m->root->child[1], *v[3] = {NULL, NULL, NULL},
                   *x[3] = {NULL, NULL, NULL}, *y[3] = {NULL, NULL, NULL};
    lop_attr attr = lop_assumed_of_sum(a, b, 0);
    if (a->attr.i[1] != b->attr.i[1] || attr.i[0] == LOP_ASSUME_GENERAL)
        attr = (lop_attr){.i = {LOP_ASSUME_GENERAL, 0, 0, 0}};
    lop_status st = three_of(mk, a, &attr, x);
    if (st == LOP_OK) st = three_of(mk, b, &attr, y);
    const bool same = x[0] == x[2] && y[0] == y[2];
    for (int i = 0; st == LOP_OK && i < 3; i++)
        if (i == 2 && same)
            v[2] = lop_node_ref(v[0]);
        else
            st = lop_join(mk, &lop_op_add, NULL, x[i], y[i], &v[i]);
    drop_three(x);
    drop_three(y);
    return tridiagonal(mk, &attr, v, st, out);
}

/* A tridiagonal and a diagonal of whatever sort, in either order. */
LOP_BUILD(tridiagonal_plus) {
    const bool first = m->root->child[0]->op == &lop_op_tridiagonal;
    const lop_node *a = m->root->child[first ? 0 : 1], *o = m->root->child[first ? 1 : 0],
                   *v[3] = {NULL, NULL, NULL}, *d = NULL, *main = NULL;
    const bool multiple = o->op == &lop_op_scaled, known = multiple || o->op == &lop_op_identity,
               real = multiple ? o->attr.im == 0 : !lop_is_complex(o->dtype) || known;
    lop_attr attr =
        tridiagonal_left(&a->attr, real, known && (!multiple || lop_is_positive_multiple(o)));
    if (attr.i[0] == LOP_ASSUME_HERMITIAN && !(multiple && lop_is_negative_multiple(o)))
        attr.i[2] = lop_path_on(a->attr.i[2], a->attr.i[0] == LOP_ASSUME_POSITIVE,
                                LOP_PATH_BESIDE_DIAGONAL + !first);
    lop_status st = three_of(mk, a, &attr, v);
    main = v[1];
    v[1] = NULL;
    if (st == LOP_OK) st = lop_make_diagonal(mk, o, &d);
    if (st == LOP_OK)
        st = lop_join(mk, &lop_op_add, NULL, first ? main : d, first ? d : main, &v[1]);
    lop_node_unref(main);
    lop_node_unref(d);
    return tridiagonal(mk, &attr, v, st, out);
}

/* -- solves: the parameters in the dtype of the quotient from their leaves on */

LOP_BUILD(tridisolve) {
    const lop_node *a = m->root->child[0], *v[4] = {NULL, NULL, NULL, m->root->child[1]};
    lop_attr d = {.i = {0, 0, 0, (int64_t)m->root->dtype + 1}}, how = a->attr;
    lop_status st = LOP_OK;
    how.i[2] = 0;
    for (int i = 0; st == LOP_OK && i < 3; i++)
        st = lop_make1(mk, &lop_op_cast, &d, a->child[i], &v[i]);
    if (st == LOP_OK) st = lop_make(mk, "tridiagonal_solve", &how, 4, v, NULL, out);
    for (int i = 0; i < 3; i++) lop_node_unref(v[i]);
    return st;
}

LOP_BUILD(bandsolve) {
    const lop_node *top = m->root->child[0], *a = top->op == &lop_op_view ? top->child[0] : top,
                   *ab;
    lop_attr d = {.i = {0, 0, 0, (int64_t)m->root->dtype + 1}}, how = a->attr;
    how.i[3] = a == top ? LOP_N : top->attr.i[0];
    lop_status st = lop_make1(mk, &lop_op_cast, &d, a->child[0], &ab);
    if (st != LOP_OK) return st;
    st = lop_make2(mk, &lop_op_band_solve, &how, ab, m->root->child[1], out);
    lop_node_unref(ab);
    return st;
}

/* -- bands and triangles that are seen from how the matrix is written */

lop_status lop_make_band(const lop_maker *mk, const lop_node *a, lop_band b, lop_dtype dt,
                         const lop_node **out) {
    const lop_node like = {
        .shape = {.ndim = 2, .dim = {lop_rows(a), b.l + b.u + 1}}, .dtype = dt, .core = 2};
    const lop_attr how = {.i = {b.l, b.u, 0, 0}};
    const lop_node *probe, *few;
    lop_status st = lop_make(mk, "bandprobe", NULL, 0, NULL, &like, &probe);
    if (st != LOP_OK) return st;
    st = lop_make2(mk, &lop_op_apply, NULL, a, probe, &few);
    lop_node_unref(probe);
    return st == LOP_OK ? wrap(mk, &lop_op_band_from_products, &how, few, out) : st;
}

/* The diagonal of a product that is diagonal by how it is written, H^T D H of a selection H: one
 * product, A 1, since no row has another entry. */
LOP_BUILD(diagonal_single) {
    const lop_node *a = m->root->child[0], *probe = NULL, *few = NULL, *row = NULL;
    const lop_dtype dt = (lop_dtype)(ATTR(m, 'k').i[3] - 1);
    const lop_node like = {.shape = {.ndim = 2, .dim = {lop_cols(a), 1}}, .dtype = dt, .core = 2};
    const lop_attr turn = {.i = {LOP_T, 0, 0, 0}}, main = {.i = {0, 0, 0, 0}};
    const lop_band b = lop_infer_bands(a);
    if (ATTR(m, 'k').i[0] != 0 || !lop_is_blas(dt) || !lop_is_square(a) || b.l || b.u ||
        lop_rows(a) < 2)
        return LOP_NOMATCH;
    lop_status st = lop_make(mk, "bandprobe", NULL, 0, NULL, &like, &probe);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, a, probe, &few);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_swap, &turn, probe, &row);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_product_diagonal, &main, few, row, out);
    lop_node_unref(probe);
    lop_node_unref(few);
    lop_node_unref(row);
    return st;
}

/* Is a product a band so narrow that it is read off few products? A sum of products of entries of
 * two dense forms takes 2 n of them for each number. */
static bool read_off(const lop_node *a, lop_dtype dt, lop_band *b) {
    *b = lop_infer_bands(a);
    const int64_t most = lop_rows(a) / 2 - 1;
    return lop_is_blas(dt) && lop_is_square(a) && b->l <= most && b->u <= most - b->l;
}

/* A row of the band that it is by how it is written. */
LOP_BUILD(diagonal_band) {
    const lop_node *a = m->root->child[0], *band = NULL, *row = NULL, *part = NULL;
    const lop_dtype dt = m->root->dtype;
    const int64_t n = lop_rows(a), k = ATTR(m, 'k').i[0];
    const lop_attr matrix = {.i = {2, 0, 0, 0}};
    lop_band b;
    if (!read_off(a, dt, &b) || -k > b.l || k > b.u) return LOP_NOMATCH;
    const lop_attr line = {.i = {0, b.u - k, 1, 1}},
                   run = {.i = {1, k > 0 ? k : 0, 1, lop_diag_length(n, n, k)}};
    lop_status st = lop_make_band(mk, a, b, dt, &band);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_array_slice, &line, band, &row);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_array_slice, &run, row, &part);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_ravel, &matrix, part, out);
    const lop_node *gone[] = {band, row, part};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}
LOP_BUILD(trace_band) {
    lop_band b;
    return read_off(m->root->child[0], m->root->dtype, &b) ? lop_build_trace_diagonal(m, mk, out)
                                                           : LOP_NOMATCH;
}

static lop_attr assumption_of(const lop_node *a, lop_band b) {
    const bool own = b.l == b.u && lop_infer_hermitian(a),
               definite = own && lop_infer_assumed_definite(a);
    return (lop_attr){.i = {b.l, b.u,
                            definite ? LOP_ASSUME_POSITIVE
                            : own    ? LOP_ASSUME_TRIED
                                     : LOP_ASSUME_GENERAL,
                            0}};
}

/* A view is solved with by the factor of what it is a view of. */
LOP_BUILD(solve_inferred) {
    const lop_node *top = m->root->child[0], *a = top->op == &lop_op_view ? top->child[0] : top,
                   *x = m->root->child[1], *in = NULL;
    const int64_t mode = top == a ? LOP_N : top->attr.i[0];
    const lop_band b = lop_infer_bands(a);
    const lop_dtype dt = m->root->dtype;
    const lop_attr d = {.i = {0, 0, 0, (int64_t)dt + 1}};
    lop_status st;
    lop_grid g;
    if (!lop_is_blas(dt) || (top != a && lop_grid_read(a, &g))) return LOP_NOMATCH;
    if (b.l == 0 && b.u == 0) {
        st = lop_make1(mk, &lop_op_diagonal, &d, top, &in);
        if (st == LOP_OK) st = lop_make2(mk, &lop_op_div, NULL, x, in, out);
    } else if (lop_band_is_narrow(a, b)) {
        lop_attr how = assumption_of(a, b);
        how.i[3] = mode;
        st = lop_make_band(mk, a, b, dt, &in);
        if (st == LOP_OK) st = lop_make2(mk, &lop_op_band_solve, &how, in, x, out);
    } else if (b.l == 0 || b.u == 0) {
        const lop_attr how = {.i = {b.u == 0, mode, 0, 0}};
        st = lop_make1(mk, &lop_op_todense, &d, a, &in);
        if (st == LOP_OK) st = lop_make2(mk, &lop_op_triangular_solve, &how, in, x, out);
    } else {
        return LOP_NOMATCH;
    }
    lop_node_unref(in);
    return st;
}

LOP_BUILD(det_inferred) {
    const lop_node *a = m->root->child[0], *in = NULL;
    const lop_band b = lop_infer_bands(a);
    const lop_dtype dt = (lop_dtype)(m->root->attr.i[3] - 1);
    if (!lop_is_blas(dt)) return LOP_NOMATCH;
    if (b.l == 0 || b.u == 0) {
        lop_status st = lop_make1(mk, &lop_op_diagonal, &m->root->attr, a, &in);
        return st == LOP_OK ? wrap(mk, &lop_op_vector_det, NULL, in, out) : st;
    }
    if (!lop_band_is_narrow(a, b)) return LOP_NOMATCH;
    lop_attr how = assumption_of(a, b);
    lop_assumed d = {.n = 0};
    lop_status st = lop_make_band(mk, a, b, dt, &in);
    if (how.i[2] == LOP_ASSUME_POSITIVE) how.i[2] = LOP_ASSUME_TRIED; /* each term is tested */
    if (st == LOP_OK && how.i[2] == LOP_ASSUME_TRIED) st = lop_assumed_terms(mk, a, &d);
    if (st == LOP_OK)
        st = d.n ? lop_det_beside_assumed(mk, &m->root->attr, &lop_op_banded_det, how, 2, 1, &in,
                                          &d, out)
                 : lop_make1(mk, &lop_op_banded_det, &how, in, out);
    lop_node_unref(in);
    lop_assumed_free(&d);
    return st;
}

/* The band of `a` in dtype dt: three vectors of a Tridiagonal, else `ab`; how many. Owned. */
static lop_status lines_of(const lop_maker *mk, const lop_node *a, lop_band b, lop_dtype dt,
                           const lop_node **v, int *count) {
    const lop_attr d = {.i = {0, 0, 0, (int64_t)dt + 1}};
    const bool given = a->op == &lop_op_tridiagonal || a->op == &lop_op_banded;
    lop_status st = LOP_OK;
    *count = given ? a->n : 1;
    if (!given) return lop_make_band(mk, a, b, dt, &v[0]);
    for (int i = 0; st == LOP_OK && i < a->n; i++)
        st = lop_make1(mk, &lop_op_cast, &d, a->child[i], &v[i]);
    return st;
}

/* The diagonal of the inverse of a triangle: that of its diagonal alone. */
static lop_status inverse_of_diagonal(const lop_match *m, const lop_maker *mk, const lop_node *a,
                                      const lop_node **out) {
    const lop_attr d = {.i = {0, 0, 0, (int64_t)m->root->dtype + 1}};
    const lop_node *v = NULL, *diag = NULL, *inverse = NULL;
    lop_status st = lop_make1(mk, &lop_op_diagonal, &d, a, &v);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_diag, NULL, v, &diag);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_inverse, NULL, diag, &inverse);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_diagonal, &m->root->attr, inverse, out);
    lop_node_unref(v);
    lop_node_unref(diag);
    lop_node_unref(inverse);
    return st;
}

/* Diagonal how->i[3] of the inverse of a band of these lines, by the factor that solves have. */
static lop_status by_columns(const lop_maker *mk, const lop_attr *how, const lop_node *const *v,
                             int n, int64_t rows, const lop_node **out) {
    const lop_node like = {
        .shape = {.ndim = 2, .dim = {rows, rows}}, .dtype = v[0]->dtype, .core = 2};
    const lop_node *unit = NULL, *inverse = NULL,
                   *child[4] = {v[0], n > 1 ? v[1] : NULL, n > 1 ? v[2] : NULL, NULL};
    const lop_attr at = {.i = {how->i[3], 0, 0, 0}};
    lop_attr solve = *how;
    if (n > 1) solve.i[2] = 0;
    solve.i[3] = 0;
    lop_status st = lop_make(mk, "eye", NULL, 0, NULL, &like, &unit);
    child[n] = unit;
    if (st == LOP_OK)
        st = lop_make_op(mk, n > 1 ? &lop_op_tridiagonal_solve : &lop_op_band_solve, &solve, n + 1,
                         child, NULL, &inverse);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_array_diagonal, &at, inverse, out);
    lop_node_unref(unit);
    lop_node_unref(inverse);
    return st;
}

/* Of Tridiagonal and Banded, and of what is a band by how it is written. */
LOP_BUILD(band_inverse_diagonal) {
    const lop_node *a = m->root->child[0]->child[0], *v[4] = {NULL};
    const lop_dtype dt = m->root->dtype;
    const lop_attr at = {.i = {m->root->attr.i[0], 0, 0, 0}};
    const bool three = a->op == &lop_op_tridiagonal, given = three || a->op == &lop_op_banded;
    const lop_band b = lop_infer_bands(a);
    lop_attr how = given ? a->attr : assumption_of(a, b);
    int n = 0;
    how.i[3] = at.i[0];
    if (a->op == &lop_op_diag) return LOP_NOMATCH; /* it has a rule, and is what is made below */
    const bool triangle = b.l == 0 || b.u == 0 || a->op == &lop_op_sparsetriangular;
    if (lop_is_blas(dt) && lop_is_square(a) && at.i[0] == 0 && triangle)
        return inverse_of_diagonal(m, mk, a, out);
    if (!lop_is_blas(dt) || !lop_is_square(a) || lop_rows(a) < 2 || b.l >= lop_rows(a) ||
        b.u >= lop_rows(a) || !(three || lop_band_is_narrow(a, b)) || at.i[0] > b.l ||
        -at.i[0] > b.u)
        return LOP_NOMATCH;
    lop_status st = lines_of(mk, a, b, dt, v, &n);
    if (st == LOP_OK) st = lop_build_diagonal_sparse_inverse(m, mk, &v[n]);
    if (st == LOP_NOMATCH) st = by_columns(mk, &how, v, n, lop_rows(a), &v[n]);
    if (st == LOP_OK)
        st = lop_make_op(mk, three ? &lop_op_triinvdiag : &lop_op_bandinvdiag, &how, n + 1, v, NULL,
                         out);
    for (int i = 0; i < 4; i++) lop_node_unref(v[i]);
    return st;
}

/* Its diagonals side by side, from the inverse that solves make. Owned. */
static lop_status all_by_columns(const lop_maker *mk, const lop_attr *how, const lop_node *ab,
                                 int64_t rows, const lop_node **out) {
    enum { MOST = 64 };
    const lop_attr at = {.i = {how->i[1], how->i[0], rows, rows}};
    const lop_node *d[MOST] = {NULL};
    const int64_t all = how->i[0] + how->i[1] + 1;
    lop_attr own = *how;
    lop_status st = all <= MOST ? LOP_OK : LOP_NOMATCH;
    for (int64_t k = 0; st == LOP_OK && k < all; k++) {
        own.i[3] = how->i[0] - k;
        st = by_columns(mk, &own, &ab, 1, rows, &d[k]);
    }
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_band_join, &at, (int)all, d, NULL, out);
    for (int k = 0; k < MOST; k++) lop_node_unref(d[k]);
    return st;
}
lop_status lop_band_of_inverse(const lop_maker *mk, const lop_node *a, lop_dtype dt,
                               const lop_node **out) {
    const lop_band b = lop_infer_bands(a);
    const bool own = b.l == b.u && lop_infer_hermitian(a),
               definite = own && lop_infer_assumed_definite(a);
    const lop_attr how = {.i = {b.l, b.u,
                                definite ? LOP_ASSUME_POSITIVE
                                : own    ? LOP_ASSUME_TRIED
                                         : LOP_ASSUME_GENERAL,
                                0}};
    const lop_node *v[2] = {NULL};
    if (!lop_is_blas(dt) || lop_nbatch(a) > 0 || !lop_is_square(a) || lop_rows(a) < 2 ||
        b.l + b.u < 1 || b.l < 0 || b.u < 0 || b.l >= lop_rows(a) || b.u >= lop_rows(a) ||
        !(a->op == &lop_op_tridiagonal || lop_band_is_narrow(a, b)))
        return LOP_NOMATCH;
    lop_status st = lop_make_band(mk, a, b, dt, &v[0]);
    if (st == LOP_OK && v[0]->dtype != dt) st = LOP_NOMATCH;
    if (st == LOP_OK) st = all_by_columns(mk, &how, v[0], lop_rows(a), &v[1]);
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_bandinvband, &how, 2, v, NULL, out);
    lop_node_unref(v[0]);
    lop_node_unref(v[1]);
    return st;
}

/* -- triangular: the transpose is the same array, turned */

static lop_attr other_side(const lop_attr *a, int64_t mode) {
    lop_attr how = *a;
    if (mode & LOP_T) how.i[0] = !how.i[0];
    return how;
}
LOP_BUILD(view_triangular) {
    const lop_node *tri = m->root->child[0], *a;
    lop_attr mode = {.i = {m->root->attr.i[0], 0, 0, 0}};
    if (!lop_is_complex(tri->dtype)) mode.i[0] &= LOP_T;
    if (!mode.i[0]) {
        *out = lop_node_ref(tri);
        return LOP_OK;
    }
    const lop_attr how = other_side(&tri->attr, mode.i[0]);
    lop_status st = lop_make1(mk, &lop_op_swap, &mode, tri->child[0], &a);
    return st == LOP_OK ? wrap(mk, &lop_op_triangular, &how, a, out) : st;
}
LOP_BUILD(unview_triangular) {
    const lop_node *swap = m->root->child[0], *tri;
    const lop_attr how = other_side(&m->root->attr, swap->attr.i[0]);
    lop_status st = lop_make1(mk, &lop_op_triangular, &how, swap->child[0], &tri);
    return st == LOP_OK ? wrap(mk, &lop_op_view, &swap->attr, tri, out) : st;
}
LOP_BUILD(triangular_solve) {
    const lop_node *top = m->root->child[0], *t = top->op == &lop_op_view ? top->child[0] : top,
                   *a = t->child[0], *cast;
    lop_attr side = t->attr, d = {.i = {0, 0, 0, (int64_t)m->root->dtype + 1}};
    int64_t mode = t == top ? LOP_N : top->attr.i[0];
    if (a->op == &lop_op_swap) { /* read where it lies */
        side = other_side(&side, a->attr.i[0]);
        mode ^= a->attr.i[0];
        a = a->child[0];
    }
    const lop_attr how = {.i = {side.i[0], mode, side.i[1], 0}};
    lop_status st = lop_make1(mk, &lop_op_cast, &d, a, &cast);
    if (st != LOP_OK) return st;
    st = lop_make2(mk, &lop_op_triangular_solve, &how, cast, m->root->child[1], out);
    lop_node_unref(cast);
    return st;
}

/* One triangle of a Sparse: data in the dtype of the quotient from the leaf on. */
LOP_BUILD(sparsetri_solve) {
    const lop_node *top = m->root->child[0], *t = top->op == &lop_op_view ? top->child[0] : top,
                   *a = t->child[0], *v[4] = {NULL, a->child[1], a->child[2], m->root->child[1]};
    const lop_attr d = {.i = {0, 0, 0, (int64_t)m->root->dtype + 1}},
                   how = {.i = {a->attr.i[0], t == top ? LOP_N : top->attr.i[0],
                                (t->attr.i[0] != 0) | (t->attr.i[1] != 0) << 1, 0}};
    lop_status st = lop_make1(mk, &lop_op_cast, &d, a->child[0], &v[0]);
    if (st != LOP_OK) return st;
    st = lop_make(mk, "sparse_triangular_solve", &how, 4, v, NULL, out);
    lop_node_unref(v[0]);
    return st;
}

/* H^H: conj(tau); H^T: conj(v); conj(H): both. */
LOP_BUILD(view_householder) {
    const lop_node *h = m->root->child[0], *p[2] = {NULL, NULL};
    const int64_t mode = m->root->attr.i[0];
    lop_status st = conj_of(mk, mode == LOP_H ? LOP_N : LOP_C, h->child[0], &p[0]);
    if (st == LOP_OK && h->n > 1) st = conj_of(mk, mode, h->child[1], &p[1]);
    if (st == LOP_OK) st = lop_make(mk, "householder", NULL, h->n, p, NULL, out);
    lop_node_unref(p[0]);
    lop_node_unref(p[1]);
    return st;
}

/* (op(Q))^-1 = op(Q)^H. */
LOP_BUILD(solve_reflections) {
    const lop_node *q = m->root->child[0]->child[0], *seen;
    const lop_attr mode = {.i = {m->root->child[0]->attr.i[0] ^ LOP_H, 0, 0, 0}};
    lop_status st = LOP_OK;
    if (mode.i[0] == LOP_N)
        seen = lop_node_ref(q);
    else
        st = lop_make1(mk, &lop_op_view, &mode, q, &seen);
    if (st != LOP_OK) return st;
    st = lop_make2(mk, &lop_op_apply, NULL, seen, m->root->child[1], out);
    lop_node_unref(seen);
    return st;
}

/* -- full */

LOP_BUILD(view_full) {
    lop_attr c = m->root->child[0]->attr;
    if (m->root->attr.i[0] & LOP_C) c.im = c.im != 0 ? -c.im : c.im;
    return lop_make(mk, "full", &c, 0, NULL, m->root, out);
}

/* The product of two numbers, of the dtype the multiple has; its digits are a double's, for what it
 * is applied to. */
LOP_BUILD(scaled_full) {
    const lop_attr *a = &m->root->child[0]->attr, *b = &m->root->attr;
    (void)lop_coef_fix(mk->ctx, lop_coef_of(b));
    const lop_dtype dt = m->root->dtype;
    lop_attr c = {.i = {(int64_t)((uint64_t)a->i[0] * (uint64_t)b->i[0]), m->root->weak,
                        dt < LOP_NDTYPE ? (int64_t)dt : 0, 0}};
    if (dt == LOP_b8) c.i[0] = a->i[0] && b->i[0];
    c.re = a->re * b->re - (a->im != 0 && b->im != 0 ? a->im * b->im : 0);
    c.im = (b->im != 0 ? a->re * b->im : 0) + (a->im != 0 ? a->im * b->re : 0);
    const double size = fmax(fabs(c.re), fabs(c.im));
    const bool zero = (a->re == 0 && a->im == 0) || (b->re == 0 && b->im == 0);
    if (!(size <= DBL_MAX) || (size < DBL_MIN && !zero)) return LOP_NOMATCH; /* as written */
    return lop_make(mk, "full", &c, 0, NULL, m->root, out);
}

/* A view of what is real and symmetric whatever its dtype. */
LOP_BUILD(no_view) {
    (void)mk;
    *out = lop_node_ref(m->root->child[0]);
    return LOP_OK;
}
