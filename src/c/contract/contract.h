/* contract.h: sums of products over labelled axes (einsum), planned once for sizes and strides, run
 * on any arrays of that layout.
 *
 *   lop_axes ... -- contract_read.c --> tensors without repeated, broadcast or lonely labels
 *     -- contract_order.c --> pairs, cheapest first -- contract_pair.c --> steps: a looped product
 * of matrices, a nest of loops, a copy -- contract_run.c --> memory
 *
 * Labels are numbers from 0 on. A label that two operands share and the result has not is summed; a
 * label twice in one operand is its diagonal; a size of 1 broadcasts. No Python, no BLAS of its
 * own: products of matrices are lopk_gemm's. A plan is immutable: any number of threads may run it.
 */
#ifndef LOP_CONTRACT_H
#define LOP_CONTRACT_H

#include "base/buf.h"

enum { LOP_MAXAXES = 64, LOP_MAXLABELS = 256 };

/* The axes of one array; strides in elements, of any sign. */
typedef struct lop_axes {
    int n;
    int label[LOP_MAXAXES];
    int64_t size[LOP_MAXAXES], stride[LOP_MAXAXES];
} lop_axes;

typedef struct lop_spec {
    lop_dtype dt; /* of all: one of the four BLAS dtypes */
    int noperand;
    const lop_axes *operand; /* borrowed, while the plan is made */
    const int *same;         /* same[i]: the first operand on the same memory, or i; NULL: none */
    const lop_axes *result;  /* labels in the operands, each once; its sizes and strides */
    bool any_order;          /* the plan may have strides of its own for the result */
    const int *path;         /* pairs of places, the made one behind the others; NULL: by price */
    int npath;
    int64_t most; /* bytes that temporaries may take */
    int force;    /* tests: a pair goes 1 + mask of packed arrays (result 1, a 2, b 4), + 8 with its
                     terms apart, or 17, as a nest; + 32 times a mask of which of them have their
                     sorts the other way round; 0, and where that is not to be had: by price */
} lop_spec;

/* A loop of a step around its kernel. */
typedef struct lop_loop {
    int64_t size, c, a, b;
    bool sum; /* c stays */
} lop_loop;

enum lop_contract_how { LOP_BY_NEST, LOP_BY_GEMM, LOP_BY_GRAM };
/* c (+)= a b. Slots: operands 0 .., then temporaries, the result is noperand. */
typedef struct lop_contract_step {
    enum lop_contract_how how;
    int a, b, c;                    /* b < 0: a alone */
    int first, nloop;               /* in the plan's loops; what is summed comes last */
    int64_t m, n, k;                /* of the matrices; of a nest: nothing */
    int64_t am, ak, bk, bn, cm, cn; /* their strides */
    int64_t group, apart;           /* group > 0: terms in groups, as lopk_windows_gemm has them */
    bool each;                      /* the last loop is a batch: lopk_gemm_each */
    bool tiles;                     /* of a nest: the last two loops go in square tiles */
    const char *why;                /* "pack a", ... for explain() */
    double flops, seconds;
} lop_contract_step;

typedef struct lop_contraction {
    lop_dtype dt;
    int noperand, nslot, nstep, nloops;
    bool zero;         /* an empty sum: the result is zeros */
    int64_t *offset;   /* bytes of a temporary in the workspace, by slot */
    int64_t workspace; /* bytes */
    lop_axes result;
    int64_t parts; /* times that the steps are run, on parts of the arrays */
    int64_t *part; /* of operands and the result, elements from a part to the next; NULL: one */
    lop_loop *loop;
    lop_contract_step *step;
    double flops, seconds; /* by price */
    int64_t bytes;         /* of temporaries, all of them */
} lop_contraction;

/* Owned plan; DIM, DTYPE, VALUE, MEMORY and OVERFLOW with the numbers in *err. */
lop_status lop_contract(lop_ctx *ctx, const lop_spec *spec, lop_contraction **out,
                        lop_err *err) LOP_MUST_CHECK;
void lop_contract_free(lop_ctx *ctx, lop_contraction *plan);
/* contract_check.c: INTERNAL where a plan is not one of `spec`, which it was made of. */
lop_status lop_contract_check(lop_ctx *ctx, const lop_spec *spec, const lop_contraction *plan,
                              lop_err *err) LOP_MUST_CHECK;

/* operand[i] and result: the arrays' first elements; the result overlaps none. `workspace`: the
 * plan's bytes, aligned to 64. stop (may be NULL) is asked now and then; true: LOP_STOPPED, and the
 * result is anything. */
lop_status lop_contract_run(const lop_contraction *plan, const void *const *operand, void *result,
                            void *workspace, bool (*stop)(void *user), void *user) LOP_MUST_CHECK;

#endif
