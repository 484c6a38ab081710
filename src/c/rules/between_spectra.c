/* between_spectra.c: what second derivatives read off S^-1 X S^-1, where S is a sum of Krons that
 * one Kron V makes diagonal, V^H S V = D, and X a sum of Krons of the same places and of c I. As
 * S^-1 = V D^-1 V^H it is V^H X V over the products of D's numbers in the basis V, so that no
 * matrix of S's size is made. Where V is not unitary, of pencils, this holds of S^-1 alone, not of
 * its powers. */
#include "low_rank_woodbury.h"
#include "sum_of_krons.h"
#include "expr/properties.h"

/* S of S^-1, also where that is seen through a view that changes nothing of it; else NULL. */
static const lop_node *inverted(const lop_node *a) {
    bool turned = false, conj = false;
    for (; a->op == &lop_op_view; a = a->child[0]) {
        turned ^= (a->attr.i[0] & LOP_T) != 0;
        conj ^= (a->attr.i[0] & LOP_C) != 0;
    }
    if (a->op != &lop_op_inverse) return NULL;
    const lop_node *s = a->child[0];
    if (!lop_is_complex(s->dtype)) conj = turned;
    return turned == conj && (!turned || lop_infer_hermitian(s)) ? s : NULL;
}

bool lop_factors_between(const lop_node *p, const lop_node **left, const lop_node **x,
                         const lop_node **right) {
    if (p->op != &lop_op_prod) return false;
    *left = p->child[0];
    *right = p->child[1];
    *x = NULL;
    if ((*left)->op == &lop_op_prod) {
        *x = (*left)->child[1];
        *left = (*left)->child[0];
    } else if ((*right)->op == &lop_op_prod) {
        *x = (*right)->child[0];
        *right = (*right)->child[1];
    }
    return true;
}

/* S of S^-1 X S^-1, or S^-1 S^-1, then *x is NULL; NULL: it is neither. */
static const lop_node *read_either(const lop_node *p, const lop_node **x) {
    const lop_node *left, *right;
    if (!lop_factors_between(p, &left, x, &right)) return NULL;
    const lop_node *s = inverted(left), *t = s ? inverted(right) : NULL;
    return t && lop_node_alike(s, t, LOP_INFER_DEPTH) ? s : NULL;
}
const lop_node *lop_read_between(const lop_node *p, const lop_node **x) {
    const lop_node *s = read_either(p, x);
    return s && *x ? s : NULL;
}
const lop_node *lop_read_inverse_twice(const lop_node *p) {
    const lop_node *x, *s = read_either(p, &x);
    return s && !x ? s : NULL;
}

/* A product's first or last factor. */
static const lop_node *end_of(const lop_node *p, int side) {
    while (p->op == &lop_op_prod || p->op == &lop_op_scaled)
        p = p->child[p->op == &lop_op_prod ? side : 0];
    return p;
}
static bool is_turned_inverse(const lop_node *a) {
    return a->op == &lop_op_view && (a->attr.i[0] & LOP_T) && a->child[0]->op == &lop_op_inverse;
}
lop_status lop_unturned(const lop_maker *mk, const lop_node *p, int64_t *mode,
                        const lop_node **out) {
    const lop_node *left = end_of(p, 0), *right = end_of(p, 1), *seen = NULL;
    if (p->op != &lop_op_prod || !is_turned_inverse(left) || !is_turned_inverse(right) ||
        left->attr.i[0] != right->attr.i[0])
        return LOP_NOMATCH;
    *mode = left->attr.i[0];
    lop_status st = lop_make1(mk, &lop_op_view, &left->attr, p, &seen);
    if (st == LOP_OK) st = lop_settle(mk, &seen);
    if (st == LOP_OK && (seen->op != &lop_op_prod || is_turned_inverse(end_of(seen, 0))))
        st = LOP_NOMATCH;
    if (st == LOP_OK)
        *out = seen;
    else
        lop_node_unref(seen);
    return st;
}

static lop_status identity_of(const lop_maker *mk, int64_t n, const lop_node **out) {
    const lop_node like = {
        .shape = {.ndim = 2, .dim = {n, n}}, .dtype = LOP_f64, .weak = LOP_WEAK, .core = 2};
    return lop_make(mk, "identity", NULL, 0, NULL, &like, out);
}

