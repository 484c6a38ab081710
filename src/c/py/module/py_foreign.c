/* py_foreign.c: plain tensors of PyTorch as arrays on their own memory, by the C exchange API of
 * DLPack 1.2. An array holds what was exported, as np.from_dlpack's does.
 *
 * What a pointer cannot carry (a gradient, a tangent, a conjugate bit, a stand-in of torch.func),
 * other devices, dtypes, layouts and libraries are left to src/pylinop/_base/dlpack.py, which
 * refuses them by name. */
#include "py.h"

/* dlpack.h, in our own words. */
typedef struct dl_tensor {
    void *data;
    int32_t device, device_number, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides; /* in elements */
    uint64_t offset;          /* in bytes */
} dl_tensor;

typedef struct dl_managed {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct dl_managed *);
    uint64_t flags;
    dl_tensor tensor;
} dl_managed;

typedef struct dl_exchange {
    uint32_t major, minor;
    void *previous, *allocate;
    int (*export)(void *, dl_managed **); /* 0; else with an exception */
} dl_exchange;

enum {
    DL_CPU = 1,
    DL_READ_ONLY = 1,
    DL_INT = 0,
    DL_UINT = 1,
    DL_FLOAT = 2,
    DL_COMPLEX = 5,
    DL_BOOL = 6
};

/* Of the process: PyTorch's class of tensors, and what is asked about one. */
static struct {
    PyTypeObject *tensor, *parameter;
    const PyTypeObject *other; /* the last class that was none: compared, never read */
    const dl_exchange *exchange;
    PyObject *is_wrapped, *forward, *level, *requires_grad, *is_conj, *is_neg, *is_zero, *detach;
} torch;

static PyObject *module_of(const char *name) {
    PyObject *text = PyUnicode_FromString(name), *found = text ? PyImport_GetModule(text) : NULL;
    Py_XDECREF(text);
    return found;
}

static PyObject *within(PyObject *o, const char *name) {
    PyObject *found = o ? PyObject_GetAttrString(o, name) : NULL;
    Py_XDECREF(o);
    return found;
}

static bool words(void) {
    static const char *const word[] = {"_current_level", "requires_grad",  "is_conj",
                                       "is_neg",         "_is_zerotensor", "detach"};
    PyObject **const to[] = {&torch.level,  &torch.requires_grad, &torch.is_conj,
                             &torch.is_neg, &torch.is_zero,       &torch.detach};
    for (int i = 0; i < 6; i++)
        if (!*to[i] && !(*to[i] = PyUnicode_InternFromString(word[i]))) return false;
    return true;
}

/* Is `type` PyTorch's own class, of a version that exports from C? */
static bool learn(PyTypeObject *type) {
    PyObject *module = module_of("torch"), *tensor = within(Py_XNewRef(module), "Tensor"),
             *capsule = NULL, *part = NULL;
    bool known = tensor == (PyObject *)type && words();
    if (known) known = (capsule = within(Py_NewRef(tensor), "__dlpack_c_exchange_api__")) != NULL;
    if (known) torch.exchange = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    known = known && torch.exchange && torch.exchange->major == 1;
    if (known) known = (part = within(Py_NewRef(module), "_C")) != NULL;
    if (known) known = (part = within(part, "_functorch")) != NULL;
    if (known) Py_XSETREF(torch.is_wrapped, within(part, "is_functorch_wrapped_tensor"));
    known = known && torch.is_wrapped;
    if (known) Py_XSETREF(torch.forward, module_of("torch.autograd.forward_ad"));
    known = known && torch.forward;
    if (known)
        Py_XSETREF(torch.parameter,
                   (PyTypeObject *)within(within(Py_NewRef(module), "nn"), "Parameter"));
    known = known && torch.parameter;
    if (known)
        Py_XSETREF(torch.tensor, (PyTypeObject *)Py_NewRef(tensor));
    else
        torch.other = type;
    Py_XDECREF(capsule);
    Py_XDECREF(tensor);
    Py_XDECREF(module);
    if (PyErr_Occurred()) (void)py_not_so();
    return known;
}

/* Is it false? What cannot be asked is not. Takes over the answer. */
static bool is_false(PyObject *answer) {
    const bool found = answer == Py_False;
    Py_XDECREF(answer);
    return found;
}

/* No tensor can have a tangent now. */
static bool no_tangents(void) {
    PyObject *level = PyObject_GetAttr(torch.forward, torch.level);
    const bool outside = level && PyLong_AsLong(level) < 0;
    Py_XDECREF(level);
    return outside;
}

/* Has it a memory that holds its numbers? */
static bool is_plain(PyObject *o) {
    return is_false(PyObject_CallOneArg(torch.is_wrapped, o)) &&
           is_false(PyObject_CallMethodNoArgs(o, torch.is_conj)) &&
           is_false(PyObject_CallMethodNoArgs(o, torch.is_neg)) &&
           is_false(PyObject_CallMethodNoArgs(o, torch.is_zero));
}

