/* chain_cost.c: the generalised matrix-chain dynamic program, and the price of a state.
 *
 *   cost(i, j) = min over
 *     factor i applied to (i + 1, j)   a kind's own product, or a solve
 *     (i, j - 1) times factor j        the same from the right, transposed
 *     (i, k) times (k + 1, j)          gemm
 *     R^T R, R^H R of the right half   syrk, herk: where the span is its own transpose or adjoint
 *
 * O(n^3) prices for n factors; ties go to the form as written, right to left. A group within a
 * chain is applied term by term, or made dense and multiplied; a shared one is there. */
#include "chain.h"
#include "expr/properties.h"

#include <math.h>

void lop_chmemo_open(lop_chmemo *m, const lop_chain *ch, const lop_chstate *st) {
    m->ch = ch;
    m->st = st;
    m->n = m->depth = 0;
    m->keep = NULL;
    for (int i = 0; i < st->ngroup; i++) m->dense[i] = -1;
}

static double elements(const lop_chain *ch, const lop_chdp *d, int i, int j) {
    if (!ch->batched) return 1;
    lop_shape all = {0}, both;
    for (int t = i; t <= j; t++) {
        const lop_shape *s = &ch->batch;
        int core = 0;
        if (d->s[t] != LOP_CH_PROXY && !lop_sym_is_group(d->s[t])) {
            const lop_node *a = ch->atom[lop_sym_number(d->s[t])].node;
            s = &a->shape;
            core = a->core;
        }
        if (lop_shape_batch(&all, 0, s, core, &both, NULL) == LOP_OK) all = both;
    }
    double count = 1;
    for (int t = 0; t < all.ndim; t++) count *= (double)all.dim[t];
    return count;
}

static lop_price free_of_charge(void) { return (lop_price){0, 0}; }
static lop_price seconds(double s) { return (lop_price){s, 0}; }

static double group_dense(lop_chmemo *m, int g);
static double group_apply(lop_chmemo *m, int g, bool transposed, int64_t k);

/* Has it so few columns (rows) that its dense form is no matrix beside others, but some vectors?
 * In inv(K) k^H M k inv(K), of a Kernel k of a few points with many, 15 columns are solved, not as
 * many as there are rows. */
static bool is_thin(const lop_node *a) {
    const int64_t rows = lop_rows(a), cols = lop_cols(a);
    return rows < cols ? rows <= cols / LOP_CH_THIN : cols <= rows / LOP_CH_THIN;
}

bool lop_chain_lean(const lop_chain *ch, const lop_chstate *st, lop_sym s) {
    if (s == LOP_CH_PROXY) return false;
    if (lop_sym_inverse(s)) return true;
    if (!lop_sym_is_group(s)) {
        const lop_atom *a = &ch->atom[lop_sym_number(s)]; /* a triangle lies in a whole array */
        return !(a->array || a->node->op == &lop_op_dense || a->node->op == &lop_op_triangular ||
                 is_thin(a->node));
    }
    const lop_chgroup *g = &st->group[lop_sym_group(s)];
    if (g->shared) return false;
    for (int i = 0; i < g->n; i++) {
        const lop_chterm *t = &st->term[g->term[i]];
        int j = 0;
        while (j < t->n && lop_chain_lean(ch, st, t->f[j])) j++;
        if (j == t->n) return true;
    }
    return false;
}

