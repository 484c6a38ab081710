/* tape_proof.h: is the matrix of a program positive definite, and as symmetric as its structure
 * says? By bounds that are cheap, as src/pylinop/pytensor/definite.py has them, which decides where
 * these do not tell. */
#ifndef LOP_TAPE_PROOF_H
#define LOP_TAPE_PROOF_H

#include "base/buf.h"

typedef enum lop_proof_kind {
    LOP_PROOF_TRUE,
    LOP_PROOF_DENSE,       /* array 0 is symmetric: the rest its Cholesky tells */
    LOP_PROOF_SYMMETRIC,   /* array 0 + slack I has a Cholesky */
    LOP_PROOF_DIAGONAL,    /* all numbers of array 0 are above minus the slack, and finite */
    LOP_PROOF_NONNEGATIVE, /* all numbers of array 0 */
    LOP_PROOF_CONGRUENCE,  /* W C W', of arrays W and C */
    LOP_PROOF_TOEPLITZ,    /* of its first column */
    LOP_PROOF_KRON,        /* of children that are one array each */
    LOP_PROOF_ALL,         /* each child */
    LOP_PROOF_SCALED,      /* a number times a child */
    LOP_PROOF_FRESH,       /* the child, without slack */
    LOP_PROOF_SUM,         /* what children that are diagonals give, the others may take */
    LOP_PROOF_BAND,        /* arrays on the diagonals `offset`, symmetric */
    LOP_PROOF_EQUAL,       /* array 0 is the number whose bits are its offset */
    LOP_PROOF_REGULAR,     /* no number of array 0 is zero, infinite or NaN */
    LOP_PROOF_KINDS
} lop_proof_kind;

enum { LOP_PROOF_ARRAYS = 16 };

/* In pre-order, so that no pointers are in it: `behind` is how many entries a node and what is
 * below it take. */
typedef struct lop_proof {
    lop_proof_kind kind;
    int behind, narrays, array[LOP_PROOF_ARRAYS];
    int64_t offset[LOP_PROOF_ARRAYS];
} lop_proof;

/* in: by number, float32 and float64. False: not told. */
bool lop_proved(lop_ctx *ctx, const lop_proof *proof, const lop_buf *in, double slack);

#endif
