/* py_sparse_solver.c: the sparse solver outside the core hands the requests of sparse_solver.h to
 * Python (_sparse/solver.py), with the GIL taken for the call.
 *
 * Arrays go as copies: what Python keeps must not change with the user's. A factor is a Python
 * object that the derived value owns; the store drops it under the GIL. */
#include "py/module/py.h"

#include "kernels/dense/k_blas.h"
#include "kernels/common/kernels.h"
#include "ops/shared/scaled_pair.h"
#include "ops/shared/sparse_solver.h"

static bool ready(const lop_sparse *own) {
    py_state *s = own->user;
    if (!s->sparse_ready) {
        PyObject *r = py_call_hook(s, "sparse_ready", NULL, 0);
        const long solvers = r ? PyLong_AsLong(r) : 0; /* SciPy; and CHOLMOD */
        s->sparse_ready = solvers > 0 ? 2 : 1;
        if (solvers == 2) s->sparse.name = "CHOLMOD/SuperLU";
        Py_XDECREF(r);
        PyErr_Clear();
    }
    return s->sparse_ready == 2;
}

static PyObject *copy_of(const lop_mat *a) {
    const lop_shape shape = {.ndim = 2, .dim = {a->m, a->n}};
    PyArrayObject *out = py_empty(&shape, a->dt);
    if (!out) return NULL;
    const lop_mat to = {PyArray_DATA(out), a->m, a->n, a->n, 1, a->dt};
    lopk_copy(&to, a);
    return (PyObject *)out;
}

/* (program as bytes, tuple of the arrays from argument `first` on) into args; 0, or -1. */
static int program_of(const lop_call *c, int first, PyObject **args) {
    const lop_step *s = c->step;
    PyObject *arrays = PyTuple_New(s->n - first);
    args[0] = PyBytes_FromStringAndSize((const char *)s->data,
                                        (Py_ssize_t)((size_t)s->ndata * sizeof *s->data));
    args[1] = arrays;
    for (int i = first; arrays && i < s->n; i++) {
        PyObject *a = copy_of(c->a[i]);
        if (!a) return -1;
        PyTuple_SET_ITEM(arrays, i - first, a);
    }
    return args[0] && arrays ? 0 : -1;
}

/* The result goes where it is due; it must have that many elements. */
static int give(PyObject *r, const lop_mat *to) {
    PyArray_Descr *d = PyArray_DescrFromType(py_typenum(to->dt));
    PyArrayObject *a =
        (PyArrayObject *)PyArray_FromAny(r, d, 0, 0, NPY_ARRAY_CARRAY | NPY_ARRAY_FORCECAST, NULL);
    if (!a) return -1;
    const bool fits = PyArray_SIZE(a) == to->m * to->n;
    if (fits) {
        const lop_mat from = {PyArray_DATA(a), to->m, to->n, to->n, 1, to->dt};
        lopk_copy(to, &from);
    } else {
        PyErr_SetString(PyExc_RuntimeError, "the sparse solver gave an array of another size");
    }
    Py_DECREF(a);
    return fits ? 0 : -1;
}

static void release(void *object) { Py_DECREF((PyObject *)object); }

/* (object, bytes) */
static int keep(PyObject *r, const lop_mat *to) {
    PyObject *object;
    long long bytes;
    if (!PyArg_ParseTuple(r, "OL:factor", &object, &bytes)) return -1;
    lop_foreign *f = to->p;
    *f = (lop_foreign){Py_NewRef(object), bytes, release};
    return 0;
}

static int give_pair(PyObject *r, const lop_mat *to) {
    lop_pair p;
    if (!PyArg_ParseTuple(r, "ddd:det", &p.re, &p.im, &p.e)) return -1;
    lop_pair_store(to, lop_pair_scaled(p));
    return 0;
}

/* True, False: there is no answer that is good enough, or none at all. */
static lop_status status_of(PyObject *r, const lop_call *c) {
    if (r == Py_False) return LOP_SINGULAR;
    if (r != Py_True) return LOP_OK;
    return lop_fail(c->err, LOP_RANK, "Singular matrix: a pivot of its sparse factor is zero");
}

