/* builds.h: right sides that are computed. Each makes the node that replaces the match: owned in
 * *out. */
#ifndef LOP_BUILDS_H
#define LOP_BUILDS_H

#include "rewrite.h"

#define LOP_BUILD(name)                                                                            \
    lop_status lop_build_##name(const lop_match *m, const lop_maker *mk, const lop_node **out)
/* builds.c */
LOP_BUILD(view_view);
LOP_BUILD(swap_swap);
LOP_BUILD(view_real);
LOP_BUILD(view_diag);
LOP_BUILD(view_scaled);
LOP_BUILD(closed);
LOP_BUILD(one_kind);
LOP_BUILD(zeros);
LOP_BUILD(cast_x);
LOP_BUILD(widen);
LOP_BUILD(over_diag);
LOP_BUILD(apply_power);
LOP_BUILD(solve_scaled);
LOP_BUILD(cholsolve);
LOP_BUILD(lusolve);
LOP_BUILD(trisolve);
LOP_BUILD(diag_plus_identity);
LOP_BUILD(scaled_value);
LOP_BUILD(apply_part);
LOP_BUILD(part_value);
LOP_BUILD(eye);
LOP_BUILD(apply_eye);
LOP_BUILD(diagonal_view);
LOP_BUILD(diagonal_prod);
LOP_BUILD(diagonal_dense);
LOP_BUILD(trace_diagonal);
LOP_BUILD(element_view);
LOP_BUILD(element_dense);
LOP_BUILD(element_eye);
LOP_BUILD(element_column);
/* chain_build.c: planned, see chain.h */
LOP_BUILD(chain_apply);
LOP_BUILD(chain_dense);
LOP_BUILD(chain_diagonal);
LOP_BUILD(chain_trace);
LOP_BUILD(chain_element);
/* builds_kron.c */
LOP_BUILD(kron_kron);
LOP_BUILD(view_kron);
LOP_BUILD(inverse_kron);
LOP_BUILD(apply_kron);
LOP_BUILD(solve_kron);
LOP_BUILD(dense_kron);
LOP_BUILD(diagonal_kron);
LOP_BUILD(trace_kron);
LOP_BUILD(element_kron);

#endif
