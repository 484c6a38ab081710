/* k_diagonal_sums.c: sums along diagonals.
 *
 * Everywhere the sums over j - i are formed in one run, t[j - i + m - 1], in which a row of the
 * matrix adds to neighbours in order; what was asked for is read off it at the end. Of a product
 * a b they are the convolution of a's columns, reversed, with b's rows. Of the inverse of a
 * Toeplitz matrix, with x its first and w its last column, J the reversal and S a shift down by
 * one,
 *
 *   x_0 T^-1 = L(x) L(J w)^T - L(S w) L(S J x)^T
 *
 * (L: lower triangular Toeplitz), so the sum over i - j = l >= 0 of the first part is that over t
 * of (n - l - t) x_(l + t) (J w)_t: a correlation of (n - i) x_i with J w; likewise for l < 0 with
 * the weights on J w. Gohberg and Semencul 1972; the sums: checked against differences. T^-1 X T^-1
 * of a Toeplitz X is what (T - t X)^-1 grows by, a Toeplitz matrix for each t: of its first and
 * last columns, whose derivatives are dx = T^-1 X x and dw = T^-1 X w, by the rule for products. */
#include "k_diagonal_sums.h"

#include "kernels/common/k_clones.h"
#include "kernels/common/kernels.h"
#include "kernels/fft/k_fft.h"

#include <string.h>

#define FAM_F 2
#define FAM_C 3
#define FAM_B 0
#define FAM_I 1

#define DT f32
#define E float
#define FAM FAM_F
#define LOPK_TEMPLATE "kernels/toeplitz/k_diagonal_sums_per_dtype.h"
#include "kernels/common/k_each_one.h"
#define DT f64
#define E double
#define FAM FAM_F
#include "kernels/common/k_each_one.h"
#define DT c64
#define R float
#define FAM FAM_C
#include "kernels/common/k_each_one.h"
#define DT c128
#define R double
#define FAM FAM_C
#include "kernels/common/k_each_one.h"

