/* inverse_identities.c: inverses that a formula spells out, known as what they are before they are
 * solved with.
 *
 *   a (B^-1 - B^-1 U S^-1 V B^-1)   with   S = W + g V B^-1 U,   written so that it is
 *   a (B + g U W^-1 V)^-1
 *
 * Woodbury's formula as papers have it. S^-1 undoes nothing that was not inverted already: B^-1 and
 * W^-1 stand in the formula, or W is known to have an inverse. What solves with it is then a
 * product with the sum, as of any inverse of an inverse, and its determinant and the diagonal of
 * its inverse are the sum's.
 *
 *   B^-1 (c I + M B^-1)^-1 = (c B + M)^-1 = (c I + B^-1 M)^-1 B^-1
 *   B^-1 (I - U S^-1 V B^-1)                            multiplied out: Woodbury's formula
 *
 * likewise: B^-1 stands in the formula, and falls out against the B that comes in. A solve with an
 * inverse multiplies, whether there is one or not; determinants, diagonals and dense forms look at
 * det B first where B may be singular: 0, and what is written runs, and says so. It is no more than
 * a factor of B.
 *
 *   (a P^-1 + b Q^-1)^-1 = P (a Q + b P)^-1 Q        P and Q positive definite (Q = I too)
 *
 * for the values of the inverse: neither P nor Q is factored. As lambda(P + Q) lies between the
 * sums of the extremes, cond(a Q + b P) <= max(cond P, cond Q): the errors are u cond(a Q + b P)
 * |P| |Q| |(a Q + b P)^-1|, no more than the u cond^2 of the formula as it is written, which takes
 * three inverses. Not for determinants: where P^-1 is little beside Q^-1, det(a Q + b P) / det P
 * loses the cond(P) that the sum never sees (beside c I: resolvents.c, which looks). */
#include "thin_sum.h"
#include "expr/properties.h"
#include "rewrite/guards.h"

enum { TERMS = 8 };

/* -- Woodbury's formula, written out */

typedef struct spelled {
    lop_thin s;
    lop_sym base;  /* B^-1; LOP_CH_PROXY: the identity */
    lop_coef a, g; /* a: of the whole; g: of U W^-1 V */
    const lop_sym *f;
    int nu, at, to;           /* U is f[nu .. at), V f[at + 1 .. to) */
    bool sure;                /* B^-1 and W are to be known to have inverses */
    const lop_node *rest;     /* owned: W */
    const lop_node *doubt[2]; /* owned, where `sure`: B and W^-1, if they may be singular */
} spelled;

static void give_up(const lop_node *doubt[2]) {
    for (int i = 0; i < 2; i++) lop_node_unref(doubt[i]);
    doubt[0] = doubt[1] = NULL;
}

/* Of a Diag over reciprocals, which is how its inverse is written: the Diag. NULL: it is none. */
static const lop_node *undone_diag(const lop_node *a) {
    return a->op == &lop_op_diag && a->child[0]->op == &lop_op_recip ? a->child[0]->child[0] : NULL;
}

static bool is_identity(const lop_thin *s, lop_sym f) {
    const lop_node *a = lop_thin_node(s, f);
    return a && a->op == &lop_op_identity && lop_nbatch(a) == 0;
}

/* May B^-1, or W, be inverted without a doubt? Where they may not, what is written has no inverse
 * either, as its determinant is a^n det W / (det B det S): solves say so, determinants would not.
 */
static bool is_invertible(const lop_node *a) {
    while (a->op == &lop_op_scaled) {
        if (!lop_coef_test(a->ctx, lop_coef_of(&a->attr), LOP_COEF_MODEST)) return false;
        a = a->child[0];
    }
    return a->op == &lop_op_identity || a->op == &lop_op_inverse || undone_diag(a) ||
           lop_infer_regular(a) == LOP_TRUE;
}

/* a^-1, closed, owned. */
static lop_status undone(const lop_maker *mk, const lop_node *a, const lop_node **out) {
    const lop_node *d = undone_diag(a), *inner = NULL;
    if (a->op == &lop_op_inverse) {
        *out = lop_node_ref(a->child[0]);
        return LOP_OK;
    }
    if (d) return lop_make1(mk, &lop_op_diag, NULL, d, out);
    if (a->op != &lop_op_scaled) return lop_inverse_closed(mk, a, out);
    const lop_coef c = lop_coef_over(mk->ctx, lop_coef_const(1, 0), lop_coef_of(&a->attr));
    lop_status st = undone(mk, a->child[0], &inner);
    if (st == LOP_OK) st = lop_thin_multiple(mk, c, inner, out);
    lop_node_unref(inner);
    return st;
}

