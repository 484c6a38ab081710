/* contract_read.c: a contraction's plan from its axes: sizes, operands without repeated, broadcast
 * and unit axes, then pair by pair. */
#include "contract_parts.h"

#include <limits.h>
#include <string.h>

lop_labels lop_labels_of(const lop_tensor *t) {
    lop_labels s = {{0}};
    for (int i = 0; i < t->n; i++) lop_labels_add(&s, t->label[i]);
    return s;
}

static lop_status read_sizes(lop_contract_work *w, const lop_axes *x, int operand) {
    for (int i = 0; i < x->n; i++) {
        const int label = x->label[i];
        if (label < 0 || label >= LOP_MAXLABELS)
            return lop_fail(w->err, LOP_DOMAIN, "label %d; there are %d", label, LOP_MAXLABELS);
        int64_t *size = &w->size[label];
        if (*size == 1 || *size == x->size[i])
            *size = x->size[i];
        else if (x->size[i] != 1)
            return lop_fail(w->err, LOP_DIM, "label %d has size %lld in operand %d and %lld before",
                            label, (long long)x->size[i], operand, (long long)*size);
    }
    return LOP_OK;
}

/* Strides of one label add; what has size 1 is no axis. */
static void gather(const lop_contract_work *w, const lop_axes *x, lop_tensor *t) {
    t->n = 0;
    for (int i = 0; i < x->n; i++) {
        int j = 0;
        if (w->size[x->label[i]] == 1) continue;
        while (j < t->n && t->label[j] != x->label[i]) j++;
        if (j == t->n) {
            t->label[j] = x->label[i];
            t->stride[j] = 0;
            t->n++;
        }
        if (x->size[i] != 1) t->stride[j] += x->stride[i];
    }
}

/* An axis along which nothing moves is none, where another operand moves along that label. */
static void drop_still(lop_contract_work *w) {
    lop_labels moving = {{0}};
    for (int i = 0; i < w->spec->noperand; i++)
        for (int j = 0; j < w->tensor[i].n; j++)
            if (w->tensor[i].stride[j]) lop_labels_add(&moving, w->tensor[i].label[j]);
    for (int i = 0; i < w->spec->noperand; i++) {
        lop_tensor *t = &w->tensor[i];
        int n = 0;
        for (int j = 0; j < t->n; j++) {
            if (!t->stride[j] && lop_labels_has(&moving, t->label[j])) continue;
            t->label[n] = t->label[j];
            t->stride[n++] = t->stride[j];
        }
        t->n = n;
    }
}

/* Labels of one operand alone that the result has not are summed before all else. */
static lop_status sum_lonely(lop_contract_work *w) {
    const int n = w->spec->noperand;
    const lop_labels out = lop_labels_of(&w->result);
    int *times = lop_calloc(w->ctx, LOP_MAXLABELS, sizeof *times);
    lop_status st = LOP_OK;
    if (!times) return lop_fail(w->err, LOP_NOMEM, NULL);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < w->tensor[i].n; j++) times[w->tensor[i].label[j]]++;
    for (int i = 0; n > 1 && i < n; i++) {
        lop_labels kept = {{0}};
        bool lonely = false;
        for (int j = 0; j < w->tensor[i].n; j++) {
            const int label = w->tensor[i].label[j];
            if (times[label] == 1 && !lop_labels_has(&out, label))
                lonely = true;
            else
                lop_labels_add(&kept, label);
        }
        if (!lonely) continue;
        lop_tensor made = {.n = -1};
        LOP_TRY(lop_contract_pair(w, &w->tensor[i], NULL, &made, &kept));
        w->tensor[i] = made;
    }
done:
    lop_free(w->ctx, times);
    return st;
}

