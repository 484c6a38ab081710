/* k_kernel_gradient.h: sums over a kernel matrix's derivatives, by blocks: the derivatives of
 * sum_ij G_ij k(x_i, y_j) by the kernel's numbers and points, none of them ever an m x n array.
 *
 * With s = sum_c ((x_c - y_c) / l_c)^2 and k = v f(s), the derivative f'(s) is the kernel of a
 * family too, with other numbers, so that the same loops make it: of exp(-s/2) itself, of
 * Matern 3/2 the exponential of sqrt(3) r, of Matern 5/2 the Matern 3/2 of sqrt(5) r, of the
 * rational quadratic that of alpha + 1, of a polynomial that of one degree less. Rasmussen and
 * Williams, Gaussian Processes for Machine Learning, 4.2. */
#ifndef LOPK_KERNEL_GRADIENT_H
#define LOPK_KERNEL_GRADIENT_H

#include "k_kernel_matrix.h"

/* G, in double precision: a matrix a (m x n); a product a b (m x k, k x n), never formed; a
 * diagonal a (one column; without memory, of ones), of which m and n cut off what is outside: 16
 * min(m, n) entries of the kernel are made, not m n. */
typedef enum lopk_cotangent_form {
    LOPK_BY_MATRIX,
    LOPK_BY_PAIR,
    LOPK_BY_DIAGONAL
} lopk_cotangent_form;
typedef struct lopk_cotangent {
    lopk_cotangent_form form;
    lop_mat a, b;
} lopk_cotangent;

/* Bytes of scratch for points of d coordinates. */
size_t lopk_kernel_gradient_scratch(int64_t d);

/* out[0]: by the variance; then by the lengths (`lengths` of them: 1, or one a coordinate); then by
 * the shape. k and its points in double precision. */
void lopk_kernel_number_sums(const lopk_kernel *k, const lopk_cotangent *g, int64_t lengths,
                             double *out, void *scratch);
/* The same of a pair, where it is a Matern kernel of points on a line that lie in order, without
 * their m n entries. False: it is not. */
bool lopk_kernel_line_sums(const lopk_kernel *k, const lopk_cotangent *g, int64_t lengths,
                           double *out);
/* By the points x (m x d), or the y (n x d). */
void lopk_kernel_point_sums(const lopk_kernel *k, const lopk_cotangent *g, bool of_y,
                            const lop_mat *out, void *scratch);

#endif
