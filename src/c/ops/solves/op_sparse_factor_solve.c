/* op_sparse_factor_solve.c: what is solved by a sparse factor made outside the core
 * (sparse_solver.h).
 *
 * sparse_solve   children A (an operator), b, alt: mode(A)^-1 b, mode = attr.i[0]
 * sparse_det     children A, alt: det A as a pair
 * sparsediag    children A, alt: diagonal attr.i[0] of A^-1, by selected inversion
 * sparsetrace   children A, B, alt: tr(A^-1 B), from the entries of A^-1 where B^T has some
 * sparseentries  children A, p, q, alt: the entries of A^-1 at the places that the vectors p, q
 *                name; attr.i[0]: CSR, CSC or COO (lop_places)
 * sparserows    children A, P = [U W], alt: u_i A^-1 w_i of each row, the diagonal of U A^-1 W^T
 *
 * The factor is kept while the arrays of A keep their content, and is one for all of these. alt
 * goes by the dense form: it runs where the solver declines, or its answer has a backward error
 * beyond the bound. Cost: the factor's flops depend on the fill; a solve is 4 nnz(L) k. */
#include "ops/shared/sparse_solver.h"

#include "ops/shared/scaled_pair.h"
#include "ops/shared/factor.h"
#include "expr/coefficients.h"

#include <math.h>
#include <string.h>

/* -- what is sparse */

static double sum_of(const lop_node *a, double (*of)(const lop_node *, int *), int *terms) {
    double all = 0;
    for (int i = 0; i < a->n; i++) {
        const double one = of(a->child[i], terms);
        if (one < 0) return -1;
        all += one;
    }
    return all;
}
static double product_of(const lop_node *a, double (*of)(const lop_node *, int *), int *terms) {
    double all = 1;
    for (int i = 0; i < a->n; i++) {
        const double one = of(a->child[i], terms);
        if (one < 0) return -1;
        all *= one;
    }
    return all;
}

static double entries(const lop_node *a, int *terms);

/* A^p by the same reckoning. */
static double of_power(const lop_node *a, int *terms) {
    const double one = entries(a->child[0], terms), n = (double)lop_rows(a);
    if (one < 0 || n == 0) return one;
    return a->attr.i[0] == 0 ? n : n * pow(one / n, (double)a->attr.i[0]);
}
/* Rows or columns of A, each with the mean number of entries. */
static double of_slice(const lop_node *a, int *terms) {
    const lop_node *of = a->child[0];
    const double all = entries(of, terms);
    if (all < 0 || a->attr.i[0] > 1) return -1;
    const double before = a->attr.i[0] == 0 ? (double)lop_rows(of) : (double)lop_cols(of),
                 taken = a->attr.i[0] == 0 ? (double)lop_rows(a) : (double)lop_cols(a);
    return before > 0 ? all * (taken / before) : 0;
}

static double of_composite(const lop_node *a, int *terms) {
    const double n = (double)lop_rows(a);
    if (a->op == &lop_op_sum || a->op == &lop_op_blockdiag || a->op == &lop_op_block)
        return sum_of(a, entries, terms);
    if (a->op == &lop_op_view || a->op == &lop_op_scaled || a->op == &lop_op_part ||
        a->op == &lop_op_sparsetriangular)
        return entries(a->child[0], terms);
    if (a->op == &lop_op_kron) return product_of(a, entries, terms);
    if (a->op == &lop_op_prod) { /* each entry meets the mean row */
        const double both = product_of(a, entries, terms), inner = (double)lop_cols(a->child[0]);
        return both < 0 || inner == 0 ? both : both / inner;
    }
    if (a->op == &lop_op_power) return of_power(a, terms);
    if (a->op == &lop_op_sliced) return of_slice(a, terms);
    if (a->op != &lop_op_kronsum) return -1;
    double all = 0;
    for (int i = 0; i < a->n; i++) {
        const double one = entries(a->child[i], terms), m = (double)lop_rows(a->child[i]);
        if (one < 0) return -1;
        all += m > 0 ? one * (n / m) : 0;
    }
    return all;
}

