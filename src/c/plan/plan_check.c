/* plan_check.c: is a plan sound? Asked after every pass that makes or changes one: in debug builds,
 * and where pl.config(check_plans=True) says so.
 *
 *   here                  slots and steps, each by itself: sizes, other names for one memory, flags
 *   plan_check_flow.c     what is written before it is read, on every way through the plan
 *   plan_check_memory.c   life spans and places
 *
 * Nothing that a pass has worked out is trusted: bases, spans, leaves and conditions are found anew
 * from the steps alone. Cost O(steps log slots). */
#include "plan_check.h"

#include "plan_print.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const passes[] = {"lower", "fuse", "keep", "place"};

lop_status lop_check_fault(const lop_checker *k, int step, const char *format, ...) {
    enum { BEFORE = 8, STEPS = 16 };
    char what[256];
    va_list args;
    const lop_plan *p = k->p;
    if (!k->err) return LOP_INTERNAL;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    const int from = step > BEFORE ? step - BEFORE : 0;
    char *text = lop_plan_steps(p, from, from + STEPS);
    lop_status st =
        step < 0 ? lop_fail(k->err, LOP_INTERNAL,
                            "pylinop made a plan that is wrong (a bug of ours, please report it "
                            "with this text), by the pass '%s': %s\n%s",
                            passes[k->pass], what, text ? text : "")
                 : lop_fail(k->err, LOP_INTERNAL,
                            "pylinop made a plan that is wrong (a bug of ours, please report it "
                            "with this text), by the pass '%s', step %d (%s): %s\n%s",
                            passes[k->pass], step, p->step[step].name ? p->step[step].name : "?",
                            what, text ? text : "");
    lop_free(p->ctx, text);
    return st;
}

/* -- slots */

static bool in_plan(const lop_plan *p, int slot) { return slot >= 0 && slot < p->nslot; }

/* Sizes as dtype, core and shape give them. */
static lop_status check_sizes(const lop_checker *k, int i) {
    const lop_slot *s = &k->p->slot[i];
    const int nb = s->shape.ndim - s->core;
    int64_t m = 1, n = 1, batch = 1, bytes = 0, all;
    bool fits = s->core >= 0 && s->core <= 2 && nb >= 0 && s->shape.ndim <= LOP_MAXDIM;
    if (fits && s->core >= 1) m = s->shape.dim[nb];
    if (fits && s->core == 2) n = s->shape.dim[nb + 1];
    for (int d = 0; fits && d < nb; d++) fits = lop_mul_ok(batch, s->shape.dim[d], &batch);
    fits = fits && lop_mul_ok(m, n, &bytes) &&
           lop_mul_ok(bytes, (int64_t)lop_dtype_size(s->dt), &bytes) &&
           lop_mul_ok(bytes, batch, &all);
    if (!fits || s->m != m || s->n != n || s->batch != batch || s->matbytes != bytes)
        return lop_check_fault(k, -1, "the sizes of slot %d do not follow from its shape", i);
    return LOP_OK;
}

static lop_status check_kind(const lop_checker *k, int i) {
    const lop_plan *p = k->p;
    const lop_slot *s = &p->slot[i];
    bool fits = true;
    if (s->kind == LOP_S_LEAF)
        fits = s->leaf >= 0 && s->leaf < p->nleaf && p->leaf[s->leaf].slot == i &&
               p->leaf[s->leaf].dt == s->dt && lop_shape_equal(&p->leaf[s->leaf].shape, &s->shape);
    else if (s->kind == LOP_S_DERIVED)
        fits = s->leaf >= 0 && s->leaf < p->nderive && p->derive[s->leaf].step >= 0 &&
               p->derive[s->leaf].step < p->nstep &&
               p->step[p->derive[s->leaf].step].derived == s->leaf &&
               p->step[p->derive[s->leaf].step].arg[0] == i &&
               s->matbytes == p->derive[s->leaf].bytes;
    else
        fits = (s->kind == LOP_S_OUT) == (i == p->out);
    return fits ? LOP_OK : lop_check_fault(k, -1, "slot %d is not what it says", i);
}

/* Leading ones, as a stack of one matrix has them beside a matrix, move nothing in memory. */
static bool same_batch(const lop_slot *a, const lop_slot *b) {
    const int na = a->shape.ndim - a->core, nb = b->shape.ndim - b->core, most = na > nb ? na : nb;
    for (int d = 1; d <= most; d++)
        if ((d > na ? 1 : a->shape.dim[na - d]) != (d > nb ? 1 : b->shape.dim[nb - d]))
            return false;
    return true;
}

