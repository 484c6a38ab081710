/* py_krylov.c: the iterative solvers of solvers/krylov.h from Python, with bound products
 * (py_bound_product.h).
 *
 * A run begins with the GIL. It is let go when the work is worth it, or when it lasts: a small
 * solve never waits for another thread. Callables and callbacks take it back for their call. */
#include "py_bound_product.h"

#include "solvers/krylov.h"
#include "kernels/sparse/k_csr_sweep.h"
#include "kernels/common/k_vectors.h"
#include "ops/shared/sparse_solver.h"

#include <math.h>
#include <time.h>

typedef struct solver {
    lop_krylov k;
    py_state *s;
    py_gil gil;
    py_bound *bound; /* A, A^H, M by LOP_KRYLOV_*; those in use */
    bool quiet;      /* nothing calls Python: the GIL may be gone for the whole run */
    double work;     /* of the vectors in one product's turn */
    int64_t matvecs;
    int failed; /* the bound product that did; -1 */
    void *more; /* of one_sweep; NULL */
    PyObject *callback, *progress;
    int style;     /* of the callback, below */
    int64_t shown; /* when progress was called: ns */
    double bnorm;  /* for progress and gmres's callback */
} solver;
enum { STYLE_NONE, STYLE_X, STYLE_NORM }; /* x, gmres: once a cycle; its relative residual */

static int64_t now(void) {
    struct timespec t;
    return timespec_get(&t, TIME_UTC) ? (int64_t)t.tv_sec * 1000000000 + t.tv_nsec : 0;
}

static lop_status apply(void *user, int what, const void *in, void *out) {
    solver *v = user;
    py_bound *b = &v->bound[what];
    if (what != LOP_KRYLOV_M) v->matvecs++;
    lop_status st = py_bound_run(b, in, out);
    if (st != LOP_OK) {
        v->failed = what;
        return st;
    }
    const double before = v->gil.work;
    st = py_gil_check(&v->gil, b->work + v->work);
    if (v->quiet && !v->gil.saved && v->gil.work < before) py_gil_leave(&v->gil); /* it lasts */
    return st;
}

/* lop_krylov's both, of a plain sparse matrix. */
static lop_status one_sweep(void *user, double alpha, const void *x, void *u, void *w,
                            double *norm) {
    solver *v = user;
    py_bound *b = &v->bound[LOP_KRYLOV_A];
    const lop_mat *const *a = (const lop_mat *const *)b->call.a;
    const lop_mat in = {(void *)(uintptr_t)x, v->k.n, 1, 1, 1, v->k.dt},
                  mid = {u, v->k.m, 1, 1, 1, v->k.dt}, out = {w, v->k.n, 1, 1, 1, v->k.dt};
    double sum;
    v->matvecs += 2;
    lop_status st =
        lopk_csr_both(a[4], a[3], a[2], alpha, &in, &mid, &out, v->more, b->call.team, &sum);
    if (st == LOP_INDEX)
        st = lop_fail(&b->err, st,
                      "a sparse index is out of bounds for the %lld x %lld matrix, or "
                      "indptr is not increasing",
                      (long long)v->k.m, (long long)v->k.n);
    if (st != LOP_OK) {
        v->failed = LOP_KRYLOV_A;
        return st;
    }
    *norm = sum > 1e-280 && sum < 1e280 ? sqrt(sum) : lopk_vec_norm(v->k.dt, v->k.m, u);
    return py_gil_check(&v->gil, 2 * (b->work + v->work));
}

/* Takes the sweep where A is stored by rows and that is quicker. */
static int bind_both(solver *v) {
    const py_bound *b = &v->bound[LOP_KRYLOV_A];
    const lop_mat *const *a = (const lop_mat *const *)b->call.a;
    if (v->k.k != 1 || b->foreign || !b->direct || !lop_sparse_by_rows(&b->call)) return 0;
    if (v->k.dt != LOP_f64 && v->k.dt != LOP_c128) return 0; /* 1 / beta might pass float's range */
    const size_t size = lop_dtype_size(v->k.dt);
    const int parts = lopk_csr_parts(a[2]->m, v->k.n, size);
    if (parts == 0 || a[2]->rs != 1 || a[3]->rs != 1 || a[4]->rs != 1) return 0;
    v->more = PyMem_Malloc((size_t)(parts - 1) * (size_t)v->k.n * size);
    if (!v->more) {
        PyErr_NoMemory();
        return -1;
    }
    v->k.both = one_sweep;
    return 0;
}

/* A copy of the iterate, as the right side's shape. */
static PyObject *iterate(const solver *v, const void *x) {
    npy_intp dim[2] = {(npy_intp)v->k.n, (npy_intp)v->k.k};
    PyObject *a = PyArray_SimpleNew(v->bound[0].vec ? 1 : 2, dim, py_typenum(v->k.dt));
    if (a) memcpy(PyArray_DATA((PyArrayObject *)a), x, (size_t)PyArray_NBYTES((PyArrayObject *)a));
    return a;
}

