/* exec.c: the loop over steps. Frames are in frame.c, derived values lie in derived_cache.c.
 *
 * A step runs once per batch element of its output; inputs broadcast (stride 0). A vector batch of
 * a step that is linear in columns runs as one matrix. Prepare steps first fingerprint their
 * inputs (derived_content.c): the retained value serves again when 128 bits over all the bytes
 * agree, else it is made anew. */
#include "frame.h"

#include "kernels/dense/k_blas.h"
#include "kernels/common/kernels.h"

#include <math.h>
#include <string.h>
#include <time.h>

typedef struct sweep {
    int nb, nargs;
    int64_t solved; /* batch elements that one call solves for */
    int64_t dim[LOP_MAXDIM], stride[LOP_MAXARG][LOP_MAXDIM];
    lop_mat mat[LOP_MAXARG];
} sweep;

/* May the last batch dimension of argument j be the columns of a matrix that is written to? */
static bool has_columns(const sweep *w, int j) {
    const lop_mat *m = &w->mat[j];
    const int64_t len = w->dim[w->nb - 1], stride = w->stride[j][w->nb - 1];
    return stride >= 1 && (stride >= m->m * m->rs || m->rs >= len * stride);
}

/* A batch of vectors as one matrix: the last batch dimension becomes the columns. */
static void merge_columns(const lop_step *s, sweep *w) {
    const int d = w->nb - 1, x = s->flags & LOP_STEP_SOLVES ? 2 : 1; /* the vectors */
    if (!(s->flags & (LOP_STEP_COLUMNS | LOP_STEP_SOLVES)) || d < 0 || s->when >= 0) return;
    const int64_t len = w->dim[d];
    if (len < 2 || w->mat[0].n != 1 || w->mat[x].n != 1 || (x == 1 && s->fail >= 0)) return;
    for (int j = 1; j < w->nargs; j++)
        if (j != x && w->stride[j][d]) return;
    if (!has_columns(w, 0) || !has_columns(w, x)) return;
    if (x == 2) { /* it solves where the result lies */
        if (w->mat[0].rs != 1 || w->stride[0][d] < w->mat[0].m) return;
        w->solved = len;
    }
    for (int j = 0; j <= x; j += x) {
        w->mat[j].n = len;
        w->mat[j].cs = w->stride[j][d];
    }
    w->nb = d;
}

static void sweep_open(const lop_frame *f, const lop_step *s, sweep *w) {
    const lop_slot *out = &f->plan->slot[s->arg[0]];
    w->nb = out->shape.ndim - out->core;
    w->nargs = s->n;
    w->solved = 1;
    for (int d = 0; d < w->nb; d++) w->dim[d] = out->shape.dim[d];
    for (int j = 0; j < s->n; j++) {
        w->mat[j] = f->mat[s->arg[j]];
        for (int d = 0; d < w->nb; d++)
            w->stride[j][d] = lop_frame_batch_stride(f, s->arg[j], d, w->nb);
    }
    merge_columns(s, w);
}

/* A pile puts matrices into their places of the batch: one call for all, under a mask too. */
static bool takes_all(const lop_step *s) {
    return (s->flags & LOP_STEP_BATCH) && (s->flags & LOP_STEP_PLACES);
}
/* Does the step's mask speak of the batch elements of its result one by one? */
static bool one_by_one(const lop_frame *f, const lop_step *s) {
    if (s->when < 0 || s->derived >= 0 || takes_all(s)) return false;
    const lop_slot *mask = &f->plan->slot[s->when], *out = &f->plan->slot[s->arg[0]];
    bool alike = mask->shape.ndim == out->shape.ndim - out->core;
    for (int i = 0; alike && i < mask->shape.ndim; i++)
        alike = mask->shape.dim[i] == out->shape.dim[i];
    return alike;
}
/* Does the step's mask forbid all of these batch elements? A mask of another batch counts as a
 * whole. */
static bool forbidden(const lop_frame *f, const lop_step *s, int64_t first, int64_t n) {
    if (s->when < 0) return false;
    const unsigned char *flag = f->mat[s->when].p;
    if (one_by_one(f, s))
        flag += first;
    else
        n = f->plan->slot[s->when].batch;
    for (int64_t i = 0; i < n; i++)
        if ((flag[i] != 0) == s->when_set) return false;
    return true;
}