/* A slot that is another name for `w`. */
static lop_status check_alias(const lop_checker *k, int i) {
    const lop_plan *p = k->p;
    const lop_slot *s = &p->slot[i], *w = &p->slot[s->alias];
    int64_t count, all, end;
    const int64_t size = (int64_t)lop_dtype_size(s->dt), unit = (int64_t)lop_dtype_size(w->dt);
    const bool bytes = s->window && w->dt == LOP_u8;
    if (s->kind != LOP_S_TEMP || w->kind == LOP_S_DERIVED || (s->dt != w->dt && !bytes) ||
        s->part + s->window + s->flip > 1)
        return lop_check_fault(k, -1, "slot %d cannot be a name for slot %d", i, s->alias);
    if (s->flip) /* of a window too: that has a C order of its own */
        return s->m == w->n && s->n == w->m && s->core == w->core && same_batch(s, w) &&
                       !w->part /* a window lies in C order of its own */
                   ? LOP_OK
                   : lop_check_fault(k, -1, "slot %d is no transpose of slot %d", i, s->alias);
    if (w->flip) return lop_check_fault(k, -1, "slot %d lies on the transpose %d", i, s->alias);
    if (s->part)
        return s->core == w->core && same_batch(s, w) && s->row >= 0 && s->col >= 0 &&
                       s->row <= w->m - s->m && s->col <= w->n - s->n && s->late >= w->late
                   ? LOP_OK
                   : lop_check_fault(k, -1,
                                     "slot %d, a block at (%lld, %lld), lies outside slot %d", i,
                                     (long long)s->row, (long long)s->col, s->alias);
    count = s->m * s->n * s->batch; /* these fit: see check_sizes */
    all = w->m * w->n * w->batch;
    if (s->window)
        return w->batch == 1 && w->n == 1 && (w->alias < 0 || w->window) && w->need_c &&
                       s->shift >= 0 && lop_add_ok(s->shift, count, &end) &&
                       lop_mul_ok(end, size, &end) && end <= all * unit
                   ? LOP_OK
                   : lop_check_fault(k, -1,
                                     "slot %d, %lld elements from %lld on, lies outside slot %d", i,
                                     (long long)count, (long long)s->shift, s->alias);
    if (count != all || s->shift || w->part)
        return lop_check_fault(k, -1, "slot %d has %lld elements, slot %d, whose name it is, %lld",
                               i, (long long)count, s->alias, (long long)all);
    if (p->slot[k->base[i]].kind != LOP_S_TEMP && !p->slot[k->base[i]].need_c)
        return lop_check_fault(k, -1, "slot %d needs slot %d in C order", i, k->base[i]);
    return LOP_OK;
}

/* Finds the memory of each slot; false: aliases form a circle. */
static bool find_bases(const lop_plan *p, int *base) {
    for (int i = 0; i < p->nslot; i++) base[i] = -1;
    for (int i = 0; i < p->nslot; i++) {
        int at = i, found;
        while (base[at] == -1 && p->slot[at].alias >= 0) {
            base[at] = -2; /* on the way from i */
            at = p->slot[at].alias;
            if (!in_plan(p, at)) return false;
        }
        if (base[at] == -2) return false;
        found = base[at] >= 0 ? base[at] : at;
        base[at] = found;
        for (at = i; base[at] == -2; at = p->slot[at].alias) base[at] = found;
    }
    return true;
}

/* The step that would copy what a slot sees by strides, were it a copy. */
static bool may_copy(const lop_plan *p, int i) {
    const int step = p->slot[i].copy_step;
    if (step < 0) return true;
    if (step >= p->nstep || !p->slot[i].copy || p->slot[i].alias < 0) return false;
    const lop_step *s = &p->step[step];
    return !s->run && s->n == 2 && (s->arg[0] == i || s->arg[1] == i);
}

static lop_status check_slots(const lop_checker *k) {
    const lop_plan *p = k->p;
    lop_status st = LOP_OK;
    if (!in_plan(p, p->out) || p->slot[p->out].kind != LOP_S_OUT || p->slot[p->out].alias >= 0)
        return lop_check_fault(k, -1, "there is no result");
    for (int i = 0; i < p->nleaf; i++)
        if (!in_plan(p, p->leaf[i].slot) || p->slot[p->leaf[i].slot].leaf != i)
            return lop_check_fault(k, -1, "leaf %d has no slot", i);
    for (int i = 0; i < p->nslot && st == LOP_OK; i++) {
        const lop_slot *s = &p->slot[i];
        st = check_sizes(k, i);
        if (st == LOP_OK) st = check_kind(k, i);
        if (st != LOP_OK) break;
        if (s->alias >= 0)
            st = check_alias(k, i);
        else if (s->flip || s->part || s->window || s->shift)
            st = lop_check_fault(k, -1, "slot %d is a part of none", i);
        if (st == LOP_OK && !may_copy(p, i))
            st = lop_check_fault(k, -1, "no step copies what slot %d sees by strides", i);
    }
    return st;
}

