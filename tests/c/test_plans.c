/* test_plans.c: plans by structure. Two expressions have one signature exactly when their texts
 * agree with the leaves numbered by first appearance; the plan of one run on the leaves of the
 * other gives the bits and the keys that the other's own plan gives. */
#include "plan/plan_print.h"
#include "plan/plan_cache.h"
#include "gen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static world w;
static lop_plans plans;

static const lop_node *random_value(uint64_t state, int depth) {
    w.rand.rng.state = state;
    gen g = {.w = &w, .dtype = LOP_f64, .views = true, .exprs = 3, .largest = 5};
    return gen_value(&g, depth);
}

/* The text with serials (behind '#') replaced by numbers of first appearance. malloc. */
static char *numbered(const lop_node *root) {
    char *text = lop_dump(root, 0);
    char *out = text ? malloc(3 * strlen(text) + 1) : NULL, *to = out;
    unsigned long long seen[256];
    int n = 0;
    if (!out) abort();
    for (const char *p = text; *p;) {
        *to++ = *p++;
        if (p[-1] != '#') continue;
        char *end;
        unsigned long long serial = strtoull(p, &end, 10);
        int k = 0;
        while (k < n && seen[k] != serial) k++;
        if (k == n && n < 256) seen[n++] = serial;
        to += sprintf(to, "%d", k);
        p = end;
    }
    *to = 0;
    lop_free(&w.ctx, text);
    return out;
}

/* Of an opened signature, which is opened anew. */
static bool signed_by(const lop_node *root, lop_sign *s) {
    lop_sign_close(s);
    lop_sign_open(s, &w.ctx);
    return lop_sign_node(s, root);
}
static bool same_sign(const lop_sign *a, const lop_sign *b) {
    return a->hash == b->hash && a->n == b->n && !memcmp(a->word, b->word, (size_t)a->n * 8);
}

/* Two of three start at one point of the generator's stream, the third goes deeper from there. */
static void signatures(void) {
    static lop_sign sign[2];
    int alike = 0, apart = 0;
    char *text[2] = {NULL, NULL};
    bool fits[2] = {false, false};
    for (int i = 0; i < 2; i++) lop_sign_open(&sign[i], &w.ctx);
    for (int i = 0; i < 6000; i++) {
        const lop_node *root = random_value((uint64_t)(i / 3) * 77 + 1, i / 3 % 3 + (i % 3 == 2));
        int k = i & 1;
        free(text[k]);
        text[k] = root ? numbered(root) : NULL;
        fits[k] = root && signed_by(root, &sign[k]);
        if (fits[0] && fits[1]) {
            bool same = !strcmp(text[0], text[1]);
            *(same ? &alike : &apart) += 1;
            t_check(same == same_sign(&sign[0], &sign[1]), "%s\n  and\n  %s", text[0], text[1]);
        }
        lop_node_unref(root);
        world_leaves(&w);
    }
    for (int i = 0; i < 2; i++) lop_sign_close(&sign[i]);
    free(text[0]);
    free(text[1]);
    t_check(alike > 100 && apart > 100, "%d alike, %d apart", alike, apart);
    t_group("signatures");
}

/* `plan` as made for the leaves of `sign`. Keys into `key`. */
static void run_as(const lop_shared *known, const lop_sign *sign, placed *out, uint64_t *key) {
    lop_plan as = *known->plan;
    enum { MOST = 256 };
    lop_leaf leaf[MOST];
    uint64_t serial[MOST];
    if (!t_check(as.nleaf <= MOST, "%d leaves", as.nleaf)) return;
    if (as.nleaf) memcpy(leaf, as.leaf, (size_t)as.nleaf * sizeof *leaf);
    for (int i = 0; i < as.nleaf; i++) {
        t_check(known->number[i] >= 0, "a leaf of the plan is not in the expression");
        serial[i] = leaf[i].serial = sign->serial[known->number[i] < 0 ? 0 : known->number[i]];
    }
    t_check(lop_plan_keys(&as, serial, NULL, key) == LOP_OK, "no keys");
    as.leaf = leaf;
    as.key = key;
    lop_status st = t_exec(&w, &as, 0, out, NULL);
    t_check(st == LOP_OK || st == LOP_SINGULAR, "%s", w.err.text);
}

