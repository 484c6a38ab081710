/* test_ruleset.c: users' rules: added, tried, switched off, removed; variants of an expression
 * planned and priced; each allocation made to fail on the way. */
#include "plan/user_rule_search.h"
#include "rewrite/guards.h"
#include "exec/rule_trial.h"
#include "gen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static world w;

static lop_rule row_of(const char *name, const char *left, const char *right, const char *guard) {
    const lop_guard *g = guard ? lop_guard_find(guard) : NULL;
    t_check(!guard || g, "no guard %s", guard ? guard : "");
    return (lop_rule){name, LOP_EXPLORE, left, right, g ? g->when : NULL, NULL, "", LOP_OF_KIND};
}
static const char *const cancel[] = {"(prod (inverse ?a) ?a)", "(power:0 ?a)"};

static void added_and_removed(void) {
    int before = lop_rules_count(w.rules), at = -1;
    int64_t live = w.ctx.live;
    lop_rule r = row_of("mine", cancel[0], cancel[1], "square");
    for (int i = 0; i < 50; i++) {
        t_check(lop_rules_add(w.rules, &r, true, &at, &w.err) == LOP_OK, "%s", w.err.text);
        t_check(at == before && lop_rules_is_own(w.rules, at) && lop_rules_explore(w.rules), "at");
        t_check(lop_rules_add(w.rules, &r, true, NULL, &w.err) == LOP_DOMAIN, "taken");
        t_check(lop_rules_find(w.rules, "mine") == at && !lop_rules_is_gone(w.rules, at), "found");
        lop_rules_remove(w.rules, at);
        t_check(lop_rules_is_gone(w.rules, at) && !lop_rules_explore(w.rules), "gone");
        lop_rules_remove(w.rules, at); /* once more is nothing */
        lop_rules_remove(w.rules, 0);  /* nor is the table's */
        t_check(!lop_rules_is_gone(w.rules, 0), "a row of the table was removed");
    }
    t_check(lop_rules_count(w.rules) == before + 1, "%d rows", lop_rules_count(w.rules));
    static const char *const bad[][2] = {
        {"?a", "?a"},
        {"(prod ?a", "?a"},
        {"(prod ?a ?b)", "?c"},
        {"(view@m ?a)", "(view@n ?a)"},
        {"(nothing ?a)", "?a"},
        {"(prod ?a ?b)", "(zeros)"},
        {"", ""},
        {"(prod ?a ?b)", "(prod ?a ?b"},
        {"(prod ?a ?b)", "(sum* ?a ?b)"},
        {"(inverse* ?a)", "?a"},
        {"(prod ?a ?*)", "?a"},
        {"(view@m (kron))", "?*"},
        {"(view@m (kron))", "(view@m (view@m ?*))"},
        {"(view@m ?a)", "(kron (view@m ?*))"},
        {"(prod (kron) ?a)", "(kron (prod ?* ?+))"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        lop_rule wrong = row_of("bad", bad[i][0], bad[i][1], NULL);
        lop_status st = lop_rules_add(w.rules, &wrong, true, NULL, &w.err);
        t_check(st == LOP_PARSE && lop_rules_find(w.rules, "bad") < 0, "%s: %s", bad[i][0],
                lop_status_name(st));
    }
    lop_rule needs = row_of("needs", "(view@m ?b)", "?b", "square");
    t_check(lop_rules_add(w.rules, &needs, true, NULL, &w.err) == LOP_PARSE, "no ?a");
    t_check(w.ctx.live > live, "a place is kept");
    t_group("added and removed");
}

static void many(void) {
    char name[32];
    int n = 0;
    lop_rules *r = NULL;
    t_check(lop_rules_new(&w.ctx, lop_rule_table, lop_rule_count, &r, &w.err) == LOP_OK, "new");
    for (; r; n++) {
        snprintf(name, sizeof name, "r%d", n);
        lop_rule one = row_of(name, cancel[0], cancel[1], NULL);
        if (n % 2) one.phase = LOP_PUSH;
        if (lop_rules_add(r, &one, false, NULL, &w.err) != LOP_OK) break;
    }
    t_check(n == LOP_RULES_MOST - lop_rule_count && w.err.status == LOP_DOMAIN, "%d added", n);
    t_check(r && !strcmp(lop_rules_at(r, lop_rule_count + 7)->name, "r7"), "names stay");
    lop_rules_free(r);
    t_group("many");
}

/* (apply (prod (inverse A) A) x), A of 20 x 20. */
static const lop_node *solved(void) {
    const lop_node *a =
        t_one_of(&w, "dense", NULL, t_array(&w, LOP_f64, 2, 2, (int64_t[]){20, 20}));
    const lop_node *x = t_array(&w, LOP_f64, 2, 2, (int64_t[]){20, 1});
    const lop_node *p = t_two_of(&w, "prod", t_one(&w, "inverse", NULL, a), lop_node_ref(a));
    lop_node_unref(a);
    return t_two_of(&w, "apply", p, x);
}

static bool has_step(const lop_plan *p, const char *name) {
    for (int i = 0; p && i < p->nstep; i++)
        if (!strcmp(p->step[i].name, name)) return true;
    return false;
}
static int notes(const lop_trail *t, int rule, lop_why why) {
    for (int i = 0; i < t->n; i++)
        if (t->note[i].rule == rule && t->note[i].why == (int16_t)why) return t->note[i].count;
    return 0;
}

static void explored(void) {
    static lop_trail trail;
    int at = -1, back = -1;
    lop_plan *p = NULL;
    lop_options options = w.options;
    const lop_node *root = solved();
    lop_rule r = row_of("mine", cancel[0], cancel[1], "square"),
             b = row_of("back", cancel[1], cancel[0], "square");
    lop_status st = lop_plan_make(&w.ctx, w.rules, &options, root, &p, &w.err);
    t_check(st == LOP_OK && has_step(p, "getrf"), "a factor is made");
    lop_plan_unref(p);
    t_check(lop_rules_add(w.rules, &r, true, &at, &w.err) == LOP_OK, "%s", w.err.text);
    t_check(lop_rules_add(w.rules, &b, true, &back, &w.err) == LOP_OK, "%s", w.err.text);
    memset(&trail, 0, sizeof trail);
    options.trail = &trail;
    st = lop_plan_make(&w.ctx, w.rules, &options, root, &p, &w.err);
    t_check(st == LOP_OK && !has_step(p, "getrf") && p->written == root, "the cheaper variant");
    t_check(p && p->trace.rule[0] == at && p->trace.trail == NULL, "it comes first in the trace");
    t_check(notes(&trail, at, LOP_WHY_FIRED) == 1 && trail.nother > 0, "and in the trail");
    t_check(lop_rules_fired(w.rules, at) > 0 && lop_rules_fired(w.rules, back) == 0, "counted");
    lop_plan_unref(p);
    t_agrees(&w, root, 0, 1e6, "explored");
    unsigned char off[LOP_RULES_MOST / 8] = {0};
    off[at / 8] = (unsigned char)(1 << at % 8);
    lop_rules_switch(w.rules, off, (int)sizeof off);
    memset(&trail, 0, sizeof trail);
    st = lop_plan_make(&w.ctx, w.rules, &options, root, &p, &w.err);
    t_check(st == LOP_OK && has_step(p, "getrf"), "switched off");
    t_check(notes(&trail, at, LOP_WHY_OFF) > 0 && !notes(&trail, at, LOP_WHY_FIRED), "and noted");
    lop_plan_unref(p);
    lop_rules_switch(w.rules, NULL, 0);
    lop_rules_remove(w.rules, at);
    lop_rules_remove(w.rules, back);
    lop_node_unref(root);
    world_leaves(&w);
    t_group("explored");
}

static lop_status unplanned = LOP_OK;

static lop_status fails(lop_ctx *ctx, const lop_rules *rules, const lop_options *options,
                        const lop_node *root, lop_plan **out, lop_err *err) {
    (void)ctx, (void)rules, (void)options, (void)root;
    *out = NULL;
    return lop_fail(err, unplanned, "a variant without a plan");
}

/* A variant that cannot be planned is none; a plan that is not sound is told. */
static void told(void) {
    static const lop_status all[] = {LOP_INTERNAL, LOP_NOMEM, LOP_DOMAIN, LOP_SINGULAR};
    lop_rule r = row_of("mine", cancel[0], cancel[1], "square");
    int at = -1;
    lop_plan *p = NULL;
    const lop_node *root = solved();
    lop_status st = lop_plan_make(&w.ctx, w.rules, &w.options, root, &p, &w.err);
    t_check(st == LOP_OK, "%s", w.err.text);
    t_check(lop_rules_add(w.rules, &r, true, &at, &w.err) == LOP_OK, "%s", w.err.text);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        unplanned = all[i];
        st = lop_explore(w.rules, &w.options, root, fails, &p, &w.err);
        t_check(st == (i < 2 ? unplanned : LOP_OK) && p, "%s gives %s", lop_status_name(unplanned),
                lop_status_name(st));
        lop_err_open(&w.err);
    }
    lop_plan_unref(p);
    lop_rules_remove(w.rules, at);
    lop_node_unref(root);
    world_leaves(&w);
    t_group("told");
}

