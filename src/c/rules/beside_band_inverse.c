/* beside_band_inverse.c: A = G + c L M^-1 R of bands M, G, L and R, one of L and R the identity or
 * a multiple of G: with one band H of as many rows, and no dense form,
 *
 *   L = I     A = M^-1 H,    H = M G + c R           x = H^-1 M b
 *   R = I     A = H M^-1,    H = G M + c L           x = M H^-1 b
 *   L = l G   A = G M^-1 H,  H = M + c l R           x = H^-1 M G^-1 b
 *   R = r G   A = H M^-1 G,  H = M + c r L           x = G^-1 M H^-1 b
 *
 * as in I + T^-1 D and D - D (T + D)^-1 D. Solutions are checked by A itself, else by its dense
 * form.
 *
 * Determinants, real, M symmetric:   det A = det(d) det Q / det P,   Q and P = Q - diag(e), e > 0
 *
 *   G + c M^-1        d = G,  c > 0:  P = M, Q = M + c G^-1
 *   g I + c M^-1 D    d = g^n, and with D M^-1:  M and M + (c / g) D
 *   G + c G M^-1 D    d = G,  and with D M^-1 G:  M and M + c D
 *
 *     Cholesky of a band of k diagonals on a side solves P + E, |E_ij| <= (k + 2) u sqrt(p_ii
 * p_jj), E within the band, so that log det P is off by tr(P^-1 E), at most (2 k + 1) (k + 2) u
 * times   the sum of p_ii (P^-1)_ii. Each q_ii (Q^-1)_ii is at most p_ii (P^-1)_ii, as it only
 * falls where e grows. Where each is at most 9 n / ((2 k + 1) (k + 2)), both errors are at most 9
 * n^2 u; the bound of a factor of the dense form is n^2 u or more. That, e > 0 and that P and Q are
 * definite is looked at; else the dense form. */
#include "builds.h"
#include "expr/properties.h"
#include "rewrite/guards.h"
#include "thin_sum.h"

enum { TERMS = 8, ALIKE = 8 };

typedef struct beside {
    const lop_node *sum, *m, *l, *r; /* borrowed; l and r NULL: the identity */
    const lop_node *g;               /* owned */
    lop_coef c;
} beside;

static const lop_node *peeled(const lop_node *a, lop_coef *c) {
    *c = lop_coef_const(1, 0);
    if (a->op != &lop_op_scaled) return a;
    *c = lop_coef_of(&a->attr);
    return a->child[0];
}

static bool is_narrow(const lop_node *a) {
    if (!lop_is_square(a) || a->shape.ndim != 2) return false;
    const lop_band b = lop_infer_bands(a);
    return 4 * (b.l + b.u) <= lop_rows(a) && lop_band_is_narrow(a, b);
}

/* A multiple of the inverse of a band: that band, and c times as much. NULL: it is none. */
static const lop_node *inverted(const lop_node *a, lop_coef *c) {
    lop_coef by;
    const lop_node *in = peeled(a, &by);
    if (in->op != &lop_op_inverse || in->child[0]->dtype != a->dtype || !is_narrow(in->child[0]))
        return NULL;
    *c = lop_coef_times(a->ctx, *c, by);
    return in->child[0];
}

/* c L M^-1 R, in which order ever its two products were taken. */
static bool read_far(const lop_node *a, beside *s) {
    a = peeled(a, &s->c);
    s->l = s->r = NULL;
    s->m = inverted(a, &s->c);
    if (s->m || a->op != &lop_op_prod) return s->m != NULL;
    for (int i = 0; i < 2; i++) {
        lop_coef by;
        const lop_node *one = peeled(a->child[i], &by), *other = a->child[1 - i],
                       **near = i ? &s->l : &s->r, **far = i ? &s->r : &s->l;
        s->m = inverted(a->child[i], &s->c);
        if (s->m) {
            *near = other;
            return is_narrow(other);
        }
        if (one->op == &lop_op_prod) s->m = inverted(one->child[1 - i], &s->c);
        if (!s->m) continue;
        s->c = lop_coef_times(a->ctx, s->c, by);
        *far = one->child[i];
        *near = other;
        return is_narrow(*far) && is_narrow(other);
    }
    return false;
}

