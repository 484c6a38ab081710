/* py_xla.c: the handler that XLA calls for a program of pylinop.jax, on whatever thread: it gives
 * the function of `_xla_target` arrays on XLA's own memory, nothing is copied. The program is told
 * by two numbers, a digest of what it computes: a compiled function that was kept by another
 * process finds the same program or none. */
#include "py/module/xla_ffi.h"
#include "py/run/py_tape.h"

/* What is called. Of the process, since XLA has no place for a pointer of ours. */
static PyObject *target;

static int typenum_of(int dtype) {
    switch (dtype) {
    case XLA_PRED: return NPY_BOOL;
    case XLA_S8: return NPY_INT8;
    case XLA_S16: return NPY_INT16;
    case XLA_S32: return NPY_INT32;
    case XLA_S64: return NPY_INT64;
    case XLA_U8: return NPY_UINT8;
    case XLA_U16: return NPY_UINT16;
    case XLA_U32: return NPY_UINT32;
    case XLA_U64: return NPY_UINT64;
    case XLA_F32: return NPY_FLOAT32;
    case XLA_F64: return NPY_FLOAT64;
    case XLA_C64: return NPY_COMPLEX64;
    case XLA_C128: return NPY_COMPLEX128;
    default: return NPY_NOTYPE;
    }
}

/* An array on the memory of a buffer: new. It must not outlive the call. */
static PyObject *array_of(const xla_buffer *b, bool writeable) {
    npy_intp dim[NPY_MAXDIMS];
    const int typenum = typenum_of(b->dtype);
    if (typenum == NPY_NOTYPE || b->rank < 0 || b->rank > NPY_MAXDIMS)
        return PyErr_Format(PyExc_TypeError, "a buffer of XLA's dtype %d and %lld dimensions",
                            b->dtype, (long long)b->rank);
    for (int64_t i = 0; i < b->rank; i++) dim[i] = (npy_intp)b->dims[i];
    PyArray_Descr *dtype = PyArray_DescrFromType(typenum);
    if (!dtype) return NULL;
    /* XLA gives no memory for what is empty; NumPy takes its own then. */
    const int flags = writeable ? NPY_ARRAY_CARRAY : NPY_ARRAY_CARRAY_RO;
    return PyArray_NewFromDescr(&PyArray_Type, dtype, (int)b->rank, dim, NULL, b->data,
                                b->data ? flags : 0, NULL);
}

/* A tuple of arrays: new. */
static PyObject *arrays_of(const xla_list *list, bool writeable) {
    PyObject *made = PyTuple_New((Py_ssize_t)list->size);
    for (int64_t k = 0; made && k < list->size; k++) {
        if (list->types[k] != XLA_ARGUMENT_BUFFER) {
            PyErr_SetString(PyExc_TypeError, "an argument from XLA that is no buffer");
            Py_CLEAR(made);
            break;
        }
        PyObject *a = array_of(list->items[k], writeable);
        if (!a) {
            Py_CLEAR(made);
            break;
        }
        PyTuple_SET_ITEM(made, (Py_ssize_t)k, a);
    }
    return made;
}

/* The value of an attribute that is an int64; 0 where there is none. */
static int64_t number_of(const xla_attributes *given, char name) {
    for (int64_t k = 0; k < given->size; k++) {
        const xla_span *found = given->names[k];
        if (found->length != 1 || found->text[0] != name) continue;
        const xla_scalar *scalar = given->items[k];
        if (scalar->dtype == XLA_S64) return *(const int64_t *)scalar->value;
    }
    return 0;
}

