/* py_array.c: NumPy arrays <-> buffers. Borrowed where the layout serves, else one copy for the
 * call: kernels want aligned, native memory with a stride of 1 in one of the last two dimensions.
 */
#define LOP_PY_IMPORTS_NUMPY
#include "py.h"

#define PY_UFUNC_UNIQUE_SYMBOL pylinop_UFUNC_API /* of which nothing is used */
#define NO_IMPORT_UFUNC
#include <numpy/ufuncobject.h>
#include <string.h>

int py_import_numpy(void) { return PyArray_ImportNumPyAPI(); }

static const int typenums[LOP_NDTYPE] = {
    [LOP_b8] = NPY_BOOL,        [LOP_i8] = NPY_INT8,     [LOP_u8] = NPY_UINT8,
    [LOP_i16] = NPY_INT16,      [LOP_u16] = NPY_UINT16,  [LOP_i32] = NPY_INT32,
    [LOP_u32] = NPY_UINT32,     [LOP_i64] = NPY_INT64,   [LOP_u64] = NPY_UINT64,
    [LOP_f32] = NPY_FLOAT32,    [LOP_f64] = NPY_FLOAT64, [LOP_c64] = NPY_COMPLEX64,
    [LOP_c128] = NPY_COMPLEX128};

int py_typenum(lop_dtype dt) { return typenums[dt]; }
PyObject *py_descr(lop_dtype dt) { return (PyObject *)PyArray_DescrFromType(typenums[dt]); }

lop_dtype py_dtype_of_letter(int letter) {
    for (int dt = 0; dt < (int)LOP_NDTYPE; dt++) {
        PyArray_Descr *d = (PyArray_Descr *)py_descr((lop_dtype)dt);
        const bool same = d && d->type == letter;
        Py_XDECREF(d);
        if (same) return (lop_dtype)dt;
    }
    return LOP_NO_DTYPE;
}

int py_ufunc_loop(PyObject *ufunc, const char *letters, Py_ssize_t n, py_loop *run, void **data) {
    const PyUFuncObject *f = (const PyUFuncObject *)(void *)ufunc;
    if (strcmp(Py_TYPE(ufunc)->tp_name, "numpy.ufunc") != 0 || f->nout != 1 || f->core_enabled ||
        n != f->nargs)
        return 0;
    for (int k = 0; k < f->ntypes; k++) {
        bool same = true;
        for (int i = 0; same && i < f->nargs; i++) {
            PyArray_Descr *d = PyArray_DescrFromType(f->types[k * f->nargs + i]);
            same = d && d->type == letters[i];
            Py_XDECREF(d);
        }
        if (!same) continue;
        const PyUFuncGenericFunction loop = f->functions[k];
        memcpy(run, &loop, sizeof loop); /* npy_intp is intptr_t by another name */
        *data = f->data ? (void *)(uintptr_t)f->data[k] : NULL;
        return f->nin;
    }
    return 0;
}

lop_dtype py_dtype(PyArrayObject *a) {
    const PyArray_Descr *d = PyArray_DESCR(a);
    switch (d->type_num) {
    case NPY_BOOL: return LOP_b8;
    case NPY_BYTE: return LOP_i8;
    case NPY_UBYTE: return LOP_u8;
    case NPY_SHORT: return LOP_i16;
    case NPY_USHORT: return LOP_u16;
    case NPY_INT: return LOP_i32;
    case NPY_UINT: return LOP_u32;
    case NPY_LONG: return sizeof(long) == 8 ? LOP_i64 : LOP_i32;
    case NPY_ULONG: return sizeof(long) == 8 ? LOP_u64 : LOP_u32;
    case NPY_LONGLONG: return LOP_i64;
    case NPY_ULONGLONG: return LOP_u64;
    case NPY_FLOAT: return LOP_f32;
    case NPY_DOUBLE: return LOP_f64;
    case NPY_CFLOAT: return LOP_c64;
    case NPY_CDOUBLE: return LOP_c128;
    default: return LOP_NO_DTYPE;
    }
}

/* May the last `core` dimensions go to a kernel as they are? */
static bool legal(PyArrayObject *a, int core) {
    int nd = PyArray_NDIM(a);
    npy_intp size = PyArray_ITEMSIZE(a);
    const npy_intp *dim = PyArray_DIMS(a), *stride = PyArray_STRIDES(a);
    bool unit = core < 2;
    if (!PyArray_ISALIGNED(a) || !PyArray_ISNOTSWAPPED(a)) return false;
    for (int i = 0; i < nd; i++)
        if (dim[i] > 1 && stride[i] % size) return false;
    for (int i = nd - core; i < nd; i++) {
        if (dim[i] <= 1)
            unit = true;
        else if (stride[i] <= 0)
            return false;
        else if (stride[i] == size)
            unit = true;
    }
    if (core == 2 && unit) { /* rows or columns must not overlap */
        npy_intp m = dim[nd - 2], n = dim[nd - 1], rs = stride[nd - 2], cs = stride[nd - 1];
        if (m > 1 && n > 1 && !(cs == size && rs >= n * size) && !(rs == size && cs >= m * size))
            return false;
    }
    return unit;
}

