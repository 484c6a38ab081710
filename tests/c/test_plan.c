/* test_plan.c: plans and their running: the workspace (no two live values overlap, little is used),
 * the order of Kron's factors, batches merged into columns, branches taken by one batch element,
 * derived values kept, dropped and made anew, what binding refuses, what an error says, two threads
 * on one plan. */
#include "gen.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static world w;

static lop_plan *planned(const lop_node *root) {
    lop_plan *plan = NULL;
    lop_status st =
        root ? lop_plan_make(&w.ctx, w.rules, &w.options, root, &plan, &w.err) : LOP_INTERNAL;
    t_check(st == LOP_OK, "no plan: %s", w.err.text);
    return plan;
}
static const lop_node *dense(lop_dtype dt, int64_t m, int64_t n) {
    return t_one_of(&w, "dense", NULL, t_array(&w, dt, 2, 2, (int64_t[]){m, n}));
}
static const lop_node *matrix(lop_dtype dt, int64_t m, int64_t n) {
    return t_array(&w, dt, 2, 2, (int64_t[]){m, n});
}

/* -- workspace */

static int base_of(const lop_plan *p, int slot) {
    while (p->slot[slot].alias >= 0) slot = p->slot[slot].alias;
    return slot;
}
static bool reads(const lop_plan *p, int step, int base) {
    const lop_step *s = &p->step[step];
    for (int j = 1; j < s->n; j++)
        if (base_of(p, s->arg[j]) == base) return true;
    return s->when >= 0 && base_of(p, s->when) == base;
}
static bool touches(const lop_plan *p, int step, int base) {
    const lop_step *s = &p->step[step];
    return reads(p, step, base) || base_of(p, s->arg[0]) == base ||
           (s->fail >= 0 && base_of(p, s->fail) == base) ||
           (s->escape >= 0 && base_of(p, s->escape) == base);
}

/* Life spans computed here; of two temporaries that are alive at one step none may overlap, but an
 * in-place step's output may be exactly its first input. */
static bool no_overlap(const lop_plan *p) {
    int *first = malloc((size_t)p->nslot * sizeof *first),
        *last = malloc((size_t)p->nslot * sizeof *last);
    if (!first || !last) abort();
    for (int i = 0; i < p->nslot; i++) {
        first[i] = last[i] = -1;
        for (int s = 0; s < p->nstep && p->slot[i].kind == LOP_S_TEMP && p->slot[i].alias < 0; s++)
            if (touches(p, s, i)) {
                if (first[i] < 0) first[i] = s;
                last[i] = s;
            }
    }
    bool ok = true;
    for (int i = 0; i < p->nslot; i++)
        for (int j = 0; j < i; j++) {
            const lop_slot *a = &p->slot[i], *b = &p->slot[j];
            if (first[i] < 0 || first[j] < 0 || first[i] > last[j] || first[j] > last[i]) continue;
            if (a->late != b->late) continue; /* workspace and reserves */
            if (a->onto != b->onto) continue; /* in a derived value's memory */
            int64_t na = a->matbytes * a->batch, nb = b->matbytes * b->batch;
            if (a->offset >= b->offset + nb || b->offset >= a->offset + na) continue;
            int born = first[i] > first[j] ? i : j, died = born == i ? j : i, at = first[born];
            const lop_step *s = &p->step[at];
            ok = ok && last[died] == at && first[born] == at && (s->flags & LOP_STEP_INPLACE) &&
                 base_of(p, s->arg[0]) == born && base_of(p, s->arg[1]) == died &&
                 a->offset == b->offset && na == nb;
        }
    free(first);
    free(last);
    return ok;
}

