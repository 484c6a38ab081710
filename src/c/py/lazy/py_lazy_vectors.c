/* py_lazy_vectors.c: which LazyArrays of one dimension are made by products and sums of vectors, so
 * that they can be computed as one expression of columns (py_lazy_eval.c). */
#include "py_lazy_wants.h"

enum { DEEPEST = 40 }; /* products and sums in one expression of vectors */

static bool is_vector(const py_state *s, PyObject *o, npy_intp n) {
    if (py_is_lazy(s, o)) {
        const py_lazy *a = (py_lazy *)o;
        return a->nd == 1 && a->dim[0] == n && py_is_plain(a->dtype);
    }
    return PyArray_CheckExact(o) && PyArray_NDIM((PyArrayObject *)o) == 1 &&
           PyArray_DIM((PyArrayObject *)o, 0) == n &&
           py_is_plain(PyArray_DESCR((PyArrayObject *)o));
}

bool py_lazy_is_number(const py_state *s, PyObject *o) {
    if (py_is_lazy(s, o)) return ((py_lazy *)o)->nd == 0 && py_is_plain(((py_lazy *)o)->dtype);
    return PyFloat_CheckExact(o) || PyLong_CheckExact(o) || PyComplex_CheckExact(o);
}

/* What a vector (or the product of two) is to an expression of columns. */
role py_lazy_role(const py_lazy *a) {
    if (a->nd > 1 || !py_is_plain(a->dtype)) return NOT_LINEAR;
    if (a->value || a->head == PY_LEAF) return a->nd == 1 ? GIVEN : NOT_LINEAR;
    if (a->head == PY_MATMUL) {
        const py_lazy *x = py_lazy_arg(a, 0), *y = py_lazy_arg(a, 1);
        if (x->nd > 2 || y->nd > 2 || !py_is_plain(x->dtype) || !py_is_plain(y->dtype))
            return NOT_LINEAR;
        return x->nd == 2 ? APPLIED : y->nd == 2 ? FROM_LEFT : DOT;
    }
    if (a->head != PY_CALL || a->nd != 1) return NOT_LINEAR;
    PyObject *const *arg = py_lazy_args(a);
    const py_state *s = a->s;
    const bool one = is_vector(s, arg[0], a->dim[0]);
    if (a->more == s->call[U_NEG]) return one ? NEGATIVE : NOT_LINEAR;
    const bool two = a->nargs == 2 && is_vector(s, arg[1], a->dim[0]);
    if (a->more == s->call[U_ADD]) return one && two ? PLUS : NOT_LINEAR;
    if (a->more == s->call[U_SUB]) return one && two ? MINUS : NOT_LINEAR;
    const bool times = a->more == s->call[U_MUL] && ((one && py_lazy_is_number(s, arg[1])) ||
                                                     (two && py_lazy_is_number(s, arg[0])));
    return times ? TIMES : NOT_LINEAR;
}

/* Products above each other in an expression of vectors; -1: too long to be one. */
static int products(const py_state *s, PyObject *o, int *room) {
    if (!py_is_lazy(s, o) || ((py_lazy *)o)->nd > 1) return 0;
    const py_lazy *a = (py_lazy *)o;
    const role r = py_lazy_role(a);
    if (r == NOT_LINEAR || r == GIVEN) return 0;
    if (--*room < 0) return -1;
    int x = products(s, py_lazy_args(a)[0], room),
        y = a->nargs > 1 ? products(s, py_lazy_args(a)[1], room) : 0;
    if (x < 0 || y < 0) return -1;
    return (x > y ? x : y) + (r == APPLIED || r == FROM_LEFT);
}

/* Is it to be computed as one expression of columns? */
bool py_lazy_is_deep(const py_lazy *a) {
    int room = DEEPEST;
    const role r = a->nd < 2 && a->head != PY_LEAF ? py_lazy_role(a) : NOT_LINEAR;
    if (r < APPLIED || r >= TIMES) return false;
    const int x = products(a->s, py_lazy_args(a)[0], &room),
              y = products(a->s, py_lazy_args(a)[1], &room), most = x > y ? x : y;
    if (x < 0 || y < 0) return false;
    return r <= DOT ? most > 0 : most > 1 || (x > 0 && y > 0);
}
