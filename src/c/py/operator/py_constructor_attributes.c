/* py_constructor_attributes.c: constructor arguments that become attributes: offsets, flags, words,
 * band widths, numbers, grids; and what follows from them once all have been read. */
#include "py/module/py.h"

static int fail(PyObject *type, const lop_op *op, const lop_param *param, PyObject *o,
                const char *want) {
    PyErr_Format(type, "%s(%s=%R): expected %s", op->title, param->name, o, want);
    return -1;
}

/* The default as an object: True, False, an integer or a quoted word. New. */
PyObject *py_default(const lop_param *param) {
    const char *t = param->fallback;
    size_t n = strlen(t);
    if (t[0] == 'T' || t[0] == 'F') return PyBool_FromLong(t[0] == 'T');
    if (t[0] == '\'') return PyUnicode_FromStringAndSize(t + 1, (Py_ssize_t)n - 2);
    if (t[0] == '-' || (t[0] >= '0' && t[0] <= '9')) return PyLong_FromString(t, NULL, 10);
    return Py_NewRef(Py_None);
}

static int read_integer(const lop_op *op, const lop_param *param, PyObject *o, int64_t *out) {
    PyObject *i = PyBool_Check(o) ? NULL : PyNumber_Index(o);
    if (!i) {
        return py_not_so() ? fail(PyExc_TypeError, op, param, o, "an integer") : -1;
    }
    *out = PyLong_AsLongLong(i);
    Py_DECREF(i);
    return *out == -1 && PyErr_Occurred() ? -1 : 0;
}

static int read_flag(const lop_op *op, const lop_param *param, PyObject *o, int64_t *out) {
    int yes = PyBool_Check(o) || PyArray_IsScalar(o, Bool) ? PyObject_IsTrue(o) : -2;
    if (yes == -2) return fail(PyExc_TypeError, op, param, o, "True or False");
    *out = yes;
    return yes < 0 ? -1 : 0;
}

/* Its place among the words, which stand parted by blanks; None is the first where it is the
 * default.
 */
static int read_word(const lop_op *op, const lop_param *param, PyObject *o, int64_t *out) {
    const char *text = PyUnicode_Check(o) ? PyUnicode_AsUTF8(o) : NULL;
    if (!text && !py_not_so()) return -1;
    *out = 0;
    if (o == Py_None && param->fallback && !strcmp(param->fallback, "None")) return 0;
    for (const char *w = param->words; text; (*out)++) {
        size_t n = strcspn(w, " ");
        if (strlen(text) == n && !strncmp(w, text, n)) return 0;
        if (!w[n]) break;
        w += n + 1;
    }
    PyErr_Format(text ? PyExc_ValueError : PyExc_TypeError, "%s(%s=%R): expected one of: %s",
                 op->title, param->name, o, param->words);
    return -1;
}

/* (l, u), how many diagonals lie below and above. */
static int read_bands(const lop_op *op, const lop_param *param, PyObject *o, lop_attr *attr) {
    PyObject *pair = PySequence_Tuple(o);
    if (!pair || PyTuple_GET_SIZE(pair) != 2) {
        Py_XDECREF(pair);
        return py_not_so() ? fail(PyExc_TypeError, op, param, o, "a pair (l, u)") : -1;
    }
    int rc = 0;
    for (int i = 0; rc == 0 && i < 2; i++)
        rc = read_integer(op, param, PyTuple_GET_ITEM(pair, i), &attr->i[i]);
    Py_DECREF(pair);
    if (rc == 0 && (attr->i[0] < 0 || attr->i[1] < 0))
        return fail(PyExc_ValueError, op, param, o, "counts of diagonals, not negative");
    return rc;
}

int py_read_attr(const lop_op *op, int i, PyObject *o, lop_attr *attr) {
    const lop_param *param = &op->param[i];
    int64_t *slot = &attr->i[param->rank];
    switch (param->role) {
    case LOP_P_OFFSET: return read_integer(op, param, o, slot);
    case LOP_P_FLAG: return read_flag(op, param, o, slot);
    case LOP_P_WORD: return read_word(op, param, o, slot);
    case LOP_P_BANDS: return read_bands(op, param, o, attr);
    default: return 0;
    }
}

bool py_is_attr(lop_role role) {
    return role == LOP_P_OFFSET || role == LOP_P_FLAG || role == LOP_P_WORD || role == LOP_P_BANDS;
}

/* A Python number for a parameter that is a 0-d array takes the dtype of the array before it, as
 * in x * 0.5. New, or NULL with or without an error. */
PyObject *py_weak_number(PyObject *before, PyObject *o) {
    if (!PyFloat_CheckExact(o) && !PyLong_CheckExact(o) && !PyComplex_CheckExact(o)) return NULL;
    PyArray_Descr *d = PyArray_DESCR((PyArrayObject *)before);
    npy_intp none = 0;
    Py_INCREF(d);
    PyObject *empty = PyArray_NewFromDescr(&PyArray_Type, d, 1, &none, NULL, NULL, 0, NULL);
    PyObject *product = empty ? PyNumber_Multiply(empty, o) : NULL, *made = NULL;
    if (product && PyArray_Check(product)) {
        d = PyArray_DESCR((PyArrayObject *)product);
        Py_INCREF(d);
        made = PyArray_FromAny(o, d, 0, 0, 0, NULL);
    }
    Py_XDECREF(empty);
    Py_XDECREF(product);
    return made;
}

