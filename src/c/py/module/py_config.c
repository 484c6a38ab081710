/* py_config.c: what C reads of pl.config: for the process, or for the context of the caller.
 *
 * `with pl.config(...)` sets a context variable. It is read only while a block of that kind lives
 * somewhere in the process (s->locals); else the process's values stand in s->options already.
 * Where another thread may have run since (a hook, a copy), they are read again. */
#include "py/run/py_tape.h"

#include "kernels/dense/k_blas.h"

enum { COSTS = 8 + (int)sizeof(double) * 4 };

/* The number that Python gave the bytes: different bytes, different numbers. 0: None. */
static int64_t number_of(PyObject *bytes) {
    int32_t id = 0;
    if (bytes) memcpy(&id, PyBytes_AS_STRING(bytes), sizeof id);
    return id;
}

/* Rules switched off, a bit each, behind the number. */
static void use_off(py_state *s, PyObject *off) {
    if (off == s->off) return;
    Py_XSETREF(s->off, Py_XNewRef(off));
    lop_rules_switch(s->rules, off ? (unsigned char *)PyBytes_AS_STRING(off) + 4 : NULL,
                     off ? (int)PyBytes_GET_SIZE(off) - 4 : 0);
}

/* The cost table: number, version, four figures. */
static void use_costs(py_state *s, PyObject *costs) {
    if (costs == s->costs) return;
    Py_XSETREF(s->costs, Py_XNewRef(costs));
    s->ctx.costs = costs ? &s->own_costs : NULL;
    if (!costs) return;
    const char *at = PyBytes_AS_STRING(costs);
    int32_t version;
    double figure[4];
    memcpy(&version, at + 4, sizeof version);
    memcpy(figure, at + 8, sizeof figure);
    s->own_costs = (lop_costs){version, figure[0], figure[1], figure[2], figure[3]};
}

/* What plans depend on as one number, so that plans of all settings are kept side by side: fft,
 * which rules are off (20 bits), which costs (12), what is tested (2), mixed precision, whether
 * plans are checked (those made before were not), how often the rules were changed. Python bounds
 * them. */
static int64_t version_of(const py_state *s) {
    return (s->options.fft ? 0 : 1) | number_of(s->off) << 1 | number_of(s->costs) << 21 |
           (int64_t)s->ctx.check << 33 | (int64_t)s->ctx.mixed << 35 |
           (int64_t)s->ctx.check_plans << 36 | s->generation << 37;
}

typedef struct settings {
    bool fft, provenance, mixed, check_plans, verify;
    int check;
    int64_t limit;
    PyObject *off, *costs, *record; /* borrowed; NULL: none */
} settings;

static void use(py_state *s, const settings *set) {
    s->options.fft = set->fft;
    s->provenance = set->provenance;
    s->ctx.check = set->check;
    s->ctx.mixed = set->mixed;
    s->ctx.check_plans = set->check_plans;
    s->ctx.memory_limit = set->limit;
    use_off(s, set->off);
    use_costs(s, set->costs);
    if (set->record != s->record) Py_XSETREF(s->record, Py_XNewRef(set->record));
    s->verify = set->verify;
    s->watched = s->record || s->verify || s->tape;
    s->options_version = version_of(s);
}

/* One option of a context: NULL where it says nothing. Borrowed. */
static PyObject *local(py_state *s, PyObject *options, enum py_option which) {
    return PyDict_GetItemWithError(options, s->option_name[which]);
}

static bool is_mask(PyObject *o) { return PyBytes_CheckExact(o) && PyBytes_GET_SIZE(o) > 4; }
static bool is_costs(PyObject *o) { return PyBytes_CheckExact(o) && PyBytes_GET_SIZE(o) == COSTS; }

/* None: no limit. Python bounds it. */
static int64_t limit_of(PyObject *o) { return o == Py_None ? INT64_MAX : PyLong_AsLongLong(o); }

