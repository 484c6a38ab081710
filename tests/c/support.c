/* support.c: see support.h. Everything random follows from a world's seed. */
#include "support.h"

#include "record.h"

#include "ops/shared/sparse_solver.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* -- counting */

static int64_t passed, failed, group_passed, group_failed;
static double group_start; /* CPU seconds */

bool t_check(bool ok, const char *format, ...) {
    if (ok) {
        group_passed++;
        return true;
    }
    if (group_failed++ < (getenv("LOP_TEST_VERBOSE") ? 1000000 : 8)) {
        va_list args;
        va_start(args, format);
        printf("  FAILED ");
        vprintf(format, args);
        printf("\n");
        va_end(args);
    }
    if (getenv("LOP_TEST_STOP")) exit(1); /* planted faults: one that shows is enough */
    return false;
}

double t_seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }

void t_group(const char *name) {
    printf("%-28s %9lld checks %6.1f s  %s\n", name, (long long)(group_passed + group_failed),
           t_seconds() - group_start, group_failed ? "FAILED" : "ok");
    fflush(stdout);
    group_start = t_seconds();
    passed += group_passed;
    failed += group_failed;
    group_passed = group_failed = 0;
}

int t_end(void) {
    if (group_passed + group_failed) t_group("the rest");
    printf("%lld passed, %lld failed\n", (long long)passed, (long long)failed);
    return failed ? 1 : 0;
}

double t_number(int argc, char **argv, int i, double fallback) {
    return i < argc ? strtod(argv[i], NULL) : fallback;
}

/* -- the world */

static bool refused(failing *f) {
    int64_t i = f->count++;
    return f->fail_at >= 0 && (f->all ? i >= f->fail_at : i == f->fail_at);
}
/* Memory of a long-lived process: zeros, ones, small numbers, bytes that are set or not, NaN. */
static void *soiled(failing *f, void *at, size_t bytes) {
    static const unsigned char word[8][8] = {{0},
                                             {0},
                                             {0, 0, 0, 0, 0, 0, 0xf0, 0x3f},
                                             {0, 0, 0, 0, 0, 0, 0xf8, 0x3f},
                                             {3, 1, 4, 1, 0, 9, 0xf2, 0xbf},
                                             {0, 0, 0, 0x40, 0, 0, 0, 0x40},
                                             {1, 0, 0, 1, 0, 1},
                                             {0, 0, 0, 0, 0, 0, 0xf8, 0x7f}};
    uint64_t seed = (uint64_t)f->count;
    unsigned char *p = at;
    const size_t end = bytes < 1 << 16 ? bytes : 1 << 16;
    for (size_t i = 0; p && i < end; i += 8) {
        seed = seed * 0x9e3779b97f4a7c15u + 0x632be59bd9b4e019u;
        memcpy(p + i, word[seed >> 61], end - i < 8 ? end - i : 8);
    }
    return p;
}
static void *hook_alloc(void *user, size_t bytes) {
    return refused(user) ? NULL : soiled(user, malloc(bytes), bytes);
}
static void *hook_realloc(void *user, void *block, size_t bytes) {
    return refused(user) ? NULL : realloc(block, bytes);
}
static void hook_free(void *user, void *block) {
    (void)user;
    free(block);
}

void world_open(world *w, uint64_t seed) {
    memset(w, 0, sizeof *w);
    w->memory.fail_at = -1;
    lop_hooks hooks = {hook_alloc, hook_realloc, hook_free, &w->memory};
    lop_ctx_init(&w->ctx, &hooks);
    w->ctx.check_plans = true; /* in release builds too */
    w->options.fft = true;
    lop_status st = lop_kinds_check(&w->err);
    if (st == LOP_OK)
        st = lop_rules_new(&w->ctx, lop_rule_table, lop_rule_count, &w->rules, &w->err);
    if (!t_check(st == LOP_OK, "start: %s", w->err.text)) exit(t_end());
    lop_store_init(&w->store, &w->ctx, 1 << 24);
    lop_rand_init(&w->rand, &w->ctx, seed, &w->err);
}

