/* rewrite.c: matches, instantiates, drives to a fixed point.
 *
 *   node --root rules, first fit--> node ... --no rule fits: one step on an operator child's
 * head--> again; then the children in turn (explicit stack, each node once); rebuilt and interned.
 *
 * A rule set that does not terminate ends in an error that names the rule, not in a hang. */
#include "rewrite.h"

#include "expr/node_map.h"
#include "ruleset.h"

#include <math.h>
#include <string.h>

/* -- interning */

static uint64_t node_hash(const lop_node *n) {
    uint64_t h = (uint64_t)(uintptr_t)n->op ^ n->serial * 0x9e3779b97f4a7c15u ^
                 (uint64_t)(uint32_t)n->attr.num << 40;
    for (int i = 0; i < 4; i++) h = (h ^ (uint64_t)n->attr.i[i]) * 0xff51afd7ed558ccdu;
    uint64_t bits;
    memcpy(&bits, &n->attr.re, 8);
    h = (h ^ bits) * 0xff51afd7ed558ccdu;
    for (int i = 0; i < n->n; i++)
        h = (h ^ (uint64_t)(uintptr_t)n->child[i] ^ (h >> 29)) * 0xff51afd7ed558ccdu;
    return h ^ (h >> 32);
}

static bool node_same(const lop_node *a, const lop_node *b) {
    if (a->op != b->op || a->serial != b->serial || a->n != b->n ||
        !lop_attr_equal(&a->attr, &b->attr))
        return false;
    for (int i = 0; i < a->n; i++)
        if (a->child[i] != b->child[i]) return false;
    return a->n > 0 || (a->dtype == b->dtype && a->weak == b->weak && a->core == b->core &&
                        lop_shape_equal(&a->shape, &b->shape));
}

void lop_tab_init(lop_tab *tab, lop_ctx *ctx) { *tab = (lop_tab){.ctx = ctx}; }

void lop_tab_clear(lop_tab *tab) {
    for (int64_t i = 0; i < tab->room; i++) lop_node_unref(tab->slot[i]);
    lop_free(tab->ctx, (void *)tab->slot);
    tab->slot = NULL;
    tab->room = tab->count = 0;
}

static int64_t tab_find(const lop_tab *tab, const lop_node *node) {
    uint64_t mask = (uint64_t)tab->room - 1, at = node_hash(node) & mask;
    while (tab->slot[at] && !node_same(tab->slot[at], node)) at = (at + 1) & mask;
    return (int64_t)at;
}

/* Takes over the caller's reference; gives one to the interned node. NULL: out of memory. */
static const lop_node *intern(lop_tab *tab, const lop_node *node) {
    if (2 * (tab->count + 1) > tab->room) {
        lop_tab more = {
            .ctx = tab->ctx, .room = tab->room ? 2 * tab->room : 128, .count = tab->count};
        more.slot = lop_calloc(tab->ctx, (size_t)more.room, sizeof *more.slot);
        if (!more.slot) {
            lop_node_unref(node);
            return NULL;
        }
        for (int64_t i = 0; i < tab->room; i++)
            if (tab->slot[i]) more.slot[tab_find(&more, tab->slot[i])] = tab->slot[i];
        lop_free(tab->ctx, (void *)tab->slot);
        *tab = more;
    }
    int64_t at = tab_find(tab, node);
    if (!tab->slot[at]) {
        tab->slot[at] = lop_node_ref(node);
        tab->count++;
        return node;
    }
    const lop_node *known = lop_node_ref(tab->slot[at]);
    lop_node_unref(node);
    return known;
}

lop_status lop_make_op(const lop_maker *mk, const lop_op *op, const lop_attr *attr, int n,
                       const lop_node *const *child, const lop_node *like, const lop_node **out) {
    const lop_node *inner = NULL;
    lop_attr mode;
    if (op == &lop_op_view && mk->tab && attr && child[0]->op == op) {
        /* One view, or none: who moves a view to a part need not know that it is one already. */
        inner = child[0]->child[0];
        mode = (lop_attr){.i = {attr->i[0] ^ child[0]->attr.i[0], 0, 0, 0}};
        if (!lop_is_complex(inner->dtype)) mode.i[0] &= LOP_T;
        if (!mode.i[0]) {
            *out = lop_node_ref(inner);
            return LOP_OK;
        }
        attr = &mode;
        child = &inner;
    }
    lop_status st = lop_node_make(mk->ctx, op, attr, n, child, like, out, mk->err);
    if (st != LOP_OK || !mk->tab) return st;
    *out = intern(mk->tab, *out);
    return *out ? LOP_OK : lop_fail(mk->err, LOP_NOMEM, NULL);
}

