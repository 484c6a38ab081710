/* py_index.c: op[...] that stays an operator: nodes only, nothing computed, closed where a rule
 * says so. The indices are arrays of the new operator's own, made by _operators/indexing.py and
 * never written. */
#include "py/module/py.h"

enum { MAXSTEP = 2 * LOP_MAXDIM };

/* One step of the key: attributes, and the index array (borrowed) where there is one. */
static int read_step(PyObject *step, lop_attr *attr, PyArrayObject **index) {
    *attr = (lop_attr){0};
    *index = NULL;
    Py_ssize_t n = PyTuple_Check(step) ? PyTuple_GET_SIZE(step) : 0;
    if (n != 2 && n != 4) {
        PyErr_SetString(PyExc_TypeError, "a step is (axis, start, step, count) or (axis, index)");
        return -1;
    }
    for (Py_ssize_t i = 0; i < (n == 2 ? 1 : 4); i++)
        attr->i[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(step, i));
    if (PyErr_Occurred()) return -1;
    if (n == 4) return 0;
    PyObject *a = PyTuple_GET_ITEM(step, 1);
    if (!PyArray_CheckExact(a) || PyArray_NDIM((PyArrayObject *)a) != 1 ||
        py_dtype((PyArrayObject *)a) != LOP_i64) {
        PyErr_SetString(PyExc_TypeError, "an index is a vector of int64");
        return -1;
    }
    *index = (PyArrayObject *)a;
    return 0;
}

/* The nodes of all steps over `node`: owned in *out. Index leaves get serials in a row. */
static lop_status chain(py_state *s, const lop_node *node, int n, const lop_attr *attr,
                        const lop_node *const *leaf, const lop_node **out, lop_err *err) {
    const lop_op *op = &lop_op_sliced;
    const lop_node *now = lop_node_ref(node);
    lop_status st = LOP_OK;
    py_config_here(s);
    for (int i = 0; st == LOP_OK && i < n; i++) {
        const lop_node *child[2] = {now, leaf[i]}, *next = NULL;
        int k = leaf[i] ? 2 : 1, rule;
        st = lop_close(s->rules, &s->ctx, op, &attr[i], k, child, &next, &rule, err);
        if (st == LOP_NOMATCH)
            st = lop_node_make(&s->ctx, op, &attr[i], k, child, NULL, &next, err);
        lop_node_unref(now);
        now = next;
    }
    *out = now;
    return st;
}

/* Nobody writes to these arrays: equal numbers are one leaf, so that A[np.ix_(i, i)] is known to
 * have the same rows as columns. The place of the earlier one; i: there is none. */
static Py_ssize_t first_alike(PyArrayObject *const *index, Py_ssize_t i) {
    const size_t bytes = (size_t)PyArray_NBYTES(index[i]);
    for (Py_ssize_t j = 0; j < i; j++)
        if (index[j] && (size_t)PyArray_NBYTES(index[j]) == bytes &&
            PyArray_IS_C_CONTIGUOUS(index[i]) && PyArray_IS_C_CONTIGUOUS(index[j]) &&
            !memcmp(PyArray_DATA(index[i]), PyArray_DATA(index[j]), bytes))
            return j;
    return i;
}

PyObject *py_sliced(py_state *s, PyObject *op, PyObject *key) {
    lop_err err;
    lop_err_open(&err);
    lop_attr attr[MAXSTEP];
    PyArrayObject *index[MAXSTEP];
    const lop_node *leaf[MAXSTEP] = {0}, *node = py_node(s, (py_op *)op), *made = NULL;
    Py_ssize_t n = PyTuple_GET_SIZE(key);
    if (!node) return NULL;
    if (n > MAXSTEP) return PyErr_Format(PyExc_ValueError, "at most %d steps", MAXSTEP);
    for (Py_ssize_t i = 0; i < n; i++)
        if (read_step(PyTuple_GET_ITEM(key, i), &attr[i], &index[i]) < 0) return NULL;
    PyObject *arrays = PyList_New(0), *self = NULL;
    if (!arrays) return NULL;
    uint64_t serial = 0;
    lop_status st = LOP_OK;
    for (Py_ssize_t i = 0; st == LOP_OK && i < n; i++) {
        if (!index[i]) continue;
        const Py_ssize_t alike = first_alike(index, i);
        if (alike < i) {
            leaf[i] = lop_node_ref(leaf[alike]);
            continue;
        }
        lop_shape shape = {.ndim = 1, .dim = {PyArray_DIM(index[i], 0)}};
        st = lop_node_leaf(&s->ctx, LOP_i64, 1, &shape, &leaf[i], &err);
        if (st == LOP_OK && PyList_GET_SIZE(arrays) == 0) serial = leaf[i]->serial;
        if (st == LOP_OK && PyList_Append(arrays, (PyObject *)index[i]) < 0) goto done;
    }
    if (st == LOP_OK) st = chain(s, node, (int)n, attr, leaf, &made, &err);
    if (st != LOP_OK) {
        py_raise(s, st, &err, op, "index");
        goto done;
    }
    self = py_wrap(s, made, &lop_op_sliced, 0, op, key);
    if (self && PyList_GET_SIZE(arrays)) {
        ((py_op *)self)->serial = serial;
        ((py_op *)self)->arrays = PyList_AsTuple(arrays);
        if (!((py_op *)self)->arrays) Py_CLEAR(self);
    }
done:
    for (Py_ssize_t i = 0; i < n; i++) lop_node_unref(leaf[i]);
    Py_DECREF(arrays);
    return self;
}

