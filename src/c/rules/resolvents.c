/* resolvents.c: A = d I + a M^-1, M = K + c I, and products P M^-1 of P = p K.
 *   A = d M^-1 G,   G = K + (c + q) I,   q = a / d       I - s (K + s I)^-1 = K (K + s I)^-1: G = K
 *
 *   q < 0, K and G semidefinite, c > 0:   x = (b - q z) / d,  G z = b
 *     With r = b - G z the residual of x is - q M^-1 r, and |q M^-1| <= |q| / c <= 1: no larger
 * than r, which takes no factor of M. |A / d| = |G| / (|G| + |q|), as its eigenvalues are g / (g -
 * q), at least |G| / 2 |q| or a half, whichever is less: both have to accept r. In A^-1 = (I - q
 * G^-1) / d nothing cancels. else, where M is solved with at once: that, or for q > 0   x = M z /
 * d,   checked by A itself. A^-1 = M G^-1 / d has no check: only of M that is proved to be
 * invertible, or whose inverse, that the formula has, is taken the diagonal of, which a singular M
 * has none of. det A = d^n det G / det M,   M definite, or normal and solved with at once Errors E
 * of M and of G, |E| <= e = n u |M|, change log det G - log det M by up to n e times |M^-1| +
 * |G^-1|; in the formula as written one of M counts (M^-1 - G^-1) E, as q M^-1 G^-1 is M^-1 - G^-1.
 * With t = |q| |M^-1| that is at least t / (2 + 3 t) of it: little where A / d is near I. As (1 -
 * t)^n <= |det(A / d)| <= (1 + t)^n for t < 1, |log2 det(A / d)| > n / 8 shows t > 1 / 13; else LU
 * or Cholesky of the dense form.
 *
 *   diag(P M^-1) = p (1 - c diag(M^-1)) / a,   M = a K + c I, where 10 a K_ii >= c > 0
 *     for all i, else as a product. The product's error bound is n u (|K| |M^-1|)_ii, and as
 *     1 <= (a |K| |M^-1|)_ii + c |M^-1|_ii <= 11 a (|K| |M^-1|)_ii   the rounding of the difference
 *     and c times the error of M^-1_ii are no more than some ten times that.
 *
 *   X = p P M^-1 or p M^-1 P of M = P + E, P semidefinite, E > 0 diagonal, as an array: by the
 *     inverse, p (I - E M^-1), where all 16 X_jj > p and max E <= 16 min E. As |M^-1| <= 1 / min E,
 *     the residual n u |M| |M^-1| of M^-1 is 16 n u |M| in a column x of X / p (1 of E = c I), and
 *     16 |x| > 1: some 256 n u |M| |x| at most. Rows of P M^-1 likewise. Of a Toeplitz M, whatever
 * P is: |c M^-1| <= 1 + |X / p|, so 17 n u |M| |X| normwise. Else as written. */
#include "builds.h"
#include "expr/properties.h"
#include "ops/shared/sparse_solver.h"
#include "rewrite/cheap_to_solve.h"
#include "rewrite/guards.h"
#include "thin_sum.h"

enum { TERMS = 8, ALIKE = 8 };

static const lop_node *peeled(const lop_node *a, lop_coef *c) {
    *c = lop_coef_const(1, 0);
    if (a->op != &lop_op_scaled) return a;
    *c = lop_coef_of(&a->attr);
    return a->child[0];
}
static bool is_eye(const lop_node *a) { return a->op == &lop_op_identity && lop_nbatch(a) == 0; }

/* A vector x of add(x, c ones), or c times a first unit vector, which multiples of the identity
 * close to; NULL: it is not that. */
static const lop_node *plain_part(const lop_node *d, const lop_op *unit, lop_coef *c) {
    if (d->op != &lop_op_add) return NULL;
    for (int i = 0; i < 2; i++) {
        const lop_node *u = d->child[i]->op == &lop_op_cast ? d->child[i]->child[0] : d->child[i];
        const bool by = u->op == &lop_op_scale;
        if ((by ? u->child[0] : u)->op != unit) continue;
        *c = by ? lop_coef_of(&u->attr) : lop_coef_const(1, 0);
        return d->child[1 - i];
    }
    return NULL;
}