static int tell(solver *v, int64_t iteration, double residual, const void *x) {
    PyObject *r = NULL, *arg = NULL;
    const int64_t pause = 100000000; /* ns */
    if (v->progress) {
        const int64_t t = now();
        if (t - v->shown >= pause || t < v->shown) {
            v->shown = t;
            r = PyObject_CallFunction(v->progress, "Ld", (long long)iteration, residual);
            if (!r) return -1;
            Py_DECREF(r);
        }
    }
    const bool number = v->style == STYLE_NORM;
    if (v->style == STYLE_NONE || (number ? x != NULL : x == NULL)) return 0;
    arg = number ? PyFloat_FromDouble(residual / v->bnorm) : iterate(v, x);
    r = arg ? PyObject_CallOneArg(v->callback, arg) : NULL;
    Py_XDECREF(arg);
    Py_XDECREF(r);
    return r ? 0 : -1;
}

static lop_status step(void *user, int64_t iteration, double residual, const void *x) {
    solver *v = user;
    const bool taken = v->gil.saved != NULL;
    py_gil_enter(&v->gil);
    int rc = tell(v, iteration, residual, x);
    if (rc == 0) rc = PyErr_CheckSignals();
    if (taken) py_gil_leave(&v->gil);
    return rc < 0 ? LOP_CALLBACK : LOP_OK;
}

