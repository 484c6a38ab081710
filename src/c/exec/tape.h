/* tape.h: a program as a list of plans and of small functions of arrays, run from C: no Python, no
 * lock, by several threads at once.
 *
 *   arguments, constants, results of steps --slots--> step after step --> results
 *
 * A step is a plan, whose leaves lie in slots and whose coefficients are numbers in slots, or a
 * function of arrays. A tape is immutable but for its spare workspace. What is not as usual (a
 * matrix is singular, an assumption failed, the plan does not fit these coefficients) ends the run
 * with UNABLE: the caller has another way, which says what was wrong. */
#ifndef LOP_TAPE_H
#define LOP_TAPE_H

#include "exec.h"
#include "tape_proof.h"

#include <stdatomic.h>

typedef enum lop_tape_what {
    LOP_TAPE_PLAN,
    LOP_TAPE_COPY, /* the same elements, in the dtype of the result; of complex ones the real part
                      where that is real */
    LOP_TAPE_ADD,
    LOP_TAPE_SUBTRACT,
    LOP_TAPE_MULTIPLY,
    LOP_TAPE_DIVIDE,
    LOP_TAPE_NEGATIVE,
    LOP_TAPE_CONJ,
    LOP_TAPE_SUM,    /* along `axis` as NumPy's, bit for bit; -1: of all */
    LOP_TAPE_LOGDET, /* of a determinant m 2^e, as the pair (m, e) */
    LOP_TAPE_LOGABS,
    LOP_TAPE_HALVES, /* nothing: do the halves of a real matrix agree, if axis is 1, or not, if it
                        is 0, as the plans behind it suppose? Else UNABLE */
    LOP_TAPE_LOOP,   /* elementwise, by a loop of a ufunc's */
    LOP_TAPE_CHOOSE, /* of the second and third where the first, a bool, says */
    LOP_TAPE_SUMS,   /* along the middle one of three dimensions as NumPy's */
    LOP_TAPE_REDUCE, /* likewise, by a loop of a ufunc's of two arguments, from the first one on */
    LOP_TAPE_RUN,    /* likewise, with each result on the way: in the shape of the argument */
    LOP_TAPE_FUNCTIONS
} lop_tape_what;

enum { LOP_TAPE_LOOP_ARGS = 3 };

/* An inner loop of a ufunc: arguments and result, count, bytes from element to element, data. */
typedef struct lop_tape_loop {
    void (*run)(char **at, const intptr_t *count, const intptr_t *step, void *data);
    void *data;
} lop_tape_loop;

/* Some of the elements of a slot. */
typedef struct lop_tape_view {
    int slot;
    int64_t offset; /* bytes */
    lop_buf buf;    /* its p is not looked at */
} lop_tape_view;

/* A coefficient: factor times the number there, or factor over it; slot -1: the factor. */
typedef struct lop_tape_source {
    lop_tape_view at;
    double factor;
    bool over;
} lop_tape_source;

typedef struct lop_tape_step {
    lop_tape_what what;
    lop_plan *plan; /* owned */
    uint64_t *key;  /* owned: lop_plan_keys, then room for the numbers of plan->coefs */
    int nargs, nsources, axis;
    lop_tape_view *arg; /* of a plan: its leaves */
    lop_tape_source *source;
    lop_tape_loop loop; /* borrowed of what lives as long as the process */
    lop_tape_view out;
} lop_tape_step;

typedef struct lop_tape_slot {
    int64_t bytes, place; /* place: in the workspace; -1: an argument, or a constant */
    void *constant;       /* owned; NULL: none */
} lop_tape_slot;

typedef struct lop_tape {
    lop_ctx *ctx;
    int nin, nslot, nstep, nout;
    lop_tape_slot *slot; /* the first nin are the arguments */
    lop_tape_step *step;
    lop_tape_view *out;    /* where the results are */
    int64_t bytes, widest; /* of the workspace; of a step's keys */
    bool quiet;            /* nothing is said of matrices that are singular to working precision */
    lop_proof *proof; /* owned; NULL: none is due. Arguments that it does not hold for: UNABLE */
    _Atomic(void *) spare; /* the workspace of a run that is over */
} lop_tape;

/* Zeroed, owned by the caller: its arrays of these sizes, to be filled. */
lop_status lop_tape_new(lop_ctx *ctx, int nin, int nslot, int nstep, int nout,
                        lop_tape **out) LOP_MUST_CHECK;
/* Places the slots, and looks whether each view lies in its slot: DOMAIN. Once all is filled. */
lop_status lop_tape_close(lop_tape *tape, lop_err *err) LOP_MUST_CHECK;
/* Under the lock that plans are counted under. Takes NULL. */
void lop_tape_free(lop_tape *tape);
/* in: the arguments, laid out as they were when the tape was made; out: any strides, f32 to c128.
 * Whatever comes of it, no argument is written to; results may be where it is not OK. */
lop_status lop_tape_run(const lop_tape *tape, const lop_buf *in, const lop_buf *out,
                        lop_err *err) LOP_MUST_CHECK;

/* May a and b have bytes in common? */
bool lop_tape_meet(const lop_buf *a, const lop_buf *b);

/* tape_functions.c: out <- f(a, b); shapes broadcast. UNABLE: not for these dtypes. */
lop_status lop_tape_function(lop_tape_what what, int axis, const lop_buf *a, const lop_buf *b,
                             const lop_buf *out) LOP_MUST_CHECK;
/* Of n numbers, f32 or f64, `stride` elements apart, pairwise from zero on. */
void lop_tape_line_sum(lop_dtype dt, const char *from, int64_t n, int64_t stride, char *to);
/* tape_loops.c: likewise a step from LOP_TAPE_LOOP on, of all its arguments. UNABLE: not for these
 * dtypes, or NumPy would warn. */
lop_status lop_tape_loops(const lop_tape_step *step, const lop_buf *arg,
                          const lop_buf *out) LOP_MUST_CHECK;
/* Forgets what the processor's flags tell; would NumPy warn of what was computed since? */
void lop_tape_hush(void);
bool lop_tape_told(void);

#endif