/* Of a Tridiagonal or Toeplitz that K + c I closed to: K, owned. NOMATCH: it is none. */
static lop_status read_closed(const lop_maker *mk, const lop_node *m, const lop_node **k,
                              lop_coef *c) {
    const bool band = m->op == &lop_op_tridiagonal, toeplitz = m->op == &lop_op_toeplitz;
    if (!band && !toeplitz) return LOP_NOMATCH;
    const lop_node *own = plain_part(m->child[band], band ? &lop_op_ones : &lop_op_first_unit, c);
    if (!own || own->dtype != m->dtype || own->core != 1) return LOP_NOMATCH;
    const lop_node *child[3] = {m->child[0], own, band ? m->child[2] : NULL};
    if (toeplitz) {
        child[0] = own;
        child[1] = m->child[1];
    }
    return lop_make(mk, m->op->name, &m->attr, m->n, child, NULL, k);
}

/* M as K + c I, c 0 where no such term stands in it. K owned; NOMATCH: nothing else does. */
lop_status lop_read_shift(const lop_maker *mk, const lop_node *m, const lop_node **k, lop_coef *c) {
    const lop_node *term[TERMS];
    const int n = m->op == &lop_op_sum ? lop_terms_of(m, term, TERMS) : 0;
    *k = NULL;
    lop_status st = n == 0 ? read_closed(mk, m, k, c) : LOP_OK;
    if (n == 0 && st != LOP_NOMATCH) return st;
    *c = lop_coef_const(0, 0);
    if (n == 0) *k = lop_node_ref(m);
    st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < n; i++) {
        lop_coef by;
        if (is_eye(peeled(term[i], &by)))
            *c = lop_coef_plus(mk->ctx, *c, by);
        else
            st = lop_plus(mk, term[i], k);
    }
    return st == LOP_OK && !*k ? LOP_NOMATCH : st;
}

lop_status lop_shifted(const lop_maker *mk, const lop_node *k, lop_coef c, const lop_node **out) {
    const lop_node *eye = NULL, *times = NULL;
    if (lop_coef_test(mk->ctx, c, LOP_COEF_ZERO)) {
        *out = lop_node_ref(k);
        return LOP_OK;
    }
    lop_status st = lop_thin_identity(mk, lop_rows(k), &eye);
    if (st == LOP_OK) st = lop_thin_multiple(mk, c, eye, &times);
    if (st == LOP_OK) st = lop_sum_closed(mk, k, times, out); /* of a Toeplitz: one */
    lop_node_unref(eye);
    lop_node_unref(times);
    return st;
}

/* -- d I + a M^-1 */

typedef struct resolvent {
    const lop_node *sum, *m; /* borrowed */
    lop_coef a, d, q;
    bool less;         /* q < 0 */
    bool sure;         /* and what the head of this file asks; else M is solved with at once */
    const lop_node *g; /* owned */
} resolvent;

static bool is_real_number(lop_ctx *ctx, lop_coef c) {
    return c.im == 0 && lop_coef_test(ctx, c, LOP_COEF_MODEST);
}

/* With `factors`, M may also be one that Cholesky is for. */
static lop_status read_resolvent(const lop_maker *mk, const lop_node *sum, bool factors,
                                 resolvent *s) {
    const lop_node *part[2], *k = NULL;
    lop_coef by[2], c;
    *s = (resolvent){.sum = sum};
    if (sum->op != &lop_op_sum || lop_nbatch(sum) > 0 || !lop_is_blas(sum->dtype))
        return LOP_NOMATCH;
    for (int i = 0; i < 2; i++) part[i] = peeled(sum->child[i], &by[i]);
    const int at = is_eye(part[0]) ? 1 : 0;
    if (!is_eye(part[1 - at]) || part[at]->op != &lop_op_inverse) return LOP_NOMATCH;
    s->m = part[at]->child[0];
    s->a = by[at];
    s->d = by[1 - at];
    if (s->m->dtype != sum->dtype || lop_nbatch(s->m) > 0 || !is_real_number(mk->ctx, s->a) ||
        !is_real_number(mk->ctx, s->d))
        return LOP_NOMATCH;
    s->q = lop_coef_over(mk->ctx, s->a, s->d);
    s->less = !lop_coef_test(mk->ctx, s->q, LOP_COEF_POSITIVE);
    lop_status st = lop_read_shift(mk, s->m, &k, &c);
    const lop_coef all = st == LOP_OK ? lop_coef_plus(mk->ctx, c, s->q) : s->q;
    s->sure = st == LOP_OK && s->less && lop_infer_semidefinite(k) &&
              lop_coef_test(mk->ctx, c, LOP_COEF_POSITIVE) &&
              (lop_coef_test(mk->ctx, all, LOP_COEF_ZERO) ||
               lop_coef_test(mk->ctx, all, LOP_COEF_POSITIVE));
    const bool definite =
        factors && !s->less && lop_infer_semidefinite(s->m) && lop_infer_regular(s->m) == LOP_TRUE;
    if (st == LOP_OK && !s->sure && !definite && !lop_cheap_to_solve(s->m) &&
        !lop_sparse_pays(s->m))
        st = LOP_NOMATCH;
    if (st == LOP_OK) st = lop_shifted(mk, k, all, &s->g);
    lop_node_unref(k);
    if (st == LOP_OK && s->g->dtype != sum->dtype) {
        lop_node_unref(s->g);
        s->g = NULL;
        st = LOP_NOMATCH;
    }
    return st;
}