/* A sparse solver that makes a factor and then declines: the fallback branch serves. */
static bool always(const lop_sparse *own) {
    (void)own;
    return true;
}
static lop_status decline(const lop_sparse *own, const lop_call *c, lop_asked what) {
    (void)own;
    if (what != LOP_SPARSE_FACTOR) return LOP_SINGULAR;
    lop_foreign *f = c->a[0]->p;
    t_check(!f->object && !f->release, "a foreign value that is not zeroed");
    *f = (lop_foreign){malloc(8), 8, free};
    return f->object ? LOP_OK : LOP_NOMEM;
}
void world_sparse(world *w) {
    static const lop_sparse declining = {
        .ready = always, .run = decline, .name = "outside", .fewest = 1};
    w->ctx.sparse = &declining;
}

void world_leaves(world *w) {
    lop_rng rng = w->rand.rng;
    lop_rand_clear(&w->rand);
    lop_rand_init(&w->rand, &w->ctx, rng.state, &w->err);
}

void world_close(world *w, const char *who) {
    lop_rand_clear(&w->rand);
    lop_store_clear(&w->store);
    lop_rules_free(w->rules);
    t_check(w->ctx.live == 0, "%s: %lld blocks are alive", who, (long long)w->ctx.live);
}

lop_rng *world_rng(world *w) { return &w->rand.rng; }
int64_t world_pick(world *w, int64_t lo, int64_t hi) { return lop_rng_range(&w->rand.rng, lo, hi); }

const lop_op *t_op(const char *name) { return lop_op_find(name, strlen(name)); }
lop_attr t_ints(int64_t a, int64_t b, int64_t c, int64_t d) {
    return (lop_attr){.i = {a, b, c, d}};
}

const lop_node *t_node(world *w, const char *op, const lop_attr *attr, int n,
                       const lop_node *const *child) {
    const lop_node *out = NULL;
    for (int i = 0; i < n; i++)
        if (!child[i]) return NULL;
    if (lop_node_make(&w->ctx, t_op(op), attr, n, child, NULL, &out, &w->err) != LOP_OK)
        return NULL;
    return out;
}
const lop_node *t_one(world *w, const char *op, const lop_attr *attr, const lop_node *a) {
    return t_node(w, op, attr, 1, &a);
}
const lop_node *t_two(world *w, const char *op, const lop_node *a, const lop_node *b) {
    const lop_node *child[2] = {a, b};
    return t_node(w, op, NULL, 2, child);
}
const lop_node *t_one_of(world *w, const char *op, const lop_attr *attr, const lop_node *a) {
    const lop_node *out = t_one(w, op, attr, a);
    lop_node_unref(a);
    return out;
}
const lop_node *t_two_of(world *w, const char *op, const lop_node *a, const lop_node *b) {
    const lop_node *out = t_two(w, op, a, b);
    lop_node_unref(a);
    lop_node_unref(b);
    return out;
}
const lop_node *t_array(world *w, lop_dtype dt, int core, int ndim, const int64_t *dim) {
    const lop_node *out = NULL;
    lop_shape s = lop_shape_of(ndim, dim);
    return lop_rand_array(&w->rand, dt, core, &s, &out) == LOP_OK ? out : NULL;
}

/* -- memory layouts */

enum { POISON = 0xff, GUARD = 64 };

/* Strides by giving each dimension its turn, the first in `order` innermost. */
static void strides_of(lop_buf *b, int core, int layout) {
    int nd = b->shape.ndim, nb = nd - core, order[LOP_MAXDIM], n = 0;
    bool f = layout == 1 || layout == 3 || (layout == 4 && core < 2),
         pad = layout == 2 || layout == 3;
    for (int i = 0; i < core; i++) order[n++] = f ? nb + i : nd - 1 - i;
    if (layout == 4 && core < 2) n = 0;
    for (int i = 0; i < nb; i++) order[n++] = layout == 4 ? i : nb - 1 - i;
    if (layout == 4 && core == 1) order[n++] = nb;
    int64_t stride = pad && core == 1 ? 2 : 1;
    for (int i = 0; i < nd; i++) {
        int64_t d = b->shape.dim[order[i]];
        b->stride[order[i]] = stride;
        stride *= (d ? d : 1) + (pad && i == 0 ? 3 : 0);
    }
}

typedef struct steps { /* walks an array of any strides in C order */
    int64_t at[LOP_MAXDIM], offset;
} steps;
static void step_on(steps *s, const lop_buf *b) {
    for (int d = b->shape.ndim - 1; d >= 0; d--) {
        s->offset += b->stride[d];
        if (++s->at[d] < b->shape.dim[d]) return;
        s->offset -= s->at[d] * b->stride[d];
        s->at[d] = 0;
    }
}
static int64_t count_of(const lop_shape *s) {
    int64_t n = 1;
    for (int i = 0; i < s->ndim; i++) n *= s->dim[i];
    return n;
}

