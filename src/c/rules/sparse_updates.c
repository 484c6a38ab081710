/* sparse_updates.c: A = E + c U M^-1 V^H of a diagonal E, where M and
 *
 *   H = M + c V^H E^-1 U
 *
 * are sparse, or solved with at once by how they are built: a field that its precision M describes,
 * seen through a sparse U (or as it is) with noise E. U may be wide, so that A is a matrix of fewer
 * rows than M; nothing of A's size that is dense is made. Where U = V = I, M may also be an update
 * of such a matrix by few columns, B + W C Z^H, and H = (B + c E^-1) + W C Z^H is another; or any,
 * and both are factored: as written M^-1 is formed and factored too.
 *
 *   x = E^-1 (b - c U H^-1 V^H E^-1 b)       U = V = I: x = M H^-1 E^-1 b
 *     Refined once, as E^-1 may be much larger than A^-1, in all rows or in some: then each row is
 *     as accurate as its residual (Skeel 1980). Checked by A itself, else by the dense form.
 *   diag(A^-1) = d t,  t = 1 - c d diag(U H^-1 V^H),  d the diagonal of E^-1
 *     Accepted where a probe is solved with by the same H, and |d| <= 10 n |A^-1|, as an update's
 *     is (op_checked_or_fallback.c), and no t_i is less than 1e-4, so that each has lost four
 *     digits at most; else by the dense form.
 *   det A = det E det H / det M, accepted as op_checked_quotient.c says
 *
 * Of few rows the dense form is as cheap: each takes a solve with M. */
#include "expr/properties.h"
#include "low_rank_woodbury.h"
#include "ops/shared/sparse_solver.h"
#include "rewrite/cheap_to_solve.h"
#include "rewrite/guards.h"
#include "sparse_updates.h"
#include "thin_sum.h"

enum { TERMS = 8, FEWEST = 64, DEEP = 16, MANY = 16 };

void lop_seen_close(lop_seen *s) {
    const lop_node *gone[] = {s->u, s->vh, s->e, s->over, s->h, s->x, s->own};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
}

bool lop_is_noise(const lop_node *a) {
    lop_coef c = lop_coef_const(1, 0);
    a = lop_peeled(a, &c);
    return a->op == &lop_op_diag || a->op == &lop_op_identity;
}
bool lop_noise_is_exact(const lop_node *e, const lop_node *sum) {
    return lop_promote(e->dtype, sum->dtype) == sum->dtype &&
           (e->weak || lop_dtype_real(e->dtype) == lop_dtype_real(sum->dtype));
}
static bool is_quick(const lop_node *a) { return lop_sparse_pays(a) || lop_cheap_to_solve(a); }

/* Sets M, of a `plain` M^-1 as an update where it is one; else that stays as it is: factors of M
 * and H are less work than the inverse that is written. NOMATCH: it is not solved with at once. */
static lop_status read_inner(lop_seen *s, const lop_node *m, bool plain) {
    if (m->dtype != s->sum->dtype || lop_nbatch(m) > 0 || lop_infer_regular(m) == LOP_FALSE)
        return LOP_NOMATCH;
    s->m = m;
    if (is_quick(m)) return LOP_OK;
    if (!plain) return LOP_NOMATCH;
    lop_status st = lop_woodbury_of_sum(s->mk, m->dtype, m, &s->own);
    if (st == LOP_NOMATCH) st = lop_settled_update(s->mk, m, &s->own);
    if (st == LOP_OK && (s->own->dtype != m->dtype || !is_quick(s->own->child[0])))
        st = LOP_NOMATCH;
    if (st == LOP_OK) s->m = s->own;
    return st == LOP_NOMATCH && !s->own ? LOP_OK : st;
}

