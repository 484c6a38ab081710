/* derived_keys.c: what a plan keeps between calls: the keys of derived values, and which steps need
 * not run where they are kept.
 *
 * A derived value is made of leaves by steps. Where reading the leaves' bytes costs no more than
 * running those steps, it is the leaves that are fingerprinted, and steps that serve nothing but
 * values found in the store are left out: inv(X^T X) b forms X^T X once. Else what goes into the
 * prepare step itself is; but leaves whose memory cannot change cost nothing to tell
 * (exec/derived_content.c). One forward pass, one backward; per derived value one more backward. */
#include "plan.h"

#include <string.h>

/* -- keys */

static uint64_t mix(uint64_t h, uint64_t v) {
    h ^= v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
    h = (h ^ (h >> 31)) * 0x7fb5d329728ea185u;
    return h ^ (h >> 27);
}

uint64_t lop_leaf_key(uint64_t serial) { return mix(1, serial); }

static uint64_t mix_slot(uint64_t h, const lop_slot *s) {
    h = mix(h, (uint64_t)s->dt + (s->flip ? 256 : 0));
    for (int i = 0; i < s->shape.ndim; i++) h = mix(h, (uint64_t)s->shape.dim[i]);
    return s->part ? mix(mix(h, (uint64_t)s->row), (uint64_t)s->col) : h;
}

/* Whose content a slot shows: that of its base; but results that lie one behind the other in one
 * block are each their own, and none depends on what was written beside it. */
static int home_of(const lop_plan *p, int slot) {
    while (!p->slot[slot].window && p->slot[slot].alias >= 0) slot = p->slot[slot].alias;
    return slot;
}

/* Does it but look at a slot in another way? */
static bool is_view(const lop_plan *p, const lop_step *s) {
    return !s->run && s->n == 2 && lop_slot_base(p, s->arg[0]) == lop_slot_base(p, s->arg[1]);
}

static uint64_t mix_step(const lop_step *s, const lop_number *value) {
    /* the function too: factors of one name may lie in memory in several ways */
    uint64_t h = mix(7, (uint64_t)(uintptr_t)s->run);
    for (const char *c = s->name; *c; c++) h = mix(h, (uint64_t)*c);
    for (int k = 0; k < 4; k++) h = mix(h, (uint64_t)s->attr.i[k]);
    uint64_t bits[2];
    const lop_number own = {s->attr.re, s->attr.im},
                     *at = s->attr.num && value ? &value[s->attr.num] : &own;
    memcpy(bits, &at->re, 8);
    memcpy(bits + 1, &at->im, 8);
    h = mix(mix(h, bits[0]), bits[1]);
    int64_t words[LOP_NUMBERED];
    const int64_t *data = s->data;
    if (s->numbers && value) {
        memcpy(words, data, (size_t)s->ndata * sizeof *words);
        lop_step_numbers(s, value, words);
        data = words;
    }
    for (int k = 0; k < s->ndata; k++) h = mix(h, (uint64_t)data[k]);
    return h;
}

/* The key of each derived value is made of the steps' functions, names and attributes, of slots and
 * serials of leaves, and of how a slot is seen by whom reads it: not of who else looked at it.
 * Behind these keys there is one for each leaf. */
