/* py_bound_product.c: bound products, see py_bound_product.h; and _Applied, by which Python has
 * them.
 *
 * A plan of one step on whole arrays is called at once, as on the direct road (py_fast_path.c):
 * some 10 ns and the kernel. Any other plan is run by lop_exec on the frame that stays open:
 * prepare steps ran the first time, fingerprints are not taken again. */
#include "py_bound_product.h"

#include <structmember.h>
#include <time.h>

/* -- the GIL, and signals */

static int64_t now(void) {
    struct timespec t;
    return timespec_get(&t, TIME_UTC) ? (int64_t)t.tv_sec * 1000000000 + t.tv_nsec : 0;
}

enum { PAUSE = 30000000, LONGEST = 1000000000 }; /* ns */

void py_gil_open(py_gil *g) { *g = (py_gil){NULL, 0, now(), PAUSE}; }

void py_gil_leave(py_gil *g) {
    if (!g->saved) g->saved = PyEval_SaveThread();
}

void py_gil_enter(py_gil *g) {
    if (g->saved) PyEval_RestoreThread(g->saved);
    g->saved = NULL;
}

lop_status py_gil_look(py_gil *g) {
    g->work = 0;
    int64_t t = now();
    if (t - g->last < g->pause && t >= g->last) return LOP_OK;
    bool taken = g->saved != NULL;
    py_gil_enter(g);
    g->last = now();
    const int64_t waited = 20 * (g->last - t); /* a switch of threads may take 5 ms */
    g->pause = waited < PAUSE ? PAUSE : waited < LONGEST ? waited : LONGEST;
    int rc = PyErr_CheckSignals();
    if (taken) py_gil_leave(g);
    return rc < 0 ? LOP_CALLBACK : LOP_OK;
}

bool py_gil_stop(void *gil) { return py_gil_look(gil) != LOP_OK; }

/* -- opening */

static int open_plan(py_bound *b, py_state *s) {
    py_plan want = {.act = b->mode, .dt = (int)b->dt, .nd = b->vec ? 1 : 2, .i = b->vec};
    want.dim[0] = b->cols;
    want.dim[1] = b->k;
    lop_shape xs = {.ndim = 2, .dim = {b->cols, b->k}};
    py_config_here(s);
    py_plan *e = py_find_plan(s, b->op, &want, &xs, true);
    if (!e) return -1;
    py_run_open(&b->run, s, b->op, e);
    b->rhs = e->rhs;
    b->direct = e->direct && e->rhs >= 0;
    const lop_plan *p = b->run.plan;
    const lop_slot *o = &p->slot[p->out];
    b->out_dt = o->dt;
    b->work = p->flops + p->bytes;
    lop_err_open(&b->err);
    lop_status st = lop_frame_open(
        &b->frame, p, b->run.keys ? (const uint64_t *)(void *)PyBytes_AS_STRING(b->run.keys) : NULL,
        &s->store, &b->err);
    if (st != LOP_OK) {
        py_run_close(&b->run);
        py_raise(s, st, &b->err, (PyObject *)b->op, "apply");
        return -1;
    }
    static double nothing; /* an address to begin with: rebound before anything runs */
    lop_buf x = {&nothing, b->dt, LOP_CPU, xs, {b->k > 0 ? b->k : 1, 1}}, y = x;
    y.dt = o->dt;
    y.shape.dim[0] = b->rows;
    int rc = py_run_bind(&b->run, &b->frame, b->rhs, &x, &b->err);
    if (rc == 0 && lop_frame_bind(&b->frame, p->nleaf, &y, &b->err) != LOP_OK) rc = -2;
    if (rc == 0) {
        const lop_step *step = p->step;
        b->frame.team.stop = py_gil_stop;
        b->frame.team.user = b->gil;
        if (b->direct) {
            lop_call_open(&b->call, step, NULL, &b->err);
            b->call.team = &b->frame.team;
            b->x_at = &b->frame.mat[p->leaf[b->rhs].slot].p;
            b->y_at = &b->frame.mat[p->out].p;
        }
        for (int j = 0; b->direct && j < step->n; j++) b->call.a[j] = &b->frame.mat[step->arg[j]];
        return 0;
    }
    lop_frame_close(&b->frame);
    py_run_close(&b->run);
    if (rc == -2) py_raise(s, b->err.status, &b->err, (PyObject *)b->op, "apply");
    return -1;
}

