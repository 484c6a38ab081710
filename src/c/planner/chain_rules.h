/* chain_rules.h: the right sides that the planner of chains computes; see chain.h. */
#ifndef LOP_CHAIN_RULES_H
#define LOP_CHAIN_RULES_H

#include "rewrite/build.h"
#include "rewrite/costs.h"

LOP_BUILD(chain_apply);
LOP_BUILD(chain_dense);
LOP_BUILD(dense_several);
LOP_BUILD(chain_diagonal);
LOP_BUILD(chain_trace);
LOP_BUILD(chain_element);

/* What is read off a product, the root's first child, without forming it: `make` of a left and a
 * right half (borrowed arrays), m x k and k x n, owned in *out; `seconds` of that by k; `whole`, of
 * the same off the dense form. */
typedef struct lop_pair_reader {
    double (*seconds)(const lop_match *m, const lop_costs *c, int64_t k);
    double whole;
    lop_status (*make)(const lop_match *m, const lop_maker *mk, const lop_node *left,
                       const lop_node *right, const lop_node **out);
} lop_pair_reader;
lop_status lop_chain_pair(const lop_match *m, const lop_maker *mk, const lop_pair_reader *r,
                          const lop_node **out) LOP_MUST_CHECK;

#endif
