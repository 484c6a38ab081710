/* py_tape.h: programs without Python. While a program runs in Python, what it computes is written
 * down (py_tape.c); from that src/pylinop/_programs/freezing.py makes a tape (exec/tape.h), which
 * is kept by the program's text, dtypes, shapes and layouts (py_tape_table.c) and run without the
 * GIL.
 *
 *   py_tape_key    without the GIL: what is asked, as bytes
 *   py_tape_call   without the GIL: runs the tape of that key, if there is one */
#ifndef LOP_PY_TAPE_H
#define LOP_PY_TAPE_H

#include "exec/tape.h"
#include "py/lazy/py_lazy.h"

enum { PY_TAPE_ARRAYS = 64, PY_TAPE_KEY = 4096 };

/* -- py_tape.c: with the GIL. Where a list is set for this thread: what has just been computed is
 * added to it: 0, or -1 with an exception. */
int py_tape_plan(const py_run *r, const lop_frame *f);
int py_tape_value(py_lazy *a);
int py_tape_halves(const py_state *s, PyArrayObject *a, bool agree); /* its halves do, or do not */
extern PyMethodDef py_tape_methods[];

/* -- py_tape_table.c */
typedef struct py_tape_key_t {
    int64_t size;
    uint64_t hash;
    _Alignas(8) unsigned char bytes[PY_TAPE_KEY];
} py_tape_key_t;

/* An array of a caller's as a tape binds it; strides in bytes, NULL for C order. False: none of the
 * dtypes f32 to c128 (NO_DTYPE), or not one that loops can read where it lies. */
bool py_tape_buf(lop_buf *b, lop_dtype dt, void *data, int64_t ndim, const int64_t *shape,
                 const int64_t *strides);
/* The key of a program, so many bytes, on arrays as they are bound: the layout of each is C order,
 * Fortran order, or another, which is copied. False: too large to be kept. */
bool py_tape_key(py_tape_key_t *key, const void *text, int64_t size, const lop_buf *buf,
                 int64_t count);

/* The arrays of a call: buf[nargs + nout]. True: done. False: there is no tape, or it is not for
 * these values. No exception is set; without the GIL. */
bool py_tape_call(const py_tape_key_t *key, const lop_buf *buf, int nargs, int nout);
/* Is there one, that calls may run now? Is there one of a key's bytes? */
bool py_tape_there(const py_tape_key_t *key);
bool py_tape_holds(const void *key, int64_t size);
/* With the GIL: takes the tape over. 0, or -1 with an exception. */
int py_tape_put(py_state *s, const void *key, int64_t size, lop_tape *tape, uint64_t of_epoch);
PyObject *py_tape_counts(void);        /* (tapes, calls, misses): new */
void py_tape_epoch(void);              /* the process's options have changed */
void py_tape_locals(int64_t contexts); /* so many contexts have options of their own */
#endif
