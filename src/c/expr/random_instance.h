/* random_instance.h: random instances of kinds for the batteries, with the memory of their leaves.
 */
#ifndef LOP_RAND_H
#define LOP_RAND_H

#include "op.h"

enum { LOP_RAND_LEAVES = 64 };

struct lop_rand {
    lop_ctx *ctx;
    lop_rng rng;
    lop_err *err;
    int n;
    uint64_t serial[LOP_RAND_LEAVES];
    lop_buf buf[LOP_RAND_LEAVES]; /* owned memory, C order */
};

void lop_rand_init(lop_rand *r, lop_ctx *ctx, uint64_t seed, lop_err *err);
void lop_rand_clear(lop_rand *r); /* frees the leaves' memory */
/* Owned leaf node with random content: normal for floats, small integers for integers. */
lop_status lop_rand_array(lop_rand *r, lop_dtype dt, int core, const lop_shape *shape,
                          const lop_node **out) LOP_MUST_CHECK;
lop_status lop_rand_vector(lop_rand *r, lop_dtype dt, int64_t n,
                           const lop_node **out) LOP_MUST_CHECK;
lop_status lop_rand_matrix(lop_rand *r, lop_dtype dt, int64_t m, int64_t n,
                           const lop_node **out) LOP_MUST_CHECK;
/* Indices lo <= . < hi, int64. */
lop_status lop_rand_index(lop_rand *r, int64_t n, int64_t lo, int64_t hi,
                          const lop_node **out) LOP_MUST_CHECK;
/* 0 to n - 1 in random order, some counted from the end, int64. */
lop_status lop_rand_permutation(lop_rand *r, int64_t n, const lop_node **out) LOP_MUST_CHECK;
/* A Dense of that size. */
lop_status lop_rand_dense(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                          const lop_node **out) LOP_MUST_CHECK;
const lop_buf *lop_rand_find(const lop_rand *r, uint64_t serial);

#endif
