/* inverse_differences.c: X^-1 - Y^-1 of matrices that differ by a multiple of the identity, and
 * what else is the same.
 *
 *   a (X^-1 - Y^-1) = a s X^-1 Y^-1 = a s (Y X)^-1        Y = X + s I
 *
 *   solves and diagonals of the inverse: by the product. det: (a s)^n / (det X det Y). Errors of
 * the inverses as written are at least u cond(X) |X^-1| and u cond(Y) |Y^-1|; they meet the inverse
 *     of the whole, |X Y| / s, which makes u cond(X) |Y| / s and u cond(Y) |X| / s at least, and s
 *     <= |X| + |Y|: one of the two factors is a half or more, and where it is one alone, the other
 *     matrix is near a multiple of I. The product's are u (cond X + cond Y).
 *
 *   diag(X^-1 Y^-1) = (diag X^-1 - diag Y^-1) / s,   where 16 s diag(X^-1), 16 s diag(Y^-1) > 1
 *     in every row: then s |X^-1| and s |Y^-1| are at least 1 / 16, so that the difference's errors
 *     u (cond(X) |X^-1| + cond(Y) |Y^-1|) / s are at most 16 times u (cond X + cond Y) |X^-1|
 *     |Y^-1|, those of the product of the two. Else by the product.
 *
 *   K K + c K = K (K + c I): solves by the two, checked by the sum, else by its dense form; its
 *     inverse is such a product. For K semidefinite and c > 0 there is no check: with y = (K + c
 * I)^-1 b and x = K^-1 y the residual is at most n u (|K + c I| |y| + |K + c I| |K| |x|) <= 2 n u
 * |A| |x|, as |K| |K + c I| = |A| and |y| <= |K| |x|, to first order. det A = det K det(K + c I)
 *     The sum has errors E of n u |K| (|K| + |c|), which change its log-determinant by up to n
 * |A^-1| |E|; those of the two are u n (cond K + cond(K + c I)), and |K^-1| <= (|K| + |c|) |A^-1|,
 *     |(K + c I)^-1| <= |K| |A^-1|: no larger than twice that, whatever K is. */
#include "builds.h"
#include "expr/properties.h"
#include "rewrite/cheap_to_solve.h"
#include "rewrite/guards.h"
#include "thin_sum.h"

enum { ALIKE = 8 };

typedef struct pair {
    const lop_node *x, *y; /* owned */
    lop_coef s;            /* Y = X + s I */
} pair;

static void drop(pair *p) {
    lop_node_unref(p->x);
    lop_node_unref(p->y);
}

/* Do x and y differ by s I? NOMATCH: no. */
static lop_status shift_of(const lop_maker *mk, const lop_node *x, const lop_node *y, lop_coef *s) {
    const lop_node *k[2] = {NULL, NULL};
    lop_coef c[2];
    const bool plain = x->dtype == y->dtype && lop_is_blas(x->dtype) && lop_nbatch(x) == 0 &&
                       lop_nbatch(y) == 0 && lop_is_square(x) && lop_rows(x) == lop_rows(y) &&
                       lop_rows(x) > 1;
    lop_status st = plain ? lop_read_shift(mk, x, &k[0], &c[0]) : LOP_NOMATCH;
    if (st == LOP_OK) st = lop_read_shift(mk, y, &k[1], &c[1]);
    if (st == LOP_OK && !lop_node_alike(k[0], k[1], ALIKE)) st = LOP_NOMATCH;
    if (st == LOP_OK) {
        *s = lop_coef_plus(mk->ctx, c[1], lop_coef_times(mk->ctx, lop_coef_const(-1, 0), c[0]));
        if (s->im != 0 || !lop_coef_test(mk->ctx, *s, LOP_COEF_MODEST)) st = LOP_NOMATCH;
    }
    lop_node_unref(k[0]);
    lop_node_unref(k[1]);
    return st;
}

/* X and Y of their inverses. After NOMATCH too they are to be given up. */
static lop_status both_inverted(const lop_maker *mk, const lop_node *x, const lop_node *y,
                                pair *p) {
    lop_status st = lop_inverted(mk, x, &p->x);
    if (st == LOP_OK) st = lop_inverted(mk, y, &p->y);
    if (st == LOP_OK && (!p->x || !p->y)) st = LOP_NOMATCH;
    return st == LOP_OK ? shift_of(mk, p->x, p->y, &p->s) : st;
}