/* c U M^-1 V^H? NOMATCH: it is none. */
static lop_status read_far(lop_seen *s, const lop_node *term) {
    const lop_node *f[LOP_FACTORS];
    lop_coef c = lop_coef_const(1, 0);
    const int n = lop_factors_times(term, f, &c);
    int at = -1;
    for (int i = 0; i < n; i++) {
        if (f[i]->op == &lop_op_inverse) {
            if (at >= 0) return LOP_NOMATCH;
            at = i;
        } else if (lop_sparse_entries(f[i]) < 0) {
            return LOP_NOMATCH;
        }
    }
    if (at < 0 || (at == 0) != (at == n - 1)) return LOP_NOMATCH;
    s->c = c;
    lop_status st = read_inner(s, f[at]->child[0], n == 1);
    if (st != LOP_OK || n == 1) return st;
    st = lop_product_of(s->mk, f, at, &s->u);
    return st == LOP_OK ? lop_product_of(s->mk, f + at + 1, n - at - 1, &s->vh) : st;
}

lop_status lop_noise_inverse(const lop_maker *mk, const lop_node *e, const lop_node **out) {
    const lop_coef one = lop_coef_const(1, 0);
    const lop_node *over = NULL, *in = NULL;
    lop_coef c = one;
    const lop_node *own = lop_peeled(e, &c);
    if (!lop_coef_test(mk->ctx, c, LOP_COEF_NEAR)) return LOP_NOMATCH;
    const bool eye = own->op == &lop_op_identity;
    lop_status st = eye ? lop_thin_identity(mk, lop_rows(own), &in)
                        : lop_make1(mk, &lop_op_recip, NULL, own->child[0], &over);
    if (st == LOP_OK && !eye) st = lop_make1(mk, &lop_op_diag, NULL, over, &in);
    if (st == LOP_OK) st = lop_thin_multiple(mk, lop_coef_over(mk->ctx, one, c), in, out);
    lop_node_unref(over);
    lop_node_unref(in);
    return st;
}

/* M + a, of one kind where that closes; of an update its base changes. NOMATCH: it is neither
 * solved with at once nor plain. */
static lop_status inner_plus(lop_seen *s, const lop_node *a, const lop_node **out) {
    const lop_node *base = NULL, *child[4];
    lop_status st = lop_sum_closed(s->mk, s->own ? s->own->child[0] : s->m, a, &base);
    s->factored = !s->own && st == LOP_OK && !is_quick(base);
    if (s->factored && (s->vh || lop_holds_inverse(s->m, DEEP))) st = LOP_NOMATCH;
    if (s->own && st == LOP_OK && !is_quick(base)) st = LOP_NOMATCH;
    if (st == LOP_OK && s->own) {
        child[0] = base;
        for (int i = 1; i < s->own->n; i++) child[i] = s->own->child[i];
        st = lop_make_op(s->mk, &lop_op_lowrankupdate, NULL, s->own->n, child, NULL, out);
    } else if (st == LOP_OK) {
        *out = lop_node_ref(base);
    }
    lop_node_unref(base);
    return st;
}

/* H, of one kind where that closes. */
static lop_status make_inner(lop_seen *s) {
    const lop_node *in = NULL, *right = NULL, *times = NULL;
    s->with = s->c;
    lop_status st = lop_noise_inverse(s->mk, s->e, &s->over);
    if (st == LOP_OK) in = lop_peeled(s->over, &s->with);
    const bool eye = in && in->op == &lop_op_identity;
    if (st == LOP_OK && s->u)
        st = eye ? (right = lop_node_ref(s->u), LOP_OK)
                 : lop_make2(s->mk, &lop_op_prod, NULL, in, s->u, &right);
    if (st == LOP_OK)
        st = s->vh ? lop_make2(s->mk, &lop_op_prod, NULL, s->vh, right ? right : in, &s->x)
                   : (s->x = lop_node_ref(right ? right : in), LOP_OK);
    if (st == LOP_OK) st = lop_thin_multiple(s->mk, s->with, s->x, &times);
    if (st == LOP_OK) st = inner_plus(s, times, &s->h);
    lop_node_unref(right);
    lop_node_unref(times);
    if (st == LOP_OK && s->h->dtype != s->sum->dtype) st = LOP_NOMATCH;
    return st;
}

