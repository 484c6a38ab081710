/* py_tape_table.c: the tapes of a process, by the bytes of what is asked. Its lock is held for
 * look-ups alone. A tape is counted while it runs; one that has left the table is freed with the
 * GIL, when a tape is put in, since its plans are counted under the GIL.
 *
 * Options of the process are part of each tape: where they change, all tapes are of another epoch,
 * and are made anew. Where a context has options of its own, calls go the way that reads them. */
#include "py_tape.h"

#include <pthread.h>

enum { MOST = 256, BUCKETS = 1024 };

typedef struct entry {
    struct entry *chain;
    lop_tape *tape;
    py_state *s; /* counted */
    int64_t size, refs;
    uint64_t hash, used, epoch;
    unsigned char *key;
} entry;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static entry *bucket[BUCKETS], *retired;
static int number;
static uint64_t tick;
static _Atomic uint64_t epoch, ran, missed;
static _Atomic int64_t locals;

static void before_fork(void) { (void)pthread_mutex_lock(&lock); }
static void after_fork(void) { (void)pthread_mutex_unlock(&lock); }

void py_tape_epoch(void) { atomic_fetch_add(&epoch, 1); }
void py_tape_locals(int64_t contexts) { atomic_store(&locals, contexts); }

/* -- keys */

static void key_open(py_tape_key_t *key) {
    key->size = 0;
    key->hash = 0x9e3779b97f4a7c15u;
}

/* Words of eight bytes, the last one filled with zeros. */
static bool add(py_tape_key_t *key, const void *from, int64_t size) {
    if (size < 0 || size > PY_TAPE_KEY - 8 || key->size > PY_TAPE_KEY - 8 - size) return false;
    unsigned char *to = key->bytes + key->size;
    memcpy(to, from, (size_t)size);
    const int64_t whole = (size + 7) & ~(int64_t)7;
    memset(to + size, 0, (size_t)(whole - size));
    for (int64_t i = 0; i < whole; i += 8) {
        uint64_t word;
        memcpy(&word, to + i, sizeof word);
        key->hash = (key->hash ^ word) * 0x9fb21c651e98df25u;
        key->hash ^= key->hash >> 29;
    }
    key->size += whole;
    return true;
}

/* 'C', 'F', or 'S' where it is neither. Of no matter: strides along dimensions of one element, and
 * of what has none. */
static char layout_of(const lop_buf *b) {
    int64_t next = 1;
    bool c = true, fortran = true;
    for (int i = 0; i < b->shape.ndim; i++)
        if (b->shape.dim[i] == 0) return 'C';
    for (int i = b->shape.ndim - 1; i >= 0; i--) {
        c = c && (b->shape.dim[i] == 1 || b->stride[i] == next);
        next *= b->shape.dim[i];
    }
    next = 1;
    for (int i = 0; i < b->shape.ndim; i++) {
        fortran = fortran && (b->shape.dim[i] == 1 || b->stride[i] == next);
        next *= b->shape.dim[i];
    }
    return c ? 'C' : fortran ? 'F' : 'S';
}

static bool add_array(py_tape_key_t *key, const lop_buf *b) {
    int64_t word[LOP_MAXDIM + 1];
    const char layout = layout_of(b);
    word[0] = (int64_t)b->dt | (int64_t)b->shape.ndim << 8 | (int64_t)(layout == 'F') << 16;
    for (int i = 0; i < b->shape.ndim; i++) word[i + 1] = b->shape.dim[i];
    return add(key, word, (b->shape.ndim + 1) * (int64_t)sizeof *word);
}

bool py_tape_key(py_tape_key_t *key, const void *text, int64_t size, const lop_buf *buf,
                 int64_t count) {
    key_open(key);
    bool fits = add(key, &size, sizeof size) && add(key, text, size);
    for (int64_t k = 0; fits && k < count; k++) fits = add_array(key, &buf[k]);
    return fits;
}

