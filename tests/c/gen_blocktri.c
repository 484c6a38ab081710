/* gen_blocktri.c: questions about inverses of BlockTridiagonals; a part of gen.h; and of
 * bands twice. */
#include "gen.h"

#include <string.h>

static int64_t pick(gen *g, int64_t n) { return world_pick(g->w, 0, n); }

/* tr(A^-1 B) of block tridiagonal A and B, of blocks of one size. */
const lop_node *gen_blocktri_trace(gen *g, const char *rule) {
    const int64_t n = 2 + pick(g, 5);
    const lop_node *f[2] = {0};
    lop_status st = LOP_OK;
    world *w = g->w;
    for (int i = 0; i < 2; i++)
        for (int tries = 0; tries < 40; tries++) {
            lop_node_unref(f[i]);
            f[i] = gen_instance(g, &lop_op_blocktridiagonal, n, n, &st);
            if (f[i] && (i == 0 || !f[0] || f[i]->attr.i[0] == f[0]->attr.i[0])) break;
        }
    const bool first = strstr(rule, "inverse-blocktri") != NULL;
    const lop_node *inverse = t_one_of(w, "inverse", NULL, f[0]),
                   *both = first ? t_two_of(w, "prod", inverse, f[1])
                                 : t_two_of(w, "prod", f[1], inverse);
    return t_one_of(w, "trace", NULL, both);
}

/* The blocks of the inverse of a BlockTridiagonal, or of a view. */
const lop_node *gen_blocktri_blocks(gen *g, const char *rule) {
    world *w = g->w;
    lop_status st = LOP_OK;
    const int64_t b = 1 + pick(g, 2), n = b * (1 + pick(g, 3));
    const lop_attr at = t_ints(3, pick(g, 3) - 1, 0, 0), /* LOP_AT_BLOCKS */
        mode = t_ints(1 + pick(g, 3), 0, 0, 0);
    const lop_node *a = gen_instance(g, &lop_op_blocktridiagonal, n, n, &st), *out = NULL;
    if (!a) return NULL;
    const lop_node like = {
        .shape = {.ndim = 1, .dim = {a->attr.i[0]}}, .dtype = LOP_f64, .weak = LOP_WEAK};
    const lop_node *size = NULL;
    if (lop_node_make(&w->ctx, &lop_op_sizes, NULL, 0, NULL, &like, &size, &w->err) != LOP_OK)
        size = NULL;
    if (strstr(rule, "view")) a = t_one_of(w, "view", &mode, a);
    const lop_node *child[3] = {t_one_of(w, "inverse", NULL, a), size, size};
    if (child[0] && size) out = t_node(w, "entry_sums", &at, 3, child);
    lop_node_unref(child[0]);
    lop_node_unref(size);
    return out;
}

enum { MOST = 12 };

/* A BlockDiag of k dense blocks of b rows. */
static const lop_node *dense_blocks(gen *one, int64_t k, int64_t b) {
    world *w = one->w;
    const lop_node *part[MOST] = {NULL}, *all = NULL;
    bool good = true;
    for (int64_t i = 0; i < k; i++) {
        part[i] = t_one_of(w, "dense", NULL, gen_array(one, 2, b, b));
        good = good && part[i];
    }
    if (good) all = t_node(w, "blockdiag", NULL, (int)k, part);
    for (int i = 0; i < MOST; i++) lop_node_unref(part[i]);
    return all;
}

static const lop_node *thin_factor(gen *one, int64_t n) {
    return t_one_of(one->w, "dense", NULL, gen_array(one, 2, n, 1));
}

/* (B + u v^H)^-1 X (B + u v^H)^-1 of B, which it takes over, and X = B or an update. */
static const lop_node *gen_between_updates(gen *one, const lop_node *b) {
    world *w = one->w;
    const int64_t n = b ? lop_rows(b) : 0;
    const lop_node *child[3] = {b, thin_factor(one, n), thin_factor(one, n)}, *a = NULL;
    if (child[0] && child[1] && child[2]) a = t_node(w, "lowrankupdate", NULL, 3, child);
    const lop_node *x = a && pick(one, 2) ? lop_node_ref(a)
                        : b               ? lop_node_ref(b)
                                          : NULL,
                   *left = t_one_of(w, "inverse", NULL, a ? lop_node_ref(a) : NULL),
                   *right = t_one_of(w, "inverse", NULL, a);
    for (int i = 0; i < 3; i++) lop_node_unref(child[i]);
    return t_two_of(w, "prod", t_two_of(w, "prod", left, x), right);
}