static lop_status added(const lop_maker *mk, const lop_node *term, const lop_node **sum) {
    const lop_node *both = NULL;
    if (!*sum) {
        *sum = lop_node_ref(term);
        return LOP_OK;
    }
    lop_status st = lop_make2(mk, &lop_op_sum, NULL, *sum, term, &both);
    if (st != LOP_OK) return st;
    lop_node_unref(*sum);
    *sum = both;
    return LOP_OK;
}

/* Is the term t of S the product V B^-1 U? */
static bool is_between(const spelled *w, const lop_chterm *t) {
    const int nv = w->to - w->at - 1, nu = w->at - w->nu, b = w->base != LOP_CH_PROXY;
    if (t->n != nv + b + nu) return false;
    for (int i = 0; i < nv; i++)
        if (t->f[i] != w->f[w->at + 1 + i]) return false;
    for (int i = 0; i < nu; i++)
        if (t->f[nv + b + i] != w->f[w->nu + i]) return false;
    return !b || t->f[nv] == w->base;
}

/* Sets g, and W as the rest of S. NOMATCH: S is not so. */
static lop_status take_out(spelled *w, const lop_node *sum) {
    const lop_node *term[TERMS];
    const int n = lop_terms_of(sum, term, TERMS);
    bool found = false;
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < n; i++) {
        lop_chterm t = {.c = {.re = 1}};
        if (!lop_chain_term(&w->s.ch, term[i], false, &t)) return LOP_NOMATCH;
        if (!found && is_between(w, &t)) {
            found = true;
            w->g = t.c;
        } else {
            st = added(w->s.mk, term[i], &w->rest);
        }
    }
    return st == LOP_OK && (!found || !w->rest) ? LOP_NOMATCH : st;
}

/* The two terms as B^-1 and - B^-1 U S^-1 V B^-1, one or the other first. */
static lop_status read_terms(spelled *w, const lop_chterm *whole, const lop_chterm *less) {
    const lop_maker *mk = w->s.mk;
    const int n = less->n;
    if (whole->n != 1 || n < 3) return LOP_NOMATCH;
    const bool eye = is_identity(&w->s, whole->f[0]);
    const lop_node *b = lop_thin_node(&w->s, whole->f[0]);
    if (!b || lop_nbatch(b) > 0) return LOP_NOMATCH;
    if (!eye && (less->f[0] != whole->f[0] || less->f[n - 1] != whole->f[0])) return LOP_NOMATCH;
    if (!eye && !lop_sym_inverse(whole->f[0]) && !undone_diag(b) &&
        !(lop_cheap_to_solve(b) && (!w->sure || lop_infer_regular(b) == LOP_TRUE)))
        return LOP_NOMATCH;
    w->base = eye ? LOP_CH_PROXY : whole->f[0];
    w->a = whole->c;
    w->f = less->f;
    w->nu = !eye;
    w->to = n - !eye;
    for (w->at = w->nu + 1; w->at + 1 < w->to; w->at++) {
        const lop_node *s = lop_thin_node(&w->s, less->f[w->at]);
        if (!s || !lop_sym_inverse(less->f[w->at]) || lop_sym_mode(less->f[w->at]) ||
            s->op != &lop_op_sum)
            continue;
        lop_status st = take_out(w, s);
        /* c = - a g */
        if (st == LOP_OK &&
            lop_coef_test(mk->ctx,
                          lop_coef_plus(mk->ctx, less->c, lop_coef_times(mk->ctx, w->a, w->g)),
                          LOP_COEF_ZERO) &&
            (is_invertible(w->rest) || (!w->sure && lop_cheap_to_solve(w->rest))))
            return LOP_OK;
        lop_node_unref(w->rest);
        w->rest = NULL;
        if (st != LOP_OK && st != LOP_NOMATCH) return st;
    }
    return LOP_NOMATCH;
}

