/* py_constructor_levels.c: constructor arguments of kinds with several levels: sizes, levels. */
#include "py/module/py.h"

/* A size or a tuple of sizes; how many, or -1. */
int py_take_sizes(const lop_op *op, const lop_param *param, PyObject *o, int64_t *n) {
    PyObject *all = PyIndex_Check(o) ? PyTuple_Pack(1, o) : PySequence_Tuple(o);
    if (!all) return -1;
    Py_ssize_t count = PyTuple_GET_SIZE(all);
    if (count < 1 || count > LOP_MAXDIM - 3)
        PyErr_Format(PyExc_ValueError, "%s(%s=%R): expected 1 to %d sizes", op->title, param->name,
                     o, LOP_MAXDIM - 3);
    for (Py_ssize_t i = 0; i < count && !PyErr_Occurred(); i++) {
        PyObject *one = PyNumber_Index(PyTuple_GET_ITEM(all, i));
        n[i] = one ? PyLong_AsLongLong(one) : -1;
        Py_XDECREF(one);
        if (!one && py_not_so())
            PyErr_Format(PyExc_TypeError, "%s(%s=%R): expected a size, or a tuple of sizes",
                         op->title, param->name, o);
        if (!PyErr_Occurred() && n[i] < 0)
            PyErr_Format(PyExc_ValueError, "%s(%s=%R): a size cannot be negative", op->title,
                         param->name, o);
    }
    Py_DECREF(all);
    return PyErr_Occurred() ? -1 : (int)count;
}

int py_find_levels(const lop_op *op, PyObject *const *arg, int *levels) {
    int64_t n[LOP_MAXDIM];
    *levels = 1;
    for (int i = 0; i < LOP_MAXPARAM && op->param[i].name; i++) {
        const lop_param *param = &op->param[i];
        if (param->role == LOP_P_SIZES && (!arg[i] || arg[i] == Py_None)) *levels = 0;
        if (!arg[i] || arg[i] == Py_None) continue;
        if (param->role == LOP_P_SIZES) *levels = py_take_sizes(op, param, arg[i], n);
        if (param->role == LOP_P_LEVELS) {
            if (!PyIndex_Check(arg[i])) {
                PyErr_Format(PyExc_TypeError, "%s(%s=%R): expected an integer", op->title,
                             param->name, arg[i]);
                return -1;
            }
            *levels = py_take_sizes(op, param, arg[i], n);
            if (*levels > 0 && (n[0] < 1 || n[0] > LOP_MAXDIM - 3)) {
                PyErr_Format(PyExc_ValueError, "%s(%s=%R): expected 1 to %d levels", op->title,
                             param->name, arg[i], LOP_MAXDIM - 3);
                return -1;
            }
            if (*levels > 0) *levels = (int)n[0];
        }
        if (*levels < 0) return -1;
    }
    return 0;
}

int py_sizes(py_state *s, int levels, const int64_t *n, const lop_node **out) {
    lop_err err;
    lop_err_open(&err);
    lop_node like = {.shape = {.ndim = levels}, .dtype = LOP_f64, .weak = LOP_WEAK, .core = 0};
    for (int i = 0; i < levels && i < LOP_MAXDIM; i++) like.shape.dim[i] = n[i];
    lop_status st = lop_node_make(&s->ctx, &lop_op_sizes, NULL, 0, NULL, &like, out, &err);
    return st == LOP_OK ? 0 : (py_raise(s, st, &err, NULL, "build"), -1);
}

int py_ravel(py_state *s, int levels, const lop_node **leaf) {
    if (levels == 1) return 0;
    lop_err err;
    lop_err_open(&err);
    lop_attr attr = {.i = {levels, 0, 0, 0}};
    const lop_node *a = *leaf;
    lop_status st = lop_node_make(&s->ctx, &lop_op_ravel, &attr, 1, &a, NULL, leaf, &err);
    lop_node_unref(a);
    return st == LOP_OK ? 0 : (py_raise(s, st, &err, NULL, "build"), -1);
}

lop_status py_square(py_state *s, const lop_node **child, int *n, lop_err *err) {
    lop_node like = {.shape = child[1]->shape, .dtype = LOP_f64, .weak = LOP_WEAK, .core = 0};
    for (int l = 0; l < like.shape.ndim; l++) {
        if (like.shape.dim[l] % 2 == 0)
            return lop_fail(err, LOP_DIM,
                            "%lld diagonals on level %d belong to no square matrix: n is needed",
                            (long long)like.shape.dim[l], l);
        like.shape.dim[l] = (like.shape.dim[l] + 1) / 2;
    }
    lop_status st = lop_node_make(&s->ctx, &lop_op_sizes, NULL, 0, NULL, &like, &child[2], err);
    *n += st == LOP_OK;
    return st;
}

int py_take_blocks(const lop_op *op, const lop_param *param, PyObject *a, bool first, int64_t *b) {
    PyObject *shape = PyObject_GetAttrString(a, "shape");
    if (!shape) return -1;
    const Py_ssize_t nd = PyTuple_GET_SIZE(shape);
    const int64_t m = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, nd - 2)),
                  n = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, nd - 1));
    const bool fits = m == n && (first || n == *b);
    if (!fits && first)
        PyErr_Format(PyExc_ValueError,
                     "%s(%s=...): expected square blocks, of shape (..., N, b, b), got %S",
                     op->title, param->name, shape);
    else if (!fits)
        PyErr_Format(PyExc_ValueError,
                     "%s(%s=...): expected blocks of %lld x %lld as the others, got the shape %S",
                     op->title, param->name, (long long)*b, (long long)*b, shape);
    Py_DECREF(shape);
    if (first && fits) *b = n;
    return fits ? 0 : -1;
}
