/* fuzz_expr.c [seconds [seed]]: random expressions as text -> read -> plan -> run on random leaves
 * -> compared with the interpreter; what dump prints reads back to the same; and the same texts
 * with random damage, which may fail in any orderly way but not crash, leak or write beside its
 * memory.
 *
 * A failure prints the text and the number of the round; `fuzz_expr 0 seed` with that number as
 * seed runs that round alone. */
#include "gen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static world w;
static int64_t read_back, run_damaged, read_damaged;

static gen random_gen(void) {
    static const lop_dtype exact[] = {LOP_i64, LOP_i8, LOP_u8, LOP_b8};
    gen g = {
        .w = &w, .dtype = LOP_NO_DTYPE, .solves = true, .views = true, .exprs = 3, .largest = 4};
    if (!world_pick(&w, 0, 4)) {
        g.dtype = exact[world_pick(&w, 0, 4)];
        g.solves = false;
    } else if (world_pick(&w, 0, 2)) {
        g.dtype = world_pick(&w, 0, 2) ? LOP_c128 : LOP_f64;
    }
    int nb = (int)world_pick(&w, 0, 4);
    for (int i = 0; i < nb - 1; i++)
        g.batch.dim[g.batch.ndim++] = world_pick(&w, 0, 9) ? 1 + world_pick(&w, 0, 3) : 0;
    if (!world_pick(&w, 0, 10)) g.largest = 12;
    return g;
}

/* Wrapping depends on the dtype of every intermediate value: only one dtype throughout is
 * comparable. */
static bool comparable(const lop_node *node, lop_dtype dt) {
    bool weak = node->weak && node->n == 0,
         index = lop_dtype_family(node->dtype) == 'i' && node->core == 1 && !node->n;
    if (node->dtype != dt && !weak && !index) return false;
    for (int i = 0; i < node->n; i++)
        if (!comparable(node->child[i], dt)) return false;
    return true;
}

static bool below(const lop_node *node, int64_t size) {
    if (node->op == &lop_op_power && node->attr.i[0] > 50) return false;
    for (int i = 0; i < node->shape.ndim; i++)
        if (node->shape.dim[i] > size) return false;
    for (int i = 0; i < node->n; i++)
        if (!below(node->child[i], size)) return false;
    return true;
}

/* text -> node -> text -> node. */
static const lop_node *round_trip(const lop_node *root) {
    char *text = lop_dump(root, 0), *again = NULL;
    const lop_node *read = NULL;
    if (!t_check(text != NULL, "no memory to dump")) return NULL;
    lop_status st = lop_read(&w.ctx, text, &read, &w.err);
    if (t_check(st == LOP_OK, "reads back: %s: %s", w.err.text, text)) {
        again = lop_dump(read, 0);
        t_check(again && !strcmp(text, again), "reads back to another text:\n    %s\n    %s", text,
                again ? again : "");
        t_check(read->dtype == root->dtype && lop_shape_equal(&read->shape, &root->shape),
                "reads back to another type: %s", text);
        read_back++;
    }
    lop_free(&w.ctx, text);
    lop_free(&w.ctx, again);
    return read;
}

/* -- damage */

static void damage(char *text, size_t room) {
    static const char bits[] = "()?@:#~/,[]- 0123456789abcexyz";
    static const char *const words[] = {"(view:3 ",
                                        "(sum ",
                                        "(array:float64[2,2]#1)",
                                        "9223372036854775807",
                                        "-9223372036854775808",
                                        "(kron)",
                                        "4611686018427387904",
                                        "?a",
                                        "(identity:int8[3,3]~1)",
                                        "nan",
                                        "1e400",
                                        "(kron_unfold:2,2,2,2 "};
    for (int edits = 1 + (int)world_pick(&w, 0, 4); edits > 0; edits--) {
        size_t n = strlen(text), at = (size_t)world_pick(&w, 0, (int64_t)n + 1),
               len = (size_t)world_pick(&w, 1, 12);
        if (at + len > n) len = n - at;
        const char *word = words[world_pick(&w, 0, 12)];
        switch (world_pick(&w, 0, 5)) {
        case 0:
            if (at < n) text[at] = bits[world_pick(&w, 0, (int64_t)sizeof bits - 1)];
            break;
        case 1: memmove(text + at, text + at + len, n - at - len + 1); break; /* cut */
        case 2:                                                               /* double */
            if (n + len + 1 < room) memmove(text + at + len, text + at, n - at + 1);
            break;
        case 3:
            if (n + strlen(word) + 1 < room) {
                memmove(text + at + strlen(word), text + at, n - at + 1);
                memcpy(text + at, word, strlen(word));
            }
            break;
        default: {
            size_t from =
                (size_t)world_pick(&w, 0, (int64_t)n + 1); /* overwrite by another piece */
            if (from + len <= n) memmove(text + at, text + from, len);
        }
        }
    }
}

