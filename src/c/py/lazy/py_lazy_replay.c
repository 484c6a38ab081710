/* py_lazy_replay.c: a formula that was built once, built again of other leaves: its nodes one by
 * one, without the checks and sweeps that made them (_programs/replay.py); a call of a template.
 * Cost: a node's block and references, 80 ns (EPYC, busy, 2026-11-25: seven nodes in 0.57 us). */
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

/* What `run` makes of its arguments, all of whose nodes are of one line: it is looked for once. */
static PyObject *on_one_line(py_state *s, PyObject *(*run)(py_state *, PyObject *, PyObject *),
                             PyObject *x, PyObject *y) {
    PyCodeObject *code = s->code, *at = NULL;
    const int lasti = s->lasti;
    const bool placed = s->placed;
    int here = 0;
    py_here(s, &at, &here);
    s->code = at;
    s->lasti = here;
    s->placed = true;
    PyObject *made = run(s, x, y);
    s->code = code;
    s->lasti = lasti;
    s->placed = placed;
    Py_XDECREF(at);
    return made;
}

PyObject *py_lazy_replay(py_state *s, PyObject *rows, PyObject *leaves) {
    return on_one_line(s, replay, rows, leaves);
}

/* -- templates (_symbols/template.py) */

/* The LazyArray of an argument of `dtype`. New; NULL with an exception, or without one where Python
 * has to look at it: what is cast, or no plain array. */
static PyObject *leaf_of(py_state *s, PyObject *o, PyObject *dtype) {
    PyObject *leaf = py_is_lazy(s, o) ? Py_NewRef(o) : py_lazy_leaf(s, o);
    if (!leaf) return NULL;
    if (leaf != Py_None && (PyObject *)((py_lazy *)leaf)->dtype == dtype) return leaf;
    Py_DECREF(leaf);
    return NULL;
}

/* A value of a recipe: its place among all that is made, or itself. New. */
static PyObject *value_of(PyObject *value, PyObject *made) {
    if (!PyLong_CheckExact(value)) return Py_NewRef(value);
    const Py_ssize_t at = PyLong_AsSsize_t(value);
    if (at >= 0 && at < PyList_GET_SIZE(made)) return Py_NewRef(PyList_GET_ITEM(made, at));
    if (!PyErr_Occurred()) PyErr_Format(PyExc_IndexError, "no node %zd among those made", at);
    return NULL;
}

static PyObject *values_of(PyObject *values, PyObject *made) {
    if (!PyTuple_CheckExact(values)) return value_of(values, made);
    PyObject *all = PyTuple_New(PyTuple_GET_SIZE(values));
    for (Py_ssize_t i = 0; all && i < PyTuple_GET_SIZE(values); i++) {
        PyObject *v = value_of(PyTuple_GET_ITEM(values, i), made);
        if (!v)
            Py_CLEAR(all);
        else
            PyTuple_SET_ITEM(all, i, v);
    }
    return all;
}

/* The key of sizes: a tuple of shapes. */
static PyObject *shapes_of(PyObject *leaves) {
    PyObject *key = PyTuple_New(PyList_GET_SIZE(leaves));
    for (Py_ssize_t i = 0; key && i < PyList_GET_SIZE(leaves); i++) {
        PyObject *shape = py_lazy_shape((py_lazy *)PyList_GET_ITEM(leaves, i));
        if (!shape)
            Py_CLEAR(key);
        else
            PyTuple_SET_ITEM(key, i, shape);
    }
    return key;
}

/* New; NULL without an exception: nothing is kept for these arguments. */
static PyObject *template_of(py_state *s, PyObject *self, PyObject *arrays) {
    PyObject *ready = PyTuple_GET_ITEM(self, 0), *dtypes = PyTuple_GET_ITEM(self, 1);
    const Py_ssize_t n = PyTuple_GET_SIZE(arrays);
    if (n != PyTuple_GET_SIZE(dtypes)) return NULL;
    PyObject *leaves = PyList_New(n), *key = NULL, *kept = NULL, *made = NULL, *found = NULL;
    for (Py_ssize_t i = 0; leaves && i < n; i++) {
        PyObject *leaf = leaf_of(s, PyTuple_GET_ITEM(arrays, i), PyTuple_GET_ITEM(dtypes, i));
        if (!leaf) goto done;
        PyList_SET_ITEM(leaves, i, leaf);
    }
    key = leaves ? shapes_of(leaves) : NULL;
    kept = key ? Py_XNewRef(PyDict_GetItemWithError(ready, key)) : NULL;
    if (!kept) goto done;
    if (!PyTuple_CheckExact(kept) || PyTuple_GET_SIZE(kept) != 2 ||
        !PyTuple_CheckExact(PyTuple_GET_ITEM(kept, 0))) {
        PyErr_SetString(PyExc_TypeError, "a kept recipe is its rows and its values");
        goto done;
    }
    made = replay(s, PyTuple_GET_ITEM(kept, 0), leaves);
    if (made) found = values_of(PyTuple_GET_ITEM(kept, 1), made);
done:
    Py_XDECREF(leaves);
    Py_XDECREF(key);
    Py_XDECREF(kept);
    Py_XDECREF(made);
    return found;
}

PyObject *py_lazy_template(py_state *s, PyObject *self, PyObject *arrays) {
    if (!PyTuple_CheckExact(self) || PyTuple_GET_SIZE(self) != 2 ||
        !PyDict_CheckExact(PyTuple_GET_ITEM(self, 0)) ||
        !PyTuple_CheckExact(PyTuple_GET_ITEM(self, 1)) || !PyTuple_CheckExact(arrays))
        return PyErr_Format(PyExc_TypeError, "a template is its kept recipes and its dtypes");
    PyObject *found = on_one_line(s, template_of, self, arrays);
    if (found || PyErr_Occurred()) return found;
    Py_RETURN_NONE;
}
