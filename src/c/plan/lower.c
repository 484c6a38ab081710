/* lower.c: from the canonical DAG to steps, in post-order.
 *
 * The DAG is walked once with an explicit stack; each array or action node becomes a slot and the
 * steps its op emits. Nodes of a fast branch that are met again in its fallback branch are lowered
 * anew. Cost O(nodes + steps). */
#include "emit_impl.h"
#include "passes.h"

#include <string.h>

enum { FORGOTTEN = -2 }; /* in the map: lowered in a branch that is closed */

lop_status lop_note_fresh(lop_emit *e, const lop_node *node) {
    if (e->nbranch == 0 || node->op == &lop_op_array) return LOP_OK;
    if (e->nfresh == e->room_fresh) {
        int room = e->room_fresh ? 2 * e->room_fresh : 64;
        const lop_node **more =
            lop_realloc(e->plan->ctx, (void *)e->fresh, (size_t)room * sizeof *more);
        if (!more) return LOP_NOMEM;
        e->fresh = more;
        e->room_fresh = room;
    }
    e->fresh[e->nfresh++] = node;
    return LOP_OK;
}

static lop_status lower_node(lop_emit *e, const lop_node *node) {
    lop_status st = lop_note_fresh(e, node);
    if (st != LOP_OK) return st;
    if (!lop_is_value(node)) return lop_map_set(&e->map, node, -1);
    lop_plan *p = e->plan;
    int slot;
    if (node->op == &lop_op_array) {
        slot = lop_emit_leaf_slot(e, node, &st);
        if (st != LOP_OK) return st;
        st = lop_map_set(&e->map, node, slot);
        if (st != LOP_OK || node != p->root) return st;
    }
    if (node == p->root) {
        slot = p->out = lop_emit_slot(e, LOP_S_OUT, node->dtype, node->core, &node->shape, &st);
    } else {
        slot = lop_emit_temp(e, node->dtype, node->core, &node->shape, &st);
    }
    if (st != LOP_OK) return st;
    int first = p->nstep;
    if (node->op == &lop_op_array) {
        int in = lop_emit_value(e, node);
        if (!lop_emit_step(e, "copy", lop_run_copy, slot, 1, &in)) return LOP_NOMEM;
    } else if (!node->op->lower) {
        st = lop_fail(e->err, LOP_MISSING, "no way to compute %s of %s here", node->op->name,
                      node->n ? node->child[0]->op->name : "nothing");
    } else {
        st = node->op->lower(e, node, slot);
    }
    if (st == LOP_UNABLE)
        st = lop_fail(e->err, LOP_MISSING, "%s of %s has no method", node->op->name,
                      node->child[0]->op->name);
    if (st != LOP_OK) return st;
    for (int i = first; i < p->nstep; i++) p->step[i].origin = node;
    if (node->op == &lop_op_todense && node != p->root && p->slot[slot].alias < 0 && !e->second) {
        int64_t bytes = 0;
        if (!lop_mul_ok(p->slot[slot].matbytes, p->slot[slot].batch, &bytes)) bytes = INT64_MAX;
        if (bytes > p->dense) p->dense = bytes;
    }
    return node->op == &lop_op_array ? LOP_OK : lop_map_set(&e->map, node, slot);
}

/* -- nodes with a fast branch and a fallback branch */

/* Forgets the slots of nodes lowered since `first`: they may not have been computed elsewhere. */
lop_status lop_forget(lop_emit *e, int first) {
    lop_status st = LOP_OK;
    while (st == LOP_OK && e->nfresh > first)
        st = lop_map_set(&e->map, e->fresh[--e->nfresh], FORGOTTEN);
    return st;
}

lop_status lop_push_branch(lop_emit *e, lop_branch branch) {
    if (e->nbranch == e->room_branch) {
        int room = e->room_branch ? 2 * e->room_branch : 4;
        lop_branch *more = lop_realloc(e->plan->ctx, e->branch, (size_t)room * sizeof *more);
        if (!more) return LOP_NOMEM;
        e->branch = more;
        e->room_branch = room;
    }
    e->branch[e->nbranch++] = branch;
    return LOP_OK;
}

static lop_status open_branch(lop_emit *e, const lop_node *node) {
    lop_status st;
    lop_shape batch = node->shape;
    batch.ndim -= node->core;
    lop_branch branch = {.node = node, .fresh = e->nfresh, .step = e->plan->nstep};
    branch.value = lop_emit_temp(e, node->dtype, node->core, &node->shape, &st);
    if (branch.value >= 0) branch.mask = lop_emit_slot(e, LOP_S_TEMP, LOP_b8, 0, &batch, &st);
    if (st != LOP_OK) return st;
    return lop_push_branch(e, branch);
}

