/* plan_check_flow.c: what every slot holds before every step, on every way through the plan.
 *
 * A slot's value holds under a condition: a cube, all of some masks being set or not. Steps run
 * under cubes too: `when`, `late` and `later` name masks, and between a step that may escape and
 * the label it escapes to, that mask is not set. What a step reads must hold wherever it runs.
 *
 *   unwritten    escaped past, or skipped, where a mask says so: may not be read there at all
 *   gated        a gate reads a mask and escapes where it is set: behind it that is not set
 *   failed       `fail`: written, without meaning. May be read; what is made of it has none either
 *
 * Two stores under opposite masks make a whole (Cholesky, else LU). A block's store counts for the
 * slot it lies in: a hash of corners adds up to that of the whole where blocks tile it, so that
 * neither gap nor overlap passes. What a store has put somewhere is read before another covers it,
 * and what has been read is not written again. Derived values: a reader never runs where what it
 * reads was left out since its user was found in the store, and a value that is found by its leaves
 * rests on these alone.
 *
 * Cost O(steps), a few words a slot. */
#include "plan_check.h"

#include <string.h>

/* -- cubes */

enum { LITERALS = 16, SET = 1, FAILED = 2 }; /* FAILED: not unwritten, only without meaning */

typedef struct cube {
    int n;                               /* -1: of too many masks; nothing is known */
    int mask[LITERALS], count[LITERALS]; /* of a slot written in blocks: how many have it */
    unsigned char how[LITERALS];
} cube;

static int find(const cube *c, int mask) {
    for (int i = 0; i < c->n; i++)
        if (c->mask[i] == mask) return i;
    return -1;
}

static void put(cube *c, int mask, int how) {
    const int at = find(c, mask);
    if (at >= 0) {
        c->how[at] = (unsigned char)(how & c->how[at] & FAILED ? how : how & ~FAILED);
        c->count[at]++;
    } else if (c->n == LITERALS) {
        c->n = -1;
    } else if (c->n >= 0) {
        c->mask[c->n] = mask;
        c->count[c->n] = 1;
        c->how[c->n++] = (unsigned char)how;
    }
}

static void drop(cube *c, int mask) {
    const int at = find(c, mask);
    if (at < 0) return;
    c->n--;
    c->mask[at] = c->mask[c->n];
    c->count[at] = c->count[c->n];
    c->how[at] = c->how[c->n];
}

static void join(cube *c, const cube *more) {
    if (more->n < 0) c->n = -1;
    for (int i = 0; i < more->n; i++) put(c, more->mask[i], more->how[i]);
}

static bool known(const cube *c) { return c->n >= 0; }

/* Does `narrow` hold only where `wide` does? */
static bool within(const cube *narrow, const cube *wide) {
    if (!known(narrow) || !known(wide)) return false;
    for (int i = 0; i < wide->n; i++) {
        const int at = find(narrow, wide->mask[i]);
        if (at < 0 || (narrow->how[at] ^ wide->how[i]) & SET) return false;
    }
    return true;
}

/* -- what is known of slots */

typedef struct state {
    cube holds;             /* where its value does */
    int64_t filled, stored; /* elements written; time of the last store of all of it, or -1 */
    int64_t used;           /* it or a slot within it was read last; -1 */
    int64_t read;           /* it itself was */
    uint64_t tiles;         /* of the blocks written */
    uint64_t serves;        /* the `serves` of those of its stores that may be left out */
    uint64_t leaves;        /* it is made of */
    cube under;             /* masks of one flag that were set where it was made, not among these */
    bool any, many;         /* written somewhere; made of leaves beyond LOP_KEEP too */
} state;

typedef struct label {
    int mask, to;
    bool gate; /* the mask was read by a gate: it is not set from there to the label */
} label;

typedef struct flow {
    const lop_checker *k;
    const lop_plan *p;
    state *slot;
    cube *implied; /* of a mask: where any of its flags may be set */
    bool *raised;  /* of a mask: `implied` is known */
    label *open;   /* escapes passed whose labels are ahead */
    int nopen;
    cube here;       /* where step `at` can be reached */
    int at;          /* the step */
    int64_t now;     /* twice its number, and one more once it has read */
    cube runs;       /* where it runs */
    cube around;     /* where the mask that leaves it out may be set: all that is nested is there */
    cube failed;     /* failures that what it reads has met */
    uint64_t leaves; /* that it reads of */
    cube under;      /* likewise */
    bool many;
} flow;

