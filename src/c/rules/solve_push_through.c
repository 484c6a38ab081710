/* solve_push_through.c: S x = b B p + U M w with S = b B + c U M V, without a matrix of the size of
 * S:
 *
 *   x = p + B^-1 U (b M^-1 + c V B^-1 U)^-1 (w - c V p)
 *
 * for any B, U, M, V for which the inverses do (push-through; Henderson and Searle 1981, eq. 17 and
 * on; with p the form of a Kalman filter's update and of Black and Litterman's). The backward error
 * is checked, else the dense form is factored. What is checked is the residual of the right side as
 * it stands, not of what is left when p is taken off: b B p is in both, and falls out without being
 * computed, but what is lost in w - c V p is seen. */
#include "thin_sum.h"
#include "rewrite/guards.h"
#include "expr/properties.h"

/* -- the right side */

/* x as c times B or U (M) times something, as the planner writes it. */
static bool read_term(lop_thin *s, const lop_node *x, lop_coef c, lop_thin_right *r) {
    lop_chterm t = {.c = {.re = 1}};
    if (r->n == LOP_THIN_TERMS) return false;
    while (x->op == &lop_op_apply || x->op == &lop_op_solve) {
        if (!lop_is_blas(x->dtype) || /* integers wrap where they stand */
            !lop_chain_term(&s->ch, x->child[0], x->op == &lop_op_solve, &t))
            return false;
        x = x->child[1];
        const bool more = x->op == &lop_op_apply || x->op == &lop_op_solve,
                   base = t.n == 1 && t.f[0] == s->base && lop_sym_inverse(s->base);
        const int most = s->half + s->mid;
        bool mine = t.n <= most;
        for (int i = 0; mine && i < t.n; i++) mine = t.f[i] == s->term.f[i];
        if (!base && !mine) return false;
        if (!base && !(t.n == most || (t.n == s->half && !more))) continue;
        r->term[r->n].rest = x;
        r->term[r->n].c = lop_coef_times(s->mk->ctx, c, t.c);
        r->term[r->n].base = base;
        r->term[r->n++].with_mid = t.n > s->half;
        return true;
    }
    return false;
}
/* The recursion goes no deeper than `depth`. */
static bool read_terms(lop_thin *s, const lop_node *x, lop_coef c, lop_thin_right *r, int depth) {
    const bool scale = x->op == &lop_op_scale;
    if (!scale && x->op != &lop_op_add) return read_term(s, x, c, r);
    if (depth == 0 || !lop_is_blas(x->dtype)) return false;
    if (scale) c = lop_coef_times(s->mk->ctx, c, lop_coef_of(&x->attr));
    for (int i = 0; i < x->n; i++) /* no term is spread over more columns */
        if (!lop_shape_equal(&x->child[i]->shape, &x->shape) ||
            !read_terms(s, x->child[i], c, r, depth - 1))
            return false;
    return true;
}
bool lop_thin_read_right(lop_thin *s, const lop_node *x, lop_thin_right *r) {
    *r = (lop_thin_right){.with_mid = s->mid};
    if (!read_terms(s, x, lop_coef_const(1, 0), r, 2 * LOP_THIN_TERMS)) return false;
    bool any = false;
    for (int i = 0; i < r->n; i++) {
        if (r->term[i].c.im != 0) return false;
        if (r->term[i].base) continue;
        if (any && r->term[i].with_mid != r->with_mid) return false;
        r->with_mid = r->term[i].with_mid;
        any = true;
    }
    return true;
}