/* What a fast branch solves with may be singular where what was asked about is not. */
static lop_status outcome(const lop_step *s, lop_status st, lop_err *err) {
    if (st != LOP_RANK || !(s->flags & LOP_STEP_HUSHED) || (s->flags & LOP_STEP_WHOLE)) return st;
    if (err) lop_err_open(err);
    return LOP_SINGULAR;
}

static void count_fallbacks(lop_frame *f, const lop_step *s, const unsigned char *flag,
                            int64_t first, int64_t n) {
    for (int64_t i = 0; i < n && !(s->flags & LOP_STEP_QUIET); i++) {
        if (!flag[first + i]) continue;
        f->fallbacks++;
        lop_frame_note_failed(f, s->fail, first + i);
    }
}

static lop_status guarded(lop_frame *f, const lop_step *s, lop_call *call, int64_t element,
                          lop_err *err) {
    unsigned char *flag = s->fail >= 0 ? f->mat[s->fail].p : NULL;
    const bool group = (s->flags & LOP_STEP_GROUP) != 0;
    const int64_t some = group || (s->flags & LOP_STEP_SOLVES) ? call->more + 1 : 1;
    element *= some;
    if (forbidden(f, s, element, some)) { /* its own mask is read all the same */
        if (flag) memset(flag + element, 0, (size_t)some);
        return LOP_OK;
    }
    if (group) {
        call->failed = flag ? flag + element : NULL;
        call->only = one_by_one(f, s) ? (unsigned char *)f->mat[s->when].p + element : NULL;
        call->only_set = s->when_set;
    }
    lop_status st = outcome(s, s->run(call), err);
    if (flag) {
        if (!call->failed) memset(flag + element, st == LOP_SINGULAR, (size_t)some);
        count_fallbacks(f, s, flag, element, some);
        if (st == LOP_SINGULAR) st = LOP_OK;
    }
    if (st < 0 && err) err->batch = element;
    return st;
}

/* The last batch dimension as one call, where only arguments 0 and 1 (or 2, of LOP_STEP_EACH) move
 * along it, or the step has asked for it. */
static void merge_batch(const lop_step *s, sweep *w, lop_call *call) {
    int d = w->nb - 1;
    const bool group = (s->flags & LOP_STEP_GROUP) != 0, masked = s->when >= 0 || s->fail >= 0;
    if (d < 0 || (!group && !takes_all(s) && (!(s->flags & LOP_STEP_BATCH) || masked))) return;
    const int still = s->flags & LOP_STEP_EACH ? 3 : 2; /* from here on arguments stay */
    for (int j = still; j < w->nargs && !group; j++)
        if (w->stride[j][d]) return;
    call->z_step = (group || still == 3) && w->nargs > 2 ? w->stride[2][d] : 0;
    call->more = w->dim[d] - 1;
    call->y_step = w->stride[0][d];
    call->x_step = w->stride[1][d];
    w->nb = d;
}

/* Is this step for the elements of a mask that has none? */
static bool for_none(const lop_frame *f, const lop_step *s) {
    if (s->when < 0 || !s->when_set || s->fail >= 0) return false;
    const unsigned char *flag = f->mat[s->when].p;
    for (int64_t i = 0; i < f->plan->slot[s->when].batch; i++)
        if (flag[i]) return false;
    return true;
}

/* Is the run to stop? Asked between steps or batch elements, but not at each of many small ones. */
static bool stops(const lop_frame *f, const lop_step *s, int64_t number) {
    const int64_t batch = f->plan->slot[s->arg[0]].batch;
    if (!f->team.stop || ((number & 63) && s->flops < 1e6 * (double)batch)) return false;
    return f->team.stop(f->team.user);
}

static lop_status run_batch(lop_frame *f, const lop_step *s, void *scratch, lop_err *err) {
    sweep w;
    lop_mat mat[LOP_MAXARG];
    lop_call call;
    if (for_none(f, s)) return LOP_OK;
    sweep_open(f, s, &w);
    int64_t at[LOP_MAXDIM] = {0}, element = 0;
    for (int d = 0; d < w.nb; d++)
        if (w.dim[d] == 0) return LOP_OK;
    lop_call_open(&call, s, scratch, err);
    call.near = s->flags & LOP_STEP_HUSHED ? NULL : &f->near;
    for (int j = 0; j < s->n; j++) {
        mat[j] = w.mat[j];
        call.a[j] = &mat[j];
    }
    merge_batch(s, &w, &call);
    if (s->flags & LOP_STEP_SOLVES) call.more = w.solved - 1;
    call.team = &f->team;
    for (;; element++) {
        if (element && stops(f, s, element)) return LOP_CALLBACK;
        for (int j = 0; j < s->n; j++) {
            int64_t offset = 0;
            for (int d = 0; d < w.nb; d++) offset += at[d] * w.stride[j][d];
            mat[j].p = (char *)w.mat[j].p + offset * (int64_t)lop_dtype_size(mat[j].dt);
        }
        lop_status st = guarded(f, s, &call, element, err);
        if (st != LOP_OK) return st;
        int d = w.nb - 1;
        while (d >= 0 && ++at[d] == w.dim[d]) at[d--] = 0;
        if (d < 0) return LOP_OK;
    }
}

