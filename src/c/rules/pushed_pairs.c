/* pushed_pairs.c: traces of two inverses of one matrix, tr(A^-1 X A^-1 Y), as second derivatives of
 * likelihoods have them: of A = E + U V^H of sparse sides (pushed_inverses.c), K = S^-1, or of a
 * field A = E + c M^-1 (sparse_updates.c), K = H^-1:
 *
 *   A^-1 U_i = E^-1 U K P_i, dense (P_i: the columns of U_i)
 *   tr(A^-1 N A^-1 N') = tr(E^-2 N N') - 2 tr(K V^H E^-3 N N' U) + tr(K V^H E^-2 N U K V^H E^-2 N'
 * U) A^-1 M^-1 = E^-1 K,  A^-1 = M K E^-1
 *
 * The second for multiples N and N' of E: U has at most half as many columns as A rows, so that
 * half of the eigenvalues of E^-1 A are 1 and little is lost between the terms; in the others
 * nothing is. Sums between the inverses are taken term by term. Accepted where a probe is solved
 * with by the same K and E is not much nearer to a singular matrix than A is; else by the dense
 * form. */
#include "expr/properties.h"
#include "product_words.h"
#include "pushed_inverses.h"
#include "sparse_updates.h"
#include "thin_sum.h"

enum { TERMS = LOP_PUSHED_TERMS };

typedef struct pair {
    const lop_match *m;
    const lop_maker *mk;
    bool field;
    lop_pushed p;                   /* of a sum with sides */
    lop_seen s;                     /* of a field */
    const lop_node *sum, *e, *over; /* borrowed: A, E, E^-1 */
    const lop_node *k;              /* owned: K */
} pair;

static void drop(pair *a) {
    lop_pushed_close(&a->p);
    lop_seen_close(&a->s);
    lop_node_unref(a->k);
}

/* A as one or the other. To be dropped whatever comes back. */
static lop_status read_sum(const lop_match *m, const lop_maker *mk, const lop_node *sum, pair *a) {
    *a = (pair){.m = m, .mk = mk, .sum = sum};
    lop_status st = lop_pushed_read(mk, sum, m->root->dtype, &a->p);
    if (st == LOP_NOMATCH) {
        a->field = true;
        st = lop_seen_read(mk, sum, m->root->dtype, &a->s);
        if (st == LOP_OK && (a->s.u || a->s.own || a->s.factored)) st = LOP_NOMATCH;
    }
    a->e = a->field ? a->s.e : a->p.e;
    a->over = a->field ? a->s.over : a->p.over;
    return st == LOP_OK ? lop_inverse_closed(mk, a->field ? a->s.h : a->p.s, &a->k) : st;
}

/* -- what stands between the inverses */

static bool is_noise(const lop_word *w) {
    for (int i = 0; i < w->n; i++)
        if (!lop_is_noise(w->f[i])) return false;
    return true;
}
/* A multiple of E, or the identity where E is a multiple of that? */
static bool is_like_noise(const pair *a, const lop_word *w) {
    lop_coef c = lop_coef_const(1, 0);
    const lop_node *own = lop_peeled(a->e, &c);
    if (w->n == 0) return own->op == &lop_op_identity;
    return w->n == 1 && lop_node_alike(lop_peeled(w->f[0], &c), own, LOP_INFER_DEPTH);
}

/* Factors of `side` that w begins with, or where `end` its adjoint's that w ends with; 0: it does
 * not. */
static int met(const lop_word *w, const lop_node *side, bool end) {
    const lop_node *g[LOP_FACTORS];
    lop_coef c = lop_coef_const(1, 0);
    const int n = lop_factors_times(side, g, &c);
    if (n > w->n || !lop_coef_test(side->ctx, c, LOP_COEF_ONE)) return 0;
    for (int i = 0; i < n; i++)
        if (end ? !lop_is_view_of(w->f[w->n - 1 - i], g[i], LOP_H)
                : !lop_node_alike(w->f[i], g[i], LOP_INFER_DEPTH))
            return 0;
    return n;
}