/* Rows that make the expression larger for ever end by count. */
static void bounded(void) {
    lop_rule grows = row_of("grows", "(dense ?a)", "(prod (dense ?a) (power:0 (dense ?a)))", NULL);
    int at = -1;
    lop_plan *p = NULL;
    const lop_node *root = solved();
    t_check(lop_rules_add(w.rules, &grows, false, &at, &w.err) == LOP_OK, "%s", w.err.text);
    lop_status st = lop_plan_make(&w.ctx, w.rules, &w.options, root, &p, &w.err);
    t_check(st == LOP_OK && p->trace.count >= 1, "%s", w.err.text);
    t_check(lop_rules_fired(w.rules, at) <= LOP_EXPLORE_PLANS, "more often than bounded");
    lop_plan_unref(p);
    lop_rules_remove(w.rules, at);
    lop_node_unref(root);
    world_leaves(&w);
    t_group("bounded");
}

static void tried(void) {
    static const struct {
        const char *left, *right, *guard;
        bool ok;
    } row[] = {
        {"(view:3 (prod ?a ?b))", "(prod (view:3 ?b) (view:3 ?a))", NULL, true},
        {"(view:3 (prod ?a ?b))", "(prod (view:1 ?b) (view:1 ?a))", NULL, false},
        {"(trace@k (prod ?a ?b))", "(trace@k (prod ?b ?a))", "both_square", true},
        {"(trace@k (prod ?a ?b))", "(trace@k (prod ?b ?a))", NULL, false}, /* of 2 x 4 */
        {"(prod ?a ?b)", "(prod ?b ?a)", NULL, false},
        {"(view:3 ?a)", "?a", NULL, false},
        {"(view:3 ?a)", "?a", "self_adjoint", true},
        {"(inverse ?a)", "(view:3 ?a)", "unitary", true},
        {"(inverse (prod ?a ?b))", "(prod (inverse ?b) (inverse ?a))", "both_square", true},
        {"(inverse (prod ?a ?b))", "(prod (inverse ?a) (inverse ?b))", "both_square", false},
        {"(apply (kron ?a ?b) ?x)", "(apply (kron ?b ?a) ?x)", NULL, false},
        {"(diagonal@k (sum ?a ?b))", "(add (diagonal@k ?a) (diagonal@k ?b))", NULL, true},
        {"(scaledet@k (prod ?a ?b))", "(scaledet@k (prod ?b ?a))", "both_square", true},
        {"(prod ?a ?b)", "(prod ?a ?b)", "transposes", false},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        lop_rule r = row_of("r", row[i].left, row[i].right, row[i].guard);
        int64_t live = w.ctx.live;
        lop_err_open(&w.err);
        lop_status st = lop_rule_trial(&w.ctx, w.rules, &r, &w.err);
        t_check(st == (row[i].ok ? LOP_OK : LOP_DOMAIN), "%s: %s %s", row[i].left,
                lop_status_name(st), w.err.text);
        t_check(row[i].ok || strstr(w.err.text, "rule r"), "no word about the rule");
        t_check(w.ctx.live == live, "%s: %lld blocks lost", row[i].left,
                (long long)(w.ctx.live - live));
    }
    t_group("tried");
}

