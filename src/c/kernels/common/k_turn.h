/* k_turn.h: copies between layouts that disagree about the inner direction. */
#ifndef LOPK_TURN_H
#define LOPK_TURN_H

#include <stdint.h>

/* y's line j <- element j of each of m lines of x, of n elements each; lines ldy and ldx bytes
 * apart, their elements of `size` bytes (4, 8 or 16) side by side. y and x do not overlap. */
void lopk_copy_turned(void *y, int64_t ldy, const void *x, int64_t ldx, int64_t m, int64_t n,
                      int64_t size);

#endif
