/* op_full.c: one number everywhere, A[i, j] = c. Rank one: y = c (1^T x) in every row.
 *
 * Storage: the number, attr's coefficient (weak or of a dtype); shape as given. Cost: m k or n k
 * additions, the sums pairwise for a vector. */
#include "expr/random_instance.h"
#include "kernels/common/kernels.h"

#include <math.h>

static lop_status infer(lop_node *n, lop_err *err) {
    const int64_t weak = n->attr.i[1];
    if (n->shape.ndim < 2) return lop_fail(err, LOP_DIM, "full has at least two dimensions");
    if (weak < 0 || weak > LOP_WEAK_COMPLEX || n->attr.i[2] < 0 || n->attr.i[2] >= LOP_NDTYPE)
        return lop_fail(err, LOP_DTYPE, "no such kind of number");
    n->weak = (uint8_t)weak;
    n->dtype = weak == LOP_WEAK_COMPLEX ? LOP_c128 : weak ? LOP_f64 : (lop_dtype)n->attr.i[2];
    return LOP_OK;
}

static lop_truth trait(const lop_node *n, lop_trait t) {
    if (!lop_is_square(n)) return LOP_UNKNOWN;
    return t == LOP_SYMMETRIC || (t == LOP_HERMITIAN && n->attr.im == 0) ? LOP_TRUE : LOP_UNKNOWN;
}

/* The number, in dtype y->dt, into all of y. */
static void put(const lop_mat *y, const lop_attr *c) {
    _Alignas(16) char one[16];
    const lop_mat cell = {one, 1, 1, 1, 1, y->dt}, all = {one, y->m, y->n, 0, 0, y->dt};
    double unit = 1;
    const lop_mat from = {&unit, 1, 1, 1, 1, LOP_f64};
    lopk_copy(&cell, &from);
    lopk_scale(&cell, CMPLX(c->re, c->im), c->i[0], &cell);
    if (lop_is_complex(y->dt) && c->im == 0 && !isfinite(c->re)) lop_set(y->dt, one, 0, c->re);
    if (y->m > 0 && y->n > 0) lopk_copy(y, &all);
}

/* t (1 x k) in scratch: the column sums of x. */
static lop_status run(const lop_call *c) {
    const lop_mat *y = c->a[0], *x = c->a[1];
    const int64_t size = (int64_t)lop_dtype_size(y->dt);
    const lop_mat t = {c->scratch, 1, y->n, y->n, 1, y->dt};
    if (y->n > 1 && x->cs == 1) {
        lopk_zero(&t);
        for (int64_t i = 0; i < x->m; i++) {
            const lop_mat row = {(char *)x->p + i * x->rs * size, 1, x->n, x->rs, 1, x->dt};
            lopk_add(&t, &t, &row);
        }
    } else {
        for (int64_t j = 0; j < y->n; j++) {
            const lop_mat one = {(char *)t.p + j * size, 1, 1, 1, 1, t.dt},
                          column = {(char *)x->p + j * x->cs * size, x->m, 1, x->rs, 1, x->dt};
            if (x->m > 0)
                lopk_sum(&one, &column);
            else
                lopk_zero(&one);
        }
    }
    _Alignas(16) char number[16];
    const lop_mat cell = {number, 1, 1, 1, 1, y->dt}, rows = {t.p, y->m, y->n, 0, 1, y->dt};
    put(&cell, &c->step->attr);
    if (y->n > 0) lopk_mul(&t, &cell, &t);
    if (y->m > 0 && y->n > 0) lopk_copy(y, &rows);
    return LOP_OK;
}
static lop_status apply(lop_emit *e, const lop_node *self, lop_mode mode, int x, int out) {
    int64_t k, batch;
    lop_slot_sizes(e, out, NULL, &k, &batch);
    lop_step *s = lop_emit_step(e, "column-sums", run, out, 1, &x);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    if (mode & LOP_C) s->attr.im = s->attr.im != 0 ? -s->attr.im : s->attr.im;
    s->scratch = (size_t)k * lop_dtype_size(lop_slot_dtype(e, out));
    s->flops = (double)(mode & LOP_T ? lop_rows(self) : lop_cols(self)) * (double)k * (double)batch;
    return LOP_OK;
}

static lop_status run_put(const lop_call *c) {
    put(c->a[0], &c->step->attr);
    return LOP_OK;
}
static lop_status everywhere(lop_emit *e, const lop_node *self, int out) {
    lop_step *s = lop_emit_step(e, "fill", run_put, out, 0, NULL);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    return LOP_OK;
}
static lop_status diagonal(lop_emit *e, const lop_node *self, int64_t k, int out) {
    (void)k;
    return everywhere(e, self, out);
}
static lop_status element(lop_emit *e, const lop_node *self, int64_t i, int64_t j, int out) {
    (void)i;
    (void)j;
    return everywhere(e, self, out);
}

static double flops(const lop_node *self, int64_t k) { return (double)lop_cols(self) * (double)k; }

static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    lop_attr c = {.re = (double)lop_rng_range(&r->rng, 0, 4)};
    if (dt == LOP_b8 && c.re > 1) c.re = 1;
    c.i[0] = (int64_t)c.re;
    c.i[2] = (int64_t)dt;
    if (lop_is_complex(dt)) c.im = (double)lop_rng_range(&r->rng, -2, 3);
    lop_node like = {.shape = {.ndim = 2, .dim = {m, n}}, .dtype = dt, .core = 2};
    return lop_node_make(r->ctx, &lop_op_full, &c, 0, NULL, &like, out, r->err);
}

const lop_op lop_op_full = {
    LOP_NAMED(full),
    .flags = LOP_FLAG_closed_spectrum | LOP_FLAG_entries | LOP_FLAG_constant,
    .title = "Full",
    .cls = LOP_OPERATOR,
    .coef = true,
    .param = {{"shape", LOP_P_SHAPE, 0, NULL,
               "(m, n), with leading batch dimensions if wanted; an int means (n, n)."},
              {"c", LOP_P_SCALAR, 0, NULL,
               "The number. A Python number adopts the data type of whatever it meets (float64 or "
               "complex128 alone), a NumPy one has its own."}},
    .doc = {.brief = "The same number everywhere.",
            .extended = "Multiples and transposes are Full again, without computing.",
            .cost = "Build, storage: O(1). Product with k columns: n k additions.",
            .example = ">>> pl.Full((2, 3), 0.5) @ np.array([1., 2., 3.])\narray([3., 3.])"},
    .infer = infer,
    .trait = trait,
    .apply = apply,
    .dense = everywhere,
    .diagonal = diagonal,
    .element = element,
    .flops = flops,
    .random = random_instance};