static void workspace(void) {
    for (int i = 0; i < 4000; i++) {
        gen g = {.w = &w,
                 .dtype = LOP_NO_DTYPE,
                 .solves = true,
                 .views = true,
                 .exprs = 3,
                 .largest = 4};
        if (i % 2) g.batch = (lop_shape){.ndim = 2, .dim = {2, 3}};
        const lop_node *root = gen_value(&g, 1 + i % 4);
        lop_plan *plan = root ? planned(root) : NULL;
        if (plan && !t_check(no_overlap(plan), "two live values overlap")) {
            char *text = lop_dump(root, 0);
            printf("    %s\n", text);
            lop_free(&w.ctx, text);
        }
        t_check(!plan || lop_plan_check(plan, LOP_PASS_PLACE, &w.err) == LOP_OK, "%s", w.err.text);
        lop_plan_unref(plan);
        lop_node_unref(root);
        world_leaves(&w);
    }
    /* ten products need two vectors, a sum of ten two as well */
    for (int which = 0; which < 2; which++) {
        const lop_node *a = dense(LOP_f64, 50, 50);
        for (int i = 0; i < 9; i++)
            a = t_two_of(&w, which ? "sum" : "prod", a, dense(LOP_f64, 50, 50));
        const lop_node *y = t_two_of(&w, "apply", a, matrix(LOP_f64, 50, 3));
        lop_plan *plan = planned(y);
        int64_t one = (50 * 3 * 8 + 63) / 64 * 64;
        t_check(plan && plan->workspace <= 2 * one,
                "a chain of %s takes %lld bytes, one vector is %lld", which ? "sums" : "products",
                plan ? (long long)plan->workspace : -1, (long long)one);
        lop_plan_unref(plan);
        lop_node_unref(y);
        world_leaves(&w);
    }
    t_group("workspace");
}

/* A plan that has been tampered with is found. */
static void checked(void) {
    const lop_node *y =
        t_two_of(&w, "apply", t_two_of(&w, "prod", dense(LOP_f64, 5, 5), dense(LOP_f64, 5, 5)),
                 matrix(LOP_f64, 5, 2));
    lop_plan *plan = planned(y);
    if (!plan) return;
    t_check(lop_plan_check(plan, LOP_PASS_PLACE, &w.err) == LOP_OK && plan->nstep == 2,
            "two steps");
    lop_step s = plan->step[0];
    plan->step[0] = plan->step[1];
    t_check(lop_plan_check(plan, LOP_PASS_PLACE, &w.err) == LOP_INTERNAL, "reads before writes");
    plan->step[0] = s;
    int out = plan->step[0].arg[0];
    plan->step[0].arg[0] = plan->leaf[0].slot;
    t_check(lop_plan_check(plan, LOP_PASS_PLACE, &w.err) == LOP_INTERNAL, "writes a leaf");
    plan->step[0].arg[0] = out;
    plan->slot[out].offset = plan->workspace;
    t_check(lop_plan_check(plan, LOP_PASS_PLACE, &w.err) == LOP_INTERNAL, "lies outside");
    plan->slot[out].offset = 0;
    plan->step[0].when = plan->out;
    t_check(lop_plan_check(plan, LOP_PASS_PLACE, &w.err) == LOP_INTERNAL,
            "branches on what is not written");
    lop_plan_unref(plan);
    lop_node_unref(y);
    world_leaves(&w);
    t_group("lop_plan_check");
}

/* -- Kron */

static double order_cost(const int64_t *m, const int64_t *n, const int *order, int64_t k) {
    bool done[3] = {false, false, false};
    double total = 0;
    for (int step = 0; step < 3; step++) {
        int f = order[step];
        double columns = (double)k;
        for (int i = 0; i < 3; i++)
            if (i != f) columns *= (double)(done[i] ? m[i] : n[i]);
        total += 2 * (double)m[f] * (double)n[f] * columns;
        done[f] = true;
    }
    return total;
}

static void kron_order(void) {
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    static const int64_t pool[] = {1, 2, 3, 5, 17, 100, 0};
    for (int i = 0; i < 400; i++) {
        int64_t m[3], n[3], k = world_pick(&w, 1, 5);
        const lop_dtype dt = i / 10 % 2 ? LOP_f64 : LOP_i64; /* in one step; one by one */
        const lop_node *f[3];
        for (int j = 0; j < 3; j++) {
            m[j] = pool[world_pick(&w, 0, i % 10 ? 6 : 7)];
            n[j] = pool[world_pick(&w, 0, i % 10 ? 6 : 7)];
            f[j] = dense(dt, m[j], n[j]);
        }
        const lop_node *a = t_node(&w, "kron", NULL, 3, f),
                       *y = t_two_of(&w, "apply", a, matrix(dt, n[0] * n[1] * n[2], k));
        for (int j = 0; j < 3; j++) lop_node_unref(f[j]);
        lop_plan *plan = planned(y);
        double best = INFINITY;
        for (int o = 0; o < 6; o++) best = fmin(best, order_cost(m, n, orders[o], k));
        t_check(plan && plan->flops <= best * (1 + 1e-12),
                "kron of %lldx%lld, %lldx%lld, %lldx%lld takes %g flops, the best order %g",
                (long long)m[0], (long long)n[0], (long long)m[1], (long long)n[1], (long long)m[2],
                (long long)n[2], plan ? plan->flops : -1, best);
        lop_plan_unref(plan);
        lop_node_unref(y);
        world_leaves(&w);
    }
    t_group("order of Kron's factors");
}

