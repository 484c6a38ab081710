/* exec_impl.h: what the files of this folder share. */
#ifndef LOP_EXEC_IMPL_H
#define LOP_EXEC_IMPL_H

#include "exec.h"

/* exec.c: the element stride of batch dimension `d` (of `nb` output dimensions) of a slot; 0 where
 * it broadcasts. */
int64_t lop_batch_stride(const lop_frame *f, int slot, int d, int nb);

/* derived_content.c: the content that a derived value rests on. */
lop_print128 lop_content(lop_frame *f, int derived);
bool lop_same_content(const lop_blob *b, lop_print128 print);
/* The leaves by whose content it is found; 0: by that of its step's arguments. */
uint64_t lop_found_by(const lop_frame *f, int derived);
/* Which derived values are there, as far as the leaves tell: before anything runs. */
void lop_find_hits(lop_frame *f);

#endif