placed place_array(const lop_buf *from, lop_dtype dt, int core, const lop_shape *shape,
                   int layout) {
    placed a = {.buf = {.dt = dt, .shape = *shape}};
    size_t size = lop_dtype_size(dt),
           odd = layout == 2 || layout == 3 ? lop_dtype_size(lop_dtype_real(dt)) : 0;
    int64_t span = 1, low = 0, count = count_of(shape);
    strides_of(&a.buf, core, layout);
    for (int i = 0; i < shape->ndim; i++) {
        int64_t reach = shape->dim[i] > 1 ? (shape->dim[i] - 1) * a.buf.stride[i] : 0;
        span += reach;
        if (layout == 5 && i < shape->ndim - core) {
            a.buf.stride[i] = -a.buf.stride[i];
            low += reach;
        }
    }
    a.bytes = 2 * GUARD + odd + (size_t)span * size;
    a.block = aligned_alloc(64, (a.bytes + 63) & ~(size_t)63);
    if (!a.block) abort();
    memset(a.block, POISON, a.bytes);
    a.buf.p = a.block + GUARD + odd + (size_t)low * size;
    steps to = {.offset = 0};
    for (int64_t i = 0; from && i < count; i++) {
        memcpy((char *)a.buf.p + to.offset * (int64_t)size,
               (const char *)from->p + i * (int64_t)size, size);
        step_on(&to, &a.buf);
    }
    return a;
}

bool placed_intact(const placed *a) {
    size_t size = lop_dtype_size(a->buf.dt);
    unsigned char *mine = calloc(1, a->bytes);
    if (!mine) abort();
    steps to = {.offset = 0};
    for (int64_t i = 0; i < count_of(&a->buf.shape); i++) {
        memset(mine + ((unsigned char *)a->buf.p - a->block) + to.offset * (int64_t)size, 1, size);
        step_on(&to, &a->buf);
    }
    bool ok = true;
    for (size_t i = 0; i < a->bytes; i++) ok = ok && (mine[i] || a->block[i] == POISON);
    free(mine);
    return ok;
}

void placed_free(placed *a) {
    free(a->block);
    a->block = NULL;
}

const lop_node *t_stack(world *w, int kind) {
    const lop_node *a = t_array(w, LOP_f64, 2, 3, (int64_t[]){3, 4, 4});
    double *p = lop_rand_find(&w->rand, a->serial)->p;
    for (int e = 0; e < 3; e++)
        for (int i = 0; i < 4; i++)
            for (int j = 0; j <= i; j++) {
                double v = i == j ? 5 : 0.5 * p[e * 16 + i * 4 + j];
                if (e == 1 && kind == 1 && i == j) v = i == 2 ? -5 : 5;
                if (e == 1 && kind == 2) v = 1;
                p[e * 16 + i * 4 + j] = p[e * 16 + j * 4 + i] = v;
            }
    lop_attr pos = t_ints(LOP_ASSUME_POSITIVE, 0, 0, 0);
    return t_one_of(w, "dense", &pos, a);
}

/* -- running */

/* The leaf's memory in the layout asked for, but in C order where the plan says so. */
static lop_status bind_leaf(world *w, lop_frame *f, int i, int layout, placed *a) {
    const lop_plan *p = f->plan;
    const lop_buf *from = lop_rand_find(&w->rand, p->leaf[i].serial);
    const lop_slot *s = &p->slot[p->leaf[i].slot];
    if (!from) return lop_fail(&w->err, LOP_INTERNAL, "a leaf of unknown serial");
    *a = place_array(from, from->dt, s->core, &from->shape, s->need_c ? 0 : layout);
    return lop_frame_bind(f, i, &a->buf, &w->err);
}

