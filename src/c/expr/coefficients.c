/* coefficients.c: the table of numbers that a plan computes from the coefficients of its
 * expression, and the conditions under which it holds. A few dozen are found by a linear walk, more
 * by a table of their places. */
#include "coefficients.h"

#include "node_map.h"
#include "op.h"

#include <math.h>
#include <string.h>

/* -- the table */

bool lop_number_equal(lop_number a, lop_number b) {
    return memcmp(&a.re, &b.re, sizeof a.re) == 0 && memcmp(&a.im, &b.im, sizeof a.im) == 0;
}

lop_coefs *lop_coefs_new(lop_ctx *ctx) {
    lop_coefs *c = lop_calloc(ctx, 1, sizeof *c);
    if (c) c->ctx = ctx;
    return c;
}

void lop_coefs_free(lop_coefs *c) {
    if (!c) return;
    lop_ctx *ctx = c->ctx;
    lop_free(ctx, c->entry);
    lop_free(ctx, c->condition);
    lop_free(ctx, c->by_entry.at);
    lop_free(ctx, c->by_condition.at);
    lop_free(ctx, c);
}

/* Room for one more of `n`, up to `most`: the memory in place of `at`; NULL: there is none. */
static void *more(lop_ctx *ctx, void *at, int n, int *room, int most, size_t each) {
    if (n < *room) return at;
    if (n >= most) return NULL;
    const int next = *room ? (*room > most / 2 ? most : 2 * *room) : 32;
    void *bigger = lop_realloc(ctx, at, (size_t)next * each);
    if (bigger) *room = next;
    return bigger;
}

static bool append_entry(lop_coefs *t, lop_entry e) {
    lop_entry *at = more(t->ctx, t->entry, t->entries, &t->entry_room, LOP_ENTRIES, sizeof *at);
    if (!at) return false;
    t->entry = at;
    t->entry[t->entries++] = e;
    return true;
}

/* Entries and conditions by what they are, in tables from FEW of them on. */
enum { FEW = 32 };
typedef uint64_t hash_of(const lop_coefs *t, int i);

static uint64_t spread(uint64_t h) {
    h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdu;
    return h ^ (h >> 29);
}
static uint64_t hash_one(int what, int a, int b, const lop_number *value) {
    uint64_t re = 0, im = 0;
    if (value) memcpy(&re, &value->re, 8), memcpy(&im, &value->im, 8);
    const uint64_t h = (uint64_t)what << 32 ^ (uint64_t)a << 16 ^ (uint64_t)b;
    return spread(spread(h) ^ re ^ im * 0x9e3779b97f4a7c15u);
}
static uint64_t hash_entry(const lop_coefs *t, int i) {
    const lop_entry *e = &t->entry[i];
    return hash_one(e->how, e->a, e->b, e->how == 'c' ? &e->value : NULL);
}
static uint64_t hash_condition(const lop_coefs *t, int i) {
    const lop_condition *c = &t->condition[i];
    return hash_one((int)c->what, c->a, c->b, NULL);
}

static void put(const lop_coefs *t, lop_coef_places *p, hash_of *of, int i) {
    uint64_t h = of(t, i) & (uint64_t)(p->room - 1);
    while (p->at[h]) h = (h + 1) & (uint64_t)(p->room - 1);
    p->at[h] = i + 1;
}

/* The last of n into its table. Without memory for one they are found by a walk. */
static void enter(const lop_coefs *t, lop_coef_places *p, hash_of *of, int n) {
    if (n < FEW || (n > FEW && !p->room)) return;
    if (2 * n <= p->room) {
        put(t, p, of, n - 1);
        return;
    }
    lop_coef_places wide = {.room = p->room ? 2 * p->room : 4 * FEW};
    wide.at = lop_calloc(t->ctx, (size_t)wide.room, sizeof *wide.at);
    if (!wide.at) wide.room = 0;
    for (int i = 0; wide.room && i < n; i++) put(t, &wide, of, i);
    lop_free(t->ctx, p->at);
    *p = wide;
}

