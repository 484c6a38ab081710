/* user_rule_search.c: the best of the expressions that users' rules make of one.
 *
 * Rounds: in each, every row is tried at every node (children first, rows in the order of their
 * registration). A row that is taken wherever it fits (`cheaper` not set) goes at once; of the
 * others the one that makes the plan cheapest, if any does. What has been tried is not tried again,
 * so that rows may undo each other. Cost: a plan a variant. */
#include "user_rule_search.h"

#include "expr/node_map.h"
#include "rewrite/ruleset.h"

#include <string.h>

typedef struct explorer {
    const lop_rules *rules;
    const lop_options *options;
    lop_compile compile;
    lop_tab tab;
    lop_maker mk;
    const lop_node *now;                     /* owned */
    const lop_node *list[LOP_EXPLORE_NODES]; /* borrowed from now, children first */
    int n;
    const lop_node *seen[LOP_EXPLORE_PLANS + 1]; /* owned */
    int nseen;
    int fired[LOP_EXPLORE_PLANS], nfired;
    lop_plan *best, *round; /* of now; the best of this round */
    int round_rule, round_seen;
} explorer;

/* The nodes below root, each once, children first; false: too many. */
static bool list_nodes(explorer *x, const lop_node *root, lop_map *map) {
    const lop_node *stack[2 * LOP_EXPLORE_NODES];
    int top = 0, at;
    x->n = 0;
    stack[top++] = root;
    while (top > 0) {
        const lop_node *n = stack[top - 1];
        int waiting = 0;
        if (!lop_map_get(map, n, &at)) {
            for (int i = n->n - 1; i >= 0; i--) {
                if (lop_map_get(map, n->child[i], &at)) continue;
                if (top == 2 * LOP_EXPLORE_NODES) return false;
                stack[top++] = n->child[i];
                waiting++;
            }
            if (waiting) continue;
            if (x->n == LOP_EXPLORE_NODES || lop_map_set(map, n, x->n) != LOP_OK) return false;
            x->list[x->n++] = n;
        }
        top--;
    }
    return true;
}

/* The listed expression with node `at` replaced by `by` (at -1: as it is), interned. Owned. */
static lop_status rebuilt(explorer *x, const lop_map *map, int at, const lop_node *by,
                          const lop_node **out) {
    const lop_node *made[LOP_EXPLORE_NODES];
    lop_status st = LOP_OK;
    int done = 0;
    for (; done < x->n && st == LOP_OK; done++) {
        const lop_node *n = x->list[done], *few[8], **child = few;
        made[done] = NULL;
        if (done == at) {
            made[done] = lop_node_ref(by);
            continue;
        }
        if (n->n > 8 && !(child = lop_calloc(x->mk.ctx, (size_t)n->n, sizeof *child)))
            st = LOP_NOMEM;
        for (int i = 0; st == LOP_OK && i < n->n; i++) {
            int k = -1;
            (void)lop_map_get(map, n->child[i], &k);
            child[i] = made[k];
        }
        if (st == LOP_OK)
            st = lop_make_op(&x->mk, n->op, &n->attr, n->n, child, n->n ? NULL : n, &made[done]);
        if (child != few) lop_free(x->mk.ctx, (void *)child);
    }
    *out = st == LOP_OK ? lop_node_ref(made[x->n - 1]) : NULL;
    while (done > 0) lop_node_unref(made[--done]);
    return st;
}

static bool is_new(const explorer *x, const lop_node *root) {
    for (int i = 0; i < x->nseen; i++)
        if (x->seen[i] == root) return false;
    return x->nseen <= LOP_EXPLORE_PLANS;
}

static void refuse(const explorer *x, int rule, const lop_plan *plan) {
    lop_trail *trail = x->options->trail;
    if (!trail) return;
    lop_trail_note(trail, rule, LOP_WHY_COST);
    lop_trail_other(trail, rule, "", plan->seconds);
}

/* Is it no property of the variant? A plan that is not sound is a fault of ours, and is told. */
static bool is_fault(lop_status st) { return st == LOP_NOMEM || st == LOP_INTERNAL; }

/* Plans the variant (taken over) that `rule` made. *taken: it replaces the expression at once. */
static lop_status consider(explorer *x, int rule, const lop_node *variant, bool *taken) {
    lop_plan *p = NULL;
    lop_options quiet = *x->options;
    quiet.trail = NULL;
    x->seen[x->nseen++] = variant;
    *taken = false;
    lop_status st = x->compile(x->mk.ctx, x->rules, &quiet, variant, &p, x->mk.err);
    if (is_fault(st)) return st;
    if (st != LOP_OK) { /* what cannot be planned is no variant */
        lop_err_open(x->mk.err);
        return LOP_OK;
    }
    bool cheaper = x->rules->row[rule].cheaper;
    const lop_plan *than = x->round ? x->round : x->best;
    if (cheaper && !(p->seconds < than->seconds * (1 - 1e-6))) {
        refuse(x, rule, p);
        lop_plan_unref(p);
        return LOP_OK;
    }
    if (x->round) refuse(x, x->round_rule, x->round);
    lop_plan_unref(x->round);
    x->round = p;
    x->round_rule = rule;
    x->round_seen = x->nseen - 1;
    *taken = !cheaper;
    return LOP_OK;
}

