/* op_kron_partial.c: what a cotangent means for one factor of a Kron.
 *
 *   kron_partial        of an operator G of the shape of A (x) X (attr.i[0]: of X (x) A) and an
 * array X: the sum over the place of X of G times conj(X), of the shape of A; attr.i[3]: dtype
 *   array_kron_partial  of an array G
 *
 * Of a product of a column and a row it is a product of both, reshaped, with conj(X) between; of a
 * Kron, or the inverse of one, that of its other factors times a number, so of the identity and,
 * term by term, of a KronSum; of a diagonal it is one; of a product with a Kron it is that of the
 * other factor with X times the Kron's, times the rest of the Kron. Van
 * Loan and Pitsianis, Approximation with Kronecker products (1993). */
#include "projections.h"
#include "expr/coefficients.h"
#include "kernels/common/kernels.h"

static lop_status size_of_partial(lop_node *n, lop_err *err) {
    const lop_node *g = n->child[0], *x = n->child[1];
    if (x->op->cls == LOP_OPERATOR || x->core != 2 || lop_rows(x) < 1 || lop_cols(x) < 1 ||
        lop_rows(g) % lop_rows(x) || lop_cols(g) % lop_cols(x))
        return lop_fail(err, LOP_DIM, "%s takes a matrix and a factor", n->op->name);
    const lop_status st = lop_shape_batch(&g->shape, 2, &x->shape, 2, &n->shape, err);
    if (st != LOP_OK) return st;
    n->core = 2;
    n->shape.dim[n->shape.ndim++] = lop_rows(g) / lop_rows(x);
    n->shape.dim[n->shape.ndim++] = lop_cols(g) / lop_cols(x);
    return LOP_OK;
}
static lop_status infer_partial(lop_node *n, lop_err *err) {
    lop_status st = lop_projection_dtype(n, err);
    if (st != LOP_OK) return st;
    if (lop_promote(n->dtype, n->child[1]->dtype) != n->dtype)
        return lop_fail(err, LOP_DTYPE, "%s with a factor of a wider dtype", n->op->name);
    return size_of_partial(n, err);
}
const lop_op lop_op_kron_partial = {
    LOP_NAMED(kron_partial), .cls = LOP_ACTION, .min = 2, .max = 2, .ints = 4,
    .infer = infer_partial};

static lop_status infer_array(lop_node *n, lop_err *err) {
    const lop_node *g = n->child[0];
    if (g->op->cls == LOP_OPERATOR || g->core != 2)
        return lop_fail(err, LOP_DIM, "%s takes arrays", n->op->name);
    lop_node_promote(n, g, n->child[1]);
    return size_of_partial(n, err);
}

static lop_mat part_of(const lop_mat *a, int64_t i, int64_t j, int64_t m, int64_t n, int64_t rs,
                       int64_t cs) {
    const int64_t at = i * a->rs + j * a->cs;
    return (lop_mat){(char *)a->p + at * (int64_t)lop_dtype_size(a->dt), m, n, rs, cs, a->dt};
}