/* B + g U W^-1 V. */
static lop_status undone_sum(spelled *w, const lop_node **out) {
    const lop_maker *mk = w->s.mk;
    const lop_node *u = NULL, *v = NULL, *mid = NULL, *uw = NULL, *low = NULL, *term = NULL,
                   *b = NULL, *seen = NULL;
    lop_status st = lop_thin_product(&w->s, w->f + w->nu, w->at - w->nu, &u);
    if (st == LOP_OK) st = lop_thin_product(&w->s, w->f + w->at + 1, w->to - w->at - 1, &v);
    if (st == LOP_OK) st = undone(mk, w->rest, &mid);
    if (st == LOP_OK && mid->op == &lop_op_identity)
        uw = lop_node_ref(u);
    else if (st == LOP_OK)
        st = lop_make2(mk, &lop_op_prod, NULL, u, mid, &uw);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_prod, NULL, uw, v, &low);
    if (st == LOP_OK) st = lop_thin_multiple(mk, w->g, low, &term);
    if (st == LOP_OK && w->base == LOP_CH_PROXY)
        st = lop_thin_identity(mk, lop_rows(u), &b);
    else if (st == LOP_OK)
        st = lop_thin_factor(&w->s, w->base, false, &seen);
    if (st == LOP_OK && seen) st = undone(mk, seen, &b);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_sum, NULL, b, term, out);
    if (st == LOP_OK && w->sure && seen && lop_infer_regular(b) != LOP_TRUE)
        w->doubt[0] = lop_node_ref(b);
    if (st == LOP_OK && w->sure && lop_infer_regular(w->rest) != LOP_TRUE &&
        lop_infer_regular(mid) != LOP_TRUE)
        w->doubt[1] = lop_node_ref(mid);
    const lop_node *gone[] = {u, v, mid, uw, low, term, b, seen};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* c^-1 (B + g U W^-1 V), what the sum is the inverse of; NOMATCH: it is not spelled so. Both of
 * `doubt`, NULL at first, owned. */
static lop_status spelled_inverse(const lop_maker *mk, const lop_node *sum, bool sure, lop_coef *c,
                                  const lop_node **out, const lop_node *doubt[2]) {
    spelled w = {.s = {.mk = mk, .dt = sum->dtype, .sum = sum, .n = lop_rows(sum)}, .sure = sure};
    if (lop_nbatch(sum) > 0 || !lop_is_blas(sum->dtype) || !lop_is_square(sum) ||
        !lop_chain_read(&w.s.ch, mk->ctx, sum->dtype, sum, NULL))
        return LOP_NOMATCH;
    lop_chain_tidy(&w.s.ch, &w.s.ch.state);
    const lop_chgroup *g = &w.s.ch.state.group[0];
    if (g->n != 2) return LOP_NOMATCH;
    const lop_chterm one = w.s.ch.state.term[g->term[0]], two = w.s.ch.state.term[g->term[1]];
    lop_status st = read_terms(&w, &one, &two);
    if (st == LOP_NOMATCH) st = read_terms(&w, &two, &one);
    *c = w.a;
    if (st == LOP_OK) st = undone_sum(&w, out);
    lop_node_unref(w.rest);
    if (st == LOP_OK && (*out)->dtype != sum->dtype) {
        lop_node_unref(*out);
        *out = NULL;
        st = LOP_NOMATCH;
    }
    if (st != LOP_OK) give_up(w.doubt);
    for (int i = 0; i < 2; i++) doubt[i] = w.doubt[i];
    return st;
}

/* -- the same as a product: B^-1 (I + U M V B^-1)^-1 and B^-1 (I - U S^-1 V B^-1) */

/* The inverse of a Kron is one of inverses. *out NULL: not all factors are some. */
static lop_status kron_inverted(const lop_maker *mk, const lop_node *a, const lop_node **out) {
    const lop_node *f[TERMS];
    *out = NULL;
    for (int i = 0; i < a->n; i++)
        if (a->n > TERMS || a->child[i]->op != &lop_op_inverse) return LOP_OK;
    for (int i = 0; i < a->n; i++) f[i] = a->child[i]->child[0];
    return lop_make(mk, "kron", NULL, a->n, f, NULL, out);
}