/* before + c a, in S's dtype; `before` may be NULL. */
static lop_status add_part(const lop_thin *s, const lop_node *before, lop_coef c, const lop_node *a,
                           const lop_node **out) {
    const lop_attr cast = {.i = {1, 0, 0, (int64_t)s->dt + 1}}, by = lop_coef_attr(c);
    const lop_node *wide = NULL, *part = NULL;
    lop_status st = lop_make1(s->mk, &lop_op_cast, &cast, a, &wide);
    if (st == LOP_OK && lop_coef_test(s->mk->ctx, c, LOP_COEF_ONE)) part = lop_node_ref(wide);
    if (st == LOP_OK && !part) st = lop_make1(s->mk, &lop_op_scale, &by, wide, &part);
    if (st == LOP_OK && before) st = lop_make2(s->mk, &lop_op_add, NULL, before, part, out);
    if (st == LOP_OK && !before) *out = lop_node_ref(part);
    lop_node_unref(wide);
    lop_node_unref(part);
    return st;
}

/* w - c (M) V x, M only where the right side was made without it; w may be none. */
static lop_status taken_off(const lop_thin *s, const lop_thin_right *r, const lop_node *x,
                            const lop_node **out) {
    const lop_node *vx = NULL, *mvx = NULL;
    lop_status st = LOP_OK;
    if (s->v) st = lop_make2(s->mk, &lop_op_apply, NULL, s->v, x, &vx);
    if (!s->v) vx = lop_node_ref(x);
    if (st == LOP_OK && s->m && !r->with_mid)
        st = lop_make2(s->mk, &lop_op_apply, NULL, s->m, vx, &mvx);
    if (st == LOP_OK)
        st = add_part(s, r->w, lop_coef_times(s->mk->ctx, lop_coef_const(-1, 0), s->c),
                      mvx ? mvx : vx, out);
    lop_node_unref(vx);
    lop_node_unref(mvx);
    return st;
}

/* p, w and what is left: S p = b B p + c U M V p. */
static lop_status gather(const lop_thin *s, lop_thin_right *r) {
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < r->n; i++) {
        const bool base = r->term[i].base;
        const lop_coef c = r->term[i].c;
        const lop_node **sum = base ? &r->p : &r->w, *more = NULL;
        st = add_part(s, *sum, base ? lop_coef_over(s->mk->ctx, c, s->b) : c, r->term[i].rest,
                      &more);
        if (st != LOP_OK) return st;
        lop_node_unref(*sum);
        *sum = more;
    }
    if (st == LOP_OK && r->p) return taken_off(s, r, r->p, &r->left);
    r->left = lop_node_ref(r->w);
    return st;
}
void lop_thin_drop_right(lop_thin_right *r) {
    lop_node_unref(r->p);
    lop_node_unref(r->w);
    lop_node_unref(r->left);
}

/* -- the solution */

/* b M^-1 + c V B^-1 U. */
static lop_status small_one(const lop_thin *s, const lop_node **out) {
    const lop_node *a = NULL, *first = NULL, *p = NULL, *second = NULL;
    lop_status st = s->minv ? LOP_OK : lop_thin_identity(s->mk, s->rank, &a);
    if (st == LOP_OK) st = lop_thin_multiple(s->mk, s->b, s->minv ? s->minv : a, &first);
    if (st == LOP_OK && s->v) st = lop_make2(s->mk, &lop_op_prod, NULL, s->v, s->binv_u, &p);
    if (st == LOP_OK) st = lop_thin_multiple(s->mk, s->c, p ? p : s->binv_u, &second);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_sum, NULL, first, second, out);
    const lop_node *gone[] = {a, first, p, second};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* The same as an array, by the B^-1 U that is held. */
static lop_status small_value(const lop_thin *s, const lop_node **out) {
    lop_attr d = {.i = {0, 0, 0, (int64_t)s->dt + 1}}, c = lop_coef_attr(s->c);
    const lop_node *eye = NULL, *first = NULL, *a = NULL, *p = NULL, *pc = NULL;
    lop_status st = s->minv ? LOP_OK : lop_thin_identity(s->mk, s->rank, &eye);
    if (st == LOP_OK) st = lop_thin_multiple(s->mk, s->b, s->minv ? s->minv : eye, &first);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_todense, &d, first, &a);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_apply, NULL, s->v, s->w, &p);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_scale, &c, p, &pc);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_add, NULL, a, pc, out);
    const lop_node *gone[] = {eye, first, a, p, pc};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* a^-1 b for the array of an operator: by Cholesky where that may be tried. */
