/* py_program.c: several actions computed by one plan, as the results of a program. */
#include "py/module/py.h"

/* The program: new. Its operands are those that are asked about. */
static PyObject *program_of(py_state *s, PyObject *asked) {
    PyObject *program = NULL;
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(asked); k++) {
        PyObject *op;
        long long act, i, j;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(asked, k), "OLLL:_results", &op, &act, &i, &j) ||
            !py_is_op(s, op)) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "not an operator");
            Py_XDECREF(program);
            return NULL;
        }
        const lop_attr attr = {.i = {act, i, j, 0}};
        PyObject *more = py_build(s, &lop_op_results, &attr, op, program);
        Py_XDECREF(program);
        if (!more) return NULL;
        program = more;
    }
    return program;
}

/* The value of `action` at byte `at` of the column: new. */
static PyObject *value_at(PyArrayObject *column, const lop_node *action, int64_t at) {
    npy_intp dim[LOP_MAXDIM];
    for (int i = 0; i < action->shape.ndim; i++) dim[i] = action->shape.dim[i];
    PyArray_Descr *dtype = PyArray_DescrFromType(py_typenum(action->dtype));
    PyObject *value =
        dtype ? PyArray_NewFromDescr(&PyArray_Type, dtype, action->shape.ndim, dim, NULL,
                                     PyArray_BYTES(column) + at, NPY_ARRAY_CARRAY_RO, NULL)
              : NULL;
    if (value && PyArray_SetBaseObject((PyArrayObject *)value, Py_NewRef((PyObject *)column)) < 0)
        Py_CLEAR(value);
    return value;
}

/* Takes the column apart, from its end. */
static PyObject *values_of(py_state *s, const lop_node *node, PyArrayObject *column,
                           Py_ssize_t count) {
    PyObject *values = PyList_New(count);
    for (Py_ssize_t k = count; values && k-- > 0; node = lop_results_before(node)) {
        const lop_node *action = NULL, *before = lop_results_before(node);
        lop_err err;
        lop_err_open(&err);
        lop_status st = lop_results_asked(node, &action, &err);
        PyObject *value =
            st == LOP_OK ? value_at(column, action, before ? lop_rows(before) : 0) : NULL;
        lop_node_unref(action);
        if (st != LOP_OK) py_raise(s, st, &err, NULL, "compute");
        if (!value) {
            Py_CLEAR(values);
            break;
        }
        PyList_SET_ITEM(values, k, value);
    }
    return values;
}

/* The program of a list, new; NULL with an exception where it is none. */
static PyObject *program_or_error(py_state *s, PyObject *asked) {
    if (!PyList_Check(asked) || PyList_GET_SIZE(asked) == 0)
        return PyErr_Format(PyExc_TypeError, "a list of what is asked is due");
    return program_of(s, asked);
}

PyObject *py_results_explained(py_state *s, PyObject *asked) {
    PyObject *program = program_or_error(s, asked);
    PyObject *plan = program ? py_explain(s, (py_op *)program, NULL, ACT_DENSE, 0, 0) : NULL;
    Py_XDECREF(program);
    return plan;
}

PyObject *py_results_priced(py_state *s, PyObject *asked) {
    PyObject *program = program_or_error(s, asked), *priced = NULL;
    py_plan want = {.act = ACT_DENSE};
    const py_plan *e = program ? py_plan_of(s, (py_op *)program, &want, NULL) : NULL;
    if (e) priced = Py_BuildValue("Ld", (long long)e->plan->dense, e->plan->seconds);
    Py_XDECREF(program);
    return priced;
}

PyObject *py_results(py_state *s, PyObject *asked) {
    PyObject *program = program_or_error(s, asked), *column = NULL, *values = NULL;
    const Py_ssize_t count = program ? PyList_GET_SIZE(asked) : 0;
    if (program) column = py_value_array(s, (py_op *)program, ACT_DENSE, 0, 0, NULL);
    if (column == Py_NotImplemented) {
        PyErr_SetString(PyExc_NotImplementedError, "a program of operators with callables");
    } else if (column) {
        PyArray_CLEARFLAGS((PyArrayObject *)column, NPY_ARRAY_WRITEABLE);
        values = values_of(s, py_node(s, (py_op *)program), (PyArrayObject *)column, count);
    }
    Py_XDECREF(column);
    Py_XDECREF(program);
    return values;
}