int py_bound_open(py_bound *b, py_state *s, py_op *op, py_gil *gil, int mode, lop_dtype dt,
                  int64_t k, bool vec) {
    memset(b, 0, offsetof(py_bound, run));
    const lop_node *node = py_node(s, op);
    if (!node) return -1;
    if (node->shape.ndim != 2) {
        char text[128];
        PyErr_Format(PyExc_ValueError, "an operator with batch dimensions cannot be bound: %s",
                     lop_shape_text(&node->shape, text, sizeof text));
        return -1;
    }
    if (k < 0 || (vec && k != 1) || dt == LOP_NO_DTYPE || mode < 0 || mode > 3) {
        PyErr_Format(PyExc_ValueError, "no such product: %lld columns, mode %d", (long long)k,
                     mode);
        return -1;
    }
    b->gil = gil;
    b->mode = mode;
    b->vec = vec;
    b->k = k;
    b->dt = b->out_dt = dt;
    b->rows = mode & LOP_T ? lop_cols(node) : lop_rows(node);
    b->cols = mode & LOP_T ? lop_rows(node) : lop_cols(node);
    b->foreign = node->opaque;
    b->op = (py_op *)Py_NewRef(op);
    if (b->foreign)
        b->out_dt = node->dtype == LOP_NO_DTYPE ? dt : lop_promote(node->dtype, dt);
    else if (open_plan(b, s) < 0) {
        Py_CLEAR(b->op);
        return -1;
    }
    b->work += (double)(b->rows + b->cols) * (double)k * 16;
    return 0;
}

int py_bound_close(py_bound *b) {
    int rc = 0;
    if (!b->op) return 0;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (!b->foreign) {
        int64_t fallbacks = b->frame.fallbacks;
        lop_frame_close(&b->frame);
        py_run_close(&b->run);
        if (fallbacks && !type) {
            PyObject *count = PyLong_FromLongLong(1), *args[2] = {(PyObject *)b->op, count};
            PyObject *ok = count ? py_call_hook(b->op->s, "fell_back", args, 2) : NULL;
            Py_XDECREF(count);
            Py_XDECREF(ok);
            if (!ok) rc = -1;
        }
    }
    Py_CLEAR(b->op);
    if (type) PyErr_Restore(type, value, trace);
    return rc;
}

/* -- running */

/* An array of its own with the numbers of x: what a callable is given it may keep. */
static PyObject *array_of(const py_bound *b, const void *x) {
    npy_intp dim[2] = {(npy_intp)b->cols, (npy_intp)b->k};
    PyObject *a = PyArray_SimpleNew(b->vec ? 1 : 2, dim, py_typenum(b->dt));
    if (a) memcpy(PyArray_DATA((PyArrayObject *)a), x, (size_t)PyArray_NBYTES((PyArrayObject *)a));
    return a;
}

/* The product as the plain walk has it, into y; -1 with an exception. */
static int run_foreign(py_bound *b, const void *x, void *y) {
    py_state *s = b->op->s;
    npy_intp dim[2] = {(npy_intp)b->rows, (npy_intp)b->k};
    PyObject *in = array_of(b, x), *made = NULL;
    PyArrayObject *out = NULL, *got = NULL;
    int rc = -1;
    if (!in) return -1;
    if (b->vec && b->mode == LOP_N) made = py_call_matvec(s, b->op, (PyArrayObject *)in);
    if (!made && !PyErr_Occurred()) {
        PyObject *mode = PyLong_FromLong(b->mode), *vec = PyBool_FromLong(b->vec);
        PyObject *args[4] = {(PyObject *)b->op, in, mode, vec};
        if (mode && vec) made = py_call_hook(s, "apply", args, 4);
        Py_XDECREF(mode);
        Py_XDECREF(vec);
    }
    if (made) got = (PyArrayObject *)PyArray_FROM_O(made);
    if (got)
        out = (PyArrayObject *)PyArray_SimpleNewFromData(b->vec ? 1 : 2, dim, py_typenum(b->out_dt),
                                                         y);
    if (out && PyArray_CanCastArrayTo(got, PyArray_DESCR(out), NPY_SAME_KIND_CASTING))
        rc = PyArray_CopyInto(out, got);
    else if (out)
        PyErr_Format(PyExc_TypeError,
                     "a product of dtype %S cannot be cast to %S, which is what the operator's "
                     "dtype and the vector's give: set the operator's dtype",
                     PyArray_DESCR(got), PyArray_DESCR(out));
    Py_XDECREF((PyObject *)out);
    Py_XDECREF((PyObject *)got);
    Py_XDECREF(made);
    Py_DECREF(in);
    return rc;
}