static int64_t size_of(const lop_slot *s) { return s->m * s->n * s->batch; }

static uint64_t hash(int64_t x, uint64_t seed) {
    uint64_t z = (uint64_t)x * 0x9e3779b97f4a7c15u + seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Adds up, modulo 2^64, to that of the whole over blocks that tile it: an additive measure. */
static uint64_t measure(int64_t row, int64_t col, int64_t m, int64_t n) {
    return (hash(row + m, 17) - hash(row, 17)) * (hash(col + n, 71) - hash(col, 71));
}

static bool is_whole(const flow *f, int i) {
    return f->slot[i].any && f->slot[i].filled >= size_of(&f->p->slot[i]);
}

/* Do the blocks of the slot differ from each other, and tile it? `rows` is how many it has. */
static bool is_tiled(const state *v, const lop_slot *s, int64_t rows) {
    const int64_t size = size_of(s);
    return !size || (v->filled == size && v->tiles == measure(0, 0, rows, s->n));
}

/* The slot whose stores made all of what `i` names: itself, or one that it lies in; -1: none. */
static int written_as(const flow *f, int i) {
    for (; i >= 0; i = f->p->slot[i].alias)
        if (f->p->slot[i].kind == LOP_S_LEAF || is_whole(f, i)) return i;
    return -1;
}

/* -- reading */

/* A prepare step reads its arguments only where its value was not found. */
static lop_status left_out(const flow *f, int i, const state *v, bool mask) {
    const lop_step *s = &f->p->step[f->at];
    const uint64_t own = s->derived >= 0 && s->derived < LOP_KEEP ? (uint64_t)1 << s->derived : 0;
    if (v->serves == UINT64_MAX || (s->serves && !(s->serves & ~v->serves)) ||
        (!mask && own & v->serves))
        return LOP_OK;
    return lop_check_fault(
        f->k, f->at, "it may run where slot %d was left out for values found in the store", i);
}

/* A step names the masks of two fallback branches around it and its own. In a branch within these
 * it may run for nothing where it is guarded by another mask (`accepted` is): what it copies has no
 * meaning then, and is read only where that branch was entered. */
static bool deep(const flow *f, int how) {
    const lop_step *s = &f->p->step[f->at];
    return how & SET && s->later >= 0 && s->when >= 0 && !s->when_set;
}
/* Such a step says nothing of where what it escapes by has a meaning. */
static bool for_nothing(const flow *f, bool escapes) { return escapes && deep(f, SET); }

/* Has a gate been passed that lets none through where the mask is set? */
static bool gated(const flow *f, int mask) {
    for (int j = 0; j < f->nopen; j++)
        if (f->open[j].gate && f->open[j].mask == mask) return true;
    return false;
}

/* Is the value there under `where`? Failures go into f->failed. */
static lop_status there(flow *f, int i, const cube *where, const state *v) {
    if (!known(where)) return LOP_OK;
    for (int j = 0; j < v->holds.n; j++) {
        const int mask = v->holds.mask[j], how = v->holds.how[j], at = find(where, mask);
        if (at >= 0 && !((where->how[at] ^ how) & SET)) continue;
        if (at < 0 && !(how & SET) && gated(f, mask)) continue;
        if (at >= 0)
            return lop_check_fault(f->k, f->at, "it reads slot %d only where that %s (mask %d)", i,
                                   how & FAILED ? "has failed" : "is not written", mask);
        if (!(how & FAILED) && !deep(f, how))
            return lop_check_fault(
                f->k, f->at, "it reads slot %d also where that is not written (mask %d)", i, mask);
        put(&f->failed, mask, how | FAILED);
    }
    if (!known(&v->holds)) f->failed.n = -1;
    return LOP_OK;
}

/* What was made where a mask was set says what that rests on, but to who runs there alone, or reads
 * it for such: nested deeper than a step can say, what is run unless a mask is set has a meaning
 * only where that may be. Masks rest on those before them: the walk ends. Of too many nothing is
 * known, and nothing is said. */
static void made_under(flow *f, const cube *under) {
    cube more = *under;
    while (more.n > 0) {
        cube next = {.n = 0};
        for (int j = 0; j < more.n; j++) {
            const int mask = more.mask[j], at = known(&f->runs) ? find(&f->runs, mask) : -1;
            if ((at >= 0 && f->runs.how[at] & SET) || find(&f->around, mask) >= 0) {
                put(&f->under, mask, SET);
                continue;
            }
            f->leaves |= f->slot[mask].leaves;
            f->many = f->many || f->slot[mask].many;
            join(&next, &f->slot[mask].under);
        }
        more = next;
    }
}

static lop_status reads(flow *f, int i, const cube *where, const char *as) {
    const int by = written_as(f, i), base = f->k->base[i];
    if (by < 0)
        return lop_check_fault(f->k, f->at, "it reads slot %d%s, which is not%s written", i, as,
                               f->slot[base].any ? " wholly" : "");
    state *v = &f->slot[by], *of = &f->slot[base];
    if (size_of(&f->p->slot[i])) f->slot[i].read = f->now;
    for (int j = size_of(&f->p->slot[i]) ? i : -1; j >= 0; j = f->p->slot[j].alias)
        f->slot[j].used = f->now;
    f->leaves |= of->leaves;
    f->many = f->many || of->many;
    made_under(f, &of->under);
    lop_status st = there(f, i, where, v);
    return st == LOP_OK ? left_out(f, i, of, *as != 0) : st;
}

/* -- writing */

/* Where two stores, the later one under `more`, leave a value. */
static void merge(const flow *f, cube *holds, const cube *more) {
    cube both = *holds, rest = *more;
    int against = -1, how = 0;
    if (!known(holds) || !known(more) || within(holds, more)) {
        *holds = *more;
        return;
    }
    if (within(more, holds)) return;
    for (int j = 0; j < more->n; j++) {
        const int at = find(holds, more->mask[j]);
        if (at < 0 || !((holds->how[at] ^ more->how[j]) & SET)) continue;
        if (against >= 0) against = -2;
        if (against == -1) against = more->mask[j], how = more->how[j];
    }
    if (against < 0) {
        *holds = *more;
        return;
    }
    drop(&both, against);
    drop(&rest, against);
    const cube *set = how & SET ? &rest : &both; /* where the mask is set, so is this */
    for (int j = 0; f->raised[against] && j < f->implied[against].n; j++)
        drop((cube *)(uintptr_t)set, f->implied[against].mask[j]);
    join(&both, &rest);
    *holds = both;
}

/* Slot i has now been written completely for the first time: the slot that it is a block of has one
 * more of its blocks. */
static lop_status add_block(flow *f, int i) {
    for (; f->p->slot[i].alias >= 0; i = f->p->slot[i].alias) {
        const lop_slot *s = &f->p->slot[i], *w = &f->p->slot[s->alias];
        state *v = &f->slot[s->alias];
        if (is_whole(f, s->alias)) return LOP_OK; /* by a store of its own */
        v->any = true;
        join(&v->holds, &f->slot[i].holds);
        if (s->part || s->window) {
            const int64_t wide = (int64_t)(lop_dtype_size(s->dt) / lop_dtype_size(w->dt));
            v->filled += size_of(s) * wide;
            v->tiles += s->part ? measure(s->row, s->col, s->m, s->n)
                                : measure(s->shift * wide, 0, size_of(s) * wide, 1);
            if (!is_whole(f, s->alias)) return LOP_OK;
            if (!is_tiled(v, w, w->m))
                return lop_check_fault(f->k, f->at, "the blocks of slot %d overlap", s->alias);
        } else {
            v->filled = size_of(w);
        }
    }
    return LOP_OK;
}

/* A block now holds under another condition, and so does the slot it is a block of. */
static void carry_up(flow *f, int i, const cube *before) {
    cube was = *before, is = f->slot[i].holds;
    for (i = f->p->slot[i].alias; i >= 0; i = f->p->slot[i].alias) {
        state *v = &f->slot[i];
        if (v->stored >= 0) return; /* by a store of its own */
        const cube old = v->holds;
        for (int j = 0; j < was.n; j++) {
            const int at = find(&v->holds, was.mask[j]);
            if (find(&is, was.mask[j]) < 0 && at >= 0 && --v->holds.count[at] == 0)
                drop(&v->holds, was.mask[j]);
        }
        for (int j = 0; j < is.n; j++)
            if (find(&was, is.mask[j]) < 0) put(&v->holds, is.mask[j], is.how[j]);
        if (!is_whole(f, i)) return;
        was = old;
        is = v->holds;
    }
}

/* Has nothing read what lies there yet: neither the whole nor, unless one block alone is written, a
 * part? */
static lop_status not_read(const flow *f, int i, bool block) {
    int64_t last = block ? f->slot[i].read : f->slot[i].used;
    for (int j = f->p->slot[i].alias; j >= 0; j = f->p->slot[j].alias)
        if (f->slot[j].read > last) last = f->slot[j].read;
    if (last < 0 || last == f->now - 1) return LOP_OK; /* in place: plan_check_memory.c */
    return lop_check_fault(f->k, f->at, "it writes slot %d, which step %lld has read already", i,
                           (long long)(last / 2));
}

/* Notes where blocks go, as the arguments say. */
static lop_status places(flow *f, const lop_step *s) {
    const lop_slot *out = &f->p->slot[s->arg[0]];
    state *v = &f->slot[s->arg[0]];
    const bool pile = (s->flags & LOP_STEP_BATCH) != 0, whole = is_whole(f, s->arg[0]);
    const int64_t *at = s->attr.i;
    int64_t all = out->m;
    for (int j = 1; j < s->n; j++) {
        const lop_slot *x = &f->p->slot[s->arg[j]];
        const bool column = !pile && out->n == 1;
        const int64_t m = column ? x->m * x->n : x->m, n = column ? 1 : x->n;
        const int64_t row = pile ? (at[0] + j - 1) * out->m : at[0], col = pile ? 0 : at[1];
        if (pile) all = out->m * out->batch;
        if (x->m * x->n == 0) continue;
        if (at[0] < 0 || col < 0 || row > all - m || col > out->n - n || (pile && m != out->m))
            return lop_check_fault(f->k, f->at, "argument %d goes beside the result", j);
        if (whole) continue;
        v->filled += m * n * (pile ? 1 : out->batch);
        v->tiles += measure(row, col, m, n);
    }
    v->any = true;
    if (!whole && is_whole(f, s->arg[0]) && !is_tiled(v, out, all))
        return lop_check_fault(f->k, f->at, "the blocks of slot %d overlap", s->arg[0]);
    return LOP_OK;
}

/* The slot whose store is covered where `holds`: i, or what i is a name for all of; -1: none. */
static int covers(const flow *f, int i, const cube *holds) {
    for (; i >= 0; i = f->p->slot[i].alias) {
        const state *v = &f->slot[i];
        if (v->stored >= 0 && within(&v->holds, holds)) return i;
        if (f->p->slot[i].part || f->p->slot[i].window) return -1;
    }
    return -1;
}

static lop_status writes(flow *f, const lop_step *s) {
    const int i = s->arg[0];
    state *v = &f->slot[i], *base = &f->slot[f->k->base[i]];
    cube holds = f->runs;
    join(&holds, &f->failed);
    if (s->fail >= 0) put(&holds, s->fail, FAILED);
    if (s->escape >= 0) put(&holds, s->escape, 0);
    const bool whole = is_whole(f, i);
    lop_status st = not_read(f, i, (s->flags & LOP_STEP_PLACES) != 0);
    if (st != LOP_OK) return st;
    if (s->serves) base->serves &= s->serves;
    base->leaves |= f->leaves;
    base->many = base->many || f->many;
    join(&base->under, &f->under);
    if (s->flags & (LOP_STEP_PLACES | LOP_STEP_ACCUMULATES)) {
        join(&v->holds, &holds); /* a sum is a store again, which nobody has read */
        v->stored = s->flags & LOP_STEP_PLACES ? -1 : f->now;
        if (s->flags & LOP_STEP_PLACES) st = places(f, s);
    } else {
        const int covered = covers(f, i, &holds);
        if (covered >= 0)
            return lop_check_fault(f->k, f->at,
                                   "it covers what step %lld has put into slot %d, which nobody "
                                   "has read",
                                   (long long)(f->slot[covered].stored / 2), covered);
        const cube before = v->holds;
        if (!whole)
            v->holds = holds;
        else
            merge(f, &v->holds, &holds);
        v->any = true;
        v->filled = size_of(&f->p->slot[i]);
        v->stored = f->now;
        if (whole) carry_up(f, i, &before);
    }
    return st == LOP_OK && !whole && is_whole(f, i) ? add_block(f, i) : st;
}

/* A mask that the step fills (`fail`: wherever it is not left out, at least with "no"), or sets on
 * its way to a label. */
static void raises(flow *f, int mask, const cube *there_too) {
    state *v = &f->slot[mask];
    const lop_step *s = &f->p->step[f->at];
    cube where = f->runs;
    if (known(&f->here))
        for (int j = 0; j < f->here.n; j++) drop(&where, f->here.mask[j]);
    if (f->raised[mask] && for_nothing(f, !there_too)) return;
    if (!f->raised[mask] || !known(&where)) {
        f->implied[mask] = where;
    } else if (known(&f->implied[mask])) {
        cube both = {.n = 0};
        for (int j = 0; j < where.n; j++)
            if (find(&f->implied[mask], where.mask[j]) >= 0)
                put(&both, where.mask[j], where.how[j]);
        f->implied[mask] = both;
    }
    f->raised[mask] = true;
    v->leaves |= f->leaves;
    v->many = v->many || f->many;
    join(&v->under, &f->under);
    if (!there_too) return;
    if (s->serves) v->serves &= s->serves;
    v->any = true;
    v->filled = size_of(&f->p->slot[mask]);
    v->holds = *there_too;
    join(&v->holds, &f->failed);
}

/* -- the walk */

/* Labels reached are closed: there the mask has been written, by whoever escaped. */
static void arrive(flow *f) {
    int n = 0;
    for (int j = 0; j < f->nopen; j++) {
        if (f->open[j].to > f->at)
            f->open[n++] = f->open[j];
        else if (!f->open[j].gate)
            drop(&f->slot[f->open[j].mask].holds, f->open[j].mask);
    }
    if (n == f->nopen) return;
    f->nopen = n;
    f->here.n = 0;
    for (int j = 0; j < n; j++)
        if (!f->open[j].gate) put(&f->here, f->open[j].mask, 0);
}

static lop_status leave(flow *f, const lop_step *s) {
    if (s->flags & LOP_STEP_GATE) f->open[f->nopen++] = (label){s->arg[1], s->escape_to, true};
    for (int j = 0; j < f->nopen; j++) {
        if (f->open[j].mask != s->escape || f->open[j].gate) continue;
        return f->open[j].to == s->escape_to
                   ? LOP_OK
                   : lop_check_fault(f->k, f->at, "others escape by mask %d to another step",
                                     s->escape);
    }
    f->open[f->nopen++] = (label){s->escape, s->escape_to, false};
    put(&f->here, s->escape, 0);
    return LOP_OK;
}

/* Where the step runs: its masks are read one after another, each where those before allow. */
static lop_status conditions(flow *f, const lop_step *s, cube *kept) {
    const int mask[3] = {s->late, s->later, s->when};
    lop_status st = LOP_OK;
    f->runs = f->here;
    f->under.n = 0;
    f->around.n = 0;
    if (s->when >= 0 && !s->when_set && f->raised[s->when]) f->around = f->implied[s->when];
    for (int j = 0; j < 3 && st == LOP_OK; j++) {
        if (j == 2) *kept = f->runs;
        if (mask[j] < 0) continue;
        const int how = j < 2 || s->when_set ? SET : 0, at = find(&f->runs, mask[j]);
        const uint64_t before = f->leaves;
        const bool many = f->many, one = how & SET && f->p->slot[mask[j]].batch == 1;
        const cube before_it = f->runs;
        if (how & SET && f->raised[mask[j]]) join(&f->runs, &f->implied[mask[j]]); /* if it runs */
        st = reads(f, mask[j], &before_it, ", its mask");
        if (one) {
            f->leaves = before;
            f->many = many;
            put(&f->under, mask[j], SET);
        }
        if (st == LOP_OK && at >= 0 && (f->runs.how[at] ^ how) & SET)
            st = lop_check_fault(f->k, f->at, "it can never run (mask %d)", mask[j]);
        put(&f->runs, mask[j], how);
    }
    return st;
}

static lop_status found_by_leaves(const flow *f, const lop_step *s) {
    const lop_derive *d = &f->p->derive[s->derived];
    const uint64_t leaves = d->leaves ? d->leaves : d->rests;
    if (!leaves || (!f->many && !(f->leaves & ~leaves))) return LOP_OK;
    return lop_check_fault(f->k, f->at,
                           "its value is found by fewer leaves than it is made of (%llx of %llx)",
                           (unsigned long long)leaves, (unsigned long long)f->leaves);
}

static lop_status walk_step(flow *f) {
    const lop_step *s = &f->p->step[f->at];
    cube kept;
    f->now = 2 * (int64_t)f->at;
    arrive(f);
    if (!s->run) return LOP_OK; /* a change of strides */
    f->failed.n = 0;
    f->leaves = 0;
    f->many = false;
    lop_status st = conditions(f, s, &kept);
    const uint64_t of_masks = f->leaves; /* whether it runs; a prepare step then makes all of it */
    const bool many = f->many;
    f->leaves = 0;
    f->many = false;
    for (int j = 1; j < s->n && st == LOP_OK; j++) st = reads(f, s->arg[j], &f->runs, "");
    if (st == LOP_OK && s->derived >= 0) st = found_by_leaves(f, s);
    f->leaves |= of_masks;
    f->many = f->many || many;
    if (st == LOP_OK && (s->flags & LOP_STEP_ACCUMULATES)) {
        const int by = written_as(f, s->arg[0]);
        st = by >= 0 ? there(f, s->arg[0], &f->runs, &f->slot[by])
                     : lop_check_fault(f->k, f->at, "it adds to slot %d, which is not written",
                                       s->arg[0]);
    }
    f->now++;
    if (st == LOP_OK && s->escape >= 0) {
        raises(f, s->escape, NULL);
        st = leave(f, s);
    }
    if (st == LOP_OK) st = writes(f, s);
    if (st == LOP_OK && s->fail >= 0) raises(f, s->fail, &kept);
    return st;
}

static lop_status check_end(flow *f) {
    const lop_plan *p = f->p;
    const state *out = &f->slot[p->out];
    f->at = p->nstep;
    arrive(f);
    if (!is_whole(f, p->out)) return lop_check_fault(f->k, -1, "the result is not wholly written");
    if (out->holds.n > 0)
        return lop_check_fault(f->k, -1, "the result %s where mask %d is %sset",
                               out->holds.how[0] & FAILED ? "has failed" : "is not written",
                               out->holds.mask[0], out->holds.how[0] & SET ? "not " : "");
    if (out->serves != UINT64_MAX) return lop_check_fault(f->k, -1, "the result may be left out");
    return LOP_OK;
}

/* Has what the keys of derived values were made of stayed the same since? */
static lop_status check_keys(const lop_checker *k) {
    const lop_plan *p = k->p;
    const int n = lop_plan_nkeys(p);
    if (!n) return LOP_OK;
    if (!p->key) return lop_check_fault(k, -1, "derived values have no keys");
    uint64_t *again = lop_calloc(p->ctx, (size_t)n + (size_t)p->nleaf, sizeof *again);
    if (!again) return lop_fail(k->err, LOP_NOMEM, NULL);
    uint64_t *serial = again + n;
    for (int i = 0; i < p->nleaf; i++) serial[i] = p->leaf[i].serial;
    lop_status st = lop_plan_keys(p, serial, NULL, again);
    if (st != LOP_OK) (void)lop_fail(k->err, st, NULL);
    if (st == LOP_OK && memcmp(again, p->key, (size_t)n * sizeof *again) != 0)
        st = lop_check_fault(k, -1, "derived values are other ones than their keys name");
    lop_free(p->ctx, again);
    return st;
}

lop_status lop_check_flow(const lop_checker *k) {
    const lop_plan *p = k->p;
    const size_t slots = (size_t)p->nslot, steps = (size_t)p->nstep;
    flow f = {.k = k, .p = p};
    f.slot = lop_calloc(p->ctx, slots, sizeof *f.slot);
    f.implied = lop_calloc(p->ctx, slots, sizeof *f.implied);
    f.raised = lop_calloc(p->ctx, slots, sizeof *f.raised);
    f.open = lop_calloc(p->ctx, 2 * steps, sizeof *f.open); /* a gate is two */
    lop_status st = f.slot && f.implied && f.raised && f.open ? LOP_OK : LOP_NOMEM;
    if (st != LOP_OK) (void)lop_fail(k->err, st, NULL);
    for (int i = 0; st == LOP_OK && i < p->nslot; i++) {
        f.slot[i].stored = f.slot[i].used = f.slot[i].read = -1;
        f.slot[i].serves = UINT64_MAX;
        if (p->slot[i].kind != LOP_S_LEAF) continue;
        f.slot[i].many = p->slot[i].leaf >= LOP_KEEP;
        if (!f.slot[i].many) f.slot[i].leaves = (uint64_t)1 << p->slot[i].leaf;
    }
    for (f.at = 0; st == LOP_OK && f.at < p->nstep; f.at++) st = walk_step(&f);
    if (st == LOP_OK) st = check_end(&f);
    if (st == LOP_OK && k->pass >= LOP_PASS_KEEP) st = check_keys(k);
    lop_free(p->ctx, f.slot);
    lop_free(p->ctx, f.implied);
    lop_free(p->ctx, f.raised);
    lop_free(p->ctx, f.open);
    return st;
}
