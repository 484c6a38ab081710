/* expanded_updates.c: what is a structure and a low rank when it is multiplied out, though it is
 * written as products, inverses and slices of such.
 *
 *   (B + U V^H) (C + W Z^H) = B C + U ((C + W Z^H)^H V)^H + (B W) Z^H
 *   (B + U C V^H)^-1        = B^-1 - (B^-1 U) (I + C V^H B^-1 U)^-1 C (B^-H V)^H
 *   (B + U V^H)[s, s]       = B[s, s] + U[s] V[s]^H
 *
 * and so through sums, multiples, views and powers: P P + D of P = D + U U^H, a centred sparse
 * matrix and noise, (I - U V^H) T (I - V U^H) + D. Solves, determinants and inverses of the sum go
 * by Woodbury's formula over what is multiplied out, where that is cheap to solve with.
 *
 * What is multiplied out is the matrix but for rounding, which may be large where it cancels: so
 * all is checked against the matrix as it is written (its products, by a probe), else by the dense
 * form of that. Of slices alone nothing is rounded, and the update stands for the matrix.
 *
 * Cost: that of Woodbury's formula of rank r, and 2 n r^2 flops a product. */
#include "expr/properties.h"
#include "low_rank_woodbury.h"
#include "rewrite/guards.h"
#include "thin_sum.h"

enum { DEPTH = 12, POWERS = 4, PART = 4 }; /* rows for a column of U */
enum { NODES = 1 << 18, DEEPEST = 256 };   /* that are looked at for their precision */
enum { ROWS = 32 }; /* fewer are sooner factored whole; 2026-11-28, P P + D of rank 1 to 6 */

/* How much of low rank there would be in it, asked of how it is written alone. */
typedef struct sketch {
    bool based;   /* something is left that is not of low rank */
    int64_t rank; /* -1: it is not read */
    bool opened;  /* something was multiplied out; */
    bool rounded; /* and not only cut */
} sketch;

static const sketch UNREAD = {.rank = -1};

/* Both axes of a square matrix cut alike. */
static bool is_principal(const lop_node *a) {
    const lop_node *in = a->n > 0 ? a->child[0] : a;
    if (a->op != &lop_op_sliced || in->op != &lop_op_sliced || a->n != in->n ||
        !lop_is_square(in->child[0]) || a->attr.i[0] + in->attr.i[0] != 1 ||
        a->attr.i[0] * in->attr.i[0] != 0)
        return false;
    if (a->n > 1) return a->child[1] == in->child[1];
    return a->attr.i[1] == in->attr.i[1] && a->attr.i[2] == in->attr.i[2] &&
           a->attr.i[3] == in->attr.i[3];
}

static bool is_power(const lop_node *a) {
    return a->op == &lop_op_power && a->attr.i[0] > 1 && a->attr.i[0] <= POWERS;
}

static sketch of_two(sketch x, sketch y, bool product) {
    if (x.rank < 0 || y.rank < 0) return UNREAD;
    const bool more = x.rank > 0 || y.rank > 0;
    sketch s = {.rank = x.rank + y.rank,
                .opened = x.opened || y.opened,
                .rounded = x.rounded || y.rounded || (product && more)};
    s.based = product ? x.based && y.based : x.based || y.based;
    if (product && !x.based) s.rank = x.rank;
    if (product && x.based && !y.based) s.rank = y.rank;
    s.opened = s.opened || (product && more);
    return s;
}

/* Are all numbers in it as exact as the whole? What is made of thin factors is made in their own
 * precision; the inverse of what has none is made in double precision. */
static bool exact_within(const lop_node *a, lop_dtype real, int depth, int *left) {
    if (a->weak) return a->op != &lop_op_inverse || real == LOP_f64;
    if (--*left < 0 || depth == 0 || (lop_is_blas(a->dtype) && lop_dtype_real(a->dtype) != real))
        return false;
    for (int i = 0; i < a->n; i++)
        if (!exact_within(a->child[i], real, depth - 1, left)) return false;
    return true;
}
static bool as_exact(const lop_node *a, lop_dtype real) {
    int left = NODES;
    return exact_within(a, real, DEEPEST, &left);
}

