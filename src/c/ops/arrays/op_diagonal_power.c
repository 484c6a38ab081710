/* op_diagonal_power.c: powers of a vector, element by element: d^p, or d^p x for the rows of x.
 *
 * attr.i[0] = p >= 0, by squaring, O(log p) an element, in pairs of mantissa and exponent: neither
 * d^p nor what leads to it over- or underflows where d^p x does not. So d^p x is what p products
 * with diag(d) give, up to their rounding: p u. Floats and complex numbers only; integers wrap and
 * go the general way. */
#include "ops/shared/scaled_pair.h"

#include <math.h>

static lop_status infer(lop_node *n, lop_err *err) {
    const lop_node *d = n->child[0], *x = n->n > 1 ? n->child[1] : NULL;
    if (d->core != 1 || !lop_is_blas(d->dtype) || n->attr.i[0] < 0)
        return lop_fail(err, LOP_DIM, "diagpow takes a vector of floats and a power of 0 or more");
    if (!x) {
        n->shape = d->shape;
        n->core = 1;
        n->dtype = d->dtype;
        n->weak = d->weak;
        return LOP_OK;
    }
    if (x->core < 1 || x->shape.dim[x->shape.ndim - x->core] != d->shape.dim[d->shape.ndim - 1])
        return lop_fail(err, LOP_DIM, "diagpow takes as many rows as its vector has elements");
    lop_status st = lop_shape_batch(&d->shape, 1, &x->shape, x->core, &n->shape, err);
    if (st != LOP_OK) return st;
    for (int i = x->core; i > 0; i--)
        n->shape.dim[n->shape.ndim++] = x->shape.dim[x->shape.ndim - i];
    n->core = x->core;
    lop_node_promote(n, d, x);
    return LOP_OK;
}

static lop_pair pair_at(const lop_mat *a, int64_t i, int64_t j) {
    double _Complex v = lop_get(a->dt, a->p, i * a->rs + j * a->cs);
    return lop_pair_scaled((lop_pair){creal(v), cimag(v), 0});
}

static double back(double part, double e) {
    return ldexp(part, e > 4000 ? 4000 : e < -4000 ? -4000 : (int)e);
}

static lop_status run(const lop_call *c) {
    const lop_mat *y = c->a[0], *d = c->a[1], *x = c->step->n > 2 ? c->a[2] : NULL;
    const bool whole = lop_is_complex(y->dt);
    for (int64_t i = 0; i < y->m; i++) {
        const lop_pair p = lop_pair_power(pair_at(d, i, 0), c->step->attr.i[0], whole);
        for (int64_t j = 0; j < y->n; j++) {
            lop_pair v = x ? lop_pair_times(p, pair_at(x, i, j), whole) : p;
            lop_set(y->dt, y->p, i * y->rs + j * y->cs, CMPLX(back(v.re, v.e), back(v.im, v.e)));
        }
    }
    return LOP_OK;
}

static lop_status lower(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    int in[2] = {-1, -1};
    for (int i = 0; i < self->n; i++) {
        in[i] = lop_emit_cast(e, lop_emit_value(e, self->child[i]), self->dtype, &st);
        if (in[i] < 0) return st;
    }
    lop_step *s = lop_emit_step(e, "diagpow", run, out, self->n, in);
    if (!s) return LOP_NOMEM;
    s->attr.i[0] = self->attr.i[0];
    s->flops = lop_slot_elements(e, in[0]) * 2 * log2(2 + (double)self->attr.i[0]) +
               lop_slot_elements(e, out);
    return LOP_OK;
}

const lop_op lop_op_diagpow = {LOP_NAMED(diagpow), .cls = LOP_ARRAY, .min = 1,      .max = 2,
                               .ints = 1,          .infer = infer,   .lower = lower};
