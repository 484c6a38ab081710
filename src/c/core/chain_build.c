/* chain_build.c: rows of the rule table that plan: read, search, and the best state as nodes again.
 * What is computed on the way stands as (dense array) where it multiplies from the left; transposes
 * of arrays are (swap), which costs nothing where a kernel takes strides. */
#include "builds.h"
#include "chain.h"

#include <math.h>
#include <string.h>

typedef struct builder {
    lop_chain *ch;
    const lop_maker *mk;
    lop_chmemo memo;
    const lop_node *group[LOP_CH_GROUPS]; /* owned: shared ones, made */
    char *text;
    int used;
} builder;

static lop_status value_of_group(builder *b, int g, const lop_node **out);
static lop_status apply_group(builder *b, int g, int mode, const lop_node *x, const lop_node **out);

/* -- the association as text */

static void say(builder *b, const char *s) {
    if (!b->text) return;
    for (; *s && b->used < LOP_ORDER - 1; s++) b->text[b->used++] = *s;
    b->text[b->used] = 0;
}

static void say_symbol(builder *b, lop_sym s) {
    static const char *const view[4] = {"", "'", "*", "^H"};
    if (s == LOP_CH_PROXY) {
        say(b, "_");
        return;
    }
    char name[2] = {0};
    int number = lop_sym_number(s);
    if (lop_sym_is_group(s)) {
        name[0] = (char)('0' + lop_sym_group(s) % 10);
        say(b, "S");
    } else {
        bool array = b->ch->atom[number].array;
        name[0] = (char)((array ? 'a' : 'A') + number % 26);
    }
    say(b, name);
    say(b, view[lop_sym_mode(s)]);
    if (lop_sym_inverse(s)) say(b, "^-1");
}

static void say_span(builder *b, const lop_chdp *d, int i, int j) {
    if (i == j) {
        say_symbol(b, d->s[i]);
        return;
    }
    int at = d->at[i][j];
    say(b, "(");
    say_span(b, d, i, at);
    say(b, " ");
    say_span(b, d, at + 1, j);
    say(b, ")");
}

/* The runners-up of a chain, for an explanation. */
static void say_others(builder *b, const lop_chdp *d) {
    enum { RUNNERS = 3 };
    lop_trail *trail = b->mk->trace ? b->mk->trace->trail : NULL;
    lop_chother other[RUNNERS];
    char text[LOP_ORDER], *was = b->text;
    int used = b->used, n = trail && was ? lop_chain_others(&b->memo, d, other, RUNNERS) : 0;
    for (int i = 0; i < n; i++) {
        lop_chdp as = *d;
        as.at[other[i].i][other[i].j] = (uint8_t)other[i].at;
        b->text = text;
        b->used = 0;
        text[0] = 0;
        say_span(b, &as, 0, d->n - 1);
        lop_trail_other(trail, -1, text, other[i].cost);
    }
    b->text = was;
    b->used = used;
}

/* -- arrays */

/* Takes over `a` in these. */
static lop_status wrap(builder *b, const lop_op *op, const lop_attr *attr, const lop_node *a,
                       const lop_node **out) {
    lop_status st = lop_make1(b->mk, op, attr, a, out);
    lop_node_unref(a);
    return st;
}
static lop_status swapped(builder *b, int mode, const lop_node *a, const lop_node **out) {
    lop_attr how = {.i = {mode, 0, 0, 0}};
    if (!lop_is_complex(a->dtype)) how.i[0] &= LOP_T;
    if (a->op == &lop_op_swap) { /* twice is none */
        how.i[0] ^= a->attr.i[0];
        const lop_node *inner = lop_node_ref(a->child[0]);
        lop_node_unref(a);
        a = inner;
    }
    *out = a;
    return how.i[0] ? wrap(b, &lop_op_swap, &how, a, out) : LOP_OK;
}
static lop_status apply_to(builder *b, const lop_op *op, const lop_node *a, const lop_node *x,
                           const lop_node **out) {
    lop_status st = lop_make2(b->mk, op, NULL, a, x, out);
    lop_node_unref(a);
    return st;
}
static lop_status scaled(builder *b, const lop_chterm *t, const lop_node *a, const lop_node **out) {
    lop_attr c = lop_attr_coef(t->re, t->im);
    *out = a;
    return t->re == 1 && t->im == 0 ? LOP_OK : wrap(b, &lop_op_scale, &c, a, out);
}

