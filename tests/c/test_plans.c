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

static bool signed_by(const lop_node *root, lop_sign *s) {
    lop_sign_open(s);
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
    free(text[0]);
    free(text[1]);
    t_check(alike > 100 && apart > 100, "%d alike, %d apart", alike, apart);
    t_group("signatures");
}

/* `plan` as made for the leaves of `sign`. Keys into `key`. */
static void run_as(const lop_shared *known, const lop_sign *sign, placed *out, uint64_t *key) {
    lop_plan as = *known->plan;
    lop_leaf leaf[LOP_SIGN_LEAVES + 1];
    uint64_t serial[LOP_SIGN_LEAVES + 1];
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
        const lop_shared *known = lop_plans_get(&plans, &sb, NULL);
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
    t_check(done > 500 && derived > 20, "%d exchanged, %d with derived values", done, derived);
    t_group("plans exchanged");
}

/* One leaf twice is another expression than two leaves; a large one is not signed; a table that
 * cannot have memory stays as it is. */
static void edges(void) {
    static lop_sign s, t;
    const lop_node *x = t_array(&w, LOP_f64, 2, 2, (int64_t[]){2, 2}),
                   *y = t_array(&w, LOP_f64, 2, 2, (int64_t[]){2, 2});
    const lop_node *two = t_two(&w, "add", x, y), *one = t_two(&w, "add", x, x);
    t_check(signed_by(two, &s) && signed_by(one, &t) && !same_sign(&s, &t), "x + x is not x + y");
    const lop_node *tall = lop_node_ref(one);
    for (int i = 0; i < 200; i++) tall = t_two_of(&w, "add", tall, lop_node_ref(x));
    t_check(!signed_by(tall, &t), "too deep to be signed");
    const lop_node *many = lop_node_ref(x);
    for (int i = 1; i <= LOP_SIGN_LEAVES; i++) {
        t_check(signed_by(many, &t) && t.leaves == i, "a sum of %d leaves is signed", i);
        many = t_two_of(&w, "add", many, t_array(&w, LOP_f64, 2, 2, (int64_t[]){2, 2}));
    }
    t_check(!signed_by(many, &t), "a sum of more leaves than have a number is not");
    lop_node_unref(many);
    lop_plan *plan = NULL;
    t_check(lop_plan_make(&w.ctx, w.rules, &w.options, two, &plan, &w.err) == LOP_OK, "plan");
    for (int64_t i = 0; i < 3 && plan; i++) {
        lop_plans_clear(&plans);
        w.memory = (failing){.fail_at = i};
        lop_plans_put(&plans, &s, plan);
        w.memory.fail_at = -1;
        t_check((lop_plans_get(&plans, &s, NULL) != NULL) == (i == 2), "allocation %lld",
                (long long)i);
    }
    lop_plan_unref(plan);
    lop_node_unref(x);
    lop_node_unref(y);
    lop_node_unref(one);
    lop_node_unref(two);
    lop_node_unref(tall);
    world_leaves(&w);
    t_group("edges");
}

/* Plans whose hashes lead to one place: as many as there are neighbours stay, the one that was used
 * longest ago goes first. */
static void neighbours(void) {
    static lop_sign s[LOP_PLANS_ALIKE + 1];
    lop_plan *plan = NULL;
    const lop_node *root = random_value(7919, 1);
    lop_plans_clear(&plans);
    if (!root || !signed_by(root, &s[0]) ||
        lop_plan_make(&w.ctx, w.rules, &w.options, root, &plan, &w.err) != LOP_OK) {
        t_check(false, "no plan");
    } else {
        for (int i = LOP_PLANS_ALIKE; i >= 0; i--) {
            s[i] = s[0];
            if (!t_check(lop_sign_word(&s[i], (uint64_t)i), "no room")) break;
            s[i].hash = 5;
            if (i < LOP_PLANS_ALIKE) {
                lop_plans_get(&plans, &s[i], NULL);
                lop_plans_put(&plans, &s[i], plan);
            }
        }
        for (int i = 0; i < LOP_PLANS_ALIKE; i++)
            t_check(lop_plans_get(&plans, &s[i], NULL) != NULL, "%d is gone", i);
        t_check(lop_plans_get(&plans, &s[0], NULL) != NULL, "the first is gone");
        lop_plans_put(&plans, &s[LOP_PLANS_ALIKE], plan);
        for (int i = 0; i <= LOP_PLANS_ALIKE; i++)
            t_check((lop_plans_get(&plans, &s[i], NULL) != NULL) == (i != 1), "of %d", i);
    }
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
    neighbours();
    lop_plans_clear(&plans);
    world_close(&w, "test_plans");
    t_group("memory");
    return t_end();
}
