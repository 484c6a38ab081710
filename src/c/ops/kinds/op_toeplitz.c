/* op_toeplitz.c: constant diagonals, T[i, j] = c[i - j] below, r[j - i] above.
 *
 * Storage: first column c (m) and first row r (n; r[0] is not read), as scipy.linalg.toeplitz.
 * y = T x: direct loops below the measured crossover and for integers (componentwise accurate);
 * else by a circulant embedding and our FFT: the plan and the spectrum are derived values, kept
 * while c and r keep their content. Error then C u log2(N) |spectrum| |x|, normwise. Cost: 5 N log2
 * N a column. */
#include "ops/projections/projections.h"
#include "expr/properties.h"
#include "expr/random_instance.h"
#include "kernels/fft/k_fft.h"
#include "kernels/common/kernels.h"

#include <math.h>
#include <string.h>

static lop_status infer(lop_node *n, lop_err *err) {
    const lop_node *c = n->child[0], *r = n->child[1];
    if (c->op->cls == LOP_OPERATOR || r->op->cls == LOP_OPERATOR || c->core != 1 || r->core != 1)
        return lop_fail(err, LOP_DIM, "toeplitz takes two vectors");
    lop_status st = lop_shape_batch(&c->shape, 1, &r->shape, 1, &n->shape, err);
    if (st != LOP_OK) return st;
    if (n->shape.ndim + 2 > LOP_MAXDIM)
        return lop_fail(err, LOP_DIM, "more than %d dimensions", LOP_MAXDIM);
    n->shape.dim[n->shape.ndim++] = lop_cols(c);
    n->shape.dim[n->shape.ndim++] = lop_cols(r);
    lop_node_promote(n, c, r);
    return LOP_OK;
}

/* x without a number added to its first entry, as T + c I is made. */
static const lop_node *but_first(const lop_node *x) {
    while (x->op == &lop_op_add) {
        const lop_node *y = x->child[1], *first = y->op == &lop_op_scale ? y->child[0] : y;
        if (!strcmp(first->op->name, "first_unit")) {
            x = x->child[0];
            continue;
        }
        y = x->child[0];
        first = y->op == &lop_op_scale ? y->child[0] : y;
        if (strcmp(first->op->name, "first_unit") != 0) break;
        x = x->child[1];
    }
    return x;
}

/* Are the first column and row the same numbers by how they are written, apart from the first? */
static bool mirrored(const lop_node *c, const lop_node *r, int depth) {
    c = but_first(c);
    r = but_first(r);
    if (lop_node_alike(c, r, depth)) return true;
    if (depth == 0 || c->op != r->op || c->n != r->n || c->n == 0) return false;
    if (!strcmp(c->op->name, "diagrun")) /* of a slice: from the main diagonal down, and up */
        return c->attr.i[0] == 0 && r->attr.i[0] == 0 && c->attr.i[1] == -r->attr.i[1] &&
               c->attr.i[2] == r->attr.i[2] && lop_node_alike(c->child[0], r->child[0], depth) &&
               lop_node_alike(c->child[1], r->child[1], depth) &&
               mirrored(c->child[0], c->child[1], depth - 1);
    if (c->op != &lop_op_add && c->op != &lop_op_scale && c->op != &lop_op_cast &&
        c->op != &lop_op_mul)
        return false;
    for (int i = 0; i < c->n; i++)
        if (!mirrored(c->child[i], r->child[i], depth - 1)) return false;
    return lop_attr_equal(&c->attr, &r->attr);
}

/* r = conj(c) is not enough of complex numbers: c[0] may have an imaginary part. */
static lop_truth trait(const lop_node *n, lop_trait t) {
    const bool real = !lop_is_complex(n->dtype);
    if (t != LOP_SYMMETRIC && (t != LOP_HERMITIAN || !real)) return LOP_UNKNOWN;
    return lop_is_square(n) && mirrored(n->child[0], n->child[1], 8) ? LOP_TRUE : LOP_UNKNOWN;
}

static lop_status run_direct(const lop_call *c) {
    int64_t mode = c->step->attr.i[0];
    lopk_toeplitz_direct(c->a[0], c->a[2], c->a[3], (mode & LOP_T) != 0, (mode & LOP_C) != 0,
                         c->a[1]);
    return LOP_OK;
}