/* c times an array, or an operator. */
static lop_status times(const lop_maker *mk, const lop_op *op, lop_coef c, const lop_node *a,
                        const lop_node **out) {
    const lop_attr by = lop_coef_attr(c);
    return lop_make1(mk, op, &by, a, out);
}

/* x where |r| is small beside |w| |x|, w an operator no larger than A; else alt. */
static lop_status accepted(const lop_maker *mk, lop_dtype dt, lop_coef c, const lop_node *of,
                           const lop_node *x, const lop_node *r, const lop_node *b,
                           const lop_node *alt, const lop_node **out) {
    const lop_node *w = NULL;
    lop_status st = times(mk, &lop_op_scaled, c, of, &w);
    lop_check k = {.mk = mk, .a = w};
    if (st == LOP_OK) st = lop_check_open(&k, dt);
    if (st == LOP_OK) st = lop_check_by(&k, x, r, b, alt, out);
    lop_check_close(&k);
    lop_node_unref(w);
    return st;
}

/* (b - q z) / d, G z = b, accepted by b - G z. */
static lop_status less_identity(const lop_maker *mk, const resolvent *s, const lop_node *b,
                                const lop_node *alt, const lop_node **out) {
    const lop_dtype dt = s->sum->dtype;
    const lop_coef over = lop_coef_over(mk->ctx, lop_coef_const(1, 0), s->d),
                   half = lop_coef_times(mk->ctx, lop_coef_const(0.5, 0), s->d),
                   part = lop_coef_over(mk->ctx, half, s->q);
    const lop_node *g = NULL, *eye = NULL, *z = NULL, *gz = NULL, *r = NULL, *qz = NULL, *y = NULL,
                   *x = NULL, *once = NULL;
    g = lop_node_ref(s->g);
    lop_status st = lop_thin_identity(mk, lop_rows(g), &eye);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_solve, NULL, s->g, b, &z);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, g, z, &gz);
    if (st == LOP_OK) st = lop_build_minus(mk, b, gz, &r);
    if (st == LOP_OK) st = times(mk, &lop_op_scale, s->q, z, &qz);
    if (st == LOP_OK) st = lop_build_minus(mk, b, qz, &y);
    if (st == LOP_OK) st = times(mk, &lop_op_scale, over, y, &x);
    if (st == LOP_OK) st = accepted(mk, dt, half, eye, x, r, b, alt, &once);
    if (st == LOP_OK) st = accepted(mk, dt, part, g, once, r, b, alt, out);
    const lop_node *gone[] = {g, eye, z, gz, r, qz, y, x, once};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* M z / d, or (b - q z) / d, G z = b, accepted by A. */
static lop_status by_itself(const lop_maker *mk, const resolvent *s, const lop_node *b,
                            const lop_node *alt, const lop_node **out) {
    const lop_coef over = lop_coef_over(mk->ctx, lop_coef_const(1, 0), s->d);
    lop_check k = {.mk = mk, .a = s->sum};
    const lop_node *m = NULL, *z = NULL, *qz = NULL, *mz = NULL, *x = NULL;
    m = lop_node_ref(s->m);
    lop_status st = lop_check_open(&k, s->sum->dtype);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_solve, NULL, s->g, b, &z);
    if (st == LOP_OK && s->less) st = times(mk, &lop_op_scale, s->q, z, &qz);
    if (st == LOP_OK)
        st = s->less ? lop_build_minus(mk, b, qz, &mz)
                     : lop_make2(mk, &lop_op_apply, NULL, m, z, &mz);
    if (st == LOP_OK) st = times(mk, &lop_op_scale, over, mz, &x);
    if (st == LOP_OK) st = lop_check_instead(&k, x, b, alt, out);
    lop_check_close(&k);
    const lop_node *gone[] = {m, z, qz, mz, x};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

