/* test_chain.c [chains]: the planner of products and sums. The dynamic program against every
 * association of small chains, priced one by one; the best forms of known formulas by their flops;
 * random chains and sums of rectangular complex operands by value; the same plan twice; how long
 * planning takes (printed, not judged). */
#include "planner/chain.h"
#include "gen.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static world w;

static const lop_node *dense(lop_dtype dt, int64_t m, int64_t n) {
    return t_one_of(&w, "dense", NULL, t_array(&w, dt, 2, 2, (int64_t[]){m, n}));
}
static const lop_node *ref(const lop_node *a) { return lop_node_ref(a); }
static const lop_node *view(int mode, const lop_node *a) {
    lop_attr m = t_ints(mode, 0, 0, 0);
    return t_one_of(&w, "view", &m, a);
}
static const lop_node *prod(const lop_node *a, const lop_node *b) {
    return t_two_of(&w, "prod", a, b);
}
static const lop_node *sum(const lop_node *a, const lop_node *b) {
    return t_two_of(&w, "sum", a, b);
}
static const lop_node *times(double c, const lop_node *a) {
    lop_attr k = lop_attr_coef(c, 0);
    return t_one_of(&w, "scaled", &k, a);
}
static const lop_node *whole(const lop_node *a) { return t_one_of(&w, "todense", NULL, a); }

/* -- every association */

/* The least price of span i..j over all trees and all ways to multiply, without a table. */
static double least(lop_chmemo *m, lop_chdp *d, int i, int j) {
    double best = INFINITY;
    int held = 0, here = 0; /* factors that are dense as they are */
    for (int t = 0; t < d->n; t++) {
        bool dense = m->ch->atom[lop_sym_number(d->s[t])].node->op == &lop_op_dense &&
                     !lop_sym_inverse(d->s[t]);
        held += dense;
        here += dense && i <= t && t <= j;
    }
    d->how[i][j] = LOP_CH_LEAF;
    if (held && !here) return INFINITY; /* no dense form of structure on the way */
    if (i == j) return lop_chain_step(m, d, i, i).seconds;
    for (int how = LOP_CH_LEFT; how <= LOP_CH_GEMM; how++)
        for (int k = i; k < j; k++) {
            if ((how == LOP_CH_LEFT && k > i) || (how == LOP_CH_RIGHT && k < j - 1)) continue;
            double parts = 0;
            if (!held && how == LOP_CH_GEMM) continue;
            if (how != LOP_CH_LEFT) parts += least(m, d, i, k);
            if (how != LOP_CH_RIGHT) parts += least(m, d, k + 1, j);
            d->how[i][j] = (uint8_t)how;
            d->at[i][j] = (uint8_t)k;
            lop_price p = lop_chain_step(m, d, i, j);
            if (p.seconds >= 0 && parts + p.seconds < best) best = parts + p.seconds;
        }
    return best;
}

static const lop_node *a_factor(int64_t m, int64_t n) {
    lop_attr lower = t_ints(LOP_ASSUME_LOWER, 0, 0, 0);
    int64_t what = world_pick(&w, 0, 6);
    if (m == n && what == 0)
        return t_one_of(&w, "diag", NULL, t_array(&w, LOP_f64, 1, 1, (int64_t[]){n}));
    if (m == n && what == 1)
        return t_one_of(&w, "dense", &lower, t_array(&w, LOP_f64, 2, 2, (int64_t[]){n, n}));
    if (m == n && what == 2) return t_one_of(&w, "inverse", NULL, dense(LOP_f64, n, n));
    if (what == 3) return view(LOP_T, dense(LOP_f64, n, m));
    return dense(LOP_f64, m, n);
}

