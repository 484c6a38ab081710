/* k_small_gemm.c: small products, register blocks for the baseline and, on x86-64, AVX2 with FMA.
 *
 * y = a b with y's rows contiguous (else all three transposed). Columns are taken in pieces whose
 * b fits 32 KiB, k in pieces of 256; b is used where it lies when its rows are contiguous and close
 * or hardly reused, else packed on the stack. Rows of a are broadcast from where they lie. A batch
 * with one a runs in groups, so that 96 rows of a large a at a time serve a whole group.
 * Complex: sums of re(a) b and im(a) b apart, joined at the end. Contraction to FMA is allowed. */
#include "k_small_gemm.h"
#include "k_blas.h"
#include "kernels/common/k_clones.h"
#include "kernels/common/kernels.h"

#define INLINE inline __attribute__((always_inline))

enum { ROOM = 32768, K_PIECE = 256, M_PIECE = 96, GROUP = 16, A_NEAR = 1 << 18 };

/* One call's operands. Strides in elements, then (after piece) in scalars. */
typedef struct small_job {
    const void *a, *b, *edge; /* edge: the packed columns beyond whole vectors */
    const char *ahead;        /* NULL, or the next piece of b, fetched as this one is worked on: */
    int64_t ahead_rs;         /* its row stride in bytes */
    void *y;
    int64_t m, n, k, ars, acs, brs, ers, panel, yrs, a_step, b_step, y_step;
    bool add, conj_a, alone;
} small_job;
typedef struct small_loops {
    void (*ready)(small_job *g, bool pack, int64_t bcs, bool conj_b, void *room);
    void (*rows)(const small_job *g, int64_t count);
} small_loops;

#if defined(__GNUC__) && !defined(__clang__)
#define UNROLL _Pragma("GCC unroll 8")
#ifdef __OPTIMIZE__
#pragma GCC optimize("O3", "fp-contract=fast")
#endif
#else
#define UNROLL
#endif

#define ISA base
#define BYTES 16
#include "k_small_gemm_per_isa.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define ISA avx2
#define BYTES 32
#include "k_small_gemm_per_isa.h"
#pragma GCC pop_options
#define HAVE_AVX2 1
#endif

int lopk_small_force_plain = LOPK_ONLY == 1;

static int64_t size_of(lop_dtype dt) { return dt == LOP_f32 ? 4 : dt == LOP_c128 ? 16 : 8; }
static const small_loops *loops_of(lop_dtype dt) {
    const int i = dt == LOP_f32 ? 0 : dt == LOP_f64 ? 1 : dt == LOP_c64 ? 2 : 3;
#ifdef HAVE_AVX2
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && !lopk_small_force_plain)
        return &loops_avx2[i];
#endif
    return &loops_base[i];
}

static inline int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
static inline lop_mat flip(const lop_mat *a) {
    return (lop_mat){a->p, a->n, a->m, a->cs, a->rs, a->dt};
}

/* The operands, y's rows contiguous; conj_b: of the transposed case. */
typedef struct small_call {
    lop_mat y, a, b;
    int64_t y_step, a_step, b_step, size;
    bool conj_a, conj_b, add, far; /* far: a does not stay in the second cache */
    bool fetch;                    /* b comes from beyond it, in short rows */
    const small_loops *f;
} small_call;

static inline void *place(const small_call *c, const lop_mat *a, int64_t i, int64_t j) {
    return (char *)a->p + (i * a->rs + j * a->cs) * c->size;
}

/* Columns j .. j + n, k's piece l .. l + k, batch elements e .. last. */
static void run_piece(const small_call *c, int64_t j, int64_t n, int64_t l, int64_t k, int64_t e,
                      int64_t last) {
    char room[ROOM] __attribute__((aligned(64)));
    small_job g = {.k = k, .add = c->add || l > 0, .conj_a = c->conj_a};
    const int64_t m = c->y.m, rows = c->far && last > e + 1 ? M_PIECE : m;
    const bool pack =
        c->b.cs != 1 || c->conj_b || c->b.p == c->y.p || (c->b.rs * c->size > 256 && m > 8);
    g.a_step = c->a_step, g.b_step = c->b_step, g.y_step = c->y_step;
    if (c->fetch && j + 2 * n <= c->y.n) g.ahead = place(c, &c->b, l, j + n);
    for (int64_t i = 0; i < m; i += rows)
        for (int64_t q = e, some; q < last; q += some) {
            if (q == e || g.alone) {
                g.ars = c->a.rs, g.acs = c->a.cs, g.brs = c->b.rs, g.yrs = c->y.rs;
                g.n = n;
                g.ahead_rs = c->b.rs * c->size;
                g.b = (char *)place(c, &c->b, l, j) + q * c->b_step * c->size;
                c->f->ready(&g, pack, c->b.cs, c->conj_b, room);
            }
            g.m = min_of(m - i, rows);
            g.a = (char *)place(c, &c->a, i, l) + q * c->a_step * c->size;
            g.y = (char *)place(c, &c->y, i, j) + q * c->y_step * c->size;
            some = g.alone && c->b_step != 0 ? 1 : last - q;
            c->f->rows(&g, some);
        }
}

