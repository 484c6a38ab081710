/* test_projections.c: what gradients read off an operator, against the interpreter: of random
 * operators of every form, in all dtypes and layouts, empty and single ones; and of forms whose way
 * changes with the size. */
#include "gen.h"

#include "ops/projections/projections.h"
#include "ops/shared/convolution.h"

#include <string.h>

static world w;

static const lop_dtype dtypes[] = {LOP_f32, LOP_f64, LOP_c64, LOP_c128};
static const lop_dtype wide[] = {LOP_f64, LOP_c128};

static gen of_dtype(lop_dtype dt) {
    return (gen){.w = &w, .dtype = dt, .solves = true, .views = true, .exprs = 2, .largest = 3};
}

/* -- sums along diagonals */

static void agree_sums(const lop_node *a, lop_attr how, int layout, const char *who) {
    if (a && how.i[1] && !lop_is_square(a)) how.i[1] = 0;
    if (a && how.i[0]) how.i[2] = 0;
    const double slack = a ? gen_slack(a) : 1;
    const lop_node *root = a ? t_one_of(&w, "diagonal_sums", &how, a) : NULL;
    if (root) t_agrees(&w, root, layout, 400 * slack, who);
    lop_node_unref(root);
    world_leaves(&w);
}

/* Each kind of operator, nested twice. */
static void random_sums(int draws) {
    static const int64_t size[][2] = {{0, 0}, {0, 3}, {3, 0}, {1, 1}, {1, 4},
                                      {4, 1}, {2, 2}, {3, 5}, {5, 3}, {4, 4}};
    for (int t = 0; t < draws; t++) {
        gen g = of_dtype(dtypes[t % 4]);
        const int64_t *s = size[world_pick(&w, 0, 10)];
        if (!world_pick(&w, 0, 4)) g.batch = (lop_shape){.ndim = 1, .dim = {2}};
        agree_sums(gen_operator(&g, s[0], s[1], t % 3), gen_lines(&g), t % LAYOUTS, "sums");
    }
    t_group("sums of random operators");
}

/* U V^H, U C V^H and products, thin, on both sides of where transforms begin. */
static void pair_sums(void) {
    static const int64_t size[][2] = {{30, 41}, {200, 170}, {170, 200}, {64, 64}, {220, 220}};
    for (int t = 0; t < 80; t++) {
        gen g = of_dtype(dtypes[t % 4]);
        const int64_t *s = size[t / 4 % 5], k = 1 + t % 3;
        const lop_attr view = t_ints(world_pick(&w, 1, 4), 0, 0, 0);
        const bool turned = t % 5 == 1;
        const int64_t m = turned ? s[1] : s[0], n = turned ? s[0] : s[1];
        g.exprs = 0;
        const lop_node *u = t_one_of(&w, "dense", NULL, gen_array(&g, 2, m, k)),
                       *v = t_one_of(&w, "dense", NULL, gen_array(&g, 2, n, k)), *a = NULL;
        a = t % 2 ? t_two_of(&w, "lowrank", u, v)
                  : t_two_of(&w, "prod", u, t_one_of(&w, "view", &(lop_attr){.i = {LOP_H}}, v));
        if (turned) a = t_one_of(&w, "view", &view, a);
        agree_sums(a, gen_lines(&g), t % LAYOUTS, "sums of a pair");
    }
    t_group("sums of pairs");
}

/* T^-1 and H^-1 large enough to go by their columns; their views, multiples, Hermitian ones. */
static void inverse_sums(void) {
    for (int t = 0; t < 48; t++) {
        gen g = of_dtype(wide[t % 2]);
        const int64_t n = t % 3 == 0 ? 130 : t % 3 == 1 ? 101 : 45;
        const bool hankel = t / 3 % 4 == 3, own = t / 3 % 2 == 0;
        const lop_attr view = t_ints(world_pick(&w, 1, 4), 0, 0, 0), c = lop_attr_coef(2.5, 0);
        lop_attr how = gen_lines(&g);
        g.exprs = 0;
        const lop_node *v = gen_array(&g, 1, hankel ? 2 * n - 1 : n, 1), *a = NULL;
        const lop_buf *b = v ? lop_rand_find(&w.rand, v->serial) : NULL;
        if (b && hankel)
            lop_set(b->dt, b->p, n - 1, 40.0 + (double)n);
        else if (b)
            lop_set(b->dt, b->p, 0, 40.0 + (double)n);
        if (hankel)
            a = t_two_of(&w, "hankel", v, gen_pair(&g, n, n));
        else
            a = t_two_of(&w, "toeplitz", v,
                         own ? t_one(&w, "conjugate", NULL, v) : gen_array(&g, 1, n, 1));
        if (t % 5 == 1) a = t_one_of(&w, "view", &view, a);
        if (t % 5 == 2) a = t_one_of(&w, "scaled", &c, a);
        a = t_one_of(&w, "inverse", NULL, a);
        if (t % 5 == 3) a = t_one_of(&w, "view", &view, a);
        how.i[0] = hankel;
        if (hankel) how.i[1] = 0;
        agree_sums(a, how, t % LAYOUTS, "sums of an inverse");
    }
    t_group("sums of inverses");
}