static bool is_composite(const lop_op *op) {
    return op == &lop_op_sum || op == &lop_op_blockdiag || op == &lop_op_block ||
           op == &lop_op_view || op == &lop_op_scaled || op == &lop_op_kron || op == &lop_op_prod ||
           op == &lop_op_kronsum || op == &lop_op_part || op == &lop_op_power ||
           op == &lop_op_sliced || op == &lop_op_sparsetriangular;
}

static double of_kind(const lop_node *a) {
    const double m = (double)lop_rows(a), n = (double)lop_cols(a);
    if (a->op == &lop_op_sparse) return (double)lop_cols(a->child[0]);
    if (a->op == &lop_op_selection) return m;
    if (a->op == &lop_op_diag || a->op == &lop_op_identity || a->op == &lop_op_permutation ||
        a->op == &lop_op_offdiag)
        return m < n ? m : n;
    if (a->op == &lop_op_zeros) return 0;
    if (a->op == &lop_op_tridiagonal) return 3 * n;
    if (a->op == &lop_op_banded) return (double)(a->attr.i[0] + a->attr.i[1] + 1) * n;
    if (a->op == &lop_op_blocktridiagonal)
        return (double)lop_cols(a->child[1]) + 2 * (double)lop_cols(a->child[0]);
    if (a->op == &lop_op_dense && a->attr.i[0] == LOP_ASSUME_GENERAL) return m * n;
    if (a->op == &lop_op_laplacian) return (2 * (double)a->n + 1) * n;
    if (a->op == &lop_op_difference) return ((double)a->attr.i[1] + 2) * m;
    if (a->op == &lop_op_convolution) { /* each tap once a row, or a column */
        double taps = 1;
        for (int l = 0; l < a->child[1]->shape.ndim; l++) taps *= (double)a->child[1]->shape.dim[l];
        return taps * (m < n ? m : n);
    }
    return -1;
}

/* Depth is bounded with the number of terms. */
static double entries(const lop_node *a, int *terms) {
    if (++*terms > LOP_SPARSE_TERMS || a->op->cls != LOP_OPERATOR || lop_nbatch(a)) return -1;
    if (is_composite(a->op)) return of_composite(a, terms);
    *terms += a->n;
    return *terms > LOP_SPARSE_TERMS ? -1 : of_kind(a);
}
double lop_sparse_entries(const lop_node *a) {
    int terms = 0;
    return entries(a, &terms);
}

/* From so many rows on a factor made outside is quicker than LU of the dense form, whose n^3 is
 * little there; and fuller matrices fill in. Measured 2026-11-21 on an AMD EPYC (Zen 3), one
 * thread, by benchmarks/sparse.py. */
enum { FEWEST = 400, ROOM = 16 };

static bool only_diagonal(const lop_node *a) {
    while (a->op == &lop_op_view || a->op == &lop_op_scaled) a = a->child[0];
    return a->op != &lop_op_sparse && a->op != &lop_op_laplacian && a->op != &lop_op_difference &&
           a->op != &lop_op_convolution && !is_composite(a->op);
}
/* A sparse matrix of integers, as a design of zeros and ones is, is one of floats here: what is
 * factored counts as such from its leaves on. */
static bool floats(const lop_node *a) {
    if (a->op == &lop_op_sparse) return true;
    if (a->n == 0) return a->weak || lop_is_blas(a->dtype);
    const bool indexed =
        a->op == &lop_op_permutation || a->op == &lop_op_selection || a->op == &lop_op_sliced;
    for (int i = 0; i < a->n; i++) {
        const lop_node *c = a->child[i];
        if (c->op->cls == LOP_OPERATOR
                ? !floats(c)
                : !lop_is_blas(c->dtype) && c->op != &lop_op_sizes && !indexed)
            return false;
    }
    return true;
}
static bool pays(const lop_node *a) {
    const lop_sparse *s = a->ctx->sparse;
    if (!s || a->op->cls != LOP_OPERATOR || a->core != 2 || !lop_is_square(a)) return false;
    if (lop_rows(a) < (s->fewest ? s->fewest : FEWEST)) return false;
    const double n = (double)lop_rows(a), some = lop_sparse_entries(a);
    const lop_node *in = a->op == &lop_op_view ? a->child[0] : a;
    if (some < 0 || (!s->fewest && some * ROOM > n * n)) return false;
    return (in->op == &lop_op_sparse || floats(a)) && s->ready(s);
}

