/* between_sums.c: entries, diagonals and traces of L (T_1 + T_2 + ..) R, where each term,
 * multiplied out and views of products opened, is A^-1 X A^-1 or A^-1 X A^-1 Y A^-1 of sparse A, X
 * and Y (between_sparse.c): the second derivatives of traces and diagonals of A^-1. Of main
 * diagonals, rows U and W of entries stand beside them, too, and terms of few columns, without an
 * inverse or with one: those of quadratic forms and determinants of one A = U^T D U, whose
 * derivatives by D are read by U. Of A = B + U C V^H, B sparse, the bordered matrix stands for A
 * (sparse_borders.c). A sum of such terms has no way but the dense form. */
#include "expr/properties.h"
#include "ops/shared/sparse_solver.h"
#include "product_words.h"

enum { TERMS = 12, THIN = 8 };

/* A term of a sum, seen through a mode, times a number. */
typedef struct part {
    const lop_node *node; /* borrowed */
    int mode;
    lop_coef c;
} part;

/* The terms of a sum and of sums within it, behind multiples and views; 0: a is none, or has too
 * many. */
static int terms_of(const lop_node *a, part *term) {
    part todo[TERMS + 1] = {{.node = a, .mode = LOP_N, .c = lop_coef_const(1, 0)}};
    int waiting = 1, n = 0;
    while (waiting > 0) {
        part t = todo[--waiting];
        const lop_node *x = t.node;
        if (x->op == &lop_op_scaled) {
            const lop_coef by = lop_coef_of(&x->attr);
            t.c = lop_coef_times(x->ctx, t.c, t.mode & LOP_C ? lop_coef_conj(x->ctx, by) : by);
            t.node = x->child[0];
            todo[waiting++] = t;
        } else if (x->op == &lop_op_view) {
            todo[waiting++] = (part){x->child[0], t.mode ^ (int)x->attr.i[0], t.c};
        } else if (x->op == &lop_op_sum) {
            if (waiting + 2 > TERMS) return 0;
            todo[waiting++] = (part){x->child[1], t.mode, t.c};
            todo[waiting++] = (part){x->child[0], t.mode, t.c};
        } else {
            if (n == TERMS) return 0;
            term[n++] = t;
        }
    }
    return n > 1 ? n : 0;
}

/* Which factor is a sum that is not sparse, where all others are sparse or inverses; -1: none. */
static int sum_among(const lop_word *w, part *term, int *terms) {
    int at = -1;
    for (int i = 0; i < w->n; i++) {
        int64_t seen;
        if (lop_inverse_seen(w->f[i], &seen) || lop_sparse_entries(w->f[i]) >= 0) continue;
        *terms = at < 0 ? terms_of(w->f[i], term) : 0;
        if (*terms == 0) return -1;
        at = i;
    }
    return at;
}

/* The factors of w, with those of a term in the place of the sum. To be closed whatever comes back.
 */
static lop_status with_term(const lop_maker *mk, const lop_word *w, int at, const part *term,
                            lop_word *all) {
    lop_word own;
    *all = (lop_word){.n = 0};
    lop_status st = lop_word_opened(mk, term->node, term->mode, &own);
    all->c = lop_coef_times(mk->ctx, w->c, lop_coef_times(mk->ctx, own.c, term->c));
    if (st == LOP_OK) st = lop_word_add(all, w->f, 0, at);
    if (st == LOP_OK) st = lop_word_add(all, own.f, 0, own.n);
    if (st == LOP_OK) st = lop_word_add(all, w->f, at + 1, w->n);
    lop_word_close(&own);
    return st;
}

/* list[0] multiplied out, sums within terms too. All of them are to be closed whatever comes back.
 * NOMATCH: there are too many terms. */
