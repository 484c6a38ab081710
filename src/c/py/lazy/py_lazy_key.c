/* py_lazy_key.c: the key of a formula: all of it but the contents of its arrays, for finding again
 * what is known of it. It tells apart whatever _programs/structure.py tells apart, and numbers the
 * arrays as that does; what has no key here is looked at there.
 *
 * The key is a tuple: bytes, which spell the nodes, arguments first, each with its head, shape,
 * dtype and the places of its arguments, and constants by tag and content; then the objects that
 * the bytes refer to, in order (texts, types, functions), which compare by themselves. Places are
 * of arrays (0, 1, ..., those of the parameters first) or of nodes (-2, -3, ...).
 * Cost: 0.2 us a node (EPYC, busy, 2026-11-27), where Python takes 7. */
#include "py_lazy.h"

enum { NODES = 256, ARRAYS = 64, OBJECTS = 256, BYTES = 8192, DEPTH = 32 };
/* What came of it. */
enum { KNOWN = 0, UNKNOWN = 1, FAILED = -1 };

typedef struct key {
    py_state *s;
    PyObject *opened, *objects, *functions; /* sets of classes; names of attributes by class */
    PyTypeObject *kind;
    const py_lazy *node[NODES]; /* borrowed, as all below: the formula holds them */
    PyObject *array[ARRAYS], *object[OBJECTS];
    PyObject *const *param; /* the parameters' LazyArrays */
    int nnode, narray, nobject, nparam, depth;
    size_t n;
    char at[BYTES];
} key;

#define TRY_KEY(call)                                                                              \
    do {                                                                                           \
        int got_ = (call);                                                                         \
        if (got_ != KNOWN) return got_;                                                            \
    } while (0)

static int put(key *k, const void *from, size_t n) {
    if (n > BYTES - k->n) return UNKNOWN;
    memcpy(k->at + k->n, from, n);
    k->n += n;
    return KNOWN;
}
static int put_tag(key *k, char tag) { return put(k, &tag, 1); }
static int put_int(key *k, int64_t v) { return put(k, &v, sizeof v); }
static int put_object(key *k, char tag, PyObject *o) {
    if (k->nobject == OBJECTS) return UNKNOWN;
    k->object[k->nobject++] = o;
    return put_tag(k, tag);
}
static int put_dtype(key *k, PyArray_Descr *d) {
    if (!d || d->type_num >= NPY_OBJECT || !PyArray_ISNBO(d->byteorder)) return UNKNOWN;
    return put_int(k, d->type_num);
}
static int put_shape(key *k, int nd, const npy_intp *dim) {
    TRY_KEY(put_int(k, nd));
    for (int i = 0; i < nd; i++) TRY_KEY(put_int(k, dim[i]));
    return KNOWN;
}

/* The place of an array that is no parameter. */
static int put_array(key *k, PyObject *a) {
    int at = k->nparam;
    while (at < k->narray && k->array[at] != a) at++;
    if (at == ARRAYS || !PyArray_CheckExact(a)) return UNKNOWN;
    if (at == k->narray) k->array[k->narray++] = a;
    return put_int(k, at);
}

static int put_constant(key *k, PyObject *x);

static int put_items(key *k, char tag, PyObject *const *item, Py_ssize_t n) {
    TRY_KEY(put_tag(k, tag));
    TRY_KEY(put_int(k, n));
    for (Py_ssize_t i = 0; i < n; i++) TRY_KEY(put_constant(k, item[i]));
    return KNOWN;
}

static int put_dict(key *k, PyObject *x) {
    PyObject *name, *value;
    Py_ssize_t at = 0;
    TRY_KEY(put_tag(k, '{'));
    TRY_KEY(put_int(k, PyDict_GET_SIZE(x)));
    while (PyDict_Next(x, &at, &name, &value)) {
        TRY_KEY(put_constant(k, name));
        TRY_KEY(put_constant(k, value));
    }
    return KNOWN;
}

/* An attribute, which the object holds: it lives on. */
static int put_attribute(key *k, PyObject *x, PyObject *name) {
    PyObject *value = PyObject_GetAttr(x, name);
    if (!value) return FAILED;
    const int got = Py_REFCNT(value) > 1 ? put_constant(k, value) : UNKNOWN;
    Py_DECREF(value);
    return got;
}

/* An operator without arrays, or a multiple of one. */
static int put_operator(key *k, py_op *op) {
    TRY_KEY(put_object(k, 'P', (PyObject *)Py_TYPE(op)));
    if (op->init) return put_constant(k, op->init);
    if (op->by != &lop_op_scaled || !op->a || !op->b || !py_is_op(k->s, op->a) || !op->node ||
        op->shape || op->dtype)
        return UNKNOWN;
    TRY_KEY(put_int(k, op->node->dtype));
    TRY_KEY(put_int(k, op->node->weak));
    TRY_KEY(put_constant(k, op->b));
    return put_constant(k, op->a);
}

