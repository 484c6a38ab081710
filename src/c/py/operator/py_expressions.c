/* py_expressions.c: building expressions: O(1), nothing computed, closed at once where a rule says
 * so. */
#include "py/lazy/py_lazy.h"

#include <float.h>
#include <math.h>

static PyObject *build(py_state *s, const lop_op *op, const lop_attr *attr, PyObject *a,
                       PyObject *b, bool close) {
    lop_err err;
    lop_err_open(&err);
    const lop_node *child[2] = {py_node(s, (py_op *)a), NULL}, *node = NULL;
    int n = 1, rule = -1;
    if (!child[0]) return NULL;
    if (b && py_is_op(s, b)) {
        child[1] = py_node(s, (py_op *)b);
        if (!child[1]) return NULL;
        n = 2;
    }
    py_config_here(s);
    lop_status st = LOP_NOMATCH;
    if (close && lop_may_close(s->rules, op, child[0]->op, n > 1 ? child[1]->op : NULL))
        st = lop_close(s->rules, &s->ctx, op, attr, n, child, &node, &rule, &err);
    if (st == LOP_NOMATCH) st = lop_node_make(&s->ctx, op, attr, n, child, NULL, &node, &err);
    if (st != LOP_OK) return py_raise(s, st, &err, NULL, "build");
    return py_wrap(s, node, op, attr && !op->coef ? (int)attr->i[0] : 0, a, b);
}

PyObject *py_build(py_state *s, const lop_op *op, const lop_attr *attr, PyObject *a, PyObject *b) {
    return build(s, op, attr, a, b, true);
}

/* -- views */

PyObject *py_view(py_state *s, py_op *self, int mode) {
    const lop_node *node = py_node(s, self);
    if (!node) return NULL;
    if (node->opaque && node->op == &lop_op_opaque &&
        mode != LOP_C) { /* a user's _adjoint or _transpose */
        PyObject *m = PyLong_FromLong(mode), *args[2] = {(PyObject *)self, m};
        PyObject *r = m ? py_call_hook(s, "user_view", args, 2) : NULL;
        Py_XDECREF(m);
        if (r != Py_None) return r;
        Py_DECREF(r);
    }
    if (self->by == &lop_op_view) { /* (A^T)^T is A itself, closed or not */
        int both = self->mode ^ mode;
        if (both == 0) return Py_NewRef(self->a);
        return py_view(s, (py_op *)self->a, both);
    }
    if (mode == LOP_C && !lop_is_complex(node->dtype) && node->dtype != LOP_NO_DTYPE)
        return Py_NewRef(self);
    bool same = node->op == &lop_op_identity ||
                (node->op == &lop_op_diag && (!(mode & LOP_C) || !lop_is_complex(node->dtype)));
    if (same) return Py_NewRef(self);
    lop_attr a = {.i = {mode, 0, 0, 0}};
    return py_build(s, &lop_op_view, &a, (PyObject *)self, NULL);
}

PyObject *py_inverse(py_state *s, py_op *self, bool once) {
    const lop_node *node = py_node(s, self);
    if (!node) return NULL;
    if (self->by == &lop_op_inverse) { /* of an integer matrix a float one: so is the inverse's */
        const lop_node *a = py_node(s, (py_op *)self->a);
        if (!a) return NULL;
        if (a->weak ? a->weak == node->weak : a->dtype == LOP_NO_DTYPE || lop_is_blas(a->dtype))
            return Py_NewRef(self->a);
    }
    /* closed it would be a new node for every block, at each call */
    bool open = once && node->op == &lop_op_blockdiag && !node->opaque;
    return build(s, &lop_op_inverse, NULL, (PyObject *)self, NULL, !open);
}

/* -- numbers */

/* Not of a subclass, which may mean more than its number: a unit. */
static bool is_numpy_number(PyObject *o) {
    return PyArray_IsScalar(o, Generic) ||
           (PyArray_CheckExact(o) && PyArray_NDIM((PyArrayObject *)o) == 0);
}

