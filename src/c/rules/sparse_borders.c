/* sparse_borders.c: solves with B + U C V^H, its determinant and the diagonals of its inverse, of a
 * sparse or diagonal B that is singular or next to it, as the Laplacian of a graph is beside a
 * constant.
 * Woodbury's formula has no answer then, but
 *
 *   K = [B U C; -V^H I],   K [x; y] = [b; 0]  gives  (B + U C V^H) x = b,   det K = det(B + U C
 * V^H)
 *
 * (Bunch and Rose 1974), and (B + U C V^H)^-1 is the first block of K^-1. K is sparse where U is
 * thin, and factored with pivots from among all its rows. What is lost where U is large shows in
 * the backward error of x, which is looked at as that of the formula is; the dense form else. */
#include "builds.h"
#include "expr/properties.h"
#include "low_rank_woodbury.h"
#include "ops/shared/sparse_solver.h"
#include "product_words.h"

/* K; NOMATCH: it is not sparse. Owned. */
static lop_status border(const lop_maker *mk, const parts *p, const lop_node **out) {
    const lop_attr two = {.i = {2, 2, 0, 0}}, minus = lop_attr_coef(-1, 0);
    const int64_t k = lop_cols(p->v);
    const lop_node *uc = NULL, *vh = NULL, *less = NULL, *eye = NULL;
    if (!lop_is_blas(p->base->dtype) ||
        (!lop_sparse_selects(p->base) && !lop_has(p->base, LOP_FLAG_diagonal)))
        return LOP_NOMATCH;
    const lop_node like = {
        .shape = {.ndim = 2, .dim = {k, k}}, .dtype = LOP_f64, .weak = LOP_WEAK, .core = 2};
    lop_status st = lop_view_once(mk, LOP_H, p->v, &vh);
    if (st == LOP_OK && p->c) st = lop_make2(mk, &lop_op_prod, NULL, p->u, p->c, &uc);
    if (st == LOP_OK) st = lop_make(mk, "identity", NULL, 0, NULL, &like, &eye);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scaled, &minus, vh, &less);
    const lop_node *child[4] = {p->base, uc ? uc : p->u, less, eye};
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_block, &two, 4, child, NULL, out);
    const lop_node *gone[] = {uc, vh, less, eye};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    if (st != LOP_OK || lop_sparse_pays(*out)) return st;
    lop_node_unref(*out);
    *out = NULL;
    return LOP_NOMATCH;
}

/* mode(B + U C V^H)^-1 b by K. */
static lop_status solution(const lop_maker *mk, const lop_node *k, int mode, const lop_node *b,
                           const lop_node **out) {
    const int64_t n = lop_rows(b), more = lop_rows(k) - n;
    const lop_attr dt = {.i = {0, 0, 0, (int64_t)b->dtype + 1}}, below = {.i = {2, 1, 0, 0}},
                   how = {.i = {mode, 0, 0, 0}}, whole = {.i = {mode, 1, 0, 0}},
                   top = {.i = {0, n, 0, lop_cols(b)}};
    const lop_node like = {
        .shape = {.ndim = 2, .dim = {more, lop_cols(b)}}, .dtype = b->dtype, .core = 2};
    const lop_node *zeros = NULL, *none = NULL, *all = NULL, *dense = NULL, *alt = NULL,
                   *both = NULL;
    lop_status st = lop_make(mk, "zeros", NULL, 0, NULL, &like, &zeros);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &dt, zeros, &none);
    const lop_node *part[2] = {b, none};
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_grid, &below, 2, part, NULL, &all);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &dt, k, &dense);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_lu_solve, &how, dense, all, &alt);
    const lop_node *child[3] = {k, all, alt};
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_sparse_solve, &whole, 3, child, NULL, &both);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_slice, &top, both, out);
    const lop_node *gone[] = {zeros, none, all, dense, alt, both};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

lop_status lop_border_solve(const lop_check *c, const lop_node *update, int mode, const lop_node *b,
                            const lop_node *alt, const lop_node **out) {
    const parts p = parts_of(update);
    const lop_node *k = NULL, *x = NULL;
    lop_status st = lop_nbatch(b) == 0 && b->core == 2 ? border(c->mk, &p, &k) : LOP_NOMATCH;
    if (st == LOP_OK) st = solution(c->mk, k, mode, b, &x);
    if (st == LOP_OK) st = lop_check_instead(c, x, b, alt, out);
    lop_node_unref(k);
    lop_node_unref(x);
    if (st != LOP_NOMATCH) return st;
    *out = lop_node_ref(alt);
    return LOP_OK;
}

/* Diagonal `at` of K^-1 as far as (B + U C V^H)^-1 goes. */
static lop_status part_of_diagonal(const lop_maker *mk, const lop_node *k, int64_t n, int64_t at,
                                   lop_dtype dt, const lop_node **out) {
    const lop_attr whole = {.i = {at, 1, 0, 0}}, first = {.i = {0, 0, 1, at < 0 ? n + at : n - at}};
    const lop_node *alt = NULL, *all = NULL;
    lop_status st = lop_inverse_diagonal(mk, k, &whole, dt, &alt);
    const lop_node *child[2] = {k, alt};
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_sparsediag, &whole, 2, child, NULL, &all);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_array_slice, &first, all, out);
    lop_node_unref(alt);
    lop_node_unref(all);
    return st;
}

