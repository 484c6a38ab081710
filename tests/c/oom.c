/* oom.c [rounds [seed]]: everything that allocates, with each allocation failing in turn, once
 * alone and once with all that follow. Afterwards nothing may be alive that was not before, the
 * status must be NOMEM where the result is missing, and what did succeed must still be right.
 *
 * A scenario runs from the first allocation to the last release: rules, text, nodes, closing,
 * rewriting, planning, frames, prepare steps, the store. Leaves' and results' memory is the test's
 * own. */
#include "plan/plan_cache.h"
#include "rewrite/assumptions.h"
#include "plan/plan_print.h"
#include "expr/vjp.h"
#include "gen.h"
#include "oom_inverses.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static world w;

/* A text, the interpreter's answer not needed: agreement with an undisturbed run is. */
typedef struct scene {
    char *text;
    placed want;
    bool has_want;
} scene;

static bool fine(lop_status st) { return st == LOP_OK || st == LOP_NOMEM; }

/* Closing what could close: every operator node with operator children, taken apart and made again.
 */
static lop_status close_all(const lop_node *node) {
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < node->n; i++) st = close_all(node->child[i]);
    if (st != LOP_OK || node->op->cls != LOP_OPERATOR || node->n == 0) return st;
    const lop_node *closed = NULL;
    int rule;
    st = lop_close(w.rules, &w.ctx, node->op, &node->attr, node->n, node->child, &closed, &rule,
                   &w.err);
    t_check(st == LOP_NOMATCH || (st == LOP_OK) == (closed != NULL), "close leaves a node behind");
    lop_node_unref(closed);
    return st == LOP_NOMATCH ? LOP_OK : st;
}

static lop_status dump_all(const lop_node *root, const lop_plan *plan) {
    char *text = lop_dump(root, 0),
         *listing = text ? lop_plan_dump(plan, w.rules, NULL, NULL, 100) : NULL;
    lop_status st = text && listing ? LOP_OK : lop_fail(&w.err, LOP_NOMEM, NULL);
    lop_free(&w.ctx, text);
    lop_free(&w.ctx, listing);
    return st;
}

/* From text to result, twice with one store. */
static lop_status play(const scene *s, int layout) {
    const lop_node *root = NULL;
    lop_plan *plan = NULL;
    placed out = {.block = NULL};
    static lop_sign sign;
    lop_plans plans;
    lop_plans_init(&plans, &w.ctx);
    lop_sign_open(&sign, &w.ctx);
    sign.by_class = true;
    lop_status st = lop_read(&w.ctx, s->text, &root, &w.err);
    if (st == LOP_OK) st = close_all(root);
    const bool known = st == LOP_OK && lop_sign_node(&sign, root);
    if (st == LOP_OK && known)
        st = lop_plans_make(&plans, &sign, w.rules, &w.options, root, &plan, &w.err);
    else if (st == LOP_OK)
        st = lop_plan_make(&w.ctx, w.rules, &w.options, root, &plan, &w.err);
    lop_sign_close(&sign);
    t_check((st == LOP_OK) == (plan != NULL), "no plan and no error, or both");
    if (st == LOP_OK) st = lop_plan_check(plan, LOP_PASS_PLACE, &w.err);
    if (st == LOP_OK) st = dump_all(root, plan);
    for (int turn = 0; turn < 2 && st == LOP_OK; turn++) {
        st = t_exec(&w, plan, layout, &out, NULL);
        if (st == LOP_OK && s->has_want) {
            t_check(lop_shape_equal(&out.buf.shape, &s->want.buf.shape) &&
                        out.bytes == s->want.bytes && !memcmp(out.block, s->want.block, out.bytes),
                    "another result after a failure: %s", s->text);
        }
        placed_free(&out);
    }
    lop_plan_unref(plan);
    lop_node_unref(root);
    return st;
}

/* All allocations of one scene. */
static int64_t disturb(const scene *s, int layout) {
    int64_t alive = w.ctx.live, i = 0;
    for (int all = 0; all < 2; all++)
        for (i = 0;; i++) {
            w.memory = (failing){.fail_at = i, .all = all != 0};
            w.err = (lop_err){.step = -1};
            lop_status st = play(s, layout);
            bool reached = w.memory.count > i;
            w.memory.fail_at = -1;
            lop_store_clear(&w.store);
            bool ok = t_check(fine(st), "allocation %lld of %s: status %s: %s", (long long)i,
                              s->text, lop_status_name(st), w.err.text);
            ok = t_check(w.ctx.live == alive, "allocation %lld of %s: %lld blocks lost",
                         (long long)i, s->text, (long long)(w.ctx.live - alive)) &&
                 ok;
            ok = t_check(st != LOP_NOMEM || w.err.text[0] || !reached, "no memory and no text: %s",
                         s->text) &&
                 ok;
            if (!reached || !ok) break;
        }
    return i;
}