/* NumPy's number for a dtype; NOTYPE: not one of ours. */
static int typenum_of(const dl_tensor *t) {
    static const int whole[] = {NPY_INT8, NPY_INT16, NPY_INT32, NPY_INT64},
                     natural[] = {NPY_UINT8, NPY_UINT16, NPY_UINT32, NPY_UINT64};
    int at = 0;
    while (at < 4 && t->bits != 8 << at) at++;
    if (t->lanes != 1) return NPY_NOTYPE;
    switch (t->code) {
    case DL_INT: return at < 4 ? whole[at] : NPY_NOTYPE;
    case DL_UINT: return at < 4 ? natural[at] : NPY_NOTYPE;
    case DL_FLOAT: return t->bits == 64 ? NPY_FLOAT64 : t->bits == 32 ? NPY_FLOAT32 : NPY_NOTYPE;
    case DL_COMPLEX:
        return t->bits == 128 ? NPY_COMPLEX128 : t->bits == 64 ? NPY_COMPLEX64 : NPY_NOTYPE;
    case DL_BOOL: return t->bits == 8 ? NPY_BOOL : NPY_NOTYPE;
    default: return NPY_NOTYPE;
    }
}

static const char held[] = "pylinop.tensor";

static void drop(PyObject *capsule) {
    dl_managed *m = PyCapsule_GetPointer(capsule, held);
    if (m && m->deleter) m->deleter(m);
}

/* An array on the memory, which it holds: new; the memory is let go where there is none. */
static PyObject *array_on(dl_managed *m) {
    const dl_tensor *t = &m->tensor;
    npy_intp dim[NPY_MAXDIMS], step[NPY_MAXDIMS];
    const int typenum = m->major == 1 ? typenum_of(t) : NPY_NOTYPE;
    bool fits = typenum != NPY_NOTYPE && t->device == DL_CPU && t->data && t->ndim >= 0 &&
                t->ndim <= NPY_MAXDIMS && (t->ndim == 0 || (t->shape && t->strides));
    for (int i = 0; fits && i < t->ndim; i++) {
        dim[i] = (npy_intp)t->shape[i];
        step[i] = (npy_intp)t->strides[i] * (t->bits / 8);
        fits = dim[i] > 0; /* what is empty has no address */
    }
    PyObject *capsule = PyCapsule_New(m, held, drop), *made = NULL;
    if (!capsule && m->deleter) m->deleter(m);
    if (capsule && fits)
        made = PyArray_NewFromDescr(&PyArray_Type, PyArray_DescrFromType(typenum), t->ndim, dim,
                                    step, (char *)t->data + t->offset,
                                    m->flags & DL_READ_ONLY ? 0 : NPY_ARRAY_WRITEABLE, NULL);
    if (!made) {
        Py_XDECREF(capsule);
        return NULL;
    }
    PyArray_UpdateFlags((PyArrayObject *)made, NPY_ARRAY_UPDATE_ALL);
    if (PyArray_SetBaseObject((PyArrayObject *)made, capsule) < 0) Py_CLEAR(made); /* takes it */
    return made;
}

/* The export holds the tensor, not its memory, which an assignment to its .data or set_() lets go:
 * so what is kept is exported by a tensor of its own. */
static int exported(PyObject *o, bool keep, dl_managed **m) {
    PyObject *own = keep ? PyObject_CallMethodNoArgs(o, torch.detach) : Py_NewRef(o);
    const int failed = own ? torch.exchange->export(own, m) : -1;
    Py_XDECREF(own);
    return failed;
}

PyObject *py_foreign(PyObject *o, bool keep) {
    PyTypeObject *type = Py_TYPE(o);
    if (type != torch.tensor && (type == torch.other || !learn(type))) return NULL;
    dl_managed *m = NULL;
    PyObject *made = NULL;
    if (no_tangents() && is_false(PyObject_GetAttr(o, torch.requires_grad)) && is_plain(o) &&
        exported(o, keep, &m) == 0 && m)
        made = array_on(m);
    if (!made && PyErr_Occurred()) (void)py_not_so();
    return made;
}

PyObject *py_foreign_all(PyObject *list) {
    const Py_ssize_t n = PyList_GET_SIZE(list);
    PyObject *found = PyTuple_New(n);
    bool all = found != NULL;
    for (Py_ssize_t i = 0; all && i < n; i++) {
        PyObject *o = PyList_GET_ITEM(list, i), *made = NULL;
        PyTypeObject *type = Py_TYPE(o);
        dl_managed *m = NULL;
        if (!torch.tensor && type != torch.other && !learn(type) && type->tp_base)
            (void)learn(type->tp_base); /* a Parameter is a subclass */
        if (torch.tensor && (type == torch.tensor || type == torch.parameter) &&
            (i > 0 || no_tangents()) && is_plain(o) && exported(o, false, &m) == 0 && m)
            made = array_on(m);
        all = made != NULL;
        if (made) PyTuple_SET_ITEM(found, i, made);
    }
    if (!all) Py_CLEAR(found);
    if (!found && PyErr_Occurred()) (void)py_not_so();
    return found;
}
