/* frame.c: the memory of one run of a plan. Opening takes workspace and the derived values that may
 * still hold, binding puts arrays into slots, closing publishes what was derived. In between it
 * says where the matrix of each slot lies: a slot may be a block of another, or its transpose by
 * strides.
 */
#include "frame.h"

#include "kernels/dense/k_blas.h"

#include <math.h>
#include <string.h>

lop_status lop_frame_open(lop_frame *f, const lop_plan *plan, const uint64_t *key, lop_store *store,
                          lop_err *err) {
    f->plan = plan;
    f->key = key ? key : plan->key;
    f->number =
        key && plan->coefs ? (const lop_number *)(const void *)(key + lop_plan_nkeys(plan)) : NULL;
    f->store = store;
    f->block = NULL;
    for (int i = 0; i < 2; i++) f->reserve[i] = f->reserve_block[i] = NULL;
    f->limit = plan->ctx->memory_limit;
    f->fallbacks = 0;
    f->failed = NULL;
    f->all_failed = false;
    f->near = (lop_near){INFINITY, INFINITY};
    f->times = NULL;
    f->team = (lopk_team){.threads = lopk_threads()};
    f->leaf = f->inline_leaf;
    f->mat = f->inline_mat;
    f->blob = f->inline_blob;
    f->fingerprint = f->inline_fingerprint;
    f->onto = f->inline_onto;
    f->fingerprinted = f->hit = f->frozen = f->owner = 0;
    f->again = f->alone = false;
    f->work = f->inline_work;
    size_t leaves = (size_t)(plan->nleaf + 1) * sizeof *f->leaf,
           mats = (size_t)plan->nslot * sizeof *f->mat,
           ontos = (size_t)plan->nderive * sizeof *f->onto;
    size_t blobs = 2 * (size_t)plan->nderive * sizeof *f->blob,
           fingerprints = (size_t)lop_plan_nkeys(plan) * sizeof *f->fingerprint;
    if ((uint64_t)plan->workspace > SIZE_MAX / 4 || plan->scratch > SIZE_MAX / 4)
        return lop_fail(err, LOP_NOMEM, NULL);
    size_t work = (size_t)plan->workspace + plan->scratch, all = 0;
    bool small = plan->nleaf < 6 && plan->nslot <= LOP_FRAME_SLOTS && plan->nderive <= 4;
    if (!small) all = leaves + mats + blobs + ontos + fingerprints + 64;
    if (work > LOP_FRAME_BYTES) all += work + 128;
    if (all) {
        unsigned char *p = f->block = lop_alloc(plan->ctx, all);
        if (!p)
            return lop_fail(err, LOP_NOMEM,
                            "the workspace of %lld bytes that this needs could not be had",
                            (long long)all);
        if (!small) {
            f->leaf = (lop_buf *)(void *)p;
            f->mat = (lop_mat *)(void *)(p + leaves);
            f->blob = (lop_blob **)(void *)(p + leaves + mats);
            f->onto = (void **)(void *)(p + leaves + mats + blobs);
            f->fingerprint = (lop_fingerprint *)(void *)(p + leaves + mats + blobs + ontos);
            p += leaves + mats + blobs + ontos + fingerprints;
        }
        if (work > LOP_FRAME_BYTES)
            f->work = (unsigned char *)(((uintptr_t)p + 63) & ~(uintptr_t)63);
    }
    f->stale = f->blob + plan->nderive;
    for (int i = 0; i < plan->nderive; i++) f->stale[i] = f->onto[i] = NULL;
    for (int i = 0; i < plan->nderive; i++)
        f->blob[i] = store ? lop_store_get(store, f->key[i]) : NULL;
    return LOP_OK;
}

static void mat_of_buf(lop_mat *m, const lop_slot *s, const lop_buf *b) {
    int nd = b->shape.ndim;
    m->p = b->p;
    m->m = s->m;
    m->n = s->n;
    m->dt = s->dt;
    m->cs = s->core == 2 ? b->stride[nd - 1] : 1;
    m->rs = s->core == 2 ? b->stride[nd - 2] : s->core == 1 ? b->stride[nd - 1] : 1;
}

static bool in_c_order(const lop_buf *b) {
    int64_t stride = 1;
    bool fits = true, empty = false;
    for (int i = b->shape.ndim - 1; i >= 0; i--) {
        fits = fits && (b->shape.dim[i] <= 1 || b->stride[i] == stride);
        empty = empty || b->shape.dim[i] == 0;
        stride *= b->shape.dim[i];
    }
    return fits || empty;
}

lop_status lop_frame_bind(lop_frame *f, int i, const lop_buf *buf, lop_err *err) {
    const lop_plan *p = f->plan;
    const lop_slot *s = &p->slot[i < p->nleaf ? p->leaf[i].slot : p->out];
    if (buf->dt != s->dt)
        return lop_fail(err, LOP_DTYPE,
                        "the dtype of an operand changed from %s to %s after it was wrapped",
                        lop_dtype_name(s->dt), lop_dtype_name(buf->dt));
    if (!lop_shape_equal(&buf->shape, &s->shape)) {
        char was[128], is[128];
        return lop_fail(
            err, LOP_DIM, "the shape of an operand changed from %s to %s after it was wrapped",
            lop_shape_text(&s->shape, was, sizeof was), lop_shape_text(&buf->shape, is, sizeof is));
    }
    if (s->need_c && !in_c_order(buf))
        return lop_fail(err, LOP_INTERNAL, "operand %d of the plan must be bound in C order", i);
    f->leaf[i] = *buf;
    mat_of_buf(&f->mat[s - p->slot], s, buf);
    return LOP_OK;
}