/* -- batches */

static int calls;
static lop_run real_run;
static lop_status counting(const lop_call *c) {
    calls += 1 + (int)c->more; /* a step may take several batch elements in one call */
    return real_run(c);
}

/* How often the only step of op @ x runs, and is the result right? */
static int runs(const lop_node *op, const lop_node *x, int layout) {
    const lop_node *y = t_two_of(&w, "apply", op, x);
    lop_plan *plan = planned(y);
    placed out;
    char why[300] = "";
    calls = 0;
    if (!plan) return -1;
    real_run = plan->step[0].run;
    plan->step[0].run = counting;
    lop_status st = t_exec(&w, plan, layout, &out, NULL);
    ip p;
    ip_open(&p, &w.rand, LOP_f64, false);
    const tv *want = ip_eval(&p, y);
    t_check(st == LOP_OK && want && tv_close(want, &out.buf, 100, why, sizeof why),
            "a batch: %s %s", w.err.text, why);
    ip_close(&p);
    placed_free(&out);
    lop_plan_unref(plan);
    lop_node_unref(y);
    world_leaves(&w);
    return calls;
}

static void batches(void) {
    for (int layout = 0; layout < LAYOUTS; layout++) {
        bool plain = layout < 2; /* elsewhere the vectors lie apart or backwards */
        int n =
            runs(dense(LOP_f64, 6, 5), t_array(&w, LOP_f64, 2, 3, (int64_t[]){7, 5, 1}), layout);
        t_check(plain ? n == 1 : n == 1 || n == 7, "7 vectors: %d runs (layout %d)", n, layout);
        n = runs(dense(LOP_f64, 6, 5), t_array(&w, LOP_f64, 2, 4, (int64_t[]){3, 7, 5, 1}), layout);
        t_check(plain ? n == 3 : n == 3 || n == 21, "3 x 7 vectors: %d runs (layout %d)", n,
                layout);
        n = runs(dense(LOP_f64, 6, 5), t_array(&w, LOP_f64, 2, 3, (int64_t[]){7, 5, 2}), layout);
        t_check(n == 7, "7 matrices: %d runs", n);
        const lop_node *many =
            t_one_of(&w, "dense", NULL, t_array(&w, LOP_f64, 2, 3, (int64_t[]){7, 6, 5}));
        n = runs(many, t_array(&w, LOP_f64, 2, 3, (int64_t[]){7, 5, 1}), layout);
        t_check(n == 7, "7 operators: %d runs", n);
        many = t_one_of(&w, "dense", NULL, t_array(&w, LOP_f64, 2, 4, (int64_t[]){2, 1, 6, 5}));
        n = runs(many, t_array(&w, LOP_f64, 2, 3, (int64_t[]){7, 5, 3}), layout);
        t_check(n == 14, "2 x 7 by broadcast: %d runs", n);
        many = t_one_of(&w, "dense", NULL, t_array(&w, LOP_f64, 2, 4, (int64_t[]){2, 1, 6, 5}));
        n = runs(many, t_array(&w, LOP_f64, 2, 3, (int64_t[]){7, 5, 1}), layout);
        t_check(plain ? n == 2 : n == 2 || n == 14,
                "2 x 7 vectors by broadcast: %d runs (layout %d)", n, layout);
        many = t_one_of(&w, "diag", NULL, t_array(&w, LOP_f64, 1, 2, (int64_t[]){0, 5}));
        n = runs(many, matrix(LOP_f64, 5, 3), layout);
        t_check(n == 0, "no operators: %d runs", n);
    }
    t_group("batches");
}

/* -- derived values */

static const lop_node *toeplitz_product(int64_t n) {
    const lop_node *a = NULL;
    if (t_op("toeplitz")->random(&w.rand, n, n, LOP_f64, &a) != LOP_OK) return NULL;
    return t_two_of(&w, "apply", a, matrix(LOP_f64, n, 1));
}

