/* emit.h: what the ops may do while a plan is made: ask for slots, append steps. Never plan.h.
 *
 * A slot is a place for one array: a leaf, a temporary, the result, or a derived value (spectrum,
 * factor). A step is a kernel call on slots; it runs once per batch element of its output. */
#ifndef LOP_EMIT_H
#define LOP_EMIT_H

#include "kernels/common/k_threads.h"
#include "node.h"

enum { LOP_MAXARG = 18 };

typedef struct lop_emit lop_emit;
typedef struct lop_step lop_step;

/* The least reciprocal condition number that the solves of a run have noted (INFINITY: none), and
 * the least of those that are below the rounding unit of their dtype. */
typedef struct lop_near {
    double known, told;
} lop_near;

/* One kernel call: argument 0 is the output; the inputs follow. `scratch` has the bytes asked for
 * and is 64-byte aligned. Temporaries' content on entry is undefined. */
typedef struct lop_call {
    const lop_step *step;
    const lop_mat *a[LOP_MAXARG];
    void *scratch;
    lop_err *err;
    /* LOP_STEP_BATCH, LOP_STEP_GROUP: how many further batch elements, and the element strides of
     * a[0], a[1] and, of groups and LOP_STEP_EACH, a[2]; LOP_STEP_SOLVES: how many further ones the
     * columns are. */
    int64_t more, y_step, x_step, z_step;
    lop_near
        *near; /* where solves note how near their matrix is to a singular one; NULL: nowhere */
    unsigned char *failed; /* LOP_STEP_GROUP: `fail`'s flags of those elements, for run to set */
    /* LOP_STEP_GROUP: flags of those elements: to be run are those that are set, or those that are
     * not. NULL: all of them. */
    const unsigned char *only;
    bool only_set;
    const lopk_team *team; /* threads for long loops, and who may stop them: CALLBACK then; NULL */
} lop_call;
/* One batch element to be run; its arguments are the caller's to fill in. */
static inline void lop_call_open(lop_call *c, const lop_step *step, void *scratch, lop_err *err) {
    c->step = step;
    c->scratch = scratch;
    c->err = err;
    c->more = c->y_step = c->x_step = c->z_step = 0;
    c->failed = NULL;
    c->only = NULL;
    c->only_set = false;
    c->near = NULL;
    c->team = NULL;
}
/* Is element e of a group to be left as it is, as another branch has it? */
static inline bool lop_call_leaves(const lop_call *c, int64_t e) {
    return c->only && (c->only[e] != 0) != c->only_set;
}
/* For one that solves: the reciprocal condition number of its matrix, as far as it is known (1 and
 * NaN: it is not). The least of a run that is below the rounding unit `eps` of its dtype is told to
 * the user; the least of all stands in explanations. */
static inline void lop_call_near(const lop_call *c, double rcond, double eps) {
    if (!c->near || !(rcond < 1)) return;
    if (rcond < c->near->known) c->near->known = rcond;
    if (rcond < eps && rcond < c->near->told) c->near->told = rcond;
}
typedef lop_status (*lop_run)(const lop_call *call);

enum {
    LOP_STEP_COLUMNS = 1, /* linear in argument 1: a batch of vectors may be run as one matrix */
    /* Linear in argument 2: a batch of vectors may be run as one matrix where argument 1 is the
     * same for all; argument 0 then has its rows one after another, and call->more is set. */
    LOP_STEP_SOLVES = 16384,
    LOP_STEP_INPLACE = 2,  /* argument 1 may be argument 0 */
    LOP_STEP_QUIET = 8,    /* its `fail` contradicts no assumption: not counted as a fallback */
    LOP_STEP_GEMM = 16,    /* runs at gemm's rate */
    LOP_STEP_BATCH = 4,    /* run reads call->more: the last batch dimension may come as one call */
    LOP_STEP_SUM = 64,     /* argument 0 is the sum of the two others, of one dtype */
    LOP_STEP_SCALES = 128, /* argument 0 is argument 1 times attr.re + i attr.im */
    LOP_STEP_FOREIGN = 256,   /* a prepare step whose value begins with a lop_foreign */
    LOP_STEP_HUSHED = 2048,   /* of a fast branch: what it solves with is not what was asked for */
    LOP_STEP_STARTS = 8192,   /* all of argument 0, from its last one on: a sum may go on there */
    LOP_STEP_EACH = 4096,     /* with LOP_STEP_BATCH: argument 2 may move along it too, by z_step */
    LOP_STEP_MIRRORS = 32768, /* argument 0 is the upper triangle of argument 1, and it mirrored */
    /* Of argument 1 the upper triangle alone is read where it succeeds; attr.i[1] is 1, of a
     * Hermitian matrix 2, where nothing else of it is there to be read. */
    LOP_STEP_HALVES = 65536,
    LOP_STEP_GATE = 131072,    /* it escapes where the mask that is argument 1 is set */
    LOP_STEP_OUTWARD = 262144, /* of a check: it escapes from the fast branch around that one */
    LOP_STEP_WHOLE = 524288,   /* what it finds singular was asked about, in a fast branch too */
    LOP_STEP_GROUP = 32, /* it always comes so, of arguments 0 to 2; run sets call->failed itself */
    LOP_STEP_ACCUMULATES = 512, /* adds to argument 0, which something has written: see `adds` */
    /* Writes a block of argument 0 alone: what argument 1 has, at row attr.i[0], column attr.i[1]
     * (where argument 0 is one column, row by row at element attr.i[0]); with LOP_STEP_BATCH its
     * arguments 1 on are the batch elements attr.i[0] on. */
    LOP_STEP_PLACES = 1024,
};

