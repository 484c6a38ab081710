/* exec.h: runs a plan. One loop over steps; no decisions but the plan's own branches.
 *
 *   lop_frame_open   under the lock: memory, and the derived values that may still hold (retained)
 *   lop_frame_bind   under the lock: one array a leaf, then the result
 *   lop_exec         without it: fingerprints, prepare steps whose inputs changed, run steps
 *   lop_frame_close  under the lock: publishes what was derived, frees
 */
#ifndef LOP_EXEC_H
#define LOP_EXEC_H

#include "plan/plan.h"

/* A derived value: counted, immutable once published. */
typedef struct lop_blob {
    int64_t refs, bytes;
    uint64_t key, mask;      /* mask: lop_leaf_bit of the leaves in its plan */
    uint64_t owner;          /* whose it is (lop_store_release); 0: nobody's */
    bool published, foreign; /* foreign: `data` begins with a lop_foreign */
    lop_fingerprint fingerprint;
    void *data;
    struct lop_blob *chain, *newer, *older; /* in the store: of one bucket; by last use */
} lop_blob;

/* All derived values of a context by key. Their bytes are bounded; the least recently used go
 * first. */
typedef struct lop_store {
    lop_ctx *ctx;
    lop_blob **bucket; /* room of them, a power of two */
    lop_blob *newest, *oldest;
    int n, room;
    int64_t bytes, limit; /* of what has no owner */
    int64_t held;         /* bytes of what has one: it stays until that is released */
    uint64_t hits, misses;
} lop_store;
void lop_store_init(lop_store *store, lop_ctx *ctx, int64_t limit);
void lop_store_clear(lop_store *store);
void lop_store_bound(lop_store *store, int64_t limit);   /* drops what is above it */
lop_blob *lop_store_get(lop_store *store, uint64_t key); /* retained; NULL: not there */
/* Publishes (retains) a value; an older one of the same key goes, then the least recently used
 * until the bound holds. What has an owner neither counts nor goes. */
void lop_store_put(lop_store *store, lop_blob *b);
/* Drops all values whose mask meets this one: those of certain leaves, and a few others. */
void lop_store_drop(lop_store *store, uint64_t mask);
int64_t lop_store_owned(const lop_store *store, uint64_t owner); /* bytes held for this one */
void lop_store_release(lop_store *store, uint64_t owner);        /* drops all of them */
void lop_blob_unref(lop_ctx *ctx, lop_blob *b);                  /* takes NULL */

enum { LOP_FRAME_SLOTS = 24, LOP_FRAME_BYTES = 4096 };

typedef struct lop_frame {
    const lop_plan *plan;
    const uint64_t *key;      /* lop_plan_keys */
    const lop_number *number; /* the values of plan->coefs; NULL: those in the steps */
    lop_store *store;
    lop_buf *leaf;   /* nleaf + 1: the result is the last */
    lop_mat *mat;    /* nslot */
    lop_blob **blob; /* nderive in use, then nderive that were found stale */
    lop_blob **stale;
    lop_fingerprint *fingerprint; /* nderive of the derived values, nleaf of the leaves */
    void **onto; /* nderive: memory that was taken before its derived value is made, or NULL */
    uint64_t fingerprinted, hit; /* bits of fingerprinted leaves, of derived values found */
    uint64_t frozen;             /* set by the caller: leaves whose memory cannot change */
    uint64_t owner;              /* set by the caller: whose the derived values are; 0: nobody's */
    bool alone;          /* set by the caller: a step that is not ours ends the run, UNABLE */
    bool again;          /* it has run: derived values serve again, and no leaf is read anew */
    unsigned char *work; /* workspace then scratch */
    void *block;         /* what was allocated, NULL when the inline room sufficed */
    unsigned char *reserve[2]; /* of fallback branches, of those within them: taken when entered */
    void *reserve_block[2];
    int64_t limit;     /* of the context's memory when it was opened */
    int64_t fallbacks; /* guarded branches taken */
    /* NULL, or a byte an element of the result: did an assumption fail on its way? Of all, where
     * the element cannot be told. */
    unsigned char *failed;
    bool all_failed;
    lop_near near;  /* of the last run */
    lopk_team team; /* the threads that steps may use; the caller sets `stop` before a run */
    double *times;  /* NULL, or borrowed: seconds of each step, -1 of those that did not run */
    bool found;     /* the last prepare step has found its value */
    lop_mat inline_mat[LOP_FRAME_SLOTS];
    lop_buf inline_leaf[6];
    lop_blob *inline_blob[8];
    void *inline_onto[4];
    lop_fingerprint inline_fingerprint[10];
    _Alignas(64) unsigned char inline_work[LOP_FRAME_BYTES];
} lop_frame;

/* `key` (borrowed until the frame is closed): lop_plan_keys of the leaves to be bound, then the
 * numbers of plan->coefs, as lop_number; NULL: those the plan was made with. */
lop_status lop_frame_open(lop_frame *f, const lop_plan *plan, const uint64_t *key, lop_store *store,
                          lop_err *err) LOP_MUST_CHECK;
/* `i` == nleaf binds the result. The buf is checked against the plan's dtype and shape: DIM or
 * DTYPE; where the slot says need_c it must lie in C order. */
lop_status lop_frame_bind(lop_frame *f, int i, const lop_buf *buf, lop_err *err) LOP_MUST_CHECK;
/* May be called again, with the right-hand side or the result at another place (lop_frame_point,
 * the layout that was bound): the leaves are taken to be what they were at the first run. */
lop_status lop_exec(lop_frame *f, lop_err *err) LOP_MUST_CHECK;
static inline void lop_frame_point(lop_frame *f, int i, void *p) {
    const lop_plan *plan = f->plan;
    f->leaf[i].p = p;
    f->mat[i < plan->nleaf ? plan->leaf[i].slot : plan->out].p = p;
}
/* Writes NaN over the elements of the result on whose way an assumption failed. */
void lop_frame_spoil(lop_frame *f);
void lop_frame_close(lop_frame *f);

#endif
