/* py_canonical.c: the canonical expression of an action as plain data, its nodes in the order in
 * which they are computed: what executors on the arrays of other libraries walk
 * (src/pylinop/_namespace). No plan is made; nothing is computed. */
#include "py.h"

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

/* (head, children, integers, number, dtype, shape, trailing dimensions that are no batch, serial). */
static PyObject *row_of(const lop_map *map, const lop_node *node) {
    const int64_t *n = node->attr.i;
    Py_complex number = {node->attr.re, node->attr.im};
    return Py_BuildValue("(sN(LLLL)DsNiK)", node->op->name, children_of(map, node),
                         (long long)n[0], (long long)n[1], (long long)n[2], (long long)n[3],
                         &number, lop_dtype_name(node->dtype), shape_of(node), (int)node->core,
                         (unsigned long long)node->serial);
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

PyObject *py_canonical(py_state *s, py_op *self, PyArrayObject *x, int act, int64_t i, int64_t j) {
    lop_err err;
    lop_err_open(&err);
    const lop_node *root = NULL, *kinds = NULL, *out = NULL;
    uint64_t rhs = 0;
    lop_tab tab;
    lop_trace trace = {0};
    PyObject *rows = NULL, *arrays = NULL;
    if (py_asked(s, self, x, act, i, j, &rhs, &root) < 0) return NULL;
    lop_tab_init(&tab, &s->ctx);
    lop_status st = lop_declared_kinds(s->rules, root, &kinds, &err);
    if (st == LOP_OK) st = lop_rewrite(s->rules, &tab, kinds, &out, &trace, &err);
    if (st == LOP_OK) rows = rows_of(&s->ctx, out, &st);
    if (st == LOP_OK && rows) arrays = PyDict_New();
    if (arrays && py_collect(self, arrays) < 0) Py_CLEAR(arrays);
    lop_node_unref(out);
    lop_node_unref(kinds);
    lop_node_unref(root);
    lop_tab_clear(&tab);
    if (st != LOP_OK) return py_raise(s, st, &err, (PyObject *)self, "the canonical form");
    if (!arrays) {
        Py_XDECREF(rows);
        return NULL;
    }
    return Py_BuildValue("(NNK)", rows, arrays, (unsigned long long)rhs);
}
