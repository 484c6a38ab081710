/* py_config.c: what C reads of pl.config: for the process, or for the context of the caller.
 *
 * `with pl.config(...)` sets a context variable. It is read only while a block of that kind lives
 * somewhere in the process (s->locals); else the process's values stand in s->options already.
 * Where another thread may have run since (a hook, a copy), they are read again. */
#include "py.h"

#include "kernels/k_blas.h"

/* Plans depend on fft alone so far: one version a value, so that plans of both are kept. */
static void use(py_state *s, bool fft, bool provenance) {
    s->options.fft = fft;
    s->options_version = fft ? 0 : 1;
    s->provenance = provenance;
}

/* One option of a context: -1 where it says nothing. */
static int local(PyObject *options, PyObject *name) {
    PyObject *value = PyDict_GetItemWithError(options, name);
    return value ? value == Py_True : -1;
}

void py_config_read(py_state *s) {
    PyObject *options = NULL, *type, *value, *trace;
    int fft = -1, provenance = -1;
    PyErr_Fetch(&type, &value, &trace);
    if (s->config && PyContextVar_Get(s->config, NULL, &options) == 0 && options &&
        PyDict_Check(options)) {
        fft = local(options, s->fft_name);
        provenance = local(options, s->provenance_name);
    }
    Py_XDECREF(options);
    PyErr_Restore(type, value, trace);
    use(s, fft < 0 ? s->process_fft : fft, provenance < 0 ? s->process_provenance : provenance);
}

/* _options(fft, provenance, store_limit, threads): the process's values; threads 0: as they are. */
PyObject *py_config_options(py_state *s, PyObject *args) {
    int fft, provenance, threads;
    long long limit;
    if (!PyArg_ParseTuple(args, "ppLi:_options", &fft, &provenance, &limit, &threads)) return NULL;
    s->process_fft = fft != 0;
    s->process_provenance = provenance != 0;
    s->store.limit = limit;
    if (threads > 0) lopk_set_threads(threads);
    py_config_read(s);
    Py_RETURN_NONE;
}

/* _watch(variable, change): so many more (or fewer) contexts have options of their own. */
PyObject *py_config_watch(py_state *s, PyObject *args) {
    PyObject *variable;
    int change;
    if (!PyArg_ParseTuple(args, "Oi:_watch", &variable, &change)) return NULL;
    if (!s->fft_name) s->fft_name = PyUnicode_InternFromString("fft");
    if (!s->provenance_name) s->provenance_name = PyUnicode_InternFromString("provenance");
    if (!s->fft_name || !s->provenance_name) return NULL;
    Py_XSETREF(s->config, Py_NewRef(variable));
    s->locals += change;
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