/* -- the keys that are met most, two slices or an open mesh of int64, read here: all others, and
 * every error, are indexing.py's */

/* The step of a slice, by 1 where it takes one place at the most: steps are multiplied. None where
 * it takes all. */
static PyObject *step_of_slice(PyObject *key, Py_ssize_t axis, Py_ssize_t n) {
    Py_ssize_t start, stop, by;
    if (PySlice_Unpack(key, &start, &stop, &by) < 0) return NULL;
    const Py_ssize_t count = PySlice_AdjustIndices(n, &start, &stop, by);
    if (count == n && (n == 0 || (start == 0 && (by == 1 || n == 1)))) Py_RETURN_NONE;
    return Py_BuildValue("nnnn", axis, count ? start : 0, count > 1 ? by : (Py_ssize_t)1, count);
}

/* The step of places, counted from either end: of a copy of them. NotImplemented: one is outside.
 */
static PyObject *step_of_places(PyArrayObject *at, Py_ssize_t axis, Py_ssize_t n) {
    npy_intp count = PyArray_SIZE(at);
    PyObject *flat = PyArray_SimpleNew(1, &count, NPY_INT64);
    if (!flat) return NULL;
    const int along = (int)axis; /* of rows they stand below each other */
    const char *from = PyArray_BYTES(at);
    const npy_intp stride = PyArray_STRIDE(at, along);
    npy_int64 *to = PyArray_DATA((PyArrayObject *)flat);
    for (npy_intp i = 0; i < count; i++) {
        npy_int64 k;
        memcpy(&k, from + i * stride, sizeof k);
        if (k < 0) k += n;
        if (k < 0 || k >= n) {
            Py_DECREF(flat);
            Py_RETURN_NOTIMPLEMENTED;
        }
        to[i] = k;
    }
    return Py_BuildValue("nN", axis, flat);
}

static bool is_places(PyObject *key, int axis) {
    if (!PyArray_CheckExact(key)) return false;
    PyArrayObject *a = (PyArrayObject *)key;
    return PyArray_NDIM(a) == 2 && PyArray_TYPE(a) == NPY_INT64 && PyArray_ISNOTSWAPPED(a) &&
           PyArray_DIM(a, 1 - axis) == 1;
}

PyObject *py_quick_slice(py_op *self, PyObject *key) {
    const lop_node *node = self->node;
    if (!node || node->opaque || node->shape.ndim != 2 || node->op == &lop_op_sliced ||
        !PyTuple_CheckExact(key) || PyTuple_GET_SIZE(key) != 2)
        Py_RETURN_NOTIMPLEMENTED;
    PyObject *step[2] = {NULL, NULL}, *each[2], *steps = NULL, *made = NULL;
    const bool mesh =
        is_places(PyTuple_GET_ITEM(key, 0), 0) && is_places(PyTuple_GET_ITEM(key, 1), 1);
    Py_ssize_t n = 0;
    if (!mesh && node->op == &lop_op_dense) Py_RETURN_NOTIMPLEMENTED; /* a Dense on a view */
    for (int axis = 0; axis < 2; axis++) {
        PyObject *k = PyTuple_GET_ITEM(key, axis);
        const Py_ssize_t size = (Py_ssize_t)node->shape.dim[axis];
        if (mesh)
            step[axis] = step_of_places((PyArrayObject *)k, axis, size);
        else if (PySlice_Check(k))
            step[axis] = step_of_slice(k, axis, size);
        else
            step[axis] = Py_NewRef(Py_NotImplemented);
        if (!step[axis] || step[axis] == Py_NotImplemented) goto done;
        if (step[axis] != Py_None) each[n++] = step[axis];
    }
    steps = PyTuple_New(n);
    for (Py_ssize_t i = 0; steps && i < n; i++) PyTuple_SET_ITEM(steps, i, Py_NewRef(each[i]));
    if (steps) made = n ? py_sliced(self->s, (PyObject *)self, steps) : Py_NewRef((PyObject *)self);
done:
    if (!PyErr_Occurred() && !made) made = Py_NewRef(Py_NotImplemented);
    Py_XDECREF(step[0]);
    Py_XDECREF(step[1]);
    Py_XDECREF(steps);
    return made;
}
