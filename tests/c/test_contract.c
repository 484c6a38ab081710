/* test_contract.c [draws [seed]]: contractions against one loop over all labels: random axes,
 * strides (permuted, negative, zero, spread), repeated and broadcast labels, in all dtypes, each
 * way of lowering a pair forced in turn; their errors; every allocation failing. */
#include "support.h"

#include "contract/contract.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4, DIMS = 4, LABELS = 6, ROOM = 1 << 17, WAYS = 18 };

typedef struct problem {
    lop_spec spec;
    lop_axes operand[MOST], result;
    int64_t size[LABELS];
    const void *at[MOST]; /* the element (0, 0, ...) */
    int same[MOST];
    char *block[MOST + 1]; /* memory of operands, result */
    void *out;
} problem;

static world w;
static const lop_dtype dtypes[] = {LOP_f32, LOP_f64, LOP_c64, LOP_c128};

/* An array of these axes in memory of its own, its dimensions in any order there. */
static void *layout(lop_axes *x, lop_dtype dt, char **block, bool exact) {
    const int64_t size = (int64_t)lop_dtype_size(dt);
    int order[DIMS];
    int64_t stride = 1, first = 0;
    for (int i = 0; i < x->n; i++) order[i] = i;
    for (int i = x->n - 1; i > 0; i--) {
        const int j = (int)world_pick(&w, 0, i + 1), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
    for (int i = 0; i < x->n; i++) {
        const int d = order[i];
        const int64_t how = exact ? 4 : world_pick(&w, 0, 10);
        if (how == 0 || (how == 1 && i == 0)) stride *= 2; /* spread */
        x->stride[d] = stride;
        stride *= x->size[d] ? x->size[d] : 1;
        if (how == 2) {
            first += x->stride[d] * (x->size[d] ? x->size[d] - 1 : 0);
            x->stride[d] = -x->stride[d];
        } else if (how == 3 && !exact)
            x->stride[d] = 0;
    }
    *block = malloc((size_t)(stride + 1) * (size_t)size);
    for (int64_t i = 0; *block && i <= stride; i++) {
        const double re = lop_rng_normal(world_rng(&w)), im = lop_rng_normal(world_rng(&w));
        lop_set(dt, *block, i, lop_is_complex(dt) ? CMPLX(re, im) : re);
    }
    return *block ? *block + first * size : NULL;
}

static bool draw(problem *p, lop_dtype dt, bool large) {
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33, 40};
    const int labels = (int)world_pick(&w, 1, LABELS + 1);
    bool known[LABELS] = {false};
    double all = 1, out = 1;
    memset(p, 0, sizeof *p);
    for (int i = 0; i < labels; i++) {
        p->size[i] = sizes[world_pick(&w, 0, large ? 12 : 6)];
        if (world_pick(&w, 0, 60) == 0) p->size[i] = 0;
        all *= (double)p->size[i];
    }
    p->spec = (lop_spec){.dt = dt,
                         .noperand = (int)world_pick(&w, 1, MOST + 1),
                         .operand = p->operand,
                         .same = p->same,
                         .result = &p->result,
                         .most = INT64_MAX};
    for (int i = 0; i < p->spec.noperand; i++) {
        lop_axes *x = &p->operand[i];
        double count = 1;
        x->n = (int)world_pick(&w, 0, DIMS + 1);
        for (int j = 0; j < x->n; j++) {
            x->label[j] = (int)world_pick(&w, 0, labels);
            known[x->label[j]] = true;
            x->size[j] = world_pick(&w, 0, 12) ? p->size[x->label[j]] : 1;
            count *= (double)x->size[j];
        }
        if (count > ROOM) return false;
        p->same[i] = i;
    }
    for (int i = 0; i < LABELS; i++) { /* the size that the operands say */
        int64_t said = 1;
        for (int t = 0; t < p->spec.noperand; t++)
            for (int j = 0; j < p->operand[t].n; j++)
                if (p->operand[t].label[j] == i && p->operand[t].size[j] != 1)
                    said = p->operand[t].size[j];
        p->size[i] = said;
    }
    for (int i = 0; i < labels && p->result.n < DIMS; i++)
        if (known[i] && world_pick(&w, 0, 2)) {
            p->result.label[p->result.n] = i;
            p->result.size[p->result.n++] = p->size[i];
            out *= (double)p->size[i];
        }
    return all < 3e5 && out < ROOM;
}

