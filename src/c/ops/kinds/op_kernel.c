/* op_kernel.c: the kernel matrix k(x_i, y_j), evaluated tile by tile in every product, never
 * formed; a product of up to five such kernels, each with its own points.
 *
 * Children, factor by factor: x (m x d), y (n x d; x itself where none was given), then those of
 * variance, length scale (a number or d of them) and shape (alpha, period or offset) that are
 * there. attr.i[0]: seven bits a factor, the function and which are there; attr.i[1]: eight bits a
 * factor, the degree; attr.i[2]: how many factors. Cost: m n (about 20 + 2 d + 2 k) flops, in
 * registers (2 to 10e10 a second with AVX-512, 2026-11-27: priced at gemm's rate), in
 * kernels/kernel_matrix/k_kernel_matrix.c; half the exponentials where y is x. Memory: tiles. */
#include "kernels/kernel_matrix/k_kernel_gradient.h"
#include "kernels/common/kernels.h"
#include "expr/random_instance.h"
#include "expr/vjp.h"

#include <math.h>
#include <string.h>

/* -- attributes */

enum { VARIANCE = 1, LENGTH = 2, SHAPE = 4, PER_FACTOR = 7, PER_DEGREE = 8 };

typedef struct factor {
    int word, degree;
    const lop_node *x, *y, *variance, *length, *shape; /* NULL: not there */
} factor;

/* Of the first `children`. False where attributes and children do not fit. */
static bool read_some(const lop_node *self, int children, factor *f, int *count) {
    const int64_t words = self->attr.i[0], degrees = self->attr.i[1], n = self->attr.i[2];
    int c = 0;
    if (n < 1 || n > LOPK_KERNELS || words < 0 || degrees < 0) return false;
    for (int i = 0; i < n; i++) {
        const int64_t bits = words >> (PER_FACTOR * i) & ((1 << PER_FACTOR) - 1), there = bits >> 4;
        const int need = 2 + !!(there & VARIANCE) + !!(there & LENGTH) + !!(there & SHAPE);
        f[i] = (factor){.word = (int)(bits & 15),
                        .degree = (int)(degrees >> (PER_DEGREE * i) & ((1 << PER_DEGREE) - 1))};
        if (f[i].word >= LOPK_NKERNEL || c + need > children) return false;
        f[i].x = self->child[c++];
        f[i].y = self->child[c++];
        if (there & VARIANCE) f[i].variance = self->child[c++];
        if (there & LENGTH) f[i].length = self->child[c++];
        if (there & SHAPE) f[i].shape = self->child[c++];
    }
    *count = (int)n;
    return c == children && words >> (PER_FACTOR * n) == 0 && degrees >> (PER_DEGREE * n) == 0;
}
static bool read_factors(const lop_node *self, factor *f, int *count) {
    return read_some(self, self->n, f, count);
}

/* One value by how it is written: the same node, or cut alike from one. */
static bool alike(const lop_node *a, const lop_node *b) {
    if (a == b) return true;
    if (a->op != b->op || a->n != b->n || a->n == 0 || a->serial != b->serial ||
        !lop_attr_equal(&a->attr, &b->attr))
        return false;
    for (int i = 0; i < a->n; i++)
        if (a->child[i] != b->child[i]) return false;
    return true;
}
static bool is_same(const factor *f, int n) {
    bool same = true;
    for (int i = 0; i < n; i++) same = same && alike(f[i].x, f[i].y);
    return same;
}

int lop_kernel_points(const lop_node *kernel, int *at) {
    factor f[LOPK_KERNELS];
    int count, c = 0;
    if (!read_factors(kernel, f, &count)) return 0;
    for (int i = 0; i < count; i++) {
        at[i] = c;
        c += 2 + (f[i].variance != NULL) + (f[i].length != NULL) + (f[i].shape != NULL);
    }
    return count;
}
lop_attr lop_kernel_join(const lop_attr *a, const lop_attr *b) {
    const int64_t n = a->i[2];
    return (lop_attr){.i = {a->i[0] | b->i[0] << (PER_FACTOR * n),
                            a->i[1] | b->i[1] << (PER_DEGREE * n), n + b->i[2]}};
}
_Static_assert(LOP_KERNELS == (int)LOPK_KERNELS, "one limit");

