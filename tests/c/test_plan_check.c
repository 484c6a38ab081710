/* test_plan_check.c: what lop_plan_check is to find. Real plans are damaged, one field at a time,
 * at every place where the damage fits; the check must refuse each and say why. Whole plans pass.
 *
 * Every rule of the check stands here once at least: a row of `damages` that met no place in any
 * scene is a failure too. */
#include "gen.h"

#include "plan/plan_print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static world w;

#define A(n) "(dense:0 (array:float64[20,20]#" #n "))"
#define X(n) "(array:float64[20,20]#" #n ")"
#define B(n, s) "(dense:0 (array:float64[" s "]#" #n "))"
static const char *const scenes[] = {
    /* a product that accumulates; a difference made of a sum; a sum that stays; in place */
    "(add (add " X(1) " (scale:0.5,0,0,3,0 (apply " A(2) X(3) "))) (apply " A(4) X(5) "))",
    "(add (scale:0.5,0,0,3,0 (mul " X(1) X(2) ")) (scale:-1,0,-1,2,0 (mul " X(1) X(3) ")))",
    "(add (mul (array:float64[5,4]#1) (array:float64[5,4]#2)) "
    "(scale:2,0,2,2,0 (mul (array:float64[5,4]#3) (array:float64[5,4]#4))))",
    "(apply (prod (prod " A(1) A(2) ") (prod " A(3) A(4) ")) " X(5) ")",
    /* two ways of one solve; one in another branch; kept values */
    "(solve (dense:3 (array:float64[20,20]#1)) " X(2) ")",
    "(solve (dense:3 (array:float64[3,20,20]#1)) (array:float64[3,20,2]#2))",
    "(solve (sum (prod (view:1 " B(1, "40,20") ") " B(
        1, "40,20") ") (scaled:2,0,2,2,0 (identity:"
                    "float64[20,20]))) (mul (array:float64[20,2]#3) (array:float64[20,2]#4)))",
    "(solve (sum (dense:3 (array:float64[100,100]#1)) (dense:3 (array:float64[100,100]#2))) "
    "(array:float64[100,2]#3))",
    "(scaledet:0,0,0,11 (sum (prod (view:1 " B(1, "40,20") ") " B(
        1, "40,20") ") (scaled:2,0,2,2,0 "
                    "(identity:float64[20,20]))))",
    "(add (solve " A(1) X(2) ") (apply (inverse (sum (lowrank " B(3, "20,1")
        B(4, "20,1") ") "
                     "(scaled:11,0,11,3,0 (identity:float64[20,20])))) (array:float64[20,20]#5)))",
    "(apply (power:2 (inverse (sum (lowrank " B(3, "20,1")
        B(4, "20,1") ") "
                     "(scaled:11,0,11,3,0 (identity:float64[20,20]))))) (array:float64[20,2]#5))",
    "(apply (inverse (toeplitz (array:float64[20]#1/1) (array:float64[20]#2/1))) (mul "
    "(array:float64[20,2]#3) (array:float64[20,2]#4)))",
    /* blocks in place and placed, several results, axes, transposes, few of many equal blocks */
    "(todense:0,0,0,0 (block:2,2 (prod " A(1) A(2) ") " A(3) A(4) " (prod " A(5) A(6) ")))",
    /* a product that accumulates, seen transposed */
    "(add " X(1) " (swap:1 (apply " A(2) " " X(3) ")))",
    /* slot 0 is a temporary */
    "(add (todense:0,0,0,11 (full:2,0,2,3,0:float64[20,20]~3)) (mul " X(1) X(2) "))",
    "(todense:0,0,0,0 (blockdiag " A(1) A(2) "))",
    "(todense:0,0,0,0 (block:2,1 (elementwise " A(1) A(2) ") (inverse (elementwise " A(1)
        A(2) "))))",
    "(todense:0,0,0,0 (joint (joint (prod " A(1) A(2) ") (prod " A(2) A(1) ")) " B(3, "20,7") "))",
    "(todense:0,0,0,0 (results:0,0,0 " B(4, "20,7") " (results:4,0,0 " A(
        3) " (results:0,0,0 (prod " A(1) A(2) ")))))",
    "(results_array (results_array (mul (array:float64[3,20,20]#1) (array:float64[3,20,20]#2)) "
    "(mul " X(3) " " X(4) ")))",
    "(apply (kron " B(1, "3,4") B(2, "5,2") B(3, "2,2") ") (array:float64[16,3]#4))",
    "(apply (view:1 (prod " B(1, "20,7")
        B(2, "7,9") ")) (apply (view:1 (part:0 " B(3, "9,20") ")) (array:float64[9,4]#4)))",
    "(todense:0,0,0,0 (sum (view:1 (prod " B(1, "20,7") B(2, "7,9") ")) (elementwise " B(3, "9,20")
        B(4, "9,20") ")))",
    "(apply (prod (dense:0 (array:float64[3,4,4]#1)) (dense:0 (array:float64[3,4,4]#2))) "
    "(array:float64[3,4,2]#3))",
    "(solve (blockdiag (dense:3 (array:float64[3,3]#1)) (dense:3 (array:float64[3,3]#2)) (dense:3 "
    "(array:float64[3,3]#3)) (dense:3 (array:float64[3,3]#4))) (array:float64[12,2]#5))",
    "(results_array (solve (lowrankupdate (tridiagonal (array:float64[19]#1/1) "
    "(array:float64[20]#2/1) (array:float64[19]#3/1)) (dense:0 (array:float64[20,2]#4)) (dense:0 "
    "(array:float64[20,2]#5))) (array:float64[20,1]#6)) (apply (view:1 (dense:0 "
    "(array:float64[20,2]#7))) (solve (lowrankupdate (tridiagonal (array:float64[19]#1/1) "
    "(array:float64[20]#2/1) (array:float64[19]#3/1)) (dense:0 (array:float64[20,2]#4)) (dense:0 "
    "(array:float64[20,2]#5))) (array:float64[20,3]#8))))",
    "(scaledet:0,0,0,11 (sum (kron (dense:3 (array:float64[2,2]#1)) (dense:3 (array:float64[2,2]"
    "#2))) (kron (dense:3 (array:float64[2,2]#3)) (dense:3 (array:float64[2,2]#1)))))",
    "(solve (sparse:0,20,20 (array:float64[60]#1/1) (array:int32[60]#2/1) (array:int32[21]#3/1)) "
    "(array:float64[20,2]#4))",
};
/* Too long to be damaged everywhere: they pass. Solves within solves, each with another way. */
static const char *const whole_scenes[] = {
    "(diagonal:0,0,0,11 (power:3 (inverse (sum (lowrank " B(1, "3,1")
        B(2, "3,1") ") (scaled:10,0,10,3,0 (identity:float64[3,3]))))))",
    "(diagonal:2,0,0,11 (power:3 (view:2 (inverse (lowrankupdate (diag (array:float64[4]#1/1)) " B(
        2, "4,2") B(3, "4,2") ")))))",
};

