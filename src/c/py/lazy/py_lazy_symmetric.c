/* py_lazy_symmetric.c: is a matrix that NumPy computed symmetric by its formula? A function of
 * entries keeps what its arguments are: exp(-|x - y|^2) of all pairs of points is symmetric, as are
 * sums x_i + x_j, products X X^T, functions of |x_i - x_j|, products s_i K_ij s_j, sums of these
 * over a third axis.
 *
 * The formula alone decides whether the matrix is looked at; rounding may leave its halves apart by
 * what the function makes of a few units in the last place, so that the entries are compared, tile
 * by tile, once: n^2 / 2 pairs, before a factor of n^3 / 3 flops. Where no pair is further apart
 * than n u / 2 (64 u at most), either half is the matrix to working accuracy: a factor of one has a
 * backward error below n u |A|, entry by entry, and a product with A^T as one with A too. A tape
 * (exec/tape.h) asks again for its own numbers. */
#include "expr/properties.h"
#include "kernels/common/kernels.h"
#include "py/run/py_tape.h"

enum { DEEPEST = 12, MOST_NODES = 96, LEAST_ROWS = 32, FACTORS = 8 };

typedef struct look {
    const py_state *s;
    int left; /* nodes that may still be looked at */
} look;

static const py_lazy *lazy_of(const look *w, PyObject *o) {
    return py_is_lazy(w->s, o) ? (py_lazy *)o : NULL;
}
static bool is_number(const look *w, PyObject *o) {
    const py_lazy *a = lazy_of(w, o);
    if (a) return a->nd == 0;
    return PyFloat_Check(o) || PyLong_Check(o) ||
           (PyArray_Check(o) && PyArray_NDIM((PyArrayObject *)o) == 0) ||
           PyArray_IsScalar(o, Number);
}
static bool is_called(const py_lazy *a) {
    return a && (a->head == PY_CALL || a->head == PY_OF_FORM) && a->more &&
           PyTuple_Check(a->more) && PyTuple_GET_SIZE(a->more) > 0;
}
/* Is `a` made by the function of that name? Of a ufunc: with these many arguments. */
static bool is_call(const py_lazy *a, const char *const *names, int nargs) {
    if (!is_called(a) || a->nargs != nargs) return false;
    PyObject *name = PyObject_GetAttrString(PyTuple_GET_ITEM(a->more, 0), "__name__");
    bool found = false;
    for (; name && PyUnicode_Check(name) && *names && !found; names++)
        found = PyUnicode_CompareWithASCIIString(name, *names) == 0;
    Py_XDECREF(name);
    PyErr_Clear();
    return found;
}
static bool is_ufunc(const py_lazy *a) { /* of entries, without keywords */
    if (!is_called(a) || a->head != PY_CALL) return false;
    PyObject *f = PyTuple_GET_ITEM(a->more, 0);
    if (Py_TYPE(f) != Py_TYPE(a->s->ufunc[U_ADD])) return false;
    if (PyTuple_GET_SIZE(a->more) > 1 && PyDict_GET_SIZE(PyTuple_GET_ITEM(a->more, 1)) > 0)
        return false;
    PyObject *signature = PyObject_GetAttrString(f, "signature");
    const bool each = signature == Py_None;
    Py_XDECREF(signature);
    PyErr_Clear();
    return each;
}

/* -- an array along one axis, and along the other */

static bool is_whole(PyObject *key) {
    if (key == Py_None) return true;
    if (!PySlice_Check(key)) return false;
    const PySliceObject *slice = (PySliceObject *)key;
    return slice->start == Py_None && slice->stop == Py_None && slice->step == Py_None;
}
/* What is laid along `axis` of the first two, the other being of one entry; borrowed, NULL: none.
 */