/* Which U_i it is; -1: none. */
static int side_of(const pair *a, const lop_word *w, bool end, int *taken) {
    for (int i = 0; i < a->p.terms; i++)
        if ((*taken = met(w, a->p.side[i], end)) > 0) return i;
    return -1;
}

/* Does w begin with M^-1? */
static bool has_inner(const pair *a, const lop_word *w) {
    int64_t mode;
    const lop_node *in = w->n ? lop_inverse_seen(w->f[0], &mode) : NULL;
    return in && mode == LOP_N && lop_node_alike(in, a->s.m, LOP_INFER_DEPTH);
}

/* -- products */

static lop_status trace_of(const pair *a, const lop_word *w, const lop_node **out) {
    const lop_node *p = NULL, *root = a->m->root;
    lop_status st = lop_product_of(a->mk, w->f, w->n, &p);
    if (st == LOP_OK) st = lop_make1(a->mk, root->op, &root->attr, p, out);
    lop_node_unref(p);
    return st;
}

/* E^-1 N E^-1 of a diagonal N, and where `again` another one times E^-1. */
static lop_status weights(const pair *a, const lop_word *n, const lop_word *again, lop_word *out) {
    *out = (lop_word){.c = lop_coef_const(1, 0)};
    lop_status st = lop_word_one(out, a->over);
    if (st == LOP_OK) st = lop_word_add(out, n->f, 0, n->n);
    if (st == LOP_OK) st = lop_word_one(out, a->over);
    if (st == LOP_OK && again) st = lop_word_add(out, again->f, 0, again->n);
    return st == LOP_OK && again ? lop_word_one(out, a->over) : st;
}

/* V^H D U, as the Block of V_i^H D U_j. Owned. */
static lop_status gram(const pair *a, const lop_word *d, const lop_node **out) {
    const lop_node *part[TERMS * TERMS] = {NULL};
    const int n = a->p.terms;
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < n; i++)
        for (int j = 0; st == LOP_OK && j < n; j++) {
            lop_word w = {.n = 0};
            st = lop_word_one(&w, a->p.across[i]);
            if (st == LOP_OK) st = lop_word_add(&w, d->f, 0, d->n);
            if (st == LOP_OK) st = lop_word_one(&w, a->p.side[j]);
            if (st == LOP_OK) st = lop_product_of(a->mk, w.f, w.n, &part[i * n + j]);
            lop_word_close(&w);
        }
    if (st == LOP_OK) st = lop_pushed_joined(&a->p, part, n, n, out);
    for (int i = 0; i < n * n; i++) lop_node_unref(part[i]);
    return st;
}

/* The trace of K X K Y. */
static lop_status between(const pair *a, const lop_node *x, const lop_node *y,
                          const lop_node **out) {
    const lop_node *f[4] = {a->k, x, a->k, y};
    lop_word w = {.n = 0};
    lop_status st = lop_word_add(&w, f, 0, 4);
    if (st == LOP_OK) st = trace_of(a, &w, out);
    lop_word_close(&w);
    return st;
}

/* -- of a sum with sides */

/* A^-1 U_i, dense: E^-1 U K P_i. Columns of U may depend on others, as those of two factors that
 * both add up to 1, and along these K is of size 1 where it else is small: U takes that off, which
 * products with U^H E^-1 U alone would leave with an error of the square of the condition. */
static lop_status solved_side(const pair *a, int i, const lop_node **out) {
    const lop_maker *mk = a->mk;
    const lop_attr dt = {.i = {0, 0, 0, (int64_t)a->sum->dtype + 1}};
    const lop_node *rows = NULL, *unit = NULL, *k = NULL, *u = NULL, *w = NULL;
    lop_status st = lop_pushed_rows(&a->p, i, false, NULL, &rows);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &dt, rows, &unit);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_solve, NULL, a->p.s, unit, &k);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, a->p.u, k, &u);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, a->over, u, &w);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_dense, NULL, w, out);
    const lop_node *gone[] = {rows, unit, k, u, w};
    for (size_t j = 0; j < sizeof gone / sizeof gone[0]; j++) lop_node_unref(gone[j]);
    return st;
}

