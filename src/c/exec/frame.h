/* frame.h: where the arguments of steps lie in a frame, for exec.c. */
#ifndef LOP_FRAME_H
#define LOP_FRAME_H

#include "exec.h"

/* Finds the matrix of each slot that is no leaf. Called again when a fallback branch has taken its
 * memory. */
void lop_frame_place(lop_frame *f);
/* The element stride of a slot along batch dimension `d` of the `nb` that the output has; 0 where
 * the slot broadcasts. */
int64_t lop_frame_batch_stride(const lop_frame *f, int slot, int d, int nb);

#endif