/* Factor i as a dense array. */
static lop_price leaf_price(lop_chmemo *m, const lop_chdp *d, int i, double batch) {
    const lop_chain *ch = m->ch;
    lop_sym s = d->s[i];
    if (s == LOP_CH_PROXY) return free_of_charge();
    double count = (double)d->p[i] * (double)d->p[i + 1] * batch;
    lop_price turn =
        (lop_sym_mode(s) & LOP_C) ? lop_price_pass(ch->costs, ch->dt, count, 1) : free_of_charge();
    if (lop_sym_inverse(s)) {
        const lop_atom *of = lop_chain_atom(ch, m->st, s);
        return lop_price_invert(ch->costs, ch->dt, of->node, of->positive, batch);
    }
    if (lop_sym_is_group(s)) {
        int g = lop_sym_group(s);
        return m->st->group[g].shared ? turn : lop_price_add(turn, seconds(group_dense(m, g)));
    }
    const lop_atom *a = &ch->atom[lop_sym_number(s)];
    if (a->array)
        return a->node->dtype == ch->dt
                   ? turn
                   : lop_price_add(turn, lop_price_pass(ch->costs, ch->dt, count, 1));
    return lop_price_add(turn, lop_price_dense(ch->costs, ch->dt, a->node, batch));
}

/* Factor s, seen through `mode` more, applied to k columns. Negative: an array, which gemm takes.
 */
static lop_price apply_price(lop_chmemo *m, lop_sym s, int mode, int64_t k, double batch) {
    const lop_chain *ch = m->ch;
    if (s == LOP_CH_PROXY) return seconds(-1);
    if (lop_sym_inverse(s))
        return lop_price_solve(ch->costs, ch->dt, lop_chain_atom(ch, m->st, s)->node, k, batch);
    if (lop_sym_is_group(s)) {
        int g = lop_sym_group(s);
        bool t = ((lop_sym_mode(s) ^ mode) & LOP_T) != 0;
        return m->st->group[g].shared ? seconds(-1) : seconds(group_apply(m, g, t, k));
    }
    const lop_atom *a = &ch->atom[lop_sym_number(s)];
    return a->array ? seconds(-1) : lop_price_apply(ch->costs, ch->dt, a->node, k, batch);
}

/* Is the span its own transpose (mode T) or adjoint (H), but for a factor in the middle? */
static bool reflected(const lop_chmemo *m, const lop_chdp *d, int i, int j, int mode) {
    for (; i < j; i++, j--)
        if (d->s[i] == LOP_CH_PROXY || lop_chain_seen(m->ch, m->st, d->s[j], mode) != d->s[i])
            return false;
    return true;
}
/* The same question for an even number of factors, without one in the middle. */
static bool mirrored(const lop_chmemo *m, const lop_chdp *d, int i, int j, int mode) {
    return (j - i) % 2 != 0 && reflected(m, d, i, j, mode);
}

int lop_chain_triangle(const lop_chain *ch, const lop_chdp *d, int i, int j) {
    const lop_sym s = d->s[i];
    if (i != j || s == LOP_CH_PROXY || lop_sym_is_group(s) || lop_sym_inverse(s)) return 0;
    const int side = ch->atom[lop_sym_number(s)].triangle;
    return side && (lop_sym_mode(s) & LOP_T) ? 3 - side : side;
}
/* R^H R of the span from k to j: a third of the product where R is a triangle, beside the copy that
 * puts zeros into the other one. */
static lop_price gram_price(const lop_chmemo *m, const lop_chdp *d, int k, int j, double batch) {
    const lop_chain *ch = m->ch;
    const int64_t n = d->p[j + 1];
    if (!lop_chain_triangle(ch, d, k, j))
        return lop_price_gram(ch->costs, ch->dt, n, d->p[k], batch);
    return lop_price_add(lop_price_gram(ch->costs, ch->dt, n, d->p[k], batch * 0.45),
                         lop_price_pass(ch->costs, ch->dt, (double)n * (double)n * batch, 1));
}

/* R^H A^-1 R with A positive definite; `tried`: or Hermitian, which may be, and small: a factor of
 * its dense form is little beside R, whatever else solves with it. */
static bool halved(const lop_chmemo *m, const lop_chdp *d, int i, int j, bool tried) {
    lop_sym s = d->s[(i + j) / 2];
    if (i == j || (j - i) % 2 != 0 || s == LOP_CH_PROXY || !lop_sym_inverse(s)) return false;
    const lop_atom *a = lop_chain_atom(m->ch, m->st, s);
    const bool may_be = tried && a->hermitian && 2 * d->p[(i + j) / 2 + 1] <= d->p[j + 1];
    return (a->positive || may_be) && reflected(m, d, i, j, LOP_H);
}
/* R^H M R with M Hermitian, large enough that a triangle is worth the mirroring. Of a real diagonal
 * M, 500 numbers (2026-11-27, Intel with AVX-512): 1.3 to 1.8 times gemm's time at 16 to 30 rows,
 * 1.05 at 48, 0.85 at 60. */
