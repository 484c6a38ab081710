/* circulant_fractions.c: functions of circulants that hold inverses, by their eigenvalues.
 *
 *   sums, products, inverses of circulants  =  F^-1 (N / (D1 D2 ...)) F
 *
 * N and D polynomials in the eigenvalues of what is written: no inverse is taken of what holds one,
 * and nothing is subtracted of what was divided. So C^-1 - (C + I)^-1 is ((C + I) - C) / (C (C +
 * I)), and products, solves and first columns of any spelling are one pair of transforms. Each is
 * that of circulants within C u log2(n) |C| of those written, the same one wherever C stands. */
#include "builds.h"
#include "expr/properties.h"
#include "ops/shared/convolution.h"

enum { DIVISORS = 3 };
typedef struct spectrum { /* owned */
    const lop_node *top, *by[DIVISORS];
    int n;
} spectrum;

static void drop(spectrum *f) {
    lop_node_unref(f->top);
    for (int i = 0; i < f->n; i++) lop_node_unref(f->by[i]);
    *f = (spectrum){.n = 0};
}

typedef struct reader {
    const lop_maker *mk;
    const lop_node *sizes;
    lop_dtype dt; /* of the matrix */
} reader;

static lop_status ones(const reader *r, const lop_node **out) {
    const lop_node like = {.shape = {.ndim = 1, .dim = {lop_spectrum_length(r->sizes, r->dt)}},
                           .dtype = lop_promote(r->dt, LOP_c64),
                           .core = 1};
    return lop_make(r->mk, "ones", NULL, 0, NULL, &like, out);
}

/* Is a first column a multiple of the identity's? */
static bool of_identity(const lop_node *c) {
    while (c->op == &lop_op_scale || c->op == &lop_op_cast) c = c->child[0];
    return c->op == &lop_op_first_unit;
}
static bool holds_product(const lop_node *c, int depth) {
    if (c->op == &lop_op_circular_convolution || depth == 0) return true;
    for (int i = 0; i < c->n; i++)
        if (holds_product(c->child[i], depth - 1)) return true;
    return false;
}

static lop_status of_pair(const reader *r, const lop_op *op, const lop_node *a, const lop_node *b,
                          const lop_node **out);

/* The eigenvalues of a first column: of sums of several as one transform of their sum. */
static lop_status of_column(const reader *r, const lop_node *c, int depth, const lop_node **out) {
    const lop_node *x = NULL, *y = NULL;
    if (depth == 0) return LOP_NOMATCH;
    if (c->op == &lop_op_first_unit) return ones(r, out);
    const bool add =
                   c->op == &lop_op_add && (of_identity(c->child[0]) || of_identity(c->child[1]) ||
                                            holds_product(c, LOP_CIRCULANT_DEPTH)),
               product = c->op == &lop_op_circular_convolution,
               flip = c->op == &lop_op_circulant_flip && !lop_is_complex(r->dt);
    lop_status st = LOP_OK;
    if (add || product || flip || c->op == &lop_op_scale)
        st = of_column(r, c->child[0], depth - 1, &x);
    if (st == LOP_OK && (add || product)) st = of_column(r, c->child[1], depth - 1, &y);
    if (st == LOP_OK && y) {
        st = of_pair(r, add ? &lop_op_add : &lop_op_mul, x, y, out);
    } else if (st == LOP_OK && flip) {
        st = lop_make1(r->mk, &lop_op_conjugate, NULL, x, out);
    } else if (st == LOP_OK && x) {
        st = lop_make1(r->mk, &lop_op_scale, &c->attr, x, out);
    } else if (st == LOP_OK) {
        const lop_attr d = {.i = {0, 0, 0, (int64_t)r->dt + 1}};
        st = lop_make1(r->mk, &lop_op_cast, &d, c, &x);
        if (st == LOP_OK) st = lop_make2(r->mk, &lop_op_circulant_spectrum, NULL, x, r->sizes, out);
    }
    lop_node_unref(x);
    lop_node_unref(y);
    return st;
}

static bool is_ones(const lop_node *a) { return a->op == &lop_op_ones; }

/* a op b: an identity's product is the other. */
static lop_status of_pair(const reader *r, const lop_op *op, const lop_node *a, const lop_node *b,
                          const lop_node **out) {
    if (op == &lop_op_mul && (is_ones(a) || is_ones(b))) {
        *out = lop_node_ref(is_ones(a) ? b : a);
        return LOP_OK;
    }
    return lop_make2(r->mk, op, NULL, a, b, out);
}

