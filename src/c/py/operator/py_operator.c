/* py_operator.c: the operator object: life, fast methods; attributes are in
 * py_operator_attributes.c. What is not for C goes to the Python hooks (src/pylinop), which hold
 * SciPy's manners and the plain walk. */
#include "py/module/py.h"

#include <structmember.h>

/* -- life */

PyObject *py_wrap(py_state *s, const lop_node *node, const lop_op *by, int mode, PyObject *a,
                  PyObject *b) {
    PyTypeObject *type =
        node->op == &lop_op_view ? s->view[node->attr.i[0]] : s->type[lop_op_id(node->op)];
    const bool unseen = node->op == &lop_op_joint || node->op == &lop_op_results;
    if (!type && unseen) type = s->type[lop_op_id(&lop_op_prod)];
    py_op *self = type ? PyObject_GC_New(py_op, type) : NULL;
    if (!self) {
        lop_node_unref(node);
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "pylinop is not set up");
        return NULL;
    }
    memset((char *)self + sizeof(PyObject), 0, sizeof *self - sizeof(PyObject));
    self->s = s;
    s->refs++;
    self->node = node;
    self->a = Py_XNewRef(a);
    self->b = Py_XNewRef(b);
    self->by = by;
    self->mode = mode;
    py_stamp(s, self);
    PyObject_GC_Track(self);
    return (PyObject *)self;
}

int py_op_traverse(py_op *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->a);
    Py_VISIT(self->b);
    Py_VISIT(self->init);
    Py_VISIT(self->arrays);
    Py_VISIT(self->shape);
    Py_VISIT(self->dtype);
    Py_VISIT(self->dict);
    Py_VISIT(self->code);
    for (int i = 0; i < self->ncache; i++) Py_VISIT(self->cache[i].leaves);
    return 0;
}

int py_op_clear(py_op *self) {
    Py_CLEAR(self->a);
    Py_CLEAR(self->b);
    Py_CLEAR(self->init);
    Py_CLEAR(self->arrays);
    Py_CLEAR(self->shape);
    Py_CLEAR(self->dtype);
    Py_CLEAR(self->dict);
    for (int i = 0; i < self->ncache; i++) Py_CLEAR(self->cache[i].leaves);
    return 0;
}

static void free_one(py_op *self) {
    PyTypeObject *type = Py_TYPE(self);
    if (self->cache) py_cache_clear(self->s, self);
    Py_CLEAR(self->code);
    py_op_clear(self);
    lop_node_unref(self->node);
    py_state_unref(self->s);
    type->tp_free(self);
    Py_DECREF(type);
}

/* Operands that die with their operator wait in a list (linked through `weak`, empty by then), so
 * that chains of any length are freed in a loop, on any stack. */
void py_op_dealloc(py_op *self) {
    py_state *s = self->s;
    PyObject_GC_UnTrack(self);
    if (self->weak) PyObject_ClearWeakRefs((PyObject *)self);
    if (!s) {
        free_one(self);
        return;
    }
    if (s->freeing) {
        self->weak = s->dead;
        s->dead = (PyObject *)self;
        return;
    }
    PyObject *type, *error, *trace; /* what is set stays: an array's owner may run anyone's code */
    PyErr_Fetch(&type, &error, &trace);
    s->refs++;
    s->freeing = true;
    free_one(self);
    while (s->dead) {
        py_op *next = (py_op *)s->dead;
        s->dead = next->weak;
        next->weak = NULL;
        free_one(next);
    }
    s->freeing = false;
    py_state_unref(s);
    PyErr_Restore(type, error, trace);
}

static PyObject *op_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    (void)args;
    (void)kwargs;
    py_state *s = py_state_of_type(type);
    py_op *self = s ? (py_op *)type->tp_alloc(type, 0) : NULL;
    if (!self) return NULL;
    self->s = s;
    s->refs++;
    py_stamp(s, self);
    return (PyObject *)self;
}

/* -- the node of a user's instance */

