/* py_lazy_arith.c: LazyArrays combined: products, sums, multiples, views, indices, and NumPy's
 * element-wise arithmetic, where shapes and dtypes are plain. O(1), nothing computed.
 *
 * What is not plain (integers, mixed dtypes, lists, keywords, the other ufuncs) goes to Python
 * (_lazy/build.py), which asks NumPy. Both make the same nodes. */
#include "py_lazy.h"

static const char *const ufuncs[U_COUNT] = {
    "matmul",      "add",           "subtract",  "multiply",   "true_divide", "negative",
    "conjugate",   "floor_divide",  "remainder", "power",      "bitwise_and", "bitwise_or",
    "bitwise_xor", "absolute",      "less",      "less_equal", "equal",       "not_equal",
    "greater",     "greater_equal", "square"};

int py_lazy_import(py_state *s) {
    PyObject *numpy = PyImport_ImportModule("numpy");
    for (int i = 0; numpy && i < U_COUNT; i++) {
        s->ufunc[i] = PyObject_GetAttrString(numpy, ufuncs[i]);
        s->call[i] = s->ufunc[i] ? Py_BuildValue("(O{})", s->ufunc[i]) : NULL;
        if (!s->call[i]) Py_CLEAR(numpy);
    }
    Py_XDECREF(numpy);
    return numpy ? 0 : -1;
}

/* The state, from whichever operand is ours; NULL without an exception. */
static py_state *state_of(PyObject *a, PyObject *b) {
    PyObject *two[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        const PyNumberMethods *slots = Py_TYPE(two[i])->tp_as_number;
        if (slots && slots->nb_matrix_multiply == py_lazy_matmul) return ((py_lazy *)two[i])->s;
    }
    for (int i = 0; i < 2; i++) { /* a subclass with a slot of its own */
        py_state *s = py_state_of_type(Py_TYPE(two[i]));
        if (s) return s;
        PyErr_Clear();
    }
    return NULL;
}

/* -- operands */

typedef struct operand {
    PyObject *o;
    int nd;
    const npy_intp *dim;
    PyArray_Descr *dtype; /* borrowed; NULL: a number of Python's */
    bool imaginary;       /* such a number, complex */
} operand;

/* False: not a plain one. */
static bool look(const py_state *s, PyObject *o, operand *x) {
    *x = (operand){.o = o};
    if (py_is_lazy(s, o)) {
        const py_lazy *a = (py_lazy *)o;
        x->nd = a->nd;
        x->dim = a->dim;
        x->dtype = a->dtype;
        return true;
    }
    if (PyArray_CheckExact(o)) {
        PyArrayObject *a = (PyArrayObject *)o;
        x->nd = PyArray_NDIM(a);
        x->dim = PyArray_DIMS(a);
        x->dtype = PyArray_DESCR(a);
        return PyTypeNum_ISNUMBER(PyArray_TYPE(a)) || PyTypeNum_ISBOOL(PyArray_TYPE(a));
    }
    if (PyArray_IsScalar(o, Number)) {
        PyArray_Descr *d = PyArray_DescrFromScalar(o);
        bool known = d && PyTypeNum_ISNUMBER(d->type_num);
        x->dtype = d; /* one of NumPy's own, which live as long as NumPy */
        Py_XDECREF((PyObject *)d);
        if (!d) PyErr_Clear();
        return known;
    }
    x->imaginary = PyComplex_CheckExact(o);
    return x->imaginary || PyFloat_CheckExact(o) || PyLong_CheckExact(o);
}

/* The dtype of both together, borrowed; NULL: NumPy is to say. */
static PyArray_Descr *common(const operand *x, const operand *y) {
    PyArray_Descr *d = x->dtype ? x->dtype : y->dtype;
    if (!d || !py_is_plain(d) || (x->dtype && y->dtype && x->dtype != y->dtype)) return NULL;
    return (x->imaginary || y->imaginary) && !PyTypeNum_ISCOMPLEX(d->type_num) ? NULL : d;
}

