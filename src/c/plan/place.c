/* place.c: life spans of slots, and where each lies in one workspace, by first fit. */
#include "passes.h"

#include <string.h>

static void touch(lop_plan *p, int slot, int step) {
    lop_slot *s = &p->slot[lop_slot_base(p, slot)];
    if (s->first < 0) s->first = step;
    s->last = step;
}

static void life_spans(lop_plan *p) {
    for (int i = 0; i < p->nstep; i++) {
        const lop_step *s = &p->step[i];
        for (int j = 0; j < s->n; j++) touch(p, s->arg[j], i);
        if (s->fail >= 0) touch(p, s->fail, i);
        if (s->when >= 0) touch(p, s->when, i);
        if (s->escape >= 0) touch(p, s->escape, i);
    }
}

typedef struct hole {
    int64_t offset, bytes;
} hole;

typedef struct space {
    hole *hole;
    int n, room;
    int64_t top;
} space;

static lop_status space_free(lop_ctx *ctx, space *sp, int64_t offset, int64_t bytes) {
    if (sp->n == sp->room) {
        int room = sp->room ? 2 * sp->room : 16;
        hole *more = lop_realloc(ctx, sp->hole, (size_t)room * sizeof *more);
        if (!more) return LOP_NOMEM;
        sp->hole = more;
        sp->room = room;
    }
    sp->hole[sp->n++] = (hole){offset, bytes};
    return LOP_OK;
}

static bool space_take(space *sp, int64_t bytes, int64_t *offset) {
    for (int i = sp->n - 1; i >= 0; i--) /* last freed first: warm in cache */
        if (sp->hole[i].bytes >= bytes && sp->hole[i].bytes <= 2 * bytes) {
            *offset = sp->hole[i].offset;
            sp->hole[i] = sp->hole[--sp->n];
            return true;
        }
    *offset = sp->top;
    return lop_add_ok(sp->top, bytes, &sp->top);
}

static bool flipped(const lop_plan *p, int slot) {
    for (; p->slot[slot].alias >= 0; slot = p->slot[slot].alias)
        if (p->slot[slot].flip) return true;
    return false;
}

static bool slot_bytes(const lop_slot *s, int64_t *bytes) {
    if (!lop_mul_ok(s->matbytes, s->batch, bytes) || *bytes > INT64_MAX - 64) return false;
    *bytes = (*bytes + 63) & ~(int64_t)63;
    return true;
}

/* May the output of step i lie where its first input lies? Only if that dies here, does not
 * broadcast, and no other argument sees the same memory in another shape. Where the step fails, or
 * does not run, nothing reads that input later, or it would not die here. */
static bool may_take_over(const lop_plan *p, const lop_step *s, int i) {
    if (!(s->flags & LOP_STEP_INPLACE) || s->n < 2) return false;
    if (flipped(p, s->arg[0]) || flipped(p, s->arg[1])) return false;
    int from = lop_slot_base(p, s->arg[1]);
    if (p->slot[from].late != p->slot[lop_slot_base(p, s->arg[0])].late) return false;
    const lop_slot *in = &p->slot[s->arg[1]], *out = &p->slot[s->arg[0]];
    if (in->part || out->part) return false;
    if (p->slot[from].kind != LOP_S_TEMP || p->slot[from].last != i) return false;
    for (int j = 2; j < s->n; j++)
        if (lop_slot_base(p, s->arg[j]) == from && s->arg[j] != s->arg[1]) return false;
    int64_t bytes, other;
    return in->batch == out->batch && in->matbytes == out->matbytes &&
           slot_bytes(&p->slot[from], &bytes) &&
           slot_bytes(&p->slot[lop_slot_base(p, s->arg[0])], &other) && bytes == other;
}

/* A value that dies where a derived value is made of it lies in the memory of that one from the
 * start, and so does what it was made over from: the matrix that is factored then takes no memory
 * of its own. Only for values that nothing else needs, since none of their makers runs where the
 * derived value is kept already. */