/* Runs and compares; whether the derived value was made (1) or served again (0). */
static int64_t made(lop_plan *plan, const lop_node *y) {
    uint64_t misses = w.store.misses, hits = w.store.hits;
    placed out;
    char why[300] = "";
    ip p;
    lop_status st = t_exec(&w, plan, 0, &out, NULL);
    ip_open(&p, &w.rand, LOP_f64, true);
    t_check(st == LOP_OK && tv_close(ip_eval(&p, y), &out.buf, 200, why, sizeof why),
            "derived: %s %s", w.err.text, why);
    ip_close(&p);
    placed_free(&out);
    t_check(w.store.misses + w.store.hits == misses + hits + 1, "one derived value was asked for");
    return (int64_t)(w.store.misses - misses);
}

static void freshness(void) {
    w.options.fft_min = 2;
    lop_store_clear(&w.store);
    for (int which = 0; which < 3; which++) {
        const lop_node *y = which == 0 ? toeplitz_product(40)
                            : which == 1
                                ? t_two_of(&w, "solve", dense(LOP_f64, 6, 6), matrix(LOP_f64, 6, 2))
                                : t_two_of(&w, "solve", t_stack(&w, 0), matrix(LOP_f64, 4, 2));
        lop_plan *plan = planned(y);
        if (!plan) continue;
        double *content = lop_rand_find(&w.rand, plan->leaf[0].serial)->p;
        t_check(made(plan, y) == 1 && made(plan, y) == 0 && made(plan, y) == 0, "made once (%d)",
                which);
        content[5] += 1;
        t_check(made(plan, y) == 1 && made(plan, y) == 0, "made anew after a write (%d)", which);
        content[5] = -0.0;
        (void)made(plan, y);
        content[5] = 0.0;
        t_check(made(plan, y) == 1, "the sign of zero is content (%d)", which);
        t_check(w.store.n == (which ? 2 : 1), "the older value went (%d)", which);
        lop_store_clear(&w.store);
        t_check(made(plan, y) == 1, "an emptied store (%d)", which);
        lop_plan *again = planned(y);
        t_check(again && made(again, y) == 0, "another plan of the same shares it (%d)", which);
        lop_plan_unref(again);
        lop_plan_unref(plan);
        lop_node_unref(y);
    }
    world_leaves(&w);
    lop_store_clear(&w.store);
    t_group("freshness");
}

static void store_limit(void) {
    enum { PLANS = 4 };
    const lop_node *y[PLANS];
    lop_plan *plan[PLANS];
    int64_t limit = w.store.limit, most = 0;
    w.options.fft_min = 2;
    for (int i = 0; i < PLANS; i++) plan[i] = planned(y[i] = toeplitz_product(64));
    (void)made(plan[0], y[0]);
    int64_t one = w.store.bytes;
    t_check(one > 0 && w.store.n == 1, "one value, %lld bytes", (long long)one);
    w.store.limit = 3 * one + one / 2;
    for (int i = 1; i < PLANS; i++) {
        t_check(made(plan[i], y[i]) == 1, "value %d is new", i);
        if (w.store.bytes > most) most = w.store.bytes;
        if (i == 2) (void)made(plan[0], y[0]); /* used again: 1 is the oldest now */
    }
    t_check(most <= w.store.limit && w.store.n == 3, "%lld bytes in %d values", (long long)most,
            w.store.n);
    t_check(made(plan[0], y[0]) == 0 && made(plan[2], y[2]) == 0 && made(plan[3], y[3]) == 0,
            "the younger three are there");
    t_check(made(plan[1], y[1]) == 1, "the least recently used went");
    lop_store_bound(&w.store, 2 * one + one / 2);
    t_check(w.store.n == 2, "a lower bound drops what is above it: %d stay", w.store.n);
    lop_store_bound(&w.store, 9 * one);
    t_check(w.store.n == 2 && made(plan[1], y[1]) == 0, "a higher one drops nothing");
    lop_store_bound(&w.store, one / 2);
    t_check(w.store.n == 0, "nothing fits: %d stay", w.store.n);
    t_check(made(plan[0], y[0]) == 1, "too large to keep: runs all the same");
    lop_store_bound(&w.store, 9 * one);
    (void)made(plan[0], y[0]);
    lop_blob *held = w.store.newest;
    held->owner = 7;
    w.store.bytes -= held->bytes;
    w.store.held += held->bytes;
    (void)made(plan[1], y[1]);
    lop_store_bound(&w.store, one / 2);
    t_check(w.store.n == 1 && lop_store_owned(&w.store, 7) == one, "what has an owner stays");
    lop_store_release(&w.store, 7);
    t_check(w.store.n == 0 && w.store.held == 0, "until it is released");
    lop_store_clear(&w.store);
    w.store.limit = limit;
    w.options.fft_min = 0;
    for (int i = 0; i < PLANS; i++) {
        lop_plan_unref(plan[i]);
        lop_node_unref(y[i]);
    }
    world_leaves(&w);
    t_group("the store's bound");
}