bool lop_kernel_line(const lop_node *kernel, lop_line_kernel *line) {
    factor f[LOPK_KERNELS];
    int n;
    if (kernel->op != &lop_op_kernel || kernel->shape.ndim != 2 || !lop_is_blas(kernel->dtype) ||
        !read_factors(kernel, f, &n) || n != 1 || !is_same(f, n) || lop_cols(f[0].x) != 1 ||
        f[0].word < LOPK_MATERN12 || f[0].word > LOPK_MATERN52)
        return false;
    *line = (lop_line_kernel){f[0].word - LOPK_MATERN12, f[0].x, f[0].variance, f[0].length};
    return true;
}

bool lop_kernel_is_covariance(const lop_node *kernel) {
    factor f[LOPK_KERNELS];
    int n;
    bool all = read_factors(kernel, f, &n) && is_same(f, n);
    for (int i = 0; all && i < n; i++) all = f[i].word != LOPK_POLYNOMIAL;
    return all;
}
static lop_status check(const factor *f, lop_err *err) {
    const lop_node *number[2] = {f->variance, f->shape};
    char x[128], y[128];
    if (f->x->op->cls == LOP_OPERATOR || f->y->op->cls == LOP_OPERATOR || f->x->core != 2 ||
        f->y->core != 2)
        return lop_fail(err, LOP_DIM, "kernel takes points, one a row");
    if (lop_cols(f->x) != lop_cols(f->y))
        return lop_fail(err, LOP_DIM,
                        "Kernel: points x of shape %s and y of shape %s have different numbers of "
                        "coordinates",
                        lop_shape_text(&f->x->shape, x, sizeof x),
                        lop_shape_text(&f->y->shape, y, sizeof y));
    for (int i = 0; i < 2; i++)
        if (number[i] && (number[i]->op->cls == LOP_OPERATOR || number[i]->core != 0))
            return lop_fail(err, LOP_DIM, "kernel's variance and shape are numbers");
    if (f->length && (f->length->op->cls == LOP_OPERATOR || f->length->core != 1))
        return lop_fail(err, LOP_DIM, "kernel's length scales are a vector");
    if (f->length && lop_cols(f->length) != 1 && lop_cols(f->length) != lop_cols(f->x))
        return lop_fail(err, LOP_DIM,
                        "Kernel(length_scale=...): expected a number or %lld, one a coordinate, "
                        "got %lld",
                        (long long)lop_cols(f->x), (long long)lop_cols(f->length));
    return LOP_OK;
}

static lop_status infer(lop_node *n, lop_err *err) {
    factor f[LOPK_KERNELS];
    int count;
    if (!read_factors(n, f, &count))
        return lop_fail(err, LOP_DIM, "kernel: attributes and children do not fit");
    for (int i = 0; i < count; i++) {
        lop_status st = check(&f[i], err);
        if (st != LOP_OK) return st;
        if (lop_rows(f[i].x) != lop_rows(f[0].x) || lop_rows(f[i].y) != lop_rows(f[0].y))
            return lop_fail(err, LOP_DIM, "kernels of different sizes do not multiply");
    }
    for (int i = 0; i < n->n; i++)
        if (lop_is_complex(n->child[i]->dtype))
            return lop_fail(err, LOP_DTYPE, "Kernel: points and parameters are real, got %s",
                            lop_dtype_name(n->child[i]->dtype));
    lop_status st = lop_node_over(n, lop_rows(f[0].x), lop_rows(f[0].y), err);
    if (st == LOP_OK && !lop_is_blas(n->dtype) && n->dtype != LOP_NO_DTYPE) n->dtype = LOP_f64;
    return st;
}

static lop_truth trait(const lop_node *n, lop_trait t) {
    factor f[LOPK_KERNELS];
    int count;
    if (t == LOP_REAL) return LOP_TRUE;
    if (t != LOP_SYMMETRIC && t != LOP_HERMITIAN) return LOP_UNKNOWN;
    return read_factors(n, f, &count) && is_same(f, count) ? LOP_TRUE : LOP_UNKNOWN;
}

/* -- the numbers of a factor, as the loops want them */

