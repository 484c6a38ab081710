/* low_rank_inverse.c: Woodbury's formula, and the determinant lemma, for LowRankUpdate. */
#include "expr/properties.h"
#include "low_rank_woodbury.h"
#include "ops/shared/column_norm.h"
#include "ops/shared/sparse_solver.h"

enum {
    TRIANGLE = 16, /* columns from which half a product pays */
    FEW = 8
}; /* columns whose quasi-separable factor is as quick as refining */

/* C is c I with a real c (under any view), or is not there. */
static bool plain_middle(const lop_node *c, lop_coef *by) {
    *by = lop_coef_const(1, 0);
    if (!c) return true;
    if (c->op == &lop_op_view) c = c->child[0];
    if (c->op == &lop_op_scaled) {
        *by = lop_coef_of(&c->attr);
        if (by->im != 0) return false;
        c = c->child[0];
    }
    return c->op == &lop_op_identity && lop_nbatch(c) == 0;
}

/* C V^H x (C left out where there is none). */
lop_status lop_woodbury_through(const woodbury *s, const lop_node *x, const lop_node **out) {
    const lop_node *t = NULL;
    lop_status st = lop_make2(s->mk, &lop_op_apply, NULL, s->vh, x, s->p.c ? &t : out);
    if (st != LOP_OK || !s->p.c) return st;
    st = lop_make2(s->mk, &lop_op_apply, NULL, s->p.c, t, out);
    lop_node_unref(t);
    return st;
}

/* c A; A itself where c is 1. Takes over a. */
static lop_status times(const lop_maker *mk, lop_coef c, const lop_node *a, const lop_node **out) {
    const lop_attr by = lop_coef_attr(c);
    *out = a;
    if (lop_coef_test(mk->ctx, c, LOP_COEF_ONE)) return LOP_OK;
    lop_status st = lop_make1(mk, &lop_op_scale, &by, a, out);
    lop_node_unref(a);
    return st;
}

/* The diagonal of a real multiple of a real Diag (under any view) or of the identity, in the
 * precision of dt; NULL of anything else. */
static lop_status real_diagonal(const lop_maker *mk, const lop_node *a, lop_dtype dt,
                                const lop_node **out) {
    const lop_dtype real = lop_dtype_real(dt);
    const lop_attr cast = {.i = {1, 0, 0, (int64_t)real + 1}};
    const lop_node like = {.shape = {.ndim = 1, .dim = {lop_rows(a)}}, .dtype = real, .core = 1};
    lop_coef c = lop_coef_const(1, 0);
    const lop_node *d = NULL;
    *out = NULL;
    if (a->op == &lop_op_view) a = a->child[0];
    if (a->op == &lop_op_scaled) {
        c = lop_coef_of(&a->attr);
        a = a->child[0];
    }
    if (a->op == &lop_op_view) a = a->child[0];
    if (c.im != 0 || (a->op == &lop_op_identity ? lop_nbatch(a) > 0 : a->op != &lop_op_diag) ||
        (a->op == &lop_op_diag && lop_is_complex(a->child[0]->dtype)))
        return LOP_OK;
    lop_status st = a->op == &lop_op_diag ? lop_make1(mk, &lop_op_cast, &cast, a->child[0], &d)
                                          : lop_make_op(mk, &lop_op_ones, NULL, 0, NULL, &like, &d);
    return st == LOP_OK ? times(mk, c, d, out) : st;
}

/* C is a real diagonal, in one or block by block, as in a U U^H + b V V^H. */
static bool weighted_middle(const lop_node *c) {
    if (c && c->op == &lop_op_view) c = c->child[0];
    if (c && c->op == &lop_op_scaled) {
        if (lop_coef_of(&c->attr).im != 0) return false;
        c = c->child[0];
    }
    if (c && c->op == &lop_op_view) c = c->child[0];
    return c && c->op == &lop_op_diag && !lop_is_complex(c->dtype);
}
static bool weighted_middles(const lop_node *c) {
    lop_coef by;
    if (!c || c->op != &lop_op_blockdiag) return weighted_middle(c);
    for (int i = 0; i < c->n; i++)
        if (!plain_middle(c->child[i], &by) && !weighted_middle(c->child[i])) return false;
    return true;
}

