/* py_lazy_given.c: what a plain array adds to a formula, K + 0.1 * np.eye(n), X @ X.T + np.diag(d).
 *
 * An array that nobody has named, neither by pl.lazy nor as an operator, stands in the sum it was
 * written into and nowhere else, and one evaluation reads it once. So its entries may say what it
 * is: where all beside the diagonal are 0 it is added as a multiple of the identity, or as a Diag,
 * of the same numbers, and the sum has the structure that K or X has. The look ends at the first
 * entry that is not 0; to the end it reads n^2 entries, as the sum would have. What is not finite
 * stays as it is. Forms that were made so last as long as the evaluation: another one, of the sum
 * or of what else it stands in, looks again, for the array may have been written to. A tape, which
 * is replayed with other numbers, takes the array as it is, and so do programs (leaves by pl.lazy).
 */
#include "py_lazy.h"

#include <math.h>

enum { LEAST_ROWS = 32 };

/* Are so many bytes all of zeros, of either sign? `sign`: the signs of the numbers in eight bytes.
 */
static bool is_zero(const char *p, size_t bytes, uint64_t sign) {
    enum { BLOCK = 512 }; /* bytes between two looks */
    while (bytes > 0) {
        const size_t n = bytes < BLOCK ? bytes : BLOCK;
        uint64_t any = 0, word;
        for (size_t i = 0; i + 8 <= n; i += 8) {
            memcpy(&word, p + i, 8);
            any |= word;
        }
        if (n % 8) {
            word = 0;
            memcpy(&word, p + n - n % 8, n % 8); /* one float: its sign lies in either half */
            any |= word;
        }
        if (any & ~sign) return false;
        p += n;
        bytes -= n;
    }
    return true;
}
/* Of an array that is contiguous along its rows or its columns. */
static bool is_zero_beside_diagonal(PyArrayObject *a, bool single) {
    const npy_intp n = PyArray_DIM(a, 0), size = PyArray_ITEMSIZE(a);
    const bool rows = PyArray_STRIDE(a, 1) == size;
    const npy_intp step = PyArray_STRIDE(a, rows ? 0 : 1);
    const uint64_t sign = single ? 0x8000000080000000u : 0x8000000000000000u;
    if (!rows && PyArray_STRIDE(a, 0) != size) return false;
    for (npy_intp i = 0; i < n; i++) {
        const char *p = PyArray_BYTES(a) + i * step;
        if (!is_zero(p, (size_t)(i * size), sign) ||
            !is_zero(p + (i + 1) * size, (size_t)((n - 1 - i) * size), sign))
            return false;
    }
    return true;
}

bool py_lazy_is_diagonal(const py_lazy *x) {
    if (x->head != PY_LEAF || x->mode != PY_GIVEN || x->more || x->nd != 2 ||
        x->dim[0] != x->dim[1] || x->dim[0] < LEAST_ROWS || !py_is_plain(x->dtype) ||
        !PyArray_CheckExact(x->a))
        return false;
    PyArrayObject *a = (PyArrayObject *)x->a;
    if (!PyArray_ISBEHAVED_RO(a) || PyArray_NDIM(a) != 2 || PyArray_DIM(a, 0) != x->dim[0] ||
        PyArray_DIM(a, 1) != x->dim[1] || PyArray_TYPE(a) != x->dtype->type_num)
        return false;
    const int type = PyArray_TYPE(a);
    bool zero;
    Py_BEGIN_ALLOW_THREADS;
    zero = is_zero_beside_diagonal(a, type == NPY_FLOAT || type == NPY_CFLOAT);
    Py_END_ALLOW_THREADS;
    return zero;
}

/* c I of a vector that holds c alone, else Diag(d); NULL without an exception: not of finite
 * numbers, or of zeros. New. */
