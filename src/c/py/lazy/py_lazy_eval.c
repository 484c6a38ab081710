/* py_lazy_eval.c: LazyArrays computed: linear parts as one operator expression each, the rest by
 * NumPy on values.
 *
 *     node --form--> operator expression --planner--> array        (linear heads)
 *          --value-> NumPy's function on the values of its arguments (all others)
 *
 * A formula of vectors in which a product is applied to what another made is one expression too,
 * its vectors being columns (*deep*, below); one product is applied at once.
 *
 * One walk with a stack, for formulas of any depth: a wanted thing is put back until what it needs
 * is known. What is found is kept with the node; a form made of a kept value is a Dense of it.
 * Forms carry the line that built their node. Another thread may find the same things meanwhile,
 * and drop forms that a value has replaced: a form is held while it is used, and looked for again
 * when it is gone. */
#include "py_lazy_wants.h"

#include "py/run/py_tape.h"

static bool is_product(const py_lazy *a) { /* of two matrices, or stacks of them */
    return a->head == PY_MATMUL && py_lazy_arg(a, 0)->nd >= 2 && py_lazy_arg(a, 1)->nd >= 2;
}

/* Has it an operator form of its own, not only one made of its value? */
static bool has_form(const py_lazy *a) {
    if (a->nd < 2 || a->nd > LOP_MAXDIM || a->head > PY_MADE || py_lazy_beyond(a)) return false;
    return a->head == PY_MATMUL ? is_product(a) : true;
}

/* Is its value to be indexed, not its form? A leaf with an assumption keeps it where the part is a
 * principal one. */
static bool by_value(const py_lazy *a) {
    return a->nd < 2 || a->value || (a->head == PY_LEAF && !a->more) || !has_form(a);
}

/* Is it an array as it is given? Of what is assumed of one a part is the matrix. */
static bool is_given(const py_lazy *a) { return a->head == PY_LEAF && !a->more; }
/* An argument of a function: a leaf's array is there. */
static int push_value(stack *st, PyObject *o, py_state *s) {
    if (!py_is_lazy(s, o)) return 0;
    py_lazy *a = (py_lazy *)o;
    return a->value || is_given(a) ? 0 : push(st, a, false, false);
}

/* Is x an integer result whose form would be computed in a's wider dtype, so that it would not wrap
 * where NumPy's does? Then its value is what a is made of. */
static bool wraps(const py_lazy *a, const py_lazy *x) {
    const int type = x->dtype->type_num;
    if (x->value || type == a->dtype->type_num || !(PyTypeNum_ISINTEGER(type) || type == NPY_BOOL))
        return false;
    while (x->head == PY_VIEW) x = py_lazy_arg(x, 0);
    return x->head != PY_LEAF && x->head != PY_OPERATOR && x->head != PY_GONE;
}

/* The form of an operand of a: the value lies above, and clears a form that is known already. */
static int push_operand(stack *st, const py_lazy *a, py_lazy *x) {
    if (push_form(st, x) < 0) return -1;
    return wraps(a, x) ? push(st, x, false, false) : 0;
}

/* -- vectors as columns: py_lazy_vectors.c says what is one */

/* Forms of the matrices, values of what is not linear. */
static int push_for_column(stack *st, py_state *s, PyObject *o) {
    if (!py_is_lazy(s, o)) return 0;
    py_lazy *a = (py_lazy *)o;
    if (a->nd == 2) return push_form(st, a);
    if (a->guard && py_lazy_guarded(a) < 0) return -1;
    const role r = a->nd < 2 ? py_lazy_role(a) : NOT_LINEAR;
    if (r == NOT_LINEAR || r == GIVEN) return push_value(st, o, s);
    for (int i = a->nargs - 1; i >= 0; i--) {
        PyObject *arg = py_lazy_args(a)[i];
        const bool number = r == TIMES && py_lazy_is_number(s, arg);
        if ((number ? push_value(st, arg, s) : push_for_column(st, s, arg)) < 0) return -1;
    }
    return 0;
}