LOP_BUILD(solve_resolvent) {
    const lop_node *sum = m->root->child[0], *b = NULL, *dense = NULL, *alt = NULL;
    const lop_attr dt = {.i = {0, 0, 0, (int64_t)sum->dtype + 1}}, cast = {.i = {1, 0, 0, dt.i[3]}},
                   tried = {.i = {1, 0, 0, 0}};
    resolvent s;
    if (m->root->dtype != sum->dtype) return LOP_NOMATCH;
    lop_status st = read_resolvent(mk, sum, false, &s);
    if (st != LOP_OK) return st;
    st = lop_make1(mk, &lop_op_cast, &cast, m->root->child[1], &b);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &dt, sum, &dense);
    if (st == LOP_OK)
        st = lop_infer_hermitian(sum)
                 ? lop_make2(mk, &lop_op_cholesky_solve, &tried, dense, b, &alt)
                 : lop_make2(mk, &lop_op_lu_solve, NULL, dense, b, &alt);
    if (st == LOP_OK)
        st = s.sure ? less_identity(mk, &s, b, alt, out) : by_itself(mk, &s, b, alt, out);
    const lop_node *gone[] = {s.g, b, dense, alt};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* Normal, by what is known of it? */
static bool is_normal(const lop_node *a) {
    return a->op == &lop_op_circulant || lop_is_circulant_sum(a) || lop_infer_hermitian(a) ||
           lop_infer_unitary(a);
}

/* det(d M^-1 G), accepted by det(M^-1 G) unless that is 0 by how G is written. */
LOP_BUILD(det_resolvent) {
    const lop_node *sum = m->root->child[0], *inverse = NULL, *product = NULL, *all = NULL,
                   *part = NULL, *det = NULL, *dense = NULL, *alt = NULL;
    const lop_attr far = {.i = {lop_rows(sum), 2, 0, 0}}, tried = {.i = {1, 0, 0, 0}};
    resolvent s;
    lop_status st = read_resolvent(mk, sum, true, &s);
    if (st != LOP_OK) return st;
    if (!s.sure && !is_normal(s.m) && !is_normal(s.g)) st = LOP_NOMATCH;
    const bool zero = st == LOP_OK && lop_infer_rank(s.g) < lop_rows(s.g);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_inverse, NULL, s.m, &inverse);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_prod, NULL, inverse, s.g, &product);
    if (st == LOP_OK) st = lop_thin_multiple(mk, s.d, product, &all);
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, all, &det);
    if (st == LOP_OK && zero) *out = lop_node_ref(det);
    if (st == LOP_OK && !zero) {
        st = lop_make1(mk, m->root->op, &m->root->attr, product, &part);
        if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &m->root->attr, sum, &dense);
        if (st == LOP_OK)
            st = lop_infer_hermitian(sum) ? lop_make1(mk, &lop_op_cholesky_det, &tried, dense, &alt)
                                          : lop_make1(mk, &lop_op_lu_det, NULL, dense, &alt);
        const lop_node *child[3] = {det, part, alt};
        if (st == LOP_OK) st = lop_make_op(mk, &lop_op_spectral, &far, 3, child, NULL, out);
    }
    const lop_node *gone[] = {s.g, inverse, product, all, part, det, dense, alt};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* The square of the diagonal of a^-1. */
static lop_status squared_diagonal(const lop_maker *mk, const lop_node *root, const lop_node *a,
                                   const lop_node **out) {
    const lop_attr main = {.i = {0, 0, 0, root->attr.i[3]}};
    const lop_node *in = NULL, *d = NULL;
    lop_status st = lop_inverse_closed(mk, a, &in);
    if (st == LOP_OK) st = lop_make1(mk, root->op, &main, in, &d);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_mul, NULL, d, d, out);
    lop_node_unref(in);
    lop_node_unref(d);
    return st;
}

/* Numbers that are positive where m is regular, and that cannot be had where it is singular: of a
 * product of sparse matrices by the inverse of each, whose factors there are, where the diagonal of
 * the product's inverse takes them whole. */
