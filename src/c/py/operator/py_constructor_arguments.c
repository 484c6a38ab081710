/* py_constructor_arguments.c: reads the arguments of constructors: arrays, operands, numbers,
 * words, shapes, dtypes, by the parameters of the kind's table. */
#include "py_constructor.h"

#include <stdarg.h>

static int fail(PyObject *type, const char *format, ...) {
    va_list v;
    va_start(v, format);
    PyErr_FormatV(type, format, v);
    va_end(v);
    return -1;
}

/* The array behind a parameter: new. Subclasses but np.matrix, structured and object arrays are
 * refused. */
static PyArrayObject *take_array(py_parts *p, const lop_param *param, PyObject *o, bool index) {
    const int rank = param->rank < 0 ? p->levels : param->rank,
              most = rank > 2 ? LOP_MAXDIM - rank : LOP_MAXDIM - 2;
    PyObject *mask = PyArray_Check(o) && !PyArray_CheckExact(o) ? py_attribute(o, "mask") : NULL;
    if (mask)
        fail(PyExc_TypeError, "%s(%s=...): masked arrays are not taken; fill or select first",
             p->op->title, param->name);
    Py_XDECREF(mask);
    if (PyErr_Occurred()) return NULL;
    PyObject *taken = PyArray_CheckExact(o) ? Py_NewRef(o) : py_foreign(o, true);
    if (!taken && !PyErr_Occurred()) taken = py_call_hook(p->s, "as_array", &o, 1);
    PyArrayObject *a = (PyArrayObject *)taken;
    if (!a) return NULL;
    int type = PyArray_TYPE(a);
    if (index && type == NPY_BOOL) {
        fail(PyExc_TypeError, "%s(%s=...): a mask is not taken; give np.flatnonzero(mask)",
             p->op->title, param->name);
        return py_drop(a);
    }
    if (index && PyArray_SIZE(a) == 0 && type == NPY_DOUBLE)
        Py_SETREF(a, (PyArrayObject *)PyArray_Cast(a, NPY_INT64));
    if (a && (type == NPY_OBJECT || type == NPY_VOID || type == NPY_STRING || type == NPY_UNICODE ||
              PyTypeNum_ISDATETIME(type))) {
        fail(PyExc_TypeError, "%s(%s=...): arrays of dtype %R are not taken", p->op->title,
             param->name, PyArray_DESCR(a));
        a = py_drop(a);
    }
    if (a && (PyArray_NDIM(a) < rank || PyArray_NDIM(a) > rank + most)) {
        fail(PyExc_ValueError,
             "%s(%s=...): expected %d dimension%s (and at most %d of batch before %s), got %d%s",
             p->op->title, param->name, rank, rank == 1 ? "" : "s", most, rank == 1 ? "it" : "them",
             PyArray_NDIM(a),
             rank == 2 && PyArray_NDIM(a) == 1 ? "; x[:, None] is a vector as a column" : "");
        a = py_drop(a);
    }
    if (a && p->copy) Py_SETREF(a, (PyArrayObject *)py_own_copy(p->s, (PyObject *)a));
    return a;
}

/* The leaf of an array that was given for a parameter before: retained; NULL: it was not. */
static const lop_node *given_before(const py_parts *p, const PyArrayObject *a, int core) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(p->arrays); i++) {
        const uint64_t serial = p->serial + (uint64_t)i;
        for (int k = 0; PyList_GET_ITEM(p->arrays, i) == (PyObject *)a && k < p->n; k++) {
            const lop_node *leaf = p->child[k];
            if (leaf && leaf->op == &lop_op_array && leaf->serial == serial && leaf->core == core)
                return lop_node_ref(leaf);
        }
    }
    return NULL;
}

/* Has the kind but this one array? Several have serials in a row, which are not shared. */
static bool is_of_one_array(const lop_op *op) {
    int arrays = 0;
    for (int i = 0; i < LOP_MAXPARAM && op->param[i].name; i++) {
        const int role = (int)op->param[i].role;
        if (role == LOP_P_FOREIGN) return false; /* which may be of several */
        arrays += role == LOP_P_ARRAY || role == LOP_P_INDEX;
    }
    return arrays == 1;
}