/* One round of all with allocation `fail` failing: the first status that is not OK. */
static lop_status round_of(const lop_node *root, bool trial) {
    lop_rule r = row_of("again", cancel[0], cancel[1], "square");
    lop_options options = w.options;
    lop_plan *p = NULL;
    int at = -1;
    lop_trail *trail = lop_calloc(&w.ctx, 1, sizeof *trail);
    lop_status st = trail ? LOP_OK : LOP_NOMEM;
    if (st == LOP_OK && trial) st = lop_rule_trial(&w.ctx, w.rules, &r, &w.err);
    if (st == LOP_OK && !trial) st = lop_rules_add(w.rules, &r, true, &at, &w.err);
    options.trail = trail;
    if (at >= 0) st = lop_plan_make(&w.ctx, w.rules, &options, root, &p, &w.err);
    t_check(at < 0 || (st == LOP_OK) == (p != NULL), "no plan and no error, or both");
    lop_plan_unref(p);
    if (at >= 0) lop_rules_remove(w.rules, at);
    lop_free(&w.ctx, trail);
    return st;
}

static void without_memory(void) {
    const lop_node *root = solved();
    for (int trial = 0; trial < 2; trial++) {
        int64_t step = trial ? 37 : 1, i = 0;
        t_check(round_of(root, trial != 0) == LOP_OK, "%s", w.err.text); /* its place is had */
        int64_t live = w.ctx.live;
        for (;; i += step) {
            w.memory = (failing){.fail_at = i};
            lop_err_open(&w.err);
            lop_status st = round_of(root, trial != 0);
            bool reached = w.memory.count > i;
            w.memory.fail_at = -1;
            bool ok = t_check(st == LOP_OK || st == LOP_NOMEM || !reached, "allocation %lld: %s",
                              (long long)i, lop_status_name(st));
            /* while the rule is out, its place holds no texts of a failed compilation */
            ok = t_check(llabs(w.ctx.live - live) <= 8, "allocation %lld: %lld blocks lost",
                         (long long)i, (long long)(w.ctx.live - live)) &&
                 ok;
            if (!reached || !ok) break;
        }
        t_check(i > 50, "only %lld allocations", (long long)i);
        t_check(round_of(root, trial != 0) == LOP_OK && w.ctx.live == live, "%lld blocks lost",
                (long long)(w.ctx.live - live));
    }
    lop_node_unref(root);
    world_leaves(&w);
    t_group("without memory");
}