/* Circulant matrices' gradients: n ifft(1 / conj fft(c)). */
static void circulant_sums(void) {
    for (int t = 0; t < 16; t++) {
        gen g = of_dtype(wide[t % 2]);
        const int64_t n = t % 4 < 2 ? 7 : 90;
        const lop_attr view = t_ints(LOP_H, 0, 0, 0);
        g.exprs = 0;
        const lop_node *v = gen_array(&g, 1, n, 1);
        const lop_buf *b = v ? lop_rand_find(&w.rand, v->serial) : NULL;
        if (b) lop_set(b->dt, b->p, 0, 40.0 + (double)n);
        const lop_node *a =
            t_one_of(&w, "inverse", NULL, t_two_of(&w, "circulant", v, gen_sizes(&g, n)));
        if (t % 3) a = t_one_of(&w, "view", &view, a);
        agree_sums(a, t_ints(0, 1, 0, 0), t % LAYOUTS, "sums of a circulant's inverse");
    }
    t_group("sums of circulant inverses");
}

/* -- sums of entries at places: those of a random matrix of some kind */

static const lop_op *const with_places[] = {&lop_op_sparse, &lop_op_blocktridiagonal,
                                            &lop_op_convolution, &lop_op_multitoeplitz,
                                            &lop_op_circulant};

static const lop_node *of_kind(gen *g, const lop_op *op, int64_t m, int64_t n) {
    lop_status st = LOP_OK;
    if (op != &lop_op_sparse) return gen_instance(g, op, m, n, &st);
    for (int i = 0; i < 400; i++) { /* by rows and by columns too */
        const lop_node *a = gen_kind(g, m, n);
        if (a && a->op == op) return a;
        lop_node_unref(a);
    }
    return NULL;
}
static void agree_entries(const lop_node *a, const lop_node *kind, int64_t how, int layout,
                          const char *who) {
    const lop_node *child[3] = {a, NULL, NULL}, *root = NULL;
    lop_attr attr = t_ints(LOP_AT_BOXES, 0, 0, 0);
    if (kind && kind->op == &lop_op_sparse) {
        attr.i[0] = kind->attr.i[0];
        attr.i[1] = how % 5;
        child[1] = kind->child[1], child[2] = kind->child[2];
    } else if (kind && kind->op == &lop_op_blocktridiagonal) {
        const lop_node like = {.shape = {.ndim = 1, .dim = {kind->attr.i[0]}}, .dtype = LOP_f64};
        attr = t_ints(LOP_AT_BLOCKS, how % 3 - 1, 0, 0);
        if (lop_node_make(&w.ctx, t_op("sizes"), NULL, 0, NULL, &like, &child[1], &w.err) != LOP_OK)
            child[1] = NULL;
        child[2] = child[1];
    } else if (kind) {
        const bool own = kind->op == &lop_op_circulant;
        attr.i[1] = own                               ? LOP_CONV_CIRCULAR
                    : kind->op == &lop_op_convolution ? kind->attr.i[0]
                                                      : LOP_CONV_DIAGONALS;
        child[1] = kind->child[1], child[2] = kind->child[own ? 1 : 2];
    }
    if (a && child[1]) root = t_node(&w, "entry_sums", &attr, 3, child);
    if (root) t_agrees(&w, root, layout, 400 * gen_slack(a), who);
    if (kind && kind->op == &lop_op_blocktridiagonal) lop_node_unref(child[1]);
    lop_node_unref(root);
    lop_node_unref(kind);
    lop_node_unref(a);
    world_leaves(&w);
}
static void random_entries(int draws) {
    static const int64_t size[][2] = {{0, 0}, {0, 3}, {3, 0}, {1, 1}, {1, 4},
                                      {4, 1}, {6, 6}, {3, 5}, {5, 3}, {8, 8}};
    for (int t = 0; t < draws; t++) {
        gen g = of_dtype(dtypes[t % 4]);
        const int64_t *s = size[world_pick(&w, 0, 10)];
        const lop_op *op = with_places[world_pick(&w, 0, 5)];
        const lop_node *kind = of_kind(&g, op, s[0], s[1]);
        if (!world_pick(&w, 0, 4)) g.batch = (lop_shape){.ndim = 1, .dim = {2}};
        agree_entries(gen_operator(&g, s[0], s[1], t % 3), kind, t / 7, t % LAYOUTS, "entries");
    }
    t_group("entries of random operators");
}
/* Thin products and narrow bands, at the places of larger matrices. */
static void entries_by_form(void) {
    for (int t = 0; t < 120; t++) {
        gen g = of_dtype(dtypes[t % 4]);
        const int64_t n = 30 + t % 3 * 10, k = 1 + t % 3;
        const lop_node *kind = of_kind(&g, with_places[t % 5], n, n), *a = NULL;
        g.exprs = 0;
        if (t % 2)
            a = t_two_of(&w, "lowrank", t_one_of(&w, "dense", NULL, gen_array(&g, 2, n, k)),
                         t_one_of(&w, "dense", NULL, gen_array(&g, 2, n, k)));
        else
            a = t % 4 ? of_kind(&g, &lop_op_tridiagonal, n, n)
                      : t_one_of(&w, "diag", NULL, gen_array(&g, 1, n, 1));
        agree_entries(a, kind, t, t % LAYOUTS, "entries by form");
    }
    t_group("entries of pairs and bands");
}

int main(int argc, char **argv) {
    const int draws = (int)t_number(argc, argv, 2, 600);
    world_open(&w, (uint64_t)t_number(argc, argv, 1, 7));
    random_sums(draws);
    random_entries(draws);
    entries_by_form();
    pair_sums();
    inverse_sums();
    circulant_sums();
    world_close(&w, "test_projections");
    t_group("memory");
    return t_end();
}