/* What a derived value begins with that owns something outside the core: zeroed before the step
 * runs. `release` is called under the caller's lock, `bytes` counts for the store's bound. */
typedef struct lop_foreign {
    void *object; /* NULL: none */
    int64_t bytes;
    void (*release)(void *object);
} lop_foreign;

struct lop_step {
    const char *name;
    lop_run run;
    int n;               /* arguments, the output included */
    int arg[LOP_MAXARG]; /* slots */
    lop_attr attr;
    int flags;
    /* Of a product: NULL, or what instead adds attr.re + i attr.im times it to argument 0, with
     * scratch for one of its rows (such a step then ACCUMULATES); of a SUM alone: what subtracts.
     * With an argument more it STARTS: argument 0 is that one (seen transposed where attr.i[1] is
     * 1) and the product. Their names. See fuse_sums.c. */
    lop_run adds, subs;
    const char *adds_name, *subs_name;
    const int64_t *data; /* what attr has no room for: ndata numbers, the plan's own */
    int ndata;
    int numbers; /* coefficients among them: behind the data there is a place for each */
    size_t scratch;
    double flops, bytes; /* for the whole batch */
    /* Guarded branches, each batch element for itself. `fail`: a mask slot (-1: none) set where run
     * says SINGULAR, instead of failing. `when`: a mask slot; the step runs only where the mask is
     * `when_set`. The mask is written before it is read: a forward branch. Of a step whose batch is
     * not the mask's, all run where any flag is set. */
    int fail, when;
    bool when_set;
    /* A forward label: where run says SINGULAR, the mask `escape` is set for the whole batch and
     * the plan goes on at step `escape_to`. -1: none. */
    int escape, escape_to;
    int late;    /* fallback steps: the mask that decides whether they run; -1 on the main path */
    int later;   /* steps of a fallback within a fallback: its mask; -1: none */
    int derived; /* index of the derived value this step prepares; -1: a run step */
    uint64_t
        serves; /* derived values, one bit each, that alone need this step; 0: it always runs */
    const lop_node *origin; /* borrowed from the plan */
};

/* The slot that holds an array node's value (lowered before its users). */
int lop_emit_value(lop_emit *e, const lop_node *array);
bool lop_emit_knows(const lop_emit *e, const lop_node *array); /* has it a slot now? */
lop_dtype lop_slot_dtype(const lop_emit *e, int slot);
/* Rows, columns, batch elements of a slot. */
void lop_slot_sizes(const lop_emit *e, int slot, int64_t *m, int64_t *n, int64_t *batch);
static inline double lop_slot_elements(const lop_emit *e, int slot) { /* all of them */
    int64_t m, n, batch;
    lop_slot_sizes(e, slot, &m, &n, &batch);
    return (double)m * (double)n * (double)batch;
}
/* A temporary (-1 on failure; the status is in *st). */
int lop_emit_temp(lop_emit *e, lop_dtype dt, int core, const lop_shape *shape, lop_status *st);
/* The shape for a temporary: the batch of slot `like`, then m, n (core 2). */
lop_shape lop_emit_shape(const lop_emit *e, int like, int64_t m, int64_t n);
/* The slot itself when the dtype is right, else a temporary with the cast. */
int lop_emit_cast(lop_emit *e, int slot, lop_dtype dt, lop_status *st);
/* Appends run(out, in...). The step may be filled further until the next is appended; NULL: no
 * memory. */
lop_step *lop_emit_step(lop_emit *e, const char *name, lop_run run, int out, int nin,
                        const int *in);
/* Gives the step appended last (a prepare step too) a copy of n numbers of its own. */
lop_status lop_emit_data(lop_emit *e, const int64_t *data, int n) LOP_MUST_CHECK;
/* A coefficient of which the parts are the bits of the words `word` and word + 1 of a step's data;
 * `num` is its entry in the plan's coefficients. */
typedef struct lop_data_number {
    int word, num;
} lop_data_number;
enum { LOP_NUMBERED = 1100 }; /* words at most, where there are such */
/* The same with `many` coefficients among the n numbers, which are given anew before each run. */
lop_status lop_emit_data_numbers(lop_emit *e, const int64_t *data, int n,
                                 const lop_data_number *number, int many) LOP_MUST_CHECK;