static void open_memory(problem *p) {
    const int n = p->spec.noperand;
    for (int i = 0; i < n; i++) p->at[i] = layout(&p->operand[i], p->spec.dt, &p->block[i], false);
    if (n > 1 && world_pick(&w, 0, 3) == 0 && p->operand[0].n == p->operand[1].n) { /* one array */
        bool alike = true;
        for (int j = 0; j < p->operand[0].n; j++)
            alike = alike && p->operand[0].size[j] == p->operand[1].size[j];
        if (alike) {
            memcpy(p->operand[1].stride, p->operand[0].stride, sizeof p->operand[0].stride);
            p->at[1] = p->at[0];
            p->same[1] = 0;
        }
    }
    p->out = layout(&p->result, p->spec.dt, &p->block[n], true);
}
static void close_memory(problem *p) {
    for (int i = 0; i <= p->spec.noperand; i++) free(p->block[i]);
}

static int64_t offset(const lop_axes *x, const int64_t *at) {
    int64_t o = 0;
    for (int j = 0; j < x->n; j++)
        if (x->size[j] != 1) o += at[x->label[j]] * x->stride[j];
    return o;
}

/* sum[e], size[e] for each element of the result, by one loop over everything. */
static void plainly(const problem *p, double _Complex *sum, double *size, int64_t *count) {
    int64_t at[LABELS] = {0}, step[LABELS] = {0}, stride = 1;
    for (int j = p->result.n - 1; j >= 0; j--) {
        step[p->result.label[j]] = stride;
        stride *= p->result.size[j];
    }
    *count = stride;
    for (int64_t e = 0; e < stride; e++) sum[e] = size[e] = 0;
    for (int i = 0; i < LABELS; i++)
        if (p->size[i] == 0) return;
    for (;;) {
        double _Complex v = 1;
        double s = 1;
        int64_t e = 0;
        for (int i = 0; i < p->spec.noperand; i++) {
            const double _Complex x = lop_get(p->spec.dt, p->at[i], offset(&p->operand[i], at));
            v *= x;
            s *= cabs(x);
        }
        for (int i = 0; i < LABELS; i++) e += at[i] * step[i];
        sum[e] += v;
        size[e] += s;
        int i = LABELS - 1;
        for (; i >= 0; i--) {
            if (++at[i] < (p->size[i] ? p->size[i] : 1)) break;
            at[i] = 0;
        }
        if (i < 0) return;
    }
}

static bool agrees(const problem *p, const double _Complex *sum, const double *size) {
    int64_t at[LABELS] = {0};
    const lop_axes *r = &p->result;
    const double eps = p->spec.dt == LOP_f32 || p->spec.dt == LOP_c64 ? 6e-8 : 1.2e-16;
    double terms = 8;
    for (int i = 0; i < LABELS; i++) terms *= p->size[i] > 1 ? (double)p->size[i] : 1;
    for (int j = 0; j < r->n; j++)
        if (r->size[j] == 0) return true;
    for (int64_t e = 0;; e++) {
        const double _Complex got = lop_get(p->spec.dt, p->out, offset(r, at));
        if (!(cabs(got - sum[e]) <= 4 * eps * fmin(terms, 4096) * size[e] + 1e-37)) return false;
        int j = r->n - 1;
        for (; j >= 0; j--) {
            if (++at[r->label[j]] < r->size[j]) break;
            at[r->label[j]] = 0;
        }
        if (j < 0) return true;
    }
}

