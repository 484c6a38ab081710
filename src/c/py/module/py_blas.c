/* py_blas.c: _blas_bind and what can be asked about the BLAS of the process; _base/blas.py says
 * which library is to be taken and in what words it is asked for. */
#include "py.h"

#include "kernels/dense/blas_table.h"
#include "kernels/dense/k_blas.h"

/* _blas_bind(module, path, wide): the table bound to what the loaded module at `path` was linked
 * with, or else to the libraries at `path`, loaded. None, or why not. */
PyObject *py_blas_bind(PyObject *self, PyObject *args) {
    PyObject *path;
    lop_err err;
    int module, wide;
    (void)self;
    if (!PyArg_ParseTuple(args, "pO&p:_blas_bind", &module, PyUnicode_FSConverter, &path, &wide))
        return NULL;
    lop_err_open(&err);
    const lop_status st = module ? lop_blas_of_module(PyBytes_AS_STRING(path), wide, &err)
                                 : lop_blas_load(PyBytes_AS_STRING(path), wide, &err);
    Py_DECREF(path);
    if (st == LOP_OK) Py_RETURN_NONE;
    return st == LOP_NOMEM ? PyErr_NoMemory() : PyUnicode_DecodeFSDefault(err.text);
}

/* _blas(): of the library that is bound. */
PyObject *py_blas(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    if (!lop_blas_bound()) return PyErr_Format(PyExc_RuntimeError, "no BLAS library is bound");
    PyObject *remedies = PyList_New(0);
    const char *text;
    for (int i = 0; remedies && (text = lop_blas_remedy(i)); i++) {
        PyObject *one = PyUnicode_FromString(text);
        if (!one || PyList_Append(remedies, one) < 0) Py_CLEAR(remedies);
        Py_XDECREF(one);
    }
    PyObject *file = remedies ? PyUnicode_DecodeFSDefault(lop_blas_file()) : NULL;
    if (!file) {
        Py_XDECREF(remedies);
        return NULL;
    }
    return Py_BuildValue("{szszsisisNszsN}", "config", lopk_blas_config(), "core",
                         lop_blas.openblas_get_corename(), "threads", lopk_threads(), "integers",
                         lop_blas_integers(), "file", file, "spelling", lop_blas_spelling(),
                         "remedies", remedies);
}

/* Py_BuildValue may have failed before: then nothing more is done. */
static void add(void *list, const char *file, const char *config, int threads) {
    PyObject *path = PyErr_Occurred() ? NULL : PyUnicode_DecodeFSDefault(file),
             *one = path ? Py_BuildValue("(Nsi)", path, config, threads) : NULL;
    if (one) (void)PyList_Append(list, one);
    Py_XDECREF(one);
}

/* _blas_all(): (file, what OpenBLAS says of itself or "", threads or 0) of each library with a BLAS
 * in the process. */
PyObject *py_blas_all(PyObject *module, PyObject *unused) {
    PyObject *list = PyList_New(0);
    (void)module;
    (void)unused;
    if (list) lop_blas_all(add, list);
    if (PyErr_Occurred()) Py_CLEAR(list);
    return list;
}

/* _blas_linked(): was this module linked with a BLAS? */
PyObject *py_blas_linked(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
#ifdef PYLINOP_BLAS_LINKED
    Py_RETURN_TRUE;
#else
    Py_RETURN_FALSE;
#endif
}
