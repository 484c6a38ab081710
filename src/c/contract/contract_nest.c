/* contract_nest.c: a nest of loops: which are the two innermost ones, by price. */
#include "contract_parts.h"

#include <stdlib.h>

/* Measured, EPYC, one thread: an element of a row that runs along memory in all arrays (by its
 * bytes), of one that does not, one that misses the cache; a row; a call. */
static const double ALONG = 1.2e-10, ACROSS = 0.9e-9, ROW = 4e-9, CALL = 3e-8;

enum { TILED = 8 }; /* shorter loops go without tiles */

/* Strides of a loop that are neither 0 nor 1. */
static int jumps(const lop_loop *l) {
    return (llabs(l->c) > 1) + (llabs(l->a) > 1) + (llabs(l->b) > 1);
}
/* Does memory run along this loop in an array in which it does not along the other? */
static bool runs_where_not(const lop_loop *p, const lop_loop *q) {
    return (p->c == 1 && llabs(q->c) > 1) || (p->a == 1 && llabs(q->a) > 1) ||
           (p->b == 1 && llabs(q->b) > 1);
}

/* How far a loop moves; of a copy, how far in what is written. */
static int64_t reach(const lop_loop *l, bool copy) {
    return llabs(l->c) + (copy ? 0 : llabs(l->a) + llabs(l->b));
}

static double seconds_of(const lop_loop *q, double rows, lop_dtype dt) {
    const double bytes = (double)lop_dtype_size(dt) / 8;
    return CALL + rows * (ROW + (double)q->size * (jumps(q) ? ACROSS * jumps(q) : 3 * ALONG) *
                                    (bytes > 1 ? bytes : 1));
}

/* Loops that lie behind each other in all arrays are one; then sums behind what is kept, each by
 * how far it moves, the longest first. */
static int in_order(lop_loop *loop, const lop_loop *all, int n, bool copy) {
    int many = 0;
    for (int i = 0; i < n; i++)
        if (all[i].size != 1) loop[many++] = all[i];
    for (int i = 0; i < many; i++)
        for (int j = 0; j < many; j++) {
            lop_loop *in = &loop[j];
            const lop_loop *out = &loop[i];
            if (i == j || in->sum != out->sum || out->c != in->c * in->size ||
                out->a != in->a * in->size || out->b != in->b * in->size)
                continue;
            in->size *= out->size;
            loop[i] = loop[--many];
            i = -1; /* from the start */
            break;
        }
    for (int i = 1; i < many; i++) {
        const lop_loop x = loop[i];
        int j = i;
        for (; j > 0 && (loop[j - 1].sum > x.sum ||
                         (loop[j - 1].sum == x.sum && reach(&loop[j - 1], copy) < reach(&x, copy)));
             j--)
            loop[j] = loop[j - 1];
        loop[j] = x;
    }
    return many;
}

void lop_contract_nest(lop_contract_step *step, lop_loop *loop, const lop_loop *all, int n,
                       lop_dtype dt) {
    static const lop_loop once = {1, 0, 0, 0, false};
    double total = 1, best = 0;
    int q = -1, p = -1, at = 0;
    bool sums = false;
    lop_loop some[2 * LOP_MAXAXES];
    for (int i = 0; i < n; i++) sums = sums || (all[i].sum && all[i].size != 1);
    n = in_order(some, all, n, step->b < 0 && !sums);
    for (int i = 0; i < n; i++) total *= (double)some[i].size;
    for (int i = 0; i < n; i++) {
        const double s = seconds_of(&some[i], total / (double)some[i].size, dt);
        if (q < 0 || s < best) {
            best = s;
            q = i;
        }
    }
    for (int i = 0; step->b < 0 && q >= 0 && some[q].a == 1 && i < n; i++) /* whole runs written */
        if (some[i].c == 1 && some[i].size > TILED && some[q].size > TILED) q = i;
    for (int i = 0; q >= 0 && i < n; i++) /* beside it: what runs where q jumps, or moves least */
        if (i != q &&
            (p < 0 || runs_where_not(&some[i], &some[q]) >= runs_where_not(&some[p], &some[q])))
            p = i;
    for (int i = 0; i < n; i++)
        if (i != p && i != q) loop[at++] = some[i];
    loop[at++] = p < 0 ? once : some[p];
    loop[at++] = q < 0 ? once : some[q];
    step->nloop = at;
    step->tiles = p >= 0 && q >= 0 && runs_where_not(&some[p], &some[q]) && some[p].size > TILED &&
                  some[q].size > TILED;
    if (step->tiles) best *= 0.6;
    step->seconds = q < 0 ? CALL : best;
    step->flops = (step->b < 0 ? 0 : total) + (sums ? total : 0);
}