/* The fast branch ends in its check; its failures lead to the fallback, which begins here. */
static lop_status turn_to_fallback(lop_emit *e) {
    lop_branch *branch = &e->branch[e->nbranch - 1];
    lop_plan *p = e->plan;
    int first = p->nstep;
    lop_status st = branch->node->op->check(e, branch->node, branch->value, branch->mask);
    for (int i = first; st == LOP_OK && i < p->nstep; i++) p->step[i].origin = branch->node;
    for (int i = branch->step; st == LOP_OK && i < p->nstep; i++) {
        lop_step *s = &p->step[i];
        if (s->derived >= 0) p->derive[s->derived].in_branch = true;
        if (i < first)
            s->flags |=
                LOP_STEP_HUSHED; /* the check itself deals with the matrix that was asked about */
        if (s->fail >= 0 || s->escape >= 0) continue;
        if (i >= first && (s->flags & LOP_STEP_OUTWARD)) continue;
        s->escape = branch->mask;
        s->escape_to = p->nstep;
    }
    if (st == LOP_OK) st = lop_forget(e, branch->fresh);
    branch->step = p->nstep;
    branch->turned = true;
    e->second++;
    return st;
}

bool lop_emit_is_within(const lop_emit *e) {
    int i = e->nbranch - 2;
    while (i >= 0 && e->branch[i].turned) i--;
    return i >= 0;
}

/* The fallback branch runs only where the fast one failed. */
static lop_status close_branch(lop_emit *e) {
    lop_branch branch = e->branch[--e->nbranch];
    lop_plan *p = e->plan;
    e->second--;
    for (int i = branch.step; i < p->nstep; i++) {
        lop_step *s = &p->step[i];
        s->late =
            branch
                .mask; /* in the end `late` names the outermost branch, `later` the one within it */
        if (e->second > 0) s->later = branch.mask;
        if (s->when >= 0) continue;
        s->when = branch.mask;
        s->when_set = true;
    }
    e->value = branch.value;
    e->mask = branch.mask;
    lop_status st = lower_node(e, branch.node);
    int mine = e->nbranch > 0 ? 1 : 0;
    if (mine && st == LOP_OK) e->nfresh--;
    if (st == LOP_OK) st = lop_forget(e, branch.fresh);
    if (mine && st == LOP_OK) st = lop_note_fresh(e, branch.node);
    return st;
}

/* -- the walk over the DAG */

lop_status lop_walks_push(lop_walks *w, const lop_node *node) {
    if (w->n == w->room) {
        int64_t room = w->room ? 2 * w->room : 64;
        lop_walk *more = lop_realloc(w->ctx, w->at, (size_t)room * sizeof *more);
        if (!more) return LOP_NOMEM;
        w->at = more;
        w->room = room;
    }
    w->at[w->n++] = (lop_walk){node, 0};
    return LOP_OK;
}

bool lop_is_lowered(const lop_emit *e, const lop_node *node) {
    int known;
    return lop_map_get(&e->map, node, &known) && known != FORGOTTEN;
}

/* Is `wanted` below `node`, with no other node with branches between? */
static lop_status reaches(const lop_emit *e, const lop_node *node, const lop_node *wanted,
                          bool *yes) {
    lop_ctx *ctx = e->plan->ctx;
    lop_walks todo = {.ctx = ctx};
    lop_map seen = {0};
    int known;
    *yes = false;
    lop_status st = lop_map_init(&seen, ctx);
    if (st == LOP_OK) st = lop_walks_push(&todo, node);
    while (st == LOP_OK && todo.n > 0 && !*yes) {
        const lop_node *at = todo.at[--todo.n].node;
        *yes = at == wanted;
        if (*yes || at->op->check || lop_is_lowered(e, at) || lop_map_get(&seen, at, &known))
            continue;
        st = lop_map_set(&seen, at, 1);
        for (int i = 0; st == LOP_OK && i < at->n; i++) st = lop_walks_push(&todo, at->child[i]);
    }
    lop_map_clear(&seen, ctx);
    lop_free(ctx, todo.at);
    return st;
}

/* Marks in `seen` what the nodes on the stack are sure to need and is not lowered: of a node with
 * branches the node itself, and which of its children with branches its fallback needs too; either
 * branch may be left early, or not be entered. Of nodes with branches that are in `both`, the first
 * that is met goes to *found. */
