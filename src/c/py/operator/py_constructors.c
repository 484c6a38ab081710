/* py_constructors.c: constructors: from the arguments that py_constructor_arguments.c has read to a
 * node and the arrays behind it. */
#include "py_constructor.h"

#include "py/lazy/py_lazy.h"

/* -- defaults that are expressions */

static lop_status fill_defaults(py_parts *p, lop_err *err) {
    if (p->op == &lop_op_toeplitz && p->n == 1) { /* r = conj(c) */
        if (!lop_is_complex(p->child[0]->dtype)) {
            p->child[p->n++] = lop_node_ref(p->child[0]);
            return LOP_OK;
        }
        lop_status st = lop_node_make(&p->s->ctx, &lop_op_conjugate, NULL, 1, p->child, NULL,
                                      &p->child[1], err);
        p->n += st == LOP_OK;
        return st;
    }
    if (p->op == &lop_op_lowrank && (!p->arg[1] || p->arg[1] == Py_None)) { /* V = U */
        if (p->n == 2) p->child[2] = p->child[1];
        p->child[1] = lop_node_ref(p->child[0]);
        p->n++;
    }
    if (p->op == &lop_op_hankel) { /* all antidiagonals, and the sizes */
        int64_t sizes[2] = {lop_cols(p->child[0]), lop_cols(p->child[p->n - 1])};
        lop_status st = LOP_OK;
        if (p->n == 2) {
            const lop_node *pair[2] = {p->child[0], p->child[1]};
            st = lop_node_make(&p->s->ctx, &lop_op_concat, NULL, 2, pair, NULL, &p->child[0], err);
            lop_node_unref(pair[0]);
            lop_node_unref(pair[1]);
        }
        p->n = 1;
        p->child[1] = NULL;
        if (st == LOP_OK && py_sizes(p->s, 2, sizes, &p->child[1]) == 0) p->n = 2;
        return st;
    }
    if (p->op == &lop_op_multitoeplitz && p->n == 2) return py_square(p->s, p->child, &p->n, err);
    if (p->op == &lop_op_lowrankupdate && (!p->arg[2] || p->arg[2] == Py_None) && p->n >= 2) {
        if (p->n == 3) p->child[3] = p->child[2];
        p->child[2] = lop_node_ref(p->child[1]);
        p->n++;
    }
    if (p->op == &lop_op_selection || p->op == &lop_op_permutation || p->op == &lop_op_dft ||
        p->op == &lop_op_dct) {
        p->attr.i[1] = p->like.weak;
        p->attr.i[2] = (int64_t)(p->foreign ? LOP_f64 : p->like.dtype);
    }
    if (p->op == &lop_op_laplacian) {
        p->attr.i[1] = p->like.weak;
        p->attr.i[2] = (int64_t)(p->foreign ? LOP_f64 : p->like.dtype);
    }
    if (p->op == &lop_op_difference) {
        p->like.core = 2;
        p->like.shape = lop_difference_shape(&p->attr);
        p->has_like = true;
    }
    if (p->op == &lop_op_kernel)
        return py_kernel_finish(p->arg, p->child, &p->n, &p->attr, p->foreign, err);
    if (p->op == &lop_op_diag && (p->attr.i[0] || p->has_like))
        return py_offset_diag(&p->op, &p->attr, p->child[0], &p->like, &p->has_like, err);
    return LOP_OK;
}

/* A kind over arrays C does not know: its shape stands, its products run in NumPy. */
static lop_status make_foreign(py_parts *p, const lop_node *shaped, const lop_node **out,
                               lop_err *err) {
    lop_node like = {.shape = shaped->shape,
                     .dtype = LOP_NO_DTYPE,
                     .core = 2,
                     .serial = p->s->ctx.next_serial++};
    return lop_node_make(&p->s->ctx, &lop_op_opaque, NULL, 0, NULL, &like, out, err);
}

