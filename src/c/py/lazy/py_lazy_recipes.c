/* py_lazy_recipes.c: kinds of LazyArrays that were built before, built again of others like them.
 *
 * What a kind of LazyArrays is from outside, and which of them it holds where, follows from the
 * class, the shapes and dtypes of these, and the constants beside them: Python's side
 * (_lazy/kinds.py) finds it once for each, and what it found is kept here, without the arrays.
 * Cost: a key of some bytes, a look-up and the node, 0.3 us (Python's side takes 5 to 40).
 *
 * A kind of a kind is known where the inner one is itself of a recipe: that one's `more` then
 * stands for all that decided it. Anything else among the arguments (arrays, operators, classes of
 * others) has no key. */
#include "py_lazy.h"

enum {
    ROOM = 480,   /* bytes of a key: more arguments than fit are Python's */
    GIVEN = 24,   /* LazyArrays and operands beside them among the arguments of one */
    DEEP = 3,     /* lists in lists */
    RECIPES = 512 /* what is kept; all go when they are more */
};

typedef struct reading {
    const py_state *s;
    Py_ssize_t used;
    int n;
    bool lazy;              /* is a LazyArray among them? */
    PyObject *given[GIVEN]; /* borrowed, in the order in which they are met */
    char key[ROOM];
} reading;

static bool put(reading *r, const void *bytes, size_t n) {
    if ((size_t)r->used + n > ROOM) return false;
    memcpy(r->key + r->used, bytes, n);
    r->used += (Py_ssize_t)n;
    return true;
}

static bool put_word(reading *r, char tag, const void *bytes, size_t n) {
    return put(r, &tag, 1) && put(r, &n, sizeof n) && put(r, bytes, n);
}

/* Is `more` that of a recipe? That object itself, which the recipes hold: an equal one may go, and
 * another come to lie where it was. */
static bool is_of_recipe(const py_state *s, PyObject *more) {
    if (!more || !PyTuple_CheckExact(more)) return false;
    PyObject *held = PyDict_GetItemWithError(s->recipes, more);
    if (!held) PyErr_Clear(); /* a function that has no hash */
    return held == more;
}

/* One of those that the node is made of, if it is not met again: then true. */
static bool put_given(reading *r, PyObject *o, bool *again) {
    *again = false;
    for (int i = 0; i < r->n; i++)
        if (r->given[i] == o) return *again = true, put_word(r, '=', &i, sizeof i);
    if (r->n == GIVEN) return false;
    r->given[r->n++] = o;
    return true;
}

static bool put_lazy(reading *r, py_lazy *a) {
    const int type = a->dtype->type_num;
    const bool native = PyArray_ISNBO(a->dtype->byteorder) && PyTypeNum_ISNUMBER(type);
    bool again;
    r->lazy = true;
    if (a->head == PY_GONE || !native || a->nd > LOP_MAXDIM) return false;
    if (!put_given(r, (PyObject *)a, &again) || again) return again;
    if (!put_word(r, 'A', a->dim, (size_t)a->nd * sizeof *a->dim)) return false;
    if (!put(r, &type, sizeof type)) return false;
    if (a->head == PY_OPERATOR) { /* whose dtype may be nobody's */
        const lop_node *node = ((py_op *)a->a)->node;
        return node && !node->opaque && put_word(r, 'w', &node->weak, sizeof node->weak);
    }
    if (a->head != PY_MADE) return true;
    return is_of_recipe(r->s, a->more) && put_word(r, 'm', &a->more, sizeof a->more);
}

/* A matrix beside LazyArrays, which stands in the node as one: an operator, a plain array. */
static bool put_matrix(reading *r, PyObject *o) {
    const bool is_array = PyArray_CheckExact(o);
    PyArrayObject *a = (PyArrayObject *)o;
    bool again;
    if (!put_given(r, o, &again) || again) return again;
    if (is_array)
        return PyArray_NDIM(a) >= 2 && PyArray_NDIM(a) <= LOP_MAXDIM &&
               py_is_plain(PyArray_DESCR(a)) &&
               put_word(r, 'a', PyArray_DIMS(a), (size_t)PyArray_NDIM(a) * sizeof(npy_intp)) &&
               put(r, &PyArray_DESCR(a)->type_num, sizeof(int));
    const lop_node *node = ((py_op *)o)->node;
    return node && !node->opaque &&
           put_word(r, 'o', node->shape.dim, (size_t)node->shape.ndim * sizeof *node->shape.dim) &&
           put_word(r, 'd', &node->dtype, sizeof node->dtype) &&
           put_word(r, 'w', &node->weak, sizeof node->weak);
}

