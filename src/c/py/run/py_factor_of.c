/* py_factor_of.c: the factor that the plans of solves and determinants keep, as arrays for
 * cholesky.py and lu.py in _structured: found by the same key and fingerprint, or made and kept
 * there. The arrays are read-only views of its memory, which they hold: a factor that leaves the
 * store lives on in them. */
#include "rewrite/guards.h"
#include "ops/shared/factor.h"
#include "py/module/py.h"
#include "py/module/py_numpy.h"

/* Is there such a factor in the plans of solves with this matrix? */
static bool is_kept(const lop_node *a, int64_t what) {
    if (what == LOP_FACTOR_CHOLESKY)
        return lop_node_trait(a, LOP_POSITIVE) == LOP_TRUE || lop_is_tried(a);
    const int64_t word = a->op == &lop_op_dense ? a->attr.i[0] : 0;
    if (what >= LOP_FACTOR_LDLT) {
        const bool own = word == LOP_ASSUME_SYMMETRIC || word == LOP_ASSUME_HERMITIAN;
        return own && (!lop_is_complex(a->dtype) ||
                       (word == LOP_ASSUME_HERMITIAN) == (what == LOP_FACTOR_LDLH));
    }
    return word != LOP_ASSUME_LOWER && word != LOP_ASSUME_UPPER;
}

static lop_dtype dtype_of(const lop_node *a) { return lop_is_blas(a->dtype) ? a->dtype : LOP_f64; }

int64_t py_factor_bytes(const lop_node *a) {
    int64_t bytes = (int64_t)lop_dtype_size(dtype_of(a));
    if (a->op == &lop_op_dense) return 0;
    for (int d = 0; d < a->shape.ndim; d++)
        if (!lop_mul_ok(bytes, a->shape.dim[d], &bytes)) return INT64_MAX;
    return bytes;
}

lop_status py_factor_node(const lop_node *a, int64_t what, const lop_node **out, lop_err *err) {
    const lop_attr dt = {.i = {0, 0, 0, (int64_t)dtype_of(a) + 1}};
    lop_attr how = {.i = {what, 0, 0, 0}};
    const lop_node *dense;
    if (what == LOP_FACTOR_CHOLESKY) how.i[1] = lop_node_trait(a, LOP_POSITIVE) != LOP_TRUE;
    lop_status st = lop_node_make(a->ctx, &lop_op_todense, &dt, 1, &a, NULL, &dense, err);
    if (st != LOP_OK) return st;
    st = lop_node_make(a->ctx, &lop_op_factorof, &how, 1, &dense, NULL, out, err);
    lop_node_unref(dense);
    return st;
}

/* -- views of a derived value */

typedef struct holder {
    py_state *s;    /* counted */
    lop_blob *blob; /* retained */
} holder;

static void let_go(PyObject *capsule) {
    holder *h = PyCapsule_GetPointer(capsule, NULL);
    if (!h) return;
    lop_blob_unref(&h->s->ctx, h->blob);
    py_state_unref(h->s);
    PyMem_Free(h);
}
/* Takes the blob over: new. */
static PyObject *held(py_state *s, lop_blob *blob) {
    holder *h = PyMem_Malloc(sizeof *h);
    PyObject *capsule = h ? PyCapsule_New(h, NULL, let_go) : PyErr_NoMemory();
    if (!capsule) {
        lop_blob_unref(&s->ctx, blob);
        PyMem_Free(h);
        return NULL;
    }
    *h = (holder){s, blob};
    s->refs++;
    return capsule;
}

/* Of each element of the batch of `slot` the vector of n, or column-major matrix of n x n, that
 * lies at this offset: new. */
static PyObject *seen(PyObject *owner, const lop_blob *blob, const lop_slot *slot, size_t offset,
                      int core, int64_t n, lop_dtype dt) {
    const int nb = slot->shape.ndim - 1;
    npy_intp dim[LOP_MAXDIM], stride[LOP_MAXDIM], step = (npy_intp)slot->matbytes;
    const npy_intp size = (npy_intp)lop_dtype_size(dt);
    for (int d = nb - 1; d >= 0; d--) {
        dim[d] = (npy_intp)slot->shape.dim[d];
        stride[d] = step;
        step *= dim[d];
    }
    for (int d = 0; d < core; d++) {
        dim[nb + d] = (npy_intp)n;
        stride[nb + d] = d == 0 ? size : size * (npy_intp)n;
    }
    PyObject *a = PyArray_New(&PyArray_Type, nb + core, dim, py_typenum(dt), stride,
                              (char *)blob->data + offset, 0, 0, NULL);
    if (a && PyArray_SetBaseObject((PyArrayObject *)a, Py_NewRef(owner)) < 0) Py_CLEAR(a);
    return a;
}

