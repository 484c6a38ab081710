/* plan_cache.c: signatures of written nodes, and the table of plans by signature. */
#include "plan_cache.h"

#include "expr/coefficients.h"
#include "plan_check.h"

#include <math.h>
#include <string.h>

bool lop_sign_word(lop_sign *s, uint64_t word) {
    if (s->n == LOP_SIGN_WORDS) return false;
    s->word[s->n++] = word;
    uint64_t h = (s->hash ^ word) * 0xff51afd7ed558ccdu;
    s->hash = h ^ (h >> 29);
    return true;
}

/* A coefficient by its class: its sign, or that it is complex, and which of those before it has the
 * same value. */
static bool sign_class(lop_sign *s, const lop_attr *c) {
    const lop_number own = {c->re, c->im};
    const uint64_t kind = c->im != 0 ? 2 : c->re < 0;
    int i = 0;
    while (i < s->numbers && !lop_number_equal(s->number[i], own)) i++;
    if (i == LOP_SOURCES) return false;
    if (i == s->numbers) s->number[s->numbers++] = own;
    return lop_sign_word(s, (uint64_t)(i + 1) << 2 | kind);
}

static bool sign_attr(lop_sign *s, const lop_node *n) {
    const lop_attr *a = &n->attr;
    const bool varies = s->by_class && lop_coef_may_vary(n);
    uint64_t re, im;
    memcpy(&re, &a->re, 8);
    memcpy(&im, &a->im, 8);
    bool fits = varies ? sign_class(s, a) : lop_sign_word(s, re) && lop_sign_word(s, im);
    for (int i = varies; i < 4; i++) fits = fits && lop_sign_word(s, (uint64_t)a->i[i]);
    return fits;
}

static bool sign_shape(lop_sign *s, const lop_shape *shape) {
    bool fits = true;
    for (int i = 0; i < shape->ndim; i++) fits = fits && lop_sign_word(s, (uint64_t)shape->dim[i]);
    return fits;
}

/* The leaf's number by first appearance, or -1. */
static int number_of(lop_sign *s, uint64_t serial) {
    int i = 0;
    while (i < s->leaves && s->serial[i] != serial) i++;
    if (i == LOP_SIGN_LEAVES) return -1;
    if (i == s->leaves) s->serial[s->leaves++] = serial;
    return i;
}

/* Of a node that has come before, the place of its words: one word for all that is below it. Only
 * nodes that something else refers to can come again; where there is no room for more of them they
 * are written in full. */
static int place_of(lop_sign *s, const lop_node *n) {
    if (n->refs < 2 || n->n == 0) return -1;
    for (int i = 0; i < s->shared; i++)
        if (s->seen[i].node == n) return s->seen[i].at;
    if (s->shared < LOP_SIGN_SHARED) {
        s->seen[s->shared].node = n;
        s->seen[s->shared++].at = s->n;
    }
    return -1;
}

static bool sign_one(lop_sign *s, const lop_node *n) {
    static const lop_attr none;
    bool plain = lop_attr_equal(&n->attr, &none);
    int leaf = n->op == &lop_op_array ? number_of(s, n->serial) : 0;
    if (leaf < 0 || n->n > 255) return false;
    uint64_t head = (uint64_t)lop_op_id(n->op) | (uint64_t)n->n << 16 | (uint64_t)n->dtype << 24 |
                    (uint64_t)n->weak << 32 | (uint64_t)n->core << 40 | (uint64_t)plain << 44 |
                    (uint64_t)n->shape.ndim << 45 | (uint64_t)leaf << 52 |
                    (uint64_t)(s->by_class && lop_coef_may_vary(n)) << 63;
    return lop_sign_word(s, head) && (plain || sign_attr(s, n)) &&
           (n->n > 0 || sign_shape(s, &n->shape));
}

bool lop_sign_node(lop_sign *s, const lop_node *root) {
    enum { DEEP = 128 };
    const lop_node *stack[DEEP];
    int top = 0;
    stack[top++] = root;
    while (top > 0) {
        const lop_node *n = stack[--top];
        const int at = place_of(s, n);
        if (at >= 0) {
            if (!lop_sign_word(s, UINT16_MAX | (uint64_t)at << 16)) return false;
            continue;
        }
        if (!sign_one(s, n) || top + n->n > DEEP) return false;
        for (int i = n->n - 1; i >= 0; i--) stack[top++] = n->child[i];
    }
    return true;
}

void lop_plans_init(lop_plans *plans, lop_ctx *ctx) {
    memset(plans, 0, sizeof *plans);
    plans->ctx = ctx;
}

static void drop(lop_plans *plans, lop_shared *e) {
    lop_plan_unref(e->plan);
    lop_free(plans->ctx, e->word);
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

const lop_shared *lop_plans_get(lop_plans *plans, const lop_sign *s, lop_number *value) {
    lop_shared *e = plans->slot ? place(plans, s) : NULL;
    bool fits = e && is_of(e, s);
    if (fits && e->plan->coefs) fits = lop_coefs_for(e->plan->coefs, s->number, value);
    *(fits ? &plans->hits : &plans->misses) += 1;
    if (fits) e->used = plans->hits + plans->misses;
    return fits ? e : NULL;
}

void lop_plans_put(lop_plans *plans, const lop_sign *s, lop_plan *plan) {
    lop_shared *at, fresh = {.hash = s->hash, .used = plans->hits + plans->misses, .n = s->n};
    fresh.plan = plan;
    if (plan->nleaf > LOP_SIGN_LEAVES + 1) return;
    for (int i = 0; i < plan->nleaf; i++) {
        int number = 0;
        while (number < s->leaves && s->serial[number] != plan->leaf[i].serial) number++;
        fresh.number[i] = (signed char)(number < s->leaves ? number : -1);
    }
    if (!plans->slot) plans->slot = lop_calloc(plans->ctx, LOP_PLANS, sizeof *plans->slot);
    fresh.word = plans->slot ? lop_alloc(plans->ctx, (size_t)s->n * sizeof *s->word) : NULL;
    if (!fresh.word) return;
    memcpy(fresh.word, s->word, (size_t)s->n * sizeof *s->word);
    plan->refs++;
    at = place(plans, s);
    drop(plans, at);
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
    lop_coefs *coefs = ctx->coefs = lop_calloc(ctx, 1, sizeof *coefs);
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
        lop_free(ctx, coefs);
    return st;
}

/* Would the same be planned for other values of the class? Tried with a few. */
static lop_status check_named(const lop_plan *p, const lop_sign *s, const lop_rules *rules,
                              const lop_options *options, const lop_node *root, lop_err *err) {
    static const double by[] = {1.37, 0x1p-7, 93, -1};
    const lop_coefs *c = p->coefs;
    lop_number other[LOP_SOURCES], value[LOP_ENTRIES];
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
        if (st == LOP_OK) st = lop_plan_check_coefs(p, q, err);
        lop_plan_unref(q);
        if (st != LOP_OK) return st;
    }
    return LOP_OK;
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
