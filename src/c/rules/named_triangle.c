/* named_triangle.c: what solves take a matrix to be, for rules that multiply by P where a formula
 * solves with it: of a Dense that is its own adjoint by assumption alone solves read the upper
 * triangle,
 *
 *   P = T + T^H - D,   T that triangle, D its diagonal,
 *
 * and so of sums and multiples of such. Cost: the products are those of P. */
#include "builds.h"
#include "expr/properties.h"

/* T + T^H - D. */
static lop_status halves(const lop_maker *mk, const lop_node *a, const lop_node **out) {
    const lop_attr upper = {.i = {0, 0, 0, 0}}, main_one = {.i = {0, 0, 0, 0}},
                   turn = {.i = {lop_is_complex(a->dtype) ? LOP_H : LOP_T, 0, 0, 0}},
                   less = lop_coef_attr(lop_coef_const(-1, 0));
    const lop_node *t = NULL, *th = NULL, *both = NULL, *d = NULL, *diag = NULL, *minus = NULL;
    lop_status st = lop_make1(mk, &lop_op_triangular, &upper, a->child[0], &t);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_view, &turn, t, &th);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_sum, NULL, t, th, &both);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_array_diagonal, &main_one, a->child[0], &d);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_diag, NULL, d, &diag);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scaled, &less, diag, &minus);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_sum, NULL, both, minus, out);
    const lop_node *gone[] = {t, th, both, d, diag, minus};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

static lop_status as_solved(const lop_maker *mk, const lop_node *a, int depth,
                            const lop_node **out) {
    const lop_node *part[2] = {NULL, NULL};
    const bool two = a->op == &lop_op_sum;
    lop_status st = LOP_OK;
    if (a->op == &lop_op_dense && lop_node_trait(a, LOP_HERMITIAN) == LOP_TRUE)
        return halves(mk, a, out);
    *out = lop_node_ref(a);
    if (depth == 0 || (!two && a->op != &lop_op_scaled && a->op != &lop_op_view)) return LOP_OK;
    for (int i = 0; st == LOP_OK && i <= two; i++)
        st = as_solved(mk, a->child[i], depth - 1, &part[i]);
    if (st == LOP_OK && (part[0] != a->child[0] || (two && part[1] != a->child[1]))) {
        lop_node_unref(a);
        *out = NULL;
        st = two ? lop_make2(mk, &lop_op_sum, NULL, part[0], part[1], out)
                 : lop_make1(mk, a->op, &a->attr, part[0], out);
    } else if (st != LOP_OK) {
        lop_node_unref(a);
        *out = NULL;
    }
    for (int i = 0; i < 2; i++) lop_node_unref(part[i]);
    return st;
}

lop_status lop_as_solved(const lop_maker *mk, const lop_node *a, const lop_node **out) {
    return as_solved(mk, a, LOP_INFER_DEPTH, out);
}
