/* k_markov.h: likelihoods of Matern processes with their derivatives by the process's numbers
 * (k_markov.c). */
#ifndef LOPK_MARKOV_H
#define LOPK_MARKOV_H

#include "k_quasi.h"

enum { LOPK_MARKOV_LANES = 8, LOPK_MARKOV_STATES = 3 }; /* of each of the two results, below */

/* A = K + diag(noise * scale_i + more_i) and the n numbers b; K of smoothness order + 1/2, 0 to 2,
 * of that variance at times whose steps are `step` (the first is not read), and the rate
 * sqrt(2 order + 1) / length scale. Or K is `variance` times the Hermitian `given`, real, of at
 * most LOPK_MARKOV_STATES states, and there is no rate. All are *borrowed*; given NULL: none; scale
 * NULL: 1, more NULL: 0. */
typedef struct lopk_markov {
    int order;
    int64_t n;
    double variance, rate, noise;
    const double *step, *b, *scale, *more;
    const lopk_quasi *given;
} lopk_markov;

/* out[0] <- b^T A^-1 b, its derivatives by variance, rate and noise, and, where `along` (three
 * numbers) is not NULL, its derivative along that and that one's three derivatives; out[8] and on
 * likewise of log det A. One pass that keeps nothing, O(n J^3) of J states. LOP_SINGULAR: a pivot
 * is not above 1e-6 of its element of A's diagonal, that is as large or small as its cube is no
 * number, or a number is not finite: a checked solve is to say. */
lop_status lopk_markov_jets(const lopk_markov *m, const double *along, double *out) LOP_MUST_CHECK;

#endif