/* A product of inverses of one S, *s where it is not NULL, times *c: how many; 0: it is none. */
static int power_of_inverse(lop_ctx *ctx, const lop_node *a, const lop_node **s, lop_coef *c) {
    const lop_node *stack[LOP_BESIDE_POWER + 2] = {a}, *f;
    int top = 1, power = 0;
    while (top > 0) {
        f = stack[--top];
        for (; f->op == &lop_op_scaled; f = f->child[0])
            *c = lop_coef_times(ctx, *c, lop_coef_of(&f->attr));
        if (f->op == &lop_op_prod) {
            if (top > LOP_BESIDE_POWER) return 0;
            stack[top++] = f->child[1];
            stack[top++] = f->child[0];
            continue;
        }
        const lop_node *of = inverted(f);
        if (!of || (*s && !lop_node_alike(*s, of, LOP_INFER_DEPTH))) return 0;
        *s = of;
        power++;
    }
    return power;
}

/* The terms of a sum of such products. False: it has others, or too many. */
static bool powers_of(lop_ctx *ctx, const lop_node *a, lop_beside *out) {
    struct {
        const lop_node *node;
        lop_coef c;
    } stack[LOP_BESIDE_TERMS + 1] = {{a, lop_coef_const(1, 0)}};
    int top = 1;
    out->n = 0;
    while (top > 0) {
        const lop_node *f = stack[--top].node;
        lop_coef c = stack[top].c;
        for (; f->op == &lop_op_scaled; f = f->child[0])
            c = lop_coef_times(ctx, c, lop_coef_of(&f->attr));
        if (f->op == &lop_op_sum) {
            if (top + out->n + 2 > LOP_BESIDE_TERMS) return false;
            stack[top].c = stack[top + 1].c = c;
            stack[top++].node = f->child[1];
            stack[top++].node = f->child[0];
            continue;
        }
        const int power = power_of_inverse(ctx, f, &out->s, &c);
        if (!power) return false;
        out->c[out->n] = c;
        out->power[out->n++] = power;
    }
    return true;
}

/* The choices of a term of a, and one of b. */
static bool multiply(lop_ctx *ctx, lop_beside *a, const lop_beside *b) {
    const lop_beside was = *a;
    if (was.n * b->n > LOP_BESIDE_TERMS) return false;
    a->n = 0;
    for (int i = 0; i < was.n; i++)
        for (int j = 0; j < b->n; j++) {
            a->power[a->n] = was.power[i] + b->power[j];
            a->c[a->n] = lop_coef_times(ctx, was.c[i], b->c[j]);
            if (a->power[a->n++] > LOP_BESIDE_POWER) return false;
        }
    return true;
}

bool lop_read_beside(lop_ctx *ctx, const lop_node *p, lop_beside *b) {
    const lop_node *stack[LOP_BESIDE_TERMS] = {p}, *f;
    int top = 1;
    *b = (lop_beside){.n = 1, .c = {lop_coef_const(1, 0)}};
    while (top > 0) {
        if ((f = stack[--top])->op == &lop_op_prod) {
            if (top + 2 > LOP_BESIDE_TERMS) return false;
            stack[top++] = f->child[1];
            stack[top++] = f->child[0];
            continue;
        }
        lop_beside of = {.s = b->s};
        if (powers_of(ctx, f, &of)) {
            b->s = of.s;
            if (!multiply(ctx, b, &of)) return false;
        } else if (b->x) {
            return false;
        } else {
            b->x = f;
        }
    }
    return b->s != NULL;
}

lop_status lop_read_between_or_twice(const lop_maker *mk, const lop_node *p, const lop_node **s,
                                     const lop_node **x) {
    const lop_node *between = NULL;
    *s = read_either(p, &between);
    if (!*s) return LOP_NOMATCH;
    if (between) {
        *x = lop_node_ref(between);
        return LOP_OK;
    }
    return identity_of(mk, lop_rows(*s), x);
}

lop_status lop_diagonal_of_dense(const lop_maker *mk, lop_dtype dt, const lop_node *a,
                                 const lop_node **out) {
    const lop_attr d = {.i = {0, 0, 0, (int64_t)dt + 1}}, k = {.i = {0, 0, 0, 0}};
    const lop_node *dense = NULL;
    lop_status st = lop_make1(mk, &lop_op_todense, &d, a, &dense);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_array_diagonal, &k, dense, out);
    lop_node_unref(dense);
    return st;
}