static lop_plan *planned(const char *text) {
    const lop_node *root = NULL;
    lop_plan *plan = NULL;
    lop_status st = lop_read(&w.ctx, text, &root, &w.err);
    if (st == LOP_OK) st = lop_plan_make(&w.ctx, w.rules, &w.options, root, &plan, &w.err);
    t_check(st == LOP_OK, "no plan: %s: %s", text, w.err.text);
    lop_node_unref(root);
    return plan;
}

/* -- a plan's fields, to be damaged and given back */

typedef struct saved {
    lop_plan plan;
    lop_slot *slot;
    lop_step *step;
    lop_leaf *leaf;
    lop_derive *derive;
    uint64_t *key;
} saved;

static void *copy_of(const void *from, size_t count, size_t size) {
    void *to = malloc(count * size + 1);
    if (!to) abort();
    if (count) memcpy(to, from, count * size);
    return to;
}

static saved save(const lop_plan *p) {
    return (saved){*p,
                   copy_of(p->slot, (size_t)p->nslot, sizeof *p->slot),
                   copy_of(p->step, (size_t)p->nstep, sizeof *p->step),
                   copy_of(p->leaf, (size_t)p->nleaf, sizeof *p->leaf),
                   copy_of(p->derive, (size_t)p->nderive, sizeof *p->derive),
                   copy_of(p->key, (size_t)lop_plan_nkeys(p), sizeof *p->key)};
}
static void restore(lop_plan *p, const saved *s) {
    *p = s->plan;
    memcpy(p->slot, s->slot, (size_t)p->nslot * sizeof *p->slot);
    memcpy(p->step, s->step, (size_t)p->nstep * sizeof *p->step);
    memcpy(p->leaf, s->leaf, (size_t)p->nleaf * sizeof *p->leaf);
    if (p->nderive) memcpy(p->derive, s->derive, (size_t)p->nderive * sizeof *p->derive);
    if (p->nderive) memcpy(p->key, s->key, (size_t)lop_plan_nkeys(p) * sizeof *p->key);
}
static void forget(saved *s) {
    free(s->slot);
    free(s->step);
    free(s->leaf);
    free(s->derive);
    free(s->key);
}

/* -- what damages look for */

