/* py_bound_product.h: an operator bound for many products: planned once, its leaves read once, then
 * run from C with a pointer in and a pointer out, without Python objects, without the GIL.
 *
 *   py_bound_open    with the GIL: plan, leaves, workspace       py_bound_run    many times
 *   py_bound_close   with the GIL: publishes what was derived, says what fell back
 *
 * What holds a callable, a user's subclass or a foreign dtype calls Python for each product: with
 * the GIL taken for it, on arrays of its own; an exception ends the run with LOP_CALLBACK and stays
 * set. */
#ifndef LOP_PY_APPLY_H
#define LOP_PY_APPLY_H

#include "py/module/py.h"

/* Who holds the GIL while a solver runs. `saved` NULL: this thread does. */
typedef struct py_gil {
    PyThreadState *saved;
    double work;   /* flops and bytes since the clock was looked at */
    int64_t last;  /* when signals were looked for: ns */
    int64_t pause; /* ns from one look to the next */
} py_gil;
void py_gil_open(py_gil *g);
void py_gil_leave(py_gil *g); /* lets the GIL go, unless it has */
void py_gil_enter(py_gil *g); /* takes it back */
/* Looks for signals when 30 ms have passed since the last look (more where taking the GIL had to
 * wait: that is to cost 5 % at most): LOP_CALLBACK with the exception of a handler set (^C).
 * `work`: flops and bytes done since the last call. With or without the GIL. */
lop_status py_gil_look(py_gil *g) LOP_MUST_CHECK;
static inline lop_status py_gil_check(py_gil *g, double work) {
    g->work += work + 100;
    return g->work < 4e6 ? LOP_OK : py_gil_look(g); /* about a millisecond of work */
}
/* The same for a lopk_team whose `user` is the py_gil. */
bool py_gil_stop(void *gil);

/* mode(op) X for X of shape (cols, k), in C order; k = 1 with `vec`: vectors (cols,). Must not be
 * moved while open. */
typedef struct py_bound {
    py_gil *gil; /* borrowed */
    py_op *op;   /* owned */
    int mode;
    bool vec, foreign, direct, broken;
    int64_t rows, cols, k;
    lop_dtype dt, out_dt; /* of X and of the product */
    double work;          /* flops and bytes of one run */
    int64_t runs;
    /* not foreign */
    py_run run;
    lop_frame frame;
    int rhs; /* -1: X is not looked at */
    lop_call call;
    void **x_at, **y_at; /* direct: where the addresses of X and of the product go */
    lop_err err;
} py_bound;

/* 0, or -1 with an exception: no such sizes, a batched operator, no plan. Leaves are read now. */
int py_bound_open(py_bound *b, py_state *s, py_op *op, py_gil *gil, int mode, lop_dtype dt,
                  int64_t k, bool vec);
/* y (rows, k) <- mode(op) x; they do not overlap. b->err has the words for an error but CALLBACK.
 */
lop_status py_bound_run(py_bound *b, const void *x, void *y) LOP_MUST_CHECK;
/* 0, or -1 with an exception (a warning made one). An exception that is set stays. Takes what was
 * never opened when zeroed. */
int py_bound_close(py_bound *b);

int py_applied_make_type(PyObject *module); /* _core._Applied, the same from Python */
/* py_krylov.c: a run of an iterative solver, from checked arguments. New. */
PyObject *py_krylov(py_state *s, PyObject *fields);
PyObject *py_krylov_plain(py_state *s, PyObject *const *args, Py_ssize_t nargs);

#endif
