/* op_named.c: the matrix that an array declares by its upper triangle T (`assume_a` of a Dense),
 *
 *   T + T^T - D, or T + T^H - Re D (attr.i[0]),   D the diagonal of T,
 *
 * as SciPy reads what is assumed symmetric, Hermitian or positive definite: what the array holds
 * below its diagonal is never read. Cost: one pass. */
#include "expr/op.h"
#include "kernels/common/kernels.h"
#include "kernels/dense/k_blas.h"

static lop_status infer(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0];
    if (a->core != 2 || lop_rows(a) != lop_cols(a))
        return lop_fail(err, LOP_DIM, "named takes a square matrix");
    n->shape = a->shape;
    n->core = 2;
    n->dtype = a->dtype;
    n->weak = a->weak;
    return LOP_OK;
}

/* Integers: row by row. */
static void by_rows(const lop_mat *y, const lop_mat *a) {
    const int64_t size = (int64_t)lop_dtype_size(a->dt);
    for (int64_t i = 0; i < a->m; i++) {
        const int64_t from = i * (a->rs + a->cs) * size, to = i * (y->rs + y->cs) * size,
                      rest = a->m - i;
        const lop_mat row = {(char *)a->p + from, 1, rest, a->rs, a->cs, a->dt},
                      right = {(char *)y->p + to, 1, rest, y->rs, y->cs, y->dt},
                      below = {(char *)y->p + to, 1, rest, y->cs, y->rs, y->dt};
        lopk_copy(&below, &row);
        lopk_copy(&right, &row);
    }
}
static lop_status run(const lop_call *c) {
    const lop_mat *y = c->a[0], *a = c->a[1];
    if (!lop_is_blas(a->dt)) {
        by_rows(y, a);
        return LOP_OK;
    }
    lopk_whole_of_half(y, a, c->step->attr.i[0] != 0);
    return LOP_OK;
}

static lop_status lower(lop_emit *e, const lop_node *self, int out) {
    const int in = lop_emit_value(e, self->child[0]);
    lop_step *s = lop_emit_step(e, "named", run, out, 1, &in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->flags = LOP_STEP_MIRRORS;
    s->bytes = 1.5 * lop_slot_elements(e, out) * (double)lop_dtype_size(self->dtype);
    return LOP_OK;
}
const lop_op lop_op_named = {LOP_NAMED(named), .cls = LOP_ARRAY, .min = 1,      .max = 1,
                             .ints = 1,        .infer = infer,   .lower = lower};

const lop_node *lop_half_alone(const lop_node *dense, int64_t k, lop_dtype dt) {
    const lop_node *a = dense->op == &lop_op_dense ? dense->child[0] : dense;
    /* Beyond, BLAS gains more by its packing than a copy costs (Xeon, AVX-512, 2026-11-27: 1,000
     * rows, 200 columns 1.07 of a plain matrix, with the copy 1.3; complex 1.46 and 1.2). */
    const int64_t most = lop_is_complex(dt) ? 100 : 256;
    return a->op == &lop_op_named && k <= most && 2 * k <= lop_rows(a) && dense->shape.ndim == 2 &&
                   a->dtype == dt && a->child[0]->n == 0 && lop_is_blas(dt)
               ? a->child[0]
               : NULL;
}

const lop_node *lop_half_read(const lop_node *piece) {
    const lop_node *a = piece->n ? piece->child[0] : piece;
    if (a->op != &lop_op_named ||
        (piece->op != &lop_op_array_element && piece->op != &lop_op_array_diagonal))
        return NULL;
    const int64_t i = piece->attr.i[0], j = piece->attr.i[1];
    const bool above = piece->op == &lop_op_array_element ? i < j : i > 0;
    return above || !a->attr.i[0] || !lop_is_complex(a->dtype) ? a->child[0] : NULL;
}