static void exhaustive(void) {
    static const int64_t pool[] = {1, 2, 5, 5, 40, 40, 300};
    for (int round = 0; round < 300; round++) {
        int n = (int)world_pick(&w, 2, 7);
        int64_t p = pool[world_pick(&w, 0, 7)];
        const lop_node *a = NULL;
        for (int i = 0; i < n; i++) {
            int64_t q = world_pick(&w, 0, 3) ? pool[world_pick(&w, 0, 7)] : p;
            const lop_node *f = a_factor(p, q);
            a = a ? world_pick(&w, 0, 2) ? prod(a, f) : prod(a, f) : f;
            p = q;
        }
        lop_chain ch;
        lop_chmemo m;
        lop_chdp d, e;
        bool read = a && lop_chain_read(&ch, &w.ctx, LOP_f64, a, NULL);
        t_check(read, "a chain that is not read");
        if (read) {
            lop_chmemo_open(&m, &ch, &ch.state);
            lop_chain_items(&m, &ch.state.term[0], 0, -1, &d);
            e = d;
            lop_chain_dp(&m, &d);
            double want = least(&m, &e, 0, n - 1), got = d.cost[0][n - 1];
            t_check(d.n == n && fabs(got - want) <= 1e-8 * want, "%d factors: %g, least %g", n, got,
                    want);
        }
        lop_node_unref(a);
        world_leaves(&w);
    }
    t_group("every association");
}

/* -- formulas */

static lop_plan *planned(const lop_node *root) {
    lop_plan *plan = NULL;
    lop_status st =
        root ? lop_plan_make(&w.ctx, w.rules, &w.options, root, &plan, &w.err) : LOP_INTERNAL;
    t_check(st == LOP_OK, "no plan: %s", w.err.text);
    return plan;
}

/* Takes over `root`: planned within 2 % of `flops`, and right. */
static void best(const char *what, const lop_node *root, double flops) {
    lop_plan *p = planned(root);
    if (p) {
        t_check(p->flops <= 1.02 * flops + 100, "%s: %.4g flops, best %.4g", what, p->flops, flops);
    }
    lop_plan_unref(p);
    if (root) t_agrees(&w, root, 0, 300, what);
    lop_node_unref(root);
}

static void formulas(void) {
    enum { N = 80 };
    const double n = N, n2 = n * n, n3 = n2 * n;
    const lop_node *a = dense(LOP_f64, N, N), *b = dense(LOP_f64, N, N), *c = dense(LOP_f64, N, N),
                   *x = dense(LOP_f64, N, 1), *tall = dense(LOP_f64, N, 10);
    best("A A'", whole(prod(ref(a), view(LOP_T, ref(a)))), n3 + n2);
    best("A' A x", whole(prod(prod(view(LOP_T, ref(a)), ref(a)), ref(x))), 4 * n2);
    best("x' A' A", whole(prod(prod(view(LOP_T, ref(x)), view(LOP_T, ref(a))), ref(a))), 4 * n2);
    best("(A'B)' A' B",
         whole(prod(prod(view(LOP_T, prod(view(LOP_T, ref(a)), ref(b))), view(LOP_T, ref(a))),
                    ref(b))),
         3 * n3 + n2);
    best("A B A B A B",
         whole(prod(prod(prod(ref(a), ref(b)), prod(ref(a), ref(b))), prod(ref(a), ref(b)))),
         6 * n3);
    best("A B A B x", whole(prod(prod(prod(ref(a), ref(b)), prod(ref(a), ref(b))), ref(x))),
         8 * n2);
    best("A B + A C", whole(sum(prod(ref(a), ref(b)), prod(ref(a), ref(c)))), 2 * n3 + n2);
    best("B A + C A", whole(sum(prod(ref(b), ref(a)), prod(ref(c), ref(a)))), 2 * n3 + n2);
    best("A B + 2 A B", whole(sum(prod(ref(a), ref(b)), times(2, prod(ref(a), ref(b))))),
         2 * n3 + n2);
    best("A B + (A B)'", whole(sum(prod(ref(a), ref(b)), view(LOP_T, prod(ref(a), ref(b))))),
         2 * n3 + n2);
    best("(A - B'B) x",
         whole(prod(sum(ref(a), times(-1, prod(view(LOP_T, ref(b)), ref(b)))), ref(x))),
         6 * n2 + 2 * n);
    best("(A + B) C", whole(prod(sum(ref(a), ref(b)), ref(c))), 2 * n3 + n2);
    best("T T' A", whole(prod(prod(ref(tall), view(LOP_T, ref(tall))), ref(a))), 40 * n2);
    best("A^8", whole(t_one_of(&w, "power", &(lop_attr){.i = {8, 0, 0, 0}}, ref(a))), 6 * n3);
    lop_attr at = t_ints(2, 3, 0, 0);
    best("(A B)[2, 3]", t_one_of(&w, "element", &at, prod(ref(a), ref(b))), 2 * n);
    best("(A' B)[2, 3]", t_one_of(&w, "element", &at, prod(view(LOP_T, ref(a)), ref(b))), 2 * n);
    best("(A B C)[2, 3]", t_one_of(&w, "element", &at, prod(prod(ref(a), ref(b)), ref(c))),
         2 * n2 + 2 * n);
    best("(A + B)[2, 3]", t_one_of(&w, "element", &at, sum(ref(a), ref(b))), 1);
    best("tr A B C", t_one_of(&w, "trace", NULL, prod(prod(ref(a), ref(b)), ref(c))),
         2 * n3 + 2 * n2);
    const lop_node *none = whole(sum(prod(ref(a), ref(b)), times(-1, prod(ref(a), ref(b)))));
    lop_plan *p = planned(none);
    t_check(p && p->flops == 0 && !p->trace.order[0], "A B - A B is zero");
    lop_plan_unref(p);
    lop_node_unref(none);
    const lop_node *all[] = {a, b, c, x, tall};
    for (int i = 0; i < 5; i++) lop_node_unref(all[i]);
    world_leaves(&w);
    t_group("formulas");
}

