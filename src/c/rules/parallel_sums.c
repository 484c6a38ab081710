/* parallel_sums.c: what P^-1 + Q^-1 is the inverse of, A = c P (P + Q)^-1 Q, also as it is written
 * c (P - P (P + Q)^-1 P): the covariance that is left of P when what has noise Q is seen.
 *
 * P + Q may have closed to one kind, as a band and a diagonal do: Q is what was added then.
 *
 *   A^-1 = (P^-1 + Q^-1) / c
 *     Of definite P and Q nothing cancels in the diagonal. Solves, and diagonals of others, are
 *     checked: by the residual, and for diagonals where Q^-1 is not much larger than A^-1
 *     (op_checked_or_fallback.c); else by the dense form.
 *   det A = c^n det P det Q / det(P + Q)
 *   det(a P^-1 + b Q^-1) = det H / (det P det Q),  H = a Q + b P
 *     An error X of P moves log det A by the trace of (P^-1 - b H^-1) X up to the sign, and of Q
 *     likewise: accepted as op_checked_quotient.c says of P and H and of Q and H, else by the dense
 *     form. */
#include "expr/properties.h"
#include "rewrite/guards.h"
#include "sparse_updates.h"
#include "thin_sum.h"

/* A definite matrix: positive as it is written, and known to have an inverse. */
static bool is_definite(const lop_node *a) {
    return lop_nbatch(a) == 0 && lop_infer_semidefinite(a) && lop_infer_regular(a) == LOP_TRUE;
}

/* y of (add x y); NULL: it is none. */
static const lop_node *added(const lop_node *both, const lop_node *x) {
    if (both->op != &lop_op_add) return NULL;
    for (int i = 0; i < 2; i++)
        if (lop_node_alike(both->child[i], x, LOP_INFER_DEPTH)) return both->child[1 - i];
    return NULL;
}

/* c I of a Toeplitz with c added to the first element of its column. Owned. */
static lop_status shift_of(const lop_maker *mk, const lop_node *unit, int64_t n,
                           const lop_node **out) {
    const bool times = unit->op == &lop_op_scale;
    const lop_node *eye = NULL, *first = times ? unit->child[0] : unit;
    if (first->op != &lop_op_first_unit) return LOP_NOMATCH;
    lop_status st = lop_thin_identity(mk, n, &eye);
    if (st == LOP_OK)
        st = lop_thin_multiple(mk, times ? lop_coef_of(&unit->attr) : lop_coef_const(1, 0), eye,
                               out);
    lop_node_unref(eye);
    return st;
}

/* Q of P + Q that closed to one kind with P, whose parameters are sums. Owned. */
static lop_status unclosed(const lop_maker *mk, const lop_node *h, const lop_node *p,
                           const lop_node **out) {
    const lop_node *y[3] = {NULL};
    bool same[3] = {false};
    const bool three = h->op == &lop_op_tridiagonal;
    if (h->op != p->op || h->n != p->n || h->n > 3 || lop_nbatch(h) > 0 ||
        !(three || h->op == &lop_op_toeplitz || h->op == &lop_op_diag))
        return LOP_NOMATCH;
    for (int i = 0; i < h->n; i++) {
        y[i] = added(h->child[i], p->child[i]);
        same[i] = !y[i] && lop_node_alike(h->child[i], p->child[i], LOP_INFER_DEPTH);
        if (!y[i] && !same[i]) return LOP_NOMATCH;
    }
    if (three && same[0] && same[2] && y[1]) return lop_make1(mk, &lop_op_diag, NULL, y[1], out);
    if (h->op == &lop_op_toeplitz && y[0] && same[1]) return shift_of(mk, y[0], lop_rows(h), out);
    for (int i = 0; i < h->n; i++)
        if (same[i]) return LOP_NOMATCH;
    return lop_make_op(mk, h->op, NULL, h->n, y, NULL, out);
}

/* Q of a sum P + Q that holds p, also where it closed. Owned; NOMATCH: it does not. */
static lop_status beside(const lop_maker *mk, const lop_node *sum, const lop_node *p,
                         const lop_node **q) {
    if (sum->op != &lop_op_sum) return unclosed(mk, sum, p, q);
    for (int i = 0; i < 2; i++)
        if (lop_node_alike(sum->child[i], p, LOP_INFER_DEPTH)) {
            *q = lop_node_ref(sum->child[1 - i]);
            return LOP_OK;
        }
    return LOP_NOMATCH;
}

typedef struct parallel {
    const lop_node *p, *h; /* borrowed; H = P + Q */
    const lop_node *q;     /* owned */
    lop_coef c;
} parallel;

