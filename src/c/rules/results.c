/* results.c: what is asked for of each operator of a program. */
#include "builds.h"
#include "expr/properties.h"

/* Is a diagonal, or the trace, of the inverse of `a` among what is asked? */
static bool inverse_is_read(const lop_node *const *asked, int n, const lop_node *a) {
    for (int i = 0; i < n; i++) {
        const lop_node *of = asked[i]->child[0];
        if ((asked[i]->op == &lop_op_diagonal || asked[i]->op == &lop_op_trace) &&
            of->op == &lop_op_inverse && lop_node_alike(of->child[0], a, LOP_INFER_DEPTH))
            return true;
    }
    return false;
}

/* A determinant is told by attr.i[2] that a diagonal of the inverse is asked for too, which has
 * ways by structure only: it then goes the same way where it might choose. */
static lop_status tell_determinants(const lop_maker *mk, const lop_node **asked, int n) {
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < n; i++) {
        const lop_node *a = asked[i];
        lop_attr k = a->attr;
        if (a->op != &lop_op_scaledet || !inverse_is_read(asked, n, a->child[0])) continue;
        k.i[2] = 1;
        st = lop_make1(mk, a->op, &k, a->child[0], &asked[i]);
        if (st == LOP_OK) lop_node_unref(a);
    }
    return st;
}

LOP_BUILD(dense_results) {
    const lop_node *top = m->root->child[0];
    int n = 0, made = 0;
    for (const lop_node *a = top; a; a = lop_results_before(a)) n++;
    const lop_node **asked = lop_calloc(mk->ctx, (size_t)n, sizeof *asked);
    if (!asked) return lop_fail(mk->err, LOP_NOMEM, NULL);
    lop_status st = LOP_OK;
    for (const lop_node *a = top; st == LOP_OK && a; a = lop_results_before(a)) {
        const lop_node *action;
        st = lop_results_asked(a, &action, mk->err);
        if (st != LOP_OK) break;
        made++;
        st = lop_make(mk, action->op->name, &action->attr, action->n, action->child, NULL,
                      &asked[n - made]);
        lop_node_unref(action);
    }
    if (st == LOP_OK) st = tell_determinants(mk, asked, n);
    if (st == LOP_OK) st = lop_make(mk, "results_array", NULL, n, asked, NULL, out);
    for (int i = 0; i < n; i++) lop_node_unref(asked[i]);
    lop_free(mk->ctx, (void *)asked);
    return st;
}
