/* solve_woodbury.c: solves with S = b B + c U M V, where B is solved at once (or is an inverse) and
 * U is thin: sums written out, as in ridge regression, factor models and Kalman filters.
 *
 *   S^-1 U M w = B^-1 U (b M^-1 + c V B^-1 U)^-1 w     where the right side is made with U (M)
 *   S^-1 x     by Woodbury, as a LowRankUpdate         where it pays
 *
 * The first holds for any B, U, M, V for which the inverses do (push-through; Henderson and Searle
 * 1981, eq. 17 and on). The backward error is checked, else the dense form is factored. */
#include "builds.h"
#include "planner/chain.h"
#include "rewrite/guards.h"
#include "expr/properties.h"
#include "ops/shared/sparse_solver.h"

#define HOLE(m, c) ((m)->node[(c) - 'a'])

typedef struct update {
    const lop_maker *mk;
    lop_dtype dt;
    lop_chain ch;
    const lop_node *sum; /* borrowed: S */
    lop_sym base;
    lop_coef b, c;
    bool eye; /* B is the identity */
    lop_chterm term;
    int half; /* factors of U */
    bool mid; /* the next one is M */
    int64_t n, rank;
    const lop_node *u, *v, *m, *minv; /* owned; m and minv NULL where there is no M */
    const lop_node *binv_u;           /* owned: B^-1 U, as it is written */
    const lop_node *binv;             /* owned: B^-1; NULL: the identity */
    const lop_node *w, *held;         /* owned: B^-1 U as an array, and as an operator (U for I) */
} update;

/* -- operators of symbols */

/* NULL for a group. */
static const lop_node *node_of(const update *s, lop_sym f) {
    int number = lop_sym_number(f);
    return number < LOP_CH_ATOMS ? s->ch.atom[number].node : NULL;
}

static lop_status make_view(const lop_maker *mk, int mode, const lop_node *a,
                            const lop_node **out) {
    if (a->op == &lop_op_view) { /* one view, not two */
        mode ^= (int)a->attr.i[0];
        a = a->child[0];
    }
    lop_attr view = {.i = {lop_is_complex(a->dtype) ? mode : mode & LOP_T, 0, 0, 0}};
    *out = lop_node_ref(a);
    if (!view.i[0]) return LOP_OK;
    lop_node_unref(a);
    return lop_make1(mk, &lop_op_view, &view, a, out);
}

static lop_status operator_of(const update *s, lop_sym f, bool inverse, const lop_node **out) {
    const lop_node *a;
    lop_status st = make_view(s->mk, lop_sym_mode(f), node_of(s, f), &a);
    if (st != LOP_OK || lop_sym_inverse(f) == inverse) {
        *out = a;
        return st;
    }
    st = lop_make1(s->mk, &lop_op_inverse, NULL, a, out);
    lop_node_unref(a);
    return st;
}

/* The product of factors from..to - 1, nested as they are applied. */
static lop_status product_of(const update *s, const lop_sym *f, int n, const lop_node **out) {
    const lop_node *left, *right;
    lop_status st = operator_of(s, f[n - 1], false, out);
    for (int i = n - 2; i >= 0 && st == LOP_OK; i--) {
        right = *out;
        st = operator_of(s, f[i], false, &left);
        if (st == LOP_OK) {
            st = lop_make2(s->mk, &lop_op_prod, NULL, left, right, out);
            lop_node_unref(left);
        }
        lop_node_unref(right);
    }
    if (st != LOP_OK) *out = NULL;
    return st;
}

static lop_status multiple(const lop_maker *mk, lop_coef c, const lop_node *a,
                           const lop_node **out) {
    lop_attr by = lop_coef_attr(c);
    *out = lop_node_ref(a);
    if (lop_coef_test(mk->ctx, c, LOP_COEF_ONE)) return LOP_OK;
    lop_node_unref(a);
    return lop_make1(mk, &lop_op_scaled, &by, a, out);
}

/* The identity of size n, which adopts the dtype of what it meets. */
static lop_status identity(const lop_maker *mk, int64_t n, const lop_node **out) {
    lop_node like = {
        .shape = {.ndim = 2, .dim = {n, n}}, .dtype = LOP_f64, .weak = LOP_WEAK, .core = 2};
    return lop_make(mk, "identity", NULL, 0, NULL, &like, out);
}

/* -- reading */

