/* scaled_pair.c: pairs of mantissa and exponent; see scaled_pair.h. */
#include "scaled_pair.h"

#include "kernels/common/kernels.h"

#include <math.h>

static const double LOW = 0x1p-500, HIGH = 0x1p500; /* products of two inside are normal numbers */

static double larger(double re, double im) { /* NaN wins */
    double a = fabs(re), b = fabs(im);
    return a >= b || a != a ? a : b;
}

/* The larger part into [0.5, 1), exactly; 0, inf and NaN get exponent 0. */
lop_pair lop_pair_scaled(lop_pair a) {
    int k;
    double top = larger(a.re, a.im);
    if (!(top > 0 && top <= 0x1.fffffffffffffp1023)) return (lop_pair){a.re, a.im, 0};
    (void)frexp(top, &k);
    return (lop_pair){ldexp(a.re, -k), ldexp(a.im, -k), a.e + k};
}

/* Of scaled pairs; `whole` is false for real numbers (inf times an imaginary 0 would be NaN). */
lop_pair lop_pair_times(lop_pair a, lop_pair b, bool whole) {
    if (!whole) return lop_pair_scaled((lop_pair){a.re * b.re, 0, a.e + b.e});
    return lop_pair_scaled(
        (lop_pair){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re, a.e + b.e});
}

lop_pair lop_pair_one(void) { return (lop_pair){0.5, 0, 1}; }
bool lop_pair_is_zero(lop_pair a) { return a.re == 0 && a.im == 0; }

/* a^p, p >= 0, by squaring. */
lop_pair lop_pair_power(lop_pair a, int64_t p, bool whole) {
    lop_pair all = lop_pair_one();
    for (; p > 0; p >>= 1) {
        if (p & 1) all = lop_pair_times(all, a, whole);
        if (p > 1) a = lop_pair_times(a, a, whole);
    }
    return all;
}

lop_pair lop_pair_reciprocal(lop_pair a, bool whole) {
    if (!whole) return lop_pair_scaled((lop_pair){1 / a.re, 0, -a.e});
    double size = a.re * a.re + a.im * a.im; /* of a scaled pair: at least 1/4 */
    return lop_pair_scaled((lop_pair){a.re / size, -a.im / size, -a.e});
}

lop_pair lop_pair_load(const lop_mat *a) {
    if (a->dt == LOP_f64) return (lop_pair){((double *)a->p)[0], 0, ((double *)a->p)[a->rs]};
    const double _Complex *v = a->p;
    return (lop_pair){creal(v[0]), cimag(v[0]), creal(v[a->rs])};
}
void lop_pair_store(const lop_mat *y, lop_pair a) {
    lop_set(y->dt, y->p, 0, CMPLX(a.re, a.im));
    lop_set(y->dt, y->p, y->rs, a.e);
}

/* all *= u, both moderate or rescaled first. */
lop_pair lop_pair_onto(lop_pair all, lop_pair u, bool whole) {
    double top = larger(u.re, u.im);
    if (!(top >= LOW && top <= HIGH)) u = lop_pair_scaled(u);
    lop_pair y = {all.re * u.re, 0, all.e + u.e};
    if (whole) {
        y.re -= all.im * u.im;
        y.im = all.re * u.im + all.im * u.re;
    }
    top = larger(y.re, y.im);
    return top >= LOW && top <= HIGH ? y : lop_pair_scaled(y);
}

static double real_at(const lop_mat *v, int64_t i) {
    return v->dt == LOP_f64 ? ((const double *)v->p)[i * v->rs]
                            : (double)((const float *)v->p)[i * v->rs];
}

/* The product of the elements of a vector, any stride. Rescaled only where it must be; tame real
 * numbers go by fours, which do not wait for one another. */
lop_pair lop_pair_product(const lop_mat *v) {
    lop_pair all = {1, 0, 0};
    int64_t i = 0;
    for (; !lop_is_complex(v->dt) && i + 4 <= v->m; i += 4) {
        double u[4];
        bool tame = true;
        for (int j = 0; j < 4; j++) {
            u[j] = real_at(v, i + j);
            tame = tame && fabs(u[j]) >= 0x1p-120 && fabs(u[j]) <= 0x1p120;
        }
        if (tame) {
            all = lop_pair_onto(all, (lop_pair){(u[0] * u[1]) * (u[2] * u[3]), 0, 0}, false);
            continue;
        }
        for (int j = 0; j < 4; j++) all = lop_pair_onto(all, (lop_pair){u[j], 0, 0}, false);
    }
    for (; i < v->m; i++) {
        double _Complex z = lop_get(v->dt, v->p, i * v->rs);
        all = lop_pair_onto(all, (lop_pair){creal(z), cimag(z), 0}, lop_is_complex(v->dt));
    }
    return lop_pair_scaled(all);
}

static lop_dtype pair_dtype(lop_dtype dt) { return lop_is_complex(dt) ? LOP_c128 : LOP_f64; }

/* A pair for each batch element of `shape`, whose last `core` dimensions are not batch. */
lop_status lop_pair_infer(lop_node *n, const lop_shape *shape, int core, lop_dtype dt) {
    n->shape = *shape;
    n->shape.ndim += 1 - core;
    n->shape.dim[n->shape.ndim - 1] = 2;
    n->core = 1;
    n->dtype = pair_dtype(dt);
    n->weak = LOP_STRONG;
    return LOP_OK;
}
bool lop_node_is_pair(const lop_node *a) {
    return a->core == 1 && lop_cols(a) == 2 && (a->dtype == LOP_f64 || a->dtype == LOP_c128);
}
lop_status lop_assumed_infer(const lop_node *n, int from, lop_err *err) {
    for (int i = from; i < n->n; i++)
        if (!lop_node_is_pair(n->child[i]))
            return lop_fail(err, LOP_DIM, "%s takes pairs beside its diagonals", n->op->name);
    return LOP_OK;
}