static lop_status shown_regular(const lop_maker *mk, const lop_node *root, const lop_node *m,
                                const lop_node **out) {
    const lop_node *f[LOP_FACTORS], *sum = NULL;
    lop_coef c = lop_coef_const(1, 0);
    const int n = lop_factors_times(m, f, &c);
    bool all = n > 1 && lop_coef_test(mk->ctx, c, LOP_COEF_ONE);
    for (int i = 0; i < n; i++) {
        if (f[i]->op == &lop_op_view) f[i] = f[i]->child[0];
        all = all && lop_rows(f[i]) == lop_rows(m) && lop_sparse_selects(f[i]);
    }
    if (!all) return squared_diagonal(mk, root, m, out);
    const lop_node like = {
        .shape = {.ndim = 1, .dim = {lop_rows(m)}}, .dtype = root->dtype, .core = 1};
    lop_status st = lop_make(mk, "ones", NULL, 0, NULL, &like, &sum);
    for (int i = 0; st == LOP_OK && i < n; i++) {
        const lop_node *one = NULL, *before = sum;
        st = squared_diagonal(mk, root, f[i], &one);
        if (st == LOP_OK) st = lop_make2(mk, &lop_op_add, NULL, before, one, &sum);
        if (sum != before) lop_node_unref(before);
        lop_node_unref(one);
    }
    if (st == LOP_OK)
        *out = sum;
    else
        lop_node_unref(sum);
    return st;
}

lop_status lop_where_regular(const lop_maker *mk, const lop_node *root, const lop_node *m,
                             const lop_node *all, const lop_node **out) {
    const lop_attr own = {.i = {0, 1, 0, 0}};
    const lop_node *dd = NULL, *value = NULL, *alt = NULL;
    lop_status st = shown_regular(mk, root, m, &dd);
    if (st == LOP_OK) st = lop_make1(mk, root->op, &root->attr, all, &value);
    if (st == LOP_OK)
        st = lop_inverse_diagonal(mk, root->child[0]->child[0], &root->attr, root->dtype, &alt);
    const lop_node *child[3] = {value, dd, alt};
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_spectral, &own, 3, child, NULL, out);
    const lop_node *gone[] = {dd, value, alt};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* The root's action on A^-1: (I - q G^-1) / d, or M G^-1 / d. */