/* tr((A^-1 U_k)^H N (A^-1 U_i) Y) of U_i Y U_k^H beside N. */
static lop_status beside_noise(const pair *a, const lop_word *w, const lop_word *noise,
                               const lop_node **out) {
    int taken = 0, last = 0;
    const int i = side_of(a, w, false, &taken), k = side_of(a, w, true, &last);
    const lop_node *right = NULL, *left = NULL, *turned = NULL;
    lop_word all = {.n = 0};
    if (i < 0 || k < 0 || taken + last > w->n) return LOP_NOMATCH;
    lop_status st = solved_side(a, i, &right);
    if (st == LOP_OK) st = k == i ? (left = lop_node_ref(right), LOP_OK) : solved_side(a, k, &left);
    if (st == LOP_OK) st = lop_view_once(a->mk, LOP_H, left, &turned);
    if (st == LOP_OK) st = lop_word_one(&all, turned);
    if (st == LOP_OK) st = lop_word_add(&all, noise->f, 0, noise->n);
    if (st == LOP_OK) st = lop_word_one(&all, right);
    if (st == LOP_OK) st = lop_word_add(&all, w->f, taken, w->n - last);
    if (st == LOP_OK) st = trace_of(a, &all, out);
    lop_word_close(&all);
    const lop_node *gone[] = {right, left, turned};
    for (size_t j = 0; j < sizeof gone / sizeof gone[0]; j++) lop_node_unref(gone[j]);
    return st;
}

/* tr((A^-1 U_i) Y (A^-1 U_j) Y') of U_i Y and U_j Y', or one of them beside noise. */
static lop_status of_sides(const pair *a, const lop_word *x, const lop_word *y,
                           const lop_node **out) {
    int first = 0, second = 0;
    const int i = side_of(a, x, false, &first), j = side_of(a, y, false, &second);
    const lop_node *left = NULL, *right = NULL;
    lop_word all = {.n = 0};
    if (i < 0 || j < 0) {
        if (is_noise(y)) return beside_noise(a, x, y, out);
        return is_noise(x) ? beside_noise(a, y, x, out) : LOP_NOMATCH;
    }
    lop_status st = solved_side(a, i, &left);
    if (st == LOP_OK) st = solved_side(a, j, &right);
    if (st == LOP_OK) st = lop_word_one(&all, left);
    if (st == LOP_OK) st = lop_word_add(&all, x->f, first, x->n);
    if (st == LOP_OK) st = lop_word_one(&all, right);
    if (st == LOP_OK) st = lop_word_add(&all, y->f, second, y->n);
    if (st == LOP_OK) st = trace_of(a, &all, out);
    lop_word_close(&all);
    lop_node_unref(left);
    lop_node_unref(right);
    return st;
}

/* -- of a field */

/* What A^-1 and what follows it are: E^-1 K of M^-1, M K E^-1 of others; put behind out. */
static lop_status pushed(const pair *a, const lop_word *w, lop_word *out) {
    const bool inner = has_inner(a, w);
    lop_status st = lop_word_one(out, inner ? a->over : a->s.m);
    if (st == LOP_OK) st = lop_word_one(out, a->k);
    if (st == LOP_OK && !inner) st = lop_word_one(out, a->over);
    return st == LOP_OK ? lop_word_add(out, w->f, inner, w->n) : st;
}

static lop_status of_field(const pair *a, const lop_word *x, const lop_word *y,
                           const lop_node **out) {
    lop_word all = {.n = 0};
    lop_status st = pushed(a, x, &all);
    if (st == LOP_OK) st = pushed(a, y, &all);
    if (st == LOP_OK) st = trace_of(a, &all, out);
    lop_word_close(&all);
    return st;
}

/* -- of noise alone */

/* by[i] term[i] added up. */
static lop_status added(const pair *a, const lop_node *const *term, const lop_coef *by, int n,
                        const lop_node **out) {
    const lop_node *sum = NULL;
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < n; i++) {
        const lop_attr times = lop_coef_attr(by[i]);
        const lop_node *one = NULL, *more = NULL;
        st = lop_make1(a->mk, &lop_op_scale, &times, term[i], &one);
        if (st == LOP_OK)
            st = sum ? lop_make2(a->mk, &lop_op_add, NULL, sum, one, &more)
                     : (more = lop_node_ref(one), LOP_OK);
        lop_node_unref(one);
        lop_node_unref(sum);
        sum = more;
    }
    *out = sum;
    return st;
}

