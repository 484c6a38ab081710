/* assumed_terms.h: what was assumed positive definite among the terms of a sum: where the sum is
 * not definite, and no term is known to be negative, either another term took that away, or the
 * assumption is false: the term says which, and there alone it is factored. */
#ifndef LOP_ASSUMED_TERMS_H
#define LOP_ASSUMED_TERMS_H

#include "builds.h"

/* A Tridiagonal or BlockTridiagonal that is a sum, or a multiple of one, and Hermitian remembers in
 * attr.i[2] where in its parameters those stand that were assumed positive definite: octal digits,
 * the last operation's the lowest, until all ways have come to an end; 0: there are none. */
enum {
    LOP_PATH_BESIDE_DIAGONAL = 1, /* the first term, beside a diagonal; + 1: the second */
    LOP_PATH_BESIDE_KIND = 3,     /* the first of two of the kind; + 1: the second */
    LOP_PATH_WITHIN = 5,          /* what is multiplied, or conjugated */
    LOP_PATH_BOTH = 6,            /* of two of the kind: the way into the first, then the other's */
    LOP_PATH_END = 7,             /* this was assumed positive definite */
    LOP_PATH_BITS = 3,
    LOP_PATH_DIGITS = 21
};
/* The path in a result, `digit` after `path` (0: there is none) or after what was assumed. */
int64_t lop_path_on(int64_t path, bool positive, int digit);
/* The attributes of a sum of two of one kind; attr.i[word]: the assumption. */
lop_attr lop_assumed_of_sum(const lop_node *a, const lop_node *b, int word);

typedef struct lop_assumed {
    const lop_maker *mk;
    const lop_node *at[LOP_ASSUMED_TERMS]; /* owned */
    int n, left;                           /* left: nodes that may still be looked at */
} lop_assumed;

lop_status lop_assumed_terms(const lop_maker *mk, const lop_node *sum,
                             lop_assumed *d) LOP_MUST_CHECK;
void lop_assumed_free(lop_assumed *d);
/* Of a Tridiagonal or BlockTridiagonal with a path. */
lop_status lop_assumed_in_sum(const lop_maker *mk, const lop_node *a,
                              lop_assumed *d) LOP_MUST_CHECK;
/* Of what is positive definite where all that was assumed of it holds. */
lop_status lop_assumed_within(const lop_maker *mk, const lop_node *a,
                              lop_assumed *d) LOP_MUST_CHECK;
/* The determinant of v[0 .. n - 1] by `op`, whose attr.i[word] says how: by Cholesky or, where that
 * fails, by elimination and with the determinants of the terms. k: the action's attributes. */
lop_status lop_det_beside_assumed(const lop_maker *mk, const lop_attr *k, const lop_op *op,
                                  lop_attr how, int word, int n, const lop_node *const *v,
                                  const lop_assumed *d, const lop_node **out);

#endif