/* Values of the arguments from the last to the `first`. */
static int push_values(stack *st, const py_lazy *a, int first) {
    int rc = 0;
    for (int i = a->nargs - 1; rc == 0 && i >= first; i--)
        rc = push_value(st, py_lazy_args(a)[i], a->s);
    return rc;
}

/* What the function of a MADE takes of argument i. */
static int taken(const py_lazy *a, int i) {
    return PyBytes_AS_STRING(PyTuple_GET_ITEM(a->more, 1))[i];
}
static int push_for_made(stack *st, const py_lazy *a) {
    int rc = 0;
    for (int i = a->nargs - 1; rc == 0 && i >= 0; i--) {
        PyObject *arg = py_lazy_args(a)[i];
        if (!py_is_lazy(a->s, arg)) continue;
        rc = taken(a, i) == PY_TAKES_FORM     ? push_form(st, (py_lazy *)arg)
             : taken(a, i) == PY_TAKES_COLUMN ? push_for_column(st, a->s, arg)
                                              : push_value(st, arg, a->s);
    }
    return rc;
}

/* What a's form needs; the first argument's comes last on the stack. */
static int push_for_form(stack *st, py_lazy *a) {
    if (!has_form(a)) {
        bool part = a->head == PY_INDEX && !a->value && !by_value(py_lazy_arg(a, 0));
        if (part) return push_form(st, py_lazy_arg(a, 0));
        return a->value ? 0 : push(st, a, false, false);
    }
    if (a->head == PY_MADE) return push_for_made(st, a); /* the structure, also beside the value */
    if (a->value || a->head == PY_LEAF || a->head == PY_OPERATOR) return 0;
    if (a->head == PY_SCALE || a->head == PY_OVER) {
        if (push_values(st, a, 1) < 0) return -1;
    } else if (a->nargs == 2 && push_operand(st, a, py_lazy_arg(a, 1)) < 0) {
        return -1;
    }
    return push_operand(st, a, py_lazy_arg(a, 0));
}

static int push_for_value(stack *st, py_lazy *a) {
    if (py_lazy_is_deep(a)) return push_for_column(st, a->s, (PyObject *)a);
    if (py_lazy_beyond(a)) return push_values(st, a, 0);
    switch ((py_head)a->head) {
    case PY_LEAF: return a->more ? push_form(st, a) : 0;
    case PY_OPERATOR:
    case PY_GONE: return 0;
    case PY_MATMUL:
        if (is_product(a)) return push_form(st, a);
        for (int i = 1; i >= 0; i--) {
            py_lazy *x = py_lazy_arg(a, i);
            if ((x->nd >= 2 ? push_operand(st, a, x) : push_value(st, (PyObject *)x, a->s)) < 0)
                return -1;
        }
        return 0;
    case PY_ADD:
    case PY_VIEW:
    case PY_MADE:
    case PY_INVERSE: return push_form(st, a);
    case PY_SCALE:
    case PY_OVER: return a->nd >= 2 ? push_form(st, a) : push_values(st, a, 0);
    case PY_OF_FORM: return push_operand(st, a, py_lazy_arg(a, 0));
    case PY_INDEX: {
        py_lazy *x = py_lazy_arg(a, 0);
        return by_value(x) ? push_value(st, (PyObject *)x, a->s) : push_form(st, x);
    }
    case PY_CALL: return push_values(st, a, 0);
    }
    return 0;
}

/* -- what is known: new; NULL without an exception: it is gone again */

static PyObject *array_of(const py_state *s, PyObject *o) {
    if (!py_is_lazy(s, o)) return Py_NewRef(o);
    const py_lazy *a = (py_lazy *)o;
    return Py_XNewRef(!a->value && is_given(a) ? a->a : a->value);
}

/* -- forms: new; NULL without an exception: something is gone, look again */

static PyObject *hook_of(py_lazy *a, const char *name) {
    PyObject *self = (PyObject *)a;
    return py_call_hook(a->s, name, &self, 1);
}

static PyObject *dense_of(py_state *s, PyObject *o) {
    return o ? py_dense(s, (PyArrayObject *)o) : NULL;
}

/* Integers beside what has no dtype of its own, where the result is of floats, as NumPy has it:
 * together they would keep the integers' dtype, and wrap. o, an operator or array, is taken over.
 */