lop_status lop_contract_read(lop_contract_work *w) {
    const lop_spec *s = w->spec;
    lop_labels known = {{0}}, seen = {{0}};
    for (int i = 0; i < LOP_MAXLABELS; i++) w->size[i] = 1;
    for (int i = 0; i < s->noperand; i++) {
        const lop_status st = read_sizes(w, &s->operand[i], i);
        if (st != LOP_OK) return st;
        for (int j = 0; j < s->operand[i].n; j++) lop_labels_add(&known, s->operand[i].label[j]);
    }
    for (int j = 0; j < s->result->n; j++) {
        const int label = s->result->label[j];
        if (label < 0 || label >= LOP_MAXLABELS || !lop_labels_has(&known, label))
            return lop_fail(w->err, LOP_DOMAIN, "label %d of the result is in no operand", label);
        if (lop_labels_has(&seen, label))
            return lop_fail(w->err, LOP_DOMAIN, "label %d is twice in the result", label);
        if (s->result->size[j] != w->size[label])
            return lop_fail(w->err, LOP_DIM, "label %d has size %lld and %lld in the result", label,
                            (long long)w->size[label], (long long)s->result->size[j]);
        lop_labels_add(&seen, label);
    }
    for (int i = 0; i < LOP_MAXLABELS; i++)
        if (w->size[i] == 0) w->plan->zero = true;
    for (int i = 0; i < s->noperand; i++) {
        gather(w, &s->operand[i], &w->tensor[i]);
        w->tensor[i].slot = i;
        w->tensor[i].same = s->same ? s->same[i] : i;
    }
    gather(w, s->result, &w->result);
    w->result.slot = w->result.same = s->noperand;
    return LOP_OK;
}

/* -- the plan as it grows */

static bool grow(lop_ctx *ctx, void *block, int need, int *room, size_t size) {
    void **at = block, *more;
    if (need <= *room) return true;
    const int to = need + need / 2 + 8;
    more = lop_realloc(ctx, *at, (size_t)to * size);
    if (!more) return false;
    *at = more;
    *room = to;
    return true;
}

lop_status lop_contract_step_add(lop_contract_work *w, const lop_contract_step *step,
                                 const lop_loop *loop) {
    lop_contraction *p = w->plan;
    if (!grow(w->ctx, &p->step, p->nstep + 1, &w->room_steps, sizeof *p->step) ||
        !grow(w->ctx, &p->loop, p->nloops + step->nloop + 1, &w->room_loops, sizeof *p->loop))
        return lop_fail(w->err, LOP_NOMEM, NULL);
    lop_contract_step *at = &p->step[p->nstep++];
    *at = *step;
    at->first = p->nloops;
    memcpy(p->loop + p->nloops, loop, (size_t)step->nloop * sizeof *loop);
    p->nloops += step->nloop;
    p->flops += step->flops;
    p->seconds += step->seconds;
    return LOP_OK;
}

lop_status lop_contract_slot(lop_contract_work *w, int64_t count, int *slot) {
    lop_contraction *p = w->plan;
    int64_t bytes;
    if (!lop_mul_ok(count, (int64_t)lop_dtype_size(p->dt), &bytes) || bytes > INT64_MAX / 4)
        return lop_fail(w->err, LOP_OVERFLOW, "an array of %lld elements", (long long)count);
    bytes = (bytes + 63) & ~(int64_t)63;
    int room = w->room_slots;
    if (!grow(w->ctx, &p->offset, p->nslot + 1, &room, sizeof *p->offset) ||
        !grow(w->ctx, &w->until, p->nslot + 1, &w->room_slots, sizeof *w->until))
        return lop_fail(w->err, LOP_NOMEM, NULL);
    *slot = p->nslot++;
    p->offset[*slot] = bytes; /* its size, until lop_contract places it */
    p->bytes += bytes;
    return LOP_OK;
}

/* First fit of each temporary beside those that live when it does. p->offset holds sizes so far. */
static lop_status place(lop_contract_work *w) {
    lop_contraction *p = w->plan;
    const int first = p->noperand + 1, n = p->nslot;
    int64_t *at = lop_alloc(w->ctx, (size_t)n * sizeof *at);
    int *born = lop_alloc(w->ctx, (size_t)n * sizeof *born);
    lop_status st = LOP_OK;
    if (!at || !born) {
        st = lop_fail(w->err, LOP_NOMEM, NULL);
        goto done;
    }
    for (int i = first; i < n; i++) born[i] = INT_MAX, w->until[i] = -1;
    for (int t = 0; t < p->nstep; t++) {
        const int used[3] = {p->step[t].a, p->step[t].b, p->step[t].c};
        for (int j = 0; j < 3; j++)
            if (used[j] >= first) {
                if (born[used[j]] > t) born[used[j]] = t;
                w->until[used[j]] = t;
            }
    }
    for (int i = first; i < n; i++) {
        bool moved = true;
        at[i] = 0;
        while (moved) {
            moved = false;
            for (int j = first; j < i; j++)
                if (born[j] <= w->until[i] && born[i] <= w->until[j] &&
                    at[j] < at[i] + p->offset[i] && at[i] < at[j] + p->offset[j]) {
                    at[i] = at[j] + p->offset[j];
                    moved = true;
                }
        }
        if (at[i] + p->offset[i] > p->workspace) p->workspace = at[i] + p->offset[i];
    }
    memcpy(p->offset + first, at + first, (size_t)(n - first) * sizeof *at);
    if (p->workspace > w->spec->most)
        st = lop_fail(w->err, LOP_LIMIT, "temporaries of %lld bytes; the limit is %lld",
                      (long long)p->workspace, (long long)w->spec->most);
done:
    lop_free(w->ctx, at);
    lop_free(w->ctx, born);
    return st;
}