static bool match(const lop_text *t, int id, const lop_node *node, lop_match *m);

/* The identity of operators or arrays, or a multiple of it. */
static bool match_multiple(const lop_term *term, const lop_node *node, lop_match *m) {
    const bool times = node->op == lop_multiples_of(term->op);
    if (!times && node->op != term->op) return false;
    if (times && node->child[0]->op != term->op) return false;
    m->attr[term->attr_hole] = times ? node->attr : lop_attr_coef(1, 0);
    return true;
}

/* Two operands, either way round; what the first try bound is undone. */
static bool match_either(const lop_text *t, const lop_term *term, const lop_node *node,
                         lop_match *m) {
    const int *id = &t->index[term->first];
    const lop_node *bound[LOP_HOLES];
    const int nall = m->nall;
    memcpy(bound, m->node, sizeof bound);
    if (match(t, id[0], node->child[0], m) && match(t, id[1], node->child[1], m)) return true;
    memcpy(m->node, bound, sizeof bound);
    m->nall = nall;
    return match(t, id[0], node->child[1], m) && match(t, id[1], node->child[0], m);
}

/* Recursion here is as deep as a rule's text, which is ours. */
static bool match(const lop_text *t, int id, const lop_node *node, lop_match *m) {
    const lop_term *term = &t->term[id];
    if (!term->op) {
        if (m->node[term->hole] && m->node[term->hole] != node) return false;
        m->node[term->hole] = node;
        return true;
    }
    if (term->attr_hole >= 0 && lop_multiples_of(term->op)) return match_multiple(term, node, m);
    if (term->op != node->op || term->n != node->n) {
        if (term->op != node->op || term->op->max == term->op->min || term->n != 0)
            return false; /* (kron), (lowrank): any number */
    }
    if (term->has_attr) {
        lop_attr attr = node->attr;
        lop_coef_put(&attr, lop_coef_fix(node->ctx, lop_coef_of(&attr)));
        if (!lop_attr_equal(&term->attr, &attr)) return false;
    }
    if (term->attr_hole >= 0) m->attr[term->attr_hole] = node->attr;
    if (lop_names_alone(term) && m->nall < 2) m->all[m->nall++] = node;
    if (term->either) return match_either(t, term, node, m);
    for (int i = 0; i < term->n; i++)
        if (!match(t, t->index[term->first + i], node->child[i], m)) return false;
    return true;
}

/* Is there ?* or ?+ in a term? */
static bool of_each(const lop_text *t, int id) {
    const lop_term *term = &t->term[id];
    bool found = !term->op && term->hole >= LOP_EACH;
    for (int i = 0; i < term->n; i++) found = found || of_each(t, t->index[term->first + i]);
    return found;
}

static lop_status instantiate(const lop_text *t, int id, const lop_match *m,
                              const lop_node *const *each, const lop_maker *mk,
                              const lop_node **out);

/* A term once for each operand. NOMATCH: there are not as many of both. */
static lop_status for_each(const lop_text *t, const lop_term *term, const lop_match *m,
                           const lop_maker *mk, const lop_node **out) {
    const int n = m->nall > 0 ? m->all[0]->n : 0;
    if (m->nall > 1 && m->all[1]->n != n) return LOP_NOMATCH;
    const lop_node **child = lop_calloc(mk->ctx, (size_t)n + 1, sizeof *child);
    if (!child) return lop_fail(mk->err, LOP_NOMEM, NULL);
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < n; i++) {
        const lop_node *each[2] = {m->all[0]->child[i], m->nall > 1 ? m->all[1]->child[i] : NULL};
        st = instantiate(t, t->index[term->first], m, each, mk, &child[i]);
    }
    if (st == LOP_OK) st = lop_make_op(mk, term->op, NULL, n, child, NULL, out);
    for (int i = 0; i < n; i++) lop_node_unref(child[i]);
    lop_free(mk->ctx, (void *)child);
    return st;
}

