/* slices.c: computed right sides for slices: they move down to the kinds, where the result is
 * the same kind over parameters that are cut; what cannot be reached so is applied and then cut. */
#include "builds.h"
#include "rewrite/guards.h"
#include "slices_of_blocks.h"

#define HOLE(m, c) ((m)->node[(c) - 'a'])
#define ATTR(m, c) ((m)->attr[(c) - 'a'])

enum { ROWS, COLUMNS, BATCH };

/* What is taken: a slice, or by `index`. */
typedef struct taking {
    lop_attr at; /* axis, start, step, count */
    const lop_node *index;
} taking;

static int64_t axis_of(const taking *t) { return t->at.i[0]; }
static int64_t count_of(const taking *t) { return t->index ? t->index->shape.dim[0] : t->at.i[3]; }
static taking by(int64_t axis, int64_t start, int64_t step, int64_t count) {
    return (taking){.at = {.i = {axis, start, step, count}}};
}
static taking along(const taking *t, int64_t axis) {
    taking u = *t;
    u.at.i[0] = axis;
    return u;
}
static taking root_taking(const lop_node *root) {
    return (taking){.at = root->attr, .index = root->n > 1 ? root->child[1] : NULL};
}

/* `op` (sliced or cut) of a. */
static lop_status take(const lop_maker *mk, const lop_op *op, const taking *t, const lop_node *a,
                       const lop_node **out) {
    return t->index ? lop_make2(mk, op, &t->at, a, t->index, out)
                    : lop_make1(mk, op, &t->at, a, out);
}
static lop_status slice(const lop_maker *mk, const taking *t, const lop_node *a,
                        const lop_node **out) {
    return take(mk, &lop_op_sliced, t, a, out);
}
static lop_status cut(const lop_maker *mk, const taking *t, int64_t axis, const lop_node *a,
                      const lop_node **out) {
    taking u = along(t, axis);
    return take(mk, &lop_op_array_slice, &u, a, out);
}

/* Gives away *node: the caller's reference becomes *node through one more make. */
static lop_status wrap(const lop_maker *mk, const lop_op *op, const lop_attr *attr,
                       const lop_node **node) {
    const lop_node *inner = *node;
    *node = NULL;
    lop_status st = lop_make1(mk, op, attr, inner, node);
    lop_node_unref(inner);
    return st;
}

/* `a` with child `i` taken from along `axis`. */
static lop_status in_child(const lop_maker *mk, const taking *t, const lop_node *a, int i,
                           int64_t axis, const lop_node **out) {
    const lop_node *child[3] = {0}, *part;
    taking u = along(t, axis);
    if (a->n > 3) return LOP_NOMATCH;
    lop_status st = slice(mk, &u, a->child[i], &part);
    if (st != LOP_OK) return st;
    for (int j = 0; j < a->n; j++) child[j] = j == i ? part : a->child[j];
    st = lop_make(mk, a->op->name, &a->attr, a->n, child, NULL, out);
    lop_node_unref(part);
    return st;
}

/* A kind without children, of the shape that is left. */
static lop_status childless(const lop_maker *mk, const taking *t, const lop_node *a,
                            const lop_node **out) {
    const lop_node *shaped;
    lop_status st = slice(mk, t, a, &shaped);
    if (st != LOP_OK) return st;
    lop_node like = {
        .shape = shaped->shape, .dtype = shaped->dtype, .weak = shaped->weak, .core = 2};
    st = lop_make(mk, a->op->name, &a->attr, 0, NULL, &like, out);
    lop_node_unref(shaped);
    return st;
}