static PyObject *not_wrapping(const py_lazy *a, int i, PyObject *o) {
    const int type = py_lazy_arg(a, i)->dtype->type_num;
    if (!o || !py_lazy_arg(a, 1 - i)->adopts || !(PyTypeNum_ISINTEGER(type) || type == NPY_BOOL) ||
        PyTypeNum_ISINTEGER(a->dtype->type_num) || PyTypeNum_ISBOOL(a->dtype->type_num))
        return o;
    PyObject *r = PyObject_CallMethod(o, "astype", "O", (PyObject *)a->dtype);
    Py_DECREF(o);
    return r;
}

static PyObject *pair_form(const py_lazy *a, binaryfunc f) {
    PyObject *x = not_wrapping(a, 0, py_lazy_term(a, 0)),
             *y = PyErr_Occurred() ? NULL : not_wrapping(a, 1, py_lazy_term(a, 1));
    PyObject *r = x && y ? f(x, y) : NULL;
    Py_XDECREF(x);
    Py_XDECREF(y);
    return r;
}

/* A matrix over a number, which may be made of the matrix's value: then its form is gone again. */
static PyObject *over_form(py_lazy *a) {
    return py_lazy_arg(a, 0)->form ? hook_of(a, "lazy_over") : NULL;
}

/* A multiple; the number of a 0-d LazyArray is its value's only entry. */
static PyObject *scaled_form(const py_lazy *a) {
    PyObject *x = py_lazy_term(a, 0), *c = x ? array_of(a->s, py_lazy_args(a)[1]) : NULL;
    if (c && py_is_lazy(a->s, py_lazy_args(a)[1])) c = PyArray_Return((PyArrayObject *)c);
    PyObject *r = x && c ? PyNumber_Multiply(x, c) : NULL;
    Py_XDECREF(x);
    Py_XDECREF(c);
    return r;
}

static PyObject *one_form(const py_lazy *a) {
    py_op *x = (py_op *)form_of(py_lazy_arg(a, 0));
    PyObject *r = !x                      ? NULL
                  : a->head == PY_INVERSE ? py_inverse(a->s, x, false)
                                          : py_view(a->s, x, a->mode);
    Py_XDECREF((PyObject *)x);
    return r;
}

static PyObject *made_form(const py_lazy *a);

static PyObject *make_form(py_lazy *a) {
    if (a->head == PY_GONE) return PyErr_Format(PyExc_RuntimeError, "a LazyArray that was freed");
    if (!has_form(a) || (a->value && a->head != PY_MADE)) {
        bool part = a->head == PY_INDEX && !a->value;
        return part ? hook_of(a, "lazy_part") : py_lazy_dense(a);
    }
    switch ((py_head)a->head) {
    case PY_LEAF: return dense_of(a->s, a->a);
    case PY_OPERATOR: return Py_NewRef(a->a);
    case PY_MATMUL: return pair_form(a, PyNumber_MatrixMultiply);
    case PY_ADD: return pair_form(a, PyNumber_Add);
    case PY_SCALE: return scaled_form(a);
    case PY_OVER: return over_form(a);
    case PY_MADE: return made_form(a);
    default: return one_form(a);
    }
}

/* With the line that built the node. */
static PyObject *placed(py_lazy *a, PyObject *(*make)(py_lazy *)) {
    py_state *s = a->s;
    Py_XSETREF(s->code, (PyCodeObject *)Py_XNewRef((PyObject *)a->code));
    s->lasti = a->lasti;
    s->placed = true;
    PyObject *form = make(a);
    s->placed = false;
    Py_CLEAR(s->code);
    return form;
}

/* -- columns: likewise */

static PyObject *dense_column(py_state *s, PyObject *vector) {
    PyArrayObject *v = (PyArrayObject *)vector;
    npy_intp dim[2] = {v ? PyArray_DIM(v, 0) : 0, 1}, stride[2] = {v ? PyArray_STRIDE(v, 0) : 0, 0};
    if (!v) return NULL;
    PyObject *column = PyArray_NewFromDescr(
        &PyArray_Type, (PyArray_Descr *)Py_NewRef((PyObject *)PyArray_DESCR(v)), 2, dim, stride,
        PyArray_DATA(v), 0, NULL);
    if (column && PyArray_SetBaseObject((PyArrayObject *)column, Py_NewRef(vector)) < 0)
        Py_CLEAR(column);
    PyObject *form = dense_of(s, column);
    Py_XDECREF(column);
    return form;
}