static lop_status run_step(lop_frame *f, const lop_step *s, void *scratch, lop_err *err) {
    if (f->plan->batched) return run_batch(f, s, scratch, err);
    lop_call call;
    lop_call_open(&call, s, scratch, err);
    call.near = s->flags & LOP_STEP_HUSHED ? NULL : &f->near;
    call.team = &f->team;
    for (int j = 0; j < s->n; j++) {
        if (f->plan->slot[s->arg[j]].batch == 0) return LOP_OK;
        call.a[j] = &f->mat[s->arg[j]];
    }
    if (s->fail >= 0 || s->when >= 0) return guarded(f, s, &call, 0, err);
    return outcome(s, s->run(&call), err);
}

enum {
    MANY = 1024
}; /* prepared values before it are looked at, so that plans run in linear time */

/* A value of the same key and content that another step has just made in this call: it is in this
 * frame alone, so that its references may be counted here. */
static lop_blob *made_before(const lop_frame *f, int derived, lop_fingerprint fingerprint) {
    for (int i = derived < MANY ? 0 : derived - MANY; i < f->plan->nderive && i < derived; i++) {
        lop_blob *b = f->blob[i];
        if (!b || b->published || b->key != f->key[derived]) continue;
        if (!lop_same_content(b, fingerprint)) continue;
        b->refs++;
        return b;
    }
    return NULL;
}

/* A value that has just been made, or found, serves the prepare steps of the same key behind it
 * that go by the content of the same leaves: what they alone need is not run. */
static void serve_others(lop_frame *f, int derived) {
    const lop_plan *p = f->plan;
    lop_blob *b = f->blob[derived];
    const uint64_t leaves = lop_found_by(f, derived);
    for (int i = derived + 1; leaves && i < p->nderive && i < LOP_KEEP; i++) {
        if (f->key[i] != f->key[derived] || (f->hit >> i & 1) || lop_found_by(f, i) != leaves)
            continue;
        if (f->blob[i] != b) {
            if (f->stale[i]) continue; /* a frame that runs again */
            f->stale[i] = f->blob[i];
            f->blob[i] = b;
            b->refs++;
        }
        f->hit |= (uint64_t)1 << i;
    }
}

static lop_status no_room(const lop_step *s, int64_t bytes, lop_err *err) {
    return lop_fail(err, LOP_NOMEM, "the %lld bytes that %s needs could not be had",
                    (long long)bytes, s->name);
}

/* Takes the memory of derived values that are made where their input lies; once a frame. */
static lop_status room_onto(lop_frame *f, lop_err *err) {
    const lop_plan *p = f->plan;
    for (int i = 0; i < p->nslot; i++) {
        const int d = p->slot[i].onto;
        if (d < 0 || f->onto[d] || (f->hit >> d & 1)) continue;
        f->onto[d] = lop_alloc(p->ctx, (size_t)p->derive[d].bytes);
        if (!f->onto[d]) return no_room(&p->step[p->derive[d].step], p->derive[d].bytes, err);
    }
    return LOP_OK;
}

/* Does the step's mask leave some batch elements out? What it reads has been written of the others
 * alone, and what it makes of all of it is of use for those alone. */
static bool leaves_some_out(const lop_frame *f, const lop_step *s) {
    const unsigned char *flag = s->when >= 0 ? f->mat[s->when].p : NULL;
    for (int64_t i = 0; flag && i < f->plan->slot[s->when].batch; i++)
        if ((flag[i] != 0) != s->when_set) return true;
    return false;
}

