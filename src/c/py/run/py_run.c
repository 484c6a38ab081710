/* py_run.c: from a call to a result: the plan (py_plans.c), bind, execute, hand out.
 *
 *   shape and dtype of x --cache--> plan --arrays of the leaves, x, out--> frame --no GIL--> result
 */
#include "py_bound_product.h"
#include "py_tape.h"

#include <math.h>

/* -- running */

typedef py_run run;

void py_run_open(run *r, py_state *s, py_op *self, const py_plan *e) {
    r->s = s;
    r->self = self;
    r->plan = e->plan;
    r->plan->refs++;
    r->leaves = Py_NewRef(e->leaves);
    r->keys = Py_XNewRef(e->keys);
    r->held = r->held_few;
    r->nheld = 0;
    r->take = -1;
    r->blob = NULL;
    r->used[0] = r->used[1] = r->used[2] = NULL;
    r->spoilt = false;
}

/* Raises where copies of operands that kernels do not take as they lie would, beside what the plan
 * takes, pass the memory limit: 0, or -1 with an exception. *copied grows by a's. */
static int room_for_copy(const run *r, PyArrayObject *a, const lop_slot *slot, int64_t *copied) {
    const int64_t limit = r->s->ctx.memory_limit,
                  own = lop_plan_memory(r->plan) - lop_plan_result(r->plan);
    if (limit == INT64_MAX || py_is_normal(a, slot->core, slot->need_c)) return 0;
    *copied += (int64_t)PyArray_SIZE(a) * PyArray_ITEMSIZE(a);
    if (*copied <= limit - own) return 0;
    PyObject *sizes = Py_BuildValue("LL", (long long)(*copied + own), (long long)*copied),
             *args[2] = {(PyObject *)r->self, sizes},
             *done = sizes ? py_call_hook(r->s, "copies_pass_limit", args, 2) : NULL;
    Py_XDECREF(sizes);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* Leaf i: may its memory change? What is derived has an owner where all leaves have the same. */
static void note_frozen(const run *r, lop_frame *f, int i, PyArrayObject *given,
                        const PyArrayObject *bound) {
    uint64_t owner;
    const bool frozen = py_frozen(r->s, given, &owner);
    if (frozen && given == bound && i < LOP_KEEP) f->frozen |= (uint64_t)1 << i;
    f->owner = r->nheld == 0 || f->owner == owner ? owner : 0;
}

int py_run_bind(run *r, lop_frame *f, int rhs, const lop_buf *x, lop_err *err) {
    const lop_plan *p = r->plan;
    if (p->nleaf > PY_HELD && !(r->held = PyMem_Calloc((size_t)p->nleaf, sizeof *r->held))) {
        PyErr_NoMemory();
        return -1;
    }
    int64_t copied = 0;
    for (int i = 0; i < p->nleaf; i++) {
        lop_buf buf;
        const lop_slot *slot = &p->slot[p->leaf[i].slot];
        if (i == rhs) {
            if (lop_frame_bind(f, i, x, err) != LOP_OK) return -2;
            continue;
        }
        PyArrayObject *a = (PyArrayObject *)PyTuple_GET_ITEM(r->leaves, i);
        if (PyArray_NDIM(a) > LOP_MAXDIM)
            return lop_fail(err, LOP_DIM, "an operand now has %d dimensions", PyArray_NDIM(a)), -2;
        if (room_for_copy(r, a, slot, &copied) < 0) return -1;
        PyArrayObject *given = a;
        a = py_normal(a, slot->core, slot->need_c);
        if (!a) return -1;
        if (p->nderive) note_frozen(r, f, i, given, a);
        r->held[r->nheld++] = a;
        py_buf(a, py_dtype(a), &buf);
        if (lop_frame_bind(f, i, &buf, err) != LOP_OK) return -2;
    }
    return 0;
}

void py_run_close(run *r) {
    for (int i = 0; i < r->nheld; i++) Py_DECREF(r->held[i]);
    if (r->held != r->held_few) PyMem_Free(r->held);
    lop_plan_unref(r->plan);
    Py_XDECREF(r->leaves);
    Py_XDECREF(r->keys);
}

/* What was assumed positive definite is not: a determinant then is an error, unless the user
 * trusts what is assumed. NaN passes through. The result becomes NaN where the hook says so: 1. */
static int tell_fallbacks(run *r, int64_t fallbacks, const lop_buf *out) {
    /* a determinant is of doubles, whatever the dtype */
    const bool of_det = r->plan->written->op == &lop_op_scaledet,
               one = r->plan->slot[r->plan->out].batch == 1,
               nan = of_det && one && isnan(*(double *)out->p),
               det = of_det && !nan && r->s->ctx.check != LOP_CHECK_NONE;
    PyObject *count = PyLong_FromLongLong(fallbacks), *asked = PyBool_FromLong(det),
             *args[3] = {(PyObject *)r->self, count, asked};
    PyObject *spoil = count ? py_call_hook(r->s, "fell_back", args, 3) : NULL;
    const int rc = spoil ? spoil == Py_True : -1;
    Py_XDECREF(count);
    Py_XDECREF(asked);
    Py_XDECREF(spoil);
    return rc;
}

/* A matrix that was solved with is singular to working precision. */
static int warn_near(run *r, double rcond) {
    PyObject *number = PyFloat_FromDouble(rcond), *args[2] = {(PyObject *)r->self, number};
    PyObject *ok = number ? py_call_hook(r->s, "ill_conditioned", args, 2) : NULL;
    Py_XDECREF(number);
    Py_XDECREF(ok);
    return ok ? 0 : -1;
}

/* What the derived values of a call that needs no fallback take, as estimated. */
static double seconds_of_derived(const lop_plan *p) {
    double sum = 0;
    for (int i = 0; i < p->nderive; i++)
        if (p->step[p->derive[i].step].late < 0 && !p->derive[i].again)
            sum += lop_step_seconds(p, p->derive[i].step);
    return sum;
}

int py_run_exec(run *r, int rhs, const lop_buf *x, const lop_buf *out) {
    lop_err err;
    lop_err_open(&err);
    lop_frame frame;
    const uint64_t *key = r->keys ? (const uint64_t *)(void *)PyBytes_AS_STRING(r->keys) : NULL;
    lop_status st = lop_frame_open(&frame, r->plan, key, &r->s->store, &err);
    if (st != LOP_OK) {
        py_raise(r->s, st, &err, (PyObject *)r->self, "apply");
        return -1;
    }
    int rc = py_run_bind(r, &frame, rhs, x, &err);
    const uint64_t holder = py_holder();
    if (holder) {
        frame.owner = holder;
        py_derives(seconds_of_derived(r->plan));
    }
    if (rc == 0 && r->s->record) {
        frame.times = PyMem_Calloc((size_t)r->plan->nstep + 1, sizeof *frame.times);
        if (!frame.times) rc = (PyErr_NoMemory(), -1);
    }
    if (rc == 0 && lop_frame_bind(&frame, r->plan->nleaf, out, &err) != LOP_OK) rc = -2;
    if (rc == 0) {
        if (r->plan->flops + r->plan->bytes > (double)r->s->nogil_work) {
            py_gil gil; /* ^C is looked for in its midst */
            py_gil_open(&gil);
            frame.team.stop = py_gil_stop;
            frame.team.user = &gil;
            py_gil_leave(&gil);
            st = lop_exec(&frame, &err);
            py_gil_enter(&gil);
        } else {
            st = lop_exec(&frame, &err);
        }
        if (st != LOP_OK) rc = -2;
    }
    if (rc == 0 && r->take >= 0 && frame.blob[r->take]) {
        r->blob = frame.blob[r->take];
        r->blob->refs++;
    }
    int spoil = rc == 0 && frame.fallbacks ? tell_fallbacks(r, frame.fallbacks, out) : 0;
    if (spoil < 0) rc = -1;
    if (spoil > 0) {
        lop_frame_spoil(&frame);
        r->spoilt = true;
    }
    if (rc == 0 && r->s->tape) rc = py_tape_plan(r, &frame);
    const lop_near near = frame.near;
    double *times = frame.times;
    PyObject *makers = rc == 0 && times ? py_sparse_makers(&frame) : NULL;
    lop_frame_close(&frame);
    if (rc == 0 && times) {
        py_config_here(r->s); /* another thread may have run since */
        rc = makers ? py_record(r->s, r->self, r->plan, times, makers, near.known) : -1;
    }
    Py_XDECREF(makers);
    PyMem_Free(times);
    if (rc == -2) py_raise(r->s, err.status, &err, (PyObject *)r->self, "apply");
    if (rc == 0 && near.told < 1 && !r->spoilt) rc = warn_near(r, near.told);
    return rc ? -1 : 0;
}

/* The array to compute into for `shape`; the user's `out` itself where it can be. */
static PyArrayObject *target(run *r, const lop_shape *shape, lop_dtype dt, PyArrayObject *out,
                             int core, bool c_order, PyArrayObject *x) {
    if (!out) return py_empty(shape, dt);
    bool direct = py_dtype(out) == dt && !(x && py_overlap(out, x)) &&
                  (!c_order || PyArray_IS_C_CONTIGUOUS(out));
    for (Py_ssize_t i = 0; direct && i < PyTuple_GET_SIZE(r->leaves); i++) {
        PyObject *a = PyTuple_GET_ITEM(r->leaves, i);
        if (a != Py_None && py_overlap(out, (PyArrayObject *)a)) direct = false;
    }
    if (direct) {
        PyArrayObject *same = py_normal(out, core, false);
        if (same == out || !same) return same;
        Py_DECREF(same);
    }
    return py_empty(shape, dt);
}

static int check_out(run *r, PyObject *out, const lop_shape *shape, lop_dtype dt) {
    char text[128], got[128];
    lop_err err;
    lop_err_open(&err);
    lop_status st = LOP_OK;
    if (!PyArray_Check(out)) {
        PyErr_Format(PyExc_TypeError, "out must be an array, got %.100s", Py_TYPE(out)->tp_name);
        return -1;
    }
    PyArrayObject *o = (PyArrayObject *)out;
    bool fits = PyArray_NDIM(o) == shape->ndim;
    for (int i = 0; fits && i < shape->ndim; i++) fits = PyArray_DIM(o, i) == shape->dim[i];
    if (!PyArray_ISWRITEABLE(o))
        st = lop_fail(&err, LOP_DOMAIN, "out is read-only");
    else if (!fits) {
        lop_shape is = {.ndim = PyArray_NDIM(o) > LOP_MAXDIM ? LOP_MAXDIM : PyArray_NDIM(o)};
        for (int i = 0; i < is.ndim; i++) is.dim[i] = PyArray_DIM(o, i);
        st = lop_fail(&err, LOP_DIM, "out has shape %s, the result %s",
                      lop_shape_text(&is, got, sizeof got),
                      lop_shape_text(shape, text, sizeof text));
    }
    if (st == LOP_OK) {
        PyArray_Descr *d = PyArray_DescrFromType(py_typenum(dt));
        bool cast = d && PyArray_CanCastTypeTo(d, PyArray_DESCR(o), NPY_SAME_KIND_CASTING);
        Py_XDECREF(d);
        if (!cast)
            st = lop_fail(&err, LOP_DTYPE, "the result of dtype %s cannot be cast to that of out",
                          lop_dtype_name(dt));
    }
    if (st != LOP_OK) py_raise(r->s, st, &err, (PyObject *)r->self, "write out");
    return st == LOP_OK ? 0 : -1;
}

/* Hands out `made` (taken over): into the user's out where it is another array. */
static PyObject *deliver(PyArrayObject *made, PyObject *out) {
    if (!out) return (PyObject *)made;
    int rc = (PyObject *)made == out ? 0 : PyArray_CopyInto((PyArrayObject *)out, made);
    Py_DECREF(made);
    return rc < 0 ? NULL : Py_NewRef(out);
}

/* x as (..., n, k): vectors get k = 1. False: too many dimensions for C. */
static bool rhs_buf(PyArrayObject *x, lop_dtype dt, bool right, bool vec, lop_buf *buf) {
    py_buf(x, dt, buf);
    int nd = buf->shape.ndim;
    if (vec) {
        if (nd + 1 > LOP_MAXDIM) return false;
        buf->shape.dim[nd] = 1;
        buf->stride[nd] = 1;
        buf->shape.ndim = nd + 1;
    } else if (right) {
        py_buf_transpose(buf);
    }
    return true;
}

PyObject *py_apply(py_state *s, py_op *self, PyArrayObject *x, int mode, bool right, bool vec,
                   PyObject *out) {
    lop_dtype dt = py_dtype(x);
    int nd = PyArray_NDIM(x);
    py_plan want = {.act = mode + (right ? 4 : 0), .dt = (int)dt, .nd = nd, .i = vec};
    if (dt == LOP_NO_DTYPE || nd + 1 > LOP_MAXDIM || nd < (vec ? 1 : 2) || !self->node ||
        self->node->opaque)
        Py_RETURN_NOTIMPLEMENTED;
    for (int i = 0; i < nd; i++) want.dim[i] = PyArray_DIM(x, i);
    lop_buf xbuf, obuf;
    PyArrayObject *xn = py_normal(x, vec ? 1 : 2, false);
    if (!xn) return NULL;
    (void)rhs_buf(xn, dt, right, vec, &xbuf);
    PyObject *other = out ? Py_NewRef(Py_None) : py_iterated(s, self, x, &want, &xbuf.shape);
    if (other == Py_None) Py_CLEAR(other);
    py_plan *e =
        other || PyErr_Occurred() ? NULL : py_find_plan(s, self, &want, &xbuf.shape, out != NULL);
    if (!e) {
        Py_DECREF(xn);
        return other;
    }
    run r;
    const bool verify = s->verify; /* the user's out stays as it is until then: x may lie in it */
    py_run_open(&r, s, self, e);
    int rhs = e->rhs;
    if (rhs >= 0 &&
        r.plan->slot[r.plan->leaf[rhs].slot].need_c) { /* C order of what the plan sees */
        PyArrayObject *seen = xn;
        if (right && !vec)
            seen = (PyArrayObject *)PyArray_SwapAxes(xn, nd - 2, nd - 1);
        else
            Py_INCREF(seen);
        Py_DECREF(xn);
        xn = seen ? py_normal(seen, vec ? 1 : 2, true) : NULL;
        Py_XDECREF(seen);
        if (!xn) {
            py_run_close(&r);
            return NULL;
        }
        (void)rhs_buf(xn, dt, false, vec, &xbuf);
    }
    const lop_slot *o = &r.plan->slot[r.plan->out];
    lop_shape shape = o->shape;
    bool flip = right && !vec, fortran = flip && o->need_c;
    if (vec) shape.ndim--;
    if (flip && !fortran) {
        shape.dim[shape.ndim - 1] = o->shape.dim[shape.ndim - 2];
        shape.dim[shape.ndim - 2] = o->shape.dim[shape.ndim - 1];
    }
    PyArrayObject *made = NULL;
    lop_shape given = shape;
    if (fortran) {
        given.dim[shape.ndim - 1] = shape.dim[shape.ndim - 2];
        given.dim[shape.ndim - 2] = shape.dim[shape.ndim - 1];
    }
    if (!out || check_out(&r, out, &given, o->dt) == 0)
        made = fortran || verify
                   ? py_empty(&shape, o->dt)
                   : target(&r, &shape, o->dt, (PyArrayObject *)out, vec ? 1 : 2, o->need_c, x);
    if (made) {
        (void)rhs_buf(made, o->dt, flip && !fortran, vec, &obuf);
        r.used[0] = (PyObject *)xn;
        r.used[1] = (PyObject *)made;
        r.used[2] = vec || !right ? (PyObject *)x : NULL;
        if (py_run_exec(&r, rhs, &xbuf, &obuf) < 0) Py_CLEAR(made);
    }
    if (made && fortran) {
        PyArrayObject *back =
            (PyArrayObject *)PyArray_SwapAxes(made, shape.ndim - 2, shape.ndim - 1);
        Py_DECREF(made);
        made = back;
    }
    Py_DECREF(xn);
    const bool spoilt = r.spoilt;
    py_run_close(&r);
    if (made && verify && !spoilt && py_verify_apply(s, self, x, mode, right, vec, made) < 0)
        Py_CLEAR(made);
    return made ? deliver(made, out) : NULL;
}

PyObject *py_value_array(py_state *s, py_op *self, int act, int64_t i, int64_t j, PyObject *out) {
    py_plan want = {.act = act, .i = i, .j = j};
    const lop_node *node = py_node(s, self);
    if (!node) return NULL;
    if (node->opaque) Py_RETURN_NOTIMPLEMENTED;
    PyObject *other = out ? Py_NewRef(Py_None) : py_part_iterated(s, self, &want);
    if (other != Py_None) return other;
    Py_DECREF(other);
    py_plan *e = py_find_plan(s, self, &want, NULL, out != NULL);
    if (!e) return NULL;
    run r;
    const bool verify = s->verify;
    py_run_open(&r, s, self, e);
    const lop_slot *o = &r.plan->slot[r.plan->out];
    PyArrayObject *made = NULL, *into = verify ? NULL : (PyArrayObject *)out;
    lop_buf obuf;
    if (!out || check_out(&r, out, &o->shape, o->dt) == 0)
        made = target(&r, &o->shape, o->dt, into, o->core, true, NULL);
    if (made) {
        py_buf(made, o->dt, &obuf);
        r.used[1] = (PyObject *)made;
        if (py_run_exec(&r, -1, NULL, &obuf) < 0) Py_CLEAR(made);
    }
    const bool spoilt = r.spoilt;
    py_run_close(&r);
    if (made && verify && !spoilt && py_verify_value(s, self, act, i, j, made) < 0) Py_CLEAR(made);
    return made ? deliver(made, out) : NULL;
}
PyObject *py_value(py_state *s, py_op *self, int act, int64_t i, int64_t j, PyObject *out) {
    PyObject *made = py_value_array(s, self, act, i, j, out);
    const bool number =
        made && !out && made != Py_NotImplemented && PyArray_NDIM((PyArrayObject *)made) == 0;
    return number ? PyArray_Return((PyArrayObject *)made) : made;
}
