/* op_householder.c: a reflection, H = I - tau v v^H; tau = 2 / |v|^2 where none is given.
 *
 * Storage: v (n), and tau, a number, if given. y = x - v (tau (v^H x)): 4 n k flops. The default
 * tau is computed on each call, from v scaled where |v|^2 would over- or underflow; H is unitary
 * and Hermitian then, its own inverse. Golub and Van Loan, Matrix Computations, 5.1. */
#include "expr/random_instance.h"
#include "ops/shared/scaled_pair.h"
#include "kernels/dense/k_blas.h"
#include "kernels/common/kernels.h"

#include <math.h>

static lop_status infer(lop_node *n, lop_err *err) {
    const lop_node *v = n->child[0], *tau = n->n > 1 ? n->child[1] : NULL;
    if (v->op->cls == LOP_OPERATOR || v->core != 1)
        return lop_fail(err, LOP_DIM, "householder takes a vector");
    if (tau && (tau->op->cls == LOP_OPERATOR || tau->core != 0))
        return lop_fail(err, LOP_DIM, "householder's tau is a number");
    n->shape = v->shape;
    n->shape.ndim--;
    n->dtype = v->dtype;
    n->weak = v->weak;
    if (tau) {
        lop_status st = lop_shape_batch(&v->shape, 1, &tau->shape, 0, &n->shape, err);
        if (st != LOP_OK) return st;
        lop_node_promote(n, v, tau);
    } else if (!n->weak) {
        n->dtype = lop_promote_weak(LOP_WEAK_FLOAT, v->dtype);
    }
    if (n->shape.ndim + 2 > LOP_MAXDIM)
        return lop_fail(err, LOP_DIM, "more than %d dimensions", LOP_MAXDIM);
    n->shape.dim[n->shape.ndim++] = lop_cols(v);
    n->shape.dim[n->shape.ndim++] = lop_cols(v);
    return LOP_OK;
}

static lop_truth trait(const lop_node *n, lop_trait t) {
    const bool real = !lop_is_complex(n->dtype), own = n->n == 1;
    if (t == LOP_ORTHOGONAL && own) return LOP_TRUE;
    if (t == LOP_HERMITIAN && (own || !lop_is_complex(n->child[1]->dtype))) return LOP_TRUE;
    if (t == LOP_SYMMETRIC && real) return LOP_TRUE;
    return LOP_UNKNOWN;
}

static void product(const lop_mat *y, const lop_mat *a, bool conj, const lop_mat *b, bool add) {
    if (lop_is_blas(y->dt))
        lopk_gemm(y, a, conj, b, add);
    else
        lopk_matmul_loop(y, a, conj, b, add);
}
static lop_mat turned(const lop_mat *a) { return (lop_mat){a->p, a->n, a->m, a->cs, a->rs, a->dt}; }

/* u in scratch and -tau such that H = I - tau u u^H; v is scaled where its square is out of range.
 * Scratch: u (n elements), then from `after` what the callers need. */
