/* low_rank_parts.h: LowRank and LowRankUpdate in parts, for low_rank.c and low_rank_inverse.c. */
#ifndef LOP_LOW_RANK_PARTS_H
#define LOP_LOW_RANK_PARTS_H

#include "builds.h"

/* base + U C V^H in parts, borrowed; base NULL of a lowrank, c NULL where there is none. */
typedef struct parts {
    const lop_node *base, *u, *v, *c;
} parts;

static inline parts parts_of(const lop_node *a) {
    int i = a->op == &lop_op_lowrankupdate;
    return (parts){i ? a->child[0] : NULL, a->child[i], a->child[i + 1],
                   a->n > i + 2 ? a->child[i + 2] : NULL};
}

/* mode(a); NULL stays. */
static inline lop_status seen(const lop_maker *mk, int64_t mode, const lop_node *a,
                              const lop_node **out) {
    lop_attr m = {.i = {mode, 0, 0, 0}};
    *out = lop_node_ref(a);
    return mode && a ? (lop_node_unref(a), lop_make1(mk, &lop_op_view, &m, a, out)) : LOP_OK;
}

#endif