static sketch sketched(const lop_node *a, lop_dtype real, int depth) {
    const lop_node *x = a->n > 0 ? a->child[0] : NULL;
    sketch s;
    if (depth == 0 || !lop_is_square(a)) return UNREAD;
    if (a->op == &lop_op_sum || (a->op == &lop_op_prod && lop_is_square(x)))
        return of_two(sketched(x, real, depth - 1), sketched(a->child[1], real, depth - 1),
                      a->op == &lop_op_prod);
    if (a->op == &lop_op_scaled || a->op == &lop_op_view) return sketched(x, real, depth - 1);
    if (is_power(a)) {
        s = sketched(x, real, depth - 1);
        if (s.rank > 0) s.opened = s.rounded = true;
        if (s.rank > 0 && s.based) s.rank *= a->attr.i[0];
        return s;
    }
    if (is_principal(a)) {
        s = sketched(x->child[0], real, depth - 1);
        s.opened = s.opened || s.rank > 0;
        return s;
    }
    if (a->op == &lop_op_inverse) {
        s = sketched(x, real, depth - 1);
        if (s.rank > 0) s.opened = s.rounded = true;
        return s.based ? s : UNREAD;
    }
    if (!as_exact(a, real)) return UNREAD;
    if (a->op == &lop_op_lowrankupdate)
        return (sketch){.based = true, .rank = lop_cols(a->child[1])};
    const int64_t own = lop_infer_rank(a);
    if (PART * own <= lop_rows(a)) return (sketch){.rank = own};
    return (sketch){.based = true};
}

/* B + L: the base, NULL for none, and a LowRank, NULL for none; owned. */
typedef struct form {
    const lop_node *base, *low;
} form;

static void drop(form *f) {
    lop_node_unref(f->base);
    lop_node_unref(f->low);
    *f = (form){NULL, NULL};
}

/* Of one kind where it closes. Takes over a. */
static lop_status closed(const lop_maker *mk, const lop_node *a, const lop_node **out) {
    lop_status st = lop_close_once(mk, a, out);
    if (st == LOP_NOMATCH) {
        *out = a;
        return LOP_OK;
    }
    lop_node_unref(a);
    return st;
}

/* op of a, closed; NULL stays. */
static lop_status closed1(const lop_maker *mk, const lop_op *op, const lop_attr *attr,
                          const lop_node *a, const lop_node **out) {
    const lop_node *made = NULL;
    *out = NULL;
    if (!a) return LOP_OK;
    lop_status st = lop_make1(mk, op, attr, a, &made);
    return st == LOP_OK ? closed(mk, made, out) : st;
}

/* a b of a thin b, as an array. */
static lop_status thin(const lop_maker *mk, const lop_node *a, const lop_node *b,
                       const lop_node **out) {
    const lop_node *product = NULL, *array = NULL;
    lop_status st = lop_make2(mk, &lop_op_prod, NULL, a, b, &product);
    if (st == LOP_OK) {
        const lop_attr dt = {.i = {0, 0, 0, (int64_t)product->dtype + 1}};
        st = lop_make1(mk, &lop_op_todense, &dt, product, &array);
    }
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_dense, NULL, array, out);
    lop_node_unref(product);
    lop_node_unref(array);
    return st;
}

static lop_status low_of(const lop_maker *mk, const lop_node *u, const lop_node *v,
                         const lop_node *c, const lop_node **out) {
    const lop_node *child[3] = {u, v, c};
    return lop_make(mk, "lowrank", NULL, c ? 3 : 2, child, NULL, out);
}

