/* k_whole_of_half.c: the matrix of its upper triangle, T + T^T - D or T + T^H - Re D, in one pass:
 * squares of vectors are read once and written as they are and turned. */
#include "blas_layout.h"
#include "k_blas.h"
#include "k_small_gemm.h"
#include "kernels/common/k_clones.h"

#include <string.h>

#define INLINE inline __attribute__((always_inline))
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#define UNROLL _Pragma("GCC unroll 8")
#else
#define UNROLL
#endif
/* Lines and columns of a block: what is read runs along long lines, what is turned fills whole
 * lines of the cache (600 rows, from far memory: 880 us, 1180 by squares of 32; Xeon, 2026-11-28).
 */
enum { LINES = 8, LONG = 512 };

/* Four elements of 8 bytes, or eight of 4, in a vector. */
typedef uint64_t wide __attribute__((vector_size(32)));
typedef uint64_t wide_at __attribute__((vector_size(32), aligned(4), may_alias));
typedef uint32_t slim __attribute__((vector_size(32)));

/* An element of `size` bytes, the word with its imaginary part's sign changed. */
static INLINE void one(char *to, const char *a, size_t size, uint64_t bits) {
    uint64_t v[2];
    memcpy(v, a, size);
    v[size == 16 ? 1 : 0] ^= bits;
    memcpy(to, v, size);
}

/* Which elements of a square on the diagonal are read. */
static const int64_t above_8[4][4] = {
    {-1, -1, -1, -1}, {0, -1, -1, -1}, {0, 0, -1, -1}, {0, 0, 0, -1}};
static const int64_t below_8[4][4] = {
    {-1, 0, 0, 0}, {-1, -1, 0, 0}, {-1, -1, -1, 0}, {-1, -1, -1, -1}};
static const int32_t above_4[8][8] = {
    {-1, -1, -1, -1, -1, -1, -1, -1}, {0, -1, -1, -1, -1, -1, -1, -1},
    {0, 0, -1, -1, -1, -1, -1, -1},   {0, 0, 0, -1, -1, -1, -1, -1},
    {0, 0, 0, 0, -1, -1, -1, -1},     {0, 0, 0, 0, 0, -1, -1, -1},
    {0, 0, 0, 0, 0, 0, -1, -1},       {0, 0, 0, 0, 0, 0, 0, -1}};
static const int32_t below_4[8][8] = {
    {-1, 0, 0, 0, 0, 0, 0, 0},       {-1, -1, 0, 0, 0, 0, 0, 0},
    {-1, -1, -1, 0, 0, 0, 0, 0},     {-1, -1, -1, -1, 0, 0, 0, 0},
    {-1, -1, -1, -1, -1, 0, 0, 0},   {-1, -1, -1, -1, -1, -1, 0, 0},
    {-1, -1, -1, -1, -1, -1, -1, 0}, {-1, -1, -1, -1, -1, -1, -1, -1}};

static const void *masks(int64_t size, bool upper) {
    if (size == 4) return upper ? above_4 : below_4;
    return upper ? above_8 : below_8;
}

/* a's lines, of which the part from (`upper`) or to the diagonal is read, to lines of y: bits to
 * change where they go straight, and turned. Strides in bytes. */
typedef void (*half_loop)(char *y, int64_t ldy, const char *a, int64_t lda, int64_t n, bool upper,
                          uint64_t plain, uint64_t minus);

#define ISA base
#include "k_whole_of_half_per_isa.h"
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("avx2")
#define ISA avx2
#include "k_whole_of_half_per_isa.h"
#pragma GCC pop_options
#define HAVE_WIDE 1
#endif

static half_loop loop_of(int64_t size) {
    const int i = size == 4 ? 0 : size == 8 ? 1 : 2;
#ifdef HAVE_WIDE
    if (lopk_thin_width(LOP_f64) >= 4) return loops_avx2[i];
#endif
    return loops_base[i];
}

/* Any strides: element by element. */
static void by_elements(const lop_mat *y, const lop_mat *a, uint64_t minus) {
    const int64_t size = size_of(a->dt);
    for (int64_t i = 0; i < a->m; i++)
        for (int64_t j = i; j < a->m; j++) {
            const char *from = (const char *)a->p + (i * a->rs + j * a->cs) * size;
            one((char *)y->p + (i * y->rs + j * y->cs) * size, from, (size_t)size, 0);
            one((char *)y->p + (j * y->rs + i * y->cs) * size, from, (size_t)size, minus);
        }
}

void lopk_whole_of_half(const lop_mat *y, const lop_mat *a, bool adjoint) {
    LOP_ASSERT(y->m == y->n && a->m == a->n && y->m == a->m && y->dt == a->dt);
    LOP_ASSERT(lop_is_blas(a->dt));
    const int64_t size = size_of(a->dt), n = a->m;
    const double sign_z = -0.0;
    const float sign_c[2] = {0, -0.0F};
    const bool rows = a->cs == 1, y_rows = y->cs == 1;
    uint64_t minus = 0;
    adjoint = adjoint && lop_is_complex(a->dt);
    if (adjoint) memcpy(&minus, a->dt == LOP_c64 ? (const void *)sign_c : &sign_z, 8);
    if ((rows || a->rs == 1) && (y_rows || y->rs == 1)) {
        const int64_t ldy = (y_rows ? y->rs : y->cs) * size, lda = (rows ? a->rs : a->cs) * size;
        const bool same = rows == y_rows; /* else a's lines go to the turned triangle of y */
        const uint64_t to = same ? 0 : minus, over = same ? minus : 0;
        loop_of(size)(y->p, ldy, a->p, lda, n, rows, to, over);
    } else {
        by_elements(y, a, minus);
    }
    for (int64_t i = 0; adjoint && i < n; i++) { /* real */
        const int64_t at = i * (y->rs + y->cs);
        lop_set(y->dt, y->p, at, creal(lop_get(y->dt, y->p, at)));
    }
}
