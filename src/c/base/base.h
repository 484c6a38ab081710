/* base.h: status codes, the error struct, the context with its injected allocator, checked sizes.
 *
 * Ownership words used in every header: *borrowed* (valid while the argument lives), *retained*
 * (the callee takes its own reference), *owned* (the caller must release).
 *
 * No function of the core prints, exits or aborts; each that can fail returns lop_status. Negative
 * is an error and its text lies in the caller's lop_err; positive is "not here" (UNABLE, NOMATCH).
 */
#ifndef LOP_BASE_H
#define LOP_BASE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum lop_status {
#define LOP_STATUS(name, value, exc, text) LOP_##name = (value),
#include "status.def"
#undef LOP_STATUS
} lop_status;

#define LOP_MUST_CHECK __attribute__((warn_unused_result))

enum { LOP_ERR_TEXT = 2048 }; /* a faulty plan's steps are part of it */

/* The caller's room for what went wrong. May be NULL everywhere. `step` is the plan step that
 * failed
 * (-1: none), `batch` the flat batch element (-1: none). */
typedef struct lop_err {
    lop_status status;
    int64_t step, batch;
    char text[LOP_ERR_TEXT];
} lop_err;

/* Fills *err (unless NULL) and returns `status`, so that `return lop_fail(err, LOP_DIM, ...)`
 * works. */
lop_status lop_fail(lop_err *err, lop_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The room made ready; its text is not cleared, which would cost more than a small product. */
static inline void lop_err_open(lop_err *err) {
    err->status = (lop_status)0;
    err->step = err->batch = -1;
    err->text[0] = 0;
}
const char *lop_status_name(lop_status status);
const char *lop_status_exception(lop_status status); /* NULL for success and UNABLE, NOMATCH */

/* On an error or "not here", leave for the label `done` with the status in a local `st`. */
#define LOP_TRY(expr)                                                                              \
    do {                                                                                           \
        st = (expr);                                                                               \
        if (st != LOP_OK) goto done;                                                               \
    } while (0)

/* Three-valued answers. */
typedef enum lop_truth { LOP_FALSE = 0, LOP_TRUE = 1, LOP_UNKNOWN = 2 } lop_truth;
static inline lop_truth lop_and(lop_truth a, lop_truth b) {
    if (a == LOP_FALSE || b == LOP_FALSE) return LOP_FALSE;
    return (a == LOP_TRUE && b == LOP_TRUE) ? LOP_TRUE : LOP_UNKNOWN;
}
static inline lop_truth lop_or(lop_truth a, lop_truth b) {
    if (a == LOP_TRUE || b == LOP_TRUE) return LOP_TRUE;
    return (a == LOP_FALSE && b == LOP_FALSE) ? LOP_FALSE : LOP_UNKNOWN;
}
static inline lop_truth lop_not(lop_truth a) {
    return a == LOP_UNKNOWN ? a : (lop_truth)(1 - (int)a);
}

/* The context: one per module instance (or test). It owns the allocator hooks and the counters;
 * there is no other state. Everything made with a context must be released before it. */
typedef struct lop_hooks {
    void *(*alloc)(void *user, size_t bytes);
    void *(*realloc)(void *user, void *block, size_t bytes);
    void (*free)(void *user, void *block);
    void *user;
} lop_hooks;

enum { LOP_CHECK_CHEAP, LOP_CHECK_NONE, LOP_CHECK_FULL };

typedef struct lop_ctx {
    lop_hooks hooks;
    _Atomic int64_t live;          /* blocks alive: tests require 0 at the end */
    uint64_t next_serial;          /* leaf serials, never used again; under the GIL */
    const struct lop_costs *costs; /* borrowed: prices; NULL: the shipped ones (costs.h) */
    int check;                     /* of assumed properties: LOP_CHECK_* */
    bool mixed;                    /* solves by factors of half the precision, refined */
    bool check_plans;              /* every plan is checked after every pass (plan_check.c) */
    int64_t memory_limit;          /* bytes that a plan may take; INT64_MAX: as many as there are */
    int toeplitz; /* from which size on Toeplitz solves go their own way; 0: by price */
    const struct lop_sparse
        *sparse;             /* borrowed: the sparse solver outside; NULL: none (sparse_solver.h) */
    struct lop_coefs *coefs; /* while a plan is made for a class of coefficients; else NULL */
    int alike; /* from how many on equal blocks go as a batch; 0: as measured (tests set few) */
} lop_ctx;

void lop_ctx_init(lop_ctx *ctx, const lop_hooks *hooks); /* hooks NULL: malloc */
/* Memory of the C library's malloc for contexts without hooks and for results: freed blocks of 64
 * KiB on are kept, all together up to a bound, for the next of their size. Thread-safe; NULL where
 * there is none. What is kept: given back (was there any?), bounded, counted. */
void *lop_block(size_t bytes);
void lop_block_free(void *block); /* takes NULL */
void *lop_block_resize(void *block, size_t bytes);
bool lop_spares_free(void);
void lop_spares_bound(int64_t bytes);
int64_t lop_spares_bytes(void);
/* bytes 0 gives a valid block; NULL only when out of memory. Thread-safe when the hooks are. */
void *lop_alloc(lop_ctx *ctx, size_t bytes);
void *lop_calloc(lop_ctx *ctx, size_t count, size_t size); /* zeroed, the product checked */
void *lop_realloc(lop_ctx *ctx, void *block, size_t bytes);
void lop_free(lop_ctx *ctx, void *block); /* takes NULL */

/* Checked sizes: false on overflow (of int64) or negative input. */
static inline bool lop_mul_ok(int64_t a, int64_t b, int64_t *out) {
    return a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, out);
}
static inline bool lop_add_ok(int64_t a, int64_t b, int64_t *out) {
    return !__builtin_add_overflow(a, b, out);
}

/* Seeded generator (splitmix64) for tests and random instances. */
typedef struct lop_rng {
    uint64_t state;
} lop_rng;
uint64_t lop_rng_next(lop_rng *rng);
double lop_rng_normal(lop_rng *rng);                         /* roughly normal, bounded */
int64_t lop_rng_range(lop_rng *rng, int64_t lo, int64_t hi); /* lo <= . < hi */

#ifdef NDEBUG
#define LOP_ASSERT(x) ((void)0)
#else
#include <assert.h>
#define LOP_ASSERT(x) assert(x)
#endif

#endif