static bool hermitian_middle(const lop_chmemo *m, const lop_chdp *d, int i, int j) {
    lop_sym s = d->s[(i + j) / 2];
    if (i == j || (j - i) % 2 != 0 || s == LOP_CH_PROXY || lop_sym_is_group(s)) return false;
    const lop_atom *a = &m->ch->atom[lop_sym_number(s)];
    const bool scales = a->node->op == &lop_op_diag && !lop_is_complex(a->node->dtype);
    return a->hermitian && !a->array && d->p[j + 1] >= (scales ? 48 : 64) &&
           reflected(m, d, i, j, LOP_H);
}
static lop_price mirror_price(const lop_chmemo *m, const lop_chdp *d, int mid, int64_t n,
                              double batch) {
    lop_price p = lop_price_gemm(m->ch->costs, m->ch->dt, n, n, d->p[mid], batch * 0.62);
    return lop_price_add(p,
                         lop_price_pass(m->ch->costs, m->ch->dt, (double)n * (double)n * batch, 1));
}
static double half_price(const lop_costs *c, lop_dtype dt, int64_t n, int64_t k, double batch) {
    return lop_price_gemm(c, dt, n, k, n, batch / 2).seconds +
           lop_price_gram(c, dt, k, n, batch).seconds;
}

double lop_chain_half(const lop_chmemo *m, const lop_chdp *d) {
    int j = d->n - 1, mid = j / 2;
    if (!halved(m, d, 0, j, true)) return INFINITY;
    const lop_chain *ch = m->ch;
    int64_t n = d->p[mid + 1], k = d->p[d->n];
    double batch = elements(ch, d, 0, j);
    return d->cost[mid + 1][j] + lop_price_gemm(ch->costs, ch->dt, n, k, n, batch / 2).seconds +
           lop_price_pass(ch->costs, ch->dt, (double)n * (double)k * batch, 1).seconds;
}

/* -- inverses that are multiplied by
 *
 * An array X of A^-1 has A X = I to rounding or X A = I, and the other one only to the square of
 * A's condition. So L X R is off by |L| |A^-1| |A| |A^-1 R|, where a solve from either side is by
 * |L A^-1| |A| |A^-1 R|: in a Schur complement P - L A^-1 R these are as far apart as A is from
 * singular. Nor are A^-1 D, with a diagonal D, and A^-1 B A^-1 multiplied by from both sides. An
 * inverse that ends a product is made for the side that it ends; in a trace, R L is not made
 * before A^-1 is at one of them. */

/* Does it choose, order or scale rows: what an error of rows or columns is after as before? */
static bool keeps_rows(const lop_chain *ch, lop_sym s) {
    if (s == LOP_CH_PROXY || lop_sym_is_group(s)) return false;
    const lop_node *a = ch->atom[lop_sym_number(s)].node;
    return !ch->atom[lop_sym_number(s)].array &&
           (lop_has(a, LOP_FLAG_one_entry) || lop_node_trait(a, LOP_DIAGONAL) == LOP_TRUE);
}

/* Rows or columns of an inverse, too. */
static bool is_solved(const lop_chain *ch, lop_sym s) {
    if (s == LOP_CH_PROXY || lop_sym_inverse(s)) return s != LOP_CH_PROXY;
    const lop_node *a = lop_sym_is_group(s) ? NULL : ch->atom[lop_sym_number(s)].node;
    if (!a || a->op != &lop_op_sliced) return false;
    while (a->op == &lop_op_sliced || a->op == &lop_op_view || a->op == &lop_op_scaled)
        a = a->child[0];
    return a->op == &lop_op_inverse;
}

