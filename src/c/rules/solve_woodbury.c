/* solve_woodbury.c: solves with S = b B + c U M V, where B is solved at once (or is an inverse) and
 * U is thin: sums written out, as in ridge regression, factor models and Kalman filters.
 *
 *   S^-1 (b B p + U M w)   where the right side is made with U (M) and B: solve_push_through.c
 *   S^-1 x                 by Woodbury, as a LowRankUpdate, where it pays */
#include "thin_sum.h"
#include "rewrite/cheap_to_solve.h"
#include "rewrite/guards.h"
#include "expr/properties.h"
#include "ops/shared/sparse_solver.h"

#define HOLE(m, c) ((m)->node[(c) - 'a'])

/* -- operators of symbols */

/* NULL for a group. */
const lop_node *lop_thin_node(const lop_thin *s, lop_sym f) {
    int number = lop_sym_number(f);
    return number < LOP_CH_ATOMS ? s->ch.atom[number].node : NULL;
}

lop_status lop_view_once(const lop_maker *mk, int mode, const lop_node *a, const lop_node **out) {
    if (a->op == &lop_op_view) { /* one view, not two */
        mode ^= (int)a->attr.i[0];
        a = a->child[0];
    }
    lop_attr view = {.i = {lop_is_complex(a->dtype) ? mode : mode & LOP_T, 0, 0, 0}};
    *out = lop_node_ref(a);
    if (!view.i[0]) return LOP_OK;
    lop_node_unref(a);
    return lop_make1(mk, &lop_op_view, &view, a, out);
}

lop_status lop_thin_factor(const lop_thin *s, lop_sym f, bool inverse, const lop_node **out) {
    const lop_node *a;
    lop_status st = lop_view_once(s->mk, lop_sym_mode(f), lop_thin_node(s, f), &a);
    if (st != LOP_OK || lop_sym_inverse(f) == inverse) {
        *out = a;
        return st;
    }
    st = lop_make1(s->mk, &lop_op_inverse, NULL, a, out);
    lop_node_unref(a);
    return st;
}

/* The product of factors from..to - 1, nested as they are applied. */
lop_status lop_thin_product(const lop_thin *s, const lop_sym *f, int n, const lop_node **out) {
    const lop_node *left, *right;
    lop_status st = lop_thin_factor(s, f[n - 1], false, out);
    for (int i = n - 2; i >= 0 && st == LOP_OK; i--) {
        right = *out;
        st = lop_thin_factor(s, f[i], false, &left);
        if (st == LOP_OK) {
            st = lop_make2(s->mk, &lop_op_prod, NULL, left, right, out);
            lop_node_unref(left);
        }
        lop_node_unref(right);
    }
    if (st != LOP_OK) *out = NULL;
    return st;
}

lop_status lop_thin_multiple(const lop_maker *mk, lop_coef c, const lop_node *a,
                             const lop_node **out) {
    lop_attr by = lop_coef_attr(c);
    *out = lop_node_ref(a);
    if (lop_coef_test(mk->ctx, c, LOP_COEF_ONE)) return LOP_OK;
    lop_node_unref(a);
    return lop_make1(mk, &lop_op_scaled, &by, a, out);
}

/* The identity of size n, which adopts the dtype of what it meets. */
lop_status lop_sum_closed(const lop_maker *mk, const lop_node *a, const lop_node *b,
                          const lop_node **out) {
    const lop_node *sum = NULL;
    lop_status st = lop_make2(mk, &lop_op_sum, NULL, a, b, &sum);
    if (st == LOP_OK) st = lop_close_once(mk, sum, out);
    if (st == LOP_NOMATCH) {
        *out = lop_node_ref(sum);
        st = LOP_OK;
    }
    lop_node_unref(sum);
    return st;
}

lop_status lop_thin_identity(const lop_maker *mk, int64_t n, const lop_node **out) {
    lop_node like = {
        .shape = {.ndim = 2, .dim = {n, n}}, .dtype = LOP_f64, .weak = LOP_WEAK, .core = 2};
    return lop_make(mk, "identity", NULL, 0, NULL, &like, out);
}

/* -- reading */

static bool is_base(lop_thin *s, const lop_chterm *t) {
    const lop_node *a = t->n == 1 ? lop_thin_node(s, t->f[0]) : NULL;
    if (!a || t->c.im != 0 || lop_coef_test(s->mk->ctx, t->c, LOP_COEF_ZERO)) return false;
    if (!lop_sym_inverse(t->f[0]) && !lop_cheap_to_solve(a)) return false;
    s->base = t->f[0];
    s->b = t->c;
    s->eye = a->op == &lop_op_identity;
    if (s->eye) s->base = lop_sym_make(lop_sym_number(s->base), false, 0); /* I^-1 is I */
    return true;
}

