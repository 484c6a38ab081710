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

enum { THIN = 8 };

/* Inverses stay, and what is sparse. */
static bool stays(const lop_node *f) {
    int64_t mode;
    return lop_inverse_seen(f, &mode) || lop_sparse_entries(f) >= 0;
}

/* Has the diagonal of these factors a way that is cheap beside A^-1 X A^-1? Of few columns
 * that of a thin product, of sparse ones the main one what meets (sparse_pairs.c), also with one
 * inverse between them (solve_sparse.c). */
static bool is_light(const lop_maker *mk, const lop_node *root, const lop_word *w, bool *pays) {
    const lop_sparse *outside = mk->ctx->sparse;
    if (root->op != &lop_op_diagonal || !outside) return false;
    int sparse = 0;
    for (int i = 0; i < w->n; i++) {
        if (THIN * lop_infer_rank(w->f[i]) <= lop_rows(w->f[i])) return *pays = true;
        sparse += lop_sparse_entries(w->f[i]) >= 0;
    }
    if (root->attr.i[0] != 0 || (!outside->fewest && lop_rows(root->child[0]) < LOP_ROWS_FEWEST))
        return false;
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
    const lop_node *root = m->root, *p = root->child[0];
    lop_word list[LOP_WORDS];
    int n = 1;
    if (lop_nbatch(p) > 0 || !lop_is_blas(root->dtype) || !lop_is_blas(p->dtype))
        return LOP_NOMATCH;
    lop_status st = lop_word_opened(mk, p, LOP_N, &list[0]);
    if (st == LOP_OK) st = lop_words_multiplied_out(mk, stays, false, list, &n);
    if (st == LOP_OK) st = lop_words_summed(mk, root, list, n, of_word, out);
    for (int i = 0; i < n; i++) lop_word_close(&list[i]);
    return st;
}