/* What a multiple is one of, also where it is by a multiple of the identity. */
static const lop_node *unscaled(const lop_node *a) {
    for (int depth = 0; depth < 4; depth++) {
        if (a->op == &lop_op_scaled) {
            a = a->child[0];
        } else if (a->op == &lop_op_prod) {
            const lop_node *by = a->child[0];
            if (by->op == &lop_op_scaled) by = by->child[0];
            if (by->op != &lop_op_identity) return a;
            a = a->child[1];
        }
    }
    return a;
}
/* Is X^H X, or X X^H, of this factor a term of the sum that is inverted? Then it is no larger than
 * that sum, and may be formed beside it as it was within. */
static bool has_gram(const lop_node *sum, const lop_node *x) {
    for (; sum->op == &lop_op_sum; sum = sum->child[0])
        if (has_gram(sum->child[1], x)) return true;
    sum = unscaled(sum);
    if (sum->op != &lop_op_prod) return false;
    const lop_node *a = unscaled(sum->child[0]), *b = unscaled(sum->child[1]);
    const bool left = a->op == &lop_op_view;
    const lop_node *seen = left ? a : b, *own = left ? b : a;
    return seen->op == &lop_op_view && lop_node_alike(seen->child[0], own, 4) &&
           lop_node_alike(own, x, 4);
}
/* tr((X^H X + Q)^-1 X^H X), and what is written so. */
static bool is_ridge(const lop_chmemo *m, const lop_chdp *d) {
    const lop_atom *inverse = NULL, *x[2] = {NULL, NULL};
    int n = 0;
    for (int i = 0; i < d->n / 2; i++) {
        if (d->light[i]) continue;
        const lop_atom *a = lop_chain_atom(m->ch, m->st, d->s[i]);
        if (d->solved[i] && !inverse)
            inverse = a;
        else if (a && !a->array && n < 2)
            x[n++] = a;
        else
            return false;
    }
    return inverse && n == 2 && x[0] == x[1] && has_gram(inverse->node, x[0]->node);
}

static void mark_solved(const lop_chmemo *m, lop_chdp *d) {
    const lop_chain *ch = m->ch;
    int wide = 0, others = 0;
    for (int i = 0; i < d->n; i++) {
        d->light[i] = keeps_rows(ch, d->s[i]);
        d->solved[i] = !d->light[i] && is_solved(ch, d->s[i]);
        if (i >= d->n / 2) continue;
        wide += !d->light[i];
        others += !d->light[i] && !d->solved[i];
    }
    d->by_solves = d->ring && others > 1 && wide > others && !is_ridge(m, d);
}

static bool all_light(const lop_chdp *d, int from, int to) {
    while (from < to && d->light[from]) from++;
    return from >= to;
}

/* Does the span i..j begin (`left`) or end the whole? In a trace none does. */
static bool at_end(const lop_chdp *d, int i, int j, bool left) {
    return d->ring ? !d->by_solves : left ? all_light(d, 0, i) : all_light(d, j + 1, d->n);
}
/* Is the first (`left`) or last factor of the span i..j, but for light ones, an inverse? */
static bool ends_in_inverse(const lop_chdp *d, int i, int j, bool left) {
    while (i < j && d->light[left ? i : j]) *(left ? &i : &j) += left ? 1 : -1;
    return d->solved[left ? i : j];
}

/* Is the span i..j not to be formed, for what would be lost where it is multiplied by? */
static bool pinched(const lop_chdp *d, int i, int j) {
    if (at_end(d, i, j, true) || at_end(d, i, j, false)) return false;
    return (d->ring && j - i < d->n / 2 && all_light(d, j + 1, i + d->n / 2)) ||
           (ends_in_inverse(d, i, j, true) && ends_in_inverse(d, i, j, false));
}
/* May the inverse at the left (right) end of the span be solved with? Not where the other end is an
 * inverse too, that is multiplied by later. */
