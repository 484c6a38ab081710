/* interp_band.c: permutations, offset diagonals, bands, triangles and the other small kinds, each
 * from its definition. One function a head: it fills one matrix (or vector) of the batch, which
 * comes zeroed, from the children's. */
#include "interp.h"

#include <math.h>
#include <string.h>

typedef void (*filler)(ip *p, const lop_node *node, mv y, const mv *c);

static val unit(void) { return (val){1, 1, 0, 1}; }
static val *at(mv y, int64_t i, int64_t j) { return &y.v[i * y.n + j]; }

static void permutation(ip *p, const lop_node *node, mv y, const mv *c) {
    (void)p;
    (void)node;
    for (int64_t i = 0; i < y.m; i++) {
        int64_t j = (int64_t)c[0].v[i].i;
        *at(y, i, j < 0 ? j + y.n : j) = unit();
    }
}
static val number(int64_t i) {
    return (val){(uint64_t)i, (long double)i, 0, fabsl((long double)i)};
}
static void invperm(ip *p, const lop_node *node, mv y, const mv *c) {
    (void)p;
    (void)node;
    for (int64_t i = 0; i < y.m; i++) {
        int64_t j = (int64_t)c[0].v[i].i;
        y.v[j < 0 ? j + y.m : j] = number(i);
    }
}
static void compose(ip *p, const lop_node *node, mv y, const mv *c) {
    (void)p;
    (void)node;
    for (int64_t i = 0; i < y.m; i++) {
        int64_t j = (int64_t)c[1].v[i].i, k = (int64_t)c[0].v[j < 0 ? j + y.m : j].i;
        y.v[i] = number(k < 0 ? k + y.m : k);
    }
}

static void offdiag(ip *p, const lop_node *node, mv y, const mv *c) {
    (void)p;
    int64_t k = node->attr.i[0];
    for (int64_t t = 0; t < c[0].m; t++) *at(y, t + (k < 0 ? -k : 0), t + (k > 0 ? k : 0)) = c[0].v[t];
}

static const struct {
    const char *name;
    filler fill;
} heads[] = {
    {"permutation", permutation},
    {"offdiag", offdiag},
    {"invperm", invperm},
    {"compose", compose},
};

static filler find(const char *name) {
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        if (!strcmp(heads[i].name, name)) return heads[i].fill;
    return NULL;
}
bool ip_band_knows(const char *name) { return find(name) != NULL; }

const tv *ip_band(ip *p, const lop_node *node) {
    enum { MOST = 6 };
    const tv *child[MOST] = {0};
    lop_shape batch = {0}, both;
    for (int i = 0; i < node->n && i < MOST; i++) {
        child[i] = ip_eval(p, node->child[i]);
        if (!child[i]) return NULL;
        if (!ip_broadcast(&batch, &child[i]->batch, &both)) {
            p->why = "batches do not broadcast";
            return NULL;
        }
        batch = both;
    }
    if (node->n == 0) {
        batch = node->shape;
        batch.ndim -= node->core;
    }
    int nb = node->shape.ndim - node->core;
    tv *y = ip_blank(p, &batch, node->core, node->shape.dim[nb],
                     node->core > 1 ? node->shape.dim[nb + 1] : 1);
    for (int64_t e = 0; e < y->nb; e++) {
        mv c[MOST] = {{0}};
        for (int i = 0; i < node->n && i < MOST; i++) c[i] = ip_part(child[i], &batch, e);
        find(node->op->name)(p, node, ip_part(y, &batch, e), c);
    }
    return y;
}
