/* py_capi.c: programs for compiled callers; see py_capi.h. The text of a program is run by
 * pylinop._programs.entry, which is imported with the first call: code that numba has kept on disk
 * works in a process that has not imported anything of it. */
#include "py/module/py_capi.h"

#include <string.h>

#include "py/run/py_tape.h"

static _Thread_local char last_error[1024];

/* An array on the caller's memory: new. It must not outlive the call. */
static PyObject *view_of(const lop_capi_array *a, bool writeable) {
    npy_intp dim[NPY_MAXDIMS], step[NPY_MAXDIMS];
    PyArray_Descr *dtype =
        a->typecode > 0 && a->typecode < 128 ? PyArray_DescrFromType((int)a->typecode) : NULL;
    if (!dtype || !PyTypeNum_ISNUMBER(dtype->type_num) || a->ndim < 0 || a->ndim > NPY_MAXDIMS) {
        Py_XDECREF(dtype);
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "an array of typecode %lld and %lld dimensions",
                         (long long)a->typecode, (long long)a->ndim);
        return NULL;
    }
    for (int64_t i = 0; i < a->ndim; i++) {
        dim[i] = (npy_intp)a->shape[i];
        step[i] = (npy_intp)a->strides[i];
    }
    bool empty = false;
    for (int64_t i = 0; i < a->ndim; i++) empty = empty || a->shape[i] == 0;
    if (!a->data && !empty) { /* of no elements it may be none; NumPy takes its own then */
        Py_DECREF(dtype);
        return PyErr_Format(PyExc_ValueError, "an array of elements at no address");
    }
    return PyArray_NewFromDescr(&PyArray_Type, dtype, (int)a->ndim, dim, a->data ? step : NULL,
                                a->data, a->data && writeable ? NPY_ARRAY_WRITEABLE : 0, NULL);
}

static PyObject *views_of(int64_t count, const lop_capi_array *arrays, bool writeable) {
    PyObject *made = PyTuple_New((Py_ssize_t)count);
    for (int64_t k = 0; made && k < count; k++) {
        PyObject *a = view_of(&arrays[k], writeable);
        if (a) {
            PyArray_UpdateFlags((PyArrayObject *)a, NPY_ARRAY_UPDATE_ALL);
            PyTuple_SET_ITEM(made, (Py_ssize_t)k, a);
        } else {
            Py_CLEAR(made);
        }
    }
    return made;
}

/* Keeps the text of the exception that is set, and clears it. */
static void keep_error(void) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *whole =
        value ? PyUnicode_FromFormat("%s: %S", ((PyTypeObject *)type)->tp_name, value) : NULL;
    const char *text = whole ? PyUnicode_AsUTF8(whole) : NULL;
    PyErr_Clear();
    snprintf(last_error, sizeof last_error, "%s", text ? text : "an error without a text");
    Py_XDECREF(whole);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
}

/* A function of what runs programs: new. Imports are kept by Python. */
static PyObject *runner(const char *name) {
    PyObject *module = PyImport_ImportModule("pylinop._programs.entry");
    PyObject *found = module ? PyObject_GetAttrString(module, name) : NULL;
    Py_XDECREF(module);
    return found;
}

/* `key`: of the tape that the program may leave; NULL: it is not to. */
static int32_t called(const char *program, int64_t len, PyObject *args, PyObject *out,
                      const py_tape_key_t *key) {
    PyObject *run = runner("called"), *text = NULL, *found = NULL;
    PyObject *under =
        key ? PyBytes_FromStringAndSize((const char *)key->bytes, key->size) : Py_NewRef(Py_None);
    if (run && under) text = PyUnicode_DecodeUTF8(program, (Py_ssize_t)len, "strict");
    if (text) found = PyObject_CallFunctionObjArgs(run, text, args, out, under, NULL);
    Py_XDECREF(text);
    Py_XDECREF(under);
    Py_XDECREF(run);
    if (!found) return LOP_CAPI_RAISED;
    Py_DECREF(found);
    return LOP_CAPI_OK;
}