static PyObject *column_of(py_state *s, PyObject *o);

static PyObject *number_of(const py_state *s, PyObject *o) {
    PyObject *c = array_of(s, o);
    return c && py_is_lazy(s, o) ? PyArray_Return((PyArrayObject *)c) : c;
}

/* Of a linear node. */
static PyObject *make_column(py_lazy *a) {
    py_state *s = a->s;
    PyObject *const *arg = py_lazy_args(a), *x, *y = NULL, *r = NULL;
    const role how = py_lazy_role(a);
    if (how == APPLIED || how == FROM_LEFT) {
        const int m = how == APPLIED ? 0 : 1;
        x = form_of((py_lazy *)arg[m]);
        if (x && m == 1) Py_SETREF(x, py_view(s, (py_op *)x, LOP_T)); /* v A = A^T v */
        y = x ? column_of(s, arg[1 - m]) : NULL;
        r = y ? PyNumber_MatrixMultiply(x, y) : NULL;
    } else if (how == TIMES) {
        const int v = py_lazy_is_number(s, arg[1]) ? 0 : 1;
        x = column_of(s, arg[v]);
        y = x ? number_of(s, arg[1 - v]) : NULL;
        r = y ? PyNumber_Multiply(x, y) : NULL;
    } else {
        x = column_of(s, arg[0]);
        if (x && how == DOT) Py_SETREF(x, py_view(s, (py_op *)x, LOP_T));
        y = x && how != NEGATIVE ? column_of(s, arg[1]) : NULL;
        if (x && how == NEGATIVE)
            r = PyNumber_Negative(x);
        else if (y)
            r = how == DOT    ? PyNumber_MatrixMultiply(x, y)
                : how == PLUS ? PyNumber_Add(x, y)
                              : PyNumber_Subtract(x, y);
    }
    Py_XDECREF(x);
    Py_XDECREF(y);
    return r;
}

/* That of a given vector is kept with it, so that it is one leaf wherever it stands. */
static PyObject *column_of(py_state *s, PyObject *o) {
    if (!py_is_lazy(s, o)) return dense_column(s, o);
    py_lazy *a = (py_lazy *)o;
    if (a->form) return Py_NewRef(a->form);
    const role r = py_lazy_role(a);
    if (r == NOT_LINEAR && !a->value && a->head != PY_LEAF) return NULL;
    if (r != NOT_LINEAR && r != GIVEN) return placed(a, make_column);
    PyObject *vector = array_of(s, o), *form = dense_column(s, vector);
    Py_XDECREF(vector);
    if (form) Py_XSETREF(a->form, Py_NewRef(form));
    return form;
}

static PyObject *column_value(const py_lazy *a) {
    PyObject *form = column_of(a->s, (PyObject *)a);
    PyObject *column = form ? PyObject_CallMethod(form, "toarray", NULL) : NULL;
    PyArray_Dims dims = {(npy_intp *)a->dim, a->nd};
    PyObject *r = column ? PyArray_Newshape((PyArrayObject *)column, &dims, NPY_CORDER) : NULL;
    Py_XDECREF(form);
    Py_XDECREF(column);
    return r;
}

/* -- values: likewise */

static PyObject *vector_product(const py_lazy *a) {
    py_lazy *x = py_lazy_arg(a, 0), *y = py_lazy_arg(a, 1);
    bool left = x->nd >= 2, right = y->nd >= 2;
    PyObject *u = left ? form_of(x) : array_of(a->s, (PyObject *)x);
    PyObject *v = right ? form_of(y) : array_of(a->s, (PyObject *)y), *r = NULL;
    u = not_wrapping(a, 0, u);
    if (!PyErr_Occurred()) v = not_wrapping(a, 1, v);
    if (u && v && right) { /* x A = A^T x */
        PyObject *T = py_view(a->s, (py_op *)v, LOP_T);
        r = T ? PyNumber_MatrixMultiply(T, u) : NULL;
        Py_XDECREF(T);
    } else if (u && v) {
        r = PyNumber_MatrixMultiply(u, v);
    }
    Py_XDECREF(u);
    Py_XDECREF(v);
    return r;
}

