/* projections.h: what a cotangent means for the few numbers that some kinds have: actions on an
 * operator, which rules take apart by its form (rules/projections.c), the arrays that they make,
 * and what the kinds' slots `vjp` write with them. */
#ifndef LOP_PROJECTIONS_H
#define LOP_PROJECTIONS_H

#include "expr/vjp.h"
#include "kernels/sparse/k_entry_sums.h"
#include "kernels/toeplitz/k_diagonal_sums.h"

/* The dtype in which a projection of child 0 is computed (attr.i[3], as of the other actions), a
 * float's, into n->dtype. */
lop_status lop_projection_dtype(lop_node *n, lop_err *err) LOP_MUST_CHECK;

/* attr.i[0]: anti, attr.i[1]: circular, attr.i[2]: flip. */
static inline lopk_lines lop_lines_of(const lop_attr *a) {
    return (lopk_lines){a->i[0] != 0, a->i[1] != 0, a->i[2] != 0};
}
/* displaced (op_displaced.c): of rows a_i, with W_i = w_i + .. + w_(n-1): W_i a_i a row up, W_i
 * a_(i-1) a row down, W_0 a; a itself a row down, and a row up. */
enum {
    LOP_DISPLACED_BY_ROW_BELOW,
    LOP_DISPLACED_BY_ROW_ABOVE,
    LOP_DISPLACED_BY_ALL,
    LOP_DISPLACED_ON,
    LOP_DISPLACED_BACK
};
/* Of pair_diagonal_sums for m x k times k x n. */
double lop_pair_sums_flops(lop_dtype dt, int64_t m, int64_t n, int64_t k);

/* Where numbers stand in a matrix (op_entry_sums.c): attr.i[0]. */
typedef enum lop_places {
    LOP_AT_CSR,
    LOP_AT_CSC,
    LOP_AT_COO,
    LOP_AT_BLOCKS,
    LOP_AT_BOXES
} lop_places;
/* Of how many entries m x n has there, as a price; l + 1 + u diagonals in one array. */
double lop_entry_sums_count(const lop_node *n);
static inline int64_t lop_band_pack(int64_t l, int64_t u) { return l << 16 | u; }

/* Of pair_generator_sums through k. */
double lop_generator_sums_flops(const lop_node *p, const lop_node *a, lop_dtype dt, int64_t k);

/* -- what slots `vjp` write */

/* Sums along diagonals of an operator: a vector (op_diagonal_sums.c). */
const lop_node *lop_vjp_sums(lop_vjp *v, const lop_node *g, lopk_lines how);
/* Of a number at each entry that CSR, CSC or COO names, as far as it is in `triangle` (0: all;
 * op_entry_sums.c). */
const lop_node *lop_vjp_entries(lop_vjp *v, const lop_node *g, const lop_node *sparse,
                                int64_t triangle);
/* Of the b x b blocks beside the diagonal (at -1, 0, 1), raveled. */
const lop_node *lop_vjp_blocks(lop_vjp *v, const lop_node *g, int64_t b, int64_t at);
/* Of the numbers of a product of boxes (LOP_CONV_*) of sizes `box` and `n`. */
const lop_node *lop_vjp_boxes(lop_vjp *v, const lop_node *g, int64_t how, const lop_node *box,
                              const lop_node *n);
/* Numbers start, start + step, ... of a vector. */
const lop_node *lop_vjp_run(lop_vjp *v, const lop_node *a, int64_t start, int64_t step,
                            int64_t count);
/* Of G, of the shape of A (x) X or X (x) A, the sum over X's place with conj(X): the cotangent of
 * A, an operator. `after`: X comes second. */
const lop_node *lop_vjp_contracted(lop_vjp *v, const lop_node *g, const lop_node *x, bool after);
/* Of p, q or a (child 1 to 3 of the QuasiSeparable `self`; 4: of all three), of what lies below the
 * diagonal of G: raveled (op_generator_sums.c). */
const lop_node *lop_vjp_generators(lop_vjp *v, const lop_node *g, const lop_node *self, int child);
/* Its diagonals -l, ..., u in LAPACK's array. */
const lop_node *lop_vjp_band(lop_vjp *v, const lop_node *g, int64_t l, int64_t u);

#endif