static lop_status lower_all(lop_contract_work *w) {
    const int n = w->spec->noperand;
    lop_status st = LOP_OK;
    lop_tensor *t = w->tensor;
    const lop_labels out = lop_labels_of(&w->result);
    drop_still(w);
    if (n == 1) return lop_contract_pair(w, &t[0], NULL, &w->result, &out);
    LOP_TRY(sum_lonely(w));
    LOP_TRY(lop_contract_order(w));
    for (int i = 0; i < n - 1; i++) {
        const int a = w->pair[i].a, b = w->pair[i].b;
        if (i == n - 2) return lop_contract_pair(w, &t[a], &t[b], &w->result, &out);
        lop_labels kept = out;
        for (int j = i + 1; j < n - 1; j++) { /* what later pairs read that lies there already */
            const int later[2] = {w->pair[j].a, w->pair[j].b};
            for (int l = 0; l < 2; l++)
                for (int e = 0; later[l] < n + i && e < t[later[l]].n; e++)
                    lop_labels_add(&kept, t[later[l]].label[e]);
        }
        t[n + i].n = -1;
        LOP_TRY(lop_contract_pair(w, &t[a], &t[b], &t[n + i], &kept));
    }
done:
    return st;
}

lop_status lop_contract_whole(lop_ctx *ctx, const lop_spec *spec, lop_contraction **out,
                              lop_err *err) {
    const int n = spec->noperand;
    lop_contract_work w = {.ctx = ctx, .spec = spec, .err = err};
    lop_status st = LOP_OK;
    if (n < 1) return lop_fail(err, LOP_DOMAIN, "a contraction of no operands");
    if (!lop_is_blas(spec->dt))
        return lop_fail(err, LOP_DTYPE, "contractions of %s", lop_dtype_name(spec->dt));
    lop_contraction *p = w.plan = lop_calloc(ctx, 1, sizeof *p);
    w.tensor = lop_calloc(ctx, (size_t)(2 * n), sizeof *w.tensor);
    w.pair = lop_calloc(ctx, (size_t)n, sizeof *w.pair);
    if (!p || !w.tensor || !w.pair) {
        st = lop_fail(err, LOP_NOMEM, NULL);
        goto done;
    }
    p->dt = spec->dt;
    p->noperand = n;
    p->parts = 1;
    p->nslot = n + 1;
    p->result = *spec->result;
    p->offset = lop_calloc(ctx, (size_t)(n + 1), sizeof *p->offset);
    w.until = lop_calloc(ctx, (size_t)(n + 1), sizeof *w.until);
    w.room_slots = n + 1;
    if (!p->offset || !w.until) {
        st = lop_fail(err, LOP_NOMEM, NULL);
        goto done;
    }
    LOP_TRY(lop_contract_read(&w));
    if (!p->zero) {
        LOP_TRY(lower_all(&w));
        LOP_TRY(place(&w));
    }
    *out = p;
    p = NULL;
done:
    lop_contract_free(ctx, p);
    lop_free(ctx, w.tensor);
    lop_free(ctx, w.pair);
    lop_free(ctx, w.until);
    return st;
}

void lop_contract_free(lop_ctx *ctx, lop_contraction *plan) {
    if (!plan) return;
    lop_free(ctx, plan->offset);
    lop_free(ctx, plan->part);
    lop_free(ctx, plan->loop);
    lop_free(ctx, plan->step);
    lop_free(ctx, plan);
}