static PyObject *of_diagonal(py_state *s, PyArrayObject *d) {
    const npy_intp n = PyArray_DIM(d, 0), size = PyArray_ITEMSIZE(d);
    const char *p = PyArray_BYTES(d);
    const int parts = PyTypeNum_ISCOMPLEX(PyArray_TYPE(d)) ? 2 : 1;
    const bool single = size / parts == (npy_intp)sizeof(float);
    bool same = true, zero = true, one = true;
    for (npy_intp i = 0; i < n * parts; i++) {
        const double v = single ? (double)((const float *)(const void *)p)[i]
                                : ((const double *)(const void *)p)[i];
        if (!isfinite(v)) return NULL;
        zero = zero && v == 0;
        one = one && v == (i % parts == 0 ? 1 : 0);
    }
    for (npy_intp i = 1; same && i < n; i++) same = memcmp(p, p + i * size, (size_t)size) == 0;
    if (zero) return NULL;
    if (!same) return PyObject_CallOneArg((PyObject *)s->type[LOP_ID_diag], (PyObject *)d);
    PyObject *kwargs = Py_BuildValue("{sO}", "dtype", (PyObject *)PyArray_DESCR(d)),
             *args = Py_BuildValue("(n)", (Py_ssize_t)n), *c = PyArray_ToScalar(PyArray_DATA(d), d),
             *eye = NULL, *r = NULL;
    if (kwargs && args && c)
        eye = PyObject_Call((PyObject *)s->type[LOP_ID_identity], args, kwargs);
    if (eye) r = one ? Py_NewRef(eye) : PyNumber_Multiply(eye, c);
    Py_XDECREF(kwargs);
    Py_XDECREF(args);
    Py_XDECREF(c);
    Py_XDECREF(eye);
    return r;
}

/* The Diag that was made of `d` before, which factors may be known by: new. NULL: there is none. */
static PyObject *as_before(const py_lazy *x, PyArrayObject *d) {
    const PyObject *arrays = x->b && py_is_op(x->s, x->b) ? ((py_op *)x->b)->arrays : NULL;
    if (!arrays || PyTuple_GET_SIZE(arrays) != 1) return NULL;
    PyArrayObject *was = (PyArrayObject *)PyTuple_GET_ITEM(arrays, 0);
    const bool same = PyArray_NDIM(was) == 1 && PyArray_TYPE(was) == PyArray_TYPE(d) &&
                      PyArray_DIM(was, 0) == PyArray_DIM(d, 0) &&
                      memcmp(PyArray_DATA(was), PyArray_DATA(d), (size_t)PyArray_NBYTES(d)) == 0;
    return same ? Py_NewRef(x->b) : NULL;
}

PyObject *py_lazy_term(const py_lazy *a, int i) {
    py_lazy *x = py_lazy_arg(a, i);
    if (x->head == PY_LEAF) x->looked = false;
    if (!x->form || (a->head != PY_ADD && a->head != PY_SCALE) || a->s->tape ||
        !py_lazy_is_diagonal(x))
        return Py_XNewRef(x->form);
    PyObject *seen = PyArray_Diagonal((PyArrayObject *)x->a, 0, 0, 1),
             *d = seen ? PyArray_NewCopy((PyArrayObject *)seen, NPY_CORDER) : NULL,
             *r = d ? as_before(x, (PyArrayObject *)d) : NULL;
    if (d && !r && (r = of_diagonal(a->s, (PyArrayObject *)d))) Py_XSETREF(x->b, Py_NewRef(r));
    Py_XDECREF(seen);
    Py_XDECREF(d);
    x->looked = r != NULL;
    return r || PyErr_Occurred() ? r : Py_NewRef(x->form);
}

int py_lazy_note(PyObject **list, py_lazy *a) {
    if (a->head == PY_LEAF || a->head == PY_OPERATOR) return 0;
    a->looked = false;
    for (int i = 0; i < a->nargs && (!a->value || a->head == PY_MADE); i++) {
        PyObject *x = py_lazy_args(a)[i];
        a->looked = a->looked || (py_is_lazy(a->s, x) && ((py_lazy *)x)->looked);
    }
    if (!a->looked) return 0;
    if (!*list && !(*list = PyList_New(0))) return -1;
    return PyList_Append(*list, (PyObject *)a);
}

void py_lazy_forget(PyObject **list) {
    PyObject *all = *list;
    *list = NULL; /* destructors may run code */
    for (Py_ssize_t i = 0; all && i < PyList_GET_SIZE(all); i++) {
        py_lazy *a = (py_lazy *)PyList_GET_ITEM(all, i);
        a->looked = false;
        Py_CLEAR(a->form);
    }
    Py_XDECREF(all);
}
