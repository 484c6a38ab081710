/* tape.c: a tape's life, and its run. */
#include "tape.h"

#include <math.h>
#include <string.h>

enum { ALIGN = 64, MOST_SPARE = 1 << 20 }; /* bytes that a tape keeps between runs */

lop_status lop_tape_new(lop_ctx *ctx, int nin, int nslot, int nstep, int nout, lop_tape **out) {
    lop_tape *t = *out = lop_calloc(ctx, 1, sizeof *t);
    if (!t) return LOP_NOMEM;
    t->ctx = ctx;
    t->slot = lop_calloc(ctx, (size_t)nslot + 1, sizeof *t->slot);
    t->step = lop_calloc(ctx, (size_t)nstep + 1, sizeof *t->step);
    t->out = lop_calloc(ctx, (size_t)nout + 1, sizeof *t->out);
    t->nin = nin;
    t->nslot = t->slot ? nslot : 0;
    t->nstep = t->step ? nstep : 0;
    t->nout = nout;
    if (t->slot && t->step && t->out) return LOP_OK;
    lop_tape_free(t);
    *out = NULL;
    return LOP_NOMEM;
}

void lop_tape_free(lop_tape *t) {
    if (!t) return;
    for (int i = 0; i < t->nslot; i++) lop_free(t->ctx, t->slot[i].constant);
    for (int i = 0; i < t->nstep; i++) {
        lop_plan_unref(t->step[i].plan);
        lop_free(t->ctx, t->step[i].key);
        lop_free(t->ctx, t->step[i].arg);
        lop_free(t->ctx, t->step[i].source);
    }
    lop_free(t->ctx, atomic_load(&t->spare));
    lop_free(t->ctx, t->slot);
    lop_free(t->ctx, t->step);
    lop_free(t->ctx, t->out);
    lop_free(t->ctx, t->proof);
    lop_free(t->ctx, t);
}

/* -- looked through once */

/* Do the view's elements lie in its slot? */
static bool lies_within(const lop_tape *t, const lop_tape_view *v) {
    const int64_t size = (int64_t)lop_dtype_size(v->buf.dt);
    int64_t low = v->offset, high = v->offset;
    if (v->slot < 0 || v->slot >= t->nslot) return false;
    for (int d = 0; d < v->buf.shape.ndim; d++) {
        if (v->buf.shape.dim[d] == 0) return true;
        int64_t reach;
        if (__builtin_mul_overflow(v->buf.shape.dim[d] - 1, v->buf.stride[d], &reach) ||
            __builtin_mul_overflow(reach, size, &reach) ||
            __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high))
            return false;
    }
    return low >= 0 && high <= t->slot[v->slot].bytes - size;
}

/* Does nothing call Python, or what is not ours, on the way that the plan takes if nothing fails? A
 * fallback branch that does ends the run. */
static bool is_free(const lop_plan *p) {
    for (int i = 0; i < p->nstep; i++)
        if ((p->step[i].flags & LOP_STEP_FOREIGN) && p->step[i].late < 0) return false;
    return true;
}

static lop_status look_at(lop_tape *t, lop_tape_step *s, lop_err *err) {
    const lop_plan *p = s->plan;
    if (!lies_within(t, &s->out) || s->out.slot < t->nin || t->slot[s->out.slot].constant)
        return lop_fail(err, LOP_DOMAIN, "a step's result lies in no slot of its own");
    for (int i = 0; i < s->nargs; i++)
        if (!lies_within(t, &s->arg[i]))
            return lop_fail(err, LOP_DOMAIN, "argument %d of a step lies in no slot", i);
    for (int i = 0; i < s->nsources; i++) {
        const lop_tape_view *at = &s->source[i].at;
        if (at->slot >= 0 && (!lies_within(t, at) || at->buf.shape.ndim ||
                              (at->buf.dt != LOP_f64 && at->buf.dt != LOP_f32)))
            return lop_fail(err, LOP_DOMAIN, "coefficient %d of a plan is no number", i);
    }
    const bool calls = s->what == LOP_TAPE_LOOP || s->what == LOP_TAPE_REDUCE;
    if ((calls || s->what == LOP_TAPE_SUMS || s->what == LOP_TAPE_RUN) != (s->loop.run != NULL))
        return lop_fail(err, LOP_DOMAIN, "a step without its loop");
    if (s->what != LOP_TAPE_PLAN) return LOP_OK;
    if (s->nargs != p->nleaf || s->nsources != (p->coefs ? p->coefs->sources : 0))
        return lop_fail(err, LOP_DOMAIN, "%d operands and %d coefficients of a plan", s->nargs,
                        s->nsources);
    if (!is_free(p)) return lop_fail(err, LOP_DOMAIN, "a plan with steps that are not ours");
    const size_t numbers = p->coefs ? (size_t)p->coefs->entries : 0;
    const int64_t bytes =
        (int64_t)((size_t)lop_plan_nkeys(p) * sizeof *s->key + numbers * sizeof(lop_number));
    if (bytes > t->widest) t->widest = bytes;
    return LOP_OK;
}

