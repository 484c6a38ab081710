/* py_run.c: from a call to a result: plan (cached with the operator), bind, execute, hand out.
 *
 *   shape and dtype of x --cache--> plan --arrays of the leaves, x, out--> frame --no GIL--> result
 *
 * A plan is kept per action, dtype and shape of x; the leaves' arrays with it, so that a call reads
 * only their pointers, strides, shapes and dtypes anew. */
#include "py.h"

/* -- leaves */

/* dict serial -> array of everything below self, by a walk with a stack. */
static int collect(py_op *self, PyObject *found) {
    PyObject *seen = PySet_New(NULL), *stack = PyList_New(0);
    int rc = seen && stack ? PyList_Append(stack, (PyObject *)self) : -1;
    while (rc == 0 && PyList_GET_SIZE(stack) > 0) {
        Py_ssize_t top = PyList_GET_SIZE(stack) - 1;
        PyObject *o = Py_NewRef(PyList_GET_ITEM(stack, top));
        rc = PyList_SetSlice(stack, top, top + 1, NULL);
        PyObject *id = PyLong_FromVoidPtr(o);
        int known = id ? PySet_Contains(seen, id) : -1;
        if (known == 0)
            known = PySet_Add(seen, id);
        else if (known == 1)
            known = 2;
        Py_XDECREF(id);
        py_op *op = (py_op *)o;
        if (known < 0) rc = -1;
        for (Py_ssize_t i = 0;
             rc == 0 && known == 0 && op->arrays && i < PyTuple_GET_SIZE(op->arrays); i++) {
            PyObject *key = PyLong_FromUnsignedLongLong(op->serial + (uint64_t)i);
            rc = key ? PyDict_SetItem(found, key, PyTuple_GET_ITEM(op->arrays, i)) : -1;
            Py_XDECREF(key);
        }
        PyObject *two[2] = {op->a, op->b};
        for (int i = 0; rc == 0 && known == 0 && i < 2; i++)
            if (two[i] && PyObject_TypeCheck(two[i], py_state_of(o)->base))
                rc = PyList_Append(stack, two[i]);
        for (Py_ssize_t i = 0; rc == 0 && known == 0 && op->init && i < PyTuple_GET_SIZE(op->init);
             i++) {
            PyObject *arg = PyTuple_GET_ITEM(op->init, i);
            if (PyObject_TypeCheck(arg, py_state_of(o)->base)) rc = PyList_Append(stack, arg);
        }
        Py_DECREF(o);
    }
    Py_XDECREF(seen);
    Py_XDECREF(stack);
    return rc;
}

static PyObject *leaves_of(py_state *s, py_op *self, const lop_plan *plan, uint64_t rhs, int *at) {
    PyObject *found = PyDict_New(), *leaves = PyTuple_New(plan->nleaf);
    *at = -1;
    if (!found || !leaves || collect(self, found) < 0) goto fail;
    for (int i = 0; i < plan->nleaf; i++) {
        if (rhs && plan->leaf[i].serial == rhs) {
            *at = i;
            PyTuple_SET_ITEM(leaves, i, Py_NewRef(Py_None));
            continue;
        }
        PyObject *key = PyLong_FromUnsignedLongLong(plan->leaf[i].serial);
        PyObject *array = key ? PyDict_GetItemWithError(found, key) : NULL;
        Py_XDECREF(key);
        if (!array) {
            if (!PyErr_Occurred()) py_raise(s, LOP_INTERNAL, NULL, (PyObject *)self, "bind");
            goto fail;
        }
        PyTuple_SET_ITEM(leaves, i, Py_NewRef(array));
    }
    Py_DECREF(found);
    return leaves;
fail:
    Py_XDECREF(found);
    Py_XDECREF(leaves);
    return NULL;
}

/* -- plans */

static void entry_clear(py_plan *e) {
    lop_plan_unref(e->plan);
    Py_CLEAR(e->leaves);
    e->plan = NULL;
}

void py_cache_clear(py_state *s, py_op *self) {
    py_plan *cache = self->cache;
    if (!cache) return;
    self->cache = NULL;
    for (int i = 0; i < PY_CACHE; i++) entry_clear(&cache[i]);
    lop_free(&s->ctx, cache);
}

static bool entry_fits(const py_plan *e, const py_plan *want) {
    if (!e->plan || e->act != want->act || e->dt != want->dt || e->nd != want->nd ||
        e->i != want->i || e->j != want->j || e->version != want->version)
        return false;
    for (int i = 0; i < want->nd; i++)
        if (e->dim[i] != want->dim[i]) return false;
    return true;
}

