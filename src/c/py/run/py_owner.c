/* py_owner.c: whose derived values are: those of a factor object's arrays (py_frozen), and all that
 * a thread derives while it holds for an owner, such as the second half of a program. They stay in
 * the store until the owner releases them. */
#include "py/module/py.h"

#include "kernels/common/kernels.h"

static _Thread_local uint64_t holder;
static _Thread_local double met; /* estimated seconds of what derives: found in the store or made */

uint64_t py_holder(void) { return holder; }

void py_derives(double seconds) { met += seconds; }

/* _printed(array): 128 bits that tell the bytes of an array in C order from others. */
PyObject *py_printed(PyObject *module, PyObject *array) {
    (void)module;
    Py_buffer view;
    if (PyObject_GetBuffer(array, &view, PyBUF_SIMPLE) < 0) return NULL;
    const lop_mat bytes = {view.buf, 1, view.len, view.len, 1, LOP_u8};
    lop_fingerprint found;
    Py_BEGIN_ALLOW_THREADS;
    found = lopk_fingerprint((lop_fingerprint){0, 0}, &bytes);
    Py_END_ALLOW_THREADS;
    PyBuffer_Release(&view);
    return PyBytes_FromStringAndSize((const char *)&found, sizeof found);
}

static py_state *state(PyObject *module) { return *(py_state **)PyModule_GetState(module); }

/* _owned(owner): bytes of what is derived for it. */
PyObject *py_owned(PyObject *module, PyObject *owner) {
    const uint64_t number = PyLong_AsUnsignedLongLong(owner);
    if (PyErr_Occurred()) return NULL;
    return PyLong_FromLongLong(lop_store_owned(&state(module)->store, number));
}

/* _release(owner): drops it. */
PyObject *py_release(PyObject *module, PyObject *owner) {
    const uint64_t number = PyLong_AsUnsignedLongLong(owner);
    if (PyErr_Occurred()) return NULL;
    lop_store_release(&state(module)->store, number);
    Py_RETURN_NONE;
}

/* _hold(owner, f, *args): f(*args), and what this thread derives in it is the owner's. An interrupt
 * comes within f or after the one before is back. */
PyObject *py_hold(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    if (n < 2) return PyErr_Format(PyExc_TypeError, "_hold takes an owner and a function");
    const uint64_t number = PyLong_AsUnsignedLongLong(args[0]), before = holder;
    if (PyErr_Occurred()) return NULL;
    const double had = before ? met : 0;
    holder = number;
    met = 0;
    PyObject *found = PyObject_Vectorcall(args[1], args + 2, (size_t)(n - 2), NULL);
    holder = before;
    met += had;
    return found;
}

/* _met(): the estimated seconds of all that derives values in this thread's last `_hold`, also of
 * what the store had. */
PyObject *py_met(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    return PyFloat_FromDouble(met);
}