typedef lop_status (*method)(lop_krylov *);
static method method_of(const char *name, bool *both) {
    static const struct {
        const char *name;
        method run;
        bool both;
    } all[] = {{"cg", lop_krylov_cg, false},         {"bicgstab", lop_krylov_bicgstab, false},
               {"minres", lop_krylov_minres, false}, {"gmres", lop_krylov_gmres, false},
               {"lsqr", lop_krylov_lsqr, true},      {"lsmr", lop_krylov_lsmr, true}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (!strcmp(all[i].name, name)) {
            *both = all[i].both;
            return all[i].run;
        }
    PyErr_Format(PyExc_ValueError, "no such solver: %s", name);
    return NULL;
}

/* Binds what is used; -1 with an exception. What was opened is closed by the caller. */
static int bind(solver *v, PyObject *op, PyObject *m, lop_dtype dt, int64_t k, bool vec,
                bool both_ways) {
    PyObject *of[3] = {op, both_ways ? op : NULL, m};
    static const int modes[3] = {LOP_N, LOP_H, LOP_N};
    v->quiet = v->style == STYLE_NONE;
    for (int i = 0; i < 3; i++) {
        if (!of[i]) continue;
        py_bound *b = &v->bound[i];
        if (py_bound_open(b, v->s, (py_op *)of[i], &v->gil, modes[i], dt, k, vec) < 0) return -1;
        if (b->foreign) v->quiet = false;
        if (b->out_dt == dt) continue;
        PyErr_Format(PyExc_TypeError, "the operator gives %s, the solver runs in %s",
                     lop_dtype_name(b->out_dt), lop_dtype_name(dt));
        return -1;
    }
    return both_ways ? bind_both(v) : 0;
}

/* Is it an array that a solver may work on: C order, that dtype and shape? */
static bool fits(PyObject *o, lop_dtype dt, int nd, int64_t rows, int64_t k) {
    PyArrayObject *a = (PyArrayObject *)o;
    return py_dtype(a) == dt && PyArray_ISCARRAY_RO(a) && PyArray_NDIM(a) == nd &&
           PyArray_DIM(a, 0) == (npy_intp)rows && (nd == 1 || PyArray_DIM(a, 1) == (npy_intp)k);
}

static PyObject *answer(solver *v, double seconds) {
    const lop_krylov *k = &v->k;
    npy_intp length = (npy_intp)k->nhistory;
    PyObject *history = PyArray_SimpleNew(1, &length, NPY_DOUBLE);
    if (!history) return NULL;
    if (length)
        memcpy(PyArray_DATA((PyArrayObject *)history), k->history,
               (size_t)length * sizeof *k->history);
    const double *d = k->numbers;
    return Py_BuildValue("iLLdNzd(dddddd)", k->info, (long long)k->iterations,
                         (long long)v->matvecs, seconds, history, k->why, k->at, d[0], d[1], d[2],
                         d[3], d[4], d[5]);
}

static lop_status go(solver *v, method run) {
    const double heavy = (double)v->s->nogil_work;
    const double work = v->bound[0].work + v->work;
    const bool large = (double)v->k.m * (double)v->k.k >= 1e5;
    if ((v->quiet && work > heavy) || large) py_gil_leave(&v->gil);
    lop_status st = run(&v->k);
    py_gil_enter(&v->gil);
    return st;
}

/* Binds, runs, and gives what it came to; new. */
static PyObject *ran(solver *v, PyObject *op, PyObject *m, bool vec, method run, bool both) {
    lop_krylov *k = &v->k;
    k->ctx = &v->s->ctx;
    k->apply = apply;
    k->user = v;
    k->has_m = m != NULL;
    v->work = 10 * (double)(k->m + k->n) * (double)k->k * (double)lop_dtype_size(k->dt);
    v->bound = PyMem_Malloc(3 * sizeof *v->bound);
    if (!v->bound) return PyErr_NoMemory();
    for (int i = 0; i < 3; i++) v->bound[i].op = NULL;
    py_gil_open(&v->gil);
    const int64_t start = v->gil.last;
    PyObject *made = NULL;
    if (bind(v, op, m, k->dt, k->k, vec, both) == 0) {
        lop_status st = go(v, run);
        if (st == LOP_OK)
            made = answer(v, 1e-9 * (double)(now() - start));
        else
            py_raise(v->s, st, v->failed < 0 ? NULL : &v->bound[v->failed].err,
                     v->failed == LOP_KRYLOV_M ? m : op, "apply");
    }
    for (int i = 0; i < 3; i++)
        if (py_bound_close(&v->bound[i]) < 0) Py_CLEAR(made);
    PyMem_Free(v->bound);
    PyMem_Free(v->more);
    lop_krylov_close(k);
    return made;
}

/* Borrowed values of the fields of a Run, by name. */
static bool fields_of(py_state *s, PyObject *run, PyObject **field) {
#define NAME(id) #id
    static const char *const name[PY_RUN_FIELDS] = {PY_RUN(NAME)};
#undef NAME
    for (int i = 0; i < PY_RUN_FIELDS; i++) {
        if (!s->run_field[i] && !(s->run_field[i] = PyUnicode_InternFromString(name[i])))
            return false;
        field[i] = PyDict_GetItemWithError(run, s->run_field[i]);
        if (!field[i] && !PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "_krylov: there is no field %s", name[i]);
        if (!field[i]) return false;
    }
    return true;
}

/* What is no array and no operator; with an exception set where a field is of another type. */
static void read_numbers(solver *v, PyObject *const *field) {
    v->k.rtol = PyFloat_AsDouble(field[PY_RUN_rtol]);
    v->k.atol = PyFloat_AsDouble(field[PY_RUN_atol]);
    v->k.shift = PyFloat_AsDouble(field[PY_RUN_shift]);
    v->k.damp = PyFloat_AsDouble(field[PY_RUN_damp]);
    v->k.conlim = PyFloat_AsDouble(field[PY_RUN_conlim]);
    v->bnorm = PyFloat_AsDouble(field[PY_RUN_bnorm]);
    v->k.maxiter = PyLong_AsLongLong(field[PY_RUN_maxiter]);
    v->k.restart = PyLong_AsLongLong(field[PY_RUN_restart]);
    v->style = (int)PyLong_AsLong(field[PY_RUN_style]);
    v->k.has_x0 = PyObject_IsTrue(field[PY_RUN_has_x0]) > 0;
    v->k.strict = PyObject_IsTrue(field[PY_RUN_strict]) > 0;
    v->k.inner = PyObject_IsTrue(field[PY_RUN_inner]) > 0;
    v->k.flexible = PyObject_IsTrue(field[PY_RUN_flexible]) > 0;
    v->callback = field[PY_RUN_callback];
    v->progress = field[PY_RUN_progress] == Py_None ? NULL : field[PY_RUN_progress];
}

/* _krylov(fields): a dict, that of the Run of _iterative/krylov_run.py. x is written to. Gives
 * (info, iterations, matvecs, seconds, residuals, why, at, numbers). */
PyObject *py_krylov(py_state *s, PyObject *run_fields) {
    PyObject *field[PY_RUN_FIELDS];
    if (!fields_of(s, run_fields, field)) return NULL;
    solver v = {.s = s, .failed = -1};
    read_numbers(&v, field);
    bool both;
    const char *name = PyUnicode_AsUTF8(field[PY_RUN_name]);
    method run = PyErr_Occurred() ? NULL : method_of(name, &both);
    if (!run) return NULL;
    PyObject *op = field[PY_RUN_op], *m = field[PY_RUN_M] == Py_None ? NULL : field[PY_RUN_M],
             *b = field[PY_RUN_b], *x = field[PY_RUN_x], *var = field[PY_RUN_var],
             *goals = field[PY_RUN_goals];
    if (!py_is_op(s, op) || (m && !py_is_op(s, m)))
        return PyErr_Format(PyExc_TypeError, "not an operator");
    if (!PyArray_Check(b) || !PyArray_Check(x))
        return PyErr_Format(PyExc_TypeError, "_krylov: b and x are arrays");
    const lop_node *node = py_node(s, (py_op *)op);
    if (!node) return NULL;
    const lop_dtype dt = py_dtype((PyArrayObject *)x);
    const int nd = PyArray_NDIM((PyArrayObject *)x);
    v.k.k = nd == 2 ? PyArray_DIM((PyArrayObject *)x, 1) : 1;
    v.k.m = lop_rows(node);
    v.k.n = lop_cols(node);
    const bool square = both || v.k.m == v.k.n;
    if (!lop_is_blas(dt) || nd < 1 || nd > 2 || !square || !fits(b, dt, nd, v.k.m, v.k.k) ||
        !fits(x, dt, nd, v.k.n, v.k.k) || !PyArray_ISWRITEABLE((PyArrayObject *)x) ||
        (var != Py_None && !(nd == 1 && PyArray_Check(var) && fits(var, LOP_f64, 1, v.k.n, 1))) ||
        (goals != Py_None && !(PyArray_Check(goals) && fits(goals, LOP_f64, 1, v.k.k, 1))))
        return PyErr_Format(PyExc_ValueError, "_krylov: these arrays do not fit %s", name);
    v.k.dt = dt;
    v.k.b = PyArray_DATA((PyArrayObject *)b);
    v.k.x = PyArray_DATA((PyArrayObject *)x);
    v.k.var = var == Py_None ? NULL : PyArray_DATA((PyArrayObject *)var);
    v.k.goals = goals == Py_None ? NULL : PyArray_DATA((PyArrayObject *)goals);
    if (v.style != STYLE_NONE || v.progress) v.k.step = step;
    return ran(&v, op, m, nd == 1, run, both);
}

static bool is_real(PyObject *o) { return PyFloat_CheckExact(o) || PyLong_CheckExact(o); }

enum {
    PLAIN = 4096
}; /* rows up to which what is done before a run takes time, and little memory */

/* _krylov_plain(name, A, b, rtol, atol, maxiter): (x, what _krylov gives) of the plainest call, at
 * once: an operator and a short vector of its dtype, nothing to be told, no M, no x0. None of any
 * other. A run of some iterations takes no longer than its arguments did in Python. */
PyObject *py_krylov_plain(py_state *s, PyObject *const *args, Py_ssize_t nargs) {
    enum { NAME, A, B, RTOL, ATOL, MAXITER, ALL };
    if (nargs != ALL || !py_is_op(s, args[A]) || !PyArray_CheckExact(args[B]) ||
        !is_real(args[RTOL]) || !is_real(args[ATOL]) ||
        !(args[MAXITER] == Py_None || PyLong_CheckExact(args[MAXITER])))
        Py_RETURN_NONE;
    PyArrayObject *b = (PyArrayObject *)args[B];
    const lop_node *node = py_node(s, (py_op *)args[A]);
    if (!node) return NULL;
    const lop_dtype dt = py_dtype(b);
    solver v = {.s = s, .failed = -1};
    v.k.rtol = PyFloat_AsDouble(args[RTOL]);
    v.k.atol = PyFloat_AsDouble(args[ATOL]);
    if (PyErr_Occurred()) return NULL;
    if (node->shape.ndim != 2 || node->dtype != dt || lop_rows(node) > PLAIN ||
        lop_rows(node) != lop_cols(node) || !lop_is_blas(dt) ||
        !fits((PyObject *)b, dt, 1, lop_rows(node), 1) || !(v.k.atol >= 0))
        Py_RETURN_NONE;
    const char *name = PyUnicode_AsUTF8(args[NAME]);
    bool both;
    method run = name ? method_of(name, &both) : NULL;
    if (!run) return NULL;
    v.k.m = v.k.n = lop_rows(node);
    v.k.k = 1;
    v.k.maxiter = args[MAXITER] == Py_None ? 10 * v.k.n : PyLong_AsLongLong(args[MAXITER]);
    if (v.k.maxiter == -1 && PyErr_Occurred()) return NULL;
    npy_intp n = (npy_intp)v.k.n;
    PyObject *x = PyArray_SimpleNew(1, &n, py_typenum(dt));
    if (!x) return NULL;
    v.k.dt = dt;
    v.k.b = PyArray_DATA(b);
    v.k.x = PyArray_DATA((PyArrayObject *)x);
    PyObject *r = ran(&v, args[A], NULL, true, run, both), *pair = NULL;
    if (r) pair = PyTuple_Pack(2, x, r);
    Py_XDECREF(r);
    Py_DECREF(x);
    return pair;
}