static bool is_base(update *s, const lop_chterm *t) {
    const lop_node *a = t->n == 1 ? node_of(s, t->f[0]) : NULL;
    if (!a || t->c.im != 0 || lop_coef_test(s->mk->ctx, t->c, LOP_COEF_ZERO)) return false;
    if (!lop_sym_inverse(t->f[0]) && !lop_cheap_to_solve(a)) return false;
    s->base = t->f[0];
    s->b = t->c;
    s->eye = a->op == &lop_op_identity;
    return true;
}

static bool mirror(const update *s, lop_sym a, lop_sym b) {
    return lop_chain_seen(&s->ch, &s->ch.state, b, LOP_H) == a;
}

/* Splits the term where it is thinnest: U and V, with one factor M between them where the term
 * reads the same from both ends and M is inverted at once. */
static bool split(update *s, const lop_chterm *t) {
    const lop_chstate *st = &s->ch.state;
    s->term = *t;
    s->c = t->c;
    s->mid = false;
    s->rank = -1;
    s->half = 0;
    if (t->c.im != 0) return false;
    if (t->n == 1 && node_of(s, t->f[0]) && lop_sym_inverse(t->f[0]) && lop_sym_inverse(s->base)) {
        s->rank = s->n; /* b B + c M, both inverses: U and V are the identity */
        s->mid = true;
        return true;
    }
    if (t->n < 2) return false;
    for (int i = 0; i < t->n; i++)
        if (!node_of(s, t->f[i])) return false;
    for (int k = 1; k < t->n; k++) {
        int64_t inner = lop_chain_rows(&s->ch, st, t->f[k]);
        if (s->rank < 0 || inner < s->rank) {
            s->rank = inner;
            s->half = k;
        }
    }
    int h = t->n / 2, i = 0;
    if (t->n % 2 == 0 || lop_chain_rows(&s->ch, st, t->f[h]) != s->rank ||
        lop_chain_cols(&s->ch, st, t->f[h]) != s->rank)
        return true;
    while (i < h && mirror(s, t->f[i], t->f[t->n - 1 - i])) i++;
    const lop_node *m = node_of(s, t->f[h]);
    if (i < h || (!lop_sym_inverse(t->f[h]) && !lop_cheap_to_solve(m))) return true;
    s->half = h;
    s->mid = true;
    return true;
}

/* S as base and update; false: it is no such sum. */
static bool read_update(update *s, const lop_maker *mk, lop_dtype dt, const lop_node *sum) {
    *s = (update){.mk = mk, .dt = dt, .sum = sum, .n = lop_rows(sum)};
    if (lop_nbatch(sum) > 0 || !lop_chain_read(&s->ch, mk->ctx, dt, sum, NULL)) return false;
    lop_chain_tidy(&s->ch, &s->ch.state);
    const lop_chgroup *g = &s->ch.state.group[0];
    if (g->n != 2) return false;
    const lop_chterm *t = s->ch.state.term;
    int one = is_base(s, &t[g->term[0]]) ? 0 : is_base(s, &t[g->term[1]]) ? 1 : -1;
    return one >= 0 && split(s, &t[g->term[1 - one]]) && s->rank > 0;
}

static lop_status open(update *s) {
    const lop_sym *f = s->term.f;
    int rest = s->half + s->mid;
    lop_status st = s->half ? product_of(s, f, s->half, &s->u) : LOP_OK;
    if (st == LOP_OK && s->half) st = product_of(s, f + rest, s->term.n - rest, &s->v);
    if (st == LOP_OK && s->mid) st = operator_of(s, f[s->half], false, &s->m);
    if (st == LOP_OK && s->mid) st = operator_of(s, f[s->half], true, &s->minv);
    if (st == LOP_OK && !s->eye) st = operator_of(s, s->base, true, &s->binv);
    if (st != LOP_OK) return st;
    if (s->eye || !s->half)
        s->binv_u = lop_node_ref(s->eye ? s->u : s->binv);
    else
        st = lop_make2(s->mk, &lop_op_prod, NULL, s->binv, s->u, &s->binv_u);
    return st;
}

/* B^-1 U computed once, for all that uses it. */
static lop_status hold(update *s) {
    lop_attr d = {.i = {0, 0, 0, (int64_t)s->dt + 1}};
    if (s->eye || !s->half) {
        s->held = lop_node_ref(s->binv_u);
        return LOP_OK;
    }
    lop_status st = lop_make1(s->mk, &lop_op_todense, &d, s->binv_u, &s->w);
    return st == LOP_OK ? lop_make1(s->mk, &lop_op_dense, NULL, s->w, &s->held) : st;
}