/* The operator a symbol stands for, its inverse apart. Owned. */
static lop_status operator_of(builder *b, lop_sym s, int mode, const lop_node **out) {
    const lop_node *node = b->ch->atom[lop_sym_number(s)].node;
    lop_attr view = {.i = {lop_sym_mode(s) ^ mode, 0, 0, 0}};
    if (!lop_is_complex(node->dtype)) view.i[0] &= LOP_T;
    if (view.i[0]) return lop_make1(b->mk, &lop_op_view, &view, node, out);
    *out = lop_node_ref(node);
    return LOP_OK;
}

/* The opened inverse s applied to x; takes over x. NULL: the inverse itself. */
static lop_status solve_group(builder *b, lop_sym s, int mode, const lop_node *x,
                              const lop_node **out) {
    const lop_atom *a = lop_chain_atom(b->ch, &b->ch->state, s);
    lop_attr tried = {.i = {1, 0, 0, 0}}, how = {.i = {a->hermitian ? 2 : 0, 0, 0, 0}};
    const lop_node *sum = NULL;
    lop_status st = value_of_group(b, lop_sym_group(s), &sum);
    if (st == LOP_OK) st = swapped(b, lop_sym_mode(s) ^ mode, sum, &sum);
    if (st == LOP_OK && !x)
        st = lop_make1(b->mk, &lop_op_invert, &how, sum, out);
    else if (st == LOP_OK && a->hermitian)
        st = lop_make2(b->mk, &lop_op_cholsolve, &tried, sum, x, out);
    else if (st == LOP_OK)
        st = lop_make2(b->mk, &lop_op_lusolve, NULL, sum, x, out);
    lop_node_unref(sum);
    lop_node_unref(x);
    return st;
}

static lop_status leaf(builder *b, lop_sym s, const lop_node *proxy, const lop_node **out) {
    lop_attr d = {.i = {0, 0, 0, (int64_t)b->ch->dt + 1}};
    int mode = lop_sym_mode(s);
    lop_status st;
    if (s == LOP_CH_PROXY) {
        *out = lop_node_ref(proxy);
        return LOP_OK;
    }
    if (lop_sym_is_group(s) && lop_sym_inverse(s)) return solve_group(b, s, 0, NULL, out);
    if (lop_sym_is_group(s)) {
        st = value_of_group(b, lop_sym_group(s), out);
        return st == LOP_OK ? swapped(b, mode, *out, out) : st;
    }
    const lop_atom *a = &b->ch->atom[lop_sym_number(s)];
    if (a->array) {
        d.i[0] = 1;
        *out = lop_node_ref(a->node);
        st = a->node->dtype == b->ch->dt ? LOP_OK : wrap(b, &lop_op_cast, &d, *out, out);
        return st == LOP_OK ? swapped(b, mode, *out, out) : st;
    }
    if (a->node->op == &lop_op_dense && !lop_sym_inverse(s)) {
        st = lop_make1(b->mk, &lop_op_todense, &d, a->node, out);
        return st == LOP_OK ? swapped(b, mode, *out, out) : st;
    }
    const lop_node *op;
    st = operator_of(b, s, 0, &op);
    if (st == LOP_OK && lop_sym_inverse(s)) st = wrap(b, &lop_op_inverse, NULL, op, &op);
    return st == LOP_OK ? wrap(b, &lop_op_todense, &d, op, out) : st;
}

/* Factor s seen through `mode` more, applied to x. Takes over x. */
static lop_status factor_on(builder *b, lop_sym s, int mode, const lop_node *x,
                            const lop_node **out) {
    const lop_node *op = NULL;
    lop_status st;
    if (lop_sym_is_group(s) && lop_sym_inverse(s)) return solve_group(b, s, mode, x, out);
    if (lop_sym_is_group(s)) {
        st = apply_group(b, lop_sym_group(s), lop_sym_mode(s) ^ mode, x, out);
    } else {
        st = operator_of(b, s, mode, &op);
        if (st == LOP_OK)
            st = apply_to(b, lop_sym_inverse(s) ? &lop_op_solve : &lop_op_apply, op, x, out);
    }
    lop_node_unref(x);
    return st;
}

static lop_status span(builder *b, const lop_chdp *d, int i, int j, const lop_node *proxy,
                       const lop_node **out);