lop_status lop_inverted(const lop_maker *mk, const lop_node *a, const lop_node **out) {
    const lop_node *d = undone_diag(a);
    *out = a->op == &lop_op_inverse ? lop_node_ref(a->child[0]) : NULL;
    if (a->op == &lop_op_kron) return kron_inverted(mk, a, out);
    return d ? lop_make1(mk, &lop_op_diag, NULL, d, out) : LOP_OK;
}

/* `a` without the factor that it begins (`end` 0) or ends with, which is alike to x; NULL in *out:
 * nothing is left. NOMATCH: it does not. */
static lop_status without(const lop_maker *mk, const lop_node *a, const lop_node *x, int end,
                          int depth, const lop_node **out) {
    const lop_node *rest = NULL;
    *out = NULL;
    if (lop_node_alike(a, x, TERMS)) return LOP_OK;
    if (depth == 0 || (a->op != &lop_op_prod && a->op != &lop_op_scaled)) return LOP_NOMATCH;
    const bool scaled = a->op == &lop_op_scaled;
    lop_status st = without(mk, a->child[scaled ? 0 : end], x, end, depth - 1, &rest);
    if (st == LOP_OK && scaled && !rest) st = lop_thin_identity(mk, lop_rows(a), &rest);
    if (st == LOP_OK && scaled)
        st = lop_make1(mk, &lop_op_scaled, &a->attr, rest, out);
    else if (st == LOP_OK && !rest)
        *out = lop_node_ref(a->child[1 - end]);
    else if (st == LOP_OK)
        st = lop_make2(mk, &lop_op_prod, NULL, end ? a->child[0] : rest, end ? rest : a->child[1],
                       out);
    lop_node_unref(rest);
    return st;
}

/* What X^-1 (I + ...)^-1 (`end` 1), or the other way round, is the inverse of: each term of the sum
 * has X^-1 at that end, which falls out, or is a multiple of I. */
static lop_status merged_sum(const lop_maker *mk, const lop_node *xinv, const lop_node *x,
                             const lop_node *sum, int end, const lop_node **out) {
    const lop_node *term[TERMS], *all = NULL;
    const int n = sum->op == &lop_op_sum ? lop_terms_of(sum, term, TERMS) : 0;
    lop_status st = n > 1 ? LOP_OK : LOP_NOMATCH;
    for (int i = 0; st == LOP_OK && i < n; i++) {
        const lop_node *one = NULL,
                       *eye = term[i]->op == &lop_op_scaled ? term[i]->child[0] : term[i];
        if (eye->op == &lop_op_identity && eye != term[i])
            st = lop_make1(mk, &lop_op_scaled, &term[i]->attr, x, &one);
        else if (eye->op == &lop_op_identity)
            one = lop_node_ref(x);
        else
            st = without(mk, term[i], xinv, end, TERMS, &one);
        if (st == LOP_OK && !one) st = lop_thin_identity(mk, lop_rows(x), &one);
        if (st == LOP_OK) st = lop_plus(mk, one, &all);
        lop_node_unref(one);
    }
    if (st == LOP_OK) *out = lop_node_ref(all);
    lop_node_unref(all);
    return st;
}

/* *base: the one that falls out; owned. */
static lop_status two_inverses(const lop_maker *mk, const lop_node *p, lop_coef *c,
                               const lop_node **out, const lop_node **base) {
    *c = lop_coef_const(1, 0);
    const lop_node *a[2] = {lop_peeled(p->child[0], c), lop_peeled(p->child[1], c)};
    const lop_node *in[2] = {NULL, NULL};
    lop_status st = lop_inverted(mk, a[0], &in[0]);
    if (st == LOP_OK) st = lop_inverted(mk, a[1], &in[1]);
    if (st == LOP_OK && (!in[0] || !in[1])) st = LOP_NOMATCH;
    if (st == LOP_OK) st = merged_sum(mk, a[0], in[0], in[1], 1, out);
    int by = 0;
    if (st == LOP_NOMATCH && in[0] && in[1]) {
        by = 1;
        st = merged_sum(mk, a[1], in[1], in[0], 0, out);
    }
    if (st == LOP_OK) *base = lop_node_ref(in[by]);
    lop_node_unref(in[0]);
    lop_node_unref(in[1]);
    return st;
}