static lop_status bad(const lop_call *c, const char *name, double value) {
    return lop_fail(c->err, LOP_DOMAIN, "Kernel(%s=...): expected positive numbers, got %g", name,
                    value);
}

/* attr.i: function, what is there, d. */
static lop_status run_numbers(const lop_call *c) {
    const int64_t *i = c->step->attr.i;
    double variance = 1, shape = 1, one = 1;
    lop_mat length = {&one, 1, 1, 1, 1, LOP_f64};
    int at = 1;
    if (i[1] & VARIANCE) variance = *(const double *)c->a[at++]->p;
    if (i[1] & LENGTH) length = *c->a[at++];
    if (i[1] & SHAPE) shape = *(const double *)c->a[at++]->p;
    for (int64_t k = 0; k < length.m; k++) {
        const double l = ((const double *)length.p)[k * length.rs];
        if (l <= 0) return bad(c, "length_scale", l);
    }
    if (i[0] == LOPK_RATIONAL && shape <= 0) return bad(c, "alpha", shape);
    if (i[0] == LOPK_PERIODIC && shape <= 0) return bad(c, "period", shape);
    lopk_kernel_numbers((int)i[0], variance, shape, &length, i[2], c->a[0]->p);
    return LOP_OK;
}

static int emit_numbers(lop_emit *e, const factor *f, lop_status *st) {
    const lop_node *all[3] = {f->variance, f->length, f->shape};
    lop_shape batch = {0};
    int in[3], n = 0;
    int64_t there = 0, size;
    for (int i = 0; i < 3; i++) {
        if (!all[i]) continue;
        lop_shape both;
        *st = lop_shape_batch(&batch, 0, &all[i]->shape, all[i]->core, &both, lop_emit_err(e));
        if (*st != LOP_OK) return -1;
        batch = both;
        in[n] = lop_emit_cast(e, lop_emit_value(e, all[i]), LOP_f64, st);
        if (in[n++] < 0) return -1;
        there |= 1 << i;
    }
    if (!lop_mul_ok(2, lop_cols(f->x), &size) || !lop_add_ok(size, LOPK_WEIGHTS, &size)) {
        *st = lop_fail(lop_emit_err(e), LOP_OVERFLOW, "too many coordinates");
        return -1;
    }
    batch.dim[batch.ndim++] = size;
    const int out = lop_emit_temp(e, LOP_f64, 1, &batch, st);
    if (out < 0) return -1;
    lop_step *s = lop_emit_step(e, "kernel-numbers", run_numbers, out, n, in);
    *st = s ? LOP_OK : LOP_NOMEM;
    if (!s) return -1;
    s->attr.i[0] = f->word;
    s->attr.i[1] = there;
    s->attr.i[2] = lop_cols(f->x);
    return out;
}

/* -- steps: the output, `first` - 1 others, then x, y and numbers of each factor. attr.i: words,
 * degrees, how many factors with flags above, where the diagonal begins */

enum { SAME = 8, ARD = 16 };

static int read_call(const lop_call *c, int first, bool swap, lopk_kernel *k) {
    const int64_t *i = c->step->attr.i;
    const int n = (int)(i[2] & 7);
    for (int f = 0; f < n; f++) {
        const int at = first + 3 * f;
        k[f] = (lopk_kernel){.word = (int)(i[0] >> (PER_FACTOR * f) & 15),
                             .degree = (int)(i[1] >> (PER_DEGREE * f) & 255),
                             .ard = (i[2] >> f & ARD) != 0,
                             .x = *c->a[at + swap],
                             .y = *c->a[at + !swap],
                             .at = c->a[at + 2]->p};
    }
    return n;
}

static lop_status run_apply(const lop_call *c) {
    lopk_kernel k[LOPK_KERNELS];
    const int n = read_call(c, 2, c->step->attr.re != 0, k);
    const bool same = (c->step->attr.i[2] & SAME) != 0;
    return lopk_kernel_apply(c->a[0], k, n, same, c->a[1], c->team, c->scratch) ? LOP_OK
                                                                                : LOP_CALLBACK;
}
static lop_status run_dense(const lop_call *c) {
    lopk_kernel k[LOPK_KERNELS];
    const int n = read_call(c, 1, false, k);
    return lopk_kernel_dense(c->a[0], k, n, c->team, c->scratch) ? LOP_OK : LOP_CALLBACK;
}
static lop_status run_diagonal(const lop_call *c) {
    lopk_kernel k[LOPK_KERNELS];
    const int n = read_call(c, 1, false, k);
    lopk_kernel_diagonal(c->a[0], k, n, (int64_t)c->step->attr.re, (int64_t)c->step->attr.im,
                         c->scratch);
    return LOP_OK;
}