/* Left times right, both dense: a transposed left is a view, which gemm takes as a flag. */
static lop_status gemm(builder *b, const lop_chdp *d, int i, int k, int j, const lop_node *proxy,
                       const lop_node **out) {
    const lop_node *left, *right = NULL;
    lop_status st = span(b, d, i, k, proxy, &left);
    if (st != LOP_OK) return st;
    lop_attr view = {.i = {0, 0, 0, 0}};
    if (left->op == &lop_op_swap) {
        const lop_node *inner = lop_node_ref(left->child[0]);
        view = left->attr;
        lop_node_unref(left);
        left = inner;
    }
    st = wrap(b, &lop_op_dense, NULL, left, &left);
    if (st == LOP_OK && view.i[0]) st = wrap(b, &lop_op_view, &view, left, &left);
    if (st != LOP_OK) return st;
    st = span(b, d, k + 1, j, proxy, &right);
    if (st != LOP_OK) {
        lop_node_unref(left);
        return st;
    }
    st = apply_to(b, &lop_op_apply, left, right, out);
    lop_node_unref(right);
    return st;
}

/* R^H A^-1 R, or its diagonal alone: A is factor k, R what follows. */
static lop_status half(builder *b, const lop_chdp *d, int k, int j, bool diagonal,
                       const lop_node *proxy, const lop_node **out) {
    const lop_node *op, *a, *r;
    lop_attr dense = {.i = {0, 0, 0, (int64_t)b->ch->dt + 1}}, tried = {.i = {1, diagonal, 0, 0}};
    lop_status st;
    if (lop_sym_is_group(d->s[k])) {
        st = value_of_group(b, lop_sym_group(d->s[k]), &a);
    } else {
        st = operator_of(b, d->s[k], 0, &op);
        if (st != LOP_OK) return st;
        tried.i[0] = lop_node_trait(op, LOP_POSITIVE) != LOP_TRUE;
        st = lop_make1(b->mk, &lop_op_todense, &dense, op, &a);
        lop_node_unref(op);
    }
    if (st != LOP_OK) return st;
    st = span(b, d, k + 1, j, proxy, &r);
    if (st == LOP_OK) {
        st = lop_make2(b->mk, &lop_op_halfsolve, &tried, a, r, out);
        lop_node_unref(r);
    }
    lop_node_unref(a);
    return st;
}

/* R^H (M R): M is factor k, R what follows. */
static lop_status mirrored(builder *b, const lop_chdp *d, int k, int j, const lop_node *proxy,
                           const lop_node **out) {
    const lop_node *r, *t = NULL;
    lop_status st = span(b, d, k + 1, j, proxy, &r);
    if (st != LOP_OK) return st;
    st = factor_on(b, d->s[k], 0, lop_node_ref(r), &t);
    if (st == LOP_OK) st = lop_make2(b->mk, &lop_op_halfgemm, NULL, r, t, out);
    lop_node_unref(r);
    lop_node_unref(t);
    return st;
}

/* Span i..j of the chain as an array. Recursion is as deep as the chain is long. */
static lop_status span(builder *b, const lop_chdp *d, int i, int j, const lop_node *proxy,
                       const lop_node **out) {
    int k = d->at[i][j], how = d->how[i][j];
    lop_attr adjoint = {.i = {how == LOP_CH_GRAM_T ? LOP_T : LOP_H, 0, 0, 0}};
    lop_status st;
    switch (how) {
    case LOP_CH_LEAF: return leaf(b, d->s[i], proxy, out);
    case LOP_CH_LEFT:
        st = span(b, d, i + 1, j, proxy, out);
        return st == LOP_OK ? factor_on(b, d->s[i], 0, *out, out) : st;
    case LOP_CH_RIGHT:
        st = span(b, d, i, j - 1, proxy, out);
        if (st == LOP_OK) st = swapped(b, LOP_T, *out, out);
        if (st == LOP_OK) st = factor_on(b, d->s[j], LOP_T, *out, out);
        return st == LOP_OK ? swapped(b, LOP_T, *out, out) : st;
    case LOP_CH_GEMM: return gemm(b, d, i, k, j, proxy, out);
    case LOP_CH_HALF: return half(b, d, k, j, false, proxy, out);
    case LOP_CH_MIRROR: return mirrored(b, d, k, j, proxy, out);
    default:
        st = span(b, d, k + 1, j, proxy, out);
        return st == LOP_OK ? wrap(b, &lop_op_gram, &adjoint, *out, out) : st;
    }
}