typedef struct reflector {
    lop_mat u, minus_tau;
    void *after;
} reflector;
static lop_status prepare(const lop_call *c, const lop_mat *v, const lop_mat *tau, void *cell,
                          reflector *r) {
    const lop_dtype dt = v->dt;
    const size_t bytes = ((size_t)v->m * lop_dtype_size(dt) + 63) & ~(size_t)63;
    r->u = (lop_mat){c->scratch, v->m, 1, 1, v->m > 0 ? v->m : 1, dt};
    r->minus_tau = (lop_mat){cell, 1, 1, 1, 1, dt};
    r->after = (char *)c->scratch + bytes;
    lopk_copy(&r->u, v);
    if (tau) {
        lopk_scale(&r->minus_tau, -1, -1, tau);
        return LOP_OK;
    }
    if (v->m == 0) {
        lopk_zero(&r->minus_tau);
        return LOP_OK;
    }
    const lop_mat ut = turned(&r->u);
    const bool single = dt == LOP_f32 || dt == LOP_c64;
    const double low = single ? 1e-25 : 1e-250, high = single ? 1e25 : 1e250;
    product(&r->minus_tau, &ut, true, &r->u, false);
    double square = creal(lop_get(dt, cell, 0));
    if (!(square > low && square < high)) {
        double top = 0;
        for (int64_t i = 0; i < v->m; i++) {
            const double _Complex e = lop_get(dt, r->u.p, i);
            top = fmax(top, fmax(fabs(creal(e)), fabs(cimag(e))));
        }
        if (top == 0 && square == 0)
            return lop_fail(c->err, LOP_SINGULAR,
                            "Householder of a zero vector: there is no direction to reflect in");
        int power;
        (void)frexp(top, &power);
        if (isfinite(top)) lopk_scale(&r->u, ldexp(1, -power / 2), 0, &r->u);
        if (isfinite(top)) lopk_scale(&r->u, ldexp(1, -power + power / 2), 0, &r->u);
        product(&r->minus_tau, &ut, true, &r->u, false);
        square = creal(lop_get(dt, cell, 0));
    }
    lop_set(dt, cell, 0, -2 / square);
    return LOP_OK;
}
static size_t vector_bytes(const lop_node *self, lop_dtype dt) {
    return ((size_t)lop_rows(self) * lop_dtype_size(dt) + 63) & ~(size_t)63;
}

/* H^T = I - tau conj(v) v^T, conj(H) = I - conj(tau) conj(v) v^T. */
static lop_status run(const lop_call *c) {
    const lop_mat *y = c->a[0], *x = c->a[1];
    const int64_t mode = c->step->attr.i[0];
    const bool conj_v = mode == LOP_T || mode == LOP_C;
    _Alignas(16) char cell[16];
    reflector r;
    lop_status st = prepare(c, c->a[2], c->step->n > 3 ? c->a[3] : NULL, cell, &r);
    if (st != LOP_OK) return st;
    if (mode & LOP_C) lopk_conj(&r.minus_tau, &r.minus_tau);
    if (conj_v) lopk_conj(&r.u, &r.u);
    const lop_mat t = {r.after, 1, y->n, y->n, 1, y->dt}, ut = turned(&r.u);
    if (y->m == 0 || y->n == 0) return LOP_OK;
    product(&t, &ut, true, x, false);
    lopk_mul(&t, &r.minus_tau, &t);
    lopk_copy(y, x);
    product(y, &r.u, false, &t, true);
    return LOP_OK;
}

static lop_status inputs(lop_emit *e, const lop_node *self, lop_dtype dt, int *in) {
    lop_status st = LOP_OK;
    for (int i = 0; i < self->n; i++) {
        in[i] = lop_emit_cast(e, lop_emit_value(e, self->child[i]), dt, &st);
        if (in[i] < 0) return st;
    }
    return st;
}

static lop_status apply(lop_emit *e, const lop_node *self, lop_mode mode, int x, int out) {
    const lop_dtype dt = lop_slot_dtype(e, out);
    int64_t m, k, batch;
    int in[3] = {x};
    lop_slot_sizes(e, out, &m, &k, &batch);
    lop_status st = inputs(e, self, dt, in + 1);
    if (st != LOP_OK) return st;
    lop_step *s = lop_emit_step(e, "reflect", run, out, self->n + 1, in);
    if (!s) return LOP_NOMEM;
    s->attr.i[0] = mode;
    s->scratch = vector_bytes(self, dt) + (size_t)k * lop_dtype_size(dt);
    s->flops = 4.0 * (double)m * (double)k * (double)batch;
    return LOP_OK;
}

