/* derived_content.c: what a derived value rests on, as 128 bits: of the leaves behind it, or of
 * what goes into its step. A leaf whose memory cannot change is not read: its name says it all, and
 * where all leaves are such, no step between them and the value runs to find it. */
#include "frame.h"

#include "kernels/dense/k_blas.h"
#include "kernels/common/kernels.h"

/* All matrices of a slot below each other, where they lie so in memory. */
static bool in_one_run(const lop_frame *f, int number, lop_mat *m) {
    const lop_slot *slot = &f->plan->slot[number];
    const int nb = slot->shape.ndim - slot->core;
    *m = f->mat[number];
    if (slot->batch < 2 || !lop_mat_is_c(m)) return false;
    for (int64_t d = nb - 1, next = m->m * m->n; d >= 0; d--) {
        const int64_t count = slot->shape.dim[d];
        if (count != 1 && lop_frame_batch_stride(f, number, (int)d, nb) != next) return false;
        next *= count;
    }
    *m = (lop_mat){m->p, m->m * slot->batch, m->n, m->n, 1, m->dt};
    return true;
}

static lop_fingerprint fingerprint_slot(const lop_frame *f, int number, lop_fingerprint print) {
    const lop_slot *slot = &f->plan->slot[number];
    int nb = slot->shape.ndim - slot->core;
    int64_t at[LOP_MAXDIM] = {0};
    lop_mat whole;
    if (in_one_run(f, number, &whole)) {
        print.hi ^= (uint64_t)slot->batch; /* not as one matrix of as many rows */
        return lopk_fingerprint(print, &whole);
    }
    for (int64_t e = 0; e < slot->batch; e++) {
        lop_mat m = f->mat[number];
        int64_t offset = 0;
        for (int d = 0; d < nb; d++) offset += at[d] * lop_frame_batch_stride(f, number, d, nb);
        m.p = (char *)m.p + offset * (int64_t)lop_dtype_size(m.dt);
        print = lopk_fingerprint(print, &m);
        for (int d = nb - 1; d >= 0 && ++at[d] == slot->shape.dim[d]; d--) at[d] = 0;
    }
    return print;
}

static const lop_fingerprint first_fingerprint = {0x243f6a8885a308d3u, 0x13198a2e03707344u};

static uint64_t scramble(uint64_t h) {
    h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93u;
    h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93u;
    return h ^ (h >> 32);
}

/* Of a leaf whose memory cannot change: where it lies, and how; not its bytes. */
static lop_fingerprint fingerprint_frozen(const lop_buf *b) {
    lop_fingerprint print = {first_fingerprint.hi, (uint64_t)(uintptr_t)b->p};
    for (int i = 0; i < b->shape.ndim; i++) {
        print.lo = scramble(print.lo + (uint64_t)b->shape.dim[i]);
        print.hi = scramble(print.hi ^ (uint64_t)b->stride[i]);
    }
    return print;
}

static lop_fingerprint fingerprint_leaf(const lop_frame *f, int leaf) {
    const bool frozen = leaf < LOP_KEEP && (f->frozen >> leaf & 1) != 0;
    return frozen ? fingerprint_frozen(&f->leaf[leaf])
                  : fingerprint_slot(f, f->plan->leaf[leaf].slot, first_fingerprint);
}

uint64_t lop_found_by(const lop_frame *f, int derived) {
    const lop_derive *d = &f->plan->derive[derived];
    if (d->leaves) return d->leaves;
    return d->rests & ~f->frozen ? 0 : d->rests;
}

/* The content that derived value i rests on. Of leaves, in any order, each with its name; with
 * other threads the steps between may round otherwise. */
lop_fingerprint lop_content(lop_frame *f, int i) {
    const lop_plan *p = f->plan;
    const lop_step *s = &p->step[p->derive[i].step];
    lop_fingerprint print = first_fingerprint, *of = f->fingerprint + p->nderive;
    const uint64_t leaves = lop_found_by(f, i);
    if (!leaves) {
        for (int j = 1; j < s->n; j++) print = fingerprint_slot(f, s->arg[j], print);
        return print;
    }
    print.lo ^= (uint64_t)lopk_threads();
    for (int k = 0; k < p->nleaf && k < LOP_KEEP; k++) {
        uint64_t bit = (uint64_t)1 << k, name = f->key[p->nderive + k];
        if (!(leaves & bit)) continue;
        if (!(f->fingerprinted & bit)) of[k] = fingerprint_leaf(f, k);
        f->fingerprinted |= bit;
        print.lo += scramble(of[k].lo + name);
        print.hi += scramble(of[k].hi ^ scramble(name));
    }
    return print;
}

bool lop_same_content(const lop_blob *b, lop_fingerprint print) {
    return b && b->fingerprint.lo == print.lo && b->fingerprint.hi == print.hi;
}

/* Which derived values are there, as far as the leaves tell: before anything runs. */
void lop_find_hits(lop_frame *f) {
    const lop_plan *p = f->plan;
    for (int i = 0; i < p->nderive && i < LOP_KEEP; i++) {
        if (!f->blob[i] || !lop_found_by(f, i)) continue;
        f->fingerprint[i] = lop_content(f, i);
        if (lop_same_content(f->blob[i], f->fingerprint[i])) f->hit |= (uint64_t)1 << i;
    }
}