static const int64_t LONGEST = (int64_t)1 << 40; /* the FFT's own limit */

static size_t plan_room(int64_t N, lop_dtype dt) {
    return (lopk_fft_plan_bytes(N, dt) + 63) & ~(size_t)63;
}

static lop_status run_spectrum(const lop_call *c) {
    int64_t N = c->step->attr.i[0];
    lop_dtype dt = c->a[1]->dt;
    lop_status st = lopk_fft_plan_init(c->a[0]->p, N, dt);
    if (st != LOP_OK) return lop_fail(c->err, LOP_INTERNAL, "no FFT of length %lld", (long long)N);
    lopk_toeplitz_spectrum(c->a[0]->p, c->a[1], c->a[2], (char *)c->a[0]->p + plan_room(N, dt),
                           c->scratch);
    return LOP_OK;
}

/* attr.i: mode, bytes of the panel that the scratch begins with. */
static void product(const lop_mat *y, const lop_mat *x, const void *arg) {
    const lop_call *c = arg;
    const void *plan = c->a[2]->p;
    int64_t mode = c->step->attr.i[0];
    const char *spectrum =
        (const char *)plan + plan_room(lopk_fft_length(plan), lopk_fft_dtype(plan));
    lopk_toeplitz_fft(y, spectrum, plan, x, 0, (mode & LOP_T) != 0, (mode & LOP_C) != 0,
                      (char *)c->scratch + c->step->attr.i[1]);
}

static lop_status run_fft(const lop_call *c) {
    lopk_by_panels(c->a[0], c->a[1], c->scratch, (size_t)c->step->attr.i[1], product, c);
    return LOP_OK;
}

static lop_status apply_fft(lop_emit *e, const lop_node *self, const int *x_c_r, lop_mode mode,
                            lop_dtype pdt, int out) {
    lop_status st;
    int64_t m = lop_rows(self), n = lop_cols(self), k, batch, N = 0;
    if (lop_add_ok(m, n - 1, &N)) N = N <= LONGEST ? lopk_fft_good(N, pdt) : 0;
    int cr[2];
    lop_slot_sizes(e, out, NULL, &k, &batch);
    for (int i = 0; i < 2; i++) {
        cr[i] = lop_emit_cast(e, x_c_r[i + 1], pdt, &st);
        if (cr[i] < 0) return st;
    }
    lop_attr attr = {.i = {N, 0, 0, 0}};
    size_t spectrum = (size_t)(N + 2) * 2 * lop_dtype_size(lop_dtype_real(pdt)),
           work = lopk_toeplitz_work_bytes(N, pdt);
    double flops = 5.0 * (double)N * log2((double)N + 1);
    if (!work)
        return lop_fail(lop_emit_err(e), LOP_OVERFLOW,
                        "no FFT is as long as a %lld x %lld Toeplitz matrix needs", (long long)m,
                        (long long)n);
    int in[2] = {x_c_r[0],
                 lop_emit_derived(e, "spectrum", run_spectrum, plan_room(N, pdt) + spectrum, 2, cr,
                                  &attr, work, flops, &st)};
    if (in[1] < 0) return st;
    lop_step *s = lop_emit_step(e, "toeplitz-fft", run_fft, out, 2, in);
    if (!s) return LOP_NOMEM;
    s->attr.i[0] = mode;
    s->attr.i[1] = (int64_t)lopk_panel_bytes(m, n, k, lop_slot_dtype(e, out));
    s->scratch = (size_t)s->attr.i[1] + work;
    s->flags = LOP_STEP_COLUMNS;
    s->flops = flops * (double)k * (double)batch;
    return LOP_OK;
}

static int64_t largest_direct(const lop_emit *e, lop_dtype dt, int64_t m, int64_t n) {
    int64_t asked = lop_emit_fft_min(e);
    return asked > 0 ? asked - 1 : lopk_toeplitz_crossover(dt, m, n);
}