/* The attribute that asks for a dense form, and for a diagonal, in the dtype of s. */
static lop_attr value_attr(const lop_kron_sum *s) {
    return (lop_attr){.i = {0, 0, 0, (int64_t)s->dt + 1}};
}

/* Places from..to of a term as one operator; NULL: the identity. Owned. */
static lop_status factor_of(const lop_kron_sum *s, const lop_kron_term *t, int from, int to,
                            const lop_node **out) {
    const lop_node *f[LOP_KRON_PLACES] = {NULL};
    bool some = false;
    lop_status st = LOP_OK;
    *out = NULL;
    for (int i = from; i < to; i++) some = some || t->f[i].node;
    for (int i = from; some && st == LOP_OK && i < to; i++) {
        const lop_node *a = t->f[i].node;
        const int64_t n = s->t[0].size[i];
        const lop_attr view = {.i = {t->f[i].mode, 0, 0, 0}};
        const lop_node like = {
            .shape = {.ndim = 2, .dim = {n, n}}, .dtype = LOP_f64, .weak = LOP_WEAK, .core = 2};
        if (!a)
            st = lop_make(s->mk, "identity", NULL, 0, NULL, &like, &f[i]);
        else if (t->f[i].mode)
            st = lop_make1(s->mk, &lop_op_view, &view, a, &f[i]);
        else
            f[i] = lop_node_ref(a);
    }
    if (some && st == LOP_OK) st = lop_kron_of(s->mk, to - from, f + from, out);
    for (int i = 0; i < LOP_KRON_PLACES; i++) lop_node_unref(f[i]);
    return st;
}

/* Places from..to of V, or of V^H. Owned. */
static lop_status basis_of(const lop_kron_sum *s, bool back, int from, int to,
                           const lop_node **out) {
    const lop_node *f[LOP_KRON_PLACES] = {NULL};
    for (int i = from; i < to; i++) f[i] = back ? s->at[i].vh : s->at[i].v;
    return lop_kron_of(s->mk, to - from, f + from, out);
}

/* `what`, todense or diagonal, of A B C. */
static lop_status value_of(const lop_kron_sum *s, const lop_op *what, const lop_node *a,
                           const lop_node *b, const lop_node *c, const lop_node **out) {
    const lop_attr d = value_attr(s);
    const lop_node *bc = NULL, *abc = NULL;
    lop_status st = lop_make2(s->mk, &lop_op_prod, NULL, b, c, &bc);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_prod, NULL, a, bc, &abc);
    if (st == LOP_OK) st = lop_make1(s->mk, what, &d, abc, out);
    lop_node_unref(bc);
    lop_node_unref(abc);
    return st;
}

/* V^H A V at places from..to, as `what` has it; a NULL: that of the identity. */
static lop_status turned(const lop_kron_sum *s, const lop_op *what, int from, int to,
                         const lop_node *a, const lop_node **out) {
    const lop_node *v = NULL, *vh = NULL;
    int64_t n = 1;
    for (int i = from; i < to; i++) n *= s->t[0].size[i]; /* of s->rows, which is a size */
    const bool vector = what == &lop_op_diagonal;
    const lop_node like = {
        .shape = {.ndim = vector ? 1 : 2, .dim = {n, n}}, .dtype = s->dt, .core = vector ? 1 : 2};
    if (!a && s->unitary)
        return lop_make(s->mk, vector ? "ones" : "eye", NULL, 0, NULL, &like, out);
    const lop_node *one = NULL; /* V^H V */
    lop_status st = a ? LOP_OK : identity_of(s->mk, n, &one);
    if (st == LOP_OK) st = basis_of(s, false, from, to, &v);
    if (st == LOP_OK) st = basis_of(s, true, from, to, &vh);
    if (st == LOP_OK) st = value_of(s, what, vh, a ? a : one, v, out);
    lop_node_unref(one);
    lop_node_unref(v);
    lop_node_unref(vh);
    return st;
}

/* c a is added to *all. Takes over a. */
static lop_status add_multiple(const lop_kron_sum *s, lop_coef c, const lop_node *a,
                               const lop_node **all) {
    const lop_attr by = lop_coef_attr(c);
    const lop_node *one = NULL, *both = NULL;
    lop_status st = lop_make1(s->mk, &lop_op_scale, &by, a, &one);
    lop_node_unref(a);
    if (st != LOP_OK || !*all) {
        *all = one ? one : *all;
        return st;
    }
    st = lop_make2(s->mk, &lop_op_add, NULL, *all, one, &both);
    lop_node_unref(one);
    lop_node_unref(*all);
    *all = both;
    return st;
}