static lop_status mark(const lop_emit *e, lop_walks *todo, lop_map *seen, const lop_map *both,
                       const lop_node **found) {
    lop_status st = LOP_OK;
    int known;
    while (st == LOP_OK && todo->n > 0) {
        const lop_node *node = todo->at[--todo->n].node;
        if (lop_is_lowered(e, node) || lop_map_get(seen, node, &known)) continue;
        const bool branches = node->op->check != NULL;
        if (both && branches && lop_map_get(both, node, &known)) {
            *found = node;
            return LOP_OK;
        }
        st = lop_map_set(seen, node, 1);
        for (int i = 0; st == LOP_OK && i < node->n - (branches ? 1 : 0); i++) {
            bool sure = !branches;
            if (branches && node->child[i]->op->check)
                st = reaches(e, node->child[node->n - 1], node->child[i], &sure);
            if (st == LOP_OK && sure) st = lop_walks_push(todo, node->child[i]);
        }
    }
    return st;
}

/* A node with branches of its own, not lowered yet, that both branches of `node` are sure to need;
 * NULL: none. Lowered in each of them it would be there twice, what it needs likewise four times,
 * and so on. */
static lop_status common(const lop_emit *e, const lop_node *node, const lop_node **found) {
    lop_ctx *ctx = e->plan->ctx;
    lop_walks todo = {.ctx = ctx};
    lop_map second = {0}, first = {0};
    *found = NULL;
    lop_status st = lop_map_init(&second, ctx);
    if (st == LOP_OK) st = lop_map_init(&first, ctx);
    if (st == LOP_OK) st = lop_walks_push(&todo, node->child[node->n - 1]);
    if (st == LOP_OK) st = mark(e, &todo, &second, NULL, found);
    for (int i = 0; st == LOP_OK && i < node->n - 1; i++)
        st = lop_walks_push(&todo, node->child[i]);
    if (st == LOP_OK) st = mark(e, &todo, &first, &second, found);
    lop_map_clear(&second, ctx);
    lop_map_clear(&first, ctx);
    lop_free(ctx, todo.at);
    return st;
}

/* A vector, or generators of states, made of leaves by steps that no branch is left by. */
static bool is_plain(const lop_node *a, int depth) {
    static const lop_op *const by[] = {&lop_op_cast,     &lop_op_conjugate,  &lop_op_scale,
                                       &lop_op_add,      &lop_op_mul,        &lop_op_first_unit,
                                       &lop_op_ones,     &lop_op_diagrun,    &lop_op_array_slice,
                                       &lop_op_concat,   &lop_op_line_order, &lop_op_ravel,
                                       &lop_op_blockplus};
    if (a->op == &lop_op_array) return true;
    bool one = a->op == &lop_op_line_generators || a->op == &lop_op_quasijoin;
    for (size_t i = 0; !one && a->core == 1 && i < sizeof by / sizeof by[0]; i++)
        one = a->op == by[i];
    /* q of a multiple: scaled, and of two dimensions */
    one = one || (a->op == &lop_op_scale && a->child[0]->op == &lop_op_line_generators);
    if (!one || depth == 0) return false;
    for (int i = 0; i < a->n; i++)
        if (!is_plain(a->child[i], depth - 1)) return false;
    return true;
}

/* The next child that `ready` of a node with branches has to find: NULL when all are there. */
static const lop_node *wanted_first(const lop_emit *e, const lop_node *node) {
    enum { DEPTH = 8 };
    for (int i = 0; node->op->ready && i < node->n - 1; i++)
        if ((node->child[i]->core == 1 || node->child[i]->op != &lop_op_array) &&
            !lop_is_lowered(e, node->child[i]) && is_plain(node->child[i], DEPTH))
            return node->child[i];
    return NULL;
}

/* Is it U^H D U of given U and D? Its one pass over U is no way to fail, and its result is small.
 */
static bool is_plain_gram(const lop_node *a) {
    enum { DEPTH = 4 };
    if (a->op != &lop_op_weighted_gram) return false;
    for (int i = 0; i < a->n; i++) {
        const lop_node *in = a->child[i];
        while (in->op == &lop_op_cast && in->core == 2) in = in->child[0];
        if (!is_plain(in, DEPTH)) return false;
    }
    return true;
}

/* A vector that is made of given ones, as the first column of T + c I. */
static bool is_made_vector(const lop_node *a) {
    enum { DEPTH = 8 };
    return a->core == 1 && a->op != &lop_op_array && is_plain(a, DEPTH);
}

/* The matrix of which a given array is half, whole. */
static bool is_plain_half(const lop_node *a) {
    enum { DEPTH = 4 };
    return a->op == &lop_op_named && is_plain(a->child[0], DEPTH);
}

/* What child i stands for: where half of a matrix is read its array alone. */
const lop_node *lop_needed(const lop_node *node, int i) {
    if (node->op->reads) return node->op->reads(node, i);
    const lop_node *a = node->child[i], *read = lop_half_read(node);
    if (read) return read;
    if (i > 0 || node->op != &lop_op_apply || node->shape.ndim != 2) return a;
    const lop_node *half =
        lop_half_alone(a->op == &lop_op_view ? a->child[0] : a, lop_cols(node), node->dtype);
    return half ? half : a;
}

