/* contract_order.c: in which order the operands of a contraction meet. Up to EXACT of them the
 * cheapest tree by price, over all subsets, products of parts that share no label among them; above
 * that the pair that leaves least behind, again and again, and then windows of that tree by the
 * exact search (contract_windows.c). Bounded by counts alone. */
#include "contract_parts.h"

#include <math.h>
#include <string.h>

enum { EXACT = 10 };

/* Measured on an EPYC, float64, one thread: what a product of matrices and a pass can do; a step's
 * own cost. */
static const double RATE = 6e10, THIN = 8, BANDWIDTH = 1.5e10, STEP = 1e-7;

double lop_contract_volume(const lop_contract_work *w, const lop_labels *s) {
    double v = 1;
    for (int i = 0; i < LOP_LABEL_WORDS; i++)
        for (uint64_t rest = s->word[i]; rest; rest &= rest - 1)
            v *= (double)w->size[64 * i + __builtin_ctzll(rest)];
    return v;
}

double lop_contract_price(const lop_contract_work *w, const lop_labels *a, const lop_labels *b,
                          const lop_labels *kept) {
    const lop_dtype dt = w->spec->dt;
    lop_labels both, left, right, out;
    for (int i = 0; i < LOP_LABEL_WORDS; i++) {
        const uint64_t x = a->word[i], y = b->word[i], z = kept->word[i];
        both.word[i] = x & y & ~z; /* summed */
        left.word[i] = x & ~y;
        right.word[i] = y & ~x;
        out.word[i] = (x | y) & z;
    }
    const double m = lop_contract_volume(w, &left), n = lop_contract_volume(w, &right),
                 k = lop_contract_volume(w, &both), c = lop_contract_volume(w, &out),
                 least = fmin(fmin(m, n), k), flops = 2 * c * k,
                 weight = (lop_is_complex(dt) ? 4 : 1) * (dt == LOP_f32 || dt == LOP_c64 ? 0.5 : 1),
                 work = flops * weight / RATE * (1 + THIN / least),
                 move = (lop_contract_volume(w, a) + lop_contract_volume(w, b) + c) *
                        (double)lop_dtype_size(dt) / BANDWIDTH;
    return fmax(work, move) + STEP;
}

/* What of `all` is needed by the operands outside of the subset, or by the result. */
static lop_labels needed(const lop_labels *leaf, int n, uint32_t inside, const lop_labels *out) {
    lop_labels s = *out;
    for (int i = 0; i < n; i++)
        if (!((inside >> i) & 1))
            for (int j = 0; j < LOP_LABEL_WORDS; j++) s.word[j] |= leaf[i].word[j];
    return s;
}

/* Writes the tree below `s` in postorder; gives the tensor's number. */
static int write_tree(lop_contract_work *w, const lop_subset *of, uint32_t s, int *made) {
    if ((s & (s - 1)) == 0) return __builtin_ctz(s);
    const int a = write_tree(w, of, of[s].left, made), b = write_tree(w, of, s & ~of[s].left, made);
    w->pair[*made] = a < b ? (lop_pair_of){a, b} : (lop_pair_of){b, a};
    return w->spec->noperand + (*made)++;
}

void lop_contract_search(const lop_contract_work *w, const lop_labels *leaf, int n,
                         const lop_labels *out, lop_subset *of) {
    const uint32_t all = ((uint32_t)1 << n) - 1;
    for (uint32_t s = 1; s <= all; s++) {
        if ((s & (s - 1)) == 0) {
            of[s] = (lop_subset){.labels = leaf[__builtin_ctz(s)]};
            continue;
        }
        const lop_labels kept = needed(leaf, n, s, out);
        of[s].cost = INFINITY;
        const uint32_t low = s & (0 - s); /* in the left part: each split once */
        for (uint32_t l = (s - 1) & s; l; l = (l - 1) & s) {
            const uint32_t r = s & ~l;
            if (!(l & low) || of[l].cost + of[r].cost >= of[s].cost) continue;
            const double cost = of[l].cost + of[r].cost +
                                lop_contract_price(w, &of[l].labels, &of[r].labels, &kept);
            if (cost < of[s].cost) {
                of[s].cost = cost;
                of[s].left = l;
            }
        }
        const uint32_t l = of[s].left, r = s & ~l;
        for (int j = 0; j < LOP_LABEL_WORDS; j++)
            of[s].labels.word[j] = (of[l].labels.word[j] | of[r].labels.word[j]) & kept.word[j];
    }
}

static lop_status exact(lop_contract_work *w, const lop_labels *leaf, const lop_labels *out) {
    const uint32_t all = ((uint32_t)1 << w->spec->noperand) - 1;
    lop_subset *of = lop_calloc(w->ctx, (size_t)all + 1, sizeof *of);
    int made = 0;
    if (!of) return lop_fail(w->err, LOP_NOMEM, NULL);
    lop_contract_search(w, leaf, w->spec->noperand, out, of);
    (void)write_tree(w, of, all, &made);
    lop_free(w->ctx, of);
    return LOP_OK;
}

