/* py_gauss.c: _gauss for _stochastic/lanczos_batch.py: Gauss rules of many tridiagonal matrices at
 * once. */
#include "py/module/py.h"

#include "kernels/dense/k_gauss_quadrature.h"

/* (n, d, e, z): three buffers of as many doubles, rows of n; see lopk_gauss. Gives whether all
 * converged. The GIL is released around the work. */
PyObject *py_gauss(PyObject *module, PyObject *args) {
    Py_buffer d, e, z;
    long long n;
    (void)module;
    if (!PyArg_ParseTuple(args, "Lw*w*w*:_gauss", &n, &d, &e, &z)) return NULL;
    const Py_ssize_t item = (Py_ssize_t)sizeof(double);
    bool fits = n > 0 && d.itemsize == item && e.itemsize == item && z.itemsize == item &&
                d.len == e.len && d.len == z.len && d.len / item % n == 0;
    bool good = fits;
    Py_BEGIN_ALLOW_THREADS;
    for (int64_t at = 0; good && at < d.len / item; at += n)
        good = lopk_gauss(n, (double *)d.buf + at, (double *)e.buf + at, (double *)z.buf + at) ==
               LOP_OK;
    Py_END_ALLOW_THREADS;
    PyBuffer_Release(&d);
    PyBuffer_Release(&e);
    PyBuffer_Release(&z);
    if (fits) return PyBool_FromLong(good);
    return PyErr_Format(PyExc_ValueError, "_gauss takes three arrays of doubles, rows of n");
}
