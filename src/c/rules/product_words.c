/* product_words.c: product_words.h. */
#include "product_words.h"

void lop_word_close(lop_word *w) {
    for (int i = 0; i < w->n; i++) lop_node_unref(w->f[i]);
    w->n = 0;
}

lop_status lop_word_one(lop_word *w, const lop_node *f) {
    if (w->n == LOP_FACTORS) return LOP_NOMATCH;
    w->f[w->n++] = lop_node_ref(f);
    return LOP_OK;
}
lop_status lop_word_add(lop_word *w, const lop_node *const *f, int from, int to) {
    lop_status st = LOP_OK;
    for (int i = from; st == LOP_OK && i < to; i++) st = lop_word_one(w, f[i]);
    return st;
}

lop_status lop_word_read(const lop_maker *mk, const lop_node *a, int mode, lop_word *w) {
    const lop_node *f[LOP_FACTORS];
    *w = (lop_word){.c = lop_coef_const(1, 0)};
    const int n = lop_factors_times(a, f, &w->c);
    if (n == 0) return LOP_NOMATCH;
    if (mode & LOP_C) w->c = lop_coef_conj(mk->ctx, w->c);
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < n; i++) {
        const lop_node *own = f[mode & LOP_T ? n - 1 - i : i];
        if (own->op == &lop_op_identity) continue;
        st = lop_view_once(mk, own->op == &lop_op_diag ? mode & LOP_C : mode, own, &w->f[w->n]);
        if (st == LOP_OK) w->n++;
    }
    return st;
}

const lop_node *lop_sum_seen(const lop_node *f, int *mode, lop_coef *c) {
    *mode = LOP_N;
    if (f->op == &lop_op_view) {
        *mode = (int)f->attr.i[0];
        f = f->child[0];
    }
    if (f->op == &lop_op_scaled) {
        lop_coef own = lop_coef_of(&f->attr);
        if (*mode & LOP_C) own = lop_coef_conj(f->ctx, own);
        *c = lop_coef_times(f->ctx, *c, own);
        f = f->child[0];
    }
    return f->op == &lop_op_sum ? f : NULL;
}