/* Appends the step; x: `nx` slots before the points. */
static lop_step *emit(lop_emit *e, const lop_node *self, int children, const char *name,
                      lop_run run, int out, const int *x, int nx, int64_t columns, lop_status *st) {
    factor f[LOPK_KERNELS];
    int count, in[LOP_MAXARG], n = 0;
    int64_t coordinates = 0, flags;
    const lop_dtype dt = lop_dtype_real(lop_slot_dtype(e, out));
    *st = LOP_INTERNAL;
    if (!read_some(self, children, f, &count)) return NULL;
    flags = count | (is_same(f, count) ? SAME : 0);
    for (; n < nx; n++) in[n] = x[n];
    for (int i = 0; i < count; i++) {
        in[n] = lop_emit_cast(e, lop_emit_value(e, f[i].x), dt, st);
        if (in[n++] < 0) return NULL;
        in[n] = f[i].x == f[i].y ? in[n - 1] : lop_emit_cast(e, lop_emit_value(e, f[i].y), dt, st);
        if (in[n++] < 0) return NULL;
        in[n] = emit_numbers(e, &f[i], st);
        if (in[n++] < 0) return NULL;
        coordinates += lop_cols(f[i].x);
        if (f[i].length && lop_cols(f[i].length) > 1) flags |= ARD << i;
    }
    lop_step *s = lop_emit_step(e, name, run, out, n, in);
    *st = s ? LOP_OK : LOP_NOMEM;
    if (!s) return NULL;
    s->attr.i[0] = self->attr.i[0];
    s->attr.i[1] = self->attr.i[1];
    s->attr.i[2] = flags;
    s->scratch = lopk_kernel_scratch(coordinates, dt, lop_rows(f[0].x), lop_rows(f[0].y), columns);
    return s;
}

static double entry_flops(const lop_node *self) {
    factor f[LOPK_KERNELS];
    int count;
    double sum = 0;
    if (!read_factors(self, f, &count)) return 0;
    for (int i = 0; i < count; i++)
        sum += 30 + (f[i].word == LOPK_PERIODIC ? 25 : 3) * (double)lop_cols(f[i].x);
    return sum;
}
static double flops(const lop_node *self, int64_t k) {
    return (double)lop_rows(self) * (double)lop_cols(self) * (entry_flops(self) + 2 * (double)k);
}

static lop_status apply(lop_emit *e, const lop_node *self, lop_mode mode, int x, int out) {
    lop_status st;
    int64_t k, batch, all;
    lop_slot_sizes(e, out, NULL, &k, &batch);
    if (!lop_mul_ok(2 * k, batch > 0 ? batch : 1, &all))
        return lop_fail(lop_emit_err(e), LOP_OVERFLOW, "too many columns");
    lop_step *s = emit(e, self, self->n, "kernel", run_apply, out, &x, 1, all, &st);
    if (!s) return st;
    s->attr.re = mode & LOP_T ? 1 : 0;
    s->flags = LOP_STEP_COLUMNS | LOP_STEP_GEMM;
    s->flops = flops(self, k) * (double)batch;
    return LOP_OK;
}
static lop_status dense(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    lop_step *s = emit(e, self, self->n, "kernel-dense", run_dense, out, NULL, 0, 0, &st);
    if (!s) return st;
    s->flags = LOP_STEP_GEMM;
    s->flops = lop_slot_elements(e, out) * entry_flops(self);
    return LOP_OK;
}
static lop_status pairs(lop_emit *e, const lop_node *self, int64_t row, int64_t column, int out) {
    lop_status st;
    lop_step *s = emit(e, self, self->n, "kernel-diagonal", run_diagonal, out, NULL, 0, 0, &st);
    if (!s) return st;
    s->attr.re = (double)row;
    s->attr.im = (double)column;
    s->flops = lop_slot_elements(e, out) * entry_flops(self);
    return LOP_OK;
}
static lop_status diagonal(lop_emit *e, const lop_node *self, int64_t k, int out) {
    return pairs(e, self, k < 0 ? -k : 0, k > 0 ? k : 0, out);
}
static lop_status element(lop_emit *e, const lop_node *self, int64_t i, int64_t j, int out) {
    return pairs(e, self, i, j, out);
}