bool lop_sparse_pays(const lop_node *a) { return !only_diagonal(a) && pays(a); }

static bool has_own_inverse(const lop_node *a) {
    while (a->op == &lop_op_view || a->op == &lop_op_scaled) a = a->child[0];
    return a->op == &lop_op_diag || a->op == &lop_op_identity || a->op == &lop_op_permutation ||
           a->op == &lop_op_kron || a->op == &lop_op_blockdiag || a->op == &lop_op_zeros;
}
bool lop_sparse_selects(const lop_node *a) { return !has_own_inverse(a) && pays(a); }

/* -- the program */

enum { RE_WORD = 6 }; /* of a term: sparse_solver.h */
typedef struct program {
    int64_t word[LOP_SPARSE_TERMS * LOP_SPARSE_WORDS];
    int n, in[LOP_MAXARG], nin, most;
    lop_data_number number[LOP_SPARSE_TERMS]; /* coefficients among the words */
    int numbers;
} program;

static int64_t bits(double v) {
    int64_t out;
    memcpy(&out, &v, sizeof out);
    return out;
}

/* False: it is none, or takes more inputs than a step has. */
static bool write_term(lop_emit *e, const lop_node *a, program *p) {
    int64_t w[LOP_SPARSE_WORDS] = {-1, 0};
    if (a->op == &lop_op_sizes) {
        w[0] = -2;
        w[1] = a->shape.ndim;
        memcpy(w + 2, a->shape.dim, (size_t)a->shape.ndim * sizeof *w);
    } else if (a->op->cls != LOP_OPERATOR) {
        const int slot = lop_emit_value(e, a);
        int at = 0;
        while (at < p->nin && p->in[at] != slot) at++;
        if (at == p->most || lop_nbatch(a)) return false;
        if (at == p->nin) p->in[p->nin++] = slot;
        w[1] = at;
    } else {
        const int64_t own[LOP_SPARSE_WORDS] = {
            a->op->id,    a->n,         a->attr.i[0],     a->attr.i[1],
            a->attr.i[2], a->attr.i[3], bits(a->attr.re), bits(a->attr.im),
            lop_rows(a),  lop_cols(a),  a->dtype};
        for (int i = 0; i < a->n; i++)
            if (!write_term(e, a->child[i], p)) return false;
        memcpy(w, own, sizeof w);
        if (p->n < LOP_SPARSE_TERMS && a->attr.num)
            p->number[p->numbers++] =
                (lop_data_number){p->n * LOP_SPARSE_WORDS + RE_WORD, a->attr.num};
    }
    if (p->n == LOP_SPARSE_TERMS) return false;
    memcpy(p->word + p->n++ * LOP_SPARSE_WORDS, w, sizeof w);
    return true;
}

/* -- steps */

static const lop_sparse *solver(const lop_call *c) { return c->step->origin->ctx->sparse; }

static lop_status run_factor(const lop_call *c) {
    const lop_sparse *s = solver(c);
    return s ? s->run(s, c, LOP_SPARSE_FACTOR) : LOP_OK;
}
/* Where no factor could be had the dense form serves. */
static lop_status ask(const lop_call *c, lop_asked what) {
    const lop_sparse *s = solver(c);
    const lop_foreign *f = c->a[1]->p;
    lop_status st = s && f->object ? s->run(s, c, what) : LOP_SINGULAR;
    if (st != LOP_OK) lopk_zero(c->a[0]);
    return st;
}
static lop_status run_solve(const lop_call *c) { return ask(c, LOP_SPARSE_SOLVE); }
static lop_status run_det(const lop_call *c) { return ask(c, LOP_SPARSE_DET); }
static lop_status run_diagonal(const lop_call *c) { return ask(c, LOP_SPARSE_DIAGONAL); }
static lop_status run_trace(const lop_call *c) { return ask(c, LOP_SPARSE_TRACE); }

