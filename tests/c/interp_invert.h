/* interp_invert.h: inverses by Gauss-Jordan with row exchanges, in long double, for interp.c alone.
 * It is what the batteries spend most time in: so without the moduli and integers that a val
 * carries, and of the rows that are eliminated only the columns that are left. */
typedef struct number {
    long double re, im;
} number;

static void swap_rows(number *v, int64_t n, int64_t i, int64_t j) {
    for (int64_t t = 0; t < n && i != j; t++) {
        const number s = v[i * n + t];
        v[i * n + t] = v[j * n + t];
        v[j * n + t] = s;
    }
}
static number over(number a, number b) {
    const val q = quotient((val){.re = a.re, .im = a.im}, (val){.re = b.re, .im = b.im});
    return (number){q.re, q.im};
}
/* to[t] -= f by[t] */
static void take_from(number *to, number f, const number *by, int64_t from, int64_t n) {
    for (int64_t t = from; t < n; t++) {
        to[t].re -= f.re * by[t].re - f.im * by[t].im;
        to[t].im -= f.re * by[t].im + f.im * by[t].re;
    }
}

/* inv <- a^-1, n x n; a is overwritten. */
static void invert(ip *p, number *a, number *inv, int64_t n) {
    for (int64_t i = 0; i < n * n; i++) inv[i] = (number){i / n == i % n, 0};
    for (int64_t c = 0; c < n; c++) {
        int64_t best = c;
        long double top = hypotl(a[c * n + c].re, a[c * n + c].im);
        for (int64_t i = c + 1; i < n; i++) {
            const long double size = hypotl(a[i * n + c].re, a[i * n + c].im);
            if (size > top) top = size, best = i;
        }
        const number pivot = a[best * n + c];
        if (top < 1e-9L) p->singular = true;
        if (p->singular) return;
        swap_rows(a, n, best, c);
        swap_rows(inv, n, best, c);
        for (int64_t t = c; t < n; t++) a[c * n + t] = over(a[c * n + t], pivot);
        for (int64_t t = 0; t < n; t++) inv[c * n + t] = over(inv[c * n + t], pivot);
        for (int64_t i = 0; i < n; i++) {
            const number f = a[i * n + c];
            if (i == c || (f.re == 0 && f.im == 0)) continue;
            take_from(a + i * n, f, a + c * n, c, n);
            take_from(inv + i * n, f, inv + c * n, 0, n);
        }
    }
}