static int put_scalar(key *k, PyObject *x) {
    PyArray_Descr *d = PyArray_DescrFromScalar(x);
    if (!d) return FAILED;
    char content[32];
    int got = PyDataType_ELSIZE(d) <= (npy_intp)sizeof content && PyTypeNum_ISNUMBER(d->type_num)
                  ? put_tag(k, 'g')
                  : UNKNOWN;
    if (got == KNOWN) got = put_dtype(k, d);
    if (got == KNOWN) {
        memset(content, 0, sizeof content);
        PyArray_ScalarAsCtype(x, content);
        got = put(k, content, (size_t)PyDataType_ELSIZE(d));
    }
    Py_DECREF(d);
    return got;
}

static int put_float(key *k, char tag, double re, double im) {
    const double both[2] = {re, im};
    TRY_KEY(put_tag(k, tag));
    return put(k, both, sizeof both);
}

static int put_function(key *k, PyObject *x) {
    if (!PyFunction_Check(x)) return put_object(k, 'f', x);
    const PyFunctionObject *f = (PyFunctionObject *)x;
    if (f->func_closure) return UNKNOWN;
    const Py_ssize_t inner =
        PyUnicode_FindChar(f->func_qualname, '<', 0, PyUnicode_GET_LENGTH(f->func_qualname), 1);
    return inner == -1 ? put_object(k, 'f', x) : inner < 0 ? FAILED : UNKNOWN;
}

/* What only sets of classes know. */
static int put_registered(key *k, PyObject *x) {
    PyObject *cls = (PyObject *)Py_TYPE(x);
    const int callable = PySet_Contains(k->functions, cls);
    if (callable) return callable < 0 ? FAILED : put_function(k, x);
    PyObject *names = PyDict_GetItemWithError(k->objects, cls);
    if (!names) return PyErr_Occurred() ? FAILED : UNKNOWN;
    TRY_KEY(put_object(k, 'O', cls));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++)
        TRY_KEY(put_attribute(k, x, PyTuple_GET_ITEM(names, i)));
    return KNOWN;
}

static int put_whole(key *k, PyObject *x) {
    int over = 0;
    const long long v = PyLong_AsLongLongAndOverflow(x, &over);
    if (over) return UNKNOWN;
    TRY_KEY(put_tag(k, 'i'));
    return put_int(k, v);
}

static int put_plain(key *k, PyObject *x) {
    if (x == Py_None) return put_tag(k, 'N');
    if (PyBool_Check(x)) return put_tag(k, x == Py_True ? '1' : '0');
    if (x == Py_Ellipsis) return put_tag(k, 'E');
    if (PyLong_CheckExact(x)) return put_whole(k, x);
    if (PyFloat_CheckExact(x)) return put_float(k, 'r', PyFloat_AS_DOUBLE(x), 0);
    if (PyComplex_CheckExact(x))
        return put_float(k, 'c', PyComplex_RealAsDouble(x), PyComplex_ImagAsDouble(x));
    if (PyUnicode_CheckExact(x)) return put_object(k, 's', x);
    if (PyBytes_CheckExact(x)) return put_object(k, 'b', x);
    if (Py_TYPE(x) == &PyType_Type) return put_object(k, 't', x);
    if (PyTuple_CheckExact(x))
        return put_items(k, '(', &PyTuple_GET_ITEM(x, 0), PyTuple_GET_SIZE(x));
    if (PyList_CheckExact(x)) return put_items(k, '[', &PyList_GET_ITEM(x, 0), PyList_GET_SIZE(x));
    if (PyDict_CheckExact(x)) return put_dict(k, x);
    if (PySlice_Check(x)) {
        PySliceObject *s = (PySliceObject *)x;
        PyObject *const parts[3] = {s->start, s->stop, s->step};
        return put_items(k, ':', parts, 3);
    }
    if (PyArray_DescrCheck(x)) {
        TRY_KEY(put_tag(k, 'd'));
        return put_dtype(k, (PyArray_Descr *)x);
    }
    if (PyArray_IsScalar(x, Generic)) return put_scalar(k, x);
    if (py_is_op(k->s, x)) return put_operator(k, (py_op *)x);
    return put_registered(k, x);
}

/* What no array is in. */
static int put_constant(key *k, PyObject *x) {
    if (k->depth == DEPTH) return UNKNOWN;
    k->depth++;
    const int got = put_plain(k, x);
    k->depth--;
    return got;
}