/* C V^H W, W = B^-1 U: in one triangle where V^H W is known to be Hermitian, without W where B is a
 * real diagonal. Sets what `s` says of it. */
static lop_status inner_matrix(woodbury *s, const lop_node *w, const lop_node **out) {
    const lop_node *g = NULL;
    const bool mirrored =
        lop_node_alike(s->p.u, s->p.v, LOP_INFER_DEPTH) && lop_infer_hermitian(s->p.base);
    s->own = mirrored && plain_middle(s->p.c, &s->c);
    lop_status st = LOP_OK;
    if (!s->apart && (s->own || (mirrored && weighted_middles(s->p.c))))
        st = real_diagonal(s->mk, s->p.base, (lop_dtype)(s->dt.i[3] - 1), &s->d);
    if (st == LOP_OK && s->d) {
        st = lop_make2(s->mk, &lop_op_weighted_gram, NULL, s->u, s->d, &s->gram);
        if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_top_square, NULL, s->gram, &g);
    } else if (st == LOP_OK && s->own && lop_cols(s->u) >= TRIANGLE) {
        st = lop_make2(s->mk, &lop_op_gemm_triangle, NULL, s->u, w, &g);
    } else if (st == LOP_OK) {
        return lop_woodbury_through(s, w, out);
    }
    if (st != LOP_OK) return st;
    if (s->own) return times(s->mk, s->c, g, out);
    st = lop_make2(s->mk, &lop_op_apply, NULL, s->p.c, g, out);
    lop_node_unref(g);
    return st;
}

/* By Cholesky where the small matrix is Hermitian, and by LU where that fails. */
lop_status lop_woodbury_inner(const woodbury *s, const lop_node *t, const lop_node **out) {
    const lop_attr tried = {.i = {1, 0, 0, 0}};
    return s->own ? lop_make2(s->mk, &lop_op_cholesky_solve, &tried, s->cap, t, out)
                  : lop_make2(s->mk, &lop_op_lu_solve, NULL, s->cap, t, out);
}

static lop_status det_inner(const woodbury *s, const lop_node **out) {
    const lop_attr tried = {.i = {1, 0, 0, 0}};
    return s->own ? lop_make1(s->mk, &lop_op_cholesky_det, &tried, s->cap, out)
                  : lop_make1(s->mk, &lop_op_lu_det, NULL, s->cap, out);
}

/* B^-1 U as an array; of B = P^-1 it is P U, a product with what U is. */
static lop_status solved_base(woodbury *s, const lop_node **w) {
    const lop_node *base = s->p.base, *product = NULL;
    if (base->op != &lop_op_inverse || base->child[0]->dtype != s->u->dtype)
        return lop_make2(s->mk, &lop_op_solve, NULL, base, s->u, w);
    lop_status st = LOP_OK;
    s->covariance = lop_node_ref(base->child[0]);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_prod, NULL, s->covariance, s->p.u, &product);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_todense, &s->dt, product, w);
    lop_node_unref(product);
    return st;
}

lop_status lop_woodbury_open(woodbury *s) {
    const lop_node *w = NULL, *eye = NULL;
    lop_dtype dt = (lop_dtype)(s->dt.i[3] - 1);
    int64_t r = lop_cols(s->p.u);
    lop_node square = {.shape = {.ndim = 2, .dim = {r, r}}, .dtype = dt, .core = 2};
    lop_status st = seen(s->mk, LOP_H, s->p.v, &s->vh);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_todense, &s->dt, s->p.u, &s->u);
    if (st == LOP_OK) st = solved_base(s, &w);
    /* Solves with a base of whole numbers are in double precision, whatever the result is in. */
    if (st == LOP_OK && w->dtype != dt) st = LOP_NOMATCH;
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_dense, NULL, w, &s->w);
    if (st == LOP_OK) st = inner_matrix(s, w, &s->inner);
    if (st == LOP_OK) st = lop_make(s->mk, "eye", NULL, 0, NULL, &square, &eye);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_add, NULL, eye, s->inner, &s->cap);
    lop_node_unref(w);
    lop_node_unref(eye);
    return st;
}

void lop_woodbury_close(woodbury *s) {
    const lop_node *gone[] = {s->w, s->cap, s->vh, s->u, s->inner, s->covariance, s->d, s->gram};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
}

