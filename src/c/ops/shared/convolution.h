/* convolution.h: what the kinds of convolution type share: circulant, Hankel, multilevel Toeplitz,
 * convolution. Each says its geometry; products, dense form, diagonals and elements follow. */
#ifndef LOP_CONV_H
#define LOP_CONV_H

#include "expr/random_instance.h"
#include "kernels/fft/k_convolution.h"
#include "kernels/common/kernels.h"

/* out = mode(T) x; T has that geometry and the generator `g`, an array node of one dimension. */
lop_status lop_conv_apply(lop_emit *e, const lopk_conv *c, const lop_node *g, lop_mode mode, int x,
                          int out);
/* The derived value [plan, spectrum] of a circulant of the numbers in slot g, without padding; the
 * spectrum begins at byte *at. -1: an error, in *st. */
int lop_conv_spectrum(lop_emit *e, const lopk_conv *c, int g, size_t *at, lop_status *st);
/* out = mode(T)^-1 x of a circulant, by its eigenvalues. */
lop_status lop_conv_solve(lop_emit *e, const lopk_conv *c, const lop_node *g, lop_mode mode, int x,
                          int out);
lop_status lop_conv_dense(lop_emit *e, const lopk_conv *c, const lop_node *g, int out);
lop_status lop_conv_diagonal(lop_emit *e, const lopk_conv *c, const lop_node *g, int64_t k,
                             int out);
lop_status lop_conv_element(lop_emit *e, const lopk_conv *c, const lop_node *g, int64_t i,
                            int64_t j, int out);
/* Which product of boxes: a convolution's modes, or a matrix of constant diagonals, whose numbers
 * are a box of m + n - 1. */
enum { LOP_CONV_FULL, LOP_CONV_SAME, LOP_CONV_VALID, LOP_CONV_CIRCULAR, LOP_CONV_DIAGONALS };
/* Of the boxes g and n, which have as many levels (LOPK_LEVELS at most). False where `how` has none
 * for them. */
bool lop_conv_geometry(int64_t how, const lop_shape *g, const lop_shape *n, lopk_conv *c);
double lop_conv_flops(const lopk_conv *c, int64_t k);

/* Checks that `g` is a vector of as many numbers as `sizes` says and fills the batch of *n. */
lop_status lop_conv_infer(lop_node *n, const lop_node *g, const lop_node *sizes, lop_err *err);
/* Of a circulant of these levels. */
void lop_circular_geometry(const lop_node *sizes, lopk_conv *c);
/* Eigenvalues that are kept of a circulant of those sizes: of a real one half of the last level. */
int64_t lop_spectrum_length(const lop_node *sizes, lop_dtype dt);
/* Owned sizes node. */
lop_status lop_sizes_make(lop_ctx *ctx, int levels, const int64_t *n, const lop_node **out,
                          lop_err *err);

#endif