static lop_status multiplied_out(const lop_maker *mk, lop_word *list, int *n) {
    part term[TERMS];
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < *n;) {
        int terms = 0;
        const int at = sum_among(&list[i], term, &terms);
        if (at < 0) {
            i++;
            continue;
        }
        if (*n + terms - 1 > TERMS) return LOP_NOMATCH;
        lop_word w = list[i];
        list[i] = (lop_word){.n = 0};
        for (int t = 0; st == LOP_OK && t < terms; t++)
            st = with_term(mk, &w, at, &term[t], t ? &list[(*n)++] : &list[i]);
        lop_word_close(&w);
    }
    return st;
}

/* Has the main diagonal of these factors a way that is cheap beside A^-1 X A^-1? Of few columns
 * that of a thin product, of sparse ones what meets (sparse_pairs.c), also with one inverse between
 * them (solve_sparse.c). */
static bool is_light(const lop_maker *mk, const lop_node *root, const lop_word *w, bool *pays) {
    const lop_sparse *outside = mk->ctx->sparse;
    if (root->op != &lop_op_diagonal || root->attr.i[0] != 0 || !outside) return false;
    int sparse = 0;
    for (int i = 0; i < w->n; i++) {
        if (THIN * lop_infer_rank(w->f[i]) <= lop_rows(w->f[i])) return *pays = true;
        sparse += lop_sparse_entries(w->f[i]) >= 0;
    }
    if (!outside->fewest && lop_rows(root->child[0]) < LOP_ROWS_FEWEST) return false;
    return sparse == w->n || lop_turns_to_inverse(w->f, w->n);
}

/* The root's action on these factors, times their number; *pays is set where that is a way that a
 * sum has not, of A^-1 X A^-1 or of few columns. NOMATCH: they have none of their own. */
static lop_status of_own(const lop_maker *mk, const lop_node *root, const lop_word *w, bool *pays,
                         const lop_node **out) {
    const lop_node *child[3] = {NULL, root->n > 1 ? root->child[1] : NULL,
                                root->n > 2 ? root->child[2] : NULL},
                   *value = NULL;
    const lop_attr by = lop_coef_attr(w->c);
    lop_status st = w->n ? lop_reads_between_sparse(mk, root, w) : LOP_NOMATCH;
    *pays |= st == LOP_OK;
    if (st == LOP_NOMATCH && w->n && is_light(mk, root, w, pays)) st = LOP_OK;
    if (st == LOP_OK) st = lop_product_of(mk, w->f, w->n, &child[0]);
    if (st == LOP_OK) st = lop_make_op(mk, root->op, &root->attr, root->n, child, NULL, &value);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &by, value, out);
    if (st == LOP_OK && (*out)->dtype != root->dtype) st = LOP_NOMATCH;
    lop_node_unref(child[0]);
    lop_node_unref(value);
    return st;
}
/* Likewise, or of the inverses of bordered matrices in the places of those of updates. `alone`:
 * only so, as there is no sum. */
static lop_status of_word(const lop_maker *mk, const lop_node *root, const lop_word *w, bool alone,
                          bool *pays, const lop_node **out) {
    lop_word all;
    lop_status st = alone ? LOP_NOMATCH : of_own(mk, root, w, pays, out);
    if (st != LOP_NOMATCH) return st;
    st = lop_word_bordered(mk, w, &all);
    if (st == LOP_OK) st = of_own(mk, root, &all, pays, out);
    lop_word_close(&all);
    return st;
}

LOP_BUILD(between_sums) {
    const lop_node *root = m->root, *p = root->child[0], *sum = NULL;
    lop_word list[TERMS];
    bool pays = false;
    int n = 1;
    if (lop_nbatch(p) > 0 || !lop_is_blas(root->dtype) || !lop_is_blas(p->dtype))
        return LOP_NOMATCH;
    lop_status st = lop_word_opened(mk, p, LOP_N, &list[0]);
    if (st == LOP_OK) st = multiplied_out(mk, list, &n);
    for (int i = 0; st == LOP_OK && i < n; i++) {
        const lop_node *one = NULL, *before = sum;
        st = of_word(mk, root, &list[i], n == 1, &pays, &one);
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
    for (int i = 0; i < n; i++) lop_word_close(&list[i]);
    return st;
}
