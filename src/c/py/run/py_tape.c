/* py_tape.c: what a program computes, written down; and a tape made of that description.
 *
 * A list that is set for a thread (_tape_record) gets, in order, a LazyArray for each value found,
 * and for each plan that ran
 *   (plan, keys, sources, views, arrays, given)
 * with the memory of its leaves and its result as (address, dtype, shape, strides in elements);
 * `arrays` keep that memory from being used again while the list lives; `given` are the arrays of
 * the leaves before they were laid out as kernels want them; and
 *   (None, array, agree)
 * for each matrix of which it was asked whether it is symmetric. */
#include "py_tape.h"

#include <fenv.h>

static const char plan_name[] = "pylinop.plan", tape_name[] = "pylinop.tape";

/* -- writing down */

static bool recorded(const py_state *s) {
    return s->tape && s->tape_thread == PyThread_get_thread_ident();
}

static void drop_plan(PyObject *capsule) {
    lop_plan_unref(PyCapsule_GetPointer(capsule, plan_name));
    py_state *s = PyCapsule_GetContext(capsule);
    py_state_unref(s);
}

static PyObject *plan_capsule(py_state *s, lop_plan *plan) {
    PyObject *capsule = PyCapsule_New(plan, plan_name, drop_plan);
    if (!capsule) return NULL;
    plan->refs++;
    s->refs++;
    if (PyCapsule_SetContext(capsule, s) == 0) return capsule;
    Py_DECREF(capsule);
    return NULL;
}

static PyObject *sizes_of(int n, const int64_t *size) {
    PyObject *made = PyTuple_New(n);
    for (int i = 0; made && i < n; i++) {
        PyObject *number = PyLong_FromLongLong(size[i]);
        if (number)
            PyTuple_SET_ITEM(made, i, number);
        else
            Py_CLEAR(made);
    }
    return made;
}

/* (address, dtype's character, shape, strides) */
static PyObject *view_of(const lop_buf *b) {
    PyArray_Descr *d = (PyArray_Descr *)py_descr(b->dt);
    PyObject *shape = sizes_of(b->shape.ndim, b->shape.dim), *r = NULL;
    PyObject *strides = sizes_of(b->shape.ndim, b->stride);
    if (d && shape && strides)
        r = Py_BuildValue("KCOO", (unsigned long long)(uintptr_t)b->p, (int)d->type, shape,
                          strides);
    Py_XDECREF(d);
    Py_XDECREF(shape);
    Py_XDECREF(strides);
    return r;
}

static PyObject *numbers_of(const py_run *r) {
    const lop_coefs *c = r->plan->coefs;
    const int n = c ? c->sources : 0;
    PyObject *made = PyTuple_New(n);
    const lop_number *own = c && r->keys
                                ? (const lop_number *)(const void *)(PyBytes_AS_STRING(r->keys) +
                                                                     8 * lop_plan_nkeys(r->plan))
                                : NULL;
    for (int i = 0; made && i < n; i++) {
        const lop_number number = own ? own[i + 1] : c->entry[i + 1].value;
        PyObject *x = number.im == 0 ? PyFloat_FromDouble(number.re)
                                     : PyComplex_FromDoubles(number.re, number.im);
        if (x)
            PyTuple_SET_ITEM(made, i, x);
        else
            Py_CLEAR(made);
    }
    return made;
}

static PyObject *keys_of(const py_run *r) {
    const uint64_t *key =
        r->keys ? (const uint64_t *)(const void *)PyBytes_AS_STRING(r->keys) : r->plan->key;
    return PyBytes_FromStringAndSize((const char *)(const void *)key,
                                     (Py_ssize_t)lop_plan_nkeys(r->plan) * 8);
}

static PyObject *views_of(const py_run *r, const lop_frame *f) {
    PyObject *views = PyTuple_New(r->plan->nleaf + 1);
    for (int i = 0; views && i <= r->plan->nleaf; i++) {
        PyObject *view = view_of(&f->leaf[i]);
        if (view)
            PyTuple_SET_ITEM(views, i, view);
        else
            Py_CLEAR(views);
    }
    return views;
}

static PyObject *arrays_of(const py_run *r) {
    PyObject *arrays = PyTuple_New(r->nheld + 2);
    for (int i = 0; arrays && i < r->nheld; i++)
        PyTuple_SET_ITEM(arrays, i, Py_NewRef((PyObject *)r->held[i]));
    for (int i = 0; arrays && i < 2; i++)
        PyTuple_SET_ITEM(arrays, r->nheld + i, Py_NewRef(r->used[i] ? r->used[i] : Py_None));
    return arrays;
}

