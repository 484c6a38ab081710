/* plan_check_memory.c: where temporaries lie while they are needed.
 *
 * Spans are found anew: from the first step that touches a slot's memory by any name, or as a mask,
 * to the last. In the order of their births slots claim their bytes; a segment tree over all
 * beginnings and ends has, for each piece of memory, the slot that claimed it last. One that still
 * lives there is an error, but where a step that may run in place takes over its first argument's
 * memory and that dies there. Workspace, the two reserves and the derived values that are made
 * where their input lies are pieces of one line. Cost O(n log n). */
#include "plan_check.h"

#include <stdlib.h>
#include <string.h>

typedef struct memory {
    const lop_checker *k;
    const lop_plan *p;
    int *first, *last;  /* steps; -1: none */
    int64_t *from, *to; /* of a slot, on the line */
    int64_t *edge;      /* all of these, sorted */
    int *claim;         /* the tree: the slot that lives longest of those that lie here */
    int *all;           /* of those that cover a whole piece */
    int nedge;
    int64_t area[3 + LOP_KEEP]; /* where the workspace, the reserves, derived values begin */
    int64_t end[3 + LOP_KEEP];
} memory;

static int64_t bytes_of(const lop_slot *s) { return s->matbytes * s->batch; }

static void touch(memory *m, int slot, int step) {
    const int base = m->k->base[slot];
    if (m->first[base] < 0) m->first[base] = step;
    m->last[base] = step;
}

static void find_spans(memory *m) {
    const lop_plan *p = m->p;
    int mask[LOP_CHECK_MASKS];
    for (int i = 0; i < p->nslot; i++) m->first[i] = m->last[i] = -1;
    for (int i = 0; i < p->nstep; i++) {
        const lop_step *s = &p->step[i];
        if (!s->run) continue; /* by strides */
        for (int j = 0; j < s->n; j++) touch(m, s->arg[j], i);
        lop_check_masks(s, mask);
        for (int j = 0; j < LOP_CHECK_MASKS; j++)
            if (mask[j] >= 0) touch(m, mask[j], i);
    }
}

/* -- the tree */

static int longer(const memory *m, int a, int b) {
    if (a < 0 || b < 0) return a < 0 ? b : a;
    return m->last[a] >= m->last[b] ? a : b;
}

/* The slot that lives longest between edges a and b; the tree node spans lo to hi. */
static int who(const memory *m, int node, int lo, int hi, int a, int b) {
    if (b <= lo || hi <= a) return -1;
    if (a <= lo && hi <= b) return m->claim[node];
    const int mid = lo + (hi - lo) / 2;
    const int sides =
        longer(m, who(m, 2 * node + 1, lo, mid, a, b), who(m, 2 * node + 2, mid, hi, a, b));
    return longer(m, m->all[node], sides);
}

static void claim(memory *m, int node, int lo, int hi, int a, int b, int slot) {
    if (b <= lo || hi <= a) return;
    m->claim[node] = longer(m, slot, m->claim[node]);
    if (a <= lo && hi <= b) {
        m->all[node] = longer(m, slot, m->all[node]);
        return;
    }
    const int mid = lo + (hi - lo) / 2;
    claim(m, 2 * node + 1, lo, mid, a, b, slot);
    claim(m, 2 * node + 2, mid, hi, a, b, slot);
}