static void exchanged(void) {
    static lop_sign sa, sb;
    int done = 0, derived = 0;
    w.options.fft_min = 1;
    lop_sign_open(&sa, &w.ctx);
    lop_sign_open(&sb, &w.ctx);
    for (uint64_t i = 1; i < 1500; i++) {
        const lop_node *a = random_value(i * 991, (int)(i % 4)),
                       *b = random_value(i * 991, (int)(i % 4));
        lop_plan *pa = NULL, *pb = NULL;
        placed ya = {0}, yb = {0};
        uint64_t *key = NULL;
        if (!a || !b || !signed_by(a, &sa) || !signed_by(b, &sb)) goto next;
        if (!same_sign(&sa, &sb)) goto next; /* the second had fewer leaves to draw from */
        if (lop_plan_make(&w.ctx, w.rules, &w.options, a, &pa, &w.err) != LOP_OK) goto next;
        if (lop_plan_make(&w.ctx, w.rules, &w.options, b, &pb, &w.err) != LOP_OK) goto next;
        lop_plans_put(&plans, &sa, pa);
        const lop_shared *known = lop_plans_get(&plans, &sb);
        if (!t_check(known && known->plan == pa, "not found")) goto next;
        key = calloc((size_t)lop_plan_nkeys(pa) + 1, sizeof *key);
        if (!key) abort();
        run_as(known, &sb, &ya, key);
        lop_store_clear(&w.store);
        t_check(pa->nderive == pb->nderive &&
                    !memcmp(key, pb->key ? pb->key : key, (size_t)pa->nderive * sizeof *key),
                "keys differ");
        if (t_exec(&w, pb, 0, &yb, NULL) == LOP_OK)
            t_check(ya.bytes == yb.bytes && !memcmp(ya.block, yb.block, ya.bytes), "other bits");
        done++;
        derived += pa->nderive > 0;
    next:
        placed_free(&ya);
        placed_free(&yb);
        free(key);
        lop_plan_unref(pa);
        lop_plan_unref(pb);
        lop_node_unref(a);
        lop_node_unref(b);
        lop_store_clear(&w.store);
        world_leaves(&w);
    }
    w.options.fft_min = 0;
    lop_sign_close(&sa);
    lop_sign_close(&sb);
    t_check(done > 500 && derived > 20, "%d exchanged, %d with derived values", done, derived);
    t_group("plans exchanged");
}

static const lop_node *small_leaf(void) {
    const lop_shape shape = {2, {2, 2}};
    const lop_node *x;
    if (lop_node_leaf(&w.ctx, LOP_f64, 2, &shape, &x, &w.err) != LOP_OK) abort();
    return x;
}

/* A sum of n multiples of 2 x 2 arrays, each by a number of its own, the last array that of place
 * `twin`. Owned. */
static const lop_node *multiples(int n, int twin) {
    const lop_node *sum = NULL, *first = NULL;
    for (int i = 0; i < n; i++) {
        const lop_node *x = i == n - 1 && first ? lop_node_ref(first) : small_leaf();
        if (i == twin) first = lop_node_ref(x);
        const lop_attr by = lop_attr_coef(2 + i, 0);
        const lop_node *scaled = NULL;
        if (lop_node_make(&w.ctx, &lop_op_scale, &by, 1, &x, NULL, &scaled, &w.err) != LOP_OK)
            abort();
        lop_node_unref(x);
        sum = sum ? t_two_of(&w, "add", sum, scaled) : scaled;
    }
    lop_node_unref(first);
    return sum;
}

/* Sums of as many leaves and numbers as lie in a signature, and of more, to the last that it takes;
 * which of the arrays stands twice is told. */
