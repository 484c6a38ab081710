/* op_banded.c: l diagonals below the main one and u above, A[i, j] = ab[u + i - j, j].
 *
 * Storage: ab of l + u + 1 rows, as scipy.linalg.solve_banded's; entries outside the matrix are not
 * used. Products by own loops, 2 (l + u + 1) n k flops. Solves by LAPACK: gbtrf's factor is kept
 * while ab keeps its content, for determinants too; assumed positive definite pbtrf and pbtrs, and
 * LU where that fails. attr.i: l, u, the assumption (LOP_ASSUME_*). */
#include "ops/projections/projections.h"
#include "expr/random_instance.h"
#include "ops/shared/scaled_pair.h"
#include "ops/shared/factor.h"
#include "kernels/band/k_band.h"
#include "kernels/dense/k_blas.h"
#include "kernels/dense/k_by_divisions.h"
#include "kernels/common/kernels.h"

#include <math.h>

static lop_status check(const lop_node *n, const lop_node *ab, lop_err *err) {
    const int64_t l = n->attr.i[0], u = n->attr.i[1];
    if (ab->op->cls == LOP_OPERATOR || ab->core != 2)
        return lop_fail(err, LOP_DIM, "%s takes a matrix of diagonals", n->op->name);
    if (l < 0 || u < 0 || l > INT64_MAX / 4 || u > INT64_MAX / 4 || lop_rows(ab) != l + u + 1)
        return lop_fail(err, LOP_DIM,
                        "l = %lld and u = %lld diagonals and the main one need as many rows of ab, "
                        "got %lld",
                        (long long)l, (long long)u, (long long)lop_rows(ab));
    return LOP_OK;
}

static lop_status infer(lop_node *n, lop_err *err) {
    const lop_node *ab = n->child[0];
    const int64_t a = n->attr.i[2];
    lop_status st = check(n, ab, err);
    if (st != LOP_OK) return st;
    if (a == LOP_ASSUME_LOWER || a == LOP_ASSUME_UPPER)
        return lop_fail(err, LOP_DIM,
                        "a Banded cannot be assumed triangular; give it no diagonals on one side");
    if (a && n->attr.i[0] != n->attr.i[1])
        return lop_fail(err, LOP_DIM,
                        "a symmetric or Hermitian matrix has as many diagonals below as above, got "
                        "%lld and %lld",
                        (long long)n->attr.i[0], (long long)n->attr.i[1]);
    n->shape = ab->shape;
    n->shape.dim[n->shape.ndim - 2] = lop_cols(ab);
    n->dtype = ab->dtype;
    n->weak = ab->weak;
    n->declared |= lop_has_named_lines(n);
    return LOP_OK;
}

static lop_truth trait(const lop_node *n, lop_trait t) {
    const int64_t a = n->attr.i[2];
    const bool real = !lop_is_complex(n->dtype), diagonal = n->attr.i[0] == 0 && n->attr.i[1] == 0,
               adjoint = a == LOP_ASSUME_HERMITIAN || a == LOP_ASSUME_POSITIVE;
    bool yes = false;
    if (t == LOP_DIAGONAL) yes = diagonal;
    if (t == LOP_POSITIVE) yes = a == LOP_ASSUME_POSITIVE;
    if (t == LOP_HERMITIAN) yes = adjoint || (real && (diagonal || a == LOP_ASSUME_SYMMETRIC));
    if (t == LOP_SYMMETRIC) yes = diagonal || a == LOP_ASSUME_SYMMETRIC || (adjoint && real);
    return yes ? LOP_TRUE : LOP_UNKNOWN;
}

