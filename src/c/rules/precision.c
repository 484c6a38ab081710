/* precision.c: covariances by their precision, (P^-1 + U C U^H)^-1, of which neither part is
 * negative and P has no quick solve: the posterior of a linear model, or an update of a Kalman
 * filter.
 *
 *   x = P y,   y = b - U cap^-1 C U^H P b,   cap = I + C U^H P U
 *
 * so that y stands for P^-1 x in the residual r = b - y - U C U^H x, and P is not factored. What is
 * not seen so is the rounding of the product P y, some u |P| |y|, which P^-1 enlarges: as
 * |P^-1| <= |A| it counts as |A| u |P|_F |y| beside |r|, and more than 10 n u |A| |x| is not
 * accepted (op_checked_parts.c). Of a diagonal C the signs are looked at when they are there.
 *
 *   A^-1 = P - W cap^-1 C W^H,   W = P U       the dense form and the diagonal; a probe is solved
 *
 * with by the same W, and seen like that. There the rounding of P y is that of the P^-1 which the
 * formula as it is written would hold, n u cond(P) |P^-1| |x|, and is not counted.
 *
 *   A = b P^-1 + d D,  x = P y,  y = (d P + b D^-1)^-1 D^-1 b'      D diagonal, likewise
 *
 * Cost: P U and two products with P, where a factor of P and one of A were taken. */
#include "low_rank_woodbury.h"
#include "expr/properties.h"
#include "rewrite/guards.h"

static bool is_diagonal(const lop_node *c) {
    if (c->op == &lop_op_scaled) c = c->child[0];
    return c->op == &lop_op_diag && !lop_is_complex(c->child[0]->dtype);
}

static bool is_covariance(const lop_node *inverse) {
    return inverse->op == &lop_op_inverse && !lop_cheap_to_solve(inverse->child[0]) &&
           lop_infer_semidefinite(inverse) &&
           lop_infer_regular(inverse->child[0]) != LOP_FALSE; /* else solves with P say so */
}

bool lop_is_precision(const lop_node *a) {
    if (a->op != &lop_op_lowrankupdate || lop_nbatch(a) > 0) return false;
    const parts p = parts_of(a);
    return is_covariance(p.base) && p.base->child[0]->dtype == a->dtype && p.u->dtype == a->dtype &&
           lop_node_alike(p.u, p.v, LOP_INFER_DEPTH) &&
           (lop_infer_semidefinite(a) || (p.c && is_diagonal(p.c)));
}

lop_status lop_precision_signs(const woodbury *s, const lop_node **out) {
    *out = NULL;
    return lop_infer_semidefinite(s->a) ? LOP_OK : lop_make_diagonal(s->mk, s->p.c, out);
}

lop_status lop_precision_low(const woodbury *s, const lop_node **out) {
    const lop_node *child[3] = {s->p.u, s->p.v, s->p.c};
    return lop_make(s->mk, "lowrank", NULL, s->p.c ? 3 : 2, child, NULL, out);
}

lop_status lop_precision_solution(const woodbury *s, const lop_node *b, const lop_node **x,
                                  const lop_node **y, const lop_node **r) {
    const lop_node *p = s->covariance, *z = NULL, *t = NULL, *w = NULL, *uw = NULL, *again = NULL,
                   *low = NULL, *rest = NULL;
    lop_status st = lop_make2(s->mk, &lop_op_apply, NULL, p, b, &z);
    if (st == LOP_OK) st = lop_woodbury_through(s, z, &t);
    if (st == LOP_OK) st = lop_woodbury_inner(s, t, &w);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_apply, NULL, s->p.u, w, &uw);
    if (st == LOP_OK) st = lop_build_minus(s->mk, b, uw, y);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_apply, NULL, p, *y, x);
    if (st == LOP_OK) st = lop_woodbury_through(s, *x, &again);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_apply, NULL, s->p.u, again, &low);
    if (st == LOP_OK) st = lop_build_minus(s->mk, b, *y, &rest);
    if (st == LOP_OK) st = lop_build_minus(s->mk, rest, low, r);
    const lop_node *gone[] = {z, t, w, uw, again, low, rest};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* x = Q y, accepted by r, y standing for Q^-1 x / b, beside a matrix `low` that is not negative, or
 * is not where no element of d is (d may be NULL). */