static int shape_of_object(PyObject *shape, lop_shape *out) {
    PyObject *fast = PySequence_Fast(shape, "shape must be a tuple");
    if (!fast) return -1;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(fast);
    if (n < 2 || n > LOP_MAXDIM) {
        PyErr_Format(PyExc_ValueError, "an operator has 2 to %d dimensions, got shape %R",
                     LOP_MAXDIM, shape);
        n = -1;
    }
    out->ndim = (int)n;
    for (Py_ssize_t i = 0; i < n; i++) {
        out->dim[i] = PyLong_AsLongLong(PySequence_Fast_GET_ITEM(fast, i));
        if (out->dim[i] < 0) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_ValueError, "invalid shape %R: sizes cannot be negative", shape);
            n = -1;
        }
    }
    Py_DECREF(fast);
    return n < 0 ? -1 : 0;
}

/* shape and dtype as properties of the user's class. */
static int user_attribute(py_state *s, py_op *self, const char *name, PyObject **into) {
    if (*into) return 0;
    PyObject *word = PyUnicode_FromString(name), *args[2] = {(PyObject *)self, word};
    PyObject *value = word ? py_call_hook(s, "user_attribute", args, 2) : NULL;
    Py_XDECREF(word);
    if (value && value != Py_None && !strcmp(name, "dtype")) {
        PyArray_Descr *d = NULL;
        if (!PyArray_DescrConverter(value, &d))
            Py_CLEAR(value);
        else
            Py_SETREF(value, (PyObject *)d);
    }
    if (!value) return -1;
    if (value == Py_None)
        Py_DECREF(value);
    else
        *into = value;
    return 0;
}

const lop_node *py_node(py_state *s, py_op *self) {
    if (self->node) return self->node;
    lop_node like = {.core = 2, .dtype = LOP_NO_DTYPE};
    if (user_attribute(s, self, "shape", &self->shape) < 0 ||
        user_attribute(s, self, "dtype", &self->dtype) < 0)
        return NULL;
    if (!self->shape) {
        PyErr_Format(
            PyExc_AttributeError,
            "'%.100s' object has no attribute 'shape': set self.shape (and self.dtype) first",
            Py_TYPE(self)->tp_name);
        return NULL;
    }
    if (shape_of_object(self->shape, &like.shape) < 0) return NULL;
    if (self->dtype && PyArray_DescrCheck(self->dtype)) {
        npy_intp one = 1;
        PyArrayObject *probe = (PyArrayObject *)PyArray_NewFromDescr(
            &PyArray_Type, (PyArray_Descr *)Py_NewRef(self->dtype), 1, &one, NULL, NULL, 0, NULL);
        if (!probe) return NULL;
        like.dtype = py_dtype(probe);
        Py_DECREF(probe);
    }
    like.serial = s->ctx.next_serial++;
    lop_err err;
    lop_err_open(&err);
    lop_status st = lop_node_make(&s->ctx, &lop_op_opaque, NULL, 0, NULL, &like, &self->node, &err);
    if (st != LOP_OK) py_raise(s, st, &err, (PyObject *)self, "use");
    return self->node;
}

/* -- methods */

/* One array, by position or as x= or X=, and out=. */
static bool read_array_and_out(const char *hook, PyObject *const *args, Py_ssize_t n,
                               PyObject *names, PyObject **array, PyObject **out) {
    Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
    bool ok = n <= 2;
    if (n > 0) *array = args[0];
    if (n > 1) *out = args[1];
    for (Py_ssize_t i = 0; ok && i < named; i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i), **to = NULL;
        if (PyUnicode_CompareWithASCIIString(name, "out") == 0) to = out;
        if (PyUnicode_CompareWithASCIIString(name, "x") == 0) to = array;
        if (PyUnicode_CompareWithASCIIString(name, "X") == 0) to = array;
        ok = to && !*to;
        if (ok) *to = args[n + i];
    }
    if (*out == Py_None) *out = NULL;
    if (ok && *array) return true;
    PyErr_Format(PyExc_TypeError, "%s() takes one array and out=, got %zd arguments", hook,
                 n + named);
    return false;
}

