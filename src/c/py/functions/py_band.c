/* py_band.c: _band_qr, _band_places: loops of _structured/banded_qr.py and
 * _structured/banded_lu.py, which say what they mean. All memory is C-contiguous. The GIL is
 * released around the work. */
#include "py/module/py.h"

#include "kernels/band/k_band_qr.h"

/* Does the buffer hold m n elements of so many bytes? */
static bool holds(const Py_buffer *b, int64_t m, int64_t n, size_t size) {
    int64_t count, bytes;
    return m >= 0 && n >= 0 && lop_mul_ok(m, n, &count) &&
           lop_mul_ok(count, (int64_t)size, &bytes) && bytes == b->len;
}
static PyObject *done(bool fits, const char *what) {
    if (fits) Py_RETURN_NONE;
    return PyErr_Format(PyExc_ValueError, "%s: the memory does not have the sizes named", what);
}

/* (letter, m, n, l, u, ab, v): see lopk_bandqr; ab column by column. */
PyObject *py_band_qr(PyObject *module, PyObject *args) {
    Py_buffer ab, v;
    int letter;
    long long m, n, l, u;
    lop_dtype dt;
    (void)module;
    if (!PyArg_ParseTuple(args, "CLLLLw*w*:_band_qr", &letter, &m, &n, &l, &u, &ab, &v))
        return NULL;
    const long long k = m < n ? m : n;
    const bool fits =
        l >= 0 && u >= 0 && l < INT64_MAX / 4 && u < INT64_MAX / 4 && py_float_of(letter, &dt) &&
        holds(&ab, 2 * l + u + 1, n, lop_dtype_size(dt)) && holds(&v, k, l + 1, lop_dtype_size(dt));
    if (fits) {
        const lop_mat a = {ab.buf, 2 * l + u + 1, n, 1, 2 * l + u + 1, dt},
                      vectors = {v.buf, k, l + 1, l + 1, 1, dt};
        Py_BEGIN_ALLOW_THREADS;
        lopk_bandqr(&a, m, l, u, &vectors);
        Py_END_ALLOW_THREADS;
    }
    PyBuffer_Release(&ab);
    PyBuffer_Release(&v);
    return done(fits, "_band_qr");
}

/* (n, low, pivots, order, where, rows), int32 and int64, `order` and `where` counting from 0 on:
 * LAPACK's exchanges (0-based) of rows within `low` of each other are made in `order`; row j of
 * `rows` says where the multipliers of column j end up. False: an exchange leaves the band. */
static bool places(int64_t n, int64_t low, const int32_t *pivots, int64_t *order, int64_t *where,
                   int64_t *rows) {
    for (int64_t j = 0; j < n; j++) {
        const int64_t p = pivots[j], was = order[j];
        if (p < j || p >= n || p - j > low) return false;
        order[j] = order[p];
        order[p] = was;
    }
    for (int64_t j = n - 1; j >= 0; j--) {
        const int64_t p = pivots[j], was = where[j];
        for (int64_t t = 0; t < low; t++) rows[j * low + t] = where[j + 1 + t];
        where[j] = where[p];
        where[p] = was;
    }
    return true;
}
PyObject *py_band_places(PyObject *module, PyObject *args) {
    Py_buffer pivots, order, where, rows;
    long long n, low;
    (void)module;
    if (!PyArg_ParseTuple(args, "LLy*w*w*w*:_band_places", &n, &low, &pivots, &order, &where,
                          &rows))
        return NULL;
    bool fits = n >= 0 && low >= 0 && n < INT64_MAX / 4 && low < INT64_MAX / 4 &&
                holds(&pivots, n, 1, sizeof(int32_t)) && holds(&order, n, 1, sizeof(int64_t)) &&
                holds(&where, n + low, 1, sizeof(int64_t)) && holds(&rows, n, low, sizeof(int64_t));
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        fits = places(n, low, pivots.buf, order.buf, where.buf, rows.buf);
        Py_END_ALLOW_THREADS;
    }
    PyBuffer_Release(&pivots);
    PyBuffer_Release(&order);
    PyBuffer_Release(&where);
    PyBuffer_Release(&rows);
    return done(fits, "_band_places");
}
