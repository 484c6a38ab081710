/* op_difference.c: finite differences of any order on an even grid of spacing 1.
 *
 * The p-th difference is a row of p + 1 weights: (-1)^(p - j) C(p, j). Forward it begins at the
 * point itself, backward it ends there, central it lies about it: of odd order as the mean of the
 * two half a step aside, with p + 2 weights and halves. Rows: those where the weights fit (numpy's
 * diff), or all, with zeros beyond the ends or the grid closed to a ring.
 * Storage: none. Cost: 2 (p + 1) n k flops. attr.i: n, order, kind (0 forward, 1 backward, 2
 * central), boundary (0 valid, 1 zero, 2 periodic); shape and dtype as given. */
#include "expr/random_instance.h"
#include "kernels/band/k_band.h"
#include "kernels/common/kernels.h"

enum { MOST = 50, FORWARD = 0, BACKWARD = 1, CENTRAL = 2, VALID = 0, PERIODIC = 2 };

typedef struct weights {
    int count;
    int64_t first; /* of the point that weight 0 meets, from row 0 on */
    double w[MOST + 2];
    int64_t iw[MOST + 2];
} weights;

static bool has_halves(const lop_attr *a) { return a->i[2] == CENTRAL && a->i[1] % 2; }

/* Binomials up to C(50, 25) are exact in a double. */
static void weights_of(const lop_attr *a, weights *s) {
    const int p = (int)a->i[1];
    double c = 1;
    for (int j = 0; j <= p; j++) {
        s->w[j] = (p - j) % 2 ? -c : c;
        c = c * (p - j) / (j + 1);
    }
    s->count = p + 1;
    s->first = a->i[2] == FORWARD ? 0 : a->i[2] == BACKWARD ? -p : -(p / 2);
    if (has_halves(a)) { /* half of this and of this one step on */
        s->first = -((p + 1) / 2);
        s->w[p + 1] = 0;
        for (int j = p + 1; j >= 0; j--) s->w[j] = 0.5 * (s->w[j] + (j ? s->w[j - 1] : 0));
        s->count++;
    }
    if (a->i[3] == VALID) s->first = 0;
    if (a->i[3] == PERIODIC && s->count > a->i[0] && a->i[0] > 0) { /* what meets, adds first */
        const int n = (int)a->i[0];
        double folded[MOST + 2] = {0};
        for (int j = 0; j < s->count; j++) folded[((s->first + j) % n + n) % n] += s->w[j];
        for (int j = 0; j < n; j++) s->w[j] = folded[j];
        s->first = 0;
        s->count = n;
    }
    for (int j = 0; j < s->count; j++) s->iw[j] = (int64_t)s->w[j];
}

/* How many rows there are; -1: none such. */
static int64_t rows(const lop_attr *a) {
    if (a->i[0] < 0 || a->i[1] < 0 || a->i[1] > MOST || a->i[2] < 0 || a->i[2] > 2 || a->i[3] < 0 ||
        a->i[3] > 2)
        return -1;
    const int64_t lost = a->i[3] == VALID ? a->i[1] + has_halves(a) : 0;
    return lost > a->i[0] ? 0 : a->i[0] - lost;
}

lop_shape lop_difference_shape(const lop_attr *a) {
    const int64_t m = rows(a);
    return (lop_shape){.ndim = 2, .dim = {m < 0 ? 0 : m, m < 0 ? 0 : a->i[0]}};
}

static bool is_unsigned(lop_dtype dt) {
    return dt < LOP_NDTYPE && (lop_dtype_family(dt) == 'u' || lop_dtype_family(dt) == 'b');
}

