/* toeplitz_words.c: what is read off products of Toeplitz matrices, inverses of such and at most
 * one diagonal matrix, as second derivatives have them: P D R with P and R of small displacement
 * rank, Z P - P Z = G H^T (op_displaced.c). By the product rule
 *
 *   of F Q:  [g  F G] [Q^T h  H]^T,   of a Toeplitz F: -e_0 (Z^T F^T e_0)^T + (Z F e_last)
 * e_last^T,
 *
 * of its inverse -F^-1 g (F^-T h)^T. The diagonal of R P is one pass over that. The sums along
 * diagonals of P D R are what is linear in a Toeplitz Q, sum(w diag(R Q^T P)): those of
 *
 *   W_0 (P e_0)(R^T e_0)^T - (P p_R) H_R^T - G_P (R^T q_P)^T + (Z P p_e) e_0^T
 *     - e_last (Z^T R^T q_e)^T,
 *
 * p of columns of G_R and of R e_0, q of columns of H_P and of P^T e_last, by weights W. Sums
 * within a product are multiplied out: terms of few columns stand beside. */
#include "expr/properties.h"
#include "low_rank_woodbury.h"
#include "ops/projections/projections.h"
#include "product_words.h"

enum { THIN = 8, FACTORS = 6, ROWS = 96 };

/* A Toeplitz matrix by how it is written; sums of such, too. */
static bool is_toeplitz(const lop_node *a, int depth) {
    if (depth == 0 || lop_nbatch(a)) return false;
    if (a->op == &lop_op_sum)
        return is_toeplitz(a->child[0], depth - 1) && is_toeplitz(a->child[1], depth - 1);
    if (a->op == &lop_op_view || a->op == &lop_op_scaled)
        return is_toeplitz(a->child[0], depth - 1);
    return lop_is_square(a) && (a->op == &lop_op_toeplitz || a->op == &lop_op_identity);
}
static bool stays(const lop_node *f) {
    int mode;
    lop_coef c = lop_coef_const(1, 0);
    return (!lop_sum_seen(f, &mode, &c) && !lop_update_seen(f)) || lop_is_diagonal_matrix(f) ||
           is_toeplitz(f, LOP_INFER_DEPTH);
}
static bool is_thin(const lop_word *w) {
    for (int i = 0; i < w->n; i++)
        if (THIN * lop_infer_rank(w->f[i]) <= lop_rows(w->f[i])) return true;
    return false;
}

/* Where the diagonal factor of the product stands; n: it has none. -1: there is more than one, or
 * no inverse that pays, or something else. */
static int place_of_weights(const lop_maker *mk, const lop_word *w, lop_dtype dt) {
    int at = w->n;
    bool pays = false;
    if (w->n < 2 || w->n > FACTORS) return -1;
    for (int i = 0; i < w->n; i++) {
        const lop_node *f = w->f[i];
        int64_t mode;
        const lop_node *a = lop_inverse_seen(f, &mode);
        if (a && a->op == &lop_op_toeplitz && !lop_nbatch(a) && f->dtype == dt)
            pays |= lop_toeplitz_pays(mk, a, dt);
        else if (!a && lop_is_diagonal_matrix(f) && lop_is_square(f) && !lop_nbatch(f) &&
                 at == w->n)
            at = i;
        else if (a || f->dtype != dt || !is_toeplitz(f, LOP_INFER_DEPTH))
            return -1;
    }
    return pays && (mk->ctx->toeplitz || lop_rows(w->f[0]) >= ROWS) ? at : -1;
}

/* -- columns */

/* [a b], either of them NULL: the other. Takes over both, also after an error. */
static lop_status beside(const lop_maker *mk, const lop_node *a, const lop_node *b,
                         const lop_node **out) {
    const lop_attr how = {.i = {1, 2, 0, 0}};
    const lop_node *child[2] = {a, b};
    if (!a || !b) {
        *out = a ? a : b;
        return LOP_OK;
    }
    lop_status st = lop_make(mk, "grid", &how, 2, child, NULL, out);
    lop_node_unref(a);
    lop_node_unref(b);
    return st;
}
static lop_status displaced(const lop_maker *mk, int how, const lop_node *a, const lop_node *w,
                            const lop_node **out) {
    const lop_attr by = {.i = {how, 0, 0, 0}};
    const lop_node *child[2] = {a, w};
    return lop_make_op(mk, &lop_op_displaced, &by, w ? 2 : 1, child, NULL, out);
}
/* The operator, or its transpose, times the array; NULL: the identity. Owned. */
static lop_status times(const lop_maker *mk, int mode, const lop_node *a, const lop_node *x,
                        const lop_node **out) {
    const lop_node *seen = NULL;
    if (!a) {
        *out = lop_node_ref(x);
        return LOP_OK;
    }
    lop_status st = lop_view_once(mk, mode, a, &seen);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, seen, x, out);
    lop_node_unref(seen);
    return st;
}

