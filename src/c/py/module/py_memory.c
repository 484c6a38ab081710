/* py_memory.c: large results begin where a cache line does. NumPy's memory begins 16 bytes behind a
 * page, so that each vector of 64 bytes that is written lies in two lines: products with few terms
 * took up to 1.4 times as long (2026-11-27). The memory is a block of base.h, a line more of it,
 * whose address is kept before the first element, so that the next result of its size has it when
 * this one is freed; the array owns it as any other. */
#include "py/module/py.h"

#include <string.h>

enum { LINE = 64 /* bytes */, LARGE = 1 << 14 /* elements */ };

static PyObject *in_lines; /* our handler, as NumPy takes it */

static void *on_line(char *whole) {
    if (!whole) return NULL;
    char *at = whole + LINE - ((uintptr_t)whole & (LINE - 1));
    memcpy(at - sizeof whole, &whole, sizeof whole);
    return at;
}
static char *whole_of(void *at) {
    char *whole;
    memcpy(&whole, (char *)at - sizeof whole, sizeof whole);
    return whole;
}

static void *block_of(size_t bytes) {
    void *block = lop_block(bytes);
    return block || !lop_spares_free() ? block : lop_block(bytes);
}
static void *line_malloc(void *none, size_t size) {
    (void)none;
    return size > SIZE_MAX - LINE ? NULL : on_line(block_of(size + LINE));
}
static void *line_calloc(void *none, size_t count, size_t each) {
    (void)none;
    if (each && count > (SIZE_MAX - LINE) / each) return NULL;
    void *at = line_malloc(NULL, count * each);
    if (at) memset(at, 0, count * each);
    return at;
}
static void line_free(void *none, void *at, size_t size) {
    (void)none;
    (void)size;
    if (at) lop_block_free(whole_of(at));
}
static void *line_realloc(void *none, void *at, size_t size) { /* ndarray.resize */
    if (!at) return line_malloc(none, size);
    if (size > SIZE_MAX - LINE) return NULL;
    char *whole = whole_of(at);
    const size_t from = (size_t)((char *)at - whole);
    whole = lop_block_resize(whole, size + LINE);
    if (!whole) return NULL;
    char *to = whole + LINE - ((uintptr_t)whole & (LINE - 1));
    memmove(to, whole + from, size);
    return on_line(whole);
}

static PyDataMem_Handler handler = {
    "pylinop", 1, {NULL, line_malloc, line_calloc, line_realloc, line_free}};

int py_memory_open(void) {
    if (in_lines) return 0;
    in_lines = PyCapsule_New(&handler, "mem_handler", NULL);
    return in_lines ? 0 : -1;
}

PyArrayObject *py_new_array(int n, const npy_intp *dim, int typenum) {
    double count = 1;
    for (int i = 0; i < n; i++) count *= (double)dim[i];
    PyObject *before = count >= LARGE ? PyDataMem_GetHandler() : NULL;
    if (count >= LARGE && !before) return NULL;
    if (before != PyDataMem_DefaultHandler) { /* small, or somebody has said whose memory */
        Py_XDECREF(before);
        return (PyArrayObject *)PyArray_SimpleNew(n, dim, typenum);
    }
    PyObject *was = PyDataMem_SetHandler(in_lines);
    Py_DECREF(before);
    if (!was) return NULL;
    PyObject *made = PyArray_SimpleNew(n, dim, typenum);
    PyObject *ours = PyDataMem_SetHandler(was);
    Py_DECREF(was);
    if (!ours) Py_CLEAR(made);
    Py_XDECREF(ours);
    return (PyArrayObject *)made;
}
