/* price.c: what a plan is estimated to cost; which array on the way nobody asked for. */
#include "passes.h"

bool lop_step_again(const lop_plan *p, int step) {
    const lop_step *s = &p->step[step];
    if (s->derived >= 0) return p->derive[s->derived].again;
    for (int i = 0; i < p->nderive && i < LOP_KEEP; i++)
        if ((s->serves >> i & 1) && !p->derive[i].served) return false;
    return s->serves != 0;
}

double lop_step_seconds(const lop_plan *p, int step) {
    const lop_costs *c = lop_costs_of(p->ctx);
    const lop_step *s = &p->step[step];
    double work = s->flops / (s->flags & LOP_STEP_GEMM ? c->gemm_rate : c->flop_rate);
    double move = s->bytes / c->bandwidth;
    return (work > move ? work : move) + c->overhead;
}

int64_t lop_plan_result(const lop_plan *p) {
    const lop_slot *o = &p->slot[p->out];
    int64_t bytes;
    return lop_mul_ok(o->matbytes, o->batch, &bytes) ? bytes : INT64_MAX;
}

/* Bytes of the derived values of a call that needs no fallback. */
static int64_t kept_of(const lop_plan *p) {
    int64_t sum = 0, bytes;
    for (int i = 0; i < p->nderive; i++) {
        const lop_step *s = &p->step[p->derive[i].step];
        if (s->late >= 0 || p->derive[i].again) continue; /* late: after a failure only */
        if (!lop_mul_ok(p->derive[i].bytes, p->slot[s->arg[0]].batch, &bytes) ||
            !lop_add_ok(sum, bytes, &sum))
            return INT64_MAX;
    }
    return sum;
}

int64_t lop_plan_kept(const lop_plan *p) { return p->kept; }

int64_t lop_plan_memory(const lop_plan *p) {
    int64_t sum = p->workspace;
    bool fits = lop_add_ok(sum, (int64_t)p->scratch, &sum) &&
                lop_add_ok(sum, lop_plan_result(p), &sum) &&
                lop_add_ok(sum, lop_plan_kept(p), &sum);
    return fits ? sum : INT64_MAX;
}

void lop_plan_price(lop_plan *p) {
    for (int i = 0; i < p->nstep; i++) {
        const lop_step *s = &p->step[i];
        for (int j = 0; j < s->n; j++)
            if (p->slot[s->arg[j]].batch > 1) p->batched = true;
        size_t *most = s->late >= 0 ? &p->late_scratch[s->later >= 0] : &p->scratch;
        if (s->scratch > *most) *most = s->scratch;
        if (s->late >= 0 || (s->when >= 0 && s->when_set)) continue; /* after a failure only */
        if (lop_step_again(p, i)) continue;
        p->flops += s->flops;
        p->bytes += s->bytes;
        p->seconds += lop_step_seconds(p, i);
    }
    p->kept = kept_of(p);
    p->scratch = (p->scratch + 63) & ~(size_t)63;
    /* the scratch of fallback branches lies behind it; at most INT64_MAX - 64, see place */
    for (int i = 0; i < 2; i++) p->reserve[i] = (p->reserve[i] + 63) & ~(int64_t)63;
}

double lop_plan_seconds_left(const lop_plan *p, uint64_t there) {
    double seconds = p->seconds;
    for (int i = 0; there && i < p->nstep; i++) {
        const lop_step *s = &p->step[i];
        if (s->late >= 0 || (s->when >= 0 && s->when_set) || lop_step_again(p, i)) continue;
        const bool found = s->derived >= 0 ? s->derived < LOP_KEEP && (there >> s->derived & 1)
                                           : s->serves && !(s->serves & ~there);
        if (found) seconds -= lop_step_seconds(p, i);
    }
    return seconds > 0 ? seconds : 0;
}

/* -- arrays that nobody asked for */

static double elements_of(const lop_slot *s) {
    return (double)s->m * (double)s->n * (double)s->batch;
}
static void note_dense(lop_plan *p, int64_t one, int64_t batch) {
    int64_t bytes;
    if (!lop_mul_ok(one, batch, &bytes)) bytes = INT64_MAX;
    if (bytes > p->dense) p->dense = bytes;
}

static double sides(const lop_node *a) { return (double)lop_rows(a) + (double)lop_cols(a); }

/* The largest matrix on the way that is larger than all operands, the result and a few vectors
 * together: a dense form of what was not given dense, or a factor of one, whichever step makes it.
 * The array that an operator is applied to may grow between two factors while its number of columns
 * stays: then the formula as written asks for it. Of derived values only the bytes are known: 32 a
 * number leave room for plans and complex spectra. */
void lop_plan_find_unasked(lop_plan *p) {
    enum { VECTORS = 4, BYTES = 32 };
    const lop_node *asked = p->written, *a = asked->n > 0 ? asked->child[0] : NULL;
    const int64_t k = asked->op == &lop_op_apply ? lop_cols(asked->child[1]) : 1;
    const bool program = a && a->op == &lop_op_results;
    double given = elements_of(&p->slot[p->out]) / (program ? 8 : 1); /* of bytes */
    bool looked = false; /* at values, most of which are not as hoped for: as good as no fallback */
    for (int i = 0; i < p->nstep; i++)
        looked = looked || (p->step[i].fail >= 0 && p->step[i].origin &&
                            p->step[i].origin->op == &lop_op_where_runs);
    for (int i = 0; i < p->nleaf; i++) given += elements_of(&p->slot[p->leaf[i].slot]);
    if (program)
        for (; a; a = lop_results_before(a)) given += VECTORS * sides(a->child[0]);
    else if (a && a->shape.ndim >= 2)
        given += VECTORS * sides(a) * (double)p->slot[p->out].batch;
    for (int i = 0; i < p->nstep; i++) /* a band, found by products with as many columns */
        if (p->step[i].origin && p->step[i].origin->op == &lop_op_bandprobe)
            given += 2 * elements_of(&p->slot[p->step[i].arg[0]]);
    for (int i = 0; i < p->nslot; i++) {
        const lop_slot *s = &p->slot[i];
        if (s->kind != LOP_S_TEMP || s->core != 2 || s->alias >= 0 || (s->late && !looked) ||
            s->first < 0 || s->m <= k || s->n <= k || elements_of(s) <= given)
            continue;
        note_dense(p, s->matbytes, s->batch);
    }
    for (int i = 0; i < p->nderive; i++) {
        const lop_step *s = &p->step[p->derive[i].step];
        const lop_slot *to = &p->slot[s->arg[0]];
        if ((s->late >= 0 && !looked) ||
            (double)p->derive[i].bytes * (double)to->batch <= BYTES * given)
            continue;
        note_dense(p, p->derive[i].bytes, to->batch);
    }
}
