/* build.h: a computed right side of a rule: it makes the node that replaces the match, owned in
 * *out. */
#ifndef LOP_BUILD_H
#define LOP_BUILD_H

#include "rewrite.h"

#define LOP_BUILD(name)                                                                            \
    lop_status lop_build_##name(const lop_match *m, const lop_maker *mk, const lop_node **out)

#endif