/* A batch axis: batches broadcast, so that every child is taken from along its own. */
static lop_status of_batch(const lop_maker *mk, const taking *t, const lop_node *a,
                           const lop_node **out) {
    if (a->n == 0) return childless(mk, t, a, out);
    if (a->op == &lop_op_ravel) return LOP_NOMATCH; /* its child's levels look like batches */
    const lop_node **part = lop_calloc(mk->ctx, (size_t)a->n, sizeof *part);
    if (!part) return lop_fail(mk->err, LOP_NOMEM, NULL);
    int b = (int)axis_of(t) - 1; /* from the right */
    bool one = a->shape.dim[lop_nbatch(a) - b] == 1;
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < a->n; i++) {
        const lop_node *c = a->child[i];
        int nb = lop_nbatch(c);
        taking only = by(axis_of(t), 0, 1, !t->index && t->at.i[3] < 0 ? -1 : 1);
        bool spread = nb >= b && c->shape.dim[nb - b] == 1 && !one;
        if (nb < b || c->op == &lop_op_sizes)
            part[i] = lop_node_ref(c);
        else
            st = take(mk, c->op->cls == LOP_OPERATOR ? &lop_op_sliced : &lop_op_array_slice,
                      spread ? &only : t, c, &part[i]);
    }
    if (st == LOP_OK) st = lop_make(mk, a->op->name, &a->attr, a->n, part, NULL, out);
    for (int i = 0; i < a->n; i++) lop_node_unref(part[i]);
    lop_free(mk->ctx, (void *)part);
    return st;
}

/* Rows start, start + step, ... of T with columns from `first` on in equal steps. */
static lop_status of_toeplitz(const lop_maker *mk, const lop_node *a, const taking *r,
                              const taking *c, const lop_node **out) {
    int64_t m = count_of(r), n = count_of(c), d = r->at.i[1] - c->at.i[1], s = r->at.i[2];
    lop_attr down = {.i = {m && n ? d : 0, s, m}}, right = {.i = {m && n ? d : 0, -s, n}};
    const lop_node *v[2] = {NULL, NULL};
    if (r->index || c->index || c->at.i[2] != s) return LOP_NOMATCH;
    if (!m || !n) return LOP_NOMATCH; /* nothing is left: no diagonal to read */
    const lop_node *col = a->child[0], *line = a->child[1];
    if (col->op == &lop_op_diagrun && line->op == &lop_op_diagrun &&
        col->child[0] == line->child[0] && col->child[1] == line->child[1] &&
        col->attr.i[0] == line->attr.i[0] && col->attr.i[1] == -line->attr.i[1]) {
        int64_t first = col->attr.i[0], by_one = col->attr.i[1]; /* a slice of a slice */
        down.i[0] = right.i[0] = first + by_one * d;
        down.i[1] = by_one * s;
        right.i[1] = -by_one * s;
        line = col->child[1];
        col = col->child[0];
    }
    lop_status st = lop_make2(mk, &lop_op_diagrun, &down, col, line, &v[0]);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_diagrun, &right, col, line, &v[1]);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_toeplitz, NULL, v[0], v[1], out);
    lop_node_unref(v[0]);
    lop_node_unref(v[1]);
    return st;
}
static lop_status of_toeplitz_alone(const lop_maker *mk, const taking *t, const lop_node *a,
                                    const lop_node **out) {
    bool rows = axis_of(t) == ROWS;
    taking all = by(0, 0, 1, rows ? lop_cols(a) : lop_rows(a));
    return of_toeplitz(mk, a, rows ? t : &all, rows ? &all : t, out);
}

/* kron of `first` and the factors of k from the second on, the last child given. Takes over both.
 */
static lop_status kron_of(const lop_maker *mk, const lop_node *first, const lop_node *rest,
                          const lop_node **out) {
    const lop_node *f[2] = {first, rest};
    lop_status st = lop_make(mk, "kron", NULL, rest ? 2 : 1, f, NULL, out);
    lop_node_unref(first);
    lop_node_unref(rest);
    return st;
}

