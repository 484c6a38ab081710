/* sums_settled.c: what a sum is before it is solved with, whatever the order of its terms:
 * circulants and multiples of the identity are one Circulant, and one thin term beside others that
 * are cheap to solve with as a sum is an update of that sum. Sums as such stay as they are written:
 * products with them need no new first column. */
#include "builds.h"
#include "expr/properties.h"
#include "rewrite/cheap_to_solve.h"
#include "rewrite/guards.h"

enum { TERMS = 8 };

/* A multiple of the first unit vector, or the first column, of a term. Owned. */
static lop_status column_of(const lop_maker *mk, const lop_node *term, const lop_node **out) {
    const bool times = term->op == &lop_op_scaled;
    const lop_node *id = times ? term->child[0] : term, *unit = NULL;
    if (term->op == &lop_op_circulant) {
        *out = lop_node_ref(term->child[0]);
        return LOP_OK;
    }
    lop_node like = {.shape = id->shape, .dtype = id->dtype, .weak = id->weak, .core = 1};
    like.shape.ndim--;
    lop_status st = lop_make(mk, "first_unit", NULL, 0, NULL, &like, &unit);
    if (st == LOP_OK && times) st = lop_make1(mk, &lop_op_scale, &term->attr, unit, out);
    if (st == LOP_OK && !times) *out = lop_node_ref(unit);
    lop_node_unref(unit);
    return st;
}

static lop_status one_circulant(const lop_maker *mk, const lop_node *const *term, int n,
                                const lop_node **out) {
    const lop_node *sum = NULL, *sizes = NULL;
    lop_status st = column_of(mk, term[0], &sum);
    for (int i = 0; i < n; i++)
        if (term[i]->op == &lop_op_circulant) sizes = term[i]->child[1];
    for (int i = 1; st == LOP_OK && i < n; i++) {
        const lop_node *next = NULL, *both = NULL;
        st = column_of(mk, term[i], &next);
        if (st == LOP_OK) st = lop_join(mk, &lop_op_add, NULL, sum, next, &both);
        lop_node_unref(next);
        if (st != LOP_OK) break;
        lop_node_unref(sum);
        sum = both;
    }
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_circulant, NULL, sum, sizes, out);
    lop_node_unref(sum);
    return st;
}

/* The sum of all terms but one. Owned. */
static lop_status others(const lop_maker *mk, const lop_node *const *term, int n, int but,
                         const lop_node **out) {
    const lop_node *sum = NULL;
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < n; i++) {
        const lop_node *both = NULL;
        if (i == but) continue;
        if (sum) st = lop_make2(mk, &lop_op_sum, NULL, sum, term[i], &both);
        if (st != LOP_OK) break;
        lop_node_unref(sum);
        sum = both ? both : lop_node_ref(term[i]);
    }
    if (st == LOP_OK)
        *out = sum;
    else
        lop_node_unref(sum);
    return st;
}

/* An update of what is cheap to solve with only together. */
static lop_status one_update(const lop_maker *mk, const lop_node *const *term, int n,
                             const lop_node **out) {
    const lop_node *base = NULL, *update = NULL;
    int low = -1;
    for (int i = 0; i < n; i++) {
        if (term[i]->op != &lop_op_lowrank && term[i]->op != &lop_op_lowrankupdate) continue;
        if (low >= 0) return LOP_NOMATCH;
        low = i;
    }
    if (low < 0 || (n == 2 && term[low]->op == &lop_op_lowrank)) return LOP_NOMATCH;
    const lop_node *u = term[low]->child[term[low]->op == &lop_op_lowrankupdate];
    if (lop_cols(u) > lop_rows(u) / 2) return LOP_NOMATCH;
    lop_status st = others(mk, term, n, low, &base);
    if (st == LOP_OK) st = lop_update_of(mk, base, term[low], &update);
    if (st == LOP_OK && lop_cheap_to_solve(update->child[0]))
        *out = update;
    else if (st == LOP_OK)
        st = LOP_NOMATCH;
    if (st == LOP_NOMATCH) lop_node_unref(update);
    lop_node_unref(base);
    return st;
}

/* The sum is what the root acts on, or on its inverse or a view of it. */
LOP_BUILD(sum_settled) {
    const lop_node *root = m->root, *inner = root->child[0], *term[TERMS], *child[2] = {NULL},
                   *settled = NULL, *inverse = NULL;
    const bool below = inner->op == &lop_op_inverse || inner->op == &lop_op_view;
    const lop_node *sum = below ? inner->child[0] : inner;
    const int n = lop_terms_of(sum, term, TERMS);
    if (n < 2 || sum->shape.ndim != 2 || !lop_is_blas(sum->dtype)) return LOP_NOMATCH;
    lop_status st = lop_is_circulant_sum(sum) ? one_circulant(mk, term, n, &settled)
                                              : one_update(mk, term, n, &settled);
    if (st != LOP_OK) return st;
    if (below) st = lop_make1(mk, inner->op, &inner->attr, settled, &inverse);
    child[0] = inverse ? inverse : settled;
    if (root->n > 1) child[1] = root->child[1];
    if (st == LOP_OK) st = lop_make(mk, root->op->name, &root->attr, root->n, child, NULL, out);
    lop_node_unref(inverse);
    lop_node_unref(settled);
    return st;
}