lop_status py_bound_run(py_bound *b, const void *x, void *y) {
    b->runs++;
    if (b->foreign) {
        bool taken = b->gil->saved != NULL;
        py_gil_enter(b->gil);
        int rc = run_foreign(b, x, y);
        if (taken) py_gil_leave(b->gil);
        return rc < 0 ? LOP_CALLBACK : LOP_OK;
    }
    if (b->direct) {
        *b->x_at = (void *)(uintptr_t)x;
        *b->y_at = y;
        return b->call.step->run(&b->call);
    }
    if (b->rhs >= 0) lop_frame_point(&b->frame, b->rhs, (void *)(uintptr_t)x);
    lop_frame_point(&b->frame, b->run.plan->nleaf, y);
    return lop_exec(&b->frame, &b->err);
}

/* -- from Python */

typedef struct applied {
    PyObject_HEAD py_gil gil;
    py_bound *b; /* NULL: closed */
    bool busy;
    double nogil_work;
} applied;

static int applied_traverse(applied *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    if (self->b) Py_VISIT(self->b->op);
    if (self->b && !self->b->foreign) Py_VISIT(self->b->run.leaves);
    return 0;
}

static int applied_close(applied *self) {
    py_bound *b = self->b;
    self->b = NULL;
    int rc = b ? py_bound_close(b) : 0;
    PyMem_Free(b);
    return rc;
}

static int applied_clear(applied *self) {
    if (!self->busy && applied_close(self) < 0) PyErr_WriteUnraisable((PyObject *)self);
    return 0;
}

static void applied_dealloc(applied *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    applied_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

/* _Applied(op, dtype, k=None, mode=0): k None: vectors. */
static PyObject *applied_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"op", "dtype", "k", "mode", NULL};
    py_state *s = py_state_of_type(type);
    PyObject *op, *dtype, *k = Py_None;
    int mode = 0;
    if (!s ||
        !PyArg_ParseTupleAndKeywords(args, kwargs, "OO|Oi:_Applied", names, &op, &dtype, &k, &mode))
        return NULL;
    if (!py_is_op(s, op)) return PyErr_Format(PyExc_TypeError, "not an operator: %R", op);
    long long columns = k == Py_None ? 1 : PyLong_AsLongLong(k);
    PyArray_Descr *descr = NULL;
    if (PyErr_Occurred() || !PyArray_DescrConverter(dtype, &descr)) return NULL;
    npy_intp none = 0;
    PyArrayObject *probe =
        (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, descr, 1, &none, NULL, NULL, 0, NULL);
    lop_dtype dt = probe ? py_dtype(probe) : LOP_NO_DTYPE;
    bool swapped = probe && PyArray_ISBYTESWAPPED(probe);
    Py_XDECREF((PyObject *)probe);
    if (!probe) return NULL;
    if (dt == LOP_NO_DTYPE || swapped)
        return PyErr_Format(PyExc_TypeError, "no products of dtype %R in C", dtype);
    applied *self = (applied *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->nogil_work = (double)s->nogil_work;
    py_bound *b = PyMem_Malloc(sizeof *b);
    py_gil_open(&self->gil);
    if (!b)
        PyErr_NoMemory();
    else if (py_bound_open(b, s, (py_op *)op, &self->gil, mode, dt, columns, k == Py_None) == 0) {
        self->b = b;
        return (PyObject *)self;
    }
    PyMem_Free(b);
    Py_DECREF(self);
    return NULL;
}