/* Is it sooner factored as the band or the sparse matrix that it is by how it is written? */
static bool better_whole(const woodbury *s, int64_t k) {
    return lop_thin_better_whole(s->mk, (lop_dtype)(s->dt.i[3] - 1), s->a, s->p.base,
                                 lop_cols(s->p.u), k);
}

/* The sum that it is, B + U C V^H, where that is sparse as it is written and sooner factored so for
 * k right sides. Owned; NOMATCH: it is not. */
static lop_status sparse_whole(const lop_maker *mk, const lop_node *a, int64_t k,
                               const lop_node **out) {
    const parts p = parts_of(a);
    const lop_node *vh = NULL, *mid = NULL, *low = NULL, *sum = NULL;
    if (!lop_is_blas(a->dtype) || lop_sparse_entries(p.base) < 0 || lop_sparse_entries(p.u) < 0)
        return LOP_NOMATCH;
    lop_status st = seen(mk, LOP_H, p.v, &vh);
    if (st == LOP_OK && p.c) st = lop_make2(mk, &lop_op_prod, NULL, p.c, vh, &mid);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_prod, NULL, p.u, mid ? mid : vh, &low);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_sum, NULL, p.base, low, &sum);
    if (st == LOP_OK && sum->dtype == a->dtype && lop_sparse_pays(sum) &&
        !lop_band_is_narrow(sum, lop_infer_bands(sum)) &&
        lop_thin_better_whole(mk, a->dtype, sum, p.base, lop_cols(p.u), k))
        *out = lop_node_ref(sum);
    else if (st == LOP_OK)
        st = LOP_NOMATCH;
    const lop_node *gone[] = {vh, mid, low, sum};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* What is asked of a sum, by the rule that factors it: others might make it an update again. */
static lop_status asked_by(const lop_match *m, const lop_maker *mk, const lop_node *asked,
                           lop_status (*build)(const lop_match *, const lop_maker *,
                                               const lop_node **),
                           const lop_node **out) {
    lop_match as = *m;
    as.root = asked;
    const lop_status st = build(&as, mk, out);
    lop_node_unref(asked);
    return st;
}

/* w where the right side is U w: then A^-1 U w is W cap^-1 w, in which nothing cancels. Owned;
 * NULL: it is no such product. */
static lop_status behind_u(const woodbury *s, const lop_node *b, const lop_node **w) {
    const lop_dtype dt = (lop_dtype)(s->dt.i[3] - 1);
    const int64_t r = lop_cols(s->p.u);
    const lop_node square = {.shape = {.ndim = 2, .dim = {r, r}}, .dtype = dt, .core = 2};
    *w = NULL;
    if (b->dtype != dt || s->p.u->dtype != dt || lop_nbatch(s->a) > 0) return LOP_OK;
    if (b->op == &lop_op_apply && lop_node_alike(b->child[0], s->p.u, LOP_INFER_DEPTH)) {
        *w = lop_node_ref(b->child[1]);
        return LOP_OK;
    }
    const bool dense = b->op == &lop_op_todense;
    if (!dense && s->p.u->op != &lop_op_dense) return LOP_OK;
    const bool own = dense ? lop_node_alike(b->child[0], s->p.u, LOP_INFER_DEPTH)
                           : lop_node_alike(b, s->p.u->child[0], LOP_INFER_DEPTH);
    return own ? lop_make(s->mk, "eye", NULL, 0, NULL, &square, w) : LOP_OK;
}

/* z - W (cap^-1 (C V^H z)), z = B^-1 b; of b = U w likewise, w may be NULL. */
static lop_status woodbury_solve(const woodbury *s, const lop_node *b, const lop_node *w,
                                 const lop_node **out) {
    const lop_node *z = NULL, *t = NULL, *y = NULL, *wy = NULL;
    if (w) {
        lop_status st = lop_woodbury_inner(s, w, &y);
        if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_apply, NULL, s->w, y, out);
        lop_node_unref(y);
        return st;
    }
    lop_status st = lop_make2(s->mk, &lop_op_solve, NULL, s->p.base, b, &z);
    if (st == LOP_OK) st = lop_woodbury_through(s, z, &t);
    if (st == LOP_OK) st = lop_woodbury_inner(s, t, &y);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_apply, NULL, s->w, y, &wy);
    if (st == LOP_OK) st = lop_build_minus(s->mk, z, wy, out);
    const lop_node *gone[] = {z, t, y, wy};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* y = cap^-1 (C U^H B^-1 b) and b - U y. */
