/* py_ichol.c: _ichol, incomplete Cholesky for _precondition/incomplete.py, which says what it
 * means.
 *
 * Memory is the caller's, C-contiguous; the GIL is released around the work. */
#include "py/module/py.h"

#include "kernels/sparse/k_sparse_triangular.h"

static bool is_long(const Py_buffer *b, int64_t n) {
    int64_t bytes;
    return n >= 0 && lop_mul_ok(n, 8, &bytes) && bytes == b->len;
}

/* Do the buffers have the sizes that n and one another ask for? */
static bool fits(lopk_ichol_args *a, const Py_buffer *b, size_t size) {
    if (a->n < 0 || !is_long(&b[0], a->n + 1) || !is_long(&b[3], a->n + 1)) return false;
    const int64_t nnz = ((const int64_t *)b[0].buf)[a->n];
    int64_t bytes;
    if (!is_long(&b[1], nnz) || !lop_mul_ok(nnz, (int64_t)size, &bytes) || bytes != b[2].len)
        return false;
    a->room = b[4].len / 8;
    return is_long(&b[4], a->room) && lop_mul_ok(a->room, (int64_t)size, &bytes) &&
           bytes == b[5].len;
}

/* (letter, n, indptr, indices, data, lptr, lindex, ldata, shift, drop, fill) -> the column where it
 * broke down, -1: none. See lopk_ichol. Indices are int64. */
PyObject *py_ichol(PyObject *module, PyObject *args) {
    Py_buffer b[6];
    int letter;
    long long n, fill;
    lopk_ichol_args a = {0};
    int64_t where = -1, bytes;
    (void)module;
    if (!PyArg_ParseTuple(args, "CLy*y*y*w*w*w*ddL:_ichol", &letter, &n, &b[0], &b[1], &b[2], &b[3],
                          &b[4], &b[5], &a.shift, &a.drop, &fill))
        return NULL;
    const lop_dtype dt = letter == 'f'   ? LOP_f32
                         : letter == 'd' ? LOP_f64
                         : letter == 'F' ? LOP_c64
                         : letter == 'D' ? LOP_c128
                                         : LOP_NO_DTYPE;
    const size_t size = dt == LOP_NO_DTYPE ? 0 : lop_dtype_size(dt);
    void *work = NULL, *line = NULL;
    lop_status st = LOP_DIM;
    a.n = n;
    a.fill = fill;
    if (size && fits(&a, b, size) && lop_mul_ok(n, 64, &bytes)) {
        work = PyMem_Malloc(n ? (size_t)n * 48 : 1);
        line = PyMem_Malloc(n ? (size_t)n * size : 1);
        st = work && line ? LOP_OK : LOP_NOMEM;
    }
    a.ptr = b[0].buf;
    a.index = b[1].buf;
    a.data = b[2].buf;
    a.lptr = b[3].buf;
    a.lindex = b[4].buf;
    a.ldata = b[5].buf;
    a.work = work;
    a.line = line;
    Py_BEGIN_ALLOW_THREADS;
    if (st == LOP_OK) st = lopk_ichol(dt, &a, &where);
    Py_END_ALLOW_THREADS;
    PyMem_Free(work);
    PyMem_Free(line);
    for (int i = 0; i < 6; i++) PyBuffer_Release(&b[i]);
    if (st == LOP_OK) return PyLong_FromLong(-1);
    if (st == LOP_SINGULAR) return PyLong_FromLongLong(where);
    if (st == LOP_NOMEM) return PyErr_NoMemory();
    return PyErr_Format(PyExc_ValueError, "_ichol: the memory does not have the sizes named, or an "
                                          "index does not lie where it should");
}