static lop_status run_rows(const lop_call *c) { return ask(c, LOP_SPARSE_ROWS); }
static lop_status run_entries(const lop_call *c) { return ask(c, LOP_SPARSE_ENTRIES); }

/* The dense form of a matrix that is singular itself does not serve where it is a part of what is
 * asked about, as a graph's Laplacian is beside a constant: that goes its other way. */
static lop_status run_singular(const lop_call *c) {
    const lop_sparse *s = solver(c);
    const lop_foreign *f = c->a[1]->p;
    *(unsigned char *)c->a[0]->p = 0;
    if (!*(const unsigned char *)c->a[2]->p) return LOP_OK; /* it had an answer */
    return s && f->object ? s->run(s, c, LOP_SPARSE_SINGULAR) : LOP_OK;
}

static lop_status run_refuse(const lop_call *c) {
    lopk_zero(c->a[0]);
    return LOP_SINGULAR;
}

/* The slot of A's factor; -1 with UNABLE in *st where it has no program here. */
static int emit_factor(lop_emit *e, const lop_node *a, lop_status *st) {
    program p = {.most = LOP_MAXARG - 1};
    const double some = lop_sparse_entries(a);
    *st = LOP_UNABLE;
    if (some < 0 || !a->ctx->sparse || !write_term(e, a, &p)) return -1;
    const int out = lop_emit_derived_numbers(
        e, a->ctx->sparse->name, run_factor, sizeof(lop_foreign), p.nin, p.in, p.word,
        p.n * LOP_SPARSE_WORDS, p.number, p.numbers, 100 * some, st);
    if (out >= 0) lop_emit_foreign(e, out);
    return out;
}

/* Is it made of what was asked about alone, and singular where that is? */
static bool is_whole(const lop_node *self) {
    return (self->op == &lop_op_sparse_solve || self->op == &lop_op_sparsediag) && self->attr.i[1];
}
static lop_status emit_answer(lop_emit *e, const lop_node *self, const char *name, lop_run run,
                              int value, int mask, int nin, const int *in, double flops) {
    lop_step *s = lop_emit_step(e, name, run, value, nin, in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->fail = mask;
    s->flags = is_whole(self) ? LOP_STEP_QUIET | LOP_STEP_WHOLE : LOP_STEP_QUIET;
    s->flops = flops;
    return LOP_OK;
}
static lop_status emit_way_out(lop_emit *e, int value, int mask, int factor) {
    lop_status st = LOP_OK;
    if (!lop_emit_is_within(e)) return LOP_OK;
    const int flag = lop_emit_mask(e, value, &st), in[2] = {factor, mask};
    lop_step *s =
        st == LOP_OK ? lop_emit_step(e, "sparse-singular", run_singular, flag, 2, in) : NULL;
    if (!s) return st == LOP_OK ? LOP_NOMEM : st;
    s->flags = LOP_STEP_OUTWARD;
    return LOP_OK;
}
static lop_status refuse(lop_emit *e, const lop_node *self, int value, int mask) {
    return emit_answer(e, self, "no-sparse", run_refuse, value, mask, 0, NULL, 0);
}

/* -- sparse_solve */

static lop_status infer_solve(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0], *b = n->child[1], *alt = n->child[2];
    if (a->op->cls != LOP_OPERATOR || a->core != 2 || lop_nbatch(a) || !lop_is_square(a) ||
        b->core != 2 || lop_rows(b) != lop_rows(a) || !lop_is_blas(alt->dtype) ||
        !lop_shape_equal(&b->shape, &alt->shape))
        return lop_fail(err, LOP_DIM, "sparse_solve takes a square operator and what it fits");
    n->shape = alt->shape;
    n->dtype = alt->dtype;
    return LOP_OK;
}
static lop_status check_solve(lop_emit *e, const lop_node *self, int value, int mask) {
    lop_status st;
    int in[2] = {emit_factor(e, self->child[0], &st), -1};
    if (in[0] < 0) return st == LOP_UNABLE ? refuse(e, self, value, mask) : st;
    in[1] = lop_emit_cast(e, lop_emit_value(e, self->child[1]), self->dtype, &st);
    if (in[1] < 0) return st;
    const double some = lop_sparse_entries(self->child[0]);
    int64_t k, batch;
    lop_slot_sizes(e, value, NULL, &k, &batch);
    st = emit_answer(e, self, "sparse-solve", run_solve, value, mask, 2, in,
                     20 * some * (double)k * (double)batch);
    return st == LOP_OK && !is_whole(self) ? emit_way_out(e, value, mask, in[0]) : st;
}
const lop_op lop_op_sparse_solve = {LOP_NAMED(sparse_solve),
                                    .cls = LOP_ACTION,
                                    .min = 3,
                                    .max = 3,
                                    .ints = 2, /* mode; of the whole */
                                    .infer = infer_solve,
                                    .lower = lop_lower_arms,
                                    .check = check_solve};

