/* py_quasi.c: _quasi_ldl, _quasi_quad, _quasi_covariance, _quasi_matern, _markov_jets: the
 * recursions of quasi-separable matrices for _operators/quasiseparable.py and of Matern processes
 * for _gradients/markov_jets.py, on C-contiguous memory of float64 ('d') or complex128 ('D'). The
 * GIL is released around the work. */
#include "py/module/py.h"

#include "kernels/quasiseparable/k_markov.h"
#include "kernels/quasiseparable/k_quasi.h"

enum { BUFFERS = 6 };

/* The generators in b[0] to b[3], of J states; false where their sizes do not fit. */
static bool generators(Py_buffer *b, int letter, int64_t J, lopk_quasi *g) {
    const lop_dtype dt = letter == 'D' ? LOP_c128 : LOP_f64;
    const int64_t size = (int64_t)lop_dtype_size(dt), n = b[0].len / size;
    int64_t states, square;
    if ((letter != 'd' && letter != 'D') || b[0].len != n * size || J < 0 ||
        !lop_mul_ok(n, J * size, &states) || J > INT32_MAX || !lop_mul_ok(states, J, &square) ||
        b[1].len != states || b[2].len != states || (b[3].len != states && b[3].len != square))
        return false;
    *g = (lopk_quasi){n, J, b[3].len != states, false, dt, b[0].buf, b[1].buf, b[2].buf, b[3].buf};
    return true;
}
static void release(Py_buffer *b) {
    for (int i = 0; i < BUFFERS; i++) PyBuffer_Release(&b[i]);
}
static PyObject *misfit(Py_buffer *b, const char *what) {
    release(b);
    return PyErr_Format(PyExc_ValueError, "%s: the memory does not have the sizes named", what);
}
static void *room_for(const lopk_quasi *g, char **aligned) {
    char *room = PyMem_RawMalloc(lopk_quasi_factor_scratch(0, g->J) + 64);
    if (room) *aligned = (char *)(((uintptr_t)room + 63) & ~(uintptr_t)63);
    return room;
}

/* (letter, J, d, p, q, a, pivots, w): see lopk_quasi_ldl. Gives the first row whose pivot is not
 * positive, n where there is none. */
PyObject *py_quasi_ldl(PyObject *module, PyObject *args) {
    Py_buffer b[BUFFERS] = {{0}};
    int letter;
    long long J;
    int64_t where = 0;
    lopk_quasi g;
    char *scratch = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "CLy*y*y*y*w*w*:_quasi_ldl", &letter, &J, &b[0], &b[1], &b[2],
                          &b[3], &b[4], &b[5]))
        return NULL;
    if (!generators(b, letter, J, &g) || b[4].len != g.n * 8 || b[5].len != b[1].len)
        return misfit(b, "_quasi_ldl");
    void *room = room_for(&g, &scratch);
    if (room) {
        Py_BEGIN_ALLOW_THREADS;
        (void)!lopk_quasi_ldl(b[4].buf, b[5].buf, &g, scratch, &where);
        Py_END_ALLOW_THREADS;
        PyMem_RawFree(room);
    }
    release(b);
    return room ? PyLong_FromLongLong(where) : PyErr_NoMemory();
}

/* (letter, J, d, p, q, a, b): b^H A^-1 b and log det A; None where a checked solve is to say. */
PyObject *py_quasi_quad(PyObject *module, PyObject *args) {
    Py_buffer b[BUFFERS] = {{0}};
    int letter;
    long long J;
    double out[3] = {0};
    lop_status st = LOP_SINGULAR;
    lopk_quasi g;
    char *scratch = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "CLy*y*y*y*y*:_quasi_quad", &letter, &J, &b[0], &b[1], &b[2], &b[3],
                          &b[4]))
        return NULL;
    if (!generators(b, letter, J, &g) || b[4].len != b[0].len) return misfit(b, "_quasi_quad");
    void *room = room_for(&g, &scratch);
    if (room) {
        Py_BEGIN_ALLOW_THREADS;
        st = lopk_quasi_quad(out, &g, b[4].buf, scratch);
        Py_END_ALLOW_THREADS;
        PyMem_RawFree(room);
    }
    release(b);
    if (!room) return PyErr_NoMemory();
    if (st != LOP_OK) Py_RETURN_NONE;
    return Py_BuildValue("dd", out[0], out[1]);
}