static lop_status of_noise(const pair *a, const lop_word *x, const lop_word *y,
                           const lop_node **out) {
    const lop_coef one = lop_coef_const(1, 0), by[3] = {one, lop_coef_const(-2, 0), one};
    lop_word own = {.n = 0}, low = own, d[3] = {own, own, own};
    const lop_node *g[3] = {NULL}, *term[3] = {NULL};
    lop_status st = weights(a, x, NULL, &d[0]);
    if (st == LOP_OK) st = weights(a, y, NULL, &d[1]);
    if (st == LOP_OK) st = weights(a, x, y, &d[2]);
    for (int i = 0; st == LOP_OK && i < 3; i++) st = gram(a, &d[i], &g[i]);
    if (st == LOP_OK) st = lop_word_add(&own, d[0].f, 0, d[0].n);
    if (st == LOP_OK) st = lop_word_add(&own, y->f, 0, y->n);
    if (st == LOP_OK) st = trace_of(a, &own, &term[0]);
    if (st == LOP_OK) st = lop_word_one(&low, a->k);
    if (st == LOP_OK) st = lop_word_one(&low, g[2]);
    if (st == LOP_OK) st = trace_of(a, &low, &term[1]);
    if (st == LOP_OK) st = between(a, g[0], g[1], &term[2]);
    if (st == LOP_OK) st = added(a, term, by, 3, out);
    lop_word_close(&own);
    lop_word_close(&low);
    for (int i = 0; i < 3; i++) {
        lop_word_close(&d[i]);
        lop_node_unref(g[i]);
        lop_node_unref(term[i]);
    }
    return st;
}

/* -- term by term */

static lop_status of_words(const pair *a, const lop_word *x, const lop_word *y,
                           const lop_node **out) {
    if (a->field) return of_field(a, x, y, out);
    return is_like_noise(a, x) && is_like_noise(a, y) ? of_noise(a, x, y, out)
                                                      : of_sides(a, x, y, out);
}

/* The terms of what is one sum, each with its number; else it alone. To be closed. */
static lop_status opened(const lop_maker *mk, const lop_word *w, lop_word *term, int *n) {
    const lop_node *of[TERMS];
    int mode = LOP_N;
    lop_coef c = lop_coef_const(1, 0);
    const lop_node *sum = w->n == 1 ? lop_sum_seen(w->f[0], &mode, &c) : NULL;
    const int count = sum ? lop_terms_of(sum, of, TERMS) : 0;
    lop_status st = sum && !count ? LOP_NOMATCH : LOP_OK;
    *n = 0;
    for (int i = 0; st == LOP_OK && i < count; i++) {
        st = lop_word_read(mk, of[i], mode, &term[(*n)++]);
        term[i].c = lop_coef_times(mk->ctx, term[i].c, lop_coef_times(mk->ctx, c, w->c));
    }
    if (count) return st;
    term[(*n)++] = (lop_word){.c = w->c};
    return st == LOP_OK ? lop_word_add(&term[0], w->f, 0, w->n) : st;
}

/* The sum over all pairs of terms. */
static lop_status of_pairs(const pair *a, const lop_word *x, const lop_word *y,
                           const lop_node **out) {
    lop_word left[TERMS], right[TERMS];
    const lop_node *value[TERMS * TERMS] = {NULL};
    lop_coef by[TERMS * TERMS];
    int n = 0, k = 0, count = 0;
    lop_status st = opened(a->mk, x, left, &n);
    if (st == LOP_OK) st = opened(a->mk, y, right, &k);
    for (int i = 0; st == LOP_OK && i < n; i++)
        for (int j = 0; st == LOP_OK && j < k; j++) {
            by[count] = lop_coef_times(a->mk->ctx, left[i].c, right[j].c);
            st = of_words(a, &left[i], &right[j], &value[count++]);
        }
    if (st == LOP_OK) st = added(a, value, by, count, out);
    for (int i = 0; i < n; i++) lop_word_close(&left[i]);
    for (int i = 0; i < k; i++) lop_word_close(&right[i]);
    for (int i = 0; i < count; i++) lop_node_unref(value[i]);
    return st;
}

