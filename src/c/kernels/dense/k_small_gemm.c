/* k_small_gemm.c: small and thin products, register blocks for the baseline and, on x86-64, AVX2
 * with FMA and AVX-512.
 *
 * y = a b with y's rows contiguous (else all three transposed). Columns are taken in pieces whose
 * b fits 32 KiB, k in pieces of 256; b is used where it lies when its rows are contiguous and close
 * or hardly reused, else packed on the stack. Rows of a are broadcast from where they lie. A batch
 * with one a runs in groups, so that 96 rows of a large a at a time serve a whole group.
 * Thin products (up to 32 columns, or rows, however large the rest) pack b to whole vectors, so
 * that one pass over a serves all columns, and write y by way of a tile where it does not lie so;
 * rows of a to come are fetched ahead. They split their rows over threads, by sizes alone.
 * Complex: sums of re(a) b and im(a) b apart, joined at the end. Contraction to FMA is allowed. */
#include "k_small_gemm.h"
#include "blas_table.h"
#include "k_blas.h"
#include "kernels/common/k_clones.h"
#include "kernels/common/kernels.h"

#include <string.h>

#define INLINE inline __attribute__((always_inline))

enum { ROOM = 32768, K_PIECE = 256, M_PIECE = 96, GROUP = 16, A_NEAR = 1 << 18 };
enum { THIN = 32, THIN_ROOM = 65536, PART = 1 << 23 }; /* PART: flops, 0.1 ms and more */

/* One call's operands. Strides in elements, then (after piece) in scalars. */
typedef struct small_job {
    const void *a, *b, *edge; /* edge: the packed columns beyond whole vectors */
    const char *ahead;        /* NULL, or the next piece of b, fetched as this one is worked on: */
    int64_t ahead_rs;         /* its row stride in bytes */
    void *y;
    int64_t m, n, k, ars, acs, brs, ers, panel, yrs, a_step, b_step, y_step;
    int64_t group, jump; /* after so many terms a moves by jump besides; k is a multiple of it */
    bool add, conj_a, alone, far; /* far: rows of a to come are fetched as these are worked on */
} small_job;
typedef struct small_loops {
    void (*ready)(small_job *g, bool pack, int64_t bcs, bool conj_b, void *room);
    void (*rows)(const small_job *g, int64_t count);
    int64_t width; /* elements of a vector */
} small_loops;

#if defined(__GNUC__) && !defined(__clang__)
#define UNROLL _Pragma("GCC unroll 8")
#ifdef __OPTIMIZE__
#pragma GCC optimize("O3", "fp-contract=fast")
#endif
#else
#define UNROLL
#endif

#define PER_ISA "kernels/dense/k_small_gemm_per_isa.h"
#include "kernels/common/k_each_isa.h"

int lopk_small_force = LOPK_ONLY == 3 ? 0 : LOPK_ONLY;

static int64_t size_of(lop_dtype dt) { return dt == LOP_f32 ? 4 : dt == LOP_c128 ? 16 : 8; }
static const small_loops *loops_of(lop_dtype dt) {
    const int i = dt == LOP_f32 ? 0 : dt == LOP_f64 ? 1 : dt == LOP_c64 ? 2 : 3;
#ifdef HAVE_WIDE
    if (lopk_small_force == 0 && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512dq"))
        return &loops_avx512[i];
    if (lopk_small_force != 1 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
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
    int64_t y_step, a_step, b_step, size, rows; /* rows: of a part, of thin products */
    int64_t group, far_apart; /* a's terms in groups: how many, elements from one to the next */
    bool conj_a, conj_b, add, far; /* far: a does not stay in the second cache */
    bool fetch;                    /* b comes from beyond it, in short rows */
    const small_loops *f;
} small_call;

static inline void *place(const small_call *c, const lop_mat *a, int64_t i, int64_t j) {
    return (char *)a->p + (i * a->rs + j * a->cs) * c->size;
}

/* a's row i from term l on. */
static inline void *terms(const small_call *c, int64_t i, int64_t l) {
    const int64_t at = l / c->group * c->far_apart + l % c->group * c->a.cs;
    return (char *)c->a.p + (i * c->a.rs + at) * c->size;
}

/* The transposed product. */
static void turn(small_call *c) {
    const lop_mat a = c->a;
    const bool conj_a = c->conj_a;
    c->y = flip(&c->y), c->a = flip(&c->b), c->b = flip(&a);
    c->conj_a = c->conj_b, c->conj_b = conj_a;
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
                g.group = min_of(c->group, k);
                g.jump = c->group < k ? c->far_apart - c->group * c->a.cs : 0;
                g.ahead_rs = c->b.rs * c->size;
                g.b = (char *)place(c, &c->b, l, j) + q * c->b_step * c->size;
                c->f->ready(&g, pack, c->b.cs, c->conj_b, room);
            }
            g.m = min_of(m - i, rows);
            g.a = (char *)terms(c, i, l) + q * c->a_step * c->size;
            g.y = (char *)place(c, &c->y, i, j) + q * c->y_step * c->size;
            some = g.alone && c->b_step != 0 ? 1 : last - q;
            c->f->rows(&g, some);
        }
}