/* The action as a node over self's node: owned. The right-hand side's serial in *rhs. */
lop_status py_action(py_state *s, const lop_node *node, const py_plan *want, const lop_shape *x,
                     uint64_t *rhs, const lop_node **out, lop_err *err) {
    lop_status st = LOP_OK;
    *rhs = 0;
    if (want->act >= ACT_DENSE) {
        static const lop_op *const ops[] = {&lop_op_todense, &lop_op_diagonal, &lop_op_trace,
                                            &lop_op_element, &lop_op_scaledet};
        lop_attr a = {.i = {want->i, want->j, 0, (int64_t)node->dtype + 1}};
        return lop_node_make(&s->ctx, ops[want->act - ACT_DENSE], &a, 1, &node, NULL, out, err);
    }
    const lop_node *leaf = NULL, *seen = NULL;
    int mode = (want->act & 3) ^ (want->act & 4 ? LOP_T : 0);
    lop_attr a = {.i = {mode, 0, 0, 0}};
    st = lop_node_leaf(&s->ctx, (lop_dtype)want->dt, 2, x, &leaf, err);
    if (st == LOP_OK && mode)
        st = lop_node_make(&s->ctx, &lop_op_view, &a, 1, &node, NULL, &seen, err);
    if (st == LOP_OK && !mode) seen = lop_node_ref(node);
    if (st == LOP_OK) {
        const lop_node *child[2] = {seen, leaf};
        st = lop_node_make(&s->ctx, &lop_op_apply, NULL, 2, child, NULL, out, err);
        *rhs = leaf->serial;
    }
    lop_node_unref(leaf);
    lop_node_unref(seen);
    return st;
}

static int announce(py_state *s, py_op *self, const lop_plan *plan, const py_plan *want) {
    int64_t bytes = plan->dense;
    if (want->act == ACT_DENSE) {
        const lop_slot *o = &plan->slot[plan->out];
        if (!lop_mul_ok(o->matbytes, o->batch, &bytes)) bytes = INT64_MAX;
    }
    if (bytes < (1 << 16)) return 0; /* never worth a word */
    PyObject *size = PyLong_FromLongLong(bytes), *asked = PyBool_FromLong(want->act == ACT_DENSE);
    PyObject *args[3] = {(PyObject *)self, size, asked};
    PyObject *r = size && asked ? py_call_hook(s, "materialising", args, 3) : NULL;
    Py_XDECREF(size);
    Py_XDECREF(asked);
    Py_XDECREF(r);
    return r ? 0 : -1;
}

static py_plan *make_plan(py_state *s, py_op *self, py_plan *want, const lop_shape *x) {
    lop_err err = {.step = -1, .batch = -1};
    const lop_node *node = py_node(s, self), *root = NULL;
    uint64_t rhs;
    if (!node) return NULL;
    lop_status st = py_action(s, node, want, x, &rhs, &root, &err);
    if (st == LOP_OK) st = lop_plan_make(&s->ctx, s->rules, &s->options, root, &want->plan, &err);
    lop_node_unref(root);
    if (st != LOP_OK) {
        py_raise(s, st, &err, (PyObject *)self, want->act >= ACT_DENSE ? "compute" : "apply");
        return NULL;
    }
    want->leaves = leaves_of(s, self, want->plan, rhs, &want->rhs);
    if (!want->leaves) {
        entry_clear(want);
        return NULL;
    }
    want->direct = py_is_direct(want->plan);
    if (!self->cache) self->cache = lop_calloc(&s->ctx, PY_CACHE, sizeof *self->cache);
    if (!self->cache) {
        entry_clear(want);
        PyErr_NoMemory();
        return NULL;
    }
    entry_clear(&self->cache[PY_CACHE - 1]);
    memmove(self->cache + 1, self->cache, (PY_CACHE - 1) * sizeof *self->cache);
    self->cache[0] = *want;
    return &self->cache[0];
}

static py_plan *cached_plan(py_state *s, py_op *self, py_plan *want, const lop_shape *x) {
    want->version = s->options_version;
    for (int i = 0; self->cache && i < PY_CACHE; i++) {
        if (!entry_fits(&self->cache[i], want)) continue;
        if (i) {
            py_plan hit = self->cache[i];
            memmove(self->cache + 1, self->cache, (size_t)i * sizeof hit);
            self->cache[0] = hit;
        }
        return &self->cache[0];
    }
    return make_plan(s, self, want, x);
}

/* Borrowed: the plan, after a word about dense forms on its way. */
static py_plan *find_plan(py_state *s, py_op *self, py_plan *want, const lop_shape *x) {
    py_plan *e = cached_plan(s, self, want, x);
    if (!e || (want->act != ACT_DENSE && !e->plan->dense)) return e;
    lop_plan *plan = e->plan;
    plan->refs++; /* the hook may run anything, also this operator */
    int rc = announce(s, self, plan, want);
    lop_plan_unref(plan);
    return rc < 0 ? NULL : cached_plan(s, self, want, x);
}

/* -- running */

enum { HELD = 16 };

typedef struct run {
    py_state *s;
    py_op *self;
    lop_plan *plan;                        /* retained */
    PyObject *leaves;                      /* retained */
    PyArrayObject *held_few[HELD], **held; /* normalised arrays, alive during the run */
    int nheld;
} run;