/* B^-1 (d I + rest) as the sum that it is, or (d I + rest) B^-1. */
static lop_status multiplied_out(const lop_maker *mk, const lop_node *p, const lop_node **out) {
    for (int i = 0; i < 2; i++) {
        const lop_node *b = p->child[i], *sum = p->child[1 - i], *all = NULL;
        bool eye = false;
        lop_status st = LOP_OK;
        if (sum->op != &lop_op_sum ||
            (b->op != &lop_op_inverse && !undone_diag(b) && !lop_cheap_to_solve(b)))
            continue;
        for (int j = 0; j < 2; j++) {
            const lop_node *t = sum->child[j];
            eye = eye || (t->op == &lop_op_scaled ? t->child[0] : t)->op == &lop_op_identity;
        }
        for (int j = 0; eye && st == LOP_OK && j < 2; j++) {
            lop_coef c = lop_coef_const(1, 0);
            const lop_node *t = sum->child[j], *one = NULL, *by = NULL, *of = lop_peeled(t, &c);
            if (of->op == &lop_op_identity)
                one = lop_node_ref(b);
            else
                st = lop_make2(mk, &lop_op_prod, NULL, i ? of : b, i ? b : of, &one);
            if (st == LOP_OK) st = lop_thin_multiple(mk, c, one, &by);
            if (st == LOP_OK) st = lop_plus(mk, by, &all);
            lop_node_unref(one);
            lop_node_unref(by);
        }
        if (st == LOP_OK && all) {
            *out = all;
            return LOP_OK;
        }
        lop_node_unref(all);
        if (st != LOP_OK) return st;
    }
    return LOP_NOMATCH;
}

/* Of a sum or of a product: as spelled_inverse. */
static lop_status spelled_any(const lop_maker *mk, const lop_node *a, bool sure, lop_coef *c,
                              const lop_node **out, const lop_node *doubt[2]) {
    const lop_node *sum = NULL, *base = NULL;
    doubt[0] = doubt[1] = NULL;
    if (a->op != &lop_op_prod) return spelled_inverse(mk, a, sure, c, out, doubt);
    if (lop_nbatch(a) > 0 || !lop_is_blas(a->dtype) || !lop_is_square(a) ||
        !lop_is_square(a->child[0]))
        return LOP_NOMATCH;
    lop_status st = two_inverses(mk, a, c, out, &base);
    if (st == LOP_OK && (*out)->dtype != a->dtype) {
        lop_node_unref(*out);
        *out = NULL;
        st = LOP_NOMATCH;
    }
    if (st == LOP_OK && sure && lop_infer_regular(base) != LOP_TRUE) doubt[0] = lop_node_ref(base);
    lop_node_unref(base);
    if (st != LOP_NOMATCH) return st;
    st = multiplied_out(mk, a, &sum);
    if (st == LOP_OK && sum->dtype != a->dtype) st = LOP_NOMATCH;
    if (st == LOP_OK) st = spelled_inverse(mk, sum, sure, c, out, doubt);
    lop_node_unref(sum);
    return st;
}

/* (a T^-1)^-1 x = T x / a. */
LOP_BUILD(solve_spelled_inverse) {
    lop_coef a;
    const lop_node *t = NULL, *x = NULL, *tx = NULL, *doubt[2];
    lop_status st = spelled_any(mk, m->root->child[0], false, &a, &t, doubt);
    if (st == LOP_OK) st = lop_build_cast_x(m, mk, &x);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, t, x, &tx);
    if (st == LOP_OK) {
        const lop_attr by = lop_coef_attr(lop_coef_over(mk->ctx, lop_coef_const(1, 0), a));
        st = lop_make1(mk, &lop_op_scale, &by, tx, out);
    }
    lop_node_unref(t);
    lop_node_unref(x);
    lop_node_unref(tx);
    return st;
}

/* det of both of `doubt`: 0 where one of them is singular. */
static lop_status det_of_doubt(const lop_maker *mk, const lop_node *const *doubt,
                               const lop_node **out) {
    const lop_node *det[2] = {NULL, NULL};
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < 2; i++)
        if (doubt[i]) {
            const lop_attr dt = {.i = {0, 0, 0, (int64_t)doubt[i]->dtype + 1}};
            st = lop_make1(mk, &lop_op_scaledet, &dt, doubt[i], &det[i]);
        }
    if (st == LOP_OK && det[0] && det[1])
        st = lop_make2(mk, &lop_op_mul_det, NULL, det[0], det[1], out);
    else if (st == LOP_OK)
        *out = lop_node_ref(det[0] ? det[0] : det[1]);
    lop_node_unref(det[0]);
    lop_node_unref(det[1]);
    return st;
}