static const lop_node *column(void) { return t_array(&w, LOP_f64, 2, 2, (int64_t[]){4, 1}); }

/* Of a long product, whose nodes a map grows by: at another place of it for each number of leaves
 * below. */
static void plans_without_memory(void) {
    for (int leaves = 0; leaves < 4; leaves++) {
        const lop_node *root = t_two_of(
            &w, "solve", t_one_of(&w, "dense", NULL, t_array(&w, LOP_f64, 2, 2, (int64_t[]){4, 4})),
            column());
        for (int i = 0; i < leaves; i++) root = t_two_of(&w, "mul", root, column());
        const lop_node *by = column();
        for (int i = 0; i < 20; i++) root = t_two_of(&w, "mul", root, lop_node_ref(by));
        lop_node_unref(by);
        const int64_t live = w.ctx.live;
        bool reached = true;
        int64_t i = 0;
        for (; reached; i++) {
            lop_plan *p = NULL;
            lop_err_open(&w.err);
            w.memory = (failing){.fail_at = i};
            const lop_status st = lop_plan_make(&w.ctx, w.rules, &w.options, root, &p, &w.err);
            reached = w.memory.count > i;
            w.memory.fail_at = -1;
            t_check((st == LOP_OK && p) || (st == LOP_NOMEM && !p && reached),
                    "allocation %lld: %s", (long long)i, lop_status_name(st));
            lop_plan_unref(p);
            t_check(w.ctx.live == live, "allocation %lld: blocks lost", (long long)i);
        }
        t_check(i > 50, "only %lld allocations", (long long)i);
        lop_node_unref(root);
        world_leaves(&w);
    }
    t_group("plans without memory");
}

