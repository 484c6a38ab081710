/* chain_rules.c: rows of the rule table that plan: read, search, and the best state as nodes. */
#include "chain_rules.h"

#include "chain_build.h"

#include <math.h>
#include <string.h>

static lop_status zeros_of(const lop_maker *mk, const lop_node *like_this, lop_dtype dt,
                           const lop_node **out) {
    lop_node like = {.shape = like_this->shape, .dtype = dt, .core = 2};
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
    lop_builder b;
    const lop_node *op = m->root->child[0];
    if (!lop_chain_read(&ch, mk->ctx, m->root->dtype, op, x)) return LOP_NOMATCH;
    for (int i = 0; i < ch.natom; i++)
        if (ch.atom[i].node == op) return LOP_NOMATCH; /* a power that is not taken apart */
    ch.trail = mk->trace && !mk->trace->order[0] ? mk->trace->trail : NULL;
    lop_chain_search(&ch);
    if (ch.state.group[0].n == 0) return zeros_of(mk, m->root, m->root->dtype, out);
    lop_chmake_open(&b, &ch, mk);
    lop_status st = lop_chmake_terms(&b, 0, 0, NULL, out);
    lop_chmake_close(&b, b.text ? lop_chain_written(ch.dt, op, x) : 0);
    return st;
}
LOP_BUILD(chain_apply) { return planned(m, mk, m->root->child[1], out); }
LOP_BUILD(chain_dense) { return planned(m, mk, NULL, out); }

/* -- several results together */

enum { SEVERAL = 8 };

/* Lists the parts of nested pairs, in order; false: they are too many. */
static bool parts_of(const lop_node *a, const lop_node **part, int *n) {
    *n = 0;
    for (; a->op == &lop_op_joint; a = a->child[0]) {
        if (*n == SEVERAL - 1) return false;
        part[(*n)++] = a->child[1];
    }
    part[(*n)++] = a;
    for (int i = 0; i < *n / 2; i++) {
        const lop_node *t = part[i];
        part[i] = part[*n - 1 - i];
        part[*n - 1 - i] = t;
    }
    return true;
}

/* Plans all parts by one search, or each by itself where that fails. */
static lop_status make_parts(const lop_match *m, const lop_maker *mk, int n,
                             const lop_node *const *part, const lop_node **made) {
    lop_chain ch;
    lop_builder b;
    lop_status st = LOP_OK;
    lop_attr d = {.i = {0, 0, 0, (int64_t)m->root->dtype + 1}};
    if (!lop_chain_read_several(&ch, mk->ctx, m->root->dtype, n, part)) {
        for (int i = 0; i < n && st == LOP_OK; i++)
            st = lop_make1(mk, &lop_op_todense, &d, part[i], &made[i]);
        return st;
    }
    ch.trail = mk->trace && !mk->trace->order[0] ? mk->trace->trail : NULL;
    lop_chain_search(&ch);
    lop_chmake_open(&b, &ch, mk);
    for (int i = 0; i < n && st == LOP_OK; i++) {
        if (i > 0) lop_chmake_say(&b, "; ");
        st = ch.state.group[i].n == 0 ? zeros_of(mk, part[i], m->root->dtype, &made[i])
                                      : lop_chmake_terms(&b, i, 0, NULL, &made[i]);
    }
    double written = 0;
    for (int i = 0; i < n && b.text; i++) written += lop_chain_written(ch.dt, part[i], NULL);
    lop_chmake_close(&b, written);
    return st;
}

LOP_BUILD(dense_several) {
    const lop_node *part[SEVERAL], *made[SEVERAL] = {NULL};
    int n;
    if (!parts_of(m->root->child[0], part, &n))
        return lop_fail(mk->err, LOP_LIMIT, "more than %d results in one plan", SEVERAL);
    lop_status st = make_parts(m, mk, n, part, made);
    if (st == LOP_OK) st = lop_make(mk, "joint_array", NULL, n, made, NULL, out);
    for (int i = 0; i < n; i++) lop_node_unref(made[i]);
    return st;
}