lop_status lop_seen_read(const lop_maker *mk, const lop_node *sum, lop_dtype dt, lop_seen *s) {
    const lop_node *term[TERMS];
    *s = (lop_seen){.mk = mk, .sum = sum};
    const lop_sparse *outside = mk->ctx->sparse;
    const int64_t fewest = outside && outside->fewest ? outside->fewest : FEWEST;
    const int n = sum->op == &lop_op_sum ? lop_terms_of(sum, term, TERMS) : 0;
    if (n < 2 || lop_nbatch(sum) > 0 || !lop_is_blas(sum->dtype) || sum->dtype != dt ||
        lop_rows(sum) < fewest)
        return LOP_NOMATCH;
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < n; i++)
        st = lop_is_noise(term[i]) ? lop_plus(mk, term[i], &s->e)
             : s->m                ? LOP_NOMATCH
                                   : read_far(s, term[i]);
    if (st == LOP_OK && (!s->m || !s->e || !lop_is_noise(s->e) || !lop_noise_is_exact(s->e, sum) ||
                         !lop_coef_test(mk->ctx, s->c, LOP_COEF_NEAR)))
        st = LOP_NOMATCH;
    return st == LOP_OK ? make_inner(s) : st;
}

lop_status lop_seen_solution(const void *of, const lop_node *b, const lop_node **out) {
    const lop_seen *s = of;
    const lop_maker *mk = s->mk;
    const lop_attr minus = lop_coef_attr(lop_coef_times(mk->ctx, lop_coef_const(-1, 0), s->c));
    const lop_node *t = NULL, *g = NULL, *z = NULL, *uz = NULL, *less = NULL, *y = NULL;
    lop_status st = lop_make2(mk, &lop_op_solve, NULL, s->e, b, &t);
    if (st == LOP_OK && s->vh) st = lop_make2(mk, &lop_op_apply, NULL, s->vh, t, &g);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_solve, NULL, s->h, g ? g : t, &z);
    if (st == LOP_OK && !s->u) st = lop_make2(mk, &lop_op_apply, NULL, s->m, z, out);
    if (st == LOP_OK && s->u) {
        st = lop_make2(mk, &lop_op_apply, NULL, s->u, z, &uz);
        if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &minus, uz, &less);
        if (st == LOP_OK) st = lop_make2(mk, &lop_op_add, NULL, b, less, &y);
        if (st == LOP_OK) st = lop_make2(mk, &lop_op_solve, NULL, s->e, y, out);
    }
    const lop_node *gone[] = {t, g, z, uz, less, y};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

LOP_BUILD(solve_sparse_update) {
    const lop_node *sum = m->root->child[0], *b = NULL, *x = NULL, *r = NULL, *more = NULL,
                   *again = NULL;
    const lop_attr cast = {.i = {1, 0, 0, (int64_t)sum->dtype + 1}};
    lop_seen s;
    const lop_check k = {.mk = mk, .a = sum};
    lop_status st = lop_seen_read(mk, sum, m->root->dtype, &s);
    if (st == LOP_OK && s.factored && MANY * lop_cols(m->root->child[1]) > lop_rows(sum))
        st = LOP_NOMATCH;
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_cast, &cast, m->root->child[1], &b);
    if (st == LOP_OK) st = lop_seen_solution(&s, b, &x);
    if (st == LOP_OK) st = lop_check_residual(&k, x, b, &r);
    if (st == LOP_OK) st = lop_seen_solution(&s, r, &more);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_add, NULL, x, more, &again);
    if (st == LOP_OK) st = lop_check_or_dense(mk, sum, again, b, out);
    const lop_node *gone[] = {b, x, r, more, again};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    lop_seen_close(&s);
    return st;
}