/* A product of Toeplitz matrices and inverses, and its displacement; all NULL: of none. */
typedef struct side {
    const lop_maker *mk;
    const lop_node *first, *last; /* borrowed: columns of the identity */
    const lop_node *p, *g, *h;    /* owned */
} side;

static void side_close(side *s) {
    lop_node_unref(s->p);
    lop_node_unref(s->g);
    lop_node_unref(s->h);
    s->p = s->g = s->h = NULL;
}

/* g and h of the Toeplitz matrix x, n x 2. Owned. */
static lop_status of_toeplitz(const side *s, const lop_node *x, const lop_node **g,
                              const lop_node **h) {
    const lop_attr less = lop_attr_coef(-1, 0);
    const lop_node *column = NULL, *row = NULL, *down = NULL, *back = NULL, *minus = NULL;
    lop_status st = times(s->mk, LOP_N, x, s->last, &column);
    if (st == LOP_OK) st = displaced(s->mk, LOP_DISPLACED_ON, column, NULL, &down);
    if (st == LOP_OK) st = times(s->mk, LOP_T, x, s->first, &row);
    if (st == LOP_OK) st = displaced(s->mk, LOP_DISPLACED_BACK, row, NULL, &back);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_scale, &less, back, &minus);
    if (st == LOP_OK) st = beside(s->mk, lop_node_ref(s->first), lop_node_ref(down), g);
    if (st == LOP_OK) st = beside(s->mk, lop_node_ref(minus), lop_node_ref(s->last), h);
    const lop_node *gone[] = {column, row, down, back, minus};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}
/* Of the factor f, that or an inverse. Owned. */
static lop_status of_factor(const side *s, const lop_node *f, const lop_node **g,
                            const lop_node **h) {
    const lop_attr less = lop_attr_coef(-1, 0);
    int64_t mode;
    const lop_node *a = lop_inverse_seen(f, &mode), *x = NULL, *own[2] = {NULL}, *moved = NULL;
    if (!a) return of_toeplitz(s, f, g, h);
    lop_status st = lop_view_once(s->mk, (int)mode, a, &x);
    if (st == LOP_OK) st = of_toeplitz(s, x, &own[0], &own[1]);
    if (st == LOP_OK) st = times(s->mk, LOP_N, f, own[0], &moved);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_scale, &less, moved, g);
    if (st == LOP_OK) st = times(s->mk, LOP_T, f, own[1], h);
    const lop_node *gone[] = {x, own[0], own[1], moved};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}
/* f before what is there. */
static lop_status side_before(side *s, const lop_node *f) {
    const lop_node *g = NULL, *h = NULL, *moved = NULL, *turned = NULL, *both[2] = {f, s->p};
    side next = *s;
    next.p = next.g = next.h = NULL;
    lop_status st = of_factor(s, f, &g, &h);
    if (st == LOP_OK && s->g) st = times(s->mk, LOP_N, f, s->g, &moved);
    if (st == LOP_OK) st = times(s->mk, LOP_T, s->p, h, &turned);
    if (st == LOP_OK) st = lop_product_of(s->mk, both, s->p ? 2 : 1, &next.p);
    if (st == LOP_OK) {
        st = beside(s->mk, g, moved, &next.g);
        g = moved = NULL;
    }
    if (st == LOP_OK) {
        st = beside(s->mk, turned, s->h, &next.h);
        turned = s->h = NULL;
    }
    lop_node_unref(g);
    lop_node_unref(h);
    lop_node_unref(moved);
    lop_node_unref(turned);
    side_close(s);
    *s = next;
    return st;
}
static lop_status side_read(side *s, const lop_word *w, int from, int to) {
    lop_status st = LOP_OK;
    for (int i = to - 1; st == LOP_OK && i >= from; i--) st = side_before(s, w->f[i]);
    return st;
}

/* -- what is read */

typedef struct reading {
    const lop_maker *mk;
    lop_dtype dt;
    const lop_node *first, *last, *w, *v; /* owned: e_0 and e_last, the weights, a probe */
    side p, r;                            /* P D R */
} reading;

