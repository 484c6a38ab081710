/* guards.h: the named guards of the rule table. Each answers for a match; TRUE lets the rule fire.
 */
#ifndef LOP_GUARDS_H
#define LOP_GUARDS_H

#include "rewrite.h"

lop_truth
lop_when_left_weak(const lop_match *m); /* the left child of the root changes no dtype or batch */
lop_truth lop_when_right_weak(const lop_match *m); /* likewise the right child */
lop_truth lop_when_krons_fit(const lop_match *m);  /* two krons whose factors multiply one by one */
lop_truth lop_when_square_factors(
    const lop_match *m); /* the root's child is a kron or blockdiag of square ones */
lop_truth lop_when_factors_differ(
    const lop_match *m); /* the root's kron has a factor that is no plain float matrix */
lop_truth lop_when_real(const lop_match *m);       /* the root is real and its mode conjugates */
lop_truth lop_when_transposes(const lop_match *m); /* the root's mode transposes */
lop_truth
lop_when_one_sided(const lop_match *m); /* the child's band is on one side, nothing assumed */
lop_truth lop_when_same_swap(const lop_match *m);
lop_truth lop_when_same_attr(const lop_match *m);  /* both children of the root have the same */
lop_truth lop_when_conjugates(const lop_match *m); /* the root's mode conjugates */
lop_truth
lop_when_no_batch(const lop_match *m); /* the operator has no batch dimensions of its own */
lop_truth lop_when_both_square(const lop_match *m); /* ?a and ?b */
lop_truth lop_when_coef_nonzero(const lop_match *m);
lop_truth lop_when_coef_zero(const lop_match *m);      /* @c is exactly 0 */
lop_truth lop_when_coef_minus_one(const lop_match *m); /* @c is exactly -1 */
lop_truth
lop_when_triangular(const lop_match *m); /* ?a is a Dense assumed triangular, or a view of one */
lop_truth lop_when_positive(const lop_match *m); /* ?a is assumed positive definite */
lop_truth lop_when_definite(const lop_match *m); /* or a sum of that and what is semidefinite */
lop_truth lop_when_shift(const lop_match *m); /* ?a has the root's shape and dtype, c is finite */
/* ?a is the conjugate, or the transpose, of a matrix assumed symmetric or Hermitian. */
lop_truth lop_when_own_conj(const lop_match *m);
lop_truth lop_when_own_view(const lop_match *m);
/* Is Cholesky worth a try in solves? An operator that is its own adjoint as it is written. */
bool lop_is_tried(const lop_node *a);
/* A sum, product or the like, or a view of one: what solves look at how it is written of. */
bool lop_is_composed(const lop_node *a);
lop_truth lop_when_hermitian(const lop_match *m); /* ?a is its own adjoint by how it is written */
lop_truth lop_when_leaf_kind(const lop_match *m); /* ?a is no composite but a block: views stay */
lop_truth lop_when_flat(const lop_match *m); /* the root has at most half as many rows as columns */
lop_truth lop_when_no_dense(const lop_match *m); /* ?a's kind has no dense form of its own */
lop_truth lop_when_no_diagonal(const lop_match *m);
lop_truth lop_when_no_element(const lop_match *m);
lop_truth
lop_when_sparse_pair(const lop_match *m); /* the root's operand is A B or A D B of sparse */
lop_truth lop_when_sparse_pair_thin(const lop_match *m); /* and B stores at most a quarter */
lop_truth lop_when_main(const lop_match *m);             /* offset 0 */
lop_truth
lop_when_main_square(const lop_match *m); /* offset 0 of a square product of square factors */
lop_truth lop_when_main_kron(const lop_match *m); /* offset 0 of a kron of square factors */
lop_truth
lop_when_inexact(const lop_match *m); /* the root is float or complex: sums may be split */
lop_truth lop_when_inexact_square_factors(const lop_match *m);
lop_truth lop_when_cast_same(const lop_match *m);
lop_truth
lop_when_widens(const lop_match *m); /* the root casts an array expression to a wider dtype */
lop_truth lop_when_inner_widens(const lop_match *m); /* and what is cut is an expression itself */
lop_truth
lop_when_column_widens(const lop_match *m);         /* and it is of a product with a unit vector */
lop_truth lop_when_cast_widens(const lop_match *m); /* the inner cast loses nothing */
lop_truth lop_when_narrow(
    const lop_match *m); /* the operator's parameters are expressions narrower than the root */
/* The dtype of x in which `root` has its digits: its own, or the real one where x is real: what is
 * multiplied by i has no more digits than before. */
lop_dtype lop_digits_of(lop_dtype root, lop_dtype x);
lop_truth lop_when_fewer_digits(
    const lop_match *m); /* ?x has fewer digits than the root, whose operator has several parts */