/* NOMATCH: the sum is not so. */
static lop_status read_beside(const lop_maker *mk, const lop_node *sum, beside *s) {
    const lop_node *term[TERMS];
    const int n = lop_terms_of(sum, term, TERMS);
    bool found = false;
    lop_status st =
        n < 2 || sum->shape.ndim != 2 || !lop_is_blas(sum->dtype) ? LOP_NOMATCH : LOP_OK;
    *s = (beside){.sum = sum};
    for (int i = 0; st == LOP_OK && i < n; i++) {
        beside far = *s;
        if (!found && read_far(term[i], &far)) {
            far.g = s->g;
            *s = far;
            found = true;
        } else {
            st = is_narrow(term[i]) ? lop_plus(mk, term[i], &s->g) : LOP_NOMATCH;
        }
    }
    if (st == LOP_OK && (!found || !s->g || s->m->dtype != sum->dtype ||
                         !lop_coef_test(mk->ctx, s->c, LOP_COEF_MODEST)))
        st = LOP_NOMATCH;
    return st;
}

/* Of a Diag its vector, which multiples and views have closed to a multiple or conjugate of:
 * *c v, or with *turned the conjugate of v. */
static const lop_node *within(const lop_node *a, lop_coef *c, bool *turned) {
    *turned = false;
    a = peeled(a, c);
    if (a->op == &lop_op_diag) a = a->child[0];
    for (; a->op == &lop_op_scale || a->op == &lop_op_conjugate; a = a->child[0]) {
        lop_coef by = lop_coef_const(1, 0);
        if (a->op == &lop_op_conjugate) *turned = !*turned;
        if (a->op == &lop_op_scale) by = lop_coef_of(&a->attr);
        if (*turned) by.im = -by.im;
        *c = lop_coef_times(a->ctx, *c, by);
    }
    return a;
}
/* Is f a multiple of g: f = *c g? */
static bool is_multiple(const lop_node *f, const lop_node *g, lop_coef *c) {
    lop_coef a, b;
    bool turned[2];
    if (!f || !lop_node_alike(within(f, &a, &turned[0]), within(g, &b, &turned[1]), ALIKE) ||
        turned[0] != turned[1] || !lop_coef_test(f->ctx, b, LOP_COEF_MODEST))
        return false;
    *c = lop_coef_over(f->ctx, a, b);
    return true;
}

static bool is_undone(lop_ctx *ctx, lop_coef c, lop_coef d) {
    return lop_coef_test(ctx, lop_coef_plus(ctx, c, d), LOP_COEF_ZERO);
}

/* a + c b where - c b stands in a, as a term or in the sum that is the diagonal of a Tridiagonal:
 * the rest, in which nothing has cancelled. NOMATCH: it does not. */
static lop_status rest_of(const lop_maker *mk, const lop_node *a, lop_coef c, const lop_node *b,
                          const lop_node **out) {
    const lop_node *term[TERMS], *rest = NULL;
    const int n = a->op == &lop_op_sum ? lop_terms_of(a, term, TERMS) : 0;
    lop_status st = LOP_OK;
    lop_coef of, with;
    bool turned;
    int at = 0;
    while (at < n && !(is_multiple(term[at], b, &of) && is_undone(mk->ctx, c, of))) at++;
    for (int i = 0; at < n && st == LOP_OK && i < n; i++)
        if (i != at) st = lop_plus(mk, term[i], &rest);
    *out = rest;
    if (at < n) return st;
    const lop_node *v = within(b, &with, &turned);
    const bool sum = !turned && a->op == &lop_op_tridiagonal && a->child[1]->op == &lop_op_add;
    for (int i = 0; sum && i < 2; i++) {
        const lop_node *own = a->child[1]->child[i], *left = a->child[1]->child[1 - i];
        const bool times = own->op == &lop_op_scale;
        of = times ? lop_coef_of(&own->attr) : lop_coef_const(1, 0);
        if (left->dtype != a->dtype || left->core != 1 ||
            !lop_node_alike(times ? own->child[0] : own, v, ALIKE) ||
            !is_undone(mk->ctx, lop_coef_times(mk->ctx, c, with), of))
            continue;
        const lop_node *child[3] = {a->child[0], left, a->child[2]};
        lop_attr how = {.i = {LOP_ASSUME_GENERAL, a->attr.i[1], 0, 0}};
        if (a->attr.i[0] != LOP_ASSUME_GENERAL) how.i[0] = LOP_ASSUME_HERMITIAN;
        return lop_make_op(mk, &lop_op_tridiagonal, &how, 3, child, NULL, out);
    }
    return LOP_NOMATCH;
}