/* What the root, a product with an array, a diagonal or a dense form, is of the formula as it is
 * written. */
static lop_status as_written(const lop_match *m, const lop_maker *mk, const lop_node **out) {
    const lop_node *root = m->root, *a = root->child[0], *dense = NULL;
    const lop_attr d = {.i = {0, 0, 0, (int64_t)root->dtype + 1}}, k = {.i = {root->attr.i[0]}};
    lop_status st = LOP_NOMATCH;
    if (root->op == &lop_op_apply) return lop_build_chain_apply(m, mk, out);
    if (root->op == &lop_op_todense) {
        st = lop_build_chain_dense(m, mk, out);
        if (st != LOP_NOMATCH) return st;
        st = lop_make1(mk, &lop_op_todense, &d, a->child[1], &dense);
        if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, a->child[0], dense, out);
    } else {
        if (root->attr.i[0] == 0) st = lop_build_chain_diagonal(m, mk, out);
        if (st != LOP_NOMATCH) return st;
        st = lop_make1(mk, &lop_op_todense, &d, a, &dense);
        if (st == LOP_OK) st = lop_make1(mk, &lop_op_array_diagonal, &k, dense, out);
    }
    lop_node_unref(dense);
    return st;
}

/* `value` of the root where nothing in doubt is singular. */
static lop_status where_sure(const lop_match *m, const lop_maker *mk, const lop_node *const *doubt,
                             const lop_node *value, const lop_node **out) {
    const lop_attr regular = {.i = {0, 3, 0, 0}}, power = {.i = {-1, 0, 0, 0}};
    const lop_node *det = NULL, *over = NULL, *one = NULL, *alt = NULL;
    lop_status st = det_of_doubt(mk, doubt, &det);
    if (st == LOP_OK &&
        m->root->op == &lop_op_scaledet) { /* times det / det, which 0 has none of */
        st = lop_make1(mk, &lop_op_pow_det, &power, det, &over);
        if (st == LOP_OK) st = lop_make2(mk, &lop_op_mul_det, NULL, det, over, &one);
        if (st == LOP_OK) st = lop_make2(mk, &lop_op_mul_det, NULL, value, one, out);
    } else if (st == LOP_OK) {
        st = as_written(m, mk, &alt);
        const lop_node *child[3] = {value, det, alt};
        if (st == LOP_OK) st = lop_make_op(mk, &lop_op_spectral, &regular, 3, child, NULL, out);
    }
    const lop_node *gone[] = {det, over, one, alt};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* The root's action on a T^-1, or, where it is on the inverse of the sum, on T / a. */
LOP_BUILD(spelled_inverse) {
    const lop_node *root = m->root, *inner = root->child[0];
    const bool below = inner->op == &lop_op_inverse;
    lop_coef a;
    const lop_node *t = NULL, *inverse = NULL, *times = NULL, *value = NULL, *doubt[2];
    lop_status st = spelled_any(mk, below ? inner->child[0] : inner, !below, &a, &t, doubt);
    const bool doubted = st == LOP_OK && (doubt[0] || doubt[1]);
    if (doubted && root->op == &lop_op_trace) { /* by the diagonal, which looks */
        st = lop_build_trace_diagonal(m, mk, out);
    } else {
        if (st == LOP_OK && !below) st = lop_make1(mk, &lop_op_inverse, NULL, t, &inverse);
        if (st == LOP_OK && below) a = lop_coef_over(mk->ctx, lop_coef_const(1, 0), a);
        if (st == LOP_OK) st = lop_thin_multiple(mk, a, inverse ? inverse : t, &times);
        if (st == LOP_OK) st = lop_make1(mk, root->op, &root->attr, times, doubted ? &value : out);
        if (st == LOP_OK && doubted) st = where_sure(m, mk, doubt, value, out);
    }
    give_up(doubt);
    lop_node_unref(t);
    lop_node_unref(inverse);
    lop_node_unref(times);
    lop_node_unref(value);
    return st;
}

/* B^-1 (c I + M B^-1)^-1 x = (c B + M)^-1 x: one factor in place of two. Woodbury's formula is
 * applied as it is written. */
LOP_BUILD(apply_spelled_product) {
    const lop_node *root = m->root, *p = root->child[0], *t = NULL, *base = NULL, *inverse = NULL,
                   *times = NULL, *value = NULL;
    lop_coef c;
    if (lop_nbatch(p) > 0 || !lop_is_blas(p->dtype) || root->dtype != p->dtype ||
        !lop_is_square(p->child[0]) || !lop_is_square(p))
        return LOP_NOMATCH;
    lop_status st = two_inverses(mk, p, &c, &t, &base);
    if (st == LOP_OK && t->dtype != p->dtype) st = LOP_NOMATCH;
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_inverse, NULL, t, &inverse);
    if (st == LOP_OK) st = lop_thin_multiple(mk, c, inverse, &times);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, times, root->child[1], &value);
    if (st == LOP_OK && lop_infer_regular(base) != LOP_TRUE) {
        const lop_node *const doubt[2] = {base, NULL};
        st = where_sure(m, mk, doubt, value, out);
    } else if (st == LOP_OK) {
        *out = lop_node_ref(value);
    }
    const lop_node *gone[] = {t, base, inverse, times, value};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* -- parallel sums */