/* Whatever can be read must plan and run, or fail in order. */
static void damaged(const lop_node *root) {
    char *text = lop_dump(root, 0);
    const lop_node *read = NULL;
    lop_plan *plan = NULL;
    size_t room = text ? strlen(text) + 256 : 0;
    char *copy = malloc(room + 1);
    if (!text || !copy) abort();
    strcpy(copy, text);
    lop_free(&w.ctx, text);
    damage(copy, room);
    lop_status st = lop_read(&w.ctx, copy, &read, &w.err);
    t_check(st <= 0 && (st != LOP_OK) == (read == NULL), "read of: %s", copy);
    t_check(st != LOP_INTERNAL, "a bug (%s) met in: %s", w.err.text, copy);
    if (read && read->op->cls != LOP_OPERATOR && below(read, INT64_MAX)) {
        read_damaged++;
        st = lop_plan_make(&w.ctx, w.rules, &w.options, read, &plan, &w.err);
        if (!t_check(st != LOP_INTERNAL, "a bug (%s) met in: %s", w.err.text, copy))
            printf("    %s\n", copy);
        bool known = plan && below(read, 50) && plan->workspace < 1 << 24;
        for (int i = 0; known && i < plan->nleaf; i++) {
            const lop_buf *b = lop_rand_find(&w.rand, plan->leaf[i].serial);
            known = b && b->dt == plan->leaf[i].dt &&
                    lop_shape_equal(&b->shape, &plan->leaf[i].shape) &&
                    b->shape.ndim >= plan->slot[plan->leaf[i].slot].core;
        }
        placed out;
        if (known) {
            st = t_exec(&w, plan, (int)world_pick(&w, 0, LAYOUTS), &out, NULL);
            placed_free(&out);
            t_check(st != LOP_INTERNAL, "a bug (%s) met in: %s", w.err.text, copy);
            run_damaged++;
        }
    }
    lop_plan_unref(plan);
    lop_node_unref(read);
    free(copy);
}

/* -- rounds */

static void one_round(uint64_t seed) {
    w.rand.rng.state = seed * 0x9e3779b97f4a7c15u + 1;
    gen g = random_gen();
    w.options.fft_min = world_pick(&w, 0, 2) ? 1 : 0;
    const lop_node *root = gen_value(&g, (int)world_pick(&w, 0, 4));
    if (!root)
        t_check(w.err.status == LOP_INTERNAL, "round %llu: %s", (unsigned long long)seed,
                w.err.text); /* out of leaves */
    const lop_node *read = root ? round_trip(root) : NULL;
    char who[40];
    snprintf(who, sizeof who, "round %llu", (unsigned long long)seed);
    const lop_node *used = seed % 2 ? read : root; /* text has lost what was shared */
    if (read && (lop_is_blas(read->dtype) || comparable(read, read->dtype)))
        t_agrees(&w, used, (int)world_pick(&w, 0, LAYOUTS), 200 * gen_slack(read), who);
    for (int i = 0; read && i < 3; i++) damaged(read);
    lop_node_unref(read);
    lop_node_unref(root);
    world_leaves(&w);
}

int main(int argc, char **argv) {
    double seconds = t_number(argc, argv, 1, 2), end = t_seconds() + seconds;
    uint64_t seed = (uint64_t)t_number(argc, argv, 2, 1), rounds = 0;
    world_open(&w, seed);
    w.ctx.toeplitz = 1;
    world_sparse(&w);
    /* met before: a batch in one diagonal; a kept value that a step without a reader shares; labels
     * behind fused steps; a value that rests on an escape; a Laplacian's band */
    static const uint64_t met[] = {5495, 277594, 18816, 111498, 121238, 86748};
    for (size_t i = 0; i < sizeof met / sizeof met[0]; i++) one_round(met[i]);
    do {
        one_round(seed + rounds++);
    } while (seconds > 0 && t_seconds() < end);
    printf("%llu expressions, %lld read back; damaged: %lld read, %lld run\n",
           (unsigned long long)rounds, (long long)read_back, (long long)read_damaged,
           (long long)run_damaged);
    int64_t unfired = 0;
    for (int i = 0; i < lop_rules_count(w.rules); i++)
        if (lop_rules_at(w.rules, i)->phase >= LOP_PUSH && lop_rules_fired(w.rules, i) == 0) {
            if (getenv("LOP_TEST_VERBOSE"))
                printf("  never fired: %s\n", lop_rules_at(w.rules, i)->name);
            unfired++;
        }
    printf("%lld of the push rules never fired here\n", (long long)unfired);
    world_close(&w, "fuzz_expr");
    t_group("expressions");
    return t_end();
}
