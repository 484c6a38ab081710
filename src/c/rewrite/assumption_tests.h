/* assumption_tests.h: tests the assumptions about matrices before these are used
 * (pl.config(check="full")). */
#ifndef LOP_DECLARED_H
#define LOP_DECLARED_H

#include "expr/op.h"

/* `root` with the arrays of each declared kind below it behind the test of its declaration
 * (op_assumption_dense.c, op_assumption_band.c): owned; `root` itself, retained, where nothing is
 * declared. */
lop_status lop_declared_tested(const lop_node *root, const lop_node **out,
                               lop_err *err) LOP_MUST_CHECK;

#endif
