/* k_quasi_unrolled.h: few states, unrolled (k_quasi_unrolled.c). g and its arrays are borrowed. */
#ifndef LOPK_QUASI_FEW_H
#define LOPK_QUASI_FEW_H

#include "k_quasi.h"

/* Those below take only such matrices. */
bool lopk_quasi_is_few(const lopk_quasi *g);
/* As lopk_quasi_wide, D and W only. */
int64_t lopk_quasi_few_ldl(const lopk_quasi *g, bool positive, double *D, void *W);
/* *w <- all that a likelihood of b needs; false, and *w as it was, where the recursion of
 * lopk_quasi_wide is to say. */
bool lopk_quasi_few_walk(const lopk_quasi *g, const void *b, lopk_quasi_walk *w);
/* y <- mode(A) x, rows ry and rx elements apart, kb columns side by side: 1, and of real g 8. */
void lopk_quasi_few_product(const lopk_quasi *g, int kb, int mode, void *y, int64_t ry,
                            const void *x, int64_t rx);
/* x <- A^-1 x by the factor, x of n x kb. */
void lopk_quasi_few_back(const lopk_quasi *g, int kb, const double *D, const void *W, void *x);

#endif