static lop_status infer(lop_node *n, lop_err *err) {
    const int64_t m = rows(&n->attr);
    if (m < 0)
        return lop_fail(err, LOP_DIM,
                        "a difference has a size of at least 0 and an order of 0 to %d, got %lld "
                        "and %lld",
                        MOST, (long long)n->attr.i[0], (long long)n->attr.i[1]);
    if (n->shape.ndim != 2 || n->shape.dim[0] != m || n->shape.dim[1] != n->attr.i[0])
        return lop_fail(err, LOP_DIM, "a difference of %lld points has %lld rows",
                        (long long)n->attr.i[0], (long long)m);
    if (!n->weak && is_unsigned(n->dtype))
        return lop_fail(err, LOP_DTYPE, "a difference has negative weights: no dtype %s",
                        lop_dtype_name(n->dtype));
    if (has_halves(&n->attr) && !lop_is_blas(n->dtype) && n->dtype < LOP_NDTYPE)
        return lop_fail(err, LOP_DTYPE,
                        "a central difference of odd order has halves: no dtype of integers");
    if (n->weak == LOP_WEAK) n->weak = LOP_WEAK_INT; /* negative entries: no bool */
    if (has_halves(&n->attr) && n->weak && n->weak < LOP_WEAK_FLOAT) n->weak = LOP_WEAK_FLOAT;
    return LOP_OK;
}

static lop_truth trait(const lop_node *n, lop_trait t) {
    const lop_attr *a = &n->attr;
    const bool even = a->i[1] % 2 == 0 && (a->i[2] == CENTRAL || a->i[1] == 0) && a->i[3] != VALID;
    return even && (t == LOP_SYMMETRIC || t == LOP_HERMITIAN) ? LOP_TRUE : LOP_UNKNOWN;
}

static lop_status run(const lop_call *c) {
    const lop_attr *a = &c->step->attr;
    weights s, t;
    weights_of(a, &s);
    t = s;
    if (c->step->attr.im != 0) { /* transposed: the weights the other way round */
        for (int j = 0; j < s.count; j++) {
            t.w[j] = s.w[s.count - 1 - j];
            t.iw[j] = s.iw[s.count - 1 - j];
        }
        t.first = -(s.first + s.count - 1);
    }
    lopk_stencil(c->a[0], t.count, t.w, t.iw, t.first, a->i[3] == PERIODIC, c->a[1]);
    return LOP_OK;
}
static lop_status apply(lop_emit *e, const lop_node *self, lop_mode mode, int x, int out) {
    int64_t m, k, batch;
    lop_slot_sizes(e, out, &m, &k, &batch);
    lop_step *s = lop_emit_step(e, "stencil", run, out, 1, &x);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->attr.im = mode & LOP_T ? 1 : 0;
    s->flags = LOP_STEP_COLUMNS;
    s->flops = 2.0 * (double)(self->attr.i[1] + 1) * (double)m * (double)k * (double)batch;
    return LOP_OK;
}

/* Diagonal k is one number: what weights meet j = i + k. attr.re holds k. */
static lop_status run_fill(const lop_call *c) {
    const lop_attr *a = &c->step->attr;
    const lop_mat *y = c->a[0];
    const int64_t k = (int64_t)a->re, n = a->i[0];
    weights s;
    weights_of(a, &s);
    lopk_zero(y);
    for (int j = 0; j < s.count && n > 0; j++) {
        const int64_t at = s.first + j;
        const bool met = a->i[3] == PERIODIC ? ((at - k) % n) == 0 : at == k;
        int64_t iv = s.iw[j];
        const lop_mat f = {&s.w[j], y->m, 1, 0, 0, LOP_f64}, i = {&iv, y->m, 1, 0, 0, LOP_i64};
        _Alignas(16) char cell[16];
        const lop_mat one = {cell, 1, 1, 1, 1, y->dt};
        const lop_mat *from = lop_is_blas(y->dt) ? &f : &i;
        if (!met || y->m == 0) continue;
        lopk_copy(&one, &(lop_mat){from->p, 1, 1, 1, 1, from->dt});
        lopk_add(y, &one, y);
    }
    return LOP_OK;
}
static lop_status diagonal(lop_emit *e, const lop_node *self, int64_t k, int out) {
    lop_step *s = lop_emit_step(e, "fill", run_fill, out, 0, NULL);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->attr.re = (double)k;
    return LOP_OK;
}
static lop_status element(lop_emit *e, const lop_node *self, int64_t i, int64_t j, int out) {
    return diagonal(e, self, j - i, out);
}

