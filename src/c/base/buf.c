/* buf.c: the facts of the dtypes, NumPy 2's promotion, shapes, broadcasting. */
#include "buf.h"

#include <stdio.h>
#include <string.h>

typedef struct dtype_row {
    const char *name;
    char family;
    uint8_t bytes;
    lop_dtype real;
} dtype_row;

static const dtype_row rows[LOP_NDTYPE] = {
#define LOP_DTYPE(name, ctype, npname, family, bytes, real)                                        \
    [LOP_##name] = {npname, family, bytes, LOP_##real},
#include "dtype.def"
#undef LOP_DTYPE
};

size_t lop_dtype_size(lop_dtype dt) { return dt < LOP_NDTYPE ? rows[dt].bytes : 0; }
const char *lop_dtype_name(lop_dtype dt) { return dt < LOP_NDTYPE ? rows[dt].name : "none"; }
char lop_dtype_family(lop_dtype dt) { return dt < LOP_NDTYPE ? rows[dt].family : '?'; }
lop_dtype lop_dtype_real(lop_dtype dt) { return dt < LOP_NDTYPE ? rows[dt].real : dt; }

lop_dtype lop_dtype_parse(const char *name) {
    for (int i = 0; i < LOP_NDTYPE; i++)
        if (!strcmp(rows[i].name, name)) return (lop_dtype)i;
    return LOP_NO_DTYPE;
}

static lop_dtype of(char family, int bytes) {
    for (int i = 0; i < LOP_NDTYPE; i++)
        if (rows[i].family == family && rows[i].bytes == bytes) return (lop_dtype)i;
    return LOP_f64;
}

/* Promotion within {bool, signed, unsigned}: signed with unsigned takes the next larger signed, and
 * float64 when there is none. */
static lop_dtype promote_ints(lop_dtype a, lop_dtype b) {
    const dtype_row *p = &rows[a], *q = &rows[b];
    if (p->family == 'b') return b;
    if (q->family == 'b') return a;
    if (p->family == q->family) return p->bytes >= q->bytes ? a : b;
    int sbytes = p->family == 'i' ? p->bytes : q->bytes;
    int ubytes = p->family == 'u' ? p->bytes : q->bytes;
    if (sbytes > ubytes) return of('i', sbytes);
    return ubytes == 8 ? LOP_f64 : of('i', 2 * ubytes);
}

lop_dtype lop_promote(lop_dtype a, lop_dtype b) {
    if (a == b) return a;
    if (a >= LOP_NDTYPE || b >= LOP_NDTYPE) return LOP_NO_DTYPE;
    bool fa = lop_is_blas(a), fb = lop_is_blas(b);
    if (!fa && !fb) return promote_ints(a, b);
    lop_dtype ra = rows[a].real, rb = rows[b].real;
    if (!fa) ra = rows[a].bytes <= 2 ? LOP_f32 : LOP_f64;
    if (!fb) rb = rows[b].bytes <= 2 ? LOP_f32 : LOP_f64;
    bool wide = ra == LOP_f64 || rb == LOP_f64;
    if (lop_is_complex(a) || lop_is_complex(b)) return wide ? LOP_c128 : LOP_c64;
    return wide ? LOP_f64 : LOP_f32;
}

lop_shape lop_shape_of(int ndim, const int64_t *dim) {
    lop_shape s = {.ndim = ndim};
    for (int i = 0; i < ndim; i++) s.dim[i] = dim[i];
    return s;
}

bool lop_shape_equal(const lop_shape *a, const lop_shape *b) {
    if (a->ndim != b->ndim) return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->dim[i] != b->dim[i]) return false;
    return true;
}

lop_status lop_shape_count(const lop_shape *s, int64_t *count, lop_err *err) {
    int64_t n = 1;
    char text[128];
    for (int i = 0; i < s->ndim; i++)
        if (!lop_mul_ok(n, s->dim[i], &n))
            return lop_fail(err, LOP_OVERFLOW,
                            "an array of shape %s has more elements than 64 bits count",
                            lop_shape_text(s, text, sizeof text));
    *count = n;
    return LOP_OK;
}

lop_status lop_shape_batch(const lop_shape *a, int core_a, const lop_shape *b, int core_b,
                           lop_shape *out, lop_err *err) {
    int na = a->ndim - core_a, nb = b->ndim - core_b, n = na > nb ? na : nb;
    char ta[128], tb[128];
    out->ndim = n;
    for (int i = 0; i < n; i++) {
        int ia = i - (n - na), ib = i - (n - nb);
        int64_t da = ia < 0 ? 1 : a->dim[ia], db = ib < 0 ? 1 : b->dim[ib];
        if (da != db && da != 1 && db != 1)
            return lop_fail(err, LOP_DIM,
                            "batch dimensions could not be broadcast together: shapes %s and %s",
                            lop_shape_text(a, ta, sizeof ta), lop_shape_text(b, tb, sizeof tb));
        out->dim[i] = da == 1 ? db : da;
    }
    return LOP_OK;
}

const char *lop_shape_text(const lop_shape *s, char *text, size_t size) {
    size_t at = 0;
    int put = snprintf(text, size, "(");
    at = (size_t)put;
    for (int i = 0; i < s->ndim && at < size; i++) {
        put = snprintf(text + at, size - at, i ? ", %lld" : "%lld", (long long)s->dim[i]);
        at += (size_t)put;
    }
    if (at < size) snprintf(text + at, size - at, s->ndim == 1 ? ",)" : ")");
    return text;
}

double _Complex lop_get(lop_dtype dt, const void *p, int64_t i) {
    switch (dt) {
#define LOP_DTYPE(name, ctype, npname, family, bytes, real)                                        \
    case LOP_##name: return (double _Complex)((const ctype *)p)[i];
#include "dtype.def"
#undef LOP_DTYPE
    default: return 0;
    }
}

void lop_set(lop_dtype dt, void *p, int64_t i, double _Complex v) {
    switch (dt) {
    case LOP_c64: ((float _Complex *)p)[i] = (float _Complex)v; return;
    case LOP_c128:
        ((double _Complex *)p)[i] = v;
        return;
        /* clang-format off */
#define REAL(name, ctype) \
    case LOP_##name: ((ctype *)p)[i] = (ctype)creal(v); return;
    REAL(i8, int8_t)
    REAL(u8, uint8_t)
    REAL(i16, int16_t)
    REAL(u16, uint16_t)
    REAL(i32, int32_t)
    REAL(u32, uint32_t)
    REAL(i64, int64_t)
    REAL(u64, uint64_t)
    REAL(f32, float)
    REAL(f64, double)
#undef REAL
    /* clang-format on */
    case LOP_b8: ((unsigned char *)p)[i] = creal(v) != 0; return;
    default: return;
    }
}
