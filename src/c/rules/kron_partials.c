/* kron_partials.c: what an operator means for a factor of a Kron, kron_partial, of Krons and of
 * products through few columns: what the formula of Woodbury leaves of it, of an inverse of
 * A (x) B + U V^H.
 *
 *   A (x) H, X at H's place       A sum(conj(X) o H), so of views, inverses and products of Krons
 *   U V^T of k columns            F (conj(X) (x) I) G^T,  F and G: U and V with a row for each row
 *                                 of the result, a column for each row of X and of k
 *
 * (Van Loan and Pitsianis 1993, section 4.) Nothing of the whole's rows and columns is formed. */
#include "product_words.h"
#include "rewrite/costs.h"

/* X as an operator, of what structure it has, seen through the mode. Owned. */
static lop_status factor_seen(const lop_match *m, const lop_maker *mk, int64_t mode,
                              const lop_node **out) {
    const lop_node *x = m->root->child[1], *op = NULL;
    const lop_attr view = {.i = {mode, 0, 0, 0}};
    const bool written = x->op == &lop_op_todense && x->child[0]->dtype == x->dtype;
    lop_status st = LOP_OK;
    if (written)
        op = lop_node_ref(x->child[0]);
    else
        st = lop_make1(mk, &lop_op_dense, NULL, x, &op);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_view, &view, op, out);
    lop_node_unref(op);
    return st;
}

/* How many factors, from the end or the beginning on, stand at X's place; 0: none do. */
static int place_of(const lop_node *kron, const lop_node *x, bool first) {
    int64_t rows = 1, cols = 1;
    for (int k = 1; k < kron->n; k++) {
        const lop_node *a = kron->child[first ? k - 1 : kron->n - k];
        rows *= lop_rows(a); /* of the whole's, which are sizes */
        cols *= lop_cols(a);
        if (rows == lop_rows(x) && cols == lop_cols(x)) return k;
        if (rows > lop_rows(x) || cols > lop_cols(x)) return 0;
    }
    return 0;
}

/* a times the trace of X^H H. */
static lop_status times_trace(const lop_match *m, const lop_maker *mk, const lop_node *a,
                              const lop_node *h, const lop_node **out) {
    const lop_attr sum = {.i = {0, 0, 0, m->root->attr.i[3]}}, many = {.i = {lop_cols(a), 0, 0, 0}};
    const lop_node *xh = NULL, *p = NULL, *c = NULL, *all = NULL, *d = NULL, *ad = NULL;
    lop_status st = factor_seen(m, mk, LOP_H, &xh);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_prod, NULL, xh, h, &p);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_trace, &sum, p, &c);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_repeat, &many, c, &all);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_diag, NULL, all, &d);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_prod, NULL, a, d, &ad);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &sum, ad, out);
    const lop_node *gone[] = {xh, p, c, all, d, ad};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* Factors from, ..., to - 1 as one. Owned. */
static lop_status some_of(const lop_maker *mk, const lop_node *kron, int from, int to,
                          const lop_node **out) {
    if (to - from > 1)
        return lop_make_op(mk, kron->op, NULL, to - from, &kron->child[from], NULL, out);
    *out = lop_node_ref(kron->child[from]);
    return LOP_OK;
}

/* Floats of the root's precision. */
static bool has_digits(const lop_match *m, const lop_node *a) {
    const lop_dtype dt = lop_dtype_real(m->root->dtype);
    const lop_node *x = m->root->child[1];
    return lop_is_blas(m->root->dtype) && lop_is_blas(a->dtype) && lop_is_blas(x->dtype) &&
           lop_dtype_real(a->dtype) == dt && lop_dtype_real(x->dtype) == dt;
}

static lop_status of_kron(const lop_match *m, const lop_maker *mk, const lop_node *kron,
                          const lop_node **out) {
    const bool first = m->root->attr.i[0] != 0;
    const int k = place_of(kron, m->root->child[1], first), cut = first ? k : kron->n - k;
    const lop_node *rest = NULL, *there = NULL;
    if (k == 0 || lop_nbatch(kron) > 0 || lop_nbatch(m->root) > 0 || !has_digits(m, kron))
        return LOP_NOMATCH;
    lop_status st = some_of(mk, kron, first ? cut : 0, first ? kron->n : cut, &rest);
    if (st == LOP_OK) st = some_of(mk, kron, first ? 0 : cut, first ? cut : kron->n, &there);
    if (st == LOP_OK) st = times_trace(m, mk, rest, there, out);
    lop_node_unref(rest);
    lop_node_unref(there);
    return st;
}

/* -- products of Krons, of views and of inverses of them */

enum { PLACES = 8 };