/* Diagonal i[0] from its element i[1] on: [i == j] - tau v[i] conj(v[j]). */
static lop_status run_part(const lop_call *c) {
    const lop_mat *y = c->a[0];
    const int64_t k = c->step->attr.i[0], from = c->step->attr.i[1];
    const int64_t size = (int64_t)lop_dtype_size(y->dt);
    _Alignas(16) char cell[16];
    reflector r;
    lop_status st = prepare(c, c->a[1], c->step->n > 2 ? c->a[2] : NULL, cell, &r);
    if (st != LOP_OK || y->m == 0) return st;
    const int64_t i = from + (k < 0 ? -k : 0), j = from + (k > 0 ? k : 0);
    const lop_mat left = {(char *)r.u.p + i * size, y->m, 1, 1, 1, y->dt},
                  right = {(char *)r.u.p + j * size, y->m, 1, 1, 1, y->dt},
                  t = {r.after, y->m, 1, 1, 1, y->dt};
    double one = 1;
    const lop_mat ones = {&one, 1, 1, 1, 1, LOP_f64}, cell1 = {cell, 1, 1, 1, 1, y->dt};
    lopk_conj(&t, &right);
    lopk_mul(&t, &left, &t);
    lopk_mul(&t, &r.minus_tau, &t);
    lopk_copy(&cell1, &ones);
    if (k == 0)
        lopk_add(y, &cell1, &t);
    else
        lopk_copy(y, &t);
    return LOP_OK;
}
static lop_status part(lop_emit *e, const lop_node *self, int64_t k, int64_t from, int out) {
    const lop_dtype dt = lop_slot_dtype(e, out);
    int in[2];
    lop_status st = inputs(e, self, dt, in);
    if (st != LOP_OK) return st;
    lop_step *s = lop_emit_step(e, "part", run_part, out, self->n, in);
    if (!s) return LOP_NOMEM;
    s->attr.i[0] = k;
    s->attr.i[1] = from;
    s->scratch = 2 * vector_bytes(self, dt);
    return LOP_OK;
}
static lop_status diagonal(lop_emit *e, const lop_node *self, int64_t k, int out) {
    return part(e, self, k, 0, out);
}
static lop_status element(lop_emit *e, const lop_node *self, int64_t i, int64_t j, int out) {
    return part(e, self, j - i, i < j ? i : j, out);
}

static double flops(const lop_node *self, int64_t k) {
    return 4 * (double)lop_rows(self) * (double)k;
}

static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    if (m != n) return LOP_UNABLE;
    const lop_node *v[2] = {0};
    const lop_shape none = {0};
    const bool with_tau = !lop_is_blas(dt) || lop_rng_range(&r->rng, 0, 2);
    lop_status st = lop_rand_vector(r, dt, n, &v[0]);
    if (st == LOP_OK && with_tau) st = lop_rand_array(r, dt, 0, &none, &v[1]);
    if (st == LOP_OK)
        st = lop_node_make(r->ctx, &lop_op_householder, NULL, with_tau ? 2 : 1, v, NULL, out,
                           r->err);
    lop_node_unref(v[0]);
    lop_node_unref(v[1]);
    return st;
}

const lop_op lop_op_householder = {
    LOP_NAMED(householder),
    .flags = LOP_FLAG_closed_spectrum | LOP_FLAG_at_once | LOP_FLAG_tells,
    .title = "Householder",
    .cls = LOP_OPERATOR,
    .min = 1,
    .max = 2,
    .param = {{"v", LOP_P_ARRAY, 1, NULL, "The vector, shape (..., n). Borrowed."},
              {"tau", LOP_P_ARRAY, 0, "None",
               "The factor, a number or shape (...); None means 2 / |v|^2, taken anew on each "
               "call."}},
    .doc = {.brief = "A Householder reflection, I - tau v v^H.",
            .extended = "With the default tau it is unitary and Hermitian: its own inverse.",
            .cost = "Build: O(1), no copy. Product with k columns: 4 n k flops.",
            .notes =
                "A zero vector without a tau raises LinAlgError when used. With a tau of "
                "yours nothing is assumed of it: solves and diagonals of the inverse are those "
                "of the LowRankUpdate that it is (Woodbury's formula, checked).",
            .limits = "With a tau of your own the dense form of the inverse takes that of the "
                      "operator; so do solves with a batch.",
            .example = ">>> pl.Householder(np.array([1., 1.])) @ np.array([3., 4.])\narray([-4., "
                       "-3.])"},
    .infer = infer,
    .vjp_by_formula = true,
    .trait = trait,
    .apply = apply,
    .diagonal = diagonal,
    .element = element,
    .flops = flops,
    .random = random_instance};

