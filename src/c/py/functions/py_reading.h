/* py_reading.h: how the labels of an operand lie on the axes of an array, where index equations and
 * groups say it. */
#ifndef PY_READING_H
#define PY_READING_H

#include "py/module/py.h"

#include "contract/contract.h"

/* How the labels of an operand lie on the axes of an array. */
typedef struct py_reading {
    int ndim, axis[LOP_MAXAXES];                    /* of a label */
    int64_t by[LOP_MAXAXES], size[LOP_MAXAXES];     /* of a label */
    int64_t shape[LOP_MAXAXES], start[LOP_MAXAXES]; /* of an axis */
} py_reading;

/* Owned (PyMem_Free), of (shape, starts, ((axis, by, size), ...)) of so many labels; NULL with an
 * exception: it leaves its array. */
py_reading *py_reading_new(PyObject *view, int labels);
/* The sizes and strides of its labels in an array; false: of another shape, or with strides that
 * count no elements. */
bool py_reading_axes(const py_reading *r, PyArrayObject *a, lop_axes *x);
/* Where it starts in an array; r may be NULL. */
const void *py_reading_start(const py_reading *r, PyArrayObject *a);

#endif