/* Few columns: rows i .. end. b's pieces of k in whole vectors with zeros behind, y too where it
 * does not lie so already: then as many of its rows as fit a tile at a time. */
static void thin_rows(const small_call *c, int64_t i, int64_t end) {
    char room[THIN_ROOM] __attribute__((aligned(64))), tile[THIN_ROOM] __attribute__((aligned(64)));
    const int64_t n = c->y.n, k = c->a.n, w = c->f->width, whole = (n + w - 1) / w * w,
                  part = lop_is_complex(c->y.dt) ? 2 : 1, fit = THIN_ROOM / c->size,
                  panels = n <= w ? w : (n + 2 * w - 1) / (2 * w) * 2 * w,
                  piece = min_of(K_PIECE, fit / panels);
    const bool at_once = whole == n && c->y.cs == 1,
               pack = whole != n || c->b.cs != 1 || c->conj_b || c->b.rs * c->size > 256;
    for (int64_t rows; i < end; i += rows) {
        rows = at_once ? end - i : min_of(end - i, fit / whole);
        const lop_mat to = {place(c, &c->y, i, 0), rows, n, c->y.rs, c->y.cs, c->y.dt},
                      own = {tile, rows, n, whole, 1, c->y.dt};
        if (!at_once && c->add) {
            memset(tile, 0, (size_t)(rows * whole * c->size));
            lopk_copy(&own, &to);
        }
        for (int64_t l = 0; l < k; l += piece) {
            small_job g = {.m = rows,
                           .n = n,
                           .k = min_of(k - l, piece),
                           .group = min_of(k - l, piece),
                           .a = place(c, &c->a, i, l),
                           .b = place(c, &c->b, l, 0),
                           .y = at_once ? to.p : tile,
                           .ars = c->a.rs,
                           .acs = c->a.cs,
                           .brs = c->b.rs,
                           .yrs = at_once ? to.rs : whole,
                           .add = c->add || l > 0,
                           .conj_a = c->conj_a,
                           .far = true};
            c->f->ready(&g, pack, c->b.cs, c->conj_b, room);
            g.n = whole * part;
            c->f->rows(&g, 1);
        }
        if (!at_once) lopk_copy(&to, &own);
    }
}
static void thin_part(void *job, const lopk_part *part) {
    const small_call *c = job;
    const int64_t i = part->index * c->rows;
    thin_rows(c, i, min_of(c->y.m, i + c->rows));
}

/* k == 0. */
static void no_terms(const lop_mat *y, int64_t y_step, int64_t count) {
    lop_mat t = *y;
    for (int64_t e = 0; e < count; e++) {
        lopk_zero(&t);
        t.p = (char *)t.p + y_step * size_of(y->dt);
    }
}

static small_call call_of(const lop_mat *y, const lop_mat *a, bool conj_a, const lop_mat *b,
                          bool accumulate) {
    const bool of_complex = lop_is_complex(y->dt);
    small_call c = {.y = *y,
                    .a = *a,
                    .b = *b,
                    .size = size_of(y->dt),
                    .conj_a = conj_a && of_complex,
                    .add = accumulate,
                    .f = loops_of(y->dt)};
    return c;
}

