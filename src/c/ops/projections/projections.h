/* projections.h: what a cotangent means for the few numbers that some kinds have; as nodes, for
 * their slots `vjp`. */
#ifndef LOP_PROJECTIONS_H
#define LOP_PROJECTIONS_H

#include "expr/vjp.h"

/* Along the diagonals i - j = 0, 1, ...; j - i; i + j; (i - j) mod n. */
typedef enum lop_sums_way { LOP_DOWN, LOP_UP, LOP_ANTI, LOP_ROUND } lop_sums_way;
typedef struct lop_sums {
    lop_sums_way way;
    const lop_node *levels; /* LOP_ROUND: the sizes */
} lop_sums;

/* Sums along diagonals of an operator: a vector; of pairs by FFT, else of the dense form. */
const lop_node *lop_vjp_sums(lop_vjp *v, const lop_node *g, const lop_sums *how);
/* Of G, of the shape of A (x) X or X (x) A, the sum over X's place with conj(X): the cotangent of
 * A, an operator. `after`: X comes second. */
const lop_node *lop_vjp_contracted(lop_vjp *v, const lop_node *g, const lop_node *x, bool after);
/* Its diagonals -l, ..., u in LAPACK's array. */
const lop_node *lop_vjp_band(lop_vjp *v, const lop_node *g, int64_t l, int64_t u);

#endif