/* Term by term of X: out += conj(X[p, q]) G[p of each, q of each]. */
static lop_status run_partial(const lop_call *c) {
    const lop_mat *out = c->a[0], *g = c->a[1], *x = c->a[2];
    const bool first = c->step->attr.i[0] != 0;
    const int64_t m = out->m, n = out->n, rs = first ? g->rs : g->rs * x->m,
                  cs = first ? g->cs : g->cs * x->n;
    const lop_mat term = {c->scratch, m, n, n, 1, out->dt};
    lopk_zero(out);
    for (int64_t p = 0; p < x->m; p++)
        for (int64_t q = 0; q < x->n; q++) {
            const lop_mat block = part_of(g, first ? p * m : p, first ? q * n : q, m, n, rs, cs);
            const double _Complex by = conj(lop_get(x->dt, x->p, p * x->rs + q * x->cs));
            lopk_scale(&term, by, 0, &block);
            lopk_add(out, out, &term);
        }
    return LOP_OK;
}
static lop_status lower_partial(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    int in[2];
    int64_t all;
    for (int i = 0; i < 2; i++) {
        in[i] = lop_emit_cast(e, lop_emit_value(e, self->child[i]), self->dtype, &st);
        if (in[i] < 0) return st;
    }
    if (!lop_mul_ok(lop_rows(self), lop_cols(self), &all) || !lop_mul_ok(all, 16, &all))
        return lop_fail(lop_emit_err(e), LOP_OVERFLOW, NULL);
    lop_step *s = lop_emit_step(e, "kron-partial", run_partial, out, 2, in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->scratch = (size_t)all;
    s->flops = 2 * lop_slot_elements(e, in[0]);
    return LOP_OK;
}
const lop_op lop_op_array_kron_partial = {
    LOP_NAMED(array_kron_partial), .cls = LOP_ARRAY,      .min = 2, .max = 2, .ints = 1,
    .infer = infer_array,          .lower = lower_partial};

/* -- by the form of the cotangent */

/* A column of the rows of A (x) X as a matrix, one row for each of A's (or of X's, which comes
 * first). */
static const lop_node *folded(lop_vjp *v, const lop_node *column, int64_t rows) {
    const lop_node *u = lop_vjp_dense(v, column);
    if (!u) return NULL;
    const lop_attr attr = {.i = {1, rows, lop_rows(u) / rows, 1}};
    return lop_vjp_make(v, &lop_op_dense, NULL,
                        lop_vjp_make(v, &lop_op_kron_unfold, &attr, u, NULL), NULL);
}

/* Of column @ row^T: U conj(X) W^T, or where X comes first U^T conj(X) W. */
static const lop_node *pair(lop_vjp *v, const lop_node *column, const lop_node *row,
                            const lop_node *x, bool after) {
    if (v->st != LOP_OK) return NULL;
    const int64_t m = lop_rows(column), n = lop_rows(row);
    const lop_node *u = folded(v, column, after ? m / lop_rows(x) : lop_rows(x)),
                   *w = folded(v, row, after ? n / lop_cols(x) : lop_cols(x)),
                   *mid = lop_vjp_view(v, x, LOP_C);
    if (after) return lop_vjp_prod(v, lop_vjp_prod(v, u, mid), lop_vjp_view(v, w, LOP_T));
    return lop_vjp_prod(v, lop_vjp_prod(v, lop_vjp_view(v, u, LOP_T), mid), w);
}

/* -- of a Kron, its inverse or a view of these: the part that is no place of X, times the number
 * sum(conj(X) H), H the part that is */

typedef struct factors {
    const lop_node *kron;
    lop_mode mode;
    bool inverted;
} factors;

/* Views and inverses of a Kron are those of its factors, where these are square. */
static bool read_kron(const lop_node *g, factors *f) {
    *f = (factors){.mode = LOP_N};
    for (; g->op == &lop_op_view || g->op == &lop_op_inverse; g = g->child[0]) {
        if (g->op == &lop_op_view) f->mode = (lop_mode)((int)f->mode ^ (int)g->attr.i[0]);
        if (g->op == &lop_op_inverse) f->inverted = !f->inverted;
    }
    f->kron = g;
    if (g->op != &lop_op_kron || g->shape.ndim != 2) return false;
    for (int i = 0; f->inverted && i < g->n; i++)
        if (!lop_is_square(g->child[i])) return false;
    return true;
}

/* Factors from, ..., to - 1, as they stand in G. */
static const lop_node *some_of(lop_vjp *v, const factors *f, int from, int to) {
    const lop_node *a = f->kron->child[from];
    if (to - from > 1) a = lop_vjp_over(v, &lop_op_kron, NULL, to - from, &f->kron->child[from]);
    if (a && f->inverted) a = lop_vjp_inverse(v, a);
    return a ? lop_vjp_view(v, a, f->mode) : NULL;
}

/* How many factors, at the end or at the beginning, are the place of X; 0: none. */
static int place_of(const factors *f, const lop_node *x, bool after) {
    const int64_t m = f->mode & LOP_T ? lop_cols(x) : lop_rows(x),
                  n = f->mode & LOP_T ? lop_rows(x) : lop_cols(x);
    int64_t rows = 1, cols = 1;
    for (int k = 1; k < f->kron->n; k++) {
        const lop_node *a = f->kron->child[after ? f->kron->n - k : k - 1];
        rows *= lop_rows(a);
        cols *= lop_cols(a);
        if (rows == m && cols == n) return k;
        if (rows > m || cols > n) return 0;
    }
    return 0;
}

/* The product of two of as many factors that multiply, as one; g itself where it is none. */
static const lop_node *product_inside(lop_vjp *v, const lop_node *g) {
    enum { MOST = 8 };
    const lop_node *factor[MOST];
    factors f[2];
    if (g->op != &lop_op_prod || !read_kron(g->child[0], &f[0]) || !read_kron(g->child[1], &f[1]))
        return g;
    const int n = f[0].kron->n;
    if (f[1].kron->n != n || n > MOST) return g;
    for (int i = 0; i < n; i++) {
        const lop_node *a = some_of(v, &f[0], i, i + 1), *b = some_of(v, &f[1], i, i + 1);
        if (!a || !b || lop_cols(a) != lop_rows(b)) return v->st == LOP_OK ? g : NULL;
        factor[i] = lop_vjp_prod(v, a, b);
    }
    return lop_vjp_over(v, &lop_op_kron, NULL, n, factor);
}

static const lop_node *of_kron(lop_vjp *v, const lop_node *g, const lop_node *x, bool after) {
    factors f;
    g = product_inside(v, g);
    if (!g || x->shape.ndim != 2 || !read_kron(g, &f)) return NULL;
    const int k = place_of(&f, x, after), cut = after ? f.kron->n - k : k;
    if (k == 0) return NULL;
    const lop_node *rest = after ? some_of(v, &f, 0, cut) : some_of(v, &f, cut, f.kron->n),
                   *there = after ? some_of(v, &f, cut, f.kron->n) : some_of(v, &f, 0, cut);
    if (v->st != LOP_OK) return NULL;
    const lop_attr sum = {.i = {0, 0, 0, (int64_t)lop_promote(g->dtype, x->dtype) + 1}},
                   many = {.i = {lop_cols(rest), 0, 0, 0}};
    const lop_node *turned = lop_vjp_view(v, x, LOP_H), *c = NULL;
    c = turned ? lop_vjp_prod(v, turned, there) : NULL;
    c = c ? lop_vjp_make(v, &lop_op_trace, &sum, c, NULL) : NULL;
    c = c ? lop_vjp_make(v, &lop_op_repeat, &many, c, NULL) : NULL;
    c = c ? lop_vjp_make(v, &lop_op_diag, NULL, c, NULL) : NULL;
    return c ? lop_vjp_prod(v, rest, c) : NULL;
}

/* A KronSum, or a view of one, term by term, each a Kron; NULL: it is none, or no factor is X's
 * place. */
static const lop_node *of_kronsum(lop_vjp *v, const lop_node *g, const lop_node *x, bool after) {
    enum { MOST = 8 };
    const lop_node *factor[MOST], *sum = NULL;
    lop_mode mode = LOP_N;
    for (; g->op == &lop_op_view; g = g->child[0]) mode = (lop_mode)((int)mode ^ (int)g->attr.i[0]);
    if (g->op != &lop_op_kronsum || g->shape.ndim != 2 || g->n > MOST) return NULL;
    for (int i = 0; i < g->n; i++) {
        for (int j = 0; j < g->n; j++) {
            const lop_node *of = g->child[j];
            factor[j] = j == i ? lop_vjp_view(v, of, mode) : lop_vjp_eye(v, lop_rows(of), g->dtype);
            if (!factor[j]) return NULL;
        }
        const lop_node *kron = lop_vjp_over(v, &lop_op_kron, NULL, g->n, factor),
                       *term = kron ? of_kron(v, kron, x, after) : NULL;
        if (!term) return NULL;
        sum = lop_vjp_sum(v, sum, term);
    }
    return sum;
}

/* Of the identity, which is one times another of X's size: the identity times conj(trace(X)). */
static const lop_node *of_identity(lop_vjp *v, const lop_node *g, const lop_node *x) {
    while (g->op == &lop_op_view) g = g->child[0]; /* it is square, and real */
    if (g->op != &lop_op_identity || x->shape.ndim != 2 || !lop_is_square(x)) return NULL;
    const lop_dtype dt = lop_promote(g->dtype, x->dtype);
    const int64_t n = lop_rows(g) / lop_rows(x);
    const lop_attr sum = {.i = {0, 0, 0, (int64_t)dt + 1}}, many = {.i = {n, 0, 0, 0}};
    const lop_node *turned = lop_vjp_view(v, x, LOP_H),
                   *c = turned ? lop_vjp_make(v, &lop_op_trace, &sum, turned, NULL) : NULL;
    c = c ? lop_vjp_make(v, &lop_op_repeat, &many, c, NULL) : NULL;
    return c ? lop_vjp_make(v, &lop_op_diag, NULL, c, NULL) : NULL;
}

/* A vector as a matrix of one column; a matrix of one column as a vector. */
static const lop_node *column_of(lop_vjp *v, const lop_node *d) {
    const lop_node like = {
        .shape = {.ndim = 2, .dim = {lop_cols(d), 1}}, .dtype = d->dtype, .core = 2};
    const lop_node *one = lop_vjp_like(v, &lop_op_ones, &like),
                   *ones = one ? lop_vjp_make(v, &lop_op_dense, NULL, one, NULL) : NULL,
                   *by = ones ? lop_vjp_make(v, &lop_op_diag, NULL, d, NULL) : NULL;
    return by ? lop_vjp_prod(v, by, ones) : NULL;
}
static const lop_node *vector_of(lop_vjp *v, const lop_node *column) {
    const lop_attr flat = {.i = {2, 0, 0, 0}},
                   dense = {.i = {0, 0, 0, column ? (int64_t)column->dtype + 1 : 0}};
    if (column) column = lop_vjp_make(v, &lop_op_todense, &dense, column, NULL);
    return column ? lop_vjp_make(v, &lop_op_ravel, &flat, column, NULL) : NULL;
}

/* Of a diagonal, which is one: sums of its numbers times those on the diagonal of conj(X). */
static const lop_node *of_diagonal(lop_vjp *v, const lop_node *g, const lop_node *x, bool after) {
    if (g->op != &lop_op_diag || g->shape.ndim != 2 || x->shape.ndim != 2 || !lop_is_square(x))
        return NULL;
    const lop_node *seen = lop_vjp_view(v, x, LOP_C),
                   *some = seen ? lop_vjp_diagonal(v, seen, 0) : NULL,
                   *by = some ? column_of(v, some) : NULL,
                   *all = by ? column_of(v, g->child[0]) : NULL;
    if (!all) return NULL;
    const lop_node *u = folded(v, all, after ? lop_rows(all) / lop_rows(x) : lop_rows(x));
    if (!after) u = lop_vjp_view(v, u, LOP_T);
    const lop_node *d = vector_of(v, lop_vjp_prod(v, u, by));
    return d ? lop_vjp_make(v, &lop_op_diag, NULL, d, NULL) : NULL;
}

/* A view of a sum, a multiple or a product with the views inside; g itself where it is none. */
static const lop_node *view_inside(lop_vjp *v, const lop_node *g) {
    if (g->op != &lop_op_view) return g;
    const lop_mode mode = (lop_mode)g->attr.i[0];
    const lop_node *of = g->child[0];
    if (of->op == &lop_op_sum)
        return lop_vjp_sum(v, lop_vjp_view(v, of->child[0], mode),
                           lop_vjp_view(v, of->child[1], mode));
    if (of->op == &lop_op_prod) {
        const int first = mode & LOP_T ? 1 : 0;
        return lop_vjp_prod(v, lop_vjp_view(v, of->child[first], mode),
                            lop_vjp_view(v, of->child[1 - first], mode));
    }
    if (of->op == &lop_op_scaled) {
        const lop_coef c = lop_coef_of(&of->attr);
        const lop_attr by = lop_coef_attr(mode & LOP_C ? lop_coef_conj(of->ctx, c) : c);
        return lop_vjp_make(v, &lop_op_scaled, &by, lop_vjp_view(v, of->child[0], mode), NULL);
    }
    return g;
}

static const lop_node *by_form(lop_vjp *v, const lop_node *g, const lop_node *x, bool after,
                               int depth);

/* Of G (E (x) F), X in the place of F: what G means for X F^H, times E; likewise of a Kron on the
 * left. A sum of pairs and inverses is then that, where its product with the Kron is dense. */
static const lop_node *beside_kron(lop_vjp *v, const lop_node *g, const lop_node *x, bool after,
                                   int depth) {
    if (g->op != &lop_op_prod || g->shape.ndim != 2 || x->shape.ndim != 2) return NULL;
    for (int side = 1; side >= 0; side--) {
        factors f;
        const int k = read_kron(g->child[side], &f) ? place_of(&f, x, after) : 0;
        if (k == 0) continue;
        const int n = f.kron->n, cut = after ? n - k : k;
        const lop_node *rest = after ? some_of(v, &f, 0, cut) : some_of(v, &f, cut, n),
                       *there = after ? some_of(v, &f, cut, n) : some_of(v, &f, 0, cut);
        if (v->st != LOP_OK || !rest || !there) return NULL;
        const lop_node *turned = lop_vjp_view(v, there, LOP_H),
                       *inner = side ? lop_vjp_prod(v, x, turned) : lop_vjp_prod(v, turned, x),
                       *part = inner ? by_form(v, g->child[1 - side], inner, after, depth) : NULL;
        if (!part) return NULL;
        return side ? lop_vjp_prod(v, part, rest) : lop_vjp_prod(v, rest, part);
    }
    return NULL;
}

static const lop_node *by_form(lop_vjp *v, const lop_node *g, const lop_node *x, bool after,
                               int depth) {
    enum { FEW = 8 };
    const lop_node *a, *b, *sum = NULL;
    if (v->st != LOP_OK) return NULL;
    if (v->n > LOP_VJP_NODES / 2) depth = 0; /* the rest by its dense form */
    if (depth > 0) g = view_inside(v, g);
    if (v->st != LOP_OK) return NULL;
    if (depth > 0 && g->op == &lop_op_sum)
        return lop_vjp_sum(v, by_form(v, g->child[0], x, after, depth - 1),
                           by_form(v, g->child[1], x, after, depth - 1));
    if (depth > 0 && g->op == &lop_op_scaled)
        return lop_vjp_make(v, &lop_op_scaled, &g->attr,
                            by_form(v, g->child[0], x, after, depth - 1), NULL);
    if (depth > 0 && lop_vjp_thin(v, g, FEW, &a, &b) && lop_cols(a) > 0) {
        for (int64_t c = 0; c < lop_cols(a); c++)
            sum = lop_vjp_sum(v, sum,
                              pair(v, lop_vjp_cut(v, a, 1, c, 1),
                                   lop_vjp_view(v, lop_vjp_cut(v, b, 0, c, 1), LOP_T), x, after));
        return sum;
    }
    const lop_node *closed = of_kron(v, g, x, after);
    if (!closed && v->st == LOP_OK) closed = of_identity(v, g, x);
    if (!closed && v->st == LOP_OK) closed = of_diagonal(v, g, x, after);
    if (!closed && v->st == LOP_OK) closed = of_kronsum(v, g, x, after);
    if (!closed && v->st == LOP_OK && depth > 0) closed = beside_kron(v, g, x, after, depth - 1);
    if (closed || v->st != LOP_OK) return closed;
    const lop_attr attr = {.i = {!after, 0, 0, (int64_t)lop_promote(g->dtype, x->dtype) + 1}};
    const lop_node *factor = lop_vjp_dense(v, x);
    return lop_vjp_make(v, &lop_op_dense, NULL,
                        lop_vjp_make(v, &lop_op_kron_partial, &attr, g, factor), NULL);
}

const lop_node *lop_vjp_contracted(lop_vjp *v, const lop_node *g, const lop_node *x, bool after) {
    enum { DEEPEST = 24 };
    const bool real = v->real;
    v->real = false; /* the real part is that of the result */
    const lop_node *made = by_form(v, g, x, after, DEEPEST);
    v->real = real;
    return made;
}