static PyObject *call_value(const py_lazy *a) {
    enum { MOST = 4 };
    PyObject *few[MOST] = {NULL}, **args = few, *r = NULL;
    int n = a->nargs, have = 0;
    if (n > MOST && !(args = PyMem_Calloc((size_t)n, sizeof *args))) return PyErr_NoMemory();
    for (; have < n; have++) {
        args[have] = a->head == PY_OF_FORM ? form_of(py_lazy_arg(a, have))
                                           : array_of(a->s, py_lazy_args(a)[have]);
        if (!args[have]) break;
    }
    if (have == n)
        r = PyObject_VectorcallDict(PyTuple_GET_ITEM(a->more, 0), args, (size_t)n,
                                    PyTuple_GET_ITEM(a->more, 1));
    for (int i = 0; i < have; i++) Py_DECREF(args[i]);
    if (args != few) PyMem_Free(args);
    return r;
}

static PyObject *taken_of(const py_lazy *a, int i) {
    PyObject *arg = py_lazy_args(a)[i];
    if (taken(a, i) == PY_TAKES_COLUMN) return column_of(a->s, arg);
    const bool form = taken(a, i) == PY_TAKES_FORM && py_is_lazy(a->s, arg);
    return form ? form_of((py_lazy *)arg) : array_of(a->s, arg);
}
static PyObject *made_form(const py_lazy *a) {
    PyObject *args = PyTuple_New(a->nargs), *r = NULL;
    for (int i = 0; args && i < a->nargs; i++) {
        PyObject *arg = taken_of(a, i);
        if (!arg) {
            Py_DECREF(args);
            return NULL;
        }
        PyTuple_SET_ITEM(args, i, arg);
    }
    if (args) r = PyObject_CallObject(PyTuple_GET_ITEM(a->more, 0), args);
    Py_XDECREF(args);
    return r;
}

static PyObject *scaled_value(const py_lazy *a) {
    PyObject *x = array_of(a->s, py_lazy_args(a)[0]), *c = array_of(a->s, py_lazy_args(a)[1]);
    PyObject *r = !x || !c              ? NULL
                  : a->head == PY_SCALE ? PyNumber_Multiply(x, c)
                                        : PyNumber_TrueDivide(x, c);
    Py_XDECREF(x);
    Py_XDECREF(c);
    return r;
}

static PyObject *dense_value(const py_lazy *a) {
    PyObject *form = a->head == PY_OPERATOR ? Py_NewRef(a->a) : form_of(a);
    PyObject *r = form ? PyObject_CallMethod(form, "toarray", NULL) : NULL;
    Py_XDECREF(form);
    return r;
}

/* An index, into the argument's value where it is at hand. */
static PyObject *index_value(py_lazy *a) {
    const py_lazy *x = py_lazy_arg(a, 0);
    PyObject *array = x->value ? x->value : is_given(x) ? x->a : NULL;
    PyObject *key = a->more ? a->more : Py_None;
    if (array) return PyObject_GetItem(array, key);
    PyObject *r = x->form ? py_entry((py_op *)x->form, key) : Py_NewRef(Py_NotImplemented);
    if (r == Py_NotImplemented) Py_SETREF(r, hook_of(a, "lazy_indexed"));
    return r;
}

static PyObject *make_value(py_lazy *a) {
    if (py_lazy_is_deep(a)) return column_value(a);
    if (py_lazy_beyond(a)) return hook_of(a, "lazy_beyond");
    switch ((py_head)a->head) {
    case PY_GONE: return PyErr_Format(PyExc_RuntimeError, "a LazyArray that was freed");
    case PY_LEAF:
        return a->more ? dense_value(a) : PyArray_NewCopy((PyArrayObject *)a->a, NPY_CORDER);
    case PY_MATMUL: return is_product(a) ? dense_value(a) : vector_product(a);
    case PY_INDEX: return index_value(a);
    case PY_OF_FORM:
    case PY_CALL: return call_value(a);
    case PY_SCALE:
    case PY_OVER: return a->nd < 2 ? scaled_value(a) : dense_value(a);
    default: return dense_value(a);
    }
}