static lop_status accepted(const lop_maker *mk, lop_dtype dt, const lop_node *x, const lop_node *r,
                           const lop_node *v, const lop_node *y, const lop_node *p,
                           const lop_node *low, const lop_node *d, const lop_node *alt,
                           const lop_node **out) {
    const lop_attr told = {.i = {d != NULL, 0, 0, 0}};
    const lop_node one = {.shape = {.ndim = 2, .dim = {1, 1}}, .dtype = dt, .core = 2};
    lop_check k = {.mk = mk, .a = low};
    const lop_node *f = NULL, *g = NULL;
    lop_status st = lop_check_open(&k, dt);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, p, k.v, &f);
    if (st == LOP_OK) st = lop_make(mk, "eye", NULL, 0, NULL, &one, &g);
    const lop_node *child[11] = {x, x, r, v, k.q, k.u, f, g, y, d ? d : alt, alt};
    if (st == LOP_OK)
        st = lop_make_op(mk, &lop_op_checked_beside, &told, d ? 11 : 10, child, NULL, out);
    lop_node_unref(f);
    lop_node_unref(g);
    lop_check_close(&k);
    return st;
}

lop_status lop_precision_solve(const woodbury *s, const lop_node *b, const lop_node *alt,
                               const lop_node **out) {
    const lop_node *x = NULL, *y = NULL, *r = NULL, *low = NULL, *d = NULL;
    lop_status st = lop_precision_solution(s, b, &x, &y, &r);
    if (st == LOP_OK) st = lop_precision_low(s, &low);
    if (st == LOP_OK) st = lop_precision_signs(s, &d);
    if (st == LOP_OK)
        st = accepted(s->mk, (lop_dtype)(s->dt.i[3] - 1), x, r, y, y, s->covariance, low, d, alt,
                      out);
    const lop_node *gone[] = {x, y, r, low, d};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* The dense form of (B + U C V^H)^-1 by B^-1 - W cap^-1 C V^H B^-1 and 2 n^2 k flops, where U has
 * at most a quarter as many columns. */
lop_status lop_inverse_by_update(const lop_match *m, const lop_maker *mk, const lop_node *a,
                                 const lop_node *update, const lop_node **out) {
    const lop_node *inverse = NULL, *own = NULL, *vb = NULL, *t = NULL, *y = NULL, *wy = NULL,
                   *value = NULL, *alt = NULL;
    woodbury s = {.mk = mk, .a = a, .p = parts_of(update), .apart = a != update};
    s.dt = (lop_attr){.i = {0, 0, 0, (int64_t)m->root->dtype + 1}};
    if (!lop_is_blas(m->root->dtype) || lop_nbatch(a) > 0 || 4 * lop_cols(s.p.u) > lop_rows(a) ||
        (s.p.base->op == &lop_op_inverse && lop_infer_regular(s.p.base->child[0]) == LOP_FALSE))
        return LOP_NOMATCH;
    lop_status st = lop_woodbury_open(&s);
    if (st == LOP_OK && s.covariance)
        inverse = lop_node_ref(s.covariance);
    else if (st == LOP_OK && s.p.base->op == &lop_op_inverse)
        inverse = lop_node_ref(s.p.base->child[0]);
    else if (st == LOP_OK)
        st = lop_inverse_closed(mk, s.p.base, &inverse);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &s.dt, inverse, &own);
    if (st == LOP_OK) st = lop_woodbury_right(&s, &vb);
    if (st == LOP_OK && s.p.c) st = lop_make2(mk, &lop_op_apply, NULL, s.p.c, vb, &t);
    if (st == LOP_OK) st = lop_woodbury_inner(&s, t ? t : vb, &y);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, s.w, y, &wy);
    if (st == LOP_OK) st = lop_build_minus(mk, own, wy, &value);
    if (st == LOP_OK) st = lop_inverse_array(mk, a, m->root->dtype, &alt);
    if (st == LOP_OK) st = lop_woodbury_checked(&s, &lop_op_checked_value, value, alt, out);
    const lop_node *gone[] = {inverse, own, vb, t, y, wy, value, alt};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    lop_woodbury_close(&s);
    return st;
}