static PyObject *finish(py_parts *p, PyTypeObject *type) {
    lop_err err;
    lop_err_open(&err);
    if (type != p->s->type[lop_op_id(p->op)]) { /* a user's subclass: with products of its own
                                                   it is no kernel's */
        PyObject *cls = (PyObject *)type, *own = py_call_hook(p->s, "overrides_hooks", &cls, 1);
        if (!own) return NULL;
        p->foreign |= own == Py_True;
        Py_DECREF(own);
    }
    const lop_node *node = NULL;
    lop_status st = fill_defaults(p, &err);
    const lop_node **child = p->many ? p->many : p->child;
    if (st == LOP_OK)
        st = lop_node_make(&p->s->ctx, p->op, &p->attr, p->n, child, p->has_like ? &p->like : NULL,
                           &node, &err);
    if (st == LOP_OK && p->foreign) {
        const lop_node *shaped = node;
        st = make_foreign(p, shaped, &node, &err);
        lop_node_unref(shaped);
    }
    if (st != LOP_OK) return py_raise(p->s, st, &err, NULL, "build");
    py_op *self = (py_op *)type->tp_alloc(type, 0);
    if (!self) {
        lop_node_unref(node);
        return NULL;
    }
    self->s = p->s;
    self->s->refs++;
    self->node = node;
    self->mode = p->mode;
    self->init = Py_NewRef(p->init);
    self->arrays = PyList_AsTuple(p->arrays);
    self->serial = p->serial;
    if (!self->arrays) {
        Py_DECREF(self);
        return NULL;
    }
    py_stamp(p->s, self);
    py_hold_leaf(self);
    return (PyObject *)self;
}

/* The kind's number found last for a class at such an address is tried first: the search takes a
 * fifth of the time of a constructor. It counts only where that kind's class is this one. */
const lop_op *py_op_of_type(py_state *s, PyTypeObject *type) {
    enum { PLACES = 256 };
    static int found[PLACES];
    int *last = &found[((uintptr_t)type >> 5) % PLACES];
    if (*last != LOP_ID_opaque && s->type[*last] == type) return lop_op_at(*last);
    for (int i = 0; i < lop_nops(); i++)
        if (i != LOP_ID_opaque && s->type[i] && PyType_IsSubtype(type, s->type[i])) {
            if (s->type[i] == type) *last = i;
            return lop_op_at(i);
        }
    return NULL;
}

/* Is it a LazyArray, or a list or tuple (of lists) with one in it? */
static bool is_deferred(const py_state *s, PyObject *o, int depth) {
    if (s->lazy && PyObject_TypeCheck(o, s->lazy)) return true;
    if (depth == 0 || !(PyList_CheckExact(o) || PyTuple_CheckExact(o))) return false;
    const bool list = PyList_CheckExact(o);
    const Py_ssize_t n = list ? PyList_GET_SIZE(o) : PyTuple_GET_SIZE(o);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = list ? PyList_GET_ITEM(o, i) : PyTuple_GET_ITEM(o, i);
        if (!PyLong_CheckExact(item) && !PyFloat_CheckExact(item) &&
            is_deferred(s, item, depth - 1))
            return true;
    }
    return false;
}
/* A kind of LazyArrays, itself one: new. Py_NotImplemented (new): no argument is one, or it is made
 * of their values. */
static PyObject *deferred(py_state *s, PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    enum { DEEP = 6 }; /* the arguments, rows of blocks, and the matrices and stacks in them */
    bool any = is_deferred(s, args, DEEP);
    PyObject *value;
    for (Py_ssize_t at = 0; kwargs && !any && PyDict_Next(kwargs, &at, NULL, &value);)
        any = is_deferred(s, value, DEEP);
    if (!any) Py_RETURN_NOTIMPLEMENTED;
    return py_lazy_kind(s, type, args, kwargs);
}

static PyObject *construct(py_state *s, PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    py_parts p = {.s = s};
    PyObject *later = deferred(p.s, type, args, kwargs);
    if (later != Py_NotImplemented) return later;
    Py_DECREF(later);
    p.op = py_op_of_type(p.s, type);
    if (!p.op || !p.op->param[0].name) {
        PyErr_Format(PyExc_TypeError,
                     "%.100s operators come from expressions, not from a constructor",
                     type->tp_name);
        return NULL;
    }
    if (p.op == &lop_op_kernel && py_kernel_is_callable(args, kwargs))
        return py_kernel_callable(p.s, args, kwargs);
    PyObject *self = NULL;
    if (!(args = py_operands(p.s, p.op, args))) return NULL;
    p.arrays = PyList_New(0);
    if (!p.arrays || py_read_arguments(&p, args, kwargs) < 0) goto done;
    self = finish(&p, type);
done:
    for (int i = 0; i < LOP_MAXPARAM; i++) lop_node_unref(p.child[i]);
    for (int i = 0; p.many && i < p.n; i++) lop_node_unref(p.many[i]);
    PyMem_Free(p.many);
    py_drop(p.init);
    py_drop(p.arrays);
    Py_DECREF(args);
    return self;
}

PyObject *py_construct(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    py_state *s = py_state_of_type(type);
    PyObject *self = s ? construct(s, type, args, kwargs) : NULL;
    if (self || !s || !PyErr_ExceptionMatches(PyExc_TypeError)) return self;
    PyObject *all[4] = {(PyObject *)type, args, kwargs ? kwargs : Py_None, NULL};
    return py_instead(s, "of_placeholders", all, 4); /* was the value of one asked for? */
}

