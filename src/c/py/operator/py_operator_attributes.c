/* py_operator_attributes.c: attributes of operators: shape, dtype, views, and what Python's layers
 * read of a node (_head, _init, ...). Nothing is computed. */
#include "py/module/py.h"

static PyObject *get_shape(py_op *self, void *unused) {
    (void)unused;
    if (self->shape) return Py_NewRef(self->shape);
    const lop_node *node = py_node(py_state_of((PyObject *)self), self);
    if (!node) return NULL;
    PyObject *t = PyTuple_New(node->shape.ndim);
    for (int i = 0; t && i < node->shape.ndim; i++) {
        PyObject *d = PyLong_FromLongLong(node->shape.dim[i]);
        if (!d)
            Py_CLEAR(t);
        else
            PyTuple_SET_ITEM(t, i, d);
    }
    return t;
}

/* Only leaves without kernels of ours (callables, user subclasses) may be told their shape and
 * dtype. */
static bool may_set(py_op *self, const char *what) {
    if (!self->node || (self->node->op == &lop_op_opaque && !self->a)) return true;
    PyErr_Format(PyExc_AttributeError,
                 "the %s of a %.100s follows from its operands and cannot be set", what,
                 Py_TYPE(self)->tp_name);
    return false;
}

static int set_shape(py_op *self, PyObject *value, void *unused) {
    (void)unused;
    if (!may_set(self, "shape")) return -1;
    PyObject *shape =
        value ? py_call_hook(py_state_of((PyObject *)self), "as_shape", &value, 1) : NULL;
    if (!shape) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_AttributeError, "shape cannot be deleted");
        return -1;
    }
    Py_XSETREF(self->shape, shape);
    lop_node_unref(self->node);
    self->node = NULL;
    return 0;
}

static PyObject *get_dtype(py_op *self, void *unused) {
    (void)unused;
    if (self->dtype) return Py_NewRef(self->dtype);
    const lop_node *node = self->node;
    if (!node) {
        PyErr_Format(PyExc_AttributeError, "'%.100s' object has no attribute 'dtype'",
                     Py_TYPE(self)->tp_name);
        return NULL;
    }
    if (node->dtype != LOP_NO_DTYPE) return py_descr(node->dtype);
    if (node->op == &lop_op_opaque && !self->init) Py_RETURN_NONE;
    PyObject *me = (PyObject *)self;
    return self->dtype = py_call_hook(py_state_of(me), "foreign_dtype", &me, 1),
           Py_XNewRef(self->dtype);
}

static int set_dtype(py_op *self, PyObject *value, void *unused) {
    (void)unused;
    if (!may_set(self, "dtype")) return -1;
    PyObject *descr = NULL;
    if (!value || value == Py_None)
        descr = Py_NewRef(Py_None);
    else if (!PyArray_DescrConverter(value, (PyArray_Descr **)&descr))
        return -1;
    Py_XSETREF(self->dtype, descr);
    lop_node_unref(self->node);
    self->node = NULL;
    return 0;
}

static PyObject *get_ndim(py_op *self, void *unused) {
    PyObject *shape = get_shape(self, unused);
    PyObject *n = shape ? PyLong_FromSsize_t(PyObject_Size(shape)) : NULL;
    Py_XDECREF(shape);
    return n;
}

static PyObject *get_args(py_op *self, void *unused) {
    (void)unused;
    if (self->a && self->b) return PyTuple_Pack(2, self->a, self->b);
    if (self->a) return PyTuple_Pack(1, self->a);
    py_state *s = py_state_of((PyObject *)self);
    if (self->init && PyType_IsSubtype(Py_TYPE(self), s->type[LOP_ID_dense]))
        return PyTuple_GetSlice(self->init, 0, 1);
    static const int of_operators[] = {LOP_ID_kron, LOP_ID_blockdiag, LOP_ID_block, LOP_ID_kronsum};
    for (size_t i = 0; self->init && i < sizeof of_operators / sizeof of_operators[0]; i++)
        if (PyType_IsSubtype(Py_TYPE(self), s->type[of_operators[i]])) return Py_NewRef(self->init);
    return PyTuple_New(0);
}

