/* assumption_tests.h: tests the assumptions about matrices before these are used
 * (pl.config(check="full")). */
#ifndef LOP_ASSUMPTION_TESTS_H
#define LOP_ASSUMPTION_TESTS_H

#include "expr/op.h"

/* `root` with the arrays of each kind below it that has an assumption behind the test of it
 * (op_assumption_dense.c, op_assumption_band.c): owned; `root` itself, retained, where nothing is
 * assumed. */
lop_status lop_assumptions_tested(const lop_node *root, const lop_node **out,
                                  lop_err *err) LOP_MUST_CHECK;

#endif