/* Finds or makes the derived value of a prepare step; afterwards its slot points to the data. */
static lop_status prepare(lop_frame *f, const lop_step *s, void *scratch, lop_err *err) {
    const lop_derive *d = &f->plan->derive[s->derived];
    const lop_slot *slot = &f->plan->slot[s->arg[0]];
    lop_blob **blob = &f->blob[s->derived];
    if (forbidden(f, s, 0, 1)) return LOP_OK;
    lop_mat *m = &f->mat[s->arg[0]];
    bool hit = s->derived < LOP_KEEP && (f->hit >> s->derived & 1) != 0;
    *m = (lop_mat){NULL, d->bytes, 1, 1, 1, LOP_u8};
    lop_fingerprint fingerprint = {0, 0};
    if (!hit) fingerprint = lop_content(f, s->derived);
    f->found = hit || lop_same_content(*blob, fingerprint);
    if (f->found) {
        m->p = (*blob)->data;
        if (s->derived < LOP_KEEP) f->hit |= (uint64_t)1 << s->derived;
        return LOP_OK;
    }
    lop_blob *same = made_before(f, s->derived, fingerprint);
    if (same) {
        f->found = true;
        m->p = same->data;
        f->stale[s->derived] = *blob;
        *blob = same;
        return LOP_OK;
    }
    int64_t bytes;
    if (!lop_mul_ok(d->bytes, slot->batch, &bytes)) return lop_fail(err, LOP_OVERFLOW, NULL);
    lop_blob *fresh = lop_calloc(f->plan->ctx, 1, sizeof *fresh);
    void *data = f->onto[s->derived];
    if (fresh && !data) data = lop_alloc(f->plan->ctx, (size_t)bytes);
    if (!fresh || !data) {
        lop_free(f->plan->ctx, fresh);
        return no_room(s, bytes, err);
    }
    f->onto[s->derived] = NULL;
    *fresh = (lop_blob){.refs = 1,
                        .bytes = bytes,
                        .key = f->key[s->derived],
                        .fingerprint = fingerprint,
                        .data = data};
    fresh->owner = f->owner;
    for (int i = 0; i < f->plan->nleaf; i++)
        fresh->mask |= lop_leaf_bit(f->key[f->plan->nderive + i]);
    m->p = data;
    fresh->foreign = (s->flags & LOP_STEP_FOREIGN) != 0;
    if (fresh->foreign) memset(data, 0, (size_t)bytes);
    lop_status st = run_step(f, s, scratch, err);
    if (st != LOP_OK) { /* a step that failed has made nothing foreign */
        lop_free(f->plan->ctx, data);
        lop_free(f->plan->ctx, fresh);
        return st;
    }
    if (fresh->foreign) fresh->bytes += ((const lop_foreign *)data)->bytes;
    /* An assumption that failed on the way here must be told of at each call, so the value is not
     * to be found by its leaves; nor is one that is not made of all of them. */
    const bool partly = leaves_some_out(f, s);
    if (lop_found_by(f, s->derived) && (f->fallbacks || partly))
        fresh->fingerprint.lo = ~fresh->fingerprint.lo;
    if (f->stale[s->derived]) /* a frame that runs again made it before: that value was its own */
        lop_blob_unref(f->plan->ctx, *blob);
    else
        f->stale[s->derived] = *blob;
    *blob = fresh;
    if (s->derived < LOP_KEEP) f->hit |= (uint64_t)1 << s->derived;
    if (!partly) serve_others(f, s->derived);
    return st;
}

static bool is_set(const lop_frame *f, int mask) {
    const unsigned char *flag = f->mat[mask].p;
    for (int64_t i = 0; i < f->plan->slot[mask].batch; i++)
        if (flag[i]) return true;
    return false;
}

/* May it take so many bytes more? */
static bool fits(const lop_frame *f, size_t more) {
    int64_t sum = lop_plan_memory(f->plan);
    for (int i = 0; i < 2; i++)
        if (f->reserve[i] && !lop_add_ok(sum, f->plan->reserve[i], &sum)) return false;
    return more <= INT64_MAX && lop_add_ok(sum, (int64_t)more, &sum) && sum <= f->limit;
}

/* Is the fallback branch that the step belongs to needed? Then its memory is taken; likewise that
 * of a fallback branch within it. */