bool py_frozen(const py_state *s, PyArrayObject *a, uint64_t *owner) {
    PyObject *o = (PyObject *)a;
    while (PyArray_CheckExact(o) && !PyArray_ISWRITEABLE((PyArrayObject *)o) &&
           PyArray_BASE((PyArrayObject *)o))
        o = PyArray_BASE((PyArrayObject *)o);
    if (owner) *owner = 0;
    if (!s->immutable || Py_TYPE(o) != s->immutable) return PyBytes_CheckExact(o);
    PyObject *number = owner ? PyObject_GetAttr(o, s->owner_name) : NULL;
    if (number) *owner = PyLong_AsUnsignedLongLong(number);
    Py_XDECREF(number);
    if (PyErr_Occurred()) PyErr_Clear(); /* nobody's */
    return true;
}

PyObject *py_own_copy(py_state *s, PyObject *o) {
    if (PyArray_CheckExact(o))
        return py_frozen(s, (PyArrayObject *)o, NULL) ? Py_NewRef(o)
                                                      : py_call_hook(s, "immutable_copy", &o, 1);
    PyObject *copy = py_attribute(o, "copy"), *own = copy               ? PyObject_CallNoArgs(copy)
                                                     : PyErr_Occurred() ? NULL
                                                                        : Py_NewRef(o);
    Py_XDECREF(copy);
    return own;
}

bool py_is_normal(PyArrayObject *a, int core, bool c_order) {
    if (core > PyArray_NDIM(a)) core = PyArray_NDIM(a);
    return legal(a, core) && (!c_order || PyArray_IS_C_CONTIGUOUS(a));
}

PyArrayObject *py_normal(PyArrayObject *a, int core, bool c_order) {
    if (py_is_normal(a, core, c_order)) {
        Py_INCREF(a);
        return a;
    }
    return (PyArrayObject *)PyArray_FromArray(a, PyArray_DescrFromType(PyArray_TYPE(a)),
                                              NPY_ARRAY_CARRAY | NPY_ARRAY_ENSURECOPY);
}

void py_buf(PyArrayObject *a, lop_dtype dt, lop_buf *buf) {
    int nd = PyArray_NDIM(a);
    npy_intp size = PyArray_ITEMSIZE(a);
    buf->p = PyArray_DATA(a);
    buf->dt = dt;
    buf->device = LOP_CPU;
    buf->shape.ndim = nd;
    for (int i = 0; i < nd; i++) {
        npy_intp dim = PyArray_DIM(a, i);
        buf->shape.dim[i] = dim;
        buf->stride[i] = dim > 1 ? PyArray_STRIDE(a, i) / size : 1;
    }
    if (nd >= 2 && buf->shape.dim[nd - 2] <= 1)
        buf->stride[nd - 2] = buf->shape.dim[nd - 1] > 0 ? buf->shape.dim[nd - 1] : 1;
    if (nd >= 2 && buf->shape.dim[nd - 1] <= 1) {
        buf->stride[nd - 1] = 1;
        if (buf->shape.dim[nd - 2] > 1 && buf->stride[nd - 2] != 1) return;
    }
}

void py_buf_transpose(lop_buf *buf) {
    int nd = buf->shape.ndim;
    int64_t d = buf->shape.dim[nd - 1], s = buf->stride[nd - 1];
    buf->shape.dim[nd - 1] = buf->shape.dim[nd - 2];
    buf->stride[nd - 1] = buf->stride[nd - 2];
    buf->shape.dim[nd - 2] = d;
    buf->stride[nd - 2] = s;
}

PyArrayObject *py_empty(const lop_shape *shape, lop_dtype dt) {
    npy_intp dim[LOP_MAXDIM];
    for (int i = 0; i < shape->ndim; i++) dim[i] = (npy_intp)shape->dim[i];
    return py_new_array(shape->ndim, dim, typenums[dt]);
}

/* The bytes an array can touch. */
static void extent(PyArrayObject *a, char **low, char **high) {
    *low = *high = PyArray_BYTES(a);
    for (int i = 0; i < PyArray_NDIM(a); i++) {
        npy_intp d = PyArray_DIM(a, i), s = PyArray_STRIDE(a, i);
        if (d == 0) {
            *high = *low;
            return;
        }
        if (s > 0)
            *high += (d - 1) * s;
        else
            *low += (d - 1) * s;
    }
    *high += PyArray_ITEMSIZE(a);
}

bool py_overlap(PyArrayObject *a, PyArrayObject *b) {
    char *al, *ah, *bl, *bh;
    extent(a, &al, &ah);
    extent(b, &bl, &bh);
    return al < bh && bl < ah;
}
