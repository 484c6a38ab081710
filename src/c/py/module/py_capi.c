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

/* The function that runs programs: new. Imports are kept by Python. */
static PyObject *runner(void) {
    PyObject *module = PyImport_ImportModule("pylinop._programs.entry");
    PyObject *found = module ? PyObject_GetAttrString(module, "called") : NULL;
    Py_XDECREF(module);
    return found;
}

/* `key`: of the tape that the program may leave; NULL: it is not to. */
static int32_t called(const char *program, int64_t len, PyObject *args, PyObject *out,
                      const py_tape_key_t *key) {
    PyObject *run = runner(), *text = NULL, *found = NULL;
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

/* The array as the core sees it; false: it is for NumPy to look at. */
static bool buf_of(lop_buf *b, const lop_capi_array *a) {
    static const char letter[] = {'f', 'd', 'F', 'D'};
    int k = 0;
    while (k < 4 && a->typecode != letter[k]) k++;
    if (k == 4 || a->ndim < 0 || a->ndim > LOP_MAXDIM) return false;
    memset(b, 0, sizeof *b);
    b->p = a->data;
    b->dt = (lop_dtype)((int)LOP_f32 + k);
    b->shape.ndim = (int)a->ndim;
    const int64_t size = (int64_t)lop_dtype_size(b->dt);
    const uintptr_t align = lop_is_complex(b->dt) ? (uintptr_t)size / 2 : (uintptr_t)size;
    for (int i = 0; i < b->shape.ndim; i++) {
        if (a->shape[i] <= 0 || a->strides[i] % size) return false;
        b->shape.dim[i] = a->shape[i];
        b->stride[i] = a->strides[i] / size;
    }
    return b->p && (uintptr_t)b->p % align == 0;
}

static bool key_of(py_tape_key_t *key, const char *program, int64_t len, int64_t nargs,
                   const lop_capi_array *args, int64_t nout, const lop_capi_array *out,
                   lop_buf *buf) {
    if (nargs < 0 || nout < 0 || nargs > PY_TAPE_ARRAYS - nout || len < 0) return false;
    py_tape_key_open(key);
    bool fits = py_tape_key_text(key, program, len);
    for (int64_t k = 0; fits && k < nargs + nout; k++) {
        fits = buf_of(&buf[k], k < nargs ? &args[k] : &out[k - nargs]) &&
               py_tape_key_array(key, &buf[k]);
    }
    return fits;
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
        void *p;
    } call = {.call = lop_capi_call}, error = {.error = lop_capi_error},
      version = {.version = lop_capi_version}, frozen = {.frozen = lop_capi_frozen};
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
    if (!status) status = PyModule_AddObjectRef(module, "__pyx_capi__", table);
    Py_DECREF(table);
    return status;
}