static lop_status solve_dense(const lop_thin *s, const lop_node *op, const lop_node *a,
                              const lop_node *b, const lop_node **out) {
    lop_attr tried = {.i = {1, 0, 0, 0}};
    return lop_infer_hermitian(op) ? lop_make2(s->mk, &lop_op_cholesky_solve, &tried, a, b, out)
                                   : lop_make2(s->mk, &lop_op_lu_solve, NULL, a, b, out);
}

/* small^-1 y. */
static lop_status solve_small(const lop_thin *s, const lop_node *y, const lop_node **out) {
    const lop_node *small = NULL, *value = NULL;
    lop_status st = small_one(s, &small);
    if (st == LOP_OK && (s->eye || !s->half)) {
        st = lop_make2(s->mk, &lop_op_solve, NULL, small, y, out);
    } else if (st == LOP_OK) {
        st = small_value(s, &value);
        if (st == LOP_OK) st = solve_dense(s, small, value, y, out);
    }
    lop_node_unref(small);
    lop_node_unref(value);
    return st;
}

/* B^-1 U y, y = small^-1 w, w M^-1 more where the right side was made without M. */
static lop_status pushed(const lop_thin *s, const lop_node *w, bool with_mid, const lop_node **y,
                         const lop_node **out) {
    const lop_node *rhs = NULL;
    lop_status st = LOP_OK;
    if (s->mid && !with_mid) st = lop_make2(s->mk, &lop_op_apply, NULL, s->minv, w, &rhs);
    if (st == LOP_OK) st = solve_small(s, rhs ? rhs : w, y);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_apply, NULL, s->held, *y, out);
    lop_node_unref(rhs);
    return st;
}

static lop_status directly(const lop_thin *s, const lop_node *b, const lop_node **out) {
    lop_attr d = {.i = {0, 0, 0, (int64_t)s->dt + 1}};
    const lop_node *dense;
    lop_status st = lop_make1(s->mk, &lop_op_todense, &d, s->sum, &dense);
    if (st != LOP_OK) return st;
    st = solve_dense(s, s->sum, dense, b, out);
    lop_node_unref(dense);
    return st;
}

/* The residual of the right side b B p + U (M) w at x + p: U M t - b B x, t = w - c V (x + p), `v`
 * standing for B x where it is not NULL. Where B is an inverse, without such a v this factors what
 * it is the inverse of; multiplied by that it would not see what is lost beside a small M^-1. */
static lop_status residual_of(const lop_thin *s, const lop_node *x, const lop_node *all,
                              const lop_thin_right *m, const lop_node *v, const lop_node **out) {
    lop_attr b = lop_coef_attr(s->b);
    const lop_node *t = NULL, *mt = NULL, *umt = NULL, *base = NULL, *bx = NULL, *bbx = NULL;
    lop_status st = taken_off(s, m, all, &t);
    if (st == LOP_OK && s->m && m->with_mid)
        st = lop_make2(s->mk, &lop_op_apply, NULL, s->m, t, &mt);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_apply, NULL, s->u, mt ? mt : t, &umt);
    if (st == LOP_OK && v) bx = lop_node_ref(v);
    if (st == LOP_OK && !s->eye && !v) st = lop_thin_factor(s, s->base, false, &base);
    if (st == LOP_OK && !s->eye && !v) st = lop_make2(s->mk, &lop_op_apply, NULL, base, x, &bx);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_scale, &b, bx ? bx : x, &bbx);
    if (st == LOP_OK) st = lop_build_minus(s->mk, umt, bbx, out);
    const lop_node *gone[] = {t, mt, umt, base, bx, bbx};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* x + p, or alt: by the residual, with |A| from a probe. |b| is not had: |A| |x + p| alone. */
