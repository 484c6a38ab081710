/* py_lapack.c: _getrf, _band_cholesky, _band_svd, _cholup: factors in place for cholesky.py, lu.py
 * and the banded factors in _structured, which say what they mean. Each takes NumPy's character of
 * a float dtype, sizes, and C-contiguous memory that holds the matrix column by column, and gives
 * LAPACK's info. The GIL is released around the work. */
#include "py/module/py.h"

#include "kernels/band/k_band.h"
#include "kernels/dense/k_blas.h"
#include "kernels/dense/k_by_divisions.h"
#include "kernels/dense/k_cholesky_update.h"

bool py_float_of(int letter, lop_dtype *dt) {
    switch (letter) {
    case 'f': return *dt = LOP_f32, true;
    case 'd': return *dt = LOP_f64, true;
    case 'F': return *dt = LOP_c64, true;
    case 'D': return *dt = LOP_c128, true;
    default: return false;
    }
}

/* Does the buffer hold m n elements? They are described in `a`, column-major. */
static bool matrix_of(const Py_buffer *b, int letter, int64_t m, int64_t n, lop_mat *a) {
    int64_t count, bytes;
    lop_dtype dt;
    if (m < 0 || n < 0 || !py_float_of(letter, &dt)) return false;
    if (!lop_mul_ok(m, n, &count) || !lop_mul_ok(count, (int64_t)lop_dtype_size(dt), &bytes))
        return false;
    *a = (lop_mat){b->buf, m, n, 1, m > 1 ? m : 1, dt};
    return bytes == b->len;
}

static PyObject *answer(lop_status st, int64_t info, const char *what) {
    if (st == LOP_OK || st == LOP_SINGULAR) return PyLong_FromLongLong(info);
    if (st == LOP_OVERFLOW)
        return PyErr_Format(PyExc_ValueError, "%s: a size passes the integers of the BLAS library",
                            what);
    return PyErr_Format(PyExc_ValueError, "%s: the memory does not have the sizes named", what);
}

/* (letter, m, n, a, ipiv): see lopk_getrf. */
PyObject *py_getrf(PyObject *module, PyObject *args) {
    Py_buffer a, p;
    int letter;
    long long m, n;
    lop_mat mat;
    lop_status st = LOP_DIM;
    (void)module;
    if (!PyArg_ParseTuple(args, "CLLw*w*:_getrf", &letter, &m, &n, &a, &p)) return NULL;
    int64_t info = 0;
    const int64_t pivots = m < n ? m : n;
    bool fits = matrix_of(&a, letter, m, n, &mat) && p.len / (Py_ssize_t)sizeof(int64_t) == pivots;
    Py_BEGIN_ALLOW_THREADS;
    if (fits)
        st = lopk_has_faint(&mat) ? lopk_lu_by_divisions(&mat, p.buf, &info)
                                  : lopk_getrf(&mat, p.buf, &info);
    Py_END_ALLOW_THREADS;
    PyBuffer_Release(&a);
    PyBuffer_Release(&p);
    return answer(st, info, "_getrf");
}

/* (letter, rows, n, ab): see lopk_band_cholesky. */
PyObject *py_band_cholesky(PyObject *module, PyObject *args) {
    Py_buffer ab;
    int letter;
    long long rows, n;
    int64_t info = 0;
    lop_mat mat;
    lop_status st = LOP_DIM;
    (void)module;
    if (!PyArg_ParseTuple(args, "CLLw*:_band_cholesky", &letter, &rows, &n, &ab)) return NULL;
    bool fits = matrix_of(&ab, letter, rows, n, &mat) && rows > 0;
    Py_BEGIN_ALLOW_THREADS;
    if (fits) st = lopk_band_cholesky(&mat, &info);
    Py_END_ALLOW_THREADS;
    PyBuffer_Release(&ab);
    return answer(st, info, "_band_cholesky");
}