/* -- sparse_det */

static lop_status infer_det(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0], *alt = n->child[1];
    if (a->op->cls != LOP_OPERATOR || a->core != 2 || lop_nbatch(a) || !lop_is_square(a) ||
        !lop_node_is_pair(alt) || lop_nbatch(alt))
        return lop_fail(err, LOP_DIM, "sparse_det takes a square operator and a pair");
    n->shape = alt->shape;
    n->core = alt->core;
    n->dtype = alt->dtype;
    return LOP_OK;
}
static lop_status check_det(lop_emit *e, const lop_node *self, int value, int mask) {
    lop_status st;
    const int in = emit_factor(e, self->child[0], &st);
    if (in < 0) return st == LOP_UNABLE ? refuse(e, self, value, mask) : st;
    return emit_answer(e, self, "sparse-det", run_det, value, mask, 1, &in,
                       (double)lop_rows(self->child[0]));
}
const lop_op lop_op_sparse_det = {
    LOP_NAMED(sparse_det), .cls = LOP_ACTION,       .min = 2,          .max = 2,
    .infer = infer_det,    .lower = lop_lower_arms, .check = check_det};

/* -- sparsediag, sparsetrace */

static lop_status infer_part(lop_node *n, lop_err *err) {
    const lop_node *alt = n->child[n->n - 1];
    for (int i = 0; i < n->n - 1; i++)
        if (n->child[i]->op->cls != LOP_OPERATOR || n->child[i]->core != 2 ||
            lop_nbatch(n->child[i]) || !lop_is_square(n->child[i]) ||
            lop_rows(n->child[i]) != lop_rows(n->child[0]))
            return lop_fail(err, LOP_DIM, "%s takes square operators of one size", n->op->name);
    if (lop_nbatch(alt) || alt->core != 3 - n->n || !lop_is_blas(alt->dtype) ||
        (alt->core && lop_cols(alt) != lop_diag_length(lop_rows(n->child[0]), lop_cols(n->child[0]),
                                                       n->attr.i[0])))
        return lop_fail(err, LOP_DIM, "the branches of %s differ", n->op->name);
    n->shape = alt->shape;
    n->core = alt->core;
    n->dtype = alt->dtype;
    return LOP_OK;
}
/* Some 20 flops for each pair of entries in a column of L. */
static double selected(const lop_node *a) { return 500 * lop_sparse_entries(a); }

static lop_status check_diagonal(lop_emit *e, const lop_node *self, int value, int mask) {
    lop_status st;
    const int in = emit_factor(e, self->child[0], &st);
    if (in < 0) return st == LOP_UNABLE ? refuse(e, self, value, mask) : st;
    st = emit_answer(e, self, "selected-inverse", run_diagonal, value, mask, 1, &in,
                     selected(self->child[0]));
    return st == LOP_OK && !is_whole(self) ? emit_way_out(e, value, mask, in) : st;
}
const lop_op lop_op_sparsediag = {LOP_NAMED(sparsediag),
                                  .cls = LOP_ACTION,
                                  .min = 2,
                                  .max = 2,
                                  .ints = 2, /* which; of the whole */
                                  .infer = infer_part,
                                  .lower = lop_lower_arms,
                                  .check = check_diagonal};