lop_truth lop_when_composed(const lop_match *m); /* a sum, a product or a stencil, a view of one */
lop_truth lop_when_indefinite(const lop_match *m); /* a Dense assumed symmetric or Hermitian */
lop_truth lop_when_no_rows(const lop_match *m);    /* of no rows, the result of ?x's shape */
lop_truth lop_when_deficient(const lop_match *m);  /* of rank below its size, as it is written */
lop_truth lop_when_hole_deficient(const lop_match *m); /* ?a is */
lop_truth lop_when_same_sizes(const lop_match *m); /* the root's two children have the same sizes */
lop_truth lop_when_one_level(const lop_match *m);  /* the Circulant of sizes ?s has one level */
lop_truth lop_when_low_update(
    const lop_match *m); /* the root solves with a low rank added to what is cheap to solve for */
lop_truth lop_when_diagonals(const lop_match *m); /* all the root's operands are Diag */
lop_truth
lop_when_not_diagonals(const lop_match *m); /* those of the root's operator are not all Diag */
lop_truth lop_when_orthogonal(
    const lop_match *m); /* ?a, or what it is a view of, is assumed or known to be unitary */
lop_truth lop_when_blocks_add(const lop_match *m); /* two blockdiags of the same partition */
lop_truth
lop_when_products_alike(const lop_match *m); /* likewise, where a product pays as a batch */
lop_truth lop_when_square_blocks(const lop_match *m); /* a sum with a blockdiag of square blocks */
lop_truth
lop_when_blocks_meet_kron(const lop_match *m); /* a blockdiag times I (x) G, or G's times */
lop_truth
lop_when_dense_alike(const lop_match *m); /* a blockdiag of several dense blocks of one make */
lop_truth lop_when_blocks_alike(const lop_match *m);   /* a blockdiag of several dense square blocks
                                                          of one size, assumption and view */
lop_truth lop_when_inverses_alike(const lop_match *m); /* a blockdiag of inverses of blocks alike */
lop_truth lop_when_inverse_blocks(const lop_match *m); /* the inverse of one of square blocks */
lop_truth lop_when_low_ranks(
    const lop_match *m); /* the ranks of both children of the root, multiplied, are small */
lop_truth lop_when_low_elementwise(
    const lop_match *m); /* a lowrank without middle times what is cheaper than the dense form */
lop_truth lop_when_lowrank_square(const lop_match *m); /* the operand's children are square */
lop_truth lop_when_full_plain(const lop_match *m); /* a child of the root is a full without batch */
lop_truth lop_when_block_triangle_alone(
    const lop_match *m); /* and no other block has a batch that the result would miss */
lop_truth lop_when_block_triangle(
    const lop_match *m); /* a block of square diagonal blocks, Zeros on one side of those */
/* Is `block` such, with the Zeros above (lower) or below its diagonal blocks? */
lop_truth lop_when_bordered(const lop_match *m); /* a Block with such a pivot, of floats */
bool lop_block_triangle(const lop_node *block, bool lower);
lop_truth lop_when_array_real(const lop_match *m); /* ?a is real */
lop_truth lop_when_untidy(const lop_match *m);     /* rules/tidy.c has something to do */
lop_truth lop_when_scale_one(const lop_match *m);  /* by one, of the same dtype */
/* For users' rules: ?a is an operator and square; assumed or known to be so. */
lop_truth lop_when_square(const lop_match *m);
lop_truth lop_when_symmetric(const lop_match *m);
lop_truth lop_when_self_adjoint(const lop_match *m);
lop_truth lop_when_unitary(const lop_match *m);

/* x has WIDE times more columns than ?a rows. */
lop_truth lop_when_wide_khatri(const lop_match *m);
/* @p is high; and the root float or complex; and its child a Kron or BlockDiag of square ones. */
lop_truth lop_when_high_power(const lop_match *m);
lop_truth lop_when_high_power_floats(const lop_match *m);
lop_truth lop_when_high_power_factors(const lop_match *m);
/* An action on ?a^@p: the dense form by squaring is cheaper than @p products, and fits. */
lop_truth lop_when_power_squares(const lop_match *m);

/* Each guard by name (guards.def). */
typedef struct lop_guard {
    const char *name, *needs, *doc;
    lop_truth (*when)(const lop_match *m);
} lop_guard;
int lop_nguards(void);
const lop_guard *lop_guard_at(int i);
const lop_guard *lop_guard_find(const char *name);                    /* NULL: none */
const lop_guard *lop_guard_of(lop_truth (*when)(const lop_match *m)); /* NULL: of none */

/* A kind whose solves cost about as much as its products. */
bool lop_cheap_to_solve(const lop_node *a);
/* Which diagonal block of a Block of 2 x 2 is such and no small part: 0 or 1, the larger; -1: none.
 */
int lop_bordered_pivot(const lop_node *block, bool updates);
/* Of such a Block: is a sparse factor of the whole better than the complement of either? */
bool lop_border_is_sparse(const lop_node *block);

#endif