/* *sum + a, both NULL or a LowRank, as one. Takes over a. */
static lop_status low_plus(const lop_maker *mk, const lop_node *a, const lop_node **sum) {
    const lop_node *both = NULL, *one = NULL;
    if (!a) return LOP_OK;
    if (!*sum) {
        *sum = a;
        return LOP_OK;
    }
    lop_status st = lop_make2(mk, &lop_op_sum, NULL, *sum, a, &both);
    const lop_match m = {.root = both};
    if (st == LOP_OK) st = lop_build_lowrank_plus(&m, mk, &one);
    lop_node_unref(a);
    lop_node_unref(both);
    if (st != LOP_OK) return st;
    lop_node_unref(*sum);
    *sum = one;
    return LOP_OK;
}

static lop_status read(const lop_maker *mk, const lop_node *a, int depth, form *f);

static lop_status read_sum(const lop_maker *mk, const lop_node *a, int depth, form *f) {
    form y = {NULL, NULL};
    const lop_node *both = NULL;
    lop_status st = read(mk, a->child[0], depth, f);
    if (st == LOP_OK) st = read(mk, a->child[1], depth, &y);
    if (st == LOP_OK && f->base && y.base) {
        st = lop_sum_closed(mk, f->base, y.base, &both);
        lop_node_unref(f->base);
        f->base = both;
    } else if (st == LOP_OK && y.base) {
        f->base = lop_node_ref(y.base);
    }
    if (st == LOP_OK) st = low_plus(mk, lop_node_ref(y.low), &f->low);
    drop(&y);
    return st;
}

/* B C, closed; what is the identity falls out. */
static lop_status base_product(const lop_maker *mk, const lop_node *b, const lop_node *c,
                               const lop_node **out) {
    const lop_node *made = NULL;
    *out = NULL;
    if (!b || !c) return LOP_OK;
    if (b->op == &lop_op_identity || c->op == &lop_op_identity) {
        *out = lop_node_ref(b->op == &lop_op_identity ? c : b);
        return LOP_OK;
    }
    lop_status st = lop_make2(mk, &lop_op_prod, NULL, b, c, &made);
    return st == LOP_OK ? closed(mk, made, out) : st;
}

/* U C (Y^H V)^H of X's U C V^H, and (b W) C Z^H of Y's W C Z^H. */
static lop_status low_times(const lop_maker *mk, const lop_node *low, const lop_node *y,
                            const lop_node **out) {
    const parts p = parts_of(low);
    const lop_node *yh = NULL, *v = NULL;
    lop_status st = lop_view_once(mk, LOP_H, y, &yh);
    if (st == LOP_OK) st = thin(mk, yh, p.v, &v);
    if (st == LOP_OK) st = low_of(mk, p.u, v, p.c, out);
    lop_node_unref(yh);
    lop_node_unref(v);
    return st;
}
static lop_status times_low(const lop_maker *mk, const lop_node *b, const lop_node *low,
                            const lop_node **out) {
    const parts p = parts_of(low);
    const lop_node *u = NULL;
    lop_status st = thin(mk, b, p.u, &u);
    if (st == LOP_OK) st = low_of(mk, u, p.v, p.c, out);
    lop_node_unref(u);
    return st;
}

static lop_status product(const lop_maker *mk, const lop_node *a, const lop_node *b, int depth,
                          form *f) {
    form x = {NULL, NULL}, y = {NULL, NULL};
    const lop_node *one = NULL, *other = NULL;
    lop_status st = read(mk, a, depth, &x);
    if (st == LOP_OK) st = read(mk, b, depth, &y);
    if (st == LOP_OK) st = base_product(mk, x.base, y.base, &f->base);
    if (st == LOP_OK && x.low && (y.base || !x.base)) st = low_times(mk, x.low, b, &one);
    if (st == LOP_OK && y.low && x.base) st = times_low(mk, y.base ? x.base : a, y.low, &other);
    if (st == LOP_OK) st = low_plus(mk, lop_node_ref(one), &f->low);
    if (st == LOP_OK) st = low_plus(mk, lop_node_ref(other), &f->low);
    lop_node_unref(one);
    lop_node_unref(other);
    drop(&x);
    drop(&y);
    return st;
}