/* The value (taken over) as what is handed out: an array of the node's dtype, nobody else's
 * memory, read-only. */
static int keep(py_lazy *a, PyObject *value) {
    PyArrayObject *v = (PyArrayObject *)value;
    if (!PyArray_CheckExact(value)) {
        v = (PyArrayObject *)PyArray_FromAny(value, NULL, 0, 0, NPY_ARRAY_ENSUREARRAY, NULL);
        Py_DECREF(value);
    }
    bool theirs = v && !py_lazy_may_keep(a, v);
    for (int i = 0; v && !theirs && i < a->nargs; i++) {
        PyObject *arg = py_lazy_args(a)[i];
        const py_lazy *x = py_is_lazy(a->s, arg) ? (py_lazy *)arg : NULL;
        theirs = (PyObject *)v == (!x ? arg : x->value ? x->value : x->a);
    }
    if (theirs) Py_SETREF(v, (PyArrayObject *)PyArray_NewCopy(v, NPY_CORDER));
    if (v && PyArray_DESCR(v) != a->dtype && !PyArray_EquivTypes(PyArray_DESCR(v), a->dtype)) {
        PyArray_Descr *d = (PyArray_Descr *)Py_NewRef((PyObject *)a->dtype);
        Py_SETREF(v, (PyArrayObject *)PyArray_CastToType(v, d, 0));
    }
    if (!v) return -1;
    PyArray_CLEARFLAGS(v, NPY_ARRAY_WRITEABLE);
    if (a->value) /* another thread was first: there is one value */
        Py_DECREF((PyObject *)v);
    else
        a->value = (PyObject *)v;
    return 0;
}

/* 1: kept; 0: something is gone, look again; -1 exception. */
static int give_form(stack *st, py_lazy *a) {
    PyObject *form = placed(a, make_form);
    if (!form) return PyErr_Occurred() ? -1 : 0;
    if (!py_is_op(a->s, form)) {
        PyErr_Format(PyExc_TypeError, "the form of a LazyArray came out as a %.100s",
                     Py_TYPE(form)->tp_name);
        Py_DECREF(form);
        return -1;
    }
    Py_XSETREF(a->form, form);
    return py_lazy_note(st->looked, a) < 0 ? -1 : 1;
}

static int make_and_keep(py_lazy *a) {
    PyObject *value = make_value(a);
    if (!value && PyErr_Occurred()) value = py_lazy_instead(a);
    if (!value) return PyErr_Occurred() ? -1 : 0;
    if (keep(a, value) < 0) return -1;
    return a->s->tape && py_tape_value(a) < 0 ? -1 : 1;
}

static int give_value(py_lazy *a) {
    py_config_here(a->s);
    if (!a->s->verify || a->head == PY_LEAF || a->head == PY_CALL || a->head == PY_OPERATOR)
        return make_and_keep(a);
    if (py_verify_lazy(a->s, Py_None) < 0) return -1;
    const int rc = make_and_keep(a);
    if (rc <= 0) {
        py_verify_drop(a->s);
    } else if (py_verify_lazy(a->s, (PyObject *)a) < 0) {
        Py_CLEAR(a->value);
        return -1;
    }
    return rc;
}

int py_lazy_value(py_lazy *a) {
    int rc = give_value(a);
    if (rc == 0) PyErr_SetString(PyExc_RuntimeError, "an argument of a LazyArray is not known");
    return rc > 0 ? 0 : -1;
}

/* -- the walk */

static int give_by(py_lazy *a, PyObject *give) {
    PyObject *r = PyObject_CallOneArg(give, (PyObject *)a);
    Py_XDECREF(r);
    if (r && !a->value) PyErr_SetString(PyExc_RuntimeError, "no value was set");
    return r && a->value ? 1 : -1;
}

