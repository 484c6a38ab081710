/* thin_sum.h: S = b B + c U M V with a thin U, as solve_woodbury.c reads it, and its solution where
 * the right side is made with B and U (solve_push_through.c). */
#ifndef LOP_THIN_SUM_H
#define LOP_THIN_SUM_H

#include "builds.h"
#include "planner/chain.h"

typedef struct lop_thin {
    const lop_maker *mk;
    lop_dtype dt;
    lop_chain ch;
    const lop_node *sum; /* borrowed: S */
    lop_sym base;
    lop_coef b, c;
    bool eye; /* B is the identity */
    lop_chterm term;
    int half; /* factors of U */
    bool mid; /* the next one is M */
    int64_t n, rank;
    const lop_node *u, *v, *m, *minv; /* owned; m and minv NULL where there is no M */
    const lop_node *binv_u;           /* owned: B^-1 U, as it is written */
    const lop_node *binv;             /* owned: B^-1; NULL: the identity */
    const lop_node *w, *held;         /* owned: B^-1 U as an array, and as an operator (U for I) */
} lop_thin;

/* A right side read as b B p + U (M) w: what stands behind B, and behind U (M), term by term. */
enum { LOP_THIN_TERMS = 6 };
typedef struct lop_thin_right {
    int n;
    struct {
        const lop_node *rest; /* borrowed */
        lop_coef c;
        bool base, with_mid;
    } term[LOP_THIN_TERMS];
    bool with_mid;         /* M is in all that stand behind U, or, where there are none, in S */
    const lop_node *p, *w; /* owned, NULL where there is none */
    const lop_node *left;  /* owned: w - c (M) V p, what remains when p is taken off */
} lop_thin_right;

/* solve_woodbury.c: what f stands for, borrowed, NULL for a group; */
const lop_node *lop_thin_node(const lop_thin *s, lop_sym f);
/* the factor f, or its inverse; the product of n factors; c a; I; B^-1 U computed
 * once, for all that uses it. Owned in *out, or in s. */
lop_status lop_thin_factor(const lop_thin *s, lop_sym f, bool inverse, const lop_node **out);
lop_status lop_thin_product(const lop_thin *s, const lop_sym *f, int n, const lop_node **out);
lop_status lop_thin_multiple(const lop_maker *mk, lop_coef c, const lop_node *a,
                             const lop_node **out);
lop_status lop_thin_identity(const lop_maker *mk, int64_t n, const lop_node **out);
/* a + b, of one kind where that closes (lop_close_once). Owned. */
lop_status lop_sum_closed(const lop_maker *mk, const lop_node *a, const lop_node *b,
                          const lop_node **out) LOP_MUST_CHECK;
lop_status lop_thin_hold(lop_thin *s);

/* solve_woodbury.c: the sum as an update b B + U (c M) V^H, where that pays for as many columns as
 * it has and these are no more than one in `part`. Owned; NOMATCH: it is none. */
lop_status lop_thin_update(const lop_maker *mk, lop_dtype dt, const lop_node *sum, int64_t part,
                           const lop_node **out) LOP_MUST_CHECK;

/* resolvents.c: m as K + c I, c 0 where no such term stands in it. K owned in *k; NOMATCH: nothing
 * else does. */
lop_status lop_read_shift(const lop_maker *mk, const lop_node *m, const lop_node **k,
                          lop_coef *c) LOP_MUST_CHECK;
/* K + c I, of one kind where that closes. Owned. */
lop_status lop_shifted(const lop_maker *mk, const lop_node *k, lop_coef c,
                       const lop_node **out) LOP_MUST_CHECK;

/* unitary_similar.c: Q X Q^H + c I as Q (X + c I) Q^H, Q unitary. Owned; NOMATCH: it is none. */
lop_status lop_shifted_similar(const lop_maker *mk, const lop_node *sum,
                               const lop_node **out) LOP_MUST_CHECK;

/* The diagonal that root asks of an inverse, real, as that of `all`, which m only multiplies, where
 * m^-1 has none that is 0, else by the dense form: of a singular m it says that it is. Owned. */
lop_status lop_where_regular(const lop_maker *mk, const lop_node *root, const lop_node *m,
                             const lop_node *all, const lop_node **out) LOP_MUST_CHECK;

/* inverse_identities.c: X of X^-1, of a Kron of inverses, or of a Diag over reciprocals; NULL in
 * *out: it is none of them. Owned. */
lop_status lop_inverted(const lop_maker *mk, const lop_node *a,
                        const lop_node **out) LOP_MUST_CHECK;

/* solve_push_through.c. Is the right side x such a sum? */
bool lop_thin_read_right(lop_thin *s, const lop_node *x, lop_thin_right *r);
void lop_thin_drop_right(lop_thin_right *r);
/* Is neither part of S negative, and B an inverse, so that neither need be factored? */
bool lop_thin_beside(const lop_thin *s);
lop_status lop_thin_push_through(lop_thin *s, const lop_node *rhs, lop_thin_right *m,
                                 const lop_node **out);
/* B and M both inverses (s->half is 0): of any right side; of one made of them. */
lop_status lop_thin_parallel(lop_thin *s, const lop_node *rhs, const lop_node **out);
lop_status lop_thin_parallel_parts(lop_thin *s, const lop_node *rhs, lop_thin_right *m,
                                   const lop_node **out);

#endif