static bool solves(const lop_chdp *d, int i, int j, bool left) {
    return !d->solved[left ? i : j] || at_end(d, i, j, !left) || !ends_in_inverse(d, i, j, !left);
}

bool lop_chain_by_rows(const lop_chdp *d, int i) {
    return !d->ring && d->n > 1 && d->p[i] <= d->p[i + 1] && d->solved[i] && all_light(d, 0, i) &&
           !all_light(d, i + 1, d->n);
}

typedef struct choice {
    double cost;
    uint8_t how, at;
} choice;

static void offer(choice *best, double cost, lop_chhow how, int at) {
    if (cost < best->cost * (1 - 1e-9)) *best = (choice){cost, (uint8_t)how, (uint8_t)at};
}

/* Are factors i..j all structured? */
static bool lean(const lop_chdp *d, int i, int j) { return d->lean[j + 1] - d->lean[i] > j - i; }
/* May factors i to j be formed as one dense array on the way? Only if there is no other way. */
static bool barred(const lop_chdp *d, int i, int j) {
    return !d->loose && lean(d, i, j) && !lean(d, 0, d->n - 1);
}

static choice cell(lop_chmemo *m, const lop_chdp *d, int i, int j) {
    choice best = {INFINITY, LOP_CH_LEFT, (uint8_t)i};
    const lop_chain *ch = m->ch;
    if (barred(d, i, j) || pinched(d, i, j)) return best;
    double batch = elements(ch, d, i, j);
    int64_t rows = d->p[i], cols = d->p[j + 1];
    lop_price p = apply_price(m, d->s[i], 0, cols, batch);
    if (p.seconds >= 0 && solves(d, i, j, true))
        offer(&best, d->cost[i + 1][j] + p.seconds, LOP_CH_LEFT, i);
    int mid = (i + j - 1) / 2;
    for (int mode = LOP_T; mode <= LOP_H && j > i; mode += 2)
        if (mirrored(m, d, i, j, mode) && (mode == LOP_T || lop_is_complex(ch->dt)))
            offer(&best, d->cost[mid + 1][j] + gram_price(m, d, mid + 1, j, batch).seconds,
                  mode == LOP_T ? LOP_CH_GRAM_T : LOP_CH_GRAM_H, mid);
    mid = (i + j) / 2;
    if (halved(m, d, i, j, false))
        offer(&best,
              d->cost[mid + 1][j] + half_price(ch->costs, ch->dt, d->p[mid + 1], cols, batch),
              LOP_CH_HALF, mid);
    if (hermitian_middle(m, d, i, j)) {
        p = apply_price(m, d->s[mid], 0, cols, batch);
        if (p.seconds >= 0)
            offer(&best,
                  d->cost[mid + 1][j] + p.seconds + mirror_price(m, d, mid, cols, batch).seconds,
                  LOP_CH_MIRROR, mid);
    }
    p = apply_price(m, d->s[j], LOP_T, rows, batch);
    if (p.seconds >= 0 && solves(d, i, j, false))
        offer(&best, d->cost[i][j - 1] + p.seconds, LOP_CH_RIGHT, j - 1);
    for (int k = i; k < j; k++) {
        double parts = d->cost[i][k] + d->cost[k + 1][j];
        if (!(parts < best.cost) || (!d->loose && (lean(d, i, k) || lean(d, k + 1, j)))) continue;
        if ((k == i && d->matrix[i]) || (k == j - 1 && d->matrix[j])) continue; /* offered above */
        parts += lop_price_gemm(ch->costs, ch->dt, rows, cols, d->p[k + 1], batch).seconds;
        offer(&best, parts, LOP_CH_GEMM, k);
    }
    return best;
}

static bool is_matrix(const lop_chain *ch, lop_sym s) {
    if (s == LOP_CH_PROXY || lop_sym_inverse(s) || lop_sym_is_group(s)) return false;
    const lop_atom *a = &ch->atom[lop_sym_number(s)];
    return !a->array && a->node->op == &lop_op_dense;
}

