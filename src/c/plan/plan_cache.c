/* plan_cache.c: the table of plans by signature. */
#include "plan_cache.h"

#include "plan_check.h"

#include <math.h>
#include <string.h>

void lop_plans_init(lop_plans *plans, lop_ctx *ctx) {
    memset(plans, 0, sizeof *plans);
    plans->ctx = ctx;
}

static void drop(lop_plans *plans, lop_shared *e) {
    lop_plan_unref(e->plan);
    lop_free(plans->ctx, e->word);
    plans->bytes -= e->bytes;
    memset(e, 0, sizeof *e);
}

void lop_plans_clear(lop_plans *plans) {
    for (int i = 0; plans->slot && i < LOP_PLANS; i++) drop(plans, &plans->slot[i]);
    lop_free(plans->ctx, plans->slot);
    plans->slot = NULL;
}

static bool is_of(const lop_shared *e, const lop_sign *s) {
    return e->plan && e->hash == s->hash && e->n == s->n &&
           memcmp(e->word, s->word, (size_t)s->n * sizeof *s->word) == 0;
}

/* Where a plan is, or goes. */
static lop_shared *place(const lop_plans *plans, const lop_sign *s) {
    lop_shared *set = &plans->slot[s->hash % (LOP_PLANS / LOP_PLANS_ALIKE) * LOP_PLANS_ALIKE],
               *oldest = set;
    for (int i = 0; i < LOP_PLANS_ALIKE; i++) {
        if (is_of(&set[i], s)) return &set[i];
        if (set[i].used < oldest->used) oldest = &set[i];
    }
    return oldest;
}

const lop_shared *lop_plans_get(lop_plans *plans, lop_sign *s) {
    lop_shared *e = plans->slot ? place(plans, s) : NULL;
    bool fits = e && is_of(e, s);
    if (fits && e->plan->coefs)
        fits = lop_sign_values(s, e->plan->coefs->entries) &&
               lop_coefs_for(e->plan->coefs, s->number, s->value);
    *(fits ? &plans->hits : &plans->misses) += 1;
    if (fits) e->used = plans->hits + plans->misses;
    return fits ? e : NULL;
}

/* About what a plan holds: nodes, slots, steps and their tables. */
static int64_t bytes_of(const lop_plan *p) {
    return (int64_t)((size_t)p->nslot * (sizeof *p->slot + sizeof(lop_node)) +
                     (size_t)p->nstep * (sizeof *p->step + sizeof(lop_node)) +
                     (size_t)p->nleaf * (sizeof *p->leaf + 2 * sizeof(lop_node)));
}

/* Plans go, those that were used longest ago first, until there is room for so many bytes. */
static void make_room(lop_plans *plans, int64_t bytes) {
    while (plans->bytes > 0 && plans->bytes + bytes > LOP_PLANS_BYTES) {
        lop_shared *oldest = NULL;
        for (int i = 0; i < LOP_PLANS; i++) {
            lop_shared *e = &plans->slot[i];
            if (e->plan && (!oldest || e->used < oldest->used)) oldest = e;
        }
        drop(plans, oldest);
    }
}

void lop_plans_put(lop_plans *plans, const lop_sign *s, lop_plan *plan) {
    lop_shared *at, fresh = {.hash = s->hash, .used = plans->hits + plans->misses, .n = s->n};
    const size_t words = (size_t)s->n * sizeof *s->word,
                 numbers = (size_t)plan->nleaf * sizeof *fresh.number;
    fresh.plan = plan;
    fresh.bytes = (int64_t)(words + numbers) + bytes_of(plan);
    if (!plans->slot) plans->slot = lop_calloc(plans->ctx, LOP_PLANS, sizeof *plans->slot);
    fresh.word = plans->slot ? lop_alloc(plans->ctx, words + numbers) : NULL;
    if (!fresh.word) return;
    memcpy(fresh.word, s->word, words);
    fresh.number = (int *)(void *)(fresh.word + s->n);
    for (int i = 0; i < plan->nleaf; i++) fresh.number[i] = lop_sign_leaf(s, plan->leaf[i].serial);
    plan->refs++;
    make_room(plans, fresh.bytes);
    at = place(plans, s);
    drop(plans, at);
    plans->bytes += fresh.bytes;
    *at = fresh;
}

