/* between_sums.c: entries, diagonals and traces of L (T_1 + T_2 + ..) R, where each term,
 * multiplied out and views of products opened, is A^-1 X A^-1 or A^-1 X A^-1 Y A^-1 of sparse A, X
 * and Y (between_sparse.c): the second derivatives of traces and diagonals of A^-1. Of main
 * diagonals, rows U and W of entries stand beside them, too, and terms of few columns, without an
 * inverse or with one: those of quadratic forms and determinants of one A = U^T D U, whose
 * derivatives by D are read by U. A sum of such terms has no way but the dense form. */
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

/* Has the main diagonal of these factors a way that is cheap beside A^-1 X A^-1? Of few columns
 * that of a thin product, of sparse ones what meets (sparse_pairs.c), also with one inverse between
 * them (solve_sparse.c). */
static bool is_light(const lop_maker *mk, const lop_node *root, const lop_word *w,
                     const lop_node *term) {
    const lop_node *p = root->child[0];
    const lop_sparse *outside = mk->ctx->sparse;
    if (root->op != &lop_op_diagonal || root->attr.i[0] != 0 || !outside) return false;
    if (THIN * lop_infer_rank(term) <= lop_rows(term)) return true;
    if (!outside->fewest && lop_rows(p) < LOP_ROWS_FEWEST) return false;
    int sparse = 0;
    for (int i = 0; i < w->n; i++) sparse += lop_sparse_entries(w->f[i]) >= 0;
    return sparse == w->n || lop_turns_to_inverse(w->f, w->n);
}

/* The root's action on w with a term in the place of the sum, times its number; *between is set
 * where the way is that of A^-1 X A^-1. NOMATCH: it has none of its own. */
static lop_status of_term(const lop_maker *mk, const lop_node *root, const lop_word *w, int at,
                          const part *term, bool *between, const lop_node **out) {
    lop_word own, all = {.n = 0};
    const lop_node *child[3] = {NULL, root->n > 1 ? root->child[1] : NULL,
                                root->n > 2 ? root->child[2] : NULL},
                   *value = NULL;
    lop_status st = lop_word_opened(mk, term->node, term->mode, &own);
    const lop_attr by = lop_coef_attr(lop_coef_times(mk->ctx, own.c, term->c));
    if (st == LOP_OK) st = lop_word_add(&all, w->f, 0, at);
    if (st == LOP_OK) st = lop_word_add(&all, own.f, 0, own.n);
    if (st == LOP_OK) st = lop_word_add(&all, w->f, at + 1, w->n);
    if (st == LOP_OK) st = lop_reads_between_sparse(mk, root, &all);
    *between |= st == LOP_OK;
    if (st == LOP_NOMATCH && all.n > 0 && is_light(mk, root, &all, term->node)) st = LOP_OK;
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
    part term[TERMS];
    const lop_node *sum = NULL;
    int terms = 0;
    bool between = false;
    const int at = sum_among(w, term, &terms);
    const lop_attr by = lop_coef_attr(w->c);
    lop_status st = at < 0 ? LOP_NOMATCH : LOP_OK;
    for (int i = 0; st == LOP_OK && i < terms; i++) {
        const lop_node *one = NULL, *before = sum;
        st = of_term(mk, root, w, at, &term[i], &between, &one);
        if (st == LOP_OK && one->dtype != root->dtype) st = LOP_NOMATCH;
        if (st == LOP_OK)
            st = before ? lop_make2(mk, &lop_op_add, NULL, before, one, &sum)
                        : (sum = lop_node_ref(one), LOP_OK);
        if (sum != before) lop_node_unref(before);
        lop_node_unref(one);
    }
    if (st == LOP_OK && !between) st = LOP_NOMATCH;
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