/* -- gradients: kernel_number_sums and kernel_point_sums, arrays over the children of a kernel of
 * one factor and, last, the cotangent's dense form. attr.i[0..2] as the kernel's; i[3]: of points,
 * 0 x, 1 y. The numbers: variance, lengths and shape, those that are there or not. A cotangent of
 * thin factors, or a diagonal, is not formed. */

static lop_status infer_sums(lop_node *n, lop_err *err) {
    factor f[LOPK_KERNELS];
    int count;
    const lop_node *g = n->child[n->n - 1];
    if (!read_some(n, n->n - 1, f, &count) || count != 1 || g->core != 2 ||
        lop_rows(g) != lop_rows(f[0].x) || lop_cols(g) != lop_rows(f[0].y))
        return lop_fail(err, LOP_DIM, "%s: attributes and children do not fit", n->op->name);
    const lop_status st = lop_node_batches(n, 2, err);
    if (st != LOP_OK) return st;
    if (lop_is_complex(n->dtype))
        return lop_fail(err, LOP_DTYPE, "%s takes nothing complex", n->op->name);
    n->dtype = LOP_f64;
    n->core = n->op == &lop_op_kernel_number_sums ? 1 : 2;
    if (n->core == 2) n->shape.dim[n->shape.ndim++] = lop_rows(n->attr.i[3] ? f[0].y : f[0].x);
    n->shape.dim[n->shape.ndim++] =
        n->core == 2 ? lop_cols(f[0].x) : 2 + (f[0].length ? lop_cols(f[0].length) : 1);
    return LOP_OK;
}

/* The arguments that are the cotangent: the first of them, but for the identity. */
static int read_cotangent(const lop_call *c, lopk_cotangent *g) {
    const int n = c->step->n - 4; /* without the output, the points, the numbers */
    *g = (lopk_cotangent){.form = (lopk_cotangent_form)c->step->attr.i[3]};
    if (n > 0) g->a = *c->a[1];
    if (n > 1) g->b = *c->a[2];
    if (c->step->attr.re != 0) { /* the transpose of the product */
        const lop_mat a = g->a, b = g->b;
        g->a = (lop_mat){b.p, b.n, b.m, b.cs, b.rs, b.dt};
        g->b = (lop_mat){a.p, a.n, a.m, a.cs, a.rs, a.dt};
    }
    return 1 + n;
}
static lop_status run_number_sums(const lop_call *c) {
    lopk_kernel k[LOPK_KERNELS];
    lopk_cotangent g;
    (void)read_call(c, read_cotangent(c, &g), false, k);
    double *out = c->scratch;
    const int64_t n = c->a[0]->m;
    lopk_kernel_number_sums(k, &g, n - 2, out, out + n);
    const lop_mat made = {out, n, 1, 1, 1, LOP_f64};
    lopk_copy(c->a[0], &made);
    return LOP_OK;
}
static lop_status run_point_sums(const lop_call *c) {
    lopk_kernel k[LOPK_KERNELS];
    lopk_cotangent g;
    (void)read_call(c, read_cotangent(c, &g), false, k);
    lopk_kernel_point_sums(k, &g, c->step->attr.im != 0, c->a[0], c->scratch);
    return LOP_OK;
}

/* How a cotangent is read, and of which arrays: of a product of at most half as many columns as it
 * has, both factors, of its transpose too. */