/* -- steps, each by itself */

/* Has the slot as many batch elements as `out`, or one along some dimensions? */
static bool broadcasts(const lop_slot *a, const lop_slot *out) {
    const int own = a->shape.ndim - a->core, nb = out->shape.ndim - out->core;
    if (own > nb) return false;
    for (int d = 0; d < own; d++)
        if (a->shape.dim[d] != 1 && a->shape.dim[d] != out->shape.dim[nb - own + d]) return false;
    return true;
}

static bool is_mask(const lop_plan *p, int slot) {
    return in_plan(p, slot) && p->slot[slot].kind == LOP_S_TEMP && p->slot[slot].dt == LOP_b8 &&
           p->slot[slot].core == 0 && p->slot[slot].alias < 0;
}

static bool one_dtype(const lop_plan *p, const lop_step *s) {
    const lop_dtype dt = p->slot[s->arg[0]].dt;
    bool same = lop_is_blas(dt);
    for (int j = 1; same && j < s->n; j++) same = p->slot[s->arg[j]].dt == dt;
    return same;
}

/* What the flags and functions of a step contradict; NULL: nothing. */
static const char *flags_against(const lop_plan *p, const lop_step *s) {
    const int f = s->flags;
    const lop_slot *out = &p->slot[s->arg[0]];
    if ((s->adds != NULL) != (s->adds_name != NULL) || (s->subs != NULL) != (s->subs_name != NULL))
        return "of what it could do instead there is a function or a name, not both";
    if ((s->ndata > 0) != (s->data != NULL) || s->ndata < 0) return "its data is not all there";
    if (((f & LOP_STEP_SUM) != 0) != (s->subs != NULL))
        return "a sum, and nothing else, has a function that subtracts";
    if ((f & LOP_STEP_SUM) && (s->n != 3 || !one_dtype(p, s) || s->adds))
        return "a sum has two arguments of its own dtype";
    if ((f & LOP_STEP_SCALES) && (s->n != 2 || !lop_is_blas(out->dt)))
        return "a multiple has one argument";
    if (s->adds && (s->n < 3 || (f & (LOP_STEP_SUM | LOP_STEP_SCALES | LOP_STEP_PLACES))))
        return "a product alone can accumulate";
    if ((f & LOP_STEP_ACCUMULATES) &&
        (s->n < 3 || !one_dtype(p, s) || !isfinite(s->attr.re) || !isfinite(s->attr.im) ||
         s->adds || s->derived >= 0 || out->batch != 1 ||
         s->scratch < (size_t)out->n * lop_dtype_size(out->dt) ||
         (f & (LOP_STEP_SUM | LOP_STEP_SCALES | LOP_STEP_INPLACE | LOP_STEP_COLUMNS |
               LOP_STEP_BATCH | LOP_STEP_GROUP | LOP_STEP_PLACES))))
        return "what accumulates is one product of one dtype by a finite number";
    if ((f & LOP_STEP_STARTS) &&
        (s->n < 2 || !one_dtype(p, s) || s->adds || s->derived >= 0 || out->batch != 1 ||
         (f & (LOP_STEP_ACCUMULATES | LOP_STEP_PLACES))))
        return "what starts a sum takes what it starts from";
    if ((f & LOP_STEP_COLUMNS) && s->n < 2) return "what is linear in its argument has one";
    if ((f & LOP_STEP_SOLVES) && (s->n != 3 || (f & (LOP_STEP_COLUMNS | LOP_STEP_BATCH))))
        return "what solves has a factor and an argument";
    if ((f & LOP_STEP_INPLACE) && s->n < 2) return "what may run in place has an argument";
    if ((f & LOP_STEP_BATCH) && s->n < 2) return "what takes a batch has an argument";
    if ((f & LOP_STEP_EACH) && (s->n != 3 || !(f & LOP_STEP_BATCH)))
        return "what takes each pair of a batch has two arguments";
    if ((f & LOP_STEP_GROUP) && (s->n < 2 || s->n > 3)) return "a group has one or two arguments";
    if ((f & LOP_STEP_GROUP) && (f & (LOP_STEP_BATCH | LOP_STEP_COLUMNS)))
        return "a group is no other batch";
    if ((f & LOP_STEP_PLACES) && (s->n < 2 || s->derived >= 0 || s->fail >= 0))
        return "what places has arguments and cannot fail";
    if ((f & LOP_STEP_GATE) && (s->n != 2 || !is_mask(p, s->arg[1]) || s->escape < 0))
        return "a gate reads one mask, and escapes";
    if ((f & LOP_STEP_QUIET) && s->fail < 0) return "it is quiet, and cannot fail";
    if ((f & LOP_STEP_FOREIGN) && s->derived < 0) return "only derived values own foreign objects";
    return NULL;
}

