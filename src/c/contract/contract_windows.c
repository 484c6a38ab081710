/* contract_windows.c: a tree that the greedy search made, mended piece by piece: a node, the nodes
 * below it opened until they are WINDOW parts, and the cheapest tree of these parts by the exact
 * search in its place. At most WINDOWS of them, from the root down, 3^WINDOW prices each. */
#include "contract_parts.h"

enum { WINDOW = 7, WINDOWS = 64, DEEPEST = 512 };

/* Numbers below n are operands; n + i is what pair i makes. */
typedef struct tree {
    const lop_contract_work *w;
    lop_labels *labels; /* 2 n */
    lop_pair_of *of;    /* n - 1: the children of n + i */
    int n;
} tree;

typedef struct window {
    int part[WINDOW], parts;   /* what its tree is made of */
    int inner[WINDOW], inners; /* the nodes of its tree, its root first */
} window;

static lop_pair_of *children(const tree *t, int node) { return &t->of[node - t->n]; }

/* The window below a node: of its parts the largest array is opened, as long as there is room. */
static window below(const tree *t, int root) {
    window v = {.part = {children(t, root)->a, children(t, root)->b},
                .parts = 2,
                .inner = {root},
                .inners = 1};
    while (v.parts < WINDOW) {
        int at = -1;
        double largest = -1;
        for (int i = 0; i < v.parts; i++) {
            if (v.part[i] < t->n) continue;
            const double size = lop_contract_volume(t->w, &t->labels[v.part[i]]);
            if (size > largest) {
                largest = size;
                at = i;
            }
        }
        if (at < 0) break;
        const int node = v.part[at];
        v.inner[v.inners++] = node;
        v.part[at] = children(t, node)->a;
        v.part[v.parts++] = children(t, node)->b;
    }
    return v;
}

static double cost_of(const tree *t, const window *v) {
    double cost = 0;
    for (int i = 0; i < v->inners; i++) {
        const lop_pair_of *c = children(t, v->inner[i]);
        cost +=
            lop_contract_price(t->w, &t->labels[c->a], &t->labels[c->b], &t->labels[v->inner[i]]);
    }
    return cost;
}

/* The nodes of a window by what was found; gives the number of the subset's. */
static int grow(tree *t, const window *v, const lop_subset *of, uint32_t s, int *used) {
    if ((s & (s - 1)) == 0) return v->part[__builtin_ctz(s)];
    const int node = v->inner[(*used)++];
    const int a = grow(t, v, of, of[s].left, used), b = grow(t, v, of, s & ~of[s].left, used);
    *children(t, node) = (lop_pair_of){a, b};
    t->labels[node] = of[s].labels;
    return node;
}

static void mend(tree *t, const window *v, lop_subset *of) {
    lop_labels leaf[WINDOW];
    const uint32_t all = ((uint32_t)1 << v->parts) - 1;
    const lop_labels out = t->labels[v->inner[0]];
    int used = 0;
    for (int i = 0; i < v->parts; i++) leaf[i] = t->labels[v->part[i]];
    lop_contract_search(t->w, leaf, v->parts, &out, of);
    if (of[all].cost < cost_of(t, v) * (1 - 1e-9)) (void)grow(t, v, of, all, &used);
}

/* The pairs of the tree below a node, arguments first; gives the number of what it makes. */
static int written(const tree *t, int node, lop_pair_of *pair, int *made) {
    if (node < t->n) return node;
    const int a = written(t, children(t, node)->a, pair, made),
              b = written(t, children(t, node)->b, pair, made);
    pair[*made] = a < b ? (lop_pair_of){a, b} : (lop_pair_of){b, a};
    return t->n + (*made)++;
}

lop_status lop_contract_windows(lop_contract_work *w, lop_labels *labels) {
    const int n = w->spec->noperand;
    if (n > DEEPEST) return LOP_OK; /* trees may be as deep as they are long */
    lop_subset *of = lop_calloc(w->ctx, (size_t)1 << WINDOW, sizeof *of);
    lop_pair_of *pair = lop_alloc(w->ctx, (size_t)(n - 1) * sizeof *pair);
    int *todo = lop_alloc(w->ctx, (size_t)n * sizeof *todo), count = 0, made = 0;
    lop_status st = of && pair && todo ? LOP_OK : lop_fail(w->err, LOP_NOMEM, NULL);
    if (st == LOP_OK) {
        tree t = {.w = w, .labels = labels, .of = w->pair, .n = n};
        todo[count++] = 2 * n - 2;
        for (int seen = 0; seen < count && seen < WINDOWS; seen++) {
            const window v = below(&t, todo[seen]);
            if (v.parts > 2) mend(&t, &v, of);
            const lop_pair_of c = *children(&t, todo[seen]);
            if (c.a >= n) todo[count++] = c.a;
            if (c.b >= n) todo[count++] = c.b;
        }
        (void)written(&t, 2 * n - 2, pair, &made);
        for (int i = 0; i < n - 1; i++) w->pair[i] = pair[i];
    }
    lop_free(w->ctx, todo);
    lop_free(w->ctx, pair);
    lop_free(w->ctx, of);
    return st;
}
