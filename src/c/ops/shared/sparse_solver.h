/* sparse_solver.h: matrices that are sparse by how they are written, and the solver outside the
 * core that factors them (CHOLMOD or SciPy's SuperLU, py/run/py_sparse_solver.c).
 *
 * What is solved with goes outside as a program in post-order, LOP_SPARSE_WORDS integers a term, on
 * the arrays that are the step's inputs:
 *   an array      -1, its number, 0...
 *   sizes         -2, how many, the sizes, 0...
 *   an operator   its op's id, number of operands, attr.i[0..3], re and im (bits of doubles), rows,
 *                 columns, dtype */
#ifndef LOP_SPARSE_H
#define LOP_SPARSE_H

#include "expr/op.h"

enum { LOP_SPARSE_WORDS = 11, LOP_SPARSE_TERMS = 96 };

/* What is asked of the solver: see `run` below. */
typedef enum lop_asked {
    LOP_SPARSE_FACTOR,   /* a[0] a lop_foreign to fill; a[1...] the arrays of the step's program */
    LOP_SPARSE_SOLVE,    /* a[0] = mode(A)^-1 a[2], a[1] the factor; mode in attr.i[0] */
    LOP_SPARSE_DET,      /* a[0] the pair (scaled_pair.h) */
    LOP_SPARSE_DIAGONAL, /* a[0] = diagonal attr.i[0] of A^-1 */
    LOP_SPARSE_TRACE,    /* a[0] = tr(A^-1 B), B the program's on a[2...] */
    LOP_SPARSE_ROWS,     /* a[0] = u_i A^-1 w_i, [U W] the program's on a[2...] */
    LOP_SPARSE_SINGULAR, /* a[1] the factor: SINGULAR where it has told that there is no answer */
    LOP_SPARSE_ENTRIES   /* a[0] = the entries of A^-1 at the places that a[2], a[3] name; which of
                            lop_places, in the step's data, and of the corner of how many blocks */
} lop_asked;

/* `run` is called with no lock held and takes what it needs. SINGULAR: it has no answer that is
 * accurate enough, the dense form is to serve. RANK: there is none. */
typedef struct lop_sparse {
    bool (*ready)(const struct lop_sparse *own); /* under the lock */
    lop_status (*run)(const struct lop_sparse *own, const lop_call *c, lop_asked what);
    int64_t fewest;   /* rows from which it is taken; 0: as measured (tests set few) */
    const char *name; /* of the step that factors */
    void *user;
} lop_sparse;

/* Is the call the product of rows in CSR with a matrix (out, in, data, indices, indptr)? */
bool lop_sparse_by_rows(const lop_call *c);
/* How many entries the operator has at most, going by how it is written; -1: it has a part that is
 * not sparse, batch dimensions, or more parts than a program takes. */
double lop_sparse_entries(const lop_node *a);
/* Square, and factored outside rather than by its dense form? */
bool lop_sparse_pays(const lop_node *a);
/* Likewise, are entries of its inverse selected from that factor? Bands too. */
bool lop_sparse_selects(const lop_node *a);

#endif