LOP_BUILD(update_inverse_dense) {
    const lop_node *a = m->root->child[0]->child[0];
    return lop_inverse_by_update(m, mk, a, a, out);
}

/* -- b P^-1 + D of a diagonal D */

/* c P^-1 and a diagonal D, as they stand in the sum. */
static bool read_beside(const lop_node *sum, const lop_node **p, lop_coef *c, const lop_node **d) {
    for (int i = 0; i < 2; i++) {
        const lop_node *one = sum->child[i], *other = sum->child[1 - i];
        const bool times = one->op == &lop_op_scaled, more = other->op == &lop_op_scaled;
        const lop_node *inverse = times ? one->child[0] : one,
                       *kind = more ? other->child[0] : other;
        *c = times ? lop_coef_of(&one->attr) : lop_coef_const(1, 0);
        if (!is_covariance(inverse) || inverse->child[0]->dtype != sum->dtype ||
            !lop_coef_test(sum->ctx, *c, LOP_COEF_POSITIVE) ||
            !lop_coef_test(sum->ctx, *c, LOP_COEF_MODEST))
            continue;
        if (more && !lop_coef_test(sum->ctx, lop_coef_of(&other->attr), LOP_COEF_MODEST)) continue;
        *p = inverse->child[0];
        *d = other;
        return kind->op == &lop_op_identity || is_diagonal(other);
    }
    return false;
}

/* x = P y, y = (P + c D^-1)^-1 D^-1 b, so that c P^-1 x is c y but for the rounding of P y. */
LOP_BUILD(solve_beside_inverse) {
    const lop_node *sum = m->root->child[0], *p = NULL, *d = NULL, *b = NULL, *over = NULL,
                   *times = NULL, *small = NULL, *z = NULL, *y = NULL, *x = NULL, *dx = NULL,
                   *cy = NULL, *rest = NULL, *r = NULL, *signs = NULL, *dense = NULL, *alt = NULL,
                   *seen = NULL;
    lop_coef c;
    if (lop_nbatch(sum) > 0 || sum->dtype != m->root->dtype ||
        4 * lop_cols(m->root->child[1]) > lop_rows(sum) || !read_beside(sum, &p, &c, &d))
        return LOP_NOMATCH; /* of many columns the inverse is as soon formed */
    const lop_attr by = lop_coef_attr(c), dt = {.i = {0, 0, 0, (int64_t)sum->dtype + 1}},
                   cast = {.i = {1, 0, 0, dt.i[3]}}, tried = {.i = {1, 0, 0, 0}};
    lop_status st = lop_make1(mk, &lop_op_cast, &cast, m->root->child[1], &b);
    if (st == LOP_OK) st = lop_inverse_closed(mk, d, &over);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scaled, &by, over, &times);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_sum, NULL, p, times, &small);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_solve, NULL, d, b, &z);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_solve, NULL, small, z, &y);
    if (st == LOP_OK) seen = lop_node_ref(p);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, seen, y, &x);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, d, x, &dx);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &by, y, &cy);
    if (st == LOP_OK) st = lop_build_minus(mk, b, cy, &rest);
    if (st == LOP_OK) st = lop_build_minus(mk, rest, dx, &r);
    if (st == LOP_OK && !lop_infer_semidefinite(sum)) st = lop_make_diagonal(mk, d, &signs);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &dt, sum, &dense);
    if (st == LOP_OK)
        st = lop_infer_hermitian(sum)
                 ? lop_make2(mk, &lop_op_cholesky_solve, &tried, dense, b, &alt)
                 : lop_make2(mk, &lop_op_lu_solve, NULL, dense, b, &alt);
    if (st == LOP_OK) st = accepted(mk, sum->dtype, x, r, cy, y, seen, d, signs, alt, out);
    const lop_node *gone[] = {b,  over, times, small, z,     y,   x,   dx,
                              cy, rest, r,     signs, dense, alt, seen};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}