bool lopk_thin_gemm(const lop_mat *y, const lop_mat *a, bool conj_a, const lop_mat *b,
                    bool accumulate, const lopk_team *team) {
    small_call c = call_of(y, a, conj_a, b, accumulate);
    if (y->m < y->n) turn(&c);
    if (c.b.n == 1) c.b.cs = 1;
    LOP_ASSERT(c.y.n <= THIN && c.y.n > 0);
    if (c.a.n == 0) {
        if (!accumulate) lopk_zero(y);
        return true;
    }
    const double each = 2 * (double)c.y.n * (double)c.a.n; /* flops of a row */
    const int64_t rows = each < PART ? (int64_t)(PART / each) + 1 : 1;
    c.rows = (rows + 47) / 48 * 48; /* no part but the last has fewer than a block of rows */
    const int64_t parts = (c.y.m + c.rows - 1) / c.rows;
    if (parts < 2 || !team || team->threads < 2) {
        thin_rows(&c, 0, c.y.m);
        return true;
    }
    return lopk_parts(team, parts, parts, 0, NULL, thin_part, &c);
}

int64_t lopk_thin_width(lop_dtype dt) { return loops_of(dt)->width; }

void lopk_thin_tile(const lop_mat *y, const lop_mat *a, bool conj_a, const lop_mat *b,
                    bool accumulate) {
    const small_loops *f = loops_of(y->dt);
    LOP_ASSERT(a->n > 0 && a->n <= K_PIECE && y->n % f->width == 0 && y->cs == 1 && b->cs == 1);
    small_job g = {.m = y->m,
                   .n = y->n,
                   .k = a->n,
                   .group = a->n,
                   .a = a->p,
                   .b = b->p,
                   .y = y->p,
                   .ars = a->rs,
                   .acs = a->cs,
                   .brs = b->rs,
                   .yrs = y->rs,
                   .add = accumulate,
                   .conj_a = conj_a && lop_is_complex(y->dt)};
    f->ready(&g, false, 1, false, NULL);
    f->rows(&g, 1);
}

/* Terms in groups of `group` (0: in one), `apart` elements from one to the next in a (in b where
 * y's columns are contiguous). */
static void small_gemm(const lop_mat *y, int64_t y_step, const lop_mat *a, bool conj_a,
                       const lop_mat *b, int64_t b_step, int64_t group, int64_t apart,
                       int64_t count, bool accumulate) {
    small_call c = call_of(y, a, conj_a, b, accumulate);
    c.y_step = y_step;
    if (y->n <= 1 ? y->rs != 1 : y->cs == 1) {
        c.b_step = b_step;
    } else {
        turn(&c);
        c.a_step = b_step;
    }
    c.group = group > 0 ? group : a->n;
    c.far_apart = apart;
    LOP_ASSERT(c.y.n <= 1 || c.y.cs == 1);
    const int64_t n = c.y.n, k = c.a.n,
                  unit = 64 / c.size > 2 * c.f->width ? 64 / c.size : 2 * c.f->width;
    if (c.y.m == 0 || n == 0 || count == 0) return;
    if (k == 0) {
        if (!accumulate) no_terms(y, y_step, count);
        return;
    }
    if (c.b.n == 1) c.b.cs = 1;
    const int64_t kp = min_of(k, c.group < K_PIECE ? K_PIECE / c.group * c.group : K_PIECE);
    const int64_t np = kp * n * c.size <= ROOM / 2 ? n : ROOM / (kp * c.size) / unit * unit;
    c.far = c.b_step != 0 && c.y.m * k * c.size > A_NEAR;
    c.fetch = count == 1 && c.b.cs == 1 && n > np && k * n * c.size > A_NEAR;
    const int64_t some = c.far ? GROUP : c.b_step == 0 || n == np ? count : 1;
    for (int64_t e = 0; e < count; e += some)
        for (int64_t j = 0; j < n; j += np)
            for (int64_t l = 0; l < k; l += kp)
                run_piece(&c, j, min_of(n - j, np), l, min_of(k - l, kp), e,
                          min_of(count, e + some));
}

void lopk_small_gemm(const lop_mat *y, int64_t y_step, const lop_mat *a, bool conj_a,
                     const lop_mat *b, int64_t b_step, int64_t count, bool accumulate) {
    small_gemm(y, y_step, a, conj_a, b, b_step, 0, 0, count, accumulate);
}

void lopk_windows_gemm(const lop_mat *y, const lop_mat *a, const lop_mat *b, int64_t group,
                       int64_t apart, bool accumulate) {
    LOP_ASSERT(group > 0 && group <= K_PIECE && a->n % group == 0);
    small_gemm(y, 0, a, false, b, 0, group, apart, 1, accumulate);
}

