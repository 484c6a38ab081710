/* py_equation.c: _core._Equation, a contraction of arrays whose axes have labels: planned for each
 * dtype, sizes and strides that it meets, and found again by them.
 *
 * equation(a, b, ..., out=None) is a new array, or NotImplemented where the arrays are not ones of
 * NumPy's in one of the four BLAS dtypes, aligned, of the labels' dimensions: Python makes them so
 * (_contractions/equations.py). Plans are counted, so that one may run without the GIL while others
 * push it out.
 *
 * An operand may be read as a view, where index equations and groups say it: of an array of a given
 * shape, each label along one of its axes, so many elements of it further at each step, from a
 * start on. Python has proved that this stays within the array (_contractions/views.py). */
#include "py/functions/py_reading.h"
#include "py/module/py.h"

#include "contract/contract.h"
#include <structmember.h>
#include "py/run/py_bound_product.h"

enum { KEPT = 32, SMALL = 4096 };

typedef struct kept_plan {
    int64_t refs; /* under the GIL */
    lop_contraction *plan;
    int64_t key[];
} kept_plan;

typedef struct equation {
    PyObject_HEAD vectorcallfunc call;
    py_state *s; /* counted */
    int n, nkey, nkept, npath, next;
    bool any_order; /* of results that nobody gives the memory for */
    lop_axes *axes; /* n operands, then the result: labels */
    int *same, *path;
    int64_t *key; /* of the call at hand */
    const void **at;
    py_reading **read; /* n, NULL: axis by axis; or NULL */
    kept_plan *kept[KEPT];
} equation;

static void drop(equation *self, kept_plan *k) {
    if (!k || --k->refs > 0) return;
    lop_contract_free(&self->s->ctx, k->plan);
    PyMem_Free(k);
}

/* -- what is asked: axes, and the key of sizes and strides */

static bool described(equation *self, int i, PyObject *o, int *typenum, int64_t **key) {
    if (!PyArray_CheckExact(o)) return false;
    PyArrayObject *a = (PyArrayObject *)o;
    lop_axes *x = &self->axes[i];
    const py_reading *r = self->read && i < self->n ? self->read[i] : NULL;
    const npy_intp size = PyArray_ITEMSIZE(a), *dim = PyArray_DIMS(a), *stride = PyArray_STRIDES(a);
    if (!PyArray_ISALIGNED(a) || !PyArray_ISNOTSWAPPED(a)) return false;
    if (i == 0)
        *typenum = PyArray_TYPE(a);
    else if (PyArray_TYPE(a) != *typenum)
        return false;
    if (r) {
        if (!size || !py_reading_axes(r, a, x)) return false;
        for (int j = 0; j < x->n; j++) {
            *(*key)++ = x->size[j];
            *(*key)++ = x->stride[j];
        }
        return true;
    }
    if (PyArray_NDIM(a) != x->n) return false;
    for (int j = 0; j < x->n; j++) {
        if (stride[j] % size && dim[j] > 1) return false;
        *(*key)++ = x->size[j] = dim[j];
        *(*key)++ = x->stride[j] = dim[j] > 1 ? stride[j] / size : 0;
    }
    return true;
}

/* The result's sizes, of the labels; C order where nobody gives the array. */
static void shape_result(equation *self) {
    lop_axes *r = &self->axes[self->n];
    int64_t stride = 1;
    for (int j = 0; j < r->n; j++) {
        r->size[j] = 1;
        for (int i = 0; i < self->n; i++)
            for (int l = 0; l < self->axes[i].n; l++)
                if (self->axes[i].label[l] == r->label[j] && self->axes[i].size[l] != 1)
                    r->size[j] = self->axes[i].size[l];
    }
    for (int j = r->n - 1; j >= 0; j--) {
        r->stride[j] = stride;
        if (!lop_mul_ok(stride, r->size[j] ? r->size[j] : 1, &stride)) stride = INT64_MAX;
    }
}