/* Whole blocks are blocks of the first factor; rows inside one block are rows of the others. */
static lop_status of_kron(const lop_maker *mk, const taking *t, const lop_node *a,
                          const lop_node **out) {
    const lop_node *f = a->child[0], *rest = NULL, *one = NULL, *other = NULL;
    bool rows = axis_of(t) == ROWS;
    int64_t outer = rows ? lop_rows(f) : lop_cols(f), all = rows ? lop_rows(a) : lop_cols(a);
    int64_t start = t->at.i[1], step = t->at.i[2], count = t->at.i[3];
    if (t->index || outer == 0 || all == 0 || count == 0) return LOP_NOMATCH;
    int64_t each = all / outer, last = start + step * (count - 1);
    bool blocks = step == 1 && start % each == 0 && count % each == 0;
    if (!blocks && start / each != last / each) return LOP_NOMATCH;
    taking outside = by(axis_of(t), start / each, 1, blocks ? count / each : 1),
           inside = by(axis_of(t), start % each, step, count);
    lop_status st = LOP_OK;
    if (a->n == 2) rest = lop_node_ref(a->child[1]);
    if (a->n > 2) st = lop_make(mk, "kron", NULL, a->n - 1, a->child + 1, NULL, &rest);
    if (st == LOP_OK) st = slice(mk, &outside, f, &one);
    if (st == LOP_OK && !blocks && rest) st = slice(mk, &inside, rest, &other);
    if (st == LOP_OK && other) {
        lop_node_unref(rest);
        rest = other;
    }
    if (st == LOP_OK) return kron_of(mk, one, rest, out);
    lop_node_unref(rest);
    lop_node_unref(one);
    return st;
}

/* Rows of the identity are a selection. */
static lop_status of_identity(const lop_maker *mk, const taking *t, const lop_node *a,
                              const lop_node **out) {
    if (!t->index || lop_nbatch(a) || axis_of(t) != ROWS) return LOP_NOMATCH;
    lop_attr n = {.i = {lop_rows(a), a->weak, (int64_t)a->dtype}};
    return lop_make1(mk, &lop_op_selection, &n, t->index, out);
}

/* The kind over parameters that are cut: `op` again of cut(child 0). */
static lop_status of_array(const lop_maker *mk, const taking *t, const lop_node *a, int64_t axis,
                           const lop_attr *attr, const lop_node **out) {
    lop_status st = cut(mk, t, axis, a->child[0], out);
    return st == LOP_OK ? wrap(mk, a->op, attr, out) : st;
}

/* -- rows and columns together: the outer taking of an inner one */

static bool same_taking(const taking *r, const taking *c) {
    if (r->index || c->index) return r->index == c->index;
    return r->at.i[1] == c->at.i[1] && r->at.i[2] == c->at.i[2] && r->at.i[3] == c->at.i[3];
}

static lop_status of_both(const lop_maker *mk, const taking *outer, const lop_node *inner,
                          const lop_node **out) {
    const lop_node *a = inner->child[0];
    taking in = root_taking(inner);
    int64_t x = axis_of(outer), y = axis_of(&in);
    if (x == y && !outer->index && !in.index && x < BATCH) { /* a slice of a slice */
        taking one = by(x, in.at.i[1] + outer->at.i[1] * in.at.i[2], in.at.i[2] * outer->at.i[2],
                        outer->at.i[3]);
        if (one.at.i[3] == 0) one.at.i[1] = 0;
        return slice(mk, &one, a, out);
    }
    if (x + y != ROWS + COLUMNS || x == y) return LOP_NOMATCH;
    const taking *r = x == ROWS ? outer : &in, *c = x == ROWS ? &in : outer;
    if (a->op == &lop_op_toeplitz) return of_toeplitz(mk, a, r, c, out);
    if (!same_taking(r, c)) return LOP_NOMATCH;
    if (a->op == &lop_op_diag && !r->index) return of_array(mk, r, a, ROWS, NULL, out);
    if (a->op != &lop_op_identity || r->index) return LOP_NOMATCH;
    lop_node like = {.shape = a->shape, .dtype = a->dtype, .weak = a->weak, .core = 2};
    like.shape.dim[like.shape.ndim - 1] = like.shape.dim[like.shape.ndim - 2] = count_of(r);
    return lop_make(mk, "identity", NULL, 0, NULL, &like, out);
}

/* -- one step down */