static PyObject *given_of(const py_run *r) {
    PyObject *given = PyTuple_New(PyTuple_GET_SIZE(r->leaves));
    for (Py_ssize_t i = 0; given && i < PyTuple_GET_SIZE(r->leaves); i++) {
        PyObject *a = PyTuple_GET_ITEM(r->leaves, i);
        if (a == Py_None && r->used[2]) a = r->used[2];
        PyTuple_SET_ITEM(given, i, Py_NewRef(a));
    }
    return given;
}

int py_tape_plan(const py_run *r, const lop_frame *f) {
    if (!recorded(r->s)) return 0;
    enum { FIELDS = 6 };
    PyObject *row[FIELDS] = {plan_capsule(r->s, r->plan),
                             keys_of(r),
                             numbers_of(r),
                             views_of(r, f),
                             arrays_of(r),
                             given_of(r)};
    PyObject *made = PyTuple_New(FIELDS);
    bool fine = made != NULL;
    for (int i = 0; i < FIELDS; i++) {
        fine = fine && row[i];
        if (made && row[i])
            PyTuple_SET_ITEM(made, i, row[i]);
        else
            Py_XDECREF(row[i]);
    }
    const int rc = fine ? PyList_Append(r->s->tape, made) : -1;
    Py_XDECREF(made);
    return rc;
}

int py_tape_value(py_lazy *a) {
    return recorded(a->s) ? PyList_Append(a->s->tape, (PyObject *)a) : 0;
}

int py_tape_halves(const py_state *s, PyArrayObject *a, bool agree) {
    if (!recorded(s)) return 0;
    PyObject *row = Py_BuildValue("(OOi)", Py_None, (PyObject *)a, (int)agree);
    const int rc = row ? PyList_Append(s->tape, row) : -1;
    Py_XDECREF(row);
    return rc;
}

/* _tape_record(list or None): for this thread. False: another one is being written. */
static PyObject *record(PyObject *module, PyObject *to) {
    py_state *s = *(py_state **)PyModule_GetState(module);
    if (to != Py_None && !PyList_Check(to)) return PyErr_Format(PyExc_TypeError, "a list is due");
    if (to != Py_None && s->tape) Py_RETURN_FALSE;
    if (to == Py_None && !recorded(s)) Py_RETURN_FALSE;
    Py_XSETREF(s->tape, to == Py_None ? NULL : Py_NewRef(to));
    s->tape_thread = PyThread_get_thread_ident();
    py_config_read(s);
    Py_RETURN_TRUE;
}

/* _tape_note(a, found): the value of a is about to be made of that array. */
static PyObject *note(PyObject *module, PyObject *args) {
    py_state *s = *(py_state **)PyModule_GetState(module);
    if (!recorded(s)) Py_RETURN_NONE;
    if (!PyTuple_CheckExact(args) || PyTuple_GET_SIZE(args) != 2)
        return PyErr_Format(PyExc_TypeError, "a LazyArray and an array are due");
    return PyList_Append(s->tape, args) < 0 ? NULL : Py_NewRef(Py_None);
}

/* -- making */

/* Up to LOP_MAXDIM sizes; their number, or -1 with an exception. */
static int read_sizes(PyObject *tuple, int64_t *size) {
    const Py_ssize_t n = PyTuple_CheckExact(tuple) ? PyTuple_GET_SIZE(tuple) : -1;
    if (n < 0 || n > LOP_MAXDIM) return PyErr_SetString(PyExc_ValueError, "dimensions"), -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        size[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i));
        if (size[i] == -1 && PyErr_Occurred()) return -1;
    }
    return (int)n;
}

/* (slot, offset, dtype, shape, strides) */
static int read_view(PyObject *o, lop_tape_view *v) {
    PyObject *shape, *strides;
    long long offset;
    int letter;
    memset(v, 0, sizeof *v);
    if (!PyTuple_CheckExact(o)) return PyErr_SetString(PyExc_TypeError, "a view is a tuple"), -1;
    if (!PyArg_ParseTuple(o, "iLCOO:view", &v->slot, &offset, &letter, &shape, &strides)) return -1;
    v->offset = offset;
    lop_dtype dt = py_dtype_of_letter(letter);
    if (dt == LOP_NO_DTYPE) return PyErr_SetString(PyExc_TypeError, "dtype of a view"), -1;
    v->buf.dt = dt;
    v->buf.shape.ndim = read_sizes(shape, v->buf.shape.dim);
    if (v->buf.shape.ndim < 0) return -1;
    const int n = read_sizes(strides, v->buf.stride);
    if (n >= 0 && n != v->buf.shape.ndim) PyErr_SetString(PyExc_ValueError, "strides of a view");
    return n == v->buf.shape.ndim ? 0 : -1;
}