static lop_status checked(const lop_thin *s, const lop_node *x, const lop_node *all,
                          const lop_thin_right *m, const lop_node *alt, const lop_node **out) {
    lop_check k = {.mk = s->mk, .a = s->sum};
    const lop_node *r = NULL;
    lop_status st = residual_of(s, x, all, m, NULL, &r);
    if (st == LOP_OK) st = lop_check_open(&k, s->dt);
    if (st == LOP_OK) st = lop_check_by(&k, all, r, r, alt, out);
    lop_check_close(&k);
    lop_node_unref(r);
    return st;
}

/* op applied to signs. */
static lop_status of_signs(const lop_thin *s, const lop_node *op, const lop_node **out) {
    lop_node column = {.shape = {.ndim = 2, .dim = {lop_cols(op), 1}}, .dtype = s->dt, .core = 2};
    const lop_node *p;
    lop_status st = lop_make(s->mk, "probe", NULL, 0, NULL, &column, &p);
    if (st != LOP_OK) return st;
    st = lop_make2(s->mk, &lop_op_apply, NULL, op, p, out);
    lop_node_unref(p);
    return st;
}

/* Likewise where B is an inverse, Q^-1, and nothing is negative, M by the numbers `signs` or, where
 * that is NULL, anyway: x = (Q U) y, so that U y stands for Q^-1 x and Q need not be factored. */
static lop_status checked_beside(const lop_thin *s, const lop_node *x, const lop_node *whole,
                                 const lop_node *y, const lop_thin_right *m, const lop_node *signs,
                                 const lop_node *alt, const lop_node **out) {
    const lop_attr b = lop_coef_attr(s->b), told = {.i = {signs != NULL, 0, 0, 0}};
    const lop_node *qx = NULL, *r = NULL, *f = NULL, *g = NULL, *term = NULL, *all = NULL,
                   *bqx = NULL;
    lop_check k = {.mk = s->mk};
    lop_status st = lop_make2(s->mk, &lop_op_apply, NULL, s->u, y, &qx);
    if (st == LOP_OK) st = residual_of(s, x, whole, m, qx, &r);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_scale, &b, qx, &bqx);
    if (st == LOP_OK) st = of_signs(s, s->binv, &f);
    if (st == LOP_OK) st = of_signs(s, s->u, &g);
    if (st == LOP_OK) st = lop_thin_product(s, s->term.f, s->term.n, &term);
    if (st == LOP_OK) st = lop_thin_multiple(s->mk, s->c, term, &all);
    k.a = all;
    if (st == LOP_OK) st = lop_check_open(&k, s->dt);
    const lop_node *child[11] = {whole, x, r, bqx, k.q, k.u, f, g, y, signs ? signs : alt, alt};
    if (st == LOP_OK)
        st = lop_make_op(s->mk, &lop_op_checked_beside, &told, signs ? 11 : 10, child, NULL, out);
    lop_check_close(&k);
    const lop_node *gone[] = {qx, r, f, g, term, all, bqx};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* x + p where S (x + p) is the right side; p may be none. */
static lop_status plus_start(const lop_thin *s, const lop_thin_right *m, const lop_node *x,
                             const lop_node **out) {
    *out = m->p ? NULL : lop_node_ref(x);
    return m->p ? lop_make2(s->mk, &lop_op_add, NULL, m->p, x, out) : LOP_OK;
}

bool lop_thin_beside(const lop_thin *s) {
    return lop_sym_inverse(s->base) && lop_coef_test(s->mk->ctx, s->b, LOP_COEF_POSITIVE) &&
           lop_infer_semidefinite(s->sum);
}
/* The numbers whose signs say so when they are there: of a diagonal M. Owned; NULL: there are none.
 */