static lop_status run(const lop_call *c) {
    const lop_attr *a = &c->step->attr;
    lopk_band_mm(c->a[0], a->i[0], a->i[1], c->a[2], (a->i[2] & LOP_T) != 0, (a->i[2] & LOP_C) != 0,
                 c->a[1]);
    return LOP_OK;
}
static lop_status apply(lop_emit *e, const lop_node *self, lop_mode mode, int x, int out) {
    lop_status st;
    int64_t k, batch;
    lop_slot_sizes(e, out, NULL, &k, &batch);
    int in[2] = {x,
                 lop_emit_cast(e, lop_emit_value(e, self->child[0]), lop_slot_dtype(e, out), &st)};
    if (in[1] < 0) return st;
    lop_step *s = lop_emit_step(e, "banded", run, out, 2, in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->attr.i[2] = mode;
    s->flags = LOP_STEP_COLUMNS;
    s->flops =
        2.0 * (double)lop_rows(self->child[0]) * (double)lop_rows(self) * (double)k * (double)batch;
    return LOP_OK;
}

/* Diagonal k as it lies in ab, from its element `from` on; `count` of them. */
static lop_mat line(const lop_mat *ab, int64_t u, int64_t k, int64_t from, int64_t count) {
    const int64_t row = u - k, column = from + (k > 0 ? k : 0);
    return (lop_mat){(char *)ab->p +
                         (row * ab->rs + column * ab->cs) * (int64_t)lop_dtype_size(ab->dt),
                     count,
                     1,
                     ab->cs,
                     1,
                     ab->dt};
}

static lop_status run_dense(const lop_call *c) {
    const lop_mat *y = c->a[0], *ab = c->a[1];
    const int64_t l = c->step->attr.i[0], u = c->step->attr.i[1], n = y->m;
    lopk_zero(y);
    for (int64_t k = l < n ? -l : 1 - n; k <= u && k < n; k++) {
        const lop_mat d = line(ab, u, k, 0, n - (k < 0 ? -k : k));
        lopk_set_diag(y, k, &d);
    }
    return LOP_OK;
}
static lop_status dense(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    int in = lop_emit_cast(e, lop_emit_value(e, self->child[0]), lop_slot_dtype(e, out), &st);
    if (in < 0) return st;
    lop_step *s = lop_emit_step(e, "set-diags", run_dense, out, 1, &in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    return LOP_OK;
}

/* attr.i: k, from, u, l. */
static lop_status run_part(const lop_call *c) {
    const lop_attr *a = &c->step->attr;
    if (c->a[0]->m == 0) return LOP_OK;
    if (a->i[0] > a->i[2] || -a->i[0] > a->i[3]) {
        lopk_zero(c->a[0]);
        return LOP_OK;
    }
    const lop_mat d = line(c->a[1], a->i[2], a->i[0], a->i[1], c->a[0]->m);
    lopk_copy(c->a[0], &d);
    return LOP_OK;
}
static lop_status part(lop_emit *e, const lop_node *self, int64_t k, int64_t from, int out) {
    int in = lop_emit_value(e, self->child[0]);
    lop_step *s = lop_emit_step(e, "part", run_part, out, 1, &in);
    if (!s) return LOP_NOMEM;
    s->attr = (lop_attr){.i = {k, from, self->attr.i[1], self->attr.i[0]}};
    return LOP_OK;
}
static lop_status diagonal(lop_emit *e, const lop_node *self, int64_t k, int out) {
    return part(e, self, k, 0, out);
}
static lop_status element(lop_emit *e, const lop_node *self, int64_t i, int64_t j, int out) {
    return part(e, self, j - i, i < j ? i : j, out);
}

static double flops(const lop_node *self, int64_t k) {
    return 2 * (double)lop_rows(self->child[0]) * (double)lop_rows(self) * (double)k;
}

static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    if (m != n) return LOP_UNABLE;
    lop_attr a = {.i = {lop_rng_range(&r->rng, 0, 4), lop_rng_range(&r->rng, 0, 4), 0, 0}};
    const lop_node *ab;
    lop_status st = lop_rand_matrix(r, dt, a.i[0] + a.i[1] + 1, n, &ab);
    if (st != LOP_OK) return st;
    st = lop_node_make(r->ctx, &lop_op_banded, &a, 1, &ab, NULL, out, r->err);
    lop_node_unref(ab);
    return st;
}

static lop_band bands(const lop_node *self, const lop_band *child) {
    (void)child;
    return (lop_band){self->attr.i[0], self->attr.i[1]};
}

static const lop_node *vjp(lop_vjp *v, const lop_node *self, int child, const lop_node *g) {
    (void)child;
    return lop_vjp_band(v, lop_vjp_assumed(v, g, self->attr.i[2]), self->attr.i[0],
                        self->attr.i[1]);
}

const lop_op lop_op_banded = {
    LOP_NAMED(banded),
    .flags = LOP_FLAG_band | LOP_FLAG_diagonals | LOP_FLAG_few_entries | LOP_FLAG_entries |
             LOP_FLAG_at_once | LOP_FLAG_tells | LOP_FLAG_linear,
    .title = "Banded",
    .cls = LOP_OPERATOR,
    .min = 1,
    .max = 1,
    .ints = 3,
    .param = {{"l_and_u", LOP_P_BANDS, 0, NULL,
               "How many diagonals lie below and above the main one."},
              {"ab", LOP_P_ARRAY, 2, NULL,
               "The diagonals, shape (..., l + u + 1, n): ``ab[u + i - j, j]`` is element (i, j), "
               "as in scipy.linalg.solve_banded. Borrowed."},
              {"assume_a", LOP_P_ASSUME, 2, "None",
               "What is assumed of it: 'pos', 'her', 'sym' or 'gen'. With the first three the "
               "upper half "
               "is all of it, and no function reads the rest."}},
    .doc = {.brief = "A square matrix with few diagonals.",
            .cost = "Build: O(1), no copy. Product with k columns: 2 (l + u + 1) n k flops. Solve: "
                    "about 2 l (l + u) n flops for the factor, which is kept, and 2 (2 l + u) n k.",
            .notes = "Solves by LAPACK's gbtrf, or pbtrf where assumed positive definite (LU "
                     "where that fails); by substitution where l or u is 0. Elements of ab outside "
                     "the matrix are not used.",
            .limits = "A sum with a Diag stays lazy. LU factors of stacks, and all eigenvectors of "
                      "more than three diagonals, take the dense form (some of them, by eigh(k=), "
                      "do not). A Cholesky factor that solves make is not kept.",
            .example = ">>> B = pl.Banded((1, 0), [[2., 2., 2.], [1., 1., 0.]])\n>>> "
                       "B.toarray()\narray([[2., 0., 0.],\n       [1., 2., 0.],\n       [0., 1., "
                       "2.]])"},
    .bands = bands,
    .infer = infer,
    .vjp = vjp,
    .trait = trait,
    .apply = apply,
    .dense = dense,
    .diagonal = diagonal,
    .element = element,
    .flops = flops,
    .random = random_instance};

/* -- band_solve: children ab, b; attr.i: l, u, assumption, mode of the view on A */

static lop_status infer_solve(lop_node *n, lop_err *err) {
    const lop_node *ab = n->child[0], *b = n->child[1];
    lop_status st = check(n, ab, err);
    if (st != LOP_OK) return st;
    if (b->core != 2 || lop_rows(b) != lop_cols(ab))
        return lop_fail(err, LOP_DIM, "right-hand sides that fit are needed");
    st = lop_shape_batch(&ab->shape, 2, &b->shape, 2, &n->shape, err);
    if (st != LOP_OK) return st;
    n->shape.dim[n->shape.ndim++] = lop_rows(b);
    n->shape.dim[n->shape.ndim++] = lop_cols(b);
    lop_node_promote_inverse(n, ab, b);
    return LOP_OK;
}

/* What of the band lies within n x n. */
static int64_t within(int64_t k, int64_t n) { return k < n ? k : n > 0 ? n - 1 : 0; }

/* Rows of the factor, its bytes, where the exchanges begin. */
typedef struct room {
    int64_t l, u, rows;
    size_t factor, whole;
} room;
static lop_status room_of(const lop_attr *a, int64_t n, lop_dtype dt, room *r, lop_err *err) {
    int64_t all;
    r->l = within(a->i[0], n);
    r->u = within(a->i[1], n);
    r->rows = 2 * r->l + r->u + 1;
    if (!lop_mul_ok(r->rows, n, &all) || !lop_mul_ok(all, 16, &all) || n > INT64_MAX / 64)
        return lop_fail(err, LOP_OVERFLOW, "the factor of a band of %lld rows is too large",
                        (long long)n);
    r->factor = ((size_t)r->rows * (size_t)n * lop_dtype_size(dt) + 63) & ~(size_t)63;
    r->whole = r->factor + (((size_t)n * sizeof(int64_t) + 63) & ~(size_t)63);
    return LOP_OK;
}

/* The diagonal of the factor's U, as one whose elements lie on a matrix' diagonal. */
static lop_mat pivots_of(void *factor, const room *r, int64_t n, lop_dtype dt) {
    char *first = (char *)factor + (r->l + r->u) * (int64_t)lop_dtype_size(dt);
    return (lop_mat){first, n, n, r->rows, 0, dt};
}

/* The power of two that brings the largest element of the band near one; 0 where it is no less. */
static int below_one(const lop_mat *ab, int64_t u) {
    double top = 0;
    int power = 0;
    for (int64_t j = 0; j < ab->n; j++) { /* what lies outside the matrix may be anything */
        const int64_t first = j < u ? u - j : 0, past = ab->n + u - j;
        lop_mat part = *ab;
        part.p = (char *)ab->p + (first * ab->rs + j * ab->cs) * (int64_t)lop_dtype_size(ab->dt);
        part.m = (past < ab->m ? past : ab->m) - first;
        part.n = 1;
        top = fmax(top, lopk_top(&part));
    }
    (void)frexp(top, &power);
    return power < 0 ? -power : 0;
}

/* f <- the band, with room for what fills in. */
static void copy_band(const lop_mat *f, const lop_mat *ab, const lop_attr *a, const room *r) {
    lop_mat to = *f, from = *ab;
    lopk_zero(f);
    to.p = (char *)f->p + r->l * (int64_t)lop_dtype_size(f->dt);
    from.p = (char *)ab->p + (a->i[1] - r->u) * ab->rs * (int64_t)lop_dtype_size(f->dt);
    to.m = from.m = r->l + r->u + 1;
    lopk_copy(&to, &from);
}

/* A triangle below the diagonal is its own factor, as the transpose of one above it (in which
 * LAPACK finds nothing to exchange): exchanges of rows lose digits where their sizes differ. */
static bool is_lower(const room *r) { return r->u == 0 && r->l > 0; }
static void turn_band(const lop_mat *f, const lop_mat *ab, int64_t l, int64_t *ipiv) {
    const int64_t size = (int64_t)lop_dtype_size(f->dt), n = f->n;
    lopk_zero(f);
    for (int64_t k = 0; k <= l; k++) {
        lop_mat to = *f, from = *ab;
        to.p = (char *)f->p + (l - k + k * f->cs) * size;
        from.p = (char *)ab->p + k * ab->rs * size;
        to.m = from.m = 1;
        to.n = from.n = n - k;
        lopk_copy(&to, &from);
    }
    for (int64_t j = 0; j < n; j++) ipiv[j] = j + 1;
}

/* A zero pivot is no failure here: whoever divides by it looks. Where pivots have no reciprocals
 * the band is factored by divisions, near one, and the rows of U are brought back. */
static lop_status run_gbtrf(const lop_call *c) {
    const lop_mat *ab = c->a[1];
    const lop_attr *a = &c->step->attr;
    room r;
    int64_t n = ab->n, info = 0;
    lop_status st = room_of(a, n, ab->dt, &r, c->err);
    if (st != LOP_OK) return st;
    lop_mat f = {c->a[0]->p, r.rows, n, 1, r.rows, ab->dt}, upper = f;
    int64_t *ipiv = (int64_t *)(void *)((char *)f.p + r.factor);
    if (is_lower(&r)) {
        turn_band(&f, ab, r.l, ipiv);
        return LOP_OK;
    }
    copy_band(&f, ab, a, &r);
    st = lopk_gbtrf(&f, r.l, r.u, ipiv, &info);
    if ((st == LOP_OK || st == LOP_SINGULAR) && lopk_band_lu_is_spoilt(&f, r.l, r.u)) {
        const int up = below_one(ab, a->i[1]);
        copy_band(&f, ab, a, &r);
        if (up) lopk_shift_range(&f, up);
        lopk_band_lu_by_divisions(&f, r.l, r.u, ipiv, &info);
        upper.m = r.l + r.u + 1;
        if (up) lopk_shift_range(&upper, -up);
        return LOP_OK;
    }
    if (st == LOP_SINGULAR) return LOP_OK;
    return st == LOP_OVERFLOW
               ? lop_fail(c->err, st, "LAPACK takes no band of %lld columns", (long long)n)
               : st;
}

/* Through a column-major copy in scratch, at `at` there; `flip`: conj(A)^-1 b = conj(A^-1 conj b).
 */
static lop_mat copy_in(const lop_call *c, size_t at, const lop_mat *b, bool flip) {
    lop_mat x = {(char *)c->scratch + at, b->m, b->n, 1, b->m > 0 ? b->m : 1, b->dt};
    if (flip)
        lopk_conj(&x, b);
    else
        lopk_copy(&x, b);
    return x;
}
static void copy_out(const lop_mat *y, const lop_mat *x, bool flip) {
    if (flip)
        lopk_conj(y, x);
    else
        lopk_copy(y, x);
}

static lop_status run_gbtrs(const lop_call *c) {
    static const char trans[4] = {'N', 'T', 'N', 'C'}, turned[4] = {'T', 'N', 'T', 'N'};
    const lop_mat *y = c->a[0];
    const int64_t mode = c->step->attr.i[3];
    room r;
    lop_status st = room_of(&c->step->attr, y->m, y->dt, &r, c->err);
    if (st != LOP_OK) return st;
    const bool lower = is_lower(&r), flip = mode == LOP_C || (lower && mode == LOP_H);
    const int64_t l = lower ? 0 : r.l, u = lower ? r.l : r.u;
    const char how = lower ? turned[mode] : trans[mode];
    const lop_mat f = {c->a[1]->p, r.rows, y->m, 1, r.rows, y->dt},
                  d = pivots_of(c->a[1]->p, &r, y->m, y->dt);
    const int64_t zero = lopk_diag_has_zero(&d);
    if (zero >= 0)
        return lop_fail(c->err, LOP_SINGULAR, "Singular matrix: pivot %lld of %lld is exactly zero",
                        (long long)zero + 1, (long long)y->m);
    const lop_mat x = copy_in(c, 0, c->a[2], flip);
    const int64_t *ipiv = (const int64_t *)(void *)((char *)f.p + r.factor);
    if (lop_is_complex(f.dt) && lopk_diag_is_tiny(&d)) /* by reciprocals; real ones divide */
        lopk_substitute_band(&f, l, u, ipiv, how, &x);
    else
        st = lopk_gbtrs(&f, l, u, ipiv, how, &x);
    if (st != LOP_OK) return st;
    copy_out(y, &x, flip);
    lop_note_pivots(c, &d, false, y, c->a[2]);
    return LOP_OK;
}

/* Up to so many diagonals above the main one the own loop is faster than LAPACK's blocks; measured
 * 2026-11-21 at n = 1e5 on an AMD EPYC (Zen 3), one thread. */
enum { NARROW = 16 };

/* By the range of the pivots of L D L^H, and by what b has grown to. */
static void note_definite(const lop_call *c, double least, double most, const lop_mat *b) {
    const double eps = lopk_eps(c->a[0]->dt);
    lop_call_near(c, lopk_range_ratio(least, most), eps);
    lop_call_near(c, lopk_outgrown(c->a[0], b, most), eps);
}

/* The upper half, its Cholesky factor, the solve; A^T is conj(A). */
static lop_status run_pbsv(const lop_call *c) {
    const lop_mat *y = c->a[0], *ab = c->a[1];
    const lop_attr *a = &c->step->attr;
    const bool flip = a->i[3] == LOP_T || a->i[3] == LOP_C;
    double least, most;
    room r;
    int64_t info;
    lop_status st = room_of(a, y->m, y->dt, &r, c->err);
    if (st != LOP_OK) return st;
    lop_mat f = {c->scratch, r.u + 1, y->m, 1, r.u + 1, y->dt}, from = *ab;
    from.p = (char *)ab->p + (a->i[1] - r.u) * ab->rs * (int64_t)lop_dtype_size(f.dt);
    from.m = r.u + 1;
    if (r.u <= NARROW) {
        lopk_copy(y, c->a[2]);
        st = lopk_pbsv(&from, flip, c->scratch, y, &info);
        if (st != LOP_OK || y->n == 0) return st;
        lopk_twist_range(c->scratch, y->m, r.u, y->dt, &least, &most);
        note_definite(c, least, most, c->a[2]);
        return LOP_OK;
    }
    lopk_copy(&f, &from);
    st = lopk_pbtrf(&f, 'U', &info);
    if (st != LOP_OK) return st;
    const lop_mat d = {
        (char *)f.p + r.u * (int64_t)lop_dtype_size(f.dt), y->m, y->m, f.cs, 0, f.dt};
    const lop_mat x = copy_in(c, r.factor, c->a[2], flip);
    st = lopk_pbtrs(&f, &x);
    if (st != LOP_OK) return st;
    copy_out(y, &x, flip);
    lopk_pivot_range(&d, &least, &most); /* roots */
    note_definite(c, least * least, most * most, c->a[2]);
    return LOP_OK;
}

/* The factor of all at once, where a Cholesky has failed. */
static lop_status run_gbsv(const lop_call *c) {
    room r;
    lop_status st = room_of(&c->step->attr, c->a[0]->m, c->a[0]->dt, &r, c->err);
    if (st != LOP_OK) return st;
    lop_mat f = {c->scratch, 0, 0, 1, 1, LOP_u8};
    lop_call factor = *c, back = *c;
    factor.a[0] = &f;
    st = run_gbtrf(&factor);
    if (st != LOP_OK) return st;
    back.a[1] = &f;
    back.scratch = (char *)c->scratch + r.whole;
    return run_gbtrs(&back);
}

/* The slot of gbtrf's factor of slot `ab`; -1 with the status in *st. */
static int emit_factor(lop_emit *e, const lop_node *self, const room *r, int ab, lop_status *st) {
    const lop_attr shape = {.i = {self->attr.i[0], self->attr.i[1], 0, 0}};
    const double n = (double)lop_cols(self->child[0]);
    const double work = 2.0 * (double)r->l * (double)(r->l + r->u + 1) * n;
    return lop_emit_derived(e, "gbtrf", run_gbtrf, r->whole, 1, &ab, &shape, 0, work, st);
}

static bool by_cholesky(const lop_node *self) {
    return self->attr.i[2] == LOP_ASSUME_POSITIVE || self->attr.i[2] >= LOP_ASSUME_TRIED;
}
static lop_step *one_step(lop_emit *e, const lop_node *self, const char *name, lop_run how, int out,
                          const int *in, size_t scratch) {
    lop_step *s = lop_emit_step(e, name, how, out, 2, in);
    if (!s) return NULL;
    s->attr = self->attr;
    s->scratch = scratch;
    s->flops =
        2.0 * (double)lop_rows(self->child[0]) * (double)lop_rows(self) * (double)lop_cols(self);
    return s;
}
static lop_status lower_solve(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    int in[2] = {-1, -1};
    for (int i = 0; i < 2; i++) {
        in[i] = lop_emit_cast(e, lop_emit_value(e, self->child[i]), self->dtype, &st);
        if (in[i] < 0) return st;
    }
    int64_t n = lop_rows(self), k = lop_cols(self), count;
    room r;
    st = room_of(&self->attr, n, self->dtype, &r, lop_emit_err(e));
    if (st != LOP_OK) return st;
    if (!lop_mul_ok(n, k, &count) || !lop_mul_ok(count, 16, &count))
        return lop_fail(lop_emit_err(e), LOP_OVERFLOW, NULL);
    size_t x = (size_t)n * (size_t)k * lop_dtype_size(self->dtype);
    if (by_cholesky(self)) {
        int mask = lop_emit_mask(e, out, &st);
        if (mask < 0) return st;
        lop_step *s = one_step(e, self, "pbsv", run_pbsv, out, in, r.factor + x);
        if (!s) return LOP_NOMEM;
        s->fail = mask;
        if (self->attr.i[2] == LOP_ASSUME_TRIED) s->flags |= LOP_STEP_QUIET;
        s = one_step(e, self, "gbsv", run_gbsv, out, in, r.whole + x);
        if (!s) return LOP_NOMEM;
        s->when = mask;
        s->when_set = true;
        return LOP_OK;
    }
    in[0] = emit_factor(e, self, &r, in[0], &st);
    if (in[0] < 0) return st;
    return one_step(e, self, "gbtrs", run_gbtrs, out, in, x) ? LOP_OK : LOP_NOMEM;
}
const lop_op lop_op_band_solve = {
    LOP_NAMED(band_solve), .cls = LOP_ARRAY,    .min = 2, .max = 2, .ints = 4,
    .infer = infer_solve,  .lower = lower_solve};

/* -- banded_det: child ab; attributes as the kind's. The factor is the one of the solves. Further
 * children are determinants of what was assumed positive definite, which fail where it is not. */

static lop_status infer_det(lop_node *n, lop_err *err) {
    const lop_node *ab = n->child[0];
    lop_status st = check(n, ab, err);
    if (st == LOP_OK) st = lop_assumed_infer(n, 1, err);
    if (st == LOP_OK && !lop_is_blas(ab->dtype))
        st = lop_fail(err, LOP_DTYPE, "%s takes diagonals of floats", n->op->name);
    return st == LOP_OK ? lop_pair_infer(n, &ab->shape, 2, ab->dtype) : st;
}

static lop_pair of_factor(void *factor, const room *r, int64_t n, lop_dtype dt) {
    const lop_mat d = pivots_of(factor, r, n, dt);
    const int64_t *ipiv = (const int64_t *)(void *)((char *)factor + r->factor);
    lop_pair a = lop_pair_product(&d);
    for (int64_t i = 0; i < n; i++)
        if (ipiv[i] != i + 1) a = (lop_pair){-a.re, -a.im, a.e};
    return a;
}
/* attr.i of these: l, u, dtype, size. */
static lop_status run_det(const lop_call *c) {
    const lop_attr *a = &c->step->attr;
    room r;
    lop_status st = room_of(a, a->i[3], (lop_dtype)a->i[2], &r, c->err);
    if (st != LOP_OK) return st;
    lop_pair_store(c->a[0], of_factor(c->a[1]->p, &r, a->i[3], (lop_dtype)a->i[2]));
    return LOP_OK;
}
static lop_status run_det_direct(const lop_call *c) {
    const lop_mat f = {c->scratch, 0, 0, 1, 1, LOP_u8};
    lop_call factor = *c, rest = *c;
    factor.a[0] = rest.a[1] = &f;
    lop_status st = run_gbtrf(&factor);
    return st == LOP_OK ? run_det(&rest) : st;
}
static lop_status run_det_positive(const lop_call *c) {
    const lop_mat *ab = c->a[1];
    const lop_attr *a = &c->step->attr;
    room r;
    int64_t info;
    lop_status st = room_of(a, ab->n, ab->dt, &r, c->err);
    if (st != LOP_OK) return st;
    const lop_mat f = {c->scratch, r.u + 1, ab->n, 1, r.u + 1, ab->dt};
    lop_mat from = *ab;
    from.p = (char *)ab->p + (a->i[1] - r.u) * ab->rs * (int64_t)lop_dtype_size(f.dt);
    from.m = r.u + 1;
    lopk_copy(&f, &from);
    st = lopk_pbtrf(&f, 'U', &info);
    if (st == LOP_OVERFLOW)
        return lop_fail(c->err, st, "LAPACK takes no band of %lld columns", (long long)ab->n);
    if (st != LOP_OK) return st;
    const lop_mat d = {(char *)f.p + r.u * (int64_t)lop_dtype_size(f.dt), f.n, 1, r.u + 1, 1, f.dt};
    const lop_pair l = lop_pair_product(&d);
    lop_pair_store(c->a[0], lop_pair_times(l, l, lop_is_complex(f.dt)));
    return LOP_OK;
}
static lop_status lower_det(lop_emit *e, const lop_node *self, int out) {
    const lop_node *ab = self->child[0];
    const lop_attr how = {.i = {self->attr.i[0], self->attr.i[1], ab->dtype, lop_cols(ab)}};
    const int64_t word = self->attr.i[2];
    const bool positive = by_cholesky(self);
    int in[1 + LOP_ASSUMED_TERMS] = {lop_emit_value(e, ab)}, mask = -1;
    room r;
    lop_status st = room_of(&self->attr, lop_cols(ab), ab->dtype, &r, lop_emit_err(e));
    if (st != LOP_OK) return st;
    if (positive) {
        if (word != LOP_ASSUME_ALONE) mask = lop_emit_mask(e, out, &st);
        if (st != LOP_OK) return st;
        lop_step *s = lop_emit_step(e, "pbtrf", run_det_positive, out, 1, in);
        if (!s) return LOP_NOMEM;
        s->attr = how;
        s->fail = mask;
        if (word == LOP_ASSUME_TRIED) s->flags |= LOP_STEP_QUIET;
        s->scratch = r.factor;
        s->flops = (double)r.u * (double)(r.u + 1) * (double)lop_cols(ab);
        if (word == LOP_ASSUME_ALONE) return LOP_OK;
    } else {
        in[0] = emit_factor(e, self, &r, in[0], &st);
        if (in[0] < 0) return st;
    }
    for (int i = 1; i < self->n; i++) in[i] = lop_emit_value(e, self->child[i]);
    lop_step *s =
        lop_emit_step(e, "banded_det", positive ? run_det_direct : run_det, out, self->n, in);
    if (!s) return LOP_NOMEM;
    s->attr = how;
    s->when = mask;
    s->when_set = positive;
    s->scratch = positive ? r.whole : 0;
    return LOP_OK;
}
const lop_op lop_op_banded_det = {
    LOP_NAMED(banded_det), .cls = LOP_ARRAY,  .min = 1, .max = 1 + LOP_ASSUMED_TERMS, .ints = 3,
    .infer = infer_det,    .lower = lower_det};