static void reading_close(reading *x) {
    side_close(&x->p);
    side_close(&x->r);
    lop_node_unref(x->first);
    lop_node_unref(x->last);
    lop_node_unref(x->w);
    lop_node_unref(x->v);
}
static lop_status reading_open(reading *x, int64_t n) {
    const lop_maker *mk = x->mk;
    const lop_attr one = {.i = {0, 0, 0, 0}}, far = {.i = {n - 1, 0, 0, 0}};
    const lop_node like = {.shape = {.ndim = 2, .dim = {n, 1}}, .dtype = x->dt, .core = 2};
    lop_status st = lop_make(mk, "unit", &one, 0, NULL, &like, &x->first);
    if (st == LOP_OK) st = lop_make(mk, "unit", &far, 0, NULL, &like, &x->last);
    if (st == LOP_OK) st = lop_make(mk, "probe", NULL, 0, NULL, &like, &x->v);
    x->p = x->r = (side){.mk = mk, .first = x->first, .last = x->last};
    return st;
}
/* The numbers on a diagonal matrix in the dtype dt. Owned. */
static lop_status weights_of(const lop_maker *mk, const lop_node *diagonal, lop_dtype dt,
                             const lop_node **out) {
    const lop_attr d = {.i = {0, 0, 0, (int64_t)dt + 1}};
    const lop_node *vector = NULL;
    lop_status st = lop_make_diagonal(mk, diagonal, &vector);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_cast, &d, vector, out);
    lop_node_unref(vector);
    return st;
}
/* The product in two; of none that is diagonal the middle one is the identity. */
static lop_status reading_cut(reading *x, const lop_word *w, int at) {
    const bool weighed = at < w->n;
    const int cut = weighed ? at : w->n / 2;
    const lop_node like = {
        .shape = {.ndim = 1, .dim = {lop_rows(w->f[0])}}, .dtype = x->dt, .core = 1};
    lop_status st = weighed ? weights_of(x->mk, w->f[at], x->dt, &x->w)
                            : lop_make(x->mk, "ones", NULL, 0, NULL, &like, &x->w);
    if (st == LOP_OK) st = side_read(&x->p, w, 0, cut);
    return st == LOP_OK ? side_read(&x->r, w, weighed ? at + 1 : cut, w->n) : st;
}