/* The places of the only two inverses of one sum, seen in one mode, N or T; NULL: there are none.
 */
static const lop_node *two_of_one(const lop_word *w, int at[2], int *mode) {
    const lop_node *sum = NULL;
    int found = 0;
    for (int i = 0; i < w->n; i++) {
        int64_t seen;
        const lop_node *in = lop_inverse_seen(w->f[i], &seen);
        if (!in || in->op != &lop_op_sum) continue;
        if (sum && !lop_node_alike(in, sum, LOP_INFER_DEPTH)) return NULL;
        if (found == 2 || (sum && seen != *mode)) return NULL;
        at[found++] = i;
        sum = in;
        *mode = (int)seen;
    }
    return found == 2 && (*mode == LOP_N || *mode == LOP_T) ? sum : NULL;
}

/* Does the product pass through fewer columns than U, or a side of it, has? Then it does less. */
static bool is_thin(const pair *a, const lop_word *w) {
    int64_t least = lop_rows(a->sum);
    for (int i = 0; !a->field && i < a->p.terms; i++)
        if (lop_cols(a->p.side[i]) < least) least = lop_cols(a->p.side[i]);
    for (int i = 0; i < w->n; i++)
        if (2 * lop_rows(w->f[i]) <= least || 2 * lop_cols(w->f[i]) <= least) return true;
    return false;
}

/* What stands behind each of the two. */
static lop_status split(const lop_word *w, const int at[2], lop_word *x, lop_word *y) {
    *x = *y = (lop_word){.c = lop_coef_const(1, 0)};
    lop_status st = lop_word_add(x, w->f, at[0] + 1, at[1]);
    if (st == LOP_OK) st = lop_word_add(y, w->f, at[1] + 1, w->n);
    return st == LOP_OK ? lop_word_add(y, w->f, 0, at[0]) : st;
}

LOP_BUILD(pushed_pair) {
    const lop_node *root = m->root, *p = root->child[0], *sum = NULL, *value = NULL, *times = NULL,
                   *alt = NULL;
    lop_word all, x = {.n = 0}, y = x;
    int at[2] = {0, 0}, mode = LOP_N, again = LOP_N;
    if (lop_nbatch(p) > 0 || !lop_is_blas(root->dtype) || p->dtype != root->dtype ||
        !lop_is_square(p))
        return LOP_NOMATCH;
    lop_status st = lop_word_read(mk, p, LOP_N, &all);
    if (st == LOP_OK) sum = two_of_one(&all, at, &mode);
    if (st == LOP_OK && !sum) st = LOP_NOMATCH;
    if (st == LOP_OK && mode == LOP_T) { /* the transposed product has the same trace */
        lop_word_close(&all);
        st = lop_word_read(mk, p, LOP_T, &all);
        if (st == LOP_OK) sum = two_of_one(&all, at, &again);
        if (st == LOP_OK && (!sum || again != LOP_N)) st = LOP_NOMATCH;
    }
    if (st == LOP_OK) st = split(&all, at, &x, &y);
    pair a = {.m = m};
    if (st == LOP_OK) st = read_sum(m, mk, sum, &a);
    if (st == LOP_OK && is_thin(&a, &all)) st = LOP_NOMATCH;
    if (st == LOP_OK) st = of_pairs(&a, &x, &y, &value);
    const lop_attr by = lop_coef_attr(all.c);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &by, value, &times);
    if (st == LOP_OK && times->dtype != root->dtype) st = LOP_NOMATCH;
    if (st == LOP_OK) st = lop_product_by_dense(mk, root, &alt);
    const lop_noise_check k = {mk, sum, a.e, a.field ? lop_seen_solution : lop_pushed_solution,
                               a.field ? (const void *)&a.s : (const void *)&a.p};
    if (st == LOP_OK) st = lop_noise_checked(&k, times, alt, out);
    drop(&a);
    lop_word_close(&all);
    lop_word_close(&x);
    lop_word_close(&y);
    const lop_node *gone[] = {value, times, alt};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}