lop_status lop_tape_close(lop_tape *t, lop_err *err) {
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < t->nstep; i++) st = look_at(t, &t->step[i], err);
    for (int i = 0; st == LOP_OK && i < t->nout; i++)
        if (!lies_within(t, &t->out[i])) st = lop_fail(err, LOP_DOMAIN, "a result of no slot");
    int64_t end = 0;
    if (!lop_mul_ok(t->nslot, (int64_t)sizeof(void *), &end) || !lop_add_ok(end, t->widest, &end))
        st = lop_fail(err, LOP_OVERFLOW, NULL);
    for (int i = 0; st == LOP_OK && i < t->nslot; i++) {
        lop_tape_slot *s = &t->slot[i];
        s->place = -1;
        if (i < t->nin || s->constant) continue;
        if (!lop_add_ok(end, ALIGN - 1, &end)) return lop_fail(err, LOP_OVERFLOW, NULL);
        s->place = end &= ~(int64_t)(ALIGN - 1);
        if (!lop_add_ok(end, s->bytes, &end)) return lop_fail(err, LOP_OVERFLOW, NULL);
    }
    if (st == LOP_OK && !lop_add_ok(end, ALIGN, &t->bytes)) st = lop_fail(err, LOP_OVERFLOW, NULL);
    return st;
}

/* -- a run */

static lop_buf placed(void *const *slot, const lop_tape_view *v) {
    lop_buf b = v->buf;
    b.p = (char *)slot[v->slot] + v->offset;
    return b;
}

/* The numbers of a plan's coefficients, behind its keys; false: it does not fit them. */
static bool numbers(const lop_tape_step *s, void *const *slot, lop_number *value) {
    lop_number *source = value + 1; /* sources come first */
    for (int i = 0; i < s->nsources; i++) {
        const lop_tape_source *from = &s->source[i];
        double x = from->factor;
        if (from->at.slot >= 0) {
            const lop_buf b = placed(slot, &from->at);
            const double there = b.dt == LOP_f64 ? *(double *)b.p : (double)*(float *)b.p;
            x = from->over ? x / there : x * there;
        }
        /* Conditions of the plan tell the other numbers that it is not for; 1 and two that are
         * alike are among them only where that made a difference. */
        if (!isfinite(x) || x == 0) return false;
        source[i] = (lop_number){x, 0};
    }
    return lop_coefs_for(s->plan->coefs, source, value);
}

static lop_status run_plan(const lop_tape *t, const lop_tape_step *s, void *const *slot,
                           uint64_t *key, lop_err *err) {
    const lop_plan *p = s->plan;
    const int nkeys = lop_plan_nkeys(p);
    if (nkeys) memcpy(key, s->key, (size_t)nkeys * sizeof *key);
    if (p->coefs && !numbers(s, slot, (lop_number *)(void *)(key + nkeys))) return LOP_UNABLE;
    lop_frame frame;
    lop_status st = lop_frame_open(&frame, p, key, NULL, err);
    if (st != LOP_OK) return st;
    frame.team.threads = 1;
    frame.alone = true;
    frame.frozen = ~(uint64_t)0; /* for as long as the run: what it rests on is told by its place */
    for (int i = 0; st == LOP_OK && i <= p->nleaf; i++) {
        const lop_buf b = placed(slot, i < p->nleaf ? &s->arg[i] : &s->out);
        st = lop_frame_bind(&frame, i, &b, err);
    }
    if (st == LOP_OK) st = lop_exec(&frame, err);
    if (st == LOP_SINGULAR) st = LOP_UNABLE;
    /* Of several results together each is then to be computed by itself. */
    const bool minds = !t->quiet || p->written->op == &lop_op_results;
    if (st == LOP_OK && (frame.fallbacks || (minds && frame.near.told < 1))) st = LOP_UNABLE;
    lop_frame_close(&frame);
    return st;
}

static lop_status run_steps(const lop_tape *t, void *const *slot, uint64_t *key, lop_err *err) {
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < t->nstep; i++) {
        const lop_tape_step *s = &t->step[i];
        if (s->what == LOP_TAPE_PLAN) {
            st = run_plan(t, s, slot, key, err);
            continue;
        }
        const lop_buf out = placed(slot, &s->out);
        lop_buf arg[LOP_TAPE_LOOP_ARGS];
        for (int k = 0; k < s->nargs; k++) arg[k] = placed(slot, &s->arg[k]);
        if (s->what >= LOP_TAPE_LOOP) {
            st = lop_tape_loops(s, arg, &out);
            continue;
        }
        lop_tape_hush();
        st = lop_tape_function(s->what, s->axis, arg, s->nargs > 1 ? arg + 1 : NULL, &out);
        /* Of a determinant that is zero the logarithm is -inf, without a word. */
        const bool silent = s->what == LOP_TAPE_LOGDET || s->what == LOP_TAPE_LOGABS;
        if (st == LOP_OK && !silent && lop_tape_told()) st = LOP_UNABLE;
    }
    return st;
}