static int leaf_of(py_parts *p, PyArrayObject *a, int core, const lop_node **out) {
    lop_err err;
    if ((*out = given_before(p, a, core))) return 0;
    lop_err_open(&err);
    lop_shape shape = {.ndim = PyArray_NDIM(a)};
    for (int i = 0; i < shape.ndim; i++) shape.dim[i] = PyArray_DIM(a, i);
    lop_dtype dt = py_dtype(a);
    if (dt == LOP_NO_DTYPE) p->foreign = true;
    lop_status st = LOP_OK;
    if (is_of_one_array(p->op) && PyList_GET_SIZE(p->arrays) == 0)
        *out = py_array_leaf(p->s, a, dt, core, &shape, p->op == &lop_op_dense, &st, &err);
    else
        st = lop_node_leaf(&p->s->ctx, dt, core, &shape, out, &err);
    if (st != LOP_OK) return py_raise(p->s, st, &err, NULL, "build"), -1;
    if (PyList_GET_SIZE(p->arrays) == 0) p->serial = (*out)->serial;
    return PyList_Append(p->arrays, (PyObject *)a);
}

static int set_init(py_parts *p, Py_ssize_t i, PyObject *value) {
    PyTuple_SET_ITEM(p->init, i, value);
    return value ? 0 : -1;
}

static int read_dtype(py_parts *p, PyObject *o) {
    p->like.dtype = LOP_f64;
    p->like.weak = LOP_WEAK;
    if (!o || o == Py_None) return 0;
    if (PyLong_Check(o)) /* NumPy's words for it say nothing of shapes */
        return fail(PyExc_TypeError, "%s(dtype=%R): a dtype is due; a shape is one tuple, (m, n)",
                    p->op->title, o);
    PyArray_Descr *d;
    if (!PyArray_DescrConverter(o, &d)) return -1;
    npy_intp none = 0;
    PyObject *probe = PyArray_NewFromDescr(&PyArray_Type, d, 1, &none, NULL, NULL, 0, NULL);
    if (!probe) return -1;
    p->like.dtype = py_dtype((PyArrayObject *)probe);
    p->like.weak = LOP_STRONG;
    if (PyArray_TYPE((PyArrayObject *)probe) == NPY_OBJECT ||
        PyTypeNum_ISUSERDEF(PyArray_TYPE((PyArrayObject *)probe)) ||
        PyTypeNum_ISFLEXIBLE(PyArray_TYPE((PyArrayObject *)probe))) {
        Py_DECREF(probe);
        return fail(PyExc_TypeError, "%s(dtype=%R): expected a dtype of numbers", p->op->title, o);
    }
    p->foreign |= p->like.dtype == LOP_NO_DTYPE;
    Py_DECREF(probe);
    return 0;
}

static int read_assume(py_parts *p, int slot, PyObject *o) {
    static const struct {
        const char *word;
        int value;
    } words[] = {{"gen", LOP_ASSUME_GENERAL},
                 {"general", LOP_ASSUME_GENERAL},
                 {"sym", LOP_ASSUME_SYMMETRIC},
                 {"symmetric", LOP_ASSUME_SYMMETRIC},
                 {"her", LOP_ASSUME_HERMITIAN},
                 {"hermitian", LOP_ASSUME_HERMITIAN},
                 {"pos", LOP_ASSUME_POSITIVE},
                 {"positive definite", LOP_ASSUME_POSITIVE},
                 {"lower triangular", LOP_ASSUME_LOWER},
                 {"upper triangular", LOP_ASSUME_UPPER},
                 {"diagonal", LOP_ASSUME_DIAGONAL},
                 {"tridiagonal", LOP_ASSUME_TRIDIAGONAL},
                 {"banded", LOP_ASSUME_GENERAL},
                 {"orthogonal", LOP_ASSUME_ORTHOGONAL}};
    if (!o || o == Py_None) return 0;
    for (size_t i = 0; PyUnicode_Check(o) && i < sizeof words / sizeof words[0]; i++)
        if (PyUnicode_CompareWithASCIIString(o, words[i].word) == 0) {
            const bool kind = words[i].value > LOP_ASSUME_ORTHOGONAL;
            p->attr.i[slot] = kind && p->op != &lop_op_dense ? LOP_ASSUME_GENERAL : words[i].value;
            return 0;
        }
    return fail(PyExc_ValueError,
                "%s(assume_a=%R): expected scipy.linalg.solve's words: 'gen', 'sym', 'her', 'pos' "
                "(positive definite), 'lower triangular', 'upper triangular', 'diagonal', "
                "'tridiagonal', 'banded', or 'orthogonal'",
                p->op->title, o);
}