static void close(update *s) {
    const lop_node *gone[] = {s->u, s->v, s->m, s->minv, s->binv, s->binv_u, s->w, s->held};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
}

/* -- push-through */

/* Is x = U (M) w, as the planner writes it? Then w, borrowed, and whether M was there. */
static const lop_node *made_with_u(update *s, const lop_node *x, bool *with_mid) {
    lop_chterm t = {.c = {.re = 1}};
    while (x->op == &lop_op_apply || x->op == &lop_op_solve) {
        if (!lop_chain_term(&s->ch, x->child[0], x->op == &lop_op_solve, &t) ||
            t.n > s->half + s->mid || !lop_coef_test(s->mk->ctx, t.c, LOP_COEF_ONE))
            return NULL;
        for (int i = 0; i < t.n; i++)
            if (t.f[i] != s->term.f[i]) return NULL;
        x = x->child[1];
        bool more = x->op == &lop_op_apply || x->op == &lop_op_solve;
        *with_mid = t.n > s->half;
        if (t.n == s->half + s->mid || (t.n == s->half && !more)) return x;
    }
    return NULL;
}

/* b M^-1 + c V B^-1 U. */
static lop_status small_one(const update *s, const lop_node **out) {
    const lop_node *a = NULL, *first = NULL, *p = NULL, *second = NULL;
    lop_status st = s->minv ? LOP_OK : identity(s->mk, s->rank, &a);
    if (st == LOP_OK) st = multiple(s->mk, s->b, s->minv ? s->minv : a, &first);
    if (st == LOP_OK && s->v) st = lop_make2(s->mk, &lop_op_prod, NULL, s->v, s->binv_u, &p);
    if (st == LOP_OK) st = multiple(s->mk, s->c, p ? p : s->binv_u, &second);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_sum, NULL, first, second, out);
    const lop_node *gone[] = {a, first, p, second};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* The same as an array, by the B^-1 U that is held. */
static lop_status small_value(const update *s, const lop_node **out) {
    lop_attr d = {.i = {0, 0, 0, (int64_t)s->dt + 1}}, c = lop_coef_attr(s->c);
    const lop_node *eye = NULL, *first = NULL, *a = NULL, *p = NULL, *pc = NULL;
    lop_status st = s->minv ? LOP_OK : identity(s->mk, s->rank, &eye);
    if (st == LOP_OK) st = multiple(s->mk, s->b, s->minv ? s->minv : eye, &first);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_todense, &d, first, &a);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_apply, NULL, s->v, s->w, &p);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_scale, &c, p, &pc);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_add, NULL, a, pc, out);
    const lop_node *gone[] = {eye, first, a, p, pc};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* a^-1 b for the array of an operator: by Cholesky where that may be tried. */
static lop_status solve_dense(const update *s, const lop_node *op, const lop_node *a,
                              const lop_node *b, const lop_node **out) {
    lop_attr tried = {.i = {1, 0, 0, 0}};
    return lop_infer_hermitian(op) ? lop_make2(s->mk, &lop_op_cholesky_solve, &tried, a, b, out)
                                   : lop_make2(s->mk, &lop_op_lu_solve, NULL, a, b, out);
}

/* small^-1 y. */
static lop_status solve_small(const update *s, const lop_node *y, const lop_node **out) {
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
static lop_status pushed(const update *s, const lop_node *w, bool with_mid, const lop_node **y,
                         const lop_node **out) {
    const lop_node *rhs = NULL;
    lop_status st = LOP_OK;
    if (s->mid && !with_mid) st = lop_make2(s->mk, &lop_op_apply, NULL, s->minv, w, &rhs);
    if (st == LOP_OK) st = solve_small(s, rhs ? rhs : w, y);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_apply, NULL, s->held, *y, out);
    lop_node_unref(rhs);
    return st;
}

static lop_status directly(const update *s, const lop_node *b, const lop_node **out) {
    lop_attr d = {.i = {0, 0, 0, (int64_t)s->dt + 1}};
    const lop_node *dense;
    lop_status st = lop_make1(s->mk, &lop_op_todense, &d, s->sum, &dense);
    if (st != LOP_OK) return st;
    st = solve_dense(s, s->sum, dense, b, out);
    lop_node_unref(dense);
    return st;
}