/* A chain of one term for actions that take a product apart; `least` factors or more. */
static bool one_term(lop_chain *ch, const lop_match *m, const lop_maker *mk, lop_dtype dt,
                     int least) {
    if (!lop_chain_read(ch, mk->ctx, dt, m->root->child[0], NULL)) return false;
    const lop_chgroup *g = &ch->state.group[0];
    return g->n == 1 && ch->state.term[g->term[0]].n >= least &&
           !lop_coef_test(ch->ctx, ch->state.term[g->term[0]].c, LOP_COEF_ZERO);
}

static double pair_cost(const lop_chain *ch, int64_t m, int64_t n) {
    return lop_price_pass(ch->costs, ch->dt, 2 * (double)m * (double)n, 1).seconds;
}

/* Takes over `a`; of a view what it shows, its mode added to *mode. */
static const lop_node *unswapped(const lop_node *a, int64_t *mode) {
    if (a->op != &lop_op_swap) return a;
    *mode ^= a->attr.i[0];
    const lop_node *inner = lop_node_ref(a->child[0]);
    lop_node_unref(a);
    return inner;
}

/* Makes product_diagonal of the spans i..k and k + 1..j. */
static lop_status pair(lop_builder *b, const lop_chdp *d, int i, int k, int j, lop_attr at,
                       const lop_node **out) {
    const lop_node *left, *right;
    lop_chmake_say_span(b, d, i, k);
    lop_chmake_say(b, " . ");
    lop_chmake_say_span(b, d, k + 1, j);
    lop_status st = lop_chmake_span(b, d, i, k, NULL, &left);
    if (st != LOP_OK) return st;
    left = unswapped(left, &at.i[1]);
    st = lop_chmake_span(b, d, k + 1, j, NULL, &right);
    if (st == LOP_OK) {
        right = unswapped(right, &at.i[2]);
        const lop_node *child[2] = {left, right};
        st = lop_make(b->mk, "product_diagonal", &at, 2, child, NULL, out);
        lop_node_unref(right);
    }
    lop_node_unref(left);
    return st;
}

/* Cut where both halves and the rows of the one times the columns of the other cost least. */
LOP_BUILD(chain_diagonal) {
    lop_chain ch;
    lop_chdp d;
    lop_builder b;
    if (!one_term(&ch, m, mk, m->root->dtype, 2)) return LOP_NOMATCH;
    const lop_chterm *t = &ch.state.term[ch.state.group[0].term[0]];
    lop_chmake_open(&b, &ch, mk);
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
    const lop_attr at = {.i = {m->root->attr.i[0], 0, 0, 0}};
    lop_status st;
    if (by_half < least * (1 - 1e-9)) { /* the squares of L^-1 R */
        lop_chmake_say_span(&b, &d, 0, n - 1);
        st = lop_chmake_half(&b, &d, n / 2, n - 1, true, NULL, out);
    } else {
        st = pair(&b, &d, 0, best, n - 1, at, out);
    }
    if (st == LOP_OK) st = lop_chmake_scaled(&b, t, *out, out);
    lop_chmake_close(&b, lop_chain_written(ch.dt, m->root->child[0], NULL));
    return st;
}

/* What a dense form of so many bytes is said to take, over its price: fresh memory, which nobody
 * asked for, is dearer than that of loops over it. */
static double for_memory(const lop_node *a, lop_dtype dt) {
    const double bytes = (double)lop_rows(a) * (double)lop_cols(a) * (double)lop_dtype_size(dt);
    return bytes < 4e6 ? 0 : bytes * 1e-9;
}