/* a + c b, of one kind where that closes. */
static lop_status plus_multiple(const lop_maker *mk, const lop_node *a, lop_coef c,
                                const lop_node *b, const lop_node **out) {
    const lop_node *times = NULL;
    lop_status st = rest_of(mk, a, c, b, out);
    if (st != LOP_NOMATCH) return st;
    st = lop_thin_multiple(mk, c, b, &times);
    if (st == LOP_OK) st = lop_sum_closed(mk, a, times, out);
    lop_node_unref(times);
    return st;
}

/* H, and what stands around it: by G^-1 first, last, or not at all. NOMATCH: there is none. */
typedef struct ways {
    const lop_node *h; /* owned */
    bool before, after, times_first;
} ways;

static lop_status find_way(const lop_maker *mk, const beside *s, ways *w) {
    lop_coef g;
    const lop_node *mg = NULL;
    lop_status st;
    *w = (ways){NULL};
    if (s->l && s->r && is_multiple(s->l, s->g, &g)) {
        w->before = w->times_first = true;
        st = plus_multiple(mk, s->m, lop_coef_times(mk->ctx, s->c, g), s->r, &w->h);
    } else if (s->l && s->r && is_multiple(s->r, s->g, &g)) {
        w->after = true;
        st = plus_multiple(mk, s->m, lop_coef_times(mk->ctx, s->c, g), s->l, &w->h);
    } else if (!s->l || !s->r) {
        const lop_node *eye = NULL;
        w->times_first = !s->l;
        st = lop_make2(mk, &lop_op_prod, NULL, s->l ? s->g : s->m, s->l ? s->m : s->g, &mg);
        if (st == LOP_OK && !s->l && !s->r) st = lop_thin_identity(mk, lop_rows(mg), &eye);
        if (st == LOP_OK) st = plus_multiple(mk, mg, s->c, s->l ? s->l : s->r ? s->r : eye, &w->h);
        lop_node_unref(eye);
        lop_node_unref(mg);
    } else {
        return LOP_NOMATCH;
    }
    if (st == LOP_OK && (w->h->dtype != s->sum->dtype || !is_narrow(w->h))) {
        lop_node_unref(w->h);
        w->h = NULL;
        st = LOP_NOMATCH;
    }
    return st;
}

static lop_status next(const lop_maker *mk, const lop_op *op, const lop_node *a,
                       const lop_node **x) {
    const lop_node *y = NULL;
    lop_status st = lop_make2(mk, op, NULL, a, *x, &y);
    if (st != LOP_OK) return st;
    lop_node_unref(*x);
    *x = y;
    return LOP_OK;
}

LOP_BUILD(solve_beside_band_inverse) {
    const lop_node *sum = m->root->child[0], *b = NULL, *x = NULL, *seen = NULL;
    const lop_attr cast = {.i = {1, 0, 0, (int64_t)sum->dtype + 1}};
    beside s = {NULL};
    ways w = {NULL};
    lop_status st =
        m->root->dtype == sum->dtype && lop_rows(sum) > 0 ? read_beside(mk, sum, &s) : LOP_NOMATCH;
    if (st == LOP_OK) st = find_way(mk, &s, &w);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_cast, &cast, m->root->child[1], &b);
    if (st == LOP_OK) seen = lop_node_ref(s.m);
    if (st == LOP_OK) x = lop_node_ref(b);
    if (st == LOP_OK && w.before) st = next(mk, &lop_op_solve, s.g, &x);
    if (st == LOP_OK && w.times_first) st = next(mk, &lop_op_apply, seen, &x);
    if (st == LOP_OK) st = next(mk, &lop_op_solve, w.h, &x);
    if (st == LOP_OK && !w.times_first) st = next(mk, &lop_op_apply, seen, &x);
    if (st == LOP_OK && w.after) st = next(mk, &lop_op_solve, s.g, &x);
    if (st == LOP_OK) st = lop_check_or_dense(mk, sum, x, b, out);
    const lop_node *gone[] = {s.g, w.h, b, x, seen};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* Diagonals of A^-1, of M that the formula inverts and may be singular: looked at. */