static bool scales_integers(const lop_plan *p) {
    bool does = false;
    for (int i = 0; i < p->nstep; i++)
        does |= p->step[i].attr.num && !lop_is_blas(p->slot[p->step[i].arg[0]].dt) &&
                p->slot[p->step[i].arg[0]].kind != LOP_S_DERIVED;
    return does;
}

/* The plan with the coefficients named; they stay with it. */
static lop_status make_named(lop_ctx *ctx, const lop_number *number, const lop_number *other, int n,
                             const lop_rules *rules, const lop_options *options,
                             const lop_node *root, lop_plan **out, lop_err *err) {
    const lop_node *named = NULL;
    *out = NULL;
    lop_coefs *coefs = ctx->coefs = lop_coefs_new(ctx);
    lop_status st = coefs ? LOP_OK : lop_fail(err, LOP_NOMEM, NULL);
    if (coefs) coefs->again = other != NULL;
    if (st == LOP_OK) st = lop_coefs_name(ctx, number, other, n, root, &named, err);
    if (st == LOP_OK) st = lop_plan_make(ctx, rules, options, named, out, err);
    ctx->coefs = NULL;
    lop_node_unref(named);
    if (st == LOP_OK && scales_integers(*out)) { /* by attr.i[0], which has no name */
        lop_plan_unref(*out);
        coefs->full = true;
        st = lop_plan_make(ctx, rules, options, root, out, err);
    }
    if (st == LOP_OK)
        (*out)->coefs = coefs;
    else
        lop_coefs_free(coefs);
    return st;
}

/* Would the same be planned for other values of the class? Tried with a few, kept in `other` and
 * `value`. */
static lop_status try_named(const lop_plan *p, const lop_sign *s, const lop_rules *rules,
                            const lop_options *options, const lop_node *root, lop_number *other,
                            lop_number *value, lop_err *err) {
    static const double by[] = {1.37, 0x1p-7, 93, -1};
    const lop_coefs *c = p->coefs;
    lop_options quiet = *options;
    quiet.trail = NULL;
    for (size_t k = 0; k < sizeof by / sizeof by[0]; k++) {
        for (int i = 0; i < c->sources; i++)
            other[i] = (lop_number){s->number[i].re * by[k] * (1 + 0.31 * i),
                                    s->number[i].im * fabs(by[k]) * (1 + 0.17 * i)};
        if (!lop_coefs_for(c, other, value)) continue;
        if (c->full) break;
        lop_plan *q;
        lop_status st =
            make_named(p->ctx, s->number, other, s->numbers, rules, &quiet, root, &q, err);
        if (st == LOP_OK && q->coefs->full) st = lop_fail(err, LOP_NOMEM, NULL); /* p had room */
        if (st == LOP_OK) st = lop_plan_check_coefs(p, q, err);
        lop_plan_unref(q);
        if (st != LOP_OK) return st;
    }
    return LOP_OK;
}

static lop_status check_named(const lop_plan *p, const lop_sign *s, const lop_rules *rules,
                              const lop_options *options, const lop_node *root, lop_err *err) {
    const size_t sources = (size_t)p->coefs->sources, entries = (size_t)p->coefs->entries;
    lop_number *other = lop_calloc(p->ctx, sources + entries, sizeof *other);
    lop_status st = other ? try_named(p, s, rules, options, root, other, other + sources, err)
                          : lop_fail(err, LOP_NOMEM, NULL);
    lop_free(p->ctx, other);
    return st;
}

lop_status lop_plans_make(const lop_plans *plans, const lop_sign *s, const lop_rules *rules,
                          const lop_options *options, const lop_node *root, lop_plan **out,
                          lop_err *err) {
    lop_ctx *ctx = plans->ctx;
    if (!s->numbers) return lop_plan_make(ctx, rules, options, root, out, err);
    lop_status st = make_named(ctx, s->number, NULL, s->numbers, rules, options, root, out, err);
#ifdef NDEBUG
    if (!ctx->check_plans) return st;
#endif
    if (st == LOP_OK) st = check_named(*out, s, rules, options, root, err);
    if (st != LOP_OK) {
        lop_plan_unref(*out);
        *out = NULL;
    }
    return st;
}