/* What is a Kron behind views and inverses, or NULL. */
static const lop_node *kron_within(const lop_node *a, int *mode, bool *inverted) {
    *mode = LOP_N;
    *inverted = false;
    for (; a->op == &lop_op_view || a->op == &lop_op_inverse; a = a->child[0]) {
        if (a->op == &lop_op_view) *mode ^= (int)a->attr.i[0];
        if (a->op == &lop_op_inverse) *inverted = !*inverted;
    }
    return a->op == &lop_op_kron && lop_nbatch(a) == 0 && a->n <= PLACES ? a : NULL;
}

/* Factor i of a Kron, as it stands in a view or the inverse of that. Owned. */
static lop_status factor_at(const lop_maker *mk, const lop_node *kron, int i, int mode,
                            bool inverted, const lop_node **out) {
    const lop_node *a = NULL;
    lop_status st = LOP_OK;
    if (!inverted)
        a = lop_node_ref(kron->child[i]);
    else
        st = lop_is_square(kron->child[i]) ? lop_inverse_closed(mk, kron->child[i], &a)
                                           : LOP_NOMATCH;
    if (st == LOP_OK) st = lop_view_once(mk, mode, a, out);
    lop_node_unref(a);
    return st;
}

/* Place i of a product of Krons of the same places. Owned. */
static lop_status place_at(const lop_maker *mk, const lop_word *w, int i, const lop_node **out) {
    const lop_node *f[LOP_FACTORS] = {NULL};
    lop_status st = LOP_OK;
    for (int j = 0; st == LOP_OK && j < w->n; j++) {
        int mode;
        bool inverted;
        const lop_node *kron = kron_within(w->f[j], &mode, &inverted);
        st = factor_at(mk, kron, i, mode, inverted, &f[j]);
        if (st == LOP_OK && j > 0 && lop_cols(f[j - 1]) != lop_rows(f[j])) st = LOP_NOMATCH;
    }
    if (st == LOP_OK) st = lop_product_of(mk, f, w->n, out);
    for (int j = 0; j < w->n; j++) lop_node_unref(f[j]);
    return st;
}

/* The Kron that such a product is. Owned; NOMATCH: it is none. */
static lop_status one_kron(const lop_maker *mk, const lop_word *w, const lop_node **out) {
    const lop_node *place[PLACES] = {NULL};
    int mode, n = 0;
    bool inverted;
    for (int j = 0; j < w->n; j++) {
        const lop_node *kron = kron_within(w->f[j], &mode, &inverted);
        if (!kron || (j > 0 && kron->n != n)) return LOP_NOMATCH;
        n = kron->n;
    }
    lop_status st = n > 0 ? LOP_OK : LOP_NOMATCH;
    for (int i = 0; st == LOP_OK && i < n; i++) st = place_at(mk, w, i, &place[i]);
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_kron, NULL, n, place, NULL, out);
    for (int i = 0; i < n; i++) lop_node_unref(place[i]);
    return st;
}

/* A sum of Krons among Krons, whose terms are taken one by one: which; -1: there is none. */
static int sum_among(const lop_word *w, const lop_node **term, int *terms, int *mode, lop_coef *c) {
    int at = -1, seen;
    bool inverted;
    for (int i = 0; i < w->n; i++) {
        if (kron_within(w->f[i], &seen, &inverted)) continue;
        const lop_node *sum = at < 0 ? lop_sum_seen(w->f[i], mode, c) : NULL;
        *terms = sum ? lop_terms_of(sum, term, PLACES) : 0;
        if (*terms == 0) return -1;
        at = i;
    }
    for (int i = 0; at >= 0 && i < *terms; i++) {
        const lop_node *a = term[i];
        while (a->op == &lop_op_scaled) a = a->child[0];
        if (a->op != &lop_op_identity && !kron_within(a, &seen, &inverted)) return -1;
    }
    return at;
}

/* The root's value of w with a term in the place of factor `at`, times their numbers. */
static lop_status of_term(const lop_match *m, const lop_maker *mk, const lop_word *w, int at,
                          const lop_node *term, int mode, const lop_node **out) {
    lop_word own, all = {.n = 0};
    const lop_node *kron = NULL, *value = NULL;
    lop_status st = lop_word_read(mk, term, mode, &own);
    const lop_attr by = lop_coef_attr(lop_coef_times(mk->ctx, w->c, own.c));
    if (st == LOP_OK) st = lop_word_add(&all, w->f, 0, at);
    if (st == LOP_OK) st = lop_word_add(&all, own.f, 0, own.n);
    if (st == LOP_OK) st = lop_word_add(&all, w->f, at + 1, w->n);
    if (st == LOP_OK) st = one_kron(mk, &all, &kron);
    if (st == LOP_OK) st = of_kron(m, mk, kron, &value);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &by, value, out);
    lop_word_close(&own);
    lop_word_close(&all);
    lop_node_unref(kron);
    lop_node_unref(value);
    return st;
}

