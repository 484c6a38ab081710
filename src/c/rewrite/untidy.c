/* untidy.c: may tidy.c change anything in an expression? A cheap look, before it is taken apart. */
#include "expr/coefficients.h"
#include "expr/properties.h"
#include "guards.h"

enum { ALIKE = 8 };

/* What a product begins or ends with, multiples left out, and whether that may close with another
 * to one kind. */
static bool may_meet(const lop_node *a, bool last) {
    while (a->op == &lop_op_scaled || a->op == &lop_op_prod || a->op == &lop_op_view)
        a = a->child[a->op == &lop_op_prod && last];
    return lop_has(a, LOP_FLAG_meets);
}

/* Krons beside sums of Krons, or of one factor beside identities: tidy_krons.c looks. */
static bool krons_may_meet(const lop_node *a, const lop_op *const *kind) {
    const bool first = kind[0] == &lop_op_kron;
    if (!first && kind[1] != &lop_op_kron) return false;
    if (kind[first] == &lop_op_sum || kind[first] == &lop_op_kronsum) return a->op == &lop_op_prod;
    if (a->op != &lop_op_sum || kind[first] != &lop_op_identity) return false;
    const lop_node *k = a->child[!first];
    int others = 0;
    if (k->op == &lop_op_scaled) k = k->child[0];
    for (int i = 0; i < k->n; i++) others += k->child[i]->op != &lop_op_identity;
    return others == 1;
}

static bool is_inverse_of_eye(const lop_node *a) {
    if (a->op != &lop_op_inverse) return false;
    a = a->child[0];
    return (a->op == &lop_op_scaled ? a->child[0] : a)->op == &lop_op_identity;
}

static bool is_eye_or_seen(const lop_node *a) {
    return (a->op == &lop_op_view ? a->child[0] : a)->op == &lop_op_identity;
}

/* A Kron with I I^T or a view of I among its factors. */
static bool has_loose_eye(const lop_node *a) {
    for (int i = 0; i < a->n; i++) {
        const lop_node *f = a->child[i];
        if (f->op == &lop_op_view ? is_eye_or_seen(f)
                                  : f->op == &lop_op_prod && (is_eye_or_seen(f->child[0]) ||
                                                              is_eye_or_seen(f->child[1])))
            return true;
    }
    return false;
}

/* Is there something in `a` that tidy.c may take out or bring together: unit factors, zeros,
 * multiples by one, three terms, two of one kind, views of terms, or factors that close? */
static bool untidy(const lop_node *a, int depth) {
    if (depth == 0) return false;
    if (a->op == &lop_op_scaled || a->op == &lop_op_view)
        return untidy(a->child[0], depth - 1) ||
               (a->op == &lop_op_scaled &&
                lop_coef_test(a->ctx, lop_coef_of(&a->attr), LOP_COEF_ONE));
    if (a->op == &lop_op_kron) return has_loose_eye(a);
    const bool sum = a->op == &lop_op_sum;
    if (!sum && a->op != &lop_op_prod) return false;
    if (sum && !lop_is_blas(a->dtype) && !a->weak) /* sums wrap where they stand */
        return untidy(a->child[0], depth - 1) || untidy(a->child[1], depth - 1);
    const lop_op *kind[2];
    for (int i = 0; i < 2; i++) {
        const lop_node *c = a->child[i];
        kind[i] = c->op == &lop_op_scaled ? c->child[0]->op : c->op;
        if (sum ? kind[i] == &lop_op_sum || kind[i] == &lop_op_view || kind[i] == &lop_op_zeros
                : kind[i] == &lop_op_identity || is_inverse_of_eye(c))
            return true;
    }
    if (krons_may_meet(a, kind)) return true;
    if (!sum && kind[0] == &lop_op_sum && lop_node_alike(a->child[0], a->child[1], ALIKE))
        return true;
    if (!sum && may_meet(a->child[0], true) && may_meet(a->child[1], false)) return true;
    return (sum && kind[0] == kind[1]) || untidy(a->child[0], depth - 1) ||
           untidy(a->child[1], depth - 1);
}
lop_truth lop_when_untidy(const lop_match *m) {
    enum { LEVELS = 8 };
    const lop_node *root = m->root;
    const lop_node *a = root->op == &lop_op_inverse ? root->child[0] : root;
    return untidy(a, LEVELS) ? LOP_TRUE : LOP_FALSE;
}