static lop_status inner_and_rest(const woodbury *s, const lop_node *b, const lop_node *u,
                                 const lop_node **y, const lop_node **rest) {
    const lop_node *z = NULL, *t = NULL, *uy = NULL;
    lop_status st = lop_make2(s->mk, &lop_op_solve, NULL, s->p.base, b, &z);
    if (st == LOP_OK) st = lop_woodbury_through(s, z, &t);
    if (st == LOP_OK) st = lop_woodbury_inner(s, t, y);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_apply, NULL, u, *y, &uy);
    if (st == LOP_OK) st = lop_build_minus(s->mk, b, uy, rest);
    const lop_node *gone[] = {z, t, uy};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* The same of b = U w: y = w - v and U v for v = cap^-1 w. */
static lop_status of_small(const woodbury *s, const lop_node *w, const lop_node *u,
                           const lop_node **y, const lop_node **rest) {
    const lop_node *v = NULL;
    lop_status st = lop_woodbury_inner(s, w, &v);
    if (st == LOP_OK) st = lop_build_minus(s->mk, w, v, y);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_apply, NULL, u, v, rest);
    lop_node_unref(v);
    return st;
}

/* Of a diagonal B + U C U^H: x = B^-1 (b - U y), y = cap^-1 (C U^H B^-1 b), accepted by the k
 * numbers e = y - C U^H x, else `alt`. b = U w where w is not NULL. */
static lop_status diagonal_solve(const woodbury *s, const lop_node *b, const lop_node *w,
                                 const lop_node *alt, const lop_node **out) {
    const lop_node *y = NULL, *u = NULL, *rest = NULL, *x = NULL, *again = NULL, *e = NULL;
    lop_status st = lop_make1(s->mk, &lop_op_dense, NULL, s->u, &u);
    if (st == LOP_OK) st = w ? of_small(s, w, u, &y, &rest) : inner_and_rest(s, b, u, &y, &rest);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_solve, NULL, s->p.base, rest, &x);
    if (st == LOP_OK) st = lop_woodbury_through(s, x, &again);
    if (st == LOP_OK) st = lop_build_minus(s->mk, y, again, &e);
    const lop_node *child[8] = {x, b, y, e, s->gram, s->inner, s->d, alt};
    if (st == LOP_OK) st = lop_make_op(s->mk, &lop_op_checked_update, NULL, 8, child, NULL, out);
    const lop_node *gone[] = {y, u, rest, x, again, e};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

static woodbury opened_by(const lop_maker *mk, const lop_node *a, const lop_node *update,
                          lop_dtype dt) {
    return (woodbury){.mk = mk,
                      .a = a,
                      .p = parts_of(update),
                      .apart = a != update,
                      .dt = {.i = {0, 0, 0, (int64_t)dt + 1}}};
}

/* A solution, or that of the adjoint. */
static lop_status adjoint_solve(const woodbury *s, const lop_node *b, const lop_node **out);
static lop_status refined_solve(const woodbury *s, const lop_check *c, int mode, const lop_node *x,
                                const lop_node *b, const lop_node **out) {
    const lop_node *r = NULL, *dx = NULL;
    lop_status st = lop_check_residual(c, x, b, &r);
    if (st == LOP_OK)
        st = mode == LOP_N ? woodbury_solve(s, r, NULL, &dx) : adjoint_solve(s, r, &dx);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_add, NULL, x, dx, out);
    lop_node_unref(r);
    lop_node_unref(dx);
    return st;
}

/* What mode(A)^-1 b is where x is not accepted: refined once, then by a factor of generators where
 * A has them, else by borders, else by LU of the dense form, which is in *alt then. */