/* The dtype of two arrays together: new. */
static PyArray_Descr *promoted(PyArray_Descr *a, PyArray_Descr *b) {
    PyArray_Descr *two[2] = {a, b};
    if (a == b && PyArray_ISNBO(a->byteorder)) return (PyArray_Descr *)Py_NewRef((PyObject *)a);
    return PyArray_ResultType(0, NULL, 2, two);
}

/* The dtype d, made complex where `by`, which has no dtype of its own, is that: new. */
static PyArray_Descr *taken(PyArray_Descr *d, const PyArray_Descr *by) {
    if (!PyTypeNum_ISCOMPLEX(by->type_num) || PyTypeNum_ISCOMPLEX(d->type_num))
        return promoted(d, d);
    PyArray_Descr *least = PyArray_DescrFromType(NPY_CFLOAT);
    PyArray_Descr *both = least ? promoted(d, least) : NULL;
    Py_XDECREF((PyObject *)least);
    return both;
}

/* The dtype of two nodes together: new. One without a dtype of its own takes the other's. */
static PyArray_Descr *joined(const py_lazy *x, const py_lazy *y) {
    const bool float_x =
                   PyTypeNum_ISFLOAT(x->dtype->type_num) || PyTypeNum_ISCOMPLEX(x->dtype->type_num),
               float_y =
                   PyTypeNum_ISFLOAT(y->dtype->type_num) || PyTypeNum_ISCOMPLEX(y->dtype->type_num);
    if (x->adopts && !y->adopts && float_y) return taken(y->dtype, x->dtype);
    if (y->adopts && !x->adopts && float_x) return taken(x->dtype, y->dtype);
    return promoted(x->dtype, y->dtype);
}

static bool same_shape(const operand *x, const operand *y) {
    if (x->nd != y->nd) return false;
    for (int i = 0; i < x->nd; i++)
        if (x->dim[i] != y->dim[i]) return false;
    return true;
}

/* Is x one number, of at most nd dimensions? */
static bool is_single(const operand *x, int nd) {
    for (int i = 0; i < x->nd; i++)
        if (x->dim[i] != 1) return false;
    return x->nd <= nd;
}

/* An operator of ours as a node: new; Py_None (new): it may say its shape and dtype itself. */
static PyObject *operator_leaf(py_state *s, PyObject *o) {
    const lop_node *node = ((py_op *)o)->node;
    npy_intp dim[LOP_MAXDIM];
    if (!node || node->opaque) Py_RETURN_NONE;
    for (int i = 0; i < node->shape.ndim; i++) dim[i] = (npy_intp)node->shape.dim[i];
    PyObject *d = py_descr(node->dtype);
    if (!d) return NULL;
    py_lazy *made = py_lazy_new(s, PY_OPERATOR, o, NULL, node->shape.ndim, dim, (PyArray_Descr *)d);
    Py_DECREF(d);
    return (PyObject *)made;
}

PyObject *py_lazy_node(py_state *s, PyObject *o) {
    if (py_is_lazy(s, o)) return Py_NewRef(o);
    return !PyArray_CheckExact(o) && py_is_op(s, o) ? operator_leaf(s, o) : py_lazy_leaf(s, o);
}

/* -- nodes */

/* Dimensions together, from the end; -1: they do not fit. */
static int broadcast(int na, const npy_intp *a, int nb, const npy_intp *b, npy_intp *out) {
    int n = na > nb ? na : nb;
    for (int i = 1; i <= n; i++) {
        npy_intp x = i <= na ? a[na - i] : 1, y = i <= nb ? b[nb - i] : 1;
        if (x != y && x != 1 && y != 1) return -1;
        out[n - i] = x == 1 ? y : x;
    }
    return n;
}