static lopk_cotangent_form form_of(const lop_node *g, const lop_node **part, int *n) {
    const int64_t few = (lop_rows(g) < lop_cols(g) ? lop_rows(g) : lop_cols(g)) / 2;
    part[0] = g;
    *n = 1;
    if (g->op == &lop_op_swap && g->child[0]->op == &lop_op_apply) g = g->child[0];
    const lop_node *a = g->n > 0 ? g->child[0] : NULL;
    if (g->op == &lop_op_eye) return *n = 0, LOPK_BY_DIAGONAL;
    if (g->op == &lop_op_todense && a->op == &lop_op_diag) {
        part[0] = a->child[0];
        return LOPK_BY_DIAGONAL;
    }
    if (g->op != &lop_op_apply || a->op != &lop_op_dense || a->attr.i[0] || lop_cols(a) > few)
        return LOPK_BY_MATRIX;
    part[0] = a->child[0];
    part[1] = g->child[1];
    *n = 2;
    return LOPK_BY_PAIR;
}
static const lop_node *reads_sums(const lop_node *self, int i) {
    const lop_node *part[2];
    int n;
    if (i < self->n - 1) return self->child[i];
    (void)form_of(self->child[self->n - 1], part, &n);
    return i - self->n + 1 < n ? part[i - self->n + 1] : NULL;
}

static lop_status lower_sums(lop_emit *e, const lop_node *self, int out) {
    const bool points = self->op == &lop_op_kernel_point_sums;
    const lop_node *g = self->child[self->n - 1], *part[2];
    int in[2], n;
    const lopk_cotangent_form form = form_of(g, part, &n);
    lop_status st;
    for (int i = 0; i < n; i++) {
        in[i] = lop_emit_cast(e, lop_emit_value(e, part[i]), LOP_f64, &st);
        if (in[i] < 0) return st;
    }
    lop_step *s = emit(e, self, self->n - 1, points ? "kernel-point-sums" : "kernel-number-sums",
                       points ? run_point_sums : run_number_sums, out, in, n, 0, &st);
    if (!s) return st;
    const int64_t d = lop_cols(self->child[0]);
    const double rows = (double)lop_rows(g), cols = (double)lop_cols(g);
    s->attr.i[3] = form;
    s->attr.re = form == LOPK_BY_PAIR && g->op == &lop_op_swap && g->attr.i[0] & LOP_T;
    s->attr.im = (double)self->attr.i[3];
    s->scratch = lopk_kernel_gradient_scratch(d) + (size_t)(d + 3) * sizeof(double);
    s->flags = LOP_STEP_GEMM;
    s->flops = (form == LOPK_BY_DIAGONAL ? 16 * (rows < cols ? rows : cols) : rows * cols) *
               (60 + 10 * (double)d);
    if (form == LOPK_BY_PAIR) s->flops += 2 * rows * cols * (double)lop_cols(part[0]);
    return LOP_OK;
}
#define SUMS(head)                                                                                 \
    const lop_op lop_op_##head = {                                                                 \
        LOP_NAMED(head),     .cls = LOP_ARRAY,    .min = 3,           .max = 6, .ints = 4,         \
        .infer = infer_sums, .lower = lower_sums, .reads = reads_sums}
SUMS(kernel_number_sums);
SUMS(kernel_point_sums);

