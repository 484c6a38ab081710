/* py_fast_path.c: the direct road for the hot small case, from the type slot to the kernel.
 *
 * Taken when the cached plan is one step on whole C-contiguous arrays, with no workspace, batch,
 * branch or derived value: then the matrices lie on the stack and the kernel is called at once,
 * under the GIL. Everything is read anew: pointers, shapes, dtypes, flags; what does not fit goes
 * the general way. */
#include "py/lazy/py_lazy.h"

#include <complex.h>

bool py_is_direct(const lop_plan *p) {
    if (p->nstep != 1 || p->batched || p->nderive || p->workspace || p->scratch || p->dense)
        return false;
    const lop_step *s = &p->step[0];
    for (int j = 0; j < s->n; j++) {
        const lop_slot *slot = &p->slot[s->arg[j]];
        if (slot->alias >= 0 || slot->batch != 1 || slot->shape.ndim != slot->core) return false;
        if (slot->kind != (j ? LOP_S_LEAF : LOP_S_OUT)) return false;
    }
    return s->fail < 0 && s->when < 0;
}

/* The array as the slot's matrix; false where it is not what the plan was made for. */
static inline bool mat_of(PyArrayObject *a, const lop_slot *s, lop_mat *m) {
    const int want = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED;
    int nd = PyArray_NDIM(a);
    if ((PyArray_FLAGS(a) & want) != want || nd != s->shape.ndim || py_dtype(a) != s->dt ||
        !PyArray_ISNOTSWAPPED(a))
        return false;
    const npy_intp *dim = PyArray_DIMS(a);
    for (int i = 0; i < nd; i++)
        if (dim[i] != s->shape.dim[i]) return false;
    *m = (lop_mat){PyArray_DATA(a), s->m, s->n, s->n, 1, s->dt};
    return true;
}

PyObject *py_direct(py_state *s, py_op *self, PyArrayObject *x) {
    const py_plan *e = self->cache;
    if (!e || !e->direct || e->act != ACT_APPLY || e->i != 1 || e->version != s->options_version ||
        PyArray_NDIM(x) != 1 || PyArray_DIM(x, 0) != e->dim[0] || e->nd != 1 || s->watched ||
        (int)py_dtype(x) != e->dt) /* a plan of zeros does not read x, but its dtype counts */
        return NULL;
    const lop_plan *p = e->plan;
    const lop_step *step = &p->step[0];
    if (p->flops + p->bytes > (double)s->nogil_work) return NULL;
    lop_mat mat[LOP_MAXARG];
    lop_err err;
    lop_err_open(&err);
    lop_call call;
    lop_call_open(&call, step, NULL, &err);
    for (int j = 1; j < step->n; j++) {
        const lop_slot *slot = &p->slot[step->arg[j]];
        call.a[j] = &mat[j];
        if (slot->leaf != e->rhs) {
            if (!mat_of((PyArrayObject *)PyTuple_GET_ITEM(e->leaves, slot->leaf), slot, &mat[j]))
                return NULL;
            continue;
        }
        const int want = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED;
        if ((PyArray_FLAGS(x) & want) != want || py_dtype(x) != slot->dt ||
            !PyArray_ISNOTSWAPPED(x))
            return NULL;
        mat[j] = (lop_mat){PyArray_DATA(x), slot->m, 1, 1, 1, slot->dt};
    }
    const lop_slot *o = &p->slot[p->out];
    npy_intp m = (npy_intp)o->m;
    PyObject *made = PyArray_SimpleNew(1, &m, py_typenum(o->dt));
    if (!made) return NULL;
    mat[0] = (lop_mat){PyArray_DATA((PyArrayObject *)made), o->m, 1, 1, 1, o->dt};
    call.a[0] = &mat[0];
    lop_status st = step->run(&call);
    if (st == LOP_OK) return made;
    Py_DECREF(made);
    return py_raise(s, st, &err, (PyObject *)self, "apply");
}

/* -- one element of a sum of plain matrices, read where it lies */

bool py_pair(PyObject *key, int64_t m, int64_t n, int64_t at[2]) {
    const int64_t dim[2] = {m, n};
    if (!PyTuple_CheckExact(key) || PyTuple_GET_SIZE(key) != 2) return false;
    for (int i = 0; i < 2; i++) {
        PyObject *k = PyTuple_GET_ITEM(key, i);
        int beyond = 0;
        if (!PyLong_CheckExact(k)) return false;
        at[i] = PyLong_AsLongLongAndOverflow(k, &beyond);
        if (at[i] < 0) at[i] += dim[i];
        if (beyond || at[i] < 0 || at[i] >= dim[i]) return false;
    }
    return true;
}