static PyObject *product(py_state *s, py_lazy *x, py_lazy *y) {
    npy_intp dim[NPY_MAXDIMS];
    PyObject *both[2] = {(PyObject *)x, (PyObject *)y};
    int n = 0;
    bool fits = x->nd > 0 && y->nd > 0 && x->dim[x->nd - 1] == y->dim[y->nd > 1 ? y->nd - 2 : 0];
    if (fits && (x->nd > 2 || y->nd > 2))
        n = broadcast(x->nd > 2 ? x->nd - 2 : 0, x->dim, y->nd > 2 ? y->nd - 2 : 0, y->dim, dim);
    if (!fits || n < 0) return py_call_hook(s, "lazy_mismatch", both, 2);
    if (x->nd > 1) dim[n++] = x->dim[x->nd - 2];
    if (y->nd > 1) dim[n++] = y->dim[y->nd - 1];
    PyArray_Descr *d = joined(x, y);
    if (!d) return NULL;
    py_lazy *made = py_lazy_new(s, PY_MATMUL, both[0], both[1], n, dim, d);
    Py_DECREF((PyObject *)d);
    return (PyObject *)made;
}

PyObject *py_lazy_view(py_state *s, py_lazy *self, int mode) {
    if (self->head == PY_GONE || self->nd < 2)
        return PyErr_Format(PyExc_ValueError, "a view is of a matrix, got %d dimensions", self->nd);
    if (!PyTypeNum_ISCOMPLEX(self->dtype->type_num)) mode &= LOP_T;
    if (self->head == PY_VIEW) {
        mode ^= self->mode;
        self = py_lazy_arg(self, 0);
    }
    mode &= LOP_H;
    if (mode == 0) return Py_NewRef((PyObject *)self);
    int nd = self->nd;
    py_lazy *made = py_lazy_new(s, PY_VIEW, (PyObject *)self, NULL, nd, self->dim, self->dtype);
    if (!made) return NULL;
    made->mode = (uint8_t)mode;
    if (mode & LOP_T) {
        made->dim[nd - 1] = self->dim[nd - 2];
        made->dim[nd - 2] = self->dim[nd - 1];
    }
    return (PyObject *)made;
}

PyObject *py_lazy_inverse(py_state *s, py_lazy *self) {
    PyObject *o = (PyObject *)self;
    if (self->nd < 2 || self->dim[self->nd - 1] != self->dim[self->nd - 2])
        return py_call_hook(s, "lazy_not_square", &o, 1);
    PyObject *d = py_is_plain(self->dtype) ? Py_NewRef((PyObject *)self->dtype)
                                           : py_call_hook(s, "lazy_inverse_dtype", &o, 1);
    if (!d) return NULL;
    py_lazy *made = py_lazy_new(s, PY_INVERSE, o, NULL, self->nd, self->dim, (PyArray_Descr *)d);
    Py_DECREF(d);
    return (PyObject *)made;
}

/* c * a, or a / c as PY_OVER, for a number or a 0-d LazyArray. */
static PyObject *multiple(py_state *s, py_head head, py_lazy *a, PyObject *c) {
    operand x, y;
    PyObject *args[3] = {s->ufunc[head == PY_OVER ? U_DIV : U_MUL], (PyObject *)a, c};
    const bool known = look(s, args[1], &x) && look(s, c, &y);
    PyArray_Descr *d = known ? common(&x, &y) : NULL;
    if (known && a->adopts && y.dtype && py_is_plain(y.dtype))
        d = taken(y.dtype, a->dtype);
    else if (d)
        Py_INCREF((PyObject *)d);
    else if (py_is_lazy(s, c))
        d = promoted(a->dtype, ((py_lazy *)c)->dtype);
    else
        d = (PyArray_Descr *)py_call_hook(s, "lazy_dtype", args, 3);
    if (!d) return NULL;
    py_lazy *made = py_lazy_new(s, head, args[1], c, a->nd, a->dim, d);
    Py_DECREF((PyObject *)d);
    return (PyObject *)made;
}

PyObject *py_lazy_scaled(py_state *s, py_lazy *a, PyObject *c) {
    return multiple(s, PY_SCALE, a, c);
}