/* `each`: what ?* and ?+ stand for, below such a term. */
static lop_status instantiate(const lop_text *t, int id, const lop_match *m,
                              const lop_node *const *each, const lop_maker *mk,
                              const lop_node **out) {
    const lop_term *term = &t->term[id];
    if (!term->op) {
        *out =
            lop_node_ref(term->hole < LOP_EACH ? m->node[term->hole] : each[term->hole - LOP_EACH]);
        return LOP_OK;
    }
    if (!each && lop_takes_each(term) && of_each(t, t->index[term->first]))
        return for_each(t, term, m, mk, out);
    const lop_node *child[8] = {0};
    lop_status st = term->n <= 8 ? LOP_OK : LOP_INTERNAL;
    for (int i = 0; st == LOP_OK && i < term->n; i++)
        st = instantiate(t, t->index[term->first + i], m, each, mk, &child[i]);
    const lop_attr *attr = term->attr_hole >= 0 ? &m->attr[term->attr_hole] : &term->attr;
    if (st == LOP_OK && (term->op == &lop_op_mul || term->op == &lop_op_add))
        st = lop_join(mk, term->op, attr, child[0], child[1], out);
    else if (st == LOP_OK)
        st = lop_make_op(mk, term->op, attr, term->n, child, NULL, out);
    for (int i = 0; i < term->n && i < 8; i++) lop_node_unref(child[i]);
    return st;
}

lop_status lop_instantiate(const lop_text *t, int id, const lop_match *m, const lop_maker *mk,
                           const lop_node **out) {
    return instantiate(t, id, m, NULL, mk, out);
}

/* A rule keeps the dtype. Where the right side comes out in another one (integers under an inverse,
 * factor by factor) a value is cast and an operator stays as it was. Takes over *out. */
static lop_status keep_dtype(const lop_maker *mk, const lop_node *node, const lop_node **out) {
    const lop_node *made = *out;
    bool value = node->op->cls != LOP_OPERATOR;
    if (made->dtype == node->dtype && (value || made->weak == node->weak)) return LOP_OK;
    lop_attr d = {.i = {1, 0, 0, (int64_t)node->dtype + 1}};
    lop_status st = value ? lop_make1(mk, &lop_op_cast, &d, made, out) : LOP_NOMATCH;
    lop_node_unref(made);
    if (st != LOP_OK) *out = NULL;
    return st;
}

/* -- what is written down for explanations */

static void note(const lop_maker *mk, int rule, lop_why why) {
    if (mk->trace && mk->trace->trail) lop_trail_note(mk->trace->trail, rule, why);
}

void lop_trail_note(lop_trail *trail, int rule, lop_why why) {
    for (int i = 0; i < trail->n; i++)
        if (trail->note[i].rule == rule && trail->note[i].why == (int16_t)why) {
            trail->note[i].count++;
            return;
        }
    if (trail->n == LOP_NOTES) return;
    trail->note[trail->n++] = (lop_note){(int16_t)rule, (int16_t)why, 1};
}

void lop_trail_other(lop_trail *trail, int rule, const char *text, double seconds) {
    for (int i = 0; i < trail->nother; i++) {
        const lop_other *o = &trail->other[i];
        bool same = fabs(o->seconds - seconds) <= 1e-9 * seconds;
        if (same && o->rule == rule && !strncmp(o->text, text, LOP_ORDER - 1)) return;
    }
    if (trail->nother == LOP_OTHERS) return;
    lop_other *o = &trail->other[trail->nother++];
    o->rule = rule;
    o->seconds = seconds;
    size_t n = strlen(text);
    if (n >= LOP_ORDER) n = LOP_ORDER - 1;
    memcpy(o->text, text, n);
    o->text[n] = 0;
}

/* -- one rule */

/* A user's rule where its right side is not well-formed, or of another shape, does not fit. */
static lop_status own_fits(const lop_maker *mk, const lop_node *node, lop_status st,
                           const lop_node **out) {
    if (st == LOP_NOMEM || st == LOP_NOMATCH) return st;
    if (st == LOP_OK && (*out)->core == node->core && lop_shape_equal(&(*out)->shape, &node->shape))
        return st;
    if (st == LOP_OK)
        lop_node_unref(*out);
    else if (mk->err)
        lop_err_open(mk->err);
    *out = NULL;
    return LOP_NOMATCH;
}

bool lop_rule_match(const lop_compiled *row, const lop_node *node, lop_match *m) {
    if (!lop_may_match(row->head, node)) return false;
    m->root = node; /* 1.5 KB: only what is tested is cleared; match fills the rest */
    memset(m->node, 0, sizeof m->node);
    m->nall = 0;
    return match(&row->left, row->left.n - 1, node, m);
}