/* What the terms of X are asked for: the identity is the last one. */
static lop_status sum_terms(const lop_kron_sum *x,
                            lop_status (*one)(const void *how, const lop_kron_term *t,
                                              const lop_node **out),
                            const void *how, const lop_node **out) {
    const lop_kron_term eye = {.c = x->c, .n = x->n};
    lop_status st = LOP_OK;
    *out = NULL;
    for (int t = 0; st == LOP_OK && t < x->nt + (x->eye ? 1 : 0); t++) {
        const lop_kron_term *term = t < x->nt ? &x->t[t] : &eye;
        const lop_node *value = NULL;
        st = one(how, term, &value);
        if (st == LOP_OK) st = add_multiple(x, term->c, value, out);
    }
    if (st == LOP_OK && !*out) st = LOP_NOMATCH;
    if (st != LOP_OK) {
        lop_node_unref(*out);
        *out = NULL;
    }
    return st;
}

/* -- what it means for a factor of a Kron: with M for the other one, `theirs` its places
 *
 *   V ((V^H E V) o (R W R^T)) V^H,   W = (V^H F V) o conj(V^H M V),   R = 1 / D as a matrix
 *
 * for X = E (x) F. */
typedef struct partial {
    const lop_kron_sum *s;
    const lop_node *mt, *r, *rt; /* conj(V^H M V); R and R^T as operators */
    int theirs[2], mine[2];
} partial;

static lop_status partial_term(const void *how, const lop_kron_term *t, const lop_node **out) {
    const partial *p = how;
    const lop_kron_sum *s = p->s;
    const lop_node *f = NULL, *ft = NULL, *w = NULL, *wo = NULL, *rwr = NULL, *e = NULL, *et = NULL;
    lop_status st = factor_of(s, t, p->theirs[0], p->theirs[1], &f);
    if (st == LOP_OK) st = turned(s, &lop_op_todense, p->theirs[0], p->theirs[1], f, &ft);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_mul, NULL, ft, p->mt, &w);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_dense, NULL, w, &wo);
    if (st == LOP_OK) st = value_of(s, &lop_op_todense, p->r, wo, p->rt, &rwr);
    if (st == LOP_OK) st = factor_of(s, t, p->mine[0], p->mine[1], &e);
    if (st == LOP_OK) st = turned(s, &lop_op_todense, p->mine[0], p->mine[1], e, &et);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_mul, NULL, et, rwr, out);
    const lop_node *gone[] = {f, ft, w, wo, rwr, e, et};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* R and conj(V^H M V). */
static lop_status open_partial(partial *p, bool first, const lop_node *m) {
    const lop_kron_sum *s = p->s;
    const int64_t rows = first ? lop_rows(m) : s->rows / lop_rows(m);
    const lop_attr fold = {.i = {1, rows, s->rows / rows, 1}}, turn = {.i = {LOP_T, 0, 0, 0}};
    const lop_node *in = NULL, *mt = NULL, *one = NULL, *folded = NULL, *op = NULL, *view = NULL;
    lop_status st = lop_make1(s->mk, &lop_op_dense, NULL, m, &in);
    if (st == LOP_OK) st = turned(s, &lop_op_todense, p->theirs[0], p->theirs[1], in, &mt);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_conjugate, NULL, mt, &p->mt);
    if (st == LOP_OK) st = lop_reciprocals(s->mk, s->dt, s->d, &one);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_kron_unfold, &fold, one, &folded);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_dense, NULL, folded, &op);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_view, &turn, op, &view);
    if (st == LOP_OK) {
        p->r = lop_node_ref(first ? view : op);
        p->rt = lop_node_ref(first ? op : view);
    }
    const lop_node *gone[] = {in, mt, one, folded, op, view};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* -- X = diag(w): weighted diagonals of S^-1 have such derivatives
 *
 * V^H X V has no structure of its own, but where M = V diag(m) V^H what is asked for reads of it
 * only where both of M's places are one: with w as a matrix, W = w |V|^2 diag(m), and K the columns
 * of V at the other places by those of R^T, one by one (Khatri and Rao 1968),
 *
 *   V (K^T diag(W) K) V^T
 */

