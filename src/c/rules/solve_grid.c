/* solve_grid.c: solves with and determinants of a Laplacian of a grid, multiplied and shifted, by
 * the transforms that make it diagonal (ops/solves/op_grid_solve.c). */
#include "builds.h"
#include "expr/properties.h"
#include "ops/shared/grid.h"

#define HOLE(m, c) ((m)->node[(c) - 'a'])

/* Smaller ones are quicker by the dense form; of so narrow a band the factor is quicker than
 * transforms. */
enum { FEWEST = 64, NARROW = 12 };

static bool pays(const lop_node *a, lop_grid *g) {
    const lop_ctx *ctx = a->ctx;
    if (!lop_grid_read(a, g)) return false;
    if (a->op == &lop_op_laplacian && a->attr.i[0] != 0) return false; /* singular */
    if (ctx->alike) return true;                                       /* tests set few */
    return lop_rows(a) >= FEWEST && lop_infer_bands(a).l >= NARROW;
}

LOP_BUILD(solve_grid) {
    const lop_node *a = m->root->child[0], *x = NULL;
    const lop_dtype dt = m->root->dtype;
    const lop_attr cast = {.i = {1, 0, 0, (int64_t)dt + 1}};
    lop_grid g;
    if (!lop_is_blas(dt) || !pays(a, &g)) return LOP_NOMATCH;
    lop_status st = lop_make1(mk, &lop_op_cast, &cast, HOLE(m, 'x'), &x);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_grid_solve, NULL, a, x, out);
    lop_node_unref(x);
    return st;
}

LOP_BUILD(det_grid) {
    const lop_node *a = m->root->child[0];
    const lop_attr dt = {.i = {(int64_t)m->root->dtype, 0, 0, 0}};
    lop_grid g;
    if (!lop_is_blas(m->root->dtype) || !lop_grid_read(a, &g)) return LOP_NOMATCH;
    return lop_make1(mk, &lop_op_grid_shift_det, &dt, a, out);
}