/* -- binding and errors */

static void binding(void) {
    lop_attr at = t_ints(4, 0, LOP_f64, 0);
    const lop_node *index = t_array(&w, LOP_i64, 1, 1, (int64_t[]){3});
    int64_t *ix = lop_rand_find(&w.rand, index->serial)->p;
    const lop_node *y =
        t_two_of(&w, "apply", t_one_of(&w, "selection", &at, index), matrix(LOP_f64, 4, 2));
    lop_plan *plan = planned(y);
    lop_frame frame;
    placed out;
    lop_buf b = *lop_rand_find(&w.rand, plan->leaf[0].serial);
    ix[0] = 0, ix[1] = -1, ix[2] = 3;
    t_check(t_exec(&w, plan, 0, &out, NULL) == LOP_OK, "good indices: %s", w.err.text);
    placed_free(&out);
    for (int bad = 0; bad < 4; bad++) {
        static const int64_t far[] = {4, -5, INT64_MAX, INT64_MIN};
        ix[1] = far[bad];
        char number[40];
        snprintf(number, sizeof number, "%lld", (long long)far[bad]);
        t_check(t_exec(&w, plan, 0, &out, NULL) == LOP_INDEX && w.err.step == 0 &&
                    strstr(w.err.text, number),
                "bad index: %s", w.err.text);
        placed_free(&out);
    }
    t_check(lop_frame_open(&frame, plan, NULL, NULL, &w.err) == LOP_OK, "a frame without a store");
    lop_buf wrong = b;
    wrong.dt = b.dt == LOP_i64 ? LOP_i32 : LOP_f32;
    t_check(lop_frame_bind(&frame, 0, &wrong, &w.err) == LOP_DTYPE, "another dtype");
    wrong = b;
    wrong.shape.dim[0]++;
    t_check(lop_frame_bind(&frame, 0, &wrong, &w.err) == LOP_DIM, "another shape");
    wrong = b;
    wrong.shape.ndim++;
    wrong.shape.dim[b.shape.ndim] = 1;
    t_check(lop_frame_bind(&frame, 0, &wrong, &w.err) == LOP_DIM, "another number of dimensions");
    lop_frame_close(&frame);
    lop_plan_unref(plan);
    lop_node_unref(y);
    world_leaves(&w);
    /* Kron sees its operand folded: it must lie in C order, and so must the result */
    const lop_node *f[2] = {dense(LOP_f64, 2, 2), dense(LOP_f64, 3, 3)};
    y = t_two_of(&w, "apply", t_node(&w, "kron", NULL, 2, f), matrix(LOP_f64, 6, 2));
    plan = planned(y);
    bool leaf = false;
    for (int i = 0; i < plan->nleaf; i++) {
        const lop_slot *s = &plan->slot[plan->leaf[i].slot];
        if (!s->need_c) continue;
        leaf = true;
        placed p =
            place_array(lop_rand_find(&w.rand, plan->leaf[i].serial), s->dt, s->core, &s->shape, 1);
        t_check(lop_frame_open(&frame, plan, NULL, NULL, &w.err) == LOP_OK, "%s", w.err.text);
        t_check(lop_frame_bind(&frame, i, &p.buf, &w.err) == LOP_INTERNAL,
                "Fortran order where C is needed");
        lop_frame_close(&frame);
        placed_free(&p);
    }
    t_check(leaf, "Kron's operand is wanted in C order");
    lop_plan_unref(plan);
    lop_node_unref(y);
    for (int i = 0; i < 2; i++) lop_node_unref(f[i]);
    world_leaves(&w);
    t_group("binding");
}

