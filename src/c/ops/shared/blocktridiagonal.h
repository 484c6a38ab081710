/* blocktridiagonal.h: what op_blocktridiagonal.c and op_blocktridiagonal_solve.c share. */
#ifndef LOP_BLOCKTRI_H
#define LOP_BLOCKTRI_H

#include "expr/op.h"
#include "kernels/band/k_blocktri.h"

/* Shape (..., n, n), dtype, weakness and core of *n from its first `count` children, raveled
 * blocks: those below the diagonal, on it and, of 3, above it; their size is attr.i[0]. */
lop_status lop_blocktri_shape(lop_node *n, int count, lop_err *err) LOP_MUST_CHECK;
/* The first `count` children in dtype `dt` and C order, as inputs. */
lop_status lop_blocktri_inputs(lop_emit *e, const lop_node *self, int count, lop_dtype dt,
                               int *in) LOP_MUST_CHECK;
/* The kernels' view of 2 or 3 vectors. */
lopk_blocktri lop_blocktri_of(const lop_mat *const *a, int64_t count, int64_t b);

#endif