static lop_status read_power(const lop_maker *mk, const lop_node *a, int depth, form *f) {
    const lop_node *x = a->child[0], *rest = NULL;
    const lop_attr less = {.i = {a->attr.i[0] - 1, 0, 0, 0}};
    lop_status st = less.i[0] == 1 ? (rest = lop_node_ref(x), LOP_OK)
                                   : lop_make1(mk, &lop_op_power, &less, x, &rest);
    if (st == LOP_OK) st = product(mk, x, rest, depth, f);
    lop_node_unref(rest);
    return st;
}

/* - (I + C V^H W)^-1 C, of arrays. */
static lop_status inner(const lop_maker *mk, const parts *p, const lop_node *w,
                        const lop_node **out) {
    const lop_attr minus = lop_attr_coef(-1, 0);
    const lop_node *vh = NULL, *g = NULL, *cg = NULL, *eye = NULL, *sum = NULL, *in = NULL,
                   *all = NULL;
    lop_status st = lop_view_once(mk, LOP_H, p->v, &vh);
    if (st == LOP_OK) st = thin(mk, vh, w, &g);
    if (st == LOP_OK && p->c) st = thin(mk, p->c, g, &cg);
    if (st == LOP_OK) st = lop_thin_identity(mk, lop_cols(p->u), &eye);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_sum, NULL, eye, cg ? cg : g, &sum);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_inverse, NULL, sum, &in);
    if (st == LOP_OK && p->c) st = lop_make2(mk, &lop_op_prod, NULL, in, p->c, &all);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scaled, &minus, all ? all : in, out);
    const lop_node *gone[] = {vh, g, cg, eye, sum, in, all};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

static lop_status read_inverse(const lop_maker *mk, const lop_node *a, int depth, form *f) {
    form x = {NULL, NULL};
    const lop_node *adjoint = NULL, *w = NULL, *z = NULL, *c = NULL;
    lop_status st = read(mk, a->child[0], depth, &x);
    if (st == LOP_OK && (!x.base || (x.low && !lop_cheap_to_solve(x.base)))) st = LOP_NOMATCH;
    if (st == LOP_OK) st = lop_inverse_closed(mk, x.base, &f->base);
    if (st == LOP_OK && x.low) {
        const parts p = parts_of(x.low);
        const bool own = lop_node_alike(p.u, p.v, LOP_INFER_DEPTH) && lop_infer_hermitian(x.base);
        st = thin(mk, f->base, p.u, &w);
        if (st == LOP_OK && !own) st = lop_view_once(mk, LOP_H, f->base, &adjoint);
        if (st == LOP_OK) st = own ? (z = lop_node_ref(w), LOP_OK) : thin(mk, adjoint, p.v, &z);
        if (st == LOP_OK) st = inner(mk, &p, w, &c);
        if (st == LOP_OK) st = low_of(mk, w, z, c, &f->low);
    }
    const lop_node *gone[] = {adjoint, w, z, c};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    drop(&x);
    return st;
}

/* Rows of a as the slice cuts them, closed. */
static lop_status cut(const lop_maker *mk, const lop_node *slice, int64_t axis, const lop_node *a,
                      const lop_node **out) {
    const lop_node *child[2] = {a, slice->n > 1 ? slice->child[1] : NULL}, *made = NULL;
    lop_attr at = slice->attr;
    at.i[0] = axis;
    lop_status st = lop_make_op(mk, &lop_op_sliced, &at, slice->n, child, NULL, &made);
    return st == LOP_OK ? closed(mk, made, out) : st;
}

