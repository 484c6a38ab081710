/* between_sums.c: entries, diagonals and traces of L (T_1 + T_2 + ..) R, where each term,
 * multiplied out and views of products opened, is A^-1 X A^-1 or A^-1 X A^-1 Y A^-1 of sparse A, X
 * and Y (between_sparse.c): the second derivatives of traces and diagonals of A^-1. A sum of such
 * terms between inverses has no way but the dense form. */
#include "ops/shared/sparse_solver.h"
#include "product_words.h"

enum { TERMS = 8 };

/* Which factor is a sum that is not sparse, where all others are sparse or inverses; -1: none. */
static int sum_among(const lop_word *w, const lop_node **term, int *terms, int *mode, lop_coef *c) {
    int at = -1;
    for (int i = 0; i < w->n; i++) {
        int64_t seen;
        if (lop_inverse_seen(w->f[i], &seen) || lop_sparse_entries(w->f[i]) >= 0) continue;
        const lop_node *sum = at < 0 ? lop_sum_seen(w->f[i], mode, c) : NULL;
        *terms = sum ? lop_terms_of(sum, term, TERMS) : 0;
        if (*terms == 0) return -1;
        at = i;
    }
    return at;
}

/* The root's action on w with a term, seen through the mode, in the place of the sum, times its
 * number. NOMATCH: that has no way of its own. */
static lop_status of_term(const lop_maker *mk, const lop_node *root, const lop_word *w, int at,
                          const lop_node *term, int mode, const lop_node **out) {
    lop_word own, all = {.n = 0};
    const lop_node *child[3] = {NULL, root->n > 1 ? root->child[1] : NULL,
                                root->n > 2 ? root->child[2] : NULL},
                   *value = NULL;
    lop_status st = lop_word_opened(mk, term, mode, &own);
    const lop_attr by = lop_coef_attr(own.c);
    if (st == LOP_OK) st = lop_word_add(&all, w->f, 0, at);
    if (st == LOP_OK) st = lop_word_add(&all, own.f, 0, own.n);
    if (st == LOP_OK) st = lop_word_add(&all, w->f, at + 1, w->n);
    if (st == LOP_OK) st = lop_reads_between_sparse(mk, &all, root->op == &lop_op_trace);
    if (st == LOP_OK) st = lop_product_of(mk, all.f, all.n, &child[0]);
    if (st == LOP_OK) st = lop_make_op(mk, root->op, &root->attr, root->n, child, NULL, &value);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &by, value, out);
    lop_word_close(&own);
    lop_word_close(&all);
    lop_node_unref(child[0]);
    lop_node_unref(value);
    return st;
}

static lop_status of_terms(const lop_maker *mk, const lop_node *root, const lop_word *w,
                           const lop_node **out) {
    const lop_node *term[TERMS], *sum = NULL;
    int terms = 0, mode = LOP_N;
    lop_coef c = w->c;
    const int at = sum_among(w, term, &terms, &mode, &c);
    const lop_attr by = lop_coef_attr(c);
    lop_status st = at < 0 ? LOP_NOMATCH : LOP_OK;
    for (int i = 0; st == LOP_OK && i < terms; i++) {
        const lop_node *one = NULL, *before = sum;
        st = of_term(mk, root, w, at, term[i], mode, &one);
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

LOP_BUILD(between_sums) {
    const lop_node *p = m->root->child[0];
    lop_word w;
    if (lop_nbatch(p) > 0 || !lop_is_blas(m->root->dtype) || !lop_is_blas(p->dtype))
        return LOP_NOMATCH;
    lop_status st = lop_word_opened(mk, p, LOP_N, &w);
    if (st == LOP_OK) st = of_terms(mk, m->root, &w, out);
    lop_word_close(&w);
    return st;
}