LOP_BUILD(inverse_beside_band) {
    const lop_node *sum = m->root->child[0]->child[0], *h = NULL, *g = NULL, *seen = NULL,
                   *mid = NULL, *all = NULL;
    beside s = {NULL};
    ways w = {NULL};
    if (lop_is_complex(sum->dtype) || m->root->dtype != sum->dtype || lop_rows(sum) == 0)
        return LOP_NOMATCH;
    lop_status st = read_beside(mk, sum, &s);
    if (st == LOP_OK) st = find_way(mk, &s, &w);
    if (st == LOP_OK) st = lop_inverse_closed(mk, w.h, &h);
    if (st == LOP_OK) seen = lop_node_ref(s.m);
    if (st == LOP_OK && (w.before || w.after)) st = lop_inverse_closed(mk, s.g, &g);
    if (st == LOP_OK)
        st = lop_make2(mk, &lop_op_prod, NULL, w.times_first ? h : seen, w.times_first ? seen : h,
                       &mid);
    if (st == LOP_OK && g)
        st = lop_make2(mk, &lop_op_prod, NULL, w.before ? mid : g, w.before ? g : mid, &all);
    if (st == LOP_OK) st = lop_where_regular(mk, m->root, s.m, all ? all : mid, out);
    const lop_node *gone[] = {s.g, w.h, h, g, seen, mid, all};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* -- determinants */

/* The determinant of a symmetric band by Cholesky alone. */
static lop_status det_alone(const lop_maker *mk, const lop_attr *k, const lop_node *a,
                            const lop_node **out) {
    const lop_node *v[3] = {NULL};
    const bool three = a->op == &lop_op_tridiagonal;
    const lop_band b = lop_infer_bands(a);
    lop_attr how = {.i = {b.l, b.u, LOP_ASSUME_ALONE, 0}};
    lop_status st = LOP_OK;
    if (three) how = (lop_attr){.i = {LOP_ASSUME_ALONE, a->attr.i[1], 0, 0}};
    for (int i = 0; three && st == LOP_OK && i < 3; i++)
        st = lop_make1(mk, &lop_op_cast, k, a->child[i], &v[i]);
    if (!three) st = lop_make_band(mk, a, b, (lop_dtype)(k->i[3] - 1), &v[0]);
    if (st == LOP_OK)
        st = lop_make_op(mk, three ? &lop_op_triangular_det : &lop_op_banded_det, &how,
                         three ? 3 : 1, v, NULL, out);
    for (int i = 0; i < 3; i++) lop_node_unref(v[i]);
    return st;
}

/* 9 n / ((2 k + 1) (k + 2)) - p_ii (P^-1)_ii. */
static lop_status room_of(const lop_maker *mk, const lop_attr *k, const lop_node *p,
                          const lop_node **out) {
    const lop_band b = lop_infer_bands(p);
    const double most = 9 * (double)lop_rows(p) / ((2 * (double)b.l + 1) * ((double)b.l + 2));
    const lop_node like = {
        .shape = {.ndim = 1, .dim = {lop_rows(p)}}, .dtype = p->dtype, .core = 1};
    const lop_attr all = lop_attr_coef(most, 0), minus = lop_attr_coef(-1, 0);
    const lop_node *inverse = NULL, *d[2] = {NULL, NULL}, *both = NULL, *ones = NULL, *high = NULL,
                   *less = NULL;
    lop_status st = lop_make1(mk, &lop_op_inverse, NULL, p, &inverse);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_diagonal, k, p, &d[0]);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_diagonal, k, inverse, &d[1]);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_mul, NULL, d[0], d[1], &both);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &minus, both, &less);
    if (st == LOP_OK) st = lop_make(mk, "ones", NULL, 0, NULL, &like, &ones);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &all, ones, &high);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_add, NULL, high, less, out);
    const lop_node *gone[] = {inverse, d[0], d[1], both, ones, high, less};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

static bool is_diagonal(const lop_node *a) {
    lop_coef c;
    a = peeled(a, &c);
    return a->op == &lop_op_diag || a->op == &lop_op_identity;
}

/* det A = det(d) det H / det M, H = M + c e: what is positive then is `sign` e. */
typedef struct parts {
    const lop_node *h, *e; /* owned: H, and a vector that says so: e, or 1 / e */
    bool grows;            /* H is the larger one */
} parts;