enum { DEEP = 12 }; /* how far down a cotangent is looked at */
/* Is a cotangent read without being formed, a few such together? */
static bool is_read_off(const lop_node *g, int deep) {
    const int64_t few = (lop_rows(g) < lop_cols(g) ? lop_rows(g) : lop_cols(g)) / 2;
    const lop_node *a = g->n > 0 ? g->child[0] : NULL;
    if (deep == 0) return false;
    if (g->op == &lop_op_scaled || g->op == &lop_op_view) return is_read_off(a, deep - 1);
    if (g->op == &lop_op_sum) return is_read_off(a, deep - 1) && is_read_off(g->child[1], deep - 1);
    if (g->op == &lop_op_prod)
        return lop_cols(a) <= few || is_read_off(a, deep - 1) || is_read_off(g->child[1], deep - 1);
    return g->op == &lop_op_identity || g->op == &lop_op_diag ||
           (g->op == &lop_op_lowrank && lop_cols(a) <= few);
}
/* The sums of a cotangent; those of multiples and of what is read off are multiplied and added. */
static const lop_node *sums_of(lop_vjp *v, const lop_node *self, int child, const lop_node *g,
                               int deep) {
    const lop_node *held[6], *one, *by = NULL;
    if (deep-- > 0 && !lop_is_complex(g->dtype)) {
        one = lop_vjp_without_multiple(v, g, DEEP, &by);
        if (by && one) one = sums_of(v, self, child, one, deep);
        if (by) return one ? lop_vjp_make(v, &lop_op_scale, &by->attr, one, NULL) : NULL;
    }
    const lop_mode mode = g->op == &lop_op_view ? (lop_mode)g->attr.i[0] : LOP_N;
    const lop_node *sum = mode ? g->child[0] : g, *other = NULL;
    if (sum->op == &lop_op_sum && is_read_off(g, deep + 1)) {
        if ((one = lop_vjp_view(v, sum->child[0], mode))) one = sums_of(v, self, child, one, deep);
        if (one) other = lop_vjp_view(v, sum->child[1], mode);
        if (other) other = sums_of(v, self, child, other, deep);
        return other ? lop_vjp_make(v, &lop_op_add, NULL, one, other) : NULL;
    }
    for (int i = 0; i < self->n; i++) held[i] = self->child[i];
    held[self->n] = lop_vjp_dense(v, g);
    lop_attr attr = self->attr;
    attr.i[3] = child == 1;
    return lop_vjp_over(v, child < 2 ? &lop_op_kernel_point_sums : &lop_op_kernel_number_sums,
                        &attr, self->n + 1, held);
}
static const lop_node *vjp(lop_vjp *v, const lop_node *self, int child, const lop_node *g) {
    return self->attr.i[2] == 1 && self->n <= 5 ? sums_of(v, self, child, g, DEEP)
                                                : lop_vjp_unable(v);
}

/* -- random instances */

static lop_status a_number(lop_rand *r, lop_dtype dt, int core, int64_t n, const lop_node **out) {
    lop_shape shape = {.ndim = core, .dim = {n}};
    lop_status st = lop_rand_array(r, dt, core, &shape, out);
    if (st != LOP_OK) return st;
    const lop_buf *b = lop_rand_find(r, (*out)->serial);
    for (int64_t i = 0; i < n; i++) lop_set(dt, b->p, i, 0.5 + fabs(creal(lop_get(dt, b->p, i))));
    return LOP_OK;
}

static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    const lop_node *child[10] = {0};
    lop_attr a = {.i = {0, 0, 1 + lop_rng_range(&r->rng, 0, 2)}};
    lop_status st = LOP_OK;
    int c = 0;
    if (dt != LOP_f64 && dt != LOP_f32) return LOP_UNABLE;
    const bool same = m == n && lop_rng_range(&r->rng, 0, 2);
    for (int64_t i = 0; i < a.i[2]; i++) {
        const int64_t word = lop_rng_range(&r->rng, 0, LOPK_NKERNEL),
                      d = lop_rng_range(&r->rng, 1, 5), there = lop_rng_range(&r->rng, 0, 8);
        if (word == LOPK_POLYNOMIAL) a.i[1] |= lop_rng_range(&r->rng, 1, 4) << (PER_DEGREE * i);
        a.i[0] |= (word | there << 4) << (PER_FACTOR * i);
        if (st == LOP_OK) st = lop_rand_matrix(r, dt, m, d, &child[c++]);
        if (st == LOP_OK && !same) st = lop_rand_matrix(r, dt, n, d, &child[c]);
        if (st == LOP_OK && same) child[c] = lop_node_ref(child[c - 1]);
        c++;
        if (st == LOP_OK && there & VARIANCE) st = a_number(r, dt, 0, 1, &child[c++]);
        if (st == LOP_OK && there & LENGTH)
            st = a_number(r, dt, 1, lop_rng_range(&r->rng, 0, 2) ? d : 1, &child[c++]);
        if (st == LOP_OK && there & SHAPE) st = a_number(r, dt, 0, 1, &child[c++]);
    }
    if (st == LOP_OK) st = lop_node_make(r->ctx, &lop_op_kernel, &a, c, child, NULL, out, r->err);
    for (int i = 0; i < 10; i++) lop_node_unref(child[i]);
    return st;
}

