/* emit.c: slots, steps and the node map, grown as a plan is made. Cost: amortised O(1) each. */
#include "emit_impl.h"

#include "kernels/common/kernels.h"

#include <string.h>

/* -- slots */

static bool grow(lop_ctx *ctx, void **block, int *room, int n, size_t size) {
    if (n < *room) return true;
    int more = *room ? 2 * *room : 8;
    void *p = lop_realloc(ctx, *block, (size_t)more * size);
    if (!p) return false;
    *block = p;
    *room = more;
    return true;
}

int lop_emit_slot(lop_emit *e, lop_slot_kind kind, lop_dtype dt, int core, const lop_shape *shape,
                  lop_status *st) {
    lop_plan *p = e->plan;
    lop_slot s = {.kind = kind,
                  .dt = dt,
                  .core = core,
                  .shape = *shape,
                  .m = 1,
                  .n = 1,
                  .batch = 1,
                  .late = e->second < 2 ? e->second : 2,
                  .leaf = -1,
                  .alias = -1,
                  .copy_step = -1,
                  .onto = -1,
                  .offset = -1,
                  .first = -1,
                  .last = -1};
    int nb = shape->ndim - core;
    if (core >= 1) s.m = shape->dim[nb];
    if (core == 2) s.n = shape->dim[nb + 1];
    bool fits = lop_mul_ok(s.m, s.n, &s.matbytes) &&
                lop_mul_ok(s.matbytes, (int64_t)lop_dtype_size(dt), &s.matbytes);
    for (int i = 0; i < nb; i++) fits = fits && lop_mul_ok(s.batch, shape->dim[i], &s.batch);
    int64_t bytes;
    if (!fits || !lop_mul_ok(s.matbytes, s.batch, &bytes)) {
        char text[128];
        *st = lop_fail(e->err, LOP_OVERFLOW,
                       "an array of shape %s and dtype %s is larger than memory can be",
                       lop_shape_text(shape, text, sizeof text), lop_dtype_name(dt));
        return -1;
    }
    if (!grow(p->ctx, (void **)&p->slot, &e->room_slot, p->nslot, sizeof s)) {
        *st = lop_fail(e->err, LOP_NOMEM, NULL);
        return -1;
    }
    p->slot[p->nslot] = s;
    *st = LOP_OK;
    return p->nslot++;
}

int lop_emit_leaf_slot(lop_emit *e, const lop_node *leaf, lop_status *st) {
    lop_plan *p = e->plan;
    if (!grow(p->ctx, (void **)&p->leaf, &e->room_leaf, p->nleaf, sizeof *p->leaf)) {
        *st = lop_fail(e->err, LOP_NOMEM, NULL);
        return -1;
    }
    int slot = lop_emit_slot(e, LOP_S_LEAF, leaf->dtype, leaf->core, &leaf->shape, st);
    if (slot < 0) return -1;
    p->slot[slot].leaf = p->nleaf;
    p->leaf[p->nleaf++] = (lop_leaf){leaf->serial, leaf->dtype, leaf->shape, slot};
    return slot;
}

int lop_emit_value(lop_emit *e, const lop_node *array) {
    int slot = -1;
    bool known = lop_map_get(&e->map, array, &slot);
    LOP_ASSERT(known && slot >= 0);
    (void)known;
    return slot;
}

bool lop_emit_knows(const lop_emit *e, const lop_node *array) {
    int slot;
    return lop_map_get(&e->map, array, &slot) && slot >= 0;
}

lop_dtype lop_slot_dtype(const lop_emit *e, int slot) { return e->plan->slot[slot].dt; }

void lop_slot_sizes(const lop_emit *e, int slot, int64_t *m, int64_t *n, int64_t *batch) {
    const lop_slot *s = &e->plan->slot[slot];
    if (m) *m = s->m;
    if (n) *n = s->n;
    if (batch) *batch = s->batch;
}

int lop_emit_temp(lop_emit *e, lop_dtype dt, int core, const lop_shape *shape, lop_status *st) {
    return lop_emit_slot(e, LOP_S_TEMP, dt, core, shape, st);
}

lop_shape lop_emit_shape(const lop_emit *e, int like, int64_t m, int64_t n) {
    const lop_slot *s = &e->plan->slot[like];
    lop_shape shape = s->shape;
    shape.ndim = s->shape.ndim - s->core + 2;
    shape.dim[shape.ndim - 2] = m;
    shape.dim[shape.ndim - 1] = n;
    return shape;
}

