/* test_chains.c [terms]: long chains (`make sweep`: of 100,000 terms) are built, printed, read
 * back, rewritten, planned, run and released, on a stack of 256 KiB and in linear time: allocations
 * and rules are counted, and four times the terms may not take much more than four times the CPU
 * time.
 */
#include "support.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static world w;

enum { SIZE = 3 };
enum {
    SUM_LEFT,
    SUM_RIGHT,
    PROD_LEFT,
    PROD_RIGHT,
    CLOSED_SUM,
    CLOSED_PROD,
    SCALED,
    VIEWS,
    MIXED,
    INVERSES,
    CHAINS
};
static const char *const names[CHAINS] = {
    "sums, left",      "sums, right", "products, left", "products, right", "closed sums",
    "closed products", "multiples",   "views",          "mixed",           "inverses of inverses"};

static const double terms_asked = 15000; /* more than the stack has bytes for */

/* All leaves are the same numbers, of magnitude 1, but each its own leaf. */
static double numbers[SIZE] = {1, -1, 1};

static const lop_node *leaf(int64_t *count) {
    const lop_node *out = NULL;
    lop_shape s = {.ndim = 1, .dim = {SIZE}};
    ++*count;
    return lop_node_leaf(&w.ctx, LOP_f64, 1, &s, &out, &w.err) == LOP_OK
               ? t_one_of(&w, "diag", NULL, out)
               : NULL;
}

/* What op(a, b) closes to, or the node as written. Takes over a and b. */
static const lop_node *closed(const char *op, const lop_node *a, const lop_node *b) {
    const lop_node *child[2] = {a, b}, *out = NULL;
    int rule;
    lop_status st = lop_close(w.rules, &w.ctx, t_op(op), NULL, 2, child, &out, &rule, &w.err);
    if (st == LOP_NOMATCH) return t_two_of(&w, op, a, b);
    lop_node_unref(a);
    lop_node_unref(b);
    return out;
}

static const lop_node *chain(int which, int64_t terms, int64_t *leaves) {
    lop_attr minus = lop_attr_coef(-1, 0), view = t_ints(1, 0, 0, 0);
    *leaves = 0;
    const lop_node *a = leaf(leaves);
    for (int64_t i = 1; i < terms && a; i++) switch (which) {
        case SUM_LEFT: a = t_two_of(&w, "sum", a, leaf(leaves)); break;
        case SUM_RIGHT: a = t_two_of(&w, "sum", leaf(leaves), a); break;
        case PROD_LEFT: a = t_two_of(&w, "prod", a, leaf(leaves)); break;
        case PROD_RIGHT: a = t_two_of(&w, "prod", leaf(leaves), a); break;
        case CLOSED_SUM: a = closed("sum", a, leaf(leaves)); break;
        case CLOSED_PROD: a = closed("prod", a, leaf(leaves)); break;
        case SCALED: a = t_one_of(&w, "scaled", &minus, a); break;
        case VIEWS:
            view.i[0] = 1 + i % 3;
            a = t_one_of(&w, "view", &view, a);
            break;
        case INVERSES: a = t_one_of(&w, "inverse", NULL, a); break;
        default:
            a = i % 3 == 0   ? t_two_of(&w, "sum", a, leaf(leaves))
                : i % 3 == 1 ? t_one_of(&w, "scaled", &minus, a)
                             : t_one_of(&w, "view", &view, a);
        }
    return a;
}

/* The diagonal of the chain, by the same steps on numbers. */
static void expected(int which, int64_t terms, double *d) {
    for (int k = 0; k < SIZE; k++) {
        double v = numbers[k];
        for (int64_t i = 1; i < terms; i++) {
            if (which == SUM_LEFT || which == SUM_RIGHT || which == CLOSED_SUM ||
                (which == MIXED && i % 3 == 0))
                v += numbers[k];
            if (which == PROD_LEFT || which == PROD_RIGHT || which == CLOSED_PROD) v *= numbers[k];
            if (which == SCALED || (which == MIXED && i % 3 == 1)) v = -v;
            if (which == INVERSES) v = 1 / v;
        }
        d[k] = v;
    }
}