static lop_status read_parts(const lop_maker *mk, const beside *s, parts *p) {
    const lop_node *e = s->l ? s->l : s->r, *own = NULL;
    lop_coef g = lop_coef_const(1, 0), c = s->c, of;
    *p = (parts){NULL};
    if (!is_diagonal(s->g) || (e && !is_diagonal(e)) || (s->r && !is_diagonal(s->r)))
        return LOP_NOMATCH;
    const bool eye = peeled(s->g, &of)->op == &lop_op_identity;
    lop_status st = LOP_OK;
    if (s->l && s->r) {
        if (is_multiple(s->l, s->g, &g))
            e = s->r;
        else if (!is_multiple(s->r, s->g, &g))
            return LOP_NOMATCH;
        c = lop_coef_times(mk->ctx, c, g);
        own = lop_node_ref(e);
    } else if (e) {
        if (!eye || !lop_coef_test(mk->ctx, of, LOP_COEF_MODEST)) return LOP_NOMATCH;
        c = lop_coef_over(mk->ctx, c, of);
        own = lop_node_ref(e);
    } else {
        st = eye ? LOP_NOMATCH : lop_inverse_closed(mk, s->g, &own);
    }
    p->grows = lop_coef_test(mk->ctx, c, LOP_COEF_POSITIVE);
    if (st == LOP_OK && (!lop_coef_test(mk->ctx, c, LOP_COEF_MODEST) ||
                         own->dtype != s->sum->dtype || !is_diagonal(own)))
        st = LOP_NOMATCH;
    if (st == LOP_OK) st = lop_make_diagonal(mk, e ? own : s->g, &p->e);
    if (st == LOP_OK) st = plus_multiple(mk, s->m, c, own, &p->h);
    lop_node_unref(own);
    return st;
}

/* e - 2^-1000, or as far from where reciprocals overflow in single precision. */
static lop_status above_zero(const lop_maker *mk, const lop_node *e, const lop_node **out) {
    const lop_node like = {.shape = e->shape, .dtype = e->dtype, .core = 1};
    const lop_attr least = lop_attr_coef(e->dtype == LOP_f32 ? -0x1p-120 : -0x1p-1000, 0);
    const lop_node *ones = NULL, *low = NULL;
    lop_status st = lop_make(mk, "ones", NULL, 0, NULL, &like, &ones);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &least, ones, &low);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_add, NULL, e, low, out);
    lop_node_unref(ones);
    lop_node_unref(low);
    return st;
}

LOP_BUILD(det_beside_band_inverse) {
    const lop_node *sum = m->root->child[0], *det[3] = {NULL}, *under = NULL, *both = NULL,
                   *value = NULL, *room = NULL, *dense = NULL, *alt = NULL, *once = NULL,
                   *above = NULL;
    const lop_attr *k = &m->root->attr, power = {.i = {-1, 0, 0, 0}}, tried = {.i = {1, 0, 0, 0}},
                   own = {.i = {0, 1, 0, 0}}, at = {.i = {0, 0, 0, (int64_t)sum->dtype + 1}};
    beside s = {NULL};
    parts p = {NULL};
    if (lop_is_complex(sum->dtype) || m->root->dtype != sum->dtype || lop_rows(sum) == 0)
        return LOP_NOMATCH;
    lop_status st = read_beside(mk, sum, &s);
    if (st == LOP_OK && !lop_infer_hermitian(s.m)) st = LOP_NOMATCH;
    if (st == LOP_OK) st = read_parts(mk, &s, &p);
    if (st == LOP_OK && (p.h->dtype != sum->dtype || p.e->dtype != sum->dtype)) st = LOP_NOMATCH;
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scaledet, k, s.g, &det[0]);
    if (st == LOP_OK) st = det_alone(mk, &at, p.h, &det[1]);
    if (st == LOP_OK) st = det_alone(mk, &at, s.m, &det[2]);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_pow_det, &power, det[2], &under);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_mul_det, NULL, det[1], under, &both);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_mul_det, NULL, det[0], both, &value);
    if (st == LOP_OK) st = room_of(mk, &at, p.grows ? s.m : p.h, &room);
    if (st == LOP_OK) st = above_zero(mk, p.e, &above);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, k, sum, &dense);
    if (st == LOP_OK)
        st = lop_infer_hermitian(sum) ? lop_make1(mk, &lop_op_cholesky_det, &tried, dense, &alt)
                                      : lop_make1(mk, &lop_op_lu_det, NULL, dense, &alt);
    const lop_node *first[3] = {value, above, alt}, *second[3] = {NULL, room, alt};
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_spectral, &own, 3, first, NULL, &once);
    second[0] = once;
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_spectral, &own, 3, second, NULL, out);
    const lop_node *gone[] = {s.g,  p.h,   p.e,  det[0], det[1], det[2], under,
                              both, value, room, dense,  alt,    once,   above};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}