bool py_tape_buf(lop_buf *b, lop_dtype dt, void *data, int64_t ndim, const int64_t *shape,
                 const int64_t *strides) {
    static _Alignas(16) char nothing[16]; /* where what has no elements is said to lie */
    if (dt == LOP_NO_DTYPE || !lop_is_blas(dt) || ndim < 0 || ndim > LOP_MAXDIM) return false;
    memset(b, 0, sizeof *b);
    b->dt = dt;
    b->shape.ndim = (int)ndim;
    const int64_t size = (int64_t)lop_dtype_size(dt);
    const uintptr_t align = lop_is_complex(dt) ? (uintptr_t)size / 2 : (uintptr_t)size;
    int64_t next = 1;
    bool empty = false;
    for (int i = b->shape.ndim - 1; i >= 0; i--) {
        if (shape[i] < 0 || (strides && strides[i] % size)) return false;
        b->shape.dim[i] = shape[i];
        b->stride[i] = strides ? strides[i] / size : next;
        empty = empty || shape[i] == 0;
        if (!lop_mul_ok(next, shape[i], &next)) return false;
    }
    b->p = data || !empty ? data : nothing;
    return b->p && (uintptr_t)b->p % align == 0;
}

/* -- the table */

static entry *find(const py_tape_key_t *key) {
    entry *e = bucket[key->hash % BUCKETS];
    while (e && (e->hash != key->hash || e->size != key->size ||
                 memcmp(e->key, key->bytes, (size_t)key->size) != 0))
        e = e->chain;
    return e && e->epoch == atomic_load(&epoch) ? e : NULL;
}

bool py_tape_there(const py_tape_key_t *key) {
    (void)pthread_mutex_lock(&lock);
    const bool there = find(key) != NULL;
    (void)pthread_mutex_unlock(&lock);
    return there && !atomic_load(&locals);
}

bool py_tape_holds(const void *key, int64_t size) {
    py_tape_key_t whole;
    key_open(&whole);
    if (size % 8 || !add(&whole, key, size)) return false;
    (void)pthread_mutex_lock(&lock);
    const bool there = find(&whole) != NULL;
    (void)pthread_mutex_unlock(&lock);
    return there;
}

/* Counted; NULL: there is none. */
static entry *take(const py_tape_key_t *key) {
    (void)pthread_mutex_lock(&lock);
    entry *e = find(key);
    if (e) {
        e->refs++;
        e->used = ++tick;
    }
    (void)pthread_mutex_unlock(&lock);
    return e;
}

static void give(entry *e) {
    (void)pthread_mutex_lock(&lock);
    e->refs--;
    (void)pthread_mutex_unlock(&lock);
}

static void unlink_entry(entry *e) {
    entry **at = &bucket[e->hash % BUCKETS];
    while (*at != e) at = &(*at)->chain;
    *at = e->chain;
    e->chain = retired;
    retired = e;
    number--;
}

static entry *oldest(void) {
    entry *found = NULL;
    for (int i = 0; i < BUCKETS; i++)
        for (entry *e = bucket[i]; e; e = e->chain)
            if (!found || e->used < found->used) found = e;
    return found;
}

/* Those that have left and do not run, out of the list. Under the lock. */
static entry *idle(void) {
    entry *found = NULL;
    for (entry **at = &retired; *at;) {
        entry *e = *at;
        if (e->refs) {
            at = &e->chain;
            continue;
        }
        *at = e->chain;
        e->chain = found;
        found = e;
    }
    return found;
}

static void free_entry(entry *e) {
    lop_tape_free(e->tape);
    if (e->s) py_state_unref(e->s);
    PyMem_RawFree(e->key);
    PyMem_RawFree(e);
}

