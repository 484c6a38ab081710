/* py_lazy_wants.h: what py_lazy_eval.c has still to find, as a stack. */
#ifndef PY_LAZY_WANTS_H
#define PY_LAZY_WANTS_H

#include "py_lazy.h"

typedef struct want {
    py_lazy *a; /* borrowed: kept alive by the root */
    bool form, ready;
} want;

enum { FEW = 64, TWINS = 16 };

typedef struct stack {
    want few[FEW], *at;
    size_t n, room;
    int64_t bytes;         /* of the values made */
    py_lazy *asked[TWINS]; /* functions of forms that were computed: borrowed */
    int nasked;
    PyObject **looked; /* list: those with forms for this walk alone (py_lazy_note) */
} stack;

static inline void open_stack(stack *st, PyObject **looked) {
    st->at = st->few;
    st->n = 0;
    st->room = FEW;
    st->bytes = 0;
    st->nasked = 0;
    st->looked = looked;
}
static inline void close_stack(stack *st) {
    if (st->at != st->few) PyMem_Free(st->at);
}

static inline int push(stack *st, py_lazy *a, bool form, bool ready) {
    if (st->n == st->room) {
        bool own = st->at != st->few;
        if (st->room > SIZE_MAX / 2 / sizeof *st->at) return PyErr_NoMemory(), -1;
        want *more = PyMem_Realloc(own ? st->at : NULL, 2 * st->room * sizeof *more);
        if (!more) return PyErr_NoMemory(), -1;
        if (!own) memcpy(more, st->few, sizeof st->few);
        st->at = more;
        st->room *= 2;
    }
    st->at[st->n++] = (want){a, form, ready};
    return 0;
}

static inline int push_form(stack *st, py_lazy *a) {
    return a->form ? 0 : push(st, a, true, false);
}

static inline PyObject *form_of(const py_lazy *a) { return Py_XNewRef(a->form); } /* new */

/* Are they one matrix: one node, or the same views and inverses of one? */
static inline bool same_matrix(const py_lazy *x, const py_lazy *y) {
    while (x != y) {
        const bool alike = x->head == y->head && x->mode == y->mode && x->dtype == y->dtype;
        if (!alike || (x->head != PY_INVERSE && x->head != PY_VIEW)) return false;
        x = py_lazy_arg(x, 0);
        y = py_lazy_arg(y, 0);
    }
    return true;
}
/* Are the keywords the same objects? */
static inline bool same_keywords(PyObject *k, PyObject *l) {
    PyObject *key, *v;
    Py_ssize_t at = 0;
    if (k == l) return true;
    if (!k || !l || !PyDict_Check(k) || !PyDict_Check(l) || PyDict_Size(k) != PyDict_Size(l))
        return false;
    while (PyDict_Next(k, &at, &key, &v))
        if (PyDict_GetItem(l, key) != v) return false;
    return true;
}
/* Of a function of a form: one that has been computed in this walk and is the same, though it was
 * built by another call (`pl.diagonal(A)` twice); NULL: there is none, and `a` is remembered. */
static inline py_lazy *twin_of(stack *st, py_lazy *a) {
    if (a->head != PY_OF_FORM || a->nargs != 1 || a->s->tape || a->s->verify) return NULL;
    for (int i = 0; i < st->nasked; i++) {
        py_lazy *b = st->asked[i];
        if (b->value && b->dtype == a->dtype && b->nd == a->nd &&
            PyTuple_GET_ITEM(a->more, 0) == PyTuple_GET_ITEM(b->more, 0) &&
            same_keywords(PyTuple_GET_ITEM(a->more, 1), PyTuple_GET_ITEM(b->more, 1)) &&
            same_matrix(py_lazy_arg(a, 0), py_lazy_arg(b, 0)))
            return b;
    }
    if (st->nasked < TWINS) st->asked[st->nasked++] = a;
    return NULL;
}

/* py_lazy_vectors.c: what a vector (or the product of two) is to an expression of columns. */
typedef enum role { NOT_LINEAR, GIVEN, APPLIED, FROM_LEFT, DOT, PLUS, MINUS, TIMES, NEGATIVE } role;
role py_lazy_role(const py_lazy *a);
bool py_lazy_is_number(const py_state *s, PyObject *o);

#endif