/* The result of what is read again: text has lost what was shared, which other steps may use. */
static void open_scene(scene *s, const lop_node *root, int layout) {
    const lop_node *read = NULL;
    s->has_want = false;
    s->text = lop_dump(root, 0);
    lop_status st = s->text ? lop_read(&w.ctx, s->text, &read, &w.err) : LOP_NOMEM;
    if (st == LOP_OK) st = t_run(&w, read, layout, &s->want);
    lop_node_unref(read);
    s->has_want = st == LOP_OK;
    if (!s->has_want) placed_free(&s->want);
    lop_store_clear(&w.store);
}
static void close_scene(scene *s) {
    if (s->has_want) placed_free(&s->want);
    lop_free(&w.ctx, s->text);
}

/* -- what always has to be there */

static const lop_node *square(lop_dtype dt, int64_t n) {
    return t_one_of(&w, "dense", NULL, t_array(&w, dt, 2, 2, (int64_t[]){n, n}));
}
static const lop_node *operand(int64_t n) { return t_array(&w, LOP_f64, 2, 2, (int64_t[]){n, 2}); }

static const lop_node *bordered(bool solve) {
    const lop_attr shape = t_ints(2, 2, 0, 0);
    const lop_node *f[4] = {t_one_of(&w, "diag", NULL, t_array(&w, LOP_f64, 1, 1, (int64_t[]){2})),
                            square(LOP_f64, 2), square(LOP_f64, 2), square(LOP_f64, 2)};
    const lop_node *a = t_node(&w, "block", &shape, 4, f);
    for (int i = 0; i < 4; i++) lop_node_unref(f[i]);
    return solve ? t_two_of(&w, "solve", a, operand(4)) : t_one_of(&w, "scaledet", NULL, a);
}

/* Kron + I of two that are not Hermitian, by Schur forms. */
static const lop_node *stein(void) {
    const lop_node like = {
        .shape = {.ndim = 2, .dim = {6, 6}}, .dtype = LOP_f64, .weak = LOP_WEAK, .core = 2};
    const lop_node *eye = NULL,
                   *kron = t_two_of(&w, "kron", square(LOP_f64, 3), square(LOP_f64, 2));
    if (lop_node_make(&w.ctx, t_op("identity"), NULL, 0, NULL, &like, &eye, &w.err) != LOP_OK)
        eye = NULL;
    return t_two_of(&w, "solve", t_two_of(&w, "sum", kron, eye), operand(6));
}

/* Kron + Kron of four that are not Hermitian. */
static const lop_node *two_krons(bool solve) {
    const lop_node *k[2];
    for (int i = 0; i < 2; i++) k[i] = t_two_of(&w, "kron", square(LOP_f64, 2), square(LOP_f64, 2));
    const lop_node *a = t_two_of(&w, "sum", k[0], k[1]);
    return solve ? t_two_of(&w, "solve", a, operand(4)) : t_one_of(&w, "scaledet", NULL, a);
}

/* A sparse matrix beside a low rank: its border stands by. */
static const lop_node *beside_thin(bool solve) {
    const lop_node *f[3] = {NULL};
    if (t_op("sparse")->random(&w.rand, 4, 4, LOP_f64, &f[0]) != LOP_OK) return NULL;
    for (int i = 1; i < 3; i++)
        f[i] = t_one_of(&w, "dense", NULL, t_array(&w, LOP_f64, 2, 2, (int64_t[]){4, 1}));
    const lop_node *a = t_node(&w, "lowrankupdate", NULL, 3, f);
    for (int i = 0; i < 3; i++) lop_node_unref(f[i]);
    return solve ? t_two_of(&w, "solve", a, operand(4)) : t_one_of(&w, "scaledet", NULL, a);
}