static lop_status safer_solve(const woodbury *s, lop_check *c, const lop_node *update, int mode,
                              const lop_node *x, const lop_node *b, const lop_node **alt,
                              const lop_node **out) {
    const lop_attr how = {.i = {mode, 0, 0, 0}};
    const lop_node *g = NULL, *x2 = NULL, *dense = NULL, *last = NULL;
    lop_status st = s->apart ? LOP_OK : lop_update_generators(s->mk, s->a, b->dtype, &g);
    if (st == LOP_OK && g) st = lop_make2(s->mk, &lop_op_solve, NULL, g, b, &last);
    if (st == LOP_OK) st = refined_solve(s, c, mode, x, b, &x2);
    if (st == LOP_OK && !g) st = lop_make1(s->mk, &lop_op_todense, &s->dt, s->a, &dense);
    if (st == LOP_OK && !g)
        st = lop_make2(s->mk, &lop_op_lu_solve, mode == LOP_N ? NULL : &how, dense, b, alt);
    if (st == LOP_OK && !g) st = lop_border_solve(c, update, mode, b, *alt, &last);
    c->exact = true;
    c->room = g ? LOP_ROOM_MADE : LOP_ROOM_PROMISED;
    if (st == LOP_OK) st = lop_check_instead(c, x2, b, last, out);
    c->exact = false;
    c->room = LOP_ROOM_PROMISED;
    const lop_node *gone[] = {g, x2, dense, last};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* Checked, by a probe where the solution does not show its own error. */
lop_status lop_solve_by_update(const lop_match *m, const lop_maker *mk, const lop_node *a,
                               const lop_node *update, const lop_node **out) {
    woodbury s = opened_by(mk, a, update, m->root->dtype);
    lop_check k = {.mk = mk, .a = s.a};
    const lop_node *b = NULL, *x = NULL, *alt = NULL, *second = NULL, *w = NULL;
    lop_attr cast = {.i = {1, 0, 0, s.dt.i[3]}};
    const lop_node *rhs = m->root->child[1];
    const int64_t many = rhs->shape.ndim > 1 ? lop_cols(rhs) : 1;
    lop_status st = s.apart ? LOP_NOMATCH : sparse_whole(mk, s.a, many, &w);
    if (st == LOP_OK) {
        st = lop_make2(mk, &lop_op_solve, NULL, w, rhs, &x);
        lop_node_unref(w);
        return st == LOP_OK ? asked_by(m, mk, x, lop_build_solve_sparse, out) : st;
    }
    if (st == LOP_NOMATCH) st = better_whole(&s, many) ? LOP_NOMATCH : lop_woodbury_open(&s);
    if (st == LOP_OK) st = lop_check_open(&k, m->root->dtype);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_cast, &cast, m->root->child[1], &b);
    if (st == LOP_OK) st = behind_u(&s, rhs, &w);
    if (st == LOP_OK) st = woodbury_solve(&s, b, w, &x);
    if (st == LOP_OK) st = safer_solve(&s, &k, update, LOP_N, x, b, &alt, &second);
    if (st == LOP_OK)
        st = s.gram                        ? diagonal_solve(&s, b, w, second, out)
             : lop_is_precision(s.a) && !w ? lop_precision_solve(&s, b, alt, out)
                                           : lop_check_instead(&k, x, b, second, out);
    const lop_node *gone[] = {b, x, alt, second, w};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    lop_check_close(&k);
    lop_woodbury_close(&s);
    return st;
}

LOP_BUILD(solve_update) {
    return lop_solve_by_update(m, mk, m->root->child[0], m->root->child[0], out);
}

/* B^H: B where it is its own adjoint. */
static lop_status base_adjoint(const woodbury *s, const lop_node **out) {
    const lop_node *base = s->p.base, *conj;
    if (lop_infer_hermitian(base)) {
        *out = lop_node_ref(base);
        return LOP_OK;
    }
    if (base->op != &lop_op_diag) return seen(s->mk, LOP_H, base, out);
    lop_status st = lop_make1(s->mk, &lop_op_conjugate, NULL, base->child[0], &conj);
    if (st != LOP_OK) return st;
    st = lop_make1(s->mk, &lop_op_diag, NULL, conj, out);
    lop_node_unref(conj);
    return st;
}