/* a (X^-1 - Y^-1). */
static lop_status read_difference(const lop_maker *mk, const lop_node *sum, lop_coef *a, pair *p) {
    lop_coef c[2] = {lop_coef_const(1, 0), lop_coef_const(1, 0)};
    *p = (pair){NULL};
    if (sum->op != &lop_op_sum || lop_nbatch(sum) > 0 || !lop_is_blas(sum->dtype))
        return LOP_NOMATCH;
    const lop_node *x = lop_peeled(sum->child[0], &c[0]), *y = lop_peeled(sum->child[1], &c[1]);
    if (!lop_coef_test(mk->ctx, lop_coef_plus(mk->ctx, c[0], c[1]), LOP_COEF_ZERO) ||
        !lop_coef_test(mk->ctx, c[0], LOP_COEF_MODEST))
        return LOP_NOMATCH;
    *a = c[0];
    lop_status st = both_inverted(mk, x, y, p);
    return st == LOP_OK && p->x->dtype != sum->dtype ? LOP_NOMATCH : st;
}

/* (a s)^-1 Y (X b). */
LOP_BUILD(solve_inverse_difference) {
    lop_coef a;
    pair p;
    const lop_node *b = NULL, *x = NULL, *y = NULL, *xb = NULL, *yxb = NULL;
    lop_status st = read_difference(mk, m->root->child[0], &a, &p);
    if (st == LOP_OK) st = lop_build_cast_x(m, mk, &b);
    if (st == LOP_OK) x = lop_node_ref(p.x);
    if (st == LOP_OK) y = lop_node_ref(p.y);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, x, b, &xb);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, y, xb, &yxb);
    if (st == LOP_OK) {
        const lop_attr by = lop_coef_attr(
            lop_coef_over(mk->ctx, lop_coef_const(1, 0), lop_coef_times(mk->ctx, a, p.s)));
        st = lop_make1(mk, &lop_op_scale, &by, yxb, out);
    }
    const lop_node *gone[] = {b, x, y, xb, yxb};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    drop(&p);
    return st;
}

/* The root's action on a s X^-1 Y^-1, or, where it is on the inverse, on Y X / (a s). */
LOP_BUILD(inverse_difference) {
    const lop_node *root = m->root, *inner = root->child[0];
    const bool below = inner->op == &lop_op_inverse;
    const lop_node *f[2] = {NULL, NULL}, *product = NULL, *all = NULL;
    lop_coef a;
    pair p;
    lop_status st = read_difference(mk, below ? inner->child[0] : inner, &a, &p);
    if (st == LOP_OK) a = lop_coef_times(mk->ctx, a, p.s);
    for (int i = 0; st == LOP_OK && i < 2; i++) {
        if (below)
            f[i] = lop_node_ref(i ? p.x : p.y);
        else
            st = lop_inverse_closed(mk, i ? p.y : p.x, &f[i]);
    }
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_prod, NULL, f[0], f[1], &product);
    if (st == LOP_OK && below) a = lop_coef_over(mk->ctx, lop_coef_const(1, 0), a);
    if (st == LOP_OK) st = lop_thin_multiple(mk, a, product, &all);
    if (st == LOP_OK) st = lop_make1(mk, root->op, &root->attr, all, out);
    const lop_node *gone[] = {f[0], f[1], product, all};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    drop(&p);
    return st;
}

/* -- K K + c K */