void lop_chain_dp(lop_chmemo *m, lop_chdp *d) {
    d->lean[0] = 0;
    mark_solved(m, d);
    for (int i = 0; i < d->n; i++)
        d->lean[i + 1] = (uint8_t)(d->lean[i] + lop_chain_lean(m->ch, m->st, d->s[i]));
    for (int i = 0; i < d->n; i++) {
        d->matrix[i] = is_matrix(m->ch, d->s[i]);
        d->cost[i][i] = barred(d, i, i) || pinched(d, i, i)
                            ? INFINITY
                            : leaf_price(m, d, i, elements(m->ch, d, i, i)).seconds;
        d->how[i][i] = LOP_CH_LEAF;
    }
    for (int len = 1; len < d->n; len++)
        for (int i = 0; i + len < d->n; i++) {
            choice c = cell(m, d, i, i + len);
            d->cost[i][i + len] = c.cost;
            d->how[i][i + len] = c.how;
            d->at[i][i + len] = c.at;
        }
}

/* Span i..j split after k, in the cheapest way to join the parts. */
static double split_cost(lop_chmemo *m, const lop_chdp *d, int i, int j, int k) {
    const lop_chain *ch = m->ch;
    double batch = elements(ch, d, i, j);
    choice best = {INFINITY, LOP_CH_GEMM, (uint8_t)k};
    lop_price p;
    if (k == i && (p = apply_price(m, d->s[i], 0, d->p[j + 1], batch)).seconds >= 0)
        offer(&best, d->cost[i + 1][j] + p.seconds, LOP_CH_LEFT, k);
    if (k == j - 1 && (p = apply_price(m, d->s[j], LOP_T, d->p[i], batch)).seconds >= 0)
        offer(&best, d->cost[i][j - 1] + p.seconds, LOP_CH_RIGHT, k);
    if (d->loose || !(lean(d, i, k) || lean(d, k + 1, j))) {
        p = lop_price_gemm(ch->costs, ch->dt, d->p[i], d->p[j + 1], d->p[k + 1], batch);
        offer(&best, d->cost[i][k] + d->cost[k + 1][j] + p.seconds, LOP_CH_GEMM, k);
    }
    return best.cost;
}

int lop_chain_others(lop_chmemo *m, const lop_chdp *d, lop_chother *out, int room) {
    struct {
        int i, j;
    } stack[2 * LOP_CH_ITEMS];
    int top = 0, n = 0;
    stack[top].i = 0;
    stack[top++].j = d->n - 1;
    while (top > 0) {
        int i = stack[--top].i, j = stack[top].j, at = d->at[i][j];
        for (int k = i; k < j; k++) {
            double cost = k == at ? INFINITY : split_cost(m, d, i, j, k);
            if (!isfinite(cost)) continue;
            cost += d->cost[0][d->n - 1] - d->cost[i][j];
            int place = n < room ? n++ : room;
            while (place > 0 && out[place - 1].cost > cost) {
                if (place < room) out[place] = out[place - 1];
                place--;
            }
            if (place < room) out[place] = (lop_chother){cost, i, j, k};
        }
        if (i == j) continue;
        stack[top].i = at + 1;
        stack[top++].j = j;
        stack[top].i = i;
        stack[top++].j = at;
    }
    return n;
}

lop_price lop_chain_step(lop_chmemo *m, const lop_chdp *d, int i, int j) {
    double batch = elements(m->ch, d, i, j);
    int64_t rows = d->p[i], cols = d->p[j + 1];
    switch (d->how[i][j]) {
    case LOP_CH_LEAF: return leaf_price(m, d, i, batch);
    case LOP_CH_LEFT: return apply_price(m, d->s[i], 0, cols, batch);
    case LOP_CH_RIGHT: return apply_price(m, d->s[j], LOP_T, rows, batch);
    case LOP_CH_GEMM:
        return lop_price_gemm(m->ch->costs, m->ch->dt, rows, cols, d->p[d->at[i][j] + 1], batch);
    case LOP_CH_MIRROR: {
        int mid = d->at[i][j];
        return lop_price_add(apply_price(m, d->s[mid], 0, cols, batch),
                             mirror_price(m, d, mid, cols, batch));
    }
    case LOP_CH_HALF:
        return lop_price_add(
            lop_price_gemm(m->ch->costs, m->ch->dt, d->p[d->at[i][j] + 1], cols,
                           d->p[d->at[i][j] + 1], batch / 2),
            lop_price_gram(m->ch->costs, m->ch->dt, cols, d->p[d->at[i][j] + 1], batch));
    default: return gram_price(m, d, d->at[i][j] + 1, j, batch);
    }
}

