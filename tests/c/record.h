/* record.h: plans that the batteries have run, for the executors on the arrays of other libraries
 * (tests/formulas/batteries.py): what a plan is made of, its leaves' numbers, and what C gave. */
#ifndef RECORD_H
#define RECORD_H

#include "support.h"

/* With PYLINOP_RECORD=FILE in the environment: appends one line of JSON, of the canonical form of
 * `root`, which C has run to `result`; of each n-th call with PYLINOP_RECORD_EACH=n. Else nothing.
 */
void record_plan(world *w, const lop_node *root, const lop_buf *result, const char *who);

#endif
