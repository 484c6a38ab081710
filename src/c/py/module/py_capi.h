/* py_capi.h: the face of pylinop for compiled callers (numba, SciPy's LowLevelCallable, C):
 * programs as text on memory of the caller's. The functions are in `pylinop._core.__pyx_capi__`, by
 * name, as capsules whose name is the function's type.
 *
 * They may be called from any thread, with or without the GIL. The first calls of a program with
 * arrays of certain dtypes, shapes and layouts (C order, Fortran order, other) take it while they
 * run in Python; from then on such a program runs from C alone, several at once, as long as its
 * tape is kept (exec/tape.h): the least recently used of 256 goes. */
#ifndef LOP_PY_CAPI_H
#define LOP_PY_CAPI_H

#include <stdint.h>

#define LOP_CAPI_VERSION 2

enum { LOP_CAPI_DIMS = 64 }; /* the most dimensions of an array */

enum { /* what lop_capi_call returns */
       LOP_CAPI_OK = 0,
       LOP_CAPI_WRONG_ARRAY = 1, /* a dtype or a number of dimensions that there is not */
       LOP_CAPI_RAISED = 2       /* a Python exception; lop_capi_error has its text */
};

/* Strided memory. Six words of 64 bits, so that a caller may lay them out in an array of integers.
 */
typedef struct lop_capi_array {
    void *data;
    int64_t typecode; /* 'f', 'd', 'F', 'D', or the code of another of NumPy's numeric dtypes */
    int64_t ndim;
    const int64_t *shape;
    const int64_t *strides; /* in bytes */
    int64_t reserved;       /* 0 */
} lop_capi_array;

/* Runs a program, `len` bytes of text (pylinop's adapters make them), on `nargs` arrays, and writes
 * its `nout` values into arrays of the right shapes. Nothing is kept of them after the call. */
int32_t lop_capi_call(const char *program, int64_t len, int64_t nargs, const lop_capi_array *args,
                      int64_t nout, const lop_capi_array *out, int32_t flags);

/* The shapes of a program's `nout` values, of those of its arguments, whose data is not read: of
 * value k the number of dimensions into ndim[k], its sizes into shape[k * LOP_CAPI_DIMS]. A text
 * holds no sizes: one program is for arrays of any. Takes the GIL. */
int32_t lop_capi_shapes(const char *program, int64_t len, int64_t nargs, const lop_capi_array *args,
                        int64_t nout, int64_t *ndim, int64_t *shape);

/* The text of this thread's last error, cut to `size` bytes and closed by a zero; its length. */
int64_t lop_capi_error(char *text, int64_t size);

int32_t lop_capi_version(void);

/* 1: the call runs from C alone, if its values allow it; 0: it takes the GIL. */
int32_t lop_capi_frozen(const char *program, int64_t len, int64_t nargs, const lop_capi_array *args,
                        int64_t nout, const lop_capi_array *out);

#endif
