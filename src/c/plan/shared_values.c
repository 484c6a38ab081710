/* shared_values.c: what the fast branches of several nodes need is made once, in front of them.
 *
 * What is lowered in a fast branch is known there alone, since a failure may have led past it. So
 * W = B^-1 U would be made anew by each solve, determinant and diagonal that B + U V^H is asked
 * for. Here the values that several fast branches need become a block of steps of its own in front
 * of the first of them:
 *
 *   W: solve, gemm, ...   escapes behind the block, and sets its mask
 *      held               says that nothing failed
 *   x: gate               escapes to the fallback of x where the mask is set
 *      what x makes of W
 *
 * A fast branch fails as before where one of its steps does, be it of a block: values with the same
 * users make a block, so that none fails by what it does not need. Fallback branches, and what lies
 * outside of branches, make their own, in which an error is an error.
 *
 * What is needed outside of branches in any case comes before a fast branch that needs it too.
 *
 * One walk over what is outside of branches, and one over each fast branch, of at most 64. */
#include "passes.h"

#include <stdlib.h>
#include <string.h>

enum { USERS = 64, SETS = 256 };

struct lop_shares {
    lop_map plain; /* nodes that are needed outside of branches */
    lop_map user;  /* those of them with branches: which bit */
    lop_map set;   /* nodes within fast branches: whose, as an index */
    const lop_node *top[USERS];
    int ntop;
    uint64_t users[SETS]; /* the sets: a bit each */
    int mask[SETS];       /* of the block; -1: not lowered */
    int nset;
    struct value {
        const lop_node *node;
        int slot, set;
    } *held;
    int nheld, room;
};

static int bits(uint64_t x) {
    int n = 0;
    for (; x; x &= x - 1) n++;
    return n;
}

void lop_shares_free(lop_emit *e) {
    lop_ctx *ctx = e->plan->ctx;
    if (!e->shares) return;
    lop_map_clear(&e->shares->plain, ctx);
    lop_map_clear(&e->shares->user, ctx);
    lop_map_clear(&e->shares->set, ctx);
    lop_free(ctx, e->shares->held);
    lop_free(ctx, e->shares);
    e->shares = NULL;
}

/* -- who needs what */

static lop_status find_plain(const lop_emit *e, const lop_node *root, lop_shares *s) {
    lop_walks todo = {.ctx = e->plan->ctx};
    int known;
    lop_status st = lop_walks_push(&todo, root);
    while (st == LOP_OK && todo.n > 0) {
        const lop_node *at = todo.at[--todo.n].node;
        if (lop_map_get(&s->plain, at, &known) || lop_is_lowered(e, at)) continue;
        st = lop_map_set(&s->plain, at, 1);
        if (st != LOP_OK) break;
        if (e->instead.count > 0 && lop_map_get(&e->instead, at, &known)) {
            st = lop_walks_push(&todo, at->child[at->n - 1]);
            continue;
        }
        if (at->op->check) {
            if (s->ntop < USERS) {
                st = lop_map_set(&s->user, at, s->ntop);
                s->top[s->ntop] = at;
            }
            s->ntop++;
            continue;
        }
        for (int i = 0; st == LOP_OK && i < lop_nneeded(at); i++)
            st = lop_walks_push(&todo, lop_needed(at, i));
    }
    lop_free(e->plan->ctx, todo.at);
    return st;
}

/* The set with that bit more; -1: there are too many. */
static int with(lop_shares *s, int set, int bit) {
    const uint64_t users = (set >= 0 ? s->users[set] : 0) | (uint64_t)1 << bit;
    for (int i = 0; i < s->nset; i++)
        if (s->users[i] == users) return i;
    if (s->nset == SETS) return -1;
    s->users[s->nset] = users;
    s->mask[s->nset] = -1;
    return s->nset++;
}

static lop_status find_users(const lop_emit *e, lop_shares *s, int bit, bool *many) {
    const lop_node *top = s->top[bit];
    lop_walks todo = {.ctx = e->plan->ctx};
    lop_status st = LOP_OK;
    int known;
    for (int i = 0; st == LOP_OK && i < top->n - 1; i++)
        st = lop_walks_push(&todo, lop_needed(top, i));
    while (st == LOP_OK && todo.n > 0 && !*many) {
        const lop_node *at = todo.at[--todo.n].node;
        int set = -1;
        if (lop_is_lowered(e, at) || at->op == &lop_op_array || lop_map_get(&s->plain, at, &known))
            continue;
        if (lop_map_get(&s->set, at, &set) && (s->users[set] >> bit & 1)) continue;
        set = with(s, set, bit);
        *many = set < 0;
        if (!*many) st = lop_map_set(&s->set, at, set);
        for (int i = 0; st == LOP_OK && !at->op->check && i < lop_nneeded(at); i++)
            st = lop_walks_push(&todo, lop_needed(at, i));
    }
    lop_free(e->plan->ctx, todo.at);
    return st;
}