static const char *guards_against(const lop_plan *p, const lop_step *s, int i) {
    int mask[LOP_CHECK_MASKS];
    lop_check_masks(s, mask);
    for (int j = 0; j < LOP_CHECK_MASKS; j++)
        if (mask[j] != -1 && !is_mask(p, mask[j])) return "what guards it is no mask";
    if (s->fail >= 0 && s->escape >= 0) return "its failure leads to two ways";
    if (s->fail >= 0 && !(same_batch(&p->slot[s->fail], &p->slot[s->arg[0]])))
        return "its mask has not one flag a batch element";
    if (s->fail >= 0 && (s->fail == s->when || s->fail == s->late || s->fail == s->later))
        return "it hangs on its own failure";
    if (s->when_set && s->when < 0) return "it hangs on a mask that is not there";
    if (s->later >= 0 && s->late < 0) return "it lies in a fallback branch within none";
    if (s->escape >= 0 && (s->escape_to <= i || s->escape_to >= p->nstep))
        return "it does not escape forward";
    return NULL;
}

static const char *derived_against(const lop_plan *p, const lop_step *s, int i) {
    const lop_slot *out = &p->slot[s->arg[0]];
    if ((s->derived >= 0) != (out->kind == LOP_S_DERIVED))
        return "derived values, and nothing else, are prepared";
    if (s->derived < 0) return NULL;
    if (s->derived >= p->nderive || p->derive[s->derived].step != i || out->leaf != s->derived)
        return "it prepares another value than it says";
    if (p->derive[s->derived].bytes < 0 || p->derive[s->derived].bytes % 64)
        return "its value has no whole number of lines of memory";
    return NULL;
}

/* A change of strides: one of its two slots is the other, transposed or in part. */
static bool by_strides(const lop_plan *p, const lop_step *s, int i) {
    if (s->n != 2) return false;
    for (int j = 0; j < 2; j++) {
        const lop_slot *seen = &p->slot[s->arg[j]];
        if (seen->copy_step == i && seen->alias == s->arg[1 - j] && (seen->flip || seen->part))
            return true;
    }
    return false;
}

static lop_status check_step(const lop_checker *k, int i) {
    const lop_plan *p = k->p;
    const lop_step *s = &p->step[i];
    const char *why;
    if (s->n < 1 || s->n > LOP_MAXARG) return lop_check_fault(k, i, "it has %d arguments", s->n);
    for (int j = 0; j < s->n; j++)
        if (!in_plan(p, s->arg[j]))
            return lop_check_fault(k, i, "argument %d is slot %d of %d", j, s->arg[j], p->nslot);
    if (!s->name) return lop_check_fault(k, i, "it has no name");
    if (s->run && p->slot[k->base[s->arg[0]]].kind == LOP_S_LEAF)
        return lop_check_fault(k, i, "it writes a leaf");
    why = flags_against(p, s);
    if (!why) why = guards_against(p, s, i);
    if (!why) why = derived_against(p, s, i);
    if (!why && !s->run && !by_strides(p, s, i)) why = "it neither runs nor changes strides";
    if (why) return lop_check_fault(k, i, "%s", why);
    const lop_slot *out = &p->slot[s->arg[0]];
    const bool pile = (s->flags & LOP_STEP_PLACES) && (s->flags & LOP_STEP_BATCH);
    for (int j = 1; j < s->n; j++)
        if (!pile && !broadcasts(&p->slot[s->arg[j]], out))
            return lop_check_fault(k, i, "the batch of argument %d does not fit that of the result",
                                   j);
    for (int j = 0; j < s->n; j++)
        if (k->pass == LOP_PASS_PLACE && p->slot[s->arg[j]].batch > 1 && !p->batched)
            return lop_check_fault(k, i, "it has a batch, the plan has none");
    return LOP_OK;
}

lop_status lop_plan_check(const lop_plan *p, lop_pass pass, lop_err *err) {
    lop_checker k = {p, pass, err, NULL};
    lop_status st = LOP_OK;
    if (p->nslot < 1) return lop_check_fault(&k, -1, "there is no result");
    k.base = lop_calloc(p->ctx, (size_t)p->nslot, sizeof *k.base);
    if (!k.base) return lop_fail(err, LOP_NOMEM, NULL);
    if (!find_bases(p, k.base)) st = lop_check_fault(&k, -1, "slots are names for each other");
    if (st == LOP_OK) st = check_slots(&k);
    for (int i = 0; i < p->nstep && st == LOP_OK; i++) st = check_step(&k, i);
    if (st == LOP_OK) st = lop_check_flow(&k);
    if (st == LOP_OK && pass == LOP_PASS_PLACE) st = lop_check_memory(&k);
    lop_free(p->ctx, k.base);
    return st;
}