/* A tuple of views, into new memory of the context. */
static int read_views(lop_ctx *ctx, PyObject *tuple, lop_tape_view **view, int *count) {
    if (!PyTuple_CheckExact(tuple)) return PyErr_SetString(PyExc_TypeError, "views"), -1;
    const Py_ssize_t n = PyTuple_GET_SIZE(tuple);
    *count = 0;
    *view = lop_calloc(ctx, (size_t)n + 1, sizeof **view);
    if (!*view) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < n; i++)
        if (read_view(PyTuple_GET_ITEM(tuple, i), &(*view)[i]) < 0) return -1;
    *count = (int)n;
    return 0;
}

/* A tuple of (view or None, factor, over). */
static int read_sources(lop_ctx *ctx, PyObject *tuple, lop_tape_step *s) {
    if (!PyTuple_CheckExact(tuple)) return PyErr_SetString(PyExc_TypeError, "sources"), -1;
    const Py_ssize_t n = PyTuple_GET_SIZE(tuple);
    s->source = lop_calloc(ctx, (size_t)n + 1, sizeof *s->source);
    if (!s->source) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *at;
        int over;
        lop_tape_source *source = &s->source[i];
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(tuple, i), "Odp:source", &at, &source->factor,
                              &over))
            return -1;
        source->over = over != 0;
        source->at.slot = -1;
        if (at != Py_None && read_view(at, &source->at) < 0) return -1;
    }
    s->nsources = (int)n;
    return 0;
}

/* (what, axis, plan or ufunc or None, keys or dtypes, views, sources, result) */
static int read_step(lop_ctx *ctx, PyObject *o, lop_tape_step *s) {
    PyObject *plan, *keys, *views, *sources, *out;
    int what;
    if (!PyArg_ParseTuple(o, "iiOSOOO:step", &what, &s->axis, &plan, &keys, &views, &sources, &out))
        return -1;
    if (what < 0 || what >= LOP_TAPE_FUNCTIONS) {
        PyErr_SetString(PyExc_ValueError, "no such function");
        return -1;
    }
    s->what = (lop_tape_what)what;
    if (!PyBytes_CheckExact(keys)) return PyErr_SetString(PyExc_TypeError, "bytes are due"), -1;
    const bool loops = what == LOP_TAPE_LOOP || what == LOP_TAPE_SUMS || what == LOP_TAPE_REDUCE ||
                       what == LOP_TAPE_RUN;
    int nargs = what == LOP_TAPE_CHOOSE ? 3 : 1;
    if (loops) {
        const char *letters = PyBytes_AS_STRING(keys);
        const int known =
            py_ufunc_loop(plan, letters, PyBytes_GET_SIZE(keys), &s->loop.run, &s->loop.data);
        if (known < 1 || known > LOP_TAPE_LOOP_ARGS || (what != LOP_TAPE_LOOP && known != 2))
            return PyErr_SetString(PyExc_TypeError, "a ufunc's loop for these dtypes"), -1;
        nargs = what == LOP_TAPE_LOOP ? known : 1;
    } else if (plan != Py_None) {
        lop_plan *p = PyCapsule_GetPointer(plan, plan_name);
        if (!p) return -1;
        const size_t own = (size_t)lop_plan_nkeys(p) * 8;
        if ((size_t)PyBytes_GET_SIZE(keys) != own)
            return PyErr_SetString(PyExc_ValueError, "keys of a plan"), -1;
        s->key = lop_alloc(ctx, own + 1);
        if (!s->key) return PyErr_NoMemory(), -1;
        memcpy(s->key, PyBytes_AS_STRING(keys), own);
        s->plan = p;
        p->refs++;
    }
    if ((s->what == LOP_TAPE_PLAN) != (s->plan != NULL) || (!loops && !s->plan && plan != Py_None))
        return PyErr_SetString(PyExc_ValueError, "a step without its plan"), -1;
    if (read_views(ctx, views, &s->arg, &s->nargs) < 0 || read_sources(ctx, sources, s) < 0)
        return -1;
    const int most = what < LOP_TAPE_LOOP ? 2 : LOP_TAPE_LOOP_ARGS;
    if (what >= LOP_TAPE_LOOP && s->nargs != nargs)
        return PyErr_SetString(PyExc_ValueError, "arguments of a loop"), -1;
    if (!s->plan && (s->nargs < 1 || s->nargs > most))
        return PyErr_Format(PyExc_ValueError, "one to %d arguments", most), -1;
    return read_view(out, &s->out);
}