static const py_lazy *laid(const look *w, const py_lazy *a, int axis) {
    static const char *const shapes[] = {"reshape", "reshaped", "expand_dims", NULL};
    const py_lazy *of = a->nargs == 1 ? lazy_of(w, py_lazy_args(a)[0]) : NULL;
    if (a->nd < 2 || a->dim[1 - axis] != 1) return axis == 1 && a->nd == 1 ? a : NULL;
    if (!of || of->nd != a->nd - 1 || of->dim[0] != a->dim[axis]) return NULL;
    for (int i = 1; i < of->nd; i++)
        if (of->dim[i] != a->dim[i + 1]) return NULL;
    if (a->head != PY_INDEX) return is_call(a, shapes, 1) ? of : NULL;
    if (!a->more) return of; /* a[None] */
    if (!PyTuple_Check(a->more)) return is_whole(a->more) ? of : NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a->more); i++)
        if (!is_whole(PyTuple_GET_ITEM(a->more, i))) return NULL;
    return of;
}
static bool is_plain_key(PyObject *key) { /* one that compares without a question */
    if (!key || is_whole(key) || PyLong_CheckExact(key)) return true;
    if (PySlice_Check(key)) {
        const PySliceObject *slice = (PySliceObject *)key;
        PyObject *const part[3] = {slice->start, slice->stop, slice->step};
        for (int i = 0; i < 3; i++)
            if (part[i] != Py_None && !PyLong_CheckExact(part[i])) return false;
        return true;
    }
    if (!PyTuple_Check(key)) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); i++)
        if (PyTuple_Check(PyTuple_GET_ITEM(key, i)) || !is_plain_key(PyTuple_GET_ITEM(key, i)))
            return false;
    return true;
}
/* Are they one array, as a node or as a part that was taken twice? */
static bool is_same(const py_lazy *x, const py_lazy *y) {
    while (x != y) {
        if (!x || !y || x->head != PY_INDEX || y->head != PY_INDEX || !is_plain_key(x->more) ||
            !is_plain_key(y->more) || !x->more || !y->more)
            return false;
        const int same = PyObject_RichCompareBool(x->more, y->more, Py_EQ);
        if (same < 0) PyErr_Clear();
        if (same <= 0) return false;
        x = py_lazy_arg(x, 0);
        y = py_lazy_arg(y, 0);
    }
    return true;
}
static const py_lazy *without_scales(const look *w, const py_lazy *a) {
    while (a && (a->head == PY_SCALE || a->head == PY_OVER)) a = lazy_of(w, py_lazy_args(a)[0]);
    return a;
}
static bool is_transpose(const look *w, const py_lazy *x, const py_lazy *y) {
    return x->head == PY_VIEW && (x->mode & LOP_T) && lazy_of(w, py_lazy_args(x)[0]) == y;
}
/* The array that o is, or is the leaf of: borrowed; NULL: none. */
static PyArrayObject *array_of(const look *w, PyObject *o) {
    const py_lazy *a = lazy_of(w, o);
    if (a) o = a->head == PY_LEAF ? py_lazy_args(a)[0] : NULL;
    return o && PyArray_CheckExact(o) ? (PyArrayObject *)o : NULL;
}
/* One vector of numbers in memory, once as a column, once along the rows. */
static bool is_turned_vector(PyArrayObject *x, PyArrayObject *y) {
    const int nd = PyArray_NDIM(y);
    return PyArray_NDIM(x) == 2 && PyArray_DIM(x, 1) == 1 && (nd == 1 || nd == 2) &&
           (nd == 1 || PyArray_DIM(y, 0) == 1) && PyArray_DIM(y, nd - 1) == PyArray_DIM(x, 0) &&
           PyArray_DATA(x) == PyArray_DATA(y) &&
           PyArray_STRIDE(x, 0) == PyArray_STRIDE(y, nd - 1) && PyArray_TYPE(x) == PyArray_TYPE(y);
}
/* Is the one the other with the first two axes exchanged? */
static bool turned(const look *w, PyObject *o, PyObject *p) {
    const py_lazy *x = lazy_of(w, o), *y = lazy_of(w, p);
    PyArrayObject *a = array_of(w, o), *b = array_of(w, p);
    if (a && b && (is_turned_vector(a, b) || is_turned_vector(b, a))) return true;
    if (!x || !y) return false;
    if (x->nd == 2 && y->nd == 2 && (is_transpose(w, x, y) || is_transpose(w, y, x))) return true;
    for (int axis = 0; axis < 2; axis++) {
        const py_lazy *of = laid(w, x, axis);
        const py_lazy *other = of ? laid(w, y, 1 - axis) : NULL;
        if (other && is_same(of, other)) return true;
    }
    return false;
}

