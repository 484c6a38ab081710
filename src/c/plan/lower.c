/* lower.c: from the canonical DAG to steps, in post-order.
 *
 * The DAG is walked once with an explicit stack; each array or action node becomes a slot and the
 * steps its op emits. Nodes of a first arm that are met again in its fallback branch are lowered
 * anew. Cost O(nodes + steps). */
#include "emit_impl.h"
#include "passes.h"

#include <string.h>

typedef struct walk {
    const lop_node *node;
    int next;
} walk;

enum { FORGOTTEN = -2 }; /* in the map: lowered in an arm that is closed */

static bool is_value(const lop_node *n) { return n->op->cls != LOP_OPERATOR; }

static lop_status note_fresh(lop_emit *e, const lop_node *node) {
    if (e->narm == 0 || node->op == &lop_op_array) return LOP_OK;
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
    lop_status st = note_fresh(e, node);
    if (st != LOP_OK) return st;
    if (!is_value(node)) return lop_map_set(&e->map, node, -1);
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

/* -- two arms */

/* What was lowered since `first` may not have been computed elsewhere. */
static lop_status forget(lop_emit *e, int first) {
    lop_status st = LOP_OK;
    while (st == LOP_OK && e->nfresh > first)
        st = lop_map_set(&e->map, e->fresh[--e->nfresh], FORGOTTEN);
    return st;
}

static lop_status open_arm(lop_emit *e, const lop_node *node) {
    lop_status st;
    lop_shape batch = node->shape;
    batch.ndim -= node->core;
    lop_arm arm = {.node = node, .fresh = e->nfresh, .step = e->plan->nstep};
    arm.value = lop_emit_temp(e, node->dtype, node->core, &node->shape, &st);
    if (arm.value >= 0) arm.mask = lop_emit_slot(e, LOP_S_TEMP, LOP_b8, 0, &batch, &st);
    if (st != LOP_OK) return st;
    if (e->narm == e->room_arm) {
        int room = e->room_arm ? 2 * e->room_arm : 4;
        lop_arm *more = lop_realloc(e->plan->ctx, e->arm, (size_t)room * sizeof *more);
        if (!more) return LOP_NOMEM;
        e->arm = more;
        e->room_arm = room;
    }
    e->arm[e->narm++] = arm;
    return LOP_OK;
}

/* The first arm ends in its check; its failures lead to the second, which begins here. */
static lop_status turn_arm(lop_emit *e) {
    lop_arm *arm = &e->arm[e->narm - 1];
    lop_plan *p = e->plan;
    int first = p->nstep;
    lop_status st = arm->node->op->check(e, arm->node, arm->value, arm->mask);
    for (int i = first; st == LOP_OK && i < p->nstep; i++) p->step[i].origin = arm->node;
    for (int i = arm->step; st == LOP_OK && i < p->nstep; i++) {
        lop_step *s = &p->step[i];
        if (s->derived >= 0) p->derive[s->derived].in_arm = true;
        if (i < first) s->flags |= LOP_STEP_HUSHED; /* the check itself knows of what was asked */
        if (s->fail >= 0 || s->escape >= 0) continue;
        s->escape = arm->mask;
        s->escape_to = p->nstep;
    }
    if (st == LOP_OK) st = forget(e, arm->fresh);
    arm->step = p->nstep;
    e->second++;
    return st;
}

/* The second arm runs only where the first failed. */
static lop_status close_arm(lop_emit *e) {
    lop_arm arm = e->arm[--e->narm];
    lop_plan *p = e->plan;
    e->second--;
    for (int i = arm.step; i < p->nstep; i++) {
        lop_step *s = &p->step[i];
        s->late = arm.mask; /* the outermost one's stays, and the next one's */
        if (e->second > 0) s->later = arm.mask;
        if (s->when >= 0) continue;
        s->when = arm.mask;
        s->when_set = true;
    }
    e->value = arm.value;
    e->mask = arm.mask;
    lop_status st = lower_node(e, arm.node);
    int mine = e->narm > 0 ? 1 : 0;
    if (mine && st == LOP_OK) e->nfresh--;
    if (st == LOP_OK) st = forget(e, arm.fresh);
    if (mine && st == LOP_OK) st = note_fresh(e, arm.node);
    return st;
}

lop_status lop_plan_lower(lop_emit *e, const lop_node *root) {
    lop_ctx *ctx = e->plan->ctx;
    int64_t room = 64, top = 0;
    walk *stack = lop_alloc(ctx, (size_t)room * sizeof *stack);
    if (!stack) return lop_fail(e->err, LOP_NOMEM, NULL);
    lop_status st = LOP_OK;
    stack[top++] = (walk){root, 0};
    while (top > 0) {
        walk *w = &stack[top - 1];
        int known;
        if (w->next == 0 && lop_map_get(&e->map, w->node, &known) && known != FORGOTTEN) {
            top--;
            continue;
        }
        bool arms = w->node->op->check != NULL;
        if (arms && w->next == 0) st = open_arm(e, w->node);
        if (arms && w->next == w->node->n - 1) st = turn_arm(e);
        if (st != LOP_OK) break;
        if (w->next < w->node->n) {
            const lop_node *child = w->node->child[w->next++];
            if (top == room) {
                walk *more = lop_realloc(ctx, stack, (size_t)(2 * room) * sizeof *stack);
                if (!more) {
                    st = lop_fail(e->err, LOP_NOMEM, NULL);
                    break;
                }
                stack = more;
                room *= 2;
            }
            stack[top++] = (walk){child, 0};
            continue;
        }
        st = arms ? close_arm(e) : lower_node(e, w->node);
        if (st != LOP_OK) break;
        top--;
    }
    lop_free(ctx, stack);
    return st;
}