static void spoil(const problem *p) { /* what lies in the result counts for nothing */
    int64_t at[LABELS] = {0};
    const lop_axes *r = &p->result;
    for (int j = 0; j < r->n; j++)
        if (r->size[j] == 0) return;
    for (;;) {
        lop_set(p->spec.dt, p->out, offset(r, at), NAN);
        int j = r->n - 1;
        for (; j >= 0; j--) {
            if (++at[r->label[j]] < r->size[j]) break;
            at[r->label[j]] = 0;
        }
        if (j < 0) return;
    }
}

/* -- plans that are spoiled, each number in turn: what is checked of a plan says so */

static void unsound(const problem *p, lop_contraction *plan, int64_t *at, int64_t by,
                    const char *what, int step) {
    *at += by;
    t_check(lop_contract_check(&w.ctx, &p->spec, plan, &w.err) == LOP_INTERNAL,
            "%s of step %d is off by %lld: no fault", what, step, (long long)by);
    *at -= by;
}

static void spoil_step(const problem *p, lop_contraction *plan, int i) {
    lop_contract_step *s = &plan->step[i];
    const bool nest = s->how == LOP_BY_NEST;
    for (int j = 0; j < s->nloop; j++) {
        lop_loop *l = &plan->loop[s->first + j];
        if (l->size == 1 || (!l->c && !l->a && !l->b)) continue;
        unsound(p, plan, &l->size, 1, "a loop's size", i);
        unsound(p, plan, &l->size, -1, "a loop's size", i);
        unsound(p, plan, &l->c, 1, "a loop's stride of c", i);
        unsound(p, plan, &l->a, 1, "a loop's stride of a", i);
        if (s->b >= 0) unsound(p, plan, &l->b, -1, "a loop's stride of b", i);
        l->sum = !l->sum;
        t_check(lop_contract_check(&w.ctx, &p->spec, plan, &w.err) == LOP_INTERNAL,
                "a loop of step %d that is a sum or not", i);
        l->sum = !l->sum;
    }
    int64_t *const of[] = {&s->am, &s->cm, &s->bn, &s->cn, &s->ak, &s->bk}, *const size[] = {&s->m,
                                                                                             &s->n,
                                                                                             &s->k};
    for (int j = 0; !nest && j < 6; j++) {
        if (*size[j / 2] == 1) continue;
        unsound(p, plan, of[j], 1, "a stride of a matrix", i);
        unsound(p, plan, size[j / 2], -1, "a size of a matrix", i);
    }
    if (s->group) unsound(p, plan, &s->apart, 1, "the distance of groups", i);
}

static void spoiled_plans(const problem *p, lop_contraction *plan) {
    if (plan->zero) return;
    for (int i = 0; i < plan->nstep; i++) {
        spoil_step(p, plan, i);
        lop_contract_step *s = &plan->step[i];
        const int c = s->c;
        s->c = c == plan->noperand ? 0 : plan->noperand;
        t_check(lop_contract_check(&w.ctx, &p->spec, plan, &w.err) == LOP_INTERNAL,
                "step %d into another slot", i);
        s->c = c;
    }
    for (int i = plan->noperand + 1; i < plan->nslot; i++)
        unsound(p, plan, &plan->offset[i], 1, "a place", i);
    if (plan->workspace) unsound(p, plan, &plan->workspace, -64, "the workspace", -1);
    plan->nstep--;
    t_check(lop_contract_check(&w.ctx, &p->spec, plan, &w.err) == LOP_INTERNAL, "the last step");
    plan->step++;
    t_check(lop_contract_check(&w.ctx, &p->spec, plan, &w.err) == LOP_INTERNAL, "the first step");
    plan->step--;
    plan->nstep++;
    t_check(lop_contract_check(&w.ctx, &p->spec, plan, &w.err) == LOP_OK, "a sound plan");
}

