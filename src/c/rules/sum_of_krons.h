/* sum_of_krons.h: a sum of Krons, read place by place for solve_eigenbasis.c, solve_stein.c and
 * solve_two_krons.c. */
#ifndef LOP_SUM_OF_KRONS_H
#define LOP_SUM_OF_KRONS_H

#include "builds.h"
#include "expr/coefficients.h"

enum { LOP_KRON_PLACES = 8, LOP_KRON_TERMS = 8 };

typedef struct lop_kron_factor {
    const lop_node *node; /* borrowed; NULL: the identity */
    int mode;
} lop_kron_factor;
typedef struct lop_kron_term {
    lop_coef c;
    int n;
    lop_kron_factor f[LOP_KRON_PLACES];
    int64_t size[LOP_KRON_PLACES];
} lop_kron_term;
typedef struct lop_kron_place {
    const lop_node *a, *b; /* borrowed: the pencil; NULL: none there */
    bool diagonal, flip;   /* all Diag or identities; the conjugate of what a and b are */
    const lop_node *va, *vb, *v, *vh; /* owned: the dense forms, V and V^H as operators */
} lop_kron_place;
typedef struct lop_kron_sum {
    const lop_maker *mk;
    lop_dtype dt;
    const lop_node *sum;
    int n, nt;
    int64_t rows;
    lop_kron_term t[LOP_KRON_TERMS];
    lop_coef c; /* the identity's */
    bool eye, unitary;
    lop_kron_place at[LOP_KRON_PLACES];
    const lop_node *part[LOP_KRON_TERMS]; /* owned: c_t times the Kron of eigenvalues */
    const lop_node *d;                    /* owned: the sum of the parts and c */
} lop_kron_sum;

/* What eigenvectors and a Schur form of n rows cost beside a third of n^3 flops of a large
 * Cholesky, the slower rates counted in; 2026-11-21, AMD EPYC, one thread. */
enum { LOP_COST_EIGENVECTORS = 25, LOP_COST_SCHUR_FORM = 75 };

/* `sum` as such a sum whose eigenvectors pay; false: it is none, or of one place only. */
bool lop_kron_sum_read(lop_kron_sum *s, const lop_maker *mk, lop_dtype dt, const lop_node *sum);
/* Its terms alone, whatever stands at its places, which have the sizes of those of `like`. */
bool lop_kron_terms_read(lop_kron_sum *s, const lop_kron_sum *like, const lop_node *sum);
/* Are factors of its places, at `each` times n^3, cheaper than one of the whole? */
bool lop_kron_sum_pays(const lop_kron_sum *s, double each);
/* Do both stand for one matrix? */
bool lop_kron_same(const lop_node *a, const lop_node *b);

/* Of S^-1 X S^-1, S = V diag(d) V^H opened, X of terms of its places (NULL: X is a diagonal): what
 * it means for a factor of a Kron, as `root` asks (between_spectra.c). NOMATCH: the factor is of
 * none of the places. Owned in *out. */
lop_status lop_partial_between(const lop_kron_sum *s, const lop_kron_sum *terms, const lop_node *x,
                               const lop_node *root, const lop_node **out) LOP_MUST_CHECK;

/* X, the identity where it is NULL, beside a sum of c S^-power, in any order, as a trace does not
 * ask for it. Borrowed. */
enum { LOP_BESIDE_TERMS = 8, LOP_BESIDE_POWER = 4 };
typedef struct lop_beside {
    const lop_node *s, *x;
    int n, power[LOP_BESIDE_TERMS];
    lop_coef c[LOP_BESIDE_TERMS];
} lop_beside;
/* False: the product p is none. */
bool lop_read_beside(lop_ctx *ctx, const lop_node *p, lop_beside *b);
/* Numbers whose sum is the trace; x NULL: of b's X, a diagonal. Owned in *out. */
lop_status lop_trace_beside(const lop_kron_sum *s, const lop_kron_sum *x, const lop_beside *b,
                            const lop_node **out) LOP_MUST_CHECK;

/* The numbers on the diagonal of V^H a V, of what V makes diagonal as it does S: sums, products and
 * multiples of S^-1 and of Krons of the matrices at its places; s is real. NOMATCH: it is none. */
lop_status lop_spectrum_within(const lop_kron_sum *s, const lop_node *a, int depth,
                               const lop_node **out) LOP_MUST_CHECK;
/* S of the first S^-1 in sums, products and multiples; borrowed. NULL: there is none. */
const lop_node *lop_inverted_within(const lop_node *a, int depth);

/* `a` with Laplacians of grids of several axes as the KronSums that they are. Owned in *out. */
lop_status lop_grids_as_kronsums(const lop_maker *mk, const lop_node *a, int depth,
                                 const lop_node **out) LOP_MUST_CHECK;
/* The view that all its factors are seen by, LOP_N where they are not. */
int lop_kron_sum_view(const lop_kron_sum *s);
/* Cholesky or LU of the dense form; b NULL: its determinant (solve_eigenbasis.c). */
lop_status lop_kron_sum_directly(const lop_kron_sum *s, const lop_node *b,
                                 const lop_node **out) LOP_MUST_CHECK;

/* c I + k A (x) B, not known to be Hermitian, whose Schur forms pay (solve_stein.c). */
typedef struct lop_stein {
    lop_coef k;
    lop_kron_factor f[2];
} lop_stein;
bool lop_stein_read(const lop_kron_sum *s, lop_stein *y);
/* The solution for b, or where b is NULL the determinant. */
lop_status lop_stein_build(const lop_kron_sum *s, const lop_stein *y, const lop_node *b,
                           const lop_node **out) LOP_MUST_CHECK;

/* k A (x) C + l B (x) D, whose Schur forms pay (solve_two_krons.c). */
bool lop_two_krons_read(const lop_kron_sum *s);
/* The solution for b, or where b is NULL the determinant. */
lop_status lop_two_krons_build(const lop_kron_sum *s, const lop_node *b,
                               const lop_node **out) LOP_MUST_CHECK;

#endif