static int bind_leaves(run *r, lop_frame *f, int rhs, const lop_buf *x, lop_err *err) {
    const lop_plan *p = r->plan;
    r->held = r->held_few;
    if (p->nleaf > HELD && !(r->held = PyMem_Calloc((size_t)p->nleaf, sizeof *r->held))) {
        PyErr_NoMemory();
        return -1;
    }
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
        a = py_normal(a, slot->core, slot->need_c);
        if (!a) return -1;
        r->held[r->nheld++] = a;
        py_buf(a, py_dtype(a), &buf);
        if (lop_frame_bind(f, i, &buf, err) != LOP_OK) return -2;
    }
    return 0;
}

static void run_close(run *r) {
    for (int i = 0; i < r->nheld; i++) Py_DECREF(r->held[i]);
    if (r->held != r->held_few) PyMem_Free(r->held);
    lop_plan_unref(r->plan);
    Py_XDECREF(r->leaves);
}

/* Executes with everything bound but the result; 0, or -1 with an exception. */
static int execute(run *r, int rhs, const lop_buf *x, const lop_buf *out) {
    lop_err err = {.step = -1, .batch = -1};
    lop_frame frame;
    lop_status st = lop_frame_open(&frame, r->plan, &r->s->store, &err);
    if (st != LOP_OK) {
        py_raise(r->s, st, &err, (PyObject *)r->self, "apply");
        return -1;
    }
    int rc = bind_leaves(r, &frame, rhs, x, &err);
    if (rc == 0 && lop_frame_bind(&frame, r->plan->nleaf, out, &err) != LOP_OK) rc = -2;
    if (rc == 0) {
        if (r->plan->flops + r->plan->bytes > (double)r->s->nogil_work) {
            Py_BEGIN_ALLOW_THREADS;
            st = lop_exec(&frame, &err);
            Py_END_ALLOW_THREADS;
        } else {
            st = lop_exec(&frame, &err);
        }
        if (st != LOP_OK) rc = -2;
    }
    int64_t fallbacks = frame.fallbacks;
    lop_frame_close(&frame);
    if (rc == -2) py_raise(r->s, err.status, &err, (PyObject *)r->self, "apply");
    if (rc == 0 && fallbacks) {
        PyObject *count = PyLong_FromLongLong(fallbacks), *args[2] = {(PyObject *)r->self, count};
        PyObject *ok = count ? py_call_hook(r->s, "fell_back", args, 2) : NULL;
        Py_XDECREF(count);
        Py_XDECREF(ok);
        if (!ok) rc = -1;
    }
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
    lop_err err = {.step = -1, .batch = -1};
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
    py_plan *e = find_plan(s, self, &want, &xbuf.shape);
    if (!e) {
        Py_DECREF(xn);
        return NULL;
    }
    run r = {.s = s, .self = self, .plan = e->plan, .leaves = Py_NewRef(e->leaves)};
    r.plan->refs++;
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
            run_close(&r);
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
        made = fortran ? py_empty(&shape, o->dt)
                       : target(&r, &shape, o->dt, (PyArrayObject *)out, vec ? 1 : 2, o->need_c, x);
    if (made) {
        (void)rhs_buf(made, o->dt, flip && !fortran, vec, &obuf);
        if (execute(&r, rhs, &xbuf, &obuf) < 0) Py_CLEAR(made);
    }
    if (made && fortran) {
        PyArrayObject *back =
            (PyArrayObject *)PyArray_SwapAxes(made, shape.ndim - 2, shape.ndim - 1);
        Py_DECREF(made);
        made = back;
    }
    Py_DECREF(xn);
    run_close(&r);
    return made ? deliver(made, out) : NULL;
}

PyObject *py_value(py_state *s, py_op *self, int act, int64_t i, int64_t j, PyObject *out) {
    py_plan want = {.act = act, .i = i, .j = j};
    const lop_node *node = py_node(s, self);
    if (!node) return NULL;
    if (node->opaque) Py_RETURN_NOTIMPLEMENTED;
    py_plan *e = find_plan(s, self, &want, NULL);
    if (!e) return NULL;
    run r = {.s = s, .self = self, .plan = e->plan, .leaves = Py_NewRef(e->leaves)};
    r.plan->refs++;
    const lop_slot *o = &r.plan->slot[r.plan->out];
    PyArrayObject *made = NULL;
    lop_buf obuf;
    if (!out || check_out(&r, out, &o->shape, o->dt) == 0)
        made = target(&r, &o->shape, o->dt, (PyArrayObject *)out, o->core, true, NULL);
    if (made) {
        py_buf(made, o->dt, &obuf);
        if (execute(&r, -1, NULL, &obuf) < 0) Py_CLEAR(made);
    }
    run_close(&r);
    if (!made) return NULL;
    if (!out && PyArray_NDIM(made) == 0) return PyArray_Return(made);
    return deliver(made, out);
}
