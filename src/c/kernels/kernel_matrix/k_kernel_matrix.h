/* k_kernel_matrix.h: kernel matrices k(x_i, y_j), evaluated tile by tile and never formed.
 *
 * A kernel is a product of up to LOPK_KERNELS factors, each of its own points and numbers. Working
 * memory is a few tiles: it does not grow with the number of points. Loops for the baseline and, on
 * x86-64, for AVX2 with FMA and for AVX-512. Exponentials are our own, within 2 units in the last
 * place of the exact function of their rounded argument; results below the smallest normal number
 * are 0. */
#ifndef LOPK_KERNEL_H
#define LOPK_KERNEL_H

#include "kernels/common/k_threads.h"

enum { LOPK_KERNELS = 5 };

/* In the order of the words of Kernel's `function`. With r^2 = sum_k ((x_k - y_k) / l_k)^2:
 * exp(-r^2/2); exp(-r); (1 + a) exp(-a), a = sqrt(3) r; (1 + a + a^2/3) exp(-a), a = sqrt(5) r;
 * (1 + r^2/(2 s))^-s; exp(-2 sum_k (sin(pi (x_k - y_k) / s) / l_k)^2);
 * (sum_k x_k y_k / l_k^2 + s)^degree; sum_k x_k y_k / l_k^2. */
typedef enum lopk_kernel_word {
    LOPK_RBF,
    LOPK_MATERN12,
    LOPK_MATERN32,
    LOPK_MATERN52,
    LOPK_RATIONAL,
    LOPK_PERIODIC,
    LOPK_POLYNOMIAL,
    LOPK_LINEAR,
    LOPK_NKERNEL
} lopk_kernel_word;

/* The numbers of a factor, as the loops want them: VARIANCE, SHAPE (s), ONE (1 / l^2 where all are
 * one, of the scaled points; else 1), then d weights 1 / l_k^2, then d powers of two that the
 * points are multiplied by (exactly), so that scaled lengths lie in [1/2, 1). */
enum { LOPK_VARIANCE, LOPK_SHAPE, LOPK_ONE, LOPK_WEIGHTS };

typedef struct lopk_kernel {
    int word, degree;
    bool ard;         /* the weights differ */
    lop_mat x, y;     /* m x d, n x d points, of the working dtype, any strides */
    const double *at; /* LOPK_WEIGHTS + 2 d numbers */
} lopk_kernel;

/* Fills `at` from a length or d of them (m x 1, f64). */
void lopk_kernel_numbers(int word, double variance, double shape, const lop_mat *length, int64_t d,
                         double *at);

/* Bytes of scratch: `d` the sum over the factors, dt the real working dtype, m and n the numbers of
 * points either way, `columns` of v (a complex one counts twice; 0: no products). */
size_t lopk_kernel_scratch(int64_t d, lop_dtype dt, int64_t m, int64_t n, int64_t columns);

/* out = K v. `same`: each factor's y is its x, so that half the tiles do. v and out of the working
 * dtype or its complex one, any strides, without overlap. The same bits whatever the team's number
 * of threads; each of them has `scratch` anew, on its stack. False: stopped by the team. */
bool lopk_kernel_apply(const lop_mat *out, const lopk_kernel *k, int n, bool same, const lop_mat *v,
                       const lopk_team *team, void *scratch) LOP_MUST_CHECK;
/* out = K, of the working dtype or its complex one. Likewise. */
bool lopk_kernel_dense(const lop_mat *out, const lopk_kernel *k, int n, const lopk_team *team,
                       void *scratch) LOP_MUST_CHECK;
/* out[i] = K[i + row, i + column], out len x 1. */
void lopk_kernel_diagonal(const lop_mat *out, const lopk_kernel *k, int n, int64_t row,
                          int64_t column, void *scratch);

/* Tests: 0 what the CPU has, 1 the baseline, 2 at most AVX2. */
extern int lopk_kernel_force;
/* y[i] = 2^x[i] for x <= 0 as the loops compute it, count a multiple of 16, aligned to 64. */
void lopk_kernel_exp2(lop_dtype dt, void *y, const void *x, int64_t count);

#endif