/* The error of XLA for what Python raised: its class and its text. */
static xla_error *raised(const xla_call *call) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *text = value ? PyObject_Str(value) : NULL;
    PyObject *whole =
        text ? PyUnicode_FromFormat("%s: %U", ((PyTypeObject *)type)->tp_name, text) : NULL;
    const char *message = whole ? PyUnicode_AsUTF8(whole) : NULL;
    PyErr_Clear();
    xla_error_args args = {.struct_size = offsetof(xla_error_args, code) + sizeof(int),
                           .message = message ? message : "an error without a text",
                           .code = XLA_ERROR_INTERNAL};
    xla_error *error = call->api->error_create(&args);
    Py_XDECREF(whole);
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return error;
}

static lop_dtype dtype_of(int dtype) {
    switch (dtype) {
    case XLA_F32: return LOP_f32;
    case XLA_F64: return LOP_f64;
    case XLA_C64: return LOP_c64;
    case XLA_C128: return LOP_c128;
    default: return LOP_NO_DTYPE;
    }
}

static bool bufs_of(const xla_list *list, lop_buf *buf) {
    for (int64_t k = 0; k < list->size; k++) {
        if (list->types[k] != XLA_ARGUMENT_BUFFER) return false;
        const xla_buffer *b = list->items[k];
        if (!py_tape_buf(&buf[k], dtype_of(b->dtype), b->data, b->rank, b->dims, NULL))
            return false;
    }
    return true;
}

/* The key of the tape of this call. */
static bool key_of(const xla_call *call, py_tape_key_t *key, lop_buf *buf) {
    const int64_t number[2] = {number_of(&call->attributes, 'a'),
                               number_of(&call->attributes, 'b')};
    const int64_t nargs = call->arguments.size, nout = call->results.size;
    return nargs >= 0 && nout >= 0 && nargs <= PY_TAPE_ARRAYS - nout &&
           bufs_of(&call->arguments, buf) && bufs_of(&call->results, buf + nargs) &&
           py_tape_key(key, number, sizeof number, buf, nargs + nout);
}

static xla_error *called(const xla_call *call, const py_tape_key_t *key) {
    PyObject *args = arrays_of(&call->arguments, false), *results = NULL, *found = NULL;
    if (args) results = arrays_of(&call->results, true);
    if (results && !target) PyErr_SetString(PyExc_RuntimeError, "pylinop.jax was not imported");
    if (results && target)
        found = PyObject_CallFunction(
            target, "LLOOy#", (long long)number_of(&call->attributes, 'a'),
            (long long)number_of(&call->attributes, 'b'), args, results,
            key ? (const char *)key->bytes : NULL, (Py_ssize_t)(key ? key->size : 0));
    Py_XDECREF(args);
    Py_XDECREF(results);
    xla_error *error = found ? NULL : raised(call);
    Py_XDECREF(found);
    return error;
}

static xla_error *handler(xla_call *call) {
    const xla_extension *first = call->extensions;
    if (first && first->type == XLA_EXTENSION_METADATA) {
        xla_metadata *asked = ((const xla_metadata_extension *)(const void *)first)->metadata;
        asked->version.major = XLA_VERSION_MAJOR;
        asked->version.minor = XLA_VERSION_MINOR;
        return NULL;
    }
    if (call->stage != XLA_STAGE_EXECUTE) return NULL;
    lop_buf buf[PY_TAPE_ARRAYS];
    py_tape_key_t key;
    const bool keyed = key_of(call, &key, buf);
    if (keyed && py_tape_call(&key, buf, (int)call->arguments.size, (int)call->results.size))
        return NULL;
    PyGILState_STATE held = PyGILState_Ensure();
    xla_error *error = called(call, keyed ? &key : NULL);
    PyGILState_Release(held);
    return error;
}

/* Sets the function f(a, b, arguments, results); returns the handler, as jax.ffi takes it: new. */
PyObject *py_xla_target(PyObject *f) {
    Py_XSETREF(target, Py_NewRef(f));
    union {
        xla_error *(*f)(xla_call *);
        void *p;
    } entry = {.f = handler};
    return PyCapsule_New(entry.p, "xla._CUSTOM_CALL_TARGET", NULL);
}