/* The terms of a group under a view, applied to x (NULL: as they are), added up. */
static lop_status terms(builder *b, int g, int mode, const lop_node *x, const lop_node **out) {
    const lop_chgroup *group = &b->ch->state.group[g];
    lop_status st = LOP_OK;
    *out = NULL;
    for (int i = 0; i < group->n && st == LOP_OK; i++) {
        lop_chterm t = b->ch->state.term[group->term[i]];
        const lop_node *one = NULL, *both = NULL;
        lop_chdp own, *d = &own;
        if (mode & LOP_C) t.im = t.im != 0 ? -t.im : 0;
        if (g == 0 && b->ch->known) {
            d = &b->ch->root;
        } else {
            lop_chain_items(&b->memo, &t, mode, x ? lop_cols(x) : -1, d);
            lop_chain_dp(&b->memo, d);
        }
        if (i > 0) say(b, " + ");
        say_span(b, d, 0, d->n - 1);
        if (group->n == 1) say_others(b, d);
        st = span(b, d, 0, d->n - 1, x, &one);
        if (st == LOP_OK) st = scaled(b, &t, one, &one);
        if (st != LOP_OK) break;
        if (*out) {
            st = lop_make2(b->mk, &lop_op_add, NULL, *out, one, &both);
            lop_node_unref(*out);
            lop_node_unref(one);
            *out = both;
        } else {
            *out = one;
        }
    }
    if (st == LOP_OK) return *out ? LOP_OK : LOP_INTERNAL;
    lop_node_unref(*out);
    *out = NULL;
    return st;
}

static lop_status value_of_group(builder *b, int g, const lop_node **out) {
    bool shared = b->ch->state.group[g].shared;
    char *text = b->text;
    lop_status st = LOP_OK;
    if (!b->group[g] || !shared) {
        b->text = NULL; /* named, not spelled out */
        st = terms(b, g, 0, NULL, out);
        b->text = text;
        if (st == LOP_OK && shared) b->group[g] = lop_node_ref(*out);
        return st;
    }
    *out = lop_node_ref(b->group[g]);
    return st;
}

static lop_status apply_group(builder *b, int g, int mode, const lop_node *x,
                              const lop_node **out) {
    char *text = b->text;
    b->text = NULL;
    lop_status st = terms(b, g, mode, x, out);
    b->text = text;
    return st;
}

static void open(builder *b, lop_chain *ch, const lop_maker *mk) {
    memset(b->group, 0, sizeof b->group);
    b->ch = ch;
    b->mk = mk;
    b->text = mk->trace && !mk->trace->order[0] ? mk->trace->order : NULL;
    b->used = 0;
    lop_chmemo_open(&b->memo, ch, &ch->state);
}
static void close(builder *b, double written) {
    for (int i = 0; i < LOP_CH_GROUPS; i++) lop_node_unref(b->group[i]);
    if (!b->text) return;
    b->mk->trace->written = written;
    b->mk->trace->states = b->ch->states;
}

/* -- rows */

static lop_status zeros_of(const lop_match *m, const lop_maker *mk, const lop_node **out) {
    lop_node like = {.shape = m->root->shape, .dtype = m->root->dtype, .core = 2};
    lop_attr d = {.i = {0, 0, 0, (int64_t)like.dtype + 1}};
    const lop_node *zeros;
    lop_status st = lop_make(mk, "zeros", NULL, 0, NULL, &like, &zeros);
    if (st != LOP_OK) return st;
    st = lop_make1(mk, &lop_op_todense, &d, zeros, out);
    lop_node_unref(zeros);
    return st;
}

/* An action on a product or sum, planned. */
static lop_status planned(const lop_match *m, const lop_maker *mk, const lop_node *x,
                          const lop_node **out) {
    lop_chain ch;
    builder b;
    const lop_node *op = m->root->child[0];
    if (!lop_chain_read(&ch, mk->ctx, m->root->dtype, op, x)) return LOP_NOMATCH;
    for (int i = 0; i < ch.natom; i++)
        if (ch.atom[i].node == op) return LOP_NOMATCH; /* a power that is not taken apart */
    ch.trail = mk->trace && !mk->trace->order[0] ? mk->trace->trail : NULL;
    lop_chain_search(&ch);
    if (ch.state.group[0].n == 0) return zeros_of(m, mk, out);
    open(&b, &ch, mk);
    lop_status st = terms(&b, 0, 0, NULL, out);
    close(&b, b.text ? lop_chain_written(ch.dt, op, x) : 0);
    return st;
}
LOP_BUILD(chain_apply) { return planned(m, mk, m->root->child[1], out); }
LOP_BUILD(chain_dense) { return planned(m, mk, NULL, out); }