static bool mirror(const lop_thin *s, lop_sym a, lop_sym b) {
    return lop_chain_seen(&s->ch, &s->ch.state, b, LOP_H) == a;
}

/* A diagonal M beside the inverse of a narrow band, so that M^-1 is as good as given: of b M^-1 + c
 * B^-1 the band is no wider. */
static bool is_diagonal_beside_band(const lop_thin *s, lop_sym f) {
    const lop_node *m = lop_thin_node(s, f), *b = lop_thin_node(s, s->base);
    return m->op == &lop_op_diag && lop_nbatch(m) == 0 && lop_band_is_narrow(b, lop_infer_bands(b));
}

/* Splits the term where it is thinnest: U and V, with one factor M between them where the term
 * reads the same from both ends and M is inverted at once. */
static bool split(lop_thin *s, const lop_chterm *t) {
    const lop_chstate *st = &s->ch.state;
    s->term = *t;
    s->c = t->c;
    s->mid = false;
    s->rank = -1;
    s->half = 0;
    if (t->c.im != 0) return false;
    if (t->n == 1 && lop_thin_node(s, t->f[0]) && lop_sym_inverse(s->base) &&
        (lop_sym_inverse(t->f[0]) || is_diagonal_beside_band(s, t->f[0]))) {
        s->rank = s->n; /* b B + c M, both inverses: U and V are the identity */
        s->mid = true;
        return true;
    }
    if (t->n < 2) return false;
    for (int i = 0; i < t->n; i++)
        if (!lop_thin_node(s, t->f[i])) return false;
    for (int k = 1; k < t->n; k++) {
        int64_t inner = lop_chain_rows(&s->ch, st, t->f[k]);
        if (s->rank < 0 || inner < s->rank) {
            s->rank = inner;
            s->half = k;
        }
    }
    int h = t->n / 2, i = 0;
    if (t->n % 2 == 0 || lop_chain_rows(&s->ch, st, t->f[h]) != s->rank ||
        lop_chain_cols(&s->ch, st, t->f[h]) != s->rank)
        return true;
    while (i < h && mirror(s, t->f[i], t->f[t->n - 1 - i])) i++;
    const lop_node *m = lop_thin_node(s, t->f[h]);
    if (i < h || (!lop_sym_inverse(t->f[h]) && !lop_cheap_to_solve(m))) return true;
    s->half = h;
    s->mid = true;
    return true;
}

/* S as base and update; false: it is no such sum. */
static bool read_update(lop_thin *s, const lop_maker *mk, lop_dtype dt, const lop_node *sum) {
    *s = (lop_thin){.mk = mk, .dt = dt, .sum = sum, .n = lop_rows(sum)};
    if (lop_nbatch(sum) > 0 || !lop_chain_read(&s->ch, mk->ctx, dt, sum, NULL)) return false;
    lop_chain_tidy(&s->ch, &s->ch.state);
    const lop_chgroup *g = &s->ch.state.group[0];
    if (g->n != 2) return false;
    const lop_chterm *t = s->ch.state.term;
    for (int one = 0; one < 2; one++)
        if (is_base(s, &t[g->term[one]]) && split(s, &t[g->term[1 - one]])) return s->rank > 0;
    return false;
}

static lop_status open(lop_thin *s) {
    const lop_sym *f = s->term.f;
    int rest = s->half + s->mid;
    lop_status st = s->half ? lop_thin_product(s, f, s->half, &s->u) : LOP_OK;
    if (st == LOP_OK && s->half) st = lop_thin_product(s, f + rest, s->term.n - rest, &s->v);
    if (st == LOP_OK && s->mid) st = lop_thin_factor(s, f[s->half], false, &s->m);
    if (st == LOP_OK && s->mid && !s->half && !lop_sym_inverse(f[0]))
        st = lop_inverse_closed(s->mk, s->m, &s->minv);
    else if (st == LOP_OK && s->mid)
        st = lop_thin_factor(s, f[s->half], true, &s->minv);
    if (st == LOP_OK && !s->eye) st = lop_thin_factor(s, s->base, true, &s->binv);
    if (st != LOP_OK) return st;
    if (s->eye || !s->half)
        s->binv_u = lop_node_ref(s->eye ? s->u : s->binv);
    else
        st = lop_make2(s->mk, &lop_op_prod, NULL, s->binv, s->u, &s->binv_u);
    return st;
}

