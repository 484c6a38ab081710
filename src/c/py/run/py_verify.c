/* py_verify.c: results that plans made, handed to Python to be compared with the expression as
 * written (src/pylinop/_verify/compare.py). The operands are as the run found them: what is given
 * as `out` is written afterwards. */
#include "py/module/py.h"

static int asked(py_state *s, const char *hook, PyObject *args) {
    PyObject *r = NULL;
    if (args) r = py_call_hook(s, hook, &PyTuple_GET_ITEM(args, 0), PyTuple_GET_SIZE(args));
    const int rc = r ? 0 : -1;
    Py_XDECREF(args);
    Py_XDECREF(r);
    return rc;
}

int py_verify_apply(py_state *s, py_op *self, PyArrayObject *x, int mode, bool right, bool vec,
                    PyArrayObject *made) {
    PyObject *args =
        Py_BuildValue("OOiOOO", (PyObject *)self, (PyObject *)x, mode, right ? Py_True : Py_False,
                      vec ? Py_True : Py_False, (PyObject *)made);
    return asked(s, "verify_apply", args);
}

int py_verify_value(py_state *s, py_op *self, int act, int64_t i, int64_t j, PyArrayObject *made) {
    PyObject *args =
        Py_BuildValue("OiLLO", (PyObject *)self, act, (long long)i, (long long)j, (PyObject *)made);
    return asked(s, "verify_value", args);
}

int py_verify_lazy(py_state *s, PyObject *a) { return asked(s, "verify_lazy", PyTuple_Pack(1, a)); }

void py_verify_drop(py_state *s) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (py_verify_lazy(s, Py_False) < 0) PyErr_Clear();
    PyErr_Restore(type, value, trace);
}