/* The dtype that a ufunc gives: new. */
static PyArray_Descr *result_of(py_state *s, int u, const operand *x, const operand *y) {
    operand same = {.dtype = x->dtype};
    PyArray_Descr *d = u <= U_CONJ ? common(x, y ? y : &same) : NULL;
    if (d) return (PyArray_Descr *)Py_NewRef((PyObject *)d);
    PyObject *args[3] = {s->ufunc[u], x->o, y ? y->o : NULL};
    return (PyArray_Descr *)py_call_hook(s, "lazy_dtype", args, y ? 3 : 2);
}

/* An element-wise function; Py_NotImplemented (new): the shapes do not broadcast. */
static PyObject *call(py_state *s, int u, const operand *x, const operand *y) {
    npy_intp dim[NPY_MAXDIMS];
    int nd = y ? broadcast(x->nd, x->dim, y->nd, y->dim, dim) : x->nd;
    if (nd < 0) Py_RETURN_NOTIMPLEMENTED;
    PyArray_Descr *d = result_of(s, u, x, y);
    if (!d) return NULL;
    py_lazy *made = py_lazy_new(s, PY_CALL, x->o, y ? y->o : NULL, nd, y ? dim : x->dim, d);
    if (made) made->more = Py_NewRef(s->call[u]);
    Py_DECREF((PyObject *)d);
    return (PyObject *)made;
}

/* -- operations: new, Py_NotImplemented (new): Python decides */

static PyObject *try_matmul(py_state *s, PyObject *a, PyObject *b) {
    PyObject *x = py_lazy_node(s, a), *y = x ? py_lazy_node(s, b) : NULL, *r = NULL;
    if (y && (x == Py_None || y == Py_None))
        r = Py_NewRef(Py_NotImplemented);
    else if (y)
        r = product(s, (py_lazy *)x, (py_lazy *)y);
    Py_XDECREF(x);
    Py_XDECREF(y);
    return r;
}

/* Are x and y stacks, or one a matrix, of one size? `numbers`: is one of them of numbers, 1 x 1? */
static bool are_stacks(const operand *x, const operand *y, bool numbers) {
    if (x->nd < 2 || y->nd < 2 || (x->nd == 2 && y->nd == 2)) return false;
    const npy_intp *p = x->dim + x->nd - 2, *q = y->dim + y->nd - 2;
    if (numbers) return (p[0] == 1 && p[1] == 1) || (q[0] == 1 && q[1] == 1);
    return p[0] == q[0] && p[1] == q[1];
}

/* Matrices of one shape: a linear node. Stacks with other batch dimensions: Python's. */
static PyObject *try_sum(py_state *s, int u, const operand *x, const operand *y) {
    if (x->nd < 2 || !same_shape(x, y)) {
        if (are_stacks(x, y, false)) Py_RETURN_NOTIMPLEMENTED;
        return call(s, u, x, y);
    }
    PyObject *a = py_lazy_node(s, x->o), *b = a ? py_lazy_node(s, y->o) : NULL;
    PyArray_Descr *d = NULL;
    py_lazy *made = NULL;
    bool plain = b && a != Py_None && b != Py_None;
    if (plain && a != x->o && PyArray_CheckExact(x->o)) ((py_lazy *)a)->mode = PY_GIVEN;
    if (plain && b != y->o && PyArray_CheckExact(y->o)) ((py_lazy *)b)->mode = PY_GIVEN;
    if (plain && u == U_SUB) { /* an integer's -b would wrap before it meets a wider a, and NumPy
                                  refuses it of booleans */
        const int type = ((py_lazy *)b)->dtype->type_num;
        d = joined((py_lazy *)a, (py_lazy *)b);
        plain = d && type != NPY_BOOL && (d->type_num == type || !PyTypeNum_ISINTEGER(type));
        Py_CLEAR(d);
    }
    if (plain && u == U_SUB) {
        PyObject *minus = PyLong_FromLong(-1);
        Py_SETREF(b, minus ? py_lazy_scaled(s, (py_lazy *)b, minus) : NULL);
        Py_XDECREF(minus);
    }
    if (plain && b) d = joined((py_lazy *)a, (py_lazy *)b);
    if (d && PyTypeNum_ISBOOL(d->type_num)) plain = false;
    if (d && plain) made = py_lazy_new(s, PY_ADD, a, b, x->nd, x->dim, d);
    Py_XDECREF(a);
    Py_XDECREF(b);
    Py_XDECREF((PyObject *)d);
    if (!plain && !PyErr_Occurred()) Py_RETURN_NOTIMPLEMENTED;
    return (PyObject *)made;
}