LOP_BUILD(inverse_resolvent) {
    const lop_coef one = lop_coef_const(1, 0), minus = lop_coef_const(-1, 0);
    const lop_node *inverse = NULL, *first = NULL, *second = NULL, *whole = NULL, *all = NULL;
    resolvent s;
    lop_status st = read_resolvent(mk, m->root->child[0]->child[0], false, &s);
    if (st != LOP_OK) return st;
    /* of an M that may be singular its inverse is looked at */
    const bool looked = !s.sure && lop_infer_regular(s.m) != LOP_TRUE;
    if (looked && (m->root->op != &lop_op_diagonal || lop_is_complex(m->root->dtype)))
        st = LOP_NOMATCH;
    if (st == LOP_OK) st = lop_inverse_closed(mk, s.g, &inverse);
    if (st == LOP_OK && s.sure) st = lop_thin_identity(mk, lop_rows(s.g), &first);
    if (st == LOP_OK && s.sure)
        st = lop_thin_multiple(mk, lop_coef_times(mk->ctx, minus, s.q), inverse, &second);
    if (st == LOP_OK)
        st = s.sure ? lop_make2(mk, &lop_op_sum, NULL, first, second, &whole)
                    : lop_make2(mk, &lop_op_prod, NULL, s.m, inverse, &whole);
    if (st == LOP_OK) st = lop_thin_multiple(mk, lop_coef_over(mk->ctx, one, s.d), whole, &all);
    if (st == LOP_OK && looked)
        st = lop_where_regular(mk, m->root, s.m, all, out);
    else if (st == LOP_OK)
        st = lop_make1(mk, m->root->op, &m->root->attr, all, out);
    const lop_node *gone[] = {s.g, inverse, first, second, whole, all};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* -- diag(P M^-1) */

/* P = p K and M = a K + c I? a and c positive; K borrowed in *found. NOMATCH: they are not. */
static lop_status read_smoother(const lop_maker *mk, const lop_node *p, const lop_node *m,
                                lop_coef *by, lop_coef *a, lop_coef *c, const lop_node **found) {
    const lop_node *k = peeled(p, by), *rest = NULL, *own = NULL;
    const bool plain = !lop_nbatch(p) && !lop_nbatch(m) && p->dtype == m->dtype && !p->weak &&
                       lop_is_blas(p->dtype);
    const lop_status st = plain ? lop_read_shift(mk, m, &rest, c) : LOP_NOMATCH;
    if (st != LOP_OK) {
        lop_node_unref(rest);
        return st;
    }
    own = peeled(rest, a);
    if (!lop_coef_test(mk->ctx, *c, LOP_COEF_POSITIVE)) own = NULL;
    if (own && own != k && !lop_node_alike(own, k, ALIKE)) own = NULL;
    if (!own && lop_node_alike(rest, p, ALIKE)) { /* K with a number of its own */
        own = k = p;
        *a = *by = lop_coef_const(1, 0);
        if (!lop_coef_test(mk->ctx, *c, LOP_COEF_POSITIVE)) own = NULL;
    }
    if (own && !lop_coef_test(mk->ctx, *a, LOP_COEF_POSITIVE)) own = NULL;
    lop_node_unref(rest);
    *found = k;
    return own ? LOP_OK : LOP_NOMATCH;
}

static lop_status smoother_of(const lop_match *m, const lop_maker *mk, const lop_node **shift,
                              lop_coef *by, lop_coef *a, lop_coef *c, const lop_node **k) {
    const lop_node *product = m->root->child[0];
    lop_status st = LOP_NOMATCH;
    for (int i = 0; st == LOP_NOMATCH && i < 2; i++) {
        const lop_node *inverse = product->child[i];
        if (inverse->op != &lop_op_inverse) continue;
        *shift = inverse->child[0];
        st = read_smoother(mk, product->child[1 - i], *shift, by, a, c, k);
    }
    return st == LOP_OK && (*k)->dtype != m->root->dtype ? LOP_NOMATCH : st;
}

/* p (M + s I) M^-1, either way round? *inverse borrowed. NOMATCH: it is none. */
static lop_status read_shifted(const lop_maker *mk, const lop_node *product, lop_coef *p,
                               lop_coef *s, const lop_node **inverse) {
    for (int i = 0; i < 2; i++) {
        const lop_node *a = product->child[1 - i], *k[2] = {NULL, NULL};
        lop_coef c[2];
        *inverse = product->child[i];
        if ((*inverse)->op != &lop_op_inverse || lop_nbatch(product) > 0 ||
            !lop_is_blas(product->dtype))
            continue;
        const lop_node *of = peeled(a, p), *in = (*inverse)->child[0];
        if (of->dtype != product->dtype || in->dtype != product->dtype) continue;
        lop_status st = lop_read_shift(mk, of, &k[0], &c[0]);
        if (st == LOP_OK) st = lop_read_shift(mk, in, &k[1], &c[1]);
        if (st == LOP_OK && !lop_node_alike(k[0], k[1], ALIKE)) st = LOP_NOMATCH;
        lop_node_unref(k[0]);
        lop_node_unref(k[1]);
        if (st == LOP_NOMATCH) continue;
        if (st != LOP_OK) return st;
        *s = lop_coef_plus(mk->ctx, c[0], lop_coef_times(mk->ctx, lop_coef_const(-1, 0), c[1]));
        return is_real_number(mk->ctx, *s) && is_real_number(mk->ctx, *p) ? LOP_OK : LOP_NOMATCH;
    }
    return LOP_NOMATCH;
}

/* diag((M + s I) M^-1) = 1 + s diag(M^-1), where s (M^-1)_ii > - 1 / 2: then nothing is lost. */
static lop_status diagonal_shifted(const lop_match *m, const lop_maker *mk, const lop_node **out) {
    const lop_attr own = {.i = {0, 1, 0, 0}}, half = lop_attr_coef(0.5, 0);
    const lop_node *inverse = NULL, *d = NULL, *sd = NULL, *ones = NULL, *all = NULL, *low = NULL,
                   *room = NULL, *alt = NULL, *value = NULL;
    lop_coef p, s;
    lop_status st = read_shifted(mk, m->root->child[0], &p, &s, &inverse);
    if (st == LOP_OK && m->root->dtype != inverse->dtype) st = LOP_NOMATCH;
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, inverse, &d);
    if (st != LOP_OK) return st;
    const lop_node like = {.shape = d->shape, .dtype = d->dtype, .core = 1};
    st = lop_make(mk, "ones", NULL, 0, NULL, &like, &ones);
    if (st == LOP_OK) st = times(mk, &lop_op_scale, s, d, &sd);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_add, NULL, ones, sd, &all);
    if (st == LOP_OK) st = times(mk, &lop_op_scale, p, all, &value);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &half, ones, &low);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_add, NULL, sd, low, &room);
    if (st == LOP_OK) st = lop_build_chain_diagonal(m, mk, &alt);
    if (st == LOP_NOMATCH) st = lop_diagonal_of_dense(mk, m->root->dtype, m->root->child[0], &alt);
    const lop_node *child[3] = {value, room, alt};
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_spectral, &own, 3, child, NULL, out);
    const lop_node *gone[] = {d, sd, ones, all, low, room, alt, value};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