/* B^-H (b - V (C^H cap^-H W^H b)): of A^H by what solves with A are made of. */
static lop_status adjoint_solve(const woodbury *s, const lop_node *b, const lop_node **out) {
    const lop_attr h = {.i = {LOP_H, 0, 0, 0}};
    const lop_node *bh = NULL, *wh = NULL, *ch = NULL, *t = NULL, *y = NULL, *cy = NULL, *vy = NULL,
                   *rest = NULL;
    lop_status st = base_adjoint(s, &bh);
    if (st == LOP_OK) st = seen(s->mk, LOP_H, s->w, &wh);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_apply, NULL, wh, b, &t);
    if (st == LOP_OK)
        st = s->own ? lop_woodbury_inner(s, t, &y)
                    : lop_make2(s->mk, &lop_op_lu_solve, &h, s->cap, t, &y);
    if (st == LOP_OK && s->p.c) st = seen(s->mk, LOP_H, s->p.c, &ch);
    if (st == LOP_OK && s->p.c) st = lop_make2(s->mk, &lop_op_apply, NULL, ch, y, &cy);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_apply, NULL, s->p.v, cy ? cy : y, &vy);
    if (st == LOP_OK) st = lop_build_minus(s->mk, b, vy, &rest);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_solve, NULL, bh, rest, out);
    const lop_node *gone[] = {bh, wh, ch, t, y, cy, vy, rest};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* Of a view what solve_update does, with the same small matrix and the same bound of the norm. */
LOP_BUILD(solve_update_view) {
    const lop_node *view = m->root->child[0], *rhs = m->root->child[1], *b = NULL, *x = NULL,
                   *alt = NULL, *second = NULL;
    woodbury s = {.mk = mk, .a = view->child[0], .p = parts_of(view->child[0])}, turned = s;
    lop_check k = {.mk = mk, .a = s.a};
    const lop_attr cast = {.i = {1, 0, 0, (int64_t)m->root->dtype + 1}};
    if (view->attr.i[0] != LOP_H && lop_is_complex(s.a->dtype)) /* as what is conjugated */
        return lop_solve_conjugated(m, mk, out);
    if (!(view->attr.i[0] & LOP_T)) return lop_make2(mk, &lop_op_solve, NULL, s.a, rhs, out);
    s.dt = turned.dt = (lop_attr){.i = {0, 0, 0, (int64_t)m->root->dtype + 1}};
    turned.p.u = s.p.v;
    lop_status st = sparse_whole(mk, s.a, lop_cols(rhs), &x);
    if (st == LOP_NOMATCH && !better_whole(&s, lop_cols(rhs))) st = behind_u(&turned, rhs, &x);
    if (st == LOP_OK && !x) st = lop_woodbury_open(&s);
    if (x) st = LOP_NOMATCH; /* sparse, or made with V */
    lop_node_unref(x);
    x = NULL;
    if (st == LOP_OK) st = lop_check_open(&k, (lop_dtype)(cast.i[3] - 1));
    k.a = view;
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_cast, &cast, rhs, &b);
    if (st == LOP_OK) st = adjoint_solve(&s, b, &x);
    if (st == LOP_OK) st = safer_solve(&s, &k, s.a, LOP_H, x, b, &alt, &second);
    if (st == LOP_OK) st = lop_check_instead(&k, x, b, second, out);
    const lop_node *gone[] = {b, x, alt, second};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    lop_check_close(&k);
    lop_woodbury_close(&s);
    return st;
}

/* V^H B^-1 as an array: W^H where B is its own adjoint and V is U, else by a solve with B^H. */
lop_status lop_woodbury_right(const woodbury *s, const lop_node **out) {
    const lop_attr h = {.i = {LOP_H, 0, 0, 0}};
    const lop_node *bh = NULL, *v = NULL, *z = NULL;
    lop_status st = LOP_OK;
    if (s->p.u == s->p.v && lop_infer_hermitian(s->p.base)) {
        z = lop_node_ref(s->w->child[0]);
    } else {
        st = base_adjoint(s, &bh);
        if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_todense, &s->dt, s->p.v, &v);
        if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_solve, NULL, bh, v, &z);
    }
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_swap, &h, z, out);
    const lop_node *gone[] = {bh, v, z};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* Diagonal k of W cap^-1 C V^H B^-1: two thin arrays, row by row. `half`: of c W cap^-1 W^H, by
 * half a solve. */
