/* k_convolution.h: products that are convolutions of boxes, any number of levels up to LOPK_LEVELS.
 *
 *   y[i] = sum_j g[i - j + shift] x[j],  i in the box `out`, j in the box `in`, level by level;
 *
 * g is a box of its own, zero outside of it; circular: the index is taken modulo in == out, and all
 * that fall together add. flip: x comes in reversed order. Boxes lie raveled in C order. Toeplitz,
 * circulant and Hankel matrices of any number of levels are such products, and convolutions. */
#ifndef LOPK_CONV_H
#define LOPK_CONV_H

#include "base/buf.h"

enum { LOPK_LEVELS = 5 };

/* Only int64, so that a plan may keep it. */
typedef struct lopk_conv {
    int64_t levels, circular, flip;
    int64_t g[LOPK_LEVELS], in[LOPK_LEVELS], out[LOPK_LEVELS], shift[LOPK_LEVELS];
} lopk_conv;
enum { LOPK_CONV_INTS = sizeof(lopk_conv) / sizeof(int64_t) };

/* Turns `c` into the transpose's; its g is then the same reversed on all levels (flip: as it is).
 */
bool lopk_conv_turn(lopk_conv *c);
double lopk_conv_flops(const lopk_conv *c); /* multiply-adds of one column by the definition */

/* ---- by the definition (k_convolution.c): 13 dtypes, componentwise accurate ----
 * y <- op(T) x, columns as they come. g: a vector of y's dtype, any stride; reversed, conj: how it
 * is read. y overlaps nothing. scratch: lopk_conv_direct_bytes. */
void lopk_conv_direct(const lop_mat *y, const lopk_conv *c, const lop_mat *g, bool reversed,
                      bool conj, const lop_mat *x, void *scratch);
size_t lopk_conv_direct_bytes(const lopk_conv *c, lop_dtype dt); /* 0: too large */
/* y <- T, entry by entry. */
void lopk_conv_dense(const lop_mat *y, const lopk_conv *c, const lop_mat *g);
/* out (1 x 1) <- T[i, j], raveled indices. */
void lopk_conv_element(const lop_mat *out, const lopk_conv *c, const lop_mat *g, int64_t i,
                       int64_t j);
/* e, the box N in C order, <- the first column of the circulant of which T is the leading part. */
void lopk_conv_embed(const lop_mat *e, const lopk_conv *c, const int64_t *N, const lop_mat *g);

/* ---- by the FFT (k_fft_nd.c): f32 f64 c64 c128, normwise accurate ---- */
/* Lengths of the circular transform: N[l] (in == out where circular and that is no bad length).
 * `exact`: circular lengths as they are. False where there is no such FFT. */
bool lopk_conv_lengths(const lopk_conv *c, lop_dtype dt, bool exact, int64_t *N);
double lopk_conv_fft_flops(const int64_t *N, int64_t levels);

/* A plan for transforms of a box n: f32, f64 plans transform real boxes (last level halved), c64,
 * c128 complex ones. Blobs without pointers, as in k_fft.h. 0 where there is none. */
size_t lopk_nd_plan_bytes(const int64_t *n, int64_t levels, lop_dtype dt);
size_t lopk_nd_work_bytes(const int64_t *n, int64_t levels, lop_dtype dt);
size_t lopk_nd_spectrum_bytes(const int64_t *n, int64_t levels, lop_dtype dt);
lop_status lopk_nd_plan_init(void *plan, const int64_t *n, int64_t levels,
                             lop_dtype dt) LOP_MUST_CHECK;
/* spectrum <- that of T's circulant. invert: its reciprocals; LOP_SINGULAR where one is 0. */
lop_status lopk_nd_spectrum(const void *plan, const lopk_conv *c, const lop_mat *g, bool invert,
                            void *spectrum, void *work) LOP_MUST_CHECK;
/* y <- op(E)[: out, : in] x for the circulant E with that spectrum; op as in lopk_toeplitz_fft. A
 * real plan takes complex y and x too. With c turned or not: in and out are those of op. */
void lopk_nd_product(const lop_mat *y, const lopk_conv *c, const void *spectrum, const void *plan,
                     bool trans, bool conj, const lop_mat *x, void *work);
/* y <- scale * transform of each column of x, a raveled box. Complex plans. */
void lopk_nd_transform(const lop_mat *y, const void *plan, const lop_mat *x, int sign, double scale,
                       void *work);

#endif