/* d t and t = 1 - c d diag(U H^-1 V^H). */
static lop_status diagonal_of(const lop_seen *s, const lop_node *root, const lop_node **t,
                              const lop_node **out) {
    const lop_maker *mk = s->mk;
    const lop_attr by = lop_coef_attr(s->c), k = {.i = {0, 0, 0, (int64_t)root->dtype + 1}};
    const lop_node *in = NULL, *right = NULL, *all = NULL, *x = NULL, *d = NULL, *dx = NULL,
                   *less = NULL, *ones = NULL;
    const lop_node like = {
        .shape = {.ndim = 1, .dim = {lop_rows(s->sum)}}, .dtype = root->dtype, .core = 1};
    lop_status st = lop_inverse_closed(mk, s->h, &in);
    if (st == LOP_OK && s->vh) st = lop_make2(mk, &lop_op_prod, NULL, in, s->vh, &right);
    if (st == LOP_OK)
        st = s->u ? lop_make2(mk, &lop_op_prod, NULL, s->u, right ? right : in, &all)
                  : (all = lop_node_ref(right ? right : in), LOP_OK);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_diagonal, &k, all, &x);
    if (st == LOP_OK) st = lop_make_diagonal(mk, s->over, &d);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_mul, NULL, d, x, &dx);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &by, dx, &less);
    if (st == LOP_OK) st = lop_make(mk, "ones", NULL, 0, NULL, &like, &ones);
    if (st == LOP_OK) st = lop_build_minus(mk, ones, less, t);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_mul, NULL, d, *t, out);
    const lop_node *gone[] = {in, right, all, x, d, dx, less, ones};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

lop_status lop_noise_checked(const lop_noise_check *n, const lop_node *value, const lop_node *alt,
                             const lop_node **out) {
    lop_check k = {.mk = n->mk, .a = n->sum};
    const lop_node *x = NULL, *r = NULL, *w = NULL;
    lop_status st = lop_check_open(&k, n->sum->dtype);
    if (st == LOP_OK) st = n->solution(n->of, k.v, &x);
    if (st == LOP_OK) st = lop_check_residual(&k, x, k.v, &r);
    if (st == LOP_OK) st = lop_make2(n->mk, &lop_op_solve, NULL, n->e, k.v, &w);
    const lop_node *child[9] = {value, x, r, k.v, k.q, k.u, w, k.v, alt};
    if (st == LOP_OK) st = lop_make_op(n->mk, &lop_op_checked_value, NULL, 9, child, NULL, out);
    lop_check_close(&k);
    lop_node_unref(x);
    lop_node_unref(r);
    lop_node_unref(w);
    return st;
}

LOP_BUILD(inverse_sparse_update) {
    const lop_node *sum = m->root->child[0]->child[0], *value = NULL, *alt = NULL, *share = NULL,
                   *looked = NULL;
    lop_seen s;
    lop_status st = lop_seen_read(mk, sum, m->root->dtype, &s);
    if (st == LOP_OK) st = diagonal_of(&s, m->root, &share, &value);
    if (st == LOP_OK && value->dtype != m->root->dtype) st = LOP_NOMATCH;
    if (st == LOP_OK) st = lop_inverse_diagonal(mk, sum, &m->root->attr, m->root->dtype, &alt);
    const lop_node *part[3] = {value, share, alt};
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_checked_share, NULL, 3, part, NULL, &looked);
    const lop_noise_check n = {mk, sum, s.e, lop_seen_solution, &s};
    if (st == LOP_OK) st = lop_noise_checked(&n, looked, alt, out);
    const lop_node *gone[] = {value, alt, share, looked};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    lop_seen_close(&s);
    return st;
}

/* -- the determinant */

/* Of a matrix: its product with the probe, its diagonal d (ones, where that takes an inverse), and
 * its solution for d v. Owned. */
typedef struct probed {
    const lop_node *av, *d, *dv, *z;
} probed;