static int at_edge(const memory *m, int64_t where) {
    int lo = 0, hi = m->nedge - 1;
    while (lo < hi) {
        const int mid = lo + (hi - lo) / 2;
        if (m->edge[mid] < where)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static int by_place(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* -- places */

static lop_status find_areas(memory *m) {
    const lop_plan *p = m->p;
    int64_t top = 0;
    for (int i = 0; i < 3 + LOP_KEEP; i++) {
        const int64_t size = i == 0               ? p->workspace
                             : i < 3              ? p->reserve[i - 1]
                             : i - 3 < p->nderive ? p->derive[i - 3].bytes
                                                  : 0;
        m->area[i] = top;
        if (size < 0 || (i < 3 && size % 64) || !lop_add_ok(top, size, &top))
            return lop_check_fault(m->k, -1, "the workspace has %lld bytes", (long long)size);
        m->end[i] = top;
    }
    return LOP_OK;
}

static lop_status find_place(memory *m, int i) {
    const lop_slot *s = &m->p->slot[i];
    const int64_t bytes = bytes_of(s);
    if (s->onto >= 0 &&
        (s->onto >= m->p->nderive || s->onto >= LOP_KEEP || s->late || s->batch != 1))
        return lop_check_fault(m->k, m->first[i], "slot %d cannot lie where value %d is made", i,
                               s->onto);
    if (s->late < 0 || s->late > 2 || (s->onto < 0 && (s->offset < 0 || s->offset % 64)))
        return lop_check_fault(m->k, m->first[i], "slot %d has no place", i);
    const int area = s->onto >= 0 ? 3 + s->onto : s->late;
    m->from[i] = m->area[area];
    if (s->onto < 0 && !lop_add_ok(m->from[i], s->offset, &m->from[i])) m->from[i] = INT64_MAX;
    if (m->from[i] > m->end[area] || bytes > m->end[area] - m->from[i])
        return lop_check_fault(m->k, m->first[i],
                               "slot %d, %lld bytes at %lld, lies outside its "
                               "memory",
                               i, (long long)bytes, (long long)s->offset);
    m->to[i] = m->from[i] + bytes;
    return LOP_OK;
}

static bool is_flipped(const lop_plan *p, int slot) {
    for (; slot >= 0; slot = p->slot[slot].alias)
        if (p->slot[slot].flip || p->slot[slot].part) return true;
    return false;
}

/* May slot `to`, born at that step, lie where `from` dies? NULL, or why not. */
static const char *not_in_place(const memory *m, int step, int from, int to) {
    const lop_plan *p = m->p;
    const lop_step *s = &p->step[step];
    if (m->last[from] != step) return "it lives on";
    if (s->n < 2 || m->k->base[s->arg[0]] != to || m->k->base[s->arg[1]] != from)
        return "it is not taken over";
    if (!(s->flags & LOP_STEP_INPLACE)) return "that step cannot run in place";
    if (is_flipped(p, s->arg[0]) || is_flipped(p, s->arg[1])) return "it is seen otherwise";
    const lop_slot *a = &p->slot[s->arg[0]], *b = &p->slot[s->arg[1]];
    if (m->from[from] != m->from[to] || m->to[from] != m->to[to] || a->m != b->m || a->n != b->n ||
        a->batch != b->batch || a->matbytes != b->matbytes)
        return "the sizes differ";
    for (int j = 2; j < s->n; j++)
        if (m->k->base[s->arg[j]] == from && s->arg[j] != s->arg[1])
            return "another argument sees it otherwise";
    return NULL;
}

static lop_status born(memory *m, int slot, int step) {
    if (m->from[slot] == m->to[slot]) return LOP_OK;
    const int a = at_edge(m, m->from[slot]), b = at_edge(m, m->to[slot]);
    const int other = who(m, 0, 0, m->nedge, a, b);
    if (other >= 0 && m->last[other] >= step) {
        const char *why = not_in_place(m, step, other, slot);
        if (why)
            return lop_check_fault(m->k, step,
                                   "slot %d is put where slot %d lives (to step %d): %s", slot,
                                   other, m->last[other], why);
    }
    claim(m, 0, 0, m->nedge, a, b, slot);
    return LOP_OK;
}

/* -- rules of single steps */

/* Values in a reserve are written only where that reserve has been taken. */
static lop_status check_reserves(const memory *m, int i) {
    const lop_step *s = &m->p->step[i];
    const int out[3] = {s->arg[0], s->fail, s->escape};
    const int had = s->later >= 0 ? 2 : s->late >= 0 ? 1 : 0;
    for (int j = 0; j < 3; j++) {
        if (out[j] < 0) continue;
        const lop_slot *b = &m->p->slot[m->k->base[out[j]]];
        if (b->kind == LOP_S_TEMP && b->late > had)
            return lop_check_fault(m->k, i, "it writes slot %d in a reserve that need not be had",
                                   out[j]);
    }
    const size_t most = s->late >= 0 ? m->p->late_scratch[s->later >= 0] : m->p->scratch;
    if (s->scratch > most)
        return lop_check_fault(m->k, i, "it needs %zu bytes of scratch, of %zu", s->scratch, most);
    return LOP_OK;
}

/* A value that lies where a derived value will be serves that one alone, and dies where it is made.
 */
static lop_status check_onto(const memory *m, int i) {
    const lop_plan *p = m->p;
    const lop_step *s = &p->step[i];
    for (int j = 0; j < s->n; j++) {
        const int base = m->k->base[s->arg[j]], d = p->slot[base].onto;
        if (p->slot[base].kind != LOP_S_TEMP || d < 0) continue;
        const lop_step *by = &p->step[p->derive[d].step];
        const bool maker = i == p->derive[d].step;
        if (maker && j == 1 && m->last[base] == i && (s->flags & LOP_STEP_INPLACE) &&
            s->arg[1] == base && s->when < 0 && s->late < 0)
            continue;
        if (maker || i > p->derive[d].step || s->derived >= 0 || s->serves != (uint64_t)1 << d ||
            s->when >= 0 || s->fail >= 0 || s->late >= 0 || s->escape >= 0 ||
            p->slot[by->arg[0]].batch != 1)
            return lop_check_fault(m->k, i,
                                   "slot %d lies where value %d is made, and is not for "
                                   "that alone",
                                   base, d);
    }
    return LOP_OK;
}

static lop_status walk(memory *m) {
    const lop_plan *p = m->p;
    int mask[LOP_CHECK_MASKS];
    lop_status st = LOP_OK;
    for (int i = 0; i < p->nstep && st == LOP_OK; i++) {
        const lop_step *s = &p->step[i];
        if (!s->run) continue;
        st = check_reserves(m, i);
        if (st == LOP_OK) st = check_onto(m, i);
        lop_check_masks(s, mask);
        for (int j = 0; j < s->n + LOP_CHECK_MASKS && st == LOP_OK; j++) {
            const int slot = j < s->n ? s->arg[j] : mask[j - s->n];
            if (slot < 0) continue;
            const int base = m->k->base[slot];
            if (p->slot[base].kind != LOP_S_TEMP || m->first[base] != i) continue;
            m->first[base] = -2; /* once */
            st = born(m, base, i);
        }
    }
    return st;
}

static lop_status lay_out(memory *m) {
    const lop_plan *p = m->p;
    lop_status st = find_areas(m);
    int n = 0;
    for (int i = 0; i < p->nslot && st == LOP_OK; i++) {
        if (p->slot[i].kind != LOP_S_TEMP || p->slot[i].alias >= 0 || m->first[i] < 0) continue;
        st = find_place(m, i);
        m->edge[n++] = m->from[i];
        m->edge[n++] = m->to[i];
    }
    if (st != LOP_OK) return st;
    qsort(m->edge, (size_t)n, sizeof *m->edge, by_place);
    for (int i = 0; i < n; i++)
        if (!m->nedge || m->edge[m->nedge - 1] != m->edge[i]) m->edge[m->nedge++] = m->edge[i];
    for (int i = 0; i < 4 * m->nedge; i++) m->claim[i] = m->all[i] = -1;
    return walk(m);
}

lop_status lop_check_memory(const lop_checker *k) {
    const lop_plan *p = k->p;
    const size_t slots = (size_t)p->nslot;
    memory m = {.k = k, .p = p};
    int64_t *line = lop_calloc(p->ctx, 4 * slots, sizeof *line);
    int *block = lop_calloc(p->ctx, 18 * slots, sizeof *block);
    lop_status st = line && block ? LOP_OK : lop_fail(k->err, LOP_NOMEM, NULL);
    if (st == LOP_OK) {
        m.from = line;
        m.to = line + slots;
        m.edge = line + 2 * slots;
        m.first = block;
        m.last = block + slots;
        m.claim = block + 2 * slots;
        m.all = block + 10 * slots;
        find_spans(&m);
        st = lay_out(&m);
    }
    lop_free(p->ctx, line);
    lop_free(p->ctx, block);
    return st;
}