/* *top *= by. */
static lop_status onto(const reader *r, const lop_node *by, const lop_node **top) {
    const lop_node *all = NULL;
    lop_status st = of_pair(r, &lop_op_mul, *top, by, &all);
    if (st != LOP_OK) return st;
    lop_node_unref(*top);
    *top = all;
    return LOP_OK;
}
/* *f /= by: a product's factors one by one, none of which is as near zero. */
static lop_status divided(spectrum *f, const lop_node *by) {
    if (is_ones(by)) return LOP_OK;
    if (by->op == &lop_op_mul && f->n < DIVISORS - 1) {
        const lop_status st = divided(f, by->child[0]);
        return st == LOP_OK ? divided(f, by->child[1]) : st;
    }
    if (f->n == DIVISORS) return LOP_NOMATCH;
    f->by[f->n++] = lop_node_ref(by);
    return LOP_OK;
}

static lop_status add(const reader *r, spectrum *a, const spectrum *b) {
    bool shared[DIVISORS] = {false};
    const int own = a->n;
    const lop_node *other = lop_node_ref(b->top), *sum = NULL;
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < b->n; i++) {
        int at = 0;
        while (at < own && (shared[at] || !lop_node_alike(a->by[at], b->by[i], LOP_INFER_DEPTH)))
            at++;
        if (at < own) {
            shared[at] = true;
            continue;
        }
        st = onto(r, b->by[i], &a->top);
        if (st == LOP_OK) st = divided(a, b->by[i]);
    }
    for (int i = 0; st == LOP_OK && i < own; i++)
        if (!shared[i]) st = onto(r, a->by[i], &other);
    if (st == LOP_OK) st = of_pair(r, &lop_op_add, a->top, other, &sum);
    lop_node_unref(other);
    if (st != LOP_OK) return st;
    lop_node_unref(a->top);
    a->top = sum;
    return LOP_OK;
}

/* 1 / f. */
static lop_status inverted(const reader *r, spectrum *f) {
    spectrum all = {.n = 0};
    lop_status st = ones(r, &all.top);
    for (int i = 0; st == LOP_OK && i < f->n; i++) st = onto(r, f->by[i], &all.top);
    if (st == LOP_OK) st = divided(&all, f->top);
    drop(f);
    *f = all;
    return st;
}

static lop_status conjugated(const reader *r, spectrum *f) {
    lop_status st = LOP_OK;
    for (int i = -1; st == LOP_OK && i < f->n; i++) {
        const lop_node **at = i < 0 ? &f->top : &f->by[i], *c = NULL;
        if (is_ones(*at)) continue;
        st = lop_make1(r->mk, &lop_op_conjugate, NULL, *at, &c);
        if (st != LOP_OK) return st;
        lop_node_unref(*at);
        *at = c;
    }
    return st;
}

static lop_status read(const reader *r, const lop_node *a, int depth, spectrum *f);

/* Few factors of a power. */
static lop_status powered(const reader *r, const lop_node *a, int depth, spectrum *f) {
    spectrum one = {.n = 0};
    const int64_t p = a->attr.i[0];
    if (p < 1 || p > DIVISORS) return LOP_NOMATCH;
    lop_status st = read(r, a->child[0], depth - 1, &one);
    if (st == LOP_OK) st = one.n ? LOP_NOMATCH : (f->top = lop_node_ref(one.top), LOP_OK);
    for (int64_t i = 1; st == LOP_OK && i < p; i++) st = onto(r, one.top, &f->top);
    drop(&one);
    return st;
}