LOP_BUILD(diagonal_smoother) {
    lop_ctx *ctx = mk->ctx;
    lop_coef p, a, c;
    const lop_node *shift = NULL, *k = NULL;
    lop_status st = smoother_of(m, mk, &shift, &p, &a, &c, &k);
    if (st != LOP_OK) return st == LOP_NOMATCH ? diagonal_shifted(m, mk, out) : st;
    const lop_coef ratio = lop_coef_over(ctx, p, a), minus = lop_coef_const(-1, 0),
                   back = lop_coef_times(ctx, minus, lop_coef_times(ctx, ratio, c)),
                   ten = lop_coef_times(ctx, lop_coef_const(10, 0), a);
    const lop_attr own = {.i = {0, 1, 0, 0}};
    const lop_node like = {.shape = shift->shape, .dtype = k->dtype, .core = 2};
    const lop_node *eye = NULL, *ones = NULL, *inverse = NULL, *d = NULL, *first = NULL,
                   *second = NULL, *value = NULL, *kd = NULL, *large = NULL, *less = NULL,
                   *room = NULL, *alt = NULL;
    st = lop_make(mk, "identity", NULL, 0, NULL, &like, &eye);
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, eye, &ones);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_inverse, NULL, shift, &inverse);
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, inverse, &d);
    if (st == LOP_OK) st = times(mk, &lop_op_scale, ratio, ones, &first);
    if (st == LOP_OK) st = times(mk, &lop_op_scale, back, d, &second);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_add, NULL, first, second, &value);
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, k, &kd);
    if (st == LOP_OK) st = times(mk, &lop_op_scale, ten, kd, &large);
    if (st == LOP_OK) st = times(mk, &lop_op_scale, lop_coef_times(ctx, minus, c), ones, &less);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_add, NULL, large, less, &room);
    if (st == LOP_OK) st = lop_build_chain_diagonal(m, mk, &alt);
    if (st == LOP_NOMATCH) st = lop_diagonal_of_dense(mk, k->dtype, m->root->child[0], &alt);
    const lop_node *child[3] = {value, room, alt};
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_spectral, &own, 3, child, NULL, out);
    const lop_node *gone[] = {eye,   ones, inverse, d,    first, second,
                              value, kd,   large,   less, room,  alt};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* -- the dense form of P M^-1 */

/* E of M = P + E, diagonal and not closed into one kind with P. Borrowed; NULL: it is not so. */
static const lop_node *diagonal_beside(const lop_node *p, const lop_node *m) {
    for (int i = 0; m->op == &lop_op_sum && i < 2; i++) {
        const lop_node *e = m->child[1 - i];
        if (e->op == &lop_op_diag && e->dtype == p->dtype && lop_node_alike(m->child[i], p, ALIKE))
            return e;
    }
    return NULL;
}

typedef struct quotient {
    lop_coef p;
    int at;            /* M^-1 is this child of the product */
    const lop_node *e; /* owned */
} quotient;

static lop_status read_quotient(const lop_maker *mk, const lop_node *product, quotient *q) {
    const lop_node *inverse = NULL, *eye = NULL;
    lop_coef s;
    *q = (quotient){.p = lop_coef_const(1, 0)};
    lop_status st = read_shifted(mk, product, &q->p, &s, &inverse);
    if (st == LOP_OK) {
        const lop_coef c = lop_coef_times(mk->ctx, lop_coef_const(-1, 0), s);
        q->at = product->child[1] == inverse;
        if (!lop_coef_test(mk->ctx, c, LOP_COEF_POSITIVE)) return LOP_NOMATCH;
        st = lop_thin_identity(mk, lop_rows(product), &eye);
        if (st == LOP_OK) st = lop_thin_multiple(mk, c, eye, &q->e);
        lop_node_unref(eye);
        return st;
    }
    for (int i = 0; st == LOP_NOMATCH && i < 2; i++) {
        const lop_node *a = product->child[1 - i], *in = product->child[i], *e = NULL;
        if (in->op != &lop_op_inverse || lop_nbatch(product) > 0 || !lop_is_blas(product->dtype) ||
            a->dtype != product->dtype || in->child[0]->dtype != product->dtype ||
            !(e = diagonal_beside(a, in->child[0])))
            continue;
        q->at = i;
        q->e = lop_node_ref(e);
        st = LOP_OK;
    }
    return st;
}