/* A chain of one term for actions that take a product apart; `least` factors or more. */
static bool one_term(lop_chain *ch, const lop_match *m, const lop_maker *mk, lop_dtype dt,
                     int least) {
    if (!lop_chain_read(ch, mk->ctx, dt, m->root->child[0], NULL)) return false;
    const lop_chgroup *g = &ch->state.group[0];
    return g->n == 1 && ch->state.term[g->term[0]].n >= least &&
           (ch->state.term[g->term[0]].re != 0 || ch->state.term[g->term[0]].im != 0);
}

static double pair_cost(const lop_chain *ch, int64_t m, int64_t n) {
    return lop_price_pass(ch->costs, ch->dt, 2 * (double)m * (double)n, 1).seconds;
}

/* pairdiag of the spans i..k and k + 1..j. */
static lop_status pair(builder *b, const lop_chdp *d, int i, int k, int j, int64_t offset,
                       const lop_node **out) {
    const lop_node *left, *right;
    lop_attr at = {.i = {offset, 0, 0, 0}};
    say_span(b, d, i, k);
    say(b, " . ");
    say_span(b, d, k + 1, j);
    lop_status st = span(b, d, i, k, NULL, &left);
    if (st != LOP_OK) return st;
    st = span(b, d, k + 1, j, NULL, &right);
    if (st == LOP_OK) {
        const lop_node *child[2] = {left, right};
        st = lop_make(b->mk, "pairdiag", &at, 2, child, NULL, out);
        lop_node_unref(right);
    }
    lop_node_unref(left);
    return st;
}

/* Cut where both halves and the rows of the one times the columns of the other cost least. */
LOP_BUILD(chain_diagonal) {
    lop_chain ch;
    lop_chdp d;
    builder b;
    if (!one_term(&ch, m, mk, m->root->dtype, 2)) return LOP_NOMATCH;
    const lop_chterm *t = &ch.state.term[ch.state.group[0].term[0]];
    open(&b, &ch, mk);
    lop_chain_items(&b.memo, t, 0, -1, &d);
    d.loose = true;
    lop_chain_dp(&b.memo, &d);
    int n = d.n, best = -1;
    double least = 0;
    for (int k = 0; k + 1 < n; k++) {
        int64_t length = d.p[0] < d.p[n] ? d.p[0] : d.p[n];
        double cost = d.cost[0][k] + d.cost[k + 1][n - 1] + pair_cost(&ch, length, d.p[k + 1]);
        if (best < 0 || cost < least * (1 - 1e-9)) {
            best = k;
            least = cost;
        }
    }
    double by_half = m->root->attr.i[0] ? INFINITY : lop_chain_half(&b.memo, &d);
    lop_status st;
    if (by_half < least * (1 - 1e-9)) { /* the squares of L^-1 R */
        say_span(&b, &d, 0, n - 1);
        st = half(&b, &d, n / 2, n - 1, true, NULL, out);
    } else {
        st = pair(&b, &d, 0, best, n - 1, m->root->attr.i[0], out);
    }
    if (st == LOP_OK) st = scaled(&b, t, *out, out);
    close(&b, lop_chain_written(ch.dt, m->root->child[0], NULL));
    return st;
}

/* tr(A B C) = sum of (B C)^T o A, for the rotation and the cut that cost least. The factors twice
 * in a row hold all rotations. */