/* t = w - c (M) V x, M only where the right side was made without it. */
static lop_status inner_residual(const update *s, const lop_node *x, const lop_node *w,
                                 bool with_mid, const lop_node **out) {
    lop_attr c = lop_coef_attr(s->c);
    const lop_node *vx = NULL, *mvx = NULL, *cvx = NULL;
    bool mid = s->m && !with_mid;
    lop_status st = lop_make2(s->mk, &lop_op_apply, NULL, s->v, x, &vx);
    if (st == LOP_OK && mid) st = lop_make2(s->mk, &lop_op_apply, NULL, s->m, vx, &mvx);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_scale, &c, mid ? mvx : vx, &cvx);
    if (st == LOP_OK) st = lop_build_minus(s->mk, w, cvx, out);
    const lop_node *gone[] = {vx, mvx, cvx};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* The residual of S x = U M w: U M t - b B x, `v` standing for B x where it is not NULL. Where B is
 * an inverse, without such a v this factors what it is the inverse of; multiplied by that it would
 * not see what is lost beside a small M^-1. */
static lop_status residual_of(const update *s, const lop_node *x, const lop_node *w, bool with_mid,
                              const lop_node *v, const lop_node **out) {
    lop_attr b = lop_coef_attr(s->b);
    const lop_node *t = NULL, *mt = NULL, *umt = NULL, *base = NULL, *bx = NULL, *bbx = NULL;
    lop_status st = inner_residual(s, x, w, with_mid, &t);
    if (st == LOP_OK && s->m && with_mid) st = lop_make2(s->mk, &lop_op_apply, NULL, s->m, t, &mt);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_apply, NULL, s->u, mt ? mt : t, &umt);
    if (st == LOP_OK && v) bx = lop_node_ref(v);
    if (st == LOP_OK && !s->eye && !v) st = operator_of(s, s->base, false, &base);
    if (st == LOP_OK && !s->eye && !v) st = lop_make2(s->mk, &lop_op_apply, NULL, base, x, &bx);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_scale, &b, bx ? bx : x, &bbx);
    if (st == LOP_OK) st = lop_build_minus(s->mk, umt, bbx, out);
    const lop_node *gone[] = {t, mt, umt, base, bx, bbx};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* x, or alt: by the residual, with |A| from a probe. |b| is not had: |A| |x| alone. */
static lop_status checked(const update *s, const lop_node *x, const lop_node *w, bool with_mid,
                          const lop_node *alt, const lop_node **out) {
    lop_check k = {.mk = s->mk, .a = s->sum};
    const lop_node *r = NULL;
    lop_status st = residual_of(s, x, w, with_mid, NULL, &r);
    if (st == LOP_OK) st = lop_check_open(&k, s->dt);
    if (st == LOP_OK) st = lop_check_by(&k, x, r, r, alt, out);
    lop_check_close(&k);
    lop_node_unref(r);
    return st;
}

/* op applied to signs. */
static lop_status of_signs(const update *s, const lop_node *op, const lop_node **out) {
    lop_node column = {.shape = {.ndim = 2, .dim = {lop_cols(op), 1}}, .dtype = s->dt, .core = 2};
    const lop_node *p;
    lop_status st = lop_make(s->mk, "probe", NULL, 0, NULL, &column, &p);
    if (st != LOP_OK) return st;
    st = lop_make2(s->mk, &lop_op_apply, NULL, op, p, out);
    lop_node_unref(p);
    return st;
}

/* Likewise where B is an inverse, Q^-1, and nothing is negative: x = (Q U) y, so that U y stands
 * for Q^-1 x and Q need not be factored. */
