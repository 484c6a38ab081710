/* py_module.c: the module: state, status -> exception, functions. Multi-phase; one interpreter. */
#include "py/run/py_bound_product.h"
#include "py/run/py_tape.h"
#include "py/lazy/py_lazy.h"

#include "kernels/band/k_band.h"

/* The module's own memory is only the pointer. */
static py_state *state(PyObject *module) { return *(py_state **)PyModule_GetState(module); }

py_state *py_state_of_type(PyTypeObject *type) {
    PyObject *module = PyType_GetModuleByDef(type, &py_module_def);
    return module ? state(module) : NULL;
}

void py_state_unref(py_state *s) {
    if (!s || --s->refs > 0) return;
    lop_store_clear(&s->store);
    lop_plans_clear(&s->plans);
    lop_rules_free(s->rules);
    PyMem_Free(s);
}

PyObject *py_item(PyObject *dict, const char *name) {
    PyObject *key = PyUnicode_FromString(name);
    PyObject *found = key ? PyDict_GetItemWithError(dict, key) : NULL;
    Py_XDECREF(key);
    return found;
}

PyObject *py_attribute(PyObject *o, const char *name) {
    PyObject *found = PyObject_GetAttrString(o, name);
    if (!found && PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
    return found;
}

bool py_not_so(void) {
    if (!PyErr_Occurred()) return true;
    if (PyErr_ExceptionMatches(PyExc_MemoryError) || !PyErr_ExceptionMatches(PyExc_Exception))
        return false;
    PyErr_Clear();
    return true;
}

PyObject *py_hook(py_state *s, const char *name) {
    PyObject *f = s->hooks ? py_item(s->hooks, name) : NULL;
    if (!f && !PyErr_Occurred())
        PyErr_Format(PyExc_RuntimeError,
                     "pylinop._core has no hook %s: import pylinop, not pylinop._core", name);
    return f;
}

PyObject *py_call_hook(py_state *s, const char *name, PyObject *const *args, Py_ssize_t n) {
    PyObject *f = py_hook(s, name);
    PyCodeObject *code = s->code; /* what Python builds is of its own line */
    bool placed = s->placed;
    s->code = NULL;
    s->placed = false;
    PyObject *r = f ? PyObject_Vectorcall(f, args, (size_t)n, NULL) : NULL;
    s->placed = placed;
    Py_XSETREF(s->code, code);
    py_config_here(s);
    return r;
}

PyObject *py_instead(py_state *s, const char *name, PyObject **args, Py_ssize_t n) {
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    args[n - 1] = error;
    PyObject *r = error ? py_call_hook(s, name, args, n) : NULL;
    if (r == Py_None) {
        Py_CLEAR(r);
        PyErr_Restore(type, error, trace);
        return NULL;
    }
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(trace);
    return r;
}

PyObject *py_raise(py_state *s, lop_status status, const lop_err *err, PyObject *op,
                   const char *action) {
    if (PyErr_Occurred()) return NULL;
    if (status == LOP_NOMEM && (!err || !err->text[0])) return PyErr_NoMemory();
    const char *name = lop_status_exception(status);
    PyObject *args[5] = {
        PyUnicode_FromString(name ? name : "RuntimeError"),
        PyUnicode_FromString(err && err->text[0] ? err->text : lop_status_name(status)),
        op ? op : Py_None, PyUnicode_FromString(action),
        PyLong_FromLongLong(err ? err->batch : -1)};
    PyObject *exc =
        args[0] && args[1] && args[3] && args[4] ? py_call_hook(s, "make_error", args, 5) : NULL;
    for (int i = 0; i < 5; i++)
        if (i != 2) Py_XDECREF(args[i]);
    if (exc) PyErr_SetObject((PyObject *)Py_TYPE(exc), exc);
    Py_XDECREF(exc);
    return NULL;
}

/* -- functions */

/* _setup(LinearOperator, LazyArray, hooks, home): called once by the package. Python modules below
 * those of the two classes find them as attributes here. */
static PyObject *setup(PyObject *module, PyObject *args) {
    PyObject *root, *lazy, *hooks, *home;
    py_state *s = state(module);
    if (!PyArg_ParseTuple(args, "OO!O!S:_setup", &root, &PyType_Type, &lazy, &PyDict_Type, &hooks,
                          &home))
        return NULL;
    Py_XSETREF(s->lazy, (PyTypeObject *)Py_NewRef(lazy));
    Py_XSETREF(s->hooks, Py_NewRef(hooks));
    Py_XSETREF(s->home, Py_NewRef(home));
    PyObject *immutable = PyDict_GetItemString(hooks, "immutable");
    if (!immutable || !PyType_Check(immutable))
        return PyErr_Format(PyExc_TypeError, "_setup: immutable is no class"), NULL;
    Py_XSETREF(s->immutable, (PyTypeObject *)Py_NewRef(immutable));
    if (PyModule_AddObjectRef(module, "_LinearOperator", root) < 0 ||
        PyModule_AddObjectRef(module, "_LazyArray", lazy) < 0 || py_make_types(s, module, root) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *kinds(PyObject *module, PyObject *unused) {
    (void)unused;
    return py_kinds(state(module));
}

static PyObject *live(PyObject *module, PyObject *unused) {
    (void)unused;
    return PyLong_FromLongLong(state(module)->ctx.live);
}

static PyObject *rules(PyObject *module, PyObject *unused) {
    (void)unused;
    return py_rules(state(module));
}

static PyObject *places(PyObject *module, PyObject *unused) {
    (void)unused;
    return py_places(state(module));
}

static PyObject *guards(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    return py_guards();
}

static PyObject *add_rule(PyObject *module, PyObject *args) {
    return py_add_rule(state(module), args);
}

static PyObject *remove_rule(PyObject *module, PyObject *args) {
    return py_remove_rule(state(module), args);
}

static PyObject *options(PyObject *module, PyObject *args) {
    return py_config_options(state(module), args);
}

static PyObject *watch(PyObject *module, PyObject *args) {
    return py_config_watch(state(module), args);
}

static PyObject *store_info(PyObject *module, PyObject *unused) {
    (void)unused;
    py_state *s = state(module);
    return Py_BuildValue("{siszsLsLsLsLsKsKsKsK}", "entries", s->store.n, "unit", "bytes", "bytes",
                         (long long)s->store.bytes, "held", (long long)s->store.held, "limit",
                         (long long)s->store.limit, "spare", (long long)lop_spares_bytes(), "hits",
                         (unsigned long long)s->store.hits, "misses",
                         (unsigned long long)s->store.misses, "plans_found",
                         (unsigned long long)s->plans.hits, "plans_made",
                         (unsigned long long)s->plans.misses);
}

/* _results(asked): see py_results. */
static PyObject *results(PyObject *module, PyObject *asked) {
    return py_results(state(module), asked);
}

/* _results_priced(asked): see py_results_priced. */
static PyObject *results_priced(PyObject *module, PyObject *asked) {
    return py_results_priced(state(module), asked);
}

/* _results_explained(asked): see py_results_explained. */
static PyObject *results_explained(PyObject *module, PyObject *asked) {
    return py_results_explained(state(module), asked);
}

/* _foreign(x): see py_foreign; None where Python is to look at it. */
static PyObject *foreign(PyObject *module, PyObject *o) {
    (void)module;
    PyObject *made = py_foreign(o, true);
    return made || PyErr_Occurred() ? made : Py_NewRef(Py_None);
}

/* _foreign_all(tensors): see py_foreign_all; None likewise. */
static PyObject *foreign_all(PyObject *module, PyObject *list) {
    (void)module;
    if (!PyList_Check(list)) return PyErr_Format(PyExc_TypeError, "a list is due");
    PyObject *made = py_foreign_all(list);
    return made || PyErr_Occurred() ? made : Py_NewRef(Py_None);
}

/* _xla_target(function): see py_xla_target. */
static PyObject *xla_target(PyObject *module, PyObject *f) {
    (void)module;
    return py_xla_target(f);
}

/* _cotangent(op, g, child): see py_cotangent. */
static PyObject *cotangent(PyObject *module, PyObject *args) {
    return py_cotangent(state(module), args);
}

static void forget_matrices(py_state *s) {
    for (int i = 0; i < PY_MATRICES; i++) {
        lop_node_unref(s->matrix[i].leaf);
        s->matrix[i].leaf = NULL;
        Py_CLEAR(s->matrix[i].weak);
    }
}

static PyObject *clear_store(PyObject *module, PyObject *unused) {
    (void)unused;
    forget_matrices(state(module));
    lop_store_clear(&state(module)->store);
    lop_plans_clear(&state(module)->plans);
    (void)lop_spares_free();
    Py_RETURN_NONE;
}

static PyObject *build(PyObject *module, PyObject *args) {
    PyObject *a, *b = NULL;
    const char *head;
    int mode = 0;
    py_state *s = state(module);
    if (!PyArg_ParseTuple(args, "sO|Oi:_build", &head, &a, &b, &mode)) return NULL;
    if (!py_is_op(s, a)) return PyErr_Format(PyExc_TypeError, "not an operator");
    if (!strcmp(head, "view")) return py_view(s, (py_op *)a, mode);
    if (!strcmp(head, "inverse")) return py_inverse(s, (py_op *)a, false);
    if (!strcmp(head, "solver")) return py_inverse(s, (py_op *)a, true);
    const lop_op *op = lop_op_find(head, strlen(head));
    lop_attr attr = {.i = {mode, 0, 0, 0}};
    if (op == &lop_op_part) return py_build(s, op, &attr, a, NULL);
    if (!op || !b || !py_is_op(s, b))
        return PyErr_Format(PyExc_TypeError, "no such composite: %s", head);
    return py_build(s, op, NULL, a, b);
}

/* _sliced(op, steps): see py_sliced. */
static PyObject *sliced(PyObject *module, PyObject *args) {
    PyObject *op, *key;
    py_state *s = state(module);
    if (!PyArg_ParseTuple(args, "OO!:_sliced", &op, &PyTuple_Type, &key)) return NULL;
    if (!py_is_op(s, op)) return PyErr_Format(PyExc_TypeError, "not an operator");
    return py_sliced(s, op, key);
}

/* _heads(): names of all heads by number (ops/shared/sparse_solver.h). */
static PyObject *heads(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    PyObject *all = PyTuple_New(lop_nops());
    for (int i = 0; all && i < lop_nops(); i++) {
        PyObject *name = PyUnicode_FromString(lop_op_at(i)->name);
        if (!name) {
            Py_DECREF(all);
            return NULL;
        }
        PyTuple_SET_ITEM(all, i, name);
    }
    return all;
}

static PyObject *costs(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    const lop_costs *c = &lop_costs_default;
    return Py_BuildValue("{sisdsdsdsd}", "version", c->version, "flop_rate", c->flop_rate,
                         "gemm_rate", c->gemm_rate, "bandwidth", c->bandwidth, "overhead",
                         c->overhead);
}

static py_lazy *lazy_arg(PyObject *module, PyObject *o) {
    if (py_is_lazy(state(module), o)) return (py_lazy *)o;
    PyErr_Format(PyExc_TypeError, "not a LazyArray: %.100s", Py_TYPE(o)->tp_name);
    return NULL;
}

static PyObject *lazy_leaf(PyObject *module, PyObject *o) { return py_lazy_leaf(state(module), o); }

static PyObject *lazy_inverse(PyObject *module, PyObject *o) {
    py_lazy *a = lazy_arg(module, o);
    return a ? py_lazy_inverse(state(module), a) : NULL;
}

static PyObject *lazy_view(PyObject *module, PyObject *args) {
    PyObject *o;
    int mode;
    if (!PyArg_ParseTuple(args, "Oi:_lazy_view", &o, &mode)) return NULL;
    py_lazy *a = lazy_arg(module, o);
    return a ? py_lazy_view(state(module), a, mode) : NULL;
}

static PyObject *lazy_scaled(PyObject *module, PyObject *args) {
    PyObject *o, *c;
    if (!PyArg_ParseTuple(args, "OO:_lazy_scaled", &o, &c)) return NULL;
    py_lazy *a = lazy_arg(module, o);
    return a ? py_lazy_scaled(state(module), a, c) : NULL;
}

/* _lazy_run(list, give): see py_lazy_run; give may be None. */
static PyObject *lazy_run(PyObject *module, PyObject *args) {
    PyObject *roots, *give;
    if (!PyArg_ParseTuple(args, "O!O:_lazy_run", &PyList_Type, &roots, &give)) return NULL;
    if (py_lazy_run(state(module), roots, give == Py_None ? NULL : give) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *lazy_value(PyObject *module, PyObject *o) {
    py_lazy *a = lazy_arg(module, o);
    if (!a || py_lazy_value(a) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *lazy_operator(PyObject *module, PyObject *o) {
    py_lazy *a = lazy_arg(module, o);
    return a ? py_lazy_operator(a) : NULL;
}

static PyObject *lazy_replay(PyObject *module, PyObject *args) {
    PyObject *rows, *leaves;
    if (!PyArg_ParseTuple(args, "O!O!:_lazy_replay", &PyTuple_Type, &rows, &PyList_Type, &leaves))
        return NULL;
    return py_lazy_replay(state(module), rows, leaves);
}

static PyObject *lazy_key(PyObject *module, PyObject *args) {
    PyObject *root, *params, *arrays, *tables;
    if (!PyArg_ParseTuple(args, "OO!O!O!:_lazy_key", &root, &PyList_Type, &params, &PyList_Type,
                          &arrays, &PyTuple_Type, &tables))
        return NULL;
    return py_lazy_key(state(module), root, params, arrays, tables);
}

static PyObject *lazy_template(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    if (n != 2) return PyErr_Format(PyExc_TypeError, "_lazy_template takes two arguments");
    return py_lazy_template(state(module), args[0], args[1]);
}

static PyObject *lazy_is_deep(PyObject *module, PyObject *o) {
    py_lazy *a = lazy_arg(module, o);
    return a ? PyBool_FromLong(py_lazy_is_deep(a)) : NULL;
}

static PyObject *krylov(PyObject *module, PyObject *fields) {
    if (!PyDict_Check(fields)) return PyErr_Format(PyExc_TypeError, "_krylov takes a dict");
    return py_krylov(state(module), fields);
}
static PyObject *krylov_plain(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    return py_krylov_plain(state(module), args, nargs);
}

static PyObject *kept(PyObject *module, PyObject *args) { return py_kept(state(module), args); }
static PyObject *keep(PyObject *module, PyObject *args) { return py_keep(state(module), args); }
static PyObject *forget(PyObject *module, PyObject *op) {
    (void)lop_spares_free();
    return py_forget(state(module), op);
}

static PyMethodDef functions[] = {
    {"_setup", setup, METH_VARARGS, NULL},
    {"kinds", kinds, METH_NOARGS,
     "kinds()\n--\n\nThe table of kinds: name, signature, parameters, docstring."},
    {"rules", rules, METH_NOARGS,
     "rules()\n--\n\nThe rule table and users' rules: name, phase, both sides, guard, source, "
     "where from, how often each has fired."},
    {"live", live, METH_NOARGS,
     "live()\n--\n\nNumber of blocks of memory the core holds (for leak tests)."},
    {"_options", options, METH_VARARGS, NULL},
    {"_watch", watch, METH_VARARGS, NULL},
    {"_costs", costs, METH_NOARGS, NULL},
    {"_places", places, METH_NOARGS, NULL},
    {"_guards", guards, METH_NOARGS, NULL},
    {"_add_rule", add_rule, METH_VARARGS, NULL},
    {"_remove_rule", remove_rule, METH_VARARGS, NULL},
    {"_store", store_info, METH_NOARGS, NULL},
    {"_clear_store", clear_store, METH_NOARGS, NULL},
    {"_owned", py_owned, METH_O, NULL},
    {"_release", py_release, METH_O, NULL},
    {"_hold", (PyCFunction)(void (*)(void))py_hold, METH_FASTCALL, NULL},
    {"_met", py_met, METH_NOARGS, NULL},
    {"_printed", py_printed, METH_O, NULL},
    {"_kept", kept, METH_VARARGS, NULL},
    {"_keep", keep, METH_VARARGS, NULL},
    {"_forget", forget, METH_O, NULL},
    {"_build", build, METH_VARARGS, NULL},
    {"_sliced", sliced, METH_VARARGS, NULL},
    {"_blas", py_blas, METH_NOARGS, NULL},
    {"_blas_all", py_blas_all, METH_NOARGS, NULL},
    {"_blas_bind", py_blas_bind, METH_VARARGS, NULL},
    {"_blas_linked", py_blas_linked, METH_NOARGS, NULL},
    {"_heads", heads, METH_NOARGS, NULL},
    {"_kind_flags", py_kind_flags, METH_NOARGS, NULL},
    {"_sterf", py_sterf, METH_VARARGS, NULL},
    {"_lazy_leaf", lazy_leaf, METH_O, NULL},
    {"_lazy_inverse", lazy_inverse, METH_O, NULL},
    {"_lazy_view", lazy_view, METH_VARARGS, NULL},
    {"_lazy_scaled", lazy_scaled, METH_VARARGS, NULL},
    {"_results", results, METH_O, NULL},
    {"_results_priced", results_priced, METH_O, NULL},
    {"_results_explained", results_explained, METH_O, NULL},
    {"_xla_target", xla_target, METH_O, NULL},
    {"_foreign", foreign, METH_O, NULL},
    {"_foreign_all", foreign_all, METH_O, NULL},
    {"_cotangent", cotangent, METH_VARARGS, NULL},
    {"_lazy_run", lazy_run, METH_VARARGS, NULL},
    {"_lazy_value", lazy_value, METH_O, NULL},
    {"_lazy_operator", lazy_operator, METH_O, NULL},
    {"_lazy_is_deep", lazy_is_deep, METH_O, NULL},
    {"_lazy_key", lazy_key, METH_VARARGS, NULL},
    {"_lazy_replay", lazy_replay, METH_VARARGS, NULL},
    {"_lazy_template", (PyCFunction)(void (*)(void))lazy_template, METH_FASTCALL, NULL},
    {"_getrf", py_getrf, METH_VARARGS, NULL},
    {"_band_cholesky", py_band_cholesky, METH_VARARGS, NULL},
    {"_band_svd", py_band_svd, METH_VARARGS, NULL},
    {"_band_qr", py_band_qr, METH_VARARGS, NULL},
    {"_band_places", py_band_places, METH_VARARGS, NULL},
    {"_cholup", py_cholup, METH_VARARGS, NULL},
    {"_mirrored", (PyCFunction)(void (*)(void))py_mirrored, METH_FASTCALL, NULL},
    {"_krylov", krylov, METH_O, NULL},
    {"_krylov_plain", (PyCFunction)(void (*)(void))krylov_plain, METH_FASTCALL, NULL},
    {"_gauss", py_gauss, METH_VARARGS, NULL},
    {"_ichol", py_ichol, METH_VARARGS, NULL},
    {"_spgemm_bound", py_spgemm_bound, METH_VARARGS, NULL},
    {"_spgemm_count", py_spgemm_count, METH_VARARGS, NULL},
    {"_spgemm_fill", py_spgemm_fill, METH_VARARGS, NULL},
    {"_spgemm_sampled", py_spgemm_sampled, METH_VARARGS, NULL},
    {"_csr_transpose", py_csr_transpose, METH_VARARGS, NULL},
    {"_csr_keep", py_csr_keep, METH_VARARGS, NULL},
    {"_csr_meet", py_csr_meet, METH_VARARGS, NULL},
    {"_csr_mirror", py_csr_mirror, METH_VARARGS, NULL},
    {"_select_counts", py_select_counts, METH_VARARGS, NULL},
    {"_select_rows", py_select_rows, METH_VARARGS, NULL},
    {"_select", py_select, METH_VARARGS, NULL},
    {"_quasi_ldl", py_quasi_ldl, METH_VARARGS, NULL},
    {"_quasi_quad", py_quasi_quad, METH_VARARGS, NULL},
    {"_quasi_covariance", py_quasi_covariance, METH_VARARGS, NULL},
    {"_quasi_matern", py_quasi_matern, METH_VARARGS, NULL},
    {"_markov_jets", py_markov_jets, METH_VARARGS, NULL},
    {"_csr_step", py_csr_step, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL}};

/* -- the module's life */

static int exec_module(PyObject *module) {
    py_state *s = PyMem_Calloc(1, sizeof *s);
    lop_err err;
    lop_err_open(&err);
    if (!s) return PyErr_NoMemory(), -1;
    s->refs = 1;
    *(py_state **)PyModule_GetState(module) = s;
    if (py_import_numpy() < 0 || py_memory_open() < 0) return -1;
    lop_ctx_init(&s->ctx, NULL);
    py_sparse_open(s);
    lop_store_init(&s->store, &s->ctx, (int64_t)256 << 20);
    lop_plans_init(&s->plans, &s->ctx);
    s->options.fft = s->process_fft = true;
    s->provenance = s->process_provenance = true;
    s->process_limit = INT64_MAX;
    s->nogil_work = 200000;
    s->home = PyBytes_FromString("\1");
    s->matvec_name = PyUnicode_InternFromString("_matvec");
    s->owner_name = PyUnicode_InternFromString("owner");
    PyObject *numpy = PyImport_ImportModule("numpy");
    s->matmul = numpy ? PyObject_GetAttrString(numpy, "matmul") : NULL;
    Py_XDECREF(numpy);
    if (!s->home || !s->matvec_name || !s->owner_name || !s->matmul || py_lazy_import(s) < 0)
        return -1;
    if (lop_kinds_check(&err) != LOP_OK ||
        lop_rules_new(&s->ctx, lop_rule_table, lop_rule_count, &s->rules, &err) != LOP_OK) {
        PyErr_Format(PyExc_ImportError, "pylinop: %s", err.text);
        return -1;
    }
    PyType_Spec spec = {"pylinop._core.Operator", sizeof(py_op), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                        py_base_slots};
    s->base = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    if (!s->base || PyModule_AddObjectRef(module, "Operator", (PyObject *)s->base) < 0) return -1;
    if (py_applied_make_type(module) < 0 || py_equation_make_type(module) < 0 ||
        py_capi_add(module) < 0 || PyModule_AddFunctions(module, py_tape_methods) < 0)
        return -1;
    return py_lazy_make_type(module);
}

static int traverse_module(PyObject *module, visitproc visit, void *arg) {
    py_state *s = PyModule_GetState(module) ? state(module) : NULL;
    if (!s) return 0;
    int found = py_kept_traverse(s, visit, arg);
    if (found) return found;
    Py_VISIT(s->base);
    Py_VISIT(s->root);
    Py_VISIT(s->hooks);
    Py_VISIT(s->config);
    Py_VISIT(s->record);
    Py_VISIT(s->tape);
    Py_VISIT(s->matmul);
    Py_VISIT(s->lazy);
    Py_VISIT(s->recipes);
    Py_VISIT(s->looked);
    Py_VISIT(s->immutable);
    for (int i = 0; i < PY_UFUNCS; i++) {
        Py_VISIT(s->ufunc[i]);
        Py_VISIT(s->call[i]);
    }
    for (int i = 0; i < PY_MAXKINDS; i++) Py_VISIT(s->type[i]);
    for (int i = 0; i < 4; i++) Py_VISIT(s->view[i]);
    return 0;
}

static int clear_module(PyObject *module) {
    py_state *s = PyModule_GetState(module) ? state(module) : NULL;
    if (!s) return 0;
    lop_store_clear(&s->store);
    Py_CLEAR(s->hooks);
    Py_CLEAR(s->base);
    Py_CLEAR(s->root);
    Py_CLEAR(s->home);
    Py_CLEAR(s->matvec_name);
    Py_CLEAR(s->matmul);
    Py_CLEAR(s->config);
    Py_CLEAR(s->record);
    Py_CLEAR(s->tape);
    Py_CLEAR(s->lazy);
    Py_CLEAR(s->recipes);
    Py_CLEAR(s->looked);
    Py_CLEAR(s->immutable);
    Py_CLEAR(s->owner_name);
    for (int i = 0; i < PY_UFUNCS; i++) {
        Py_CLEAR(s->ufunc[i]);
        Py_CLEAR(s->call[i]);
    }
    for (int i = 0; i < PY_OPTIONS; i++) Py_CLEAR(s->option_name[i]);
    for (int i = 0; i < PY_RUN_FIELDS; i++) Py_CLEAR(s->run_field[i]);
    lop_rules_switch(s->rules, NULL, 0); /* their memory goes; operators may still be alive */
    s->ctx.costs = NULL;
    Py_CLEAR(s->process_off);
    Py_CLEAR(s->process_costs);
    Py_CLEAR(s->off);
    Py_CLEAR(s->costs);
    for (int i = 0; i < PY_MAXKINDS; i++) Py_CLEAR(s->type[i]);
    for (int i = 0; i < 4; i++) Py_CLEAR(s->view[i]);
    forget_matrices(s);
    return 0;
}

static void free_module(void *module) {
    py_state *s = PyModule_GetState(module) ? state(module) : NULL;
    if (!s) return;
    clear_module(module);
    *(py_state **)PyModule_GetState(module) = NULL;
    py_state_unref(s);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, exec_module},
#if PY_VERSION_HEX >= 0x030c0000
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
#if PY_VERSION_HEX >= 0x030d0000
    {Py_mod_gil, Py_MOD_GIL_USED},
#endif
    {0, NULL}};

struct PyModuleDef py_module_def = {.m_base = PyModuleDef_HEAD_INIT,
                                    .m_name = "_core",
                                    .m_doc = "The C core of pylinop.",
                                    .m_size = sizeof(py_state *),
                                    .m_methods = functions,
                                    .m_slots = slots,
                                    .m_traverse = traverse_module,
                                    .m_clear = clear_module,
                                    .m_free = free_module};

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void) { return PyModuleDef_Init(&py_module_def); }