static lop_status probe_with(const lop_maker *mk, const lop_node *a, const lop_node *v, probed *p) {
    const lop_attr k = {.i = {0, 0, 0, (int64_t)a->dtype + 1}};
    const lop_node like = {
        .shape = {.ndim = 1, .dim = {lop_rows(a)}}, .dtype = a->dtype, .core = 1};
    const lop_node *by = NULL;
    lop_status st = lop_make2(mk, &lop_op_apply, NULL, a, v, &p->av);
    if (st == LOP_OK)
        st = lop_holds_inverse(a, DEEP) ? lop_make(mk, "ones", NULL, 0, NULL, &like, &p->d)
                                        : lop_make1(mk, &lop_op_diagonal, &k, a, &p->d);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_diag, NULL, p->d, &by);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, by, v, &p->dv);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_solve, NULL, a, p->dv, &p->z);
    lop_node_unref(by);
    return st;
}
static void drop(probed *p) {
    const lop_node *gone[] = {p->av, p->d, p->dv, p->z};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
}

lop_status lop_quotient_checked(const lop_maker *mk, const lop_quotient *q, const lop_node **out) {
    const lop_node column = {
        .shape = {.ndim = 2, .dim = {lop_rows(q->m), 1}}, .dtype = q->m->dtype, .core = 2};
    const lop_attr rows = {.i = {q->rows, 0, 0, 0}}, times = lop_coef_attr(q->by);
    const lop_node *v = NULL, *w = NULL, *seen = NULL;
    probed own = {NULL}, inner = {NULL};
    lop_status st = lop_make(mk, "probe", NULL, 0, NULL, &column, &v);
    if (st == LOP_OK) st = probe_with(mk, q->m, v, &own);
    if (st == LOP_OK) st = probe_with(mk, q->h, v, &inner);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_solve, NULL, q->h, own.dv, &w);
    if (st == LOP_OK)
        st = lop_coef_test(mk->ctx, q->by, LOP_COEF_ONE)
                 ? (seen = lop_node_ref(w), LOP_OK)
                 : lop_make1(mk, &lop_op_scale, &times, w, &seen);
    const lop_node *child[9] = {q->det,  own.av,  own.d, own.z, inner.av,
                                inner.d, inner.z, seen,  q->alt};
    if (st == LOP_OK)
        st = lop_make_op(mk, &lop_op_checked_quotient_det, &rows, 9, child, NULL, out);
    drop(&own);
    drop(&inner);
    lop_node_unref(v);
    lop_node_unref(w);
    lop_node_unref(seen);
    return st;
}

lop_status lop_det_of_dense(const lop_maker *mk, const lop_attr *k, const lop_node *a,
                            const lop_node **out) {
    const lop_attr tried = {.i = {1, 0, 0, 0}};
    const lop_node *dense = NULL;
    lop_status st = lop_make1(mk, &lop_op_todense, k, a, &dense);
    if (st == LOP_OK)
        st = lop_infer_hermitian(a) ? lop_make1(mk, &lop_op_cholesky_det, &tried, dense, out)
                                    : lop_make1(mk, &lop_op_lu_det, NULL, dense, out);
    lop_node_unref(dense);
    return st;
}

LOP_BUILD(det_sparse_update) {
    const lop_node *sum = m->root->child[0], *det[3] = {NULL}, *under = NULL, *both = NULL,
                   *value = NULL, *alt = NULL;
    const lop_attr *k = &m->root->attr, power = {.i = {-1, 0, 0, 0}};
    lop_seen s;
    lop_status st = lop_seen_read(mk, sum, m->root->dtype, &s);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scaledet, k, s.e, &det[0]);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scaledet, k, s.h, &det[1]);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scaledet, k, s.m, &det[2]);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_pow_det, &power, det[2], &under);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_mul_det, NULL, det[1], under, &both);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_mul_det, NULL, det[0], both, &value);
    if (st == LOP_OK) st = lop_det_of_dense(mk, k, sum, &alt);
    const lop_quotient q = {lop_rows(sum), value, s.m, s.h, lop_coef_const(1, 0), alt};
    if (st == LOP_OK) st = lop_quotient_checked(mk, &q, out);
    const lop_node *gone[] = {det[0], det[1], det[2], under, both, value, alt};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    lop_seen_close(&s);
    return st;
}
