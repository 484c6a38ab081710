/* assumptions.h: what is assumed of matrices, put to the test (pl.config(check="full")) or read as
 * the kind that it says. */
#ifndef LOP_ASSUMPTIONS_H
#define LOP_ASSUMPTIONS_H

#include "expr/op.h"
#include "rewrite.h"

/* `root` with the arrays of each kind below it that has an assumption behind the test of it
 * (op_assumption_dense.c, op_assumption_band.c): owned; `root` itself, retained, where nothing is
 * assumed. */
lop_status lop_assumptions_tested(const lop_node *root, const lop_node **out,
                                  lop_err *err) LOP_MUST_CHECK;

/* `root` with each Dense that is assumed diagonal or tridiagonal as that kind, of its diagonals,
 * and what is written over it closed as if it had been written so: owned; `root` itself, retained,
 * where there is none. */
lop_status lop_declared_kinds(const lop_rules *rules, const lop_node *root, const lop_node **out,
                              lop_err *err) LOP_MUST_CHECK;

#endif