static int read_shape(py_parts *p, PyObject *o, bool square) {
    int beyond = 0;
    const long long n = PyLong_CheckExact(o) ? PyLong_AsLongLongAndOverflow(o, &beyond) : -1;
    if (n >= 0 && !beyond) { /* a number of rows; errors are for Python */
        p->like.shape = (lop_shape){.ndim = 2, .dim = {n, n}};
        p->like.core = 2;
        p->has_like = true;
        return 0;
    }
    PyObject *title = square ? PyUnicode_FromString(p->op->title) : Py_NewRef(Py_None);
    PyObject *args[2] = {o, title};
    PyObject *shape = title ? py_call_hook(p->s, "kind_shape", args, 2) : NULL;
    Py_XDECREF(title);
    if (!shape) return -1;
    p->like.shape.ndim = (int)PyTuple_GET_SIZE(shape);
    for (int i = 0; i < p->like.shape.ndim; i++)
        p->like.shape.dim[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, i));
    Py_DECREF(shape);
    p->like.core = 2;
    p->has_like = true;
    return PyErr_Occurred() ? -1 : 0;
}

/* Borrowed node of operand `at`, which is wrapped, and copied before if asked; NULL: failed. */
static const lop_node *take_operator(py_parts *p, Py_ssize_t at, PyObject *o) {
    PyObject *mine = p->copy ? py_own_copy(p->s, o) : Py_NewRef(o);
    PyObject *op = mine ? py_operand(p->s, p->op, at, mine) : NULL;
    Py_XDECREF(mine);
    return set_init(p, at, op) < 0 ? NULL : py_node(p->s, (py_op *)op);
}

static int read_operator(py_parts *p, Py_ssize_t at, PyObject *o) {
    const lop_node *node = take_operator(p, at, o);
    if (!node) return -1;
    p->child[p->n++] = lop_node_ref(node);
    return 0;
}

/* A foreign object Python takes apart: (arrays, attr ints) for the kind. */
static int read_foreign(py_parts *p, int at, PyObject *o) {
    char name[64];
    snprintf(name, sizeof name, "parts_of_%s", p->op->name);
    if (p->copy) {
        PyObject *mine = PyObject_CallMethod(o, "copy", NULL);
        if (!mine) return -1;
        Py_SETREF(PyTuple_GET_ITEM(p->init, at), mine);
        o = mine; /* held by init */
    }
    PyObject *given[2] = {o, p->arg[at + 1] ? p->arg[at + 1] : Py_None}, *numbers = NULL;
    if (given[1] != Py_None) { /* in place of the object's own */
        numbers = (PyObject *)take_array(p, &p->op->param[at + 1], given[1], false);
        if (!numbers) return -1;
        given[1] = numbers;
    }
    PyObject *r = py_call_hook(p->s, name, given, 2);
    Py_XDECREF(numbers);
    if (!r) return -1;
    PyObject *arrays = PyTuple_GET_ITEM(r, 0), *ints = PyTuple_GET_ITEM(r, 1);
    int rc = 0;
    for (Py_ssize_t i = 0; rc == 0 && i < PyTuple_GET_SIZE(ints); i++)
        p->attr.i[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(ints, i));
    for (Py_ssize_t i = 0; rc == 0 && i < PyTuple_GET_SIZE(arrays); i++)
        rc = leaf_of(p, (PyArrayObject *)PyTuple_GET_ITEM(arrays, i), 1, &p->child[p->n++]);
    Py_DECREF(r);
    return PyErr_Occurred() ? -1 : rc;
}

/* A number of a dtype that C does not know makes the kind a foreign one. */
static int read_scalar(py_parts *p, const lop_param *param, PyObject *o) {
    int known = py_coefficient(o, &p->attr);
    if (known < 0) return -1;
    bool number = PyArray_IsScalar(o, Number) ||
                  (PyArray_CheckExact(o) && PyArray_NDIM((PyArrayObject *)o) == 0 &&
                   PyTypeNum_ISNUMBER(PyArray_TYPE((PyArrayObject *)o)));
    p->foreign |= known == 0;
    return known || number ? 0
                           : fail(PyExc_TypeError, "%s(%s=%R): expected a number", p->op->title,
                                  param->name, o);
}

/* An array of p->levels levels: raveled, and its sizes. */
static int read_levels(py_parts *p, PyArrayObject *a) {
    int64_t n[LOP_MAXDIM];
    if (p->levels == 0) p->levels = PyArray_NDIM(a);
    if (p->levels < 1 || p->levels > LOP_MAXDIM - 3)
        return fail(PyExc_ValueError, "%s(%s=...): expected 1 to %d dimensions, got %d",
                    p->op->title, p->op->param[0].name, LOP_MAXDIM - 3, p->levels);
    for (int i = 0; i < p->levels; i++) n[i] = PyArray_DIM(a, PyArray_NDIM(a) - p->levels + i);
    if (leaf_of(p, a, p->levels == 1, &p->child[p->n]) < 0) return -1;
    p->n++;
    if (py_ravel(p->s, p->levels, &p->child[p->n - 1]) < 0) return -1;
    return py_sizes(p->s, p->levels, n, &p->child[p->n++]);
}