static double flops(const lop_node *self, int64_t k) {
    return 2 * (double)(self->attr.i[1] + 1) * (double)lop_cols(self) * (double)k;
}

static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    lop_attr a = {.i = {n, lop_rng_range(&r->rng, 0, 5), lop_rng_range(&r->rng, 0, 3),
                        m == n ? lop_rng_range(&r->rng, 1, 3) : VALID}};
    if (m > n || is_unsigned(dt)) return LOP_UNABLE;
    if (m < n) { /* as many rows as asked for, or none of that shape */
        a.i[1] = n - m;
        a.i[2] = lop_rng_range(&r->rng, 0, 2);
        if (n - m > 6) return LOP_UNABLE; /* weights grow as binomials */
    }
    if (!lop_is_blas(dt) && has_halves(&a)) a.i[2] = FORWARD;
    if (rows(&a) != m) return LOP_UNABLE;
    lop_node like = {.shape = {.ndim = 2, .dim = {m, n}}, .dtype = dt, .core = 2};
    return lop_node_make(r->ctx, &lop_op_difference, &a, 0, NULL, &like, out, r->err);
}

static lop_band bands(const lop_node *self, const lop_band *child) {
    (void)child;
    if (self->attr.i[3] == PERIODIC) return (lop_band){INT64_MAX, INT64_MAX};
    weights s;
    weights_of(&self->attr, &s);
    const int64_t last = s.first + s.count - 1;
    return (lop_band){s.first < 0 ? -s.first : 0, last > 0 ? last : 0};
}

const lop_op lop_op_difference = {
    LOP_NAMED(difference),
    .flags = LOP_FLAG_few_entries | LOP_FLAG_entries | LOP_FLAG_composed,
    .title = "FiniteDifference",
    .cls = LOP_OPERATOR,
    .ints = 4,
    .param = {{"n", LOP_P_OFFSET, 0, NULL, "Number of grid points."},
              {"order", LOP_P_OFFSET, 1, "1", "Which difference, 0 to 50."},
              {"kind", LOP_P_WORD, 2, "'forward'",
               "'forward' begins at the point, 'backward' ends there, 'central' lies about it (of "
               "odd order with halves).",
               "forward backward central"},
              {"boundary", LOP_P_WORD, 3, "'valid'",
               "'valid': the rows where all points are there, as numpy.diff. 'zero': n rows, zeros "
               "beyond the ends. 'periodic': n rows, round again.",
               "valid zero periodic"},
              {"dtype", LOP_P_DTYPE, 0, "None",
               "Data type; None adopts that of whatever it meets, at least an integer (float64 "
               "alone)."}},
    .doc = {.brief = "Finite differences on an even grid of spacing 1.",
            .extended = "With the defaults ``D @ x`` is ``np.diff(x)``. Divide by the spacing to "
                        "the power of the order for a derivative.",
            .cost = "Build, storage: O(1). Product with k columns: 2 (order + 1) n k flops.",
            .limits = "Its entries are negative: it takes no bool or unsigned data type of "
                      "its own; beside bools it gives integers.",
            .example = ">>> pl.FiniteDifference(4) @ np.array([1., 4., 9., 16.])\narray([3., 5., "
                       "7.])\n>>> pl.FiniteDifference(4, 2, 'central', 'zero') @ np.array([1., "
                       "4., 9., 16.])\narray([  2.,   2.,   2., -23.])"},
    .bands = bands,
    .infer = infer,
    .trait = trait,
    .apply = apply,
    .diagonal = diagonal,
    .element = element,
    .flops = flops,
    .random = random_instance};