static PyObject *views_of(PyObject *owner, const lop_blob *blob, const lop_slot *slot, int64_t what,
                          int64_t n, lop_dtype dt) {
    const size_t after = lop_factor_bytes(n, dt);
    const lop_ldl parts = lop_ldl_parts(blob->data, n, dt);
    const size_t exchanges =
        what >= LOP_FACTOR_LDLT ? (size_t)((char *)parts.ipiv - (char *)blob->data) : after;
    PyObject *f = seen(owner, blob, slot, 0, 2, n, dt),
             *p = f ? seen(owner, blob, slot, exchanges, 1, n, LOP_i64) : NULL,
             *e = p ? seen(owner, blob, slot, after, 1, what >= LOP_FACTOR_LDLT ? n : 0, dt) : NULL;
    PyObject *all = e ? PyTuple_Pack(3, f, p, e) : NULL;
    Py_XDECREF(f);
    Py_XDECREF(p);
    Py_XDECREF(e);
    return all;
}

/* The number of the derived value that the plan's last step reads; -1: none. */
static int factor_of(const lop_plan *p) {
    const int slot = p->nstep ? lop_slot_base(p, p->step[p->nstep - 1].arg[1]) : -1;
    for (int i = 0; slot >= 0 && i < p->nderive; i++)
        if (lop_slot_base(p, p->step[p->derive[i].step].arg[0]) == slot) return i;
    return -1;
}

static PyObject *run(py_state *s, py_op *self, const py_plan *e, int64_t what, int64_t n,
                     lop_dtype dt) {
    py_run r;
    lop_buf out;
    PyObject *found = NULL, *owner = NULL, *views = NULL;
    py_run_open(&r, s, self, e);
    const lop_slot *o = &r.plan->slot[r.plan->out];
    const bool triangles = lop_factor_interleaved(what, n, dt);
    r.take = triangles ? -1 : factor_of(r.plan);
    PyArrayObject *flags = py_empty(&o->shape, o->dt);
    if (flags) py_buf(flags, o->dt, &out);
    if (flags && py_run_exec(&r, -1, NULL, &out) == 0) {
        if (triangles)
            found = Py_NewRef(flags);
        else if (r.blob && (owner = held(s, r.blob)))
            views = views_of(owner, r.blob,
                             &r.plan->slot[r.plan->step[r.plan->derive[r.take].step].arg[0]], what,
                             n, dt);
        if (views) found = PyTuple_Pack(2, flags, views);
        if (!found && !PyErr_Occurred())
            py_raise(s, LOP_INTERNAL, NULL, (PyObject *)self, "factor");
    }
    Py_XDECREF(views);
    Py_XDECREF(owner);
    Py_XDECREF(flags);
    py_run_close(&r);
    return found;
}

/* _factored(what): of LU, L L^H, L D L^T, L D L^H (0 to 3) what solves keep of this operator:
 * (flags, (factor, exchanges, beside)), flags not 0 where there is none; of small real L L^H the
 * lower triangles, NaN in the first place where there is none. NotImplemented: solves keep none. */
PyObject *py_factored(PyObject *self, PyObject *arg) {
    py_state *s = py_state_of(self);
    py_op *op = (py_op *)self;
    const int64_t what = PyLong_AsLongLong(arg);
    if (what == -1 && PyErr_Occurred()) return NULL;
    if (what < 0 || what > LOP_FACTOR_LDLH)
        return PyErr_Format(PyExc_ValueError, "no such factor: %lld", (long long)what);
    const lop_node *node = py_node(s, op);
    if (!node) return NULL;
    if (node->opaque || !lop_is_square(node) || !is_kept(node, what)) Py_RETURN_NOTIMPLEMENTED;
    for (int d = 0; d < node->shape.ndim; d++)
        if (node->shape.dim[d] == 0) Py_RETURN_NOTIMPLEMENTED;
    const int64_t n = lop_rows(node);
    const lop_dtype dt = dtype_of(node);
    py_plan want = {.act = ACT_FACTOR, .i = what};
    const py_plan *e = py_find_plan(s, op, &want, NULL, false);
    return e ? run(s, op, e, what, n, dt) : NULL;
}
