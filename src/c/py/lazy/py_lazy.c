/* py_lazy.c: the LazyArray object: life, what is known without computing, what Python's side asks.
 *
 * A node is one block: at most two arguments in it, the dimensions behind it. Cost: that block and
 * the line that built it. The class over this type, with the methods that are NumPy functions under
 * another name, is src/pylinop/_lazy/array.py's. */
#include "py/run/py_tape.h"

#include <structmember.h>

static const char *const heads[] = {
    [PY_LEAF] = "leaf", [PY_OPERATOR] = "operator", [PY_MATMUL] = "matmul",
    [PY_ADD] = "add",   [PY_SCALE] = "scale",       [PY_OVER] = "over",
    [PY_VIEW] = "view", [PY_INVERSE] = "inverse",   [PY_INDEX] = "index",
    [PY_MADE] = "made", [PY_CALL] = "call",         [PY_OF_FORM] = "of form",
    [PY_GONE] = "gone"};

/* -- life */

/* Does a node of these have no dtype of its own? Identity, its multiples and the like. */
static bool has_no_dtype(const py_state *s, py_head head, PyObject *a, PyObject *b) {
    if (head == PY_OPERATOR) {
        const lop_node *node = py_is_op(s, a) ? ((py_op *)a)->node : NULL;
        return node && node->weak;
    }
    if (head < PY_MATMUL || head > PY_INVERSE || !py_is_lazy(s, a)) return false;
    if (!((py_lazy *)a)->adopts) return false;
    if (head == PY_MATMUL || head == PY_ADD) return py_is_lazy(s, b) && ((py_lazy *)b)->adopts;
    return !b || PyFloat_CheckExact(b) || PyLong_Check(b) || /* NumPy's numbers have dtypes */
           PyComplex_CheckExact(b);
}

py_lazy *py_lazy_new(py_state *s, py_head head, PyObject *a, PyObject *b, int nd,
                     const npy_intp *dim, PyArray_Descr *dtype) {
    if (!s->lazy) {
        PyErr_SetString(PyExc_RuntimeError, "pylinop is not set up");
        return NULL;
    }
    py_lazy *self = PyObject_GC_NewVar(py_lazy, s->lazy, nd);
    if (!self) return NULL;
    self->s = s;
    s->refs++;
    self->head = (uint8_t)head;
    self->mode = 0;
    self->adopts = has_no_dtype(s, head, a, b);
    self->looked = false;
    self->nd = nd;
    self->nargs = b ? 2 : 1;
    self->a = Py_NewRef(a);
    self->b = Py_XNewRef(b);
    self->more = self->value = self->form = self->guard = self->weak = NULL;
    Py_INCREF(dtype);
    self->dtype = dtype;
    self->code = NULL;
    self->lasti = 0;
    for (int i = 0; dim && i < nd; i++) self->dim[i] = dim[i];
    py_here(s, &self->code, &self->lasti);
    PyObject_GC_Track(self);
    return self;
}

PyObject *py_lazy_leaf(py_state *s, PyObject *o) {
    PyArrayObject *a = (PyArrayObject *)o;
    if (!PyArray_CheckExact(o) || !PyArray_ISNOTSWAPPED(a) ||
        !(PyArray_ISFLOAT(a) || PyArray_ISCOMPLEX(a)))
        Py_RETURN_NONE;
    return (PyObject *)py_lazy_new(s, PY_LEAF, o, NULL, PyArray_NDIM(a), PyArray_DIMS(a),
                                   PyArray_DESCR(a));
}

bool py_lazy_beyond(const py_lazy *self) {
    const bool linear = self->head >= PY_MATMUL && self->head <= PY_INVERSE;
    if (!linear && self->head != PY_OF_FORM) return false;
    bool beyond = self->nd > LOP_MAXDIM;
    for (int i = 0; !beyond && i < self->nargs; i++) {
        PyObject *x = py_lazy_args(self)[i];
        beyond = py_is_lazy(self->s, x) && ((py_lazy *)x)->nd > LOP_MAXDIM;
    }
    return beyond;
}