/* matvec and kin: the C way for plain arrays of the right shape, else the hook of that name. */
static PyObject *product(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names,
                         const char *hook, int mode, bool vec) {
    py_state *s = py_state_of(self);
    PyObject *out = NULL, *array = NULL;
    if (!read_array_and_out(hook, args, n, names, &array, &out)) return NULL;
    if (PyArray_CheckExact(array) && ((py_op *)self)->node) {
        PyArrayObject *x = (PyArrayObject *)array;
        const lop_node *node = ((py_op *)self)->node;
        py_config_here(s);
        PyObject *fast = NULL;
        if (vec && mode == LOP_N && !out)
            fast = ((py_op *)self)->cache ? py_direct(s, (py_op *)self, x)
                                          : py_call_matvec(s, (py_op *)self, x);
        if (fast || PyErr_Occurred()) return fast;
        int nd = PyArray_NDIM(x);
        int64_t want = mode & LOP_T ? lop_rows(node) : lop_cols(node);
        bool fits =
            vec ? nd == 1 && PyArray_DIM(x, 0) == want : nd >= 2 && PyArray_DIM(x, nd - 2) == want;
        if (fits && !node->opaque) {
            PyObject *r = py_apply_here(s, (py_op *)self, x, mode, false, vec, out);
            if (r != Py_NotImplemented) return r;
            Py_DECREF(r);
        }
    }
    PyObject *all[3] = {self, array, out ? out : Py_None};
    return py_call_hook(s, hook, all, 3);
}
#define PRODUCT(name, mode, vec)                                                                   \
    static PyObject *op_##name(PyObject *self, PyObject *const *args, Py_ssize_t n,                \
                               PyObject *names) {                                                  \
        return product(self, args, n, names, #name, mode, vec);                                    \
    }
PRODUCT(matvec, LOP_N, true)
PRODUCT(rmatvec, LOP_H, true)
PRODUCT(matmat, LOP_N, false)
PRODUCT(rmatmat, LOP_H, false)

static PyObject *op_toarray(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    py_state *s = py_state_of(self);
    PyObject *out = NULL;
    if (n == 0 && names && PyTuple_GET_SIZE(names) == 1 &&
        PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "out") == 0)
        out = args[0] == Py_None ? NULL : args[0];
    else if (n || (names && PyTuple_GET_SIZE(names)))
        return PyErr_Format(PyExc_TypeError, "toarray() takes only out=");
    py_config_here(s);
    PyObject *r = py_value(s, (py_op *)self, ACT_DENSE, 0, 0, out);
    if (r != Py_NotImplemented) return r;
    Py_DECREF(r);
    PyObject *all[2] = {self, out ? out : Py_None};
    return py_call_hook(s, "toarray", all, 2);
}

static PyObject *op_diagonal(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    const Py_ssize_t more = names ? PyTuple_GET_SIZE(names) : 0;
    if (n + more > 1)
        return PyErr_Format(PyExc_TypeError, "diagonal() takes at most 1 argument (%zd given)",
                            n + more);
    if (more && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "offset") != 0)
        return PyErr_Format(PyExc_TypeError, "'%U' is an invalid keyword argument for diagonal()",
                            PyTuple_GET_ITEM(names, 0));
    const long long k = n + more ? PyLong_AsLongLong(args[0]) : 0;
    if (k == -1 && PyErr_Occurred()) return NULL;
    py_config_here(py_state_of(self));
    PyObject *offset = PyLong_FromLongLong(k), *all[2] = {self, offset};
    if (!offset) return NULL;
    PyObject *r = py_value(py_state_of(self), (py_op *)self, ACT_DIAGONAL, k, 0, NULL);
    if (!r) {
        r = py_in_blocks(self, offset);
    } else if (r == Py_NotImplemented) {
        Py_DECREF(r);
        r = py_call_hook(py_state_of(self), "diagonal", all, 2);
    }
    Py_DECREF(offset);
    return r;
}

static PyObject *op_trace(PyObject *self, PyObject *unused) {
    (void)unused;
    py_config_here(py_state_of(self));
    PyObject *r = py_value(py_state_of(self), (py_op *)self, ACT_TRACE, 0, 0, NULL);
    if (!r) return py_in_blocks(self, Py_None);
    if (r != Py_NotImplemented) return r;
    Py_DECREF(r);
    return py_call_hook(py_state_of(self), "trace", &self, 1);
}

/* _element(i, j), indices not negative and inside. */
static PyObject *op_element(PyObject *self, PyObject *args) {
    long long i, j;
    if (!PyArg_ParseTuple(args, "LL:_element", &i, &j)) return NULL;
    py_config_here(py_state_of(self));
    return py_value(py_state_of(self), (py_op *)self, ACT_ELEMENT, i, j, NULL);
}