/* By one way; with every allocation of the plan failing in turn where `failing`. */
static bool one_way(problem *p, int way, bool fails, const double _Complex *sum,
                    const double *size) {
    lop_contraction *plan = NULL;
    p->spec.force = way;
    for (int64_t i = 0; fails; i++) {
        const int64_t alive = w.ctx.live;
        w.memory = (failing){.fail_at = i};
        const lop_status st = lop_contract(&w.ctx, &p->spec, &plan, &w.err);
        w.memory.fail_at = -1;
        if (st == LOP_OK) break;
        if (!t_check(st == LOP_NOMEM && w.ctx.live == alive, "allocation %lld: status %s",
                     (long long)i, lop_status_name(st)))
            return false;
    }
    if (!plan && lop_contract(&w.ctx, &p->spec, &plan, &w.err) != LOP_OK) return false;
    if (fails) spoiled_plans(p, plan);
    void *room = aligned_alloc(64, (size_t)((plan->workspace + 64) & ~(int64_t)63));
    memset(room, 0xff, (size_t)plan->workspace); /* NaN */
    spoil(p);
    const lop_status st = lop_contract_run(plan, p->at, p->out, room, NULL, NULL);
    free(room);
    lop_contract_free(&w.ctx, plan);
    return st == LOP_OK && agrees(p, sum, size);
}

static void random_problems(int draws) {
    double _Complex *sum = malloc(ROOM * sizeof *sum);
    double *size = malloc(ROOM * sizeof *size);
    for (int t = 0; t < draws; t++) {
        problem p;
        int64_t count;
        while (!draw(&p, dtypes[t % 4], t % 3 == 0)) {}
        open_memory(&p);
        plainly(&p, sum, size, &count);
        for (int way = 0; way < WAYS; way++)
            t_check(
                one_way(&p, way + 32 * (t / 3 % 8), t % 16 == 0 && way == t / 16 % WAYS, sum, size),
                "problem %d, way %d, %d operands", t, way, p.spec.noperand);
        close_memory(&p);
    }
    free(sum);
    free(size);
    t_group("random contractions, each way");
}

/* -- orders: chains and stars of matrices, by every path */

static lop_axes matrix(int i, int j, int64_t m, int64_t n) {
    return (lop_axes){2, {i, j}, {m, n}, {n, 1}};
}

static void test_orders(void) {
    enum { N = 14 };
    lop_axes a[N], r;
    lop_contraction *plan = NULL;
    for (int n = 2; n <= N; n++) {
        for (int i = 0; i < n; i++) a[i] = matrix(i, i + 1, 20 + i % 3, 20 + (i + 1) % 3);
        r = matrix(0, n, 20, 20 + n % 3);
        const lop_spec spec = {
            .dt = LOP_f64, .noperand = n, .operand = a, .result = &r, .most = INT64_MAX};
        if (t_check(lop_contract(&w.ctx, &spec, &plan, &w.err) == LOP_OK, "a chain of %d", n))
            t_check(plan->flops < 2.1 * 22 * 22 * 22 * n, "a chain of %d: %g flops", n,
                    plan->flops);
        lop_contract_free(&w.ctx, plan);
        plan = NULL;
    }
    /* ij,jk,k->i: the vector first */
    lop_axes v[3] = {matrix(0, 1, 100, 100), matrix(1, 2, 100, 100), {1, {2}, {100}, {1}}};
    const lop_axes y = {1, {0}, {100}, {1}};
    lop_spec spec = {.dt = LOP_f64, .noperand = 3, .operand = v, .result = &y, .most = INT64_MAX};
    t_check(lop_contract(&w.ctx, &spec, &plan, &w.err) == LOP_OK && plan->flops < 5e4,
            "the vector first");
    lop_contract_free(&w.ctx, plan);
    plan = NULL;
    static const int path[] = {0, 1, 0, 1}, wrong[] = {0, 3, 0, 1};
    spec.path = path;
    spec.npath = 2;
    t_check(lop_contract(&w.ctx, &spec, &plan, &w.err) == LOP_OK && plan->flops > 1e6,
            "a path that is given is taken");
    lop_contract_free(&w.ctx, plan);
    spec.path = wrong;
    t_check(lop_contract(&w.ctx, &spec, &plan, &w.err) == LOP_DOMAIN, "a path beyond its end");
    spec.path = NULL;
    spec.most = 10;
    t_check(lop_contract(&w.ctx, &spec, &plan, &w.err) == LOP_LIMIT, "no memory for temporaries");
    t_group("orders");
}