/* Sums of products with three inverses, between inverses. */
static const lop_node *between_sums(bool entries) {
    gen g = {.w = &w, .dtype = LOP_f64, .solves = true, .largest = 3};
    return gen_between_sparse(&g, entries ? "entries-between-sums" : "trace-between-sums");
}

/* The trace of a product of sums of sparse matrices. */
static const lop_node *sparse_product(void) {
    gen g = {.w = &w, .dtype = LOP_f64, .solves = true, .largest = 3};
    return gen_sparse_product(&g, "trace-sparse-product");
}

/* Sparse rows beside two inverses; blocks of products of blocks, and beside what is thin. */
static const lop_node *parts_between(int which) {
    static const char *const rules[] = {"diagonal-rows-between-sparse", "entries-by-blocks",
                                        "entries-expanded", "entries-inverse-view-update"};
    gen g = {.w = &w, .dtype = LOP_f64, .solves = true, .largest = 3};
    return which ? gen_own_blocks(&g, rules[which]) : gen_between_sparse(&g, rules[0]);
}

/* What products with inverses of a Kron and a low rank mean for a factor of the Kron. */
static const lop_node *partials(int which) {
    static const char *const rules[] = {"partial-expanded", "partial-krons", "partial-turned",
                                        "partial-product"};
    gen g = {.w = &w, .dtype = LOP_f64, .solves = true, .views = true, .largest = 3};
    return gen_partial(&g, rules[which]);
}

/* What weighted diagonals of inverses and blocks of bands' inverses mean for what they are made of.
 */
static const lop_node *read_off(int which) {
    gen g = {.w = &w, .dtype = LOP_f64, .solves = true, .largest = 3};
    switch (which) {
    case 0: return gen_between_alike(&g, "sums-between-toeplitz-weights");
    case 1: return gen_near_band_inverse(&g);
    case 2: return gen_diagonal_of_partial(&g);
    case 3: return gen_sums_expanded(&g);
    case 4: return gen_between_weights(&g, "partial-between-spectral");
    case 5: return gen_between_weights(&g, "trace-between-spectral");
    case 6: return gen_inverse_band(&g);
    case 7: return gen_between_bands(&g, "diagonal-by-between-bands");
    case 8: return gen_toeplitz_words(&g, "sums-toeplitz-words");
    case 9: return gen_toeplitz_words(&g, "diagonal-toeplitz-words");
    default: return gen_toeplitz_words(&g, "trace-toeplitz-words");
    }
}

/* Spectrum; factor; a batch that falls back; Kron; a workspace beyond the frame's own room. */
/* A product with a BlockDiag of the later two of three matrices of a stack. */
static const lop_node *of_stack(void) {
    const lop_node *stack = t_one_of(&w, "dense", NULL,
                                     t_array(&w, LOP_f64, 2, 3, (int64_t[]){3, 2, 2})),
                   *f[2];
    for (int i = 0; i < 2; i++) {
        const lop_attr at = t_ints(2, 1 + i, 1, -1);
        f[i] = t_one_of(&w, "sliced", &at, lop_node_ref(stack));
    }
    const lop_node *all = t_node(&w, "blockdiag", NULL, 2, f);
    lop_node_unref(f[0]);
    lop_node_unref(f[1]);
    lop_node_unref(stack);
    return t_two_of(&w, "apply", all, operand(4));
}