lop_status t_exec(world *w, const lop_plan *plan, int layout, placed *out, int64_t *fallbacks) {
    lop_frame *f = malloc(sizeof *f);
    placed *leaf = calloc((size_t)plan->nleaf + 1, sizeof *leaf);
    if (!f || !leaf) abort();
    const lop_slot *o = &plan->slot[plan->out];
    *out = place_array(NULL, o->dt, o->core, &o->shape, o->need_c ? 0 : layout);
    soiled(&w->memory, f->inline_work, sizeof f->inline_work);
    w->err = (lop_err){.step = -1, .batch = -1};
    lop_status st = lop_frame_open(f, plan, NULL, &w->store, &w->err);
    bool open = st == LOP_OK;
    if (open && f->block) soiled(&w->memory, f->work, (size_t)plan->workspace + plan->scratch);
    for (int i = 0; i < plan->nleaf && st == LOP_OK; i++) st = bind_leaf(w, f, i, layout, &leaf[i]);
    if (st == LOP_OK) st = lop_frame_bind(f, plan->nleaf, &out->buf, &w->err);
    if (st == LOP_OK) st = lop_exec(f, &w->err);
    if (open && fallbacks) *fallbacks = f->fallbacks;
    if (open) lop_frame_close(f);
    for (int i = 0; i < plan->nleaf; i++) {
        if (leaf[i].block) t_check(placed_intact(&leaf[i]), "memory beside a leaf was written");
        placed_free(&leaf[i]);
    }
    t_check(placed_intact(out), "memory beside the result was written");
    free(leaf);
    free(f);
    return st;
}

lop_status t_run(world *w, const lop_node *root, int layout, placed *out) {
    lop_plan *plan = NULL;
    *out = (placed){.block = NULL};
    w->err.text[0] = 0;
    lop_status st = lop_plan_make(&w->ctx, w->rules, &w->options, root, &plan, &w->err);
    if (st == LOP_OK) st = lop_plan_check(plan, LOP_PASS_PLACE, &w->err);
    if (st == LOP_OK) st = t_exec(w, plan, layout, out, NULL);
    lop_plan_unref(plan);
    return st;
}

bool t_may_fft(const lop_node *node) {
    if (node->op == &lop_op_toeplitz || node->op == &lop_op_diagonal_sums || ip_is_conv(node))
        return true;
    for (int i = 0; i < node->n; i++)
        if (t_may_fft(node->child[i])) return true;
    return false;
}

/* A determinant's (mantissa, exponent) as the interpreter has it: (mantissa 2^exponent, 0). */
static void unscale(placed *a) {
    steps to = {.offset = 0};
    for (int64_t i = 0; i < count_of(&a->buf.shape); i += 2) {
        int64_t at = to.offset;
        step_on(&to, &a->buf);
        val m = val_load(a->buf.dt, a->buf.p, at), e = val_load(a->buf.dt, a->buf.p, to.offset);
        int k = e.re > 9999 ? 9999 : e.re < -9999 ? -9999 : (int)e.re;
        lop_set(a->buf.dt, a->buf.p, at, CMPLX(ldexp((double)m.re, k), ldexp((double)m.im, k)));
        lop_set(a->buf.dt, a->buf.p, to.offset, 0);
        step_on(&to, &a->buf);
    }
}

bool t_agrees(world *w, const lop_node *root, int layout, double factor, const char *who) {
    if (!t_check(root != NULL, "%s: no node: %s", who, w->err.text)) return false;
    ip p;
    char why[300] = "";
    placed out;
    ip_open(&p, &w->rand, root->dtype, w->options.fft && t_may_fft(root));
    const tv *want = ip_eval(&p, root);
    char *text = lop_dump(root, 60);
    bool ok = t_check(want != NULL, "%s: %s: cannot interpret %s", who, p.why ? p.why : "",
                      text ? text : "");
    lop_status st = ok ? t_run(w, root, layout, &out) : LOP_INTERNAL;
    if (ok && (p.singular ||
               want->nb == 0)) { /* of no systems none need be singular, but may be said to be */
        ok = t_check(st == LOP_OK || st == LOP_SINGULAR, "%s: %s: %s", who, w->err.text,
                     text ? text : "");
    } else if (ok) {
        ok = t_check(st == LOP_OK, "%s: %s: %s", who, w->err.text, text ? text : "");
        ok = ok &&
             t_check(out.buf.dt == root->dtype, "%s: dtype %s, want %s: %s", who,
                     lop_dtype_name(out.buf.dt), lop_dtype_name(root->dtype), text ? text : "");
        if (ok && root->op == &lop_op_scaledet) unscale(&out);
        ok = ok && t_check(tv_close(want, &out.buf, factor, why, sizeof why),
                           "%s: %s: layout %d: %s", who, why, layout, text ? text : "");
        if (ok) record_plan(w, root, &out.buf, who);
    }
    if (want) placed_free(&out);
    lop_free(&w->ctx, text);
    ip_close(&p);
    return ok;
}