/* The next place to look at: *h goes on through the table, or through all; -1: there is none. */
static int next_of(const lop_coef_places *p, uint64_t *h, int n) {
    if (!p->room) return *h < (uint64_t)n ? (int)(*h)++ : -1;
    const int at = p->at[*h & (uint64_t)(p->room - 1)] - 1;
    *h += 1;
    return at;
}

static int add_entry(lop_coefs *t, char how, int a, int b, lop_number value) {
    uint64_t h = t->by_entry.room ? hash_one(how, a, b, how == 'c' ? &value : NULL) : 0;
    for (int i; (i = next_of(&t->by_entry, &h, t->entries)) >= 0;) {
        const lop_entry *e = &t->entry[i];
        if (i > 0 && e->how == how && e->a == a && e->b == b &&
            (how != 'c' || lop_number_equal(e->value, value)))
            return i;
    }
    if (!append_entry(t, (lop_entry){how, (int16_t)a, (int16_t)b, value})) {
        t->full = true;
        return 0;
    }
    enter(t, &t->by_entry, hash_entry, t->entries);
    return t->entries - 1;
}

static void add_condition(lop_coefs *t, lop_coef_is what, int a, int b, bool holds) {
    uint64_t h = t->by_condition.room ? hash_one((int)what, a, b, NULL) : 0;
    for (int i; (i = next_of(&t->by_condition, &h, t->conditions)) >= 0;) {
        const lop_condition *c = &t->condition[i];
        if (c->what == what && c->a == a && c->b == b) return;
    }
    lop_condition *at =
        more(t->ctx, t->condition, t->conditions, &t->condition_room, LOP_CONDITIONS, sizeof *at);
    if (!at) {
        t->full = true;
        return;
    }
    t->condition = at;
    t->condition[t->conditions++] = (lop_condition){what, holds, (int16_t)a, (int16_t)b};
    enter(t, &t->by_condition, hash_condition, t->conditions);
}

