/* interp.h: the oracle of the C tests: a dense interpreter of expression nodes, sharing no code
 * with core, ops or kernels. It evaluates any written or canonical node from the leaves' memory in
 * a lop_rand, in long double complex, in wrapping 64-bit integers and as bool at once, batches
 * included.
 *
 * `mag` is the sum of moduli met on the way (|A| |B| of a product): an error of c n u mag is what
 * the library promises componentwise. Solves carry a normwise bound through the inverse; Toeplitz
 * products that may take the FFT the 2-norm of their symbol. */
#ifndef INTERP_H
#define INTERP_H

#include "expr/random_instance.h"

typedef struct val {
    uint64_t i; /* integers, modulo 2^64; bool 0 or 1 */
    long double re, im, mag;
} val;

/* An array: batch dimensions, then m x n in C order (a vector is m x 1, a number 1 x 1). */
typedef struct tv {
    lop_shape batch;
    int core;
    int64_t m, n, nb; /* nb: batch elements */
    val *v;           /* nb * m * n */
} tv;

typedef struct ip {
    const lop_rand *rand;
    bool bools;    /* add is OR, mul is AND */
    bool inside;   /* under an operator: parameters are taken in the dtype the operator works in */
    bool fft;      /* products with a Toeplitz may be normwise accurate only */
    bool singular; /* met a singular matrix: the value means nothing */
    const char *why; /* NULL, or what could not be evaluated */
    struct block *blocks;
} ip;

/* `dt`: in which an operator at the root works (a value has its own). */
void ip_open(ip *p, const lop_rand *rand, lop_dtype dt, bool fft);
/* The value of `node` (an operator's is its dense form), borrowed from *p; NULL with p->why set
 * when it cannot be evaluated. */
const tv *ip_eval(ip *p, const lop_node *node);
void ip_close(ip *p);
/* interp_det.c: the determinant of a, n x n in C order. */
val ip_determinant(const val *a, int64_t n);
/* i^t b^(h/2) 2^(s/2), as `closed_det` has it. */
val ip_detclosed(const lop_node *node);
/* The same file: y[0] <- the determinant that head `node->op->name` makes of a (n x n, a vector of
 * n, or a determinant) and b; y[1] stays 0. The library's pair (mantissa, exponent) is (det, 0)
 * here. */
val ip_det_times(val a, val b); /* of two determinants, whatever the dtype */
void ip_det(ip *p, const lop_node *node, val *y, const val *a, int64_t n, const val *b);

/* For heads that other files know (interp_conv.c, interp_band.c). */
typedef struct mv { /* one matrix of a value */
    val *v;
    int64_t m, n;
} mv;
typedef void (*ip_fn)(ip *p, const lop_node *node, mv y, mv a, mv b);
tv *ip_blank(ip *p, const lop_shape *batch, int core, int64_t m, int64_t n);
/* y[e] = f(a[e], b[e]) over the broadcast batch. b may be NULL. */
const tv *ip_zip(ip *p, const lop_node *node, const tv *a, const tv *b, int core, int64_t m,
                 int64_t n, ip_fn f);
val ip_add(const ip *p, val a, val b);
val ip_mul(const ip *p, val a, val b);
const tv *ip_solve(ip *p, const tv *a, lop_mode mode, const tv *b); /* mode(a)^-1 b */
bool ip_is_conv(const lop_node *node);
const tv *ip_conv(ip *p, const lop_node *node);
const tv *ip_kernel(ip *p, const lop_node *node); /* interp_kernel.c */
bool ip_is_projection(const char *name);
const tv *ip_projection(ip *p, const lop_node *node); /* interp_projections.c */

/* Is `got` (any strides) within factor * u(dtype) * mag of `want`? Integers and bool must be equal.
 * Otherwise says where in `why`. */
bool tv_close(const tv *want, const lop_buf *got, double factor, char *why, size_t size);
/* Are two values equal within factor * u * mag of either? Shapes must agree. */
bool tv_same(const tv *a, const tv *b, lop_dtype dt, double factor);
/* Element e, i, j. */
static inline val tv_at(const tv *a, int64_t e, int64_t i, int64_t j) {
    return a->v[(e * a->m + i) * a->n + j];
}
mv ip_part(const tv *a, const lop_shape *batch, int64_t e);
bool ip_broadcast(const lop_shape *a, const lop_shape *b, lop_shape *out);
val ip_quotient(val a, val b);
val ip_coef(const ip *p, const lop_attr *a);
/* Permutation, bands, triangles, ...: known there? Then its value. */
bool ip_band_knows(const char *name);
const tv *ip_band(ip *p, const lop_node *node);

/* The value of one element of memory. */
val val_load(lop_dtype dt, const void *p, int64_t at);

#endif
