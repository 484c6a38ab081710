/* py_reading.c: views of arrays by their labels (py_reading.h): looked at once when they are made,
 * read of any array of the shape. */
#include "py_reading.h"

/* Does a view stay within its array? Strides may then be anything. */
static bool within(const py_reading *r, int labels) {
    for (int k = 0; k < r->ndim; k++) {
        int64_t low = r->start[k], high = low, far;
        bool ok = low >= 0 && high < r->shape[k];
        for (int j = 0; ok && j < labels; j++) {
            if (r->axis[j] != k || r->size[j] == 1) continue;
            const int64_t by = r->by[j];
            ok = by > -r->shape[k] && by < r->shape[k] &&
                 lop_mul_ok(r->size[j] - 1, by < 0 ? -by : by, &far) && far < r->shape[k];
            if (ok && by < 0) ok = (low -= far) >= 0;
            if (ok && by > 0) ok = (high += far) < r->shape[k];
        }
        if (!ok) {
            PyErr_SetString(PyExc_ValueError, "a view leaves its array");
            return false;
        }
    }
    return true;
}

py_reading *py_reading_new(PyObject *view, int labels) {
    PyObject *shape, *starts, *along;
    if (!PyTuple_Check(view)) {
        PyErr_SetString(PyExc_TypeError, "a view is three tuples");
        return NULL;
    }
    if (!PyArg_ParseTuple(view, "O!O!O!;a view is three tuples", &PyTuple_Type, &shape,
                          &PyTuple_Type, &starts, &PyTuple_Type, &along))
        return NULL;
    const Py_ssize_t n = PyTuple_GET_SIZE(shape);
    if (n > LOP_MAXAXES || PyTuple_GET_SIZE(starts) != n || PyTuple_GET_SIZE(along) != labels) {
        PyErr_SetString(PyExc_ValueError, "a view has other axes or labels than its operand");
        return NULL;
    }
    py_reading *r = PyMem_Calloc(1, sizeof *r);
    if (!r) return (py_reading *)PyErr_NoMemory();
    r->ndim = (int)n;
    for (Py_ssize_t j = 0; j < n; j++) {
        r->shape[j] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, j));
        r->start[j] = PyLong_AsSsize_t(PyTuple_GET_ITEM(starts, j));
    }
    bool ok = !PyErr_Occurred();
    for (int j = 0; ok && j < labels; j++) {
        long long by, size;
        ok = PyTuple_Check(PyTuple_GET_ITEM(along, j));
        if (!ok) PyErr_SetString(PyExc_TypeError, "a label of a view is three numbers");
        ok = ok && PyArg_ParseTuple(PyTuple_GET_ITEM(along, j), "iLL;a label is three numbers",
                                    &r->axis[j], &by, &size);
        if (!ok) break;
        r->by[j] = by;
        r->size[j] = size;
        ok = r->axis[j] >= 0 && r->axis[j] < n && size >= 1;
        if (!ok) PyErr_SetString(PyExc_ValueError, "a label of a view lies on none of its axes");
    }
    if (ok && within(r, labels)) return r;
    PyMem_Free(r);
    return NULL;
}

bool py_reading_axes(const py_reading *r, PyArrayObject *a, lop_axes *x) {
    const npy_intp size = PyArray_ITEMSIZE(a), *dim = PyArray_DIMS(a), *stride = PyArray_STRIDES(a);
    if (PyArray_NDIM(a) != r->ndim) return false;
    for (int j = 0; j < r->ndim; j++)
        if (dim[j] != r->shape[j] || (stride[j] % size && dim[j] > 1)) return false;
    for (int j = 0; j < x->n; j++) {
        x->size[j] = r->size[j];
        x->stride[j] = r->size[j] > 1 ? r->by[j] * (stride[r->axis[j]] / size) : 0;
    }
    return true;
}

const void *py_reading_start(const py_reading *r, PyArrayObject *a) {
    const char *p = PyArray_DATA(a);
    for (int j = 0; r && j < r->ndim; j++) p += r->start[j] * PyArray_STRIDE(a, j);
    return p;
}
