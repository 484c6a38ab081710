/* distributed_traces.c: tr(L (T_1 + T_2 + ..) R) = sum_i tr(L T_i R), where each term is a product
 * with an inverse in it or passes through few columns, and what stands beside the sum is sparse or
 * an inverse: as in second derivatives of likelihoods, whose terms -A^-1 X_i A^-1 and u_i v_i^T
 * have ways of their own (pushed_pairs.c, between_sparse.c, those of bands, the chain of a thin
 * product), while a sum of them has none but the dense form. None is dearer alone. */
#include "expr/properties.h"
#include "product_words.h"

enum { TERMS = 8, THIN = 8 };

/* That of a BlockDiag is one of inverses. */
static bool is_inverse(const lop_node *f) {
    int64_t mode;
    if (f->op == &lop_op_view && f->child[0]->op == &lop_op_blockdiag) f = f->child[0];
    return lop_inverse_seen(f->op == &lop_op_blockdiag && f->n > 0 ? f->child[0] : f, &mode);
}
static int inverses(const lop_node *const *f, int n) {
    int found = 0;
    for (int i = 0; i < n; i++) found += is_inverse(f[i]);
    return found;
}

static bool is_thin(const lop_node *const *f, int n, int64_t rows) {
    for (int i = 0; i < n; i++)
        if (THIN * lop_rows(f[i]) <= rows || THIN * lop_cols(f[i]) <= rows) return true;
    return false;
}

/* Has each term a way of its own, where one has that the sum has not? */
static bool opens(const lop_node *const *term, int n) {
    const lop_node *f[LOP_FACTORS];
    int found = 0;
    for (int i = 0; i < n; i++) {
        lop_coef c = lop_coef_const(1, 0);
        const int factors = lop_factors_times(term[i], f, &c), in = inverses(f, factors);
        if (in == 0 && !is_thin(f, factors, lop_rows(term[i]))) return false;
        found += in;
    }
    return found >= 2;
}

/* Which factor is such a sum; -1: none. */
static int sum_among(const lop_node *const *f, int n, const lop_node **term, int *terms, int *mode,
                     lop_coef *c) {
    int at = -1;
    for (int i = 0; i < n; i++) {
        int seen;
        int64_t other;
        lop_coef own = lop_coef_const(1, 0);
        const lop_node *sum = at < 0 ? lop_sum_seen(f[i], &seen, &own) : NULL;
        const int count = sum ? lop_terms_of(sum, term, TERMS) : 0;
        if (count && opens(term, count)) {
            at = i;
            *terms = count;
            *mode = seen;
            *c = lop_coef_times(f[i]->ctx, *c, own);
        } else if (!lop_has_few_entries(f[i]) && !lop_inverse_seen(f[i], &other)) {
            return -1;
        }
    }
    return at;
}

/* The trace of f[..at) T f[at + 1..), T seen through the mode, times its number. */
static lop_status of_term(const lop_maker *mk, const lop_node *root, const lop_node *const *f,
                          int n, int at, const lop_node *term, int mode, const lop_node **out) {
    lop_word own, all = {.n = 0};
    const lop_node *p = NULL, *value = NULL;
    lop_status st = lop_word_read(mk, term, mode, &own);
    const lop_attr by = lop_coef_attr(own.c);
    if (st == LOP_OK) st = lop_word_add(&all, f, 0, at);
    if (st == LOP_OK) st = lop_word_add(&all, own.f, 0, own.n);
    if (st == LOP_OK) st = lop_word_add(&all, f, at + 1, n);
    if (st == LOP_OK && all.n == 0) st = LOP_NOMATCH;
    if (st == LOP_OK) st = lop_product_of(mk, all.f, all.n, &p);
    if (st == LOP_OK) st = lop_make1(mk, root->op, &root->attr, p, &value);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &by, value, out);
    lop_word_close(&own);
    lop_word_close(&all);
    lop_node_unref(p);
    lop_node_unref(value);
    return st;
}

LOP_BUILD(trace_distributed) {
    const lop_node *f[LOP_FACTORS], *term[TERMS], *root = m->root, *p = root->child[0], *sum = NULL;
    lop_coef c = lop_coef_const(1, 0);
    int terms = 0, mode = LOP_N;
    const bool plain = lop_nbatch(p) == 0 && lop_is_blas(root->dtype) && p->dtype == root->dtype;
    const int n = plain ? lop_factors_times(p, f, &c) : 0;
    const int at = n ? sum_among(f, n, term, &terms, &mode, &c) : -1;
    const lop_attr by = lop_coef_attr(c);
    lop_status st = at < 0 ? LOP_NOMATCH : LOP_OK;
    for (int i = 0; st == LOP_OK && i < terms; i++) {
        const lop_node *one = NULL, *before = sum;
        st = of_term(mk, root, f, n, at, term[i], mode, &one);
        if (st == LOP_OK && one->dtype != root->dtype) st = LOP_NOMATCH;
        if (st == LOP_OK)
            st = before ? lop_make2(mk, &lop_op_add, NULL, before, one, &sum)
                        : (sum = lop_node_ref(one), LOP_OK);
        if (sum != before) lop_node_unref(before);
        lop_node_unref(one);
    }
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &by, sum, out);
    lop_node_unref(sum);
    return st;
}
