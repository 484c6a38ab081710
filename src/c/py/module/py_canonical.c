/* py_canonical.c: the canonical expression of an action as plain data, its nodes in the order in
 * which they are computed: what executors on the arrays of other libraries walk
 * (src/pylinop/_namespace). No plan is made; nothing is computed. */
#include "py.h"

#include "expr/coefficients.h"
#include "expr/node_map.h"
#include "rewrite/assumptions.h"
#include "rewrite/rewrite.h"

/* Nodes that wait for their children. */
typedef struct todo {
    const lop_node **at;
    int n, room;
} todo;

static bool push(lop_ctx *ctx, todo *t, const lop_node *node) {
    if (t->n == t->room) {
        const int room = t->room ? 2 * t->room : 64;
        const lop_node **more = lop_calloc(ctx, (size_t)room, sizeof *more);
        if (!more) return false;
        for (int i = 0; i < t->n; i++) more[i] = t->at[i];
        lop_free(ctx, (void *)t->at);
        t->at = more;
        t->room = room;
    }
    t->at[t->n++] = node;
    return true;
}

static PyObject *children_of(const lop_map *map, const lop_node *node) {
    PyObject *all = PyTuple_New(node->n);
    for (int i = 0, at = -1; all && i < node->n; i++) {
        PyObject *one = lop_map_get(map, node->child[i], &at) ? PyLong_FromLong(at) : NULL;
        if (one)
            PyTuple_SET_ITEM(all, i, one);
        else
            Py_CLEAR(all);
    }
    return all;
}

static PyObject *shape_of(const lop_node *node) {
    PyObject *all = PyTuple_New(node->shape.ndim);
    for (int d = 0; all && d < node->shape.ndim; d++) {
        PyObject *size = PyLong_FromLongLong(node->shape.dim[d]);
        if (size)
            PyTuple_SET_ITEM(all, d, size);
        else
            Py_CLEAR(all);
    }
    return all;
}

/* (head, children, integers, number, dtype, shape, trailing dimensions that are no batch, serial,
 * the coefficient's entry). */
static PyObject *row_of(const lop_map *map, const lop_node *node) {
    const int64_t *n = node->attr.i;
    Py_complex number = {node->attr.re, node->attr.im};
    return Py_BuildValue("(sN(LLLL)DsNiKi)", node->op->name, children_of(map, node),
                         (long long)n[0], (long long)n[1], (long long)n[2], (long long)n[3],
                         &number, lop_dtype_name(node->dtype), shape_of(node), (int)node->core,
                         (unsigned long long)node->serial, node->attr.num);
}

/* Pushes the children without a number; false: none is left, or there was no memory (*st). */
static bool opened(lop_ctx *ctx, const lop_map *map, todo *t, const lop_node *node,
                   lop_status *st) {
    bool more = false;
    int at;
    for (int i = node->n - 1; i >= 0; i--) {
        if (lop_map_get(map, node->child[i], &at)) continue;
        if (!push(ctx, t, node->child[i])) {
            *st = LOP_NOMEM;
            return false;
        }
        more = true;
    }
    return more;
}

/* New; NULL with an exception, or with LOP_NOMEM in *st. */
static PyObject *rows_of(lop_ctx *ctx, const lop_node *root, lop_status *st) {
    PyObject *rows = PyList_New(0);
    lop_map map = {0};
    todo t = {0};
    int at;
    *st = lop_map_init(&map, ctx);
    if (*st == LOP_OK && !push(ctx, &t, root)) *st = LOP_NOMEM;
    while (rows && *st == LOP_OK && t.n > 0) {
        const lop_node *node = t.at[t.n - 1];
        const bool known = lop_map_get(&map, node, &at);
        if (!known && (opened(ctx, &map, &t, node, st) || *st != LOP_OK)) continue;
        t.n--;
        if (known) continue;
        PyObject *row = row_of(&map, node);
        if (row && PyList_Append(rows, row) == 0)
            *st = lop_map_set(&map, node, (int)PyList_GET_SIZE(rows) - 1);
        else
            Py_CLEAR(rows);
        Py_XDECREF(row);
    }
    lop_free(ctx, (void *)t.at);
    lop_map_clear(&map, ctx);
    if (*st != LOP_OK) Py_CLEAR(rows);
    return rows;
}