/* 0; 1: not for C; -1 with an exception. */
static int look(equation *self, PyObject *const *arg, PyObject *out, lop_dtype *dt) {
    int typenum = NPY_DOUBLE;
    int64_t *key = self->key + 1;
    for (int i = 0; i < self->n; i++) {
        if (!described(self, i, arg[i], &typenum, &key)) return 1;
        self->at[i] = py_reading_start(self->read ? self->read[i] : NULL, (PyArrayObject *)arg[i]);
        self->same[i] = i;
        for (int j = i - 1; j >= 0; j--)
            if (self->at[j] == self->at[i]) self->same[i] = j;
        *key++ = self->same[i];
    }
    *dt = typenum == NPY_DOUBLE    ? LOP_f64
          : typenum == NPY_FLOAT   ? LOP_f32
          : typenum == NPY_CDOUBLE ? LOP_c128
          : typenum == NPY_CFLOAT  ? LOP_c64
                                   : LOP_NO_DTYPE;
    self->key[0] = (int64_t)*dt * 2 + (out != NULL);
    if (*dt == LOP_NO_DTYPE) return 1;
    if (!out) {
        shape_result(self);
        return 0;
    }
    int64_t *from = key;
    if (!described(self, self->n, out, &typenum, &key)) return 1;
    if (!PyArray_ISWRITEABLE((PyArrayObject *)out)) {
        PyErr_SetString(PyExc_ValueError, "out is read-only");
        return -1;
    }
    return key - from == 2 * self->axes[self->n].n ? 0 : 1;
}

static kept_plan *find(equation *self, lop_dtype dt, bool given) {
    const int n = given ? self->nkey : self->nkey - 2 * self->axes[self->n].n;
    for (int i = 0; i < self->nkept; i++)
        if (!memcmp(self->kept[i]->key, self->key, (size_t)n * sizeof *self->key))
            return self->kept[i];
    lop_err err;
    lop_err_open(&err);
    kept_plan *k = PyMem_Malloc(sizeof *k + (size_t)self->nkey * sizeof *k->key);
    if (!k) return (kept_plan *)PyErr_NoMemory();
    const lop_spec spec = {.dt = dt,
                           .noperand = self->n,
                           .operand = self->axes,
                           .same = self->same,
                           .result = &self->axes[self->n],
                           .any_order = self->any_order && !given,
                           .path = self->npath ? self->path : NULL,
                           .npath = self->npath,
                           .most = INT64_MAX};
    k->plan = NULL;
    const lop_status st = lop_contract(&self->s->ctx, &spec, &k->plan, &err);
    if (st != LOP_OK) {
        PyMem_Free(k);
        py_raise(self->s, st, &err, NULL, "einsum");
        return NULL;
    }
    memset(k->key, 0, (size_t)self->nkey * sizeof *k->key);
    memcpy(k->key, self->key, (size_t)n * sizeof *k->key);
    k->refs = 1;
    if (self->nkept < KEPT)
        self->kept[self->nkept++] = k;
    else {
        drop(self, self->kept[self->next]);
        self->kept[self->next] = k;
        self->next = (self->next + 1) % KEPT;
    }
    return k;
}

/* -- running */

/* A new array whose axes lie as these strides say, without gaps: the transpose of one in C order.
 */
static PyArrayObject *in_order(int n, const npy_intp *dim, const npy_intp *stride, lop_dtype dt) {
    npy_intp from[LOP_MAXAXES];
    npy_intp back[LOP_MAXAXES],
        key[LOP_MAXAXES]; /* an axis of size 1 stays behind the one before */
    int order[LOP_MAXAXES];
    bool c_order = true;
    for (int i = 0; i < n; i++) {
        int j = i;
        key[i] = dim[i] > 1 ? stride[i] : i ? key[i - 1] : NPY_MAX_INTP;
        for (; j > 0 && key[order[j - 1]] < key[i]; j--) order[j] = order[j - 1];
        order[j] = i;
    }
    for (int i = 0; i < n; i++) {
        from[i] = dim[order[i]];
        back[order[i]] = i;
        c_order = c_order && order[i] == i;
    }
    PyArrayObject *made = py_new_array(n, from, py_typenum(dt));
    if (!made || c_order) return made;
    PyArray_Dims axes = {back, n};
    PyArrayObject *seen = (PyArrayObject *)PyArray_Transpose(made, &axes);
    Py_DECREF(made);
    for (int i = 0; seen && i < n; i++)
        if (dim[i] > 1 && PyArray_STRIDE(seen, i) != stride[i]) {
            PyErr_SetString(PyExc_RuntimeError, "einsum: a result's axes do not lie as planned");
            Py_CLEAR(seen);
        }
    return seen;
}

