/* quasiseparable.h: what the kind QuasiSeparable, its solves and its gradients share. */
#ifndef LOP_QUASI_H
#define LOP_QUASI_H

#include "expr/op.h"
#include "kernels/quasiseparable/k_quasi.h"

/* Shape (..., n, n), dtype and core of *n from its first four children d, p, q, a; from four
 * others, from child `first` on. */
lop_status lop_quasi_shape(lop_node *n, lop_err *err) LOP_MUST_CHECK;
lop_status lop_quasi_shape_from(lop_node *n, int first, lop_err *err) LOP_MUST_CHECK;
/* d, p, q, a of v in dtype `dt` and C order, as inputs in[0] to in[3]. */
lop_status lop_quasi_inputs(lop_emit *e, const lop_node *const *v, lop_dtype dt,
                            int *in) LOP_MUST_CHECK;
/* In which factors, solves and gradients of a result in `dt` are computed: double precision. */
static inline lop_dtype lop_quasi_dtype(lop_dtype dt) {
    return lop_is_complex(dt) ? LOP_c128 : LOP_f64;
}
/* The slot of the factor L D L^H of the d, p, q, a in `in`, which solves, determinants and
 * gradients share; -1 with the status in *st. */
int lop_quasi_factor_slot(lop_emit *e, int64_t n, int64_t J, bool full, lop_dtype dt, const int *in,
                          lop_status *st);
/* The kernels' view of four matrices d, p, q, a. */
lopk_quasi lop_quasi_of(const lop_mat *const *a, bool tri);

#endif