/* Does a result begin with NaN, where the proof holds if the inverse of a part is definite, as
 * that part's own factor tells? Without one the whole may be definite all the same. */
static bool is_open(const lop_tape *t, void *const *slot) {
    bool within = false;
    for (int i = 1; t->proof && i < t->proof->behind; i++)
        within = within || t->proof[i].kind == LOP_PROOF_FRESH;
    for (int i = 0; within && i < t->nout; i++) {
        const lop_buf b = placed(slot, &t->out[i]);
        int64_t least = 1;
        for (int k = 0; k < b.shape.ndim; k++)
            if (b.shape.dim[k] < least) least = b.shape.dim[k];
        if (least < 1) continue;
        if (b.dt == LOP_f64 && isnan(*(double *)b.p)) return true;
        if (b.dt == LOP_f32 && isnan(*(float *)b.p)) return true;
    }
    return false;
}

/* The first byte, and the one behind the last. */
static void extent(const lop_buf *b, uintptr_t *low, uintptr_t *high) {
    const int64_t size = (int64_t)lop_dtype_size(b->dt);
    int64_t down = 0, up = size;
    for (int d = 0; d < b->shape.ndim; d++) {
        const int64_t reach = (b->shape.dim[d] - 1) * b->stride[d] * size;
        if (b->shape.dim[d] > 0 && reach < 0) down += reach;
        if (b->shape.dim[d] > 0 && reach > 0) up += reach;
    }
    *low = (uintptr_t)b->p + (uintptr_t)down;
    *high = (uintptr_t)b->p + (uintptr_t)up;
}

bool lop_tape_meet(const lop_buf *a, const lop_buf *b) {
    uintptr_t low, high, from, to;
    extent(a, &low, &high);
    extent(b, &from, &to);
    return from < high && low < to;
}

/* Can result i be made where the caller wants it? Its slot holds nothing else, is laid out and
 * aligned alike, is no other result's, and no argument lies there. */
static bool in_place(const lop_tape *t, int i, const lop_buf *in, const lop_buf *out) {
    const lop_tape_view *v = &t->out[i];
    const lop_tape_slot *s = &t->slot[v->slot];
    const lop_buf *own = &v->buf, *due = &out[i];
    if (v->slot < t->nin || s->constant || v->offset || own->dt != due->dt ||
        !lop_shape_equal(&own->shape, &due->shape) || (uintptr_t)due->p % ALIGN)
        return false;
    int64_t bytes = (int64_t)lop_dtype_size(due->dt);
    for (int d = 0; d < due->shape.ndim; d++) {
        if (due->shape.dim[d] != 1 && own->stride[d] != due->stride[d]) return false;
        bytes *= due->shape.dim[d];
    }
    if (bytes == 0 || bytes != s->bytes) return false;
    for (int j = 0; j < t->nout; j++)
        if (j != i && t->out[j].slot == v->slot) return false;
    uintptr_t low, high;
    extent(due, &low, &high);
    if (high - low != (uintptr_t)bytes) return false;
    for (int k = 0; k < t->nin; k++)
        if (lop_tape_meet(due, &in[k])) return false;
    return true;
}

lop_status lop_tape_run(const lop_tape *tape, const lop_buf *in, const lop_buf *out, lop_err *err) {
    lop_tape *t = (lop_tape *)(uintptr_t)tape; /* its spare workspace alone changes */
    if (t->proof && !lop_proved(t->ctx, t->proof, in, 0)) return LOP_UNABLE;
    char *block = atomic_exchange(&t->spare, NULL);
    if (!block) block = lop_alloc(t->ctx, (size_t)t->bytes);
    if (!block) return lop_fail(err, LOP_NOMEM, "the workspace could not be had");
    char *work = (char *)(((uintptr_t)block + ALIGN - 1) & ~(uintptr_t)(ALIGN - 1));
    void **slot = (void **)(void *)work;
    for (int i = 0; i < t->nslot; i++) {
        const lop_tape_slot *s = &t->slot[i];
        slot[i] = i < t->nin ? in[i].p : s->constant ? s->constant : work + s->place;
    }
    for (int i = 0; i < t->nout; i++)
        if (in_place(t, i, in, out)) slot[t->out[i].slot] = out[i].p;
    uint64_t *key = (uint64_t *)(void *)(slot + t->nslot);
    lop_status st = run_steps(t, slot, key, err);
    if (st == LOP_OK && is_open(t, slot)) st = LOP_UNABLE;
    for (int i = 0; st == LOP_OK && i < t->nout; i++) {
        const lop_buf from = placed(slot, &t->out[i]);
        if (in_place(t, i, in, out)) continue;
        st = lop_tape_function(LOP_TAPE_COPY, 0, &from, NULL, &out[i]);
    }
    void *before = t->bytes <= MOST_SPARE ? atomic_exchange(&t->spare, block) : block;
    lop_free(t->ctx, before);
    return st;
}