/* A slot: its bytes, or a constant's. */
static int read_slot(lop_ctx *ctx, PyObject *o, lop_tape_slot *s) {
    if (PyBytes_CheckExact(o)) {
        s->bytes = PyBytes_GET_SIZE(o);
        s->constant = lop_alloc(ctx, (size_t)s->bytes + 1);
        if (!s->constant) return PyErr_NoMemory(), -1;
        memcpy(s->constant, PyBytes_AS_STRING(o), (size_t)s->bytes);
        return 0;
    }
    s->bytes = PyLong_AsLongLong(o);
    if (s->bytes < 0 && !PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "bytes of a slot");
    return s->bytes < 0 ? -1 : 0;
}

/* A tuple of (kind, behind, arrays, offsets), in pre-order: see tape_proof.h. */
static int read_proof(lop_tape *t, PyObject *rows) {
    const Py_ssize_t n = PyTuple_GET_SIZE(rows);
    if (n == 0) return 0;
    t->proof = lop_calloc(t->ctx, (size_t)n, sizeof *t->proof);
    if (!t->proof) return PyErr_NoMemory(), -1;
    for (Py_ssize_t k = 0; k < n; k++) {
        lop_proof *p = &t->proof[k];
        PyObject *arrays, *offsets;
        int kind;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(rows, k), "iiO!O!:proof", &kind, &p->behind,
                              &PyTuple_Type, &arrays, &PyTuple_Type, &offsets))
            return -1;
        p->kind = (lop_proof_kind)kind;
        p->narrays = (int)PyTuple_GET_SIZE(arrays);
        bool fits = kind >= 0 && kind < LOP_PROOF_KINDS && p->behind > 0 && p->behind <= n - k &&
                    PyTuple_GET_SIZE(arrays) <= LOP_PROOF_ARRAYS &&
                    PyTuple_GET_SIZE(offsets) == PyTuple_GET_SIZE(arrays);
        for (int i = 0; fits && i < p->narrays; i++) {
            p->array[i] = (int)PyLong_AsLong(PyTuple_GET_ITEM(arrays, i));
            p->offset[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(offsets, i));
            fits = !PyErr_Occurred() && p->array[i] >= 0 && p->array[i] < t->nin;
        }
        if (!fits) return PyErr_SetString(PyExc_ValueError, "a proof of that form"), -1;
    }
    return 0;
}

static void drop_tape(PyObject *capsule) {
    py_state *s = PyCapsule_GetContext(capsule);
    lop_tape_free(PyCapsule_GetPointer(capsule, tape_name));
    if (s) py_state_unref(s);
}

static int fill(lop_tape *t, PyObject *slots, PyObject *steps, PyObject *out) {
    for (int i = 0; i < t->nslot; i++)
        if (read_slot(t->ctx, PyTuple_GET_ITEM(slots, i), &t->slot[i]) < 0) return -1;
    for (int i = 0; i < t->nstep; i++)
        if (read_step(t->ctx, PyTuple_GET_ITEM(steps, i), &t->step[i]) < 0) return -1;
    for (int i = 0; i < t->nout; i++)
        if (read_view(PyTuple_GET_ITEM(out, i), &t->out[i]) < 0) return -1;
    return 0;
}