static const lop_node *fixed(int which) {
    const lop_node *f[3], *a = NULL;
    lop_attr pos = t_ints(LOP_ASSUME_POSITIVE, 0, 0, 0);
    switch (which) {
    case 0:
        if (t_op("toeplitz")->random(&w.rand, 900, 900, LOP_f64, &a) != LOP_OK) return NULL;
        return t_two_of(&w, "apply", a, operand(900));
    case 1: return t_two_of(&w, "solve", square(LOP_f64, 5), operand(5));
    case 2:
        a = t_array(&w, LOP_f64, 2, 3, (int64_t[]){3, 4, 4}); /* random: indefinite */
        return t_two_of(&w, "solve", t_one_of(&w, "dense", &pos, a), operand(4));
    case 3:
        for (int i = 0; i < 3; i++) f[i] = square(LOP_c128, 2 + i);
        a = t_node(&w, "kron", NULL, 3, f);
        for (int i = 0; i < 3; i++) lop_node_unref(f[i]);
        return t_two_of(&w, "apply", a, operand(24));
    case 4:
        return t_two_of(&w, "apply", t_two_of(&w, "prod", square(LOP_f64, 40), square(LOP_f32, 40)),
                        operand(40));
    case 5: /* by Schur forms */
        a = t_two_of(&w, "kronsum", square(LOP_f64, 3), square(LOP_f64, 2));
        return t_two_of(&w, "solve", a, operand(6));
    case 6:
    case 7: /* a pencil at each place; an assumption does not hold: the fallback branch */
        for (int i = 0; i < 3; i++)
            f[i] = t_one_of(&w, "dense", &pos, t_array(&w, LOP_f64, 2, 2, (int64_t[]){2, 2}));
        a = t_two_of(&w, "sum", t_two(&w, "kron", f[0], f[1]), t_two(&w, "kron", f[2], f[0]));
        for (int i = 0; i < 3; i++) lop_node_unref(f[i]);
        return which == 6 ? t_two_of(&w, "solve", a, operand(4))
                          : t_one_of(&w, "scaledet", NULL, a);
    case 10: return stein();
    case 11:
    case 12: return two_krons(which == 11);
    case 8:
    case 9: return bordered(which == 8);
    case 47:
    case 48: return beside_thin(which == 47);
    case 49:
    case 50: return between_sums(which == 49);
    case 51: return sparse_product();
    case 52:
    case 53:
    case 54:
    case 55: return parts_between(which - 52);
    case 56: return of_inverses(&w, 34);
    case 57: return of_stack();
    case 58:
    case 59:
    case 60:
    case 61: return partials(which - 58);
    case 62:
    case 63:
    case 64:
    case 65:
    case 66:
    case 67:
    case 68: return read_off(which - 62);
    case 69: return gen_circulant_fraction(&w);
    case 70: return read_off(7);
    case 71:
    case 72:
    case 73: return gen_of_generators(&w, which - 71);
    case 74:
    case 75: return of_inverses(&w, which - 39);
    case 76:
    case 77:
    case 78: return read_off(which - 68);
    default: return of_inverses(&w, which - 13);
    }
}

static void rules_alone(void) {
    for (int64_t i = 0;; i++) {
        int64_t alive = w.ctx.live;
        lop_rules *rules = NULL;
        w.memory = (failing){.fail_at = i};
        lop_status st = lop_rules_new(&w.ctx, lop_rule_table, lop_rule_count, &rules, &w.err);
        bool reached = w.memory.count > i;
        w.memory.fail_at = -1;
        t_check(fine(st) && (st == LOP_OK) == (rules != NULL), "rules: %s", w.err.text);
        lop_rules_free(rules);
        t_check(w.ctx.live == alive, "rules, allocation %lld: %lld blocks lost", (long long)i,
                (long long)(w.ctx.live - alive));
        if (!reached) break;
    }
    t_group("rules");
}

/* Random instances of every kind, as the batteries make them. */
static void instances_alone(void) {
    for (int id = 0; id < lop_nops(); id++)
        for (int64_t i = 0; lop_op_at(id)->random; i++) {
            const lop_node *a = NULL;
            int64_t alive = w.ctx.live;
            w.memory = (failing){.fail_at = i};
            lop_status st = lop_op_at(id)->random(&w.rand, 3, 3, LOP_f64, &a);
            bool reached = w.memory.count > i;
            w.memory.fail_at = -1;
            if (st == LOP_UNABLE) break; /* none of that shape */
            t_check(fine(st) && (st == LOP_OK) == (a != NULL), "%s: %s", lop_op_at(id)->name,
                    w.err.text);
            lop_node_unref(a);
            world_leaves(&w);
            t_check(w.ctx.live == alive, "%s: %lld blocks lost", lop_op_at(id)->name,
                    (long long)(w.ctx.live - alive));
            if (!reached) break;
        }
    t_group("random instances");
}

/* One child's cotangent, with each allocation failing in turn. */
static void cotangent_of(const lop_node *a, int child, const lop_node *g) {
    for (int64_t i = 0;; i++) {
        const lop_node *made = NULL;
        const int64_t alive = w.ctx.live;
        w.memory = (failing){.fail_at = i};
        const lop_status st = lop_cotangent(&w.ctx, a, child, g, &made, &w.err);
        const bool reached = w.memory.count > i;
        w.memory.fail_at = -1;
        t_check((fine(st) || st == LOP_UNABLE) && (st == LOP_OK) == (made != NULL),
                "%s, child %d: %s", a->op->name, child, w.err.text);
        lop_node_unref(made);
        t_check(w.ctx.live == alive, "%s, child %d, allocation %lld: %lld blocks lost", a->op->name,
                child, (long long)i, (long long)(w.ctx.live - alive));
        if (!reached) break;
    }
}