/* -- matrices, or stacks of them along a third axis, that are symmetric in the first two */

/* Does it change its sign with the axes? */
static bool is_skew(look *w, PyObject *o, int depth) {
    static const char *const differences[] = {"subtract", NULL}, *const over[] = {"divide", NULL},
                             *const times[] = {"multiply", NULL};
    const py_lazy *a = lazy_of(w, o);
    if (!a || depth == 0 || --w->left < 0) return false;
    PyObject *const *arg = py_lazy_args(a);
    if (a->head == PY_SCALE || a->head == PY_OVER) return is_skew(w, arg[0], depth - 1);
    if (!is_ufunc(a)) return false;
    if (is_call(a, differences, 2)) return turned(w, arg[0], arg[1]);
    if (is_call(a, over, 2) || is_call(a, times, 2))
        return is_number(w, arg[1]) && is_skew(w, arg[0], depth - 1);
    return false;
}

static bool is_own(look *w, PyObject *o, int depth);

/* -- products of entries: s_i K_ij s_j, K_ij / (s_i s_j) */

typedef struct entries {
    PyObject *of[FACTORS]; /* borrowed */
    bool over[FACTORS];    /* does it divide? */
    int n;
} entries;

static bool into_factors(look *w, PyObject *o, bool over, entries *e, int depth) {
    static const char *const times[] = {"multiply", NULL}, *const by[] = {"divide", NULL};
    const py_lazy *a = lazy_of(w, o);
    if (is_number(w, o)) return true;
    if (depth == 0 || --w->left < 0) return false;
    if (a && (a->head == PY_SCALE || a->head == PY_OVER))
        return into_factors(w, py_lazy_args(a)[0], over, e, depth - 1);
    const bool divides = a && is_ufunc(a) && is_call(a, by, 2);
    if (divides || (a && is_ufunc(a) && is_call(a, times, 2)))
        return into_factors(w, py_lazy_args(a)[0], over, e, depth - 1) &&
               into_factors(w, py_lazy_args(a)[1], over != divides, e, depth - 1);
    if (e->n == FACTORS) return false;
    e->of[e->n] = o;
    e->over[e->n++] = over;
    return true;
}
/* A product of factors that are symmetric, or stand with their transposes. */
static bool own_product_of_entries(look *w, PyObject *o, int depth) {
    entries e = {.n = 0};
    if (!into_factors(w, o, false, &e, depth)) return false;
    for (int i = 0; i < e.n; i++) {
        int j = i + 1;
        while (e.of[i] && j < e.n &&
               !(e.of[j] && e.over[i] == e.over[j] && turned(w, e.of[i], e.of[j])))
            j++;
        if (e.of[i] && j < e.n)
            e.of[j] = NULL;
        else if (e.of[i] && !is_own(w, e.of[i], depth - 1))
            return false;
    }
    return true;
}

/* A ufunc of what is symmetric; of two that are each other's transposes; an even one of what
 * changes its sign. */
