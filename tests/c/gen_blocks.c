/* gen_blocks.c: actions on sums and products with a BlockDiag that are block diagonal by how they
 * are written, of blocks as large as the rows ask for, and on BlockDiags of the matrices of a
 * stack; a part of gen.h. */
#include "gen.h"

#include <string.h>

static int64_t pick(gen *g, int64_t n) { return world_pick(g->w, 0, n); }

/* Two square blocks of n rows together, n odd. */
static const lop_node *blocks(gen *g, int64_t n) {
    const lop_node *f[2] = {t_one_of(g->w, "dense", NULL, gen_array(g, 2, n / 2, n / 2)),
                            t_one_of(g->w, "dense", NULL, gen_array(g, 2, n - n / 2, n - n / 2))};
    const lop_node *all = f[0] && f[1] ? t_node(g->w, "blockdiag", NULL, 2, f) : NULL;
    lop_node_unref(f[0]);
    lop_node_unref(f[1]);
    return all;
}

static const lop_node *with_diagonal(gen *g, int64_t n) {
    const lop_attr mode = t_ints(1 + pick(g, 3), 0, 0, 0);
    const lop_node *all = blocks(g, n);
    if (g->views && pick(g, 3)) all = t_one_of(g->w, "view", &mode, all);
    return t_two_of(g->w, "sum", all, t_one_of(g->w, "diag", NULL, gen_array(g, 1, n, 1)));
}

const lop_node *gen_of_blocks(gen *g, const char *rule) {
    world *w = g->w;
    gen one = *g;
    one.batch = (lop_shape){0};
    one.dtype = LOP_c128;
    const bool factor = !strncmp(rule, "solve", 5) || !strncmp(rule, "scaledet", 8);
    const int64_t n = (factor ? 65 : 17) + pick(g, 3);
    const lop_attr off = t_ints(pick(g, 3) - 1, 0, 0, 0), none = t_ints(0, 0, 0, 0);
    one.exprs = 0;
    const lop_node *sum = with_diagonal(&one, n);
    if (!strncmp(rule, "solve", 5))
        return t_two_of(w, "solve", sum, gen_array(&one, 2, n, 1 + pick(g, 2)));
    if (factor) return t_one_of(w, "scaledet", &none, sum);
    if (strstr(rule, "inverse"))
        return t_one_of(w, "diagonal", &off, t_one_of(w, "inverse", NULL, sum));
    const lop_node *first =
        pick(g, 2) ? t_one_of(w, "inverse", NULL, with_diagonal(&one, n)) : blocks(&one, n);
    const lop_node *both = t_two_of(w, "prod", first, sum);
    return strncmp(rule, "trace", 5) ? t_one_of(w, "diagonal", &off, both)
                                     : t_one_of(w, "trace", &none, both);
}

/* Matrices of a stack, from one on, each seen alike; an owned BlockDiag, or NULL. */
static const lop_node *of_stack(gen *one, const lop_node *stack, int from, int count,
                                const lop_attr *seen) {
    const lop_node *f[4] = {0}, *all;
    bool ok = stack != NULL;
    for (int i = 0; ok && i < count; i++) {
        const lop_attr at = t_ints(2, from + i, 1, -1);
        f[i] = t_one_of(one->w, "sliced", &at, lop_node_ref(stack));
        if (seen->i[0]) f[i] = t_one_of(one->w, "view", seen, f[i]);
        ok = f[i] != NULL;
    }
    all = ok ? t_node(one->w, "blockdiag", NULL, count, f) : NULL;
    for (int i = 0; i < count; i++) lop_node_unref(f[i]);
    return all;
}

const lop_node *gen_stack_blocks(gen *g, const char *rule) {
    const int count = 2 + (int)pick(g, 3), from = (int)pick(g, 2);
    const int64_t n = 1 + pick(g, 3), k = 1 + pick(g, 2);
    const lop_attr seen = t_ints(pick(g, 4), 0, 0, 0), none = t_ints(0, 0, 0, 0);
    const lop_node *stack = NULL;
    gen many = *g, one = *g;
    many.batch = (lop_shape){.ndim = 1, .dim = {count + from}};
    one.batch = (lop_shape){0};
    for (int i = 0; i < 8 && !stack; i++) { /* leaves have parts of a batch */
        stack = t_one_of(g->w, "dense", NULL, gen_array(&many, 2, n, n));
        if (stack && stack->shape.ndim == 3 && stack->shape.dim[0] == count + from) break;
        lop_node_unref(stack);
        stack = NULL;
    }
    const lop_node *all = of_stack(&one, stack, from, count, &seen);
    lop_node_unref(stack);
    const lop_attr dense = t_ints(0, 0, 0, all ? (int64_t)all->dtype + 1 : 0);
    if (!strncmp(rule, "dense", 5)) return t_one_of(g->w, "todense", &dense, all);
    if (!strncmp(rule, "scaledet", 8)) return t_one_of(g->w, "scaledet", &none, all);
    return t_two_of(g->w, strncmp(rule, "solve", 5) ? "apply" : "solve", all,
                    gen_array(&one, 2, n * count, k));
}