static lop_status apply(lop_emit *e, const lop_node *self, lop_mode mode, int x, int out) {
    lop_status st;
    int64_t m = lop_rows(self), n = lop_cols(self), k, batch;
    lop_dtype dt = lop_slot_dtype(e, out),
              pdt = lop_is_complex(self->dtype) ? dt : lop_dtype_real(dt);
    int in[3] = {x, lop_emit_value(e, self->child[0]), lop_emit_value(e, self->child[1])};
    lop_slot_sizes(e, out, NULL, &k, &batch);
    if (lop_is_blas(dt) && lop_emit_fft(e) && m > 0 && n > 0 &&
        (m > n ? m : n) > largest_direct(e, pdt, m, n))
        return apply_fft(e, self, in, mode, pdt, out);
    for (int i = 1; i < 3; i++) {
        in[i] = lop_emit_cast(e, in[i], dt, &st);
        if (in[i] < 0) return st;
    }
    lop_step *s = lop_emit_step(e, "toeplitz", run_direct, out, 3, in);
    if (!s) return LOP_NOMEM;
    s->attr.i[0] = mode;
    s->flags = LOP_STEP_COLUMNS;
    if (m >= LOP_BLOCKED / 4 && n >= LOP_BLOCKED / 4) s->flags |= LOP_STEP_GEMM; /* in registers */
    s->flops = 2.0 * (double)m * (double)n * (double)k * (double)batch;
    return LOP_OK;
}

/* Diagonal k is one number, repeated. */
static lop_status run_fill(const lop_call *c) {
    int64_t k = c->step->attr.i[0];
    const lop_mat *y = c->a[0], *v = k > 0 ? c->a[2] : c->a[1];
    if (y->m == 0) return LOP_OK;
    lop_mat one = {(char *)v->p + (k > 0 ? k : -k) * v->rs * (int64_t)lop_dtype_size(v->dt),
                   y->m,
                   1,
                   0,
                   1,
                   v->dt};
    lopk_copy(y, &one);
    return LOP_OK;
}
static lop_status fill(lop_emit *e, const lop_node *self, int64_t k, int out) {
    lop_status st;
    int in[2];
    for (int i = 0; i < 2; i++) {
        in[i] = lop_emit_cast(e, lop_emit_value(e, self->child[i]), lop_slot_dtype(e, out), &st);
        if (in[i] < 0) return st;
    }
    lop_step *s = lop_emit_step(e, "fill", run_fill, out, 2, in);
    if (!s) return LOP_NOMEM;
    s->attr.i[0] = k;
    return LOP_OK;
}
static lop_status element(lop_emit *e, const lop_node *self, int64_t i, int64_t j, int out) {
    return fill(e, self, j - i, out);
}

/* Row i of T is a window of one run of all diagonals, the highest first; so is column j of the run
 * the other way round. The run is made in scratch, then each line of y is one copy. */
static lop_status run_dense(const lop_call *c) {
    const lop_mat *y = c->a[0], *col = c->a[1], *row = c->a[2];
    size_t size = lop_dtype_size(y->dt);
    int64_t m = y->m, n = y->n;
    bool rows = y->cs <= y->rs;
    char *run = c->scratch;
    if (m == 0 || n == 0) return LOP_OK;
    for (int64_t p = 0; p < m + n - 1; p++) {
        int64_t d = rows ? m - 1 - p : p - (n - 1);
        const char *from = d >= 0 ? (const char *)col->p + (size_t)(d * col->rs) * size
                                  : (const char *)row->p + (size_t)(-d * row->rs) * size;
        memcpy(run + (size_t)p * size, from, size);
    }
    for (int64_t line = 0; line < (rows ? m : n); line++) {
        int64_t start = (rows ? m : n) - 1 - line;
        lop_mat to = {(char *)y->p + (size_t)(line * (rows ? y->rs : y->cs)) * size,
                      rows ? n : m,
                      1,
                      rows ? y->cs : y->rs,
                      1,
                      y->dt};
        lop_mat window = {run + (size_t)start * size, to.m, 1, 1, 1, y->dt};
        lopk_copy(&to, &window);
    }
    return LOP_OK;
}
static lop_status dense(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    int in[2];
    for (int i = 0; i < 2; i++) {
        in[i] = lop_emit_cast(e, lop_emit_value(e, self->child[i]), lop_slot_dtype(e, out), &st);
        if (in[i] < 0) return st;
    }
    lop_step *s = lop_emit_step(e, "toeplitz-dense", run_dense, out, 2, in);
    if (!s) return LOP_NOMEM;
    s->scratch =
        ((size_t)lop_rows(self) + (size_t)lop_cols(self)) * lop_dtype_size(lop_slot_dtype(e, out));
    return LOP_OK;
}