static bool own_ufunc(look *w, const py_lazy *a, int depth) {
    static const char
        *const commute[] = {"add", "multiply", "maximum", "minimum", "fmax", "fmin", "hypot", NULL},
               *const even[] = {"absolute", "fabs", "square", "cos", "cosh", NULL},
               *const powers[] = {"power", NULL}, *const products[] = {"multiply", "divide", NULL};
    PyObject *const *arg = py_lazy_args(a);
    if (is_call(a, commute, 2) && turned(w, arg[0], arg[1])) return true;
    if (is_call(a, even, 1) && is_skew(w, arg[0], depth)) return true;
    if (is_call(a, powers, 2) && PyLong_CheckExact(arg[1])) {
        int beyond = 0;
        const long p = PyLong_AsLongAndOverflow(arg[1], &beyond);
        if (!beyond && p % 2 == 0 && is_skew(w, arg[0], depth)) return true;
    }
    if (a->nargs == 2 && arg[0] == arg[1] && is_skew(w, arg[0], depth)) return true;
    if (is_call(a, products, 2) && own_product_of_entries(w, (PyObject *)a, depth)) return true;
    for (int i = 0; i < a->nargs; i++)
        if (!is_number(w, arg[i]) && !is_own(w, arg[i], depth)) return false;
    return true;
}
/* A sum, mean, norm, ... over the last of three axes. */
static bool own_reduction(look *w, const py_lazy *a, int depth) {
    static const char *const sums[] = {"sum", "mean", "max", "amax", "min", "amin", NULL},
                             *const norms[] = {"norm", NULL};
    PyObject *kwargs = PyTuple_GET_SIZE(a->more) > 1 ? PyTuple_GET_ITEM(a->more, 1) : NULL,
             *axis = kwargs && PyDict_Check(kwargs) && PyDict_GET_SIZE(kwargs) == 1
                         ? PyDict_GetItemString(kwargs, "axis")
                         : NULL;
    const py_lazy *of = a->nargs == 1 ? lazy_of(w, py_lazy_args(a)[0]) : NULL;
    if (!axis || !PyLong_CheckExact(axis) || !of || of->nd != 3 || a->nd != 2) return false;
    int beyond = 0;
    const long at = PyLong_AsLongAndOverflow(axis, &beyond);
    if (at != 2 && at != -1) return false;
    if (is_call(a, norms, 1) && is_skew(w, py_lazy_args(a)[0], depth)) return true;
    return (is_call(a, sums, 1) || is_call(a, norms, 1)) && is_own(w, py_lazy_args(a)[0], depth);
}
static bool own_leaf(const py_lazy *a) {
    static const char *const words[] = {"sym", "symmetric",         "her",     "hermitian",
                                        "pos", "positive definite", "diagonal"};
    for (size_t i = 0; a->more && PyUnicode_Check(a->more) && i < sizeof words / sizeof *words; i++)
        if (PyUnicode_CompareWithASCIIString(a->more, words[i]) == 0) return true;
    return false;
}
/* What second derivatives by kernel matrices compute once (_gradients/inverses.py), and what such a
 * matrix grows by: of one set of points, else the entries tell. */
static bool own_held(look *w, const py_lazy *a, int depth) {
    static const char *const held[] = {"held", NULL}, *const grown[] = {"tangent", "twice", NULL};
    if (is_call(a, held, 1)) return is_own(w, py_lazy_args(a)[0], depth);
    return a->head == PY_CALL && is_call(a, grown, a->nargs);
}
static bool is_identity(const py_lazy *a) {
    return a->head == PY_OPERATOR && py_is_op(a->s, a->a) && ((py_op *)a->a)->node &&
           ((py_op *)a->a)->node->op == &lop_op_identity;
}
/* A B A^T too, and A B A of a symmetric A. */
static bool own_product(look *w, const py_lazy *a, int depth) {
    const py_lazy *x = without_scales(w, py_lazy_arg(a, 0)),
                  *y = without_scales(w, py_lazy_arg(a, 1));
    if (!x || !y || x->nd != 2 || y->nd != 2) return false;
    if (turned(w, (PyObject *)x, (PyObject *)y)) return true;
    if (is_identity(x)) return is_own(w, (PyObject *)y, depth);
    if (x->head != PY_MATMUL) return false;
    const py_lazy *first = without_scales(w, py_lazy_arg(x, 0));
    return first && first->nd == 2 &&
           (turned(w, (PyObject *)first, (PyObject *)y) ||
            (first == y && is_own(w, (PyObject *)y, depth))) &&
           is_own(w, py_lazy_args(x)[1], depth);
}