static lop_status signs_of(const lop_thin *s, const lop_node **out) {
    const lop_node *m = s->mid ? lop_thin_node(s, s->term.f[s->half]) : NULL;
    *out = NULL;
    while (m && (m->op == &lop_op_view || m->op == &lop_op_inverse)) m = m->child[0];
    if (!m || m->op != &lop_op_diag || !lop_sym_inverse(s->base) ||
        !lop_coef_test(s->mk->ctx, s->b, LOP_COEF_POSITIVE) ||
        !lop_coef_test(s->mk->ctx, s->c, LOP_COEF_POSITIVE) ||
        !lop_infer_semidefinite(lop_thin_node(s, s->base)))
        return LOP_OK;
    return lop_make_diagonal(s->mk, m, out);
}

lop_status lop_thin_push_through(lop_thin *s, const lop_node *rhs, lop_thin_right *m,
                                 const lop_node **out) {
    lop_attr cast = {.i = {1, 0, 0, (int64_t)s->dt + 1}};
    const lop_node *b = NULL, *x = NULL, *y = NULL, *all = NULL, *alt = NULL, *signs = NULL,
                   *factored = NULL;
    const bool beside = lop_thin_beside(s);
    lop_status st = lop_thin_hold(s);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_cast, &cast, rhs, &b);
    if (st == LOP_OK) st = gather(s, m);
    if (st == LOP_OK) st = pushed(s, m->left, m->with_mid, &y, &x);
    if (st == LOP_OK) st = plus_start(s, m, x, &all);
    if (st == LOP_OK) st = directly(s, b, &alt);
    if (st == LOP_OK && !beside) st = signs_of(s, &signs);
    if (st == LOP_OK && !beside) st = checked(s, x, all, m, alt, signs ? &factored : out);
    if (st == LOP_OK && (beside || signs))
        st = checked_beside(s, x, all, y, m, signs, signs ? factored : alt, out);
    const lop_node *gone[] = {b, x, y, all, alt, signs, factored};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* x = B^-1 (b M^-1 + c B^-1)^-1 M^-1 rhs, B and M inverses: neither is formed. The check factors
 * both, which is still a fraction of the inverses. */
static lop_status parallel_factored(const lop_thin *s, const lop_node *b, const lop_node **out) {
    lop_check k = {.mk = s->mk, .a = s->sum};
    const lop_node *x = NULL, *y = NULL, *alt = NULL;
    lop_status st = pushed(s, b, false, &y, &x);
    if (st == LOP_OK) st = lop_check_open(&k, s->dt);
    if (st == LOP_OK) st = directly(s, b, &alt);
    if (st == LOP_OK) st = lop_check_instead(&k, x, b, alt, out);
    lop_check_close(&k);
    const lop_node *gone[] = {x, y, alt};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* x, else alt, where neither matrix is negative: x = B^-1 y, so that y stands for B x, and what is
 * left of the right side is c M e, e = M^-1 t - x, t = (rhs - b y) / c, M no larger than S / c.
 * Neither B^-1 nor M^-1 is factored; products take them to be what solves do. */
static lop_status parallel_checked(const lop_thin *s, const lop_node *b, const lop_node *alt,
                                   const lop_node **out) {
    const lop_attr times = lop_coef_attr(s->b),
                   per = lop_coef_attr(lop_coef_over(s->mk->ctx, lop_coef_const(1, 0), s->c));
    const lop_node *p = NULL, *q = NULL, *pb = NULL, *y = NULL, *x = NULL, *by = NULL, *ct = NULL,
                   *t = NULL, *pt = NULL, *e = NULL, *f = NULL, *g = NULL;
    lop_status st = LOP_OK;
    p = lop_node_ref(s->minv);
    if (st == LOP_OK) q = lop_node_ref(s->binv);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_apply, NULL, p, b, &pb);
    if (st == LOP_OK) st = solve_small(s, pb, &y);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_apply, NULL, q, y, &x);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_scale, &times, y, &by);
    if (st == LOP_OK) st = lop_build_minus(s->mk, b, by, &ct);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_scale, &per, ct, &t);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_apply, NULL, p, t, &pt);
    if (st == LOP_OK) st = lop_build_minus(s->mk, pt, x, &e);
    if (st == LOP_OK) st = of_signs(s, q, &f);
    if (st == LOP_OK) st = of_signs(s, p, &g);
    const lop_node *child[7] = {x, e, y, f, g, t, alt};
    if (st == LOP_OK) st = lop_make_op(s->mk, &lop_op_checked_parallel, NULL, 7, child, NULL, out);
    const lop_node *gone[] = {p, q, pb, y, x, by, ct, t, pt, e, f, g};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* Are both matrices inverses of what may have one, and not negative? Else solves with them say so.
 */