/* B^-1 U computed once, for all that uses it. */
lop_status lop_thin_hold(lop_thin *s) {
    lop_attr d = {.i = {0, 0, 0, (int64_t)s->dt + 1}};
    if (s->eye || !s->half) {
        s->held = lop_node_ref(s->binv_u);
        return LOP_OK;
    }
    lop_status st = lop_make1(s->mk, &lop_op_todense, &d, s->binv_u, &s->w);
    return st == LOP_OK ? lop_make1(s->mk, &lop_op_dense, NULL, s->w, &s->held) : st;
}

static void close(lop_thin *s) {
    const lop_node *gone[] = {s->u, s->v, s->m, s->minv, s->binv, s->binv_u, s->w, s->held};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
}

/* -- Woodbury */

static bool pays(const lop_thin *s, int64_t k) {
    const lop_costs *table = lop_costs_of(s->mk->ctx);
    lop_price direct = lop_price_gemm(table, s->dt, s->n, s->n, s->rank, 0.5),
              back = lop_price_gemm(table, s->dt, s->n, s->n, k, 1),
              factor = lop_price_gemm(table, s->dt, s->n, s->n, s->n, 1.0 / 6),
              small = lop_price_gemm(table, s->dt, s->rank, s->rank, s->n + s->rank / 3, 1),
              thin = lop_price_gemm(table, s->dt, s->n, k, s->rank, 5),
              base = lop_price_gemm(table, s->dt, s->n, s->rank, s->n, 1);
    /* of a base that is an inverse the check takes its factor, and the whole the inverse */
    const bool inverse = lop_sym_inverse(s->base);
    return s->rank <= s->n / 2 &&
           small.seconds + thin.seconds + (inverse ? base.seconds : 0) + 40 * table->overhead <
               direct.seconds + back.seconds + (inverse ? 3 : 1) * factor.seconds;
}

/* With fewer columns of U than n / 8 it is less work a column whatever k is: where it pays for one
 * it serves all uses, with one small matrix. */
static bool pays_for(const lop_thin *s, int64_t k) {
    return pays(s, k) || (8 * s->rank <= s->n && pays(s, 1));
}

/* B^-1 U and the factor that it takes. */
static double price_of_base(const lop_costs *table, lop_dtype dt, const lop_node *base,
                            int64_t rank) {
    if (!base || base->op == &lop_op_identity) return 0;
    if (!lop_sparse_pays(base)) return lop_price_apply(table, dt, base, rank, 1).seconds;
    return lop_price_factor(table, dt, base, 1).seconds +
           lop_price_solve(table, dt, base, rank, 1).seconds;
}

bool lop_thin_better_whole(const lop_maker *mk, lop_dtype dt, const lop_node *sum,
                           const lop_node *base, int64_t rank, int64_t k) {
    const lop_costs *table = lop_costs_of(mk->ctx);
    const lop_band b = lop_infer_bands(sum);
    const int64_t rows = lop_rows(sum);
    const lop_price small = lop_price_gemm(table, dt, rank, rank, rows + rank / 3, 1),
                    thin = lop_price_gemm(table, dt, rows, k, rank, 5);
    const double updated = small.seconds + thin.seconds + price_of_base(table, dt, base, rank);
    double whole;
    if (lop_band_is_narrow(sum, b)) {
        const double diagonals = (double)(b.l + b.u + 1), n = (double)rows;
        whole = lop_price_pass(table, dt, n * diagonals * (double)(b.l + 1 + k), 1).seconds;
    } else if (lop_sparse_pays(sum)) {
        whole = lop_price_factor(table, dt, sum, 1).seconds +
                lop_price_solve(table, dt, sum, k, 1).seconds;
    } else {
        return false;
    }
    return whole < updated + 40 * table->overhead;
}

static bool better_whole(const lop_thin *s, int64_t k) {
    return lop_thin_better_whole(s->mk, s->dt, s->sum, lop_thin_node(s, s->base), s->rank, k);
}