static void limits(void) {
    static const char *const texts[] = {
        "(todense:0,0,0,0 (zeros:float64[4611686018427387904,4611686018427387904]))",
        "(apply (diag (array:float64[0,4611686018427387904]#1/1)) "
        "(array:float64[4611686018427387904,4]#2))",
        "(apply (toeplitz (array:float64[4611686018427387904]#1/1) "
        "(array:float64[4611686018427387904]#2/1)) "
        "(array:float64[4611686018427387904,0]#3))",
        "(apply (kron (zeros:float64[1,3037000500]) (zeros:float64[3037000500,1])) "
        "(array:float64[3037000500,3037000500]#1))",
        "(apply (power:1000000000 (toeplitz (array:float64[4000000]#1/1) "
        "(array:float64[4000000]#2/1))) (array:float64[4000000,1]#3))"};
    for (int i = 0; i < 5; i++) {
        const lop_node *y = NULL;
        lop_plan *plan = NULL;
        int64_t alive = w.ctx.live;
        lop_status st = lop_read(&w.ctx, texts[i], &y, &w.err);
        if (st == LOP_OK) st = lop_plan_make(&w.ctx, w.rules, &w.options, y, &plan, &w.err);
        t_check(st == LOP_OVERFLOW || st == LOP_LIMIT, "%s: status %s: %s", texts[i],
                lop_status_name(st), w.err.text);
        lop_plan_unref(plan);
        lop_node_unref(y);
        t_check(w.ctx.live == alive, "%s leaves something behind", texts[i]);
    }
    t_group("sizes beyond memory");
}

/* -- threads */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
enum { THREADS = 4, TURNS = 200, SIZE = 64 };

typedef struct job {
    const lop_plan *plan;
    double result[SIZE];
    int bad;
} job;

static void *work(void *arg) {
    job *j = arg;
    double first[SIZE];
    for (int turn = 0; turn < TURNS; turn++) {
        lop_frame f;
        lop_err err = {.step = -1};
        lop_shape s = {.ndim = 2, .dim = {SIZE, 1}};
        lop_buf out = {.p = j->result, .dt = LOP_f64, .shape = s, .stride = {1, 1}};
        pthread_mutex_lock(&lock);
        lop_status st = lop_frame_open(&f, j->plan, NULL, &w.store, &err);
        for (int i = 0; i < j->plan->nleaf && st == LOP_OK; i++)
            st = lop_frame_bind(&f, i, lop_rand_find(&w.rand, j->plan->leaf[i].serial), &err);
        if (st == LOP_OK) st = lop_frame_bind(&f, j->plan->nleaf, &out, &err);
        pthread_mutex_unlock(&lock);
        if (st == LOP_OK) st = lop_exec(&f, &err);
        pthread_mutex_lock(&lock);
        lop_frame_close(&f);
        if (turn % 20 == 7) lop_store_clear(&w.store);
        pthread_mutex_unlock(&lock);
        if (turn == 0) memcpy(first, j->result, sizeof first);
        j->bad += st != LOP_OK || memcmp(first, j->result, sizeof first) != 0;
    }
    return NULL;
}

static void threads(void) {
    w.options.fft_min = 2;
    const lop_node *a = NULL;
    if (t_op("toeplitz")->random(&w.rand, SIZE, SIZE, LOP_f64, &a) != LOP_OK) return;
    const lop_node *x = t_two_of(&w, "solve", dense(LOP_f64, SIZE, SIZE), matrix(LOP_f64, SIZE, 1)),
                   *y = t_two_of(&w, "apply", a, x);
    lop_plan *plan = planned(y);
    pthread_t thread[THREADS];
    job *jobs = calloc(THREADS, sizeof *jobs);
    if (!jobs || !plan) abort();
    for (int i = 0; i < THREADS; i++) {
        jobs[i].plan = plan;
        if (pthread_create(&thread[i], NULL, work, &jobs[i]) != 0) abort();
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        t_check(jobs[i].bad == 0, "thread %d: %d bad turns", i, jobs[i].bad);
        t_check(!memcmp(jobs[i].result, jobs[0].result, sizeof jobs[0].result),
                "thread %d has other bits", i);
    }
    free(jobs);
    lop_plan_unref(plan);
    lop_node_unref(y);
    w.options.fft_min = 0;
    world_leaves(&w);
    t_group("threads on one plan");
}

int main(int argc, char **argv) {
    world_open(&w, (uint64_t)t_number(argc, argv, 1, 17));
    workspace();
    checked();
    kron_order();
    batches();
    freshness();
    store_limit();
    binding();
    limits();
    threads();
    world_close(&w, "test_plan");
    t_group("memory");
    return t_end();
}