int lop_emit_mask(lop_emit *e, int like, lop_status *st) {
    const lop_slot *s = &e->plan->slot[like];
    lop_shape shape = s->shape;
    shape.ndim -= s->core;
    return lop_emit_slot(e, LOP_S_TEMP, LOP_b8, 0, &shape, st);
}

/* -- steps */

lop_step *lop_emit_step(lop_emit *e, const char *name, lop_run run, int out, int nin,
                        const int *in) {
    lop_plan *p = e->plan;
    if (!grow(p->ctx, (void **)&p->step, &e->room_step, p->nstep, sizeof *p->step)) {
        (void)lop_fail(e->err, LOP_NOMEM, NULL);
        return NULL;
    }
    lop_step *s = &p->step[p->nstep++];
    *s = (lop_step){.name = name,
                    .run = run,
                    .n = nin + 1,
                    .fail = -1,
                    .when = -1,
                    .derived = -1,
                    .escape = -1,
                    .late = -1,
                    .later = -1};
    s->arg[0] = out;
    for (int i = 0; i < nin; i++) s->arg[i + 1] = in[i];
    for (int i = 0; i <= nin; i++) {
        const lop_slot *slot = &p->slot[s->arg[i]];
        s->bytes += (double)slot->matbytes * (double)slot->batch;
    }
    return s;
}

static int64_t place_of(lop_data_number n) { return (int64_t)n.word << 16 | n.num; }

lop_status lop_emit_data_numbers(lop_emit *e, const int64_t *data, int n,
                                 const lop_data_number *number, int many) {
    lop_plan *p = e->plan;
    lop_step *s = &p->step[p->nstep - 1];
    int64_t *own = lop_alloc(p->ctx, (size_t)(n + many + 1) * sizeof *own);
    if (!own) return lop_fail(e->err, LOP_NOMEM, NULL);
    memcpy(own, data, (size_t)n * sizeof *own);
    s->data = own;
    s->ndata = n;
    s->numbers = many;
    for (int i = 0; i < many; i++) own[n + i] = place_of(number[i]);
    return many && n > LOP_NUMBERED
               ? lop_fail(e->err, LOP_INTERNAL, "coefficients among %d numbers of a step", n)
               : LOP_OK;
}
lop_status lop_emit_data(lop_emit *e, const int64_t *data, int n) {
    return lop_emit_data_numbers(e, data, n, NULL, 0);
}

lop_status lop_run_copy(const lop_call *c) {
    lopk_copy(c->a[0], c->a[1]);
    return LOP_OK;
}

lop_status lop_run_start(const lop_call *c) {
    const lop_mat *y = c->a[0], *x = c->a[1];
    if (y->p != x->p || y->rs != x->rs || y->cs != x->cs) lopk_copy(y, x);
    return LOP_OK;
}

int lop_emit_cast(lop_emit *e, int slot, lop_dtype dt, lop_status *st) {
    *st = LOP_OK;
    const lop_slot *s = &e->plan->slot[slot];
    if (s->dt == dt) return slot;
    lop_shape shape = s->shape;
    int out = lop_emit_slot(e, LOP_S_TEMP, dt, s->core, &shape, st);
    if (out < 0) return -1;
    if (!lop_emit_step(e, "cast", lop_run_copy, out, 1, &slot)) {
        *st = LOP_NOMEM;
        return -1;
    }
    return out;
}

enum {
    LOOK_BACK = 256
}; /* how many prepared values are looked at, so that long chains take linear time */

/* What a prepare step has besides its attributes. */
typedef struct derived_data {
    const int64_t *data;
    int ndata;
    const lop_data_number *number;
    int numbers;
} derived_data;

static bool same_data(const lop_step *s, const derived_data *d) {
    bool same = s->ndata == d->ndata && s->numbers == d->numbers &&
                (!d->ndata || !memcmp(s->data, d->data, (size_t)d->ndata * sizeof *d->data));
    for (int i = 0; same && i < d->numbers; i++)
        same = s->data[s->ndata + i] == place_of(d->number[i]);
    return same;
}

