/* checked_solution.h: solutions, and what is made of inverses, that are checked before they are
 * accepted. */
#ifndef LOP_CHECKED_SOLUTION_H
#define LOP_CHECKED_SOLUTION_H

#include "planner/chain_rules.h"

/* checked_solution.c. `a` is borrowed, the others are made by open and given up by close. */
typedef struct lop_check {
    const lop_maker *mk;
    const lop_node *a;
    const lop_node *q, *u, *v, *av; /* A^H u; A v times a power of two, near one; a probe; A v */
    int room;                       /* lop_room of a solution that is refined where it is larger */
    bool exact;                     /* without the check by |A v| before it: what seldom runs */
} lop_check;
lop_status lop_check_open(lop_check *k, lop_dtype dt);
void lop_check_close(lop_check *k);
lop_status lop_check_residual(const lop_check *k, const lop_node *x, const lop_node *b,
                              const lop_node **out);
/* x where its backward error is small enough, else alt; `by` with a residual that is there. */
lop_status lop_check_by(const lop_check *k, const lop_node *x, const lop_node *r, const lop_node *b,
                        const lop_node *alt, const lop_node **out);
/* checked_value or checked_det of its nine children, with a cheaper bound first. Owned in *out. */
lop_status lop_check_made(const lop_check *k, const lop_op *op, int n, const lop_node *const *child,
                          const lop_node **out) LOP_MUST_CHECK;
lop_status lop_check_instead(const lop_check *k, const lop_node *x, const lop_node *b,
                             const lop_node *alt, const lop_node **out);
/* x of A x = b likewise, in b's dtype, else by Cholesky or LU of the dense form. */
lop_status lop_check_or_dense(const lop_maker *mk, const lop_node *a, const lop_node *x,
                              const lop_node *b, const lop_node **out);
/* sparse_borders.c: mode(`update`)^-1 b, checked, and det(`update`) by [B U C; -V^H I] of a sparse
 * B; else alt. */
lop_status lop_border_solve(const lop_check *k, const lop_node *update, int mode, const lop_node *b,
                            const lop_node *alt, const lop_node **out);
lop_status lop_border_diagonal(const lop_maker *mk, const lop_node *update, const lop_attr *at,
                               lop_dtype dt, const lop_node *alt, const lop_node **out);
lop_status lop_border_det(const lop_maker *mk, const lop_node *update, const lop_attr *how,
                          const lop_node *alt, const lop_node **out);
lop_status lop_build_minus(const lop_maker *mk, const lop_node *a, const lop_node *b,
                           const lop_node **out);

#endif
