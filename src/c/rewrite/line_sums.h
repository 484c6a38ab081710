/* line_sums.h: sums of Matern kernels of points on a line and of diagonals: up to the order of the
 * points quasi-separable matrices. */
#ifndef LOP_LINE_SUMS_H
#define LOP_LINE_SUMS_H

#include "expr/op.h"

enum { LOP_LINE_TERMS = LOP_MOST_POINTS };

typedef struct lop_line_sum {
    int64_t states;
    int sets, kernels, diagonals;
    /* borrowed: n x 1; of more than one set it is to be seen whether all are the same points */
    const lop_node *points[LOP_LINE_TERMS];
    const lop_node *low; /* borrowed: a lowrank or a lowrankupdate beside them, or NULL */
    /* borrowed: kernels, or multiples of them; Diag, identities, or multiples of these */
    const lop_node *kernel[LOP_LINE_TERMS], *diagonal[LOP_LINE_TERMS];
} lop_line_sum;

/* `a` read as such a sum of one kernel at least, real, without batch and large enough that its
 * states are the cheaper way, by sizes alone; false: it is none. */
bool lop_line_sum_read(lop_line_sum *s, const lop_node *a);
/* The same, with one thin term beside them, whose own base counts as terms. */
bool lop_line_update_read(lop_line_sum *s, const lop_node *a);

#endif