static bool is_own(look *w, PyObject *o, int depth) {
    const py_lazy *a = lazy_of(w, o);
    if (!a || depth == 0 || --w->left < 0 || a->nd < 2 || a->nd > 3 || a->dim[0] != a->dim[1] ||
        PyTypeNum_ISCOMPLEX(a->dtype->type_num))
        return false;
    PyObject *const *arg = py_lazy_args(a);
    if (a->head == PY_CALL && is_ufunc(a)) return own_ufunc(w, a, depth - 1);
    if (is_called(a)) return own_held(w, a, depth - 1) || own_reduction(w, a, depth - 1);
    if (a->nd != 2) return false;
    switch ((py_head)a->head) {
    case PY_LEAF: return own_leaf(a) || py_lazy_is_diagonal(a);
    case PY_OPERATOR:
        return py_is_op(a->s, a->a) && ((py_op *)a->a)->node &&
               lop_infer_hermitian(((py_op *)a->a)->node);
    case PY_MADE:
        return a->form && py_is_op(a->s, a->form) && ((py_op *)a->form)->node &&
               lop_infer_hermitian(((py_op *)a->form)->node);
    case PY_ADD:
        return turned(w, arg[0], arg[1]) ||
               (is_own(w, arg[0], depth - 1) && is_own(w, arg[1], depth - 1));
    case PY_SCALE:
    case PY_OVER:
    case PY_VIEW:
    case PY_INVERSE: return is_own(w, arg[0], depth - 1);
    case PY_MATMUL: return own_product(w, a, depth - 1);
    default: return false;
    }
}

/* -- its numbers */

/* 1: they are symmetric; 0: not, or nobody knows; -1: an exception. */
static int is_symmetric(const py_lazy *a) {
    if (a->head != PY_CALL || a->nd != 2 || a->dim[0] != a->dim[1] || a->dim[0] < LEAST_ROWS ||
        !a->value || !PyArray_CheckExact(a->value))
        return 0;
    PyArrayObject *v = (PyArrayObject *)a->value;
    const int type = PyArray_TYPE(v);
    if ((type != NPY_FLOAT && type != NPY_DOUBLE) || !PyArray_ISBEHAVED_RO(v) ||
        PyArray_NDIM(v) != 2 || PyArray_DIM(v, 0) != a->dim[0] || PyArray_DIM(v, 1) != a->dim[0])
        return 0;
    look w = {a->s, MOST_NODES};
    if (!is_own(&w, (PyObject *)a, DEEPEST)) return 0;
    const npy_intp n = a->dim[0], size = PyArray_ITEMSIZE(v);
    if (PyArray_STRIDE(v, 0) % size || PyArray_STRIDE(v, 1) % size) return 0;
    const lop_mat m = {PyArray_DATA(v),
                       n,
                       n,
                       PyArray_STRIDE(v, 0) / size,
                       PyArray_STRIDE(v, 1) / size,
                       type == NPY_FLOAT ? LOP_f32 : LOP_f64};
    const int agree = lopk_halves_agree(&m);
    return a->s->tape && py_tape_halves(a->s, v, agree) < 0 ? -1 : agree;
}

PyObject *py_lazy_dense(const py_lazy *a) {
    if (!a->value) return NULL;
    PyArrayObject *v = (PyArrayObject *)a->value;
    const int agree = is_symmetric(a);
    if (agree < 0) return NULL;
    return agree ? py_dense_symmetric(a->s, v) : py_dense(a->s, v);
}