/* The numbers of a diagonal X as a column. NOMATCH: it is none, or not of s's dtype. */
static lop_status column_of(const lop_kron_sum *s, const lop_node *x, const lop_node **out) {
    const lop_node *ones = NULL;
    if (!lop_is_diagonal_matrix(x) || !lop_is_square(x) || lop_nbatch(x) || x->dtype != s->dt ||
        lop_rows(x) != s->rows)
        return LOP_NOMATCH;
    lop_status st = lop_ones_column(s->mk, s->dt, s->rows, &ones);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_apply, NULL, x, ones, out);
    lop_node_unref(ones);
    return st;
}
static lop_status weights_within(const lop_kron_sum *s, const lop_node *x, const lop_node **out) {
    const lop_attr turn = {.i = {LOP_T, 0, 0, 0}}, matrix = {.i = {2, 0, 0, 0}};
    const lop_node *f[LOP_KRON_PLACES] = {NULL}, *squares = NULL, *w = NULL, *mu = NULL;
    lop_status st = column_of(s, x, &w);
    for (int i = 0; st == LOP_OK && i < s->n; i++) {
        const lop_node *one = NULL;
        st = lop_squares_of(s->mk, s->dt, s->at[i].v, &one);
        if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_view, &turn, one, &f[i]);
        lop_node_unref(one);
    }
    if (st == LOP_OK) st = lop_kron_of(s->mk, s->n, f, &squares);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_apply, NULL, squares, w, &mu);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_ravel, &matrix, mu, out);
    for (int i = 0; i < LOP_KRON_PLACES; i++) lop_node_unref(f[i]);
    lop_node_unref(squares);
    lop_node_unref(w);
    lop_node_unref(mu);
    return st;
}

/* Is M the matrix whose eigenvectors place i has? */
static bool is_place(const lop_kron_sum *s, int i, const lop_node *m) {
    const lop_node *a = s->at[i].a;
    if (!a || s->at[i].b || s->at[i].flip || m->dtype != s->dt || a->dtype != s->dt) return false;
    if (m->op == &lop_op_todense) return lop_kron_same(m->child[0], a);
    return a->op == &lop_op_dense && lop_kron_same(m, a->child[0]);
}

/* W as a vector, and K; `first`: M comes first. */
static lop_status weights_and_columns(const partial *p, bool first, const lop_node *w,
                                      const lop_node *m, const lop_node **wv,
                                      const lop_node **columns) {
    const lop_kron_sum *s = p->s;
    const int64_t theirs = lop_rows(m), mine = s->rows / theirs;
    const lop_attr fold = {.i = {1, first ? theirs : mine, first ? mine : theirs, 1}},
                   turn = {.i = {LOP_T, 0, 0, 0}}, matrix = {.i = {2, 0, 0, 0}}, d = value_attr(s);
    const lop_node *folded = NULL, *op = NULL, *seen = NULL, *in = NULL, *lm = NULL, *by = NULL,
                   *squares = NULL, *all = NULL, *v = NULL, *va = NULL, *ra = NULL;
    lop_status st = lop_make1(s->mk, &lop_op_kron_unfold, &fold, w, &folded);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_dense, NULL, folded, &op);
    if (st == LOP_OK && first) st = lop_make1(s->mk, &lop_op_view, &turn, op, &seen);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_dense, NULL, m, &in);
    if (st == LOP_OK) st = turned(s, &lop_op_diagonal, p->theirs[0], p->theirs[1], in, &lm);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_diag, NULL, lm, &by);
    if (st == LOP_OK) st = lop_squares_of(s->mk, s->dt, s->at[p->theirs[0]].v, &squares);
    if (st == LOP_OK) st = value_of(s, &lop_op_todense, first ? seen : op, squares, by, &all);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_ravel, &matrix, all, wv);
    if (st == LOP_OK) st = basis_of(s, false, p->mine[0], p->mine[1], &v);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_todense, &d, v, &va);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_todense, &d, p->rt, &ra);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_khatri_rao_array, NULL, va, ra, columns);
    const lop_node *gone[] = {folded, op, seen, in, lm, by, squares, all, v, va, ra};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

