/* frame.h: where the arguments of steps lie in a frame, for exec.c, and derived_content.c. */
#ifndef LOP_FRAME_H
#define LOP_FRAME_H

#include "exec.h"

/* Finds the matrix of each slot that is no leaf. Called again when a fallback branch has taken its
 * memory. */
void lop_frame_place(lop_frame *f);
/* The element stride of a slot along batch dimension `d` of the `nb` that the output has; 0 where
 * the slot broadcasts. */
int64_t lop_frame_batch_stride(const lop_frame *f, int slot, int d, int nb);

/* An assumption has failed, of this element of that mask. */
void lop_frame_note_failed(lop_frame *f, int mask, int64_t element);

/* derived_content.c: the content that a derived value rests on. */
lop_fingerprint lop_content(lop_frame *f, int derived);
bool lop_same_content(const lop_blob *b, lop_fingerprint print);
/* The leaves by whose content it is found; 0: by that of its step's arguments. */
uint64_t lop_found_by(const lop_frame *f, int derived);
/* Finds, before anything runs, the derived values whose leaves have the same content. */
void lop_find_hits(lop_frame *f);

#endif