/* The cotangents of every kind's children: of an array, of the kind itself, of an inverse. */
static void cotangents_alone(void) {
    for (int id = 0; id < lop_nops(); id++) {
        const lop_op *op = lop_op_at(id);
        const lop_node *a = NULL, *b = NULL;
        if (!op->random || !op->vjp || op->random(&w.rand, 4, 4, LOP_f64, &a) != LOP_OK) continue;
        const lop_node *g[3] = {
            t_one_of(&w, "dense", NULL, t_array(&w, LOP_f64, 2, 2, (int64_t[]){4, 4}))};
        if (op->random(&w.rand, 4, 4, LOP_f64, &b) == LOP_OK) {
            g[1] = lop_node_ref(b);
            g[2] = t_one_of(&w, "inverse", NULL, b);
        }
        for (int k = 0; k < 3; k++) {
            for (int child = 0; g[k] && child <= a->n; child++)
                if (child < a->n || op->vjp_together) cotangent_of(a, child, g[k]);
            lop_node_unref(g[k]);
        }
        lop_node_unref(a);
        world_leaves(&w);
    }
    t_group("cotangents");
}

/* Bands and a matrix, assumed symmetric, that are so; with a right-hand side. */
static const lop_node *assumed(void) {
    const lop_node *d = t_array(&w, LOP_f64, 1, 1, (int64_t[]){4}),
                   *e = t_array(&w, LOP_f64, 1, 1, (int64_t[]){3}), *three[3] = {e, d, e};
    const lop_attr word = t_ints(LOP_ASSUME_SYMMETRIC, 0, 0, 0),
                   none = t_ints(0, 0, LOP_ASSUME_SYMMETRIC, 0);
    const lop_node *a = t_node(&w, "tridiagonal", &word, 3, three),
                   *ab = t_array(&w, LOP_f64, 2, 2, (int64_t[]){1, 4}),
                   *b = t_one_of(&w, "banded", &none, ab);
    lop_node_unref(d);
    lop_node_unref(e);
    const lop_node *one =
        t_one_of(&w, "dense", &word, t_array(&w, LOP_f64, 2, 2, (int64_t[]){1, 1}));
    const lop_node *ones[4] = {one, one, one, one};
    const lop_node *c = t_node(&w, "blockdiag", NULL, 4, ones);
    lop_node_unref(one);
    return t_two_of(&w, "solve", t_two_of(&w, "sum", t_two_of(&w, "sum", a, b), c), operand(4));
}

/* What is assumed behind its tests: made where every allocation fails, then run. */
static void tests_of_assumptions(void) {
    const lop_node *plain = assumed(), *tested = NULL, *again = NULL;
    for (int64_t i = 0;; i++) {
        int64_t alive = w.ctx.live;
        w.memory = (failing){.fail_at = i};
        lop_status st = lop_assumptions_tested(plain, &tested, &w.err);
        bool reached = w.memory.count > i;
        w.memory.fail_at = -1;
        t_check(fine(st) && (st == LOP_OK) == (tested != NULL), "assumed: %s", w.err.text);
        if (!reached) break;
        lop_node_unref(tested);
        tested = NULL;
        t_check(w.ctx.live == alive, "assumed, allocation %lld: %lld blocks lost", (long long)i,
                (long long)(w.ctx.live - alive));
    }
    char *text = lop_dump(tested, 0);
    t_check(text && strstr(text, "assume_band") && strstr(text, "assume_tridiagonal") &&
                strstr(text, "(assume:"),
            "not tested: %s", text ? text : "");
    lop_free(&w.ctx, text);
    scene s;
    open_scene(&s, tested, 0);
    t_check(s.has_want, "what holds is taken for false: %s", w.err.text);
    (void)disturb(&s, 0);
    close_scene(&s);
    const lop_node *bare = square(LOP_f64, 3);
    t_check(lop_assumptions_tested(bare, &again, &w.err) == LOP_OK && again == bare,
            "a node without assumptions was made anew");
    lop_node_unref(again);
    lop_node_unref(bare);
    lop_node_unref(tested);
    lop_node_unref(plain);
    world_leaves(&w);
    t_group("tests of assumptions");
}