lop_status lop_border_diagonal(const lop_maker *mk, const lop_node *update, const lop_attr *at,
                               lop_dtype dt, const lop_node *alt, const lop_node **out) {
    const parts p = parts_of(update);
    lop_check c = {.mk = mk, .a = update};
    const int64_t n = lop_rows(update), k = at->i[0];
    const lop_node *whole = NULL, *value = NULL, *x = NULL, *r = NULL;
    lop_status st = k > -n && k < n && dt == update->dtype ? border(mk, &p, &whole) : LOP_NOMATCH;
    if (st == LOP_OK) st = part_of_diagonal(mk, whole, n, k, dt, &value);
    if (st == LOP_OK) st = lop_check_open(&c, dt);
    if (st == LOP_OK) st = solution(mk, whole, LOP_N, c.v, &x);
    if (st == LOP_OK) st = lop_check_residual(&c, x, c.v, &r);
    const lop_node *child[9] = {value, x, r, c.v, c.q, c.u, x, c.v, alt};
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_checked_value, NULL, 9, child, NULL, out);
    const lop_node *gone[] = {whole, value, x, r};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    lop_check_close(&c);
    if (st != LOP_NOMATCH) return st;
    *out = lop_node_ref(alt);
    return LOP_OK;
}

/* det K, in place of alt where there is a K. */
lop_status lop_border_det(const lop_maker *mk, const lop_node *update, const lop_attr *how,
                          const lop_node *alt, const lop_node **out) {
    const parts p = parts_of(update);
    const lop_node *k = NULL, *dense = NULL, *by_dense = NULL;
    lop_status st = border(mk, &p, &k);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, how, k, &dense);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_lu_det, NULL, dense, &by_dense);
    const lop_node *child[2] = {k, by_dense};
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_sparse_det, NULL, 2, child, NULL, out);
    lop_node_unref(k);
    lop_node_unref(dense);
    lop_node_unref(by_dense);
    if (st != LOP_NOMATCH) return st;
    *out = lop_node_ref(alt);
    return LOP_OK;
}

/* Bands of a few diagonals are solved with sooner than the border is factored. */
enum { FEW_DIAGONALS = 16 };
static bool has_few_diagonals(const lop_node *a) {
    const lop_band b = lop_infer_bands(a);
    return b.l >= 0 && b.u >= 0 && b.l + b.u <= FEW_DIAGONALS;
}

/* S^-1 as E K^-1 E^T, E = [I 0], seen through the mode, behind the factors of w. */
static lop_status add_bordered(const lop_maker *mk, lop_dtype dt, const lop_node *s, int mode,
                               lop_word *w) {
    const lop_attr beside = {.i = {1, 2, 0, 0}};
    const lop_node *update = NULL, *k = NULL, *eye = NULL, *zeros = NULL, *e = NULL,
                   *inverse = NULL, *seen_inverse = NULL, *turned = NULL;
    lop_status st = lop_woodbury_of_sum(mk, dt, s, &update);
    if (st != LOP_OK) return st;
    const parts p = parts_of(update);
    const int64_t n = lop_rows(s), more = lop_cols(p.v);
    const lop_node own = {
        .shape = {.ndim = 2, .dim = {n, n}}, .dtype = LOP_f64, .weak = LOP_WEAK, .core = 2};
    const lop_node rest = {
        .shape = {.ndim = 2, .dim = {n, more}}, .dtype = LOP_f64, .weak = LOP_WEAK, .core = 2};
    st =
        lop_sparse_selects(p.base) && !has_few_diagonals(p.base) ? border(mk, &p, &k) : LOP_NOMATCH;
    if (st == LOP_OK) st = lop_make(mk, "identity", NULL, 0, NULL, &own, &eye);
    if (st == LOP_OK) st = lop_make(mk, "zeros", NULL, 0, NULL, &rest, &zeros);
    const lop_node *child[2] = {eye, zeros};
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_block, &beside, 2, child, NULL, &e);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_inverse, NULL, k, &inverse);
    if (st == LOP_OK) st = lop_view_once(mk, mode, inverse, &seen_inverse);
    if (st == LOP_OK) st = lop_view_once(mk, LOP_T, e, &turned);
    if (st == LOP_OK) st = lop_word_one(w, e);
    if (st == LOP_OK) st = lop_word_one(w, seen_inverse);
    if (st == LOP_OK) st = lop_word_one(w, turned);
    const lop_node *gone[] = {update, k, eye, zeros, e, inverse, seen_inverse, turned};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

lop_status lop_word_bordered(const lop_maker *mk, const lop_word *w, lop_word *out) {
    bool any = false;
    lop_status st = LOP_OK;
    *out = (lop_word){.n = 0, .c = w->c};
    for (int i = 0; st == LOP_OK && i < w->n; i++) {
        int64_t mode;
        const lop_node *s = lop_inverse_seen(w->f[i], &mode);
        st = s && lop_nbatch(s) == 0 && lop_is_square(s)
                 ? add_bordered(mk, w->f[i]->dtype, s, (int)mode, out)
                 : LOP_NOMATCH;
        any |= st == LOP_OK;
        if (st == LOP_NOMATCH) st = lop_word_one(out, w->f[i]);
    }
    return st == LOP_OK && !any ? LOP_NOMATCH : st;
}