LOP_BUILD(chain_trace) {
    lop_chain ch;
    lop_chdp d;
    builder b;
    if (!lop_is_blas(m->root->dtype) || !one_term(&ch, m, mk, m->root->dtype, 2))
        return LOP_NOMATCH;
    const lop_chterm *t = &ch.state.term[ch.state.group[0].term[0]];
    int n = t->n, from = -1, cut = -1;
    if (ch.state.group[0].rows != ch.state.group[0].cols || 2 * n > LOP_CH_ITEMS)
        return LOP_NOMATCH;
    open(&b, &ch, mk);
    lop_chain_items(&b.memo, t, 0, -1, &d);
    for (int i = 0; i < n; i++) {
        d.s[n + i] = d.s[i];
        d.p[n + i + 1] = d.p[i + 1];
    }
    d.n = 2 * n;
    d.loose = true;
    lop_chain_dp(&b.memo, &d);
    double least = 0;
    for (int i = 0; i < n; i++)
        for (int k = i; k + 1 < i + n; k++) {
            double cost =
                d.cost[i][k] + d.cost[k + 1][i + n - 1] + pair_cost(&ch, d.p[i], d.p[k + 1]);
            if (from < 0 || cost < least * (1 - 1e-9)) {
                from = i;
                cut = k;
                least = cost;
            }
        }
    const lop_node *diagonal;
    lop_status st = pair(&b, &d, from, cut, from + n - 1, 0, &diagonal);
    if (st == LOP_OK) st = wrap(&b, &lop_op_sumall, NULL, diagonal, out);
    if (st == LOP_OK) st = scaled(&b, t, *out, out);
    close(&b, lop_chain_written(ch.dt, m->root->child[0], NULL));
    return st;
}

/* Row (of a transposed view: column) `at` of a factor as a 1 x n array, or its column as n x 1.
 * Read off where the factor is held, else from a product with a unit vector. */
static lop_status line_of(builder *b, lop_sym s, bool column, int64_t at, const lop_node **out) {
    const lop_node *node = b->ch->atom[lop_sym_number(s)].node;
    int mode = lop_sym_mode(s);
    lop_status st;
    if (node->op == &lop_op_dense && !lop_sym_inverse(s)) {
        bool other = (mode & LOP_T) != 0;
        lop_attr d = {.i = {0, 0, 0, (int64_t)b->ch->dt + 1}},
                 line = {.i = {column != other, at, 0, 0}};
        st = lop_make1(b->mk, &lop_op_todense, &d, node, out);
        if (st == LOP_OK) st = wrap(b, &lop_op_line, &line, *out, out);
        return st == LOP_OK ? swapped(b, mode, *out, out) : st;
    }
    int64_t length =
        column ? lop_chain_cols(b->ch, &b->ch->state, s) : lop_chain_rows(b->ch, &b->ch->state, s);
    lop_node like = {.shape = {.ndim = 2, .dim = {length, 1}}, .dtype = b->ch->dt, .core = 2};
    lop_attr unit = {.i = {at, 0, 0, 0}};
    const lop_node *e;
    st = lop_make(b->mk, "unit", &unit, 0, NULL, &like, &e);
    if (st == LOP_OK) st = factor_on(b, s, column ? 0 : LOP_T, e, out);
    return st == LOP_OK && !column ? swapped(b, LOP_T, *out, out) : st;
}

/* A row, what is between, a column. */
LOP_BUILD(chain_element) {
    lop_chain ch;
    lop_chdp d;
    builder b;
    if (!lop_is_blas(m->root->dtype) || !one_term(&ch, m, mk, m->root->dtype, 2))
        return LOP_NOMATCH;
    lop_chterm *t = &ch.state.term[ch.state.group[0].term[0]];
    lop_sym first = t->f[0], last = t->f[t->n - 1];
    const lop_attr *at = &m->root->attr;
    const lop_node *row = NULL, *column = NULL;
    if (lop_sym_is_group(first) || lop_sym_is_group(last)) return LOP_NOMATCH;
    open(&b, &ch, mk);
    lop_status st = line_of(&b, first, false, at->i[0], &row);
    if (st == LOP_OK) st = line_of(&b, last, true, at->i[1], &column);
    if (st == LOP_OK &&
        (!lop_chain_array(&ch, row, &t->f[0]) || !lop_chain_array(&ch, column, &t->f[t->n - 1])))
        st = LOP_NOMATCH;
    if (st == LOP_OK) {
        lop_attr origin = {.i = {0, 0, 0, 0}};
        lop_chain_items(&b.memo, t, 0, -1, &d);
        lop_chain_dp(&b.memo, &d);
        st = span(&b, &d, 0, d.n - 1, NULL, out);
        if (st == LOP_OK) st = wrap(&b, &lop_op_pick, &origin, *out, out);
        if (st == LOP_OK) st = scaled(&b, t, *out, out);
    }
    lop_node_unref(row);
    lop_node_unref(column);
    close(&b, 0);
    return st;
}
