/* k_dct.c: cosine transforms of types 1 to 4 by one FFT each.
 *
 * Types 2 and 3: a real FFT of length n of the input in even-odd order (Makhoul 1980). Type 1: a
 * real one of the even extension. Type 4: a complex one of n / 2 between two twiddle passes; odd n
 * goes through a padded one of 2 n. Error normwise, C u log2(n). Cost about 2.5 n log2 n. */
#include "k_fft.h"
#include "k_transforms.h"

#include <math.h>
#include <string.h>

typedef struct dct_plan {
    int64_t n, length; /* length of the FFT */
    int type;
    lop_dtype dt, own; /* own: of the FFT */
    size_t fft, first, last, bytes, line, work;
} dct_plan;

void lopk_turn(int64_t num, int64_t den, double *c, double *s) {
    const double turn = 6.283185307179586476925286766559;
    int e = (int)(8 * num / den); /* eighths; the rest without cancellation */
    const int64_t over = 8 * num % den;
    const bool up = e % 2 == 1;
    const double part = (double)(up ? den - over : over) / (8.0 * (double)den);
    double a = cos(turn * part), b = sin(turn * part);
    if (over == 0 && up) a = b = 0.70710678118654752440;
    if (up) e++; /* measured back from the next even eighth */
    const double sign = up ? -1.0 : 1.0;
    b *= sign;
    switch (e / 2 % 4) {
    case 0: *c = a, *s = b; break;
    case 1: *c = -b, *s = a; break;
    case 2: *c = -a, *s = -b; break;
    default: *c = b, *s = -a; break;
    }
}

int64_t lopk_mulmod(int64_t a, int64_t b, int64_t n) {
    if (n < (int64_t)1 << 31) return a % n * (b % n) % n;
    __extension__ typedef unsigned __int128 wide;
    return (int64_t)((wide)(uint64_t)(a % n) * (wide)(uint64_t)(b % n) % (wide)(uint64_t)n);
}

#define T double
#define P(name) name##_f64
#include "k_dct_per_dtype.h"
#define T float
#define P(name) name##_f32
#include "k_dct_per_dtype.h"

static size_t up(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

static bool layout(dct_plan *p, int type, int64_t n, lop_dtype dt) {
    memset(p, 0, sizeof *p);
    if (n < 1 || n > (int64_t)1 << 38 || (type == 1 && n < 2)) return false;
    p->n = n;
    p->type = type;
    p->dt = p->own = dt;
    p->length = n;
    if (type == 1) p->length = 2 * (n - 1);
    if (type == 4) {
        p->own = dt == LOP_f32 ? LOP_c64 : LOP_c128;
        p->length = n % 2 ? 2 * n : n / 2;
    }
    const size_t plan = lopk_fft_plan_bytes(p->length, p->own),
                 work = lopk_fft_work_bytes(p->length, p->own),
                 table = up((size_t)(n + 2) * 2 * lop_dtype_size(dt));
    if (!plan || !work) return false;
    p->fft = up(sizeof *p);
    p->first = p->fft + up(plan);
    p->last = p->first + table;
    p->bytes = p->last + table;
    p->line = up((size_t)(n + 4) * 5 * lop_dtype_size(dt));
    p->work = 64 + p->line + work;
    return true;
}

size_t lopk_dct_plan_bytes(int type, int64_t n, lop_dtype dt) {
    dct_plan p;
    return layout(&p, type, n, dt) ? p.bytes : 0;
}
size_t lopk_dct_work_bytes(int type, int64_t n, lop_dtype dt) {
    dct_plan p;
    return layout(&p, type, n, dt) ? p.work : 0;
}
lop_status lopk_dct_plan_init(void *plan, int type, int64_t n, lop_dtype dt) {
    dct_plan p;
    if (!layout(&p, type, n, dt)) return LOP_UNABLE;
    memcpy(plan, &p, sizeof p);
    if (dt == LOP_f32)
        tables_f32(&p, plan);
    else
        tables_f64(&p, plan);
    return lopk_fft_plan_init((char *)plan + p.fft, p.length, p.own);
}

void lopk_dct(const void *plan, void *line, void *work) {
    const dct_plan *p = plan;
    char *base = (char *)(((uintptr_t)work + 63) & ~(uintptr_t)63);
    if (p->dt == LOP_f32)
        dct_f32(p, line, base, base + p->line);
    else
        dct_f64(p, line, base, base + p->line);
}