/* k == 0. */
static void no_terms(const lop_mat *y, int64_t y_step, int64_t count) {
    lop_mat t = *y;
    for (int64_t e = 0; e < count; e++) {
        lopk_zero(&t);
        t.p = (char *)t.p + y_step * size_of(y->dt);
    }
}

void lopk_small_gemm(const lop_mat *y, int64_t y_step, const lop_mat *a, bool conj_a,
                     const lop_mat *b, int64_t b_step, int64_t count, bool accumulate) {
    small_call c = {.y_step = y_step, .size = size_of(y->dt), .add = accumulate};
    conj_a = conj_a && lop_is_complex(y->dt);
    if (y->n <= 1 ? y->rs != 1 : y->cs == 1) {
        c.y = *y, c.a = *a, c.b = *b;
        c.b_step = b_step, c.conj_a = conj_a;
    } else {
        c.y = flip(y), c.a = flip(b), c.b = flip(a);
        c.a_step = b_step, c.conj_b = conj_a;
    }
    LOP_ASSERT(c.y.n <= 1 || c.y.cs == 1);
    const int64_t n = c.y.n, k = c.a.n, unit = 64 / c.size;
    if (c.y.m == 0 || n == 0 || count == 0) return;
    if (k == 0) {
        if (!accumulate) no_terms(y, y_step, count);
        return;
    }
    if (c.b.n == 1) c.b.cs = 1;
    c.f = loops_of(y->dt);
    const int64_t kp = min_of(k, K_PIECE);
    const int64_t np = kp * n * c.size <= ROOM / 2 ? n : ROOM / (kp * c.size) / unit * unit;
    c.far = c.b_step != 0 && c.y.m * k * c.size > A_NEAR;
    c.fetch = count == 1 && c.b.cs == 1 && n > np && k * n * c.size > A_NEAR;
    const int64_t group = c.far ? GROUP : c.b_step == 0 || n == np ? count : 1;
    for (int64_t e = 0; e < count; e += group)
        for (int64_t j = 0; j < n; j += np)
            for (int64_t l = 0; l < k; l += kp)
                run_piece(&c, j, min_of(n - j, np), l, min_of(k - l, kp), e,
                          min_of(count, e + group));
}

/* These loops are as wide as the CPU's vectors, and BLAS would run on one thread too. */
static bool equal_terms(void) {
#ifdef HAVE_AVX2
    return LOPK_ONLY != 1 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           (LOPK_ONLY == 2 || !__builtin_cpu_supports("avx512f")) && lopk_threads() == 1;
#else
    return false;
#endif
}

/* Measured 2026-11 against OpenBLAS's AVX2 loops, f64: own ones win wherever its packing shows (up
 * to a of 128 x 128 at any n), but for b packed across its rows for few rows of a. */
bool lopk_small_suits(const lop_mat *y, const lop_mat *a, const lop_mat *b, int64_t count) {
    const int64_t m = y->m, n = y->n, k = a->n, few = min_of(m, n);
    const bool rows = n <= 1 ? y->rs != 1 : y->cs == 1;
    if (few < 2 || (!rows && y->rs != 1)) return false;
    const bool direct = rows ? b->cs == 1 : a->rs == 1;
    const double reuse = rows ? (double)m : (double)n * (double)count;
    const double work = (double)m * (double)n * (double)k;
    if (m <= 16 && k <= 16) return work >= 32 && (direct || reuse >= 4);
    if (!direct && reuse < 24) return false;
    if (few <= 32 || k <= 32) return work <= 0x1p23;
    return m <= 128 && k <= 128 && ((work <= 0x1p20 && n <= 128) || equal_terms());
}