typedef struct columns {
    const lop_node *l, *r; /* owned */
} columns;
/* l (less it, if so) and r beside what is there. Takes over both. */
static lop_status put_beside(const lop_maker *mk, columns *to, const lop_node *l, const lop_node *r,
                             bool less) {
    const lop_attr minus = lop_attr_coef(-1, 0);
    const lop_node *own = l, *both[2] = {to->l, to->r};
    lop_status st = LOP_OK;
    if (less) {
        st = lop_make1(mk, &lop_op_scale, &minus, l, &own);
        lop_node_unref(l);
    }
    to->l = to->r = NULL;
    if (st != LOP_OK) {
        lop_node_unref(both[0]);
        lop_node_unref(both[1]);
        lop_node_unref(r);
        return st;
    }
    st = beside(mk, both[0], own, &to->l);
    if (st == LOP_OK) return beside(mk, both[1], r, &to->r);
    lop_node_unref(both[1]);
    lop_node_unref(r);
    return st;
}
/* mode(a) times the columns x, weighed. Owned. */
static lop_status weighed(const reading *x, const side *s, int mode, int how, const lop_node *a,
                          const lop_node **out) {
    const lop_node *moved = NULL;
    lop_status st = displaced(x->mk, how, a, x->w, &moved);
    if (st == LOP_OK) st = times(x->mk, mode, s->p, moved, out);
    lop_node_unref(moved);
    return st;
}
/* The pair for a column of a side: weighed as it says, moved on, and shifted. Owned. */
static lop_status shifted(const reading *x, const side *from, const side *to, int mode, int how,
                          const lop_node *tip, int shift, const lop_node **out) {
    const lop_node *column = NULL, *moved = NULL;
    lop_status st = times(x->mk, mode, from->p, tip, &column);
    if (st == LOP_OK) st = weighed(x, to, mode, how, column, &moved);
    if (st == LOP_OK) st = displaced(x->mk, shift, moved, NULL, out);
    lop_node_unref(column);
    lop_node_unref(moved);
    return st;
}
/* L and R, whose product has the sums. */
static lop_status parts_of_sums(const reading *x, columns *all) {
    const lop_maker *mk = x->mk;
    const lop_node *tip = NULL, *l = NULL, *r = NULL;
    lop_status st = times(mk, LOP_N, x->p.p, x->first, &tip);
    if (st == LOP_OK) st = displaced(mk, LOP_DISPLACED_BY_ALL, tip, x->w, &l);
    if (st == LOP_OK) st = times(mk, LOP_T, x->r.p, x->first, &r);
    lop_node_unref(tip);
    if (st == LOP_OK) {
        st = put_beside(mk, all, l, r, false);
        l = r = NULL;
    }
    if (st == LOP_OK && x->r.g) {
        st = weighed(x, &x->p, LOP_N, LOP_DISPLACED_BY_ROW_BELOW, x->r.g, &l);
        if (st == LOP_OK) st = put_beside(mk, all, l, lop_node_ref(x->r.h), true);
        l = NULL;
    }
    if (st == LOP_OK && x->p.g) {
        st = weighed(x, &x->r, LOP_T, LOP_DISPLACED_BY_ROW_ABOVE, x->p.h, &r);
        if (st == LOP_OK) st = put_beside(mk, all, lop_node_ref(x->p.g), r, true);
        r = NULL;
    }
    if (st == LOP_OK)
        st = shifted(x, &x->r, &x->p, LOP_N, LOP_DISPLACED_BY_ROW_BELOW, x->first, LOP_DISPLACED_ON,
                     &l);
    if (st == LOP_OK) {
        st = put_beside(mk, all, l, lop_node_ref(x->first), false);
        l = NULL;
    }
    if (st == LOP_OK)
        st = shifted(x, &x->p, &x->r, LOP_T, LOP_DISPLACED_BY_ROW_ABOVE, x->last,
                     LOP_DISPLACED_BACK, &r);
    if (st == LOP_OK) {
        st = put_beside(mk, all, lop_node_ref(x->last), r, true);
        r = NULL;
    }
    lop_node_unref(l);
    lop_node_unref(r);
    return st;
}
/* value, or alt. Owned. */
static lop_status checked(const reading *x, const lop_node *a, const lop_node *value,
                          const columns *of, const lop_node *alt, const lop_node **out) {
    const lop_node *z = NULL;
    lop_status st = lop_make2(x->mk, &lop_op_apply, NULL, a, x->v, &z);
    const lop_node *child[6] = {value, of->l, of->r, z, x->v, alt};
    if (st == LOP_OK) st = lop_make_op(x->mk, &lop_op_displaced_checked, NULL, 6, child, NULL, out);
    lop_node_unref(z);
    return st;
}
static lop_status sums_of_word(const lop_maker *mk, const lop_node *root, const lop_word *w, int at,
                               const lop_node **out) {
    const lop_attr turn = {.i = {LOP_T, 0, 0, 0}};
    const lop_node *a = root->child[0], *row = NULL, *value = NULL, *alt = NULL;
    reading x = {.mk = mk, .dt = root->dtype};
    columns all = {NULL, NULL};
    lop_attr how = root->attr;
    how.i[3] = 0;
    lop_status st = reading_open(&x, lop_rows(a));
    if (st == LOP_OK) st = reading_cut(&x, w, at);
    if (st == LOP_OK) st = parts_of_sums(&x, &all);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_swap, &turn, all.r, &row);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_pair_diagonal_sums, &how, all.l, row, &value);
    if (st == LOP_OK) st = lop_sums_of_dense(mk, root, &alt);
    if (st == LOP_OK) st = checked(&x, a, value, &all, alt, out);
    const lop_node *gone[] = {row, value, alt, all.l, all.r};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    reading_close(&x);
    return st;
}
/* The diagonal of a product without a diagonal matrix. */
static lop_status diagonal_of_word(const lop_maker *mk, const lop_node *root, const lop_word *w,
                                   const lop_node **out) {
    const lop_node *a = root->child[0], *value = NULL, *alt = NULL, *column = NULL;
    reading x = {.mk = mk, .dt = root->dtype};
    side *s = &x.p;
    lop_status st = reading_open(&x, lop_rows(a));
    if (st == LOP_OK) st = side_read(s, w, 0, w->n);
    if (st == LOP_OK) st = times(mk, LOP_N, s->p, x.first, &column);
    if (st == LOP_OK) {
        const lop_node *child[3] = {column, s->g, s->h};
        st = lop_make_op(mk, &lop_op_displaced_diagonal, NULL, 3, child, NULL, &value);
    }
    if (st == LOP_OK) st = lop_diagonal_of_dense(mk, root->dtype, a, &alt);
    const columns of = {s->g, s->h};
    if (st == LOP_OK) st = checked(&x, a, value, &of, alt, out);
    lop_node_unref(column);
    lop_node_unref(value);
    lop_node_unref(alt);
    reading_close(&x);
    return st;
}
/* The trace of P D R: the sum of w times the diagonal of R P. */
static lop_status trace_of_word(const lop_maker *mk, const lop_node *root, const lop_word *w,
                                int at, const lop_node **out) {
    const lop_attr main = {.i = {0, 0, 0, (int64_t)root->dtype + 1}};
    const lop_node *f[FACTORS], *turned = NULL, *d = NULL, *by = NULL, *value = NULL;
    int n = 0;
    for (int i = at + 1; i < w->n; i++) f[n++] = w->f[i];
    for (int i = 0; i < at; i++) f[n++] = w->f[i];
    if (n < 2) return LOP_NOMATCH;
    lop_status st = lop_product_of(mk, f, n, &turned);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_diagonal, &main, turned, &d);
    if (st == LOP_OK && at < w->n) st = weights_of(mk, w->f[at], root->dtype, &by);
    if (st == LOP_OK)
        st = by ? lop_make2(mk, &lop_op_mul, NULL, by, d, &value)
                : (value = lop_node_ref(d), LOP_OK);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_sumall, NULL, value, out);
    const lop_node *gone[] = {turned, d, by, value};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* The root's reading of one product, times its number: made here of the `only` one, of several each
 * as rules have it. *pays: none that is thin. Owned; NOMATCH. */