/* Of real numbers, as of all others that are to stay real. */
static lop_number operate(char how, lop_number a, lop_number b) {
    if (how == '~') return (lop_number){a.re, a.im != 0 ? -a.im : a.im};
    if (how == '+') return (lop_number){a.re + b.re, a.im + b.im};
    if (a.im == 0 && b.im == 0) return (lop_number){how == '*' ? a.re * b.re : a.re / b.re, 0};
    if (how == '/') {
        const double size = b.re * b.re + b.im * b.im;
        b = (lop_number){b.re / size, -b.im / size};
        if (a.im == 0 && b.im == 0) return (lop_number){a.re * b.re, 0};
    }
    return (lop_number){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static bool is(lop_coef_is what, lop_number x, lop_number other) {
    const double re = x.re, im = x.im, size = fmax(fabs(re), fabs(im));
    int power = 0;
    switch (what) {
    case LOP_COEF_FINITE: return isfinite(re) && isfinite(im);
    case LOP_COEF_ONE: return re == 1 && im == 0;
    case LOP_COEF_MINUS_ONE: return re == -1 && im == 0;
    case LOP_COEF_ZERO: return re == 0 && im == 0;
    case LOP_COEF_POSITIVE: return im == 0 && re > 0;
    case LOP_COEF_NEGATIVE: return im == 0 && re < 0;
    case LOP_COEF_MODEST: return size > 0x1p-20 && size < 0x1p20;
    case LOP_COEF_NEAR: (void)frexp(size, &power); return power > -100 && power < 100;
    case LOP_COEF_SAME: return re == other.re && im == other.im;
    case LOP_COEF_FIXED: return lop_number_equal(x, other);
    case LOP_COEF_REAL: return im == 0;
    }
    return false;
}

bool lop_coefs_for(const lop_coefs *c, const lop_number *source, lop_number *value) {
    value[0] = (lop_number){0, 0};
    for (int i = 1; i < c->entries; i++) {
        const lop_entry *e = &c->entry[i];
        if (c->full && e->how == 's' && !lop_number_equal(e->value, source[i - 1])) return false;
        value[i] = e->how == 's'   ? source[i - 1]
                   : e->how == 'c' ? e->value
                                   : operate(e->how, value[e->a], value[e->b]);
    }
    for (int i = 0; i < c->conditions; i++) {
        const lop_condition *d = &c->condition[i];
        const lop_number other = d->what == LOP_COEF_FIXED ? c->entry[d->a].value : value[d->b];
        if (is(d->what, value[d->a], other) != d->holds) return false;
    }
    return true;
}

/* -- what rules do */

/* The entry of a coefficient that meets a named one. */
static lop_number number_of(lop_coef c) { return (lop_number){c.re, c.im}; }
static int entry_of(lop_coefs *t, lop_coef c) {
    return c.num ? c.num : add_entry(t, 'c', 0, 0, number_of(c));
}

bool lop_coef_test(lop_ctx *ctx, lop_coef c, lop_coef_is what) {
    const bool holds = is(what, number_of(c), (lop_number){0, 0});
    if (c.num && ctx->coefs) add_condition(ctx->coefs, what, c.num, 0, holds);
    return holds;
}

bool lop_coef_same(lop_ctx *ctx, lop_coef a, lop_coef b) {
    const bool same = a.re == b.re && a.im == b.im;
    if ((!a.num && !b.num) || a.num == b.num || !ctx->coefs) return same;
    const int i = entry_of(ctx->coefs, a), j = entry_of(ctx->coefs, b);
    add_condition(ctx->coefs, LOP_COEF_SAME, i, j, same);
    return same;
}

lop_coef lop_coef_fix(lop_ctx *ctx, lop_coef c) {
    if (c.num && ctx->coefs) add_condition(ctx->coefs, LOP_COEF_FIXED, c.num, 0, true);
    c.num = 0;
    return c;
}

/* a `how` b as an entry. What complex numbers give is real for some values and not for others:
 * that is decided, as the class of a source is. */
static lop_coef made(lop_ctx *ctx, char how, lop_coef a, lop_coef b) {
    const lop_number x = operate(how, number_of(a), number_of(b));
    lop_coef y = {x.re, x.im, 0};
    if (!ctx->coefs || (!a.num && !b.num)) return y;
    const int i = entry_of(ctx->coefs, a), j = how == '~' ? 0 : entry_of(ctx->coefs, b);
    y.num = add_entry(ctx->coefs, how, i, j, x);
    if (y.num && (a.im != 0 || b.im != 0))
        add_condition(ctx->coefs, LOP_COEF_REAL, y.num, 0, y.im == 0);
    return y;
}

lop_coef lop_coef_times(lop_ctx *ctx, lop_coef a, lop_coef b) { return made(ctx, '*', a, b); }
lop_coef lop_coef_plus(lop_ctx *ctx, lop_coef a, lop_coef b) { return made(ctx, '+', a, b); }
lop_coef lop_coef_over(lop_ctx *ctx, lop_coef a, lop_coef b) { return made(ctx, '/', a, b); }
lop_coef lop_coef_conj(lop_ctx *ctx, lop_coef c) {
    return c.im == 0 ? c : made(ctx, '~', c, (lop_coef){0});
}

lop_attr lop_coef_attr(lop_coef c) {
    lop_attr a = lop_attr_coef(c.re, c.im);
    a.num = c.num;
    if (c.num) a.i[0] = 0; /* read for integers alone */
    return a;
}

void lop_coef_put(lop_attr *a, lop_coef c) {
    a->re = c.re;
    a->im = c.im;
    a->num = c.num;
}

/* -- naming */

bool lop_coef_may_vary(const lop_node *node) {
    const lop_attr *c = &node->attr;
    return (node->op == &lop_op_scaled || node->op == &lop_op_scale) && lop_is_blas(node->dtype) &&
           isfinite(c->re) && isfinite(c->im) &&
           (c->im != 0 || (!signbit(c->im) && c->re != 0 && fabs(c->re) != 1));
}

typedef struct naming {
    lop_ctx *ctx;
    lop_err *err;
    const lop_number *source;
    lop_map seen; /* a written node -> its place in `made` */
    const lop_node **made;
    const lop_node **stack; /* what is still to be made */
    int n, room, top, deep;
} naming;

static lop_status keep(naming *w, const lop_node *node, const lop_node *named) {
    if (w->n == w->room) {
        const int room = w->room ? 2 * w->room : 32;
        void *more = lop_realloc(w->ctx, (void *)w->made, (size_t)room * sizeof *w->made);
        if (!more) {
            lop_node_unref(named);
            return LOP_NOMEM;
        }
        w->made = more;
        w->room = room;
    }
    w->made[w->n] = named;
    return lop_map_set(&w->seen, node, w->n++);
}

/* A node whose children are made, with its coefficient named. */
static lop_status name_one(naming *w, const lop_node *node) {
    const lop_node *few[8], **child = few, *named = NULL;
    const lop_coefs *t = w->ctx->coefs;
    lop_attr attr = node->attr;
    lop_status st = LOP_OK;
    bool other = false;
    if (lop_coef_may_vary(node)) {
        const lop_number own = {node->attr.re, node->attr.im};
        int i = 1;
        while (i <= t->sources && !lop_number_equal(w->source[i - 1], own)) i++;
        if (i <= t->sources)
            lop_coef_put(&attr, (lop_coef){t->entry[i].value.re, t->entry[i].value.im, i});
        other = attr.num != 0;
        if (other) attr.i[0] = 0; /* read for integers alone */
    }
    if (node->n > 8 && !(child = lop_calloc(w->ctx, (size_t)node->n, sizeof *child)))
        return LOP_NOMEM;
    for (int i = 0; i < node->n; i++) {
        int at = 0;
        if (!lop_map_get(&w->seen, node->child[i], &at)) st = lop_fail(w->err, LOP_INTERNAL, NULL);
        if (st == LOP_OK) child[i] = w->made[at];
        other = other || child[i] != node->child[i];
    }
    if (st == LOP_OK && !other) named = lop_node_ref(node);
    if (st == LOP_OK && other)
        st = lop_node_make(w->ctx, node->op, &attr, node->n, child, NULL, &named, w->err);
    if (child != few) lop_free(w->ctx, (void *)child);
    return st == LOP_OK ? keep(w, node, named) : st;
}

static lop_status push(naming *w, const lop_node *node) {
    if (w->top == w->deep) {
        const int deep = w->deep ? 2 * w->deep : 64;
        void *more = lop_realloc(w->ctx, (void *)w->stack, (size_t)deep * sizeof *w->stack);
        if (!more) return LOP_NOMEM;
        w->stack = more;
        w->deep = deep;
    }
    w->stack[w->top++] = node;
    return LOP_OK;
}

/* All nodes, children first. */
static lop_status name_all(naming *w, const lop_node *root) {
    int at;
    lop_status st = push(w, root);
    while (st == LOP_OK && w->top > 0) {
        const lop_node *node = w->stack[w->top - 1];
        const int before = w->top;
        const bool known = lop_map_get(&w->seen, node, &at);
        for (int i = node->n - 1; st == LOP_OK && !known && i >= 0; i--)
            if (!lop_map_get(&w->seen, node->child[i], &at)) st = push(w, node->child[i]);
        if (st != LOP_OK || w->top > before) continue;
        w->top--;
        if (!known) st = name_one(w, node);
    }
    return st;
}

lop_status lop_coefs_name(lop_ctx *ctx, const lop_number *source, const lop_number *other, int n,
                          const lop_node *root, const lop_node **out, lop_err *err) {
    lop_coefs *t = ctx->coefs;
    naming w = {.ctx = ctx, .err = err, .source = source};
    lop_status st = append_entry(t, (lop_entry){0}) ? LOP_OK : LOP_NOMEM;
    for (int i = 0; st == LOP_OK && i < n; i++, t->sources++)
        if (append_entry(t, (lop_entry){'s', (int16_t)i, 0, (other ? other : source)[i]}))
            enter(t, &t->by_entry, hash_entry, t->entries);
        else
            st = LOP_NOMEM;
    if (st == LOP_OK) st = lop_map_init(&w.seen, ctx);
    if (st == LOP_OK) st = name_all(&w, root);
    if (st == LOP_OK) *out = lop_node_ref(w.made[w.n - 1]); /* the root is the last */
    for (int i = 0; i < w.n; i++) lop_node_unref(w.made[i]);
    lop_free(ctx, (void *)w.stack);
    lop_free(ctx, (void *)w.made);
    lop_map_clear(&w.seen, ctx);
    return st == LOP_NOMEM ? lop_fail(err, st, NULL) : st;
}