static lop_status partial_weighted(const lop_kron_sum *s, const lop_node *x, const lop_node *root,
                                   const lop_node **out) {
    const bool first = root->attr.i[0] != 0;
    const lop_attr turn = {.i = {LOP_T, 0, 0, 0}};
    const lop_node *m = root->child[1], *w = NULL, *wv = NULL, *k = NULL, *ko = NULL, *kt = NULL,
                   *by = NULL, *g = NULL, *go = NULL, *v = NULL, *vh = NULL;
    const int at = first ? 0 : s->n - 1;
    if (!s->unitary || lop_is_complex(s->dt) || s->n < 2 || m->shape.ndim != 2 ||
        lop_rows(m) != s->t[0].size[at] || !lop_is_square(m) || !is_place(s, at, m))
        return LOP_NOMATCH;
    partial p = {.s = s, .theirs = {at, at + 1}, .mine = {first ? 1 : 0, first ? s->n : s->n - 1}};
    lop_status st = column_of(s, x, &w);
    if (st == LOP_OK) st = open_partial(&p, first, m);
    if (st == LOP_OK) st = weights_and_columns(&p, first, w, m, &wv, &k);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_dense, NULL, k, &ko);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_view, &turn, ko, &kt);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_diag, NULL, wv, &by);
    if (st == LOP_OK) st = value_of(s, &lop_op_todense, kt, by, ko, &g);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_dense, NULL, g, &go);
    if (st == LOP_OK) st = basis_of(s, false, p.mine[0], p.mine[1], &v);
    if (st == LOP_OK) st = basis_of(s, true, p.mine[0], p.mine[1], &vh);
    if (st == LOP_OK) st = value_of(s, &lop_op_todense, v, go, vh, out);
    const lop_node *gone[] = {p.mt, p.r, p.rt, w, wv, k, ko, kt, by, g, go, v, vh};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

lop_status lop_partial_between(const lop_kron_sum *s, const lop_kron_sum *terms, const lop_node *x,
                               const lop_node *root, const lop_node **out) {
    if (!terms) return partial_weighted(s, x, root, out);
    const bool first = root->attr.i[0] != 0;
    const lop_node *m = root->child[1], *z = NULL, *zo = NULL, *v = NULL, *vh = NULL;
    int64_t size = 1;
    int few = 0; /* places of M */
    while (few < s->n && size < lop_rows(m))
        size *= s->t[0].size[first ? few : s->n - 1 - few], few++;
    if (size != lop_rows(m) || !lop_is_square(m) || few == 0 || few == s->n) return LOP_NOMATCH;
    partial p = {.s = s,
                 .theirs = {first ? 0 : s->n - few, first ? few : s->n},
                 .mine = {first ? few : 0, first ? s->n : s->n - few}};
    lop_status st = open_partial(&p, first, m);
    if (st == LOP_OK) st = sum_terms(terms, partial_term, &p, &z);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_dense, NULL, z, &zo);
    if (st == LOP_OK) st = basis_of(s, false, p.mine[0], p.mine[1], &v);
    if (st == LOP_OK) st = basis_of(s, true, p.mine[0], p.mine[1], &vh);
    if (st == LOP_OK) st = value_of(s, &lop_op_todense, v, zo, vh, out);
    const lop_node *gone[] = {p.mt, p.r, p.rt, z, zo, v, vh};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* -- numbers whose sum is the trace: the diagonal of V^H X V over powers of
 * D's numbers */

static lop_status trace_term(const void *how, const lop_kron_term *t, const lop_node **out) {
    const lop_kron_sum *s = how;
    lop_status st = LOP_OK;
    *out = NULL;
    for (int i = 0; st == LOP_OK && i < s->n; i++) {
        const lop_node *e = NULL, *one = NULL, *both = NULL;
        st = factor_of(s, t, i, i + 1, &e);
        if (st == LOP_OK) st = turned(s, &lop_op_diagonal, i, i + 1, e, &one);
        if (st == LOP_OK && *out) st = lop_make2(s->mk, &lop_op_kronarray, NULL, *out, one, &both);
        if (st == LOP_OK && !*out) both = lop_node_ref(one);
        const lop_node *gone[] = {e, one, *out};
        for (size_t j = 0; j < sizeof gone / sizeof gone[0]; j++) lop_node_unref(gone[j]);
        *out = both;
    }
    return st;
}

