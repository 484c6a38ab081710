/* tidy_products.h: sums of products that share a factor, and squares of projectors, for
 * tidy.c. Owned in *out; NOMATCH: they are not that. */
#ifndef LOP_TIDY_PRODUCTS_H
#define LOP_TIDY_PRODUCTS_H

#include "builds.h"

/* c A X B + d A Y B as A (c X + d Y) B, where that is no wider than the wider of the two. */
lop_status lop_products_add(const lop_maker *mk, const lop_node *a, const lop_node *b,
                            const lop_node **out) LOP_MUST_CHECK;
/* P P of a projector P = U (V U)^-1 V, or of I - P, as P. */
lop_status lop_products_project(const lop_node *a, const lop_node *b,
                                const lop_node **out) LOP_MUST_CHECK;

#endif