void lop_chain_items(const lop_chmemo *m, const lop_chterm *t, int mode, int64_t k, lop_chdp *d) {
    const lop_chain *ch = m->ch;
    bool back = (mode & LOP_T) != 0;
    d->n = 0;
    d->loose = d->ring = false;
    for (int i = 0; i < t->n; i++) {
        lop_sym s = lop_chain_seen(ch, m->st, t->f[back ? t->n - 1 - i : i], mode);
        d->p[d->n] = lop_chain_rows(ch, m->st, s);
        d->p[d->n + 1] = lop_chain_cols(ch, m->st, s);
        d->s[d->n++] = s;
    }
    if (k < 0) return;
    d->s[d->n++] = LOP_CH_PROXY;
    d->p[d->n] = k;
}

/* The terms of a group one by one, under a view, applied to k columns (k < 0: as they are). */
static double terms_cost(lop_chmemo *m, int g, int mode, int64_t k) {
    const lop_chgroup *group = &m->st->group[g];
    double total = 0, count;
    bool back = (mode & LOP_T) != 0;
    count = (double)(back ? group->cols : group->rows) * (double)(k >= 0 ? k
                                                                  : back ? group->rows
                                                                         : group->cols);
    for (int i = 0; m->ch->batched && i < m->ch->batch.ndim; i++)
        count *= (double)m->ch->batch.dim[i];
    if (++m->depth > LOP_CH_NEST) {
        m->depth--;
        return INFINITY;
    }
    for (int i = 0; i < group->n; i++) {
        const lop_chterm *t = &m->st->term[group->term[i]];
        lop_chdp own, *d = m->keep && g == 0 ? m->keep : &own;
        lop_chain_items(m, t, mode, k, d);
        lop_chain_dp(m, d);
        total += d->cost[0][d->n - 1];
        if (i > 0) total += lop_price_pass(m->ch->costs, m->ch->dt, count, 2).seconds;
        if (!lop_coef_test(m->ch->ctx, t->c, LOP_COEF_ONE))
            total += lop_price_pass(m->ch->costs, m->ch->dt, count, 1).seconds;
    }
    m->depth--;
    return total;
}

static double group_dense(lop_chmemo *m, int g) {
    if (m->dense[g] < 0) m->dense[g] = terms_cost(m, g, 0, -1);
    return m->dense[g];
}

static double group_apply(lop_chmemo *m, int g, bool transposed, int64_t k) {
    int key = 2 * g + transposed;
    for (int i = 0; i < m->n; i++)
        if (m->apply[i].key == key && m->apply[i].k == k) return m->apply[i].cost;
    double cost = terms_cost(m, g, transposed ? LOP_T : 0, k);
    if (m->n < LOP_CH_MEMO) {
        m->apply[m->n].key = key;
        m->apply[m->n].k = k;
        m->apply[m->n++].cost = cost;
    }
    return cost;
}

double lop_chain_cost(const lop_chain *ch, const lop_chstate *st, lop_chdp *keep) {
    lop_chmemo m;
    lop_chmemo_open(&m, ch, st);
    double total = 0;
    if (ch->nroot == 1 && st->group[0].n == 1) m.keep = keep;
    for (int g = 0; g < st->ngroup; g++)
        if (g < ch->nroot || st->group[g].shared) total += group_dense(&m, g);
    return total;
}