static void many(void) {
    static const int sizes[] = {1,   2,   LOP_SIGN_FEW - 1, LOP_SIGN_FEW, LOP_SIGN_FEW + 1, 49,
                                300, 2000};
    static lop_sign s, t;
    lop_sign_open(&s, &w.ctx);
    lop_sign_open(&t, &w.ctx);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int n = sizes[i];
        const lop_node *a = multiples(n, -1), *b = multiples(n, -1), *c = multiples(n, n / 2);
        t_check(signed_by(a, &s) && signed_by(b, &t) && same_sign(&s, &t) && s.leaves == n,
                "sums of %d are signed alike", n);
        t_check(n < 3 || (signed_by(c, &t) && !same_sign(&s, &t) && t.leaves == n - 1),
                "one of %d arrays stands twice", n);
        for (int k = 0; k < s.leaves; k++)
            if (!t_check(lop_sign_leaf(&s, s.serial[k]) == k, "leaf %d of %d", k, n)) break;
        t_check(lop_sign_leaf(&s, UINT64_MAX) == -1, "a leaf that is not there");
        lop_sign_close(&t);
        lop_sign_open(&t, &w.ctx);
        t.by_class = true;
        t_check(lop_sign_node(&t, a) && t.numbers == n, "numbers of %d", n);
        int64_t reached = 1;
        for (int64_t at = 0; reached && at < 40; at++) {
            lop_sign_close(&t);
            lop_sign_open(&t, &w.ctx);
            t.by_class = true;
            w.memory = (failing){.fail_at = at};
            const bool fits = lop_sign_node(&t, a);
            reached = w.memory.count > at;
            w.memory.fail_at = -1;
            t_check(fits == !reached, "allocation %lld of a sum of %d", (long long)at, n);
        }
        lop_node_unref(a);
        lop_node_unref(b);
        lop_node_unref(c);
        world_leaves(&w);
    }
    const lop_node *sum = small_leaf();
    for (int i = 1; i < LOP_SIGN_LEAVES; i++) sum = t_two_of(&w, "add", sum, small_leaf());
    t_check(signed_by(sum, &s), "as many leaves as have a number");
    sum = t_two_of(&w, "add", sum, small_leaf());
    t_check(!signed_by(sum, &s), "one more");
    lop_node_unref(sum);
    world_leaves(&w);
    lop_sign_close(&s);
    lop_sign_close(&t);
    t_group("many leaves");
}

/* One leaf twice is another expression than two leaves; what stands twice costs a word; a table
 * that cannot have memory stays as it is. */
static void edges(void) {
    static lop_sign s, t;
    const lop_node *x = t_array(&w, LOP_f64, 2, 2, (int64_t[]){2, 2}),
                   *y = t_array(&w, LOP_f64, 2, 2, (int64_t[]){2, 2});
    const lop_node *two = t_two(&w, "add", x, y), *one = t_two(&w, "add", x, x);
    lop_sign_open(&s, &w.ctx);
    lop_sign_open(&t, &w.ctx);
    t_check(signed_by(two, &s) && signed_by(one, &t) && !same_sign(&s, &t), "x + x is not x + y");
    const lop_node *tall = lop_node_ref(one);
    for (int i = 0; i < 200; i++) {
        const lop_node *twice = t_two(&w, "add", tall, tall);
        lop_node_unref(tall);
        tall = twice;
    }
    t_check(signed_by(tall, &t) && t.n < 1000, "doubled 200 times: %d words", t.n);
    lop_plan *plan = NULL;
    t_check(lop_plan_make(&w.ctx, w.rules, &w.options, two, &plan, &w.err) == LOP_OK, "plan");
    for (int64_t i = 0; i < 3 && plan; i++) {
        lop_plans_clear(&plans);
        w.memory = (failing){.fail_at = i};
        lop_plans_put(&plans, &s, plan);
        w.memory.fail_at = -1;
        t_check((lop_plans_get(&plans, &s) != NULL) == (i == 2), "allocation %lld", (long long)i);
    }
    lop_sign_close(&s);
    lop_sign_close(&t);
    lop_plan_unref(plan);
    lop_node_unref(x);
    lop_node_unref(y);
    lop_node_unref(one);
    lop_node_unref(two);
    lop_node_unref(tall);
    world_leaves(&w);
    t_group("edges");
}

/* Plans take no more than their bound: those that were used longest ago go; one above it stays
 * alone. */