/* K of K K; NULL: it is not that. */
static const lop_node *squared(const lop_node *a) {
    if (a->op == &lop_op_power) return a->attr.i[0] == 2 ? a->child[0] : NULL;
    return a->op == &lop_op_prod && lop_node_alike(a->child[0], a->child[1], ALIKE) ? a->child[0]
                                                                                    : NULL;
}
/* Is it K K, or a Kron of the squares of K's factors? */
static bool is_square_of(const lop_node *a, const lop_node *k) {
    const lop_node *own = squared(a);
    if (own) return lop_node_alike(own, k, ALIKE);
    bool all = a->op == &lop_op_kron && k->op == &lop_op_kron && a->n == k->n;
    for (int i = 0; all && i < a->n; i++) {
        const lop_node *f = squared(a->child[i]);
        all = f && lop_node_alike(f, k->child[i], ALIKE);
    }
    return all;
}
/* K K + c K as K (K + c I): X and Y. */
static lop_status read_quadratic(const lop_maker *mk, const lop_node *sum, pair *p) {
    *p = (pair){NULL};
    if (sum->op != &lop_op_sum || lop_nbatch(sum) > 0 || !lop_is_blas(sum->dtype) ||
        !lop_is_square(sum))
        return LOP_NOMATCH;
    for (int i = 0; i < 2; i++) {
        p->s = lop_coef_const(1, 0);
        const lop_node *k = lop_peeled(sum->child[1 - i], &p->s);
        if (!is_square_of(sum->child[i], k) || k->dtype != sum->dtype || p->s.im != 0 ||
            !lop_coef_test(mk->ctx, p->s, LOP_COEF_MODEST))
            continue;
        p->x = lop_node_ref(k);
        return lop_shifted(mk, k, p->s, &p->y);
    }
    return LOP_NOMATCH;
}

/* K semidefinite and c > 0: what the head of this file says. */
static bool is_definite(const lop_maker *mk, const pair *p) {
    return lop_infer_semidefinite(p->x) && lop_coef_test(mk->ctx, p->s, LOP_COEF_POSITIVE);
}

LOP_BUILD(det_quadratic) {
    const lop_node *one = NULL, *other = NULL;
    pair p;
    lop_status st = read_quadratic(mk, m->root->child[0], &p);
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, p.x, &one);
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, p.y, &other);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_mul_det, NULL, one, other, out);
    lop_node_unref(one);
    lop_node_unref(other);
    drop(&p);
    return st;
}

LOP_BUILD(solve_quadratic) {
    const lop_node *sum = m->root->child[0], *b = NULL, *z = NULL, *x = NULL;
    const lop_attr cast = {.i = {1, 0, 0, (int64_t)sum->dtype + 1}};
    pair p = {NULL};
    lop_status st = m->root->dtype == sum->dtype && !lop_cheap_to_solve(sum) ? LOP_OK : LOP_NOMATCH;
    if (st == LOP_OK) st = read_quadratic(mk, sum, &p);
    const bool cheap = st == LOP_OK && lop_cheap_to_solve(p.x),
               sure = st == LOP_OK && is_definite(mk, &p),
               few = 2 * lop_cols(m->root->child[1]) <= lop_rows(sum);
    if (st == LOP_OK && !(sure && (cheap || few)) &&
        (!lop_cheap_to_solve(p.x) || (!lop_cheap_to_solve(p.y) && p.x->op != &lop_op_toeplitz)))
        st = LOP_NOMATCH;
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_cast, &cast, m->root->child[1], &b);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_solve, NULL, p.y, b, &z);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_solve, NULL, p.x, z, sure ? out : &x);
    if (st != LOP_OK || sure) {
        const lop_node *made[] = {b, z, x};
        for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) lop_node_unref(made[i]);
        drop(&p);
        return st;
    }
    st = lop_check_or_dense(mk, sum, x, b, out);
    const lop_node *gone[] = {b, z, x};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    drop(&p);
    return st;
}

/* -- diag(X^-1 Y^-1) */

/* X and Y of X^-1 Y^-1, of (X Y)^-1 and of (X X + c X)^-1. */
static lop_status read_inverses(const lop_maker *mk, const lop_node *a, pair *p) {
    const lop_node *inner = a->op == &lop_op_inverse ? a->child[0] : NULL, *x, *y;
    *p = (pair){NULL};
    if (inner && inner->op == &lop_op_sum) return read_quadratic(mk, inner, p);
    const lop_node *product = inner ? inner : a;
    if (product->op != &lop_op_prod) return LOP_NOMATCH;
    x = product->child[0];
    y = product->child[1];
    if (!inner) return both_inverted(mk, x, y, p);
    lop_status st = shift_of(mk, x, y, &p->s);
    if (st != LOP_OK) return st;
    p->x = lop_node_ref(x);
    p->y = lop_node_ref(y);
    return LOP_OK;
}

