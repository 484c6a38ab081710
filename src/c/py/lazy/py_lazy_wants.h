/* py_lazy_wants.h: what py_lazy_eval.c has still to find, as a stack. */
#ifndef PY_LAZY_WANTS_H
#define PY_LAZY_WANTS_H

#include "py_lazy.h"

typedef struct want {
    py_lazy *a; /* borrowed: kept alive by the root */
    bool form, ready;
} want;

enum { FEW = 64 };

typedef struct stack {
    want few[FEW], *at;
    size_t n, room;
    int64_t bytes; /* of the values made */
} stack;

static inline void open_stack(stack *st) {
    st->at = st->few;
    st->n = 0;
    st->room = FEW;
    st->bytes = 0;
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

/* py_lazy_vectors.c: what a vector (or the product of two) is to an expression of columns. */
typedef enum role { NOT_LINEAR, GIVEN, APPLIED, FROM_LEFT, DOT, PLUS, MINUS, TIMES, NEGATIVE } role;
role py_lazy_role(const py_lazy *a);
bool py_lazy_is_number(const py_state *s, PyObject *o);

#endif