/* The slot of a value that is prepared already, if no failure before may have led past it. */
static int same_derived(const lop_plan *p, lop_run run, size_t bytes, int nin, const int *in,
                        const lop_attr *attr, const derived_data *d) {
    static const lop_attr none = {.re = 0};
    for (int i = p->nderive - 1; i >= 0 && i >= p->nderive - LOOK_BACK; i--) {
        const lop_step *s = &p->step[p->derive[i].step];
        bool same = s->run == run && s->n == nin + 1 && s->when < 0 && s->escape < 0 &&
                    !p->derive[i].in_branch && p->derive[i].bytes >= (int64_t)bytes &&
                    lop_attr_equal(&s->attr, attr ? attr : &none) && same_data(s, d);
        for (int j = 0; same && j < nin; j++) same = s->arg[j + 1] == in[j];
        if (same) return s->arg[0];
    }
    return -1;
}

int lop_emit_derived(lop_emit *e, const char *name, lop_run run, size_t bytes, int nin,
                     const int *in, const lop_attr *attr, size_t scratch, double flops,
                     lop_status *st) {
    return lop_emit_derived_data(e, name, run, bytes, nin, in, attr, NULL, 0, scratch, flops, st);
}

static int emit_derived(lop_emit *e, const char *name, lop_run run, size_t bytes, int nin,
                        const int *in, const lop_attr *attr, const derived_data *d, size_t scratch,
                        double flops, lop_status *st) {
    lop_plan *p = e->plan;
    int known = same_derived(p, run, bytes, nin, in, attr, d);
    *st = LOP_OK;
    if (known >= 0) return known;
    /* one blob for each batch element of the inputs */
    lop_shape batch = {0}, blob;
    for (int i = 0; i < nin; i++) {
        const lop_slot *s = &p->slot[in[i]];
        lop_shape both;
        *st = lop_shape_batch(&batch, 0, &s->shape, s->core, &both, e->err);
        if (*st != LOP_OK) return -1;
        batch = both;
    }
    blob = batch;
    int64_t size = ((int64_t)bytes + 63) & ~(int64_t)63;
    blob.dim[blob.ndim++] = size;
    if (!grow(p->ctx, (void **)&p->derive, &e->room_derive, p->nderive, sizeof *p->derive)) {
        *st = lop_fail(e->err, LOP_NOMEM, NULL);
        return -1;
    }
    int out = lop_emit_slot(e, LOP_S_DERIVED, LOP_u8, 1, &blob, st);
    if (out < 0) return -1;
    lop_step *s = lop_emit_step(e, name, run, out, nin, in);
    if (!s) {
        *st = LOP_NOMEM;
        return -1;
    }
    if (attr) s->attr = *attr;
    s->scratch = scratch;
    s->flops = flops * (double)p->slot[out].batch;
    s->derived = p->nderive;
    p->slot[out].leaf = p->nderive;
    p->derive[p->nderive++] = (lop_derive){.step = p->nstep - 1, .bytes = size};
    if (d->ndata) *st = lop_emit_data_numbers(e, d->data, d->ndata, d->number, d->numbers);
    return *st == LOP_OK ? out : -1;
}

int lop_emit_derived_data(lop_emit *e, const char *name, lop_run run, size_t bytes, int nin,
                          const int *in, const lop_attr *attr, const int64_t *data, int ndata,
                          size_t scratch, double flops, lop_status *st) {
    const derived_data d = {.data = data, .ndata = ndata};
    return emit_derived(e, name, run, bytes, nin, in, attr, &d, scratch, flops, st);
}

int lop_emit_derived_numbers(lop_emit *e, const char *name, lop_run run, size_t bytes, int nin,
                             const int *in, const int64_t *data, int ndata,
                             const lop_data_number *number, int many, double flops,
                             lop_status *st) {
    const derived_data d = {data, ndata, number, many};
    return emit_derived(e, name, run, bytes, nin, in, NULL, &d, 0, flops, st);
}

/* The blob of a value that is prepared in more bytes from now on. */
static void widen(lop_plan *p, int slot, int64_t bytes) {
    lop_slot *s = &p->slot[slot];
    lop_derive *d = &p->derive[s->leaf];
    if (bytes <= d->bytes) return;
    p->step[d->step].bytes += (double)(bytes - d->bytes) * (double)s->batch;
    s->shape.dim[s->shape.ndim - 1] = s->m = s->matbytes = d->bytes = bytes;
}