static PyObject *get_view(py_op *self, void *mode) {
    return py_view(py_state_of((PyObject *)self), self, (int)(intptr_t)mode);
}

/* For Python's own side: what it was made of, and where. */
static PyObject *get_init(py_op *self, void *arrays) {
    if (arrays) return self->arrays ? Py_NewRef(self->arrays) : PyTuple_New(0);
    return Py_NewRef(self->init ? self->init : Py_None);
}
static PyObject *get_operands(py_op *self, void *unused) {
    (void)unused;
    return self->b   ? PyTuple_Pack(2, self->a, self->b)
           : self->a ? PyTuple_Pack(1, self->a)
                     : PyTuple_New(0);
}
static PyObject *get_attrs(py_op *self, void *unused) {
    (void)unused;
    const lop_node *n = py_node(py_state_of((PyObject *)self), self);
    return n ? Py_BuildValue("LLLL", n->attr.i[0], n->attr.i[1], n->attr.i[2], n->attr.i[3]) : NULL;
}
static PyObject *get_head(py_op *self, void *unused) {
    (void)unused;
    return PyUnicode_FromString(self->node ? self->node->op->name : "opaque");
}
static PyObject *get_by(py_op *self, void *unused) {
    (void)unused;
    return PyUnicode_FromString(self->by ? self->by->name : "");
}
static PyObject *get_mode(py_op *self, void *unused) {
    (void)unused;
    return PyLong_FromLong(self->mode);
}
static PyObject *get_opaque(py_op *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(!self->node || self->node->opaque);
}
static PyObject *get_weak(py_op *self, void *unused) {
    (void)unused;
    return PyLong_FromLong(self->node ? self->node->weak : 0);
}
static PyObject *get_origin(py_op *self, void *unused) {
    (void)unused;
    return py_origin(self->code, self->lasti);
}
static PyObject *get_text(py_op *self, void *unused) {
    (void)unused;
    py_state *s = py_state_of((PyObject *)self);
    const lop_node *node = py_node(s, self);
    char *text = node ? lop_dump(node, 2000) : NULL;
    if (!text) return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    PyObject *r = PyUnicode_FromString(text);
    lop_free(&s->ctx, text);
    return r;
}

PyGetSetDef py_op_getset[] = {
    {"shape", (getter)get_shape, (setter)set_shape, "Shape (..., m, n); never computes.", NULL},
    {"dtype", (getter)get_dtype, (setter)set_dtype,
     "Data type, or None for a callable without one.", NULL},
    {"ndim", (getter)get_ndim, NULL, "Number of dimensions: 2 and the batch dimensions.", NULL},
    {"args", (getter)get_args, NULL, "The very objects this was made of, as in SciPy.", NULL},
    {"T", (getter)get_view, NULL, "Transpose, lazy.", (void *)LOP_T},
    {"mT", (getter)get_view, NULL, "Transpose of the last two dimensions, lazy.", (void *)LOP_T},
    {"H", (getter)get_view, NULL, "Adjoint (conjugate transpose), lazy.", (void *)LOP_H},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {"_init", (getter)get_init, NULL, NULL, NULL},
    {"_arrays", (getter)get_init, NULL, NULL, (void *)(intptr_t)1},
    {"_operands", (getter)get_operands, NULL, NULL, NULL},
    {"_head", (getter)get_head, NULL, NULL, NULL},
    {"_by", (getter)get_by, NULL, NULL, NULL},
    {"_mode", (getter)get_mode, NULL, NULL, NULL},
    {"_attrs", (getter)get_attrs, NULL, NULL, NULL},
    {"_opaque", (getter)get_opaque, NULL, NULL, NULL},
    {"_weak", (getter)get_weak, NULL, NULL, NULL},
    {"_origin", (getter)get_origin, NULL, NULL, NULL},
    {"_text", (getter)get_text, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL}};
