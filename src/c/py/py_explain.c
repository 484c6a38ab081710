/* py_explain.c: the plan of an action as text, made anew and thrown away; nothing is computed. */
#include "py.h"

#include "core/dump.h"

PyObject *py_plan_text(py_state *s, py_op *self, PyArrayObject *x, int act, int64_t i, int64_t j) {
    lop_err err;
    lop_err_open(&err);
    const lop_node *node = py_node(s, self), *root = NULL;
    py_plan want = {.act = act, .i = i, .j = j, .dt = x ? (int)py_dtype(x) : 0};
    lop_shape shape = {.ndim = 0};
    uint64_t rhs;
    lop_plan *plan = NULL;
    if (!node) return NULL;
    if (x && (PyArray_NDIM(x) < 1 || PyArray_NDIM(x) > LOP_MAXDIM))
        return PyErr_Format(PyExc_ValueError,
                            "a right-hand side of 1 to %d dimensions is due, got %d", LOP_MAXDIM,
                            PyArray_NDIM(x));
    if (x) {
        for (int d = 0; d < PyArray_NDIM(x); d++) shape.dim[shape.ndim++] = PyArray_DIM(x, d);
        if (shape.ndim == 1) shape.dim[shape.ndim++] = 1;
    }
    lop_status st = py_action(s, node, &want, &shape, &rhs, &root, &err);
    py_config_here(s);
    if (st == LOP_OK) st = lop_plan_make(&s->ctx, s->rules, &s->options, root, &plan, &err);
    lop_node_unref(root);
    if (st != LOP_OK) return py_raise(s, st, &err, (PyObject *)self, "explain");
    char *text = lop_plan_dump(plan, s->rules, 60);
    PyObject *r = text ? PyUnicode_FromString(text) : PyErr_NoMemory();
    lop_free(&s->ctx, text);
    lop_plan_unref(plan);
    return r;
}