int lop_emit_derived_parts(lop_emit *e, const char *name, lop_run run, int nin, const int *in,
                           const lop_attr *attr, lop_parts (*size)(const lop_attr *attr),
                           lop_status *st) {
    lop_plan *p = e->plan;
    lop_attr all = *attr;
    int found = -1;
    lop_parts need = size(&all);
    *st = LOP_OK;
    /* one in a branch is not seen from here, but makes the same parts: a run finds it by its key.
     * All that there are have the same parts by now: each new one has given them its own. */
    for (int i = p->nderive - 1; i >= 0 && i >= p->nderive - LOOK_BACK; i--) {
        lop_step *s = &p->step[p->derive[i].step];
        bool same = s->run == run && s->n == nin + 1;
        for (int j = 0; same && j < 3; j++) same = s->attr.i[j] == attr->i[j];
        for (int j = 0; same && j < nin; j++) same = s->arg[j + 1] == in[j];
        if (!same) continue;
        all.i[3] |= s->attr.i[3];
        need = size(&all);
        s->attr = all;
        s->scratch = need.scratch;
        s->flops = need.flops * (double)p->slot[s->arg[0]].batch;
        widen(p, s->arg[0], ((int64_t)need.bytes + 63) & ~(int64_t)63);
        if (s->when < 0 && s->escape < 0 && !p->derive[i].in_branch) found = s->arg[0];
    }
    if (found >= 0) return found;
    return lop_emit_derived(e, name, run, need.bytes, nin, in, &all, need.scratch, need.flops, st);
}

int lop_emit_derived_group(lop_emit *e, const char *name, lop_run run, size_t bytes, int in,
                           double flops, lop_status *st) {
    int out = lop_emit_derived(e, name, run, bytes, 1, &in, NULL, 0, flops, st);
    lop_plan *p = e->plan;
    if (out >= 0) p->step[p->derive[p->slot[out].leaf].step].flags |= LOP_STEP_GROUP;
    return out;
}

static lop_step *maker_of(lop_plan *p, int derived) {
    return &p->step[p->derive[p->slot[derived].leaf].step];
}
void lop_emit_foreign(lop_emit *e, int slot) { maker_of(e->plan, slot)->flags |= LOP_STEP_FOREIGN; }
void lop_emit_onto(lop_emit *e, int slot) { maker_of(e->plan, slot)->flags |= LOP_STEP_INPLACE; }
void lop_emit_halves(lop_emit *e, int slot) {
    if (slot >= 0) maker_of(e->plan, slot)->flags |= LOP_STEP_HALVES;
}
void lop_emit_blocked(lop_emit *e, int slot, int64_t n) {
    if (slot >= 0 && n >= LOP_BLOCKED) maker_of(e->plan, slot)->flags |= LOP_STEP_GEMM;
}

lop_status lop_run_flip(const lop_call *c) {
    const lop_mat *a = c->a[1], t = {a->p, a->n, a->m, a->cs, a->rs, a->dt};
    lopk_copy(c->a[0], &t);
    return LOP_OK;
}

/* Where a kernel counts on C order, the transpose or the part is a copy after all. */
static void uncouple(lop_plan *p, int slot) {
    for (; p->slot[slot].alias >= 0; slot = p->slot[slot].alias) {
        lop_slot *s = &p->slot[slot];
        if (s->copy_step < 0) continue;
        p->step[s->copy_step].run = s->copy;
        p->step[s->copy_step].bytes = 2 * (double)s->matbytes * (double)s->batch;
        s->flip = s->part = false;
        s->copy_step = s->alias = -1;
        return;
    }
}

/* Notes that strides do what the step appended last would do by copying. */
static void mere_strides(lop_plan *p, int slot, lop_run copy) {
    lop_step *s = &p->step[p->nstep - 1];
    p->slot[slot].copy_step = p->nstep - 1;
    p->slot[slot].copy = copy;
    s->run = NULL;
    s->bytes = 0;
}

void lop_emit_flip(lop_emit *e, int out, int in) {
    lop_plan *p = e->plan;
    int of = out, from = in;
    if (p->slot[out].kind == LOP_S_OUT) {
        const lop_slot *s = &p->slot[in];
        if (s->kind != LOP_S_TEMP || s->alias >= 0 || s->need_c || p->slot[out].need_c) return;
        for (int i = 0; i < p->nslot; i++)
            if (p->slot[i].alias == in && !p->slot[i].flip) return;
        of = in;
        from = out;
    } else if (p->slot[in].kind == LOP_S_DERIVED || p->slot[in].kind == LOP_S_OUT) {
        return;
    }
    for (int i = from; i >= 0; i = p->slot[i].alias)
        if (p->slot[i].part) return;
    p->slot[from].shared = true;
    p->slot[of].alias = from;
    p->slot[of].flip = true;
    mere_strides(p, of, lop_run_flip);
}