/* Diag off the middle, or not square: the kind for it. */
lop_status py_offset_diag(const lop_op **op, lop_attr *attr, const lop_node *d, lop_node *like,
                          bool *has_like, lop_err *err) {
    int64_t n = lop_cols(d), k = attr->i[0], far = k < 0 ? -k : k;
    if (k == INT64_MIN || !lop_add_ok(n, far, &n))
        return lop_fail(err, LOP_OVERFLOW, "Diag(k=%lld): too far out", (long long)k);
    attr->i[1] = attr->i[2] = n;
    if (*has_like && like->shape.ndim != 2)
        return lop_fail(err, LOP_DIM, "Diag(shape=...): expected two sizes, got %d",
                        like->shape.ndim);
    if (*has_like) {
        attr->i[1] = like->shape.dim[0];
        attr->i[2] = like->shape.dim[1];
    }
    *has_like = false;
    if (k == 0 && attr->i[1] == lop_cols(d) && attr->i[2] == attr->i[1])
        *attr = (lop_attr){0};
    else
        *op = &lop_op_offdiag;
    return LOP_OK;
}

int py_read_grid(lop_ctx *ctx, const lop_op *op, int i, PyObject *o, const lop_node ***child,
                 int *n) {
    const lop_param *param = &op->param[i];
    PyObject *sizes = PyIndex_Check(o) ? PyTuple_Pack(1, o) : PySequence_Tuple(o);
    if (!sizes) {
        return py_not_so() ? fail(PyExc_TypeError, op, param, o, "a size or a tuple of sizes") : -1;
    }
    Py_ssize_t count = PyTuple_GET_SIZE(sizes);
    int rc = 0;
    *child = PyMem_Calloc((size_t)count + 1, sizeof **child);
    if (!*child) {
        PyErr_NoMemory();
        rc = -1;
    }
    if (count == 0) rc = fail(PyExc_ValueError, op, param, o, "at least one axis");
    for (Py_ssize_t j = 0; rc == 0 && j < count; j++) {
        lop_err err;
        lop_err_open(&err);
        lop_node like = {.shape = {.ndim = 2}, .dtype = LOP_f64, .weak = LOP_WEAK, .core = 2};
        rc = read_integer(op, param, PyTuple_GET_ITEM(sizes, j), &like.shape.dim[0]);
        if (rc == 0 && like.shape.dim[0] < 0)
            rc = fail(PyExc_ValueError, op, param, o, "sizes that are not negative");
        like.shape.dim[1] = like.shape.dim[0];
        if (rc == 0 && lop_node_make(ctx, &lop_op_identity, NULL, 0, NULL, &like, &(*child)[*n],
                                     &err) != LOP_OK) {
            PyErr_NoMemory();
            rc = -1;
        }
        *n += rc == 0;
    }
    Py_DECREF(sizes);
    return rc;
}

void *py_drop(void *object) {
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    Py_XDECREF((PyObject *)object);
    PyErr_Restore(type, error, trace);
    return NULL;
}

/* -- operands */

/* Does the kind take operands as f(A, B, ...), two at the least where not any number? */
static bool takes_several(const lop_op *op) {
    const lop_param *p = op->param;
    return p[0].role == LOP_P_OPERATORS ||
           (p[0].role == LOP_P_OPERATOR && p[1].name && p[1].role == LOP_P_OPERATOR &&
            !p[1].fallback && !p[2].name);
}

PyObject *py_operands(py_state *s, const lop_op *op, PyObject *args) {
    PyObject *one = PyTuple_GET_SIZE(args) == 1 ? PyTuple_GET_ITEM(args, 0) : NULL;
    const bool listed = one && (PyList_Check(one) || PyTuple_Check(one)),
               stacked = one && op == &lop_op_blockdiag && !py_is_op(s, one);
    if (!takes_several(op) || (!listed && !stacked)) return Py_NewRef(args);
    return py_call_hook(s, "operands_of", &args, 1);
}

PyObject *py_operand(py_state *s, const lop_op *op, Py_ssize_t at, PyObject *o) {
    if (py_is_op(s, o)) return Py_NewRef(o);
    if (PyArray_CheckExact(o) && PyArray_NDIM((PyArrayObject *)o) >= 2)
        return py_dense(s, (PyArrayObject *)o);
    const bool many = op->param[0].role == LOP_P_OPERATORS || op->param[0].role == LOP_P_BLOCKS;
    PyObject *args[4] = {o, PyUnicode_FromString(op->title),
                         many ? PyUnicode_FromFormat("operand %zd", at)
                              : PyUnicode_FromString(op->param[at].name),
                         takes_several(op) ? Py_True : Py_False};
    PyObject *made = args[1] && args[2] ? py_call_hook(s, "operand", args, 4) : NULL;
    Py_XDECREF(args[1]);
    Py_XDECREF(args[2]);
    return made;
}