/* An argument of a constructor: an array is an input. */
static int put_opened(key *k, PyObject *x) {
    if (!PyArray_Check(x)) return put_constant(k, x);
    TRY_KEY(put_tag(k, 'A'));
    return put_array(k, x);
}

/* A kind of LazyArrays: its constructor, with arrays as inputs. */
static int put_kind(key *k, PyObject *made) {
    static const char *const names[] = {"cls", "args", "kwargs", "holes"};
    PyObject *part[4] = {NULL}, *name, *value;
    int got = KNOWN;
    for (int i = 0; i < 4 && got == KNOWN; i++)
        if (!(part[i] = PyObject_GetAttrString(made, names[i]))) got = FAILED;
    if (got == KNOWN && !(PyTuple_CheckExact(part[1]) && PyDict_CheckExact(part[2]))) got = UNKNOWN;
    if (got == KNOWN) got = put_object(k, 'K', part[0]);
    if (got == KNOWN) got = put_int(k, PyTuple_GET_SIZE(part[1]));
    for (Py_ssize_t i = 0; got == KNOWN && i < PyTuple_GET_SIZE(part[1]); i++)
        got = put_opened(k, PyTuple_GET_ITEM(part[1], i));
    if (got == KNOWN) got = put_int(k, PyDict_GET_SIZE(part[2]));
    for (Py_ssize_t at = 0; got == KNOWN && PyDict_Next(part[2], &at, &name, &value);) {
        got = put_constant(k, name);
        if (got == KNOWN) got = put_opened(k, value);
    }
    if (got == KNOWN) got = put_constant(k, part[3]);
    for (int i = 0; i < 4; i++) Py_XDECREF(part[i]);
    return got;
}

/* The array that is all of a Dense; borrowed, NULL: there is none, or more. */
static PyObject *only_array(const key *k, PyObject *x) {
    if (Py_TYPE(x) != k->s->type[LOP_ID_dense]) return NULL;
    PyObject *init = ((py_op *)x)->init;
    if (!init || !PyArray_CheckExact(PyTuple_GET_ITEM(init, 0))) return NULL;
    for (Py_ssize_t i = 1; i < PyTuple_GET_SIZE(init); i++)
        if (PyTuple_GET_ITEM(init, i) != Py_None) return NULL;
    return PyTuple_GET_ITEM(init, 0);
}

/* The operator of a node: a kind of its arrays where it is one of few. */
static int put_leaf_operator(key *k, py_op *op) {
    const int opened = op->init ? PySet_Contains(k->opened, (PyObject *)Py_TYPE(op)) : 0;
    if (opened < 0) return FAILED;
    if (!opened) return put_operator(k, op);
    TRY_KEY(put_object(k, 'Q', (PyObject *)Py_TYPE(op)));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(op->init); i++) {
        PyObject *x = PyTuple_GET_ITEM(op->init, i), *array = only_array(k, x);
        if (array) {
            TRY_KEY(put_tag(k, 'D'));
            TRY_KEY(put_array(k, array));
        } else {
            TRY_KEY(put_opened(k, x));
        }
    }
    return KNOWN;
}

/* Where a LazyArray has been put already. */
static bool placed(const key *k, PyObject *x, int64_t *at) {
    for (int i = 0; i < k->nparam; i++)
        if (k->param[i] == x) return *at = i, true;
    for (int i = k->nnode; i-- > 0;)
        if ((PyObject *)k->node[i] == x) return *at = -2 - i, true;
    return false;
}

static int put_argument(key *k, PyObject *x) {
    int64_t at;
    if (!py_is_lazy(k->s, x)) return put_opened(k, x);
    if (!placed(k, x, &at)) return UNKNOWN;
    TRY_KEY(put_tag(k, '@'));
    return put_int(k, at);
}

static int put_node(key *k, const py_lazy *a) {
    if (k->nnode == NODES) return UNKNOWN;
    PyObject *const *arg = py_lazy_args(a);
    TRY_KEY(put_tag(k, (char)('a' + a->head)));
    TRY_KEY(put_shape(k, a->nd, a->dim));
    TRY_KEY(put_dtype(k, a->dtype));
    if (a->head == PY_LEAF) {
        if (a->more && a->more != Py_None) return UNKNOWN;
        TRY_KEY(put_array(k, arg[0]));
    } else if (a->head == PY_OPERATOR) {
        if (!py_is_op(k->s, arg[0])) return UNKNOWN;
        TRY_KEY(put_leaf_operator(k, (py_op *)arg[0]));
    } else {
        if (a->value || a->form) return UNKNOWN;
        TRY_KEY(put_int(k, a->mode));
        TRY_KEY(put_int(k, a->nargs));
        for (int i = 0; i < a->nargs; i++) TRY_KEY(put_argument(k, arg[i]));
        PyObject *more = a->more ? a->more : Py_None, *made = NULL;
        if (a->head == PY_MADE && PyTuple_CheckExact(more) && PyTuple_GET_SIZE(more) == 2)
            made = PyTuple_GET_ITEM(more, 0);
        if (made && Py_TYPE(made) == k->kind) {
            TRY_KEY(put_kind(k, made));
            more = PyTuple_GET_ITEM(more, 1);
        }
        TRY_KEY(put_constant(k, more));
    }
    k->node[k->nnode++] = a;
    return KNOWN;
}