/* An array of square blocks: raveled. */
static int read_blocks(py_parts *p, const lop_param *param, PyArrayObject *a) {
    if (py_take_blocks(p->op, param, (PyObject *)a, p->n == 0, &p->attr.i[0]) < 0) return -1;
    if (leaf_of(p, a, 0, &p->child[p->n]) < 0) return -1;
    return py_ravel(p->s, 3, &p->child[p->n++]);
}

static int read_sizes(py_parts *p, const lop_param *param, PyObject *o) {
    int64_t n[LOP_MAXDIM];
    int levels = py_take_sizes(p->op, param, o, n);
    return levels < 0 ? -1 : py_sizes(p->s, levels, n, &p->child[p->n++]);
}

static int read_one(py_parts *p, int i) {
    const lop_param *param = &p->op->param[i];
    PyObject *o = p->arg[i];
    bool none = !o || o == Py_None;
    if (!o && param->fallback && (py_is_attr(param->role) || param->fallback[0] == '\'')) {
        if (set_init(p, i, o = py_default(param)) < 0) return -1;
    } else if (set_init(p, i, Py_NewRef(o ? o : Py_None)) < 0) {
        return -1;
    }
    if (none && !param->fallback)
        return fail(PyExc_TypeError, "%s() needs %s", p->op->title, param->name);
    switch (param->role) {
    case LOP_P_ARRAY:
    case LOP_P_INDEX: {
        if (none || (p->op == &lop_op_kernel && py_kernel_same(p->init, p->arg, i))) return 0;
        if (p->op == &lop_op_sparse) /* read with its matrix */
            return set_init(p, i, Py_NewRef(PyList_GET_ITEM(p->arrays, 0)));
        PyObject *weak = p->op == &lop_op_kernel ? py_kernel_number(p->init, i, o)
                         : param->rank == 0      ? py_weak_number(PyTuple_GET_ITEM(p->init, 0), o)
                                                 : NULL;
        if (!weak && PyErr_Occurred()) return -1;
        PyArrayObject *a = take_array(p, param, weak ? weak : o, param->role == LOP_P_INDEX);
        Py_XDECREF(weak);
        if (!a) return -1;
        Py_SETREF(PyTuple_GET_ITEM(p->init, i), Py_NewRef(a));
        int rc = param->rank < 0    ? read_levels(p, a)
                 : param->rank == 3 ? read_blocks(p, param, a)
                                    : leaf_of(p, a, param->rank, &p->child[p->n]);
        p->n += param->rank >= 0 && param->rank < 3 && rc == 0;
        Py_DECREF(a);
        return rc;
    }
    case LOP_P_OPERATOR: {
        if (none) return 0;
        Py_DECREF(PyTuple_GET_ITEM(p->init, i));
        PyTuple_SET_ITEM(p->init, i, NULL);
        return read_operator(p, i, o);
    }
    case LOP_P_INT:
        if (p->op->max == 0) return read_shape(p, o, true);
        p->attr.i[param->rank] = none ? strtoll(param->fallback, NULL, 10) : PyLong_AsLongLong(o);
        if (PyErr_Occurred()) return -1;
        return p->attr.i[param->rank] < 0
                   ? fail(PyExc_ValueError, "%s(%s=%R): a size cannot be negative", p->op->title,
                          param->name, o)
                   : 0;
    case LOP_P_SIZES: return none ? 0 : read_sizes(p, param, o);
    case LOP_P_LEVELS: return 0;
    case LOP_P_SHAPE: return none ? 0 : read_shape(p, o, false);
    case LOP_P_DTYPE: return read_dtype(p, o);
    case LOP_P_ASSUME: return read_assume(p, param->rank, o);
    case LOP_P_SCALAR: return read_scalar(p, param, o);
    case LOP_P_GRID: return py_read_grid(&p->s->ctx, p->op, i, o, &p->many, &p->n);
    case LOP_P_FOREIGN: return read_foreign(p, i, o);
    default: return py_read_attr(p->op, i, o, &p->attr);
    }
}

/* Takes the operators of a tuple as children; their objects become p->init. */
static int read_many(py_parts *p, PyObject *args) {
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    if (n < 1) return fail(PyExc_TypeError, "%s() needs at least one operator", p->op->title);
    p->many = PyMem_Calloc((size_t)n, sizeof *p->many);
    if (!p->many) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        const lop_node *node = take_operator(p, i, PyTuple_GET_ITEM(args, i));
        if (!node) return -1;
        p->many[p->n++] = lop_node_ref(node);
    }
    return 0;
}

