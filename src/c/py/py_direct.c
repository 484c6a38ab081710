/* py_direct.c: the direct road for the hot small case, from the type slot to the kernel.
 *
 * Taken when the cached plan is one step on whole C-contiguous arrays, with no workspace, batch,
 * branch or derived value: then the matrices lie on the stack and the kernel is called at once,
 * under the GIL. Everything is read anew: pointers, shapes, dtypes, flags; what does not fit goes
 * the general way. */
#include "py.h"

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
        PyArray_NDIM(x) != 1 || PyArray_DIM(x, 0) != e->dim[0] || e->nd != 1 || s->record)
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

static double _Complex in_dtype(lop_dtype dt, double _Complex v) {
    const bool narrow = dt == LOP_f32 || dt == LOP_c64;
    return narrow ? CMPLX((float)creal(v), (float)cimag(v)) : v;
}

/* False: not of matrices of dtype dt alone, or too deep. */
static bool entry_of(const py_op *o, lop_dtype dt, int64_t i, int64_t j, int depth,
                     double _Complex *v) {
    const lop_node *n = o->node;
    if (!n || n->dtype != dt || n->weak || n->shape.ndim != 2 || depth == 0) return false;
    if (n->op == &lop_op_sum && o->a && o->b && py_is_op(o->s, o->a) && py_is_op(o->s, o->b)) {
        double _Complex w;
        if (!entry_of((py_op *)o->a, dt, i, j, depth - 1, v) ||
            !entry_of((py_op *)o->b, dt, i, j, depth - 1, &w))
            return false;
        *v = in_dtype(dt, *v + w);
        return true;
    }
    if (n->op != &lop_op_dense || n->attr.i[0] || !o->arrays || PyTuple_GET_SIZE(o->arrays) != 1)
        return false;
    PyArrayObject *a = (PyArrayObject *)PyTuple_GET_ITEM(o->arrays, 0);
    if (py_dtype(a) != dt || !PyArray_ISBEHAVED_RO(a) || PyArray_NDIM(a) != 2 ||
        PyArray_DIM(a, 0) != n->shape.dim[0] || PyArray_DIM(a, 1) != n->shape.dim[1])
        return false;
    *v = lop_get(dt, PyArray_GETPTR2(a, i, j), 0);
    return true;
}

PyObject *py_direct_entry(py_op *self, int64_t i, int64_t j) {
    enum { DEEP = 4 };
    const lop_dtype dt = self->node->dtype;
    double _Complex v;
    if (!lop_is_blas(dt) || self->s->record || self->s->generation ||
        !entry_of(self, dt, i, j, DEEP, &v))
        return NULL;
    PyObject *made = PyArray_SimpleNew(0, NULL, py_typenum(dt));
    if (made) lop_set(dt, PyArray_DATA((PyArrayObject *)made), 0, v);
    return made;
}