static int base_of(const lop_plan *p, int slot) {
    while (p->slot[slot].alias >= 0) slot = p->slot[slot].alias;
    return slot;
}
static bool is_temp(const lop_plan *p, int slot) {
    return p->slot[slot].kind == LOP_S_TEMP && p->slot[slot].alias < 0;
}
static bool same_shape(const lop_plan *p, int a, int b) {
    return p->slot[a].core == p->slot[b].core && p->slot[a].dt == p->slot[b].dt &&
           lop_shape_equal(&p->slot[a].shape, &p->slot[b].shape);
}
static bool read_at(const lop_plan *p, int slot, int step) {
    for (int j = 1; j < p->step[step].n; j++)
        if (base_of(p, p->step[step].arg[j]) == base_of(p, slot)) return true;
    return false;
}
static int some_mask(const lop_plan *p) {
    for (int i = 0; i < p->nstep; i++)
        if (p->step[i].fail >= 0) return p->step[i].fail;
    return -1;
}
static int last_touch(const lop_plan *p, int base) {
    int last = -1;
    for (int i = 0; i < p->nstep; i++)
        if (p->step[i].run && (read_at(p, base, i) || base_of(p, p->step[i].arg[0]) == base))
            last = i;
    return last;
}

/* As a pass would leave it that drops a step it should not. */
static void remove_step(lop_plan *p, int at) {
    p->nstep--;
    for (int i = at; i < p->nstep; i++) p->step[i] = p->step[i + 1];
    for (int i = 0; i < p->nstep; i++) p->step[i].escape_to -= p->step[i].escape_to > at;
    for (int i = 0; i < p->nderive; i++) p->derive[i].step -= p->derive[i].step > at;
    for (int i = 0; i < p->nslot; i++) p->slot[i].copy_step -= p->slot[i].copy_step > at;
}

#include "test_plan_check_damages.h"

static bool names(const char *text, const char *any) {
    char one[80];
    for (size_t n; *any; any += n + (any[n] == '|')) {
        n = strcspn(any, "|");
        snprintf(one, sizeof one, "%.*s", (int)n, any);
        if (strstr(text, one)) return true;
    }
    return false;
}

static int64_t count[sizeof damages / sizeof damages[0]];

static void damage_all(lop_plan *p, const char *text) {
    const int most = p->nstep > p->nslot ? p->nstep : p->nslot;
    saved s = save(p);
    for (size_t k = 0; k < sizeof damages / sizeof damages[0]; k++)
        for (int at = 0; at < most; at++) {
            const damage *d = &damages[k];
            if (at >= (d->of_slot ? p->nslot : p->nstep)) continue;
            if (d->how(p, at)) {
                count[k]++;
                lop_err_open(&w.err);
                const lop_status st = lop_plan_check(p, LOP_PASS_PLACE, &w.err);
                t_check(st == LOP_INTERNAL && names(w.err.text, d->says),
                        "%s at %d: status %d, not '%s': %s\n    %s", d->name, at, (int)st, d->says,
                        st == LOP_OK ? "" : w.err.text, text);
                t_check(st != LOP_INTERNAL || strlen(w.err.text) < LOP_ERR_TEXT, "bounded");
            }
            restore(p, &s);
        }
    forget(&s);
}

int main(int argc, char **argv) {
    world_open(&w, (uint64_t)t_number(argc, argv, 1, 23));
    w.ctx.alike = 2;
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
        if (strstr(scenes[i], "(sparse:")) world_sparse(&w);
        lop_plan *p = planned(scenes[i]);
        if (!p) continue;
        t_check(lop_plan_check(p, LOP_PASS_PLACE, &w.err) == LOP_OK, "%s", w.err.text);
        if (getenv("LOP_TEST_VERBOSE")) {
            char *text = lop_plan_dump(p, w.rules, NULL, NULL, 100);
            printf("%s\n%s\n", scenes[i], text);
            lop_free(&w.ctx, text);
        }
        damage_all(p, scenes[i]);
        lop_plan_unref(p);
    }
    w.ctx.alike = 0; /* as outside of tests */
    for (size_t i = 0; i < sizeof whole_scenes / sizeof whole_scenes[0]; i++) {
        lop_plan *p = planned(whole_scenes[i]);
        if (p) t_check(lop_plan_check(p, LOP_PASS_PLACE, &w.err) == LOP_OK, "%s", w.err.text);
        lop_plan_unref(p);
    }
    for (size_t k = 0; k < sizeof damages / sizeof damages[0]; k++)
        t_check(count[k] > 0, "%s fits nowhere", damages[k].name);
    world_close(&w, "test_plan_check");
    t_group("damaged plans");
    return t_end();
}