/* The first row of the table, and one behind it of the same operation, among all the others. */
static void closed_by_the_first_row(void) {
    const int64_t n[] = {3}, off[] = {2};
    const lop_node *d = t_array(&w, LOP_f64, 1, 1, n), *e = t_array(&w, LOP_f64, 1, 1, off),
                   *three[3] = {e, d, e};
    const lop_node *diag = t_node(&w, "diag", NULL, 1, &d),
                   *tri = t_node(&w, "tridiagonal", NULL, 3, three), *both[2] = {diag, diag},
                   *out = NULL;
    int rule = -1;
    lop_status st = lop_close(w.rules, &w.ctx, &lop_op_prod, NULL, 2, both, &out, &rule, &w.err);
    t_check(st == LOP_OK && rule == 0 && out && out->op == &lop_op_diag, "a product of diagonals");
    lop_node_unref(out);
    const lop_node *beside[2] = {tri, diag};
    out = NULL;
    st = lop_close(w.rules, &w.ctx, &lop_op_sum, NULL, 2, beside, &out, &rule, &w.err);
    t_check(st == LOP_OK && rule > 0 && out && out->op == &lop_op_tridiagonal, "a sum of bands");
    lop_node_unref(out);
    lop_node_unref(diag);
    lop_node_unref(tri);
    lop_node_unref(d);
    lop_node_unref(e);
    world_leaves(&w);
    t_group("closed by the first row");
}

/* What a table holds is one node, however often it is made: leaves by their attributes, dtype and
 * shape, others by their children. */
static void made_twice(void) {
    lop_tab tab;
    lop_tab_init(&tab, &w.ctx);
    const lop_maker mk = {.ctx = &w.ctx, .tab = &tab, .err = &w.err};
    const lop_node square = {.shape = {.ndim = 2, .dim = {4, 4}}, .dtype = LOP_f64, .core = 2},
                   single = {.shape = {.ndim = 2, .dim = {4, 4}}, .dtype = LOP_f32, .core = 2},
                   large = {.shape = {.ndim = 2, .dim = {5, 5}}, .dtype = LOP_f64, .core = 2},
                   *const like[] = {&square, &square, &single, &large};
    const lop_attr turn = {.i = {LOP_T, 0, 0, 0}};
    const lop_node *leaf[4] = {NULL}, *view[3] = {NULL};
    for (int i = 0; i < 4; i++)
        t_check(lop_make(&mk, "zeros", NULL, 0, NULL, like[i], &leaf[i]) == LOP_OK, "%s",
                w.err.text);
    for (int i = 0; i < 3; i++)
        t_check(lop_make(&mk, "view", &turn, 1, &leaf[i], NULL, &view[i]) == LOP_OK, "%s",
                w.err.text);
    t_check(leaf[0] == leaf[1] && view[0] == view[1], "equal ones are one");
    t_check(leaf[0] != leaf[2] && view[0] != view[2], "of another dtype");
    t_check(leaf[0] != leaf[3], "of another shape");
    for (int i = 0; i < 4; i++) lop_node_unref(leaf[i]);
    for (int i = 0; i < 3; i++) lop_node_unref(view[i]);
    lop_tab_clear(&tab);
    world_leaves(&w);
    t_group("made twice");
}

/* How many heads a text names, then how many attributes. */
static int named(const char *text) {
    int n = 0;
    for (; *text; text++) n += *text == '(' ? 100 : *text == ':';
    return n;
}

/* What is asked last first; equals as they stand in the table. */
static int backwards(const void *x, const void *y) {
    const lop_rule *a = *(const lop_rule *const *)x, *b = *(const lop_rule *const *)y;
    if (a->tier != b->tier) return a->tier > b->tier ? -1 : 1;
    const int n = named(a->left) - named(b->left);
    return n ? n : (a > b) - (a < b);
}

