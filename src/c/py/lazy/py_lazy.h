/* py_lazy.h: LazyArrays: the object, and what its files share.
 *
 * A LazyArray is a head, its arguments, a shape and a dtype. Those never change; its value and its
 * operator form are found later and kept. Touched under the GIL only. */
#ifndef LOP_PY_LAZY_H
#define LOP_PY_LAZY_H

#include "py/module/py.h"

/* LEAF to INVERSE are *linear*: a matrix made by them has an operator form. So has MADE, the
 * operator that a function makes of forms, columns and values. GONE: the garbage collector took its
 * arguments. */
typedef enum py_head {
    PY_LEAF,
    PY_OPERATOR,
    PY_MATMUL,
    PY_ADD,
    PY_SCALE,
    PY_OVER,
    PY_VIEW,
    PY_INVERSE,
    PY_MADE,
    PY_INDEX,
    PY_CALL,
    PY_OF_FORM,
    PY_GONE
} py_head;

/* Places of NumPy's functions in ufunc and call of the state. */
enum py_ufunc {
    U_MATMUL,
    U_ADD,
    U_SUB,
    U_MUL,
    U_DIV,
    U_NEG,
    U_CONJ, /* up to here there is a way in C */
    U_FLOOR,
    U_MOD,
    U_POW,
    U_AND,
    U_OR,
    U_XOR,
    U_ABS,
    U_LT, /* in the order of Py_LT, ... */
    U_LE,
    U_EQ,
    U_NE,
    U_GT,
    U_GE,
    U_SQUARE,
    U_COUNT
};

/* What the function of a MADE takes of an argument. */
enum { PY_TAKES_VALUE, PY_TAKES_FORM, PY_TAKES_COLUMN };

/* A leaf that is a term of a sum and stands nowhere else: of an array that was added as it is. */
enum { PY_GIVEN = 1 };

typedef struct py_lazy {
    PyObject_VAR_HEAD py_state *s; /* counted */
    uint8_t head, mode;            /* mode: of a view; of a leaf, PY_GIVEN or 0 */
    bool adopts;                   /* made of kinds without a dtype of their own: takes others' */
    bool looked; /* the form holds what an array was when it was looked at (py_lazy_given.c) */
    int nd, nargs;
    PyObject *a, *b; /* the arguments; from three on `a` is a tuple of them */
    PyObject *more; /* assume_a of a leaf, key of an index, (function, kwargs) of a call, (function,
                       what it takes of each argument: bytes of PY_TAKES) of what is made */
    PyArray_Descr *dtype;
    PyObject *value, *form; /* array, operator; NULL: not yet found */
    PyObject *guard; /* called, once, before the value or the form is found: an error is raised in
                        its place; NULL: there is nothing to look at */
    PyObject *weak;
    PyCodeObject *code; /* where it was built */
    int lasti;
    npy_intp dim[]; /* nd */
} py_lazy;

static inline bool
py_is_plain(const PyArray_Descr *d) { /* float32, float64 and their complex kin */
    return PyArray_ISNBO(d->byteorder) && (d->type_num == NPY_FLOAT || d->type_num == NPY_DOUBLE ||
                                           d->type_num == NPY_CFLOAT || d->type_num == NPY_CDOUBLE);
}

/* py_lazy.c */
int py_lazy_make_type(PyObject *module); /* 0, or -1 with an exception */
static inline bool py_is_lazy(const py_state *s, PyObject *o) {
    return Py_TYPE(o) == s->lazy || (s->lazy && PyType_IsSubtype(Py_TYPE(o), s->lazy));
}
static inline PyObject *const *py_lazy_args(const py_lazy *self) { /* borrowed */
    return self->nargs > 2 ? &PyTuple_GET_ITEM(self->a, 0) : &self->a;
}
static inline py_lazy *py_lazy_arg(const py_lazy *self, int i) { /* borrowed; one known lazy */
    return (py_lazy *)py_lazy_args(self)[i];
}
/* A node of at most two arguments (borrowed); `dim` may be NULL, to be filled by the caller. New,
 * NULL with an exception. */
py_lazy *py_lazy_new(py_state *s, py_head head, PyObject *a, PyObject *b, int nd,
                     const npy_intp *dim, PyArray_Descr *dtype);
/* The leaf of a plain array of floats. New, NULL with an exception; Py_None (new): not one. */
PyObject *py_lazy_leaf(py_state *s, PyObject *o);
PyObject *py_lazy_shape(const py_lazy *self); /* new */
/* May v be kept as it is? Its memory is its own, or, in C order as a copy would be, that of an
 * array which v alone holds (a reshaped one that has just been made), or a good part of what an
 * argument keeps, which nobody writes to either: derivatives are slices of one array, reshaped. */
bool py_lazy_may_keep(const py_lazy *a, PyArrayObject *v);
/* Is it a linear node, or a function of a form, with more dimensions, itself or an argument, than
 * operators have? NumPy computes those from the arguments' values. */
