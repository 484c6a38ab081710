/* k_selected_inverse.h: entries of the inverse of a sparse matrix on the pattern of its factor. All
 * memory is *borrowed*. */
#ifndef LOPK_SELECT_H
#define LOPK_SELECT_H

#include "base/buf.h"

/* The pattern of the Cholesky factor of a symmetric pattern, given by the columns below i of each
 * row i: col[start[i] .. start[i + 1]). First parent (n) and how many rows lie below the diagonal
 * in each column, as column starts at[0 .. n]; then the rows, ascending in each column. mark: n.
 * O(n + entries of the factor). */
void lopk_select_counts(int64_t n, const int64_t *start, const int64_t *col, int64_t *parent,
                        int64_t *at, int64_t *mark);
void lopk_select_rows(int64_t n, const int64_t *start, const int64_t *col, const int64_t *parent,
                      const int64_t *at, int64_t *row, int64_t *mark, int64_t *next);

/* The order of the largest dense matrix that lopk_select needs. */
int64_t lopk_select_front(int64_t n, const int64_t *at, const int64_t *row);

/* How many numbers of work it takes beside. */
enum { LOPK_SELECT_PANEL = 48 };
int64_t lopk_select_work(int64_t order);

/* A = L D U with unit triangles on such a pattern: lo[p] = L[i, j], up[p] = U[j, i], d[j] = 1 / D_j
 * become the entries of A^-1 at the same places. place: n of -1,
 * and as many as the order; front: twice the order squared; work: lopk_select_work. Floats only.
 * NOMEM: they are not. */
lop_status lopk_select(lop_dtype dt, int64_t n, const int64_t *at, const int64_t *row, void *lo,
                       void *up, void *d, int64_t *place, void *front, void *work) LOP_MUST_CHECK;

#endif