static lop_status thin_diagonal(const woodbury *s, int64_t k, bool half, const lop_node **out) {
    const lop_attr at = {.i = {k, 0, 0, 0}}, tried = {.i = {1, 1, 0, 0}};
    const lop_node *vb = NULL, *t = NULL, *y = NULL;
    lop_status st = lop_woodbury_right(s, &vb);
    if (st == LOP_OK && half) {
        st = lop_make2(s->mk, &lop_op_half_solve, &tried, s->cap, vb, &t);
        lop_node_unref(vb);
        return st == LOP_OK ? times(s->mk, s->c, t, out) : st;
    }
    if (st == LOP_OK && s->p.c) st = lop_make2(s->mk, &lop_op_apply, NULL, s->p.c, vb, &t);
    if (st == LOP_OK) st = lop_woodbury_inner(s, t ? t : vb, &y);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_product_diagonal, &at, s->w->child[0], y, out);
    const lop_node *gone[] = {vb, t, y};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* Diagonal k of B^-1, in *own, and of B^-1 - W cap^-1 C V^H B^-1. */
static lop_status woodbury_diagonal(const woodbury *s, const lop_attr *at, bool half,
                                    const lop_node **own, const lop_node **out) {
    const lop_node *inverse = NULL, *both = NULL;
    lop_status st = lop_make1(s->mk, &lop_op_inverse, NULL, s->p.base, &inverse);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_diagonal, at, inverse, own);
    if (st == LOP_OK) st = thin_diagonal(s, at->i[0], half, &both);
    if (st == LOP_OK) st = lop_build_minus(s->mk, *own, both, out);
    lop_node_unref(inverse);
    lop_node_unref(both);
    return st;
}

/* `value`, a determinant or a part of the inverse, where B^-1 and the small matrix solve A x = v
 * for the probe v with a small residual, and B is not much worse than A; else `alt`. */
lop_status lop_woodbury_checked(const woodbury *s, const lop_op *op, const lop_node *value,
                                const lop_node *alt, const lop_node **out) {
    const bool precision = lop_is_precision(s->a);
    const lop_attr signs = {.i = {0, 1, 0, 0}};
    const lop_node *x = NULL, *r = NULL, *low = NULL, *y = NULL, *d = NULL, *told = NULL,
                   *ones = NULL, *z[2] = {NULL};
    lop_status st = precision ? lop_precision_low(s, &low) : LOP_OK;
    lop_check k = {.mk = s->mk, .a = low ? low : s->a};
    if (st == LOP_OK) st = lop_check_open(&k, (lop_dtype)(s->dt.i[3] - 1));
    if (st == LOP_OK && precision) st = lop_precision_solution(s, k.v, &x, &y, &r);
    if (st == LOP_OK && !precision) st = woodbury_solve(s, k.v, NULL, &x);
    if (st == LOP_OK && !precision) st = lop_check_residual(&k, x, k.v, &r);
    if (st == LOP_OK && !precision)
        st = lop_make2(s->mk, &lop_op_solve, NULL, s->p.base, k.v, &z[0]);
    if (st == LOP_OK && !precision) st = lop_ones_column(s->mk, k.v->dtype, lop_rows(k.v), &ones);
    if (st == LOP_OK && !precision)
        st = lop_make2(s->mk, &lop_op_solve, NULL, s->p.base, ones, &z[1]);
    const lop_node *child[11] = {value, x, r, k.v, k.q, k.u, s->w->child[0], s->u, z[0], z[1], alt};
    if (precision) child[8] = alt;
    if (st == LOP_OK && precision) st = lop_precision_signs(s, &d);
    if (st == LOP_OK) st = lop_check_made(&k, op, precision ? 9 : 11, child, d ? &told : out);
    const lop_node *positive[3] = {told, d, alt};
    if (st == LOP_OK && d)
        st = lop_make_op(s->mk, &lop_op_spectral, &signs, 3, positive, NULL, out);
    const lop_node *gone[] = {x, r, low, y, d, told, ones, z[0], z[1]};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    lop_check_close(&k);
    return st;
}

/* Diagonal k of (B + U C V^H)^-1; Hager 1989, eq. 2. Of a diagonal B + c U U^H the result itself
 * shows whether it lost anything. */
