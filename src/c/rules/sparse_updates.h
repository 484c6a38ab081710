/* sparse_updates.h: A = E + c U M^-1 V^H of a diagonal E and sparse others, as sparse_updates.c
 * reads it; its derivatives by M: covered_inverses.c. */
#ifndef LOP_SPARSE_UPDATES_H
#define LOP_SPARSE_UPDATES_H

#include "builds.h"

typedef struct lop_seen {
    const lop_maker *mk;
    const lop_node *sum, *m;               /* borrowed */
    const lop_node *u, *vh, *e, *over, *h; /* owned; u and vh NULL: the identity */
    const lop_node *x;                     /* owned: H = M + with x */
    const lop_node *own; /* owned: M where it is an update of low rank, else NULL */
    lop_coef c, with;
    bool factored; /* H is not solved with at once; U and V are the identity */
} lop_seen;

/* To be closed whatever comes back. NOMATCH: the sum is not so. */
lop_status lop_seen_read(const lop_maker *mk, const lop_node *sum, lop_dtype dt,
                         lop_seen *s) LOP_MUST_CHECK;
void lop_seen_close(lop_seen *s);
/* The solution for b, of a lop_seen, which nothing has looked at. Owned in *out. */
lop_status lop_seen_solution(const void *of, const lop_node *b,
                             const lop_node **out) LOP_MUST_CHECK;

/* Diagonal, or a multiple of one; are the reciprocals of its numbers as good as those of the whole;
 * E^-1: 1 / c times the identity, or a diagonal of reciprocals, owned. */
bool lop_is_noise(const lop_node *a);
bool lop_noise_is_exact(const lop_node *e, const lop_node *sum);
lop_status lop_noise_inverse(const lop_maker *mk, const lop_node *e,
                             const lop_node **out) LOP_MUST_CHECK;

/* `value`, of A = E + .., where `solution` of a probe is as good as a direct one and E is not much
 * nearer to a singular matrix than A is; else alt. Owned in *out. */
typedef struct lop_noise_check {
    const lop_maker *mk;
    const lop_node *sum, *e; /* A and E */
    lop_status (*solution)(const void *of, const lop_node *b, const lop_node **out);
    const void *of;
} lop_noise_check;
lop_status lop_noise_checked(const lop_noise_check *n, const lop_node *value, const lop_node *alt,
                             const lop_node **out) LOP_MUST_CHECK;
/* The root, a trace or a main diagonal of a product, by the product's dense form. Owned in *out. */
lop_status lop_product_by_dense(const lop_maker *mk, const lop_node *root,
                                const lop_node **out) LOP_MUST_CHECK;

/* covered_inverses.c: is f what a is, seen through a mode? */
bool lop_is_view_of(const lop_node *f, const lop_node *a, int mode);

/* A determinant of A, `rows` of them, in which det H / det M stands, as op_checked_quotient.c
 * accepts it, else alt: M moves log det A by M^-1 - by H^-1. All borrowed. */
typedef struct lop_quotient {
    int64_t rows;
    const lop_node *det, *m, *h;
    lop_coef by;
    const lop_node *alt;
} lop_quotient;
/* Owned in *out. */
lop_status lop_quotient_checked(const lop_maker *mk, const lop_quotient *q,
                                const lop_node **out) LOP_MUST_CHECK;
/* The determinant by LU of the dense form, or Cholesky where that can be. Owned in *out. */
lop_status lop_det_of_dense(const lop_maker *mk, const lop_attr *k, const lop_node *a,
                            const lop_node **out) LOP_MUST_CHECK;

#endif