static bool are_precisions(const lop_thin *s) {
    return lop_thin_beside(s) && lop_coef_test(s->mk->ctx, s->c, LOP_COEF_POSITIVE) &&
           lop_infer_regular(s->binv) != LOP_FALSE && lop_infer_regular(s->minv) != LOP_FALSE;
}

lop_status lop_thin_parallel(lop_thin *s, const lop_node *rhs, const lop_node **out) {
    const lop_attr cast = {.i = {1, 0, 0, (int64_t)s->dt + 1}};
    const lop_node *b = NULL, *alt = NULL;
    lop_status st = lop_thin_hold(s);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_cast, &cast, rhs, &b);
    if (st == LOP_OK) st = parallel_factored(s, b, &alt);
    if (st == LOP_OK && are_precisions(s)) {
        st = parallel_checked(s, b, alt, out);
        lop_node_unref(alt);
    } else if (st == LOP_OK) {
        *out = alt;
    }
    lop_node_unref(b);
    return st;
}

/* The same of a right side b B p + M w, where neither matrix is negative: x + p for x = B^-1 y,
 * (b M^-1 + c B^-1) y = w - c p. y stands for B x, and what M^-1 e, e = w - c (x + p) - b M^-1 y,
 * shows is multiplied by M, no larger than S / c: neither matrix is factored. */
lop_status lop_thin_parallel_parts(lop_thin *s, const lop_node *rhs, lop_thin_right *m,
                                   const lop_node **out) {
    const lop_coef ratio = lop_coef_over(s->mk->ctx, s->b, s->c);
    const lop_attr cast = {.i = {1, 0, 0, (int64_t)s->dt + 1}}, over = lop_coef_attr(ratio),
                   per = lop_coef_attr(lop_coef_over(s->mk->ctx, lop_coef_const(1, 0), s->c));
    const lop_node *b = NULL, *x = NULL, *y = NULL, *all = NULL, *alt = NULL, *t = NULL, *my = NULL,
                   *tc = NULL, *e = NULL, *f = NULL, *g = NULL, *rest = NULL, *minv = NULL;
    lop_status st = lop_thin_hold(s);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_cast, &cast, rhs, &b);
    if (st == LOP_OK) st = gather(s, m);
    if (st == LOP_OK) st = pushed(s, m->left, true, &y, &x);
    if (st == LOP_OK) st = plus_start(s, m, x, &all);
    if (st == LOP_OK) st = taken_off(s, m, all, &t);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_scale, &per, t, &tc);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_apply, NULL, s->minv, y, &my);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_scale, &over, my, &rest);
    if (st == LOP_OK) st = lop_build_minus(s->mk, tc, rest, &e);
    if (st == LOP_OK) st = of_signs(s, s->binv, &f);
    if (st == LOP_OK) st = of_signs(s, s->minv, &minv);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_scale, &over, minv, &g);
    if (st == LOP_OK) st = directly(s, b, &alt);
    const lop_node *child[6] = {all, e, y, f, g, alt};
    if (st == LOP_OK) st = lop_make_op(s->mk, &lop_op_checked_parallel, NULL, 6, child, NULL, out);
    const lop_node *gone[] = {b, x, y, all, alt, t, my, tc, e, f, g, rest, minv};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}