static lop_status read_slice(const lop_maker *mk, const lop_node *a, int depth, form *f) {
    form x = {NULL, NULL};
    const lop_node *rows = NULL, *u = NULL, *v = NULL;
    lop_status st = read(mk, a->child[0]->child[0], depth, &x);
    if (st == LOP_OK && x.base) st = cut(mk, a, 0, x.base, &rows);
    if (st == LOP_OK && x.base) st = cut(mk, a, 1, rows, &f->base);
    if (st == LOP_OK && x.low) {
        const parts p = parts_of(x.low);
        st = cut(mk, a, 0, p.u, &u);
        if (st == LOP_OK) st = p.v == p.u ? (v = lop_node_ref(u), LOP_OK) : cut(mk, a, 0, p.v, &v);
        if (st == LOP_OK) st = low_of(mk, u, v, p.c, &f->low);
    }
    lop_node_unref(rows);
    lop_node_unref(u);
    lop_node_unref(v);
    drop(&x);
    return st;
}

static lop_status read_scaled(const lop_maker *mk, const lop_node *a, int depth, form *f) {
    form x = {NULL, NULL};
    const lop_node *times = NULL;
    lop_status st = read(mk, a->child[0], depth, &x);
    if (st == LOP_OK) st = closed1(mk, a->op, &a->attr, x.base, &f->base);
    if (st == LOP_OK && x.low) st = lop_make1(mk, a->op, &a->attr, x.low, &times);
    const lop_match m = {.root = times};
    if (st == LOP_OK && x.low) st = lop_build_scaled_lowrank(&m, mk, &f->low);
    lop_node_unref(times);
    drop(&x);
    return st;
}

static lop_status read_view(const lop_maker *mk, const lop_node *a, int depth, form *f) {
    form x = {NULL, NULL};
    const int64_t mode = a->attr.i[0], conj = mode == LOP_T || mode == LOP_C ? LOP_C : LOP_N;
    const lop_node *u = NULL, *v = NULL, *c = NULL;
    lop_status st = read(mk, a->child[0], depth, &x);
    if (st == LOP_OK && x.base && mode == LOP_H && lop_infer_hermitian(x.base))
        f->base = lop_node_ref(x.base);
    else if (st == LOP_OK)
        st = closed1(mk, a->op, &a->attr, x.base, &f->base);
    if (st == LOP_OK && x.low) {
        const parts p = parts_of(x.low);
        st = lop_view_once(mk, (int)conj, mode & LOP_T ? p.v : p.u, &u);
        if (st == LOP_OK)
            st = p.u == p.v ? (v = lop_node_ref(u), LOP_OK)
                            : lop_view_once(mk, (int)conj, mode & LOP_T ? p.u : p.v, &v);
        if (st == LOP_OK && p.c) st = lop_view_once(mk, (int)mode, p.c, &c);
        if (st == LOP_OK) st = low_of(mk, u, v, c, &f->low);
    }
    const lop_node *gone[] = {u, v, c};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    drop(&x);
    return st;
}

static lop_status read_leaf(const lop_maker *mk, const lop_node *a, form *f) {
    if (a->op == &lop_op_lowrankupdate) {
        const parts p = parts_of(a);
        f->base = lop_node_ref(p.base);
        return low_of(mk, p.u, p.v, p.c, &f->low);
    }
    if (PART * lop_infer_rank(a) > lop_rows(a)) {
        f->base = lop_node_ref(a);
        return LOP_OK;
    }
    f->low = a->op == &lop_op_lowrank ? lop_node_ref(a) : NULL;
    return f->low ? LOP_OK : lop_thin_low(mk, a, &f->low);
}