static void bounded(void) {
    enum { COUNT = 20 };
    static lop_sign s[COUNT];
    lop_plan *plan = NULL;
    const lop_node *root = random_value(7919, 1);
    lop_plans_clear(&plans);
    for (int i = 0; i < COUNT; i++) {
        lop_sign_open(&s[i], &w.ctx);
        t_check(lop_sign_word(&s[i], (uint64_t)i), "no room");
    }
    if (t_check(root && lop_plan_make(&w.ctx, w.rules, &w.options, root, &plan, &w.err) == LOP_OK,
                "no plan")) {
        const int kept = plan->nstep;
        plan->nstep = (int)(LOP_PLANS_BYTES / 8 / (int64_t)(sizeof *plan->step + sizeof(lop_node)));
        for (int i = 0; i < COUNT; i++) lop_plans_put(&plans, &s[i], plan);
        int there = 0;
        for (int i = 0; i < COUNT; i++) there += lop_plans_get(&plans, &s[i]) != NULL;
        t_check(there >= 4 && there <= 8 && plans.bytes <= LOP_PLANS_BYTES, "%d of them", there);
        t_check(lop_plans_get(&plans, &s[COUNT - 1]) != NULL, "the last is gone");
        plan->nstep *= 16;
        lop_plans_put(&plans, &s[0], plan);
        there = 0;
        for (int i = 0; i < COUNT; i++) there += lop_plans_get(&plans, &s[i]) != NULL;
        t_check(there == 1 && lop_plans_get(&plans, &s[0]), "%d beside one above the bound", there);
        plan->nstep = kept;
    }
    for (int i = 0; i < COUNT; i++) lop_sign_close(&s[i]);
    lop_plans_clear(&plans);
    t_check(plans.bytes == 0, "%lld bytes of none", (long long)plans.bytes);
    lop_plan_unref(plan);
    lop_node_unref(root);
    world_leaves(&w);
    t_group("bounded");
}

/* Plans whose hashes lead to one place: as many as there are neighbours stay, the one that was used
 * longest ago goes first. */
static void neighbours(void) {
    static lop_sign s[LOP_PLANS_ALIKE + 1];
    lop_plan *plan = NULL;
    const lop_node *root = random_value(7919, 1);
    lop_plans_clear(&plans);
    for (int i = 0; i <= LOP_PLANS_ALIKE; i++) lop_sign_open(&s[i], &w.ctx);
    if (!root || lop_plan_make(&w.ctx, w.rules, &w.options, root, &plan, &w.err) != LOP_OK) {
        t_check(false, "no plan");
    } else {
        for (int i = LOP_PLANS_ALIKE; i >= 0; i--) {
            if (!t_check(signed_by(root, &s[i]) && lop_sign_word(&s[i], (uint64_t)i), "no room"))
                break;
            s[i].hash = 5;
            if (i < LOP_PLANS_ALIKE) {
                lop_plans_get(&plans, &s[i]);
                lop_plans_put(&plans, &s[i], plan);
            }
        }
        for (int i = 0; i < LOP_PLANS_ALIKE; i++)
            t_check(lop_plans_get(&plans, &s[i]) != NULL, "%d is gone", i);
        t_check(lop_plans_get(&plans, &s[0]) != NULL, "the first is gone");
        lop_plans_put(&plans, &s[LOP_PLANS_ALIKE], plan);
        for (int i = 0; i <= LOP_PLANS_ALIKE; i++)
            t_check((lop_plans_get(&plans, &s[i]) != NULL) == (i != 1), "of %d", i);
    }
    for (int i = 0; i <= LOP_PLANS_ALIKE; i++) lop_sign_close(&s[i]);
    lop_plan_unref(plan);
    lop_node_unref(root);
    world_leaves(&w);
    t_group("neighbours");
}

int main(int argc, char **argv) {
    world_open(&w, (uint64_t)t_number(argc, argv, 1, 5));
    lop_plans_init(&plans, &w.ctx);
    signatures();
    exchanged();
    edges();
    many();
    bounded();
    neighbours();
    lop_plans_clear(&plans);
    world_close(&w, "test_plans");
    t_group("memory");
    return t_end();
}