bool lop_emit_alias(lop_emit *e, int out, int in) {
    lop_slot *slot = e->plan->slot;
    uncouple(e->plan, in);
    for (; slot[in].alias >= 0 && !slot[in].window; in = slot[in].alias)
        if (slot[in].part) return false;
    slot[in].shared = true;
    if (slot[out].kind == LOP_S_OUT) {
        if (slot[in].kind != LOP_S_TEMP || slot[in].window) return false;
        slot[in].alias = out;
        slot[out].need_c = true;
        return true;
    }
    if (slot[in].kind == LOP_S_DERIVED) return false;
    if (slot[in].kind != LOP_S_TEMP) slot[in].need_c = true;
    slot[out].alias = in;
    return true;
}

bool lop_emit_part(lop_emit *e, int part, int whole, int64_t row, int64_t col) {
    lop_slot *p = &e->plan->slot[part];
    const lop_slot *w = &e->plan->slot[whole];
    int nb = p->shape.ndim - p->core;
    bool fits = p->kind == LOP_S_TEMP && p->alias < 0 && !p->shared && !p->need_c &&
                w->kind != LOP_S_DERIVED && p->late >= w->late && p->dt == w->dt &&
                p->core == w->core && nb == w->shape.ndim - w->core;
    for (int i = 0; fits && i < nb; i++) fits = p->shape.dim[i] == w->shape.dim[i];
    for (int i = whole; fits && i >= 0; i = e->plan->slot[i].alias) fits = !e->plan->slot[i].flip;
    if (!fits) return false;
    p->alias = whole;
    p->part = true;
    p->row = row;
    p->col = col;
    return true;
}

void lop_emit_seen(lop_emit *e, int part, int whole, int64_t row, int64_t col) {
    const lop_run copy = e->plan->step[e->plan->nstep - 1].run;
    if (lop_emit_part(e, part, whole, row, col)) mere_strides(e->plan, part, copy);
}

lop_step *lop_emit_copy(lop_emit *e, int out, int in) {
    return lop_emit_step(e, "copy", lop_run_copy, out, 1, &in);
}

bool lop_emit_window(lop_emit *e, int slot, int whole, int64_t at) {
    lop_slot *s = &e->plan->slot[slot];
    const lop_slot *w = &e->plan->slot[whole];
    if (s->kind != LOP_S_TEMP || s->alias >= 0 || s->late || w->late || w->alias >= 0 ||
        (s->dt != w->dt && w->dt != LOP_u8) || w->batch != 1)
        return false;
    s->alias = whole;
    s->window = true;
    s->shift = at;
    return true;
}

void lop_emit_c_order(lop_emit *e, int slot) {
    lop_slot *s = e->plan->slot;
    uncouple(e->plan, slot);
    while (s[slot].alias >= 0) slot = s[slot].alias;
    s[slot].need_c = true;
}

int lop_emit_in_c_order(lop_emit *e, int slot, lop_status *st) {
    lop_plan *p = e->plan;
    if (slot < 0) return -1;
    uncouple(p, slot);
    const lop_slot *s = p->slot;
    bool part = false;
    for (int i = slot; i >= 0; i = s[i].alias) part = part || s[i].part;
    *st = LOP_OK;
    if (part) {
        const lop_shape shape = s[slot].shape;
        const int out = lop_emit_slot(e, LOP_S_TEMP, s[slot].dt, s[slot].core, &shape, st);
        if (out >= 0 && !lop_emit_copy(e, out, slot)) *st = LOP_NOMEM;
        if (*st != LOP_OK) return -1;
        slot = out;
    }
    lop_emit_c_order(e, slot);
    return slot;
}

void lop_emit_checked(const lop_emit *e, int *value, int *mask) {
    *value = e->value;
    *mask = e->mask;
}
lop_err *lop_emit_err(lop_emit *e) { return e->err; }
bool lop_emit_fft(const lop_emit *e) { return !e->options || e->options->fft; }
int64_t lop_emit_fft_min(const lop_emit *e) { return e->options ? e->options->fft_min : 0; }
