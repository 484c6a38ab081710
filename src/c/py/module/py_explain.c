/* py_explain.c: plans as dicts: text, rules, steps, alternatives, memory. The plan is made anew
 * with all that happens written down, and thrown away; the same input gives the same plan as was
 * run. */
#include "py.h"

#include "plan/plan_print.h"
#include "rewrite/guards.h"

/* What became of which rule, in the order of their first mention. New. */
static PyObject *rules_of(py_state *s, const lop_trail *trail) {
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < trail->n; i++) {
        const lop_note *n = &trail->note[i];
        const lop_rule *rule = lop_rules_at(s->rules, n->rule);
        const lop_guard *guard = n->why == LOP_WHY_GUARD ? lop_guard_of(rule->when) : NULL;
        static const char *const by[] = {NULL, "guard", "right side", "cost", "config"};
        PyObject *row = Py_BuildValue("{szszszszszsi}", "name", rule->name, "outcome",
                                      n->why == LOP_WHY_FIRED ? "fired" : "refused", "by",
                                      by[n->why], "guard", guard ? guard->name : NULL, "why",
                                      lop_why_text(rule, (lop_why)n->why), "count", (int)n->count);
        if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *others_of(py_state *s, const lop_trail *trail) {
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < trail->nother; i++) {
        const lop_other *o = &trail->other[i];
        PyObject *row = Py_BuildValue("{szszsd}", "rule",
                                      o->rule < 0 ? NULL : lop_rules_at(s->rules, o->rule)->name,
                                      "text", o->rule < 0 ? o->text : NULL, "seconds", o->seconds);
        if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *step_of(const lop_plan *p, int i, const double *times) {
    const lop_step *step = &p->step[i];
    char name[160];
    PyObject *reads = PyList_New(0);
    for (int j = 1; reads && j < step->n; j++) {
        PyObject *slot = PyUnicode_FromString(lop_slot_text(p, step->arg[j], name, sizeof name));
        if (!slot || PyList_Append(reads, slot) < 0) Py_CLEAR(reads);
        Py_XDECREF(slot);
    }
    if (!reads) return NULL;
    PyObject *took = times && times[i] >= 0 ? PyFloat_FromDouble(times[i]) : Py_NewRef(Py_None);
    PyObject *row = Py_BuildValue(
        "{szszsNsdsdsdsNsNsNsN}", "name", step->name, "writes",
        lop_slot_text(p, step->arg[0], name, sizeof name), "reads", reads, "flops", step->flops,
        "bytes", step->bytes, "seconds", step->run ? lop_step_seconds(p, i) : 0.0, "took", took,
        "kept", PyBool_FromLong(step->derived >= 0), "guarded",
        PyBool_FromLong(step->fail >= 0 || step->escape >= 0), "conditional",
        PyBool_FromLong(step->when >= 0 || step->late >= 0 || lop_step_again(p, i)));
    PyObject *data = row ? py_step_data(p, i) : NULL;
    if (!data || PyDict_Update(row, data) < 0) Py_CLEAR(row);
    Py_XDECREF(data);
    return row;
}

static PyObject *steps_of(const lop_plan *p, const double *times) {
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < p->nstep; i++) {
        PyObject *row = step_of(p, i, times);
        if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *took(const lop_plan *p, const double *times) {
    double sum = 0;
    if (!times) Py_RETURN_NONE;
    for (int i = 0; i < p->nstep; i++) sum += times[i] > 0 ? times[i] : 0;
    return PyFloat_FromDouble(sum);
}

/* Steps whose makers are known go by their names, which live as long as the dict. */
static void name_steps(lop_plan *p, PyObject *makers) {
    PyObject *key, *name;
    Py_ssize_t at = 0;
    while (PyDict_Next(makers, &at, &key, &name)) {
        const char *text = PyUnicode_AsUTF8(name);
        if (text) p->step[PyLong_AsLong(key)].name = text;
    }
    PyErr_Clear();
}

/* The plan of `root` as a dict; times and makers may be NULL. New. */
static PyObject *dict_of(py_state *s, py_op *self, const lop_node *root, const double *times,
                         int nstep, PyObject *makers) {
    lop_err err;
    lop_err_open(&err);
    lop_plan *p = NULL;
    lop_options options = s->options;
    lop_trail *trail = options.trail = lop_calloc(&s->ctx, 1, sizeof *trail);
    if (!trail) return PyErr_NoMemory();
    lop_status st = lop_plan_make(&s->ctx, s->rules, &options, root, &p, &err);
    if (st != LOP_OK) {
        lop_free(&s->ctx, trail);
        return py_raise(s, st, &err, (PyObject *)self, "explain");
    }
    if (p->nstep != nstep) times = NULL;
    if (times && makers) name_steps(p, makers);
    char *text = lop_plan_dump(p, s->rules, trail, times, 60);
    PyObject *order = PyUnicode_FromString(p->trace.order);
    PyObject *d =
        text && order
            ? Py_BuildValue("{szszsNsNsNsOsdsdsdsLsLsLsN}", "text", text, "action", root->op->name,
                            "rules", rules_of(s, trail), "steps", steps_of(p, times),
                            "alternatives", others_of(s, trail), "order", order, "flops", p->flops,
                            "bytes", p->bytes, "seconds", p->seconds, "memory",
                            (long long)lop_plan_memory(p), "reserve", (long long)p->reserve[0],
                            "unasked", (long long)p->dense, "took", took(p, times))
            : NULL;
    PyObject *data = d ? py_plan_data(self, p) : NULL;
    if (d && (!data || PyDict_Update(d, data) < 0)) Py_CLEAR(d);
    Py_XDECREF(data);
    if (!d && !PyErr_Occurred()) PyErr_NoMemory();
    Py_XDECREF(order);
    lop_free(&s->ctx, text);
    lop_free(&s->ctx, trail);
    lop_plan_unref(p);
    return d;
}

int py_asked(py_state *s, py_op *self, PyArrayObject *x, int act, int64_t i, int64_t j,
             uint64_t *rhs, const lop_node **root) {
    lop_err err;
    lop_err_open(&err);
    const lop_node *node = py_node(s, self);
    py_plan want = {.act = act, .i = i, .j = j, .dt = x ? (int)py_dtype(x) : 0};
    lop_shape shape = {.ndim = 0};
    if (!node) return -1;
    if (x && (PyArray_NDIM(x) < 1 || PyArray_NDIM(x) > LOP_MAXDIM)) {
        PyErr_Format(PyExc_ValueError, "a right-hand side of 1 to %d dimensions is due, got %d",
                     LOP_MAXDIM, PyArray_NDIM(x));
        return -1;
    }
    if (x) {
        for (int d = 0; d < PyArray_NDIM(x); d++) shape.dim[shape.ndim++] = PyArray_DIM(x, d);
        if (shape.ndim == 1) shape.dim[shape.ndim++] = 1;
    }
    py_config_here(s);
    lop_status st = py_action(s, node, &want, &shape, rhs, root, &err);
    if (st == LOP_OK) return 0;
    py_raise(s, st, &err, (PyObject *)self, "explain");
    return -1;
}

PyObject *py_explain(py_state *s, py_op *self, PyArrayObject *x, int act, int64_t i, int64_t j) {
    const lop_node *root = NULL;
    uint64_t rhs;
    if (py_asked(s, self, x, act, i, j, &rhs, &root) < 0) return NULL;
    PyObject *d = dict_of(s, self, root, NULL, 0, NULL);
    lop_node_unref(root);
    return d;
}

int py_record(py_state *s, py_op *self, const lop_plan *plan, const double *times, PyObject *makers,
              double rcond) {
    PyObject *list = s->record;
    if (!list) return 0;
    Py_INCREF(list);
    PyObject *d = dict_of(s, self, plan->written, times, plan->nstep, makers),
             *known = d && rcond <= 1 ? PyFloat_FromDouble(rcond) : NULL;
    int rc = d ? 0 : -1;
    if (known || PyErr_Occurred()) rc = known ? PyDict_SetItemString(d, "rcond", known) : -1;
    if (rc == 0) rc = PyList_Append(list, d);
    Py_XDECREF(known);
    Py_XDECREF(d);
    Py_DECREF(list);
    return rc;
}