int py_lazy_room(py_lazy *self, int64_t *bytes) {
    const int64_t limit = self->s->ctx.memory_limit;
    int64_t own = PyDataType_ELSIZE(self->dtype);
    if (limit == INT64_MAX || (self->head != PY_CALL && !py_lazy_beyond(self))) return 0;
    for (int i = 0; i < self->nd; i++)
        if (!lop_mul_ok(own, self->dim[i], &own)) own = INT64_MAX;
    *bytes = own > INT64_MAX - *bytes ? INT64_MAX : *bytes + own;
    if (*bytes <= limit) return 0;
    PyObject *size = PyLong_FromLongLong(*bytes), *args[2] = {(PyObject *)self, size},
             *done = size ? py_call_hook(self->s, "lazy_passes_limit", args, 2) : NULL;
    Py_XDECREF(size);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static int lazy_traverse(py_lazy *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->a);
    Py_VISIT(self->b);
    Py_VISIT(self->more);
    Py_VISIT((PyObject *)self->dtype);
    Py_VISIT(self->value);
    Py_VISIT(self->form);
    Py_VISIT(self->guard);
    Py_VISIT((PyObject *)self->code);
    return 0;
}

/* Nobody is to find a head without its arguments. */
static int lazy_clear(py_lazy *self) {
    self->head = PY_GONE;
    self->nargs = 0;
    Py_CLEAR(self->a);
    Py_CLEAR(self->b);
    Py_CLEAR(self->more);
    Py_CLEAR(self->value);
    Py_CLEAR(self->form);
    Py_CLEAR(self->guard);
    return 0;
}

static void free_one(py_lazy *self) {
    PyTypeObject *type = Py_TYPE(self);
    py_state *s = self->s;
    lazy_clear(self);
    Py_XDECREF((PyObject *)self->dtype);
    Py_XDECREF((PyObject *)self->code);
    type->tp_free(self);
    Py_DECREF(type);
    py_state_unref(s);
}

/* Arguments that die with their node wait in a list (linked through `weak`), as operators do. */
static void lazy_dealloc(py_lazy *self) {
    py_state *s = self->s;
    PyObject_GC_UnTrack(self);
    if (self->weak) PyObject_ClearWeakRefs((PyObject *)self);
    if (!s) {
        free_one(self);
        return;
    }
    if (s->freeing_lazy) {
        self->weak = s->dead_lazy;
        s->dead_lazy = (PyObject *)self;
        return;
    }
    s->refs++;
    s->freeing_lazy = true;
    free_one(self);
    while (s->dead_lazy) {
        py_lazy *next = (py_lazy *)s->dead_lazy;
        s->dead_lazy = next->weak;
        next->weak = NULL;
        free_one(next);
    }
    s->freeing_lazy = false;
    py_state_unref(s);
}

/* -- LazyArray(head, args, shape, dtype, more): from the class's own side */