static void test_errors(void) {
    lop_contraction *plan = NULL;
    lop_axes a[2] = {matrix(0, 1, 3, 4), matrix(1, 2, 5, 6)};
    lop_axes r = matrix(0, 2, 3, 6);
    lop_spec spec = {.dt = LOP_f64, .noperand = 2, .operand = a, .result = &r, .most = INT64_MAX};
    t_check(lop_contract(&w.ctx, &spec, &plan, &w.err) == LOP_DIM, "4 and 5");
    a[1] = matrix(1, 2, 4, 6);
    r.label[1] = 9;
    t_check(lop_contract(&w.ctx, &spec, &plan, &w.err) == LOP_DOMAIN, "a label of the result");
    r.label[1] = 0;
    t_check(lop_contract(&w.ctx, &spec, &plan, &w.err) == LOP_DOMAIN, "twice in the result");
    r = matrix(0, 2, 3, 7);
    t_check(lop_contract(&w.ctx, &spec, &plan, &w.err) == LOP_DIM, "the result's size");
    r = matrix(0, 2, 3, 6);
    spec.dt = LOP_i32;
    t_check(lop_contract(&w.ctx, &spec, &plan, &w.err) == LOP_DTYPE, "integers");
    spec.dt = LOP_f64;
    spec.noperand = 0;
    t_check(lop_contract(&w.ctx, &spec, &plan, &w.err) == LOP_DOMAIN, "no operands");
    const int64_t huge = (int64_t)1 << 40;
    a[0] = (lop_axes){2, {0, 1}, {huge, 2}, {0, 0}};
    a[1] = (lop_axes){2, {2, 3}, {huge, 2}, {0, 0}};
    lop_axes more[3] = {a[0], a[1], {4, {0, 1, 2, 3}, {huge, 2, huge, 2}, {0, 0, 0, 0}}};
    const lop_axes number = {0, {0}, {0}, {0}};
    static const int path[] = {0, 1, 0, 1};
    spec = (lop_spec){.dt = LOP_f64,
                      .noperand = 3,
                      .operand = more,
                      .result = &number,
                      .path = path,
                      .npath = 2,
                      .most = INT64_MAX};
    t_check(lop_contract(&w.ctx, &spec, &plan, &w.err) == LOP_OVERFLOW, "2^82 elements");
    t_check(plan == NULL, "no plan of an error");
    t_group("errors");
}

static bool at_once(void *user) {
    (void)user;
    return true;
}

static void test_stop(void) {
    enum { N = 700 };
    lop_contraction *plan = NULL;
    const lop_axes a[2] = {matrix(0, 1, N, N), matrix(1, 0, N, N)}, r = {1, {0}, {N}, {1}};
    const lop_spec spec = {
        .dt = LOP_f64, .noperand = 2, .operand = a, .result = &r, .most = INT64_MAX, .force = 17};
    double *x = calloc((size_t)N * N, sizeof *x), y[N];
    const void *at[2] = {x, x};
    if (t_check(lop_contract(&w.ctx, &spec, &plan, &w.err) == LOP_OK, "a nest"))
        for (int i = 0; i < plan->nstep; i++) plan->step[i].flops = 1e9;
    t_check(lop_contract_run(plan, at, y, NULL, at_once, NULL) == LOP_CALLBACK, "stopped");
    lop_contract_free(&w.ctx, plan);
    free(x);
    t_group("stopped");
}