/* A word about what is estimated to take long; it may raise. */
static int announce_slow(py_state *s, const lop_contraction *p) {
    if (!(p->seconds > PY_SLOW)) return 0;
    PyObject *args[2] = {PyFloat_FromDouble(p->seconds),
                         PyLong_FromLongLong((long long)p->workspace)};
    PyObject *r = args[0] && args[1] ? py_call_hook(s, "slow_einsum", args, 2) : NULL;
    Py_XDECREF(args[0]);
    Py_XDECREF(args[1]);
    Py_XDECREF(r);
    return r ? 0 : -1;
}

static PyObject *run(equation *self, kept_plan *k, lop_dtype dt, PyObject *out) {
    const lop_contraction *p = k->plan;
    const lop_axes *r = &p->result;
    const int64_t room = self->s->ctx.memory_limit;
    _Alignas(64) char little[SMALL];
    char *workspace = little;
    PyObject *block = NULL; /* NumPy's memory, which calls one after another take again */
    const void *at[16], **operand = at;
    PyArrayObject *made = (PyArrayObject *)out;
    if (p->workspace > room) {
        lop_err err;
        return py_raise(self->s,
                        lop_fail(&err, LOP_LIMIT,
                                 "temporaries of %lld bytes would pass the memory limit of %lld",
                                 (long long)p->workspace, (long long)room),
                        &err, NULL, "einsum");
    }
    if (self->n > 16) operand = PyMem_Malloc((size_t)self->n * sizeof *operand);
    if (!operand) return PyErr_NoMemory();
    memcpy(operand, self->at, (size_t)self->n * sizeof *operand); /* before others may call */
    if (!made) {
        npy_intp dim[LOP_MAXAXES], stride[LOP_MAXAXES];
        const npy_intp size = (npy_intp)lop_dtype_size(dt);
        for (int i = 0; i < r->n; i++) {
            dim[i] = (npy_intp)r->size[i];
            stride[i] = (npy_intp)r->stride[i] * size;
        }
        made = self->any_order ? in_order(r->n, dim, stride, dt)
                               : py_new_array(r->n, dim, py_typenum(dt));
    } else
        Py_INCREF(out);
    if (made && p->workspace > SMALL) {
        npy_intp bytes = (npy_intp)p->workspace + 64;
        block = PyArray_SimpleNew(1, &bytes, NPY_BYTE);
        char *at_block = block ? PyArray_DATA((PyArrayObject *)block) : NULL;
        workspace = block ? at_block + (64 - ((uintptr_t)at_block & 63)) : NULL;
        if (!block) Py_CLEAR(made);
    }
    if (!made) {
        if (operand != at) PyMem_Free(operand);
        return NULL;
    }
    k->refs++;
    lop_status st = LOP_CALLBACK;
    if (announce_slow(self->s, p) == 0) {
        py_gil gil;
        py_gil_open(&gil);
        const bool leave =
            p->flops + (double)p->workspace + 64 * (double)p->nstep > (double)self->s->nogil_work;
        if (leave) py_gil_leave(&gil);
        st = lop_contract_run(p, operand, PyArray_DATA(made), workspace, leave ? py_gil_stop : NULL,
                              &gil);
        py_gil_enter(&gil);
    }
    drop(self, k);
    if (operand != at) PyMem_Free(operand);
    Py_XDECREF(block);
    if (st == LOP_OK) return out ? (PyObject *)made : PyArray_Return(made); /* a number of 0-d */
    Py_DECREF(made);
    return PyErr_Occurred() ? NULL : py_raise(self->s, st, NULL, NULL, "einsum");
}

static PyObject *equation_call(PyObject *o, PyObject *const *arg, size_t nargsf, PyObject *names) {
    equation *self = (equation *)o;
    const Py_ssize_t n = PyVectorcall_NARGS(nargsf), named = names ? PyTuple_GET_SIZE(names) : 0;
    PyObject *out = NULL;
    if (named > 1 || (named && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "out")))
        return PyErr_Format(PyExc_TypeError, "an equation takes arrays and out=");
    if (named && arg[n] != Py_None) out = arg[n];
    if (n != self->n)
        return PyErr_Format(PyExc_ValueError, "%zd operands; the equation has %d", n, self->n);
    lop_dtype dt = LOP_NO_DTYPE;
    const int rc = look(self, arg, out, &dt);
    if (rc) return rc < 0 ? NULL : Py_NewRef(Py_NotImplemented);
    for (Py_ssize_t i = 0; out && i < n; i++)
        if (py_overlap((PyArrayObject *)out, (PyArrayObject *)arg[i]))
            return Py_NewRef(Py_NotImplemented);
    py_config_here(self->s);
    /* a call of einsum's at once, with out=: what compares answers is on the longer road */
    if (named && self->s->verify) return Py_NewRef(Py_NotImplemented);
    kept_plan *k = find(self, dt, out != NULL);
    return k ? run(self, k, dt, out) : NULL;
}