typedef struct lines_table {
    void (*whole)(void *t, bool anti, const lop_mat *a);
    void (*outer)(void *t, bool anti, int64_t m, int64_t n, const void *a, const void *b);
    void (*deliver)(const lop_mat *y, lopk_lines how, int64_t m, int64_t n, const void *t);
    void (*times)(void *s, const void *a, const void *b, int64_t count, bool first);
    void (*constant)(void *t, int64_t m, int64_t n, const lop_mat *c, const lop_mat *r);
    void (*gohberg)(void *a, void *b, int64_t n, const lop_mat *const *x, bool turned);
    void (*weigh)(void *a, int64_t n, int64_t lines);
} lines_table;
#define ROW(dt)                                                                                    \
    [LOP_##dt - LOP_f32] = {whole_##dt,    outer_##dt,   deliver_##dt, times_##dt,                 \
                            constant_##dt, gohberg_##dt, weigh_##dt}
static const lines_table tables[4] = {ROW(f32), ROW(f64), ROW(c64), ROW(c128)};
static const lines_table *table_of(lop_dtype dt) { return &tables[dt - LOP_f32]; }

static size_t rounded(size_t bytes) { return (bytes + 63) & ~(size_t)63; }
static size_t room(int64_t count, lop_dtype dt) {
    return rounded((size_t)count * lop_dtype_size(dt));
}
static char *aligned(void *p) { return (char *)(((uintptr_t)p + 63) & ~(uintptr_t)63); }

size_t lopk_lines_bytes(int64_t m, int64_t n, lop_dtype dt) {
    int64_t all;
    if (!lop_add_ok(m, n, &all) || !lop_mul_ok(all, 64, &all)) return 0;
    return 2 * room(m + n, dt) + 64;
}

/* The run of zeros at the head of scratch, and what lies behind it. */
static char *open_run(const lop_mat *y, int64_t m, int64_t n, void *scratch, char **behind) {
    char *t = aligned(scratch);
    memset(t, 0, (size_t)(m + n) * lop_dtype_size(y->dt));
    *behind = t + room(m + n, y->dt);
    return t;
}

/* A line of `count` numbers, `reversed` or as it lies, in one run at `to`. */
static void gather(char *to, const lop_mat *a, int64_t at, bool row, bool reversed) {
    const size_t size = lop_dtype_size(a->dt);
    const int64_t count = row ? a->n : a->m, step = row ? a->cs : a->rs;
    const char *from = (const char *)a->p + (size_t)(at * (row ? a->rs : a->cs)) * size;
    for (int64_t i = 0; i < count; i++)
        memcpy(to + (size_t)(reversed ? count - 1 - i : i) * size, from + (size_t)(i * step) * size,
               size);
}

void lopk_diagonal_sums(const lop_mat *y, lopk_lines how, const lop_mat *a, void *scratch) {
    const lines_table *f = table_of(y->dt);
    char *behind, *t = open_run(y, a->m, a->n, scratch, &behind);
    if (a->m > 0 && a->n > 0) f->whole(t, how.anti, a);
    f->deliver(y, how, a->m, a->n, t);
}

void lopk_pair_diagonal_sums(const lop_mat *y, lopk_lines how, const lop_mat *a, const lop_mat *b,
                             void *scratch) {
    const lines_table *f = table_of(y->dt);
    char *behind, *t = open_run(y, a->m, b->n, scratch, &behind);
    for (int64_t k = 0; k < a->n && a->m > 0 && b->n > 0; k++) {
        char *row = behind + (size_t)a->m * lop_dtype_size(a->dt);
        gather(behind, a, k, false, false);
        gather(row, b, k, true, false);
        f->outer(t, how.anti, a->m, b->n, behind, row);
    }
    f->deliver(y, how, a->m, b->n, t);
}

/* -- by transforms */

static size_t spectrum_bytes(int64_t N, lop_dtype dt) {
    return rounded((size_t)(N + 2) * 2 * lop_dtype_size(lop_dtype_real(dt)));
}
size_t lopk_lines_fft_bytes(int64_t m, int64_t n, int64_t N, lop_dtype dt) {
    const size_t work = lopk_fft_work_bytes(N, dt);
    if (!work || !lopk_lines_bytes(m, n, dt)) return 0;
    return 2 * room(m + n, dt) + 3 * spectrum_bytes(N, dt) + rounded(work) + 64;
}

static void transform(const void *plan, const void *in, int64_t count, void *out, void *work) {
    if (lop_is_complex(lopk_fft_dtype(plan)))
        lopk_cfft(plan, in, count, 1, out, lopk_fft_length(plan), 1, -1, 1.0, work);
    else
        lopk_rfft(plan, in, count, 1, out, work);
}

/* t <- the sums of a b over j - i (anti: i + j). */
static void convolve(char *t, char *line, bool anti, const lop_mat *a, const lop_mat *b,
                     const void *plan, char *at) {
    const lop_dtype dt = a->dt;
    const int64_t N = lopk_fft_length(plan), all = a->m + b->n - 1;
    char *sa = at, *sb = sa + spectrum_bytes(N, dt), *sum = sb + spectrum_bytes(N, dt),
         *work = sum + spectrum_bytes(N, dt);
    for (int64_t k = 0; k < a->n; k++) {
        gather(line, a, k, false, !anti);
        transform(plan, line, a->m, sa, work);
        gather(line, b, k, true, false);
        transform(plan, line, b->n, sb, work);
        table_of(lop_promote(dt, LOP_c64))->times(sum, sa, sb, lopk_spectrum_count(plan), k == 0);
    }
    if (a->n == 0) return;
    if (lop_is_complex(dt))
        lopk_cfft(plan, sum, N, 1, t, all, 1, +1, 1.0 / (double)N, work);
    else
        lopk_irfft(plan, sum, t, all, 1, 1.0 / (double)N, work);
}

void lopk_pair_diagonal_sums_fft(const lop_mat *y, lopk_lines how, const lop_mat *a,
                                 const lop_mat *b, const void *plan, void *scratch) {
    char *behind, *t = open_run(y, a->m, b->n, scratch, &behind);
    if (a->m > 0 && b->n > 0)
        convolve(t, behind, how.anti, a, b, plan, behind + room(a->m + b->n, y->dt));
    table_of(y->dt)->deliver(y, how, a->m, b->n, t);
}

/* -- matrices with structure of their own */

void lopk_line_sums(const lop_mat *y, lopk_lines how, int64_t m, int64_t n, int64_t offset,
                    const lop_mat *d, void *scratch) {
    const size_t size = lop_dtype_size(y->dt);
    char *behind, *t = open_run(y, m, n, scratch, &behind);
    const int64_t first = offset < 0 ? -offset : offset; /* i + j of its first element */
    lop_mat one = {t + (size_t)(how.anti ? first : offset + m - 1) * size, 1, 1, 1, 1, y->dt};
    if (how.anti && d->m > 0) {
        one.m = d->m;
        one.rs = 2;
        lopk_copy(&one, d);
    } else if (d->m > 0) {
        lopk_sum(&one, d);
    }
    table_of(y->dt)->deliver(y, how, m, n, t);
}

void lopk_toeplitz_sums(const lop_mat *y, lopk_lines how, const lop_mat *c, const lop_mat *r,
                        void *scratch) {
    char *behind, *t = open_run(y, c->m, r->m, scratch, &behind);
    if (c->m > 0 && r->m > 0) table_of(y->dt)->constant(t, c->m, r->m, c, r);
    table_of(y->dt)->deliver(y, how, c->m, r->m, t);
}

size_t lopk_toeplitz_inverse_bytes(int64_t n, int64_t N, lop_dtype dt) {
    const size_t own = N ? lopk_lines_fft_bytes(n, n, N, dt) : lopk_lines_bytes(n, n, dt);
    return own ? own + 2 * room(4 * n, dt) + room(2 * n, dt) : 0;
}
void lopk_toeplitz_inverse_sums(const lop_mat *y, lopk_lines how, bool hankel,
                                const lop_mat *const *x, const void *plan, void *scratch) {
    const lines_table *f = table_of(y->dt);
    const int64_t n = x[0]->m, size = (int64_t)lop_dtype_size(y->dt), many = x[2] ? 4 : 2;
    const lopk_lines asked = {false, how.circular, hankel != how.flip};
    char *behind, *t = open_run(y, n, n, scratch, &behind), *line = behind,
                  *a = line + room(2 * n, y->dt), *b = a + room(4 * n, y->dt),
                  *half = b + room(4 * n, y->dt), *at = half + room(2 * n, y->dt);
    const lop_mat left = {a, n, many, 1, n, y->dt}, right = {b, many, n, n, 1, y->dt};
    for (int below = 0; below < 2; below++) { /* j - i >= 0 at t + n - 1 on, then i - j > 0 */
        f->gohberg(a, b, n, x, hankel);
        f->weigh(below ? a : b, n, many);
        memset(half, 0, (size_t)(2 * n * size));
        if (plan)
            convolve(half, line, false, &left, &right, plan, at);
        else
            for (int64_t k = 0; k < many; k++)
                f->outer(half, false, n, n, a + k * n * size, b + k * n * size);
        memcpy(t + (below ? 0 : n - 1) * size, half + (below ? 0 : n - 1) * size,
               (size_t)((below ? n - 1 : n) * size));
    }
    f->deliver(y, asked, n, n, t);
}