/* _tape_new(nin, slots, steps, results, quiet, proof): a tape. */
static PyObject *new(PyObject *module, PyObject *args) {
    py_state *s = *(py_state **)PyModule_GetState(module);
    PyObject *slots, *steps, *out, *proof;
    int nin, quiet;
    if (!PyArg_ParseTuple(args, "iO!O!O!pO!:_tape_new", &nin, &PyTuple_Type, &slots, &PyTuple_Type,
                          &steps, &PyTuple_Type, &out, &quiet, &PyTuple_Type, &proof))
        return NULL;
    if (nin < 0 || nin > PyTuple_GET_SIZE(slots) || PyTuple_GET_SIZE(slots) > 10000 ||
        PyTuple_GET_SIZE(steps) > 10000 || PyTuple_GET_SIZE(out) > PY_TAPE_ARRAYS)
        return PyErr_Format(PyExc_ValueError, "a tape of that size");
    lop_tape *t;
    lop_err err;
    lop_err_open(&err);
    if (lop_tape_new(&s->ctx, nin, (int)PyTuple_GET_SIZE(slots), (int)PyTuple_GET_SIZE(steps),
                     (int)PyTuple_GET_SIZE(out), &t) != LOP_OK)
        return PyErr_NoMemory();
    t->quiet = quiet != 0;
    PyObject *capsule = NULL;
    if (fill(t, slots, steps, out) == 0 && read_proof(t, proof) == 0) {
        if (lop_tape_close(t, &err) == LOP_OK)
            capsule = PyCapsule_New(t, tape_name, drop_tape);
        else
            py_raise(s, err.status, &err, NULL, "freeze");
    }
    if (!capsule) {
        lop_tape_free(t);
        return NULL;
    }
    s->refs++;
    if (PyCapsule_SetContext(capsule, s) < 0) Py_CLEAR(capsule);
    return capsule;
}

static bool all_arrays(PyObject *tuple) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++)
        if (!PyArray_Check(PyTuple_GET_ITEM(tuple, i))) return false;
    return true;
}

/* _tape_run(tape, arrays, results): False: not for these values. */
static PyObject *run(PyObject *module, PyObject *args) {
    py_state *s = *(py_state **)PyModule_GetState(module);
    PyObject *capsule, *in, *out;
    lop_buf at[PY_TAPE_ARRAYS], buf[PY_TAPE_ARRAYS];
    lop_err err;
    lop_err_open(&err);
    if (!PyArg_ParseTuple(args, "OO!O!:_tape_run", &capsule, &PyTuple_Type, &in, &PyTuple_Type,
                          &out))
        return NULL;
    const lop_tape *t = PyCapsule_GetPointer(capsule, tape_name);
    if (!t) return NULL;
    if (PyTuple_GET_SIZE(in) != t->nin || PyTuple_GET_SIZE(out) != t->nout ||
        t->nin > PY_TAPE_ARRAYS)
        return PyErr_Format(PyExc_ValueError, "a tape of %d arrays and %d results", t->nin,
                            t->nout);
    if (!all_arrays(in) || !all_arrays(out))
        return PyErr_Format(PyExc_TypeError, "a tape takes arrays of NumPy, its scalars are none");
    for (int i = 0; i < t->nin; i++) {
        PyArrayObject *a = (PyArrayObject *)PyTuple_GET_ITEM(in, i);
        if (PyArray_NDIM(a) > LOP_MAXDIM || py_dtype(a) == LOP_NO_DTYPE) Py_RETURN_FALSE;
        py_buf(a, py_dtype(a), &at[i]);
    }
    for (int i = 0; i < t->nout; i++) {
        PyArrayObject *o = (PyArrayObject *)PyTuple_GET_ITEM(out, i);
        if (PyArray_NDIM(o) > LOP_MAXDIM || py_dtype(o) == LOP_NO_DTYPE) Py_RETURN_FALSE;
        py_buf(o, py_dtype(o), &buf[i]);
    }
    const lop_status st = lop_tape_run(t, at, buf, &err);
    if (PyErr_Occurred()) return NULL; /* a loop of SciPy's */
    if (st == LOP_UNABLE) Py_RETURN_FALSE;
    if (st != LOP_OK) return py_raise(s, st, &err, NULL, "run");
    Py_RETURN_TRUE;
}

/* Arrays of NumPy as a tape binds them; false: they are not for one. */
static bool bufs_of(PyObject *arrays, lop_buf *buf) {
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(arrays); k++) {
        PyArrayObject *a = (PyArrayObject *)PyTuple_GET_ITEM(arrays, k);
        int64_t dim[LOP_MAXDIM], step[LOP_MAXDIM];
        if (!PyArray_CheckExact(a) || PyArray_NDIM(a) > LOP_MAXDIM || !PyArray_ISNOTSWAPPED(a))
            return false;
        for (int i = 0; i < PyArray_NDIM(a); i++) {
            dim[i] = PyArray_DIM(a, i);
            step[i] = PyArray_STRIDE(a, i);
        }
        if (!py_tape_buf(&buf[k], py_dtype(a), PyArray_DATA(a), PyArray_NDIM(a), dim, step))
            return false;
    }
    return true;
}

