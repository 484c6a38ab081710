/* scaled_pair.h: determinants as pairs of mantissa and exponent, for the kinds that know theirs.
 *
 * det = mantissa 2^exponent; as an array a vector of two, float64 or complex128. The larger of the
 * mantissa's parts lies in [0.5, 1), or is 0, inf or NaN with exponent 0: none over- or underflows.
 * The action and the pairs made of pairs are in op_det.c. */
#ifndef LOP_DET_H
#define LOP_DET_H

#include "expr/op.h"

typedef struct lop_pair {
    double re, im, e;
} lop_pair;

/* In the form above, exactly. */
lop_pair lop_pair_scaled(lop_pair a);
lop_pair lop_pair_one(void);
bool lop_pair_is_zero(lop_pair a);
/* Of scaled pairs; `whole` is false for real numbers (inf times an imaginary 0 would be NaN). */
lop_pair lop_pair_times(lop_pair a, lop_pair b, bool whole);
lop_pair lop_pair_reciprocal(lop_pair a, bool whole);
lop_pair lop_pair_power(lop_pair a, int64_t p, bool whole); /* p >= 0 */
/* all *= u for long products: `all` begins as {1, 0, 0} and is to be scaled at the end. */
lop_pair lop_pair_onto(lop_pair all, lop_pair u, bool whole);
/* The product of the elements of a vector of floats, any stride. */
lop_pair lop_pair_product(const lop_mat *v);
lop_pair lop_pair_load(const lop_mat *a);
void lop_pair_store(const lop_mat *y, lop_pair a);

/* Shape and dtype of a node: a pair for each batch element of `shape`, whose last `core` dimensions
 * are not batch. */
lop_status lop_pair_infer(lop_node *n, const lop_shape *shape, int core, lop_dtype dt);
bool lop_node_is_pair(const lop_node *a);
/* Are the children from that one on pairs, determinants that are asked for their errors alone? */
lop_status lop_assumed_infer(const lop_node *n, int from, lop_err *err);

#endif