/* Likewise as part of what the rule reads: a product, a sum with a diagonal, a view, an update. */
static const lop_node *among_blocks(gen *one, const char *rule, int64_t k, int64_t b) {
    world *w = one->w;
    const lop_node *all = dense_blocks(one, k, b);
    const lop_attr mode = t_ints(1 + pick(one, 3), 0, 0, 0);
    if (!strcmp(rule, "entries-by-blocks"))
        return t_two_of(w, "prod", all, dense_blocks(one, k, b));
    if (!strcmp(rule, "entries-expanded")) return gen_between_updates(one, all);
    if (!strcmp(rule, "entries-inverse-by-blocks"))
        return t_two_of(w, "sum", all, t_one_of(w, "diag", NULL, gen_array(one, 1, k * b, 0)));
    if (strstr(rule, "view-update")) {
        const lop_node *child[3] = {all, thin_factor(one, k * b), thin_factor(one, k * b)};
        all = child[0] && child[1] && child[2] ? t_node(w, "lowrankupdate", NULL, 3, child) : NULL;
        for (int i = 0; i < 3; i++) lop_node_unref(child[i]);
    }
    return strstr(rule, "inverse-view") ? t_one_of(w, "view", &mode, all) : all;
}

/* The blocks on the diagonal of a BlockDiag of two and more of one size, or of its inverse. */
const lop_node *gen_own_blocks(gen *g, const char *rule) {
    world *w = g->w;
    gen one = *g;
    one.batch = (lop_shape){0};
    one.exprs = 0;
    const bool many = !strcmp(rule, "entries-expanded"); /* 32 rows and more */
    const int64_t b = many ? 3 : 1 + pick(g, 3), k = many ? MOST : 2 + pick(g, 2);
    const lop_attr at = t_ints(3, 0, 0, 0); /* LOP_AT_BLOCKS */
    const lop_node like = {.shape = {.ndim = 1, .dim = {b}}, .dtype = LOP_f64, .weak = LOP_WEAK};
    const lop_node *size = NULL, *all = among_blocks(&one, rule, k, b), *out = NULL;
    if (lop_node_make(&w->ctx, &lop_op_sizes, NULL, 0, NULL, &like, &size, &w->err) != LOP_OK)
        size = NULL;
    if (all && strstr(rule, "-inverse")) all = t_one_of(w, "inverse", NULL, all);
    const lop_node *child[3] = {all, size, size};
    if (all && size) out = t_node(w, "entry_sums", &at, 3, child);
    lop_node_unref(all);
    lop_node_unref(size);
    return out;
}

/* The entries of a square matrix at some places. Takes it over. */
const lop_node *gen_at_places(gen *g, int64_t triangle, const lop_node *a) {
    const lop_attr at = t_ints(2, triangle, 0, 0); /* LOP_AT_COO */
    const lop_node *child[3] = {a}, *out = NULL;
    for (int i = 1; a && i < 3; i++)
        if (lop_rand_index(&g->w->rand, 6, 0, lop_rows(a), &child[i]) != LOP_OK) child[i] = NULL;
    if (a && child[1] && child[2]) out = t_node(g->w, "entry_sums", &at, 3, child);
    for (int i = 0; i < 3; i++) lop_node_unref(child[i]);
    return out;
}

/* A band times p, or p times one; of p and what is thin too. Takes over p. */
static const lop_node *beside_band(gen *g, int64_t n, const lop_node *p) {
    world *w = g->w;
    lop_status st = LOP_OK;
    const bool before = pick(g, 2), sum = pick(g, 2);
    const lop_node *f = gen_instance(g, pick(g, 2) ? &lop_op_tridiagonal : &lop_op_diag, n, n, &st);
    const lop_node *u = gen_array(g, 2, n, 1), *v = gen_array(g, 2, n, 1);
    const lop_node *thin =
        t_two_of(w, "lowrank", t_one_of(w, "dense", NULL, u), t_one_of(w, "dense", NULL, v));
    if (sum)
        p = t_two_of(w, "sum", p, thin);
    else
        lop_node_unref(thin);
    return t_two_of(w, "prod", before ? f : p, before ? p : f);
}

/* What is read off A^-1 X A^-1, or A^-2, of bands that are far narrower than they are long: blocks
 * of more than 32 rows, as the rule asks. */
const lop_node *gen_between_bands(gen *g, const char *rule) {
    world *w = g->w;
    lop_status st = LOP_OK;
    const bool blocks = !strncmp(rule, "entries", 7);
    const int64_t n = blocks ? 36 : 8 + pick(g, 5), views = pick(g, 3);
    const lop_attr mode = t_ints(1 + pick(g, 3), 0, 0, 0);
    const lop_node *a = NULL, *x = NULL, *size = NULL, *out = NULL;
    for (int tries = 0; tries < 40 && !(a && (!blocks || a->attr.i[0] <= 3)); tries++) {
        lop_node_unref(a);
        a = gen_instance(g, blocks ? &lop_op_blocktridiagonal : &lop_op_tridiagonal, n, n, &st);
    }
    if (!a) return NULL;
    const int64_t b = blocks ? a->attr.i[0] : 1;
    if (pick(g, 3)) x = gen_instance(g, &lop_op_tridiagonal, n, n, &st);
    const lop_node *inverse = t_one_of(w, "inverse", NULL, a);
    if (inverse && views == 0) inverse = t_one_of(w, "view", &mode, inverse);
    const lop_node *left = inverse ? lop_node_ref(inverse) : NULL;
    if (x) left = t_two_of(w, "prod", left, x);
    const lop_node *both = t_two_of(w, "prod", left, inverse);
    if (both && strstr(rule, "by-between")) both = beside_band(g, n, both);
    const lop_attr at = t_ints(blocks                      ? 3
                               : strncmp(rule, "trace", 5) ? pick(g, 3) - 1
                                                           : 0,
                               blocks ? pick(g, 3) - 1 : 0, 0, 0);
    if (!blocks) return t_one_of(w, strncmp(rule, "trace", 5) ? "diagonal" : "trace", &at, both);
    const lop_node like = {.shape = {.ndim = 1, .dim = {b}}, .dtype = LOP_f64, .weak = LOP_WEAK};
    if (lop_node_make(&w->ctx, &lop_op_sizes, NULL, 0, NULL, &like, &size, &w->err) != LOP_OK)
        size = NULL;
    const lop_node *child[3] = {both, size, size};
    if (both && size) out = t_node(w, "entry_sums", &at, 3, child);
    lop_node_unref(both);
    lop_node_unref(size);
    return out;
}