/* P (P + Q)^-1 Q, or P (P + Q)^-1 P with `own`, however they are nested? NOMATCH: it is not. */
static lop_status read_product(const lop_maker *mk, const lop_node *a, bool own, parallel *s) {
    const lop_node *left, *last, *inverse;
    if (a->op != &lop_op_prod) return LOP_NOMATCH;
    left = a->child[0];
    last = a->child[1];
    if (left->op != &lop_op_prod && last->op == &lop_op_prod) { /* P ((P + Q)^-1 Q) */
        inverse = last->child[0];
        last = last->child[1];
    } else if (left->op == &lop_op_prod) {
        inverse = left->child[1];
        left = left->child[0];
    } else {
        return LOP_NOMATCH;
    }
    if (inverse->op != &lop_op_inverse) return LOP_NOMATCH;
    s->h = inverse->child[0];
    s->p = left;
    lop_status st = beside(mk, s->h, left, &s->q);
    if (st == LOP_OK && !lop_node_alike(last, own ? left : s->q, LOP_INFER_DEPTH)) {
        lop_node_unref(s->q);
        s->q = NULL;
        st = LOP_NOMATCH;
    }
    return st;
}

/* A as it is written; NOMATCH: it is not so, or Q is known to have no inverse. What s owns is to be
 * given up whatever comes back. */
static lop_status read_parallel(const lop_maker *mk, const lop_node *a, lop_dtype dt, parallel *s) {
    lop_status st = LOP_NOMATCH;
    *s = (parallel){.c = lop_coef_const(1, 0)};
    if (a->dtype != dt || lop_nbatch(a) > 0 || !lop_is_blas(dt)) return LOP_NOMATCH;
    if (a->op == &lop_op_prod) st = read_product(mk, a, false, s);
    for (int i = 0; st == LOP_NOMATCH && a->op == &lop_op_sum && i < 2; i++) {
        lop_coef less = lop_coef_const(1, 0);
        s->c = lop_coef_const(1, 0);
        st = read_product(mk, lop_peeled(a->child[i], &less), true, s);
        if (st == LOP_OK &&
            (!lop_node_alike(s->p, lop_peeled(a->child[1 - i], &s->c), LOP_INFER_DEPTH) ||
             !lop_coef_test(mk->ctx, lop_coef_plus(mk->ctx, s->c, less), LOP_COEF_ZERO))) {
            lop_node_unref(s->q);
            s->q = NULL;
            st = LOP_NOMATCH;
        }
    }
    if (st != LOP_OK) return st;
    return s->p->dtype == dt && s->q->dtype == dt && s->h->dtype == dt &&
                   lop_coef_test(mk->ctx, s->c, LOP_COEF_NEAR) &&
                   lop_infer_regular(s->p) != LOP_FALSE && lop_infer_regular(s->q) != LOP_FALSE
               ? LOP_OK
               : LOP_NOMATCH;
}

/* z / c. */
static lop_status divided(const lop_maker *mk, lop_coef c, const lop_node *z,
                          const lop_node **out) {
    const lop_attr by = lop_coef_attr(lop_coef_over(mk->ctx, lop_coef_const(1, 0), c));
    if (!lop_coef_test(mk->ctx, c, LOP_COEF_ONE)) return lop_make1(mk, &lop_op_scale, &by, z, out);
    *out = lop_node_ref(z);
    return LOP_OK;
}

/* (P^-1 b + Q^-1 b) / c; Q^-1 b / c in *half. Owned. */
static lop_status solution(const lop_maker *mk, const parallel *s, const lop_node *b,
                           const lop_node **half, const lop_node **out) {
    const lop_node *y = NULL, *z = NULL, *both = NULL;
    lop_status st = lop_make2(mk, &lop_op_solve, NULL, s->p, b, &y);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_solve, NULL, s->q, b, &z);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_add, NULL, y, z, &both);
    if (st == LOP_OK) st = divided(mk, s->c, both, out);
    if (st == LOP_OK) st = divided(mk, s->c, z, half);
    lop_node_unref(y);
    lop_node_unref(z);
    lop_node_unref(both);
    return st;
}

LOP_BUILD(solve_parallel_sum) {
    const lop_node *a = m->root->child[0], *b = NULL, *x = NULL, *half = NULL;
    const lop_attr cast = {.i = {1, 0, 0, (int64_t)a->dtype + 1}};
    parallel s;
    lop_status st = read_parallel(mk, a, m->root->dtype, &s);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_cast, &cast, m->root->child[1], &b);
    if (st == LOP_OK) st = solution(mk, &s, b, &half, &x);
    if (st == LOP_OK) st = lop_check_or_dense(mk, a, x, b, out);
    const lop_node *gone[] = {b, x, half, s.q};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* diag(P^-1) + diag(Q^-1), over c. */
static lop_status diagonals(const lop_maker *mk, const parallel *s, const lop_node *root,
                            const lop_node **out) {
    const lop_node *one = NULL, *other = NULL, *sum = NULL, *value = NULL;
    lop_status st = lop_inverse_closed(mk, s->p, &one);
    if (st == LOP_OK) st = lop_inverse_closed(mk, s->q, &other);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_sum, NULL, one, other, &sum);
    if (st == LOP_OK) st = lop_make1(mk, root->op, &root->attr, sum, &value);
    if (st == LOP_OK) st = divided(mk, s->c, value, out);
    const lop_node *gone[] = {one, other, sum, value};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

