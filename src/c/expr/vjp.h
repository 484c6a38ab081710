/* vjp.h: how the entries of a kind's matrix follow from its children: gradients.
 *
 * Where L is a number made of the matrix A of `self`, its *cotangent* G, an operator of A's shape,
 * says dL = Re sum(conj(G) dA). A kind's slot `vjp` makes the cotangent of one of its children: an
 * operator for an operator child, an array expression of the child's shape for an array. Nothing is
 * computed; the rules take the expression apart by the form of G. The convention is PyTorch's; JAX
 * has the conjugate.
 *
 * The helpers return borrowed nodes that the build owns; NULL after a failure, and then NULL is
 * passed through, so that a slot is one expression. */
#ifndef LOP_VJP_H
#define LOP_VJP_H

#include "op.h"

enum { LOP_VJP_NODES = 1024 };

struct lop_vjp {
    lop_ctx *ctx;
    lop_err *err;
    lop_status st;
    bool real; /* the child is: of what is complex the real part is meant */
    int n;
    const lop_node *made[LOP_VJP_NODES];
};

/* The cotangent of child `child` of `self`, whose own is `g`, with the batch of both: owned.
 * UNABLE: the kind has none. `child` as many as it has: of those children together that are found
 * together, raveled. */
lop_status lop_cotangent(lop_ctx *ctx, const lop_node *self, int child, const lop_node *g,
                         const lop_node **out, lop_err *err) LOP_MUST_CHECK;

/* Any node over one or two children. */
const lop_node *lop_vjp_make(lop_vjp *v, const lop_op *op, const lop_attr *attr, const lop_node *a,
                             const lop_node *b);
/* Likewise over n. */
const lop_node *lop_vjp_over(lop_vjp *v, const lop_op *op, const lop_attr *attr, int n,
                             const lop_node *const *child);
/* Without children, by shape and dtype. */
const lop_node *lop_vjp_like(lop_vjp *v, const lop_op *op, const lop_node *like);
/* The sum of terms of which NULL is none; the product of operators. */
const lop_node *lop_vjp_sum(lop_vjp *v, const lop_node *a, const lop_node *b);
const lop_node *lop_vjp_prod(lop_vjp *v, const lop_node *a, const lop_node *b);
const lop_node *lop_vjp_view(lop_vjp *v, const lop_node *a, lop_mode mode);
/* The operator g without the first multiple, *by, that stands within its products and views, at
 * most `deep` of them; NULL: there is none (*by NULL), or an error. */
const lop_node *lop_vjp_without_multiple(lop_vjp *v, const lop_node *g, int deep,
                                         const lop_node **by);
const lop_node *lop_vjp_inverse(lop_vjp *v, const lop_node *a);
/* (re + i im) a, of an operator. */
const lop_node *lop_vjp_times(lop_vjp *v, double re, double im, const lop_node *a);
/* What is assumed of a matrix its cotangent is projected on: of what is symmetric or Hermitian by
 * its word, LOP_ASSUME_..., (G + G^T) / 2 or (G + G^H) / 2. */
const lop_node *lop_vjp_assumed(lop_vjp *v, const lop_node *g, int64_t word);
/* Its real part, where the child is real and `a` is not. */
const lop_node *lop_vjp_real(lop_vjp *v, const lop_node *a);
/* Of an operator, as an array that a child is made of: diagonal k, the dense form. */
const lop_node *lop_vjp_diagonal(lop_vjp *v, const lop_node *a, int64_t k);
const lop_node *lop_vjp_dense(lop_vjp *v, const lop_node *a);
/* Rows (axis 0) or columns (axis 1) start, ..., start + count - 1 of an operator. */
const lop_node *lop_vjp_cut(lop_vjp *v, const lop_node *a, int axis, int64_t start, int64_t count);
/* A vector of zeros; the identity. */
const lop_node *lop_vjp_zeros(lop_vjp *v, int64_t n, lop_dtype dt);
const lop_node *lop_vjp_eye(lop_vjp *v, int64_t n, lop_dtype dt);
/* Is it a product through at most so many columns? Its factors. */
bool lop_vjp_thin(lop_vjp *v, const lop_node *g, int64_t most, const lop_node **a,
                  const lop_node **b);
/* No way for this child, or this form of the kind. */
const lop_node *lop_vjp_unable(lop_vjp *v);

#endif