void py_config_read(py_state *s) {
    PyObject *options = NULL, *type, *value, *trace, *o;
    settings set = {s->process_fft,    s->process_provenance,
                    s->process_mixed,  s->process_check_plans,
                    s->process_verify, s->process_check,
                    s->process_limit,  s->process_off,
                    s->process_costs,  NULL};
    PyErr_Fetch(&type, &value, &trace);
    if (s->config && PyContextVar_Get(s->config, NULL, &options) == 0 && options &&
        PyDict_Check(options)) {
        if ((o = local(s, options, PY_FFT))) set.fft = o == Py_True;
        if ((o = local(s, options, PY_PROVENANCE))) set.provenance = o == Py_True;
        if ((o = local(s, options, PY_CHECK))) set.check = (int)PyLong_AsLong(o);
        if ((o = local(s, options, PY_MIXED))) set.mixed = o == Py_True;
        if ((o = local(s, options, PY_CHECK_PLANS))) set.check_plans = o == Py_True;
        if ((o = local(s, options, PY_LIMIT))) set.limit = limit_of(o);
        if ((o = local(s, options, PY_VERIFY))) set.verify = o == Py_True;
        if ((o = local(s, options, PY_OFF))) set.off = is_mask(o) ? o : NULL;
        if ((o = local(s, options, PY_COSTS))) set.costs = is_costs(o) ? o : NULL;
        if ((o = local(s, options, PY_RECORD))) set.record = PyList_CheckExact(o) ? o : NULL;
    }
    PyErr_Restore(type, value, trace);
    use(s, &set);
    Py_XDECREF(options);
}

/* What tapes depend on. */
typedef struct process_options {
    int64_t flag[6];
    const void *off, *costs;
} process_options;
static process_options shared_of(const py_state *s) {
    return (process_options){{s->process_fft, s->process_mixed, s->process_check_plans,
                              s->process_verify, s->process_check, s->process_limit},
                             s->process_off,
                             s->process_costs};
}

/* _options(fft, provenance, store_limit, threads, check, mixed, memory_limit, off, costs,
 * check_plans, verify): the process's values; threads 0: as they are; off, costs: bytes or None. */
PyObject *py_config_options(py_state *s, PyObject *args) {
    int fft, provenance, threads, check, mixed, check_plans, verify;
    long long limit;
    PyObject *most, *off, *costs;
    if (!PyArg_ParseTuple(args, "ppLiipOOOpp:_options", &fft, &provenance, &limit, &threads, &check,
                          &mixed, &most, &off, &costs, &check_plans, &verify))
        return NULL;
    if ((off != Py_None && !is_mask(off)) || (costs != Py_None && !is_costs(costs)))
        return PyErr_Format(PyExc_ValueError, "_options takes bytes of another length");
    const process_options before = shared_of(s);
    s->process_fft = fft != 0;
    s->process_provenance = provenance != 0;
    s->process_check = check;
    s->process_mixed = mixed != 0;
    s->process_check_plans = check_plans != 0;
    s->process_verify = verify != 0;
    s->process_limit = limit_of(most);
    if (PyErr_Occurred()) return NULL;
    lop_store_bound(&s->store, limit);
    lop_spares_bound(limit);
    Py_XSETREF(s->process_off, off == Py_None ? NULL : Py_NewRef(off));
    Py_XSETREF(s->process_costs, costs == Py_None ? NULL : Py_NewRef(costs));
    if (threads > 0) lopk_set_threads(threads);
    const process_options after = shared_of(s);
    if (threads > 0 || memcmp(&before, &after, sizeof after) != 0) py_tape_epoch();
    py_config_read(s);
    Py_RETURN_NONE;
}

/* _watch(variable, change): so many more (or fewer) contexts have options of their own. */
PyObject *py_config_watch(py_state *s, PyObject *args) {
    PyObject *variable;
    int change;
    if (!PyArg_ParseTuple(args, "Oi:_watch", &variable, &change)) return NULL;
    static const char *const name[] = {"fft",         "provenance", "_off",   "_costs",
                                       "_record",     "_check",     "_mixed", "memory_limit",
                                       "check_plans", "verify"};
    for (int i = 0; i < PY_OPTIONS; i++)
        if (!s->option_name[i] && !(s->option_name[i] = PyUnicode_InternFromString(name[i])))
            return NULL;
    Py_XSETREF(s->config, Py_NewRef(variable));
    s->locals += change;
    py_tape_locals(s->locals);
    py_config_read(s);
    Py_RETURN_NONE;
}

/* py_apply under the caller's options. A copy of x may let other threads run: it is made first. */
PyObject *py_apply_here(py_state *s, py_op *self, PyArrayObject *x, int mode, bool right, bool vec,
                        PyObject *out) {
    if (!s->locals) return py_apply(s, self, x, mode, right, vec, out);
    PyArrayObject *xn = py_dtype(x) == LOP_NO_DTYPE ? (PyArrayObject *)Py_NewRef(x)
                                                    : py_normal(x, vec ? 1 : 2, false);
    if (!xn) return NULL;
    py_config_read(s);
    PyObject *r = py_apply(s, self, xn, mode, right, vec, out);
    Py_DECREF(xn);
    return r;
}