const lop_op lop_op_kernel = {
    LOP_NAMED(kernel),
    .flags = LOP_FLAG_columns | LOP_FLAG_sliced_at_once,
    .title = "Kernel",
    .cls = LOP_OPERATOR,
    .min = 2,
    .max = 5 * LOPK_KERNELS,
    .ints = 3,
    .real = true,
    .param =
        {{"function", LOP_P_WORD, 0, NULL,
          "'rbf', 'matern12', 'matern32', 'matern52', 'rational_quadratic', 'periodic', "
          "'polynomial' or 'linear'; or a callable f(X, Y) that gives the (p, q) block of points X "
          "(p, d) and Y (q, d), evaluated in blocks.",
          "rbf matern12 matern32 matern52 rational_quadratic periodic polynomial linear"},
         {"x", LOP_P_ARRAY, 2, NULL, "The points of the rows, shape (..., m, d), real. Borrowed.",
          NULL},
         {"y", LOP_P_ARRAY, 2, "None",
          "The points of the columns, shape (..., n, d); None, or x itself: those of the rows, and "
          "the matrix is symmetric.",
          NULL},
         {"variance", LOP_P_ARRAY, 0, "None", "Factor of the whole, a number or shape (...); 1.",
          NULL},
         {"length_scale", LOP_P_ARRAY, 1, "None",
          "A number, or one a coordinate, shape (..., d); 1. Of 'polynomial' and 'linear' the "
          "points are divided by it.",
          NULL},
         {"alpha", LOP_P_ARRAY, 0, "None", "Of 'rational_quadratic': the exponent; 1.", NULL},
         {"period", LOP_P_ARRAY, 0, "None", "Of 'periodic': the period of each coordinate; 1.",
          NULL},
         {"degree", LOP_P_INT, 1, "None", "Of 'polynomial': an integer of 0 to 255; 3.", NULL},
         {"offset", LOP_P_ARRAY, 0, "None", "Of 'polynomial': what is added to the products; 1.",
          NULL}},
    .doc =
        {.brief = "The kernel matrix k(x_i, y_j), which is never formed.",
         .extended =
             "With r^2 = sum(((x - y) / length_scale)^2), times variance: 'rbf' exp(-r^2 / 2); "
             "'matern12' exp(-r); 'matern32' (1 + a) exp(-a), a = sqrt(3) r; 'matern52' "
             "(1 + a + a^2 / 3) exp(-a), a = sqrt(5) r; 'rational_quadratic' (1 + r^2 / "
             "(2 alpha))^-alpha; 'periodic' exp(-2 sum((sin(pi (x - y) / period) / "
             "length_scale)^2)); 'polynomial' (x . y / length_scale^2 + offset)^degree; 'linear' "
             "x . y / length_scale^2. Element-wise products of kernels (pl.multiply) run as one, "
             "up to five factors; slices are kernels of fewer points.",
         .cost = "Build: O(1), no copy. Product with k columns: about m n (30 + 3 d + 2 k) "
                 "flops, half of that where y is x; memory: tiles, whatever the size. Diagonal: "
                 "n d. Solves and determinants take the dense form, by Cholesky where y is x. "
                 "Those of Matern functions of points on a line, of sums of them and of diagonals, "
                 "and the diagonal of the inverse: O(n), by their states, whatever the order of "
                 "the points (O(n log n) where they are not sorted).",
         .notes = "Entries are within some units in the last place of what the formula gives for "
                  "rounded differences x - y, below the smallest normal number 0. The sum over "
                  "columns runs in blocks. Length scales, alpha and period must be positive when "
                  "used. pl.Kernel of a callable is another class, CallableKernel.",
         .limits =
             "A sum of kernels is applied term by term; an element-wise product of more than five, "
             "and spectra, take the dense form. Third derivatives by points and numbers are not "
             "there. "
             "Points are real: float32, float64 or integers. Points on a grid are not looked for: "
             "see kernel_structure.",
         .example = ">>> x = np.linspace(0, 1, 5)[:, None]\n"
                    ">>> K = pl.Kernel(\"rbf\", x, length_scale=0.5)\n"
                    ">>> K.shape, np.round(K @ np.ones(5), 3)\n"
                    "((5, 5), array([2.949, 3.696, 3.978, 3.696, 2.949]))"},
    .infer = infer,
    .vjp = vjp,
    .trait = trait,
    .apply = apply,
    .dense = dense,
    .diagonal = diagonal,
    .element = element,
    .flops = flops,
    .random = random_instance};