/* The number an operand of one entry holds: new; Py_NotImplemented: not at hand. */
static PyObject *number_of(const py_state *s, const operand *x) {
    if (x->nd > 0) Py_RETURN_NOTIMPLEMENTED;
    if (PyArray_CheckExact(x->o) && !py_is_lazy(s, x->o))
        return PyArray_Return((PyArrayObject *)Py_NewRef(x->o));
    return Py_NewRef(x->o);
}

static PyObject *try_multiple(py_state *s, py_head head, const operand *a, const operand *c) {
    PyObject *number = number_of(s, c);
    if (!number || number == Py_NotImplemented) return number;
    PyObject *r = multiple(s, head, (py_lazy *)a->o, number);
    Py_DECREF(number);
    return r;
}

/* A matrix of floats of which something is assumed, or NULL. */
static const py_lazy *assumed(const py_state *s, const operand *x) {
    const py_lazy *a = py_is_lazy(s, x->o) ? (py_lazy *)x->o : NULL;
    return a && a->head == PY_LEAF && a->more && py_is_plain(a->dtype) ? a : NULL;
}

static PyObject *try_multiply(py_state *s, const operand *x, const operand *y) {
    const operand *a = x, *c = y;
    if (is_single(a, c->nd)) {
        a = y;
        c = x;
    }
    if (py_is_lazy(s, a->o) && a->nd >= 2 && is_single(c, a->nd))
        return try_multiple(s, PY_SCALE, a, c);
    if (are_stacks(x, y, true) || (assumed(s, x) && assumed(s, y))) Py_RETURN_NOTIMPLEMENTED;
    return call(s, U_MUL, x, y);
}

/* An operator, a matrix that a formula makes, or one of which something is assumed, over a number,
 * stays in the formula. */
static PyObject *try_divide(py_state *s, const operand *x, const operand *y) {
    const py_lazy *a = py_is_lazy(s, x->o) ? (py_lazy *)x->o : NULL;
    bool made = assumed(s, x) || (a && a->head != PY_LEAF && a->head != PY_CALL);
    if (!made || a->nd < 2 || !is_single(y, x->nd)) return call(s, U_DIV, x, y);
    if (!py_is_plain(a->dtype) || py_is_lazy(s, y->o)) Py_RETURN_NOTIMPLEMENTED;
    return try_multiple(s, PY_OVER, x, y);
}

static bool is_operator(const py_state *s, PyObject *o) {
    return !py_is_lazy(s, o) && !PyArray_CheckExact(o) && py_is_op(s, o);
}

/* A sum with an operator. */
static PyObject *try_beside(py_state *s, int u, PyObject *a, PyObject *b) {
    PyObject *x = py_lazy_node(s, a), *y = x ? py_lazy_node(s, b) : NULL, *r = NULL;
    operand p, q;
    if (y && x != Py_None && y != Py_None && look(s, x, &p) && look(s, y, &q))
        r = try_sum(s, u, &p, &q);
    else if (y)
        r = Py_NewRef(Py_NotImplemented);
    Py_XDECREF(x);
    Py_XDECREF(y);
    return r;
}

static PyObject *try_binary(py_state *s, int u, PyObject *a, PyObject *b) {
    operand x, y;
    if (u == U_MATMUL) return try_matmul(s, a, b);
    if ((u == U_ADD || u == U_SUB) && (is_operator(s, a) || is_operator(s, b)))
        return try_beside(s, u, a, b);
    if (!look(s, a, &x) || !look(s, b, &y)) Py_RETURN_NOTIMPLEMENTED;
    if (u > U_CONJ) return call(s, u, &x, &y);
    if (u == U_MUL) return try_multiply(s, &x, &y);
    return u == U_DIV ? try_divide(s, &x, &y) : try_sum(s, u, &x, &y);
}

