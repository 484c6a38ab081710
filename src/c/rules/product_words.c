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

/* A term of a sum, seen through a mode, times a number. */
typedef struct part {
    const lop_node *node; /* owned */
    int mode;
    lop_coef c;
} part;

static void drop(part *list, int n) {
    for (int i = 0; i < n; i++) lop_node_unref(list[i].node);
}
/* The terms of t, a sum or B + U C V^H: of its mode and number. Owned; n of them, 0: it is neither.
 */
static lop_status two_terms(const lop_maker *mk, bool all, const part *t, part *two, int *n) {
    const lop_node *x = t->node;
    const bool update = all && x->op == &lop_op_lowrankupdate;
    *n = 0;
    if (!update && x->op != &lop_op_sum) return LOP_OK;
    two[0] = two[1] = *t;
    lop_status st =
        update ? lop_make_op(mk, &lop_op_lowrank, NULL, x->n - 1, x->child + 1, NULL, &two[0].node)
               : (two[0].node = lop_node_ref(x->child[1]), LOP_OK);
    if (st != LOP_OK) return st;
    two[1].node = lop_node_ref(x->child[0]);
    *n = 2;
    return LOP_OK;
}
/* The terms of a sum and of sums within it, behind multiples and views, in `list`, of which *n are
 * to be dropped whatever comes back. NOMATCH: a is none, or has too many. */
static lop_status terms_of(const lop_maker *mk, bool all, const lop_node *a, part *list, int *n) {
    part todo[LOP_WORDS + 1] = {{lop_node_ref(a), LOP_N, lop_coef_const(1, 0)}};
    int waiting = 1;
    lop_status st = LOP_OK;
    *n = 0;
    while (st == LOP_OK && waiting > 0) {
        part t = todo[--waiting], two[2];
        const lop_node *x = t.node;
        int more = 0;
        if (x->op == &lop_op_scaled || x->op == &lop_op_view) {
            if (x->op == &lop_op_view) t.mode ^= (int)x->attr.i[0];
            const lop_coef by = lop_coef_of(&x->attr);
            if (x->op == &lop_op_scaled)
                t.c = lop_coef_times(x->ctx, t.c, t.mode & LOP_C ? lop_coef_conj(x->ctx, by) : by);
            t.node = lop_node_ref(x->child[0]);
            todo[waiting++] = t;
            lop_node_unref(x);
            continue;
        }
        st = waiting + 2 > LOP_WORDS ? LOP_NOMATCH : two_terms(mk, all, &t, two, &more);
        for (int i = 0; i < more; i++) todo[waiting++] = two[i];
        if (st == LOP_OK && !more) {
            if (*n == LOP_WORDS)
                st = LOP_NOMATCH;
            else
                list[(*n)++] = (part){lop_node_ref(x), t.mode, t.c};
        }
        lop_node_unref(x);
    }
    drop(todo, waiting);
    return st == LOP_OK && *n < 2 ? LOP_NOMATCH : st;
}

/* Which factor is a sum to be opened first, where all others stay or (all) are sums; -1: none. */
static int sum_among(bool (*stays)(const lop_node *f), bool all, const lop_word *w) {
    int at = -1;
    for (int i = 0; i < w->n; i++) {
        lop_coef c = w->c;
        int mode;
        if (stays(w->f[i])) continue;
        const bool sum = lop_sum_seen(w->f[i], &mode, &c) || (all && lop_update_seen(w->f[i]));
        if (!sum || (at >= 0 && !all)) return -1;
        if (at < 0) at = i;
    }
    return at;
}

lop_status lop_word_with(const lop_maker *mk, const lop_word *w, int at, const lop_node *term,
                         int mode, lop_word *all) {
    lop_word own;
    *all = (lop_word){.n = 0};
    lop_status st = lop_word_opened(mk, term, mode, &own);
    all->c = lop_coef_times(mk->ctx, w->c, own.c);
    if (st == LOP_OK) st = lop_word_add(all, w->f, 0, at);
    if (st == LOP_OK) st = lop_word_add(all, own.f, 0, own.n);
    if (st == LOP_OK) st = lop_word_add(all, w->f, at + 1, w->n);
    lop_word_close(&own);
    return st;
}

const lop_node *lop_update_seen(const lop_node *f) {
    if (f->op == &lop_op_view) f = f->child[0];
    if (f->op == &lop_op_scaled) f = f->child[0];
    return f->op == &lop_op_lowrankupdate ? f : NULL;
}
lop_status lop_words_multiplied_out(const lop_maker *mk, bool (*stays)(const lop_node *f), bool all,
                                    lop_word *list, int *n) {
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < *n;) {
        part term[LOP_WORDS];
        int terms = 0;
        const int at = sum_among(stays, all, &list[i]);
        if (at < 0) {
            i++;
            continue;
        }
        st = terms_of(mk, all, list[i].f[at], term, &terms);
        if (st == LOP_OK && *n + terms - 1 > LOP_WORDS) st = LOP_NOMATCH;
        if (st == LOP_OK) {
            lop_word w = list[i];
            list[i] = (lop_word){.n = 0};
            for (int t = 0; st == LOP_OK && t < terms; t++) {
                lop_word *to = t ? &list[(*n)++] : &list[i];
                st = lop_word_with(mk, &w, at, term[t].node, term[t].mode, to);
                to->c = lop_coef_times(mk->ctx, to->c, term[t].c);
            }
            lop_word_close(&w);
        }
        drop(term, terms);
    }
    return st;
}

lop_status lop_words_summed(const lop_maker *mk, const lop_node *root, const lop_word *list, int n,
                            lop_word_value *of, const lop_node **out) {
    const lop_node *sum = NULL;
    bool pays = false;
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < n; i++) {
        const lop_node *one = NULL, *before = sum;
        st = of(mk, root, &list[i], n == 1, &pays, &one);
        if (st == LOP_OK)
            st = before ? lop_make2(mk, &lop_op_add, NULL, before, one, &sum)
                        : (sum = lop_node_ref(one), LOP_OK);
        if (sum != before) lop_node_unref(before);
        lop_node_unref(one);
    }
    if (st == LOP_OK && !pays) st = LOP_NOMATCH;
    if (st == LOP_OK)
        *out = sum;
    else
        lop_node_unref(sum);
    return st;
}
