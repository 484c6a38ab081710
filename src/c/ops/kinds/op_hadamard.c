/* op_hadamard.c: H[i, j] = (-1)^(bits common to i and j), n a power of two (Sylvester's order).
 *
 * Symmetric, H H = n I. No storage; products by n log2 n additions, exact for integers. The dtype
 * is the user's, or weak: at least an integer, float64 alone. */
#include "expr/random_instance.h"
#include "kernels/fft/k_transforms.h"
#include "kernels/common/kernels.h"

#include <string.h>

static lop_status infer(lop_node *n, lop_err *err) {
    int64_t size = n->shape.ndim == 2 ? lop_rows(n) : 0;
    if (n->shape.ndim != 2 || size != lop_cols(n) || size < 1 || (size & (size - 1)))
        return lop_fail(err, LOP_DIM, "a Hadamard matrix has a power of two rows, got %lld",
                        (long long)size);
    if (n->weak == LOP_WEAK) n->weak = LOP_WEAK_INT;
    return LOP_OK;
}

static lop_truth trait(const lop_node *self, lop_trait t) {
    (void)self;
    return t == LOP_SYMMETRIC || t == LOP_HERMITIAN || t == LOP_REAL ? LOP_TRUE : LOP_UNKNOWN;
}

static lop_status run_hadamard(const lop_call *c) {
    lopk_hadamard(c->a[0], c->a[1]);
    return LOP_OK;
}
static lop_status apply(lop_emit *e, const lop_node *self, lop_mode mode, int x, int out) {
    int64_t n = lop_rows(self), k, batch;
    (void)mode;
    lop_slot_sizes(e, out, NULL, &k, &batch);
    lop_step *s = lop_emit_step(e, "hadamard", run_hadamard, out, 1, &x);
    if (!s) return LOP_NOMEM;
    s->flags = LOP_STEP_COLUMNS;
    for (int64_t h = 1; h < n; h *= 2) s->flops += (double)n * (double)k * (double)batch;
    return LOP_OK;
}

/* attr.i: first row and column, then their steps. */
static lop_status run_entries(const lop_call *c) {
    const lop_mat *y = c->a[0];
    const int64_t *at = c->step->attr.i, size = (int64_t)lop_dtype_size(y->dt);
    double _Complex one = 0, minus = 0; /* room for an element */
    const lop_mat low = {&one, 1, 1, 1, 1, y->dt}, high = {&minus, 1, 1, 1, 1, y->dt};
    lop_set(y->dt, &one, 0, 1);
    lopk_scale(&high, -1, -1, &low);
    for (int64_t i = 0; i < y->m; i++)
        for (int64_t j = 0; j < y->n; j++) {
            const int64_t row = at[0] + i, col = at[1] + (at[2] ? i : j);
            const bool odd = __builtin_popcountll((uint64_t)(row & col)) % 2;
            memcpy((char *)y->p + (i * y->rs + j * y->cs) * size, odd ? high.p : low.p,
                   (size_t)size);
        }
    return LOP_OK;
}
static lop_status entries(lop_emit *e, int64_t i, int64_t j, bool diagonal, int out) {
    lop_step *s = lop_emit_step(e, "entries", run_entries, out, 0, NULL);
    if (!s) return LOP_NOMEM;
    s->attr = (lop_attr){.i = {i, j, diagonal, 0}};
    return LOP_OK;
}
static lop_status dense(lop_emit *e, const lop_node *self, int out) {
    (void)self;
    return entries(e, 0, 0, false, out);
}
static lop_status diagonal(lop_emit *e, const lop_node *self, int64_t k, int out) {
    (void)self;
    return entries(e, k < 0 ? -k : 0, k > 0 ? k : 0, true, out);
}
static lop_status element(lop_emit *e, const lop_node *self, int64_t i, int64_t j, int out) {
    (void)self;
    return entries(e, i, j, true, out);
}
static double flops(const lop_node *self, int64_t k) {
    double all = 0, n = (double)lop_rows(self);
    for (double h = 1; h < n; h *= 2) all += n;
    return all * (double)k;
}

static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    if (m != n || n < 1 || (n & (n - 1))) return LOP_UNABLE;
    lop_node like = {.shape = {.ndim = 2, .dim = {n, n}}, .dtype = dt, .core = 2};
    return lop_node_make(r->ctx, &lop_op_hadamard, NULL, 0, NULL, &like, out, r->err);
}

const lop_op lop_op_hadamard = {
    LOP_NAMED(hadamard),
    .flags = LOP_FLAG_transform | LOP_FLAG_closed_spectrum | LOP_FLAG_entries | LOP_FLAG_at_once |
             LOP_FLAG_own_inverse,
    .title = "Hadamard",
    .cls = LOP_OPERATOR,
    .param = {{"n", LOP_P_INT, 0, NULL, "Size, a power of two.", NULL},
              {"dtype", LOP_P_DTYPE, 0, "None",
               "Data type; None adopts that of whatever it meets, at least an integer (float64 "
               "alone).",
               NULL}},
    .doc = {.brief = "The Hadamard matrix of scipy.linalg.hadamard, entries 1 and -1, by the fast "
                     "Walsh-Hadamard transform.",
            .cost = "Build, storage: O(1). Product with k columns: n log2(n) k additions.",
            .notes = "Symmetric; ``H @ H`` is n times the identity, so ``inv(H)`` is ``H / n``. "
                     "Exact for integers.",
            .example = ">>> pl.Hadamard(4) @ np.array([1, 2, 3, 4])\narray([10, -2, -4,  0])"},
    .infer = infer,
    .trait = trait,
    .apply = apply,
    .dense = dense,
    .diagonal = diagonal,
    .element = element,
    .flops = flops,
    .random = random_instance};
