/* slices_of_blocks.h: rows and columns that lie in one block of what is block diagonal. */
#ifndef LOP_SLICES_OF_BLOCKS_H
#define LOP_SLICES_OF_BLOCKS_H

#include "builds.h"

typedef struct lop_span {
    int64_t start, count;
} lop_span;

/* a[r, c] by the blocks that these lie in, of the shape and dtype of `whole`, which is a[r, c] as
 * it is written. Owned in *out; NOMATCH. */
lop_status lop_slice_of_blocks(const lop_maker *mk, const lop_node *a, lop_span r, lop_span c,
                               const lop_node *whole, const lop_node **out) LOP_MUST_CHECK;
/* blocks_beside_thin.c: rows and columns w of the inverse of a BlockDiag of square blocks and a low
 * rank, where they are those of a block. Owned in *out; NOMATCH. */
lop_status lop_block_beside_thin(const lop_maker *mk, const lop_node *inverse, lop_span w,
                                 const lop_node **out) LOP_MUST_CHECK;
/* Likewise: are entry sums those of the blocks on the diagonal of a BlockDiag of such? */
bool lop_are_blocks_of(const lop_node *sums, const lop_node *kind);

#endif
