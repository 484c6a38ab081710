/* wide_kernel.c: kernels/kernel_matrix/k_kernel_matrix.c under other names, with the loops of
 * AVX-512 for any CPU: the same text, its vectors of 64 bytes taken apart by the compiler, minima,
 * maxima and square roots written out. `force` 3 takes them. */
#define LOPK_KERNEL_WIDE
#define lopk_kernel_force wide_kernel_force
#define lopk_kernel_exp2 wide_kernel_exp2
#define lopk_kernel_numbers wide_kernel_numbers
#define lopk_kernel_scratch wide_kernel_scratch
#define lopk_kernel_apply wide_kernel_apply
#define lopk_kernel_dense wide_kernel_dense
#define lopk_kernel_diagonal wide_kernel_diagonal
#include "../../src/c/kernels/kernel_matrix/k_kernel_matrix.c"