static lop_status checked_beside(const update *s, const lop_node *x, const lop_node *y,
                                 const lop_node *w, bool with_mid, const lop_node *alt,
                                 const lop_node **out) {
    const lop_node *qx = NULL, *r = NULL, *f = NULL, *g = NULL, *term = NULL, *all = NULL;
    lop_attr beside = {.i = {1, 0, 0, 0}};
    lop_check k = {.mk = s->mk};
    lop_status st = lop_make2(s->mk, &lop_op_apply, NULL, s->u, y, &qx);
    if (st == LOP_OK) st = residual_of(s, x, w, with_mid, qx, &r);
    if (st == LOP_OK) st = of_signs(s, s->binv, &f);
    if (st == LOP_OK) st = of_signs(s, s->u, &g);
    if (st == LOP_OK) st = product_of(s, s->term.f, s->term.n, &term);
    if (st == LOP_OK) st = multiple(s->mk, s->c, term, &all);
    k.a = all;
    if (st == LOP_OK) st = lop_check_open(&k, s->dt);
    const lop_node *child[9] = {x, r, qx, k.q, k.u, f, g, y, alt};
    if (st == LOP_OK) st = lop_make(s->mk, "checked", &beside, 9, child, NULL, out);
    lop_check_close(&k);
    const lop_node *gone[] = {qx, r, f, g, term, all};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

static lop_status push_through(update *s, const lop_node *rhs, const lop_node *w, bool with_mid,
                               const lop_node **out) {
    lop_attr cast = {.i = {1, 0, 0, (int64_t)s->dt + 1}};
    const lop_node *b = NULL, *wide = NULL, *x = NULL, *y = NULL, *alt = NULL;
    bool beside = lop_sym_inverse(s->base) && lop_coef_test(s->mk->ctx, s->b, LOP_COEF_ONE) &&
                  lop_infer_semidefinite(s->sum);
    lop_status st = hold(s);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_cast, &cast, rhs, &b);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_cast, &cast, w, &wide);
    if (st == LOP_OK) st = pushed(s, wide, with_mid, &y, &x);
    if (st == LOP_OK) st = directly(s, b, &alt);
    if (st == LOP_OK)
        st = beside ? checked_beside(s, x, y, wide, with_mid, alt, out)
                    : checked(s, x, wide, with_mid, alt, out);
    const lop_node *gone[] = {b, wide, x, y, alt};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* -- Woodbury */

static bool pays(const update *s, int64_t k) {
    const lop_costs *table = lop_costs_of(s->mk->ctx);
    lop_price direct = lop_price_gemm(table, s->dt, s->n, s->n, s->rank, 0.5),
              factor = lop_price_gemm(table, s->dt, s->n, s->n, s->n, 1.0 / 6),
              small = lop_price_gemm(table, s->dt, s->rank, s->rank, s->n + s->rank / 3, 1),
              thin = lop_price_gemm(table, s->dt, s->n, k, s->rank, 5);
    return s->rank <= s->n / 2 &&
           small.seconds + thin.seconds + 40 * table->overhead < direct.seconds + factor.seconds;
}

/* B^-1 U and the factor that it takes. */
static double price_of_base(const update *s) {
    const lop_costs *table = lop_costs_of(s->mk->ctx);
    const lop_node *base = node_of(s, s->base);
    if (s->eye || !base) return 0;
    if (!lop_sparse_pays(base)) return lop_price_apply(table, s->dt, base, s->rank, 1).seconds;
    return lop_price_factor(table, s->dt, base, 1).seconds +
           lop_price_solve(table, s->dt, base, s->rank, 1).seconds;
}

/* Is S, with its update written out, a narrow band or sparse, and sooner factored as that? */
static bool better_whole(const update *s, int64_t k) {
    const lop_costs *table = lop_costs_of(s->mk->ctx);
    const lop_band b = lop_infer_bands(s->sum);
    const lop_price small = lop_price_gemm(table, s->dt, s->rank, s->rank, s->n + s->rank / 3, 1),
                    thin = lop_price_gemm(table, s->dt, s->n, k, s->rank, 5);
    const double updated = small.seconds + thin.seconds + price_of_base(s);
    double whole;
    if (lop_band_is_narrow(s->sum, b)) {
        const double diagonals = (double)(b.l + b.u + 1), n = (double)s->n;
        whole = lop_price_pass(table, s->dt, n * diagonals * (double)(b.l + 1 + k), 1).seconds;
    } else if (lop_sparse_pays(s->sum)) {
        whole = lop_price_factor(table, s->dt, s->sum, 1).seconds +
                lop_price_solve(table, s->dt, s->sum, k, 1).seconds;
    } else {
        return false;
    }
    return whole < updated + 40 * table->overhead;
}