static lop_status enter_late(lop_frame *f, const lop_step *s, bool *skip, lop_err *err) {
    *skip = true;
    for (int i = 0; i < 2; i++) {
        const int mask = i ? s->later : s->late;
        if (mask < 0) break;
        *skip = !is_set(f, mask);
        if (*skip) break;
        if (f->reserve[i]) continue;
        const size_t scratch = f->plan->late_scratch[i],
                     room = (size_t)f->plan->reserve[i] + scratch;
        if (f->limit < INT64_MAX && !fits(f, room))
            return lop_fail(err, LOP_LIMIT,
                            "the fast way was not accurate enough here, and the safe way needs "
                            "%lld bytes more; pl.config(memory_limit=...) allows %lld",
                            (long long)room, (long long)f->limit);
        f->reserve_block[i] = scratch > SIZE_MAX / 4 || room > SIZE_MAX / 2
                                  ? NULL
                                  : lop_alloc(f->plan->ctx, room + 64);
        if (!f->reserve_block[i])
            return lop_fail(err, LOP_NOMEM,
                            "the fast way was not accurate enough here, and the %lld bytes that "
                            "the safe way needs could not be had",
                            (long long)room);
        f->reserve[i] = (unsigned char *)(((uintptr_t)f->reserve_block[i] + 63) & ~(uintptr_t)63);
        lop_frame_place(f);
    }
    return LOP_OK;
}

static double seconds(void) {
    struct timespec t;
    return timespec_get(&t, TIME_UTC) ? (double)t.tv_sec + 1e-9 * (double)t.tv_nsec : 0;
}

/* The step with the coefficients among its data as they are in this run. */
static lop_status do_numbered(lop_frame *f, const lop_step *s, void *scratch, lop_err *err) {
    int64_t words[LOP_NUMBERED];
    lop_step own = *s;
    memcpy(words, s->data, (size_t)s->ndata * sizeof *words);
    lop_step_numbers(s, f->number, words);
    own.data = words;
    return s->derived >= 0 ? prepare(f, &own, scratch, err) : run_step(f, &own, scratch, err);
}

static lop_status do_step(lop_frame *f, const lop_step *s, void *scratch, lop_err *err) {
    lop_step own;
    if (f->alone && (s->flags & LOP_STEP_FOREIGN)) return LOP_UNABLE;
    if (f->number && s->numbers) return do_numbered(f, s, scratch, err);
    if (f->number && s->attr.num) {
        own = *s;
        own.attr.re = f->number[s->attr.num].re;
        own.attr.im = f->number[s->attr.num].im;
        s = &own;
    }
    return s->derived >= 0 ? prepare(f, s, scratch, err) : run_step(f, s, scratch, err);
}

/* A step that its mask passes by has not run, as one whose value was found. */
static lop_status timed(lop_frame *f, const lop_step *s, void *scratch, lop_err *err) {
    const bool passed = s->when >= 0 && forbidden(f, s, 0, f->plan->slot[s->when].batch);
    double start = seconds();
    f->found = false;
    lop_status st = do_step(f, s, scratch, err);
    if (!f->found && !passed) f->times[s - f->plan->step] = seconds() - start;
    return st;
}

lop_status lop_exec(lop_frame *f, lop_err *err) {
    const lop_plan *p = f->plan;
    void *scratch = f->work + p->workspace;
    for (int i = 0; f->times && i < p->nstep; i++) f->times[i] = -1;
    if (p->nderive && !f->again) lop_find_hits(f);
    f->again = true;
    f->near = (lop_near){INFINITY, INFINITY};
    lop_status room = p->nderive ? room_onto(f, err) : LOP_OK;
    if (room != LOP_OK) return room;
    lop_frame_place(f);
    for (int i = 0; i < p->nstep; i++) {
        const lop_step *s = &p->step[i];
        if (!s->run) continue; /* a transpose by strides */
        if (s->serves && !(s->serves & ~f->hit)) continue;
        lop_status st = i && stops(f, s, i) ? LOP_CALLBACK : LOP_OK;
        bool skip = false;
        if (st == LOP_OK && s->late >= 0) st = enter_late(f, s, &skip, err);
        if (skip) continue;
        const int level = s->later >= 0 ? 1 : 0;
        void *own = s->late >= 0 ? f->reserve[level] + p->reserve[level] : scratch;
        if (st == LOP_OK) st = (f->times ? timed : do_step)(f, s, own, err);
        if (st == LOP_OK) continue;
        if (st == LOP_SINGULAR && s->escape >= 0) {
            memset(f->mat[s->escape].p, 1, (size_t)p->slot[s->escape].batch);
            if (err) lop_err_open(err);
            i = s->escape_to - 1;
            continue;
        }
        if (err) {
            err->step = i;
            if (err->status == LOP_OK) (void)lop_fail(err, st, NULL);
        }
        return st;
    }
    return LOP_OK;
}