int py_tape_put(py_state *s, const void *key, int64_t size, lop_tape *tape, uint64_t of_epoch) {
    static bool ready; /* under the GIL */
    entry *e = PyMem_RawCalloc(1, sizeof *e);
    py_tape_key_t whole;
    key_open(&whole);
    if (e) e->key = PyMem_RawMalloc((size_t)size + 1);
    if (!e || !e->key || size % 8 || !add(&whole, key, size) ||
        (!ready && pthread_atfork(before_fork, after_fork, after_fork) != 0)) {
        lop_tape_free(tape);
        if (e) PyMem_RawFree(e->key);
        PyMem_RawFree(e);
        py_state_unref(s);
        return PyErr_NoMemory(), -1;
    }
    ready = true;
    memcpy(e->key, key, (size_t)size);
    e->tape = tape;
    e->s = s;
    e->size = size;
    e->hash = whole.hash;
    e->epoch = of_epoch;
    (void)pthread_mutex_lock(&lock);
    e->used = ++tick;
    for (int i = 0; i < BUCKETS; i++)
        for (entry *x = bucket[i], *next; x; x = next) {
            next = x->chain;
            const bool same =
                x->hash == e->hash && x->size == size && memcmp(x->key, key, (size_t)size) == 0;
            if (same || x->epoch != atomic_load(&epoch)) unlink_entry(x);
        }
    if (number == MOST) unlink_entry(oldest());
    e->chain = bucket[e->hash % BUCKETS];
    bucket[e->hash % BUCKETS] = e;
    number++;
    entry *gone = idle();
    (void)pthread_mutex_unlock(&lock);
    while (gone) {
        entry *next = gone->chain;
        free_entry(gone);
        gone = next;
    }
    return 0;
}

PyObject *py_tape_counts(void) {
    (void)pthread_mutex_lock(&lock);
    const int n = number;
    (void)pthread_mutex_unlock(&lock);
    return Py_BuildValue("iKKK", n, (unsigned long long)atomic_load(&ran),
                         (unsigned long long)atomic_load(&missed),
                         (unsigned long long)atomic_load(&epoch));
}

/* -- a call */

/* The array in C order, in new memory, which b then describes; NULL: none could be had. */
static void *copied(const lop_tape *t, lop_buf *b) {
    lop_buf to = *b;
    int64_t count = 1;
    for (int i = b->shape.ndim - 1; i >= 0; i--) {
        to.stride[i] = count;
        if (!lop_mul_ok(count, b->shape.dim[i], &count)) return NULL;
    }
    to.p = lop_alloc(t->ctx, (size_t)count * lop_dtype_size(b->dt));
    if (to.p && lop_tape_function(LOP_TAPE_COPY, 0, b, NULL, &to) == LOP_OK) {
        *b = to;
        return to.p;
    }
    lop_free(t->ctx, to.p);
    return NULL;
}

/* A result may lie where an argument does whose copy the tape takes: a run that fails would have
 * written to what it is then computed of without it. */
static bool is_within_result(const lop_tape *t, const lop_buf *a, const lop_buf *out) {
    for (int k = 0; k < t->nout; k++)
        if (lop_tape_meet(a, &out[k])) return true;
    return false;
}

static bool run(const lop_tape *t, const lop_buf *buf, int nargs) {
    lop_buf in[PY_TAPE_ARRAYS];
    void *copy[PY_TAPE_ARRAYS] = {NULL};
    bool fine = t->nin == nargs;
    for (int i = 0; fine && i < nargs; i++) {
        in[i] = buf[i];
        if (layout_of(&buf[i]) != 'S') continue;
        copy[i] = is_within_result(t, &buf[i], buf + nargs) ? NULL : copied(t, &in[i]);
        fine = copy[i] != NULL;
    }
    fine = fine && lop_tape_run(t, in, buf + nargs, NULL) == LOP_OK;
    for (int i = 0; i < nargs; i++) lop_free(t->ctx, copy[i]);
    return fine;
}

bool py_tape_call(const py_tape_key_t *key, const lop_buf *buf, int nargs, int nout) {
    if (atomic_load_explicit(&locals, memory_order_relaxed)) return false;
    entry *e = take(key);
    if (!e) return false;
    const bool done = e->tape->nout == nout && run(e->tape, buf, nargs);
    atomic_fetch_add(done ? &ran : &missed, 1);
    give(e);
    return done;
}