/* S as a LowRankUpdate. */
static lop_status as_update(const update *s, const lop_node **out) {
    const lop_node *base = NULL, *vh = NULL, *mid = NULL, *eye = NULL, *seen = NULL;
    lop_status st = make_view(s->mk, lop_sym_mode(s->base), node_of(s, s->base), &seen);
    if (st == LOP_OK) st = multiple(s->mk, s->b, seen, &base);
    bool same = s->term.n == 2 * s->half + s->mid;
    for (int i = 0; same && i < s->half; i++)
        same = mirror(s, s->term.f[i], s->term.f[s->term.n - 1 - i]);
    if (st == LOP_OK && !same) st = make_view(s->mk, LOP_H, s->v, &vh);
    if (st == LOP_OK && !s->m && !lop_coef_test(s->mk->ctx, s->c, LOP_COEF_ONE))
        st = identity(s->mk, s->rank, &eye);
    if (st == LOP_OK && (s->m || eye)) st = multiple(s->mk, s->c, s->m ? s->m : eye, &mid);
    if (st == LOP_OK) {
        const lop_node *child[4] = {base, s->u, same ? s->u : vh, mid};
        st = lop_make(s->mk, "lowrankupdate", NULL, mid ? 4 : 3, child, NULL, out);
    }
    const lop_node *gone[] = {seen, base, vh, mid, eye};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

static lop_status woodbury(const update *s, const lop_node *x, const lop_node **out) {
    const lop_node *all;
    lop_status st = as_update(s, &all);
    if (st != LOP_OK) return st;
    st = lop_make2(s->mk, &lop_op_solve, NULL, all, x, out);
    lop_node_unref(all);
    return st;
}

/* (b B + c M)^-1 x = B^-1 (b M^-1 + c B^-1)^-1 M^-1 x, B and M inverses: neither is formed. The
 * check factors both, which is still a fraction of the inverses. */
static lop_status parallel_sum(update *s, const lop_node *rhs, const lop_node **out) {
    lop_check k = {.mk = s->mk, .a = s->sum};
    lop_attr cast = {.i = {1, 0, 0, (int64_t)s->dt + 1}};
    const lop_node *b = NULL, *x = NULL, *y = NULL, *alt = NULL;
    lop_status st = hold(s);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_cast, &cast, rhs, &b);
    if (st == LOP_OK) st = pushed(s, b, false, &y, &x);
    if (st == LOP_OK) st = lop_check_open(&k, s->dt);
    if (st == LOP_OK) st = directly(s, b, &alt);
    if (st == LOP_OK) st = lop_check_instead(&k, x, b, alt, out);
    lop_check_close(&k);
    const lop_node *gone[] = {b, x, y, alt};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

LOP_BUILD(solve_thin_sum) {
    update s;
    const lop_node *x = m->root->child[1];
    bool with_mid = false;
    if (!read_update(&s, mk, m->root->dtype, m->root->child[0])) return LOP_NOMATCH;
    if (s.half && !lop_sym_inverse(s.base) && better_whole(&s, lop_cols(x))) return LOP_NOMATCH;
    const lop_node *w = s.half && s.rank < s.n ? made_with_u(&s, x, &with_mid) : NULL;
    bool base_solved = !lop_sym_inverse(s.base);
    if (s.half && !w && !(base_solved && pays(&s, lop_cols(x)))) return LOP_NOMATCH;
    lop_status st = open(&s);
    if (st == LOP_OK)
        st = !s.half ? parallel_sum(&s, x, out)
             : w     ? push_through(&s, x, w, with_mid, out)
                     : woodbury(&s, x, out);
    close(&s);
    return st;
}

LOP_BUILD(det_thin_sum) {
    update s;
    const lop_node *all = NULL, *sum = m->root->child[0];
    if (!read_update(&s, mk, sum->dtype, sum) || !s.half || lop_sym_inverse(s.base) ||
        !pays(&s, 1) || better_whole(&s, 1))
        return LOP_NOMATCH;
    lop_status st = open(&s);
    if (st == LOP_OK) st = as_update(&s, &all);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scaledet, &m->root->attr, all, out);
    lop_node_unref(all);
    close(&s);
    return st;
}

/* The diagonal of the inverse likewise. */
LOP_BUILD(inverse_diagonal_thin_sum) {
    update s;
    const lop_node *all = NULL, *inverse = NULL, *sum = m->root->child[0]->child[0];
    if (!read_update(&s, mk, m->root->dtype, sum) || !s.half || lop_sym_inverse(s.base) ||
        !pays(&s, s.rank))
        return LOP_NOMATCH;
    lop_status st = open(&s);
    if (st == LOP_OK) st = as_update(&s, &all);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_inverse, NULL, all, &inverse);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_diagonal, &m->root->attr, inverse, out);
    lop_node_unref(all);
    lop_node_unref(inverse);
    close(&s);
    return st;
}