lop_status lop_shares_find(lop_emit *e, const lop_node *root) {
    lop_ctx *ctx = e->plan->ctx;
    lop_shares *s = e->shares = lop_calloc(ctx, 1, sizeof *s);
    if (!s) return LOP_NOMEM;
    lop_status st = lop_map_init(&s->plain, ctx);
    bool many = false;
    if (st == LOP_OK) st = lop_map_init(&s->user, ctx);
    if (st == LOP_OK) st = lop_map_init(&s->set, ctx);
    if (st == LOP_OK) st = find_plain(e, root, s);
    if (s->ntop > USERS) many = true;
    for (int i = 0; st == LOP_OK && !many && i < s->ntop; i++) st = find_users(e, s, i, &many);
    if (many) s->ntop = s->nset = 0;
    return st;
}

/* -- in front of a fast branch */

/* A node that is needed outside of branches in any case, and in the fast branch of `node`. */
lop_status lop_shares_before(const lop_emit *e, const lop_node *node, const lop_node **found) {
    const lop_shares *s = e->shares;
    lop_walks todo = {.ctx = e->plan->ctx};
    lop_map seen = {0};
    int known;
    *found = NULL;
    if (!s->ntop || !lop_map_get(&s->user, node, &known)) return LOP_OK;
    lop_status st = lop_map_init(&seen, e->plan->ctx);
    for (int i = 0; st == LOP_OK && i < node->n - 1; i++)
        st = lop_walks_push(&todo, lop_needed(node, i));
    while (st == LOP_OK && todo.n > 0 && !*found) {
        const lop_node *at = todo.at[--todo.n].node;
        if (lop_is_lowered(e, at) || at->op == &lop_op_array || lop_map_get(&seen, at, &known))
            continue;
        if (lop_is_value(at) && lop_map_get(&s->plain, at, &known)) *found = at;
        st = lop_map_set(&seen, at, 1);
        for (int i = 0; st == LOP_OK && !at->op->check && i < lop_nneeded(at); i++)
            st = lop_walks_push(&todo, lop_needed(at, i));
    }
    lop_map_clear(&seen, e->plan->ctx);
    lop_free(e->plan->ctx, todo.at);
    return st;
}

static lop_status run_held(const lop_call *c) {
    *(unsigned char *)c->a[0]->p = 0;
    return LOP_OK;
}

static lop_status run_gate(const lop_call *c) {
    *(unsigned char *)c->a[0]->p = 0;
    return *(const unsigned char *)c->a[1]->p ? LOP_SINGULAR : LOP_OK;
}

static int new_flag(lop_emit *e, lop_status *st) {
    const lop_shape none = {0};
    return lop_emit_slot(e, LOP_S_TEMP, LOP_b8, 0, &none, st);
}

/* The blocks that `users` all are among the users of are seen in the branch just opened, behind
 * their gates. */
static lop_status see(lop_emit *e, uint64_t users) {
    lop_shares *s = e->shares;
    lop_status st = LOP_OK;
    for (int set = 0; st == LOP_OK && set < s->nset; set++) {
        if (s->mask[set] < 0 || (users & ~s->users[set])) continue;
        const int out = new_flag(e, &st);
        lop_step *gate =
            st == LOP_OK ? lop_emit_step(e, "gate", run_gate, out, 1, &s->mask[set]) : NULL;
        if (!gate) return st == LOP_OK ? LOP_NOMEM : st;
        gate->flags |= LOP_STEP_GATE;
        for (int i = 0; st == LOP_OK && i < s->nheld; i++) {
            if (s->held[i].set != set || lop_is_lowered(e, s->held[i].node)) continue;
            st = lop_note_fresh(e, s->held[i].node);
            if (st == LOP_OK) st = lop_map_set(&e->map, s->held[i].node, s->held[i].slot);
        }
    }
    return st;
}

lop_status lop_shares_see(lop_emit *e, const lop_node *node) {
    int bit;
    if (!e->shares->nset || !lop_map_get(&e->shares->user, node, &bit)) return LOP_OK;
    return see(e, (uint64_t)1 << bit);
}

