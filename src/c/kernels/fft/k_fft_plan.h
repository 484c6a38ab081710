/* k_fft_plan.h: the inside of an FFT plan, shared by the k_fft*.c files only. */
#ifndef LOPK_FFT_PLAN_H
#define LOPK_FFT_PLAN_H

#include "base/buf.h"

enum {
    MAX_PASS = 44,
    MAX_RADIX = 31, /* larger primes go through Bluestein's convolution */
    FINE = 64,      /* length of the fine table of the real transform's twiddles */
    PAIR_SPLIT = 0,
    PAIR_JOIN = 1,
    PAIR_FUSED = 2
};

/* One factor's transform: radices in order of application; offsets from the plan's start. */
typedef struct fft_sub {
    int64_t n;
    int count, radix[MAX_PASS];
    size_t perm, twiddle[MAX_PASS];
} fft_sub;

/* Parts of the work memory: offsets after alignment to 64, and the total. */
typedef struct fft_work {
    size_t z, middle, stage, total;
} fft_work;

typedef struct fft_plan {
    int64_t n, len; /* the transform's length; the complex length that is run */
    lop_dtype dt;
    bool real, half;  /* real: a real plan; half: n even, len = n / 2 */
    bool bluestein;   /* inner: offset of the plan of length n_inner, chirp, its spectrum */
    fft_sub one, two; /* len = one.n * two.n; two.n == 0: one.n alone, scalar loops */
    int64_t ldt;      /* line length, in complex, of the matrix between the steps */
    int64_t cross; /* exp(-2 pi i k1 n2 / len) = cross_a[k1 / cross][n2] cross_c[k1 % cross][n2] */
    size_t cross_a, cross_c, fine, coarse;
    int64_t n_inner;
    size_t inner, chirp, chirp_spectrum, inner_work;
    size_t bytes;
    fft_work work;
} fft_plan;

typedef void (*fft_whole_fn)(const fft_plan *p, const void *in, int64_t n_in, void *out,
                             int64_t n_out, bool swap, double scale, void *middle, void *z);
typedef void (*fft_pairs_fn)(const fft_plan *p, int mode, const void *in, void *out,
                             const void *spec, bool conj);
/* Entry points, [0] f32, [1] f64. */
typedef struct fft_loops {
    fft_whole_fn whole[2];
    fft_pairs_fn pairs[2];
} fft_loops;
const fft_loops *lopk_fft_loops(void); /* the best for this CPU */
extern int lopk_fft_force_plain;       /* tests: 1 takes the baseline loops */

static inline int64_t fft_scalar(lop_dtype dt) { return dt == LOP_f32 || dt == LOP_c64 ? 4 : 8; }
/* Computes every size and offset of a plan; false when the length or dtype is not supported. */
bool lopk_fft_layout(fft_plan *p, int64_t n, lop_dtype dt);
/* out <- scale * transform of `in`, both contiguous interleaved complex; n_in scalars exist, n_out
 * are wanted; swap: the inverse sign. in == out is allowed. work: p->work.total bytes, aligned to
 * 64; its stage part is not touched. */
void lopk_fft_run(const fft_plan *p, const void *in, int64_t n_in, void *out, int64_t n_out,
                  bool swap, double scale, char *work);

#endif