/* What an expression becomes under a table: text. Owned; NULL: nothing. */
static char *becomes(const lop_rules *rules, const lop_node *root) {
    const lop_node *out = NULL;
    lop_tab tab;
    lop_trace trace = {.count = 0};
    lop_tab_init(&tab, &w.ctx);
    lop_status st = lop_rewrite(rules, &tab, root, &out, &trace, &w.err);
    char *text = st == LOP_OK ? lop_dump(out, 1000) : NULL;
    lop_node_unref(out);
    lop_tab_clear(&tab);
    return text;
}

/* A table turned upside down, but for rows that are equals, is the same table. */
static void in_another_order(void) {
    const lop_rule **row = malloc((size_t)lop_rule_count * sizeof *row);
    lop_rule *table = malloc((size_t)lop_rule_count * sizeof *table);
    lop_rules *other = NULL;
    int moved = 0;
    for (int i = 0; i < lop_rule_count; i++) row[i] = &lop_rule_table[i];
    qsort((void *)row, (size_t)lop_rule_count, sizeof *row, backwards);
    for (int i = 0; i < lop_rule_count; i++) {
        table[i] = *row[i];
        moved += row[i] != &lop_rule_table[i];
    }
    t_check(moved > lop_rule_count / 2, "only %d rows moved", moved);
    t_check(lop_rules_new(&w.ctx, table, lop_rule_count, &other, &w.err) == LOP_OK, "compiles");
    gen g = {.w = &w, .dtype = LOP_f64, .solves = true, .views = true, .exprs = 4, .largest = 4};
    for (int i = 0; other && i < 400; i++) {
        g.dtype = i % 3 ? LOP_c128 : LOP_f64;
        const lop_node *root = gen_value(&g, 1 + i % 4);
        char *a = root ? becomes(w.rules, root) : NULL, *b = root ? becomes(other, root) : NULL;
        const bool same = !a == !b && (!a || !strcmp(a, b));
        t_check(same, "%s\n    -> %s", a ? a : "", b ? b : "");
        lop_free(&w.ctx, a);
        lop_free(&w.ctx, b);
        lop_node_unref(root);
        world_leaves(&w);
    }
    lop_rules_free(other);
    free((void *)row);
    free(table);
    t_group("in another order");
}

/* A row that names more comes first wherever it stands; a tier overrules that. */
static void first_of_two(void) {
    for (int tier = LOP_VETO; tier <= LOP_BY_DENSE; tier++) {
        lop_rule two[2] = {
            {"whole", LOP_PUSH, "(view@m ?a)", "?a", NULL, NULL, "", LOP_OF_KIND},
            {"view", LOP_PUSH, "(view@m (view@n ?a))", "(view@m ?a)", NULL, NULL, "", LOP_OF_KIND}};
        two[0].tier = (lop_tier)tier;
        const lop_node *a =
            t_one_of(&w, "dense", NULL, t_array(&w, LOP_f64, 2, 2, (int64_t[]){3, 3}));
        const lop_attr turn = {.i = {LOP_T, 0, 0, 0}};
        a = t_one_of(&w, "view", &turn, t_one_of(&w, "view", &turn, a));
        lop_rules *r = NULL;
        t_check(lop_rules_new(&w.ctx, two, 2, &r, &w.err) == LOP_OK, "%s", w.err.text);
        char *text = r ? becomes(r, a) : NULL;
        t_check(text && lop_rules_fired(r, 1) == (tier < LOP_OF_KIND ? 0 : 1), "tier %d: %s", tier,
                text);
        lop_free(&w.ctx, text);
        lop_rules_free(r);
        lop_node_unref(a);
    }
    world_leaves(&w);
    t_group("tiers");
}

int main(int argc, char **argv) {
    world_open(&w, (uint64_t)t_number(argc, argv, 1, 3));
    closed_by_the_first_row();
    made_twice();
    first_of_two();
    in_another_order();
    added_and_removed();
    many();
    explored();
    told();
    bounded();
    tried();
    without_memory();
    plans_without_memory();
    world_close(&w, "test_ruleset");
    t_group("memory");
    return t_end();
}