/* -- householder_det: 1 - tau v^H v of v and tau; -1 where there is no tau */

static lop_status infer_det(lop_node *n, lop_err *err) {
    const lop_node *v = n->child[0], *tau = n->n > 1 ? n->child[1] : NULL;
    if (v->core != 1 || !lop_is_blas(v->dtype) ||
        (tau && (tau->core != 0 || !lop_is_blas(tau->dtype))))
        return lop_fail(err, LOP_DIM, "householder_det takes a vector and a number of floats");
    lop_shape batch = v->shape;
    batch.ndim--;
    lop_dtype dt = v->dtype;
    if (tau) {
        lop_status st = lop_shape_batch(&v->shape, 1, &tau->shape, 0, &batch, err);
        if (st != LOP_OK) return st;
        dt = lop_promote(dt, tau->dtype);
    }
    return lop_pair_infer(n, &batch, 0, dt);
}

/* The largest part of an element; NaN wins. */
static double largest(const lop_mat *v) {
    double top = 0;
    for (int64_t i = 0; i < v->m; i++) {
        const double _Complex z = lop_get(v->dt, v->p, i * v->rs);
        const double re = fabs(creal(z)), im = fabs(cimag(z)),
                     here = isnan(re) || re > im ? re : im;
        if (isnan(here) || here > top) top = here;
        if (isnan(top)) break;
    }
    return top;
}
/* sum |v[i]|^2 as a pair: of v 2^-k, so that no square is out of range. */
static lop_pair square_of(const lop_mat *v, double top) {
    int k = 0;
    double sum = 0;
    if (top > 0 && isfinite(top)) (void)frexp(top, &k);
    for (int64_t i = 0; i < v->m; i++) {
        const double _Complex z = lop_get(v->dt, v->p, i * v->rs);
        const double re = ldexp(creal(z), -k), im = ldexp(cimag(z), -k);
        sum += re * re + im * im;
    }
    return lop_pair_scaled((lop_pair){sum, 0, 2.0 * k});
}
static lop_status run_det(const lop_call *c) {
    const lop_mat *v = c->a[1];
    const double top = largest(v);
    lop_pair det = lop_pair_one();
    if (c->step->n == 2) {
        if (v->m > 0 && top == 0)
            return lop_fail(c->err, LOP_SINGULAR,
                            "Householder of a zero vector: there is no direction to reflect in");
        if (v->m > 0) det.re = isfinite(top) ? -det.re : NAN;
        lop_pair_store(c->a[0], det);
        return LOP_OK;
    }
    const double _Complex tau = lop_get(c->a[2]->dt, c->a[2]->p, 0);
    const lop_pair t = lop_pair_times(lop_pair_scaled((lop_pair){creal(tau), cimag(tau), 0}),
                                      square_of(v, top), lop_is_complex(c->a[0]->dt));
    if (t.e > 500)
        det = (lop_pair){-t.re, -t.im, t.e};
    else if (t.e > -500)
        det = lop_pair_scaled((lop_pair){1 - ldexp(t.re, (int)t.e), -ldexp(t.im, (int)t.e), 0});
    lop_pair_store(c->a[0], det);
    return LOP_OK;
}
static lop_status lower_det(lop_emit *e, const lop_node *self, int out) {
    int in[2] = {-1, -1};
    for (int i = 0; i < self->n; i++) in[i] = lop_emit_value(e, self->child[i]);
    lop_step *s = lop_emit_step(e, "householder_det", run_det, out, self->n, in);
    if (!s) return LOP_NOMEM;
    s->flops = 4.0 * (double)lop_cols(self->child[0]);
    return LOP_OK;
}
const lop_op lop_op_householder_det = {
    LOP_NAMED(householder_det), .cls = LOP_ARRAY,  .min = 1, .max = 2,
    .infer = infer_det,         .lower = lower_det};
