/* py_plan_data.c: a plan as plain data: what each step reads and writes by the numbers of slots,
 * where it runs, and what slots are. For dumps, oracles, and executors of other libraries. */
#include "py.h"

static PyObject *integer_or_none(int i) { return i >= 0 ? PyLong_FromLong(i) : Py_NewRef(Py_None); }

static PyObject *tuple_of(const int *number, int n) {
    PyObject *all = PyTuple_New(n);
    for (int i = 0; all && i < n; i++) {
        PyObject *one = PyLong_FromLong(number[i]);
        if (!one) Py_CLEAR(all);
        if (all) PyTuple_SET_ITEM(all, i, one);
    }
    return all;
}

/* The leaves that a derived value rests on; None: more than have a bit. */
static PyObject *leaves_of(const lop_plan *p, int derived) {
    const uint64_t rests = p->derive[derived].rests;
    int found[LOP_KEEP], n = 0;
    if (!rests && p->nleaf) Py_RETURN_NONE;
    for (int i = 0; i < p->nleaf && i < LOP_KEEP; i++)
        if (rests >> i & 1) found[n++] = i;
    return tuple_of(found, n);
}

/* Where a step runs: (mask, is it set there?) or None. */
static PyObject *condition(int mask, bool set) {
    if (mask < 0) Py_RETURN_NONE;
    return Py_BuildValue("iO", mask, set ? Py_True : Py_False);
}

PyObject *py_step_data(const lop_plan *p, int i) {
    const lop_step *s = &p->step[i];
    const int64_t *n = s->attr.i;
    Py_complex number = {s->attr.re, s->attr.im};
    PyObject *escape =
        s->escape >= 0 ? Py_BuildValue("ii", s->escape, s->escape_to) : Py_NewRef(Py_None);
    return Py_BuildValue(
        "{sNs(LLLL)sDsNsNsNsNsNsNsNsN}", "arguments", tuple_of(s->arg, s->n), "integers",
        (long long)n[0], (long long)n[1], (long long)n[2], (long long)n[3], "number", &number,
        "by_strides", PyBool_FromLong(s->run == NULL), "accumulates",
        PyBool_FromLong((s->flags & LOP_STEP_ACCUMULATES) != 0), "places",
        PyBool_FromLong((s->flags & LOP_STEP_PLACES) != 0), "when", condition(s->when, s->when_set),
        "late", condition(s->late, true), "fails_into", integer_or_none(s->fail), "escapes", escape,
        "derived", integer_or_none(s->derived));
}

static PyObject *alias_of(const lop_slot *s) {
    if (s->alias < 0) Py_RETURN_NONE;
    const char *as = s->flip ? "transpose" : s->part ? "block" : s->window ? "window" : "whole";
    return Py_BuildValue("{sissslslsl}", "of", s->alias, "as", as, "row", (long)s->row, "column",
                         (long)s->col, "from", (long)(s->window ? s->shift : 0));
}

static PyObject *slot_of(const lop_plan *p, int i) {
    static const char *const kinds[] = {"leaf", "temporary", "result", "derived"};
    const lop_slot *s = &p->slot[i];
    PyObject *shape = PyTuple_New(s->shape.ndim);
    for (int d = 0; shape && d < s->shape.ndim; d++) {
        PyObject *size = PyLong_FromLongLong(s->shape.dim[d]);
        if (!size) Py_CLEAR(shape);
        if (shape) PyTuple_SET_ITEM(shape, d, size);
    }
    const bool numbered = s->kind == LOP_S_LEAF || s->kind == LOP_S_DERIVED;
    return Py_BuildValue("{sssssNsisNsN}", "kind", kinds[s->kind], "dtype", lop_dtype_name(s->dt),
                         "shape", shape, "core", s->core, "number",
                         integer_or_none(numbered ? s->leaf : -1), "alias", alias_of(s));
}

static PyObject *derived_of(const lop_plan *p, int i) {
    return Py_BuildValue("{sisLsN}", "step", p->derive[i].step, "bytes",
                         (long long)p->derive[i].bytes, "leaves", leaves_of(p, i));
}

static PyObject *list_of(const lop_plan *p, int n, PyObject *(*one)(const lop_plan *, int)) {
    PyObject *all = PyList_New(n);
    for (int i = 0; all && i < n; i++) {
        PyObject *row = one(p, i);
        if (!row) Py_CLEAR(all);
        if (all) PyList_SET_ITEM(all, i, row);
    }
    return all;
}

/* A weak reference to each leaf's array; None: it is not among the operator's (a right-hand side).
 */
static PyObject *arrays_of(py_op *self, const lop_plan *p) {
    PyObject *found = PyDict_New(), *all = PyList_New(p->nleaf);
    bool good = found && all && py_collect(self, found) == 0;
    for (int i = 0; good && i < p->nleaf; i++) {
        PyObject *serial = PyLong_FromUnsignedLongLong(p->leaf[i].serial);
        PyObject *array = serial ? PyDict_GetItemWithError(found, serial) : NULL;
        PyObject *weak = array ? PyWeakref_NewRef(array, NULL) : Py_NewRef(Py_None);
        good = serial && weak && !PyErr_Occurred();
        Py_XDECREF(serial);
        if (good)
            PyList_SET_ITEM(all, i, weak);
        else
            Py_XDECREF(weak);
    }
    Py_XDECREF(found);
    if (!good) Py_CLEAR(all);
    return all;
}

PyObject *py_plan_data(py_op *self, const lop_plan *p) {
    return Py_BuildValue("{sNsNsNsi}", "slots", list_of(p, p->nslot, slot_of), "derived",
                         list_of(p, p->nderive, derived_of), "leaves", arrays_of(self, p), "result",
                         p->out);
}