/* 16 times the diagonal of value / p, less ones. */
static lop_status room_in(const lop_maker *mk, lop_coef p, const lop_node *value,
                          const lop_node **out) {
    const lop_coef by = lop_coef_over(mk->ctx, lop_coef_const(16, 0), p);
    const lop_node *d = NULL, *large = NULL, *ones = NULL;
    lop_status st = lop_make1(mk, &lop_op_array_diagonal, NULL, value, &d);
    if (st != LOP_OK) return st;
    const lop_node like = {.shape = d->shape, .dtype = d->dtype, .core = 1};
    st = times(mk, &lop_op_scale, by, d, &large);
    if (st == LOP_OK) st = lop_make(mk, "ones", NULL, 0, NULL, &like, &ones);
    if (st == LOP_OK) st = lop_build_minus(mk, large, ones, out);
    const lop_node *gone[] = {d, large, ones};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

LOP_BUILD(dense_smoother) {
    const lop_node *product = m->root->child[0], *ie = NULL, *eye = NULL, *less = NULL, *sum = NULL,
                   *all = NULL, *value = NULL, *room = NULL, *alt = NULL, *once = NULL;
    const lop_attr own = {.i = {0, 1, 0, 0}}, even = {.i = {16, 4, 0, 0}};
    lop_coef by;
    quotient q;
    if (m->root->dtype != product->dtype || lop_is_complex(product->dtype)) return LOP_NOMATCH;
    lop_status st = read_quotient(mk, product, &q);
    if (st != LOP_OK) return st;
    const lop_node *in = product->child[q.at], *of = in->child[0];
    const bool toeplitz = of->op == &lop_op_toeplitz && q.e->op != &lop_op_diag;
    if (!lop_coef_test(mk->ctx, q.p, LOP_COEF_MODEST) ||
        (!toeplitz && (!lop_infer_semidefinite(peeled(product->child[1 - q.at], &by)) ||
                       lop_cheap_to_solve(of) || lop_sparse_pays(of) || lop_solved_as_update(of))))
        st = LOP_NOMATCH;
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_prod, NULL, q.at ? q.e : in, q.at ? in : q.e, &ie);
    if (st == LOP_OK) st = lop_thin_multiple(mk, lop_coef_const(-1, 0), ie, &less);
    if (st == LOP_OK) st = lop_thin_identity(mk, lop_rows(of), &eye);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_sum, NULL, eye, less, &sum);
    if (st == LOP_OK) st = lop_thin_multiple(mk, q.p, sum, &all);
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, all, &value);
    if (st == LOP_OK) st = room_in(mk, q.p, value, &room);
    if (st == LOP_OK) st = lop_build_chain_dense(m, mk, &alt);
    const bool checked = q.e->op == &lop_op_diag;
    const lop_node *first[3] = {value, room, alt},
                   *second[3] = {NULL, checked ? q.e->child[0] : NULL, alt};
    if (st == LOP_OK)
        st = lop_make_op(mk, &lop_op_spectral, &own, 3, first, NULL, checked ? &once : out);
    second[0] = once;
    if (st == LOP_OK && checked)
        st = lop_make_op(mk, &lop_op_spectral, &even, 3, second, NULL, out);
    const lop_node *gone[] = {q.e, ie, eye, less, sum, all, value, room, alt, once};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

LOP_BUILD(trace_smoother) {
    lop_coef p, a, c;
    const lop_node *shift = NULL, *k = NULL;
    lop_status st = smoother_of(m, mk, &shift, &p, &a, &c, &k);
    if (st == LOP_NOMATCH) st = read_shifted(mk, m->root->child[0], &p, &c, &shift);
    return st == LOP_OK ? lop_build_trace_diagonal(m, mk, out) : st;
}