/* (which, c0, c1, c2, c3, t, d, p, q, a): see lopk_quasi_covariance. */
PyObject *py_quasi_covariance(PyObject *module, PyObject *args) {
    Py_buffer b[BUFFERS] = {{0}};
    int which;
    double c[4];
    (void)module;
    if (!PyArg_ParseTuple(args, "iddddy*w*w*w*w*:_quasi_covariance", &which, &c[0], &c[1], &c[2],
                          &c[3], &b[0], &b[1], &b[2], &b[3], &b[4]))
        return NULL;
    const int64_t J = which < LOPK_QUASI_ROTATING ? which + 1 : 2, n = b[0].len / 8;
    const int64_t moves = which == LOPK_QUASI_ROTATING ? J : J * J;
    if (which < 0 || which > LOPK_QUASI_DAMPED || b[0].len != n * 8 || b[1].len != b[0].len ||
        b[2].len != n * 8 * J || b[3].len != b[2].len || b[4].len != n * 8 * moves)
        return misfit(b, "_quasi_covariance");
    int64_t where;
    Py_BEGIN_ALLOW_THREADS;
    where = lopk_quasi_covariance(which, c, n, b[0].buf, b[1].buf, b[2].buf, b[3].buf, b[4].buf);
    Py_END_ALLOW_THREADS;
    release(b);
    return PyLong_FromLongLong(where);
}

/* (order, moves, derivative, x, g or None, out): see lopk_quasi_matern_sums and _rows. */
PyObject *py_quasi_matern(PyObject *module, PyObject *args) {
    Py_buffer b[BUFFERS] = {{0}};
    int order, moves, derivative;
    (void)module;
    if (!PyArg_ParseTuple(args, "ipiy*z*w*:_quasi_matern", &order, &moves, &derivative, &b[0],
                          &b[1], &b[2]))
        return NULL;
    const int64_t n = b[0].len / 8, J = order + 1;
    if (order < 0 || order > 2 || derivative < 0 || b[0].len != n * 8 ||
        (b[1].buf ? b[1].len : b[2].len) != b[0].len * J * (moves ? J : 1) ||
        (b[1].buf && b[2].len != b[0].len))
        return misfit(b, "_quasi_matern");
    Py_BEGIN_ALLOW_THREADS;
    if (b[1].buf)
        lopk_quasi_matern_sums(order, moves, derivative, n, b[0].buf, b[1].buf, b[2].buf);
    else
        lopk_quasi_matern_rows(order, moves, derivative, n, b[0].buf, b[2].buf);
    Py_END_ALLOW_THREADS;
    release(b);
    Py_RETURN_NONE;
}

/* (order, (variance, rate, noise), step, b, scale or None, more or None, along or None, out): see
 * lopk_markov_jets; ..., d, p, q, a): of a multiple of that, order + 1 its states. False where a
 * checked solve is to say. */
PyObject *py_markov_jets(PyObject *module, PyObject *args) {
    enum { GIVEN = 6, ALL = 10 };
    Py_buffer b[ALL] = {{0}};
    lopk_markov m = {0};
    lopk_quasi g;
    lop_status st = LOP_SINGULAR;
    (void)module;
    if (!PyArg_ParseTuple(args, "i(ddd)y*y*z*z*z*w*|y*y*y*y*:_markov_jets", &m.order, &m.variance,
                          &m.rate, &m.noise, &b[0], &b[1], &b[2], &b[3], &b[4], &b[5], &b[GIVEN],
                          &b[GIVEN + 1], &b[GIVEN + 2], &b[GIVEN + 3]))
        return NULL;
    m.n = b[1].len / 8;
    bool fits = m.order >= 0 && m.order < LOPK_MARKOV_STATES && b[1].len == m.n * 8 &&
                b[5].len == 2 * LOPK_MARKOV_LANES * 8 && (!b[4].buf || b[4].len == 3 * 8);
    for (int i = 2; i < 4; i++) fits = fits && (!b[i].buf || b[i].len == b[1].len);
    if (b[ALL - 1].obj) {
        fits = fits && generators(b + GIVEN, 'd', m.order + 1, &g) && g.n == m.n;
        m.given = &g;
    } else {
        fits = fits && b[0].len == b[1].len;
    }
    m.step = b[0].buf;
    m.b = b[1].buf;
    m.scale = b[2].buf;
    m.more = b[3].buf;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        st = lopk_markov_jets(&m, b[4].buf, b[5].buf);
        Py_END_ALLOW_THREADS;
    }
    for (int i = BUFFERS; i < ALL; i++) PyBuffer_Release(&b[i]);
    if (!fits) return misfit(b, "_markov_jets");
    release(b);
    return PyBool_FromLong(st == LOP_OK);
}
