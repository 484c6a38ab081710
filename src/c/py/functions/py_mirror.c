/* py_mirror.c: _mirrored(a, conjugate): is a square matrix of floats its own transpose, or adjoint,
 * entry by entry? None: not for here (another dtype or number of axes). Reads tiles, stops at the
 * first that differs, and makes no copy; NaN equals nothing. */
#include "py/module/py.h"

enum { TILE = 32 };

/* Tile by tile, `b` the entries across the diagonal. */
#define MIRRORED(name, type, parts)                                                                \
    static bool name(const char *p, Py_ssize_t n, Py_ssize_t row, Py_ssize_t col, bool conj) {     \
        for (Py_ssize_t i0 = 0; i0 < n; i0 += TILE)                                                \
            for (Py_ssize_t j0 = 0; j0 <= i0; j0 += TILE)                                          \
                for (Py_ssize_t i = i0; i < n && i < i0 + TILE; i++)                               \
                    for (Py_ssize_t j = j0; j <= i && j < j0 + TILE; j++) {                        \
                        type a[parts], b[parts];                                                   \
                        memcpy(a, p + i * row + j * col, sizeof a);                                \
                        memcpy(b, p + j * row + i * col, sizeof b);                                \
                        if (conj) b[parts - 1] = -b[parts - 1];                                    \
                        if (!(a[0] == b[0] && a[parts - 1] == b[parts - 1])) return false;         \
                    }                                                                              \
        return true;                                                                               \
    }
MIRRORED(mirrored_f, float, 1)
MIRRORED(mirrored_d, double, 1)
MIRRORED(mirrored_F, float, 2)
MIRRORED(mirrored_D, double, 2)

typedef bool (*mirrored_fn)(const char *, Py_ssize_t, Py_ssize_t, Py_ssize_t, bool);

static mirrored_fn of_format(const char *format) {
    if (!format) return NULL;
    if (!strcmp(format, "f")) return mirrored_f;
    if (!strcmp(format, "d")) return mirrored_d;
    if (!strcmp(format, "Zf")) return mirrored_F;
    return strcmp(format, "Zd") ? NULL : mirrored_D;
}

PyObject *py_mirrored(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    Py_buffer v;
    (void)module;
    if (nargs != 2) return PyErr_Format(PyExc_TypeError, "_mirrored(a, conjugate)");
    const int conj = PyObject_IsTrue(args[1]);
    if (conj < 0 || PyObject_GetBuffer(args[0], &v, PyBUF_RECORDS_RO) < 0) return NULL;
    const mirrored_fn mirrored =
        v.ndim == 2 && v.shape[0] == v.shape[1] ? of_format(v.format) : NULL;
    bool same = false;
    if (mirrored && v.len > 1 << 16) {
        Py_BEGIN_ALLOW_THREADS;
        same = mirrored(v.buf, v.shape[0], v.strides[0], v.strides[1], conj && v.format[0] == 'Z');
        Py_END_ALLOW_THREADS;
    } else if (mirrored) {
        same = mirrored(v.buf, v.shape[0], v.strides[0], v.strides[1], conj && v.format[0] == 'Z');
    }
    PyBuffer_Release(&v);
    if (!mirrored) Py_RETURN_NONE;
    return PyBool_FromLong(same);
}