static int strong_coefficient(PyObject *number, lop_attr *attr) {
    PyArrayObject *a =
        (PyArrayObject *)PyArray_FROM_OF(number, NPY_ARRAY_ALIGNED | NPY_ARRAY_NOTSWAPPED);
    if (!a) return -1;
    lop_dtype dt = py_dtype(a);
    int ok = dt != LOP_NO_DTYPE && PyArray_NDIM(a) == 0;
    if (ok) {
        double _Complex v = lop_get(dt, PyArray_DATA(a), 0);
        attr->re = __real__ v;
        attr->im = __imag__ v;
        attr->i[1] = LOP_STRONG;
        attr->i[2] = (int64_t)dt;
        if (!lop_is_blas(dt)) {
            PyObject *n = PyNumber_Long(number);
            if (n && dt == LOP_u64)
                attr->i[0] = (int64_t)PyLong_AsUnsignedLongLong(n);
            else if (n)
                attr->i[0] = PyLong_AsLongLong(n);
            Py_XDECREF(n);
        } else {
            attr->i[0] = (attr->re > -9e18 && attr->re < 9e18) ? (int64_t)attr->re : 0;
        }
    }
    Py_DECREF(a);
    return PyErr_Occurred() ? -1 : ok;
}

int py_coefficient(PyObject *number, lop_attr *attr) {
    *attr = (lop_attr){0};
    if (PyFloat_CheckExact(number)) {
        *attr = lop_attr_coef(PyFloat_AS_DOUBLE(number), 0);
        return 1;
    }
    if (PyBool_Check(number) || PyLong_CheckExact(number)) {
        int overflow;
        long long v = PyLong_AsLongLongAndOverflow(number, &overflow);
        if (overflow) {
            double d = PyLong_AsDouble(number);
            if (d == -1 && PyErr_Occurred()) return -1;
            *attr = lop_attr_coef(d, 0);
            return 1;
        }
        attr->i[0] = v;
        attr->i[1] = PyBool_Check(number) ? LOP_WEAK : LOP_WEAK_INT;
        attr->re = (double)v;
        return 1;
    }
    if (PyComplex_CheckExact(number)) {
        *attr = lop_attr_coef(PyComplex_RealAsDouble(number), PyComplex_ImagAsDouble(number));
        attr->i[1] = LOP_WEAK_COMPLEX;
        return 1;
    }
    return is_numpy_number(number) ? strong_coefficient(number, attr) : 0;
}

/* -- are two coefficients one? Where their product, as NumPy takes it, has all their digits. */

static bool is_single(const lop_attr *c) {
    return c->i[1] == LOP_STRONG && (c->i[2] == LOP_f32 || c->i[2] == LOP_c64);
}
static bool is_whole(const lop_attr *c) {
    if (c->i[1] == LOP_STRONG) return !lop_is_blas((lop_dtype)c->i[2]);
    return c->i[1] < LOP_WEAK_FLOAT;
}
/* A part of the product: exact in single precision where it will be such. */
static bool part_fits(double x, bool exact) { return !exact || x == 0 || lop_in_f32(x) == x; }

static bool is_unsigned(const lop_attr *c) {
    return c->i[1] == LOP_STRONG && lop_dtype_family((lop_dtype)c->i[2]) == 'u';
}

/* Integers in no more bits than those have that they meet, and with the sign that they may have. */
static bool wholes_merge(const lop_attr *a, const lop_attr *b, lop_dtype dt) {
    const bool weak = a->i[1] != LOP_STRONG && b->i[1] != LOP_STRONG,
               wide = lop_is_blas(dt) || lop_dtype_size(dt) == 8;
    const double most = weak && wide ? 0x1p53 : 127;
    if ((is_unsigned(a) || is_unsigned(b)) && (a->re < 0 || b->re < 0)) return false;
    return fabs(a->re) <= most && fabs(b->re) <= most && fabs(a->re * b->re) <= most;
}