/* Does a head have such arguments? Else what the evaluator counts on would not hold. */
static bool fits(py_state *s, py_head head, PyObject *args, PyObject *more, int nd) {
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    if (head == PY_CALL || head == PY_OF_FORM) {
        if (n < 1 || !PyTuple_Check(more) || PyTuple_GET_SIZE(more) != 2 ||
            !PyDict_Check(PyTuple_GET_ITEM(more, 1)))
            return false;
        return head == PY_CALL || (n == 1 && py_is_lazy(s, PyTuple_GET_ITEM(args, 0)) &&
                                   ((py_lazy *)PyTuple_GET_ITEM(args, 0))->nd >= 2);
    }
    if (head == PY_MADE)
        return n >= 1 && nd >= 2 && PyTuple_Check(more) && PyTuple_GET_SIZE(more) == 2 &&
               PyBytes_Check(PyTuple_GET_ITEM(more, 1)) &&
               PyBytes_GET_SIZE(PyTuple_GET_ITEM(more, 1)) == n;
    bool pair = head == PY_MATMUL || head == PY_ADD || head == PY_SCALE || head == PY_OVER;
    if (n != (pair ? 2 : 1)) return false;
    PyObject *a = PyTuple_GET_ITEM(args, 0), *b = pair ? PyTuple_GET_ITEM(args, 1) : NULL;
    if (head == PY_LEAF) return PyArray_CheckExact(a);
    if (head == PY_OPERATOR) return py_is_op(s, a);
    if (!py_is_lazy(s, a)) return false;
    if (head == PY_MATMUL) return py_is_lazy(s, b);
    if (head == PY_INDEX || head == PY_SCALE) return true;
    if (head == PY_ADD && (!py_is_lazy(s, b) || ((py_lazy *)b)->nd < 2)) return false;
    return nd >= 2 && ((py_lazy *)a)->nd >= 2;
}

static int mode_of(PyObject *more) {
    long mode = PyLong_Check(more) ? PyLong_AsLong(more) : -1;
    if (mode < 1 || mode > 3) {
        if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "a view has mode 1 to 3");
        return -1;
    }
    return (int)mode;
}

static int set_args(py_lazy *self, PyObject *args, PyObject *more) {
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    if (n > INT_MAX) return PyErr_NoMemory(), -1;
    if (self->head == PY_VIEW) {
        int mode = mode_of(more);
        if (mode < 0) return -1;
        self->mode = (uint8_t)mode;
    }
    self->nargs = (int)n;
    self->a = Py_NewRef(n > 2 ? args : PyTuple_GET_ITEM(args, 0));
    self->b = n == 2 ? Py_NewRef(PyTuple_GET_ITEM(args, 1)) : NULL;
    self->more = more == Py_None ? NULL : Py_NewRef(more);
    return 0;
}