static bool put_text(reading *r, char tag, PyObject *o) {
    Py_ssize_t n;
    const char *text = PyUnicode_AsUTF8AndSize(o, &n);
    if (!text) PyErr_Clear();
    return text && put_word(r, tag, text, (size_t)n);
}

static bool put_one(reading *r, PyObject *o, int depth) {
    if (Py_TYPE(o) == r->s->lazy) return put_lazy(r, (py_lazy *)o);
    if (PyArray_CheckExact(o) || py_is_op(r->s, o)) return put_matrix(r, o);
    if (o == Py_None || o == Py_True || o == Py_False)
        return put(r, o == Py_None ? "N" : o == Py_True ? "T" : "F", 1);
    if (PyLong_CheckExact(o)) {
        int beyond;
        const long long i = PyLong_AsLongLongAndOverflow(o, &beyond);
        return !beyond && put_word(r, 'i', &i, sizeof i);
    }
    if (PyFloat_CheckExact(o)) {
        const double x = PyFloat_AS_DOUBLE(o);
        return put_word(r, 'f', &x, sizeof x);
    }
    if (PyUnicode_CheckExact(o)) return put_text(r, 's', o);
    const bool list = PyList_CheckExact(o);
    if (depth == 0 || !(list || PyTuple_CheckExact(o))) return false;
    const Py_ssize_t n = list ? PyList_GET_SIZE(o) : PyTuple_GET_SIZE(o);
    bool ok = put_word(r, list ? '[' : '(', &n, sizeof n);
    for (Py_ssize_t i = 0; ok && i < n; i++)
        ok = put_one(r, list ? PyList_GET_ITEM(o, i) : PyTuple_GET_ITEM(o, i), depth - 1);
    return ok;
}

/* The class and the arguments, without what the LazyArrays among them hold: false: it has no key.
 */
static bool read_all(reading *r, PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    const lop_op *op = py_op_of_type((py_state *)r->s, type);
    PyObject *name, *value;
    if (!op || r->s->type[lop_op_id(op)] != type || !PyDict_Check(r->s->recipes)) return false;
    bool ok = put_word(r, 'c', &op, sizeof op) && put_one(r, args, DEEP);
    for (Py_ssize_t at = 0; ok && kwargs && PyDict_Next(kwargs, &at, &name, &value);)
        ok = PyUnicode_CheckExact(name) && put_text(r, 'k', name) && put_one(r, value, DEEP - 1);
    return ok && r->lazy;
}

/* -- a recipe: (places of its arguments among the LazyArrays met, sizes, dtype, more) */

static PyObject *again(py_state *s, const reading *r, PyObject *recipe) {
    PyObject *places = PyTuple_GET_ITEM(recipe, 0), *sizes = PyTuple_GET_ITEM(recipe, 1);
    const int n = (int)PyBytes_GET_SIZE(places);
    const char *at = PyBytes_AS_STRING(places);
    npy_intp dim[LOP_MAXDIM];
    PyObject *args = PyTuple_New(n);
    for (int i = 0; args && i < n; i++) {
        PyObject *x = py_lazy_node(s, r->given[(int)at[i]]);
        if (!x)
            Py_CLEAR(args);
        else
            PyTuple_SET_ITEM(args, i, x);
    }
    if (!args) return NULL;
    memcpy(dim, PyBytes_AS_STRING(sizes), (size_t)PyBytes_GET_SIZE(sizes));
    py_lazy *a = py_lazy_new(s, PY_MADE, n > 2 ? args : PyTuple_GET_ITEM(args, 0),
                             n == 2 ? PyTuple_GET_ITEM(args, 1) : NULL,
                             (int)(PyBytes_GET_SIZE(sizes) / (Py_ssize_t)sizeof *dim), dim,
                             (PyArray_Descr *)PyTuple_GET_ITEM(recipe, 2));
    Py_DECREF(args);
    if (!a) return NULL;
    a->nargs = n;
    a->more = Py_NewRef(PyTuple_GET_ITEM(recipe, 3));
    return (PyObject *)a;
}

