/* gen_kron_places.c: sums of Krons with their matrices at the same places; a part of gen.h. */
#include "gen.h"

static int64_t pick(gen *g, int64_t n) { return world_pick(g->w, 0, n); }

static const lop_node *eye(gen *g, int64_t n) {
    const lop_node like = {
        .shape = {.ndim = 2, .dim = {n, n}}, .dtype = LOP_f64, .weak = LOP_WEAK, .core = 2};
    const lop_node *out = NULL;
    if (lop_node_make(&g->w->ctx, &lop_op_identity, NULL, 0, NULL, &like, &out, &g->w->err) !=
        LOP_OK)
        return NULL;
    return out;
}

/* c I (x) A (x) B (x) I of n places of 2, B perhaps not there, A or B perhaps no Dense. */
static const lop_node *term(gen *g, int n) {
    const int wide = 1 + (int)pick(g, 2), at = (int)pick(g, n - wide + 1);
    const lop_attr turn = t_ints(1 + pick(g, 3), 0, 0, 0);
    const lop_node *out = eye(g, (int64_t)1 << at);
    world *w = g->w;
    for (int i = 0; i < wide; i++) {
        const lop_node *f = pick(g, 5) ? t_one_of(w, "dense", NULL, gen_array(g, 2, 2, 2))
                                       : t_one_of(w, "diag", NULL, gen_array(g, 1, 2, 1));
        if (g->views && !pick(g, 5)) f = t_one_of(w, "view", &turn, f);
        out = t_two_of(w, "kron", out, f);
    }
    out = t_two_of(w, "kron", out, eye(g, (int64_t)1 << (n - at - wide)));
    if (g->views && !pick(g, 5)) out = t_one_of(w, "view", &turn, out);
    if (!pick(g, 2)) return out;
    const lop_attr c = gen_coef(g);
    return t_one_of(w, "scaled", &c, out);
}

const lop_node *gen_kron_places(gen *g) {
    const int n = 2 + (int)pick(g, 4), terms = 3 + (int)pick(g, 4);
    const int64_t rows = (int64_t)1 << n;
    const lop_node *sum = term(g, n);
    for (int i = 1; i < terms; i++)
        sum = pick(g, 2) ? t_two_of(g->w, "sum", sum, term(g, n))
                         : t_two_of(g->w, "sum", term(g, n), sum);
    if (!pick(g, 3))
        sum = t_two_of(g->w, "sum", sum, t_one_of(g->w, "diag", NULL, gen_array(g, 1, rows, 1)));
    return t_two_of(g->w, "apply", sum, gen_array(g, 2, rows, 1 + 2 * pick(g, 3)));
}