/* May c2 (c1 A), of dtype dt, be (c2 c1) A? Integers where they are small enough; others unless the
 * product over- or underflows where neither factor does, or would be rounded to single precision.
 * Kept apart they are right in any case. */
static bool coefficients_merge(const lop_attr *a, const lop_attr *b, lop_dtype dt) {
    if (is_whole(a) && is_whole(b)) return wholes_merge(a, b, dt);
    const double re = a->re * b->re - (a->im != 0 && b->im != 0 ? a->im * b->im : 0),
                 im = (b->im != 0 ? a->re * b->im : 0) + (a->im != 0 ? a->im * b->re : 0),
                 size = fmax(fabs(re), fabs(im)), one = fmax(fabs(a->re), fabs(a->im)),
                 two = fmax(fabs(b->re), fabs(b->im));
    if (!(one > 0 && two > 0 && one <= DBL_MAX && two <= DBL_MAX)) return true; /* as written */
    const bool narrow = dt == LOP_f32 || dt == LOP_c64, exact = is_single(a) || is_single(b);
    if (!(size >= (narrow || exact ? FLT_MIN : DBL_MIN) &&
          size <= (narrow || exact ? FLT_MAX : DBL_MAX)))
        return false;
    return part_fits(re, exact) && part_fits(im, exact);
}

/* Has (c2 c1) A the dtype of c2 (c1 A)? Of NumPy's int16 and Python's 0.5 the product is a float64,
 * which single precision would not meet as written. -1: an exception. */
static int same_dtype(py_state *s, const lop_node *scaled, const lop_attr *c, py_op *inner,
                      PyObject *both) {
    const lop_node *a = py_node(s, inner);
    lop_node two = {.dtype = scaled->dtype, .weak = scaled->weak, .attr = *c}, one = two;
    const int known = a ? py_coefficient(both, &one.attr) : -1;
    if (known <= 0) return known;
    one.dtype = a->dtype;
    one.weak = a->weak;
    lop_node_scale(&two);
    lop_node_scale(&one);
    return one.dtype == two.dtype && one.weak == two.weak;
}

/* operator * number as written; a number of a foreign kind goes the slow way. */
static PyObject *scale(py_state *s, PyObject *op, PyObject *number) {
    lop_attr c;
    int known = py_coefficient(number, &c);
    if (known < 0) return NULL;
    if (!known) {
        PyObject *args[2] = {op, number};
        return py_call_hook(s, "scale", args, 2);
    }
    py_op *self = (py_op *)op;
    const lop_node *node = py_node(s, self);
    if (!node) return NULL;
    if (node->op == &lop_op_scaled && self->a && self->b &&
        coefficients_merge(&node->attr, &c, node->dtype)) { /* (c2 c1) A, as in SciPy */
        /* NumPy's number first: Python's complex takes its float64 for a float of Python's */
        const bool strong = PyArray_CheckScalar(number);
        PyObject *both =
            strong ? PyNumber_Multiply(number, self->b) : PyNumber_Multiply(self->b, number);
        const int one = both ? same_dtype(s, node, &c, (py_op *)self->a, both) : -1;
        PyObject *r = one > 0 ? scale(s, self->a, both) : NULL;
        Py_XDECREF(both);
        if (one) return r;
    }
    return py_build(s, &lop_op_scaled, &c, op, number);
}

bool py_is_number(PyObject *o) {
    return PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o) || is_numpy_number(o);
}

/* -- slots */

/* The state from whichever operand is ours. */
static py_state *state_of_two(PyObject *a, PyObject *b, bool *left) {
    PyNumberMethods *slots = Py_TYPE(a)->tp_as_number;
    *left = slots && slots->nb_matrix_multiply == py_matmul;
    if (*left) return py_state_of(a);
    py_state *s = py_state_of_type(Py_TYPE(a)); /* a subclass with a slot of its own */
    *left = s != NULL;
    if (s) return s;
    PyErr_Clear();
    return py_state_of(b);
}

static PyObject *binary_hook(py_state *s, const char *name, PyObject *a, PyObject *b) {
    PyObject *args[2] = {a, b};
    return py_call_hook(s, name, args, 2);
}

