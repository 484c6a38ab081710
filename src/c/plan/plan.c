/* plan.c: lowering in post-order, liveness, workspace, cost.
 *
 * The canonical DAG is walked once with an explicit stack; each array or action node becomes a slot
 * and the steps its op emits. Then slots get their life spans and one workspace by first fit,
 * derived values their keys, and the plan its cost. Cost O(nodes + steps). */
#include "user_rule_search.h"

#include "emit_impl.h"

#include <string.h>

/* -- the walk */

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

static lop_status lower_all(lop_emit *e, const lop_node *root) {
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

/* -- life spans and the workspace */

static void touch(lop_plan *p, int slot, int step) {
    lop_slot *s = &p->slot[lop_slot_base(p, slot)];
    if (s->first < 0) s->first = step;
    s->last = step;
}

static void life_spans(lop_plan *p) {
    for (int i = 0; i < p->nstep; i++) {
        const lop_step *s = &p->step[i];
        for (int j = 0; j < s->n; j++) touch(p, s->arg[j], i);
        if (s->fail >= 0) touch(p, s->fail, i);
        if (s->when >= 0) touch(p, s->when, i);
        if (s->escape >= 0) touch(p, s->escape, i);
    }
}

typedef struct hole {
    int64_t offset, bytes;
} hole;

typedef struct space {
    hole *hole;
    int n, room;
    int64_t top;
} space;

static lop_status space_free(lop_ctx *ctx, space *sp, int64_t offset, int64_t bytes) {
    if (sp->n == sp->room) {
        int room = sp->room ? 2 * sp->room : 16;
        hole *more = lop_realloc(ctx, sp->hole, (size_t)room * sizeof *more);
        if (!more) return LOP_NOMEM;
        sp->hole = more;
        sp->room = room;
    }
    sp->hole[sp->n++] = (hole){offset, bytes};
    return LOP_OK;
}

static bool space_take(space *sp, int64_t bytes, int64_t *offset) {
    for (int i = sp->n - 1; i >= 0; i--) /* last freed first: warm in cache */
        if (sp->hole[i].bytes >= bytes && sp->hole[i].bytes <= 2 * bytes) {
            *offset = sp->hole[i].offset;
            sp->hole[i] = sp->hole[--sp->n];
            return true;
        }
    *offset = sp->top;
    return lop_add_ok(sp->top, bytes, &sp->top);
}

static bool flipped(const lop_plan *p, int slot) {
    for (; p->slot[slot].alias >= 0; slot = p->slot[slot].alias)
        if (p->slot[slot].flip) return true;
    return false;
}

static bool slot_bytes(const lop_slot *s, int64_t *bytes) {
    if (!lop_mul_ok(s->matbytes, s->batch, bytes) || *bytes > INT64_MAX - 64) return false;
    *bytes = (*bytes + 63) & ~(int64_t)63;
    return true;
}

/* May the output of step i lie where its first input lies? Only if that dies here, does not
 * broadcast, and no other argument sees the same memory in another shape. */
static bool may_take_over(const lop_plan *p, const lop_step *s, int i) {
    if (!(s->flags & LOP_STEP_INPLACE) || s->n < 2 || s->when >= 0 || s->fail >= 0) return false;
    if (flipped(p, s->arg[0]) || flipped(p, s->arg[1])) return false;
    int from = lop_slot_base(p, s->arg[1]);
    if (p->slot[from].late != p->slot[lop_slot_base(p, s->arg[0])].late) return false;
    const lop_slot *in = &p->slot[s->arg[1]], *out = &p->slot[s->arg[0]];
    if (in->part || out->part) return false;
    if (p->slot[from].kind != LOP_S_TEMP || p->slot[from].last != i) return false;
    for (int j = 2; j < s->n; j++)
        if (lop_slot_base(p, s->arg[j]) == from && s->arg[j] != s->arg[1]) return false;
    int64_t bytes, other;
    return in->batch == out->batch && in->matbytes == out->matbytes &&
           slot_bytes(&p->slot[from], &bytes) &&
           slot_bytes(&p->slot[lop_slot_base(p, s->arg[0])], &other) && bytes == other;
}

/* What dies where a derived value is made of it lies in that value's memory from the first, and so
 * does what was made over into it: then the matrix that is factored has no room of its own. Only
 * what nothing else needs: where the value is kept already, none of its makers runs. */
static bool only_for(const lop_plan *p, int slot, int derived) {
    const uint64_t alone = (uint64_t)1 << derived;
    for (int i = 0; i < p->nstep; i++) {
        const lop_step *s = &p->step[i];
        bool touched = false;
        for (int j = 0; j < s->n; j++) touched = touched || lop_slot_base(p, s->arg[j]) == slot;
        if (!touched || s->derived == derived) continue;
        if (s->serves != alone || s->derived >= 0 || s->when >= 0 || s->fail >= 0 ||
            s->escape >= 0 || s->late >= 0)
            return false;
    }
    return true;
}

static void lay_onto(lop_plan *p) {
    for (int d = 0; d < p->nderive && d < LOP_KEEP; d++) {
        int i = p->derive[d].step;
        const lop_step *s = &p->step[i];
        if (!(s->flags & LOP_STEP_INPLACE) || !p->derive[d].leaves || s->when >= 0 || s->late >= 0)
            continue;
        int slot = s->arg[1];
        const int64_t most = p->derive[d].bytes;
        for (bool first = true;; first = false) {
            lop_slot *t = &p->slot[slot];
            if (t->kind != LOP_S_TEMP || t->alias >= 0 || t->late || t->batch != 1 ||
                t->matbytes > most || t->last != i || t->onto >= 0 || !only_for(p, slot, d))
                break;
            if (!first && !may_take_over(p, &p->step[i], i)) break;
            t->onto = d;
            i = t->first;
            s = &p->step[i];
            if (s->n < 2 || !(s->flags & LOP_STEP_INPLACE) || lop_slot_base(p, s->arg[0]) != slot)
                break;
            slot = lop_slot_base(p, s->arg[1]);
        }
    }
}

/* Offsets for the temporaries that are born at step i. An in-place step takes over its first input.
 */
static lop_status births(lop_plan *p, space *spaces, int i) {
    lop_step *s = &p->step[i];

    for (int j = 0; j < s->n + 2; j++) {
        int id = j < s->n ? s->arg[j] : (j == s->n ? s->fail : s->escape);
        if (id < 0) continue;
        lop_slot *slot = &p->slot[lop_slot_base(p, id)];
        if (slot->kind != LOP_S_TEMP || slot->first != i || slot->offset >= 0 || slot->onto >= 0)
            continue;
        int64_t bytes;
        if (!slot_bytes(slot, &bytes)) return LOP_OVERFLOW;
        if (j == 0 && may_take_over(p, s, i)) {
            lop_slot *in = &p->slot[lop_slot_base(p, s->arg[1])];
            slot->offset = in->offset;
            in->last = -1; /* handed over: not freed */
            continue;
        }
        if (!space_take(&spaces[slot->late], bytes, &slot->offset)) return LOP_OVERFLOW;
    }
    return LOP_OK;
}

static lop_status deaths(lop_plan *p, space *spaces, int i) {
    lop_step *s = &p->step[i];
    for (int j = 0; j < s->n + 3; j++) {
        int id = j < s->n ? s->arg[j] : (j == s->n ? s->fail : j == s->n + 1 ? s->when : s->escape);
        if (id < 0) continue;
        lop_slot *slot = &p->slot[lop_slot_base(p, id)];
        int64_t bytes;
        if (slot->kind != LOP_S_TEMP || slot->last != i || slot->onto >= 0 ||
            !slot_bytes(slot, &bytes))
            continue;
        slot->last = -1; /* once */
        if (space_free(p->ctx, &spaces[slot->late], slot->offset, bytes) != LOP_OK)
            return LOP_NOMEM;
    }
    return LOP_OK;
}

static lop_status place(lop_plan *p, lop_err *err) {
    space sp[3] = {{0}, {0}, {0}}; /* the workspace, the reserves */
    lop_status st = LOP_OK;
    life_spans(p);
    lay_onto(p);
    for (int i = 0; i < p->nstep && st == LOP_OK; i++) {
        st = births(p, sp, i);
        if (st == LOP_OK) st = deaths(p, sp, i);
    }
    p->workspace = sp[0].top;
    for (int i = 0; i < 2; i++) {
        p->reserve[i] = sp[i + 1].top;
        if (p->reserve[i] > INT64_MAX - 64) st = LOP_OVERFLOW;
    }
    for (int i = 0; i < 3; i++) lop_free(p->ctx, sp[i].hole);
    return st == LOP_OK ? st : lop_fail(err, st, "the workspace of this expression is too large");
}

/* -- cost */

double lop_step_seconds(const lop_plan *p, int step) {
    const lop_costs *c = lop_costs_of(p->ctx);
    const lop_step *s = &p->step[step];
    double work = s->flops / (s->flags & LOP_STEP_GEMM ? c->gemm_rate : c->flop_rate);
    double move = s->bytes / c->bandwidth;
    return (work > move ? work : move) + c->overhead;
}

int64_t lop_plan_result(const lop_plan *p) {
    const lop_slot *o = &p->slot[p->out];
    int64_t bytes;
    return lop_mul_ok(o->matbytes, o->batch, &bytes) ? bytes : INT64_MAX;
}

int64_t lop_plan_kept(const lop_plan *p) {
    int64_t sum = 0, bytes;
    for (int i = 0; i < p->nderive; i++) {
        const lop_step *s = &p->step[p->derive[i].step];
        if (s->late >= 0) continue; /* after a failure only */
        if (!lop_mul_ok(p->derive[i].bytes, p->slot[s->arg[0]].batch, &bytes) ||
            !lop_add_ok(sum, bytes, &sum))
            return INT64_MAX;
    }
    return sum;
}

int64_t lop_plan_memory(const lop_plan *p) {
    int64_t sum = p->workspace;
    bool fits = lop_add_ok(sum, (int64_t)p->scratch, &sum) &&
                lop_add_ok(sum, lop_plan_result(p), &sum) &&
                lop_add_ok(sum, lop_plan_kept(p), &sum);
    return fits ? sum : INT64_MAX;
}

static void price(lop_plan *p) {
    for (int i = 0; i < p->nstep; i++) {
        const lop_step *s = &p->step[i];
        for (int j = 0; j < s->n; j++)
            if (p->slot[s->arg[j]].batch > 1) p->batched = true;
        size_t *most = s->late >= 0 ? &p->late_scratch[s->later >= 0] : &p->scratch;
        if (s->scratch > *most) *most = s->scratch;
        if (s->late >= 0 || (s->when >= 0 && s->when_set)) continue; /* after a failure only */
        p->flops += s->flops;
        p->bytes += s->bytes;
        p->seconds += lop_step_seconds(p, i);
    }
    p->scratch = (p->scratch + 63) & ~(size_t)63;
    /* the scratch of second arms lies behind it; at most INT64_MAX - 64, see place */
    for (int i = 0; i < 2; i++) p->reserve[i] = (p->reserve[i] + 63) & ~(int64_t)63;
}

/* -- arrays that nobody asked for */

static double elements_of(const lop_slot *s) {
    return (double)s->m * (double)s->n * (double)s->batch;
}
static void note_dense(lop_plan *p, int64_t one, int64_t batch) {
    int64_t bytes;
    if (!lop_mul_ok(one, batch, &bytes)) bytes = INT64_MAX;
    if (bytes > p->dense) p->dense = bytes;
}

/* The largest matrix on the way that is larger than all the operands with the result and a few
 * vectors: a dense form of what was not given dense, whoever makes it, or a factor of one. What an
 * operator is applied to may grow between two factors, in as many columns: that is as written. Of
 * derived values only the bytes are known: 32 an element leave room for plans and complex spectra.
 */
static void find_unasked(lop_plan *p) {
    enum { VECTORS = 4, BYTES = 32 };
    const lop_node *asked = p->written, *a = asked->n > 0 ? asked->child[0] : NULL;
    const int64_t k = asked->op == &lop_op_apply ? lop_cols(asked->child[1]) : 1;
    double given = elements_of(&p->slot[p->out]);
    for (int i = 0; i < p->nleaf; i++) given += elements_of(&p->slot[p->leaf[i].slot]);
    if (a && a->shape.ndim >= 2)
        given +=
            VECTORS * ((double)lop_rows(a) + (double)lop_cols(a)) * (double)p->slot[p->out].batch;
    for (int i = 0; i < p->nstep; i++) /* a band, found by products with as many columns */
        if (p->step[i].origin && p->step[i].origin->op == &lop_op_bandprobe)
            given += 2 * elements_of(&p->slot[p->step[i].arg[0]]);
    for (int i = 0; i < p->nslot; i++) {
        const lop_slot *s = &p->slot[i];
        if (s->kind != LOP_S_TEMP || s->core != 2 || s->alias >= 0 || s->late || s->first < 0 ||
            s->m <= k || s->n <= k || elements_of(s) <= given)
            continue;
        note_dense(p, s->matbytes, s->batch);
    }
    for (int i = 0; i < p->nderive; i++) {
        const lop_step *s = &p->step[p->derive[i].step];
        const lop_slot *to = &p->slot[s->arg[0]];
        if (s->late >= 0 || (double)p->derive[i].bytes * (double)to->batch <= BYTES * given)
            continue;
        note_dense(p, p->derive[i].bytes, to->batch);
    }
}

/* -- the pipeline */

static lop_status checked(const lop_plan *p, lop_pass pass, lop_err *err) {
#ifdef NDEBUG
    if (!p->ctx->check_plans) return LOP_OK;
#endif
    return lop_plan_check(p, pass, err);
}

lop_status lop_plan_one(lop_ctx *ctx, const lop_rules *rules, const lop_options *options,
                        const lop_node *root, lop_plan **out, lop_err *err) {
    lop_status st;
    *out = NULL;
    if (root->opaque)
        return lop_fail(err, LOP_MISSING, "the expression holds a callable or a foreign dtype");
    lop_plan *p = lop_calloc(ctx, 1, sizeof *p);
    if (!p) return lop_fail(err, LOP_NOMEM, NULL);
    p->ctx = ctx;
    p->refs = 1;
    p->written = lop_node_ref(root);
    lop_tab tab;
    lop_tab_init(&tab, ctx);
    lop_emit e = {.plan = p, .err = err, .options = options};
    p->trace.trail = options->trail;
    LOP_TRY(lop_rewrite(rules, &tab, root, &p->root, &p->trace, err));
    if (p->root->dtype != root->dtype || !lop_shape_equal(&p->root->shape, &root->shape))
        LOP_TRY(lop_fail(err, LOP_INTERNAL, "the rules changed the shape or dtype of the result"));
    LOP_TRY(lop_map_init(&e.map, ctx));
    LOP_TRY(lower_all(&e, p->root));
    LOP_TRY(checked(p, LOP_PASS_LOWER, err));
    LOP_TRY(lop_fuse(p, err));
    LOP_TRY(checked(p, LOP_PASS_FUSE, err));
    LOP_TRY(lop_keep_plan(p, err));
    LOP_TRY(checked(p, LOP_PASS_KEEP, err));
    LOP_TRY(place(p, err));
    price(p);
    find_unasked(p);
    LOP_TRY(checked(p, LOP_PASS_PLACE, err));
done:
    p->trace.trail = NULL;
    lop_free(ctx, e.arm);
    lop_free(ctx, (void *)e.fresh);
    lop_map_clear(&e.map, ctx);
    lop_tab_clear(&tab);
    if (st == LOP_NOMEM && err && err->status != LOP_NOMEM) (void)lop_fail(err, LOP_NOMEM, NULL);
    if (st == LOP_OK)
        *out = p;
    else
        lop_plan_unref(p);
    return st;
}

lop_status lop_plan_make(lop_ctx *ctx, const lop_rules *rules, const lop_options *options,
                         const lop_node *root, lop_plan **out, lop_err *err) {
    lop_status st = lop_plan_one(ctx, rules, options, root, out, err);
    if (st != LOP_OK || !lop_rules_explore(rules)) return st;
    st = lop_explore(rules, options, root, out, err);
    if (st == LOP_OK) return st;
    lop_plan_unref(*out);
    *out = NULL;
    return st;
}

void lop_plan_unref(lop_plan *p) {
    if (!p || --p->refs > 0) return;
    lop_node_unref(p->root);
    lop_node_unref(p->written);
    lop_free(p->ctx, p->slot);
    for (int i = 0; i < p->nstep; i++) lop_free(p->ctx, (void *)(uintptr_t)p->step[i].data);
    lop_free(p->ctx, p->step);
    lop_free(p->ctx, p->leaf);
    lop_free(p->ctx, p->derive);
    lop_free(p->ctx, p->key);
    lop_free(p->ctx, p);
}
