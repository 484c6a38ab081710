/* battery_pairs.h: two rows that fit the same expression lead to the same value; for
 * battery_rules.c alone, after what it draws with.
 *
 * Every left side drawn for a row is offered to all others of its phase, at the root and, below an
 * action, a view or an inverse, at the operator's head (where the driver acts as well). What the
 * other row makes of it must be equal, and the whole table must lead from there to a plan that
 * gives the same value. Where both ways end in one canonical form they are joined as expressions;
 * else, as the first row that fits wins, as values. */
#include "rewrite/ruleset.h"

#include <stdlib.h>

enum { TIMES = 4 }; /* a pair is tried so often at each place */

static struct {
    unsigned char *tried; /* by row, row, place */
    int pairs, joined, checks;
} found;

static bool below_heads(const lop_node *node) {
    return (node->op->cls == LOP_ACTION || node->op == &lop_op_view ||
            node->op == &lop_op_inverse) &&
           node->n > 0 && node->n <= 8 && node->child[0]->op->cls == LOP_OPERATOR;
}

/* What row j makes of `left` at a place: owned; NULL where it does not fit. */
static const lop_node *other_way(const lop_maker *mk, int j, const lop_node *left, bool below) {
    const lop_node *made = NULL, *child[8], *out = NULL;
    w.err = (lop_err){.step = -1};
    if (lop_rule_at(w.rules, j, below ? left->child[0] : left, mk, &made) != LOP_OK) return NULL;
    if (!below) return made;
    for (int i = 0; i < left->n; i++) child[i] = i ? left->child[i] : made;
    lop_status st = lop_make_op(mk, left->op, &left->attr, left->n, child, NULL, &out);
    lop_node_unref(made);
    return st == LOP_OK ? out : NULL;
}

static bool same_end(lop_tab *tab, const lop_node *a, const lop_node *b) {
    const lop_node *one = NULL, *two = NULL;
    lop_trace trace = {.count = 0};
    bool same = lop_rewrite(w.rules, tab, a, &one, &trace, &w.err) == LOP_OK &&
                lop_rewrite(w.rules, tab, b, &two, &trace, &w.err) == LOP_OK && one == two;
    lop_node_unref(one);
    lop_node_unref(two);
    return same;
}

/* May both be asked of one expression? */
static bool meet(lop_phase a, lop_phase b) {
    if (a == b) return true;
    if (b == LOP_BOTH) return meet(b, a);
    return a == LOP_BOTH && (b == LOP_CLOSE || b == LOP_PUSH);
}

/* `right` is what row i made of `left`; `fits`: can it be run and compared? */
static void pairs_of(int i, const lop_node *left, const lop_node *right, lop_tab *tab, bool fits) {
    const lop_rule *rule = &lop_rule_table[i];
    lop_maker mk = {.ctx = &w.ctx, .tab = tab, .err = &w.err, .rules = w.rules};
    if (!found.tried) found.tried = calloc((size_t)lop_rule_count * (size_t)lop_rule_count, 2);
    for (int j = 0; j < 2 * lop_rule_count && found.tried; j++) {
        int row = j / 2;
        bool below = j % 2 != 0, compared;
        unsigned char *tried = &found.tried[(size_t)i * 2 * (size_t)lop_rule_count + (size_t)j];
        if (row == i || !meet(lop_rule_table[row].phase, rule->phase) || *tried == TIMES) continue;
        const bool closes = rule->phase == LOP_CLOSE || lop_rule_table[row].phase == LOP_CLOSE;
        if (below && (!below_heads(left) || closes)) continue;
        const lop_node *other = other_way(&mk, row, left, below);
        if (!other) continue;
        if (!equal(left, other, &compared)) say(lop_rule_table[row].name, rule, left, other);
        bool same = closes || same_end(tab, right, other);
        if (!*tried) {
            found.pairs++;
            found.joined += same;
        }
        if (fits && left->op->cls != LOP_OPERATOR && left->op != &lop_op_scaledet)
            t_agrees(&w, other, 0, 400 * gen_slack(left), lop_rule_table[row].name);
        ++*tried;
        found.checks++;
        lop_node_unref(other);
    }
}