/* The sum of c / D^power. */
static lop_status powers_over(const lop_kron_sum *s, const lop_beside *b, const lop_node **out) {
    const lop_node *r[LOP_BESIDE_POWER + 1] = {NULL};
    lop_status st = lop_reciprocals(s->mk, s->dt, s->d, &r[1]);
    *out = NULL;
    for (int i = 2; st == LOP_OK && i <= LOP_BESIDE_POWER; i++)
        st = lop_make2(s->mk, &lop_op_mul, NULL, r[i - 1], r[1], &r[i]);
    for (int t = 0; st == LOP_OK && t < b->n; t++)
        st = add_multiple(s, b->c[t], lop_node_ref(r[b->power[t]]), out);
    for (int i = 1; i <= LOP_BESIDE_POWER; i++) lop_node_unref(r[i]);
    return st;
}

lop_status lop_trace_beside(const lop_kron_sum *s, const lop_kron_sum *x, const lop_beside *b,
                            const lop_node **out) {
    const lop_attr matrix = {.i = {2, 0, 0, 0}};
    const lop_node *mu = NULL, *by = NULL, *over = NULL, *all = NULL;
    lop_status st = x ? sum_terms(x, trace_term, s, &mu) : weights_within(s, b->x, &mu);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_diag, NULL, mu, &by);
    if (st == LOP_OK) st = powers_over(s, b, &over);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_apply, NULL, by, over, &all);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_ravel, &matrix, all, out);
    const lop_node *gone[] = {mu, by, over, all};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* -- what is diagonal in the basis V altogether */

const lop_node *lop_inverted_within(const lop_node *a, int depth) {
    const lop_node *s = inverted(a);
    if (s || depth == 0) return s;
    if (a->op == &lop_op_scaled || a->op == &lop_op_view)
        return lop_inverted_within(a->child[0], depth - 1);
    if (a->op != &lop_op_sum && a->op != &lop_op_prod) return NULL;
    s = lop_inverted_within(a->child[0], depth - 1);
    return s ? s : lop_inverted_within(a->child[1], depth - 1);
}

/* Does V make the terms diagonal, being eigenvectors of all that stands at their places? */
static bool in_basis(const lop_kron_sum *s, const lop_kron_sum *x) {
    for (int t = 0; t < x->nt; t++)
        for (int i = 0; i < x->n; i++) {
            const lop_node *f = x->t[t].f[i].node;
            const lop_kron_place *p = &s->at[i];
            const bool diagonal = p->diagonal && f && f->op == &lop_op_diag;
            if (f && !diagonal && (!p->a || p->b || !lop_kron_same(f, p->a))) return false;
        }
    return true;
}

static lop_status spectrum_of_leaf(const lop_kron_sum *s, const lop_node *a, const lop_node **out) {
    lop_kron_sum x;
    if (!lop_kron_terms_read(&x, s, a) || !in_basis(s, &x)) return LOP_NOMATCH;
    return sum_terms(&x, trace_term, s, out);
}

static lop_status spectrum_of_inverse(const lop_kron_sum *s, const lop_node **out) {
    const lop_attr matrix = {.i = {2, 0, 0, 0}};
    const lop_node *one = NULL;
    lop_status st = lop_reciprocals(s->mk, s->dt, s->d, &one);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_ravel, &matrix, one, out);
    lop_node_unref(one);
    return st;
}

lop_status lop_spectrum_within(const lop_kron_sum *s, const lop_node *a, int depth,
                               const lop_node **out) {
    const lop_node *of = inverted(a), *x[2] = {NULL, NULL};
    if (depth == 0) return LOP_NOMATCH;
    if (of) return lop_kron_same(of, s->sum) ? spectrum_of_inverse(s, out) : LOP_NOMATCH;
    if (a->op == &lop_op_view) return lop_spectrum_within(s, a->child[0], depth - 1, out);
    const bool sum = a->op == &lop_op_sum, scaled = a->op == &lop_op_scaled;
    if (!sum && !scaled && a->op != &lop_op_prod) return spectrum_of_leaf(s, a, out);
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < a->n; i++)
        st = lop_spectrum_within(s, a->child[i], depth - 1, &x[i]);
    if (st == LOP_OK && scaled) st = lop_make1(s->mk, &lop_op_scale, &a->attr, x[0], out);
    if (st == LOP_OK && !scaled)
        st = lop_make2(s->mk, sum ? &lop_op_add : &lop_op_mul, NULL, x[0], x[1], out);
    lop_node_unref(x[0]);
    lop_node_unref(x[1]);
    return st;
}
