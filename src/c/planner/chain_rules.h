/* chain_rules.h: the right sides that the planner of chains computes; see chain.h. */
#ifndef LOP_CHAIN_RULES_H
#define LOP_CHAIN_RULES_H

#include "rewrite/build.h"

LOP_BUILD(chain_apply);
LOP_BUILD(chain_dense);
LOP_BUILD(dense_several);
LOP_BUILD(chain_diagonal);
LOP_BUILD(chain_trace);
LOP_BUILD(chain_element);

#endif