/* Again a kind, at once: what may be done at construction. */
static lop_status of_kind(const lop_maker *mk, const taking *t, const lop_node *a,
                          const lop_node **out) {
    int64_t axis = axis_of(t);
    const bool leaf = lop_has(a, LOP_FLAG_sliced_at_once);
    if (axis >= BATCH) return leaf ? of_batch(mk, t, a, out) : LOP_NOMATCH;
    if (a->op == &lop_op_dense &&
        (lop_is_declared_kind(a) || (lop_is_declared_half(a) && a->child[0]->op != &lop_op_named)))
        return LOP_NOMATCH; /* its array is not the matrix: plans know which part is */
    if (a->op == &lop_op_dense) return of_array(mk, t, a, axis, NULL, out);
    if (a->op == &lop_op_zeros) return childless(mk, t, a, out);
    if (a->op == &lop_op_toeplitz) return of_toeplitz_alone(mk, t, a, out);
    if (a->op == &lop_op_lowrank) return in_child(mk, t, a, axis == ROWS ? 0 : 1, ROWS, out);
    if (a->op == &lop_op_kron) return of_kron(mk, t, a, out);
    if (a->op == &lop_op_kernel) {
        const taking u = along(t, ROWS);
        return lop_kernel_cut(mk, a, &u.at, t->index, axis == COLUMNS, out);
    }
    if (a->op == &lop_op_identity) return of_identity(mk, t, a, out);
    if (a->op == &lop_op_selection && axis == ROWS) return of_array(mk, t, a, ROWS, &a->attr, out);
    if (a->op == &lop_op_sliced) return of_both(mk, t, a, out);
    return LOP_NOMATCH;
}

static lop_status of_power(const lop_maker *mk, const taking *t, const lop_node *a,
                           const lop_node **out) {
    const lop_node *part = NULL, *less = NULL, *base = a->child[0];
    lop_attr p = a->attr;
    if (--p.i[0] < 1) return p.i[0] == 0 ? slice(mk, t, base, out) : LOP_NOMATCH;
    lop_status st = slice(mk, t, base, &part);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_power, &p, base, &less);
    bool rows = axis_of(t) == ROWS;
    if (st == LOP_OK)
        st = lop_make2(mk, &lop_op_prod, NULL, rows ? part : less, rows ? less : part, out);
    lop_node_unref(part);
    lop_node_unref(less);
    return st;
}

static lop_status down(const lop_maker *mk, const taking *t, const lop_node *a, int depth,
                       const lop_node **out);

/* The slice as far down as it goes. */
static lop_status settled(const lop_maker *mk, const taking *t, const lop_node *a, int depth,
                          const lop_node **out) {
    lop_status st = depth > 0 ? down(mk, t, a, depth - 1, out) : LOP_NOMATCH;
    return st == LOP_NOMATCH ? slice(mk, t, a, out) : st;
}

/* (B + U C V^H)[r] = B[r] + U[r] C V^H, and likewise of columns. */
static lop_status of_update(const lop_maker *mk, const taking *t, const lop_node *a, int depth,
                            const lop_node **out) {
    const int at = axis_of(t) == ROWS ? 1 : 2;
    const lop_node *child[4] = {0}, *base = NULL, *thin = NULL;
    const taking rows = along(t, ROWS);
    lop_status st = settled(mk, t, a->child[0], depth, &base);
    if (st == LOP_OK) st = settled(mk, &rows, a->child[at], depth, &thin);
    for (int i = 0; i < a->n; i++) child[i] = i == 0 ? base : i == at ? thin : a->child[i];
    if (st == LOP_OK) st = lop_make(mk, a->op->name, NULL, a->n, child, NULL, out);
    lop_node_unref(base);
    lop_node_unref(thin);
    return st;
}

/* To the end of a product at once: what is cut halfway would be planned as one factor. */
static lop_status of_prod(const lop_maker *mk, const taking *t, const lop_node *a, int depth,
                          const lop_node **out) {
    const int at = axis_of(t) == ROWS ? 0 : 1;
    const lop_node *p[2] = {a->child[0], a->child[1]}, *part;
    lop_status st = settled(mk, t, a->child[at], depth, &part);
    if (st != LOP_OK) return st;
    p[at] = part;
    st = lop_make2(mk, &lop_op_prod, NULL, p[0], p[1], out);
    lop_node_unref(part);
    return st;
}