static lop_status try_row(explorer *x, const lop_map *map, int at, int rule, bool *taken) {
    const lop_node *by = NULL, *variant = NULL;
    *taken = false;
    lop_status st = lop_rule_at(x->rules, rule, x->list[at], &x->mk, &by);
    if (st != LOP_OK) return st == LOP_NOMATCH ? LOP_OK : st;
    st = rebuilt(x, map, at, by, &variant);
    lop_node_unref(by);
    if (st != LOP_OK &&
        !is_fault(st)) { /* a change here would alter what the expression relies on elsewhere */
        lop_err_open(x->mk.err);
        return LOP_OK;
    }
    if (st == LOP_OK && is_new(x, variant)) return consider(x, rule, variant, taken);
    lop_node_unref(variant);
    return st;
}

/* One round over all nodes and rows; x->round is what it found. */
static lop_status sweep(explorer *x) {
    const lop_rules *r = x->rules;
    lop_map map;
    bool taken = false;
    lop_status st = lop_map_init(&map, x->mk.ctx);
    if (st == LOP_OK && !list_nodes(x, x->now, &map)) x->n = 0;
    for (int at = 0; st == LOP_OK && !taken && at < x->n; at++)
        for (int i = r->first[LOP_EXPLORE][lop_op_id(x->list[at]->op)];
             st == LOP_OK && !taken && i >= 0 && x->nseen <= LOP_EXPLORE_PLANS;
             i = lop_row_after(r, LOP_EXPLORE, i))
            st = try_row(x, &map, at, i, &taken);
    lop_map_clear(&map, x->mk.ctx);
    return st;
}

/* The trace begins with the rows that made the expression. */
static void put_first(const explorer *x, lop_trace *t) {
    int n = x->nfired, keep = (int)(t->count < LOP_TRACE ? t->count : LOP_TRACE);
    if (keep > LOP_TRACE - n) keep = LOP_TRACE - n;
    memmove(t->rule + n, t->rule, (size_t)keep * sizeof *t->rule);
    for (int i = 0; i < n; i++) {
        t->rule[i] = (int16_t)x->fired[i];
        x->rules->row[x->fired[i]].fired += !(x->mk.ctx->coefs && x->mk.ctx->coefs->again);
        if (x->options->trail) lop_trail_note(x->options->trail, x->fired[i], LOP_WHY_FIRED);
    }
    t->count += n;
}

static lop_status climb(explorer *x) {
    lop_status st;
    do {
        x->round = NULL;
        st = sweep(x);
        if (st != LOP_OK || !x->round) break;
        if (x->options->trail)
            lop_trail_other(x->options->trail, -1, "without that rule", x->best->seconds);
        lop_node_unref(x->now);
        x->now = lop_node_ref(x->seen[x->round_seen]);
        lop_plan_unref(x->best);
        x->best = x->round;
        x->fired[x->nfired++] = x->round_rule;
    } while (x->nfired < LOP_EXPLORE_PLANS);
    if (st != LOP_OK) lop_plan_unref(x->round);
    return st;
}

lop_status lop_explore(const lop_rules *rules, const lop_options *options, const lop_node *root,
                       lop_compile compile, lop_plan **best, lop_err *err) {
    explorer *x = lop_calloc(root->ctx, 1, sizeof *x);
    lop_trace trace = {.trail = options->trail};
    lop_map map = {0};
    if (!x) return lop_fail(err, LOP_NOMEM, NULL);
    x->rules = rules;
    x->options = options;
    x->compile = compile;
    x->best = *best;
    lop_tab_init(&x->tab, root->ctx);
    x->mk = (lop_maker){.ctx = root->ctx, .tab = &x->tab, .err = err, .trace = &trace};
    lop_status st = lop_map_init(&map, root->ctx);
    if (st == LOP_OK && list_nodes(x, root, &map)) {
        st = rebuilt(x, &map, -1, NULL, &x->now);
        if (st == LOP_OK) {
            x->seen[x->nseen++] = lop_node_ref(x->now);
            st = climb(x);
        }
    }
    if (st == LOP_OK && x->nfired) {
        if (options->trail) { /* plans it once more, with everything written down */
            lop_plan_unref(x->best);
            x->best = NULL;
            st = compile(root->ctx, rules, options, x->now, &x->best, err);
        }
        if (st == LOP_OK) {
            put_first(x, &x->best->trace);
            lop_node_unref(x->best->written);
            x->best->written = lop_node_ref(root);
        }
    }
    *best = x->best;
    lop_map_clear(&map, root->ctx);
    lop_node_unref(x->now);
    for (int i = 0; i < x->nseen; i++) lop_node_unref(x->seen[i]);
    lop_tab_clear(&x->tab);
    lop_free(root->ctx, x);
    return st == LOP_NOMEM ? lop_fail(err, st, NULL) : st;
}