/* S as a LowRankUpdate, or its update alone as a LowRank where no base was read. */
static lop_status as_update(const lop_thin *s, const lop_node **out) {
    const lop_node *base = NULL, *vh = NULL, *mid = NULL, *eye = NULL, *seen = NULL, *child[4];
    const bool based = s->base != LOP_CH_PROXY;
    int n = 0;
    lop_status st = LOP_OK;
    if (based) st = lop_thin_factor(s, s->base, false, &seen);
    if (st == LOP_OK && based) st = lop_thin_multiple(s->mk, s->b, seen, &base);
    bool same = s->term.n == 2 * s->half + s->mid;
    for (int i = 0; same && i < s->half; i++)
        same = mirror(s, s->term.f[i], s->term.f[s->term.n - 1 - i]);
    same = same || lop_node_turned(s->u, s->v, LOP_INFER_DEPTH) == LOP_T;
    if (st == LOP_OK && !same) st = lop_view_once(s->mk, LOP_H, s->v, &vh);
    if (st == LOP_OK && !s->m && !lop_coef_test(s->mk->ctx, s->c, LOP_COEF_ONE))
        st = lop_thin_identity(s->mk, s->rank, &eye);
    if (st == LOP_OK && (s->m || eye)) st = lop_thin_multiple(s->mk, s->c, s->m ? s->m : eye, &mid);
    if (base) child[n++] = base;
    child[n++] = s->u;
    child[n++] = same ? s->u : vh;
    if (mid) child[n++] = mid;
    if (st == LOP_OK)
        st = lop_make(s->mk, base ? "lowrankupdate" : "lowrank", NULL, n, child, NULL, out);
    const lop_node *gone[] = {seen, base, vh, mid, eye};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* Is it `a`, or the conjugate of a real one? */
static bool is_of(const lop_node *v, const lop_node *a) {
    if (v->op == &lop_op_view && v->attr.i[0] == LOP_C && !lop_is_complex(v->dtype))
        v = v->child[0];
    return lop_node_alike(v, a, LOP_INFER_DEPTH);
}

/* The same of a product as it is written, split where it is thinnest: sums may stand in it. */
static lop_status low_written(const lop_maker *mk, const lop_node *term, int64_t most,
                              const lop_node **out) {
    enum { FACTORS = 8 };
    const bool times = term->op == &lop_op_scaled;
    const lop_node *todo[FACTORS + 1] = {times ? term->child[0] : term}, *f[FACTORS],
                                   *part[3] = {NULL, NULL, NULL}, *vh = NULL, *eye = NULL;
    int waiting = 1, n = 0, half = 0;
    while (waiting > 0) {
        const lop_node *a = todo[--waiting];
        if (a->op == &lop_op_prod && waiting + 2 <= FACTORS) {
            todo[waiting++] = a->child[1];
            todo[waiting++] = a->child[0];
        } else if (n == FACTORS) {
            return LOP_NOMATCH;
        } else {
            f[n++] = a;
        }
    }
    for (int i = 1; i < n; i++)
        if (half == 0 || lop_rows(f[i]) < lop_rows(f[half])) half = i;
    if (half == 0 || lop_rows(f[half]) > most || lop_rows(f[half]) <= 0) return LOP_NOMATCH;
    lop_status st = LOP_OK;
    for (int side = 0; st == LOP_OK && side < 2; side++) { /* U, then V */
        const int from = side ? half : 0, to = side ? n : half;
        part[side] = lop_node_ref(f[to - 1]);
        for (int i = to - 2; st == LOP_OK && i >= from; i--) {
            const lop_node *right = part[side];
            st = lop_make2(mk, &lop_op_prod, NULL, f[i], right, &part[side]);
            lop_node_unref(right);
            if (st != LOP_OK) part[side] = NULL;
        }
    }
    if (st == LOP_OK) st = lop_view_once(mk, LOP_H, part[1], &vh);
    if (st == LOP_OK && is_of(vh, part[0])) { /* one operand: U U^H is seen to be Hermitian */
        lop_node_unref(vh);
        vh = lop_node_ref(part[0]);
    }
    if (st == LOP_OK && times) st = lop_thin_identity(mk, lop_rows(f[half]), &eye);
    if (st == LOP_OK && times) st = lop_thin_multiple(mk, lop_coef_of(&term->attr), eye, &part[2]);
    const lop_node *child[3] = {part[0], vh, part[2]};
    if (st == LOP_OK) st = lop_make(mk, "lowrank", NULL, times ? 3 : 2, child, NULL, out);
    const lop_node *gone[] = {part[0], part[1], part[2], vh, eye};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* A product whose rank is at most `most`, and multiples of it, as a LowRank. */
static lop_status low_product(const lop_maker *mk, const lop_node *term, int64_t most,
                              const lop_node **out) {
    lop_thin s = {.mk = mk, .dt = term->dtype, .n = lop_rows(term), .base = LOP_CH_PROXY};
    if (!lop_chain_read(&s.ch, mk->ctx, term->dtype, term, NULL)) return LOP_NOMATCH;
    lop_chain_tidy(&s.ch, &s.ch.state);
    const lop_chgroup *g = &s.ch.state.group[0];
    if (g->n != 1 || s.ch.state.term[g->term[0]].n < 2 || !split(&s, &s.ch.state.term[g->term[0]]))
        return low_written(mk, term, most, out);
    s.eye = true; /* nothing is made of a base */
    lop_status st = s.rank <= 0 || s.rank > most ? LOP_NOMATCH : open(&s);
    if (st == LOP_OK) st = as_update(&s, out);
    close(&s);
    return st;
}

/* What stands at one place of U (C) V^H, a Kron whose factors are thin products or stay whole, in
 * C, between identities. Owned. */
static lop_status low_factor(const lop_maker *mk, const lop_node *f, const lop_node **u,
                             const lop_node **mid, const lop_node **v) {
    const lop_node *low = NULL;
    lop_status st = f->op == &lop_op_prod ? low_product(mk, f, lop_rows(f) - 1, &low) : LOP_NOMATCH;
    if (st == LOP_OK) {
        *u = lop_node_ref(low->child[0]);
        *v = lop_node_ref(low->child[1]);
        if (low->n > 2)
            *mid = lop_node_ref(low->child[2]);
        else
            st = lop_thin_identity(mk, lop_cols(*u), mid);
        lop_node_unref(low);
        return st;
    }
    if (st != LOP_NOMATCH) return st;
    *mid = lop_node_ref(f);
    st = lop_thin_identity(mk, lop_rows(f), u);
    if (st == LOP_OK) *v = lop_node_ref(*u);
    return st;
}

/* Kron(Z Z^H, W W^H), which products of Krons close to. */
static lop_status low_kron(const lop_maker *mk, const lop_node *term, int64_t most,
                           const lop_node **out) {
    enum { PLACES = 8 };
    const bool times = term->op == &lop_op_scaled;
    const lop_node *k = times ? term->child[0] : term, *part[3][PLACES] = {{NULL}},
                   *all[3] = {NULL, NULL, NULL}, *child[3];
    if (k->op != &lop_op_kron || k->n > PLACES || lop_infer_rank(k) > most) return LOP_NOMATCH;
    lop_status st = LOP_OK;
    bool same = true;
    for (int i = 0; i < k->n; i++)
        if (!lop_is_square(k->child[i])) return LOP_NOMATCH;
    for (int i = 0; st == LOP_OK && i < k->n; i++) {
        st = low_factor(mk, k->child[i], &part[0][i], &part[1][i], &part[2][i]);
        same = same && part[0][i] == part[2][i];
    }
    for (int j = 0; st == LOP_OK && j < 3; j++)
        st = lop_make(mk, "kron", NULL, k->n, part[j], NULL, &all[j]);
    child[0] = all[0];
    child[1] = same ? all[0] : all[2];
    if (st == LOP_OK && lop_cols(all[0]) > most) st = LOP_NOMATCH;
    if (st == LOP_OK)
        st = times ? lop_thin_multiple(mk, lop_coef_of(&term->attr), all[1], &child[2])
                   : (child[2] = lop_node_ref(all[1]), LOP_OK);
    else
        child[2] = NULL;
    if (st == LOP_OK) st = lop_make(mk, "lowrank", NULL, 3, child, NULL, out);
    lop_node_unref(child[2]);
    for (int j = 0; j < 3; j++) {
        for (int i = 0; i < k->n; i++) lop_node_unref(part[j][i]);
        lop_node_unref(all[j]);
    }
    return st;
}

/* c 1 1^T, and multiples of it: the number stands in the middle. */
static lop_status low_full(const lop_maker *mk, const lop_node *term, const lop_node **out) {
    const bool times = term->op == &lop_op_scaled;
    const lop_node *full = times ? term->child[0] : term, *u = NULL, *c = NULL, *mid = NULL;
    const lop_attr one = {.re = 1, .i = {1, LOP_WEAK, 0, 0}};
    const lop_node tall = {.shape = {.ndim = 2, .dim = {lop_rows(term), 1}}, .core = 2},
                   cell = {.shape = {.ndim = 2, .dim = {1, 1}}, .core = 2};
    if (full->op != &lop_op_full) return LOP_NOMATCH;
    lop_status st = lop_make(mk, "full", &one, 0, NULL, &tall, &u);
    if (st == LOP_OK) st = lop_make(mk, "full", &full->attr, 0, NULL, &cell, &c);
    if (st == LOP_OK && times) st = lop_make1(mk, &lop_op_scaled, &term->attr, c, &mid);
    const lop_node *child[3] = {u, u, mid ? mid : c};
    if (st == LOP_OK) st = lop_make(mk, "lowrank", NULL, 3, child, NULL, out);
    lop_node_unref(u);
    lop_node_unref(c);
    lop_node_unref(mid);
    return st;
}

lop_status lop_thin_low(const lop_maker *mk, const lop_node *term, const lop_node **out) {
    const int64_t most = lop_rows(term) / 2;
    if (lop_nbatch(term) > 0 || !lop_is_square(term)) return LOP_NOMATCH;
    lop_status st = most > 0 ? low_full(mk, term, out) : LOP_NOMATCH;
    if (st == LOP_NOMATCH) st = low_kron(mk, term, most, out);
    return st == LOP_NOMATCH ? low_product(mk, term, most, out) : st;
}

static lop_status woodbury(const lop_thin *s, const lop_node *x, const lop_node **out) {
    const lop_node *all;
    lop_status st = as_update(s, &all);
    if (st != LOP_OK) return st;
    st = lop_make2(s->mk, &lop_op_solve, NULL, all, x, out);
    lop_node_unref(all);
    return st;
}

LOP_BUILD(solve_thin_sum) {
    lop_thin s;
    lop_thin_right r;
    const lop_node *x = m->root->child[1];
    if (!read_update(&s, mk, m->root->dtype, m->root->child[0])) return LOP_NOMATCH;
    if (s.half && !lop_sym_inverse(s.base) && better_whole(&s, lop_cols(x))) return LOP_NOMATCH;
    const bool thin = !s.half || s.rank < s.n, read = thin && lop_thin_read_right(&s, x, &r);
    if (s.half && !read && !pays_for(&s, lop_cols(x))) return LOP_NOMATCH;
    const bool parts =
        read && (s.half || (lop_thin_beside(&s) && lop_coef_test(mk->ctx, s.c, LOP_COEF_POSITIVE)));
    lop_status st = open(&s);
    if (st == LOP_OK)
        st = !parts   ? s.half ? woodbury(&s, x, out) : lop_thin_parallel(&s, x, out)
             : s.half ? lop_thin_push_through(&s, x, &r, out)
                      : lop_thin_parallel_parts(&s, x, &r, out);
    if (parts) lop_thin_drop_right(&r);
    close(&s);
    return st;
}

LOP_BUILD(det_thin_sum) {
    lop_thin s;
    const lop_node *all = NULL, *sum = m->root->child[0];
    if (!read_update(&s, mk, sum->dtype, sum) || !s.half || !pays(&s, 1) ||
        (!lop_sym_inverse(s.base) && better_whole(&s, 1)))
        return LOP_NOMATCH;
    lop_status st = open(&s);
    if (st == LOP_OK) st = as_update(&s, &all);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scaledet, &m->root->attr, all, out);
    lop_node_unref(all);
    close(&s);
    return st;
}

lop_status lop_thin_update(const lop_maker *mk, lop_dtype dt, const lop_node *sum, int64_t part,
                           const lop_node **out) {
    lop_thin s;
    if (!read_update(&s, mk, dt, sum) || !s.half || !pays(&s, s.rank) || s.rank > s.n / part ||
        (!lop_sym_inverse(s.base) && better_whole(&s, 1)))
        return LOP_NOMATCH;
    lop_status st = open(&s);
    if (st == LOP_OK) st = as_update(&s, out);
    close(&s);
    return st;
}

/* The root's action on the inverse of the sum as an update, where k columns pay. */
static lop_status inverse_as_update(const lop_match *m, const lop_maker *mk, int64_t part,
                                    const lop_node **out) {
    const lop_node *all = NULL, *inverse = NULL, *sum = m->root->child[0]->child[0];
    lop_status st = lop_thin_update(mk, m->root->dtype, sum, part, &all);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_inverse, NULL, all, &inverse);
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, inverse, out);
    lop_node_unref(all);
    lop_node_unref(inverse);
    return st;
}

/* The diagonal of the inverse likewise, and its dense form. */
LOP_BUILD(inverse_diagonal_thin_sum) { return inverse_as_update(m, mk, 1, out); }
LOP_BUILD(inverse_dense_thin_sum) { return inverse_as_update(m, mk, 4, out); }