bool py_lazy_beyond(const py_lazy *self);
/* Adds what the value of a function of values takes to the bytes of one evaluation, which keeps all
 * of them: 0; -1 with an exception where they pass the memory limit. */
int py_lazy_room(py_lazy *self, int64_t *bytes);
void py_lazy_failed(py_lazy *a); /* adds the node's line to the exception that is set */
/* The value where there was no memory for it (an exception is set): new; NULL with an exception. */
PyObject *py_lazy_instead(py_lazy *a);

/* py_lazy_arith.c. All new; NULL with an exception. */
PyObject *py_lazy_node(py_state *s, PyObject *o); /* an operand as a node; Py_None: no plain one */
PyObject *py_lazy_matmul(PyObject *a, PyObject *b); /* the slot */
PyObject *py_lazy_view(py_state *s, py_lazy *self, int mode);
PyObject *py_lazy_inverse(py_state *s, py_lazy *self);
PyObject *py_lazy_scaled(py_state *s, py_lazy *a, PyObject *c);
PyObject *py_lazy_array_ufunc(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *py_lazy_index(PyObject *self, PyObject *key); /* the slot */
extern PyType_Slot py_lazy_arith_slots[];
int py_lazy_import(py_state *s); /* NumPy's functions that have a row; 0, or -1 */

/* py_fast_path.c: the value of an index that is one element of a sum of plain arrays. New; NULL:
 * the general way, or an exception. */
PyObject *py_direct_lazy(const py_lazy *index);

/* py_lazy_replay.c: the nodes of `rows`, a tuple of (node, places of its arguments among all that
 * is made, the leaves first; -1: the argument stays), of the LazyArrays in the list `leaves`, which
 * have the shapes and dtypes that the nodes were built of: a list of all, leaves first. New. */
PyObject *py_lazy_replay(py_state *s, PyObject *rows, PyObject *leaves);
/* A call of a template: `self` is (a dict of (rows, value or tuple of values) by the tuple of the
 * arrays' shapes, dtypes). New: the value, or a tuple of them; None where nothing is kept for these
 * arrays, or they have to be cast. */
PyObject *py_lazy_template(py_state *s, PyObject *self, PyObject *arrays);

/* py_lazy_recipes.c: a kind of LazyArrays, itself one, of the arguments of its constructor. New;
 * NULL with an exception; Py_NotImplemented or an operator (new) where Python makes it of their
 * values. */
PyObject *py_lazy_kind(py_state *s, PyTypeObject *type, PyObject *args, PyObject *kwargs);

/* py_lazy_key.c: (key, list of arrays, those of the parameters first) of a formula; None: it has
 * none. `params`, `arrays`: lists, the parameters' LazyArrays and their arrays; `tables`: the set
 * of kinds that are opened, a dict of the attributes that count by class, the set of classes of
 * functions, and the class of a kind of LazyArrays. New; NULL with an exception. */
PyObject *py_lazy_key(py_state *s, PyObject *root, PyObject *params, PyObject *arrays,
                      PyObject *tables);

/* py_lazy_symmetric.c: the value of `a` as a Dense, known to be symmetric where a function of NumPy
 * made a real matrix that is so by its formula and, to working accuracy, by its numbers. New; NULL
 * without an exception: it has none. */
PyObject *py_lazy_dense(const py_lazy *a);

/* py_lazy_given.c. Is x a PY_GIVEN leaf of nothing but zeros beside its diagonal? Reads it. */
bool py_lazy_is_diagonal(const py_lazy *x);
/* The form of argument i of `a`: of such a leaf in a sum a multiple of the identity, or a Diag.
 * New; NULL without an exception: it has none any more. */
PyObject *py_lazy_term(const py_lazy *a, int i);
/* Adds `a`, whose form was just found, to *list (NULL: none yet) if that form holds what such an
 * array was: 0, or -1. */
int py_lazy_note(PyObject **list, py_lazy *a);
/* Drops the forms of those in *list, which are made anew of what the arrays are by then. */
void py_lazy_forget(PyObject **list);

/* py_lazy_eval.c */
int py_lazy_guarded(py_lazy *self); /* calls the guard, which goes if it is content: 0, or -1 */
/* The value of `self`, borrowed, computed now if it is not known. NULL with an exception. */
PyObject *py_lazy_computed(py_lazy *self);
/* Values of the LazyArrays in a list, in order; `give` (NULL: the usual way) is called for each
 * value that is needed and has to set it. 0, or -1 with an exception. */
int py_lazy_run(py_state *s, PyObject *roots, PyObject *give);
/* The operator whose dense form is the value of `self` (a column for a vector, 1 x 1 for a product
 * of two), where it is linear; new. None (new): it is not. NULL with an exception. */
PyObject *py_lazy_operator(py_lazy *self);
bool py_lazy_is_deep(const py_lazy *self); /* a vector computed as one expression of columns? */
int py_lazy_value(py_lazy *self); /* its arguments' values and forms being known. 0, or -1 */

#endif
