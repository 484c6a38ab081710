/* k_kron.h: (A1 (x) .. (x) Ap) x with plain dense factors, all of them in one call.
 *
 * No allocation; the caller gives the room that lopk_kron_plan asks for. The four BLAS dtypes. Same
 * input, thread count and CPU give the same bits. */
#ifndef LOPK_KRON_H
#define LOPK_KRON_H

#include "base/buf.h"

enum { LOPK_KRON_MAX = 16, LOPK_KRON_OWN = 4096 };

/* The factors as they act (a transposed one with its strides exchanged), any strides >= 0; k
 * columns; order[s] is the factor that step s does. lopk_kron_plan fills the rest, from sizes and
 * dtype alone (a[].p may be NULL then). */
typedef struct lopk_kron {
    int n;
    lop_dtype dt;
    int64_t k;
    lop_mat a[LOPK_KRON_MAX];
    bool conj[LOPK_KRON_MAX];
    int8_t order[LOPK_KRON_MAX], when[LOPK_KRON_MAX];
    int64_t room;        /* bytes of scratch; 0: the call's own stack is enough */
    double flops, moved; /* bytes read and written beyond the caches near by */
} lopk_kron;

/* The order of fewest flops, by 1/n - 1/m of m x n factors: zero rows first, they end all. Of equal
 * large ones the last first: then a block of the result is written by what runs inside it, and its
 * leading axis follows in place. */
void lopk_kron_order(lopk_kron *g);
/* Room, flops and bytes. LOP_OVERFLOW where an intermediate is larger than memory can be. */
lop_status lopk_kron_plan(lopk_kron *g) LOP_MUST_CHECK;

/* y <- the product; x of prod(n) x k, y of prod(m) x k, both in C order, no overlap. `order` set;
 * `room`, `moved` and `flops` are not read. scratch: NULL where the plan's room was 0. */
void lopk_kron_run(lopk_kron *g, const lop_mat *y, const lop_mat *x, void *scratch);

/* y[e] = op(a) b[e] for e < count, as lopk_gemm_batch has it, for an `a` of at most 4 x 4 and
 * products of 1, 2 or 4 columns that lie one behind the other in C order: vectors run across
 * columns and rows. False, and nothing is done, for all others. */
bool lopk_kron_few(const lop_mat *y, int64_t y_step, const lop_mat *a, bool conj_a,
                   const lop_mat *b, int64_t b_step, int64_t count);

#endif