/* The entries of coefficients: (how, a, b, value); None where the form is for these values alone.
 */
static PyObject *entries_of(const lop_coefs *c) {
    for (int i = 0; i < c->conditions; i++)
        if (c->condition[i].what == LOP_COEF_FIXED) Py_RETURN_NONE;
    if (c->full) Py_RETURN_NONE;
    PyObject *all = PyList_New(0);
    for (int i = 0; all && i < c->entries; i++) {
        const lop_entry *e = &c->entry[i];
        const char how[2] = {e->how ? e->how : ' ', 0};
        PyObject *one = Py_BuildValue("(siid)", how, (int)e->a, (int)e->b, e->value.re);
        if (!one || PyList_Append(all, one) < 0) Py_CLEAR(all);
        Py_XDECREF(one);
    }
    return all;
}

/* The numbers of a tuple, at most LOP_SOURCES: owned, to be freed; NULL with an exception. */
static lop_number *sources_of(PyObject *numbers) {
    const Py_ssize_t n = PyTuple_GET_SIZE(numbers);
    if (n > LOP_SOURCES) {
        PyErr_Format(PyExc_NotImplementedError,
                     "a formula of %zd coefficients that are arrays: at most %d are taken apart", n,
                     (int)LOP_SOURCES);
        return NULL;
    }
    lop_number *source = PyMem_Malloc((size_t)(n + 1) * sizeof *source);
    if (!source) return PyErr_NoMemory(), NULL;
    for (Py_ssize_t i = 0; i < n; i++) {
        source[i] = (lop_number){PyFloat_AsDouble(PyTuple_GET_ITEM(numbers, i)), 0};
        if (source[i].re == -1.0 && PyErr_Occurred()) {
            PyMem_Free(source);
            return NULL;
        }
    }
    return source;
}

/* The canonical form of `root` with the coefficients of `n` values named in *coefs. Rows: new. */
static lop_status rewritten(py_state *s, const lop_node *root, const lop_number *source, int n,
                            lop_coefs *coefs, PyObject **rows, lop_err *err) {
    const lop_node *named = NULL, *kinds = NULL, *out = NULL;
    lop_tab tab;
    lop_trace trace = {0};
    lop_tab_init(&tab, &s->ctx);
    s->ctx.coefs = coefs;
    lop_status st = lop_coefs_name(&s->ctx, source, NULL, n, root, &named, err);
    if (st == LOP_OK) st = lop_declared_kinds(s->rules, named, &kinds, err);
    if (st == LOP_OK) st = lop_rewrite(s->rules, &tab, kinds, &out, &trace, err);
    s->ctx.coefs = NULL;
    if (st == LOP_OK) *rows = rows_of(&s->ctx, out, &st);
    lop_node_unref(out);
    lop_node_unref(kinds);
    lop_node_unref(named);
    lop_tab_clear(&tab);
    return st;
}

PyObject *py_canonical(py_state *s, py_op *self, PyArrayObject *x, int act, int64_t i, int64_t j,
                       PyObject *numbers) {
    lop_err err;
    lop_err_open(&err);
    const lop_node *root = NULL;
    uint64_t rhs = 0;
    PyObject *rows = NULL, *arrays = NULL, *entries = NULL;
    lop_number *source = sources_of(numbers);
    if (!source || py_asked(s, self, x, act, i, j, &rhs, &root) < 0) {
        PyMem_Free(source);
        return NULL;
    }
    const int n = (int)PyTuple_GET_SIZE(numbers);
    lop_coefs *coefs = lop_coefs_new(&s->ctx);
    lop_status st = coefs ? rewritten(s, root, source, n, coefs, &rows, &err) : LOP_NOMEM;
    if (st == LOP_OK && rows) entries = entries_of(coefs);
    if (entries) arrays = PyDict_New();
    if (arrays && py_collect(self, arrays) < 0) Py_CLEAR(arrays);
    lop_coefs_free(coefs);
    PyMem_Free(source);
    lop_node_unref(root);
    if (arrays) return Py_BuildValue("(NNKN)", rows, arrays, (unsigned long long)rhs, entries);
    Py_XDECREF(rows);
    Py_XDECREF(entries);
    return st == LOP_OK ? NULL : py_raise(s, st, &err, (PyObject *)self, "the canonical form");
}