/* The key of the tape of a call, and its arrays; false: they are for NumPy to look at. */
static bool key_of(py_tape_key_t *key, const char *program, int64_t len, int64_t nargs,
                   const lop_capi_array *args, int64_t nout, const lop_capi_array *out,
                   lop_buf *buf) {
    if (nargs < 0 || nout < 0 || nargs > PY_TAPE_ARRAYS - nout || len < 0) return false;
    for (int64_t k = 0; k < nargs + nout; k++) {
        const lop_capi_array *a = k < nargs ? &args[k] : &out[k - nargs];
        const lop_dtype dt = a->typecode == 'f'   ? LOP_f32
                             : a->typecode == 'd' ? LOP_f64
                             : a->typecode == 'F' ? LOP_c64
                             : a->typecode == 'D' ? LOP_c128
                                                  : LOP_NO_DTYPE;
        if (!py_tape_buf(&buf[k], dt, a->data, a->ndim, a->shape, a->strides)) return false;
    }
    return py_tape_key(key, program, len, buf, nargs + nout);
}

int32_t lop_capi_frozen(const char *program, int64_t len, int64_t nargs, const lop_capi_array *args,
                        int64_t nout, const lop_capi_array *out) {
    lop_buf buf[PY_TAPE_ARRAYS];
    py_tape_key_t key;
    return key_of(&key, program, len, nargs, args, nout, out, buf) && py_tape_there(&key);
}

int32_t lop_capi_call(const char *program, int64_t len, int64_t nargs, const lop_capi_array *args,
                      int64_t nout, const lop_capi_array *out, int32_t flags) {
    (void)flags;
    lop_buf buf[PY_TAPE_ARRAYS];
    py_tape_key_t key;
    const bool keyed = key_of(&key, program, len, nargs, args, nout, out, buf);
    if (keyed && py_tape_call(&key, buf, (int)nargs, (int)nout)) return LOP_CAPI_OK;
    PyGILState_STATE held = PyGILState_Ensure();
    int32_t status = LOP_CAPI_WRONG_ARRAY;
    PyObject *given = views_of(nargs, args, false), *due = NULL;
    if (given) due = views_of(nout, out, true);
    if (due) status = called(program, len, given, due, keyed ? &key : NULL);
    Py_XDECREF(given);
    Py_XDECREF(due);
    if (status != LOP_CAPI_OK) keep_error();
    PyGILState_Release(held);
    return status;
}

/* A tuple of the sizes of an array: new. */
static PyObject *sizes_of(const lop_capi_array *a) {
    if (a->ndim < 0 || a->ndim > LOP_CAPI_DIMS)
        return PyErr_Format(PyExc_TypeError, "an array of %lld dimensions", (long long)a->ndim);
    PyObject *made = PyTuple_New((Py_ssize_t)a->ndim);
    for (int64_t i = 0; made && i < a->ndim; i++) {
        PyObject *n = PyLong_FromLongLong(a->shape[i]);
        if (n)
            PyTuple_SET_ITEM(made, (Py_ssize_t)i, n);
        else
            Py_CLEAR(made);
    }
    return made;
}

/* The sizes of a tuple, into shape[LOP_CAPI_DIMS]: their number, or -1 with an exception. */
static int64_t read_sizes(PyObject *tuple, int64_t *shape) {
    const Py_ssize_t n = PyTuple_CheckExact(tuple) ? PyTuple_GET_SIZE(tuple) : -1;
    if (n < 0 || n > LOP_CAPI_DIMS) return PyErr_SetString(PyExc_TypeError, "a shape"), -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        shape[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i));
        if (shape[i] < 0) return PyErr_Occurred() ? -1 : (PyErr_BadArgument(), -1);
    }
    return n;
}

static int read_shapes(PyObject *found, int64_t nout, int64_t *ndim, int64_t *shape) {
    if (!PyList_CheckExact(found) || PyList_GET_SIZE(found) != nout)
        return PyErr_Format(PyExc_ValueError, "the program has another number of values"), -1;
    for (int64_t k = 0; k < nout; k++) {
        ndim[k] = read_sizes(PyList_GET_ITEM(found, (Py_ssize_t)k), shape + k * LOP_CAPI_DIMS);
        if (ndim[k] < 0) return -1;
    }
    return 0;
}