/* -- plans as data */

static PyObject *step_data(const lop_contraction *p, const lop_contract_step *t) {
    static const char *const how[] = {"nest", "gemm", "gram"};
    PyObject *loops = PyList_New(t->nloop);
    for (int i = 0; loops && i < t->nloop; i++) {
        const lop_loop *l = &p->loop[t->first + i];
        PyObject *one = Py_BuildValue("{s:L,s:(LLL),s:O}", "size", (long long)l->size, "strides",
                                      (long long)l->c, (long long)l->a, (long long)l->b, "summed",
                                      l->sum ? Py_True : Py_False);
        if (!one) Py_CLEAR(loops);
        if (loops) PyList_SET_ITEM(loops, i, one);
    }
    if (!loops) return NULL;
    return Py_BuildValue(
        "{s:s,s:i,s:i,s:i,s:(LLL),s:((LL)(LL)(LL)),s:(LL),s:N,s:O,s:O,s:z,s:d,s:d}", "how",
        how[t->how], "c", t->c, "a", t->a, "b", t->b, "sizes", (long long)t->m, (long long)t->n,
        (long long)t->k, "strides", (long long)t->cm, (long long)t->cn, (long long)t->am,
        (long long)t->ak, (long long)t->bk, (long long)t->bn, "group", (long long)t->group,
        (long long)t->apart, "loops", loops, "each", t->each ? Py_True : Py_False, "tiles",
        t->tiles ? Py_True : Py_False, "why", t->why, "flops", t->flops, "seconds", t->seconds);
}

static PyObject *numbers(const int64_t *x, int n) {
    PyObject *made = PyTuple_New(n);
    for (int i = 0; made && i < n; i++) {
        PyObject *one = PyLong_FromLongLong(x[i]);
        if (!one)
            Py_CLEAR(made);
        else
            PyTuple_SET_ITEM(made, i, one);
    }
    return made;
}

/* plan(a, b, ...): the plan that a call would take, as a dict; nothing is computed. */
static PyObject *equation_plan(equation *self, PyObject *const *arg, Py_ssize_t n) {
    lop_dtype dt = LOP_NO_DTYPE;
    if (n != self->n)
        return PyErr_Format(PyExc_ValueError, "%zd operands; the equation has %d", n, self->n);
    const int rc = look(self, arg, NULL, &dt);
    if (rc) return rc < 0 ? NULL : Py_NewRef(Py_NotImplemented);
    kept_plan *k = find(self, dt, false);
    if (!k) return NULL;
    const lop_contraction *p = k->plan;
    PyObject *steps = PyList_New(p->nstep);
    for (int i = 0; steps && i < p->nstep; i++) {
        PyObject *one = step_data(p, &p->step[i]);
        if (!one) Py_CLEAR(steps);
        if (steps) PyList_SET_ITEM(steps, i, one);
    }
    PyObject *places = steps ? numbers(p->offset + p->noperand + 1,
                                       p->zero ? 0 : p->nslot - p->noperand - 1)
                             : NULL,
             *part = places ? numbers(p->part, p->part ? p->noperand + 1 : 0) : NULL,
             *strides = part ? numbers(p->result.stride, p->result.n) : NULL;
    if (!strides) {
        Py_XDECREF(steps);
        Py_XDECREF(places);
        Py_XDECREF(part);
        return NULL;
    }
    return Py_BuildValue("{s:N,s:N,s:N,s:N,s:i,s:O,s:L,s:L,s:L,s:d,s:d}", "steps", steps, "places",
                         places, "part", part, "strides", strides, "operands", p->noperand, "zero",
                         p->zero ? Py_True : Py_False, "workspace", (long long)p->workspace,
                         "bytes", (long long)p->bytes, "parts", (long long)p->parts, "flops",
                         p->flops, "seconds", p->seconds);
}