/* A callable or a user's subclass times a vector that fits: the hook itself, when it gives back a
 * plain vector of the right length. NULL without an exception: the slow way decides. */
PyObject *py_call_matvec(py_state *s, py_op *self, PyArrayObject *x) {
    const lop_node *node = self->node;
    if (node->op != &lop_op_opaque || self->a || self->init || node->shape.ndim != 2 ||
        PyArray_NDIM(x) != 1 || PyArray_DIM(x, 0) != lop_cols(node))
        return NULL;
    PyObject *y = PyObject_CallMethodOneArg((PyObject *)self, s->matvec_name, (PyObject *)x);
    if (y && PyArray_CheckExact(y) && PyArray_NDIM((PyArrayObject *)y) == 1 &&
        PyArray_DIM((PyArrayObject *)y, 0) == lop_rows(node))
        return y;
    if (!y) return NULL;
    PyObject *args[3] = {(PyObject *)self, (PyObject *)x, y},
             *r = py_call_hook(s, "shaped", args, 3);
    Py_DECREF(y);
    return r;
}

PyObject *py_matmul(PyObject *a, PyObject *b) {
    bool left;
    py_state *s = state_of_two(a, b, &left);
    if (!s) return NULL;
    if (!left) return binary_hook(s, "rmatmul", a, b);
    if (!PyArray_CheckExact(b) && py_is_op(s, b)) return py_build(s, &lop_op_prod, NULL, a, b);
    if (PyArray_CheckExact(b)) {
        PyArrayObject *x = (PyArrayObject *)b;
        if (!py_node(s, (py_op *)a)) return NULL;
        py_config_here(s);
        PyObject *fast =
            ((py_op *)a)->cache ? py_direct(s, (py_op *)a, x) : py_call_matvec(s, (py_op *)a, x);
        if (fast || PyErr_Occurred()) return fast;
        const lop_node *node = ((py_op *)a)->node;
        int nd = PyArray_NDIM(x);
        bool vec = nd == 1;
        if (!node->opaque && nd > 0 && PyArray_DIM(x, vec ? 0 : nd - 2) == lop_cols(node)) {
            PyObject *r = py_apply_here(s, (py_op *)a, x, LOP_N, false, vec, NULL);
            if (r != Py_NotImplemented) return r;
            Py_DECREF(r);
        }
    }
    if (py_is_lazy(s, b)) Py_RETURN_NOTIMPLEMENTED;
    PyObject *x = PyArray_CheckExact(b) ? NULL : py_foreign(b, false);
    if (!x) return PyErr_Occurred() ? NULL : binary_hook(s, "matmul", a, b);
    PyObject *r = py_matmul(a, x);
    Py_DECREF(x);
    return r;
}

PyObject *py_add(PyObject *a, PyObject *b) {
    bool left;
    py_state *s = state_of_two(a, b, &left);
    if (!s) return NULL;
    if (left && py_is_op(s, b)) return py_build(s, &lop_op_sum, NULL, a, b);
    if (py_is_lazy(s, b)) Py_RETURN_NOTIMPLEMENTED; /* its own method makes the node */
    return binary_hook(s, "add", a, b);
}

PyObject *py_subtract(PyObject *a, PyObject *b) {
    bool left;
    py_state *s = state_of_two(a, b, &left);
    if (!s) return NULL;
    if (py_is_lazy(s, b)) Py_RETURN_NOTIMPLEMENTED;
    if (!left || !py_is_op(s, b)) return binary_hook(s, "subtract", a, b);
    PyObject *minus = py_negative(b);
    PyObject *r = minus ? py_build(s, &lop_op_sum, NULL, a, minus) : NULL;
    Py_XDECREF(minus);
    return r;
}

PyObject *py_multiply(PyObject *a, PyObject *b) {
    bool left;
    py_state *s = state_of_two(a, b, &left);
    if (!s) return NULL;
    PyObject *other = left ? b : a;
    if (py_is_number(other)) return scale(s, left ? a : b, other);
    return left ? binary_hook(s, "multiply", a, b) : binary_hook(s, "rmultiply", a, b);
}