static PyObject *try_unary(py_state *s, int u, PyObject *o) {
    py_lazy *a = (py_lazy *)o;
    operand x;
    if (!look(s, o, &x) || !py_is_plain(a->dtype)) Py_RETURN_NOTIMPLEMENTED;
    if (u == U_CONJ && !PyTypeNum_ISCOMPLEX(a->dtype->type_num)) return Py_NewRef(o);
    if (a->nd < 2) return call(s, u, &x, NULL);
    if (u == U_CONJ) return py_lazy_view(s, a, LOP_C);
    PyObject *minus = PyLong_FromLong(-1);
    PyObject *r = minus ? py_lazy_scaled(s, a, minus) : NULL;
    Py_XDECREF(minus);
    return r;
}

/* -- slots */

static PyObject *binary(int u, PyObject *a, PyObject *b) {
    py_state *s = state_of(a, b);
    if (!s || !s->lazy) Py_RETURN_NOTIMPLEMENTED;
    PyObject *r = try_binary(s, u, a, b);
    if (r != Py_NotImplemented) return r;
    Py_DECREF(r);
    PyObject *args[3] = {s->ufunc[u], a, b};
    return py_call_hook(s, "lazy_binary", args, 3);
}

static PyObject *unary(int u, PyObject *a) {
    py_state *s = ((py_lazy *)a)->s;
    PyObject *r = u <= U_CONJ ? try_unary(s, u, a) : Py_NewRef(Py_NotImplemented);
    if (r != Py_NotImplemented) return r;
    Py_DECREF(r);
    PyObject *args[2] = {s->ufunc[u], a};
    return py_call_hook(s, "lazy_unary", args, 2);
}

#define BINARY(name, u)                                                                            \
    static PyObject *name(PyObject *a, PyObject *b) { return binary(u, a, b); }
BINARY(add, U_ADD)
BINARY(subtract, U_SUB)
BINARY(multiply, U_MUL)
BINARY(divide, U_DIV)
BINARY(floor_divide, U_FLOOR)
BINARY(remain, U_MOD)
BINARY(bit_and, U_AND)
BINARY(bit_or, U_OR)
BINARY(bit_xor, U_XOR)
PyObject *py_lazy_matmul(PyObject *a, PyObject *b) { return binary(U_MATMUL, a, b); }

static PyObject *power(PyObject *a, PyObject *p, PyObject *mod) {
    if (mod != Py_None) Py_RETURN_NOTIMPLEMENTED;
    py_state *s = state_of(a, p);
    if (s && s->lazy && py_is_lazy(s, a) && PyLong_CheckExact(p) &&
        PyTypeNum_ISBOOL(((py_lazy *)a)->dtype->type_num)) {
        int beyond = 0;
        long n = PyLong_AsLongAndOverflow(p, &beyond);
        if (n == 2) return unary(U_SQUARE, a); /* NumPy's **, of another dtype than np.power */
    }
    return binary(U_POW, a, p);
}
static PyObject *compare(PyObject *a, PyObject *b, int op) { return binary(U_LT + op, a, b); }
static PyObject *negative(PyObject *a) { return unary(U_NEG, a); }
static PyObject *absolute(PyObject *a) { return unary(U_ABS, a); }
static PyObject *positive(PyObject *a) {
    if (!PyTypeNum_ISBOOL(((py_lazy *)a)->dtype->type_num)) return Py_NewRef(a);
    return PyErr_Format(PyExc_TypeError, "+a is not defined of booleans, in NumPy neither");
}