lop_status lop_rule_at(const lop_rules *r, int i, const lop_node *node, const lop_maker *mk,
                       const lop_node **out) {
    lop_compiled *row = &r->row[i];
    lop_match m;
    if (!lop_rule_match(row, node, &m)) return LOP_NOMATCH;
    if (r->noff && lop_is_off(r, i)) {
        note(mk, i, LOP_WHY_OFF);
        return LOP_NOMATCH;
    }
    if (row->rule->when && row->rule->when(&m) != LOP_TRUE) {
        note(mk, i, LOP_WHY_GUARD);
        return LOP_NOMATCH;
    }
    lop_status st = row->rule->build ? row->rule->build(&m, mk, out)
                                     : lop_instantiate(&row->right, row->right.n - 1, &m, mk, out);
    if (row->own) st = own_fits(mk, node, st, out);
    if (st == LOP_OK) st = keep_dtype(mk, node, out);
    if (st == LOP_NOMATCH) note(mk, i, LOP_WHY_BUILD);
    return st;
}

/* The first rule of the phase that fits `node` at its root; `named`: that names its first child's
 * head. Owned in *out; NOMATCH. */
static lop_status apply_rules(const lop_rules *r, lop_phase phase, bool named, const lop_node *node,
                              const lop_maker *mk, const lop_node **out, int *which) {
    for (int i = r->first[phase][lop_op_id(node->op)]; i >= 0; i = lop_row_after(r, phase, i)) {
        if (named && !r->quick[i].head) continue;
        if (!lop_may_match(r->quick[i].head, node)) continue;
        lop_status st = lop_rule_at(r, i, node, mk, out);
        if (st == LOP_NOMATCH) continue;
        if (st == LOP_OK) {
            r->row[i].fired += !(mk->ctx->coefs && mk->ctx->coefs->again);
            note(mk, i, LOP_WHY_FIRED);
        }
        *which = i;
        return st;
    }
    return LOP_NOMATCH;
}

lop_status lop_push_once(const lop_maker *mk, const lop_node *node, bool named,
                         const lop_node **out) {
    int which;
    if (!mk->rules) return LOP_NOMATCH;
    return apply_rules(mk->rules, LOP_PUSH, named, node, mk, out, &which);
}

lop_status lop_close(const lop_rules *rules, lop_ctx *ctx, const lop_op *op, const lop_attr *attr,
                     int n, const lop_node *const *child, const lop_node **out, int *rule,
                     lop_err *err) {
    if (n < 1 || !lop_may_close(rules, op, child[0]->op, n > 1 ? child[1]->op : NULL))
        return LOP_NOMATCH;
    for (int i = 0; i < n; i++)
        if (child[i]->opaque) return LOP_NOMATCH;
    lop_maker mk = {.ctx = ctx, .err = err};
    const lop_node *written;
    lop_status st = lop_node_make(ctx, op, attr, n, child, NULL, &written, err);
    if (st != LOP_OK) return st;
    st = apply_rules(rules, LOP_CLOSE, false, written, &mk, out, rule);
    lop_node_unref(written);
    return st;
}

lop_status lop_close_once(const lop_maker *mk, const lop_node *node, const lop_node **out) {
    int which;
    if (!mk->rules || node->n < 1 ||
        !lop_may_close(mk->rules, node->op, node->child[0]->op,
                       node->n > 1 ? node->child[1]->op : NULL))
        return LOP_NOMATCH;
    return apply_rules(mk->rules, LOP_CLOSE, false, node, mk, out, &which);
}

/* -- the driver */

typedef struct spot {
    const lop_node *node;    /* borrowed: what was asked for */
    const lop_node *reduced; /* owned */
    int next;
} spot;

/* Rules that do not terminate and expressions that unfold without end (A^(10^9)) stop here; some
 * 600 bytes each. */
enum { BUDGET = 1000000, OWN_BUDGET = 10000 };

typedef struct driver {
    const lop_rules *rules;
    lop_maker mk;
    lop_trace *trace;
    int64_t budget;
    int own;               /* users' rules may fire so often */
    lop_map memo;          /* node -> index into done; what it has as keys lives as long as tab */
    const lop_node **done; /* owned */
    int ndone, room_done;
    spot *stack;
    int top, room;
} driver;

static bool grow(lop_ctx *ctx, void **block, int *room, int n, size_t size) {
    if (n < *room) return true;
    int wider = *room ? 2 * *room : 64;
    void *more = lop_realloc(ctx, *block, (size_t)wider * size);
    if (!more) return false;
    *block = more;
    *room = wider;
    return true;
}