/* Blocks of the inverse of a band by how it is written, of more than 32 rows: A and a view of it,
 * or of that and a diagonal. */
const lop_node *gen_inverse_band(gen *g) {
    world *w = g->w;
    lop_status st = LOP_OK;
    const lop_node *a = NULL, *size = NULL, *out = NULL;
    const lop_attr turn = t_ints(1 + pick(g, 3), 0, 0, 0), at = t_ints(3, pick(g, 3) - 1, 0, 0);
    for (int tries = 0; tries < 40 && !(a && a->attr.i[0] <= 3); tries++) {
        lop_node_unref(a);
        a = gen_instance(g, &lop_op_blocktridiagonal, 36, 36, &st);
    }
    if (!a) return NULL;
    const lop_node like = {
        .shape = {.ndim = 1, .dim = {a->attr.i[0]}}, .dtype = LOP_f64, .weak = LOP_WEAK};
    if (lop_node_make(&w->ctx, &lop_op_sizes, NULL, 0, NULL, &like, &size, &w->err) != LOP_OK)
        size = NULL;
    const lop_node *turned = t_one_of(w, "view", &turn, lop_node_ref(a));
    if (pick(g, 3)) {
        turned = t_two_of(w, "sum", a, turned);
    } else {
        lop_node_unref(a);
        turned = t_two_of(w, "sum", turned, t_one_of(w, "diag", NULL, gen_array(g, 1, 36, 1)));
    }
    const lop_node *child[3] = {t_one_of(w, "inverse", NULL, turned), size, size};
    if (child[0] && size) out = t_node(w, "entry_sums", &at, 3, child);
    lop_node_unref(child[0]);
    lop_node_unref(size);
    return out;
}

/* Blocks, or taps of a convolution, of L A^-1 R of more than 32 rows, bands whose inverse is read
 * on A's band alone; also of what is thin beside it. */
const lop_node *gen_near_band_inverse(gen *g) {
    world *w = g->w;
    lop_status st = LOP_OK;
    const int64_t n = 36;
    const lop_attr mode = t_ints(1 + pick(g, 3), 0, 0, 0);
    const lop_node *a = NULL, *size[2] = {NULL}, *out = NULL;
    for (int tries = 0; tries < 40 && !(a && a->attr.i[0] <= 3); tries++) {
        lop_node_unref(a);
        a = gen_instance(g, &lop_op_blocktridiagonal, n, n, &st);
    }
    if (!a) return NULL;
    const int64_t b = a->attr.i[0];
    const bool boxes = b > 1 && pick(g, 2), after = pick(g, 2),
               both = b > 1 && !boxes && pick(g, 2);
    const lop_attr at = t_ints(boxes ? 4 : 3, boxes ? 1 : 0, 0, 0);
    for (int i = 0; i < 2; i++) {
        const lop_node like = {.shape = {.ndim = 1,
                                         .dim = {!boxes ? b
                                                 : i    ? n
                                                        : 3}},
                               .dtype = LOP_f64,
                               .weak = LOP_WEAK};
        if (lop_node_make(&w->ctx, &lop_op_sizes, NULL, 0, NULL, &like, &size[i], &w->err) !=
            LOP_OK)
            size[i] = NULL;
    }
    const lop_node *inverse = t_one_of(w, "inverse", NULL, a);
    if (inverse && pick(g, 2)) inverse = t_one_of(w, "view", &mode, inverse);
    if (inverse && pick(g, 3) == 0)
        inverse = t_two_of(w, "sum", inverse,
                           t_two_of(w, "prod", t_one_of(w, "dense", NULL, gen_array(g, 2, n, 1)),
                                    t_one_of(w, "dense", NULL, gen_array(g, 2, 1, n))));
    if (inverse && (!after || both))
        inverse = t_two_of(w, "prod", gen_instance(g, &lop_op_tridiagonal, n, n, &st), inverse);
    if (inverse && (after || both))
        inverse = t_two_of(w, "prod", inverse, gen_instance(g, &lop_op_tridiagonal, n, n, &st));
    const lop_node *child[3] = {inverse, size[0], size[1]};
    if (inverse && size[0] && size[1]) out = t_node(w, "entry_sums", &at, 3, child);
    for (int i = 0; i < 3; i++) lop_node_unref(child[i]);
    return out;
}