/* Of a Kron, of what is one, and of a product with one sum of such. */
LOP_BUILD(partial_krons) {
    const lop_node *term[PLACES], *kron = NULL, *value = NULL, *sum = NULL;
    lop_word w;
    int terms = 0, mode = LOP_N;
    lop_coef c = lop_coef_const(1, 0);
    lop_status st = lop_word_opened(mk, m->root->child[0], LOP_N, &w);
    const int at = st == LOP_OK ? sum_among(&w, term, &terms, &mode, &c) : -1;
    w.c = lop_coef_times(mk->ctx, w.c, c);
    const lop_attr by = lop_coef_attr(w.c);
    if (st == LOP_OK && at < 0) {
        st = one_kron(mk, &w, &kron);
        if (st == LOP_OK) st = of_kron(m, mk, kron, &value);
        if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &by, value, out);
    }
    for (int i = 0; st == LOP_OK && at >= 0 && i < terms; i++) {
        const lop_node *one = NULL, *before = sum;
        st = of_term(m, mk, &w, at, term[i], mode, &one);
        if (st == LOP_OK)
            st = before ? lop_make2(mk, &lop_op_add, NULL, before, one, &sum)
                        : (sum = lop_node_ref(one), LOP_OK);
        if (sum != before) lop_node_unref(before);
        lop_node_unref(one);
    }
    if (st == LOP_OK && at >= 0)
        *out = sum;
    else
        lop_node_unref(sum);
    lop_word_close(&w);
    lop_node_unref(kron);
    lop_node_unref(value);
    return st;
}

/* -- through few columns */

/* U with a row for each row of the result. Owned. */
static lop_status gathered(const lop_maker *mk, const lop_node *u, int64_t of_x, bool first,
                           const lop_node **out) {
    const int64_t rows = lop_rows(u) / of_x;
    const lop_attr to = {.i = {first ? of_x : 1, rows, first ? 1 : of_x, lop_cols(u)}};
    return lop_make1(mk, &lop_op_gather, &to, u, out);
}

static double pair_seconds(const lop_match *m, const lop_costs *c, int64_t k) {
    const lop_node *x = m->root->child[1], *r = m->root;
    const double first = (double)lop_rows(x) * (double)lop_cols(x) * (double)lop_cols(r),
                 then = (double)lop_rows(r) * (double)lop_rows(x) * (double)lop_cols(r);
    return c->overhead + 2 * (first + then) * (double)k / c->flop_rate;
}
static lop_status make_pair(const lop_match *m, const lop_maker *mk, const lop_node *left,
                            const lop_node *right, const lop_node **out) {
    const lop_node *x = m->root->child[1], *turned = NULL, *f = NULL, *g = NULL, *gt = NULL,
                   *cx = NULL, *eye = NULL, *kron = NULL, *y = NULL, *fo = NULL;
    const lop_attr turn = {.i = {LOP_T, 0, 0, 0}};
    const int64_t k = lop_cols(left);
    const lop_node like = {
        .shape = {.ndim = 2, .dim = {k, k}}, .dtype = LOP_f64, .weak = LOP_WEAK, .core = 2};
    const bool first = m->root->attr.i[0] != 0;
    lop_status st = lop_make1(mk, &lop_op_swap, &turn, right, &turned);
    if (st == LOP_OK) st = gathered(mk, left, lop_rows(x), first, &f);
    if (st == LOP_OK) st = gathered(mk, turned, lop_cols(x), first, &g);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_swap, &turn, g, &gt);
    if (st == LOP_OK) st = factor_seen(m, mk, LOP_C, &cx);
    if (st == LOP_OK) st = lop_make(mk, "identity", NULL, 0, NULL, &like, &eye);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_kron, NULL, cx, eye, &kron);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, kron, gt, &y);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_dense, NULL, f, &fo);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, fo, y, out);
    const lop_node *gone[] = {turned, f, g, gt, cx, eye, kron, y, fo};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}
LOP_BUILD(partial_product) {
    const lop_node *a = m->root->child[0];
    const double all = (double)lop_rows(a) * (double)lop_cols(a);
    if (lop_nbatch(m->root) > 0 || !has_digits(m, a)) return LOP_NOMATCH;
    const lop_pair_reader r = {
        pair_seconds, lop_price_pass(lop_costs_of(mk->ctx), m->root->dtype, all, 2).seconds,
        make_pair};
    return lop_chain_pair(m, mk, &r, out);
}
