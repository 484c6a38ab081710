/* properties.h: what follows from how an expression is written, whatever its numbers are. Looks as
 * deep as LOP_INFER_DEPTH nodes and at LOP_INFER_NODES at most; beyond that nothing is known. */
#ifndef LOP_INFER_H
#define LOP_INFER_H

#include "op.h"

enum { LOP_INFER_DEPTH = 24, LOP_INFER_FACTORS = 24, LOP_INFER_NODES = 1024 };

/* Written nodes are not interned: do two say the same, as far as `depth` nodes down? */
bool lop_node_alike(const lop_node *a, const lop_node *b, int depth);

/* As which view of a does b stand, as another of its kind: the transpose (a Kernel of the points
 * exchanged, a real Kron or BlockDiag of transposes), of a Triangular any; 0: it does not. */
int lop_node_turned(const lop_node *a, const lop_node *b, int depth);

/* Is it its own adjoint? Sums of Hermitian terms are, products that read the same from both ends
 * (X^H M X), and more. */
bool lop_infer_hermitian(const lop_node *a);
/* Likewise, whatever its arrays hold: nothing assumed of them counts. */
bool lop_infer_hermitian_written(const lop_node *a);
/* Is it Hermitian without negative eigenvalues? A solve with it may try Cholesky. */
bool lop_infer_semidefinite(const lop_node *a);
/* Is it a sum that is definite if what was assumed of its terms holds? Then a Cholesky that fails
 * says that it does not. */
bool lop_infer_assumed_definite(const lop_node *a);
/* A bound of its rank from above. */
int64_t lop_infer_rank(const lop_node *a);

/* -- unitary.c */

enum { LOP_INFER_THIN = 32 };
/* Identities plus a thin part, I + Y C Y^H, that have to be unitary by their numbers; borrowed. */
typedef struct lop_infer_thin {
    const lop_node *of[LOP_INFER_THIN];
    int n;
} lop_infer_thin;
/* Is it square with orthonormal columns, by assumption, by its kinds or by how it is written? */
bool lop_infer_unitary(const lop_node *a);
/* Likewise, if those of `thin` are; NULL: none may have to be. */
bool lop_infer_unitary_but(const lop_node *a, lop_infer_thin *thin);
/* Is something assumed of it whose test is on its way (check="full")? It is to be met, not left
 * out. */
bool lop_infer_under_test(const lop_node *a);

/* -- the rest */

/* Has it an inverse, whatever its numbers are? TRUE: unitary, assumed positive definite, that plus
 * what is semidefinite, and products, inverses and Krons of such operands. FALSE: its rank is
 * below its size. An assumption that is still to be tested (check="full") says nothing here. */
lop_truth lop_infer_regular(const lop_node *a);
/* Outside this band are structural zeros. At most rows - 1 and columns - 1. */
lop_band lop_infer_bands(const lop_node *a);

#endif