/* P of a term c P^-1, P positive definite and not solved with at once, c > 0; the term's identity
 * with `eye`. NULL: it is not that. */
static const lop_node *covariance_of(const lop_node *term, lop_coef *c, bool *eye) {
    *c = lop_coef_const(1, 0);
    if (term->op == &lop_op_scaled) {
        *c = lop_coef_of(&term->attr);
        term = term->child[0];
    }
    *eye = term->op == &lop_op_identity;
    if (lop_nbatch(term) > 0 || !lop_coef_test(term->ctx, *c, LOP_COEF_POSITIVE)) return NULL;
    if (*eye) return term;
    if (term->op != &lop_op_inverse || lop_cheap_to_solve(term->child[0]) ||
        !lop_infer_semidefinite(term->child[0]) || lop_infer_regular(term->child[0]) != LOP_TRUE)
        return NULL;
    return term->child[0];
}

/* P (a Q + b P)^-1 Q, owned, to multiply with. */
static lop_status parallel_of(const lop_maker *mk, const lop_node *sum, const lop_node **out) {
    const lop_node *p, *q, *ap = NULL, *bq = NULL, *both = NULL, *inverse = NULL, *left = NULL,
                           *seen[2] = {NULL, NULL};
    lop_coef a, b;
    bool eye[2];
    if (lop_nbatch(sum) > 0 || !lop_is_blas(sum->dtype)) return LOP_NOMATCH;
    p = covariance_of(sum->child[0], &a, &eye[0]);
    q = covariance_of(sum->child[1], &b, &eye[1]);
    if (!p || !q || (eye[0] && eye[1])) return LOP_NOMATCH;
    lop_status st = lop_thin_multiple(mk, a, q, &ap);
    if (st == LOP_OK) st = lop_thin_multiple(mk, b, p, &bq);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_sum, NULL, ap, bq, &both);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_inverse, NULL, both, &inverse);
    for (int i = 0; st == LOP_OK && i < 2; i++) seen[i] = lop_node_ref(i ? q : p);
    if (st == LOP_OK && !eye[0]) st = lop_make2(mk, &lop_op_prod, NULL, seen[0], inverse, &left);
    if (st == LOP_OK && eye[1]) *out = lop_node_ref(left);
    if (st == LOP_OK && !eye[1])
        st = lop_make2(mk, &lop_op_prod, NULL, left ? left : inverse, seen[1], out);
    const lop_node *gone[] = {ap, bq, both, inverse, left, seen[0], seen[1]};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    if (st == LOP_OK && (*out)->dtype != sum->dtype) {
        lop_node_unref(*out);
        *out = NULL;
        st = LOP_NOMATCH;
    }
    return st;
}

/* The root's action on the inverse of the sum. */
LOP_BUILD(inverse_parallel) {
    const lop_node *product = NULL;
    lop_status st = parallel_of(mk, m->root->child[0]->child[0], &product);
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, product, out);
    lop_node_unref(product);
    return st;
}