void lop_frame_note_failed(lop_frame *f, int mask, int64_t element) {
    const lop_slot *of = &f->plan->slot[mask], *out = &f->plan->slot[f->plan->out];
    bool alike = of->shape.ndim == out->shape.ndim - out->core;
    for (int i = 0; alike && i < of->shape.ndim; i++) alike = of->shape.dim[i] == out->shape.dim[i];
    if (alike && !f->failed) f->failed = lop_calloc(f->plan->ctx, 1, (size_t)out->batch);
    if (alike && f->failed)
        f->failed[element] = 1;
    else
        f->all_failed = true;
}

/* Bytes of which each is 255 are a NaN in every precision. */
static void spoil_matrix(char *p, const lop_mat *m) {
    const int64_t size = (int64_t)lop_dtype_size(m->dt);
    for (int64_t i = 0; i < m->m; i++)
        for (int64_t j = 0; j < m->n; j++)
            memset(p + (i * m->rs + j * m->cs) * size, 0xff, (size_t)size);
}

void lop_frame_spoil(lop_frame *f) {
    const lop_slot *out = &f->plan->slot[f->plan->out];
    const lop_mat *m = &f->mat[f->plan->out];
    const int nb = out->shape.ndim - out->core;
    for (int64_t e = 0; e < out->batch; e++) {
        if (!f->all_failed && !(f->failed && f->failed[e])) continue;
        int64_t offset = 0, rest = e;
        for (int d = nb - 1; d >= 0; d--) {
            offset += rest % out->shape.dim[d] * lop_frame_batch_stride(f, f->plan->out, d, nb);
            rest /= out->shape.dim[d];
        }
        spoil_matrix((char *)m->p + offset * (int64_t)lop_dtype_size(m->dt), m);
    }
}

void lop_frame_close(lop_frame *f) {
    lop_free(f->plan->ctx, f->failed);
    for (int i = 0; i < f->plan->nderive; i++) {
        lop_blob *b = f->blob[i];
        lop_free(f->plan->ctx, f->onto[i]);
        lop_blob_unref(f->plan->ctx, f->stale[i]); /* counts change under the lock only */
        if (!b) continue;
        if (f->store && !b->published) {
            f->store->misses++;
            lop_store_put(f->store, b);
        } else if (f->store) {
            f->store->hits++;
        }
        lop_blob_unref(f->plan->ctx, b);
    }
    for (int i = 0; i < 2; i++) lop_free(f->plan->ctx, f->reserve_block[i]);
    lop_free(f->plan->ctx, f->block);
    f->block = NULL;
}

/* -- where slots lie */

/* The slot whose block this is (itself where it is none), and where in it. */
static int whole_of(const lop_plan *p, int slot, int64_t *row, int64_t *col) {
    for (*row = *col = 0; p->slot[slot].part; slot = p->slot[slot].alias) {
        *row += p->slot[slot].row;
        *col += p->slot[slot].col;
    }
    return slot;
}

static lop_mat mat_of_temp(const lop_frame *f, int slot) {
    const lop_plan *p = f->plan;
    int64_t row, col;
    int whole = whole_of(p, slot, &row, &col), base = whole;
    const lop_slot *w = &p->slot[whole];
    int64_t shift = 0;
    for (; p->slot[base].alias >= 0; base = p->slot[base].alias) shift += p->slot[base].shift;
    const lop_slot *b = &p->slot[base];
    lop_mat m = {NULL, w->m, w->n, w->n, 1, w->dt};
    if (b->kind != LOP_S_TEMP)
        m.p = f->mat[base].p;
    else if (b->onto >= 0)
        m.p = f->onto[b->onto];
    else if (b->offset >= 0 && (!b->late || f->reserve[b->late - 1]))
        m.p = (b->late ? f->reserve[b->late - 1] : f->work) + b->offset;
    if (base == whole && b->kind != LOP_S_TEMP) m = f->mat[base];
    if (m.p) m.p = (char *)m.p + (shift + row * m.rs + col * m.cs) * (int64_t)lop_dtype_size(m.dt);
    m.m = p->slot[slot].m;
    m.n = p->slot[slot].n;
    return m;
}

void lop_frame_place(lop_frame *f) {
    const lop_plan *p = f->plan;
    for (int i = 0; i < p->nslot; i++) {
        if (p->slot[i].flip) continue;
        if (p->slot[i].alias >= 0 || p->slot[i].kind == LOP_S_TEMP) f->mat[i] = mat_of_temp(f, i);
    }
    for (int i = 0; i < p->nslot; i++) { /* all others are known: only flips see flips */
        if (!p->slot[i].flip) continue;
        int base = i, turns = 0;
        for (; p->slot[base].flip; base = p->slot[base].alias) turns++;
        const lop_mat b = f->mat[base];
        f->mat[i] = turns & 1 ? (lop_mat){b.p, b.n, b.m, b.cs, b.rs, b.dt} : b;
    }
}

int64_t lop_frame_batch_stride(const lop_frame *f, int slot, int d, int nb) {
    int64_t row, col;
    const lop_slot *s = &f->plan->slot[whole_of(f->plan, slot, &row, &col)];
    int own = s->shape.ndim - s->core, at = d - (nb - own);
    if (at < 0 || s->shape.dim[at] == 1) return 0;
    for (; s->flip; s = &f->plan->slot[slot]) slot = s->alias;
    if (s->alias < 0 && s->kind != LOP_S_TEMP && s->kind != LOP_S_DERIVED) {
        const lop_buf *b = &f->leaf[s->kind == LOP_S_OUT ? f->plan->nleaf : s->leaf];
        return b->stride[at];
    }
    int64_t stride = s->m * s->n;
    for (int i = own - 1; i > at; i--) stride *= s->shape.dim[i];
    return stride;
}