/* Cut where both halves and the reading cost least; NOMATCH where the whole is read for less. */
lop_status lop_chain_pair(const lop_match *m, const lop_maker *mk, const lop_pair_reader *r,
                          const lop_node **out) {
    lop_chain ch;
    lop_chdp d;
    lop_builder b;
    const lop_node *left = NULL, *right = NULL;
    if (!one_term(&ch, m, mk, m->root->dtype, 2)) return LOP_NOMATCH;
    const lop_chterm *t = &ch.state.term[ch.state.group[0].term[0]];
    lop_chmake_open(&b, &ch, mk);
    lop_chain_items(&b.memo, t, 0, -1, &d);
    d.loose = true;
    lop_chain_dp(&b.memo, &d);
    const int n = d.n;
    int best = -1;
    double least = d.cost[0][n - 1] + r->whole + for_memory(m->root->child[0], m->root->dtype);
    for (int k = 0; k + 1 < n; k++) {
        const double cost =
            d.cost[0][k] + d.cost[k + 1][n - 1] + r->seconds(m, ch.costs, d.p[k + 1]);
        if (cost >= least * (1 - 1e-9)) continue;
        best = k;
        least = cost;
    }
    lop_status st = best < 0 ? LOP_NOMATCH : LOP_OK;
    if (st == LOP_OK) {
        lop_chmake_say_span(&b, &d, 0, best);
        lop_chmake_say(&b, " . ");
        lop_chmake_say_span(&b, &d, best + 1, n - 1);
        st = lop_chmake_span(&b, &d, 0, best, NULL, &left);
    }
    if (st == LOP_OK) st = lop_chmake_span(&b, &d, best + 1, n - 1, NULL, &right);
    if (st == LOP_OK) st = r->make(m, mk, left, right, out);
    if (st == LOP_OK) st = lop_chmake_scaled(&b, t, *out, out);
    lop_node_unref(left);
    lop_node_unref(right);
    lop_chmake_close(&b, st == LOP_OK ? lop_chain_written(ch.dt, m->root->child[0], NULL) : 0);
    return st;
}

/* tr(R^H A^-1 R) = the sum of the squares of L^-1 R, A = L L^H, where that costs less than
 * `least`. NOMATCH: it does not. */
static lop_status half_trace(lop_builder *b, const lop_chterm *t, double least,
                             const lop_node **out) {
    lop_chdp d;
    lop_chain_items(&b->memo, t, 0, -1, &d);
    d.loose = true;
    lop_chain_dp(&b->memo, &d);
    if (2 * d.p[d.n / 2] > d.p[d.n] || !(lop_chain_half(&b->memo, &d) < least * (1 - 1e-9)))
        return LOP_NOMATCH; /* a factor of A's dense form is to be little beside R */
    lop_chmake_say_span(b, &d, 0, d.n - 1);
    lop_status st = lop_chmake_half(b, &d, d.n / 2, d.n - 1, true, NULL, out);
    return st == LOP_OK ? lop_chmake_wrap(b, &lop_op_sumall, NULL, *out, out) : st;
}

/* tr(A B C) = sum of (B C)^T o A, for the rotation and the cut that cost least. The factors twice
 * in a row hold all rotations. */
LOP_BUILD(chain_trace) {
    lop_chain ch;
    lop_chdp d;
    lop_builder b;
    if (!lop_is_blas(m->root->dtype) || !one_term(&ch, m, mk, m->root->dtype, 2))
        return LOP_NOMATCH;
    const lop_chterm *t = &ch.state.term[ch.state.group[0].term[0]];
    int n = t->n, from = -1, cut = -1;
    if (ch.state.group[0].rows != ch.state.group[0].cols || 2 * n > LOP_CH_ITEMS)
        return LOP_NOMATCH;
    lop_chmake_open(&b, &ch, mk);
    lop_chain_items(&b.memo, t, 0, -1, &d);
    for (int i = 0; i < n; i++) {
        d.s[n + i] = d.s[i];
        d.p[n + i + 1] = d.p[i + 1];
    }
    d.n = 2 * n;
    d.loose = d.ring = true;
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
    const lop_attr summed = {.i = {0, 0, 0, 1}};
    const lop_node *diagonal;
    lop_status st = half_trace(&b, t, least, out);
    if (st == LOP_NOMATCH) {
        st = pair(&b, &d, from, cut, from + n - 1, summed, &diagonal);
        if (st == LOP_OK) st = lop_chmake_wrap(&b, &lop_op_sumall, NULL, diagonal, out);
    }
    if (st == LOP_OK) st = lop_chmake_scaled(&b, t, *out, out);
    lop_chmake_close(&b, lop_chain_written(ch.dt, m->root->child[0], NULL));
    return st;
}

