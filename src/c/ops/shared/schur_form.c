/* schur_form.c: the derived value of schur_form.h, and its step. */
#include "schur_form.h"
#include "scaled_pair.h"
#include "kernels/common/kernels.h"
#include "kernels/dense/k_eigen.h"

#include <math.h>

bool lop_schur_takes(const lop_node *a, const lop_node *b) {
    return a->core == 2 && b->core == 2 && lop_is_square(a) && lop_is_square(b) &&
           a->dtype == b->dtype && lop_is_blas(a->dtype);
}

lop_status lop_schur_infer_solve(lop_node *n, bool fits, lop_err *err) {
    const lop_node *a = n->child[0], *b = n->child[1], *c = n->child[n->n - 1];
    lop_shape both;
    int64_t rows, bytes;
    if (!fits || !lop_schur_takes(a, b) || c->core != 2 || c->dtype != a->dtype ||
        !lop_mul_ok(lop_rows(a), lop_rows(b), &rows) || rows != lop_rows(c) ||
        !lop_mul_ok(rows, 64, &bytes))
        return lop_fail(err, LOP_DIM, "%s does not fit its operands", n->op->name);
    lop_status st = lop_shape_batch(&a->shape, 2, &b->shape, 2, &both, err);
    if (st == LOP_OK) st = lop_shape_batch(&both, 0, &c->shape, 2, &n->shape, err);
    if (st != LOP_OK) return st;
    n->shape.dim[n->shape.ndim++] = rows;
    n->shape.dim[n->shape.ndim++] = lop_cols(c);
    n->core = 2;
    n->dtype = a->dtype;
    n->weak = LOP_STRONG;
    return LOP_OK;
}

lop_status lop_schur_infer_det(lop_node *n, bool fits, lop_err *err) {
    const lop_node *a = n->child[0], *b = n->child[1];
    lop_shape both;
    if (!fits || !lop_schur_takes(a, b))
        return lop_fail(err, LOP_DIM, "%s takes two square matrices of floats", n->op->name);
    lop_status st = lop_shape_batch(&a->shape, 2, &b->shape, 2, &both, err);
    return st == LOP_OK ? lop_pair_infer(n, &both, 0, a->dtype) : st;
}

size_t lop_schur_square(int64_t n, lop_dtype dt) {
    return ((size_t)n * (size_t)n * lop_dtype_size(dt) + 63) & ~(size_t)63;
}
lop_mat lop_column_major(void *p, int64_t m, int64_t n, lop_dtype dt) {
    return (lop_mat){p, m, n, 1, m > 0 ? m : 1, dt};
}
lop_mat lop_transposed(const lop_mat *a) {
    return (lop_mat){a->p, a->n, a->m, a->cs, a->rs, a->dt};
}
lop_schur lop_schur_at(const lop_mat *blob, int64_t n, lop_dtype dt) {
    char *p = blob->p;
    double *re = (double *)(void *)(p + 2 * lop_schur_square(n, dt));
    return (lop_schur){lop_column_major(p, n, n, dt),
                       lop_column_major(p + lop_schur_square(n, dt), n, n, dt),
                       re,
                       re + n,
                       re + 2 * n,
                       re + 2 * n + 1};
}

static bool is_finite(const lop_mat *a) {
    for (int64_t i = 0; i < a->m; i++)
        for (int64_t j = 0; j < a->n; j++) {
            const double _Complex x = lop_get(a->dt, a->p, i * a->rs + j * a->cs);
            if (!(x - x == 0)) return false;
        }
    return true;
}
static lop_status run_gees(const lop_call *c) {
    const lop_mat *a = c->a[1];
    const int64_t n = a->n;
    const lop_schur f = lop_schur_at(c->a[0], n, a->dt);
    const bool own = lopk_is_hermitian(a), whole = lop_is_complex(a->dt) && !own;
    const lop_dtype real = a->dt == LOP_c64 || a->dt == LOP_f32 ? LOP_f32 : LOP_f64;
    const lop_mat w = {c->scratch, 2 * n, 1, 1, 1, whole ? a->dt : real};
    void *work = (char *)c->scratch + (((size_t)n * 16 + 63) & ~(size_t)63);
    int64_t info = 0;
    *f.failed = 1;
    *f.diagonal = own;
    if (!is_finite(a)) return LOP_OK;
    lopk_copy(own ? &f.q : &f.t, a);
    lop_status st =
        own ? lopk_heevd(&f.q, w.p, work, &info) : lopk_gees(&f.t, &f.q, w.p, work, &info);
    if (st == LOP_OVERFLOW)
        return lop_fail(c->err, st, "LAPACK takes no matrix of %lld columns", (long long)n);
    if (st != LOP_OK) return st == LOP_SINGULAR ? LOP_OK : st;
    if (own) lopk_zero(&f.t);
    for (int64_t i = 0; i < n; i++) {
        const double _Complex z = lop_get(w.dt, w.p, i);
        f.re[i] = creal(z);
        f.im[i] = whole ? cimag(z) : own ? 0 : creal(lop_get(w.dt, w.p, n + i));
        if (own) lop_set(f.t.dt, f.t.p, i * (n + 1), creal(z));
    }
    *f.failed = 0;
    return LOP_OK;
}

int lop_emit_schur(lop_emit *e, const lop_node *a, lop_status *st) {
    const int64_t n = lop_rows(a);
    const double cube = (double)n * (double)n * (double)n;
    int in = lop_emit_value(e, a);
    size_t work;
    int64_t all;
    if (!lop_mul_ok(n, n, &all) || !lop_mul_ok(all, 64, &all) ||
        !lopk_eigen_bytes(n, a->dtype, &work)) {
        *st = lop_fail(lop_emit_err(e), LOP_OVERFLOW,
                       "the Schur form of a %lld x %lld matrix is too large", (long long)n,
                       (long long)n);
        return -1;
    }
    const size_t bytes = 2 * lop_schur_square(n, a->dtype) + (2 * (size_t)n + 2) * sizeof(double);
    const int f = lop_emit_derived(e, "gees", run_gees, bytes, 1, &in, NULL,
                                   (size_t)n * 16 + 64 + work, 25 * cube, st);
    lop_emit_blocked(e, f, n);
    return f;
}
