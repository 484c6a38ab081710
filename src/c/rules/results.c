/* results.c: what is asked for of each operator of a program. */
#include "builds.h"

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
    if (st == LOP_OK) st = lop_make(mk, "results_array", NULL, n, asked, NULL, out);
    for (int i = 0; i < n; i++) lop_node_unref(asked[i]);
    lop_free(mk->ctx, (void *)asked);
    return st;
}
