/* make.c: nodes of the plan's table with one child or two, by name, and in one dtype. */
#include "rewrite.h"

#include <string.h>

lop_status lop_make(const lop_maker *mk, const char *op, const lop_attr *attr, int n,
                    const lop_node *const *child, const lop_node *like, const lop_node **out) {
    return lop_make_op(mk, lop_op_find(op, strlen(op)), attr, n, child, like, out);
}
lop_status lop_make1(const lop_maker *mk, const lop_op *op, const lop_attr *attr, const lop_node *a,
                     const lop_node **out) {
    return lop_make_op(mk, op, attr, 1, &a, NULL, out);
}
lop_status lop_make2(const lop_maker *mk, const lop_op *op, const lop_attr *attr, const lop_node *a,
                     const lop_node *b, const lop_node **out) {
    const lop_node *child[2] = {a, b};
    return lop_make_op(mk, op, attr, 2, child, NULL, out);
}

lop_status lop_join(const lop_maker *mk, const lop_op *op, const lop_attr *attr, const lop_node *a,
                    const lop_node *b, const lop_node **out) {
    const lop_node *child[2] = {a, b}, *wide[2] = {NULL, NULL};
    int n = b ? 2 : 1;
    lop_status st = lop_make_op(mk, op, attr, n, child, NULL, out);
    if (st != LOP_OK) return st;
    lop_attr d = {.i = {0, 0, 0, (int64_t)(*out)->dtype + 1}};
    for (int i = 0; st == LOP_OK && i < n; i++)
        if (child[i]->n > 0 && child[i]->dtype != (*out)->dtype)
            st = lop_make1(mk, &lop_op_cast, &d, child[i], &wide[i]);
    if (st != LOP_OK || wide[0] || wide[1]) {
        lop_node_unref(*out);
        *out = NULL;
        for (int i = 0; i < n; i++)
            if (wide[i]) child[i] = wide[i];
        if (st == LOP_OK) st = lop_make_op(mk, op, attr, n, child, NULL, out);
    }
    for (int i = 0; i < 2; i++) lop_node_unref(wide[i]);
    return st;
}