static lop_status of_sum(const lop_maker *mk, const taking *t, const lop_node *a, int depth,
                         const lop_node **out) {
    const lop_node *p[2] = {NULL, NULL};
    lop_status st = settled(mk, t, a->child[0], depth, &p[0]);
    if (st == LOP_OK) st = settled(mk, t, a->child[1], depth, &p[1]);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_sum, NULL, p[0], p[1], out);
    lop_node_unref(p[0]);
    lop_node_unref(p[1]);
    return st;
}

/* The slice of `a` with the slice further down; NOMATCH where it is stuck. Views and slices are
 * looked through, a few levels deep. */
static lop_status down(const lop_maker *mk, const taking *t, const lop_node *a, int depth,
                       const lop_node **out) {
    int64_t axis = axis_of(t);
    bool batches = a->op == &lop_op_sliced && a->attr.i[0] >= BATCH; /* the inner one first */
    if (axis >= BATCH && !batches) return of_batch(mk, t, a, out);
    if (a->op == &lop_op_sum) return of_sum(mk, t, a, depth, out);
    if (a->op == &lop_op_lowrankupdate) return of_update(mk, t, a, depth, out);
    if (a->op == &lop_op_scaled || a->op == &lop_op_part) return in_child(mk, t, a, 0, axis, out);
    if (a->op == &lop_op_prod) return of_prod(mk, t, a, depth, out);
    if (a->op == &lop_op_power) return of_power(mk, t, a, out);
    if (a->op == &lop_op_view && depth > 0) {
        taking u = along(t, a->attr.i[0] & LOP_T ? 1 - axis : axis);
        lop_status st = down(mk, &u, a->child[0], depth - 1, out);
        return st == LOP_OK ? wrap(mk, &lop_op_view, &a->attr, out) : st;
    }
    lop_status st = batches ? LOP_NOMATCH : of_kind(mk, t, a, out);
    if (st != LOP_NOMATCH || a->op != &lop_op_sliced || depth == 0) return st;
    taking in = root_taking(a);
    const lop_node *moved;
    st = down(mk, &in, a->child[0], depth - 1, &moved);
    if (st != LOP_OK) return st;
    st = slice(mk, t, moved, out);
    lop_node_unref(moved);
    return st;
}

enum { DEPTH = 8 };

LOP_BUILD(slice_close) {
    taking t = root_taking(m->root);
    return of_kind(mk, &t, m->root->child[0], out);
}
/* Rows and columns side by side, in one block of what is block diagonal. */
static lop_status in_one_block(const lop_maker *mk, const lop_node *root, const lop_node **out) {
    const lop_node *inner = root->child[0];
    if (inner->op != &lop_op_sliced) return LOP_NOMATCH;
    const taking x = root_taking(root), y = root_taking(inner);
    if (axis_of(&x) + axis_of(&y) != ROWS + COLUMNS || axis_of(&x) == axis_of(&y) || x.index ||
        y.index || x.at.i[2] != 1 || y.at.i[2] != 1)
        return LOP_NOMATCH;
    const taking *r = axis_of(&x) == ROWS ? &x : &y, *c = axis_of(&x) == ROWS ? &y : &x;
    return lop_slice_of_blocks(mk, inner->child[0], (lop_span){r->at.i[1], r->at.i[3]},
                               (lop_span){c->at.i[1], c->at.i[3]}, root, out);
}

LOP_BUILD(slice_in) {
    taking t = root_taking(m->root);
    lop_status st = in_one_block(mk, m->root, out);
    return st != LOP_NOMATCH ? st : down(mk, &t, m->root->child[0], DEPTH, out);
}

/* A view of a slice: both go down. */
LOP_BUILD(view_slice) {
    const lop_node *s = m->root->child[0];
    taking t = root_taking(s);
    lop_status st = down(mk, &t, s->child[0], DEPTH, out);
    return st == LOP_OK ? wrap(mk, &lop_op_view, &m->root->attr, out) : st;
}