/* The array as one of that shape and dtype in C order: itself (new) or a copy. */
static PyArrayObject *in_order(const py_bound *b, PyObject *o, bool out) {
    lop_dtype dt = out ? b->out_dt : b->dt;
    int64_t n = out ? b->rows : b->cols;
    PyArrayObject *a = NULL;
    if (out && (!PyArray_Check(o) || py_dtype((PyArrayObject *)o) != dt ||
                !PyArray_ISCARRAY((PyArrayObject *)o))) {
        PyErr_SetString(PyExc_ValueError,
                        "out must be a writeable array in C order of the product's dtype");
        return NULL;
    }
    bool as_is = out || (PyArray_CheckExact(o) && py_dtype((PyArrayObject *)o) == dt &&
                         PyArray_ISCARRAY_RO((PyArrayObject *)o));
    a = (PyArrayObject *)(as_is ? Py_NewRef(o)
                                : PyArray_FROM_OTF(o, py_typenum(dt), NPY_ARRAY_CARRAY_RO));
    if (a && PyArray_NDIM(a) == (b->vec ? 1 : 2) && PyArray_DIM(a, 0) == (npy_intp)n &&
        (b->vec || PyArray_DIM(a, 1) == (npy_intp)b->k))
        return a;
    if (a)
        PyErr_Format(PyExc_ValueError,
                     "%s does not have the shape this was bound for: (%lld, %lld)",
                     out ? "out" : "x", (long long)n, (long long)b->k);
    Py_XDECREF((PyObject *)a);
    return NULL;
}

/* applied(x, out=None) */
static PyObject *applied_call(applied *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"x", "out", NULL};
    PyObject *x, *out = Py_None;
    py_bound *b = self->b;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:_Applied", names, &x, &out)) return NULL;
    if (!b || self->busy)
        return PyErr_Format(PyExc_RuntimeError,
                            b ? "these bound products are running: bind once for each thread"
                              : "these bound products are closed");
    PyArrayObject *in = in_order(b, x, false), *y = NULL;
    npy_intp dim[2] = {(npy_intp)b->rows, (npy_intp)b->k};
    if (!in) return NULL;
    if (out == Py_None)
        y = py_new_array(b->vec ? 1 : 2, dim, py_typenum(b->out_dt));
    else
        y = in_order(b, out, true);
    if (y && py_overlap(in, y)) {
        PyErr_SetString(PyExc_ValueError, "x and out overlap");
        Py_CLEAR(y);
    }
    if (y) {
        self->busy = true;
        if (!b->foreign && b->work > self->nogil_work) py_gil_leave(&self->gil);
        lop_status st = py_bound_run(b, PyArray_DATA(in), PyArray_DATA(y));
        py_gil_enter(&self->gil);
        self->busy = false;
        if (st != LOP_OK) {
            py_raise(b->op->s, st, &b->err, (PyObject *)b->op, "apply");
            Py_CLEAR(y);
        }
    }
    Py_DECREF(in);
    return (PyObject *)y;
}

static PyObject *applied_close_now(applied *self, PyObject *unused) {
    (void)unused;
    if (self->busy) return PyErr_Format(PyExc_RuntimeError, "these bound products are running");
    if (applied_close(self) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *applied_runs(applied *self, void *unused) {
    (void)unused;
    return PyLong_FromLongLong(self->b ? self->b->runs : 0);
}

static PyObject *applied_dtype(applied *self, void *unused) {
    (void)unused;
    return self->b ? py_descr(self->b->out_dt) : Py_NewRef(Py_None);
}

int py_applied_make_type(PyObject *module) {
    static PyMethodDef methods[] = {
        {"close", (PyCFunction)(void (*)(void))applied_close_now, METH_NOARGS,
         "close($self)\n--\n\nLets the leaves go, and keeps what was derived from them."},
        {NULL, NULL, 0, NULL}};
    static PyGetSetDef getset[] = {
        {"runs", (getter)applied_runs, NULL, "How many products have run.", NULL},
        {"dtype", (getter)applied_dtype, NULL, "Of the products.", NULL},
        {NULL, NULL, NULL, NULL, NULL}};
    PyType_Slot slots[] = {
        {Py_tp_new, applied_new},
        {Py_tp_dealloc, applied_dealloc},
        {Py_tp_traverse, applied_traverse},
        {Py_tp_clear, applied_clear},
        {Py_tp_call, applied_call},
        {Py_tp_methods, methods},
        {Py_tp_getset, getset},
        {Py_tp_doc, (void *)"Many products of one operator: planned once, its leaves read when it "
                            "is made (later writes to them need a new one)."},
        {0, NULL}};
    PyType_Spec spec = {"pylinop._core._Applied", sizeof(applied), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    int rc = type ? PyModule_AddObjectRef(module, "_Applied", type) : -1;
    Py_XDECREF(type);
    return rc;
}