/* Row (of a transposed view: column) `at` of a factor as a 1 x n array, or its column as n x 1.
 * Read off where the factor is held, else from a product with a unit vector. */
static lop_status line_of(lop_builder *b, lop_sym s, bool column, int64_t at,
                          const lop_node **out) {
    const lop_node *node = b->ch->atom[lop_sym_number(s)].node;
    int mode = lop_sym_mode(s);
    lop_status st;
    if (node->op == &lop_op_dense && !lop_sym_inverse(s)) {
        bool other = (mode & LOP_T) != 0;
        lop_attr d = {.i = {0, 0, 0, (int64_t)b->ch->dt + 1}},
                 line = {.i = {column != other, at, 0, 0}};
        st = lop_make1(b->mk, &lop_op_todense, &d, node, out);
        if (st == LOP_OK) st = lop_chmake_wrap(b, &lop_op_matvec_row, &line, *out, out);
        return st == LOP_OK ? lop_chmake_swapped(b, mode, *out, out) : st;
    }
    int64_t length =
        column ? lop_chain_cols(b->ch, &b->ch->state, s) : lop_chain_rows(b->ch, &b->ch->state, s);
    lop_node like = {.shape = {.ndim = 2, .dim = {length, 1}}, .dtype = b->ch->dt, .core = 2};
    lop_attr unit = {.i = {at, 0, 0, 0}};
    const lop_node *e;
    st = lop_make(b->mk, "unit", &unit, 0, NULL, &like, &e);
    if (st == LOP_OK) st = lop_chmake_factor_on(b, s, column ? 0 : LOP_T, e, out);
    return st == LOP_OK && !column ? lop_chmake_swapped(b, LOP_T, *out, out) : st;
}

/* A row, what is between, a column. */
LOP_BUILD(chain_element) {
    lop_chain ch;
    lop_chdp d;
    lop_builder b;
    if (!lop_is_blas(m->root->dtype) || !one_term(&ch, m, mk, m->root->dtype, 2))
        return LOP_NOMATCH;
    lop_chterm *t = &ch.state.term[ch.state.group[0].term[0]];
    lop_sym first = t->f[0], last = t->f[t->n - 1];
    const lop_attr *at = &m->root->attr;
    const lop_node *row = NULL, *column = NULL;
    if (lop_sym_is_group(first) || lop_sym_is_group(last)) return LOP_NOMATCH;
    lop_chmake_open(&b, &ch, mk);
    lop_status st = line_of(&b, first, false, at->i[0], &row);
    if (st == LOP_OK) st = line_of(&b, last, true, at->i[1], &column);
    if (st == LOP_OK &&
        (!lop_chain_array(&ch, row, &t->f[0]) || !lop_chain_array(&ch, column, &t->f[t->n - 1])))
        st = LOP_NOMATCH;
    if (st == LOP_OK) {
        lop_attr origin = {.i = {0, 0, 0, 0}};
        lop_chain_items(&b.memo, t, 0, -1, &d);
        lop_chain_dp(&b.memo, &d);
        st = lop_chmake_span(&b, &d, 0, d.n - 1, NULL, out);
        if (st == LOP_OK) st = lop_chmake_wrap(&b, &lop_op_array_element, &origin, *out, out);
        if (st == LOP_OK) st = lop_chmake_scaled(&b, t, *out, out);
    }
    lop_node_unref(row);
    lop_node_unref(column);
    lop_chmake_close(&b, 0);
    return st;
}