static double flops(const lop_node *self, int64_t k) {
    double N = (double)(lop_rows(self) + lop_cols(self));
    return 10 * N * log2(N + 1) * (double)k;
}

static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    const lop_node *v[2] = {0};
    lop_status st = lop_rand_vector(r, dt, m, &v[0]);
    if (st == LOP_OK) st = lop_rand_vector(r, dt, n, &v[1]);
    if (st == LOP_OK) st = lop_node_make(r->ctx, &lop_op_toeplitz, NULL, 2, v, NULL, out, r->err);
    lop_node_unref(v[0]);
    lop_node_unref(v[1]);
    return st;
}

/* Both are parts of the sums along all diagonals. */
static const lop_node *vjp(lop_vjp *v, const lop_node *self, int child, const lop_node *g) {
    const int64_t m = lop_rows(self), n = lop_cols(self);
    if (m == 0 || n == 0) return lop_vjp_zeros(v, child ? n : m, g->dtype);
    const lop_node *all = lop_vjp_sums(v, g, (lopk_lines){0});
    return child ? lop_vjp_run(v, all, n - 1, -1, n) : lop_vjp_run(v, all, n - 1, 1, m);
}

const lop_op lop_op_toeplitz = {
    LOP_NAMED(toeplitz),
    .flags = LOP_FLAG_entries | LOP_FLAG_tells | LOP_FLAG_sliced_at_once | LOP_FLAG_linear |
             LOP_FLAG_by_parts,
    .title = "Toeplitz",
    .cls = LOP_OPERATOR,
    .min = 2,
    .max = 2,
    .param = {{"c", LOP_P_ARRAY, 1, NULL, "First column, shape (..., m). Borrowed."},
              {"r", LOP_P_ARRAY, 1, "None",
               "First row, shape (..., n); r[0] is not read. None means conj(c), as in "
               "scipy.linalg.toeplitz."}},
    .doc = {.brief = "A matrix with constant diagonals.",
            .extended = "Real or complex, square or not; sums of Toeplitz are Toeplitz, and so are "
                        "those with multiples of the identity.",
            .cost = "Build: O(1). Product: two FFTs of length about m + n a column; the spectrum "
                    "is kept. Memory O(m + n). Solve: a factor of O(n) memory, kept, by some "
                    "products (Hermitian with a kind spectrum) or n^2 to 40 n^2 operations; then "
                    "8 to 24 FFTs a column.",
            .notes = "Products by FFT are accurate normwise, C u log2(N) |spectrum| |x|; "
                     "pl.config(fft=False) gives the direct loops "
                     "with a componentwise bound. The kept spectrum is checked against the content "
                     "of c and r on each call. Solves and determinants of square ones are found "
                     "in double precision whatever the dtype, by the columns of the inverse "
                     "(Gohberg and Semencul); backward errors above 1e-14 are not believed: then "
                     "by LU of the dense form, as for small sizes and with fft=False.",
            .limits = "A solve that fails the check of its backward error (condition numbers "
                      "near 1e16), and a singular matrix, go by LU of the dense form, and "
                      "raise where the memory limit does not allow for that. There is no "
                      "Cholesky factor by structure. Eigenvectors of matrices that are not "
                      "Hermitian, and singular values of complex ones, take the dense form.",
            .example =
                ">>> pl.Toeplitz([1., 2., 3.]) @ np.array([1., 0., 0.])\narray([1., 2., 3.])"},
    .infer = infer,
    .vjp = vjp,
    .trait = trait,
    .apply = apply,
    .dense = dense,
    .diagonal = fill,
    .element = element,
    .flops = flops,
    .random = random_instance};