static lop_status fire(driver *d, lop_phase phase, const lop_node *node, const lop_node **out) {
    int which = -1;
    lop_status st = apply_rules(d->rules, phase, false, node, &d->mk, out, &which);
    if (st != LOP_OK) return st;
    LOP_ASSERT((*out)->refs > 1); /* interned, or written: the memo may have it as a key */
    if (d->trace->count < LOP_TRACE) d->trace->rule[d->trace->count] = (int16_t)which;
    d->trace->count++;
    if (d->rules->row[which].own && --d->own < 0) {
        lop_node_unref(*out);
        *out = NULL;
        return lop_fail(d->mk.err, LOP_DOMAIN,
                        "rules of yours fired more than %d times on this expression, the last was "
                        "%s: they must come to an end",
                        OWN_BUDGET, d->rules->row[which].rule->name);
    }
    if (--d->budget < 0) {
        lop_node_unref(*out);
        *out = NULL;
        return lop_fail(d->mk.err, LOP_LIMIT,
                        "this expression takes more than %d rewriting steps (the last by %s)",
                        BUDGET, d->rules->row[which].rule->name);
    }
    return st;
}

static bool wants_heads(const lop_op *op) {
    return op->cls == LOP_ACTION || op == &lop_op_view || op == &lop_op_inverse;
}

/* One step on the head of what a view is of, or an inverse of what stays a kind: A.T and A^-1 are
 * tidied as A is. */
static lop_status fire_within(driver *d, lop_phase phase, const lop_node *outer,
                              const lop_node **out) {
    const lop_node *better = NULL;
    const lop_op *of = outer->n == 1 ? outer->child[0]->op : NULL;
    const bool kind = of == &lop_op_sliced || of == &lop_op_elementwise;
    if (outer->op != &lop_op_view && (outer->op != &lop_op_inverse || !kind)) return LOP_NOMATCH;
    lop_status st = fire(d, phase, outer->child[0], &better);
    if (st == LOP_OK) st = lop_make1(&d->mk, outer->op, &outer->attr, better, out);
    lop_node_unref(better);
    return st;
}

/* One step on the head of an operator child, when the node itself has no rule. */
static lop_status reduce_child(driver *d, lop_phase phase, const lop_node *node,
                               const lop_node **out) {
    if (!wants_heads(node->op)) return LOP_NOMATCH;
    for (int i = 0; i < node->n; i++) {
        if (node->child[i]->op->cls != LOP_OPERATOR) continue;
        const lop_node *better, *child[8];
        if (node->n > 8) return LOP_NOMATCH;
        lop_status st = fire(d, phase, node->child[i], &better);
        if (st == LOP_NOMATCH && phase == LOP_FIRST)
            st = fire_within(d, phase, node->child[i], &better);
        if (st == LOP_NOMATCH) continue;
        if (st != LOP_OK) return st;
        for (int j = 0; j < node->n; j++) child[j] = j == i ? better : node->child[j];
        st = lop_make_op(&d->mk, node->op, &node->attr, node->n, child, NULL, out);
        lop_node_unref(better);
        return st;
    }
    return LOP_NOMATCH;
}

static lop_status reduce(driver *d, const lop_node *node, const lop_node **out) {
    const lop_node *now = lop_node_ref(node);
    for (;;) {
        const lop_node *next = NULL;
        lop_status st = reduce_child(d, LOP_FIRST, now, &next);
        if (st == LOP_NOMATCH) st = fire(d, LOP_PUSH, now, &next);
        if (st == LOP_NOMATCH) st = reduce_child(d, LOP_PUSH, now, &next);
        if (st == LOP_NOMATCH) {
            *out = now;
            return LOP_OK;
        }
        lop_node_unref(now);
        if (st != LOP_OK) return st;
        now = next;
    }
}

static lop_status enter(driver *d, const lop_node *node) {
    if (!grow(d->mk.ctx, (void **)&d->stack, &d->room, d->top, sizeof *d->stack)) return LOP_NOMEM;
    const lop_node *reduced;
    lop_status st = reduce(d, node, &reduced);
    if (st != LOP_OK) return st;
    d->stack[d->top++] = (spot){node, reduced, 0};
    return LOP_OK;
}

/* New children may let a rule fit the node after all: then it takes the spot. Takes over *built if
 * so. */