/* Where it is stuck it comes out of the view, but for solves, whose factor serves both. */
LOP_BUILD(view_slice_out) {
    const lop_node *s = m->root->child[0], *seen;
    const taking t = root_taking(s);
    lop_status st = lop_make1(mk, &lop_op_view, &m->root->attr, s->child[0], &seen);
    if (st != LOP_OK) return st;
    bool turn = (m->root->attr.i[0] & LOP_T) != 0;
    taking u = along(&t, turn && axis_of(&t) < BATCH ? 1 - axis_of(&t) : axis_of(&t));
    st = slice(mk, &u, seen, out);
    lop_node_unref(seen);
    return st;
}

/* -- actions on a slice that is stuck */

/* x in the rows of a matrix of `size` rows. Rows that meet are added in the dtype of the product.
 */
static lop_status put_back(const lop_maker *mk, const taking *t, int64_t size, lop_dtype dt,
                           const lop_node *x, const lop_node **out) {
    taking u = along(t, size);
    lop_attr d = {.i = {1, 0, 0, (int64_t)dt + 1}};
    if (!t->index) return take(mk, &lop_op_scatter_slice, &u, x, out);
    const lop_node *wide;
    lop_status st = lop_make1(mk, &lop_op_cast, &d, x, &wide);
    if (st == LOP_OK) st = take(mk, &lop_op_scatter_slice, &u, wide, out);
    lop_node_unref(wide);
    return st;
}

LOP_BUILD(apply_slice) {
    const lop_node *a = HOLE(m, 'a'), *x = HOLE(m, 'x'), *inner = NULL;
    taking t = root_taking(m->root->child[0]);
    if (axis_of(&t) >= BATCH) return LOP_NOMATCH;
    bool rows = axis_of(&t) == ROWS;
    lop_status st = rows ? lop_make2(mk, &lop_op_apply, NULL, a, x, &inner)
                         : put_back(mk, &t, lop_cols(a), m->root->dtype, x, &inner);
    if (st == LOP_OK)
        st = rows ? cut(mk, &t, ROWS, inner, out)
                  : lop_make2(mk, &lop_op_apply, NULL, a, inner, out);
    lop_node_unref(inner);
    return st;
}

/* Is the whole dense form of a no dearer than products with `count` unit vectors? */
static bool whole_is_cheap(const lop_node *a, const taking *t) {
    int64_t count = count_of(t);
    if (count >= (axis_of(t) == ROWS ? lop_rows(a) : lop_cols(a))) return true;
    const lop_node *k = a->op == &lop_op_view ? a->child[0] : a;
    if (k->op == &lop_op_sliced &&
        k->attr.i[0] < BATCH) { /* the shorter side first, of equal ones the inner */
        taking in = root_taking(k);
        return count_of(&in) <= count;
    }
    if (!k->op->dense) return false;
    double size = (double)lop_rows(k) * (double)lop_cols(k);
    return size <= 65536 || !k->op->flops || size <= k->op->flops(k, count);
}

LOP_BUILD(dense_slice) {
    const lop_node *a = HOLE(m, 'a'), *seen = NULL, *unit = NULL, *e = NULL, *y = NULL;
    taking t = root_taking(m->root->child[0]);
    int64_t axis = axis_of(&t), count = count_of(&t);
    if (axis >= BATCH) return LOP_NOMATCH;
    bool rows = axis == ROWS;
    if (whole_is_cheap(a, &t)) {
        lop_status st = lop_make1(mk, &lop_op_todense, &m->root->attr, a, &y);
        if (st == LOP_OK) st = cut(mk, &t, axis, y, out);
        lop_node_unref(y);
        return st;
    }
    lop_attr turn = {.i = {LOP_T}};
    lop_node like = {
        .shape = {.ndim = 2, .dim = {count, count}}, .dtype = m->root->dtype, .core = 2};
    lop_status st = LOP_OK;
    if (rows)
        st = lop_make1(mk, &lop_op_view, &turn, a, &seen);
    else
        seen = lop_node_ref(a);
    if (st == LOP_OK) st = lop_make(mk, "eye", NULL, 0, NULL, &like, &unit);
    if (st == LOP_OK)
        st = put_back(mk, &t, rows ? lop_rows(a) : lop_cols(a), m->root->dtype, unit, &e);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, seen, e, rows ? &y : out);
    if (st == LOP_OK && rows) st = lop_make1(mk, &lop_op_swap, &turn, y, out);
    lop_node_unref(seen);
    lop_node_unref(unit);
    lop_node_unref(e);
    lop_node_unref(y);
    return st;
}