/* -- random ones */

static void random_values(void) {
    static const lop_dtype dts[] = {LOP_c128, LOP_f64, LOP_c64, LOP_c128};
    for (int round = 0; round < 250; round++) {
        gen g = {.w = &w,
                 .dtype = dts[round % 4],
                 .views = true,
                 .exprs = 0,
                 .largest = 6,
                 .solves = round % 3 == 0};
        gen_pool pool = {.n = 0};
        g.pool = &pool;
        if (round % 5 == 0) g.batch = (lop_shape){.ndim = 1, .dim = {2}};
        const lop_node *a = gen_operator(&g, world_pick(&w, 1, 7), world_pick(&w, 1, 7), 4);
        for (int i = 0; i < pool.n; i++) lop_node_unref(pool.node[i]);
        const lop_node *root = a ? whole(a) : NULL;
        if (root) t_agrees(&w, root, round % LAYOUTS, 600 * gen_slack(root), "random");
        lop_plan *p = root ? planned(root) : NULL, *q = root ? planned(root) : NULL;
        if (p && q) {
            char *s = lop_dump(p->root, 400), *t = lop_dump(q->root, 400);
            t_check(s && t && strcmp(s, t) == 0, "two plans of one expression differ");
            lop_free(&w.ctx, s);
            lop_free(&w.ctx, t);
        }
        lop_plan_unref(p);
        lop_plan_unref(q);
        lop_node_unref(root);
        world_leaves(&w);
    }
    t_group("random values");
}

static void how_long(void) {
    enum { N = 10, TIMES = 2000 };
    const lop_node *a = NULL;
    for (int i = 0; i < N; i++) {
        const lop_node *f = dense(LOP_f64, i % 3 ? 50 : 20, (i + 1) % 3 ? 50 : 20);
        a = a ? prod(a, f) : f;
    }
    const lop_node *root = whole(a);
    lop_chain ch;
    double t0 = t_seconds();
    for (int i = 0; i < TIMES; i++)
        if (lop_chain_read(&ch, &w.ctx, LOP_f64, root->child[0], NULL)) lop_chain_search(&ch);
    double t1 = t_seconds();
    for (int i = 0; i < TIMES; i++) lop_plan_unref(planned(root));
    printf("10 operands: association %.1f us, the whole plan %.1f us\n", (t1 - t0) / TIMES * 1e6,
           (t_seconds() - t1) / TIMES * 1e6);
    lop_node_unref(root);
    world_leaves(&w);
}

int main(int argc, char **argv) {
    world_open(&w, (uint64_t)t_number(argc, argv, 1, 11));
    exhaustive();
    formulas();
    random_values();
    how_long();
    world_close(&w, "test_chain");
    t_group("memory");
    return t_end();
}