/* view(a): of one operand, its labels in the order of the result's, read-only, on a's memory;
 * NotImplemented where its axes cannot be taken as they lie. */
static PyObject *equation_view(equation *self, PyObject *o) {
    const lop_axes *x = &self->axes[0], *r = &self->axes[self->n];
    npy_intp dim[LOP_MAXAXES], stride[LOP_MAXAXES];
    int64_t *key = self->key;
    int typenum;
    if (self->n != 1) return PyErr_Format(PyExc_ValueError, "a view is of one operand");
    if (!described(self, 0, o, &typenum, &key)) return Py_NewRef(Py_NotImplemented);
    PyArrayObject *a = (PyArrayObject *)o;
    for (int j = 0; j < r->n; j++) {
        dim[j] = 1;
        stride[j] = 0;
        for (int l = 0; l < x->n; l++) {
            if (x->label[l] != r->label[j] || x->size[l] == 1) continue;
            if (dim[j] != 1 && dim[j] != x->size[l]) return Py_NewRef(Py_NotImplemented);
            dim[j] = (npy_intp)x->size[l];
            stride[j] += (npy_intp)x->stride[l] * PyArray_ITEMSIZE(a);
        }
    }
    char *at = (char *)(uintptr_t)py_reading_start(self->read ? self->read[0] : NULL, a);
    Py_INCREF(PyArray_DESCR(a));
    PyObject *made = PyArray_NewFromDescr(&PyArray_Type, PyArray_DESCR(a), r->n, dim, stride, at,
                                          PyArray_FLAGS(a) & NPY_ARRAY_ALIGNED, NULL);
    if (made && PyArray_SetBaseObject((PyArrayObject *)made, Py_NewRef(o)) < 0) Py_CLEAR(made);
    return made;
}

static PyObject *equation_operands(equation *self, void *unused) {
    (void)unused;
    return PyLong_FromLong(self->n);
}

static PyObject *equation_kept(equation *self, void *unused) {
    (void)unused;
    return PyLong_FromLong(self->nkept);
}

/* -- the object */

static bool read_labels(PyObject *o, lop_axes *x) {
    if (!PyTuple_Check(o) || PyTuple_GET_SIZE(o) > LOP_MAXAXES) {
        PyErr_Format(PyExc_ValueError, "labels are a tuple of at most %d numbers", LOP_MAXAXES);
        return false;
    }
    x->n = (int)PyTuple_GET_SIZE(o);
    for (int i = 0; i < x->n; i++) {
        const long label = PyLong_AsLong(PyTuple_GET_ITEM(o, i));
        if (label == -1 && PyErr_Occurred()) return false;
        if (label < 0 || label >= LOP_MAXLABELS) {
            PyErr_Format(PyExc_NotImplementedError, "contractions of more than %d labels",
                         LOP_MAXLABELS);
            return false;
        }
        x->label[i] = (int)label;
    }
    return true;
}

static bool read_path(equation *self, PyObject *path) {
    if (path == Py_None) return true;
    self->npath = (int)PyTuple_GET_SIZE(path);
    self->path = PyMem_Calloc((size_t)self->npath + 1, 2 * sizeof *self->path);
    if (!self->path) {
        PyErr_NoMemory();
        return false;
    }
    for (int i = 0; i < self->npath; i++)
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(path, i), "ii;a path is pairs of places",
                              &self->path[2 * i], &self->path[2 * i + 1]))
            return false;
    return true;
}

static bool read_views(equation *self, PyObject *views) {
    if (views == Py_None) return true;
    if (!PyTuple_Check(views) || PyTuple_GET_SIZE(views) != self->n) {
        PyErr_SetString(PyExc_ValueError, "views are a tuple, one an operand");
        return false;
    }
    self->read = PyMem_Calloc((size_t)self->n, sizeof *self->read);
    if (!self->read) return PyErr_NoMemory() != NULL;
    for (int i = 0; i < self->n; i++)
        if (PyTuple_GET_ITEM(views, i) != Py_None) {
            self->read[i] = py_reading_new(PyTuple_GET_ITEM(views, i), self->axes[i].n);
            if (!self->read[i]) return false;
        }
    return true;
}

