/* py_kind_types.c: one heap type a kind, made from its table: signature, docstring, parameters. */
#include "py/module/py.h"

_Static_assert((int)LOP_NKINDS <= (int)PY_MAXKINDS, "a type for each kind");

#include <stdarg.h>

/* Does a kind hold arrays, its own or its operands'? Those take copy=. */
bool py_holds_arrays(const lop_op *op) {
    for (int i = 0; i < LOP_MAXPARAM && op->param[i].name; i++)
        if (op->param[i].role <= LOP_P_INDEX || op->param[i].role == LOP_P_FOREIGN) return true;
    return false;
}

/* Constructors do all their work in tp_new. */
static int kind_init(PyObject *self, PyObject *args, PyObject *kwargs) {
    (void)self;
    (void)args;
    (void)kwargs;
    return 0;
}

/* A grid as nested lists. */
static PyObject *rows_of(const py_op *op) {
    Py_ssize_t r = op->mode, c = PyTuple_GET_SIZE(op->init) / r;
    PyObject *rows = PyList_New(0);
    for (Py_ssize_t i = 0; rows && i < r; i++) {
        PyObject *part = PyTuple_GetSlice(op->init, i * c, (i + 1) * c);
        PyObject *row = part ? PySequence_List(part) : NULL;
        if (!row || PyList_Append(rows, row) < 0) Py_CLEAR(rows);
        Py_XDECREF(part);
        Py_XDECREF(row);
    }
    return rows;
}

/* The kind that `op` was made as, by its constructor; NULL with AttributeError for what is the
 * result of an expression, which has operands and no parameters. */
static const lop_op *made_as(py_op *op) {
    const lop_op *kind = NULL;
    if (op->node && op->init) {
        kind = op->node->op;
        if (!kind->title || op->s->type[lop_op_id(kind)] != Py_TYPE(op))
            kind = py_op_of_type(op->s, Py_TYPE(op));
    }
    if (!kind)
        PyErr_Format(PyExc_AttributeError,
                     "this %.100s is the result of an expression; its operands are in .args",
                     Py_TYPE(op)->tp_name);
    return kind;
}

static PyObject *param_at(const py_op *op, const lop_op *kind, Py_ssize_t i) {
    if (kind->param[0].role == LOP_P_OPERATORS) return Py_NewRef(op->init);
    if (kind->param[0].role == LOP_P_BLOCKS) return rows_of(op);
    return Py_NewRef(PyTuple_GET_ITEM(op->init, i));
}

static PyObject *get_param(PyObject *self, void *index) {
    const lop_op *kind = made_as((py_op *)self);
    return kind ? param_at((py_op *)self, kind, (Py_ssize_t)(intptr_t)index) : NULL;
}

static PyObject *param_named(py_op *op, const lop_op *kind, PyObject *name) {
    for (int i = 0; PyUnicode_Check(name) && i < LOP_MAXPARAM && kind->param[i].name; i++)
        if (PyUnicode_CompareWithASCIIString(name, kind->param[i].name) == 0)
            return param_at(op, kind, i);
    return PyErr_Format(PyExc_AttributeError, "%s has no parameter %R", kind->title, name);
}

PyObject *py_given(PyObject *self, PyObject *const *names, Py_ssize_t n) {
    const lop_op *kind = made_as((py_op *)self);
    if (!kind || n == 1) return kind ? param_named((py_op *)self, kind, names[0]) : NULL;
    PyObject *all = PyTuple_New(n);
    for (Py_ssize_t i = 0; all && i < n; i++) {
        PyObject *one = param_named((py_op *)self, kind, names[i]);
        if (one)
            PyTuple_SET_ITEM(all, i, one);
        else
            Py_CLEAR(all);
    }
    return all;
}