static PyObject *new(PyTypeObject *type, PyObject *all, PyObject *kwargs) {
    static char *names[] = {"head", "args", "shape", "dtype", "more", NULL};
    const char *word;
    PyObject *args, *shape, *dtype, *more = Py_None;
    if (!PyArg_ParseTupleAndKeywords(all, kwargs, "sO!O!O!|O:LazyArray", names, &word,
                                     &PyTuple_Type, &args, &PyTuple_Type, &shape,
                                     &PyArrayDescr_Type, &dtype, &more))
        return NULL;
    py_state *s = py_state_of_type(type);
    if (!s) return NULL;
    int head = 0;
    while (head < PY_GONE && strcmp(heads[head], word)) head++;
    Py_ssize_t nd = PyTuple_GET_SIZE(shape);
    if (head == PY_GONE || nd > NPY_MAXDIMS || !fits(s, (py_head)head, args, more, (int)nd))
        return PyErr_Format(PyExc_TypeError,
                            "LazyArrays come from pl.lazy and expressions: no node '%s' of %R",
                            word, args);
    py_lazy *self = (py_lazy *)type->tp_alloc(type, nd);
    if (!self) return NULL;
    self->s = s;
    s->refs++;
    self->nd = (int)nd;
    self->head = PY_GONE;
    self->dtype = (PyArray_Descr *)Py_NewRef(dtype);
    for (int i = 0; i < nd; i++) {
        self->dim[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
        if (self->dim[i] >= 0) continue;
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "invalid shape %R: sizes cannot be negative", shape);
        Py_DECREF(self);
        return NULL;
    }
    self->head = (uint8_t)head;
    if (set_args(self, args, more) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    if (self->nargs == 1 || self->nargs == 2)
        self->adopts = has_no_dtype(s, (py_head)head, self->a, self->b);
    py_here(s, &self->code, &self->lasti);
    return (PyObject *)self;
}

/* -- what is known */

PyObject *py_lazy_shape(const py_lazy *self) {
    PyObject *t = PyTuple_New(self->nd);
    for (int i = 0; t && i < self->nd; i++) {
        PyObject *d = PyLong_FromSsize_t(self->dim[i]);
        if (!d)
            Py_CLEAR(t);
        else
            PyTuple_SET_ITEM(t, i, d);
    }
    return t;
}

static PyObject *get_shape(py_lazy *self, void *unused) {
    (void)unused;
    return py_lazy_shape(self);
}
static PyObject *get_dtype(py_lazy *self, void *unused) {
    (void)unused;
    return Py_NewRef((PyObject *)self->dtype);
}
static PyObject *get_ndim(py_lazy *self, void *unused) {
    (void)unused;
    return PyLong_FromLong(self->nd);
}
static PyObject *get_size(py_lazy *self, void *unused) {
    (void)unused;
    PyObject *n = PyLong_FromLong(1); /* of any length: a shape is not memory */
    for (int i = 0; n && i < self->nd; i++) {
        PyObject *d = PyLong_FromSsize_t(self->dim[i]);
        Py_SETREF(n, d ? PyNumber_Multiply(n, d) : NULL);
        Py_XDECREF(d);
    }
    return n;
}

static PyObject *get_T(py_lazy *self, void *unused) {
    (void)unused;
    if (self->nd < 2) return Py_NewRef((PyObject *)self);
    if (self->nd == 2) return py_lazy_view(self->s, self, LOP_T);
    return PyObject_CallMethod((PyObject *)self, "transpose", NULL);
}
static PyObject *get_mT(py_lazy *self, void *unused) {
    (void)unused;
    if (self->nd >= 2) return py_lazy_view(self->s, self, LOP_T);
    PyErr_SetString(PyExc_ValueError, "matrix transpose with ndim < 2 is undefined");
    return NULL;
}
static PyObject *get_H(py_lazy *self, void *unused) {
    (void)unused;
    if (self->nd >= 2) return py_lazy_view(self->s, self, LOP_H);
    return PyObject_CallMethod((PyObject *)self, "conj", NULL);
}

/* For Python's own side. */
static PyObject *get_head(py_lazy *self, void *unused) {
    (void)unused;
    return PyUnicode_FromString(heads[self->head]);
}
static PyObject *get_args(py_lazy *self, void *unused) {
    (void)unused;
    if (self->nargs > 2) return Py_NewRef(self->a);
    return self->nargs == 2   ? PyTuple_Pack(2, self->a, self->b)
           : self->nargs == 1 ? PyTuple_Pack(1, self->a)
                              : PyTuple_New(0);
}
static PyObject *get_more(py_lazy *self, void *unused) {
    (void)unused;
    if (self->head == PY_VIEW) return PyLong_FromLong(self->mode);
    return Py_NewRef(self->more ? self->more : Py_None);
}
static PyObject *get_adopts(py_lazy *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(self->adopts);
}
static PyObject *get_given(py_lazy *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(self->head == PY_LEAF && self->mode == PY_GIVEN);
}
static int set_given(py_lazy *self, PyObject *o, void *unused) {
    (void)unused;
    if (self->head == PY_LEAF) self->mode = o == Py_True ? PY_GIVEN : 0;
    return 0;
}
static PyObject *get_origin(py_lazy *self, void *unused) {
    (void)unused;
    return py_origin(self->code, self->lasti);
}
static PyObject *get_kept(py_lazy *self, void *form) {
    PyObject *o = form ? self->form : self->value;
    return Py_NewRef(o ? o : Py_None);
}
static int set_kept(py_lazy *self, PyObject *o, void *form) {
    bool none = !o || o == Py_None;
    if (!none && !(form ? py_is_op(self->s, o) : PyArray_CheckExact(o))) {
        PyErr_SetString(PyExc_TypeError, "a value is an array, a form an operator");
        return -1;
    }
    if (form)
        Py_XSETREF(self->form, none ? NULL : Py_NewRef(o));
    else
        Py_XSETREF(self->value, none ? NULL : Py_NewRef(o));
    return !form && !none && self->s->tape ? py_tape_value(self) : 0;
}

static PyObject *get_guard(py_lazy *self, void *unused) {
    (void)unused;
    return Py_NewRef(self->guard ? self->guard : Py_None);
}
static int set_guard(py_lazy *self, PyObject *o, void *unused) {
    (void)unused;
    if (o && o != Py_None && !PyCallable_Check(o)) {
        PyErr_SetString(PyExc_TypeError, "a guard is called");
        return -1;
    }
    Py_XSETREF(self->guard, !o || o == Py_None ? NULL : Py_NewRef(o));
    return 0;
}

void py_lazy_failed(py_lazy *a) {
    PyObject *type, *error, *trace;
    if (!a->code) return;
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    PyObject *args[2] = {(PyObject *)a, error};
    PyObject *ok = error ? py_call_hook(a->s, "lazy_failed", args, 2) : NULL;
    Py_XDECREF(ok);
    PyErr_Clear();
    PyErr_Restore(type, error, trace);
}

PyObject *py_lazy_instead(py_lazy *a) {
    PyObject *args[2] = {(PyObject *)a, NULL};
    return PyErr_ExceptionMatches(PyExc_MemoryError) ? py_instead(a->s, "lazy_instead", args, 2)
                                                     : NULL;
}

static PyGetSetDef getset[] = {
    {"shape", (getter)get_shape, NULL, "The shape, a tuple.", NULL},
    {"dtype", (getter)get_dtype, NULL, "The dtype.", NULL},
    {"ndim", (getter)get_ndim, NULL, "Number of dimensions.", NULL},
    {"size", (getter)get_size, NULL, "Number of entries.", NULL},
    {"T", (getter)get_T, NULL, "The transpose (NumPy's: of all axes).", NULL},
    {"mT", (getter)get_mT, NULL, "The transpose of the last two axes.", NULL},
    {"H", (getter)get_H, NULL, "The conjugate transpose of the last two axes.", NULL},
    {"_head", (getter)get_head, NULL, NULL, NULL},
    {"_args", (getter)get_args, NULL, NULL, NULL},
    {"_more", (getter)get_more, NULL, NULL, NULL},
    {"_given", (getter)get_given, (setter)set_given, NULL, NULL},
    {"_adopts", (getter)get_adopts, NULL, NULL, NULL},
    {"_origin", (getter)get_origin, NULL, NULL, NULL},
    {"_value", (getter)get_kept, (setter)set_kept, NULL, NULL},
    {"_form", (getter)get_kept, (setter)set_kept, NULL, (void *)1},
    {"_guard", (getter)get_guard, (setter)set_guard, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL}};

/* -- the value */

static PyObject *computed(PyObject *self, PyObject *unused) {
    (void)unused;
    return Py_XNewRef(py_lazy_computed((py_lazy *)self));
}

static PyObject *guarded(PyObject *self, PyObject *unused) {
    (void)unused;
    if (py_lazy_guarded((py_lazy *)self) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *toarray(PyObject *self, PyObject *unused) {
    (void)unused;
    PyObject *value = Py_XNewRef(py_lazy_computed((py_lazy *)self));
    PyObject *own = value ? PyArray_NewCopy((PyArrayObject *)value, NPY_CORDER) : NULL;
    Py_XDECREF(value);
    return own;
}

/* __array__(dtype=None, copy=None) */
static PyObject *array(PyObject *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"dtype", "copy", NULL};
    PyObject *dtype = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:__array__", names, &dtype, &copy))
        return NULL;
    PyArray_Descr *want = NULL;
    if (dtype != Py_None && !PyArray_DescrConverter(dtype, &want)) return NULL;
    PyArrayObject *value = (PyArrayObject *)Py_XNewRef(py_lazy_computed((py_lazy *)self));
    PyObject *made = NULL;
    int fresh = copy == Py_None ? 0 : PyObject_IsTrue(copy);
    if (!value || fresh < 0) goto done;
    if (want && !PyArray_EquivTypes(want, PyArray_DESCR(value))) {
        if (copy == Py_False)
            PyErr_Format(PyExc_ValueError, "a copy is needed to cast %S to %S",
                         PyArray_DESCR(value), want);
        else
            made = PyArray_CastToType(value, (PyArray_Descr *)Py_NewRef((PyObject *)want), 0);
    } else {
        made = fresh ? PyArray_NewCopy(value, NPY_CORDER) : Py_NewRef((PyObject *)value);
    }
done:
    Py_XDECREF((PyObject *)want);
    Py_XDECREF((PyObject *)value);
    return made;
}

static PyMethodDef methods[] = {
    {"toarray", toarray, METH_NOARGS, "toarray($self)\n--\n\nThe value, in an array of its own."},
    {"__array__", (PyCFunction)(void (*)(void))array, METH_VARARGS | METH_KEYWORDS, NULL},
    {"__array_ufunc__", (PyCFunction)(void (*)(void))py_lazy_array_ufunc,
     METH_FASTCALL | METH_KEYWORDS, NULL},
    {"_computed", computed, METH_NOARGS, NULL},
    {"_guarded", guarded, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(py_lazy, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL}};

static const PyType_Slot slots[] = {{Py_tp_new, new},
                                    {Py_tp_dealloc, lazy_dealloc},
                                    {Py_tp_traverse, lazy_traverse},
                                    {Py_tp_clear, lazy_clear},
                                    {Py_tp_getset, getset},
                                    {Py_tp_methods, methods},
                                    {Py_tp_members, members},
                                    {Py_tp_doc, (void *)"C base of pylinop.LazyArray."}};

int py_lazy_make_type(PyObject *module) {
    enum { OWN = sizeof slots / sizeof slots[0] };
    PyType_Slot all[64]; /* these and the arithmetic's, which end in an empty one */
    int n = OWN;
    memcpy(all, slots, sizeof slots);
    for (const PyType_Slot *more = py_lazy_arith_slots; n < 63 && more->slot; more++)
        all[n++] = *more;
    all[n] = (PyType_Slot){0, NULL};
    PyType_Spec spec = {"pylinop._core.Lazy", sizeof(py_lazy), sizeof(npy_intp),
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, all};
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    int rc = type ? PyModule_AddObjectRef(module, "Lazy", type) : -1;
    Py_XDECREF(type);
    return rc;
}

bool py_lazy_may_keep(const py_lazy *a, PyArrayObject *v) {
    enum { SHARED = 1 << 16 }; /* bytes: less is copied */
    PyArrayObject *base = (PyArrayObject *)PyArray_BASE(v);
    if (!PyArray_CheckExact(v)) return false;
    if (!base) return true;
    if (PyArray_NBYTES(v) < SHARED || !PyArray_IS_C_CONTIGUOUS(v) || !PyArray_CheckExact(base) ||
        !PyArray_CHKFLAGS(base, NPY_ARRAY_OWNDATA) || PyArray_NBYTES(base) / 4 > PyArray_NBYTES(v))
        return false;
    if (Py_REFCNT(v) == 1 && Py_REFCNT(base) == 1) return true;
    for (int i = 0; i < a->nargs; i++) {
        PyObject *arg = py_lazy_args((py_lazy *)(uintptr_t)a)[i];
        PyArrayObject *x = py_is_lazy(a->s, arg) ? (PyArrayObject *)((py_lazy *)arg)->value : NULL;
        if (x && !PyArray_ISWRITEABLE(base) && (x == base || PyArray_BASE(x) == (PyObject *)base))
            return true;
    }
    return false;
}
