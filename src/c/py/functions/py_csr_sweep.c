/* py_csr_sweep.c: _csr_step, the sweep of k_csr_sweep.h, for pylinop.dask. Memory is taken as
 * buffers, so that mapped files go in as they are. The GIL is released. */
#include "py/module/py.h"

#include "kernels/sparse/k_csr_sweep.h"

static bool dtype_of(int letter, lop_dtype *dt) {
    switch (letter) {
    case 'f': return *dt = LOP_f32, true;
    case 'd': return *dt = LOP_f64, true;
    case 'F': return *dt = LOP_c64, true;
    case 'D': return *dt = LOP_c128, true;
    case 'i': return *dt = LOP_i32, true;
    case 'q': return *dt = LOP_i64, true;
    default: return false;
    }
}

/* The buffer as a vector of its elements: false where it holds no whole number of them, or
 * does not start at one's boundary. */
static bool vector_of(const Py_buffer *b, lop_dtype dt, lop_mat *a) {
    const int64_t size = (int64_t)lop_dtype_size(dt), count = b->len / size;
    *a = (lop_mat){b->buf, count, 1, 1, 1, dt};
    const bool pairs = dt == LOP_c64 || dt == LOP_c128; /* aligned as their parts are */
    return count * size == b->len && (uintptr_t)b->buf % (uintptr_t)(pairs ? size / 2 : size) == 0;
}

/* The six arrays of a call: indptr, indices, data, v, u, w; v and w may be absent. */
typedef struct sweep {
    Py_buffer buffer[6];
    lop_mat a[6];
    bool there[6];
} sweep;

static bool take(sweep *s, int i, PyObject *o, bool writes) {
    if (o == Py_None && (i == 3 || i == 5)) return true;
    if (PyObject_GetBuffer(o, &s->buffer[i], writes ? PyBUF_WRITABLE : PyBUF_SIMPLE) < 0)
        return false;
    return s->there[i] = true;
}

static bool fits(sweep *s, const lop_dtype dt[3], int64_t m, int64_t n) {
    for (int i = 0; i < 6; i++) /* indices, entries, vectors */
        if (s->there[i] && !vector_of(&s->buffer[i], dt[i < 2 ? 1 : i == 2 ? 0 : 2], &s->a[i]))
            return false;
    return m >= 0 && n >= 0 && s->a[0].m - 1 == m && s->a[4].m == m &&
           (!s->there[3] || s->a[3].m == n) && (!s->there[5] || s->a[5].m == n);
}

/* (letters of entries, indices and vectors, m, n, indptr, indices, data, alpha, v, u, w): |u|^2. */
PyObject *py_csr_step(PyObject *module, PyObject *args) {
    PyObject *o[6];
    int letter[3];
    long long m, n;
    double alpha, sum = 0;
    lop_dtype dt[3];
    lop_status st = LOP_DIM;
    sweep s = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "CCCLLOOOdOOO:_csr_step", &letter[0], &letter[1], &letter[2], &m,
                          &n, &o[0], &o[1], &o[2], &alpha, &o[3], &o[4], &o[5]))
        return NULL;
    bool ok = true;
    for (int i = 0; i < 6 && ok; i++) ok = take(&s, i, o[i], i >= 4);
    bool known = ok;
    for (int i = 0; i < 3 && known; i++)
        known = dtype_of(letter[i], &dt[i]) && lop_is_blas(dt[i]) == (i != 1);
    if (known && fits(&s, dt, m, n)) {
        Py_BEGIN_ALLOW_THREADS;
        st = lopk_csr_step(&s.a[0], &s.a[1], &s.a[2], alpha, s.there[3] ? &s.a[3] : NULL, &s.a[4],
                           s.there[5] ? &s.a[5] : NULL, &sum);
        Py_END_ALLOW_THREADS;
    }
    for (int i = 0; i < 6; i++)
        if (s.there[i]) PyBuffer_Release(&s.buffer[i]);
    if (!ok) return NULL;
    if (st == LOP_OK) return PyFloat_FromDouble(sum);
    if (st == LOP_INDEX)
        return PyErr_Format(PyExc_ValueError,
                            "_csr_step: indptr does not ascend within the %lld entries there are, "
                            "or a column is not within 0 to %lld",
                            (long long)(s.a[1].m < s.a[2].m ? s.a[1].m : s.a[2].m), n - 1);
    return PyErr_Format(PyExc_ValueError,
                        "_csr_step: the memory does not have the sizes named, or is not aligned");
}
