/* tidy_krons.h: products and sums of Krons that are one, for tidy.c. Owned in *out; NOMATCH: they
 * are not. */
#ifndef LOP_TIDY_KRONS_H
#define LOP_TIDY_KRONS_H

#include "builds.h"

/* Two Krons, or a Kron and a sum of Krons that is multiplied out. */
lop_status lop_krons_meet(const lop_maker *mk, const lop_node *a, const lop_node *b,
                          const lop_node **out) LOP_MUST_CHECK;
/* Two Krons that differ in one factor, or one with the identity; multiples of these. */
lop_status lop_krons_add(const lop_maker *mk, const lop_node *a, const lop_node *b,
                         const lop_node **out) LOP_MUST_CHECK;
/* B + U V^H, U and V Krons. */
lop_status lop_krons_update(const lop_maker *mk, const lop_node *base, const lop_node *u,
                            const lop_node *v, const lop_node **out) LOP_MUST_CHECK;

#endif