/* How near what is inverted is to a singular matrix, where `asked` is wanted of it. */
static int note_near(const lop_call *c, PyObject *factor, const char *asked) {
    if (!c->near) return 0;
    const double eps = lopk_eps(c->a[0]->dt);
    PyObject *near = PyObject_CallMethod(factor, "near", "ds", eps, asked);
    const double rcond = near ? PyFloat_AsDouble(near) : -1;
    Py_XDECREF(near);
    if (PyErr_Occurred()) return -1;
    lop_call_near(c, rcond, eps);
    return 0;
}

static lop_status run_locked(py_state *s, const lop_call *c, lop_asked what) {
    static const char *const names[] = {"factor", "solve", "det",      "diagonal",
                                        "trace",  "rows",  "singular", "entries"};
    const lop_foreign *f = what == LOP_SPARSE_FACTOR ? NULL : c->a[1]->p;
    PyObject *args[4] = {PyUnicode_FromString(names[what]), NULL, NULL, NULL}, *r = NULL;
    int n = 2, rc = args[0] ? 0 : -1;
    if (f) args[1] = Py_NewRef((PyObject *)f->object);
    if (rc == 0 && what == LOP_SPARSE_FACTOR) {
        rc = program_of(c, 1, args + 1);
        n = 3;
    } else if (rc == 0 && (what == LOP_SPARSE_TRACE || what == LOP_SPARSE_ROWS ||
                           what == LOP_SPARSE_ENTRIES)) {
        rc = program_of(c, 2, args + 2);
        n = 4;
    } else if (rc == 0 && what != LOP_SPARSE_DET && what != LOP_SPARSE_SINGULAR) {
        args[2] = PyLong_FromLongLong(c->step->attr.i[0]);
        rc = args[2] ? 0 : -1;
        n = 3;
        if (what == LOP_SPARSE_SOLVE) {
            args[n++] = copy_of(c->a[2]);
            rc = args[2] && args[3] ? 0 : -1;
        }
    }
    if (rc == 0) r = py_call_hook(s, "sparse", args, n);
    lop_status st = r ? status_of(r, c) : LOP_CALLBACK;
    if (st == LOP_OK && what != LOP_SPARSE_SINGULAR) {
        rc = what == LOP_SPARSE_FACTOR ? keep(r, c->a[0])
             : what == LOP_SPARSE_DET  ? give_pair(r, c->a[0])
                                       : give(r, c->a[0]);
        if (rc == 0 && f && what != LOP_SPARSE_DET) rc = note_near(c, f->object, names[what]);
        if (rc < 0) st = LOP_CALLBACK;
    }
    if (st == LOP_CALLBACK) (void)lop_fail(c->err, st, NULL);
    Py_XDECREF(r);
    for (int i = 0; i < 4; i++) Py_XDECREF(args[i]);
    return st;
}

static lop_status run(const lop_sparse *own, const lop_call *c, lop_asked what) {
    PyGILState_STATE gil = PyGILState_Ensure();
    lop_status st = run_locked(own->user, c, what);
    PyGILState_Release(gil);
    return st;
}

PyObject *py_sparse_makers(const lop_frame *f) {
    const lop_plan *p = f->plan;
    PyObject *found = PyDict_New();
    for (int i = 0; found && i < p->nstep; i++) {
        const int at = p->step[i].derived;
        const lop_foreign *own =
            at >= 0 && f->blob[at] && f->blob[at]->foreign ? f->blob[at]->data : NULL;
        if (!own || !own->object) continue;
        PyObject *name = PyObject_GetAttrString(own->object, "how"), *key = PyLong_FromLong(i);
        if (!name || !key || !PyUnicode_Check(name) || PyDict_SetItem(found, key, name) < 0)
            Py_CLEAR(found);
        Py_XDECREF(name);
        Py_XDECREF(key);
    }
    return found;
}

void py_sparse_open(py_state *s) {
    s->sparse = (lop_sparse){.ready = ready, .run = run, .name = "SuperLU", .user = s};
    s->ctx.sparse = &s->sparse;
}