static int read_copy(py_parts *p, PyObject *value) {
    int truth = PyObject_IsTrue(value);
    p->copy = truth == 1;
    return truth < 0 ? -1 : 0;
}

/* copy=, the one keyword of a kind with *ops. */
static int sort_many(py_parts *p, PyObject *args, PyObject *kwargs) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (kwargs && PyDict_Next(kwargs, &at, &key, &value)) {
        if (PyUnicode_CompareWithASCIIString(key, "copy") != 0)
            return fail(PyExc_TypeError, "%s() takes operators and copy=, got a keyword %R",
                        p->op->title, key);
        if (read_copy(p, value) < 0) return -1;
    }
    return (int)PyTuple_GET_SIZE(args);
}

/* Nested lists: Python makes a flat tuple of operators of them, and counts rows and columns. */
static int read_grid(py_parts *p, PyObject *o) {
    PyObject *copy = p->copy ? Py_True : Py_False, *args[2] = {o, copy};
    PyObject *r = py_call_hook(p->s, "grid_of", args, 2);
    if (!r) return -1;
    PyObject *ops = PyTuple_GET_ITEM(r, 0);
    p->attr.i[0] = PyLong_AsLongLong(PyTuple_GET_ITEM(r, 1));
    p->attr.i[1] = PyLong_AsLongLong(PyTuple_GET_ITEM(r, 2));
    p->mode = (int)p->attr.i[0];
    Py_SETREF(p->init, PyTuple_New(PyTuple_GET_SIZE(ops)));
    int rc = p->init ? read_many(p, ops) : -1;
    Py_DECREF(r);
    return rc;
}

/* The error of a keyword that there is not; Python looks for names that come close. */
static int refuse_keyword(py_parts *p, PyObject *key, int n) {
    PyObject *names = PyList_New(0);
    for (int i = 0; names && i < n; i++) {
        PyObject *name = PyUnicode_FromString(p->op->param[i].name);
        if (!name || PyList_Append(names, name) < 0) Py_CLEAR(names);
        Py_XDECREF(name);
    }
    if (!names) return -1;
    PyObject *args[2] = {key, names}, *close = py_call_hook(p->s, "near", args, 2);
    Py_DECREF(names);
    if (!close) return -1;
    fail(PyExc_TypeError, "%s() got an unexpected keyword argument %R%S", p->op->title, key, close);
    Py_DECREF(close);
    return -1;
}

/* Positional and keyword arguments into p->arg. */
static int sort_args(py_parts *p, PyObject *args, PyObject *kwargs) {
    int n = 0;
    while (n < LOP_MAXPARAM && p->op->param[n].name) n++;
    if (PyTuple_GET_SIZE(args) > n)
        return fail(PyExc_TypeError, "%s() takes at most %d arguments, got %zd", p->op->title, n,
                    PyTuple_GET_SIZE(args));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++) p->arg[i] = PyTuple_GET_ITEM(args, i);
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (kwargs && PyDict_Next(kwargs, &at, &key, &value)) {
        int i = 0;
        if (PyUnicode_CompareWithASCIIString(key, "copy") == 0 && py_holds_arrays(p->op)) {
            if (read_copy(p, value) < 0) return -1;
            continue;
        }
        while (i < n && PyUnicode_CompareWithASCIIString(key, p->op->param[i].name) != 0) i++;
        if (i == n) return refuse_keyword(p, key, n);
        if (p->arg[i])
            return fail(PyExc_TypeError, "%s() got two values for %s", p->op->title,
                        p->op->param[i].name);
        p->arg[i] = value;
    }
    return n;
}

int py_read_arguments(py_parts *p, PyObject *args, PyObject *kwargs) {
    const bool many = p->op->param[0].role == LOP_P_OPERATORS,
               grid = p->op->param[0].role == LOP_P_BLOCKS;
    const int n = many ? sort_many(p, args, kwargs) : sort_args(p, args, kwargs);
    if (n < 0) return -1;
    p->init = PyTuple_New(n);
    if (!p->init) return -1;
    if (many) return read_many(p, args);
    if (py_find_levels(p->op, p->arg, &p->levels) < 0) return -1;
    if (grid && !p->arg[0])
        return fail(PyExc_TypeError, "%s() needs %s", p->op->title, p->op->param[0].name);
    if (grid) return read_grid(p, p->arg[0]);
    for (int i = 0; i < n; i++)
        if (read_one(p, i) < 0) return -1;
    return 0;
}
