/* kernel_matrices.c: computed right sides for Kernel: transposes, products of entries, parts. All
 * are kernels again, of other points. */
#include "builds.h"

enum { MOST = 5 * LOP_KERNELS };

LOP_BUILD(view_kernel) {
    const lop_node *k = m->root->child[0], *child[MOST];
    int at[LOP_KERNELS], n = lop_kernel_points(k, at);
    if (!n) return LOP_NOMATCH;
    for (int i = 0; i < k->n; i++) child[i] = k->child[i];
    for (int f = 0; f < n && m->root->attr.i[0] & LOP_T; f++) {
        child[at[f]] = k->child[at[f] + 1];
        child[at[f] + 1] = k->child[at[f]];
    }
    return lop_make(mk, "kernel", &k->attr, k->n, child, NULL, out);
}

/* All of a tree of element-wise products that are kernels, from the left. */
LOP_BUILD(kernel_elementwise) {
    const lop_node *todo[2 * LOP_KERNELS] = {m->root}, *child[2 * MOST];
    lop_attr all = {.i = {0}};
    int waiting = 1, n = 0, factors = 0, at[LOP_KERNELS];
    while (waiting > 0) {
        const lop_node *a = todo[--waiting];
        if (a->op == &lop_op_elementwise && waiting + 2 <= LOP_KERNELS) {
            todo[waiting++] = a->child[1];
            todo[waiting++] = a->child[0];
            continue;
        }
        const int more = a->op == &lop_op_kernel ? lop_kernel_points(a, at) : 0;
        if (!more || factors + more > LOP_KERNELS) return LOP_NOMATCH;
        all = factors ? lop_kernel_join(&all, &a->attr) : a->attr;
        for (int i = 0; i < a->n; i++) child[n++] = a->child[i];
        factors += more;
    }
    return lop_make(mk, "kernel", &all, n, child, NULL, out);
}

lop_status lop_kernel_cut(const lop_maker *mk, const lop_node *k, const lop_attr *rows,
                          const lop_node *index, bool of_y, const lop_node **out) {
    const lop_node *child[MOST], *part[LOP_KERNELS] = {0};
    int at[LOP_KERNELS], n = lop_kernel_points(k, at);
    lop_status st = n ? LOP_OK : LOP_NOMATCH;
    for (int i = 0; i < k->n; i++) child[i] = k->child[i];
    for (int f = 0; st == LOP_OK && f < n; f++) {
        const int i = at[f] + of_y;
        st = index ? lop_make2(mk, &lop_op_array_slice, rows, child[i], index, &part[f])
                   : lop_make1(mk, &lop_op_array_slice, rows, child[i], &part[f]);
        child[i] = part[f];
    }
    if (st == LOP_OK) st = lop_make(mk, "kernel", &k->attr, k->n, child, NULL, out);
    for (int f = 0; f < n; f++) lop_node_unref(part[f]);
    return st;
}