/* The guard stays while it looks: other threads that ask meanwhile look as well. */
int py_lazy_guarded(py_lazy *self) {
    PyObject *guard = Py_XNewRef(self->guard);
    if (!guard) return 0;
    PyObject *r = PyObject_CallNoArgs(guard);
    if (r && self->guard == guard) Py_CLEAR(self->guard);
    Py_DECREF(guard);
    Py_XDECREF(r);
    return r ? 0 : -1;
}

static int step(stack *st, PyObject *give) {
    want w = st->at[--st->n];
    py_lazy *a = w.a;
    if (w.form ? a->form != NULL : a->value != NULL) return 0;
    if (a->guard && py_lazy_guarded(a) < 0) return -1;
    if (!w.ready && !w.form && !give && a->head == PY_INDEX) {
        PyObject *entry = py_direct_lazy(a);
        if (entry) return keep(a, entry);
        if (PyErr_Occurred()) return -1;
    }
    if (!w.ready) {
        if (push(st, a, w.form, true) < 0) return -1;
        return w.form ? push_for_form(st, a) : push_for_value(st, a);
    }
    py_lazy *twin = w.form || give ? NULL : twin_of(st, a);
    if (twin) return keep(a, Py_NewRef(twin->value));
    int rc = w.form ? give_form(st, a) : py_lazy_room(a, &st->bytes);
    if (!w.form && rc == 0) rc = give ? give_by(a, give) : give_value(a);
    if (rc == 0) return push(st, a, w.form, false);
    if (rc < 0) {
        py_lazy_failed(a);
    } else if (!w.form && a->head != PY_LEAF && a->head != PY_OPERATOR && a->head != PY_MADE) {
        Py_CLEAR(a->form); /* a later use takes the value */
    }
    return rc < 0 ? -1 : 0;
}

static int run(py_lazy *root, PyObject *give) {
    stack st;
    PyObject *looked = NULL;
    open_stack(&st, &looked);
    Py_INCREF((PyObject *)root);
    int rc = push(&st, root, false, false);
    while (rc == 0 && st.n > 0) rc = step(&st, give);
    close_stack(&st);
    if (!give) py_lazy_forget(&looked); /* who gives values reads the forms that are left */
    Py_XDECREF(looked);
    Py_DECREF((PyObject *)root);
    return rc;
}

PyObject *py_lazy_operator(py_lazy *self) {
    enum { TRIES = 8 };
    const bool matrix = has_form(self), linear = matrix || py_lazy_role(self) > GIVEN;
    PyObject *form = NULL;
    if (!linear || self->value) Py_RETURN_NONE;
    for (int i = 0; i < TRIES && !form && !PyErr_Occurred(); i++) {
        stack st;
        open_stack(&st, &self->s->looked); /* who asks goes on with them */
        int rc = matrix ? push_form(&st, self) : push_for_column(&st, self->s, (PyObject *)self);
        while (rc == 0 && st.n > 0) rc = step(&st, NULL);
        close_stack(&st);
        if (rc == 0) form = matrix ? form_of(self) : column_of(self->s, (PyObject *)self);
    }
    if (!form && !PyErr_Occurred())
        PyErr_SetString(PyExc_RuntimeError, "an argument of a LazyArray is not known");
    return form;
}

PyObject *py_lazy_computed(py_lazy *self) {
    const int rc = self->value ? 0 : run(self, NULL);
    if (self->s->looked) py_lazy_forget(&self->s->looked);
    if (rc < 0) return NULL;
    if (!self->value) PyErr_SetString(PyExc_RuntimeError, "a LazyArray that was freed");
    return self->value;
}

int py_lazy_run(py_state *s, PyObject *roots, PyObject *give) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(roots); i++) {
        PyObject *root = PyList_GET_ITEM(roots, i);
        if (!py_is_lazy(s, root)) {
            PyErr_SetString(PyExc_TypeError, "a list of LazyArrays is due");
            return -1;
        }
        if (run((py_lazy *)root, give) < 0) return -1;
    }
    if (!give) py_lazy_forget(&s->looked);
    return 0;
}