static bool only_for(const lop_plan *p, int slot, int derived) {
    const uint64_t alone = (uint64_t)1 << derived;
    for (int i = 0; i < p->nstep; i++) {
        const lop_step *s = &p->step[i];
        bool touched = false;
        for (int j = 0; j < s->n; j++) touched = touched || lop_slot_base(p, s->arg[j]) == slot;
        if (!touched || s->derived == derived) continue;
        if (s->serves != alone || s->derived >= 0 || s->when >= 0 || s->fail >= 0 ||
            s->escape >= 0 || s->late >= 0)
            return false;
    }
    return true;
}

static void lay_onto(lop_plan *p) {
    for (int d = 0; d < p->nderive && d < LOP_KEEP; d++) {
        int i = p->derive[d].step;
        const lop_step *s = &p->step[i];
        if (!(s->flags & LOP_STEP_INPLACE) || !p->derive[d].leaves || s->when >= 0 || s->late >= 0)
            continue;
        int slot = s->arg[1];
        const int64_t most = p->derive[d].bytes;
        for (bool first = true;; first = false) {
            lop_slot *t = &p->slot[slot];
            if (t->kind != LOP_S_TEMP || t->alias >= 0 || t->late || t->batch != 1 ||
                t->matbytes > most || t->last != i || t->onto >= 0 || !only_for(p, slot, d))
                break;
            if (!first && (s->fail >= 0 || !may_take_over(p, s, i))) break;
            t->onto = d;
            i = t->first;
            s = &p->step[i];
            if (s->n < 2 || !(s->flags & LOP_STEP_INPLACE) || lop_slot_base(p, s->arg[0]) != slot)
                break;
            slot = lop_slot_base(p, s->arg[1]);
        }
    }
}

/* Offsets for the temporaries that are born at step i. An in-place step takes over its first input.
 */
static lop_status births(lop_plan *p, space *spaces, int i) {
    lop_step *s = &p->step[i];

    for (int j = 0; j < s->n + 2; j++) {
        int id = j < s->n ? s->arg[j] : (j == s->n ? s->fail : s->escape);
        if (id < 0) continue;
        lop_slot *slot = &p->slot[lop_slot_base(p, id)];
        if (slot->kind != LOP_S_TEMP || slot->first != i || slot->offset >= 0 || slot->onto >= 0)
            continue;
        int64_t bytes;
        if (!slot_bytes(slot, &bytes)) return LOP_OVERFLOW;
        if (j == 0 && may_take_over(p, s, i)) {
            lop_slot *in = &p->slot[lop_slot_base(p, s->arg[1])];
            slot->offset = in->offset;
            in->last = -1; /* handed over: not freed */
            continue;
        }
        if (!space_take(&spaces[slot->late], bytes, &slot->offset)) return LOP_OVERFLOW;
    }
    return LOP_OK;
}

static lop_status deaths(lop_plan *p, space *spaces, int i) {
    lop_step *s = &p->step[i];
    for (int j = 0; j < s->n + 3; j++) {
        int id = j < s->n ? s->arg[j] : (j == s->n ? s->fail : j == s->n + 1 ? s->when : s->escape);
        if (id < 0) continue;
        lop_slot *slot = &p->slot[lop_slot_base(p, id)];
        int64_t bytes;
        if (slot->kind != LOP_S_TEMP || slot->last != i || slot->onto >= 0 ||
            !slot_bytes(slot, &bytes))
            continue;
        slot->last = -1; /* once */
        if (space_free(p->ctx, &spaces[slot->late], slot->offset, bytes) != LOP_OK)
            return LOP_NOMEM;
    }
    return LOP_OK;
}

lop_status lop_plan_place(lop_plan *p, lop_err *err) {
    space sp[3] = {{0}, {0}, {0}}; /* the workspace, the reserves */
    lop_status st = LOP_OK;
    life_spans(p);
    lay_onto(p);
    for (int i = 0; i < p->nstep && st == LOP_OK; i++) {
        st = births(p, sp, i);
        if (st == LOP_OK) st = deaths(p, sp, i);
    }
    p->workspace = sp[0].top;
    for (int i = 0; i < 2; i++) {
        p->reserve[i] = sp[i + 1].top;
        if (p->reserve[i] > INT64_MAX - 64) st = LOP_OVERFLOW;
    }
    for (int i = 0; i < 3; i++) lop_free(p->ctx, sp[i].hole);
    return st == LOP_OK ? st : lop_fail(err, st, "the workspace of this expression is too large");
}