/* Such a matrix, or such a vector, that the fast branch of `node` needs, not lowered yet;
 * NULL: none. In front of the branch it is there for its fallback and for all other uses of the
 * same inverse too, so that one factor of it serves them, but made also where the factor is kept:
 * so of plans of several results alone. */
static lop_status plain_first(const lop_emit *e, const lop_node *node, const lop_node **found) {
    lop_ctx *ctx = e->plan->ctx;
    lop_walks todo = {.ctx = ctx};
    lop_map seen = {0};
    int known;
    *found = NULL;
    lop_status st = lop_map_init(&seen, ctx);
    for (int i = 0; st == LOP_OK && i < node->n - 1; i++)
        st = lop_walks_push(&todo, node->child[i]);
    while (st == LOP_OK && todo.n > 0 && !*found) {
        const lop_node *at = todo.at[--todo.n].node;
        if (at->op->check || lop_is_lowered(e, at) || lop_map_get(&seen, at, &known)) continue;
        if (is_plain_gram(at) || is_plain_half(at) || is_made_vector(at)) *found = at;
        st = lop_map_set(&seen, at, 1);
        for (int i = 0; st == LOP_OK && i < lop_nneeded(at); i++)
            st = lop_walks_push(&todo, lop_needed(at, i));
    }
    lop_map_clear(&seen, ctx);
    lop_free(ctx, todo.at);
    return st;
}

/* A node of which the program takes the fallback at once: that one's slot, or the fallback first.
 */
static lop_status by_fallback(lop_emit *e, lop_walks *stack, const lop_node *node) {
    const lop_node *instead = node->child[node->n - 1];
    if (!lop_is_lowered(e, instead)) return lop_walks_push(stack, instead);
    lop_status st = lop_note_fresh(e, node);
    if (st == LOP_OK) st = lop_map_set(&e->map, node, lop_emit_value(e, instead));
    stack->n--;
    return st;
}

/* What has to be there before the fast branch of `node` is opened: NULL, all is. */
static lop_status before_branch(lop_emit *e, const lop_node *root, const lop_node *node,
                                const lop_node **before) {
    const bool outside = e->nbranch == 0;
    lop_status st = LOP_OK;
    *before = wanted_first(e, node);
    if (!*before && root->op == &lop_op_results_array) st = plain_first(e, node, before);
    if (st == LOP_OK && !*before) st = common(e, node, before);
    if (st != LOP_OK || *before || !outside) return st;
    if (!e->shares) st = lop_shares_find(e, root);
    if (st == LOP_OK) st = lop_shares_before(e, node, before);
    return st == LOP_OK && !*before ? lop_shares_lower(e, root, node) : st;
}

static lop_status begin_branch(lop_emit *e, const lop_node *node) {
    const bool outside = e->nbranch == 0;
    lop_status st = node->op->ready ? node->op->ready(e, node) : LOP_OK;
    if (st == LOP_OK) st = open_branch(e, node);
    return st == LOP_OK && outside ? lop_shares_see(e, node) : st;
}

lop_status lop_lower_from(lop_emit *e, const lop_node *root, const lop_node *from) {
    lop_walks stack = {.ctx = e->plan->ctx};
    int known;
    lop_status st = lop_walks_push(&stack, from);
    while (st == LOP_OK && stack.n > 0) {
        lop_walk *w = &stack.at[stack.n - 1];
        const lop_node *node = w->node, *before = NULL;
        if (w->next == 0 && lop_is_lowered(e, node)) {
            stack.n--;
            continue;
        }
        if (e->instead.count > 0 && lop_map_get(&e->instead, node, &known)) {
            st = by_fallback(e, &stack, node);
            continue;
        }
        bool branches = node->op->check != NULL;
        if (branches && w->next == 0) {
            st = before_branch(e, root, node, &before);
            if (st == LOP_OK && before) {
                st = lop_walks_push(&stack, before);
                continue;
            }
            if (st == LOP_OK) st = begin_branch(e, node);
        }
        if (branches && st == LOP_OK && w->next == node->n - 1) st = turn_to_fallback(e);
        if (st != LOP_OK) break;
        if (w->next < lop_nneeded(node)) {
            st = lop_walks_push(&stack, lop_needed(node, w->next++));
            continue;
        }
        st = branches ? close_branch(e) : lower_node(e, node);
        stack.n--;
    }
    lop_free(e->plan->ctx, stack.at);
    return st;
}

lop_status lop_plan_lower(lop_emit *e, const lop_node *root) {
    const lop_status st = lop_lower_from(e, root, root);
    lop_shares_free(e);
    return st == LOP_NOMEM ? lop_fail(e->err, st, NULL) : st;
}
