/* py_constructor.h: what the files of constructors share. */
#ifndef PY_CONSTRUCTOR_H
#define PY_CONSTRUCTOR_H

#include "py/module/py.h"

/* What a constructor has gathered; everything owned. */
typedef struct py_parts {
    py_state *s;
    const lop_op *op;
    PyObject *arg[LOP_MAXPARAM]; /* borrowed, one a parameter; NULL: not given */
    PyObject *init, *arrays;     /* tuple, list */
    const lop_node *child[LOP_MAXPARAM];
    const lop_node **many; /* children of a variadic kind */
    int n, mode;           /* mode: rows of a grid */
    int levels;            /* of array parameters of rank -1 */
    lop_attr attr;
    lop_node like;
    bool has_like, foreign, copy;
    uint64_t serial;
} py_parts;

/* py_constructor_arguments.c. Reads all arguments into `p`, whose s, op and arrays are set; 0, or
 * -1 with an exception set. */
int py_read_arguments(py_parts *p, PyObject *args, PyObject *kwargs);
/* py_constructor_leaves.c. The leaf of an array with `core` dimensions that are no batch: that of
 * what was made of the same array before, where it is still known; with `dense` it is from now on.
 * Owned; NULL with the status in *st. */
const lop_node *py_array_leaf(py_state *s, PyArrayObject *a, lop_dtype dt, int core,
                              const lop_shape *shape, bool dense, lop_status *st, lop_err *err);
/* The leaf of an operator of one array is known while the operator lives. */
void py_hold_leaf(py_op *self);

#endif