LOP_BUILD(element_slice) {
    lop_attr k = ATTR(m, 'k'), s = ATTR(m, 's');
    if (s.i[0] >= BATCH) return LOP_NOMATCH;
    int64_t *at = &k.i[s.i[0]];
    *at = s.i[1] + s.i[2] * *at;
    return lop_make1(mk, &lop_op_element, &k, HOLE(m, 'a'), out);
}

/* The diagonal of rows and columns in equal steps lies on one diagonal of the whole. */
/* A matrix whose inverse has a diagonal by its dense factor alone: arrays, and sums of few of them
 * and of diagonals. */
static bool is_factored_dense(const lop_node *a, int depth) {
    if (a->op == &lop_op_scaled) a = a->child[0];
    if (a->op == &lop_op_dense || a->op == &lop_op_kernel) return true;
    if (a->op != &lop_op_sum || depth == 0) return false;
    bool dense = false;
    for (int i = 0; i < 2; i++) {
        const lop_node *t = a->child[i];
        if (t->op == &lop_op_scaled) t = t->child[0];
        if (t->op == &lop_op_identity || t->op == &lop_op_diag) continue;
        if (!is_factored_dense(t, depth - 1)) return false;
        dense = true;
    }
    return dense;
}

/* Few rows and columns of such an inverse: so many right sides, not the whole inverse. */
static bool is_small_part(const lop_node *a, const taking *r, const taking *c) {
    enum { PART = 8, LEVELS = 4 }; /* 2 n^2 k flops beside 2/3 n^3 */
    const int64_t k = count_of(r) > count_of(c) ? count_of(r) : count_of(c);
    return a->op == &lop_op_inverse && lop_nbatch(a) == 0 && lop_is_blas(a->dtype) &&
           PART * k <= lop_rows(a) && is_factored_dense(a->child[0], LEVELS) &&
           !lop_cheap_to_solve(a->child[0]);
}

LOP_BUILD(diagonal_slice) {
    const lop_node *outer = m->root->child[0], *a = HOLE(m, 'a'), *d = NULL;
    taking x = root_taking(outer), y = root_taking(outer->child[0]);
    if (axis_of(&x) + axis_of(&y) != 1 || axis_of(&x) < 0 || axis_of(&y) < 0) return LOP_NOMATCH;
    const taking *r = axis_of(&x) == ROWS ? &x : &y, *c = axis_of(&x) == ROWS ? &y : &x;
    int64_t s = r->at.i[2], k = ATTR(m, 'k').i[0],
            length = lop_diag_length(count_of(r), count_of(c), k);
    if (s != c->at.i[2] || s < 1 || length == 0) return LOP_NOMATCH;
    if (is_small_part(a, r, c)) {
        const lop_attr dt = {.i = {0, 0, 0, ATTR(m, 'k').i[3]}}, at = {.i = {k, 0, 0, 0}};
        const lop_node *dense = NULL;
        lop_status st = lop_make1(mk, &lop_op_todense, &dt, outer, &dense);
        if (st == LOP_OK) st = lop_make1(mk, &lop_op_array_diagonal, &at, dense, out);
        lop_node_unref(dense);
        return st;
    }
    int64_t i = r->at.i[1] + s * (k < 0 ? -k : 0), j = c->at.i[1] + s * (k > 0 ? k : 0);
    lop_attr whole = ATTR(m, 'k');
    whole.i[0] = j - i;
    taking t = by(ROWS, i < j ? i : j, s, length);
    lop_status st = lop_make1(mk, &lop_op_diagonal, &whole, a, &d);
    if (st == LOP_OK) st = cut(mk, &t, ROWS, d, out);
    lop_node_unref(d);
    return st;
}