/* a in parts, owned in *f also after an error. NOMATCH: one of them is not found. */
static lop_status read(const lop_maker *mk, const lop_node *a, int depth, form *f) {
    if (depth-- == 0) return LOP_NOMATCH;
    if (a->op == &lop_op_sum) return read_sum(mk, a, depth, f);
    if (a->op == &lop_op_prod && lop_is_square(a->child[0]))
        return product(mk, a->child[0], a->child[1], depth, f);
    if (is_power(a)) return read_power(mk, a, depth, f);
    if (a->op == &lop_op_inverse) return read_inverse(mk, a, depth, f);
    if (is_principal(a)) return read_slice(mk, a, depth, f);
    if (a->op == &lop_op_view) return read_view(mk, a, depth, f);
    return a->op == &lop_op_scaled ? read_scaled(mk, a, depth, f) : read_leaf(mk, a, f);
}

/* Thin factors as arrays, once for all that uses them. */
static lop_status held(const lop_maker *mk, const lop_node *a, const lop_node **out) {
    const lop_attr dt = {.i = {0, 0, 0, (int64_t)a->dtype + 1}};
    const lop_node *array = NULL;
    if (a->op == &lop_op_dense) {
        *out = lop_node_ref(a);
        return LOP_OK;
    }
    lop_status st = lop_make1(mk, &lop_op_todense, &dt, a, &array);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_dense, NULL, array, out);
    lop_node_unref(array);
    return st;
}

/* a multiplied out, as a LowRankUpdate, and whether that is rounded; `solved`: it is solved with.
 * Owned; NOMATCH. */
static lop_status expanded(const lop_maker *mk, const lop_node *a, lop_dtype dt, bool solved,
                           bool *rounded, const lop_node **out) {
    const lop_node *u = NULL, *v = NULL;
    form f = {NULL, NULL};
    if (a->dtype != dt || !lop_is_blas(dt) || lop_nbatch(a) > 0) return LOP_NOMATCH;
    const sketch s = sketched(a, lop_dtype_real(dt), DEPTH);
    if (!s.opened || !s.based || s.rank <= 0 || PART * s.rank > lop_rows(a) ||
        (s.rounded && lop_rows(a) < ROWS))
        return LOP_NOMATCH;
    lop_status st = read(mk, a, DEPTH, &f);
    if (st == LOP_OK && (!f.base || !f.low || (solved && !lop_cheap_to_solve(f.base))))
        st = LOP_NOMATCH;
    if (st == LOP_OK) {
        const parts p = parts_of(f.low);
        st = held(mk, p.u, &u);
        if (st == LOP_OK) st = p.u == p.v ? (v = lop_node_ref(u), LOP_OK) : held(mk, p.v, &v);
        const lop_node *child[4] = {f.base, u, v, p.c};
        if (st == LOP_OK) st = lop_make(mk, "lowrankupdate", NULL, p.c ? 4 : 3, child, NULL, out);
    }
    if (st == LOP_OK &&
        ((*out)->dtype != dt || (*out)->weak != a->weak || !as_exact(*out, lop_dtype_real(dt)))) {
        lop_node_unref(*out);
        *out = NULL;
        st = LOP_NOMATCH;
    }
    *rounded = s.rounded;
    lop_node_unref(u);
    lop_node_unref(v);
    drop(&f);
    return st;
}

/* What the root asks of its operand, or of the inverse that this is. */
LOP_BUILD(expanded_update) {
    const lop_node *root = m->root, *inner_one = root->child[0], *update = NULL, *inverse = NULL;
    const bool below = inner_one->op == &lop_op_inverse;
    const lop_node *a = below ? inner_one->child[0] : inner_one;
    bool rounded = false;
    lop_status st = expanded(mk, a, root->dtype, true, &rounded, &update);
    if (st == LOP_OK && rounded) {
        st = root->op == &lop_op_solve      ? lop_solve_by_update(m, mk, a, update, out)
             : root->op == &lop_op_scaledet ? lop_det_by_update(m, mk, a, update, out)
             : root->op == &lop_op_todense  ? lop_inverse_by_update(m, mk, a, update, out)
                                            : lop_diagonal_by_update(m, mk, a, update, out);
    } else if (st == LOP_OK) {
        if (below) st = lop_make1(mk, &lop_op_inverse, NULL, update, &inverse);
        const lop_node *child[2] = {below ? inverse : update, root->n > 1 ? root->child[1] : NULL};
        if (st == LOP_OK) st = lop_make_op(mk, root->op, &root->attr, root->n, child, NULL, out);
    }
    lop_node_unref(update);
    lop_node_unref(inverse);
    return st;
}