/* These loops are as wide as the CPU's vectors, and BLAS would run on one thread too. */
static bool equal_terms(void) {
#ifdef HAVE_WIDE
    return LOPK_ONLY != 1 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           lopk_threads() == 1;
#else
    return false;
#endif
}

/* GF/s on one thread, 1600 x 1600 times so many columns: the slowest of four layouts by our own
 * loops, the fastest by OpenBLAS 0.3.31's (Prescott, Haswell, SkylakeX). 2026-11-23,
 * EPYC with AVX-512, benchmarks/thin.py. */
typedef struct thin_rates {
    int64_t columns;
    double own[3], blas[3]; /* by the baseline, AVX2, AVX-512 */
} thin_rates;
static const thin_rates thin_f64[] = {{2, {15, 14, 14}, {11, 8.5, 12}},
                                      {4, {19, 30, 28}, {13, 17, 22}},
                                      {8, {20, 53, 57}, {14, 25, 37}},
                                      {16, {20, 52, 82}, {17, 34, 51}},
                                      {THIN, {20, 51, 80}, {20, 45, 69}}};
static const thin_rates thin_f32[] = {{2, {14, 19, 19}, {23, 25, 28}},
                                      {4, {27, 39, 38}, {30, 55, 57}},
                                      {8, {43, 80, 76}, {30, 78, 95}},
                                      {16, {43, 120, 148}, {33, 101, 154}},
                                      {THIN, {42, 118, 216}, {38, 112, 183}}};

int lopk_blas_loops(void) {
    static const char *const of[2][6] = {
        {"Prescott", "Core2", "Penryn", "Nehalem", "Dunnington", "Atom"},
        {"Haswell", "Zen", "Sandybridge", "Bulldozer", "Piledriver", "Excavator"}};
    const char *name = lop_blas.openblas_get_corename();
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 6; j++)
            if (strcmp(name, of[i][j]) == 0) return i;
    return 2;
}

/* Up to the next row of the table; OpenBLAS on all its threads, ours on those of the team. */
static bool thin_pays(lop_dtype dt, int64_t columns, int threads) {
    const thin_rates *r = dt == LOP_f32 ? thin_f32 : thin_f64;
    const int64_t w = loops_of(LOP_f64)->width;
    const int isa = w == 8 ? 2 : w == 4 ? 1 : 0;
    while (r->columns < columns) r++;
    return r->own[isa] * threads >= r->blas[lopk_blas_loops()] * lopk_threads();
}

bool lopk_thin_suits(const lop_mat *y, const lop_mat *a, const lop_mat *b, const lopk_team *team) {
    const int64_t few = min_of(y->m, y->n), many = y->m + y->n - few, k = a->n;
    if (few < 2 || few > THIN || many < 2 * few || k < few || lop_is_complex(y->dt) ||
        b->p == y->p || (double)many * (double)k * (double)size_of(y->dt) < A_NEAR)
        return false;
    return thin_pays(y->dt, few, team ? team->threads : 1);
}

/* Measured 2026-11 against OpenBLAS's AVX2 loops, f64: own ones win wherever its packing shows (up
 * to a of 128 x 128 at any n), but for b packed across its rows for few rows of a. With up to 32
 * terms on one thread, 288 to 6912 rows and columns: 0.5 to 0.95 of its time, also by AVX2
 * (2026-11-27); 48 terms 0.8 to 1.15. */
bool lopk_small_suits(const lop_mat *y, const lop_mat *a, const lop_mat *b, int64_t count) {
    const int64_t m = y->m, n = y->n, k = a->n, few = min_of(m, n);
    const bool rows = n <= 1 ? y->rs != 1 : y->cs == 1;
    if (few < 2 || (!rows && y->rs != 1)) return false;
    const bool direct = rows ? b->cs == 1 : a->rs == 1;
    const double reuse = rows ? (double)m : (double)n * (double)count;
    const double work = (double)m * (double)n * (double)k;
    if (m <= 16 && k <= 16) return work >= 32 && (direct || reuse >= 4);
    if (!direct && reuse < 24) return false;
    if (few <= 32 || k <= 32)
        return work <= 0x1p23 || (few > 32 && !lop_is_complex(y->dt) && equal_terms());
    return m <= 128 && k <= 128 && ((work <= 0x1p20 && n <= 128) || equal_terms());
}