static lop_status run(const lop_plan *plan, double *out) {
    lop_frame f;
    lop_shape s = plan->slot[plan->out].shape;
    lop_buf number = {
        .p = numbers, .dt = LOP_f64, .shape = {.ndim = 1, .dim = {SIZE}}, .stride = {1}};
    lop_buf result = {.p = out, .dt = LOP_f64, .shape = s, .stride = {1, 1}}, column = number;
    column.shape = (lop_shape){.ndim = 2, .dim = {SIZE, 1}};
    column.stride[1] = 1;
    lop_status st = lop_frame_open(&f, plan, NULL, &w.store, &w.err);
    if (st != LOP_OK) return st;
    for (int i = 0; i < plan->nleaf && st == LOP_OK; i++)
        st = lop_frame_bind(&f, i, plan->leaf[i].shape.ndim == 1 ? &number : &column, &w.err);
    if (st == LOP_OK) st = lop_frame_bind(&f, plan->nleaf, &result, &w.err);
    if (st == LOP_OK) st = lop_exec(&f, &w.err);
    lop_frame_close(&f);
    return st;
}

static void use(int which, const lop_node *a, int64_t terms) {
    lop_shape s = {.ndim = 2, .dim = {SIZE, 1}};
    lop_attr none = t_ints(0, 0, 0, 0);
    const lop_node *x = NULL, *y;
    double d[SIZE], got[SIZE];
    if (!t_check(lop_node_leaf(&w.ctx, LOP_f64, 2, &s, &x, &w.err) == LOP_OK, "%s", w.err.text))
        return;
    expected(which, terms, d);
    for (int what = 0; what < 2; what++) {
        lop_plan *plan = NULL;
        y = what ? t_one(&w, "diagonal", &none, a) : t_two(&w, "apply", a, x);
        lop_status st =
            y ? lop_plan_make(&w.ctx, w.rules, &w.options, y, &plan, &w.err) : LOP_INTERNAL;
        if (t_check(st == LOP_OK, "%s, %s: %s", names[which], what ? "diagonal" : "apply",
                    w.err.text)) {
            st = run(plan, got);
            t_check(st == LOP_OK, "%s: %s", names[which], w.err.text);
            for (int i = 0; i < SIZE && st == LOP_OK; i++) {
                double want = what ? d[i] : d[i] * numbers[i];
                t_check(fabs(got[i] - want) <= 1e-9 * fabs(want), "%s: element %d is %g, want %g",
                        names[which], i, got[i], want);
            }
        }
        lop_plan_unref(plan);
        lop_node_unref(y);
    }
    lop_node_unref(x);
}

typedef struct price {
    double seconds;
    int64_t allocations;
} price;

static price one_chain(int which, int64_t terms) {
    double start = t_seconds();
    int64_t before = w.memory.count, alive = w.ctx.live, leaves;
    const lop_node *a = chain(which, terms, &leaves), *back = NULL;
    if (t_check(a != NULL, "%s: %s", names[which], w.err.text)) {
        char *text = lop_dump(a, 0), *again = NULL;
        t_check(text && lop_read(&w.ctx, text, &back, &w.err) == LOP_OK, "%s: %s", names[which],
                w.err.text);
        if (back) again = lop_dump(back, 0);
        t_check(text && again && !strcmp(text, again), "%s: reads back to something else",
                names[which]);
        lop_free(&w.ctx, text);
        lop_free(&w.ctx, again);
        use(which, a, terms);
    }
    lop_node_unref(a);
    lop_node_unref(back);
    lop_store_clear(&w.store);
    t_check(w.ctx.live == alive, "%s: %lld blocks lost", names[which],
            (long long)(w.ctx.live - alive));
    return (price){t_seconds() - start, w.memory.count - before};
}

static int64_t all_terms;

static void *on_little_stack(void *unused) {
    for (int which = 0; which < CHAINS; which++) {
        price quarter = one_chain(which, all_terms / 4), whole = one_chain(which, all_terms);
        t_check((double)whole.allocations <= 4.2 * (double)quarter.allocations + 200,
                "%s: %lld allocations, a quarter takes %lld", names[which],
                (long long)whole.allocations, (long long)quarter.allocations);
        t_check(whole.seconds <= 10 * quarter.seconds + 0.2, "%s: %.3f s, a quarter takes %.3f",
                names[which], whole.seconds, quarter.seconds);
        char line[64];
        snprintf(line, sizeof line, "%s (%.2f s)", names[which], whole.seconds);
        t_group(line);
    }
    return unused;
}

int main(int argc, char **argv) {
    pthread_t thread;
    pthread_attr_t attr;
    all_terms = (int64_t)t_number(argc, argv, 1, terms_asked);
    world_open(&w, 1);
    if (pthread_attr_init(&attr) != 0 || pthread_attr_setstacksize(&attr, 256 * 1024) != 0)
        return 2;
    if (pthread_create(&thread, &attr, on_little_stack, NULL) != 0) return 2;
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
    world_close(&w, "test_chains");
    t_group("memory");
    return t_end();
}