lop_status lop_plan_keys(const lop_plan *p, const uint64_t *serial, const lop_number *value,
                         uint64_t *key) {
    enum { FEW = 64 };
    uint64_t few[2 * FEW] = {0}, *line = few, *view;
    if (p->nslot > FEW && !(line = lop_calloc(p->ctx, 2 * (size_t)p->nslot, sizeof *line)))
        return LOP_NOMEM;
    view = line + p->nslot;
    for (int i = 0; i < p->nleaf; i++) line[p->leaf[i].slot] = lop_leaf_key(serial[i]);
    for (int i = 0; i < p->nstep; i++) {
        const lop_step *s = &p->step[i];
        uint64_t h = mix_step(s, value);
        if (is_view(p, s)) {
            view[s->arg[0]] = mix(mix_slot(h, &p->slot[s->arg[1]]), view[s->arg[1]]);
            continue;
        }
        for (int j = 1; j < s->n; j++) {
            const int at = s->arg[j];
            h = mix_slot(mix(mix(h, line[home_of(p, at)]), view[at]), &p->slot[at]);
        }
        /* where it goes too: a product may write a transpose, or a block, of what is read */
        const int out = home_of(p, s->arg[0]);
        h = mix_slot(h, &p->slot[s->arg[0]]);
        line[out] = mix(line[out], h);
        for (int a = p->slot[out].alias; a >= 0; a = p->slot[a].alias) line[a] = mix(line[a], h);
        if (s->derived >= 0)
            key[s->derived] = mix(line[out], (uint64_t)p->derive[s->derived].bytes);
    }
    for (int i = 0; p->nderive && i < p->nleaf; i++) key[p->nderive + i] = lop_leaf_key(serial[i]);
    if (line != few) lop_free(p->ctx, line);
    return LOP_OK;
}

/* Which values have the key of one before them that is made outside of fallback branches. One look
 * at a table each. */
static lop_status find_again(lop_plan *p) {
    int64_t room = 16;
    while (room < 2 * (int64_t)p->nderive) room *= 2;
    int *first = lop_calloc(p->ctx, (size_t)room, sizeof *first); /* one plus the first of a key */
    for (int i = 0; first && i < p->nderive; i++) {
        int64_t h = (int64_t)(p->key[i] & (uint64_t)(room - 1));
        while (first[h] && p->key[first[h] - 1] != p->key[i]) h = (h + 1) & (room - 1);
        lop_derive *d = &p->derive[i];
        d->again = first[h] != 0;
        d->served =
            i < LOP_KEEP && d->again && d->leaves && p->derive[first[h] - 1].leaves == d->leaves;
        if (!first[h] && p->step[p->derive[i].step].late < 0) first[h] = i + 1;
    }
    lop_free(p->ctx, first);
    return first ? LOP_OK : LOP_NOMEM;
}

static lop_status name_derived(lop_plan *p) {
    p->key = lop_calloc(p->ctx, (size_t)lop_plan_nkeys(p), sizeof *p->key);
    uint64_t *serial = lop_calloc(p->ctx, (size_t)p->nleaf, sizeof *serial);
    for (int i = 0; serial && i < p->nleaf; i++) serial[i] = p->leaf[i].serial;
    lop_status st = p->key && serial ? lop_plan_keys(p, serial, NULL, p->key) : LOP_NOMEM;
    lop_free(p->ctx, serial);
    return st;
}

/* -- what saves what */

/* Who reads a slot: what is always run, and derived values (one bit each). */
typedef struct use {
    bool always;
    uint64_t serves;
} use;

static void add(use *u, use more) {
    u->always |= more.always;
    u->serves |= more.serves;
}

static uint64_t bit(int i) { return i < LOP_KEEP ? (uint64_t)1 << i : 0; }

/* Steps whose results nothing but derived values reads. */
static void find_servants(lop_plan *p, use *of) {
    of[lop_slot_base(p, p->out)].always = true;
    for (int i = p->nstep - 1; i >= 0; i--) {
        lop_step *s = &p->step[i];
        use out = of[lop_slot_base(p, s->arg[0])], in;
        if (s->fail >= 0) add(&out, of[s->fail]);
        out.always =
            out.always || !out.serves; /* nothing reads it (0 X is 0): it runs all the same */
        in = out;
        if (s->derived >= 0) in = (use){s->derived >= LOP_KEEP, bit(s->derived)};
        s->serves = out.always ? 0 : out.serves;
        for (int j = 1; j < s->n; j++) add(&of[lop_slot_base(p, s->arg[j])], in);
        if (s->when >= 0) add(&of[s->when], out);
        if (s->late >= 0) add(&of[s->late], out);
        if (s->later >= 0) add(&of[s->later], out);
    }
}