PyObject *py_as_operator(py_state *s, PyObject *o) {
    if (py_is_op(s, o)) return Py_NewRef(o);
    return py_call_hook(s, "as_operator", &o, 1);
}

/* The constructor of a Dense or a Diag for one plain array, without its reading of arguments: the
 * same object. `word`: what is known of a Dense, LOP_ASSUME_TRIED, or nothing, 0. NULL without an
 * exception: it is for the constructor. */
static PyObject *of_plain_array(py_state *s, const lop_op *op, PyArrayObject *a, int word) {
    lop_err err;
    lop_err_open(&err);
    const bool dense = op == &lop_op_dense;
    const lop_dtype dt = py_dtype(a);
    lop_shape shape = {.ndim = PyArray_NDIM(a)};
    if (dt == LOP_NO_DTYPE || shape.ndim < (dense ? 2 : 1) || shape.ndim > LOP_MAXDIM - !dense)
        return NULL;
    for (int i = 0; i < shape.ndim; i++) shape.dim[i] = PyArray_DIM(a, i);
    lop_status st = LOP_OK;
    const lop_node *node = NULL,
                   *leaf = py_array_leaf(s, a, dt, dense ? 2 : 1, &shape, dense, &st, &err);
    const lop_attr attr = {.i = {word, 0, 0, 0}};
    if (st == LOP_OK)
        st = lop_node_make(&s->ctx, op, word ? &attr : NULL, 1, &leaf, NULL, &node, &err);
    const uint64_t serial = leaf ? leaf->serial : 0;
    lop_node_unref(leaf);
    if (st != LOP_OK) return py_raise(s, st, &err, NULL, "build");
    py_op *self = (py_op *)py_wrap(s, node, NULL, 0, NULL, NULL);
    if (!self) return NULL;
    self->serial = serial;
    PyObject *main_one = PyLong_FromLong(0);
    self->init = dense      ? PyTuple_Pack(2, (PyObject *)a, Py_None)
                 : main_one ? PyTuple_Pack(3, (PyObject *)a, main_one, Py_None)
                            : NULL;
    Py_XDECREF(main_one);
    self->arrays = PyTuple_Pack(1, (PyObject *)a);
    if (!self->init || !self->arrays) Py_CLEAR(self);
    if (self) py_hold_leaf(self);
    return (PyObject *)self;
}

PyObject *py_dense(py_state *s, PyArrayObject *a) {
    PyTypeObject *type = s->type[LOP_ID_dense];
    if (!type) return PyErr_Format(PyExc_RuntimeError, "pylinop is not set up");
    PyObject *self = PyArray_CheckExact(a) ? of_plain_array(s, &lop_op_dense, a, 0) : NULL;
    return self || PyErr_Occurred() ? self : PyObject_CallOneArg((PyObject *)type, (PyObject *)a);
}

PyObject *py_dense_symmetric(py_state *s, PyArrayObject *a) {
    PyObject *self = of_plain_array(s, &lop_op_dense, a, LOP_ASSUME_TRIED);
    return self || PyErr_Occurred() ? self : py_dense(s, a);
}

PyObject *py_construct_fast(PyObject *callable, PyObject *const *args, size_t nargs,
                            PyObject *names) {
    PyTypeObject *type = (PyTypeObject *)callable;
    const Py_ssize_t n = PyVectorcall_NARGS(nargs), more = names ? PyTuple_GET_SIZE(names) : 0;
    if (n == 1 && more == 0 && PyArray_CheckExact(args[0])) {
        py_state *s = py_state_of_type(type);
        const lop_op *op = s ? py_op_of_type(s, type) : NULL;
        const bool plain = op == &lop_op_dense || op == &lop_op_diag;
        PyObject *self = plain ? of_plain_array(s, op, (PyArrayObject *)args[0], 0) : NULL;
        if (self || PyErr_Occurred()) return self;
    }
    PyObject *tuple = PyTuple_New(n), *kwargs = more ? PyDict_New() : NULL, *self = NULL;
    for (Py_ssize_t i = 0; tuple && i < n; i++) PyTuple_SET_ITEM(tuple, i, Py_NewRef(args[i]));
    bool ok = tuple && (kwargs || more == 0);
    for (Py_ssize_t i = 0; ok && i < more; i++)
        ok = PyDict_SetItem(kwargs, PyTuple_GET_ITEM(names, i), args[n + i]) == 0;
    if (ok) self = py_construct(type, tuple, kwargs);
    py_drop(tuple);
    py_drop(kwargs);
    return self;
}