PyObject *py_entry(py_op *self, PyObject *key) {
    const lop_node *node = self->node;
    int64_t at[2];
    if (!node || node->opaque || node->shape.ndim != 2 ||
        !py_pair(key, node->shape.dim[0], node->shape.dim[1], at))
        Py_RETURN_NOTIMPLEMENTED;
    py_config_here(self->s);
    PyObject *r = py_direct_entry(self, at);
    if (r || PyErr_Occurred()) return r;
    return py_value_array(self->s, self, ACT_ELEMENT, at[0], at[1], NULL);
}

static PyObject *op_subscript(PyObject *self, PyObject *key) {
    PyObject *r = py_entry((py_op *)self, key), *all[2] = {self, key};
    if (!r) return NULL;
    if (r != Py_NotImplemented) return PyArray_Return((PyArrayObject *)r);
    Py_DECREF(r);
    r = py_quick_slice((py_op *)self, key);
    if (r != Py_NotImplemented) return r;
    Py_DECREF(r);
    return py_call_hook(py_state_of(self), "getitem", all, 2);
}

/* _scaledet(): (mantissa, exponent of 2) of the determinant, or NotImplemented. */
static PyObject *op_scaledet(PyObject *self, PyObject *unused) {
    (void)unused;
    return py_value(py_state_of(self), (py_op *)self, ACT_DET, 0, 0, NULL);
}

static PyObject *op_transpose(PyObject *self, PyObject *unused) {
    (void)unused;
    return py_view(py_state_of(self), (py_op *)self, LOP_T);
}
static PyObject *op_adjoint(PyObject *self, PyObject *unused) {
    (void)unused;
    return py_view(py_state_of(self), (py_op *)self, LOP_H);
}
static PyObject *op_conj(PyObject *self, PyObject *unused) {
    (void)unused;
    return py_view(py_state_of(self), (py_op *)self, LOP_C);
}

/* _apply(x, mode, right, vec, out): the C product or NotImplemented. */
static PyObject *op_apply(PyObject *self, PyObject *args) {
    PyObject *x, *out;
    int mode, right, vec;
    if (!PyArg_ParseTuple(args, "O!ippO:_apply", &PyArray_Type, &x, &mode, &right, &vec, &out))
        return NULL;
    if (mode < 0 || mode > 3) return PyErr_Format(PyExc_ValueError, "mode is 0 to 3, got %d", mode);
    return py_apply_here(py_state_of(self), (py_op *)self, (PyArrayObject *)x, mode, right != 0,
                         vec != 0, out == Py_None ? NULL : out);
}

/* act, x, i, j; x NULL where it is no array. 0, or -1 with an exception. */
static int action_of(PyObject *args, int *act, PyArrayObject **x, int64_t *i, int64_t *j,
                     PyObject **numbers) {
    long long at[2];
    PyObject *given;
    if (!PyArg_ParseTuple(args, "iOLL|O!", act, &given, &at[0], &at[1], &PyTuple_Type, numbers))
        return -1;
    if (*act < 0 || *act > ACT_DET || (*act > 7 ? *act < ACT_DENSE : !PyArray_Check(given))) {
        PyErr_Format(PyExc_ValueError, "no such action: %d", *act);
        return -1;
    }
    *x = PyArray_Check(given) ? (PyArrayObject *)given : NULL;
    *i = at[0];
    *j = at[1];
    return 0;
}

/* _explain(act, x, i, j): the plan as a dict. */
static PyObject *op_explain(PyObject *self, PyObject *args) {
    int act;
    int64_t i, j;
    PyArrayObject *x;
    PyObject *none = NULL;
    if (action_of(args, &act, &x, &i, &j, &none) < 0) return NULL;
    return py_explain(py_state_of(self), (py_op *)self, x, act, i, j);
}

/* _canonical(act, x, i, j, numbers=()): py_canonical.c. */
static PyObject *op_canonical(PyObject *self, PyObject *args) {
    int act;
    int64_t i, j;
    PyArrayObject *x;
    PyObject *numbers = NULL;
    if (action_of(args, &act, &x, &i, &j, &numbers) < 0) return NULL;
    PyObject *none = numbers ? NULL : PyTuple_New(0);
    if (!numbers && !none) return NULL;
    PyObject *found =
        py_canonical(py_state_of(self), (py_op *)self, x, act, i, j, numbers ? numbers : none);
    Py_XDECREF(none);
    return found;
}

