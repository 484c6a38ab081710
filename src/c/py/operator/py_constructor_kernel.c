/* py_constructor_kernel.c: what the constructor of Kernel has of its own: points that serve twice,
 * numbers of points' dtype, parameters that belong to one function alone. */
#include "py/module/py.h"

enum { FUNCTION, X, Y, VARIANCE, LENGTH_SCALE, ALPHA, PERIOD, DEGREE, OFFSET };
enum { RATIONAL = 4, PERIODIC = 5, POLYNOMIAL = 6 }; /* among the words of `function` */

static bool is_given(PyObject *const *arg, int i) { return arg[i] && arg[i] != Py_None; }

bool py_kernel_same(PyObject *init, PyObject *const *arg, int i) {
    if (i != Y || arg[Y] != arg[X]) return false;
    Py_SETREF(PyTuple_GET_ITEM(init, Y), Py_NewRef(Py_None));
    return true;
}

PyObject *py_kernel_number(PyObject *init, int i, PyObject *o) {
    if (i <= Y) return NULL;
    PyObject *number = py_weak_number(PyTuple_GET_ITEM(init, X), o);
    if ((!number && PyErr_Occurred()) || i != LENGTH_SCALE) return number;
    const bool one = PyArray_IsScalar(o, Generic) ||
                     (PyArray_CheckExact(o) && PyArray_NDIM((PyArrayObject *)o) == 0);
    if (!number && one) number = PyArray_FROM_O(o);
    if (!number) return NULL;
    npy_intp size = 1;
    PyArray_Dims shape = {&size, 1};
    PyObject *vector = PyArray_Newshape((PyArrayObject *)number, &shape, NPY_CORDER);
    Py_DECREF(number);
    return vector;
}

lop_status py_kernel_finish(PyObject *const *arg, const lop_node **child, int *n, lop_attr *attr,
                            bool foreign, lop_err *err) {
    static const struct {
        int at, word;
        const char *name, *of;
    } own[] = {{ALPHA, RATIONAL, "alpha", "rational_quadratic"},
               {PERIOD, PERIODIC, "period", "periodic"},
               {DEGREE, POLYNOMIAL, "degree", "polynomial"},
               {OFFSET, POLYNOMIAL, "offset", "polynomial"}};
    const int64_t word = attr->i[0], degree = is_given(arg, DEGREE) ? attr->i[1] : 3;
    int64_t there = (is_given(arg, VARIANCE) ? 1 : 0) | (is_given(arg, LENGTH_SCALE) ? 2 : 0);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        if (!is_given(arg, own[i].at)) continue;
        if (own[i].word != word)
            return lop_fail(err, LOP_DIM, "Kernel(%s=...): a parameter of '%s' alone", own[i].name,
                            own[i].of);
        if (own[i].at != DEGREE) there |= 4;
    }
    if (foreign)
        return lop_fail(err, LOP_DTYPE,
                        "Kernel: points and parameters are float32, float64, integers or bools");
    if (degree > 255)
        return lop_fail(err, LOP_DIM, "Kernel(degree=%lld): expected 0 to 255", (long long)degree);
    attr->i[0] = word | there << 4;
    attr->i[1] = word == POLYNOMIAL ? degree : 0;
    attr->i[2] = 1;
    if (is_given(arg, Y) && arg[Y] != arg[X]) return LOP_OK;
    for (int i = *n; i > 1; i--) child[i] = child[i - 1];
    child[1] = lop_node_ref(child[0]);
    (*n)++;
    return LOP_OK;
}

static PyObject *function_of(PyObject *args, PyObject *kwargs) {
    if (PyTuple_GET_SIZE(args) > 0) return PyTuple_GET_ITEM(args, 0);
    return kwargs ? py_item(kwargs, "function") : NULL;
}
bool py_kernel_is_callable(PyObject *args, PyObject *kwargs) {
    PyObject *f = function_of(args, kwargs);
    return f && PyCallable_Check(f);
}
PyObject *py_kernel_callable(py_state *s, PyObject *args, PyObject *kwargs) {
    PyObject *keys = kwargs ? Py_NewRef(kwargs) : PyDict_New(), *both[2] = {args, keys};
    PyObject *made = keys ? py_call_hook(s, "callable_kernel", both, 2) : NULL;
    Py_XDECREF(keys);
    return made;
}