/* The formula, arguments first, in the order of structure.py. */
static int put_formula(key *k, PyObject *root) {
    PyObject *stack[2 * NODES];
    int n = 1;
    int64_t at = 0;
    stack[0] = root;
    while (n > 0) {
        PyObject *x = stack[n - 1];
        if (placed(k, x, &at)) {
            n--;
            continue;
        }
        const py_lazy *a = (py_lazy *)x;
        const int before = n;
        if (a->head == PY_GONE) return UNKNOWN;
        for (int i = 0; i < a->nargs; i++) {
            PyObject *below = py_lazy_args(a)[i];
            if (!py_is_lazy(k->s, below) || placed(k, below, &at)) continue;
            if (n == 2 * NODES) return UNKNOWN;
            stack[n++] = below;
        }
        if (n > before) continue;
        n--;
        TRY_KEY(put_node(k, a));
    }
    return placed(k, root, &at) ? put_int(k, at) : UNKNOWN;
}

/* Shapes and dtypes of all arrays, which have to be plain. */
static int put_arrays(key *k) {
    for (int i = 0; i < k->narray; i++) {
        PyArrayObject *a = (PyArrayObject *)k->array[i];
        if (!PyArray_CheckExact(a) || !py_is_plain(PyArray_DESCR(a)) || !PyArray_ISALIGNED(a))
            return UNKNOWN;
        TRY_KEY(put_shape(k, PyArray_NDIM(a), PyArray_DIMS(a)));
        TRY_KEY(put_dtype(k, PyArray_DESCR(a)));
    }
    return KNOWN;
}

static PyObject *made_key(const key *k) {
    PyObject *made = PyTuple_New(1 + k->nobject), *arrays = PyList_New(k->narray);
    PyObject *text = PyBytes_FromStringAndSize(k->at, (Py_ssize_t)k->n), *both = NULL;
    if (made && arrays && text) {
        PyTuple_SET_ITEM(made, 0, Py_NewRef(text));
        for (int i = 0; i < k->nobject; i++) PyTuple_SET_ITEM(made, 1 + i, Py_NewRef(k->object[i]));
        for (int i = 0; i < k->narray; i++) PyList_SET_ITEM(arrays, i, Py_NewRef(k->array[i]));
        both = PyTuple_Pack(2, made, arrays);
    }
    Py_XDECREF(made);
    Py_XDECREF(arrays);
    Py_XDECREF(text);
    return both;
}

PyObject *py_lazy_key(py_state *s, PyObject *root, PyObject *params, PyObject *arrays,
                      PyObject *tables) {
    key k;
    k.s = s;
    k.nnode = k.nobject = k.depth = 0;
    k.n = 0;
    if (!py_is_lazy(s, root) || PyList_GET_SIZE(params) != PyList_GET_SIZE(arrays) ||
        PyTuple_GET_SIZE(tables) != 4)
        return PyErr_Format(PyExc_TypeError, "a key is of a LazyArray, its parameters and tables");
    if (PyList_GET_SIZE(params) > ARRAYS) Py_RETURN_NONE;
    k.opened = PyTuple_GET_ITEM(tables, 0);
    k.objects = PyTuple_GET_ITEM(tables, 1);
    k.functions = PyTuple_GET_ITEM(tables, 2);
    k.kind = (PyTypeObject *)PyTuple_GET_ITEM(tables, 3);
    k.nparam = k.narray = (int)PyList_GET_SIZE(params);
    k.param = k.nparam ? &PyList_GET_ITEM(params, 0) : NULL;
    for (int i = 0; i < k.nparam; i++) k.array[i] = PyList_GET_ITEM(arrays, i);
    int got = put_formula(&k, root);
    if (got == KNOWN) got = put_arrays(&k);
    if (got == KNOWN) return made_key(&k);
    if (got == FAILED) return NULL;
    Py_RETURN_NONE;
}
