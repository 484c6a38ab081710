/* buf.h: dtypes, shapes, and the two views of memory that steps and kernels see.
 *
 * A `lop_buf` describes an array of any dimension (an operand, a result); a `lop_mat` one matrix of
 * it, ready for a kernel. Neither owns memory. Strides count elements. */
#ifndef LOP_BUF_H
#define LOP_BUF_H

#include "base.h"

#include <complex.h>

typedef enum lop_dtype {
#define LOP_DTYPE(name, ctype, npname, family, bytes, real) LOP_##name,
#include "dtype.def"
#undef LOP_DTYPE
    LOP_NDTYPE
} lop_dtype;
#define LOP_NO_DTYPE LOP_NDTYPE /* a callable with no dtype, or one outside C's */

size_t lop_dtype_size(lop_dtype dt);
const char *lop_dtype_name(lop_dtype dt); /* NumPy's name */
char lop_dtype_family(lop_dtype dt);      /* b i u f c */
lop_dtype lop_dtype_real(lop_dtype dt);
lop_dtype lop_dtype_parse(const char *name);     /* LOP_NO_DTYPE when unknown */
lop_dtype lop_promote(lop_dtype a, lop_dtype b); /* NumPy 2's promote_types; NO_DTYPE absorbs */
/* Rounded to float. volatile: gcc 12 vectorises two such roundings side by side away. */
static inline double lop_in_f32(double x) {
    volatile float f = (float)x;
    return (double)f;
}
static inline bool lop_is_blas(lop_dtype dt) { return dt >= LOP_f32 && dt <= LOP_c128; }
static inline bool lop_is_complex(lop_dtype dt) { return dt == LOP_c64 || dt == LOP_c128; }

enum { LOP_MAXDIM = 8 };

/* Sizes. Opaque by convention: only buf, node and plan open it, so that sizes may become symbols.
 */
typedef struct lop_shape {
    int ndim;
    int64_t dim[LOP_MAXDIM];
} lop_shape;

lop_shape lop_shape_of(int ndim, const int64_t *dim);
bool lop_shape_equal(const lop_shape *a, const lop_shape *b);
lop_status lop_shape_count(const lop_shape *s, int64_t *count, lop_err *err) LOP_MUST_CHECK;
/* Leading dimensions of a and b but for the last `core_a`, `core_b`, broadcast as in np.matmul. */
lop_status lop_shape_batch(const lop_shape *a, int core_a, const lop_shape *b, int core_b,
                           lop_shape *out, lop_err *err) LOP_MUST_CHECK;
/* "(3, 4)" into text. */
const char *lop_shape_text(const lop_shape *s, char *text, size_t size);

typedef enum lop_device { LOP_CPU = 0 } lop_device;

/* An array. Borrowed memory; aligned, native byte order. Of a matrix's two dimensions at least one
 * has stride 1 (or size <= 1), and no stride of the core is <= 0 unless the size is <= 1 (whoever
 * binds arrays copies what is not so). Batch strides are free: 0 and negative ones too. */
typedef struct lop_buf {
    void *p;
    lop_dtype dt;
    lop_device device;
    lop_shape shape;
    int64_t stride[LOP_MAXDIM];
} lop_buf;

/* One matrix for a kernel: m x n, element (i, j) at p[i * rs + j * cs]. A vector is m x 1; a number
 * 1 x 1. Legal: m, n >= 0. */
typedef struct lop_mat {
    void *p;
    int64_t m, n, rs, cs;
    lop_dtype dt;
} lop_mat;

/* Is the memory one run of m * n elements in C order / in Fortran order? */
static inline bool lop_mat_is_c(const lop_mat *a) {
    return (a->cs == 1 || a->n <= 1) && (a->rs == a->n || a->m <= 1);
}
static inline bool lop_mat_is_f(const lop_mat *a) {
    return (a->rs == 1 || a->m <= 1) && (a->cs == a->m || a->n <= 1);
}
/* Element access for the generic paths: as complex double (floats) / int64 (integers). */
double _Complex lop_get(lop_dtype dt, const void *p, int64_t i);
void lop_set(lop_dtype dt, void *p, int64_t i, double _Complex v);

/* 128 bits of content: every byte and the layout. */
typedef struct lop_fingerprint {
    uint64_t lo, hi;
} lop_fingerprint;

#endif