lop_status lop_diagonal_by_update(const lop_match *m, const lop_maker *mk, const lop_node *a,
                                  const lop_node *update, const lop_node **out) {
    const lop_node *own = NULL, *value = NULL, *dense = NULL, *alt = NULL, *probed = NULL;
    woodbury s = opened_by(mk, a, update, m->root->dtype);
    lop_coef c;
    const bool plain = !s.apart && lop_is_diagonal_matrix(s.p.base) &&
                       lop_infer_hermitian(s.p.base) && s.p.u == s.p.v && plain_middle(s.p.c, &c) &&
                       m->root->attr.i[0] == 0;
    if (!lop_is_blas(m->root->dtype) || better_whole(&s, 1)) return LOP_NOMATCH;
    lop_status st = s.apart ? LOP_NOMATCH : sparse_whole(mk, a, 1, &own);
    if (st == LOP_OK) {
        st = lop_make1(mk, &lop_op_inverse, NULL, own, &value);
        if (st == LOP_OK) st = lop_make1(mk, &lop_op_diagonal, &m->root->attr, value, &alt);
        lop_node_unref(own);
        lop_node_unref(value);
        return st == LOP_OK ? asked_by(m, mk, alt, lop_build_diagonal_sparse_inverse, out) : st;
    }
    if (st == LOP_NOMATCH) st = lop_woodbury_open(&s);
    const bool half = s.own && s.p.u == s.p.v && m->root->attr.i[0] == 0;
    if (st == LOP_OK) st = woodbury_diagonal(&s, &m->root->attr, half, &own, &value);
    if (st == LOP_OK) st = lop_inverse_diagonal(mk, a, &m->root->attr, m->root->dtype, &dense);
    if (st == LOP_OK)
        st = s.apart ? (alt = lop_node_ref(dense), LOP_OK)
                     : lop_safer_diagonal(mk, update, &m->root->attr, m->root->dtype, dense, &alt);
    if (st == LOP_OK)
        st = lop_woodbury_checked(&s, &lop_op_checked_value, value, alt, plain ? &probed : out);
    const lop_node *child[4] = {value, own, s.cap, probed};
    if (st == LOP_OK && plain)
        st = lop_make_op(mk, &lop_op_checked_difference, NULL, 4, child, NULL, out);
    const lop_node *gone[] = {own, value, dense, alt, probed};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    lop_woodbury_close(&s);
    return st;
}

LOP_BUILD(update_inverse_diagonal) {
    const lop_node *a = m->root->child[0]->child[0];
    return lop_diagonal_by_update(m, mk, a, a, out);
}

/* det(B + U C V^H) = det B det(I + C V^H B^-1 U), else LU of the dense form. */
lop_status lop_det_by_update(const lop_match *m, const lop_maker *mk, const lop_node *a,
                             const lop_node *update, const lop_node **out) {
    woodbury s = opened_by(mk, a, update, (lop_dtype)(m->root->attr.i[3] - 1));
    const lop_node *base = NULL, *small = NULL, *det = NULL, *dense = NULL, *whole = NULL,
                   *alt = NULL, *probed = NULL;
    lop_status st = s.apart ? LOP_NOMATCH : sparse_whole(mk, s.a, 1, &base);
    if (st == LOP_OK) {
        st = lop_make1(mk, &lop_op_scaledet, &m->root->attr, base, &det);
        lop_node_unref(base);
        return st == LOP_OK ? asked_by(m, mk, det, lop_build_det_sparse, out) : st;
    }
    if (st == LOP_NOMATCH) st = better_whole(&s, 1) ? LOP_NOMATCH : lop_woodbury_open(&s);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scaledet, &m->root->attr, s.p.base, &base);
    if (st == LOP_OK) st = det_inner(&s, &small);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_mul_det, NULL, base, small, &det);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &s.dt, s.a, &dense);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_lu_det, NULL, dense, &whole);
    if (st == LOP_OK) /* nothing looks at that of what is a but for rounding */
        st = s.apart ? (alt = lop_node_ref(whole), LOP_OK)
                     : lop_safer_det(mk, update, &m->root->attr, whole, &alt);
    const bool shown = s.own && s.gram;
    if (st == LOP_OK)
        st = lop_woodbury_checked(&s, &lop_op_checked_det, det, alt, shown ? &probed : out);
    const lop_node *child[5] = {det, s.gram, s.inner, s.d, probed};
    if (st == LOP_OK && shown)
        st = lop_make_op(mk, &lop_op_checked_update_det, NULL, 5, child, NULL, out);
    const lop_node *gone[] = {base, small, det, dense, whole, alt, probed};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    lop_woodbury_close(&s);
    return st;
}

LOP_BUILD(det_update) {
    return lop_det_by_update(m, mk, m->root->child[0], m->root->child[0], out);
}