/* NumPy's side of the same: ufunc, "__call__", inputs. */
PyObject *py_lazy_array_ufunc(PyObject *self, PyObject *const *args, Py_ssize_t n,
                              PyObject *names) {
    py_state *s = ((py_lazy *)self)->s;
    if ((n == 3 || n == 4) && !names && PyUnicode_Check(args[1]) &&
        PyUnicode_CompareWithASCIIString(args[1], "__call__") == 0) {
        int u = 0;
        while (u <= U_CONJ && s->ufunc[u] != args[0]) u++;
        PyObject *r = NULL;
        if (u <= U_DIV && n == 4)
            r = try_binary(s, u, args[2], args[3]);
        else if ((u == U_NEG || u == U_CONJ) && n == 3 && py_is_lazy(s, args[2]))
            r = try_unary(s, u, args[2]);
        if (r != Py_NotImplemented && (r || PyErr_Occurred())) return r;
        Py_XDECREF(r);
    }
    PyObject *hook = py_hook(s, "lazy_array_ufunc");
    return hook ? PyObject_Vectorcall(hook, args, (size_t)n, names) : NULL;
}

/* -- indices */

/* The shape left by integers and slices of Python's, into dim: how many dimensions; -1: not so
 * plain, or wrong. */
static int plain_shape(const py_lazy *a, PyObject *const *key, Py_ssize_t n, npy_intp *dim) {
    int left = 0;
    if (n > a->nd) return -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        if (PySlice_Check(key[i])) {
            Py_ssize_t start, stop, step;
            if (PySlice_Unpack(key[i], &start, &stop, &step) < 0) return -1;
            dim[left++] = PySlice_AdjustIndices(a->dim[i], &start, &stop, step);
        } else if (PyLong_CheckExact(key[i])) {
            int overflow;
            long long at = PyLong_AsLongLongAndOverflow(key[i], &overflow);
            if (overflow || at < -a->dim[i] || at >= a->dim[i]) return -1;
        } else {
            return -1;
        }
    }
    for (int i = (int)n; i < a->nd; i++) dim[left++] = a->dim[i];
    return left;
}

PyObject *py_lazy_index(PyObject *self, PyObject *key) {
    py_lazy *a = (py_lazy *)self;
    npy_intp dim[NPY_MAXDIMS];
    bool many = PyTuple_CheckExact(key);
    int nd = plain_shape(a, many ? &PyTuple_GET_ITEM(key, 0) : &key,
                         many ? PyTuple_GET_SIZE(key) : 1, dim);
    if (nd < 0 || (a->head == PY_CALL && !a->value)) { /* a part of a contraction is one */
        PyObject *args[2] = {self, key};
        if (nd < 0 && !py_not_so()) return NULL; /* NumPy words it */
        return py_call_hook(a->s, "lazy_index", args, 2);
    }
    py_lazy *made = py_lazy_new(a->s, PY_INDEX, self, NULL, nd, dim, a->dtype);
    if (made) made->more = Py_NewRef(key);
    return (PyObject *)made;
}

static Py_ssize_t length(PyObject *self) {
    const py_lazy *a = (py_lazy *)self;
    if (a->nd > 0) return a->dim[0];
    PyErr_SetString(PyExc_TypeError, "len() of unsized object");
    return -1;
}

PyType_Slot py_lazy_arith_slots[] = {{Py_nb_matrix_multiply, py_lazy_matmul},
                                     {Py_nb_add, add},
                                     {Py_nb_subtract, subtract},
                                     {Py_nb_multiply, multiply},
                                     {Py_nb_true_divide, divide},
                                     {Py_nb_floor_divide, floor_divide},
                                     {Py_nb_remainder, remain},
                                     {Py_nb_power, power},
                                     {Py_nb_and, bit_and},
                                     {Py_nb_or, bit_or},
                                     {Py_nb_xor, bit_xor},
                                     {Py_nb_negative, negative},
                                     {Py_nb_absolute, absolute},
                                     {Py_nb_positive, positive},
                                     {Py_tp_richcompare, compare},
                                     {Py_mp_subscript, py_lazy_index},
                                     {Py_mp_length, length},
                                     {0, NULL}};