PyObject *py_divide(PyObject *a, PyObject *b) {
    bool left;
    py_state *s = state_of_two(a, b, &left);
    if (!s) return NULL;
    return binary_hook(s, "divide", a, b);
}

PyObject *py_negative(PyObject *a) {
    py_state *s = py_state_of(a);
    PyObject *one = PyLong_FromLong(-1);
    PyObject *r = s && one ? scale(s, a, one) : NULL;
    Py_XDECREF(one);
    return r;
}

PyObject *py_positive(PyObject *a) { return Py_NewRef(a); }

PyObject *py_power(PyObject *a, PyObject *p, PyObject *mod) {
    bool left;
    py_state *s = state_of_two(a, p, &left);
    if (!s) return NULL;
    if (!left || mod != Py_None) Py_RETURN_NOTIMPLEMENTED;
    if (!PyIndex_Check(p)) {
        PyErr_Format(PyExc_ValueError, "a power must be a non-negative integer, got %R", p);
        return NULL;
    }
    PyObject *index = PyNumber_Index(p);
    if (!index) return NULL;
    lop_attr attr = {.i = {PyLong_AsLongLong(index), 0, 0, 0}};
    Py_DECREF(index);
    if (PyErr_Occurred()) return NULL;
    return py_build(s, &lop_op_power, &attr, a, p);
}

/* -- NumPy's matmul with one operator: x @ op comes this way too */

/* The product in C; Py_NotImplemented (new) where it is not for C. */
static PyObject *ufunc_matmul(py_state *s, PyObject *a, PyObject *b, PyObject *out) {
    bool right = !py_is_op(s, a);
    py_op *op = (py_op *)(right ? b : a);
    PyArrayObject *x = (PyArrayObject *)(right ? a : b);
    if (!py_is_op(s, (PyObject *)op) || !PyArray_CheckExact((PyObject *)x) || !op->node ||
        op->node->opaque)
        Py_RETURN_NOTIMPLEMENTED;
    int nd = PyArray_NDIM(x);
    bool vec = nd == 1;
    if (nd == 0 || PyArray_DIM(x, right || vec ? nd - 1 : nd - 2) !=
                       (right ? lop_rows(op->node) : lop_cols(op->node)))
        Py_RETURN_NOTIMPLEMENTED; /* Python words the error */
    if (!right && !out) return py_matmul(a, b);
    return py_apply_here(s, op, x, right && vec ? LOP_T : LOP_N, right && !vec, vec, out);
}

PyObject *py_array_ufunc(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    py_state *s = py_state_of(self);
    Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
    PyObject *out = NULL, *all[80];
    bool plain = n == 4 && args[0] == s->matmul && named <= 1 && PyUnicode_Check(args[1]) &&
                 PyUnicode_CompareWithASCIIString(args[1], "__call__") == 0;
    if (plain && named) {
        PyObject *tuple = args[4];
        plain = PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "out") == 0 &&
                PyTuple_Check(tuple) && PyTuple_GET_SIZE(tuple) == 1 &&
                PyArray_CheckExact(PyTuple_GET_ITEM(tuple, 0));
        if (plain) out = PyTuple_GET_ITEM(tuple, 0);
    }
    if (plain) {
        PyObject *r = ufunc_matmul(s, args[2], args[3], out);
        if (r != Py_NotImplemented) return r;
        Py_DECREF(r);
    }
    if (n + named + 1 > (Py_ssize_t)(sizeof all / sizeof all[0]))
        return PyErr_Format(PyExc_TypeError, "too many arguments: %zd", n + named);
    all[0] = self;
    for (Py_ssize_t i = 0; i < n + named; i++) all[i + 1] = args[i];
    PyObject *hook = py_hook(s, "array_ufunc");
    return hook ? PyObject_Vectorcall(hook, all, (size_t)(n + 1), names) : NULL;
}