typedef struct text {
    char at[8192];
    size_t n;
} text;
static void say(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(text *t, const char *format, ...) {
    va_list v;
    va_start(v, format);
    int n = vsnprintf(t->at + t->n, sizeof t->at - t->n, format, v);
    va_end(v);
    if (n > 0) t->n = t->n + (size_t)n < sizeof t->at ? t->n + (size_t)n : sizeof t->at - 1;
}

static void signature(text *t, const lop_op *op) {
    say(t, "(");
    for (int i = 0; i < LOP_MAXPARAM && op->param[i].name; i++) {
        const lop_param *p = &op->param[i];
        say(t, "%s%s%s", i ? ", " : "", p->role == LOP_P_OPERATORS ? "*" : "", p->name);
        if (p->fallback) say(t, "=%s", p->fallback);
    }
    if (py_holds_arrays(op))
        say(t, "%scopy=False", op->param[0].role == LOP_P_OPERATORS ? ", " : ", *, ");
    say(t, ")");
}

static const char *role_text(lop_role role) {
    static const char *const words[] = {[LOP_P_NONE] = "",
                                        [LOP_P_ARRAY] = "array_like",
                                        [LOP_P_OPERATOR] = "operator or array_like",
                                        [LOP_P_OPERATORS] = "operators or array_like",
                                        [LOP_P_INDEX] = "array_like of int",
                                        [LOP_P_INT] = "int",
                                        [LOP_P_OFFSET] = "int",
                                        [LOP_P_FLAG] = "bool",
                                        [LOP_P_WORD] = "str",
                                        [LOP_P_BANDS] = "tuple of int",
                                        [LOP_P_SCALAR] = "number",
                                        [LOP_P_GRID] = "tuple of int",
                                        [LOP_P_SIZES] = "int or tuple of int",
                                        [LOP_P_BLOCKS] = "nested lists of operators or array_like",
                                        [LOP_P_LEVELS] = "int",
                                        [LOP_P_SHAPE] = "tuple of int",
                                        [LOP_P_DTYPE] = "dtype",
                                        [LOP_P_ASSUME] = "str",
                                        [LOP_P_FOREIGN] = "object"};
    return words[role];
}

static void docstring(text *t, const lop_op *op) {
    if (op->param[0].name) {
        say(t, "%s", op->title);
        signature(t, op);
        say(t, "\n--\n\n");
    }
    say(t, "%s\n", op->doc.brief ? op->doc.brief : "");
    if (op->doc.extended) say(t, "\n%s\n", op->doc.extended);
    if (op->param[0].name) say(t, "\nParameters\n----------\n");
    for (int i = 0; i < LOP_MAXPARAM && op->param[i].name; i++)
        say(t, "%s%s : %s\n    %s\n", op->param[i].role == LOP_P_OPERATORS ? "*" : "",
            op->param[i].name, role_text(op->param[i].role), op->param[i].doc);
    if (py_holds_arrays(op))
        say(t, "copy : bool\n    Copy the arrays; else they are borrowed, and later writes to "
               "them are seen.\n");
    if (op->param[0].name)
        say(t, "\nRaises\n------\nValueError\n    Shapes do not fit.\nTypeError\n    Structured, "
               "masked or object arrays.\n");
    if (op->doc.cost) say(t, "\nCost\n----\n%s\n", op->doc.cost);
    if (op->doc.limits) say(t, "\nLimits\n------\n%s\n", op->doc.limits);
    if (op->doc.notes) say(t, "\nNotes\n-----\n%s\n", op->doc.notes);
    if (op->doc.example)
        say(t, "\nExamples\n--------\n>>> import numpy as np, pylinop as pl\n%s\n",
            op->doc.example);
}

static PyTypeObject *make_type(PyObject *module, PyObject *root, const char *title,
                               const lop_op *op) {
    char name[64];
    text doc = {.n = 0};
    PyGetSetDef *kept =
        PyMem_Calloc(LOP_MAXPARAM + 1, sizeof *kept); /* lives as long as the type: for good */
    if (!kept) return (PyTypeObject *)PyErr_NoMemory();
    docstring(&doc, op);
    for (int i = 0, n = 0; i < LOP_MAXPARAM && op->param[i].name;
         i++) /* shape and dtype are the base's */
        if (op->param[i].role != LOP_P_SHAPE && op->param[i].role != LOP_P_DTYPE)
            kept[n++] = (PyGetSetDef){op->param[i].name, get_param, NULL, op->param[i].doc,
                                      (void *)(intptr_t)i};
    snprintf(name, sizeof name, "pylinop.%s", title);
    PyType_Slot slots[] = {{Py_tp_new, py_construct},      {Py_tp_init, kind_init},
                           {Py_tp_dealloc, py_op_dealloc}, {Py_tp_traverse, py_op_traverse},
                           {Py_tp_clear, py_op_clear},     {Py_tp_doc, doc.at},
                           {Py_tp_getset, kept},           {0, NULL}};
    PyType_Spec spec = {name, sizeof(py_op), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
    PyObject *bases = PyTuple_Pack(1, root);
    PyObject *type = bases ? PyType_FromModuleAndSpec(module, &spec, bases) : NULL;
    Py_XDECREF(bases);
    if (type && (op == &lop_op_dense || op == &lop_op_diag)) /* subclasses do not inherit it */
        ((PyTypeObject *)type)->tp_vectorcall = py_construct_fast;
    if (type && PyModule_AddObjectRef(module, title, type) < 0) Py_CLEAR(type);
    return (PyTypeObject *)type;
}

int py_make_types(py_state *s, PyObject *module, PyObject *root) {
    static const char *const views[4] = {NULL, "Transpose", "Conj", "Adjoint"};
    static const lop_op view_doc[4] = {
        {0},
        {.title = "Transpose",
         .doc = {.brief = "Transpose of an operator, lazy; ``A.T.T`` is ``A``."}},
        {.title = "Conj", .doc = {.brief = "Complex conjugate of an operator, lazy."}},
        {.title = "Adjoint",
         .doc = {.brief = "Adjoint (conjugate transpose) of an operator, lazy."}}};
    s->root = (PyTypeObject *)Py_NewRef(root);
    for (int i = 0; i < lop_nops(); i++) {
        const lop_op *op = lop_op_at(i);
        if (!op->title || op->cls != LOP_OPERATOR) continue;
        s->type[i] = make_type(module, root, op->title, op);
        if (!s->type[i]) return -1;
    }
    for (int mode = 1; mode < 4; mode++) {
        s->view[mode] = make_type(module, root, views[mode], &view_doc[mode]);
        if (!s->view[mode]) return -1;
    }
    s->type[LOP_ID_offdiag] = (PyTypeObject *)Py_NewRef(s->type[LOP_ID_diag]);
    s->type[LOP_ID_opaque] = (PyTypeObject *)Py_NewRef(root);
    return 0;
}

/* The operations a kind has a method for. New. */
static PyObject *own_methods(const lop_op *op) {
    return Py_BuildValue("{sOsOsOsO}", "apply", op->apply ? Py_True : Py_False, "todense",
                         op->dense ? Py_True : Py_False, "diagonal",
                         op->diagonal ? Py_True : Py_False, "element",
                         op->element ? Py_True : Py_False);
}

/* The table as Python sees it: name, signature, parameters, doc, head. */
PyObject *py_kinds(py_state *s) {
    PyObject *list = PyList_New(0);
    static const char *const roles[] = {
        [LOP_P_NONE] = "none",           [LOP_P_ARRAY] = "array",   [LOP_P_OPERATOR] = "operator",
        [LOP_P_OPERATORS] = "operators", [LOP_P_INDEX] = "index",   [LOP_P_INT] = "int",
        [LOP_P_OFFSET] = "offset",       [LOP_P_FLAG] = "flag",     [LOP_P_WORD] = "word",
        [LOP_P_BANDS] = "bands",         [LOP_P_SCALAR] = "scalar", [LOP_P_SHAPE] = "shape",
        [LOP_P_DTYPE] = "dtype",         [LOP_P_ASSUME] = "assume", [LOP_P_FOREIGN] = "foreign",
        [LOP_P_GRID] = "grid",           [LOP_P_SIZES] = "sizes",   [LOP_P_LEVELS] = "levels",
        [LOP_P_BLOCKS] = "blocks"};
    for (int i = 0; list && i < lop_nops(); i++) {
        const lop_op *op = lop_op_at(i);
        if (!s->type[i] || !op->title) continue;
        text sig = {.n = 0}, doc = {.n = 0};
        docstring(&doc, op);
        if (op->param[0].name) signature(&sig, op);
        PyObject *params = PyList_New(0);
        for (int j = 0; params && j < LOP_MAXPARAM && op->param[j].name; j++) {
            const lop_param *p = &op->param[j];
            PyObject *row = Py_BuildValue("{szszszszsi}", "name", p->name, "default", p->fallback,
                                          "doc", p->doc, "role", roles[p->role], "rank", p->rank);
            if (!row || PyList_Append(params, row) < 0) Py_CLEAR(params);
            Py_XDECREF(row);
        }
        PyObject *row =
            params ? Py_BuildValue("{szszszszsNsNsN}", "name", op->title, "head", op->name, "doc",
                                   doc.at, "signature", op->param[0].name ? sig.at : NULL, "params",
                                   params, "own", own_methods(op), "differentiable",
                                   PyBool_FromLong(op->vjp || op->vjp_by_formula))
                   : NULL;
        if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* The flags of kinds, each with the heads and class names of those that have it. */
PyObject *py_kind_flags(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    PyObject *all = PyDict_New();
    for (int f = 0; all && f < LOP_NFLAGS; f++) {
        PyObject *kinds = PyList_New(0);
        for (int i = 0; kinds && i < lop_nops(); i++) {
            const lop_op *op = lop_op_at(i);
            if (!(op->flags & 1u << f)) continue;
            PyObject *one = Py_BuildValue("ss", op->name, op->title ? op->title : op->name);
            if (!one || PyList_Append(kinds, one) < 0) Py_CLEAR(kinds);
            Py_XDECREF(one);
        }
        if (!kinds || PyDict_SetItemString(all, lop_flag_name(f), kinds) < 0) Py_CLEAR(all);
        Py_XDECREF(kinds);
    }
    return all;
}