static inline lop_data_number lop_data_number_at(const lop_step *s, int i) {
    const int64_t place = s->data[s->ndata + i];
    return (lop_data_number){(int)(place >> 16), (int)(place & 0xffff)};
}
/* Appends a prepare step: `bytes` of memory made once from the inputs and used again while they
 * have not changed. Gives the slot, whose lop_mat is bytes x 1 of uint8. `flags`, scratch as any
 * step. */
int lop_emit_derived(lop_emit *e, const char *name, lop_run run, size_t bytes, int nin,
                     const int *in, const lop_attr *attr, size_t scratch, double flops,
                     lop_status *st);
/* The same of a step with data (lop_emit_data). */
int lop_emit_derived_data(lop_emit *e, const char *name, lop_run run, size_t bytes, int nin,
                          const int *in, const lop_attr *attr, const int64_t *data, int ndata,
                          size_t scratch, double flops, lop_status *st);
/* The same with coefficients among the data (lop_emit_data_numbers). */
int lop_emit_derived_numbers(lop_emit *e, const char *name, lop_run run, size_t bytes, int nin,
                             const int *in, const int64_t *data, int ndata,
                             const lop_data_number *number, int many, double flops, lop_status *st);
/* The same of a value of several parts, of which attr.i[3] names those asked for, a bit each: a
 * step that is there makes these too. `bytes`, scratch and flops are those of all the parts that it
 * then makes together, by `size`. */
typedef struct lop_parts {
    size_t bytes, scratch;
    double flops;
} lop_parts;
int lop_emit_derived_parts(lop_emit *e, const char *name, lop_run run, int nin, const int *in,
                           const lop_attr *attr, lop_parts (*size)(const lop_attr *attr),
                           lop_status *st);
/* The same of one input, made for the whole last batch dimension at once (LOP_STEP_GROUP). */
int lop_emit_derived_group(lop_emit *e, const char *name, lop_run run, size_t bytes, int in,
                           double flops, lop_status *st);
/* The derived value in `slot` begins with a lop_foreign. */
void lop_emit_foreign(lop_emit *e, int slot);
/* Its step may find its first input, in C order, at the start of the memory that it fills. */
void lop_emit_onto(lop_emit *e, int slot);
void lop_emit_halves(lop_emit *e, int slot); /* the factor reads a triangle: LOP_STEP_HALVES */
/* Its step is a blocked factorisation of n x n, which runs at gemm's rate where n is not small; the
 * slot may be -1. */
void lop_emit_blocked(lop_emit *e, int slot, int64_t n);
enum { LOP_BLOCKED = 64 };                                /* rows from which LAPACK's blocks pay */
int lop_emit_mask(lop_emit *e, int like, lop_status *st); /* one flag a batch element of `like` */
/* Is there a fast branch around the one whose check is emitted? */
bool lop_emit_is_within(const lop_emit *e);
/* Makes slot `out` another name for `in`'s memory (same number of elements, read in C order). False
 * when it cannot be (the caller then copies). */
bool lop_emit_alias(lop_emit *e, int out, int in);
/* Makes slot `part` the block of slot `whole` that begins at (row, col): who reads or writes the
 * one does so in the other. `part` is a temporary that has no other name; dtype and batch agree.
 * False when it cannot be (the caller then copies). */
bool lop_emit_part(lop_emit *e, int part, int whole, int64_t row, int64_t col);
/* The same of the step just appended, which copies that block: it becomes a mere change of strides
 * where that can be. */
void lop_emit_seen(lop_emit *e, int part, int whole, int64_t row, int64_t col);
/* Appends a copy of `in`, which has the same shape and dtype. */
lop_step *lop_emit_copy(lop_emit *e, int out, int in);
/* Makes a temporary the elements of `whole` (in C order) from `at` on, row by row, one batch
 * element after the other; of a whole of bytes `at` counts elements of the temporary's own. False
 * when it cannot be (the caller then copies). */
bool lop_emit_window(lop_emit *e, int slot, int whole, int64_t at);
/* Makes the step just appended, which transposes `in` into `out`, a mere change of strides where
 * that can be: `out` (or, where `out` is the result, `in`) becomes the other's memory, transposed.
 */
void lop_emit_flip(lop_emit *e, int out, int in);
/* The kernel wants this slot in C order: a leaf is bound so. */
void lop_emit_c_order(lop_emit *e, int slot);
/* An input in C order: the slot, or a copy of it where it was written into a larger value
 * (lop_emit_part), whose rows are longer. -1: no memory, in *st; so is a slot of -1. */
int lop_emit_in_c_order(lop_emit *e, int slot, lop_status *st);
lop_err *lop_emit_err(lop_emit *e);
/* In lower of an op with `check`: the slot that check filled, and the mask of where it failed. */
void lop_emit_checked(const lop_emit *e, int *value, int *mask);
bool lop_emit_fft(const lop_emit *e); /* config: may products go through the FFT? */
int64_t
lop_emit_fft_min(const lop_emit *e); /* 0, or the size from which they do, whatever was measured */

#endif