/* Of A, and of what the second child's program says. */
static lop_status check_trace(lop_emit *e, const lop_node *self, int value, int mask) {
    lop_status st;
    program p = {.most = LOP_MAXARG - 2};
    int in[LOP_MAXARG] = {emit_factor(e, self->child[0], &st)};
    if (in[0] < 0) return st == LOP_UNABLE ? refuse(e, self, value, mask) : st;
    if (!write_term(e, self->child[1], &p)) return refuse(e, self, value, mask);
    memcpy(in + 1, p.in, (size_t)p.nin * sizeof *in);
    st = emit_answer(e, self, "selected-inverse",
                     self->op == &lop_op_sparserows ? run_rows : run_trace, value, mask, p.nin + 1,
                     in, selected(self->child[0]));
    if (st == LOP_OK)
        st = lop_emit_data_numbers(e, p.word, p.n * LOP_SPARSE_WORDS, p.number, p.numbers);
    return st == LOP_OK ? emit_way_out(e, value, mask, in[0]) : st;
}
const lop_op lop_op_sparsetrace = {LOP_NAMED(sparsetrace),
                                   .cls = LOP_ACTION,
                                   .min = 3,
                                   .max = 3,
                                   .infer = infer_part,
                                   .operators = 2,
                                   .lower = lop_lower_arms,
                                   .check = check_trace};

/* -- sparserows */

static lop_status infer_rows(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0], *p = n->child[1], *alt = n->child[2];
    if (a->op->cls != LOP_OPERATOR || a->core != 2 || lop_nbatch(a) || !lop_is_square(a) ||
        p->op->cls != LOP_OPERATOR || p->core != 2 || lop_nbatch(p) ||
        lop_cols(p) != 2 * lop_rows(a) || alt->core != 1 || lop_nbatch(alt) ||
        !lop_is_blas(alt->dtype) || lop_cols(alt) != lop_rows(p))
        return lop_fail(err, LOP_DIM, "%s takes a square operator and two beside each other",
                        n->op->name);
    n->shape = alt->shape;
    n->core = 1;
    n->dtype = alt->dtype;
    return LOP_OK;
}
const lop_op lop_op_sparserows = {LOP_NAMED(sparserows),
                                  .cls = LOP_ACTION,
                                  .min = 3,
                                  .max = 3,
                                  .infer = infer_rows,
                                  .operators = 2,
                                  .lower = lop_lower_arms,
                                  .check = check_trace};

/* -- sparseentries: attr.i[1]: of the corner on the right of a matrix of so many blocks a side; 0:
 * of the whole */

static lop_status infer_entries(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0], *alt = n->child[3];
    if (a->op->cls != LOP_OPERATOR || a->core != 2 || lop_nbatch(a) || !lop_is_square(a) ||
        n->child[1]->core != 1 || n->child[2]->core != 1 || alt->core != 1 || lop_nbatch(alt) ||
        !lop_is_blas(alt->dtype) || lop_cols(alt) != lop_cols(n->child[1]))
        return lop_fail(err, LOP_DIM, "%s takes a square operator and places", n->op->name);
    n->shape = alt->shape;
    n->core = 1;
    n->dtype = alt->dtype;
    return LOP_OK;
}
static lop_status check_entries(lop_emit *e, const lop_node *self, int value, int mask) {
    lop_status st;
    const int64_t places[2] = {self->attr.i[0], self->attr.i[1]};
    int in[3] = {emit_factor(e, self->child[0], &st)};
    if (in[0] < 0) return st == LOP_UNABLE ? refuse(e, self, value, mask) : st;
    for (int i = 1; i < 3; i++) in[i] = lop_emit_value(e, self->child[i]);
    st = emit_answer(e, self, "selected-inverse", run_entries, value, mask, 3, in,
                     selected(self->child[0]));
    if (st == LOP_OK) st = lop_emit_data(e, places, 2);
    return st == LOP_OK ? emit_way_out(e, value, mask, in[0]) : st;
}
const lop_op lop_op_sparseentries = {LOP_NAMED(sparseentries),
                                     .cls = LOP_ACTION,
                                     .min = 4,
                                     .max = 4,
                                     .ints = 2,
                                     .infer = infer_entries,
                                     .lower = lop_lower_arms,
                                     .check = check_entries};