/* a as a fraction, owned, also after an error. Recursion is as deep as `depth`. */
static lop_status read(const reader *r, const lop_node *a, int depth, spectrum *f) {
    lop_status st = LOP_OK;
    if (depth == 0 || a->shape.ndim != 2) return LOP_NOMATCH;
    if (a->op == &lop_op_identity) return ones(r, &f->top);
    if (a->op == &lop_op_circulant) {
        if (!lop_shape_equal(&a->child[1]->shape, &r->sizes->shape)) return LOP_NOMATCH;
        return of_column(r, a->child[0], LOP_CIRCULANT_DEPTH, &f->top);
    }
    if (a->op == &lop_op_power) return powered(r, a, depth, f);
    const bool one = a->op == &lop_op_scaled || a->op == &lop_op_view || a->op == &lop_op_inverse,
               two = a->op == &lop_op_sum || a->op == &lop_op_prod;
    if (!one && !two) return LOP_NOMATCH;
    spectrum b = {.n = 0};
    st = read(r, a->child[0], depth - 1, f);
    if (st == LOP_OK && two) st = read(r, a->child[1], depth - 1, &b);
    if (st == LOP_OK && a->op == &lop_op_inverse) {
        st = inverted(r, f);
    } else if (st == LOP_OK && a->op == &lop_op_scaled) {
        const lop_node *top = NULL;
        st = lop_make1(r->mk, &lop_op_scale, &a->attr, f->top, &top);
        if (st == LOP_OK) {
            lop_node_unref(f->top);
            f->top = top;
        }
    } else if (st == LOP_OK && a->op == &lop_op_view) {
        if (lop_is_complex(r->dt)) st = LOP_NOMATCH;
        if (st == LOP_OK && (a->attr.i[0] & LOP_T)) st = conjugated(r, f);
    } else if (st == LOP_OK && a->op == &lop_op_sum) {
        st = add(r, f, &b);
    } else if (st == LOP_OK) {
        st = onto(r, b.top, &f->top);
        for (int i = 0; st == LOP_OK && i < b.n; i++) st = divided(f, b.by[i]);
    }
    drop(&b);
    return st;
}

/* The sizes of the levels of the first circulant in it; NULL: there is none. */
static const lop_node *levels_of(const lop_node *a, int depth) {
    if (a->op == &lop_op_circulant) return a->child[1];
    const lop_node *found = NULL;
    for (int i = 0; depth > 0 && !found && i < a->n && a->op->cls == LOP_OPERATOR; i++)
        found = levels_of(a->child[i], depth - 1);
    return found;
}

/* a x, or a^-1 x, of one that holds inverses or products, by eigenvalues in double precision, as
 * products of single numbers leave their range; NOMATCH: it is none of those. */
static lop_status by_spectrum(const lop_maker *mk, const lop_node *a, bool solve, const lop_node *x,
                              lop_dtype dt, const lop_node **out) {
    const lop_dtype own = lop_is_complex(a->dtype) ? dt : lop_dtype_real(dt);
    reader r = {mk, levels_of(a, LOP_CIRCULANT_DEPTH), lop_promote(own, LOP_f64)};
    spectrum f = {.n = 0};
    const lop_node *child[3 + DIVISORS] = {r.sizes, NULL};
    if (!r.sizes || a->shape.ndim != 2 || lop_rows(a) == 0 || !lop_is_blas(a->dtype) ||
        !lop_is_blas(dt) || lop_promote(a->dtype, dt) != dt)
        return LOP_NOMATCH;
    const lop_attr cast = {.i = {1, 0, 0, (int64_t)dt + 1}};
    lop_status st = read(&r, a, LOP_CIRCULANT_DEPTH, &f);
    if (st == LOP_OK && solve) st = inverted(&r, &f);
    const lop_dtype wide = lop_promote(r.dt, LOP_c64);
    if (st == LOP_OK && (is_ones(f.top) ? f.n == 0 : f.top->dtype != wide)) st = LOP_NOMATCH;
    for (int i = 0; st == LOP_OK && i < f.n; i++)
        if (f.by[i]->dtype != wide) st = LOP_NOMATCH;
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_cast, &cast, x, &child[1]);
    if (st == LOP_OK) {
        const lop_attr attr = {.i = {(int64_t)own + 1, solve && !is_ones(f.top), 0, 0}};
        child[2] = f.top;
        for (int i = 0; i < f.n; i++) child[3 + i] = f.by[i];
        st = lop_make(mk, "circulant_quotient", &attr, 3 + f.n, child, NULL, out);
    }
    lop_node_unref(child[1]);
    drop(&f);
    return st;
}

/* Circulants in a that are not multiples of the identity, up to two. */
static int count_circulants(const lop_node *a, int depth) {
    int many = a->op == &lop_op_circulant;
    for (int i = 0; depth > 0 && many < 2 && i < a->n && a->op->cls == LOP_OPERATOR; i++)
        many += count_circulants(a->child[i], depth - 1);
    return many;
}

