/* py_selected_inverse.c: _select_counts, _select_rows, _select for _sparse/selected_inverse.py,
 * which says what they mean: the pattern of a factor and the inverse on it
 * (kernels/sparse/k_selected_inverse.h). Arrays are buffers of int64 and of a float dtype, named by
 * NumPy's character. The GIL is released around the work. */
#include "py/module/py.h"

#include "kernels/sparse/k_selected_inverse.h"

static int64_t words(const Py_buffer *b) { return (int64_t)((size_t)b->len / sizeof(int64_t)); }

/* n + 1 starts, from 0, ascending, to `total`. */
static bool are_starts(const Py_buffer *b, int64_t n, int64_t total) {
    const int64_t *at = b->buf;
    if (n < 0 || words(b) != n + 1 || at[0] != 0 || at[n] != total) return false;
    for (int64_t i = 0; i < n; i++)
        if (at[i + 1] < at[i] || at[i + 1] > total) return false;
    return true;
}

static PyObject *refused(const char *what) {
    return PyErr_Format(PyExc_ValueError, "%s: the arrays do not make a pattern", what);
}

/* Row i has columns below i alone. */
static bool are_lower(const Py_buffer *start, const Py_buffer *col, int64_t n) {
    const int64_t *at = start->buf, *j = col->buf;
    if (!are_starts(start, n, words(col))) return false;
    for (int64_t i = 0; i < n; i++)
        for (int64_t p = at[i]; p < at[i + 1]; p++)
            if (j[p] < 0 || j[p] >= i) return false;
    return true;
}

/* (n, start, col, parent, at): fills parent and at. */
PyObject *py_select_counts(PyObject *module, PyObject *args) {
    Py_buffer b[4];
    long long n;
    (void)module;
    if (!PyArg_ParseTuple(args, "Ly*y*w*w*:_select_counts", &n, &b[0], &b[1], &b[2], &b[3]))
        return NULL;
    bool fits = are_lower(&b[0], &b[1], n) && words(&b[2]) == n && words(&b[3]) == n + 1;
    int64_t *mark = fits ? PyMem_Calloc((size_t)n + 1, sizeof *mark) : NULL;
    Py_BEGIN_ALLOW_THREADS;
    if (mark) lopk_select_counts(n, b[0].buf, b[1].buf, b[2].buf, b[3].buf, mark);
    Py_END_ALLOW_THREADS;
    PyMem_Free(mark);
    for (int i = 0; i < 4; i++) PyBuffer_Release(&b[i]);
    if (!fits) return refused("_select_counts");
    if (!mark) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static bool are_parents(const Py_buffer *b, int64_t n) {
    const int64_t *parent = b->buf;
    if (words(b) != n) return false;
    for (int64_t j = 0; j < n; j++)
        if (parent[j] != -1 && (parent[j] <= j || parent[j] >= n)) return false;
    return true;
}

/* (n, start, col, parent, at, row): fills row. */
PyObject *py_select_rows(PyObject *module, PyObject *args) {
    Py_buffer b[5];
    long long n;
    (void)module;
    if (!PyArg_ParseTuple(args, "Ly*y*y*y*w*:_select_rows", &n, &b[0], &b[1], &b[2], &b[3], &b[4]))
        return NULL;
    bool fits =
        are_lower(&b[0], &b[1], n) && are_parents(&b[2], n) && are_starts(&b[3], n, words(&b[4]));
    int64_t *mark = fits ? PyMem_Calloc(2 * (size_t)n + 1, sizeof *mark) : NULL;
    Py_BEGIN_ALLOW_THREADS;
    if (mark) lopk_select_rows(n, b[0].buf, b[1].buf, b[2].buf, b[3].buf, b[4].buf, mark, mark + n);
    Py_END_ALLOW_THREADS;
    PyMem_Free(mark);
    for (int i = 0; i < 5; i++) PyBuffer_Release(&b[i]);
    if (!fits) return refused("_select_rows");
    if (!mark) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

/* Rows ascend within each column, below its diagonal. */
static bool are_columns(const Py_buffer *start, const Py_buffer *row, int64_t n) {
    const int64_t *at = start->buf, *i = row->buf;
    if (!are_starts(start, n, words(row))) return false;
    for (int64_t j = 0; j < n; j++)
        for (int64_t p = at[j]; p < at[j + 1]; p++)
            if (i[p] >= n || i[p] <= (p > at[j] ? i[p - 1] : j)) return false;
    return true;
}

static bool dtype_of(int letter, lop_dtype *dt) {
    *dt = letter == 'f'   ? LOP_f32
          : letter == 'd' ? LOP_f64
          : letter == 'F' ? LOP_c64
          : letter == 'D' ? LOP_c128
                          : LOP_NO_DTYPE;
    return *dt != LOP_NO_DTYPE;
}

/* (letter, n, at, row, lo, up, d): lo, up, d in place. */
PyObject *py_select(PyObject *module, PyObject *args) {
    Py_buffer b[5];
    long long n;
    int letter;
    lop_dtype dt;
    (void)module;
    if (!PyArg_ParseTuple(args, "CLy*y*w*w*w*:_select", &letter, &n, &b[0], &b[1], &b[2], &b[3],
                          &b[4]))
        return NULL;
    bool fits = dtype_of(letter, &dt) && are_columns(&b[0], &b[1], n);
    const Py_ssize_t size = fits ? (Py_ssize_t)lop_dtype_size(dt) : 1;
    fits = fits && b[2].len == words(&b[1]) * size && b[3].len == b[2].len && b[4].len == n * size;
    void *front = NULL, *work = NULL;
    int64_t *place = NULL, order = 0, count, bytes;
    if (fits) {
        order = lopk_select_front(n, b[0].buf, b[1].buf);
        const bool small =
            lop_mul_ok(order, order, &count) && lop_mul_ok(count, 2 * (int64_t)size, &bytes);
        place = PyMem_Malloc(((size_t)n + (size_t)order + 1) * sizeof *place);
        front = small ? PyMem_Malloc((size_t)bytes + 1) : NULL;
        work = small ? PyMem_Malloc(((size_t)lopk_select_work(order) + 1) * (size_t)size) : NULL;
    }
    bool room = place && front && work;
    Py_BEGIN_ALLOW_THREADS;
    if (room) {
        for (int64_t i = 0; i < n; i++) place[i] = -1;
        room = lopk_select(dt, n, b[0].buf, b[1].buf, b[2].buf, b[3].buf, b[4].buf, place, front,
                           work) == LOP_OK;
    }
    Py_END_ALLOW_THREADS;
    PyMem_Free(place);
    PyMem_Free(front);
    PyMem_Free(work);
    for (int i = 0; i < 5; i++) PyBuffer_Release(&b[i]);
    if (!fits) return refused("_select");
    if (!room) return PyErr_NoMemory();
    Py_RETURN_NONE;
}