/* -- windows: rows within each other, terms in groups; on either side, forwards and backwards */

/* y[m n] = a[m i j] b[i j n], a's rows `step` elements apart. */
static bool windows(problem *p, lop_dtype dt, const int64_t size[4], int64_t step, bool second) {
    const int64_t m = size[0], i = size[1], j = size[2], n = size[3],
                  apart = (m - 1) * llabs(step) + j, room = apart * i;
    memset(p, 0, sizeof *p);
    memcpy(p->size, size, 4 * sizeof *size);
    p->size[4] = p->size[5] = 1;
    p->operand[second] = (lop_axes){3, {0, 1, 2}, {m, i, j}, {step, apart, 1}};
    p->operand[!second] = (lop_axes){3, {1, 2, 3}, {i, j, n}, {j * n, n, 1}};
    p->result = (lop_axes){2, {0, 3}, {m, n}, {n, 1}};
    p->same[1] = 1;
    p->spec = (lop_spec){.dt = dt,
                         .noperand = 2,
                         .operand = p->operand,
                         .same = p->same,
                         .result = &p->result,
                         .most = INT64_MAX};
    const int64_t count[3] = {second ? i * j * n : room, second ? room : i * j * n, m * n};
    for (int t = 0; t < 3; t++) {
        p->block[t] = malloc((size_t)count[t] * lop_dtype_size(dt));
        for (int64_t e = 0; p->block[t] && e < count[t]; e++) {
            const double re = lop_rng_normal(world_rng(&w)), im = lop_rng_normal(world_rng(&w));
            lop_set(dt, p->block[t], e, lop_is_complex(dt) ? CMPLX(re, im) : re);
        }
        if (t < 2) p->at[t] = p->block[t];
    }
    if (step < 0) p->at[second] = p->block[second] + (m - 1) * -step * (int64_t)lop_dtype_size(dt);
    p->out = p->block[2];
    return p->block[0] && p->block[1] && p->block[2];
}

static void test_windows(int draws) {
    static const int64_t sizes[4][6] = {{2, 5, 15, 16, 17, 32},
                                        {2, 3, 5, 7, 2, 3},
                                        {2, 3, 15, 16, 17, 100},
                                        {2, 15, 16, 17, 32, 40}};
    double _Complex *sum = malloc(ROOM * sizeof *sum);
    double *value = malloc(ROOM * sizeof *value);
    int grouped = 0;
    for (int t = 0; t < draws; t++) {
        problem p;
        int64_t size[4], count;
        for (int i = 0; i < 4; i++) size[i] = sizes[i][world_pick(&w, 0, 6)];
        const int64_t step = world_pick(&w, 1, 4) * (t % 3 ? 1 : -1);
        if (!t_check(windows(&p, dtypes[t % 4], size, step, t / 4 % 2), "memory")) break;
        plainly(&p, sum, value, &count);
        lop_contraction *plan = NULL;
        if (lop_contract(&w.ctx, &p.spec, &plan, &w.err) == LOP_OK)
            for (int i = 0; i < plan->nstep; i++) grouped += plan->step[i].group > 0;
        lop_contract_free(&w.ctx, plan);
        t_check(one_way(&p, 0, false, sum, value), "windows %lld x (%lld x %lld) x %lld, step %lld",
                (long long)size[0], (long long)size[1], (long long)size[2], (long long)size[3],
                (long long)step);
        for (int i = 0; i < 3; i++) free(p.block[i]);
    }
    t_check(grouped > draws / 8, "groups of terms in %d of %d", grouped, draws);
    free(sum);
    free(value);
    t_group("windows");
}

int main(int argc, char **argv) {
    world_open(&w, (uint64_t)t_number(argc, argv, 2, 20261124));
    test_windows(240);
    random_problems((int)t_number(argc, argv, 1, 1500));
    test_orders();
    test_errors();
    test_stop();
    world_close(&w, "contractions");
    return t_end();
}