LOP_BUILD(parallel_inverse) {
    const lop_node *a = m->root->child[0]->child[0], *value = NULL, *x = NULL, *w = NULL, *r = NULL,
                   *alt = NULL;
    lop_check k = {.mk = mk, .a = a};
    parallel s;
    lop_status st = read_parallel(mk, a, m->root->dtype, &s);
    if (st == LOP_OK) st = diagonals(mk, &s, m->root, &value);
    if (st != LOP_OK || (is_definite(s.p) && is_definite(s.q))) {
        *out = value;
        lop_node_unref(s.q);
        return st;
    }
    st = lop_check_open(&k, a->dtype);
    if (st == LOP_OK) st = solution(mk, &s, k.v, &w, &x);
    if (st == LOP_OK) st = lop_check_residual(&k, x, k.v, &r);
    if (st == LOP_OK) st = lop_inverse_diagonal(mk, a, &m->root->attr, m->root->dtype, &alt);
    const lop_node *child[9] = {value, x, r, k.v, k.q, k.u, w, k.v, alt};
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_checked_value, NULL, 9, child, NULL, out);
    lop_check_close(&k);
    const lop_node *gone[] = {value, x, w, r, alt, s.q};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* det P det Q / det H, or with `over` det H / (det P det Q), accepted of P with p in H and of Q
 * with q in H, else by the dense form. Owned. */
static lop_status checked_det(const lop_match *m, const lop_maker *mk, const parallel *s,
                              const lop_coef by[2], bool over, const lop_node **out) {
    const lop_node *a = m->root->child[0], *det[3] = {NULL}, *both = NULL, *under = NULL,
                   *all = NULL, *value = NULL, *alt = NULL, *once = NULL;
    const lop_attr *k = &m->root->attr, power = {.i = {-1, 0, 0, 0}};
    lop_attr times = lop_coef_attr(s->c);
    times.i[3] = lop_rows(a);
    lop_status st = lop_make1(mk, &lop_op_scaledet, k, s->p, &det[0]);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scaledet, k, s->q, &det[1]);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scaledet, k, s->h, &det[2]);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_mul_det, NULL, det[0], det[1], &both);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_pow_det, &power, over ? both : det[2], &under);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_mul_det, NULL, over ? det[2] : both, under, &all);
    if (st == LOP_OK)
        st = lop_coef_test(mk->ctx, s->c, LOP_COEF_ONE)
                 ? (value = lop_node_ref(all), LOP_OK)
                 : lop_make1(mk, &lop_op_scale_det, &times, all, &value);
    if (st == LOP_OK) st = lop_det_of_dense(mk, k, a, &alt);
    lop_quotient own = {lop_rows(a), value, s->p, s->h, by[0], alt}, other = own;
    if (st == LOP_OK) st = lop_quotient_checked(mk, &own, &once);
    other.det = once;
    other.m = s->q;
    other.by = by[1];
    if (st == LOP_OK) st = lop_quotient_checked(mk, &other, out);
    const lop_node *gone[] = {det[0], det[1], det[2], both, under, all, value, alt, once};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

LOP_BUILD(det_parallel_sum) {
    const lop_coef one = lop_coef_const(1, 0), by[2] = {one, one};
    parallel s;
    lop_status st = read_parallel(mk, m->root->child[0], m->root->dtype, &s);
    if (st == LOP_OK && s.p->op == &lop_op_inverse)
        st = LOP_NOMATCH; /* of an inverse: Woodbury's formula, inverse_identities.c */
    if (st == LOP_OK) st = checked_det(m, mk, &s, by, false, out);
    lop_node_unref(s.q);
    return st;
}

/* Of a P^-1 + b Q^-1. */
LOP_BUILD(det_two_inverses) {
    const lop_node *sum = m->root->child[0], *part[2], *first = NULL, *second = NULL, *h = NULL;
    lop_coef c[2] = {lop_coef_const(1, 0), lop_coef_const(1, 0)};
    if (lop_nbatch(sum) > 0 || !lop_is_blas(sum->dtype) || sum->dtype != m->root->dtype)
        return LOP_NOMATCH;
    for (int i = 0; i < 2; i++) {
        const lop_node *inverse = lop_peeled(sum->child[i], &c[i]);
        if (inverse->op != &lop_op_inverse || inverse->child[0]->dtype != sum->dtype ||
            !lop_coef_test(mk->ctx, c[i], LOP_COEF_NEAR) ||
            lop_infer_regular(inverse->child[0]) == LOP_FALSE)
            return LOP_NOMATCH;
        part[i] = inverse->child[0];
    }
    lop_status st = lop_thin_multiple(mk, c[0], part[1], &first);
    if (st == LOP_OK) st = lop_thin_multiple(mk, c[1], part[0], &second);
    if (st == LOP_OK) st = lop_sum_closed(mk, first, second, &h);
    if (st == LOP_OK && h->dtype != sum->dtype) st = LOP_NOMATCH;
    const lop_coef by[2] = {c[1], c[0]};
    const parallel s = {.p = part[0], .q = part[1], .h = h, .c = lop_coef_const(1, 0)};
    if (st == LOP_OK) st = checked_det(m, mk, &s, by, true, out);
    lop_node_unref(first);
    lop_node_unref(second);
    lop_node_unref(h);
    return st;
}
