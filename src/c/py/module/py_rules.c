/* py_rules.c: the rule table as Python sees it, and users' rules beside it. */
#include "py/run/py_tape.h"

#include "rewrite/guards.h"
#include "exec/rule_trial.h"

static const char *const phases[] = {"close", "first", "push", "explore", "both"};
static const char *const tiers[] = {"veto", "whole", "kind", "inferred", "generic", "dense"};

PyObject *py_rules(py_state *s) {
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < lop_rules_count(s->rules); i++) {
        const lop_rule *r = lop_rules_at(s->rules, i);
        const lop_guard *guard = lop_guard_of(r->when);
        bool own = lop_rules_is_own(s->rules, i);
        if (lop_rules_is_gone(s->rules, i)) continue;
        PyObject *row = Py_BuildValue(
            "{szszszszszszszszszsL}", "name", r->name, "phase", phases[r->phase], "tier",
            tiers[r->tier - LOP_VETO], "left", r->left, "right", r->right, "guard",
            guard ? guard->name : NULL, "cost",
            lop_rules_cheaper(s->rules, i) ? "cheaper" : "always", "source", r->source, "origin",
            own ? "user" : "table", "fired", (long long)lop_rules_fired(s->rules, i));
        if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

PyObject *py_places(py_state *s) {
    PyObject *found = PyDict_New();
    for (int i = 0; found && i < lop_rules_count(s->rules); i++) {
        PyObject *place = PyLong_FromLong(i);
        if (!place || PyDict_SetItemString(found, lop_rules_at(s->rules, i)->name, place) < 0)
            Py_CLEAR(found);
        Py_XDECREF(place);
    }
    return found;
}

/* Those that users' rules may name: dict name -> what it asks for. */
PyObject *py_guards(void) {
    PyObject *found = PyDict_New();
    for (int i = 0; found && i < lop_nguards(); i++) {
        const lop_guard *g = lop_guard_at(i);
        PyObject *doc = g->needs ? PyUnicode_FromString(g->doc) : NULL;
        if (g->needs && (!doc || PyDict_SetItemString(found, g->name, doc) < 0)) Py_CLEAR(found);
        Py_XDECREF(doc);
    }
    return found;
}

static void changed(py_state *s) {
    s->generation++;
    py_tape_epoch();
    py_config_read(s);
}

/* _add_rule(name, left, right, guard, phase, cheaper, source); guard may be None. */
PyObject *py_add_rule(py_state *s, PyObject *args) {
    const char *name, *left, *right, *guard, *phase, *source;
    int cheaper;
    lop_err err;
    lop_err_open(&err);
    if (!PyArg_ParseTuple(args, "ssszsps:_add_rule", &name, &left, &right, &guard, &phase, &cheaper,
                          &source))
        return NULL;
    const lop_guard *g = guard ? lop_guard_find(guard) : NULL;
    lop_rule rule = {name, LOP_EXPLORE, left, right, g ? g->when : NULL, NULL, source, LOP_OF_KIND};
    if (guard && (!g || !g->needs))
        return PyErr_Format(PyExc_ValueError, "no guard %s for rules", guard);
    if (!strcmp(phase, "first")) rule.phase = LOP_FIRST;
    if (!strcmp(phase, "push")) rule.phase = LOP_PUSH;
    int at = lop_rules_find(s->rules, name);
    if (at >= 0 && !lop_rules_is_gone(s->rules, at))
        return PyErr_Format(PyExc_ValueError, "there is a rule %s already", name);
    if (s->generation >= (int64_t)1 << 29)
        return PyErr_Format(PyExc_ValueError, "the rules were changed too often");
    lop_status st = lop_rule_trial(&s->ctx, s->rules, &rule, &err);
    if (st == LOP_OK) st = lop_rules_add(s->rules, &rule, cheaper != 0, NULL, &err);
    if (st != LOP_OK) return py_raise(s, st, &err, NULL, "register");
    changed(s);
    Py_RETURN_NONE;
}

PyObject *py_remove_rule(py_state *s, PyObject *args) {
    const char *name;
    if (!PyArg_ParseTuple(args, "s:_remove_rule", &name)) return NULL;
    int at = lop_rules_find(s->rules, name);
    if (at < 0 || lop_rules_is_gone(s->rules, at) || !lop_rules_is_own(s->rules, at))
        return PyErr_Format(PyExc_ValueError, "no rule %s of a user's", name);
    lop_rules_remove(s->rules, at);
    changed(s);
    Py_RETURN_NONE;
}