static lop_status of_word(const lop_maker *mk, const lop_node *root, const lop_word *w, bool only,
                          bool *pays, const lop_node **out) {
    const int at = place_of_weights(mk, w, root->dtype);
    const bool thin = w->n > 1 && is_thin(w), sums = root->op == &lop_op_diagonal_sums;
    const lop_attr by = lop_coef_attr(w->c);
    const lop_node *a = NULL, *own = NULL, *value = NULL;
    if (only ? at < 0 : at < 0 && !thin) return LOP_NOMATCH;
    if (!thin && root->op == &lop_op_diagonal && at < w->n) return LOP_NOMATCH;
    *pays |= !thin;
    lop_status st = lop_product_of(mk, w->f, w->n, &a);
    if (st == LOP_OK) st = lop_make_op(mk, root->op, &root->attr, 1, &a, NULL, &own);
    if (st == LOP_OK && !only) value = lop_node_ref(own);
    if (st == LOP_OK && only)
        st = sums                           ? sums_of_word(mk, own, w, at, &value)
             : root->op == &lop_op_diagonal ? diagonal_of_word(mk, own, w, &value)
                                            : trace_of_word(mk, own, w, at, &value);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &by, value, out);
    if (st == LOP_OK && (*out)->dtype != root->dtype) {
        lop_node_unref(*out);
        *out = NULL;
        st = LOP_NOMATCH;
    }
    lop_node_unref(a);
    lop_node_unref(own);
    lop_node_unref(value);
    return st;
}
/* D for D^T and conj(D), as other rows take it. */
static lop_status diagonals_settled(const lop_maker *mk, lop_word *w) {
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < w->n; i++)
        if (w->f[i]->op == &lop_op_view && lop_is_diagonal_matrix(w->f[i]->child[0]))
            st = lop_settle(mk, &w->f[i]);
    return st;
}
LOP_BUILD(toeplitz_words) {
    const lop_node *root = m->root, *p = root->child[0];
    lop_word list[LOP_WORDS];
    int n = 1;
    if (lop_nbatch(p) > 0 || !lop_is_blas(root->dtype) || p->dtype != root->dtype ||
        !lop_is_square(p) || (root->op != &lop_op_trace && root->attr.i[0]))
        return LOP_NOMATCH;
    lop_status st = lop_word_opened(mk, p, LOP_N, &list[0]);
    if (st == LOP_OK) st = lop_words_multiplied_out(mk, stays, true, list, &n);
    for (int i = 0; st == LOP_OK && i < n; i++) st = diagonals_settled(mk, &list[i]);
    if (st == LOP_OK) st = lop_words_summed(mk, root, list, n, of_word, out);
    for (int i = 0; i < n; i++) lop_word_close(&list[i]);
    return st;
}
