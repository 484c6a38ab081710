/* py_lazy_replay.c: a formula that was built once, built again of other leaves: its nodes one by
 * one, without the checks and sweeps that made them (_programs/replay.py). Cost: a node's block and
 * references, 80 ns (EPYC, busy, 2026-11-25: seven nodes in 0.57 us). */
#include "py_lazy.h"

/* Argument i of a node as it is to be, borrowed: the one made at its place, or, where the place is
 * -1, its own. NULL with an exception. */
static PyObject *argument(const py_lazy *like, PyObject *places, PyObject *made, Py_ssize_t i) {
    Py_ssize_t at = PyLong_AsSsize_t(PyTuple_GET_ITEM(places, i));
    if (at == -1) return PyErr_Occurred() ? NULL : py_lazy_args(like)[i];
    if (at >= 0 && at < PyList_GET_SIZE(made)) return PyList_GET_ITEM(made, at);
    if (!PyErr_Occurred()) PyErr_Format(PyExc_IndexError, "no node %zd to replay", at);
    return NULL;
}

/* The node `like`, of what was made at the places of its arguments. New. */
static PyObject *again(py_state *s, const py_lazy *like, PyObject *places, PyObject *made) {
    PyObject *args[2] = {NULL, NULL}, *many = NULL;
    if (like->nargs > 2 && !(many = PyTuple_New(like->nargs))) return NULL;
    for (int i = 0; i < like->nargs; i++) {
        PyObject *x = argument(like, places, made, i);
        if (!x) {
            Py_XDECREF(many);
            return NULL;
        }
        if (many)
            PyTuple_SET_ITEM(many, i, Py_NewRef(x));
        else
            args[i] = x;
    }
    py_lazy *a = py_lazy_new(s, (py_head)like->head, many ? many : args[0], args[1], like->nd,
                             like->dim, like->dtype);
    Py_XDECREF(many);
    if (!a) return NULL;
    a->nargs = like->nargs;
    a->mode = like->mode;
    a->more = Py_XNewRef(like->more);
    return (PyObject *)a;
}

static bool fits(const py_state *s, PyObject *row) {
    if (!PyTuple_CheckExact(row) || PyTuple_GET_SIZE(row) != 2) return false;
    PyObject *like = PyTuple_GET_ITEM(row, 0), *places = PyTuple_GET_ITEM(row, 1);
    return py_is_lazy(s, like) && ((py_lazy *)like)->head != PY_GONE &&
           PyTuple_CheckExact(places) && PyTuple_GET_SIZE(places) == ((py_lazy *)like)->nargs;
}

static PyObject *replay(py_state *s, PyObject *rows, PyObject *leaves) {
    PyObject *made = PyList_GetSlice(leaves, 0, PyList_GET_SIZE(leaves));
    for (Py_ssize_t i = 0; made && i < PyList_GET_SIZE(made); i++) {
        if (py_is_lazy(s, PyList_GET_ITEM(made, i))) continue;
        PyErr_SetString(PyExc_TypeError, "formulas are replayed of LazyArrays");
        Py_CLEAR(made);
    }
    for (Py_ssize_t i = 0; made && i < PyTuple_GET_SIZE(rows); i++) {
        PyObject *row = PyTuple_GET_ITEM(rows, i), *a = NULL;
        if (fits(s, row))
            a = again(s, (py_lazy *)PyTuple_GET_ITEM(row, 0), PyTuple_GET_ITEM(row, 1), made);
        else
            PyErr_SetString(PyExc_TypeError,
                            "a row is a LazyArray and the places of its arguments");
        if (!a || PyList_Append(made, a) < 0) Py_CLEAR(made);
        Py_XDECREF(a);
    }
    return made;
}

PyObject *py_lazy_replay(py_state *s, PyObject *rows, PyObject *leaves) {
    PyCodeObject *code = s->code, *at = NULL; /* all are of one line, which is looked for once */
    const int lasti = s->lasti;
    const bool placed = s->placed;
    int here = 0;
    py_here(s, &at, &here);
    s->code = at;
    s->lasti = here;
    s->placed = true;
    PyObject *made = replay(s, rows, leaves);
    s->code = code;
    s->lasti = lasti;
    s->placed = placed;
    Py_XDECREF(at);
    return made;
}