/* (letter, l, u, n, ab, d): see lopk_gbsvd. */
PyObject *py_band_svd(PyObject *module, PyObject *args) {
    Py_buffer ab, d;
    int letter;
    long long l, u, n;
    int64_t info = 0;
    lop_mat mat, values;
    lop_status st = LOP_DIM;
    (void)module;
    if (!PyArg_ParseTuple(args, "CLLLw*w*:_band_svd", &letter, &l, &u, &n, &ab, &d)) return NULL;
    bool fits = l >= 0 && u >= 0 && l < INT64_MAX / 4 && u < INT64_MAX / 4 &&
                matrix_of(&ab, letter, l + u + 1, n, &mat) &&
                matrix_of(&d,
                          letter == 'F'   ? 'f'
                          : letter == 'D' ? 'd'
                                          : letter,
                          n, 1, &values);
    void *work = fits ? PyMem_Calloc((size_t)(n > 0 ? n : 1), 5 * sizeof(double)) : NULL;
    if (work) {
        Py_BEGIN_ALLOW_THREADS;
        st = lopk_gbsvd(&mat, l, u, values.p, work, &info);
        Py_END_ALLOW_THREADS;
    }
    PyMem_Free(work);
    PyBuffer_Release(&ab);
    PyBuffer_Release(&d);
    if (fits && !work) return PyErr_NoMemory();
    return answer(st, info, "_band_svd");
}

/* (letter, n, a, v, down): see lopk_cholup. */
PyObject *py_cholup(PyObject *module, PyObject *args) {
    Py_buffer a, v;
    int letter, down;
    long long n;
    int64_t info = 0;
    lop_mat mat, vec;
    lop_status st = LOP_DIM;
    (void)module;
    if (!PyArg_ParseTuple(args, "CLw*w*p:_cholup", &letter, &n, &a, &v, &down)) return NULL;
    void *work = NULL;
    bool fits = matrix_of(&a, letter, n, n, &mat) && matrix_of(&v, letter, n, 1, &vec);
    if (fits && n > 0) {
        work = PyMem_Calloc((size_t)n, 2 * lop_dtype_size(mat.dt));
        if (!work) {
            PyBuffer_Release(&a);
            PyBuffer_Release(&v);
            return PyErr_NoMemory();
        }
    }
    Py_BEGIN_ALLOW_THREADS;
    if (fits) st = lopk_cholup(&mat, vec.p, down, work, &info);
    Py_END_ALLOW_THREADS;
    PyMem_Free(work);
    PyBuffer_Release(&a);
    PyBuffer_Release(&v);
    return answer(st, info, "_cholup");
}

/* _sterf(d, e): eigenvalues of a symmetric tridiagonal matrix in place of d; e is destroyed. Gives
 * whether they converged. */
PyObject *py_sterf(PyObject *module, PyObject *args) {
    Py_buffer d, e;
    lop_status st = LOP_DIM;
    (void)module;
    if (!PyArg_ParseTuple(args, "w*w*:_sterf", &d, &e)) return NULL;
    const int64_t n = (int64_t)((size_t)d.len / sizeof(double));
    bool fits = d.len % (Py_ssize_t)sizeof(double) == 0 && d.itemsize == sizeof(double) &&
                e.itemsize == sizeof(double) &&
                e.len == (Py_ssize_t)sizeof(double) * (Py_ssize_t)(n > 0 ? n - 1 : 0);
    Py_BEGIN_ALLOW_THREADS;
    if (fits) st = lopk_sterf(n, d.buf, e.buf);
    Py_END_ALLOW_THREADS;
    PyBuffer_Release(&d);
    PyBuffer_Release(&e);
    if (st == LOP_OK || st == LOP_SINGULAR) return PyBool_FromLong(st == LOP_OK);
    return PyErr_Format(PyExc_ValueError, "_sterf takes n and n - 1 doubles, n below 2^31");
}