/* A matrix assumed diagonal, and one assumed tridiagonal and transposed: read as these kinds. */
static void kinds_as_declared(void) {
    const lop_attr one = t_ints(LOP_ASSUME_DIAGONAL, 0, 0, 0),
                   three = t_ints(LOP_ASSUME_TRIDIAGONAL, 0, 0, 0), turn = t_ints(LOP_T, 0, 0, 0);
    const lop_node *a = t_one_of(&w, "dense", &one, t_array(&w, LOP_f64, 2, 2, (int64_t[]){4, 4})),
                   *b =
                       t_one_of(&w, "dense", &three, t_array(&w, LOP_f64, 2, 2, (int64_t[]){4, 4})),
                   *plain =
                       t_two_of(&w, "solve", t_two_of(&w, "sum", a, t_one_of(&w, "view", &turn, b)),
                                operand(4)),
                   *read = NULL;
    for (int64_t i = 0;; i++) {
        int64_t alive = w.ctx.live;
        w.memory = (failing){.fail_at = i};
        lop_status st = lop_declared_kinds(w.rules, plain, &read, &w.err);
        bool reached = w.memory.count > i;
        w.memory.fail_at = -1;
        t_check(fine(st) && (st == LOP_OK) == (read != NULL), "declared: %s", w.err.text);
        if (!reached) break;
        lop_node_unref(read);
        read = NULL;
        t_check(w.ctx.live == alive, "declared, allocation %lld: %lld blocks lost", (long long)i,
                (long long)(w.ctx.live - alive));
    }
    char *text = lop_dump(read, 0);
    t_check(text && strstr(text, "(solve (tridiagonal:0,0,0 ") && !strstr(text, "dense:"),
            "not read as declared, or not closed: %s", text ? text : "");
    lop_free(&w.ctx, text);
    lop_node_unref(read);
    lop_node_unref(plain);
    world_leaves(&w);
    t_group("kinds as declared");
}

static void fixed_scenes(int from, int to) {
    for (int which = from; which < to; which++) {
        scene s;
        const lop_node *root = fixed(which);
        open_scene(&s, root, 0);
        lop_node_unref(root);
        t_check(s.has_want, "scene %d: %s", which, w.err.text);
        (void)disturb(&s, 0);
        close_scene(&s);
        world_leaves(&w);
    }
}

/* Random programs. */
static void random_scenes(int rounds) {
    int dropped = 0;
    int64_t places = 0;
    for (int i = 0; i < rounds; i++) {
        gen g = {.w = &w,
                 .dtype = LOP_NO_DTYPE,
                 .solves = true,
                 .views = true,
                 .exprs = 3,
                 .largest = 4};
        if (i % 3 == 0) g.batch = (lop_shape){.ndim = 1, .dim = {2}};
        scene s;
        const lop_node *root = gen_value(&g, 1 + i % 3);
        w.options.fft_min = i % 2;
        if (root) open_scene(&s, root, i % LAYOUTS);
        lop_node_unref(root);
        if (root && s.has_want)
            places += disturb(&s, i % LAYOUTS);
        else
            dropped++;
        if (root) close_scene(&s);
        world_leaves(&w);
    }
    printf("%d random scenes (%d dropped: singular), %lld places to fail\n", rounds - dropped,
           dropped, (long long)places);
    t_group("random scenes");
}

/* oom [rounds [seed]]: of random programs; of 0 rounds all else. */
int main(int argc, char **argv) {
    const int rounds = (int)t_number(argc, argv, 1, 0);
    world_open(&w, (uint64_t)t_number(argc, argv, 2, 11));
    w.ctx.alike = 2; /* small sums of Krons and small borders too */
    w.ctx.toeplitz = 1;
    world_sparse(&w);
    if (rounds > 0) {
        random_scenes(rounds);
    } else {
        rules_alone();
        instances_alone();
        cotangents_alone();
        tests_of_assumptions();
        kinds_as_declared();
        fixed_scenes(0, 79);
        w.ctx.mixed = true; /* solves by a factor, and a batch in which it fails */
        fixed_scenes(1, 3);
        w.ctx.mixed = false;
        t_group("fixed scenes");
    }
    world_close(&w, "oom");
    t_group("memory");
    return t_end();
}