/* Does NumPy say a word of numbers that are too small? Seldom; of the others a tape is not for
 * these numbers (tape_loops.c). 1, 0, or -1. */
static int minds_underflow(void) {
    PyObject *numpy = PyImport_ImportModule("numpy"),
             *states = numpy ? PyObject_CallMethod(numpy, "geterr", NULL) : NULL,
             *state = states ? PyMapping_GetItemString(states, "under") : NULL;
    const int minds = state ? PyUnicode_CompareWithASCIIString(state, "ignore") != 0 : -1;
    Py_XDECREF(state);
    Py_XDECREF(states);
    Py_XDECREF(numpy);
    return minds;
}

/* _tape_call(text, arrays, results): runs the tape of a program on arrays: True. Where there is
 * none, or it is not for these values: the key that one would have; None: there cannot be one. */
static PyObject *call(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *text, *in, *out;
    lop_buf buf[PY_TAPE_ARRAYS];
    py_tape_key_t key;
    if (!PyArg_ParseTuple(args, "SO!O!:_tape_call", &text, &PyTuple_Type, &in, &PyTuple_Type, &out))
        return NULL;
    const Py_ssize_t nin = PyTuple_GET_SIZE(in), nout = PyTuple_GET_SIZE(out);
    if (nin > PY_TAPE_ARRAYS - nout || !bufs_of(in, buf) || !bufs_of(out, buf + nin) ||
        !py_tape_key(&key, PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text), buf, nin + nout))
        Py_RETURN_NONE;
    bool done, vanished;
    Py_BEGIN_ALLOW_THREADS;
    if (fetestexcept(FE_UNDERFLOW)) feclearexcept(FE_UNDERFLOW);
    done = py_tape_call(&key, buf, (int)nin, (int)nout);
    vanished = done && fetestexcept(FE_UNDERFLOW);
    Py_END_ALLOW_THREADS;
    if (PyErr_Occurred()) return NULL; /* loops of SciPy's raise, if asked to */
    const int minds = vanished ? minds_underflow() : 0;
    if (minds < 0) return NULL;
    if (done && !minds) Py_RETURN_TRUE;
    return PyBytes_FromStringAndSize((const char *)key.bytes, (Py_ssize_t)key.size);
}

/* _tape_put(key, tape, epoch): it is there for calls from C, as long as the options are those of
 * the epoch. The capsule has it no more. */
static PyObject *put(PyObject *module, PyObject *args) {
    py_state *s = *(py_state **)PyModule_GetState(module);
    PyObject *key, *capsule;
    unsigned long long epoch;
    if (!PyArg_ParseTuple(args, "SOK:_tape_put", &key, &capsule, &epoch)) return NULL;
    lop_tape *t = PyCapsule_GetPointer(capsule, tape_name);
    if (!t) return NULL;
    if (PyCapsule_SetName(capsule, NULL) < 0 || PyCapsule_SetDestructor(capsule, NULL) < 0)
        return NULL;
    /* its count of the state stays: the tape's own, as long as it is kept */
    if (py_tape_put(s, PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key), t, epoch) < 0) return NULL;
    Py_RETURN_NONE;
}

/* _tape_there(key): is there one? */
static PyObject *there(PyObject *module, PyObject *key) {
    (void)module;
    if (!PyBytes_CheckExact(key)) return PyErr_Format(PyExc_TypeError, "bytes are due");
    return PyBool_FromLong(py_tape_holds(PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key)));
}

/* _tape_forget(): tapes are of options that hold no more. */
static PyObject *forget(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    py_tape_epoch();
    Py_RETURN_NONE;
}

static PyObject *counts(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    return py_tape_counts();
}

PyMethodDef py_tape_methods[] = {
    {"_tape_record", record, METH_O, NULL},      {"_tape_note", note, METH_VARARGS, NULL},
    {"_tape_new", new, METH_VARARGS, NULL},      {"_tape_run", run, METH_VARARGS, NULL},
    {"_tape_call", call, METH_VARARGS, NULL},    {"_tape_put", put, METH_VARARGS, NULL},
    {"_tape_there", there, METH_O, NULL},        {"_tape_forget", forget, METH_NOARGS, NULL},
    {"_tape_counts", counts, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};