int32_t lop_capi_shapes(const char *program, int64_t len, int64_t nargs, const lop_capi_array *args,
                        int64_t nout, int64_t *ndim, int64_t *shape) {
    PyGILState_STATE held = PyGILState_Ensure();
    PyObject *given = PyTuple_New((Py_ssize_t)nargs), *run = NULL, *text = NULL, *found = NULL;
    for (int64_t k = 0; given && k < nargs; k++) {
        PyObject *sizes = sizes_of(&args[k]);
        if (sizes)
            PyTuple_SET_ITEM(given, (Py_ssize_t)k, sizes);
        else
            Py_CLEAR(given);
    }
    int32_t status = given ? LOP_CAPI_RAISED : LOP_CAPI_WRONG_ARRAY;
    if (given) run = runner("shapes");
    if (run) text = PyUnicode_DecodeUTF8(program, (Py_ssize_t)len, "strict");
    if (text) found = PyObject_CallFunctionObjArgs(run, text, given, NULL);
    if (found && read_shapes(found, nout, ndim, shape) == 0) status = LOP_CAPI_OK;
    Py_XDECREF(found);
    Py_XDECREF(text);
    Py_XDECREF(run);
    Py_XDECREF(given);
    if (status != LOP_CAPI_OK) keep_error();
    PyGILState_Release(held);
    return status;
}

int64_t lop_capi_error(char *text, int64_t size) {
    const size_t length = strlen(last_error);
    if (text && size > 0) {
        const size_t kept = length < (size_t)size - 1 ? length : (size_t)size - 1;
        memcpy(text, last_error, kept);
        text[kept] = '\0';
    }
    return (int64_t)length;
}

int32_t lop_capi_version(void) { return LOP_CAPI_VERSION; }

static int add(PyObject *table, const char *name, const char *type, void *entry) {
    PyObject *capsule = PyCapsule_New(entry, type, NULL);
    const int status = capsule ? PyDict_SetItemString(table, name, capsule) : -1;
    Py_XDECREF(capsule);
    return status;
}

int py_capi_add(PyObject *module) {
    union {
        int32_t (*call)(const char *, int64_t, int64_t, const lop_capi_array *, int64_t,
                        const lop_capi_array *, int32_t);
        int64_t (*error)(char *, int64_t);
        int32_t (*version)(void);
        int32_t (*frozen)(const char *, int64_t, int64_t, const lop_capi_array *, int64_t,
                          const lop_capi_array *);
        int32_t (*shapes)(const char *, int64_t, int64_t, const lop_capi_array *, int64_t,
                          int64_t *, int64_t *);
        void *p;
    } call = {.call = lop_capi_call}, error = {.error = lop_capi_error},
      version = {.version = lop_capi_version}, frozen = {.frozen = lop_capi_frozen},
      shapes = {.shapes = lop_capi_shapes};
    PyObject *table = PyDict_New();
    if (!table) return -1;
    int status = add(table, "lop_capi_call",
                     "int32_t (char const *, int64_t, int64_t, lop_capi_array const *, int64_t, "
                     "lop_capi_array const *, int32_t)",
                     call.p);
    if (!status) status = add(table, "lop_capi_error", "int64_t (char *, int64_t)", error.p);
    if (!status) status = add(table, "lop_capi_version", "int32_t (void)", version.p);
    if (!status)
        status = add(table, "lop_capi_frozen",
                     "int32_t (char const *, int64_t, int64_t, lop_capi_array const *, int64_t, "
                     "lop_capi_array const *)",
                     frozen.p);
    if (!status)
        status = add(table, "lop_capi_shapes",
                     "int32_t (char const *, int64_t, int64_t, lop_capi_array const *, int64_t, "
                     "int64_t *, int64_t *)",
                     shapes.p);
    if (!status) status = PyModule_AddObjectRef(module, "__pyx_capi__", table);
    Py_DECREF(table);
    return status;
}