/* Of all pairs that share a label (of all pairs, where none does) the one whose product is the
 * smallest beside what it replaces. */
static lop_status greedy(lop_contract_work *w, lop_labels *leaf, const lop_labels *out) {
    const int n = w->spec->noperand;
    int *live = lop_alloc(w->ctx, (size_t)n * sizeof *live), count = n;
    if (!live) return lop_fail(w->err, LOP_NOMEM, NULL);
    for (int i = 0; i < n; i++) live[i] = i;
    for (int made = 0; made < n - 1; made++) {
        int at[2] = {0, 1};
        double best = INFINITY, best_work = INFINITY;
        bool best_shares = false;
        lop_labels best_labels = {{0}};
        int times[LOP_MAXLABELS] = {0};
        for (int i = 0; i < count; i++)
            for (int l = 0; l < LOP_MAXLABELS; l++) times[l] += lop_labels_has(&leaf[live[i]], l);
        for (int i = 0; i < count; i++)
            for (int j = i + 1; j < count; j++) {
                const lop_labels *a = &leaf[live[i]], *b = &leaf[live[j]];
                lop_labels c, both = *a;
                for (int t = 0; t < LOP_LABEL_WORDS; t++) both.word[t] |= b->word[t];
                bool shares = false;
                for (int t = 0; t < LOP_LABEL_WORDS; t++) {
                    const uint64_t x = a->word[t] & b->word[t];
                    shares = shares || x;
                    c.word[t] = a->word[t] | b->word[t];
                    for (uint64_t rest = x; rest; rest &= rest - 1) {
                        const int l = 64 * t + __builtin_ctzll(rest);
                        if (times[l] == 2 && !lop_labels_has(out, l))
                            c.word[t] &= ~(rest & (0 - rest));
                    }
                }
                if (best_shares && !shares) continue;
                const double gain = lop_contract_volume(w, &c) - lop_contract_volume(w, a) -
                                    lop_contract_volume(w, b);
                const double work = lop_contract_volume(w, &both); /* where as much is left */
                if (gain < best || (gain <= best && work < best_work) || (shares && !best_shares)) {
                    best = gain;
                    best_work = work;
                    best_shares = shares;
                    best_labels = c;
                    at[0] = i;
                    at[1] = j;
                }
            }
        w->pair[made] = (lop_pair_of){live[at[0]], live[at[1]]};
        leaf[n + made] = best_labels;
        live[at[0]] = n + made;
        for (int i = at[1]; i + 1 < count; i++) live[i] = live[i + 1];
        count--;
    }
    lop_free(w->ctx, live);
    return LOP_OK;
}

/* A path as NumPy gives it: places in a list, from which both are taken and at whose end what they
 * make is put. */
static lop_status given(lop_contract_work *w) {
    const int n = w->spec->noperand;
    int *live = lop_alloc(w->ctx, (size_t)n * sizeof *live), count = n;
    lop_status st = LOP_OK;
    if (!live) return lop_fail(w->err, LOP_NOMEM, NULL);
    for (int i = 0; i < n; i++) live[i] = i;
    for (int made = 0; st == LOP_OK && made < n - 1; made++) {
        const int x = w->spec->path[2 * made], y = w->spec->path[2 * made + 1], i = x < y ? x : y,
                  j = x < y ? y : x;
        if (i < 0 || j >= count || i == j) {
            st = lop_fail(w->err, LOP_DOMAIN, "step %d of the path takes (%d, %d) of %d operands",
                          made, x, y, count);
            break;
        }
        w->pair[made] = (lop_pair_of){live[i], live[j]};
        for (int t = j; t + 1 < count; t++) live[t] = live[t + 1];
        for (int t = i; t + 1 < count - 1; t++) live[t] = live[t + 1];
        live[--count - 1] = n + made;
    }
    lop_free(w->ctx, live);
    return st;
}

lop_status lop_contract_order(lop_contract_work *w) {
    const int n = w->spec->noperand;
    if (n == 2) {
        w->pair[0] = (lop_pair_of){0, 1};
        return LOP_OK;
    }
    if (w->spec->path) {
        if (w->spec->npath != n - 1)
            return lop_fail(w->err, LOP_DOMAIN, "a path of %d pairs for %d operands",
                            w->spec->npath, n);
        return given(w);
    }
    lop_labels *leaf = lop_alloc(w->ctx, (size_t)(2 * n) * sizeof *leaf);
    const lop_labels out = lop_labels_of(&w->result);
    if (!leaf) return lop_fail(w->err, LOP_NOMEM, NULL);
    for (int i = 0; i < n; i++) leaf[i] = lop_labels_of(&w->tensor[i]);
    lop_status st = n <= EXACT ? exact(w, leaf, &out) : greedy(w, leaf, &out);
    if (st == LOP_OK && n > EXACT) st = lop_contract_windows(w, leaf);
    lop_free(w->ctx, leaf);
    return st;
}
