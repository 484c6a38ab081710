/* py_source_line.c: which line of the user's built a thing: code object and offset, from which file
 * and line are read when an error needs them. */
#include "py.h"

/* Frames of our own package do not count: the user's line is the first one outside. */
static bool is_ours(const py_state *s, PyCodeObject *code) {
    const char *home = PyBytes_AS_STRING(s->home);
    Py_ssize_t n = PyBytes_GET_SIZE(s->home);
    PyObject *file = code->co_filename;
    return PyUnicode_IS_COMPACT_ASCII(file) && PyUnicode_GET_LENGTH(file) > n &&
           !memcmp(PyUnicode_DATA(file), home, (size_t)n);
}

/* There is none, or no memory for its object: the line is not kept then, and all else goes on. */
static void no_frame(bool pending) {
    if (!pending) PyErr_Clear();
}

void py_here(py_state *s, PyCodeObject **at, int *lasti) {
    py_config_here(s);
    if (!s->provenance) return;
    if (s->placed) {
        *at = (PyCodeObject *)Py_XNewRef(s->code);
        *lasti = s->lasti;
        return;
    }
    const bool pending = PyErr_Occurred() != NULL;
    PyFrameObject *frame = PyEval_GetFrame(); /* borrowed */
    if (!frame) return no_frame(pending);
    PyCodeObject *code = PyFrame_GetCode(frame);
    if (!is_ours(s, code)) {
        *at = code;
        *lasti = PyFrame_GetLasti(frame);
        return;
    }
    Py_INCREF(frame);
    while (frame && is_ours(s, code)) {
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        Py_DECREF(code);
        frame = back;
        code = frame ? PyFrame_GetCode(frame) : NULL;
    }
    if (!frame) no_frame(pending);
    if (frame) *lasti = PyFrame_GetLasti(frame);
    *at = code;
    Py_XDECREF(frame);
}

PyObject *py_origin(PyCodeObject *code, int lasti) {
    if (!code) Py_RETURN_NONE;
    return Py_BuildValue("(Oi)", code->co_filename, PyCode_Addr2Line(code, lasti));
}
