/* low_rank_woodbury.h: what Woodbury's formula is made of, for low_rank_inverse.c and precision.c.
 */
#ifndef LOP_LOW_RANK_WOODBURY_H
#define LOP_LOW_RANK_WOODBURY_H

#include "low_rank_parts.h"

typedef struct woodbury {
    const lop_maker *mk;
    const lop_node *a;            /* borrowed: the update */
    parts p;                      /* borrowed */
    lop_attr dt;                  /* the dtype, as an attribute */
    const lop_node *w, *cap, *vh; /* owned: B^-1 U as an operator; I + C V^H W; V^H */
    const lop_node *u, *inner;    /* owned: U as an array; C V^H W */
    const lop_node *covariance;   /* owned: of B = P^-1, P as solves with it take it; else NULL */
    bool apart;                   /* a is the update of p but for rounding */
    bool own;                     /* the small matrix is Hermitian: B is, V is U, C is c I */
    lop_coef c;
    /* owned, where B is a real diagonal, V is U and C c I or a real diagonal, else NULL: that as a
     * vector, and U^H B^-1 U with the squares of U's columns */
    const lop_node *d, *gram;
} woodbury;

/* A diagonal matrix, or multiples of one. */
static inline bool lop_is_diagonal_matrix(const lop_node *a) {
    while (a->op == &lop_op_scaled) a = a->child[0];
    return lop_has(a, LOP_FLAG_diagonal);
}

/* low_rank_inverse.c: fills what is owned from mk, a, p and dt; gives it up. */
lop_status lop_woodbury_open(woodbury *s) LOP_MUST_CHECK;
void lop_woodbury_close(woodbury *s);
/* V^H B^-1 as an array. Owned in *out. */
lop_status lop_woodbury_right(const woodbury *s, const lop_node **out) LOP_MUST_CHECK;
/* `value`, a determinant or what is made of the inverse, as op says, else alt. Owned in *out. */
lop_status lop_woodbury_checked(const woodbury *s, const lop_op *op, const lop_node *value,
                                const lop_node *alt, const lop_node **out) LOP_MUST_CHECK;
/* C V^H x (C left out where there is none); the small matrix's solution. Owned in *out. */
lop_status lop_woodbury_through(const woodbury *s, const lop_node *x,
                                const lop_node **out) LOP_MUST_CHECK;
lop_status lop_woodbury_inner(const woodbury *s, const lop_node *t,
                              const lop_node **out) LOP_MUST_CHECK;

/* low_rank_inverse.c, precision.c. What the root asks of a, or of its inverse, by the update, which
 * is a itself or a but for rounding: checked against a, else by its dense form. Owned in *out. */
lop_status lop_solve_by_update(const lop_match *m, const lop_maker *mk, const lop_node *a,
                               const lop_node *update, const lop_node **out) LOP_MUST_CHECK;
lop_status lop_det_by_update(const lop_match *m, const lop_maker *mk, const lop_node *a,
                             const lop_node *update, const lop_node **out) LOP_MUST_CHECK;
lop_status lop_diagonal_by_update(const lop_match *m, const lop_maker *mk, const lop_node *a,
                                  const lop_node *update, const lop_node **out) LOP_MUST_CHECK;
lop_status lop_inverse_by_update(const lop_match *m, const lop_maker *mk, const lop_node *a,
                                 const lop_node *update, const lop_node **out) LOP_MUST_CHECK;

/* low_rank_generators.c: a = D + U C U^H of a real diagonal D, few columns and C = C^H as a
 * quasi-separable matrix, for what is asked of it in dt; *out NULL: it is none. Owned. */
lop_status lop_update_generators(const lop_maker *mk, const lop_node *a, lop_dtype dt,
                                 const lop_node **out) LOP_MUST_CHECK;
/* The determinant and diagonal `at` of the inverse of the update a: by its generators where it has
 * any, else by borders, else alt. Owned in *out. */
lop_status lop_safer_det(const lop_maker *mk, const lop_node *a, const lop_attr *attr,
                         const lop_node *alt, const lop_node **out) LOP_MUST_CHECK;
lop_status lop_safer_diagonal(const lop_maker *mk, const lop_node *a, const lop_attr *at,
                              lop_dtype dt, const lop_node *alt,
                              const lop_node **out) LOP_MUST_CHECK;

/* low_rank_inverse_trace.c: a as an update of a diagonal by few columns, also where it is written
 * as a sum. Owned in *out; NOMATCH: it is none. */
lop_status lop_woodbury_of_diagonal(const lop_maker *mk, lop_dtype dt, const lop_node *a,
                                    const lop_node **out) LOP_MUST_CHECK;

/* low_rank_inverse_projections.c: Y = S^-1 C V^H B^-1 as an array, A^-1 = B^-1 - W Y. Owned. */
lop_status lop_woodbury_left(const woodbury *s, const lop_node **out) LOP_MUST_CHECK;
/* As lop_woodbury_of_diagonal, of any base that is cheap to solve with, or an inverse. */
lop_status lop_woodbury_of_sum(const lop_maker *mk, lop_dtype dt, const lop_node *a,
                               const lop_node **out) LOP_MUST_CHECK;

/* sums_settled.c: a sum of three terms and more as an update of what is cheap to solve with, where
 * that is sooner solved with than the whole. Owned; NOMATCH: it is none. */
lop_status lop_settled_update(const lop_maker *mk, const lop_node *sum,
                              const lop_node **out) LOP_MUST_CHECK;

/* precision.c. Is it P^-1 + U C U^H, neither part negative, of a P that is not solved with at once?
 * Then x = P y with y = b - U cap^-1 C U^H P b, and y stands for P^-1 x: nothing is factored. */
bool lop_is_precision(const lop_node *a);
/* The numbers that have to be positive for that, as a vector: of a diagonal C, else *out is NULL.
 * Owned. */
lop_status lop_precision_signs(const woodbury *s, const lop_node **out) LOP_MUST_CHECK;
/* U C V^H alone. Owned in *out. */
lop_status lop_precision_low(const woodbury *s, const lop_node **out) LOP_MUST_CHECK;
/* x, y and the residual b - y - U C V^H x. Owned. */
lop_status lop_precision_solution(const woodbury *s, const lop_node *b, const lop_node **x,
                                  const lop_node **y, const lop_node **r) LOP_MUST_CHECK;
/* x, or alt where it is not accurate. Owned in *out. */
lop_status lop_precision_solve(const woodbury *s, const lop_node *b, const lop_node *alt,
                               const lop_node **out) LOP_MUST_CHECK;

#endif