/* Is x, an argument of the node, what was given, or that as a LazyArray? */
static bool is_given(PyObject *given, const py_lazy *x) {
    const bool wraps = x->head == PY_LEAF || x->head == PY_OPERATOR;
    return given == (PyObject *)x || (wraps && x->a == given && !x->more);
}

/* The recipe of what Python made of the LazyArrays in r. New; NULL: it has none, or an exception.
 */
static PyObject *recipe_of(const reading *r, const py_lazy *a) {
    char places[GIVEN];
    bool met[GIVEN] = {false};
    if (a->head != PY_MADE || a->nargs > GIVEN || a->nd > LOP_MAXDIM) return NULL;
    for (int i = 0; i < a->nargs; i++) {
        int at = 0;
        if (!py_is_lazy(a->s, py_lazy_args(a)[i])) return NULL;
        while (at < r->n && !is_given(r->given[at], py_lazy_arg(a, i))) at++;
        if (at == r->n) return NULL; /* made on the way: a column, a stack */
        met[at] = true;
        places[i] = (char)at;
    }
    for (int i = 0; i < r->n; i++)
        if (!met[i]) return NULL; /* its value stands in the kind */
    return Py_BuildValue("y#y#OO", places, (Py_ssize_t)a->nargs, (const char *)a->dim,
                         (Py_ssize_t)((size_t)a->nd * sizeof *a->dim), (PyObject *)a->dtype,
                         a->more);
}

/* Keeps the recipe, and its `more` beside it, by which kinds of this kind are known. */
static int remember(const py_state *s, PyObject *key, PyObject *recipe) {
    if (PyDict_GET_SIZE(s->recipes) >= 2 * RECIPES) PyDict_Clear(s->recipes);
    PyObject *more = PyTuple_GET_ITEM(recipe, 3);
    if (PyDict_SetItem(s->recipes, more, more) < 0) return -1;
    return PyDict_SetItem(s->recipes, key, recipe);
}

/* A BlockDiag of one LazyArray of three dimensions: how that is made says whether its matrices are
 * the blocks, or it is a batch of one. */
static bool is_of_stack(const py_state *s, PyTypeObject *type, PyObject *args) {
    PyObject *one = PyTuple_GET_SIZE(args) == 1 ? PyTuple_GET_ITEM(args, 0) : NULL;
    return one && Py_TYPE(one) == s->lazy && ((py_lazy *)one)->nd == 3 &&
           PyType_IsSubtype(type, s->type[LOP_ID_blockdiag]);
}

PyObject *py_lazy_kind(py_state *s, PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    reading r;
    r.s = s;
    r.used = 0;
    r.n = 0;
    r.lazy = false;
    PyObject *key = NULL, *made = NULL, *recipe;
    if (!s->recipes && !(s->recipes = PyDict_New())) return NULL;
    const bool known = !is_of_stack(s, type, args) && read_all(&r, type, args, kwargs);
    if (known && !(key = PyBytes_FromStringAndSize(r.key, r.used))) return NULL;
    if (key && (recipe = PyDict_GetItemWithError(s->recipes, key))) {
        Py_INCREF(recipe); /* what is collected meanwhile may build others */
        made = again(s, &r, recipe);
        Py_DECREF(recipe);
        Py_DECREF(key);
        return made;
    }
    PyObject *keys = PyErr_Occurred() ? NULL : kwargs ? Py_NewRef(kwargs) : PyDict_New();
    PyObject *all[3] = {(PyObject *)type, args, keys};
    if (keys) made = py_call_hook(s, "lazy_kind", all, 3);
    Py_XDECREF(keys);
    if (key && made && py_is_lazy(s, made)) {
        recipe = recipe_of(&r, (py_lazy *)made);
        if (PyErr_Occurred() || (recipe && remember(s, key, recipe) < 0)) Py_CLEAR(made);
        Py_XDECREF(recipe);
    }
    Py_XDECREF(key);
    return made;
}