/* Of an array that is still what it was: m x n of dtype dt. */
static bool read_at(PyArrayObject *a, lop_dtype dt, int64_t m, int64_t n, const int64_t at[2],
                    double _Complex *v) {
    if (py_dtype(a) != dt || !PyArray_ISBEHAVED_RO(a) || PyArray_NDIM(a) != 2 ||
        PyArray_DIM(a, 0) != m || PyArray_DIM(a, 1) != n)
        return false;
    *v = lop_get(dt, PyArray_GETPTR2(a, at[0], at[1]), 0);
    return true;
}

static double _Complex plus(lop_dtype dt, double _Complex v, double _Complex w) {
    const double _Complex z = v + w;
    const bool narrow = dt == LOP_f32 || dt == LOP_c64;
    return narrow ? CMPLX(lop_in_f32(creal(z)), lop_in_f32(cimag(z))) : z;
}

/* False: not of matrices of dtype dt alone, or too deep. */
static bool entry_of(const py_op *o, lop_dtype dt, const int64_t at[2], int depth,
                     double _Complex *v) {
    const lop_node *n = o->node;
    if (!n || n->dtype != dt || n->weak || n->shape.ndim != 2 || depth == 0) return false;
    if (n->op == &lop_op_sum && o->a && o->b && py_is_op(o->s, o->a) && py_is_op(o->s, o->b)) {
        double _Complex w;
        if (!entry_of((py_op *)o->a, dt, at, depth - 1, v) ||
            !entry_of((py_op *)o->b, dt, at, depth - 1, &w))
            return false;
        *v = plus(dt, *v, w);
        return true;
    }
    if (n->op != &lop_op_dense || n->attr.i[0] || !o->arrays || PyTuple_GET_SIZE(o->arrays) != 1)
        return false;
    PyArrayObject *a = (PyArrayObject *)PyTuple_GET_ITEM(o->arrays, 0);
    return read_at(a, dt, n->shape.dim[0], n->shape.dim[1], at, v);
}

/* Of a sum of LazyArrays that has no form yet. */
static bool lazy_entry_of(const py_lazy *a, lop_dtype dt, const int64_t at[2], int depth,
                          double _Complex *v) {
    double _Complex w;
    if (a->nd != 2 || depth == 0) return false;
    if (a->head == PY_LEAF)
        return !a->more && read_at((PyArrayObject *)(a->value ? a->value : a->a), dt, a->dim[0],
                                   a->dim[1], at, v);
    if (a->head != PY_ADD || a->value || !lazy_entry_of(py_lazy_arg(a, 0), dt, at, depth - 1, v) ||
        !lazy_entry_of(py_lazy_arg(a, 1), dt, at, depth - 1, &w))
        return false;
    *v = plus(dt, *v, w);
    return true;
}

enum { DEEP = 4 };

static PyObject *number(lop_dtype dt, double _Complex v) {
    PyObject *made = PyArray_SimpleNew(0, NULL, py_typenum(dt));
    if (made) lop_set(dt, PyArray_DATA((PyArrayObject *)made), 0, v);
    return made;
}

PyObject *py_direct_lazy(const py_lazy *a) {
    const py_lazy *x = py_lazy_arg(a, 0);
    py_state *s = a->s;
    int64_t at[2];
    double _Complex v;
    if (x->head != PY_ADD || x->nd != 2 || !a->more || !py_is_plain(a->dtype) ||
        !py_pair(a->more, x->dim[0], x->dim[1], at))
        return NULL;
    py_config_here(s);
    if (s->watched || s->generation) return NULL;
    const int type = a->dtype->type_num;
    const lop_dtype dt = type == NPY_FLOAT    ? LOP_f32
                         : type == NPY_DOUBLE ? LOP_f64
                         : type == NPY_CFLOAT ? LOP_c64
                                              : LOP_c128;
    return lazy_entry_of(x, dt, at, DEEP, &v) ? number(dt, v) : NULL;
}

PyObject *py_direct_entry(py_op *self, const int64_t at[2]) {
    const lop_dtype dt = self->node->dtype;
    double _Complex v;
    if (!lop_is_blas(dt) || self->s->watched || self->s->generation ||
        !entry_of(self, dt, at, DEEP, &v))
        return NULL;
    return number(dt, v);
}