/* Is it work, and not only another look at what is there? */
static bool is_work(const lop_node *a) {
    static const lop_op *const looks[] = {&lop_op_array,     &lop_op_cast, &lop_op_view,
                                          &lop_op_conjugate, &lop_op_ones, &lop_op_first_unit};
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++)
        if (a->op == looks[i]) return false;
    return lop_is_value(a);
}

/* The values of a set, in the order in which the fast branch of `node` comes upon them. */
static lop_status of_set(const lop_emit *e, const lop_node *node, int set, lop_walks *found,
                         bool *work) {
    const lop_shares *s = e->shares;
    lop_walks todo = {.ctx = e->plan->ctx};
    lop_map seen = {0};
    int known;
    lop_status st = lop_map_init(&seen, e->plan->ctx);
    *work = false;
    for (int i = node->n - 2; st == LOP_OK && i >= 0; i--)
        st = lop_walks_push(&todo, lop_needed(node, i));
    while (st == LOP_OK && todo.n > 0) {
        const lop_node *at = todo.at[--todo.n].node;
        if (lop_is_lowered(e, at) || at->op == &lop_op_array || lop_map_get(&seen, at, &known))
            continue;
        st = lop_map_set(&seen, at, 1);
        if (st == LOP_OK && lop_map_get(&s->set, at, &known) && known == set && lop_is_value(at)) {
            st = lop_walks_push(found, at);
            *work = *work || is_work(at);
        }
        for (int i = lop_nneeded(at) - 1; st == LOP_OK && !at->op->check && i >= 0; i--)
            st = lop_walks_push(&todo, lop_needed(at, i));
    }
    lop_map_clear(&seen, e->plan->ctx);
    lop_free(e->plan->ctx, todo.at);
    return st;
}

/* The values lowered since `first` are those of the block. */
static lop_status hold(lop_emit *e, int first, int set) {
    lop_shares *s = e->shares;
    for (int i = first; i < e->nfresh; i++) {
        int slot;
        if (!lop_map_get(&e->map, e->fresh[i], &slot)) continue;
        if (s->nheld == s->room) {
            const int room = s->room ? 2 * s->room : 16;
            struct value *more = lop_realloc(e->plan->ctx, s->held, (size_t)room * sizeof *s->held);
            if (!more) return LOP_NOMEM;
            s->held = more;
            s->room = room;
        }
        s->held[s->nheld++] = (struct value){e->fresh[i], slot, set};
    }
    return LOP_OK;
}

static lop_status lower_block(lop_emit *e, const lop_node *root, const lop_walks *values, int set) {
    lop_plan *p = e->plan;
    lop_shares *s = e->shares;
    lop_branch branch = {.fresh = e->nfresh, .step = p->nstep, .value = -1};
    lop_status st;
    branch.mask = new_flag(e, &st);
    if (st == LOP_OK) st = lop_push_branch(e, branch);
    if (st != LOP_OK) return st;
    st = see(e, s->users[set]);
    const int first = e->nfresh;
    for (int64_t i = 0; st == LOP_OK && i < values->n; i++)
        st = lop_lower_from(e, root, values->at[i].node);
    if (st == LOP_OK) st = hold(e, first, set);
    if (st == LOP_OK && !lop_emit_step(e, "held", run_held, branch.mask, 0, NULL)) st = LOP_NOMEM;
    for (int i = branch.step; st == LOP_OK && i < p->nstep - 1; i++) {
        lop_step *step = &p->step[i];
        if (step->derived >= 0) p->derive[step->derived].in_branch = true;
        step->flags |= LOP_STEP_HUSHED;
        if (step->fail >= 0 || step->escape >= 0) continue;
        step->escape = branch.mask;
        step->escape_to = p->nstep;
    }
    e->nbranch--;
    s->mask[set] = branch.mask;
    return st == LOP_OK ? lop_forget(e, branch.fresh) : st;
}

lop_status lop_shares_lower(lop_emit *e, const lop_node *root, const lop_node *node) {
    lop_shares *s = e->shares;
    lop_status st = LOP_OK;
    int bit;
    if (!s->nset || !lop_map_get(&s->user, node, &bit)) return LOP_OK;
    for (int many = s->ntop; many > 1; many--) {
        for (int set = 0; st == LOP_OK && set < s->nset; set++) {
            if (s->mask[set] >= 0 || !(s->users[set] >> bit & 1) || bits(s->users[set]) != many)
                continue;
            lop_walks values = {.ctx = e->plan->ctx};
            bool work;
            st = of_set(e, node, set, &values, &work);
            if (st == LOP_OK && work) st = lower_block(e, root, &values, set);
            lop_free(e->plan->ctx, values.at);
        }
    }
    return st;
}