static double bytes_of(const lop_slot *s) { return (double)s->matbytes * (double)s->batch; }

/* Is the mask, of one flag, set wherever `last` runs? What ran under it has then run, whatever it
 * was that led there. Of several flags, of a batch, those that are set say which elements were
 * made, also of what is within. */
static bool is_implied(const lop_plan *p, const lop_step *last, int mask) {
    const int around[2] = {last->late, last->later};
    for (int i = 0; i < 2; i++)
        if (around[i] >= 0 && p->slot[around[i]].batch != 1) return false;
    return p->slot[mask].batch == 1 &&
           ((last->when == mask && last->when_set) || last->late == mask || last->later == mask);
}

/* The leaves that the derived value is made of, and whether they are what to fingerprint. Goes
 * backwards from its step and marks what is read. */
static void find_leaves(const lop_plan *p, lop_derive *d, bool *read) {
    const lop_step *last = &p->step[d->step];
    double steps = 0, leaves = 0;
    uint64_t found = 0;
    memset(read, 0, (size_t)p->nslot);
    for (int j = 1; j < last->n; j++) {
        read[lop_slot_base(p, last->arg[j])] = true;
        steps += bytes_of(&p->slot[last->arg[j]]);
    }
    bool made = false;
    for (int i = d->step - 1; i >= 0; i--) {
        const lop_step *s = &p->step[i];
        if (is_view(p, s)) continue;
        if (!read[lop_slot_base(p, s->arg[0])] && !(s->fail >= 0 && read[s->fail]) &&
            !(s->escape >= 0 && read[s->escape]))
            continue;
        for (int j = 1; j < s->n; j++) read[lop_slot_base(p, s->arg[j])] = true;
        if (s->when >= 0 && !(s->when_set && is_implied(p, last, s->when))) read[s->when] = true;
        steps += 2 * bytes_of(&p->slot[s->arg[0]]) + s->flops / 4;
        made = made || s->run;
    }
    for (int i = 0; i < p->nleaf; i++) {
        if (!read[p->leaf[i].slot]) continue;
        if (i >= LOP_KEEP) return;
        found |= bit(i);
        leaves += bytes_of(&p->slot[p->leaf[i].slot]);
    }
    d->rests = found;
    if (made && leaves <= steps) d->leaves = found;
}

/* Of values beyond those with a bit of their own only such as an earlier one of the same key may
 * serve go by leaves, as that does; FEW of them, so that plans are made in linear time. */
static lop_status find_all_leaves(lop_plan *p) {
    enum { FEW = 8 * LOP_KEEP };
    bool *read = lop_calloc(p->ctx, (size_t)p->nslot, sizeof *read);
    if (!read) return LOP_NOMEM;
    for (int i = 0; i < p->nderive && i < FEW; i++) {
        bool asked = i < LOP_KEEP;
        for (int j = 0; j < i && !asked; j++) asked = p->key[j] == p->key[i];
        if (asked) find_leaves(p, &p->derive[i], read);
    }
    lop_free(p->ctx, read);
    return LOP_OK;
}

lop_status lop_keep_plan(lop_plan *p, lop_err *err) {
    if (!p->nderive) return LOP_OK;
    use *of = lop_calloc(p->ctx, (size_t)p->nslot, sizeof *of);
    lop_status st = of ? LOP_OK : LOP_NOMEM;
    if (st == LOP_OK) find_servants(p, of);
    lop_free(p->ctx, of);
    if (st == LOP_OK) st = name_derived(p);
    if (st == LOP_OK) st = find_all_leaves(p);
    if (st == LOP_OK) st = find_again(p);
    return st == LOP_OK ? st : lop_fail(err, st, NULL);
}