/* 16 |s| d - 1. */
static lop_status room_of(const lop_maker *mk, lop_coef s, const lop_node *d,
                          const lop_node **out) {
    const lop_attr by = lop_coef_attr(lop_coef_times(mk->ctx, lop_coef_const(16, 0), s)),
                   minus = lop_attr_coef(-1, 0);
    const lop_node like = {.shape = d->shape, .dtype = d->dtype, .core = 1};
    const lop_node *large = NULL, *ones = NULL, *less = NULL;
    lop_status st = lop_make1(mk, &lop_op_scale, &by, d, &large);
    if (st == LOP_OK) st = lop_make(mk, "ones", NULL, 0, NULL, &like, &ones);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &minus, ones, &less);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_add, NULL, large, less, out);
    lop_node_unref(large);
    lop_node_unref(ones);
    lop_node_unref(less);
    return st;
}

/* The diagonal of the product of the inverses as it is written, or of the inverse of the dense
 * form. */
static lop_status by_product(const lop_match *m, const lop_maker *mk, const lop_node **out) {
    const lop_node *a = m->root->child[0];
    if (a->op == &lop_op_inverse)
        return lop_inverse_diagonal(mk, a->child[0], &m->root->attr, m->root->dtype, out);
    lop_status st = lop_build_chain_diagonal(m, mk, out);
    return st == LOP_NOMATCH ? lop_diagonal_of_dense(mk, a->dtype, a, out) : st;
}

LOP_BUILD(diagonal_inverses_shifted) {
    const lop_attr *at = &m->root->attr, own = {.i = {0, 1, 0, 0}};
    const lop_node *in[2] = {NULL, NULL}, *d[2] = {NULL, NULL}, *less = NULL, *value = NULL,
                   *room[2] = {NULL, NULL}, *alt = NULL, *once = NULL;
    pair p;
    lop_status st =
        lop_build_circulant_value(m, mk, out); /* of eigenvalues, which cancel nothing */
    if (st != LOP_NOMATCH) return st;
    st = read_inverses(mk, m->root->child[0], &p);
    if (st != LOP_OK || at->i[0] != 0) {
        drop(&p);
        return st == LOP_OK ? LOP_NOMATCH : st;
    }
    if (p.x->dtype != m->root->dtype || p.y->dtype != m->root->dtype) st = LOP_NOMATCH;
    const bool up = lop_coef_test(mk->ctx, p.s, LOP_COEF_POSITIVE);
    const lop_coef size = up ? p.s : lop_coef_times(mk->ctx, lop_coef_const(-1, 0), p.s);
    for (int i = 0; st == LOP_OK && i < 2; i++) {
        st = lop_inverse_closed(mk, i ? p.y : p.x, &in[i]);
        if (st == LOP_OK) st = lop_make1(mk, m->root->op, at, in[i], &d[i]);
        if (st == LOP_OK) st = room_of(mk, size, d[i], &room[i]);
    }
    if (st == LOP_OK) st = lop_build_minus(mk, d[0], d[1], &less);
    if (st == LOP_OK) {
        const lop_attr by = lop_coef_attr(lop_coef_over(mk->ctx, lop_coef_const(1, 0), p.s));
        st = lop_make1(mk, &lop_op_scale, &by, less, &value);
    }
    if (st == LOP_OK) st = by_product(m, mk, &alt);
    const lop_node *first[3] = {value, room[0], alt}, *second[3] = {NULL, room[1], alt};
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_spectral, &own, 3, first, NULL, &once);
    second[0] = once;
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_spectral, &own, 3, second, NULL, out);
    const lop_node *gone[] = {in[0], in[1], d[0], d[1], less, value, room[0], room[1], alt, once};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    drop(&p);
    return st;
}

/* The sum of that. */
LOP_BUILD(trace_inverses_shifted) {
    pair p;
    lop_status st = lop_build_circulant_value(m, mk, out);
    if (st != LOP_NOMATCH) return st;
    st = read_inverses(mk, m->root->child[0], &p);
    drop(&p);
    return st == LOP_OK ? lop_build_trace_diagonal(m, mk, out) : st;
}
