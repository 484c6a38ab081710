/* k_transforms.h: discrete cosine transforms, Walsh-Hadamard transforms, and entries of these
 * matrices. */
#ifndef LOPK_TRIG_H
#define LOPK_TRIG_H

#include "k_convolution.h"

/* cos and sin of 2 pi num / den, 0 <= num < den < 2^59: to the last place, exact where they are 0
 * or 1. */
void lopk_turn(int64_t num, int64_t den, double *c, double *s);
/* a b mod n for 0 <= a, b; n < 2^62. */
int64_t lopk_mulmod(int64_t a, int64_t b, int64_t n);

/* Types 1 to 4 as scipy.fft.dct defines them, unscaled, of one length; f32 or f64. Plans are blobs
 * as in k_fft.h; 0 bytes where there is none (type 1 needs n >= 2). */
size_t lopk_dct_plan_bytes(int type, int64_t n, lop_dtype dt);
size_t lopk_dct_work_bytes(int type, int64_t n, lop_dtype dt);
lop_status lopk_dct_plan_init(void *plan, int type, int64_t n, lop_dtype dt) LOP_MUST_CHECK;
/* One line, n contiguous reals, in place. */
void lopk_dct(const void *plan, void *line, void *work);

/* y <- H x column by column, H of y->m rows, a power of two; y may be x. 13 dtypes. */
void lopk_hadamard(const lop_mat *y, const lop_mat *x);

#endif