/* Products of those that hold inverses; a sum of others is one Circulant. */
LOP_BUILD(circulants_applied) {
    const lop_node *root = m->root, *a = root->child[0], *one = NULL;
    if (lop_holds_inverse(a, LOP_CIRCULANT_DEPTH))
        return by_spectrum(mk, a, false, root->child[1], root->dtype, out);
    if (a->op != &lop_op_sum || count_circulants(a, LOP_CIRCULANT_DEPTH) < 2) return LOP_NOMATCH;
    lop_status st = lop_one_circulant(mk, a, &one);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, one, root->child[1], out);
    lop_node_unref(one);
    return st;
}

/* Solves with what holds inverses, or products within one Circulant. */
LOP_BUILD(circulants_solved) {
    const lop_node *root = m->root, *a = root->child[0],
                   *own = a->op == &lop_op_inverse ? a->child[0] : a;
    if (own->op == &lop_op_circulant && !holds_product(own->child[0], LOP_CIRCULANT_DEPTH))
        return LOP_NOMATCH;
    return by_spectrum(mk, a, true, root->child[1], root->dtype, out);
}

lop_status lop_spectral_solve(const lop_maker *mk, const lop_node *root, const lop_node *a,
                              const lop_node **out) {
    return by_spectrum(mk, a, true, root->child[1], root->dtype, out);
}

lop_status lop_spectral_column(const lop_maker *mk, const lop_node *a, const lop_node **out) {
    const lop_attr first = {.i = {0, 0, 0, 0}}, matrix = {.i = {2, 0, 0, 0}};
    const lop_node like = {
        .shape = {.ndim = 2, .dim = {lop_rows(a), 1}}, .dtype = a->dtype, .core = 2};
    const lop_node *unit = NULL, *x = NULL;
    if (a->shape.ndim != 2 || lop_rows(a) == 0 || !lop_is_blas(a->dtype)) return LOP_NOMATCH;
    lop_status st = lop_make(mk, "unit", &first, 0, NULL, &like, &unit);
    if (st == LOP_OK) st = by_spectrum(mk, a, false, unit, a->dtype, &x);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_ravel, &matrix, x, out);
    lop_node_unref(unit);
    lop_node_unref(x);
    return st;
}

/* -- casts to double precision: the first column of an expression as a whole is that of its leaves'
 */

static lop_status cast_to(const lop_maker *mk, const lop_node *a, lop_dtype dt,
                          const lop_node **out) {
    const lop_attr d = {.i = {0, 0, 0, (int64_t)dt + 1}};
    return lop_make1(mk, &lop_op_cast, &d, a, out);
}

LOP_BUILD(cast_spectrum) {
    const lop_node *f = m->root->child[0], *c = f->child[0], *wide = NULL;
    const lop_dtype dt = m->root->dtype;
    if (!lop_is_complex(dt)) return LOP_NOMATCH;
    lop_status st = cast_to(mk, c, lop_is_complex(c->dtype) ? dt : lop_dtype_real(dt), &wide);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_circulant_spectrum, NULL, wide, f->child[1], out);
    lop_node_unref(wide);
    return st;
}

LOP_BUILD(cast_quotient) {
    const lop_node *q = m->root->child[0], *x = q->child[1],
                   *child[3 + DIVISORS] = {q->child[0], NULL};
    const lop_dtype dt = m->root->dtype, own = (lop_dtype)(q->attr.i[0] - 1),
                    to = lop_is_complex(own) ? dt : lop_dtype_real(dt);
    while (x->op == &lop_op_cast) x = x->child[0];
    if (x->op != &lop_op_unit || !lop_is_blas(dt) || q->n > 3 + DIVISORS || dt == q->dtype ||
        lop_promote(q->dtype, dt) != dt)
        return LOP_NOMATCH;
    lop_attr attr = q->attr;
    attr.i[0] = (int64_t)to + 1;
    lop_status st = LOP_OK;
    for (int i = 1; st == LOP_OK && i < q->n; i++)
        st = cast_to(mk, q->child[i], i == 1 ? dt : LOP_c128, &child[i]);
    if (st == LOP_OK) st = lop_make(mk, "circulant_quotient", &attr, q->n, child, NULL, out);
    for (int i = 1; i < q->n; i++) lop_node_unref(child[i]);
    return st;
}
