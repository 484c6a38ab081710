/* k_fft_panel.c: products by FFT of columns that lie across each other.
 *
 * A column of a matrix in C order has one number in each cache line. One by one, k columns fetch
 * every line k times; here as many as share two lines are copied together, row after row, and
 * results likewise put back. Cost: two copies of all columns; memory: 128 (m + n) bytes, MOST at
 * most. */
#include "k_fft.h"
#include "kernels/common/kernels.h"

enum { RUN = 128, MOST = 1 << 26 }; /* bytes: of a row in a panel, measured; of a panel */

size_t lopk_panel_bytes(int64_t m, int64_t n, int64_t k, lop_dtype dt) {
    const int64_t size = (int64_t)lop_dtype_size(dt);
    int64_t both, width = RUN / size < k ? RUN / size : k;
    if (width < 2 || !lop_add_ok(m, n, &both) || both < 1 || both > MOST / (2 * size)) return 0;
    if (width > MOST / (both * size)) width = MOST / (both * size);
    return ((size_t)(width * both * size) + 63) & ~(size_t)63;
}

/* Do neighbours in a row lie closer than neighbours in a column? */
static bool across(const lop_mat *a) {
    const int64_t row = a->cs < 0 ? -a->cs : a->cs, column = a->rs < 0 ? -a->rs : a->rs;
    return column != 1 && row < column && a->m > 1;
}

/* Row after row, so that a line that is fetched is used up; elements of a size known here. */
#define COPY_ROWS(type)                                                                            \
    for (int64_t i = 0; i < to->m; i++) {                                                          \
        type *y = (type *)to->p + i * to->rs;                                                      \
        const type *x = (const type *)from->p + i * from->rs;                                      \
        for (int64_t j = 0; j < to->n; j++) y[j * to->cs] = x[j * from->cs];                       \
    }                                                                                              \
    break
typedef struct two_floats {
    float re, im;
} two_floats;
typedef struct two_doubles {
    double re, im;
} two_doubles;

static void copy_rows(const lop_mat *to, const lop_mat *from) {
    switch (to->dt) {
    case LOP_f32: COPY_ROWS(float);
    case LOP_f64: COPY_ROWS(double);
    case LOP_c64: COPY_ROWS(two_floats);
    default: COPY_ROWS(two_doubles);
    }
}

static lop_mat columns(const lop_mat *a, int64_t from, int64_t count) {
    lop_mat part = *a;
    part.p = (char *)a->p + from * a->cs * (int64_t)lop_dtype_size(a->dt);
    part.n = count;
    return part;
}

void lopk_by_panels(const lop_mat *y, const lop_mat *x, void *panel, size_t bytes,
                    lopk_product_fn product, const void *arg) {
    const bool in = across(x), out = across(y);
    const int64_t size = (int64_t)lop_dtype_size(y->dt);
    const int64_t width = (int64_t)bytes / ((y->m + x->m > 0 ? y->m + x->m : 1) * size);
    if (bytes == 0 || y->n < 2 || width < 2 || !(in || out)) {
        product(y, x, arg);
        return;
    }
    for (int64_t j = 0; j < y->n; j += width) {
        const int64_t count = y->n - j < width ? y->n - j : width;
        const lop_mat yj = columns(y, j, count), xj = columns(x, j, count);
        const lop_mat xp = {panel, x->m, count, 1, x->m, x->dt};
        const lop_mat yp = {(char *)panel + width * x->m * size, y->m, count, 1, y->m, y->dt};
        if (in) copy_rows(&xp, &xj);
        product(out ? &yp : &yj, in ? &xp : &xj, arg);
        if (out) copy_rows(&yj, &yp);
    }
}