static PyObject *equation_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *operands, *result, *path = Py_None, *views = Py_None;
    int any_order = 0;
    py_state *s = py_state_of_type(type);
    if (kwargs && PyDict_GET_SIZE(kwargs))
        return PyErr_Format(PyExc_TypeError, "_Equation takes no keywords");
    if (!s || !PyArg_ParseTuple(args, "O!O|OpO:_Equation", &PyTuple_Type, &operands, &result, &path,
                                &any_order, &views))
        return NULL;
    if (path != Py_None && !PyTuple_Check(path))
        return PyErr_Format(PyExc_TypeError, "a path is a tuple of pairs");
    const Py_ssize_t n = PyTuple_GET_SIZE(operands);
    if (n < 1 || n > 1 << 16) return PyErr_Format(PyExc_ValueError, "%zd operands", n);
    equation *self = (equation *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->s = s;
    s->refs++;
    self->call = equation_call;
    self->n = (int)n;
    self->any_order = any_order;
    self->axes = PyMem_Calloc((size_t)n + 1, sizeof *self->axes);
    self->same = PyMem_Calloc((size_t)n, sizeof *self->same);
    self->at = PyMem_Calloc((size_t)n, sizeof *self->at);
    if (!self->axes || !self->same || !self->at) {
        PyErr_NoMemory();
        goto fail;
    }
    self->nkey = 1 + (int)n;
    for (int i = 0; i <= n; i++) {
        if (!read_labels(i < n ? PyTuple_GET_ITEM(operands, i) : result, &self->axes[i])) goto fail;
        self->nkey += 2 * self->axes[i].n;
    }
    self->key = PyMem_Calloc((size_t)self->nkey, sizeof *self->key);
    if (!self->key) {
        PyErr_NoMemory();
        goto fail;
    }
    if (read_path(self, path) && read_views(self, views)) return (PyObject *)self;
fail:
    Py_DECREF(self);
    return NULL;
}

static void equation_dealloc(equation *self) {
    PyTypeObject *type = Py_TYPE(self);
    for (int i = 0; i < self->nkept; i++) drop(self, self->kept[i]);
    for (int i = 0; self->read && i < self->n; i++) PyMem_Free(self->read[i]);
    PyMem_Free(self->read);
    PyMem_Free(self->axes);
    PyMem_Free(self->same);
    PyMem_Free(self->path);
    PyMem_Free(self->key);
    PyMem_Free((void *)self->at);
    if (self->s) py_state_unref(self->s);
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

int py_equation_make_type(PyObject *module) {
    static PyMethodDef methods[] = {
        {"plan", (PyCFunction)(void (*)(void))equation_plan, METH_FASTCALL,
         "plan($self, /, *arrays)\n--\n\nThe plan that a call would take, as a dict."},
        {"view", (PyCFunction)(void (*)(void))equation_view, METH_O,
         "view($self, a, /)\n--\n\nThe labels of one operand in the result's order."},
        {NULL, NULL, 0, NULL}};
    static PyGetSetDef getset[] = {
        {"operands", (getter)equation_operands, NULL, "How many arrays it takes.", NULL},
        {"plans", (getter)equation_kept, NULL, "How many plans are kept.", NULL},
        {NULL, NULL, NULL, NULL, NULL}};
    static PyMemberDef members[] = {
        {"__vectorcalloffset__", T_PYSSIZET, offsetof(equation, call), READONLY, NULL},
        {NULL, 0, 0, 0, NULL}};
    PyType_Slot slots[] = {
        {Py_tp_new, equation_new},
        {Py_tp_dealloc, equation_dealloc},
        {Py_tp_call, PyVectorcall_Call},
        {Py_tp_methods, methods},
        {Py_tp_getset, getset},
        {Py_tp_members, members},
        {Py_tp_doc, (void *)"A contraction of arrays with labelled axes: labels of the operands, "
                            "labels of the result, optionally a path of pairs, whether a "
                            "result may lie in another order than C's, and of each operand "
                            "how it is read: shape, starts, (axis, by, size) of each label."},
        {0, NULL}};
    PyType_Spec spec = {"pylinop._core._Equation", sizeof(equation), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE,
                        slots};
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    int rc = type ? PyModule_AddObjectRef(module, "_Equation", type) : -1;
    Py_XDECREF(type);
    return rc;
}
