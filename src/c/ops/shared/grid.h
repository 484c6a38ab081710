/* grid.h: sums s L + c I of a Laplacian L of a grid, which cosine, sine or Fourier transforms make
 * diagonal (ops/solves/op_grid_solve.c). */
#ifndef LOP_GRID_H
#define LOP_GRID_H

#include "expr/coefficients.h"
#include "expr/op.h"

typedef struct lop_grid {
    const lop_node *laplacian; /* borrowed; NULL: there is none */
    lop_coef s, c;
} lop_grid;

/* Reads `a` as s L + c I of one Laplacian, sums and multiples in any order. False: it is none, or
 * has more axes than a transform takes. */
bool lop_grid_read(const lop_node *a, lop_grid *g);

#endif