/* What the first inverse in it is of, however that is seen. Borrowed; NULL: there is none. */
static const lop_node *first_inverted(const lop_node *a, int depth) {
    if (a->op == &lop_op_inverse) return a->child[0];
    const bool two = a->op == &lop_op_prod || a->op == &lop_op_sum;
    if (depth == 0 || (!two && a->op != &lop_op_view && a->op != &lop_op_scaled)) return NULL;
    const lop_node *found = first_inverted(a->child[0], depth - 1);
    return found || !two ? found : first_inverted(a->child[1], depth - 1);
}

/* What the root reads off a product with inverses of one B + U C V^H, which is of structure but for
 * what is thin: off the base, by `of_base`, and off the low rank, where solving by Woodbury's
 * formula is as accurate as by a factor of the whole; else `of_dense`. */
static lop_status
projected(const lop_match *m, const lop_maker *mk,
          lop_status (*of_base)(const lop_match *m, const lop_maker *mk, const lop_node **out),
          lop_status (*of_dense)(const lop_maker *mk, const lop_node *root, const lop_node **out),
          const lop_node **out) {
    enum { MOST = 3 };
    const lop_node *root = m->root, *a = root->child[0], *update = NULL, *own = NULL, *low = NULL,
                   *thin = NULL, *value = NULL, *alt = NULL, *child[MOST] = {NULL};
    const lop_node *inverted = first_inverted(a, DEPTH);
    woodbury s = {.mk = mk};
    bool rounded = false;
    lop_match base = *m;
    if (!inverted || inverted->dtype != root->dtype || root->n > MOST) return LOP_NOMATCH;
    for (int i = 1; i < root->n; i++) child[i] = root->child[i];
    lop_status st = lop_woodbury_of_sum(mk, root->dtype, inverted, &s.a);
    if (st == LOP_OK) st = expanded(mk, a, root->dtype, false, &rounded, &update);
    child[0] = update ? update->child[0] : NULL;
    if (st == LOP_OK) st = lop_make_op(mk, root->op, &root->attr, root->n, child, NULL, &base.root);
    if (st == LOP_OK) st = of_base(&base, mk, &own);
    if (st == LOP_OK)
        st = lop_make(mk, "lowrank", NULL, update->n - 1, update->child + 1, NULL, &thin);
    child[0] = thin;
    if (st == LOP_OK) st = lop_make_op(mk, root->op, &root->attr, root->n, child, NULL, &low);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_add, NULL, own, low, &value);
    if (st == LOP_OK) st = of_dense(mk, root, &alt);
    s.p = s.a ? parts_of(s.a) : s.p;
    s.dt = (lop_attr){.i = {0, 0, 0, (int64_t)root->dtype + 1}};
    if (st == LOP_OK) st = lop_woodbury_open(&s);
    if (st == LOP_OK) st = lop_woodbury_checked(&s, &lop_op_checked_value, value, alt, out);
    lop_woodbury_close(&s);
    const lop_node *gone[] = {update, own, low, thin,
                              value,  alt, s.a, base.root == root ? NULL : base.root};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}
/* The blocks on the diagonal; what the product means for a factor of a Kron. */
LOP_BUILD(entries_expanded) {
    return projected(m, mk, lop_build_value_of_blocks, lop_entries_of_dense, out);
}
LOP_BUILD(partial_expanded) {
    return projected(m, mk, lop_build_partial_krons, lop_partial_of_dense, out);
}