static PyMethodDef op_methods[] = {
    {"matvec", (PyCFunction)(void (*)(void))op_matvec, METH_FASTCALL | METH_KEYWORDS,
     "matvec($self, x, out=None)\n--\n\nProduct with a vector: A x, x of shape (n,) or (..., n); "
     "an "
     "array, computed now."},
    {"rmatvec", (PyCFunction)(void (*)(void))op_rmatvec, METH_FASTCALL | METH_KEYWORDS,
     "rmatvec($self, x, out=None)\n--\n\nProduct of the adjoint with a vector: A^H x; an array, "
     "computed "
     "now."},
    {"matmat", (PyCFunction)(void (*)(void))op_matmat, METH_FASTCALL | METH_KEYWORDS,
     "matmat($self, X, out=None)\n--\n\nProduct with a matrix: A X, X of shape (..., n, k); an "
     "array, "
     "computed now."},
    {"rmatmat", (PyCFunction)(void (*)(void))op_rmatmat, METH_FASTCALL | METH_KEYWORDS,
     "rmatmat($self, X, out=None)\n--\n\nProduct of the adjoint with a matrix: A^H X; an array, "
     "computed "
     "now."},
    {"toarray", (PyCFunction)(void (*)(void))op_toarray, METH_FASTCALL | METH_KEYWORDS,
     "toarray($self, *, out=None)\n--\n\nThe dense form, computed now; MaterializationError when "
     "it would "
     "not fit in memory."},
    {"diagonal", (PyCFunction)(void (*)(void))op_diagonal, METH_FASTCALL | METH_KEYWORDS,
     "diagonal($self, offset=0)\n--\n\nThe diagonal at an offset, computed now by the cheapest "
     "known "
     "way."},
    {"trace", op_trace, METH_NOARGS, "trace($self)\n--\n\nSum of the main diagonal, computed now."},
    {"transpose", op_transpose, METH_NOARGS,
     "transpose($self)\n--\n\nThe transpose, lazy; same as .T."},
    {"adjoint", op_adjoint, METH_NOARGS, "adjoint($self)\n--\n\nThe adjoint, lazy; same as .H."},
    {"conj", op_conj, METH_NOARGS, "conj($self)\n--\n\nThe complex conjugate, lazy."},
    {"conjugate", op_conj, METH_NOARGS, "conjugate($self)\n--\n\nThe complex conjugate, lazy."},
    {"__array_ufunc__", (PyCFunction)(void (*)(void))py_array_ufunc, METH_FASTCALL | METH_KEYWORDS,
     NULL},
    {"_given", (PyCFunction)(void (*)(void))py_given, METH_FASTCALL, NULL},
    {"_element", op_element, METH_VARARGS, NULL},
    {"_scaledet", op_scaledet, METH_NOARGS, NULL},
    {"_factored", py_factored, METH_O, NULL},
    {"_known", py_known, METH_O, NULL},
    {"_apply", op_apply, METH_VARARGS, NULL},
    {"_explain", op_explain, METH_VARARGS, NULL},
    {"_canonical", op_canonical, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL}};

static PyMemberDef op_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(py_op, dict), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(py_op, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL}};

PyType_Slot py_base_slots[] = {{Py_tp_new, op_new},
                               {Py_tp_dealloc, py_op_dealloc},
                               {Py_tp_traverse, py_op_traverse},
                               {Py_tp_clear, py_op_clear},
                               {Py_tp_getset, py_op_getset},
                               {Py_tp_methods, op_methods},
                               {Py_tp_members, op_members},
                               {Py_mp_subscript, op_subscript},
                               {Py_nb_matrix_multiply, py_matmul},
                               {Py_nb_add, py_add},
                               {Py_nb_subtract, py_subtract},
                               {Py_nb_multiply, py_multiply},
                               {Py_nb_true_divide, py_divide},
                               {Py_nb_negative, py_negative},
                               {Py_nb_positive, py_positive},
                               {Py_nb_power, py_power},
                               {Py_tp_doc, (void *)"C base of pylinop.LinearOperator."},
                               {0, NULL}};