static lop_status once_more(driver *d, spot *s, const lop_node **built, bool *again) {
    const lop_node *next;
    *again = false;
    if (*built == s->reduced) return LOP_OK;
    lop_status st = reduce(d, *built, &next);
    *again = st == LOP_OK && next != *built;
    if (*again) {
        lop_node_unref(s->reduced);
        s->reduced = next;
        s->next = 0;
    } else if (st == LOP_OK) {
        lop_node_unref(next);
        return st;
    }
    lop_node_unref(*built);
    return st;
}

/* The node over its children as they came out: itself, interned, where they are the same. */
static lop_status rebuild(driver *d, const lop_node *r, const lop_node **built) {
    lop_ctx *ctx = d->mk.ctx;
    const lop_node *few[8], **child = few;
    if (r->n > 8 && !(child = lop_calloc(ctx, (size_t)r->n, sizeof *child))) return LOP_NOMEM;
    lop_status st = LOP_OK;
    bool same = true;
    for (int i = 0; i < r->n; i++) {
        int at = -1;
        (void)lop_map_get(&d->memo, r->child[i], &at);
        child[i] = d->done[at];
        same = same && child[i] == r->child[i];
    }
    if (same) {
        *built = intern(d->mk.tab, lop_node_ref(r));
        if (!*built) st = lop_fail(d->mk.err, LOP_NOMEM, NULL);
    } else {
        st = lop_make_op(&d->mk, r->op, &r->attr, r->n, child, NULL, built);
    }
    if (child != few) lop_free(ctx, (void *)child);
    return st;
}

/* All children are known: rebuild, intern, remember under both names. */
static lop_status leave(driver *d, spot *s, bool *again) {
    const lop_node *r = s->reduced, *built = NULL;
    lop_status st = rebuild(d, r, &built);
    if (st == LOP_OK) st = once_more(d, s, &built, again);
    if (st != LOP_OK || *again) return st;
    if (!grow(d->mk.ctx, (void **)&d->done, &d->room_done, d->ndone, sizeof *d->done)) {
        lop_node_unref(built);
        return LOP_NOMEM;
    }
    d->done[d->ndone] = built;
    st = lop_map_set(&d->memo, s->node, d->ndone);
    if (st == LOP_OK) st = lop_map_set(&d->memo, r, d->ndone);
    if (st == LOP_OK && built != r) st = lop_map_set(&d->memo, built, d->ndone);
    d->ndone++;
    return st;
}

static lop_status drive(driver *d, const lop_node *root) {
    lop_status st = enter(d, root);
    while (st == LOP_OK && d->top > 0) {
        spot *s = &d->stack[d->top - 1];
        int known;
        if (s->next == 0 &&
            lop_map_get(&d->memo, s->reduced, &known)) { /* met before under another name */
            st = lop_map_set(&d->memo, s->node, known);
            lop_node_unref(d->stack[--d->top].reduced);
            continue;
        }
        if (s->next < s->reduced->n) {
            const lop_node *child = s->reduced->child[s->next++];
            if (!lop_map_get(&d->memo, child, &known)) st = enter(d, child);
            continue;
        }
        bool again;
        st = leave(d, s, &again);
        if (st == LOP_OK && again) continue;
        lop_node_unref(d->stack[--d->top].reduced);
    }
    return st;
}

lop_status lop_rewrite(const lop_rules *rules, lop_tab *tab, const lop_node *root,
                       const lop_node **out, lop_trace *trace, lop_err *err) {
    driver d = {.rules = rules,
                .mk = {root->ctx, tab, err, trace, rules},
                .trace = trace,
                .budget = BUDGET,
                .own = OWN_BUDGET};
    *out = NULL;
    trace->count = 0;
    trace->order[0] = 0;
    lop_status st = lop_map_init(&d.memo, root->ctx);
    if (st == LOP_OK) st = drive(&d, root);
    if (st == LOP_OK) {
        int at = -1;
        (void)lop_map_get(&d.memo, root, &at);
        *out = lop_node_ref(d.done[at]);
    }
    while (d.top > 0) lop_node_unref(d.stack[--d.top].reduced);
    for (int i = 0; i < d.ndone; i++) lop_node_unref(d.done[i]);
    lop_free(root->ctx, d.stack);
    lop_free(root->ctx, (void *)d.done);
    lop_map_clear(&d.memo, root->ctx);
    if (st == LOP_NOMEM) (void)lop_fail(err, st, NULL);
    return st;
}