/* Sums along diagonals beside a Toeplitz base. */
static lop_status base_sums(const lop_match *m, const lop_maker *mk, const lop_node **out) {
    const lop_status st = lop_build_sums_between_toeplitz(m, mk, out);
    return st == LOP_NOMATCH ? lop_build_sums_weighted_toeplitz(m, mk, out) : st;
}
LOP_BUILD(sums_expanded) { return projected(m, mk, base_sums, lop_sums_of_dense, out); }

static bool is_diagonal(const lop_node *a) {
    const lop_band b = lop_infer_bands(a);
    return b.l == 0 && b.u == 0;
}
/* Is the diagonal a pass over what is there: of a kind that is not diagonal between such as are? */
static bool has_own_diagonal(const lop_node *a, int depth) {
    if (is_diagonal(a)) return true;
    if (depth-- == 0 || a->op == &lop_op_inverse || a->op == &lop_op_power) return false;
    if (a->op == &lop_op_scaled || a->op == &lop_op_view)
        return has_own_diagonal(a->child[0], depth);
    if (a->op == &lop_op_sum)
        return has_own_diagonal(a->child[0], depth) && has_own_diagonal(a->child[1], depth);
    if (a->op == &lop_op_prod)
        return (is_diagonal(a->child[0]) && has_own_diagonal(a->child[1], depth)) ||
               (is_diagonal(a->child[1]) && has_own_diagonal(a->child[0], depth));
    return a->op == &lop_op_dense;
}
static lop_status base_diagonal(const lop_match *m, const lop_maker *mk, const lop_node **out) {
    (void)mk;
    if (!has_own_diagonal(m->root->child[0], DEPTH)) return LOP_NOMATCH;
    *out = lop_node_ref(m->root);
    return LOP_OK;
}
static lop_status dense_diagonal(const lop_maker *mk, const lop_node *root, const lop_node **out) {
    return lop_diagonal_of_dense(mk, root->dtype, root->child[0], out);
}
/* Does a have two inverses and more? With one a thin product has a way of its own. */
static bool has_inverses(const lop_node *a, int depth, int *found) {
    if (depth == 0 || *found > 1) return *found > 1;
    if (a->op == &lop_op_inverse) return ++*found > 1;
    const bool two = a->op == &lop_op_prod || a->op == &lop_op_sum;
    if (!two && a->op != &lop_op_view && a->op != &lop_op_scaled) return false;
    return has_inverses(a->child[0], depth - 1, found) ||
           (two && has_inverses(a->child[1], depth - 1, found));
}
LOP_BUILD(diagonal_expanded) {
    int found = 0;
    if (m->root->attr.i[0] != 0 || !has_inverses(m->root->child[0], DEPTH, &found))
        return LOP_NOMATCH;
    return projected(m, mk, base_diagonal, dense_diagonal, out);
}
static lop_status dense_trace(const lop_maker *mk, const lop_node *root, const lop_node **out) {
    const lop_node *d = NULL;
    lop_status st = dense_diagonal(mk, root, &d);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_sumall, NULL, d, out);
    lop_node_unref(d);
    return st;
}
LOP_BUILD(trace_expanded) {
    const lop_attr all = {.i = {0, 0, 0, m->root->attr.i[3]}};
    const lop_node *root = NULL, *d = NULL;
    lop_match as = *m;
    lop_status st = lop_make1(mk, &lop_op_diagonal, &all, m->root->child[0], &root);
    as.root = root;
    if (st == LOP_OK) st = lop_build_diagonal_expanded(&as, mk, &d);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_sumall, NULL, d, out);
    lop_node_unref(root);
    lop_node_unref(d);
    if (st == LOP_NOMATCH)
        st = projected(m, mk, lop_build_between_toeplitz_trace, dense_trace, out);
    return st;
}
